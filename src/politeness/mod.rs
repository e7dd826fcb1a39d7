//! Politeness: when a host and an address may be asked again.
//!
//! Decides: two questions, apart from everything else the frontier does. [`HostPace`] says when a host may be asked:
//! its delay, Crawl-delay, Retry-After, the rest after failures, and when it is given up. The [`Ledger`] says when an
//! address may be asked, whichever host and shard the request is for.
//! Invariants: values and functions of (state, outcome, now); no clock, no socket.
//! Leaves to others: which URL is fetched (`frontier`), and outages of our own network (`control`).

pub mod ledger;
mod pace;

pub use ledger::{HOLD_SLACK, Ledger};
pub use pace::{FailureRecord, GivenUp, HostPace, Try, backoff, is_overload, rest_asked};
