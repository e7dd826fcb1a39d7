//! Hosts that wait for a turn: at an address, of their site, or in an operator's group.
//!
//! Decides: the hosts of one [`ClaimKey`] wait in a queue (a row) that serves sites in turn ([`SiteRoundRobin`]): a
//! site that points many names at another's address gets one turn for each turn of the other. Only one host of a row
//! looks at the ledger, each time that the calendar says so, however many wait. A called host whose claim is refused
//! keeps its place at the front. A host that arrives while others wait queues behind them and does not look at all. A
//! called host keeps its turn for later if it must first look its name up, if its site has too many fetches in flight,
//! or if another claim that it needs at the same time is refused; others do not wait for it. The reason: a request
//! needs up to four claims at once, and a host that waits for the last must not lose the others each time. If the
//! called host waits in another row, the next host is called at once, but only [`CALLS_AT_ONCE_MAX`] times per look:
//! otherwise hosts of one site at one address would move from row to row all together, for each request.
//! A slow site needs a slot for slow fetches and the address at the same time, and both are taken when many want
//! them. So one host of an address that gets such a slot and finds the address taken keeps the slot until its turn
//! there.
//! During the rest after a slow turn at an address ([`super::slow_turns`]), every [`STRANGERS_TURNS`]th turn goes to
//! a site that is new there and is not slow elsewhere.
//! In the row of a site, turns rotate by the label below its name: anyone may link to any number of names there.
//! Newcomers, hosts that have answered little yet, wait separately and get every [`STRANGERS_TURNS`]th turn. After a
//! slow turn of a newcomer they rest, provided known hosts have had turns there lately ([`KNOWN_LATELY`]): as long as
//! a turn that brought a page, nine times as long as one that did not.
//! Across shards: each shard sends only the host whose turn it is, and the ledger's `claim` decides between these
//! hosts. All waiting hosts look at the instant from which the turn is free, so shards share an address about evenly,
//! but nothing guarantees it.
//! Invariants: while hosts wait for a key, exactly one instant is noted in the calendar for it. A host waits in at
//! most one row.

use std::collections::HashMap;

use super::fetch_slots::Awaited;
use super::site_round_robin::SiteRoundRobin;
use super::slow_turns::SlowTurns;
use crate::job::HostId;
use crate::politeness::ClaimKey;
use ringcrawl_base::IntSet;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_url::SiteKey;

/// The rows.
#[derive(Debug, Default)]
pub struct TurnQueues {
    rows: HashMap<ClaimKey, KeyQueue>,
    /// Hosts whose turns have come but are not used yet.
    called: HashMap<HostId, Calls>,
    /// Hosts of slow sites that keep a slot while they wait for an address.
    keepers: HashMap<ClaimKey, HostId>,
    slow: SlowTurns,
}

/// A host at a key.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    /// The host.
    pub id: HostId,
    /// The unit whose turn its turn is: its site, or in the row of its site all hosts below one label.
    pub of: SiteKey,
    /// In the row of its site: it has answered little yet.
    pub is_newcomer: bool,
}

/// The hosts that wait for one key.
#[derive(Debug)]
struct KeyQueue {
    waiting: SiteRoundRobin,
    /// In the row of a site: newcomers.
    newcomers: SiteRoundRobin,
    /// Newcomers rest until then.
    newcomers_rest_until: Instant,
    /// When a known host was last called or had a turn, since the row began.
    known_at: Option<Instant>,
    /// The host that was called and has not shown up yet.
    called: Option<HostId>,
    /// The instant in the calendar; other instants belong to a row that is gone.
    look_at: Instant,
    /// Whether that instant is early, for the next host.
    goes_on: bool,
    /// Calls since the last look at its regular time.
    at_once: u8,
    /// Turns since the last newcomer's, or during rests the last stranger's.
    known_turns: u8,
}

impl KeyQueue {
    fn new(look_at: Instant) -> KeyQueue {
        let (waiting, newcomers) = (SiteRoundRobin::default(), SiteRoundRobin::default());
        let (newcomers_rest_until, known_at) = (Instant::ZERO, None);
        let (called, goes_on, at_once, known_turns) = (None, false, 0, 0);
        KeyQueue { waiting, newcomers, newcomers_rest_until, known_at, called, look_at, goes_on, at_once, known_turns }
    }

    fn newcomers_rest(&self, now: Instant) -> bool {
        now < self.newcomers_rest_until && self.known_at.is_some_and(|known_at| now < known_at + KNOWN_LATELY)
    }

    fn queue_of(&mut self, guest: Guest) -> &mut SiteRoundRobin {
        if guest.is_newcomer { &mut self.newcomers } else { &mut self.waiting }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.newcomers.is_empty()
    }
}

/// The turns of a host that have come, at most one of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Calls([Option<Called>; KINDS]);

/// A turn that has come.
#[derive(Clone, Copy, Debug)]
struct Called {
    /// Of this key.
    to: ClaimKey,
    /// It came during a rest, as a stranger's turn.
    is_stranger: bool,
}

impl Calls {
    fn iter(&self) -> impl Iterator<Item = Called> {
        self.0.into_iter().flatten()
    }

    fn is_to(&self, key: ClaimKey) -> bool {
        self.iter().any(|called| called.to == key)
    }

    fn of_kind(&mut self, key: ClaimKey) -> &mut Option<Called> {
        let [address, site, group, host] = &mut self.0;
        match key {
            ClaimKey::Ipv4(_) | ClaimKey::Ipv6Net(_) => address,
            ClaimKey::Site(_) => site,
            ClaimKey::Group(_) => group,
            ClaimKey::Host(_) => host,
        }
    }
}

/// The result of a calendar entry for a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// It is this host's turn.
    Host(HostId),
    /// No host can be called now; the row must be looked at again.
    Later,
    /// No host waits.
    NoHost,
}

impl TurnQueues {
    /// Whether a host may look at the ledger: no host waits, or its turn has come.
    pub fn may_look(&self, now: Instant, key: ClaimKey, guest: Guest, is_slow: bool) -> bool {
        let row = self.rows.get(&key);
        // This includes a host that was called before the rest began.
        let must_rest = match key {
            ClaimKey::Site(_) => guest.is_newcomer && row.is_some_and(|row| row.newcomers_rest(now)),
            _ => self.slow.must_rest(now, key, guest.of, is_slow),
        };
        // While newcomers rest, a known host does not queue behind them.
        let passes = |row: &KeyQueue| {
            row.newcomers_rest(now) && row.waiting.is_empty() && row.called.is_none() && !guest.is_newcomer
        };
        let is_called = || self.called.get(&guest.id).is_some_and(|calls| calls.is_to(key));
        !must_rest && (row.is_none_or(passes) || is_called())
    }

    /// Keeps a slot for a host of a slow site that waits for an address, unless another host does or slow sites rest
    /// there.
    pub fn keep_place(&mut self, now: Instant, key: ClaimKey, (id, site): (HostId, SiteKey)) {
        if !self.slow.must_rest(now, key, site, true) {
            self.keepers.entry(key).or_insert(id);
        }
    }

    /// The number of slots kept.
    pub fn places_kept(&self) -> usize {
        self.keepers.len()
    }

    /// Whether a host keeps a slot until it is called to `key`.
    pub fn keeps_place(&self, key: ClaimKey, id: HostId) -> bool {
        self.keepers.get(&key) == Some(&id)
    }

    /// Whether a host of another site than `site` waits for `key`.
    pub fn is_wanted_by_another(&self, key: ClaimKey, site: SiteKey) -> bool {
        self.rows.get(&key).is_some_and(|row| row.waiting.has_another(site))
    }

    /// Whether another host than `id` waits for `key`.
    pub fn is_wanted(&self, key: ClaimKey, id: HostId) -> bool {
        self.rows.get(&key).is_some_and(|row| !row.is_empty() || row.called.is_some_and(|called| called != id))
    }

    /// Whether another site than `site` waits for one of the keys that a request needs, and what is known of `site`
    /// there. Hosts of the same site do not count as others.
    pub fn awaited_by_another(&self, keys: impl Iterator<Item = ClaimKey>, site: SiteKey) -> Option<Awaited> {
        keys.filter(|key| !matches!(key, ClaimKey::Site(_))).filter_map(|key| self.awaited_at(key, site)).max()
    }

    fn awaited_at(&self, key: ClaimKey, site: SiteKey) -> Option<Awaited> {
        let is_known = self.slow.at(key).is_none_or(|slow| slow.knows(site));
        let awaited = if is_known { Awaited::AsKnown } else { Awaited::AsStranger };
        self.is_wanted_by_another(key, site).then_some(awaited)
    }

    /// A turn of a host of the site `key` has ended: a slow turn of a newcomer, or another host's turn. `slow` has
    /// how long it `lasted` and whether it brought a page (`fine`).
    pub fn site_turn_ended(&mut self, now: Instant, key: ClaimKey, guest: Guest, slow: Option<(Duration, bool)>) {
        // Most sites have one host, for which no other waits.
        let Some(row) = self.rows.get_mut(&key) else { return };
        match slow {
            Some((lasted, is_fine)) if guest.is_newcomer => {
                let rest = if is_fine { lasted } else { lasted * REST_TURNS };
                row.newcomers_rest_until = (row.newcomers_rest_until.max(now) + rest).min(now + REST_MAX);
            }
            Some(_) | None if guest.is_newcomer => {}
            Some(_) | None => row.known_at = Some(now),
        }
    }

    /// A fast turn of `site` at an address or a group has ended.
    pub fn fast_turn_ended(&mut self, now: Instant, key: ClaimKey, site: SiteKey) {
        if self.slow.fast_turn_ended(now, key, site) {
            // A host that keeps a slot for it would do so in vain.
            self.keepers.remove(&key);
        }
    }

    /// A slow turn of `site` at an address or a group has ended, after it `lasted` this long.
    pub fn slow_turn_ended(&mut self, now: Instant, key: ClaimKey, site: SiteKey, lasted: Duration) {
        if self.slow.slow_turn_ended(now, key, site, lasted) {
            self.keepers.remove(&key);
        }
    }

    fn gives_place_back(&mut self, key: ClaimKey, id: HostId) {
        if self.keepers.get(&key) == Some(&id) {
            self.keepers.remove(&key);
        }
    }

    /// Puts a host into the row for `key`: behind the others, or before them if its turn had come and is taken.
    /// Returns whether `look_at` must go into the calendar.
    pub fn wait(&mut self, key: ClaimKey, guest: Guest, look_at: Instant) -> bool {
        let Guest { id, of, .. } = guest;
        let called = self.take_call(key, id);
        let is_new = !self.rows.contains_key(&key);
        let row = self.rows.entry(key).or_insert_with(|| KeyQueue::new(look_at));
        let Some(Called { is_stranger, .. }) = called else {
            row.queue_of(guest).push(of, id);
            return is_new;
        };
        row.queue_of(guest).give_back_turn(of, id);
        // If the host looked its name up meanwhile, the row does not wait for it.
        let is_awaited = row.called.take_if(|called| *called == id).is_some();
        if is_awaited {
            row.look_at = look_at;
            if is_stranger {
                row.known_turns = STRANGERS_TURNS - 1;
            }
        }
        is_new || is_awaited
    }

    /// Hosts that are `leaving` no longer wait for `key` or keep a slot for it; adds those that waited there to
    /// `left`. A row that this empties ends at its instant in the calendar.
    pub fn leave(&mut self, key: ClaimKey, leaving: &IntSet<HostId>, left: &mut IntSet<HostId>) {
        let Some(row) = self.rows.get_mut(&key) else { return };
        let mut from_here = IntSet::default();
        row.waiting.remove(leaving, &mut from_here);
        row.newcomers.remove(leaving, &mut from_here);
        from_here.iter().for_each(|id| self.gives_place_back(key, *id));
        left.extend(from_here);
    }

    /// Takes the host's turn of this key, if it has come. A turn of another key of the same kind is lost: the host
    /// has moved.
    fn take_call(&mut self, key: ClaimKey, id: HostId) -> Option<Called> {
        let calls = self.called.get_mut(&id)?;
        let called = calls.of_kind(key).take();
        if calls.iter().next().is_none() {
            self.called.remove(&id);
        }
        if let Some(other) = called.filter(|called| called.to != key) {
            if let Some(row) = self.rows.get_mut(&other.to) {
                row.called.take_if(|called| *called == id);
            }
            self.gives_place_back(other.to, id);
        }
        called.filter(|called| called.to == key)
    }

    /// Calls the next host that may fetch, as noted for `noted`; the calendar gets `look_at` while a host waits.
    pub fn call(
        &mut self,
        key: ClaimKey,
        [now, noted, look_at]: [Instant; 3],
        may_fetch: impl Fn(HostId) -> bool,
        is_slow: impl Fn(HostId) -> bool,
    ) -> Call {
        let rest = self.slow.rest(now, key);
        let Some(row) = self.rows.get_mut(&key).filter(|row| row.look_at == noted) else { return Call::NoHost };
        if row.called.is_none() && row.is_empty() {
            self.rows.remove(&key);
            return Call::NoHost;
        }
        row.look_at = look_at;
        if !std::mem::take(&mut row.goes_on) {
            row.at_once = 0;
        }
        if row.called.is_some() {
            return Call::Later;
        }
        let is_due = row.known_turns >= STRANGERS_TURNS - 1;
        let is_stranger;
        let next = match rest {
            None => {
                let may_come = !row.newcomers_rest(now);
                let mut pop_newcomer = |is_its_turn: bool| {
                    (may_come && is_its_turn)
                        .then(|| row.newcomers.pop_of_first(usize::MAX, |_, id| may_fetch(id)))
                        .flatten()
                };
                let due = pop_newcomer(is_due);
                is_stranger = due.is_some();
                let known =
                    if is_stranger { None } else { row.waiting.pop_of_first(usize::MAX, |_, id| may_fetch(id)) };
                row.known_at = known.map(|_| now).or(row.known_at);
                due.or(known).or_else(|| pop_newcomer(true))
            }
            Some(slow) => {
                let is_known = |site, _| slow.was_fast(site) == Some(true);
                let is_new = |site, id| slow.was_fast(site).is_none() && !is_slow(id);
                let mut pop = |is_one: &dyn Fn(SiteKey, HostId) -> bool| {
                    row.waiting.pop_of_first(usize::MAX, |site, id| may_fetch(id) && is_one(site, id))
                };
                let due = if is_due { pop(&is_new) } else { None };
                is_stranger = due.is_some();
                let next = due.or_else(|| pop(&is_known)).or_else(|| pop(&is_new));
                next.or_else(|| if slow.is_wanted() { None } else { pop(&|_, _| true) })
            }
        };
        let Some(id) = next else { return Call::Later };
        if is_stranger {
            row.known_turns = 0;
        }
        row.called = Some(id);
        row.at_once = row.at_once.saturating_add(1);
        *self.called.entry(id).or_default().of_kind(key) = Some(Called { to: key, is_stranger });
        Call::Host(id)
    }

    /// The host that was called to `key` and has not shown up.
    pub fn awaited(&self, key: ClaimKey) -> Option<HostId> {
        self.rows.get(&key)?.called
    }

    /// A host that may have been called cannot show up soon: others do not wait for it.
    pub fn is_late(&mut self, id: HostId) {
        for called in self.calls(id).iter() {
            self.is_not_awaited(called.to, id);
        }
    }

    /// Returns whether the row waited for it.
    fn is_not_awaited(&mut self, key: ClaimKey, id: HostId) -> bool {
        self.rows.get_mut(&key).is_some_and(|row| row.called.take_if(|called| *called == id).is_some())
    }

    /// A called host must first look its name up, or waits for another turn: it keeps its turns, but no slot.
    pub fn looks_up(&mut self, id: HostId) {
        self.is_late(id);
        self.calls(id).iter().for_each(|called| self.gives_place_back(called.to, id));
    }

    /// A called host waits in another row: the hosts that waited for it go on at once, within the limit on calls. The
    /// calendar gets `now` for each returned key.
    pub fn waits_elsewhere(&mut self, now: Instant, id: HostId) -> [Option<ClaimKey>; KINDS] {
        self.calls(id).0.map(|called| {
            let key = called?.to;
            if !self.is_not_awaited(key, id) {
                return None;
            }
            let row = self.rows.get_mut(&key).filter(|row| row.at_once < CALLS_AT_ONCE_MAX)?;
            (row.look_at, row.goes_on) = (now, true);
            Some(key)
        })
    }

    /// A host that may have been called has used its turns, or does without them.
    pub fn had_turn(&mut self, id: HostId) {
        self.is_late(id);
        for called in self.called.remove(&id).unwrap_or_default().iter() {
            self.gives_place_back(called.to, id);
            if let Some(row) = self.rows.get_mut(&called.to).filter(|_| !called.is_stranger) {
                row.known_turns = row.known_turns.saturating_add(1);
            }
        }
    }

    /// Whether a host was called and has not used its turn.
    pub fn is_called(&self, id: HostId) -> bool {
        self.called.contains_key(&id)
    }

    fn calls(&self, id: HostId) -> Calls {
        self.called.get(&id).copied().unwrap_or_default()
    }
}

/// Kinds of keys at which a request needs a turn.
const KINDS: usize = 4;
/// Calls of one row before it waits for its next look.
const CALLS_AT_ONCE_MAX: u8 = 8;
/// During a rest, one of this many turns goes to a site that is new there.
const STRANGERS_TURNS: u8 = 4;
/// After a slow turn that brought no page, a site's newcomers rest for this many times its length: a linker can add
/// any number of dead names. Most slow hosts that answer mean no harm.
const REST_TURNS: u32 = 9;
/// Upper bound on one rest of newcomers.
const REST_MAX: Duration = Duration::from_secs(3_600);
/// Newcomers rest only if a known host had a turn within this time.
const KNOWN_LATELY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
