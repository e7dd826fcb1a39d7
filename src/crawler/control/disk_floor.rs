//! Whether there is enough space on the disk to fetch more. Pure.
//!
//! Decides: below `store.free_bytes_min` no fetch starts; fetches in flight finish and are written. Fetching resumes
//! when an eighth more than that is free, so that it does not stop and start with every file that comes and goes.

/// The hysteresis on free disk space.
#[derive(Debug)]
pub struct DiskFloor {
    free_bytes_min: u64,
    is_full: bool,
}

impl DiskFloor {
    /// Keeps this many bytes free; 0: none.
    pub fn new(free_bytes_min: u64) -> DiskFloor {
        DiskFloor { free_bytes_min, is_full: false }
    }

    /// Free space with which fetching resumes, for a floor of `free_bytes_min`.
    pub fn resumes_at(free_bytes_min: u64) -> u64 {
        free_bytes_min.saturating_add(free_bytes_min / 8)
    }

    /// Whether fetching waits for space, with this many bytes free; `None`: unknown.
    pub fn look(&mut self, free_bytes: Option<u64>) -> bool {
        let Some(free_bytes) = free_bytes else { return self.is_full };
        let min = self.free_bytes_min;
        let wanted = if self.is_full { DiskFloor::resumes_at(min) } else { min };
        self.is_full = free_bytes < wanted;
        self.is_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_more_lets_it_go_on() {
        let mut floor = DiskFloor::new(800);
        assert!(!floor.look(None));
        assert_eq!(
            [1_000, 800, 799, 850, 899, 900, 800].map(|free| floor.look(Some(free))),
            [false, false, true, true, true, false, false]
        );
        assert!(floor.look(Some(0)) && floor.look(None), "an unknown value changes nothing");
        assert!(!DiskFloor::new(0).look(Some(0)));
    }
}
