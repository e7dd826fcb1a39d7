//! How a host leaves pages to others ([`crate::frontier::order`]).

use ringcrawl_base::time::Instant;

/// A host's wait until others had their pages.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    /// The number of pages begun when it came.
    pub pages: u64,
    /// When it came.
    pub since: Instant,
    /// When it is looked at again.
    pub until: Instant,
    /// It has left enough pages.
    pub is_over: bool,
}

impl Leave {
    /// For a host that waited for its turn elsewhere.
    pub fn over(now: Instant) -> Leave {
        Leave { pages: 0, since: now, until: now, is_over: true }
    }

    /// Whether a host waits for that until `at`.
    pub fn is_until(&self, at: Instant) -> bool {
        !self.is_over && self.until == at
    }
}
