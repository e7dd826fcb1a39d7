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

use super::Shard;
use crate::hops::Hops;
use ringcrawl_base::RecentHashes;
use ringcrawl_url::Url;

/// Keys of URLs that were recently found by a long path: that deep, or by that many redirects.
#[derive(Debug, Default)]
pub struct LongWays {
    of_links: Option<RecentHashes>,
    of_redirects: Option<RecentHashes>,
}

impl LongWays {
    fn has_redirected(&self, key: u64) -> bool {
        self.of_redirects.as_ref().is_some_and(|long| long.holds(key))
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

impl Shard {
    /// Whether the URL of this key may have come by a long path. For the links of nearly every page this needs no
    /// lookup.
    pub(super) fn came_long_way(&self, key: u64) -> bool {
        self.long_ways.of_links.as_ref().is_some_and(|long| long.holds(key)) || self.long_ways.has_redirected(key)
    }

    /// Whether it was found by a long path, and this path to it is short.
    pub(super) fn comes_shorter(&mut self, key: u64, url: &Url, hops: Hops) -> bool {
        if !self.came_long_way(key) {
            return false;
        }
        let (depth_max, redirects_max) = self.scope.way_max(url, self.sites.of(url.host()).name);
        self.long_ways.of_links.as_ref().is_some_and(|long| long.holds(key)) && is_short(hops.links(), depth_max)
            || self.long_ways.has_redirected(key) && is_short(hops.redirects(), redirects_max)
    }

    /// Whether links of a URL found this way are too deep, or soon would be.
    pub(super) fn is_deep(&mut self, url: &Url, hops: Hops) -> bool {
        let (depth_max, _) = self.scope.way_max(url, self.sites.of(url.host()).name);
        is_long(hops.links(), depth_max)
    }

    /// A URL of this key was accepted.
    pub(super) fn note_way(&mut self, key: u64, url: &Url, hops: Hops) {
        if self.is_deep(url, hops) {
            self.long_ways.of_links.get_or_insert_default().note(key);
        }
    }

    /// A page redirects, or may have in an earlier run.
    pub(super) fn note_redirects(&mut self, url: &Url, hops: Hops) {
        let (_, redirects_max) = self.scope.way_max(url, self.sites.of(url.host()).name);
        if is_long(hops.redirects(), redirects_max) {
            let key = self.keys.key(url);
            self.long_ways.of_redirects.get_or_insert_default().note(key);
        }
    }
}

fn is_long(count: u16, count_max: u16) -> bool {
    count_max > 0 && count >= count_max - count_max / 4
}

fn is_short(count: u16, count_max: u16) -> bool {
    count < count_max - count_max / 4
}
