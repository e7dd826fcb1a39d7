//! The crawl's directory: whose it is, who holds it, what lies where.
//!
//! | path | what |
//! |---|---|
//! | `crawl.json` | the manifest: what was fixed when the crawl began |
//! | `seeds` | every seed ever given, one per line; `scope.follow` refers to them |
//! | `lock` | locked while a process works here |
//! | `shard-NN/urls` | URLs that were accepted, and those that found no room |
//! | `shard-NN/ends` | how URLs ended |
//! | `shard-NN/journal/` | URLs that are on their way to other shards |
//! | `shard-NN/segments/` | records |
//! | `shard-NN/spool/` | queues that did not fit in memory; thrown away at each start |
//!
//! Decides: an empty or new directory becomes a crawl; one with our manifest is resumed; anything else is
//! refused and left untouched. Nothing is ever overwritten.
//! Invariants: the manifest is written whole (under another name, then renamed) and never changed afterwards, except
//! that one from an earlier version gets the `agent_name` of the first run that has one.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::PartitionKey;
use crate::url::Url;

/// A directory that this process holds.
#[derive(Debug)]
pub struct CrawlDir {
    root: PathBuf,
    manifest: Manifest,
    is_new: bool,
    /// Held for as long as this value lives.
    _lock: File,
}

/// What was fixed when the crawl began.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the directory's layout.
    pub format: u32,
    /// Which ringcrawl began it.
    pub created_by: String,
    /// When, as in WARC-Date.
    pub created: String,
    /// Seed of fingerprints and of every random choice.
    pub rng_seed: u64,
    /// Number of shards.
    pub shards: u16,
    /// `site` or `host`.
    pub partition_key: String,
    /// `agent.name`: whom robots.txt allowed to fetch what is stored, and whom each site knows. Empty: a crawl of this
    /// machine without a name; `None`: begun by a version that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
}

/// Why a directory cannot be used. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// The system refuses.
    #[error("{path}: {why}", path = .0.display(), why = .1)]
    Io(PathBuf, io::Error),
    /// Something else has its name.
    #[error("{path} is no directory; give an empty or a new directory", path = .0.display())]
    NoDirectory(PathBuf),
    /// It is not empty, and not a crawl.
    #[error("{path} is not empty and holds no crawl (no crawl.json); give an empty or a new directory", path = .0.display())]
    Foreign(PathBuf),
    /// A crawl of another layout, or a damaged manifest.
    #[error("{path}: {why}", path = .0.display(), why = .1)]
    Manifest(PathBuf, String),
    /// Another process works in it.
    #[error("{path} is in use by another ringcrawl (it holds {path}/lock)", path = .0.display())]
    Locked(PathBuf),
    /// The crawl in it was begun with other settings.
    #[error("{path} holds a crawl with {what} {held}, and {wanted} was asked for; omit the setting or give a new directory", path = .path.display())]
    Differs {
        /// The directory.
        path: PathBuf,
        /// The setting.
        what: &'static str,
        /// Its value there.
        held: String,
        /// Its value now.
        wanted: String,
    },
    /// `--new` was given.
    #[error("{path} holds a crawl already, and a new one was asked for", path = .0.display())]
    NotNew(PathBuf),
}

/// What the caller wants of a directory; `None` leaves it to the manifest.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Refuse to resume.
    pub new: bool,
    /// Number of shards, if given.
    pub shards: Option<u16>,
    /// Seed, if given.
    pub rng_seed: Option<u64>,
    /// What stays together.
    pub partition_key: PartitionKey,
    /// Who crawls, if given: another name would match other groups of robots.txt.
    pub agent_name: Option<String>,
}

impl Manifest {
    /// A number that no other crawl has, for the heads of logs.
    pub fn crawl_id(&self) -> u64 {
        let text = format!("{} {} {}", self.created, self.created_by, self.rng_seed);
        xxhash_rust::xxh3::xxh3_64(text.as_bytes())
    }
}

impl CrawlDir {
    /// Opens or begins the crawl in `root` and locks it. For a new one, `manifest` supplies what the caller left open.
    pub fn open(root: &Path, wanted: &Wanted, manifest: impl FnOnce() -> Manifest) -> Result<CrawlDir, DirError> {
        let io = |error| DirError::Io(root.to_owned(), error);
        if root.exists() && !root.is_dir() {
            return Err(DirError::NoDirectory(root.to_owned()));
        }
        let held = read_manifest(root)?;
        if held.is_none() && root.exists() && fs::read_dir(root).map_err(io)?.any(|entry| !is_ours(&entry)) {
            return Err(DirError::Foreign(root.to_owned()));
        }
        if let Some(held) = &held {
            check(root, held, wanted)?;
        }
        fs::create_dir_all(root).map_err(io)?;
        let lock = File::options().create(true).truncate(false).write(true).open(root.join(LOCK)).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DirError::Locked(root.to_owned())),
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        // Another process may have begun a crawl between the check and the lock.
        let (mut manifest, is_new) = match read_manifest(root)? {
            Some(held) => {
                check(root, &held, wanted)?;
                (held, false)
            }
            None => (manifest(), true),
        };
        let is_named_now = manifest.agent_name.is_none() && wanted.agent_name.is_some();
        if is_named_now {
            manifest.agent_name.clone_from(&wanted.agent_name);
        }
        if is_new || is_named_now {
            write_manifest(root, &manifest).map_err(io)?;
        }
        let dir = CrawlDir { root: root.to_owned(), manifest, is_new, _lock: lock };
        for shard in 0..dir.manifest.shards {
            let shard = dir.shard(shard);
            for folder in ["segments", "journal"] {
                fs::create_dir_all(shard.join(folder)).map_err(io)?;
            }
            let spool = shard.join("spool");
            if spool.exists() {
                fs::remove_dir_all(&spool).map_err(io)?;
            }
            fs::create_dir(&spool).map_err(io)?;
        }
        Ok(dir)
    }

    /// What was fixed when the crawl began.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Adds `seeds` to those given before; returns all of them.
    pub fn remember_seeds(&self, seeds: &[Url]) -> Result<Vec<Url>, DirError> {
        let path = self.root.join(SEEDS);
        let io = |error| DirError::Io(path.clone(), error);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(io(error)),
        };
        let mut all: Vec<Url> = text.lines().filter_map(|line| Url::parse(line).ok()).collect();
        let known: HashSet<Url> = all.iter().cloned().collect();
        let new: Vec<&Url> = seeds.iter().filter(|seed| !known.contains(seed)).collect();
        if !new.is_empty() {
            let lines: String = new.iter().map(|seed| format!("{}\n", seed.as_str())).collect();
            let mut file = File::options().create(true).append(true).open(&path).map_err(io)?;
            file.write_all(lines.as_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
            all.extend(new.into_iter().cloned());
        }
        Ok(all)
    }

    /// Whether the crawl begins now.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of one shard.
    pub fn shard(&self, index: u16) -> PathBuf {
        self.root.join(format!("shard-{index:02}"))
    }
}

fn is_ours(entry: &io::Result<fs::DirEntry>) -> bool {
    entry.as_ref().is_ok_and(|entry| entry.file_name() == LOCK || entry.file_name() == MANIFEST_OPEN)
}

fn check(root: &Path, held: &Manifest, wanted: &Wanted) -> Result<(), DirError> {
    if wanted.new {
        return Err(DirError::NotNew(root.to_owned()));
    }
    let differs = |what, held: String, wanted: String| {
        if held == wanted { Ok(()) } else { Err(DirError::Differs { path: root.to_owned(), what, held, wanted }) }
    };
    if let Some(shards) = wanted.shards {
        differs("crawl.shards", held.shards.to_string(), shards.to_string())?;
    }
    if let Some(rng_seed) = wanted.rng_seed {
        differs("crawl.rng_seed", held.rng_seed.to_string(), rng_seed.to_string())?;
    }
    if let (Some(held), Some(wanted)) = (&held.agent_name, &wanted.agent_name) {
        differs("agent.name", format!("\"{held}\""), format!("\"{wanted}\""))?;
    }
    differs("partition.key", held.partition_key.clone(), key_name(wanted.partition_key).to_owned())
}

/// Whether `root` is the directory of a crawl, whole or not.
pub fn is_crawl(root: &Path) -> bool {
    root.join(MANIFEST).is_file()
}

/// The name of a partition key in manifests and configurations.
pub fn key_name(key: PartitionKey) -> &'static str {
    match key {
        PartitionKey::Site => "site",
        PartitionKey::Host => "host",
    }
}

fn read_manifest(root: &Path) -> Result<Option<Manifest>, DirError> {
    let path = root.join(MANIFEST);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DirError::Io(path, error)),
    };
    let value: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| DirError::Manifest(path.clone(), format!("no manifest of a crawl: {error}")))?;
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => {
            let why = format!("the crawl is of format {format}, this ringcrawl reads format {FORMAT}");
            return Err(DirError::Manifest(path, why));
        }
        None => return Err(DirError::Manifest(path, "no manifest of a crawl: it names no format".to_owned())),
    }
    let manifest: Manifest = serde_json::from_value(value)
        .map_err(|error| DirError::Manifest(path.clone(), format!("damaged manifest: {error}")))?;
    if manifest.shards == 0 {
        return Err(DirError::Manifest(path, "damaged manifest: no shards".to_owned()));
    }
    Ok(Some(manifest))
}

fn write_manifest(root: &Path, manifest: &Manifest) -> io::Result<()> {
    let open = root.join(MANIFEST_OPEN);
    let mut text = serde_json::to_string_pretty(manifest)?;
    text.push('\n');
    fs::write(&open, text)?;
    File::open(&open)?.sync_all()?;
    fs::rename(&open, root.join(MANIFEST))?;
    File::open(root)?.sync_all()
}

/// The layout that this version writes.
pub const FORMAT: u32 = 1;
const MANIFEST: &str = "crawl.json";
const MANIFEST_OPEN: &str = "crawl.json.open";
const LOCK: &str = "lock";
const SEEDS: &str = "seeds";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::TempFolder;

    fn manifest() -> Manifest {
        Manifest {
            format: FORMAT,
            created_by: "ringcrawl test".to_owned(),
            created: "2026-11-21T00:00:00Z".to_owned(),
            rng_seed: 7,
            shards: 2,
            partition_key: "site".to_owned(),
            agent_name: Some("bot".to_owned()),
        }
    }

    #[test]
    fn begun_once_then_resumed_and_locked() {
        let folder = TempFolder::new("resume");
        let root = folder.path().join("crawl");
        let first = CrawlDir::open(&root, &Wanted::default(), manifest).unwrap();
        assert!(first.is_new() && root.join("shard-01/segments").is_dir());
        let [a, b] = ["http://a.test/", "http://b.test/"].map(|text| Url::parse(text).unwrap());
        assert_eq!(first.remember_seeds(std::slice::from_ref(&a)).unwrap(), std::slice::from_ref(&a));
        assert_eq!(first.remember_seeds(&[b.clone(), a.clone()]).unwrap(), [a.clone(), b.clone()]);
        assert_eq!(first.remember_seeds(&[]).unwrap(), [a, b]);
        let locked = CrawlDir::open(&root, &Wanted::default(), manifest).unwrap_err();
        assert!(matches!(locked, DirError::Locked(_)), "{locked}");
        drop(first);
        fs::write(root.join("shard-00/spool/0"), "old").unwrap();
        let again = CrawlDir::open(&root, &Wanted::default(), || unreachable!("it is not new")).unwrap();
        assert!(!again.is_new() && !root.join("shard-00/spool/0").exists());
        assert_eq!(again.manifest(), &manifest());
        drop(again);
        let wanted = Wanted { shards: Some(3), ..Wanted::default() };
        let differs = CrawlDir::open(&root, &wanted, manifest).unwrap_err().to_string();
        assert!(differs.contains("crawl.shards 2") && differs.contains('3'), "{differs}");
        let new = CrawlDir::open(&root, &Wanted { new: true, ..Wanted::default() }, manifest).unwrap_err();
        assert!(matches!(new, DirError::NotNew(_)), "{new}");
    }

    #[test]
    fn a_crawl_keeps_its_name() {
        let named = |name: &str| Wanted { agent_name: Some(name.to_owned()), ..Wanted::default() };
        let folder = TempFolder::new("named");
        let root = folder.path().join("crawl");
        let is_open = |wanted: &Wanted| {
            let open = CrawlDir::open(&root, wanted, manifest);
            open.map(|dir| dir.manifest().agent_name.clone()).map_err(|error| error.to_string())
        };
        let bot = Ok(Some("bot".to_owned()));
        assert_eq!(is_open(&named("bot")), bot);
        // Without a name the crawl's own is kept.
        assert_eq!(is_open(&Wanted::default()), bot);
        let before = fs::read_to_string(root.join(MANIFEST)).unwrap();
        let refused = is_open(&named("other")).unwrap_err();
        for word in ["agent.name \"bot\", and \"other\" was asked for", "omit the setting or give a new directory"] {
            assert!(refused.contains(word), "{refused}");
        }
        assert_eq!(fs::read_to_string(root.join(MANIFEST)).unwrap(), before);
        // From an earlier version: the first name given is kept.
        let older = before.replace(",\n  \"agent_name\": \"bot\"", "");
        assert_ne!(older, before);
        fs::write(root.join(MANIFEST), &older).unwrap();
        assert_eq!(is_open(&Wanted::default()), Ok(None));
        assert_eq!(fs::read_to_string(root.join(MANIFEST)).unwrap(), older);
        assert_eq!(is_open(&named("bot")), bot);
        assert_eq!(fs::read_to_string(root.join(MANIFEST)).unwrap(), before);
        assert!(is_open(&named("other")).is_err());
    }

    #[test]
    fn foreign_directories_are_left_alone() {
        let folder = TempFolder::new("foreign");
        let root = folder.path();
        fs::write(root.join("thesis.tex"), "precious").unwrap();
        assert!(matches!(CrawlDir::open(root, &Wanted::default(), manifest), Err(DirError::Foreign(_))));
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1, "nothing was added");
        fs::remove_file(root.join("thesis.tex")).unwrap();
        for (text, expected) in [
            ("{\"format\": 9}", "format 9"),
            ("{\"format\": 1}", "damaged"),
            ("{}", "names no format"),
            ("not json", "no manifest"),
        ] {
            fs::write(root.join(MANIFEST), text).unwrap();
            let error = CrawlDir::open(root, &Wanted::default(), manifest).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert_eq!(fs::read_to_string(root.join(MANIFEST)).unwrap(), text);
        }
    }
}
