//! The URLs of one host that wait: first in, first out, the middle of a long queue on disk.
//!
//! Decides: three parts in this order: `head` in memory, `spilled` blocks on disk, `tail` in memory. New URLs
//! go to the head while it is short and nothing is behind it, else to the tail. A tail that the frontier
//! wants out of memory becomes a block; when the head runs empty the oldest block comes back as the head.
//! Invariants: nothing in `spilled` or `tail` while a URL could have gone before it in `head`'s first
//! `head_urls`; order of arrival is kept.
//! Limits: the caller bounds bytes over all hosts; a block reference is 16 bytes for a block of many URLs.

use std::collections::VecDeque;

use super::waiting::{Ticket, WaitingUrls};
use crate::spool::Block;

/// The waiting URLs of one host.
#[derive(Debug, Default)]
pub struct HostQueue {
    head: Fifo,
    spilled: VecDeque<Block>,
    /// A block is on its way back: it goes before everything that arrives meanwhile.
    reading: bool,
    tail: WaitingUrls,
}

impl HostQueue {
    /// Adds a URL at the end.
    pub fn push(&mut self, ticket: Ticket, url: &str, head_urls: usize) {
        let nothing_behind = self.spilled.is_empty() && !self.reading && self.tail.is_empty();
        if nothing_behind && self.head.len() < head_urls {
            self.head.push(ticket, url);
        } else {
            self.tail.push(ticket, url);
        }
    }

    /// Takes the oldest URL; `None` when the head is empty: there may be more behind it ([`HostQueue::refill`]).
    pub fn pop(&mut self) -> Option<(Ticket, String)> {
        self.head.pop()
    }

    /// With an empty head: a block to bring back, or the tail taken as the new head.
    pub fn refill(&mut self) -> Refill {
        if let Some(block) = self.spilled.pop_front() {
            self.reading = true;
            return Refill::Read(block);
        }
        if self.tail.is_empty() {
            return Refill::Empty;
        }
        self.head = Fifo::from(std::mem::take(&mut self.tail));
        Refill::Taken
    }

    /// A block that [`HostQueue::refill`] asked for came back.
    pub fn returned(&mut self, batch: WaitingUrls) {
        assert!(self.reading && self.head.len() == 0, "a block came back to a head that still has URLs");
        self.reading = false;
        self.head = Fifo::from(batch);
    }

    /// Takes the tail out of memory, to be written as a block.
    pub fn take_tail(&mut self) -> WaitingUrls {
        std::mem::take(&mut self.tail)
    }

    /// Where the tail of [`HostQueue::take_tail`] lies now.
    pub fn spilled(&mut self, block: Block) {
        self.spilled.push_back(block);
    }

    /// Whether no URL waits in it, here or on disk.
    pub fn is_empty(&self) -> bool {
        self.head.len() == 0 && self.spilled.is_empty() && !self.reading && self.tail.is_empty()
    }

    /// Whether a block is on its way back.
    pub fn is_reading(&self) -> bool {
        self.reading
    }

    /// Bytes of URLs in the tail.
    pub fn tail_bytes(&self) -> usize {
        self.tail.as_bytes().len()
    }

    /// Memory that the queue holds, also what was taken from the head's block and is freed with it.
    pub fn ram_bytes(&self) -> usize {
        self.head.batch.ram_bytes() + self.tail.ram_bytes()
    }

    /// URLs in all three parts.
    #[cfg(test)]
    fn len(&self) -> u64 {
        let spilled: u64 = self.spilled.iter().map(|block| u64::from(block.urls)).sum();
        self.head.len() as u64 + spilled + self.tail.len() as u64
    }
}

/// What [`HostQueue::refill`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refill {
    /// The head has URLs now.
    Taken,
    /// This block must come back first.
    Read(Block),
    /// The queue is empty.
    Empty,
}

/// Entries of a batch, taken from the front.
#[derive(Debug, Default)]
pub struct Fifo {
    batch: WaitingUrls,
    taken_bytes: usize,
    taken: usize,
}

impl Fifo {
    /// Adds a URL at the end.
    pub fn push(&mut self, ticket: Ticket, url: &str) {
        if self.taken_bytes >= TAKEN_BYTES_MAX && self.taken_bytes >= self.batch.as_bytes().len() / 2 {
            self.forget_taken();
        }
        self.batch.push(ticket, url);
    }

    /// Takes the oldest URL.
    pub fn pop(&mut self) -> Option<(Ticket, String)> {
        let (ticket, url) = self.batch.entry_at(self.taken_bytes)?;
        let found = (ticket, url.to_owned());
        self.taken_bytes += WaitingUrls::entry_bytes(url);
        self.taken += 1;
        if self.len() == 0 {
            // Frees the memory, too: most hosts are idle most of the time.
            *self = Fifo::default();
        }
        Some(found)
    }

    /// Frees the memory of what was taken; a queue that never runs empty would keep it all otherwise.
    fn forget_taken(&mut self) {
        let mut left = WaitingUrls::default();
        while let Some((ticket, url)) = self.batch.entry_at(self.taken_bytes) {
            left.push(ticket, url);
            self.taken_bytes += WaitingUrls::entry_bytes(url);
        }
        *self = Fifo::from(left);
    }

    /// URLs left.
    pub fn len(&self) -> usize {
        self.batch.len() - self.taken
    }

    /// Bytes of the URLs left.
    pub fn bytes_left(&self) -> usize {
        self.batch.as_bytes().len() - self.taken_bytes
    }
}

impl From<WaitingUrls> for Fifo {
    fn from(batch: WaitingUrls) -> Fifo {
        Fifo { batch, taken_bytes: 0, taken: 0 }
    }
}

/// Bytes of taken entries from which on it is worth to copy the others.
const TAKEN_BYTES_MAX: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Rng;
    use crate::spool::{ReadFor, Spool, SpoolOp};

    fn ticket(number: u64) -> Ticket {
        Ticket { number, depth: (number % 9) as u16 }
    }

    /// A calendar that links to its next day: one in, one out, never empty.
    #[test]
    fn a_queue_that_never_runs_empty_does_not_grow() {
        let mut fifo = Fifo::default();
        (0..10).for_each(|number| fifo.push(ticket(number), &format!("http://h.test/{number}")));
        for number in 10..100_000 {
            assert_eq!(fifo.pop(), Some((ticket(number - 10), format!("http://h.test/{}", number - 10))));
            fifo.push(ticket(number), &format!("http://h.test/{number}"));
            assert!(fifo.batch.as_bytes().len() < 2 * TAKEN_BYTES_MAX);
        }
        assert_eq!(fifo.len(), 10);
    }

    #[test]
    fn order_is_kept_through_memory_and_disk() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let (mut queue, mut spool) = (HostQueue::default(), Spool::new(2_000));
            let mut disk: Vec<(Block, Vec<u8>)> = Vec::new();
            let (mut pushed, mut popped) = (0_u64, 0_u64);
            for step in 0..3_000 {
                match rng.below(10) {
                    0..=4 => {
                        queue.push(ticket(pushed), &format!("http://h.test/{pushed}"), 4);
                        pushed += 1;
                    }
                    5 if queue.tail_bytes() > 0 => {
                        let tail = queue.take_tail();
                        queue.spilled(spool.write(tail.as_bytes(), tail.len() as u32));
                    }
                    _ => {
                        let found = queue.pop().or_else(|| match queue.refill() {
                            Refill::Taken => queue.pop(),
                            Refill::Empty => None,
                            Refill::Read(block) => {
                                spool.read(block, ReadFor::Host(0));
                                while let Some(op) = spool.next_op() {
                                    if let SpoolOp::Write { block, bytes } = op {
                                        disk.push((block, bytes));
                                    }
                                }
                                let bytes = disk.iter().find(|(at, _)| *at == block).unwrap().1.clone();
                                assert!(spool.finished_read(block).is_some());
                                queue.returned(WaitingUrls::from_bytes(bytes).unwrap());
                                queue.pop()
                            }
                        });
                        let expected = (popped < pushed).then(|| (ticket(popped), format!("http://h.test/{popped}")));
                        assert_eq!(found, expected, "seed {seed} step {step}");
                        popped += u64::from(found.is_some());
                    }
                }
                assert_eq!(queue.len(), pushed - popped, "seed {seed} step {step}");
            }
        }
    }
}
