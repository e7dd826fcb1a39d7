//! Places: the object at each URL, and the URL of each object. The two mappings are inverse to each other.
//!
//! Decides: a page's URL carries its number in its last run of digits, and everything else is drawn from the number.
//! So an address is checked by writing it again and comparing: there is no table of pages, and any other spelling is
//! 404.
//! Invariants: `locate(url_of(place)) == place` for every place that links lead to; a page has exactly one canonical
//! URL; the request cannot determine the size of an allocation.
//! Limits: URLs written here stay below 150 bytes, except those of a path trap.
//! Leaves to others: the spellings of a URL in HTML (`href`).

use super::draw::{Draw, Purpose};
use super::faults::Fault;
use super::faults::spot::Spot;
use super::model::{ENDLESS_PAGES, Model};
use super::site::{HostLabel, Site, parse_number, push_number};
use ringcrawl_url::{Scheme, Url};

/// An address of the synthetic web, by meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The site's number.
    pub site: u32,
    /// The origin within the site.
    pub variant: OriginVariant,
    /// The object there.
    pub item: Item,
}

/// The origins of a site. All but `Canonical` answer with a redirect (301) towards it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum OriginVariant {
    /// The canonical scheme and host.
    Canonical,
    /// http to an https site, at the canonical host.
    Plain,
    /// The canonical scheme at the host that is only an alias of the main one.
    Alias,
    /// http to an https site at the alias.
    PlainAlias,
}

/// The object at a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Item {
    /// A page, by number; 0 is the root.
    Page(u64),
    /// `/go/K`: 302 to page K.
    Go(u64),
    /// `/old/K.html`: 301 to page K.
    Old(u64),
    /// `/hop/N/K`: 302 to `/hop/N-1/K`, and from `/hop/1/K` to page K.
    Hop(u8, u64),
    /// `/missing/K.html`: linked, and 404.
    Missing(u64),
    /// `/trap/K`: only in comments, scripts and the like; answered with 200 and counted as an error.
    Trap(u64),
    /// `/robots.txt`
    Robots,
    /// `/img/…`: a small image; no page links to it with `a`.
    Image,
    /// Anything at a faulty host, robots.txt too.
    Fault(Fault, Spot),
    /// Nothing: 404.
    Unknown,
}

impl Item {
    /// Whether it is a robots.txt.
    pub fn is_robots(self) -> bool {
        matches!(self, Item::Robots | Item::Fault(_, Spot::Robots))
    }

    /// Whether a crawler that reads pages correctly never requests it.
    pub fn is_trap(self) -> bool {
        matches!(self, Item::Trap(_) | Item::Fault(_, Spot::Lost(_)))
    }
}

impl Place {
    /// `item` of `site` at the canonical origin.
    pub const fn canonical(site: u32, item: Item) -> Place {
        Place { site, variant: OriginVariant::Canonical, item }
    }
}

impl Model {
    /// The place of a URL; `None`: the host is not of this web, or does not speak the scheme.
    pub fn locate(&self, scheme: Scheme, host: &str, path_and_query: &str) -> Option<Place> {
        let (site, label) = self.host(host)?;
        let https = site.is_https(label);
        if scheme == Scheme::Https && !https {
            return None;
        }
        let plain = https && scheme == Scheme::Http;
        let alias = label == site.alias_label();
        let variant = match (plain, alias) {
            (false, false) => OriginVariant::Canonical,
            (true, false) => OriginVariant::Plain,
            (false, true) => OriginVariant::Alias,
            (true, true) => OriginVariant::PlainAlias,
        };
        let label = if alias { site.main_label() } else { label };
        Some(Place { site: site.number, variant, item: self.item(&site, label, path_and_query) })
    }

    /// The place of `url`.
    pub fn locate_url(&self, url: &Url) -> Option<Place> {
        if url.port() != self.port(url.scheme()).0 {
            return None;
        }
        self.locate(url.scheme(), url.host(), url.path_and_query())
    }

    /// The canonical URL of a place; `None` if it has none (`Unknown`, `Image`, no such site).
    pub fn url_of(&self, place: &Place) -> Option<Url> {
        let mut text = Vec::with_capacity(96);
        self.push_url(place, &mut text)?;
        Url::parse(std::str::from_utf8(&text).ok()?).ok()
    }

    /// Appends the canonical URL of a place.
    pub(super) fn push_url(&self, place: &Place, out: &mut Vec<u8>) -> Option<()> {
        let site = self.site(place.site)?;
        let mut path = Vec::with_capacity(64);
        let label = self.push_path(&site, place.item, &mut path)?;
        self.push_origin(&site, place.variant, label, out);
        out.extend_from_slice(&path);
        Some(())
    }

    /// Appends `scheme://host[:port]` of a variant, for an item that lives at `label`.
    pub(super) fn push_origin(&self, site: &Site, variant: OriginVariant, label: HostLabel, out: &mut Vec<u8>) {
        let (scheme, label) = origin_of(site, variant, label);
        out.extend_from_slice(if scheme == Scheme::Https { b"https://" } else { b"http://" });
        site.push_host(label, out);
        let (port, is_default) = self.port(scheme);
        if !is_default {
            out.push(b':');
            push_number(u64::from(port), out);
        }
    }

    /// Appends path and query of an item and returns the host it lives at.
    pub(super) fn push_path(&self, site: &Site, item: Item, out: &mut Vec<u8>) -> Option<HostLabel> {
        let main = site.main_label();
        let (prefix, number, suffix) = match item {
            Item::Page(page) => return Some(self.push_page_path(site, page, out)),
            Item::Robots => {
                out.extend_from_slice(b"/robots.txt");
                return Some(main);
            }
            Item::Hop(hops, page) => {
                out.extend_from_slice(b"/hop/");
                push_number(u64::from(hops), out);
                ("/", page, "")
            }
            Item::Go(page) => ("/go/", page, ""),
            Item::Old(page) => ("/old/", page, ".html"),
            Item::Missing(number) => ("/missing/", number, ".html"),
            Item::Trap(number) => ("/trap/", number, ""),
            Item::Fault(fault, spot) => {
                spot.push_path(fault, out)?;
                return Some(HostLabel::Fault(fault));
            }
            Item::Image | Item::Unknown => return None,
        };
        out.extend_from_slice(prefix.as_bytes());
        push_number(number, out);
        out.extend_from_slice(suffix.as_bytes());
        Some(main)
    }

    fn push_page_path(&self, site: &Site, page: u64, out: &mut Vec<u8>) -> HostLabel {
        if page == 0 {
            out.push(b'/');
            return site.main_label();
        }
        let mut draw = Draw::new(self.config().rng_seed, Purpose::Shape, u64::from(site.number), page);
        // Only leaves are private, so that robots.txt cuts off no part of the tree; an endless web has no leaves.
        if draw.one_in(24) && (self.is_leaf(site, page) || self.config().endless) {
            out.extend_from_slice(if draw.one_in(3) { b"/private/open-" } else { b"/private/" });
            push_words(&mut draw, 1, page, ".html", out);
            return site.main_label();
        }
        let label = if site.second.is_some() && draw.one_in(4) { HostLabel::Second } else { site.main_label() };
        let shape = draw.below(16);
        if shape == 12 {
            out.extend_from_slice(b"/caf%C3%A9/");
        } else if (9..11).contains(&shape) {
            out.push(b'/');
            push_number(1995 + draw.below(30), out);
            out.extend_from_slice(if draw.one_in(2) { b"/03/" } else { b"/11/" });
        } else {
            out.push(b'/');
            out.extend_from_slice(draw.pick(DIRECTORIES).as_bytes());
            out.push(b'/');
        }
        match shape {
            0..=5 => push_words(&mut draw, 2, page, ".html", out),
            6..=8 => push_words(&mut draw, 1, page, "", out),
            9 | 10 => push_words(&mut draw, 2, page, "/", out),
            11 => {
                out.extend_from_slice(b"?id=");
                push_number(page, out);
                out.extend_from_slice(b"&x=");
                out.extend_from_slice(draw.pick(WORDS).as_bytes());
            }
            12 => push_words(&mut draw, 1, page, ".html", out),
            13 => {
                out.extend_from_slice(draw.pick(WORDS).as_bytes());
                out.extend_from_slice(b".php?sort=");
                out.extend_from_slice(draw.pick(WORDS).as_bytes());
                out.extend_from_slice(b"&p=");
                push_number(page, out);
            }
            14 => {
                push_words(&mut draw, 1, page, ".html?x=", out);
                out.extend_from_slice(draw.pick(WORDS).as_bytes());
            }
            _ => {
                // Characters that WHATWG leaves unchanged, percent-encoded or not (URL section 1.3).
                out.extend_from_slice(b"~");
                push_words(&mut draw, 1, page, ";v=(a,b)%7E!", out);
            }
        }
        label
    }

    /// Whether a page has no children in its site's tree.
    pub(super) fn is_leaf(&self, site: &Site, page: u64) -> bool {
        self.child(site, page, 0).is_none()
    }

    /// Child `index` of a page in its site's tree.
    pub(super) fn child(&self, site: &Site, page: u64, index: u64) -> Option<u64> {
        let arity = self.arity();
        if index >= arity {
            return None;
        }
        let child = page.wrapping_mul(arity).wrapping_add(index + 1);
        if self.config().endless {
            // Wraps around after 2^60 pages: still a child, and no crawl gets there in order.
            return Some(child % ENDLESS_PAGES);
        }
        (child < site.pages).then_some(child)
    }

    fn item(&self, site: &Site, label: HostLabel, path_and_query: &str) -> Item {
        if let HostLabel::Fault(fault) = label {
            return Item::Fault(fault, Spot::read(fault, path_and_query));
        }
        let text = path_and_query.as_bytes();
        if text == b"/robots.txt" {
            return Item::Robots;
        }
        if text.starts_with(b"/img/") {
            return Item::Image;
        }
        let Some(number) = last_number(text) else {
            return if text == b"/" && label == site.main_label() { Item::Page(0) } else { Item::Unknown };
        };
        let candidate = if text.starts_with(b"/go/") {
            Item::Go(number)
        } else if text.starts_with(b"/old/") {
            Item::Old(number)
        } else if let Some(rest) = text.strip_prefix(b"/hop/") {
            match rest.first() {
                Some(hops @ b'1'..=b'4') => Item::Hop(hops - b'0', number),
                _ => return Item::Unknown,
            }
        } else if text.starts_with(b"/missing/") {
            Item::Missing(number)
        } else if text.starts_with(b"/trap/") {
            Item::Trap(number)
        } else {
            Item::Page(number)
        };
        let counted = matches!(candidate, Item::Page(_) | Item::Go(_) | Item::Old(_) | Item::Hop(..));
        if counted && number >= site.pages {
            return Item::Unknown;
        }
        let mut written = Vec::with_capacity(96);
        let home = self.push_path(site, candidate, &mut written);
        if home == Some(label) && written == text { candidate } else { Item::Unknown }
    }
}

/// Scheme and host of a variant, for an item that lives at `label`.
pub(super) fn origin_of(site: &Site, variant: OriginVariant, label: HostLabel) -> (Scheme, HostLabel) {
    let plain = !site.is_https(label) || matches!(variant, OriginVariant::Plain | OriginVariant::PlainAlias);
    let alias = matches!(variant, OriginVariant::Alias | OriginVariant::PlainAlias) && label == site.main_label();
    (if plain { Scheme::Http } else { Scheme::Https }, if alias { site.alias_label() } else { label })
}

fn push_words(draw: &mut Draw, count: u64, page: u64, suffix: &str, out: &mut Vec<u8>) {
    for _ in 0..count {
        out.extend_from_slice(draw.pick(WORDS).as_bytes());
        out.push(b'-');
    }
    push_number(page, out);
    out.extend_from_slice(suffix.as_bytes());
}

/// The number in the last run of digits, not counting percent-encoded bytes (`%7E`).
fn last_number(text: &[u8]) -> Option<u64> {
    let text = text.strip_suffix(b"%7E!").unwrap_or(text);
    let end = text.iter().rposition(u8::is_ascii_digit)? + 1;
    let digits = text.get(..end)?;
    let start = digits.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |before| before + 1);
    parse_number(digits.get(start..)?)
}

/// First path segments; none is a prefix of the special ones.
const DIRECTORIES: &[&str] = &[
    "news", "blog", "products", "articles", "wiki", "forum", "about", "topics", "library", "sports", "travel",
    "recipes",
];

/// Words of addresses; they must not contain digits.
pub(super) const WORDS: &[&str] = &[
    "amber", "anchor", "apple", "autumn", "basin", "birch", "bridge", "bronze", "candle", "canyon", "cedar", "circle",
    "copper", "coral", "cotton", "desert", "dragon", "eagle", "ember", "falcon", "field", "forest", "garden",
    "glacier", "granite", "harbor", "hazel", "island", "ivory", "jasmine", "juniper", "kettle", "lagoon", "lantern",
    "linen", "maple", "marble", "meadow", "mirror", "morning", "needle", "ocean", "olive", "orchard", "paper",
    "pebble", "pepper", "prairie", "quartz", "raven", "ribbon", "river", "saddle", "silver", "spring", "stone",
    "summer", "thistle", "timber", "valley", "velvet", "willow", "winter", "zephyr",
];

#[cfg(test)]
mod tests {
    use super::super::model::ModelConfig;
    use super::*;

    #[test]
    fn places_and_urls_are_inverse() {
        for endless in [false, true] {
            let config = ModelConfig { sites: 12, pages: 3_000, endless, ..ModelConfig::default() };
            let model = Model::new(config).unwrap();
            for number in 0..12 {
                let site = model.site(number).unwrap();
                let numbers = (0..site.pages.min(700)).chain(endless.then_some(site.pages - 1));
                for page in numbers {
                    for item in [Item::Page(page), Item::Go(page), Item::Old(page), Item::Hop(3, page)] {
                        let place = Place::canonical(number, item);
                        let url = model.url_of(&place).unwrap();
                        assert_eq!(model.locate_url(&url), Some(place), "{}", url.as_str());
                        // The canonical form is already WHATWG's: parsing does not change it.
                        let mut written = Vec::new();
                        model.push_url(&place, &mut written).unwrap();
                        assert_eq!(url.as_str().as_bytes(), written);
                        assert!(written.len() < 150);
                    }
                }
            }
        }
    }

    #[test]
    fn doors_are_told_apart() {
        let model = Model::new(ModelConfig { https_share: 1.0, ..ModelConfig::default() }).unwrap();
        for variant in [OriginVariant::Canonical, OriginVariant::Plain, OriginVariant::Alias, OriginVariant::PlainAlias]
        {
            let place = Place { site: 1, variant, item: Item::Page(0) };
            assert_eq!(model.locate_url(&model.url_of(&place).unwrap()), Some(place));
        }
        let model = Model::new(ModelConfig { https_share: 0.0, ..ModelConfig::default() }).unwrap();
        assert_eq!(model.locate(Scheme::Https, "www.s1.test", "/"), None);
    }

    #[test]
    fn other_spellings_are_unknown() {
        let model = Model::new(ModelConfig::default()).unwrap();
        let url = model.url_of(&Place::canonical(0, Item::Page(7))).unwrap();
        for wrong in ["/news/", "/go/01", "/go/99999999", "/hop/5/1", "/hop/1/", "/hop//1", "/old/3", "", "/x-7", "/7"]
        {
            let place = model.locate(url.scheme(), url.host(), wrong).unwrap();
            assert_eq!(place.item, Item::Unknown, "{wrong}");
        }
        let text = url.path_and_query();
        for end in 0..text.len() {
            let place = model.locate(url.scheme(), url.host(), &text[..end]).unwrap();
            assert_ne!(place.item, Item::Page(7), "{}", &text[..end]);
        }
    }
}
