//! What is known of the kinds of one host's pages, with the memory that it takes.
//!
//! Invariants: the bytes are counted until this is dropped, for all hosts of a shard together.
//! Leaves to others: what is noted, and when it is too much ([`crate::frontier::order`]).

use std::cell::Cell;
use std::rc::Rc;

use crate::job::FetchJob;
use crate::kinds::HostKinds;
use crate::outcome::Fetched;

/// The evidence on a host's kinds, counted as memory until it is dropped.
#[derive(Debug)]
pub struct CountedKinds {
    kinds: HostKinds,
    counted: u64,
    bytes: Rc<Cell<u64>>,
}

impl CountedKinds {
    /// For a host that had this many pages.
    pub fn new(pages: u32, bytes: &Rc<Cell<u64>>) -> CountedKinds {
        let mut new = CountedKinds { kinds: HostKinds::new(pages), counted: 0, bytes: Rc::clone(bytes) };
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
        self.bytes.set(self.bytes.get() - self.counted + now);
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
        self.bytes.set(self.bytes.get() - self.counted);
    }
}
