//! What happens when: hosts and turns by the instant at which they may continue.
//!
//! Decides: a binary heap. A stale entry stays in it and is ignored by its owner when it comes up, which is cheaper
//! than finding it.
//! Invariants: entries come out in order of time, those of one instant in order of their insertion, so that a
//! simulated crawl is the same each time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::job::HostId;
use crate::politeness::ClaimKey;
use ringcrawl_base::time::Instant;

/// The host that may continue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Event {
    /// A host whose delay is over.
    Host(HostId),
    /// The first host that waits for this turn.
    Turn(ClaimKey),
}

/// The calendar.
#[derive(Debug, Default)]
pub struct Calendar {
    heap: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    inserted: u64,
}

impl Calendar {
    /// Notes that `event` comes up at `at`.
    pub fn push(&mut self, at: Instant, event: Event) {
        self.inserted += 1;
        self.heap.push(Reverse((at, self.inserted, event)));
    }

    /// Takes the next event that is due by `now`, with the instant it was noted for.
    pub fn pop(&mut self, now: Instant) -> Option<(Instant, Event)> {
        let Reverse((at, _, _)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }

    /// When the next event comes up.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }
}
