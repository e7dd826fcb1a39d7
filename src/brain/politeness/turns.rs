//! The turns that one request needs at the same time: of its site, of its address, of its address's operator, and of its host, where
//! several shards have URLs of that.
//!
//! Decides: all are claimed or none; what was claimed before one that is taken is given back as it was. The order is
//! always the same. A host's turn is given back apart, when it is known how long the host is to be left alone.
//! Leaves to others: which are needed (`frontier`), who waits for them (`frontier::turn_queues`).

use super::key::Key;
use super::ledger::Ledger;
use ringcrawl_base::time::{Duration, Instant};

/// Keys, each with how long it stays free after the request; a host's with how much longer it must have been free before it, as this
/// shard knows of a longer delay than others may.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turns([Option<(Key, Duration)>; 4]);

/// A turn is taken, or not to be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TakenTurn {
    /// Which.
    pub key: Key,
    /// From when on it is free; `None` when a request is under way, whose end nobody knows.
    pub until: Option<Instant>,
}

impl Turns {
    /// Those of a host, a site, an address and a group that are to be left alone for so long after a request; a turn of no time is
    /// none, but of a host there is one request at a time, whatever its delay.
    pub fn new(turns: [Option<(Key, Duration)>; 4]) -> Turns {
        Turns(turns.map(|turn| turn.filter(|(key, pause)| *pause > Duration::ZERO || matches!(key, Key::Host(_)))))
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.0.into_iter().flatten().map(|(key, _)| key)
    }

    /// Claims all of them for a request that ends by `hold_until`, of those that the caller `may` look at.
    ///
    /// # Errors
    /// The first that is taken; then none is claimed.
    pub fn claim(
        &self,
        ledger: &Ledger,
        now: Instant,
        hold_until: Instant,
        may: impl Fn(Key) -> bool,
    ) -> Result<(), TakenTurn> {
        for (count, (key, pause)) in self.0.into_iter().flatten().enumerate() {
            let longer = if matches!(key, Key::Host(_)) { pause } else { Duration::ZERO };
            let claim = if may(key) { ledger.claim(key, now - longer, hold_until) } else { Err(None) };
            if let Err(until) = claim.map_err(|until| until.map(|until| until + longer)) {
                self.keys().take(count).for_each(|key| ledger.release(key, hold_until, now));
                return Err(TakenTurn { key, until });
            }
        }
        Ok(())
    }

    /// The request has ended that claimed them; its host's stays claimed. Whether it met a wall: then the operator is left alone for
    /// longer, as its other machines would count the next request against us as well.
    pub fn release(&self, ledger: &Ledger, now: Instant, hold_until: Instant, met_wall: bool) {
        for (key, pause) in self.0.iter().flatten().filter(|(key, _)| !matches!(key, Key::Host(_))) {
            let times = if met_wall && matches!(key, Key::Group(_)) { WALL_PAUSES } else { 1 };
            ledger.release(*key, hold_until, now + *pause * times);
        }
    }

    /// What came of the request is known: its host, if that has a turn, may be asked again at `free_from`.
    pub fn release_host(&self, ledger: &Ledger, hold_until: Instant, free_from: Instant) {
        for key in self.keys().filter(|key| matches!(key, Key::Host(_))) {
            ledger.release(key, hold_until, free_from);
        }
    }
}

impl Turns {
    /// A request whose turns were given back has met a wall: the operator is left alone for longer from now on, unless another
    /// request has begun there.
    pub fn rest_after_wall(&self, ledger: &Ledger, now: Instant) {
        for (key, pause) in self.0.iter().flatten().filter(|(key, _)| matches!(key, Key::Group(_))) {
            // It may rest already, which is its usual delay: that is over soon, and the next one meets the wall in turn.
            if ledger.claim(*key, now, now + *pause).is_ok() {
                ledger.release(*key, now + *pause, now + *pause * WALL_PAUSES);
            }
        }
    }
}

/// How many times its delay an operator's slot is left alone after a wall. Its host rests for much longer; anybody can put up a
/// wall at an operator's machine, and must not stop all others there.
const WALL_PAUSES: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_url::SiteKey;

    #[test]
    fn all_are_claimed_or_none() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let ledger = Ledger::new(64);
        let address = Key::from(std::net::IpAddr::from([192, 0, 2, 1]));
        let turns = |host, address_pause| {
            let site = Key::Site(SiteKey::of_host(7, host));
            let pause = Duration::from_millis;
            Turns::new([None, Some((site, pause(50))), Some((address, pause(address_pause))), None])
        };
        let (first, second) = (turns("a.test", 20), turns("b.test", 20));
        assert_eq!(first.claim(&ledger, at(0), at(100), |_| true), Ok(()));
        let taken = second.claim(&ledger, at(1), at(100), |_| true);
        assert_eq!(taken, Err(TakenTurn { key: address, until: None }));
        first.release(&ledger, at(10), at(100), true);
        let taken = second.claim(&ledger, at(11), at(100), |_| true);
        assert_eq!(taken.map_err(|taken| taken.until.is_some_and(|until| until >= at(30))), Err(true));
        assert_eq!(second.claim(&ledger, at(31), at(130), |_| true), Ok(()), "its site was given back each time");
        second.release(&ledger, at(40), at(130), false);
        // The site's pause is longer than the address's.
        assert!(turns("a.test", 0).claim(&ledger, at(59), at(160), |_| true).is_err_and(|taken| taken.key != address));
        let may = |key| key != address;
        assert_eq!(first.claim(&ledger, at(61), at(160), may), Err(TakenTurn { key: address, until: None }));
        assert_eq!(first.claim(&ledger, at(62), at(160), |_| true), Ok(()));
    }

    #[test]
    fn a_wall_slows_its_operator_and_no_address() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let (ledger, pause) = (Ledger::new(64), Duration::from_millis(10));
        let address = Key::from(std::net::IpAddr::from([192, 0, 2, 1]));
        let turns = Turns::new([None, None, Some((address, pause)), Some((Key::Group(5), pause))]);
        assert_eq!(turns.claim(&ledger, at(0), at(100), |_| true), Ok(()));
        turns.release(&ledger, at(0), at(100), true);
        let taken = turns.claim(&ledger, at(11), at(100), |_| true).expect_err("the group rests");
        assert!(taken.key == Key::Group(5) && taken.until.is_some_and(|until| until >= at(160) && until < at(161)));
    }
}
