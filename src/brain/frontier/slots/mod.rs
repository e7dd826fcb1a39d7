//! Whose turn it is: hosts that are ready, that wait for the clock, for a turn, for the name servers or for a slot.
//!
//! Decides: a host that may continue at an instant is in the [`calendar`]; one that may continue now is among the
//! [`ready_hosts`]; one whose turn at an address, of its site or of its operator is taken is parked in that key's row
//! ([`turn_queues`]); one that waits for the name servers is in the [`lookup_queue`]; and a site has its share of the
//! slots for fetches ([`fetch_slots`]). Here these five meet: a due host becomes ready; a row is looked at when the
//! calendar says so, and its first host is called; the end of a fetch says something about its site and its turns.
//! Invariants: a parked host is in exactly one row; a row that is not empty has an instant in the calendar.
//! Leaves to others: what a host does with its turn ([`super::turn`]), whether a turn is free (the [`Ledger`]).

mod calendar;
mod fetch_slots;
mod level_turns;
mod lookup_queue;
mod ready_hosts;
mod site_round_robin;
mod slow_turns;
mod speed_history;
mod turn_queues;

use std::collections::BTreeSet;

use crate::frontier::hosts::{Host, HostState, HostTable, Leave, wait_for_claim};
use crate::frontier::queue::levels;
use crate::frontier::settings::Settings;
use crate::job::{FetchJob, HostId, JobKind};
use crate::politeness::{ClaimKey, Claims, Ledger, RefusedClaim};
use calendar::{Calendar, Event};
use fetch_slots::{CUT_SHORT_AFTER, FetchSlots, FetchSpeed};
use lookup_queue::LookupQueue;
use ready_hosts::ReadyHosts;
use ringcrawl_base::IntSet;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_url::SiteKey;
use turn_queues::{Call, Guest, TurnQueues};

/// All places where hosts wait for their turn.
#[derive(Debug)]
pub struct Slots {
    ready: ReadyHosts,
    calendar: Calendar,
    turn_queues: TurnQueues,
    /// The turns at the name servers.
    pub(crate) lookups: LookupQueue,
    pub(crate) fetch_slots: FetchSlots,
}

impl Slots {
    /// Nothing waits, and all slots are free.
    pub fn new(settings: &Settings) -> Slots {
        Slots {
            ready: ReadyHosts::new(levels(settings.order)),
            calendar: Calendar::default(),
            turn_queues: TurnQueues::default(),
            lookups: LookupQueue::new(settings.resolving_max),
            fetch_slots: FetchSlots::new(settings.in_flight_max),
        }
    }

    /// When a host may continue; `Instant::ZERO` for now, `None` if none waits for the clock.
    pub fn next_due(&self) -> Option<Instant> {
        if self.lookups.is_ready() || self.ready.is_ready() { Some(Instant::ZERO) } else { self.calendar.next() }
    }

    /// Makes a host ready, now or at `at`.
    pub fn schedule(&mut self, hosts: &mut HostTable, id: HostId, now: Instant, at: Instant) {
        if at <= now {
            self.make_ready(hosts, id);
        } else {
            hosts.set_state(id, HostState::Waiting(at));
            self.calendar.push(at, Event::Host(id));
        }
    }

    /// A host has nothing to do before `at`; then it may be forgotten.
    pub fn let_rest(&mut self, hosts: &mut HostTable, id: HostId, at: Instant) {
        hosts.set_state(id, HostState::Resting(at));
        self.calendar.push(at, Event::Host(id));
    }

    /// Makes a host ready, behind others.
    pub fn make_ready(&mut self, hosts: &mut HostTable, id: HostId) {
        hosts.set_state(id, HostState::Ready);
        let (site, level) = (hosts[id].site, hosts[id].backlog.level());
        self.ready.push(site, id, level, self.fetch_slots.is_slow(site));
    }

    /// Makes a host ready whose name was looked up: behind a long queue of hosts its answer would expire before each
    /// turn, so it goes before all others.
    pub fn make_answered_ready(&mut self, hosts: &mut HostTable, id: HostId) {
        hosts.set_state(id, HostState::Ready);
        let site = hosts[id].site;
        self.ready.push_answered(site, id, self.fetch_slots.is_slow(site));
    }

    /// Moves what is due into the queue of ready hosts.
    pub fn wake(&mut self, now: Instant, hosts: &mut HostTable, settings: &Settings) {
        // Thousands may have asked for a rest until the same instant.
        for _ in 0..WAKES_MAX {
            let Some((at, event)) = self.calendar.pop(now) else { return };
            match event {
                Event::Host(id) => {
                    // A host that was scheduled again meanwhile ignores its old entry.
                    let state = hosts[id].state();
                    if matches!(state, HostState::Waiting(noted) | HostState::Resting(noted) if noted == at) {
                        self.make_ready(hosts, id);
                    }
                }
                Event::Turn(key) => self.call_to(key, [now, at], hosts, settings),
            }
        }
    }

    /// The host whose turn it is. Those that wait for a name go first: a slot at the name servers is free, which is
    /// rare when they wait.
    pub fn next(&mut self, hosts: &HostTable) -> Option<HostId> {
        self.lookups.next(|id| hosts[id].site).or_else(|| self.next_ready())
    }

    fn next_ready(&mut self) -> Option<HostId> {
        let may_slow_take = self.may_slow_take();
        let Slots { ready, fetch_slots, .. } = self;
        let (may_take, is_slow) = (|site| fetch_slots.may_take(site), |site| fetch_slots.is_slow(site));
        ready.pop_keeper(may_take).or_else(|| ready.pop_of(may_take, is_slow, may_slow_take))
    }

    /// Whether a slot is available to a slow site; some slots are kept.
    fn may_slow_take(&self) -> bool {
        self.fetch_slots.may_slow_take(self.turn_queues.places_kept())
    }

    /// Moves the first ready host for which `is_better` holds to the front, among this many; returns whether there is
    /// one.
    pub fn prefer(&mut self, count: usize, is_better: impl Fn(HostId) -> bool) -> bool {
        self.ready.prefer(count, is_better)
    }

    /// A host has had its turn, with a job of this kind or none: notes whether it has used the turns to which it was
    /// called, or does without them.
    pub fn had_turn(&mut self, hosts: &HostTable, id: HostId, job: Option<JobKind>) {
        if !self.turn_queues.is_called(id) {
            return;
        }
        match (hosts[id].state(), job) {
            // A long run of URLs that robots.txt forbids: it continues with them soon, unless it waits among slow
            // sites.
            (HostState::Ready, None) if !self.fetch_slots.is_slow(hosts[id].site) => {}
            (HostState::Ready | HostState::Parked, None) | (_, Some(JobKind::Resolve)) => self.turn_queues.looks_up(id),
            _ => self.turn_queues.had_turn(id),
        }
    }

    /// Calls the next host that waits for `key`, as the calendar noted for `noted`.
    fn call_to(&mut self, key: ClaimKey, [now, noted]: [Instant; 2], hosts: &mut HostTable, settings: &Settings) {
        let may_fetch = |id: HostId| self.fetch_slots.may_take(hosts[id].site);
        let is_slow = |id: HostId| self.fetch_slots.is_slow(hosts[id].site);
        if let Some(id) = self.turn_queues.awaited(key) {
            // It may have become slow since it was called, and wait for a slot.
            if !may_fetch(id) || is_slow(id) && !self.turn_queues.keeps_place(key, id) {
                self.turn_queues.is_late(id);
            }
        }
        let look_at = now + look_pause(key, settings);
        let call = self.turn_queues.call(key, [now, noted, look_at], may_fetch, is_slow);
        if call != Call::NoHost {
            self.calendar.push(look_at, Event::Turn(key));
        }
        if let Call::Host(id) = call {
            // It has waited, and others wait behind it.
            hosts[id].leave = Some(Leave::over(now));
            if self.turn_queues.keeps_place(key, id) {
                hosts.set_state(id, HostState::Ready);
                self.ready.push_keeper(hosts[id].site, id);
                return;
            }
            self.make_ready(hosts, id);
            if self.fetch_slots.is_slow(hosts[id].site) {
                // It keeps its turn, and may have to wait for it.
                self.turn_queues.is_late(id);
            }
        }
    }

    /// Parks a host in the row of a taken turn. Rows where it was called continue without it.
    pub fn park(
        &mut self,
        now: Instant,
        hosts: &mut HostTable,
        id: HostId,
        RefusedClaim { key, until }: RefusedClaim,
        settings: &Settings,
    ) {
        hosts.park(id, wait_for_claim(key));
        let host = &hosts[id];
        let is_address = matches!(key, ClaimKey::Ipv4(_) | ClaimKey::Ipv6Net(_));
        if is_address && self.fetch_slots.is_slow(host.site) && self.may_slow_take() {
            self.turn_queues.keep_place(now, key, (id, host.site));
        }
        let look_at = until.unwrap_or(now + look_pause(key, settings));
        if self.turn_queues.wait(key, guest_at(key, id, host, settings), look_at) {
            self.calendar.push(look_at, Event::Turn(key));
        }
        for other in self.turn_queues.waits_elsewhere(now, id).into_iter().flatten() {
            self.calendar.push(now, Event::Turn(other));
        }
    }

    /// A host waits for the name servers.
    pub fn park_for_name(&mut self, hosts: &mut HostTable, id: HostId) {
        self.lookups.wait(id, hosts[id].asked());
        hosts.set_state(id, HostState::Parked);
    }

    /// Whether another host waits for a turn.
    pub fn is_wanted(&self, key: ClaimKey, id: HostId) -> bool {
        self.turn_queues.is_wanted(key, id)
    }

    /// How long a request with these turns may last, at most `deadline`.
    pub fn time_for(&self, id: HostId, host: &Host, claims: &Claims, deadline: Duration) -> Duration {
        let awaited = self.turn_queues.awaited_by_another(claims.keys(), host.site);
        let lasts_max = self.fetch_slots.deadline(host.site, deadline, awaited);
        let is_site_wanted = || claims.keys().any(|key| matches!(key, ClaimKey::Site(_)) && self.is_wanted(key, id));
        if host.is_first_met() && is_site_wanted() { lasts_max.min(CUT_SHORT_AFTER) } else { lasts_max }
    }

    /// Claims turns for a request of a host until `hold_until`, unless one is taken or others are before it.
    pub fn claim(
        &self,
        [now, hold_until]: [Instant; 2],
        (id, host): (HostId, &Host),
        claims: &Claims,
        ledger: &Ledger,
        settings: &Settings,
    ) -> Result<(), RefusedClaim> {
        let is_slow = self.fetch_slots.is_slow(host.site);
        let may_look = |key| self.turn_queues.may_look(now, key, guest_at(key, id, host, settings), is_slow);
        claims.claim(ledger, now, hold_until, may_look)
    }

    /// A fetch of a host ended and gives its slot back, unless it did so when its end was held back. `is_fine` tells
    /// whether it brought a page.
    pub fn fetch_ended(
        &mut self,
        now: Instant,
        hosts: &mut HostTable,
        job: &FetchJob,
        is_fine: bool,
        settings: &Settings,
    ) {
        let Some(turn) = self.fetch_slots.gave_back(now, job.id) else { return };
        let host = &mut hosts[job.host];
        let site = host.site;
        if !self.fetch_slots.is_slow(site) {
            self.ready.is_not_slow(site);
        }
        let slow = if let FetchSpeed::Slow(lasted) = turn { Some((lasted, is_fine)) } else { None };
        if slow.is_some() && !is_fine {
            host.dragged(&job.url);
        }
        if let Some(key) = job.claims.keys().find(|key| matches!(key, ClaimKey::Site(_))) {
            self.turn_queues.site_turn_ended(now, key, guest_at(key, job.host, host, settings), slow);
        }
        let groups = job.claims.keys().filter(|key| matches!(key, ClaimKey::Group(_)));
        for key in job.addr.map(ClaimKey::from).into_iter().chain(groups) {
            match turn {
                FetchSpeed::Slow(lasted) => self.turn_queues.slow_turn_ended(now, key, site, lasted),
                FetchSpeed::Fast => self.turn_queues.fast_turn_ended(now, key, site),
            }
        }
        self.ready.fetch_ended();
    }

    /// Takes parked hosts out of the rows of `keys` and of the queue for the name servers, and makes those ready that
    /// it found there. Each queue is scanned once for all of them. A host whose addresses have changed meanwhile is
    /// called in its row.
    pub fn end_waits(&mut self, hosts: &mut HostTable, parked: &[HostId], keys: BTreeSet<ClaimKey>) {
        let (leaving, mut left): (IntSet<HostId>, _) = (parked.iter().copied().collect(), IntSet::default());
        for key in keys {
            self.turn_queues.leave(key, &leaving, &mut left);
        }
        for id in parked {
            if left.contains(id) && self.turn_queues.is_called(*id) {
                self.turn_queues.had_turn(*id);
            }
        }
        self.lookups.leave(&leaving, &mut left);
        for id in parked {
            if left.contains(id) {
                self.make_ready(hosts, *id);
            }
        }
    }

    /// Whether a slot is available to a slow site.
    #[cfg(test)]
    pub fn has_slot_for_slow_site(&self) -> bool {
        self.may_slow_take()
    }

    /// The host that was called to a turn and has not shown up.
    #[cfg(test)]
    pub fn awaited(&self, key: ClaimKey) -> Option<HostId> {
        self.turn_queues.awaited(key)
    }

    /// Sites may have more slots than before.
    #[cfg(test)]
    pub fn look_again(&mut self) {
        self.ready.fetch_ended();
    }
}

/// A host as it waits for `key`.
fn guest_at(key: ClaimKey, id: HostId, host: &Host, settings: &Settings) -> Guest {
    match key {
        ClaimKey::Site(_) => {
            let of = SiteKey::below_site(settings.rng_seed, &host.name);
            Guest { id, of, is_newcomer: host.is_newcomer() }
        }
        ClaimKey::Ipv4(_) | ClaimKey::Ipv6Net(_) | ClaimKey::Group(_) | ClaimKey::Host(_) => {
            Guest { id, of: host.site, is_newcomer: false }
        }
    }
}

/// How often the first host that waits for a turn checks whether it is free: at least once per delay, so that no part
/// of it is lost.
fn look_pause(key: ClaimKey, settings: &Settings) -> Duration {
    let politeness = &settings.politeness;
    let delay = match key {
        ClaimKey::Ipv4(_) | ClaimKey::Ipv6Net(_) => politeness.ip_delay,
        ClaimKey::Site(_) => politeness.site_delay,
        ClaimKey::Group(_) => politeness.group_delay,
        ClaimKey::Host(_) => politeness.host_delay,
    };
    delay.max(LOOK_PAUSE_MIN)
}

/// Calendar entries looked at per call of `next_job`.
const WAKES_MAX: usize = 2_048;
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(10);
