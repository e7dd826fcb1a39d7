//! Kinds: which URLs of a host are alike, and how often each kind has its turn.
//!
//! Decides: what a page was worth, and from that its kind's [`Weight`]. A page is worth
//! - what part of its own text is new to the host ([`SeenText`]), the site's frame left out. A page with next to no text of its own is
//!   worth little, so every page is taken to have [`TEXT_MIN`] anchors more that are not new;
//! - or the new links that it leads to, if these are of other kinds that proved their worth. [`LEADS_WHOLE`] of them make a whole page;
//! - nothing, if it is byte for byte another page, an archive of pages, or a redirect to where another one led;
//! - a quarter at most, if its author says noindex.
//!
//! A *list* gives no text to what was seen: a page with [`LIST_LINKS`] new links of one other kind, and each feed. Their text is that
//! of the pages they lead to, which would be "nothing new" afterwards.
//! Errors say nothing, as anyone may link to what is not there, nor do pages that only strangers link to (`frontier::kind_evidence`).
//! Why weights and no limits: a kind is judged by some of its pages, and others may be better. Every kind keeps a sixteenth of its turns.
//! Invariants: pure. A host's first pages are not looked at ([`FREE_PAGES`]): many hosts have no more.
//! Limits: a trap with new text on each page is not known. What is known is lost with a restart.
//! Leaves to others: how kinds take turns (`frontier::kind_lanes`), the anchors of a text (`links::anchors`).

mod seen_text;
mod tokens;
mod tree;

pub use seen_text::{SeenText, TextSample};
pub use tokens::Tokens;
pub use tree::{KindFacts, KindTree, PAGE_WORTH};

use xxhash_rust::xxh3::xxh3_64;

use crate::outcome::Fetched;
use crate::url::Url;

/// How often a kind has its turn, against a kind without evidence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub enum Weight {
    /// Nothing new at all.
    Sixteenth,
    /// Some text of its own, or advice against it and no evidence.
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

/// What is known of the pages of one host.
#[derive(Clone, Debug, Default)]
pub struct HostKinds {
    tree: KindTree,
    seen: SeenText,
    /// Links that are being found.
    links: NewLinks,
    pages: u64,
    examined: u64,
    /// A page was byte for byte another one: so many of the next are looked at.
    alarm: u8,
}

/// The new links of a page that is examined, its kind's own left out.
#[derive(Clone, Debug, Default)]
struct NewLinks {
    /// The page's family and node.
    page: Option<(u32, u16)>,
    /// Links by family.
    families: Vec<(u32, u32)>,
    /// Those of kinds that proved their worth.
    leads: u16,
}

impl HostKinds {
    /// Nothing known.
    pub fn new() -> HostKinds {
        HostKinds::default()
    }

    /// What is known of a URL's kind; `None`: it has its whole weight. A URL that is `advised_against` begins with a quarter.
    pub fn lowered(&self, url: &Url, advised_against: bool) -> Option<KindFacts> {
        if !self.tree.has_poor_pages() && !advised_against {
            return None;
        }
        let facts = self.tree.facts(&tokens(url));
        let is_unproven = !facts.is_known || facts.pages < PROOF_PAGES;
        let facts = match facts.weight {
            Weight::Whole if advised_against && is_unproven => KindFacts::ADVISED_AGAINST,
            _ => facts,
        };
        (facts.weight < Weight::Whole).then_some(facts)
    }

    /// Whether the page at `url` is to be looked at: the first ones of a kind, all of a kind whose weight is lowered, and one in
    /// [`SAMPLED`] of the others.
    pub fn wants_look(&self, url: &Url) -> bool {
        if self.examined < PAGES_MIN || self.alarm > 0 || self.pages.is_multiple_of(SAMPLED) {
            return true;
        }
        let facts = self.tree.facts(&tokens(url));
        facts.weight < Weight::Whole
            || !(facts.is_known && facts.pages >= KIND_PAGES_MIN) && self.pages.is_multiple_of(SAMPLED / 4)
    }

    /// The URLs that are found from here on are the links of the page at `url`, which is examined.
    pub fn begin_links(&mut self, url: &Url) {
        let tokens = tokens(url);
        let node = self.tree.facts(&tokens).node;
        self.links = NewLinks { page: Some((tokens.family(), node)), ..NewLinks::default() };
    }

    /// A new URL of the host was found.
    pub fn found(&mut self, url: &Url) {
        let Some((page_family, page_node)) = self.links.page else { return };
        let tokens = tokens(url);
        let facts = self.tree.facts(&tokens);
        if facts.weight < Weight::Whole {
            return;
        }
        let has_proved = facts.is_known && facts.pages >= PROOF_PAGES && facts.node != page_node;
        self.links.leads = self.links.leads.saturating_add(u16::from(has_proved));
        let family = tokens.family();
        if family == page_family {
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
        self.alarm = self.alarm.saturating_sub(1);
        let links = std::mem::take(&mut self.links);
        let Some(worth) = self.worth(fetched, is_examined, &links) else { return };
        if is_examined {
            self.examined += 1;
            self.tree.note(&tokens(url), worth);
        } else if worth == 0 {
            // Those that are not looked at say nothing of their kind: it would be of its bad pages mostly.
            self.alarm = ALARMED_PAGES;
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
                let worth = by_links.max(self.worth_of_text(fetched.text.as_ref()?, links)?);
                Some(if fetched.is_noindex { worth.min(PAGE_WORTH / 4) } else { worth })
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

    fn worth_of_text(&mut self, text: &PageText, links: &NewLinks) -> Option<u16> {
        let PageText::Page(sample) = text else { return Some(0) };
        let is_list = links.families.iter().any(|(_, count)| *count >= LIST_LINKS);
        let novelty = self.seen.meet(sample, !is_list);
        // An image, or a page that scripts make.
        if sample.len() < SAMPLE_MIN {
            return None;
        }
        let worth = u32::from(PAGE_WORTH) * novelty.new * NEW_TEXT_PARTS / (novelty.own + TEXT_MIN);
        Some(u16::try_from(worth).unwrap_or(PAGE_WORTH).min(PAGE_WORTH))
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        size_of::<HostKinds>()
            + self.tree.ram_bytes()
            + self.seen.ram_bytes()
            + self.links.families.capacity() * size_of::<(u32, u32)>()
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

fn tokens(url: &Url) -> Tokens {
    Tokens::of(url.path_and_query())
}

/// Pages of a host that are not looked at.
pub const FREE_PAGES: u32 = 1;
/// Most bytes that are held for a host.
pub const HOST_BYTES_MAX: usize = 256 << 10;
/// What is held at least for a host that is looked at.
pub const HOST_BYTES_MIN: usize = 1 << 10;
/// So many pages of its own prove what a kind is worth.
const PROOF_PAGES: u16 = 2;
/// The first pages of a host that are looked at.
const PAGES_MIN: u64 = 32;
/// The first pages of a kind of which every fourth at least is looked at.
const KIND_PAGES_MIN: u16 = 16;
/// One page of so many is looked at in any case.
const SAMPLED: u64 = 16;
/// Pages that are looked at after one that was another one's copy.
const ALARMED_PAGES: u8 = 16;
/// New links of one other kind that make a page a list.
const LIST_LINKS: u32 = 4;
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
