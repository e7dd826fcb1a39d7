//! What a robots.txt that came means, and robots.txt that redirect.
//!
//! Decides: robots.txt that cannot be had forbids everything (RFC 9309 section 2.3.1.4).

use std::rc::Rc;

use super::host::State;
use super::origin::Robots;
use super::{Frontier, host_key};
use crate::config::PartitionKey;
use crate::outcome::{Failure, FetchJob, Fetched, HostId, Outcome, Truncated};
use crate::robots::{self, Rules};
use crate::time::{Duration, Instant};
use crate::url::Url;

impl Frontier {
    pub(super) fn robots_fetched(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome) {
        let id = job.host;
        let host = &mut self.hosts[id];
        let Some(index) = host.origin_of(&job.url) else { return };
        match outcome {
            Outcome::Fetched(fetched) if (300..400).contains(&fetched.status) => {
                self.robots_redirected(now, id, index, fetched);
            }
            Outcome::Fetched(fetched) => match robots::meaning(fetched.status) {
                robots::Meaning::Parse if is_torn(fetched, self.settings.robots.body_bytes_max) => {
                    self.robots_unreachable(now, id, index, None, Failure::RobotsUnreachable);
                }
                robots::Meaning::Parse => {
                    let body = fetched.robots_body.as_deref().unwrap_or_default();
                    let rules = Rules::parse(body, &self.settings.agent, self.settings.robots.body_bytes_max);
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
        let host = &mut self.hosts[id];
        host.origins[index].robots = known;
        host.origins[index].attempts = 0;
        host.obey_crawl_delay(&self.settings.politeness);
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
        let rules = &self.settings;
        let host = &mut self.hosts[id];
        // From the instant on at which the host can act on it: it may rest for longer than a verdict holds.
        let may_act = host.pace.not_before().max(now);
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
        let redirects_max = self.settings.robots.redirects_max;
        let origin = &mut self.hosts[id].origins[index];
        origin.redirects = origin.redirects.saturating_add(1);
        let too_many = origin.redirects > redirects_max;
        let Some(target) = fetched.redirect.as_ref().filter(|_| !too_many) else {
            // More redirects than that, or none that leads anywhere: as if there were no robots.txt.
            return self.robots_known(now, id, index, Rules::allow_all());
        };
        let host = &mut self.hosts[id];
        let same_host = host_key(target.host()) == &*host.name;
        if same_host && host.origin_of(target) == Some(index) {
            host.origins[index].moved = Some(target.clone());
            return;
        }
        let same_shard = same_host
            || self.settings.partition_key == PartitionKey::Site && target.site() == crate::url::site_of(&host.name);
        let Some((other, place)) = same_shard.then(|| self.origin_elsewhere(now, target)).flatten() else {
            return self.robots_unreachable(now, id, index, None, Failure::RobotsUnreachable);
        };
        let awaited = &mut self.hosts[other].origins[place];
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
        let host = &self.hosts[last.0];
        let is_awaited = !host.origins[last.1].waiters.is_empty();
        if is_awaited && matches!(host.state(), State::Idle | State::Waiting(_)) {
            let at = host.pace.not_before();
            self.schedule(last.0, now, at);
        }
    }

    /// Lets `from`, if it has URLs, and all that wait for it wait for `to`, `steps` redirects behind `from`'s own.
    fn wait_elsewhere(&mut self, now: Instant, from: (HostId, usize), to: (HostId, usize), steps: u8) {
        let host = &mut self.hosts[from.0];
        let current = host.backlog.current().map(|entry| entry.url.clone());
        let current = current.and_then(|url| host.origin_of(&url)) == Some(from.1);
        let origin = &mut host.origins[from.1];
        let here = std::mem::take(&mut origin.redirects);
        let mut waiting = std::mem::take(&mut origin.waiters);
        (origin.moved, origin.robots) = (None, Robots::Unknown);
        if current || origin.parked.len() > 0 {
            origin.robots = Robots::Elsewhere { host: from.0, origin: from.1 as u8 };
            waiting.push((from.0, from.1 as u8));
        }
        for (id, index) in waiting {
            // It may have been given up meanwhile, or forgotten.
            let origin = self.hosts[id].origins.get_mut(usize::from(index));
            let Some(origin) = origin.filter(|origin| origin.waits_for(from)) else { continue };
            origin.redirects = origin.redirects.saturating_add(here).saturating_add(steps);
            if origin.redirects > self.settings.robots.redirects_max {
                let verdict = self.verdict_for(Rules::allow_all(), now);
                self.give_verdict(now, (id, index), verdict);
            } else {
                origin.robots = Robots::Elsewhere { host: to.0, origin: to.1 as u8 };
                self.hosts[to.0].origins[to.1].waiters.push((id, index));
            }
        }
    }

    fn origin_elsewhere(&mut self, now: Instant, target: &Url) -> Option<(HostId, usize)> {
        let other = self.hosts.admit_beyond_bound(now, target.host());
        let place = self.hosts[other].origin_of(target)?;
        Some((other, place))
    }

    /// Hands what the origins of host `id` know now to those that wait for it.
    pub(super) fn release_waiters(&mut self, id: HostId, now: Instant) {
        for index in 0..self.hosts[id].origins.len() {
            let origin = &mut self.hosts[id].origins[index];
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
                let origin = self.hosts[waiter].origins.get(usize::from(place));
                if origin.is_some_and(|origin| origin.waits_for((id, index))) {
                    self.give_verdict(now, (waiter, place), verdict.clone());
                }
            }
        }
    }

    /// What is known of an origin's robots.txt comes from elsewhere.
    fn give_verdict(&mut self, now: Instant, (id, index): (HostId, u8), verdict: Robots) {
        let host = &mut self.hosts[id];
        host.origins[usize::from(index)].robots = verdict;
        host.obey_crawl_delay(&self.settings.politeness);
        if matches!(host.state(), State::Idle | State::Waiting(_)) {
            let at = host.pace.not_before();
            self.schedule(id, now, at);
        }
        self.note_rules(id, usize::from(index));
    }

    fn verdict_for(&mut self, rules: Rules, now: Instant) -> Robots {
        Robots::Known { rules: self.rules_cache.keep(rules), until: now + self.settings.robots.ttl, used: false }
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
