//! Writing a segment: captures in, bytes at offsets out.
//!
//! Decides: a capture becomes a `response` record, a `request` record when the request is known, and a `metadata`
//! record when there is something to say; the later ones are concurrent to the first (WARC 1.1 section 5.7). The
//! stored body is the decoded one where decoding worked, and the head is true about it (`head`).
//! Why bytes out: the hands write through the ring, and the simulator writes to memory.
//! A record has one digest: of its payload where it has a body, of its block where it has none. Both would be two passes
//! of SHA-256 over every page, a seventh of its whole cost; that the block is whole, the frame's own checksum says.
//!
//! Invariants: `append` adds all frames of a capture or none; offsets count from the segment's first byte, over all
//! buffers handed out; the same calls with the same seed give the same bytes.
//! Limits: `is_full` answers yes at `segment_bytes_max`, or when the index in memory reaches 16 MiB; one capture may
//! go past either. Buffers grow to the largest capture and stay.
//! Leaves to others: files and their names, flushing (`shard`); limits on a page (`http`).

use std::net::IpAddr;

use super::StoreError;
use super::digest::Sha256;
use super::frame::FrameWriter;
use super::head::{Undone, write_request_head, write_stored_head};
use super::index::{Index, IndexEntry, media_type};
use super::record::{RecordId, RecordIds, write_field};
use crate::config;
use crate::outcome::Truncated;
use crate::time::UnixTime;
use crate::url::Url;

/// What a writer needs to know of the crawl.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// zstd level, −7 to 19.
    pub zstd_level: i32,
    /// A segment that reaches this many bytes is full.
    pub segment_bytes_max: u64,
    /// The User-Agent field of requests, for the warcinfo record; empty: left out.
    pub user_agent: String,
    /// Whom site owners write to, for the warcinfo record; empty: left out.
    pub operator: String,
    /// Seed of the record identifiers: the crawl's, mixed with the shard's number.
    pub rng_seed: u64,
}

impl Settings {
    /// The settings of a shard under `store`.
    pub fn new(store: &config::Store, agent: &config::Agent, user_agent: &str, rng_seed: u64) -> Settings {
        Settings {
            zstd_level: store.zstd_level,
            segment_bytes_max: store.segment_bytes_max,
            user_agent: user_agent.to_owned(),
            operator: agent.email.clone(),
            rng_seed,
        }
    }
}

/// One fetched page, as the hands have it.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'a> {
    /// What was asked for.
    pub url: &'a Url,
    /// When the request was sent.
    pub time: UnixTime,
    /// Who answered.
    pub ip: Option<IpAddr>,
    /// The request as sent; empty: no request record.
    pub request: &'a [u8],
    /// Status line and fields as received.
    pub head_bytes: &'a [u8],
    /// The body after transfer decoding.
    pub body: &'a [u8],
    /// The body after content decoding, when it was coded and could be decoded.
    pub decoded: Option<&'a [u8]>,
    /// The chunked transfer coding was undone.
    pub chunked: bool,
    /// The body is not all that the server had to say.
    pub truncated: Option<Truncated>,
    /// Fields of the metadata record, in order; none: no metadata record.
    pub metadata: &'a [(&'a str, &'a str)],
    /// HTTP status, for the index.
    pub status: u16,
    /// The Content-Type field's value, for the index; empty when there is none.
    pub mime: &'a str,
}

/// Where a capture lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Offset of the response's frame in the segment.
    pub offset: u64,
    /// Bytes of the response's frame.
    pub frame_bytes: u64,
    /// Bytes of all frames of the capture, the response's included; they lie one after another.
    pub capture_bytes: u64,
    /// What tells the stored body from others: a hash of its digest.
    pub payload: u64,
}

/// Bytes for the hands to write.
#[derive(Debug, PartialEq, Eq)]
pub struct Pending {
    /// Where in the segment they belong.
    pub offset: u64,
    /// Whole frames.
    pub bytes: Vec<u8>,
}

/// Writes segments of one shard, one after another.
pub struct SegmentWriter {
    settings: Settings,
    frames: FrameWriter,
    ids: RecordIds,
    /// Identifier of the open segment's warcinfo record; `None`: no segment is open.
    warcinfo_id: Option<RecordId>,
    name: String,
    /// Offset in the segment of the first byte in `buffer`.
    buffer_offset: u64,
    buffer: Vec<u8>,
    index: Index,
    /// The WARC head of the record being made.
    head: Vec<u8>,
    /// The HTTP head, or the whole block of records without a body.
    block: Vec<u8>,
    /// Digest labels being made.
    label: Vec<u8>,
}

impl SegmentWriter {
    /// A writer with its compressor; no segment is open yet.
    pub fn new(settings: Settings) -> Result<SegmentWriter, StoreError> {
        Ok(SegmentWriter {
            frames: FrameWriter::new(settings.zstd_level)?,
            ids: RecordIds::new(settings.rng_seed),
            settings,
            warcinfo_id: None,
            name: String::new(),
            buffer_offset: 0,
            buffer: Vec::new(),
            index: Index::default(),
            head: Vec::new(),
            block: Vec::new(),
            label: Vec::new(),
        })
    }

    /// Opens the segment whose final file name (without directory and `.open`) is `name`; what an earlier segment
    /// left unwritten is dropped. Names must differ: the identifiers of the segment's records follow from it.
    pub fn begin(&mut self, name: &str, time: UnixTime) -> Result<(), StoreError> {
        let name_hash = xxhash_rust::xxh3::xxh3_64_with_seed(name.as_bytes(), self.settings.rng_seed);
        self.ids = RecordIds::new(name_hash ^ time.as_micros());
        self.warcinfo_id = None;
        name.clone_into(&mut self.name);
        self.buffer_offset = 0;
        self.buffer.clear();
        self.index.clear();

        let block = &mut self.block;
        block.clear();
        write_field(block, "software", concat!("ringcrawl/", env!("CARGO_PKG_VERSION")).as_bytes());
        write_field(block, "format", b"WARC File Format 1.1");
        write_field(
            block,
            "conformsTo",
            b"http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        );
        write_field(block, "robots", b"obey");
        if !self.settings.operator.is_empty() {
            write_field(block, "operator", self.settings.operator.as_bytes());
        }
        if !self.settings.user_agent.is_empty() {
            write_field(block, "http-header-user-agent", self.settings.user_agent.as_bytes());
        }

        let id = self.ids.next_id();
        self.start_head("warcinfo", &id, time);
        write_field(&mut self.head, "WARC-Filename", name.as_bytes());
        write_field(&mut self.head, "Content-Type", b"application/warc-fields");
        self.put_record(&[])?;
        self.warcinfo_id = Some(id);
        Ok(())
    }

    /// Adds the records of a capture.
    pub fn append(&mut self, capture: &Capture<'_>) -> Result<Placed, StoreError> {
        let warcinfo_id = self.warcinfo_id.ok_or(StoreError::NotOpen)?;
        let buffered = self.buffer.len();
        match self.try_append(capture, &warcinfo_id) {
            Ok(placed) => Ok(placed),
            Err(error) => {
                self.buffer.truncate(buffered);
                Err(error)
            }
        }
    }

    /// Bytes that the open segment has so far, handed out or not.
    pub fn segment_bytes(&self) -> u64 {
        self.buffer_offset + self.buffer.len() as u64
    }

    /// Bytes not yet handed out.
    pub fn pending_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Hands out what is to be written; `spare`, a buffer that the hands are done with, takes its place.
    pub fn take_pending(&mut self, mut spare: Vec<u8>) -> Pending {
        spare.clear();
        let bytes = std::mem::replace(&mut self.buffer, spare);
        let offset = self.buffer_offset;
        self.buffer_offset += bytes.len() as u64;
        Pending { offset, bytes }
    }

    /// Whether the segment should be closed now.
    pub fn is_full(&self) -> bool {
        self.segment_bytes() >= self.settings.segment_bytes_max || self.index.memory_bytes() >= INDEX_BYTES_MAX
    }

    /// Closes the segment and gives the bytes of its index; pending bytes stay to be taken.
    pub fn finish(&mut self) -> Vec<u8> {
        self.warcinfo_id = None;
        let sorted = self.index.sorted();
        self.index.clear();
        sorted
    }

    fn try_append(&mut self, capture: &Capture<'_>, warcinfo_id: &RecordId) -> Result<Placed, StoreError> {
        let ip = capture.ip.map(|ip| ip.to_canonical().to_string());
        let stored = capture.decoded.unwrap_or(capture.body);
        let offset = self.segment_bytes();

        let undone = Undone { transfer: capture.chunked, content: capture.decoded.is_some() };
        self.block.clear();
        write_stored_head(&mut self.block, capture.head_bytes, stored.len(), undone);
        let response_id = self.ids.next_id();
        self.start_capture_head("response", &response_id, warcinfo_id, capture);
        if let Some(ip) = &ip {
            write_field(&mut self.head, "WARC-IP-Address", ip.as_bytes());
        }
        if let Some(truncated) = capture.truncated {
            write_field(&mut self.head, "WARC-Truncated", truncated.as_str().as_bytes());
        }
        write_field(&mut self.head, "Content-Type", b"application/http;msgtype=response");
        let mut payload_digest = Sha256::default();
        payload_digest.update(stored);
        self.label.clear();
        payload_digest.write_label(&mut self.label);
        write_field(&mut self.head, "WARC-Payload-Digest", &self.label);
        let digest = String::from_utf8_lossy(&self.label).into_owned();
        let payload = xxhash_rust::xxh3::xxh3_64(&self.label);
        let frame_bytes = self.put_record(stored)?;

        if !capture.request.is_empty() {
            self.block.clear();
            write_request_head(&mut self.block, capture.request);
            let id = self.ids.next_id();
            self.start_capture_head("request", &id, warcinfo_id, capture);
            write_field(&mut self.head, "WARC-Concurrent-To", response_id.as_bytes());
            if let Some(ip) = &ip {
                write_field(&mut self.head, "WARC-IP-Address", ip.as_bytes());
            }
            write_field(&mut self.head, "Content-Type", b"application/http;msgtype=request");
            self.put_record(&[])?;
        }
        if !capture.metadata.is_empty() {
            self.block.clear();
            for (name, value) in capture.metadata {
                write_field(&mut self.block, name, value.as_bytes());
            }
            let id = self.ids.next_id();
            self.start_capture_head("metadata", &id, warcinfo_id, capture);
            write_field(&mut self.head, "WARC-Concurrent-To", response_id.as_bytes());
            write_field(&mut self.head, "Content-Type", b"application/warc-fields");
            self.put_record(&[])?;
        }

        let entry = IndexEntry {
            timestamp: capture.time.to_digits(),
            url: capture.url.as_str().to_owned(),
            mime: media_type(capture.mime),
            status: capture.status,
            digest,
            offset,
            frame_bytes,
            filename: self.name.clone(),
        };
        self.index.add(capture.url, &entry);
        Ok(Placed { offset, frame_bytes, capture_bytes: self.segment_bytes() - offset, payload })
    }

    fn start_capture_head(&mut self, kind: &str, id: &RecordId, warcinfo_id: &RecordId, capture: &Capture<'_>) {
        self.start_head(kind, id, capture.time);
        write_field(&mut self.head, "WARC-Warcinfo-ID", warcinfo_id.as_bytes());
        write_field(&mut self.head, "WARC-Target-URI", capture.url.as_str().as_bytes());
    }

    fn start_head(&mut self, kind: &str, id: &RecordId, time: UnixTime) {
        self.head.clear();
        self.head.extend_from_slice(b"WARC/1.1\r\n");
        write_field(&mut self.head, "WARC-Type", kind.as_bytes());
        write_field(&mut self.head, "WARC-Record-ID", id.as_bytes());
        write_field(&mut self.head, "WARC-Date", time.to_iso().as_bytes());
    }

    /// Compresses the record that `head` starts, with `block` and then `body` as its block; gives the frame's length.
    fn put_record(&mut self, body: &[u8]) -> Result<u64, StoreError> {
        if body.is_empty() {
            let mut digest = Sha256::default();
            digest.update(&self.block);
            self.label.clear();
            digest.write_label(&mut self.label);
            write_field(&mut self.head, "WARC-Block-Digest", &self.label);
        }
        write_field(&mut self.head, "Content-Length", (self.block.len() + body.len()).to_string().as_bytes());
        self.head.extend_from_slice(b"\r\n");
        self.frames.compress(&[&self.head, &self.block, body, b"\r\n\r\n"], &mut self.buffer)
    }
}

/// Bytes of index lines that a segment may have in memory before it is closed.
const INDEX_BYTES_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn capture<'a>(url: &'a Url, body: &'a [u8]) -> Capture<'a> {
        Capture {
            url,
            time: UnixTime::from_micros(1),
            ip: Some(IpAddr::from([127, 0, 0, 1])),
            request: b"",
            head_bytes: b"HTTP/1.1 200 OK\r\n\r\n",
            body,
            decoded: None,
            chunked: false,
            truncated: None,
            metadata: &[],
            status: 200,
            mime: "",
        }
    }

    fn writer(segment_bytes_max: u64) -> SegmentWriter {
        SegmentWriter::new(Settings { zstd_level: 1, segment_bytes_max, ..Settings::default() }).expect("a writer")
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
    fn offsets_go_on_over_buffers_and_start_anew_with_a_segment() {
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
