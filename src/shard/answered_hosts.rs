//! Hosts that answered the last time they were asked, in this run or an earlier one.
//!
//! Decides: only the silence of these is evidence of an outage ([`super::network`]). It outlives the host in memory and the
//! run: otherwise a crawl that is resumed during an outage would take every host for dead.
//! Two generations: what is older than the last half of the room is thrown out as a whole, so no order is kept.
//! Limits: [`ROOM`] hosts, known by a hash: two that share one are taken for each other. One that is thrown out counts as
//! never having answered.

use std::collections::HashSet;
use std::mem;

use crate::frontier::host_key;

/// Hashes of the names of hosts.
#[derive(Debug)]
pub(super) struct AnsweredHosts {
    generation_max: usize,
    young: HashSet<u64>,
    old: HashSet<u64>,
}

impl AnsweredHosts {
    /// Nobody, and room for `room` hosts.
    fn new(room: usize) -> AnsweredHosts {
        AnsweredHosts { generation_max: room / 2, young: HashSet::new(), old: HashSet::new() }
    }

    /// `host` answered.
    pub(super) fn note(&mut self, host: &str) {
        let hash = hash(host);
        if self.young.contains(&hash) {
            return;
        }
        if self.young.len() >= self.generation_max {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(hash);
    }

    /// `host` did not answer, and that was its own fault.
    pub(super) fn forget(&mut self, host: &str) {
        let hash = hash(host);
        self.young.remove(&hash);
        self.old.remove(&hash);
    }

    /// Whether `host` answered the last time.
    pub(super) fn contains(&self, host: &str) -> bool {
        let hash = hash(host);
        self.young.contains(&hash) || self.old.contains(&hash)
    }
}

impl Default for AnsweredHosts {
    fn default() -> AnsweredHosts {
        AnsweredHosts::new(ROOM)
    }
}

fn hash(host: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(host_key(host).as_bytes())
}

/// Hosts of a shard that are remembered: a megabyte.
const ROOM: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_known_and_the_room_is_kept() {
        let mut hosts = AnsweredHosts::new(100);
        for number in 0..1_000 {
            hosts.note(&format!("h{number}.test"));
            assert!(hosts.contains(&format!("h{number}.test.")) && hosts.young.len() + hosts.old.len() <= 100);
        }
        assert!((950..1_000).all(|number| hosts.contains(&format!("h{number}.test"))) && !hosts.contains("h0.test"));
        for number in [950, 999] {
            hosts.forget(&format!("h{number}.test"));
            assert!(!hosts.contains(&format!("h{number}.test")));
        }
    }
}
