//! How hosts compete for the pages of a crawl that has so many alone (`crawl.pages_max`).
//!
//! Decides: a host whose next URL is of a lowered kind, or whose site is over its allowance, has one page while each of its rivals has
//! as many as [`PAGES`] says. Its rivals are the hosts that can be asked at that time, and those that are being
//! asked for pages of the whole weight and have answered before: one that is in its delay, at rest or dead holds it up for nothing. Nor
//! does it wait for longer than [`PATIENCE`], or while no page is begun for [`STALLED`].
//! Without `crawl.pages_max` no host waits for another: politeness spaces them, and what one has the others have no less.
//! Invariants: a host stands in one row, once; its entry is stale as soon as it does something else.
//! Limits: a shard knows its own hosts alone, so one that has nothing but traps has no rivals. A page of a sixteenth
//! has its turn after [`PATIENCE`] more often than after so many pages. Rows hold what came within [`PATIENCE`], as
//! stale entries go when they are first.

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
    /// Of a quarter, or over an allowance, and of a sixteenth; in the order in which they came.
    rows: [VecDeque<Waiting>; 2],
    /// Pages of the whole weight that were begun.
    pages: u64,
    /// Those of them that have not ended, of hosts that have answered before.
    rivals: u64,
    last_page: Instant,
}

#[derive(Debug)]
struct Waiting {
    id: HostId,
    /// How many pages had been begun when it came.
    pages: u64,
}

/// How a host leaves pages to others.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    /// How many pages had been begun when it came.
    pages: u64,
    since: Instant,
    /// Then it is looked at again.
    until: Instant,
    /// It has left enough.
    is_over: bool,
}

impl Leave {
    /// Of a host that waited for its turn elsewhere.
    pub fn over(now: Instant) -> Leave {
        Leave { pages: 0, since: now, until: now, is_over: true }
    }

    /// Whether a host waits until `at` for that.
    pub fn is_until(&self, at: Instant) -> bool {
        !self.is_over && self.until == at
    }
}

impl Competition {
    /// Takes the first host that has left enough pages to so many rivals, of those that still wait.
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
        // It stands among those that can be asked itself.
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

    /// Hosts that are being asked for pages of the whole weight, and those that can be asked now.
    fn rivals(&self) -> u64 {
        self.competition.rivals + u64::from(self.hosts.waits().of(Wait::InFlight))
    }

    /// A page of a host is begun.
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

    /// One has ended.
    pub(super) fn page_ended(&mut self, id: HostId) {
        let host = &mut self.hosts[id];
        if host.rival_pages > 0 {
            host.rival_pages -= 1;
            self.competition.rivals -= 1;
        }
    }
}

/// So many pages each rival has for one of a host of the row. The squares of a kind's turns among those of its host: of 1,000 hosts
/// with 180 of them traps that never end, these had 4.5 % of 200,000 pages by their turns alone.
const PAGES: [u64; 2] = [16, 256];
/// A host waits no longer than that for its rivals.
const PATIENCE: Duration = Duration::from_secs(10);
/// Rivals that begin no page for so long are none.
const STALLED: Duration = Duration::from_secs(1);
