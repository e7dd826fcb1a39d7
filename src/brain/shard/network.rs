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
use std::net::IpAddr;
use std::rc::Rc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::answered_hosts::AnsweredHosts;
use super::input::{Cleared, OutOfReach};
use super::{Phase, Shard};
use crate::job::{FetchJob, JobKind};
use crate::log::HostNote;
use crate::outcome::Outcome;
use crate::transaction::Transaction;
use crate::trouble::{Cause, Trouble};
use ringcrawl_base::IntSet;
use ringcrawl_base::time::Instant;
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_http as http;
use ringcrawl_url::{AddressClass, Url, address_class, owner_of};

/// How a request ended, as evidence of whether the network works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SiteEnd {
    /// The witness.
    pub witness: Witness,
    /// When the request began.
    pub began: Instant,
    /// How it ended.
    pub reply: SiteReply,
}

/// A witness of whether the network works: everything that one party can create cheaply is one witness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Witness {
    /// A hash of the domain by the ICANN section of the Public Suffix List ([`owner_of`]): names below a private
    /// suffix are free.
    pub owner: u64,
    /// A hash of the address block, an IPv4 /24 or an IPv6 /48, of a global address; 0: unknown, or not global.
    pub block: u64,
}

impl Witness {
    /// The witness of a request to a host at an address.
    pub fn new(rng_seed: u64, host: &str, address: Option<IpAddr>) -> Witness {
        let is_global = |address: &IpAddr| address_class(*address) == AddressClass::Global;
        let block = address.filter(is_global).map_or(0, |address| match address {
            IpAddr::V4(v4) => xxh3_64_with_seed(&v4.octets()[..3], rng_seed),
            IpAddr::V6(v6) => xxh3_64_with_seed(&v6.octets()[..6], rng_seed),
        });
        Witness { owner: xxh3_64_with_seed(owner_of(host).as_bytes(), rng_seed), block }
    }

    /// Whether the two share an owner or an address block.
    pub fn is_one_with(self, other: Witness) -> bool {
        self.owner == other.owner || self.block != 0 && self.block == other.block
    }
}

/// Whether a site answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiteReply {
    /// It did, whatever the response.
    Answered,
    /// It did not, but its host had answered the last time, in this run or an earlier one.
    FellSilent,
    /// It did not, and its host is not known to have answered the last time.
    Silent,
}

/// What a shard counts about the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkReport {
    /// Answers of name servers that give an address, or say that there is none.
    pub dns_heard: u64,
    /// Queries of lookups that ended in silence, SERVFAIL or REFUSED. Those of probes are not counted.
    pub dns_failed: u64,
    /// SERVFAIL, REFUSED and the like.
    pub dns_errors: u64,
    /// Requests for which the proxy could not be reached.
    pub proxy_unreachable: u64,
    /// When the oldest held failure ended; `NEVER` if none is held.
    pub held_since: Instant,
    /// The same for names that no server answered.
    pub names_held_since: Instant,
    /// Whether a host has work, now or later.
    pub has_work: bool,
}

/// The network as this shard knows it.
#[derive(Debug, Default)]
pub(super) struct Network {
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
    pub(super) out_of_reach: OutOfReach,
    /// When the last outage ended, for sites and for names.
    sites_down_until: Instant,
    names_down_until: Instant,
    cleared: Cleared,
    pub(super) probes: Probes,
    pub(super) answered: AnsweredHosts,
    /// Those of them that have not answered since: they are tried last in an outage, which they may have caused.
    fell_silent: AnsweredHosts,
    /// Hosts that were left alone in an earlier run, while that run is being resumed: some of them because they did
    /// not answer.
    doubtful: AnsweredHosts,
    site_ends: VecDeque<SiteEnd>,
    proxy_unreachable: u64,
    /// The log says why fetching waits.
    pub(super) told: bool,
    /// The failure that was held last, and its host.
    last_held: Option<(Box<str>, Trouble)>,
}

/// What to try during an outage.
#[derive(Debug, Default)]
pub(super) struct Probes {
    /// This many jobs may start.
    wanted: usize,
    in_flight: Vec<u64>,
}

impl Probes {
    /// Another `count` jobs may start, as long as there are no more than [`PROBES_MAX`].
    fn want(&mut self, count: usize) {
        self.wanted = (self.wanted + count).min(PROBES_MAX.saturating_sub(self.in_flight.len()));
    }

    pub(super) fn are_wanted(&self) -> bool {
        self.wanted > 0
    }

    /// This job is a probe.
    pub(super) fn begin(&mut self, job: u64) {
        self.wanted = self.wanted.saturating_sub(1);
        self.in_flight.push(job);
    }

    pub(super) fn are_in_flight(&self) -> &[u64] {
        &self.in_flight
    }
}

/// A job that ended, perhaps because of an outage.
#[derive(Debug)]
struct HeldEnd {
    ended: Instant,
    job: Rc<FetchJob>,
    result: Result<Box<Transaction>, Failure>,
    /// It has no slot any more.
    is_free: bool,
}

/// What happens to a job that ended.
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
    pub(super) fn held(&self) -> usize {
        self.held_names.len() + self.held.len()
    }

    /// The failure that was held last, while any is held.
    pub(super) fn trouble(&self) -> Option<(&str, &Trouble)> {
        self.last_held.as_ref().filter(|_| self.held() > 0).map(|(host, trouble)| (&**host, trouble))
    }

    /// Those of them that have no slot.
    pub(super) fn held_free(&self) -> usize {
        self.held_free
    }

    /// An earlier run's log names a host, before it names the host's URLs.
    pub(super) fn asked_for_rest(&mut self, host: &str) {
        self.doubtful.note_host(host);
    }

    /// A URL of an earlier run ended with a response, or because its host did not answer. URLs come in the order in
    /// which they were found, which is nearly the order in which their host was asked for them. So the last one
    /// counts.
    pub(super) fn was_answered(&mut self, url: &Url, was_answered: Option<bool>) {
        match was_answered {
            Some(true) if !self.doubtful.contains_host(url.host()) => self.answered.note(url),
            Some(false) => self.answered.forget(url),
            Some(true) | None => {}
        }
    }

    /// The earlier run has been read completely.
    pub(super) fn is_taken_up(&mut self) {
        self.doubtful = AnsweredHosts::default();
    }

    fn note(&mut self, end: SiteEnd) {
        if self.site_ends.len() >= SITE_ENDS_MAX {
            self.site_ends.pop_front();
        }
        self.site_ends.push_back(end);
    }

    fn blame(&self, phase: Phase, kind: JobKind, began: Instant, result: &Result<Box<Transaction>, Failure>) -> Blame {
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
    pub(super) fn has_cleared(&self) -> bool {
        let Cleared { sites, names } = self.cleared;
        let is_cleared = |held: &VecDeque<HeldEnd>, until| held.front().is_some_and(|held| held.ended <= until);
        is_cleared(&self.held_names, sites.min(names)) || is_cleared(&self.held, sites)
    }

    /// The next held job that ended so long ago that it counts.
    fn take_cleared(&mut self) -> Option<HeldEnd> {
        let Cleared { sites, names } = self.cleared;
        let take = |held: &mut VecDeque<HeldEnd>, until| {
            if held.front()?.ended <= until { held.pop_front() } else { None }
        };
        let taken = take(&mut self.held_names, sites.min(names)).or_else(|| take(&mut self.held, sites));
        self.is_held_no_more(taken)
    }

    /// The next held job, of lookups only or of all.
    fn take_held(&mut self, of_names_alone: bool) -> Option<HeldEnd> {
        let of_others = |held: &mut VecDeque<HeldEnd>| if of_names_alone { None } else { held.pop_front() };
        let taken = self.held_names.pop_front().or_else(|| of_others(&mut self.held));
        self.is_held_no_more(taken)
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
}

impl Shard {
    /// Whether the result of job `id` is held back or waits to be read, with its response if there is one.
    pub fn holds_back(&self, id: u64) -> bool {
        self.network.held_jobs.contains(&id) || self.readings.has_waiting(id)
    }

    /// What the breaker needs.
    pub fn network_report(&self) -> NetworkReport {
        let oldest = |held: &VecDeque<HeldEnd>| held.front().map_or(Instant::NEVER, |held| held.ended);
        let names_held_since = oldest(&self.network.held_names);
        NetworkReport {
            dns_heard: self.lookups.heard(),
            dns_failed: self.lookups.failed(),
            dns_errors: self.lookups.errors(),
            proxy_unreachable: self.network.proxy_unreachable,
            held_since: oldest(&self.network.held).min(names_held_since),
            names_held_since,
            has_work: !self.frontier.is_idle(),
        }
    }

    /// Takes the ends of requests to sites since the last call, oldest first.
    pub fn take_site_ends(&mut self) -> impl Iterator<Item = SiteEnd> {
        self.network.site_ends.drain(..)
    }

    /// Failures up to this time count.
    pub(super) fn clear(&mut self, now: Instant, cleared: Cleared) {
        self.network.cleared = cleared;
        self.count_cleared(now);
    }

    /// Counts what is cleared, as much as fits into a turn: each may be the last try of its URL, which writes a
    /// record. At the end nothing else needs the turn.
    pub(super) fn count_cleared(&mut self, now: Instant) {
        let count_max = if self.phase == Phase::Run { CLEARED_MAX } else { usize::MAX };
        for _ in 0..count_max {
            let Some(held) = self.network.take_cleared() else { break };
            // How long it was held says nothing about its host.
            let job = FetchJob { ended: Some(held.ended), ..(*held.job).clone() };
            self.count(now, &job, held.result);
        }
    }

    /// An outage begins or ends, or cuts us off from something else. This undoes the held jobs that it concerns, and
    /// those that end while it lasts or began before its end.
    pub(super) fn set_outage(&mut self, now: Instant, out_of_reach: OutOfReach) {
        let before = std::mem::replace(&mut self.network.out_of_reach, out_of_reach);
        if before == out_of_reach {
            return;
        }
        if before == OutOfReach::All {
            self.network.sites_down_until = now;
        }
        if before > OutOfReach::Nothing {
            self.tell_outage(now, None);
        }
        self.network.probes = Probes::default();
        self.frontier.limit_lookups((out_of_reach == OutOfReach::Names).then_some(0));
        if out_of_reach == OutOfReach::Nothing {
            self.network.names_down_until = now;
            return;
        }
        self.undo_held(now, out_of_reach == OutOfReach::Names);
        self.abort_lookups(now);
    }

    /// Held jobs, or only those of names, are tried again as if they had not been tried.
    pub(super) fn undo_held(&mut self, now: Instant, of_names_alone: bool) {
        while let Some(held) = self.network.take_held(of_names_alone) {
            self.undo(now, &held.job, &held.result);
        }
    }

    /// This many waiting jobs should be tried.
    pub(super) fn probe(&mut self, count: usize) {
        let Network { out_of_reach, probes, .. } = &mut self.network;
        if *out_of_reach > OutOfReach::Nothing {
            probes.want(count);
        }
        if *out_of_reach == OutOfReach::Names {
            self.frontier.limit_lookups(Some(probes.wanted));
        }
    }

    /// Brings a ready host to the front, if there is one, that answered the last time or else that answered before:
    /// it says more about the network than one that may be dead.
    pub(super) fn choose_probe(&mut self, now: Instant) {
        let Network { answered, fell_silent, .. } = &self.network;
        if !self.frontier.prefer(now, |host| answered.contains_host(host) && !fell_silent.contains_host(host)) {
            self.frontier.prefer(now, |host| answered.contains_host(host));
        }
    }

    /// A probe ended, if `job` is one. After its name its page is fetched.
    pub(super) fn probed(&mut self, job: &FetchJob, outcome: Option<&Outcome>) {
        let in_flight = &mut self.network.probes.in_flight;
        let Some(place) = in_flight.iter().position(|id| *id == job.id) else { return };
        in_flight.swap_remove(place);
        let is_told = matches!(outcome, Some(Outcome::Resolved { .. } | Outcome::NoAddress { .. }));
        if is_told && self.network.out_of_reach == OutOfReach::All {
            self.network.probes.want(1);
        }
    }

    /// A job ended: what it says about the network, and what happens to it.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        job: Rc<FetchJob>,
        began: Instant,
        result: Result<Box<Transaction>, Failure>,
    ) {
        let blame = self.network.blame(self.phase, job.kind, began, &result);
        self.note_site(&job, began, &result, blame);
        match blame {
            Blame::Counts => self.count(now, &job, result),
            Blame::Outage => self.undo(now, &job, &result),
            Blame::Open => {
                let is_of_names = job.kind == JobKind::Resolve;
                let bytes = self.network.held_free_bytes + held_bytes(&job);
                let has_room = self.network.held_free < HELD_FREE_MAX && bytes <= HELD_FREE_BYTES_MAX;
                let is_free = !is_of_names && result.is_err() && has_room;
                if is_free {
                    self.network.held_free += 1;
                    self.network.held_free_bytes = bytes;
                    self.frontier.is_held_back(now, &job);
                } else if !is_of_names {
                    self.frontier.request_ended(now, &job);
                }
                if let Err(failure) = result {
                    self.network.last_held = Some((job.url.host().into(), self.uncounted(now, &job, failure)));
                }
                let held = if is_of_names { &mut self.network.held_names } else { &mut self.network.held };
                self.network.held_jobs.insert(job.id);
                held.push_back(HeldEnd { ended: now, job, result, is_free });
            }
        }
    }

    fn note_site(&mut self, job: &FetchJob, began: Instant, result: &Result<Box<Transaction>, Failure>, blame: Blame) {
        self.network.proxy_unreachable += u64::from(matches!(result, Err(Failure::ProxyUnreachable)));
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
            Err(_) if self.network.answered.contains(&job.url) => SiteReply::FellSilent,
            Err(_) => SiteReply::Silent,
        };
        match reply {
            SiteReply::Answered => {
                self.network.answered.note(&job.url);
                self.network.fell_silent.forget(&job.url);
            }
            SiteReply::FellSilent => self.network.fell_silent.note(&job.url),
            SiteReply::Silent => {}
        }
        if reply != SiteReply::Answered && blame == Blame::Outage {
            return;
        }
        let witness = self.keys.witness(&job.url, job.addr);
        self.network.note(SiteEnd { witness, began, reply });
    }

    /// Logs why fetching waits, once per outage, or that it no longer waits, for readers of the logs.
    pub(super) fn tell_outage(&mut self, now: Instant, why: Option<(&FetchJob, Failure)>) {
        if self.network.told == why.is_some() {
            return;
        }
        self.network.told = why.is_some();
        let mut note = HostNote::default();
        if let Some((job, failure)) = why {
            let detail = job.told.clone().unwrap_or_else(|| job.url.host().into());
            note.health.troubles.push(Trouble { detail, ..self.uncounted(now, job, failure) });
        }
        self.log.note_host(note);
        self.commits.note(now);
    }

    /// A failure that is not a try of its host, or not known to be one.
    fn uncounted(&self, now: Instant, job: &FetchJob, failure: Failure) -> Trouble {
        let origin = (job.kind != JobKind::Resolve).then(|| (job.url.scheme(), job.url.port()));
        let detail = job.told.clone().unwrap_or_default();
        let (cause, seconds) = (Cause::Failure(failure), self.clock.seconds(now));
        Trouble { asked: job.kind, origin, cause, detail, tries: 0, tries_max: 0, seconds, again: None }
    }

    /// Counts how a job ended.
    fn count(&mut self, now: Instant, job: &FetchJob, result: Result<Box<Transaction>, Failure>) {
        if result.is_err() && may_be_outage(&result) && !matches!(result, Err(Failure::ProxyUnreachable)) {
            self.network.answered.forget(&job.url);
        }
        self.conclude(now, job, result);
    }

    /// A job is tried again as if it had not been tried.
    fn undo(&mut self, now: Instant, job: &FetchJob, result: &Result<Box<Transaction>, Failure>) {
        if let Err(failure) = result
            && self.network.out_of_reach > OutOfReach::Nothing
            && *failure != Failure::Aborted
        {
            self.tell_outage(now, Some((job, *failure)));
        }
        self.conclude(now, job, Err(Failure::Aborted));
        if let Ok(transaction) = result {
            let response = &transaction.response;
            let retry_after = http::retry_after(&response.headers, transaction.started);
            self.frontier.asked_for_rest(now, job, response.status, retry_after);
            self.note_rests(now);
        }
    }
}

/// Whether an outage could explain the result: no answer, or a truncated one.
fn may_be_outage(result: &Result<Box<Transaction>, Failure>) -> bool {
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

/// Failures counted in one turn: four milliseconds at worst.
const CLEARED_MAX: usize = 256;
/// Held failures up to this number and this many bytes need no slot: more than arrive between two looks of the
/// breaker.
const HELD_FREE_MAX: usize = 4_096;
pub(crate) const HELD_FREE_BYTES_MAX: usize = 8 << 20;
/// Memory of a job whose failure is held: its addresses and its entry, without its URL.
const HELD_BYTES: usize = 1_024;
/// Ends of requests that are kept for the breaker between two looks.
const SITE_ENDS_MAX: usize = 32;
/// Probes in flight on a shard: one of them may wait for a dead host.
pub(super) const PROBES_MAX: usize = 3;
