//! Concurrent requests of one host whose line (`politeness.host`) allows more than one.
//!
//! Decides: such a host *visits* its site, its address and its operator. The first request claims them, others join
//! the visit while fewer are in flight than the line allows, and the last to end releases the claims. So for
//! all other hosts a visit is one long request: none of their requests runs during it, and their delays count from
//! its end. Within it only the delay of the line applies, as agreed for this host. If the host has another address
//! than the visit's, or another operator, it waits for the visit's end.
//! A request does not join a visit that others wait for, nor one that has lasted [`VISIT_MAX`], as hosts of other
//! shards may wait for it: such a visit ends with its requests in flight.
//! A name lookup or a robots.txt request may start while pages are in flight, but nothing starts while it runs: its
//! answer decides about everything that follows. If an old address serves meanwhile, the lookup runs alongside all
//! other jobs ([`super::resolution`]).
//! Invariants: a visit's claims are granted once and released once, when none of its requests is in flight. No request
//! of it outlives its claim.
//! Leaves to others: how many may be in flight, and when the next may begin ([`crate::politeness::HostPace`]).

use crate::job::{FetchJob, JobKind};
use crate::politeness::{ClaimKey, Claims, HOLD_SLACK, Ledger};
use ringcrawl_base::time::{Duration, Instant};

/// The jobs of a host in flight.
#[derive(Debug, Default)]
pub struct UnderWay {
    jobs: u8,
    /// One of them looks the name up or fetches a robots.txt.
    preparing: Option<JobKind>,
    /// The start of a name lookup during which the old address may serve.
    refreshing: Option<Instant>,
    visit: Option<Box<Visit>>,
}

/// Claims that a host's requests share.
#[derive(Debug)]
struct Visit {
    claims: Claims,
    began: Instant,
    hold_until: Instant,
    /// In flight.
    requests: u8,
    met_interstitial: bool,
}

impl UnderWay {
    /// Jobs in flight.
    pub fn jobs(&self) -> usize {
        usize::from(self.jobs) + usize::from(self.refreshing.is_some())
    }

    /// The start of a name lookup that runs alongside all other jobs.
    pub fn refreshing(&self) -> Option<Instant> {
        self.refreshing
    }

    /// The request that precedes a page.
    pub fn preparing(&self) -> Option<JobKind> {
        self.preparing
    }

    /// Whether another job may begin if `max` are allowed.
    pub fn has_room(&self, max: u8) -> bool {
        self.jobs == 0 || self.jobs < max && self.preparing.is_none()
    }

    /// A job of this kind begins.
    pub fn begins(&mut self, kind: JobKind) {
        self.jobs += 1;
        self.preparing = Some(kind).filter(|kind| *kind != JobKind::Page);
    }

    /// The lookup that began at `now` runs alongside all other jobs.
    pub fn refreshes(&mut self, now: Instant) {
        self.ends(JobKind::Resolve);
        self.refreshing = Some(now);
    }

    /// A job of this kind has ended.
    pub fn ends(&mut self, kind: JobKind) {
        if kind == JobKind::Resolve && self.refreshing.take().is_some() {
            return;
        }
        debug_assert!(self.jobs > 0, "a job ends that did not begin");
        self.jobs = self.jobs.saturating_sub(1);
        self.preparing = self.preparing.filter(|_| kind == JobKind::Page);
    }

    /// Whether the claims of the host are granted already.
    pub fn is_visiting(&self) -> bool {
        self.visit.is_some()
    }

    /// Whether a request that needs these claims must wait for the end of the visit; `is_wanted` tells whether another
    /// host waits for a turn.
    pub fn must_end_visit(&self, now: Instant, claims: &Claims, is_wanted: impl Fn(ClaimKey) -> bool) -> bool {
        let Some(visit) = &self.visit else { return false };
        let is_for_others = now.since(visit.began) >= VISIT_MAX && claims.keys().next().is_some();
        is_for_others || visit.claims != *claims || claims.keys().any(is_wanted)
    }

    /// A request begins: its claims are granted until `hold_until`, or it joins the visit that has them.
    pub fn joins_visit(&mut self, now: Instant, claims: &Claims, hold_until: Instant) {
        let new = || Box::new(Visit { claims: *claims, began: now, hold_until, requests: 0, met_interstitial: false });
        self.visit.get_or_insert_with(new).requests += 1;
    }

    /// A request has ended; `met_interstitial` tells whether its response was one. The last one releases
    /// the claims.
    pub fn end_request(&mut self, ledger: &Ledger, now: Instant, job: &FetchJob, met_interstitial: bool) {
        let Some(of_several) = &mut self.visit else {
            return job.claims.release(ledger, now, job.deadline + HOLD_SLACK, met_interstitial);
        };
        of_several.requests -= 1;
        of_several.met_interstitial |= met_interstitial;
        if of_several.requests == 0
            && let Some(visit) = self.visit.take()
        {
            visit.claims.release(ledger, now, visit.hold_until, visit.met_interstitial);
        }
    }
}

/// After this time no request joins a visit: others wait for its end.
pub const VISIT_MAX: Duration = Duration::from_secs(10);
