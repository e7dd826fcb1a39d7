//! What a shard sees of the network, and the failures that the network may have caused.
//!
//! Decides: a failure that an outage could explain is held back. Its job stays in flight until the breaker
//! (`control::Breaker`) says that failures of its time count, or that there is an outage. What an outage explains is
//! undone: it ends as [`Failure::Aborted`], which costs neither URL nor host a try. The same holds for a response
//! that was cut off. A host that asked to be left alone is left alone in any case.
//! During an outage nothing is fetched except a few probes ([`PROBES_MAX`]): the next that wait, hosts that have
//! answered before first. Where sites answer and only names are out of reach, only lookups wait.
//! A failed fetch gives its slot back while it is held. Otherwise a page of links to thousands of nonexistent sites
//! would fill all slots, and no site could be fetched whose answer clears them.
//! Invariants: each held job ends once; nothing is held while an outage lasts.
//! Limits: held lookups and responses keep their slots, and so do failures beyond [`HELD_FREE_MAX`]; the newest
//! [`SITE_ENDS_MAX`] ends are kept for the breaker.

use std::collections::VecDeque;
use std::rc::Rc;

use super::answered_hosts::AnsweredHosts;
use super::evidence::{NetworkReport, SiteEnd, SiteReply, Witness};
use crate::frontier::Frontier;
use crate::job::{FetchJob, JobKind};
use crate::log::HostNote;
use crate::names::Lookups;
use crate::outcome::Outcome;
use crate::shard::{Cleared, OutOfReach, Phase};
use crate::transaction::Transaction;
use crate::trouble::{Cause, Trouble};
use ringcrawl_base::IntSet;
use ringcrawl_base::time::{Instant, WallClock};
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_url::Url;

/// How a fetch or a lookup ended.
pub(in crate::shard) type FetchResult = Result<Box<Transaction>, Failure>;

/// The network as this shard knows it.
#[derive(Debug, Default)]
pub(in crate::shard) struct Network {
    /// For the hashes of witnesses.
    rng_seed: u64,
    /// Held jobs, oldest first: failed lookups, and everything else.
    held_names: VecDeque<HeldEnd>,
    held: VecDeque<HeldEnd>,
    /// Those that have no slot any more.
    held_free: usize,
    /// The memory of these, in bytes.
    held_free_bytes: usize,
    /// The jobs of both.
    held_jobs: IntSet,
    /// What an outage cuts us off from.
    out_of_reach: OutOfReach,
    /// When the last outage ended, for sites and for names.
    sites_down_until: Instant,
    names_down_until: Instant,
    cleared: Cleared,
    probes: Probes,
    answered: AnsweredHosts,
    /// Those of them that have not answered since: they are tried last in an outage, which they may have caused.
    fell_silent: AnsweredHosts,
    /// Hosts that were left alone in an earlier run, while that run is being resumed: some of them because they did
    /// not answer.
    doubtful: AnsweredHosts,
    site_ends: VecDeque<SiteEnd>,
    proxy_unreachable: u64,
    /// The log says why fetching waits.
    told: bool,
    /// The failure that was held last, and its host.
    last_held: Option<(Box<str>, Trouble)>,
}

/// What to try during an outage.
#[derive(Debug, Default)]
struct Probes {
    /// This many jobs may start.
    wanted: usize,
    in_flight: Vec<u64>,
}

impl Probes {
    /// Another `count` jobs may start, as long as there are no more than [`PROBES_MAX`].
    fn want(&mut self, count: usize) {
        self.wanted = (self.wanted + count).min(PROBES_MAX.saturating_sub(self.in_flight.len()));
    }

    /// This job is a probe.
    fn begin(&mut self, job: u64) {
        self.wanted = self.wanted.saturating_sub(1);
        self.in_flight.push(job);
    }
}

/// A job that ended, perhaps because of an outage.
#[derive(Debug)]
struct HeldEnd {
    ended: Instant,
    job: Rc<FetchJob>,
    result: FetchResult,
    /// It has no slot any more.
    is_free: bool,
}

/// What happens to a job that ended.
#[derive(Debug)]
pub(in crate::shard) enum Disposition {
    /// Its result counts.
    Counts(Rc<FetchJob>, FetchResult),
    /// It is tried again as if it had not been tried: an outage explains its result.
    Undone(Rc<FetchJob>, FetchResult),
    /// It is held back.
    Held,
}

/// What explains how a job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Blame {
    /// No outage explains it, so it counts.
    Counts,
    /// An outage explains it.
    Outage,
    /// It is not known yet.
    Open,
}

impl Network {
    /// Nothing is known of it; the witnesses are those of the crawl with `rng_seed`.
    pub(super) fn new(rng_seed: u64) -> Network {
        Network { rng_seed, ..Network::default() }
    }

    /// The number of held jobs.
    pub(in crate::shard) fn held(&self) -> usize {
        self.held_names.len() + self.held.len()
    }

    /// The failure that was held last, while any is held.
    pub(in crate::shard) fn trouble(&self) -> Option<(&str, &Trouble)> {
        self.last_held.as_ref().filter(|_| self.held() > 0).map(|(host, trouble)| (&**host, trouble))
    }

    /// Those of them that have no slot.
    pub(super) fn held_free(&self) -> usize {
        self.held_free
    }

    /// An earlier run's log names a host, before it names the host's URLs.
    pub(in crate::shard) fn asked_for_rest(&mut self, host: &str) {
        self.doubtful.note_host(host);
    }

    /// A URL of an earlier run ended with a response, or because its host did not answer. URLs come in the order in
    /// which they were found, which is nearly the order in which their host was asked for them. So the last one
    /// counts.
    pub(in crate::shard) fn was_answered(&mut self, url: &Url, was_answered: Option<bool>) {
        match was_answered {
            Some(true) if !self.doubtful.contains_host(url.host()) => self.answered.note(url),
            Some(false) => self.answered.forget(url),
            Some(true) | None => {}
        }
    }

    /// The earlier run has been read completely.
    pub(in crate::shard) fn is_taken_up(&mut self) {
        self.doubtful = AnsweredHosts::default();
    }

    fn note(&mut self, end: SiteEnd) {
        if self.site_ends.len() >= SITE_ENDS_MAX {
            self.site_ends.pop_front();
        }
        self.site_ends.push_back(end);
    }

    fn blame(&self, phase: Phase, kind: JobKind, began: Instant, result: &FetchResult) -> Blame {
        let (is_down, down_until) = match kind {
            JobKind::Resolve => (self.out_of_reach > OutOfReach::Nothing, self.names_down_until),
            _ => (self.out_of_reach == OutOfReach::All, self.sites_down_until),
        };
        match phase {
            _ if !may_be_outage(result) => Blame::Counts,
            // The next run tries it again.
            Phase::Drain => Blame::Outage,
            Phase::Abort | Phase::Close => Blame::Counts,
            Phase::Run if is_down || down_until > Instant::ZERO && began <= down_until => Blame::Outage,
            Phase::Run => Blame::Open,
        }
    }

    /// Whether any held job ended so long ago that it counts.
    pub(in crate::shard) fn has_cleared(&self) -> bool {
        let Cleared { sites, names } = self.cleared;
        let is_cleared = |held: &VecDeque<HeldEnd>, until| held.front().is_some_and(|held| held.ended <= until);
        is_cleared(&self.held_names, sites.min(names)) || is_cleared(&self.held, sites)
    }

    /// The next held job that ended so long ago that it counts, with its result.
    pub(in crate::shard) fn take_cleared(&mut self) -> Option<(FetchJob, FetchResult)> {
        let Cleared { sites, names } = self.cleared;
        let take = |held: &mut VecDeque<HeldEnd>, until| {
            if held.front()?.ended <= until { held.pop_front() } else { None }
        };
        let taken = take(&mut self.held_names, sites.min(names)).or_else(|| take(&mut self.held, sites));
        let held = self.is_held_no_more(taken)?;
        self.count(&held.job, &held.result);
        // How long it was held says nothing about its host.
        Some((FetchJob { ended: Some(held.ended), ..(*held.job).clone() }, held.result))
    }

    /// The next held job, of lookups only or of all.
    pub(in crate::shard) fn take_held(&mut self, of_names_alone: bool) -> Option<(Rc<FetchJob>, FetchResult)> {
        let of_others = |held: &mut VecDeque<HeldEnd>| if of_names_alone { None } else { held.pop_front() };
        let taken = self.held_names.pop_front().or_else(|| of_others(&mut self.held));
        self.is_held_no_more(taken).map(|held| (held.job, held.result))
    }

    fn is_held_no_more(&mut self, taken: Option<HeldEnd>) -> Option<HeldEnd> {
        let taken = taken?;
        self.held_jobs.remove(&taken.job.id);
        if taken.is_free {
            self.held_free -= 1;
            self.held_free_bytes -= held_bytes(&taken.job);
        }
        Some(taken)
    }

    /// Whether the result of job `id` is held back.
    pub(super) fn holds_back(&self, id: u64) -> bool {
        self.held_jobs.contains(&id)
    }

    /// What the breaker needs; `has_work`: a host has work, now or later.
    pub(in crate::shard) fn report(&self, lookups: &Lookups, has_work: bool) -> NetworkReport {
        let oldest = |held: &VecDeque<HeldEnd>| held.front().map_or(Instant::NEVER, |held| held.ended);
        let names_held_since = oldest(&self.held_names);
        NetworkReport {
            dns_heard: lookups.heard(),
            dns_failed: lookups.failed(),
            dns_errors: lookups.errors(),
            proxy_unreachable: self.proxy_unreachable,
            held_since: oldest(&self.held).min(names_held_since),
            names_held_since,
            has_work,
        }
    }

    /// Takes the ends of requests to sites since the last call, oldest first.
    pub(in crate::shard) fn take_site_ends(&mut self) -> impl Iterator<Item = SiteEnd> {
        self.site_ends.drain(..)
    }

    /// Failures up to this time count.
    pub(in crate::shard) fn clear(&mut self, cleared: Cleared) {
        self.cleared = cleared;
    }

    /// An outage begins or ends, or cuts us off from something else; returns what it cut us off from before, if that
    /// changes. Held jobs that it concerns are to be undone; so are those that end while it lasts or began before its
    /// end.
    pub(in crate::shard) fn set_outage(
        &mut self,
        now: Instant,
        out_of_reach: OutOfReach,
        frontier: &mut Frontier,
    ) -> Option<OutOfReach> {
        let before = std::mem::replace(&mut self.out_of_reach, out_of_reach);
        if before == out_of_reach {
            return None;
        }
        if before == OutOfReach::All {
            self.sites_down_until = now;
        }
        if out_of_reach == OutOfReach::Nothing {
            self.names_down_until = now;
        }
        self.probes = Probes::default();
        frontier.slots.lookups.limit((out_of_reach == OutOfReach::Names).then_some(0));
        Some(before)
    }

    /// This many waiting jobs should be tried.
    pub(in crate::shard) fn probe(&mut self, count: usize, frontier: &mut Frontier) {
        if self.out_of_reach > OutOfReach::Nothing {
            self.probes.want(count);
        }
        if self.out_of_reach == OutOfReach::Names {
            frontier.slots.lookups.limit(Some(self.probes.wanted));
        }
    }

    /// During an outage of everything, brings a ready host to the front, if there is one, that answered the last time
    /// or else that answered before: it says more about the network than one that may be dead.
    pub(in crate::shard) fn choose_probe(&self, now: Instant, frontier: &mut Frontier) {
        let Network { answered, fell_silent, .. } = self;
        if self.out_of_reach == OutOfReach::All
            && !frontier.prefer(now, |host| answered.contains_host(host) && !fell_silent.contains_host(host))
        {
            frontier.prefer(now, |host| answered.contains_host(host));
        }
    }

    /// A job began: during an outage of what it needs it is a probe.
    pub(super) fn began(&mut self, job: &FetchJob) {
        if self.out_of_reach == OutOfReach::All
            || self.out_of_reach == OutOfReach::Names && job.kind == JobKind::Resolve
        {
            self.probes.begin(job.id);
        }
    }

    /// A probe ended, if `job` is one. After its name its page is fetched.
    pub(super) fn probed(&mut self, job: &FetchJob, outcome: Option<&Outcome>) {
        let in_flight = &mut self.probes.in_flight;
        let Some(place) = in_flight.iter().position(|id| *id == job.id) else { return };
        in_flight.swap_remove(place);
        let is_told = matches!(outcome, Some(Outcome::Resolved { .. } | Outcome::NoAddress { .. }));
        if is_told && self.out_of_reach == OutOfReach::All {
            self.probes.want(1);
        }
    }

    /// Lookups that may go on during an outage.
    pub(super) fn probes(&self) -> &[u64] {
        &self.probes.in_flight
    }

    /// Whether we are cut off from anything.
    pub(in crate::shard) fn is_down(&self) -> bool {
        self.out_of_reach > OutOfReach::Nothing
    }

    /// Whether an outage keeps all fetches from starting.
    pub(super) fn holds_all(&self) -> bool {
        self.out_of_reach == OutOfReach::All && self.probes.wanted == 0
    }

    /// A job ended: what it says about the network, and what happens to it.
    pub(in crate::shard) fn judge(
        &mut self,
        (now, clock): (Instant, WallClock),
        phase: Phase,
        (job, began): (Rc<FetchJob>, Instant),
        result: FetchResult,
        frontier: &mut Frontier,
    ) -> Disposition {
        let blame = self.blame(phase, job.kind, began, &result);
        self.note_site(&job, began, &result, blame);
        match blame {
            Blame::Counts => {
                self.count(&job, &result);
                Disposition::Counts(job, result)
            }
            Blame::Outage => Disposition::Undone(job, result),
            Blame::Open => {
                let is_of_names = job.kind == JobKind::Resolve;
                let bytes = self.held_free_bytes + held_bytes(&job);
                let has_room = self.held_free < HELD_FREE_MAX && bytes <= HELD_FREE_BYTES_MAX;
                let is_free = !is_of_names && result.is_err() && has_room;
                if is_free {
                    self.held_free += 1;
                    self.held_free_bytes = bytes;
                    frontier.is_held_back(now, &job);
                } else if !is_of_names {
                    frontier.request_ended(now, &job);
                }
                if let Err(failure) = result {
                    self.last_held = Some((job.url.host().into(), uncounted(clock.seconds(now), &job, failure)));
                }
                let held = if is_of_names { &mut self.held_names } else { &mut self.held };
                self.held_jobs.insert(job.id);
                held.push_back(HeldEnd { ended: now, job, result, is_free });
                Disposition::Held
            }
        }
    }

    fn note_site(&mut self, job: &FetchJob, began: Instant, result: &FetchResult, blame: Blame) {
        self.proxy_unreachable += u64::from(matches!(result, Err(Failure::ProxyUnreachable)));
        let reply = match result {
            // Even if it was cut off or told to end.
            Ok(_) | Err(Failure::Hurried) => SiteReply::Answered,
            // They say nothing about the site, or both.
            Err(
                Failure::AddressForbidden
                | Failure::PortForbidden
                | Failure::Aborted
                | Failure::ProxyUnreachable
                | Failure::ProxyRefused,
            ) => {
                return;
            }
            Err(failure) if !failure.is_transient() => SiteReply::Answered,
            Err(_) if self.answered.contains(&job.url) => SiteReply::FellSilent,
            Err(_) => SiteReply::Silent,
        };
        match reply {
            SiteReply::Answered => {
                self.answered.note(&job.url);
                self.fell_silent.forget(&job.url);
            }
            SiteReply::FellSilent => self.fell_silent.note(&job.url),
            SiteReply::Silent => {}
        }
        if reply != SiteReply::Answered && blame == Blame::Outage {
            return;
        }
        let witness = Witness::new(self.rng_seed, job.url.host(), job.addr);
        self.note(SiteEnd { witness, began, reply });
    }

    /// The log says of an earlier run whether its fetching waited.
    pub(in crate::shard) fn was_told(&mut self, was_told: bool) {
        self.told = was_told;
    }

    /// What readers of the log should know: why fetching waits, once per outage, or that it no longer waits.
    pub(in crate::shard) fn note_outage(
        &mut self,
        seconds: u64,
        why: Option<(&FetchJob, Failure)>,
    ) -> Option<HostNote> {
        if self.told == why.is_some() {
            return None;
        }
        self.told = why.is_some();
        let mut note = HostNote::default();
        if let Some((job, failure)) = why {
            let detail = job.told.clone().unwrap_or_else(|| job.url.host().into());
            note.health.troubles.push(Trouble { detail, ..uncounted(seconds, job, failure) });
        }
        Some(note)
    }

    /// A job ended, and that counts.
    fn count(&mut self, job: &FetchJob, result: &FetchResult) {
        if result.is_err() && may_be_outage(result) && !matches!(result, Err(Failure::ProxyUnreachable)) {
            self.answered.forget(&job.url);
        }
    }
}

/// A failure that is not a try of its host, or not known to be one.
fn uncounted(seconds: u64, job: &FetchJob, failure: Failure) -> Trouble {
    let origin = (job.kind != JobKind::Resolve).then(|| (job.url.scheme(), job.url.port()));
    let detail = job.told.clone().unwrap_or_default();
    let cause = Cause::Failure(failure);
    Trouble { asked: job.kind, origin, cause, detail, tries: 0, tries_max: 0, seconds, again: None }
}

/// Whether an outage could explain the result: no answer, or a truncated one.
fn may_be_outage(result: &FetchResult) -> bool {
    match result {
        Ok(transaction) => {
            transaction.reset || matches!(transaction.response.truncated, Some(Truncated::Time | Truncated::Disconnect))
        }
        Err(failure) => failure.is_transient() && *failure != Failure::Aborted,
    }
}

/// Memory of a job whose failure is held.
fn held_bytes(job: &FetchJob) -> usize {
    job.url.as_str().len() + HELD_BYTES
}

/// Held failures up to this number and this many bytes need no slot: more than arrive between two looks of the
/// breaker.
const HELD_FREE_MAX: usize = 4_096;
pub(crate) const HELD_FREE_BYTES_MAX: usize = 8 << 20;
/// Memory of a job whose failure is held: its addresses and its entry, without its URL.
const HELD_BYTES: usize = 1_024;
/// Ends of requests that are kept for the breaker between two looks.
const SITE_ENDS_MAX: usize = 32;
/// Probes in flight on a shard: one of them may wait for a dead host.
const PROBES_MAX: usize = 3;

#[cfg(test)]
mod tests;
