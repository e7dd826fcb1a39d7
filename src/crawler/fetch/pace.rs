//! Whether a body arrives fast enough.
//!
//! Decides: a body has a credit of `fetch.rate_grace`. Waiting spends it, and each byte earns the time that it takes
//! at `fetch.rate_min`. The credit never exceeds the grace, so a fast start does not buy an endless transfer: a peer
//! that stops is cut after one grace, a peer that is a little too slow is cut later. The moment at which the credit
//! is spent is the guard's next deadline, so a fetch needs no timer of its own.
//! Invariants: a body that brings `rate_min` bytes a second in every grace, in one piece or in many, is never cut.
//! Leaves to others: the head, which has its own timeouts, and the whole deadline (`exchange`).

use ringcrawl_base::time::{Duration, Instant};

/// One body's pace, without a clock.
pub(super) struct Pace {
    /// Bytes a second; 0: any pace is accepted.
    rate_min: u64,
    grace: Duration,
    /// When the credit is used up; `None` before the body began.
    spent_at: Option<Instant>,
}

impl Pace {
    pub(super) fn new(rate_min: u64, grace: Duration) -> Pace {
        Pace { rate_min, grace, spent_at: None }
    }

    /// `bytes` of the body arrived at `now`; returns when it is too slow, if nothing more arrives by then.
    pub(super) fn came(&mut self, now: Instant, bytes: u64) -> Instant {
        if self.rate_min == 0 {
            return Instant::NEVER;
        }
        let full = now + self.grace;
        let earned = u128::from(bytes) * 1_000_000_000 / u128::from(self.rate_min);
        let earned = Duration::from_nanos(u64::try_from(earned).unwrap_or(u64::MAX));
        let spent_at = self.spent_at.map_or(full, |spent_at| (spent_at + earned).min(full));
        self.spent_at = Some(spent_at);
        spent_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(10);

    /// When a body of `bytes` every `every` is cut at 100 bytes a second; `None`: not within an hour.
    fn cut_after(bytes: u64, every: Duration) -> Option<Duration> {
        let mut pace = Pace::new(100, GRACE);
        let mut now = Instant::ZERO;
        let mut spent_at = pace.came(now, 1);
        while now < Instant::ZERO + Duration::from_secs(3_600) {
            now = now + every;
            if now > spent_at {
                return Some(spent_at.since(Instant::ZERO));
            }
            spent_at = pace.came(now, bytes);
        }
        None
    }

    #[test]
    fn who_is_slow_is_cut_and_who_is_not_is_not() {
        let second = Duration::from_secs(1);
        assert_eq!(cut_after(100, second), None);
        assert_eq!(cut_after(10, second / 10), None);
        assert_eq!(cut_after(900, 9 * second), None, "in pieces, within the grace");
        assert_eq!(cut_after(1_000_000, 11 * second), Some(GRACE), "a pause is one however much came before");
        assert_eq!(cut_after(0, second), Some(GRACE));
        // Half of the rate spends half a second a second.
        assert_eq!(cut_after(50, second), Some(Duration::from_millis(19_500)));
    }

    #[test]
    fn a_fast_start_buys_one_grace_and_no_rate_is_no_limit() {
        let mut pace = Pace::new(100, GRACE);
        let start = Instant::ZERO + Duration::from_secs(5);
        pace.came(start, 1);
        assert_eq!(pace.came(start, u64::MAX), start + GRACE);
        assert_eq!(Pace::new(0, GRACE).came(start, 0), Instant::NEVER);
    }
}
