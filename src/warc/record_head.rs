//! The head of a WARC record: version line and named fields.
//!
//! Decides: reads WARC 0.17 to 1.1 as found in the wild: lines end in LF or CRLF, folded lines are joined by a space
//! (WARC 1.1 section 4, "LWS"), the first of several fields with a name counts, names compare without case. A line
//! that is not a field is skipped and noted, but does not invalidate the record.
//! Limits: heads of at most 1 MiB (`HEAD_BYTES_MAX`).
//! Leaves to others: finding records (`read`), checking them (`verify`).

use super::fault::SegmentFault;
use ringcrawl_http::{self as http, Headers};

/// Bytes of the longest record head that is read.
pub const HEAD_BYTES_MAX: usize = 1 << 20;

/// A record's head.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordHead {
    version: String,
    fields: Vec<(String, String)>,
    has_odd_line: bool,
}

impl RecordHead {
    /// Reads a head: all lines, with or without the empty one at the end.
    pub fn parse(bytes: &[u8]) -> Result<RecordHead, SegmentFault> {
        let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let version = lines.next().unwrap_or_default();
        let version = version.trim_ascii_end();
        let number = version.strip_prefix(b"WARC/").ok_or(SegmentFault::NoRecord)?;
        if number.is_empty() || !number.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') {
            return Err(SegmentFault::NoRecord);
        }
        let version = String::from_utf8_lossy(version).into_owned();
        let mut head = RecordHead { version, ..RecordHead::default() };
        for line in lines.take_while(|line| !line.is_empty()) {
            let text = String::from_utf8_lossy(line);
            if line.starts_with(b" ") || line.starts_with(b"\t") {
                match head.fields.last_mut() {
                    Some((_, value)) => {
                        if !value.is_empty() {
                            value.push(' ');
                        }
                        value.push_str(text.trim());
                    }
                    None => head.has_odd_line = true,
                }
            } else if let Some((name, value)) = text.split_once(':') {
                head.fields.push((name.trim().to_owned(), value.trim().to_owned()));
            } else {
                head.has_odd_line = true;
            }
        }
        Ok(head)
    }

    /// `WARC/1.1`
    pub fn version(&self) -> &str {
        &self.version
    }

    /// All fields in order.
    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// Whether some lines are not fields.
    pub fn has_odd_line(&self) -> bool {
        self.has_odd_line
    }

    /// The first field of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// WARC-Type, lower-case; empty when missing.
    pub fn kind(&self) -> String {
        self.get("WARC-Type").unwrap_or_default().to_ascii_lowercase()
    }

    /// WARC-Record-ID; empty when missing.
    pub fn id(&self) -> &str {
        self.get("WARC-Record-ID").unwrap_or_default()
    }

    /// WARC-Target-URI, without the `<>` that wget 1.19 puts around it; empty when missing.
    pub fn target_uri(&self) -> &str {
        let uri = self.get("WARC-Target-URI").unwrap_or_default();
        uri.strip_prefix('<').and_then(|uri| uri.strip_suffix('>')).unwrap_or(uri)
    }

    /// The 14 digits of WARC-Date; fewer when it has fewer.
    pub fn timestamp(&self) -> String {
        self.get("WARC-Date").unwrap_or_default().chars().filter(char::is_ascii_digit).take(14).collect()
    }

    /// Bytes of the block; `None`: the field is missing or not a number.
    pub fn block_bytes(&self) -> Option<u64> {
        let value = self.get("Content-Length")?;
        value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok()).flatten()
    }

    /// Whether the block starts with an HTTP head: decided by the scheme of its URL (WARC 1.1 section 6.3.2), as in
    /// warcio. The Content-Type is unreliable: browser extensions write `application/http` for pages of their own
    /// schemes, and others the page's type or none.
    pub fn is_http(&self) -> bool {
        let scheme = self.target_uri().split(':').next().unwrap_or_default();
        let is_http_page = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        is_http_page && matches!(self.kind().as_str(), "response" | "request" | "revisit")
    }
}

/// The HTTP head at the start of a block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HttpHead {
    /// Its bytes, the empty line included.
    pub bytes: Vec<u8>,
}

impl HttpHead {
    /// The status of a response; 0 when there is none. Crawlers that speak more than HTTP/1 write status lines that
    /// no HTTP/1 server sends (`HTTP/2 200`); they are read here.
    pub fn status(&self) -> u16 {
        http::status_of_head(&self.bytes).unwrap_or_else(|| {
            let line = self.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
            let status = words.nth(1).unwrap_or_default().trim_ascii();
            std::str::from_utf8(status).ok().and_then(|status| status.parse().ok()).unwrap_or(0)
        })
    }

    /// Its fields, parsed as when the head was received, so that a rebuilt index equals the first one.
    pub fn headers(&self) -> Headers {
        Headers::of_head(&self.bytes)
    }

    /// The first field of that name.
    pub fn get(&self, name: &str) -> Option<String> {
        self.headers().get(name).map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// The value of Content-Type, over all fields of that name.
    pub fn content_type(&self) -> Option<String> {
        self.headers().joined("content-type").map(|value| String::from_utf8_lossy(&value).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_folded_doubled_and_odd() {
        let head = RecordHead::parse(
            b"WARC/1.0\r\nwarc-type: \r\n\tResponse\r\nContent-Length: 12\nContent-Length: 13\r\nWARC-Target-URI: <http://a/>\r\n\
              WARC-Date: 2008-04-30T20:48:25.123456Z\r\nContent-Type: Application/HTTP; msgtype=response\r\n\r\nx: y",
        )
        .expect("a head");
        assert_eq!(head.kind(), "response");
        assert_eq!(head.block_bytes(), Some(12));
        assert_eq!(head.target_uri(), "http://a/");
        assert_eq!(head.timestamp(), "20080430204825");
        assert!(head.is_http());
        assert_eq!((head.get("x"), head.has_odd_line()), (None, false));
    }

    #[test]
    fn what_is_http_is_told_by_type_and_scheme() {
        let is_http = |kind: &str, uri: &str, content_type: &str| {
            let text = format!("WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\n{content_type}\r\n");
            RecordHead::parse(text.as_bytes()).expect("a head").is_http()
        };
        for content_type in ["", "Content-Type: image/png\r\n", "Content-Type: application/http\r\n"] {
            for kind in ["response", "request", "revisit"] {
                assert!(
                    is_http(kind, "HTTPS://a.test/", content_type) && is_http(kind, "<http://a.test/>", content_type)
                );
                assert!(!is_http(kind, "dns:a.test", content_type) && !is_http(kind, "", content_type));
            }
            assert!(!is_http("resource", "http://a.test/", content_type));
        }
    }

    #[test]
    fn a_line_that_is_no_field_costs_no_record() {
        let head =
            RecordHead::parse(b"WARC/1.0 \t\r\n folded\r\nno colon\r\nWARC-Type: response\r\n\r\n").expect("a head");
        assert_eq!((head.version(), head.kind().as_str(), head.has_odd_line()), ("WARC/1.0", "response", true));
        for line in [" folded", "no colon"] {
            let head = RecordHead::parse(format!("WARC/1.0\n{line}").as_bytes()).expect("a head");
            assert!(head.has_odd_line() && head.fields().is_empty());
        }
    }

    /// An index rebuilt by recovery must equal the lost one.
    #[test]
    fn http_fields_are_folded_as_when_they_came() {
        let head = |text: &[u8]| HttpHead { bytes: text.to_vec() };
        let folded = head(b"HTTP/1.1 200 OK\r\nA: 1\r\n Content-Type: none\r\nContent-Type :\r\n\ttext/html\r\n \r\n ;a=b\r\nB: 2\r\n\r\n");
        assert_eq!(folded.get("content-type").as_deref(), Some("text/html ;a=b"));
        assert_eq!(folded.get("a").as_deref(), Some("1 Content-Type: none"));
        assert_eq!((folded.get("b").as_deref(), folded.get("c")), (Some("2"), None));
        assert_eq!(head(b"HTTP/1.1 200 OK\nA:\n").get("a").as_deref(), Some(""));
    }

    #[test]
    fn every_truncation_is_a_head_or_a_fault() {
        let whole = b"WARC/1.1\r\nWARC-Type: response\r\n folded\r\nContent-Length: 99999999999999999999\r\n\r\n";
        for end in 0..whole.len() {
            let _ = RecordHead::parse(&whole[..end]);
        }
        assert_eq!(RecordHead::parse(whole).expect("a head").block_bytes(), None);
        assert_eq!(RecordHead::parse(b"WARC/\r\n"), Err(SegmentFault::NoRecord));
        assert_eq!(RecordHead::parse(b""), Err(SegmentFault::NoRecord));
    }

    #[test]
    fn http_heads() {
        let head = HttpHead { bytes: b"HTTP/1.1  404 Not\r\nContent-type : text/html \r\n\r\n".to_vec() };
        assert_eq!((head.status(), head.get("Content-Type").as_deref()), (404, Some("text/html")));
        let odd =
            HttpHead { bytes: b"HTTP/1.1 200\rOK\r\nno colon\r\n folded away\r\nContent-Type: a\rb\r\n\r\n".to_vec() };
        assert_eq!((odd.status(), odd.get("content-type").as_deref()), (200, Some("a b")));
        let foreign = HttpHead { bytes: b"HTTP/2 200 \r\ncontent-type: text/html\r\n\r\n".to_vec() };
        assert_eq!((foreign.status(), foreign.get("Content-Type").as_deref()), (200, Some("text/html")));
        assert_eq!((HttpHead::default().status(), HttpHead::default().get("a")), (0, None));
    }
}
