//! The frontier: which URL is fetched next, and when a host may be queried again.
//!
//! Five owners each decide one thing: [`hosts`] what is known of hosts and who is in memory, [`queue`] where URLs
//! wait, [`order`] which of them come first, [`slots`] which host has its turn, [`robots`] which rules are in memory.
//! None of them knows the frontier, and each uses those before it alone: `queue`, `robots`, `hosts`, then `slots` and
//! `order`. Here they meet: a URL is offered; a host's turn is one step ([`turn`]): resolve its name, or fetch its
//! robots.txt ([`robots_fetch`]), or fetch its next URL that robots.txt allows; the result of a job moves the host on
//! ([`finish`]).
//!
//! Invariants: one job per host at a time, or as many as its line allows; no request before `not_before` of its host
//! and the [`Ledger`]'s instant for its address; no page without a verdict of robots.txt; every URL offered ends
//! exactly once, as a fetched job or in [`Frontier::take_settled`].
//! Limits: memory for waiting URLs by `frontier.ram_bytes_max`, the rest in the spool; hosts by `frontier.hosts_max`;
//! a site has at most its share of hosts, fetches and lookups ([`crate::site_shares`]); rules by
//! `robots.ram_bytes_max`; concurrent name lookups by `dns.in_flight_max`.

mod finish;
mod hosts;
mod order;
mod queue;
mod resume;
mod robots;
mod robots_fetch;
mod settings;
mod slots;
#[cfg(test)]
mod tests;
mod turn;
mod url_choice;

use std::sync::Arc;

pub use crate::politeness::Ledger;
pub use finish::End;
pub use hosts::Rest;
pub(crate) use hosts::host_key;
pub use order::{Bound, Cost, LinkQuotas, PartsBySite, RANK_BYTES_MAX, Ranks, SiteBounds, SiteQuotas, allowance};
pub use queue::{Ticket, WaitingUrls};
pub use robots::{RobotsAnswer, RobotsRequest, RobotsResult};
pub use settings::Settings;

use crate::job::{FetchJob, HostId};
use crate::scope::Scope;
use crate::spool::Spool;
use crate::trouble::Trouble;
use crate::waits::Waits;
use hosts::{HostNotes, HostState, HostTable, Review};
use order::Order;
use queue::{QueuedUrl, UrlQueues, Waiting};
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Instant, WallClock};
use ringcrawl_robots::Fuel;
use ringcrawl_url::{SiteKey, Url};
use robots::RobotsFiles;
use slots::Slots;

/// The waiting URLs of one shard.
#[derive(Debug)]
pub struct Frontier {
    hosts: HostTable,
    /// What the log and people must know of hosts.
    notes: HostNotes,
    pub(crate) review: Review,
    pub(crate) queue: UrlQueues,
    pub(crate) order: Order,
    pub(crate) slots: Slots,
    pub(crate) robots: RobotsFiles,
    ledger: Arc<Ledger>,
    scope: Scope,
    settings: Settings,
    ended_unfetched: Vec<EndedUnfetched>,
    /// The work left before the shard's sockets get their turn.
    fuel: Fuel,
    next_job: u64,
    /// The number of random numbers drawn.
    draws: u64,
}

/// A URL that ended without a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndedUnfetched {
    /// The URL.
    pub url: Url,
    /// Its number in the URL log.
    pub number: u64,
    /// The number of requests made for it.
    pub tries: u8,
    /// The reason.
    pub failure: Failure,
}

impl Frontier {
    /// An empty frontier.
    pub fn new(settings: Settings, ledger: Arc<Ledger>) -> Frontier {
        Frontier {
            hosts: HostTable::new(&settings),
            notes: HostNotes::default(),
            review: Review::default(),
            queue: UrlQueues::new(&settings),
            order: Order::new(&settings),
            slots: Slots::new(&settings),
            robots: RobotsFiles::new(settings.rules_bytes_max),
            ledger,
            scope: Scope::default(),
            settings,
            ended_unfetched: Vec::new(),
            fuel: Fuel::new(TURN_FUEL),
            next_job: 0,
            draws: 0,
        }
    }

    /// The same frontier, for a crawl with a scope: it is checked again when a URL's turn comes.
    pub fn within(self, scope: Scope) -> Frontier {
        Frontier { scope, ..self }
    }

    /// The same frontier, for a crawl with quotas.
    pub fn budgeted(self, site_quotas: SiteQuotas, link_quotas: LinkQuotas) -> Frontier {
        Frontier { order: self.order.bounded_by(site_quotas, link_quotas), ..self }
    }

    /// The same frontier with these ranks of URLs, if it orders by ranks.
    pub fn ranked(self, ranks: Arc<Ranks>) -> Frontier {
        Frontier { order: self.order.ranked(ranks), ..self }
    }

    /// Queues a URL of `site` that was never offered before.
    pub fn offer(&mut self, now: Instant, url: &Url, site: SiteKey, ticket: Ticket, spool: &mut Spool) {
        self.queue.begins();
        if self.queue.waits_to_cross(ticket) {
            return self.queue.push_crossing(url, site, ticket, spool);
        }
        let known = self.hosts.find(url.host());
        let ticket = self.order.offered(&mut self.hosts, known, url, site, ticket);
        if self.waits_outside(now, known, url, site) {
            self.queue.push_outside(url, site, ticket, spool);
        } else {
            let linker = self.order.kinds.linker_of(&self.hosts, site, ticket);
            let id = known.unwrap_or_else(|| self.hosts.admit(url.host(), site, linker));
            self.enqueue(now, id, url, ticket, spool);
        }
    }

    /// Whether a URL must wait until its host can come in.
    fn waits_outside(&mut self, now: Instant, known: Option<HostId>, url: &Url, site: SiteKey) -> bool {
        if known.is_some_and(|id| self.hosts[id].state() != HostState::Idle) {
            return false;
        }
        // A URL that waits outside and can come in goes before it.
        let is_behind = self.queue.has_outside_of(site) || self.can_let_in();
        is_behind || !self.hosts.may_have_url(now, url.host(), site)
    }

    /// Queues a URL for its host.
    fn enqueue(&mut self, now: Instant, id: HostId, url: &Url, ticket: Ticket, spool: &mut Spool) {
        let place = self.order.place(&mut self.hosts, id, url, ticket);
        let slots = self.hosts.slots();
        let host = &mut self.hosts[id];
        self.queue.push((id, &mut host.backlog), slots, place, (ticket, url));
        if matches!(host.state(), HostState::Idle | HostState::Emptied | HostState::Resting(_)) {
            let at = host.pace.not_before();
            self.schedule(id, now, at);
        }
        if !self.queue.memory.has_room() {
            self.hosts.spill(&mut self.queue, spool);
        }
    }

    /// A block that was spilled came back.
    pub fn returned(&mut self, now: Instant, id: HostId, batch: WaitingUrls) {
        let slots = self.hosts.slots();
        let Some(host) = self.hosts.get_mut(id) else { return };
        self.queue.returned((id, &mut host.backlog), slots, batch);
        let at = host.pace.not_before();
        self.schedule(id, now, at);
    }

    /// This many pages were found to link to a URL, whether it waits here or not.
    pub fn linked_by_pages(&mut self, now: Instant, url: &Url, links: u16, spool: &mut Spool) {
        let Some(ticket) = self.order.importance.linked(url, links) else { return };
        // If its host is not in memory, or has nothing here, it waits outside.
        let id = self.hosts.find(url.host()).filter(|id| self.hosts[*id].backlog.has_queued());
        if let Some(id) = id {
            self.order.importance.is_promoted(url);
            self.enqueue(now, id, url, ticket, spool);
        }
    }

    fn can_let_in(&self) -> bool {
        self.queue.is_outside_ready() && !self.hosts.is_full()
    }

    /// Lets some URLs come in from outside; returns whether any did.
    fn let_in(&mut self, now: Instant, spool: &mut Spool) -> bool {
        while let Some(waiting) = self.queue.next_crossing(spool) {
            if self.hosts.make_room(now) {
                self.come_in(now, &waiting, spool);
            } else {
                self.queue.push_outside(&waiting.url, waiting.site, waiting.ticket, spool);
            }
        }
        for came_in in 0..COME_IN_MAX {
            let hosts = &mut self.hosts;
            let may_come =
                |waiting: &Waiting| hosts.may_have_url(now, waiting.url.host(), waiting.site) && hosts.make_room(now);
            let Some(waiting) = self.queue.next_from_outside(spool, may_come) else { return came_in > 0 };
            self.come_in(now, &waiting, spool);
        }
        true
    }

    fn come_in(&mut self, now: Instant, Waiting { url, site, ticket }: &Waiting, spool: &mut Spool) {
        let id = self.hosts.find(url.host()).unwrap_or_else(|| {
            let linker = self.order.kinds.linker_of(&self.hosts, *site, *ticket);
            self.hosts.admit(url.host(), *site, linker)
        });
        self.enqueue(now, id, url, *ticket, spool);
    }

    /// The next job, if anything may be fetched now.
    pub fn next_job(&mut self, now: Instant, spool: &mut Spool) -> Option<FetchJob> {
        self.slots.fetch_slots.look(now);
        self.slots.wake(now, &mut self.hosts, &self.settings);
        for id in self.order.competition.call(&mut self.hosts) {
            self.slots.make_ready(&mut self.hosts, id);
        }
        self.let_in(now, spool);
        // Bounded, so that a long list of hosts with nothing to fetch does not hold up the shard's sockets.
        for _ in 0..STEPS_MAX {
            if self.fuel.is_spent() {
                return None;
            }
            let Some(id) = self.slots.next(&self.hosts) else {
                if self.let_in(now, spool) {
                    continue;
                }
                return None;
            };
            let job = self.take_turn(id, now, spool);
            // It may have put off many URLs that had come back from disk.
            if job.is_none() && !self.queue.memory.has_room() {
                self.hosts.spill(&mut self.queue, spool);
            }
            self.slots.had_turn(&self.hosts, id, job.as_ref().map(|job| job.kind));
            if job.is_some() {
                return job;
            }
        }
        None
    }

    /// The sockets have had their turn: there may be work again.
    pub fn begin_turn(&mut self, now: Instant) {
        self.hosts.rests.tell(&self.ledger, now);
        self.fuel = Fuel::new(TURN_FUEL);
        self.review.begin_turn();
    }

    /// When to call again; `Instant::ZERO` for now, `None` if nothing waits for the clock.
    pub fn next_due(&self) -> Option<Instant> {
        if self.can_let_in() || self.queue.may_cross() { Some(Instant::ZERO) } else { self.slots.next_due() }
    }

    /// Takes the URLs that ended without a request since the last call.
    pub fn take_settled(&mut self) -> Vec<EndedUnfetched> {
        std::mem::take(&mut self.ended_unfetched)
    }

    /// Takes the hosts that have asked for a longer rest since the last call.
    pub fn take_rests(&mut self) -> std::vec::Drain<'_, Rest> {
        self.notes.take_rests()
    }

    /// Whether no host has anything to do, now or later.
    pub fn is_idle(&self) -> bool {
        self.hosts.active() == self.hosts.resting() && self.queue.none_is_outside()
    }

    /// The number of hosts per kind of wait.
    pub fn awaited(&self) -> Waits {
        self.hosts.waits()
    }

    /// URLs that wait or are being fetched.
    pub fn queued(&self) -> u64 {
        self.queue.waiting()
    }

    /// Hosts found; one that was forgotten meanwhile counts each time.
    pub fn hosts(&self) -> u64 {
        self.hosts.met()
    }

    /// Hosts in memory that have something to do, now or later.
    pub fn hosts_left(&self) -> u64 {
        (self.hosts.active() - self.hosts.resting()) as u64
    }

    /// Moves the first ready host for which `is_better` holds to the front, among as many as one turn looks at;
    /// returns whether there is one.
    pub fn prefer(&mut self, now: Instant, is_better: impl Fn(&str) -> bool) -> bool {
        self.slots.wake(now, &mut self.hosts, &self.settings);
        self.slots.prefer(STEPS_MAX, |id| is_better(&self.hosts[id].name))
    }

    /// Hosts in memory.
    pub fn hosts_in_memory(&self) -> usize {
        self.hosts.len()
    }

    /// Bytes of waiting URLs in memory.
    pub fn ram_bytes(&self) -> u64 {
        self.queue.memory.bytes()
    }

    /// Whether there is no memory for the block that a new URL would be part of on disk. Those that wait for their
    /// hosts to come in get half of it: a site whose hosts find no room leaves the rest to others.
    #[inline]
    pub fn is_crowded_out(&mut self, now: Instant, url: &Url, site: impl FnOnce() -> SiteKey, spool: &Spool) -> bool {
        let (used, most) = (spool.reference_bytes(), self.queue.memory.references_bytes_max());
        used >= most / 2 && self.has_no_place(now, url, site(), used >= most)
    }

    #[cold]
    fn has_no_place(&mut self, now: Instant, url: &Url, site: SiteKey, is_full: bool) -> bool {
        let known = self.hosts.find(url.host());
        let waits_in_lane = self.settings.crosses_over || self.waits_outside(now, known, url, site);
        waits_in_lane || is_full && known.is_some_and(|id| self.hosts[id].backlog.has_spilled())
    }

    /// The last problem of a host that has not recovered since, with its name.
    pub fn trouble(&mut self) -> Option<(&str, &Trouble)> {
        self.notes.trouble(&self.hosts)
    }

    /// The URLs offered until `order.kinds.end_links()` are the links of `job`'s response.
    pub fn begin_links(&mut self, job: &FetchJob) {
        self.order.kinds.begin_links(&mut self.hosts, job);
    }

    /// The same for links that another shard found. If that shard may have pages of the same hosts, the page is
    /// unknown. Lookups of new names count for `linker`.
    pub fn begin_strangers_links(&mut self, linker: SiteKey) {
        self.order.kinds.begin_strangers_links(linker, self.settings.shares_hosts);
    }

    /// Another scope takes effect, also for queued URLs.
    pub fn set_scope(&mut self, scope: Scope) {
        self.scope = scope;
        self.review.scope_changed();
    }

    /// The wall clock was set.
    pub fn set_clock(&mut self, clock: WallClock) {
        self.settings.clock = clock;
        self.order.site_quotas.set_clock(clock);
        self.review.clock_changed();
    }

    /// Looks at some more hosts after such a change, once a turn.
    pub fn review(&mut self, now: Instant) {
        let slots = self.hosts.slots();
        let Some(part) = self.review.next_part(slots) else { return };
        if part.has_new_clock && part.slots.start == 0 {
            self.notes.note_unmet(now, &self.hosts.rests);
        }
        let has_blocks = part.has_new_scope && !self.scope.blocks().is_empty();
        for id in part.slots.clone() {
            if part.has_new_clock {
                self.notes.note_again(now, &mut self.hosts[id], &self.settings);
            }
            if !has_blocks || !self.scope.blocks().blocks_host(&self.hosts[id].name) {
                continue;
            }
            match self.hosts[id].state() {
                HostState::Waiting(_) => self.slots.make_ready(&mut self.hosts, id),
                HostState::Parked => self.review.is_parked(id),
                // It is checked when it continues or has nothing to do.
                HostState::Ready | HostState::Busy | HostState::Reading => {}
                HostState::Idle | HostState::Emptied | HostState::Resting(_) => {}
            }
        }
        let mut parked = self.review.end_part(part.slots.end, slots);
        // A slot may have another host by now.
        let (hosts, blocks) = (&self.hosts, self.scope.blocks());
        parked.retain(|id| hosts[*id].state() == HostState::Parked && blocks.blocks_host(&hosts[*id].name));
        if !parked.is_empty() {
            let keys = parked.iter().flat_map(|id| hosts[*id].keys(&self.settings)).collect();
            self.slots.end_waits(&mut self.hosts, &parked, keys);
        }
    }

    /// Makes a host ready, now or at `at`. A host whose name is blocked does not wait: its URLs end.
    fn schedule(&mut self, id: HostId, now: Instant, at: Instant) {
        let is_blocked = at > now && self.scope.blocks().blocks_host(&self.hosts[id].name);
        self.slots.schedule(&mut self.hosts, id, now, if is_blocked { now } else { at });
    }

    fn end_unfetched(&mut self, entry: QueuedUrl, failure: Failure) {
        self.fuel.spend(END_WORK);
        let QueuedUrl { url, ticket, attempt, .. } = entry;
        self.queue.ends(ticket.depth);
        self.ended_unfetched.push(EndedUnfetched { url, number: ticket.number, tries: attempt, failure });
    }

    /// The URLs offered until `order.kinds.end_links()` are links of some page of a host.
    #[cfg(test)]
    fn begin_links_of(&mut self, host: &str) {
        self.order.kinds.begin_links_of(self.hosts.find(host));
    }
}

/// Work between two turns of the sockets: two milliseconds. The verdict that ends it and the usage check that follows
/// may each take another `VERDICT_FUEL`.
const TURN_FUEL: u64 = 1 << 22;
/// Cost of ending a URL without a request and recording that: some 15 microseconds.
const END_WORK: u64 = 32_768;
/// Hosts looked at per call of `next_job`.
const STEPS_MAX: usize = 256;
/// URLs that come in at once.
const COME_IN_MAX: usize = 64;
