//! Records with wrong lengths, and records that span several frames.

use std::io::{Cursor, Write};

use super::*;

fn record(uri: &str, block: &[u8], content_length: usize) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: {uri}\r\nContent-Length: {content_length}\r\n\r\n"
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    member.write_all(bytes).and_then(|()| member.finish()).expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    super::super::frame::FrameWriter::new(1).and_then(|mut frame| frame.compress(&[bytes], &mut out)).expect("a frame");
    out
}

/// URL and block of a record, or what is wrong at which offset.
type Read = Result<(String, Vec<u8>), (u64, SegmentFault)>;

fn read(file: &[u8]) -> Vec<Read> {
    let mut reader = SegmentReader::new(Cursor::new(file)).expect("a WARC file");
    let mut all = Vec::new();
    loop {
        let one = reader.next_record().and_then(|record| {
            let Some(record) = record else { return Ok(None) };
            let mut block = Vec::new();
            read_rest(&mut reader, &mut block, 1 << 20)?;
            reader.end_record()?;
            Ok(Some((record.head.target_uri().to_owned(), block)))
        });
        match one {
            Ok(None) => return all,
            Ok(Some(record)) => all.push(Ok(record)),
            Err(ReadError::Damaged { offset, fault }) => all.push(Err((offset, fault))),
            Err(ReadError::Io(error)) => panic!("{error}"),
        }
    }
}

fn whole(uri: &str, block: &[u8]) -> Read {
    Ok((uri.to_owned(), block.to_vec()))
}

/// A record that claims bytes of the next one's frame costs only itself.
#[test]
fn a_record_ends_where_a_frame_starts_with_another() {
    for frame in [gzip, zstd] {
        let first = frame(&record("a:1", b"one", 3));
        let (lies, last) = (frame(&record("a:2", b"two", 30)), frame(&record("a:3", b"three", 5)));
        let wrong = Err((first.len() as u64, SegmentFault::Overlong));
        assert_eq!(read(&[first, lies, last].concat()), [whole("a:1", b"one"), wrong, whole("a:3", b"three")]);
    }
}

/// A missing line end after a record is searched for in the next frame, whose damage affects only the next record.
#[test]
fn damage_of_the_next_frame_costs_no_whole_record() {
    for frame in [gzip, zstd] {
        let text = record("a:1", b"one", 3);
        for line_ends in 0..4 {
            let first = frame(&text[..text.len() - 4 + line_ends]);
            let mut next = frame(&record("a:2", b"two", 3));
            let last = next.len() - 1;
            next[last] ^= 1;
            let found = read(&[&first[..], &next, &frame(&record("a:3", b"three", 5))].concat());
            assert!(
                found.get(1).is_some_and(|one| one.as_ref().is_err_and(|(at, _)| *at == first.len() as u64)),
                "{found:?}"
            );
            assert_eq!((&found[0], &found[2..]), (&whole("a:1", b"one"), &[whole("a:3", b"three")][..]), "{line_ends}");
        }
    }
}

/// Also if `WARC/` occurs within a frame, and if a frame begins with it but without a version.
#[test]
fn a_record_may_lie_in_several_frames() {
    for frame in [gzip, zstd] {
        let block = b"WARC/ is how a record begins, WARC/1.0 for one, and here is none";
        let text = record("a:1", block, block.len());
        let start = text.len() - block.len() - 4;
        for cut in [10, start, start + 6, start + 40] {
            let file = [frame(&text[..cut]), frame(&text[cut..]), frame(&record("a:2", b"", 0))].concat();
            assert_eq!(read(&file), [whole("a:1", block), whole("a:2", b"")], "cut at {cut}");
        }
    }
}

/// In a plain file, only the line ends reveal a wrong length.
#[test]
fn what_a_length_that_is_too_large_has_swallowed_is_found_again() {
    let (first, second, third) = (record("a:1", b"one", 33), record("a:2", b"two", 3), record("a:3", b"three", 5));
    let file = [&first[..], &second, &third].concat();
    let found = read(&file);
    let [swallowed, wrong, rest @ ..] = found.as_slice() else { panic!("{found:?}") };
    assert!(swallowed.as_ref().is_ok_and(|(uri, block)| uri == "a:1" && block.len() == 33));
    assert!(wrong.as_ref().is_err_and(|(_, fault)| *fault == SegmentFault::NoRecord));
    assert_eq!(rest, [whole("a:2", b"two"), whole("a:3", b"three")]);
    // Too small: the rest of the block is not a record.
    let file = [&record("a:1", b"one", 1)[..], &second].concat();
    let at = (record("a:1", b"one", 1).len() - 6) as u64;
    assert_eq!(read(&file), [whole("a:1", b"o"), Err((at, SegmentFault::NoRecord)), whole("a:2", b"two")]);
    // Beyond the end of the file.
    let file = [&record("a:1", b"one", 3_000)[..], &second].concat();
    assert_eq!(read(&file), [Err((0, SegmentFault::Truncated)), whole("a:2", b"two")]);
}

#[test]
fn a_file_of_records_without_end_is_read_to_its_end() {
    let file = record("a:1", b"", 40).repeat(200);
    let found = read(&file);
    assert!(found.len() <= 400 && found.iter().any(Result::is_ok), "{}", found.len());
}

/// Bytes that look like the beginning of a frame at every fourth place: each is tried, and none is expensive.
#[test]
fn a_record_is_found_behind_false_beginnings_of_frames() {
    let (first, last) = (zstd(&record("a:1", b"one", 3)), zstd(&record("a:3", b"three", 5)));
    let false_beginnings = [0x28, 0xb5, 0x2f, 0xfd].repeat(100_000);
    let found = read(&[&first[..], &false_beginnings, &last].concat());
    assert_eq!(found.first(), Some(&whole("a:1", b"one")));
    assert_eq!(found.last(), Some(&whole("a:3", b"three")));
    assert!(found.iter().filter(|it| it.is_ok()).count() == 2 && found.len() < 10, "{}", found.len());
}

/// A file that counts the bytes read and the calls made.
struct Counting<'a> {
    file: Cursor<&'a [u8]>,
    bytes: u64,
    calls: u64,
}

impl io::Read for &mut Counting<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(out)?;
        (self.bytes, self.calls) = (self.bytes + read as u64, self.calls + 1);
        Ok(read)
    }
}

impl io::Seek for &mut Counting<'_> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.calls += 1;
        self.file.seek(to)
    }
}

/// Hundreds of thousands of tiny frames: empty ones, skippable ones, ones without a record. The file is read once,
/// and the records behind them are found.
#[test]
fn small_frames_without_end_are_read_once() {
    let [skippable, longer] =
        [&[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0][..], &[0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]];
    let [empty, of_a_byte] =
        [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0][..], &[0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 9, 0, 0, b'x']];
    for (what, small, is_damage) in [
        ("skippable", skippable, false),
        ("longer", longer, false),
        ("empty", empty, false),
        ("of a byte", of_a_byte, true),
    ] {
        let (first, last) = (zstd(&record("a:1", b"one", 3)), zstd(&record("a:2", b"two", 3)));
        let file = [&first, &small.repeat((2 << 20) / small.len())[..], &last].concat();
        let mut counting = Counting { file: Cursor::new(&file), bytes: 0, calls: 0 };
        let mut reader = SegmentReader::new(&mut counting).expect("a WARC file");
        let (mut urls, mut damage) = (Vec::new(), 0);
        loop {
            match reader.next_record() {
                Ok(Some(record)) => urls.push(record.head.target_uri().to_owned()),
                Ok(None) => break,
                Err(_) => damage += 1,
            }
        }
        drop(reader);
        assert_eq!((urls, damage > 0), (vec!["a:1".to_owned(), "a:2".to_owned()], is_damage), "{what}");
        let (bytes, length) = (counting.bytes, file.len() as u64);
        assert!(bytes < 2 * length && counting.calls < 500, "{what}: {bytes} of {length} in {} calls", counting.calls);
    }
}
