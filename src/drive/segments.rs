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
    /// Nothing more is stored.
    is_over: bool,
    /// When the oldest byte not yet queued came.
    since: Option<Instant>,
    /// Segments begun, those of earlier runs included: part of the next one's name.
    begun: u32,
}

impl Segments {
    /// Nothing open yet; `begun` segments of earlier runs are there.
    pub fn new(settings: Settings, shard: u16, begun: u32, disk: Rc<Disk>) -> Result<Segments, StoreError> {
        let writer = SegmentWriter::new(settings)?;
        Ok(Segments { writer, disk, shard, is_open: false, is_over: false, since: None, begun })
    }

    /// Stores a capture; returns the bytes that it takes in the segment, 0 after the end.
    pub fn append(&mut self, now: Instant, time: UnixTime, capture: &Capture<'_>) -> Result<u64, StoreError> {
        if self.is_over {
            return Ok(0);
        }
        if !self.is_open {
            // The count makes all names of a directory differ: two runs may begin within a second, and a clock may
            // be set back. A segment that takes the name of another would take its place.
            let name = format!("rc-{}-{:02}-{:05}{SEGMENT_SUFFIX}", time.to_digits(), self.shard, self.begun);
            self.begun = self.begun.wrapping_add(1);
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

    /// Closes; what fetches under way still bring is not stored: their URLs are not over, and come again.
    pub fn end(&mut self) {
        self.close();
        self.is_over = true;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::disk::OPEN;
    use crate::url::Url;

    fn segments(begun: u32) -> (Segments, Rc<Disk>) {
        let disk = Rc::new(Disk::default());
        let settings = Settings { segment_bytes_max: 1 << 20, ..Settings::default() };
        (Segments::new(settings, 3, begun, Rc::clone(&disk)).expect("a writer"), disk)
    }

    fn append(segments: &mut Segments) -> u64 {
        let (url, time) = (Url::parse("http://a.test/").expect("a URL"), UnixTime::from_micros(1_795_250_432_000_000));
        let capture = Capture {
            url: &url,
            time,
            ip: [192, 0, 2, 1].into(),
            request: b"",
            head_bytes: b"HTTP/1.1 200 OK\r\n\r\n",
            body: b"",
            decoded: None,
            chunked: false,
            truncated: None,
            metadata: &[],
            status: 200,
            mime: "",
        };
        segments.append(Instant::ZERO, time, &capture).expect("appended")
    }

    #[test]
    fn runs_of_one_second_take_different_names() {
        let dir = std::env::temp_dir().join(format!("ringcrawl-segments-{}", std::process::id()));
        let folder = dir.join("segments");
        std::fs::create_dir_all(&folder).expect("a folder");
        for run in 0..5 {
            let begun = super::super::recover::segment_count(&dir).expect("a folder");
            assert_eq!(begun, run);
            let (mut segments, disk) = segments(begun);
            append(&mut segments);
            let Some(DiskOp::SegmentBegin(name)) = disk.take_op() else { panic!("no segment was begun") };
            assert!(!folder.join(&name).exists(), "{name}");
            std::fs::write(folder.join(&name), "").expect("a file");
            std::fs::write(folder.join(format!("{name}{OPEN}")), "").expect("a file");
        }
        std::fs::remove_dir_all(&dir).expect("clean");
    }

    #[test]
    fn nothing_is_begun_after_the_end() {
        let (mut segments, disk) = segments(0);
        assert!(append(&mut segments) > 0);
        segments.end();
        while disk.take_op().is_some() {}
        assert_eq!(append(&mut segments), 0);
        assert!(disk.take_op().is_none());
    }
}
