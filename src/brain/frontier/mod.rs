//! The frontier: which URL is fetched next, and when a host may be queried again.
//!
//! Hosts wait in a calendar ([`calendar`]) until their delay is over, then among the ready hosts, whose turns rotate
//! by site ([`ready_hosts`]), so that no site, however large or slow, takes more than its turn. A host's turn is one
//! step ([`turn`]): resolve its name, or fetch its robots.txt, or fetch its next URL that robots.txt allows. The
//! result of a job moves the host on ([`finish`]).
//!
//! Invariants: one job per host at a time, or as many as its line allows ([`visit`]); no request before `not_before`
//! of its host and the [`Ledger`]'s instant for its address; no page without a verdict of robots.txt; every URL
//! offered ends exactly once, as a fetched job or in [`Frontier::settled`].
//! Limits: memory for waiting URLs by `frontier.ram_bytes_max`, the rest in the spool; hosts by `frontier.hosts_max`
//! ([`host_table`]); a site has at most its share of hosts, fetches and lookups ([`crate::site_shares`]); rules by
//! `robots.ram_bytes_max` ([`rules_cache`]); concurrent name lookups by `dns.in_flight_max`.

mod addresses;
mod backlog;
mod calendar;
mod competition;
mod failure_history;
mod fetch_slots;
mod finish;
mod health;
mod host;
mod host_failures;
mod host_table;
mod importance;
mod kind_evidence;
mod kind_lanes;
mod level_turns;
mod link_counts;
mod link_quotas;
mod lookup_queue;
mod memory;
mod origin;
mod outside;
mod overflow;
mod parking;
mod parts;
mod pool;
mod queue;
mod ranks;
mod ready_hosts;
mod resolution;
mod rests;
mod review;
mod robots_fetch;
mod robots_files;
mod robots_message;
mod rules_cache;
mod settings;
mod site_quotas;
mod site_round_robin;
mod slow_turns;
mod speed_history;
mod stack;
#[cfg(test)]
mod tests;
mod turn;
mod turn_queues;
mod visit;
mod waiting;
mod waits;

use std::collections::HashMap;
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub use crate::politeness::Ledger;
pub use finish::End;
pub use link_counts::ENTRY_BYTES as LINK_COUNT_BYTES;
pub use link_quotas::{LinkQuotas, allowance};
pub use ranks::{BYTES_EACH_MAX as RANK_BYTES_MAX, Ranks};
pub use rests::Rest;
pub use robots_message::{RobotsAnswer, RobotsRequest, RobotsResult};
pub use settings::Settings;
pub use site_quotas::{Bound, Cost, PartsBySite, SiteBounds, SiteQuotas};
pub use waiting::{Ticket, WaitingUrls};

use self::competition::Competition;
use crate::job::{FetchJob, HostId, JobKind};
use crate::kinds::KindFacts;
use crate::politeness::{Complaint, Key, is_overload};
use crate::scope::Scope;
use crate::spool::{Block, ReadFor, Spool};
use crate::waits::Waits;
use backlog::QueuedUrl;
use calendar::{Calendar, Event};
use fetch_slots::{FetchSlots, SLOW_AFTER};
use host::State;
use host_failures::{Blame, kind_of};
use host_table::HostTable;
use importance::Importance;
use kind_evidence::KindEvidence;
use lookup_queue::LookupQueue;
use memory::{UrlMemory, spill_tail};
use outside::OutsideLanes;
use ready_hosts::ReadyHosts;
use review::Review;
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_robots::Fuel;
use ringcrawl_url::{SiteKey, Url};
use robots_files::RobotsFiles;
use rules_cache::RulesCache;
use turn_queues::TurnQueues;

/// The waiting URLs of one shard.
#[derive(Debug)]
pub struct Frontier {
    hosts: HostTable,
    outside: OutsideLanes,
    /// URLs of other shards, which wait here until this shard has nothing else to do.
    crossing: OutsideLanes,
    /// The number of them that came in and have not ended.
    crossed: u64,
    rules_cache: RulesCache,
    robots_files: RobotsFiles,
    ready: ReadyHosts,
    competition: Competition,
    places: FetchSlots,
    calendar: Calendar,
    turn_queues: TurnQueues,
    lookups: LookupQueue,
    evidence: KindEvidence,
    importance: Importance,
    budgets: SiteQuotas,
    allowances: LinkQuotas,
    ledger: Arc<Ledger>,
    scope: Scope,
    settings: Settings,
    memory: UrlMemory,
    next_job: u64,
    queued: u64,
    /// The work left before the shard's sockets get their turn.
    fuel: Fuel,
    settled: Vec<Settled>,
    rests: Vec<Rest>,
    /// Rests from the log for hosts that other shards are querying now: they must rest until then.
    untold_rests: HashMap<Key, Instant>,
    /// Hosts with recent problems, the latest last.
    troubled: Vec<HostId>,
    review: Review,
    /// The number of random numbers drawn.
    draws: u64,
}

/// A URL that ended without a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
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
            hosts: HostTable::new(settings.hosts_max, settings.politeness.clone()).in_order(settings.discipline()),
            outside: OutsideLanes::new(0),
            crossing: OutsideLanes::new(outside::LANES as u16),
            crossed: 0,
            rules_cache: RulesCache::new(settings.rules_bytes_max),
            robots_files: RobotsFiles::new(),
            ready: ReadyHosts::new(settings.levels()),
            competition: Competition::default(),
            places: FetchSlots::new(settings.in_flight_max),
            calendar: Calendar::default(),
            turn_queues: TurnQueues::default(),
            lookups: LookupQueue::new(settings.resolving_max),
            evidence: KindEvidence::default(),
            importance: Importance::new(&settings),
            budgets: SiteQuotas::default(),
            allowances: LinkQuotas::default(),
            ledger,
            scope: Scope::default(),
            memory: UrlMemory::new(settings.ram_bytes_max),
            settings,
            next_job: 0,
            queued: 0,
            fuel: Fuel::new(TURN_FUEL),
            settled: Vec::new(),
            rests: Vec::new(),
            untold_rests: HashMap::new(),
            troubled: Vec::new(),
            review: Review::default(),
            draws: 0,
        }
    }

    /// The same frontier, for a crawl with a scope: it is checked again when a URL's turn comes.
    pub fn within(self, scope: Scope) -> Frontier {
        Frontier { scope, ..self }
    }

    /// The same frontier, for a crawl with budgets and allowances.
    pub fn budgeted(self, budgets: SiteQuotas, allowances: LinkQuotas) -> Frontier {
        Frontier { budgets, allowances, ..self }
    }

    /// The host of a URL answered an earlier run.
    pub fn was_answered(&mut self, url: &Url) {
        self.evidence.was_answered(url.host());
    }

    /// What an earlier run has spent on a URL.
    pub fn replayed(&mut self, url: &Url, site: SiteKey, cost: Cost) {
        self.budgets.replayed(url.host(), self.budgets.key(url, site), cost);
    }

    /// An earlier run had a page of a site.
    pub fn had_page(&mut self, site: SiteKey) {
        self.allowances.took(site);
    }

    /// Requests of hosts and sites that have no budget or allowance because there was no room.
    pub fn uncounted(&self) -> u64 {
        self.budgets.uncounted() + self.allowances.uncounted()
    }

    /// Queues a URL of `site` that was never offered before.
    pub fn offer(&mut self, now: Instant, url: &Url, site: SiteKey, ticket: Ticket, spool: &mut Spool) {
        self.queued += 1;
        if self.waits_to_cross(ticket) {
            return self.wait_to_cross(url, site, ticket, spool);
        }
        let known = self.hosts.find(url.host());
        let ticket = self.found_by(known, url, site, ticket);
        self.importance.came(url, ticket);
        let is_active = known.is_some_and(|id| self.hosts[id].state() != State::Idle);
        // A URL that waits outside and can come in goes before it.
        let is_behind = self.outside.has_of(site) || self.can_let_in();
        if is_active || !is_behind && self.hosts.may_have_url(now, url.host(), site) {
            let linker = self.linker_of(site, ticket);
            let id = known.unwrap_or_else(|| self.hosts.admit(url.host(), site, linker));
            self.queue(now, id, url, ticket, spool);
        } else {
            self.wait_outside(url, site, ticket, spool);
        }
    }

    /// Queues a URL for its host.
    fn queue(&mut self, now: Instant, id: HostId, url: &Url, ticket: Ticket, spool: &mut Spool) {
        let long_tail_bytes = self.memory.long_tail_bytes(self.hosts.slots());
        // A head cannot be spilled.
        let head_urls = if self.memory.has_room() { self.settings.host_head_urls } else { 1 };
        let level = self.importance.level(url);
        let is_beside = self.waits_beside(id, ticket);
        let standing = self.standing(id, ticket);
        let host = &mut self.hosts[id];
        host.standing = standing;
        host.has_own_urls |= !ticket.is_strangers;
        let (before, tail_before) = (host.backlog.ram_bytes(), host.backlog.tail_bytes());
        if is_beside {
            host.backlog.push_beside(KindFacts::OF_STRANGERS, ticket, url.as_str(), head_urls);
            self.evidence.came_beside();
        } else {
            host.backlog.push(level, ticket, url.as_str(), head_urls);
        }
        // Less than before if it frees what was taken.
        self.memory.changed(before, host.backlog.ram_bytes());
        if tail_before < long_tail_bytes && host.backlog.tail_bytes() >= long_tail_bytes {
            self.memory.note_long_tail(id);
        }
        if matches!(host.state(), State::Idle | State::Emptied | State::Resting(_)) {
            let at = host.pace.not_before();
            self.schedule(id, now, at);
        }
        if !self.memory.has_room() {
            self.memory.spill(&mut self.hosts, spool);
        }
    }

    fn can_let_in(&self) -> bool {
        self.outside.is_ready() && !self.hosts.is_full()
    }

    /// A block that was spilled came back.
    pub fn returned(&mut self, now: Instant, id: HostId, batch: WaitingUrls) {
        let Some(host) = self.hosts.get_mut(id) else { return };
        let before = host.backlog.ram_bytes();
        host.backlog.returned(batch);
        self.memory.changed(before, host.backlog.ram_bytes());
        let at = host.pace.not_before();
        self.schedule(id, now, at);
    }

    /// The next job, if anything may be fetched now.
    pub fn next_job(&mut self, now: Instant, spool: &mut Spool) -> Option<FetchJob> {
        self.places.look(now);
        self.wake(now);
        self.call_competitors();
        self.let_in(now, spool);
        // Bounded, so that a long list of hosts with nothing to fetch does not hold up the shard's sockets.
        for _ in 0..STEPS_MAX {
            if self.fuel.is_spent() {
                return None;
            }
            // Hosts that wait for a name go first: a slot at the name servers is free, which is rare when they wait.
            let next = self.lookups.next(|id| self.hosts[id].site).or_else(|| self.next_ready());
            let Some(id) = next else {
                if self.let_in(now, spool) {
                    continue;
                }
                return None;
            };
            let job = self.take_turn(id, now, spool);
            // It may have put off many URLs that had come back from disk.
            if job.is_none() && !self.memory.has_room() {
                self.memory.spill(&mut self.hosts, spool);
            }
            if self.turn_queues.is_called(id) {
                self.had_its_turns(id, &job);
            }
            if job.is_some() {
                return job;
            }
        }
        None
    }

    /// The sockets have had their turn: there may be work again.
    pub fn begin_turn(&mut self, now: Instant) {
        self.tell_rests(now);
        self.fuel = Fuel::new(TURN_FUEL);
        self.begin_review_turn();
    }

    fn next_ready(&mut self) -> Option<HostId> {
        let may_slow_take = self.may_slow_take();
        let Frontier { ready, places, .. } = self;
        let (may_take, is_slow) = (|site| places.may_take(site), |site| places.is_slow(site));
        ready.pop_keeper(may_take).or_else(|| ready.pop_of(may_take, is_slow, may_slow_take))
    }

    /// Whether a slot is available to a slow site; some slots are kept.
    fn may_slow_take(&self) -> bool {
        self.places.may_slow_take(self.turn_queues.places_kept())
    }

    /// The response for a job has arrived, or failed; its end may wait for us. The hands may have `measured` how long
    /// it took.
    pub fn came(&mut self, now: Instant, job: u64, measured: Option<Duration>) {
        self.places.came(now, job, measured);
    }

    /// The response for a job was cut, as it held memory that others waited for: it would have lasted longer.
    pub fn was_cut(&mut self, now: Instant, job: u64, lasted: Duration) {
        self.places.came(now, job, Some(lasted.max(SLOW_AFTER)));
    }

    /// The connection of a job was refused, or we had no memory for its response; its end may wait for us.
    pub fn came_to_nobody(&mut self, now: Instant, job: u64) {
        self.places.came_to_nobody(now, job);
    }

    /// The response for a job waits to be read, behind many others.
    pub fn waits_long(&mut self, job: u64) {
        self.places.waits_long(job);
    }

    /// The job of a fetch that must end now, for others.
    pub fn late(&mut self, now: Instant) -> Option<u64> {
        self.places.late(now)
    }

    /// When to look for a late fetch.
    pub fn next_late(&self) -> Option<Instant> {
        self.places.next_late()
    }

    /// A failed job is held back: its host stays busy until the failure counts, while its slot and its address go to
    /// others.
    pub fn is_held_back(&mut self, now: Instant, job: &FetchJob) {
        self.fetch_ended(now, job, false, false);
        let delay = self.hosts[job.host].pace.delay(&self.settings.politeness);
        self.hosts[job.host].pace.rest_until(now + delay);
        self.release_host(now, job, false);
    }

    /// When to call again; `Instant::ZERO` for now, `None` if nothing waits for the clock.
    pub fn next_due(&self) -> Option<Instant> {
        if self.lookups.is_ready() || self.can_let_in() || self.may_cross() {
            return Some(Instant::ZERO);
        }
        if self.ready.is_ready() { Some(Instant::ZERO) } else { self.calendar.next() }
    }

    /// Takes the URLs that ended without a request since the last call.
    pub fn take_settled(&mut self) -> Vec<Settled> {
        std::mem::take(&mut self.settled)
    }

    /// An earlier run was broken off before `now`: its hosts are left alone for their delay between two requests.
    pub fn rest_all(&mut self, now: Instant) {
        let politeness = &self.settings.politeness;
        let delays = [politeness.host_delay, politeness.site_delay, politeness.ip_delay, politeness.group_delay];
        self.hosts.rests().rest_all(now, delays.into_iter().max().unwrap_or_default());
    }

    /// A random number from the crawl's own generator.
    fn draw(&mut self) -> u64 {
        self.draws += 1;
        xxh3_64_with_seed(&self.draws.to_le_bytes(), self.settings.rng_seed)
    }

    /// An earlier run has noted that a host must be left alone.
    pub fn rest(&mut self, now: Instant, rest: &Rest) {
        let politeness = &self.settings.politeness;
        let asked = rest.until.since(now).min(politeness.retry_after_max.max(politeness.crawl_delay_max));
        let until = now + asked.max(rest.crawl_delay.min(politeness.crawl_delay_max));
        self.hosts.rests().rest(&rest.host, until);
        // An odd port with a rest of its own: if hosts are on several shards, these do not know its origins.
        let origin = rest.host.contains("://").then(|| Url::parse(&rest.host).ok()).flatten();
        if origin.is_none() {
            self.hosts.rests().note_trouble(&rest.host, !rest.health.troubles.is_empty());
        }
        // Shards that were not asked to leave it alone do so, too.
        let name = origin.as_ref().map_or(&*rest.host, |origin| origin.host());
        if let Some(key) = self.host_key(name).filter(|_| until > now)
            && !self.ledger.rest(key, now, until)
            && self.untold_rests.len() < UNTOLD_RESTS_MAX
        {
            let known = self.untold_rests.entry(key).or_default();
            *known = until.max(*known);
        }
    }

    /// Lets hosts of other shards rest, except those with requests in flight.
    fn tell_rests(&mut self, now: Instant) {
        let Frontier { ledger, untold_rests, .. } = self;
        untold_rests.retain(|key, until| *until > now && !ledger.rest(*key, now, *until));
    }

    /// Takes the hosts that have asked for a longer rest since the last call.
    pub fn take_rests(&mut self) -> std::vec::Drain<'_, Rest> {
        self.rests.drain(..)
    }

    /// Whether a host rests long enough for a note. The double delay of a new host is not worth a line: it is new
    /// again in the next run.
    fn rests_long(&self, id: HostId, now: Instant) -> bool {
        let pace = &self.hosts[id].pace;
        pace.asked_until() > now + pace.usual_delay(&self.settings.politeness) * 2
    }

    /// Notes how a host does, and how long it rests if that is longer than usual, as another run keeps the usual
    /// delay anyway. The operator's hours are not noted: another run may have others.
    fn note_rest(&mut self, id: HostId, now: Instant) {
        let pace = &self.hosts[id].pace;
        let usual = now + pace.usual_delay(&self.settings.politeness);
        let of_origins = if self.settings.shares_hosts { self.hosts[id].origins_asked_until() } else { Instant::ZERO };
        let asked_until = pace.asked_until().max(of_origins);
        let until = Some(asked_until).filter(|until| *until > usual).unwrap_or(Instant::ZERO);
        let health = self.health(id);
        let host = &self.hosts[id];
        let crawl_delay = host.longest_crawl_delay(&self.settings.politeness);
        self.rests.push(Rest { host: host.name.clone(), crawl_delay, until, health });
    }

    /// Notes the rests of odd ports that have rests of their own. If hosts are on several shards, these do not know
    /// its origins in the next run, and keep the rest for the whole host.
    fn note_origin_rests(&mut self, now: Instant, id: HostId) {
        if self.settings.shares_hosts {
            return self.note_rest(id, now);
        }
        let host = &self.hosts[id];
        for origin in host.origins.iter().filter(|origin| origin.is_odd() && origin.streak.asked_until() > now) {
            let root = origin.robots_url(&host.name).and_then(|url| url.join("/").ok());
            self.rests.extend(root.map(|root| Rest::new(root.as_str(), origin.streak.asked_until())));
        }
    }

    /// Whether no host has anything to do, now or later.
    pub fn is_idle(&self) -> bool {
        self.hosts.active() == self.hosts.resting() && self.outside.is_empty() && self.crossing.is_empty()
    }

    /// The number of hosts per kind of wait.
    pub fn awaited(&self) -> Waits {
        self.hosts.waits()
    }

    /// URLs that wait or are being fetched.
    pub fn queued(&self) -> u64 {
        self.queued
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
        self.wake(now);
        self.ready.prefer(STEPS_MAX, |id| is_better(&self.hosts[id].name))
    }

    /// A host has asked for a rest in a response that counts for nothing else.
    pub fn asked_for_rest(&mut self, now: Instant, job: &FetchJob, status: u16, retry_after: Option<Duration>) {
        if !is_overload(status) {
            return;
        }
        let of_url = xxh3_64(job.url.as_str().as_bytes());
        let complaint = Complaint { of_url, is_again: false, is_of_page: false, draw: self.draw() };
        let (host, politeness) = (&mut self.hosts[job.host], &self.settings.politeness);
        let of = (job.kind == JobKind::Page).then(|| kind_of(&job.url, job.is_strangers));
        let blame = host.complains(now, (&job.url, of), retry_after, politeness);
        match blame {
            Blame::Host => host.pace.overloaded(now, retry_after, complaint, politeness),
            Blame::LoneOrigin => host.pace.overloaded(now, None, complaint, politeness),
            Blame::Origin | Blame::Kind => {}
        }
        if matches!(blame, Blame::Origin | Blame::LoneOrigin) && retry_after.is_some() {
            self.note_origin_rests(now, job.host);
        }
        if self.rests_long(job.host, now) {
            self.note_rest(job.host, now);
        }
    }

    /// Hosts in memory.
    pub fn hosts_in_memory(&self) -> usize {
        self.hosts.len()
    }

    /// Sets how many lookups may begin from now on; `None`: as many as there are slots. A host whose old address may
    /// serve continues.
    pub fn limit_lookups(&mut self, left: Option<usize>) {
        self.lookups.limit(left);
    }

    /// Name lookups in flight: `Resolve` jobs.
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

    /// Makes a host ready, now or at `at`. A host whose name is blocked does not wait: its URLs end.
    fn schedule(&mut self, id: HostId, now: Instant, at: Instant) {
        if at <= now || self.scope.blocks().blocks_host(&self.hosts[id].name) {
            self.make_ready(id);
        } else {
            self.hosts.set_state(id, State::Waiting(at));
            self.calendar.push(at, Event::Host(id));
        }
    }

    /// Moves what is due into the queue of ready hosts.
    fn wake(&mut self, now: Instant) {
        // Thousands may have asked for a rest until the same instant.
        for _ in 0..WAKES_MAX {
            let Some((at, event)) = self.calendar.pop(now) else { return };
            match event {
                Event::Host(id) => {
                    // A host that was scheduled again meanwhile ignores its old entry.
                    let state = self.hosts[id].state();
                    if matches!(state, State::Waiting(noted) | State::Resting(noted) if noted == at) {
                        self.make_ready(id);
                    }
                }
                Event::Turn(key) => self.call_to(key, now, at),
            }
        }
    }

    fn make_ready(&mut self, id: HostId) {
        self.hosts.set_state(id, State::Ready);
        let (site, level) = (self.hosts[id].site, self.hosts[id].backlog.level());
        self.ready.push(site, id, level, self.places.is_slow(site));
    }

    fn settle(&mut self, entry: QueuedUrl, failure: Failure) {
        self.queued -= 1;
        self.fuel.spend(SETTLE_WORK);
        let QueuedUrl { url, ticket, attempt, .. } = entry;
        self.is_over(ticket.depth);
        self.settled.push(Settled { url, number: ticket.number, tries: attempt, failure });
    }

    fn read_back(&mut self, id: HostId, block: Block, spool: &mut Spool) {
        self.hosts.set_state(id, State::Reading);
        spool.read(block, ReadFor::Host(id));
    }
}

/// The name under which a host is known: a trailing dot does not make another host or a second queue.
pub(crate) fn host_key(name: &str) -> &str {
    name.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(name)
}

/// Rests not yet sent to other shards: this many hosts may have requests in flight when a run begins.
const UNTOLD_RESTS_MAX: usize = 4_096;
/// A block of a host's queue is closed at this length.
const BLOCK_BYTES: usize = 32 * 1024;
/// A tail shorter than this stays in memory whatever the pressure.
const SHORT_TAIL_BYTES: usize = 512;
/// Below this length a queue is not searched for stale entries.
const STALE_ENTRIES_MIN: usize = 1_024;
/// Work between two turns of the sockets: two milliseconds. The verdict that ends it and the usage check that follows
/// may each take another `VERDICT_FUEL`.
const TURN_FUEL: u64 = 1 << 22;
/// Cost of ending a URL without a request and recording that: some 15 microseconds.
const SETTLE_WORK: u64 = 32_768;
/// Calendar entries looked at per call of `next_job`.
const WAKES_MAX: usize = 2_048;
/// Hosts looked at per call of `next_job`.
const STEPS_MAX: usize = 256;
/// A site has at most this many times as many hosts, fetches and lookups as are free.
const TIMES_FREE: u64 = 3;
/// Buckets in which the fetches and lookups of sites are counted.
const SHARE_PLACES: usize = 4_096;
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(10);
