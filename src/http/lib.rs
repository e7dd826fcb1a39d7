//! HTTP/1.1 from the client's side, without a socket: bytes in, facts out.
//!
//! Decides: the bytes of a request (`request`), where a response's head begins and ends and what its lines mean
//! (`opening`, `head`, `headers`), how long its body is (`framing`, `chunked`), how a response is read piece by piece
//! (`response`), how content codings are decoded within limits (`coding`), when to retry (`date`), which validators
//! to send (`validators`), how to log in (`credentials`), which cookies to send back (`cookie`).
//!
//! Why so: a parser without a socket is tested and simulated without one. A crawler must read what browsers and curl
//! read, so the head is parsed leniently; the rules for where a message *ends* are strict, because a mistake there
//! hands one response's bytes to another URL.
//!
//! Invariants: no byte from the network can panic; the result does not depend on how the bytes are split;
//! time is linear in the bytes; memory is bounded by `Limits`, never by what a header announces.
//!
//! Limits: only HTTP/1.0 and 1.1; one response at a time (no pipelining); no upgrade.
//!
//! Leaves to others: connections, deadlines, redirects (`fetch`); what is stored (`warc`).
//!
//! ```
//! use ringcrawl_http::{Limits, Method, ResponseReader};
//!
//! let mut reader = ResponseReader::new(Method::Get, Limits::default());
//! reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("HTTP");
//! let response = reader.into_response().expect("a head");
//! assert_eq!((response.status, &response.body[..]), (200, &b"ok"[..]));
//! ```

mod chunked;
mod coding;
mod cookie;
mod credentials;
mod date;
mod framing;
mod freshness;
mod head;
mod headers;
mod opening;
mod redirect;
mod request;
mod response;
mod validators;

pub use coding::{
    CodingProblem, Decoded, Decoder, TRANSFER_BYTES_MAX, claimed_bytes, decode_content, gunzip, is_coded_twice,
};
pub use cookie::{CookieLimits, Jar};
pub use credentials::{basic, without_credentials};
pub use date::{http_date, retry_after};
pub use freshness::fresh_for;
pub use head::status_of_head;
pub use headers::Headers;
pub use redirect::redirect_target;
pub use request::{Method, Request, connect_request};
pub use response::{Framing, HttpError, Progress, Response, ResponseReader};
pub use validators::Validators;

/// Limits on one response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of status line and header fields together; interim (1xx) heads count, and trailers have the same limit
    /// again.
    pub header_bytes_max: usize,
    /// Number of header fields.
    pub header_count_max: usize,
    /// Bytes of the body after transfer decoding, before content decoding.
    pub body_wire_bytes_max: usize,
    /// Bytes of the body after content decoding.
    pub body_bytes_max: usize,
    /// How many times longer decoding may make a body; content below 1 MiB is exempt.
    pub decode_ratio_max: usize,
    /// Number of interim (1xx) responses before the final one.
    pub interim_count_max: usize,
}

impl Default for Limits {
    /// Those of the crawler's `[fetch]` table, by default.
    fn default() -> Limits {
        Limits {
            header_bytes_max: 64 << 10,
            header_count_max: 256,
            body_wire_bytes_max: 8 << 20,
            body_bytes_max: 16 << 20,
            decode_ratio_max: 200,
            interim_count_max: 16,
        }
    }
}
