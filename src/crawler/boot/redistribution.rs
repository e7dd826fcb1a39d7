//! Rewrites a crawl's logs so that a crawl of N shards continues with M, or some of its sites move to other shards.
//!
//! | path | what |
//! |---|---|
//! | `redistribution.open/` | the new logs, the new manifest and `moved-sites`, as far as they are written |
//! | `redistribution/` | the same, whole: from now on they hold, and are being put into their places |
//!
//! Decides: the rename is the commit point: from then on the crawl has M shards. Before it only the ends of segments
//! that a run left open have changed. After it each start puts the rest into place before anything is read. Segments
//! stay where they are, even those of a shard that no longer exists. Damaged logs are kept next to the new ones.
//! Limits: the new logs need room next to the old ones; shards' directories may lie on other file systems.
//! Leaves to others: which URL goes where (`log::redistribution`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::crawl_dir::{make_shard, shard_dir};
use super::dir_error::DirError;
use super::manifest::{self, MANIFEST, Manifest};
use super::moved_sites::{self, MOVED_SITES};
use super::segment_folders;
use crate::disk;
use ringcrawl_brain::log::{self, Append, EarlierShard, LogFile, RedistributedFiles};
use ringcrawl_brain::route::{LevelLimits, Levelled, MovedSites, Partition};
use ringcrawl_files::private;

/// What a redistribution should do.
#[derive(Debug)]
pub(super) struct Change<'a> {
    /// The rule that assigns URLs to the new shards; none of their sites has been moved.
    pub(super) partition: &'a Partition,
    /// Sites are to be moved, within these limits.
    pub(super) levels: Option<LevelLimits>,
}

/// The result of a redistribution.
#[derive(Debug)]
pub(super) struct Changed {
    /// Where URLs are from now on.
    pub(super) partition: Partition,
    /// Notes for the operator.
    pub(super) notes: Vec<String>,
    /// What was lost or is damaged.
    pub(super) warnings: Vec<String>,
    /// Sites were to be moved, but nothing was changed, as it would help little.
    pub(super) is_fruitless: bool,
}

/// Redistributes the crawl in `root`, which began with `held`, so that it becomes one of `new`; stores the numbers of
/// segments in use in `new`.
pub(super) fn run(root: &Path, held: &Manifest, new: &mut Manifest, change: &Change<'_>) -> Result<Changed, DirError> {
    let changed = write(root, held, new, change);
    if changed.as_ref().map_or(true, |changed| changed.is_fruitless) {
        // Its space may be needed.
        let _ = fs::remove_dir_all(root.join(OPEN));
    }
    let changed = changed?;
    finish_move(root).map_err(|error| DirError::Io(root.to_owned(), error))?;
    Ok(changed)
}

/// Writes the new logs; once it returns they take effect.
fn write(root: &Path, held: &Manifest, new: &mut Manifest, change: &Change<'_>) -> Result<Changed, DirError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| DirError::Io(path, error)
    };
    let (mut earlier, mut notes, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for shard in 0..held.shards {
        let dir = shard_dir(root, shard);
        make_shard(&dir).map_err(io(&dir))?;
        let (files, left_open) =
            disk::find_files(&dir).map_err(|error| DirError::Redistribution(root.to_owned(), error.to_string()))?;
        warnings.extend(left_open.iter().map(|segment| format!("shard {shard}: {segment}")));
        earlier.push(EarlierShard { journal: files.journal, segments: files.segments });
    }
    let open = root.join(OPEN);
    let mut files = Files::new(root, &open, new.shards).map_err(io(&open))?;
    let failed = |why| DirError::Redistribution(root.to_owned(), why);
    let (mut partition, mut moved) = (change.partition.clone(), MovedSites::new());
    if let Some(limits) = change.levels {
        moved = moved_sites::read(root, held)?;
        let waiting =
            log::waiting_sites(held.crawl_number(), &earlier, &mut files, limits.bytes_max).map_err(failed)?;
        let levelled = Levelled::new(&waiting, moved.clone(), limits);
        drop(waiting);
        let is_fruitless = !levelled.helps();
        notes.push(levelled.to_string());
        if !is_fruitless {
            moved = levelled.moved_sites(change.partition);
        }
        partition = change.partition.with_moved(&moved, limits.bytes_max).map_err(failed)?;
        if is_fruitless {
            return Ok(Changed { partition, notes, warnings, is_fruitless });
        }
    }
    new.moved_sites = moved.len() as u64;
    let redistributed =
        log::redistribute((held.crawl_number(), held.rng_seed), &earlier, partition.clone(), &mut files)
            .map_err(failed)?;
    let found = redistributed.found;
    new.segments_from = redistributed.segments_from;
    let urls: u64 = found.iter().map(|found| found.next_url - found.urls_lost.min(found.next_url)).sum();
    notes.push(match change.levels {
        Some(_) => format!("rewrote {urls} URLs of {} shards", held.shards),
        None => format!("{urls} URLs of {} shards redistributed to {}", held.shards, new.shards),
    });
    for (shard, found) in (0..held.shards).zip(&found) {
        let dir = shard_dir(root, shard);
        for (log, _) in &found.damaged {
            let kept = free_name(&dir, &format!("{}.damaged", log.to_string().replace('/', "-")));
            warnings.push(format!("{} is kept as {kept}", dir.join(log.to_string()).display()));
            let copies = shard_dir(&open, shard);
            private::create_dirs(&copies)
                .and_then(|()| private::copy(&dir.join(log.to_string()), &copies.join(&kept)))
                .map_err(io(&copies))?;
        }
        warnings.extend(found.losses().into_iter().map(|loss| format!("shard {shard}: {loss}")));
    }
    let is_whole = || {
        files.sync()?;
        if !moved.is_empty() {
            moved_sites::write(&open, &new.crawl_id, &moved)?;
        }
        manifest::write(&open, new)?;
        fs::rename(&open, root.join(WHOLE))?;
        sync_dir(root)
    };
    is_whole().map_err(io(&open))?;
    Ok(Changed { partition, notes, warnings, is_fruitless: false })
}

/// Whether a redistribution in `root` has taken effect but is not in place.
pub fn is_unsettled(root: &Path) -> bool {
    root.join(WHOLE).is_dir()
}

/// The manifest that holds in `root`, in its place or not.
pub(super) fn manifest(root: &Path) -> Result<Option<Manifest>, DirError> {
    match manifest::read(&root.join(WHOLE))? {
        None => manifest::read(root),
        unsettled => Ok(unsettled),
    }
}

/// Puts into place what an earlier process redistributed, or deletes it where it was incomplete. The process that
/// holds the crawl must call this before it reads anything of the crawl.
pub(super) fn finish_move(root: &Path) -> io::Result<()> {
    let (open, whole) = (root.join(OPEN), root.join(WHOLE));
    if open.is_dir() {
        fs::remove_dir_all(open)?;
    }
    if !whole.is_dir() {
        return Ok(());
    }
    let read = manifest::read(&whole).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.to_string()))?;
    // The manifest goes last: if it is not there, everything is in place.
    if read.is_none() && shard_dirs(&whole)?.iter().any(|dir| has_files(dir)) {
        return Err(half_copied(&whole, MANIFEST));
    }
    if let Some(manifest) = read {
        for shard in 0..manifest.shards {
            for log in [LogFile::Urls, LogFile::Ends].map(|log| log.to_string()) {
                let path = shard_dir(&whole, shard).join(&log);
                if !path.exists() && !shard_dir(root, shard).join(&log).exists() {
                    return Err(half_copied(&whole, &format!("shard-{shard:02}/{log}")));
                }
            }
        }
        for dir in shard_dirs(root)? {
            remove_journal(&dir.join("journal"))?;
            remove(&dir.join("spool"))?;
        }
        (0..manifest.shards).try_for_each(|shard| make_shard(&shard_dir(root, shard)))?;
        for from in shard_dirs(&whole)? {
            let Some(name) = from.file_name() else { continue };
            let dir = root.join(name);
            private::create_dirs(&dir)?;
            for file in fs::read_dir(&from)? {
                let file = file?;
                put(&file.path(), &dir.join(file.file_name()))?;
            }
            sync_dir(&dir)?;
        }
        let is_left = |dir: &PathBuf| shard_number(dir).is_some_and(|shard| shard >= manifest.shards);
        for dir in shard_dirs(root)?.into_iter().filter(is_left) {
            for log in [LogFile::Urls, LogFile::Ends] {
                remove(&dir.join(log.to_string()))?;
            }
            // They stay if they are not empty.
            segment_folders::remove_empty(&dir);
            for folder in ["journal", ""] {
                let _ = fs::remove_dir(dir.join(folder));
            }
        }
        match manifest.moved_sites {
            0 => remove(&root.join(MOVED_SITES))?,
            // If it is missing here, it is already in place.
            _ if whole.join(MOVED_SITES).exists() => put(&whole.join(MOVED_SITES), &root.join(MOVED_SITES))?,
            _ => {}
        }
        sync_dir(root)?;
        fs::rename(whole.join(MANIFEST), root.join(MANIFEST))?;
        sync_dir(root)?;
    }
    fs::remove_dir_all(whole)
}

/// The logs before and after.
struct Files<'a> {
    root: &'a Path,
    open: &'a Path,
    /// The file that is being read.
    reading: Option<(u16, LogFile, File)>,
    writing: BTreeMap<(u16, LogFile), File>,
}

impl Files<'_> {
    /// The new logs, created empty.
    fn new<'a>(root: &'a Path, open: &'a Path, shards: u16) -> io::Result<Files<'a>> {
        let mut writing = BTreeMap::new();
        for shard in 0..shards {
            let dir = shard_dir(open, shard);
            private::create_dirs(&dir)?;
            for log in [LogFile::Urls, LogFile::Ends] {
                writing.insert((shard, log), private::create(&dir.join(log.to_string()))?);
            }
        }
        Ok(Files { root, open, reading: None, writing })
    }

    fn sync(&self) -> io::Result<()> {
        self.writing.values().try_for_each(File::sync_all)?;
        for dir in shard_dirs(self.open)? {
            for file in fs::read_dir(&dir)? {
                File::open(file?.path())?.sync_all()?;
            }
            sync_dir(&dir)?;
        }
        sync_dir(self.open)
    }

    fn piece(&mut self, shard: u16, log: LogFile, position: u64) -> io::Result<Vec<u8>> {
        if self.reading.as_ref().is_none_or(|(of, read, _)| (*of, *read) != (shard, log)) {
            let path = shard_dir(self.root, shard).join(log.to_string());
            self.reading = match File::open(path) {
                Ok(file) => Some((shard, log, file)),
                // Nothing was written yet; if something was, the other log shows it.
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
        }
        let mut piece = Vec::new();
        if let Some((.., file)) = &mut self.reading {
            file.seek(SeekFrom::Start(position))?;
            file.take(PIECE_BYTES).read_to_end(&mut piece)?;
        }
        Ok(piece)
    }
}

impl RedistributedFiles for Files<'_> {
    fn read(&mut self, shard: u16, file: LogFile, position: u64) -> Result<Vec<u8>, String> {
        self.piece(shard, file, position).map_err(|error| format!("shard-{shard:02}/{file}: {error}"))
    }

    fn append(&mut self, shard: u16, append: Append) -> Result<(), String> {
        let Append { file, bytes, .. } = append;
        let write = match self.writing.get_mut(&(shard, file)) {
            Some(writing) => writing.write_all(&bytes),
            None => Err(ErrorKind::NotFound.into()),
        };
        write.map_err(|error| format!("{OPEN}/shard-{shard:02}/{file}: {error}"))
    }
}

/// The error for a crawl that was copied incompletely while a redistribution was being put into place.
fn half_copied(whole: &Path, missing: &str) -> io::Error {
    let why = format!("{} lacks {missing}: the copy of this crawl is incomplete; copy it again", whole.display());
    io::Error::new(ErrorKind::InvalidData, why)
}

fn has_files(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut files| files.next().is_some())
}

/// Moves a file, even to another file system.
fn put(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            let copy = to.with_extension("open");
            private::copy(from, &copy)?;
            File::open(&copy)?.sync_all()?;
            fs::rename(&copy, to)?;
            // Before the only other copy is removed.
            to.parent().map_or(Ok(()), sync_dir)?;
            fs::remove_file(from)
        }
        moved => moved,
    }
}

/// Removes the files of a journal, except damaged ones, which have other names.
fn remove_journal(dir: &Path) -> io::Result<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file or a directory that may be missing.
fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// The directories of shards in `root`.
pub(super) fn shard_dirs(root: &Path) -> io::Result<Vec<PathBuf>> {
    let paths: io::Result<Vec<PathBuf>> = fs::read_dir(root)?.map(|entry| entry.map(|entry| entry.path())).collect();
    Ok(paths?.into_iter().filter(|path| shard_number(path).is_some() && path.is_dir()).collect())
}

fn shard_number(path: &Path) -> Option<u16> {
    path.file_name()?.to_str()?.strip_prefix("shard-")?.parse().ok()
}

/// `name`, with a number appended if needed, so that it is free in `dir`.
fn free_name(dir: &Path, name: &str) -> String {
    let names = std::iter::once(name.to_owned()).chain((1..).map(|number| format!("{name}-{number}")));
    names.into_iter().find(|name| !dir.join(name).exists()).unwrap_or_default()
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// The directory of logs that are being written.
const OPEN: &str = "redistribution.open";
/// The directory of logs that have taken effect.
const WHOLE: &str = "redistribution";
const PIECE_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests;
