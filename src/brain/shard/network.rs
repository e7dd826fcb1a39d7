//! What a shard sees of the network, and the failures for which it may be to blame.
//!
//! Decides: a failure that an outage could explain is held back: its job stays in flight until the breaker
//! (`control::Breaker`) says that failures of its time count, or that there is an outage. What an outage explains is
//! undone: it ends as [`Failure::Aborted`], which costs neither URL nor host a try. So is a response that was cut off.
//! A host that asked to be left alone is, all the same.
//! While there is an outage nothing is fetched but a few probes ([`PROBES_MAX`]): the next that wait, hosts that have
//! answered before first. Where sites answer and names alone are out of reach, only lookups wait.
//! A fetch that failed gives its place back meanwhile: or a page of links to thousands of sites that are not there would fill
//! all places, and nobody could be asked whose answer clears them.
//! Invariants: what is held ends once; while an outage lasts nothing is held.
//! Limits: lookups and responses that are held keep their places in flight, and so do failures beyond [`HELD_FREE_MAX`];
//! [`SITE_ENDS_MAX`] ends are kept for the breaker, the newest.

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
    /// Whose evidence it is.
    pub witness: Witness,
    /// When the request began.
    pub began: Instant,
    /// How it ended.
    pub reply: SiteReply,
}

/// Who says whether the network works: what one of them can make cheaply is one witness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Witness {
    /// A hash of the domain by the ICANN section of the Public Suffix List ([`owner_of`]): below a private suffix names are free.
    pub owner: u64,
    /// A hash of the address block, an IPv4 /24 or an IPv6 /48, of a global address; 0: not known, or no global one.
    pub block: u64,
}

impl Witness {
    /// Of a request to a host at an address.
    pub fn new(rng_seed: u64, host: &str, address: Option<IpAddr>) -> Witness {
        let is_global = |address: &IpAddr| address_class(*address) == AddressClass::Global;
        let block = address.filter(is_global).map_or(0, |address| match address {
            IpAddr::V4(v4) => xxh3_64_with_seed(&v4.octets()[..3], rng_seed),
            IpAddr::V6(v6) => xxh3_64_with_seed(&v6.octets()[..6], rng_seed),
        });
        Witness { owner: xxh3_64_with_seed(owner_of(host).as_bytes(), rng_seed), block }
    }

    /// Whether two have an owner or an address block in common.
    pub fn is_one_with(self, other: Witness) -> bool {
        self.owner == other.owner || self.block != 0 && self.block == other.block
    }
}

/// Whether a site answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiteReply {
    /// It did, whatever it said.
    Answered,
    /// It did not, and its host had answered the last time, in this run or an earlier one.
    FellSilent,
    /// It did not, and its host is not known to have answered the last time.
    Silent,
}

/// What a shard counts of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkReport {
    /// Answers of name servers that say where a name is, or that it is nowhere.
    pub dns_heard: u64,
    /// Queries of lookups that came to silence, SERVFAIL or REFUSED. Those of probes are not counted.
    pub dns_failed: u64,
    /// SERVFAIL, REFUSED and the like.
    pub dns_errors: u64,
    /// Requests for which the proxy could not be reached.
    pub proxy_unreachable: u64,
    /// When the oldest failure ended that is held; `NEVER`: none is.
    pub held_since: Instant,
    /// The same for names that no server told of.
    pub names_held_since: Instant,
    /// Whether a host has something to do, now or later.
    pub has_work: bool,
}

/// The network as this shard knows it.
#[derive(Debug, Default)]
pub(super) struct Network {
    /// What is held, oldest first: failed lookups, and everything else.
    held_names: VecDeque<HeldEnd>,
    held: VecDeque<HeldEnd>,
    /// Those that have no place in flight any more.
    held_free: usize,
    /// What these take, in bytes.
    held_free_bytes: usize,
    /// The jobs of both.
    held_jobs: IntSet,
    /// What an outage keeps from us.
    pub(super) out_of_reach: OutOfReach,
    /// When the last outage was over, of sites and of names.
    sites_down_until: Instant,
    names_down_until: Instant,
    cleared: Cleared,
    pub(super) probes: Probes,
    pub(super) answered: AnsweredHosts,
    /// Those of them that have not answered since: they are tried last in an outage, which may be of their own making.
    fell_silent: AnsweredHosts,
    /// Hosts that were left alone in an earlier run, while that is taken up: some of them because they did not answer.
    doubtful: AnsweredHosts,
    site_ends: VecDeque<SiteEnd>,
    proxy_unreachable: u64,
    /// The log says why fetching waits.
    pub(super) told: bool,
    /// The failure that was held last, and of which host.
    last_held: Option<(Box<str>, Trouble)>,
}

/// What is tried during an outage.
#[derive(Debug, Default)]
pub(super) struct Probes {
    /// So many jobs may start.
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

    /// This job is one.
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
    /// It has no place in flight any more.
    is_free: bool,
}

/// What becomes of a job that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Blame {
    /// No outage explains it: it counts.
    Counts,
    /// An outage does.
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

    /// Those of them that have no place in flight.
    pub(super) fn held_free(&self) -> usize {
        self.held_free
    }

    /// A host is told of in the log of an earlier run, before its URLs are.
    pub(super) fn asked_for_rest(&mut self, host: &str) {
        self.doubtful.note_host(host);
    }

    /// A URL of an earlier run ended with a response, or because nobody answered. URLs come in the order in which they were
    /// found, which is nearly that in which a host was asked for them: what the last one says holds.
    pub(super) fn was_answered(&mut self, url: &Url, was_answered: Option<bool>) {
        match was_answered {
            Some(true) if !self.doubtful.contains_host(url.host()) => self.answered.note(url),
            Some(false) => self.answered.forget(url),
            Some(true) | None => {}
        }
    }

    /// All of an earlier run is known.
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
            // The next run tries it anew.
            Phase::Drain => Blame::Outage,
            Phase::Abort | Phase::Close => Blame::Counts,
            Phase::Run if is_down || down_until > Instant::ZERO && began <= down_until => Blame::Outage,
            Phase::Run => Blame::Open,
        }
    }

    /// Whether any ended so long ago that it counts.
    pub(super) fn has_cleared(&self) -> bool {
        let Cleared { sites, names } = self.cleared;
        let is_cleared = |held: &VecDeque<HeldEnd>, until| held.front().is_some_and(|held| held.ended <= until);
        is_cleared(&self.held_names, sites.min(names)) || is_cleared(&self.held, sites)
    }

    /// The next that ended so long ago that it counts.
    fn take_cleared(&mut self) -> Option<HeldEnd> {
        let Cleared { sites, names } = self.cleared;
        let take = |held: &mut VecDeque<HeldEnd>, until| {
            if held.front()?.ended <= until { held.pop_front() } else { None }
        };
        let taken = take(&mut self.held_names, sites.min(names)).or_else(|| take(&mut self.held, sites));
        self.is_held_no_more(taken)
    }

    /// The next that is held, of lookups alone or of all.
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
    /// Whether what job `id` came to is held back or waits to be read, with its response if there is one.
    pub fn holds_back(&self, id: u64) -> bool {
        self.network.held_jobs.contains(&id) || self.readings.has_waiting(id)
    }

    /// What the breaker asks for.
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

    /// Takes what sites have said since the last call, oldest first.
    pub fn take_site_ends(&mut self) -> impl Iterator<Item = SiteEnd> {
        self.network.site_ends.drain(..)
    }

    /// Failures of this time and before count.
    pub(super) fn clear(&mut self, now: Instant, cleared: Cleared) {
        self.network.cleared = cleared;
        self.count_cleared(now);
    }

    /// Counts what is cleared, as much as fits into a turn: each may be the last try of its URL, of which there is a record.
    /// At the end nothing else has a turn.
    pub(super) fn count_cleared(&mut self, now: Instant) {
        let count_max = if self.phase == Phase::Run { CLEARED_MAX } else { usize::MAX };
        for _ in 0..count_max {
            let Some(held) = self.network.take_cleared() else { break };
            // For how long it was held says nothing of its host.
            let job = FetchJob { ended: Some(held.ended), ..(*held.job).clone() };
            self.count(now, &job, held.result);
        }
    }

    /// An outage begins or ends, or keeps something else from us. What is held of that, and what ends while it lasts or began before
    /// its end, is undone.
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

    /// What is held, or only what is of names, is tried again, as if it had not been tried.
    pub(super) fn undo_held(&mut self, now: Instant, of_names_alone: bool) {
        while let Some(held) = self.network.take_held(of_names_alone) {
            self.undo(now, &held.job, &held.result);
        }
    }

    /// So many things that wait are to be tried.
    pub(super) fn probe(&mut self, count: usize) {
        let Network { out_of_reach, probes, .. } = &mut self.network;
        if *out_of_reach > OutOfReach::Nothing {
            probes.want(count);
        }
        if *out_of_reach == OutOfReach::Names {
            self.frontier.limit_lookups(Some(probes.wanted));
        }
    }

    /// Brings a host to the front that answered the last time, or that answered before, if any is ready: it says more of the
    /// network than one that may be dead.
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

    /// A job ended: what it says of the network, and what becomes of it.
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
            // Also where it was cut off, or told to end.
            Ok(_) | Err(Failure::Hurried) => SiteReply::Answered,
            // They say nothing of the site, or both.
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

    /// Writes down why fetching waits, once an outage, or that it does not any more: who reads the logs is to know.
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

    /// A failure that is no try of its host, or is not known to be one.
    fn uncounted(&self, now: Instant, job: &FetchJob, failure: Failure) -> Trouble {
        let origin = (job.kind != JobKind::Resolve).then(|| (job.url.scheme(), job.url.port()));
        let detail = job.told.clone().unwrap_or_default();
        let (cause, seconds) = (Cause::Failure(failure), self.clock.seconds(now));
        Trouble { asked: job.kind, origin, cause, detail, tries: 0, tries_max: 0, seconds, again: None }
    }

    /// How a job ended counts.
    fn count(&mut self, now: Instant, job: &FetchJob, result: Result<Box<Transaction>, Failure>) {
        if result.is_err() && may_be_outage(&result) && !matches!(result, Err(Failure::ProxyUnreachable)) {
            self.network.answered.forget(&job.url);
        }
        self.conclude(now, job, result);
    }

    /// A job is to be tried again, as if it had not been tried.
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

/// Whether an outage could explain it: no answer, or one that was cut off.
fn may_be_outage(result: &Result<Box<Transaction>, Failure>) -> bool {
    match result {
        Ok(transaction) => {
            transaction.reset || matches!(transaction.response.truncated, Some(Truncated::Time | Truncated::Disconnect))
        }
        Err(failure) => failure.is_transient() && *failure != Failure::Aborted,
    }
}

/// What a job takes whose failure is held.
fn held_bytes(job: &FetchJob) -> usize {
    job.url.as_str().len() + HELD_BYTES
}

/// Failures that are counted in one turn: four milliseconds at worst.
const CLEARED_MAX: usize = 256;
/// So many failures that are held need no place, of so many bytes: more than come between two looks of the breaker.
const HELD_FREE_MAX: usize = 4_096;
pub(crate) const HELD_FREE_BYTES_MAX: usize = 8 << 20;
/// A job without its URL, with its addresses and what holds it.
const HELD_BYTES: usize = 1_024;
/// Ends of requests that are kept for the breaker, between two of its looks.
const SITE_ENDS_MAX: usize = 32;
/// Probes of a shard at once: one of them may wait for a dead host.
pub(super) const PROBES_MAX: usize = 3;
