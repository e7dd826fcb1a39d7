//! Segments as others see them: what was written is read back equal, damage is found, a torn tail is cut exactly,
//! and the files of other writers are read as warcio reads them.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringcrawl::outcome::Truncated;
use ringcrawl::store::examine::examine;
use ringcrawl::store::fault::{Fault, ReadError};
use ringcrawl::store::head::{Undone, write_stored_head};
use ringcrawl::store::read::{SegmentReader, find_segments, read_rest};
use ringcrawl::store::recover::recover;
use ringcrawl::store::verify::{Report, read_index, verify, verify_file};
use ringcrawl::store::{Capture, SegmentWriter, Settings};
use ringcrawl::time::UnixTime;
use ringcrawl::url::Url;

const NAME: &str = "sample-00-000001.warc.zst";

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 32) as u8).collect()
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// A capture that owns its bytes.
struct Sample {
    url: Url,
    time: UnixTime,
    ip: IpAddr,
    request: Vec<u8>,
    head: Vec<u8>,
    body: Vec<u8>,
    decoded: Option<Vec<u8>>,
    chunked: bool,
    truncated: Option<Truncated>,
    metadata: Vec<(&'static str, String)>,
}

impl Sample {
    fn random(random: &mut Random, number: usize) -> Sample {
        let scheme = random.pick(&["http", "https"]);
        let path = random.pick(&["", "a/b?c=d&a", "%E4%20x", "\"'<>", "päge?q=ü#f", "?", "x.warc.zst"]);
        let url = Url::parse(&format!("{scheme}://www.example{}.test:{}/{path}", number % 50, 80 + number % 3))
            .expect("a URL");
        let body_bytes = match number % 10 {
            0 => 0,
            1 => 1,
            2 => 1 + random.below(300_000),
            _ => random.below(9_000),
        };
        let body = match random.below(4) {
            0 => random.bytes(body_bytes),
            1 => b"WARC/1.1\r\n\r\n\x28\xb5\x2f\xfd\r\nWARC/1.0\r\n"
                .repeat(body_bytes / 30 + usize::from(body_bytes > 0)),
            _ => b"<p>The quick brown fox.</p>\r\n".repeat(body_bytes / 29 + usize::from(body_bytes > 0)),
        };
        let mut head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n".to_vec();
        let ends: &[&[u8]] = &[b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r\r\n"];
        for _ in 0..random.below(6) {
            let field = random.pick::<[u8]>(&[
                b"Content-Encoding: gzip",
                b"Transfer-Encoding: chunked",
                b"Content-Length: 17",
                b"X-Binary: \x80\xff\x01",
                b"X-Folded: a\r\n\tb",
                b"X-Cr: a\rb\0",
                b"no colon here",
                b": no name",
                b"Set-Cookie: a=b; c",
                b"WARC-Type: request",
            ]);
            head.extend_from_slice(field);
            head.extend_from_slice(random.pick(ends));
        }
        head.extend_from_slice(b"\r\n");
        let has_decoded = random.below(3) == 0;
        Sample {
            url,
            time: UnixTime::from_micros(1_795_250_432_000_000 + number as u64 * 1_234_567),
            ip: if number.is_multiple_of(2) {
                IpAddr::from([192, 0, 2, 1])
            } else {
                "2001:db8::1".parse().expect("an address")
            },
            request: format!("GET /{number} HTTP/1.1\r\nHost: example.test\r\n\r\n").into_bytes(),
            head,
            decoded: has_decoded.then(|| body.repeat(2)),
            body,
            chunked: random.below(3) == 0,
            truncated: (random.below(9) == 0).then_some(Truncated::Length),
            metadata: vec![("via", "https://seed.test/\r\nWARC-Type: x".to_owned()), ("depth", number.to_string())],
        }
    }

    fn append(&self, writer: &mut SegmentWriter) -> u64 {
        let metadata = self.metadata.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<(&str, &str)>>();
        let capture = Capture {
            url: &self.url,
            time: self.time,
            ip: Some(self.ip),
            request: &self.request,
            head_bytes: &self.head,
            body: &self.body,
            decoded: self.decoded.as_deref(),
            chunked: self.chunked,
            truncated: self.truncated,
            metadata: &metadata,
            status: 200,
            mime: "text/html; charset=utf-8",
        };
        let placed = writer.append(&capture).expect("appends");
        assert!(placed.frame_bytes < placed.capture_bytes);
        placed.offset
    }

    fn stored_body(&self) -> &[u8] {
        self.decoded.as_deref().unwrap_or(&self.body)
    }

    fn stored_head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        let undone = Undone { transfer: self.chunked, content: self.decoded.is_some() };
        write_stored_head(&mut head, &self.head, self.stored_body().len(), undone);
        head
    }
}

/// A segment with its index, its samples and their offsets.
struct Segment {
    bytes: Vec<u8>,
    index: Vec<u8>,
    samples: Vec<Sample>,
    offsets: Vec<u64>,
}

fn segment(rng_seed: u64, count: usize) -> Segment {
    let settings = Settings {
        zstd_level: 1,
        segment_bytes_max: u64::MAX,
        user_agent: "ringcrawl-test".to_owned(),
        operator: "ops@example.test".to_owned(),
        rng_seed,
    };
    let mut writer = SegmentWriter::new(settings).expect("a writer");
    let mut random = Random(rng_seed | 1);
    let (mut bytes, mut samples, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
    let mut spare = Vec::new();
    writer.begin(NAME, UnixTime::from_micros(1_795_250_432_000_000)).expect("begins");
    for number in 0..count {
        let sample = Sample::random(&mut random, number);
        offsets.push(sample.append(&mut writer));
        samples.push(sample);
        if writer.pending_bytes() > 100_000 || number + 1 == count {
            let pending = writer.take_pending(std::mem::take(&mut spare));
            assert_eq!(pending.offset, bytes.len() as u64);
            bytes.extend_from_slice(&pending.bytes);
            spare = pending.bytes;
        }
    }
    let index = writer.finish();
    assert_eq!(writer.take_pending(Vec::new()).bytes, b"");
    Segment { bytes, index, samples, offsets }
}

fn verified(segment: &[u8], index: Option<&[u8]>) -> Report {
    let mut report = Report::default();
    let entries = index.map(|index| read_index(index, &mut report).expect("memory"));
    verify(Cursor::new(segment), entries, NAME, &mut report).expect("memory");
    report
}

/// All records that can be read, by type, and the number of damaged places.
fn counts(mut reader: SegmentReader<impl std::io::Read + std::io::Seek>) -> (BTreeMap<String, u64>, u64) {
    let (mut counts, mut damaged) = (BTreeMap::new(), 0);
    loop {
        let result = reader.next_record().and_then(|record| match record {
            None => Ok(None),
            Some(record) => examine(&mut reader, &record, false).map(|_| Some(record)),
        });
        match result {
            Ok(None) => return (counts, damaged),
            Ok(Some(record)) => *counts.entry(record.head.kind()).or_default() += 1,
            Err(ReadError::Damaged { .. }) => damaged += 1,
            Err(ReadError::Io(error)) => panic!("{error}"),
        }
        assert!(damaged < 10_000, "reading gets on");
    }
}

#[test]
fn what_is_written_is_read_back() {
    let segment = segment(11, 500);
    let mut reader = SegmentReader::new(Cursor::new(&segment.bytes)).expect("a segment");
    let info = reader.next_record().expect("reads").expect("a record");
    assert_eq!((info.head.kind().as_str(), info.head.version()), ("warcinfo", "WARC/1.1"));
    let mut ids = std::collections::BTreeSet::from([info.head.id().to_owned()]);
    for (sample, offset) in segment.samples.iter().zip(&segment.offsets) {
        let response = reader.next_record().expect("reads").expect("a record");
        assert_eq!((response.offset, response.offset_in_frame), (*offset, 0));
        assert_eq!(response.head.kind(), "response");
        assert_eq!(response.head.target_uri(), sample.url.as_str());
        assert_eq!(response.head.get("WARC-Date"), Some(sample.time.to_iso().as_str()));
        assert_eq!(response.head.get("WARC-IP-Address"), Some(sample.ip.to_string().as_str()));
        assert_eq!(response.head.get("WARC-Truncated"), sample.truncated.map(Truncated::as_str));
        assert_eq!(response.head.get("WARC-Warcinfo-ID"), Some(info.head.id()));
        let mut block = Vec::new();
        assert!(read_rest(&mut reader, &mut block, usize::MAX).expect("reads"));
        assert_eq!(block, [&sample.stored_head(), sample.stored_body()].concat());
        for kind in ["request", "metadata"] {
            let record = reader.next_record().expect("reads").expect("a record");
            assert_eq!(record.head.kind(), kind);
            assert_eq!(record.head.get("WARC-Concurrent-To"), Some(response.head.id()));
            let mut block = Vec::new();
            read_rest(&mut reader, &mut block, usize::MAX).expect("reads");
            if kind == "request" {
                assert_eq!(block, sample.request);
            } else {
                assert_eq!(block.iter().filter(|byte| **byte == b'\n').count(), sample.metadata.len());
            }
            assert!(ids.insert(record.head.id().to_owned()));
        }
        assert!(ids.insert(response.head.id().to_owned()));
    }
    assert_eq!(reader.next_record().expect("reads"), None);

    let report = verified(&segment.bytes, Some(&segment.index));
    assert_eq!((report.problems, report.notes), (vec![], vec![]));
    // One digest a record, but two of a response without a body: of its block, and of the payload that is none.
    let empty = segment.samples.iter().filter(|sample| sample.stored_body().is_empty()).count() as u64;
    assert!(empty > 10);
    assert_eq!((report.records, report.digests, report.index_lines), (1501, 1501 + empty, Some(500)));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    assert_eq!(segment(3, 5).bytes, segment(3, 5).bytes);
    assert_ne!(segment(3, 5).bytes, segment(4, 5).bytes);
}

#[test]
fn every_flipped_byte_is_found_and_costs_one_record() {
    let segment = segment(12, 60);
    let content = zstd::decode_all(&segment.bytes[..]).expect("frames");
    let mut random = Random(99);
    let mut harmless = 0;
    for _ in 0..400 {
        let mut bytes = segment.bytes.clone();
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
        let report = verified(&bytes, Some(&segment.index));
        if report.problem_count == 0 {
            // A match may be named by another distance at which the same bytes lie.
            assert_eq!(zstd::decode_all(&bytes[..]).ok(), Some(content.clone()), "byte {at}");
            harmless += 1;
        }
        // The first record is the dictionary's place, too: a flip there may make the file look like another kind.
        if at >= 4 {
            assert!(report.records >= 180 - 2, "byte {at}: {} records, {:?}", report.records, report.problems);
        }
    }
    assert!(harmless < 8, "{harmless}");
}

#[test]
fn a_wrong_index_is_found() {
    let segment = segment(13, 20);
    let text = String::from_utf8(segment.index.clone()).expect("ASCII");
    let mut lines = text.split_inclusive('\n').collect::<Vec<&str>>();
    assert!(verified(&segment.bytes, Some(lines[1..].concat().as_bytes())).problem_count == 1);
    lines.swap(3, 4);
    assert!(verified(&segment.bytes, Some(lines.concat().as_bytes())).problem_count > 0);
    for (from, to) in
        [("\"status\":\"200\"", "\"status\":\"201\""), ("\"offset\":\"", "\"offset\":\"9"), ("sha256:", "sha1:")]
    {
        assert!(verified(&segment.bytes, Some(text.replacen(from, to, 1).as_bytes())).problem_count > 0, "{from}");
    }
    let again = recover(Cursor::new(&segment.bytes), NAME).expect("memory");
    assert_eq!(String::from_utf8(again.index).expect("ASCII"), text);
}

#[test]
fn a_torn_tail_is_cut_exactly() {
    let segment = segment(14, 12);
    let mut ends = vec![0];
    let mut reader = SegmentReader::new(Cursor::new(&segment.bytes)).expect("a segment");
    while reader.next_record().expect("reads").is_some() {
        ends.push(reader.end_record().expect("ends").offset.expect("one frame a record"));
    }
    assert_eq!(ends.last(), Some(&(segment.bytes.len() as u64)));
    let mut random = Random(5);
    let step = (segment.bytes.len() / 300).max(1);
    for cut in (0..=segment.bytes.len()).step_by(step).chain(ends.iter().map(|end| *end as usize)) {
        let expected = ends.iter().rev().find(|end| **end <= cut as u64).copied().unwrap_or(0);
        let mut torn = segment.bytes[..cut].to_vec();
        let recovered = recover(Cursor::new(&torn), NAME).expect("memory");
        assert_eq!(recovered.valid_bytes, expected, "cut at {cut}");
        assert_eq!(recovered.records as usize, ends.iter().filter(|end| **end > 0 && **end <= cut as u64).count());
        // What a file system may leave behind a torn write: zeros or anything.
        let tail = random.below(3000);
        let garbage = if cut.is_multiple_of(2) { vec![0; tail] } else { random.bytes(tail) };
        torn.extend_from_slice(&garbage);
        assert_eq!(recover(Cursor::new(&torn), NAME).expect("memory").valid_bytes, expected, "garbage at {cut}");
    }
}

#[test]
fn hostile_bytes_end_in_an_answer() {
    let segment = segment(15, 4);
    let mut random = Random(77);
    for round in 0..600 {
        let mut bytes = segment.bytes[..random.below(segment.bytes.len().min(4000))].to_vec();
        if round % 3 == 1 {
            bytes = zstd::decode_all(&segment.bytes[..]).expect("decodes");
            bytes.truncate(random.below(6000));
        }
        for _ in 0..random.below(30) {
            let at = random.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        match SegmentReader::new(Cursor::new(&bytes)) {
            Ok(reader) => drop(counts(reader)),
            Err(ReadError::Damaged { fault, .. }) => {
                assert!(matches!(fault, Fault::UnknownFormat | Fault::Dictionary | Fault::Truncated))
            }
            Err(ReadError::Io(error)) => panic!("{error}"),
        }
        recover(Cursor::new(&bytes), NAME).expect("memory");
    }
}

/// A folder of its own that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ringcrawl-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("shard-00/segments")).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ringcrawl(arguments: &[&str]) -> (Option<i32>, Vec<u8>) {
    let output = Command::new(env!("CARGO_BIN_EXE_ringcrawl")).arg("store").args(arguments).output().expect("runs");
    (output.status.code(), output.stdout)
}

#[test]
fn the_command_line_reads_a_crawl_directory() {
    let folder = Folder::new("store-cli");
    let segment = segment(16, 40);
    let path = folder.0.join("shard-00/segments").join(NAME);
    let index = path.with_file_name(NAME.replace(".warc.zst", ".cdxj"));
    std::fs::write(&path, &segment.bytes).expect("writes");
    std::fs::write(&index, &segment.index).expect("writes");
    assert_eq!(verify_file(&path).expect("reads").problems, vec![]);
    let dir = folder.0.to_str().expect("UTF-8");

    assert_eq!(ringcrawl(&["verify", dir]), (Some(0), vec![]));
    let (code, list) = ringcrawl(&["ls", dir]);
    let list = String::from_utf8(list).expect("UTF-8");
    assert_eq!((code, list.lines().count()), (Some(0), 40));
    let first = format!(
        "{}\t200\ttext/html\t{}\t{}",
        segment.samples[0].time.to_iso(),
        segment.samples[0].stored_body().len(),
        segment.samples[0].url.as_str()
    );
    assert_eq!(list.lines().next(), Some(first.as_str()));
    assert_eq!(ringcrawl(&["index", path.to_str().expect("UTF-8")]), (Some(0), segment.index.clone()));

    let last_of_url = |url: &Url| segment.samples.iter().rev().find(|sample| sample.url == *url).expect("a sample");
    for with_index in [true, false] {
        if !with_index {
            std::fs::remove_file(&index).expect("removes");
        }
        for sample in &segment.samples {
            let expected = last_of_url(&sample.url);
            let (code, payload) = ringcrawl(&["cat", dir, sample.url.as_str()]);
            assert_eq!((code, payload == expected.stored_body()), (Some(0), true), "{}", sample.url.as_str());
        }
        let expected = last_of_url(&segment.samples[0].url);
        let with_head = ringcrawl(&["cat", "--headers", dir, segment.samples[0].url.as_str()]);
        assert_eq!(with_head, (Some(0), [&expected.stored_head(), expected.stored_body()].concat()));
        assert_eq!(ringcrawl(&["cat", dir, "http://elsewhere.test/"]), (Some(1), vec![]));
    }
    assert_eq!(ringcrawl(&["cat", dir, "no url"]).0, Some(2));
    assert_eq!(ringcrawl(&["verify", "no-such-folder"]).0, Some(2));
    let mut bytes = segment.bytes.clone();
    let at = bytes.len() - 2;
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).expect("writes");
    let (code, problems) = ringcrawl(&["verify", dir]);
    assert_eq!((code, String::from_utf8_lossy(&problems).lines().count()), (Some(1), 1));
}

#[test]
fn other_tools_read_our_segments() {
    let python = std::env::var("RINGCRAWL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_tools = Command::new(&python).args(["-c", "import fastwarc, warcio"]).output();
    if !has_tools.is_ok_and(|output| output.status.success()) {
        println!("skipped: no fastwarc");
        return;
    }
    let folder = Folder::new("store-tools");
    let segment = segment(17, 500);
    let path = folder.0.join("shard-00/segments").join(NAME);
    std::fs::write(&path, &segment.bytes).expect("writes");
    std::fs::write(path.with_file_name(NAME.replace(".warc.zst", ".cdxj")), &segment.index).expect("writes");
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/check_segments.py");
    let output = Command::new(&python).arg(tool).arg(&path).output().expect("runs");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn lacks_a_length(path: &Path) -> bool {
    let mut reader = SegmentReader::open(path).expect("a segment");
    std::iter::from_fn(|| reader.next_record().ok().flatten()).any(|record| record.head.block_bytes().is_none())
}

#[test]
fn foreign_files_are_read_as_warcio_reads_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/conformance/warc");
    let Ok(inventory) = std::fs::read(root.join("inventory.json")) else {
        println!("skipped: no conformance data");
        return;
    };
    let inventory: serde_json::Value = serde_json::from_slice(&inventory).expect("JSON");
    let (mut compared, mut differing) = (0, Vec::new());
    for entry in inventory.as_array().expect("a list") {
        let name = entry["file"].as_str().expect("a name");
        let expected = entry["warcio"].as_object().expect("counts");
        let is_warc = name.contains(".warc") && !name.ends_with(".lz4");
        if !is_warc || expected.contains_key("error") || !root.join(name).is_file() {
            continue;
        }
        let expected = expected
            .iter()
            .map(|(kind, count)| (kind.trim().to_owned(), count.as_u64().expect("a number")))
            .collect::<BTreeMap<String, u64>>();
        if lacks_a_length(&root.join(name)) {
            // warcio takes such a record to reach to the file's end; we take its block as empty and read on.
            continue;
        }
        let got = match SegmentReader::open(&root.join(name)) {
            Ok(reader) => counts(reader).0,
            Err(error) => panic!("{name}: {error}"),
        };
        compared += 1;
        if got != expected {
            differing.push(format!("{name}: {got:?}, warcio {expected:?}"));
        }
    }
    println!("{compared} files compared, {} differ", differing.len());
    assert!(differing.is_empty(), "{differing:#?}");
    for path in find_segments(&root.join("generated-zst")).expect("a folder") {
        let (counts, damaged) = counts(SegmentReader::open(&path).expect("a segment"));
        println!("{}: {counts:?}", path.display());
        assert_eq!(damaged, 0, "{}", path.display());
        assert!(!counts.is_empty());
    }
}
