//! The claim on a further address of a fetch, to which it connects when the first does not answer (RFC 8305).
//!
//! Decides: which claim a further address needs. The claim on the first address covers those with the same
//! [`ClaimKey`]; where requests to an address have no delay, none is kept. It lasts as long as that of the fetch, and
//! leaves the usual delay behind.
//! Leaves to others: which addresses there are, and in which order (`frontier`); when one is tried (`fetch::dial`).

use std::net::IpAddr;

use super::{ClaimKey, HOLD_SLACK, Ledger};
use ringcrawl_base::time::{Duration, Instant};

/// The claim that a fetch needs on a further address.
#[derive(Clone, Copy, Debug)]
pub struct FurtherClaim {
    ip: IpAddr,
    hold_until: Instant,
    pause: Duration,
}

impl FurtherClaim {
    /// For a fetch that has claimed `first` and ends by `deadline`; `None` if it needs no claim on `ip`. Requests to an
    /// address are `pause` apart.
    pub fn new(first: IpAddr, ip: IpAddr, deadline: Instant, pause: Duration) -> Option<FurtherClaim> {
        let is_needed = !pause.is_zero() && ClaimKey::from(ip) != ClaimKey::from(first);
        is_needed.then(|| FurtherClaim { ip, hold_until: deadline + HOLD_SLACK, pause })
    }

    /// Takes the address, if it is free; returns whether the claim was granted.
    pub fn take(&self, ledger: &Ledger, now: Instant) -> bool {
        ledger.claim(self.ip, now, self.hold_until).is_ok()
    }

    /// Releases it: the exchange is over.
    pub fn release(&self, ledger: &Ledger, now: Instant) {
        ledger.release(self.ip, self.hold_until, now + self.pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fetch_at_a_time_connects_there() {
        let ledger = Ledger::new(16);
        let [first, ip, twin]: [IpAddr; 3] =
            ["192.0.2.1", "192.0.2.2", "::ffff:192.0.2.1"].map(|ip| ip.parse().expect("an address"));
        let (pause, deadline) = (Duration::from_secs(1), Instant::ZERO + Duration::from_secs(30));
        let claim = FurtherClaim::new(first, ip, deadline, pause).expect("another address");
        assert_eq!([claim.take(&ledger, Instant::ZERO), claim.take(&ledger, deadline)], [true, false]);
        claim.release(&ledger, deadline);
        assert_eq!([deadline, deadline + pause].map(|now| claim.take(&ledger, now)), [false, true]);
        assert!(FurtherClaim::new(first, first, deadline, pause).is_none());
        assert!(FurtherClaim::new(first, twin, deadline, pause).is_none(), "the same machine");
        assert!(FurtherClaim::new(first, ip, deadline, Duration::ZERO).is_none());
    }
}
