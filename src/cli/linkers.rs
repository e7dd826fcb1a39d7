//! Which page linked to each URL of a log first, by hashes.
//!
//! Decides: a URL that was asked for twice, as a redirect led back to it, stands in the log twice; the first page counts, or ways
//! would lead around.
//! Limits: 16 bytes a URL.

use xxhash_rust::xxh3::xxh3_64;

use ringcrawl_brain::log::Listed;

/// Hashes of URLs and of the pages that linked to them: in the order of the log, until they are sorted.
#[derive(Debug, Default)]
pub(super) struct Linkers(Vec<(u64, u64)>);

impl Linkers {
    /// A URL of the log.
    pub(super) fn take(&mut self, listed: &Listed<'_>) {
        self.0.extend(listed.via.map(|via| (hash(listed.text), hash(via))));
    }

    /// All are taken: by URLs, each once.
    pub(super) fn sort(&mut self) {
        self.0.sort_by_key(|(url, _)| *url);
        self.0.dedup_by_key(|(url, _)| *url);
    }

    /// URLs.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The place of a URL among the sorted.
    pub(super) fn place(&self, url: u64) -> Option<usize> {
        self.0.binary_search_by_key(&url, |(url, _)| *url).ok()
    }

    /// The URL there, and its page.
    pub(super) fn at(&self, place: usize) -> Option<(u64, u64)> {
        self.0.get(place).copied()
    }
}

/// Of a URL's text.
pub(super) fn hash(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}
