//! Checks before a crawl touches anything: each mistake is reported with its remedy.
//!
//! Leaves to others: keys alone and together (`config`), seeds that are not URLs (`seeds`), CPUs and the directory.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::loopback;
use super::memory::{check_sites_table, memory_budget};
use super::order::BootError;
use super::scope_files::ScopeFiles;
use crate::fetch;
use crate::plan_files;
use ringcrawl_brain::exchange::Replicated;
use ringcrawl_brain::frontier::{RANK_BYTES_MAX, Ranks};
use ringcrawl_brain::hops::Hops;
use ringcrawl_brain::memory_budget::MemoryBudget;
use ringcrawl_brain::route::Partition;
use ringcrawl_brain::scope::{Outside, Scope};
use ringcrawl_brain::seed::{Seed, SeedOptions};
use ringcrawl_config::Operators;
use ringcrawl_config::{self as config, Balance, Config, PartitionBy, PrivateAddresses, SeedErrors, UrlOrder};
use ringcrawl_files::private;
use ringcrawl_ring as ring;
use ringcrawl_url::{Url, fingerprint};

/// The crawl's needs for memory and files; what is lowered to fit the memory needs no file.
pub(super) fn size(config: &Config, seeds: &[Seed], partition: &Partition) -> Result<MemoryBudget, BootError> {
    let memory = memory_budget(config, partition, seeds.iter().any(bounds_its_site)).map_err(BootError::Order)?;
    let mut limited = config.clone();
    memory.limit(&mut limited);
    files(&limited, partition.shards())?;
    Ok(memory)
}

/// Whether this machine has the memory that a crawl of `config` needs, and the assignment that `config` names; the
/// error describes what is wrong.
pub fn check_memory(config: &Config) -> Result<(), String> {
    let cpus = super::choose_cpus(&config.crawl.cpus).map_or(1, |cpus| cpus.len());
    let partition = partition(config, cpus).map_err(|error| error.to_string())?;
    memory_budget(config, &partition, false).map(drop)
}

/// Which shard a URL belongs to, with `cpus` CPUs for shards; an assignment is read from its file.
pub(super) fn partition(config: &Config, cpus: usize) -> Result<Partition, BootError> {
    let wanted = config.crawl.shards as u16;
    if matches!(config.partition.by, PartitionBy::Vector | PartitionBy::Dynamic) {
        check_sites_table(config).map_err(BootError::Order)?;
    }
    if config.partition.by != PartitionBy::Vector {
        let shards = if wanted == 0 { cpus.max(1) as u16 } else { wanted };
        return Ok(Partition::new(&config.partition, shards));
    }
    let path = Path::new(&config.partition.vector);
    let vector = plan_files::read_vector(path, config.partition.ram_bytes_max)
        .map_err(|error| BootError::Order(format!("partition.vector: {error}")))?;
    let shards = vector.shards();
    if shards > config::SHARDS_MAX {
        return Err(BootError::Order(format!(
            "partition.vector: {} assigns to {shards} shards; expected at most {}",
            path.display(),
            config::SHARDS_MAX
        )));
    }
    if wanted != 0 && wanted != shards {
        return Err(BootError::Order(format!(
            "partition.vector: {} assigns to {shards} shards, and crawl.shards is {wanted}: expected {shards}, or 0, or an assignment to \
             {wanted} (ringcrawl-lab plan --shards {wanted})",
            path.display()
        )));
    }
    Ok(Partition::of_vector(vector))
}

/// A shard cannot hold more than all URLs.
pub(super) fn balance(config: &Config, shards: u16) -> Result<(), BootError> {
    let (above, all) = (config.partition.balance_above, 100 * u32::from(shards));
    if config.partition.balance == Balance::Off || shards == 1 || above < all {
        return Ok(());
    }
    Err(BootError::Order(format!(
        "partition.balance_above: with {shards} shards none can exceed {all} percent of the mean; expected less than {all}"
    )))
}

/// Which operator's machines are where: the built-in list, and the configuration's.
pub(super) fn operators(config: &mut Config) -> Result<Arc<Operators>, BootError> {
    config.politeness.operators.read().map_err(|wrong| {
        let told: Vec<String> = wrong.iter().map(|wrong| format!("politeness.operators: {wrong}")).collect();
        BootError::Order(told.join("\n"))
    })
}

/// The URLs to which an earlier crawl found the most links.
pub(super) fn replicated(config: &Config, rng_seed: u64) -> Result<Replicated, BootError> {
    let exchange = &config.exchange;
    if exchange.replicated.is_empty() {
        return Ok(Replicated::default());
    }
    let key = |url: &Url| fingerprint(rng_seed, url.as_str());
    let listed = plan_files::read_highest(Path::new(&exchange.replicated), exchange.replicated_max, key);
    listed.map(Replicated::new).map_err(|error| BootError::Order(format!("exchange.replicated: {error}")))
}

/// What URLs are worth, in a crawl ordered by ranks.
pub(super) fn ranks(config: &Config, rng_seed: u64) -> Result<Ranks, BootError> {
    let frontier = &config.frontier;
    if frontier.order != UrlOrder::Rank {
        return Ok(Ranks::default());
    }
    let why =
        format!("each takes {RANK_BYTES_MAX} bytes of frontier.order_ram_bytes_max; raise that, or shorten the list");
    let room = (frontier.order_ram_bytes_max / RANK_BYTES_MAX, why.as_str());
    let read = plan_files::read_ranks(Path::new(&frontier.ranks), room, |url| fingerprint(rng_seed, url.as_str()));
    read.map(Ranks::new).map_err(|error| BootError::Order(format!("frontier.ranks: {error}")))
}

/// Every fetch, idle connection and lookup is an open file; too few would fail fetches at random.
fn files(config: &Config, shards: u16) -> Result<(), BootError> {
    let files = super::raise_file_limit();
    let (limits, names) = (&config.fetch, config.dns.in_flight_max);
    let per_shard =
        (limits.in_flight_max + limits.idle_connections_max + names + fetch::FURTHER_MAX) as u64 + FILES_PER_SHARD;
    let needed = per_shard * u64::from(shards) + OTHER_FILES;
    if files >= needed {
        return Ok(());
    }
    Err(BootError::Order(format!(
        "{needed} open files may be needed and the limit is {files}: raise it (ulimit -n, LimitNOFILE=), \
         or lower fetch.in_flight_max, fetch.idle_connections_max and dns.in_flight_max"
    )))
}

/// Addresses that cannot be listed cannot be excluded from fetching.
pub(super) fn addresses(config: &Config) -> Result<(), BootError> {
    if config.fetch.private_addresses != PrivateAddresses::Deny {
        return Ok(());
    }
    ring::interface_addresses().map(drop).map_err(|error| {
        BootError::System(format!(
            "the machine's own addresses, which fetch.private_addresses = \"deny\" forbids, cannot be listed ({error}): \
             allow netlink (RestrictAddressFamilies=AF_NETLINK)"
        ))
    })
}

/// ringcrawl does not create missing folders: where a disk is not mounted they would fill another one.
pub(super) fn store_dirs(config: &Config, root: &Path) -> Result<(), BootError> {
    let root = root.canonicalize().ok();
    for dir in &config.store.dirs {
        let wrong = |why: &str| Err(BootError::Order(format!("store.dirs: {} {why}", dir.display())));
        if !dir.is_dir() {
            return wrong("is not there: mount its disk, or create it");
        }
        if root.as_ref().is_some_and(|root| dir.canonicalize().is_ok_and(|dir| dir.starts_with(root))) {
            return wrong("is inside the crawl's directory: expected one outside it");
        }
        let probe = dir.join(format!(".ringcrawl-{}", std::process::id()));
        if let Err(error) = private::create_dirs(&probe).and_then(|()| fs::remove_dir(&probe)) {
            return wrong(&format!(
                "is not writable ({error}): make the crawl's user its owner (systemd: ReadWritePaths=)"
            ));
        }
    }
    Ok(())
}

/// A secret that was kept without its text must be given again.
pub(super) fn left_out(config: &Config, dir: &Path) -> Result<(), BootError> {
    let left_out = config.left_out();
    if left_out.is_empty() {
        return Ok(());
    }
    let line = |key: &String| {
        format!(
            "{key} is required but is not in {}/config.toml, which keeps no passwords: give it with -c FILE, where it \
             may be {{ file = \"/path\" }} or {{ credential = \"name\" }}, which are kept",
            dir.display()
        )
    };
    Err(BootError::Order(left_out.iter().map(line).collect::<Vec<_>>().join("\n")))
}

/// If a site is on several shards, no shard knows its cost.
pub(super) fn budgets(config: &Config, seeds: &[Seed]) -> Result<(), BootError> {
    match seeds.iter().find(|seed| bounds_its_site(seed)).filter(|_| !config.keeps_sites()) {
        Some(seed) => Err(BootError::Order(format!(
            "seed {seed}: pages=, bytes= and time= are for its site: expected another partition.by or exchange.mode, or budgets of hosts"
        ))),
        None => Ok(()),
    }
}

/// Whether a seed limits the cost of its site.
fn bounds_its_site(seed: &Seed) -> bool {
    let options = seed.options.as_deref();
    options.is_some_and(|options| SeedOptions { depth: None, ..*options } != SeedOptions::default())
}

/// What an operator should not expect from a valid configuration.
pub fn notes(config: &Config) -> Vec<String> {
    let politeness = &config.politeness;
    let is_moot = politeness.host_delay < politeness.site_delay;
    let note =
        "note: politeness.site_delay also applies to each host, so a shorter politeness.host_delay has no effect";
    is_moot.then(|| note.to_owned()).into_iter().collect()
}

/// A seed that is out of scope would silently not be part of the crawl. Returns notes about seeds that are skipped
/// under `seeds.errors`.
pub(super) fn seeds(config: &Config, files: &ScopeFiles, seeds: &mut Vec<Seed>) -> Result<Vec<String>, BootError> {
    let why = |outside: Outside| match outside {
        Outside::Rule(line) => {
            format!("{}:{line} denies it; give another seed, or allow it in an earlier rule", config.scope.rules)
        }
        Outside::Blocked => "scope.block lists it; give another seed, or remove it from the list".to_owned(),
        Outside::Port => {
            "its port belongs to another protocol; give another seed, or set scope.bad_ports = \"allow\"".to_owned()
        }
        Outside::Dear => {
            format!("comparing it with the rules of {} takes more than 4 ms; give a shorter seed", config.scope.rules)
        }
        _ => "it is longer than scope.url_bytes_max".to_owned(),
    };
    let is_skipped = config.seeds.errors == SeedErrors::Skip;
    let scope = files.of(&Scope::of_seeds(config, seeds));
    let judged = seeds.iter().map(|seed| (&seed.url, judge(&scope, &seed.url)));
    let outside = judged.filter_map(|(seed, judged)| judged.err().map(|outside| (seed, outside)));
    let lines: Vec<_> = outside
        .take(if is_skipped { SKIPPED_SHOWN_MAX } else { SHOWN_MAX })
        .map(|(seed, outside)| format!("seed {seed} is out of scope: {}", why(outside)))
        .collect();
    if is_skipped && !lines.is_empty() {
        retain_in_scope(config, files, seeds);
    } else if !lines.is_empty() {
        return Err(BootError::Order(lines.join("\n")));
    }
    Ok(lines)
}

/// Those of `links` with which the next round of a crawl of `config` may begin. Where files of the scope cannot be
/// read it returns all of them: the round reports why it does not start.
pub fn seeds_of_round(config: &Config, links: Vec<Url>) -> Vec<Seed> {
    let mut seeds: Vec<Seed> = links.into_iter().map(Seed::from).collect();
    loopback::retain(config, &mut seeds);
    if let Ok(files) = ScopeFiles::read(config) {
        retain_in_scope(config, &files, &mut seeds);
    }
    seeds
}

/// Leaves out seeds that are out of scope.
pub(super) fn retain_in_scope(config: &Config, files: &ScopeFiles, seeds: &mut Vec<Seed>) {
    let scope = files.of(&Scope::of_seeds(config, seeds));
    seeds.retain(|seed| judge(&scope, &seed.url).is_ok());
}

fn judge(scope: &Scope, seed: &Url) -> Result<(), Outside> {
    match scope.blocks().blocks(seed) {
        true => Err(Outside::Blocked),
        false => scope.admits(seed, seed.site(), Hops::default()),
    }
}

/// Open files of a shard and of the process, apart from fetches, idle connections and lookups.
const FILES_PER_SHARD: u64 = 64;
const OTHER_FILES: u64 = 64;
/// Seeds that are reported: there may be millions.
const SHOWN_MAX: usize = 20;
/// The same for skipped seeds.
const SKIPPED_SHOWN_MAX: usize = 1_000;
