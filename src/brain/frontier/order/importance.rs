//! Which URLs are worth most: by the links to them, or by the ranks of an earlier crawl.
//!
//! Decides: every URL has a level from 0 to `TOP_LEVEL`, and URLs of a higher level come first among those of their
//! host. Of the hosts that may have a turn, the one with the best URL comes first ([`crate::frontier::slots`]). Within
//! a level URLs keep their order of arrival.
//! By links, a level is a power of two: 2, 4, 8 and so on up to 128 links (Cho, Garcia-Molina, Page, "Efficient
//! crawling through URL ordering", 1998). When a waiting URL gains enough links to raise its level, it is queued a
//! second time, higher; the lower copy is skipped when its turn comes.
//! By ranks, levels are parts of the list: the first 64th, 32nd, and so on.
//! The lanes of lowered kinds ([`crate::frontier::queue`]) have no levels.
//! Invariants: each ticket has one turn, however often its URL is queued ([`LinkCounts`]).
//! Limits: a URL for which [`LinkCounts`] has no room stays where it was queued. A URL whose host has no room in
//! memory waits in its order, and gets its level when it comes in. URLs that wait for an address, a name or a block
//! wait in their order.

use std::sync::Arc;

use super::link_counts::LinkCounts;
use super::ranks::Ranks;
use crate::frontier::queue::{Level, Ticket};
use crate::frontier::settings::Settings;
use ringcrawl_config::UrlOrder;
use ringcrawl_url::{Url, fingerprint};

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

    /// The same with these ranks of URLs, if it orders by ranks.
    pub fn ranked(self, ranks: Arc<Ranks>) -> Importance {
        let by = if let By::Ranks(_) = self.by { By::Ranks(ranks) } else { self.by };
        Importance { by, ..self }
    }

    /// Whether URLs have levels.
    pub fn has_levels(&self) -> bool {
        !matches!(self.by, By::Nothing)
    }

    /// The level of a URL that is queued.
    pub fn level(&self, url: &Url) -> Level {
        match &self.by {
            By::Nothing => 0,
            By::Links(counts) => level_of(counts.links(key(self.rng_seed, url))),
            By::Ranks(ranks) => ranks.level(key(self.rng_seed, url)),
        }
    }

    /// A URL to queue has arrived. Two tickets of one text may wait at once (`visited.*`).
    pub fn came(&mut self, url: &Url, ticket: Ticket) {
        if let By::Links(counts) = &mut self.by {
            counts.came(key(self.rng_seed, url), ticket);
        }
    }

    /// It goes back into the queue from which it was taken.
    pub fn is_back(&mut self, url: &Url, ticket: Ticket) {
        if let By::Links(counts) = &mut self.by {
            counts.is_back(key(self.rng_seed, url), ticket);
        }
    }

    /// A URL was taken from a queue; returns whether that is its turn.
    pub fn takes(&mut self, url: &Url, ticket: Ticket) -> bool {
        match &mut self.by {
            By::Links(counts) => counts.takes(key(self.rng_seed, url), ticket),
            _ => true,
        }
    }

    /// This many links to a URL were found; returns its ticket, if it waits and is worth more now.
    pub fn linked(&mut self, url: &Url, links: u16) -> Option<Ticket> {
        let By::Links(counts) = &mut self.by else { return None };
        let (before, now, ticket) = counts.add(key(self.rng_seed, url), links)?;
        (level_of(now) > level_of(before)).then_some(ticket)
    }

    /// It is queued again.
    pub fn is_promoted(&mut self, url: &Url) {
        if let By::Links(counts) = &mut self.by {
            counts.is_queued_again(key(self.rng_seed, url));
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
