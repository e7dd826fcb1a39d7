//! Traps: pages without end that are not worth their fetch.
//!
//! Decides: what a page was worth: nothing if it says noindex, or is what another page of its host said lately, or nearly; a redirect
//! nothing if one led there lately. Errors say nothing: anyone may link to what is not there. Patterns of URLs whose pages are hardly ever worth it are poor
//! ([`Patterns`]), and so are paths that say the same again and again: such URLs wait behind all others.
//! Why nothing is dropped: a pattern is judged by some pages, and others of it may be better. Behind all others they cost
//! nothing while there is better, and a crawl without a budget gets everything.
//! Invariants: pure. The first [`FREE_PAGES`] pages of a host are not looked at: most hosts have no more, and no trap is so short.
//! Limits: a trap whose pages all differ, in words and not in numbers alone, is not known by them.
//! Leaves to others: where poor URLs wait (`frontier::deferred`), fingerprints (`page::simhash`).

mod patterns;
mod tokens;

pub use patterns::Patterns;
pub use tokens::{Tokens, is_repetitive};

use crate::outcome::Fetched;
use crate::url::Url;

/// What is known of the pages of one host.
#[derive(Clone, Debug, Default)]
pub struct HostYield {
    patterns: Patterns,
    /// Fingerprints of what was worth it lately.
    recent: Vec<u64>,
    /// Where the next one goes.
    next: usize,
    pages: u64,
    /// A page was not worth it.
    has_doubts: bool,
    /// One was that was not to be looked at: so many of the next are, of patterns that are not known.
    alarm: u8,
}

impl HostYield {
    /// Nothing known.
    pub fn new() -> HostYield {
        HostYield::default()
    }

    /// Whether the next page, that of `url`, is to be looked at: one in so many is, and more where there is doubt. A fingerprint costs a
    /// tenth of what a page costs.
    pub fn wants_fingerprint(&self, url: &Url) -> bool {
        let is_alarmed = self.alarm > 0;
        self.pages.is_multiple_of(SAMPLED)
            || (is_alarmed || self.has_doubts) && self.patterns.is_doubtful(&tokens(url), is_alarmed)
    }

    /// A page was fetched; `is_examined` says whether its fingerprint was looked for. Others are not noted, good or bad: what is
    /// known of a pattern would be of its bad pages mostly.
    pub fn note(&mut self, url: &Url, fetched: &Fetched, is_examined: bool) {
        self.pages += 1;
        self.alarm = self.alarm.saturating_sub(1);
        let is_worth = match fetched.status {
            200..300 if fetched.is_noindex => false,
            200..300 if !is_examined => true,
            200..300 if fetched.payload.is_some_and(|payload| !self.is_new(payload, 0)) => false,
            // A page with too few words has none.
            200..300 => fetched.fingerprint.is_none_or(|print| self.is_new(print, NEAR_BITS)),
            // Of an earlier crawl nothing is worth less.
            304 => return,
            300..400 if !is_examined => true,
            300..400 => fetched.redirect.as_ref().is_some_and(|target| {
                let print = xxhash_rust::xxh3::xxh3_64(target.as_str().as_bytes());
                self.is_new(print, 0)
            }),
            // Anyone may link to pages of a host that are not there, and such pages lead nowhere.
            _ => return,
        };
        if !is_examined {
            self.alarm = if is_worth { self.alarm } else { ALARMED_PAGES };
            return;
        }
        self.has_doubts |= !is_worth;
        self.patterns.note(&tokens(url), is_worth);
    }

    /// Whether pages like that of `url` are hardly ever worth their fetch.
    pub fn is_poor(&self, url: &Url) -> bool {
        self.patterns.has_poor() && self.patterns.is_poor(&tokens(url))
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        size_of::<HostYield>() + self.patterns.ram_bytes() + self.recent.capacity() * size_of::<u64>()
    }

    /// Whether nothing within so many bits came lately; it is remembered then.
    fn is_new(&mut self, print: u64, bits: u32) -> bool {
        if self.recent.iter().any(|other| (other ^ print).count_ones() <= bits) {
            return false;
        }
        match self.recent.get_mut(self.next) {
            Some(place) => *place = print,
            None => self.recent.push(print),
        }
        self.next = (self.next + 1) % RECENT_MAX;
        true
    }
}

fn tokens(url: &Url) -> Tokens {
    Tokens::of(url.path_and_query())
}

/// Pages of a host that are not looked at.
pub const FREE_PAGES: u32 = 4;
/// Most bytes that are held for a host.
pub const HOST_BYTES_MAX: usize = 8 << 10;
/// One page of so many is looked at in any case.
const SAMPLED: u64 = 8;
/// Pages that are looked at after one that was bad.
const ALARMED_PAGES: u8 = 16;
/// Fingerprints of a host that are remembered.
const RECENT_MAX: usize = 64;
/// In so many bits near duplicates differ at most (Manku, Jain, Das Sarma 2007: 3 in their web; adverts cost 5).
const NEAR_BITS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::parse(&format!("http://a.test{path}")).expect("a URL")
    }

    fn page(fingerprint: Option<u64>) -> Fetched {
        Fetched { status: 200, fingerprint, ..Fetched::default() }
    }

    /// What 80 pages of a kind were makes the kind poor or not.
    fn is_poor(fetched: impl Fn(u64) -> Fetched) -> bool {
        let mut pages = HostYield::new();
        for number in 0..80 {
            let url = url(&format!("/kind/{number}"));
            pages.note(&url, &fetched(number), pages.wants_fingerprint(&url));
        }
        assert!(pages.ram_bytes() <= HOST_BYTES_MAX && !pages.is_poor(&url("/other")));
        pages.is_poor(&url("/kind/1234"))
    }

    #[test]
    fn what_is_not_worth_its_fetch() {
        let mixed = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        assert!(!is_poor(|number| page(Some(mixed(number)))));
        assert!(!is_poor(|_| page(None)), "too short to be known");
        assert!(is_poor(|number| page(Some(1 << (number % 3)))), "near duplicates");
        assert!(is_poor(|number| Fetched { payload: Some(7), ..page(Some(mixed(number))) }));
        assert!(!is_poor(|number| Fetched { payload: Some(!mixed(number)), ..page(Some(mixed(number))) }));
        assert!(is_poor(|number| Fetched { is_noindex: true, ..page(Some(mixed(number))) }));
        assert!(!is_poor(|number| Fetched { status: 404, ..page(Some(mixed(number))) }), "strangers link to anything");
        let moved = |to: String| Fetched { status: 302, redirect: Url::parse(&to).ok(), ..Fetched::default() };
        assert!(is_poor(|_| moved("http://a.test/login".to_owned())));
        assert!(!is_poor(|number| moved(format!("http://a.test/{number}"))));
        // One page in four is enough.
        assert!(!is_poor(|number| Fetched { is_noindex: number % 4 > 0, ..page(Some(mixed(number))) }));
    }

    #[test]
    fn one_page_in_eight_is_looked_at_and_more_where_there_is_doubt() {
        let looked_at = |print: fn(u64) -> u64| {
            let mut pages = HostYield::new();
            (0..400u64).filter(move |number| {
                let url = url(&format!("/kind/{number}"));
                let is_examined = pages.wants_fingerprint(&url);
                pages.note(&url, &page(is_examined.then(|| print(*number))), is_examined);
                is_examined
            })
        };
        assert_eq!(looked_at(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).count(), 50);
        let near: Vec<u64> = looked_at(|_| 0).collect();
        // The second one is the first that is known, and then all are until that is sure.
        assert_eq!(near[..4], [0, 8, 9, 10]);
        // What is bad by itself is known sooner.
        let mut pages = HostYield::new();
        let until_poor = (0..80).position(|number| {
            let url = url(&format!("/kind/{number}"));
            pages.note(&url, &Fetched { is_noindex: true, ..page(None) }, pages.wants_fingerprint(&url));
            pages.is_poor(&url)
        });
        assert!(until_poor.is_some_and(|pages| pages < 12), "{until_poor:?}");
        assert!((55..70).contains(&near.len()), "{}", near.len());
    }
}
