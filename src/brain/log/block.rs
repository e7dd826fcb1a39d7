//! A block of a log: a head that says whose it is and where it belongs, and a compressed payload.
//!
//! | bytes | meaning |
//! |---|---|
//! | 4 | `RCL1` |
//! | 1 | kind: 1 URLs, 2 ends, 3 journal |
//! | 1 | 0 |
//! | 2 | the shard |
//! | 8 | the crawl |
//! | 8 | number of the first entry; in a journal of the first URL, as sent |
//! | 8 | entries of the other log of URLs when the block was made: ends for a block of URLs, else URLs |
//! | 4 | entries; in a journal URLs |
//! | 4 | length `n` of the payload as stored |
//! | 8 | xxh3-64 of the 40 bytes before and of the stored payload |
//! | n | payload: one zstd frame with its content size |
//!
//! Numbers are little endian. Why numbers in the head: the content of a damaged block can be counted from its
//! neighbours, even if it was the last one. Why shard and crawl: a file in the wrong directory is refused, not read.
//! Invariants: a block counts whole or not at all.
//! Limits: numbers are at most [`NUMBER_MAX`], so that neither their sums nor a bit for each URL get too large; a
//! payload is at most [`PAYLOAD_BYTES_MAX`], stored and decoded; a longer one would be taken for damage, so blocks
//! are closed long before.

use xxhash_rust::xxh3::Xxh3;
use zstd::zstd_safe::{CCtx, compress_bound};

/// What a log's blocks hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum LogKind {
    /// URLs that were accepted or set aside ([`super::UrlEntries`]).
    Urls = 1,
    /// How URLs ended ([`super::EndEntries`]).
    Ends = 2,
    /// URLs for other shards ([`super::JournalEntries`]).
    Journal = 3,
}

/// The crawl and shard that these logs belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The crawl, by its unique number.
    pub crawl: u64,
    /// The shard.
    pub shard: u16,
}

/// The head of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHead {
    /// What it holds.
    pub kind: LogKind,
    /// The owner of the log.
    pub owner: Owner,
    /// Number of its first entry; entries are numbered from 0 in each log. A journal numbers URLs.
    pub first: u64,
    /// The number of entries.
    pub count: u32,
    /// The number of entries in the other log of URLs, as known when the block was made: ends for a block of URLs,
    /// else URLs.
    pub mark: u64,
}

/// What is at some place in a log.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A block: its head, its payload, and its length in the file.
    Block(BlockHead, Vec<u8>, usize),
    /// The beginning of a block, cut off by the end of the bytes.
    Torn,
    /// Anything else.
    Damaged,
}

/// Packs blocks. It keeps its work space: many shards that each write a block a second would otherwise spend more on
/// fresh memory than on compressing.
#[derive(Default)]
pub struct Packer {
    context: CCtx<'static>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

impl Packer {
    /// The bytes of a block.
    pub fn block(&mut self, head: &BlockHead, payload: &[u8]) -> Vec<u8> {
        let mut stored = Vec::with_capacity(compress_bound(payload.len()));
        // Compression of a buffer in memory fails only for lack of memory.
        self.context.compress(&mut stored, payload, ZSTD_LEVEL).expect("zstd compresses any buffer");
        let mut block = Vec::with_capacity(HEAD_BYTES + stored.len());
        block.extend_from_slice(MAGIC);
        block.extend_from_slice(&[head.kind as u8, 0]);
        block.extend_from_slice(&head.owner.shard.to_le_bytes());
        block.extend_from_slice(&head.owner.crawl.to_le_bytes());
        block.extend_from_slice(&head.first.to_le_bytes());
        block.extend_from_slice(&head.mark.to_le_bytes());
        block.extend_from_slice(&head.count.to_le_bytes());
        block.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        let sum = checksum(&block, &stored);
        block.extend_from_slice(&sum.to_le_bytes());
        block.extend_from_slice(&stored);
        block
    }
}

/// Reads what is at the start of `bytes`.
pub fn read(bytes: &[u8]) -> Parsed {
    let Some(head_bytes) = bytes.first_chunk::<HEAD_BYTES>() else {
        return if MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) { Parsed::Torn } else { Parsed::Damaged };
    };
    let mut fields = Fields(head_bytes);
    let (magic, kind, _, shard) = (fields.take::<4>(), fields.take::<1>(), fields.take::<1>(), fields.take::<2>());
    let [crawl, first, mark] = [(); 3].map(|()| u64::from_le_bytes(fields.take()));
    let [count, length] = [(); 2].map(|()| u32::from_le_bytes(fields.take()));
    let sum = u64::from_le_bytes(fields.take());
    let kind = match kind {
        [1] => LogKind::Urls,
        [2] => LogKind::Ends,
        [3] => LogKind::Journal,
        _ => return Parsed::Damaged,
    };
    let length = length as usize;
    if &magic != MAGIC || length > PAYLOAD_BYTES_MAX || first > NUMBER_MAX || mark > NUMBER_MAX {
        return Parsed::Damaged;
    }
    let Some(stored) = bytes.get(HEAD_BYTES..HEAD_BYTES + length) else { return Parsed::Torn };
    if checksum(&head_bytes[..SUMMED_BYTES], stored) != sum {
        return Parsed::Damaged;
    }
    let Ok(payload) = zstd::bulk::decompress(stored, PAYLOAD_BYTES_MAX) else { return Parsed::Damaged };
    let owner = Owner { crawl, shard: u16::from_le_bytes(shard) };
    Parsed::Block(BlockHead { kind, owner, first, count, mark }, payload, HEAD_BYTES + length)
}

/// Where in `bytes`, after the first byte, a block may begin: at its magic number, or at the part of it that they end
/// with.
pub fn next_start(bytes: &[u8]) -> usize {
    let behind = bytes.get(1..).unwrap_or_default();
    let whole = memchr::memmem::find(behind, MAGIC);
    let ends_with = |count: &usize| behind.ends_with(&MAGIC[..*count]);
    1 + whole.unwrap_or_else(|| behind.len() - (1..MAGIC.len()).rev().find(ends_with).unwrap_or(0))
}

fn checksum(head: &[u8], stored: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(head);
    hash.update(stored);
    hash.digest()
}

/// The fields of a head; the bytes are long enough for all of them.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk::<N>().expect("a head has room for its fields");
        self.0 = rest;
        *field
    }
}

const MAGIC: &[u8; 4] = b"RCL1";
/// Bytes before the payload.
pub const HEAD_BYTES: usize = SUMMED_BYTES + 8;
const SUMMED_BYTES: usize = 40;
/// The longest payload that is read, decoded or as stored.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// No shard has this many URLs.
const NUMBER_MAX: u64 = 1 << 34;
const ZSTD_LEVEL: i32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: BlockHead = BlockHead {
        kind: LogKind::Ends,
        owner: Owner { crawl: u64::MAX - 7, shard: 3 },
        first: 1 << 34,
        count: 17,
        mark: 99,
    };

    #[test]
    fn there_and_back() {
        for payload in [&b""[..], b"payload", &[7; 100_000]] {
            let bytes = Packer::default().block(&HEAD, payload);
            assert_eq!(read(&bytes), Parsed::Block(HEAD, payload.to_vec(), bytes.len()));
            let more = [&bytes, &b"more"[..]].concat();
            assert_eq!(read(&more), Parsed::Block(HEAD, payload.to_vec(), bytes.len()), "what follows does not matter");
        }
    }

    /// The checksum covers the head, too: a block in the wrong place is worse than none.
    #[test]
    fn any_other_bit_is_seen_and_any_cut() {
        let bytes = Packer::default().block(&HEAD, b"some payload, some payload");
        for cut in 0..bytes.len() {
            assert_eq!(read(&bytes[..cut]), Parsed::Torn, "cut at {cut}");
        }
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // A longer length looks as if the rest were missing.
            let is_length = (36..40).contains(&(bit / 8));
            let read = read(&flipped);
            assert!(read == Parsed::Damaged || is_length && read == Parsed::Torn, "bit {bit}: {read:?}");
        }
    }

    #[test]
    fn numbers_that_no_shard_has_are_damage() {
        for head in [BlockHead { first: u64::MAX, ..HEAD }, BlockHead { mark: NUMBER_MAX + 1, ..HEAD }] {
            assert_eq!(read(&Packer::default().block(&head, b"payload")), Parsed::Damaged);
        }
    }

    #[test]
    fn the_next_block_is_found() {
        let bytes = Packer::default().block(&HEAD, b"payload");
        let two = [&bytes[..], &bytes].concat();
        assert_eq!(next_start(&two), bytes.len());
        assert_eq!(next_start(&two[..bytes.len() + 2]), bytes.len(), "the beginning of a magic number");
        assert_eq!(next_start(&bytes), bytes.len());
        assert_eq!(next_start(b""), 1);
    }
}
