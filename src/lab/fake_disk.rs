//! The files of one simulated shard: what was written, what of it is safe, and what a crash leaves.
//!
//! Decides: operations are done in order, each after a while; a crash of the process loses those that were not done and
//! tears the one that was being done; a power cut loses, besides, what was written and not synced, down to any byte. A
//! disk may be full for a while, and bits may flip.
//! Invariants: what is read is what was written, unless a fault was asked for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Cursor;

use super::Rng;
use crate::log::{Append, LogFile};
use crate::shard::{DiskEnd, DiskOp, FilesFound};
use crate::spool::SpoolOp;
use crate::store::SegmentOp;
use crate::store::recover::recover;
use crate::store::segments::segment_number;

/// One shard's files.
#[derive(Debug, Default)]
pub struct FakeDisk {
    queue: VecDeque<DiskOp>,
    logs: BTreeMap<LogFile, FakeFile>,
    /// Logs that this run has read or written since the last sync: a sync is for them alone.
    unsynced: BTreeSet<LogFile>,
    open: Option<(String, FakeFile)>,
    /// Segments that are being closed, beside the queue, with the bytes of their indexes.
    closing: Vec<(String, FakeFile, u64)>,
    /// Segments that a run left open.
    left_open: Vec<(String, FakeFile)>,
    closed: BTreeMap<String, Vec<u8>>,
    /// A sync that goes on beside the queue: how much of which log it is for, of the open segment, whether the device is
    /// waited for, and which segments must be closed before it ends.
    syncing: Option<Syncing>,
    spool: BTreeMap<(u32, u32), Vec<u8>>,
    /// Whether writes fail for want of space.
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

/// A file, and how much of it a power cut leaves for sure.
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

    /// What had been written at some time is on the disk.
    fn sync_until(&mut self, bytes: usize) {
        self.synced = self.synced.max(bytes.min(self.bytes.len()));
    }

    /// What was not synced may be gone from any byte on. What is left is on the disk.
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

    /// Whether there is something to do.
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Segments that are being closed.
    pub fn closing(&self) -> usize {
        self.closing.len()
    }

    /// One of the segments that are being closed is closed, whichever.
    pub fn finish_closing(&mut self, rng: &mut Rng) -> Option<DiskEnd> {
        if self.closing.is_empty() {
            return None;
        }
        let (name, file, bytes) = self.closing.swap_remove(rng.below(self.closing.len() as u64) as usize);
        if self.is_full {
            self.queue.clear();
            self.left_open.push((name, file));
            return Some(DiskEnd::Failed("No space left on device".to_owned()));
        }
        self.closed.insert(name, file.bytes);
        Some(DiskEnd::Done { spare: None, bytes })
    }

    /// Whether a sync is under way that nothing holds up.
    pub fn can_finish_sync(&self) -> bool {
        let is_closing = |name: &String| self.closing.iter().any(|(closing, ..)| closing == name);
        self.syncing.as_ref().is_some_and(|syncing| !syncing.closing.iter().any(is_closing))
    }

    /// Whether a sync is under way.
    pub fn is_syncing(&self) -> bool {
        self.syncing.is_some()
    }

    /// A sync that is under way ends, if nothing holds it up.
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
                // It may be about to be closed by now.
                let open = self.open.iter_mut().map(|(name, file)| (name, file));
                let closing = self.closing.iter_mut().map(|(name, file, _)| (name, file));
                let mut files = open.chain(closing);
                if let Some((_, file)) = files.find(|(known, _)| **known == name) {
                    file.sync_until(bytes);
                }
            }
        }
        Some(DiskEnd::Synced)
    }

    /// Does the next operation; a segment that is to be closed has not ended by that, and neither has a sync.
    pub fn work(&mut self) -> Option<DiskEnd> {
        let op = self.queue.pop_front()?;
        let bytes = op.bytes();
        if self.is_full && bytes > 0 {
            self.queue.clear();
            return Some(DiskEnd::Failed("No space left on device".to_owned()));
        }
        let mut spare = None;
        match op {
            DiskOp::Segment(SegmentOp::Begin(name)) => {
                assert!(self.open.is_none(), "two segments are open");
                assert!(!self.closed.contains_key(&name), "{name} was used before");
                self.open = Some((name, FakeFile::default()));
            }
            DiskOp::Segment(SegmentOp::Write { bytes, offset }) => {
                self.open.as_mut().expect("a segment is open").1.write(offset, &bytes);
                spare = Some(bytes);
            }
            DiskOp::Segment(SegmentOp::Close { .. }) => {
                let (name, file) = self.open.take().expect("a segment is open");
                self.closing.push((name, file, bytes));
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
                    segment: self.open.as_ref().map(|(name, file)| (name.clone(), file.bytes.len())),
                    to_device,
                    closing: self.closing.iter().map(|(name, ..)| name.clone()).collect(),
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

    /// The process dies: what waits is never done, and what is being done is done in part.
    pub fn kill(&mut self, rng: &mut Rng) {
        self.syncing = None;
        match self.queue.pop_front() {
            Some(DiskOp::Append(Append { file, bytes, .. })) => {
                let torn = rng.below(bytes.len() as u64) as usize;
                self.logs.entry(file).or_default().bytes.extend_from_slice(&bytes[..torn]);
            }
            Some(DiskOp::Segment(SegmentOp::Write { bytes, .. })) => {
                let torn = rng.below(bytes.len() as u64) as usize;
                self.open.as_mut().expect("a segment is open").1.bytes.extend_from_slice(&bytes[..torn]);
            }
            _ => {}
        }
        self.queue.clear();
        self.left_open.extend(self.closing.drain(..).map(|(name, file, _)| (name, file)));
    }

    /// The power goes: besides what [`FakeDisk::kill`] does, what was not synced may be lost.
    pub fn cut_power(&mut self, rng: &mut Rng) {
        self.kill(rng);
        let segments = self.open.iter_mut().chain(&mut self.left_open).map(|(_, file)| file);
        for file in self.logs.values_mut().chain(segments) {
            file.lose_unsynced(rng);
        }
    }

    /// One bit of a log, the open segment or the spool is another than it was written.
    pub fn flip_bit(&mut self, rng: &mut Rng) {
        let files = self.logs.values_mut().map(|log| &mut log.bytes);
        let files = files.chain(self.open.as_mut().map(|(_, file)| &mut file.bytes)).chain(self.spool.values_mut());
        let mut files: Vec<&mut Vec<u8>> = files.filter(|bytes| !bytes.is_empty()).collect();
        if files.is_empty() {
            return;
        }
        let file = rng.below(files.len() as u64) as usize;
        let byte = rng.below(files[file].len() as u64) as usize;
        files[file][byte] ^= 1 << rng.below(8);
    }

    /// A new run begins: the spool is emptied, and a segment that was left open is closed, as `disk` does it.
    pub fn begin_run(&mut self) -> FilesFound {
        // What a run does not wait for that ends while it reads an earlier one.
        self.queue.clear();
        self.syncing = None;
        self.unsynced.clear();
        self.spool.clear();
        let closing = self.closing.drain(..).map(|(name, file, _)| (name, file));
        self.left_open.extend(closing.chain(self.open.take()));
        let mut found = FilesFound::default();
        for (name, mut file) in std::mem::take(&mut self.left_open) {
            let recovered = recover(Cursor::new(&file.bytes), &name).expect("memory is readable");
            file.bytes.truncate(recovered.valid_bytes as usize);
            if recovered.records > 0 {
                self.closed.insert(name, file.bytes);
            } else {
                found.segments.extend(segment_number(&name).map(|number| (number, 0)));
            }
        }
        for (name, bytes) in &self.closed {
            found.segments.extend(segment_number(name).map(|number| (number, bytes.len() as u64)));
        }
        found.next_segment = found.segments.last_key_value().map_or(0, |(number, _)| number + 1);
        found.journal = self.logs.keys().filter_map(|file| file.journal()).collect();
        found
    }

    /// The logs are replaced by others, which are safe.
    pub fn replace_logs(&mut self, logs: BTreeMap<LogFile, Vec<u8>>) {
        let file = |bytes: Vec<u8>| FakeFile { synced: bytes.len(), bytes };
        self.logs = logs.into_iter().map(|(log, bytes)| (log, file(bytes))).collect();
    }

    /// A log as it lies there.
    pub fn log(&self, file: LogFile) -> &[u8] {
        self.logs.get(&file).map_or(&[], |log| &log.bytes)
    }

    /// Some bytes of it from `position` on; none at its end.
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

    /// Closed segments.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        self.closed.values().map(Vec::as_slice)
    }

    /// Whether a segment is open.
    pub fn has_open_segment(&self) -> bool {
        self.open.is_some() || !self.closing.is_empty()
    }
}

/// Small, so that blocks of a log come in pieces.
const LOG_PIECE_BYTES: usize = 10_000;
#[cfg(test)]
mod tests;
