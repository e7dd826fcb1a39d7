//! The parts of the configuration that the frontier of one shard follows.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::kinds;
use crate::politeness::{ClaimKey, Retries, RetryClass};
use crate::route::Partition;
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, WallClock};
use ringcrawl_config::Operators;
use ringcrawl_config::{self as config, Config, UrlOrder};

/// The configuration, as one shard's share.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(super) politeness: config::Politeness,
    pub(super) retries: Retries,
    pub(super) operators: Arc<Operators>,
    pub(super) robots: config::Robots,
    pub(super) partition: Partition,
    /// The index of this shard in the partition.
    pub(super) shard: u16,
    /// Several shards may have URLs of one host.
    pub(super) shares_hosts: bool,
    /// URLs of other shards wait until there is nothing else to do.
    pub(super) crosses_over: bool,
    pub(super) deadline: Duration,
    pub(super) order: UrlOrder,
    /// Memory for the data that determines the order.
    pub(super) order_bytes_max: u64,
    pub(super) ram_bytes_max: u64,
    pub(super) host_head_urls: usize,
    pub(super) hosts_max: usize,
    /// A page fetched from one host is one fewer for the others: the crawl has a page limit.
    pub(super) has_page_budget: bool,
    pub(super) detects_traps: bool,
    pub(super) traps_bytes_max: u64,
    pub(super) in_flight_max: usize,
    /// The seed of the crawl's random numbers.
    pub(super) rng_seed: u64,
    pub(super) rules_bytes_max: u64,
    pub(super) resolving_max: usize,
    pub(super) families: config::Families,
    /// How long before a request its address is looked up.
    pub(super) resolve_lead: Duration,
    /// How long past their time addresses are used while no name server answers.
    pub(super) stale_max: Duration,
    /// The wall clock.
    pub(super) clock: WallClock,
}

impl Settings {
    /// The settings of shard `shard` of `partition`.
    pub fn new(config: &Config, partition: Partition, shard: u16, rng_seed: u64) -> Settings {
        let shards = u64::from(partition.shards());
        let crosses_over = config.exchange.mode == config::ExchangeMode::CrossOver;
        Settings {
            politeness: config.politeness.clone(),
            retries: Retries::new(&config.politeness, &config.retry),
            operators: Arc::default(),
            robots: config.robots.clone(),
            shares_hosts: shards > 1 && !config.keeps_hosts(),
            crosses_over,
            partition,
            shard,
            deadline: config.fetch.deadline,
            order: config.frontier.order,
            order_bytes_max: config.frontier.order_ram_bytes_max / shards,
            ram_bytes_max: config.frontier.ram_bytes_max / shards,
            host_head_urls: config.frontier.host_head_urls.max(1),
            hosts_max: config.frontier.hosts_max.div_ceil(shards).max(1) as usize,
            has_page_budget: config.crawl.pages_max > 0,
            detects_traps: config.traps.detect == config::TrapDetection::Yield,
            traps_bytes_max: config.traps.ram_bytes_max / shards,
            in_flight_max: config.fetch.in_flight_max,
            rng_seed,
            rules_bytes_max: config.robots.ram_bytes_max / shards,
            resolving_max: config.dns.in_flight_max.max(1),
            families: config.dns.families,
            resolve_lead: config.dns.timeout,
            stale_max: config.dns.stale_max,
            clock: WallClock::default(),
        }
    }

    /// Pages of a host that are not examined.
    pub(super) fn free_pages(&self) -> u32 {
        if self.has_page_budget { kinds::FREE_PAGES_OF_BUDGET } else { kinds::FREE_PAGES }
    }

    /// The key of a host, if several shards may have URLs of it.
    pub(super) fn host_key(&self, name: &str) -> Option<ClaimKey> {
        let hash = || xxh3_64_with_seed(name.as_bytes(), self.rng_seed);
        self.shares_hosts.then(|| ClaimKey::Host(hash()))
    }

    /// How long a robots.txt is not queried again after a failure, `attempts` after the first. If the connection is
    /// refused, the wait is shorter, because a restarting server is back within minutes: it is the wait after the
    /// third and fourth attempt at a page.
    pub(super) fn robots_wait(&self, why: Failure, attempts: u8) -> Duration {
        let usual = self.robots.retry_delay;
        match why {
            Failure::ConnectRefused => usual.min(self.retries.wait(RetryClass::Connect, attempts.saturating_add(2))),
            _ => usual,
        }
    }

    /// The same, with this wall clock.
    pub fn by(self, clock: WallClock) -> Settings {
        Settings { clock, ..self }
    }

    /// The same, with these known operators.
    pub fn knowing(self, operators: Arc<Operators>) -> Settings {
        Settings { operators, ..self }
    }
}

/// A site has at most this many times as many hosts, fetches and lookups as are free.
pub const TIMES_FREE: u64 = 3;
/// Below this length a queue is not searched for stale entries.
pub const STALE_ENTRIES_MIN: usize = 1_024;
/// Buckets in which the fetches and lookups of sites are counted.
pub const SHARE_PLACES: usize = 4_096;
