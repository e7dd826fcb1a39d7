//! Responses, read.

use super::*;
use crate::http::{Limits, Method, Progress, ResponseReader};
use crate::lab::page_job;
use crate::outcome::Blemish;
use crate::time::UnixTime;
use crate::transaction::Timings;

/// The transaction in which `bytes` came, over a connection that then closed.
fn transaction(bytes: &[u8]) -> Transaction {
    let mut reader = ResponseReader::new(Method::Get, Limits::from(&Config::default().fetch));
    let mut rest = bytes;
    while !rest.is_empty() && matches!(reader.feed(&mut rest), Progress::More) {}
    Transaction {
        response: reader.end_of_stream().expect("a response"),
        request_bytes: Vec::new(),
        ip: None,
        started: UnixTime::from_micros(0),
        timings: Timings::default(),
        reused: false,
        tls: None,
        secure: false,
        reset: false,
        slow: false,
        excess: false,
    }
}
