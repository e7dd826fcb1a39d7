//! Group commit: when events are logged, and in which order they reach the device.
//!
//! Decides: a commit begins one `journal.sync_interval` after the first event that it holds, or when many pages have
//! ended; one commit runs at a time. A commit that holds a long cooldown of a host begins at once, as the run that
//! follows a kill must know of it. But only one such commit begins per [`HURRY_PAUSE`], or a hostile host could cause
//! a sync for each response. A commit has two steps.
//! First come the facts: records, accepted URLs, batches for other shards. When these are on the device, the entries
//! that end those pages are written and synced in turn. So after any power failure, a page that is done has its
//! record and its links. What other shards sent is on our disk with the first step, and is then acknowledged.
//! Under `sync_interval = "never"` the order is the same and the kernel decides when: a kill loses nothing, a power
//! cut may.
//! Invariants: ends are frozen when a commit begins: later ones go into the next commit.

use super::{DiskOp, Shard};
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::{Duration, Instant};

/// The commits of one shard.
#[derive(Debug)]
pub struct Commits {
    interval: Duration,
    to_device: bool,
    step: Step,
    /// When the oldest event occurred that no commit holds.
    since: Option<Instant>,
    /// When the commit should begin, if it holds an event that does not wait.
    hurried: Option<Instant>,
    /// No such commit begins before this.
    no_hurry_before: Instant,
    /// What had arrived from other shards when the commit began.
    received: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// No commit is in flight.
    None,
    /// Facts are on their way to the device.
    Facts,
    /// So are the entries that end pages.
    Ends,
}

impl Commits {
    /// Every `interval`; without one the kernel decides when writes reach the device.
    pub(super) fn new(interval: Option<Duration>) -> Commits {
        let (to_device, interval) = (interval.is_some(), interval.unwrap_or(UNSYNCED_INTERVAL));
        Commits {
            interval,
            to_device,
            step: Step::None,
            since: None,
            hurried: None,
            no_hurry_before: Instant::ZERO,
            received: Vec::new(),
        }
    }

    /// An event occurred that must be logged.
    pub(super) fn note(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// The same, for an event that does not wait.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.note(now);
        self.hurried.get_or_insert(now.max(self.no_hurry_before));
    }

    /// A commit begins that holds all of this.
    fn begins(&mut self, now: Instant) {
        if self.hurried.take().is_some() {
            self.no_hurry_before = now + HURRY_PAUSE;
        }
        self.since = None;
    }

    /// Whether every event is on the device, to the extent that the configuration asks for it.
    pub(super) fn is_done(&self) -> bool {
        self.step == Step::None && self.since.is_none()
    }

    /// When the next commit begins, if one does without another event.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let since = self.since.filter(|_| self.step == Step::None)?;
        Some((since + self.interval).min(self.hurried.unwrap_or(Instant::NEVER)))
    }
}

impl Shard {
    /// Writes large data, and begins a commit that is due; with `all`, one of whatever there is.
    pub(super) fn commit(&mut self, now: Instant, all: bool) {
        for batch in self.lanes.take_closed() {
            self.log.send(batch.to, batch.number, &batch.urls);
        }
        for (to, number) in self.lanes.take_durable() {
            self.log.acknowledge(to, number);
        }
        self.append(false);
        while let Some((file, is_damaged)) = self.log.take_done() {
            self.disk(if is_damaged { DiskOp::PutLogAside(file) } else { DiskOp::DeleteLog(file) });
        }
        self.note_reopened(now);
        let all = all || self.log.has_many_ends();
        let is_due = self.commits.next_due().is_some_and(|due| due <= now || all);
        if !is_due {
            return;
        }
        self.commits.begins(now);
        self.segments.flush();
        self.write_segments();
        self.lanes.close_open(&mut self.spool);
        for batch in self.lanes.take_closed() {
            self.log.send(batch.to, batch.number, &batch.urls);
        }
        self.write_spool();
        self.append(true);
        self.log.freeze_ends();
        self.commits.received = self.lanes.received();
        self.sync(Step::Facts);
    }

    /// Every operation issued before a sync is done, and is on the device if the sync asked for that.
    pub(super) fn synced(&mut self, now: Instant) {
        match self.commits.step {
            Step::None => panic!("a sync ended that nobody asked for"),
            Step::Facts => {
                self.log.confirm_facts();
                self.lanes.note_durable(now, &self.commits.received);
                let mut has_ends = false;
                while let Some(append) = self.take_ends() {
                    self.disk(DiskOp::Append(append));
                    has_ends = true;
                }
                if has_ends { self.sync(Step::Ends) } else { self.commits.step = Step::None }
            }
            Step::Ends => {
                self.log.confirm_ends();
                self.commits.step = Step::None;
            }
        }
    }

    fn take_ends(&mut self) -> Option<crate::log::Append> {
        let _stage = stage::enter(Stage::Journal);
        self.log.take_ends()
    }

    fn append(&mut self, all: bool) {
        loop {
            let append = {
                let _stage = stage::enter(Stage::Journal);
                self.log.take_append(all)
            };
            let Some(append) = append else { break };
            self.disk(DiskOp::Append(append));
        }
    }

    fn sync(&mut self, step: Step) {
        self.commits.step = step;
        self.disk(DiskOp::Sync { to_device: self.commits.to_device });
    }
}

/// The least time between two commits that do not wait.
const HURRY_PAUSE: Duration = Duration::from_millis(250);
/// How long an event waits to be written where nothing is synced.
const UNSYNCED_INTERVAL: Duration = Duration::from_secs(1);
