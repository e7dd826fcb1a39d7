//! Rewrites the logs of a crawl of N shards for M shards.
//!
//! Decides: each URL goes to the log of the shard that owns it now, with a new number. So do its ends, if it is
//! final, each note on a host, and the links to its site. URLs in flight between shards are set aside at their owner,
//! which checks them when it starts; they are written before all accepted ones, as a list of URLs expects it. The
//! journal is empty, and batch numbers start again.
//! Invariants: a host's URLs keep their order; final URLs stay final, and their records stay where they are; a URL
//! whose record is lost waits; no segment gets the number of one that an end points to.
//! Limits: one shard is read at a time. That takes the state of [`Replay`], eight bytes for each of its URLs, some
//! thirty for each site that others link to, and a block for each of the new logs. Notes on resting hosts are kept
//! until the end. Details of failures are dropped. So are links to sites without any URL in the shard. The shard's
//! log of ends is read twice.
//! Leaves to others: files, and replacing the earlier logs atomically (`boot`).

use std::collections::{BTreeMap, HashMap};

use super::replay::{Replay, ReplayStep};
use super::replayed::Replayed;
use super::{Append, End, EndKind, HostNote, Log, LogFile, Owner};
use crate::hops::Hops;
use crate::route::{Partition, shard_of_key};
use ringcrawl_base::IntMap;
use ringcrawl_base::time::Duration;
use ringcrawl_url::{FoundUrl, SiteKey, Url, UrlBatch};

/// The files of the earlier and the new shards.
pub trait RedistributedFiles {
    /// Bytes of an earlier shard's log from `position` on; none at its end.
    fn read(&mut self, shard: u16, file: LogFile, position: u64) -> Result<Vec<u8>, String>;
    /// Whole blocks for the end of a new shard's log.
    fn append(&mut self, shard: u16, append: Append) -> Result<(), String>;
}

/// What an earlier shard's directory holds in addition to its logs of URLs and ends.
#[derive(Clone, Debug, Default)]
pub struct EarlierShard {
    /// Files of its journal, in order.
    pub journal: Vec<u32>,
    /// Its segments, all of them closed, with their bytes.
    pub segments: BTreeMap<u32, u64>,
}

/// The result of a redistribution.
#[derive(Clone, Debug, Default)]
pub struct Redistributed {
    /// What was found, by earlier shard.
    pub found: Vec<Replayed>,
    /// By new shard: segments in its directory must not have a lower number. Those that ends point to may have been
    /// moved away.
    pub segments_from: Vec<u32>,
}

/// Rewrites the logs of the `earlier` shards of a crawl for the shards of `to`. An error comes from the files, or
/// means that a log is not its shard's.
pub fn redistribute(
    (crawl, rng_seed): (u64, u64),
    earlier: &[EarlierShard],
    to: Partition,
    files: &mut dyn RedistributedFiles,
) -> Result<Redistributed, String> {
    let new_shards = to.shards();
    let log = |shard| Log::new(Owner { crawl, shard }, new_shards, 0);
    let mut new = NewLogs {
        to,
        rng_seed,
        logs: (0..new_shards).map(log).collect(),
        segments_from: vec![0; usize::from(new_shards)],
        rests: HostRests::default(),
    };
    let shards = earlier.len() as u16;
    let owner = |shard| Owner { crawl, shard };
    let mut journals = Vec::new();
    for (shard, EarlierShard { journal, .. }) in (0..).zip(earlier) {
        let replay = || Replay::of_journal(owner(shard), shards, journal);
        // Twice, because the acknowledgement of a batch comes after it.
        let mut acknowledged = vec![0; earlier.len()];
        read_all(
            replay(),
            files,
            &mut |step, _| {
                if let ReplayStep::Acknowledged { to, number } = step
                    && let Some(last) = acknowledged.get_mut(usize::from(to))
                {
                    *last = number.max(*last);
                }
            },
            &mut new,
        )?;
        journals.push(read_all(
            replay(),
            files,
            &mut |step, new| {
                if let ReplayStep::Batch { to, number, urls } = step
                    && acknowledged.get(usize::from(to)).is_none_or(|last| number > *last)
                {
                    new.set_aside(&urls);
                }
            },
            &mut new,
        )?);
    }
    let mut found = Vec::new();
    for ((shard, earlier), journal) in (0..).zip(earlier).zip(journals) {
        let replay = Replay::new(owner(shard), shards, &[], earlier.segments.clone());
        let (mut over, mut linked) = (OverUrls::default(), LinkedSites::default());
        let logs = read_all(replay, files, &mut |step, new| new.take_url(step, &mut over, &mut linked), &mut new)?;
        found.push(logs.with_journal(journal));
        let ends = Replay::of_ends(owner(shard), shards);
        read_all(ends, files, &mut |step, new| new.take_end(step, &over, &linked), &mut new)?;
        new.rests.end_shard();
    }
    Ok(Redistributed { found, segments_from: new.segments_from })
}

/// Reads logs from end to end.
fn read_all(
    mut replay: Replay,
    files: &mut dyn RedistributedFiles,
    each: &mut dyn FnMut(ReplayStep<'_>, &mut NewLogs),
    new: &mut NewLogs,
) -> Result<Replayed, String> {
    let shard = replay.owner().shard;
    while let Some((file, position)) = replay.next_read() {
        let bytes = files.read(shard, file, position)?;
        let read = replay.read(&bytes, &mut |step| each(step, new));
        read.map_err(|why| format!("shard-{shard:02}/{why}"))?;
        new.write(files)?;
    }
    Ok(replay.finish().0)
}

/// The final URLs of the current shard: their new shards and numbers, by their own numbers, in runs without gaps.
#[derive(Default)]
struct OverUrls(BTreeMap<u64, Vec<u64>>);

impl OverUrls {
    /// Notes a URL, and where it is now if it is final.
    fn note(&mut self, url: u64, new: Option<(u16, u64)>) {
        let new = new.map_or(NOT_OVER, |(shard, number)| u64::from(shard) << SHARD_SHIFT | number);
        if let Some(mut last) = self.0.last_entry()
            && last.key() + last.get().len() as u64 == url
        {
            last.get_mut().push(new);
        } else {
            self.0.insert(url, vec![new]);
        }
    }

    fn of(&self, url: u64) -> Option<(u16, u64)> {
        let (first, run) = self.0.range(..=url).next_back()?;
        let new = run.get((url - first) as usize).filter(|new| **new != NOT_OVER)?;
        Some(((new >> SHARD_SHIFT) as u16, new & NUMBER_MASK))
    }
}

/// Sites that others link to, by their numbers, with the shards that own them now.
#[derive(Default)]
struct LinkedSites {
    shards: IntMap<Option<u16>>,
    /// URLs of a host often follow each other.
    last_host: Box<str>,
}

impl LinkedSites {
    fn found(&mut self, url: &Url, shard: u16, rng_seed: u64) {
        if self.shards.is_empty() || *self.last_host == *url.host() {
            return;
        }
        self.last_host = url.host().into();
        let site = SiteKey::of_host(rng_seed, url.host()).number();
        self.shards.entry(site).and_modify(|known| *known = Some(shard));
    }
}

/// How long hosts rest that several shards know: each shard's last note counts, and of these the longest.
#[derive(Default)]
struct HostRests {
    /// Until when, for how long, and the time between two requests, as the earlier shards have it.
    earlier: HashMap<Box<str>, (u64, u64, Duration)>,
    /// The same for the current shard.
    present: HashMap<Box<str>, (u64, u64, Duration)>,
}

impl HostRests {
    /// Turns a note of the current shard into the one to write.
    fn take(&mut self, note: HostNote) -> HostNote {
        let (until, lasts, delay) = (note.until_seconds, note.lasts_seconds, note.delay);
        if until == 0 && delay.is_zero() {
            self.present.remove(&note.host);
        } else {
            self.present.insert(note.host.clone(), (until, lasts, delay));
        }
        let Some((other, other_lasts, other_delay)) = self.earlier.get(&note.host).copied() else { return note };
        let (until_seconds, lasts_seconds) = (until, lasts).max((other, other_lasts));
        HostNote { until_seconds, lasts_seconds, delay: delay.max(other_delay), ..note }
    }

    /// The current shard ends.
    fn end_shard(&mut self) {
        for (host, (until, lasts, delay)) in std::mem::take(&mut self.present) {
            let known = self.earlier.entry(host).or_default();
            let (until, lasts) = (until, lasts).max((known.0, known.1));
            *known = (until, lasts, delay.max(known.2));
        }
    }
}

struct NewLogs {
    to: Partition,
    rng_seed: u64,
    logs: Vec<Log>,
    segments_from: Vec<u32>,
    rests: HostRests,
}

impl NewLogs {
    /// Handles the first pass.
    fn take_url(&mut self, step: ReplayStep<'_>, over: &mut OverUrls, linked: &mut LinkedSites) {
        match step {
            ReplayStep::Url { number, depth, text, via, is_over, .. } => {
                let rng_seed = self.rng_seed;
                let Some((url, shard, log)) = self.log_of(text) else { return };
                linked.found(&url, shard, rng_seed);
                let new = log.accept(FoundUrl { via, depth, url: text });
                over.note(number, is_over.then_some((shard, new)));
            }
            ReplayStep::Aside(urls) => self.set_aside(&urls),
            ReplayStep::Link(link) => {
                linked.shards.insert(link.to, None);
            }
            ReplayStep::Block(_)
            | ReplayStep::End(_)
            | ReplayStep::Host(_)
            | ReplayStep::Batch { .. }
            | ReplayStep::Acknowledged { .. } => {}
        }
    }

    /// Handles the second pass, when all URLs are known.
    fn take_end(&mut self, step: ReplayStep<'_>, over: &OverUrls, linked: &LinkedSites) {
        match step {
            ReplayStep::End(end) => {
                if let Some(place) = end.place
                    && let Some(from) = self.segments_from.get_mut(usize::from(place.shard))
                {
                    *from = place.segment.saturating_add(1).max(*from);
                }
                if let Some((shard, url)) = over.of(end.url).filter(|_| end.kind != EndKind::Reopened)
                    && let Some(log) = self.logs.get_mut(usize::from(shard))
                {
                    log.end(End { url, ..end });
                }
            }
            ReplayStep::Host(note) => {
                let note = self.rests.take(note);
                let origin = note.origin();
                let shard = self.to.home_of(origin.as_ref().map_or(&*note.host, |origin| origin.host()));
                if let Some(log) = self.logs.get_mut(usize::from(shard)) {
                    log.note_host(note);
                }
            }
            ReplayStep::Link(link) => {
                let shard = linked.shards.get(&link.to).copied().flatten();
                if let Some(log) = shard.and_then(|shard| self.logs.get_mut(usize::from(shard))) {
                    log.note_link(link);
                }
            }
            ReplayStep::Block(_)
            | ReplayStep::Url { .. }
            | ReplayStep::Aside(_)
            | ReplayStep::Batch { .. }
            | ReplayStep::Acknowledged { .. } => {}
        }
    }

    fn set_aside(&mut self, urls: &UrlBatch) {
        for found in urls.found() {
            // URLs outside of the scope have no owner: their sites are not assigned to any shard.
            let log = match found.depth == Hops::EXTERNAL.bits() {
                true => self.logs.get_mut(usize::from(shard_of_key(found.url.as_bytes(), self.to.shards()))),
                false => self.log_of(found.url).map(|(.., log)| log),
            };
            if let Some(log) = log {
                log.set_aside(found);
            }
        }
    }

    /// A URL, and the log of the shard that owns it; `None` if it is not a URL, which no shard writes.
    fn log_of(&mut self, text: &str) -> Option<(Url, u16, &mut Log)> {
        let url = Url::from_canonical(text).ok()?;
        let shard = self.to.shard_of(&url);
        Some((url, shard, self.logs.get_mut(usize::from(shard))?))
    }

    fn write(&mut self, files: &mut dyn RedistributedFiles) -> Result<(), String> {
        for (shard, log) in (0..).zip(&mut self.logs) {
            while let Some(append) = log.take_append(true) {
                files.append(shard, append)?;
            }
            log.freeze_ends();
            log.confirm_facts();
            while let Some(append) = log.take_ends() {
                files.append(shard, append)?;
            }
            log.confirm_ends();
        }
        Ok(())
    }
}

/// A shard and a number in it are kept in eight bytes.
const SHARD_SHIFT: u32 = 48;
const NUMBER_MASK: u64 = (1 << SHARD_SHIFT) - 1;
const NOT_OVER: u64 = u64::MAX;

#[cfg(test)]
mod tests;
