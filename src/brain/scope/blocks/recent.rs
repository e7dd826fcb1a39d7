//! Hosts that were recently found not to be blocked, because a page's links lead to few hosts again and again.
//!
//! Decides: it only remembers hosts with nothing blocked. If that is wrong, it shows when the URL's turn comes,
//! because the list itself is checked then.
//! Limits: [`SLOTS`] hosts, 4 KiB.

use xxhash_rust::xxh3::xxh3_64;

use super::BlockList;

/// Such hosts, by their hashes; 0: none.
#[derive(Clone, Debug)]
pub struct ClearHosts {
    hashes: Box<[u64]>,
}

const SLOTS: usize = 512;

impl Default for ClearHosts {
    fn default() -> ClearHosts {
        ClearHosts { hashes: vec![0; SLOTS].into() }
    }
}

impl ClearHosts {
    /// Whether `list` blocks nothing at `host`; every call must pass the same list.
    pub fn is_clear(&mut self, list: &BlockList, host: &str) -> bool {
        if list.is_empty() {
            return true;
        }
        let hash = xxh3_64(host.as_bytes());
        let Some(slot) = self.hashes.get_mut(hash as usize % SLOTS) else { return false };
        if *slot == hash {
            return true;
        }
        let is_clear = list.has_nothing_at(host);
        if is_clear {
            *slot = hash;
        }
        is_clear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_clear_is_so_again() {
        let (list, _) = BlockList::parse("list", b".bad.test\nhttp://some.test/x\n");
        let mut hosts = ClearHosts::default();
        for _ in 0..3 {
            for number in 0..2_000 {
                assert!(hosts.is_clear(&list, &format!("h{number}.test")));
                assert!(!hosts.is_clear(&list, &format!("h{number}.bad.test")));
            }
            assert!(!hosts.is_clear(&list, "some.test") && !hosts.is_clear(&list, "bad.test"));
        }
    }
}
