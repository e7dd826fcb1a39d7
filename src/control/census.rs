//! Is the crawl over? Asked of shards that never stop to be asked.
//!
//! Decides: two looks in a row at every shard that find all of them quiet, as much sent as received, and nothing
//! changed between them (Mattern's four-counter method, Distributed Computing 2, 1987). One look is not enough:
//! a batch may leave a shard already looked at for one that is looked at later.
//! Invariants, which the shards keep: `sent` grows before a batch enters a ring; `quiet` falls before a batch
//! taken from a ring is worked off and `received` grows after; `quiet` rises only when nothing is left to do.

use std::sync::atomic::Ordering;

use super::Control;

/// The last look.
#[derive(Debug, Default)]
pub struct Census {
    last: Option<(u64, u64)>,
}

impl Census {
    /// Looks once more; whether the crawl is over.
    pub fn is_over(&mut self, control: &Control) -> bool {
        let mut look = (0, 0);
        for post in control.posts() {
            if !post.quiet.load(Ordering::Acquire) {
                self.last = None;
                return false;
            }
            look.0 += post.sent.load(Ordering::Acquire);
            look.1 += post.received.load(Ordering::Acquire);
        }
        let over = look.0 == look.1 && self.last == Some(look);
        self.last = Some(look);
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_after_two_equal_looks_alone() {
        let control = Control::new(2).unwrap();
        let mut census = Census::default();
        let [a, b] = control.posts() else { panic!("two posts") };
        assert!(!census.is_over(&control));
        a.quiet.store(true, Ordering::Release);
        assert!(!census.is_over(&control) && !census.is_over(&control), "one is busy");
        b.quiet.store(true, Ordering::Release);
        assert!(!census.is_over(&control), "one look is not enough");
        a.sent.store(5, Ordering::Release);
        assert!(!census.is_over(&control) && !census.is_over(&control), "five URLs are under way");
        b.received.store(5, Ordering::Release);
        assert!(!census.is_over(&control), "something changed");
        assert!(census.is_over(&control));
    }
}
