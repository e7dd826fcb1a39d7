//! URLs that wait behind all others, and hosts that have nothing else.
//!
//! Decides: a link that its page advises against (`links.nofollow`, `links.from_noindex`) is *deferred*: it stands behind all
//! other URLs of its host, and a host that has nothing else waits while any host of the shard has. But of all pages a
//! small share (`frontier.deferred_share`) may be deferred ones, so that what is worth more than it seems comes to light;
//! and they need not wait where no other page has begun for [`PATIENCE`], or where hosts with nothing else hold all places of
//! the host table.
//! Why not dropped: the advice is for search engines, and is often given for the only way to good pages. What waits behind
//! better URLs costs nobody anything, and a crawl without a budget still gets everything.
//! Invariants: a host stands in the row once. Counts URLs from their offer to their end.
//! Limits: of a damaged block of the spool nobody knows how many URLs were deferred: they count as if none had been.
//! Leaves to others: which links are deferred (`page`).

use std::collections::VecDeque;

use super::Frontier;
use super::backlog::Band;
use super::host::State;
use super::waiting::Ticket;
use crate::hops::Hops;
use crate::outcome::HostId;
use crate::time::{Duration, Instant};

/// Deferred URLs of a shard.
#[derive(Debug)]
pub struct Deferred {
    /// Part of all pages that may be deferred ones, in hundredths.
    share: u64,
    /// How many wait or are being fetched.
    urls: u64,
    /// Hosts that have nothing else; some have got something meanwhile.
    hosts: VecDeque<HostId>,
    /// Pages begun.
    begun: u64,
    /// Those of them that were deferred.
    begun_deferred: u64,
    /// When the last page began that was not, or when the first such URL came.
    last_other: Option<Instant>,
}

impl Deferred {
    /// None yet; `share` hundredths of all pages may be deferred ones.
    pub fn new(share: u32) -> Deferred {
        Deferred {
            share: u64::from(share),
            urls: 0,
            hosts: VecDeque::new(),
            begun: 0,
            begun_deferred: 0,
            last_other: None,
        }
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

    /// A page began, whose URL has these bits of `Hops`; a deferred one has when it is taken from its queue, as its host may have to be
    /// looked up first.
    pub fn began(&mut self, now: Instant, depth: u16) {
        self.begun += 1;
        if is_deferred(depth) {
            self.begun_deferred += 1;
        } else {
            self.last_other = Some(now);
        }
    }

    /// One that was taken from its queue goes back into one.
    pub fn is_back(&mut self) {
        self.begun = self.begun.saturating_sub(1);
        self.begun_deferred = self.begun_deferred.saturating_sub(1);
    }

    /// In which order a host takes its URLs. A host that never runs out of others takes one of those that wait behind them where the
    /// share has room, for it would never come to them: now of the poor ones, and now of those above them.
    pub fn order(&self) -> [Band; 3] {
        // Not the first of all pages, as it may be where there is nothing else to begin.
        let is_due = (self.begun_deferred + 1) * 100 <= self.share * self.begun;
        match (is_due, self.begun_deferred.is_multiple_of(2)) {
            (false, _) => Band::ORDER,
            (true, true) => [Band::Poor, Band::Deferred, Band::Usual],
            (true, false) => [Band::Deferred, Band::Poor, Band::Usual],
        }
    }

    /// Whether the share of deferred URLs has room for one.
    fn has_room(&self) -> bool {
        self.begun_deferred * 100 < self.share * self.begun
    }

    /// Whether one may begin while others wait.
    fn may_begin(&self, now: Instant) -> bool {
        self.has_room() || self.share >= 100 || self.last_other.is_none_or(|last| now.since(last) >= PATIENCE)
    }
}

impl Frontier {
    /// Whether a deferred URL may be taken from its queue.
    pub(super) fn may_take_deferred(&self, now: Instant) -> bool {
        let are_alone = self.queued <= self.deferred.urls;
        are_alone
            || self.hosts.active() >= self.settings.hosts_max && !self.outside.is_empty()
            || self.deferred.may_begin(now)
    }

    /// A host has nothing but deferred URLs, and none of them may be taken.
    pub(super) fn defer(&mut self, id: HostId) {
        self.hosts.set_state(id, State::Deferred);
        if !std::mem::replace(&mut self.hosts[id].is_deferred, true) {
            self.deferred.hosts.push_back(id);
        }
    }

    /// Makes one of them ready, if it may take one; whether there was one, or may be.
    pub(super) fn call_deferred(&mut self, now: Instant) -> bool {
        for _ in 0..LOOKS_MAX {
            if self.deferred.hosts.is_empty() || !self.may_take_deferred(now) {
                return false;
            }
            let Some(id) = self.deferred.hosts.pop_front() else { return false };
            self.hosts[id].is_deferred = false;
            if self.hosts[id].state() == State::Deferred {
                self.make_ready(id);
                return true;
            }
        }
        true
    }

    /// When to look for one; `Instant::ZERO` for now.
    pub(super) fn next_deferred(&self) -> Option<Instant> {
        if self.deferred.hosts.is_empty() {
            return None;
        }
        match self.deferred.last_other {
            Some(last) if !self.may_take_deferred(last) => Some(last + PATIENCE),
            _ => Some(Instant::ZERO),
        }
    }
}

/// Whether a URL with these bits of `Hops` waits behind all others.
pub fn is_deferred(depth: u16) -> bool {
    Hops::from_bits(depth).is_deferred()
}

/// Hosts looked at in one step.
const LOOKS_MAX: usize = 64;
/// Deferred URLs wait so long at most while no other page begins.
const PATIENCE: Duration = Duration::from_secs(10);
