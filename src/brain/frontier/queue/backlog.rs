//! The waiting URLs of one host: the one under consideration, those that wait for a retry, the host's queue, and the
//! lanes of kinds with a lowered weight ([`super::kind_lanes`]).
//!
//! If URLs have levels ([`Level`]), there are several queues.
//!
//! Decides: the current URL first, then a retry that is due, then the next of the queue in its order
//! ([`Discipline`]), or of a lane whose turn it is. While too many wait for a retry, no new URL is taken until one of
//! them has had its turn.
//! Invariants: at most one URL is the current one; at most one of the queues has a block on its way back.
//! Limits: [`RETRIES_MAX`] URLs wait for a retry, [`RETRIES_MIN`] while the frontier's memory is over its bound; and
//! [`PUT_OFF_MAX`] for the end of a rest of their kind or a slot for their port.

use super::host_queue::{Discipline, HostQueue, Refill};
use super::kind_lanes::{KindLanes, LANES_MAX, QueueTurn};
use super::spilling::{SHORT_TAIL_BYTES, spill_tail};
use super::waiting::{Ticket, WaitingUrls};
use crate::kinds::{KindFacts, Weight};
use crate::spool::{Block, Spool};
use ringcrawl_base::time::Instant;
use ringcrawl_config::UrlOrder;
use ringcrawl_url::Url;

/// The priority of a URL among those of its host; the highest first.
pub type Level = u8;

/// The highest level.
pub const TOP_LEVEL: Level = 7;

/// How many levels URLs have in this order.
pub fn levels(order: UrlOrder) -> Level {
    match order {
        UrlOrder::Backlinks | UrlOrder::Rank => TOP_LEVEL + 1,
        UrlOrder::BreadthFirst | UrlOrder::DepthFirst | UrlOrder::Random => 1,
    }
}

/// The URLs that wait for a host.
#[derive(Debug, Default)]
pub struct Backlog {
    queue: HostQueue,
    /// URLs of levels above the lowest, the lowest of these first; most hosts have none.
    levels: Option<Box<[HostQueue; TOP_LEVEL as usize]>>,
    /// Most hosts have none.
    lanes: Option<Box<KindLanes>>,
    discipline: Discipline,
    /// The URL under consideration: it stays here while the address and robots.txt are fetched for it.
    current: Option<QueuedUrl>,
    retries: Vec<(Instant, QueuedUrl)>,
    retries_bytes: u64,
}

/// A URL that waits.
#[derive(Clone, Debug)]
pub struct QueuedUrl {
    /// The URL.
    pub url: Url,
    /// Its number in the log, and how it was found.
    pub ticket: Ticket,
    /// The number of earlier attempts.
    pub attempt: u8,
    /// Its level in the host's queue.
    pub level: Level,
    /// The turn in which it was taken.
    pub turn: QueueTurn,
    /// How often its kind gets a turn.
    pub weight: Weight,
    /// Whether its page must be examined.
    pub is_examined: bool,
    /// It waits for the end of a rest of its kind, or for a slot for its port, and not for a retry.
    pub is_put_off: bool,
}

/// The result of taking from the queue.
#[derive(Debug)]
pub enum Taken {
    /// There is a current URL now.
    Url,
    /// A URL taken in this turn cannot be read.
    Damaged(QueueTurn),
    /// This block must come back first.
    Read(Block),
    /// Nothing.
    Nothing,
}

impl Backlog {
    /// An empty backlog, with queues of this order.
    pub fn new(discipline: Discipline) -> Backlog {
        Backlog { queue: HostQueue::new(discipline), discipline, ..Backlog::default() }
    }

    /// Adds a URL to the queue.
    pub fn push(&mut self, level: Level, ticket: Ticket, url: &str, head_urls: usize) {
        let levels = level.checked_sub(1).map(|level| (level, self.levels.get_or_insert_default()));
        match levels.and_then(|(level, levels)| levels.get_mut(usize::from(level))) {
            // All together as much as the queue, as heads stay in memory.
            Some(queue) => queue.push(ticket, url, head_urls.div_ceil(TOP_LEVEL as usize)),
            None => self.queue.push(ticket, url, head_urls),
        }
    }

    /// Adds a URL that was taken from the queue, or from another lane, to the lane of its kind.
    pub fn lower(&mut self, of: KindFacts, entry: &QueuedUrl, head_urls: usize) {
        let head_urls = head_urls.div_ceil(LANES_MAX);
        let lanes = self.lanes.get_or_insert_default();
        lanes.push(of, entry.turn, (entry.ticket, entry.url.as_str()), head_urls, self.discipline);
    }

    /// Adds a URL that was not queued before to the lane of its kind.
    pub fn push_beside(&mut self, of: KindFacts, ticket: Ticket, url: &str, head_urls: usize) {
        let head_urls = head_urls.div_ceil(LANES_MAX);
        let lanes = self.lanes.get_or_insert_default();
        lanes.push(of, QueueTurn::BESIDE, (ticket, url), head_urls, self.discipline);
    }

    /// A block of a queue came back.
    pub fn returned(&mut self, batch: WaitingUrls) {
        let reading = self.all().position(HostQueue::is_reading).unwrap_or_default();
        if let Some(queue) = self.all_mut().nth(reading) {
            queue.returned(batch);
        }
    }

    /// Whether its tails together are worth a write.
    pub fn has_long_tail(&self) -> bool {
        self.tail_bytes() >= SHORT_TAIL_BYTES
    }

    /// Sends the queues' tails to disk, except short ones.
    pub fn spill(&mut self, spool: &mut Spool) {
        for queue in self.all_mut() {
            if queue.tail_bytes() >= SHORT_TAIL_BYTES {
                spill_tail(queue, spool);
            }
        }
    }

    /// Whether URLs of the queues are on disk.
    pub fn has_spilled(&self) -> bool {
        self.all().any(HostQueue::has_spilled)
    }

    /// Bytes of URLs in the queues' tails.
    pub fn tail_bytes(&self) -> usize {
        self.all().map(HostQueue::tail_bytes).sum()
    }

    /// Bytes of memory of the queues and of the URLs that wait for a retry.
    pub fn ram_bytes(&self) -> u64 {
        let lanes = self.lanes.as_ref().map_or(0, |lanes| lanes.ram_bytes());
        self.all().map(HostQueue::ram_bytes).sum::<usize>() as u64 + lanes as u64 + self.retries_bytes
    }

    /// The highest level of the waiting URLs.
    pub fn level(&self) -> Level {
        self.queued_level().max(self.current.as_ref().map(|entry| entry.level)).unwrap_or_default()
    }

    fn all(&self) -> impl Iterator<Item = &HostQueue> {
        let levels = self.levels.iter().flat_map(|levels| levels.iter());
        let lanes = self.lanes.iter().flat_map(|lanes| lanes.queues());
        std::iter::once(&self.queue).chain(levels).chain(lanes)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut HostQueue> {
        let levels = self.levels.iter_mut().flat_map(|levels| levels.iter_mut());
        let lanes = self.lanes.iter_mut().flat_map(|lanes| lanes.queues_mut());
        std::iter::once(&mut self.queue).chain(levels).chain(lanes)
    }

    /// The highest level of the queues that have a URL.
    fn queued_level(&self) -> Option<Level> {
        let levels = (1..).zip(self.levels.iter().flat_map(|levels| levels.iter()));
        let level = levels.filter(|(_, queue)| !queue.is_empty()).map(|(level, _)| level).last();
        level.or_else(|| (!self.queue.is_empty()).then_some(0))
    }

    /// The URL under consideration.
    pub fn current(&self) -> Option<&QueuedUrl> {
        self.current.as_ref()
    }

    /// Removes the current URL.
    pub fn take_current(&mut self) -> Option<QueuedUrl> {
        self.current.take()
    }

    /// Makes a URL the current one; there must be none.
    pub fn set_current(&mut self, entry: QueuedUrl) {
        debug_assert!(self.current.is_none(), "two current URLs");
        self.current = Some(entry);
    }

    /// Retries a URL at `at`, or tries it for the first time if it was put off.
    pub fn retry(&mut self, at: Instant, entry: QueuedUrl) {
        let most = RETRIES_MAX + PUT_OFF_MAX;
        debug_assert!(self.retries.len() < most, "a URL was taken while too many wait for another try");
        self.retries_bytes += entry.ram_bytes();
        self.retries.push((at, entry));
    }

    /// URLs that wait for a retry.
    pub fn tried(&self) -> usize {
        self.retries.len() - self.put_off()
    }

    /// URLs that were put off and never tried.
    pub fn put_off(&self) -> usize {
        self.retries.iter().filter(|(_, entry)| entry.is_put_off && entry.attempt == 0).count()
    }

    /// When the first of all these is due.
    pub fn next_retry(&self) -> Option<Instant> {
        self.retries.iter().map(|(at, _)| *at).min()
    }

    /// Makes the first URL that is due for a retry the current one; returns whether there was one.
    pub fn take_retry(&mut self, now: Instant) -> bool {
        let due = self.retries.iter().enumerate().filter(|(_, (at, _))| *at <= now);
        let Some((index, _)) = due.min_by_key(|(_, (at, _))| *at) else { return false };
        // URLs that are due at the same time keep their order.
        let (_, mut entry) = self.retries.remove(index);
        if self.retries.is_empty() {
            self.retries = Vec::new();
        }
        self.retries_bytes -= entry.ram_bytes();
        entry.is_put_off = false;
        self.set_current(entry);
        true
    }

    /// All URLs that wait for a retry are due now.
    pub fn retry_all(&mut self, now: Instant) {
        self.retries.iter_mut().for_each(|(at, _)| *at = now);
    }

    /// Those of them for which `is_meant` holds are.
    pub fn retry_those(&mut self, now: Instant, is_meant: impl Fn(&Url) -> bool) {
        let meant = self.retries.iter_mut().filter(|(_, entry)| is_meant(&entry.url));
        meant.for_each(|(at, _)| *at = now);
    }

    /// URLs put off until `until` at the latest are due at once.
    pub fn put_off_no_longer(&mut self, until: Instant) {
        let meant = self.retries.iter_mut().filter(|(at, entry)| entry.is_put_off && *at <= until);
        meant.for_each(|(at, _)| *at = Instant::ZERO);
    }

    /// When the URL of this number is retried.
    pub fn retries_at(&self, number: u64) -> Option<Instant> {
        self.retries.iter().find(|(_, entry)| entry.ticket.number == number).map(|(at, _)| *at)
    }

    /// Makes the next URL the current one.
    pub fn take_next(&mut self) -> Taken {
        loop {
            let level = self.queued_level();
            let turn = match &self.lanes {
                Some(lanes) => lanes.turn(level.is_some()),
                None => level.map(|_| QueueTurn::Queue),
            };
            let Some(turn) = turn else {
                // They are worth some kilobytes each.
                self.levels = None;
                // A lane that is skipped may hold URLs.
                self.lanes.take_if(|lanes| lanes.queues().all(HostQueue::is_empty));
                return Taken::Nothing;
            };
            let level = level.filter(|_| turn == QueueTurn::Queue).unwrap_or_default();
            let mut queue = None;
            if let (QueueTurn::Lane(at), Some(lanes)) = (turn, &mut self.lanes) {
                queue = lanes.queue(at);
            } else if let (Some(level), Some(levels)) = (level.checked_sub(1), &mut self.levels) {
                queue = levels.get_mut(usize::from(level));
            }
            let queue = queue.unwrap_or(&mut self.queue);
            if let Some((ticket, text)) = queue.pop() {
                // Every text in a queue came from a `Url`; one that does not parse again was damaged on disk.
                let Ok(url) = Url::from_canonical(&text) else { return Taken::Damaged(turn) };
                let (weight, is_examined) = (Weight::Whole, false);
                self.set_current(QueuedUrl {
                    url,
                    ticket,
                    attempt: 0,
                    level,
                    turn,
                    weight,
                    is_examined,
                    is_put_off: false,
                });
                return Taken::Url;
            }
            match queue.refill() {
                Refill::Taken => {}
                Refill::Read(block) => return Taken::Read(block),
                Refill::Empty => return Taken::Nothing,
            }
        }
    }

    /// Whether a URL taken in this turn must go to its kind's lane.
    pub fn is_to_move(&self, turn: QueueTurn, of: KindFacts) -> bool {
        self.lanes.as_ref().is_none_or(|lanes| lanes.is_to_move(turn, of))
    }

    /// Sets whether the lane of resting kinds is skipped.
    pub fn rest_lane(&mut self, is_resting: bool) {
        if let Some(lanes) = &mut self.lanes {
            lanes.rest(is_resting);
        }
    }

    /// Whether URLs wait in the lane of resting kinds.
    pub fn has_resting(&self) -> bool {
        self.lanes.as_ref().is_some_and(|lanes| lanes.has_resting())
    }

    /// A URL of this weight that was taken in this turn is fetched.
    pub fn had(&mut self, turn: QueueTurn, weight: Weight) {
        if let Some(lanes) = &mut self.lanes {
            lanes.had(turn, weight);
        }
    }

    /// Whether a URL waits in the queue; taken ones do not count.
    pub fn has_queued(&self) -> bool {
        self.queued_level().is_some()
    }

    /// URLs in memory that were already considered.
    pub fn considered(&self) -> impl Iterator<Item = &Url> {
        self.current.iter().chain(self.retries.iter().map(|(_, entry)| entry)).map(|entry| &entry.url)
    }
}

impl QueuedUrl {
    /// Memory that it holds while it waits for a retry.
    fn ram_bytes(&self) -> u64 {
        (size_of::<(Instant, QueuedUrl)>() + self.url.as_str().len()) as u64
    }
}

/// URLs of a host that wait for a retry.
pub const RETRIES_MAX: usize = 256;
/// The same while the frontier's memory is over its bound.
pub const RETRIES_MIN: usize = 8;
/// URLs of a host that are put off with their kind and wait in memory; further ones wait in a lane.
pub const PUT_OFF_MAX: usize = 64;
