//! One shard's brain: a plain value that owns its part of the web and makes every decision.
//!
//! [`Shard::handle`] takes in what happened ([`Input`]), [`Shard::poll`] returns what to do ([`Effect`]), and time is
//! an argument. The pump (real sockets and files) and the simulator (a virtual clock, a fake web, a fake disk) drive
//! the same value.
//!
//! Decides: what is fetched and looked up, what happens to a response, which URLs are known and where they go, what
//! is written and in which order, when fetching waits for the disk, how an earlier run is resumed, and how a phase
//! ends.
//!
//! [`Shard`] wires its parts, each of which alone touches what it owns: [`intake`] (is it new, is it ours), the
//! frontier (whose turn is it), [`flights`] (what is in flight, what may start), [`outbox`] (what other shards get),
//! [`durability`] (log, commits, segments, spool) and [`resumption`] (an earlier run). Three paths lead through
//! several of them: that of a found URL ([`links`]), of a job ([`jobs`]) and of an earlier run's logs ([`resume`]).
//!
//! Invariants: a URL is accepted at most once, or once more ([`intake`]), and ends exactly once. A page's record and
//! links are on the device before the log says that the page is done ([`durability`]). After [`Phase::Abort`] nothing
//! that a fetch brings is taken in.
//! Limits: while the disk is more than [`BACKLOG_BYTES_MAX`] behind, no fetch starts, no response or message is taken
//! in, and reading of an earlier run pauses. No fetch starts while other shards are `journal.bytes_max` behind.

mod durability;
mod effect;
mod effect_queue;
mod flights;
mod input;
mod intake;
mod jobs;
mod links;
mod outbox;
mod phase;
mod resume;
mod resumption;
mod setup;

pub use effect::{DiskOp, Effect};
pub use effect_queue::BACKLOG_BYTES_MAX;
pub(crate) use flights::HELD_FREE_BYTES_MAX;
pub use flights::{NetworkReport, SiteEnd, SiteReply, Witness};
pub use input::{Cleared, Command, DiskEnd, Input, OutOfReach};
pub use intake::URL_TIMES_FREE;
pub use phase::{Phase, ShardReport};
pub use setup::{FilesFound, Setup};

use crate::backlinks::SiteLink;
use crate::exchange::Incoming;
use crate::exchange::message::MessageKind;
use crate::frontier::{self, Frontier, LinkQuotas, RobotsAnswer, RobotsRequest, SiteQuotas, WaitingUrls};
use crate::spool::{Block, ReadFor};
use crate::stats::Totals;
use crate::trouble::Trouble;
use crate::waits::{Wait, Waits};
use durability::Durability;
use effect_queue::EffectQueue;
use flights::Flights;
use intake::Intake;
use outbox::Outbox;
use resumption::Resumption;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::{Duration, Instant, WallClock};
use ringcrawl_url::UrlBatch;
use ringcrawl_warc::StoreError;

/// The brain of one shard.
#[derive(Debug)]
pub struct Shard {
    index: u16,
    phase: Phase,
    /// The wall clock.
    clock: WallClock,
    resumption: Resumption,
    intake: Intake,
    frontier: Frontier,
    flights: Flights,
    outbox: Outbox,
    durability: Durability,
    effects: EffectQueue,
    stats: Totals,
}

impl Shard {
    /// A shard that first requests the logs of an earlier run.
    pub fn new(setup: Setup) -> Result<Shard, StoreError> {
        let Setup { index, rng_seed, ref config, .. } = setup;
        let bounds_sites = config.budget.is_set() || !setup.site_bounds.is_empty();
        // With both budgets and allowances, each gets half of the memory.
        let parts = if bounds_sites && config.counts_linking_sites() { 2 } else { 1 };
        let ram_bytes = config.budget.ram_bytes_max / (u64::from(setup.partition.shards().max(1)) * parts);
        let allowances = LinkQuotas::new(config, ram_bytes);
        let bounds = setup.site_bounds.clone();
        let budgets = SiteQuotas::new(&config.budget, bounds, rng_seed, setup.clock, ram_bytes);
        let budgets = budgets.of_parts(setup.site_parts.clone());
        let outbox = Outbox::new(&setup, allowances.are_set());
        let settings = frontier::Settings::new(config, setup.partition.clone(), index, rng_seed);
        let settings = settings.knowing(setup.operators.clone()).by(setup.clock);
        let mut shard = Shard {
            index,
            phase: Phase::Run,
            clock: setup.clock,
            resumption: Resumption::new(&setup, budgets.are_set(), allowances.are_set()),
            intake: Intake::new(&setup, outbox.counts_links()),
            flights: Flights::new(&setup),
            outbox,
            durability: Durability::new(&setup, budgets.count_bytes())?,
            frontier: Frontier::new(settings, setup.ledger)
                .within(setup.scope)
                .budgeted(budgets, allowances)
                .ranked(setup.ranks),
            effects: EffectQueue::default(),
            stats: Totals::default(),
        };
        shard.resumption.read_log(&mut shard.effects);
        if !setup.is_new {
            shard.frontier.rest_all(setup.begins);
        }
        Ok(shard)
    }

    /// Takes in what happened.
    pub fn handle(&mut self, now: Instant, input: Input) {
        if self.effects.is_over() {
            return;
        }
        match input {
            Input::Command(command) => self.obey(now, command),
            Input::Clock(clock) => self.set_clock(clock),
            Input::Scope(scope) => {
                self.frontier.set_scope(scope.clone());
                self.flights.reader.set_scope(scope.clone());
                self.intake.set_scope(scope);
            }
            Input::Received { from, bytes } => self.receive(now, from, &bytes),
            Input::Refused(message) => self.outbox.refused(now, message, &mut self.stats),
            Input::Answered { lookup, answer } => self.answered(now, lookup, answer),
            Input::Told { job, words } => self.flights.tell(job, words),
            Input::Fetched { job, result } => self.fetched(now, job, result),
            Input::Read(page) => self.was_read(now, *page),
            Input::Trained(dictionary) => self.durability.segments.trained(dictionary),
            Input::Disk(end) => self.disk_ended(now, end),
        }
    }

    fn obey(&mut self, now: Instant, command: Command) {
        match command {
            Command::Enter(phase) => self.enter(now, phase),
            Command::Seeds(seeds) => {
                self.intake.want(&seeds, &mut self.frontier);
                self.resumption.hold(seeds);
                self.sow(now);
            }
            Command::Clear(cleared) => {
                self.flights.network.clear(cleared);
                self.count_cleared(now);
            }
            Command::Outage(out_of_reach) => self.set_outage(now, out_of_reach),
            Command::DiskFull(is_full) => self.flights.set_disk_full(is_full),
            Command::Probe(count) => self.flights.network.probe(count, &mut self.frontier),
            Command::ProbeNames => self.flights.lookups.probe(),
        }
    }

    /// The next thing to do. Call it until there is none, and again when [`Shard::next_due`] says so.
    pub fn poll(&mut self, now: Instant) -> Option<Effect> {
        if self.effects.is_empty() && !self.effects.is_over() {
            self.write(now);
        }
        if let Some(effect) = self.effects.pop() {
            return Some(effect);
        }
        self.settle(now);
        if self.effects.is_over() || self.is_replaying() {
            return self.effects.pop();
        }
        if self.may_sow() {
            self.sow(now);
        }
        if self.has_seeds_first() {
            return self.effects.pop();
        }
        self.frontier.review(now);
        self.note_rests(now);
        if let Some(effect) = self.next_reading(now) {
            return Some(effect);
        }
        if let Some(training) = self.durability.segments.next_training() {
            return Some(Effect::Train(Box::new(training)));
        }
        if let Some(message) = self.next_message(now) {
            return Some(message);
        }
        if self.phase == Phase::Close {
            return self.end_when_written(now);
        }
        if let Some(query) = self.next_query(now) {
            return Some(Effect::Ask(query));
        }
        if self.phase == Phase::Run
            && let Some(job) = self.frontier.slots.fetch_slots.late(now)
        {
            return Some(Effect::CutShort(job));
        }
        if let Some(job) = self.next_fetch(now) {
            return Some(Effect::Fetch(job));
        }
        // Hosts that were examined on the way may need blocks from the spool, a reply from another shard or a name
        // lookup, and URLs may be done.
        self.write(now);
        let effect = self.effects.pop().or_else(|| self.next_message(now));
        let effect = effect.or_else(|| self.next_query(now).map(Effect::Ask));
        if effect.is_none() {
            self.frontier.begin_turn(now);
            self.count_cleared(now);
        }
        effect
    }

    /// When to call again even without an input; a time in the past means now.
    pub fn next_due(&self) -> Option<Instant> {
        if self.effects.is_over() || self.is_replaying() {
            return self.resumption.next_due().filter(|_| !self.effects.is_over());
        }
        if self.has_seeds_first() {
            let now = self.may_sow().then_some(Instant::ZERO);
            return now.or(self.durability.next_due());
        }
        // A shard that may not fetch waits for a slot or for the disk, and both end with an input.
        let fetches = if self.held_by().is_none() { self.flights.next_due(&self.frontier) } else { None };
        let lookups = self.flights.lookups.next_due().filter(|_| self.phase < Phase::Close);
        let late = self.frontier.slots.fetch_slots.next_late().filter(|_| self.phase == Phase::Run);
        let is_reviewing = self.frontier.review.is_going_on() && self.phase < Phase::Close;
        let is_busy = self.flights.network.has_cleared() || is_reviewing;
        let cleared = is_busy.then_some(Instant::ZERO);
        let written = self.durability.next_due();
        [fetches, lookups, late, cleared, self.outbox.next_due(), written].into_iter().flatten().min()
    }

    /// Whether more seeds are taken in now.
    fn may_sow(&self) -> bool {
        self.has_seeds_first() && !self.effects.is_disk_behind()
    }

    /// Whether messages from other shards are taken in now. Messages that the disk has no time for stay with their
    /// sender, which has a disk, too. At the end everything is taken in: the rings bound how much there is.
    pub fn accepts_messages(&self) -> bool {
        let is_ready = !self.is_replaying() && !self.has_seeds_first();
        is_ready && (self.phase == Phase::Close || !self.effects.is_disk_behind())
    }

    /// Whether responses are taken in now: what is found in them must be written, and the disk may be behind.
    /// Responses that arrive after an abort are ignored.
    pub fn accepts_responses(&self) -> bool {
        self.effects.is_over() || self.phase >= Phase::Abort || !self.effects.is_disk_behind()
    }

    /// Whether an earlier run is still being resumed. Until then no message may be taken in; it stays with its
    /// sender, in whose journal it is.
    pub fn is_replaying(&self) -> bool {
        self.resumption.is_under_way()
    }

    /// Whether seeds wait to be taken in. Until then nothing is fetched, and no message is taken in: a seed to which a
    /// link leads first would be no seed. Those that still wait when the run ends are given to the next one.
    fn has_seeds_first(&self) -> bool {
        self.phase == Phase::Run && self.resumption.holds_seeds()
    }

    /// What the housekeeping thread needs from the shard.
    pub fn report(&self) -> ShardReport {
        let is_drained =
            self.outbox.is_drained() && self.durability.spool.is_quiet() && !self.frontier.robots.has_answers();
        let nothing_to_do = match self.phase {
            Phase::Run => self.flights.len() == 0 && is_drained && self.frontier.is_idle(),
            Phase::Drain => self.flights.len() == 0 && is_drained,
            Phase::Abort | Phase::Close => is_drained,
        };
        let is_resumed = !self.is_replaying() && !self.has_seeds_first();
        let (sent, received) = self.outbox.messages();
        ShardReport { quiet: nothing_to_do && is_resumed && self.effects.is_empty(), sent, received }
    }

    /// What the shard waits for when there is nothing to do now: how many hosts for what.
    pub fn awaited(&self) -> Waits {
        let held = if self.is_replaying() { Some(Wait::Disk) } else { self.held_by() };
        self.flights.awaited(held, &self.frontier)
    }

    /// The current counters and gauges.
    pub fn stats(&mut self) -> &Totals {
        let stats = &mut self.stats;
        self.resumption.count(stats);
        self.flights.count(&self.frontier, stats);
        stats.hosts = self.frontier.hosts();
        stats.hosts_left = self.frontier.hosts_left();
        stats.over = self.durability.over();
        stats.visited = self.intake.visited.len();
        stats.queued = self.frontier.queued();
        stats.queued_lowered = self.frontier.order.kinds.in_lanes();
        stats.urls_lowered = self.frontier.order.kinds.lowered_urls();
        stats.turns_over_allowance = self.frontier.order.link_quotas.turns_over();
        stats.budget_uncounted = self.frontier.order.uncounted();
        stats.disk_backlog_bytes = self.effects.backlog_bytes();
        stats
    }

    /// What the breaker needs.
    pub fn network_report(&self) -> NetworkReport {
        self.flights.network.report(&self.flights.lookups, !self.frontier.is_idle())
    }

    /// Takes the ends of requests to sites since the last call, oldest first.
    pub fn take_site_ends(&mut self) -> impl Iterator<Item = SiteEnd> {
        self.flights.network.take_site_ends()
    }

    /// Whether the result of job `id` is held back or waits to be read, with its response if there is one.
    pub fn holds_back(&self, id: u64) -> bool {
        self.flights.holds_back(id)
    }

    /// The last failure at a host that has not recovered since, with the host's name.
    pub fn trouble(&mut self) -> Option<(&str, &Trouble)> {
        self.frontier.trouble().or_else(|| self.flights.network.trouble())
    }

    /// Durations of the lookups that have ended since the last call.
    pub fn take_lookup_times(&mut self) -> impl Iterator<Item = Duration> {
        self.flights.lookup_times.drain(..)
    }

    /// Page URLs that ended since the start of this run.
    pub fn over(&self) -> u64 {
        self.durability.over()
    }

    /// Hosts in memory.
    pub fn hosts_in_memory(&self) -> usize {
        self.frontier.hosts_in_memory()
    }

    /// Bytes of memory: visited set, queues, robots.txt rules.
    pub fn ram_bytes(&self) -> (u64, u64, u64) {
        let waiting = self.frontier.ram_bytes() + self.durability.vias.ram_bytes();
        (self.intake.visited.bytes(), waiting, self.frontier.robots.rules_bytes())
    }

    /// The wall clock was set. The log's times are by the old clock, so those that still apply are logged again.
    fn set_clock(&mut self, clock: WallClock) {
        self.clock = clock;
        self.frontier.set_clock(clock);
        self.flights.look_again();
    }

    fn enter(&mut self, now: Instant, phase: Phase) {
        assert!(phase >= self.phase, "{phase:?} after {:?}: phases go forward only", self.phase);
        self.phase = phase;
        if phase >= Phase::Abort && self.is_replaying() {
            // Nothing is lost: the next run resumes it.
            let note = format!("shard {}: stopped while it took up an earlier run, which is as it was", self.index);
            return self.effects.end(Some(note));
        }
        if phase > Phase::Run {
            self.outbox.lanes.hurry();
            self.undo_held(now, false);
            self.abort_lookups(now);
        }
    }

    fn receive(&mut self, now: Instant, from: u16, bytes: &[u8]) {
        match self.outbox.receive(now, from, bytes) {
            Incoming::Nothing => {}
            Incoming::Urls(batch) => self.receive_urls(now, &batch),
            Incoming::Robots(kind, bytes) => self.receive_robots(now, from, kind, &bytes),
            Incoming::SiteLinks(bytes) => {
                let Some(links) = SiteLink::all_from_bytes(&bytes) else {
                    panic!("shard {from} sent links that are none")
                };
                links.for_each(|link| self.count_link(now, link));
            }
            Incoming::LinkCounts(counts) => {
                let _stage = stage::enter(Stage::Frontier);
                let Shard { frontier, durability, .. } = self;
                counts.for_each_url(|links, url| frontier.linked_by_pages(now, url, links, &mut durability.spool));
            }
        }
    }

    /// A robots.txt redirects to a host of another shard: that shard fetches it, under its host's delays, and replies
    /// with the result.
    fn receive_robots(&mut self, now: Instant, from: u16, kind: MessageKind, bytes: &[u8]) {
        let _stage = stage::enter(Stage::Frontier);
        let is_read = match kind {
            MessageKind::RobotsRequest => {
                RobotsRequest::from_bytes(bytes).map(|request| self.frontier.robots_requested(now, from, &request))
            }
            _ => RobotsAnswer::from_bytes(bytes).map(|answer| self.frontier.robots_answered(now, answer)),
        };
        assert!(is_read.is_some(), "shard {from} sent a {kind:?} that is none");
    }

    fn next_message(&mut self, now: Instant) -> Option<Effect> {
        let Shard { outbox, frontier, durability, stats, .. } = self;
        outbox.next_message(now, frontier, &mut durability.spool, stats).map(Effect::Send)
    }

    /// Issues the writes that are due.
    fn write(&mut self, now: Instant) {
        // Blocks of waiting URLs go to the spool while an earlier run is resumed, not afterwards.
        self.durability.write_spool(&mut self.effects);
        if !self.is_replaying() {
            self.durability.write(now, self.phase == Phase::Close, &mut self.outbox.lanes, &mut self.effects);
        }
    }

    /// The end, once everything is written and on the device. Messages that arrive from other shards until then are,
    /// too.
    fn end_when_written(&mut self, now: Instant) -> Option<Effect> {
        self.durability.segments.close();
        self.write(now);
        if self.effects.is_empty() && self.effects.is_disk_idle() && self.durability.is_done() {
            self.effects.end(None);
        }
        self.effects.pop()
    }

    /// An operation on files ended.
    fn disk_ended(&mut self, now: Instant, end: DiskEnd) {
        match end {
            DiskEnd::Done { spare, bytes } => {
                self.effects.disk_ended(bytes);
                if let Some(spare) = spare {
                    self.durability.segments.reuse(spare);
                }
                self.replay_on(now);
            }
            DiskEnd::BlockRead { block, bytes } => {
                self.effects.disk_ended(0);
                self.block_read(now, block, bytes);
            }
            DiskEnd::LogRead { bytes } => {
                self.effects.disk_ended(0);
                self.resumption.push(&bytes);
                self.replay_on(now);
            }
            DiskEnd::Synced => {
                self.effects.disk_ended(0);
                self.durability.synced(now, &mut self.outbox.lanes, &mut self.effects);
            }
            DiskEnd::Failed(why) => self.effects.fail(why),
        }
    }

    /// A block of the spool was read back. A block that differs from what was written ends the run: its URLs are lost
    /// to the run, and those for other shards are counted and would be waited for. They are in the logs.
    fn block_read(&mut self, now: Instant, block: Block, bytes: Vec<u8>) {
        let Some(purpose) = self.durability.spool.finished_read(block) else {
            panic!("{block:?} came back and was not asked for")
        };
        let is_whole = block.is_whole(&bytes);
        let taken = match purpose {
            _ if !is_whole => None,
            ReadFor::Host(host) => WaitingUrls::from_bytes(bytes).map(|urls| self.frontier.returned(now, host, urls)),
            ReadFor::Outside(lane) => {
                WaitingUrls::from_bytes(bytes).map(|urls| self.frontier.queue.returned_outside(lane, urls))
            }
            ReadFor::Lane(to) => UrlBatch::from_bytes(bytes).map(|batch| self.outbox.lanes.returned(to, batch)),
            ReadFor::SetAside => UrlBatch::from_bytes(bytes).map(|batch| self.reconsider(now, &batch)),
        };
        if taken.is_none() {
            self.effects.fail(format_args!("spool/{}: a block is not what was written", block.file));
        }
    }
}

#[cfg(test)]
mod tests;
