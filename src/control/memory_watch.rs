//! Whether the crawl keeps within the memory that was promised at its start.
//!
//! Decides: what is resident is compared with `crawl.ram_bytes_max` every [`LOOK_INTERVAL`]. Beyond it the promise is broken,
//! which is our own fault: it is said, and said again once memory had come back to nine tenths of it.
//! Invariants: pure; nothing is done about it: a control group of the machine is what stops a crawl.

use crate::time::{Duration, Instant};

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

    /// What is to be said at `now`; `rss_bytes` is asked for resident bytes when it is time.
    pub fn look(&mut self, now: Instant, rss_bytes: impl FnOnce() -> u64) -> Option<String> {
        if now < self.next_look {
            return None;
        }
        self.next_look = now + LOOK_INTERVAL;
        let bytes = rss_bytes();
        if bytes <= self.bytes_max {
            self.is_told &= bytes > self.bytes_max / 10 * 9;
            return None;
        }
        if std::mem::replace(&mut self.is_told, true) {
            return None;
        }
        let [bytes, bytes_max] = [bytes, self.bytes_max].map(|bytes| bytes >> 20);
        Some(format!(
            "memory: {bytes} MiB are resident, more than the {bytes_max} MiB that were promised: a bug of ringcrawl; the \
             crawl goes on, lower crawl.ram_bytes_max if the machine has no more"
        ))
    }
}

/// Between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_told_once_until_it_was_little_again() {
        let mut watch = MemoryWatch::new(100 << 20);
        let mut tells = |millis, mebibytes: u64| {
            watch.look(Instant::ZERO + Duration::from_millis(millis), || mebibytes << 20).is_some()
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
}
