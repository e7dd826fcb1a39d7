//! What each host waits for, and how many hosts wait for what.
//!
//! Decides: a host's wait is determined when its state changes, and counted there ([`super::host_table`]). A host
//! that waits for several things counts for the one that its state names: the last one that it must get past.
//! Leaves to others: how long nothing is done (`pump`).

use super::host::{Host, State};
use crate::job::JobKind;
use crate::politeness::Key;
use crate::waits::Wait;
use ringcrawl_config::Politeness;

impl Host {
    /// What it waits for in this state; `None`: nothing waits for it. A parked host waits for a name unless stated
    /// otherwise.
    pub fn wait_in(&self, state: State, politeness: &Politeness) -> Option<Wait> {
        match state {
            State::Idle | State::Resting(_) => None,
            State::Ready => Some(Wait::InFlight),
            State::Waiting(at) if self.leave.is_some_and(|leave| leave.is_until(at)) => Some(Wait::Allowance),
            State::Waiting(at) if at > self.pace.not_before() && self.under_way.refreshing().is_some() => {
                Some(Wait::Names)
            }
            State::Waiting(at) if at > self.pace.not_before() => Some(Wait::Retries),
            State::Waiting(_) => Some(self.pace.wait(politeness)),
            State::Parked => Some(Wait::Names),
            State::Busy | State::Emptied => Some(match self.under_way.preparing() {
                Some(JobKind::Resolve) => Wait::Names,
                Some(JobKind::Robots) => Wait::Robots,
                _ => Wait::Responses,
            }),
            State::Reading => Some(Wait::Disk),
        }
    }
}

/// The wait for a key's turn.
pub fn of_turn(key: Key) -> Wait {
    match key {
        Key::Host(_) => Wait::OtherShards,
        Key::Site(_) => Wait::SiteDelay,
        Key::Ipv4(_) | Key::Ipv6Net(_) => Wait::AddressDelay,
        Key::Group(_) => Wait::OperatorDelay,
    }
}
