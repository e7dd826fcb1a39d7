//! URLs that wait behind all others, and hosts that have nothing else.
//!
//! Decides: a link that its page advises against (`links.nofollow`, `links.from_noindex`) is *deferred*: it stands behind all
//! other URLs of its host, and a host that has nothing else waits while any host of the crawl has ([`UsualWork`]). So are those of a site that has had
//! its allowance, and poor ones, which stand behind the rest ([`Band`]). But of all pages a small share (`frontier.deferred_share`) may
//! be deferred ones, so that what is worth more than it seems comes to light; and they need not wait where no other page has begun
//! for [`PATIENCE`], or where hosts with nothing else hold all places of the host table.
//! Where shards cross over (`exchange.mode`), URLs of other shards are deferred, and all deferred ones wait until the shard has
//! nothing else, whatever others have, or until they keep others out.
//! Where pages are not what is counted out (no `crawl.pages_max`, no budget of a site), those that are not poor need not wait for hosts
//! that rest either: they begin whenever no host is ready, which costs nobody anything. Poor ones would fill the disk.
//! Why not dropped: the advice is for search engines, and is often given for the only way to good pages. What waits behind
//! better URLs costs nobody anything, and a crawl without a budget still gets everything.
//! Invariants: a host stands in each row once at most. Counts URLs from their offer to their end.
//! Limits: of a damaged block of the spool nobody knows how many URLs were deferred: they count as if none had been.
//! Leaves to others: which links are deferred (`page`).

use std::collections::VecDeque;
use std::sync::Arc;

use super::Frontier;
use super::backlog::Band;
use super::calendar::Event;
use super::host::State;
use super::usual_work::{OwnUsualWork, UsualWork};
use super::waiting::Ticket;
use crate::hops::Hops;
use crate::outcome::HostId;
use crate::time::{Duration, Instant};

/// In which of the two rows a host stands.
pub type Rows = [bool; 2];

/// Deferred URLs of a shard.
#[derive(Debug)]
pub struct Deferred {
    /// Part of all pages that may be deferred ones, in hundredths.
    share: u64,
    /// How many wait or are being fetched.
    urls: u64,
    /// Hosts that have nothing else, by the band of their next URL; some have got something meanwhile.
    rows: [VecDeque<HostId>; 2],
    /// Pages begun.
    begun: u64,
    /// Those of them that were deferred, and begun while others waited.
    begun_early: u64,
    /// When the last page began that was not, or when the first such URL came.
    last_other: Option<Instant>,
    /// What other shards have.
    all: Arc<UsualWork>,
    own: OwnUsualWork,
    /// When one was looked for and might not begin.
    refused_at: Instant,
}

impl Deferred {
    /// None yet; `share` hundredths of all pages may be deferred ones.
    pub fn new(share: u32) -> Deferred {
        Deferred {
            share: u64::from(share),
            urls: 0,
            rows: Default::default(),
            begun: 0,
            begun_early: 0,
            last_other: None,
            all: Arc::default(),
            own: OwnUsualWork::default(),
            refused_at: Instant::ZERO,
        }
    }

    /// The same, of one of several shards.
    pub fn among(self, all: Arc<UsualWork>) -> Deferred {
        Deferred { all, ..self }
    }

    /// How many URLs wait or are being fetched.
    pub fn urls(&self) -> u64 {
        self.urls
    }

    /// A URL was offered.
    pub fn came(&mut self, now: Instant, ticket: Ticket) {
        if is_deferred(ticket.depth) {
            self.urls += 1;
        } else {
            self.last_other.get_or_insert(now);
        }
    }

    /// A URL with these bits of `Hops` is over.
    pub fn is_over(&mut self, depth: u16) {
        self.urls = self.urls.saturating_sub(u64::from(is_deferred(depth)));
    }

    /// A page began that is not deferred.
    pub fn began(&mut self, now: Instant) {
        self.begun += 1;
        self.last_other = Some(now);
        self.own.began(now, &self.all);
    }

    /// A deferred one did, `early` or not: it has when it is taken from its queue, as its host may have to be looked up first.
    pub fn began_deferred(&mut self, early: bool) {
        self.begun += 1;
        self.begun_early += u64::from(early);
    }

    /// It goes back into a queue.
    pub fn is_back(&mut self, early: bool) {
        self.begun = self.begun.saturating_sub(1);
        self.begun_early = self.begun_early.saturating_sub(u64::from(early));
    }

    /// In which order a host takes its URLs. A host that never runs out of others takes one of those that wait behind them where the
    /// share has room, for it would never come to them: now of the poor ones, and now of those above them.
    pub fn order(&self) -> [Band; 3] {
        // Not the first of all pages, as it may be where there is nothing else to begin.
        let is_due = (self.begun_early + 1) * 100 <= self.share * self.begun;
        match (is_due, self.begun_early.is_multiple_of(2)) {
            (false, _) => Band::ORDER,
            (true, true) => [Band::Poor, Band::Deferred, Band::Usual],
            (true, false) => [Band::Deferred, Band::Poor, Band::Usual],
        }
    }

    /// Whether the share of deferred URLs has room for one.
    fn has_room(&self) -> bool {
        self.begun_early * 100 < self.share * self.begun
    }

    /// Whether one may begin while others wait.
    fn may_begin(&self, now: Instant) -> bool {
        self.has_room() || self.share >= 100 || self.last_other().is_none_or(|last| now.since(last) >= PATIENCE)
    }

    fn last_other(&self) -> Option<Instant> {
        self.last_other.max(self.all.last())
    }
}

impl Frontier {
    /// The last band of which a URL may be taken from its queue.
    pub(super) fn last_band(&self, now: Instant) -> Band {
        let has_others = self.queued > self.deferred.urls || self.deferred.own.have_others(&self.deferred.all);
        let keep_others_out = self.hosts.active() >= self.settings.hosts_max && !self.outside.is_empty();
        match () {
            () if keep_others_out => Band::Poor,
            () if self.settings.crosses_over && self.queued > self.deferred.urls => Band::Usual,
            () if self.settings.crosses_over || !has_others || self.deferred.may_begin(now) => Band::Poor,
            () if self.is_idle_time() => Band::Deferred,
            () => Band::Usual,
        }
    }

    /// Whether a deferred URL takes nothing from anybody.
    pub(super) fn is_idle_time(&self) -> bool {
        self.settings.is_unbounded && !self.ready.is_ready()
    }

    /// A host has nothing but deferred URLs, and none of them may be taken.
    pub(super) fn defer(&mut self, id: HostId) {
        self.hosts.set_state(id, State::Deferred);
        let row = row_of(self.hosts[id].backlog.first_band());
        self.stand_in(id, row);
    }

    /// It has something else to do at `at`. It may be deferred after each page until then, so it is noted once.
    pub(super) fn look_again(&mut self, id: HostId, now: Instant, at: Instant) {
        let (noted, at) = (self.hosts[id].looks_again_at, at.max(now));
        if noted <= now || at < noted {
            self.hosts[id].looks_again_at = at;
            self.calendar.push(at, Event::Host(id));
        }
    }

    /// A host that stands in a row got a deferred URL, maybe one of a better band.
    pub(super) fn is_deferred_still(&mut self, id: HostId, band: Band) {
        self.stand_in(id, row_of(Some(band)));
    }

    fn stand_in(&mut self, id: HostId, row: usize) {
        if !std::mem::replace(&mut self.hosts[id].deferred_rows[row], true) {
            self.deferred.rows[row].push_back(id);
        }
    }

    /// Makes one of them ready, if it may take one; whether there was one, or may be.
    pub(super) fn call_deferred(&mut self, now: Instant) -> bool {
        for _ in 0..LOOKS_MAX {
            let Some(row) = self.next_row(self.last_band(now)) else {
                self.deferred.refused_at = now;
                return false;
            };
            let Some(id) = self.deferred.rows[row].pop_front() else { return false };
            self.hosts[id].deferred_rows[row] = false;
            if self.hosts[id].state() == State::Deferred {
                self.make_ready(id);
                return true;
            }
        }
        true
    }

    /// The row to take a host from, if URLs up to this band may be taken: in turns, where both have some.
    fn next_row(&self, last: Band) -> Option<usize> {
        let rows = match last {
            Band::Usual => &[][..],
            Band::Deferred => &[0],
            Band::Poor if self.deferred.begun_early.is_multiple_of(2) => &[1, 0],
            Band::Poor => &[0, 1],
        };
        rows.iter().copied().find(|row| !self.deferred.rows[*row].is_empty())
    }

    /// When to look for one; `Instant::ZERO` for now.
    pub(super) fn next_deferred(&self) -> Option<Instant> {
        if self.deferred.rows.iter().all(VecDeque::is_empty) {
            return None;
        }
        match self.deferred.last_other() {
            // It is looked for anyway when the shard's last other URL has ended.
            Some(_) if self.settings.crosses_over && self.last_band(self.deferred.refused_at) == Band::Usual => None,
            // Nobody says when other shards have no more.
            Some(last) if self.next_row(self.last_band(last)).is_none() => {
                Some((last + PATIENCE).min(self.deferred.refused_at + LOOK_PAUSE))
            }
            _ => Some(Instant::ZERO),
        }
    }

    /// Tells the other shards whether this one has URLs that are not deferred.
    pub(super) fn tell_usual_work(&mut self) {
        let has_some = self.queued > self.deferred.urls;
        self.deferred.own.has(has_some, &self.deferred.all);
    }
}

/// The row of hosts whose next URL is of this band.
fn row_of(band: Option<Band>) -> usize {
    usize::from(band == Some(Band::Poor))
}

/// Whether a URL with these bits of `Hops` waits behind all others.
pub fn is_deferred(depth: u16) -> bool {
    Hops::from_bits(depth).is_deferred()
}

/// Hosts looked at in one step.
const LOOKS_MAX: usize = 64;
/// Between two looks at what other shards have.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// Deferred URLs wait so long at most while no other page begins.
const PATIENCE: Duration = Duration::from_secs(10);
