//! The frontier: which URL is fetched next, and when a host may be asked again.
//!
//! Hosts wait in a calendar ([`due`]) until their delay is over, then in a first-in-first-out queue of ready
//! hosts, so that no host, however large or slow, takes more than its turn. A host's turn is one step
//! ([`step`]): resolve its name, or fetch its robots.txt, or fetch its next URL that robots.txt allows. How a job
//! ended moves the host on ([`finish`]).
//!
//! Invariants: one job per host at a time; no request before `not_before` of its host and the [`Ledger`]'s
//! instant for its address; no page without a verdict of robots.txt; every URL offered ends exactly once, as a
//! fetched job or in [`Frontier::settled`].
//! Limits: memory for waiting URLs by `frontier.ram_bytes_max`, the rest in the spool; hosts by `frontier.hosts_max`
//! ([`door`]), their rules by `robots.ram_bytes_max` ([`shelf`]); names asked for at once by `dns.in_flight_max`.

mod addrs;
mod door;
mod due;
mod fallen;
mod finish;
mod host;
mod queue;
mod shelf;
mod step;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

pub use crate::ledger::Ledger;
pub use finish::End;

use crate::config::{self, Config};
use crate::outcome::{Failure, FetchJob, HostId};
use crate::spool::{Block, ReadFor, Spool};
use crate::time::{Duration, Instant};
use crate::url::{Url, UrlBatch};
use door::Door;
use due::{Due, Event};
use host::{Host, State};
use queue::HostQueue;
use shelf::Shelf;

/// The waiting URLs of one shard.
#[derive(Debug)]
pub struct Frontier {
    hosts: Vec<Host>,
    names: HashMap<Box<str>, HostId>,
    door: Door,
    shelf: Shelf,
    ready: VecDeque<HostId>,
    due: Due,
    /// Hosts that wait for their address's turn.
    parked: HashMap<IpAddr, VecDeque<HostId>>,
    /// Hosts that wait for their turn at the name servers.
    nameless: VecDeque<HostId>,
    /// Names that are asked for.
    resolving: usize,
    ledger: Arc<Ledger>,
    rules: Rulebook,
    ram_bytes: u64,
    /// Hosts with a tail worth spilling.
    long_tails: VecDeque<HostId>,
    /// Where the next search for smaller tails starts.
    sweep: usize,
    next_job: u64,
    /// Hosts that are not idle.
    active: usize,
    queued: u64,
    settled: Vec<Settled>,
}

/// A URL that ended without a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Which.
    pub url: Url,
    /// Why.
    pub failure: Failure,
}

/// The parts of the configuration that the frontier follows.
#[derive(Clone, Debug)]
pub struct Rulebook {
    politeness: config::Politeness,
    robots: config::Robots,
    partition_key: config::PartitionKey,
    agent: String,
    deadline: Duration,
    ram_bytes_max: u64,
    host_head_urls: usize,
    hosts_max: usize,
    rules_bytes_max: u64,
    resolving_max: usize,
    families: config::Families,
    /// So long before a request its address is asked for.
    resolve_lead: Duration,
    /// Addresses are used so long past their time while no name server answers.
    stale_max: Duration,
}

impl Rulebook {
    /// The rules of one shard of `shards`.
    pub fn new(config: &Config, shards: u16) -> Rulebook {
        let shards = u64::from(shards.max(1));
        Rulebook {
            politeness: config.politeness.clone(),
            robots: config.robots.clone(),
            partition_key: config.partition.key,
            agent: config.agent.token().to_owned(),
            deadline: config.fetch.deadline,
            ram_bytes_max: config.frontier.ram_bytes_max / shards,
            host_head_urls: config.frontier.host_head_urls.max(1),
            hosts_max: config.frontier.hosts_max.div_ceil(shards).max(1) as usize,
            rules_bytes_max: config.robots.ram_bytes_max / shards,
            resolving_max: config.dns.in_flight_max.max(1),
            families: config.dns.families,
            resolve_lead: config.dns.timeout,
            stale_max: config.dns.stale_max,
        }
    }
}

impl Frontier {
    /// An empty frontier.
    pub fn new(rules: Rulebook, ledger: Arc<Ledger>) -> Frontier {
        Frontier {
            hosts: Vec::new(),
            names: HashMap::new(),
            door: Door::new(rules.hosts_max),
            shelf: Shelf::new(rules.rules_bytes_max),
            ready: VecDeque::new(),
            due: Due::default(),
            parked: HashMap::new(),
            nameless: VecDeque::new(),
            resolving: 0,
            ledger,
            rules,
            ram_bytes: 0,
            long_tails: VecDeque::new(),
            sweep: 0,
            next_job: 0,
            active: 0,
            queued: 0,
            settled: Vec::new(),
        }
    }

    /// Queues a URL that was never offered before.
    pub fn offer(&mut self, now: Instant, url: &Url, depth: u16, spool: &mut Spool) {
        self.queued += 1;
        match self.find_or_admit(now, url.host()) {
            Some(id) => self.queue(now, id, url, depth, spool),
            None => self.wait_outside(url, depth, spool),
        }
    }

    /// Queues a URL for its host.
    fn queue(&mut self, now: Instant, id: HostId, url: &Url, depth: u16, spool: &mut Spool) {
        let long_tail_bytes = self.long_tail_bytes();
        // A head cannot be spilled.
        let head_urls = if self.has_room() { self.rules.host_head_urls } else { 1 };
        let host = &mut self.hosts[id as usize];
        let before = host.queue.tail_bytes();
        // Less than before when it frees what was taken.
        self.ram_bytes -= host.queue.ram_bytes() as u64;
        host.queue.push(depth, url.as_str(), head_urls);
        self.ram_bytes += host.queue.ram_bytes() as u64;
        if before < long_tail_bytes && host.queue.tail_bytes() >= long_tail_bytes {
            self.long_tails.push_back(id);
        }
        if host.state == State::Idle {
            let at = host.not_before;
            self.schedule(id, now, at);
        }
        if !self.has_room() {
            self.spill(spool);
        }
    }

    /// A block that was spilled came back.
    pub fn returned(&mut self, now: Instant, id: HostId, batch: UrlBatch) {
        let Some(host) = self.hosts.get_mut(id as usize) else { return };
        self.ram_bytes += batch.ram_bytes() as u64;
        host.queue.returned(batch);
        let at = host.not_before;
        self.schedule(id, now, at);
    }

    /// What to fetch now, if anything may be.
    pub fn next_job(&mut self, now: Instant, spool: &mut Spool) -> Option<FetchJob> {
        self.wake(now);
        self.let_in(now, spool);
        // Bounded, so that a long list of hosts with nothing to fetch does not hold up the shard's sockets.
        for _ in 0..STEPS_MAX {
            // Those who wait for a name first: a place at the name servers is free, which is rare when they wait.
            let nameless = if self.resolving < self.rules.resolving_max { self.nameless.pop_front() } else { None };
            let Some(id) = nameless.or_else(|| self.ready.pop_front()) else {
                if self.let_in(now, spool) {
                    continue;
                }
                return None;
            };
            if let Some(job) = self.step(id, now, spool) {
                return Some(job);
            }
        }
        None
    }

    /// When to ask again; `Instant::ZERO` for now, `None` when nothing waits for the clock.
    pub fn next_due(&self) -> Option<Instant> {
        let a_name_may_be_asked_for = self.resolving < self.rules.resolving_max && !self.nameless.is_empty();
        if !self.ready.is_empty() || a_name_may_be_asked_for || self.door.can_open() {
            return Some(Instant::ZERO);
        }
        self.due.next()
    }

    /// Takes what ended without a request since the last call.
    pub fn take_settled(&mut self) -> Vec<Settled> {
        std::mem::take(&mut self.settled)
    }

    /// Whether no host has anything to do, now or later.
    pub fn is_idle(&self) -> bool {
        self.active == 0 && self.door.is_clear()
    }

    /// URLs that wait or are being fetched.
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Hosts met; one that was forgotten meanwhile counts each time.
    pub fn hosts(&self) -> u64 {
        self.door.met()
    }

    /// Hosts in memory.
    pub fn hosts_in_memory(&self) -> usize {
        self.names.len()
    }

    /// Names that are asked for now: `Resolve` jobs under way.
    pub fn resolving(&self) -> usize {
        self.resolving
    }

    /// Bytes of waiting URLs in memory.
    pub fn ram_bytes(&self) -> u64 {
        self.ram_bytes
    }

    /// Bytes of the rules of robots.txt in memory.
    pub fn rules_bytes(&self) -> u64 {
        self.shelf.bytes()
    }

    /// Whether waiting URLs are within their memory.
    fn has_room(&self) -> bool {
        self.ram_bytes <= self.rules.ram_bytes_max
    }

    /// Makes a host ready, now or at `at`.
    fn schedule(&mut self, id: HostId, now: Instant, at: Instant) {
        if at <= now {
            self.set_state(id, State::Ready);
            self.ready.push_back(id);
        } else {
            self.set_state(id, State::Waiting(at));
            self.due.push(at, Event::Host(id));
        }
    }

    fn set_state(&mut self, id: HostId, state: State) {
        let host = &mut self.hosts[id as usize];
        match (host.state == State::Idle, state == State::Idle) {
            (true, false) => self.active += 1,
            (false, true) => self.active -= 1,
            _ => {}
        }
        let falls_idle = host.state != State::Idle && state == State::Idle;
        host.state = state;
        if falls_idle {
            self.note_idle(id);
        }
    }

    /// Moves what is due into the queue of ready hosts.
    fn wake(&mut self, now: Instant) {
        while let Some((at, event)) = self.due.pop(now) {
            match event {
                Event::Host(id) => {
                    // A host that was scheduled again meanwhile ignores its old entry.
                    if self.hosts[id as usize].state == State::Waiting(at) {
                        self.set_state(id, State::Ready);
                        self.ready.push_back(id);
                    }
                }
                Event::Addr(addr) => {
                    let Some(waiting) = self.parked.get_mut(&addr) else { continue };
                    let first = waiting.pop_front();
                    if waiting.is_empty() {
                        self.parked.remove(&addr);
                    } else {
                        self.due.push(now + self.addr_pause(), Event::Addr(addr));
                    }
                    if let Some(id) = first {
                        self.set_state(id, State::Ready);
                        self.ready.push_back(id);
                    }
                }
            }
        }
    }

    /// Puts a host behind the others that wait for `addr`.
    fn park(&mut self, id: HostId, addr: IpAddr, now: Instant, free_from: Option<Instant>) {
        self.set_state(id, State::Parked);
        let waiting = self.parked.entry(addr).or_default();
        waiting.push_back(id);
        if waiting.len() == 1 {
            let at = free_from.unwrap_or(now + self.addr_pause());
            self.due.push(at, Event::Addr(addr));
        }
    }

    /// How often the first of those that wait for an address looks whether it is free.
    fn addr_pause(&self) -> Duration {
        self.rules.politeness.ip_delay.max(ADDR_PAUSE_MIN)
    }

    /// How long a tail is that is worth a block of its own: one read brings some 200 URLs back. Blocks come back
    /// whole, one to a host, so with many hosts they must be smaller for all of them to fit.
    fn long_tail_bytes(&self) -> usize {
        let share = self.rules.ram_bytes_max as usize / (4 * self.hosts.len().max(1));
        share.clamp(SHORT_TAIL_BYTES, LONG_TAIL_BYTES)
    }

    /// Sends tails to disk until memory is within bounds, or nothing is left that is worth it.
    fn spill(&mut self, spool: &mut Spool) {
        while !self.has_room() {
            let Some(id) = self.long_tails.pop_front() else { break };
            self.spill_host(id, SHORT_TAIL_BYTES, spool);
        }
        for _ in 0..SWEEP_HOSTS.min(self.hosts.len()) {
            if self.has_room() {
                return;
            }
            self.sweep = (self.sweep + 1) % self.hosts.len();
            self.spill_host(self.sweep as HostId, SHORT_TAIL_BYTES, spool);
        }
    }

    fn spill_host(&mut self, id: HostId, bytes_min: usize, spool: &mut Spool) {
        let queue = &mut self.hosts[id as usize].queue;
        if queue.tail_bytes() < bytes_min {
            return;
        }
        let before = queue.ram_bytes();
        spill_tail(queue, spool);
        self.ram_bytes -= (before - queue.ram_bytes()) as u64;
    }

    fn settle(&mut self, url: Url, failure: Failure) {
        self.queued -= 1;
        self.settled.push(Settled { url, failure });
    }

    fn read_back(&mut self, id: HostId, block: Block, spool: &mut Spool) {
        self.set_state(id, State::Reading);
        spool.read(block, ReadFor::Host(id));
    }
}

/// Sends a queue's tail to disk, in pieces: a block comes back whole, and as the head it stays in memory.
fn spill_tail(queue: &mut HostQueue, spool: &mut Spool) {
    let tail = queue.take_tail();
    let mut piece = UrlBatch::new();
    for (depth, url) in tail.iter() {
        piece.push(depth, url);
        if piece.as_bytes().len() >= BLOCK_BYTES {
            queue.spilled(spool.write(piece.as_bytes(), piece.len() as u32));
            piece.clear();
        }
    }
    if !piece.is_empty() {
        queue.spilled(spool.write(piece.as_bytes(), piece.len() as u32));
    }
}

/// Under which name a host is known: the dot at the end makes no other host, so no second queue either.
fn host_key(name: &str) -> &str {
    name.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(name)
}

/// Tails are not let grow longer than this before they are spilled.
const LONG_TAIL_BYTES: usize = 16 * 1024;
/// A block of a host's queue is closed at this length.
const BLOCK_BYTES: usize = 32 * 1024;
/// A tail shorter than this stays in memory whatever the pressure.
const SHORT_TAIL_BYTES: usize = 512;
/// Hosts looked at for short tails per offered URL.
const SWEEP_HOSTS: usize = 64;
/// Length below which a row is not searched for entries that were overtaken.
const ROW_ROOM: usize = 1_024;
/// Hosts looked at per call of `next_job`.
const STEPS_MAX: usize = 256;
const ADDR_PAUSE_MIN: Duration = Duration::from_millis(10);
