//! A pass over all hosts in memory, after a change that concerns all of them.
//!
//! Decides: with a new block list, resting hosts whose names are on it are made ready, so that their URLs end instead
//! of waiting. When the wall clock was set, current rests are noted again, because those in the log follow the old
//! clock.
//! Invariants: no host is queried sooner because of it. Hosts that appear or start resting in the meantime are
//! checked at that point, when they are scheduled.
//! Limits: [`HOSTS_PER_TURN`] hosts a turn of the sockets, so a million hosts take some hundred turns. Rests of an
//! earlier run whose hosts have not appeared are noted at once. If only some URLs of a host are blocked, these end at
//! their turns.

use std::ops::Range;

use crate::job::HostId;

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

/// The hosts to look at in a turn.
#[derive(Debug)]
pub struct Part {
    /// Their slots.
    pub slots: Range<HostId>,
    /// Their rests are noted again, and before the first those of hosts that have not appeared.
    pub has_new_clock: bool,
    /// They are checked for blocked names.
    pub has_new_scope: bool,
}

impl Review {
    /// Another scope takes effect.
    pub fn scope_changed(&mut self) {
        self.has_new_scope = true;
        self.begin();
    }

    /// The wall clock was set.
    pub fn clock_changed(&mut self) {
        self.has_new_clock = true;
        self.begin();
    }

    /// The review starts again, and finds parked hosts again: a host that is listed twice would be made ready twice.
    fn begin(&mut self) {
        self.next = Some(0);
        self.parked.clear();
    }

    /// Whether hosts remain to be looked at.
    pub fn is_going_on(&self) -> bool {
        self.next.is_some()
    }

    /// The sockets have had their turn.
    pub fn begin_turn(&mut self) {
        self.has_had_turn = false;
    }

    /// The hosts to look at in this turn, of a table with this many slots.
    pub fn next_part(&mut self, slots: usize) -> Option<Part> {
        let first = self.next.filter(|_| !self.has_had_turn)?;
        self.has_had_turn = true;
        let end = (slots as HostId).min(first.saturating_add(HOSTS_PER_TURN));
        let Review { has_new_clock, has_new_scope, .. } = *self;
        Some(Part { slots: first..end, has_new_clock, has_new_scope })
    }

    /// A blocked host waits in queues with others.
    pub fn is_parked(&mut self, id: HostId) {
        self.parked.push(id);
    }

    /// The hosts before `end` were looked at. If these were all, returns the blocked ones that wait in queues.
    pub fn end_part(&mut self, end: HostId, slots: usize) -> Vec<HostId> {
        if end < slots as HostId {
            self.next = Some(end);
            return Vec::new();
        }
        std::mem::replace(self, Review { has_had_turn: true, ..Review::default() }).parked
    }
}

/// This many hosts take a fraction of a millisecond.
const HOSTS_PER_TURN: HostId = 2_048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_during_a_review_lists_no_host_twice() {
        let slots = HOSTS_PER_TURN as usize + 1;
        let (mut review, mut parked) = (Review::default(), Vec::new());
        review.scope_changed();
        for turn in 0..3 {
            review.begin_turn();
            let part = review.next_part(slots).expect("hosts are left");
            part.slots.clone().for_each(|id| review.is_parked(id));
            parked = review.end_part(part.slots.end, slots);
            if turn == 0 {
                review.clock_changed();
            }
        }
        assert!(!review.is_going_on() && parked.into_iter().eq(0..slots as HostId));
    }
}
