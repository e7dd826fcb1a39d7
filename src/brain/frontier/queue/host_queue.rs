//! The waiting URLs of one host, in one of three orders, most of a long queue on disk.
//!
//! Decides, for the oldest first ([`Discipline::Oldest`]): three parts in this order: `head` in memory, `spilled`
//! blocks on disk, `tail` in memory. New URLs go to the head while it is short and nothing is behind it, otherwise to
//! the tail. A tail that the frontier wants out of memory becomes a block; when the head runs empty, the oldest block
//! comes back as the head.
//! For the newest first ([`Stack`]) there is one part in memory. All but its newest URLs become blocks once enough
//! have arrived since a block came back; the newest block comes back when memory is empty.
//! For URLs drawn at random ([`RandomPool`]), new URLs become blocks in random order. Whether the next URL is a new
//! one or one from disk is drawn in proportion to their numbers; for the latter, a drawn block comes back when the
//! one before it is used up.
//! Invariants: the order of arrival, or its reverse, is kept; for the oldest first, nothing is in `spilled` or `tail`
//! while a URL could have gone before it in `head`'s first `head_urls`.
//! Limits: the caller bounds bytes over all hosts, references of blocks included. URLs drawn from disk come one block
//! after the other: URLs that arrived together and went to disk together come in the same part of the crawl.

use std::collections::VecDeque;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::pool::RandomPool;
use super::stack::Stack;
use super::waiting::{Ticket, WaitingUrls};
use crate::spool::Block;
use ringcrawl_config::UrlOrder;

/// The waiting URLs of one host.
#[derive(Debug, Default)]
pub struct HostQueue {
    memory: Memory,
    spilled: VecDeque<Block>,
    /// What came back from disk and does not go there again: for the newest first in bytes, for drawn URLs in URLs.
    kept: u32,
    /// A block is on its way back: for the oldest first, it goes before everything that arrives meanwhile.
    is_reading: bool,
}

/// The order of a host's URLs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discipline {
    /// The oldest first.
    #[default]
    Oldest,
    /// The newest first.
    Newest,
    /// Any, by a generator with this seed.
    Drawn(u64),
}

impl Discipline {
    /// That of a crawl in this order.
    pub fn in_order(order: UrlOrder, rng_seed: u64) -> Discipline {
        match order {
            UrlOrder::DepthFirst => Discipline::Newest,
            UrlOrder::Random => Discipline::Drawn(rng_seed),
            UrlOrder::BreadthFirst | UrlOrder::Backlinks | UrlOrder::Rank => Discipline::Oldest,
        }
    }

    /// The same for one host: each draws by itself.
    pub fn of(self, host: &str) -> Discipline {
        match self {
            Discipline::Drawn(seed) => Discipline::Drawn(xxh3_64_with_seed(host.as_bytes(), seed)),
            other => other,
        }
    }
}

#[derive(Debug)]
enum Memory {
    Oldest { head: Fifo, tail: WaitingUrls },
    Newest(Stack),
    Drawn(RandomPool),
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::Oldest { head: Fifo::default(), tail: WaitingUrls::default() }
    }
}

impl HostQueue {
    /// An empty queue.
    pub fn new(discipline: Discipline) -> HostQueue {
        let memory = match discipline {
            Discipline::Oldest => Memory::default(),
            Discipline::Newest => Memory::Newest(Stack::default()),
            Discipline::Drawn(seed) => Memory::Drawn(RandomPool::new(seed)),
        };
        HostQueue { memory, ..HostQueue::default() }
    }

    /// Adds a URL.
    pub fn push(&mut self, ticket: Ticket, url: &str, head_urls: usize) {
        match &mut self.memory {
            Memory::Oldest { head, tail } => {
                let nothing_behind = self.spilled.is_empty() && !self.is_reading && tail.is_empty();
                if nothing_behind && head.len() < head_urls {
                    head.push(ticket, url);
                } else {
                    tail.push(ticket, url);
                }
            }
            Memory::Newest(stack) => stack.push(ticket, url),
            Memory::Drawn(pool) => pool.push(ticket, url),
        }
    }

    /// Takes the next URL; `None`: there may be more ([`HostQueue::refill`]).
    pub fn pop(&mut self) -> Option<(Ticket, String)> {
        match &mut self.memory {
            Memory::Oldest { head, .. } => head.pop(),
            Memory::Newest(stack) => {
                let popped = stack.pop();
                self.kept = self.kept.min(u32::try_from(stack.bytes_left()).unwrap_or(u32::MAX));
                popped
            }
            Memory::Drawn(pool) => {
                let kept = self.kept as usize;
                // Most blocks have as many.
                let on_disk = self.spilled.front().map_or(0, |block| block.urls as usize * self.spilled.len());
                if pool.below(pool.len() + on_disk) >= kept + on_disk {
                    return pool.pop_new(kept);
                }
                self.kept = self.kept.saturating_sub(1);
                pool.pop_back(kept)
            }
        }
    }

    /// After a [`HostQueue::pop`] of nothing: returns a block to bring back, or prepares the URLs in memory.
    pub fn refill(&mut self) -> Refill {
        let block = match &mut self.memory {
            Memory::Drawn(pool) => {
                let drawn = pool.below(self.spilled.len());
                self.spilled.swap_remove_back(drawn)
            }
            _ => self.spilled.pop_front(),
        };
        if let Some(block) = block {
            self.is_reading = true;
            if self.spilled.len() <= self.spilled.capacity() / 4 {
                self.spilled.shrink_to(self.spilled.len() * 2);
            }
            return Refill::Read(block);
        }
        match &mut self.memory {
            Memory::Oldest { head, tail } if !tail.is_empty() => {
                *head = Fifo::from(std::mem::take(tail));
                Refill::Taken
            }
            _ => Refill::Empty,
        }
    }

    /// A block that [`HostQueue::refill`] requested came back.
    pub fn returned(&mut self, batch: WaitingUrls) {
        assert!(self.is_reading, "a block came back that was not asked for");
        self.is_reading = false;
        match &mut self.memory {
            Memory::Oldest { head, .. } => {
                assert!(head.len() == 0, "a block came back to a head that still has URLs");
                *head = Fifo::from(batch);
            }
            Memory::Newest(stack) => {
                stack.add_older(&batch);
                self.kept = u32::try_from(batch.as_bytes().len()).unwrap_or(u32::MAX);
            }
            Memory::Drawn(pool) => {
                let kept = pool.add_back(self.kept as usize, &batch);
                self.kept = u32::try_from(kept).unwrap_or(u32::MAX);
            }
        }
    }

    /// Takes the URLs that may be written as blocks out of memory.
    pub fn take_tail(&mut self) -> WaitingUrls {
        match &mut self.memory {
            Memory::Oldest { tail, .. } => std::mem::take(tail),
            Memory::Newest(stack) => {
                let older = stack.take_older();
                self.kept = u32::try_from(stack.bytes_left()).unwrap_or(u32::MAX);
                older
            }
            Memory::Drawn(pool) => {
                self.kept = self.kept.max(1);
                pool.take_others(self.kept as usize)
            }
        }
    }

    /// The piece of this number from [`HostQueue::take_tail`] is now in this block.
    pub fn spilled(&mut self, piece: usize, block: Block) {
        match self.memory {
            Memory::Newest(_) => self.spilled.insert(piece.min(self.spilled.len()), block),
            _ => self.spilled.push_back(block),
        }
    }

    /// Whether no URL waits in it, here or on disk.
    pub fn is_empty(&self) -> bool {
        let is_memory_empty = match &self.memory {
            Memory::Oldest { head, tail } => head.len() == 0 && tail.is_empty(),
            Memory::Newest(stack) => stack.len() == 0,
            Memory::Drawn(pool) => pool.len() == 0,
        };
        is_memory_empty && self.spilled.is_empty() && !self.is_reading
    }

    /// Whether a block is on its way back.
    pub fn is_reading(&self) -> bool {
        self.is_reading
    }

    /// Bytes of URLs that may be written as blocks. With the newest first, none while a block is on its way back: it
    /// is older than they are, and would end up before them.
    pub fn tail_bytes(&self) -> usize {
        match &self.memory {
            Memory::Oldest { tail, .. } => tail.as_bytes().len(),
            Memory::Newest(_) if self.is_reading => 0,
            Memory::Newest(stack) => stack.bytes_left().saturating_sub(self.kept as usize),
            Memory::Drawn(pool) => {
                let new = pool.len().saturating_sub(self.kept as usize);
                pool.bytes_left() * new / pool.len().max(1)
            }
        }
    }

    /// Whether URLs are on disk or on their way back.
    pub fn has_spilled(&self) -> bool {
        self.is_reading || !self.spilled.is_empty()
    }

    /// Memory that the queue holds, including references of blocks, and taken entries of the head's block, which are
    /// freed with it.
    pub fn ram_bytes(&self) -> usize {
        let urls = match &self.memory {
            Memory::Oldest { head, tail } => head.batch.ram_bytes() + tail.ram_bytes(),
            Memory::Newest(stack) => stack.ram_bytes(),
            Memory::Drawn(pool) => pool.ram_bytes(),
        };
        urls + self.spilled.capacity() * size_of::<Block>()
    }

    /// URLs in memory and on disk.
    #[cfg(test)]
    fn len(&self) -> u64 {
        let spilled: u64 = self.spilled.iter().map(|block| u64::from(block.urls)).sum();
        let in_memory = match &self.memory {
            Memory::Oldest { head, tail } => head.len() + tail.len(),
            Memory::Newest(stack) => stack.len(),
            Memory::Drawn(pool) => pool.len(),
        };
        in_memory as u64 + spilled
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

    /// Frees the memory of taken entries; a queue that never runs empty would otherwise keep it all.
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

/// Bytes of taken entries above which copying the others pays.
const TAKEN_BYTES_MAX: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use super::super::spilling::{BLOCK_BYTES, SHORT_TAIL_BYTES, spill_tail};
    use super::*;
    use crate::spool::{ReadFor, Spool, SpoolOp};
    use ringcrawl_base::Rng;

    fn ticket(number: u64) -> Ticket {
        Ticket { number, depth: (number % 9) as u16, is_strangers: false }
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

    /// There are three for each of millions of hosts.
    #[test]
    fn a_queue_is_no_larger_than_before_there_were_orders() {
        assert_eq!(size_of::<HostQueue>(), 120);
    }

    /// A queue and its disk.
    struct Bed {
        queue: HostQueue,
        spool: Spool,
        disk: Vec<(Block, Vec<u8>)>,
    }

    impl Bed {
        fn spill(&mut self) {
            spill_tail(&mut self.queue, &mut self.spool);
        }

        /// The next URL; `meanwhile` runs while a block is on its way back, and may offer URLs.
        fn pop(&mut self, mut meanwhile: impl FnMut(&mut HostQueue)) -> Option<(Ticket, String)> {
            loop {
                if let Some(found) = self.queue.pop() {
                    return Some(found);
                }
                match self.queue.refill() {
                    Refill::Taken => {}
                    Refill::Empty => return None,
                    Refill::Read(block) => {
                        self.spool.read(block, ReadFor::Host(0));
                        while let Some(op) = self.spool.next_op() {
                            if let SpoolOp::Write { block, bytes } = op {
                                self.disk.push((block, bytes));
                            }
                        }
                        meanwhile(&mut self.queue);
                        let at = self.disk.iter().position(|(at, _)| *at == block).unwrap();
                        let (_, bytes) = self.disk.swap_remove(at);
                        assert!(self.spool.finished_read(block).is_some());
                        self.queue.returned(WaitingUrls::from_bytes(bytes).unwrap());
                    }
                }
            }
        }
    }

    #[test]
    fn order_is_kept_through_memory_and_disk() {
        let drawn = |seed| Discipline::Drawn(Rng::new(seed).next());
        for seed in 0..120 {
            let mut rng = Rng::new(seed);
            let discipline = [Discipline::Oldest, Discipline::Newest, drawn(seed)][seed as usize % 3];
            let mut bed = Bed { queue: HostQueue::new(discipline), spool: Spool::new(2_000), disk: Vec::new() };
            let (mut pushed, mut twin) = (0_u64, VecDeque::new());
            for step in 0..3_000 {
                match rng.below(10) {
                    0..=4 => {
                        bed.queue.push(ticket(pushed), &format!("http://h.test/{pushed}"), 4);
                        twin.push_back(pushed);
                        pushed += 1;
                    }
                    5 if bed.queue.tail_bytes() > 0 => bed.spill(),
                    _ => {
                        let found = bed.pop(|queue| {
                            if rng.percent(50) {
                                queue.push(ticket(pushed), &format!("http://h.test/{pushed}"), 4);
                                twin.push_back(pushed);
                                pushed += 1;
                            }
                        });
                        let number = found.as_ref().map(|(ticket, _)| ticket.number);
                        let expected = match discipline {
                            Discipline::Oldest => twin.pop_front(),
                            Discipline::Newest => twin.pop_back(),
                            Discipline::Drawn(_) => {
                                twin.iter().position(|other| Some(*other) == number).and_then(|at| twin.remove(at))
                            }
                        };
                        let expected = expected.map(|number| (ticket(number), format!("http://h.test/{number}")));
                        assert_eq!(found, expected, "seed {seed} step {step}");
                        assert_eq!(bed.queue.is_empty(), twin.is_empty());
                    }
                }
                assert_eq!(bed.queue.len(), twin.len() as u64, "seed {seed} step {step}");
            }
        }
    }

    /// Only URLs that arrived since the last block came back go to disk: a URL taken must not cost a block written.
    /// Drawn URLs are written once each; for the newest first, whose block lies below the new URLs, one block per
    /// tail.
    #[test]
    fn a_block_that_came_back_is_not_written_again_for_nothing() {
        for discipline in [Discipline::Newest, Discipline::Drawn(1)] {
            let mut bed = Bed { queue: HostQueue::new(discipline), spool: Spool::new(1 << 30), disk: Vec::new() };
            let (mut written, mut pushed, mut spills) = (0, 0, 0);
            for number in 0..4_000 {
                let url = format!("http://h.test/{number}");
                // Two thousand at first, and ten for each hundred taken.
                if number < 2_000 || number % 100 < 10 {
                    bed.queue.push(ticket(number), &url, 4);
                    pushed += WaitingUrls::entry_bytes(&url) as u64;
                }
                assert!(number < 2_000 || bed.pop(|_| ()).is_some());
                // Memory is short, according to `UrlMemory`.
                if number >= 1_999 && bed.queue.tail_bytes() >= SHORT_TAIL_BYTES {
                    let before = bed.spool.bytes();
                    bed.spill();
                    written += bed.spool.bytes() - before;
                    spills += 1;
                    assert!(bed.queue.tail_bytes() == 0);
                }
            }
            let again = if discipline == Discipline::Newest { spills * BLOCK_BYTES as u64 } else { 0 };
            assert!(spills <= 1 + 200 * 40 / SHORT_TAIL_BYTES as u64, "{discipline:?}: {spills} tails");
            assert!(written <= pushed + again, "{discipline:?}: {written} of {pushed} and {again}");
        }
    }

    /// Blocks take part in the draw: the last to arrive is not the first to go.
    #[test]
    fn what_is_on_disk_is_drawn_among_what_is_in_memory() {
        let mut bed = Bed { queue: HostQueue::new(Discipline::Drawn(9)), spool: Spool::new(1 << 30), disk: Vec::new() };
        for number in 0..20_000 {
            bed.queue.push(ticket(number), &format!("http://h.test/{number}"), 4);
            if number == 9_999 {
                bed.spill();
            }
        }
        let drawn: Vec<u64> = (0..10_000).filter_map(|_| bed.pop(|_| ())).map(|(ticket, _)| ticket.number).collect();
        let old = drawn.iter().filter(|number| **number < 10_000).count();
        assert!((3_500..6_500).contains(&old), "{old} of the first half of the URLs came of those on disk");
    }
}
