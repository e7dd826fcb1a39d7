//! URLs with their fingerprints: a page's links, hashed once when they are found.
//!
//! Decides: the fingerprint is computed under the crawl's seed ([`super::fingerprint`]). A page's own repeats, the
//! visited set and the record of what was sent to other shards all use it.
//! Invariants: a URL has one fingerprint, at the same index.

use std::ops::Deref;

use super::UrlBatch;

/// URLs, each with its depth and its fingerprint, in order of insertion.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HashedUrls {
    urls: UrlBatch,
    fingerprints: Vec<u64>,
}

impl HashedUrls {
    /// No URL.
    pub fn new() -> HashedUrls {
        HashedUrls::default()
    }

    /// Adds one URL; nothing is added when it is empty or longer than 65,535 bytes.
    pub fn push(&mut self, depth: u16, url: &str, fingerprint: u64) {
        if self.fingerprints.is_empty() {
            self.urls.reserve(ROOM_BYTES);
            self.fingerprints.reserve(ROOM_BYTES / size_of::<u64>());
        }
        if self.urls.push(depth, url) {
            self.fingerprints.push(fingerprint);
        }
    }

    /// Appends all of `other`.
    pub fn extend(&mut self, other: &HashedUrls) {
        self.urls.extend(&other.urls);
        self.fingerprints.extend_from_slice(&other.fingerprints);
    }

    /// Changes the depth of every URL.
    pub fn change_depths(&mut self, change: impl FnMut(u16, &str) -> u16) {
        self.urls.change_depths(change);
    }

    /// The fingerprints, in order.
    pub fn fingerprints(&self) -> &[u64] {
        &self.fingerprints
    }

    /// Forgets the URLs, keeps the memory.
    pub fn clear(&mut self) {
        self.urls.clear();
        self.fingerprints.clear();
    }
}

/// The room that most pages need for their links, so that memory does not grow in many steps; one memory page.
const ROOM_BYTES: usize = 4 << 10;

impl Deref for HashedUrls {
    type Target = UrlBatch;

    fn deref(&self) -> &UrlBatch {
        &self.urls
    }
}

impl From<HashedUrls> for UrlBatch {
    fn from(hashed: HashedUrls) -> UrlBatch {
        hashed.urls
    }
}
