//! Which URLs are worth most: by the links that lead to them, or by the ranks of an earlier crawl.
//!
//! Decides: every URL has a level from 0 to [`TOP_LEVEL`], and those of a higher one come first: among the URLs of its host, and of
//! hosts that may have a turn the one with the best URL comes first ([`super::ready_hosts`]). Within a level they come as they came.
//! By links, a level is a power of two: 2, 4, 8 and so on up to 128 links (Cho, Garcia-Molina, Page, "Efficient crawling through
//! URL ordering", 1998). When the links to a URL that waits become so many that its level rises, it is queued a second time,
//! higher; what is left of it below is passed over when its turn comes.
//! By ranks, levels are parts of the list: the first 64th, 32nd, and so on.
//! In the lanes of lowered kinds ([`super::kind_lanes`]) there are no levels.
//! Invariants: each ticket has one turn, however often its URL is queued ([`LinkCounts`]).
//! Limits: what [`LinkCounts`] has no room for stays where it was queued. A URL whose host has no room in memory waits in its order,
//! and gets its level when it comes in. What waits for an address, a name or a block waits in its order.

use std::sync::Arc;

use super::link_counts::LinkCounts;
use super::ranks::Ranks;
use super::waiting::Ticket;
use super::{Frontier, Settings};
use crate::spool::Spool;
use ringcrawl_base::time::Instant;
use ringcrawl_config::UrlOrder;
use ringcrawl_url::{Url, fingerprint};

/// How soon a URL comes among those of its host; the highest first.
pub type Level = u8;

/// The highest level.
pub const TOP_LEVEL: Level = 7;

/// What a crawl goes by.
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
    /// What a crawl with these settings goes by.
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

    /// A URL came that is to be queued. Two tickets of one text may wait at once (`visited.*`).
    pub(super) fn came(&mut self, url: &Url, ticket: Ticket) {
        if let By::Links(counts) = &mut self.by {
            counts.came(key(self.rng_seed, url), ticket);
        }
    }

    /// It goes back into its queue, from which it was taken.
    pub(super) fn is_back(&mut self, url: &Url, ticket: Ticket) {
        if let By::Links(counts) = &mut self.by {
            counts.is_back(key(self.rng_seed, url), ticket);
        }
    }

    /// A URL was taken from a queue; whether that is its turn.
    pub(super) fn takes(&mut self, url: &Url, ticket: Ticket) -> bool {
        match &mut self.by {
            By::Links(counts) => counts.takes(key(self.rng_seed, url), ticket),
            _ => true,
        }
    }

    /// So many links to a URL were found; its ticket, if it waits and is worth more now.
    fn linked(&mut self, url: &Url, links: u16) -> Option<Ticket> {
        let By::Links(counts) = &mut self.by else { return None };
        let (before, now, ticket) = counts.add(key(self.rng_seed, url), links)?;
        (level_of(now) > level_of(before)).then_some(ticket)
    }

    /// It is queued once more.
    fn is_promoted(&mut self, url: &Url) {
        if let By::Links(counts) = &mut self.by {
            counts.is_queued_again(key(self.rng_seed, url));
        }
    }
}

impl Frontier {
    /// The same frontier, where URLs have these ranks, if it goes by ranks.
    pub fn ranked(mut self, ranks: Arc<Ranks>) -> Frontier {
        if let By::Ranks(known) = &mut self.importance.by {
            *known = ranks;
        }
        self
    }

    /// So many pages were found to link to a URL, whether it waits here or not.
    pub fn linked_by_pages(&mut self, now: Instant, url: &Url, links: u16, spool: &mut Spool) {
        let Some(ticket) = self.importance.linked(url, links) else { return };
        // Where its host is not in memory, or has nothing here, it waits outside.
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

/// The level of a URL with so many links.
fn level_of(links: u8) -> Level {
    links.checked_ilog2().unwrap_or_default() as Level
}
