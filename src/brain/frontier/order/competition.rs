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

use crate::frontier::hosts::{Host, HostState, HostTable, Leave};
use crate::job::HostId;
use crate::kinds::Weight;
use crate::waits::Wait;
use ringcrawl_base::time::{Duration, Instant};

/// Hosts that leave pages to others.
#[derive(Debug, Default)]
pub struct Competition {
    is_on: bool,
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

impl Competition {
    /// No host waits, and none will unless a page of one host `is_on` the account of all: with a page limit.
    pub fn new(is_on: bool) -> Competition {
        Competition { is_on, ..Competition::default() }
    }

    /// Whether hosts compete.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

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

    /// Whether host `id`, whose site may be over its quota, leaves its page to others. Then returns until when it
    /// waits, and whether it did not before.
    pub fn lets_others_first(
        &mut self,
        now: Instant,
        hosts: &mut HostTable,
        id: HostId,
        is_over: bool,
    ) -> Option<(Instant, bool)> {
        let rivals = self.rivals(hosts);
        let host = &mut hosts[id];
        // It counts itself among the hosts that can be queried.
        let rivals = rivals.saturating_sub(u64::from(host.state() == HostState::Ready));
        let row = match host.backlog.current().map(|entry| entry.weight).unwrap_or_default() {
            Weight::Sixteenth => 1,
            Weight::Quarter => 0,
            Weight::Whole if is_over => 0,
            Weight::Whole => return None,
        };
        let is_stalled = now.since(self.last_page) >= STALLED;
        let is_enough = |leave: Leave| leave.is_over || now.since(leave.since) >= PATIENCE;
        if rivals == 0 || is_stalled || host.leave.is_some_and(is_enough) {
            return None;
        }
        let until = now + STALLED;
        let is_new = host.leave.is_none();
        if is_new {
            self.rows[row].push_back(Waiting { id, pages: self.pages });
        }
        let (pages, since) = host.leave.map_or((self.pages, now), |leave| (leave.pages, leave.since));
        host.leave = Some(Leave { pages, since, until, is_over: false });
        Some((until, is_new))
    }

    /// Ends the leave of hosts that have left enough pages to others; returns those that wait for that.
    pub fn call(&mut self, hosts: &mut HostTable) -> Vec<HostId> {
        let rivals = self.rivals(hosts);
        let waits = |of: &Waiting| hosts[of.id].leave.is_some_and(|leave| leave.pages == of.pages && !leave.is_over);
        let called: Vec<HostId> = std::iter::from_fn(|| self.pop(rivals, waits)).map(|of| of.id).collect();
        let mut end_leave = |id: &HostId| {
            let host = &mut hosts[*id];
            let Some(leave) = host.leave.as_mut() else { return false };
            // A host that came twice is called once.
            let (was_over, until) = (std::mem::replace(&mut leave.is_over, true), leave.until);
            !was_over && host.state() == HostState::Waiting(until)
        };
        called.into_iter().filter(|id| end_leave(id)).collect()
    }

    /// Hosts with requests in flight for pages of the whole weight, and those that can be queried now.
    fn rivals(&self, hosts: &HostTable) -> u64 {
        self.rivals + u64::from(hosts.waits().of(Wait::InFlight))
    }

    /// A page of a host begins.
    pub fn page_begins(&mut self, now: Instant, host: &mut Host, weight: Weight) {
        host.leave = None;
        if self.is_on && weight == Weight::Whole && host.has_answered {
            host.rival_pages += 1;
            self.pages += 1;
            self.last_page = now;
            self.rivals += 1;
        }
    }

    /// A page of a host has ended.
    pub fn page_ended(&mut self, host: &mut Host) {
        if host.rival_pages > 0 {
            host.rival_pages -= 1;
            self.rivals -= 1;
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
