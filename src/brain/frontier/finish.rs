//! How a job in flight, and its end, move its host on.
//!
//! Decides: failures that may be temporary are retried, as often and after as long as their class says
//! ([`crate::politeness::Retries`]). A request to an address without a connection does not count as an attempt at the
//! URL while there are other addresses, or may be. [`crate::politeness`] decides what an outcome means for the host's
//! pace, [`super::hosts`] whose failure it is, and [`super::robots_fetch`] what robots.txt says.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::Frontier;
use super::hosts::{Blame, Meaning, kind_of};
use super::order::Cost;
use super::queue::{QueueTurn, QueuedUrl, Ticket};
use super::robots::RobotsResult;
use crate::job::{FetchJob, HostId, JobKind};
use crate::outcome::Outcome;
use crate::politeness::{Complaint, RetryClass, Try, is_overload};
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_url::Url;

/// The result for a job's URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It has ended: fetched, or failed for good.
    Over,
    /// It waits for a retry.
    Again,
    /// It was a name or a robots.txt, not a page.
    Preparation,
}

impl Frontier {
    /// Takes a job back.
    pub fn finish(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome) -> End {
        let id = job.host;
        assert!(self.hosts[id].under_way.jobs() > 0, "a job came back that was not under way");
        if job.kind != JobKind::Resolve {
            let met_interstitial = matches!(outcome, Outcome::Fetched(fetched) if fetched.interstitial.is_some());
            let is_fine = matches!(outcome, Outcome::Fetched(fetched) if fetched.truncated.is_none());
            self.fetch_ended(now, job, met_interstitial, is_fine);
        }
        let end = match job.kind {
            JobKind::Resolve => {
                let is_told = match outcome {
                    Outcome::Failed(Failure::Aborted) => None,
                    outcome => Some(!matches!(outcome, Outcome::Failed(_))),
                };
                self.slots.lookups.ended(now, id, is_told);
                self.resolved(now, job, outcome);
                End::Preparation
            }
            JobKind::Robots => {
                if self.paused(now, job, outcome) == Try::Counts {
                    self.robots_fetched(now, job, outcome);
                }
                End::Preparation
            }
            JobKind::Page => {
                let counts = self.paused(now, job, outcome);
                let end = self.page_fetched(now, job, outcome, counts);
                let cost = (end == End::Over).then(|| cost(outcome));
                self.order.page_ended(&mut self.hosts[id], &job.url, cost);
                end
            }
        };
        let host = &mut self.hosts[id];
        self.notes.note_health(now, host, job, outcome, end == End::Again, &self.settings);
        let goes_on_meanwhile = job.kind == JobKind::Resolve && host.under_way.refreshing().is_some();
        host.under_way.ends(job.kind);
        // If it waits for its delay, or in another queue, it stays there.
        let is_elsewhere = goes_on_meanwhile && !host.waits_for_name(now);
        let retry_at = self.hosts[id].resolution.retry_at();
        if is_elsewhere {
            self.go_on(id, now);
        } else if let (JobKind::Resolve, Outcome::Failed(Failure::Aborted), Some(at)) = (job.kind, outcome, retry_at) {
            // Behind all others, so that the probes of an outage do not try one name forever.
            self.schedule(id, now, at);
        } else if job.kind == JobKind::Resolve {
            self.slots.make_answered_ready(&mut self.hosts, id);
        } else {
            self.go_on(id, now);
        }
        self.robots.trim(|holder, excess| self.hosts.drop_rules(holder, excess));
        end
    }

    /// A host has asked for a rest in a response that counts for nothing else.
    pub fn asked_for_rest(&mut self, now: Instant, job: &FetchJob, status: u16, retry_after: Option<Duration>) {
        if !is_overload(status) {
            return;
        }
        let of_url = xxh3_64(job.url.as_str().as_bytes());
        let complaint = Complaint { of_url, is_again: false, is_of_page: false, draw: self.draw() };
        let (host, politeness) = (&mut self.hosts[job.host], &self.settings.politeness);
        let of = (job.kind == JobKind::Page).then(|| kind_of(&job.url, job.is_strangers));
        let blame = host.complains(now, (&job.url, of), retry_after, politeness);
        match blame {
            Blame::Host => host.pace.overloaded(now, retry_after, complaint, politeness),
            Blame::LoneOrigin => host.pace.overloaded(now, None, complaint, politeness),
            Blame::Origin | Blame::Kind => {}
        }
        if matches!(blame, Blame::Origin | Blame::LoneOrigin) && retry_after.is_some() {
            self.notes.note_origin_rests(now, host, &self.settings);
        }
        self.notes.note_long_rest(now, host, &self.settings);
    }

    /// A random number from the crawl's own generator.
    fn draw(&mut self) -> u64 {
        self.draws += 1;
        xxh3_64_with_seed(&self.draws.to_le_bytes(), self.settings.rng_seed)
    }

    /// The request of a job has ended, and its response waits to be read or to be judged. Its turns are given back
    /// now: their delays count from here, and a claim does not outlast a long wait.
    pub fn request_ended(&mut self, now: Instant, job: &FetchJob) {
        if self.slots.fetch_slots.gives_turns_back(job.id) {
            self.hosts[job.host].end_request(now, job, false, &self.ledger, &self.settings.politeness);
        }
    }

    /// A failed job is held back: its host stays busy until the failure counts, while its slot and its address go to
    /// others.
    pub fn is_held_back(&mut self, now: Instant, job: &FetchJob) {
        self.fetch_ended(now, job, false, false);
        let (host, politeness) = (&mut self.hosts[job.host], &self.settings.politeness);
        let delay = host.pace.delay(politeness);
        host.pace.rest_until(now + delay);
        host.release(now, job, false, &self.ledger, politeness);
    }

    /// A fetch of a host ended; tells whether it met a wall, and whether it brought a page.
    fn fetch_ended(&mut self, now: Instant, job: &FetchJob, met_interstitial: bool, is_fine: bool) {
        if self.slots.fetch_slots.gives_turns_back(job.id) {
            self.hosts[job.host].end_request(now, job, met_interstitial, &self.ledger, &self.settings.politeness);
        } else if met_interstitial {
            job.claims.rest_after_interstitial(&self.ledger, now);
        }
        self.slots.fetch_ended(now, &mut self.hosts, job, is_fine, &self.settings);
    }

    /// A job of host `id` has ended: the host looks for its next step, unless it is due to look anyway.
    fn go_on(&mut self, id: HostId, now: Instant) {
        if let Some(at) = self.hosts[id].goes_on_at(self.settings.resolve_lead) {
            self.schedule(id, now, at);
        }
    }

    fn resolved(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome) {
        let host = &mut self.hosts[job.host];
        let needed_at = now.max(host.pace.not_before());
        if let Some(given_up) = host.resolution.ended(now, needed_at, job.both_families, outcome, &self.settings) {
            host.pace.give_up(given_up.failure, given_up.until);
        }
    }

    /// A request has ended: its host, its origin or its kind of URL may have to be left alone.
    fn paused(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome) -> Try {
        let draw = self.draw();
        let (host, politeness) = (&mut self.hosts[job.host], &self.settings.politeness);
        let Meaning { counts, is_complaint, is_rest_of_origin } = host.ended(now, job, outcome, draw, politeness);
        // A restart must not forget the rest of an odd port either.
        if is_rest_of_origin {
            self.notes.note_origin_rests(now, host, &self.settings);
        }
        self.notes.note_long_rest(now, host, &self.settings);
        host.release(now, job, is_complaint, &self.ledger, politeness);
        if matches!(outcome, Outcome::Failed(_)) {
            self.refuse_wanted(now, job.host);
        }
        counts
    }

    /// Others wait for files of an origin that is given up.
    fn refuse_wanted(&mut self, now: Instant, id: HostId) {
        let host = &mut self.hosts[id];
        let dead = |url: &Url| Some((host.dead_until(url, now)?, url.clone()));
        let refused: Vec<_> = host.robots_wanted.iter().filter_map(dead).collect();
        for (until, url) in refused {
            self.hosts[id].robots_wanted.retain(|wanted| *wanted != url);
            self.file_came(now, &url, (RobotsResult::Refused(Failure::RobotsUnreachable), until));
        }
    }

    fn page_fetched(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome, counts: Try) -> End {
        let (host, retries) = (&mut self.hosts[job.host], &self.settings.retries);
        self.order.kinds.note_page(host, job, outcome);
        let class = RetryClass::of(outcome);
        let tries_max = class.map_or(0, |class| retries.max(class));
        // A host that complains about everything would cost each of its URLs all its attempts.
        let is_storm = class == Some(RetryClass::Overload) && tries_max > 0 && host.pace.is_in_storm();
        let uncounted = counts == Try::Uncounted || is_storm;
        let may_be_of_kind = match outcome {
            Outcome::Failed(failure) => failure.is_of_answer() && counts == Try::Counts,
            _ => matches!(class, Some(RetryClass::Overload | RetryClass::Server)) && !is_storm,
        };
        let kind = kind_of(&job.url, job.is_strangers);
        let is_in_vain = may_be_of_kind && host.is_of_broken_kind(now, kind);
        let Some(class) = class.filter(|_| (job.attempt < tries_max || uncounted) && !is_in_vain) else {
            self.queue.ends(job.depth);
            return End::Over;
        };
        let wait = retries.wait(class, job.attempt);
        let rest = host.pace.not_before().since(now);
        // Other URLs of its kind that waited meanwhile go before it: it must not lose all its attempts for the kind.
        let of_kind = host.kind_alone_rests_until(now, kind).map(|at| at.since(now) + BEHIND_ITS_KIND);
        let of_kind = of_kind.unwrap_or_default();
        // A request that we gave up ourselves need not wait for its host to recover.
        let wait = match outcome {
            Outcome::Failed(Failure::Aborted) => rest,
            _ => wait.max(rest).max(of_kind),
        };
        let attempt = if uncounted { job.attempt } else { job.attempt + 1 };
        let ticket = Ticket { number: job.number, depth: job.depth, is_strangers: job.is_strangers };
        let weight = self.order.judge(host, &job.url, ticket).weight();
        let (url, is_examined) = (job.url.clone(), job.is_examined);
        let (level, turn, is_put_off) = (0, QueueTurn::Queue, false);
        let entry = QueuedUrl { url, ticket, attempt, level, turn, weight, is_examined, is_put_off };
        self.queue.change(&mut host.backlog, |backlog| backlog.retry(now + wait, entry));
        End::Again
    }
}

/// The cost of a page that has ended.
fn cost(outcome: &Outcome) -> Cost {
    match outcome {
        Outcome::Fetched(fetched) => {
            Cost { is_page: (200..300).contains(&fetched.status), bytes: fetched.wire_bytes, seconds: 0 }
        }
        _ => Cost::default(),
    }
}

/// A URL is retried this long after the end of its kind's rest.
const BEHIND_ITS_KIND: Duration = Duration::from_millis(1);
