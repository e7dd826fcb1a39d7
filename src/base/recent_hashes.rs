//! Recent items: bodies that were stored, and URLs that found no room.
//!
//! Decides: a table of a fixed size in which a newer hash takes an older one's slot. A site serves one page under
//! many addresses in short succession, and pages repeat the same links. The callers want to notice that, and need no
//! promise about a whole crawl.
//! Invariants: memory is fixed; a new item is never reported as known, except for one in 2^64.

/// Recently seen hashes.
#[derive(Debug)]
pub struct RecentHashes {
    slots: Box<[u64]>,
}

impl Default for RecentHashes {
    fn default() -> RecentHashes {
        RecentHashes { slots: vec![0; SLOTS].into() }
    }
}

impl RecentHashes {
    /// Takes a hash; returns whether the same one was seen recently.
    pub fn is_again(&mut self, hash: u64) -> bool {
        let index = hash as usize % SLOTS;
        self.slots.get_mut(index).is_some_and(|slot| std::mem::replace(slot, hash) == hash)
    }

    /// Takes a hash.
    pub fn note(&mut self, hash: u64) {
        self.is_again(hash);
    }

    /// Makes a hash unseen.
    pub fn forget(&mut self, hash: u64) {
        self.slots.get_mut(hash as usize % SLOTS).filter(|slot| **slot == hash).into_iter().for_each(|slot| *slot = 0);
    }

    /// Whether it was seen recently.
    pub fn holds(&self, hash: u64) -> bool {
        self.slots.get(hash as usize % SLOTS) == Some(&hash)
    }
}

/// Half a megabyte a shard.
const SLOTS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_known_until_another_takes_its_slot() {
        let mut recent = RecentHashes::default();
        let (first, same_slot) = (7, 7 + SLOTS as u64);
        assert_eq!([first, first, same_slot, first].map(|hash| recent.is_again(hash)), [false, true, false, false]);
    }
}
