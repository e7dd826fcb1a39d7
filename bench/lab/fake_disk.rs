//! The files of one simulated shard: what was written, how much of it is durable, and what a crash leaves.
//!
//! Decides: operations are done in order, each after some time. A crash of the process loses the operations that were
//! not done and tears the one in progress. A power cut also loses written data that was not synced, down to any byte.
//! A disk may be full for a while, and bits may flip.
//! Invariants: a read returns what was written, unless a fault was requested.
//! Leaves to others: how segments are closed, and recovered (`segments`).

mod segments;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use segments::FakeSegments;

use ringcrawl_base::Rng;
use ringcrawl_brain::log::{Append, LogFile};
use ringcrawl_brain::shard::{DiskEnd, DiskOp, FilesFound};
use ringcrawl_brain::spool::SpoolOp;
use ringcrawl_warc::SegmentOp;

/// One shard's files.
#[derive(Debug, Default)]
pub struct FakeDisk {
    queue: VecDeque<DiskOp>,
    logs: BTreeMap<LogFile, FakeFile>,
    /// Logs that this run has read or written since the last sync: a sync covers only these.
    unsynced: BTreeSet<LogFile>,
    segments: FakeSegments,
    /// A sync that runs while the queue is processed: how much of each log and of the open segment it covers, whether
    /// it waits for the device, and which segments must be closed before it ends.
    syncing: Option<Syncing>,
    spool: BTreeMap<(u32, u32), Vec<u8>>,
    /// Whether writes fail because the disk is full.
    pub is_full: bool,
    /// Blocks that went to the spool.
    pub spilled: u64,
}

#[derive(Debug)]
struct Syncing {
    logs: BTreeMap<LogFile, usize>,
    segment: Option<(String, usize)>,
    to_device: bool,
    closing: BTreeSet<String>,
}

/// A file, and how much of it is certain to survive a power cut.
#[derive(Debug, Default)]
struct FakeFile {
    bytes: Vec<u8>,
    synced: usize,
}

impl FakeFile {
    fn write(&mut self, position: u64, bytes: &[u8]) {
        assert_eq!(position, self.bytes.len() as u64, "a file is written from end to end");
        self.bytes.extend_from_slice(bytes);
    }

    fn truncate(&mut self, bytes: usize) {
        self.bytes.truncate(bytes);
        self.synced = self.synced.min(bytes);
    }

    fn sync(&mut self) {
        self.synced = self.bytes.len();
    }

    /// Marks the first `bytes` bytes as durable.
    fn sync_until(&mut self, bytes: usize) {
        self.synced = self.synced.max(bytes.min(self.bytes.len()));
    }

    /// Truncates the unsynced part at any byte. The rest is durable.
    fn lose_unsynced(&mut self, rng: &mut Rng) {
        let unsynced = (self.bytes.len() - self.synced) as u64;
        self.bytes.truncate(self.synced + rng.below(unsynced + 1) as usize);
        self.sync();
    }
}

impl FakeDisk {
    /// Queues an operation.
    pub fn push(&mut self, op: DiskOp) {
        self.queue.push_back(op);
    }

    /// Whether operations are queued.
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Number of segments being closed.
    pub fn closing(&self) -> usize {
        self.segments.closing().len()
    }

    /// Finishes closing any one of the segments being closed.
    pub fn finish_closing(&mut self, rng: &mut Rng) -> Option<DiskEnd> {
        if self.is_full && self.closing() > 0 {
            self.queue.clear();
            self.segments.fail_closing(rng);
            return Some(DiskEnd::Failed("No space left on device".to_owned()));
        }
        let bytes = self.segments.finish_closing(rng)?;
        Some(DiskEnd::Done { spare: None, bytes })
    }

    /// Whether a sync is in flight that nothing holds up.
    pub fn can_finish_sync(&self) -> bool {
        let mut closing = self.segments.closing();
        self.syncing.as_ref().is_some_and(|syncing| !closing.any(|name| syncing.closing.contains(name)))
    }

    /// Whether a sync is in flight.
    pub fn is_syncing(&self) -> bool {
        self.syncing.is_some()
    }

    /// Finishes a sync in flight, if nothing holds it up.
    pub fn finish_sync(&mut self) -> Option<DiskEnd> {
        if !self.can_finish_sync() {
            return None;
        }
        let syncing = self.syncing.take()?;
        if syncing.to_device {
            for (file, bytes) in syncing.logs {
                if let Some(log) = self.logs.get_mut(&file) {
                    log.sync_until(bytes);
                }
            }
            if let Some((name, bytes)) = syncing.segment {
                self.segments.sync_until(&name, bytes);
            }
        }
        Some(DiskEnd::Synced)
    }

    /// Does the next operation; this neither finishes the closing of a segment nor a sync.
    pub fn work(&mut self) -> Option<DiskEnd> {
        let op = self.queue.pop_front()?;
        let bytes = op.bytes();
        if self.is_full && bytes > 0 {
            self.queue.clear();
            return Some(DiskEnd::Failed("No space left on device".to_owned()));
        }
        let mut spare = None;
        match op {
            DiskOp::Segment(SegmentOp::Begin(name)) => self.segments.begin(name),
            DiskOp::Segment(SegmentOp::Write { bytes, offset }) => {
                self.segments.open_file().expect("a segment is open").write(offset, &bytes);
                spare = Some(bytes);
            }
            DiskOp::Segment(SegmentOp::Close { index }) => {
                self.segments.close(index);
                return None;
            }
            DiskOp::Append(Append { file, position, bytes }) => {
                self.logs.entry(file).or_default().write(position, &bytes);
                self.unsynced.insert(file);
            }
            DiskOp::ReadLog { file, position } => {
                self.unsynced.insert(file);
                return Some(DiskEnd::LogRead { bytes: self.log_piece(file, position) });
            }
            DiskOp::CutLog { file, bytes } => {
                self.logs.entry(file).or_default().truncate(bytes as usize);
                self.unsynced.insert(file);
            }
            DiskOp::DeleteLog(file) => {
                assert!(self.logs.remove(&file).is_some(), "{file} is deleted and is not there");
            }
            DiskOp::PutLogAside(file) => {
                assert!(self.logs.remove(&file).is_some(), "{file} is put aside and is not there");
            }
            DiskOp::Sync { to_device } => {
                assert!(self.syncing.is_none(), "two syncs at once");
                let unsynced = std::mem::take(&mut self.unsynced).into_iter();
                let unsynced = unsynced.filter_map(|file| Some((file, self.logs.get(&file)?.bytes.len())));
                self.syncing = Some(Syncing {
                    logs: unsynced.collect(),
                    segment: self.segments.open(),
                    to_device,
                    closing: self.segments.closing().cloned().collect(),
                });
                return None;
            }
            DiskOp::Spool(SpoolOp::Write { block, bytes }) => {
                self.spilled += 1;
                self.spool.insert((block.file, block.offset), bytes);
            }
            DiskOp::Spool(SpoolOp::Read { block }) => {
                let bytes = self.spool.remove(&(block.file, block.offset)).expect("a block is read once");
                return Some(DiskEnd::BlockRead { block, bytes });
            }
            DiskOp::Spool(SpoolOp::Delete { file }) => {
                let left = self.spool.keys().filter(|(in_file, _)| *in_file == file).count();
                assert_eq!(left, 0, "a spool file was deleted with blocks in it");
            }
        }
        Some(DiskEnd::Done { spare, bytes })
    }

    /// The process dies: queued operations are never done, and the one in progress is done in part.
    pub fn kill(&mut self, rng: &mut Rng) {
        self.syncing = None;
        match self.queue.pop_front() {
            Some(DiskOp::Append(Append { file, bytes, .. })) => {
                let torn = rng.below(bytes.len() as u64) as usize;
                self.logs.entry(file).or_default().bytes.extend_from_slice(&bytes[..torn]);
            }
            Some(DiskOp::Segment(SegmentOp::Write { bytes, .. })) => {
                let torn = rng.below(bytes.len() as u64) as usize;
                self.segments.open_file().expect("a segment is open").bytes.extend_from_slice(&bytes[..torn]);
            }
            _ => {}
        }
        self.queue.clear();
        self.segments.kill(rng);
    }

    /// The power fails: in addition to the effects of [`FakeDisk::kill`], unsynced data may be lost.
    pub fn cut_power(&mut self, rng: &mut Rng) {
        self.kill(rng);
        self.logs.values_mut().for_each(|file| file.lose_unsynced(rng));
        self.segments.cut_power(rng);
    }

    /// Flips one bit of a log, the open segment or the spool.
    pub fn flip_bit(&mut self, rng: &mut Rng) {
        let files = self.logs.values_mut().map(|log| &mut log.bytes);
        let files = files.chain(self.segments.open_file().map(|file| &mut file.bytes)).chain(self.spool.values_mut());
        let mut files: Vec<&mut Vec<u8>> = files.filter(|bytes| !bytes.is_empty()).collect();
        if files.is_empty() {
            return;
        }
        let file = rng.below(files.len() as u64) as usize;
        let byte = rng.below(files[file].len() as u64) as usize;
        files[file][byte] ^= 1 << rng.below(8);
    }

    /// Starts a new run: empties the spool and closes a segment that was left open, as `disk` does.
    pub fn begin_run(&mut self) -> FilesFound {
        // A run that ends while it reads an earlier run's files does not wait for these operations.
        self.queue.clear();
        self.syncing = None;
        self.unsynced.clear();
        self.spool.clear();
        let journal = self.logs.keys().filter_map(|file| file.journal()).collect();
        FilesFound { journal, ..self.segments.recover() }
    }

    /// Replaces the logs by others, which are durable.
    pub fn replace_logs(&mut self, logs: BTreeMap<LogFile, Vec<u8>>) {
        let file = |bytes: Vec<u8>| FakeFile { synced: bytes.len(), bytes };
        self.logs = logs.into_iter().map(|(log, bytes)| (log, file(bytes))).collect();
    }

    /// The bytes of a log.
    pub fn log(&self, file: LogFile) -> &[u8] {
        self.logs.get(&file).map_or(&[], |log| &log.bytes)
    }

    /// Some bytes of it from `position` on; empty at its end.
    pub fn log_piece(&self, file: LogFile, position: u64) -> Vec<u8> {
        let bytes = self.log(file);
        let from = bytes.len().min(position as usize);
        let until = bytes.len().min(from + LOG_PIECE_BYTES);
        bytes[from..until].to_vec()
    }

    /// Bytes of all logs.
    pub fn log_bytes(&self) -> u64 {
        self.logs.values().map(|log| log.bytes.len() as u64).sum()
    }

    /// Closed segments: name, bytes, index.
    pub fn segments(&self) -> impl Iterator<Item = (&str, &[u8], &[u8])> {
        self.segments.closed()
    }

    /// Whether a segment is open.
    pub fn has_open_segment(&self) -> bool {
        self.segments.open().is_some() || self.closing() > 0
    }
}

/// Small, so that blocks of a log arrive in pieces.
const LOG_PIECE_BYTES: usize = 10_000;
#[cfg(test)]
mod tests;
