//! How much of its time a shard works, and what it waits for in the rest.
//!
//! Decides: before the pump sleeps it asks the brain what its hosts wait for, and divides the pause among these. The
//! total idle time follows from the CPU time of the shard's threads, as fetches continue while the pump sleeps.
//! Invariants: it decides nothing for the crawl.
//! Limits: the CPU clocks are read every [`LOOK_EVERY`], as each read costs a system call.

use crate::control::ShardHandle;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::stats::Totals;
use ringcrawl_brain::waits::{WAITS, Waits};
use ringcrawl_ring as ring;

/// The times of one shard.
pub(super) struct Duty {
    began: Instant,
    looks_at: Instant,
    time: Duration,
    busy: Duration,
    waited: [u64; WAITS],
}

impl Duty {
    /// A shard that begins now.
    pub(super) fn new() -> Duty {
        let now = ring::now();
        Duty { began: now, looks_at: now, time: Duration::ZERO, busy: Duration::ZERO, waited: [0; WAITS] }
    }

    /// The pump has slept since `from`, while its hosts waited for `waits`.
    pub(super) fn slept(&mut self, from: Instant, waits: Waits) {
        waits.divide(ring::now().since(from).as_nanos() as u64, &mut self.waited);
    }

    /// Adds its times to what a shard publishes; if `is_last`, the times up to now.
    pub(super) fn publish(&mut self, handle: &ShardHandle, is_last: bool, stats: &mut Totals) {
        let now = ring::now();
        if now >= self.looks_at || is_last {
            self.looks_at = now + LOOK_EVERY;
            self.time = now.since(self.began);
            self.busy = [&handle.thread, &handle.reading].iter().filter_map(|thread| thread.cpu_time()).sum();
        }
        (stats.shard_millis, stats.shard_busy_millis) = (self.time.as_millis() as u64, self.busy.as_millis() as u64);
        stats.waited = self.waited;
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(500);
