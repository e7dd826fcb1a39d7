//! Taking up an earlier run: its logs, read back in one pass.
//!
//! Decides: first the log of ends, of which two bits for each URL are kept; then the URLs, each with the word whether it is over; then
//! the journal. A URL whose record is lost is not over; nor, where that is asked for, is one that failed, unless robots.txt
//! forbids it. What is missing is told in URLs: each log's blocks are numbered, and
//! say how many entries the other log has.
//! Invariants: every URL comes once, in the order of acceptance.
//! Limits: two bits for each URL, the numbers of those that are opened again, notes on hosts as they come, and one block.
//! Leaves to others: what is done with an entry (`shard`), reading and cutting files (`disk`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::block::{BlockHead, LogKind, Owner};
use super::journal::{self, JournalEntry};
use super::reader::LogReader;
use super::{End, EndEntries, EndKind, HostNote, LogFile, RecordPlace, UrlEntries};
use crate::outcome::Failure;
use crate::url::UrlBatch;

/// An earlier run that is taken up.
#[derive(Debug)]
pub struct Replay {
    owner: Owner,
    shards: u16,
    /// What is read now, and what comes after it.
    file: Option<LogFile>,
    next: VecDeque<LogFile>,
    reader: LogReader,
    over: Bits,
    answered: Bits,
    /// Bytes of each segment: a record behind its end is lost.
    segments: BTreeMap<u32, u64>,
    reopened: BTreeSet<u64>,
    /// URLs that failed and are asked for again; `None`: they are over.
    failed: Option<BTreeSet<u64>>,
    ends: Count,
    urls: Count,
    /// By shard, the last batch of the journal file that is read.
    last: Vec<u64>,
    found: Found,
}

/// What an earlier run has left, as far as it is read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// Where each log goes on.
    pub ends: BTreeMap<LogFile, u64>,
    /// Torn bytes at the end of a log, to be cut.
    pub torn: Vec<(LogFile, u64)>,
    /// Bytes that are damaged and stay, by log.
    pub damaged: Vec<(LogFile, u64)>,
    /// Accepted URLs that are missing.
    pub urls_lost: u64,
    /// Ends that are missing: their pages are fetched again.
    pub ends_lost: u64,
    /// URLs that are over and whose record is lost: they are asked for again.
    pub records_lost: u64,
    /// URLs that failed and are asked for again, because that was wanted.
    pub retried: u64,
    /// The number of the next URL, and of the next end.
    pub next_url: u64,
    /// The number of the next end.
    pub next_end: u64,
    /// Files of the journal, with the last batch in each to every shard.
    pub journal: Vec<(u32, u64, Vec<u64>)>,
}

impl Found {
    /// What people should know of it.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (file, bytes) in &self.torn {
            notes.push(format!("{bytes} bytes of a torn block at the end of {file} cut"));
        }
        for (file, bytes) in &self.damaged {
            notes.push(format!("{bytes} bytes of {file} are damaged and left as they are"));
        }
        for (count, what) in [
            (self.urls_lost, "URLs are missing from its log and lost to this crawl, unless they are found again"),
            (self.ends_lost, "URLs may be over and are fetched again: the word that they are is missing"),
            (self.records_lost, "URLs are fetched again: their records are missing"),
            (self.retried, "URLs are asked for again: they failed"),
        ] {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        }
        notes
    }

    /// Adds what was found in the shard's journal, which was read for itself.
    pub(super) fn with_journal(mut self, journal: Found) -> Found {
        // A journal's blocks may know of URLs that the log is missing.
        self.urls_lost += journal.next_url.saturating_sub(self.next_url);
        self.next_url = self.next_url.max(journal.next_url);
        self.ends.extend(journal.ends);
        self.torn.extend(journal.torn);
        self.damaged.extend(journal.damaged);
        self.journal = journal.journal;
        self
    }
}

/// What a piece of a log says.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplayStep<'a> {
    /// A URL was accepted.
    Url {
        /// Its number.
        number: u64,
        /// The bits of its `Hops`.
        depth: u16,
        /// Its text.
        text: &'a str,
        /// Whether it needs no fetch any more.
        is_over: bool,
        /// Whether its last end was a response.
        was_answered: bool,
    },
    /// These URLs found no room.
    Aside(UrlBatch),
    /// How a URL ended, before it comes itself; the last one holds.
    End(End),
    /// A host has asked for something.
    Host(HostNote),
    /// URLs for another shard, which may not have them.
    Batch {
        /// The shard.
        to: u16,
        /// The number of the batch.
        number: u64,
        /// The URLs.
        urls: UrlBatch,
    },
    /// Another shard has all batches up to this.
    Acknowledged {
        /// The shard.
        to: u16,
        /// The last of them.
        number: u64,
    },
}

impl Replay {
    /// The logs of `owner` in a crawl of `shards` shards, with these files of a journal, in their order, and with segments of
    /// so many bytes. One that is not there was taken away by somebody, and is not missed.
    pub fn new(owner: Owner, shards: u16, journal_files: &[u32], segments: BTreeMap<u32, u64>) -> Replay {
        let journal = journal_files.iter().map(|file| LogFile::Journal(*file));
        let files = [LogFile::Ends, LogFile::Urls].into_iter().chain(journal).collect();
        Replay { segments, ..Replay::of(owner, shards, files) }
    }

    /// The same of the journal alone.
    pub fn of_journal(owner: Owner, shards: u16, journal_files: &[u32]) -> Replay {
        Replay::of(owner, shards, journal_files.iter().map(|file| LogFile::Journal(*file)).collect())
    }

    fn of(owner: Owner, shards: u16, mut next: VecDeque<LogFile>) -> Replay {
        Replay {
            owner,
            shards,
            file: next.pop_front(),
            next,
            reader: LogReader::default(),
            over: Bits::default(),
            answered: Bits::default(),
            segments: BTreeMap::new(),
            reopened: BTreeSet::new(),
            failed: None,
            ends: Count::default(),
            urls: Count::default(),
            last: vec![0; usize::from(shards)],
            found: Found::default(),
        }
    }

    /// URLs that failed are not over, but for those that robots.txt forbids.
    pub fn with_failed_again(mut self) -> Replay {
        self.failed = Some(BTreeSet::new());
        self
    }

    /// Whose logs these are.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// What is to be read next, and from where; `None` when everything is read.
    pub fn next_read(&self) -> Option<(LogFile, u64)> {
        self.file.map(|file| (file, self.reader.next_offset()))
    }

    /// Takes the bytes that [`Replay::next_read`] asked for, none at the file's end; gives what they say to `each`. An error says
    /// that the file is not this shard's.
    pub fn read(&mut self, bytes: &[u8], each: &mut dyn FnMut(ReplayStep<'_>)) -> Result<(), String> {
        let Some(file) = self.file else { panic!("a log came that nobody asked for") };
        self.reader.push(bytes);
        while let Some((head, payload)) = self.reader.next_block() {
            let (kind, owner) = (file.kind(), self.owner);
            if head.kind != kind || head.owner != owner {
                let held = head.owner;
                let what = if held.crawl != owner.crawl {
                    "another crawl".to_owned()
                } else {
                    format!("shard {} ({:?})", held.shard, head.kind)
                };
                return Err(format!(
                    "{file} holds a block of {what}: files were mixed up; put the right one in its place"
                ));
            }
            if self.block(kind, head, &payload, each).is_none() {
                self.reader.reject(payload.len() as u64);
            }
        }
        if bytes.is_empty() {
            self.end_of(file);
        }
        Ok(())
    }

    /// What was left, when everything is read; URLs that are to be asked for again, by their numbers.
    pub fn finish(mut self) -> (Found, BTreeSet<u64>) {
        self.found.urls_lost = self.urls.lost();
        self.found.ends_lost = self.ends.lost();
        (self.found.next_url, self.found.next_end) = (self.urls.next, self.ends.next);
        self.found.records_lost = self.reopened.len() as u64;
        let mut failed = self.failed.unwrap_or_default();
        self.found.retried = failed.len() as u64;
        self.reopened.append(&mut failed);
        (self.found, self.reopened)
    }

    /// A block; `None` when its payload is not what its kind says.
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
                    let is_lost = end.place.is_some_and(|place| self.is_cut(place));
                    if is_lost {
                        self.reopened.insert(end.url);
                    } else {
                        self.reopened.remove(&end.url);
                    }
                    let mut is_again = false;
                    if let Some(failed) = &mut self.failed {
                        is_again = matches!(end.kind, EndKind::Failed(failure) if failure != Failure::RobotsDenied);
                        if is_again {
                            failed.insert(end.url);
                        } else {
                            failed.remove(&end.url);
                        }
                    }
                    self.over.set(end.url, !is_lost && !is_again && end.kind != EndKind::Reopened);
                    self.answered.set(end.url, matches!(end.kind, EndKind::Fetched(_)));
                    each(ReplayStep::End(*end));
                }
                entries.hosts.into_iter().for_each(|note| each(ReplayStep::Host(note)));
            }
            LogKind::Urls => {
                let entries = UrlEntries::from_payload(payload)?;
                if entries.accepted.len() != head.count as usize {
                    return None;
                }
                self.urls.block(head);
                self.ends.at_least(head.mark);
                for (number, (depth, text)) in (head.first..).zip(entries.accepted.iter()) {
                    let (is_over, was_answered) = (self.over.get(number), self.answered.get(number));
                    each(ReplayStep::Url { number, depth, text, is_over, was_answered });
                }
                if !entries.aside.is_empty() {
                    each(ReplayStep::Aside(entries.aside));
                }
            }
            LogKind::Journal => {
                self.urls.at_least(head.mark);
                for entry in journal::entries(payload, self.shards)? {
                    each(match entry {
                        JournalEntry::Batch { to, number, urls } => {
                            self.last[usize::from(to)] = number;
                            ReplayStep::Batch { to, number, urls }
                        }
                        JournalEntry::Acknowledged { to, number } => ReplayStep::Acknowledged { to, number },
                    });
                }
            }
        }
        Some(())
    }

    fn is_cut(&self, place: RecordPlace) -> bool {
        // Segments of other shards are closed: those lost nothing.
        place.shard == self.owner.shard && self.segments.get(&place.segment).is_some_and(|end| place.offset >= *end)
    }

    fn end_of(&mut self, file: LogFile) {
        let reader = std::mem::take(&mut self.reader);
        self.found.ends.insert(file, reader.end());
        if reader.torn_bytes() > 0 {
            self.found.torn.push((file, reader.torn_bytes()));
        }
        if reader.damaged_bytes() > 0 {
            self.found.damaged.push((file, reader.damaged_bytes()));
        }
        if let LogFile::Journal(number) = file {
            let last = std::mem::replace(&mut self.last, vec![0; usize::from(self.shards)]);
            self.found.journal.push((number, reader.end(), last));
        }
        self.file = self.next.pop_front();
    }
}

/// The entries of a log, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Count {
    /// Entries that came.
    came: u64,
    /// Entries that there are, as far as is known.
    next: u64,
}

impl Count {
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

/// A bit for each URL.
#[derive(Debug, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, number: u64, value: bool) {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        if value { self.0[word] |= bit } else { self.0[word] &= !bit }
    }

    fn get(&self, number: u64) -> bool {
        self.0.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Log;
    use super::*;
    use crate::lab::Rng;

    const OWNER: Owner = Owner { crawl: 7, shard: 1 };

    /// Files by their names.
    type Files = BTreeMap<LogFile, Vec<u8>>;

    fn write(log: &mut Log, files: &mut Files) {
        let mut appends: Vec<_> = std::iter::from_fn(|| log.take_append(true)).collect();
        log.freeze_ends();
        log.confirm_facts();
        appends.extend(std::iter::from_fn(|| log.take_ends()));
        log.confirm_ends();
        for append in appends {
            let file = files.entry(append.file).or_default();
            assert_eq!(append.position, file.len() as u64);
            file.extend(append.bytes);
        }
    }

    fn end(url: u64, segment: u32, offset: u64) -> End {
        let place = Some(RecordPlace { shard: OWNER.shard, segment, offset });
        End { url, kind: EndKind::Fetched(200), tries: 1, is_duplicate: false, seconds: 1_800_000_000, place }
    }

    /// Ten URLs in blocks of their own, of which the even ones are over, with records of 100 bytes; a batch for another shard.
    fn written() -> Files {
        let (mut log, mut files) = (Log::new(OWNER, 3, 0), Files::new());
        for number in 0..10 {
            assert_eq!(log.accept(number as u16, &format!("http://a.test/{number}")), number);
            if number % 2 == 0 {
                log.end(end(number, 0, 100 * number));
            }
            let mut urls = UrlBatch::new();
            urls.push(0, "http://b.test/");
            log.send(2, number + 1, &urls);
            write(&mut log, &mut files);
        }
        files
    }

    /// Which URLs are over, which batches there are, and what was found.
    type Taken = (BTreeMap<u64, bool>, Vec<u64>, Found);

    /// What is read.
    fn read(files: &Files, segment_bytes: u64) -> Result<Taken, String> {
        let journal: Vec<u32> = files.keys().filter_map(|file| file.journal()).collect();
        let mut replay = Replay::new(OWNER, 3, &journal, BTreeMap::from([(0, segment_bytes)]));
        let (mut urls, mut batches) = (BTreeMap::new(), Vec::new());
        while let Some((file, at)) = replay.next_read() {
            let bytes = files.get(&file).map(Vec::as_slice).unwrap_or_default();
            let piece = &bytes[at as usize..bytes.len().min(at as usize + 1_000)];
            replay.read(piece, &mut |step| match step {
                ReplayStep::Url { number, depth, text, is_over, .. } => {
                    assert_eq!((u64::from(depth), text), (number, format!("http://a.test/{number}").as_str()));
                    urls.insert(number, is_over);
                }
                ReplayStep::Batch { to: 2, number, urls } if urls.len() == 1 => batches.push(number),
                step => panic!("{step:?}"),
            })?;
        }
        let (found, reopened) = replay.finish();
        assert_eq!(found.records_lost, reopened.len() as u64);
        Ok((urls, batches, found))
    }

    #[test]
    fn there_and_back() {
        let files = written();
        let (urls, batches, found) = read(&files, 1_000).expect("our own");
        assert!(urls.iter().all(|(number, is_over)| *is_over == (number % 2 == 0)) && urls.len() == 10);
        assert_eq!(batches, (1..=10).collect::<Vec<_>>());
        let lengths = files.iter().map(|(file, bytes)| (*file, bytes.len() as u64)).collect();
        let journal = vec![(0, files[&LogFile::Journal(0)].len() as u64, vec![0, 0, 10])];
        assert_eq!(found, Found { ends: lengths, next_url: 10, next_end: 5, journal, ..Found::default() });
    }

    #[test]
    fn a_url_whose_record_is_lost_is_asked_for_again_until_it_is_there() {
        let mut files = written();
        let over = |files: &Files, bytes| {
            let (urls, _, found) = read(files, bytes).expect("our own");
            (
                urls.into_iter().filter(|(_, is_over)| *is_over).map(|(number, _)| number).collect::<Vec<_>>(),
                found.records_lost,
            )
        };
        assert_eq!(over(&files, 350), (vec![0, 2], 3));
        // The next run writes down that they are owed, and is broken off; its segment is another one.
        let mut log = Log::new(OWNER, 3, 1);
        log.take_up(&read(&files, 350).expect("our own").2);
        for url in [4, 6, 8] {
            log.end(End { kind: EndKind::Reopened, place: None, ..end(url, 0, 0) });
        }
        write(&mut log, &mut files);
        assert_eq!(over(&files, 10_000), (vec![0, 2], 0), "whatever is behind the end now");
        log.end(end(6, 1, 0));
        write(&mut log, &mut files);
        assert_eq!(over(&files, 350), (vec![0, 2, 6], 0));
    }

    #[test]
    fn what_failed_is_opened_again_if_that_is_wanted() {
        let (mut log, mut files) = (Log::new(OWNER, 3, 0), Files::new());
        let failed = |url, failure| End { kind: EndKind::Failed(failure), place: None, ..end(url, 0, 0) };
        for url in 0..5 {
            log.accept(0, &format!("http://a.test/{url}"));
        }
        // The last word holds: 1 came in the end, and 2 failed in the end.
        log.end(failed(0, Failure::RobotsDenied));
        log.end(failed(1, Failure::Reset));
        log.end(end(1, 0, 100));
        log.end(end(2, 0, 200));
        log.end(failed(2, Failure::HostDead));
        log.end(end(3, 0, 900));
        write(&mut log, &mut files);
        let open = |is_wanted: bool, segment_bytes| {
            let replay = Replay::new(OWNER, 3, &[], BTreeMap::from([(0, segment_bytes)]));
            let mut replay = if is_wanted { replay.with_failed_again() } else { replay };
            let mut open = Vec::new();
            while let Some((file, at)) = replay.next_read() {
                let bytes = files.get(&file).map(Vec::as_slice).unwrap_or_default();
                let each = &mut |step: ReplayStep<'_>| {
                    if let ReplayStep::Url { number, is_over: false, .. } = step {
                        open.push(number);
                    }
                };
                replay.read(&bytes[at as usize..], each).expect("our own");
            }
            let (found, reopened) = replay.finish();
            (open, reopened.into_iter().collect::<Vec<_>>(), found.records_lost, found.retried)
        };
        assert_eq!(open(false, 1_000), (vec![4], vec![], 0, 0));
        assert_eq!(open(true, 1_000), (vec![2, 4], vec![2], 0, 1));
        assert_eq!(open(true, 500), (vec![2, 3, 4], vec![2, 3], 1, 1), "beside a lost record");
    }

    #[test]
    fn files_of_others_are_refused() {
        let mut files = written();
        for owner in [Owner { shard: 2, ..OWNER }, Owner { crawl: 8, ..OWNER }] {
            let (mut log, mut others) = (Log::new(owner, 3, 0), Files::new());
            log.accept(0, "http://c.test/");
            write(&mut log, &mut others);
            let mut mixed = files.clone();
            mixed.insert(LogFile::Urls, others[&LogFile::Urls].clone());
            assert!(read(&mixed, 1_000).is_err_and(|error| error.contains("mixed up")));
        }
        let ends = files[&LogFile::Ends].clone();
        files.insert(LogFile::Urls, ends);
        assert!(read(&files, 1_000).is_err_and(|error| error.contains("Ends")));
    }

    /// Whatever is flipped, cut or gone: what is read is true, and what is missing is told.
    #[test]
    fn damage_is_told_in_urls_and_never_wrong() {
        let whole = written();
        let (truth, _, _) = read(&whole, 1_000).expect("our own");
        let mut told = [0; 3];
        for seed in 0..11_000 {
            let (mut rng, mut files) = (Rng::new(seed), whole.clone());
            let names: Vec<LogFile> = files.keys().copied().collect();
            let name = names[rng.below(names.len() as u64) as usize];
            let bytes = files.get_mut(&name).expect("a file");
            let length = bytes.len() as u64;
            match seed {
                0..10_000 => bytes[rng.below(length) as usize] ^= 1 << rng.below(8),
                10_000..10_990 => bytes.truncate(rng.below(length) as usize),
                _ => drop(files.remove(&name)),
            }
            let (urls, batches, found) = read(&files, 1_000).expect("damaged bytes are nobody's");
            for (number, is_over) in &urls {
                assert!(truth[number] || !is_over, "seed {seed}: {number} is over and was not");
            }
            let open = urls.iter().filter(|(number, is_over)| truth[number] && !**is_over).count() as u64;
            let is_cut_at_a_block = found.torn.is_empty() && found.damaged.is_empty() && seed >= 10_000;
            if name == LogFile::Urls {
                // No other log knows of the last URL.
                assert!(
                    [0, 1].contains(&(10 - urls.len() as u64 - found.urls_lost)),
                    "seed {seed}: {urls:?} {found:?}"
                );
                assert!(urls.contains_key(&9) == (found.urls_lost == 10 - urls.len() as u64), "seed {seed}");
            } else {
                assert_eq!(urls.len(), 10, "seed {seed}");
            }
            if name == LogFile::Ends {
                assert_eq!(found.ends_lost, open, "seed {seed}");
            }
            assert!(is_cut_at_a_block || !found.torn.is_empty() || !found.damaged.is_empty(), "seed {seed}");
            assert!(batches.is_sorted() && (name.journal().is_some() || batches.len() == 10), "seed {seed}");
            for (count, is_told) in
                told.iter_mut().zip([found.urls_lost > 0, found.ends_lost > 0, !found.torn.is_empty()])
            {
                *count += u64::from(is_told);
            }
        }
        assert!(told.iter().all(|count| *count > 300), "{told:?}");
    }
}
