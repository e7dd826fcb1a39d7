//! Starts the shards of a run: rings, the ledger that they share, a thread for each.
//!
//! Invariants: if a thread cannot start, all others have ended before the error is returned, because the directory's
//! lock is released then.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::cpus;
use super::crawl::Crawl;
use super::crawl_dir::CrawlDir;
use super::order::{BootError, Round};
use super::outage_watch::OutageWatch;
use super::scope_files::ScopeFiles;
use super::scope_reload::ScopeReload;
use super::surroundings::Surroundings;
use crate::control::{BalanceWatch, Control, HeartWatch, MemoryWatch, Supervisor};
use crate::fetch::OwnAddresses;
use crate::pump;
use ringcrawl_brain::budget::PageBudget;
use ringcrawl_brain::exchange::{Replicated, spsc};
use ringcrawl_brain::frontier::{Ledger, PartsBySite, Ranks, SiteBounds};
use ringcrawl_brain::log::AskAgain;
use ringcrawl_brain::memory_budget::MemoryBudget;
use ringcrawl_brain::route::Partition;
use ringcrawl_brain::scope::Scope;
use ringcrawl_brain::seed::Seed;
use ringcrawl_brain::shard::{FilesFound, Phase, Setup};
use ringcrawl_config::{Config, Operators};
use ringcrawl_ring as ring;
use ringcrawl_warc::earlier_crawls::EarlierCrawls;

/// What shards receive in addition to the configuration.
pub(super) struct Setting {
    pub(super) partition: Partition,
    /// How many times in a row moving sites has helped little.
    pub(super) fruitless: u32,
    pub(super) scope: Scope,
    /// Where the scope's lists come from.
    pub(super) files: ScopeFiles,
    pub(super) site_bounds: Arc<SiteBounds>,
    pub(super) site_parts: Arc<PartsBySite>,
    pub(super) earlier: Arc<EarlierCrawls>,
    pub(super) operators: Arc<Operators>,
    pub(super) ranks: Arc<Ranks>,
    pub(super) replicated: Replicated,
    pub(super) ask_again: AskAgain,
    pub(super) round: Round,
}

/// Starts the shards, each on a thread of its own, pinned to its CPU, where it reads back its directory.
pub(super) fn launch(
    config: Config,
    memory: &MemoryBudget,
    seeds: &[Seed],
    dir: CrawlDir,
    cpus: &[core_affinity::CoreId],
    setting: Setting,
) -> Result<Crawl, BootError> {
    let manifest = dir.manifest().clone();
    let shards = manifest.shards;
    let control = Arc::new(
        Control::new(shards)
            .map_err(|error| BootError::System(format!("cannot create a shard's event counter (eventfd): {error}")))?,
    );
    let own_addresses = Arc::new(OwnAddresses::default());
    let ledger = Arc::new(Ledger::new(LEDGER_ENTRIES).keyed([draw(), draw()]));
    let hours = config.crawl.hours;
    let user_agent = config.agent.user_agent();
    let Setting {
        partition,
        fruitless,
        scope,
        files,
        site_bounds,
        site_parts,
        earlier,
        operators,
        ranks,
        replicated,
        ask_again,
        round,
    } = setting;
    let mut config = config;
    config.exchange.ring_bytes = config.ring_bytes(shards);
    let config = Arc::new(config);
    let (mut to, mut from) = rings(shards, config.exchange.ring_bytes);
    let mut tasks = Vec::new();
    // For each, 0 means no limit, and a crawl with nothing left begins no round.
    let pages_max = config.crawl.pages_max.saturating_sub(round.pages);
    let time_max = config.crawl.time_max.saturating_sub(round.elapsed);
    let budget = Arc::new(PageBudget::new(pages_max));
    let clock = ring::wall_clock();
    // Seeds of earlier runs, too: a run may have been killed before it wrote its first block.
    let mut given = vec![Vec::new(); usize::from(shards)];
    for seed in seeds {
        if let Some(given) = given.get_mut(usize::from(partition.giver_of(&seed.url))) {
            given.push(seed.url.clone());
        }
    }
    for (index, seeds) in (0..shards).zip(given) {
        let setup = Setup {
            index,
            partition: partition.clone(),
            scope: scope.clone(),
            rng_seed: manifest.rng_seed,
            config: Arc::clone(&config),
            user_agent: user_agent.clone(),
            ledger: Arc::clone(&ledger),
            operators: Arc::clone(&operators),
            ranks: Arc::clone(&ranks),
            replicated: replicated.clone(),
            earlier: Arc::clone(&earlier),
            site_bounds: Arc::clone(&site_bounds),
            site_parts: Arc::clone(&site_parts),
            budget: Arc::clone(&budget),
            // The shard's own thread knows it, and the existing files.
            name_servers: 0,
            files: FilesFound {
                next_segment: manifest.segments_from.get(usize::from(index)).copied().unwrap_or_default(),
                ..FilesFound::default()
            },
            crawl: manifest.crawl_number(),
            clock,
            begins: ring::now(),
            is_new: dir.is_new(),
            ask_again: ask_again.clone(),
        };
        tasks.push(pump::Task {
            setup,
            dir: dir.shard(index),
            to: to.remove(0),
            from: from.remove(0),
            seeds,
            control: Arc::clone(&control),
            bodies_bytes_max: memory.bodies_bytes(),
            own_addresses: Arc::clone(&own_addresses),
        });
    }
    let surroundings = Surroundings::new(dir.root(), shards, Arc::clone(&own_addresses));
    let mut watch = OutageWatch::new(&config, shards, surroundings);
    // Before the first fetch.
    watch.look(ring::now(), &control);
    let mut threads = Vec::new();
    for task in tasks {
        let index = task.setup.index;
        let cpu = cpus::of_shard(cpus, index);
        let thread = super::spawn(format!("shard-{index}"), move || {
            if let Some(cpu) = cpu {
                core_affinity::set_for_current(cpu);
            }
            pump::run(task)
        });
        match thread {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                control.advance(Phase::Close);
                // They work in the directory, and this function releases its lock.
                threads.into_iter().for_each(|thread: JoinHandle<_>| drop(thread.join()));
                return Err(BootError::System(error));
            }
        }
    }
    Ok(Crawl {
        supervisor: Supervisor::new(pages_max, time_max),
        balance: BalanceWatch::new(&config.partition, fruitless),
        hearts: HeartWatch::new(shards),
        memory: MemoryWatch::new(memory.bytes()),
        lists_external: config.lists_external_links(),
        scope: ScopeReload::new(config, scope, files),
        partition,
        fruitless,
        control,
        watch,
        threads,
        dir,
        hours,
    })
}

/// A ring from each shard to every other, as lists by sender and by receiver.
#[allow(clippy::type_complexity)]
fn rings(shards: u16, bytes: usize) -> (Vec<Vec<Option<spsc::Producer>>>, Vec<Vec<Option<spsc::Consumer>>>) {
    let mut to: Vec<Vec<_>> = (0..shards).map(|_| (0..shards).map(|_| None).collect()).collect();
    let mut from: Vec<Vec<_>> = (0..shards).map(|_| (0..shards).map(|_| None).collect()).collect();
    for (sender, row) in to.iter_mut().enumerate() {
        for (receiver, place) in row.iter_mut().enumerate().filter(|(receiver, _)| *receiver != sender) {
            let (producer, consumer) = spsc::ring(bytes);
            *place = Some(producer);
            from[receiver][sender] = Some(consumer);
        }
    }
    (to, from)
}

/// A random number. The standard library's hasher keys come from the system.
pub(super) fn draw() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

/// Half a million addresses in 8 MiB: those in use or in a cooldown at one time.
const LEDGER_ENTRIES: usize = 1 << 19;
