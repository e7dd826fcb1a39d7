//! Kinds: which URLs of a host are alike, and how often each kind has its turn.
//!
//! Decides: what a page was worth, and from that its kind's [`Weight`]. A page is worth
//! - what part of its own text is new to the host ([`SeenText`]), the site's frame left out. A page with next to no text of its own is
//!   worth little, so every page is taken to have [`TEXT_MIN`] anchors more that are not new;
//! - or the new links that it leads to, if these are of other kinds that proved their worth. [`LEADS_WHOLE`] of them make a whole page;
//! - nothing, if it is byte for byte another page, an archive of pages, or a redirect to where another one led. The text of a page whose
//!   author says noindex is worth nothing and taken from no other page; what it leads to is worth a quarter.
//!
//! An *item* is what a URL is about ([`tokens::item`]). Of an item's pages all are looked at or none, as what a page repeats must have been
//! looked at, too; and whether it was met before is part of a URL's kind.
//! A *list* gives no text to what was seen: a page with [`LIST_LINKS`] new links of one other kind, to other items, and each feed. Their text is that
//! of the pages they lead to, which would be "nothing new" afterwards.
//! Errors say nothing, as anyone may link to what is not there, nor do pages that only strangers link to (`frontier::kind_evidence`).
//! Why weights and no limits: a kind is judged by some of its pages, and others may be better. Every kind keeps its turns.
//! Invariants: pure. A host's first pages are not looked at ([`FREE_PAGES`]): many hosts have no more. Under a budget of pages
//! hosts compete, and all but the very first one are.
//! Limits: a trap with new text on each page is not known, nor one whose pages have no text at all, or only digits. What
//! is known is lost with a restart. Of a page's new links the first [`FOUND_MAX`] count.
//! Leaves to others: how kinds take turns (`frontier::kind_lanes`), the anchors of a text (`ringcrawl_html::anchors`).

mod seen_text;
mod tokens;
mod tree;

pub use seen_text::{SeenText, TextSample};
pub use tokens::Tokens;
pub use tree::{KindFacts, KindTree, PAGE_WORTH};

use xxhash_rust::xxh3::xxh3_64;

use crate::outcome::Fetched;
use ringcrawl_url::Url;

/// How often a kind has its turn, against a kind without evidence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub enum Weight {
    /// Nothing new at all, or advice against it and no evidence.
    Sixteenth,
    /// Some text of its own.
    Quarter,
    /// As if there were no weights.
    #[default]
    Whole,
}

impl Weight {
    /// All of them, the largest first.
    pub const ALL: [Weight; 3] = [Weight::Whole, Weight::Quarter, Weight::Sixteenth];

    /// How many turns of a whole weight one turn of this one takes.
    pub const fn turns(self) -> u64 {
        match self {
            Weight::Whole => 1,
            Weight::Quarter => 4,
            Weight::Sixteenth => 16,
        }
    }
}

/// What is known of a URL before it is fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Judgment {
    /// Its kind, where that has less than its whole weight.
    pub lowered: Option<KindFacts>,
    /// Whether its page is to be looked at.
    pub wants_look: bool,
}

impl Judgment {
    /// How often the URL's kind has its turn.
    pub fn weight(&self) -> Weight {
        self.lowered.map(|kind| kind.weight).unwrap_or_default()
    }
}

/// What is known of the pages of one host.
#[derive(Clone, Debug, Default)]
pub struct HostKinds {
    tree: KindTree,
    seen: SeenText,
    /// What pages were about.
    items: SeenText,
    /// Links that are being found.
    links: NewLinks,
    pages: u64,
    /// Those that were looked at.
    examined: u64,
    /// URLs whose kinds were looked up, and those that were advised against.
    judged: u32,
    advised: u32,
}

/// The new links of a page that is examined, its kind's own left out.
#[derive(Clone, Debug, Default)]
struct NewLinks {
    page: Option<LinkingPage>,
    count: u32,
    /// Links by family.
    families: Vec<(u32, u32)>,
    /// Those of kinds that proved their worth.
    leads: u16,
    /// Those of kinds that proved nothing yet.
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
    /// Nothing known of a host that had so many pages.
    pub fn new(pages: u32) -> HostKinds {
        HostKinds { pages: u64::from(pages), ..HostKinds::default() }
    }

    /// A URL's turn has come, and its page advised against it or not.
    pub fn judged(&mut self, advised_against: bool) {
        self.judged = self.judged.saturating_add(1);
        self.advised = self.advised.saturating_add(u32::from(advised_against));
    }

    /// Judges a URL of the host before it is fetched. One that is `advised_against` begins with a sixteenth, or with a
    /// quarter where nearly all are. Looked at are the first pages of a host, where these are not free, and later those
    /// about every fourth and sixteenth item: of an item's pages all are looked at or none, as what a page repeats is known
    /// only if that was looked at, too. Also one page in sixteen where that is so; and from the first poor page on those of kinds that have
    /// proved nothing, where no page about the item was left out.
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

    /// The URLs that are found from here on are the links of the page at `url`, which is examined.
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
        // Editing, printing, its history: these are no list of other things.
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

    /// A page was fetched, whose links were found; `is_examined` says whether it was looked at.
    pub fn note(&mut self, url: &Url, fetched: &Fetched, is_examined: bool) {
        self.pages += 1;
        let item = item(url);
        let tokens = is_examined.then(|| self.tokens(url, item));
        // An error or a redirect is about nothing.
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

    /// What a page was worth, of [`PAGE_WORTH`]; `None`: that is not known.
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
                // Not known yet is whether what it leads to is worth it: judged by text alone, the lists of a source
                // browser were poor for good before their files had their first turn.
                if worth < PAGE_WORTH && self.examined < PAGES_MIN && links.unproven >= u32::from(LEADS_WHOLE) {
                    return None;
                }
                // Its text is not to be found, so it is worth no more than a way to others.
                Some(if fetched.is_noindex { by_links.min(PAGE_WORTH / 4) } else { worth })
            }
            // Of an earlier crawl nothing is worth less.
            304 => None,
            // To the root a server sends whoever asks for what it does not have.
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
        // An image, or a page that scripts make.
        if sample.len() < SAMPLE_MIN {
            return None;
        }
        let worth = u32::from(PAGE_WORTH) * novelty.new * NEW_TEXT_PARTS / (novelty.own + TEXT_MIN);
        Some(u16::try_from(worth).unwrap_or(PAGE_WORTH).min(PAGE_WORTH))
    }

    fn tokens(&self, url: &Url, item: u64) -> Tokens {
        Tokens::of(url.path_and_query()).again(self.items.has(item))
    }

    /// Whether a page about an item can be judged: what it repeats was looked at, too.
    fn is_comparable(&self, item: u64) -> bool {
        !self.items.has(item) || self.items.has(looked_at(item))
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        size_of::<HostKinds>() + self.tree.ram_bytes() + self.seen.ram_bytes() + self.items.ram_bytes()
    }
}

/// The text of a document that is examined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageText {
    /// Its own.
    Page(TextSample),
    /// That of other pages: a feed.
    Feed,
}

fn item(url: &Url) -> u64 {
    tokens::item(url.path_and_query())
}

/// Stands for an item of which a page was looked at, among what pages were about.
fn looked_at(item: u64) -> u64 {
    item.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Pages of a host that are not looked at: what they were worth moves none of its first fetches.
pub const FREE_PAGES: u32 = PAGES_MIN as u32;
/// The same under a budget of pages.
pub const FREE_PAGES_OF_BUDGET: u32 = 1;
/// Most bytes that are held for a host.
pub const HOST_BYTES_MAX: usize = 256 << 10;
/// What is held at least for a host that is looked at.
pub const HOST_BYTES_MIN: usize = 1 << 10;
/// Before so many URLs it is not known how much of a host is advised against.
const JUDGED_MIN: u32 = 64;
/// The first pages of a host, which are all looked at if any is.
const PAGES_MIN: u64 = 32;
/// Up to so many pages of a host one item in four is looked at.
const OFTEN_UNTIL: u64 = 512;
/// One item in so many is looked at, and one page whatever it is about.
const SAMPLED: u64 = 16;
/// New links of one other kind that make a page a list.
const LIST_LINKS: u32 = 4;
/// New links of a page of which the kinds are looked up.
const FOUND_MAX: u32 = 512;
/// So many links to kinds that proved their worth make a page worth its fetch.
const LEADS_WHOLE: u16 = 4;
const FAMILIES_MAX: usize = 64;
/// Anchors that each page is taken to have in addition to its own, and that are not new: some 60 bytes of text.
const TEXT_MIN: u32 = 4;
/// A page with fewer anchors, its frame included, has no text.
const SAMPLE_MIN: usize = 2;
/// A page is a whole one if one part in so many of its own text is new.
const NEW_TEXT_PARTS: u32 = 3;

#[cfg(test)]
mod tests;
