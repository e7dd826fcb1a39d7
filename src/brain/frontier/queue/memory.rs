//! Memory for waiting URLs, and what goes to disk when it is short.
//!
//! Decides: above `frontier.ram_bytes_max` the tails of queues are spilled, the long ones first, so that one read
//! brings many URLs back; then ringcrawl searches a few hosts at a time for shorter tails.
//! References of blocks get half of that memory. When they have it, a host with URLs on disk gets no further ones until
//! some came back.
//! Invariants: `bytes` is the sum over all queues, references of their blocks included, retries and parked URLs.
//! Limits: heads, and tails below 512 bytes, stay in memory whatever the pressure.

use std::collections::VecDeque;

use super::spilling::SHORT_TAIL_BYTES;
use crate::job::HostId;

/// The account of a shard's waiting URLs.
#[derive(Debug)]
pub struct UrlMemory {
    bytes: u64,
    bytes_max: u64,
    /// Hosts with a tail worth spilling.
    long_tails: VecDeque<HostId>,
    /// Where the next search for smaller tails starts.
    sweep: usize,
}

impl UrlMemory {
    /// An empty account with room for `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> UrlMemory {
        UrlMemory { bytes: 0, bytes_max, long_tails: VecDeque::new(), sweep: 0 }
    }

    /// Bytes of waiting URLs.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that references of blocks may have.
    pub fn references_bytes_max(&self) -> u64 {
        (self.bytes_max / 2).max(REFERENCES_BYTES_MIN)
    }

    /// The bytes left, at least 0.
    pub fn bytes_left(&self) -> u64 {
        self.bytes_max.saturating_sub(self.bytes)
    }

    /// Whether waiting URLs are within their memory.
    pub fn has_room(&self) -> bool {
        self.bytes <= self.bytes_max
    }

    /// Something that held `before` bytes holds `after` now.
    pub fn changed(&mut self, before: u64, after: u64) {
        self.bytes = self.bytes - before + after;
    }

    /// The length from which a tail is worth a block of its own: one read brings some 200 URLs back. Blocks come back
    /// whole, one to a host, so with many hosts they must be smaller for all of them to fit.
    pub fn long_tail_bytes(&self, hosts: usize) -> usize {
        let share = self.bytes_max as usize / (4 * hosts.max(1));
        share.clamp(SHORT_TAIL_BYTES, LONG_TAIL_BYTES)
    }

    /// The tail of a host has become worth spilling. The search for shorter tails finds those that have no place here.
    pub fn note_long_tail(&mut self, id: HostId) {
        if self.long_tails.len() < LONG_TAILS_MAX {
            self.long_tails.push_back(id);
        }
    }

    /// The next host whose tails may go to disk, in a table of this many slots, while memory is over its bound. One
    /// caller's `searched` hosts for short tails are bounded.
    pub fn next_to_spill(&mut self, slots: usize, searched: &mut usize) -> Option<HostId> {
        if self.has_room() {
            return None;
        }
        if *searched == 0
            && let Some(id) = self.long_tails.pop_front()
        {
            return Some(id);
        }
        if *searched >= SWEEP_HOSTS.min(slots) {
            return None;
        }
        *searched += 1;
        self.sweep = (self.sweep + 1) % slots;
        Some(self.sweep as HostId)
    }
}

/// References of some blocks always have room.
const REFERENCES_BYTES_MIN: u64 = 96 << 10;
/// Tails may not grow longer than this before they are spilled.
const LONG_TAIL_BYTES: usize = 16 * 1024;
/// A crawl that never spills notes tails for weeks.
const LONG_TAILS_MAX: usize = 1 << 16;
/// Hosts looked at for short tails per offered URL.
const SWEEP_HOSTS: usize = 64;
