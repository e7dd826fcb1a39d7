//! The crawls of an experiment: every combination of its axes, one after another.
//!
//! Decides: the configuration of a crawl is production's default, except for what would hide the effect of the axes
//! ([`base`]); then the operator's settings apply, then the combination. Seeds are drawn from all pages, by the rng
//! seed alone: all combinations of one rng seed start with the same pages. An order is a name and the keys that it
//! sets.
//! Leaves to others: arguments (`commands::lab`).

use std::collections::BTreeSet;

use crate::plan::{PageGraph, Unit};
use ringcrawl_base::Rng;
use ringcrawl_base::time::Duration;
use ringcrawl_config::{Config, ConfigError, MediaRanges, PartitionBy, TrapDetection};

/// Orders in which URLs are fetched: a name, and the keys it sets.
pub const ORDERS: &[(&str, &[(&str, &str)])] = &[
    ("breadth-first", &[("frontier.order", "breadth-first")]),
    ("depth-first", &[("frontier.order", "depth-first")]),
    ("random", &[("frontier.order", "random")]),
    ("backlinks", &[("frontier.order", "backlinks")]),
    ("backlinks-alone", &[("frontier.order", "backlinks"), ("frontier.backlinks_exchange_pages", "0")]),
    (PAGERANK, &[("frontier.order", "rank"), ("frontier.ranks", OF_GRAPH)]),
];

/// The order by the graph's own PageRank, as if known from an earlier crawl.
pub const PAGERANK: &str = "pagerank";

/// Partitions by the graph itself, as if known from an earlier crawl: a name, and the unit that METIS divides.
pub const PLANNED: &[(&str, Unit)] = &[("site-gp", Unit::Site), ("page-gp", Unit::Page)];

/// Stands in for a file.
const OF_GRAPH: &str = "the graph's own";

/// The axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Design {
    /// Words of `partition.by`, or names of [`PLANNED`].
    pub partitions: Vec<String>,
    /// Words of `exchange.mode`.
    pub modes: Vec<String>,
    /// Names of [`ORDERS`].
    pub orders: Vec<String>,
    /// Numbers of seeds.
    pub seeds: Vec<u64>,
    /// Numbers of pages after which a crawl ends; 0: when it has fetched all.
    pub limits: Vec<u64>,
    /// Numbers of shards.
    pub shards: Vec<u16>,
    /// Seeds of everything random.
    pub rng_seeds: Vec<u64>,
}

/// One combination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Treatment {
    /// `partition.by`, or a name of [`PLANNED`].
    pub partition: String,
    /// `exchange.mode`.
    pub mode: String,
    /// Name of the order.
    pub order: String,
    /// Number of seeds; not known for a real crawl.
    pub seeds: Option<u64>,
    /// Pages after which it ends; 0: when it has fetched all.
    pub limit: u64,
    /// K.
    pub shards: u16,
    /// The seed of everything random.
    pub rng_seed: u64,
}

impl Design {
    /// All combinations; those of one rng seed and number of seeds are adjacent.
    pub fn treatments(&self) -> Vec<Treatment> {
        let mut all = Vec::new();
        let begins =
            || self.rng_seeds.iter().flat_map(|rng_seed| self.seeds.iter().map(move |seeds| (rng_seed, seeds)));
        for (rng_seed, seeds) in begins() {
            for partition in &self.partitions {
                for mode in &self.modes {
                    for (order, limit) in
                        self.orders.iter().flat_map(|order| self.limits.iter().map(move |limit| (order, limit)))
                    {
                        all.extend(self.shards.iter().map(|shards| Treatment {
                            partition: partition.clone(),
                            mode: mode.clone(),
                            order: order.clone(),
                            seeds: Some(*seeds),
                            limit: *limit,
                            shards: *shards,
                            rng_seed: *rng_seed,
                        }));
                    }
                }
            }
        }
        all
    }
}

impl Treatment {
    /// What METIS divides for it, if its partition depends on the graph.
    pub fn planned(&self) -> Option<Unit> {
        PLANNED.iter().find(|(name, _)| *name == self.partition).map(|(_, unit)| *unit)
    }

    /// Its configuration: `config` with the combination applied.
    pub fn config(&self, config: &Config) -> Result<Config, ConfigError> {
        let mut config = config.clone();
        match self.planned() {
            Some(_) => (config.partition.by, config.partition.vector) = (PartitionBy::Vector, OF_GRAPH.to_owned()),
            None => config.set("partition.by", &self.partition)?,
        }
        config.set("exchange.mode", &self.mode)?;
        config.crawl.pages_max = self.limit;
        let order = ORDERS.iter().find(|(name, _)| *name == self.order);
        for (key, value) in order.map_or(&[][..], |(_, keys)| keys) {
            config.set(key, value)?;
        }
        Ok(config)
    }
}

/// The base configuration of an experiment. Hosts and sites get a request every `delay`. No limit cuts the graph off,
/// only the mode defers URLs, nothing is stored, and the speed of a host does not affect its delay.
pub fn base(delay: Duration) -> Config {
    let mut config = Config::default();
    config.agent.name = "ringcrawl-lab".to_owned();
    (config.politeness.host_delay, config.politeness.site_delay) = (delay, delay);
    (config.politeness.ip_delay, config.politeness.group_delay) = (Duration::ZERO, Duration::ZERO);
    (config.politeness.response_factor, config.politeness.slow_start) = (0, 1);
    config.scope.depth_max = u16::MAX;
    config.scope.url_bytes_max = 32 << 10;
    config.scope.bad_ports = ringcrawl_config::BadPorts::Allow;
    config.budget.site_pages_per_linking_site = 0;
    config.traps.detect = TrapDetection::Off;
    config.links.page_links_max = 1_000_000;
    config.links.page_link_bytes_max = 1 << 30;
    config.links.page_link_ratio_max = 1_000_000;
    config.fetch.body_wire_bytes_max = 1 << 30;
    config.fetch.body_bytes_max = 1 << 30;
    config.fetch.short_bytes_max = 1 << 30;
    if let Ok(none) = MediaRanges::parse("application/x-none") {
        config.store.types = none;
    }
    config.store.zstd_level = -7;
    config
}

/// Draws `count` different pages of the graph by `rng_seed`; all if there are no more than that.
pub fn draw_seeds(graph: &PageGraph, count: usize, rng_seed: u64) -> Vec<u32> {
    let pages = graph.pages();
    if count >= pages {
        return graph.all().collect();
    }
    // Floyd's sampling algorithm: Bentley and Floyd, "A Sample of Brilliance" (CACM 30/9, 1987).
    let (mut rng, mut drawn) = (Rng::new(rng_seed), BTreeSet::new());
    for last in pages - count..pages {
        let page = rng.index(last + 1) as u32;
        if !drawn.insert(page) {
            drawn.insert(last as u32);
        }
    }
    drawn.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_once_and_its_configuration() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let design = Design {
            partitions: words(&["site-hash", "url-hash"]),
            modes: words(&["exchange", "firewall", "independent"]),
            orders: words(&["breadth-first"]),
            seeds: vec![10],
            limits: vec![0, 500],
            shards: vec![1, 4],
            rng_seeds: vec![1, 2],
        };
        let all = design.treatments();
        assert_eq!(all.len(), 48);
        assert!(all.iter().enumerate().all(|(index, one)| !all[..index].contains(one)));
        assert!(all.is_sorted_by_key(|one| one.rng_seed));
        let config = all[23].config(&base(Duration::from_secs(3))).expect("known words");
        assert_eq!(config.check(), Ok(()));
        assert_eq!((config.partition.by.as_str(), config.exchange.mode.as_str()), ("url-hash", "independent"));
        assert_eq!(config.crawl.pages_max, 500);
        assert_eq!(config.politeness.delay_of("x.test"), Duration::from_secs(3));
        let wrong = Treatment { mode: "none".to_owned(), ..all[0].clone() }.config(&config);
        assert!(wrong.is_err_and(|error| error.to_string().contains("cross-over")));
    }
}
