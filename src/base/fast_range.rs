//! Maps a hash to one of a few numbers.

/// One of `count`, from 0, by the high bits of `hash`: each gets the same share of all hashes. For a `count` of 0, it
/// is 0.
pub fn fast_range(hash: u64, count: u16) -> u16 {
    ((u128::from(hash) * u128::from(count)) >> 64) as u16
}
