//! A page in other formats, which `rel=alternate` with a `type` leads to.
//!
//! Decides: which of them go on (`links.alternates`). A blog names four of them in each post: a feed of its comments,
//! how to embed it twice, and its JSON. They repeat the page, and were half of all requests. A feed of a list is
//! worth its fetch, because it names pages. So by default only feeds go on that the front of a site or section names,
//! judged by its address and its other formats. All pages of a site name the site's own feed, the front too.
//! Invariants: pure; a page without other formats costs nothing.
//! Limits: a post whose address is short and has no digit, and which cannot be embedded, counts as a section.

use crate::hops::Hops;
use ringcrawl_config::Alternates as Wanted;
use ringcrawl_html::Format;
use ringcrawl_url::{HashedUrls, Url};

/// The other formats of one page.
pub struct Alternates {
    wanted: Wanted,
    /// Feeds wait until the whole page is known.
    feeds: HashedUrls,
    left_out: u64,
    /// The page says how to embed it elsewhere, as an item does.
    is_item: bool,
}

impl Alternates {
    /// None so far.
    pub fn new(wanted: Wanted) -> Alternates {
        Alternates { wanted, feeds: HashedUrls::new(), left_out: 0, is_item: false }
    }

    /// Whether an alternate of this format may go on; counts those that do not.
    pub fn admit(&mut self, format: Format) -> bool {
        self.is_item |= format == Format::Oembed;
        let admitted = match self.wanted {
            Wanted::All => true,
            Wanted::Feeds => format == Format::Feed,
            Wanted::Off => false,
        };
        self.left_out += u64::from(!admitted);
        admitted
    }

    /// Whether an alternate of this format is decided on at the page's end.
    pub fn waits(&self, format: Format) -> bool {
        self.wanted == Wanted::Feeds && format == Format::Feed
    }

    /// Keeps a feed until then. Returns whether it is a new one.
    pub fn keep(&mut self, hops: Hops, url: &str, fingerprint: u64) -> bool {
        let is_new = self.feeds.len() < FEEDS_MAX && !self.feeds.fingerprints().contains(&fingerprint);
        if is_new {
            self.feeds.push(hops.bits(), url, fingerprint);
        }
        is_new
    }

    /// The feeds that go on from the page at `url`, at `hops` from a seed, and how many alternates do not.
    pub fn of_page(self, url: &Url, hops: Hops) -> (HashedUrls, u64) {
        let lists = self.feeds.is_empty() || hops.links() == 0 || !self.is_item && is_of_list(url) || is_front(url);
        if lists { (self.feeds, self.left_out) } else { (HashedUrls::new(), self.left_out + self.feeds.len() as u64) }
    }
}

/// Feeds of a page that may go on: a page with more is made of nothing else.
const FEEDS_MAX: usize = 64;

fn is_front(url: &Url) -> bool {
    names(url).is_some_and(|mut names| names.next().is_none())
}

/// Whether the address looks like a list, such as `/news/` or `/topic/trains`: it is short, and its names are neither
/// numbered nor whole titles.
fn is_of_list(url: &Url) -> bool {
    names(url).is_some_and(|names| names.enumerate().all(|(depth, name)| depth < NAMES_MAX && !is_item(name)))
}

/// The names in a path, without that of an index page; none if there is a query.
fn names(url: &Url) -> Option<impl Iterator<Item = &str>> {
    let path = url.path_and_query();
    let is_index = |name: &str| matches!(name.split_once('.'), Some(("index" | "default", _)));
    (!path.contains('?')).then(|| path.split('/').filter(move |name| !name.is_empty() && !is_index(name)))
}

/// Whether this names one thing: it has a digit, as in dates and numbers, an ending, or four words.
fn is_item(name: &str) -> bool {
    let mut bytes = name.bytes();
    let mut joints = 0;
    while let Some(byte) = bytes.next() {
        match byte {
            // Escapes are letters of other alphabets.
            b'%' => drop(bytes.nth(1)),
            b'0'..=b'9' | b'.' => return true,
            b'-' | b'_' | b'+' => joints += 1,
            _ => {}
        }
    }
    joints >= TITLE_JOINTS_MIN
}

/// Names in the path of a section.
const NAMES_MAX: usize = 3;
/// Joints between the words of a title.
const TITLE_JOINTS_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_items_by_their_addresses() {
        for (path, is_list) in [
            ("/", true),
            ("/index.html", true),
            ("/news/", true),
            ("/category/trains", true),
            ("/blog/topic/night-trains/index.php", true),
            ("/%E3%81%82%E3%81%84/", true),
            ("/2026/05/", false),
            ("/2026/05/a-post/", false),
            ("/blog/why-the-trains-are-late/", false),
            ("/a/b/c/d/", false),
            ("/post-12", false),
            ("/post.html", false),
            ("/?p=12", false),
            ("/news/?page=x", false),
        ] {
            let url = Url::parse(&format!("http://a.test{path}")).expect("a URL");
            assert_eq!(is_of_list(&url), is_list, "{path}");
        }
    }
}
