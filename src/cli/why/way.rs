//! The path to a URL: the pages that led to it, back to a seed.
//!
//! Decides: one pass over the log finds the path among hashes ([`Linkers`]); a second one collects the pages' texts.
//! A page that is not a URL of the log, such as a robots.txt that names a sitemap, ends the path.
//! Limits: [`PAGES_MAX`] pages.

use std::collections::HashMap;

use crate::cli::linkers::{Linkers, hash};
use ringcrawl_brain::hops::Hops;
use ringcrawl_brain::log::Listed;
use ringcrawl_url::Url;

/// The pages that led to a URL, the nearest first.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// From the hash of a page to its index among them.
    places: HashMap<u64, usize>,
    /// Their texts, once found.
    pub(super) pages: Vec<Box<str>>,
    /// Whether the last of them is a seed.
    pub(super) is_whole: bool,
}

impl Way {
    /// The path to `url`.
    pub(super) fn to(url: &Url, mut linkers: Linkers) -> Way {
        linkers.sort();
        let (mut places, mut at) = (HashMap::new(), hash(url.as_str()));
        while places.len() < PAGES_MAX
            && let Some((_, page)) = linkers.place(at).and_then(|place| linkers.at(place))
            && !places.contains_key(&page)
        {
            places.insert(page, places.len());
            at = page;
        }
        let pages = vec![Box::default(); places.len()];
        Way { places, pages, is_whole: false }
    }

    /// Takes a URL of the log in the second pass.
    pub(super) fn take(&mut self, listed: &Listed<'_>) {
        if let Some(via) = listed.via
            && let Some(place) = self.places.get(&hash(via))
            && let Some(page) = self.pages.get_mut(*place)
            && page.is_empty()
        {
            *page = via.into();
        }
        let is_last = || self.places.get(&hash(listed.text)).is_some_and(|place| place + 1 == self.pages.len());
        self.is_whole |= Hops::from_bits(listed.depth) == Hops::default() && is_last();
    }
}

/// Longer paths are cut: a URL is at most 255 links from a seed, with few redirects between them.
const PAGES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The path to a URL in a log of URLs, pages that linked to them, and bits of `Hops`; and whether it begins at a
    /// seed.
    fn way(url: &str, log: &[(&str, Option<&str>, u16)]) -> (Vec<String>, bool) {
        let log: Vec<Listed<'_>> = log.iter().map(|(text, via, depth)| Listed::waiting(text, *via, *depth)).collect();
        let mut linkers = Linkers::default();
        log.iter().for_each(|listed| linkers.take(listed));
        let mut way = Way::to(&Url::parse(url).expect("a URL"), linkers);
        log.iter().for_each(|listed| way.take(listed));
        (way.pages.iter().map(|page| page.to_string()).collect(), way.is_whole)
    }

    #[test]
    fn pages_lead_back_to_a_seed_whatever_the_order_of_the_log() {
        let seed = ("http://a.test/", None, 0);
        let log = [
            ("http://b.test/3", Some("http://a.test/2"), 3),
            seed,
            ("http://a.test/2", Some("http://a.test/1"), 2),
            ("http://a.test/1", Some("http://a.test/"), 1),
            ("http://a.test/other", Some("http://a.test/2"), 3),
        ];
        let expected = ["http://a.test/2", "http://a.test/1", "http://a.test/"].map(str::to_owned).to_vec();
        assert_eq!(way("http://b.test/3", &log), (expected, true));
        assert_eq!(way("http://a.test/", &log), (vec![], false));
        // Redirected for a cookie, and back: it is in the log twice.
        let led_back = ("http://a.test/1", Some("http://a.test/check"), 1);
        let log = [seed, log[3], ("http://a.test/check", Some("http://a.test/1"), 1), led_back];
        assert_eq!(way("http://a.test/1", &log), (vec!["http://a.test/".to_owned()], true));
        assert!(way("http://a.test/check", &log).1);
        assert_eq!(way("http://unknown.test/", &log), (vec![], false));
    }

    #[test]
    fn a_way_ends_where_no_more_is_known() {
        let robots = "http://a.test/robots.txt";
        let map = ("http://a.test/map", Some(robots), 1);
        assert_eq!(way("http://a.test/map", &[map]), (vec![robots.to_owned()], false));
        // A log that is damaged, or of crawlers that worked separately, may contain a circle.
        let log = [("http://a.test/1", Some("http://a.test/2"), 1), ("http://a.test/2", Some("http://a.test/1"), 2)];
        let (pages, is_whole) = way("http://a.test/1", &log);
        assert_eq!((pages, is_whole), (vec!["http://a.test/2".to_owned(), "http://a.test/1".to_owned()], false));
    }
}
