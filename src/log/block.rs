//! A block of the journal: what a shard accepted, what is over, what it set aside.
//!
//! Decides: the bytes of a block, each of which stands for itself.
//!
//! | bytes | meaning |
//! |---|---|
//! | 4 | `RCJ1` |
//! | 4, little endian | length `n` of the payload as stored |
//! | 8, little endian | xxh3-64 of the stored payload |
//! | n | payload: one zstd frame with its content size |
//!
//! Payload, five sections, each a 4-byte little-endian length and then so many bytes: accepted URLs and URLs set
//! aside (as [`UrlBatch`]); fingerprints of URLs that are over (8 bytes each); URLs found for other shards (as
//! [`UrlBatch`]); one byte when everything found for other shards so far is in their journals, none else.
//!
//! A page's links go in before the page is over, those for other shards too: a ring's content dies with the
//! process, and a link that is in no journal would be lost with it. After a restart they are sent once more.
//!
//! Invariants: a block counts whole or not at all.
//! Limits: a payload is at most 1 MiB, stored and decoded; a longer one would be taken for a damaged one, so a block is
//! closed long before.

use zstd::zstd_safe::{CCtx, compress_bound};

use crate::url::UrlBatch;

/// Makes blocks of entries. It keeps its work space: many shards that each write a block a second would otherwise spend
/// more on fresh memory than on compressing.
#[derive(Default)]
pub struct Packer {
    context: CCtx<'static>,
    payload: Vec<u8>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

/// The content of one block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Entries {
    /// URLs that the visited set took in, to be fetched.
    pub accepted: UrlBatch,
    /// URLs that the visited set had no room for.
    pub aside: UrlBatch,
    /// Fingerprints of URLs that are over.
    pub over: Vec<u64>,
    /// URLs found for other shards.
    pub outgoing: UrlBatch,
    /// Everything found for other shards, in this block and before, is in their journals.
    pub handed_over: bool,
}

impl Entries {
    /// Bytes of what is in it.
    pub(super) fn bytes(&self) -> usize {
        let batches = [&self.accepted, &self.aside, &self.outgoing];
        batches.iter().map(|batch| batch.as_bytes().len()).sum::<usize>() + 8 * self.over.len()
    }

    /// Forgets everything, keeps the memory.
    pub(super) fn clear(&mut self) {
        for batch in [&mut self.accepted, &mut self.aside, &mut self.outgoing] {
            batch.clear();
        }
        self.over.clear();
        self.handed_over = false;
    }

    /// Reads the block at the start of `bytes` and says how long it is; `None` when it is not whole.
    pub fn from_block(bytes: &[u8]) -> Option<(Entries, usize)> {
        let stored = stored(bytes)?;
        let payload = zstd::bulk::decompress(stored, PAYLOAD_BYTES_MAX).ok()?;
        let mut rest = payload.as_slice();
        let accepted = UrlBatch::from_bytes(section(&mut rest)?.to_vec())?;
        let aside = UrlBatch::from_bytes(section(&mut rest)?.to_vec())?;
        let over = section(&mut rest)?.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect();
        let outgoing = UrlBatch::from_bytes(section(&mut rest)?.to_vec())?;
        let handed_over = !section(&mut rest)?.is_empty();
        Some((Entries { accepted, aside, over, outgoing, handed_over }, HEAD_BYTES + stored.len()))
    }
}

/// The payload, as stored, of the block at the start of `bytes`, when all of it is there and is what was written.
fn stored(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let stored = rest.get(..u32::from_le_bytes(*length) as usize)?;
    (xxhash_rust::xxh3::xxh3_64(stored) == u64::from_le_bytes(*sum)).then_some(stored)
}

/// Whether `bytes` are the beginning of a block, as far as they go, and more of it is missing.
pub fn is_torn(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(MAGIC) else { return MAGIC.starts_with(bytes) };
    let Some((length, rest)) = rest.split_first_chunk::<4>() else { return true };
    let length = u32::from_le_bytes(*length) as usize;
    length <= PAYLOAD_BYTES_MAX && rest.len() < 8 + length
}

/// Where in `bytes`, behind the first, a block may begin: at its magic number, or at the part of it that they end with.
pub fn next_start(bytes: &[u8]) -> usize {
    let behind = bytes.get(1..).unwrap_or_default();
    let whole = memchr::memmem::find(behind, MAGIC);
    let ends_with = |count: &usize| behind.ends_with(&MAGIC[..*count]);
    1 + whole.unwrap_or_else(|| behind.len() - (1..MAGIC.len()).rev().find(ends_with).unwrap_or(0))
}

impl Packer {
    /// The bytes of a block with `entries`.
    pub fn block(&mut self, entries: &Entries) -> Vec<u8> {
        let payload = &mut self.payload;
        payload.clear();
        let put_length = |payload: &mut Vec<u8>, bytes: usize| payload.extend_from_slice(&(bytes as u32).to_le_bytes());
        for batch in [&entries.accepted, &entries.aside] {
            put_length(payload, batch.as_bytes().len());
            payload.extend_from_slice(batch.as_bytes());
        }
        put_length(payload, 8 * entries.over.len());
        payload.extend(entries.over.iter().flat_map(|fingerprint| fingerprint.to_le_bytes()));
        let handed_over: &[u8] = if entries.handed_over { &[1] } else { &[] };
        for section in [entries.outgoing.as_bytes(), handed_over] {
            put_length(payload, section.len());
            payload.extend_from_slice(section);
        }
        let mut stored = Vec::with_capacity(compress_bound(payload.len()));
        // Compression of a buffer in memory fails for want of memory alone.
        self.context.compress(&mut stored, payload, ZSTD_LEVEL).expect("zstd compresses any buffer");
        let mut block = Vec::with_capacity(HEAD_BYTES + stored.len());
        block.extend_from_slice(MAGIC);
        block.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        block.extend_from_slice(&xxhash_rust::xxh3::xxh3_64(&stored).to_le_bytes());
        block.extend_from_slice(&stored);
        block
    }
}

/// The blocks of a journal's bytes, up to the first that is not whole.
pub fn blocks(bytes: &[u8]) -> impl Iterator<Item = (Entries, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (entries, length) = Entries::from_block(bytes.get(at..)?)?;
        at += length;
        Some((entries, at))
    })
}

fn section<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (section, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    Some(section)
}

const MAGIC: &[u8; 4] = b"RCJ1";
/// Bytes before the payload.
pub const HEAD_BYTES: usize = 16;
/// Longest payload that is read, decoded or as stored.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
const ZSTD_LEVEL: i32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Entries {
        let mut entries = Entries { over: vec![1, u64::MAX, 3], ..Entries::default() };
        entries.accepted.push(0, "http://a.test/");
        entries.accepted.push(4, "http://a.test/b");
        entries.aside.push(9, "http://c.test/");
        entries.outgoing.push(2, "http://d.test/");
        entries.handed_over = true;
        entries
    }

    #[test]
    fn blocks_there_and_back() {
        let mut file = Packer::default().block(&sample());
        file.extend(Packer::default().block(&Entries::default()));
        let read: Vec<_> = blocks(&file).collect();
        assert_eq!(read.len(), 2);
        assert_eq!((&read[0].0, &read[1].0), (&sample(), &Entries::default()));
        assert_eq!(read[1].1, file.len());
    }

    #[test]
    fn a_torn_or_flipped_block_ends_the_journal_before_it() {
        let whole = Packer::default().block(&sample());
        let mut file = whole.clone();
        file.extend_from_slice(&whole);
        for cut in whole.len()..file.len() {
            assert_eq!(blocks(&file[..cut]).last().map(|(_, end)| end), Some(whole.len()), "cut at {cut}");
        }
        for at in whole.len()..file.len() {
            let mut flipped = file.clone();
            flipped[at] ^= 0x10;
            assert_eq!(blocks(&flipped).last().map(|(_, end)| end), Some(whole.len()), "flipped at {at}");
        }
    }
}
