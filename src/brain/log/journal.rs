//! The journal: URLs for other shards, kept until these report that they have them on disk.
//!
//! Decides: batches go to files of [`FILE_BYTES`]; a file is deleted once everything in it is acknowledged. So the
//! journal holds only what is in flight, however often a crawl is interrupted: what an earlier run left is sent again
//! but not written again.
//! The payload of a block is a list of entries, with numbers as in [`super::number`]: shard, 0, number of the batch,
//! length, URLs as [`UrlBatch`]; or shard, 1, number up to which all are acknowledged.
//! A file with damaged content is kept under another name.
//! Invariants: the numbers of a shard's batches grow from entry to entry; URLs are numbered as they are sent.
//! Limits: the shard enforces `journal.bytes_max`: it fetches nothing while [`Journal::bytes`] exceeds it.

use std::collections::VecDeque;

use super::{BLOCK_BYTES, number};
use ringcrawl_url::UrlBatch;

/// What is in flight to other shards.
#[derive(Debug, Default)]
pub struct Journal {
    /// Files that are kept, in the order of their numbers.
    files: VecDeque<File>,
    next_file: u32,
    /// No file of this run has a lower number: the files of earlier runs are not written to.
    first_file: u32,
    /// By shard: all batches up to this are acknowledged.
    acknowledged: Vec<u64>,
    /// Acknowledgements of these shards that are not written yet.
    unwritten: Vec<u16>,
    /// Entries that fill a block, and those that do not yet.
    full: VecDeque<Payload>,
    open: Payload,
}

/// Entries for a block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Payload {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// URLs in them.
    pub urls: u32,
    /// The last batch among them to each shard.
    last: Vec<(u16, u64)>,
}

#[derive(Debug)]
struct File {
    number: u32,
    bytes: u64,
    is_damaged: bool,
    /// By shard: the last batch in it.
    last: Vec<u64>,
}

/// One entry of a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalEntry {
    /// URLs for a shard.
    Batch {
        /// The shard.
        to: u16,
        /// The number of the batch.
        number: u64,
        /// The URLs.
        urls: UrlBatch,
    },
    /// A shard has all batches up to `number`.
    Acknowledged {
        /// The shard.
        to: u16,
        /// The last of them.
        number: u64,
    },
}

impl Journal {
    /// Nothing is in flight; no file has the number `next_file`.
    pub fn new(shards: u16, next_file: u32) -> Journal {
        let acknowledged = vec![0; usize::from(shards)];
        Journal { next_file, first_file: next_file, acknowledged, ..Journal::default() }
    }

    /// Adds a file that an earlier run left, with the last batch in it to each shard.
    pub fn found(&mut self, number: u32, bytes: u64, is_damaged: bool, last: Vec<u64>) {
        self.next_file = self.next_file.max(number.saturating_add(1));
        self.first_file = self.first_file.max(number.saturating_add(1));
        self.files.push_back(File { number, bytes, is_damaged, last });
    }

    /// Adds a batch, unless it is acknowledged already.
    pub fn push(&mut self, to: u16, number: u64, urls: &UrlBatch) {
        if self.is_acknowledged(to, number) {
            return;
        }
        for field in [u64::from(to), 0, number, urls.as_bytes().len() as u64] {
            number::put(&mut self.open.bytes, field);
        }
        self.open.bytes.extend_from_slice(urls.as_bytes());
        self.open.urls += urls.len() as u32;
        self.open.last.push((to, number));
        if self.open.bytes.len() >= BLOCK_BYTES {
            self.full.push_back(std::mem::take(&mut self.open));
        }
    }

    /// Shard `to` has all batches up to `number`.
    pub fn acknowledge(&mut self, to: u16, number: u64) {
        let known = &mut self.acknowledged[usize::from(to)];
        if number > *known {
            *known = number;
            if !self.unwritten.contains(&to) {
                self.unwritten.push(to);
            }
        }
    }

    /// Whether shard `to` has a batch.
    pub fn is_acknowledged(&self, to: u16, number: u64) -> bool {
        number <= self.acknowledged[usize::from(to)]
    }

    /// Whether no entry waits for a block.
    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.open.bytes.is_empty()
    }

    /// Takes the content of the next block if it is large, or any with `all`. Acknowledgements go along with batches:
    /// alone they are not worth a block.
    pub fn take_payload(&mut self, all: bool) -> Option<Payload> {
        if let Some(full) = self.full.pop_front() {
            return Some(full);
        }
        if !all || self.open.bytes.is_empty() {
            return None;
        }
        let mut payload = std::mem::take(&mut self.open);
        for to in self.unwritten.drain(..) {
            for field in [u64::from(to), 1, self.acknowledged[usize::from(to)]] {
                number::put(&mut payload.bytes, field);
            }
        }
        Some(payload)
    }

    /// Returns the file and the position for a block of `block_bytes` bytes with `payload`.
    pub fn place(&mut self, payload: &Payload, block_bytes: u64) -> (u32, u64) {
        if self.files.back().is_none_or(|file| file.bytes >= FILE_BYTES || file.number < self.first_file) {
            let last = vec![0; self.acknowledged.len()];
            self.files.push_back(File { number: self.next_file, bytes: 0, is_damaged: false, last });
            self.next_file += 1;
        }
        let Some(file) = self.files.back_mut() else { unreachable!("one was just added") };
        let position = file.bytes;
        file.bytes += block_bytes;
        for (to, number) in &payload.last {
            file.last[usize::from(*to)] = *number;
        }
        (file.number, position)
    }

    /// The number of a file with everything acknowledged, and whether it is damaged: then the caller must keep it
    /// under another name, otherwise delete it. The newest file stays while it is short: a new file for each commit
    /// would cost too much.
    pub fn take_done(&mut self) -> Option<(u32, bool)> {
        let newest = self.files.back()?.number;
        let is_done = |file: &File| {
            (file.number != newest || file.number < self.first_file || file.bytes >= SHORT_FILE_BYTES)
                && self.is_acknowledged_whole(file)
        };
        let at = self.files.iter().position(is_done)?;
        self.files.remove(at).map(|file| (file.number, file.is_damaged))
    }

    /// Bytes in files with something in flight.
    pub fn bytes(&self) -> u64 {
        self.files.iter().filter(|file| !self.is_acknowledged_whole(file)).map(|file| file.bytes).sum()
    }

    fn is_acknowledged_whole(&self, file: &File) -> bool {
        file.last.iter().zip(&self.acknowledged).all(|(last, acknowledged)| last <= acknowledged)
    }
}

/// The entries of a payload; `None` if it is invalid. Shards are below `shards`, and batches have numbers.
pub fn entries(mut payload: &[u8], shards: u16) -> Option<Vec<JournalEntry>> {
    let bytes = &mut payload;
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let to = u16::try_from(number::take(bytes)?).ok().filter(|to| *to < shards)?;
        entries.push(match (number::take(bytes)?, number::take(bytes)?) {
            (_, 0) | (_, BATCH_NUMBER_MAX..) => return None,
            (0, number) => {
                let length = number::take(bytes)?;
                let urls = UrlBatch::from_bytes(number::take_bytes(bytes, length)?.to_vec())?;
                JournalEntry::Batch { to, number, urls }
            }
            (1, number) => JournalEntry::Acknowledged { to, number },
            _ => return None,
        });
    }
    Some(entries)
}

/// No shard sends this many batches.
const BATCH_NUMBER_MAX: u64 = 1 << 48;
/// A file is full at this length.
const FILE_BYTES: u64 = 16 << 20;
/// The newest file is kept below this length, although nothing in it is needed.
const SHORT_FILE_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(text: &str) -> UrlBatch {
        let mut batch = UrlBatch::new();
        assert!(batch.push(1, text));
        batch
    }

    #[test]
    fn there_and_back() {
        let mut journal = Journal::new(4, 0);
        assert_eq!(journal.take_payload(true), None);
        journal.acknowledge(2, 9);
        assert_eq!(journal.take_payload(true), None, "an acknowledgement is not worth a block");
        journal.push(2, 9, &batch("http://acknowledged.test/"));
        journal.push(2, 10, &batch("http://a.test/"));
        journal.push(3, 1, &batch("http://b.test/"));
        assert_eq!(journal.take_payload(false), None, "they are not many");
        let Payload { bytes: payload, urls: count, .. } = journal.take_payload(true).expect("two batches");
        let expected = vec![
            JournalEntry::Batch { to: 2, number: 10, urls: batch("http://a.test/") },
            JournalEntry::Batch { to: 3, number: 1, urls: batch("http://b.test/") },
            JournalEntry::Acknowledged { to: 2, number: 9 },
        ];
        assert_eq!((entries(&payload, 4), count), (Some(expected), 2));
        assert_eq!(entries(&payload, 3), None, "a shard that there is not");
        assert!((1..payload.len()).filter(|cut| entries(&payload[..*cut], 4).is_some()).count() <= 2);
    }

    #[test]
    fn files_go_when_all_in_them_is_acknowledged() {
        let mut journal = Journal::new(3, 5);
        let write = |journal: &mut Journal, to, number, bytes| {
            journal.push(to, number, &batch("http://a.test/"));
            let payload = journal.take_payload(true).expect("a batch");
            journal.place(&payload, bytes)
        };
        assert_eq!(write(&mut journal, 1, 1, 100), (5, 0));
        assert_eq!(write(&mut journal, 2, 1, FILE_BYTES), (5, 100));
        assert_eq!(write(&mut journal, 1, 2, 10), (6, 0));
        journal.acknowledge(1, 2);
        assert_eq!(journal.take_done(), None, "another shard has not got its batch");
        assert_eq!(journal.bytes(), FILE_BYTES + 100, "the other file has nothing that is on its way");
        journal.acknowledge(2, 1);
        assert_eq!((journal.take_done(), journal.take_done()), (Some((5, false)), None), "the newest is written on");
        assert_eq!(journal.bytes(), 0, "and nothing in it is on its way");
        assert_eq!((write(&mut journal, 1, 3, 10), journal.bytes()), ((6, 10), 20));
    }

    #[test]
    fn what_an_earlier_run_left_goes_when_it_is_acknowledged_now() {
        let mut journal = Journal::new(2, 0);
        journal.found(3, 1_000, true, vec![0, 7]);
        journal.push(1, 8, &batch("http://a.test/"));
        let payload = journal.take_payload(true).expect("a batch");
        assert_eq!(journal.place(&payload, 10), (4, 0), "no file of another run is written to");
        journal.acknowledge(1, 6);
        assert_eq!(journal.take_done(), None);
        journal.acknowledge(1, 7);
        assert_eq!((journal.take_done(), journal.bytes()), (Some((3, true)), 10));
    }
}
