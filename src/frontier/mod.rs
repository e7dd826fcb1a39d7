//! The frontier: which URL is fetched next, and when a host may be asked again.
//!
//! Hosts wait in a calendar ([`calendar`]) until their delay is over, then in a first-in-first-out queue of ready
//! hosts, so that no host, however large or slow, takes more than its turn. A host's turn is one step
//! ([`turn`]): resolve its name, or fetch its robots.txt, or fetch its next URL that robots.txt allows. How a job
//! ended moves the host on ([`finish`]).
//!
//! Invariants: one job per host at a time; no request before `not_before` of its host and the [`Ledger`]'s
//! instant for its address; no page without a verdict of robots.txt; every URL offered ends exactly once, as a
//! fetched job or in [`Frontier::settled`].
//! Limits: memory for waiting URLs by `frontier.ram_bytes_max`, the rest in the spool; hosts by `frontier.hosts_max`
//! ([`host_table`]), their rules by `robots.ram_bytes_max` ([`rules_cache`]); names asked for at once by `dns.in_flight_max`.

mod address_queues;
mod addresses;
mod backlog;
mod calendar;
mod failure_history;
mod finish;
mod host;
mod host_table;
mod lookup_queue;
mod memory;
mod origin;
mod overflow;
mod queue;
mod resolution;
mod rests;
mod robots_fetch;
mod robots_files;
mod rules_cache;
mod settings;
#[cfg(test)]
mod tests;
mod turn;
mod waiting;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

pub use crate::politeness::Ledger;
pub use finish::End;
pub use rests::Rest;
pub use settings::Settings;
pub use waiting::{Ticket, WaitingUrls};

use crate::outcome::{Failure, FetchJob, HostId};
use crate::politeness::rest_asked;
use crate::spool::{Block, ReadFor, Spool};
use crate::time::{Duration, Instant};
use crate::url::Url;
use address_queues::AddressQueues;
use backlog::QueuedUrl;
use calendar::{Calendar, Event};
use host::State;
use host_table::HostTable;
use lookup_queue::LookupQueue;
use memory::{UrlMemory, spill_tail};
use overflow::Overflow;
use robots_files::RobotsFiles;
use rules_cache::RulesCache;

/// The waiting URLs of one shard.
#[derive(Debug)]
pub struct Frontier {
    hosts: HostTable,
    overflow: Overflow,
    rules_cache: RulesCache,
    robots_files: RobotsFiles,
    ready: VecDeque<HostId>,
    calendar: Calendar,
    address_queues: AddressQueues,
    lookups: LookupQueue,
    ledger: Arc<Ledger>,
    settings: Settings,
    memory: UrlMemory,
    next_job: u64,
    queued: u64,
    settled: Vec<Settled>,
    rests: Vec<Rest>,
}

/// A URL that ended without a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Which.
    pub url: Url,
    /// Its number in the URL log.
    pub number: u64,
    /// How many requests were made for it.
    pub tries: u8,
    /// Why.
    pub failure: Failure,
}

impl Frontier {
    /// An empty frontier.
    pub fn new(settings: Settings, ledger: Arc<Ledger>) -> Frontier {
        Frontier {
            hosts: HostTable::new(settings.hosts_max),
            overflow: Overflow::default(),
            rules_cache: RulesCache::new(settings.rules_bytes_max),
            robots_files: RobotsFiles::default(),
            ready: VecDeque::new(),
            calendar: Calendar::default(),
            address_queues: AddressQueues::default(),
            lookups: LookupQueue::new(settings.resolving_max),
            ledger,
            memory: UrlMemory::new(settings.ram_bytes_max),
            settings,
            next_job: 0,
            queued: 0,
            settled: Vec::new(),
            rests: Vec::new(),
        }
    }

    /// Queues a URL that was never offered before.
    pub fn offer(&mut self, now: Instant, url: &Url, ticket: Ticket, spool: &mut Spool) {
        self.queued += 1;
        let known = self.hosts.find(url.host());
        let may_come_in = known.is_some() || self.overflow.is_empty() && self.hosts.make_room(now);
        if may_come_in {
            let id = known.unwrap_or_else(|| self.hosts.admit(url.host()));
            self.queue(now, id, url, ticket, spool);
        } else {
            self.wait_outside(url, ticket, spool);
        }
    }

    /// Queues a URL for its host.
    fn queue(&mut self, now: Instant, id: HostId, url: &Url, ticket: Ticket, spool: &mut Spool) {
        let long_tail_bytes = self.memory.long_tail_bytes(self.hosts.slots());
        // A head cannot be spilled.
        let head_urls = if self.memory.has_room() { self.settings.host_head_urls } else { 1 };
        let host = &mut self.hosts[id];
        let (before, tail_before) = (host.backlog.ram_bytes(), host.backlog.tail_bytes());
        host.backlog.push(ticket, url.as_str(), head_urls);
        // Less than before when it frees what was taken.
        self.memory.changed(before, host.backlog.ram_bytes());
        if tail_before < long_tail_bytes && host.backlog.tail_bytes() >= long_tail_bytes {
            self.memory.note_long_tail(id);
        }
        if host.state() == State::Idle {
            let at = host.pace.not_before();
            self.schedule(id, now, at);
        }
        if !self.memory.has_room() {
            self.memory.spill(&mut self.hosts, spool);
        }
    }

    /// Queues a URL whose host is not in memory.
    fn wait_outside(&mut self, url: &Url, ticket: Ticket, spool: &mut Spool) {
        self.memory.shrank(self.overflow.ram_bytes());
        self.overflow.push(url, ticket, self.memory.bytes_left(), spool);
        self.memory.grew(self.overflow.ram_bytes());
    }

    /// Lets some come in from outside; whether any did.
    fn let_in(&mut self, now: Instant, spool: &mut Spool) -> bool {
        let mut came_in = false;
        for _ in 0..COME_IN_MAX {
            if !self.can_let_in() || !self.hosts.make_room(now) {
                break;
            }
            let before = self.overflow.ram_bytes();
            let next = self.overflow.pop(spool);
            self.memory.changed(before, self.overflow.ram_bytes());
            match next {
                overflow::Next::Url(ticket, text) => {
                    // Every text in a queue came out of a `Url`; one that does not parse again was damaged on disk.
                    let Ok(url) = Url::from_canonical(&text) else {
                        self.queued -= 1;
                        continue;
                    };
                    let id = self.hosts.find(url.host()).unwrap_or_else(|| self.hosts.admit(url.host()));
                    self.queue(now, id, &url, ticket, spool);
                    came_in = true;
                }
                overflow::Next::Later => {}
                overflow::Next::Lost(urls) => self.queued -= urls,
            }
        }
        came_in
    }

    fn can_let_in(&self) -> bool {
        self.overflow.is_ready() && !self.hosts.is_full()
    }

    /// A block of those outside came back.
    pub fn returned_outside(&mut self, batch: WaitingUrls) {
        self.memory.grew(batch.ram_bytes() as u64);
        self.overflow.returned(batch);
    }

    /// A block that was spilled came back.
    pub fn returned(&mut self, now: Instant, id: HostId, batch: WaitingUrls) {
        let Some(host) = self.hosts.get_mut(id) else { return };
        self.memory.grew(batch.ram_bytes() as u64);
        host.backlog.returned(batch);
        let at = host.pace.not_before();
        self.schedule(id, now, at);
    }

    /// What to fetch now, if anything may be.
    pub fn next_job(&mut self, now: Instant, spool: &mut Spool) -> Option<FetchJob> {
        self.wake(now);
        self.let_in(now, spool);
        // Bounded, so that a long list of hosts with nothing to fetch does not hold up the shard's sockets.
        for _ in 0..STEPS_MAX {
            // Those who wait for a name first: a place at the name servers is free, which is rare when they wait.
            let Some(id) = self.lookups.next().or_else(|| self.ready.pop_front()) else {
                if self.let_in(now, spool) {
                    continue;
                }
                return None;
            };
            if let Some(job) = self.take_turn(id, now, spool) {
                return Some(job);
            }
        }
        None
    }

    /// When to ask again; `Instant::ZERO` for now, `None` when nothing waits for the clock.
    pub fn next_due(&self) -> Option<Instant> {
        if !self.ready.is_empty() || self.lookups.is_ready() || self.can_let_in() {
            return Some(Instant::ZERO);
        }
        self.calendar.next()
    }

    /// Takes what ended without a request since the last call.
    pub fn take_settled(&mut self) -> Vec<Settled> {
        std::mem::take(&mut self.settled)
    }

    /// An earlier run was broken off before `now`: its hosts are left alone for as long as they are between two requests.
    pub fn rest_all(&mut self, now: Instant) {
        let politeness = &self.settings.politeness;
        self.hosts.rests().rest_all(now + politeness.host_delay.max(politeness.ip_delay));
    }

    /// An earlier run has noted that a host is to be left alone.
    pub fn rest(&mut self, now: Instant, rest: &Rest) {
        let politeness = &self.settings.politeness;
        let asked = rest.until.since(now).min(politeness.retry_after_max.max(politeness.crawl_delay_max));
        let until = now + asked.max(rest.crawl_delay.min(politeness.crawl_delay_max));
        self.hosts.rests().rest(&rest.host, until);
    }

    /// Takes the hosts that have asked for a longer rest since the last call.
    pub fn take_rests(&mut self) -> std::vec::Drain<'_, Rest> {
        self.rests.drain(..)
    }

    /// Notes how long a host is left alone.
    fn note_rest(&mut self, id: HostId) {
        let host = &self.hosts[id];
        let (crawl_delay, until) = (host.pace.crawl_delay(), host.pace.not_before());
        self.rests.push(Rest { host: host.name.clone(), crawl_delay, until });
    }

    /// Whether no host has anything to do, now or later.
    pub fn is_idle(&self) -> bool {
        self.hosts.active() == 0 && self.overflow.is_empty()
    }

    /// URLs that wait or are being fetched.
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Hosts met; one that was forgotten meanwhile counts each time.
    pub fn hosts(&self) -> u64 {
        self.hosts.met()
    }

    /// Hosts in memory that have something to do, now or later.
    pub fn hosts_left(&self) -> u64 {
        self.hosts.active() as u64
    }

    /// Brings the first of the ready hosts to the front that `is_better` names, of so many as are looked at in one turn.
    pub fn prefer(&mut self, now: Instant, is_better: impl Fn(&str) -> bool) {
        self.wake(now);
        let mut ready = self.ready.iter().take(STEPS_MAX);
        if let Some(place) = ready.position(|id| is_better(&self.hosts[*id].name))
            && let Some(id) = self.ready.remove(place)
        {
            self.ready.push_front(id);
        }
    }

    /// A host has asked for a rest in a response that counts for nothing else.
    pub fn asked_for_rest(&mut self, now: Instant, id: HostId, status: u16, retry_after: Option<Duration>) {
        if let Some(rest) = rest_asked(status, retry_after, &self.settings.politeness) {
            self.hosts[id].pace.rest_until(now + rest);
            self.note_rest(id);
        }
    }

    /// Hosts in memory.
    pub fn hosts_in_memory(&self) -> usize {
        self.hosts.len()
    }

    /// Names that are asked for now: `Resolve` jobs under way.
    pub fn resolving(&self) -> usize {
        self.lookups.in_flight()
    }

    /// Bytes of waiting URLs in memory.
    pub fn ram_bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Bytes of the rules of robots.txt in memory.
    pub fn rules_bytes(&self) -> u64 {
        self.rules_cache.bytes()
    }

    /// Makes a host ready, now or at `at`.
    fn schedule(&mut self, id: HostId, now: Instant, at: Instant) {
        if at <= now {
            self.hosts.set_state(id, State::Ready);
            self.ready.push_back(id);
        } else {
            self.hosts.set_state(id, State::Waiting(at));
            self.calendar.push(at, Event::Host(id));
        }
    }

    /// Moves what is due into the queue of ready hosts.
    fn wake(&mut self, now: Instant) {
        while let Some((at, event)) = self.calendar.pop(now) {
            match event {
                Event::Host(id) => {
                    // A host that was scheduled again meanwhile ignores its old entry.
                    if self.hosts[id].state() == State::Waiting(at) {
                        self.hosts.set_state(id, State::Ready);
                        self.ready.push_back(id);
                    }
                }
                Event::Addr(addr) => {
                    let Some((id, more)) = self.address_queues.pop(addr) else { continue };
                    if more {
                        self.calendar.push(now + self.addr_pause(), Event::Addr(addr));
                    }
                    self.hosts.set_state(id, State::Ready);
                    self.ready.push_back(id);
                }
            }
        }
    }

    /// Puts a host behind the others that wait for `addr`.
    fn park(&mut self, id: HostId, addr: IpAddr, now: Instant, free_from: Option<Instant>) {
        self.hosts.set_state(id, State::Parked);
        if self.address_queues.push(addr, id) {
            let at = free_from.unwrap_or(now + self.addr_pause());
            self.calendar.push(at, Event::Addr(addr));
        }
    }

    /// How often the first of those that wait for an address looks whether it is free.
    fn addr_pause(&self) -> Duration {
        self.settings.politeness.ip_delay.max(ADDR_PAUSE_MIN)
    }

    fn settle(&mut self, entry: QueuedUrl, failure: Failure) {
        self.queued -= 1;
        let QueuedUrl { url, ticket, attempt } = entry;
        self.settled.push(Settled { url, number: ticket.number, tries: attempt, failure });
    }

    fn read_back(&mut self, id: HostId, block: Block, spool: &mut Spool) {
        self.hosts.set_state(id, State::Reading);
        spool.read(block, ReadFor::Host(id));
    }
}

/// Under which name a host is known: the dot at the end makes no other host, so no second queue either.
pub(crate) fn host_key(name: &str) -> &str {
    name.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(name)
}

/// A block of a host's queue is closed at this length.
const BLOCK_BYTES: usize = 32 * 1024;
/// A tail shorter than this stays in memory whatever the pressure.
const SHORT_TAIL_BYTES: usize = 512;
/// Length below which a row is not searched for entries that were overtaken.
const STALE_ENTRIES_MIN: usize = 1_024;
/// Hosts looked at per call of `next_job`.
const STEPS_MAX: usize = 256;
/// URLs that come in from outside at once.
const COME_IN_MAX: usize = 64;
const ADDR_PAUSE_MIN: Duration = Duration::from_millis(10);
