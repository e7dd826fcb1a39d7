//! Which sites move from shards with much work to shards with little (SCrawler's distributor: Lee, Lee and Kim,
//! 2007).
//!
//! Decides: work is waiting URLs. The most loaded shard gives a site to the least loaded one: its largest site that
//! reduces the larger of the two loads. This repeats until there is no such site, or loads are within
//! [`LEVEL_PERCENT`] of the mean. Sites of equal size are ordered by name: the same loads give the same moves. A
//! shard whose visited set has no room for a site and its known URLs gets none.
//! Invariants: no move makes a shard the most loaded one; a site moves at most once; the number of moved sites never
//! exceeds the limits.
//! Limits: a site larger than a shard's share stays where it is, because sites are never divided. Loads in URLs say
//! nothing about how fast a site may be fetched; the caller checks the outcome. If a shard has more sites than memory
//! allows, the smaller ones are forgotten: they stay where the rule puts them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Partition;

/// Work of each shard.
pub type WaitingSites = Vec<ShardWork>;

/// Where sites were moved to.
pub type MovedSites = BTreeMap<Box<str>, u16>;

/// What a shard has to do.
#[derive(Debug, Default)]
pub struct ShardWork {
    /// Waiting URLs, and all URLs that it knows.
    waiting: u64,
    known: u64,
    /// Waiting URLs by site, for the larger sites.
    sites: BTreeMap<Box<str>, u64>,
    /// The memory that these take, and the limit.
    bytes: usize,
    bytes_max: usize,
}

impl ShardWork {
    /// No work yet; sites may take `bytes_max` bytes of memory.
    pub fn new(bytes_max: u64) -> ShardWork {
        ShardWork { bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX), ..ShardWork::default() }
    }

    /// The shard knows a URL of a site; the URL waits or is final.
    pub fn note(&mut self, site: &str, is_over: bool) {
        self.known += 1;
        if is_over {
            return;
        }
        self.waiting += 1;
        if let Some(urls) = self.sites.get_mut(site) {
            *urls += 1;
            return;
        }
        self.bytes += site.len() + SITE_BYTES;
        self.sites.insert(site.into(), 1);
        while self.bytes > self.bytes_max && !self.sites.is_empty() {
            self.forget_smaller_half();
        }
    }

    /// Of equal ones the last by name go.
    fn forget_smaller_half(&mut self) {
        let mut sizes: Vec<u64> = self.sites.values().copied().collect();
        let half = sizes.len() / 2;
        let median = *sizes.select_nth_unstable(half).1;
        let mut kept = sizes.len() - half - 1;
        let mut of_median = kept.saturating_sub(self.sites.values().filter(|urls| **urls > median).count());
        kept = 0;
        self.sites.retain(|site, urls| {
            let is_kept = *urls > median || *urls == median && of_median > 0;
            of_median -= usize::from(is_kept && *urls == median);
            kept += if is_kept { site.len() + SITE_BYTES } else { 0 };
            is_kept
        });
        self.bytes = kept;
    }
}

/// How many sites may move, and to where.
#[derive(Clone, Copy, Debug)]
pub struct LevelLimits {
    /// Bytes of memory for the table of moved sites, and for the sites of all shards during levelling.
    pub bytes_max: u64,
    /// URLs that a shard may know.
    pub shard_urls_max: u64,
}

/// The sites that move, and the resulting loads.
#[derive(Debug)]
pub struct Levelled {
    moves: MovedSites,
    /// Earlier moves that stay in effect.
    kept: MovedSites,
    urls: u64,
    /// Waiting URLs of all shards, and of the shard with most of them, before and after.
    all: u64,
    most: [u64; 2],
}

impl Levelled {
    /// Levels the waiting URLs, where sites were moved `earlier`.
    pub fn new(waiting: &WaitingSites, earlier: MovedSites, limits: LevelLimits) -> Levelled {
        let waits =
            |site: &str, shard: u16| waiting.get(usize::from(shard)).is_some_and(|work| work.sites.contains_key(site));
        let mut kept = earlier;
        // Where nothing waits any more the rule applies again, so that the list does not grow forever.
        kept.retain(|site, shard| waits(site, *shard));
        let moves_max = Partition::moved_max(limits.bytes_max).saturating_sub(kept.len());
        let moves = level(waiting, moves_max, limits.shard_urls_max);
        let mut loads: Vec<u64> = waiting.iter().map(|work| work.waiting).collect();
        let before = loads.iter().max().copied().unwrap_or_default();
        let mut moved = 0;
        for (from, work) in waiting.iter().enumerate() {
            for (site, urls) in &work.sites {
                if let Some(to) = moves.get(site) {
                    moved += urls;
                    loads[from] -= urls;
                    loads[usize::from(*to)] += urls;
                }
            }
        }
        let most = [before, loads.iter().max().copied().unwrap_or_default()];
        Levelled { moves, kept, urls: moved, all: loads.iter().sum(), most }
    }

    /// Whether rewriting all logs is worth it.
    pub fn helps(&self) -> bool {
        !self.moves.is_empty() && self.most[1] <= self.most[0] / 10 * 9
    }

    /// The sites that are from now on elsewhere than `rule` puts them.
    pub fn moved_sites(self, rule: &Partition) -> MovedSites {
        let mut moved = self.kept;
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

/// The sites that move, and their new shards: at most `moves_max` sites, to shards that may know `shard_urls_max`
/// URLs.
fn level(waiting: &WaitingSites, moves_max: usize, shard_urls_max: u64) -> MovedSites {
    let mut moves = MovedSites::new();
    let mut loads: Vec<u64> = waiting.iter().map(|work| work.waiting).collect();
    // A shard's remaining room; a shard with too little is not considered again.
    let room = |work: &ShardWork| Some(shard_urls_max.saturating_sub(work.known)).filter(|room| *room > 0);
    let mut rooms: Vec<Option<u64>> = waiting.iter().map(room).collect();
    let mean = loads.iter().sum::<u64>() / (loads.len() as u64).max(1);
    let enough = mean + mean * LEVEL_PERCENT / 100;
    // The largest first; sites that came from elsewhere are excluded.
    let sites = waiting.iter().map(|work| work.sites.iter().map(|(site, urls)| (*urls, &**site)).collect());
    let mut by_size: Vec<BTreeSet<(u64, &str)>> = sites.collect();
    while moves.len() < moves_max {
        let most = (0..loads.len()).max_by_key(|shard| (loads[*shard], std::cmp::Reverse(*shard)));
        let with_room = (0..loads.len()).filter(|shard| rooms[*shard].is_some());
        let least = with_room.min_by_key(|shard| (loads[*shard], *shard));
        let (Some(most), Some(least)) = (most, least) else { break };
        let gap = loads[most] - loads[least];
        if loads[most] <= enough || gap == 0 {
            break;
        }
        // It must be smaller than the gap, ideally half of it.
        let fits = by_size[most].range(..(gap / 2 + 1, "")).next_back();
        let found = fits.or_else(|| by_size[most].range((gap / 2 + 1, "")..(gap, "")).next());
        let Some((urls, site)) = found.copied() else { break };
        // Waiting URLs are counted by site; final ones are assumed to be spread in proportion.
        let ShardWork { waiting: all, known, .. } = waiting[most];
        let takes = (u128::from(urls) * u128::from(known) / u128::from(all.max(1))) as u64;
        rooms[least] = rooms[least].and_then(|room| room.checked_sub(takes));
        if rooms[least].is_none() {
            continue;
        }
        by_size[most].remove(&(urls, site));
        loads[most] -= urls;
        loads[least] += urls;
        moves.insert(site.into(), least as u16);
    }
    moves
}

/// A load this close to the mean is as good as the mean.
const LEVEL_PERCENT: u64 = 2;
/// Bytes that a site takes in addition to its name: for the two lists and the allocator.
pub(super) const SITE_BYTES: usize = 96;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    fn work(sites: BTreeMap<Box<str>, u64>) -> ShardWork {
        let waiting = sites.values().sum();
        ShardWork { waiting, known: waiting, sites, ..ShardWork::default() }
    }

    const UNLIMITED: LevelLimits = LevelLimits { bytes_max: 1 << 30, shard_urls_max: u64::MAX };

    fn all_moves(waiting: &WaitingSites) -> MovedSites {
        level(waiting, usize::MAX, u64::MAX)
    }

    fn loads(waiting: &WaitingSites, moves: &BTreeMap<Box<str>, u16>) -> Vec<u64> {
        let mut loads = vec![0; waiting.len()];
        for (shard, sites) in waiting.iter().enumerate() {
            for (site, urls) in &sites.sites {
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
            let mut sites = vec![BTreeMap::new(); shards];
            for site in 0..rng.below(400) {
                let shard = if rng.percent(60) { 0 } else { rng.below(shards as u64) as usize };
                let urls_max = 1 << rng.below(10);
                sites[shard].insert(format!("s{site}.test").into(), 1 + rng.below(urls_max));
            }
            let waiting: WaitingSites = sites.into_iter().map(work).collect();
            let moves = all_moves(&waiting);
            let (before, after) = (loads(&waiting, &BTreeMap::new()), loads(&waiting, &moves));
            assert_eq!(before.iter().sum::<u64>(), after.iter().sum::<u64>());
            let (most, total) = (after.iter().max().copied().unwrap_or_default(), after.iter().sum::<u64>());
            assert!(most <= before.iter().max().copied().unwrap_or_default(), "seed {seed}");
            let largest = waiting.iter().flat_map(|work| work.sites.values()).max().copied().unwrap_or_default();
            assert!(most <= total / shards as u64 * 102 / 100 + largest, "seed {seed}: {before:?} {after:?}");
            assert_eq!(all_moves(&waiting), moves);
            for (site, to) in &moves {
                assert!(!waiting[usize::from(*to)].sites.contains_key(site), "{site} stays where it is");
            }
        }
    }

    #[test]
    fn sites_that_are_done_are_the_rule_s_again() {
        let rule = &Partition::by_site(2);
        let names: Vec<Box<str>> = (0..40).map(|site| format!("s{site}.test").into()).collect();
        let of = |shard: u16| names.iter().filter(move |site| rule.home_of(site) == shard);
        let all: BTreeMap<Box<str>, u64> = of(0).map(|site| (site.clone(), 10)).collect();
        let waiting = vec![work(all.clone()), work(BTreeMap::new())];
        let moved = Levelled::new(&waiting, MovedSites::new(), UNLIMITED).moved_sites(rule);
        assert_eq!(moved.len(), all.len() / 2);
        assert!(moved.values().all(|shard| *shard == 1));
        // One of them still waits, and other sites of its new shard make that the fuller one.
        let still = moved.keys().next().expect("a site").clone();
        let second: BTreeMap<Box<str>, u64> = of(1).map(|site| (site.clone(), 5)).chain([(still.clone(), 1)]).collect();
        let waiting = vec![work(BTreeMap::new()), work(second)];
        let levelled = Levelled::new(&waiting, moved.clone(), UNLIMITED);
        assert!(levelled.helps());
        let to_first = levelled.moves.clone();
        let after = levelled.moved_sites(rule);
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
        let one = |urls: u64| work(BTreeMap::from([(Box::from(format!("s{urls}.test")), urls)]));
        assert_eq!(all_moves(&vec![]), BTreeMap::new());
        assert_eq!(all_moves(&vec![one(7)]), BTreeMap::new());
        assert_eq!(all_moves(&vec![one(100), one(101)]), BTreeMap::new());
        assert_eq!(all_moves(&vec![one(1_000), work(BTreeMap::new())]), BTreeMap::new(), "it would only be elsewhere");
    }

    #[test]
    fn shards_that_are_full_get_nothing_and_others_what_they_have_room_for() {
        let hundred = || work((0..100).map(|site| (format!("s{site}.test").into(), 10)).collect());
        let full = ShardWork { known: 5_000, ..ShardWork::default() };
        // The last one has room for 100 URLs; half of the URLs are final.
        let waiting =
            vec![ShardWork { known: 2_000, ..hundred() }, full, ShardWork { known: 4_900, ..ShardWork::default() }];
        let moves = level(&waiting, usize::MAX, 5_000);
        assert_eq!(moves.values().collect::<Vec<_>>(), [&2; 5]);
        assert_eq!(level(&waiting, 3, 5_000).len(), 3, "as many as may move");
        assert_eq!(level(&waiting, usize::MAX, 4_000).len(), 0);
    }

    #[test]
    fn moved_sites_never_need_more_than_their_table_has() {
        let of = |from: u64, count: u64| (from..from + count).map(|site| (format!("s{site}.test").into(), 7)).collect();
        let waiting: WaitingSites = vec![work(of(0, 900)), work(of(900, 50))];
        let earlier: MovedSites = (900..950).map(|site| (format!("s{site}.test").into(), 1)).collect();
        for bytes_max in [0, 700, 6_000, 20_000, 1 << 20] {
            let limits = LevelLimits { bytes_max, ..UNLIMITED };
            let levelled = Levelled::new(&waiting, earlier.clone(), limits);
            let moved = levelled.kept.iter().chain(&levelled.moves).map(|(site, shard)| (site.clone(), *shard));
            let fits = Partition::by_site(2).with_moved(&moved.collect(), bytes_max);
            assert!(fits.is_ok() || levelled.moves.is_empty(), "{bytes_max}: {fits:?}");
        }
    }

    #[test]
    fn small_sites_are_forgotten_where_memory_is_short() {
        let mut shard = ShardWork::new(40 * (SITE_BYTES as u64 + 10));
        for number in 0..10_000 {
            // Ten large ones, and others that appear once.
            shard.note(&format!("large{}.test", number % 10), false);
            shard.note(&format!("a{number}.test"), false);
            shard.note("large0.test", true);
            assert!(shard.bytes <= shard.bytes_max && shard.sites.len() <= 40);
        }
        assert_eq!((shard.waiting, shard.known), (20_000, 30_000));
        for site in 0..10 {
            assert_eq!(shard.sites.get(&*format!("large{site}.test")), Some(&1_000));
        }
    }
}
