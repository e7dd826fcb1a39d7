//! The fingerprints under which a crawl knows a URL.
//!
//! Decides: a fetched URL is known by its own text, a found one by its key. All URLs that lead to the same page by
//! `visited.*` share a key. Without such rules the two are the same.

use std::borrow::Cow;

use ringcrawl_url::{HashedUrls, KeyRules, SiteKey, Url, UrlBatch, fingerprint, fingerprint_of_bytes};

/// Fingerprints of one crawl.
#[derive(Debug)]
pub(in crate::shard) struct Keys {
    rng_seed: u64,
    rules: KeyRules,
    /// Buffer for a key.
    text: String,
}

impl Keys {
    /// Those of the crawl with `rng_seed`.
    pub(super) fn new(rng_seed: u64, rules: KeyRules) -> Keys {
        Keys { rng_seed, rules, text: String::new() }
    }

    /// Whether every URL is its own key.
    pub(super) fn are_urls(&self) -> bool {
        self.rules.is_empty()
    }

    /// The fingerprint under which `url` is known once it is fetched.
    pub(in crate::shard) fn fingerprint(&self, url: &Url) -> u64 {
        fingerprint(self.rng_seed, url.as_str())
    }

    /// The fingerprint of the key of `url`.
    pub(in crate::shard) fn key(&mut self, url: &Url) -> u64 {
        if self.rules.is_empty() {
            return self.fingerprint(url);
        }
        self.rules.write(url, &mut self.text);
        fingerprint(self.rng_seed, &self.text)
    }

    /// The fingerprints of the keys of a batch, in order.
    pub(super) fn of_batch(&mut self, batch: &UrlBatch) -> Vec<u64> {
        let mut url = Url::unwritten(0);
        let keys = batch.raw().map(|(_, bytes)| match self.rules.is_empty() || url.read_canonical(bytes).is_err() {
            true => fingerprint_of_bytes(self.rng_seed, bytes),
            false => self.key(&url),
        });
        keys.collect()
    }

    /// The same for links whose own fingerprints are known.
    pub(super) fn of_links<'l>(&mut self, links: &'l HashedUrls) -> Cow<'l, [u64]> {
        if self.are_urls() { links.fingerprints().into() } else { self.of_batch(links).into() }
    }

    /// The key of the site of this name.
    pub(super) fn site(&self, site: &str) -> SiteKey {
        SiteKey::new(self.rng_seed, site)
    }

    /// The fingerprint of a URL that was accepted although its key was known.
    pub(in crate::shard) fn lone_key(&self, url: &Url) -> u64 {
        fingerprint(!self.rng_seed, url.as_str())
    }
}
