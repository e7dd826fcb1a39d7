//! When each address, site and group may get the next request: one table for all shards.
//!
//! Decides: only the whole box can guarantee politeness to an address, because hosts of one address live in different
//! shards. The ledger is a hash table of atomics in buckets of [`WAYS`] entries. A request claims its address's entry
//! by compare-and-swap, holds it while it runs, and gives it back with the instant from which the next one may start.
//! An entry holds its whole [`ClaimKey`], so two addresses never block each other. A new key takes the entry of its
//! bucket that has been free for longest and no longer carries information. If no entry of the bucket is free, a new
//! key waits.
//! Why a secret: anyone who chooses where a name points chooses keys. The bucket is the key's SipHash-1-3 under a
//! secret of the run, a function made for exactly this. An outsider can learn where keys fall only by waiting, so a
//! chosen bucket cannot be filled.
//! How: an entry is two words, the key's number and a state: instant, whether held, kind of key. The number is only
//! written while the state says `WRITING`. States of an entry only move forward in time, so a successful exchange of
//! the state proves that the number read after it belongs to it. Two shards that enter one new key at different
//! entries both say so (`ENTERING`) before they look at the rest of the bucket: at least one sees the other and
//! withdraws.
//! Invariants: at most one request in flight per key; none starts before the key's instant.
//! Limits: 16 bytes an entry. A claim whose owner is lost lapses when its hold ends.

use std::hash::Hasher;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use siphasher::sip::SipHasher13;

use super::key::ClaimKey;
use ringcrawl_base::time::{Duration, Instant};

/// The number of entries that a key may be in.
pub const WAYS: usize = 8;

/// A claim outlasts its request's deadline by this, so that only a claim whose owner is lost lapses.
pub const HOLD_SLACK: Duration = Duration::from_secs(5);

/// The table.
#[derive(Debug)]
pub struct Ledger {
    buckets: Box<[[Entry; WAYS]]>,
    secret: [u64; 2],
}

#[derive(Debug, Default)]
struct Entry {
    number: AtomicU64,
    /// An [`EntryState`].
    state: AtomicU64,
}

impl Ledger {
    /// A ledger of at least `entries` entries, all free; its secret is public until it is `keyed`.
    pub fn new(entries: usize) -> Ledger {
        let buckets = entries.div_ceil(WAYS).next_power_of_two();
        Ledger { buckets: (0..buckets).map(|_| Default::default()).collect(), secret: [0; 2] }
    }

    /// The same, with entries in places that depend on `secret`; call it before the first claim.
    pub fn keyed(self, secret: [u64; 2]) -> Ledger {
        Ledger { secret, ..self }
    }

    /// Claims `key` for a request that ends by `hold_until`. Otherwise returns the earliest time to try again: `None`
    /// while a request is in flight, because its end is unknown.
    pub fn claim(&self, key: impl Into<ClaimKey>, now: Instant, hold_until: Instant) -> Result<(), Option<Instant>> {
        let (number, kind) = key.into().parts();
        let bucket = self.bucket(number, kind);
        let held = EntryState::new(hold_until, kind, true);
        match entries_of(bucket, number, kind).next() {
            Some((entry, state)) if state.is_free_at(now) => {
                // Another shard was quicker: its request is in flight.
                entry.state.compare_exchange(state.0, held.0, SeqCst, SeqCst).map(drop).map_err(|_| None)
            }
            Some((_, state)) => Err(state.free_from()),
            None => enter(bucket, number, held, now),
        }
    }

    /// Ends the claim made with `hold_until`: the next request may start at `free_from`. A claim that lapsed may have
    /// a new owner by now, and then stays as it is.
    pub fn release(&self, key: impl Into<ClaimKey>, hold_until: Instant, free_from: Instant) {
        let (number, kind) = key.into().parts();
        let (held, free) = (EntryState::new(hold_until, kind, true), EntryState::new(free_from, kind, false));
        // One that is about to withdraw may be among them; this claim does not hold it.
        for (entry, _) in entries_of(self.bucket(number, kind), number, kind) {
            // No further: another claim may be held until the same instant, and have entered behind this one.
            if entry.state.compare_exchange(held.0, free.0, SeqCst, SeqCst).is_ok() {
                return;
            }
        }
    }

    /// Lets `key` rest at least until `until`. Returns whether it does now; it does not while a request is in flight.
    pub fn rest(&self, key: impl Into<ClaimKey>, now: Instant, until: Instant) -> bool {
        let (number, kind) = key.into().parts();
        let bucket = self.bucket(number, kind);
        let rests = EntryState::new(until, kind, false);
        match entries_of(bucket, number, kind).next() {
            Some((_, state)) if state.free_from().is_none() && !state.is_free_at(now) => false,
            Some((_, state)) if state.order() >= rests.order() => true,
            Some((entry, state)) => entry.state.compare_exchange(state.0, rests.0, SeqCst, SeqCst).is_ok(),
            None => enter(bucket, number, rests, now).is_ok(),
        }
    }

    fn bucket(&self, number: u64, kind: u64) -> &[Entry; WAYS] {
        let mut hasher = SipHasher13::new_with_keys(self.secret[0], self.secret[1]);
        hasher.write_u64(number);
        hasher.write_u64(kind);
        &self.buckets[hasher.finish() as usize & (self.buckets.len() - 1)]
    }
}

/// The entries that a key seems to have, and their states: one, except for those about to withdraw.
fn entries_of(bucket: &[Entry; WAYS], number: u64, kind: u64) -> impl Iterator<Item = (&Entry, EntryState)> {
    let entries = bucket.iter().map(|entry| (entry, EntryState(entry.state.load(SeqCst))));
    entries.filter(move |(entry, state)| state.kind() == kind && entry.number.load(SeqCst) == number)
}

/// Gives a key that has no entry the one that has been free for longest, in this state.
fn enter(bucket: &[Entry; WAYS], number: u64, new: EntryState, now: Instant) -> Result<(), Option<Instant>> {
    let states = bucket.iter().map(|entry| (entry, EntryState(entry.state.load(SeqCst))));
    let Some((entry, old)) = states.min_by_key(|(_, state)| state.order()).filter(|(_, state)| state.is_free_at(now))
    else {
        let rests = bucket.iter().filter_map(|entry| EntryState(entry.state.load(SeqCst)).free_from());
        return Err(rests.min());
    };
    entry.state.compare_exchange(old.0, EntryState::WRITING.0, SeqCst, SeqCst).map_err(|_| None)?;
    entry.number.store(number, SeqCst);
    entry.state.store(EntryState::entering(new.kind()).0, SeqCst);
    if entries_of(bucket, number, new.kind()).any(|(other, _)| !std::ptr::eq(other, entry)) {
        entry.state.store(EntryState::empty_since(old).0, SeqCst);
        return Err(None);
    }
    entry.state.store(new.0, SeqCst);
    Ok(())
}

/// An instant, rounded up to a multiple of 16 ns; whether a request is in flight until then; the kind of key, 0 for
/// none.
#[derive(Clone, Copy, PartialEq, Eq)]
struct EntryState(u64);

impl EntryState {
    const KIND: u64 = 7;
    const HELD: u64 = 8;
    const FLAGS: u64 = EntryState::KIND | EntryState::HELD;
    /// The latest instant of a claim.
    const LAST: u64 = !EntryState::FLAGS - EntryState::FLAGS - 1;
    /// The number is being written.
    const WRITING: EntryState = EntryState(!EntryState::KIND);

    fn new(until: Instant, kind: u64, is_held: bool) -> EntryState {
        let held = if is_held { EntryState::HELD } else { 0 };
        let instant = until.as_nanos().saturating_add(EntryState::FLAGS) & !EntryState::FLAGS;
        EntryState(instant.min(EntryState::LAST) | held | kind)
    }

    /// Held for a key that may turn out to have another entry; never lapses.
    fn entering(kind: u64) -> EntryState {
        EntryState(EntryState::WRITING.0 | kind)
    }

    /// Free for as long as `old`, with no key.
    fn empty_since(old: EntryState) -> EntryState {
        EntryState(old.0 & !EntryState::FLAGS)
    }

    fn kind(self) -> u64 {
        self.0 & EntryState::KIND
    }

    fn order(self) -> u64 {
        self.0 & !EntryState::FLAGS
    }

    fn is_free_at(self, now: Instant) -> bool {
        self.order() <= now.as_nanos()
    }

    /// `None` for a state that is held.
    fn free_from(self) -> Option<Instant> {
        (self.0 & EntryState::HELD == 0).then_some(Instant::from_nanos(self.order()))
    }
}

#[cfg(test)]
mod tests;
