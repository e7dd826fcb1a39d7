//! Traps: pages without end that are not worth their fetch.
//!
//! Decides: what a page was worth. One that says noindex, or is byte for byte what another page of its host was lately, is worth nothing;
//! another one its text, if one part in five of that is new to the host ([`SeenText`]); or else its links, if some of them have shapes
//! that no URL of the host had ([`Shapes`]). A redirect is worth nothing if one led there lately. An archive is worth nothing: it
//! packs what can be had unpacked. Errors say nothing: anyone may link to what is not there. Nor does what has no text.
//! URLs of whose patterns ([`Patterns`]) hardly any page was worth it are poor, and so are paths that say the same again and
//! again: such URLs wait behind all others. Patterns are known apart for URLs that are the first of their shape and for those that
//! are not, as systems that keep versions have a good page and a hundred worthless ones under one pattern.
//! Why nothing is dropped: a pattern is judged by some pages, and others of it may be better. Behind all others they cost
//! nothing while there is better, and a crawl without a budget gets everything.
//! Invariants: pure. A host's first page is not looked at ([`FREE_PAGES`]): many hosts have no more.
//! Limits: a trap with new text on each page is not known.
//! Leaves to others: where poor URLs wait (`frontier::deferred`), the words of a page (`page::simhash`).

mod patterns;
mod shapes;
mod text;
mod tokens;

pub use patterns::Patterns;
pub use shapes::Shapes;
pub use text::{SeenText, TextSample};
pub use tokens::{Tokens, is_repetitive};

use xxhash_rust::xxh3::xxh3_64;

use crate::outcome::Fetched;
use crate::url::Url;

/// What is known of the pages of one host.
#[derive(Clone, Debug, Default)]
pub struct HostYield {
    patterns: Patterns,
    shapes: Shapes,
    text: SeenText,
    /// Hashes of payloads, and of targets of redirects, that were new lately.
    recent: Vec<u64>,
    /// Where the next one goes.
    next: usize,
    /// New shapes among the URLs found since they were last counted.
    new_shapes: u32,
    pages: u64,
    /// A page was not worth it: so many of the next are looked at.
    alarm: u8,
}

impl HostYield {
    /// Nothing known.
    pub fn new() -> HostYield {
        HostYield::default()
    }

    /// Whether the next page is to be looked at. Of a host with hardly any page that was not worth it one in so many is: that costs
    /// a tenth of what a page costs.
    pub fn wants_look(&self) -> bool {
        self.pages < PAGES_MIN || self.alarm > 0 || self.pages.is_multiple_of(SAMPLED) || !self.patterns.are_rich()
    }

    /// The URLs that are found from here on are a page's links.
    pub fn begin_links(&mut self) {
        self.new_shapes = 0;
    }

    /// A URL was found that is new; whether pages like it are hardly ever worth their fetch.
    pub fn found(&mut self, url: &Url) -> bool {
        let (tokens, hash) = (tokens(url), hash(url));
        self.new_shapes += u32::from(self.shapes.found(tokens.shape(), hash, self.pages));
        self.patterns.has_bad() && self.patterns.is_poor(self.kind(&tokens, hash))
    }

    /// Whether pages like that of `url` are hardly ever worth their fetch.
    pub fn is_poor(&self, url: &Url) -> bool {
        self.patterns.has_bad() && self.patterns.is_poor(self.kind(&tokens(url), hash(url)))
    }

    /// A page was fetched, whose links were found; `is_examined` says whether it was looked at. Others are not noted, good or bad: what is
    /// known of a pattern would be of its bad pages mostly.
    pub fn note(&mut self, url: &Url, fetched: &Fetched, is_examined: bool) {
        self.pages += 1;
        self.alarm = self.alarm.saturating_sub(1);
        let Some(is_worth) = self.is_worth(fetched, is_examined) else { return };
        if !is_worth {
            self.alarm = ALARMED_PAGES;
        }
        if is_examined {
            let tokens = tokens(url);
            self.patterns.note(self.kind(&tokens, hash(url)), is_worth);
        }
    }

    /// Whether a page was worth its fetch; `None`: nobody can say.
    fn is_worth(&mut self, fetched: &Fetched, is_examined: bool) -> Option<bool> {
        match fetched.status {
            200..300 if fetched.is_noindex => Some(false),
            200..300 if !is_examined => None,
            200..300 if fetched.is_archive => Some(false),
            200..300 => {
                if fetched.payload.is_some_and(|payload| !self.is_new(payload)) {
                    return Some(false);
                }
                let (counted, new) = self.text.take(fetched.text.as_ref()?);
                let says_new = new > 0 && new * NEW_TEXT_PARTS >= counted;
                if says_new || self.new_shapes >= NEW_SHAPES_MIN {
                    return Some(true);
                }
                // Of one or two hashes none is new by chance.
                (counted >= COUNTED_MIN).then_some(false)
            }
            // Of an earlier crawl nothing is worth less.
            304 => None,
            // To the root a server sends whoever asks for what it does not have.
            300..400 if is_examined => fetched
                .redirect
                .as_ref()
                .filter(|target| target.path_and_query() != "/")
                .map(|target| self.is_new(xxh3_64(target.as_str().as_bytes()))),
            // Anyone may link to pages of a host that are not there, and such pages lead nowhere.
            _ => None,
        }
    }

    /// The way of a URL down the tree of patterns.
    fn kind<'a>(&self, tokens: &'a Tokens, hash: u32) -> impl Iterator<Item = u32> + use<'a> {
        let class = if self.shapes.is_again(tokens.shape(), hash) { AGAIN } else { FIRST };
        std::iter::once(class).chain(tokens.iter()).chain([END])
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        size_of::<HostYield>()
            + self.patterns.ram_bytes()
            + self.shapes.ram_bytes()
            + self.text.ram_bytes()
            + self.recent.capacity() * size_of::<u64>()
    }

    /// Whether a hash did not come lately; it is remembered then.
    fn is_new(&mut self, hash: u64) -> bool {
        if self.recent.contains(&hash) {
            return false;
        }
        match self.recent.get_mut(self.next) {
            Some(place) => *place = hash,
            None => self.recent.push(hash),
        }
        self.next = (self.next + 1) % RECENT_MAX;
        true
    }
}

fn tokens(url: &Url) -> Tokens {
    Tokens::of(url.path_and_query())
}

fn hash(url: &Url) -> u32 {
    xxh3_64(url.path_and_query().as_bytes()) as u32
}

/// Pages of a host that are not looked at.
pub const FREE_PAGES: u32 = 1;
/// Most bytes that are held for a host.
pub const HOST_BYTES_MAX: usize = 256 << 10;
/// What is held at least for a host that is looked at.
pub const HOST_BYTES_MIN: usize = 2 << 10;
/// The first pages that are looked at.
const PAGES_MIN: u64 = 64;
/// One page of so many is looked at in any case.
const SAMPLED: u64 = 8;
/// Pages that are looked at after one that was bad.
const ALARMED_PAGES: u8 = 16;
/// Hashes of a host that are remembered.
const RECENT_MAX: usize = 64;
/// A page is worth its fetch if one part in so many of its text is new to its host.
const NEW_TEXT_PARTS: usize = 5;
/// With fewer hashes that count, nothing new in a page says nothing.
const COUNTED_MIN: usize = 2;
/// So many new shapes a page must lead to: a page of a trap leads to one or two more, and a page's own history or comments are
/// shapes that no other has.
const NEW_SHAPES_MIN: u32 = 4;
/// The first tokens of URLs, by whether another had their shape before.
const FIRST: u32 = 1;
const AGAIN: u32 = 2;
/// The last one: what ends at a node is of another kind than what lies below it.
const END: u32 = u32::MAX - 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::parse(&format!("http://a.test{path}")).expect("a URL")
    }

    /// A page with the texts of these numbers, of two hundred words each.
    fn page(texts: impl IntoIterator<Item = u64>) -> Fetched {
        let shingles =
            texts.into_iter().flat_map(|text| (0..200).map(move |word| xxh3_64(&(text << 8 | word).to_le_bytes())));
        Fetched { status: 200, text: TextSample::of(shingles), ..Fetched::default() }
    }

    /// A word of its own for each number.
    fn letters(number: u64) -> String {
        number.to_string().bytes().map(|digit| char::from(digit + 49)).collect()
    }

    /// What 80 pages of a kind were makes the kind poor or not.
    fn is_poor(fetched: impl Fn(u64) -> Fetched) -> bool {
        let mut pages = HostYield::new();
        for number in 0..80 {
            let url = url(&format!("/kind/{number}"));
            pages.found(&url);
            let is_examined = pages.wants_look();
            pages.begin_links();
            pages.note(&url, &fetched(number), is_examined);
        }
        assert!(pages.ram_bytes() <= HOST_BYTES_MAX && !pages.is_poor(&url("/other")));
        pages.is_poor(&url("/kind/1234"))
    }

    #[test]
    fn what_is_not_worth_its_fetch() {
        assert!(!is_poor(|number| page([number])));
        assert!(!is_poor(|_| page([])), "too short to be known");
        assert!(is_poor(|number| page([number % 3])), "the same");
        // Versions, another choice from the same texts, and lists of what other pages say.
        assert!(is_poor(|number| page((0..60).chain([100 + number]))));
        assert!(is_poor(|number| page((0..16).filter(|text| xxh3_64(&number.to_le_bytes()) >> text & 1 == 1))));
        assert!(!is_poor(|number| page([0, 1, 100 + number])), "a page of a site, with what all its pages have");
        assert!(is_poor(|number| Fetched { payload: Some(7), ..page([number]) }));
        assert!(!is_poor(|number| Fetched { payload: Some(number), ..page([number]) }));
        assert!(is_poor(|number| Fetched { is_noindex: true, ..page([number]) }));
        assert!(is_poor(|number| Fetched { is_archive: true, payload: Some(number), text: None, ..page([]) }));
        assert!(!is_poor(|number| Fetched { status: 404, ..page([number % 3]) }), "strangers link to anything");
        let moved = |to: String| Fetched { status: 302, redirect: Url::parse(&to).ok(), ..Fetched::default() };
        assert!(is_poor(|_| moved("http://a.test/login".to_owned())));
        assert!(!is_poor(|number| moved(format!("http://a.test/{number}"))));
        // One page in two is enough.
        assert!(!is_poor(|number| Fetched { is_noindex: number % 2 > 0, ..page([number]) }));
    }

    /// What has links to things that were not known is worth its fetch, whatever it says itself.
    #[test]
    fn what_leads_to_new_things_is_worth_it() {
        let is_poor = |links: &dyn Fn(u64) -> Vec<String>| {
            let mut pages = HostYield::new();
            for number in 0..40 {
                let list = url(&format!("/list?page={number}"));
                pages.found(&list);
                pages.begin_links();
                for link in links(number) {
                    pages.found(&url(&link));
                }
                pages.note(&list, &page([0]), true);
            }
            pages.is_poor(&url("/list?page=77"))
        };
        assert!(!is_poor(&|number| (0..5).map(|one| format!("/about/{}", letters(5 * number + one))).collect()));
        assert!(
            is_poor(&|number| (0..5).map(|one| format!("/list?page={}", 5 * number + one)).collect()),
            "more lists"
        );
        assert!(is_poor(&|number| vec![format!("/about/{}", letters(number))]), "one each");
        assert!(is_poor(&|_| (0..5).map(|one| format!("/about/{}", letters(one))).collect()), "the same");
    }

    /// A page that is worth it ends where the ways to a dozen worthless ones go on.
    #[test]
    fn a_page_is_told_from_what_lies_below_it() {
        let mut pages = HostYield::new();
        let title =
            |number: u64| format!("{number:03}").bytes().map(|digit| char::from(digit + 49)).collect::<String>();
        let variants = ["", "?do=edit", "?do=diff", "/history", "/raw", "?do=log"];
        for number in 0..60 {
            for (variant, text) in variants.into_iter().zip([number, 7_777, 7_777, 7_777, 7_777, 7_777]) {
                let url = url(&format!("/wiki/{}{variant}", title(number)));
                pages.found(&url);
                pages.begin_links();
                pages.note(&url, &page([text]), true);
            }
        }
        let poor = variants.map(|variant| pages.is_poor(&url(&format!("/wiki/{}{variant}", title(777)))));
        assert_eq!(poor, [false, true, true, true, true, true]);
    }

    /// Links of others with parameters of their own, which the host answers with its first page.
    #[test]
    fn strangers_make_no_good_page_poor() {
        let mut pages = HostYield::new();
        for number in 0..300 {
            let url = url(&format!("/?a{number}x=1"));
            pages.found(&url);
            pages.note(&url, &page([0]), true);
        }
        for path in ["/news", "/wiki/One", "/shop?id=7", "/"] {
            assert!(!pages.is_poor(&url(path)), "{path}");
        }
    }

    /// Sections that mirror each other: after some, a new one is known for what it is, unless another is worth it.
    #[test]
    fn a_first_segment_is_like_all_others_unless_one_is_worth_it() {
        for (with_news, expected) in [(false, true), (true, false)] {
            let mut pages = HostYield::new();
            for number in 0..18u64 {
                let section = ["sport", "local", "money"][number as usize % 3];
                let word = letters(number);
                for (path, text) in [(format!("/{section}/{word}"), 7_777), (format!("/news/{word}"), number)] {
                    if with_news && number < 2 || text == 7_777 {
                        let url = url(&path);
                        pages.found(&url);
                        pages.begin_links();
                        pages.note(&url, &page([text]), true);
                    }
                }
            }
            assert!(pages.is_poor(&url("/local/more")) && !pages.is_poor(&url("/?id=5")) && !pages.is_poor(&url("/")));
            assert_eq!(pages.is_poor(&url("/weather/today")), expected);
        }
    }

    /// A wiki: pages are worth it, their older versions are not, and both have one pattern.
    #[test]
    fn versions_are_told_from_what_they_are_versions_of() {
        let mut pages = HostYield::new();
        let versions = |title: u64| {
            (0..4).map(move |version| {
                let title: String = format!("{title:03}").bytes().map(|digit| char::from(digit + 49)).collect();
                url(&format!("/wiki?title={title}&version={:08x}a", 7 - version))
            })
        };
        for title in 0..60 {
            for (version, url) in versions(title).enumerate() {
                pages.found(&url);
                pages.begin_links();
                pages.note(&url, &page([title * 2, title * 2 + u64::from(version == 0)]), true);
            }
        }
        let mut next = versions(100);
        let (first, second) = (next.next().expect("one"), next.next().expect("another"));
        assert_eq!([pages.found(&first), pages.found(&second)], [false, true]);
        assert_eq!([pages.is_poor(&first), pages.is_poor(&second)], [false, true]);
    }

    #[test]
    fn the_first_pages_are_looked_at_then_one_in_eight_and_all_where_there_is_doubt() {
        let looked_at = |texts: fn(u64) -> u64| {
            let mut pages = HostYield::new();
            let looks = (0..400u64).filter(|number| {
                let is_examined = pages.wants_look();
                let read = if is_examined { page([texts(*number)]) } else { page([]) };
                pages.note(&url(&format!("/kind/{number}")), &read, is_examined);
                is_examined
            });
            looks.collect::<Vec<u64>>()
        };
        let good = looked_at(|number| number);
        assert!(good[..66].iter().copied().eq((0..65).chain([72])) && good.len() == 64 + 42, "{good:?}");
        assert_eq!(looked_at(|_| 0).len(), 400);
        // A trap begins behind a hundred good pages: it is met with the next look, and then looked at.
        let late = looked_at(|number| number.min(100));
        assert!(late.iter().filter(|number| (100..300).contains(*number)).count() > 185, "{late:?}");
        // A chain of pages that are all the same is known soon.
        let mut pages = HostYield::new();
        let until_poor = (0..80).position(|number| {
            let url = url(&format!("/list?sid={number:016x}"));
            pages.found(&url);
            pages.begin_links();
            pages.note(&url, &page([0]), pages.wants_look());
            pages.is_poor(&url)
        });
        assert!(until_poor.is_some_and(|pages| pages <= 6), "{until_poor:?}");
    }
}
