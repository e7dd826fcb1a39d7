//! Maps keyed by numbers that no outsider can choose: those of our own jobs, or of names hashed under the crawl's
//! secret.
//!
//! Decides: the standard library's hash resists chosen keys and costs as much as the rest of a lookup. Numbers that
//! are counters or keyed hashes only need to be spread over a table.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map by such a number, or by a type that is one.
pub type IntMap<V, K = u64> = HashMap<K, V, BuildHasherDefault<Spread>>;
/// A set of such numbers.
pub type IntSet<K = u64> = HashSet<K, BuildHasherDefault<Spread>>;

/// Spreads consecutive numbers.
#[derive(Clone, Copy, Default, Debug)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0.rotate_left(8) ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, section 6.4. Tables use the low bits
        // and the high ones.
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ spread >> 32;
    }

    fn write_u128(&mut self, number: u128) {
        self.write_u64(number as u64 ^ (number >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_each_other_are_spread() {
        let mut low = HashSet::new();
        let mut high = HashSet::new();
        for number in 0..1_000_u64 {
            let mut hasher = Spread::default();
            hasher.write_u64(number * 64);
            low.insert(hasher.finish() % 1_024);
            high.insert(hasher.finish() >> 57);
        }
        assert!(low.len() > 500 && high.len() == 128, "{} {}", low.len(), high.len());
    }
}
