//! Counters of hosts or sites, by their numbers: a table in parts.
//!
//! Invariants: numbers are keys under the crawl's secret, so no outsider can crowd a part.
//! Limits: the caller that adds an entry passes the maximum number of entries.

use std::collections::hash_map::Entry;

use ringcrawl_base::IntMap;

/// Entries by number.
#[derive(Debug)]
pub struct Parts<V> {
    /// Small tables, so that none takes long to grow.
    parts: Box<[IntMap<V>]>,
    entries: usize,
}

impl<V: Clone> Default for Parts<V> {
    fn default() -> Parts<V> {
        Parts { parts: vec![IntMap::default(); PARTS].into(), entries: 0 }
    }
}

impl<V: Default> Parts<V> {
    /// The entry of a number.
    pub fn get(&self, number: u64) -> Option<&V> {
        self.parts.get(part_of(number))?.get(&number)
    }

    /// The same, mutable.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut V> {
        self.parts.get_mut(part_of(number))?.get_mut(&number)
    }

    /// The entry of a number, which is created if there are fewer than `entries_max`.
    pub fn entry(&mut self, number: u64, entries_max: usize) -> Option<&mut V> {
        let is_full = self.entries >= entries_max;
        match self.parts.get_mut(part_of(number))?.entry(number) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(_) if is_full => None,
            Entry::Vacant(new) => {
                self.entries += 1;
                Some(new.insert(V::default()))
            }
        }
    }
}

fn part_of(number: u64) -> usize {
    (number % PARTS as u64) as usize
}

const PARTS: usize = 256;
/// Upper bound on an entry's memory: a table is half full when it has just grown.
pub const ENTRY_BYTES: u64 = 80;

#[cfg(test)]
mod tests {
    use super::super::link_quotas::Counted;
    use super::super::site_quotas::Spent;
    use super::*;

    /// A million sites in the memory that is budgeted for them.
    #[test]
    fn an_entry_takes_no_more_than_is_reckoned() {
        for value in [size_of::<(u64, Spent)>(), size_of::<(u64, Counted)>()] {
            let entry = value as u64 + 1;
            // A table of hashbrown is 7/8 full before it grows to twice its buckets.
            assert!(entry * 2 * 8 / 7 <= ENTRY_BYTES, "{entry}");
        }
    }

    #[test]
    fn known_entries_stay_and_no_more_come_than_may() {
        let mut parts = Parts::<u32>::default();
        let made = (0..1_000).filter(|number| parts.entry(number * 77, 700).is_some()).count();
        assert_eq!(
            (made, parts.entry(0, 0).is_some(), parts.get(700 * 77), parts.get(77)),
            (700, true, None, Some(&0))
        );
        *parts.get_mut(77).expect("it is known") = 5;
        assert_eq!(parts.get(77), Some(&5));
    }
}
