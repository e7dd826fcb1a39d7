//! Where a host stands.

use crate::politeness::Key;
use crate::waits::Wait;
use ringcrawl_base::time::Instant;

/// Where a host stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing to do.
    Idle,
    /// In the queue of ready hosts.
    Ready,
    /// In the calendar at this instant.
    Waiting(Instant),
    /// Nothing waits, and it is not forgotten before this instant, which is in the calendar: then it may be queried
    /// again.
    Resting(Instant),
    /// Among those that wait for their turn at an address or at the name servers.
    Parked,
    /// A job is in flight, and no other may begin meanwhile.
    Busy,
    /// Jobs are in flight, and nothing else waits.
    Emptied,
    /// A block of the queue is on its way back from disk.
    Reading,
}

impl State {
    /// Whether new work puts it back into the calendar.
    pub fn may_be_woken(self) -> bool {
        matches!(self, State::Idle | State::Waiting(_) | State::Resting(_) | State::Emptied)
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
