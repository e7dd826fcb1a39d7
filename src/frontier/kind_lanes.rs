//! The lanes of kinds whose weight is lowered, and how they take turns with a host's other URLs.
//!
//! Decides: a host's URLs stand in one queue, in `frontier.order`. Where the kind of one whose turn has come is lowered
//! ([`crate::kinds`]), it goes to its kind's lane, and the next one has the turn. A lane of weight 1/4 has one turn for four of the
//! queue's, one of 1/16 one for sixteen. While the queue is empty, lanes share all turns by their weights. So each kind keeps a
//! stated share of its host's fetches, and none waits for ever behind another.
//! How: stride scheduling (Waldspurger, Weihl 1995). Each turn moves what had it on by the inverse of the URL's weight; what is furthest
//! behind is next. A lane that was empty begins one turn of its own behind the others. Weights count as they are when a URL is fetched.
//! Invariants: a kind has one lane; a URL goes to a lane once.
//! Limits: [`LANES_MAX`] lanes; further kinds share the last one.

use super::queue::{Discipline, HostQueue};
use super::waiting::Ticket;
use crate::kinds::{KindFacts, Weight};

/// The lanes of one host.
#[derive(Debug, Default)]
pub struct KindLanes {
    lanes: Vec<Lane>,
    /// When the queue of all other URLs is next, in turns.
    queue_next: u64,
    /// The turn of the URL that was fetched last.
    now: u64,
    /// URLs that went to lanes since the queue had a turn.
    moved: u32,
}

#[derive(Debug)]
struct Lane {
    kind: u16,
    /// That of the URL that came or went last.
    weight: Weight,
    next: u64,
    queue: HostQueue,
}

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Turn {
    /// The host's queue.
    #[default]
    Queue,
    /// The lane at this index.
    Lane(usize),
}

impl KindLanes {
    /// Adds a URL to its kind's lane.
    pub fn push(&mut self, of: KindFacts, ticket: Ticket, url: &str, head_urls: usize, discipline: Discipline) {
        self.moved += 1;
        if self.moved >= MOVED_MAX {
            // A queue of nothing but traps must not keep the lanes waiting until it has been looked through.
            (self.moved, self.queue_next) = (0, self.queue_next.max(self.now) + 1);
        }
        let (kind, weight) = (of.lane, of.weight);
        let own = self.lanes.iter().position(|lane| lane.kind == kind);
        let at = own.or_else(|| self.lanes.iter().position(|lane| lane.queue.is_empty())).unwrap_or(self.lanes.len());
        if at == self.lanes.len() && at < LANES_MAX {
            self.lanes.push(Lane { kind, weight, next: self.now, queue: HostQueue::new(discipline) });
        }
        let now = self.now;
        if let Some(lane) = self.lanes.get_mut(at.min(LANES_MAX - 1)) {
            if lane.queue.is_empty() {
                (lane.kind, lane.next) = (kind, lane.next.max(now) + weight.turns());
            }
            lane.weight = weight;
            lane.queue.push(ticket, url, head_urls);
        }
    }

    /// Whose turn is next, where the queue `has_some` URLs or not; `None`: no URL waits.
    pub fn turn(&self, has_some: bool) -> Option<Turn> {
        let lanes = self.lanes.iter().enumerate().filter(|(_, lane)| !lane.queue.is_empty());
        let first = lanes.min_by_key(|(_, lane)| lane.next);
        match first {
            Some((at, lane)) if !has_some || lane.next < self.queue_next => Some(Turn::Lane(at)),
            _ => has_some.then_some(Turn::Queue),
        }
    }

    /// The queue of a lane.
    pub fn queue(&mut self, at: usize) -> Option<&mut HostQueue> {
        self.lanes.get_mut(at).map(|lane| &mut lane.queue)
    }

    /// A URL of this weight is fetched, which was taken in this turn.
    pub fn had(&mut self, turn: Turn, weight: Weight) {
        // Turns that the queue missed while it was empty are not caught up.
        let was = match turn {
            Turn::Queue => self.queue_next.max(self.now),
            Turn::Lane(at) => self.lanes.get(at).map_or(self.now, |lane| lane.next),
        };
        self.now = self.now.max(was);
        match turn {
            Turn::Queue => (self.queue_next, self.moved) = (was + weight.turns(), 0),
            Turn::Lane(at) => {
                if let Some(lane) = self.lanes.get_mut(at) {
                    (lane.next, lane.weight) = (was + weight.turns(), weight);
                }
            }
        }
    }

    /// The queues of all lanes.
    pub fn queues(&self) -> impl Iterator<Item = &HostQueue> {
        self.lanes.iter().map(|lane| &lane.queue)
    }

    /// The same, to change them.
    pub fn queues_mut(&mut self) -> impl Iterator<Item = &mut HostQueue> {
        self.lanes.iter_mut().map(|lane| &mut lane.queue)
    }

    /// Bytes of memory; those of the queues do not count.
    pub fn ram_bytes(&self) -> usize {
        size_of::<KindLanes>() + self.lanes.capacity() * size_of::<Lane>()
    }

    /// The largest weight of those that have URLs.
    pub fn largest(&self) -> Option<Weight> {
        self.lanes.iter().filter(|lane| !lane.queue.is_empty()).map(|lane| lane.weight).max()
    }
}

/// Lanes of a host: 2 KiB.
pub const LANES_MAX: usize = 16;
/// URLs that may go to lanes in one turn of the queue.
const MOVED_MAX: u32 = 64;
