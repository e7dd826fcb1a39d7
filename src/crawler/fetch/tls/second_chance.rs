//! A map of bounded size that evicts unused entries.
//!
//! Decides: entries are in a queue in order of arrival. When there is no more room, the first of the queue is
//! evicted. If it was requested since it was queued, it goes to the end of the queue instead, once. Used entries
//! stay, and what a crawl meets once leaves first. One entry leaves for one that arrives, so there is never a pause.
//! Invariants: no more than `max` entries; every key is in the queue exactly once.
//! Limits: keys are kept twice; entries cannot be removed.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// See the module.
pub(super) struct SecondChance<K, V> {
    entries: HashMap<K, Entry<V>>,
    row: VecDeque<K>,
    max: usize,
}

struct Entry<V> {
    value: V,
    /// Requested since it went to the end of the queue.
    used: bool,
}

impl<K: Clone + Eq + Hash, V> SecondChance<K, V> {
    /// Room for `max` entries; memory grows as they arrive.
    pub(super) fn new(max: usize) -> SecondChance<K, V> {
        SecondChance { entries: HashMap::new(), row: VecDeque::new(), max }
    }

    /// The value of `key`, which counts as requested.
    pub(super) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let entry = self.entries.get_mut(key)?;
        entry.used = true;
        Some(&mut entry.value)
    }

    /// Stores `value`, replacing the one that `key` had.
    pub(super) fn insert(&mut self, key: K, value: V) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.value = value;
            return;
        }
        if self.max == 0 {
            return;
        }
        while self.entries.len() >= self.max {
            self.let_go();
        }
        self.row.push_back(key.clone());
        self.entries.insert(key, Entry { value, used: false });
    }

    /// Moves the first of the queue to its end, or evicts it.
    fn let_go(&mut self) {
        let Some(first) = self.row.pop_front() else { return };
        match self.entries.get_mut(&first) {
            Some(entry) if entry.used => {
                entry.used = false;
                self.row.push_back(first);
            }
            _ => {
                self.entries.remove(&first);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.entries.len(), self.row.len());
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    #[test]
    fn what_is_used_stays() {
        let mut map = SecondChance::new(3);
        for key in [1, 2, 3] {
            map.insert(key, key * 10);
        }
        assert_eq!(map.get(&1), Some(&mut 10));
        map.insert(4, 40);
        assert_eq!((map.get(&1).copied(), map.get(&2).copied(), map.len()), (Some(10), None, 3));
        // A second chance is a single one: 3, then 4, and 1 only after it was not requested again.
        map.insert(5, 50);
        assert_eq!(map.get(&3), None);
        map.insert(6, 60);
        map.insert(7, 70);
        map.insert(8, 80);
        assert_eq!(map.get(&1), None);
        map.insert(8, 88);
        assert_eq!((map.get(&8).copied(), map.len()), (Some(88), 3));
    }

    #[test]
    fn no_more_than_the_bound_and_nothing_with_none() {
        for max in [0, 1, 2, 7, 100] {
            let mut map = SecondChance::new(max);
            let mut rng = Rng::new(1);
            for _ in 0..5_000 {
                let key = rng.below(150);
                match map.get(&key) {
                    Some(value) => assert_eq!(*value, key),
                    None => map.insert(key, key),
                }
                assert!(map.len() <= max);
            }
            assert_eq!(map.len(), max);
        }
    }
}
