//! What a shard writes, and the order in which it reaches the device: log, segments, spool.
//!
//! Decides: what is logged of an event, what a record of a response says, and that the commit that holds it begins in
//! time ([`commits`]).
//! Invariants: a page's record and links are on the device before the log says that the page is done.
//! Leaves to others: what is accepted (`intake`), what other shards get (`outbox`), the files (`disk`).

mod commits;
mod vias;

use crate::backlinks::SiteLink;
use crate::exchange::Lanes;
use crate::frontier::{EndedUnfetched, Rest};
use crate::hops::Hops;
use crate::job::FetchJob;
use crate::log::{End, EndKind, HostNote, Log, RecordPlace, Reopened, Replayed};
use crate::outcome::{Interstitial, Outcome};
use crate::page::Page;
use crate::spool::Spool;
use crate::stats::Totals;
use commits::{CommitStage, Commits};
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::{Duration, Instant, UnixTime, WallClock};
use ringcrawl_base::{Failure, RecentHashes};
use ringcrawl_config::{Config, RecordKinds};
use ringcrawl_url::{FoundUrl, Url};
use ringcrawl_warc::{self as warc, Note, Placed, Records, Segments, StoreError};
use vias::Vias;

use super::effect_queue::EffectQueue;
use super::{DiskOp, Setup};

/// The log, the segments and the spool of one shard.
#[derive(Debug)]
pub(super) struct Durability {
    shard: u16,
    log: Log,
    journal_bytes_max: u64,
    commits: Commits,
    /// URLs to fetch again that are not logged yet: nothing is fetched before that.
    reopened: Option<Reopened>,
    pub(super) segments: Segments,
    /// Which kinds of records are written in addition to responses.
    pub(super) record_kinds: RecordKinds,
    /// Bytes of responses are logged, as a budget counts them.
    counts_bytes: bool,
    recent_bodies: RecentHashes,
    /// For the queues whose tails it holds.
    pub(super) spool: Spool,
    /// The pages that link to waiting URLs.
    pub(super) vias: Vias,
    /// Page URLs that are done, however they ended.
    over: u64,
}

/// What the record of a response contains.
#[derive(Debug, Default)]
pub(super) struct Stored {
    place: Option<RecordPlace>,
    is_duplicate: bool,
    /// A hash of the page's payload.
    payload: Option<u64>,
}

impl Stored {
    /// A hash of the page's payload.
    pub(super) fn payload(&self) -> Option<u64> {
        self.payload
    }
}

impl Durability {
    /// Nothing is written yet; with `counts_bytes`, the log says how many bytes each page had.
    pub(super) fn new(setup: &Setup, counts_bytes: bool) -> Result<Durability, StoreError> {
        let Setup { index, rng_seed, ref config, ref files, .. } = *setup;
        let shards = setup.partition.shards();
        let settings = config.segment_settings(&setup.user_agent, rng_seed ^ u64::from(index) << 48);
        let originals = config.store.originals(rng_seed, setup.earlier.clone());
        Ok(Durability {
            shard: index,
            log: Log::new(setup.owner(), shards, files.journal.last().map_or(0, |last| last + 1)),
            journal_bytes_max: config.journal.bytes_max / u64::from(shards.max(1)),
            commits: Commits::new(config.journal.sync_interval.0),
            reopened: None,
            segments: Segments::new(settings, index, files.next_segment, originals)?,
            record_kinds: config.store.records,
            counts_bytes,
            recent_bodies: RecentHashes::default(),
            spool: Spool::new(SPOOL_FILE_BYTES_MAX),
            vias: Vias::new(via_bytes_max(config, shards)),
            over: 0,
        })
    }

    /// Continues the logs of an earlier run. `reopened` is logged before any of these URLs ends again.
    pub(super) fn take_up(&mut self, now: Instant, found: &Replayed, reopened: Reopened) {
        self.log.take_up(found);
        self.reopened = Some(reopened);
        self.note_reopened(now);
        self.segments.begin_at_least(found.next_segment);
    }

    /// Whether another shard has on its disk, by what the logs say, the batch of this number.
    pub(super) fn is_acknowledged(&self, to: u16, number: u64) -> bool {
        self.log.is_acknowledged(to, number)
    }

    /// The logs say that it has.
    pub(super) fn acknowledge(&mut self, to: u16, number: u64) {
        self.log.acknowledge(to, number);
    }

    /// Something happened that other parts hand over for the next commit.
    #[inline]
    pub(super) fn note_event(&mut self, now: Instant) {
        self.commits.note(now);
    }

    /// A URL is accepted; returns its number.
    pub(super) fn accept(&mut self, now: Instant, found: FoundUrl<'_>) -> u64 {
        let number = {
            let _stage = stage::enter(Stage::Journal);
            self.commits.note(now);
            self.log.accept(found)
        };
        found.via.into_iter().for_each(|via| self.vias.note(number, via));
        number
    }

    /// A URL finds no room, or left the scope and is listed.
    pub(super) fn set_aside(&mut self, now: Instant, found: FoundUrl<'_>) {
        let _stage = stage::enter(Stage::Journal);
        self.log.set_aside(found);
        self.commits.note(now);
    }

    /// Another site links to a site of this shard.
    pub(super) fn note_link(&mut self, now: Instant, link: SiteLink) {
        let _stage = stage::enter(Stage::Journal);
        self.log.note_link(link);
        self.commits.note(now);
    }

    /// What readers of the log should know of a host, or of the crawl.
    pub(super) fn note_host(&mut self, now: Instant, note: HostNote) {
        self.log.note_host(note);
        self.commits.note(now);
    }

    /// How long a host has asked to be left alone, which a restart must not forget, and how it is doing.
    pub(super) fn note_rest(&mut self, now: Instant, clock: WallClock, rest: Rest) {
        let Rest { host, crawl_delay, until, health } = rest;
        let left = until.since(now);
        let lasts_seconds = if until == Instant::ZERO { 0 } else { left.as_millis().div_ceil(1_000) as u64 + 1 };
        let until_seconds = if lasts_seconds > 0 { clock.seconds(now) + lasts_seconds } else { 0 };
        self.log.note_host(HostNote { host, delay: crawl_delay, until_seconds, lasts_seconds, health });
        if left >= LONG_REST { self.commits.hurry(now) } else { self.commits.note(now) }
    }

    /// A page's URL is done with this outcome, for good.
    pub(super) fn page_over(
        &mut self,
        now: Instant,
        clock: WallClock,
        job: &FetchJob,
        outcome: &Outcome,
        stored: Stored,
        stats: &mut Totals,
    ) {
        let fetched = if let Outcome::Fetched(fetched) = outcome { Some(fetched) } else { None };
        let kind = match outcome {
            Outcome::Failed(failure) => {
                if let Some(told) = &job.told {
                    self.log.note_detail(job.number, told.clone());
                }
                EndKind::Failed(*failure)
            }
            Outcome::Fetched(fetched) => EndKind::Fetched(fetched.status),
            outcome => panic!("a page ended as {outcome:?}"),
        };
        let end = End {
            url: job.number,
            kind,
            tries: job.attempt.saturating_add(1),
            is_duplicate: stored.is_duplicate,
            is_challenge: fetched.is_some_and(|fetched| fetched.interstitial == Some(Interstitial::Challenge)),
            cut: fetched.and_then(|fetched| fetched.truncated),
            seconds: clock.seconds(now),
            place: stored.place,
            bytes: fetched.filter(|_| self.counts_bytes).map_or(0, |fetched| fetched.wire_bytes),
        };
        self.note_over(now, end, stats);
    }

    /// A URL ended without a request.
    pub(super) fn settled(
        &mut self,
        now: Instant,
        clock: WallClock,
        settled: &EndedUnfetched,
        stats: &mut Totals,
    ) -> Result<(), StoreError> {
        let &EndedUnfetched { ref url, number, tries, failure } = settled;
        // A site without end has millions of these, and nothing is wrong with them.
        let recorded = if failure != Failure::OverBudget {
            let via = self.vias.of(number).map(Box::<str>::from);
            self.record_failure(now, clock.at(now), (url, failure), (tries, None, via.as_deref()), stats)
        } else {
            Ok(())
        };
        let kind = EndKind::Failed(failure);
        self.note_over(now, End { tries, seconds: clock.seconds(now), ..plain_end(number, kind) }, stats);
        recorded
    }

    fn note_over(&mut self, now: Instant, end: End, stats: &mut Totals) {
        let _stage = stage::enter(Stage::Journal);
        self.log.end(end);
        self.vias.over(end.url);
        self.commits.note(now);
        self.over += 1;
        if let EndKind::Failed(failure) = end.kind {
            stats.fail(failure);
        }
    }

    /// Logs which URLs are fetched again, before any of them ends again; not more at once than a commit should hold.
    fn note_reopened(&mut self, now: Instant) {
        while let Some(reopened) = self.reopened.as_mut().filter(|_| !self.log.has_many_ends()) {
            let Some(url) = reopened.next() else {
                self.reopened = None;
                return;
            };
            self.log.end(plain_end(url, EndKind::Reopened));
            self.commits.note(now);
        }
    }

    /// Stores a response that this shard has read.
    pub(super) fn store(
        &mut self,
        now: Instant,
        started: UnixTime,
        page: &Page<'_>,
        stats: &mut Totals,
    ) -> Result<Stored, StoreError> {
        let placed = {
            let _stage = stage::enter(Stage::Store);
            page.store(|capture| self.segments.append(now, started, capture)).transpose()?
        };
        let has_body = page.is_page() && page.body_bytes() > 0;
        Ok(placed.map_or_else(Stored::default, |placed| self.stored(now, placed, has_body, stats)))
    }

    /// Stores a response that was read elsewhere; `None` if its segment was closed in the meantime.
    pub(super) fn store_records(
        &mut self,
        now: Instant,
        url: &Url,
        records: Records,
        has_body: bool,
        stats: &mut Totals,
    ) -> Result<Stored, StoreError> {
        let placed = self.segments.append_records(now, url, records)?;
        Ok(self.stored(now, placed, has_body, stats))
    }

    /// A capture has its position in the open segment; only the body of a page can be a duplicate.
    fn stored(&mut self, now: Instant, placed: Placed, has_body: bool, stats: &mut Totals) -> Stored {
        self.commits.note(now);
        stats.bytes_stored += placed.capture_bytes;
        stats.records += u64::from(placed.records);
        stats.revisits += u64::from(placed.is_revisit);
        let is_duplicate = has_body && (self.recent_bodies.is_again(placed.payload) || placed.is_revisit);
        stats.duplicates += u64::from(is_duplicate);
        let segment = self.segments.number();
        Stored {
            place: Some(RecordPlace { shard: self.shard, segment, offset: placed.offset }),
            is_duplicate,
            payload: has_body.then_some(placed.payload),
        }
    }

    /// A URL has no response in the end, after this many tries, at this distance from a seed, found by this page.
    pub(super) fn record_failure(
        &mut self,
        now: Instant,
        time: UnixTime,
        (url, failure): (&Url, Failure),
        (tries, depth, via): (u8, Option<u16>, Option<&str>),
        stats: &mut Totals,
    ) -> Result<(), StoreError> {
        if !self.record_kinds.failure {
            return Ok(());
        }
        let hops = depth.map(|bits| Hops::from_bits(bits).links());
        let note = Note::Failure(warc::Failure { url, cause: failure.as_str(), tries, via, hops });
        self.record(now, time, &note, stats)
    }

    /// Stores a record that is no response.
    pub(super) fn record(
        &mut self,
        now: Instant,
        time: UnixTime,
        note: &Note<'_>,
        stats: &mut Totals,
    ) -> Result<(), StoreError> {
        let _stage = stage::enter(Stage::Store);
        stats.bytes_stored += self.segments.append_note(now, time, note)?;
        stats.records += 1;
        self.commits.note(now);
        Ok(())
    }

    /// Issues the spool's operations.
    pub(super) fn write_spool(&mut self, effects: &mut EffectQueue) {
        while let Some(op) = self.spool.next_op() {
            effects.disk(DiskOp::Spool(op));
        }
    }

    fn write_segments(&mut self, effects: &mut EffectQueue) {
        while let Some(op) = self.segments.next_op() {
            effects.disk(DiskOp::Segment(op));
        }
    }

    /// Writes large data, and begins a commit that is due; with `all`, one of whatever there is.
    pub(super) fn write(&mut self, now: Instant, all: bool, lanes: &mut Lanes, effects: &mut EffectQueue) {
        let _stage = stage::enter(Stage::Store);
        self.segments.flush_old(now);
        self.write_segments(effects);
        self.log_closed(lanes);
        for (to, number) in lanes.take_durable() {
            self.log.acknowledge(to, number);
        }
        self.append(false, effects);
        while let Some((file, is_damaged)) = self.log.take_done() {
            effects.disk(if is_damaged { DiskOp::PutLogAside(file) } else { DiskOp::DeleteLog(file) });
        }
        self.note_reopened(now);
        let all = all || self.log.has_many_ends();
        if self.commits.next_due().is_some_and(|due| due <= now || all) {
            self.commit(now, lanes, effects);
        }
    }

    fn commit(&mut self, now: Instant, lanes: &mut Lanes, effects: &mut EffectQueue) {
        self.segments.flush();
        self.write_segments(effects);
        lanes.close_open(&mut self.spool);
        self.log_closed(lanes);
        self.write_spool(effects);
        self.append(true, effects);
        self.log.freeze_ends();
        effects.disk(self.commits.begin(now, lanes.received()));
    }

    fn log_closed(&mut self, lanes: &mut Lanes) {
        for batch in lanes.take_closed() {
            self.log.send(batch.to, batch.number, &batch.urls);
        }
    }

    fn append(&mut self, all: bool, effects: &mut EffectQueue) {
        loop {
            let append = {
                let _stage = stage::enter(Stage::Journal);
                self.log.take_append(all)
            };
            let Some(append) = append else { break };
            effects.disk(DiskOp::Append(append));
        }
    }

    /// Every operation issued before a sync is done, and is on the device if the sync asked for that.
    pub(super) fn synced(&mut self, now: Instant, lanes: &mut Lanes, effects: &mut EffectQueue) {
        match self.commits.step() {
            CommitStage::None => panic!("a sync ended that was not requested"),
            CommitStage::Facts => {
                self.log.confirm_facts();
                lanes.note_durable(now, self.commits.received());
                let mut has_ends = false;
                while let Some(append) = self.take_ends() {
                    effects.disk(DiskOp::Append(append));
                    has_ends = true;
                }
                if has_ends { effects.disk(self.commits.sync(CommitStage::Ends)) } else { self.commits.end() }
            }
            CommitStage::Ends => {
                self.log.confirm_ends();
                self.commits.end();
            }
        }
    }

    fn take_ends(&mut self) -> Option<crate::log::Append> {
        let _stage = stage::enter(Stage::Journal);
        self.log.take_ends()
    }

    /// Whether everything is on the device, to the extent that the configuration asks for it.
    pub(super) fn is_done(&self) -> bool {
        self.commits.is_done() && self.reopened.is_none()
    }

    /// Whether fetching waits for the logs: other shards are behind, or URLs to fetch again are not logged yet.
    pub(super) fn is_behind(&self) -> bool {
        self.log.journal_bytes() > self.journal_bytes_max || self.reopened.is_some()
    }

    /// When to write without another event.
    pub(super) fn next_due(&self) -> Option<Instant> {
        [self.segments.next_due(), self.commits.next_due()].into_iter().flatten().min()
    }

    /// Page URLs that are done.
    pub(super) fn over(&self) -> u64 {
        self.over
    }
}

/// An end of which nothing more is known.
fn plain_end(url: u64, kind: EndKind) -> End {
    End { url, kind, tries: 0, is_duplicate: false, is_challenge: false, cut: None, seconds: 0, place: None, bytes: 0 }
}

/// Bytes of memory for the pages that link to waiting URLs: only records name these.
fn via_bytes_max(config: &Config, shards: u16) -> usize {
    if !config.store.records.metadata && !config.store.records.failure {
        return 0;
    }
    let bytes_max = config.frontier.ram_bytes_max / u64::from(shards.max(1)) / VIA_PARTS;
    usize::try_from(bytes_max).unwrap_or(usize::MAX)
}

/// The pages that link to waiting URLs may take one part in this many of the memory of those URLs, in addition to it.
const VIA_PARTS: u64 = 16;
/// Spool files are deleted whole, so small ones give space back sooner.
const SPOOL_FILE_BYTES_MAX: u64 = 64 << 20;
/// A cooldown at least this long is logged at once.
const LONG_REST: Duration = Duration::from_secs(60);
