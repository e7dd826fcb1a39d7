//! The seed that a URL came from: its party, SCrawler's name for everything reached from one seed.
//!
//! Decides: a URL belongs to the party of the page that first linked to it or redirected to it. A sitemap named in a
//! robots.txt belongs to the party of the first URL of that origin, for which the file was fetched. A URL of a log
//! that does not record pages belongs to no party.
//! Two passes over the logs: one for the hashes of URLs and pages, one for the question about each URL.
//! A URL that found no room belongs to the party of the page that linked to it, or of the origin whose robots.txt
//! named it; it has no entry of its own.
//! Limits: 20 bytes a URL that was accepted, 16 an origin, and the seeds' texts.

use std::collections::{HashMap, HashSet};
use std::io;

use super::crawl_logs::CrawlLogs;
use super::linkers::{Linkers, hash};
use ringcrawl_brain::hops::Hops;
use ringcrawl_brain::log::{Listed, ListingStep, UrlState};
use ringcrawl_url::Url;

/// The parties of a crawl.
#[derive(Debug)]
pub(super) struct Parties {
    /// Sorted hashes of URLs that are not seeds, and the index of their seed in `seeds`.
    urls: Vec<(u64, u32)>,
    /// Indexes of seeds, by their hashes.
    places: HashMap<u64, u32>,
    /// As URLs, in the order of the logs.
    pub(super) seeds: Vec<Box<str>>,
    /// From the hash of an origin to that of its first URL.
    origins: HashMap<u64, u64>,
}

/// The results of the first pass.
#[derive(Debug, Default)]
struct Links {
    linkers: Linkers,
    seeds: Vec<Box<str>>,
    /// From the hash of an origin to that of its first URL.
    origins: HashMap<u64, u64>,
    /// Hashes of robots.txt files that named sitemaps, and of their origins.
    robots: HashMap<u64, u64>,
}

impl Parties {
    /// Reads the logs; the second pass reports damage in them.
    pub(super) fn read(logs: &CrawlLogs) -> io::Result<Parties> {
        let mut links = Links::default();
        logs.clone().without_aside().read_silently(&mut |step| {
            if let ListingStep::Url(listed) = &step {
                links.take(listed);
            }
        })?;
        Ok(links.parties())
    }

    /// The index of the seed that `listed` came from.
    pub(super) fn of(&self, listed: &Listed<'_>) -> Option<u32> {
        if listed.state != UrlState::SetAside {
            return self.of_url(hash(listed.text));
        }
        let via = listed.via?;
        let of_origin = || self.of_url(*self.origins.get(&hash(via.strip_suffix(ROBOTS)?))?);
        self.of_url(hash(via)).or_else(of_origin)
    }

    fn of_url(&self, url: u64) -> Option<u32> {
        let of_link = || {
            let found = self.urls.binary_search_by_key(&url, |(url, _)| *url).ok()?;
            self.urls.get(found).map(|(_, seed)| *seed)
        };
        self.places.get(&url).copied().or_else(of_link)
    }

    /// The index of a seed.
    pub(super) fn place(&self, seed: &Url) -> Option<u32> {
        self.places.get(&hash(seed.as_str())).copied()
    }
}

impl Links {
    fn take(&mut self, listed: &Listed<'_>) {
        let url = hash(listed.text);
        if Hops::from_bits(listed.depth) == Hops::default() {
            self.seeds.push(listed.text.into());
        } else {
            self.linkers.take(listed);
            if let Some(via) = listed.via
                && let Some(origin) = via.strip_suffix(ROBOTS)
            {
                self.robots.insert(hash(via), hash(origin));
            }
        }
        if let Ok(url_of) = Url::from_canonical(listed.text) {
            self.origins.entry(hash(url_of.origin())).or_insert(url);
        }
    }

    fn parties(mut self) -> Parties {
        self.linkers.sort();
        let robots = self.robots.iter().filter_map(|(robots, origin)| Some((*robots, *self.origins.get(origin)?)));
        let robots: HashMap<u64, u64> = robots.collect();
        let seeds = std::mem::take(&mut self.seeds);
        let places: HashMap<u64, u32> = (0..).zip(&seeds).map(|(place, seed)| (hash(seed), place)).collect();
        // The index of each URL's seed, as soon as it is known: each path is walked once.
        let linkers = &self.linkers;
        let mut found: Vec<u32> = vec![OPEN; linkers.len()];
        for start in 0..linkers.len() {
            let (mut way, mut on_way, mut at) = (Vec::new(), HashSet::new(), Some(start));
            let mut seed = NONE;
            while let Some(place) = at {
                match found.get(place).copied().unwrap_or(NONE) {
                    OPEN if on_way.insert(place) => way.push(place),
                    OPEN => break,
                    known => {
                        seed = known;
                        break;
                    }
                }
                let via = linkers.at(place).map_or(0, |(_, via)| via);
                // A robots.txt that is also a URL of the crawl was linked to.
                let via = match linkers.place(via).is_none() && !places.contains_key(&via) {
                    true => robots.get(&via).copied().unwrap_or(via),
                    false => via,
                };
                if let Some(place) = places.get(&via) {
                    seed = *place;
                    break;
                }
                at = linkers.place(via);
            }
            way.into_iter().for_each(|place| {
                if let Some(found) = found.get_mut(place) {
                    *found = seed;
                }
            });
        }
        let urls = (0..).map_while(|place| linkers.at(place)).zip(found).filter(|(_, seed)| *seed != NONE);
        let urls = urls.map(|((url, _), seed)| (url, seed)).collect();
        Parties { urls, places, seeds, origins: self.origins }
    }
}

const ROBOTS: &str = "/robots.txt";
/// In place of a seed: `OPEN` if it is not known yet, `NONE` if there is none.
const OPEN: u32 = u32::MAX;
const NONE: u32 = u32::MAX - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reached_from_a_seed_is_of_its_party() {
        let redirect = Hops::default().redirect().bits();
        let log = [
            Listed::waiting("http://b.test/deep", Some("http://a.test/2"), 3),
            Listed::waiting("http://a.test/", None, 0),
            Listed::waiting("http://a.test/2", Some("http://a.test/1"), 2),
            Listed::waiting("http://a.test/1", Some("http://a.test/"), 1),
            Listed::waiting("http://b.test/", None, 0),
            Listed::waiting("http://b.test/home", Some("http://b.test/"), redirect),
            Listed::waiting("http://b.test/1", Some("http://b.test/home"), 1),
            // Named by robots.txt; its pages were found in it. Nothing of the other origin was fetched.
            Listed::waiting("http://b.test/map", Some("http://b.test/robots.txt"), 1),
            Listed::waiting("http://c.test/mapped", Some("http://b.test/map"), 2),
            Listed::waiting("http://d.test/map", Some("http://other.test/robots.txt"), 1),
            // An older version did not record pages; and one path runs in a circle.
            Listed::waiting("http://a.test/old", None, 4),
            Listed::waiting("http://e.test/1", Some("http://e.test/2"), 2),
            Listed::waiting("http://e.test/2", Some("http://e.test/1"), 2),
            // It was redirected for a cookie, and back.
            Listed::waiting("http://b.test/home", Some("http://b.test/check"), redirect),
            Listed::waiting("http://b.test/check", Some("http://b.test/home"), redirect),
        ];
        let mut links = Links::default();
        log.iter().for_each(|listed| links.take(listed));
        let parties = links.parties();
        assert_eq!(parties.seeds, ["http://a.test/".into(), "http://b.test/".into()]);
        let of = log.iter().map(|listed| parties.of(listed)).collect::<Vec<_>>();
        let (a, b) = (Some(0), Some(1));
        let aside = Listed::waiting("http://f.test/", Some("http://b.test/1"), 2);
        let named = Listed::waiting("http://b.test/map2", Some("http://b.test/robots.txt"), 1);
        // The robots.txt of a.test named no sitemap that had room.
        let first = Listed::waiting("http://a.test/map", Some("http://a.test/robots.txt"), 1);
        let of_aside = |listed| parties.of(&Listed { state: UrlState::SetAside, ..listed });
        assert_eq!([aside, named, first].map(of_aside), [b, a, a]);
        // The first URL of b.test in the log is of the first party, for which the robots.txt was fetched.
        assert_eq!(of, [a, a, a, a, b, b, b, a, a, None, None, None, None, b, b]);
        assert_eq!(parties.place(&Url::parse("http://b.test").expect("a URL")), b);
        assert_eq!(parties.place(&Url::parse("http://a.test/1").expect("a URL")), None);
    }
}
