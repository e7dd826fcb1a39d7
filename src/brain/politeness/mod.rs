//! Politeness: when a host, a site, an address and an operator may be asked again.
//!
//! Decides: three questions, apart from everything else the frontier does. [`HostPace`] says when a host may be asked:
//! its delay, Crawl-delay, Retry-After. [`KindRest`] says when one kind of its URLs may that complains alone. [`FailureStreak`] says how long an origin rests that fails, and when it is given
//! up. The [`Ledger`] says when a site, an address or an operator's group may be asked, whichever host and shard the request is
//! for; what counts as one of them is a [`Key`], and a request needs its [`Turns`] of all at once.
//! Invariants: values and functions of (state, outcome, now); no clock, no socket.
//! Leaves to others: which URL is fetched (`frontier`), and outages of our own network (`control`).

mod caution;
mod key;
mod kind_rest;
pub mod ledger;
pub mod pace;
mod retries;
mod streak;
mod turns;

pub use caution::{Caution, Complaint};
pub use key::Key;
pub use kind_rest::{FineKinds, KindOfUrl, KindRest};
pub use ledger::{HOLD_SLACK, Ledger};
pub use pace::{GivenUp, HostPace, Try, is_overload};
pub use retries::{Retries, RetryClass};
pub use streak::FailureStreak;
pub use turns::{TakenTurn, Turns};
