//! Which URLs are worth most: by the links to them, or by the ranks of an earlier crawl.
//!
//! Decides: every URL has a level from 0 to [`TOP_LEVEL`], and URLs of a higher level come first among those of their
//! host. Of the hosts that may have a turn, the one with the best URL comes first ([`super::ready_hosts`]). Within a
//! level URLs keep their order of arrival.
//! By links, a level is a power of two: 2, 4, 8 and so on up to 128 links (Cho, Garcia-Molina, Page, "Efficient
//! crawling through URL ordering", 1998). When a waiting URL gains enough links to raise its level, it is queued a
//! second time, higher; the lower copy is skipped when its turn comes.
//! By ranks, levels are parts of the list: the first 64th, 32nd, and so on.
//! The lanes of lowered kinds ([`super::kind_lanes`]) have no levels.
//! Invariants: each ticket has one turn, however often its URL is queued ([`LinkCounts`]).
//! Limits: a URL for which [`LinkCounts`] has no room stays where it was queued. A URL whose host has no room in
//! memory waits in its order, and gets its level when it comes in. URLs that wait for an address, a name or a block
//! wait in their order.

use std::sync::Arc;

use super::link_counts::LinkCounts;
use super::ranks::Ranks;
use super::waiting::Ticket;
use super::{Frontier, Settings};
use crate::spool::Spool;
use ringcrawl_base::time::Instant;
use ringcrawl_config::UrlOrder;
use ringcrawl_url::{Url, fingerprint};

/// The priority of a URL among those of its host; the highest first.
pub type Level = u8;

/// The highest level.
pub const TOP_LEVEL: Level = 7;

/// What determines the order of a crawl.
#[derive(Debug)]
pub struct Importance {
    rng_seed: u64,
    by: By,
}

#[derive(Debug)]
enum By {
    Nothing,
    Links(LinkCounts),
    Ranks(Arc<Ranks>),
}

impl Importance {
    /// The order of a crawl with these settings.
    pub fn new(settings: &Settings) -> Importance {
        let by = match settings.order {
            UrlOrder::Backlinks => By::Links(LinkCounts::new(settings.order_bytes_max)),
            UrlOrder::Rank => By::Ranks(Arc::default()),
            UrlOrder::BreadthFirst | UrlOrder::DepthFirst | UrlOrder::Random => By::Nothing,
        };
        Importance { rng_seed: settings.rng_seed, by }
    }

    /// Whether URLs have levels.
    pub(super) fn has_levels(&self) -> bool {
        !matches!(self.by, By::Nothing)
    }

    /// The level of a URL that is queued.
    pub(super) fn level(&self, url: &Url) -> Level {
        match &self.by {
            By::Nothing => 0,
            By::Links(counts) => level_of(counts.links(key(self.rng_seed, url))),
            By::Ranks(ranks) => ranks.level(key(self.rng_seed, url)),
        }
    }

    /// A URL to queue has arrived. Two tickets of one text may wait at once (`visited.*`).
    pub(super) fn came(&mut self, url: &Url, ticket: Ticket) {
        if let By::Links(counts) = &mut self.by {
            counts.came(key(self.rng_seed, url), ticket);
        }
    }

    /// It goes back into the queue from which it was taken.
    pub(super) fn is_back(&mut self, url: &Url, ticket: Ticket) {
        if let By::Links(counts) = &mut self.by {
            counts.is_back(key(self.rng_seed, url), ticket);
        }
    }

    /// A URL was taken from a queue; returns whether that is its turn.
    pub(super) fn takes(&mut self, url: &Url, ticket: Ticket) -> bool {
        match &mut self.by {
            By::Links(counts) => counts.takes(key(self.rng_seed, url), ticket),
            _ => true,
        }
    }

    /// This many links to a URL were found; returns its ticket, if it waits and is worth more now.
    fn linked(&mut self, url: &Url, links: u16) -> Option<Ticket> {
        let By::Links(counts) = &mut self.by else { return None };
        let (before, now, ticket) = counts.add(key(self.rng_seed, url), links)?;
        (level_of(now) > level_of(before)).then_some(ticket)
    }

    /// It is queued again.
    fn is_promoted(&mut self, url: &Url) {
        if let By::Links(counts) = &mut self.by {
            counts.is_queued_again(key(self.rng_seed, url));
        }
    }
}

impl Frontier {
    /// The same frontier with these ranks of URLs, if it orders by ranks.
    pub fn ranked(mut self, ranks: Arc<Ranks>) -> Frontier {
        if let By::Ranks(known) = &mut self.importance.by {
            *known = ranks;
        }
        self
    }

    /// This many pages were found to link to a URL, whether it waits here or not.
    pub fn linked_by_pages(&mut self, now: Instant, url: &Url, links: u16, spool: &mut Spool) {
        let Some(ticket) = self.importance.linked(url, links) else { return };
        // If its host is not in memory, or has nothing here, it waits outside.
        let id = self.hosts.find(url.host()).filter(|id| self.hosts[*id].backlog.has_queued());
        if let Some(id) = id {
            self.importance.is_promoted(url);
            self.queue(now, id, url, ticket, spool);
        }
    }
}

fn key(rng_seed: u64, url: &Url) -> u64 {
    fingerprint(rng_seed, url.as_str())
}

/// The level of a URL with this many links.
fn level_of(links: u8) -> Level {
    links.checked_ilog2().unwrap_or_default() as Level
}
