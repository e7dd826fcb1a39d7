//! The files of one simulated shard: what was written, what of it is safe, and what a crash leaves.
//!
//! Decides: operations are done in order, each after a while; a crash of the process loses those that were not done and
//! tears the one that was being done; a power cut loses, besides, what was written and not synced, down to any byte. A
//! disk may be full for a while, and bits may flip.
//! Invariants: what is read is what was written, unless a fault was asked for.

use std::collections::{BTreeMap, VecDeque};
use std::io::Cursor;

use super::Rng;
use crate::shard::{DiskEnd, DiskOp};
use crate::spool::SpoolOp;
use crate::store::SegmentOp;
use crate::store::recover::recover;
use crate::store::segments::segment_number;

/// One shard's files.
#[derive(Debug, Default)]
pub struct FakeDisk {
    queue: VecDeque<DiskOp>,
    journal: FakeFile,
    open: Option<(String, FakeFile)>,
    /// Segments that are being closed, beside the queue, with the bytes of their indexes.
    closing: Vec<(String, FakeFile, u64)>,
    /// Segments that a run left open.
    left_open: Vec<(String, FakeFile)>,
    closed: BTreeMap<String, Vec<u8>>,
    spool: BTreeMap<(u32, u32), Vec<u8>>,
    /// Whether writes fail for want of space.
    pub is_full: bool,
    /// Blocks that went to the spool.
    pub spilled: u64,
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

    /// What was not synced may be gone from any byte on.
    fn lose_unsynced(&mut self, rng: &mut Rng) {
        let unsynced = (self.bytes.len() - self.synced) as u64;
        self.bytes.truncate(self.synced + rng.below(unsynced + 1) as usize);
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

    /// Does the next operation; a segment that is to be closed has not ended by that.
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
            DiskOp::Append { position, bytes } => self.journal.write(position, &bytes),
            DiskOp::ReadLog { position } => {
                let from = self.journal.bytes.len().min(position as usize);
                let until = self.journal.bytes.len().min(from + LOG_PIECE_BYTES);
                return Some(DiskEnd::LogRead { bytes: self.journal.bytes[from..until].to_vec() });
            }
            DiskOp::CutLog { bytes } => self.journal.bytes.truncate(bytes as usize),
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
        match self.queue.pop_front() {
            Some(DiskOp::Append { bytes, .. }) => {
                let torn = rng.below(bytes.len() as u64) as usize;
                self.journal.bytes.extend_from_slice(&bytes[..torn]);
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
        self.journal.lose_unsynced(rng);
        for (_, file) in self.open.iter_mut().chain(&mut self.left_open) {
            file.lose_unsynced(rng);
        }
    }

    /// One bit of the journal, the open segment or the spool is another than it was written.
    pub fn flip_bit(&mut self, rng: &mut Rng) {
        let files = [&mut self.journal.bytes].into_iter();
        let files = files.chain(self.open.as_mut().map(|(_, file)| &mut file.bytes)).chain(self.spool.values_mut());
        let mut files: Vec<&mut Vec<u8>> = files.filter(|bytes| !bytes.is_empty()).collect();
        if files.is_empty() {
            return;
        }
        let file = rng.below(files.len() as u64) as usize;
        let byte = rng.below(files[file].len() as u64) as usize;
        files[file][byte] ^= 1 << rng.below(8);
    }

    /// A new run begins: the spool is emptied, and a segment that was left open is closed, as `disk` does it. A number
    /// that no segment has.
    pub fn begin_run(&mut self) -> u32 {
        // What a run does not wait for that ends while it reads an earlier one.
        self.queue.clear();
        self.spool.clear();
        let closing = self.closing.drain(..).map(|(name, file, _)| (name, file));
        self.left_open.extend(closing.chain(self.open.take()));
        for (name, mut file) in std::mem::take(&mut self.left_open) {
            let recovered = recover(Cursor::new(&file.bytes), &name).expect("memory is readable");
            file.bytes.truncate(recovered.valid_bytes as usize);
            if recovered.records > 0 {
                self.closed.insert(name, file.bytes);
            }
        }
        self.closed.keys().filter_map(|name| segment_number(name)).max().map_or(0, |number| number + 1)
    }

    /// All shards ended well, which is noted as `boot` does it.
    pub fn append_log(&mut self, bytes: &[u8]) {
        self.journal.bytes.extend_from_slice(bytes);
    }

    /// The journal as it lies there.
    pub fn journal(&self) -> &[u8] {
        &self.journal.bytes
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

/// Small, so that blocks of a journal come in pieces.
const LOG_PIECE_BYTES: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::Block;

    fn append(disk: &mut FakeDisk, bytes: &[u8]) {
        let position = disk.journal().len() as u64;
        disk.push(DiskOp::Append { position, bytes: bytes.to_vec() });
    }

    #[test]
    fn a_kill_tears_what_is_being_done_and_loses_what_waits() {
        let mut lengths = std::collections::BTreeSet::new();
        for seed in 0..100 {
            let (mut rng, mut disk) = (Rng::new(seed), FakeDisk::default());
            append(&mut disk, b"written");
            assert!(matches!(disk.work(), Some(DiskEnd::Done { bytes: 7, .. })));
            append(&mut disk, b"torn");
            disk.push(DiskOp::Append { position: 11, bytes: b"never".to_vec() });
            disk.kill(&mut rng);
            assert!(b"writtentor".starts_with(disk.journal()) && disk.work().is_none());
            lengths.insert(disk.journal().len());
        }
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [7, 8, 9, 10]);
    }

    #[test]
    fn a_power_cut_loses_what_was_not_synced() {
        let mut lengths = std::collections::BTreeSet::new();
        for seed in 0..100 {
            let (mut rng, mut disk) = (Rng::new(seed), FakeDisk::default());
            append(&mut disk, b"safe");
            disk.work();
            disk.journal.synced = 4;
            append(&mut disk, b"not");
            disk.work();
            disk.cut_power(&mut rng);
            assert!(disk.journal().starts_with(b"safe"));
            lengths.insert(disk.journal().len());
        }
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [4, 5, 6, 7]);
    }

    #[test]
    fn a_full_disk_fails_once_and_comes_back() {
        let mut disk = FakeDisk { is_full: true, ..FakeDisk::default() };
        append(&mut disk, b"bytes");
        assert!(matches!(disk.work(), Some(DiskEnd::Failed(_))));
        assert!(disk.work().is_none() && disk.journal().is_empty());
        disk.is_full = false;
        append(&mut disk, b"bytes");
        assert!(matches!(disk.work(), Some(DiskEnd::Done { .. })));
    }

    #[test]
    fn a_bit_flips() {
        let mut disk = FakeDisk::default();
        let block = Block { file: 0, offset: 0, bytes: 3, urls: 1, sum: 0 };
        disk.push(DiskOp::Spool(SpoolOp::Write { block, bytes: vec![0; 3] }));
        disk.work();
        disk.flip_bit(&mut Rng::new(1));
        disk.push(DiskOp::Spool(SpoolOp::Read { block }));
        let Some(DiskEnd::BlockRead { bytes, .. }) = disk.work() else { panic!("no block") };
        assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
    }
}
