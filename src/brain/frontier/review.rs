//! All hosts in memory, gone through once more, as something has changed for all of them.
//!
//! Decides: on another block list, hosts that rest are made ready if their names are on it: what waits for them ends, and nobody
//! waits for that. When the wall clock was set, the rests that hold are noted anew, as those in the log go by the clock as it was.
//! Invariants: nobody is asked sooner for it. Whoever is met or goes to rest meanwhile is looked at when that happens
//! ([`Frontier::schedule`]).
//! Limits: [`HOSTS_PER_TURN`] hosts a turn of the sockets, so a million of them take some hundred turns; rests of an earlier run whose
//! hosts were not met are noted at once. Of a host of which only
//! some URLs are blocked these end at their turns.

use super::host::State;
use super::{Frontier, Rest};
use crate::outcome::HostId;
use crate::politeness::Key;
use crate::scope::Scope;
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
}

impl Frontier {
    /// Another scope is in force, for queued URLs, too.
    pub fn set_scope(&mut self, scope: Scope) {
        self.scope = scope;
        self.review.has_new_scope = true;
        self.review.next = Some(0);
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
        let Review { has_new_clock, has_new_scope, .. } = self.review;
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
            if has_blocks && self.scope.blocks().blocks_host(&self.hosts[id].name) {
                self.end_rest(id);
            }
        }
        if end < slots {
            self.review.next = Some(end);
        } else {
            self.review = Review { has_had_turn: true, ..Review::default() };
        }
    }

    /// Whether a host has asked for more than others: then its rest is noted.
    fn asks_for_rest(&self, id: HostId, now: Instant) -> bool {
        let pace = &self.hosts[id].pace;
        !pace.crawl_delay().is_zero() || self.rests_long(id, now)
    }

    /// A host whose name is blocked waits for nothing.
    fn end_rest(&mut self, id: HostId) {
        match self.hosts[id].state() {
            State::Waiting(_) => self.make_ready(id),
            State::Parked if self.leave_row(id) => self.make_ready(id),
            // It is looked at when it goes on, or has nothing to do.
            State::Parked | State::Ready | State::Busy | State::Reading => {}
            State::Idle | State::Emptied | State::Resting(_) => {}
        }
    }

    /// Takes a parked host out of the row where it waits, if that is found: for its site, one of its addresses or operators, or the
    /// name servers. One whose addresses have changed meanwhile is called there.
    fn leave_row(&mut self, id: HostId) -> bool {
        let host = &self.hosts[id];
        let known = host.resolution.known();
        let keys: Vec<Key> =
            known.iter().flat_map(|addr| self.turns_for(id, *addr).keys().collect::<Vec<_>>()).collect();
        let has_left = keys.into_iter().any(|key| {
            let guest = self.guest_at(key, id);
            self.turn_queues.leave(key, guest)
        });
        if has_left && self.turn_queues.is_called(id) {
            self.turn_queues.had_turn(id);
        }
        has_left || self.lookups.leave(id, self.hosts[id].asked())
    }
}

/// So many hosts take a fraction of a millisecond.
const HOSTS_PER_TURN: HostId = 2_048;
