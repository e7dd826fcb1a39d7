//! When one host may be asked again.
//!
//! Decides: the next request starts no earlier than the host's delay after the *end* of the last one, because only then
//! is the gap kept as the server measures it, however long the way. The delay is the longest of the configured one, robots.txt's
//! Crawl-delay and `politeness.response_factor` times what the last response took, as a server that is slow has much to do; and
//! it is stretched for hosts that are new or complain ([`super::caution`]). 429 and 503 are given the time that Retry-After
//! asks for (a wall counts as one, [`crate::outcome::Wall`]): of the whole host, whatever its port. A host without an address that may be asked is given up, and everything that waits
//! for it ends.
//! Invariants: `not_before` never moves back.
//! Leaves to others: failures, which are an origin's ([`super::streak`]).

use super::caution::Caution;
use super::streak::GIVEN_UP_FOR;
use crate::config::Politeness;
use crate::outcome::{Failure, Outcome};
use crate::time::{Duration, Instant};

/// The pace of one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostPace {
    not_before: Instant,
    last_end: Instant,
    crawl_delay: Duration,
    /// How long the last response took.
    took: Duration,
    caution: Caution,
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

/// Whether a try is one of those that a URL and its origin have.
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
            took: Duration::ZERO,
            caution: Caution::of_stranger(),
            given_up: None,
        }
    }

    /// A host that was forgotten and is met again.
    pub fn remembered(given_up: Option<GivenUp>, caution: Caution) -> HostPace {
        HostPace { given_up, caution, ..HostPace::new() }
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

    /// The delay after a request.
    pub fn delay(&self, politeness: &Politeness) -> Duration {
        let for_response = (self.took * politeness.response_factor).min(politeness.response_delay_max);
        self.caution.stretch(self.usual_delay(politeness).max(for_response), politeness)
    }

    /// The same for a host that answers at once and never complained.
    pub fn usual_delay(&self, politeness: &Politeness) -> Duration {
        self.crawl_delay.max(politeness.host_delay)
    }

    /// A request ended that `took` so long, of a URL with this hash; `draw` is a random number.
    pub fn ended(
        &mut self,
        now: Instant,
        took: Duration,
        outcome: &Outcome,
        [of_url, draw]: [u64; 2],
        politeness: &Politeness,
    ) {
        self.last_end = now;
        let mut rest = Duration::ZERO;
        match outcome {
            Outcome::Fetched(fetched) if is_overload(fetched.status) || fetched.wall.is_some() => {
                self.took = took;
                rest = self.complained(fetched.retry_after, [of_url, draw], politeness);
            }
            Outcome::Fetched(_) => {
                self.took = took;
                // The delay is that before this response: a stranger's holds until it has answered so often.
                rest = self.delay(politeness);
                self.caution.is_fine();
            }
            // Says nothing of the host: when the proxy is there again, all hosts must be.
            Outcome::Failed(Failure::ProxyFailed | Failure::ProxyUnreachable) => rest = politeness.retry_delay,
            Outcome::Failed(failure @ Failure::AddressForbidden) => self.give_up(*failure, now + GIVEN_UP_FOR),
            // As slow as servers can be.
            Outcome::Failed(Failure::Deadline | Failure::FirstByteTimeout | Failure::Hurried) => self.took = took,
            Outcome::Failed(_) | Outcome::Resolved { .. } | Outcome::NoAddress { .. } => {}
        }
        self.not_before = now + rest.max(self.delay(politeness));
    }

    /// The server says that it is asked too often. How long it is left alone: for as long as it asks for, or ever longer.
    fn complained(
        &mut self,
        retry_after: Option<Duration>,
        [of_url, draw]: [u64; 2],
        politeness: &Politeness,
    ) -> Duration {
        let back_off = self.caution.is_overloaded(of_url, draw, politeness);
        retry_after.map_or(back_off, |asked| asked.min(politeness.retry_after_max))
    }

    /// Whether the host complains of everything: then no URL is to blame, until it has done so `max` times in a row.
    pub fn is_in_storm(&self, max: u32) -> bool {
        self.caution.is_of_host(max)
    }

    /// It says so in a response that counts for nothing else.
    pub fn overloaded(
        &mut self,
        now: Instant,
        retry_after: Option<Duration>,
        random: [u64; 2],
        politeness: &Politeness,
    ) {
        let rest = self.complained(retry_after, random, politeness);
        self.rest_until(now + rest);
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

    /// How careful one is with it.
    pub fn caution(&self) -> Caution {
        self.caution
    }

    /// Whether it was given up, though perhaps not any more by now.
    pub fn given_up(&self) -> Option<GivenUp> {
        self.given_up
    }

    /// The time for which the host was given up is over.
    pub fn forgive(&mut self) {
        self.given_up = None;
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

/// The server says that it is asked too often (RFC 6585 section 4, RFC 9110 section 15.6.4).
pub fn is_overload(status: u16) -> bool {
    matches!(status, 429 | 503)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::outcome::Fetched;

    fn politeness() -> Politeness {
        let mut politeness = Config::default().politeness;
        politeness.host_delay = Duration::from_secs(1);
        politeness.retry_delay = Duration::from_secs(10);
        politeness
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn fetched(status: u16, retry_after: Option<u64>) -> Outcome {
        let retry_after = retry_after.map(Duration::from_secs);
        Outcome::Fetched(Fetched { status, retry_after, ..Fetched::default() })
    }

    fn ended(pace: &mut HostPace, seconds: u64, outcome: &Outcome, politeness: &Politeness) {
        pace.ended(at(seconds), Duration::ZERO, outcome, [seconds, 0], politeness);
    }

    #[test]
    fn the_gap_is_counted_from_the_end() {
        let (mut pace, politeness) = (HostPace::new(), politeness());
        pace.obey_crawl_delay(Duration::from_secs(5), &politeness);
        assert_eq!(pace.not_before(), Instant::ZERO, "nothing was asked yet");
        ended(&mut pace, 100, &fetched(200, None), &politeness);
        assert_eq!(pace.not_before(), at(110), "twice as long at first");
        (0..2).for_each(|_| ended(&mut pace, 100, &fetched(200, None), &politeness));
        assert_eq!(pace.not_before(), at(105));
        ended(&mut pace, 110, &fetched(503, Some(60)), &politeness);
        assert_eq!(pace.not_before(), at(170));
        ended(&mut pace, 200, &fetched(429, None), &politeness);
        assert_eq!(pace.not_before(), at(220), "without Retry-After the retry delay, twice as long each time");
        pace.obey_crawl_delay(Duration::from_secs(12), &politeness);
        assert_eq!(pace.not_before(), at(224), "from the last request on, and stretched");
    }

    #[test]
    fn a_slow_server_is_asked_less_often() {
        let (mut pace, mut politeness) = (HostPace::new(), politeness());
        (politeness.response_factor, politeness.response_delay_max) = (2, Duration::from_secs(30));
        let mut gap = |seconds| {
            (0..3).for_each(|_| {
                pace.ended(at(100), Duration::from_secs(seconds), &fetched(200, None), [0, 0], &politeness)
            });
            pace.not_before().since(at(100)).as_secs()
        };
        assert_eq!([gap(0), gap(3), gap(60), gap(0)], [1, 6, 30, 1]);
    }

    #[test]
    fn a_proxy_that_fails_makes_its_host_wait() {
        let (mut pace, politeness) = (HostPace::new(), politeness());
        ended(&mut pace, 1, &Outcome::Failed(Failure::Aborted), &politeness);
        assert_eq!(pace.not_before(), at(3));
        ended(&mut pace, 2, &Outcome::Failed(Failure::ProxyFailed), &politeness);
        assert_eq!((pace.not_before(), pace.given_up()), (at(12), None));
        ended(&mut pace, 20, &Outcome::Failed(Failure::AddressForbidden), &politeness);
        let given_up = GivenUp { failure: Failure::AddressForbidden, until: at(3_620) };
        assert_eq!(HostPace::remembered(pace.given_up(), pace.caution()).given_up(), Some(given_up));
        pace.forgive();
        assert_eq!(pace.given_up(), None);
    }
}
