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

    fn truncate(&mut self, bytes: usize) {
        self.bytes.truncate(bytes);
        self.synced = self.synced.min(bytes);
    }

    fn sync(&mut self) {
        self.synced = self.bytes.len();
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
            DiskOp::CutLog { bytes } => self.journal.truncate(bytes as usize),
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

    /// All shards ended well, which is noted as `boot` does it: written and synced, with all before it.
    pub fn append_log(&mut self, bytes: &[u8]) {
        self.journal.bytes.extend_from_slice(bytes);
        self.journal.sync();
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
    use std::collections::BTreeSet;

    use super::*;
    use crate::log::block::blocks;
    use crate::log::{Entries, Packer, handed_over_block};
    use crate::spool::Block;
    use crate::store::frame::FrameWriter;

    fn append(disk: &mut FakeDisk, bytes: &[u8]) {
        let position = disk.journal().len() as u64;
        disk.push(DiskOp::Append { position, bytes: bytes.to_vec() });
    }

    #[test]
    fn a_kill_tears_what_is_being_done_and_loses_what_waits() {
        let mut lengths = BTreeSet::new();
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

    fn block(number: u64) -> Vec<u8> {
        Packer::default().block(&Entries { over: vec![number], ..Entries::default() })
    }

    /// What the blocks of the journal say, up to the first that is not whole.
    fn over(disk: &FakeDisk) -> Vec<u64> {
        blocks(disk.journal()).flat_map(|(entries, _)| entries.over).collect()
    }

    /// A journal of a run that ended well and of one that did not: two blocks written and one being written.
    fn journal() -> FakeDisk {
        let mut disk = FakeDisk::default();
        append(&mut disk, &block(1));
        disk.work();
        disk.append_log(&handed_over_block());
        for number in [2, 3] {
            append(&mut disk, &block(number));
            disk.work();
        }
        append(&mut disk, &block(4));
        disk
    }

    #[test]
    fn a_power_cut_loses_what_was_not_synced() {
        let written = [block(1), handed_over_block(), block(2), block(3), block(4)].concat();
        let (mut left, mut torn) = (BTreeSet::new(), 0);
        for seed in 0..500 {
            let (mut rng, mut disk) = (Rng::new(seed), journal());
            disk.cut_power(&mut rng);
            assert!(written.starts_with(disk.journal()) && disk.work().is_none());
            assert!(blocks(disk.journal()).nth(1).is_some_and(|(entries, _)| entries.handed_over), "it was synced");
            let whole_bytes = blocks(disk.journal()).last().map_or(0, |(_, end)| end);
            torn += u64::from(disk.journal().len() > whole_bytes);
            left.insert(over(&disk));
            // What one power cut has left is on the disk, and no other takes it.
            let length = disk.journal().len();
            disk.cut_power(&mut rng);
            assert_eq!(disk.journal().len(), length);
        }
        assert_eq!(
            left.into_iter().collect::<Vec<_>>(),
            [vec![1], vec![1, 2], vec![1, 2, 3]],
            "never the one in flight"
        );
        assert!(torn > 300, "{torn} of 500 end within a block");
    }

    #[test]
    fn a_torn_journal_is_cut_and_written_on() {
        for seed in 0..100 {
            let (mut rng, mut disk) = (Rng::new(seed), journal());
            disk.cut_power(&mut rng);
            let (kept, whole) = (over(&disk), blocks(disk.journal()).last().map_or(0, |(_, end)| end));
            disk.push(DiskOp::CutLog { bytes: whole as u64 });
            disk.work();
            disk.cut_power(&mut rng);
            assert_eq!(disk.journal().len(), whole);
            append(&mut disk, &block(5));
            disk.work();
            disk.append_log(&handed_over_block());
            disk.cut_power(&mut rng);
            assert_eq!(over(&disk), [&kept[..], &[5]].concat());
        }
    }

    /// A block with another bit, and what is behind it, is not taken for what was written, synced or not.
    #[test]
    fn a_flipped_bit_ends_the_journal_before_its_block() {
        let mut left = BTreeSet::new();
        for seed in 0..500 {
            let (mut rng, mut disk) = (Rng::new(seed), journal());
            disk.cut_power(&mut rng);
            let (before, kept) = (disk.journal().to_vec(), over(&disk));
            disk.flip_bit(&mut rng);
            let differs = before.iter().zip(disk.journal()).map(|(one, other)| (one ^ other).count_ones()).sum::<u32>();
            assert_eq!((differs, disk.journal().len()), (1, before.len()));
            let at = before.iter().zip(disk.journal()).position(|(one, other)| one != other).expect("a flipped bit");
            let sound = blocks(&before).take_while(|(_, end)| *end <= at).flat_map(|(entries, _)| entries.over);
            assert_eq!(over(&disk), sound.collect::<Vec<_>>(), "flipped at {at}");
            left.insert(kept.len() - over(&disk).len());
        }
        assert_eq!(left.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    fn record(number: u64) -> Vec<u8> {
        let head = format!(
            "WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <urn:uuid:{number}>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n\
            WARC-Target-URI: http://a.test/{number}\r\nContent-Length: 4\r\n\r\nbody\r\n\r\n"
        );
        let mut frame = Vec::new();
        FrameWriter::new(1).expect("a context").compress(&[head.as_bytes()], &mut frame).expect("a frame");
        frame
    }

    /// A segment is synced when it is closed; one that is open keeps whole records from its beginning.
    #[test]
    fn a_power_cut_leaves_closed_segments_and_the_beginning_of_the_open_one() {
        let (closed, open) = ([record(1), record(2)].concat(), [record(3), record(4)]);
        let mut left = BTreeSet::new();
        for seed in 0..300 {
            let (mut rng, mut disk) = (Rng::new(seed), FakeDisk::default());
            let begin = |number: u64| SegmentOp::Begin(format!("rc-20260101000000-00-{number:05}.warc.zst"));
            let write = |bytes: &[u8], offset: usize| SegmentOp::Write { bytes: bytes.to_vec(), offset: offset as u64 };
            let ops =
                [begin(0), write(&closed, 0), SegmentOp::Close { index: Vec::new() }, begin(1), write(&open[0], 0)];
            for op in ops {
                disk.push(DiskOp::Segment(op));
                let end = disk.work().or_else(|| disk.finish_closing(&mut rng));
                assert!(matches!(end, Some(DiskEnd::Done { .. })));
            }
            disk.push(DiskOp::Segment(write(&open[1], open[0].len())));
            disk.cut_power(&mut rng);
            assert!(disk.has_open_segment());
            let next = disk.begin_run();
            let segments: Vec<&[u8]> = disk.segments().collect();
            assert_eq!(segments[0], closed);
            assert_eq!(next as usize, segments.len(), "no number is given out twice");
            left.insert(segments.get(1).map(|bytes| bytes.to_vec()));
        }
        let [whole, _] = open;
        assert_eq!(left.into_iter().collect::<Vec<_>>(), [None, Some(whole)], "never the record in flight");
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
