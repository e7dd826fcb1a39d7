//! Where URLs wait: in the backlogs of hosts, outside while their host has no room, or for the crossing.
//!
//! Decides: how many bytes all of them hold ([`memory`]), and what goes to disk when that is too much; which URL comes
//! in next from [`outside`]; in which order the URLs of a host come ([`backlog`]).
//! Some URLs wait until this shard has nothing else to do: those that belong to another shard, where shards cross over
//! (`exchange.mode`), or whose page advised against them in such a crawl.
//! Invariants: every change of a backlog is accounted for; `waiting` counts each URL from its offer to its end.
//! Leaves to others: which hosts have room ([`super::hosts`]), which URLs are worth most ([`super::order`]).

mod backlog;
mod host_queue;
mod kind_lanes;
mod memory;
mod outside;
mod overflow;
mod pool;
mod spilling;
mod stack;
mod waiting;

pub use backlog::{Backlog, Level, PUT_OFF_MAX, QueuedUrl, RETRIES_MAX, RETRIES_MIN, TOP_LEVEL, Taken, levels};
pub use host_queue::{Discipline, Fifo};
pub use kind_lanes::QueueTurn;
pub use outside::Waiting;
pub use waiting::{Ticket, WaitingUrls};

use crate::frontier::settings::Settings;
use crate::hops::Hops;
use crate::job::HostId;
use crate::kinds::KindFacts;
use crate::spool::Spool;
use memory::UrlMemory;
use outside::{LANES, OutsideItem, OutsideLanes};
use ringcrawl_url::{SiteKey, Url};

/// The waiting URLs of a shard.
#[derive(Debug)]
pub struct UrlQueues {
    pub(in crate::frontier) memory: UrlMemory,
    outside: OutsideLanes,
    /// URLs of other shards, which wait here until this shard has nothing else to do.
    crossing: OutsideLanes,
    /// The number of them that came in and have not ended.
    crossed: u64,
    /// URLs that wait or are being fetched.
    waiting: u64,
    crosses_over: bool,
    host_head_urls: usize,
    rng_seed: u64,
}

/// The place of a URL among those of its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the queue, at this level.
    Queue(Level),
    /// In the lane of this kind, without a turn in the queue before.
    Beside(KindFacts),
}

impl UrlQueues {
    /// Nothing waits.
    pub fn new(settings: &Settings) -> UrlQueues {
        UrlQueues {
            memory: UrlMemory::new(settings.ram_bytes_max),
            outside: OutsideLanes::new(0),
            crossing: OutsideLanes::new(LANES as u16),
            crossed: 0,
            waiting: 0,
            crosses_over: settings.crosses_over,
            host_head_urls: settings.host_head_urls,
            rng_seed: settings.rng_seed,
        }
    }

    /// URLs that wait or are being fetched.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Whether no URL waits outside or for the crossing.
    pub fn none_is_outside(&self) -> bool {
        self.outside.is_empty() && self.crossing.is_empty()
    }

    /// A URL was offered.
    pub fn begins(&mut self) {
        self.waiting += 1;
    }

    /// A URL with these bits of `Hops` has ended.
    pub fn ends(&mut self, depth: u16) {
        self.waiting -= 1;
        if self.crosses_over && Hops::from_bits(depth).is_deferred() {
            self.crossed = self.crossed.saturating_sub(1);
        }
    }

    /// A URL was damaged on disk.
    pub fn is_lost(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Changes the backlog of a host, whose memory is counted before and after.
    #[inline]
    pub fn change<T>(&mut self, backlog: &mut Backlog, change: impl FnOnce(&mut Backlog) -> T) -> T {
        let before = backlog.ram_bytes();
        let result = change(backlog);
        // Less than before if it frees what was taken.
        self.memory.changed(before, backlog.ram_bytes());
        result
    }

    /// A URL was parked for its origin's robots.txt, in this many bytes.
    pub fn parked(&mut self, bytes: u64) {
        self.memory.changed(0, bytes);
    }

    /// A parked URL left its origin.
    pub fn unparked(&mut self, text: &str) {
        self.memory.changed(WaitingUrls::entry_bytes(text) as u64, 0);
    }

    /// Adds a URL to the backlog of host `id`, in a table of this many slots.
    pub fn push(
        &mut self,
        (id, backlog): (HostId, &mut Backlog),
        slots: usize,
        place: Place,
        (ticket, url): (Ticket, &Url),
    ) {
        let head_urls = self.head_urls();
        self.grow((id, backlog), slots, |backlog| match place {
            Place::Queue(level) => backlog.push(level, ticket, url.as_str(), head_urls),
            Place::Beside(kind) => backlog.push_beside(kind, ticket, url.as_str(), head_urls),
        });
    }

    /// Sends a URL of host `id` to the lane of its kind.
    pub fn lower(&mut self, (id, backlog): (HostId, &mut Backlog), slots: usize, kind: KindFacts, entry: &QueuedUrl) {
        let head_urls = self.head_urls();
        self.grow((id, backlog), slots, |backlog| backlog.lower(kind, entry, head_urls));
    }

    /// URLs of a queue that stay in memory: a head cannot be spilled.
    fn head_urls(&self) -> usize {
        if self.memory.has_room() { self.host_head_urls } else { 1 }
    }

    /// Changes a backlog and notes if its tail has become worth spilling.
    #[inline]
    fn grow(&mut self, (id, backlog): (HostId, &mut Backlog), slots: usize, change: impl FnOnce(&mut Backlog)) {
        let long_tail_bytes = self.memory.long_tail_bytes(slots);
        let tail_before = backlog.tail_bytes();
        self.memory.note_queued(slots);
        self.change(backlog, change);
        if tail_before < long_tail_bytes && backlog.tail_bytes() >= long_tail_bytes {
            self.memory.note_long_tail(id);
        }
    }

    /// A block of a backlog came back. While it was on its way, some tails cannot be spilled however long they are.
    pub fn returned(&mut self, (id, backlog): (HostId, &mut Backlog), slots: usize, batch: WaitingUrls) {
        self.change(backlog, |backlog| backlog.returned(batch));
        if backlog.tail_bytes() >= self.memory.long_tail_bytes(slots) {
            self.memory.note_long_tail(id);
        }
    }

    /// Sends the tails of a backlog to disk, except short ones.
    pub fn spill(&mut self, backlog: &mut Backlog, spool: &mut Spool) {
        if backlog.has_long_tail() {
            self.change(backlog, |backlog| backlog.spill(spool));
        }
    }

    /// Whether a URL waits until this shard has nothing else to do.
    pub fn waits_to_cross(&self, ticket: Ticket) -> bool {
        self.crosses_over && ticket.hops().is_deferred()
    }

    /// Queues a URL that waits for that.
    pub fn push_crossing(&mut self, url: &Url, site: SiteKey, ticket: Ticket, spool: &mut Spool) {
        push_to(&mut self.crossing, &mut self.memory, (url, site, ticket), spool);
    }

    /// Queues a URL outside.
    pub fn push_outside(&mut self, url: &Url, site: SiteKey, ticket: Ticket, spool: &mut Spool) {
        push_to(&mut self.outside, &mut self.memory, (url, site, ticket), spool);
    }

    /// Whether URLs of `site` may wait outside: two sites can share a counter.
    pub fn has_outside_of(&self, site: SiteKey) -> bool {
        self.outside.has_of(site)
    }

    /// Whether a URL that waits outside may be able to come in.
    pub fn is_outside_ready(&self) -> bool {
        self.outside.is_ready()
    }

    /// There may be room for hosts now that was not there before.
    pub fn look_outside_again(&mut self) {
        self.outside.look_again();
    }

    /// Whether a URL that waits to cross may come in.
    pub fn may_cross(&self) -> bool {
        let waiting = self.crossing.urls();
        self.crossing.is_ready() && self.crossed < CROSSED_MAX && self.waiting <= waiting + self.crossed
    }

    /// Takes the next URL that may cross.
    pub fn next_crossing(&mut self, spool: &mut Spool) -> Option<Waiting> {
        'lanes: while self.may_cross() {
            for _ in 0..LANES {
                match look_at(&mut self.crossing, &mut self.memory, self.rng_seed, spool, |_| true) {
                    OutsideItem::In(waiting) => {
                        self.crossed += 1;
                        return Some(waiting);
                    }
                    OutsideItem::Empty => {}
                    OutsideItem::Lost(urls) => {
                        self.waiting -= urls;
                        continue 'lanes;
                    }
                }
            }
            self.crossing.hold_up();
        }
        None
    }

    /// Takes the next URL that waits outside and `may_come` in.
    pub fn next_from_outside(
        &mut self,
        spool: &mut Spool,
        mut may_come: impl FnMut(&Waiting) -> bool,
    ) -> Option<Waiting> {
        let mut in_vain = 0;
        while self.outside.is_ready() {
            if in_vain == LANES {
                self.outside.hold_up();
                return None;
            }
            match look_at(&mut self.outside, &mut self.memory, self.rng_seed, spool, &mut may_come) {
                OutsideItem::In(waiting) => return Some(waiting),
                OutsideItem::Empty => in_vain += 1,
                OutsideItem::Lost(urls) => self.waiting -= urls,
            }
        }
        None
    }

    /// A block of the lanes came back.
    pub fn returned_outside(&mut self, lane: u16, batch: WaitingUrls) {
        self.memory.changed(0, batch.ram_bytes() as u64);
        let lanes = if usize::from(lane) < LANES { &mut self.outside } else { &mut self.crossing };
        lanes.returned(lane, batch);
    }
}

fn push_to(
    lanes: &mut OutsideLanes,
    memory: &mut UrlMemory,
    (url, site, ticket): (&Url, SiteKey, Ticket),
    spool: &mut Spool,
) {
    memory.changed(lanes.ram_bytes(), 0);
    lanes.push(url, site, ticket, memory.bytes_left(), spool);
    memory.changed(0, lanes.ram_bytes());
}

fn look_at(
    lanes: &mut OutsideLanes,
    memory: &mut UrlMemory,
    rng_seed: u64,
    spool: &mut Spool,
    may_come: impl FnOnce(&Waiting) -> bool,
) -> OutsideItem {
    let before = lanes.ram_bytes();
    let look = lanes.look(spool, |url| SiteKey::of_host(rng_seed, url.host()), may_come);
    memory.changed(before, lanes.ram_bytes());
    look
}

/// URLs that cross over at once.
const CROSSED_MAX: u64 = 1_024;
