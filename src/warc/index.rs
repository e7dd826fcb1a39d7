//! The CDXJ index of a segment: one line a capture, sorted, so that a page is found by binary search.
//!
//! Decides: `SURT TIMESTAMP JSON` with the members url, mime, status, digest, length, offset and filename, all
//! strings, as pywb and cdxj-indexer write them; mime-detected, charset, redirect and truncated, if known, as Common
//! Crawl writes them; robotflags, as pywb names column M of a CDX; unavailable-after and usage, which no other index
//! has; coding, if the stored payload is in a content coding; and record-id. Sorted by bytes (`LC_ALL=C sort`).
//! Invariants: a line holds no control byte and exactly one LF, at its end.
//! Limits: the lines of one segment are held in memory until it closes; `SegmentWriter::is_full` bounds them.
//! Leaves to others: reading whole segments (`read`); rebuilding an index after a crash (`recover`).

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::record::write_decimal;
use ringcrawl_html as html;
use ringcrawl_url::{Url, write_surt};

/// The index entry of one capture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexEntry {
    /// The 14 digits of the capture's time.
    pub timestamp: String,
    /// The page.
    pub url: String,
    /// Media type without parameters, lower-case; `unk` when there is none.
    pub mime: String,
    /// The type of the payload by its first bytes; empty when unknown.
    pub mime_detected: String,
    /// The charset in which it was read; empty when it was not.
    pub charset: String,
    /// What the page says of itself: A noarchive, F nofollow, I noindex; empty when none of them.
    pub robotflags: String,
    /// The 14 digits of the time from which the page counts as noindex; empty when it does not say so.
    pub unavailable_after: String,
    /// Its usage preferences, in the form of a Content-Usage; empty when there are none.
    pub usage: String,
    /// The redirect target; empty when there is none.
    pub redirect: String,
    /// WARC-Truncated; empty when it was not cut.
    pub truncated: String,
    /// WARC-Record-ID without its brackets.
    pub record_id: String,
    /// HTTP status; 0 when there is none.
    pub status: u16,
    /// The Content-Encoding of the stored payload, lower-case; empty when there is none.
    pub coding: String,
    /// WARC-Payload-Digest.
    pub digest: String,
    /// Where the record's frame starts in the segment, in bytes.
    pub offset: u64,
    /// Length of the frame in bytes.
    pub frame_bytes: u64,
    /// The segment's file name, without directory.
    pub filename: String,
}

impl IndexEntry {
    /// Reads one line without its LF; `None` when it has another form.
    pub fn parse(line: &str) -> Option<IndexEntry> {
        let (_key, rest) = line.split_once(' ')?;
        let (timestamp, json) = rest.split_once(' ')?;
        let members: Map<String, Value> = serde_json::from_str(json).ok()?;
        let text = |name: &str| match members.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        Some(IndexEntry {
            timestamp: timestamp.to_owned(),
            url: text("url")?,
            mime: text("mime").unwrap_or_else(|| "unk".to_owned()),
            mime_detected: text("mime-detected").unwrap_or_default(),
            charset: text("charset").unwrap_or_default(),
            robotflags: text("robotflags").unwrap_or_default(),
            unavailable_after: text("unavailable-after").unwrap_or_default(),
            usage: text("usage").unwrap_or_default(),
            redirect: text("redirect").unwrap_or_default(),
            truncated: text("truncated").unwrap_or_default(),
            record_id: text("record-id").unwrap_or_default(),
            status: text("status").and_then(|status| status.parse().ok()).unwrap_or(0),
            coding: text("coding").unwrap_or_default(),
            digest: text("digest").unwrap_or_default(),
            offset: text("offset")?.parse().ok()?,
            frame_bytes: text("length")?.parse().ok()?,
            filename: text("filename")?,
        })
    }

    /// Whether the record refers to another one that holds its payload.
    pub fn is_revisit(&self) -> bool {
        self.mime == REVISIT
    }

    /// The line that is written for it.
    fn line(&self) -> IndexLine<'_> {
        IndexLine {
            timestamp: &self.timestamp,
            url: &self.url,
            mime: &self.mime,
            mime_detected: &self.mime_detected,
            charset: &self.charset,
            coding: &self.coding,
            robotflags: &self.robotflags,
            unavailable_after: &self.unavailable_after,
            usage: &self.usage,
            redirect: &self.redirect,
            truncated: &self.truncated,
            record_id: &self.record_id,
            status: self.status,
            digest: &self.digest,
        }
    }
}

/// A capture's line without the place; fields as in [`IndexEntry`].
#[derive(Clone, Copy, Default, Debug)]
pub struct IndexLine<'a> {
    pub(super) timestamp: &'a str,
    pub(super) url: &'a str,
    pub(super) mime: &'a str,
    pub(super) mime_detected: &'a str,
    pub(super) charset: &'a str,
    pub(super) coding: &'a str,
    pub(super) robotflags: &'a str,
    pub(super) unavailable_after: &'a str,
    pub(super) usage: &'a str,
    pub(super) redirect: &'a str,
    pub(super) truncated: &'a str,
    pub(super) record_id: &'a str,
    pub(super) status: u16,
    pub(super) digest: &'a str,
}

impl IndexLine<'_> {
    /// Adds the line of a capture of `url` to `out`, up to the place, which [`end_line`] adds.
    pub fn begin(&self, url: &Url, out: &mut Vec<u8>) {
        write_surt(url, out);
        for text in [" ", self.timestamp, " {\"url\":"] {
            out.extend_from_slice(text.as_bytes());
        }
        write_string(self.url, out);
        write_member("mime", self.mime, out);
        for (name, value) in [
            ("mime-detected", self.mime_detected),
            ("charset", self.charset),
            ("coding", self.coding),
            ("robotflags", self.robotflags),
            ("unavailable-after", self.unavailable_after),
            ("usage", self.usage),
            ("redirect", self.redirect),
            ("truncated", self.truncated),
            ("record-id", self.record_id),
        ] {
            if !value.is_empty() {
                write_member(name, value, out);
            }
        }
        match self.status {
            0 => write_member("status", "-", out),
            status => write_number("status", status.into(), out),
        }
        write_member("digest", self.digest, out);
    }
}

/// Ends a line with the place of its record, and its LF.
fn end_line((offset, frame_bytes): (u64, u64), filename: &str, out: &mut Vec<u8>) {
    write_number("length", frame_bytes, out);
    write_number("offset", offset, out);
    write_member("filename", filename, out);
    out.extend_from_slice(b"}\n");
}

fn write_member(name: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    write_string(value, out);
}

/// A number in quotes, like all values.
fn write_number(name: &str, value: u64, out: &mut Vec<u8>) {
    for text in [",\"", name, "\":\""] {
        out.extend_from_slice(text.as_bytes());
    }
    write_decimal(out, value);
    out.push(b'"');
}

/// RFC 8259 section 7.
fn write_string(text: &str, out: &mut Vec<u8>) {
    let is_special = |byte: u8| matches!(byte, b'"' | b'\\' | 0..=0x1f | 0x7f);
    out.push(b'"');
    // This visits every byte, which vectorizes.
    if text.bytes().fold(false, |any, byte| any | is_special(byte)) {
        for byte in text.bytes() {
            match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                _ if is_special(byte) => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => out.push(byte),
            }
        }
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
}

/// The lines of one segment, in the order of its records until they are sorted.
#[derive(Default)]
pub struct Index {
    lines: Vec<u8>,
}

impl Index {
    /// Adds a capture of `url`; `entry.url` is the same page as its record writes it.
    pub fn add(&mut self, url: &Url, entry: &IndexEntry) {
        entry.line().begin(url, &mut self.lines);
        end_line((entry.offset, entry.frame_bytes), &entry.filename, &mut self.lines);
    }

    /// Adds a line that was begun ([`IndexLine::begin`]), of a record with this offset and length in `filename`.
    pub fn add_begun(&mut self, begun: &[u8], place: (u64, u64), filename: &str) {
        self.lines.extend_from_slice(begun);
        end_line(place, filename, &mut self.lines);
    }

    /// Bytes of memory that the lines take.
    pub fn memory_bytes(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Forgets all lines, keeps their memory.
    pub fn clear(&mut self) {
        self.lines.clear();
    }

    /// All lines, sorted by bytes.
    pub fn sorted(&self) -> Vec<u8> {
        let mut lines = self.lines.split_inclusive(|byte| *byte == b'\n').collect::<Vec<&[u8]>>();
        // LF sorts before every byte of a line, so a line that is a prefix of another comes first, as with sort(1).
        lines.sort_unstable();
        lines.concat()
    }
}

/// The codings in a Content-Encoding value, lower-case, in order; empty when it names none.
pub fn coding_label(content_encoding: &str) -> Cow<'_, str> {
    // The usual values.
    if matches!(content_encoding, "" | "gzip" | "br" | "zstd" | "deflate") {
        return content_encoding.into();
    }
    let tokens = content_encoding.split(',').map(|token| token.trim().to_ascii_lowercase());
    let codings: Vec<String> = tokens.filter(|token| !matches!(token.as_str(), "" | "identity" | "none")).collect();
    let label = codings.join(", ");
    let is_printable = label.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
    if label.len() > MIME_BYTES_MAX || !is_printable { "unk".into() } else { label.into() }
}

/// The media type of a Content-Type value: the one that counts if there are several, without parameters, lower-case,
/// `unk` when there is none.
pub fn media_type(content_type: &str) -> Cow<'_, str> {
    let essence = std::str::from_utf8(html::essence(content_type.as_bytes())).unwrap_or_default();
    let is_printable = essence.bytes().all(|byte| matches!(byte, 0x21..=0x7e));
    if essence.is_empty() || essence.len() > MIME_BYTES_MAX || !is_printable {
        "unk".into()
    } else if essence.bytes().any(|byte| byte.is_ascii_uppercase()) {
        essence.to_ascii_lowercase().into()
    } else {
        essence.into()
    }
}

/// A redirect's target; empty when it is too long for a line.
pub fn redirect_label(target: &Url) -> &str {
    if target.as_str().len() > REDIRECT_BYTES_MAX { "" } else { target.as_str() }
}

/// A record's identifier without its brackets.
pub fn record_label(id: &str) -> &str {
    id.trim_start_matches('<').trim_end_matches('>')
}

/// Replaces the media type of a revisit record, as in every CDX: its payload is elsewhere.
pub const REVISIT: &str = "warc/revisit";
/// Bytes of the longest media type that is kept: two names of 127 (RFC 6838 section 4.2) and a slash.
const MIME_BYTES_MAX: usize = 255;
/// Bytes of the longest target that is kept.
const REDIRECT_BYTES_MAX: usize = 2_048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        let url = Url::parse("http://www.example.com/\"a\"?b=\\").expect("a URL");
        let entry = IndexEntry {
            timestamp: "19700101000000".to_owned(),
            url: url.as_str().to_owned(),
            mime: media_type("Text/HTML; charset=x").into_owned(),
            mime_detected: "text/html".to_owned(),
            charset: "windows-1252".to_owned(),
            robotflags: "AI".to_owned(),
            unavailable_after: "20300625150000".to_owned(),
            usage: "search=y, train-ai=n".to_owned(),
            redirect: redirect_label(&url).to_owned(),
            truncated: "length".to_owned(),
            record_id: record_label("<urn:uuid:1>").to_owned(),
            status: 200,
            coding: coding_label(" GZIP ,identity, br").into_owned(),
            digest: "sha256:ABC".to_owned(),
            offset: 5,
            frame_bytes: 7,
            filename: "s.warc.zst".to_owned(),
        };
        let mut index = Index::default();
        index.add(&url, &entry);
        let line = String::from_utf8(index.sorted()).expect("UTF-8");
        assert!(line.starts_with("com,example)/\"a\"?b=\\ 19700101000000 {\"url\":"), "{line}");
        let back = IndexEntry::parse(line.trim_end()).expect("a line");
        assert_eq!(back.url, url.as_str());
        assert_eq!(back, entry);
        assert_eq!((back.mime.as_str(), back.coding.as_str()), ("text/html", "gzip, br"));
    }

    /// A line equals what a JSON library writes for the same data, except for the order.
    #[test]
    fn members_are_json() {
        let odd: String = (0..=0x100).filter_map(char::from_u32).collect();
        for text in ["", "plain", &odd] {
            let mut out = Vec::new();
            write_string(text, &mut out);
            assert_eq!(serde_json::from_slice::<String>(&out).expect("JSON"), text);
            assert!(out.iter().all(|byte| !byte.is_ascii_control()));
        }
    }

    #[test]
    fn sorted_by_bytes() {
        let mut index = Index::default();
        for text in ["http://b.example/", "http://a.example/x", "http://a.example/", "http://a.example/X?q"] {
            index.add(&Url::parse(text).expect("a URL"), &IndexEntry::default());
        }
        let sorted = String::from_utf8(index.sorted()).expect("UTF-8");
        let lines = sorted.lines().collect::<Vec<&str>>();
        let mut again = lines.clone();
        again.sort();
        assert_eq!(lines, again);
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for line in ["", "a", "a b", "a b {}", "a b []", "a b {\"url\":\"x\",\"offset\":\"-1\"}", "a b {\"url\""] {
            assert_eq!(IndexEntry::parse(line), None, "{line}");
        }
        assert_eq!(media_type(" ; x"), "unk");
        assert_eq!(media_type("a b"), "unk");
        assert_eq!(media_type("ü/x"), "unk");
    }
}
