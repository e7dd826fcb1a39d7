//! Draws: numbers that look random and are a pure function of the model's seed and their purpose.
//!
//! Decides: SplitMix64 (Steele, Lea, Flood 2014), because one draw is four operations, any (purpose, a, b) is a fresh
//! stream without set-up, and it is the same on every machine. Integers only: results of libm differ between
//! machines.
//! Invariants: the same arguments give the same stream; every draw is in the promised range.
//! Limits: not for secrets.

/// The purpose of a stream of draws; streams of different purposes are independent.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(super) enum Purpose {
    /// Facts of a site.
    Site = 1,
    /// The form of a page's address.
    Shape = 2,
    /// Which links a page has.
    Plan = 3,
    /// How a page is written: spelling of links, text, noise.
    Render = 4,
    /// The pool of text.
    Pool = 5,
    /// The address of a host.
    Address = 6,
    /// Which site has which fault, and the words of its pages.
    Fault = 7,
}

/// A stream of draws.
#[derive(Clone, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    /// The stream for `purpose` of the object that `a` and `b` identify.
    pub fn new(rng_seed: u64, purpose: Purpose, a: u64, b: u64) -> Draw {
        Draw(mix(mix(mix(rng_seed ^ ((purpose as u64) << 56)).wrapping_add(a)).wrapping_add(b)))
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Uniform in `0..end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// True once in `count` draws.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// In `0..end`, number `i` with a probability of about 1/(i+1): a power law of exponent 1, in steps of two.
    pub fn rank(&mut self, end: u64) -> u64 {
        if end == 0 {
            return 0;
        }
        let levels = u64::from(u64::BITS - end.leading_zeros());
        let low = 1u64 << self.below(levels);
        let high = low.saturating_mul(2).min(end.saturating_add(1));
        low + self.below(high - low) - 1
    }

    /// One of `list`.
    pub fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list.get(self.below(list.len() as u64) as usize).copied().unwrap_or_default()
    }

    /// From a table of equally likely values, made continuous by a factor of 3/4 to 5/4.
    pub fn quantile(&mut self, table: &[u32], position: u64) -> u64 {
        let value = table.get((position % table.len().max(1) as u64) as usize).copied().unwrap_or_default();
        let value = u64::from(value) * 1_024;
        (value * 3 / 4 + self.below(value / 2 + 1)) / 1_024
    }
}

/// The odd constant of SplitMix64: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finalizer: a bijection that spreads every input bit over the output.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(STEP);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_range() {
        let mut draw = Draw::new(7, Purpose::Plan, 1, 2);
        for end in [1, 2, 3, 7, 8, 9, 1_000, u64::MAX] {
            for _ in 0..200 {
                assert!(draw.below(end) < end);
                assert!(draw.rank(end) < end);
            }
        }
        assert_eq!(draw.below(0), 0);
        assert_eq!(draw.rank(0), 0);
    }

    #[test]
    fn rank_follows_a_power_law() {
        let mut draw = Draw::new(7, Purpose::Plan, 1, 2);
        let mut counts = [0u32; 127];
        for _ in 0..70_000 {
            counts[draw.rank(127) as usize] += 1;
        }
        // Seven levels of equal weight: rank 0 alone has a seventh, ranks 63..127 share one.
        assert!((9_000..11_000).contains(&counts[0]), "{}", counts[0]);
        let tail: u32 = counts[63..].iter().sum();
        assert!((9_000..11_000).contains(&tail), "{tail}");
    }

    #[test]
    fn streams_differ() {
        let first = |purpose, a, b| Draw::new(1, purpose, a, b).bits();
        let all = [
            first(Purpose::Site, 0, 0),
            first(Purpose::Plan, 0, 0),
            first(Purpose::Plan, 1, 0),
            first(Purpose::Plan, 0, 1),
        ];
        for (i, x) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|y| x != y));
        }
    }
}
