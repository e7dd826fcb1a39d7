//! Whether the crawl keeps within the memory that was promised at its start.
//!
//! Decides: resident memory is compared with `crawl.ram_bytes_max` every [`LOOK_INTERVAL`]. Beyond it, plus what
//! block lists take in addition, the promise is broken, which is a bug of ours. The crawl warns once and re-arms when
//! memory falls to nine tenths.
//! Invariants: pure; it takes no action: a control group of the machine is what stops a crawl.

use ringcrawl_base::time::{Duration, Instant};

/// Watches the memory of a crawl.
#[derive(Debug)]
pub struct MemoryWatch {
    bytes_max: u64,
    next_look: Instant,
    is_told: bool,
}

impl MemoryWatch {
    /// The watch of a crawl that promised `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> MemoryWatch {
        MemoryWatch { bytes_max, next_look: Instant::ZERO, is_told: false }
    }

    /// The report due at `now`, if any. When it is time to look, `rss_bytes` returns resident bytes, and
    /// `lists_bytes` those that block lists may take.
    pub fn look(
        &mut self,
        now: Instant,
        rss_bytes: impl FnOnce() -> u64,
        lists_bytes: impl FnOnce() -> u64,
    ) -> Option<String> {
        if now < self.next_look {
            return None;
        }
        self.next_look = now + LOOK_INTERVAL;
        let bytes = rss_bytes();
        if bytes <= self.bytes_max {
            self.is_told &= bytes > self.bytes_max / 10 * 9;
            return None;
        }
        let lists_bytes = lists_bytes();
        if bytes <= self.bytes_max.saturating_add(lists_bytes) || std::mem::replace(&mut self.is_told, true) {
            return None;
        }
        let [bytes, bytes_max, lists_bytes] = [bytes, self.bytes_max, lists_bytes].map(|bytes| bytes >> 20);
        let lists = if lists_bytes > 0 { format!(" and the {lists_bytes} MiB of block lists") } else { String::new() };
        Some(format!(
            "memory: {bytes} MiB are resident, above the limit of {bytes_max} MiB{lists}: a bug in ringcrawl; the crawl continues. Lower crawl.ram_bytes_max if the machine is short of memory"
        ))
    }
}

/// The interval between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_told_once_until_it_was_little_again() {
        let mut watch = MemoryWatch::new(100 << 20);
        let mut tells = |millis, mebibytes: u64| {
            watch.look(Instant::ZERO + Duration::from_millis(millis), || mebibytes << 20, || 0).is_some()
        };
        assert!(!tells(0, 100));
        assert!(!tells(999, 101), "no look");
        assert!(tells(1_000, 101));
        assert!(!tells(2_000, 150), "once");
        assert!(!tells(3_000, 95));
        assert!(!tells(4_000, 101), "it had not come back");
        assert!(!tells(5_000, 90));
        assert!(tells(6_000, 101));
    }

    #[test]
    fn block_lists_are_no_part_of_the_promise() {
        let mut watch = MemoryWatch::new(100 << 20);
        let mut look = |seconds, mebibytes: u64| {
            watch.look(Instant::ZERO + Duration::from_secs(seconds), || mebibytes << 20, || 50 << 20)
        };
        assert_eq!(look(0, 150), None);
        let told = look(1, 151).expect("a broken promise");
        assert!(told.contains("151 MiB are resident, above the limit of 100 MiB and the 50 MiB of block lists"));
    }
}
