//! Where a host stands.

use crate::politeness::ClaimKey;
use crate::waits::Wait;
use ringcrawl_base::time::Instant;

/// Where a host stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostState {
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

impl HostState {
    /// Whether new work puts it back into the calendar.
    pub fn may_be_woken(self) -> bool {
        matches!(self, HostState::Idle | HostState::Waiting(_) | HostState::Resting(_) | HostState::Emptied)
    }
}

/// The wait for a claim on a key.
pub fn wait_for_claim(key: ClaimKey) -> Wait {
    match key {
        ClaimKey::Host(_) => Wait::OtherShards,
        ClaimKey::Site(_) => Wait::SiteDelay,
        ClaimKey::Ipv4(_) | ClaimKey::Ipv6Net(_) => Wait::AddressDelay,
        ClaimKey::Group(_) => Wait::OperatorDelay,
    }
}
