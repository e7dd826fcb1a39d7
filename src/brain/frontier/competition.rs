//! How hosts compete for the pages of a crawl with a page limit (`crawl.pages_max`).
//!
//! Decides: a host whose next URL is of a lowered kind, or whose site is over its allowance, gets one page while each
//! of its rivals gets as many as [`PAGES`] says. Its rivals are the hosts that can be queried at that time, and those
//! that have requests in flight for pages of the whole weight and have answered before. A host in its delay, at rest
//! or dead would hold it up for nothing. It does not wait for longer than [`PATIENCE`], or while no page begins for
//! [`STALLED`].
//! Without `crawl.pages_max` no host waits for another: politeness spaces them, and one host's pages do not reduce
//! the others'.
//! Invariants: a host is in one row, once; its entry is stale as soon as it does something else.
//! Limits: a shard knows only its own hosts, so one that has nothing but traps has no rivals. A page of a sixteenth
//! gets its turn after [`PATIENCE`] more often than after its number of pages. Rows hold the hosts that came within
//! [`PATIENCE`], as stale entries are removed when they are first.

use std::collections::VecDeque;

use super::Frontier;
use super::host::State;
use crate::job::HostId;
use crate::kinds::Weight;
use crate::waits::Wait;
use ringcrawl_base::time::{Duration, Instant};

/// Hosts that leave pages to others.
#[derive(Debug, Default)]
pub struct Competition {
    /// Hosts with pages of a quarter, or over an allowance; and those with pages of a sixteenth; in order of arrival.
    rows: [VecDeque<Waiting>; 2],
    /// Pages of the whole weight that have begun.
    pages: u64,
    /// Such pages that have not ended, of hosts that have answered before.
    rivals: u64,
    last_page: Instant,
}

#[derive(Debug)]
struct Waiting {
    id: HostId,
    /// The number of pages begun when it came.
    pages: u64,
}

/// How a host leaves pages to others.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    /// The number of pages begun when it came.
    pages: u64,
    since: Instant,
    /// When it is looked at again.
    until: Instant,
    /// It has left enough pages.
    is_over: bool,
}

impl Leave {
    /// For a host that waited for its turn elsewhere.
    pub fn over(now: Instant) -> Leave {
        Leave { pages: 0, since: now, until: now, is_over: true }
    }

    /// Whether a host waits for that until `at`.
    pub fn is_until(&self, at: Instant) -> bool {
        !self.is_over && self.until == at
    }
}

impl Competition {
    /// Takes the first host that still waits and has left enough pages to this many rivals.
    fn pop(&mut self, rivals: u64, waits: impl Fn(&Waiting) -> bool) -> Option<Waiting> {
        for (row, pages) in self.rows.iter_mut().zip(PAGES) {
            let enough = (pages - 1) * rivals;
            while row.front().is_some_and(|first| !waits(first)) {
                row.pop_front();
            }
            if row.front().is_some_and(|first| self.pages - first.pages >= enough) {
                return row.pop_front();
            }
        }
        None
    }
}

impl Frontier {
    /// Whether host `id` leaves its page to others; then it waits.
    pub(super) fn lets_others_first(&mut self, id: HostId, now: Instant) -> bool {
        if !self.settings.has_page_budget {
            return false;
        }
        let host = &self.hosts[id];
        let is_over = self.allowances.is_over(host.site);
        // It counts itself among the hosts that can be queried.
        let rivals = self.rivals().saturating_sub(u64::from(host.state() == State::Ready));
        let row = match host.backlog.current().map(|entry| entry.weight).unwrap_or_default() {
            Weight::Sixteenth => 1,
            Weight::Quarter => 0,
            Weight::Whole if is_over => 0,
            Weight::Whole => return false,
        };
        let (leave, all) = (host.leave, &mut self.competition);
        let is_stalled = now.since(all.last_page) >= STALLED;
        let is_enough = |leave: Leave| leave.is_over || now.since(leave.since) >= PATIENCE;
        if rivals == 0 || is_stalled || leave.is_some_and(is_enough) {
            return false;
        }
        if leave.is_none() {
            all.rows[row].push_back(Waiting { id, pages: all.pages });
            self.allowances.lowered(is_over);
        }
        let until = now + STALLED;
        let (pages, since) = leave.map_or((all.pages, now), |leave| (leave.pages, leave.since));
        self.hosts[id].leave = Some(Leave { pages, since, until, is_over: false });
        self.schedule(id, now, until);
        true
    }

    /// Calls the hosts that have left enough pages to others.
    pub(super) fn call_competitors(&mut self) {
        let rivals = self.rivals();
        let (hosts, competition) = (&self.hosts, &mut self.competition);
        let waits = |of: &Waiting| hosts[of.id].leave.is_some_and(|leave| leave.pages == of.pages && !leave.is_over);
        let called: Vec<HostId> = std::iter::from_fn(|| competition.pop(rivals, waits)).map(|of| of.id).collect();
        for id in called {
            let host = &mut self.hosts[id];
            let Some(leave) = host.leave.as_mut() else { continue };
            leave.is_over = true;
            let until = leave.until;
            if host.state() == State::Waiting(until) {
                self.make_ready(id);
            }
        }
    }

    /// Hosts with requests in flight for pages of the whole weight, and those that can be queried now.
    fn rivals(&self) -> u64 {
        self.competition.rivals + u64::from(self.hosts.waits().of(Wait::InFlight))
    }

    /// A page of a host begins.
    pub(super) fn page_begun(&mut self, id: HostId, weight: Weight, now: Instant) {
        let host = &mut self.hosts[id];
        host.leave = None;
        if self.settings.has_page_budget && weight == Weight::Whole && host.has_answered {
            host.rival_pages += 1;
            self.competition.pages += 1;
            self.competition.last_page = now;
            self.competition.rivals += 1;
        }
    }

    /// A page has ended.
    pub(super) fn page_ended(&mut self, id: HostId) {
        let host = &mut self.hosts[id];
        if host.rival_pages > 0 {
            host.rival_pages -= 1;
            self.competition.rivals -= 1;
        }
    }
}

/// Pages that each rival gets for one of a host in the row. The values are the squares of a kind's turns among those
/// of its host: of 1,000 hosts with 180 of them traps that never end, the traps had 4.5 % of 200,000 pages by their
/// turns alone.
const PAGES: [u64; 2] = [16, 256];
/// Upper bound on a host's wait for its rivals.
const PATIENCE: Duration = Duration::from_secs(10);
/// Rivals that begin no page for this long do not count.
const STALLED: Duration = Duration::from_secs(1);
