//! The lanes of kinds with a lowered weight, and how they take turns with a host's other URLs.
//!
//! Decides: a host's URLs are in one queue, in `frontier.order`. If the kind of the URL whose turn has come is
//! lowered ([`crate::kinds`]), the URL goes to its kind's lane, and the next one gets the turn. All lanes of weight
//! 1/4 together get one turn for four of the queue's, those of 1/16 one for sixteen. Among themselves the lanes take
//! turns, and a kind about which nothing is known gets four turns for one of a known kind. While the queue is empty,
//! lanes share all turns. So lowered kinds get at most five turns for sixteen of the queue's, however many they are,
//! and none waits forever behind another. Only when [`MOVED_MAX`] URLs in a row went to lanes, each weight gets its
//! turns before ringcrawl continues through the queue.
//! How: stride scheduling (Waldspurger, Weihl 1995). Each turn advances the queue or lane that had it by the inverse
//! of the URL's weight; the one furthest behind is next. A lane that was empty begins one turn of its own behind the
//! others. A turn costs the URL's weight at that time: a kind that has proved its worth since gets through its lane
//! sooner. The turn counts when the URL is fetched.
//! A lane never changes its weight: each change put it behind the others again, and with URLs of two weights it
//! starved.
//! Invariants: a URL goes to a lane, and from the lane of unknown kinds to that of its kind, at most once each, and
//! once more for each rest of its kind.
//! Limits: [`LANES_MAX`] lanes; the last one is for resting kinds, and further kinds share the one before.

use super::host_queue::{Discipline, HostQueue};
use super::waiting::Ticket;
use crate::kinds::{KindFacts, Weight};

/// The lanes of one host.
#[derive(Debug, Default)]
pub struct KindLanes {
    lanes: Vec<Lane>,
    /// The turns of the lanes of each weight, in the order of [`Weight`].
    classes: [WeightClass; Weight::ALL.len()],
    /// When the queue of all other URLs is next, in turns.
    queue_next: u64,
    /// The turn of the URL that was fetched last.
    now: u64,
    /// URLs that went to lanes since the queue had a turn.
    moved: u32,
    /// The lane of [`KindFacts::RESTING`] is skipped.
    is_resting: bool,
}

/// When lanes of one weight have their turns.
#[derive(Clone, Copy, Debug, Default)]
struct WeightClass {
    /// When one of them is next.
    next: u64,
    /// The turn, among these lanes, of the one that had the last turn.
    now: u64,
}

#[derive(Debug)]
struct Lane {
    /// The branch of the kinds.
    branch: u32,
    /// They have proved their worth.
    is_proven: bool,
    /// Their weight when they came.
    weight: Weight,
    /// Their next turn among the lanes of this weight.
    next: u64,
    queue: HostQueue,
}

impl Lane {
    fn is_of_resting(&self) -> bool {
        !self.is_proven && self.branch == KindFacts::RESTING.branch
    }
}

/// The queue or lane whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueTurn {
    /// The host's queue.
    #[default]
    Queue,
    /// The lane at this index.
    Lane(usize),
}

impl QueueTurn {
    /// The turn of a URL that was not queued.
    pub const BESIDE: QueueTurn = QueueTurn::Lane(usize::MAX);
}

impl KindLanes {
    /// Adds a URL that was taken in this turn to its kind's lane.
    pub fn push(
        &mut self,
        of: KindFacts,
        turn: QueueTurn,
        waiting: (Ticket, &str),
        head_urls: usize,
        order: Discipline,
    ) {
        self.moved += u32::from(turn == QueueTurn::Queue);
        if self.moved >= MOVED_MAX {
            // A queue of nothing but traps must not keep the lanes waiting until all of it was examined.
            let first = self.classes.iter().map(|turns| turns.next).max().unwrap_or_default();
            (self.moved, self.queue_next) = (0, self.queue_next.max(first) + 1);
        }
        let at = self.lane_of(of, order);
        if let Some(lane) = self.lanes.get_mut(at) {
            lane.queue.push(waiting.0, waiting.1, head_urls);
        }
    }

    /// The lane of a kind: its own, an empty one, a new one, or the last.
    fn lane_of(&mut self, of: KindFacts, discipline: Discipline) -> usize {
        let at = self.free_lane(of).unwrap_or(self.lanes.len().min(last_lane(of)));
        if self.lanes.get(at).is_none_or(|lane| lane.queue.is_empty()) {
            self.begin(at, of, discipline);
        }
        at
    }

    /// A kind's own lane, or an empty one.
    fn free_lane(&self, of: KindFacts) -> Option<usize> {
        let own = (of.branch, of.is_proven(), of.weight);
        let is_own = |lane: &Lane| (lane.branch, lane.is_proven, lane.weight) == own;
        let empty = || self.lanes.iter().take(last_lane(of) + 1).position(|lane| lane.queue.is_empty());
        self.lanes.iter().position(is_own).or_else(empty)
    }

    /// Gives an empty lane, or a new one, to a kind, a turn of its own behind the others.
    fn begin(&mut self, at: usize, of: KindFacts, discipline: Discipline) {
        let (weight, turn) = (of.weight, of.weight.turns());
        // The search must not return what was put back just now.
        let rests = of.branch == KindFacts::RESTING.branch;
        let discipline = if rests { Discipline::Oldest } else { discipline };
        let has_others = self.lanes.iter().any(|lane| lane.weight == weight && !lane.queue.is_empty());
        let Some(turns) = self.classes.get_mut(weight as usize) else { return };
        if !has_others {
            turns.next = turns.next.max(self.now + turn);
        }
        let (branch, is_proven, next) = (of.branch, of.is_proven(), turns.now + turn);
        match self.lanes.get_mut(at) {
            Some(lane) => *lane = Lane { branch, is_proven, weight, next, queue: HostQueue::new(discipline) },
            None => self.lanes.push(Lane { branch, is_proven, weight, next, queue: HostQueue::new(discipline) }),
        }
    }

    /// The next turn; `has_some` tells whether the queue has URLs. `None`: no URL waits.
    pub fn turn(&self, has_some: bool) -> Option<QueueTurn> {
        let mut waiting = self.lanes.iter().enumerate().filter(|(_, lane)| !lane.queue.is_empty());
        // These were queued before the URLs that are in the queue now.
        if let Some((at, _)) = waiting.clone().find(|(_, lane)| !self.is_resting && lane.is_of_resting()) {
            return Some(QueueTurn::Lane(at));
        }
        let waiting = waiting.by_ref().filter(|(_, lane)| !lane.is_of_resting());
        let first = waiting.filter_map(|(at, lane)| {
            let next = self.classes.get(lane.weight as usize)?.next;
            Some((next, lane.weight, lane.next, at))
        });
        match first.min() {
            Some((next, .., at)) if !has_some || next < self.queue_next => Some(QueueTurn::Lane(at)),
            _ => has_some.then_some(QueueTurn::Queue),
        }
    }

    /// Sets whether the lane of resting kinds is skipped from now on.
    pub fn rest(&mut self, is_resting: bool) {
        self.is_resting = is_resting;
    }

    /// Whether the lane of resting kinds has URLs.
    pub fn has_resting(&self) -> bool {
        self.lanes.iter().any(|lane| lane.is_of_resting() && !lane.queue.is_empty())
    }

    /// Whether a URL taken in this turn must go to its kind's lane: from the queue, from the lane of resting kinds,
    /// and from a lane where it was while nothing was known of its kind.
    pub fn is_to_move(&self, turn: QueueTurn, of: KindFacts) -> bool {
        match turn {
            QueueTurn::Queue => true,
            QueueTurn::Lane(at) => {
                let lane = self.lanes.get(at);
                // Only URLs that came from the queue go before it when their rest is over.
                lane.is_some_and(Lane::is_of_resting)
                    || of.is_proven()
                        && lane.is_some_and(|lane| !lane.is_proven)
                        // Without a free lane it would come back forever.
                        && (self.lanes.len() <= last_lane(of) || self.free_lane(of).is_some())
            }
        }
    }

    /// The queue of a lane.
    pub fn queue(&mut self, at: usize) -> Option<&mut HostQueue> {
        self.lanes.get_mut(at).map(|lane| &mut lane.queue)
    }

    /// A URL of this weight that was taken in this turn is fetched.
    pub fn had(&mut self, turn: QueueTurn, weight: Weight) {
        let QueueTurn::Lane(at) = turn else {
            // Turns that the queue missed while it was empty are not caught up.
            self.now = self.queue_next.max(self.now);
            (self.queue_next, self.moved) = (self.now + 1, 0);
            return;
        };
        let Some(lane) = self.lanes.get_mut(at).filter(|lane| !lane.is_of_resting()) else { return };
        let Some(turns) = self.classes.get_mut(lane.weight as usize) else { return };
        self.now = self.now.max(turns.next);
        turns.now = turns.now.max(lane.next);
        lane.next += weight.turns() * if lane.is_proven { KNOWN_EVERY } else { 1 };
        turns.next += weight.turns();
    }

    /// The queues of all lanes.
    pub fn queues(&self) -> impl Iterator<Item = &HostQueue> {
        self.lanes.iter().map(|lane| &lane.queue)
    }

    /// The same, mutable.
    pub fn queues_mut(&mut self) -> impl Iterator<Item = &mut HostQueue> {
        self.lanes.iter_mut().map(|lane| &mut lane.queue)
    }

    /// Bytes of memory, without the queues.
    pub fn ram_bytes(&self) -> usize {
        size_of::<KindLanes>() + self.lanes.capacity() * size_of::<Lane>()
    }
}

/// The last lane that a kind may have. Resting kinds must not share turns with others.
fn last_lane(of: KindFacts) -> usize {
    if of.branch == KindFacts::RESTING.branch { LANES_MAX - 1 } else { LANES_MAX - 2 }
}

/// Lanes of a host: 4 KiB.
pub const LANES_MAX: usize = 32;
/// A kind known to be of little worth gets one turn for this many of an unknown kind.
const KNOWN_EVERY: u64 = 4;
/// URLs that may go to lanes in one turn of the queue.
const MOVED_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const PROVEN: KindFacts = KindFacts { branch: 7, weight: Weight::Sixteenth, node: 1, pages: 9, is_known: true };

    /// Lanes whose URLs are counted, and a queue that always has some.
    #[derive(Default)]
    struct Bed {
        lanes: KindLanes,
        pushed: u32,
    }

    impl Bed {
        fn push(&mut self, of: KindFacts) {
            self.pushed += 1;
            let ticket = Ticket { number: u64::from(self.pushed), depth: 0, is_strangers: false };
            self.lanes.push(of, QueueTurn::Queue, (ticket, "http://a.test/"), 100, Discipline::Oldest);
        }

        /// The number of the URL that has the turn; `None`: one from the queue.
        fn take(&mut self, weight: Weight) -> Option<u64> {
            let turn = self.lanes.turn(true).expect("a turn");
            let taken = match turn {
                QueueTurn::Queue => None,
                QueueTurn::Lane(at) => self.lanes.queue(at).and_then(HostQueue::pop).map(|(ticket, _)| ticket.number),
            };
            self.lanes.had(turn, if turn == QueueTurn::Queue { Weight::Whole } else { weight });
            taken
        }
    }

    /// Whatever arrives, in any order: every waiting kind gets its turn.
    #[test]
    fn no_lane_is_put_off_by_what_comes() {
        let quarter = KindFacts { weight: Weight::Quarter, ..PROVEN };
        let advised = KindFacts { branch: 7, ..KindFacts::ADVISED_AGAINST };
        let inherited = KindFacts { weight: Weight::Quarter, ..advised };
        let other = KindFacts { branch: 8, ..PROVEN };
        for kinds in [[PROVEN, quarter], [advised, inherited], [quarter, other], [other, advised]] {
            for every in 1..20 {
                let mut bed = Bed::default();
                // When the first URL of each kind had its turn.
                let mut first = [None; 2];
                for turn in 0..400 {
                    if turn % every == 0 {
                        kinds.iter().for_each(|kind| bed.push(*kind));
                    }
                    if let Some(number @ 1..=2) = bed.take(kinds[turn % 2].weight) {
                        first[number as usize - 1] = Some(turn);
                    }
                }
                // Two lanes, one known and the other not: at most every fifth turn of a sixteenth.
                assert!(
                    first.iter().all(|turn| turn.is_some_and(|turn| turn <= 5 * 20)),
                    "{kinds:?} {every} {first:?}"
                );
            }
        }
    }

    /// A kind that has proved its worth since its URLs came gets through its lane nearly as fast as the queue.
    #[test]
    fn a_lane_that_has_proved_its_worth_is_as_fast_as_the_queue() {
        let mut bed = Bed::default();
        (0..60).for_each(|_| bed.push(PROVEN));
        let of_lane = (0..100).filter(|_| bed.take(Weight::Whole).is_some()).count();
        // After the sixteen turns for which it waits.
        assert!((38..=44).contains(&of_lane), "{of_lane}");
    }

    /// An attempt that costs no turn of a lane costs the queue one of its own.
    #[test]
    fn a_turn_of_the_queue_is_one() {
        let mut bed = Bed::default();
        (0..60).for_each(|_| bed.push(PROVEN));
        let lanes = (0..160).filter(|_| bed.take(Weight::Sixteenth).is_some()).count();
        assert!((8..=10).contains(&lanes), "{lanes}");
    }
}
