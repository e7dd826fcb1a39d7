//! The scope that should be in effect, where the shards find it when it changes.
//!
//! Decides: a shard compares versions in each turn, and takes the lock only if they differ, so that no page waits for
//! it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ringcrawl_brain::scope::Scope;

/// The last scope given.
#[derive(Debug, Default)]
pub struct ScopeCell {
    version: AtomicU64,
    scope: Mutex<Scope>,
}

impl ScopeCell {
    /// Sets another scope; returns its version. Only the housekeeping thread calls this.
    pub fn give(&self, scope: Scope) -> u64 {
        if let Ok(mut place) = self.scope.lock() {
            *place = scope;
        }
        self.version.fetch_add(1, Ordering::Release) + 1
    }

    /// The version of the scope: 0 for the one that a shard began with.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The scope now.
    pub fn get(&self) -> Scope {
        self.scope.lock().map(|scope| scope.clone()).unwrap_or_default()
    }
}
