//! The real clock: the only place where an `Instant` or a `UnixTime` is read rather than given.
//!
//! Decides: instants count from the first call in this process and are the same for all threads. They go by CLOCK_BOOTTIME,
//! which nobody sets and which goes on while the machine is suspended: what was true for so long is not true after a night's sleep.
//! Invariants: `now` never goes backwards, neither within a thread nor between threads.
//! Limits: `sleep_until` is accurate to a millisecond; it is for the shard's own waits, not for individual fetches. The runtime's
//! timers stand still while the machine is suspended, so whoever sleeps for long looks at the clock each [`SLEEP_MAX`]. In a
//! virtual machine that is paused from outside all its clocks stand still, and the wall clock is set afterwards.
//! Leaves to others: the virtual clock (`lab`).

use std::sync::OnceLock;

use super::thread::clock_time;
use ringcrawl_base::time::{Duration, Instant, UnixTime, WallClock};

/// Time since the process's clock started.
pub fn now() -> Instant {
    static START: OnceLock<Duration> = OnceLock::new();
    let since_boot = since_boot();
    Instant::ZERO + since_boot.saturating_sub(*START.get_or_init(|| since_boot))
}

/// Every kernel that has io_uring has this clock.
fn since_boot() -> Duration {
    clock_time(libc::CLOCK_BOOTTIME).unwrap_or_default()
}

/// How the wall clock stands to the clock of instants now.
pub fn wall_clock() -> WallClock {
    WallClock::reading(now(), unix_now())
}

/// The wall clock, in microseconds; zero when it is set to before 1970.
pub fn unix_now() -> UnixTime {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    UnixTime::from_micros(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
}

/// Sleeps on this shard's runtime until `at`; at once when it has passed.
pub async fn sleep_until(at: Instant) {
    loop {
        let wait = at.since(now()).min(SLEEP_MAX);
        if wait.is_zero() {
            return;
        }
        super::reactor::expect(at);
        tokio::time::sleep(wait).await;
    }
}

/// So late at most is noticed that the machine was suspended.
pub(super) const SLEEP_MAX: Duration = Duration::from_secs(30);

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
        assert!(wall_clock().distance(wall_clock()) < Duration::from_secs(60));
    }
}
