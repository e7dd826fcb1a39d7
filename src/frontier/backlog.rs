//! The URLs of one host that wait: the one under consideration, those that wait for another try, and the queue.
//!
//! Decides: the current URL first, then a retry that is due, then the oldest of the queue. While too many wait for
//! another try, no new URL is taken until one of them has had its turn.
//! Invariants: at most one URL is the current one.
//! Limits: [`RETRIES_MAX`] URLs wait for another try, [`RETRIES_MIN`] while the frontier's memory is over its bound.

use super::queue::{HostQueue, Refill};
use super::waiting::{Ticket, WaitingUrls};
use crate::spool::{Block, Spool};
use crate::time::Instant;
use crate::url::Url;

/// What waits for a host.
#[derive(Debug, Default)]
pub struct Backlog {
    queue: HostQueue,
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
}

/// What the queue has to give.
#[derive(Debug)]
pub enum Taken {
    /// There is a current URL now.
    Url,
    /// This block must come back first.
    Read(Block),
    /// Nothing.
    Nothing,
}

impl Backlog {
    /// Adds a URL to the queue.
    pub fn push(&mut self, ticket: Ticket, url: &str, head_urls: usize) {
        self.queue.push(ticket, url, head_urls);
    }

    /// A block of the queue came back.
    pub fn returned(&mut self, batch: WaitingUrls) {
        self.queue.returned(batch);
    }

    /// Sends the tail of the queue to disk.
    pub fn spill(&mut self, spool: &mut Spool) {
        super::spill_tail(&mut self.queue, spool);
    }

    /// Bytes of URLs in the tail of the queue.
    pub fn tail_bytes(&self) -> usize {
        self.queue.tail_bytes()
    }

    /// Bytes of memory of the queue and of what waits for another try.
    pub fn ram_bytes(&self) -> u64 {
        self.queue.ram_bytes() as u64 + self.retries_bytes
    }

    /// The URL under consideration.
    pub fn current(&self) -> Option<&QueuedUrl> {
        self.current.as_ref()
    }

    /// Takes the current URL away.
    pub fn take_current(&mut self) -> Option<QueuedUrl> {
        self.current.take()
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

    /// Makes the oldest URL of the queue the current one, and counts in `damaged` those that cannot be read.
    pub fn take_next(&mut self, damaged: &mut u64) -> Taken {
        loop {
            if let Some((ticket, text)) = self.queue.pop() {
                // Every text in a queue came out of a `Url`; one that does not parse again was damaged on disk.
                match Url::from_canonical(&text) {
                    Ok(url) => {
                        self.set_current(QueuedUrl { url, ticket, attempt: 0 });
                        return Taken::Url;
                    }
                    Err(_) => *damaged += 1,
                }
                continue;
            }
            match self.queue.refill() {
                Refill::Taken => {}
                Refill::Read(block) => return Taken::Read(block),
                Refill::Empty => return Taken::Nothing,
            }
        }
    }

    /// URLs in memory that were considered already.
    pub fn considered(&self) -> impl Iterator<Item = &Url> {
        self.current.iter().chain(self.retries.iter().map(|(_, entry)| entry)).map(|entry| &entry.url)
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
