//! When one host may be asked again, and when it is given up.
//!
//! Decides: the next request starts no earlier than the host's delay after the *end* of the last one, because only then
//! is the gap kept as the server measures it, however long the way. 429 and 503 are given the time that Retry-After asks
//! for. A host that fails in a row rests longer each time and is then given up for an hour; after that a single request
//! has to show that it is alive. An address that no connection comes about to costs the host no try while it has another
//! one, and neither does a proxy that is down or a job that was aborted.
//! Invariants: `not_before` never moves back.
//! Limits: [`UNCOUNTED_MAX`] uncounted tries in a row, because name servers can name new addresses for ever.

use crate::config::Politeness;
use crate::outcome::{Failure, Outcome};
use crate::time::{Duration, Instant};

/// The pace of one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostPace {
    not_before: Instant,
    last_end: Instant,
    crawl_delay: Duration,
    failures_in_row: u32,
    /// Tries in a row that were an address's fault while others were left.
    uncounted: u8,
    given_up: Option<GivenUp>,
}

/// Why a host was given up, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GivenUp {
    /// How everything that waits for the host ends.
    pub failure: Failure,
    /// From then on it may be asked again.
    pub until: Instant,
}

/// What is worth remembering of a host that failed, when all else about it is forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FailureRecord {
    /// Failed requests since the last success.
    pub failures_in_row: u32,
    /// Tries in a row that were an address's fault while others were left.
    pub uncounted: u8,
    /// Whether it was given up.
    pub given_up: Option<GivenUp>,
}

/// Whether a try is one of those that a URL and its host have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Try {
    /// It is.
    Counts,
    /// It was aborted, or an address's fault.
    Uncounted,
}

impl HostPace {
    /// A host that was never asked.
    pub fn new() -> HostPace {
        HostPace {
            not_before: Instant::ZERO,
            last_end: Instant::ZERO,
            crawl_delay: Duration::ZERO,
            failures_in_row: 0,
            uncounted: 0,
            given_up: None,
        }
    }

    /// A host that was forgotten and is met again.
    pub fn with_record(record: FailureRecord) -> HostPace {
        let FailureRecord { failures_in_row, uncounted, given_up } = record;
        HostPace { failures_in_row, uncounted, given_up, ..HostPace::new() }
    }

    /// What must outlive the host; `None` when it has not failed.
    pub fn record(&self) -> Option<FailureRecord> {
        let HostPace { failures_in_row, uncounted, given_up, .. } = *self;
        let has_failed = failures_in_row > 0 || uncounted > 0 || given_up.is_some();
        has_failed.then_some(FailureRecord { failures_in_row, uncounted, given_up })
    }

    /// No request before this.
    pub fn not_before(&self) -> Instant {
        self.not_before
    }

    /// No request before `at`.
    pub fn rest_until(&mut self, at: Instant) {
        self.not_before = self.not_before.max(at);
    }

    /// The delay that robots.txt asks for, as far as it is obeyed; zero: none.
    pub fn crawl_delay(&self) -> Duration {
        self.crawl_delay
    }

    /// Whether it was asked since it is in memory: only then is it known from when on a Crawl-delay counts.
    pub fn was_asked(&self) -> bool {
        self.last_end > Instant::ZERO
    }

    /// The delay after a request: the configured one or robots.txt's Crawl-delay, whichever is longer.
    pub fn delay(&self, politeness: &Politeness) -> Duration {
        self.crawl_delay.max(politeness.host_delay)
    }

    /// A request ended. `has_another_address` says whether no connection came about while another address is left, or
    /// may be: that of a family which was not asked for.
    pub fn ended(
        &mut self,
        now: Instant,
        outcome: &Outcome,
        has_another_address: bool,
        politeness: &Politeness,
    ) -> Try {
        self.last_end = now;
        let mut pause = self.delay(politeness);
        let mut counts = Try::Counts;
        match outcome {
            Outcome::Fetched(fetched) => {
                (self.failures_in_row, self.uncounted) = (0, 0);
                let asked = rest_asked(fetched.status, fetched.retry_after, politeness);
                pause = pause.max(asked.unwrap_or_default());
            }
            Outcome::Failed(Failure::Aborted) => counts = Try::Uncounted,
            // Says nothing of the host: when the proxy is there again, all hosts must be.
            Outcome::Failed(Failure::ProxyFailed | Failure::ProxyUnreachable) => {
                pause = pause.max(politeness.retry_delay)
            }
            Outcome::Failed(failure) => {
                if has_another_address && self.uncounted < UNCOUNTED_MAX {
                    self.uncounted += 1;
                    counts = Try::Uncounted;
                } else {
                    self.failures_in_row += 1;
                }
                if *failure == Failure::AddressForbidden {
                    self.give_up(*failure, now + GIVEN_UP_FOR);
                } else if self.failures_in_row >= politeness.host_failures_max.max(1) {
                    self.give_up(Failure::HostDead, now + GIVEN_UP_FOR);
                } else if let Some(doublings) = self.failures_in_row.checked_sub(FAILURES_BEFORE_REST) {
                    pause = pause.max(politeness.retry_delay * (1 << doublings.min(6)));
                }
            }
            Outcome::Resolved { .. } | Outcome::NoAddress { .. } => {}
        }
        self.not_before = now + pause;
        counts
    }

    /// robots.txt asks for this delay: it holds from the last request on, and also after the rules have expired, until
    /// there are new ones.
    pub fn obey_crawl_delay(&mut self, asked: Duration, politeness: &Politeness) {
        self.crawl_delay = asked.min(politeness.crawl_delay_max);
        if self.was_asked() {
            self.not_before = self.not_before.max(self.last_end + self.delay(politeness));
        }
    }

    /// Everything that waits for the host ends as `failure`, until `until`.
    pub fn give_up(&mut self, failure: Failure, until: Instant) {
        self.given_up = Some(GivenUp { failure, until });
    }

    /// Whether it was given up, though perhaps not any more by now.
    pub fn given_up(&self) -> Option<GivenUp> {
        self.given_up
    }

    /// The time for which the host was given up is over. One that was dead has a single request to show that it lives.
    pub fn forgive(&mut self, politeness: &Politeness) {
        let was_dead = self.given_up.take().is_some_and(|given_up| given_up.failure == Failure::HostDead);
        self.failures_in_row = if was_dead { politeness.host_failures_max.saturating_sub(1) } else { 0 };
    }
}

impl Default for HostPace {
    fn default() -> HostPace {
        HostPace::new()
    }
}

/// How long to wait after the try `attempt`, counted from 0: twice as long each time.
pub fn backoff(attempt: u8, politeness: &Politeness) -> Duration {
    politeness.retry_delay * (1 << u32::from(attempt.min(10)))
}

/// How long a server wants to be left alone by a response of this status, as far as it is obeyed.
pub fn rest_asked(status: u16, retry_after: Option<Duration>, politeness: &Politeness) -> Option<Duration> {
    is_overload(status).then(|| retry_after.unwrap_or(politeness.retry_delay).min(politeness.retry_after_max))
}

/// The server says that it is asked too often (RFC 6585 section 4, RFC 9110 section 15.6.4).
pub fn is_overload(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// How long a host stays given up.
const GIVEN_UP_FOR: Duration = Duration::from_secs(3_600);
/// Failures in a row before a host rests longer than its delay.
const FAILURES_BEFORE_REST: u32 = 3;
/// Tries in a row that are not counted because other addresses are left.
const UNCOUNTED_MAX: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::outcome::Fetched;

    fn politeness() -> Politeness {
        let mut politeness = Config::default().politeness;
        politeness.host_delay = Duration::from_secs(1);
        politeness.retry_delay = Duration::from_secs(10);
        politeness.host_failures_max = 6;
        politeness
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn fetched(status: u16, retry_after: Option<u64>) -> Outcome {
        let retry_after = retry_after.map(Duration::from_secs);
        Outcome::Fetched(Fetched { status, retry_after, ..Fetched::default() })
    }

    #[test]
    fn the_gap_is_counted_from_the_end() {
        let (mut pace, politeness) = (HostPace::new(), politeness());
        pace.obey_crawl_delay(Duration::from_secs(5), &politeness);
        assert_eq!(pace.not_before(), Instant::ZERO, "nothing was asked yet");
        pace.ended(at(100), &fetched(200, None), false, &politeness);
        assert_eq!(pace.not_before(), at(105));
        pace.ended(at(110), &fetched(503, Some(60)), false, &politeness);
        assert_eq!(pace.not_before(), at(170));
        pace.ended(at(200), &fetched(429, None), false, &politeness);
        assert_eq!(pace.not_before(), at(210), "without Retry-After the retry delay");
        pace.obey_crawl_delay(Duration::from_secs(20), &politeness);
        assert_eq!(pace.not_before(), at(220), "from the last request on");
    }

    #[test]
    fn a_host_that_fails_rests_longer_and_is_given_up() {
        let (mut pace, politeness) = (HostPace::new(), politeness());
        let reset = Outcome::Failed(Failure::Reset);
        let mut rests = Vec::new();
        for number in 0..6 {
            assert_eq!(pace.given_up(), None);
            assert_eq!(pace.ended(at(1_000 * number), &reset, false, &politeness), Try::Counts);
            rests.push(pace.not_before().since(at(1_000 * number)).as_millis() / 1_000);
        }
        assert_eq!(rests, [1, 1, 10, 20, 40, 1]);
        let given_up = GivenUp { failure: Failure::HostDead, until: at(5_000 + 3_600) };
        assert_eq!(pace.given_up(), Some(given_up));
        // A single request shows whether it is alive.
        let mut later = HostPace::with_record(pace.record().expect("a record"));
        later.forgive(&politeness);
        assert_eq!(later.given_up(), None);
        later.ended(at(10_000), &reset, false, &politeness);
        assert_eq!(later.given_up().map(|given_up| given_up.failure), Some(Failure::HostDead));
        later.forgive(&politeness);
        later.ended(at(20_000), &fetched(404, None), false, &politeness);
        assert_eq!(later.record(), None);
    }

    #[test]
    fn what_is_not_the_hosts_fault_costs_no_try() {
        let (mut pace, politeness) = (HostPace::new(), politeness());
        assert_eq!(pace.ended(at(1), &Outcome::Failed(Failure::Aborted), false, &politeness), Try::Uncounted);
        pace.ended(at(2), &Outcome::Failed(Failure::ProxyFailed), false, &politeness);
        assert_eq!((pace.not_before(), pace.record()), (at(12), None));
        let refused = Outcome::Failed(Failure::ConnectRefused);
        let tries: Vec<Try> = (0..5).map(|step| pace.ended(at(20 + step), &refused, true, &politeness)).collect();
        assert_eq!(tries, [Try::Uncounted, Try::Uncounted, Try::Uncounted, Try::Counts, Try::Counts]);
    }
}
