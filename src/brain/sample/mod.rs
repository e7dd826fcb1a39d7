//! Responses for tests and benches: from their bytes, and the most expensive ones to read.

mod dear_responses;

use crate::transaction::{Timings, Transaction};
use ringcrawl_base::time::UnixTime;
use ringcrawl_http::{Limits, Method, ResponseReader};

pub use dear_responses::{dear_responses, dear_robots};

/// The transaction in which `bytes` came as a whole response, over a connection without TLS that then closed.
///
/// # Panics
///
/// Panics if `bytes` are not HTTP.
pub fn plain_transaction(bytes: &[u8], limits: Limits) -> Transaction {
    let mut reader = ResponseReader::new(Method::Get, limits);
    reader.feed(bytes).expect("HTTP");
    reader.end_of_stream().expect("a whole head");
    Transaction {
        response: reader.into_response().expect("a response"),
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
