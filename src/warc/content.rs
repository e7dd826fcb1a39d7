//! The content of a stored payload: what is left after its codings are removed.
//!
//! Decides: other tools store bodies in the chunked coding as received, and some have removed it but kept the field:
//! we remove it if it is really there. The head stored with a payload names its codings. A payload in another coding
//! than its head claims, or in an unknown one, is its own content.
//! Limits: content of `bytes_max` bytes; longer content is cut, and `problem` says so.
//! Leaves to others: removing codings (`http`).

use std::borrow::Cow;

use super::examine::unchunked;
use super::record_head::HttpHead;
use ringcrawl_http::{self as http, Decoded, Headers, Limits};

/// The content of `payload`, which was stored with `head`.
pub fn content<'a>(head: &HttpHead, payload: &'a [u8], bytes_max: usize) -> Decoded<'a> {
    // Stored content was kept on purpose: only its length is bounded.
    let limits = Limits { body_bytes_max: bytes_max, decode_ratio_max: usize::MAX, ..Limits::default() };
    let headers = Headers::of_head(&head.bytes);
    let Some(body) = unchunked(head, payload) else { return http::decode_content(&headers, payload, &limits) };
    let Decoded { bytes, coding, problem, truncated } = http::decode_content(&headers, &body, &limits);
    Decoded { bytes: Cow::Owned(bytes.into_owned()), coding, problem, truncated }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_http::CodingProblem;

    #[test]
    fn coded_lying_and_plain_payloads() {
        let coded = zstd::bulk::compress(&[b'a'; 9_000], 1).expect("memory");
        let chunked = [format!("{:x}\r\n", coded.len()).as_bytes(), &coded, b"\r\n0\r\n\r\n"].concat();
        let head = |fields: &str| HttpHead { bytes: format!("HTTP/1.1 200 OK\r\n{fields}\r\n").into_bytes() };
        for (fields, payload, bytes, problem) in [
            ("", &coded[..], &coded[..], None),
            ("Content-Encoding: zstd\r\n", &coded, &[b'a'; 9_000], None),
            ("Content-Encoding: zstd\r\n", b"<p>", b"<p>", Some(CodingProblem::Corrupt)),
            ("X-Crawl-Content-Encoding: zstd\r\n", b"<p>", b"<p>", None),
            ("Transfer-Encoding: chunked\r\n", b"3\r\n<p>\r\n0\r\n\r\n", b"<p>", None),
            ("Transfer-Encoding: chunked\r\n", b"<p>", b"<p>", None),
            ("X-Crawl-Transfer-Encoding: chunked\r\n", b"3\r\n<p>\r\n0\r\n\r\n", b"3\r\n<p>\r\n0\r\n\r\n", None),
            ("Transfer-Encoding: chunked\r\nContent-Encoding: zstd\r\n", &chunked, &[b'a'; 9_000], None),
        ] {
            let found = content(&head(fields), payload, 10_000);
            assert_eq!((&*found.bytes, found.problem), (bytes, problem), "{fields}");
        }
        let cut = content(&head("Content-Encoding: zstd\r\n"), &coded, 100);
        assert_eq!((cut.bytes.len(), cut.problem), (100, Some(CodingProblem::TooLarge)));
    }
}
