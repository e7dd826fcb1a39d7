//! What a simulated crawl has stored; checks that its segments, their indexes and its logs agree.
//!
//! Decides: each closed segment verifies, and its index has exactly one line for each of its captures. A URL that is
//! done according to a log has its record: at the location that the log names, or, if it failed, a metadata record. A
//! record lost in a crash would be fetched again, so lost records are checked for before each run, and again at the
//! end. A revisit of a URL that is done refers to a body that exists.
//! Limits: none of this is checked for a crawl with flipped bits.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::Cursor;

use super::Simulation;
use crate::FakeDisk;
use ringcrawl_base::Failure;
use ringcrawl_brain::log::{self, End, EndKind, LogFile, RecordPlace};
use ringcrawl_warc::examine::examine;
use ringcrawl_warc::read::{Record, SegmentReader};
use ringcrawl_warc::segments::segment_number;
use ringcrawl_warc::verify::{VerifyReport, read_index, verify};

/// The records of all segments.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// How often each page is stored with 200, as a body or as a reference to one.
    pub(super) pages: BTreeMap<String, u64>,
    captures: BTreeMap<RecordPlace, Capture>,
    /// URLs with a record of their failure.
    failed: HashSet<String>,
    /// Stored bodies: their URL and their digest.
    bodies: BTreeSet<(String, String)>,
    /// Index lines that were compared, and captures that refer to a body.
    pub(super) index_lines: u64,
    pub(super) revisits: u64,
}

#[derive(Debug)]
struct Capture {
    url: String,
    /// The body that it refers to, if it has none of its own.
    original: Option<(String, String)>,
}

impl Simulation {
    /// Reads all segments; problems become complaints.
    pub(super) fn stored(&self, complaints: &mut Vec<String>) -> Stored {
        let mut stored = Stored::default();
        // Shards are removed from the highest number down.
        for (shard, disk) in self.disks.iter().chain(self.idle_disks.iter().rev()).enumerate() {
            for (name, bytes, index) in disk.segments() {
                let mut report = VerifyReport::default();
                let entries = read_index(index, &mut report).expect("memory is readable");
                verify(Cursor::new(bytes), Some(entries), name, &mut report).expect("memory is readable");
                stored.index_lines += report.index_lines.unwrap_or_default();
                complaints.extend(report.problems.iter().map(|problem| format!("shard {shard}: {name}: {problem:?}")));
                let segment = segment_number(name).expect("a segment has a number");
                stored.read(bytes, RecordPlace { shard: shard as u16, segment, offset: 0 });
            }
        }
        stored
    }

    /// Complains about URLs that are done according to a log and have no record; returns how many have one.
    pub(super) fn miss_acknowledged(&self, stored: &Stored, complaints: &mut Vec<String>) -> u64 {
        let mut acknowledged = 0;
        for (index, disk) in self.disks.iter().enumerate() {
            // A URL's number is its position in the log.
            let mut urls = Vec::new();
            for entries in log::read_urls(disk.log(LogFile::Urls)) {
                urls.extend(entries.accepted.iter().map(|(_, url)| url.to_owned()));
            }
            for (number, end) in ends(disk) {
                let url = urls.get(number as usize).cloned().unwrap_or_default();
                let is_there = match (end.kind, end.place) {
                    (EndKind::Failed(Failure::Aborted), None) => true,
                    (EndKind::Failed(_), None) => stored.failed.contains(&url),
                    (_, None) => true,
                    (_, Some(place)) => stored.captures.get(&place).is_some_and(|capture| {
                        capture.url == url
                            && capture.original.as_ref().is_none_or(|original| stored.bodies.contains(original))
                    }),
                };
                acknowledged += u64::from(is_there);
                if !is_there {
                    complaints.push(format!("shard {index}: {url} is over by {end:?}, and has no record there"));
                }
            }
        }
        acknowledged
    }

    /// Complains about records that a log names and a crash has removed. Call it after the disks were recovered.
    pub(super) fn miss_cut(&mut self) {
        if self.is_damaged {
            return;
        }
        let all: Vec<&FakeDisk> = self.disks.iter().chain(self.idle_disks.iter().rev()).collect();
        let mut lengths = HashMap::new();
        for (shard, disk) in all.iter().enumerate() {
            for (name, bytes, _) in disk.segments() {
                lengths.extend(segment_number(name).map(|number| ((shard as u16, number), bytes.len() as u64)));
            }
        }
        let places = self.disks.iter().flat_map(|disk| ends(disk).into_values()).filter_map(|end| end.place);
        let is_cut = |place: &RecordPlace| lengths.get(&(place.shard, place.segment)) <= Some(&place.offset);
        let cut: Vec<String> = places.filter(is_cut).map(|place| format!("{place:?} is cut")).collect();
        self.complaints.extend(cut);
    }
}

/// The last entry for each URL.
fn ends(disk: &FakeDisk) -> BTreeMap<u64, End> {
    let mut ends: BTreeMap<u64, End> = log::read_ends(disk.log(LogFile::Ends)).map(|end| (end.url, end)).collect();
    ends.retain(|_, end| end.kind != EndKind::Reopened);
    ends
}

impl Stored {
    /// Takes in the records of a verified segment.
    fn read(&mut self, bytes: &[u8], segment: RecordPlace) {
        let Ok(mut reader) = SegmentReader::new(Cursor::new(bytes)) else { return };
        while let Ok(Some(record)) = reader.next_record() {
            let Ok(examined) = examine(&mut reader, &record, false) else { return };
            let field = |name: &str| record.head.get(name).unwrap_or_default().to_owned();
            let url = record.head.target_uri().to_owned();
            let body = |url: String| (url, field("WARC-Payload-Digest"));
            let original = match record.head.kind().as_str() {
                "response" => {
                    self.bodies.insert(body(url.clone()));
                    None
                }
                "revisit" => {
                    self.revisits += 1;
                    Some(body(field("WARC-Refers-To-Target-URI")))
                }
                kind => {
                    if kind == "metadata" && is_of_failure(&record) {
                        self.failed.insert(url);
                    }
                    continue;
                }
            };
            if examined.http.status() == 200 {
                *self.pages.entry(url.clone()).or_default() += 1;
            }
            self.captures.insert(RecordPlace { offset: record.offset, ..segment }, Capture { url, original });
        }
    }

    /// Records of failed URLs, by URL.
    pub(super) fn failures(&self) -> u64 {
        self.failed.len() as u64
    }
}

/// A page's own metadata record refers to the page's response; a failure's does not.
fn is_of_failure(record: &Record) -> bool {
    record.head.get("WARC-Concurrent-To").is_none()
}
