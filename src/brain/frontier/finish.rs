//! How the end of a job moves its host on.
//!
//! Decides: failures that may be temporary are retried, as often and after as long as their class says
//! ([`crate::politeness::Retries`]). A request to an address without a connection does not count as an attempt at the
//! URL while there are other addresses, or may be. [`crate::politeness`] decides what an outcome means for the host's
//! pace, [`super::host_failures`] whose failure it is, and [`super::robots_fetch`] what robots.txt says.

use xxhash_rust::xxh3::xxh3_64;

use super::Frontier;
use super::backlog::QueuedUrl;
use super::host::State;
use super::host_failures::{Blame, is_no_robots_txt, kind_of};
use super::kind_lanes::Turn;
use super::robots_message::RobotsResult;
use super::site_quotas::Cost;
use super::waiting::Ticket;
use crate::job::{FetchJob, HostId, JobKind};
use crate::outcome::Outcome;
use crate::politeness::{Complaint, RetryClass, Try, is_overload};
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_base::{Failure, Truncated};
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
            let met_wall = matches!(outcome, Outcome::Fetched(fetched) if fetched.wall.is_some());
            let is_fine = matches!(outcome, Outcome::Fetched(fetched) if fetched.truncated.is_none());
            self.fetch_ended(now, job, met_wall, is_fine);
        }
        let end = match job.kind {
            JobKind::Resolve => {
                let is_told = match outcome {
                    Outcome::Failed(Failure::Aborted) => None,
                    outcome => Some(!matches!(outcome, Outcome::Failed(_))),
                };
                self.lookups.ended(now, id, is_told);
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
                self.page_ended(id);
                let counts = self.paused(now, job, outcome);
                let end = self.page_fetched(now, job, outcome, counts);
                let host = &self.hosts[id];
                let cost = (end == End::Over).then(|| cost(outcome));
                self.budgets.ended(&host.name, self.budgets.key(&job.url, host.site), cost);
                self.allowances.ended(host.site, cost.is_some_and(|cost| cost.is_page));
                end
            }
        };
        self.note_health(now, job, outcome, end);
        let host = &mut self.hosts[id];
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
            // Before all others: behind a long queue of hosts the answer would expire before each turn.
            self.hosts.set_state(id, State::Ready);
            let site = self.hosts[id].site;
            self.ready.push_answered(site, id, self.places.is_slow(site));
        } else {
            self.go_on(id, now);
        }
        self.trim_rules();
        end
    }

    fn resolved(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome) {
        let host = &mut self.hosts[job.host];
        let needed_at = now.max(host.pace.not_before());
        if let Some(given_up) = host.resolution.ended(now, needed_at, job.both_families, outcome, &self.settings) {
            host.pace.give_up(given_up.failure, given_up.until);
        }
    }

    /// Sets the instant of the next request, and gives up an origin that fails too often in a row.
    fn paused(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome) -> Try {
        let draw = self.draw();
        let (host, politeness) = (&mut self.hosts[job.host], &self.settings.politeness);
        let (mut is_fine, mut is_slow, mut has_complained, mut retry_after) = (false, false, false, None);
        // Others' robots.txt may redirect to anything: the file is judged as a page that strangers link to.
        let is_own_way = || host.origins.iter().any(|origin| origin.waits_for(&job.url));
        let is_strangers_file = job.kind == JobKind::Robots && is_no_robots_txt(&job.url) && !is_own_way();
        let is_page = job.kind == JobKind::Page || is_strangers_file;
        let (class, of) = (RetryClass::of(outcome), kind_of(&job.url, job.is_strangers || is_strangers_file));
        let of_page = Some(of).filter(|_| is_page);
        let is_cut = matches!(outcome, Outcome::Fetched(fetched) if fetched.truncated == Some(Truncated::Time));
        if let Outcome::Fetched(fetched) = outcome {
            has_complained = is_overload(fetched.status) || fetched.wall.is_some();
            retry_after = fetched.retry_after;
            let is_well = !is_cut && !has_complained && class.is_none();
            is_fine = is_well && job.kind == JobKind::Page;
            is_slow = is_well && of.is_strangers && host.is_slow(of, job.took(now));
            host.answered(&job.url, has_complained);
            if is_well && !is_slow {
                // A robots.txt, present or missing, shows that the host is alive: a first failing page is not all it
                // has.
                host.is_well(of, if is_page { fetched.status } else { 200 });
            }
        }
        let complaint = has_complained.then(|| {
            let of_url = xxh3_64(job.url.as_str().as_bytes());
            let is_of_page = host.url_complained(of_url);
            // In a storm attempts at the URL are not counted.
            Complaint { of_url, is_again: is_of_page || job.attempt > 0, is_of_page, draw }
        });
        let blame = has_complained.then(|| host.complains(now, (&job.url, of_page), retry_after, politeness));
        let of_host = match blame {
            Some(Blame::Host) => complaint.map(|complaint| (complaint, retry_after)),
            Some(Blame::LoneOrigin) => complaint.map(|complaint| (complaint, None)),
            Some(Blame::Origin | Blame::Kind) | None => None,
        };
        let fails = match outcome {
            Outcome::Fetched(_) => is_cut && !has_complained || class == Some(RetryClass::Server),
            Outcome::Failed(failure) => failure.is_of_answer(),
            Outcome::Resolved { .. } | Outcome::NoAddress { .. } => false,
        };
        let fails = fails && is_page;
        let is_alone = fails && host.fails_alone(now, job.took(now), (&job.url, of), politeness);
        // One page that hangs, or never ends, says nothing about the host's speed.
        let is_of_kind = is_alone || blame == Some(Blame::Kind);
        let took = if is_of_kind { host.pace.took() } else { job.took(now) };
        host.pace.ended(job.ended(now), took, (outcome, is_fine), of_host, politeness);
        if fails || is_slow || is_page && matches!(blame, Some(Blame::Host | Blame::Kind)) {
            host.doubt(now, of, job.took(now), is_of_kind);
        }
        let counts = match outcome {
            Outcome::Fetched(fetched) => {
                if let Some(addr) = fetched.addr {
                    host.resolution.answered(addr, job.addr);
                }
                Try::Counts
            }
            Outcome::Failed(Failure::Aborted) => Try::Uncounted,
            Outcome::Failed(Failure::ProxyFailed | Failure::ProxyUnreachable) => Try::Counts,
            Outcome::Failed(_) if is_alone => Try::Counts,
            Outcome::Failed(failure) => host.failed(now, (job.began, took, job.addr), &job.url, *failure, politeness),
            Outcome::Resolved { .. } | Outcome::NoAddress { .. } => Try::Counts,
        };
        if host.origins.len() > 1 {
            // It is now clearer which of them speaks for the host.
            host.obey_crawl_delay(politeness);
            host.obey_own_delay(now, &job.url, politeness);
        }
        // A restart must not forget the rest of an odd port either.
        if matches!(blame, Some(Blame::Origin | Blame::LoneOrigin)) && retry_after.is_some() {
            self.note_origin_rests(now, job.host);
        }
        if self.rests_long(job.host, now) {
            self.note_rest(job.host, now);
        }
        self.release_host(now, job, of_host.is_some());
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
        self.note_page(job, outcome);
        let retries = &self.settings.retries;
        let class = RetryClass::of(outcome);
        let tries_max = class.map_or(0, |class| retries.max(class));
        // A host that complains about everything would cost each of its URLs all its attempts.
        let is_storm = class == Some(RetryClass::Overload) && tries_max > 0 && self.hosts[job.host].pace.is_in_storm();
        let uncounted = counts == Try::Uncounted || is_storm;
        let may_be_of_kind = match outcome {
            Outcome::Failed(failure) => failure.is_of_answer() && counts == Try::Counts,
            _ => matches!(class, Some(RetryClass::Overload | RetryClass::Server)) && !is_storm,
        };
        let is_in_vain =
            may_be_of_kind && self.hosts[job.host].is_of_broken_kind(now, kind_of(&job.url, job.is_strangers));
        let Some(class) = class.filter(|_| (job.attempt < tries_max || uncounted) && !is_in_vain) else {
            self.queued -= 1;
            self.is_over(job.depth);
            return End::Over;
        };
        let wait = retries.wait(class, job.attempt);
        let host = &mut self.hosts[job.host];
        let rest = host.pace.not_before().since(now);
        // Other URLs of its kind that waited meanwhile go before it: it must not lose all its attempts for the kind.
        let of_kind = host
            .kind_alone_rests_until(now, kind_of(&job.url, job.is_strangers))
            .map(|at| at.since(now) + BEHIND_ITS_KIND);
        let of_kind = of_kind.unwrap_or_default();
        // A request that we gave up ourselves need not wait for its host to recover.
        let wait = match outcome {
            Outcome::Failed(Failure::Aborted) => rest,
            _ => wait.max(rest).max(of_kind),
        };
        let attempt = if uncounted { job.attempt } else { job.attempt + 1 };
        let ticket = Ticket { number: job.number, depth: job.depth, is_strangers: job.is_strangers };
        let weight = self.judge(job.host, &job.url, ticket).weight();
        let (url, is_examined) = (job.url.clone(), job.is_examined);
        let (level, turn, is_put_off) = (0, Turn::Queue, false);
        let entry = QueuedUrl { url, ticket, attempt, level, turn, weight, is_examined, is_put_off };
        let host = &mut self.hosts[job.host];
        let before = host.backlog.ram_bytes();
        host.backlog.retry(now + wait, entry);
        self.memory.changed(before, host.backlog.ram_bytes());
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
