//! Exchanges that may be told to end before their deadline.
//!
//! Decides: an exchange ends through its guard, while it waits for the response: connecting and handshakes have short
//! timeouts of their own. An exchange that is told to end before that ends when it starts to wait.
//! Invariants: a job is known from the beginning of its exchange to the end; a guard lives as long as its slot is
//! noted.

use std::cell::RefCell;

use ringcrawl_base::IntMap;
use ringcrawl_ring::{Deadlines, Guard};

/// Jobs in flight.
#[derive(Default)]
pub struct CutShortJobs {
    jobs: RefCell<IntMap<Told>>,
}

#[derive(Default)]
struct Told {
    /// The slot of the guard under which it waits for a response.
    slot: Option<usize>,
    is_told: bool,
}

/// A job is known until this is dropped.
pub struct Entered<'a> {
    cut_short: &'a CutShortJobs,
    job: u64,
}

impl CutShortJobs {
    /// The exchange of `job` begins.
    pub fn enter(&self, job: u64) -> Entered<'_> {
        self.jobs.borrow_mut().insert(job, Told::default());
        Entered { cut_short: self, job }
    }

    /// `job` waits under `guard`; its wait ends at once if it was already told to end.
    pub fn begin(&self, job: u64, guard: &Guard, deadlines: &Deadlines) {
        if let Some(told) = self.jobs.borrow_mut().get_mut(&job) {
            told.slot = Some(guard.slot());
            if told.is_told {
                deadlines.pass(guard.slot());
            }
        }
    }

    /// `job` does not wait any more; returns whether it was told to end.
    pub fn end(&self, job: u64) -> bool {
        self.jobs.borrow_mut().get_mut(&job).is_some_and(|told| {
            told.slot = None;
            told.is_told
        })
    }

    /// Tells `job` to end.
    pub fn cut_short(&self, job: u64, deadlines: &Deadlines) {
        if let Some(told) = self.jobs.borrow_mut().get_mut(&job) {
            told.is_told = true;
            told.slot.into_iter().for_each(|slot| deadlines.pass(slot));
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.cut_short.jobs.borrow_mut().remove(&self.job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::time::Duration;
    use ringcrawl_ring::{self as ring, Runtime, Socket};

    #[test]
    fn who_is_told_before_it_waits_ends_when_it_begins_to() {
        Runtime::new(8).expect("io_uring").block_on(async {
            let (cut_short, deadlines) = (CutShortJobs::default(), Deadlines::new());
            let socket = Socket::new([127, 0, 0, 1].into()).expect("a socket");
            for (is_told, is_late) in [(false, false), (true, false), (true, true)] {
                let entered = cut_short.enter(7);
                let guard = deadlines.guard(&socket, ring::now() + Duration::from_secs(60));
                if is_told && !is_late {
                    cut_short.cut_short(7, &deadlines);
                }
                cut_short.begin(7, &guard, &deadlines);
                if is_late {
                    cut_short.cut_short(7, &deadlines);
                }
                ring::sleep_until(ring::now() + Duration::from_millis(20)).await;
                assert_eq!((guard.is_expired(), cut_short.end(7)), (is_told, is_told));
                drop(guard);
                cut_short.cut_short(7, &deadlines);
                drop(entered);
                cut_short.cut_short(7, &deadlines);
                assert!(cut_short.jobs.borrow().is_empty(), "none is in flight");
            }
        });
    }
}
