//! How many pages a site may have before others get theirs, by the number of other sites that link to it.
//!
//! Decides: a site has `budget.site_pages_free` pages, and `site_pages_per_linking_site` more for each site that
//! links to it (IRLbot's STAR: Lee, Leonard, Wang, Loguinov, "IRLbot: Scaling to 6 Billion Pages and Beyond", 2008).
//! Once a site has had these pages, or has them in flight, its hosts leave pages to others that can be queried at the
//! same time ([`super::competition`]). Nothing is dropped. Without `crawl.pages_max` hosts do not compete, and
//! allowances change nothing.
//! A page is a response of status 2xx, whichever queue its URL came from. Seeds, their redirects and everything else
//! of the same sites are exempt: a user wants them.
//! Why so: the content of a spam site is new, so yields do not expose it; but others have no reason to link to it,
//! and a domain costs money.
//! Invariants: a site has at most its allowance before others, and its number of linking sites does not depend on the
//! number of shards.
//! Limits: `budget.ram_bytes_max`. A site that finds no room is at the front, and counted; links alone take at most
//! three quarters of the room, as strangers may link to anything. Free hosts below a public suffix of the list's
//! private section are sites.

use super::parts::{ENTRY_BYTES, Parts};
use crate::backlinks::{LinkingSites, SiteLink};
use ringcrawl_config::Config;
use ringcrawl_url::SiteKey;

/// The allowances of one shard's sites.
#[derive(Debug, Default)]
pub struct LinkQuotas {
    free: u64,
    /// For each linking site; 0: no site waits.
    each: u64,
    sites: Parts<Counted>,
    entries_max: usize,
    /// Requests of sites for which there was no room.
    uncounted: u64,
    /// Times that a host of a site over its allowance left a page to others.
    lowered: u64,
}

/// What is known of a site.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    linking: LinkingSites,
    /// Pages, including those in flight.
    pages: u32,
    /// It is the site of a seed.
    is_wanted: bool,
}

impl LinkQuotas {
    /// The allowances of a crawl of `config`, in this many bytes.
    pub fn new(config: &Config, ram_bytes: u64) -> LinkQuotas {
        let each = if config.counts_linking_sites() { config.budget.site_pages_per_linking_site } else { 0 };
        LinkQuotas {
            free: config.budget.site_pages_free.into(),
            each: each.into(),
            entries_max: usize::try_from(ram_bytes / ENTRY_BYTES).unwrap_or(usize::MAX),
            ..LinkQuotas::default()
        }
    }

    /// Whether any site may have to wait.
    pub fn are_set(&self) -> bool {
        self.each > 0
    }

    /// A site links to another one; returns whether that is new.
    pub fn linked(&mut self, link: SiteLink) -> bool {
        let room = self.entries_max / 4 * 3;
        self.are_set() && self.sites.entry(link.to, room).is_some_and(|site| site.linking.add(link.mark))
    }

    /// A site is that of a seed.
    pub fn wanted(&mut self, site: SiteKey) {
        if self.are_set()
            && let Some(site) = self.sites.entry(site.number(), self.entries_max)
        {
            site.is_wanted = true;
        }
    }

    /// A page of a site is requested, or an earlier run had it.
    pub fn took(&mut self, site: SiteKey) {
        if !self.are_set() {
            return;
        }
        match self.sites.entry(site.number(), self.entries_max) {
            Some(site) => site.pages = site.pages.saturating_add(1),
            None => self.uncounted += 1,
        }
    }

    /// The request has ended; tells whether it is a page.
    pub fn ended(&mut self, site: SiteKey, is_page: bool) {
        if !is_page && let Some(site) = self.sites.get_mut(site.number()) {
            site.pages = site.pages.saturating_sub(1);
        }
    }

    /// Whether a site has had everything that it may have before others.
    pub fn is_over(&self, site: SiteKey) -> bool {
        if !self.are_set() {
            return false;
        }
        let Some(site) = self.sites.get(site.number()).filter(|site| !site.is_wanted) else { return false };
        let pages = u64::from(site.pages);
        pages >= self.free && pages >= allowance(self.free, self.each, site.linking.count())
    }

    /// A host waits; `is_over` tells whether its site is over its allowance.
    pub fn lowered(&mut self, is_over: bool) {
        self.lowered += u64::from(is_over);
    }

    /// Requests of sites for which there was no room.
    pub fn uncounted(&self) -> u64 {
        self.uncounted
    }

    /// Times that a host of a site over its allowance left a page to others.
    pub fn turns_over(&self) -> u64 {
        self.lowered
    }

    /// Approximately how many sites link to a site, and how many pages it has.
    #[cfg(test)]
    pub fn of(&self, site: SiteKey) -> (u64, u32) {
        self.sites.get(site.number()).map_or((0, 0), |site| (site.linking.count(), site.pages))
    }
}

/// The pages allowed to a site with this many linking sites.
pub fn allowance(free: u64, each: u64, linking: u64) -> u64 {
    free.saturating_add(each.saturating_mul(linking))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_config::PartitionBy;

    fn site(number: u64) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    fn allowances(change: impl FnOnce(&mut Config)) -> LinkQuotas {
        let mut config = Config::default();
        (config.budget.site_pages_free, config.budget.site_pages_per_linking_site) = (10, 5);
        change(&mut config);
        LinkQuotas::new(&config, config.budget.ram_bytes_max)
    }

    /// Fetches pages one after the other until the site must wait.
    fn pages(allowances: &mut LinkQuotas, of: u64) -> usize {
        (0..1_000)
            .take_while(|_| {
                let may = !allowances.is_over(site(of));
                if may {
                    allowances.took(site(of));
                    allowances.ended(site(of), true);
                }
                may
            })
            .count()
    }

    fn link(allowances: &mut LinkQuotas, from: u64, to: u64) -> bool {
        SiteLink::new(site(from), site(to)).is_some_and(|link| allowances.linked(link))
    }

    #[test]
    fn pages_are_allowed_by_the_sites_that_link() {
        let mut all = allowances(|_| ());
        assert_eq!(pages(&mut all, 1), 10);
        assert!(link(&mut all, 2, 1) && !link(&mut all, 2, 1) && !link(&mut all, 1, 1));
        assert_eq!((pages(&mut all, 1), all.of(site(1))), (5, (1, 15)));
        let told = (100..200).filter(|from| link(&mut all, *from, 1)).count();
        assert!((30..100).contains(&told), "{told}");
        let (linking, _) = all.of(site(1));
        assert!((70..140).contains(&linking), "{linking}");
        assert_eq!(pages(&mut all, 1) as u64, 5 * (linking - 1));
        // Many sites may link before it has a page.
        assert!((100..103).all(|from| link(&mut all, from, 4)));
        assert_eq!(pages(&mut all, 4), 25);
    }

    #[test]
    fn seeds_are_exempt_and_what_is_in_flight_counts() {
        let mut all = allowances(|_| ());
        all.wanted(site(1));
        assert_eq!(pages(&mut all, 1), 1_000);
        (0..10).for_each(|_| all.took(site(2)));
        assert!(all.is_over(site(2)));
        all.ended(site(2), false);
        assert!(!all.is_over(site(2)), "it was no page");
        all.wanted(site(2));
        assert_eq!(pages(&mut all, 2), 1_000);
    }

    #[test]
    fn off_is_off() {
        let off: [&dyn Fn(&mut Config); 2] = [&|config| config.budget.site_pages_per_linking_site = 0, &|config| {
            config.partition.by = PartitionBy::HostHash
        }];
        for off in off {
            let mut all = allowances(off);
            assert!(!link(&mut all, 2, 1));
            assert_eq!((pages(&mut all, 1), all.of(site(1)), all.uncounted), (1_000, (0, 0), 0));
        }
    }

    #[test]
    fn strangers_links_leave_room_for_sites_with_pages() {
        let mut all = allowances(|config| config.budget.ram_bytes_max = 100 * ENTRY_BYTES);
        let linked = (0..1_000).filter(|to| link(&mut all, 5_000, *to)).count();
        assert_eq!(linked, 75);
        let had: Vec<usize> = (2_000..2_030).map(|number| pages(&mut all, number)).collect();
        assert_eq!(had, [[10; 25].as_slice(), &[1_000; 5]].concat());
        assert_eq!((all.uncounted, pages(&mut all, 0)), (5_000, 15));
    }
}
