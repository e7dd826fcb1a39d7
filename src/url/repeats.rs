//! Detects repeated texts within one page: a page names a third of its links more than once.
//!
//! Decides: a text is remembered by its fingerprint under the crawl's seed, in an open-addressing table that is
//! rebuilt for each page.
//!
//! Invariants: a text is new once, except for texts made to collide; time is linear even for those. Memory: 16 to 32
//! bytes a text, 4 KiB at least.

/// The texts seen so far.
#[derive(Clone, Debug)]
pub struct Repeats {
    /// 0: empty; a hash of 0 counts as 1. The length is a power of two, and at most half of the slots are in use.
    slots: Vec<u64>,
    len: usize,
}

impl Repeats {
    /// None seen yet.
    pub fn new() -> Repeats {
        Repeats { slots: vec![0; SLOTS_MIN], len: 0 }
    }

    /// Whether the text with this fingerprint is seen for the first time.
    #[inline]
    pub fn is_new(&mut self, fingerprint: u64) -> bool {
        let is_new = put(&mut self.slots, fingerprint.max(1));
        if is_new {
            self.len += 1;
            if 2 * self.len > self.slots.len() {
                self.grow();
            }
        }
        is_new
    }

    /// Whether `is_new` was called before for this fingerprint.
    pub fn has(&self, fingerprint: u64) -> bool {
        let hash = fingerprint.max(1);
        let mask = self.slots.len().wrapping_sub(1);
        let probes = (0..PROBES_MAX).filter_map(|probe| self.slots.get((hash as usize + probe) & mask));
        probes.take_while(|slot| **slot != 0).any(|slot| *slot == hash)
    }

    fn grow(&mut self) {
        let mut slots = vec![0; 2 * self.slots.len()];
        self.slots.iter().filter(|hash| **hash != 0).for_each(|hash| {
            put(&mut slots, *hash);
        });
        self.slots = slots;
    }
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats::new()
    }
}

fn put(slots: &mut [u64], hash: u64) -> bool {
    let mask = slots.len().wrapping_sub(1);
    let mut at = hash as usize & mask;
    for _ in 0..PROBES_MAX {
        let Some(slot) = slots.get_mut(at) else { break };
        match *slot {
            0 => {
                *slot = hash;
                return true;
            }
            found if found == hash => return false,
            _ => at = (at + 1) & mask,
        }
    }
    true
}

const SLOTS_MIN: usize = 512;
/// Maximum number of slots probed: far more than chance fills in a row. If a page's links are made to collide, they
/// are all treated as new.
const PROBES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint;
    use ringcrawl_base::Rng;
    use std::collections::HashSet;

    #[test]
    fn agrees_with_a_hash_set() {
        let (mut repeats, mut twin) = (Repeats::default(), HashSet::new());
        let mut rng = Rng::new(1);
        for _ in 0..50_000 {
            let text = format!("/{}", rng.below(20_000));
            let fingerprint = fingerprint(1, &text);
            assert_eq!(repeats.has(fingerprint), twin.contains(&text));
            assert_eq!(repeats.is_new(fingerprint), twin.insert(text));
        }
        assert!(twin.len() > 10_000 && repeats.is_new(0) && !repeats.is_new(0));
    }

    #[test]
    fn hashes_made_to_collide_cost_no_more_than_a_bound() {
        let mut slots = vec![0; 4_096];
        for number in 1..=1_000_u64 {
            assert!(put(&mut slots, number << 32));
        }
        assert_eq!(slots.iter().filter(|slot| **slot != 0).count(), PROBES_MAX);
        assert!(!put(&mut slots, 1 << 32) && put(&mut slots, 999 << 32));
    }
}
