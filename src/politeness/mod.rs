//! Politeness: when a host and an address may be asked again.
//!
//! Decides: three questions, apart from everything else the frontier does. [`HostPace`] says when a host may be asked:
//! its delay, Crawl-delay, Retry-After. [`FailureStreak`] says how long an origin rests that fails, and when it is given
//! up. The [`Ledger`] says when an address may be asked, whichever host and shard the request is for; what counts as one
//! address is a [`Key`].
//! Invariants: values and functions of (state, outcome, now); no clock, no socket.
//! Leaves to others: which URL is fetched (`frontier`), and outages of our own network (`control`).

mod key;
pub mod ledger;
mod pace;
mod streak;

pub use key::Key;
pub use ledger::{HOLD_SLACK, Ledger};
pub use pace::{GivenUp, HostPace, Try, backoff, is_overload, rest_asked};
pub use streak::FailureStreak;
