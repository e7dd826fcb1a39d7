//! The URLs seen: fingerprints (`visited.fingerprint_bits`) under the crawl's own seed, in memory.
//!
//! Decides: a URL is "seen" when its fingerprint is. The fingerprint's seed is drawn per crawl, so that an outsider
//! cannot make two URLs collide on purpose. The text of every URL is in the shard's log, from which the set is
//! rebuilt.

mod bucket;
mod table;

pub use table::{Seen, Table};
