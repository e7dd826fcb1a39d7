//! How a job's end moves its host on.
//!
//! Decides: the next request to a host starts no earlier than its delay after the *end* of this one, because
//! only then is the gap kept as the server measures it, however long the way. Transient failures are tried
//! again, each time after twice the wait; a host that fails in a row rests longer each time and is then
//! given up. An address that no connection comes about to is no try of the URL or its host while there are others: these
//! may be as good as ever. robots.txt that cannot be had forbids everything (RFC 9309 section 2.3.1.4).
//! Limits: `SPARED_MAX` such tries in a row.

use std::rc::Rc;

use super::addrs::{Addrs, Left};
use super::host::{Dns, Entry, Origin, RETRIES_MAX, Robots, State};
use super::{Frontier, host_key};
use crate::config::PartitionKey;
use crate::ledger::HOLD_SLACK;
use crate::outcome::{Failure, FetchJob, Fetched, HostId, JobKind, Outcome, Truncated};
use crate::robots::{self, Rules};
use crate::time::{Duration, Instant};
use crate::url::Url;

/// Whether a try is one of those that a URL and its host have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Try {
    Counts,
    /// It was aborted, or an address's fault.
    Spared,
}

/// What became of a job's URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It is over: fetched, or failed for good.
    Over,
    /// It waits for another try.
    Again,
    /// It was a name or a robots.txt, no page.
    Errand,
}

impl Frontier {
    /// Takes a job back.
    pub fn finish(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome) -> End {
        let id = job.host;
        assert_eq!(self.hosts[id as usize].state, State::Busy, "a job came back that was not under way");
        if let (Some(addr), true) = (job.addr, self.rules.politeness.ip_delay > Duration::ZERO) {
            self.ledger.release(addr, job.deadline + HOLD_SLACK, now + self.rules.politeness.ip_delay);
        }
        let end = match job.kind {
            JobKind::Resolve => {
                self.resolving -= 1;
                self.resolved(now, job, outcome);
                End::Errand
            }
            JobKind::Robots => {
                if self.paused(now, id, outcome) == Try::Counts {
                    self.robots_fetched(now, job, outcome);
                }
                End::Errand
            }
            JobKind::Page => {
                let counts = self.paused(now, id, outcome);
                self.page_fetched(now, job, outcome, counts)
            }
        };
        if job.kind == JobKind::Resolve {
            // Before all others: behind a long row of hosts the answer would be too old at its turn, each time.
            self.set_state(id, State::Ready);
            self.ready.push_front(id);
        } else {
            // A host that waits for its delay need not be asked before.
            let at = self.hosts[id as usize].next_turn(self.rules.resolve_lead);
            self.schedule(id, now, at);
        }
        self.trim_rules();
        end
    }

    fn resolved(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome) {
        let (retries_max, stale_max) = (self.rules.politeness.retries_max, self.rules.stale_max);
        let wait = self.backoff(self.hosts[job.host as usize].dns_attempts);
        let host = &mut self.hosts[job.host as usize];
        let needed_at = now.max(host.not_before);
        match outcome {
            Outcome::Resolved { addrs, ttl } if !addrs.is_empty() => {
                let ttl = (*ttl).max(ANSWER_HOLDS_MIN);
                let before = std::mem::replace(&mut host.dns, Dns::Unknown).answer();
                let known = Addrs::new(addrs, self.rules.families, now, ttl, before.as_ref());
                host.dns = Dns::Known(known.of_both(job.both_families));
                host.dns_attempts = 0;
            }
            Outcome::Failed(Failure::Aborted) => host.dns = Dns::Unknown,
            Outcome::Failed(failure)
                if failure.is_transient() && host.addrs().is_some_and(|known| known.stretch(needed_at, stale_max)) => {}
            Outcome::Failed(failure) if failure.is_transient() && host.dns_attempts < retries_max => {
                host.dns_attempts += 1;
                let before = std::mem::replace(&mut host.dns, Dns::Unknown).answer();
                host.dns = Dns::Retry(now + wait, before);
            }
            Outcome::Failed(failure) => {
                host.dns = Dns::Unknown;
                host.given_up = Some((*failure, now + UNANSWERED_FOR));
            }
            Outcome::NoAddress { ttl } => {
                host.dns = Dns::Unknown;
                host.given_up = Some((Failure::DnsNotFound, now + (*ttl).max(ANSWER_HOLDS_MIN)));
            }
            Outcome::Resolved { .. } | Outcome::Fetched(_) => {
                host.given_up = Some((Failure::DnsNotFound, now + UNANSWERED_FOR));
            }
        }
    }

    /// Sets the instant of the next request, and gives a host up that fails too often in a row.
    fn paused(&mut self, now: Instant, id: HostId, outcome: &Outcome) -> Try {
        let politeness = &self.rules.politeness;
        let host = &mut self.hosts[id as usize];
        host.last_end = now;
        let mut pause = host.delay(politeness.host_delay);
        let mut counts = Try::Counts;
        match outcome {
            Outcome::Fetched(fetched) => {
                (host.failures_in_row, host.spared) = (0, 0);
                if let (Some(addr), Some(known)) = (fetched.addr, host.addrs()) {
                    known.answered(addr);
                }
                if is_overload(fetched.status) {
                    let asked = fetched.retry_after.unwrap_or(politeness.retry_delay);
                    pause = pause.max(asked.min(politeness.retry_after_max));
                }
            }
            Outcome::Failed(Failure::Aborted) => counts = Try::Spared,
            // Says nothing of the host: when the proxy is there again, all hosts must be.
            Outcome::Failed(Failure::ProxyFailed) => pause = pause.max(politeness.retry_delay),
            Outcome::Failed(failure) => {
                let left = match host.addrs() {
                    Some(known) if failure.is_of_connect() => known.unconnected(),
                    Some(known) => {
                        known.failed();
                        Left::Nothing
                    }
                    None => Left::Nothing,
                };
                host.wants_both_families |= left == Left::OtherFamily;
                if left == Left::Another && host.spared < SPARED_MAX {
                    host.spared += 1;
                    counts = Try::Spared;
                } else {
                    host.failures_in_row += 1;
                }
                if *failure == Failure::AddressForbidden {
                    host.given_up = Some((*failure, now + GIVEN_UP_FOR));
                } else if host.failures_in_row >= politeness.host_failures_max.max(1) {
                    host.given_up = Some((Failure::HostDead, now + GIVEN_UP_FOR));
                } else if let Some(doublings) = host.failures_in_row.checked_sub(FAILURES_BEFORE_REST) {
                    pause = pause.max(politeness.retry_delay * (1 << doublings.min(6)));
                }
            }
            Outcome::Resolved { .. } | Outcome::NoAddress { .. } => {}
        }
        host.not_before = now + pause;
        counts
    }

    fn page_fetched(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome, counts: Try) -> End {
        let again = match outcome {
            Outcome::Fetched(fetched) if is_overload(fetched.status) || is_hiccup(fetched.status) => true,
            Outcome::Failed(failure) => failure.is_transient(),
            Outcome::Fetched(_) | Outcome::Resolved { .. } | Outcome::NoAddress { .. } => false,
        };
        let spared = counts == Try::Spared;
        let host = &self.hosts[job.host as usize];
        debug_assert!(host.retries.len() < RETRIES_MAX, "a URL was taken while too many wait for another try");
        if !again || !(job.attempt < self.rules.politeness.retries_max || spared) {
            self.queued -= 1;
            return End::Over;
        }
        let wait = self.backoff(job.attempt).max(self.hosts[job.host as usize].not_before.since(now));
        let attempt = if spared { job.attempt } else { job.attempt + 1 };
        let entry = Entry { url: job.url.clone(), depth: job.depth, attempt };
        self.ram_bytes += entry.ram_bytes();
        self.hosts[job.host as usize].retries.push((now + wait, entry));
        End::Again
    }

    fn robots_fetched(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome) {
        let id = job.host;
        let host = &mut self.hosts[id as usize];
        let Some(index) = host.origin_of(&job.url) else { return };
        match outcome {
            Outcome::Fetched(fetched) if (300..400).contains(&fetched.status) => {
                self.robots_redirected(now, id, index, fetched);
            }
            Outcome::Fetched(fetched) => match robots::meaning(fetched.status) {
                robots::Meaning::Parse if is_torn(fetched, self.rules.robots.body_bytes_max) => {
                    self.robots_unreachable(now, id, index, None, Failure::RobotsUnreachable);
                }
                robots::Meaning::Parse => {
                    let body = fetched.robots_body.as_deref().unwrap_or_default();
                    let rules = Rules::parse(body, &self.rules.agent, self.rules.robots.body_bytes_max);
                    self.robots_known(now, id, index, rules);
                }
                robots::Meaning::AllowAll => self.robots_known(now, id, index, Rules::allow_all()),
                robots::Meaning::Unreachable => {
                    self.robots_unreachable(now, id, index, fetched.retry_after, Failure::RobotsServerError);
                }
            },
            Outcome::Failed(failure) => {
                // A server's TLS does not mend from one try to the next, and says more than that robots.txt is missing.
                let why = if failure.is_of_tls() { *failure } else { Failure::RobotsUnreachable };
                self.robots_unreachable(now, id, index, None, why);
            }
            Outcome::Resolved { .. } | Outcome::NoAddress { .. } => {
                self.robots_unreachable(now, id, index, None, Failure::RobotsUnreachable);
            }
        }
    }

    fn robots_known(&mut self, now: Instant, id: HostId, index: usize, rules: Rules) {
        let known = self.verdict_for(rules, now);
        let host = &mut self.hosts[id as usize];
        host.origins[index].robots = known;
        host.origins[index].attempts = 0;
        host.obey_crawl_delay(self.rules.politeness.host_delay, self.rules.politeness.crawl_delay_max);
        self.note_rules(id, index);
        self.release_waiters(id, now);
    }

    fn robots_unreachable(
        &mut self,
        now: Instant,
        id: HostId,
        index: usize,
        retry_after: Option<Duration>,
        why: Failure,
    ) {
        let rules = &self.rules;
        let host = &mut self.hosts[id as usize];
        // From the instant on at which the host can act on it: it may rest for longer than a verdict holds.
        let may_act = host.not_before.max(now);
        let origin = &mut host.origins[index];
        let wait = retry_after.unwrap_or_default().min(rules.politeness.retry_after_max).max(rules.robots.retry_delay);
        (origin.moved, origin.redirects) = (None, 0);
        if origin.attempts >= rules.robots.retries_max || why.is_of_tls() {
            origin.robots = Robots::Refused { until: may_act + rules.robots.ttl, why };
        } else {
            origin.attempts += 1;
            origin.robots = Robots::Unreachable { again: now + wait };
        }
        self.release_waiters(id, now);
    }

    /// RFC 9309 section 2.3.1.2: at least five redirects are followed, also across authorities; the rules then
    /// hold for the authority that was asked first. A new place in the same origin is fetched as its own; another
    /// origin of this shard fetches its robots.txt under its own delays, and this one waits for it. A host of
    /// another shard is out of reach from here: unreachable, so forbidden.
    ///
    /// Whoever waits, waits for the last origin of its way directly: what waited for this one now waits for the
    /// next. So a row of redirects without end is followed no further than anyone's limit, and nothing recurses.
    fn robots_redirected(&mut self, now: Instant, id: HostId, index: usize, fetched: &Fetched) {
        let redirects_max = self.rules.robots.redirects_max;
        let origin = &mut self.hosts[id as usize].origins[index];
        origin.redirects = origin.redirects.saturating_add(1);
        let too_many = origin.redirects > redirects_max;
        let Some(target) = fetched.redirect.as_ref().filter(|_| !too_many) else {
            // More redirects than that, or none that leads anywhere: as if there were no robots.txt.
            return self.robots_known(now, id, index, Rules::allow_all());
        };
        let host = &mut self.hosts[id as usize];
        let same_host = host_key(target.host()) == &*host.name;
        if same_host && host.origin_of(target) == Some(index) {
            host.origins[index].moved = Some(target.clone());
            return;
        }
        let same_shard = same_host
            || self.rules.partition_key == PartitionKey::Site && target.site() == crate::url::site_of(&host.name);
        let Some((other, place)) = same_shard.then(|| self.origin_elsewhere(now, target)).flatten() else {
            return self.robots_unreachable(now, id, index, None, Failure::RobotsUnreachable);
        };
        let awaited = &mut self.hosts[other as usize].origins[place];
        awaited.expire(now);
        let (mut last, mut steps) = ((other, place), 0);
        if let Robots::Elsewhere { host, origin } = awaited.robots {
            (last, steps) = ((host, usize::from(origin)), awaited.redirects);
        }
        if last == (id, index) {
            // In a circle.
            return self.robots_known(now, id, index, Rules::allow_all());
        }
        self.wait_elsewhere(now, (id, index), last, steps);
        self.release_waiters(last.0, now);
        let host = &self.hosts[last.0 as usize];
        let is_awaited = !host.origins[last.1].waiters.is_empty();
        if is_awaited && matches!(host.state, State::Idle | State::Waiting(_)) {
            let at = host.not_before;
            self.schedule(last.0, now, at);
        }
    }

    /// Lets `from`, if it has URLs, and all that wait for it wait for `to`, `steps` redirects behind `from`'s own.
    fn wait_elsewhere(&mut self, now: Instant, from: (HostId, usize), to: (HostId, usize), steps: u8) {
        let host = &mut self.hosts[from.0 as usize];
        let in_hand = host.hand.as_ref().map(|entry| entry.url.clone());
        let in_hand = in_hand.and_then(|url| host.origin_of(&url)) == Some(from.1);
        let origin = &mut host.origins[from.1];
        let here = std::mem::take(&mut origin.redirects);
        let mut waiting = std::mem::take(&mut origin.waiters);
        (origin.moved, origin.robots) = (None, Robots::Unknown);
        if in_hand || origin.parked.len() > 0 {
            origin.robots = Robots::Elsewhere { host: from.0, origin: from.1 as u8 };
            waiting.push((from.0, from.1 as u8));
        }
        for (id, index) in waiting {
            // It may have been given up meanwhile, or forgotten.
            let origin = self.hosts[id as usize].origins.get_mut(usize::from(index));
            let Some(origin) = origin.filter(|origin| origin.waits_for(from)) else { continue };
            origin.redirects = origin.redirects.saturating_add(here).saturating_add(steps);
            if origin.redirects > self.rules.robots.redirects_max {
                let verdict = self.verdict_for(Rules::allow_all(), now);
                self.give_verdict(now, (id, index), verdict);
            } else {
                origin.robots = Robots::Elsewhere { host: to.0, origin: to.1 as u8 };
                self.hosts[to.0 as usize].origins[to.1].waiters.push((id, index));
            }
        }
    }

    fn origin_elsewhere(&mut self, now: Instant, target: &Url) -> Option<(HostId, usize)> {
        let other = self.find_or_insist(now, target.host());
        let place = self.hosts[other as usize].origin_of(target)?;
        Some((other, place))
    }

    /// Hands what the origins of host `id` know now to those that wait for it.
    pub(super) fn release_waiters(&mut self, id: HostId, now: Instant) {
        for index in 0..self.hosts[id as usize].origins.len() {
            let origin = &mut self.hosts[id as usize].origins[index];
            let verdict = match &origin.robots {
                Robots::Known { rules, until, .. } => {
                    Robots::Known { rules: Rc::clone(rules), until: *until, used: false }
                }
                // Another host's TLS is not what is wrong with those that wait.
                Robots::Refused { until, why } if why.is_of_tls() => {
                    Robots::Refused { until: *until, why: Failure::RobotsUnreachable }
                }
                Robots::Refused { until, why } => Robots::Refused { until: *until, why: *why },
                _ => continue,
            };
            for (waiter, place) in std::mem::take(&mut origin.waiters) {
                // It may have been given up meanwhile, and asked again by itself, or forgotten.
                let origin = self.hosts[waiter as usize].origins.get(usize::from(place));
                if origin.is_some_and(|origin| origin.waits_for((id, index))) {
                    self.give_verdict(now, (waiter, place), verdict.clone());
                }
            }
        }
    }

    /// What is known of an origin's robots.txt comes from elsewhere.
    fn give_verdict(&mut self, now: Instant, (id, index): (HostId, u8), verdict: Robots) {
        let host = &mut self.hosts[id as usize];
        host.origins[usize::from(index)].robots = verdict;
        host.obey_crawl_delay(self.rules.politeness.host_delay, self.rules.politeness.crawl_delay_max);
        if matches!(host.state, State::Idle | State::Waiting(_)) {
            let at = host.not_before;
            self.schedule(id, now, at);
        }
        self.note_rules(id, usize::from(index));
    }

    fn verdict_for(&mut self, rules: Rules, now: Instant) -> Robots {
        Robots::Known { rules: self.shelf.keep(rules), until: now + self.rules.robots.ttl, used: false }
    }

    fn backoff(&self, attempt: u8) -> Duration {
        self.rules.politeness.retry_delay * (1 << u32::from(attempt.min(10)))
    }
}

impl Origin {
    /// Whether this origin's robots.txt is the one of `place`.
    fn waits_for(&self, place: (HostId, usize)) -> bool {
        matches!(self.robots, Robots::Elsewhere { host, origin } if (host, usize::from(origin)) == place)
    }
}

/// Whether rules may be missing at the end, such as the one that forbids all: then nothing is known.
fn is_torn(fetched: &Fetched, bytes_max: usize) -> bool {
    match fetched.truncated {
        None => false,
        Some(Truncated::Length) => fetched.robots_body.as_ref().is_none_or(|body| body.len() < bytes_max),
        Some(Truncated::Time | Truncated::Disconnect | Truncated::Unspecified) => true,
    }
}

/// The server says that it is asked too often (RFC 6585 section 4, RFC 9110 section 15.6.4).
fn is_overload(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// The server failed in a way that often passes.
fn is_hiccup(status: u16) -> bool {
    matches!(status, 500 | 502 | 504)
}

/// An answer serves the request that it was asked for, also when its time to live is 0.
const ANSWER_HOLDS_MIN: Duration = Duration::from_secs(1);
/// How long a host stays given up.
const GIVEN_UP_FOR: Duration = Duration::from_secs(3_600);
/// How long a host stays given up because no name server answered (RFC 2308 section 7: five minutes at most).
const UNANSWERED_FOR: Duration = Duration::from_secs(300);
/// Failures in a row before a host rests longer than its delay.
const FAILURES_BEFORE_REST: u32 = 3;
/// Tries in a row that are not counted because other addresses are left: name servers can name new ones for ever.
const SPARED_MAX: u8 = 3;
