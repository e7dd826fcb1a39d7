//! URLs that this shard has sent already and need not send again (Cho and Garcia-Molina, "Parallel Crawlers", 2002).
//!
//! Decides: recently sent URLs are known by a cache of fingerprints in which a newer one takes an older one's slot.
//! Without a cache it works like the paper's batches: the URLs in the open batch are known, and forgotten when the
//! batch goes. URLs that an earlier crawl found many links to ("replication") are known by a fixed list. Each of
//! these is sent once, as its owner may not have found it, and then never again in this run.
//! Why this loses nothing: what was sent is in the journal, or on its owner's disk, before a page that links to it
//! again is final.
//! Invariants: memory is fixed; a URL that was not sent is never called known, except for two URLs in 2^64
//! fingerprints.

use std::collections::HashSet;
use std::sync::Arc;

/// Fingerprints of the most linked URLs of an earlier crawl; one list for all shards.
#[derive(Clone, Debug, Default)]
pub struct Replicated(Arc<[u64]>);

impl Replicated {
    /// The list for these fingerprints.
    pub fn new(mut fingerprints: Vec<u64>) -> Replicated {
        fingerprints.sort_unstable();
        fingerprints.dedup();
        Replicated(fingerprints.into())
    }

    /// Number of URLs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What one shard has sent.
#[derive(Debug, Default)]
pub struct SentUrls {
    recent: Box<[u64]>,
    /// By shard, if there is no cache: the number of its open batch, and the URLs in it.
    batches: Vec<(u64, HashSet<u64>)>,
    replicated: Replicated,
    /// One bit for each place in that list: it was sent.
    sent: Box<[u64]>,
}

impl SentUrls {
    /// Nothing was sent; remembers up to `recent_urls` of the latest.
    pub fn new(recent_urls: usize, replicated: Replicated) -> SentUrls {
        let sent = vec![0; replicated.len().div_ceil(WORD_BITS)].into();
        SentUrls { recent: vec![0; recent_urls].into(), batches: Vec::new(), replicated, sent }
    }

    /// The URL with this fingerprint goes into a batch, given by shard and number. Returns whether it is known to
    /// have been sent before.
    pub fn is_again(&mut self, fingerprint: u64, (to, number): (u16, u64)) -> bool {
        if let Ok(place) = self.replicated.0.binary_search(&fingerprint)
            && let Some(word) = self.sent.get_mut(place / WORD_BITS)
        {
            let bit = 1 << (place % WORD_BITS);
            let was_sent = *word & bit != 0;
            *word |= bit;
            return was_sent;
        }
        if self.recent.is_empty() {
            let to = usize::from(to);
            if to >= self.batches.len() {
                self.batches.resize_with(to + 1, Default::default);
            }
            let Some((collected, known)) = self.batches.get_mut(to) else { return false };
            if *collected != number {
                *collected = number;
                known.clear();
            }
            return !known.insert(fingerprint);
        }
        // By the high bits: the visited set and others use the low ones.
        let slot = ((u128::from(fingerprint) * self.recent.len() as u128) >> 64) as usize;
        self.recent.get_mut(slot).is_some_and(|slot| std::mem::replace(slot, fingerprint) == fingerprint)
    }
}

const WORD_BITS: usize = u64::BITS as usize;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use ringcrawl_base::Rng;

    #[test]
    fn a_batch_has_no_url_twice_and_the_next_one_knows_nothing() {
        let mut sent = SentUrls::new(0, Replicated::default());
        let mut of = |batch: (u16, u64)| [7, 8, 7].map(|fingerprint| sent.is_again(fingerprint, batch));
        assert_eq!(of((3, 1)), [false, false, true]);
        assert_eq!(of((0, 1)), [false, false, true], "another shard's");
        assert_eq!(of((3, 1)), [true; 3]);
        assert_eq!(of((3, 2)), [false, false, true]);
    }

    #[test]
    fn each_is_sent_once_as_long_as_it_is_known() {
        for (recent, replicated) in [(0, 0), (1, 0), (64, 0), (1 << 16, 0), (0, 500), (64, 500)] {
            let mut rng = Rng::new(7);
            let all: Vec<u64> = (0..2_000).map(|_| rng.next()).collect();
            let list = Replicated::new(all[..replicated].iter().chain(&all[..replicated / 2]).copied().collect());
            assert_eq!(list.len(), replicated);
            let (mut sent, mut before, mut again) = (SentUrls::new(recent, list), BTreeSet::new(), 0_u32);
            for round in 0..20_000 {
                let one = rng.index(all.len());
                let is_again = sent.is_again(all[one], (1, round / 50));
                again += u32::from(is_again);
                assert!(!is_again || before.contains(&one), "what was not sent is not known");
                assert!(one >= replicated || is_again == before.contains(&one), "what is replicated is known for ever");
                before.insert(one);
            }
            assert!(again > 0, "{recent} {replicated} {again}");
            assert!(recent < 1 << 16 || again > 17_500, "{again} of 20,000 with room for all");
        }
    }
}
