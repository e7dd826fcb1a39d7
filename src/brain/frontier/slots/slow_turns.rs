//! Addresses and groups where a turn was slow, and how fast sites were there.
//!
//! Decides: a slow turn is followed by a rest of [`REST_TURNS`] times its length. During it, once any site was fast
//! there, only such sites get turns, and some strangers ([`super::turn_queues`]): slow sites together get at most a
//! fifth of an address's time. What counts is a site's speed at this address: it may be fast at its own and lead to a
//! port of another's that does not respond. Several sites may be slow one after another, each after it was known as
//! fast: rests add up.
//! Limits: at most [`SLOW_MAX`] addresses at a time are remembered as slow, each with the speed of its last
//! [`GUESTS_MAX`] sites, or some more; each shard knows of its own turns.

use std::collections::HashMap;

use crate::politeness::ClaimKey;
use ringcrawl_base::IntMap;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_url::SiteKey;

/// The addresses.
#[derive(Debug, Default)]
pub struct SlowTurns(HashMap<ClaimKey, SlowTurn>);

/// What is known of an address where a turn was slow.
#[derive(Debug)]
pub struct SlowTurn {
    /// The end of the rest.
    rests_until: Instant,
    /// The number of fast turns of each site there, less [`KNOWN_TURNS`] for each slow one: recent sites, and those
    /// before them.
    guests: [IntMap<u8, SiteKey>; 2],
}

impl SlowTurns {
    /// What is known of an address where a turn was slow.
    pub fn at(&self, key: ClaimKey) -> Option<&SlowTurn> {
        self.0.get(&key)
    }

    /// The slow turn that an address rests from.
    pub fn rest(&self, now: Instant, key: ClaimKey) -> Option<&SlowTurn> {
        self.at(key).filter(|slow| slow.rests_until > now)
    }

    /// Whether `site`, which may be slow elsewhere, gets no turn there now.
    pub fn must_rest(&self, now: Instant, key: ClaimKey, site: SiteKey, is_slow: bool) -> bool {
        self.rest(now, key).is_some_and(|slow| slow.is_wanted() && !slow.was_fast(site).unwrap_or(!is_slow))
    }

    /// A fast turn of `site` has ended. Returns whether slow sites rest now.
    pub fn fast_turn_ended(&mut self, now: Instant, key: ClaimKey, site: SiteKey) -> bool {
        self.0.get_mut(&key).is_some_and(|slow| {
            slow.note(site, true);
            slow.rests_until > now
        })
    }

    /// A slow turn of `site` has ended, after it `lasted` this long. Returns whether slow sites rest now.
    pub fn slow_turn_ended(&mut self, now: Instant, key: ClaimKey, site: SiteKey, lasted: Duration) -> bool {
        if self.0.len() >= SLOW_MAX {
            self.0.retain(|_, slow| slow.rests_until > now);
        }
        if self.0.len() >= SLOW_MAX && !self.0.contains_key(&key) {
            return false;
        }
        let slow = self.0.entry(key).or_insert_with(|| SlowTurn::new(now));
        slow.rests_until = (slow.rests_until.max(now) + lasted * REST_TURNS).min(now + REST_MAX);
        slow.note(site, false);
        slow.is_wanted()
    }
}

impl SlowTurn {
    fn new(rests_until: Instant) -> SlowTurn {
        SlowTurn { rests_until, guests: Default::default() }
    }

    /// Whether `site` was fast; `None`: it had no turn there.
    pub fn was_fast(&self, site: SiteKey) -> Option<bool> {
        self.fast_turns(site).map(|turns| turns > 0)
    }

    /// Whether `site` was fast often enough to get its full time while others wait.
    pub fn knows(&self, site: SiteKey) -> bool {
        self.fast_turns(site).is_some_and(|turns| turns >= KNOWN_TURNS)
    }

    /// Whether any site was fast.
    pub fn is_wanted(&self) -> bool {
        self.guests.iter().flat_map(|guests| guests.values()).any(|turns| *turns > 0)
    }

    fn fast_turns(&self, site: SiteKey) -> Option<u8> {
        self.guests.iter().find_map(|guests| guests.get(&site).copied())
    }

    fn note(&mut self, site: SiteKey, was_fast: bool) {
        let before = self.fast_turns(site).unwrap_or(0);
        // A site that was fast for long and is slow once does not rest the way sites that drip do.
        let turns = if was_fast { before.saturating_add(1) } else { before.saturating_sub(KNOWN_TURNS) };
        let [lately, before] = &mut self.guests;
        if lately.len() >= GUESTS_MAX && !lately.contains_key(&site) {
            *before = std::mem::take(lately);
        }
        lately.insert(site, turns);
    }
}

/// The rest after a slow turn lasts this many times as long as the turn.
const REST_TURNS: u32 = 4;
/// Upper bound on one rest.
const REST_MAX: Duration = Duration::from_secs(3_600);
/// After this many fast turns at an address where others were slow, a site gets its full time there while others
/// wait.
const KNOWN_TURNS: u8 = 16;
/// Addresses with slow turns that are remembered, and sites that had turns there, at most twice as many: nine
/// megabytes at worst.
const SLOW_MAX: usize = 2_048;
const GUESTS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: u32) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    fn none() -> SlowTurn {
        SlowTurn::new(Instant::ZERO)
    }

    #[test]
    fn one_slow_turn_among_many_is_forgiven() {
        let mut turn = none();
        (0..40).for_each(|_| turn.note(site(1), true));
        let after = [0; 3].map(|_| {
            turn.note(site(1), false);
            turn.fast_turns(site(1))
        });
        assert_eq!((after, turn.was_fast(site(1))), ([Some(24), Some(8), Some(0)], Some(false)));
    }

    #[test]
    fn who_comes_often_is_known_however_many_come_once() {
        let mut turn = none();
        for stranger in 0..10_000 {
            turn.note(site(stranger), false);
            if stranger % 90 == 0 {
                turn.note(site(20_000), true);
            }
            assert_eq!(turn.fast_turns(site(20_000)), Some((stranger / 90 + 1).min(255) as u8));
            assert!(turn.is_wanted() && turn.guests.iter().all(|guests| guests.len() <= GUESTS_MAX));
        }
    }
}
