//! From an order to a running crawl.
//!
//! Decides: what is checked before anything is touched (seeds, identity, secrets, CPUs, directory), and in which order.
//! Invariants: nothing is written before every check has passed.

use std::sync::Arc;

use super::checks;
use super::crawl::Crawl;
use super::crawl_dir::{CrawlDir, KeepOutcome, Wanted, is_crawl, look};
use super::dir_error::DirError;
use super::launch::{Setting, draw, launch};
use super::manifest::{FORMAT, Manifest};
use super::order::{BootError, HandedOn, Order};
use super::scope_files::ScopeFiles;
use super::site_bounds::site_bounds;
use super::{cpus, loopback};
use crate::fetch;
use ringcrawl_brain::exchange::Replicated;
use ringcrawl_brain::frontier::Ranks;
use ringcrawl_brain::route::Partition;
use ringcrawl_brain::scope::Scope;
use ringcrawl_config::{Config, ConfigError, Halved};
use ringcrawl_ring as ring;
use ringcrawl_warc::earlier_crawls::EarlierCrawls;

/// Checks everything, then starts the shards.
pub fn start(order: Order) -> Result<Crawl, BootError> {
    let Order { mut config, mut seeds, dir, new, ask_again, round, handed_on } = order;
    let HandedOn { lock, files: before, held } = handed_on;
    // Before its settings are checked, which were given for another crawl.
    if new && is_crawl(&dir) {
        return Err(DirError::NotNew(dir).into());
    }
    config.check().map_err(|errors| BootError::Order(lines(&errors)))?;
    let kept = config.kept();
    checks::left_out(&config, &dir)?;
    config.read_secrets().map_err(|errors| BootError::Order(lines(&errors)))?;
    // The operator did not choose the seeds of a later round.
    round.iter().for_each(|_| loopback::retain(&config, &mut seeds));
    loopback::check(&mut config.clone(), &seeds).map_err(BootError::Order)?;
    fetch::check(&config).map_err(|error| BootError::Order(error.to_string()))?;
    checks::addresses(&config)?;
    let mut files = ScopeFiles::read(&config).map_err(|errors| BootError::Order(errors.join("\n")))?;
    // A later run takes no file that a reload would not take.
    let is_held = config.scope.halved == Halved::Hold && files.halved(&before).is_some();
    if is_held {
        files = before;
    }
    // A list may have been read again in the meantime.
    let skipped = match round {
        Some(_) => {
            checks::retain_in_scope(&config, &files, &mut seeds);
            Vec::new()
        }
        None => checks::seeds(&config, &files, &mut seeds)?,
    };
    checks::budgets(&config, &seeds)?;
    checks::store_dirs(&config, &dir)?;
    let operators = checks::operators(&mut config)?;
    let cpus = cpus::choose(&config.crawl.cpus).map_err(|why| BootError::Order(format!("crawl.cpus: {why}")))?;
    let planned = checks::partition(&config, cpus.len())?;
    let (shards_now, rule) = (planned.shards(), planned.rule());
    let wanted = Wanted {
        new,
        moves_sites: round.is_some_and(|round| round.fruitless.is_some()),
        shards: (config.crawl.shards > 0 || Partition::is_planned(&rule)).then_some(shards_now),
        rng_seed: (config.crawl.rng_seed > 0).then_some(config.crawl.rng_seed),
        partition: Some(rule.clone()),
        exchange_mode: Some(config.exchange.mode),
        agent_name: (!config.agent.name.is_empty()).then(|| config.agent.name.clone()),
    };
    // A crawl does not begin without a seed; an existing one needs none.
    let is_new = new || !is_crawl(&dir);
    if seeds.is_empty() && is_new {
        return Err(BootError::Order("no seeds: give URLs, or a file of them with --seeds FILE".to_owned()));
    }
    // 63 bits, because a configuration cannot write more.
    let rng_seed = wanted.rng_seed.unwrap_or_else(|| (draw() >> 1).max(1));
    let mut lists = None;
    if is_new {
        let mut lowered = config.clone();
        checks::size(&config, &seeds, &planned)?.limit(&mut lowered);
        // Long lists take their time. None is read for a directory that is refused, and no directory is created
        // for lists that are.
        look(&dir)?;
        lists = Some((rng_seed, Lists::read(&lowered, rng_seed)?));
    }
    let mut crawl_dir = CrawlDir::open(&dir, &wanted, lock, || Manifest {
        format: FORMAT,
        created_by: format!("ringcrawl {}", env!("CARGO_PKG_VERSION")),
        created: ring::unix_now().to_iso(),
        crawl_id: format!("{:016x}", draw()),
        rng_seed,
        shards: shards_now,
        partition: rule,
        exchange_mode: config.exchange.mode.as_str().to_owned(),
        moved_sites: 0,
        agent_name: config.agent.name.clone(),
        segments_from: Vec::new(),
    })?;
    // A run without a name continues under the crawl's name.
    config.agent.name.clone_from(&crawl_dir.manifest().agent_name);
    let seeds = crawl_dir.with_earlier_seeds(&seeds)?;
    // Even if the seeds came from an earlier run: a nameless crawl would end their URLs as forbidden.
    loopback::check(&mut config, &seeds).map_err(BootError::Order)?;
    // The same rule: a different one was refused.
    let partition = crawl_dir.partition(&planned, config.partition.ram_bytes_max)?;
    checks::balance(&config, partition.shards())?;
    let memory = checks::size(&config, &seeds, &partition)?;
    let lowered = memory.limit(&mut config);
    let rng_seed = crawl_dir.manifest().rng_seed;
    let Lists { earlier, ranks, replicated } = match lists {
        Some((of, lists)) if of == rng_seed => lists,
        _ => Lists::read(&config, rng_seed)?,
    };
    let shard_urls_max = config.visited.urls_max.div_ceil(u64::from(crawl_dir.manifest().shards.max(1)));
    // A run that is refused leaves the crawl as it was.
    round.iter().for_each(|round| crawl_dir.begin_round(round.number));
    let kept = crawl_dir.keep(&seeds, &kept, partition, shard_urls_max)?;
    let KeepOutcome { notes, warnings, partition, is_fruitless } = kept;
    let fruitless = match round.and_then(|round| round.fruitless) {
        Some(fruitless) if is_fruitless => fruitless + 1,
        _ => 0,
    };
    let mut said = vec![memory.to_string()];
    said.extend(super::memory::crowd_note(&config));
    said.extend(files.notes.iter().map(|note| format!("scope: {note}")));
    said.extend(checks::notes(&config));
    if ScopeFiles::are_named(&config) {
        said.push(format!("scope: {files}"));
    }
    if !earlier.is_empty() {
        said.push(format!("store.dedupe_against: {} captures of earlier crawls", earlier.len()));
    }
    if !lowered.is_empty() {
        said.push(format!("memory: lowered to fit: {}", lowered.join(", ")));
    }
    said.extend(notes);
    let scope = files.of(&Scope::of_seeds(&config, &seeds));
    let (site_bounds, site_parts) = site_bounds(&config.budget, &seeds, crawl_dir.manifest().rng_seed);
    let setting = Setting {
        partition,
        fruitless,
        scope,
        files,
        site_bounds: Arc::new(site_bounds),
        site_parts: Arc::new(site_parts),
        earlier: Arc::new(earlier),
        operators,
        ranks: Arc::new(ranks),
        replicated,
        ask_again,
        round: round.unwrap_or_default(),
    };
    let mut crawl = launch(config, &memory, &seeds, crawl_dir, &cpus, setting)?;
    said.into_iter().for_each(|note| crawl.control().note(note));
    warnings.into_iter().for_each(|warning| crawl.control().warn(warning));
    skipped.iter().for_each(|told| crawl.control().warn(format!("skipped: {told}")));
    if is_held {
        // It says why, and what the operator can do. Only the operator's signal is a confirmation.
        crawl.scope.go_on(held);
    }
    Ok(crawl)
}

/// What other crawls have left, in files named by the configuration.
struct Lists {
    earlier: EarlierCrawls,
    ranks: Ranks,
    replicated: Replicated,
}

impl Lists {
    fn read(config: &Config, rng_seed: u64) -> Result<Lists, BootError> {
        let store = &config.store;
        let earlier = EarlierCrawls::read(&store.dedupe_against, store.dedupe_bytes_max, rng_seed, store.digest)
            .map_err(|error| BootError::Order(format!("store.dedupe_against: {error}")))?;
        let (ranks, replicated) = (checks::ranks(config, rng_seed)?, checks::replicated(config, rng_seed)?);
        Ok(Lists { earlier, ranks, replicated })
    }
}

fn lines(errors: &[ConfigError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
