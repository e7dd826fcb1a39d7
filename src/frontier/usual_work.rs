//! What the shards of a crawl know of each other: whether any has URLs that are not deferred, and when the last such page began.
//!
//! Decides: deferred URLs wait behind all others of the *crawl*, so how many shards it has does not change what is fetched: a shard that
//! has run out of others would spend a page budget, or the disk, on traps while the rest still fetches what is worth it.
//! Invariants: each shard is counted once while it has such URLs.
//! Limits: a page's beginning is told ten times a second at most, as all shards look at it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::time::{Duration, Instant};

/// One for all shards of a crawl.
#[derive(Debug, Default)]
pub struct UsualWork {
    /// Shards with URLs that are not deferred.
    shards: AtomicU32,
    /// Nanoseconds of the instant when such a page began; 0: none has.
    begun: AtomicU64,
}

/// A shard's part in it.
#[derive(Debug, Default)]
pub(super) struct OwnUsualWork {
    has_some: bool,
    told: Option<Instant>,
}

impl OwnUsualWork {
    /// Whether the shard has such URLs from now on.
    pub(super) fn has(&mut self, has_some: bool, all: &UsualWork) {
        match (std::mem::replace(&mut self.has_some, has_some), has_some) {
            (false, true) => all.shards.fetch_add(1, Relaxed),
            (true, false) => all.shards.fetch_sub(1, Relaxed),
            _ => return,
        };
    }

    /// A page of these began.
    pub(super) fn began(&mut self, now: Instant, all: &UsualWork) {
        if self.told.is_none_or(|told| now.since(told) >= TOLD_AFTER) {
            self.told = Some(now);
            all.begun.fetch_max(now.as_nanos(), Relaxed);
        }
    }

    /// Whether another shard has such URLs.
    pub(super) fn have_others(&self, all: &UsualWork) -> bool {
        all.shards.load(Relaxed) > u32::from(self.has_some)
    }
}

impl UsualWork {
    /// When such a page began last, in any shard.
    pub(super) fn last(&self) -> Option<Instant> {
        Some(self.begun.load(Relaxed)).filter(|nanos| *nanos > 0).map(Instant::from_nanos)
    }
}

const TOLD_AFTER: Duration = Duration::from_millis(100);
