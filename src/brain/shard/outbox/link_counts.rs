//! Links to URLs, which are counted where the URL waits: `frontier.order = "backlinks"`.
//!
//! Decides: a link from a page to another page counts, whether the URL is new or not, except embeds and links that
//! the page advises against. Redirects and the sitemaps that a page names are not links.
//! Links to URLs of other shards gather here. They are sent after `frontier.backlinks_exchange_pages` pages, as
//! messages of their own (Cho, Garcia-Molina, "Parallel Crawlers", 2002). URLs that are sent as URLs do not count
//! there.
//! Invariants: memory is bounded. Counts are sent in the order of their URLs, so that a crawl is reproducible.
//! Limits: at most [`BYTES_MAX`] of URLs gather; then they are sent sooner. Where lanes have no room they are
//! dropped, which only lowers counts. The end of a run drops them, too: the next run counts from zero. A link counts
//! by the URL's own text, not by its key (`visited.*`).

use std::collections::BTreeMap;

use crate::hops::Hops;
use crate::job::JobKind;
use ringcrawl_config::{Config, ExchangeMode, UrlOrder};
use ringcrawl_url::{UrlBatch, VIA};

/// Links to URLs of other shards that were found and not sent yet.
#[derive(Debug)]
pub(super) struct GatheredLinks {
    /// By shard: how many links to which of its URLs.
    of_shards: Vec<BTreeMap<Box<str>, u16>>,
    bytes: usize,
    pages: u32,
    /// They are sent after this many pages; 0: never.
    pages_max: u32,
}

impl GatheredLinks {
    /// None yet, for this many shards; `None` in a crawl that counts no links.
    pub(super) fn of(config: &Config, shards: u16) -> Option<GatheredLinks> {
        (config.frontier.order == UrlOrder::Backlinks).then(|| GatheredLinks {
            of_shards: vec![BTreeMap::new(); usize::from(shards)],
            bytes: 0,
            pages: 0,
            pages_max: match config.exchange.mode {
                ExchangeMode::Exchange => config.frontier.backlinks_exchange_pages,
                _ => 0,
            },
        })
    }

    /// A page links to this URL of another shard.
    pub(super) fn add(&mut self, owner: u16, url: &str) {
        let Some(links) = self.of_shards.get_mut(usize::from(owner)).filter(|_| self.pages_max > 0) else { return };
        if let Some(links) = links.get_mut(url) {
            *links = links.saturating_add(1);
        } else if self.bytes < BYTES_MAX {
            links.insert(url.into(), 1);
            self.bytes += ENTRY_BYTES + url.len();
        }
    }

    /// All links of a response to a job of this kind were found; whether the counts are to be sent now.
    pub(super) fn end_page(&mut self, kind: JobKind) -> bool {
        self.pages = self.pages.saturating_add(u32::from(kind == JobKind::Page));
        self.is_due()
    }

    fn is_due(&self) -> bool {
        self.pages_max > 0 && (self.pages >= self.pages_max || self.bytes >= BYTES_MAX)
    }

    /// The counts gathered for each shard that has some.
    pub(super) fn take(&mut self) -> Vec<(u16, UrlBatch)> {
        (self.bytes, self.pages) = (0, 0);
        let taken = (0..).zip(&mut self.of_shards).filter(|(_, links)| !links.is_empty());
        let told = taken.map(|(shard, links)| {
            let mut counts = UrlBatch::new();
            for (url, links) in std::mem::take(links) {
                // That number is not a valid count in a batch.
                counts.push(links - u16::from(links == VIA), &url);
            }
            (shard, counts)
        });
        told.collect()
    }
}

/// Whether a URL with these hops, found by a job of this kind, is a link that counts.
pub(super) fn counts(found_by: JobKind, hops: Hops) -> bool {
    found_by == JobKind::Page && !hops.is_embed() && !hops.is_deferred() && hops.redirects() == 0
}

/// Bytes of URLs that may gather in a shard.
const BYTES_MAX: usize = 1 << 20;
/// Memory of an entry in addition to its text.
const ENTRY_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(order: UrlOrder, mode: ExchangeMode, pages: u32) -> Option<GatheredLinks> {
        let mut config = Config::default();
        (config.frontier.order, config.exchange.mode) = (order, mode);
        config.frontier.backlinks_exchange_pages = pages;
        GatheredLinks::of(&config, 3)
    }

    #[test]
    fn what_counts_is_a_link_of_a_page() {
        let page = Hops::from_bits(3).redirect();
        assert!(counts(JobKind::Page, page.link()) && !counts(JobKind::Robots, page.link()));
        let others = [page.redirect(), page.embed(), page.link().deferred(), Hops::default().redirect()];
        assert!(others.into_iter().all(|hops| !counts(JobKind::Page, hops)));
    }

    #[test]
    fn links_gather_until_they_are_told() {
        let mut links = gathered(UrlOrder::Backlinks, ExchangeMode::Exchange, 2).expect("counts");
        for (owner, url) in [(1, "http://b.test/"), (2, "http://c.test/"), (1, "http://a.test/"), (1, "http://b.test/")]
        {
            links.add(owner, url);
        }
        links.pages = 1;
        assert!(!links.is_due());
        links.pages = 2;
        assert!(links.is_due());
        let told: Vec<(u16, Vec<(u16, String)>)> = links
            .take()
            .iter()
            .map(|(to, counts)| (*to, counts.iter().map(|(links, url)| (links, url.to_owned())).collect()))
            .collect();
        let of_first = vec![(1, "http://a.test/".to_owned()), (2, "http://b.test/".to_owned())];
        assert_eq!(told, [(1, of_first), (2, vec![(1, "http://c.test/".to_owned())])]);
        assert!(links.take().is_empty() && !links.is_due());
    }

    #[test]
    fn what_gathers_has_a_bound_and_is_told_sooner() {
        let mut links = gathered(UrlOrder::Backlinks, ExchangeMode::Exchange, 1_000).expect("counts");
        (0..200_000).for_each(|number| links.add(1, &format!("http://a.test/{number}")));
        assert!(links.is_due() && links.bytes <= BYTES_MAX + 100, "{} bytes", links.bytes);
        (0..100_000).for_each(|_| links.add(1, "http://a.test/7"));
        let told = links.take();
        assert!(told.iter().flat_map(|(_, counts)| counts.iter()).any(|(links, _)| links == u16::MAX));
    }

    #[test]
    fn nothing_gathers_where_nothing_is_told() {
        for (mode, pages) in [(ExchangeMode::Exchange, 0), (ExchangeMode::Firewall, 5), (ExchangeMode::CrossOver, 5)] {
            let mut links = gathered(UrlOrder::Backlinks, mode, pages).expect("counts");
            (0..10).for_each(|number| links.add(1, &format!("http://a.test/{number}")));
            links.pages = 10;
            assert!(!links.is_due() && links.take().is_empty());
        }
        assert!(gathered(UrlOrder::BreadthFirst, ExchangeMode::Exchange, 5).is_none());
    }
}
