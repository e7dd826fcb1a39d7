//! The page that first linked to each URL of a log, by hashes.
//!
//! Decides: a URL that was fetched twice, as a redirect led back to it, is in the log twice. The first page counts,
//! or paths would run in circles.
//! Limits: 16 bytes a URL.

use xxhash_rust::xxh3::xxh3_64;

use ringcrawl_brain::log::Listed;

/// Hashes of URLs and of the pages that linked to them: in the order of the log, until they are sorted.
#[derive(Debug, Default)]
pub(super) struct Linkers(Vec<(u64, u64)>);

impl Linkers {
    /// Takes a URL of the log.
    pub(super) fn take(&mut self, listed: &Listed<'_>) {
        self.0.extend(listed.via.map(|via| (hash(listed.text), hash(via))));
    }

    /// Sorts by URL, one entry each, once all are taken.
    pub(super) fn sort(&mut self) {
        self.0.sort_by_key(|(url, _)| *url);
        self.0.dedup_by_key(|(url, _)| *url);
    }

    /// The number of URLs.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The index of a URL in the sorted list.
    pub(super) fn place(&self, url: u64) -> Option<usize> {
        self.0.binary_search_by_key(&url, |(url, _)| *url).ok()
    }

    /// The URL at that index, and its page.
    pub(super) fn at(&self, place: usize) -> Option<(u64, u64)> {
        self.0.get(place).copied()
    }
}

/// Hashes a URL's text.
pub(super) fn hash(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}
