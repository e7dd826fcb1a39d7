//! A shard's files: one queue of operations, carried out in order by one task.
//!
//! Decides: segments, journal and spool go through the same queue, so that what is queued first is on its way
//! to the disk first: a page's record before the journal's word that the page is over, a spool block before its
//! reading. Closing a segment (syncing it) goes on beside the queue. The shard's loop only queues; it looks at [`Disk::backlog_bytes`] before it takes on more.
//! Invariants: after the first error nothing more is written; the error is kept and the loop is told.
//! Limits: the backlog is bounded by the loop, which starts no fetches above its limit.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::signal::Signal;
use crate::ring::{self, File};
use crate::spool::{Block, ReadFor, SpoolOp};

/// One thing to do.
#[derive(Debug)]
pub enum DiskOp {
    /// Begin a segment; its name without `.open`.
    SegmentBegin(String),
    /// Write at an offset of the open segment.
    SegmentWrite(Vec<u8>, u64),
    /// The open segment is complete: sync, index, rename.
    SegmentClose(Vec<u8>),
    /// Append to the journal.
    Journal(Vec<u8>),
    /// The spool.
    Spool(SpoolOp),
}

/// A block that came back.
pub type Returned = (Block, ReadFor, Vec<u8>);

/// The queue and what came of it.
#[derive(Debug, Default)]
pub struct Disk {
    ops: RefCell<VecDeque<DiskOp>>,
    backlog_bytes: Cell<u64>,
    /// An operation is being carried out.
    busy: Cell<bool>,
    /// Segments being closed.
    closing: Cell<u32>,
    work: Signal,
    returned: RefCell<Vec<Returned>>,
    /// What the last write of a segment lay in.
    spare: RefCell<Option<Vec<u8>>>,
    failure: RefCell<Option<String>>,
}

impl Disk {
    /// Queues an operation.
    pub fn push(&self, op: DiskOp) {
        self.backlog_bytes.set(self.backlog_bytes.get() + op.bytes());
        self.ops.borrow_mut().push_back(op);
        self.work.notify();
    }

    /// Bytes queued and not yet written.
    pub fn backlog_bytes(&self) -> u64 {
        self.backlog_bytes.get()
    }

    /// Whether everything queued was done.
    pub fn is_done(&self) -> bool {
        !self.busy.get() && self.closing.get() == 0 && self.ops.borrow().is_empty()
    }

    /// Blocks of the spool that came back since the last call.
    pub fn take_returned(&self) -> Vec<Returned> {
        self.returned.take()
    }

    /// A buffer for a segment's bytes, with what was written from it: memory that was touched costs less than fresh one.
    pub fn take_spare(&self) -> Option<Vec<u8>> {
        self.spare.take()
    }

    /// What broke, with the file's name.
    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    fn keep(&self, result: Result<Option<Returned>, Failed>) {
        match result {
            Ok(Some(returned)) => self.returned.borrow_mut().push(returned),
            Ok(None) => {}
            Err((path, error)) => {
                self.failure.borrow_mut().get_or_insert_with(|| format!("{}: {error}", path.display()));
            }
        }
    }

    /// Carries out what is queued, for ever; tells `done` after each operation.
    pub async fn work(self: Rc<Self>, dir: PathBuf, journal_bytes: u64, done: Rc<Signal>) {
        let mut files = Files { dir, journal: None, journal_bytes, segment: None, spool: HashMap::new() };
        loop {
            let op = self.ops.borrow_mut().pop_front();
            let Some(op) = op else {
                self.work.wait().await;
                continue;
            };
            self.busy.set(true);
            let bytes = op.bytes();
            if self.failure.borrow().is_some() {
                // Nothing after the first error: a later write could stand where an earlier one is missing.
            } else if let DiskOp::SegmentClose(index) = op {
                if let Some((name, file)) = files.segment.take() {
                    let (disk, done, folder) = (Rc::clone(&self), Rc::clone(&done), files.dir.join("segments"));
                    self.closing.set(self.closing.get() + 1);
                    ring::spawn(async move {
                        disk.keep(close_segment(&folder, &name, file, index).await.map(|()| None));
                        disk.closing.set(disk.closing.get() - 1);
                        done.notify();
                    });
                }
            } else {
                let result = files.carry_out(op, &self.spare).await;
                self.keep(result);
            }
            self.backlog_bytes.set(self.backlog_bytes.get() - bytes);
            self.busy.set(false);
            done.notify();
        }
    }
}

impl DiskOp {
    fn bytes(&self) -> u64 {
        match self {
            DiskOp::SegmentWrite(bytes, _) | DiskOp::SegmentClose(bytes) | DiskOp::Journal(bytes) => bytes.len() as u64,
            DiskOp::Spool(SpoolOp::Write { bytes, .. }) => bytes.len() as u64,
            DiskOp::SegmentBegin(_) | DiskOp::Spool(_) => 0,
        }
    }
}

struct Files {
    dir: PathBuf,
    journal: Option<File>,
    journal_bytes: u64,
    segment: Option<(String, File)>,
    spool: HashMap<u32, File>,
}

type Failed = (PathBuf, io::Error);

impl Files {
    async fn carry_out(&mut self, op: DiskOp, spare: &RefCell<Option<Vec<u8>>>) -> Result<Option<Returned>, Failed> {
        match op {
            DiskOp::SegmentBegin(name) => {
                let path = self.segment_path(&name);
                let file = ring::File::create_new(&path).await.map_err(at(&path))?;
                self.segment = Some((name, file));
            }
            DiskOp::SegmentWrite(bytes, offset) => {
                let Some((name, file)) = &self.segment else { return Ok(None) };
                let (result, bytes) = file.write_all_at(bytes, offset).await;
                *spare.borrow_mut() = (bytes.capacity() <= SPARE_BYTES_MAX).then_some(bytes);
                if result.is_err() {
                    // Whole records alone stay, so that what was stored verifies as it lies there.
                    let _ = file.truncate(offset);
                }
                result.map_err(at(&self.segment_path(name)))?;
            }
            DiskOp::SegmentClose(_) => {}
            DiskOp::Journal(bytes) => {
                let path = self.dir.join(JOURNAL);
                if self.journal.is_none() {
                    self.journal = Some(ring::File::open_or_create(&path).await.map_err(at(&path))?);
                }
                if let Some(file) = &self.journal {
                    let length = bytes.len() as u64;
                    let (result, _) = file.write_all_at(bytes, self.journal_bytes).await;
                    result.map_err(at(&path))?;
                    self.journal_bytes += length;
                }
            }
            DiskOp::Spool(SpoolOp::Write { block, bytes }) => {
                let path = self.spool_path(block.file);
                let file = match self.spool.entry(block.file) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => entry.insert(ring::File::create_new(&path).await.map_err(at(&path))?),
                };
                let (result, _) = file.write_all_at(bytes, u64::from(block.offset)).await;
                result.map_err(at(&path))?;
            }
            DiskOp::Spool(SpoolOp::Read { block, purpose }) => {
                let path = self.spool_path(block.file);
                let Some(file) = self.spool.get(&block.file) else {
                    return Err((path, io::Error::other("a spool file is not there")));
                };
                let bytes = file.read_at(block.bytes as usize, u64::from(block.offset)).await.map_err(at(&path))?;
                if bytes.len() != block.bytes as usize {
                    return Err((path, io::Error::other("a spool file is shorter than it was written")));
                }
                return Ok(Some((block, purpose, bytes)));
            }
            DiskOp::Spool(SpoolOp::Delete { file }) => {
                let path = self.spool_path(file);
                if let Some(file) = self.spool.remove(&file) {
                    file.close();
                    ring::remove(&path).await.map_err(at(&path))?;
                }
            }
        }
        Ok(None)
    }

    fn segment_path(&self, name: &str) -> PathBuf {
        self.dir.join("segments").join(format!("{name}{OPEN}"))
    }

    fn spool_path(&self, number: u32) -> PathBuf {
        self.dir.join("spool").join(number.to_string())
    }
}

/// Data first, then the index under its own name, then the segment's: a closed segment has its index. Beside the
/// queue, because a sync takes seconds and the next segment's writes need not wait for it.
async fn close_segment(folder: &Path, name: &str, file: File, index: Vec<u8>) -> Result<(), Failed> {
    let path = |name: &str| folder.join(name);
    let open = path(&format!("{name}{OPEN}"));
    file.sync().await.map_err(at(&open))?;
    file.close();
    let index_name = name.replace(SEGMENT_SUFFIX, INDEX_SUFFIX);
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

fn at(path: &Path) -> impl FnOnce(io::Error) -> Failed {
    move |error| (path.to_owned(), error)
}

/// A larger buffer held one huge page; it is let go.
const SPARE_BYTES_MAX: usize = 1 << 20;
/// The journal's name in the shard's directory.
pub const JOURNAL: &str = "journal";
/// What the name of a segment ends in.
pub const SEGMENT_SUFFIX: &str = ".warc.zst";
/// What the name of its index ends in.
pub const INDEX_SUFFIX: &str = ".cdxj";
/// What is added to a name while the file is written.
pub const OPEN: &str = ".open";
