//! How much of its time a shard works, and what it waits for in the rest.
//!
//! Decides: before the pump sleeps it asks the brain what its hosts wait for, and divides the pause among these. How much of
//! all the time was no work follows from the CPU time of the shard's threads, as fetches go on while the pump sleeps.
//! Invariants: nothing is decided by it.
//! Limits: the CPU clocks are read every [`LOOK_EVERY`], as each costs a system call.

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
    /// A shard begins now.
    pub(super) fn new() -> Duty {
        let now = ring::now();
        Duty { began: now, looks_at: now, time: Duration::ZERO, busy: Duration::ZERO, waited: [0; WAITS] }
    }

    /// The pump has slept since `from`, when this was what its hosts waited for.
    pub(super) fn slept(&mut self, from: Instant, waits: Waits) {
        waits.divide(ring::now().since(from).as_nanos() as u64, &mut self.waited);
    }

    /// Adds its times to what a shard publishes; to the last of that as they are now.
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
