//! Measures how slow this machine is at the moment, for tests that bound CPU time.
//!
//! Decides: a bound is meant for a dedicated machine. On a shared one, neighbours take cycles that are counted as
//! ours. There the bound grows by the same factor as the time of a known piece of work.
//! Limits: the piece of work lives in the processor's registers; memory may be slower than it shows.

use ringcrawl_base::time::Duration;
use ringcrawl_ring::Thread;

/// CPU time of a known piece of work, relative to a dedicated machine; 1 on a faster one.
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
/// Four cycles per iteration at 3 GHz.
const ALONE: Duration = Duration::from_micros(5_333);
