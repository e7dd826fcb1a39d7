//! What is known about a shard's URLs: its logs, joined.
//!
//! Decides: the log of ends is read first, and the last end of each URL is kept; then come the URLs, each with its
//! last end. A URL that found no room waits like others, and is listed after them, once, unless it was accepted
//! later. There may be any number of them, so beyond [`ASIDE_MAX`] each further pass lists a part, by hash. Missing
//! entries are counted in URLs, as in `replay`. While a crawl runs, its logs grow during reading: only gaps are
//! counted, and further passes end where the first did.
//! Invariants: every accepted URL that can be read is listed once; nothing is changed.
//! Limits: 8 bytes a URL, about [`ASIDE_MAX`] hashes, [`DETAILS_MAX`] details of failures, and one block. Times
//! end in 2106.
//! Leaves to others: reading files, printing (`cli`). The next run detects lost records.

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::block::{BlockHead, Owner};
use super::ends::CUTS;
use super::reader::LogReader;
use super::replay::EntryCount;
use super::{End, EndEntries, EndKind, HostNote, LogFile, UrlEntries};
use crate::backlinks::SiteLink;
use crate::hops::Hops;
use crate::outcome::Interstitial;
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_url::{FoundUrl, UrlBatch};

/// The logs of one shard, being turned into a list.
#[derive(Debug)]
pub struct Listing {
    owner: Owner,
    is_running: bool,
    /// The current pass; `None`: everything is read.
    pass: Option<Pass>,
    reader: LogReader,
    lasts: Vec<LastEnd>,
    /// Details of failures, by the URLs' numbers.
    details: HashMap<u64, Box<str>>,
    /// Hashes of URLs that found no room and were not accepted so far: of those, one of `parts` parts.
    aside: HashSet<u64>,
    parts: u64,
    has_aside: bool,
    /// Bytes of the URLs' log in its first pass.
    urls_bytes: u64,
    ends: EntryCount,
    urls: EntryCount,
    damage: Damage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pass {
    Ends,
    Urls,
    /// Reads the URLs again, for those of a part that found no room.
    FindAside(u64),
    /// Lists that part.
    ListAside(u64),
}

/// An item of the logs.
#[derive(PartialEq, Eq, Debug)]
pub enum ListingStep<'a> {
    /// A host has asked for something; all of these come before the first URL.
    Host(HostNote),
    /// A site was found to link to another one; these come before the first URL, too.
    Link(SiteLink),
    /// A URL.
    Url(Listed<'a>),
}

/// A URL and its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed<'a> {
    /// Its text.
    pub text: &'a str,
    /// The page that linked to it first, or redirected to it; `None` if it is a seed or unknown.
    pub via: Option<&'a str>,
    /// The bits of its `Hops`.
    pub depth: u16,
    /// Its state.
    pub state: UrlState,
    /// Requests that were made for it; 0 while it waits.
    pub tries: u8,
    /// Whether its body was that of a recently stored page.
    pub is_duplicate: bool,
    /// How the crawler was kept out, if the response says so.
    pub interstitial: Option<Interstitial>,
    /// How its body was cut, if it was.
    pub cut: Option<Truncated>,
    /// When it ended, in seconds since 1970; `None` while it waits.
    pub seconds: Option<u64>,
    /// Details of how it failed; empty if there are none.
    pub detail: &'a str,
}

impl<'a> Listed<'a> {
    /// A URL that waits.
    pub fn waiting(text: &'a str, via: Option<&'a str>, depth: u16) -> Listed<'a> {
        let (state, tries, seconds) = (UrlState::Waiting, 0, None);
        let (is_duplicate, interstitial, cut, detail) = (false, None, None, "");
        Listed { text, via, depth, state, tries, is_duplicate, interstitial, cut, seconds, detail }
    }
}

/// The state of a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UrlState {
    /// It has not ended.
    Waiting,
    /// It found no room in the visited set, or seeds still waited when the run ended. It waits for the next run.
    SetAside,
    /// It ended with a response of this status.
    Fetched(u16),
    /// It ended without one.
    Failed(Failure),
}

/// Parts of the logs that are not as they were written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Damage {
    /// Bytes of an incomplete block at a log's end; the next run cuts them.
    pub torn: Vec<(LogFile, u64)>,
    /// Damaged bytes, by log.
    pub damaged: Vec<(LogFile, u64)>,
    /// Accepted URLs that are missing.
    pub urls_lost: u64,
    /// Ends that are missing: their URLs are listed in their earlier state.
    pub ends_lost: u64,
}

impl Listing {
    /// The logs of `owner`; `is_running` if they may grow during reading.
    pub fn new(owner: Owner, is_running: bool) -> Listing {
        Listing {
            owner,
            is_running,
            pass: Some(Pass::Ends),
            reader: LogReader::default(),
            lasts: Vec::new(),
            details: HashMap::new(),
            aside: HashSet::new(),
            parts: 1,
            has_aside: true,
            urls_bytes: 0,
            ends: EntryCount::default(),
            urls: EntryCount::default(),
            damage: Damage::default(),
        }
    }

    /// Leaves out URLs that found no room.
    pub fn without_aside(self) -> Listing {
        Listing { has_aside: false, ..self }
    }

    /// What to read next, and from where; `None` when everything is read.
    pub fn next_read(&self) -> Option<(LogFile, u64)> {
        self.pass.map(|pass| (pass.file(), self.reader.next_offset()))
    }

    /// Takes the bytes that [`Listing::next_read`] asked for, none at the file's end, and gives their items to
    /// `each`. An error means that the file is not this shard's.
    pub fn read(&mut self, bytes: &[u8], each: &mut dyn FnMut(ListingStep<'_>)) -> Result<(), String> {
        let Some(pass) = self.pass else { panic!("a log came that was not requested") };
        let file = pass.file();
        let bytes = match pass {
            Pass::Ends | Pass::Urls => bytes,
            Pass::FindAside(_) | Pass::ListAside(_) => {
                let left = self.urls_bytes.saturating_sub(self.reader.next_offset());
                bytes.get(..usize::try_from(left).unwrap_or(usize::MAX)).unwrap_or(bytes)
            }
        };
        self.reader.push(bytes);
        while let Some((head, payload)) = self.reader.next_block() {
            if head.kind != file.kind() || head.owner != self.owner {
                return Err(format!("{file} holds a block of another log, shard or crawl: files were mixed up"));
            }
            let is_read = match pass {
                Pass::Ends => self.ends_block(head, &payload, each),
                Pass::Urls => self.urls_block(head, &payload, each),
                Pass::FindAside(part) => entries(head, &payload).map(|entries| self.find_aside(part, &entries)),
                Pass::ListAside(part) => entries(head, &payload).map(|entries| self.list_aside(part, &entries, each)),
            };
            if is_read.is_none() {
                self.reader.reject();
            }
        }
        if bytes.is_empty() {
            self.end_of(pass);
        }
        Ok(())
    }

    /// The damage found, once everything is read.
    pub fn finish(self) -> Damage {
        Damage { urls_lost: self.urls.lost(), ends_lost: self.ends.lost(), ..self.damage }
    }

    fn ends_block(&mut self, head: BlockHead, payload: &[u8], each: &mut dyn FnMut(ListingStep<'_>)) -> Option<()> {
        let entries = EndEntries::from_payload(payload)?;
        let room = entries.ends.iter().map(|end| end.url).max().map_or(0, |last| last.saturating_add(1));
        if room > head.mark {
            return None;
        }
        let room = usize::try_from(room).ok()?;
        if room > self.lasts.len() {
            self.lasts.try_reserve(room - self.lasts.len()).ok()?;
            self.lasts.resize(room, LastEnd::default());
        }
        self.ends.block(head);
        if !self.is_running {
            self.urls.at_least(head.mark);
        }
        for end in &entries.ends {
            if let Some(last) = self.lasts.get_mut(end.url as usize) {
                *last = LastEnd::of(end);
            }
            if !self.details.is_empty() {
                self.details.remove(&end.url);
            }
        }
        let room = DETAILS_MAX.saturating_sub(self.details.len());
        self.details.extend(entries.details.into_iter().take(room));
        entries.hosts.into_iter().for_each(|note| each(ListingStep::Host(note)));
        entries.links.into_iter().for_each(|link| each(ListingStep::Link(link)));
        Some(())
    }

    fn urls_block(&mut self, head: BlockHead, payload: &[u8], each: &mut dyn FnMut(ListingStep<'_>)) -> Option<()> {
        let entries = entries(head, payload)?;
        self.urls.block(head);
        if !self.is_running {
            self.ends.at_least(head.mark);
        }
        if self.has_aside {
            self.find_aside(0, &entries);
            while self.aside.len() > ASIDE_MAX {
                self.parts *= 2;
                let parts = self.parts;
                self.aside.retain(|hash| hash % parts == 0);
                // What was removed leaves tombstones, with which the set would grow beyond what it holds.
                self.aside.shrink_to_fit();
            }
        }
        for (number, found) in (head.first..).zip(entries.accepted.found()) {
            let last = self.lasts.get(number as usize).copied().unwrap_or_default();
            let detail = self.details.get(&number).map(|words| &**words).unwrap_or_default();
            each(ListingStep::Url(Listed { detail, ..last.listed(found) }));
        }
        Some(())
    }

    /// Those of a part that found no room are noted, and those that were accepted later are not.
    fn find_aside(&mut self, part: u64, entries: &UrlEntries) {
        let parts = self.parts;
        let of_part = |found: FoundUrl<'_>| Some(self.hash(found.url)).filter(|hash| hash % parts == part);
        let aside: Vec<u64> = without_external(&entries.aside).filter_map(of_part).collect();
        let is_none = aside.is_empty() && self.aside.is_empty();
        let accepted: Vec<u64> = entries.accepted.found().filter(|_| !is_none).filter_map(of_part).collect();
        // First these: a block of a redistributed log may hold one URL in both lists.
        self.aside.extend(aside);
        for hash in accepted {
            self.aside.remove(&hash);
        }
    }

    fn list_aside(&mut self, part: u64, entries: &UrlEntries, each: &mut dyn FnMut(ListingStep<'_>)) {
        for found in without_external(&entries.aside) {
            let hash = self.hash(found.url);
            if hash % self.parts == part && self.aside.remove(&hash) {
                let waiting = Listed::waiting(found.url, found.via, found.depth);
                each(ListingStep::Url(Listed { state: UrlState::SetAside, ..waiting }));
            }
        }
    }

    /// Keyed by what servers do not know: they choose the URLs.
    fn hash(&self, text: &str) -> u64 {
        xxh3_64_with_seed(text.as_bytes(), self.owner.crawl)
    }

    fn end_of(&mut self, pass: Pass) {
        let reader = std::mem::take(&mut self.reader);
        if pass == Pass::Urls {
            self.urls_bytes = reader.next_offset();
        }
        // Further passes read what was checked before.
        if matches!(pass, Pass::Ends | Pass::Urls) {
            if reader.torn_bytes() > 0 && !self.is_running {
                self.damage.torn.push((pass.file(), reader.torn_bytes()));
            }
            if reader.damaged_bytes() > 0 {
                self.damage.damaged.push((pass.file(), reader.damaged_bytes()));
            }
        }
        self.pass = match pass {
            Pass::Ends => Some(Pass::Urls),
            Pass::Urls if self.aside.is_empty() && self.parts == 1 => None,
            Pass::Urls => Some(Pass::ListAside(0)),
            Pass::FindAside(part) => Some(Pass::ListAside(part)),
            Pass::ListAside(part) if part + 1 < self.parts => Some(Pass::FindAside(part + 1)),
            Pass::ListAside(_) => None,
        };
    }
}

impl Pass {
    fn file(self) -> LogFile {
        match self {
            Pass::Ends => LogFile::Ends,
            Pass::Urls | Pass::FindAside(_) | Pass::ListAside(_) => LogFile::Urls,
        }
    }
}

/// The last end of a URL, in 8 bytes.
#[derive(Clone, Copy, Default, Debug)]
struct LastEnd {
    /// Since 1970.
    seconds: u32,
    /// 0: it waits; below [`FAILURES_FROM`] a status, then the failures of the list.
    code: u16,
    /// [`IS_DUPLICATE`] and [`IS_CHALLENGE`], and from [`CUT_SHIFT`] on 0 or the number of a cut.
    flags: u8,
    tries: u8,
}

impl LastEnd {
    fn of(end: &End) -> LastEnd {
        let code = match end.kind {
            EndKind::Reopened => return LastEnd::default(),
            EndKind::Fetched(status) => status,
            EndKind::Failed(failure) => FAILURES_FROM + failure as u16,
        };
        let seconds = u32::try_from(end.seconds).unwrap_or(u32::MAX);
        let flags = [(end.is_duplicate, IS_DUPLICATE), (end.is_challenge, IS_CHALLENGE)];
        let flags = flags.into_iter().filter(|(is_so, _)| *is_so).fold(0, |all, (_, flag)| all | flag);
        let cut = end.cut.and_then(|cut| CUTS.iter().position(|known| *known == cut)).map_or(0, |cut| cut as u8 + 1);
        LastEnd { seconds, code, flags: flags | cut << CUT_SHIFT, tries: end.tries }
    }

    fn listed(self, found: FoundUrl<'_>) -> Listed<'_> {
        let FoundUrl { via, depth, url: text } = found;
        let state = match self.code {
            0 => UrlState::Waiting,
            status @ 1..FAILURES_FROM => UrlState::Fetched(status),
            code => Failure::ALL
                .get(usize::from(code - FAILURES_FROM))
                .map_or(UrlState::Waiting, |failure| UrlState::Failed(*failure)),
        };
        let seconds = (self.code > 0).then_some(u64::from(self.seconds));
        let [is_duplicate, is_challenge] = [IS_DUPLICATE, IS_CHALLENGE].map(|flag| self.flags & flag != 0);
        let interstitial = match self.code {
            402 => Some(Interstitial::Payment),
            _ => is_challenge.then_some(Interstitial::Challenge),
        };
        let cut = usize::from(self.flags >> CUT_SHIFT).checked_sub(1).and_then(|cut| CUTS.get(cut).copied());
        Listed { text, via, depth, state, tries: self.tries, is_duplicate, interstitial, cut, seconds, detail: "" }
    }
}

/// URLs of the crawl itself: those outside of its scope are listed elsewhere.
fn without_external(aside: &UrlBatch) -> impl Iterator<Item = FoundUrl<'_>> {
    aside.found().filter(|found| found.depth != Hops::EXTERNAL.bits())
}

/// The content of a block of the URLs' log.
fn entries(head: BlockHead, payload: &[u8]) -> Option<UrlEntries> {
    UrlEntries::from_payload(payload).filter(|entries| entries.accepted.len() == head.count as usize)
}

/// The set of these takes 75 MB, or twice that if many are removed again.
const ASIDE_MAX: usize = if cfg!(test) { 100 } else { 6_000_000 };
/// Further details are left out.
const DETAILS_MAX: usize = 1 << 16;
const FAILURES_FROM: u16 = 1_000;
const IS_DUPLICATE: u8 = 1;
const IS_CHALLENGE: u8 = 2;
const CUT_SHIFT: u32 = 2;

#[cfg(test)]
mod tests;
