//! The hosts in memory: which are there, which are admitted, which are forgotten.
//!
//! Decides: at most `frontier.hosts_max` hosts are in memory. A host with nothing to do stays until its place is
//! needed, because what is known of it (addresses, robots.txt, failures) will be useful. Then the host that has been
//! idle longest is forgotten. If a link leads to it again, it is treated as new, with its robots.txt first; some
//! facts about a failed host stay known ([`super::failure_history`]).
//! A site may have at most [`TIMES_FREE`] times as many hosts with something to do as there are places without one
//! ([`SiteShares`]), so that one wildcard domain leaves a quarter of them for other sites.
//! A host's wait is determined when its state changes, and counted: a host that waits for several things counts for
//! the one that its state names, the last one that it must get past.
//! Invariants: no host is forgotten before the instant from which it may be queried again, so forgetting never causes
//! an earlier request; no host is forgotten that has a file to fetch for others.
//! Limits: `frontier.hosts_max`, and a little more ([`HostTable::admit_beyond_bound`]).

use std::collections::{HashMap, VecDeque};
use std::ops::{Index, IndexMut};

use super::failure_history::FailureHistory;
use super::host::Host;
use super::rests::Rests;
use super::state::HostState;
use crate::frontier::queue::{Backlog, Discipline, UrlQueues};
use crate::frontier::robots::{Excess, Finding, Holder, HolderState, RobotsResult};
use crate::frontier::settings::{STALE_ENTRIES_MIN, Settings, TIMES_FREE};
use crate::job::{HostId, JobKind};
use crate::site_shares::SiteShares;
use crate::spool::Spool;
use crate::waits::{Wait, Waits};
use ringcrawl_base::Failure;
use ringcrawl_base::time::Instant;
use ringcrawl_config::Politeness;
use ringcrawl_url::{SiteKey, Url};

/// All hosts in memory, by name and by slot.
#[derive(Debug)]
pub struct HostTable {
    hosts: Vec<Host>,
    by_name: HashMap<Box<str>, HostId>,
    hosts_max: usize,
    /// Hosts found; one that was forgotten and found again counts twice.
    met: u64,
    /// Hosts that are not idle.
    active: usize,
    /// Active hosts that only rest.
    resting: usize,
    /// Slots of forgotten hosts.
    free: Vec<HostId>,
    /// Idle hosts, the longest idle first; an entry whose host was not idle all the time is ignored.
    idle: VecDeque<(u64, HostId)>,
    /// Length of `idle` at which stale entries are removed.
    idle_max: usize,
    numbers: u64,
    /// There was no room at the last look, and nothing has freed any since.
    is_full: bool,
    failures: FailureHistory,
    /// Rests of an earlier run, for hosts that appear from now on.
    pub(in crate::frontier) rests: Rests,
    politeness: Politeness,
    waits: Waits,
    discipline: Discipline,
    /// Hosts that are not idle, by site.
    shares: SiteShares,
}

impl HostTable {
    /// An empty table.
    pub fn new(settings: &Settings) -> HostTable {
        let hosts_max = settings.hosts_max;
        HostTable {
            hosts: Vec::new(),
            by_name: HashMap::new(),
            hosts_max,
            met: 0,
            active: 0,
            resting: 0,
            free: Vec::new(),
            idle: VecDeque::new(),
            idle_max: STALE_ENTRIES_MIN,
            numbers: 0,
            is_full: false,
            failures: FailureHistory::new((hosts_max / HOSTS_PER_REMEMBERED).max(REMEMBERED_MIN)),
            rests: Rests::new((hosts_max / HOSTS_PER_REMEMBERED).max(REMEMBERED_MIN)),
            politeness: settings.politeness.clone(),
            waits: Waits::default(),
            discipline: Discipline::in_order(settings.order, settings.rng_seed),
            shares: SiteShares::new(HOST_SHARE_PLACES, TIMES_FREE),
        }
    }

    /// Hosts found.
    pub fn met(&self) -> u64 {
        self.met
    }

    /// Hosts in memory.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Slots, including those of forgotten hosts.
    pub fn slots(&self) -> usize {
        self.hosts.len()
    }

    /// Hosts that have something to do, now or later, or rest.
    pub fn active(&self) -> usize {
        self.active
    }

    /// Hosts that only rest, and for which nothing waits.
    pub fn resting(&self) -> usize {
        self.resting
    }

    /// Whether there was no room at the last look.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The slot of the host of this name, if it is in memory.
    pub fn find(&self, name: &str) -> Option<HostId> {
        self.by_name.get(host_key(name)).copied()
    }

    /// The host in a slot.
    pub fn get_mut(&mut self, id: HostId) -> Option<&mut Host> {
        self.hosts.get_mut(id as usize)
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter()
    }

    /// Admits a host that is not in memory, and to which `linker` has linked; there should be room.
    pub fn admit(&mut self, name: &str, site: SiteKey, linker: SiteKey) -> HostId {
        let name = host_key(name);
        let id = self.free.pop().unwrap_or_else(|| {
            self.hosts.push(Host::new(""));
            (self.hosts.len() - 1) as HostId
        });
        let mut host = Host::new(name);
        (host.site, host.linker) = (site, linker);
        host.backlog = Backlog::new(self.discipline.of(name));
        if let Some(record) = self.failures.take(name) {
            host.remember(record);
        }
        let terms = self.politeness.host.terms_of(name);
        host.pace = host.pace.under(terms);
        host.pace.rest_until(self.rests.take(name, terms.delay.unwrap_or_default()));
        for (origin, until) in self.rests.take_origins(name) {
            host.rest_origin(&origin, until);
        }
        host.vitals.has_old_trouble = self.rests.take_trouble(name);
        self[id] = host;
        self.by_name.insert(name.into(), id);
        self.met += 1;
        id
    }

    /// The slot of a host that others' robots.txt redirect to. Those others may hold all the room while they wait for
    /// it, so it is admitted even without room, up to a bound.
    pub fn admit_beyond_bound(&mut self, now: Instant, name: &str, site: SiteKey, linker: SiteKey) -> Option<HostId> {
        if let Some(id) = self.find(name) {
            return Some(id);
        }
        if !self.make_room(now) && self.len() >= self.hosts_max + self.hosts_max / HOSTS_PER_BEYOND + BEYOND_MIN {
            return None;
        }
        let id = self.admit(name, site, linker);
        self.note_idle(id);
        Some(id)
    }

    /// Whether the host of this name may have a URL: it already has something to do, or it is within its site's share
    /// and has or gets a place.
    pub fn may_have_url(&mut self, now: Instant, name: &str, site: SiteKey) -> bool {
        let known = self.find(name);
        if known.is_some_and(|id| self[id].state() != HostState::Idle) {
            return true;
        }
        let free = self.hosts_max.saturating_sub(self.active) as u64;
        self.shares.may_take(site, free) && (known.is_some() || self.make_room(now))
    }

    /// Whether there is room for another host, if necessary by forgetting one.
    pub fn make_room(&mut self, now: Instant) -> bool {
        if self.len() < self.hosts_max {
            return true;
        }
        while !self.is_full {
            let Some((number, id)) = self.idle.pop_front() else { break };
            let host = &self[id];
            if !host.is_idle_since(number) {
                continue;
            }
            // Hosts wait out their delay in the calendar, and an awaited one has something to do.
            let may_go = host.pace.not_before() <= now && host.robots_wanted.is_empty();
            debug_assert!(may_go, "{} is idle and cannot be forgotten", host.name);
            if !may_go {
                self.idle.push_back((number, id));
                break;
            }
            self.forget(id);
            if self.len() < self.hosts_max {
                return true;
            }
        }
        self.is_full = true;
        false
    }

    /// What is known of a file without requesting it: its host was given up, or has it as its own robots.txt.
    pub fn known_file(&self, now: Instant, url: &Url) -> Option<Finding> {
        let host = &self[self.find(url.host())?];
        if let Some(given_up) = host.pace.given_up().filter(|given_up| given_up.until > now) {
            return Some((RobotsResult::Refused(Failure::RobotsUnreachable), given_up.until));
        }
        if let Some(until) = host.dead_until(url, now) {
            return Some((RobotsResult::Refused(Failure::RobotsUnreachable), until));
        }
        let origin = host.origins.iter().find(|origin| origin.robots_url(&host.name).as_ref() == Some(url))?;
        origin.own_finding(now)
    }

    /// Whether an origin still holds these rules.
    pub fn holds_rules(&self, holder: &Holder) -> bool {
        let origin = self[holder.id].origins.get(usize::from(holder.index));
        origin.and_then(|origin| origin.rules()).is_some_and(|rules| holder.holds(rules))
    }

    /// Drops the rules of an origin if its host can do without them.
    pub fn drop_rules(&mut self, holder: &Holder, excess: Excess) -> HolderState {
        if !self.holds_rules(holder) {
            return HolderState::Gone;
        }
        let (host, index) = (&mut self[holder.id], usize::from(holder.index));
        let may_go = host.state() == HostState::Idle || excess == Excess::OfAll && host.can_do_without_rules(index);
        if !may_go {
            return HolderState::Kept;
        }
        host.origins[index].drop_rules();
        HolderState::Gone
    }

    /// Sends tails of queues to disk until `queues` are within their memory, or no tail is worth it.
    pub fn spill(&mut self, queues: &mut UrlQueues, spool: &mut Spool) {
        let mut searched = 0;
        while let Some(id) = queues.memory.next_to_spill(self.slots(), &mut searched) {
            queues.spill(&mut self[id].backlog, spool);
        }
    }

    /// How many hosts wait for what.
    pub fn waits(&self) -> Waits {
        self.waits
    }

    /// Sets where a host stands now.
    pub fn set_state(&mut self, id: HostId, state: HostState) {
        let wait = wait_of(&self[id], state, &self.politeness);
        self.change_state(id, state, wait);
    }

    /// Parks a host, which waits for `wait`.
    pub fn park(&mut self, id: HostId, wait: Wait) {
        self.change_state(id, HostState::Parked, Some(wait));
    }

    fn change_state(&mut self, id: HostId, state: HostState, wait: Option<Wait>) {
        let before = std::mem::replace(&mut self[id].wait, wait);
        self.waits.changed(before, wait);
        let before = self[id].change_state(state);
        self.resting -= usize::from(matches!(before, HostState::Resting(_)));
        self.resting += usize::from(matches!(state, HostState::Resting(_)));
        match (before == HostState::Idle, state == HostState::Idle) {
            (true, false) => {
                self.active += 1;
                self.shares.changed(self[id].site, 0, 1);
            }
            (false, true) => {
                self.active -= 1;
                self.shares.gave_back(self[id].site);
                self.note_idle(id);
            }
            _ => {}
        }
    }

    /// A host has nothing to do from now on.
    fn note_idle(&mut self, id: HostId) {
        if self.idle.len() >= self.idle_max {
            let hosts = &self.hosts;
            let is_idle = |number, id: HostId| hosts.get(id as usize).is_some_and(|host| host.is_idle_since(number));
            self.idle.retain(|(number, id)| is_idle(*number, *id));
            self.idle_max = 2 * self.idle.len() + STALE_ENTRIES_MIN;
        }
        self.numbers += 1;
        let number = self.numbers;
        self[id].idle_from(number);
        self.idle.push_back((number, id));
        self.is_full = false;
    }

    fn forget(&mut self, id: HostId) {
        let host = std::mem::replace(&mut self[id], Host::new(""));
        self.by_name.remove(&host.name);
        if let Some(record) = host.record() {
            self.failures.note(host.name, record);
        }
        self.free.push(id);
    }
}

/// What a host waits for in this state; `None`: nothing waits for it. A parked host waits for a name unless stated
/// otherwise.
fn wait_of(host: &Host, state: HostState, politeness: &Politeness) -> Option<Wait> {
    match state {
        HostState::Idle | HostState::Resting(_) => None,
        HostState::Ready => Some(Wait::InFlight),
        HostState::Waiting(at) if host.leave.is_some_and(|leave| leave.is_until(at)) => Some(Wait::Allowance),
        HostState::Waiting(at) if at > host.pace.not_before() && host.under_way.refreshing().is_some() => {
            Some(Wait::Names)
        }
        HostState::Waiting(at) if at > host.pace.not_before() => Some(Wait::Retries),
        HostState::Waiting(_) => Some(host.pace.wait(politeness)),
        HostState::Parked => Some(Wait::Names),
        HostState::Busy | HostState::Emptied => Some(match host.under_way.preparing() {
            Some(JobKind::Resolve) => Wait::Names,
            Some(JobKind::Robots) => Wait::Robots,
            _ => Wait::Responses,
        }),
        HostState::Reading => Some(Wait::Disk),
    }
}

/// Slots are ours: an id that this table did not issue is a bug.
impl Index<HostId> for HostTable {
    type Output = Host;

    fn index(&self, id: HostId) -> &Host {
        &self.hosts[id as usize]
    }
}

impl IndexMut<HostId> for HostTable {
    fn index_mut(&mut self, id: HostId) -> &mut Host {
        &mut self.hosts[id as usize]
    }
}

/// The name under which a host is known: a trailing dot does not make another host or a second queue.
pub(crate) fn host_key(name: &str) -> &str {
    name.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(name)
}

/// The record of a failed host is a small part of a host, and few hosts have failed when they are forgotten.
const HOSTS_PER_REMEMBERED: usize = 4;
const REMEMBERED_MIN: usize = 1_024;
/// One more host per this many may be admitted beyond the bound, and a few in any case.
const HOSTS_PER_BEYOND: usize = 64;
const BEYOND_MIN: usize = 4;
/// Buckets in which the hosts of sites are counted.
const HOST_SHARE_PLACES: usize = 1 << 16;
