//! Hosts that may have their turn now.
//!
//! Decides: turns rotate by site ([`SiteRoundRobin`]). A host whose name was just looked up goes before the others,
//! since behind a long queue its answer would expire each time. Such hosts get only every second turn, or many names
//! would keep all others waiting. The others are ordered by level ([`LevelTurns`]). A site whose fetches are over its
//! share gets no turn until some have ended. Slow sites ([`super::fetch_slots`]) have a queue of their own, which
//! gets every fourth turn while slots are left for them. Hosts of slow sites that kept a slot until their address
//! called go before all.
//! Invariants: every queued host gets its turn.

use std::collections::VecDeque;

use super::level_turns::LevelTurns;
use super::site_round_robin::SiteRoundRobin;
use crate::frontier::queue::Level;
use crate::job::HostId;
use ringcrawl_url::SiteKey;

/// The queue.
#[derive(Debug, Default)]
pub struct ReadyHosts {
    /// Hosts whose names were just looked up.
    answered: SiteRoundRobin,
    others: LevelTurns,
    /// Hosts of slow sites.
    slow: SiteRoundRobin,
    /// Hosts of slow sites that kept a slot.
    keepers: VecDeque<(SiteKey, HostId)>,
    /// The next turn belongs to `others`.
    is_others_turn: bool,
    turns: u64,
    /// The next turn was given to a preferred host.
    is_preferred: bool,
    /// No queued host could have a turn at the last look, and nothing has changed since.
    is_held_up: bool,
}

impl ReadyHosts {
    /// Empty queues for this many levels.
    pub fn new(levels: Level) -> ReadyHosts {
        ReadyHosts { others: LevelTurns::new(levels), ..ReadyHosts::default() }
    }

    /// Puts a host behind the others of its level, or behind those of other slow sites.
    pub fn push(&mut self, site: SiteKey, id: HostId, level: Level, is_slow: bool) {
        if is_slow {
            self.slow.push(site, id);
        } else {
            self.others.push(site, id, level);
        }
        self.is_held_up = false;
    }

    /// Puts a host before the others, or before those of other slow sites: its name was looked up.
    pub fn push_answered(&mut self, site: SiteKey, id: HostId, is_slow: bool) {
        if is_slow {
            self.slow.push_front(site, id);
        } else {
            self.answered.push(site, id);
        }
        self.is_held_up = false;
    }

    /// A site that may have been slow is not slow any more: its hosts move to the others.
    pub fn is_not_slow(&mut self, site: SiteKey) {
        self.others.take_over(site, &mut self.slow);
    }

    /// Puts a host that kept a slot before all.
    pub fn push_keeper(&mut self, site: SiteKey, id: HostId) {
        self.keepers.push_back((site, id));
        self.is_held_up = false;
    }

    /// Takes the next host that kept a slot and whose site may fetch.
    pub fn pop_keeper(&mut self, may_fetch: impl Fn(SiteKey) -> bool) -> Option<HostId> {
        if self.is_preferred {
            return None;
        }
        let next = self.keepers.iter().position(|(site, _)| may_fetch(*site))?;
        self.keepers.remove(next).map(|(_, id)| id)
    }

    /// A fetch has ended, and sites may have more than before.
    pub fn fetch_ended(&mut self) {
        self.is_held_up = false;
    }

    /// Whether a host may have its turn.
    pub fn is_ready(&self) -> bool {
        let is_empty =
            self.answered.is_empty() && self.others.is_empty() && self.slow.is_empty() && self.keepers.is_empty();
        !is_empty && !self.is_held_up
    }

    /// Takes the next host whose site may fetch; hosts of slow sites only if these may.
    pub fn pop_of(
        &mut self,
        may_fetch: impl Fn(SiteKey) -> bool,
        is_slow: impl Fn(SiteKey) -> bool,
        may_slow_fetch: bool,
    ) -> Option<HostId> {
        self.is_preferred = false;
        // Sites may have become slow since they were queued.
        self.answered.hand_over(&is_slow, &mut self.slow);
        self.others.hand_over(&is_slow, &mut self.slow);
        let may_fetch = |site| may_fetch(site) && (may_slow_fetch || !is_slow(site));
        self.turns += 1;
        if may_slow_fetch
            && self.turns.is_multiple_of(SLOW_TURNS)
            && let Some(id) = self.slow.pop_of(may_fetch)
        {
            return Some(id);
        }
        let next = match self.is_others_turn {
            true => self.others.pop_of(may_fetch).or_else(|| self.answered.pop_of(may_fetch)),
            false => self.answered.pop_of(may_fetch).or_else(|| self.others.pop_of(may_fetch)),
        };
        let next = next.or_else(|| if may_slow_fetch { self.slow.pop_of(may_fetch) } else { None });
        self.is_others_turn = !self.is_others_turn;
        self.is_held_up = next.is_none();
        next
    }

    /// Gives the next turn to the first of `count` hosts for which `is_better` holds; returns whether there is one.
    pub fn prefer(&mut self, count: usize, is_better: impl Fn(HostId) -> bool) -> bool {
        let is_answered = self.answered.prefer(count, &is_better);
        self.is_others_turn = !is_answered && self.others.prefer(count, &is_better);
        let is_slow = !is_answered && !self.is_others_turn && self.slow.prefer(count, &is_better);
        if is_slow {
            self.turns = SLOW_TURNS - 1;
        }
        self.is_preferred = true;
        is_answered || self.is_others_turn || is_slow
    }
}

/// One of this many turns goes to a slow site, whatever else waits.
const SLOW_TURNS: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: u32) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    #[test]
    fn many_answered_names_leave_others_every_second_turn() {
        let mut ready = ReadyHosts::default();
        (0..10).for_each(|id| ready.push_answered(site(0), id, false));
        (10..14).for_each(|id| ready.push(site(id), id, 0, false));
        let order: Vec<HostId> = std::iter::from_fn(|| ready.pop_of(|_| true, |_| false, true)).collect();
        assert_eq!(order, [0, 10, 1, 11, 2, 12, 3, 13, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn who_is_held_up_is_looked_at_again_when_something_changed() {
        let mut ready = ReadyHosts::default();
        ready.push(site(0), 0, 0, false);
        assert!(ready.is_ready());
        assert_eq!((ready.pop_of(|_| false, |_| false, true), ready.is_ready()), (None, false));
        ready.fetch_ended();
        assert!(ready.is_ready() && ready.pop_of(|_| false, |_| false, true).is_none());
        ready.push(site(1), 1, 0, false);
        assert_eq!((ready.is_ready(), ready.pop_of(|of| of == site(1), |_| false, true)), (true, Some(1)));
    }

    #[test]
    fn slow_sites_have_every_fourth_turn_and_what_is_left() {
        let mut ready = ReadyHosts::default();
        (0..6).for_each(|id| ready.push(site(id), id, 0, false));
        (10..14).for_each(|id| ready.push(site(id), id, 0, true));
        assert_eq!(ready.pop_of(|_| true, |_| false, false), Some(0));
        let order: Vec<HostId> = std::iter::from_fn(|| ready.pop_of(|_| true, |_| false, true)).collect();
        assert_eq!(order, [1, 2, 10, 3, 4, 5, 11, 12, 13]);
        ready.push(site(20), 20, 0, true);
        assert_eq!((ready.pop_of(|_| true, |_| false, false), ready.is_ready()), (None, false));
        ready.fetch_ended();
        assert_eq!(ready.pop_of(|_| true, |_| false, true), Some(20));
        (30..33).for_each(|id| ready.push(site(30), id, 0, true));
        ready.is_not_slow(site(30));
        assert_eq!([(); 4].map(|()| ready.pop_of(|_| true, |_| false, false)), [Some(30), Some(31), Some(32), None]);
    }
}
