//! The claims that one request needs at the same time: on its site, its address, its address's operator, and its
//! host, if several shards have URLs of that.
//!
//! Decides: all are granted or none. If one is refused, those granted before it are released as they were. The order
//! is always the same. A host's claim is released separately, once it is known how long the host must rest.
//! Leaves to others: which are needed (`frontier`), the queues for them (`frontier::slots`).

use super::key::ClaimKey;
use super::ledger::Ledger;
use ringcrawl_base::time::{Duration, Instant};

/// Keys to claim, each with its pause after the request. A host's is how much longer it must have been free before the
/// request, because this shard may know of a longer delay than others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Claims([Option<(ClaimKey, Duration)>; 4]);

/// A claim that was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefusedClaim {
    /// The key that refused it.
    pub key: ClaimKey,
    /// When it becomes free; `None` while a request is in flight, because its end is unknown.
    pub until: Option<Instant>,
}

impl Claims {
    /// The claims on a host, a site, an address and a group, each with its pause after a request. A claim with no pause
    /// is dropped, but a host gets one request at a time, whatever its delay.
    pub fn new(claims: [Option<(ClaimKey, Duration)>; 4]) -> Claims {
        Claims(
            claims
                .map(|claim| claim.filter(|(key, pause)| *pause > Duration::ZERO || matches!(key, ClaimKey::Host(_)))),
        )
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = ClaimKey> {
        self.0.into_iter().flatten().map(|(key, _)| key)
    }

    /// Claims all of them for a request that ends by `hold_until`. One that the caller `may` not look at is refused.
    ///
    /// # Errors
    /// The first that is refused; then none is granted.
    pub fn claim(
        &self,
        ledger: &Ledger,
        now: Instant,
        hold_until: Instant,
        may: impl Fn(ClaimKey) -> bool,
    ) -> Result<(), RefusedClaim> {
        for (count, (key, pause)) in self.0.into_iter().flatten().enumerate() {
            let longer = if matches!(key, ClaimKey::Host(_)) { pause } else { Duration::ZERO };
            let claim = if may(key) { ledger.claim(key, now - longer, hold_until) } else { Err(None) };
            if let Err(until) = claim.map_err(|until| until.map(|until| until + longer)) {
                self.keys().take(count).for_each(|key| ledger.release(key, hold_until, now));
                return Err(RefusedClaim { key, until });
            }
        }
        Ok(())
    }

    /// The request that claimed them has ended; its claim on the host stays. If the request met an interstitial,
    /// the operator rests longer, because its other machines would count the next request against us as well.
    pub fn release(&self, ledger: &Ledger, now: Instant, hold_until: Instant, met_interstitial: bool) {
        for (key, pause) in self.0.iter().flatten().filter(|(key, _)| !matches!(key, ClaimKey::Host(_))) {
            let times = if met_interstitial && matches!(key, ClaimKey::Group(_)) { INTERSTITIAL_PAUSES } else { 1 };
            ledger.release(*key, hold_until, now + *pause * times);
        }
    }

    /// The outcome of the request is known: its host, if that was claimed, may get the next request at `free_from`.
    pub fn release_host(&self, ledger: &Ledger, hold_until: Instant, free_from: Instant) {
        for key in self.keys().filter(|key| matches!(key, ClaimKey::Host(_))) {
            ledger.release(key, hold_until, free_from);
        }
    }
}

impl Claims {
    /// A request whose claims were released has met an interstitial: the operator rests longer from now on, unless
    /// another request has begun there.
    pub fn rest_after_interstitial(&self, ledger: &Ledger, now: Instant) {
        for (key, pause) in self.0.iter().flatten().filter(|(key, _)| matches!(key, ClaimKey::Group(_))) {
            // It may be in its usual delay already: that ends soon, and the next request meets the interstitial.
            if ledger.claim(*key, now, now + *pause).is_ok() {
                ledger.release(*key, now + *pause, now + *pause * INTERSTITIAL_PAUSES);
            }
        }
    }
}

/// How many times its delay an operator's slot rests after an interstitial. Its host rests for much longer;
/// anyone can put one up at an operator's machine, and must not stop all others there.
const INTERSTITIAL_PAUSES: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_url::SiteKey;

    #[test]
    fn all_are_claimed_or_none() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let ledger = Ledger::new(64);
        let address = ClaimKey::from(std::net::IpAddr::from([192, 0, 2, 1]));
        let claims = |host, address_pause| {
            let site = ClaimKey::Site(SiteKey::of_host(7, host));
            let pause = Duration::from_millis;
            Claims::new([None, Some((site, pause(50))), Some((address, pause(address_pause))), None])
        };
        let (first, second) = (claims("a.test", 20), claims("b.test", 20));
        assert_eq!(first.claim(&ledger, at(0), at(100), |_| true), Ok(()));
        let taken = second.claim(&ledger, at(1), at(100), |_| true);
        assert_eq!(taken, Err(RefusedClaim { key: address, until: None }));
        first.release(&ledger, at(10), at(100), true);
        let taken = second.claim(&ledger, at(11), at(100), |_| true);
        assert_eq!(taken.map_err(|taken| taken.until.is_some_and(|until| until >= at(30))), Err(true));
        assert_eq!(second.claim(&ledger, at(31), at(130), |_| true), Ok(()), "its site was given back each time");
        second.release(&ledger, at(40), at(130), false);
        // The site's pause is longer than the address's.
        assert!(claims("a.test", 0).claim(&ledger, at(59), at(160), |_| true).is_err_and(|taken| taken.key != address));
        let may = |key| key != address;
        assert_eq!(first.claim(&ledger, at(61), at(160), may), Err(RefusedClaim { key: address, until: None }));
        assert_eq!(first.claim(&ledger, at(62), at(160), |_| true), Ok(()));
    }

    #[test]
    fn a_wall_slows_its_operator_and_no_address() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let (ledger, pause) = (Ledger::new(64), Duration::from_millis(10));
        let address = ClaimKey::from(std::net::IpAddr::from([192, 0, 2, 1]));
        let claims = Claims::new([None, None, Some((address, pause)), Some((ClaimKey::Group(5), pause))]);
        assert_eq!(claims.claim(&ledger, at(0), at(100), |_| true), Ok(()));
        claims.release(&ledger, at(0), at(100), true);
        let taken = claims.claim(&ledger, at(11), at(100), |_| true).expect_err("the group rests");
        assert!(
            taken.key == ClaimKey::Group(5) && taken.until.is_some_and(|until| until >= at(160) && until < at(161))
        );
    }
}
