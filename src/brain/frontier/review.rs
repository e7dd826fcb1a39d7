//! A pass over all hosts in memory, after a change that concerns all of them.
//!
//! Decides: with a new block list, resting hosts whose names are on it are made ready, so that their URLs end instead
//! of waiting. When the wall clock was set, current rests are noted again, because those in the log follow the old
//! clock.
//! Invariants: no host is queried sooner because of it. Hosts that appear or start resting in the meantime are
//! checked at that point ([`Frontier::schedule`]).
//! Limits: [`HOSTS_PER_TURN`] hosts a turn of the sockets, so a million hosts take some hundred turns. Rests of an
//! earlier run whose hosts have not appeared are noted at once. If only some URLs of a host are blocked, these end at
//! their turns.

use std::collections::BTreeSet;

use super::host::State;
use super::{Frontier, Rest};
use crate::job::HostId;
use crate::politeness::Key;
use crate::scope::Scope;
use ringcrawl_base::IntSet;
use ringcrawl_base::time::{Instant, WallClock};

/// The progress of a review.
#[derive(Debug, Default)]
pub struct Review {
    /// The next host to look at, if any.
    next: Option<HostId>,
    /// For their rests.
    has_new_clock: bool,
    /// For their names.
    has_new_scope: bool,
    /// No further hosts until the sockets have had their turn.
    has_had_turn: bool,
    /// Blocked hosts that wait in queues with others. They leave together at the end: each queue is scanned once.
    parked: Vec<HostId>,
}

impl Frontier {
    /// Another scope takes effect, also for queued URLs.
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
        // The review starts again, and finds them again: a host that is listed twice would be made ready twice.
        self.review.parked.clear();
    }

    /// Whether hosts remain to be looked at.
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
            // One seed gives one crawl, down to the order of the notes.
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

    /// Ends the rest of a host whose name is blocked; returns whether it waits in queues with others.
    fn end_rest(&mut self, id: HostId) -> bool {
        match self.hosts[id].state() {
            State::Waiting(_) => self.make_ready(id),
            State::Parked => return true,
            // It is checked when it continues or has nothing to do.
            State::Ready | State::Busy | State::Reading => {}
            State::Idle | State::Emptied | State::Resting(_) => {}
        }
        false
    }

    /// Takes parked hosts out of the queues where they can be found waiting: for their sites, addresses or operators,
    /// or the name servers. A host whose addresses have changed meanwhile is called there. Each queue is scanned once
    /// for all of them.
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

    /// The keys for whose turns a host may wait.
    fn keys_of(&self, id: HostId) -> Vec<Key> {
        let known = self.hosts[id].resolution.known();
        known.iter().flat_map(|addr| self.turns_for(id, *addr).keys().collect::<Vec<_>>()).collect()
    }
}

/// This many hosts take a fraction of a millisecond.
const HOSTS_PER_TURN: HostId = 2_048;
