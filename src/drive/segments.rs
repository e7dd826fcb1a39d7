//! The shard's open segment: records in, whole writes out to the disk's queue.
//!
//! Decides: a segment is begun with the first record and closed when it is full or the crawl ends; bytes leave for
//! the disk when there are many of them or they are a second old.
//! Invariants: records of one segment lie in one file, in the order of their arrival.

use std::rc::Rc;

use super::disk::{Disk, DiskOp, SEGMENT_SUFFIX};
use crate::store::{Capture, Placed, SegmentWriter, Settings, StoreError};
use crate::time::{Duration, Instant, UnixTime};

/// What a shard stores.
pub struct Segments {
    writer: SegmentWriter,
    disk: Rc<Disk>,
    shard: u16,
    is_open: bool,
    is_stopped: bool,
    /// When the oldest byte not yet queued came.
    since: Option<Instant>,
    /// Part of the next one's name.
    next_number: u32,
}

impl Segments {
    /// Nothing open yet; no segment of the shard may have `next_number` or a higher one.
    pub fn new(settings: Settings, shard: u16, next_number: u32, disk: Rc<Disk>) -> Result<Segments, StoreError> {
        Ok(Segments {
            writer: SegmentWriter::new(settings)?,
            disk,
            shard,
            is_open: false,
            is_stopped: false,
            since: None,
            next_number,
        })
    }

    /// Stores a capture; `None` after the end.
    pub fn append(
        &mut self,
        now: Instant,
        time: UnixTime,
        capture: &Capture<'_>,
    ) -> Result<Option<Placed>, StoreError> {
        if self.is_stopped {
            return Ok(None);
        }
        if !self.is_open {
            let name = segment_name(time, self.shard, self.next_number);
            self.next_number += 1;
            self.writer.begin(&name, time)?;
            self.disk.push(DiskOp::SegmentBegin(name));
            self.is_open = true;
        }
        let placed = self.writer.append(capture)?;
        self.since.get_or_insert(now);
        if self.writer.is_full() {
            self.close();
        } else if self.writer.pending_bytes() >= WRITE_BYTES {
            self.flush();
        }
        Ok(Some(placed))
    }

    /// Queues what has waited for a second.
    pub fn flush_old(&mut self, now: Instant) {
        if self.since.is_some_and(|since| now.since(since) >= WRITE_AGE) {
            self.flush();
        }
    }

    /// When [`Segments::flush_old`] has something to do.
    pub fn next_due(&self) -> Option<Instant> {
        self.since.map(|since| since + WRITE_AGE)
    }

    /// Queues everything that is there.
    pub fn flush(&mut self) {
        self.since = None;
        if self.writer.pending_bytes() > 0 {
            let spare = self.disk.take_spare().unwrap_or_else(|| Vec::with_capacity(WRITE_BYTES + WRITE_BYTES / 4));
            let pending = self.writer.take_pending(spare);
            self.disk.push(DiskOp::SegmentWrite(pending.bytes, pending.offset));
        }
    }

    /// Ends the open segment, and the shard's storing: fetches may still be under way.
    pub fn stop(&mut self) {
        self.close();
        self.is_stopped = true;
    }

    /// Whether nothing more may be stored: no segment would be closed, no page be over.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Ends the open segment, if there is one.
    fn close(&mut self) {
        if self.is_open {
            self.flush();
            let index = self.writer.finish();
            self.disk.push(DiskOp::SegmentClose(index));
            self.is_open = false;
        }
    }
}

/// `rc-20261121084032-03-00017.warc.zst`: when, which shard, and a number that the shard uses once.
fn segment_name(time: UnixTime, shard: u16, number: u32) -> String {
    format!("rc-{}-{shard:02}-{number:05}{SEGMENT_SUFFIX}", time.to_digits())
}

/// The number in a segment's or an index's name, open or closed.
pub fn segment_number(name: &str) -> Option<u32> {
    let stem = name.strip_prefix("rc-")?.split_once('.')?.0;
    stem.rsplit_once('-')?.1.parse().ok()
}

/// Large writes: one system call for some dozens of pages.
const WRITE_BYTES: usize = 512 * 1024;
const WRITE_AGE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_back_from_names() {
        let name = segment_name(UnixTime::from_micros(0), 3, 17);
        assert_eq!(name, "rc-19700101000000-03-00017.warc.zst");
        for name in [name.as_str(), "rc-19700101000000-03-00017.cdxj.open", "rc-1-200-17.warc.zst.open"] {
            assert_eq!(segment_number(name), Some(17), "{name}");
        }
        assert_eq!(segment_number("other.warc.zst"), None);
    }
}
