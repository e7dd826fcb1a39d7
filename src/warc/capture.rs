//! The records of a capture.
//!
//! Decides: a capture becomes a `response` record, a `request` record when the request is known, and a `metadata`
//! record when there are fields for it; the later ones are concurrent to the first (WARC 1.1 section 5.7). The head
//! is true about the stored body (`head`). Bodies in a content coding and short bodies go into their frame
//! uncompressed: they would hardly shrink, and compressing them doubles the whole cost of a page. A payload that is
//! already stored is not stored again: its `revisit` record has the head of this response and refers to the stored
//! payload (WARC 1.1 section 6.7.2). A record has one digest: of its payload if it has a body, otherwise of its
//! block. Both would be two passes of SHA-256 over every page, a seventh of its whole cost; the frame's own checksum
//! shows that the block is whole.
//! Why [`CaptureIds`]: records name the segment they belong to, and a long page's records are made while the segment
//! grows.
//!
//! Invariants: `write` adds all frames of a capture or none; the same names give the same bytes.
//! Limits: a writer keeps its compressor's work space for its whole life (`frame`).
//! Leaves to others: the segment, and the place in it (`segment`).

use std::net::IpAddr;
use std::sync::Arc;

use super::StoreError;
use super::container::{Container, Packing};
use super::dictionary::{Dictionary, Samples};
use super::digest::DigestAlgorithm;
use super::digest::write_label_of;
use super::head::{Undone, write_request_head, write_stored_head};
use super::index::{IndexLine, REVISIT, coding_label, media_type, record_label, redirect_label};
use super::originals::{Original, Originals, PAYLOAD_BYTES_MIN};
use super::record::{RecordId, RecordIds, write_field, write_number};
use ringcrawl_base::Truncated;
use ringcrawl_base::preferences::Preferences;
use ringcrawl_base::time::UnixTime;
use ringcrawl_html::Directives;
use ringcrawl_url::Url;

/// One fetched page, as the hands pass it on.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'a> {
    /// The URL requested.
    pub url: &'a Url,
    /// When the request was sent.
    pub time: UnixTime,
    /// The address that responded.
    pub ip: Option<IpAddr>,
    /// The request as sent; empty: no request record.
    pub request: &'a [u8],
    /// Status line and fields as received.
    pub head_bytes: &'a [u8],
    /// The body as it will be stored.
    pub body: &'a [u8],
    /// The codings removed between the wire and `body`.
    pub undone: Undone,
    /// `body` is in a content coding, as was verified.
    pub is_coded: bool,
    /// The body is incomplete, for this reason.
    pub truncated: Option<Truncated>,
    /// The block of the metadata record: its fields ([`super::record::write_field`]); empty: no metadata record.
    pub metadata: &'a [u8],
    /// HTTP status, for the index.
    pub status: u16,
    /// The Content-Type field's value, for the index; empty when there is none.
    pub mime: &'a str,
    /// The same for Content-Encoding.
    pub content_encoding: &'a str,
    /// The content type detected from its first bytes.
    pub identified_type: Option<&'a str>,
    /// What the page tells robots about itself.
    pub robots: Directives,
    /// The page's usage preferences.
    pub preferences: Preferences,
    /// The charset in which the content was read.
    pub charset: Option<&'a str>,
    /// The redirect target.
    pub redirect: Option<&'a Url>,
    /// Version and cipher suite of TLS, as `TLSv1_3` and by its IANA name.
    pub tls: Option<(&'a str, &'a str)>,
}

/// The identifiers and references for a capture's records.
#[derive(Clone, Debug)]
pub struct CaptureIds {
    /// The warcinfo record of their segment.
    pub(super) warcinfo: RecordId,
    /// Generates their own.
    pub(super) ids: RecordIds,
    /// The dictionary of their segment.
    pub(super) dictionary: Option<Arc<Dictionary>>,
}

/// The records of a capture, complete except for their place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Records {
    /// The warcinfo record of the segment that they name.
    pub(super) warcinfo: RecordId,
    /// Whole frames.
    pub(super) bytes: Vec<u8>,
    /// The line of the index, up to the place.
    pub(super) line: Vec<u8>,
    pub(super) response: Written,
    /// What replaces the response's frame if its payload is already stored; `None` for short payloads.
    pub(super) revisit: Option<RevisitParts>,
}

/// The head of a revisit record without the reference, its block, and its line of the index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RevisitParts {
    head: Vec<u8>,
    block: Vec<u8>,
    line: Vec<u8>,
}

/// What is known of a response's record apart from its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Written {
    /// Of its payload.
    pub(super) digest: String,
    /// Length of its frame.
    pub(super) frame_bytes: u64,
    /// It refers to another record that holds its payload.
    pub(super) is_revisit: bool,
    /// Identifies the stored body: a hash of its digest.
    pub(super) payload: u64,
    /// Length of the stored body.
    pub(super) payload_bytes: usize,
    /// When its request was sent.
    pub(super) time: UnixTime,
    /// Number of records in the capture.
    pub(super) records: u8,
}

/// Writes records.
pub struct CaptureWriter {
    container: Container,
    /// The WARC head of the record being made.
    pub(super) head: Vec<u8>,
    /// The HTTP head, or the whole block of records without a body.
    pub(super) block: Vec<u8>,
    /// The index line of the capture that was written, up to the place.
    pub(super) line: Vec<u8>,
    /// The fields shared by a capture's heads, plus the address field.
    common: Vec<u8>,
    ip: Vec<u8>,
    /// Digest labels being made.
    label: Vec<u8>,
    digest: DigestAlgorithm,
    /// The dictionary needed to read the frames being made.
    dictionary: Option<Arc<Dictionary>>,
    /// Records to train the next dictionary with.
    samples: Option<Samples>,
}

impl CaptureWriter {
    /// A writer with its compressor.
    pub fn new(packing: Packing) -> Result<CaptureWriter, StoreError> {
        let container = Container::new(packing)?;
        let [head, block, line, common, ip, label] = [const { Vec::new() }; 6];
        let digest = packing.digest;
        Ok(CaptureWriter { container, head, block, line, common, ip, label, digest, dictionary: None, samples: None })
    }

    /// Starts collecting samples for a dictionary.
    pub(super) fn sample(&mut self, samples: Samples) {
        self.samples = Some(samples);
    }

    /// The samples, if there are enough.
    pub(super) fn take_samples(&mut self) -> Option<Samples> {
        self.samples.take_if(|samples| samples.are_enough())
    }

    /// From now on, frames belong to a segment that begins with `dictionary`.
    pub(super) fn use_dictionary(&mut self, dictionary: &Option<Arc<Dictionary>>) -> Result<(), StoreError> {
        if self.dictionary.as_ref().map(Arc::as_ptr) != dictionary.as_ref().map(Arc::as_ptr) {
            self.container.use_dictionary(dictionary.as_deref())?;
            self.dictionary.clone_from(dictionary);
        }
        Ok(())
    }

    /// The records of a capture.
    pub fn records(&mut self, capture: &Capture<'_>, mut names: CaptureIds) -> Result<Records, StoreError> {
        self.use_dictionary(&names.dictionary)?;
        let mut bytes = Vec::new();
        let mut own = names.ids.clone();
        let response = self.write(capture, &names.warcinfo, &mut names.ids, None, &mut bytes)?;
        let line = self.line.clone();
        // Only the caller, who knows what else was stored, can tell whether it is needed.
        let revisit = (capture.body.len() >= PAYLOAD_BYTES_MIN).then(|| {
            let id = own.next_id();
            self.set_response_block(capture);
            self.start_response("revisit", &id, capture);
            write_field(&mut self.head, "WARC-Payload-Digest", response.digest.as_bytes());
            self.begin_line(capture, &id, &response.digest, REVISIT);
            RevisitParts { head: self.head.clone(), block: self.block.clone(), line: self.line.clone() }
        });
        Ok(Records { warcinfo: names.warcinfo, bytes, line, response, revisit })
    }

    /// Replaces the response in `records` by a revisit record of `original`; adds them to `out`.
    pub(super) fn write_revisit(
        &mut self,
        records: Records,
        original: &Original,
        out: &mut Vec<u8>,
    ) -> Result<Written, StoreError> {
        let Records { bytes, line, mut response, revisit, .. } = records;
        self.line = line;
        if let Some(RevisitParts { head, block, line }) = revisit {
            (self.head, self.block, self.line) = (head, block, line);
            let request = usize::try_from(response.frame_bytes).unwrap_or(usize::MAX);
            response.frame_bytes = self.put_revisit(original, out)?;
            response.is_revisit = true;
            out.extend_from_slice(bytes.get(request..).unwrap_or_default());
        } else {
            out.extend_from_slice(&bytes);
        }
        Ok(response)
    }

    /// Adds a record with `fields` as its block to `out`.
    pub(super) fn write_info(
        &mut self,
        (id, time): (&RecordId, UnixTime),
        filename: &str,
        fields: &[(&'static str, &str)],
        out: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        self.block.clear();
        for (name, value) in fields {
            write_field(&mut self.block, name, value.as_bytes());
        }
        self.start_head("warcinfo", id, time);
        write_field(&mut self.head, "WARC-Filename", filename.as_bytes());
        write_field(&mut self.head, "Content-Type", b"application/warc-fields");
        self.put_record(&[], Pays::WhenLong, out).map(drop)
    }

    /// Adds the frames of a capture to `out`, or leaves `out` as it was.
    pub(super) fn write(
        &mut self,
        capture: &Capture<'_>,
        warcinfo: &RecordId,
        ids: &mut RecordIds,
        originals: Option<&Originals>,
        out: &mut Vec<u8>,
    ) -> Result<Written, StoreError> {
        let before = out.len();
        let written = self.try_write(capture, warcinfo, ids, originals, out);
        if written.is_err() {
            out.truncate(before);
        }
        written
    }

    fn try_write(
        &mut self,
        capture: &Capture<'_>,
        warcinfo_id: &RecordId,
        ids: &mut RecordIds,
        originals: Option<&Originals>,
        out: &mut Vec<u8>,
    ) -> Result<Written, StoreError> {
        self.label.clear();
        write_label_of(self.digest, capture.body, &mut self.label);
        let digest = String::from_utf8_lossy(&self.label).into_owned();
        let payload = xxhash_rust::xxh3::xxh3_64(&self.label);
        let original = originals.and_then(|originals| originals.of(capture.url, &self.label, capture.body.len()));
        let response_id = ids.next_id();
        self.set_common(warcinfo_id, capture);
        self.set_response_block(capture);
        self.start_response(if original.is_some() { "revisit" } else { "response" }, &response_id, capture);
        write_field(&mut self.head, "WARC-Payload-Digest", digest.as_bytes());
        let frame_bytes = match &original {
            Some(original) => self.put_revisit(original, out)?,
            None if capture.is_coded => self.put_record(capture.body, Pays::Never, out)?,
            None => self.put_record(capture.body, Pays::WhenLong, out)?,
        };
        // With so little other cost, such a page may take a few microseconds more to halve its bytes.
        let pays = if original.is_some() { Pays::Always } else { Pays::WhenLong };

        if !capture.request.is_empty() {
            self.block.clear();
            write_request_head(&mut self.block, capture.request);
            self.start_capture_head("request", &ids.next_id());
            write_field(&mut self.head, "WARC-Concurrent-To", response_id.as_bytes());
            self.head.extend_from_slice(&self.ip);
            write_field(&mut self.head, "Content-Type", b"application/http;msgtype=request");
            self.put_record(&[], pays, out)?;
        }
        if !capture.metadata.is_empty() {
            self.block.clear();
            self.block.extend_from_slice(capture.metadata);
            self.start_capture_head("metadata", &ids.next_id());
            write_field(&mut self.head, "WARC-Concurrent-To", response_id.as_bytes());
            write_field(&mut self.head, "Content-Type", b"application/warc-fields");
            self.put_record(&[], pays, out)?;
        }
        let mime = if original.is_some() { REVISIT.into() } else { media_type(capture.mime) };
        self.begin_line(capture, &response_id, &digest, &mime);
        Ok(Written {
            digest,
            frame_bytes,
            is_revisit: original.is_some(),
            payload,
            payload_bytes: capture.body.len(),
            time: capture.time,
            records: 1 + u8::from(!capture.request.is_empty()) + u8::from(!capture.metadata.is_empty()),
        })
    }

    /// Begins the line of the index.
    fn begin_line(&mut self, capture: &Capture<'_>, id: &RecordId, digest: &str, mime: &str) {
        let id = String::from_utf8_lossy(id.as_bytes());
        let unavailable_after = capture.robots.unavailable_after.map(UnixTime::to_digits).unwrap_or_default();
        let line = IndexLine {
            timestamp: &capture.time.to_digits(),
            url: capture.url.as_str(),
            mime,
            mime_detected: capture.identified_type.unwrap_or_default(),
            charset: capture.charset.unwrap_or_default(),
            coding: if capture.undone.content { "" } else { &coding_label(capture.content_encoding) },
            robotflags: capture.robots.flags(),
            unavailable_after: &unavailable_after,
            usage: &capture.preferences.to_label(),
            redirect: capture.redirect.map(redirect_label).unwrap_or_default(),
            truncated: capture.truncated.map(Truncated::as_str).unwrap_or_default(),
            record_id: record_label(&id),
            status: capture.status,
            digest,
        };
        self.line.clear();
        line.begin(capture.url, &mut self.line);
    }

    fn set_response_block(&mut self, capture: &Capture<'_>) {
        self.block.clear();
        write_stored_head(&mut self.block, capture.head_bytes, capture.body.len(), capture.undone);
    }

    /// All fields except digests, lengths and references.
    fn start_response(&mut self, kind: &str, id: &RecordId, capture: &Capture<'_>) {
        self.start_capture_head(kind, id);
        self.head.extend_from_slice(&self.ip);
        if let Some(truncated) = capture.truncated {
            write_field(&mut self.head, "WARC-Truncated", truncated.as_str().as_bytes());
        }
        let protocol: &[u8] = if capture.head_bytes.starts_with(b"HTTP/1.0") { b"http/1.0" } else { b"http/1.1" };
        write_field(&mut self.head, "WARC-Protocol", protocol);
        if let Some((version, cipher)) = capture.tls {
            write_field(&mut self.head, "WARC-Protocol", tls_protocol(version).as_bytes());
            write_field(&mut self.head, "WARC-Cipher-Suite", cipher.as_bytes());
        }
        if let Some(identified) = capture.identified_type {
            write_field(&mut self.head, "WARC-Identified-Payload-Type", identified.as_bytes());
        }
        if let Some(charset) = capture.charset {
            write_field(&mut self.head, CHARSET, charset.as_bytes());
        }
        if !capture.robots.is_empty() {
            write_field(&mut self.head, ROBOTS, capture.robots.to_label().as_bytes());
        }
        if !capture.preferences.is_empty() {
            write_field(&mut self.head, USAGE, capture.preferences.to_label().as_bytes());
        }
        write_field(&mut self.head, "Content-Type", b"application/http;msgtype=response");
    }

    /// Adds the revisit record from the prepared head and block.
    fn put_revisit(&mut self, original: &Original, out: &mut Vec<u8>) -> Result<u64, StoreError> {
        write_field(&mut self.head, "WARC-Profile", IDENTICAL_PAYLOAD);
        write_field(&mut self.head, "WARC-Refers-To-Target-URI", original.url.as_bytes());
        write_field(&mut self.head, "WARC-Refers-To-Date", original.time.to_iso().as_bytes());
        self.put_record(&[], Pays::Always, out)
    }

    fn set_common(&mut self, warcinfo_id: &RecordId, capture: &Capture<'_>) {
        self.common.clear();
        write_field(&mut self.common, "WARC-Date", capture.time.to_iso().as_bytes());
        write_field(&mut self.common, "WARC-Warcinfo-ID", warcinfo_id.as_bytes());
        write_field(&mut self.common, "WARC-Target-URI", capture.url.as_str().as_bytes());
        self.ip.clear();
        if let Some(ip) = capture.ip {
            write_field(&mut self.ip, "WARC-IP-Address", ip.to_canonical().to_string().as_bytes());
        }
    }

    fn start_capture_head(&mut self, kind: &str, id: &RecordId) {
        self.start(kind, id);
        self.head.extend_from_slice(&self.common);
    }

    pub(super) fn start_head(&mut self, kind: &str, id: &RecordId, time: UnixTime) {
        self.start(kind, id);
        write_field(&mut self.head, "WARC-Date", time.to_iso().as_bytes());
    }

    fn start(&mut self, kind: &str, id: &RecordId) {
        self.head.clear();
        self.head.extend_from_slice(b"WARC/1.1\r\n");
        write_field(&mut self.head, "WARC-Type", kind.as_bytes());
        write_field(&mut self.head, "WARC-Record-ID", id.as_bytes());
    }

    /// Adds the record that `head` starts, with `block` and then `body` as its block, compressed if that `pays`;
    /// returns the frame's length.
    pub(super) fn put_record(&mut self, body: &[u8], pays: Pays, out: &mut Vec<u8>) -> Result<u64, StoreError> {
        if body.is_empty() {
            self.label.clear();
            write_label_of(self.digest, &self.block, &mut self.label);
            write_field(&mut self.head, "WARC-Block-Digest", &self.label);
        }
        write_number(&mut self.head, "Content-Length", (self.block.len() + body.len()) as u64);
        self.head.extend_from_slice(b"\r\n");
        let parts = [&self.head, &self.block, body, b"\r\n\r\n"];
        if let Some(samples) = self.samples.as_mut().filter(|_| pays != Pays::Never) {
            samples.add(&parts);
        }
        // With a dictionary they shrink to a third.
        let is_short = self.dictionary.is_none() && self.head.len() + self.block.len() + body.len() <= SHORT_BYTES_MAX;
        self.container.put(&parts, pays == Pays::Always || pays == Pays::WhenLong && !is_short, out)
    }
}

/// Whether compressing a record pays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pays {
    /// It is already compressed.
    Never,
    /// Unless it is short.
    WhenLong,
    Always,
}

/// `tls/1.3` for `TLSv1_3`.
fn tls_protocol(version: &str) -> String {
    format!("tls/{}", version.trim_start_matches("TLSv").replace('_', "."))
}

/// The field with the charset in which the content was read. WARC does not define one.
pub(super) const CHARSET: &str = "X-Crawl-Charset";
/// The field with what the page tells robots about itself, in the form of an X-Robots-Tag.
pub(super) const ROBOTS: &str = "X-Crawl-Robots";
/// The field with the page's usage preferences, in the form of a Content-Usage.
pub(super) const USAGE: &str = "X-Crawl-Usage";
/// WARC 1.1 section 6.7.2.
const IDENTICAL_PAYLOAD: &[u8] = b"http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
/// The maximum length of a short record, in bytes: requests, metadata, redirects.
pub(super) const SHORT_BYTES_MAX: usize = 2_048;
