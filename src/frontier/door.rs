//! Which hosts are in memory: who comes in, who is forgotten, who waits outside.
//!
//! Decides: at most `frontier.hosts_max` hosts are in memory. A host with nothing to do stays, because what is known of
//! it (addresses, robots.txt, failures) will be of use, until its place is needed: then the one that has been idle
//! for longest is forgotten, and should a link lead to it again, it is met anew, with its robots.txt first; of one that
//! failed something stays known ([`super::fallen`]). Where all hosts have something to do, URLs of further ones wait
//! outside, in one queue that goes to disk, and come in first in, first out.
//! Invariants: no host is forgotten before the instant from which it may be asked again, so nobody is asked sooner for
//! it; none that another one waits for; while URLs wait outside, no other host comes in before theirs.
//! Limits: a host that is met only because another's robots.txt redirects to it comes in although there is no room.

use std::collections::VecDeque;

use super::fallen::{Fallen, Past};
use super::host::{Host, State};
use super::queue::{HostQueue, Refill};
use super::{BLOCK_BYTES, Frontier, ROW_ROOM, SHORT_TAIL_BYTES, host_key, spill_tail};
use crate::outcome::HostId;
use crate::spool::{ReadFor, Spool};
use crate::time::Instant;
use crate::url::{Url, UrlBatch};

/// The frontier's bookkeeping of who is in memory.
#[derive(Debug)]
pub struct Door {
    hosts_max: usize,
    /// Hosts met; one that was forgotten and met again counts twice.
    met: u64,
    /// Slots of forgotten hosts.
    free: Vec<HostId>,
    /// Idle hosts, the longest idle first; an entry whose host was not idle all the time is ignored.
    idle: VecDeque<(u64, HostId)>,
    /// Length of `idle` at which such entries are thrown out.
    idle_max: usize,
    numbers: u64,
    fallen: Fallen,
    /// URLs of hosts that are not in memory.
    outside: HostQueue,
    outside_urls: u64,
    /// There was no room when last looked, and nothing has happened since that made any.
    is_shut: bool,
}

impl Door {
    /// Nobody, and room for `hosts_max` hosts.
    pub fn new(hosts_max: usize) -> Door {
        Door {
            hosts_max,
            met: 0,
            free: Vec::new(),
            idle: VecDeque::new(),
            idle_max: ROW_ROOM,
            numbers: 0,
            fallen: Fallen::new((hosts_max / HOSTS_PER_FALLEN).max(FALLEN_MIN)),
            outside: HostQueue::default(),
            outside_urls: 0,
            is_shut: false,
        }
    }

    /// Hosts met.
    pub fn met(&self) -> u64 {
        self.met
    }

    /// Whether nobody waits outside.
    pub fn is_clear(&self) -> bool {
        self.outside_urls == 0
    }

    /// Whether somebody outside can come in now.
    pub fn can_open(&self) -> bool {
        self.outside_urls > 0 && !self.is_shut && !self.outside.is_reading()
    }
}

impl Frontier {
    /// The slot of a host that is in memory or may come in.
    pub(super) fn find_or_admit(&mut self, now: Instant, name: &str) -> Option<HostId> {
        let name = host_key(name);
        match self.names.get(name) {
            Some(id) => Some(*id),
            None => (self.door.is_clear() && self.make_room(now)).then(|| self.admit(name)),
        }
    }

    /// The slot of a host that must be in memory.
    pub(super) fn find_or_insist(&mut self, now: Instant, name: &str) -> HostId {
        let name = host_key(name);
        if let Some(id) = self.names.get(name) {
            return *id;
        }
        self.make_room(now);
        let id = self.admit(name);
        self.note_idle(id);
        id
    }

    fn admit(&mut self, name: &str) -> HostId {
        let id = self.door.free.pop().unwrap_or_else(|| {
            self.hosts.push(Host::new(""));
            (self.hosts.len() - 1) as HostId
        });
        let mut host = Host::new(name);
        if let Some(past) = self.door.fallen.take(name) {
            (host.failures_in_row, host.given_up) = (past.failures_in_row, past.given_up);
        }
        self.hosts[id as usize] = host;
        self.names.insert(name.into(), id);
        self.door.met += 1;
        id
    }

    fn forget(&mut self, id: HostId) {
        let host = std::mem::replace(&mut self.hosts[id as usize], Host::new(""));
        self.names.remove(&host.name);
        let past = Past { failures_in_row: host.failures_in_row, given_up: host.given_up };
        if past.failures_in_row > 0 || past.given_up.is_some() {
            self.door.fallen.note(host.name, past);
        }
        self.door.free.push(id);
    }

    /// A host has nothing to do from now on.
    pub(super) fn note_idle(&mut self, id: HostId) {
        let door = &mut self.door;
        if door.idle.len() >= door.idle_max {
            let hosts = &self.hosts;
            door.idle.retain(|(number, id)| hosts[*id as usize].is_idle_since(*number));
            door.idle_max = 2 * door.idle.len() + ROW_ROOM;
        }
        door.numbers += 1;
        self.hosts[id as usize].idle_number = door.numbers;
        door.idle.push_back((door.numbers, id));
        door.is_shut = false;
    }

    /// Whether there is room for another host, when need be that of one that is forgotten.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.names.len() < self.door.hosts_max {
            return true;
        }
        while !self.door.is_shut {
            let Some((number, id)) = self.door.idle.pop_front() else { break };
            let host = &self.hosts[id as usize];
            if !host.is_idle_since(number) {
                continue;
            }
            // Hosts sleep out their delay in the calendar, and an awaited one has something to do.
            let may_go = host.not_before <= now && !host.is_awaited();
            debug_assert!(may_go, "{} is idle and cannot be forgotten", host.name);
            if !may_go {
                self.door.idle.push_back((number, id));
                break;
            }
            self.forget(id);
            if self.names.len() < self.door.hosts_max {
                return true;
            }
        }
        self.door.is_shut = true;
        false
    }

    /// Queues a URL whose host is not in memory.
    pub(super) fn wait_outside(&mut self, url: &Url, depth: u16, spool: &mut Spool) {
        let outside = &mut self.door.outside;
        self.ram_bytes -= outside.ram_bytes() as u64;
        outside.push(depth, url.as_str(), 0);
        self.door.outside_urls += 1;
        let has_room = self.ram_bytes + outside.ram_bytes() as u64 <= self.rules.ram_bytes_max;
        if outside.tail_bytes() >= if has_room { BLOCK_BYTES } else { SHORT_TAIL_BYTES } {
            spill_tail(outside, spool);
        }
        self.ram_bytes += outside.ram_bytes() as u64;
    }

    /// A block of those outside came back.
    pub fn returned_outside(&mut self, batch: UrlBatch) {
        self.ram_bytes += batch.ram_bytes() as u64;
        self.door.outside.returned(batch);
    }

    /// Lets some come in from outside; whether any did.
    pub(super) fn let_in(&mut self, now: Instant, spool: &mut Spool) -> bool {
        let mut came_in = false;
        for _ in 0..COME_IN_MAX {
            if !self.door.can_open() || !self.make_room(now) {
                break;
            }
            let outside = &mut self.door.outside;
            let before = outside.ram_bytes() as u64;
            let next = outside.pop();
            self.ram_bytes -= before - outside.ram_bytes() as u64;
            if let Some((depth, text)) = next {
                self.door.outside_urls -= 1;
                // Every text in a queue came out of a `Url`; one that does not parse again was damaged on disk.
                let Ok(url) = Url::from_canonical(&text) else {
                    self.queued -= 1;
                    continue;
                };
                let name = host_key(url.host());
                let id = self.names.get(name).copied().unwrap_or_else(|| self.admit(name));
                self.queue(now, id, &url, depth, spool);
                came_in = true;
                continue;
            }
            match outside.refill() {
                Refill::Taken => {}
                Refill::Read(block) => spool.read(block, ReadFor::Outside),
                Refill::Empty => {
                    self.queued -= self.door.outside_urls;
                    self.door.outside_urls = 0;
                }
            }
        }
        came_in
    }
}

impl Host {
    fn is_idle_since(&self, number: u64) -> bool {
        self.state == State::Idle && self.idle_number == number
    }

    /// Whether another host waits for the robots.txt of one of its origins.
    fn is_awaited(&self) -> bool {
        self.origins.iter().any(|origin| !origin.waiters.is_empty())
    }
}

/// What is kept of a fallen host is a small part of a host, and few have failed when they are forgotten.
const HOSTS_PER_FALLEN: usize = 4;
const FALLEN_MIN: usize = 1_024;
/// URLs that come in at once.
const COME_IN_MAX: usize = 64;
