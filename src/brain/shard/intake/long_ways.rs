//! URLs that were first found by a long path: they get another chance when a short one is found.
//!
//! Decides: a URL keeps the path by which it was found first, and strangers choose that path. Behind a hundred pages
//! of theirs somebody's home page is so deep that none of its links is followed. So the shard remembers URLs accepted
//! in the last quarter before `scope.depth_max`, and redirects in the last quarter before `scope.redirects_max`. A
//! link by a shorter path causes such a URL to be accepted once more, under its lone key, as the targets of redirects
//! back are. A URL is remembered when it is accepted, as the short path may be found before the URL is fetched. A
//! redirect is remembered when it is read: it costs nothing unless another one follows.
//! Invariants: a key gets this chance once, as it is then forgotten; nothing is kept where every path is short.
//! Limits: as many as [`RecentHashes`] holds: a flood of long paths evicts others. After a restart depths are known
//! from the log, redirects are not. A page that was fetched by its long path before the short one is found is fetched
//! twice.

use crate::hops::Hops;
use ringcrawl_base::RecentHashes;

/// Keys of URLs that were recently found by a long path: that deep, or by that many redirects.
#[derive(Debug, Default)]
pub(super) struct LongWays {
    of_links: Option<RecentHashes>,
    of_redirects: Option<RecentHashes>,
}

/// How deep pages may be, and how many redirects may lead to one; 0: no limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct WayMax {
    links: u16,
    redirects: u16,
}

impl LongWays {
    /// Whether the URL of this key may have come by a long path. For the links of nearly every page this needs no
    /// lookup.
    #[inline]
    pub(super) fn contains(&self, key: u64) -> bool {
        is_in(&self.of_links, key) || is_in(&self.of_redirects, key)
    }

    /// Whether it was found by a long path, and this path to it is short.
    pub(super) fn has_longer(&self, key: u64, hops: Hops, max: WayMax) -> bool {
        is_in(&self.of_links, key) && is_short(hops.links(), max.links)
            || is_in(&self.of_redirects, key) && is_short(hops.redirects(), max.redirects)
    }

    /// A URL of this key was accepted.
    pub(super) fn note(&mut self, key: u64, hops: Hops, max: WayMax) {
        if max.is_deep(hops) {
            self.of_links.get_or_insert_default().note(key);
        }
    }

    /// A page whose key `key` returns redirects, or may have in an earlier run.
    pub(super) fn note_redirects(&mut self, hops: Hops, max: WayMax, key: impl FnOnce() -> u64) {
        if is_long(hops.redirects(), max.redirects) {
            self.of_redirects.get_or_insert_default().note(key());
        }
    }

    /// A key was accepted once more; it is not accepted a third time.
    pub(super) fn forget(&mut self, key: u64) {
        self.of_links.iter_mut().chain(&mut self.of_redirects).for_each(|long| long.forget(key));
    }

    /// The log has been read. It does not say what redirected; the keys served URLs that were accepted once more.
    pub(super) fn forget_redirects(&mut self) {
        self.of_redirects = None;
    }
}

impl WayMax {
    /// The limits of a scope for a URL.
    pub(super) fn new((links, redirects): (u16, u16)) -> WayMax {
        WayMax { links, redirects }
    }

    /// Whether links of a URL found this way are too deep, or soon would be.
    pub(super) fn is_deep(self, hops: Hops) -> bool {
        is_long(hops.links(), self.links)
    }
}

fn is_in(long: &Option<RecentHashes>, key: u64) -> bool {
    long.as_ref().is_some_and(|long| long.holds(key))
}

fn is_long(count: u16, count_max: u16) -> bool {
    count_max > 0 && count >= count_max - count_max / 4
}

fn is_short(count: u16, count_max: u16) -> bool {
    count < count_max - count_max / 4
}
