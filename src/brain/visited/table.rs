//! A set of 64-bit fingerprints that grows in small steps.
//!
//! Decides: 256 parts by the fingerprint's top byte, each an open-addressing array with linear probing. A
//! part grows alone, by half, so a growth moves 1/256 of the set and needs 1/256 of it as a second copy:
//! no pause, no doubling peak. The slot is the fingerprint scaled to the part's length, which keeps slots in
//! the order of fingerprints and makes a growth one pass from front to back.
//! Invariants: a slot of 0 is empty (fingerprint 0 is kept as 1); a part is at most 4/5 full.
//! Limits: `urls_max` entries, and those of an earlier run that had a higher limit; 10 to 15 bytes of memory an entry.
//! A false "seen" has probability n / 2⁶⁴ for a new URL among n: 5 in 10¹¹ at a billion.

/// The set.
#[derive(Debug)]
pub struct Table {
    parts: Vec<Part>,
    len: u64,
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

#[derive(Debug, Default)]
struct Part {
    slots: Vec<u64>,
    len: usize,
}

impl Table {
    /// An empty set for at most `urls_max` fingerprints.
    pub fn new(urls_max: u64) -> Table {
        Table { parts: (0..PARTS).map(|_| Part::default()).collect(), len: 0, urls_max }
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
        let fingerprint = fingerprint.max(1);
        let part = &mut self.parts[(fingerprint >> 56) as usize];
        // Before the search, so that there is only one: a duplicate may make a part grow one entry early.
        if (part.len + 1) * 5 > part.slots.len() * 4 {
            part.grow();
        }
        let Err(slot) = part.find(fingerprint) else { return false };
        part.slots[slot] = fingerprint;
        part.len += 1;
        self.len += 1;
        true
    }

    /// Whether `fingerprint` is there.
    pub fn contains(&self, fingerprint: u64) -> bool {
        let fingerprint = fingerprint.max(1);
        self.parts[(fingerprint >> 56) as usize].find(fingerprint).is_ok()
    }

    /// Whether each of `fingerprints` is there. The first slots of a group are read before any is compared, so that
    /// memory latency is paid once a group and not once a fingerprint.
    pub fn contains_each(&self, fingerprints: &[u64]) -> Vec<bool> {
        let mut contained = Vec::with_capacity(fingerprints.len());
        for group in fingerprints.chunks(GROUP) {
            let mut firsts = [0; GROUP];
            for (first, fingerprint) in firsts.iter_mut().zip(group) {
                let part = &self.parts[(fingerprint >> 56) as usize];
                *first = part.slots.get(scaled(*fingerprint, part.slots.len())).copied().unwrap_or_default();
            }
            contained.extend(group.iter().zip(firsts).map(|(fingerprint, first)| match first {
                0 => false,
                first => first == *fingerprint || self.contains(*fingerprint),
            }));
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

    /// Bytes of memory of all slots.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.slots.capacity() as u64 * 8).sum()
    }
}

impl Part {
    /// `Ok(slot)` where it is, `Err(slot)` where it would go. Without slots this is 0, which does not exist.
    fn find(&self, fingerprint: u64) -> Result<usize, usize> {
        let mut slot = scaled(fingerprint, self.slots.len());
        loop {
            match self.slots.get(slot) {
                None if slot == 0 => return Err(0),
                None => slot = 0,
                Some(0) => return Err(slot),
                Some(found) if *found == fingerprint => return Ok(slot),
                Some(_) => slot += 1,
            }
        }
    }

    fn grow(&mut self) {
        let longer = (self.slots.len() + self.slots.len() / 2).max(SLOTS_MIN);
        let before = std::mem::replace(&mut self.slots, vec![0; longer]);
        for fingerprint in before.into_iter().filter(|slot| *slot != 0) {
            if let Err(slot) = self.find(fingerprint) {
                self.slots[slot] = fingerprint;
            }
        }
    }
}

/// The slot of a fingerprint among `slots`: its 56 bits below the part's, scaled.
fn scaled(fingerprint: u64, slots: usize) -> usize {
    ((u128::from(fingerprint << 8) * slots as u128) >> 64) as usize
}

const PARTS: usize = 256;
const SLOTS_MIN: usize = 8;
/// A little more than the reads of memory that a processor has in flight.
const GROUP: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;
    use std::collections::HashSet;

    #[test]
    fn agrees_with_a_hash_set() {
        let mut rng = Rng::new(1);
        let mut table = Table::new(u64::MAX);
        let mut twin = HashSet::new();
        // Few distinct values and many: repeats, runs at the end of a part, and growth.
        for step in 0..300_000_u64 {
            let fingerprint = match step % 3 {
                0 => rng.below(5_000) << 52 | rng.below(3),
                1 => u64::MAX - rng.below(2_000),
                _ => rng.next(),
            };
            let new = twin.insert(fingerprint.max(1));
            assert_eq!(table.insert(fingerprint), if new { Seen::New } else { Seen::Before });
        }
        assert_eq!(table.len(), twin.len() as u64);
        assert!(twin.iter().all(|fingerprint| table.contains(*fingerprint)));
        // One by one and in batches of any length; some were seen before.
        for batch in 0..200 {
            let kind = |value: u64| [value, ((value % 5_000) << 52) | (value % 3), u64::MAX - value % 4_000, value % 3];
            let batch: Vec<u64> = (0..batch).flat_map(|_| kind(rng.next())).collect();
            let seen: Vec<bool> = batch.iter().map(|value| twin.contains(&(*value).max(1))).collect();
            assert_eq!(table.contains_each(&batch), seen);
            assert!(batch.iter().zip(seen).all(|(value, is_seen)| table.contains(*value) == is_seen));
        }
        assert_eq!(Table::new(9).contains_each(&[0, 1, u64::MAX]), [false; 3]);
    }

    #[test]
    fn full_is_full_and_forgets_nothing() {
        let mut table = Table::new(1_000);
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
        let mut table = Table::new(u64::MAX);
        let mut rng = Rng::new(3);
        for count in 1..=1_000_000_u64 {
            table.insert(rng.next());
            if count >= 50_000 && count % 10_000 == 0 {
                let bytes = table.bytes() as f64 / count as f64;
                assert!((9.9..16.0).contains(&bytes), "{bytes} bytes an entry at {count}");
            }
        }
    }
}
