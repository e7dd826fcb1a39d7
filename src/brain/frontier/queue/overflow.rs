//! One lane of the URLs that wait outside ([`super::outside`]).
//!
//! Decides: the URLs wait in one FIFO queue for all hosts, which goes to disk. One queue needs no record of a host,
//! and each URL in it is written and read once.
//! Limits: at most one block in memory, less while the frontier's memory is over its bound.

use super::host_queue::{HostQueue, Refill};
use super::spilling::{SHORT_TAIL_BYTES, spill_tail};
use super::waiting::{Ticket, WaitingUrls};
use crate::spool::{ReadFor, Spool};
use ringcrawl_url::Url;

/// The queue.
#[derive(Debug, Default)]
pub struct Overflow {
    queue: HostQueue,
    urls: u64,
}

/// An item taken from the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OverflowItem {
    /// A URL, as its text, with its ticket.
    Url(Ticket, String),
    /// Nothing yet: ask again, or a block must come back first.
    Later,
    /// Nothing, although this many URLs should be there: they were in a damaged block.
    Lost(u64),
}

impl Overflow {
    /// Whether no URL waits.
    pub fn is_empty(&self) -> bool {
        self.urls == 0
    }

    /// Whether a URL, or a block of them, can be taken now.
    pub fn is_ready(&self) -> bool {
        self.urls > 0 && !self.queue.is_reading()
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> u64 {
        self.queue.ram_bytes() as u64
    }

    /// Adds a URL; `bytes_left` is what the frontier's memory has left without this queue.
    pub fn push(&mut self, url: &Url, ticket: Ticket, bytes_left: u64, spool: &mut Spool) {
        self.queue.push(ticket, url.as_str(), 0);
        self.urls += 1;
        let has_room = self.ram_bytes() <= bytes_left;
        if self.queue.tail_bytes() >= if has_room { LANE_BLOCK_BYTES } else { SHORT_TAIL_BYTES } {
            spill_tail(&mut self.queue, spool);
        }
    }

    /// Takes the oldest URL; a block that must be read first comes back for `lane`.
    pub fn pop(&mut self, lane: u16, spool: &mut Spool) -> OverflowItem {
        if let Some((ticket, text)) = self.queue.pop() {
            self.urls -= 1;
            return OverflowItem::Url(ticket, text);
        }
        match self.queue.refill() {
            Refill::Taken => OverflowItem::Later,
            Refill::Read(block) => {
                spool.read(block, ReadFor::Outside(lane));
                OverflowItem::Later
            }
            Refill::Empty => OverflowItem::Lost(std::mem::take(&mut self.urls)),
        }
    }

    /// A block came back.
    pub fn returned(&mut self, batch: WaitingUrls) {
        self.queue.returned(batch);
    }
}

/// A block is closed at this length, and comes back whole: there may be one for each lane.
const LANE_BLOCK_BYTES: usize = 8 * 1024;
