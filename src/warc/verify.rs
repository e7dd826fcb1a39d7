//! Checks a segment and its index, and reports which record is wrong where.
//!
//! Decides what is a problem: a frame that does not decode or whose checksum is wrong; bytes that are not a record; a
//! record without a line end after it, with a line in its head that is not a field, or without a field that every
//! record must have (WARC 1.1 section 5: WARC-Type, WARC-Record-ID, WARC-Date, Content-Length); a digest that does
//! not match; a closed file without a record; an index that is unsorted, disagrees with the segment or, in a crawl,
//! is missing. What is a note: harmless departures of other writers (other line ends between records; no content
//! size, no checksum, several records in a frame). Our own writer causes neither.
//! Limits: the first 1,000 problems are kept, the rest counted; an index of at most 1 GiB is compared.
//! Leaves to others: printing (`cli`).

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use super::examine::{Examined, examine};
use super::fault::ReadError;
use super::folder::is_of_crawl;
use super::index::IndexEntry;
use super::read::{Record, SegmentReader, Trailer};
use super::recover::entry_of;
use super::segments::{INDEX_SUFFIX, OPEN, warc_stem};
use super::source::Coding;

/// What a check found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VerifyReport {
    /// Records that were read.
    pub records: u64,
    /// Digests that were compared.
    pub digests: u64,
    /// Index lines that were compared; `None`: there is no index.
    pub index_lines: Option<u64>,
    /// Problems in all.
    pub problem_count: u64,
    /// The first of them.
    pub problems: Vec<Problem>,
    /// Harmless departures, each kind once.
    pub notes: Vec<&'static str>,
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Where.
    pub location: Location,
    /// WARC-Record-ID; empty when unknown.
    pub record_id: String,
    /// What is wrong.
    pub what: String,
}

/// Where a problem is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// In the segment, at this offset in bytes.
    Offset(u64),
    /// In the index, in this line.
    IndexLine(u64),
    /// The index as a whole.
    Index,
}

impl VerifyReport {
    fn add(&mut self, location: Location, record_id: &str, what: impl Into<String>) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { location, record_id: record_id.to_owned(), what: what.into() });
        }
    }

    fn note(&mut self, applies: bool, note: &'static str) {
        if applies && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Checks a file, and the `.cdxj` next to it, which must exist in a crawl.
pub fn verify_file(path: &Path) -> io::Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let entries = match index_path(path).map(|index| open_index(&index, path)) {
        None | Some(Ok(None)) => None,
        Some(Ok(Some(file))) => Some(read_index(file, &mut report)?),
        Some(Err(why)) => {
            report.add(Location::Index, "", format!("index: {why}"));
            None
        }
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    verify(File::open(path)?, entries, &name, &mut report)?;
    Ok(report)
}

/// The index of `segment`; `None` if none is needed. An error describes what is there instead.
fn open_index(index: &Path, segment: &Path) -> Result<Option<File>, String> {
    match index.metadata() {
        // Only files are opened: a pipe would wait for a writer.
        Ok(found) if !found.is_file() => Err("no file".to_owned()),
        Ok(_) => File::open(index).map(Some).map_err(|error| error.to_string()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
        Err(_) if index.is_symlink() => Err("a link that leads nowhere".to_owned()),
        Err(_) if is_in_crawl(segment) || segment.canonicalize().is_ok_and(|lies| is_in_crawl(&lies)) => {
            Err("there is none".to_owned())
        }
        Err(_) => Ok(None),
    }
}

fn is_in_crawl(segment: &Path) -> bool {
    segment.parent().is_some_and(is_of_crawl)
}

/// The index that belongs to a segment: `X.cdxj` next to `X.warc.zst` or `X.warc.gz`.
pub fn index_path(segment: &Path) -> Option<std::path::PathBuf> {
    let name = segment.file_name()?.to_str()?;
    Some(segment.with_file_name(format!("{}{INDEX_SUFFIX}", warc_stem(name)?)))
}

/// Lines of an index by the offset that they point to.
pub type IndexEntries = HashMap<u64, (u64, IndexEntry)>;

/// Reads an index; unsorted, duplicate or malformed lines are problems.
pub fn read_index(input: impl Read, report: &mut VerifyReport) -> io::Result<IndexEntries> {
    let mut entries = IndexEntries::new();
    let mut lines = BufReader::new(input.take(INDEX_BYTES_MAX));
    let (mut before, mut line) = (Vec::new(), Vec::new());
    let mut number = 0;
    while lines.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        if line < before {
            report.add(Location::IndexLine(number), "", "index: line is out of order");
        }
        let text = std::str::from_utf8(&line).ok().and_then(|line| line.strip_suffix('\n'));
        match text.and_then(IndexEntry::parse) {
            None => report.add(Location::IndexLine(number), "", "index: line is malformed"),
            Some(entry) => {
                if entries.insert(entry.offset, (number, entry)).is_some() {
                    report.add(Location::IndexLine(number), "", "index: two lines for one offset");
                }
            }
        }
        std::mem::swap(&mut before, &mut line);
        line.clear();
    }
    Ok(entries)
}

/// Checks the records of `input`, called `filename`, and that `entries` describe them correctly.
pub fn verify<R: Read + Seek>(
    input: R,
    mut entries: Option<IndexEntries>,
    filename: &str,
    report: &mut VerifyReport,
) -> io::Result<()> {
    report.index_lines = entries.as_ref().map(|entries| entries.len() as u64);
    let mut reader = match SegmentReader::new(input) {
        Ok(reader) => reader,
        Err(ReadError::Io(error)) => return Err(error),
        Err(ReadError::Damaged { offset, fault }) => {
            report.add(Location::Offset(offset), "", fault.to_string());
            return Ok(());
        }
    };
    loop {
        let record = match reader.next_record() {
            Ok(None) => break,
            Ok(Some(record)) => record,
            Err(ReadError::Io(error)) => return Err(error),
            Err(ReadError::Damaged { offset, fault }) => {
                report.add(Location::Offset(offset), "", fault.to_string());
                continue;
            }
        };
        match examine(&mut reader, &record, true) {
            Ok(examined) => {
                report.records += 1;
                check_record(&record, &examined, reader.coding(), report);
                if let Some(entries) = &mut entries {
                    check_entry(&record, &examined, filename, entries, report);
                }
            }
            Err(ReadError::Io(error)) => return Err(error),
            Err(ReadError::Damaged { offset, fault }) => {
                report.add(Location::Offset(offset), record.head.id(), fault.to_string())
            }
        }
    }
    let mut left = entries.unwrap_or_default().into_values().collect::<Vec<(u64, IndexEntry)>>();
    left.sort_by_key(|(number, _)| *number);
    for (number, entry) in left {
        report.add(
            Location::IndexLine(number),
            "",
            format!("index: no capture at offset {} for {}", entry.offset, entry.url),
        );
    }
    // A segment that was just begun has none; that is not a problem.
    if report.records == 0 && report.problem_count == 0 && !filename.ends_with(OPEN) {
        report.add(Location::Offset(0), "", "the file has no record");
    }
    Ok(())
}

fn check_record(record: &Record, examined: &Examined, coding: Coding, report: &mut VerifyReport) {
    let (at, id) = (Location::Offset(record.offset), record.head.id());
    for name in ["WARC-Type", "WARC-Record-ID", "WARC-Date"] {
        if record.head.get(name).is_none_or(str::is_empty) {
            report.add(at, id, format!("{name} is missing"));
        }
    }
    if record.head.has_odd_line() {
        report.add(at, id, "a line of its head is no field");
    }
    if record.head.block_bytes().is_none() {
        report.add(at, id, "Content-Length is missing or no number");
    }
    if examined.end.trailer == Trailer::Missing {
        report.add(at, id, "no line end after the record");
    }
    report.note(examined.end.trailer == Trailer::OtherLineEnds, "records that end in something else than two CRLF");
    for (name, holds) in
        [("WARC-Block-Digest", examined.block_digest_holds), ("WARC-Payload-Digest", examined.payload_digest_holds)]
    {
        report.digests += u64::from(holds.is_some());
        if holds == Some(false) {
            report.add(at, id, format!("{name} does not hold"));
        }
    }
    if coding != Coding::Plain {
        report.note(examined.end.offset.is_none() || record.offset_in_frame > 0, "several records in one frame");
    }
    if coding == Coding::Zstd {
        report.note(examined.end.traits.without_size, "frames without content size");
        report.note(examined.end.traits.without_checksum, "frames without checksum");
    }
}

fn check_entry(
    record: &Record,
    examined: &Examined,
    filename: &str,
    entries: &mut IndexEntries,
    report: &mut VerifyReport,
) {
    let Some((_, expected)) = entry_of(record, examined, filename) else { return };
    let (at, id) = (Location::Offset(record.offset), record.head.id());
    let Some((_, entry)) = entries.remove(&record.offset) else {
        report.add(at, id, "index: no line for this capture");
        return;
    };
    // Indexes of other writers lack some members.
    let is_same = |expected: &str, said: &str| said.is_empty() || said == expected;
    // pywb and cdxj-indexer omit the algorithm's name.
    let is_digest_equal = expected.digest == entry.digest || expected.digest.ends_with(&format!(":{}", entry.digest));
    for (name, is_equal) in [
        ("url", expected.url == entry.url),
        ("timestamp", expected.timestamp == entry.timestamp),
        ("status", expected.status == entry.status),
        ("coding", is_same(&expected.coding, &entry.coding)),
        ("charset", is_same(&expected.charset, &entry.charset)),
        // Other writers take it from the page.
        ("robotflags", expected.robotflags.is_empty() || is_same(&expected.robotflags, &entry.robotflags)),
        ("unavailable-after", is_same(&expected.unavailable_after, &entry.unavailable_after)),
        ("usage", is_same(&expected.usage, &entry.usage)),
        ("redirect", is_same(&expected.redirect, &entry.redirect)),
        ("truncated", is_same(&expected.truncated, &entry.truncated)),
        ("record-id", is_same(&expected.record_id, &entry.record_id)),
        ("length", expected.frame_bytes == entry.frame_bytes),
        ("filename", expected.filename == entry.filename),
        ("digest", is_digest_equal || record.head.kind() == "revisit"),
    ] {
        if !is_equal {
            report.add(at, id, format!("index: {name} differs from the record's"));
        }
    }
}

/// Problems that are kept in a report.
const PROBLEMS_MAX: usize = 1_000;
/// Bytes of an index that are read.
const INDEX_BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn problems(name: &str, bytes: &[u8]) -> Vec<String> {
        let mut report = VerifyReport::default();
        verify(Cursor::new(bytes), None, name, &mut report).expect("memory");
        report.problems.into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn a_file_without_a_record_is_one_that_was_just_begun() {
        let empty_member = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for bytes in [&b""[..], &empty_member] {
            assert_eq!(problems("a.warc.gz.open", bytes), [""; 0]);
            assert_eq!(problems("a.warc.gz", bytes), ["the file has no record"]);
        }
    }

    #[test]
    fn what_is_wrong_with_a_head_is_told() {
        let head = "WARC/1.0\r\nno field\r\nWARC-Type: metadata\r\nWARC-Date: -\r\nContent-Length: x\r\n\r\n\r\n\r\n";
        let expected =
            ["WARC-Record-ID is missing", "a line of its head is no field", "Content-Length is missing or no number"];
        assert_eq!(problems("a.warc", head.as_bytes()), expected);
    }
}
