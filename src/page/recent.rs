//! Recent: which bodies were stored lately, to count those that come again.
//!
//! Decides: a table of a fixed size in which a newer body takes an older one's slot. It tells an operator that a site
//! serves one page under many addresses, which come close together; it is no promise to know every body of a crawl.
//! Invariants: memory is fixed; a body that was never stored is never called a duplicate, but for one in 2^64.

/// Digests of the bodies that were stored lately.
#[derive(Debug)]
pub struct Recent {
    slots: Box<[u64]>,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent { slots: vec![0; SLOTS].into() }
    }
}

impl Recent {
    /// Takes a body's digest; whether the same body was stored not long ago.
    pub fn is_again(&mut self, digest: u64) -> bool {
        let index = digest as usize % SLOTS;
        self.slots.get_mut(index).is_some_and(|slot| std::mem::replace(slot, digest) == digest)
    }
}

/// Half a megabyte a shard.
const SLOTS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_known_until_another_takes_its_slot() {
        let mut recent = Recent::default();
        let (first, same_slot) = (7, 7 + SLOTS as u64);
        assert_eq!([first, first, same_slot, first].map(|digest| recent.is_again(digest)), [false, true, false, false]);
    }
}
