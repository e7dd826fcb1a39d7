//! An HTTP transaction: one request, its response, and how they crossed the wire.
//!
//! The hands bring this home and the brain reads it: facts alone, without any decision.

use std::net::IpAddr;

use ringcrawl_base::time::{Duration, UnixTime};
use ringcrawl_http as http;

/// One request and its response.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The response; `truncated` is set if it is incomplete.
    pub response: http::Response,
    /// The request as sent, except for credentials, which are replaced by a word.
    pub request_bytes: Vec<u8>,
    /// The peer's address; `None` if a proxy looked it up.
    pub ip: Option<IpAddr>,
    /// When it began, by the wall clock.
    pub started: UnixTime,
    /// How long its parts took.
    pub timings: Timings,
    /// The connection had been used before.
    pub reused: bool,
    /// The TLS in use; `None` over plain HTTP.
    pub tls: Option<TlsInfo>,
    /// Over TLS.
    pub secure: bool,
    /// The connection was reset or broke in TLS before the body's end.
    pub reset: bool,
    /// The body was cut because it came more slowly than `fetch.rate_min`.
    pub slow: bool,
    /// The body was cut because bodies in flight held all their memory (`crawl.ram_bytes_max`).
    pub crowded_out: bool,
    /// Unknown bytes followed the response.
    pub excess: bool,
}

impl Transaction {
    /// The one in which `response` came, over a new connection without TLS, at the beginning of 1970.
    pub fn plain(response: http::Response) -> Transaction {
        Transaction {
            response,
            request_bytes: Vec::new(),
            ip: None,
            started: UnixTime::from_micros(0),
            timings: Timings::default(),
            reused: false,
            tls: None,
            secure: false,
            reset: false,
            slow: false,
            crowded_out: false,
            excess: false,
        }
    }
}

/// How long the parts of a transaction took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// TCP connect; zero when reused.
    pub connect: Duration,
    /// TLS handshake; zero when reused or plain.
    pub tls: Duration,
    /// From the request to the first byte of the response.
    pub first_byte: Duration,
    /// From the beginning to the last byte.
    pub total: Duration,
    /// The part of this that it was held up by our own lack of memory.
    pub waited: Duration,
}

/// What is known of a connection's TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsInfo {
    /// `TLSv1_2` or `TLSv1_3`.
    pub version: &'static str,
    /// Cipher suite by its IANA name.
    pub cipher: &'static str,
    /// The defect of the certificate; only with `tls.certificates = "record"`.
    pub certificate_error: Option<String>,
}
