//! A set of fingerprints in five bytes each, which grows by one bucket at a time.
//!
//! Decides: a fingerprint is a *number* that stands in the bucket of its lowest bits or, if that is full, as its partner
//! in the partner's. If both are full, another number moves to its own other bucket
//! ([cuckoo hashing](https://doi.org/10.1016/j.jalgor.2003.12.002) with large buckets).
//! The number of buckets follows the number of fingerprints, one by one (linear hashing, Litwin, VLDB 1980): the next
//! bucket in turn is split by one more bit of its numbers, and its second half goes behind the last bucket. Thus there
//! is no pause for growth, no second copy, and the load stays at [`LOAD`].
//! Invariants: a number is in at most one of its buckets; buckets below `split` and their second halves have the shape
//! `shapes[1]`, the others `shapes[0]`; the buckets are in use from the first on without gaps.
//! Limits: `urls_max` entries, and those of an earlier run that had a higher limit. Bytes of memory an entry of 56 bits:
//! 6.3 at a million, 5.2 at 16 million, 4.7 at 100 million, 4.4 from 500 million on, and 256 KiB at least. A new
//! fingerprint among n is taken for seen with probability n / 2^bits. Fingerprints that crowd, as those of a stranger
//! who knows the key could, take more memory ([`Table::crowd`]).

use std::collections::HashSet;
use std::hint::black_box;

use super::bucket::{Bucket, Shape};

/// The set.
#[derive(Debug)]
pub struct Table {
    slabs: Vec<Box<[Bucket; SLAB]>>,
    /// Numbers for which no place was found.
    crowd: HashSet<u64>,
    /// Of buckets that are not split, and of those that are.
    shapes: [Shape; 2],
    /// Buckets that are split: the first ones.
    split: usize,
    /// Bits of a number.
    bits: u32,
    len: u64,
    slots: u64,
    urls_max: u64,
}

/// The result of an insertion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// It was not there and is now.
    New,
    /// It was there.
    Before,
    /// It was not there and there is no room.
    Full,
}

impl Table {
    /// An empty set for at most `urls_max` fingerprints of `fingerprint_bits` bits, 48 to 62: the lowest of those that
    /// are given, and one more, as there are two numbers for each.
    pub fn new(urls_max: u64, fingerprint_bits: u32) -> Table {
        assert!((48..=62).contains(&fingerprint_bits), "fingerprints of {fingerprint_bits} bits");
        let bits = fingerprint_bits + 1;
        let place_bits = FIRST.trailing_zeros();
        let shapes = [0, 1].map(|more| Shape::new(bits, place_bits + more));
        let slots = FIRST as u64 * u64::from(shapes[0].slots());
        Table { slabs: vec![slab()], crowd: HashSet::new(), shapes, split: 0, bits, len: 0, slots, urls_max }
    }

    /// Makes an empty set as large as one with `count` fingerprints, but not larger than a full one: then no bucket has
    /// to be split on the way there.
    pub fn reserve(&mut self, count: u64) {
        let place_bits = FIRST.trailing_zeros();
        if !self.is_empty() || self.shapes[0].place_bits() != place_bits || self.split > 0 {
            return;
        }
        let count = count.min(self.urls_max);
        while count * LOAD.1 > self.slots * LOAD.0 {
            let [before, after] = self.shapes;
            let all = 1_u64 << before.place_bits();
            let more = 2 * u64::from(after.slots()) - u64::from(before.slots());
            let split = (count * LOAD.1).div_ceil(LOAD.0).saturating_sub(self.slots).div_ceil(more).min(all);
            self.slots += split * more;
            self.split = split as usize;
            self.turn_over();
        }
        let buckets = (1 << self.shapes[0].place_bits()) + self.split;
        self.slabs.resize_with(buckets.div_ceil(SLAB), slab);
    }

    /// Adds `fingerprint` unless it is there or the set is full.
    pub fn insert(&mut self, fingerprint: u64) -> Seen {
        if self.len >= self.urls_max {
            return if self.contains(fingerprint) { Seen::Before } else { Seen::Full };
        }
        if self.insert_anyway(fingerprint) { Seen::New } else { Seen::Before }
    }

    /// Adds `fingerprint`, also to a full set. Returns whether it was new.
    pub fn insert_anyway(&mut self, fingerprint: u64) -> bool {
        let number = self.number(fingerprint);
        if self.has(number) || self.has_other(number) {
            return false;
        }
        while (self.len + 1) * LOAD.1 > self.slots * LOAD.0 {
            self.grow();
        }
        self.len += 1;
        self.add(number);
        true
    }

    /// Whether `fingerprint` is there.
    pub fn contains(&self, fingerprint: u64) -> bool {
        let number = self.number(fingerprint);
        self.has(number) || self.has_other(number)
    }

    /// Whether each of `fingerprints` is there. The buckets of a group are read before any is searched, so that memory
    /// latency is paid once a group and not once a fingerprint. Most are in their first bucket.
    pub fn contains_each(&self, fingerprints: &[u64]) -> Vec<bool> {
        let mut contained = Vec::with_capacity(fingerprints.len());
        let (mut numbers, mut others) = (Vec::with_capacity(GROUP), Vec::with_capacity(GROUP));
        for group in fingerprints.chunks(GROUP) {
            numbers.clear();
            numbers.extend(group.iter().map(|fingerprint| self.number(*fingerprint)));
            self.read(numbers.iter());
            let first = contained.len();
            contained.extend(numbers.iter().map(|number| self.has(*number)));
            let not_yet = (first..).zip(&numbers).filter(|(index, _)| !contained[*index]);
            others.clear();
            others.extend(not_yet.map(|(index, number)| (index, partner(*number))));
            self.read(others.iter().map(|(_, number)| number));
            others.iter().for_each(|(index, number)| contained[*index] = self.has_other(partner(*number)));
        }
        contained
    }

    /// Number of fingerprints.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// How many more fit.
    pub fn room(&self) -> u64 {
        self.urls_max.saturating_sub(self.len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory of all buckets.
    pub fn bytes(&self) -> u64 {
        (self.slabs.len() * SLAB * size_of::<Bucket>() + self.crowd.capacity() * 2 * size_of::<u64>()) as u64
    }

    /// Reads the buckets of `numbers`, so that they are in the processor's cache.
    #[inline]
    fn read<'n>(&self, numbers: impl Iterator<Item = &'n u64>) {
        black_box(numbers.fold(0, |read, number| read ^ self.bucket(self.place(*number).1).first()));
    }

    /// The number that says a fingerprint first. Its upper bits are not 0.
    #[inline]
    fn number(&self, fingerprint: u64) -> u64 {
        let number = fingerprint & (u64::MAX >> (64 - self.bits));
        number | u64::from(number >> PARTNER_BITS == 0) << PARTNER_BITS
    }

    #[inline]
    fn has(&self, number: u64) -> bool {
        let (shape, place) = self.place(number);
        shape.has(self.bucket(place), number)
    }

    /// Whether `number` is where it goes if its bucket is full.
    #[inline]
    fn has_other(&self, number: u64) -> bool {
        let other = partner(number);
        self.has(other) || !self.crowd.is_empty() && (self.crowd.contains(&number) || self.crowd.contains(&other))
    }

    /// Where a number belongs.
    #[inline]
    fn place(&self, number: u64) -> (Shape, usize) {
        let place = self.shapes[0].place(number);
        // Without a branch: which one it is is chance.
        let is_split = usize::from(place < self.split);
        (self.shapes[is_split], place | number as usize & is_split << self.shapes[0].place_bits())
    }

    #[inline]
    fn bucket(&self, place: usize) -> &Bucket {
        &self.slabs[place / SLAB][place % SLAB]
    }

    #[inline]
    fn bucket_mut(&mut self, place: usize) -> &mut Bucket {
        &mut self.slabs[place / SLAB][place % SLAB]
    }

    #[inline]
    fn has_room(&self, number: u64) -> bool {
        let (shape, place) = self.place(number);
        shape.has_room(self.bucket(place))
    }

    #[inline]
    fn put(&mut self, number: u64) {
        let (shape, place) = self.place(number);
        shape.put(self.bucket_mut(place), number);
    }

    /// Puts a number that is not there into a bucket.
    fn add(&mut self, mut number: u64) {
        let both = [number, partner(number)];
        if let Some(number) = both.into_iter().find(|number| self.has_room(*number)) {
            return self.put(number);
        }
        if both.into_iter().any(|number| self.displaces(number)) {
            return;
        }
        // Neither bucket has a number that could move: any one looks further.
        for step in 1..=STEPS_MAX {
            // By the step, too: otherwise they could move in a circle.
            let slot = ((number >> 32) as u32).wrapping_add(step) % self.place(number).0.slots();
            let moved = self.take(number, slot);
            self.put(number);
            number = partner(moved);
            if self.has_room(number) {
                return self.put(number);
            }
            if self.displaces(number) {
                return;
            }
            if step.is_multiple_of(STEPS_A_BUCKET) && self.len * LOAD_MIN.1 > self.slots * LOAD_MIN.0 {
                self.grow();
                if self.has_room(number) {
                    return self.put(number);
                }
            }
        }
        self.crowd.insert(number);
    }

    /// Puts a number into its full bucket, if another one can move from there to its other bucket.
    fn displaces(&mut self, number: u64) -> bool {
        let Some(slot) = self.movable(number) else { return false };
        let moved = self.take(number, slot);
        self.put(partner(moved));
        self.put(number);
        true
    }

    /// A slot in the full bucket of `number` whose number can move to its other bucket: one that is split, as such have
    /// most room.
    fn movable(&self, number: u64) -> Option<u32> {
        let (shape, place) = self.place(number);
        let has_room = |other| (self.split == 0 || self.shapes[0].place(other) < self.split) && self.has_room(other);
        let mut numbers = shape.numbers(self.bucket(place), place);
        numbers.find(|(_, number)| has_room(partner(*number))).map(|(slot, _)| slot)
    }

    /// Takes what is in a slot of the bucket of `number` out of it.
    fn take(&mut self, number: u64, slot: u32) -> u64 {
        let (shape, place) = self.place(number);
        shape.take(self.bucket_mut(place), place, slot)
    }

    /// Splits the next bucket.
    fn grow(&mut self) {
        let [before, after] = self.shapes;
        let (place, all) = (self.split, 1 << before.place_bits());
        if place + all == self.slabs.len() * SLAB {
            self.slabs.push(slab());
        }
        let bucket = std::mem::take(self.bucket_mut(place));
        self.split += 1;
        self.slots += 2 * u64::from(after.slots()) - u64::from(before.slots());
        before.numbers(&bucket, place).for_each(|(_, number)| self.put(number));
        self.turn_over();
    }

    /// Once all buckets are split, they are the first half of twice as many.
    fn turn_over(&mut self) {
        let [before, after] = self.shapes;
        assert!(self.split <= 1 << before.place_bits(), "a bucket was split twice");
        if self.split == 1 << before.place_bits() {
            (self.split, self.shapes) = (0, [after, Shape::new(self.bits, after.place_bits() + 1)]);
        }
    }
}

/// The other number of the same fingerprint. Its own partner is `number`.
#[inline]
fn partner(number: u64) -> u64 {
    let upper = number >> PARTNER_BITS;
    number ^ upper.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PARTNER_BITS)
}

fn slab() -> Box<[Bucket; SLAB]> {
    let buckets = vec![Bucket::default(); SLAB].into_boxed_slice();
    buckets.try_into().expect("its length is a slab's")
}

/// Buckets of a slab, of 256 KiB.
const SLAB: usize = 1 << 12;
/// Buckets of an empty set.
const FIRST: usize = 16;
/// At most so many of so many slots are used.
const LOAD: (u64, u64) = (92, 100);
/// The lowest bits of a number, in which partners differ: they say the bucket, of at most 2^33.
const PARTNER_BITS: u32 = 33;
/// After so many steps there is one bucket more, as long as so many of so many slots are used.
const STEPS_A_BUCKET: u32 = 16;
const LOAD_MIN: (u64, u64) = (4, 5);
/// So many numbers move for one at most.
const STEPS_MAX: u32 = 500;
/// A little more than the reads of memory that a processor has in flight.
const GROUP: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;
    use std::collections::HashSet;

    const BITS: u32 = 56;

    /// What the set takes for one fingerprint.
    fn class(fingerprint: u64, bits: u32) -> u64 {
        let number = fingerprint & (u64::MAX >> (63 - bits));
        let number = if number >> PARTNER_BITS == 0 { number | 1 << PARTNER_BITS } else { number };
        number.min(partner(number))
    }

    #[test]
    fn agrees_with_a_hash_set() {
        for (bits, count) in [(48, 60_000), (BITS, 150_000), (62, 60_000)] {
            let mut rng = Rng::new(1);
            let (mut table, mut twin, mut known) = (Table::new(u64::MAX, bits), HashSet::new(), Vec::new());
            for step in 0..count {
                // New ones, those that are there, partners of these, and a few without upper bits.
                let fingerprint = match rng.below(800) {
                    0..100 if step > 0 => *rng.pick(&known),
                    100..200 if step > 0 => partner(class(*rng.pick(&known), bits)),
                    200 => rng.below(1 << PARTNER_BITS),
                    _ => rng.next(),
                };
                let new = twin.insert(class(fingerprint, bits));
                assert_eq!(table.insert(fingerprint), if new { Seen::New } else { Seen::Before });
                if known.len() < 30_000 {
                    known.push(fingerprint);
                }
            }
            assert_eq!((table.len(), table.crowd.len()), (twin.len() as u64, 0));
            assert!(known.iter().all(|fingerprint| table.contains(*fingerprint)));
            // One by one and in batches of any length; some were seen before.
            for batch in 0..200 {
                let batch: Vec<u64> =
                    (0..batch).map(|_| if rng.below(2) == 0 { rng.next() } else { *rng.pick(&known) }).collect();
                let seen: Vec<bool> = batch.iter().map(|value| twin.contains(&class(*value, bits))).collect();
                assert_eq!(table.contains_each(&batch), seen);
                assert!(batch.iter().zip(seen).all(|(value, is_seen)| table.contains(*value) == is_seen));
            }
        }
        assert_eq!(Table::new(9, BITS).contains_each(&[0, 1, u64::MAX]), [false; 3]);
    }

    /// In small sets numbers move further, and a set may grow while they do.
    #[test]
    fn many_small_sets_have_what_was_put_in() {
        for seed in 0..60 {
            let (mut rng, mut table) = (Rng::new(seed), Table::new(u64::MAX, BITS));
            let all: Vec<u64> = (0..3_000).map(|_| rng.next()).collect();
            assert!(all.iter().all(|fingerprint| table.insert(*fingerprint) == Seen::New));
            assert_eq!(table.contains_each(&all), vec![true; all.len()]);
            assert!(table.len() == 3_000 && table.crowd.len() <= 1, "{} crowd", table.crowd.len());
        }
    }

    /// Room that is made at once is as much as that which comes bit by bit, and the set goes on from there.
    #[test]
    fn a_reserved_set_is_as_one_that_grew() {
        // Those just below twice the buckets, too.
        for count in (1..600).chain([4_000, 5_000, 37_800, 37_808, 37_816, 70_000]) {
            let (mut grown, mut rng) = (Table::new(u64::MAX, BITS), Rng::new(count));
            let all: Vec<u64> = (0..count + 300).map(|_| rng.next()).collect();
            let mut reserved = Table::new(u64::MAX, BITS);
            reserved.reserve(count);
            let room = (reserved.slots, reserved.split, reserved.shapes, reserved.slabs.len());
            for fingerprint in &all[..count as usize] {
                grown.insert(*fingerprint);
                reserved.insert(*fingerprint);
            }
            // Small sets may grow a little more while numbers move.
            assert!((room.0..room.0 + 40).contains(&reserved.slots) && reserved.slabs.len() == room.3, "{count}");
            assert!(room.0 <= grown.slots + 20 && reserved.slabs.len() <= grown.slabs.len(), "{count}");
            let slots = reserved.slots;
            reserved.reserve(1_000_000);
            assert_eq!(reserved.slots, slots, "it is not empty");
            all[count as usize..].iter().for_each(|fingerprint| assert_eq!(reserved.insert(*fingerprint), Seen::New));
            assert_eq!(reserved.contains_each(&all), vec![true; all.len()]);
        }
        let mut bounded = Table::new(1_000, BITS);
        bounded.reserve(u64::MAX);
        assert!(bounded.slots < 1_200, "no more than it may hold");
    }

    /// Two numbers of 57 bits stand for one fingerprint: together 2^56 of these.
    #[test]
    fn a_partners_partner_is_itself() {
        let mut rng = Rng::new(4);
        for _ in 0..1_000 {
            let number = rng.next() >> (63 - BITS);
            assert!(partner(number) >> (BITS + 1) == 0 && partner(partner(number)) == number);
        }
    }

    #[test]
    fn full_is_full_and_forgets_nothing() {
        let mut table = Table::new(1_000, BITS);
        let mut rng = Rng::new(2);
        let first: Vec<u64> = (0..1_000).map(|_| rng.next()).collect();
        assert!(first.iter().all(|fingerprint| table.insert(*fingerprint) == Seen::New));
        let more = rng.next();
        assert_eq!(table.insert(more), Seen::Full);
        assert!(table.insert_anyway(more) && !table.insert_anyway(more));
        assert_eq!((table.insert(more), table.insert(rng.next())), (Seen::Before, Seen::Full));
        assert!(first.iter().all(|fingerprint| table.insert(*fingerprint) == Seen::Before));
    }

    #[test]
    fn memory_per_entry_is_as_promised() {
        let mut table = Table::new(u64::MAX, BITS);
        let mut rng = Rng::new(3);
        for count in 1..=300_000_u64 {
            table.insert(rng.next());
            if count >= 100_000 && count % 10_000 == 0 {
                let bytes = table.bytes() as f64 / count as f64;
                let rounded = (SLAB * size_of::<Bucket>()) as f64 / count as f64;
                assert!((5.7..6.4 + rounded).contains(&bytes), "{bytes} bytes an entry at {count}");
            }
        }
    }

    /// As a stranger could choose them who knows the key.
    #[test]
    fn fingerprints_that_crowd_are_kept() {
        let mut table = Table::new(u64::MAX, BITS);
        let mut all: Vec<u64> = (0..1_u64 << 20).map(|upper| upper << PARTNER_BITS).collect();
        all.retain(|number| number >> PARTNER_BITS > 0 && partner(*number).is_multiple_of(4_096));
        all.iter().for_each(|number| assert_eq!(table.insert(*number), Seen::New));
        assert!(all.len() > 200 && table.crowd.len() > 150 && table.bytes() < 300_000, "{}", table.crowd.len());
        assert_eq!(table.contains_each(&all), vec![true; all.len()]);
        assert!(all.iter().all(|number| table.insert(partner(*number)) == Seen::Before));
        assert!(!table.contains(5 << 50));
    }
}
