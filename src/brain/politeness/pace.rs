//! When one host may get the next request.
//!
//! Decides: the next request starts no earlier than the host's delay after the *end* of the last one, because only
//! then does the server itself see that gap, whatever the network latency. The delay is the longest of three: the
//! configured one, robots.txt's Crawl-delay, and `politeness.response_factor` times what the last response took,
//! because a slow server is busy (the last does not apply if the configured delay is zero). The delay is stretched
//! for hosts that are new or complain ([`super::caution`]).
//! 429 and 503 get the time that Retry-After asks for (an [`crate::outcome::Interstitial`] counts as one): for the
//! whole host, except with odd ports and kinds that complain alone ([`super::kind_rest`]). A host without any permitted
//! address is given up, and everything that waits for it ends.
//! A line of `politeness.host` gives a host another delay than `politeness.host_delay`. Crawl-delay and all the rest
//! may still lengthen it: a host's owner has the last word. Outside of the line's hours the host rests.
//! If the line allows several requests at once, the delay counts from the latest end and from the latest beginning.
//! How long a response takes says little then, and adds no delay. There is still only one request at a time until a
//! host has answered twice, unless it is the operator's own, and as long as a complaint of it is not forgiven.
//! Complaints about requests that were in flight when it complained before are the same complaint.
//! Invariants: `not_before` never moves back; a rest due to hours is not taken for a wish of the host.
//! Leaves to others: failures, which belong to an origin ([`super::streak`]).

use super::caution::{Caution, Complaint};
use super::streak::GIVEN_UP_FOR;
use crate::outcome::Outcome;
use crate::waits::Wait;
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant, UnixTime};
use ringcrawl_config::{HostTerms, Politeness};

/// The pace of one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostPace {
    not_before: Instant,
    /// When the operator's hours begin, if they have kept it waiting.
    open_from: Instant,
    /// The latest end; with several in flight, the latest beginning or end.
    latest: Instant,
    /// When it complained last.
    complained: Instant,
    /// Since when it has only complained.
    complains_since: Instant,
    terms: HostTerms,
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
    /// From then on it may get requests again.
    pub until: Instant,
}

/// Whether a try uses up one of those that a URL and its origin have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Try {
    /// It does.
    Counts,
    /// It does not: it was aborted, or an address's fault.
    Uncounted,
}

impl HostPace {
    /// A host that never got a request.
    pub fn new() -> HostPace {
        HostPace {
            not_before: Instant::ZERO,
            open_from: Instant::ZERO,
            latest: Instant::ZERO,
            complained: Instant::ZERO,
            complains_since: Instant::ZERO,
            terms: HostTerms::default(),
            crawl_delay: Duration::ZERO,
            took: Duration::ZERO,
            caution: Caution::of_stranger(),
            given_up: None,
        }
    }

    /// A host that was forgotten and appears again.
    pub fn remembered(given_up: Option<GivenUp>, caution: Caution) -> HostPace {
        HostPace { given_up, caution, ..HostPace::new() }
    }

    /// The same host, under these terms.
    pub fn under(self, terms: HostTerms) -> HostPace {
        HostPace { terms, ..self }
    }

    /// The number of requests that may be in flight at once.
    pub fn requests_max(&self) -> u8 {
        let may_have = if self.terms.is_mine { self.caution.is_forgiven() } else { self.caution.is_at_ease() };
        if may_have { self.terms.concurrency } else { 1 }
    }

    /// Whether there may ever be several.
    pub fn may_have_several(&self) -> bool {
        self.terms.concurrency > 1
    }

    /// Whether it is the operator's own.
    pub fn is_mine(&self) -> bool {
        self.terms.is_mine
    }

    /// Makes the host rest until its hours begin, if they have not; `wall` is the clock time.
    pub fn keep_hours(&mut self, now: Instant, wall: UnixTime) {
        if let Some(open_from) = self.terms.hours.and_then(|hours| hours.open_from(now, wall)) {
            self.open_from = self.open_from.max(open_from);
        }
    }

    /// No request before this.
    pub fn not_before(&self) -> Instant {
        self.not_before.max(self.open_from)
    }

    /// The same without the operator's hours: what the host itself has asked for, or its delay.
    pub fn asked_until(&self) -> Instant {
        self.not_before
    }

    /// No request before `at`.
    pub fn rest_until(&mut self, at: Instant) {
        self.not_before = self.not_before.max(at);
    }

    /// The delay that robots.txt asks for, within the limit; zero: none.
    pub fn crawl_delay(&self) -> Duration {
        self.crawl_delay
    }

    /// Whether it got a request since it is in memory: only then is the start of a Crawl-delay known.
    pub fn was_asked(&self) -> bool {
        self.latest > Instant::ZERO
    }

    /// The delay after a request.
    pub fn delay(&self, politeness: &Politeness) -> Duration {
        let longer = self.usual_delay(politeness).max(self.delay_for_response(politeness));
        self.caution.stretch(longer, politeness)
    }

    /// The same for a host that answers at once and never complained.
    pub fn usual_delay(&self, politeness: &Politeness) -> Duration {
        self.crawl_delay.max(self.agreed_delay(politeness))
    }

    /// The delay of the configuration, which every shard knows.
    pub fn agreed_delay(&self, politeness: &Politeness) -> Duration {
        self.terms.delay.unwrap_or(politeness.host_delay)
    }

    /// What keeps it from being asked before `not_before`.
    pub fn wait(&self, politeness: &Politeness) -> Wait {
        let for_response = self.delay_for_response(politeness);
        match () {
            () if self.open_from > self.not_before => Wait::Hours,
            () if !self.caution.is_forgiven() => Wait::Complaints,
            () if for_response > self.usual_delay(politeness) => Wait::ResponseFactor,
            () if self.crawl_delay > self.agreed_delay(politeness) => Wait::CrawlDelay,
            () => Wait::HostDelay,
        }
    }

    fn delay_for_response(&self, politeness: &Politeness) -> Duration {
        // A delay of zero is the operator's word that this host needs no delay.
        match self.may_have_several() || self.terms.is_mine || self.agreed_delay(politeness).is_zero() {
            true => Duration::ZERO,
            false => (self.took * politeness.response_factor).min(politeness.response_delay_max),
        }
    }

    /// A request begins, or has ended though its outcome does not count yet. With several in flight, others wait for
    /// the delay.
    pub fn moved(&mut self, now: Instant, politeness: &Politeness) {
        if self.may_have_several() {
            self.latest = now;
            self.rest_until(now + self.delay(politeness));
        }
    }

    /// How long the last response took.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// A request ended at `now` after `took`. The host may have complained in it, and asked to be left alone for a
    /// while. Without a `complaint`, a 429 or 503 is charged to one origin or kind of URLs and not to the host. A
    /// response that `is_fine` is a page and not a failure.
    pub fn ended(
        &mut self,
        now: Instant,
        took: Duration,
        (outcome, is_fine): (&Outcome, bool),
        complaint: Option<(Complaint, Option<Duration>)>,
        politeness: &Politeness,
    ) {
        // With several in flight, one may have waited for us while others ended.
        self.latest = self.latest.max(now);
        let mut rest = Duration::ZERO;
        match outcome {
            Outcome::Fetched(fetched) if is_overload(fetched.status) || fetched.interstitial.is_some() => {
                self.took = took;
                if let Some((complaint, retry_after)) = complaint {
                    rest = self.complained(now, now - took, retry_after, complaint, politeness);
                }
            }
            Outcome::Fetched(_) => {
                self.took = took;
                // The delay from before this response: a new host's delay holds until it has answered often enough.
                rest = self.delay(politeness);
                self.caution.answered(is_fine);
            }
            // This says nothing about the host: all hosts must be available once the proxy is back.
            Outcome::Failed(Failure::ProxyFailed | Failure::ProxyUnreachable) => rest = politeness.retry_delay,
            Outcome::Failed(failure @ Failure::AddressForbidden) => self.give_up(*failure, now + GIVEN_UP_FOR),
            // The slowest that servers can be.
            Outcome::Failed(Failure::Deadline | Failure::FirstByteTimeout | Failure::Hurried) => self.took = took,
            Outcome::Failed(_) | Outcome::Resolved { .. } | Outcome::NoAddress { .. } => {}
        }
        self.rest_until(now + rest.max(self.delay(politeness)));
    }

    /// The server says that it gets too many requests, in response to one that began at `began`. Returns how long the
    /// host rests: as long as it asks for, or longer each time.
    fn complained(
        &mut self,
        now: Instant,
        began: Instant,
        retry_after: Option<Duration>,
        complaint: Complaint,
        politeness: &Politeness,
    ) -> Duration {
        let is_same = began < self.complained;
        self.complained = self.complained.max(now);
        let back_off = if is_same { Duration::ZERO } else { self.caution.is_overloaded(complaint, politeness) };
        if self.caution.in_row() <= 1 {
            self.complains_since = now;
        } else if self.caution.in_row() >= politeness.host_failures_max && now.since(self.complains_since) >= STORM_MAX
        {
            self.give_up(Failure::HostDead, now + GIVEN_UP_FOR);
        }
        retry_after.map_or(back_off, |asked| asked.min(politeness.retry_after_max))
    }

    /// Whether the host complains about everything: then no URL is to blame, until the host is given up.
    pub fn is_in_storm(&self) -> bool {
        self.caution.is_of_host()
    }

    /// The host complains in a response that counts for nothing else.
    pub fn overloaded(
        &mut self,
        now: Instant,
        retry_after: Option<Duration>,
        complaint: Complaint,
        politeness: &Politeness,
    ) {
        let rest = self.complained(now, now, retry_after, complaint, politeness);
        self.rest_until(now + rest);
    }

    /// robots.txt asks for this delay. It holds from the last request on, also after the rules have expired, until
    /// there are new ones.
    pub fn obey_crawl_delay(&mut self, asked: Duration, politeness: &Politeness) {
        self.crawl_delay = asked.min(politeness.crawl_delay_max);
        if self.was_asked() {
            self.rest_until(self.latest + self.delay(politeness));
        }
    }

    /// Ends everything that waits for the host as `failure`, until `until`.
    pub fn give_up(&mut self, failure: Failure, until: Instant) {
        self.given_up = Some(GivenUp { failure, until });
    }

    /// How careful we are with it.
    pub fn caution(&self) -> Caution {
        self.caution
    }

    /// Whether it was given up; that may have ended by now.
    pub fn given_up(&self) -> Option<GivenUp> {
        self.given_up
    }

    /// The time for which the host was given up has ended.
    pub fn forgive(&mut self) {
        self.given_up = None;
    }
}

impl Default for HostPace {
    fn default() -> HostPace {
        HostPace::new()
    }
}

/// The server says that it gets too many requests (RFC 6585 section 4, RFC 9110 section 15.6.4).
pub fn is_overload(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// A host that complains about everything for this long is given up like one that fails: maintenance ends sooner.
pub(super) const STORM_MAX: Duration = Duration::from_secs(6 * 3_600);

#[cfg(test)]
mod tests;
