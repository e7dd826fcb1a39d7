//! The real clock: the only place where an `Instant` or a `UnixTime` is read rather than given.
//!
//! Decides: instants count from the first call in this process (CLOCK_MONOTONIC) and are the same for all threads.
//! Invariants: `now` never goes backwards, neither within a thread nor between threads.
//! Limits: `sleep_until` is accurate to a millisecond; it is for the shard's own waits, not for individual fetches.
//! Leaves to others: the virtual clock (`lab`).

use std::sync::OnceLock;

use crate::time::{Instant, UnixTime};

/// Time since the process's clock started, from CLOCK_MONOTONIC.
pub fn now() -> Instant {
    let nanos = process_start().elapsed().as_nanos();
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The standard library's instant at which `now` was zero; calling it starts the clock.
pub fn process_start() -> std::time::Instant {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    *START.get_or_init(std::time::Instant::now)
}

/// The wall clock, in microseconds; zero when it is set to before 1970.
pub fn unix_now() -> UnixTime {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    UnixTime::from_micros(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
}

/// Sleeps on this shard's runtime until `at`; at once when it has passed, for a day at most.
pub async fn sleep_until(at: Instant) {
    let wait = at.since(now()).min(std::time::Duration::from_secs(86_400));
    if !wait.is_zero() {
        super::reactor::expect(at);
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_does_not_go_backwards() {
        let mut last = now();
        for _ in 0..1_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
        assert!(unix_now().as_micros() > 1_700_000_000_000_000);
    }
}
