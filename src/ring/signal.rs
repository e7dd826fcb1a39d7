//! A wake-up within one thread: a shard's tasks notify its loop that there is something to do.
//!
//! Decides: a flag and a waker in plain cells, because everything in a shard runs on its own thread; the channels of
//! the runtime would take a lock.
//! Invariants: a `notify` between two `wait`s is seen by the second; one waiter at a time.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// The flag.
#[derive(Debug, Default)]
pub struct Signal {
    raised: Cell<bool>,
    waiter: RefCell<Option<Waker>>,
}

impl Signal {
    /// Raises the flag and wakes the waiter.
    pub fn notify(&self) {
        self.raised.set(true);
        let waiter = self.waiter.borrow_mut().take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// Returns when the flag is up, and takes it down.
    pub async fn wait(&self) {
        poll_fn(|context| {
            if self.raised.replace(false) {
                return Poll::Ready(());
            }
            *self.waiter.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
