//! What is known of the kinds of one host's pages, with the memory that it takes.
//!
//! Invariants: the bytes are counted until this is dropped, for all hosts of a shard and for those of a site.
//! Limits: a site may have three times as much as is free.
//! Leaves to others: what is noted, and when it is too much ([`crate::frontier::order`]).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::frontier::settings::TIMES_FREE;
use crate::job::FetchJob;
use crate::kinds::HostKinds;
use crate::outcome::Fetched;
use crate::site_shares::SiteShares;
use ringcrawl_url::SiteKey;

/// Bytes held for hosts, by site.
#[derive(Debug)]
pub struct KindMemory {
    /// Bytes held for all hosts.
    pub bytes: Cell<u64>,
    /// In units of each host.
    shares: RefCell<SiteShares>,
}

impl Default for KindMemory {
    fn default() -> KindMemory {
        KindMemory { bytes: Cell::new(0), shares: RefCell::new(SiteShares::new(SHARE_PLACES, TIMES_FREE)) }
    }
}

impl KindMemory {
    /// Whether all hosts, and those of `site`, are within their memory of `bytes_max`, with `more` bytes.
    pub fn has_room(&self, site: SiteKey, more: u64, bytes_max: u64) -> bool {
        let free = bytes_max.checked_sub(self.bytes.get() + more);
        free.is_some_and(|free| self.shares.borrow().may_take(site, free.div_ceil(UNIT_BYTES)))
    }

    /// A host of `site` holds `after` bytes instead of `before`.
    fn changed(&self, site: SiteKey, before: u64, after: u64) {
        let units = |bytes: u64| u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        self.bytes.set(self.bytes.get() - before + after);
        if units(before) != units(after) {
            self.shares.borrow_mut().changed(site, units(before), units(after));
        }
    }
}

/// The evidence on a host's kinds, counted as memory until it is dropped.
#[derive(Debug)]
pub struct CountedKinds {
    kinds: HostKinds,
    counted: u64,
    site: SiteKey,
    memory: Rc<KindMemory>,
}

impl CountedKinds {
    /// For a host of `site` that had this many pages.
    pub fn new(pages: u32, site: SiteKey, memory: &Rc<KindMemory>) -> CountedKinds {
        let memory = Rc::clone(memory);
        let mut new = CountedKinds { kinds: HostKinds::new(pages), counted: 0, site, memory };
        new.count();
        new
    }

    /// A page was fetched; returns whether more is known now.
    pub fn note(&mut self, job: &FetchJob, fetched: &Fetched) -> bool {
        let before = self.counted;
        self.kinds.note(&job.url, fetched, job.is_examined);
        self.count();
        self.counted > before
    }

    fn count(&mut self) {
        let now = self.kinds.ram_bytes() as u64;
        self.memory.changed(self.site, self.counted, now);
        self.counted = now;
    }
}

impl std::ops::Deref for CountedKinds {
    type Target = HostKinds;

    fn deref(&self) -> &HostKinds {
        &self.kinds
    }
}

impl std::ops::DerefMut for CountedKinds {
    fn deref_mut(&mut self) -> &mut HostKinds {
        &mut self.kinds
    }
}

impl Drop for CountedKinds {
    fn drop(&mut self) {
        self.memory.changed(self.site, self.counted, 0);
    }
}

/// What shares are counted in, so that their counters are wide enough.
const UNIT_BYTES: u64 = 64;
/// Slots for the shares of sites.
const SHARE_PLACES: usize = 1 << 12;
