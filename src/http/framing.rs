//! How long a body is, and whether the connection outlives it (RFC 9112 sections 6.3 and 9.3).
//!
//! Decides, in the RFC's order:
//! 1. HEAD, 1xx, 204, 304, 2xx to CONNECT: no body, whatever the fields say.
//! 2. Transfer-Encoding: `chunked` last → chunks; no `chunked` → up to the close. It overrides any Content-Length,
//!    and then the connection is not used again (section 6.1: request smuggling). `gzip`, `x-gzip` and `deflate`
//!    before it are decoded; another coding, or `chunked` before the end, is refused: the meaning of the bytes would
//!    be unknown. `identity` (RFC 2616) and empty members are ignored; `chunked, chunked` is read as one, as in curl
//!    and node.
//! 3. Content-Length: decimal digits; a list or several fields with the same number count as that number (RFC 9110
//!    section 8.6); different numbers are refused, since the end cannot be known.
//! 4. Neither, or a Content-Length that is not a number: up to the close. Section 6.3 has a client discard the
//!    latter; browsers read what there is (Chromium's `HttpResponseHeaders::GetContentLength`), and no byte can
//!    belong to another response.
//!
//! Invariant: a body that ends with the connection never leaves it reusable.
//! Limits: lengths below 2^63; at most `CODINGS_MAX` transfer codings.

use super::coding::{CODINGS_MAX, Coding};
use super::{Headers, HttpError, Method};

/// Where the body ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extent {
    /// There is none.
    Nothing,
    /// After this many bytes.
    Bytes(u64),
    /// After its last chunk.
    Chunks,
    /// With the connection.
    Close,
}

/// What a final response's head says about its body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BodyPlan {
    pub(super) extent: Extent,
    /// Transfer codings other than chunked, in the order they were applied.
    pub(super) codings: Vec<Coding>,
    /// Whether the peer keeps the connection open after the message.
    pub(super) persistent: bool,
    /// There is a Content-Length, and it is not a number below 2^63.
    pub(super) has_bad_length: bool,
}

/// Derives the plan from a final response's head.
pub(super) fn plan(method: Method, status: u16, minor_version: u8, headers: &Headers) -> Result<BodyPlan, HttpError> {
    let mut persistent = persists(minor_version, headers);
    let is_tunnel = method == Method::Connect && matches!(status, 200..=299);
    if is_tunnel || method == Method::Head || matches!(status, 100..=199 | 204 | 304) {
        return Ok(BodyPlan { extent: Extent::Nothing, codings: Vec::new(), persistent, has_bad_length: false });
    }
    let transfer = TransferEncoding::read(headers)?;
    // Transfer-Encoding together with Content-Length, or in HTTP/1.0 at all, is faulty framing (RFC 9112 section
    // 6.1).
    if transfer.present && (minor_version == 0 || headers.get("content-length").is_some()) {
        persistent = false;
    }
    let (extent, has_bad_length) = match (transfer.chunked, transfer.codings.is_empty()) {
        (true, _) => (Extent::Chunks, false),
        (false, false) => (Extent::Close, false),
        (false, true) => content_length(headers)?,
    };
    let persistent = persistent && extent != Extent::Close;
    Ok(BodyPlan { extent, codings: transfer.codings, persistent, has_bad_length })
}

struct TransferEncoding {
    present: bool,
    chunked: bool,
    codings: Vec<Coding>,
}

impl TransferEncoding {
    fn read(headers: &Headers) -> Result<TransferEncoding, HttpError> {
        let present = headers.get("transfer-encoding").is_some();
        let mut read = TransferEncoding { present, chunked: false, codings: Vec::new() };
        for coding in headers.list("transfer-encoding") {
            match &coding[..] {
                b"identity" => {}
                b"chunked" => read.chunked = true,
                _ if read.chunked || read.codings.len() == CODINGS_MAX => return Err(HttpError::TransferCoding),
                b"gzip" | b"x-gzip" => read.codings.push(Coding::Gzip),
                b"deflate" => read.codings.push(Coding::Deflate),
                _ => return Err(HttpError::TransferCoding),
            }
        }
        Ok(read)
    }
}

/// The extent from the one number on which all Content-Length fields and their members agree, and whether one of them
/// is not a number.
fn content_length(headers: &Headers) -> Result<(Extent, bool), HttpError> {
    let (mut extent, mut is_bad) = (Extent::Close, false);
    for member in headers.all("content-length").flat_map(|value| value.split(|byte| *byte == b',')) {
        match decimal(member.trim_ascii()).map(Extent::Bytes) {
            None => is_bad = true,
            Some(said) if extent == Extent::Close || extent == said => extent = said,
            Some(_) => return Err(HttpError::ContentLength),
        }
    }
    Ok((if is_bad { Extent::Close } else { extent }, is_bad))
}

/// Only digits, below 2^63.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().try_fold(0_u64, |number, digit| {
        digit.is_ascii_digit().then_some(())?;
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    });
    number.filter(|number| *number <= i64::MAX as u64)
}

/// RFC 9112 section 9.3: `close` wins; 1.1 persists by default, 1.0 when it says so.
fn persists(minor_version: u8, headers: &Headers) -> bool {
    let has = |option: &[u8]| headers.list("connection").any(|member| member == option);
    !has(b"close") && (minor_version >= 1 || has(b"keep-alive"))
}

#[cfg(test)]
mod tests {
    use super::super::head::Head;
    use super::*;

    fn of(fields: &str) -> Result<(Extent, bool), HttpError> {
        let head = Head::parse(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes(), 100).expect("readable");
        plan(Method::Get, 200, 1, &head.headers).map(|plan| (plan.extent, plan.persistent))
    }

    #[test]
    fn lengths() {
        assert_eq!(of(""), Ok((Extent::Close, false)));
        for good in ["6", "006", "6, 6", "6,06", "6\r\nContent-Length: 6", "6\r\nConnection: x,y"] {
            assert_eq!(of(&format!("Content-Length: {good}\r\n")), Ok((Extent::Bytes(6), true)), "{good}");
        }
        assert_eq!(of("Content-Length: 9223372036854775807\r\n"), Ok((Extent::Bytes(i64::MAX as u64), true)));
        for bad in ["6,7", "6\r\nContent-Length: 7", "x, 6\r\nContent-Length: 7"] {
            assert_eq!(of(&format!("Content-Length: {bad}\r\n")), Err(HttpError::ContentLength), "{bad}");
        }
    }

    #[test]
    fn lengths_that_are_no_numbers() {
        for bad in [
            "",
            "-6",
            "+6",
            "6x",
            "6 6",
            "6,",
            "6, x",
            "6\r\nContent-Length: none",
            "0x6",
            "9223372036854775808",
            "\u{663}",
        ] {
            let head = Head::parse(format!("HTTP/1.1 200 OK\r\nContent-Length: {bad}\r\n\r\n").as_bytes(), 9);
            let plan = plan(Method::Get, 200, 1, &head.expect("readable").headers).expect(bad);
            assert_eq!((plan.extent, plan.persistent, plan.has_bad_length), (Extent::Close, false, true), "{bad}");
        }
        // The other field is ignored.
        assert_eq!(of("Content-Length: x\r\nTransfer-Encoding: chunked\r\n"), Ok((Extent::Chunks, false)));
    }

    #[test]
    fn transfer_codings() {
        assert_eq!(of("Transfer-Encoding: Chunked\r\n"), Ok((Extent::Chunks, true)));
        assert_eq!(of("Transfer-Encoding: gzip, chunked\r\n"), Ok((Extent::Chunks, true)));
        assert_eq!(of("Transfer-Encoding: gzip\r\n"), Ok((Extent::Close, false)));
        assert_eq!(of("Transfer-Encoding: , ,\r\n"), Ok((Extent::Close, false)));
        assert_eq!(of("Transfer-Encoding: chunked\r\nContent-Length: x\r\n"), Ok((Extent::Chunks, false)));
        assert_eq!(of("Transfer-Encoding: identity\r\nContent-Length: 3\r\n"), Ok((Extent::Bytes(3), false)));
        for bad in ["chunked, gzip", "chunkedchunked", "br, chunked", "x", "gzip,gzip,gzip,gzip"] {
            assert_eq!(of(&format!("Transfer-Encoding: {bad}\r\n")), Err(HttpError::TransferCoding), "{bad}");
        }
    }

    #[test]
    fn bodiless_responses_do_not_look_at_the_fields() {
        let head =
            Head::parse(b"HTTP/1.1 204 No\r\nContent-Length: x\r\nTransfer-Encoding: y\r\n\r\n", 9).expect("readable");
        for (method, status) in [(Method::Head, 200), (Method::Get, 204), (Method::Get, 304)] {
            let plan = plan(method, status, 1, &head.headers).expect("no body, no framing to get wrong");
            assert_eq!((plan.extent, plan.persistent), (Extent::Nothing, true));
        }
    }

    #[test]
    fn connections() {
        assert_eq!(of("Content-Length: 1\r\nConnection: foo, CLOSE\r\n"), Ok((Extent::Bytes(1), false)));
        let head = Head::parse(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n\r\n", 9)
            .expect("readable");
        assert!(plan(Method::Get, 200, 0, &head.headers).is_ok_and(|plan| plan.persistent));
        let head = Head::parse(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", 9).expect("readable");
        assert!(plan(Method::Get, 200, 0, &head.headers).is_ok_and(|plan| !plan.persistent));
    }
}
