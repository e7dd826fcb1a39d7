//! Segments as others see them: what was written is read back equal, damage is found, a torn tail is cut exactly,
//! and the files of other writers are read as warcio reads them.

mod sample;

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringcrawl_base::Rng;
use ringcrawl_base::Truncated;
use ringcrawl_url::Url;
use ringcrawl_warc::examine::examine;
use ringcrawl_warc::fault::{ReadError, SegmentFault};
use ringcrawl_warc::read::{SegmentReader, find_segments, read_rest};
use ringcrawl_warc::recover::recover;
use ringcrawl_warc::verify::{VerifyReport, index_path, read_index, verify, verify_file};

use crate::rig::program::{Process, run};
use crate::rig::{conformance, skip};
use ringcrawl_base::TempFolder;
use sample::{NAME, Segment, segment};

fn verified(segment: &[u8], index: Option<&[u8]>) -> VerifyReport {
    let mut report = VerifyReport::default();
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
    let mut random = Rng::new(99);
    let mut harmless = 0;
    for _ in 0..150 {
        let mut bytes = segment.bytes.clone();
        let at = random.index(bytes.len());
        bytes[at] ^= 1 << random.index(8);
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
    assert!(harmless < 4, "{harmless}");
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
    let mut random = Rng::new(5);
    let step = (segment.bytes.len() / 300).max(1);
    for cut in (0..=segment.bytes.len()).step_by(step).chain(ends.iter().map(|end| *end as usize)) {
        let expected = ends.iter().rev().find(|end| **end <= cut as u64).copied().unwrap_or(0);
        let mut torn = segment.bytes[..cut].to_vec();
        let recovered = recover(Cursor::new(&torn), NAME).expect("memory");
        assert_eq!(recovered.valid_bytes, expected, "cut at {cut}");
        assert_eq!(recovered.records as usize, ends.iter().filter(|end| **end > 0 && **end <= cut as u64).count());
        // What a file system may leave behind a torn write: zeros or anything.
        let tail = random.index(3000);
        let garbage = if cut.is_multiple_of(2) { vec![0; tail] } else { random.bytes(tail) };
        torn.extend_from_slice(&garbage);
        assert_eq!(recover(Cursor::new(&torn), NAME).expect("memory").valid_bytes, expected, "garbage at {cut}");
    }
}

#[test]
fn hostile_bytes_end_in_an_answer() {
    let segment = segment(15, 4);
    let mut random = Rng::new(77);
    for round in 0..600 {
        let mut bytes = segment.bytes[..random.index(segment.bytes.len().min(4000))].to_vec();
        if round % 3 == 1 {
            bytes = zstd::decode_all(&segment.bytes[..]).expect("decodes");
            bytes.truncate(random.index(6000));
        }
        for _ in 0..random.index(30) {
            let at = random.index(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        match SegmentReader::new(Cursor::new(&bytes)) {
            Ok(reader) => drop(counts(reader)),
            Err(ReadError::Damaged { fault, .. }) => {
                assert!(matches!(
                    fault,
                    SegmentFault::UnknownFormat | SegmentFault::Dictionary | SegmentFault::Truncated
                ))
            }
            Err(ReadError::Io(error)) => panic!("{error}"),
        }
        recover(Cursor::new(&bytes), NAME).expect("memory");
    }
}

/// A folder where a crawl keeps its segments, with one and its index in it; the segment's path.
fn crawl_folder(name: &str, segment: &Segment) -> (TempFolder, PathBuf) {
    let folder = TempFolder::new(name);
    let segments = folder.path().join("shard-00/segments");
    std::fs::create_dir_all(&segments).expect("a folder");
    let path = segments.join(NAME);
    std::fs::write(&path, &segment.bytes).expect("writes");
    std::fs::write(path.with_file_name(NAME.replace(".warc.zst", ".cdxj")), &segment.index).expect("writes");
    (folder, path)
}

/// `ringcrawl store`: exit code and output.
fn store(arguments: &[&str]) -> (i32, Vec<u8>) {
    let ended = run(&[&["store"], arguments].concat());
    (ended.code, ended.out_bytes)
}

#[test]
fn the_command_line_reads_a_crawl_directory() {
    let segment = segment(16, 40);
    let (folder, path) = crawl_folder("store-cli", &segment);
    let index = index_path(&path).expect("a closed segment");
    assert_eq!(verify_file(&path).expect("reads").problems, vec![]);
    let dir = &folder.at("");

    assert_eq!(store(&["verify", dir]), (0, vec![]));
    let (code, list) = store(&["ls", dir]);
    let list = String::from_utf8(list).expect("UTF-8");
    assert_eq!((code, list.lines().count()), (0, 40));
    let first = format!(
        "{}\t200\ttext/html\t{}\t{}",
        segment.samples[0].time.to_iso(),
        segment.samples[0].stored_body().len(),
        segment.samples[0].url.as_str()
    );
    assert_eq!(list.lines().next(), Some(first.as_str()));
    assert_eq!(store(&["index", path.to_str().expect("UTF-8")]), (0, segment.index.clone()));

    let last_of_url = |url: &Url| segment.samples.iter().rev().find(|sample| sample.url == *url).expect("a sample");
    for with_index in [true, false] {
        if !with_index {
            std::fs::remove_file(&index).expect("removes");
        }
        for sample in &segment.samples {
            let expected = last_of_url(&sample.url);
            let (code, payload) = store(&["cat", dir, sample.url.as_str()]);
            assert_eq!((code, payload == expected.stored_body()), (0, true), "{}", sample.url.as_str());
        }
        let expected = last_of_url(&segment.samples[0].url);
        let with_head = store(&["cat", "--headers", dir, segment.samples[0].url.as_str()]);
        assert_eq!(with_head, (0, [&expected.stored_head(), expected.stored_body()].concat()));
        assert_eq!(store(&["cat", dir, "http://elsewhere.test/"]), (1, vec![]));
    }
    assert_eq!(store(&["cat", dir, "no url"]).0, 2);
    assert_eq!(store(&["verify", "no-such-folder"]).0, 2);
    let mut bytes = segment.bytes.clone();
    let at = bytes.len() - 2;
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).expect("writes");
    let (code, problems) = store(&["verify", dir]);
    assert_eq!((code, String::from_utf8_lossy(&problems).lines().count()), (1, 1));
}

/// The interpreter that has FastWARC and warcio: the named one, that of `tests/run`, or the system's.
fn python() -> Option<PathBuf> {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/venv/bin/python");
    let named = std::env::var_os("RINGCRAWL_PYTHON").map(PathBuf::from);
    let found = named.into_iter().chain([made, PathBuf::from("python3")]).find(|python| {
        let output = Command::new(python).args(["-c", "import fastwarc, warcio"]).output();
        output.is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        skip("no Python with FastWARC and warcio (tests/run venv makes one)");
    }
    found
}

#[test]
fn other_tools_read_our_segments() {
    let Some(python) = python() else { return };
    let (_folder, path) = crawl_folder("store-tools", &segment(17, 500));
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/check_segments.py");
    let ended = Process::start(Command::new(&python).arg(tool).arg(&path)).end();
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
}

fn lacks_a_length(path: &Path) -> bool {
    let mut reader = SegmentReader::open(path).expect("a segment");
    std::iter::from_fn(|| reader.next_record().ok().flatten()).any(|record| record.head.block_bytes().is_none())
}

#[test]
fn foreign_files_are_read_as_warcio_reads_them() {
    let Some(root) = conformance("warc") else { return };
    let inventory = std::fs::read(root.join("inventory.json")).expect("the list of files");
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
    assert!(compared > 10, "{compared}");
    assert!(differing.is_empty(), "{differing:#?}");
    for path in find_segments(&root.join("generated-zst")).expect("a folder") {
        let (counts, damaged) = counts(SegmentReader::open(&path).expect("a segment"));
        println!("{}: {counts:?}", path.display());
        assert_eq!(damaged, 0, "{}", path.display());
        assert!(!counts.is_empty());
    }
}
