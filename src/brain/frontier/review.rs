//! All hosts in memory, gone through once more, as something has changed for all of them.
//!
//! Decides: on another block list, hosts that rest are made ready if their names are on it: what waits for them ends, and nobody
//! waits for that. When the wall clock was set, the rests that hold are noted anew, as those in the log go by the clock as it was.
//! Invariants: nobody is asked sooner for it. Whoever is met or goes to rest meanwhile is looked at when that happens
//! ([`Frontier::schedule`]).
//! Limits: [`HOSTS_PER_TURN`] hosts a turn of the sockets, so a million of them take some hundred turns; rests of an earlier run whose
//! hosts were not met are noted at once. Of a host of which only
//! some URLs are blocked these end at their turns.

use std::collections::BTreeSet;

use super::host::State;
use super::{Frontier, Rest};
use crate::job::HostId;
use crate::politeness::Key;
use crate::scope::Scope;
use ringcrawl_base::IntSet;
use ringcrawl_base::time::{Instant, WallClock};

/// How far a review is.
#[derive(Debug, Default)]
pub struct Review {
    /// The next host to be looked at, while there is one.
    next: Option<HostId>,
    /// For their rests.
    has_new_clock: bool,
    /// For their names.
    has_new_scope: bool,
    /// Nobody more before the sockets had their turn.
    has_had_turn: bool,
    /// Hosts that are blocked and wait in rows of others. They leave together, at the end: each row is gone through once.
    parked: Vec<HostId>,
}

impl Frontier {
    /// Another scope is in force, for queued URLs, too.
    pub fn set_scope(&mut self, scope: Scope) {
        self.scope = scope;
        self.review.has_new_scope = true;
        self.review.next = Some(0);
        self.review.parked.clear();
    }

    /// The wall clock was set.
    pub fn set_clock(&mut self, clock: WallClock) {
        self.settings.clock = clock;
        self.budgets.set_clock(clock);
        self.review.has_new_clock = true;
        self.review.next = Some(0);
    }

    /// Whether hosts are to be looked at.
    pub fn is_reviewing(&self) -> bool {
        self.review.next.is_some()
    }

    /// The sockets have had their turn.
    pub(super) fn begin_review_turn(&mut self) {
        self.review.has_had_turn = false;
    }

    /// Looks at some more hosts, once a turn.
    pub fn review(&mut self, now: Instant) {
        if self.review.has_had_turn {
            return;
        }
        let Some(first) = self.review.next else { return };
        self.review.has_had_turn = true;
        let (has_new_clock, has_new_scope) = (self.review.has_new_clock, self.review.has_new_scope);
        if has_new_clock && first == 0 {
            let mut unmet: Vec<Rest> =
                self.hosts.rests().all(now).map(|(host, until)| Rest::new(host, until)).collect();
            // A seed is a crawl, to the order of the notes.
            unmet.sort_unstable_by(|one, other| one.host.cmp(&other.host));
            self.rests.append(&mut unmet);
        }
        let has_blocks = has_new_scope && !self.scope.blocks().is_empty();
        let slots = self.hosts.slots() as HostId;
        let end = slots.min(first.saturating_add(HOSTS_PER_TURN));
        for id in first..end {
            if has_new_clock && self.asks_for_rest(id, now) {
                self.note_rest(id, now);
            }
            if has_new_clock && !self.settings.shares_hosts {
                self.note_origin_rests(now, id);
            }
            if has_blocks && self.scope.blocks().blocks_host(&self.hosts[id].name) && self.end_rest(id) {
                self.review.parked.push(id);
            }
        }
        if end < slots {
            self.review.next = Some(end);
        } else {
            let done = std::mem::replace(&mut self.review, Review { has_had_turn: true, ..Review::default() });
            self.end_waits(done.parked);
        }
    }

    /// Whether a host has asked for more than others: then its rest is noted.
    fn asks_for_rest(&self, id: HostId, now: Instant) -> bool {
        let pace = &self.hosts[id].pace;
        !pace.crawl_delay().is_zero() || self.rests_long(id, now)
    }

    /// A host whose name is blocked rests no more; whether it waits in rows of others.
    fn end_rest(&mut self, id: HostId) -> bool {
        match self.hosts[id].state() {
            State::Waiting(_) => self.make_ready(id),
            State::Parked => return true,
            // It is looked at when it goes on, or has nothing to do.
            State::Ready | State::Busy | State::Reading => {}
            State::Idle | State::Emptied | State::Resting(_) => {}
        }
        false
    }

    /// Takes parked hosts out of the rows where they wait, as far as they are found: for their sites, addresses or operators, or the
    /// name servers. One whose addresses have changed meanwhile is called there. Each row is gone through once for all of them.
    fn end_waits(&mut self, mut parked: Vec<HostId>) {
        // A slot may have another host by now.
        parked.retain(|id| {
            self.hosts[*id].state() == State::Parked && self.scope.blocks().blocks_host(&self.hosts[*id].name)
        });
        if parked.is_empty() {
            return;
        }
        let (leaving, mut left): (IntSet<HostId>, _) = (parked.iter().copied().collect(), IntSet::default());
        let keys: BTreeSet<Key> = parked.iter().flat_map(|id| self.keys_of(*id)).collect();
        for key in keys {
            self.turn_queues.leave(key, &leaving, &mut left);
        }
        for id in &parked {
            if left.contains(id) && self.turn_queues.is_called(*id) {
                self.turn_queues.had_turn(*id);
            }
        }
        self.lookups.leave(&leaving, &mut left);
        for id in parked {
            if left.contains(&id) {
                self.make_ready(id);
            }
        }
    }

    /// What a host may wait for a turn of.
    fn keys_of(&self, id: HostId) -> Vec<Key> {
        let known = self.hosts[id].resolution.known();
        known.iter().flat_map(|addr| self.turns_for(id, *addr).keys().collect::<Vec<_>>()).collect()
    }
}

/// So many hosts take a fraction of a millisecond.
const HOSTS_PER_TURN: HostId = 2_048;
