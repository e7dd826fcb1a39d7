//! The head of a response: where it ends, and its status line.
//!
//! Decides, leniently where browsers and curl are and the head stays unambiguous:
//!
//! | what servers send | result | source |
//! |---|---|---|
//! | one CRLF before the status line | dropped | RFC 9112 section 2.2 allows it for servers; late CRLFs on reused connections |
//! | other junk before it, up to 4 bytes without whitespace | dropped, and the connection is not reused | Chromium skips 4 bytes; a byte order mark has 3 |
//! | a document without a head | refused as HTTP/0.9 | RFC 9110 has no such response; nothing states its type |
//! | anything else | refused | another protocol |
//! | a version of one digit (`HTTP/1 200`) | 1 as 1.0, 2 and 3 as 1.1, noted | Chromium and curl accept it |
//! | LF for CRLF | a line end | RFC 9112 section 2.2 |
//! | tabs, several spaces, CR in the status line | separators | RFC 9112 section 4 |
//! | no reason | an empty one | RFC 9112 section 4 |
//! | NUL | refused | RFC 9110 section 5.5 |
//!
//! Invariants: every byte is scanned once for the end, whatever the splits; no more than the caller's limit is
//! buffered.
//!
//! Limits: versions 1.0 to 1.9 (RFC 9110 section 2.5); a status line with version 0.9 counts as 1.0, one with 2.0 as
//! 1.1. Both are noted, too.
//!
//! Leaves to others: the fields (`headers`).

use super::headers::split_line;
use super::opening::{MAGIC, Opening};
use super::{Headers, HttpError};

/// The content of a head.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) minor_version: u8,
    /// The status line has another version than 1.0 to 1.9.
    pub(super) has_odd_version: bool,
    pub(super) status: u16,
    pub(super) reason: Vec<u8>,
    pub(super) headers: Headers,
}

impl Head {
    /// Reads a whole head, from its status line to its empty line.
    pub(super) fn parse(bytes: &[u8], header_count_max: usize) -> Result<Head, HttpError> {
        let (line, fields) = split_line(bytes);
        let StatusLine { minor_version, has_odd_version, status, reason } = StatusLine::parse(line)?;
        let headers = Headers::parse(fields, header_count_max)?;
        Ok(Head { minor_version, has_odd_version, status, reason, headers })
    }
}

/// Enough for nearly every head.
const HEAD_BYTES: usize = 512;

/// Buffers a head's bytes until its empty line.
#[derive(Default)]
pub(super) struct HeadBuffer {
    /// From `HTTP/` on.
    bytes: Vec<u8>,
    line_start: usize,
    opening: Opening,
}

impl HeadBuffer {
    /// Bytes held.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes bytes from `input`, at most to the head's end; returns whether that was reached.
    pub(super) fn take(&mut self, input: &mut &[u8], bytes_max: usize) -> Result<bool, HttpError> {
        while self.bytes.is_empty() {
            let Some((byte, rest)) = input.split_first() else { return Ok(false) };
            *input = rest;
            if self.opening.take(*byte)? {
                // A head comes line by line, but its memory is reserved at once.
                self.bytes.reserve(input.len().min(HEAD_BYTES) + MAGIC.len());
                self.bytes.extend_from_slice(MAGIC);
            }
        }
        while !input.is_empty() {
            let line_end = memchr::memchr(b'\n', input);
            let (taken, rest) =
                input.split_at_checked(line_end.map_or(input.len(), |at| at + 1)).unwrap_or((input, &[]));
            if self.bytes.len() + taken.len() > bytes_max {
                return Err(HttpError::HeadTooLarge);
            }
            self.bytes.extend_from_slice(taken);
            *input = rest;
            if line_end.is_some() {
                if matches!(self.bytes.get(self.line_start..), Some(b"\n" | b"\r\n")) {
                    return Ok(true);
                }
                self.line_start = self.bytes.len();
            }
        }
        Ok(false)
    }

    /// Whether bytes were dropped that must not precede a head.
    pub(super) fn had_junk(&self) -> bool {
        self.opening.had_junk()
    }

    /// The error if the connection ends here.
    pub(super) fn ended(&self) -> HttpError {
        if self.bytes.is_empty() { self.opening.ended() } else { HttpError::ClosedEarly }
    }

    /// The buffered bytes; the buffer is ready for the next head.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(self).bytes
    }
}

/// The status of a response whose head was kept whole, as parsed on receipt.
pub fn status_of_head(head: &[u8]) -> Option<u16> {
    StatusLine::parse(split_line(head).0).ok().map(|line| line.status)
}

struct StatusLine {
    minor_version: u8,
    has_odd_version: bool,
    status: u16,
    reason: Vec<u8>,
}

impl StatusLine {
    /// A version and three digits are required.
    fn parse(line: &[u8]) -> Result<StatusLine, HttpError> {
        const BAD_VERSION: HttpError = HttpError::Malformed("unknown HTTP version");
        const BAD_STATUS: HttpError = HttpError::Malformed("status is not three digits from 100 to 999");
        let rest = line.strip_prefix(MAGIC).ok_or(HttpError::NotHttp)?;
        let version_bytes = rest.iter().position(is_blank).ok_or(BAD_VERSION)?;
        let (version, rest) = rest.split_at_checked(version_bytes).ok_or(BAD_VERSION)?;
        let (minor_version, has_odd_version) = match version {
            [b'1', b'.', minor] if minor.is_ascii_digit() => (minor - b'0', false),
            // A peer that writes a status line and fields speaks HTTP/1, whatever the version says.
            b"0.9" | b"1" => (0, true),
            b"2.0" | b"2" | b"3" => (1, true),
            _ => return Err(BAD_VERSION),
        };
        let rest = trim_blank(rest);
        let (digits, reason) = rest.split_at_checked(3).ok_or(BAD_STATUS)?;
        if !digits.iter().all(u8::is_ascii_digit) || !reason.first().is_none_or(is_blank) {
            return Err(BAD_STATUS);
        }
        let status = digits.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
        if status < 100 {
            return Err(BAD_STATUS);
        }
        if line.contains(&0) {
            return Err(HttpError::Malformed("NUL in the status line"));
        }
        let reason = trim_blank(reason).iter().map(|byte| if *byte == b'\r' { b' ' } else { *byte }).collect();
        Ok(StatusLine { minor_version, has_odd_version, status, reason })
    }
}

/// Whitespace between the words of a status line (RFC 9112 section 4).
fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | b'\r')
}

fn trim_blank(mut bytes: &[u8]) -> &[u8] {
    while let Some((first, rest)) = bytes.split_first()
        && is_blank(first)
    {
        bytes = rest;
    }
    while let Some((last, rest)) = bytes.split_last()
        && is_blank(last)
    {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines() {
        let of =
            |line: &str| Head::parse(format!("{line}\r\n\r\n").as_bytes(), 9).map(|head| (head.status, head.reason));
        assert_eq!(of("HTTP/1.1 200 OK"), Ok((200, b"OK".to_vec())));
        assert_eq!(of("HTTP/1.0 404"), Ok((404, Vec::new())));
        assert_eq!(of("HTTP/1.1\t 200 \t Very  good\u{e9} "), Ok((200, "Very  good\u{e9}".into())));
        assert_eq!(of("HTTP/1.1 200\rOK"), Ok((200, b"OK".to_vec())));
        for bad in [
            "HTTP/1.1",
            "HTTP/1.1 ",
            "HTTP/1.1 20",
            "HTTP/1.1 2000",
            "HTTP/1.1 200X",
            "HTTP/1.1 099 x",
            "HTTP/1.1 -12 x",
            "HTTP/1. 200",
            "HTTP/1.01 200",
            "HTTP/01.1 200",
            "HTTP/5.6 200",
            "HTTP/ 200 OK",
            "HTTP/1",
            "HTTP/4 200 OK",
            "HTTP/1x 200 OK",
            "HTTP/1.1200 OK",
            "HTTP/1.1 200 O\0",
        ] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn odd_versions_are_noted() {
        for (line, minor, is_odd) in [
            ("HTTP/1.1 200 OK", 1, false),
            ("HTTP/1.0 200", 0, false),
            ("HTTP/1.7 200", 7, false),
            ("HTTP/1 200 OK", 0, true),
            ("HTTP/1\t200", 0, true),
            ("HTTP/2 200", 1, true),
            ("HTTP/2.0 200 OK", 1, true),
            ("HTTP/3 200 OK", 1, true),
            ("HTTP/0.9 200 OK", 0, true),
        ] {
            let head = Head::parse(format!("{line}\r\n\r\n").as_bytes(), 9).expect(line);
            assert_eq!((head.status, head.minor_version, head.has_odd_version), (200, minor, is_odd), "{line}");
        }
    }

    #[test]
    fn the_end_of_a_head() {
        let whole = b"\r\nHTTP/1.1 200 OK\nA: b\r\n \r\n\r\nbody";
        for first in 0..whole.len() {
            let (mut start, mut rest) = whole.split_at(first);
            let mut buffer = HeadBuffer::default();
            let early = buffer.take(&mut start, 32).expect("within the limit");
            assert!(early || start.is_empty());
            assert_eq!((early || buffer.take(&mut rest, 32) == Ok(true), start.len() + rest.len()), (true, 4));
            assert_eq!(buffer.finish(), &whole[2..whole.len() - 4]);
        }
        assert_eq!(HeadBuffer::default().take(&mut &whole[..], 20), Err(HttpError::HeadTooLarge));
    }
}
