//! The addresses of this machine, which a crawl must not fetch from: what listens there may trust its neighbours.
//!
//! Decides: all shards share one list, which the housekeeping thread replaces now and then, as addresses come and go.
//! Each shard keeps what it read last, and reads again when the list has changed and no other thread holds the lock:
//! none ever waits.
//! Invariants: an address that carries an IPv4 address (NAT64, 6to4) is this machine's if that one is.
//! Leaves to others: what the addresses are (`ring`), when the list is replaced (`boot`).

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ringcrawl_url::carried_v4;

/// The list that all shards share.
#[derive(Debug, Default)]
pub struct OwnAddresses {
    /// Sorted.
    list: Mutex<Arc<[IpAddr]>>,
    /// The number of lists so far.
    version: AtomicU64,
}

impl OwnAddresses {
    /// Replaces the list.
    pub fn set(&self, mut addresses: Vec<IpAddr>) {
        addresses.sort_unstable();
        addresses.dedup();
        *self.list.lock().unwrap_or_else(PoisonError::into_inner) = addresses.into();
        self.version.fetch_add(1, Ordering::Release);
    }

    /// The list.
    pub fn listed(&self) -> Arc<[IpAddr]> {
        Arc::clone(&self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One shard's view of the list.
#[derive(Debug, Default)]
pub(super) struct OwnAddressesSeen {
    shared: Arc<OwnAddresses>,
    version: Cell<u64>,
    seen: RefCell<Arc<[IpAddr]>>,
}

impl OwnAddressesSeen {
    pub(super) fn new(shared: Arc<OwnAddresses>) -> OwnAddressesSeen {
        OwnAddressesSeen { shared, ..OwnAddressesSeen::default() }
    }

    /// Whether `addr` leads to this machine.
    pub(super) fn contains(&self, addr: IpAddr) -> bool {
        let version = self.shared.version.load(Ordering::Acquire);
        if version != self.version.get()
            && let Ok(list) = self.shared.list.try_lock()
        {
            self.seen.replace(Arc::clone(&list));
            self.version.set(version);
        }
        let seen = self.seen.borrow();
        let is_listed = |addr: IpAddr| seen.binary_search(&addr).is_ok();
        is_listed(addr) || carried_v4(addr).is_some_and(|v4| is_listed(v4.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_again_and_no_fetch_waits_for_it() {
        let shared = Arc::new(OwnAddresses::default());
        let shard = OwnAddressesSeen::new(Arc::clone(&shared));
        let is_own = |texts: &str| {
            texts.split_whitespace().map(|text| shard.contains(text.parse().expect(text))).collect::<Vec<_>>()
        };
        assert_eq!(is_own("93.184.216.34"), [false]);
        shared.set(["2606:2800:220::1", "93.184.216.34"].map(|text| text.parse().expect(text)).to_vec());
        assert_eq!(is_own("93.184.216.34 2606:2800:220::1 ::ffff:93.184.216.34"), [true; 3]);
        assert_eq!(is_own("64:ff9b::93.184.216.34 2002:5db8:d822::1"), [true; 2]);
        assert_eq!(is_own("93.184.216.35 2606:2800:220::2 64:ff9b::93.184.216.35 2002:5db8:d823::1"), [false; 4]);
        // While it is being replaced the last one is used.
        shared.set(vec![]);
        let held = shared.list.lock().expect("free");
        assert_eq!(is_own("93.184.216.34"), [true]);
        drop(held);
        assert_eq!(is_own("93.184.216.34"), [false]);
    }
}
