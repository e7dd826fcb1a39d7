//! How slow this machine is at the moment, for tests that bound CPU time.
//!
//! Decides: a bound holds for a machine of its own. A shared one, whose neighbours take cycles that are counted as ours,
//! gets as much more as a known piece of work takes more there.
//! Limits: the piece lives in the processor's registers; memory may be slower than it shows.

use ringcrawl_base::time::Duration;
use ringcrawl_ring::Thread;

/// CPU time of a known piece of work over that on a machine of its own; 1 on one that is faster.
pub fn slowness() -> f64 {
    let thread = Thread::default();
    thread.announce();
    let before = thread.cpu_time().unwrap_or_default();
    let mut hash = std::hint::black_box(0xcbf2_9ce4_8422_2325_u64);
    for _ in 0..ROUNDS {
        hash = (hash ^ 0x5a).wrapping_mul(0x0100_0000_01b3);
    }
    std::hint::black_box(hash);
    let took = thread.cpu_time().unwrap_or_default().saturating_sub(before);
    (took.as_nanos() as f64 / ALONE.as_nanos() as f64).max(1.0)
}

const ROUNDS: u64 = 4_000_000;
/// Four cycles a round at 3 GHz.
const ALONE: Duration = Duration::from_micros(5_333);
