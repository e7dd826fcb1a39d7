//! The health of hosts, for people: the effective delay, response times, and the last problem.
//!
//! Decides: the last problem of a host's name and of each of its origins is kept until the same operation succeeds.
//! The health goes into the log with the host's rest: when a problem appears, changes or ends, when the effective
//! delay changes, and after 4, 16, 64, … responses. Problems of one kind with pages are noted once in
//! [`PAGE_NOTES_EVERY`], other delays less often ([`super::vitals`]).
//! Invariants: no decision depends on it.
//! Limits: 48 bytes a host and eight an origin; the problems take more.
//! Leaves to others: the wording ([`crate::trouble`]).

use super::host::Host;
use super::rests::{Rest, Rests};
use super::table::HostTable;
use crate::frontier::settings::Settings;
use crate::job::{FetchJob, HostId, JobKind};
use crate::outcome::Outcome;
use crate::politeness::RetryClass;
use crate::trouble::{Cause, Trouble};
use ringcrawl_base::Failure;
use ringcrawl_base::time::Instant;

/// What the end of a job says about a host's problem.
enum Sign {
    /// There is none any more.
    Well,
    /// This one.
    Ill(Trouble),
    /// Nothing.
    None,
}

/// Notes on hosts: for the log, and the latest problems.
#[derive(Debug, Default)]
pub struct HostNotes {
    rests: Vec<Rest>,
    /// Hosts with recent problems, the latest last.
    troubled: Vec<HostId>,
}

impl HostNotes {
    /// Takes the notes for the log.
    pub fn take_rests(&mut self) -> std::vec::Drain<'_, Rest> {
        self.rests.drain(..)
    }

    /// Notes how a host does, and how long it rests if that is longer than usual, as another run keeps the usual
    /// delay anyway. The operator's hours are not noted: another run may have others.
    pub fn note_rest(&mut self, now: Instant, host: &mut Host, settings: &Settings) {
        let usual = now + host.pace.usual_delay(&settings.politeness);
        let of_origins = if settings.shares_hosts { host.origins_asked_until() } else { Instant::ZERO };
        let asked_until = host.pace.asked_until().max(of_origins);
        let until = Some(asked_until).filter(|until| *until > usual).unwrap_or(Instant::ZERO);
        let health = host.health(&settings.politeness);
        let crawl_delay = host.longest_crawl_delay(&settings.politeness);
        self.rests.push(Rest { host: host.name.clone(), crawl_delay, until, health });
    }

    /// The same if it rests long.
    pub fn note_long_rest(&mut self, now: Instant, host: &mut Host, settings: &Settings) {
        if host.rests_long(now, &settings.politeness) {
            self.note_rest(now, host, settings);
        }
    }

    /// Notes the rests of odd ports that have rests of their own. If hosts are on several shards, these do not know
    /// its origins in the next run, and keep the rest for the whole host.
    pub fn note_origin_rests(&mut self, now: Instant, host: &mut Host, settings: &Settings) {
        if settings.shares_hosts {
            return self.note_rest(now, host, settings);
        }
        for origin in host.origins.iter().filter(|origin| origin.is_odd() && origin.streak.asked_until() > now) {
            let root = origin.robots_url(&host.name).and_then(|url| url.join("/").ok());
            self.rests.extend(root.map(|root| Rest::new(root.as_str(), origin.streak.asked_until())));
        }
    }

    /// The wall clock was set: notes the rests of an earlier run whose hosts have not appeared.
    pub fn note_unmet(&mut self, now: Instant, rests: &Rests) {
        let mut unmet: Vec<Rest> = rests.all(now).map(|(host, until)| Rest::new(host, until)).collect();
        // One seed gives one crawl, down to the order of the notes.
        unmet.sort_unstable_by(|one, other| one.host.cmp(&other.host));
        self.rests.append(&mut unmet);
    }

    /// The wall clock was set: notes the rest of a host that has appeared.
    pub fn note_again(&mut self, now: Instant, host: &mut Host, settings: &Settings) {
        if !host.pace.crawl_delay().is_zero() || host.rests_long(now, &settings.politeness) {
            self.note_rest(now, host, settings);
        }
        if !settings.shares_hosts {
            self.note_origin_rests(now, host, settings);
        }
    }

    /// The last problem of a host that has not recovered since, with its name.
    pub fn trouble<'a>(&mut self, hosts: &'a HostTable) -> Option<(&'a str, &'a Trouble)> {
        while let Some(id) = self.troubled.last() {
            let host = &hosts[*id];
            if let Some(trouble) = host.latest_trouble() {
                return Some((&host.name, trouble));
            }
            self.troubled.pop();
        }
        None
    }

    /// A job has ended, and its host's state reflects that already. `is_again` tells whether its URL is retried.
    pub fn note_health(
        &mut self,
        now: Instant,
        host: &mut Host,
        job: &FetchJob,
        outcome: &Outcome,
        is_again: bool,
        settings: &Settings,
    ) {
        let sign = sign(now, host, job, outcome, is_again, settings);
        let mut is_news = false;
        if let (Outcome::Fetched(_), true) = (outcome, job.kind != JobKind::Resolve) {
            is_news = host.vitals.took(job.took(now));
            let politeness = &settings.politeness;
            let (delay, usual) = (host.pace.delay(politeness), host.pace.agreed_delay(politeness));
            is_news |= host.vitals.notes_delay(now, delay, usual);
        }
        match sign {
            Sign::None => {}
            Sign::Well => {
                let had = host.trouble_mut(job).and_then(Option::take).is_some();
                let is_known_well = job.kind != JobKind::Resolve;
                is_news |= had || is_known_well && std::mem::take(&mut host.vitals.has_old_trouble);
            }
            Sign::Ill(trouble) => {
                let Some(place) = host.trouble_mut(job) else { return };
                is_news |= place.as_ref().is_none_or(|before| {
                    job.kind != JobKind::Page
                        || before.cause != trouble.cause
                        || before.seconds + PAGE_NOTES_EVERY <= trouble.seconds
                });
                if is_news {
                    *place = Some(Box::new(trouble));
                    self.is_in_trouble(job.host);
                }
            }
        }
        if is_news {
            self.note_rest(now, host, settings);
        }
    }

    /// An origin of host `id` has learned the content of the file that its robots.txt leads to, which may be nothing.
    pub fn note_way(&mut self, now: Instant, (id, host): (HostId, &mut Host), index: usize, settings: &Settings) {
        let seconds = settings.clock.seconds(now);
        let tries_max = settings.robots.retries_max.saturating_add(1);
        let Some(origin) = host.origins.get_mut(index) else { return };
        let Some((again, tries, Some(target))) = origin.without_robots() else { return };
        let url = target.as_str();
        let trouble = Trouble {
            asked: JobKind::Robots,
            origin: Some(origin.place()),
            cause: Cause::Failure(Failure::RobotsUnreachable),
            detail: format!("it redirects to {}", url.get(..TARGET_SHOWN_MAX).unwrap_or(url)).into(),
            tries,
            tries_max,
            seconds,
            again: again.map(|at| at.since(now).as_secs()),
        };
        origin.trouble = Some(Box::new(trouble));
        self.is_in_trouble(id);
        self.note_rest(now, host, settings);
    }

    fn is_in_trouble(&mut self, id: HostId) {
        if self.troubled.last() != Some(&id) {
            if self.troubled.len() >= TROUBLED_MAX {
                self.troubled.remove(0);
            }
            self.troubled.push(id);
        }
    }
}

/// What the end of a job says about the problem of its host.
fn sign(now: Instant, host: &Host, job: &FetchJob, outcome: &Outcome, is_again: bool, settings: &Settings) -> Sign {
    let origin = host.origins.iter().find(|origin| origin.is_of(&job.url));
    let mut detail = job.told.clone().unwrap_or_default();
    let cause = match outcome {
        Outcome::Failed(Failure::Aborted) => return Sign::None,
        Outcome::Failed(failure) => Cause::Failure(*failure),
        Outcome::Resolved { .. } => return Sign::Well,
        // Its URLs end with that failure.
        Outcome::NoAddress { .. } => return Sign::None,
        Outcome::Fetched(fetched) => {
            if let Some(interstitial) = fetched.interstitial {
                detail = format!("a wall: {}", interstitial.as_str()).into();
            } else if let (JobKind::Robots, 200..=299) = (job.kind, fetched.status) {
                detail = "cut off before its end".into();
            }
            Cause::Status(fetched.status)
        }
    };
    let (tries, tries_max, again) = match job.kind {
        JobKind::Resolve => {
            let again = host.resolution.retry_at();
            if again.is_none() && host.pace.given_up().is_none() {
                // An old address serves.
                return Sign::None;
            }
            let attempts = host.resolution.attempts();
            let tries = if again.is_some() { attempts } else { attempts.saturating_add(1) };
            (tries, settings.retries.max(RetryClass::Name).saturating_add(1), again)
        }
        JobKind::Robots => {
            let own = origin.filter(|origin| origin.robots_url(&host.name).as_ref() == Some(&job.url));
            match own.and_then(|own| own.without_robots()) {
                Some((again, tries, _)) => (tries, settings.robots.retries_max.saturating_add(1), again),
                None if own.is_some() && matches!(outcome, Outcome::Fetched(_)) => return Sign::Well,
                None => return Sign::None,
            }
        }
        JobKind::Page => {
            let Some(class) = RetryClass::of(outcome) else {
                return match cause {
                    Cause::Status(_) => Sign::Well,
                    Cause::Failure(_) => ill(now, host, job, (cause, detail), settings, (1, 1, None)),
                };
            };
            let tries_max = settings.retries.max(class).saturating_add(1);
            let next = host.backlog.retries_at(job.number).filter(|_| is_again);
            let again = next.map(|at| at.max(host.pace.not_before()));
            (job.attempt.saturating_add(1).min(tries_max), tries_max, again)
        }
    };
    ill(now, host, job, (cause, detail), settings, (tries, tries_max, again))
}

fn ill(
    now: Instant,
    host: &Host,
    job: &FetchJob,
    (cause, detail): (Cause, Box<str>),
    settings: &Settings,
    (tries, tries_max, again): (u8, u8, Option<Instant>),
) -> Sign {
    // All its URLs end.
    let is_over = host.pace.given_up().is_some() || host.dead_until(&job.url, now).is_some();
    let origin = (job.kind != JobKind::Resolve).then(|| (job.url.scheme(), job.url.port()));
    let again = again.filter(|_| !is_over).map(|at| at.since(now).as_millis().div_ceil(1_000) as u64);
    let seconds = settings.clock.seconds(now);
    Sign::Ill(Trouble { asked: job.kind, origin, cause, detail, tries, tries_max, seconds, again })
}

/// Seconds.
const PAGE_NOTES_EVERY: u64 = 60;
/// Hosts with problems that are remembered, to show the latest.
const TROUBLED_MAX: usize = 64;
/// Bytes of the URL that a robots.txt leads to.
const TARGET_SHOWN_MAX: usize = 120;
