//! The URLs of one host that wait: the one under consideration, those that wait for another try, and three queues: the usual one,
//! that of URLs that are deferred ([`super::deferred`]), and that of the deferred ones that are poor as well ([`super::yields`]).
//!
//! Where URLs have levels ([`super::importance`]), the usual queue is several.
//!
//! Decides: the current URL first, then a retry that is due, then the next of the first queue that has one, in its order
//! ([`Discipline`]). While too many wait for another try, no new URL is taken until one of them has had its turn.
//! Invariants: at most one URL is the current one; at most one of the queues has a block on its way back.
//! Limits: [`RETRIES_MAX`] URLs wait for another try, [`RETRIES_MIN`] while the frontier's memory is over its bound.

use super::SHORT_TAIL_BYTES;
use super::deferred::is_deferred;
use super::importance::{Level, TOP_LEVEL};
use super::queue::{Discipline, HostQueue, Refill};
use super::waiting::{Ticket, WaitingUrls};
use crate::spool::{Block, Spool};
use crate::time::Instant;
use crate::url::Url;

/// What waits for a host.
#[derive(Debug, Default)]
pub struct Backlog {
    /// By [`Band`].
    queues: [HostQueue; 3],
    /// Usual URLs of a level above the lowest, the lowest of these first; most hosts have none.
    levels: Option<Box<[HostQueue; TOP_LEVEL as usize]>>,
    /// The URL under consideration: it stays here while the address and robots.txt are fetched for it.
    current: Option<QueuedUrl>,
    retries: Vec<(Instant, QueuedUrl)>,
    retries_bytes: u64,
}

/// A URL that waits.
#[derive(Clone, Debug)]
pub struct QueuedUrl {
    /// Which.
    pub url: Url,
    /// The bits of its `Hops`.
    pub ticket: Ticket,
    /// How many times it was tried before.
    pub attempt: u8,
    /// In which queue it stood.
    pub band: Band,
    /// In which of the usual queues.
    pub level: Level,
    /// It is deferred, and was taken while others waited.
    pub is_early: bool,
}

/// How soon a URL's turn comes among those of its host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Band {
    /// As it came.
    #[default]
    Usual,
    /// Behind those.
    Deferred,
    /// Behind the deferred ones: pages like it were not worth their fetch.
    Poor,
}

/// What the queue has to give.
#[derive(Debug)]
pub enum Taken {
    /// There is a current URL now.
    Url,
    /// This block must come back first.
    Read(Block),
    /// Deferred URLs alone, which may not be taken now.
    Deferred,
    /// Nothing.
    Nothing,
}

impl Backlog {
    /// An empty one, with queues of this order.
    pub fn new(discipline: Discipline) -> Backlog {
        Backlog { queues: [(); 3].map(|()| HostQueue::new(discipline)), ..Backlog::default() }
    }

    /// Adds a URL to a queue; levels are those of the usual one.
    pub fn push(&mut self, band: Band, level: Level, ticket: Ticket, url: &str, head_urls: usize) {
        debug_assert_eq!(band > Band::Usual, is_deferred(ticket.depth), "a band and a ticket that differ");
        let queue = match (level.checked_sub(1), band) {
            (Some(level), Band::Usual) => self.levels.get_or_insert_default().get_mut(usize::from(level)),
            _ => None,
        };
        match queue {
            // All together as much as the usual one, as heads stay in memory.
            Some(queue) => queue.push(ticket, url, head_urls.div_ceil(TOP_LEVEL as usize)),
            None => self.queues[band as usize].push(ticket, url, head_urls),
        }
    }

    /// A block of a queue came back.
    pub fn returned(&mut self, batch: WaitingUrls) {
        let reading = self.all().position(HostQueue::is_reading).unwrap_or_default();
        if let Some(queue) = self.all_mut().nth(reading) {
            queue.returned(batch);
        }
    }

    /// Sends the queues' tails to disk, but for a short one.
    pub fn spill(&mut self, spool: &mut Spool) {
        for queue in self.all_mut() {
            if queue.tail_bytes() >= SHORT_TAIL_BYTES {
                super::spill_tail(queue, spool);
            }
        }
    }

    /// Bytes of URLs in the longest of the queues' tails.
    pub fn tail_bytes(&self) -> usize {
        self.all().map(HostQueue::tail_bytes).max().unwrap_or_default()
    }

    /// Bytes of memory of the queues and of what waits for another try.
    pub fn ram_bytes(&self) -> u64 {
        self.all().map(|queue| queue.ram_bytes() as u64).sum::<u64>() + self.retries_bytes
    }

    /// The highest level of what waits.
    pub fn level(&self) -> Level {
        self.usual_level().max(self.current.as_ref().map(|entry| entry.level)).unwrap_or_default()
    }

    fn all(&self) -> impl Iterator<Item = &HostQueue> {
        self.queues.iter().chain(self.levels.iter().flat_map(|levels| levels.iter()))
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut HostQueue> {
        self.queues.iter_mut().chain(self.levels.iter_mut().flat_map(|levels| levels.iter_mut()))
    }

    /// The highest level of the usual queues that has a URL.
    fn usual_level(&self) -> Option<Level> {
        let levels = (1..).zip(self.levels.iter().flat_map(|levels| levels.iter()));
        let level = levels.filter(|(_, queue)| !queue.is_empty()).map(|(level, _)| level).last();
        level.or_else(|| (!self.queues[Band::Usual as usize].is_empty()).then_some(0))
    }

    /// The level of the next URL of a band; `None`: there is none.
    fn next_of(&self, band: Band) -> Option<Level> {
        match band {
            Band::Usual => self.usual_level(),
            _ => (!self.queues[band as usize].is_empty()).then_some(0),
        }
    }

    /// The URL under consideration.
    pub fn current(&self) -> Option<&QueuedUrl> {
        self.current.as_ref()
    }

    /// Takes the current URL away.
    pub fn take_current(&mut self) -> Option<QueuedUrl> {
        self.current.take()
    }

    /// The same, to change it.
    pub fn current_mut(&mut self) -> Option<&mut QueuedUrl> {
        self.current.as_mut()
    }

    /// Makes a URL the current one; there must be none.
    pub fn set_current(&mut self, entry: QueuedUrl) {
        debug_assert!(self.current.is_none(), "two current URLs");
        self.current = Some(entry);
    }

    /// Tries a URL again at `at`.
    pub fn retry(&mut self, at: Instant, entry: QueuedUrl) {
        debug_assert!(self.retries.len() < RETRIES_MAX, "a URL was taken while too many wait for another try");
        self.retries_bytes += entry.ram_bytes();
        self.retries.push((at, entry));
    }

    /// URLs that wait for another try, and when the first of them is due.
    pub fn retries(&self) -> (usize, Option<Instant>) {
        (self.retries.len(), self.retries.iter().map(|(at, _)| *at).min())
    }

    /// Makes a URL that is due for another try the current one; whether there was one.
    pub fn take_retry(&mut self, now: Instant) -> bool {
        let Some(index) = self.retries.iter().position(|(at, _)| *at <= now) else { return false };
        let (_, entry) = self.retries.swap_remove(index);
        if self.retries.is_empty() {
            self.retries = Vec::new();
        }
        self.retries_bytes -= entry.ram_bytes();
        self.set_current(entry);
        true
    }

    /// All that wait for another try are due now.
    pub fn retry_all(&mut self, now: Instant) {
        self.retries.iter_mut().for_each(|(at, _)| *at = now);
    }

    /// Those of them that `is_meant` names are.
    pub fn retry_those(&mut self, now: Instant, is_meant: impl Fn(&Url) -> bool) {
        let meant = self.retries.iter_mut().filter(|(_, entry)| is_meant(&entry.url));
        meant.for_each(|(at, _)| *at = now);
    }

    /// Makes the next URL of the first queue that has one the current one, in this order of the queues, if one of a
    /// queue as far back may be taken as `last`; counts in `damaged` those that cannot be read.
    pub fn take_next(&mut self, order: [Band; 3], last: Band, damaged: &mut u64) -> Taken {
        loop {
            let next = order.into_iter().find_map(|band| self.next_of(band).map(|level| (band, level)));
            let Some((band, level)) = next else {
                // They are worth a kilobyte.
                self.levels = None;
                return Taken::Nothing;
            };
            if band > last {
                return Taken::Deferred;
            }
            let of_level = level.checked_sub(1).zip(self.levels.as_mut());
            let queue = of_level.and_then(|(level, levels)| levels.get_mut(usize::from(level)));
            let queue = queue.unwrap_or(&mut self.queues[band as usize]);
            if let Some((ticket, text)) = queue.pop() {
                // Every text in a queue came out of a `Url`; one that does not parse again was damaged on disk.
                match Url::from_canonical(&text) {
                    Ok(url) => {
                        self.set_current(QueuedUrl { url, ticket, attempt: 0, band, level, is_early: false });
                        return Taken::Url;
                    }
                    Err(_) => *damaged += 1,
                }
                continue;
            }
            match queue.refill() {
                Refill::Taken => {}
                Refill::Read(block) => return Taken::Read(block),
                Refill::Empty => return Taken::Nothing,
            }
        }
    }

    /// Whether a URL waits that is not deferred, besides those that were taken.
    pub fn has_usual(&self) -> bool {
        self.usual_level().is_some()
    }

    /// The first queue that has a URL.
    pub fn first_band(&self) -> Option<Band> {
        Band::ORDER.into_iter().find(|band| self.next_of(*band).is_some())
    }

    /// URLs in memory that were considered already.
    pub fn considered(&self) -> impl Iterator<Item = &Url> {
        self.current.iter().chain(self.retries.iter().map(|(_, entry)| entry)).map(|entry| &entry.url)
    }
}

impl Band {
    /// The usual order.
    pub const ORDER: [Band; 3] = [Band::Usual, Band::Deferred, Band::Poor];

    /// Of a URL of which is known that it was deferred, or was not, and not why.
    pub fn of(ticket: Ticket) -> Band {
        if is_deferred(ticket.depth) { Band::Poor } else { Band::Usual }
    }
}

impl QueuedUrl {
    /// Memory that it holds while it waits for another try.
    fn ram_bytes(&self) -> u64 {
        (size_of::<(Instant, QueuedUrl)>() + self.url.as_str().len()) as u64
    }
}

/// URLs of a host that wait for another try.
pub const RETRIES_MAX: usize = 256;
/// The same while the frontier's memory is over its bound.
pub const RETRIES_MIN: usize = 8;
