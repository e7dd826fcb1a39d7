//! What is known of hosts: which are in memory, where each stands, when it may be queried, and how it does.
//!
//! Decides: who is admitted and who is forgotten ([`table`]); what an outcome says about a host, its origins and its
//! kinds of URLs ([`failures`], [`origin`]); its addresses ([`resolution`]); which jobs of it may be in flight at once
//! ([`under_way`]); what the log must know of it in the next run ([`health`], [`rests`]).
//! Invariants: a host's state changes in the table alone, which counts.
//! Leaves to others: where hosts wait for their turn ([`super::slots`]).

mod addresses;
mod counted_kinds;
mod failure_history;
mod failures;
mod health;
mod host;
mod leave;
mod origin;
mod resolution;
mod rests;
mod review;
mod state;
mod table;
mod under_way;
mod vitals;
mod way;

pub use counted_kinds::{CountedKinds, KindMemory};
pub use failures::{Blame, Meaning, is_no_robots_txt, kind_of};
pub use health::HostNotes;
pub use host::{Host, Standing};
pub use leave::Leave;
pub use origin::{Origin, RobotsVerdict, RulesStep};
pub use resolution::{LookupRequest, REFRESH_PATIENCE};
pub use rests::Rest;
pub use review::Review;
pub use state::{HostState, wait_for_claim};
pub use table::HostTable;
pub(crate) use table::host_key;
