//! After a crash: how much of an open segment is intact, and its index.
//!
//! Decides: the file is cut after its last whole record, one whose frame decodes to its end with a right checksum and
//! which ends in two CRLF. Damage before that (which a torn write does not cause) is counted and kept: a cut there
//! would lose acknowledged records. The index is rebuilt from the records. Records after damage count only if they
//! name the segment's own warcinfo record, which no outsider can do: a page's body may itself hold a record in a
//! frame.
//! Invariants: `valid_bytes` is 0 or the end of a frame; the part cut off holds no whole record.
//! Leaves to others: cutting and renaming the file (`disk`).

use std::io::{self, Read, Seek};

use super::capture::{CHARSET, ROBOTS, USAGE};
use super::examine::{Examined, next_examined};
use super::fault::{ReadError, SegmentFault};
use super::index::{Index, IndexEntry, REVISIT, coding_label, media_type, record_label, redirect_label};
use super::read::{Record, SegmentReader, Trailer};
use super::record_head::HttpHead;
use ringcrawl_base::preferences::Preferences;
use ringcrawl_base::time::UnixTime;
use ringcrawl_html::Directives;
use ringcrawl_http::redirect_target;
use ringcrawl_url::Url;

/// What can be kept of a segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// Cut the file to this many bytes.
    pub valid_bytes: u64,
    /// Whole records before that.
    pub records: u64,
    /// Damaged places before that; 1 if the file does not begin as a segment.
    pub damaged: u64,
    /// The lines of the index, sorted.
    pub index: Vec<u8>,
}

/// Reads the segment that will be called `filename`. Errors are of reading, never about the content.
pub fn recover<R: Read + Seek>(input: R, filename: &str) -> io::Result<Recovered> {
    let mut recovered = Recovered::default();
    let mut index = Index::default();
    let mut damaged = 0;
    // Nothing is wrong except that the file ends too early.
    let mut is_torn = true;
    let mut warcinfo = None;
    let mut reader = match SegmentReader::new(input) {
        Ok(reader) => reader,
        Err(ReadError::Io(error)) => return Err(error),
        // A dictionary was being written: nothing follows it.
        Err(ReadError::Damaged { fault: SegmentFault::Truncated, .. }) => return Ok(recovered),
        Err(ReadError::Damaged { .. }) => return Ok(Recovered { damaged: 1, ..recovered }),
    };
    loop {
        match next_examined(&mut reader) {
            Ok(None) => break,
            Ok(Some((record, examined))) => {
                if recovered.records == 0 && damaged == 0 {
                    warcinfo = Some(record.head.id().to_owned());
                } else if let Some(own) = warcinfo.as_deref().filter(|_| damaged > 0)
                    && record.head.get("WARC-Warcinfo-ID") != Some(own)
                {
                    continue;
                }
                let Some(end) = examined.end.offset.filter(|_| examined.end.trailer == Trailer::Exact) else {
                    continue;
                };
                recovered.valid_bytes = end;
                recovered.records += 1;
                recovered.damaged = damaged;
                if let Some((url, entry)) = entry_of(&record, &examined, filename) {
                    index.add(&url, &entry);
                }
            }
            Err(ReadError::Io(error)) => return Err(error),
            Err(ReadError::Damaged { fault, .. }) => {
                damaged += 1;
                is_torn &= fault == SegmentFault::Truncated;
            }
        }
    }
    if recovered.records == 0 && !is_torn {
        // Nothing can be read, perhaps because of one fault in what all frames need.
        recovered.damaged = damaged;
    }
    recovered.index = index.sorted();
    Ok(recovered)
}

/// The index line of a record that is a capture with a frame of its own.
pub fn entry_of(record: &Record, examined: &Examined, filename: &str) -> Option<(Url, IndexEntry)> {
    let end = examined.end.offset.filter(|_| record.offset_in_frame == 0)?;
    entry_at(record, &examined.http, (record.offset, end - record.offset), filename)
}

/// The index line of a capture's record, whose frame has this offset and length.
pub fn entry_at(
    record: &Record,
    http: &HttpHead,
    (offset, frame_bytes): (u64, u64),
    filename: &str,
) -> Option<(Url, IndexEntry)> {
    let mime = match record.head.kind().as_str() {
        "response" => media_type(&http.content_type().unwrap_or_default()).into_owned(),
        "revisit" => REVISIT.to_owned(),
        _ => return None,
    };
    let url = Url::parse(record.head.target_uri()).ok()?;
    let redirect = redirect_target(&url, http.status(), http.headers().get("location"));
    let robots = robots_of(record);
    let entry = IndexEntry {
        timestamp: record.head.timestamp(),
        url: record.head.target_uri().to_owned(),
        mime,
        mime_detected: record.head.get("WARC-Identified-Payload-Type").unwrap_or_default().to_owned(),
        charset: record.head.get(CHARSET).unwrap_or_default().to_owned(),
        robotflags: robots.flags().to_owned(),
        unavailable_after: robots.unavailable_after.map(UnixTime::to_digits).unwrap_or_default(),
        usage: preferences_of(record).to_label(),
        redirect: redirect.as_ref().map(redirect_label).unwrap_or_default().to_owned(),
        truncated: record.head.get("WARC-Truncated").unwrap_or_default().to_owned(),
        record_id: record_label(record.head.id()).to_owned(),
        status: http.status(),
        coding: coding_label(&http.get("Content-Encoding").unwrap_or_default()).into_owned(),
        digest: record.head.get("WARC-Payload-Digest").unwrap_or_default().to_owned(),
        offset,
        frame_bytes,
        filename: filename.to_owned(),
    };
    Some((url, entry))
}

/// What the page of a record tells robots about itself, as far as it was recorded.
pub fn robots_of(record: &Record) -> Directives {
    let mut robots = Directives::default();
    record.head.get(ROBOTS).into_iter().for_each(|said| robots.hear(said));
    robots
}

/// The usage preferences of a record's page, as far as they were recorded.
pub fn preferences_of(record: &Record) -> Preferences {
    record.head.get(USAGE).map(Preferences::of_label).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::SegmentFormat;
    use crate::sample::capture;
    use crate::{Capture, Packing, SegmentWriter, Settings};

    fn segment(format: SegmentFormat, rng_seed: u64, bodies: &[&[u8]]) -> Vec<u8> {
        let packing = Packing { format, is_raw: true, ..Packing::default() };
        let settings = Settings { packing, rng_seed, segment_bytes_max: 1 << 30, ..Settings::default() };
        let mut writer = SegmentWriter::new(settings).expect("a writer");
        writer.begin("own", UnixTime::from_micros(0)).expect("begins");
        for (number, body) in bodies.iter().enumerate() {
            let url = Url::parse(&format!("http://{rng_seed}.test/{number}")).expect("a URL");
            writer.append(&capture(&url, body)).expect("appends");
        }
        writer.take_pending(Vec::new()).bytes
    }

    /// What pages say of themselves is in their records, so a rebuilt index says the same.
    #[test]
    fn what_a_page_says_of_itself_is_found_again() {
        let settings = Settings { segment_bytes_max: 1 << 30, ..Settings::default() };
        let mut writer = SegmentWriter::new(settings).expect("a writer");
        writer.begin("own", UnixTime::from_micros(0)).expect("begins");
        for (said, uses) in [("", ""), ("none", "train-ai=n"), ("noarchive, unavailable_after: 2030-06-25", "search=y")]
        {
            let url = Url::parse(&format!("http://a.test/{}", said.len())).expect("a URL");
            let mut robots = Directives::default();
            robots.hear(said);
            let preferences = Preferences::of_label(uses);
            writer.append(&Capture { robots, preferences, ..capture(&url, b"body") }).expect("appends");
        }
        let (bytes, index) = (writer.take_pending(Vec::new()).bytes, writer.finish());
        let again = recover(Cursor::new(bytes), "own").expect("memory").index;
        assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&index));
        let entries: Vec<IndexEntry> =
            String::from_utf8_lossy(&index).lines().map(|line| IndexEntry::parse(line).expect("a line")).collect();
        let said: Vec<[&str; 3]> =
            entries.iter().map(|it| [&*it.robotflags, &*it.unavailable_after, &*it.usage]).collect();
        assert_eq!(said, [["", "", ""], ["FI", "", "train-ai=n"], ["A", "20300625000000", "search=y"]]);
    }

    /// A page whose body is a segment: if its record is cut or damaged, no record inside it is taken for one of ours.
    #[test]
    fn records_in_the_body_of_a_damaged_record_are_not_ours() {
        for format in [SegmentFormat::WarcZst, SegmentFormat::WarcGz] {
            let forged = segment(format, 666, &[b"forged"]);
            let body = [&forged[..], &[b'x'; 10_000]].concat();
            let before = segment(format, 1, &[b"first"]);
            let own = segment(format, 1, &[b"first", &body, b"last"]);
            let at = memchr::memmem::find(&own, &forged).expect("as it is");
            let urls = |recovered: &Recovered| {
                let index = String::from_utf8(recovered.index.clone()).expect("UTF-8");
                index.lines().map(|line| IndexEntry::parse(line).expect("a line").url).collect::<Vec<String>>()
            };
            let cut = recover(Cursor::new(&own[..at + forged.len() + 100]), "own").expect("memory");
            assert_eq!((cut.valid_bytes, cut.records), (before.len() as u64, 2), "{format:?}");
            assert_eq!(urls(&cut), ["http://1.test/0"]);
            let mut damaged = own.clone();
            damaged[at + forged.len() + 100] ^= 1;
            let kept = recover(Cursor::new(&damaged), "own").expect("memory");
            assert_eq!((kept.valid_bytes, urls(&kept).len()), (own.len() as u64, 2), "{format:?}");
            assert!(urls(&kept).contains(&"http://1.test/2".to_owned()));
            // Only the first record is lost.
            let mut headless = before.clone();
            headless[40] ^= 1;
            let rest = recover(Cursor::new(&headless), "own").expect("memory");
            assert_eq!((rest.valid_bytes, urls(&rest)), (before.len() as u64, vec!["http://1.test/0".to_owned()]));
        }
    }
}
