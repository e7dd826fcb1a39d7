//! A crawl from its order to its end, as the thread that started it sees it.
//!
//! Decides: what is checked before anything is touched (seeds, identity, secrets, CPUs, directory). Then shards are
//! started, each on a thread of its own, pinned to its CPU, where it reads back its directory.
//! Invariants: nothing is written before every check has passed; every thread is joined before `finish` returns.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::checks;
use super::crawl_dir::{CrawlDir, KeepOutcome, Wanted, is_crawl, look};
use super::dir_error::DirError;
use super::manifest::{FORMAT, Manifest};
use super::order::{BootError, HandedOn, Order, Round, RoundEnd};
use super::outage_watch::OutageWatch;
use super::scope_files::ScopeFiles;
use super::scope_reload::ScopeReload;
use super::site_bounds::site_bounds;
use super::surroundings::Surroundings;
use super::{cpus, loopback};
use crate::control::{BalanceWatch, Beat, Control, HeartWatch, MemoryWatch, Observation, Supervisor};
use crate::fetch::{self, OwnAddresses};
use crate::pump;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::budget::PageBudget;
use ringcrawl_brain::exchange::{Replicated, spsc};
use ringcrawl_brain::frontier::{Ledger, PartsBySite, Ranks, SiteBounds};
use ringcrawl_brain::log::AskAgain;
use ringcrawl_brain::memory_budget::MemoryBudget;
use ringcrawl_brain::route::Partition;
use ringcrawl_brain::scope::Scope;
use ringcrawl_brain::seed::Seed;
use ringcrawl_brain::shard::{FilesFound, Phase, Setup};
use ringcrawl_brain::stats::Totals;
use ringcrawl_config::Operators;
use ringcrawl_config::{Config, ConfigError, Halved, Hours};
use ringcrawl_ring as ring;
use ringcrawl_warc::earlier_crawls::EarlierCrawls;

/// What shards receive in addition to the configuration.
struct Setting {
    partition: Partition,
    /// How many times in a row moving sites has helped little.
    fruitless: u32,
    scope: Scope,
    site_bounds: Arc<SiteBounds>,
    site_parts: Arc<PartsBySite>,
    earlier: Arc<EarlierCrawls>,
    operators: Arc<Operators>,
    ranks: Arc<Ranks>,
    replicated: Replicated,
    ask_again: AskAgain,
    round: Round,
}

/// A running crawl.
#[derive(Debug)]
pub struct Crawl {
    control: Arc<Control>,
    supervisor: Supervisor,
    watch: OutageWatch,
    hearts: HeartWatch,
    memory: MemoryWatch,
    threads: Vec<JoinHandle<Result<(), String>>>,
    scope: ScopeReload,
    dir: CrawlDir,
    hours: Option<Hours>,
    lists_external: bool,
    balance: BalanceWatch,
    fruitless: u32,
    partition: Partition,
}

impl Crawl {
    /// Checks everything, then starts the shards.
    pub fn start(order: Order) -> Result<Crawl, BootError> {
        let Order { mut config, mut seeds, dir, new, ask_again, round, handed_on } = order;
        let HandedOn { lock, files: before } = handed_on;
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
        let KeepOutcome { notes, partition, is_fruitless } =
            crawl_dir.keep(&seeds, &kept, partition, shard_urls_max)?;
        let fruitless = match round.and_then(|round| round.fruitless) {
            Some(fruitless) if is_fruitless => fruitless + 1,
            _ => 0,
        };
        let captures = earlier.len();
        let scope = files.of(&Scope::of_seeds(&config, &seeds));
        let (site_bounds, site_parts) = site_bounds(&config.budget, &seeds, crawl_dir.manifest().rng_seed);
        let setting = Setting {
            partition,
            fruitless,
            scope,
            site_bounds: Arc::new(site_bounds),
            site_parts: Arc::new(site_parts),
            earlier: Arc::new(earlier),
            operators,
            ranks: Arc::new(ranks),
            replicated,
            ask_again,
            round: round.unwrap_or_default(),
        };
        let mut crawl = Crawl::launch(config, &memory, &seeds, crawl_dir, &cpus, setting)?;
        crawl.control.note(memory.to_string());
        super::memory::crowd_note(&crawl.scope.config).into_iter().for_each(|note| crawl.control.note(note));
        skipped.iter().for_each(|told| crawl.control.note(format!("skipped: {told}")));
        files.notes.iter().for_each(|note| crawl.control.note(format!("scope: {note}")));
        checks::notes(&crawl.scope.config).into_iter().for_each(|note| crawl.control.note(note));
        if ScopeFiles::are_named(&crawl.scope.config) {
            crawl.control.note(format!("scope: {files}"));
        }
        if captures > 0 {
            crawl.control.note(format!("store.dedupe_against: {captures} captures of earlier crawls"));
        }
        if !lowered.is_empty() {
            crawl.control.note(format!("memory: lowered to fit: {}", lowered.join(", ")));
        }
        notes.into_iter().for_each(|note| crawl.control.note(note));
        crawl.scope.files = files;
        if is_held {
            // It says why, and what the operator can do.
            crawl.reload_scope();
        }
        Ok(crawl)
    }

    fn launch(
        config: Config,
        memory: &MemoryBudget,
        seeds: &[Seed],
        dir: CrawlDir,
        cpus: &[core_affinity::CoreId],
        setting: Setting,
    ) -> Result<Crawl, BootError> {
        let manifest = dir.manifest().clone();
        let shards = manifest.shards;
        let control =
            Arc::new(Control::new(shards).map_err(|error| {
                BootError::System(format!("cannot create a shard's event counter (eventfd): {error}"))
            })?);
        let own_addresses = Arc::new(OwnAddresses::default());
        let ledger = Arc::new(Ledger::new(LEDGER_ENTRIES).keyed([draw(), draw()]));
        let hours = config.crawl.hours;
        let user_agent = config.agent.user_agent();
        let Setting {
            partition,
            fruitless,
            scope,
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
        let supervisor = Supervisor::new(pages_max, time_max);
        let balance = BalanceWatch::new(&config.partition, fruitless);
        let (hearts, memory) = (HeartWatch::new(shards), MemoryWatch::new(memory.bytes()));
        let lists_external = config.lists_external_links();
        let scope = ScopeReload::new(config, scope);
        Ok(Crawl {
            partition,
            balance,
            fruitless,
            lists_external,
            control,
            supervisor,
            watch,
            hearts,
            memory,
            threads,
            scope,
            dir,
            hours,
        })
    }

    /// What the shards publish.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The crawl's directory and the settings fixed at its beginning.
    pub fn dir(&self) -> &CrawlDir {
        &self.dir
    }

    /// Advances the crawl, which has run for `elapsed` and which the operator wants in phase `wanted`; returns
    /// whether it has ended. Call it several times a second.
    pub fn poll(&mut self, elapsed: Duration, wanted: Phase) -> bool {
        let mut wanted = wanted;
        let is_running = self.control.phase() == Phase::Run;
        if let Some(why) = is_running.then(|| self.watch.look(ring::now(), &self.control)).flatten() {
            self.control.fail(why);
            wanted = Phase::Abort;
        }
        self.watch_hearts();
        self.scope.look(&self.control);
        if let Some(note) = self.memory.look(ring::now(), super::rss_bytes, || self.scope.lists_bytes()) {
            self.control.note(note);
        }
        if let Some(owners) = self.partition.owners() {
            let totals = self.control.totals();
            totals.iter().enumerate().for_each(|(shard, totals)| owners.note_waiting(shard, totals.queued));
        }
        let waiting = || {
            let of = |totals: &Totals| (totals.reading_logs == 0).then_some(totals.queued);
            self.control.totals().iter().map(of).collect()
        };
        let is_uneven =
            is_running && self.watch.waits_for(ring::now()).is_none() && self.balance.look(elapsed, waiting);
        let phase = self.supervisor.look(Observation {
            is_uneven,
            elapsed,
            reports: &self.control.reports(),
            pages: Totals::sum(&self.control.totals()).pages,
            wanted,
            has_ended: self.threads.iter().any(JoinHandle::is_finished),
        });
        self.control.advance(phase);
        self.threads.iter().all(JoinHandle::is_finished)
    }

    fn watch_hearts(&mut self) {
        for (shard, handle) in self.control.shards().iter().enumerate() {
            let beat = Beat { piece: handle.heart.piece(), cpu: handle.thread.cpu_time().unwrap_or_default() };
            if let Some(note) = self.hearts.look(ring::now(), shard, beat) {
                self.control.note(note);
            }
        }
    }

    /// Requests that the files of the scope be read again.
    pub fn reload_scope(&mut self) {
        self.scope.ask();
    }

    /// What makes fetching wait now, in words: an outage, or a full disk.
    pub fn waits_for(&self) -> Option<String> {
        let hours = self.hours.and_then(|hours| hours.closed_for(ring::unix_now()));
        match hours {
            Some(closed) => Some(format!("crawl.hours begin in {} min", closed.as_secs().div_ceil(60))),
            None => self.watch.waits_for(ring::now()),
        }
    }

    /// Outages so far, and how long they have lasted together.
    pub fn outages(&self) -> (u64, Duration) {
        self.watch.outages(ring::now())
    }

    /// Whether it drains in order to continue at once with sites moved.
    pub fn is_to_level(&self) -> bool {
        self.supervisor.is_to_level()
    }

    /// Why the crawl ends or has ended, in words.
    pub fn ended(&self) -> &'static str {
        self.supervisor.ended()
    }

    /// Joins the threads; returns the error, if any.
    pub fn finish(self) -> Result<(), String> {
        self.finish_round().map(drop)
    }

    /// The same, and what the round leaves for the next. A crawl that is stopped by a signal does not wait for a list
    /// of links.
    pub fn finish_round(self) -> Result<RoundEnd, String> {
        let mut failure = None;
        for thread in self.threads {
            let ended =
                thread.join().unwrap_or_else(|_| Err("a shard's thread panicked: a bug in ringcrawl".to_owned()));
            if let Err(error) = ended {
                failure.get_or_insert(error);
            }
        }
        match self.control.failure().or(failure) {
            Some(failure) => Err(failure),
            None => {
                let fruitless = self.supervisor.is_to_level().then_some(self.fruitless);
                let is_listed = self.lists_external && !self.supervisor.is_stopped() && fruitless.is_none();
                let (links, note) = match is_listed.then(|| self.dir.list_external_links()).transpose() {
                    Ok(links) => (links, None),
                    Err(error) => (None, Some(format!("links that left the scope are not listed: {error}"))),
                };
                let handed_on = HandedOn { lock: Some(self.dir.lock()), files: self.scope.files };
                Ok(RoundEnd { fruitless, number: self.dir.round(), links, note, handed_on })
            }
        }
    }
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

fn lines(errors: &[ConfigError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A random number. The standard library's hasher keys come from the system.
fn draw() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

/// Half a million addresses in 8 MiB: those in use or in a cooldown at one time.
const LEDGER_ENTRIES: usize = 1 << 19;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::TempFolder;
    use ringcrawl_url::Url;

    /// Advances `crawl` until it has told `expected`; returns all that it told.
    fn told(crawl: &mut Crawl, expected: &str) -> String {
        let mut told = String::new();
        for _ in 0..30_000 {
            crawl.poll(Duration::ZERO, Phase::Run);
            told.extend(crawl.control().take_notes());
            if told.contains(expected) {
                return told;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("{expected:?} is not told: {told}");
    }

    fn end(mut crawl: Crawl) -> HandedOn {
        while !crawl.poll(Duration::ZERO, Phase::Abort) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        crawl.finish_round().expect("a round").handed_on
    }

    #[test]
    fn a_later_run_holds_back_a_halved_list() {
        let folder = TempFolder::new("later-run");
        let list = folder.file("list", "a.test\nb.test\nc.test\n");
        let mut config = Config::default();
        config.crawl.shards = 1;
        config.scope.block = vec![list.into()];
        let order = Order {
            config,
            seeds: vec![Url::parse("http://127.0.0.1:3/").expect("a URL").into()],
            dir: folder.at("crawl").into(),
            new: false,
            ask_again: AskAgain::default(),
            round: None,
            handed_on: HandedOn::default(),
        };
        let start = |handed_on: HandedOn| {
            let round = Some(Round { number: 2, ..Round::default() }).filter(|_| handed_on.lock.is_some());
            Crawl::start(Order { round, handed_on, ..order.clone() }).expect("a crawl")
        };
        let handed_on = end(start(HandedOn::default()));
        folder.file("list", "a.test\n");
        let mut later = start(handed_on);
        let held = told(&mut later, "the previous files stay in effect");
        assert!(held.contains(": 3 entries in 1 MiB"), "{held}");
        assert!(held.contains("list has 1 entries, before 3; send the signal again"), "{held}");
        // What was not accepted is asked in the next run, too.
        let mut last = start(end(later));
        told(&mut last, "the previous files stay in effect");
        last.reload_scope();
        told(&mut last, ": 1 entries in 1 MiB");
        let accepted = end(last);
        let mut after = start(accepted);
        assert!(!told(&mut after, ": 1 entries in 1 MiB").contains("send the signal again"));
        end(after);
    }
}
