//! The logs of a crawl of N shards, written anew for M.
//!
//! Decides: each URL goes to the log of the shard that owns it now, with its last end and a new number; so does each note on a
//! host. URLs on their way between shards are set aside at their owner, which looks at them when it starts; they are written
//! before all accepted ones, as a list of URLs expects it. The journal is empty, and batches are numbered anew.
//! Invariants: a host's URLs keep their order; what is over stays over, and its record stays where it is; a URL whose record is
//! lost waits.
//! Limits: one shard is read at a time: what [`Replay`] keeps and the last ends of its URLs, [`END_BYTES`] bytes each, and a block
//! for each of the new logs.
//! Leaves to others: files, and that the new logs replace the earlier ones at one stroke (`boot`).

use std::collections::BTreeMap;

use super::replay::{Replay, ReplayStep};
use super::replayed::Replayed;
use super::{Append, End, EndKind, Log, LogFile, Owner};
use crate::route::Partition;
use crate::url::{Url, UrlBatch};

/// The files of both.
pub trait RedistributedFiles {
    /// Bytes of an earlier shard's log from `position` on; none at its end.
    fn read(&mut self, shard: u16, file: LogFile, position: u64) -> Result<Vec<u8>, String>;
    /// Whole blocks for the end of a new shard's log.
    fn append(&mut self, shard: u16, append: Append) -> Result<(), String>;
}

/// What an earlier shard's directory holds besides its logs of URLs and ends.
#[derive(Clone, Debug, Default)]
pub struct EarlierShard {
    /// Files of its journal, in order.
    pub journal: Vec<u32>,
    /// Its segments, all of them closed, with their bytes.
    pub segments: BTreeMap<u32, u64>,
}

/// Writes the logs of the `earlier` shards of a crawl anew for the shards of `to`; what was found, by earlier shard. An error is one
/// of the files', or says that a log is not its shard's.
pub fn redistribute(
    crawl: u64,
    earlier: &[EarlierShard],
    to: Partition,
    files: &mut dyn RedistributedFiles,
) -> Result<Vec<Replayed>, String> {
    let log = |shard| Log::new(Owner { crawl, shard }, to.shards, 0);
    let mut new = NewLogs { to, logs: (0..to.shards.max(1)).map(log).collect() };
    let shards = earlier.len() as u16;
    let owner = |shard| Owner { crawl, shard };
    let mut journals = Vec::new();
    for (shard, EarlierShard { journal, .. }) in (0..).zip(earlier) {
        let replay = || Replay::of_journal(owner(shard), shards, journal);
        // Twice, because what acknowledges a batch comes behind it.
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
        let mut last_ends = LastEnds::default();
        let logs = read_all(replay, files, &mut |step, new| new.take(step, &mut last_ends), &mut new)?;
        found.push(logs.with_journal(journal));
    }
    Ok(found)
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

/// The last end of each URL of the shard that is read.
#[derive(Default)]
struct LastEnds(Vec<Option<End>>);

impl LastEnds {
    fn note(&mut self, end: End) {
        let at = end.url as usize;
        if at >= self.0.len() {
            self.0.resize(at + 1, None);
        }
        if let Some(last) = self.0.get_mut(at) {
            *last = Some(end).filter(|end| end.kind != EndKind::Reopened);
        }
    }

    fn of(&self, url: u64) -> Option<End> {
        self.0.get(url as usize).copied().flatten()
    }
}

struct NewLogs {
    to: Partition,
    logs: Vec<Log>,
}

impl NewLogs {
    fn take(&mut self, step: ReplayStep<'_>, last_ends: &mut LastEnds) {
        match step {
            ReplayStep::End(end) => last_ends.note(end),
            ReplayStep::Url { number, depth, text, is_over, .. } => {
                let Some(log) = self.log_of(text) else { return };
                let url = log.accept(depth, text);
                if let Some(end) = last_ends.of(number).filter(|_| is_over) {
                    log.end(End { url, ..end });
                }
            }
            ReplayStep::Host(note) => {
                let shard = self.to.shard_of_host(&note.host);
                if let Some(log) = self.logs.get_mut(usize::from(shard)) {
                    log.note_host(note);
                }
            }
            ReplayStep::Aside(urls) => self.set_aside(&urls),
            ReplayStep::Batch { .. } | ReplayStep::Acknowledged { .. } => {}
        }
    }

    fn set_aside(&mut self, urls: &UrlBatch) {
        for (depth, text) in urls.iter() {
            if let Some(log) = self.log_of(text) {
                log.set_aside(depth, text);
            }
        }
    }

    /// The log of the shard that a URL belongs to; `None` when it is no URL, which no shard writes.
    fn log_of(&mut self, text: &str) -> Option<&mut Log> {
        let shard = self.to.shard_of(&Url::from_canonical(text).ok()?);
        self.logs.get_mut(usize::from(shard))
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

/// What is kept of a URL while its shard is read.
const END_BYTES: usize = 64;
const _: () = assert!(size_of::<Option<End>>() <= END_BYTES);

#[cfg(test)]
mod tests;
