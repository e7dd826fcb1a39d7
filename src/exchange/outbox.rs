//! What a shard has found for the others and not yet handed over.
//!
//! Decides: links for another shard gather in that shard's open batch; the batch closes when it is large or at the
//! next tick; a closed batch waits for room in the ring, in memory up to a bound that all destinations share, then
//! in the shard's spool on disk. Nothing is dropped. Order between batches is not kept: none is needed.
//! Ticks are the multiples of `exchange.batch_age_max`, the same for all shards: with a moment of its own for each
//! pair of 64 shards, every shard would be woken a thousand times a second for a few URLs.
//! Invariants: `waiting_bytes` is the sum of the closed batches in memory; while none is closed, a turn between two ticks
//! looks at no lane; a batch always fits the ring.
//! Leaves to others: the ring itself (`spsc`), the disk (`spool`).

use std::collections::VecDeque;

use crate::config;
use crate::spool::{Block, ReadFor, Spool};
use crate::time::{Duration, Instant};
use crate::url::UrlBatch;

/// The outgoing URLs of one shard.
#[derive(Debug)]
pub struct Outbox {
    lanes: Vec<Lane>,
    waiting_bytes: usize,
    /// Closed batches, in memory, in the spool, or on their way back.
    closed: usize,
    /// URLs in open batches, waiting in memory or spooled.
    urls: u64,
    /// The tick at which all open batches close; `None`: none is open.
    tick: Option<Instant>,
    /// When a full ring is tried again; its reader does not say that there is room.
    again: Option<Instant>,
    limits: Limits,
}

#[derive(Debug, Default)]
struct Lane {
    open: UrlBatch,
    waiting: VecDeque<UrlBatch>,
    spooled: VecDeque<Block>,
    reading: bool,
}

#[derive(Debug)]
struct Limits {
    batch_urls_max: usize,
    batch_bytes_max: usize,
    batch_age_max: Duration,
    waiting_bytes_max: usize,
}

impl Outbox {
    /// An empty outbox to `shards` shards (its own lane stays unused) for URLs of at most `url_bytes_max` bytes.
    pub fn new(shards: u16, config: &config::Exchange, url_bytes_max: usize) -> Outbox {
        Outbox {
            lanes: (0..shards).map(|_| Lane::default()).collect(),
            waiting_bytes: 0,
            closed: 0,
            urls: 0,
            tick: None,
            again: None,
            limits: Limits {
                batch_urls_max: config.batch_urls_max.max(1),
                // With the longest URL on top, a batch stays under the quarter of the ring that a message may take.
                batch_bytes_max: (config.ring_bytes / 4).saturating_sub(url_bytes_max + ENTRY_HEAD_BYTES).max(1),
                batch_age_max: config.batch_age_max,
                waiting_bytes_max: config.waiting_bytes_max,
            },
        }
    }

    /// Adds one URL for shard `to`.
    pub fn push(&mut self, now: Instant, to: u16, depth: u16, url: &str, spool: &mut Spool) {
        let lane = &mut self.lanes[usize::from(to)];
        if !lane.open.push(depth, url) {
            return;
        }
        self.urls += 1;
        let age = self.limits.batch_age_max;
        self.tick.get_or_insert_with(|| next_tick(now, age));
        let full =
            lane.open.len() >= self.limits.batch_urls_max || lane.open.as_bytes().len() >= self.limits.batch_bytes_max;
        if full {
            self.close(to, spool);
        }
    }

    /// Closes open batches when their tick has come, then hands over what the rings take: `send` puts a batch into the
    /// ring to a shard and says whether there was room. Returns the number of URLs handed over.
    pub fn flush(&mut self, now: Instant, spool: &mut Spool, send: &mut dyn FnMut(u16, &UrlBatch) -> bool) -> u64 {
        if self.urls == 0 {
            // Full batches may have taken with them what the tick was set for.
            self.tick = None;
            return 0;
        }
        let mut sent = 0;
        self.again = None;
        let is_tick = self.tick.is_some_and(|tick| tick <= now);
        if is_tick {
            self.tick = None;
        } else if self.closed == 0 {
            return 0;
        }
        for to in 0..self.lanes.len() as u16 {
            if is_tick && !self.lanes[usize::from(to)].open.is_empty() {
                self.close(to, spool);
            }
            let lane = &mut self.lanes[usize::from(to)];
            while let Some(batch) = lane.waiting.front() {
                if !send(to, batch) {
                    self.again = Some(now + FULL_RING_PAUSE);
                    break;
                }
                self.waiting_bytes -= batch.as_bytes().len();
                self.closed -= 1;
                sent += batch.len() as u64;
                lane.waiting.pop_front();
            }
            if lane.waiting.is_empty()
                && !lane.reading
                && let Some(block) = lane.spooled.pop_front()
            {
                lane.reading = true;
                spool.read(block, ReadFor::Lane(to));
            }
        }
        self.urls -= sent;
        sent
    }

    /// A spooled batch came back.
    pub fn returned(&mut self, to: u16, batch: UrlBatch) {
        let lane = &mut self.lanes[usize::from(to)];
        assert!(lane.reading, "a batch came back that nobody asked for");
        lane.reading = false;
        self.waiting_bytes += batch.as_bytes().len();
        lane.waiting.push_back(batch);
    }

    /// URLs not handed over yet.
    pub fn urls(&self) -> u64 {
        self.urls
    }

    /// When there is something to do: open batches must be closed, a full ring is tried again, or a batch
    /// came back from disk (`Instant::ZERO`).
    pub fn next_due(&self) -> Option<Instant> {
        if self.again.is_none() && self.closed > 0 && self.lanes.iter().any(|lane| !lane.waiting.is_empty()) {
            return Some(Instant::ZERO);
        }
        self.tick.into_iter().chain(self.again).min()
    }

    fn close(&mut self, to: u16, spool: &mut Spool) {
        let lane = &mut self.lanes[usize::from(to)];
        let batch = std::mem::take(&mut lane.open);
        self.closed += 1;
        let bytes = batch.as_bytes().len();
        if self.waiting_bytes + bytes > self.limits.waiting_bytes_max && !lane.waiting.is_empty() {
            lane.spooled.push_back(spool.write(batch.as_bytes(), batch.len() as u32));
        } else {
            self.waiting_bytes += bytes;
            lane.waiting.push_back(batch);
        }
    }
}

/// The first multiple of `age` after `now`; `now` itself when there is no age.
fn next_tick(now: Instant, age: Duration) -> Instant {
    let age = age.as_nanos() as u64;
    now.as_nanos().checked_div(age).map_or(now, |ticks| Instant::from_nanos((ticks + 1).saturating_mul(age)))
}

/// What an entry of a batch takes besides the URL.
const ENTRY_HEAD_BYTES: usize = 4;
/// Long against a look at a ring, short against the time in which a page is fetched.
const FULL_RING_PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::SpoolOp;

    fn small() -> config::Exchange {
        config::Exchange {
            ring_bytes: 1 << 20,
            rings_bytes_max: 1 << 24,
            batch_urls_max: 3,
            batch_age_max: Duration::from_millis(100),
            waiting_bytes_max: 100,
        }
    }

    #[test]
    fn batches_close_by_count_and_by_age() {
        let mut spool = Spool::new(1 << 20);
        let mut outbox = Outbox::new(2, &small(), 100);
        let mut sent = Vec::new();
        let mut send = |to: u16, batch: &UrlBatch| {
            sent.push((to, batch.len()));
            true
        };
        for number in 0..4 {
            outbox.push(Instant::ZERO, 1, 0, &format!("http://a.test/{number}"), &mut spool);
        }
        assert_eq!(outbox.flush(Instant::ZERO, &mut spool, &mut send), 3);
        assert_eq!(outbox.next_due(), Some(Instant::ZERO + Duration::from_millis(100)));
        assert_eq!(outbox.flush(Instant::ZERO + Duration::from_millis(100), &mut spool, &mut send), 1);
        assert_eq!(sent, [(1, 3), (1, 1)]);
        assert_eq!((outbox.urls(), outbox.waiting_bytes, outbox.next_due()), (0, 0, None));
    }

    #[test]
    fn all_lanes_of_all_shards_close_at_the_same_ticks() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut spool = Spool::new(1 << 20);
        for first in [1, 40, 99] {
            let mut outbox = Outbox::new(9, &small(), 100);
            for to in 1..9 {
                outbox.push(at(first), to, 0, "http://a.test/", &mut spool);
            }
            assert_eq!(outbox.next_due(), Some(at(100)));
            assert_eq!(outbox.flush(at(99), &mut spool, &mut |_, _| true), 0);
            assert_eq!(outbox.flush(at(100), &mut spool, &mut |_, _| true), 8);
        }
        // Full batches leave nothing behind that a tick would be for.
        let mut outbox = Outbox::new(2, &small(), 100);
        for _ in 0..3 {
            outbox.push(at(1), 1, 0, "http://a.test/", &mut spool);
        }
        assert_eq!(outbox.flush(at(1), &mut spool, &mut |_, _| true), 3);
        assert_eq!(outbox.flush(at(2), &mut spool, &mut |_, _| true), 0);
        assert_eq!(outbox.next_due(), None);
        assert_eq!(next_tick(at(100), Duration::from_millis(100)), at(200));
        assert_eq!(next_tick(at(100), Duration::ZERO), at(100));
    }

    #[test]
    fn what_a_full_ring_refuses_waits_in_memory_then_in_the_spool_and_arrives() {
        let mut spool = Spool::new(1 << 20);
        let mut outbox = Outbox::new(2, &small(), 100);
        for number in 0..300 {
            outbox.push(Instant::ZERO, 1, 0, &format!("http://a.test/{number}"), &mut spool);
        }
        assert_eq!(outbox.flush(Instant::ZERO, &mut spool, &mut |_, _| false), 0);
        assert!(outbox.waiting_bytes <= 200, "{} bytes held in memory", outbox.waiting_bytes);
        // Nothing else may happen in this shard ever again, and nobody tells it that there is room.
        assert_eq!(outbox.next_due(), Some(Instant::ZERO + FULL_RING_PAUSE));
        let mut disk = Vec::new();
        let mut got = 0;
        for _ in 0..1_000 {
            while let Some(op) = spool.next_op() {
                match op {
                    SpoolOp::Write { block, bytes } => disk.push((block, bytes)),
                    SpoolOp::Read { block, purpose: ReadFor::Lane(to) } => {
                        let bytes = disk.iter().find(|(at, _)| *at == block).unwrap().1.clone();
                        spool.finished_read(block);
                        outbox.returned(to, UrlBatch::from_bytes(bytes).unwrap());
                    }
                    SpoolOp::Read { .. } | SpoolOp::Delete { .. } => {}
                }
            }
            got += outbox.flush(Instant::ZERO + Duration::from_secs(1), &mut spool, &mut |_, _| true);
        }
        assert_eq!((got, outbox.urls(), outbox.waiting_bytes), (300, 0, 0));
        assert!(!disk.is_empty());
    }

    /// The smallest ring that the configuration takes, and the longest URL that it takes with it.
    #[test]
    fn the_longest_url_fits_the_smallest_ring() {
        let (ring_bytes, url_bytes_max) = (4_096, 4_096 - 64);
        let (mut spool, mut outbox) = (
            Spool::new(1 << 20),
            Outbox::new(2, &config::Exchange { ring_bytes, waiting_bytes_max: 1 << 20, ..small() }, url_bytes_max),
        );
        let (mut producer, mut consumer) = crate::exchange::spsc::ring(ring_bytes);
        for number in 0..3 {
            let url = format!("http://a.test/{number}");
            let url = format!("{url}{}", "x".repeat(url_bytes_max - url.len()));
            outbox.push(Instant::ZERO, 1, 0, &url, &mut spool);
        }
        let (mut sent, mut message) = (0, Vec::new());
        for _ in 0..3 {
            sent += outbox.flush(Instant::ZERO, &mut spool, &mut |_, batch| producer.push(batch.as_bytes()));
            assert!(consumer.pop(&mut message));
        }
        assert_eq!((sent, outbox.urls()), (3, 0));
    }
}
