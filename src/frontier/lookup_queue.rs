//! Turns at the name servers.
//!
//! Decides: at most `dns.in_flight_max` names are asked for at once; hosts that need one wait in a row, with turns that go
//! round by site. A site has at most [`TIMES_FREE`] as many places as are free ([`SiteShares`]), so that the names of one
//! domain, whose name servers may be silent, leave places for others. Names that nobody answers for hold these places and
//! no place of a fetch.

use super::site_turns::SiteTurns;
use super::{SHARE_PLACES, TIMES_FREE};
use crate::outcome::HostId;
use crate::site_shares::SiteShares;
use crate::url::SiteKey;

/// Who is asked for, and who waits.
#[derive(Debug)]
pub struct LookupQueue {
    waiting: SiteTurns,
    shares: SiteShares,
    in_flight: usize,
    in_flight_max: usize,
    /// Nobody who waits could have a place when last looked, and nothing has changed since.
    is_held_up: bool,
}

impl LookupQueue {
    /// Nobody, and room for `in_flight_max` lookups at once.
    pub fn new(in_flight_max: usize) -> LookupQueue {
        LookupQueue {
            waiting: SiteTurns::default(),
            shares: SiteShares::new(SHARE_PLACES, TIMES_FREE),
            in_flight: 0,
            in_flight_max,
            is_held_up: false,
        }
    }

    /// Lookups in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether a host waits whose turn it may be.
    pub fn is_ready(&self) -> bool {
        self.free() > 0 && !self.is_held_up && !self.waiting.is_empty()
    }

    /// The host whose turn it is.
    pub fn next(&mut self) -> Option<HostId> {
        if !self.is_ready() {
            return None;
        }
        let free = self.free();
        let next = self.waiting.pop_of(|site| self.shares.may_take(site, free));
        self.is_held_up = next.is_none();
        next
    }

    /// Takes a place for a lookup of host `id`, or puts it behind the others that wait; whether it has one.
    pub fn begin(&mut self, site: SiteKey, id: HostId) -> bool {
        if !self.shares.may_take(site, self.free()) {
            self.waiting.push(site, id);
            self.is_held_up = false;
            return false;
        }
        self.shares.took(site);
        self.in_flight += 1;
        true
    }

    /// Host `id` waits no more; whether it did.
    pub fn leave(&mut self, site: SiteKey, id: HostId) -> bool {
        self.waiting.remove(site, id)
    }

    /// A lookup of a host of `site` ended.
    pub fn ended(&mut self, site: SiteKey) {
        self.shares.gave_back(site);
        self.in_flight -= 1;
        self.is_held_up = false;
    }

    fn free(&self) -> u64 {
        self.in_flight_max.saturating_sub(self.in_flight) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: u32) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    /// Names of one domain that nobody answers for: others are asked for all the same.
    #[test]
    fn one_domain_leaves_places_for_others() {
        let mut lookups = LookupQueue::new(16);
        let started = (0..40_000).filter(|id| lookups.begin(site(0), *id)).count();
        assert_eq!((started, lookups.next(), lookups.is_ready()), (12, None, false), "a quarter is left");
        assert!((1..5).all(|number| lookups.begin(site(number), 100_000 + number)));
        assert!(!lookups.begin(site(5), 100_005) && !lookups.is_ready(), "nothing is left");
        // A place is free: it is not of the domain, which waits with 40,000 names.
        lookups.ended(site(1));
        assert_eq!((lookups.next(), lookups.begin(site(5), 100_005)), (Some(100_005), true));
        assert_eq!((lookups.in_flight(), lookups.next()), (16, None));
        (0..12).for_each(|_| lookups.ended(site(0)));
        assert_eq!(lookups.next(), Some(12));
    }
}
