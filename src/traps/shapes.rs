//! The shapes of a host's URLs, and which URL was the first of each.
//!
//! Decides: a table of shapes ([`Tokens::shape`](super::Tokens::shape)) with a hash of the first URL of each. What has the shape of
//! another URL is *again*: another version or number of a thing, or of a list. Whether that is worth a fetch is for
//! [`Patterns`](super::Patterns) to learn, apart from what first ones are worth.
//! Invariants: pure; at most [`SHAPES_MAX`] shapes; the room for them grows as it is used.
//! Limits: a shape lies in one of [`BUCKET`] places, from which the oldest goes; a shape that is forgotten is new again.

/// The shapes of one host.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    /// A power of two of them, or none.
    buckets: Vec<Bucket>,
    used: usize,
}

/// The youngest first; those in use before those that are not.
type Bucket = [Shape; BUCKET];

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Shape {
    /// 0: the place is empty.
    shape: u32,
    /// Of the first URL that had it.
    first: u32,
}

impl Shapes {
    /// A URL with this shape and hash was found on a host of so many `pages`; whether the shape is new.
    pub fn found(&mut self, shape: u32, url: u32, pages: u64) -> bool {
        let shape = shape.max(1);
        if self.first_of(shape).is_some() {
            return false;
        }
        let shapes_max = pages.saturating_add(1).saturating_mul(SHAPES_A_PAGE).min(SHAPES_MAX as u64);
        let room = self.buckets.len() * BUCKET;
        if room == 0 || self.used * 2 >= room && (room as u64) < shapes_max {
            self.grow();
        }
        self.add(Shape { shape, first: url });
        true
    }

    /// Whether another URL had this shape before.
    pub fn is_again(&self, shape: u32, url: u32) -> bool {
        self.first_of(shape.max(1)).is_some_and(|first| first != url)
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>()
    }

    fn first_of(&self, shape: u32) -> Option<u32> {
        let bucket = self.buckets.get(self.bucket_of(shape))?;
        bucket.iter().find(|place| place.shape == shape).map(|place| place.first)
    }

    fn bucket_of(&self, shape: u32) -> usize {
        shape as usize & self.buckets.len().saturating_sub(1)
    }

    fn add(&mut self, shape: Shape) {
        let at = self.bucket_of(shape.shape);
        let Some(bucket) = self.buckets.get_mut(at) else { return };
        bucket.rotate_right(1);
        let [youngest, ..] = bucket;
        self.used += usize::from(youngest.shape == 0);
        *youngest = shape;
    }

    fn grow(&mut self) {
        let buckets = (self.buckets.len() * 2).max(1);
        let old = std::mem::replace(&mut self.buckets, vec![Bucket::default(); buckets]);
        self.used = 0;
        for shape in old.iter().flat_map(|bucket| bucket.iter().rev()).filter(|shape| shape.shape != 0) {
            self.add(*shape);
        }
    }
}

/// Places of a shape.
const BUCKET: usize = 8;
/// Shapes of a host for each of its pages: one page with links without end must not take the memory of others.
const SHAPES_A_PAGE: u64 = 64;
/// Shapes of a host: 128 KiB.
const SHAPES_MAX: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_first_is_known() {
        let mut shapes = Shapes::default();
        assert!(!shapes.is_again(5, 1));
        assert!(shapes.found(5, 1, u64::MAX) && !shapes.found(5, 2, u64::MAX) && !shapes.found(5, 1, u64::MAX));
        assert!(!shapes.is_again(5, 1) && shapes.is_again(5, 2) && !shapes.is_again(6, 2));
        assert!(shapes.found(0, 9, u64::MAX) && shapes.is_again(0, 8));
    }

    #[test]
    fn one_page_takes_little() {
        let mut shapes = Shapes::default();
        for number in 0..100_000 {
            shapes.found(number * 0x9e37, number, 0);
        }
        assert!(shapes.ram_bytes() <= 8 * 128, "{}", shapes.ram_bytes());
    }

    #[test]
    fn most_are_known_while_there_is_room_and_memory_is_bounded() {
        let mixed = |number: u32| xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes()) as u32;
        let known = |shapes: &Shapes, numbers: std::ops::Range<u32>| {
            numbers.filter(|number| shapes.is_again(mixed(*number), u32::MAX)).count()
        };
        let mut shapes = Shapes::default();
        for number in 0..12_000 {
            shapes.found(mixed(number), number, u64::MAX);
            assert!(!shapes.is_again(mixed(number), number));
        }
        assert!(known(&shapes, 0..12_000) > 11_000, "{}", known(&shapes, 0..12_000));
        for number in 12_000..200_000 {
            shapes.found(mixed(number), number, u64::MAX);
        }
        assert!(shapes.ram_bytes() <= 8 * SHAPES_MAX);
        assert!(known(&shapes, 190_000..200_000) > 9_000, "{} of the last ones", known(&shapes, 190_000..200_000));
        // Two of 200,000 numbers may have one shape.
        assert!(known(&shapes, 0..200_000) <= SHAPES_MAX + 100);
    }
}
