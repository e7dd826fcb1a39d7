//! What a body is, by its first bytes.
//!
//! Decides: the value of WARC-Identified-Payload-Type (WARC 1.1 section 5.16), whatever the server says: HTML and XML by
//! their first tag, what has a signature by that, else text where there is no byte that is in no text (WHATWG MIME Sniffing
//! section 7.1). Tools that need the type would look for themselves at each record that does not tell it.
//! Why a library: signatures are many, and change.
//! Limits: the first [`HEAD_BYTES`] bytes are looked at; XML is not told apart any further.

use crate::links;

/// The media type of a body; `None` for an empty one.
pub fn identify(content: &[u8]) -> Option<&'static str> {
    let head = content.get(..HEAD_BYTES).unwrap_or(content);
    if head.is_empty() {
        return None;
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    Some(match text {
        _ if links::looks_like_html(head) => "text/html",
        [b'<', b'?', b'x' | b'X', b'm' | b'M', b'l' | b'L', ..] => "text/xml",
        _ => match infer::get(head) {
            Some(known) => known.mime_type(),
            None if is_text(head) => "text/plain",
            None => "application/octet-stream",
        },
    })
}

/// UTF-16 holds zeros, and begins with its mark.
fn is_text(head: &[u8]) -> bool {
    let is_utf16 = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    is_utf16 || !head.iter().any(|byte| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f))
}

/// As many as WHATWG MIME Sniffing section 5.2 looks at.
const HEAD_BYTES: usize = 1445;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_what_their_first_bytes_say() {
        for (body, expected) in [
            (&b""[..], None),
            (b"  <!doctype html><p>", Some("text/html")),
            (b"\xef\xbb\xbf<?xml version='1.0'?><rss>", Some("text/xml")),
            (b"{\"a\": 1}", Some("text/plain")),
            (b"%PDF-1.7\n", Some("application/pdf")),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Some("image/png")),
            (b"\x1f\x8b\x08\0", Some("application/gzip")),
            (b"PK\x03\x04\x14\0", Some("application/zip")),
            (b"\xff\xfea\0b\0", Some("text/plain")),
            (b"\0\x01\x02\x03\x04\x05\x06\x07", Some("application/octet-stream")),
        ] {
            assert_eq!(identify(body), expected, "{}", String::from_utf8_lossy(body));
        }
    }
}
