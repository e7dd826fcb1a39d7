//! The scope that is to be in force, where the shards find it when it is another one.
//!
//! Decides: a shard compares versions in each turn, and takes the lock only where they differ, so that no page waits for it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ringcrawl_brain::scope::Scope;

/// The scope that was given last.
#[derive(Debug, Default)]
pub struct ScopeCell {
    version: AtomicU64,
    scope: Mutex<Scope>,
}

impl ScopeCell {
    /// Gives another scope; its version. For the housekeeping thread alone.
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
