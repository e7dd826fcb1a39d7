//! Politeness: when a host, a site, an address and an operator may get the next request.
//!
//! Decides: four questions, separate from everything else the frontier does. [`HostPace`] says when a host may get a
//! request: its delay, Crawl-delay, Retry-After. [`KindRest`] says when one kind of its URLs may, if that kind alone
//! complains. [`FailureStreak`] says how long a failing origin rests, and when it is given up. The [`Ledger`] says
//! when a site, an address or an operator's group may get a request, whichever host and shard the request is for; a
//! [`ClaimKey`] is what counts as one of them, and a request needs all its [`Claims`] at once. A connection to a
//! further address has a [`FurtherClaim`].
//! Invariants: values and functions of (state, outcome, now); no clock, no socket.
//! Leaves to others: which URL is fetched (`frontier`), and outages of our own network (`control`).

mod caution;
mod claims;
mod further;
mod key;
mod kind_rest;
pub mod ledger;
pub mod pace;
mod retries;
mod streak;

pub use caution::{Caution, Complaint};
pub use claims::{Claims, RefusedClaim};
pub use further::FurtherClaim;
pub use key::ClaimKey;
pub use kind_rest::{FineKinds, KindOfUrl, KindRest};
pub use ledger::{HOLD_SLACK, Ledger};
pub use pace::{GivenUp, HostPace, Try, is_overload};
pub use retries::{Retries, RetryClass};
pub use streak::FailureStreak;
