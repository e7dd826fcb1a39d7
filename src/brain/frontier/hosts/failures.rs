//! Failures of a host: to which of its origins they belong, and what they hold up.
//!
//! Decides: failures in a row belong to an origin, and an origin that is given up ends only its own URLs. Anyone may
//! link to closed ports of a host. So while one of its origins works, origins whose last request failed, and odd
//! ports that never answered, are *doubtful*: together they get a tenth of the host's time while URLs wait in its
//! queue. An odd port that never answered gets [`ODD_FAILURES_MAX`] attempts, and its failures say nothing about the
//! host's addresses.
//! A kind of URLs that gets no answers while others do fails alone ([`crate::politeness::KindRest`]): anyone may link
//! to a script that resets connections.
//! 429 and 503 count as the host's complaint, except from an odd port that names a time or is next to an origin with
//! more good answers, or from a kind of URLs that complains alone (`KindRest`): then only that origin or kind rests,
//! and the host continues.
//! Invariants: an origin that answered its last request is not held up by the others.
//! Limits: the rest of a kind is forgotten with its host, and at the end of a run.
//! Leaves to others: rests that a server asks for, and delays, which are the host's ([`crate::politeness`]).

use std::net::IpAddr;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::addresses::NextAddress;
use super::failure_history::Remembered;
use super::host::Host;
use super::origin::{Origin, RobotsVerdict};
use crate::frontier::settings::Settings;
use crate::job::{FetchJob, JobKind};
use crate::kinds::Tokens;
use crate::outcome::Outcome;
use crate::politeness::{Complaint, FailureStreak, HostPace, KindOfUrl, RetryClass, Try, is_overload};
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_config::Politeness;
use ringcrawl_robots::Fuel;
use ringcrawl_url::Url;

/// The source of a complaint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The host.
    Host,
    /// An odd port that names a time for which to leave it alone. It is the only one known to work, so the host backs
    /// off as well, but no longer than after a complaint that names no time: anyone may have linked there first.
    LoneOrigin,
    /// Only an odd port.
    Origin,
    /// Only a kind of URLs.
    Kind,
}

/// What the end of a request means for its host.
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    /// Whether it counts as an attempt.
    pub counts: Try,
    /// The host complained, and not an origin or a kind of it alone.
    pub is_complaint: bool,
    /// An origin named the time of its own rest.
    pub is_rest_of_origin: bool,
}

impl Host {
    /// A request has ended: sets the instant of the next one, and gives up an origin that fails too often in a row.
    /// `draw` is a random number.
    pub fn ended(
        &mut self,
        now: Instant,
        job: &FetchJob,
        outcome: &Outcome,
        draw: u64,
        politeness: &Politeness,
    ) -> Meaning {
        let (mut is_fine, mut is_slow, mut has_complained, mut retry_after) = (false, false, false, None);
        // Others' robots.txt may redirect to anything: the file is judged as a page that strangers link to.
        let is_own_way = || self.origins.iter().any(|origin| origin.waits_for(&job.url));
        let is_strangers_file = job.kind == JobKind::Robots && is_no_robots_txt(&job.url) && !is_own_way();
        let is_page = job.kind == JobKind::Page || is_strangers_file;
        let (class, of) = (RetryClass::of(outcome), kind_of(&job.url, job.is_strangers || is_strangers_file));
        let of_page = Some(of).filter(|_| is_page);
        let is_cut = matches!(outcome, Outcome::Fetched(fetched) if fetched.truncated == Some(Truncated::Time));
        if let Outcome::Fetched(fetched) = outcome {
            has_complained = is_overload(fetched.status) || fetched.interstitial.is_some();
            retry_after = fetched.retry_after;
            let is_well = !is_cut && !has_complained && class.is_none();
            is_fine = is_well && job.kind == JobKind::Page;
            is_slow = is_well && of.is_strangers && self.is_slow(of, job.took(now));
            self.answered(&job.url, has_complained);
            if is_well && !is_slow {
                // A robots.txt, present or missing, shows that the host is alive: a first failing page is not all it
                // has.
                self.is_well(of, if is_page { fetched.status } else { 200 });
            }
        }
        let complaint = has_complained.then(|| {
            let of_url = xxh3_64(job.url.as_str().as_bytes());
            let is_of_page = self.url_complained(of_url);
            // In a storm attempts at the URL are not counted.
            Complaint { of_url, is_again: is_of_page || job.attempt > 0, is_of_page, draw }
        });
        let blame = has_complained.then(|| self.complains(now, (&job.url, of_page), retry_after, politeness));
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
        let is_alone = fails && self.fails_alone(now, job.took(now), (&job.url, of), politeness);
        // One page that hangs, or never ends, says nothing about the host's speed.
        let is_of_kind = is_alone || blame == Some(Blame::Kind);
        let took = if is_of_kind { self.pace.took() } else { job.took(now) };
        self.pace.ended(job.ended(now), took, (outcome, is_fine), of_host, politeness);
        if fails || is_slow || is_page && matches!(blame, Some(Blame::Host | Blame::Kind)) {
            self.doubt(now, of, job.took(now), is_of_kind);
        }
        let counts = match outcome {
            Outcome::Fetched(fetched) => {
                if let Some(addr) = fetched.addr {
                    self.resolution.answered(addr, job.addr);
                }
                Try::Counts
            }
            Outcome::Failed(Failure::Aborted) => Try::Uncounted,
            Outcome::Failed(Failure::ProxyFailed | Failure::ProxyUnreachable) => Try::Counts,
            Outcome::Failed(_) if is_alone => Try::Counts,
            Outcome::Failed(failure) => self.failed(now, (job.began, took, job.addr), &job.url, *failure, politeness),
            Outcome::Resolved { .. } | Outcome::NoAddress { .. } => Try::Counts,
        };
        if self.origins.len() > 1 {
            // It is now clearer which of them speaks for the host.
            self.obey_crawl_delay(politeness);
            self.obey_own_delay(now, &job.url, politeness);
        }
        let is_rest_of_origin = matches!(blame, Some(Blame::Origin | Blame::LoneOrigin)) && retry_after.is_some();
        Meaning { counts, is_complaint: of_host.is_some(), is_rest_of_origin }
    }

    /// A request to `url` was answered; `has_complained` tells whether with a complaint.
    pub fn answered(&mut self, url: &Url, has_complained: bool) {
        if let Some(origin) = self.origins.iter_mut().find(|origin| origin.is_of(url)) {
            origin.answered(has_complained);
        }
    }

    /// A page of this kind had a good answer, with this status. Anyone may link to a missing page, which says nothing
    /// about a kind.
    pub fn is_well(&mut self, of: KindOfUrl, status: u16) {
        let exists = status < 400 || !of.is_strangers;
        if exists {
            self.fine_kinds.note(of);
        }
        self.kind_rest.iter_mut().for_each(|rest| rest.is_fine(exists.then_some(of.kind)));
    }

    /// Whether a page of a kind that never had a good answer `took` so much longer than the host's last response that
    /// anyone could hold the host up with links to it, as its delay grows with that time.
    pub fn is_slow(&self, of: KindOfUrl, took: Duration) -> bool {
        took >= SLOW_MIN && took >= self.pace.took() * SLOW_FACTOR && !self.fine_kinds.has(of.kind)
    }

    /// `url`, of this hash, was answered with 429 or 503; returns whether that happened before, as far as known.
    pub fn url_complained(&mut self, hash: u64) -> bool {
        self.kind_rest.get_or_insert_default().url_complained(hash as u32 | 1)
    }

    /// `url` was answered with 429 or 503: returns the source of that complaint. An origin or a kind of URLs that
    /// complains alone rests alone; a robots.txt is of no kind.
    pub fn complains(
        &mut self,
        now: Instant,
        (url, of): (&Url, Option<KindOfUrl>),
        retry_after: Option<Duration>,
        politeness: &Politeness,
    ) -> Blame {
        let index = self.origins.iter().position(|origin| origin.is_of(url));
        let is_aside = |origin: &Origin| {
            let others = || self.origins.iter().any(|other| origin.is_beside(other));
            origin.is_odd() && (retry_after.is_some() || others())
        };
        if let Some(index) = index.filter(|index| is_aside(&self.origins[*index])) {
            let rest = retry_after.unwrap_or(politeness.retry_delay).min(politeness.retry_after_max);
            self.origins[index].streak.rest_until(now + rest);
            return if self.has_another_that_works(index) { Blame::Origin } else { Blame::LoneOrigin };
        }
        match of.filter(|_| retry_after.is_none()).is_some_and(|of| self.fails_aside(now, of, None, politeness)) {
            true => Blame::Kind,
            false => Blame::Host,
        }
    }

    /// A request to a page of this kind failed after reaching its server; returns whether only that kind of URLs
    /// fails, and rests alone.
    fn fails_alone(
        &mut self,
        now: Instant,
        took: Duration,
        (url, of): (&Url, KindOfUrl),
        politeness: &Politeness,
    ) -> bool {
        let is_stranger = self.origin_of(url).is_none_or(|index| self.origins[index].is_stranger());
        // If nothing else waits, nothing is held up.
        let took = if self.backlog.has_queued() { took.min(KIND_TOOK_MAX) } else { Duration::ZERO };
        !self.fine_kinds.is_empty() && !is_stranger && self.fails_aside(now, of, Some(took), politeness)
    }

    /// Nothing else waits, or not nearby: kinds in doubt are requested now. Returns whether any URLs were put off for
    /// that.
    pub fn end_doubt(&mut self, now: Instant) -> bool {
        let ended = self.kind_rest.as_mut().and_then(|rest| rest.end_doubt(now));
        ended.inspect(|until| self.backlog.put_off_no_longer(*until)).is_some()
    }

    /// A URL of this kind complained, or `failed` after this time; returns whether only its kind does, and rests
    /// alone.
    fn fails_aside(&mut self, now: Instant, of: KindOfUrl, failed: Option<Duration>, politeness: &Politeness) -> bool {
        let rest = self.kind_rest.get_or_insert_default();
        rest.complained(now, (of.kind, &self.fine_kinds), failed, politeness)
    }

    /// Whether another attempt at a URL of this kind is in vain.
    pub fn is_of_broken_kind(&self, now: Instant, of: KindOfUrl) -> bool {
        self.kind_rest.as_ref().is_some_and(|rest| rest.is_broken(now, of, &self.fine_kinds))
    }

    /// Whether URLs of this kind end without a request.
    pub fn is_of_kind_given_up(&self, now: Instant, of: KindOfUrl) -> bool {
        self.kind_rest.as_ref().is_some_and(|rest| rest.is_given_up(now, of.kind))
    }

    /// Until when URLs of this kind rest, if they do.
    pub fn kind_rests_until(&self, now: Instant, of: KindOfUrl) -> Option<Instant> {
        self.kind_rest.as_ref()?.rests_until(now, of, &self.fine_kinds)
    }

    /// The same, but only for the kind's own complaint, not for doubt.
    pub fn kind_alone_rests_until(&self, now: Instant, of: KindOfUrl) -> Option<Instant> {
        self.kind_rest.as_ref()?.alone_until(now, of.kind)
    }

    /// The response to a URL of this kind cost this much time, and the host's rest: similar URLs are in doubt, unless
    /// that was their kind's own.
    pub fn doubt(&mut self, now: Instant, of: KindOfUrl, took: Duration, is_own: bool) {
        if is_own && self.fine_kinds.has(of.kind) || self.fine_kinds.is_empty() {
            return;
        }
        let rests_until = self.pace.not_before().max(now);
        let cost = took + rests_until.since(now);
        self.kind_rest.get_or_insert_default().doubt(rests_until, of, &self.fine_kinds, cost);
    }

    /// A request to `url` failed that began at `began`, `took` this long and `asked` this address first, and not
    /// because of a proxy or ourselves. Returns whether it counts.
    pub fn failed(
        &mut self,
        now: Instant,
        (began, took, asked): (Instant, Duration, Option<IpAddr>),
        url: &Url,
        failure: Failure,
        politeness: &Politeness,
    ) -> Try {
        let origin = self.origin_of(url);
        let works = self.works();
        let is_stranger = origin.is_none_or(|index| self.origins[index].is_stranger()) && works;
        let left = if is_stranger { NextAddress::None } else { self.resolution.failed(failure, asked) };
        let Some(index) = origin else { return Try::Counts };
        // The other family is part of the same attempt: a host with nothing else to do may be forgotten before the
        // next one, and with it which address is dead.
        let has_another_address = left != NextAddress::None;
        let failures_max = self.failures_max(index, politeness);
        let counts = self.origins[index].streak.failed(now, began, has_another_address, failures_max, politeness);
        // The origin that worked until now may be this one.
        if self.works() {
            let took = took.min(TOOK_MAX);
            self.doubtful_rest = now + (took * DOUBTFUL_REST_FACTOR).max(politeness.retry_delay);
        }
        if self.origins[index].streak.dead_until().is_some() {
            let (backlog, origin) = (&mut self.backlog, &self.origins[index]);
            backlog.retry_those(now, |url| origin.is_of(url));
        }
        counts
    }

    /// The verdict on `url`, of the origin `index`.
    pub fn verdict(
        &mut self,
        index: usize,
        url: &Url,
        now: Instant,
        settings: &Settings,
        fuel: &mut Fuel,
    ) -> RobotsVerdict {
        let failures_max = self.failures_max(index, &settings.politeness);
        let origin = &mut self.origins[index];
        match origin.streak.dead_until() {
            Some(until) if until > now => return RobotsVerdict::Settle(Failure::HostDead),
            Some(_) => {
                origin.forget();
                origin.streak.forgive(failures_max);
            }
            None => {}
        }
        let verdict = origin.verdict(url, now, settings, fuel);
        let rests_until = self.rests_until(index);
        match verdict {
            RobotsVerdict::Settle(_) | RobotsVerdict::Ask => verdict,
            RobotsVerdict::Wait(at) => RobotsVerdict::Wait(at.max(rests_until)),
            RobotsVerdict::Fetch | RobotsVerdict::Allowed if rests_until > now => RobotsVerdict::Wait(rests_until),
            RobotsVerdict::Fetch | RobotsVerdict::Allowed => verdict,
        }
    }

    /// Until when nothing of the origin `index` can be fetched or ended; `None` if something can.
    pub fn waits_until(&self, index: usize, now: Instant) -> Option<Instant> {
        let origin = self.origins.get(index)?;
        // All URLs of a given-up host can be ended.
        if origin.streak.dead_until().is_some() || self.pace.given_up().is_some() {
            return None;
        }
        let rest = Some(self.rests_until(index)).filter(|at| *at > now);
        origin.waits_until(now).max(rest)
    }

    /// Until when the origin of `url` is given up, if it is at `now`.
    pub fn dead_until(&self, url: &Url, now: Instant) -> Option<Instant> {
        let origin = self.origins.iter().find(|origin| origin.is_of(url))?;
        origin.streak.dead_until().filter(|until| *until > now)
    }

    /// The instant from which a file that others' robots.txt redirect to may be requested, with regard to failures
    /// and complaints.
    pub fn may_ask_for_file_from(&self, url: &Url, now: Instant) -> Instant {
        let index = self.origins.iter().position(|origin| origin.is_of(url));
        let of_origin = index.map_or(Instant::ZERO, |index| self.rests_until(index));
        let of_kind = is_no_robots_txt(url).then(|| self.kind_rests_until(now, kind_of(url, true))).flatten();
        of_kind.map_or(of_origin, |until| until.max(of_origin))
    }

    /// Whether an origin of this host other than `index` works: then its URLs must not wait behind those of this one.
    pub fn has_another_that_works(&self, index: usize) -> bool {
        self.origins.iter().enumerate().any(|(other, origin)| other != index && origin.works())
    }

    /// The record that must outlive the host in memory; `None` if it has not failed.
    pub fn record(&self) -> Option<Remembered> {
        let failing = self.origins.iter().filter(|origin| origin.streak != FailureStreak::default());
        let record = Remembered {
            given_up: self.pace.given_up(),
            caution: self.pace.caution().to_remember(),
            origins: failing.map(Origin::record).collect(),
            wants_both_families: self.resolution.wants_both_families(),
            dead: self.resolution.dead(),
        };
        (record != Remembered::default()).then_some(record)
    }

    /// The host was known before, and forgotten.
    pub fn remember(&mut self, record: Remembered) {
        let Remembered { given_up, caution, origins, wants_both_families, dead } = record;
        self.pace = HostPace::remembered(given_up, caution);
        self.resolution.remember(wants_both_families, dead);
        self.origins = origins.into_iter().map(Origin::remembered).collect();
    }

    fn works(&self) -> bool {
        self.origins.iter().any(Origin::works)
    }

    fn rests_until(&self, index: usize) -> Instant {
        let Some(origin) = self.origins.get(index) else { return Instant::ZERO };
        let is_doubtful = origin.streak.has_failed() || origin.is_stranger();
        let shared = if is_doubtful && self.works() { self.doubtful_rest } else { Instant::ZERO };
        origin.streak.rests_until().max(shared)
    }

    fn failures_max(&self, index: usize, politeness: &Politeness) -> u32 {
        let is_stranger = self.origins.get(index).is_some_and(Origin::is_stranger);
        let max = politeness.host_failures_max.max(1);
        if is_stranger && self.works() { max.min(ODD_FAILURES_MAX) } else { max }
    }
}

/// The kind of a URL: all URLs of one script, whatever numbers its path has, or of one family of paths. URLs to which
/// only strangers link are of another kind, as anyone may link to pages that the host does not have, under names that
/// look like its pages'.
pub fn kind_of(url: &Url, is_strangers: bool) -> KindOfUrl {
    let kind = match url.path_and_query().split_once('?') {
        Some((path, _)) => {
            Tokens::of(path).kind().fold(0, |hash, token| xxh3_64_with_seed(&token.to_le_bytes(), hash)) as u32
        }
        None => Tokens::of(url.path_and_query()).family(),
    };
    KindOfUrl { kind: if is_strangers { !kind } else { kind }, is_strangers }
}

/// Whether a file that is fetched for rules is not at a robots.txt path: others were redirected there, and it may be
/// a page.
pub fn is_no_robots_txt(url: &Url) -> bool {
    url.path_and_query() != "/robots.txt"
}

/// Attempts at an odd port that never answered, while another origin of its host works.
const ODD_FAILURES_MAX: u32 = 3;
/// After a failure doubtful origins rest for this many times its duration, while another one works.
const DOUBTFUL_REST_FACTOR: u32 = 10;
/// No connection attempt counts for longer than this.
const TOOK_MAX: Duration = Duration::from_secs(10);
/// A page that takes this long, and this many times as long as the one before, is slow for its host.
const SLOW_MIN: Duration = Duration::from_secs(1);
const SLOW_FACTOR: u32 = 4;
/// Upper bound on the time of a failed answer that sets the rest of its kind.
const KIND_TOOK_MAX: Duration = Duration::from_secs(30);
