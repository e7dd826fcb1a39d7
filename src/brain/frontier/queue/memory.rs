//! Memory for waiting URLs, and what goes to disk when it is short.
//!
//! Decides: above `frontier.ram_bytes_max` the tails of queues are spilled, the long ones first, so that one read
//! brings many URLs back; then ringcrawl searches a few hosts at a time for shorter tails. Where there are many hosts,
//! their heads alone may be above that bound, and no search finds anything: so each queued URL pays for few of them.
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
    /// Hosts that may be searched.
    sweeps_left: usize,
}

impl UrlMemory {
    /// An empty account with room for `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> UrlMemory {
        UrlMemory { bytes: 0, bytes_max, long_tails: VecDeque::new(), sweep: 0, sweeps_left: 0 }
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

    /// A URL was queued, in a table of this many slots: a tail may have become worth a search.
    pub fn note_queued(&mut self, slots: usize) {
        self.sweeps_left = (self.sweeps_left + SWEEPS_A_URL).min(slots);
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
        if *searched >= SWEEP_HOSTS.min(slots) || self.sweeps_left == 0 {
            return None;
        }
        self.sweeps_left -= 1;
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
/// Hosts looked at for short tails at a time, and for each queued URL in the long run: memory may be above its bound
/// by a quarter of a URL a host before all were searched.
const SWEEP_HOSTS: usize = 64;
const SWEEPS_A_URL: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// With a million hosts their heads alone are above the bound: a queued URL pays for a few searches in vain, and
    /// all hosts are searched in turn.
    #[test]
    fn a_search_in_vain_costs_little() {
        let (mut memory, slots, urls) = (UrlMemory::new(1_000), 10_000, 20_000);
        memory.changed(0, 2_000);
        let mut searched_by_host = vec![0; slots];
        for _ in 0..urls {
            memory.note_queued(slots);
            let mut searched = 0;
            while let Some(id) = memory.next_to_spill(slots, &mut searched) {
                searched_by_host[id as usize] += 1;
            }
            assert!(searched <= SWEEPS_A_URL, "what comes in pays for it");
        }
        let all: usize = searched_by_host.iter().sum();
        assert!(all <= SWEEPS_A_URL * urls && searched_by_host.iter().all(|times| *times >= 7), "{all}");
        // Where memory sufficed for long, many tails may have grown.
        memory.changed(2_000, 0);
        (0..slots).for_each(|_| memory.note_queued(slots));
        memory.changed(0, 2_000);
        let at_once = |memory: &mut UrlMemory| {
            let mut searched = 0;
            std::iter::from_fn(|| memory.next_to_spill(slots, &mut searched)).count()
        };
        assert_eq!(
            (0..slots / SWEEP_HOSTS).map(|_| at_once(&mut memory)).sum::<usize>(),
            slots / SWEEP_HOSTS * SWEEP_HOSTS
        );
    }
}
