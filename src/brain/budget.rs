//! How many pages a crawl may still fetch: `crawl.pages_max`, for all shards together.
//!
//! Decides: a shard takes a slot before it fetches a page and gives it back if the response was not a page. So the
//! crawl stores exactly `pages_max` pages if there are so many, whatever the number of shards. One atomic a page, and
//! only in a crawl with a limit: a crawl without one shares nothing here.
//! Invariants: taken slots and stored pages together never exceed `pages_max`.

use std::sync::atomic::{AtomicU64, Ordering};

/// The free slots.
#[derive(Debug)]
pub struct PageBudget {
    left: Option<AtomicU64>,
}

impl PageBudget {
    /// For `pages_max` pages; 0: no limit.
    pub fn new(pages_max: u64) -> PageBudget {
        PageBudget { left: (pages_max > 0).then(|| AtomicU64::new(pages_max)) }
    }

    /// Takes a slot; `false` if none is left, though others may be given back.
    pub fn take(&self) -> bool {
        let Some(left) = &self.left else { return true };
        left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok()
    }

    /// Gives a slot back.
    pub fn give_back(&self) {
        if let Some(left) = &self.left {
            left.fetch_add(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_over_threads() {
        let budget = PageBudget::new(1_000);
        let taken: u64 = std::thread::scope(|scope| {
            let work = || {
                let mut kept = 0;
                for step in 0..10_000 {
                    if budget.take() {
                        if step % 3 == 0 { budget.give_back() } else { kept += 1 }
                    }
                }
                kept
            };
            let threads = [scope.spawn(work), scope.spawn(work)];
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((taken, budget.take()), (1_000, false));
        assert!((0..10).all(|_| PageBudget::new(0).take()), "no limit");
    }
}
