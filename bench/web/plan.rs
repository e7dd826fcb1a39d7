//! Plans: the links of each page, as places. Both the pages and the truth are computed from them.
//!
//! Decides: the pages of a site are a tree in breadth-first numbering (page `k` links to `b·k+1 … b·k+b`), so all of
//! a site is reachable from its root. The root of site `n` links to the roots of sites `8n+1 … 8n+8`, so all sites
//! are reachable from site 0. The rest is random: about 90 % in the site, a third of these to its first pages like
//! menus. Links to other sites choose the site by rank, so in-degrees follow a power law. The root of a site also
//! links to the site's faulty hosts.
//! Invariants: pure; a plan is in document order, with duplicates.
//! Limits: about 1,040 links a page.

use super::draw::{Draw, Purpose};
use super::faults::Fault;
use super::faults::spot::Spot;
use super::model::{Model, Profile};
use super::place::{Item, OriginVariant, Place};
use super::site::{HostLabel, Site};
use ringcrawl_url::Url;

/// The size of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    /// Minimum number of links; a page with more children has more.
    pub links: u64,
    /// Approximate bytes of HTML.
    pub bytes: u64,
}

impl Model {
    /// Maximum number of children of a page in its site's tree.
    pub(super) fn arity(&self) -> u64 {
        match self.config().profile {
            Profile::Small => 4,
            Profile::Web => 16,
        }
    }

    /// Calls `each` with every link of a page.
    pub(super) fn plan(&self, site: &Site, page: u64, mut each: impl FnMut(&Extent, Place)) {
        let mut draw = Draw::new(self.config().rng_seed, Purpose::Plan, u64::from(site.number), page);
        let extent = self.extent(&mut draw);
        let mut planned = 0;
        let mut emit = |place| {
            planned += 1;
            each(&extent, place);
            planned
        };
        for index in 0..self.arity() {
            if let Some(child) = self.child(site, page, index) {
                emit(Place::canonical(site.number, Item::Page(child)));
            }
        }
        if page == 0 {
            for index in 1..=SITE_ARITY {
                let child = u64::from(site.number) * SITE_ARITY + index;
                if child < u64::from(self.config().sites) {
                    emit(Place::canonical(child as u32, Item::Page(0)));
                }
            }
        }
        while emit(self.random_link(site, page, &mut draw)) < extent.links {}
        // Last, so that everything before it is the same as without faults.
        if page == 0 && !self.config().faults.is_none() {
            for fault in Fault::ALL.iter().copied().filter(|fault| self.has_fault(site.number, *fault)) {
                emit(Place::canonical(site.number, Item::Fault(fault, Spot::Root)));
            }
        }
    }

    /// Calls `each` with every link of every page of a site: the page, and the page it links to, if the target is a
    /// page. A link to an address that redirects is a link to the page where the redirects end.
    pub fn each_link(&self, site: u32, each: &mut dyn FnMut(&Url, Option<&Url>)) {
        let Some(site) = self.site(site) else { return };
        let url_of = |site, page| self.url_of(&Place::canonical(site, Item::Page(page)));
        for page in 0..site.pages {
            let Some(from) = url_of(site.number, page) else { continue };
            self.plan(&site, page, |_, to| {
                let target = match to.item {
                    Item::Page(page) | Item::Go(page) | Item::Old(page) | Item::Hop(_, page) => url_of(to.site, page),
                    _ => None,
                };
                each(&from, target.as_ref());
            });
        }
    }

    fn extent(&self, draw: &mut Draw) -> Extent {
        let (links, bytes) = match self.config().profile {
            Profile::Small => (SMALL_LINKS, SMALL_BYTES),
            Profile::Web => (WEB_LINKS, WEB_BYTES),
        };
        let position = draw.bits();
        Extent { links: draw.quantile(links, position), bytes: draw.quantile(bytes, position) }
    }

    fn random_link(&self, site: &Site, page: u64, draw: &mut Draw) -> Place {
        // An endless site has no size to draw from: links go back, and ahead by about as much as the tree does.
        let size = if self.config().endless { site.pages.min((page / 2 + 16) * 4) } else { site.pages };
        match draw.below(1_000) {
            0..110 => {
                let number = draw.rank(u64::from(self.config().sites)) as u32;
                let Some(other) = self.site(number) else { return Place::canonical(site.number, Item::Page(0)) };
                let deep = if self.config().endless { 1_000 } else { other.pages };
                let page = if draw.below(10) < 7 { 0 } else { draw.rank(deep) };
                let variant = match draw.below(20) {
                    // Old addresses of a few pages, not of all: redirects are a minority on the web, too.
                    0 | 1 if other.https && page.is_multiple_of(RARITY) => OriginVariant::Plain,
                    // Only items at the main host can be requested at its alias.
                    2 if self.label_of(&other, page) == other.main_label() => OriginVariant::Alias,
                    _ => OriginVariant::Canonical,
                };
                Place { site: number, variant, item: Item::Page(page) }
            }
            110..115 => Place::canonical(site.number, Item::Missing(draw.below(size / RARITY + 1))),
            115..121 => Place::canonical(site.number, Item::Go(rare(draw.below(size), RARITY))),
            121..127 => Place::canonical(site.number, Item::Old(rare(draw.below(size), RARITY))),
            127..130 => {
                let hops = draw.below(3) as u8 + 1;
                Place::canonical(site.number, Item::Hop(hops, rare(draw.below(size), 4 * RARITY)))
            }
            130..420 => Place::canonical(site.number, Item::Page(draw.below(size.min(MENU_PAGES)))),
            420..430 => Place::canonical(site.number, Item::Page(page)),
            _ => Place::canonical(site.number, Item::Page(draw.below(size).min(draw.below(size)))),
        }
    }

    fn label_of(&self, site: &Site, page: u64) -> HostLabel {
        let mut path = Vec::with_capacity(96);
        self.push_path(site, Item::Page(page), &mut path).unwrap_or(HostLabel::Bare)
    }
}

/// Children of a site in the tree of sites.
const SITE_ARITY: u64 = 8;
/// Pages that menus link to.
const MENU_PAGES: u64 = 24;
/// A site has one missing page and one redirect of a kind for this many pages, however many links there are. A crawl
/// then meets about as many redirects (a sixth) and dead links (a twentieth) as on the web.
const RARITY: u64 = 16;

/// The multiple of `rarity` at or below `page`.
fn rare(page: u64, rarity: u64) -> u64 {
    page - page % rarity
}

// Sixteen equally likely values each. One position selects from both of a profile's tables, so that long pages have
// many links. The web's means are 172 KB and 164 links, with the long tail of Common Crawl's HTML pages.
const WEB_BYTES: &[u32] = &[
    8_000, 16_000, 24_000, 32_000, 44_000, 56_000, 70_000, 86_000, 104_000, 126_000, 152_000, 184_000, 228_000,
    300_000, 430_000, 900_000,
];
const WEB_LINKS: &[u32] = &[6, 14, 24, 36, 48, 62, 78, 94, 112, 132, 156, 184, 220, 270, 360, 830];
const SMALL_BYTES: &[u32] =
    &[1_500, 1_900, 2_200, 2_500, 2_800, 3_100, 3_400, 3_700, 4_000, 4_300, 4_600, 5_000, 5_400, 6_000, 7_000, 9_000];
const SMALL_LINKS: &[u32] = &[4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 26];

#[cfg(test)]
mod tests {
    use super::super::model::ModelConfig;
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn shares_are_those_of_the_web() {
        let config = ModelConfig { sites: 100, pages: 20_000, profile: Profile::Web, ..ModelConfig::default() };
        let model = Model::new(config).unwrap();
        let site = model.site(0).unwrap();
        let (mut links, mut inside, mut bytes) = (0u64, 0u64, 0u64);
        let mut inbound: BTreeMap<u32, u64> = BTreeMap::new();
        for page in 0..2_000 {
            let mut page_bytes = 0;
            model.plan(&site, page, |extent, place| {
                page_bytes = extent.bytes;
                links += 1;
                if place.site == site.number {
                    inside += 1;
                } else {
                    *inbound.entry(place.site).or_default() += 1;
                }
            });
            bytes += page_bytes;
        }
        assert!((155..175).contains(&(links / 2_000)), "{}", links / 2_000);
        assert!((165_000..190_000).contains(&(bytes / 2_000)), "{}", bytes / 2_000);
        assert!((880..930).contains(&(inside * 1_000 / links)), "{}", inside * 1_000 / links);
        assert!(inbound[&1] > 8 * inbound[&31], "{inbound:?}");
    }

    #[test]
    fn every_page_of_a_site_has_a_parent() {
        let model = Model::new(ModelConfig { sites: 3, pages: 900, ..ModelConfig::default() }).unwrap();
        let site = model.site(0).unwrap();
        let mut seen = vec![false; site.pages as usize];
        seen[0] = true;
        for page in 0..site.pages {
            assert!(seen[page as usize], "no earlier page links to {page}");
            model.plan(&site, page, |_, place| {
                if let (true, Item::Page(target)) = (place.site == 0, place.item) {
                    seen[target as usize] = true;
                }
            });
        }
    }

    #[test]
    fn endless_pages_always_have_children() {
        let model = Model::new(ModelConfig { endless: true, ..ModelConfig::default() }).unwrap();
        let site = model.site(3).unwrap();
        for page in [0, 1, 1 << 40, site.pages / 3, site.pages - 1] {
            let mut count = 0;
            model.plan(&site, page, |_, place| {
                count += 1;
                assert!(model.url_of(&place).is_some(), "{place:?}");
            });
            assert!(count >= 4);
            assert!(!model.is_leaf(&site, page));
        }
    }
}
