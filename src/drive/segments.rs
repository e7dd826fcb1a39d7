//! The shard's open segment: records in, whole writes out to the disk's queue.
//!
//! Decides: a segment is begun with the first record and closed when it is full or the crawl ends; bytes leave for
//! the disk when there are many of them or they are a second old.
//! Invariants: records of one segment lie in one file, in the order of their arrival.

use std::rc::Rc;

use super::disk::{Disk, DiskOp, SEGMENT_SUFFIX};
use crate::store::{Capture, SegmentWriter, Settings, StoreError};
use crate::time::{Duration, Instant, UnixTime};

/// What a shard stores.
pub struct Segments {
    writer: SegmentWriter,
    disk: Rc<Disk>,
    shard: u16,
    is_open: bool,
    /// When the oldest byte not yet queued came.
    since: Option<Instant>,
    /// Names begun in this run: part of the next one's name.
    begun: u32,
}

impl Segments {
    /// Nothing open yet.
    pub fn new(settings: Settings, shard: u16, disk: Rc<Disk>) -> Result<Segments, StoreError> {
        Ok(Segments { writer: SegmentWriter::new(settings)?, disk, shard, is_open: false, since: None, begun: 0 })
    }

    /// Stores a capture; returns the bytes that it takes in the segment.
    pub fn append(&mut self, now: Instant, time: UnixTime, capture: &Capture<'_>) -> Result<u64, StoreError> {
        if !self.is_open {
            // The time makes names of different runs differ, the count those of one run.
            let name = format!("rc-{}-{:02}-{:05}{SEGMENT_SUFFIX}", time.to_digits(), self.shard, self.begun);
            self.begun += 1;
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
        Ok(placed.capture_bytes)
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
            let pending = self.writer.take_pending(Vec::with_capacity(WRITE_BYTES + WRITE_BYTES / 4));
            self.disk.push(DiskOp::SegmentWrite(pending.bytes, pending.offset));
        }
    }

    /// Ends the open segment, if there is one.
    pub fn close(&mut self) {
        if self.is_open {
            self.flush();
            let index = self.writer.finish();
            self.disk.push(DiskOp::SegmentClose(index));
            self.is_open = false;
        }
    }
}

/// Large writes: one system call for some dozens of pages.
const WRITE_BYTES: usize = 512 * 1024;
const WRITE_AGE: Duration = Duration::from_secs(1);
