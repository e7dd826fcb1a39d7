//! After a crash: how much of an open segment is whole, and its index.
//!
//! Decides: the file is cut behind its last whole record, one whose frame decodes to its end with a right checksum
//! and which ends in two CRLF. Damage before that (which a torn write does not make) is counted and kept: a cut
//! there would lose acknowledged records. The index is made anew from the records.
//! Invariants: `valid_bytes` is 0 or the end of a frame; what is cut holds no whole record.
//! Leaves to others: cutting and renaming the file (`disk`).

use std::io::{self, Read, Seek};

use super::examine::{Examined, examine};
use super::fault::ReadError;
use super::index::{Index, IndexEntry, media_type};
use super::read::{Record, SegmentReader, Trailer};
use crate::url::Url;

/// What can be kept of a segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// Cut the file to this many bytes.
    pub valid_bytes: u64,
    /// Whole records before that.
    pub records: u64,
    /// Damaged places before that; 1 where the file does not begin as a segment.
    pub damaged: u64,
    /// The lines of the index, sorted.
    pub index: Vec<u8>,
}

/// Reads the segment that will be called `filename`; errors are of reading, never of what was read.
pub fn recover<R: Read + Seek>(input: R, filename: &str) -> io::Result<Recovered> {
    let mut recovered = Recovered::default();
    let mut index = Index::default();
    let mut damaged = 0;
    let mut reader = match SegmentReader::new(input) {
        Ok(reader) => reader,
        Err(ReadError::Io(error)) => return Err(error),
        Err(ReadError::Damaged { .. }) => return Ok(Recovered { damaged: 1, ..recovered }),
    };
    loop {
        let result = reader.next_record().and_then(|record| match record {
            None => Ok(None),
            Some(record) => examine(&mut reader, &record, false).map(|examined| Some((record, examined))),
        });
        match result {
            Ok(None) => break,
            Ok(Some((record, examined))) => {
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
            Err(ReadError::Damaged { .. }) => damaged += 1,
        }
    }
    recovered.index = index.sorted();
    Ok(recovered)
}

/// The index line of a record that is a capture with a frame of its own.
pub fn entry_of(record: &Record, examined: &Examined, filename: &str) -> Option<(Url, IndexEntry)> {
    let is_capture = matches!(record.head.kind().as_str(), "response" | "revisit");
    let end = examined.end.offset.filter(|_| is_capture && record.offset_in_frame == 0)?;
    let url = Url::parse(record.head.target_uri()).ok()?;
    let entry = IndexEntry {
        timestamp: record.head.timestamp(),
        url: record.head.target_uri().to_owned(),
        mime: media_type(&examined.http.get("Content-Type").unwrap_or_default()),
        status: examined.http.status(),
        digest: record.head.get("WARC-Payload-Digest").unwrap_or_default().to_owned(),
        offset: record.offset,
        frame_bytes: end - record.offset,
        filename: filename.to_owned(),
    };
    Some((url, entry))
}
