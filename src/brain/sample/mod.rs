//! Responses for tests and benches: from their bytes, and the most expensive ones to read.

mod dear_responses;

use crate::transaction::Transaction;
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
    Transaction::plain(reader.into_response().expect("a response"))
}
