//! The content of a stored payload: what is left when its content codings are undone.
//!
//! Decides: the head that is stored with a payload says what it is in; what lies about that, or is in an unknown coding,
//! is its own content.
//! Limits: content of `bytes_max` bytes; what is longer is cut, and `problem` says so.
//! Leaves to others: undoing codings (`http`).

use super::warc::HttpHead;
use crate::http::{self, Decoded, Headers, Limits};

/// The content of `payload`, which `head` was stored with.
pub fn content<'a>(head: &HttpHead, payload: &'a [u8], bytes_max: usize) -> Decoded<'a> {
    // What is stored was taken on purpose: only its length is bounded.
    let limits = Limits { body_bytes_max: bytes_max, decode_ratio_max: usize::MAX, ..Limits::default() };
    http::decode_content(&Headers::of_head(&head.bytes), payload, &limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::CodingProblem;

    #[test]
    fn coded_lying_and_plain_payloads() {
        let coded = zstd::bulk::compress(&[b'a'; 9_000], 1).expect("memory");
        let head = |fields: &str| HttpHead { bytes: format!("HTTP/1.1 200 OK\r\n{fields}\r\n").into_bytes() };
        for (fields, payload, bytes, problem) in [
            ("", &coded[..], &coded[..], None),
            ("Content-Encoding: zstd\r\n", &coded, &[b'a'; 9_000], None),
            ("Content-Encoding: zstd\r\n", b"<p>", b"<p>", Some(CodingProblem::Corrupt)),
            ("X-Crawl-Content-Encoding: zstd\r\n", b"<p>", b"<p>", None),
        ] {
            let found = content(&head(fields), payload, 10_000);
            assert_eq!((&*found.bytes, found.problem), (bytes, problem), "{fields}");
        }
        let cut = content(&head("Content-Encoding: zstd\r\n"), &coded, 100);
        assert_eq!((cut.bytes.len(), cut.problem), (100, Some(CodingProblem::TooLarge)));
    }
}
