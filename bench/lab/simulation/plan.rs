//! The parameters of a simulated crawl: bounds so small that it meets everything that a real crawl meets in a month.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::fake_disk::FakeDisk;
use super::super::fake_web::FakeWeb;
use super::interruption::Interruption;
use super::{Run, millis};
use ringcrawl_base::Rng;
use ringcrawl_base::time::{Duration, Instant, WallClock};
use ringcrawl_brain::budget::PageBudget;
use ringcrawl_brain::frontier::Ranks;
use ringcrawl_brain::hops;
use ringcrawl_brain::log::AskAgain;
use ringcrawl_brain::route::{Partition, Vector, VectorBuilder, VectorUnit};
use ringcrawl_brain::scope::Scope;
use ringcrawl_brain::shard::{Phase, Setup, Shard};
use ringcrawl_config::Operators;
use ringcrawl_config::{CompressUncoded, Config, ExchangeMode, OrNever, PartitionBy, SegmentFormat, UrlOrder};
use ringcrawl_crawler::control::{Breaker, Orders, Supervisor};
use ringcrawl_url::fingerprint;

/// The configuration and what follows from it.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) config: Arc<Config>,
    pub(super) partition: Partition,
    /// Sites that are not on the shard that the partition's rule gives.
    pub(super) moved_sites: BTreeMap<Box<str>, u16>,
    pub(super) lane_messages_max: usize,
    scope: Scope,
    pub(super) rng_seed: u64,
    pub(super) operators: Arc<Operators>,
    ranks: Arc<Ranks>,
}

impl Plan {
    pub(super) fn new(rng: &mut Rng, web: &FakeWeb, rng_seed: u64) -> Plan {
        let mut config = config(rng);
        let ages = [None, Some(Duration::from_secs(1)), Some(Duration::from_secs(60))];
        config.store.segment_age_max = OrNever(ages[(rng_seed % 3) as usize]);
        // From a generator of its own: all other draws of a seed stay as they are.
        draw_parts(&mut Rng::new(rng_seed ^ PARTS), &mut config);
        draw_lines(&mut Rng::new(rng_seed ^ LINES), &mut config);
        draw_allowances(&mut Rng::new(rng_seed ^ ALLOWANCES), &mut config);
        draw_order(&mut Rng::new(rng_seed ^ ORDERS), &mut config);
        let shards = 1 + rng.below(8) as u16;
        let partition = match config.partition.by {
            PartitionBy::Vector => Partition::of_vector(draw_vector(&mut Rng::new(rng_seed ^ VECTOR), web, shards)),
            _ => Partition::new(&config.partition, shards),
        };
        Plan {
            scope: Scope::new(&config.scope, &web.seeds()),
            config: Arc::new(config),
            partition,
            moved_sites: BTreeMap::new(),
            lane_messages_max: 1 + rng.below(4) as usize,
            rng_seed,
            operators: Arc::new(operators()),
            ranks: Arc::new(ranks(&mut Rng::new(rng_seed ^ RANKS), web, rng_seed)),
        }
    }

    /// Whether every page is found, on whichever shard links to it are.
    pub(super) fn follows_all(&self) -> bool {
        self.config.exchange.mode != ExchangeMode::Firewall
    }

    /// Whether each page belongs to one shard alone.
    pub(super) fn keeps_parts(&self) -> bool {
        self.config.exchange.mode.keeps_parts() && self.partition.is_of_urls_alone()
    }
}

impl Run {
    /// A run that begins at `now` with what the disks hold.
    pub(super) fn new(
        plan: &Plan,
        now: Instant,
        disks: &mut [FakeDisk],
        name_servers: usize,
        clock: WallClock,
        next: Option<&Interruption>,
    ) -> Run {
        let pages_max = next.map_or(0, Interruption::pages_max);
        let setup = Setup {
            ranks: Arc::clone(&plan.ranks),
            operators: Arc::clone(&plan.operators),
            budget: Arc::new(PageBudget::new(pages_max)),
            name_servers,
            clock,
            begins: now,
            is_new: now == Instant::ZERO,
            ask_again: AskAgain::failed(now > Instant::ZERO && plan.rng_seed.is_multiple_of(4)),
            ..Setup::new(Arc::clone(&plan.config), plan.partition.clone(), plan.scope.clone(), plan.rng_seed, 1 << 12)
        };
        let shard = |(index, disk): (usize, &mut FakeDisk)| {
            let setup = Setup { index: index as u16, files: disk.begin_run(), ..setup.clone() };
            Shard::new(setup).expect("a shard")
        };
        let shards: Vec<Shard> = disks.iter_mut().enumerate().map(shard).collect();
        let count = shards.len();
        Run {
            shards,
            ledger: setup.ledger,
            supervisor: Supervisor::new(pages_max, Duration::ZERO),
            breaker: Breaker::new(&plan.config),
            orders: vec![(Orders::default(), Orders::default()); count],
            begun: now,
            phase: Phase::Run,
            heard: vec![Phase::Run; usize::from(plan.partition.shards())],
            ended: vec![None; count],
            next_look: now,
            looks: 0,
            lanes: Default::default(),
            awake: vec![true; count],
            is_disk_busy: vec![false; count],
            is_syncing: vec![false; count],
            events: Default::default(),
            pending: Default::default(),
        }
    }
}

/// Three operators with a fourth of the addresses each; the others belong to no operator.
fn operators() -> Operators {
    let mut operators = Operators::default();
    let lines = "one 192.0.2.0/26\ntwo 192.0.2.64/26\nthree 192.0.2.128/26\n";
    assert_eq!(operators.read(lines), Ok(()));
    operators
}

fn config(rng: &mut Rng) -> Config {
    let mut config = Config::default();
    config.agent.name = "simulated".to_owned();
    config.politeness.host_delay = millis(pick(rng, &[0, 50, 1_000]));
    config.politeness.site_delay = millis(pick(rng, &[0, 0, 30, 200]));
    config.politeness.ip_delay = millis(pick(rng, &[0, 20, 200]));
    config.politeness.group_delay = millis(pick(rng, &[0, 10]));
    config.politeness.group_slots = 1;
    config.politeness.response_factor = pick(rng, &[0, 3]) as u32;
    config.politeness.crawl_delay_max = Duration::from_secs(60);
    config.politeness.retries_max = 4;
    config.politeness.retry_delay = millis(pick(rng, &[100, 10_000]));
    config.politeness.host_failures_max = 40;
    config.politeness.retry_after_max = Duration::from_secs(86_400);
    config.robots.retries_max = 4;
    config.robots.retry_delay = Duration::from_secs(60);
    config.robots.ttl = Duration::from_secs(pick(rng, &[30, 86_400]));
    config.robots.redirects_max = 5;
    config.robots.body_bytes_max = 512 << 10;
    config.fetch.deadline = Duration::from_secs(60);
    config.fetch.short_bytes_max = pick(rng, &[100, 1_000, 1 << 20]) as usize;
    config.fetch.in_flight_max = 1 + rng.below(50) as usize;
    config.scope.depth_max = u16::MAX;
    config.scope.redirects_max = hops::REDIRECTS_MAX;
    config.scope.url_bytes_max = 2_048;
    config.exchange.ring_bytes = 1 << 20;
    config.exchange.batch_urls_max = 1 + rng.below(10) as usize;
    config.exchange.batch_age_max = millis(pick(rng, &[0, 1, 20, 200]));
    config.exchange.waiting_bytes_max = pick(rng, &[0, 1_000, 1 << 20]) as usize;
    config.visited.urls_max = if rng.percent(10) { 1 + rng.below(400) } else { 1 << 20 };
    config.frontier.ram_bytes_max = pick(rng, &[0, 4_000, 1 << 30]);
    config.frontier.host_head_urls = 1 + rng.below(8) as usize;
    // Bounds so small that hosts are forgotten, wait outside, and lose their rules.
    config.frontier.hosts_max = pick(rng, &[1, 4, 16, 1 << 20]);
    config.robots.ram_bytes_max = pick(rng, &[0, 1_500, 1 << 30]);
    config.dns.stale_max = Duration::from_secs(pick(rng, &[0, 10, 3_600]));
    config.robots.stale_max = config.dns.stale_max;
    config.dns.timeout = millis(pick(rng, &[10, 5_000]));
    config.dns.in_flight_max = 1 + rng.below(4) as usize;
    config.dns.rate_max = pick(rng, &[0, 5, 100]) as u32;
    (config.dns.ttl_min, config.dns.negative_ttl_min) = (Duration::ZERO, Duration::ZERO);
    config.journal.sync_interval = OrNever(pick_interval(rng));
    config.outage.sites = 8;
    config.outage.sites_failed = 5 + rng.below(3) as usize;
    config.outage.probe_max = Duration::from_secs(pick(rng, &[1, 30]));
    // Segments so small that there are several, and blocks that are quick to compress.
    config.store.segment_bytes_max = pick(rng, &[10_000, 1 << 30]);
    config.store.zstd_level = -7;
    config.store.format = if rng.percent(50) { SegmentFormat::WarcZst } else { SegmentFormat::WarcGz };
    config.store.compress_uncoded = match rng.below(3) {
        0 if config.store.format == SegmentFormat::WarcZst => CompressUncoded::Dictionary,
        1 => CompressUncoded::Raw,
        _ => CompressUncoded::Level,
    };
    config.partition.by = if rng.percent(80) { PartitionBy::SiteHash } else { PartitionBy::HostHash };
    config
}

/// Other partitions and modes, for some crawls.
fn draw_parts(rng: &mut Rng, config: &mut Config) {
    config.partition.ram_bytes_max = 1 << 14;
    config.exchange.recent_urls = pick(rng, &[0, 1, 50, 5_000]) as usize;
    config.partition.by = match rng.below(10) {
        0 => PartitionBy::UrlHash,
        1 => PartitionBy::Consistent,
        2 => PartitionBy::Hierarchical,
        3 => PartitionBy::Vector,
        4 => PartitionBy::Dynamic,
        _ => config.partition.by,
    };
    let is_dynamic = config.partition.by == PartitionBy::Dynamic;
    config.exchange.mode = match rng.below(10) {
        0 if !is_dynamic => ExchangeMode::Independent,
        1 if !is_dynamic => ExchangeMode::CrossOver,
        2 => ExchangeMode::Firewall,
        _ => ExchangeMode::Exchange,
    };
}

/// Some of the sites, hosts or pages, assigned to any shard.
fn draw_vector(rng: &mut Rng, web: &FakeWeb, shards: u16) -> Vector {
    let unit = [VectorUnit::Site, VectorUnit::Host, VectorUnit::Page][rng.below(3) as usize];
    let mut builder = VectorBuilder::new(unit, shards, 1 << 20);
    for url in web.reachable() {
        let host = url.split('/').nth(2).unwrap_or_default();
        let name = match unit {
            VectorUnit::Site => host.split_once('.').map_or(host, |(_, site)| site),
            VectorUnit::Host => host,
            VectorUnit::Page => &url,
        };
        // An earlier assignment stays in force.
        if rng.percent(70) {
            let _ = builder.add(rng.below(shards.into()) as u16, name);
        }
    }
    builder.build()
}

/// An order of the frontier, with room for all its counts or ranks, or for few of them.
fn draw_order(rng: &mut Rng, config: &mut Config) {
    let frontier = &mut config.frontier;
    frontier.order = *rng.pick(&[
        UrlOrder::BreadthFirst,
        UrlOrder::BreadthFirst,
        UrlOrder::DepthFirst,
        UrlOrder::Random,
        UrlOrder::Backlinks,
        UrlOrder::Backlinks,
        UrlOrder::Rank,
    ]);
    frontier.order_ram_bytes_max = pick(rng, &[0, 1_000, 1 << 20, 1 << 20]);
    frontier.backlinks_exchange_pages = pick(rng, &[0, 1, 5, 100]) as u32;
}

/// Ranks for half of the pages, as if an earlier crawl had seen these.
fn ranks(rng: &mut Rng, web: &FakeWeb, rng_seed: u64) -> Ranks {
    let known = web.reachable().into_iter().filter(|_| rng.percent(50)).collect::<Vec<_>>();
    Ranks::new(known.iter().map(|url| (fingerprint(rng_seed, url), rng.below(1_000) as f64)).collect())
}

/// Allowances so small that sites wait, with room for all of them or for a few.
fn draw_allowances(rng: &mut Rng, config: &mut Config) {
    let budget = &mut config.budget;
    budget.site_pages_free = pick(rng, &[0, 3, 10_000]) as u32;
    budget.site_pages_per_linking_site = rng.below(4) as u32;
    budget.ram_bytes_max = pick(rng, &[0, 1_000, 1 << 20]);
}

/// Some hosts have configuration lines of their own.
fn draw_lines(rng: &mut Rng, config: &mut Config) {
    let mut lines = String::new();
    for site in 0..8 {
        let pattern = [format!("h0.s{site}.test"), format!("*.s{site}.test"), format!(".s{site}.test")];
        let delay = pick(rng, &[0, 20, 500, 5_000]);
        if rng.percent(40) {
            let (pattern, count) = (&pattern[rng.below(3) as usize], 1 + rng.below(4));
            let count = if config.keeps_hosts() { count } else { 1 };
            let is_mine = config.keeps_hosts() && rng.percent(30);
            lines +=
                &format!("{{ match = '{pattern}', mine = {is_mine}, delay = '{delay}ms', concurrency = {count} }},");
        }
    }
    assert!(config.set("politeness.host", &format!("[{lines}]")).is_ok(), "{lines}");
}

/// Separate the generators of parts, lines, allowances, orders and ranks.
const PARTS: u64 = 0x7061_7274;
const LINES: u64 = 0x6c69_6e65;
const ALLOWANCES: u64 = 0x616c_6c6f;
const VECTOR: u64 = 0x7665_6374;
const ORDERS: u64 = 0x6f72_6465;
const RANKS: u64 = 0x7261_6e6b;

fn pick_interval(rng: &mut Rng) -> Option<Duration> {
    [None, Some(millis(10)), Some(millis(1_000)), Some(millis(1_000))][rng.below(4) as usize]
}

fn pick(rng: &mut Rng, choices: &[u64]) -> u64 {
    choices[rng.below(choices.len() as u64) as usize]
}
