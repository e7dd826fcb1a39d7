//! How much of a page's text is new to its host.
//!
//! Decides: a page is known by a sample of its shingles ([`TextSample`]): those whose hashes are below [`SAMPLED_BELOW`]. A host
//! remembers the hashes of its pages' samples below a threshold ([`SeenText`]), which falls as they become more, so it remembers a part
//! of its text that is chosen by the text alone. What part of a page's sample it has not met is what part of the page is new
//! (containment, Broder 1997). All pages are sampled below one threshold, long ones too: what a short page says would else be new
//! where a long one said it before.
//! Why containment: a version of a page, a list of what other pages say, a filtered list or a page in another format differ
//! from each page that was there before, and yet say nothing new. Fingerprints that are compared do not show that.
//! Invariants: pure; hashes ascend; a page has at most [`SAMPLE_MAX`] of them, a host [`SEEN_MAX`].
//! Limits: of a host with much text a short page has no hash below the threshold, or one: it takes many of these to tell.

use std::ops::Deref;

/// The hashes of a page's shingles that are small, ascending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextSample(Box<[u32]>);

impl TextSample {
    /// Of a page with these shingles; `None` if they are too few to tell anything.
    pub fn of(shingles: impl Iterator<Item = u64>) -> Option<TextSample> {
        let mut smallest: Vec<u32> = Vec::new();
        let (mut below, mut count) = (SAMPLED_BELOW, 0);
        for shingle in shingles {
            count += 1;
            let hash = (shingle >> 32) as u32;
            if hash >= below {
                continue;
            }
            smallest.push(hash);
            if smallest.len() == 2 * SAMPLE_MAX {
                keep_smallest(&mut smallest);
                below = smallest.get(SAMPLE_MAX - 1).copied().unwrap_or(below);
            }
        }
        keep_smallest(&mut smallest);
        (count >= SHINGLES_MIN).then(|| TextSample(smallest.into()))
    }
}

fn keep_smallest(hashes: &mut Vec<u32>) {
    hashes.sort_unstable();
    hashes.dedup();
    hashes.truncate(SAMPLE_MAX);
}

impl Deref for TextSample {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.0
    }
}

/// What text a host has.
#[derive(Clone, Debug)]
pub struct SeenText {
    hashes: Vec<u32>,
    /// Only smaller ones are remembered.
    below: u32,
}

impl SeenText {
    /// None.
    pub fn new() -> SeenText {
        SeenText { hashes: Vec::new(), below: SAMPLED_BELOW }
    }

    /// Takes a page's sample in: how many hashes of it count, and how many of these are new.
    pub fn take(&mut self, sample: &TextSample) -> (usize, usize) {
        let counted = sample.partition_point(|hash| *hash < self.below);
        // Each new one with its place among those that were there.
        let place = |hash: &u32| self.hashes.binary_search(hash).err().map(|place| (place, *hash));
        let new: Vec<(usize, u32)> = sample.iter().take(counted).filter_map(place).collect();
        let mut end = self.hashes.len();
        self.hashes.resize(end + new.len(), 0);
        for (smaller, (place, hash)) in new.iter().enumerate().rev() {
            // What is larger makes room for it and for the new ones before it.
            self.hashes.copy_within(*place..end, place + smaller + 1);
            self.hashes.get_mut(place + smaller).into_iter().for_each(|there| *there = *hash);
            end = *place;
        }
        if self.hashes.len() > SEEN_MAX {
            self.below /= 2;
            let left = self.hashes.partition_point(|hash| *hash < self.below);
            self.hashes.truncate(left);
        }
        (counted, new.len())
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u32>()
    }
}

impl Default for SeenText {
    fn default() -> SeenText {
        SeenText::new()
    }
}

/// With fewer, a page says next to nothing.
const SHINGLES_MIN: usize = 16;
/// One shingle in eight.
const SAMPLED_BELOW: u32 = u32::MAX / 8;
/// Hashes of a page: of a longer one than some 4,000 shingles only the smallest count.
const SAMPLE_MAX: usize = 512;
/// Hashes of a host: 32 KiB.
const SEEN_MAX: usize = 8_192;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Shingles of a text: a number each, as hashes.
    fn shingles(numbers: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
        numbers.map(|number| xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes()))
    }

    fn sample(numbers: std::ops::Range<u64>) -> TextSample {
        TextSample::of(shingles(numbers)).expect("a text")
    }

    #[test]
    fn a_sample_is_the_small_hashes_however_they_come() {
        for count in [16, 200, 4_000, 4_500, 100_000] {
            let small = |hash: &u32| *hash < u32::MAX / 8;
            let mut slow: BTreeSet<u32> = shingles(0..count).map(|hash| (hash >> 32) as u32).filter(small).collect();
            while slow.len() > SAMPLE_MAX {
                slow.pop_last();
            }
            let there = sample(0..count);
            assert!(there.iter().eq(&slow), "{count}");
            assert_eq!(TextSample::of(shingles((0..count).rev().chain(0..count))), Some(there), "{count}");
        }
        assert_eq!(TextSample::of(shingles(0..15)), None);
    }

    /// Parts of texts are found in whatever else had them, also when the host has more text than it remembers.
    #[test]
    fn what_part_of_a_page_is_new() {
        let mut seen = SeenText::new();
        let (first, both) = (sample(0..1_000), sample(500..1_500));
        let common = both.iter().filter(|hash| first.contains(hash)).count();
        assert!((30..100).contains(&common), "{common}");
        assert_eq!(seen.take(&first), (first.len(), first.len()));
        assert_eq!(seen.take(&first), (first.len(), 0));
        assert_eq!(seen.take(&both), (both.len(), both.len() - common));
        let union: BTreeSet<u32> = first.iter().chain(both.iter()).copied().collect();
        assert!(seen.hashes.iter().eq(&union));
        for page in 0..500u64 {
            let from = 10_000 * (page + 1);
            seen.take(&sample(from..from + 1_000));
            assert!(seen.hashes.is_sorted() && seen.hashes.len() <= SEEN_MAX);
        }
        let mut parts = (0, 0, 0);
        for page in 0..500u64 {
            let from = 10_000 * (page + 1);
            let (counted, new) = seen.take(&sample(from..from + 1_000));
            assert_eq!(new, 0, "all of it was there");
            // Half of it was.
            let (half_counted, half_new) = seen.clone().take(&sample(from + 500..from + 1_500));
            parts = (parts.0 + counted, parts.1 + half_counted, parts.2 + half_new);
        }
        assert!(parts.0 > 1_000, "{parts:?}");
        assert!((0.4..0.6).contains(&(parts.2 as f64 / parts.1 as f64)), "{parts:?}");
        assert!(seen.ram_bytes() <= 2 * 4 * (SEEN_MAX + SAMPLE_MAX));
    }
}
