//! A bucket: one line of the processor's cache with the numbers that have the same lowest bits.
//!
//! Decides: the layout. Each slot has a lane with the upper 32 bits of its number, so that one comparison of vectors
//! searches all; where the place of the bucket does not say all lower bits, the others follow behind the lanes. The
//! more buckets there are, the fewer bits these are, and the more slots a bucket has.
//! Invariants: a lane of 0 is free (numbers have a 1 among their upper bits); what is not used is 0.
//! Limits: 8 to 16 slots.

/// A bucket's lanes, and what follows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(align(64))]
pub(super) struct Bucket([u32; LANES]);

/// The sizes in a bucket, which follow from the number of buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// The lowest bits of a number say its bucket.
    place_bits: u32,
    /// The bits below those of the lane.
    lower_bits: u32,
    /// Of these, the ones that the bucket does not say.
    extra_bits: u32,
    slots: u32,
}

impl Bucket {
    /// Any of its lanes.
    #[inline]
    pub fn first(&self) -> u32 {
        self.0[0]
    }
}

impl Shape {
    /// For numbers of `bits` bits in 2^`place_bits` buckets.
    pub fn new(bits: u32, place_bits: u32) -> Shape {
        let lower_bits = bits - 32;
        let extra_bits = lower_bits.saturating_sub(place_bits);
        Shape { place_bits, lower_bits, extra_bits, slots: 32 * LANES as u32 / (32 + extra_bits) }
    }

    /// Slots of a bucket.
    #[inline]
    pub fn slots(self) -> u32 {
        self.slots
    }

    /// The lowest bits of a number that say its bucket.
    #[inline]
    pub fn place_bits(self) -> u32 {
        self.place_bits
    }

    /// The bucket of `number`.
    #[inline]
    pub fn place(self, number: u64) -> usize {
        (number & ((1 << self.place_bits) - 1)) as usize
    }

    /// Whether `number` is in its bucket.
    #[inline]
    pub fn has(self, bucket: &Bucket, number: u64) -> bool {
        let lane = self.lane(number);
        // Without branches, in vectors: the number of equal lanes above bit 8, and the sum of their indexes.
        let found =
            bucket.0.iter().zip(1 << 8..).map(|(other, index)| if *other == lane { index } else { 0 }).sum::<u32>();
        match found >> 8 {
            0 => false,
            1 => self.has_at(bucket, found % 256, number),
            _ => (0..self.slots)
                .any(|slot| bucket.0.get(slot as usize) == Some(&lane) && self.has_at(bucket, slot, number)),
        }
    }

    /// Whether it has a free slot.
    #[inline]
    pub fn has_room(self, bucket: &Bucket) -> bool {
        bucket.0.iter().take(self.slots as usize).fold(false, |has_room, lane| has_room | (*lane == 0))
    }

    /// Puts `number` into its bucket, which has a free slot.
    #[inline]
    pub fn put(self, bucket: &mut Bucket, number: u64) {
        let lane = self.lane(number);
        assert!(lane != 0, "a number without upper bits");
        let mut lanes = bucket.0.iter_mut().take(self.slots as usize);
        let Some(slot) = lanes.position(|lane| *lane == 0) else { panic!("a number is put into a full bucket") };
        bucket.0[slot] = lane;
        self.flip_extra(bucket, slot as u32, self.extra_of(number));
    }

    /// Takes the number of a used slot out of the bucket at `place`.
    pub fn take(self, bucket: &mut Bucket, place: usize, slot: u32) -> u64 {
        assert!(bucket.0[slot as usize] != 0, "a number is taken out of a free slot");
        let number = self.number(bucket, place, slot);
        bucket.0[slot as usize] = 0;
        self.flip_extra(bucket, slot, self.extra_of(number));
        number
    }

    /// The slots that are used in the bucket at `place`, with their numbers.
    #[inline]
    pub fn numbers(self, bucket: &Bucket, place: usize) -> impl Iterator<Item = (u32, u64)> {
        let used = (0..self.slots).filter(|slot| bucket.0[*slot as usize] != 0);
        used.map(move |slot| (slot, self.number(bucket, place, slot)))
    }

    #[inline]
    fn lane(self, number: u64) -> u32 {
        (number >> self.lower_bits) as u32
    }

    #[inline]
    fn number(self, bucket: &Bucket, place: usize, slot: u32) -> u64 {
        let lower = u64::from(self.extra(bucket, slot)) << self.place_bits | self.place(place as u64) as u64;
        u64::from(bucket.0[slot as usize]) << self.lower_bits | lower
    }

    #[inline]
    fn has_at(self, bucket: &Bucket, slot: u32, number: u64) -> bool {
        slot < self.slots && self.extra(bucket, slot) == self.extra_of(number)
    }

    #[inline]
    fn extra_of(self, number: u64) -> u32 {
        (number >> self.place_bits) as u32 & ((1 << self.extra_bits) - 1)
    }

    #[inline]
    fn extra(self, bucket: &Bucket, slot: u32) -> u32 {
        let (lane, shift) = self.extra_at(slot);
        let of = |lane: usize| u64::from(bucket.0.get(lane).copied().unwrap_or_default());
        ((of(lane + 1) << 32 | of(lane)) >> shift) as u32 & ((1 << self.extra_bits) - 1)
    }

    /// Changes those extra bits of a slot that are set in `extra`.
    #[inline]
    fn flip_extra(self, bucket: &mut Bucket, slot: u32, extra: u32) {
        let (lane, shift) = self.extra_at(slot);
        let both = u64::from(extra) << shift;
        for (lane, bits) in bucket.0.iter_mut().skip(lane).zip([both as u32, (both >> 32) as u32]) {
            *lane ^= bits;
        }
    }

    /// The lane and the bit where a slot's extra bits begin.
    #[inline]
    fn extra_at(self, slot: u32) -> (usize, u32) {
        let bit = self.slots * 32 + slot * self.extra_bits;
        ((bit / 32) as usize, bit % 32)
    }
}

/// A bucket is as long as a line of the cache.
const LANES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    /// In all shapes: numbers are put and taken, and the bucket has those that a list has.
    #[test]
    fn has_what_was_put_and_not_taken() {
        let mut rng = Rng::new(1);
        for (bits, place_bits) in
            [(57, 4), (57, 19), (57, 20), (57, 24), (57, 25), (57, 33), (49, 4), (49, 16), (63, 4), (63, 9)]
        {
            let shape = Shape::new(bits, place_bits);
            assert!((8..=16).contains(&shape.slots()), "{shape:?}");
            let place = shape.place(rng.next());
            for _ in 0..200 {
                let (mut bucket, mut twin) = (Bucket::default(), Vec::new());
                for _ in 0..200 {
                    // Many with the same lane, and other bits below it.
                    let lane = if rng.below(2) == 0 { rng.next() >> 32 } else { rng.below(3) } | 1 << 31;
                    let lower = rng.next() & ((1 << (bits - 32)) - 1);
                    let number = (lane << (bits - 32) | lower) >> place_bits << place_bits | place as u64;
                    assert_eq!(shape.has(&bucket, number), twin.contains(&number), "{shape:?}");
                    assert_eq!(shape.has_room(&bucket), twin.len() < shape.slots() as usize);
                    if rng.below(3) > 0 && shape.has_room(&bucket) && !twin.contains(&number) {
                        shape.put(&mut bucket, number);
                        twin.push(number);
                    } else if rng.below(3) == 0 && !twin.is_empty() {
                        let at = rng.below(twin.len() as u64) as usize;
                        let number = twin.swap_remove(at);
                        let found = shape.numbers(&bucket, place).find(|(_, other)| *other == number);
                        let (slot, _) = found.expect("it was put");
                        assert_eq!(shape.take(&mut bucket, place, slot), number);
                    }
                }
                let mut numbers: Vec<u64> = shape.numbers(&bucket, place).map(|(_, number)| number).collect();
                numbers.sort_unstable();
                twin.sort_unstable();
                assert_eq!(numbers, twin, "{shape:?}");
                let slots: Vec<u32> = shape.numbers(&bucket, place).map(|(slot, _)| slot).collect();
                slots.into_iter().for_each(|slot| assert!(twin.contains(&shape.take(&mut bucket, place, slot))));
                assert_eq!(bucket, Bucket::default(), "what is not used is 0");
            }
        }
    }
}
