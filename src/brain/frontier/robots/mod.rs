//! The contents of robots.txt: rules in memory, files that others were redirected to, and messages about them.
//!
//! Decides: which rules leave memory ([`rules_cache`]), what an outcome says about a file ([`finding`]), who waits for
//! which file ([`files`]), and how shards ask each other ([`message`]).
//! Leaves to others: what a file means for an origin ([`super::hosts::Origin`]), and when it is fetched
//! ([`super::robots_fetch`]).

mod files;
mod finding;
mod message;
mod rules_cache;

pub use files::{ASK_AGAIN, AskOutcome, Asker, Finding, RobotsFiles};
pub use finding::finding_of;
pub use message::{RobotsAnswer, RobotsRequest, RobotsResult};
pub use rules_cache::{CachedRules, Excess, Holder, HolderState};
