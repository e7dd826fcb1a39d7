//! The shard's waiting room on disk, as the brain sees it: blocks go out, blocks come back.
//!
//! Decides: where each block lies. Blocks are appended to files of a fixed size, and a file is deleted when its last
//! block has come back, so space is freed without a compaction. The brain only names the operations, in order; the
//! hands execute them, one after the other.
//! Invariants: a block is read at most once; operations are executed in the order given, so a block is never read
//! before it was written.
//! Limits: a file is closed when it passes `file_bytes_max`; a block is at most 4 GiB − 1. A [`Block`] is 24 bytes of
//! memory of its owner.
//! Leaves to others: files (`ring`). A spool is discarded at start: only the logs persist.

use std::collections::{BTreeMap, HashMap, VecDeque};

use xxhash_rust::xxh3::xxh3_64;

/// Where a block lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Block {
    /// Number of the spool file.
    pub file: u32,
    /// First byte in the file.
    pub offset: u32,
    /// Length in bytes.
    pub bytes: u32,
    /// URLs in it.
    pub urls: u32,
    /// xxh3-64 of its bytes.
    pub sum: u64,
}

impl Block {
    /// Whether `bytes` are what was written.
    pub fn is_whole(&self, bytes: &[u8]) -> bool {
        bytes.len() == self.bytes as usize && xxh3_64(bytes) == self.sum
    }
}

/// Why a block is read back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadFor {
    /// The queue of a host.
    Host(u32),
    /// The batches for a shard.
    Lane(u16),
    /// A lane of those whose host is not in memory.
    Outside(u16),
    /// URLs that an earlier run had no room for.
    SetAside,
}

/// Operations for the hands, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpoolOp {
    /// Write `bytes` at `block`.
    Write {
        /// Where.
        block: Block,
        /// What.
        bytes: Vec<u8>,
    },
    /// Read `block` and bring it back.
    Read {
        /// Where.
        block: Block,
    },
    /// Delete a file without any blocks left.
    Delete {
        /// Number of the file.
        file: u32,
    },
}

/// The waiting room of one shard.
#[derive(Debug)]
pub struct Spool {
    ops: VecDeque<SpoolOp>,
    file: u32,
    offset: u64,
    /// Blocks not read back yet, by file.
    live: BTreeMap<u32, u32>,
    file_bytes_max: u64,
    /// Blocks in flight back.
    reads: HashMap<Block, ReadFor>,
    /// Blocks of waiting URLs.
    waiting: u64,
    bytes: u64,
}

impl Spool {
    /// An empty spool of files of `file_bytes_max` bytes and one block more.
    pub fn new(file_bytes_max: u64) -> Spool {
        Spool {
            ops: VecDeque::new(),
            file: 0,
            offset: 0,
            live: BTreeMap::new(),
            file_bytes_max,
            reads: HashMap::new(),
            waiting: 0,
            bytes: 0,
        }
    }

    /// Sends `bytes`, which hold `urls` URLs, to disk.
    pub fn write(&mut self, bytes: &[u8], urls: u32) -> Block {
        if self.offset >= self.file_bytes_max {
            let closed = self.file;
            self.file += 1;
            self.offset = 0;
            self.delete_if_empty(closed);
        }
        let block =
            Block { file: self.file, offset: self.offset as u32, bytes: bytes.len() as u32, urls, sum: xxh3_64(bytes) };
        self.offset += bytes.len() as u64;
        self.bytes += bytes.len() as u64;
        *self.live.entry(self.file).or_default() += 1;
        self.ops.push_back(SpoolOp::Write { block, bytes: bytes.to_vec() });
        block
    }

    /// Sends waiting URLs of a host, or of hosts without room.
    pub fn write_waiting(&mut self, bytes: &[u8], urls: u32) -> Block {
        self.waiting += 1;
        self.write(bytes, urls)
    }

    /// Requests `block` back.
    pub fn read(&mut self, block: Block, purpose: ReadFor) {
        self.reads.insert(block, purpose);
        self.ops.push_back(SpoolOp::Read { block });
    }

    /// `block` came back, or could not be read: its space is free. Returns for whom it was read; `None` if there was
    /// no request.
    #[must_use]
    pub fn finished_read(&mut self, block: Block) -> Option<ReadFor> {
        let purpose = self.reads.remove(&block)?;
        self.bytes = self.bytes.saturating_sub(u64::from(block.bytes));
        if matches!(purpose, ReadFor::Host(_) | ReadFor::Outside(_)) {
            self.waiting = self.waiting.saturating_sub(1);
        }
        if let Some(live) = self.live.get_mut(&block.file) {
            *live -= 1;
        }
        self.delete_if_empty(block.file);
        Some(purpose)
    }

    /// The next operation for the hands.
    pub fn next_op(&mut self) -> Option<SpoolOp> {
        self.ops.pop_front()
    }

    /// Whether no block is in flight back.
    pub fn is_quiet(&self) -> bool {
        self.reads.is_empty()
    }

    /// Bytes of memory of the references of waiting URLs' blocks.
    #[inline]
    pub fn reference_bytes(&self) -> u64 {
        self.waiting * size_of::<Block>() as u64
    }

    /// Bytes that are on disk or in flight to it.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn delete_if_empty(&mut self, file: u32) {
        if file != self.file && self.live.get(&file) == Some(&0) {
            self.live.remove(&file);
            self.ops.push_back(SpoolOp::Delete { file });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_deleted_when_their_last_block_came_back() {
        let mut spool = Spool::new(10);
        let blocks: Vec<Block> = (0..4).map(|_| spool.write(b"sixsix", 1)).collect();
        assert_eq!(
            blocks.iter().map(|block| (block.file, block.offset)).collect::<Vec<_>>(),
            [(0, 0), (0, 6), (1, 0), (1, 6)]
        );
        for block in &blocks {
            spool.read(*block, ReadFor::Host(1));
        }
        while spool.next_op().is_some() {}
        assert_eq!(spool.finished_read(blocks[0]), Some(ReadFor::Host(1)));
        assert_eq!(spool.next_op(), None);
        assert_eq!(spool.finished_read(blocks[1]), Some(ReadFor::Host(1)));
        assert_eq!(spool.next_op(), Some(SpoolOp::Delete { file: 0 }));
        assert_eq!(spool.finished_read(blocks[2]), Some(ReadFor::Host(1)));
        assert_eq!(spool.finished_read(blocks[3]), Some(ReadFor::Host(1)));
        assert_eq!(spool.next_op(), None, "the open file stays");
        assert!(spool.is_quiet() && spool.bytes() == 0);
        assert_eq!(spool.finished_read(blocks[3]), None, "it came back already");
    }

    #[test]
    fn a_block_is_whole_when_it_is_what_was_written() {
        let block = Spool::new(10).write(b"http://a.test/", 1);
        assert!(block.is_whole(b"http://a.test/"));
        for damaged in [&b"http://b.test/"[..], b"http://a.test", b"http://a.test//", b""] {
            assert!(!block.is_whole(damaged), "{damaged:?}");
        }
    }
}
