//! Stored payloads, to which a later capture of the same payload refers.
//!
//! Decides: for payloads of [`PAYLOAD_BYTES_MIN`] bytes or more we remember where they were first stored, by digest.
//! Of this run, as many as fit in `store.duplicates_bytes_max`, dropping the oldest; of earlier crawls, those that
//! `store.dedupe_against` names, by digest and URL ([`EarlierCrawls`]). A shorter payload costs less than the record
//! that refers to it.
//! Why by digest: equal bytes are equal whatever their URL. The table holds a 128-bit hash of the digest under the
//! crawl's own seed, so no outsider can choose two payloads that collide.
//! Invariants: an original is written before what refers to it, by the same shard and so into the same or an earlier
//! segment; a forgotten payload is stored again.
//! Leaves to others: the record (`capture`).

use std::collections::VecDeque;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::earlier_crawls::EarlierCrawls;
use ringcrawl_base::IntMap;
use ringcrawl_base::time::UnixTime;
use ringcrawl_url::Url;

/// The capture that holds a payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Original {
    /// The URL fetched then.
    pub url: String,
    /// When.
    pub time: UnixTime,
}

/// The payloads that one shard remembers.
pub struct Originals {
    bytes_max: usize,
    seed: u64,
    earlier: Arc<EarlierCrawls>,
    stored: IntMap<Original, u128>,
    /// In order of arrival.
    order: VecDeque<u128>,
    bytes: usize,
}

impl Originals {
    /// Nothing of this run yet; it may use `bytes_max` bytes.
    pub fn new(bytes_max: usize, seed: u64, earlier: Arc<EarlierCrawls>) -> Originals {
        Originals { bytes_max, seed, earlier, stored: IntMap::default(), order: VecDeque::new(), bytes: 0 }
    }

    /// The capture that holds the payload with the digest `label`, of `payload_bytes` bytes, which was now fetched
    /// from `url`.
    pub fn of(&self, url: &Url, label: &[u8], payload_bytes: usize) -> Option<Original> {
        if payload_bytes < PAYLOAD_BYTES_MIN {
            return None;
        }
        let original = self.stored.get(&self.key(label)).cloned();
        original.or_else(|| {
            let time = self.earlier.time_of(url.as_str(), label)?;
            Some(Original { url: url.as_str().to_owned(), time })
        })
    }

    /// Notes that a payload was stored.
    pub fn note(&mut self, url: &Url, time: UnixTime, label: &[u8], payload_bytes: usize) {
        let entry_bytes = ENTRY_BYTES + url.as_str().len();
        if payload_bytes < PAYLOAD_BYTES_MIN || entry_bytes > self.bytes_max {
            return;
        }
        let key = self.key(label);
        if self.stored.contains_key(&key) {
            return;
        }
        while self.bytes + entry_bytes > self.bytes_max {
            let oldest = self.order.pop_front().and_then(|key| self.stored.remove(&key));
            let Some(oldest) = oldest else { break };
            self.bytes -= ENTRY_BYTES + oldest.url.len();
        }
        self.bytes += entry_bytes;
        self.order.push_back(key);
        self.stored.insert(key, Original { url: url.as_str().to_owned(), time });
    }

    fn key(&self, label: &[u8]) -> u128 {
        xxh3_128_with_seed(label, self.seed)
    }
}

/// Shorter payloads are always stored: a record that refers to another one has some 700 bytes of its own.
pub const PAYLOAD_BYTES_MIN: usize = 1_024;
/// The cost of an entry apart from its URL: the map's slot and free room, the order's, the allocator's.
const ENTRY_BYTES: usize = 176;

#[cfg(test)]
mod tests {
    use super::*;

    fn originals(bytes_max: usize) -> Originals {
        Originals::new(bytes_max, 7, Arc::default())
    }

    fn url(number: usize) -> Url {
        Url::parse(&format!("http://a.example/{number:06}")).expect("a URL")
    }

    #[test]
    fn the_first_one_counts_and_short_ones_do_not() {
        let mut originals = originals(1 << 20);
        let time = UnixTime::from_micros(5);
        originals.note(&url(1), time, b"sha256:A", 5_000);
        originals.note(&url(2), UnixTime::from_micros(6), b"sha256:A", 5_000);
        originals.note(&url(3), time, b"sha256:B", PAYLOAD_BYTES_MIN - 1);
        let first = Original { url: url(1).as_str().to_owned(), time };
        assert_eq!(originals.of(&url(9), b"sha256:A", 5_000), Some(first));
        assert_eq!(originals.of(&url(9), b"sha256:B", 5_000), None);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_is_forgotten() {
        let mut originals = originals(100_000);
        for number in 0..10_000 {
            originals.note(&url(number), UnixTime::from_micros(0), format!("{number}").as_bytes(), 5_000);
            assert!(originals.bytes <= 100_000 && originals.order.len() == originals.stored.len());
        }
        let known = |number: usize| originals.of(&url(0), format!("{number}").as_bytes(), 5_000).is_some();
        assert!(known(9_999) && known(9_600) && !known(9_400) && !known(0));
    }
}
