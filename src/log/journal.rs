//! The journal of one shard: facts gather, blocks go out. From it alone a crawl is resumed.
//!
//! Decides: one append-only file of blocks ([`super::block`]); a block is written when it is large or old. What waits is
//! what was accepted and is not over: neither the queue nor the visited set is saved.
//! Invariants: what is noted first is not in a later block than what is noted afterwards.
//! Leaves to others: when the file is synced, and where it lies.

use std::collections::VecDeque;

use super::block::{Entries, Packer};
use crate::time::{Duration, Instant};

/// What gathers for the next block.
#[derive(Debug, Default)]
pub struct Journal {
    /// Blocks that are large enough and not yet taken.
    full: VecDeque<Entries>,
    entries: Entries,
    since: Option<Instant>,
    packer: Packer,
}

impl Journal {
    /// Where the next facts go.
    pub fn entries(&mut self, now: Instant) -> &mut Entries {
        if self.entries.bytes() >= BLOCK_BYTES {
            self.full.push_back(std::mem::take(&mut self.entries));
            self.since = None;
        }
        self.since.get_or_insert(now);
        &mut self.entries
    }

    /// The next block as bytes, when it is large or old enough, or anything at all with `force`. There may be more.
    pub fn take_block(&mut self, now: Instant, force: bool) -> Option<Vec<u8>> {
        if let Some(full) = self.full.pop_front() {
            return Some(self.packer.block(&full));
        }
        let since = self.since?;
        if !force && self.entries.bytes() < BLOCK_BYTES && now.since(since) < BLOCK_AGE {
            return None;
        }
        self.since = None;
        let block = self.packer.block(&self.entries);
        self.entries.clear();
        Some(block)
    }

    /// When the open block must be written.
    pub fn next_due(&self) -> Option<Instant> {
        if self.full.is_empty() { self.since.map(|since| since + BLOCK_AGE) } else { Some(Instant::ZERO) }
    }
}

const BLOCK_BYTES: usize = 256 * 1024;
const BLOCK_AGE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::super::block::{PAYLOAD_BYTES_MAX, blocks};
    use super::*;

    /// Whatever comes in one turn of the loop, every block can be read back.
    #[test]
    fn no_block_is_too_long_to_be_read() {
        let mut journal = Journal::default();
        let text = format!("http://a.test/{}", "x".repeat(1_000));
        let urls = 2 * PAYLOAD_BYTES_MAX / 1_000;
        for number in 0..urls as u64 {
            journal.entries(Instant::ZERO).accepted.push(0, &text);
            journal.entries(Instant::ZERO).over.push(number);
        }
        let mut file = Vec::new();
        while let Some(block) = journal.take_block(Instant::ZERO, true) {
            file.extend(block);
        }
        let read: Vec<Entries> = blocks(&file).map(|(entries, _)| entries).collect();
        assert_eq!(read.iter().map(|entries| entries.accepted.len()).sum::<usize>(), urls);
        assert_eq!(read.iter().map(|entries| entries.over.len()).sum::<usize>(), urls);
        assert_eq!(journal.next_due(), None);
    }
}
