//! How a host waits for a taken turn, and is called when the turn has come.
//!
//! Decides: which turns a request needs ([`Frontier::turns_for`]); that a host which finds one of them taken is
//! parked in that key's row ([`super::turn_queues`]); when the row is looked at again, and which host is called then;
//! what the end of a fetch says about its turns.
//!
//! Invariants: a parked host is in exactly one row; a row that is not empty has an instant in the calendar.
//! Leaves to others: whose turn it is (`turn_queues`), whether a turn is free (the
//! [`Ledger`](crate::politeness::Ledger)).

use std::net::IpAddr;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::calendar::Event;
use super::competition::Leave;
use super::fetch_slots::Turn;
use super::host::State;
use super::turn_queues::{Call, Guest};
use super::{Frontier, LOOK_PAUSE_MIN, waits};
use crate::job::{FetchJob, HostId, JobKind};
use crate::politeness::{HOLD_SLACK, Key, TakenTurn, Turns};
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_url::SiteKey;

impl Frontier {
    /// A fetch of a host ended; tells whether it met a wall, and whether it brought a page.
    pub(super) fn fetch_ended(&mut self, now: Instant, job: &FetchJob, met_wall: bool, is_fine: bool) {
        if self.places.gives_turns_back(job.id) {
            self.end_request(now, job, met_wall);
        } else if met_wall {
            job.turns.rest_after_wall(&self.ledger, now);
        }
        // It may already have done so when its end was held back.
        let Some(turn) = self.places.gave_back(now, job.id) else { return };
        let site = self.hosts[job.host].site;
        if !self.places.is_slow(site) {
            self.ready.is_not_slow(site);
        }
        let slow = if let Turn::Slow(lasted) = turn { Some((lasted, is_fine)) } else { None };
        if slow.is_some() && !is_fine {
            self.hosts[job.host].dragged(&job.url);
        }
        if let Some(key) = job.turns.keys().find(|key| matches!(key, Key::Site(_))) {
            self.turn_queues.site_turn_ended(now, key, self.guest_at(key, job.host), slow);
        }
        let groups = job.turns.keys().filter(|key| matches!(key, Key::Group(_)));
        for key in job.addr.map(Key::from).into_iter().chain(groups) {
            match turn {
                Turn::Slow(lasted) => self.turn_queues.slow_turn_ended(now, key, site, lasted),
                Turn::Fast => self.turn_queues.fast_turn_ended(now, key, site),
            }
        }
        self.ready.fetch_ended();
    }

    /// The request of a job has ended, and its response waits to be read or to be judged. Its turns are given back
    /// now: their delays count from here, and a claim does not outlast a long wait.
    pub fn request_ended(&mut self, now: Instant, job: &FetchJob) {
        if self.places.gives_turns_back(job.id) {
            self.end_request(now, job, false);
        }
    }

    /// Notes whether a called host has used its turns, or does without them.
    pub(super) fn had_its_turns(&mut self, id: HostId, job: &Option<FetchJob>) {
        match (self.hosts[id].state(), job.as_ref().map(|job| job.kind)) {
            // A long run of URLs that robots.txt forbids: it continues with them soon, unless it waits among slow
            // sites.
            (State::Ready, None) if !self.places.is_slow(self.hosts[id].site) => {}
            (State::Ready | State::Parked, None) | (_, Some(JobKind::Resolve)) => self.turn_queues.looks_up(id),
            _ => self.turn_queues.had_turn(id),
        }
    }

    /// Calls the next host that waits for `key`, as the calendar noted for `noted`.
    pub(super) fn call_to(&mut self, key: Key, now: Instant, noted: Instant) {
        let may_fetch = |id: HostId| self.places.may_take(self.hosts[id].site);
        let is_slow = |id: HostId| self.places.is_slow(self.hosts[id].site);
        if let Some(id) = self.turn_queues.awaited(key) {
            // It may have become slow since it was called, and wait for a slot.
            if !may_fetch(id) || is_slow(id) && !self.turn_queues.keeps_place(key, id) {
                self.turn_queues.is_late(id);
            }
        }
        let look_at = now + self.look_pause(key);
        let call = self.turn_queues.call(key, [now, noted, look_at], may_fetch, is_slow);
        if call != Call::Nobody {
            self.calendar.push(look_at, Event::Turn(key));
        }
        if let Call::Host(id) = call {
            // It has waited, and others wait behind it.
            self.hosts[id].leave = Some(Leave::over(now));
            if self.turn_queues.keeps_place(key, id) {
                self.hosts.set_state(id, State::Ready);
                self.ready.push_keeper(self.hosts[id].site, id);
                return;
            }
            self.make_ready(id);
            if self.places.is_slow(self.hosts[id].site) {
                // It keeps its turn, and may have to wait for it.
                self.turn_queues.is_late(id);
            }
        }
    }

    /// Puts a host into the row of a taken turn. Rows where it was called continue without it.
    pub(super) fn park(&mut self, id: HostId, now: Instant, TakenTurn { key, until }: TakenTurn) {
        self.hosts.park(id, waits::of_turn(key));
        let is_address = matches!(key, Key::Ipv4(_) | Key::Ipv6Net(_));
        if is_address && self.places.is_slow(self.hosts[id].site) && self.may_slow_take() {
            self.turn_queues.keep_place(now, key, (id, self.hosts[id].site));
        }
        let look_at = until.unwrap_or(now + self.look_pause(key));
        if self.turn_queues.wait(key, self.guest_at(key, id), look_at) {
            self.calendar.push(look_at, Event::Turn(key));
        }
        for other in self.turn_queues.waits_elsewhere(now, id).into_iter().flatten() {
            self.calendar.push(now, Event::Turn(other));
        }
    }

    /// Host `id` as it waits for `key`.
    pub(super) fn guest_at(&self, key: Key, id: HostId) -> Guest {
        let host = &self.hosts[id];
        match key {
            Key::Site(_) => {
                let of = SiteKey::below_site(self.settings.rng_seed, &host.name);
                Guest { id, of, is_newcomer: host.is_newcomer() }
            }
            Key::Ipv4(_) | Key::Ipv6Net(_) | Key::Group(_) | Key::Host(_) => {
                Guest { id, of: host.site, is_newcomer: false }
            }
        }
    }

    /// How often the first host that waits for a turn checks whether it is free: at least once per delay, so that no
    /// part of it is lost.
    pub(super) fn look_pause(&self, key: Key) -> Duration {
        let politeness = &self.settings.politeness;
        let delay = match key {
            Key::Ipv4(_) | Key::Ipv6Net(_) => politeness.ip_delay,
            Key::Site(_) => politeness.site_delay,
            Key::Group(_) => politeness.group_delay,
            Key::Host(_) => politeness.host_delay,
        };
        delay.max(LOOK_PAUSE_MIN)
    }

    /// The turns that a request of host `id` to `addr` needs: none, if the host is the operator's own. Hosts of
    /// others at its address or of its site keep their delays among themselves.
    pub(super) fn turns_for(&self, id: HostId, addr: IpAddr) -> Turns {
        let (site, politeness) = (self.hosts[id].site, &self.settings.politeness);
        if self.hosts[id].pace.is_mine() {
            return Turns::default();
        }
        let operator = self.settings.operators.of_address(addr).or(self.hosts[id].resolution.operator());
        let slot = |operator| {
            let slot = site.place_among(politeness.group_slots as usize) as u64;
            (Key::Group(u64::from(operator) << 32 | slot), politeness.group_delay)
        };
        Turns::new([
            self.host_key(&self.hosts[id].name).map(|key| (key, self.own_part_of_delay(id))),
            Some((Key::Site(site), politeness.site_delay)),
            Some((addr.into(), politeness.ip_delay)),
            operator.map(slot),
        ])
    }

    /// The key of a host, if several shards may have URLs of it.
    pub(super) fn host_key(&self, name: &str) -> Option<Key> {
        let hash = || xxh3_64_with_seed(name.as_bytes(), self.settings.rng_seed);
        self.settings.shares_hosts.then(|| Key::Host(hash()))
    }

    /// The result of a job's request is known, or will not be soon: other shards may query its host again after the
    /// delay that all shards know. After a complaint its rest holds for all.
    pub(super) fn release_host(&self, now: Instant, job: &FetchJob, has_complained: bool) {
        let pace = &self.hosts[job.host].pace;
        let rests = has_complained || pace.not_before() > now + pace.delay(&self.settings.politeness);
        let own = if rests { Duration::ZERO } else { self.own_part_of_delay(job.host) };
        job.turns.release_host(&self.ledger, job.deadline + HOLD_SLACK, pace.not_before() - own);
    }

    /// How much longer than other shards may know a host is left alone after a request: one of them may have a
    /// robots.txt with another Crawl-delay, or none yet.
    fn own_part_of_delay(&self, id: HostId) -> Duration {
        let (pace, politeness) = (&self.hosts[id].pace, &self.settings.politeness);
        pace.delay(politeness).saturating_sub(pace.agreed_delay(politeness))
    }
}
