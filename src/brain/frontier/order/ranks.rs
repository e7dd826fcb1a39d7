//! Ranks of URLs from an earlier crawl.
//!
//! Decides: what matters is a rank's position in the list, not its value, so any score will do. The URLs of the best
//! 64th have the highest level, then those of the best 32nd, 16th, eighth, quarter, half, and the rest; URLs that are
//! not in the list come last. URLs of one rank have one level.
//! Invariants: fixed once built, and one table for all shards.
//! Limits: eight bytes a URL, and [`BYTES_EACH_MAX`] during construction. A URL is mistaken for another one with
//! probability n / 2⁶¹.

use crate::frontier::queue::{Level, TOP_LEVEL};

/// Levels by fingerprints.
#[derive(Debug, Default)]
pub struct Ranks {
    /// Sorted; the level is in the lowest bits.
    keys: Box<[u64]>,
}

impl Ranks {
    /// Built from fingerprints with their ranks, the higher the better. If a URL has several, the best counts.
    pub fn new(mut ranks: Vec<(u64, f64)>) -> Ranks {
        ranks.sort_unstable_by(|(one, rank), (other, more)| more.total_cmp(rank).then(one.cmp(other)));
        let all = ranks.len();
        let (mut level, mut last) = (TOP_LEVEL, f64::INFINITY);
        let mut keys: Vec<u64> = Vec::with_capacity(all);
        for (better, (key, rank)) in ranks.into_iter().enumerate() {
            if rank < last {
                last = rank;
                while level > 1 && better << (level - 1) >= all {
                    level -= 1;
                }
            }
            keys.push(key & !LEVEL_BITS | u64::from(level));
        }
        // The best level of a key is its last.
        keys.sort_unstable();
        keys.reverse();
        keys.dedup_by_key(|key| *key & !LEVEL_BITS);
        keys.reverse();
        Ranks { keys: keys.into() }
    }

    /// The level of the URL with this fingerprint.
    pub fn level(&self, key: u64) -> Level {
        let key = key & !LEVEL_BITS;
        let place = self.keys.partition_point(|other| *other < key);
        let found = self.keys.get(place).filter(|found| **found & !LEVEL_BITS == key);
        found.map_or(0, |found| (found & LEVEL_BITS) as Level)
    }

    /// URLs.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// Bytes of memory per URL during construction.
pub const BYTES_EACH_MAX: u64 = 24;
const LEVEL_BITS: u64 = 7;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    #[test]
    fn levels_are_parts_of_the_list() {
        let mut rng = Rng::new(1);
        let urls: Vec<(u64, f64)> = (0..6_400).map(|place| (rng.next(), 1.0 / f64::from(place + 1))).collect();
        let ranks = Ranks::new(urls.iter().rev().copied().collect());
        let mut counts = [0; 8];
        let levels: Vec<Level> = urls.iter().map(|(key, _)| ranks.level(*key)).collect();
        assert!(levels.is_sorted_by(|one, other| one >= other));
        levels.iter().for_each(|level| counts[usize::from(*level)] += 1);
        assert_eq!(counts, [0, 3_200, 1_600, 800, 400, 200, 100, 100]);
        assert!((0..1_000).all(|_| ranks.level(rng.next()) == 0), "unknown ones come last");
    }

    #[test]
    fn one_rank_is_one_level_and_the_best_of_several_counts() {
        let same = Ranks::new((1..=1_000_u64).map(|key| (key << 32, 0.5)).collect());
        assert!((1..=1_000_u64).all(|key| same.level(key << 32) == TOP_LEVEL));
        let mut list: Vec<(u64, f64)> = (1..=128_u64).map(|key| (key << 32, -(key as f64))).collect();
        list.push((128 << 32, 1.0));
        let ranks = Ranks::new(list);
        assert_eq!(([128, 1, 127].map(|key: u64| ranks.level(key << 32)), ranks.len()), ([7, 7, 1], 128));
        assert_eq!((Ranks::default().level(5), Ranks::new(Vec::new()).is_empty()), (0, true));
    }
}
