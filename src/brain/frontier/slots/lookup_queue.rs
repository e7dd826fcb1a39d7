//! Turns at the name servers.
//!
//! Decides: at most `dns.in_flight_max` names are looked up at once. Names that were answered before and new names
//! have separate queues, and each kind leaves a quarter of the slots to the other: known hosts are looked up again
//! however many new names there are. New names get turns, and slots, by the site that linked to them first, because
//! their own sites cost nothing: if a site links to 20,000 domains with silent name servers, all of these wait for
//! that site's turns. Failed and long lookups count against the linking site. Sites with many of them share half of
//! these slots, and one turn in four.
//! A site of names, known or new, and a site that links to names, hold at most [`TIMES_FREE`] times as many slots as
//! are free ([`SiteShares`]), so that they leave slots for others. Names without an answer hold these slots and no
//! fetch slot.
//! Invariants: a host waits in one queue, once; every slot taken is given back.
//! While no name server answers, the caller lets a few lookups begin at a time ([`LookupQueue::limit`]).
//! A crawl that begins may have a million names waiting, so a queue is looked at only if one of its names could have a
//! slot, and at most [`LOOKS_MAX`] sites of it at a time.
//! Limits: the caller bounds hosts. Sites that fall in one of [`SHARE_PLACES`] buckets count as one. URLs found by
//! another shard count as one site's per batch, and so do all URLs that an earlier run found or that waited for room.

use super::site_round_robin::SiteRoundRobin;
use crate::frontier::hosts::LookupRequest;
use crate::frontier::settings::{SHARE_PLACES, TIMES_FREE};
use crate::job::HostId;
use crate::site_shares::SiteShares;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_base::{IntMap, IntSet};
use ringcrawl_url::SiteKey;

/// The hosts whose lookups are in flight, and those that wait.
#[derive(Debug)]
pub struct LookupQueue {
    /// Names that were answered before, by site.
    known: SiteRoundRobin,
    /// New names, by the site that linked to them: those of cheap linkers and of expensive ones.
    new: SiteRoundRobin,
    costly: SiteRoundRobin,
    held: IntMap<Place, HostId>,
    in_flight_max: usize,
    known_held: usize,
    costly_held: usize,
    /// Slots held by sites of names, and by sites that linked to new names.
    shares: SiteShares,
    linkers: SiteShares,
    /// Recent failed lookups, by the linking site.
    vain: Box<[u8]>,
    turns: u64,
    /// How many lookups may begin; `None`: as many as there are slots.
    left: Option<usize>,
    /// The last look found no host that could have a slot, and nothing has changed since.
    is_held_up: bool,
}

/// A lookup in flight.
#[derive(Debug)]
struct Place {
    asked: LookupRequest,
    since: Instant,
    /// Its linker was expensive when it began.
    is_costly: bool,
}

impl LookupQueue {
    /// An empty queue, with room for `in_flight_max` lookups at once.
    pub fn new(in_flight_max: usize) -> LookupQueue {
        LookupQueue {
            known: SiteRoundRobin::default(),
            new: SiteRoundRobin::default(),
            costly: SiteRoundRobin::default(),
            held: IntMap::default(),
            in_flight_max,
            known_held: 0,
            costly_held: 0,
            shares: SiteShares::new(SHARE_PLACES, TIMES_FREE),
            linkers: SiteShares::new(SHARE_PLACES, TIMES_FREE),
            vain: vec![0; SHARE_PLACES].into(),
            turns: 0,
            left: None,
            is_held_up: false,
        }
    }

    /// Sets how many lookups may begin from now on; `None`: as many as there are slots.
    pub fn limit(&mut self, left: Option<usize>) {
        (self.left, self.is_held_up) = (left, false);
    }

    /// Lookups in flight.
    pub fn in_flight(&self) -> usize {
        self.held.len()
    }

    /// Whether a host waits whose turn it may be.
    pub fn is_ready(&self) -> bool {
        let is_empty = self.known.is_empty() && self.new.is_empty() && self.costly.is_empty();
        !self.is_held_up && !is_empty && self.left != Some(0) && self.held.len() < self.in_flight_max
    }

    /// The host whose turn it is; `site_of` gives a host's site.
    pub fn next(&mut self, site_of: impl Fn(HostId) -> SiteKey) -> Option<HostId> {
        if !self.is_ready() {
            return None;
        }
        let mut rows = [&mut self.known, &mut self.new, &mut self.costly].map(std::mem::take);
        let [known, new, costly] = &mut rows;
        let is_new =
            |linker: SiteKey, id: HostId| self.has_place(LookupRequest { site: site_of(id), linker: Some(linker) });
        let is_costly_turn = self.turns.is_multiple_of(COSTLY_TURNS);
        let [first, last] = if is_costly_turn { [costly, new] } else { [new, costly] };
        // Sites that are looked at in vain lose their turns.
        let looks = |has_slot: bool| if has_slot { LOOKS_MAX } else { 0 };
        let new_looks = looks(self.left_to_new() > 0);
        let costly_looks = looks(self.left_to_new() > 0 && self.costly_held < self.costly_max());
        let [first_looks, last_looks] =
            if is_costly_turn { [costly_looks, new_looks] } else { [new_looks, costly_looks] };
        let next = known
            .pop_of_first(looks(self.known_held < self.each_max()), |site, _| {
                self.has_place(LookupRequest { site, linker: None })
            })
            .or_else(|| first.pop_of_first(first_looks, is_new))
            .or_else(|| last.pop_of_first(last_looks, is_new));
        self.turns += u64::from(next.is_some());
        [self.known, self.new, self.costly] = rows;
        self.is_held_up = next.is_none();
        next
    }

    /// Takes a slot at `now` for a lookup of host `id`; returns whether there was one.
    pub fn begin(&mut self, now: Instant, id: HostId, asked: LookupRequest) -> bool {
        if self.left == Some(0) || !self.has_place(asked) {
            return false;
        }
        self.left = self.left.map(|left| left - 1);
        self.shares.changed(asked.site, 0, 1);
        let is_costly = asked.linker.is_some_and(|linker| self.is_costly(linker));
        match asked.linker {
            Some(linker) => self.linkers.changed(linker, 0, 1),
            None => self.known_held += 1,
        }
        self.costly_held += usize::from(is_costly);
        let before = self.held.insert(id, Place { asked, since: now, is_costly });
        assert!(before.is_none(), "host {id} was asked for twice");
        true
    }

    /// Puts host `id` behind the others that wait.
    pub fn wait(&mut self, id: HostId, asked: LookupRequest) {
        match asked.linker {
            None => self.known.push(asked.site, id),
            Some(linker) if self.is_costly(linker) => self.costly.push(linker, id),
            Some(linker) => self.new.push(linker, id),
        }
        // Another host without a slot changes nothing for those that wait.
        self.is_held_up &= !self.has_place(asked);
    }

    /// Hosts that are `leaving` no longer wait; adds those that did to `left`.
    pub fn leave(&mut self, leaving: &IntSet<HostId>, left: &mut IntSet<HostId>) {
        [&mut self.known, &mut self.new, &mut self.costly].into_iter().for_each(|rows| rows.remove(leaving, left));
        self.is_held_up = false;
    }

    /// The lookup of host `id` ended; `is_told` is whether a server answered. `None`: we gave it up ourselves.
    pub fn ended(&mut self, now: Instant, id: HostId, is_told: Option<bool>) {
        let Some(Place { asked, since, is_costly }) = self.held.remove(&id) else {
            panic!("a lookup of host {id} ended that was not in flight")
        };
        self.shares.gave_back(asked.site);
        self.costly_held -= usize::from(is_costly);
        self.is_held_up = false;
        let Some(linker) = asked.linker else {
            self.known_held -= 1;
            return;
        };
        self.linkers.gave_back(linker);
        let Some(is_told) = is_told else { return };
        let was_costly = self.is_costly(linker);
        let vain = &mut self.vain[linker.place_among(SHARE_PLACES)];
        *vain = if is_told && now.since(since) < LONG { vain.saturating_sub(1) } else { vain.saturating_add(VAIN) };
        match (was_costly, self.is_costly(linker)) {
            (false, true) => self.costly.take_over(linker, &mut self.new),
            (true, false) => self.new.take_over(linker, &mut self.costly),
            _ => {}
        }
    }

    /// Whether too many recent lookups for a site's links failed.
    fn is_costly(&self, linker: SiteKey) -> bool {
        self.vain[linker.place_among(SHARE_PLACES)] >= COSTLY
    }

    /// Whether there is a slot for a name.
    fn has_place(&self, LookupRequest { site, linker }: LookupRequest) -> bool {
        let Some(linker) = linker else {
            return self.known_held < self.each_max() && self.shares.may_take(site, self.free() as u64);
        };
        self.shares.may_take(site, self.free() as u64)
            && self.linkers.may_take(linker, self.left_to_new() as u64)
            && (!self.is_costly(linker) || self.costly_held < self.costly_max())
    }

    fn free(&self) -> usize {
        self.in_flight_max.saturating_sub(self.held.len())
    }

    /// Slots that known names may have at most, and new ones.
    fn each_max(&self) -> usize {
        self.in_flight_max - self.in_flight_max / 4
    }

    /// Slots that names of expensive linkers may have.
    fn costly_max(&self) -> usize {
        self.each_max().div_ceil(2)
    }

    /// Slots that new names may still take.
    fn left_to_new(&self) -> usize {
        self.each_max().saturating_sub(self.held.len() - self.known_held).min(self.free())
    }
}

/// Sites of a queue that are looked at for one slot: those behind them are looked at when the next one is free.
const LOOKS_MAX: usize = 1_024;

/// In one of this many turns the first expensive site goes before the others: these may be many, without end.
const COSTLY_TURNS: u64 = 4;
/// A lookup that lasts longer has held a slot for too long, whatever its result.
const LONG: Duration = Duration::from_secs(2);
/// How many found names outweigh one that is not found: a list of links has dead ones, too.
const VAIN: u8 = 4;
/// Failed lookups, less the found names, above which a site is expensive: eight in a row, or more than one in five.
const COSTLY: u8 = 8 * VAIN;

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: u32) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    fn new(of: u32, linker: u32) -> LookupRequest {
        LookupRequest { site: site(of), linker: Some(site(linker)) }
    }

    fn known(of: u32) -> LookupRequest {
        LookupRequest { site: site(of), linker: None }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Begins a lookup, or waits.
    fn ask(lookups: &mut LookupQueue, now: u64, id: HostId, asked: LookupRequest) -> bool {
        let has_begun = lookups.begin(at(now), id, asked);
        if !has_begun {
            lookups.wait(id, asked);
        }
        has_begun
    }

    /// Names of one domain get no answer: others are looked up all the same.
    #[test]
    fn one_domain_leaves_places_for_others() {
        let mut lookups = LookupQueue::new(16);
        // Every site links to it.
        let started = (0..40_000).filter(|id| ask(&mut lookups, 0, *id, new(0, 10 + *id % 1_000))).count();
        assert_eq!((started, lookups.next(|_| site(0)), lookups.is_ready()), (12, None, false), "a quarter is left");
        assert!((1..4).all(|number| ask(&mut lookups, 0, 100_000 + number, known(number))));
        assert!(ask(&mut lookups, 0, 100_004, known(4)) && !ask(&mut lookups, 0, 100_005, known(5)), "nothing is left");
        // A slot is free, but not for the domain, which waits with 40,000 names.
        lookups.ended(at(1), 100_001, Some(true));
        assert_eq!(lookups.next(|_| site(0)), Some(100_005));
        assert!(lookups.begin(at(1), 100_005, known(5)));
        assert_eq!((lookups.in_flight(), lookups.next(|_| site(0))), (16, None));
    }

    /// While no name server answers, a few names are looked up at a time, known ones first.
    #[test]
    fn no_more_begin_than_are_let() {
        let mut lookups = LookupQueue::new(16);
        lookups.limit(Some(1));
        assert!(ask(&mut lookups, 0, 1, new(1, 10)) && !ask(&mut lookups, 0, 2, new(2, 10)));
        assert!(!ask(&mut lookups, 0, 3, known(3)) && !lookups.is_ready());
        lookups.limit(Some(1));
        assert_eq!(lookups.next(site), Some(3));
        assert!(lookups.begin(at(0), 3, known(3)));
        assert_eq!((lookups.is_ready(), lookups.next(site)), (false, None));
        lookups.limit(None);
        assert_eq!(lookups.next(site), Some(2));
    }

    /// A page links to thousands of domains, each a site of its own, and their name servers are silent.
    #[test]
    fn who_links_to_silent_domains_waits_for_its_own_turns() {
        let mut lookups = LookupQueue::new(256);
        let (attacker, honest) = (1, 2);
        let started = (10..20_010).filter(|id| ask(&mut lookups, 0, *id, new(*id, attacker))).count();
        assert_eq!(started, 144, "three quarters of what is left to new names");
        assert!((30_000..30_020).all(|id| ask(&mut lookups, 0, id, new(id, honest))), "others have the rest");
        assert!((40_000..40_064).all(|id| ask(&mut lookups, 0, id, known(id))), "and known hosts a quarter of all");
        (30_000..30_020).for_each(|id| lookups.ended(at(0), id, Some(true)));
        (40_000..40_064).for_each(|id| lookups.ended(at(0), id, Some(true)));
        // They time out, and the next ones are looked up: these share half of the slots.
        for round in 1..20 {
            let held: Vec<HostId> = lookups.held.keys().copied().collect();
            held.into_iter().for_each(|id| lookups.ended(at(5 * round), id, Some(false)));
            while let Some(id) = lookups.next(site) {
                assert!(lookups.begin(at(5 * round), id, new(id, attacker)));
            }
            assert_eq!(lookups.in_flight(), 96);
        }
        // A second such site finds no more slots taken than that.
        let started = (50_000..60_000).filter(|id| ask(&mut lookups, 100, *id, new(*id, 3))).count();
        assert_eq!(started, 72);
        let held: Vec<HostId> = lookups.held.keys().copied().filter(|id| *id >= 50_000).collect();
        held.into_iter().for_each(|id| lookups.ended(at(105), id, Some(false)));
        assert_eq!((lookups.next(site), lookups.in_flight()), (None, 96), "half is all that both have");
        assert!((30_000..30_060).all(|id| ask(&mut lookups, 105, id, new(id, honest))));
    }

    /// Errors that come at once also cost a share, and so do late answers.
    #[test]
    fn what_is_costly_and_what_is_not() {
        for (lasts, is_told, is_costly) in [(0, false, true), (4, true, true), (5, false, true), (1, true, false)] {
            let mut lookups = LookupQueue::new(64);
            for id in 0..8 {
                assert!(lookups.begin(at(0), id, new(100 + id, 1)));
                lookups.ended(at(lasts), id, Some(is_told));
            }
            assert_eq!(lookups.is_costly(site(1)), is_costly, "{lasts} s, {is_told}");
            // A site that links to existing names is soon trusted again.
            for id in 0..32 {
                assert!(lookups.begin(at(10), id, new(200 + id, 1)));
                lookups.ended(at(10), id, Some(true));
            }
            assert!(!lookups.is_costly(site(1)));
        }
        // One name in ten is dead.
        let mut lookups = LookupQueue::new(64);
        for id in 0..1_000 {
            assert!(lookups.begin(at(0), id, new(100 + id, 1)));
            lookups.ended(at(1), id, Some(id % 10 != 0));
            assert!(!lookups.is_costly(site(1)), "after {id}");
        }
    }

    /// Known hosts whose own name servers are silent leave slots to new names.
    #[test]
    fn known_names_leave_places_for_new_ones() {
        let mut lookups = LookupQueue::new(16);
        let started = (0..1_000).filter(|id| ask(&mut lookups, 0, *id, known(*id))).count();
        assert_eq!(started, 12);
        assert!(ask(&mut lookups, 0, 2_000, new(2_000, 1)));
        lookups.ended(at(5), 0, Some(false));
        assert_eq!(lookups.next(site), Some(12), "known ones first");
    }

    /// A list of dead links waits longer, but not forever.
    #[test]
    fn costly_sites_have_turns_too() {
        let mut lookups = LookupQueue::new(1);
        for id in 0..8 {
            assert!(lookups.begin(at(0), id, new(id, 1)));
            lookups.ended(at(5), id, Some(false));
        }
        assert!(ask(&mut lookups, 5, 100, new(100, 2)));
        (200..400).for_each(|id| assert!(!ask(&mut lookups, 5, id, new(id, id))));
        (1_000..1_100).for_each(|id| assert!(!ask(&mut lookups, 5, id, new(id, 1))));
        let mut last = 100;
        let mut had = |_| {
            lookups.ended(at(6), last, Some(last < 1_000));
            last = lookups.next(site).expect("somebody");
            assert!(lookups.begin(at(6), last, new(last, if last < 1_000 { last } else { 1 })));
            last
        };
        let costly = (0..40).map(&mut had).filter(|id| *id >= 1_000).count();
        assert_eq!(costly, 10);
    }

    /// A million names may wait: what comes to them, and what does not help them, costs the same for few and for many.
    #[test]
    fn who_waits_is_not_looked_at_for_nothing() {
        let mut lookups = LookupQueue::new(64);
        let begun = (0..20_000).filter(|id| ask(&mut lookups, 0, *id, new(*id, 30_000 + *id))).count();
        assert_eq!(begun, 48, "a quarter is left to known names");
        let looks = std::cell::Cell::new(0);
        let next = |lookups: &mut LookupQueue| {
            lookups.next(|id| {
                looks.set(looks.get() + 1);
                site(id)
            })
        };
        for id in 100_000..101_000 {
            assert!(!ask(&mut lookups, 0, id, new(id, id)));
            assert_eq!(next(&mut lookups), None);
        }
        for id in 200_000..201_000 {
            assert!(ask(&mut lookups, 0, id, known(id)));
            lookups.ended(at(0), id, Some(true));
            assert_eq!(next(&mut lookups), None, "a slot for known names is none for new ones");
        }
        assert_eq!(looks.get(), 0);
        // Twenty thousand names wait whose domain has its share, and behind them one that has none.
        let mut lookups = LookupQueue::new(16);
        let begun = (0..20_000).filter(|id| ask(&mut lookups, 0, *id, new(0, 30_000 + *id))).count();
        assert_eq!(begun, 12);
        assert!((100_000..100_004).all(|id| ask(&mut lookups, 0, id, known(id))));
        assert!(!ask(&mut lookups, 0, 400_000, new(1, 400_000)));
        lookups.ended(at(1), 0, Some(true));
        let mut calls = 0;
        let found = std::iter::from_fn(|| {
            calls += 1;
            lookups.limit(None);
            Some(lookups.next(|id| site(u32::from(id == 400_000))))
        });
        assert_eq!(found.take(30).find(Option::is_some), Some(Some(400_000)));
        assert_eq!(calls, 20_000_usize.div_ceil(LOOKS_MAX), "a part of them at a time");
    }

    /// While known names have all that they may have, no look takes a site its turn.
    #[test]
    fn known_sites_keep_their_order_whatever_their_number() {
        let sites = LOOKS_MAX as HostId + 1;
        let mut lookups = LookupQueue::new(16);
        let begun = (0..12 + sites).filter(|id| ask(&mut lookups, 0, *id, known(*id))).count();
        assert_eq!(begun, 12);
        let mut last = 0;
        for id in 12..12 + sites {
            assert_eq!(lookups.next(site), None);
            lookups.ended(at(1), last, Some(true));
            assert_eq!(lookups.next(site), Some(id));
            assert!(lookups.begin(at(1), id, known(id)));
            last = id;
        }
    }

    #[test]
    fn who_waits_can_leave() {
        let mut lookups = LookupQueue::new(1);
        assert!(ask(&mut lookups, 0, 1, new(1, 9)));
        assert!(!ask(&mut lookups, 0, 2, new(2, 9)) && !ask(&mut lookups, 0, 3, known(3)));
        let (leaving, mut left) = (IntSet::from_iter([2, 3, 7]), IntSet::default());
        lookups.leave(&leaving, &mut left);
        assert_eq!(left, IntSet::from_iter([2, 3]));
        lookups.ended(at(1), 1, Some(true));
        assert_eq!(lookups.next(site), None);
    }
}
