//! An outage of our own network: what is out of reach, since when, and in words.
//!
//! Leaves to others: when one begins and ends, and when something is tried in it ([`super::breaker`]).

use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::shard::OutOfReach;

/// An outage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// What is out of reach.
    pub cause: Cause,
    /// Since when.
    pub since: Instant,
    /// It had seemed to end.
    pub is_again: bool,
    /// What it cuts us off from.
    pub out_of_reach: OutOfReach,
    /// When a site answered last, to the extent that it matters.
    pub(super) answered: Instant,
    /// When it was noticed: requests that began before may still be answered.
    pub(super) opened: Instant,
    /// The time from which its duration counts.
    pub(super) counted: Instant,
    pub(super) next_probe: Instant,
    pub(super) interval: Duration,
}

/// What is out of reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Every name server, or its upstreams.
    NameServers {
        /// They respond, but with errors.
        have_errors: bool,
    },
    /// This many of this many sites that were asked last.
    Sites {
        /// Those that did not answer.
        failed: usize,
        /// All of them.
        of: usize,
    },
    /// The proxy.
    Proxy,
    /// Everything: there is no default route.
    Route,
}

impl Outage {
    /// What is wrong, and for how long by `now`: "no name server has answered for 42 s".
    pub fn describe(&self, now: Instant) -> String {
        let seconds = now.since(self.since).as_secs();
        let words = match self.cause {
            Cause::NameServers { have_errors: true } => {
                format!("the name servers have returned only errors for {seconds} s")
            }
            Cause::NameServers { have_errors: false } => format!("no name server has answered for {seconds} s"),
            Cause::Sites { failed, of } => {
                format!("the network has been down for {seconds} s: {failed} of the last {of} sites failed")
            }
            Cause::Proxy => format!("the proxy has been unreachable for {seconds} s"),
            Cause::Route => format!("there has been no default route for {seconds} s"),
        };
        let but = if self.out_of_reach == OutOfReach::Names { ": hosts with known addresses continue" } else { "" };
        words + but
    }
}
