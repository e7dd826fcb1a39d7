//! Measures a crawl as the papers do.
//!
//! Decides: from Cho and Garcia-Molina, "Parallel Crawlers" (2002), section 3: N pages fetched, I of them different,
//! U reachable from the seeds; overlap (N − I)/I, coverage I/U, quality |A ∩ P|/|P| with A the first pages fetched
//! and P as many pages with the most backlinks within U, communication as URLs sent a page. From Cambazoglu, Turk and
//! Aykanat (2004): bytes sent, balance as the fullest shard over the average one.
//! Quality is given for P of 10, 20, … 100 % of U. Pages with equal backlinks are ranked by a hash of their number,
//! as no paper specifies how. A page that was fetched twice is one page of A, and takes two places in it.
//! Invariants: counts are whole numbers, and a seed always gives the same ones; ratios are computed from them.

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::Treatment;
use super::crawl::{Fetch, Observed};
use crate::plan::PageGraph;

/// Shares of U, in percent, for which the quality is given.
pub const SHARES: [u64; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

/// The reference for a crawl: the reachable pages and their ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ground {
    /// The rank of each reachable page, the one with most backlinks first; [`NOWHERE`] for the others.
    rank: Vec<u32>,
    reachable: u64,
}

const NOWHERE: u32 = u32::MAX;

impl Ground {
    /// The pages reachable from `seeds`.
    pub fn new(graph: &PageGraph, seeds: &[u32]) -> Ground {
        let (mut rank, mut backlinks) = (vec![NOWHERE; graph.pages()], vec![0u32; graph.pages()]);
        let mut reached = Vec::new();
        let mut reach = |page: u32, reached: &mut Vec<u32>| {
            if let Some(place) = rank.get_mut(page as usize).filter(|place| **place == NOWHERE) {
                *place = 0;
                reached.push(page);
            }
        };
        seeds.iter().for_each(|page| reach(*page, &mut reached));
        let mut next = 0;
        while let Some(page) = reached.get(next).copied() {
            next += 1;
            for target in graph.targets_of(page) {
                reach(*target, &mut reached);
                if let Some(count) = backlinks.get_mut(*target as usize) {
                    *count += 1;
                }
            }
        }
        let of = |page: &u32| backlinks.get(*page as usize).copied().unwrap_or_default();
        reached.sort_by_key(|page| (std::cmp::Reverse(of(page)), xxh3_64(&page.to_le_bytes()), *page));
        for (place, page) in (0..).zip(&reached) {
            if let Some(rank) = rank.get_mut(*page as usize) {
                *rank = place;
            }
        }
        Ground { rank, reachable: reached.len() as u64 }
    }

    /// All pages.
    pub fn of_all(graph: &PageGraph) -> Ground {
        Ground::new(graph, &graph.all().collect::<Vec<_>>())
    }

    /// U.
    pub fn reachable(&self) -> u64 {
        self.reachable
    }

    /// |A ∩ P| for the first `count` fetches and as many pages with the most backlinks.
    fn good_among_first(&self, fetches: &[Fetch], count: u64) -> u64 {
        let first = fetches.iter().take(usize::try_from(count).unwrap_or(usize::MAX));
        let is_good = |fetch: &Fetch| self.rank.get(fetch.page as usize).is_some_and(|rank| u64::from(*rank) < count);
        let mut good: Vec<u32> = first.filter(|fetch| is_good(fetch)).map(|fetch| fetch.page).collect();
        good.sort_unstable();
        good.dedup();
        good.len() as u64
    }
}

/// A row: the crawl and its results.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ExperimentRow {
    /// `partition.by`.
    pub partition: String,
    /// `exchange.mode`.
    pub mode: String,
    /// Name of the order.
    pub order: String,
    /// Number of seeds; `None`: not known.
    pub seeds: Option<u64>,
    /// Pages after which it was to end; 0: when it had fetched all.
    pub limit: u64,
    /// K.
    pub shards: u64,
    /// Seed of everything random; 0 for a real crawl.
    pub rng_seed: u64,
    /// N: pages fetched.
    pub pages: u64,
    /// I: different pages.
    pub distinct: u64,
    /// U: reachable pages.
    pub reachable: u64,
    /// (N − I)/I.
    pub overlap: f64,
    /// I/U.
    pub coverage: f64,
    /// |A ∩ P| for 10, 20, … 100 % of U.
    pub good: [u64; SHARES.len()],
    /// The same divided by |P|.
    pub quality: [f64; SHARES.len()],
    /// Links found to pages of other shards.
    pub links_crossing: u64,
    /// URLs sent to other shards; `None`: not known.
    pub urls_sent: Option<u64>,
    /// The same per page.
    pub urls_sent_per_page: Option<f64>,
    /// Bytes of the messages that carried them.
    pub bytes_sent: Option<u64>,
    /// Pages of the shard with the most.
    pub pages_max: u64,
    /// The same divided by the average.
    pub balance_pages: f64,
    /// Bytes of pages of the shard with the most.
    pub bytes_max: u64,
    /// The same divided by the average.
    pub balance_bytes: f64,
    /// Seconds from the start of the crawl to the last byte of the last page; for a stored crawl, from the first
    /// page's request to the last one's.
    pub seconds: f64,
    /// The same for 90 % of the pages fetched.
    pub seconds_90: f64,
    /// Pages per second and shard, until the last page.
    pub pages_per_second_shard: f64,
}

impl ExperimentRow {
    /// The row of a crawl.
    pub fn of(treatment: &Treatment, ground: &Ground, observed: &Observed) -> ExperimentRow {
        let Treatment { partition, mode, order, seeds, limit, shards, rng_seed } = treatment.clone();
        let Observed { fetches, links_crossing, urls_sent, bytes_sent } = observed;
        let pages = fetches.len() as u64;
        let mut distinct: Vec<u32> = fetches.iter().map(|fetch| fetch.page).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let distinct = distinct.len() as u64;
        let places = SHARES.map(|share| (ground.reachable * share).div_ceil(100));
        let good = places.map(|count| ground.good_among_first(fetches, count));
        let (mut of_shard, mut all_bytes) = (vec![(0u64, 0u64); usize::from(shards.max(1))], 0u64);
        for fetch in fetches {
            if let Some((pages, bytes)) = of_shard.get_mut(usize::from(fetch.shard)) {
                (*pages, *bytes) = (*pages + 1, bytes.saturating_add(fetch.bytes));
                all_bytes = all_bytes.saturating_add(fetch.bytes);
            }
        }
        let most = |of: fn(&(u64, u64)) -> u64| of_shard.iter().map(of).max().unwrap_or_default();
        let (pages_max, bytes_max) = (most(|shard| shard.0), most(|shard| shard.1));
        let at = |count: u64| {
            let fetch = count.checked_sub(1).and_then(|index| fetches.get(index as usize));
            fetch.map_or(0.0, |fetch| fetch.at.as_secs_f64())
        };
        ExperimentRow {
            partition,
            mode,
            order,
            seeds,
            limit,
            shards: u64::from(shards),
            rng_seed,
            pages,
            distinct,
            reachable: ground.reachable,
            overlap: ratio(pages - distinct, distinct),
            coverage: ratio(distinct, ground.reachable),
            good,
            quality: std::array::from_fn(|index| ratio(good[index], places[index])),
            links_crossing: *links_crossing,
            urls_sent: Some(*urls_sent),
            urls_sent_per_page: Some(ratio(*urls_sent, pages)),
            bytes_sent: Some(*bytes_sent),
            pages_max,
            balance_pages: ratio(pages_max * u64::from(shards), pages),
            bytes_max,
            balance_bytes: ratio(bytes_max.saturating_mul(u64::from(shards)), all_bytes),
            seconds: at(pages),
            seconds_90: at((pages * 9).div_ceil(10)),
            pages_per_second_shard: match at(pages) {
                0.0 => 0.0,
                seconds => pages as f64 / seconds / f64::from(shards.max(1)),
            },
        }
    }

    /// Names of the columns.
    pub fn columns() -> String {
        let quality: Vec<String> = SHARES.iter().map(|share| format!("quality_{share}")).collect();
        format!(
            "partition,mode,order,seeds,limit,shards,rng_seed,pages,distinct,reachable,overlap,coverage,{},links_crossing,urls_sent,\
             urls_sent_per_page,bytes_sent,pages_max,balance_pages,bytes_max,balance_bytes,seconds,seconds_90,\
             pages_per_second_shard\n",
            quality.join(",")
        )
    }

    /// A line of a table with these columns; unknown values are empty.
    pub fn line(&self) -> String {
        let whole = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
        let ratio = |number: f64| format!("{number:.6}");
        let mut fields = vec![self.partition.clone(), self.mode.clone(), self.order.clone(), whole(self.seeds)];
        fields.extend(
            [self.limit, self.shards, self.rng_seed, self.pages, self.distinct, self.reachable]
                .map(|it| it.to_string()),
        );
        fields.extend([self.overlap, self.coverage].into_iter().chain(self.quality).map(ratio));
        fields.extend([whole(Some(self.links_crossing)), whole(self.urls_sent)]);
        fields.extend([self.urls_sent_per_page.map_or(String::new(), ratio), whole(self.bytes_sent)]);
        fields.extend([self.pages_max.to_string(), ratio(self.balance_pages)]);
        fields.extend([self.bytes_max.to_string(), ratio(self.balance_bytes)]);
        fields.extend([self.seconds, self.seconds_90, self.pages_per_second_shard].map(ratio));
        fields.join(",") + "\n"
    }
}

/// `part` divided by `whole`; 0 if `whole` is 0.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
