//! The lanes of kinds whose weight is lowered, and how they take turns with a host's other URLs.
//!
//! Decides: a host's URLs stand in one queue, in `frontier.order`. Where the kind of one whose turn has come is lowered
//! ([`crate::kinds`]), it goes to its kind's lane, and the next one has the turn. All lanes of weight 1/4 together have one turn
//! for four of the queue's, those of 1/16 one for sixteen; among themselves they take turns, and what nothing is known of has four turns
//! for one of what is known. While the queue is empty, lanes share all turns. So lowered kinds have five turns for sixteen of the queue's
//! at most, however many they are, and none waits for ever behind another. Only where [`MOVED_MAX`] URLs in a row went to lanes, each
//! weight has its turns before the queue is looked through.
//! How: stride scheduling (Waldspurger, Weihl 1995). Each turn moves what had it on by the inverse of the URL's weight; what is furthest
//! behind is next. A lane that was empty begins one turn of its own behind the others. Weights count as they are when a URL's
//! turn comes; the turn counts when it is fetched.
//! Invariants: a URL goes to a lane, and from that of what nothing is known of to that of its kind, once each.
//! Limits: [`LANES_MAX`] lanes; further kinds share the last one.

use super::queue::{Discipline, HostQueue};
use super::waiting::Ticket;
use crate::kinds::{KindFacts, Weight};

/// The lanes of one host.
#[derive(Debug, Default)]
pub struct KindLanes {
    lanes: Vec<Lane>,
    /// The turns of the lanes of each weight, in the order of [`Weight`].
    classes: [Turns; Weight::ALL.len()],
    /// When the queue of all other URLs is next, in turns.
    queue_next: u64,
    /// The turn of the URL that was fetched last.
    now: u64,
    /// URLs that went to lanes since the queue had a turn.
    moved: u32,
}

/// When lanes of one weight have their turns.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    /// When one of them is next.
    next: u64,
    /// The turn of the lane that had the last one, among them.
    now: u64,
}

#[derive(Debug)]
struct Lane {
    /// Of which branch the kinds are.
    branch: u32,
    /// They have proved their worth.
    is_proven: bool,
    /// That of the URL that came or went last.
    weight: Weight,
    /// Among the lanes of this weight.
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
    /// Adds a URL that was taken in this turn to its kind's lane.
    pub fn push(&mut self, of: KindFacts, turn: Turn, waiting: (Ticket, &str), head_urls: usize, order: Discipline) {
        self.moved += u32::from(turn == Turn::Queue);
        if self.moved >= MOVED_MAX {
            // A queue of nothing but traps must not keep the lanes waiting until it has been looked through.
            let first = self.classes.iter().map(|turns| turns.next).max().unwrap_or_default();
            (self.moved, self.queue_next) = (0, self.queue_next.max(first) + 1);
        }
        let at = self.lane_of(of, order);
        self.weigh(at, of.weight);
        if let Some(lane) = self.lanes.get_mut(at) {
            lane.queue.push(waiting.0, waiting.1, head_urls);
        }
    }

    /// The lane of a kind: its own, an empty one, a new one, or the last.
    fn lane_of(&mut self, of: KindFacts, discipline: Discipline) -> usize {
        let (branch, is_proven) = (of.branch, of.is_proven());
        let at = self.free_lane(of).unwrap_or(self.lanes.len().min(LANES_MAX - 1));
        match self.lanes.get_mut(at) {
            Some(lane) if lane.queue.is_empty() => (lane.branch, lane.is_proven) = (branch, is_proven),
            Some(_) => {}
            None => {
                let queue = HostQueue::new(discipline);
                self.lanes.push(Lane { branch, is_proven, weight: of.weight, next: 0, queue });
            }
        }
        at
    }

    /// A kind's own lane, or an empty one.
    fn free_lane(&self, of: KindFacts) -> Option<usize> {
        let is_own = |lane: &Lane| (lane.branch, lane.is_proven) == (of.branch, of.is_proven());
        self.lanes.iter().position(is_own).or_else(|| self.lanes.iter().position(|lane| lane.queue.is_empty()))
    }

    /// Puts a lane among those of a weight, behind them where it was not.
    fn weigh(&mut self, at: usize, weight: Weight) {
        let class = weight as usize;
        let has_others = self.lanes.iter().any(|lane| lane.weight == weight && !lane.queue.is_empty());
        let (Some(lane), Some(turns)) = (self.lanes.get_mut(at), self.classes.get_mut(class)) else { return };
        if lane.weight != weight || lane.queue.is_empty() {
            if !has_others {
                turns.next = turns.next.max(self.now + weight.turns());
            }
            (lane.weight, lane.next) = (weight, turns.now + 1);
        }
    }

    /// Whose turn is next, where the queue `has_some` URLs or not; `None`: no URL waits.
    pub fn turn(&self, has_some: bool) -> Option<Turn> {
        let waiting = self.lanes.iter().enumerate().filter(|(_, lane)| !lane.queue.is_empty());
        let first = waiting.filter_map(|(at, lane)| {
            let next = self.classes.get(lane.weight as usize)?.next;
            Some((next, lane.weight, lane.next, at))
        });
        match first.min() {
            Some((next, .., at)) if !has_some || next < self.queue_next => Some(Turn::Lane(at)),
            _ => has_some.then_some(Turn::Queue),
        }
    }

    /// Whether a URL that was taken in this turn is to go to its kind's lane: from the queue, and from a lane where it stood while
    /// nothing was known of its kind.
    pub fn is_to_move(&self, turn: Turn, of: KindFacts) -> bool {
        match turn {
            Turn::Queue => true,
            Turn::Lane(at) => {
                of.is_proven()
                    && self.lanes.get(at).is_some_and(|lane| !lane.is_proven)
                    // Where there is no lane left it would come back for ever.
                    && (self.lanes.len() < LANES_MAX || self.free_lane(of).is_some())
            }
        }
    }

    /// The queue of a lane.
    pub fn queue(&mut self, at: usize) -> Option<&mut HostQueue> {
        self.lanes.get_mut(at).map(|lane| &mut lane.queue)
    }

    /// A URL of this weight is fetched, which was taken in this turn.
    pub fn had(&mut self, turn: Turn, weight: Weight) {
        let Turn::Lane(at) = turn else {
            // Turns that the queue missed while it was empty are not caught up.
            self.now = self.queue_next.max(self.now);
            (self.queue_next, self.moved) = (self.now + weight.turns(), 0);
            return;
        };
        let Some(lane) = self.lanes.get_mut(at) else { return };
        let Some(turns) = self.classes.get_mut(lane.weight as usize) else { return };
        self.now = self.now.max(turns.next);
        turns.now = turns.now.max(lane.next);
        lane.next += if lane.is_proven { KNOWN_EVERY } else { 1 };
        turns.next += weight.turns();
        self.weigh(at, weight);
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
}

/// Lanes of a host: 4 KiB.
pub const LANES_MAX: usize = 32;
/// What is known of little worth has one turn for so many of what nothing is known of.
const KNOWN_EVERY: u64 = 4;
/// URLs that may go to lanes in one turn of the queue.
const MOVED_MAX: u32 = 64;
