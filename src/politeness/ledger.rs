//! When each IP address may be asked again: one array for all shards.
//!
//! Decides: politeness to an address can only be promised by the whole box, because hosts of one address live
//! in different shards. The ledger is an array of atomics indexed by a hash of the address; a request claims
//! its slot by compare-and-swap, holds it while it runs, and gives it back with the instant from which the next
//! one may start. Two addresses in one slot wait for each other: more polite than asked, never less.
//! Invariants: at most one request under way per slot; none starts before the slot's instant.
//! Limits: 8 bytes a slot. A claim whose owner is lost lapses at its hold's end.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::time::{Duration, Instant};

/// The array.
#[derive(Debug)]
pub struct Ledger {
    /// Nanoseconds from which the slot is free; the lowest bit says that a request is under way until then.
    slots: Box<[AtomicU64]>,
}

impl Ledger {
    /// A ledger of at least `slots` slots, all free.
    pub fn new(slots: usize) -> Ledger {
        Ledger { slots: (0..slots.next_power_of_two()).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Claims `addr` for a request that ends by `hold_until`; otherwise says when to try again at the earliest:
    /// `None` when a request is under way, whose end nobody knows.
    pub fn claim(&self, addr: IpAddr, now: Instant, hold_until: Instant) -> Result<(), Option<Instant>> {
        let slot = self.slot(addr);
        let free_from = slot.load(Ordering::Acquire);
        if free_from & !HELD > now.as_nanos() {
            return Err((free_from & HELD == 0).then_some(Instant::from_nanos(free_from)));
        }
        let held = hold_until.as_nanos() | HELD;
        // Another shard was quicker: its request is under way.
        slot.compare_exchange(free_from, held, Ordering::AcqRel, Ordering::Relaxed).map(|_| ()).map_err(|_| None)
    }

    /// Ends the claim that was made with `hold_until`: the next request may start at `free_from`. A claim that
    /// lapsed may be another's by now, which stays as it is.
    pub fn release(&self, addr: IpAddr, hold_until: Instant, free_from: Instant) {
        let free = free_from.as_nanos().saturating_add(HELD) & !HELD;
        let held = hold_until.as_nanos() | HELD;
        let _ = self.slot(addr).compare_exchange(held, free, Ordering::AcqRel, Ordering::Relaxed);
    }

    fn slot(&self, addr: IpAddr) -> &AtomicU64 {
        let hash = match addr.to_canonical() {
            IpAddr::V4(v4) => xxhash_rust::xxh3::xxh3_64(&v4.octets()),
            IpAddr::V6(v6) => xxhash_rust::xxh3::xxh3_64(&v6.octets()),
        };
        &self.slots[hash as usize & (self.slots.len() - 1)]
    }
}

const HELD: u64 = 1;

/// A claim outlasts the deadline of what it is for by this, so that only one whose owner is lost lapses.
pub const HOLD_SLACK: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_not_before_its_time() {
        let ledger = Ledger::new(1_024);
        let addr: IpAddr = "192.0.2.1".parse().unwrap();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!(ledger.claim(addr, at(5), at(60_000)), Ok(()));
        assert_eq!(ledger.claim(addr, at(6), at(60_000)), Err(None));
        assert_eq!(ledger.claim("::ffff:192.0.2.1".parse().unwrap(), at(6), at(60_000)), Err(None));
        ledger.release(addr, at(60_000), at(110));
        assert_eq!(ledger.claim(addr, at(109), at(60_000)), Err(Some(at(110))));
        assert_eq!(ledger.claim(addr, at(110), at(200)), Ok(()));
        assert_eq!(ledger.claim(addr, at(201), at(300)), Ok(()), "a lost claim lapses");
        ledger.release(addr, at(200), at(205));
        assert_eq!(ledger.claim(addr, at(206), at(400)), Err(None), "who comes late does not end another's claim");
        ledger.release(addr, at(300), at(310));
        assert_eq!(ledger.claim(addr, at(310), at(400)), Ok(()));
    }

    #[test]
    fn threads_never_hold_one_address_together() {
        use std::sync::atomic::AtomicU32;
        let (ledger, inside) = (Ledger::new(16), AtomicU32::new(0));
        let addr: IpAddr = "2001:db8::1".parse().unwrap();
        let claims: u32 = std::thread::scope(|scope| {
            let work = || {
                let mut claims = 0;
                for step in 0..if cfg!(miri) { 200 } else { 100_000 } {
                    let now = Instant::from_nanos(2 * step + 2);
                    if ledger.claim(addr, now, Instant::NEVER).is_ok() {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        claims += 1;
                        inside.fetch_sub(1, Ordering::SeqCst);
                        ledger.release(addr, Instant::NEVER, Instant::ZERO);
                    }
                }
                claims
            };
            let threads = [scope.spawn(work), scope.spawn(work)];
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(claims > 0);
    }
}
