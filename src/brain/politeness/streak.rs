//! Consecutive failures of one origin, and when it is given up.
//!
//! Decides: an origin that fails repeatedly rests longer each time, and is then given up for an hour; after that a
//! single request must show that it is alive. An address that accepts no connection costs no try while the host has
//! another one.
//! Invariants: one answer ends the streak.
//! Limits: [`UNCOUNTED_MAX`] uncounted tries in a row, because name servers can name new addresses forever.
//! Leaves to others: which failures are an origin's, and what else on its host they hold up (`frontier`).

use super::Try;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_config::Politeness;

/// Consecutive failures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FailureStreak {
    failures: u32,
    /// Tries in a row that were an address's fault while others were left.
    uncounted: u8,
    rests_until: Instant,
    /// It complained, and asked to be left alone until then, whatever else it answers.
    asked_until: Instant,
    /// When the last failure counted.
    counted: Instant,
    /// It was given up until then.
    dead_until: Option<Instant>,
}

impl FailureStreak {
    /// A response came.
    pub fn answered(&mut self) {
        *self = FailureStreak { asked_until: self.asked_until, ..FailureStreak::default() };
    }

    /// A request that began at `began` failed; `failures_max` failures in a row are enough. Several that were in
    /// flight at once count once. `has_another_address` says whether there was no connection while another address is
    /// left, or may be: one of a family that was not queried.
    pub fn failed(
        &mut self,
        now: Instant,
        began: Instant,
        has_another_address: bool,
        failures_max: u32,
        politeness: &Politeness,
    ) -> Try {
        let counts = if has_another_address && self.uncounted < UNCOUNTED_MAX {
            self.uncounted += 1;
            Try::Uncounted
        } else {
            if began >= self.counted {
                self.failures += 1;
                self.counted = now;
            }
            Try::Counts
        };
        if self.failures >= failures_max.max(1) {
            self.dead_until = Some(now + GIVEN_UP_FOR);
        } else if let Some(doublings) = self.failures.checked_sub(FAILURES_BEFORE_REST) {
            self.rests_until = now + politeness.retry_delay * (1 << doublings.min(6));
        }
        counts
    }

    /// Whether the last request failed.
    pub fn has_failed(&self) -> bool {
        self.failures > 0 || self.uncounted > 0
    }

    /// No request before this.
    pub fn rests_until(&self) -> Instant {
        self.rests_until.max(self.asked_until)
    }

    /// The same, but only what it asked for.
    pub fn asked_until(&self) -> Instant {
        self.asked_until
    }

    /// It complained, and nothing else of its host did: no request before `at`.
    pub fn rest_until(&mut self, at: Instant) {
        self.asked_until = self.asked_until.max(at);
    }

    /// Until when it was given up; that may have ended by now.
    pub fn dead_until(&self) -> Option<Instant> {
        self.dead_until
    }

    /// The time for which it was given up has ended: a single request must show that it is alive.
    pub fn forgive(&mut self, failures_max: u32) {
        let (failures, asked_until) = (failures_max.saturating_sub(1), self.asked_until);
        *self = FailureStreak { failures, asked_until, ..FailureStreak::default() };
    }
}

/// How long an origin stays given up.
pub(super) const GIVEN_UP_FOR: Duration = Duration::from_secs(3_600);
/// Failures in a row before an origin rests longer than its host's delay.
const FAILURES_BEFORE_REST: u32 = 3;
/// Tries in a row that are not counted because other addresses are left.
const UNCOUNTED_MAX: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_config::Config;

    fn politeness() -> Politeness {
        let mut politeness = Config::default().politeness;
        politeness.retry_delay = Duration::from_secs(10);
        politeness
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn who_fails_rests_longer_and_is_given_up() {
        let (mut streak, politeness) = (FailureStreak::default(), politeness());
        let mut rests = Vec::new();
        for number in 0..6 {
            assert_eq!(streak.dead_until(), None);
            assert_eq!(streak.failed(at(1_000 * number), at(1_000 * number), false, 6, &politeness), Try::Counts);
            rests.push(streak.rests_until().since(at(1_000 * number)).as_millis() / 1_000);
        }
        assert_eq!(rests, [0, 0, 10, 20, 40, 0]);
        assert_eq!(streak.dead_until(), Some(at(5_000 + 3_600)));
        // A single request shows whether it is alive.
        streak.forgive(6);
        assert_eq!((streak.dead_until(), streak.rests_until()), (None, Instant::ZERO));
        let mut answers = streak;
        streak.failed(at(10_000), at(10_000), false, 6, &politeness);
        assert_eq!(streak.dead_until(), Some(at(13_600)));
        answers.answered();
        assert_eq!(answers, FailureStreak::default());
    }

    /// A server that goes away with many requests in flight has failed once.
    #[test]
    fn failures_at_once_are_one_in_the_row() {
        let (mut streak, politeness) = (FailureStreak::default(), politeness());
        for step in 0..40 {
            assert_eq!(streak.failed(at(100 + step), at(90), false, 6, &politeness), Try::Counts);
        }
        assert_eq!((streak.failures, streak.dead_until()), (1, None));
        streak.failed(at(200), at(190), false, 6, &politeness);
        assert_eq!(streak.failures, 2);
    }

    #[test]
    fn what_is_an_address_s_fault_costs_no_try_for_a_while() {
        let (mut streak, politeness) = (FailureStreak::default(), politeness());
        let tries: Vec<Try> = (0..5).map(|step| streak.failed(at(step), at(step), true, 6, &politeness)).collect();
        assert_eq!(tries, [Try::Uncounted, Try::Uncounted, Try::Uncounted, Try::Counts, Try::Counts]);
        assert!(streak.has_failed());
    }
}
