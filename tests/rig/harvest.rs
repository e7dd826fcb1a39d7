//! What a crawl stored, read from its directory, and held against the truth.
//!
//! Decides: the indexes say what there is, the segments what it is: each payload is decoded and digested anew, so a
//! right index over wrong bytes is found. Of a revisit the payload is that of the capture which it names. robots.txt is stored too, and is no page: left out here.
//! Leaves to others: frames, index order and record fields (`store verify`).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use ringcrawl_base::time::UnixTime;
use ringcrawl_config::DigestAlgorithm;
use ringcrawl_warc::content::content;
use ringcrawl_warc::digest::Digest;
use ringcrawl_warc::index::IndexEntry;
use ringcrawl_warc::read::{SegmentReader, find_segments, read_rest};
use ringcrawl_warc::verify::index_path;
use ringcrawl_web::truth::{Expected, Truth};

/// What was stored: every capture of every page.
pub type Harvest = BTreeMap<String, Vec<Expected>>;

/// Reads a crawl's directory. A segment without an index, or an index that disagrees with it, is a failure.
#[track_caller]
pub fn stored(dir: &str) -> Harvest {
    let mut harvest = stored_of(dir, |_| true);
    harvest.retain(|url, _| !url.ends_with("/robots.txt"));
    harvest
}

/// The same for URLs that are `wanted`, also of robots.txt; of others nothing is read.
#[track_caller]
pub fn stored_of(dir: &str, wanted: impl Fn(&str) -> bool) -> Harvest {
    let mut harvest = Harvest::new();
    let segments = find_segments(Path::new(dir)).expect("a crawl's directory");
    let entries: Vec<(usize, IndexEntry)> = segments
        .iter()
        .enumerate()
        .flat_map(|(place, segment)| entries(segment).map(move |entry| (place, entry)))
        .collect();
    let originals: BTreeMap<(&str, &str), &(usize, IndexEntry)> = entries
        .iter()
        .filter(|(_, entry)| !entry.is_revisit())
        .map(|original| ((original.1.url.as_str(), original.1.digest.as_str()), original))
        .collect();
    for (place, segment) in segments.iter().enumerate() {
        let mut reader = SegmentReader::open(segment).expect("a segment");
        for (_, entry) in entries.iter().filter(|(of, entry)| *of == place && wanted(&entry.url)) {
            let record = reader.record_at(entry.offset).expect("a good frame").expect("a record");
            let kind = if entry.is_revisit() { "revisit" } else { "response" };
            assert_eq!((record.head.target_uri(), record.head.kind().as_str()), (entry.url.as_str(), kind));
            let head = reader.read_http_head().expect("an HTTP head");
            let mut body = Vec::new();
            if entry.is_revisit() {
                assert_eq!(reader.read_block(&mut [0; 1]).expect("a block"), 0, "{} has no payload", entry.url);
                let target = record.head.get("WARC-Refers-To-Target-URI").expect("a target");
                let date = record.head.get("WARC-Refers-To-Date").expect("a date").to_owned();
                let original = originals.get(&(target, entry.digest.as_str())).expect("it is stored");
                let mut reader = SegmentReader::open(&segments[original.0]).expect("a segment");
                let record = reader.record_at(original.1.offset).expect("a good frame").expect("a record");
                assert_eq!(record.head.get("WARC-Date"), Some(date.as_str()));
                reader.read_http_head().expect("an HTTP head");
                assert!(read_rest(&mut reader, &mut body, BODY_BYTES_MAX).expect("a body"), "{}", entry.url);
            } else {
                assert!(read_rest(&mut reader, &mut body, BODY_BYTES_MAX).expect("a body"), "{}", entry.url);
            }
            assert_eq!(head.status(), entry.status, "{}", entry.url);
            assert_eq!(sha256(&body), entry.digest, "{}", entry.url);
            let body = content(&head, &body, BODY_BYTES_MAX).bytes;
            harvest.entry(entry.url.clone()).or_default().push(Expected {
                status: entry.status,
                body_bytes: body.len() as u64,
                body_digest: xxhash_rust::xxh3::xxh3_64(&body),
            });
        }
    }
    harvest
}

/// The URLs that each shard stored.
#[track_caller]
pub fn urls_by_shard(dir: &str) -> Vec<BTreeSet<String>> {
    let mut shards = Vec::new();
    for segment in find_segments(Path::new(dir)).expect("a crawl's directory") {
        let name = segment.to_string_lossy();
        let shard = name.rsplit("shard-").next().and_then(|rest| rest.split('/').next()?.parse().ok()).unwrap_or(0);
        shards.resize(shards.len().max(shard + 1), BTreeSet::new());
        shards[shard].extend(entries(&segment).map(|entry| entry.url));
    }
    shards
}

/// The lines of a segment's index.
fn entries(segment: &Path) -> impl Iterator<Item = IndexEntry> {
    let index = index_path(segment).expect("a closed segment");
    let text = std::fs::read_to_string(&index).unwrap_or_else(|error| panic!("{}: {error}", index.display()));
    let lines: Vec<IndexEntry> =
        text.lines().map(|line| IndexEntry::parse(line).unwrap_or_else(|| panic!("no index line: {line}"))).collect();
    lines.into_iter()
}

/// A harvest held against the truth: numbers of URLs, and the first of each kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// URLs to be stored.
    pub expected: usize,
    /// Captures of URLs that were stored before.
    pub double: usize,
    /// Not stored.
    pub missing: usize,
    /// Stored with another status or body.
    pub wrong: usize,
    /// Stored and not in the truth.
    pub beyond: usize,
    /// Examples.
    pub examples: Vec<String>,
}

impl Verdict {
    /// Compares status, length and digest of every capture.
    pub fn of(harvest: &Harvest, truth: &Truth) -> Verdict {
        let mut verdict = Verdict { expected: truth.fetched.len() + truth.missing.len(), ..Verdict::default() };
        let mut known = 0;
        for (url, expected) in truth.fetched.iter().chain(&truth.missing) {
            let captures = harvest.get(url.as_str()).map(Vec::as_slice).unwrap_or_default();
            known += usize::from(!captures.is_empty());
            verdict.missing += verdict.example(captures.is_empty(), "missing", url.as_str());
            verdict.wrong += verdict.example(captures.iter().any(|it| it != expected), "wrong", url.as_str());
            if verdict.example(captures.len() > 1, "double", url.as_str()) > 0 {
                verdict.double += captures.len() - 1;
            }
        }
        verdict.beyond = harvest.len() - known;
        verdict
    }

    /// Panics unless everything was stored rightly, and once.
    #[track_caller]
    pub fn expect_perfect(&self) {
        let perfect = Verdict { expected: self.expected, ..Verdict::default() };
        assert_eq!(*self, perfect);
    }

    /// As [`Verdict::expect_perfect`], but pages may have been stored more than once.
    #[track_caller]
    pub fn expect_whole(&self) {
        assert_eq!((self.missing, self.wrong, self.beyond), (0, 0, 0), "{self:#?}");
    }

    fn example(&mut self, applies: bool, kind: &str, url: &str) -> usize {
        if applies && self.examples.len() < EXAMPLES_MAX {
            self.examples.push(format!("{kind}: {url}"));
        }
        usize::from(applies)
    }
}

/// When the fetch of each capture of each page began, in order.
pub fn times(dir: &str) -> BTreeMap<String, Vec<UnixTime>> {
    let mut times: BTreeMap<String, Vec<UnixTime>> = BTreeMap::new();
    for segment in find_segments(Path::new(dir)).expect("a crawl's directory") {
        let mut reader = SegmentReader::open(&segment).expect("a segment");
        while let Some(record) = reader.next_record().expect("a record") {
            let url = record.head.target_uri().to_owned();
            if matches!(record.head.kind().as_str(), "response" | "revisit") && !url.ends_with("/robots.txt") {
                let date = record.head.get("WARC-Date").unwrap_or_default();
                times.entry(url).or_default().push(parse_date(date).unwrap_or_else(|| panic!("no date: {date}")));
            }
        }
    }
    times.values_mut().for_each(|times| times.sort_unstable());
    times
}

/// `2026-11-21T08:40:32.000001Z`
fn parse_date(text: &str) -> Option<UnixTime> {
    let (seconds, micros) = text.strip_suffix('Z')?.split_once('.')?;
    let mut numbers = seconds.split(['-', 'T', ':']).map(|number| number.parse().ok());
    let mut next = || numbers.next()?;
    let time = UnixTime::from_civil(next()?, next()?, next()?, next()?, next()?, next()?)?;
    Some(UnixTime::from_micros(time.as_micros() + micros.parse::<u64>().ok()?))
}

/// Files below `dir` whose name ends in `.open`: segments that nobody closed.
pub fn open_files(dir: &str) -> Vec<String> {
    let mut open = Vec::new();
    let mut folders = vec![Path::new(dir).to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "open") {
                open.push(path.display().to_string());
            }
        }
    }
    open
}

/// Panics when two records of a crawl have one identifier (WARC 1.1 section 5.2: it is globally unique).
#[track_caller]
pub fn expect_own_ids(dir: &str) {
    let mut ids = HashSet::new();
    for segment in find_segments(Path::new(dir)).expect("a crawl's directory") {
        let mut reader = SegmentReader::open(&segment).expect("a segment");
        while let Some(record) = reader.next_record().expect("a record") {
            let id = record.head.id().to_owned();
            assert!(ids.insert(id.clone()), "{id} is there twice, the second time in {}", segment.display());
        }
    }
}

fn sha256(bytes: &[u8]) -> String {
    let (mut digest, mut label) = (Digest::new(DigestAlgorithm::Sha256), Vec::new());
    digest.update(bytes);
    digest.write_label(&mut label);
    String::from_utf8(label).expect("ASCII")
}

const BODY_BYTES_MAX: usize = 64 << 20;
const EXAMPLES_MAX: usize = 20;
