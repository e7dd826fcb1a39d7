//! The health of hosts, for people: the effective delay, response times, and the last problem.
//!
//! Decides: the last problem of a host's name and of each of its origins is kept until the same operation succeeds.
//! The health goes into the log with the host's rest: when a problem appears, changes or ends, when the effective
//! delay changes, and after 4, 16, 64, … responses. Problems of one kind with pages are noted once in
//! [`PAGE_NOTES_EVERY`], other delays in [`DELAY_NOTES_EVERY`].
//! Invariants: no decision depends on it.
//! Limits: 48 bytes a host and eight an origin; the problems take more.
//! Leaves to others: the wording ([`crate::trouble`]).

use super::Frontier;
use super::finish::End;
use super::host::Host;
use crate::job::{FetchJob, HostId, JobKind};
use crate::outcome::Outcome;
use crate::politeness::RetryClass;
use crate::trouble::{Cause, HostHealth, Trouble};
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_config::Politeness;

/// The counters of a host.
#[derive(Debug, Default)]
pub struct Vitals {
    /// The problem with its name.
    name: Option<Box<Trouble>>,
    /// The log of an earlier run records a problem.
    pub has_old_trouble: bool,
    responses: u32,
    /// Their total time.
    took_millis: u32,
    /// The effective delay as last noted; 0: as configured.
    noted_millis: u32,
    /// When another delay was noted.
    noted: Instant,
    /// The longest Crawl-delay as last noted.
    pub noted_crawl_delay: Duration,
}

impl Vitals {
    /// A response took this long; returns whether it is time to report that.
    fn took(&mut self, took: Duration) -> bool {
        if self.took_millis > u32::MAX / 2 {
            (self.responses, self.took_millis) = (self.responses / 2, self.took_millis / 2);
        }
        self.responses += 1;
        self.took_millis = self.took_millis.saturating_add(millis(took).min(TOOK_MILLIS_MAX));
        self.responses >= 4 && self.responses.is_power_of_two() && self.responses.trailing_zeros().is_multiple_of(2)
    }

    /// Whether the effective delay is twice or half the noted one, and differs by at least a second: response times
    /// of a busy machine vary. `usual` is the configured delay.
    fn has_other_delay(&self, delay: Duration, usual: Duration) -> bool {
        let now = millis(delay);
        let noted = if self.noted_millis > 0 { self.noted_millis } else { millis(usual) };
        let (least, most) = (now.min(noted), now.max(noted));
        most - least > least.max(NOTED_MILLIS_MIN)
    }
}

impl Host {
    fn trouble_mut(&mut self, job: &FetchJob) -> Option<&mut Option<Box<Trouble>>> {
        if job.kind == JobKind::Resolve {
            return Some(&mut self.vitals.name);
        }
        self.origins.iter_mut().find(|origin| origin.is_of(&job.url)).map(|origin| &mut origin.trouble)
    }

    /// The last problem.
    fn latest_trouble(&self) -> Option<&Trouble> {
        let of_origins = self.origins.iter().filter_map(|origin| origin.trouble.as_deref());
        self.vitals.name.as_deref().into_iter().chain(of_origins).max_by_key(|trouble| trouble.seconds)
    }

    fn delay_in_force(&self, politeness: &Politeness) -> Duration {
        self.pace.delay(politeness)
    }
}

/// What the end of a job says about a host's problem.
enum Sign {
    /// There is none any more.
    Well,
    /// This one.
    Ill(Trouble),
    /// Nothing.
    None,
}

impl Frontier {
    /// The health of a host.
    pub(super) fn health(&mut self, id: HostId) -> HostHealth {
        let host = &mut self.hosts[id];
        let (responses, took) = (u64::from(host.vitals.responses), u64::from(host.vitals.took_millis));
        let mean = took.checked_div(responses).unwrap_or_default().max(u64::from(responses > 0));
        let troubles = host.vitals.name.iter().chain(host.origins.iter().filter_map(|origin| origin.trouble.as_ref()));
        let troubles = troubles.map(|trouble| Trouble::clone(trouble)).collect();
        // Of one that was never asked only that much is known which may be on its way.
        let delay = if responses > 0 { host.delay_in_force(&self.settings.politeness) } else { Duration::ZERO };
        host.vitals.noted_millis = millis(delay);
        HostHealth { delay, response: Duration::from_millis(mean), troubles }
    }

    /// The last problem of a host that has not recovered since, with its name.
    pub fn trouble(&mut self) -> Option<(&str, &Trouble)> {
        while let Some(id) = self.troubled.last().copied() {
            if self.hosts.get_mut(id).is_some_and(|host| host.latest_trouble().is_some()) {
                break;
            }
            self.troubled.pop();
        }
        let host = &self.hosts[*self.troubled.last()?];
        host.latest_trouble().map(|trouble| (&*host.name, trouble))
    }

    /// A job has ended, and its host's state reflects that already.
    pub(super) fn note_health(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome, end: End) {
        let sign = self.sign(now, job, outcome, end);
        let host = &mut self.hosts[job.host];
        let mut is_news = false;
        if let (Outcome::Fetched(_), true) = (outcome, job.kind != JobKind::Resolve) {
            is_news = host.vitals.took(job.took(now));
            let politeness = &self.settings.politeness;
            let (delay, usual) = (host.delay_in_force(politeness), host.pace.agreed_delay(politeness));
            // Response times of servers vary.
            let may_note = host.vitals.noted == Instant::ZERO || now >= host.vitals.noted + DELAY_NOTES_EVERY;
            if may_note && host.vitals.has_other_delay(delay, usual) {
                (host.vitals.noted, is_news) = (now, true);
            }
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
            self.note_rest(job.host, now);
        }
    }

    /// An origin has learned the content of the file that its robots.txt leads to, which may be nothing.
    pub(super) fn note_way(&mut self, now: Instant, id: HostId, index: usize) {
        let seconds = self.settings.clock.seconds(now);
        let tries_max = self.settings.robots.retries_max.saturating_add(1);
        let Some(origin) = self.hosts[id].origins.get_mut(index) else { return };
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
        self.note_rest(id, now);
    }

    fn is_in_trouble(&mut self, id: HostId) {
        if self.troubled.last() != Some(&id) {
            if self.troubled.len() >= TROUBLED_MAX {
                self.troubled.remove(0);
            }
            self.troubled.push(id);
        }
    }

    fn sign(&self, now: Instant, job: &FetchJob, outcome: &Outcome, end: End) -> Sign {
        let (host, settings) = (&self.hosts[job.host], &self.settings);
        let origin = host.origins.iter().find(|origin| origin.is_of(&job.url));
        let mut detail = job.told.clone().unwrap_or_default();
        let cause = match outcome {
            Outcome::Failed(Failure::Aborted) => return Sign::None,
            Outcome::Failed(failure) => Cause::Failure(*failure),
            Outcome::Resolved { .. } => return Sign::Well,
            // Its URLs end with that failure.
            Outcome::NoAddress { .. } => return Sign::None,
            Outcome::Fetched(fetched) => {
                if let Some(wall) = fetched.wall {
                    detail = format!("a wall: {}", wall.as_str()).into();
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
                        Cause::Failure(_) => self.ill(now, job, cause, detail, (1, 1, None)),
                    };
                };
                let tries_max = settings.retries.max(class).saturating_add(1);
                let next = host.backlog.retries_at(job.number).filter(|_| end == End::Again);
                let again = next.map(|at| at.max(host.pace.not_before()));
                (job.attempt.saturating_add(1).min(tries_max), tries_max, again)
            }
        };
        self.ill(now, job, cause, detail, (tries, tries_max, again))
    }

    fn ill(
        &self,
        now: Instant,
        job: &FetchJob,
        cause: Cause,
        detail: Box<str>,
        (tries, tries_max, again): (u8, u8, Option<Instant>),
    ) -> Sign {
        let host = &self.hosts[job.host];
        // All its URLs end.
        let is_over = host.pace.given_up().is_some() || host.dead_until(&job.url, now).is_some();
        let origin = (job.kind != JobKind::Resolve).then(|| (job.url.scheme(), job.url.port()));
        let again = again.filter(|_| !is_over).map(|at| at.since(now).as_millis().div_ceil(1_000) as u64);
        let seconds = self.settings.clock.seconds(now);
        Sign::Ill(Trouble { asked: job.kind, origin, cause, detail, tries, tries_max, seconds, again })
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

/// Upper bound on one response's share of the mean.
const TOOK_MILLIS_MAX: u32 = 600_000;
/// A delay that differs by less is not noted.
const NOTED_MILLIS_MIN: u32 = 1_000;
/// Seconds.
const PAGE_NOTES_EVERY: u64 = 60;
const DELAY_NOTES_EVERY: Duration = Duration::from_secs(60);
/// Hosts with problems that are remembered, to show the latest.
const TROUBLED_MAX: usize = 64;
/// Bytes of the URL that a robots.txt leads to.
const TARGET_SHOWN_MAX: usize = 120;
