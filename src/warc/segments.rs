//! One shard's segments: captures in, operations on files out.
//!
//! Decides: a segment is begun with the first record and closed when it is full, when that record is
//! `store.segment_age_max` old, or when the crawl ends. Bytes go to the disk when there are many of them or they are
//! a second old. It stays open for the captures that are written elsewhere and have its names.
//! Invariants: the records of one segment are in one file, in order of arrival; a number is used once.
//! Leaves to others: the files (`disk`).

use std::collections::VecDeque;

use super::container::suffix;
use super::dictionary::{Dictionary, Training};
use super::{Capture, CaptureIds, Note, Originals, Placed, Records, SegmentWriter, Settings, StoreError};
use ringcrawl_base::time::{Duration, Instant, UnixTime};
use ringcrawl_url::Url;

/// Operations on the open segment, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SegmentOp {
    /// Begin one; its name without `.open`.
    Begin(String),
    /// Write at an offset.
    Write {
        /// Whole frames.
        bytes: Vec<u8>,
        /// Where.
        offset: u64,
    },
    /// It is complete, and this is its index: sync, write the index, rename.
    Close {
        /// The index's lines.
        index: Vec<u8>,
    },
}

/// The segments of one shard.
pub struct Segments {
    writer: SegmentWriter,
    ops: VecDeque<SegmentOp>,
    shard: u16,
    /// Suffix of segment names.
    suffix: &'static str,
    is_open: bool,
    /// When the oldest byte not yet handed out arrived.
    since: Option<Instant>,
    /// Maximum age of the open segment.
    age_max: Option<Duration>,
    /// When it reaches that age, counted from its first record.
    ends: Option<Instant>,
    /// Captures that are written elsewhere and have names of the open segment.
    named: u32,
    /// The open segment is full or old enough, and is closed once nothing has its names any more.
    is_closing: bool,
    /// Part of the next one's name.
    next_number: u32,
    /// A buffer from a finished write.
    spare: Option<Vec<u8>>,
}

impl Segments {
    /// Nothing open yet; no segment of the shard may have `next_number` or a higher one.
    pub fn new(
        settings: Settings,
        shard: u16,
        next_number: u32,
        originals: Option<Originals>,
    ) -> Result<Segments, StoreError> {
        Ok(Segments {
            suffix: suffix(settings.packing.format),
            age_max: settings.segment_age_max,
            ends: None,
            named: 0,
            is_closing: false,
            writer: SegmentWriter::new(settings)?.knowing(originals),
            ops: VecDeque::new(),
            shard,
            is_open: false,
            since: None,
            next_number,
            spare: None,
        })
    }

    /// Stores a capture.
    pub fn append(&mut self, now: Instant, time: UnixTime, capture: &Capture<'_>) -> Result<Placed, StoreError> {
        self.open(time)?;
        let placed = self.writer.append(capture)?;
        self.appended(now);
        Ok(placed)
    }

    /// Stores a note learned at `time`; returns its bytes.
    pub fn append_note(&mut self, now: Instant, time: UnixTime, note: &Note<'_>) -> Result<u64, StoreError> {
        self.open(time)?;
        let bytes = self.writer.append_note(time, note)?;
        self.appended(now);
        Ok(bytes)
    }

    /// Names for the records of a capture that is written elsewhere. The open segment is not closed before
    /// [`Segments::end_names`].
    pub fn names(&mut self, time: UnixTime) -> Result<CaptureIds, StoreError> {
        self.open(time)?;
        let names = self.writer.names()?;
        self.named += 1;
        Ok(names)
    }

    /// Stores records that were written elsewhere, of the fetch of `url`.
    pub fn append_records(&mut self, now: Instant, url: &Url, records: Records) -> Result<Placed, StoreError> {
        let placed = self.writer.append_records(url, records)?;
        self.appended(now);
        Ok(placed)
    }

    /// Records that got names were stored, or are not stored.
    pub fn end_names(&mut self) {
        assert!(self.named > 0, "names ended that were not given");
        self.named -= 1;
        self.close_if_unnamed();
    }

    /// Whether the open segment should give no further names, so that it can be closed.
    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    fn open(&mut self, time: UnixTime) -> Result<(), StoreError> {
        if !self.is_open {
            let name = segment_name(time, self.shard, self.next_number, self.suffix);
            self.next_number = self.next_number.saturating_add(1);
            self.writer.begin(&name, time)?;
            self.ops.push_back(SegmentOp::Begin(name));
            self.is_open = true;
        }
        Ok(())
    }

    fn appended(&mut self, now: Instant) {
        self.since.get_or_insert(now);
        self.ends = self.ends.or_else(|| Some(now + self.age_max?));
        self.is_closing |= self.writer.is_full();
        self.close_if_unnamed();
        if self.writer.pending_bytes() >= WRITE_BYTES {
            self.flush();
        }
    }

    fn close_if_unnamed(&mut self) {
        if self.is_closing && self.named == 0 {
            self.close();
        }
    }

    /// A dictionary to train; ends with [`Segments::trained`].
    pub fn next_training(&mut self) -> Option<Training> {
        self.writer.next_training()
    }

    /// A training ended; `None`: the dictionary would not pay.
    pub fn trained(&mut self, dictionary: Option<Dictionary>) {
        self.writer.trained(dictionary);
    }

    /// Later segments have at least this number.
    pub fn begin_at_least(&mut self, number: u32) {
        self.next_number = self.next_number.max(number);
    }

    /// The number of the segment that holds the last capture.
    pub fn number(&self) -> u32 {
        self.next_number.saturating_sub(1)
    }

    /// The next operation.
    pub fn next_op(&mut self) -> Option<SegmentOp> {
        self.ops.pop_front()
    }

    /// Closes a segment that is too old, and hands out bytes that have waited for a second.
    pub fn flush_old(&mut self, now: Instant) {
        if self.ends.take_if(|ends| *ends <= now).is_some() {
            self.is_closing = true;
            self.close_if_unnamed();
        }
        if self.next_due().is_some_and(|due| due <= now) {
            self.flush();
        }
    }

    /// When [`Segments::flush_old`] next has work.
    pub fn next_due(&self) -> Option<Instant> {
        self.since.map(|since| since + WRITE_AGE).into_iter().chain(self.ends).min()
    }

    /// Hands out everything that is there.
    pub fn flush(&mut self) {
        self.since = None;
        if self.writer.pending_bytes() > 0 {
            let spare = self.spare.take().unwrap_or_else(|| Vec::with_capacity(WRITE_BYTES + WRITE_BYTES / 4));
            let pending = self.writer.take_pending(spare);
            self.ops.push_back(SegmentOp::Write { bytes: pending.bytes, offset: pending.offset });
        }
    }

    /// Ends the open segment, if there is one.
    pub fn close(&mut self) {
        if self.is_open {
            self.flush();
            let index = self.writer.finish();
            self.ops.push_back(SegmentOp::Close { index });
            (self.is_open, self.is_closing, self.ends) = (false, false, None);
        }
    }

    /// Takes a write's buffer back: memory that was already touched is cheaper than fresh memory.
    pub fn reuse(&mut self, spare: Vec<u8>) {
        self.spare = (spare.capacity() <= SPARE_BYTES_MAX).then_some(spare);
    }
}

impl std::fmt::Debug for Segments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segments")
            .field("shard", &self.shard)
            .field("next_number", &self.next_number)
            .finish_non_exhaustive()
    }
}

/// `rc-20261121084032-03-00017.warc.zst`: time, shard, and a number that the shard uses once.
fn segment_name(time: UnixTime, shard: u16, number: u32, suffix: &str) -> String {
    format!("rc-{}-{shard:02}-{number:05}{suffix}", time.to_digits())
}

/// A segment's name without the suffix of its format; `None`: we do not write such names.
pub fn segment_stem(name: &str) -> Option<&str> {
    SEGMENT_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix))
}

/// The same for any WARC file.
pub fn warc_stem(name: &str) -> Option<&str> {
    segment_stem(name).or_else(|| name.strip_suffix(".warc"))
}

/// The number in a segment's or an index's name, open or closed.
pub fn segment_number(name: &str) -> Option<u32> {
    let stem = name.strip_prefix("rc-")?.split_once('.')?.0;
    stem.rsplit_once('-')?.1.parse().ok().filter(|number| *number < u32::MAX)
}

/// Large writes: one system call for some dozens of pages.
const WRITE_BYTES: usize = 512 * 1024;
const WRITE_AGE: Duration = Duration::from_secs(1);
/// A larger buffer held one huge page; it is freed.
const SPARE_BYTES_MAX: usize = 2 << 20;

/// Suffixes of segment names.
const SEGMENT_SUFFIXES: [&str; 2] = [".warc.zst", ".warc.gz"];
/// Suffix of an index name.
pub const INDEX_SUFFIX: &str = ".cdxj";
/// Suffix added to a name while the file is written.
pub const OPEN: &str = ".open";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    /// Operations at the times at which they are handed out, for failures noted at some seconds.
    fn ops(age_max: Option<Duration>, noted: &[u64]) -> Vec<(u64, &'static str)> {
        let settings = Settings { segment_bytes_max: 1 << 30, segment_age_max: age_max, ..Settings::default() };
        let mut segments = Segments::new(settings, 0, 0, None).expect("a writer");
        let mut ops = Vec::new();
        let url = Url::parse("http://a.test/").expect("a URL");
        for second in 0..100 {
            let now = Instant::ZERO + Duration::from_secs(second);
            assert!(segments.next_due().is_none_or(|due| due >= now), "nothing is late");
            let is_due = segments.next_due() == Some(now);
            segments.flush_old(now);
            assert!(segments.next_due().is_none_or(|due| due > now) && segments.ops.is_empty() != is_due);
            if noted.contains(&second) {
                let time = UnixTime::from_micros(second * 1_000_000);
                let note = Note::Failure(Failure { url: &url, cause: "dns-timeout", tries: 1, via: None, hops: None });
                segments.append_note(now, time, &note).expect("appends");
            }
            while let Some(op) = segments.next_op() {
                let what = match op {
                    SegmentOp::Begin(_) => "begin",
                    SegmentOp::Write { .. } => "write",
                    SegmentOp::Close { .. } => "close",
                };
                ops.push((second, what));
            }
        }
        assert_eq!(segments.next_due(), None);
        ops
    }

    #[test]
    fn a_segment_is_closed_when_its_first_record_is_old() {
        let age = Some(Duration::from_secs(10));
        let one = [(3, "begin"), (4, "write"), (13, "close")];
        assert_eq!(ops(age, &[3]), one);
        assert_eq!(ops(None, &[3]), one[..2]);
        // Later records do not make it younger; bytes that came just before are written with the end; the next one's
        // age counts from its own first record.
        assert_eq!(
            ops(age, &[3, 8, 12, 50]),
            [
                (3, "begin"),
                (4, "write"),
                (9, "write"),
                (13, "write"),
                (13, "close"),
                (50, "begin"),
                (51, "write"),
                (60, "close")
            ]
        );
        // A segment begun by a mere request for names has no record, and so no age.
        let settings = Settings { segment_age_max: age, ..Settings::default() };
        let mut segments = Segments::new(settings, 0, 0, None).expect("a writer");
        segments.names(UnixTime::from_micros(0)).expect("names");
        assert_eq!(segments.next_due(), None);
    }

    #[test]
    fn numbers_are_read_back_from_names() {
        let name = segment_name(UnixTime::from_micros(0), 3, 17, ".warc.zst");
        assert_eq!(
            (segment_stem(&name), segment_stem("a.warc.gz"), segment_stem("a.warc")),
            (name.strip_suffix(".warc.zst"), Some("a"), None)
        );
        assert_eq!(name, "rc-19700101000000-03-00017.warc.zst");
        for name in [name.as_str(), "rc-19700101000000-03-00017.cdxj.open", "rc-1-200-17.warc.zst.open"] {
            assert_eq!(segment_number(name), Some(17), "{name}");
        }
        assert_eq!(segment_number("other.warc.zst"), None);
    }
}
