//! Exchanges that may be told to end before their deadline.
//!
//! Decides: an exchange is told by its guard, while it waits for the response: connecting and handshakes have timeouts of
//! their own, which are short.
//! Invariants: a job is known from its request until its exchange has ended; the guard lives as long.

use std::cell::RefCell;

use crate::by_number::ByNumber;
use crate::ring::{Deadlines, Guard};

/// Those that wait for a response.
#[derive(Default)]
pub struct Hurries {
    /// The guard's slot, and whether it was told, by job.
    waiting: RefCell<ByNumber<(usize, bool)>>,
}

impl Hurries {
    /// `job` waits under `guard`.
    pub fn begin(&self, job: u64, guard: &Guard) {
        self.waiting.borrow_mut().insert(job, (guard.slot(), false));
    }

    /// `job` does not wait any more; whether it was told to end.
    pub fn end(&self, job: u64) -> bool {
        self.waiting.borrow_mut().remove(&job).is_some_and(|(_, is_told)| is_told)
    }

    /// Tells `job` to end.
    pub fn hurry(&self, job: u64, deadlines: &Deadlines) {
        if let Some((slot, is_told)) = self.waiting.borrow_mut().get_mut(&job) {
            *is_told = true;
            deadlines.pass(*slot);
        }
    }
}
