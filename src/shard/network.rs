//! What a shard sees of the network, and the failures for which it may be to blame.
//!
//! Decides: a failure that an outage could explain is held back: its job stays in flight until the breaker
//! (`control::Breaker`) says that failures of its time count, or that there is an outage. What an outage explains is
//! undone: it ends as [`Failure::Aborted`], which costs neither URL nor host a try. So is a response that was cut off.
//! While there is an outage nothing is fetched but one probe at a time: the next thing that waits.
//! Invariants: what is held ends once; while an outage lasts nothing is held.
//! Limits: what is held keeps its place among the fetches or lookups in flight; [`SITE_ENDS_MAX`] ends are kept for the
//! breaker, the newest.

use std::collections::VecDeque;
use std::rc::Rc;

use super::input::Cleared;
use super::{Phase, Shard};
use crate::outcome::{Failure, FetchJob, Outcome, Truncated};
use crate::time::Instant;
use crate::transaction::Transaction;

/// How a request ended, as evidence of whether the network works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SiteEnd {
    /// A hash of the site.
    pub site: u64,
    /// When the request began.
    pub began: Instant,
    /// How it ended.
    pub reply: SiteReply,
}

/// Whether a site answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiteReply {
    /// It did, whatever it said.
    Answered,
    /// It did not, and its host had answered the last time.
    FellSilent,
    /// It did not, and its host had not answered before.
    Silent,
}

/// What a shard counts of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkReport {
    /// Answers of name servers, whatever they say.
    pub dns_heard: u64,
    /// Queries of lookups that no answer came to. Those of probes are not counted.
    pub dns_silent: u64,
    /// Requests for which the proxy could not be reached.
    pub proxy_unreachable: u64,
    /// When the oldest failure ended that is held; `NEVER`: none is.
    pub held_since: Instant,
    /// The same for names that no server answered for.
    pub names_held_since: Instant,
    /// Whether a host has something to do, now or later.
    pub has_work: bool,
}

/// The network as this shard knows it.
#[derive(Debug, Default)]
pub(super) struct Network {
    held: VecDeque<HeldEnd>,
    /// There is an outage.
    pub(super) is_down: bool,
    /// When the last outage was over.
    down_until: Instant,
    cleared: Cleared,
    /// The probe of an outage.
    pub(super) probe: Probe,
    site_ends: VecDeque<SiteEnd>,
    pub(super) proxy_unreachable: u64,
}

/// The one thing that is tried during an outage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Probe {
    #[default]
    None,
    /// The next job may start.
    Wanted,
    /// This job is the probe.
    InFlight(u64),
}

/// A job that ended, perhaps because of an outage.
#[derive(Debug)]
struct HeldEnd {
    ended: Instant,
    job: Rc<FetchJob>,
    result: Result<Box<Transaction>, Failure>,
}

impl HeldEnd {
    fn is_of_names(&self) -> bool {
        matches!(self.result, Err(Failure::DnsTimeout))
    }
}

/// What becomes of a failure that an outage could explain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Blame {
    /// It is known that an outage does not: it counts.
    Peer,
    /// An outage does.
    Outage,
    /// It is not known yet.
    Open,
}

impl Network {
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    fn note(&mut self, end: SiteEnd) {
        if self.site_ends.len() >= SITE_ENDS_MAX {
            self.site_ends.pop_front();
        }
        self.site_ends.push_back(end);
    }

    fn blame(&self, phase: Phase, began: Instant) -> Blame {
        match phase {
            // The next run tries it anew.
            Phase::Drain => Blame::Outage,
            Phase::Abort | Phase::Close => Blame::Peer,
            Phase::Run if self.is_down || self.down_until > Instant::ZERO && began <= self.down_until => Blame::Outage,
            Phase::Run => Blame::Open,
        }
    }

    /// The next that ended so long ago that it counts.
    fn take_cleared(&mut self) -> Option<HeldEnd> {
        let Cleared { sites, names } = self.cleared;
        let place =
            self.held.iter().position(|held| held.ended <= sites && (held.ended <= names || !held.is_of_names()))?;
        self.held.remove(place)
    }
}

impl Shard {
    /// What the breaker asks for.
    pub fn network_report(&self) -> NetworkReport {
        let held = &self.network.held;
        NetworkReport {
            dns_heard: self.lookups.heard(),
            dns_silent: self.lookups.silent(),
            proxy_unreachable: self.network.proxy_unreachable,
            held_since: held.front().map_or(Instant::NEVER, |held| held.ended),
            names_held_since: held.iter().find(|held| held.is_of_names()).map_or(Instant::NEVER, |held| held.ended),
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
        while let Some(held) = self.network.take_cleared() {
            self.conclude(now, &held.job, held.result);
        }
    }

    /// An outage begins or ends. What is held, and what ends while it lasts or began before its end, is undone.
    pub(super) fn set_outage(&mut self, now: Instant, is_down: bool) {
        if self.network.is_down && !is_down {
            self.network.down_until = now;
            self.network.probe = Probe::None;
        }
        self.network.is_down = is_down;
        if is_down {
            self.undo_held(now);
            self.abort_lookups(now);
        }
    }

    /// What is held is tried again, as if it had not been tried.
    pub(super) fn undo_held(&mut self, now: Instant) {
        while let Some(held) = self.network.held.pop_front() {
            self.conclude(now, &held.job, Err(Failure::Aborted));
        }
    }

    /// Something that waits is to be tried.
    pub(super) fn probe(&mut self) {
        if self.network.is_down && self.network.probe == Probe::None {
            self.network.probe = Probe::Wanted;
        }
    }

    /// The probe ended, if `job` is it. After its name its page is fetched.
    pub(super) fn probed(&mut self, job: &FetchJob, outcome: Option<&Outcome>) {
        if self.network.probe == Probe::InFlight(job.id) {
            let goes_on = matches!(outcome, Some(Outcome::Resolved { .. } | Outcome::NoAddress { .. }));
            self.network.probe = if goes_on { Probe::Wanted } else { Probe::None };
        }
    }

    /// A job ended: what it says of the network.
    pub(super) fn note_site(&mut self, job: &FetchJob, began: Instant, result: &Result<Box<Transaction>, Failure>) {
        self.network.proxy_unreachable += u64::from(matches!(result, Err(Failure::ProxyUnreachable)));
        if may_be_outage(result) && self.network.blame(self.phase, began) == Blame::Outage {
            return;
        }
        let reply = match result {
            // They say nothing of the site, or both.
            Err(Failure::AddressForbidden | Failure::Aborted | Failure::ProxyUnreachable) => return,
            _ if !may_be_outage(result) => SiteReply::Answered,
            Ok(_) => return,
            _ if self.frontier.is_well(job.host) => SiteReply::FellSilent,
            _ => SiteReply::Silent,
        };
        let site = self.sites.of(job.url.host()).hash;
        self.network.note(SiteEnd { site, began, reply });
    }

    /// A job ended in a way that an outage could explain, or any other.
    pub(super) fn hold_or_conclude(
        &mut self,
        now: Instant,
        job: Rc<FetchJob>,
        began: Instant,
        result: Result<Box<Transaction>, Failure>,
    ) {
        if !may_be_outage(&result) {
            return self.conclude(now, &job, result);
        }
        match self.network.blame(self.phase, began) {
            Blame::Peer => self.conclude(now, &job, result),
            Blame::Outage => self.conclude(now, &job, Err(Failure::Aborted)),
            Blame::Open => self.network.held.push_back(HeldEnd { ended: now, job, result }),
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

/// Ends of requests that are kept for the breaker, between two of its looks.
const SITE_ENDS_MAX: usize = 32;
