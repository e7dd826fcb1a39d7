//! What precedes the status line, and whether there is one.
//!
//! Decides: where `HTTP/` begins within the first bytes. A CRLF before it is ignored; up to `JUNK_BYTES_MAX` other
//! bytes are junk. Whitespace is not accepted as junk: clients agree to refuse it there. What begins like a document
//! is HTTP/0.9 (RFC 1945 section 6, "Simple-Response"). It is distinguished from other protocols because it is
//! counted under another name.
//!
//! Invariants: the verdict depends only on the bytes, not on how they are split; no byte behind `HTTP/` is consumed.
//! Limits: at most `OPENING_BYTES_MAX` bytes are read.

use super::HttpError;

/// What every response starts with (RFC 9112 section 2.3).
pub(super) const MAGIC: &[u8] = b"HTTP/";
/// Junk that is skipped: what Chromium skips (`kStatusLineMaxSlop`).
const JUNK_BYTES_MAX: usize = 4;
const OPENING_BYTES_MAX: usize = JUNK_BYTES_MAX + MAGIC.len();

/// The first bytes, until they are identified.
#[derive(Default, Clone, Copy)]
pub(super) struct Opening {
    bytes: [u8; OPENING_BYTES_MAX],
    length: usize,
}

impl Opening {
    /// Takes a byte; returns whether it completes `HTTP/`.
    pub(super) fn take(&mut self, byte: u8) -> Result<bool, HttpError> {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
        let mut is_open = false;
        for junk in 0..=JUNK_BYTES_MAX {
            let Some((junk, rest)) = self.seen().split_at_checked(junk) else { break };
            if may_precede(junk) && MAGIC.starts_with(rest) {
                if rest == MAGIC {
                    return Ok(true);
                }
                is_open = true;
            }
        }
        // A document may still follow the whitespace.
        is_open |= self.text().is_empty() && self.length < OPENING_BYTES_MAX;
        if is_open { Ok(false) } else { Err(self.refusal()) }
    }

    /// Once `HTTP/` is complete: whether anything other than a CRLF precedes it.
    pub(super) fn had_junk(&self) -> bool {
        !matches!(self.seen(), b"HTTP/" | b"\r\nHTTP/")
    }

    /// The error if the connection ends here.
    pub(super) fn ended(&self) -> HttpError {
        let text = self.text();
        if MAGIC.starts_with(text) { HttpError::ClosedEarly } else { self.refusal() }
    }

    fn refusal(&self) -> HttpError {
        if self.text().first() == Some(&b'<') { HttpError::Version09 } else { HttpError::NotHttp }
    }

    fn seen(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }

    /// The bytes so far, without leading byte order mark and whitespace.
    fn text(&self) -> &[u8] {
        let seen = self.seen();
        seen.strip_prefix("\u{feff}".as_bytes()).unwrap_or(seen).trim_ascii_start()
    }
}

fn may_precede(junk: &[u8]) -> bool {
    junk == b"\r\n" || !junk.iter().any(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a head begins in `text`, and whether junk preceded it; `None` while undecided.
    fn of(text: &[u8]) -> Result<Option<bool>, HttpError> {
        let mut opening = Opening::default();
        for byte in text {
            if opening.take(*byte)? {
                return Ok(Some(opening.had_junk()));
            }
        }
        Ok(None)
    }

    #[test]
    fn where_a_head_begins() {
        for clean in [&b"HTTP/"[..], b"\r\nHTTP/"] {
            assert_eq!(of(clean), Ok(Some(false)));
        }
        for junk in [&b"\xef\xbb\xbfHTTP/"[..], b"xHTTP/", b"HHTTP/", b"HTTPHTTP/", b"\0\0\0\0HTTP/", b"<!-HTTP/"] {
            assert_eq!(of(junk), Ok(Some(true)), "{}", junk.escape_ascii());
        }
        for other in [
            &b"\n\nHTTP/"[..],
            b"\nHTTP/",
            b"\rHTTP/",
            b" HTTP/",
            b"\r\n\r\nHTTP/",
            b"\r\nxHTTP/",
            b"12345HTTP/",
            b"HTTPS/1.1",
            b"http/1.1 ",
            b"SSH-2.0-x",
            b"220 smtp ",
            b"         ",
        ] {
            assert_eq!(of(other), Err(HttpError::NotHttp), "{}", other.escape_ascii());
        }
        for document in [&b"<html>"[..], b"\xef\xbb\xbf<html", b"\r\n  <!DOC", b"\n\n<html>"] {
            assert_eq!(of(document), Err(HttpError::Version09), "{}", document.escape_ascii());
        }
    }

    #[test]
    fn ends_before_a_head() {
        for (text, error) in [
            (&b""[..], HttpError::ClosedEarly),
            (b"\r\n", HttpError::ClosedEarly),
            (b"\r\nHTT", HttpError::ClosedEarly),
            (b"<p", HttpError::Version09),
            (b"ok", HttpError::NotHttp),
        ] {
            let mut opening = Opening::default();
            for byte in text {
                assert_eq!(opening.take(*byte), Ok(false));
            }
            assert_eq!(opening.ended(), error, "{}", text.escape_ascii());
        }
    }
}
