//! Continues an earlier run: its logs, read back in one pass.
//!
//! Decides: first comes the log of ends, which leaves three bits for each URL. Then come the URLs, each with whether
//! it is final and whether its host has answered; then the journal. A URL whose record is lost is not final, unless
//! its whole segment is gone: then someone moved the segment away. URLs that are chosen for another fetch
//! ([`AskAgain`]) are not final either. Missing entries are counted in URLs: each log's blocks are numbered, and say
//! how many entries the other log has.
//! Invariants: every URL comes once, in the order of acceptance.
//! Limits: three bits for each URL, one more if some are fetched again and one if pages are counted, eight bytes with
//! budgets, the numbers of those whose record is lost, notes on hosts as they come, and one block.
//! Leaves to others: what is done with an entry (`shard`), reading and cutting files (`disk`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::block::{BlockHead, LogKind, Owner};
use super::costs::Costs;
use super::journal::{self, JournalEntry};
use super::reader::LogReader;
use super::replayed::{JournalFile, Replayed};
use super::{AskAgain, End, EndEntries, EndKind, HostNote, LogFile, RecordPlace, UrlEntries};
use crate::backlinks::SiteLink;
use crate::frontier::Cost;
use ringcrawl_base::Failure;
use ringcrawl_url::{FoundUrl, UrlBatch};

/// An earlier run that is continued.
#[derive(Debug)]
pub struct Replay {
    owner: Owner,
    shards: u16,
    /// The current file, and those after it.
    file: Option<LogFile>,
    next: VecDeque<LogFile>,
    reader: LogReader,
    /// Bytes came that are not yet read to their end.
    piece: Option<Piece>,
    over: Bits,
    answered: Bits,
    silent: Bits,
    /// Bytes of each segment: a record past its segment's end is lost.
    segments: BTreeMap<u32, u64>,
    reopened: BTreeSet<u64>,
    /// URLs chosen for another fetch; `None` if there are none.
    again: Option<(AskAgain, Bits)>,
    /// The cost of URLs; `None` if it is not needed.
    costs: Option<Costs>,
    /// Which URLs are pages; `None` if it is not needed.
    pages: Option<Bits>,
    ends: EntryCount,
    urls: EntryCount,
    /// By shard, the last batch of the current journal file, and of all of them.
    last: Vec<u64>,
    last_of_all: Vec<u64>,
    /// The journal file before the current one.
    file_before: Option<u32>,
    is_first_block: bool,
    found: Replayed,
}

/// A piece of a log that is being read.
#[derive(Debug)]
struct Piece {
    /// Nothing follows in its file.
    is_last: bool,
}

/// An item in a piece of a log.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplayStep<'a> {
    /// These URLs come next, one by one.
    Block(&'a UrlBatch),
    /// A URL was accepted.
    Url {
        /// Its number.
        number: u64,
        /// The bits of its `Hops`.
        depth: u16,
        /// Its text.
        text: &'a str,
        /// The page that linked to it first, if it is known.
        via: Option<&'a str>,
        /// Whether it is final and needs no further fetch.
        is_over: bool,
        /// Whether its last end was a response (`true`), or the lack of an answer (`false`); `None` if it was
        /// neither.
        was_answered: Option<bool>,
        /// Its cost, if that was requested and it has an end.
        cost: Option<Cost>,
        /// Whether its last end was a response of status 2xx, if that was requested.
        is_page: bool,
    },
    /// These URLs found no room.
    Aside(UrlBatch),
    /// How a URL ended, before the URL itself comes; the last one holds.
    End(End),
    /// A host has asked for something.
    Host(HostNote),
    /// A site was found to link to another one.
    Link(SiteLink),
    /// URLs for another shard, which may not have them yet.
    Batch {
        /// The shard.
        to: u16,
        /// The number of the batch.
        number: u64,
        /// The URLs.
        urls: UrlBatch,
    },
    /// Another shard has all batches up to `number`.
    Acknowledged {
        /// The shard.
        to: u16,
        /// The last of them.
        number: u64,
    },
}

impl Replay {
    /// The logs of `owner` in a crawl of `shards` shards, with these journal files in order, and with the lengths of
    /// segments in bytes. An absent segment is assumed to have been moved away: its records are counted, not fetched
    /// again.
    pub fn new(owner: Owner, shards: u16, journal_files: &[u32], segments: BTreeMap<u32, u64>) -> Replay {
        let journal = journal_files.iter().map(|file| LogFile::Journal(*file));
        let files = [LogFile::Ends, LogFile::Urls].into_iter().chain(journal).collect();
        Replay { segments, ..Replay::of(owner, shards, files) }
    }

    /// The same for the journal alone.
    pub fn of_journal(owner: Owner, shards: u16, journal_files: &[u32]) -> Replay {
        Replay::of(owner, shards, journal_files.iter().map(|file| LogFile::Journal(*file)).collect())
    }

    /// The same for the log of ends alone.
    pub fn of_ends(owner: Owner, shards: u16) -> Replay {
        Replay::of(owner, shards, [LogFile::Ends].into())
    }

    fn of(owner: Owner, shards: u16, mut next: VecDeque<LogFile>) -> Replay {
        Replay {
            owner,
            shards,
            file: next.pop_front(),
            next,
            reader: LogReader::default(),
            piece: None,
            over: Bits::default(),
            answered: Bits::default(),
            silent: Bits::default(),
            segments: BTreeMap::new(),
            reopened: BTreeSet::new(),
            again: None,
            costs: None,
            pages: None,
            ends: EntryCount::default(),
            urls: EntryCount::default(),
            last: vec![0; usize::from(shards)],
            last_of_all: vec![0; usize::from(shards)],
            file_before: None,
            is_first_block: true,
            found: Replayed::default(),
        }
    }

    /// Treats the chosen URLs as not final.
    pub fn with_again(mut self, chosen: AskAgain) -> Replay {
        self.again = chosen.is_any().then(|| (chosen, Bits::default()));
        self
    }

    /// Reports the cost of each URL.
    pub fn with_costs(mut self) -> Replay {
        self.costs = Some(Costs::default());
        self
    }

    /// Reports for each URL whether it is a page.
    pub fn with_pages(mut self) -> Replay {
        self.pages = Some(Bits::default());
        self
    }

    /// The owner of these logs.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// What to read next, and from where; `None` when everything is read.
    pub fn next_read(&self) -> Option<(LogFile, u64)> {
        self.file.map(|file| (file, self.reader.next_offset()))
    }

    /// Takes the bytes that [`Replay::next_read`] asked for, none at the file's end, and gives their items to `each`.
    /// An error means that the file is not this shard's.
    pub fn read(&mut self, bytes: &[u8], each: &mut dyn FnMut(ReplayStep<'_>)) -> Result<(), String> {
        self.push(bytes);
        while self.has_piece() {
            self.read_block(each)?;
        }
        Ok(())
    }

    /// Takes these bytes, which are then read block by block: a piece of a log may hold a hundred times its length.
    pub fn push(&mut self, bytes: &[u8]) {
        self.reader.push(bytes);
        self.piece = Some(Piece { is_last: bytes.is_empty() });
    }

    /// Whether the current bytes hold more to read.
    pub fn has_piece(&self) -> bool {
        self.piece.is_some()
    }

    /// Gives the items of the next block to `each`, if the current bytes hold a whole one.
    pub fn read_block(&mut self, each: &mut dyn FnMut(ReplayStep<'_>)) -> Result<(), String> {
        let Some(file) = self.file else { panic!("a log came that was not requested") };
        let Some((head, payload)) = self.reader.next_block() else {
            if self.piece.take().is_some_and(|piece| piece.is_last) {
                self.end_of(file);
            }
            return Ok(());
        };
        let (kind, owner) = (file.kind(), self.owner);
        if head.kind != kind || head.owner != owner {
            let held = head.owner;
            let what = if held.crawl != owner.crawl {
                "another crawl".to_owned()
            } else {
                format!("shard {} ({:?})", held.shard, head.kind)
            };
            return Err(format!("{file} holds a block of {what}: files were mixed up; put the right one in its place"));
        }
        if file.journal().is_some() && head.first < self.found.next_sent {
            return Err(format!(
                "{file} holds what an earlier file of the journal has: files were mixed up or copied: put the right one in its \
                 place, or take this one away"
            ));
        }
        if self.block(kind, head, &payload, each).is_none() {
            self.reader.reject();
        } else if let LogFile::Journal(number) = file {
            self.count_sent(number, head);
        }
        Ok(())
    }

    /// While the log of URLs is read: how many URLs are known to exist.
    pub fn urls_to_come(&self) -> Option<u64> {
        (self.file == Some(LogFile::Urls)).then_some(self.urls.next)
    }

    /// The totals, once everything is read, and the URLs to fetch again.
    pub fn finish(mut self) -> (Replayed, Reopened) {
        self.found.urls_lost = self.urls.lost();
        self.found.ends_lost = self.ends.lost();
        (self.found.next_url, self.found.next_end) = (self.urls.next, self.ends.next);
        self.found.records_lost = self.reopened.len() as u64;
        let (chosen, failed) = self.again.unwrap_or_default();
        self.found.retries_failed = chosen == AskAgain::failed(true);
        self.found.retried = failed.count();
        (self.found, Reopened { lost: self.reopened, failed, word: 0 })
    }

    /// Reads a block; `None` if its payload is not valid for its kind.
    fn block(
        &mut self,
        kind: LogKind,
        head: BlockHead,
        payload: &[u8],
        each: &mut dyn FnMut(ReplayStep<'_>),
    ) -> Option<()> {
        match kind {
            LogKind::Ends => {
                let entries = EndEntries::from_payload(payload)?;
                if entries.ends.iter().any(|end| end.url >= head.mark) {
                    return None;
                }
                self.ends.block(head);
                self.urls.at_least(head.mark);
                for end in &entries.ends {
                    if let Some(place) = end.place.filter(|place| place.shard == self.owner.shard) {
                        self.found.next_segment = self.found.next_segment.max(place.segment.saturating_add(1));
                        self.found.records_elsewhere += u64::from(!self.segments.contains_key(&place.segment));
                    }
                    let is_lost = end.place.is_some_and(|place| self.is_cut(place));
                    if is_lost {
                        self.reopened.insert(end.url);
                    } else {
                        self.reopened.remove(&end.url);
                    }
                    let mut is_again = false;
                    if let Some((chosen, again)) = &mut self.again {
                        is_again = chosen.is_of_end(end.kind, end.cut.is_some());
                        again.set(end.url, is_again);
                    }
                    self.over.set(end.url, !is_lost && !is_again && end.kind != EndKind::Reopened);
                    self.costs.iter_mut().for_each(|costs| costs.set(end));
                    let is_page = matches!(end.kind, EndKind::Fetched(200..300));
                    self.pages.iter_mut().for_each(|pages| pages.set(end.url, is_page));
                    self.answered.set(end.url, matches!(end.kind, EndKind::Fetched(_)));
                    self.silent.set(end.url, matches!(end.kind, EndKind::Failed(failure) if is_silence(failure)));
                    each(ReplayStep::End(*end));
                }
                entries.hosts.into_iter().for_each(|note| each(ReplayStep::Host(note)));
                entries.links.into_iter().for_each(|link| each(ReplayStep::Link(link)));
            }
            LogKind::Urls => {
                let entries = UrlEntries::from_payload(payload)?;
                if entries.accepted.len() != head.count as usize {
                    return None;
                }
                self.urls.block(head);
                self.ends.at_least(head.mark);
                each(ReplayStep::Block(&entries.accepted));
                for (number, FoundUrl { via, depth, url: text }) in (head.first..).zip(entries.accepted.found()) {
                    let mut is_over = self.over.get(number);
                    if let Some((_, again)) =
                        self.again.as_mut().filter(|(chosen, _)| is_over && chosen.is_of_url(text))
                    {
                        again.set(number, true);
                        is_over = false;
                    }
                    let (answered, silent) = (self.answered.get(number), self.silent.get(number));
                    let was_answered = (answered || silent).then_some(answered);
                    let cost = self.costs.as_ref().and_then(|costs| costs.of(number));
                    let is_page = self.pages.as_ref().is_some_and(|pages| pages.get(number));
                    each(ReplayStep::Url { number, depth, text, via, is_over, was_answered, cost, is_page });
                }
                if !entries.aside.is_empty() {
                    each(ReplayStep::Aside(entries.aside));
                }
            }
            LogKind::Journal => {
                let entries = journal::entries(payload, self.shards)?;
                self.check_batches(&entries)?;
                self.urls.at_least(head.mark);
                for entry in entries {
                    each(match entry {
                        JournalEntry::Batch { to, number, urls } => {
                            self.last[usize::from(to)] = number;
                            self.last_of_all[usize::from(to)] = number;
                            ReplayStep::Batch { to, number, urls }
                        }
                        JournalEntry::Acknowledged { to, number } => ReplayStep::Acknowledged { to, number },
                    });
                }
            }
        }
        Some(())
    }

    /// A shard sends nothing to itself, and the numbers of its batches to another shard grow.
    fn check_batches(&self, entries: &[JournalEntry]) -> Option<()> {
        let mut last = self.last_of_all.clone();
        for entry in entries {
            let (JournalEntry::Batch { to, .. } | JournalEntry::Acknowledged { to, .. }) = entry;
            let last = last.get_mut(usize::from(*to)).filter(|_| *to != self.owner.shard)?;
            if let JournalEntry::Batch { number, .. } = entry {
                if number <= last {
                    return None;
                }
                *last = *number;
            }
        }
        Some(())
    }

    /// Counts the URLs in a block of the journal, and those missing before it, unless a fully acknowledged file may
    /// have been in between.
    fn count_sent(&mut self, number: u32, head: BlockHead) {
        let is_next = self.file_before.map_or(number == 0, |before| before.saturating_add(1) == number);
        if !self.is_first_block || is_next {
            self.found.sent_lost += head.first.saturating_sub(self.found.next_sent);
        }
        self.found.next_sent = head.first + u64::from(head.count);
        self.is_first_block = false;
    }

    fn is_cut(&self, place: RecordPlace) -> bool {
        // Segments of other shards are closed, so they lost nothing.
        place.shard == self.owner.shard && self.segments.get(&place.segment).is_some_and(|end| place.offset >= *end)
    }

    fn end_of(&mut self, file: LogFile) {
        let reader = std::mem::take(&mut self.reader);
        self.found.append_at.insert(file, reader.append_at());
        if reader.torn_bytes() > 0 {
            self.found.torn.push((file, reader.torn_bytes()));
        }
        if reader.damaged_bytes() > 0 {
            self.found.damaged.push((file, reader.damaged_bytes()));
        }
        if let LogFile::Journal(number) = file {
            let last = std::mem::replace(&mut self.last, vec![0; usize::from(self.shards)]);
            let is_damaged = reader.damaged_bytes() > 0;
            self.found.journal.push(JournalFile { number, bytes: reader.append_at(), is_damaged, last });
            (self.file_before, self.is_first_block) = (Some(number), true);
        }
        self.file = self.next.pop_front();
    }
}

/// The entries of a log, by their numbers.
#[derive(Debug, Default)]
pub(super) struct EntryCount {
    /// Entries that came.
    came: u64,
    /// Entries that are known to exist.
    next: u64,
}

impl EntryCount {
    pub(super) fn block(&mut self, head: BlockHead) {
        self.came += u64::from(head.count);
        self.at_least(head.first + u64::from(head.count));
    }

    pub(super) fn at_least(&mut self, count: u64) {
        self.next = self.next.max(count);
    }

    pub(super) fn lost(&self) -> u64 {
        self.next.saturating_sub(self.came)
    }
}

/// URLs to fetch again.
#[derive(Debug, Default)]
pub struct Reopened {
    lost: BTreeSet<u64>,
    failed: Bits,
    /// No word before this one has a bit set.
    word: usize,
}

impl Iterator for Reopened {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if let Some(number) = self.lost.pop_first() {
            return Some(number);
        }
        while let Some(word) = self.failed.0.get_mut(self.word) {
            if *word == 0 {
                self.word += 1;
                continue;
            }
            let bit = word.trailing_zeros();
            *word &= *word - 1;
            return Some(64 * self.word as u64 + u64::from(bit));
        }
        None
    }
}

/// Whether the failure means that a host does not answer.
fn is_silence(failure: Failure) -> bool {
    failure.is_transient() || matches!(failure, Failure::HostDead | Failure::RobotsUnreachable)
}

/// A bit for each URL.
#[derive(Clone, Debug, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, number: u64, value: bool) {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        if value { self.0[word] |= bit } else { self.0[word] &= !bit }
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn get(&self, number: u64) -> bool {
        self.0.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests;
