//! Waiting hosts whose turns rotate by site.
//!
//! Decides: each site with a waiting host gets one turn and then goes behind all others; within a site the order is
//! first in, first out. So a site's wait depends on how many sites wait, and not on how many hosts one of them has
//! brought.
//! Invariants: a site is queued exactly once while one of its hosts waits, and otherwise not at all. Each call costs
//! the same, however many wait, except for sites that may have nothing now.
//! Limits: the caller bounds hosts. A party with many registrable domains gets a turn for each.

use std::collections::VecDeque;

use crate::job::HostId;
use ringcrawl_base::{IntMap, IntSet};
use ringcrawl_url::SiteKey;

/// The hosts.
#[derive(Debug, Default)]
pub struct SiteRoundRobin {
    sites: VecDeque<SiteKey>,
    hosts: IntMap<VecDeque<HostId>, SiteKey>,
    /// Empty queues, for reuse.
    spare: Vec<VecDeque<HostId>>,
}

impl SiteRoundRobin {
    /// Whether no host waits.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// Whether a host of another site waits.
    pub fn has_another(&self, site: SiteKey) -> bool {
        self.sites.len() > usize::from(self.hosts.contains_key(&site))
    }

    /// Puts a host behind the others of its site, and a site that did not wait behind all others.
    pub fn push(&mut self, site: SiteKey, id: HostId) {
        let hosts = self.hosts.entry(site).or_insert_with(|| self.spare.pop().unwrap_or_default());
        if hosts.is_empty() {
            self.sites.push_back(site);
        }
        hosts.push_back(id);
    }

    /// Puts a host before the others of its site, and a site that did not wait before all others. A site that already
    /// waits keeps its place: others must not wait for more than one turn of it.
    pub fn push_front(&mut self, site: SiteKey, id: HostId) {
        let hosts = self.hosts.entry(site).or_insert_with(|| self.spare.pop().unwrap_or_default());
        if hosts.is_empty() {
            self.sites.push_front(site);
        }
        hosts.push_front(id);
    }

    /// Removes the hosts that are `leaving`, and adds those that waited to `left`. The cost is the same for one and
    /// for many.
    pub fn remove(&mut self, leaving: &IntSet<HostId>, left: &mut IntSet<HostId>) {
        let before = self.hosts.len();
        self.hosts.retain(|_, hosts| {
            hosts.retain(|id| {
                let leaves = leaving.contains(id);
                if leaves {
                    left.insert(*id);
                }
                !leaves
            });
            !hosts.is_empty()
        });
        if self.hosts.len() < before {
            self.sites.retain(|site| self.hosts.contains_key(site));
        }
    }

    /// Takes over all hosts of a site from another queue, behind those that wait here.
    pub fn take_over(&mut self, site: SiteKey, from: &mut SiteRoundRobin) {
        let Some(hosts) = from.hosts.remove(&site) else { return };
        from.sites.retain(|other| *other != site);
        hosts.into_iter().for_each(|id| self.push(site, id));
    }

    /// Moves the sites at the front for which `are_theirs` holds to another queue, with all their hosts.
    pub fn hand_over(&mut self, are_theirs: impl Fn(SiteKey) -> bool, to: &mut SiteRoundRobin) {
        while let Some(site) = self.sites.front().copied().filter(|site| are_theirs(*site)) {
            self.sites.pop_front();
            self.hosts.remove(&site).into_iter().flatten().for_each(|id| to.push(site, id));
        }
    }

    /// Gives a host that was taken its turn back.
    pub fn give_back_turn(&mut self, site: SiteKey, id: HostId) {
        self.push_front(site, id);
        self.bring_forward(site);
    }

    /// Takes the first host of the first site that may have a turn; those before it lose theirs.
    pub fn pop_of(&mut self, may_have: impl Fn(SiteKey) -> bool) -> Option<HostId> {
        self.pop_of_first(usize::MAX, |site, _| may_have(site))
    }

    /// The same, with a condition on each site and its first host, among the first `sites_max` sites.
    pub fn pop_of_first(&mut self, sites_max: usize, may_have: impl Fn(SiteKey, HostId) -> bool) -> Option<HostId> {
        for _ in 0..self.sites.len().min(sites_max) {
            let site = self.sites.pop_front()?;
            let hosts = self.hosts.get_mut(&site)?;
            if !hosts.front().is_some_and(|id| may_have(site, *id)) {
                self.sites.push_back(site);
                continue;
            }
            let id = hosts.pop_front();
            if hosts.is_empty() {
                let row = self.hosts.remove(&site);
                self.spare.extend(row.filter(|row| row.capacity() <= SPARE_HOSTS_MAX && self.spare.len() < SPARE_MAX));
            } else {
                self.sites.push_back(site);
            }
            return id;
        }
        None
    }

    /// Gives the next turn to the first of `count` hosts for which `is_better` holds; returns whether there is one.
    pub fn prefer(&mut self, count: usize, is_better: impl Fn(HostId) -> bool) -> bool {
        let all =
            self.sites.iter().flat_map(|site| self.hosts.get(site).into_iter().flatten().map(move |id| (*site, *id)));
        let Some((site, id)) = all.take(count).find(|(_, id)| is_better(*id)) else { return false };
        if let Some(hosts) = self.hosts.get_mut(&site) {
            hosts.retain(|host| *host != id);
            hosts.push_front(id);
        }
        self.bring_forward(site);
        true
    }

    fn bring_forward(&mut self, site: SiteKey) {
        if let Some(place) = self.sites.iter().position(|other| *other == site) {
            self.sites.remove(place);
            self.sites.push_front(site);
        }
    }
}

/// Queues that are kept for reuse, and their length.
const SPARE_MAX: usize = 256;
const SPARE_HOSTS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: u32) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    fn all(turns: &mut SiteRoundRobin) -> Vec<HostId> {
        std::iter::from_fn(|| turns.pop_of(|_| true)).collect()
    }

    #[test]
    fn sites_take_turns() {
        let mut turns = SiteRoundRobin::default();
        (0..40_000).for_each(|id| turns.push(site(0), id));
        assert_eq!((turns.pop_of(|_| true), turns.pop_of(|_| true)), (Some(0), Some(1)));
        (100_000..100_003).for_each(|id| turns.push(site(1), id));
        turns.push(site(2), 200_000);
        let first: Vec<HostId> = all(&mut turns).into_iter().take(8).collect();
        assert_eq!(first, [2, 100_000, 200_000, 3, 100_001, 4, 100_002, 5]);
        assert!(turns.is_empty() && turns.hosts.is_empty());
    }

    #[test]
    fn a_site_goes_before_others_once() {
        let mut turns = SiteRoundRobin::default();
        turns.push(site(0), 0);
        [1, 2, 3].into_iter().for_each(|id| turns.push_front(site(1), id));
        turns.push_front(site(2), 4);
        assert_eq!(all(&mut turns), [4, 3, 0, 2, 1], "the newest first, and a site's others after its turn");
        assert!(!turns.has_another(site(0)));
        [0, 1].into_iter().for_each(|id| turns.push(site(id), id));
        turns.push(site(0), 2);
        assert!(turns.has_another(site(0)) && turns.has_another(site(5)));
        let taken = turns.pop_of(|_| true);
        assert_eq!(taken, Some(0));
        turns.give_back_turn(site(0), 0);
        assert_eq!(all(&mut turns), [0, 1, 2]);
    }

    #[test]
    fn a_site_that_may_not_is_passed_over() {
        let mut turns = SiteRoundRobin::default();
        [0, 1, 0, 2].into_iter().zip(0..).for_each(|(number, id)| turns.push(site(number), id));
        assert_eq!(turns.pop_of(|of| of != site(0)), Some(1));
        assert_eq!(turns.pop_of(|_| false), None);
        assert_eq!(all(&mut turns), [3, 0, 2]);
    }

    #[test]
    fn the_better_is_next() {
        let mut turns = SiteRoundRobin::default();
        [0, 0, 1, 1].into_iter().zip(0..).for_each(|(number, id)| turns.push(site(number), id));
        assert!(!turns.prefer(3, |id| id == 3), "too far behind");
        assert!(turns.prefer(4, |id| id == 3));
        assert_eq!(all(&mut turns), [3, 0, 2, 1]);
    }
}
