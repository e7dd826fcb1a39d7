//! Builds a graph from pages and links that arrive one by one.
//!
//! Decides: a page is its URL in the crawler's own form, so that two spellings are one page and the crawler finds it
//! in a plan. A page without a URL is identified by its number. Its site is given (by number), or follows from its
//! host; without either the page is a site of its own.
//! Limits: [`PAGES_MAX`] pages. The memory for pages is estimated, that for links is exact.
//! Leaves to others: where pages and links come from (`edge_list`, `stored`).

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_128;

use super::SiteKind;
use super::graph::Texts;
use super::{Counts, GraphSettings, Memory, PAGES_MAX, PageGraph, PlanError};
use ringcrawl_url::{Url, site_of};

/// A graph under construction.
pub(super) struct Builder<'m> {
    settings: GraphSettings,
    pub(super) memory: &'m mut Memory,
    pages: Texts,
    has_url: Vec<bool>,
    bytes: Vec<u64>,
    site_of: Vec<u32>,
    sites: Texts,
    /// By hashes of 128 bits: two texts with the same hash would be one page, which would not hurt a plan.
    by_url: HashMap<u128, u32>,
    by_site: HashMap<u128, u32>,
    links: Vec<(u32, u32)>,
    /// Whether [`Builder::set_bytes`] was called.
    has_bytes: bool,
    pub(super) outside: u64,
}

impl Builder<'_> {
    pub(super) fn new(settings: GraphSettings, memory: &mut Memory) -> Builder<'_> {
        Builder {
            settings,
            memory,
            pages: Texts::default(),
            has_url: Vec::new(),
            bytes: Vec::new(),
            site_of: Vec::new(),
            sites: Texts::default(),
            by_url: HashMap::new(),
            by_site: HashMap::new(),
            links: Vec::new(),
            has_bytes: false,
            outside: 0,
        }
    }

    /// The page of `url`, new or known; `site` is given if its site has another name than the one that follows from
    /// its host.
    pub(super) fn page(&mut self, url: &Url, site: Option<&str>) -> Result<u32, PlanError> {
        let hash = xxh3_128(url.as_str().as_bytes());
        if let Some(page) = self.by_url.get(&hash) {
            return Ok(*page);
        }
        let page = self.add(url.as_str(), true, site.unwrap_or_else(|| site_name(self.settings.key, url.host())))?;
        self.by_url.insert(hash, page);
        Ok(page)
    }

    /// A new page without a URL.
    pub(super) fn nameless(&mut self, number: u32, host: Option<&str>, site: Option<&str>) -> Result<u32, PlanError> {
        let name = number.to_string();
        let of_host = host.map(|host| site_name(self.settings.key, host));
        self.add(&name, false, site.or(of_host).unwrap_or(&name))
    }

    /// The page of `url`, if it is one.
    pub(super) fn find(&self, url: &str) -> Option<u32> {
        self.by_url.get(&xxh3_128(url.as_bytes())).copied()
    }

    fn add(&mut self, name: &str, has_url: bool, site: &str) -> Result<u32, PlanError> {
        let page = self.pages.len();
        if page as u64 >= PAGES_MAX {
            return Err(PlanError::TooManyPages);
        }
        self.memory.take(PAGE_BYTES + name.len() as u64, PAGES)?;
        let site = self.site(site)?;
        self.pages.push(name);
        self.has_url.push(has_url);
        self.bytes.push(0);
        self.site_of.push(site);
        Ok(page as u32)
    }

    /// The site with that name.
    fn site(&mut self, name: &str) -> Result<u32, PlanError> {
        let hash = xxh3_128(name.as_bytes());
        if let Some(site) = self.by_site.get(&hash) {
            return Ok(*site);
        }
        self.memory.take(SITE_BYTES + name.len() as u64, "sites")?;
        // There are at most as many sites as pages.
        let site = self.sites.len() as u32;
        self.sites.push(name);
        self.by_site.insert(hash, site);
        Ok(site)
    }

    /// Sets the length of a page's body in bytes.
    pub(super) fn set_bytes(&mut self, page: u32, bytes: u64) {
        self.has_bytes = true;
        if let Some(place) = self.bytes.get_mut(page as usize) {
            *place = bytes;
        }
    }

    pub(super) fn name_of(&self, page: u32) -> &str {
        self.pages.get(page)
    }

    pub(super) fn bytes_of(&self, page: u32) -> u64 {
        self.bytes.get(page as usize).copied().unwrap_or_default()
    }

    /// Reserves memory for `count` more links.
    pub(super) fn expect_links(&mut self, count: u64) -> Result<(), PlanError> {
        self.memory.grow(&mut self.links, count, LINKS)
    }

    /// Adds a link between two pages.
    pub(super) fn link(&mut self, from: u32, to: u32) -> Result<(), PlanError> {
        if self.links.len() == self.links.capacity() {
            let more = (self.links.len() as u64).max(LINKS_MORE);
            self.memory.grow(&mut self.links, more, LINKS)?;
        }
        self.links.push((from, to));
        Ok(())
    }

    /// Builds the graph.
    pub(super) fn finish(mut self) -> Result<PageGraph, PlanError> {
        let links = std::mem::take(&mut self.links);
        let mut counts = Counts { outside: self.outside, ..Counts::default() };
        let pages = self.pages.len();
        let mut starts = self.memory.filled(pages + 1, 0usize, PAGES)?;
        let mut targets = self.memory.filled(links.len(), 0u32, LINKS)?;
        for (from, to) in &links {
            if from == to {
                counts.self_links += 1;
            } else if let Some(count) = starts.get_mut(*from as usize) {
                *count += 1;
            }
        }
        // Each count becomes the end of the page's links, and then, link by link from the last one, their start.
        let mut end = 0;
        for place in &mut starts {
            end += *place;
            *place = end;
        }
        for (from, to) in links.iter().rev().filter(|(from, to)| from != to) {
            if let Some(place) = starts.get_mut(*from as usize) {
                *place -= 1;
                if let Some(target) = targets.get_mut(*place) {
                    *target = *to;
                }
            }
        }
        self.memory.give_back(links.capacity() as u64 * size_of::<(u32, u32)>() as u64);
        drop(links);
        let before = end as u64;
        merge(&mut starts, &mut targets);
        counts.repeated = before - targets.len() as u64;
        if targets.is_empty() {
            return Err(PlanError::NoLinks);
        }
        Ok(PageGraph {
            pages: self.pages,
            has_url: self.has_url,
            bytes: self.has_bytes.then_some(self.bytes),
            site_of: self.site_of,
            sites: self.sites,
            starts,
            targets,
            url_bytes: self.settings.url_bytes,
            counts,
        })
    }
}

/// Sorts each page's targets, removes duplicates, and closes the gaps.
fn merge(starts: &mut [usize], targets: &mut Vec<u32>) {
    let mut kept = 0;
    for page in 1..starts.len() {
        let (start, end) = (starts[page - 1], starts[page]);
        targets[start..end].sort_unstable();
        starts[page - 1] = kept;
        let first = kept;
        for at in start..end {
            let target = targets[at];
            if kept == first || targets[kept - 1] != target {
                targets[kept] = target;
                kept += 1;
            }
        }
    }
    if let Some(last) = starts.last_mut() {
        *last = kept;
    }
    targets.truncate(kept);
}

/// What a crawl that is partitioned by `key` keeps together with a host.
fn site_name(key: SiteKind, host: &str) -> &str {
    match key {
        SiteKind::Domain => site_of(host),
        SiteKind::Host => host.strip_suffix('.').unwrap_or(host),
    }
}

const PAGES: &str = "pages";
const LINKS: &str = "links";
/// Memory of a page in addition to its text: its entries in lists, half of which may be empty, and in a hash table.
const PAGE_BYTES: u64 = 128;
/// The same for a site.
const SITE_BYTES: u64 = 96;
/// If the number of links is unknown, memory for at least this many is reserved at once.
const LINKS_MORE: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(key: SiteKind) -> GraphSettings {
        GraphSettings { key, url_bytes: 50 }
    }

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    #[test]
    fn links_are_sorted_and_count_once() {
        let mut memory = Memory::new(1 << 20);
        let mut builder = Builder::new(settings(SiteKind::Domain), &mut memory);
        let [a, b, c] = ["http://a.test/", "http://x.b.test/1", "http://b.test/2"]
            .map(|text| builder.page(&url(text), None).expect("memory"));
        assert_eq!(builder.page(&url("HTTP://A.test:80"), None).expect("memory"), a);
        assert_eq!((builder.find("http://b.test/2"), builder.find("http://b.test/3")), (Some(c), None));
        for (from, to) in [(a, c), (c, a), (a, b), (a, c), (a, a), (a, b), (c, c)] {
            builder.link(from, to).expect("memory");
        }
        builder.set_bytes(b, 700);
        let graph = builder.finish().expect("a graph");
        assert_eq!([a, b, c].map(|page| graph.targets_of(page).to_vec()), [vec![b, c], vec![], vec![a]]);
        assert_eq!(graph.counts(), Counts { self_links: 2, repeated: 2, outside: 0 });
        assert_eq!((graph.sites(), graph.site_of(b), graph.site_of(c)), (2, 1, 1));
        assert_eq!([a, b, c].map(|page| graph.weights(page)), [[0, 1], [700, 1], [0, 1]]);
        assert_eq!((graph.name(b), graph.url_bytes(b), graph.link_bytes()), ("http://x.b.test/1", 17, 17 + 15 + 14));
    }

    #[test]
    fn sites_are_those_of_the_key_or_told() {
        let mut memory = Memory::new(1 << 20);
        let mut builder = Builder::new(settings(SiteKind::Host), &mut memory);
        let pages = [
            builder.page(&url("http://x.b.test./1"), None),
            builder.page(&url("http://b.test/2"), None),
            builder.page(&url("http://b.test/3"), Some("7")),
            builder.nameless(9, None, None),
            builder.nameless(10, Some("b.test"), None),
            builder.nameless(11, Some("b.test"), Some("7")),
        ]
        .map(|page| page.expect("memory"));
        builder.link(0, 1).expect("memory");
        let graph = builder.finish().expect("a graph");
        let names = pages.map(|page| graph.site_name(graph.site_of(page)).to_owned());
        assert_eq!(names, ["x.b.test", "b.test", "7", "9", "b.test", "7"]);
        assert_eq!((graph.nameless(), graph.url_bytes(4), graph.weights(4)), (3, 50, [1, 1]));
    }

    #[test]
    fn nothing_to_plan_by_and_too_little_memory() {
        let mut memory = Memory::new(1 << 20);
        let mut builder = Builder::new(settings(SiteKind::Domain), &mut memory);
        let a = builder.page(&url("http://a.test/"), None).expect("memory");
        builder.link(a, a).expect("memory");
        assert!(matches!(builder.finish(), Err(PlanError::NoLinks)));
        let mut memory = Memory::new(200);
        let mut builder = Builder::new(settings(SiteKind::Domain), &mut memory);
        let result = builder.page(&url("http://a.test/"), None);
        assert!(matches!(result, Err(PlanError::Memory { what: "sites", .. })), "{result:?}");
        assert!(matches!(builder.expect_links(1 << 40), Err(PlanError::Memory { what: "links", .. })));
    }
}
