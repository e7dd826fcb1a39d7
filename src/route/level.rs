//! Which sites move from shards with much work to shards with little (SCrawler's distributor: Lee, Lee and Kim, 2007).
//!
//! Decides: work is URLs that wait. The largest site of the most loaded shard that makes the larger of the two loads smaller goes to the least
//! loaded one, until there is none, or loads are within [`LEVEL_PERCENT`] of the mean. Sites of equal size by name: the same loads
//! give the same moves.
//! Invariants: no move makes a shard the most loaded one; a site moves at most once.
//! Limits: a site larger than a shard's share stays where it is, as no site is divided. Loads by URLs say nothing of how fast a site may be
//! asked; whoever moves sites looks at the outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Partition;

/// URLs that wait, by site, of each shard.
pub type WaitingSites = Vec<BTreeMap<Box<str>, u64>>;

/// Where sites were moved to.
pub type MovedSites = BTreeMap<Box<str>, u16>;

/// Sites that move, and what that comes to.
#[derive(Debug)]
pub struct Levelled {
    moves: MovedSites,
    urls: u64,
    /// URLs that wait in all shards, and in the one with most of them, before and after.
    all: u64,
    most: [u64; 2],
}

impl Levelled {
    /// By the URLs that wait.
    pub fn new(waiting: &WaitingSites) -> Levelled {
        let moves = level(waiting);
        let mut loads: Vec<u64> = waiting.iter().map(|sites| sites.values().sum()).collect();
        let before = loads.iter().max().copied().unwrap_or_default();
        let mut moved = 0;
        for (from, sites) in waiting.iter().enumerate() {
            for (site, urls) in sites {
                if let Some(to) = moves.get(site) {
                    moved += urls;
                    loads[from] -= urls;
                    loads[usize::from(*to)] += urls;
                }
            }
        }
        let most = [before, loads.iter().max().copied().unwrap_or_default()];
        Levelled { moves, urls: moved, all: loads.iter().sum(), most }
    }

    /// Whether it is worth writing all logs anew.
    pub fn helps(&self) -> bool {
        !self.moves.is_empty() && self.most[1] <= self.most[0] / 10 * 9
    }

    /// Where sites are from now on that are not where `rule` has them; those of `before` were moved earlier. Where nothing waits any
    /// more the rule has it again, so that the list does not grow for ever.
    pub fn moved_sites(self, before: MovedSites, waiting: &WaitingSites, rule: &Partition) -> MovedSites {
        let waits =
            |site: &str, shard: u16| waiting.get(usize::from(shard)).is_some_and(|sites| sites.contains_key(site));
        let mut moved = before;
        moved.retain(|site, shard| waits(site, *shard));
        moved.extend(self.moves);
        moved.retain(|site, shard| rule.home_of(site) != *shard);
        moved
    }
}

impl fmt::Display for Levelled {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Levelled { moves, urls, all, .. } = self;
        let [before, after] = self.most.map(|most| 100.0 * most as f64 / (*all).max(1) as f64);
        match self.helps() {
            true => write!(
                out,
                "balance: {} sites with {urls} of {all} waiting URLs move; the most loaded shard has {after:.0} % of them, had {before:.0} %",
                moves.len()
            ),
            false => write!(
                out,
                "balance: no site moves; the most loaded shard has {before:.0} % of {all} waiting URLs, and would have {after:.0} %"
            ),
        }
    }
}

/// The sites that move, and where to.
fn level(waiting: &WaitingSites) -> MovedSites {
    let mut moves = MovedSites::new();
    let mut loads: Vec<u64> = waiting.iter().map(|sites| sites.values().sum()).collect();
    let mean = loads.iter().sum::<u64>() / (loads.len() as u64).max(1);
    let enough = mean + mean * LEVEL_PERCENT / 100;
    // The largest first; sites that came from elsewhere are not among them.
    let sized = |sites: &BTreeMap<Box<str>, u64>| sites.iter().map(|(site, urls)| (*urls, site.clone())).collect();
    let mut by_size: Vec<BTreeSet<(u64, Box<str>)>> = waiting.iter().map(sized).collect();
    loop {
        let most = (0..loads.len()).max_by_key(|shard| (loads[*shard], std::cmp::Reverse(*shard)));
        let least = (0..loads.len()).min_by_key(|shard| (loads[*shard], *shard));
        let (Some(most), Some(least)) = (most, least) else { return moves };
        let gap = loads[most] - loads[least];
        if loads[most] <= enough || gap == 0 {
            return moves;
        }
        // It is to be smaller than the gap, and best half of it.
        let fits = by_size[most].range(..(gap / 2 + 1, Box::default())).next_back();
        let found = fits.or_else(|| by_size[most].range((gap / 2 + 1, Box::default())..(gap, Box::default())).next());
        let Some((urls, site)) = found.cloned() else { return moves };
        by_size[most].remove(&(urls, site.clone()));
        loads[most] -= urls;
        loads[least] += urls;
        moves.insert(site, least as u16);
    }
}

/// So far from the mean a load is as good as it.
const LEVEL_PERCENT: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Rng;

    fn loads(waiting: &WaitingSites, moves: &BTreeMap<Box<str>, u16>) -> Vec<u64> {
        let mut loads = vec![0; waiting.len()];
        for (shard, sites) in waiting.iter().enumerate() {
            for (site, urls) in sites {
                loads[moves.get(site).map_or(shard, |to| usize::from(*to))] += urls;
            }
        }
        loads
    }

    #[test]
    fn skewed_shards_are_levelled_and_few_sites_move() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let shards = 1 + rng.below(8) as usize;
            let mut waiting: WaitingSites = vec![BTreeMap::new(); shards];
            for site in 0..rng.below(400) {
                let shard = if rng.percent(60) { 0 } else { rng.below(shards as u64) as usize };
                let urls_max = 1 << rng.below(10);
                waiting[shard].insert(format!("s{site}.test").into(), 1 + rng.below(urls_max));
            }
            let moves = level(&waiting);
            let (before, after) = (loads(&waiting, &BTreeMap::new()), loads(&waiting, &moves));
            assert_eq!(before.iter().sum::<u64>(), after.iter().sum::<u64>());
            let (most, total) = (after.iter().max().copied().unwrap_or_default(), after.iter().sum::<u64>());
            assert!(most <= before.iter().max().copied().unwrap_or_default(), "seed {seed}");
            let largest = waiting.iter().flat_map(BTreeMap::values).max().copied().unwrap_or_default();
            assert!(most <= total / shards as u64 * 102 / 100 + largest, "seed {seed}: {before:?} {after:?}");
            assert_eq!(level(&waiting), moves);
            for (site, to) in &moves {
                assert!(!waiting[usize::from(*to)].contains_key(site), "{site} stays where it is");
            }
        }
    }

    #[test]
    fn sites_that_are_done_are_the_rule_s_again() {
        let rule = &Partition::by_site(2);
        let names: Vec<Box<str>> = (0..40).map(|site| format!("s{site}.test").into()).collect();
        let of = |shard: u16| names.iter().filter(move |site| rule.home_of(site) == shard);
        let all: BTreeMap<Box<str>, u64> = of(0).map(|site| (site.clone(), 10)).collect();
        let waiting = vec![all.clone(), BTreeMap::new()];
        let moved = Levelled::new(&waiting).moved_sites(MovedSites::new(), &waiting, rule);
        assert_eq!(moved.len(), all.len() / 2);
        assert!(moved.values().all(|shard| *shard == 1));
        // One of them waits still, and others of their new shard make it the fuller one.
        let still = moved.keys().next().expect("a site").clone();
        let second: BTreeMap<Box<str>, u64> = of(1).map(|site| (site.clone(), 5)).chain([(still.clone(), 1)]).collect();
        let waiting = vec![BTreeMap::new(), second];
        let levelled = Levelled::new(&waiting);
        assert!(levelled.helps());
        let to_first = levelled.moves.clone();
        let after = levelled.moved_sites(moved.clone(), &waiting, rule);
        for site in &names {
            let expected = match to_first.contains_key(site) {
                true => 0,
                false if *site == still => 1,
                false => rule.home_of(site),
            };
            assert_eq!(after.get(site).copied().unwrap_or(rule.home_of(site)), expected, "{site}");
        }
        assert!(
            after.iter().all(|(site, shard)| rule.home_of(site) != *shard)
                && after.len() < moved.len() + to_first.len()
        );
    }

    #[test]
    fn what_is_level_stays() {
        let one = |urls: u64| BTreeMap::from([(Box::from(format!("s{urls}.test")), urls)]);
        assert_eq!(level(&vec![]), BTreeMap::new());
        assert_eq!(level(&vec![one(7)]), BTreeMap::new());
        assert_eq!(level(&vec![one(100), one(101)]), BTreeMap::new());
        assert_eq!(level(&vec![one(1_000), BTreeMap::new()]), BTreeMap::new(), "it would only be elsewhere");
    }
}
