//! How much of a page's text is new to its host.
//!
//! Decides: a page's text is a sample of its *anchors* (`ringcrawl_html::anchors`): hashes of short pieces of text.
//! The text itself determines where they start, so the same sentence has the same anchors on every page. The sample
//! is the smallest [`SAMPLE_MAX`] of them. A host remembers the anchors of its pages, each with the number of pages
//! that had it, up to [`COMMON`]. Anchors of that many pages are the site's own frame (menus, footers). They say
//! nothing about a page and are left out.
//! Why containment: a version of a page, a list of what other pages say and a page in another format differ from each
//! page before them, and yet say nothing new. Comparing fingerprints does not show that.
//! Invariants: pure; a page has at most [`SAMPLE_MAX`] anchors, a host [`ANCHORS_MAX`]; memory grows with what is
//! remembered.
//! Limits: the anchors that appeared least recently are forgotten first, and are new again. That error favors the
//! page.

use std::ops::Deref;

/// The anchors of a page, ascending, each once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TextSample(Box<[u32]>);

impl TextSample {
    /// The sample of a page with these anchors.
    pub fn of(anchors: impl IntoIterator<Item = u32>) -> TextSample {
        let mut smallest: Vec<u32> = Vec::new();
        let mut below = u32::MAX;
        for anchor in anchors {
            if anchor >= below {
                continue;
            }
            smallest.push(anchor);
            if smallest.len() == 2 * SAMPLE_MAX {
                keep_smallest(&mut smallest);
                below = smallest.get(SAMPLE_MAX - 1).copied().unwrap_or(below);
            }
        }
        keep_smallest(&mut smallest);
        TextSample(smallest.into())
    }
}

fn keep_smallest(anchors: &mut Vec<u32>) {
    anchors.sort_unstable();
    anchors.dedup();
    anchors.truncate(SAMPLE_MAX);
}

impl Deref for TextSample {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.0
    }
}

/// How much of a sample is new.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Novelty {
    /// Anchors that are not the site's frame.
    pub own: u32,
    /// Those of them that no earlier page had.
    pub new: u32,
}

/// The anchors of a host's pages.
#[derive(Clone, Debug, Default)]
pub struct SeenText {
    /// Empty or a power of two in number; each bucket keeps its most recent anchor first.
    buckets: Vec<Bucket>,
    used: usize,
}

/// An anchor's upper bits, and in the lowest two the number of pages that had it; 0: none.
type Bucket = [u32; BUCKET];

impl SeenText {
    /// How much of a page is new; remembers its anchors where `is_kept`.
    pub fn meet(&mut self, sample: &TextSample, is_kept: bool) -> Novelty {
        self.touch(sample);
        let mut novelty = Novelty::default();
        for anchor in sample.iter() {
            let pages = if is_kept { self.add(*anchor) } else { self.pages_with(*anchor) };
            novelty.own += u32::from(pages < COMMON);
            novelty.new += u32::from(pages == 0);
        }
        novelty
    }

    /// Remembers the hash of something compared as a whole, such as a payload. Returns whether it was met before.
    pub fn is_again(&mut self, hash: u64) -> bool {
        self.add((hash >> 32) as u32 ^ hash as u32) > 0
    }

    /// Whether the hash was met before.
    pub fn has(&self, hash: u64) -> bool {
        self.pages_with((hash >> 32) as u32 ^ hash as u32) > 0
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>()
    }

    /// Reads the buckets of all anchors first, so that memory latency is paid once and not for each anchor.
    fn touch(&self, sample: &TextSample) {
        let buckets = sample.iter().filter_map(|anchor| self.buckets.get(self.bucket_of(key_of(*anchor))));
        std::hint::black_box(buckets.fold(0, |all, bucket| all ^ bucket[0] ^ bucket[BUCKET - 1]));
    }

    fn pages_with(&self, anchor: u32) -> u32 {
        let key = key_of(anchor);
        let bucket = self.buckets.get(self.bucket_of(key));
        bucket.and_then(|bucket| bucket.iter().find(|there| **there & !COUNT == key)).map_or(0, |there| there & COUNT)
    }

    /// One more page has this anchor; returns how many had it before.
    fn add(&mut self, anchor: u32) -> u32 {
        let key = key_of(anchor);
        let has_room = |bucket: &Bucket| bucket[BUCKET - 1] == 0 || bucket.iter().any(|there| *there & !COUNT == key);
        let mut at = self.bucket_of(key);
        while !self.buckets.get(at).is_some_and(has_room)
            && self.buckets.len() * BUCKET < ANCHORS_MAX.min(ROOM_EACH * (self.used + BUCKET))
        {
            self.grow();
            at = self.bucket_of(key);
        }
        let Some(bucket) = self.buckets.get_mut(at) else { return 0 };
        // The entries before it move on by one place, and it comes first.
        let mut moved = key;
        for there in bucket.iter_mut() {
            std::mem::swap(there, &mut moved);
            if moved & !COUNT == key || moved == 0 {
                break;
            }
        }
        self.used += usize::from(moved == 0);
        let pages = if moved & !COUNT == key { moved & COUNT } else { 0 };
        let [first, ..] = bucket;
        *first = key | (pages + 1).min(COMMON);
        pages
    }

    fn bucket_of(&self, key: u32) -> usize {
        // The lowest bits are the count, and samples hold the smallest anchors: the bits between are as good as
        // random.
        (key >> 2) as usize & self.buckets.len().saturating_sub(1)
    }

    fn grow(&mut self) {
        let buckets = (self.buckets.len() * 2).max(BUCKETS_MIN);
        let old = std::mem::replace(&mut self.buckets, vec![Bucket::default(); buckets]);
        self.used = 0;
        // A bucket's entries come from one bucket of the smaller table, so they stay in order and have room.
        for there in old.iter().flatten().filter(|there| **there != 0) {
            let at = self.bucket_of(there & !COUNT);
            if let Some(free) = self.buckets.get_mut(at).and_then(|bucket| bucket.iter_mut().find(|free| **free == 0)) {
                *free = *there;
                self.used += 1;
            }
        }
    }
}

/// What stands for an anchor; never 0.
fn key_of(anchor: u32) -> u32 {
    anchor.max(COUNT + 1) & !COUNT
}

/// Once this many pages have an anchor, it is the site's frame.
const COMMON: u32 = 3;
/// The bits that count pages.
const COUNT: u32 = 3;
/// Anchors of a page: some 4 KiB of text whole, and of a longer one the smallest.
pub const SAMPLE_MAX: usize = 256;
/// Anchors of a host: 64 KiB.
const ANCHORS_MAX: usize = 16_384;
const BUCKETS_MIN: usize = 16;
/// The most room per anchor that a host has while it forgets none.
const ROOM_EACH: usize = 8;
const BUCKET: usize = 8;

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use super::*;
    use ringcrawl_base::Rng;

    /// Anchors of a text: a number each, as hashes.
    fn anchors(numbers: impl Iterator<Item = u64>) -> impl Iterator<Item = u32> {
        numbers.map(|number| xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes()) as u32)
    }

    fn sample(numbers: std::ops::Range<u64>) -> TextSample {
        TextSample::of(anchors(numbers))
    }

    #[test]
    fn a_sample_is_the_smallest_anchors_however_they_come() {
        for count in [0, 1, 200, 256, 257, 511, 512, 100_000] {
            let mut slow: BTreeSet<u32> = anchors(0..count).collect();
            while slow.len() > SAMPLE_MAX {
                slow.pop_last();
            }
            let there = sample(0..count);
            assert!(there.iter().eq(&slow), "{count}");
            assert_eq!(TextSample::of(anchors((0..count).rev().chain(0..count))), there, "{count}");
        }
    }

    /// Compares with a map of counts, while all anchors are remembered.
    #[test]
    fn agrees_with_a_map() {
        let (mut rng, mut seen, mut twin) = (Rng::new(5), SeenText::default(), HashMap::<u32, u32>::new());
        for _ in 0..300 {
            let from = rng.below(1_000);
            let page = sample(from..from + rng.below(200));
            let is_kept = rng.percent(80);
            let before = |anchor: &u32| twin.get(&key_of(*anchor)).copied().unwrap_or_default();
            let own = page.iter().filter(|anchor| before(anchor) < COMMON).count() as u32;
            let new = page.iter().filter(|anchor| before(anchor) == 0).count() as u32;
            assert_eq!(seen.meet(&page, is_kept), Novelty { own, new });
            if is_kept {
                page.iter().for_each(|anchor| *twin.entry(key_of(*anchor)).or_default() += 1);
            }
        }
        assert!(!seen.is_again(7 << 32) && seen.is_again(7 << 32));
    }

    /// A host with more text than it can remember knows its frame and its latest text.
    #[test]
    fn what_is_met_often_or_lately_is_known() {
        let mut seen = SeenText::default();
        for page in 0..2_000u64 {
            let own = 1_000 + page * 50;
            let novelty = seen.meet(&TextSample::of(anchors((0..30).chain(own..own + 50))), true);
            let frame = if page < 3 { 30 } else { 0 };
            assert_eq!(novelty.own, 50 + frame, "{page}");
            assert!(novelty.new >= 48, "{page}: {novelty:?}");
        }
        let last = 1_000 + 1_999 * 50;
        assert_eq!(seen.meet(&sample(last..last + 50), false).new, 0);
        assert!(seen.ram_bytes() <= 4 * ANCHORS_MAX, "{} bytes", seen.ram_bytes());
    }
}
