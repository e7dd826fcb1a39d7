//! A value that one thread sets and others take when it has changed.
//!
//! Decides: a reader compares versions in each turn, and takes the lock only if they differ, so that no page waits for
//! it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The last value given, always whole.
#[derive(Debug, Default)]
pub struct Versioned<T> {
    version: AtomicU64,
    value: Mutex<T>,
}

impl<T: Clone> Versioned<T> {
    /// Sets another value; returns its version. Only one thread, the housekeeping thread, calls this.
    pub fn give(&self, value: T) -> u64 {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = value;
        self.version.fetch_add(1, Ordering::Release) + 1
    }

    /// The version of the value: 0 for the one that it began with.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The value now: that of the version read before, or a later one.
    pub fn get(&self) -> T {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
