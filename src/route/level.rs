//! Which sites move from shards with much work to shards with little (SCrawler's distributor: Lee, Lee and Kim, 2007).
//!
//! Decides: work is URLs that wait. The largest site of the most loaded shard that makes the larger of the two loads smaller goes to the least
//! loaded one, until there is none, or loads are within [`LEVEL_PERCENT`] of the mean. Sites of equal size by name: the same loads
//! give the same moves.
//! Invariants: no move makes a shard the most loaded one; a site moves at most once.
//! Limits: a site larger than a shard's share stays where it is, as no site is divided. Loads by URLs say nothing of how fast a site may be
//! asked; whoever moves sites looks at the outcome.

use std::collections::{BTreeMap, BTreeSet};

/// URLs that wait, by site, of each shard.
pub type WaitingSites = Vec<BTreeMap<Box<str>, u64>>;

/// The sites that move, and where to.
pub fn level(mut waiting: WaitingSites) -> BTreeMap<Box<str>, u16> {
    let mut moves = BTreeMap::new();
    let mut loads: Vec<u64> = waiting.iter().map(|sites| sites.values().sum()).collect();
    let mean = loads.iter().sum::<u64>() / (loads.len() as u64).max(1);
    let enough = mean + mean * LEVEL_PERCENT / 100;
    // The largest first; sites that came from elsewhere are not among them.
    let mut by_size: Vec<BTreeSet<(u64, Box<str>)>> = waiting
        .iter_mut()
        .map(|sites| std::mem::take(sites).into_iter().map(|(site, urls)| (urls, site)).collect())
        .collect();
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
            let moves = level(waiting.clone());
            let (before, after) = (loads(&waiting, &BTreeMap::new()), loads(&waiting, &moves));
            assert_eq!(before.iter().sum::<u64>(), after.iter().sum::<u64>());
            let (most, total) = (after.iter().max().copied().unwrap_or_default(), after.iter().sum::<u64>());
            assert!(most <= before.iter().max().copied().unwrap_or_default(), "seed {seed}");
            let largest = waiting.iter().flat_map(BTreeMap::values).max().copied().unwrap_or_default();
            assert!(most <= total / shards as u64 * 102 / 100 + largest, "seed {seed}: {before:?} {after:?}");
            assert_eq!(level(waiting.clone()), moves);
            for (site, to) in &moves {
                assert!(!waiting[usize::from(*to)].contains_key(site), "{site} stays where it is");
            }
        }
    }

    #[test]
    fn what_is_level_stays() {
        let one = |urls: u64| BTreeMap::from([(Box::from(format!("s{urls}.test")), urls)]);
        assert_eq!(level(vec![]), BTreeMap::new());
        assert_eq!(level(vec![one(7)]), BTreeMap::new());
        assert_eq!(level(vec![one(100), one(101)]), BTreeMap::new());
        assert_eq!(level(vec![one(1_000), BTreeMap::new()]), BTreeMap::new(), "it would only be elsewhere");
    }
}
