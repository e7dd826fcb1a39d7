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

use crate::shard::DiskOp;
use ringcrawl_base::time::{Duration, Instant};

/// The commits of one shard.
#[derive(Debug)]
pub(super) struct Commits {
    interval: Duration,
    to_device: bool,
    step: CommitStage,
    /// When the oldest event occurred that no commit holds.
    since: Option<Instant>,
    /// When the commit should begin, if it holds an event that does not wait.
    hurried: Option<Instant>,
    /// No such commit begins before this.
    no_hurry_before: Instant,
    received: Vec<u64>,
}

/// How far a commit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CommitStage {
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
            step: CommitStage::None,
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

    /// A commit begins that holds all of this, and what had `received` from other shards.
    pub(super) fn begin(&mut self, now: Instant, received: Vec<u64>) -> DiskOp {
        if self.hurried.take().is_some() {
            self.no_hurry_before = now + HURRY_PAUSE;
        }
        self.since = None;
        self.received = received;
        self.sync(CommitStage::Facts)
    }

    /// The commit goes on to this step, which this operation ends.
    pub(super) fn sync(&mut self, step: CommitStage) -> DiskOp {
        self.step = step;
        DiskOp::Sync { to_device: self.to_device }
    }

    /// The commit in flight is on the device.
    pub(super) fn end(&mut self) {
        self.step = CommitStage::None;
    }

    pub(super) fn step(&self) -> CommitStage {
        self.step
    }

    /// What had arrived from other shards when the commit began.
    pub(super) fn received(&self) -> &[u64] {
        &self.received
    }

    /// Whether every event is on the device, to the extent that the configuration asks for it.
    pub(super) fn is_done(&self) -> bool {
        self.step == CommitStage::None && self.since.is_none()
    }

    /// When the next commit begins, if one does without another event.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let since = self.since.filter(|_| self.step == CommitStage::None)?;
        Some((since + self.interval).min(self.hurried.unwrap_or(Instant::NEVER)))
    }
}

/// The least time between two commits that do not wait.
const HURRY_PAUSE: Duration = Duration::from_millis(250);
/// How long an event waits to be written where nothing is synced.
const UNSYNCED_INTERVAL: Duration = Duration::from_secs(1);
