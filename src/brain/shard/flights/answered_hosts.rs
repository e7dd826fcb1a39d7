//! Hosts that answered the last time they were asked, in this run or an earlier one.
//!
//! Decides: only the silence of these hosts is evidence of an outage ([`super::network`]), each at the port at which
//! it answered. Links to closed ports of living hosts, which anyone can make, are no evidence. The knowledge outlives
//! the host in memory and the run: otherwise a crawl that is resumed during an outage would treat every host as dead.
//! There are two generations: what is older than the last half of the room is dropped as a whole, so no order is
//! kept.
//! Limits: [`ROOM`] hosts and ports, known by a hash: two that share one are taken for each other. One that is
//! dropped counts as never having answered.

use std::collections::HashSet;
use std::mem;

use crate::frontier::host_key;
use ringcrawl_url::Url;

/// Hashes of host names.
#[derive(Debug)]
pub(super) struct AnsweredHosts {
    generation_max: usize,
    young: HashSet<u64>,
    old: HashSet<u64>,
}

impl AnsweredHosts {
    /// No hosts yet, and room for `room` of them.
    fn new(room: usize) -> AnsweredHosts {
        AnsweredHosts { generation_max: room / 2, young: HashSet::new(), old: HashSet::new() }
    }

    /// `url` was answered.
    pub(super) fn note(&mut self, url: &Url) {
        self.insert(hash(url.host(), url.port()));
        self.insert(hash(url.host(), ANY_PORT));
    }

    /// `url` was not answered, and that was the fault of its host.
    pub(super) fn forget(&mut self, url: &Url) {
        for port in [url.port(), ANY_PORT] {
            let hash = hash(url.host(), port);
            self.young.remove(&hash);
            self.old.remove(&hash);
        }
    }

    /// Whether the host of `url` answered the last time at this port.
    pub(super) fn contains(&self, url: &Url) -> bool {
        self.has(hash(url.host(), url.port()))
    }

    /// Whether `host` answered the last time, at some port.
    pub(super) fn contains_host(&self, host: &str) -> bool {
        self.has(hash(host, ANY_PORT))
    }

    /// `host` answered, at some port.
    pub(super) fn note_host(&mut self, host: &str) {
        self.insert(hash(host, ANY_PORT));
    }

    fn has(&self, hash: u64) -> bool {
        self.young.contains(&hash) || self.old.contains(&hash)
    }

    fn insert(&mut self, hash: u64) {
        if self.young.contains(&hash) {
            return;
        }
        if self.young.len() >= self.generation_max {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(hash);
    }
}

impl Default for AnsweredHosts {
    fn default() -> AnsweredHosts {
        AnsweredHosts::new(ROOM)
    }
}

fn hash(host: &str, port: u16) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(host_key(host).as_bytes(), port.into())
}

/// Stands in for a port.
const ANY_PORT: u16 = 0;
/// Hosts and ports that a shard remembers: two megabytes.
const ROOM: usize = 1 << 17;

#[cfg(test)]
mod tests {
    use super::*;

    fn url(host: &str) -> Url {
        Url::parse(&format!("http://{host}/")).expect("a URL")
    }

    #[test]
    fn the_latest_are_known_and_the_room_is_kept() {
        let mut hosts = AnsweredHosts::new(100);
        for number in 0..1_000 {
            hosts.note(&url(&format!("h{number}.test")));
            let known = hosts.young.len() + hosts.old.len();
            assert!(hosts.contains(&url(&format!("h{number}.test."))) && known <= 100);
        }
        let contains = |hosts: &AnsweredHosts, number| hosts.contains(&url(&format!("h{number}.test")));
        assert!((975..1_000).all(|number| contains(&hosts, number)) && !contains(&hosts, 0));
        for number in [975, 999] {
            hosts.forget(&url(&format!("h{number}.test")));
            assert!(!contains(&hosts, number) && !hosts.contains_host(&format!("h{number}.test")));
        }
    }

    #[test]
    fn a_port_that_is_closed_says_nothing_of_another() {
        let mut hosts = AnsweredHosts::default();
        hosts.note(&url("a.test"));
        assert!(hosts.contains(&url("a.test")) && hosts.contains_host("a.test"));
        assert!(!hosts.contains(&url("a.test:81")));
        hosts.forget(&url("a.test:81"));
        assert!(hosts.contains(&url("a.test")));
    }
}
