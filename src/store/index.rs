//! The CDXJ index of a segment: one line a capture, sorted, so that a page is found by binary search.
//!
//! Decides: `SURT TIMESTAMP JSON` with the members url, mime, status, digest, length, offset and filename, all
//! strings, as pywb and cdxj-indexer write them. Sorted by bytes (`LC_ALL=C sort`).
//! Invariants: a line holds no control byte and exactly one LF, at its end.
//! Limits: the lines of one segment are held in memory until it closes; `SegmentWriter::is_full` bounds them.
//! Leaves to others: reading whole segments (`read`); rebuilding an index after a crash (`recover`).

use serde_json::{Map, Value};

use crate::url::{Url, surt};

/// What an index says of one capture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexEntry {
    /// The 14 digits of the capture's time.
    pub timestamp: String,
    /// The page.
    pub url: String,
    /// Media type without parameters, lower-case; `unk` when there is none.
    pub mime: String,
    /// HTTP status; 0 when there is none.
    pub status: u16,
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
    /// Reads one line without its LF; `None` when it is not of this form.
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
            status: text("status").and_then(|status| status.parse().ok()).unwrap_or(0),
            digest: text("digest").unwrap_or_default(),
            offset: text("offset")?.parse().ok()?,
            frame_bytes: text("length")?.parse().ok()?,
            filename: text("filename")?,
        })
    }

    /// Adds the line to `out`, with its LF.
    pub fn write(&self, key: &str, out: &mut Vec<u8>) {
        let members: Map<String, Value> = [
            ("url", self.url.clone()),
            ("mime", self.mime.clone()),
            ("status", if self.status == 0 { "-".to_owned() } else { self.status.to_string() }),
            ("digest", self.digest.clone()),
            ("length", self.frame_bytes.to_string()),
            ("offset", self.offset.to_string()),
            ("filename", self.filename.clone()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), Value::String(value)))
        .collect();
        out.extend_from_slice(format!("{key} {} {}\n", self.timestamp, Value::Object(members)).as_bytes());
    }
}

/// The lines of one segment, in the order of its records until they are sorted.
#[derive(Default)]
pub struct Index {
    lines: Vec<u8>,
}

impl Index {
    /// Adds a capture of `url`; `entry.url` is the same page as its record writes it.
    pub fn add(&mut self, url: &Url, entry: &IndexEntry) {
        entry.write(&surt(url), &mut self.lines);
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
        // LF sorts before everything that a line holds, so a line that starts another comes first, as with sort(1).
        lines.sort_unstable();
        lines.concat()
    }
}

/// The media type of a Content-Type value: without parameters, lower-case, `unk` when there is none.
pub fn media_type(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_printable = essence.bytes().all(|byte| matches!(byte, 0x21..=0x7e));
    if essence.is_empty() || essence.len() > MIME_BYTES_MAX || !is_printable { "unk".to_owned() } else { essence }
}

/// Bytes of the longest media type that is kept: two names of 127 (RFC 6838 section 4.2) and a slash.
const MIME_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        let url = Url::parse("http://www.example.com/\"a\"?b=\\").expect("a URL");
        let entry = IndexEntry {
            timestamp: "19700101000000".to_owned(),
            url: url.as_str().to_owned(),
            mime: media_type("Text/HTML; charset=x"),
            status: 200,
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
        assert_eq!((back.mime.as_str(), back.status, back.offset, back.frame_bytes), ("text/html", 200, 5, 7));
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
