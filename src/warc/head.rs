//! The HTTP head as stored: true about the stored body, and parseable by others.
//!
//! Decides: a body is stored without transfer coding, and with or without its content coding, by `store.body`. Where
//! a coding was removed or the body was cut, fields about a body other than the stored one are renamed `X-Crawl-…`
//! (as Common Crawl does) and a true Content-Length is added. Otherwise nothing is renamed. Line ends become CRLF.
//! Control bytes that parsers treat differently (NUL, a CR inside a line) become spaces, or `_` at the start of a
//! line, where a space would fold it into the line before. A line that consists only of such bytes does not end the
//! head, and becomes `_` as well.
//! Why: a reader that trusts head and body must get the page, and must still see what the fields originally said.
//!
//! Invariants: the result ends with an empty line and has no other; a clean head of an undecoded body is copied byte
//! for byte; the output is at most the input's length plus 64 bytes and 9 for each renamed field and 1 for each line.
//! Leaves to others: limits on the head's size and count (`http`), what was decoded (`http`).

use ringcrawl_http as http;

/// The codings removed between the wire and the stored body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Undone {
    /// The chunked transfer coding (RFC 9112 section 7.1).
    pub transfer: bool,
    /// All content codings (RFC 9110 section 8.4).
    pub content: bool,
}

/// Adds the head of a response to `out`: `head_bytes` made true for a stored body of `body_bytes` bytes.
///
/// A response that has no body by its status (RFC 9110 section 6.4.1) keeps a Content-Length, which is about another
/// body.
pub fn write_stored_head(out: &mut Vec<u8>, head_bytes: &[u8], body_bytes: usize, undone: Undone) {
    let mut lines = head_bytes.split(|byte| *byte == b'\n').skip_while(|line| without_end(line).is_empty());
    let mut may_have_body = true;
    if let Some(status_line) = lines.next() {
        may_have_body = !matches!(http::status_of_head(status_line), Some(100..=199 | 204 | 304));
        write_line(out, without_end(status_line));
    }
    let mut is_untrue = undone.transfer || undone.content;
    for line in lines.take_while(|line| !matches!(*line, b"" | b"\r")).map(without_end) {
        // Only Content-… and Transfer-Encoding matter.
        if matches!(line.first(), Some(b'C' | b'c' | b'T' | b't')) {
            let other_length = may_have_body && is_length_of_another(line, body_bytes);
            is_untrue |= other_length;
            if other_length || renamed(line, undone) {
                out.extend_from_slice(b"X-Crawl-");
            }
        }
        write_line(out, line);
    }
    if is_untrue {
        out.extend_from_slice(b"Content-Length: ");
        out.extend_from_slice(body_bytes.to_string().as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Adds the head of a request to `out`, with CRLF line ends.
pub fn write_request_head(out: &mut Vec<u8>, request: &[u8]) {
    write_stored_head(out, request, 0, Undone::default());
}

/// Whether a line is a Content-Length that differs from `body_bytes`.
fn is_length_of_another(line: &[u8], body_bytes: usize) -> bool {
    let Some((name, value)) = memchr::memchr(b':', line).and_then(|colon| line.split_at_checked(colon)) else {
        return false;
    };
    let value = std::str::from_utf8(value.get(1..).unwrap_or_default()).unwrap_or_default().trim();
    name.trim_ascii_end().eq_ignore_ascii_case(b"content-length") && value.parse() != Ok(body_bytes)
}

/// A line without its end, which includes CRs directly before the LF.
fn without_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
    line.get(..end).unwrap_or_default()
}

fn write_line(out: &mut Vec<u8>, line: &[u8]) {
    let is_odd = |byte: &u8| matches!(byte, 0 | b'\r');
    let mut rest = line;
    if line.first().is_none_or(is_odd) {
        out.push(b'_');
        rest = line.get(1..).unwrap_or_default();
    }
    match memchr::memchr2(0, b'\r', rest) {
        None => out.extend_from_slice(rest),
        Some(_) => out.extend(rest.iter().map(|byte| if is_odd(byte) { b' ' } else { *byte })),
    }
    out.extend_from_slice(b"\r\n");
}

fn renamed(line: &[u8], undone: Undone) -> bool {
    let Some(colon) = memchr::memchr(b':', line) else { return false };
    let name = line.get(..colon).unwrap_or_default().trim_ascii_end();
    (name.eq_ignore_ascii_case(b"content-length") && (undone.transfer || undone.content))
        || (name.eq_ignore_ascii_case(b"transfer-encoding") && undone.transfer)
        || (name.eq_ignore_ascii_case(b"content-encoding") && undone.content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    fn stored(head: &[u8], body_bytes: usize, transfer: bool, content: bool) -> String {
        let mut out = Vec::new();
        write_stored_head(&mut out, head, body_bytes, Undone { transfer, content });
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_clean_head_stays() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Long: a\r\n  b\r\nContent-Encoding: br\r\n\r\n";
        assert_eq!(stored(head, 5, false, false).as_bytes(), head);
    }

    #[test]
    fn fields_that_no_longer_tell_the_truth_are_renamed() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\ntransfer-encoding : chunked\r\nA: b\r\n\r\n";
        assert_eq!(
            stored(head, 7, true, true),
            "HTTP/1.1 200 OK\r\nX-Crawl-Content-Encoding: gzip\r\nX-Crawl-transfer-encoding : chunked\r\nA: b\r\n\
             Content-Length: 7\r\n\r\n"
        );
        assert_eq!(
            stored(head, 7, true, false),
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nX-Crawl-transfer-encoding : chunked\r\nA: b\r\n\
             Content-Length: 7\r\n\r\n"
        );
        assert_eq!(
            stored(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", 9, false, true),
            "HTTP/1.1 200 OK\r\nX-Crawl-Content-Length: 3\r\nContent-Length: 9\r\n\r\n"
        );
    }

    #[test]
    fn a_body_that_was_cut_has_its_own_length() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\nA: b\r\n\r\n";
        let cut = "HTTP/1.1 200 OK\r\nX-Crawl-Content-Length: 50\r\nA: b\r\nContent-Length: 9\r\n\r\n";
        assert_eq!(
            (stored(head, 9, false, false).as_str(), stored(head, 50, false, false).as_bytes()),
            (cut, &head[..])
        );
        let of_another = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n";
        assert_eq!(stored(of_another, 0, false, false).as_bytes(), of_another);
    }

    #[test]
    fn odd_line_ends_become_crlf() {
        assert_eq!(
            stored(b"HTTP/1.0 200\nA: b\r\r\nC:\rd\0\n\nrest", 0, false, false),
            "HTTP/1.0 200\r\nA: b\r\nC: d \r\n\r\n"
        );
        // Neither a fold nor the end, as on the wire.
        assert_eq!(
            stored(b"HTTP/1.0 200\nA: b\n\rc\n\r\r\nD: e\n\r\nrest", 0, false, false),
            "HTTP/1.0 200\r\nA: b\r\n_c\r\n_\r\nD: e\r\n\r\n"
        );
        assert_eq!(stored(b"\r\n\r\nHTTP/1.0 200", 0, false, false), "HTTP/1.0 200\r\n\r\n");
        assert_eq!(stored(b"", 0, false, false), "\r\n");
    }

    #[test]
    fn every_head_ends_once() {
        let mut rng = Rng::new(1);
        let alphabet = b"\r\n: aA\0\x80-";
        for _ in 0..20_000 {
            let head: Vec<u8> = (0..rng.below(24)).map(|_| *rng.pick(alphabet)).collect();
            let mut out = Vec::new();
            write_stored_head(&mut out, &head, 12, Undone { transfer: rng.percent(50), content: rng.percent(50) });
            let end = memchr::memmem::find(&out, b"\r\n\r\n").map_or(2, |at| at + 4);
            assert_eq!(end, out.len(), "{:?}", String::from_utf8_lossy(&out));
            assert!(out.len() <= head.len() * 10 + 64);
        }
    }
}
