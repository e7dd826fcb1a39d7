//! Kinds: which URLs of a host are alike, and how often each kind gets a turn.
//!
//! Decides: what a page was worth, and from that its kind's [`Weight`]. A page is worth
//! - the part of its own text that is new to the host ([`SeenText`]), without the site's frame. A page with next to
//!   no text of its own is worth little, so each page is counted as having [`TEXT_MIN`] more anchors that are not
//!   new;
//! - or the new links that it leads to, if they are of other kinds that proved their worth. [`LEADS_WHOLE`] such
//!   links make a whole page;
//! - nothing, if it is byte for byte another page, an archive of pages, or a redirect to where another one led. The
//!   text of a page whose author says noindex is worth nothing and is not recorded as seen; its links are worth a
//!   quarter.
//!
//! An *item* is what a URL is about ([`tokens::item`]). Either all pages of an item are examined or none, because a
//! repetition shows only where the original was examined too. Whether an item was met before is part of a URL's kind.
//! A *list* adds no text to what was seen. Lists are pages with [`LIST_LINKS`] new links of one other kind, to other
//! items, and all feeds. Their text is that of the pages they lead to, which would otherwise count as "nothing new"
//! later.
//! Errors say nothing, because anyone may link to a missing page. Nor do pages that only strangers link to
//! (`frontier::order`).
//! Why weights and no limits: a kind is judged by some of its pages, and others may be better. Every kind keeps its
//! turns.
//! Invariants: pure. A host's first pages are not examined ([`FREE_PAGES`]): many hosts have no more. Under a budget
//! of pages hosts compete, so all pages but the very first are examined.
//! Limits: traps are not recognized if each page has new text, if pages have no text at all, or if they have only
//! digits. A restart loses this knowledge. Only the first [`FOUND_MAX`] of a page's new links count.
//! Leaves to others: how kinds take turns (`frontier::queue`), the anchors of a text
//! (`ringcrawl_html::anchors`).

mod seen_text;
mod tokens;
mod tree;

pub use seen_text::{SeenText, TextSample};
pub use tokens::Tokens;
pub use tree::{KindFacts, KindTree, PAGE_WORTH};

use xxhash_rust::xxh3::xxh3_64;

use crate::outcome::Fetched;
use ringcrawl_url::Url;

/// How often a kind gets a turn, relative to a kind without evidence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub enum Weight {
    /// Nothing new at all, or advice against it and no evidence.
    Sixteenth,
    /// Some text of its own.
    Quarter,
    /// The weight of a kind without evidence.
    #[default]
    Whole,
}

impl Weight {
    /// All of them, the largest first.
    pub const ALL: [Weight; 3] = [Weight::Whole, Weight::Quarter, Weight::Sixteenth];

    /// The number of whole-weight turns that one turn of this weight takes.
    pub const fn turns(self) -> u64 {
        match self {
            Weight::Whole => 1,
            Weight::Quarter => 4,
            Weight::Sixteenth => 16,
        }
    }
}

/// What is known about a URL before it is fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Judgment {
    /// Its kind, if that has less than the whole weight.
    pub lowered: Option<KindFacts>,
    /// Whether to examine its page.
    pub wants_look: bool,
}

impl Judgment {
    /// How often the URL's kind gets a turn.
    pub fn weight(&self) -> Weight {
        self.lowered.map(|kind| kind.weight).unwrap_or_default()
    }
}

/// What is known about the pages of one host.
#[derive(Clone, Debug, Default)]
pub struct HostKinds {
    tree: KindTree,
    seen: SeenText,
    /// What the pages were about.
    items: SeenText,
    /// The links of the current page, as they are found.
    links: NewLinks,
    pages: u64,
    /// Pages that were examined.
    examined: u64,
    /// URLs whose kinds were looked up, and how many of them were advised against.
    judged: u32,
    advised: u32,
}

/// The new links of an examined page, except those of its own kind.
#[derive(Clone, Debug, Default)]
struct NewLinks {
    page: Option<LinkingPage>,
    count: u32,
    /// Links by family.
    families: Vec<(u32, u32)>,
    /// Links of kinds that proved their worth.
    leads: u16,
    /// Links of kinds that have proved nothing yet.
    unproven: u32,
}

/// The page whose links they are.
#[derive(Clone, Copy, Debug)]
struct LinkingPage {
    family: u32,
    node: u16,
    /// What it is about.
    item: u64,
}

impl HostKinds {
    /// Nothing is known yet about a host that had `pages` pages.
    pub fn new(pages: u32) -> HostKinds {
        HostKinds { pages: u64::from(pages), ..HostKinds::default() }
    }

    /// A URL was judged; `advised_against` says whether its page advised against it.
    pub fn judged(&mut self, advised_against: bool) {
        self.judged = self.judged.saturating_add(1);
        self.advised = self.advised.saturating_add(u32::from(advised_against));
    }

    /// Judges a URL of the host before it is fetched. One that is `advised_against` begins with a sixteenth, or with
    /// a quarter where nearly all are. A host's first pages are examined, unless they are free, and later those about
    /// every fourth and then every sixteenth item. Either all pages of an item are examined or none, because a
    /// repetition shows only where the original was examined too. One page in sixteen is examined as well where that
    /// holds. From the first poor page on, so are pages of kinds that have proved nothing, unless a page about the
    /// item was left out.
    pub fn judge(&self, url: &Url, advised_against: bool) -> Judgment {
        let item = item(url);
        let one_in = if self.pages < OFTEN_UNTIL { 4 } else { SAMPLED };
        let is_page = self.pages.is_multiple_of(SAMPLED) && self.is_comparable(item);
        let is_sampled = self.pages < PAGES_MIN || is_page || item.is_multiple_of(one_in);
        let has_poor_pages = self.tree.has_poor_pages();
        if !has_poor_pages && !advised_against {
            return Judgment { lowered: None, wants_look: is_sampled };
        }
        let tells_apart = self.judged < JUDGED_MIN || self.advised < self.judged / 8 * 7;
        let facts = self.tree.facts(&self.tokens(url, item));
        let wants_look = is_sampled || has_poor_pages && !facts.is_proven() && self.is_comparable(item);
        let facts = match advised_against && !facts.is_proven() {
            true if tells_apart => KindFacts { branch: facts.branch, ..KindFacts::ADVISED_AGAINST },
            true => KindFacts { weight: facts.weight.min(Weight::Quarter), ..facts },
            false => facts,
        };
        Judgment { lowered: (facts.weight < Weight::Whole).then_some(facts), wants_look }
    }

    /// The URLs found from here on are links of the examined page at `url`.
    pub fn begin_links(&mut self, url: &Url) {
        let item = item(url);
        let tokens = self.tokens(url, item);
        let (family, node) = (tokens.family(), self.tree.facts(&tokens).node);
        self.links = NewLinks { page: Some(LinkingPage { family, node, item }), ..NewLinks::default() };
    }

    /// A new URL of the host was found.
    pub fn found(&mut self, url: &Url) {
        let Some(page) = self.links.page else { return };
        self.links.count += 1;
        if self.links.count > FOUND_MAX {
            return;
        }
        let item = item(url);
        let tokens = self.tokens(url, item);
        let facts = self.tree.facts(&tokens);
        if facts.weight < Weight::Whole {
            return;
        }
        match facts.is_proven() {
            true if facts.node != page.node => self.links.leads = self.links.leads.saturating_add(1),
            true => {}
            false => self.links.unproven += 1,
        }
        let family = tokens.family();
        // Editing, printing, its history: not a list of other things.
        if family == page.family || item == page.item {
            return;
        }
        let families = &mut self.links.families;
        if let Some((_, count)) = families.iter_mut().find(|(known, _)| *known == family) {
            *count += 1;
        } else if families.len() < FAMILIES_MAX {
            families.push((family, 1));
        }
    }

    /// A page was fetched and its links were found; `is_examined` says whether it was examined.
    pub fn note(&mut self, url: &Url, fetched: &Fetched, is_examined: bool) {
        self.pages += 1;
        let item = item(url);
        let tokens = is_examined.then(|| self.tokens(url, item));
        // An error or a redirect is not about an item.
        if (200..300).contains(&fetched.status) {
            self.items.is_again(item);
            if is_examined {
                self.examined += 1;
                self.items.is_again(looked_at(item));
            }
        }
        let links = std::mem::take(&mut self.links);
        let worth = self.worth(fetched, is_examined, &links);
        if let (Some(tokens), Some(worth)) = (tokens, worth) {
            self.tree.note(&tokens, worth);
        }
    }

    /// What a page was worth, in units of [`PAGE_WORTH`]; `None` if unknown.
    fn worth(&mut self, fetched: &Fetched, is_examined: bool, links: &NewLinks) -> Option<u16> {
        match fetched.status {
            200..300 => {
                if fetched.payload.is_some_and(|payload| self.seen.is_again(payload)) {
                    return Some(0);
                }
                if !is_examined {
                    return None;
                }
                if fetched.is_archive {
                    return Some(0);
                }
                let by_links = links.leads.saturating_mul(PAGE_WORTH / LEADS_WHOLE).min(PAGE_WORTH);
                let by_text = self.worth_of_text(fetched.text.as_ref()?, !fetched.is_noindex, links)?;
                let worth = by_links.max(by_text);
                // It is not known yet whether what it leads to is worth it. Judged by text alone, the lists of a
                // source browser stayed poor for good before their files had their first turn.
                if worth < PAGE_WORTH && self.examined < PAGES_MIN && links.unproven >= u32::from(LEADS_WHOLE) {
                    return None;
                }
                // Its text must not be indexed, so it is worth no more than its links.
                Some(if fetched.is_noindex { by_links.min(PAGE_WORTH / 4) } else { worth })
            }
            // A page from an earlier crawl is not judged.
            304 => None,
            // Servers redirect requests for missing pages to the root.
            300..400 if is_examined => {
                let target = fetched.redirect.as_ref().filter(|target| target.path_and_query() != "/")?;
                let is_again = self.seen.is_again(xxh3_64(target.as_str().as_bytes()));
                Some(if is_again { 0 } else { PAGE_WORTH })
            }
            _ => None,
        }
    }

    fn worth_of_text(&mut self, text: &PageText, gives_text: bool, links: &NewLinks) -> Option<u16> {
        let PageText::Page(sample) = text else { return Some(0) };
        let is_list = links.families.iter().any(|(_, count)| *count >= LIST_LINKS);
        let novelty = self.seen.meet(sample, gives_text && !is_list);
        // An image, or a page made by scripts.
        if sample.len() < SAMPLE_MIN {
            return None;
        }
        let worth = u32::from(PAGE_WORTH) * novelty.new * NEW_TEXT_PARTS / (novelty.own + TEXT_MIN);
        Some(u16::try_from(worth).unwrap_or(PAGE_WORTH).min(PAGE_WORTH))
    }

    fn tokens(&self, url: &Url, item: u64) -> Tokens {
        Tokens::of(url.path_and_query()).again(self.items.has(item))
    }

    /// Whether a page about an item can be judged: what it repeats was examined too.
    fn is_comparable(&self, item: u64) -> bool {
        !self.items.has(item) || self.items.has(looked_at(item))
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        size_of::<HostKinds>() + self.tree.ram_bytes() + self.seen.ram_bytes() + self.items.ram_bytes()
    }
}

/// The text of an examined document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageText {
    /// Its own text.
    Page(TextSample),
    /// The text of other pages: a feed.
    Feed,
}

fn item(url: &Url) -> u64 {
    tokens::item(url.path_and_query())
}

/// Marks an item as having an examined page, in the set of items.
fn looked_at(item: u64) -> u64 {
    item.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Pages of a host that are not examined: their worth does not affect its first fetches.
pub const FREE_PAGES: u32 = PAGES_MIN as u32;
/// The same under a budget of pages.
pub const FREE_PAGES_OF_BUDGET: u32 = 1;
/// The most bytes held for a host.
pub const HOST_BYTES_MAX: usize = 256 << 10;
/// The fewest bytes held for a host with examined pages.
pub const HOST_BYTES_MIN: usize = 1 << 10;
/// With fewer URLs than this it is unknown how much of a host is advised against.
const JUDGED_MIN: u32 = 64;
/// A host's first pages, all of which are examined if any is.
const PAGES_MIN: u64 = 32;
/// Up to this many pages of a host, one item in four is examined.
const OFTEN_UNTIL: u64 = 512;
/// One item in this many is examined, and one page in this many whatever it is about.
const SAMPLED: u64 = 16;
/// New links of one other kind that make a page a list.
const LIST_LINKS: u32 = 4;
/// The new links of a page whose kinds are looked up.
const FOUND_MAX: u32 = 512;
/// This many links to kinds that proved their worth make a page worth its fetch.
const LEADS_WHOLE: u16 = 4;
const FAMILIES_MAX: usize = 64;
/// Anchors that each page is counted as having in addition to its own, none of them new: some 60 bytes of text.
const TEXT_MIN: u32 = 4;
/// A page with fewer anchors, its frame included, has no text.
const SAMPLE_MIN: usize = 2;
/// A page is a whole one if one part in this many of its own text is new.
const NEW_TEXT_PARTS: u32 = 3;

#[cfg(test)]
mod tests;
