//! The crawl's directory: its owner, its lock, and its layout.
//!
//! | path | what |
//! |---|---|
//! | `crawl.json` | the manifest: what was fixed when the crawl began ([`Manifest`]) |
//! | `config.toml` | the configuration of the last run, without the texts of secrets |
//! | `seeds` | every seed ever given, one per line with its options; `scope.follow` refers to them |
//! | `external-links-N` | links that left the scope in round N (`external_links`) |
//! | `lock` | locked while a process works here |
//! | `shard-NN/urls` | URLs that were accepted, and those that found no room |
//! | `shard-NN/ends` | how URLs ended |
//! | `shard-NN/journal/` | URLs that are on their way to other shards |
//! | `shard-NN/segments/` | records; may be a link to another disk (`segment_folders`) |
//! | `shard-NN/spool/` | queues that did not fit in memory; thrown away at each start |
//!
//! Decides: an empty or new directory becomes a crawl. One with our manifest is resumed. Anything else is refused and
//! left untouched, and so is a crawl with a damaged file. Settings that are fixed for a crawl may not change; all
//! other settings may change from run to run.
//! Invariants: `crawl.json`, `config.toml` and `seeds` are written atomically (`sealed_file`), the manifest last: it
//! is what begins the crawl. Nothing except `lock` is written before every check has passed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::checks;
use super::dir_error::DirError;
use super::dir_lock::{DirLock, LOCK};
use super::external_links::{self, ExternalLinks};
use super::kept_config::{self, CONFIG};
use super::kept_seeds::{self, SEEDS};
use super::manifest::{self, MANIFEST, Manifest};
use super::moved_sites::{self, MOVED_SITES};
use super::order::BootError;
use super::redistribution::{self, Change};
use super::sealed_file;
use super::segment_folders;
use ringcrawl_brain::route::{LevelLimits, Partition};
use ringcrawl_brain::seed::{Seed, SeedList};
use ringcrawl_config::{Config, ExchangeMode};
use ringcrawl_files::private;

/// A directory that this process holds.
#[derive(Debug)]
pub struct CrawlDir {
    root: PathBuf,
    manifest: Manifest,
    /// What the manifest was, if the crawl continues with another number of shards.
    before: Option<Manifest>,
    /// Sites are to be moved.
    moves_sites: bool,
    is_new: bool,
    /// Given in earlier runs; `None`: there is no list of them.
    seeds: Option<Vec<Seed>>,
    /// The crawl's round, from 1.
    round: u32,
    /// The round of the list of seeds.
    listed_round: u32,
    /// Held for as long as this value, or a clone of it, lives.
    lock: DirLock,
    /// The same for segments on other disks.
    held: Vec<DirLock>,
}

/// The result of [`CrawlDir::keep`].
#[derive(Debug)]
pub struct KeepOutcome {
    /// Notes for the operator.
    pub notes: Vec<String>,
    /// What is missing, damaged or left undone.
    pub warnings: Vec<String>,
    /// Where URLs are.
    pub partition: Partition,
    /// Sites were to be moved, but none was, as it would help little.
    pub is_fruitless: bool,
}

/// What the caller wants of a directory; `None` leaves it to the manifest.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Refuse to resume.
    pub new: bool,
    /// Sites are to be moved to balance shards.
    pub moves_sites: bool,
    /// Number of shards, if given.
    pub shards: Option<u16>,
    /// Seed, if given.
    pub rng_seed: Option<u64>,
    /// The rule that assigns URLs to shards, if given.
    pub partition: Option<String>,
    /// What happens to links to other shards' URLs, if given.
    pub exchange_mode: Option<ExchangeMode>,
    /// The name of the crawler, if given: another name would match other groups of robots.txt.
    pub agent_name: Option<String>,
}

impl CrawlDir {
    /// Locks `root`, unless the caller has the `lock` of an earlier round, and checks what is there. For a new crawl,
    /// `manifest` supplies what the caller left open.
    ///
    /// # Errors
    /// Another process works there, or what is there is damaged or does not match `wanted`.
    pub fn open(
        root: &Path,
        wanted: &Wanted,
        lock: Option<DirLock>,
        manifest: impl FnOnce() -> Manifest,
    ) -> Result<CrawlDir, DirError> {
        let io = |error| DirError::Io(root.to_owned(), error);
        if let Some(held) = &look(root)? {
            check(root, held, wanted)?;
        }
        private::create_dirs(root).map_err(io)?;
        let lock = lock.map_or_else(|| DirLock::of(root), Ok)?;
        let held = segment_folders::hold(root)?;
        redistribution::finish_move(root).map_err(io)?;
        // Another process may have begun a crawl between the check and the lock.
        let (manifest, is_new, (seeds, round)) = match manifest::read(root)? {
            Some(held) => {
                check(root, &held, wanted)?;
                let mut dirs = (0..held.shards).map(|shard| shard_dir(root, shard));
                if let Some(missing) = dirs.find(|dir| !dir.is_dir()) {
                    return Err(DirError::Shard(missing));
                }
                let seeds = kept_seeds::read(root, &held)?;
                (held, false, seeds)
            }
            None => (manifest(), true, (None, 1)),
        };
        let mut dir = CrawlDir {
            root: root.to_owned(),
            manifest,
            before: None,
            moves_sites: false,
            is_new,
            seeds,
            round,
            listed_round: round,
            lock,
            held,
        };
        if let Some(shards) = wanted.shards.filter(|shards| *shards != dir.manifest.shards) {
            dir.before = Some(dir.manifest.clone());
            dir.manifest.shards = shards;
        } else if wanted.moves_sites && !dir.is_new {
            dir.moves_sites = true;
            dir.before = Some(dir.manifest.clone());
        }
        Ok(dir)
    }

    /// Where URLs are by the rule of `partition`, given the sites that earlier runs moved. The table of these may
    /// take `bytes_max` bytes.
    pub fn partition(&self, partition: &Partition, bytes_max: u64) -> Result<Partition, DirError> {
        let partition = partition.with_shards(self.manifest.shards);
        // With another number of shards all sites are where the rule puts them.
        if self.before.is_some() && !self.moves_sites {
            return Ok(partition);
        }
        let moved = moved_sites::read(&self.root, &self.manifest)?;
        let path = self.root.join(MOVED_SITES);
        if moved.len() > Partition::moved_max(bytes_max) {
            return Err(DirError::MovedSitesRoom(path, moved.len()));
        }
        partition.with_moved(&moved, bytes_max).map_err(|why| DirError::MovedSites(path, why))
    }

    /// Its lock, which outlives this value.
    pub fn lock(&self) -> DirLock {
        self.lock.clone()
    }

    /// The settings that are fixed for the crawl.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The crawl's round, from 1.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// The next round begins with the seeds that are kept next.
    pub fn begin_round(&mut self, round: u32) {
        self.round = round;
    }

    /// Lists the links that left the scope in this round, once no shard works here any more.
    pub fn list_external_links(&self) -> Result<ExternalLinks, DirError> {
        list_links(&self.root, &self.manifest)
    }

    /// The seeds of earlier runs, followed by those of `seeds` that are new or have options.
    pub fn with_earlier_seeds(&self, seeds: &[Seed]) -> Result<Vec<Seed>, DirError> {
        if self.seeds.is_none() && seeds.is_empty() {
            return Err(DirError::Seeds(self.root.join(SEEDS), "it is missing".to_owned()));
        }
        let mut all = SeedList::default();
        self.seeds.iter().flatten().chain(seeds).cloned().for_each(|seed| all.push(seed));
        Ok(all.into_seeds())
    }

    /// Keeps all seeds and the configuration of this run, creates what is missing, deletes the spools of earlier
    /// runs, and redistributes the crawl if required. Until then URLs are where `partition` has them. A shard may
    /// know `shard_urls_max` URLs.
    ///
    /// # Errors
    /// Files that cannot be read or written, or that differ from what was written.
    pub fn keep(
        &mut self,
        seeds: &[Seed],
        config: &Config,
        partition: Partition,
        shard_urls_max: u64,
    ) -> Result<KeepOutcome, DirError> {
        let io = |name: &str| {
            let path = self.root.join(name);
            move |error| DirError::Io(path, error)
        };
        let config = self.with_fixed(config);
        let (root, crawl_id) = (&self.root, self.manifest.crawl_id.clone());
        let before = if self.is_new { None } else { Some(kept_config::read(root, &self.manifest)) };
        let (mut notes, mut warnings) = (Vec::new(), Vec::new());
        if let Some(killed) = sealed_file::crawl_of(&root.join(CONFIG)).filter(|_| self.is_new) {
            let left = segment_folders::remove_orphans(root, &killed, &config.store.dirs).map_err(io(""))?;
            let note = |path: PathBuf| format!("{} is of a start that was killed, and is not empty", path.display());
            warnings.extend(left.into_iter().map(note));
        }
        match &before {
            Some(Ok(before)) => notes.extend(kept_config::changes(root, &config, before)),
            Some(Err(DirError::Config(path, why))) => {
                warnings.push(format!("{}: {why}; rewritten with this run's settings", path.display()));
            }
            Some(Err(_)) | None => {}
        }
        // Before its settings are kept: if it fails, the next run continues as before.
        let (mut partition, mut is_fruitless) = (partition, false);
        if let Some(before) = &self.before {
            let limits = LevelLimits { bytes_max: config.partition.ram_bytes_max, shard_urls_max };
            let levels = self.moves_sites.then_some(limits);
            let bare = partition.with_shards(self.manifest.shards);
            match redistribution::run(root, before, &mut self.manifest, &Change { partition: &bare, levels }) {
                Ok(changed) => {
                    notes.extend(changed.notes);
                    warnings.extend(changed.warnings);
                    (partition, is_fruitless) = (changed.partition, changed.is_fruitless);
                }
                // Sites stay where they are until the new logs take effect.
                Err(error) if self.moves_sites && !redistribution::is_unsettled(root) => {
                    warnings.push(format!("balance: no site moves: {error}"));
                    self.manifest = before.clone();
                    is_fruitless = true;
                }
                Err(error) => return Err(error),
            }
        }
        if self.seeds.as_deref() != Some(seeds) || self.round != self.listed_round {
            if self.seeds.is_none() && !self.is_new {
                let path = root.join(SEEDS);
                warnings.push(format!("{} was missing; rewritten with {} seeds", path.display(), seeds.len()));
            }
            kept_seeds::write(root, &crawl_id, seeds, self.round).map_err(io(SEEDS))?;
        }
        let is_same = matches!(&before, Some(Ok(before)) if *before == config);
        if !is_same {
            kept_config::write(root, &crawl_id, &config).map_err(io(CONFIG))?;
        }
        for shard in 0..self.manifest.shards {
            let dir = self.shard(shard);
            warnings.extend((!self.is_new).then(|| missing(&dir)).flatten());
            make_shard(&dir).and_then(|()| self.begin_logs(&dir)).map_err(|error| DirError::Io(dir, error))?;
        }
        let dirs = &config.store.dirs;
        let elsewhere = segment_folders::place(root, &crawl_id, self.manifest.shards, dirs).map_err(|error| {
            DirError::Io(root.clone(), io::Error::new(error.kind(), format!("segments in store.dirs: {error}")))
        })?;
        if elsewhere > 0 && matches!(&before, Some(Ok(before)) if before.store.dirs != *dirs) {
            let shards = self.manifest.shards;
            notes.push(format!("store.dirs: {elsewhere} of {shards} shards continue where their segments are"));
        }
        self.held.clear();
        self.held = segment_folders::hold(root)?;
        if self.is_new {
            manifest::write(root, &self.manifest).map_err(io(MANIFEST))?;
        }
        File::open(root).and_then(|root| root.sync_all()).map_err(io(""))?;
        Ok(KeepOutcome { notes, warnings, partition, is_fruitless })
    }

    /// A new crawl has logs from the beginning, so that the logs of a shard without any entry are not taken for lost.
    fn begin_logs(&self, shard: &Path) -> io::Result<()> {
        if self.is_new {
            for log in ["urls", "ends"] {
                private::open(private::options().create(true).truncate(false), &shard.join(log))?;
            }
        }
        Ok(())
    }

    /// `config` with what is fixed for the crawl, whether the run gave it or not.
    fn with_fixed(&self, config: &Config) -> Config {
        let mut config = config.clone();
        config.crawl.shards = self.manifest.shards.into();
        config.crawl.rng_seed = self.manifest.rng_seed;
        config.agent.name.clone_from(&self.manifest.agent_name);
        config
    }

    /// Whether the crawl begins now.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The crawl's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of a shard.
    pub fn shard(&self, index: u16) -> PathBuf {
        shard_dir(&self.root, index)
    }
}

/// The manifest of the crawl in `root`; `None` where a crawl may begin.
pub(super) fn look(root: &Path) -> Result<Option<Manifest>, DirError> {
    if root.exists() && !root.is_dir() {
        return Err(DirError::NoDirectory(root.to_owned()));
    }
    let io = |error| DirError::Io(root.to_owned(), error);
    for entry in fs::read_dir(root).into_iter().flatten() {
        let shard = entry.map_err(io)?;
        let is_shard = shard.file_name().to_str().is_some_and(|name| name.starts_with("shard-"));
        let within = ["", "segments", "journal", "spool"].map(|name| shard.path().join(name));
        for path in within.iter().filter(|_| is_shard) {
            let path: PathBuf = path.components().collect();
            if let Some(user) = private::made_by_another(&path).map_err(|error| DirError::Io(path.clone(), error))? {
                return Err(DirError::LinkOfAnother(path, user));
            }
        }
    }
    let held = manifest::read(root)?;
    if held.is_none() && root.exists() && fs::read_dir(root).map_err(io)?.any(|entry| !is_ours(&entry)) {
        return Err(DirError::Foreign(root.to_owned()));
    }
    Ok(held)
}

/// Lists the links that left the scope in the last round of the crawl in `root`, in which no shard works.
pub fn list_external_links(root: &Path, lock: Option<DirLock>) -> Result<ExternalLinks, DirError> {
    let _lock = lock.map_or_else(|| DirLock::of(root), Ok)?;
    match manifest::read(root)? {
        Some(manifest) => list_links(root, &manifest),
        None => Err(DirError::Manifest(root.join(MANIFEST), "it is missing".to_owned())),
    }
}

fn list_links(root: &Path, manifest: &Manifest) -> Result<ExternalLinks, DirError> {
    let (seeds, round) = kept_seeds::read(root, manifest)?;
    let listed = external_links::list(root, manifest.shards, round, &seeds.unwrap_or_default());
    listed.map_err(|error| DirError::Io(root.to_owned(), error))
}

/// The directory of a shard of the crawl in `root`.
pub(super) fn shard_dir(root: &Path, index: u16) -> PathBuf {
    root.join(format!("shard-{index:02}"))
}

/// Creates what is missing in a shard's directory, and deletes the spool of an earlier run.
pub(super) fn make_shard(dir: &Path) -> io::Result<()> {
    for folder in ["segments", "journal"] {
        private::create_dirs(&dir.join(folder))?;
    }
    let spool = dir.join("spool");
    if spool.exists() {
        fs::remove_dir_all(&spool)?;
    }
    private::create_dirs(&spool)
}

/// Which files of an earlier run are missing, in words, where nothing else shows it.
fn missing(dir: &Path) -> Option<String> {
    let segments = dir.join("segments");
    let has_logs = ["urls", "ends"].iter().any(|log| dir.join(log).exists());
    match segments.is_dir() {
        true => {}
        false if has_logs => {
            return Some(format!("{} is missing, with everything that shard stored", segments.display()));
        }
        false => return Some(format!("{} is empty: the crawl continues without what that shard knew", dir.display())),
    }
    let has_segments = fs::read_dir(segments).is_ok_and(|mut entries| entries.next().is_some());
    let urls = dir.join("urls");
    (has_segments && !has_logs)
        .then(|| format!("{} is missing: its URLs are lost, unless they are found again", urls.display()))
}

/// Whether `root` is the directory of a crawl, whole or damaged.
pub fn is_crawl(root: &Path) -> bool {
    root.join(MANIFEST).is_file()
}

/// Which shard has which URL in the crawl in `root`, with this manifest and configuration.
pub fn kept_partition(root: &Path, manifest: &Manifest, config: &Config) -> Result<Partition, BootError> {
    let mut config = config.clone();
    config.crawl.shards = manifest.shards.into();
    let moved = moved_sites::read(root, manifest)?;
    let partition = checks::partition(&config, 1)?;
    if partition.rule() != manifest.partition {
        let (path, what) = (root.to_owned(), "partition.by");
        return Err(DirError::Differs { path, what, held: manifest.partition.clone(), wanted: partition.rule() }.into());
    }
    partition.with_moved(&moved, u64::MAX).map_err(BootError::Order)
}

/// Whether this directory's crawl was about to begin when its process was killed.
fn is_ours(entry: &io::Result<fs::DirEntry>) -> bool {
    let Ok(entry) = entry else { return false };
    let name = entry.file_name();
    let is_sealed = [SEEDS, CONFIG].iter().any(|ours| name == *ours) && sealed_file::crawl_of(&entry.path()).is_some();
    let is_shard = name.to_str().is_some_and(|name| name.starts_with("shard-")) && is_empty_shard(&entry.path());
    let mut open = [MANIFEST, SEEDS, CONFIG].iter().map(|ours| sealed_file::open_name(Path::new(""), ours));
    name == LOCK || is_sealed || is_shard || open.any(|open| open == *name)
}

/// Whether it contains only empty folders and logs, as before a crawl's first run.
fn is_empty_shard(dir: &Path) -> bool {
    let is_empty = |path: &Path| match fs::metadata(path) {
        Ok(file) if file.is_file() => file.len() == 0,
        _ => fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()),
    };
    fs::read_dir(dir).is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(|entry| is_empty(&entry.path()))))
}

fn check(root: &Path, held: &Manifest, wanted: &Wanted) -> Result<(), DirError> {
    if wanted.new {
        return Err(DirError::NotNew(root.to_owned()));
    }
    let differs = |what, held: String, wanted: String| {
        if held == wanted { Ok(()) } else { Err(DirError::Differs { path: root.to_owned(), what, held, wanted }) }
    };
    if let Some(rng_seed) = wanted.rng_seed {
        differs("crawl.rng_seed", held.rng_seed.to_string(), rng_seed.to_string())?;
    }
    if let Some(wanted) = &wanted.agent_name {
        differs("agent.name", format!("\"{}\"", held.agent_name), format!("\"{wanted}\""))?;
    }
    // Several shards know the same URLs.
    let keeps_parts = held.exchange_mode.parse().is_ok_and(ExchangeMode::keeps_parts);
    let is_planned = Partition::is_planned(&held.partition);
    if let Some(shards) = wanted.shards.filter(|_| !keeps_parts || is_planned) {
        differs("crawl.shards", held.shards.to_string(), shards.to_string())?;
    }
    if let Some(wanted) = wanted.exchange_mode {
        differs("exchange.mode", held.exchange_mode.clone(), wanted.as_str().to_owned())?;
    }
    match &wanted.partition {
        Some(wanted) => differs("partition.by", held.partition.clone(), wanted.clone()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
