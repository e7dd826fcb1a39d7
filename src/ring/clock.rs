//! The real clock: the only place that reads an `Instant` or a `UnixTime` instead of getting it as an argument.
//!
//! Decides: instants count from the first call in this process and are the same for all threads. They use
//! CLOCK_BOOTTIME, which cannot be set and continues while the machine is suspended: a fact with a lifetime expires
//! during suspension.
//! Invariants: `now` never goes backwards, neither within a thread nor between threads.
//! Limits: `sleep_until` is accurate to a millisecond; it is for the shard's own waits, not for individual fetches.
//! The runtime's timers stop while the machine is suspended, so a long sleep checks the clock every [`SLEEP_MAX`]. In
//! a virtual machine that is paused from outside, all clocks stop, and the wall clock is set afterwards.
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

/// The current offset between the wall clock and the clock of instants.
pub fn wall_clock() -> WallClock {
    WallClock::reading(now(), unix_now())
}

/// The wall clock, in microseconds; zero when it is set to before 1970.
pub fn unix_now() -> UnixTime {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    UnixTime::from_micros(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
}

/// Sleeps on this shard's runtime until `at`; returns at once if it has passed.
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

/// The longest time before a suspension of the machine is noticed.
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
