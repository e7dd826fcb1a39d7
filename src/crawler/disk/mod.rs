//! A shard's files: one queue of operations, carried out in order by one task.
//!
//! Decides: only where files lie. Segments, logs and spool go through the same queue, so that what the brain issues
//! first is on its way to the disk first. Syncing, and with it the closing of a segment, runs alongside the queue.
//! Invariants: every operation ends once, as a [`DiskEnd`]. After the first error nothing more is written, and that
//! error is the last end.
//! Limits: the brain bounds the backlog.

mod files_found;

pub use files_found::{LeftOpen, TORN_BYTES_MAX, find_files};

use std::cell::{Cell, RefCell};
use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::fault_injection;
use ringcrawl_brain::log::{Append, LogFile};
use ringcrawl_brain::shard::{DiskEnd, DiskOp};
use ringcrawl_brain::spool::SpoolOp;
use ringcrawl_ring::{self as ring, File, Signal};
use ringcrawl_warc::SegmentOp;
use ringcrawl_warc::segments::{INDEX_SUFFIX, OPEN, segment_stem};

/// The queue and its results.
#[derive(Debug, Default)]
pub struct Disk {
    ops: RefCell<VecDeque<DiskOp>>,
    work: Signal,
    ends: RefCell<VecDeque<DiskEnd>>,
    has_failed: Cell<bool>,
    /// The segments that are being closed, by the order in which that began, and the signal that one is closed.
    closing: RefCell<BTreeSet<u64>>,
    next_closing: Cell<u64>,
    closed: Signal,
    /// Notes for the operator.
    notes: RefCell<Vec<String>>,
}

/// How segments are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentWays {
    /// Space reserved for a segment when it begins; unused space is released when it is closed.
    pub reserve_bytes: u64,
    /// Free space that a reservation leaves to others: with less, the crawl would wait for space.
    pub leave_bytes: u64,
    /// Data on the device is dropped from the page cache.
    pub is_uncached: bool,
}

impl SegmentWays {
    /// Whether a segment may reserve its space where this much is free.
    fn may_reserve(&self, free: u64) -> bool {
        let wanted = self.reserve_bytes;
        wanted <= free / RESERVE_PART && free - wanted >= self.leave_bytes
    }
}

impl Disk {
    /// Queues an operation.
    pub fn push(&self, op: DiskOp) {
        self.ops.borrow_mut().push_back(op);
        self.work.notify();
    }

    /// The end of an operation, if there is one.
    pub fn next_end(&self) -> Option<DiskEnd> {
        self.ends.borrow_mut().pop_front()
    }

    /// The notes for the operator, each once.
    pub fn take_notes(&self) -> Vec<String> {
        self.notes.take()
    }

    /// Carries out queued operations in the directory `dir`, forever; signals `done` after each operation.
    pub async fn work(self: Rc<Self>, dir: PathBuf, ways: SegmentWays, done: Rc<Signal>) {
        let mut files = Files {
            dir,
            logs: HashMap::new(),
            segment: None,
            segment_bytes: 0,
            ways,
            notes: Vec::new(),
            spool: HashMap::new(),
            unsynced: Unsynced::default(),
        };
        loop {
            let op = self.ops.borrow_mut().pop_front();
            let Some(op) = op else {
                self.work.wait().await;
                continue;
            };
            if self.has_failed.get() {
                // A later write could succeed where an earlier one is missing.
                continue;
            }
            if let DiskOp::Segment(SegmentOp::Close { index }) = op {
                let open = files.segment.take();
                assert!(open.is_some(), "a segment is closed and none is open");
                if let Some((name, file)) = open {
                    if ways.reserve_bytes > 0 {
                        // If that fails it keeps its space, which costs no stored byte.
                        let _ = file.truncate(files.segment_bytes);
                    }
                    let (disk, done, folder) = (Rc::clone(&self), Rc::clone(&done), files.dir.join("segments"));
                    let number = self.next_closing.replace(self.next_closing.get() + 1);
                    self.closing.borrow_mut().insert(number);
                    ring::spawn(async move {
                        let bytes = index.len() as u64;
                        let closed = close_segment(&folder, &name, file, index).await;
                        disk.closing.borrow_mut().remove(&number);
                        disk.closed.notify();
                        disk.end(closed.map(|()| DiskEnd::Done { spare: None, bytes }), &done);
                    });
                }
                continue;
            }
            if let DiskOp::Sync { to_device } = op {
                let (unsynced, before) = (files.take_unsynced(), self.next_closing.get());
                let (disk, done) = (Rc::clone(&self), Rc::clone(&done));
                ring::spawn(async move {
                    let synced = disk.sync(unsynced, before, to_device).await;
                    disk.end(synced.map(|()| DiskEnd::Synced), &done);
                });
                continue;
            }
            fault_injection::at("disk");
            let end = files.carry_out(op).await;
            self.notes.borrow_mut().append(&mut files.notes);
            self.end(end, &done);
        }
    }

    /// Waits until the segments are closed whose closing began `before`, and with `to_device` until the rest is on the
    /// device: files before the folders that have their names. Where segments are short, later ones may be closing
    /// without end.
    async fn sync(&self, unsynced: Unsynced, before: u64, to_device: bool) -> Result<(), PathError> {
        if to_device {
            for (path, file) in unsynced.files {
                file.sync().await.map_err(at(&path))?;
            }
            for folder in unsynced.folders {
                ring::sync_dir(&folder).await.map_err(at(&folder))?;
            }
        }
        while self.closing.borrow().first().is_some_and(|first| *first < before) {
            self.closed.wait().await;
        }
        Ok(())
    }

    fn end(&self, end: Result<DiskEnd, PathError>, done: &Signal) {
        if !self.has_failed.get() {
            let end = end.unwrap_or_else(|(path, error)| {
                self.has_failed.set(true);
                DiskEnd::Failed(format!("{}: {error}", path.display()))
            });
            self.ends.borrow_mut().push_back(end);
        }
        done.notify();
    }
}

struct Files {
    dir: PathBuf,
    logs: HashMap<LogFile, File>,
    segment: Option<(String, File)>,
    /// Its length.
    segment_bytes: u64,
    /// How it is written; options that the file system does not support are off.
    ways: SegmentWays,
    notes: Vec<String>,
    spool: HashMap<u32, File>,
    unsynced: Unsynced,
}

/// What was written since the last sync, or read from an earlier run.
#[derive(Default)]
struct Unsynced {
    files: HashMap<PathBuf, File>,
    /// Folders with new names.
    folders: HashSet<PathBuf>,
}

type PathError = (PathBuf, io::Error);

impl Files {
    async fn carry_out(&mut self, op: DiskOp) -> Result<DiskEnd, PathError> {
        let bytes = op.bytes();
        let done = |spare| Ok(DiskEnd::Done { spare, bytes });
        match op {
            DiskOp::Segment(SegmentOp::Begin(name)) => {
                let path = self.segment_path(&name);
                let file = ring::File::create_new(&path).await.map_err(at(&path))?;
                self.reserve(&path, &file).await;
                (self.segment, self.segment_bytes) = (Some((name, file)), 0);
                self.unsynced.folders.insert(self.dir.join("segments"));
                done(None)
            }
            DiskOp::Segment(SegmentOp::Write { bytes, offset }) => {
                let Some((name, file)) = &self.segment else {
                    return Err((self.dir.join("segments"), io::Error::other("no segment is open")));
                };
                self.segment_bytes = offset + bytes.len() as u64;
                let (path, file) = (self.segment_path(name), file.clone());
                let (result, spare) = self.write_segment(&path, &file, bytes, offset).await;
                if result.is_err() {
                    // Only whole records stay, so that what was stored can be verified as it is.
                    let _ = file.truncate(offset);
                }
                result.map_err(at(&path))?;
                self.unsynced.files.insert(path, file);
                done(Some(spare))
            }
            // Carried out alongside the queue.
            DiskOp::Segment(SegmentOp::Close { .. }) | DiskOp::Sync { .. } => done(None),
            DiskOp::Append(Append { file, position, bytes }) => {
                let path = self.log_path(file);
                let log = self.log(file).await.map_err(at(&path))?;
                let (result, _) = log.write_all_at(bytes, position).await;
                result.map_err(at(&path))?;
                self.unsynced.files.insert(path, log);
                done(None)
            }
            DiskOp::ReadLog { file, position } => {
                let path = self.log_path(file);
                let log = match ring::File::open(&path).await {
                    Ok(log) => log,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        return Ok(DiskEnd::LogRead { bytes: Vec::new() });
                    }
                    Err(error) => return Err((path, error)),
                };
                let bytes = log.read_at(LOG_PIECE_BYTES, position).await.map_err(at(&path))?;
                // A killed run may have written it without a sync, and later steps rely on it.
                self.unsynced.folders.extend(path.parent().map(Path::to_owned));
                self.unsynced.files.insert(path, log);
                Ok(DiskEnd::LogRead { bytes })
            }
            DiskOp::CutLog { file, bytes } => {
                let path = self.log_path(file);
                let log = self.log(file).await.map_err(at(&path))?;
                log.truncate(bytes).map_err(at(&path))?;
                self.unsynced.files.insert(path, log);
                done(None)
            }
            DiskOp::DeleteLog(file) => {
                let path = self.log_path(file);
                self.logs.remove(&file);
                self.unsynced.files.remove(&path);
                ring::remove(&path).await.map_err(at(&path))?;
                done(None)
            }
            DiskOp::PutLogAside(file) => {
                let path = self.log_path(file);
                self.logs.remove(&file);
                self.unsynced.files.remove(&path);
                // Numbers restart when a journal is empty.
                let mut names =
                    std::iter::once("damaged".to_owned()).chain((1..).map(|number| format!("damaged-{number}")));
                let aside = names.find_map(|name| Some(path.with_extension(name)).filter(|aside| !aside.exists()));
                ring::rename(&path, &aside.unwrap_or_default()).await.map_err(at(&path))?;
                done(None)
            }
            DiskOp::Spool(SpoolOp::Write { block, bytes }) => {
                let path = self.spool_path(block.file);
                let file = match self.spool.entry(block.file) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => entry.insert(ring::File::create_new(&path).await.map_err(at(&path))?),
                };
                let (result, _) = file.write_all_at(bytes, u64::from(block.offset)).await;
                result.map_err(at(&path))?;
                done(None)
            }
            DiskOp::Spool(SpoolOp::Read { block }) => {
                let path = self.spool_path(block.file);
                let Some(file) = self.spool.get(&block.file) else {
                    return Err((path, io::Error::other("a spool file is missing")));
                };
                let bytes = file.read_at(block.bytes as usize, u64::from(block.offset)).await.map_err(at(&path))?;
                if bytes.len() != block.bytes as usize {
                    return Err((path, io::Error::other("a spool file is shorter than it was written")));
                }
                Ok(DiskEnd::BlockRead { block, bytes })
            }
            DiskOp::Spool(SpoolOp::Delete { file }) => {
                let path = self.spool_path(file);
                if let Some(file) = self.spool.remove(&file) {
                    file.close();
                    ring::remove(&path).await.map_err(at(&path))?;
                }
                done(None)
            }
        }
    }

    /// Bypasses the page cache if configured and supported.
    async fn write_segment(
        &mut self,
        path: &Path,
        file: &File,
        bytes: Vec<u8>,
        offset: u64,
    ) -> (io::Result<()>, Vec<u8>) {
        if !self.ways.is_uncached {
            return file.write_all_at(bytes, offset).await;
        }
        let (result, bytes) = file.write_all_uncached_at(bytes, offset).await;
        if !result.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EOPNOTSUPP)) {
            return (result, bytes);
        }
        self.ways.is_uncached = false;
        self.notes
            .push(format!("store.page_cache: {}: this kernel or file system does not support it", path.display()));
        file.write_all_at(bytes, offset).await
    }

    /// Reserves space for a segment in advance, which only reduces its fragments. It does without where the file
    /// system does not support that, and where little would be left: the crawl must not wait for space that it holds
    /// itself.
    async fn reserve(&mut self, path: &Path, file: &File) {
        let free = path.parent().and_then(ring::free_bytes).unwrap_or(u64::MAX);
        let wanted = self.ways.reserve_bytes;
        if wanted == 0 || !self.ways.may_reserve(free) {
            return;
        }
        if let Err(error) = file.reserve(wanted).await {
            self.ways.reserve_bytes = 0;
            self.notes.push(format!("store.preallocate: {}: {error}; the run continues without it", path.display()));
            return;
        }
        // Other shards may have reserved at the same time, each for itself with enough left.
        if path.parent().and_then(ring::free_bytes).is_some_and(|free| free < self.ways.leave_bytes) {
            // If that fails, closing the segment releases it.
            let _ = file.truncate(0);
        }
    }

    /// What to sync; a segment that was closed since is synced by its closing.
    fn take_unsynced(&mut self) -> Unsynced {
        let mut unsynced = std::mem::take(&mut self.unsynced);
        let open = self.segment.as_ref().map(|(name, _)| self.segment_path(name));
        let segments = self.dir.join("segments");
        unsynced.files.retain(|path, _| !path.starts_with(&segments) || Some(path) == open.as_ref());
        unsynced
    }

    /// A log, which is created if it does not exist.
    async fn log(&mut self, file: LogFile) -> io::Result<File> {
        if let Some(log) = self.logs.get(&file) {
            return Ok(log.clone());
        }
        let path = self.log_path(file);
        let log = ring::File::open_or_create(&path).await?;
        self.unsynced.folders.extend(path.parent().map(Path::to_owned));
        self.logs.insert(file, log.clone());
        Ok(log)
    }

    fn log_path(&self, file: LogFile) -> PathBuf {
        self.dir.join(file.to_string())
    }

    fn segment_path(&self, name: &str) -> PathBuf {
        self.dir.join("segments").join(format!("{name}{OPEN}"))
    }

    fn spool_path(&self, number: u32) -> PathBuf {
        self.dir.join("spool").join(number.to_string())
    }
}

/// Data first, then the index under its own name, then the segment's name: a closed segment has its index. This runs
/// alongside the queue, because a sync takes seconds and the next segment's writes need not wait for it.
async fn close_segment(folder: &Path, name: &str, file: File, index: Vec<u8>) -> Result<(), PathError> {
    let path = |name: &str| folder.join(name);
    let open = path(&format!("{name}{OPEN}"));
    file.sync().await.map_err(at(&open))?;
    file.close();
    let index_name = format!("{}{INDEX_SUFFIX}", segment_stem(name).unwrap_or(name));
    let index_open = path(&format!("{index_name}{OPEN}"));
    let index_file = ring::File::create_new(&index_open).await.map_err(at(&index_open))?;
    let (result, _) = index_file.write_all_at(index, 0).await;
    result.map_err(at(&index_open))?;
    index_file.sync().await.map_err(at(&index_open))?;
    index_file.close();
    ring::rename(&index_open, &path(&index_name)).await.map_err(at(&index_open))?;
    ring::rename(&open, &path(name)).await.map_err(at(&open))?;
    ring::sync_dir(folder).await.map_err(at(folder))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> PathError {
    move |error| (path.to_owned(), error)
}

/// A log is read in pieces of this size.
const LOG_PIECE_BYTES: usize = 1 << 20;
/// A segment reserves at most one part in this many of the free space.
const RESERVE_PART: u64 = 8;

#[cfg(test)]
mod tests;
