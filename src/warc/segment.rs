//! Writing a segment: captures in, bytes at offsets out.
//!
//! Decides: a segment begins with a `warcinfo` record; captures follow in the order in which they are appended, each
//! with a line in the index. Records that were written elsewhere belong in the segment that they name, and in no
//! other.
//! Why bytes out: the hands write through the ring, and the simulator writes to memory.
//!
//! Invariants: `append` adds all frames of a capture or none; offsets count from the segment's first byte, over all
//! buffers handed out; the same calls with the same seed give the same bytes.
//! Limits: `is_full` returns true at `segment_bytes_max`, or when the index in memory reaches 16 MiB; one capture may
//! exceed either. Buffers grow to the largest capture and stay.
//! Leaves to others: what the records of a capture are (`capture`); files and their names, flushing (`shard`); limits
//! on a page (`http`).

use std::sync::Arc;

use super::StoreError;
use super::capture::{Capture, CaptureIds, CaptureWriter, Records, Written};
use super::container::Packing;
use super::dictionary::{Dictionary, Samples, Training};
use super::index::Index;
use super::notes::Note;
use super::originals::Originals;
use super::record::{RecordId, RecordIds};
use ringcrawl_base::time::{Duration, UnixTime};
use ringcrawl_url::Url;

/// What a writer needs to know about the crawl.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// How bodies are packed.
    pub packing: Packing,
    /// A segment that reaches this many bytes is full.
    pub segment_bytes_max: u64,
    /// A segment is closed this long after its first record; `None`: at no age.
    pub segment_age_max: Option<Duration>,
    /// The User-Agent field of requests, for the warcinfo record; empty: omitted.
    pub user_agent: String,
    /// The contact for site owners, for the warcinfo record; empty: omitted.
    pub operator: String,
    /// Settings that differ from the default, as `KEY = VALUE`, for the warcinfo record.
    pub configured: Vec<String>,
    /// Seed of the record identifiers: the crawl's, mixed with the shard's number.
    pub rng_seed: u64,
}

/// The place of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Offset of the response's frame in the segment.
    pub offset: u64,
    /// Bytes of the response's frame.
    pub frame_bytes: u64,
    /// Bytes of all frames of the capture, the response's included; they are contiguous.
    pub capture_bytes: u64,
    /// Identifies the stored body: a hash of its digest.
    pub payload: u64,
    /// Its body was stored before, and is referenced.
    pub is_revisit: bool,
    /// Number of records in the capture.
    pub records: u8,
}

/// Bytes for the hands to write.
#[derive(Debug, PartialEq, Eq)]
pub struct Pending {
    /// Their offset in the segment.
    pub offset: u64,
    /// Whole frames.
    pub bytes: Vec<u8>,
}

/// Writes segments of one shard, one after another.
pub struct SegmentWriter {
    settings: Settings,
    captures: CaptureWriter,
    ids: RecordIds,
    /// Payloads stored before; `None`: every payload is stored.
    originals: Option<Originals>,
    /// The open segment begins with it.
    dictionary: Option<Arc<Dictionary>>,
    /// The next segment begins with it, if it differs.
    next_dictionary: Option<Arc<Dictionary>>,
    /// Whether a dictionary is being trained.
    is_training: bool,
    /// Identifier of the open segment's warcinfo record; `None`: no segment is open.
    warcinfo_id: Option<RecordId>,
    name: String,
    /// Offset in the segment of the first byte in `buffer`.
    buffer_offset: u64,
    buffer: Vec<u8>,
    index: Index,
}

impl SegmentWriter {
    /// A writer with its compressor; no segment is open yet.
    pub fn new(settings: Settings) -> Result<SegmentWriter, StoreError> {
        Ok(SegmentWriter {
            captures: CaptureWriter::new(settings.packing)?,
            dictionary: None,
            next_dictionary: None,
            is_training: false,
            ids: RecordIds::new(settings.rng_seed),
            originals: None,
            settings,
            warcinfo_id: None,
            name: String::new(),
            buffer_offset: 0,
            buffer: Vec::new(),
            index: Index::default(),
        })
    }

    /// The same writer, which does not store payloads again that are among `originals`, its own captures included.
    pub fn knowing(self, originals: Option<Originals>) -> SegmentWriter {
        SegmentWriter { originals, ..self }
    }

    /// Opens the segment whose final file name (without directory and `.open`) is `name`; unwritten data of an
    /// earlier segment is dropped. Names must differ: the identifiers of the segment's records are derived from them.
    pub fn begin(&mut self, name: &str, time: UnixTime) -> Result<(), StoreError> {
        let name_hash = xxhash_rust::xxh3::xxh3_64_with_seed(name.as_bytes(), self.settings.rng_seed);
        self.ids = RecordIds::new(name_hash ^ time.as_micros());
        self.warcinfo_id = None;
        name.clone_into(&mut self.name);
        self.buffer_offset = 0;
        self.buffer.clear();
        self.index.clear();

        if let Some(next) = self.next_dictionary.take() {
            self.dictionary = Some(next);
        }
        self.captures.use_dictionary(&self.dictionary)?;
        if self.settings.packing.has_dictionary && !self.is_training {
            self.captures.sample(Samples::new(self.settings.segment_bytes_max));
        }
        if let Some(dictionary) = &self.dictionary {
            dictionary.write_frame(&mut self.buffer);
        }
        let mut fields = vec![
            ("software", concat!("ringcrawl/", env!("CARGO_PKG_VERSION"))),
            ("format", "WARC File Format 1.1"),
            ("conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"),
            ("robots", "obey"),
        ];
        fields.extend(self.settings.configured.iter().map(|key| ("config", key.as_str())));
        let of_crawl = [("operator", &self.settings.operator), ("http-header-user-agent", &self.settings.user_agent)];
        fields
            .extend(of_crawl.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name, &**value)));
        let id = self.ids.next_id();
        self.captures.write_info((&id, time), name, &fields, &mut self.buffer)?;
        self.warcinfo_id = Some(id);
        Ok(())
    }

    /// A dictionary to train, one at a time; ends with [`SegmentWriter::trained`].
    pub fn next_training(&mut self) -> Option<Training> {
        let samples = self.captures.take_samples()?;
        self.is_training = true;
        Some(Training { samples, level: self.settings.packing.zstd_level, before: self.dictionary.clone() })
    }

    /// The result of a training, for the next segment; `None`: it would not pay.
    pub fn trained(&mut self, dictionary: Option<Dictionary>) {
        self.is_training = false;
        self.next_dictionary = dictionary.map(Arc::new);
    }

    /// Adds the records of a capture.
    pub fn append(&mut self, capture: &Capture<'_>) -> Result<Placed, StoreError> {
        let warcinfo = self.warcinfo_id.ok_or(StoreError::NotOpen)?;
        let offset = self.segment_bytes();
        let originals = self.originals.as_ref();
        let written = self.captures.write(capture, &warcinfo, &mut self.ids, originals, &mut self.buffer)?;
        Ok(self.place(capture.url, offset, &written))
    }

    /// Adds the record of a note learned at `time`; returns its bytes.
    pub fn append_note(&mut self, time: UnixTime, note: &Note<'_>) -> Result<u64, StoreError> {
        let warcinfo = self.warcinfo_id.ok_or(StoreError::NotOpen)?;
        let before = self.segment_bytes();
        let id = self.ids.next_id();
        self.captures.write_note(note, time, (&id, &warcinfo), &mut self.buffer)?;
        Ok(self.segment_bytes() - before)
    }

    /// Names for the records of a capture that is written elsewhere, for the open segment.
    pub fn names(&mut self) -> Result<CaptureIds, StoreError> {
        let warcinfo = self.warcinfo_id.ok_or(StoreError::NotOpen)?;
        Ok(CaptureIds { warcinfo, ids: self.ids.branch(), dictionary: self.dictionary.clone() })
    }

    /// Adds records that were written elsewhere; the segment that they name must be open. `url` is the URL fetched.
    pub fn append_records(&mut self, url: &Url, records: Records) -> Result<Placed, StoreError> {
        if self.warcinfo_id != Some(records.warcinfo) {
            return Err(StoreError::NotOpen);
        }
        let offset = self.segment_bytes();
        let Written { digest, payload_bytes, .. } = &records.response;
        let original = self.originals.as_ref().and_then(|known| known.of(url, digest.as_bytes(), *payload_bytes));
        let written = match original {
            Some(original) => self.captures.write_revisit(records, &original, &mut self.buffer)?,
            None => {
                self.buffer.extend_from_slice(&records.bytes);
                self.captures.line = records.line;
                records.response
            }
        };
        Ok(self.place(url, offset, &written))
    }

    /// Bytes of the open segment so far, handed out or not.
    pub fn segment_bytes(&self) -> u64 {
        self.buffer_offset + self.buffer.len() as u64
    }

    /// Bytes not yet handed out.
    pub fn pending_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Hands out the bytes to write; `spare`, a buffer that the hands are done with, replaces the buffer.
    pub fn take_pending(&mut self, mut spare: Vec<u8>) -> Pending {
        spare.clear();
        let bytes = std::mem::replace(&mut self.buffer, spare);
        let offset = self.buffer_offset;
        self.buffer_offset += bytes.len() as u64;
        Pending { offset, bytes }
    }

    /// Whether the segment should be closed now. A segment without a dictionary is kept short if the next can have
    /// one.
    pub fn is_full(&self) -> bool {
        let has_learned = self.dictionary.is_none() && self.next_dictionary.is_some();
        let is_long = self.segment_bytes() >= self.settings.segment_bytes_max;
        is_long || has_learned || self.index.memory_bytes() >= INDEX_BYTES_MAX
    }

    /// Closes the segment and returns the bytes of its index; pending bytes can still be taken.
    pub fn finish(&mut self) -> Vec<u8> {
        self.warcinfo_id = None;
        let sorted = self.index.sorted();
        self.index.clear();
        sorted
    }

    /// Indexes what was added to the buffer at `offset`.
    fn place(&mut self, url: &Url, offset: u64, written: &Written) -> Placed {
        let Written { ref digest, frame_bytes, is_revisit, payload, payload_bytes, time, records } = *written;
        self.index.add_begun(&self.captures.line, (offset, frame_bytes), &self.name);
        if let Some(originals) = self.originals.as_mut().filter(|_| !is_revisit) {
            originals.note(url, time, digest.as_bytes(), payload_bytes);
        }
        let capture_bytes = self.segment_bytes() - offset;
        Placed { offset, frame_bytes, capture_bytes, payload, is_revisit, records }
    }
}

/// Maximum bytes of index lines in memory before a segment is closed.
const INDEX_BYTES_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::capture;

    fn writer(segment_bytes_max: u64) -> SegmentWriter {
        SegmentWriter::new(Settings { segment_bytes_max, ..Settings::default() }).expect("a writer")
    }

    #[test]
    fn nothing_is_appended_to_no_segment() {
        let url = Url::parse("http://a.example/").expect("a URL");
        let mut writer = writer(1 << 30);
        assert_eq!(writer.append(&capture(&url, b"")), Err(StoreError::NotOpen));
        writer.begin("a.warc.zst", UnixTime::from_micros(0)).expect("begins");
        assert!(writer.append(&capture(&url, b"")).is_ok());
        writer.finish();
        assert_eq!(writer.append(&capture(&url, b"")), Err(StoreError::NotOpen));
    }

    #[test]
    fn offsets_go_on_over_buffers_and_restart_with_a_segment() {
        let url = Url::parse("http://a.example/").expect("a URL");
        let mut writer = writer(2_000);
        for round in 0..3 {
            writer.begin(&format!("{round}.warc.zst"), UnixTime::from_micros(round)).expect("begins");
            let mut at = 0;
            let mut captures = 0;
            while !writer.is_full() {
                let pending = writer.take_pending(Vec::new());
                assert_eq!(pending.offset, at);
                at += pending.bytes.len() as u64;
                let placed = writer.append(&capture(&url, b"page")).expect("appends");
                assert_eq!((placed.offset, placed.frame_bytes), (at, placed.capture_bytes));
                captures += 1;
            }
            assert!(writer.segment_bytes() >= 2_000);
            let index = writer.finish();
            assert_eq!(index.iter().filter(|byte| **byte == b'\n').count(), captures);
        }
    }
}
