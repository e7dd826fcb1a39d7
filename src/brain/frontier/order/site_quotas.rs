//! What hosts and sites have spent of their budgets, and whether they may spend more.
//!
//! Decides: a page is a response of status 2xx, stored or not. Bytes are those of the last response of each URL, on
//! the wire. Time runs by the wall clock from the first request on, also while no process runs, and follows a clock
//! that is set. robots.txt does not count. A site's options in the seeds ([`crate::seed`]) replace the configuration
//! for all sites.
//! A URL is judged when its turn comes: a URL over a budget ends without a request. If the requests in flight could
//! use up the pages, it waits for them.
//! Why so: everything can be recounted from the logs of URLs and ends, so budgets hold over restarts and for any
//! number of shards without a file of their own.
//! Invariants: a site gets at most its pages; of bytes and time it exceeds its budget at most by what is in flight.
//! Limits: `budget.ram_bytes_max`. Hosts and sites that find no room have no budget (they are counted), except the
//! sites of seeds with options, which always have one.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::parts::{ENTRY_BYTES, Parts};
use crate::frontier::hosts::host_key;
use crate::seed::SiteParts;
use ringcrawl_base::IntMap;
use ringcrawl_base::time::{Duration, Instant, WallClock};
use ringcrawl_config as config;
use ringcrawl_url::{SiteKey, Url};

/// What a host or a site may cost; 0 means no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bound {
    /// Responses of status 2xx.
    pub pages: u32,
    /// Bytes of responses.
    pub bytes: u64,
    /// Seconds since the first request.
    pub seconds: u32,
}

/// What the sites of seeds with options may cost, and their parts, by the numbers of their keys.
pub type SiteBounds = IntMap<Bound>;

/// Sites with parts that have budgets of their own, by the numbers of the sites' keys.
pub type PartsBySite = IntMap<SiteParts>;

/// What one URL has cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Whether it is a page.
    pub is_page: bool,
    /// Bytes of its response.
    pub bytes: u64,
    /// When it ended, in seconds since 1970; 0: no request was made for it.
    pub seconds: u32,
}

/// Whether a URL may be fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// It may.
    Enough,
    /// Requests in flight may use up the rest, or not.
    Pending,
    /// It may not.
    Nothing,
}

/// What a host or a site has cost so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    bytes: u64,
    pages: u32,
    in_flight: u32,
    /// Time of the first request, in seconds since 1970; 0: there was none.
    first: u32,
}

/// The budgets of one shard.
#[derive(Debug)]
pub struct SiteQuotas {
    of_hosts: Bound,
    of_sites: Bound,
    of_seeds: Arc<SiteBounds>,
    site_parts: Arc<PartsBySite>,
    rng_seed: u64,
    clock: WallClock,
    parts: Parts<Spent>,
    entries_max: usize,
    uncounted: u64,
}

impl Bound {
    /// The configured bounds for hosts, and for sites.
    pub fn of_config(budget: &config::Budget) -> [Bound; 2] {
        let bound = |pages, bytes, time: Duration| Bound { pages, bytes, seconds: whole_seconds(time) };
        [
            bound(budget.host_pages_max, budget.host_bytes_max, budget.host_time_max),
            bound(budget.site_pages_max, budget.site_bytes_max, budget.site_time_max),
        ]
    }

    /// Whether there is no bound.
    pub fn is_none(&self) -> bool {
        *self == Bound::default()
    }
}

impl Default for SiteQuotas {
    /// No bounds.
    fn default() -> SiteQuotas {
        SiteQuotas::new(&config::Budget::default(), Arc::default(), 0, WallClock::default(), 0)
    }
}

impl SiteQuotas {
    /// The budgets of one shard, with nothing spent, in this many bytes.
    pub fn new(
        budget: &config::Budget,
        of_seeds: Arc<SiteBounds>,
        rng_seed: u64,
        clock: WallClock,
        ram_bytes: u64,
    ) -> SiteQuotas {
        let [of_hosts, of_sites] = Bound::of_config(budget);
        let entries_max = usize::try_from(ram_bytes / ENTRY_BYTES).unwrap_or(usize::MAX);
        let (site_parts, parts) = (Arc::default(), Parts::default());
        SiteQuotas { of_hosts, of_sites, of_seeds, site_parts, rng_seed, clock, parts, entries_max, uncounted: 0 }
    }

    /// The same, with budgets of their own for these parts of sites.
    pub fn of_parts(self, site_parts: Arc<PartsBySite>) -> SiteQuotas {
        SiteQuotas { site_parts, ..self }
    }

    /// The key under which a URL of `site` is counted: the site's, or that of its part.
    pub fn key(&self, url: &Url, site: SiteKey) -> SiteKey {
        if self.site_parts.is_empty() {
            return site;
        }
        let part = self.site_parts.get(&site.number()).and_then(|parts| parts.of(url));
        part.map_or(site, |(name, _)| SiteKey::new(self.rng_seed, name))
    }

    /// The wall clock was set.
    pub fn set_clock(&mut self, clock: WallClock) {
        self.clock = clock;
    }

    /// Whether anything is bounded.
    pub fn are_set(&self) -> bool {
        !self.of_hosts.is_none() || !self.of_sites.is_none() || !self.of_seeds.is_empty()
    }

    /// Whether bytes are bounded.
    pub fn count_bytes(&self) -> bool {
        let of_seeds = || self.of_seeds.values().any(|bound| bound.bytes > 0);
        self.of_hosts.bytes > 0 || self.of_sites.bytes > 0 || of_seeds()
    }

    /// Requests of hosts and sites for which there was no room.
    pub fn uncounted(&self) -> u64 {
        self.uncounted
    }

    /// What is left for a host.
    pub fn left(&self, now: Instant, host: &str, site: SiteKey) -> Left {
        if !self.are_set() {
            return Left::Enough;
        }
        let seconds = self.seconds(now);
        let mut left = Left::Enough;
        for (key, bound) in self.bounds(host, site) {
            let spent = self.parts.get(key).copied().unwrap_or_default();
            if spent.is_over(&bound, seconds) {
                return Left::Nothing;
            }
            if bound.pages > 0 && spent.pages.saturating_add(spent.in_flight) >= bound.pages {
                left = Left::Pending;
            }
        }
        left
    }

    /// A page of a host is requested.
    pub fn took(&mut self, now: Instant, host: &str, site: SiteKey) {
        if !self.are_set() {
            return;
        }
        let seconds = self.seconds(now);
        for (key, _) in self.bounds(host, site) {
            match self.spent(key) {
                Some(spent) => {
                    spent.in_flight = spent.in_flight.saturating_add(1);
                    spent.asked(seconds);
                }
                None => self.uncounted += 1,
            }
        }
    }

    /// The request has ended; `None`: it will be repeated.
    pub fn ended(&mut self, host: &str, site: SiteKey, cost: Option<Cost>) {
        if !self.are_set() {
            return;
        }
        for (key, _) in self.bounds(host, site) {
            if let Some(spent) = self.parts.get_mut(key) {
                spent.in_flight = spent.in_flight.saturating_sub(1);
                cost.iter().for_each(|cost| spent.add(cost));
            }
        }
    }

    /// An earlier run has requested a URL of a host.
    pub fn replayed(&mut self, host: &str, site: SiteKey, cost: Cost) {
        for (key, _) in self.bounds(host, site) {
            match self.spent(key) {
                Some(spent) => {
                    spent.add(&cost);
                    if cost.seconds > 0 {
                        spent.asked(cost.seconds);
                    }
                }
                None => self.uncounted += 1,
            }
        }
    }

    /// The keys under which a host is counted, and their bounds.
    fn bounds(&self, host: &str, site: SiteKey) -> impl Iterator<Item = (u64, Bound)> + use<> {
        let of_site = self.of_seeds.get(&site.number()).copied().unwrap_or(self.of_sites);
        let host = (!self.of_hosts.is_none())
            .then(|| (xxh3_64_with_seed(host_key(host).as_bytes(), self.rng_seed ^ HOSTS), self.of_hosts));
        let site = (!of_site.is_none()).then(|| (site.number(), of_site));
        host.into_iter().chain(site)
    }

    /// What a key has spent; `None` if there is no room to record it.
    fn spent(&mut self, key: u64) -> Option<&mut Spent> {
        let entries_max = if self.of_seeds.contains_key(&key) { usize::MAX } else { self.entries_max };
        self.parts.entry(key, entries_max)
    }

    fn seconds(&self, now: Instant) -> u32 {
        // 0 means no time.
        u32::try_from(self.clock.seconds(now)).unwrap_or(u32::MAX).max(1)
    }
}

impl Spent {
    fn is_over(&self, bound: &Bound, seconds: u32) -> bool {
        let lasts = if self.first > 0 { seconds.saturating_sub(self.first) } else { 0 };
        bound.pages > 0 && self.pages >= bound.pages
            || bound.bytes > 0 && self.bytes >= bound.bytes
            || bound.seconds > 0 && lasts >= bound.seconds
    }

    fn add(&mut self, cost: &Cost) {
        self.pages = self.pages.saturating_add(cost.is_page.into());
        self.bytes = self.bytes.saturating_add(cost.bytes);
    }

    fn asked(&mut self, seconds: u32) {
        if self.first == 0 || seconds < self.first {
            self.first = seconds;
        }
    }
}

fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX)
}

/// Hosts are counted next to sites, and have other keys.
const HOSTS: u64 = 0x68_6f_73_74;
/// How long a URL waits for requests in flight.
pub const PENDING_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::time::UnixTime;

    const PAGE: Cost = Cost { is_page: true, bytes: 1_000, seconds: 0 };

    fn site(number: u64) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    /// A clock that shows this many seconds at the beginning.
    fn clock(seconds: u64) -> WallClock {
        WallClock::reading(Instant::ZERO, UnixTime::from_micros(seconds * 1_000_000))
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn budgets(change: impl FnOnce(&mut config::Budget), of_seeds: SiteBounds) -> SiteQuotas {
        let mut budget = config::Budget::default();
        change(&mut budget);
        let bytes = budget.ram_bytes_max;
        SiteQuotas::new(&budget, Arc::new(of_seeds), 7, clock(1_000_000), bytes)
    }

    /// Fetches pages one after the other until nothing is left.
    fn pages(budgets: &mut SiteQuotas, host: &str, site: SiteKey, cost: Cost) -> usize {
        let fetched = (0..1_000).take_while(|_| {
            let is_left = budgets.left(at(0), host, site) == Left::Enough;
            if is_left {
                budgets.took(at(0), host, site);
                budgets.ended(host, site, Some(cost));
            }
            is_left
        });
        fetched.count()
    }

    #[test]
    fn hosts_and_sites_have_their_own() {
        let bounds = |budget: &mut config::Budget| (budget.host_pages_max, budget.site_pages_max) = (10, 25);
        let mut budgets = budgets(bounds, SiteBounds::default());
        let all = ["a.s1.test", "b.s1.test", "c.s1.test", "c.s1.test."];
        assert_eq!(all.map(|host| pages(&mut budgets, host, site(1), PAGE)), [10, 10, 5, 0]);
        assert_eq!(pages(&mut budgets, "a.s2.test", site(2), PAGE), 10);
        let dots = ["a.s2.test.", "b.s1.test"].map(|host| budgets.left(at(0), host, site(2)));
        assert_eq!(dots, [Left::Nothing; 2], "a host is one, with a dot at its end or without");
        assert_eq!(pages(&mut SiteQuotas::default(), "a.s2.test", site(2), PAGE), 1_000);
    }

    #[test]
    fn seeds_have_theirs_whatever_is_said_of_all() {
        let of = |number, pages, bytes| (site(number).number(), Bound { pages, bytes, seconds: 0 });
        let of_seeds: SiteBounds = [of(1, 3, 0), of(2, 0, 0), of(3, 0, 4_500)].into_iter().collect();
        let mut budgets = budgets(|budget| budget.site_pages_max = 20, of_seeds);
        let had = [1, 2, 3, 4].map(|number| pages(&mut budgets, "x.test", site(number), PAGE));
        assert_eq!(had, [3, 1_000, 5, 20]);
    }

    #[test]
    fn what_is_in_flight_may_yet_be_no_page() {
        let mut budgets = budgets(|budget| budget.site_pages_max = 2, SiteBounds::default());
        ["a", "b"].into_iter().for_each(|host| budgets.took(at(0), host, site(1)));
        assert_eq!(budgets.left(at(0), "c", site(1)), Left::Pending);
        budgets.ended("a", site(1), Some(Cost { is_page: false, ..PAGE }));
        assert_eq!(budgets.left(at(0), "c", site(1)), Left::Enough);
        budgets.ended("b", site(1), None);
        assert_eq!(pages(&mut budgets, "c", site(1), PAGE), 2);
    }

    #[test]
    fn time_runs_from_the_first_request_and_over_restarts() {
        let bounds = |budget: &mut config::Budget| budget.host_time_max = Duration::from_secs(60);
        let mut first = budgets(bounds, SiteBounds::default());
        assert_eq!(first.left(at(500), "a", site(1)), Left::Enough, "no other site asked yet");
        first.took(at(500), "a", site(1));
        assert_eq!([559, 560].map(|now| first.left(at(now), "a", site(1))), [Left::Enough, Left::Nothing]);
        let mut again = budgets(bounds, SiteBounds::default());
        [1_000_040, 1_000_030, 0]
            .into_iter()
            .for_each(|seconds| again.replayed("a", site(1), Cost { seconds, ..Cost::default() }));
        assert_eq!([89, 90].map(|now| again.left(at(now), "a", site(1))), [Left::Enough, Left::Nothing]);
        again.set_clock(clock(999_990));
        assert_eq!([99, 100].map(|now| again.left(at(now), "a", site(1))), [Left::Enough, Left::Nothing]);
    }

    #[test]
    fn who_finds_no_room_has_no_budget_but_for_seeds() {
        let of_seeds: SiteBounds = [(site(1).number(), Bound { pages: 2, ..Bound::default() })].into_iter().collect();
        let bounds =
            |budget: &mut config::Budget| (budget.site_pages_max, budget.ram_bytes_max) = (5, 10 * ENTRY_BYTES);
        let mut budgets = budgets(bounds, of_seeds);
        let had: Vec<usize> = (2..14).map(|number| pages(&mut budgets, "x", site(number), PAGE)).collect();
        assert_eq!(had, [[5; 10].as_slice(), &[1_000; 2]].concat());
        assert_eq!((budgets.uncounted(), pages(&mut budgets, "x", site(1), PAGE)), (2_000, 2));
    }
}
