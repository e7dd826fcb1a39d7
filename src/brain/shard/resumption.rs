//! The earlier run that a shard takes up: its logs are read before anything else happens.
//!
//! Decides: when all is read and other shards have claimed their sites, too; what waits until then. What is missing or
//! damaged is reported as a number of URLs. A URL in a shard's log belongs to that shard, and so does its site: where
//! that cannot be, the crawl ends with the reason.

use std::collections::VecDeque;

use crate::frontier::Rest;
use crate::log::{HostNote, Reopened, Replay, Replayed};
use crate::route::{Partition, SiteClaim};
use crate::spool::{Block, ReadFor, Spool};
use crate::stats::Totals;
use ringcrawl_base::time::{Duration, Instant, WallClock};
use ringcrawl_url::{Site, Url, UrlBatch};

use super::effect_queue::EffectQueue;
use super::{DiskOp, Setup};

/// How far an earlier run is resumed.
#[derive(Debug)]
pub(super) struct Resumption {
    shard: u16,
    partition: Partition,
    /// What is being read; nothing else happens until it is taken.
    replay: Option<Replay>,
    /// It has been read, but other shards have not claimed their sites yet: when to look again.
    settles_at: Option<Instant>,
    /// URLs in the logs whose sites have no entry in the table of owners, or belong to another shard there.
    unclaimed: u64,
    contradicted: u64,
    /// Seeds that wait until it is resumed, and until the disk has those before them.
    seeds: VecDeque<Url>,
    /// By the current clock, cooldowns in the log would last longer than intended: the clock was set back.
    has_longer_rests: bool,
    /// URLs in the spool for which it had no room.
    set_aside: VecDeque<Block>,
    /// URLs that it knew, and those of them that still wait.
    known: u64,
    known_waiting: u64,
    urls_lost: u64,
    records_elsewhere: u64,
}

impl Resumption {
    /// Nothing is read yet; with `costs` and `pages`, also what sites have cost and how many pages they had.
    pub(super) fn new(setup: &Setup, costs: bool, pages: bool) -> Resumption {
        let Setup { index, ref partition, ref files, .. } = *setup;
        let replay = Replay::new(setup.owner(), partition.shards(), &files.journal, files.segments.clone());
        let replay = replay.with_again(setup.ask_again.clone());
        let replay = if costs { replay.with_costs() } else { replay };
        let replay = if pages { replay.with_pages() } else { replay };
        Resumption {
            shard: index,
            partition: partition.clone(),
            replay: Some(replay),
            settles_at: None,
            unclaimed: 0,
            contradicted: 0,
            seeds: VecDeque::new(),
            has_longer_rests: false,
            set_aside: VecDeque::new(),
            known: 0,
            known_waiting: 0,
            urls_lost: 0,
            records_elsewhere: 0,
        }
    }

    /// Whether the earlier run is not taken up yet.
    pub(super) fn is_under_way(&self) -> bool {
        self.replay.is_some()
    }

    /// When to look whether other shards are done.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.settles_at
    }

    /// Requests the next piece of the logs; `false` when there is none.
    pub(super) fn read_log(&mut self, effects: &mut EffectQueue) -> bool {
        let Some((file, position)) = self.replay.as_ref().and_then(Replay::next_read) else { return false };
        effects.disk(DiskOp::ReadLog { file, position });
        true
    }

    /// A piece of the logs.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let Some(replay) = &mut self.replay else { panic!("a log came that was not requested") };
        replay.push(bytes);
    }

    /// The logs, if a piece of them was read and not taken in. They come back with [`Resumption::put_back`].
    pub(super) fn take_piece(&mut self) -> Option<Replay> {
        self.replay.take_if(|replay| replay.has_piece())
    }

    pub(super) fn put_back(&mut self, replay: Replay) {
        self.replay = Some(replay);
    }

    /// All was read: other shards may settle, and if this one cannot, these are the words for the end.
    pub(super) fn is_read(&mut self, now: Instant) -> Result<(), String> {
        match (self.unclaimed, self.contradicted) {
            (0, 0) => {}
            (0, urls) => {
                return Err(format!(
                    "partition.by: {urls} URLs are of sites that are another shard's, too: this version divides names into sites otherwise. \
                     Start once with another number of crawl.shards, which assigns all sites to shards again"
                ));
            }
            (urls, _) => {
                return Err(format!(
                    "partition.ram_bytes_max: no room for the owners of sites that earlier runs had given to shards ({urls} URLs are theirs); \
                     raise it"
                ));
            }
        }
        if let Some(owners) = self.partition.owners() {
            owners.has_claimed();
        }
        self.settles_at = Some(now);
        Ok(())
    }

    /// Once its logs are read and all shards have claimed their sites, what they held. It polls for this, as it
    /// happens only once.
    pub(super) fn finish(&mut self, now: Instant) -> Option<(Replayed, Reopened)> {
        if self.settles_at.is_none_or(|at| at > now) {
            return None;
        }
        let is_settled = self.partition.is_settled();
        self.settles_at = (!is_settled).then_some(now + SETTLE_PAUSE);
        let (found, reopened) = self.replay.take_if(|_| is_settled)?.finish();
        self.urls_lost = found.urls_lost + found.sent_lost;
        self.records_elsewhere = found.records_elsewhere;
        Some((found, reopened))
    }

    /// A URL in the log of `shard` is of this host.
    pub(super) fn claim(&mut self, host: &str, shard: u16) {
        let Some(owners) = self.partition.owners() else { return };
        match owners.claim(Site::of(host).hash, shard) {
            SiteClaim::Kept => {}
            SiteClaim::Contradicted => self.contradicted += 1,
            SiteClaim::NoRoom => self.unclaimed += 1,
        }
    }

    /// A URL of this shard is in its log.
    pub(super) fn note_known(&mut self, url: &Url, is_over: bool) {
        self.known += 1;
        self.known_waiting += u64::from(!is_over);
        self.claim(url.host(), self.shard);
    }

    /// How many URLs were known, in words, if any were.
    pub(super) fn known(&self) -> Option<String> {
        (self.known > 0).then(|| format!("{} URLs known, {} wait", self.known, self.known_waiting))
    }

    /// What the log says of a host, and how long the host is left alone. A clock that was set back between two runs
    /// makes no cooldown longer than intended.
    pub(super) fn rest(&mut self, now: Instant, clock: WallClock, note: HostNote) -> Rest {
        let seconds = clock.seconds(now);
        let until = now + Duration::from_secs(note.left(seconds));
        self.has_longer_rests |= note.until_seconds.saturating_sub(seconds) > note.lasts_seconds;
        let HostNote { host, delay: crawl_delay, health, .. } = note;
        Rest { host, crawl_delay, until, health }
    }

    /// Whether cooldowns must be logged again, so that the next run does not start them again.
    pub(super) fn take_longer_rests(&mut self) -> bool {
        std::mem::take(&mut self.has_longer_rests)
    }

    /// Seeds came. They wait until the earlier run's URLs are known.
    pub(super) fn hold(&mut self, seeds: Vec<Url>) {
        self.seeds.extend(seeds);
    }

    /// The next seeds that need not wait any longer: so many that what is written for them is bounded.
    pub(super) fn take_seeds(&mut self) -> Vec<Url> {
        let count = if self.is_under_way() { 0 } else { self.seeds.len().min(SEEDS_AT_ONCE) };
        self.seeds.drain(..count).collect()
    }

    /// Whether seeds wait.
    pub(super) fn holds_seeds(&self) -> bool {
        !self.seeds.is_empty()
    }

    /// URLs for which there was no room. Accepted URLs come first: these must not take their room. There may be more of
    /// them than fit in memory.
    pub(super) fn set_aside(&mut self, batch: &UrlBatch, spool: &mut Spool) {
        // A site may have only these, and its links must come here as before.
        if self.partition.owners().is_some() {
            let urls = batch.iter().filter_map(|(_, text)| Url::from_canonical(text).ok());
            urls.for_each(|url| self.claim(url.host(), self.shard));
        }
        self.set_aside.push_back(spool.write(batch.as_bytes(), batch.len() as u32));
    }

    /// Reads back the next block of these.
    pub(super) fn reconsider_next(&mut self, spool: &mut Spool) {
        if let Some(block) = self.set_aside.pop_front() {
            spool.read(block, ReadFor::SetAside);
        }
    }

    /// Sets the gauges.
    pub(super) fn count(&self, stats: &mut Totals) {
        (stats.known_urls, stats.known_waiting) = (self.known, self.known_waiting);
        (stats.urls_lost, stats.records_elsewhere) = (self.urls_lost, self.records_elsewhere);
        stats.reading_logs = self.is_under_way().into();
    }
}

/// Their text usually takes less than a megabyte.
const SEEDS_AT_ONCE: usize = 4_096;
/// Interval between two checks whether all shards have read their logs.
const SETTLE_PAUSE: Duration = Duration::from_millis(5);
