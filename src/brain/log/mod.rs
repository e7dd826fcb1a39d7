//! What a shard records so that a later run can continue: the URL log, the log of ends, and the journal.
//!
//! Decides: the formats and how they are read; pure, so that the simulator writes and reads the same bytes. There are
//! three files because of the write order: a page's links, for its own shard (`urls`) and for others (`journal`),
//! must be on disk before the log that marks the page as final (`ends`). The first two are kept as long as the crawl;
//! the journal is only as long as what is in flight.
//! Invariants: within a file, blocks keep the order in which entries were added; URLs and ends are numbered without
//! gaps.
//! Limits: a block is closed at [`BLOCK_BYTES`], or when a commit needs it.
//! Leaves to others: when files are written and synced (`shard`), and where they lie (`disk`), what an entry means
//! (`shard`).

mod ask_again;
mod block;
mod costs;
mod ends;
mod host_note;
mod journal;
mod listing;
pub(crate) mod number;
mod reader;
mod redistribution;
mod replay;
mod replayed;
mod urls;
mod waiting_sites;

pub use ask_again::{AskAgain, CUT, cause, prefix, statuses};
pub use block::{LogKind, Owner};
pub use ends::{End, EndEntries, EndKind, RecordPlace};
pub use host_note::HostNote;
pub use journal::{Journal, JournalEntry, entries as journal_entries};
pub use listing::{Damage, Listed, Listing, ListingStep, UrlState};
pub use reader::LogReader;
pub use redistribution::{EarlierShard, Redistributed, RedistributedFiles, redistribute};
pub use replay::{Reopened, Replay, ReplayStep};
pub use replayed::{JournalFile, Replayed};
pub use urls::UrlEntries;
pub use waiting_sites::waiting_sites;

use std::collections::VecDeque;

use crate::backlinks::SiteLink;
use block::{BlockHead, Packer};
use ringcrawl_url::{FoundUrl, UrlBatch};

/// A file of a shard's logs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LogFile {
    /// How URLs ended.
    Ends,
    /// The URLs.
    Urls,
    /// What is in flight to other shards: one of several files.
    Journal(u32),
}

impl LogFile {
    /// What its blocks hold.
    pub fn kind(self) -> LogKind {
        match self {
            LogFile::Ends => LogKind::Ends,
            LogFile::Urls => LogKind::Urls,
            LogFile::Journal(_) => LogKind::Journal,
        }
    }

    /// Its number, if it belongs to the journal.
    pub fn journal(self) -> Option<u32> {
        if let LogFile::Journal(number) = self { Some(number) } else { None }
    }
}

impl std::fmt::Display for LogFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LogFile::Ends => f.write_str("ends"),
            LogFile::Urls => f.write_str("urls"),
            LogFile::Journal(number) => write!(f, "journal/{number}"),
        }
    }
}

/// Bytes to append to a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Append {
    /// The file.
    pub file: LogFile,
    /// Offset to write at: the end of the last whole block.
    pub position: u64,
    /// Whole blocks.
    pub bytes: Vec<u8>,
}

/// The logs of a shard.
#[derive(Debug)]
pub struct Log {
    owner: Owner,
    packer: Packer,
    urls: UrlEntries,
    full_urls: VecDeque<UrlEntries>,
    /// The number of the next URL, of the first in the next block, and where the file continues.
    next_url: u64,
    next_block_url: u64,
    urls_bytes: u64,
    ends: EndEntries,
    /// Their bytes, counted as they come: summing over all of them at each end would grow with the hosts.
    open_ends_bytes: usize,
    /// Ends that fill a block; the first `frozen` of them are frozen.
    full_ends: VecDeque<EndEntries>,
    frozen: usize,
    /// The number of the next end to write, and where the file continues.
    next_end: u64,
    ends_bytes: u64,
    journal: Journal,
    /// The number of the next URL to send.
    next_sent: u64,
    /// URLs that were written when ends were frozen.
    frozen_urls: u64,
    /// URLs and ends that are known to be on disk: a block must not claim that they are missing where they are not.
    written_urls: u64,
    written_ends: u64,
}

impl Log {
    /// The empty logs of `owner` in a crawl of `shards` shards; no file of the journal has `next_journal` or a higher
    /// number.
    pub fn new(owner: Owner, shards: u16, next_journal: u32) -> Log {
        Log {
            owner,
            packer: Packer::default(),
            urls: UrlEntries::default(),
            full_urls: VecDeque::new(),
            next_url: 0,
            next_block_url: 0,
            urls_bytes: 0,
            ends: EndEntries::default(),
            open_ends_bytes: 0,
            full_ends: VecDeque::new(),
            frozen: 0,
            next_end: 0,
            ends_bytes: 0,
            journal: Journal::new(shards, next_journal),
            next_sent: 0,
            frozen_urls: 0,
            written_urls: 0,
            written_ends: 0,
        }
    }

    /// Continues after what an earlier run has left.
    pub fn take_up(&mut self, found: &Replayed) {
        (self.next_url, self.next_block_url, self.next_end) = (found.next_url, found.next_url, found.next_end);
        (self.written_urls, self.written_ends) = (found.next_url, found.next_end);
        let end = |file| found.append_at.get(&file).copied().unwrap_or_default();
        (self.urls_bytes, self.ends_bytes) = (end(LogFile::Urls), end(LogFile::Ends));
        self.next_sent = found.next_sent;
        for file in &found.journal {
            self.journal.found(file.number, file.bytes, file.is_damaged, file.last.clone());
        }
    }

    /// Accepts a URL and returns its number.
    pub fn accept(&mut self, found: FoundUrl<'_>) -> u64 {
        self.urls.accepted.push_found(found);
        self.close_urls(BLOCK_BYTES);
        self.next_url += 1;
        self.next_url - 1
    }

    /// A URL finds no room.
    pub fn set_aside(&mut self, found: FoundUrl<'_>) {
        self.urls.aside.push_found(found);
        self.close_urls(BLOCK_BYTES);
    }

    /// Sends a batch to shard `to`.
    pub fn send(&mut self, to: u16, number: u64, urls: &UrlBatch) {
        self.journal.push(to, number, urls);
    }

    /// Whether shard `to` has acknowledged a batch.
    pub fn is_acknowledged(&self, to: u16, number: u64) -> bool {
        self.journal.is_acknowledged(to, number)
    }

    /// Shard `to` has all batches up to `number` on its disk.
    pub fn acknowledge(&mut self, to: u16, number: u64) {
        self.journal.acknowledge(to, number);
    }

    /// A URL is final.
    pub fn end(&mut self, end: End) {
        self.ends.ends.push(end);
        self.grow_ends(End::BYTES);
    }

    /// Details of how a final URL failed.
    pub fn note_detail(&mut self, url: u64, words: Box<str>) {
        let bytes = ends::detail_bytes(&words);
        self.ends.details.push((url, words));
        self.grow_ends(bytes);
    }

    /// A host has asked for something.
    pub fn note_host(&mut self, note: HostNote) {
        let bytes = note.bytes();
        self.ends.hosts.push(note);
        self.grow_ends(bytes);
    }

    /// A site was found to link to another one.
    pub fn note_link(&mut self, link: SiteLink) {
        self.ends.links.push(link);
        self.grow_ends(SiteLink::BYTES);
    }

    /// Whether everything was handed out.
    pub fn is_empty(&self) -> bool {
        let urls = self.urls.bytes() == 0 && self.full_urls.is_empty();
        urls && self.journal.is_empty() && self.ends.is_empty() && self.full_ends.is_empty()
    }

    /// The next block of URLs or of the journal if it is large, or any with `all`. There may be more.
    pub fn take_append(&mut self, all: bool) -> Option<Append> {
        if all {
            self.close_urls(1);
        }
        if let Some(urls) = self.full_urls.pop_front() {
            let count = urls.accepted.len() as u32;
            let head = self.head(LogKind::Urls, self.next_block_url, count, self.written_ends);
            self.next_block_url += u64::from(count);
            let bytes = self.packer.block(&head, &urls.to_payload());
            let position = self.urls_bytes;
            self.urls_bytes += bytes.len() as u64;
            return Some(Append { file: LogFile::Urls, position, bytes });
        }
        let payload = self.journal.take_payload(all)?;
        let head = self.head(LogKind::Journal, self.next_sent, payload.urls, self.written_urls);
        self.next_sent += u64::from(payload.urls);
        let bytes = self.packer.block(&head, &payload.bytes);
        let (file, position) = self.journal.place(&payload, bytes.len() as u64);
        Some(Append { file: LogFile::Journal(file), position, bytes })
    }

    /// Freezes the current ends: they may be written once everything noted before is on disk.
    pub fn freeze_ends(&mut self) {
        self.close_ends(1);
        self.frozen = self.full_ends.len();
        self.frozen_urls = self.next_block_url;
    }

    /// What was written before ends were frozen is on disk.
    pub fn confirm_facts(&mut self) {
        self.written_urls = self.frozen_urls;
    }

    /// So are the ends that were handed out.
    pub fn confirm_ends(&mut self) {
        self.written_ends = self.next_end;
    }

    /// The next block of frozen ends.
    pub fn take_ends(&mut self) -> Option<Append> {
        self.frozen = self.frozen.checked_sub(1)?;
        let ends = self.full_ends.pop_front()?;
        let count = ends.ends.len() as u32;
        let head = self.head(LogKind::Ends, self.next_end, count, self.written_urls);
        self.next_end += u64::from(count);
        let bytes = self.packer.block(&head, &ends.to_payload());
        let position = self.ends_bytes;
        self.ends_bytes += bytes.len() as u64;
        Some(Append { file: LogFile::Ends, position, bytes })
    }

    /// A file of the journal that is no longer needed because other shards have its content, and whether it is
    /// damaged: then the caller must keep it under another name, otherwise delete it.
    pub fn take_done(&mut self) -> Option<(LogFile, bool)> {
        self.journal.take_done().map(|(number, is_damaged)| (LogFile::Journal(number), is_damaged))
    }

    /// Whether too many ends have gathered to wait for the next commit.
    pub fn has_many_ends(&self) -> bool {
        self.full_ends.len() > FULL_ENDS_MAX
    }

    /// Bytes of the journal's files with something in flight.
    pub fn journal_bytes(&self) -> u64 {
        self.journal.bytes()
    }

    fn head(&self, kind: LogKind, first: u64, count: u32, mark: u64) -> BlockHead {
        BlockHead { kind, owner: self.owner, first, count, mark }
    }

    fn close_urls(&mut self, bytes: usize) {
        if self.urls.bytes() >= bytes {
            self.full_urls.push_back(std::mem::take(&mut self.urls));
        }
    }

    fn grow_ends(&mut self, bytes: usize) {
        self.open_ends_bytes += bytes;
        self.close_ends(BLOCK_BYTES);
    }

    fn close_ends(&mut self, bytes: usize) {
        if self.open_ends_bytes >= bytes {
            debug_assert_eq!(self.open_ends_bytes, self.ends.bytes());
            self.full_ends.push_back(std::mem::take(&mut self.ends));
            self.open_ends_bytes = 0;
        }
    }
}

/// The ends in the bytes of a log, skipping damaged parts.
pub fn read_ends(bytes: &[u8]) -> impl Iterator<Item = End> {
    payloads(bytes).filter_map(|payload| EndEntries::from_payload(&payload)).flat_map(|entries| entries.ends)
}

/// The URLs in the bytes of a log, block by block.
pub fn read_urls(bytes: &[u8]) -> impl Iterator<Item = UrlEntries> {
    payloads(bytes).filter_map(|payload| UrlEntries::from_payload(&payload))
}

/// The batches in the bytes of a journal file of a crawl with `shards` shards: shard, number and URLs.
pub fn read_journal(bytes: &[u8], shards: u16) -> impl Iterator<Item = (u16, u64, UrlBatch)> {
    let entries = payloads(bytes).filter_map(move |payload| journal::entries(&payload, shards)).flatten();
    entries.filter_map(|entry| match entry {
        JournalEntry::Batch { to, number, urls } => Some((to, number, urls)),
        JournalEntry::Acknowledged { .. } => None,
    })
}

fn payloads(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let mut reader = LogReader::default();
    reader.push(bytes);
    let next = move || {
        reader.next_block().or_else(|| {
            reader.push(&[]);
            reader.next_block()
        })
    };
    std::iter::from_fn(next).map(|(_, payload)| payload)
}

/// Blocks of ends that are kept in memory until the next commit.
const FULL_ENDS_MAX: usize = 16;
/// A block is closed at this many bytes, before compression.
pub const BLOCK_BYTES: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::block::{HEAD_BYTES, PAYLOAD_BYTES_MAX};
    use super::*;

    /// Whatever comes in one turn of the loop, every block can be read back.
    #[test]
    fn no_block_is_too_long_to_be_read() {
        let mut log = Log::new(Owner { crawl: 1, shard: 0 }, 2, 0);
        let text = format!("http://a.test/{}", "x".repeat(60_000));
        let mut files = std::collections::BTreeMap::<LogFile, LogReader>::new();
        let mut urls = UrlBatch::new();
        urls.push(0, &text);
        for number in 0..200_000 {
            if number % 1_000 == 0 {
                log.accept(FoundUrl::unlinked(0, &text));
                log.send(1, 1 + number, &urls);
            }
            let place = Some(RecordPlace {
                shard: 1,
                segment: u32::MAX * (number % 2) as u32,
                offset: u64::MAX * (number % 2),
            });
            let end = End {
                url: number % 7,
                kind: EndKind::Fetched(999),
                tries: 255,
                is_duplicate: true,
                is_challenge: true,
                cut: None,
                seconds: 0,
                place,
                bytes: number,
            };
            log.end(end);
            while number % 50_000 == 0
                && let Some(append) = log.take_append(false)
            {
                files.entry(append.file).or_default().push(&append.bytes);
            }
        }
        log.freeze_ends();
        while let Some(append) = log.take_append(true).or_else(|| log.take_ends()) {
            assert!(append.bytes.len() < HEAD_BYTES + PAYLOAD_BYTES_MAX);
            files.entry(append.file).or_default().push(&append.bytes);
        }
        let count = |file: LogFile| {
            let mut reader = files.remove(&file).expect("a log");
            std::iter::from_fn(|| reader.next_block()).map(|(head, _)| u64::from(head.count)).sum::<u64>()
        };
        assert_eq!([LogFile::Urls, LogFile::Ends, LogFile::Journal(0)].map(count), [200, 200_000, 200]);
    }
}
