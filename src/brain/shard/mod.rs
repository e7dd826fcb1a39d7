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
//! Invariants: a URL is accepted at most once, or once more ([`urls`], [`long_ways`]), and ends exactly once. A
//! page's record and links are on the device before the log says that the page is done ([`commit`]). After
//! [`Phase::Abort`] nothing that a fetch brings is taken in.
//! Limits: while the disk is more than [`BACKLOG_BYTES_MAX`] behind, no fetch starts, no response or message is taken
//! in, and reading of an earlier run pauses. No fetch starts while other shards are `journal.bytes_max` behind.

mod allowance;
mod answered_hosts;
mod commit;
mod effect;
mod fetching;
mod input;
mod keys;
mod link_counts;
mod long_ways;
mod network;
mod phase;
mod readings;
mod resume;
mod site_links;
mod urls;
mod vias;
mod writing;

pub use effect::{DiskOp, Effect};
pub use input::{Cleared, Command, DiskEnd, Input, OutOfReach};
pub(crate) use network::HELD_FREE_BYTES_MAX;
pub use network::{NetworkReport, SiteEnd, SiteReply, Witness};
pub use phase::{Phase, ShardReport};
pub use writing::BACKLOG_BYTES_MAX;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::budget::PageBudget;
use crate::exchange::message::{self, MessageKind};
use crate::exchange::{Incoming, Lanes, Outgoing, Replicated, SentUrls};
use crate::frontier::{
    self, Frontier, Ledger, LinkQuotas, PartsBySite, Ranks, RobotsAnswer, RobotsRequest, SiteBounds, SiteQuotas,
};
use crate::log::{AskAgain, Log, Owner, Reopened, Replay};
use crate::names::Lookups;
use crate::page::PageReader;
use crate::route::Partition;
use crate::scope::{ClearHosts, Scope};
use crate::site_shares::SiteShares;
use crate::spool::{Block, Spool};
use crate::stats::Totals;
use crate::trouble::Trouble;
use crate::visited::Table;
use crate::waits::Wait;
use allowance::Allowance;
use commit::Commits;
use fetching::InFlight;
use keys::Keys;
use link_counts::GatheredLinks;
use long_ways::LongWays;
use network::Network;
use readings::Readings;
use ringcrawl_base::RecentHashes;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::{Duration, Instant, WallClock};
use ringcrawl_config::Operators;
use ringcrawl_config::{Config, Cookies, Embeds, ExchangeMode, RecordKinds};
use ringcrawl_http::Decoder;
use ringcrawl_url::{Sites, Url};
use ringcrawl_warc::earlier_crawls::EarlierCrawls;
use ringcrawl_warc::{Segments, StoreError};
use site_links::FoundLinks;
use vias::Vias;
use writing::DiskBacklog;

/// The brain of one shard.
#[derive(Debug)]
pub struct Shard {
    index: u16,
    partition: Partition,
    mode: ExchangeMode,
    scope: Scope,
    /// Hosts where the scope blocks nothing.
    clear_hosts: ClearHosts,
    in_flight_max: usize,
    phase: Phase,
    /// An earlier run that is being resumed; nothing else happens until then.
    replay: Option<Replay>,
    /// It has been read, but other shards have not claimed their sites yet: when to look again.
    settles_at: Option<Instant>,
    /// URLs in the logs whose sites have no entry in the table of owners, or belong to another shard there.
    unclaimed: u64,
    contradicted: u64,
    /// Seeds that wait until the earlier run is resumed.
    seeds: Vec<Url>,
    keys: Keys,
    sites: Sites,
    visited: Table,
    /// Visited URLs per site.
    url_shares: SiteShares,
    frontier: Frontier,
    lookups: Lookups,
    in_flight: InFlight,
    readings: Readings,
    network: Network,
    /// No fetch starts because the disk is out of space.
    is_disk_full: bool,
    budget: Arc<PageBudget>,
    /// When to look again, if no page may be fetched because no slot is left.
    budget_look: Option<Instant>,
    /// The bandwidth and the hours that may be used.
    allowance: Allowance,
    reader: PageReader,
    /// Decodes short responses.
    decoder: Decoder,
    recent_bodies: RecentHashes,
    /// URLs that found no room and are in the log: pages link to the same ones again and again.
    recent_aside: RecentHashes,
    /// Keys of URLs whose pages redirected recently, in this run; empty where no cookie is kept that could change
    /// that.
    redirecting: Option<RecentHashes>,
    long_ways: LongWays,
    /// URLs that were sent to other shards.
    sent: SentUrls,
    /// Links to other sites, where these are counted.
    found_links: Option<FoundLinks>,
    /// Links to URLs, where these are counted.
    gathered_links: Option<GatheredLinks>,
    /// Links to URLs that were accepted before are processed in full: they are counted by URL or listed, or a URL
    /// accepted here may belong to another shard.
    follows_seen_links: bool,
    /// Links that left the scope, where these are listed, and how many of them this run has written to the log.
    recent_external: Option<RecentHashes>,
    external: u64,
    segments: Segments,
    /// Which kinds of records are written in addition to responses.
    record_kinds: RecordKinds,
    /// Bytes of responses are logged, as a budget counts them.
    counts_bytes: bool,
    lanes: Lanes,
    spool: Spool,
    log: Log,
    /// The pages that link to waiting URLs.
    vias: Vias,
    commits: Commits,
    journal_bytes_max: u64,
    /// URLs to fetch again that are not logged yet: nothing is fetched before that.
    reopened: Option<Reopened>,
    /// By the current clock, cooldowns in the log would last longer than intended: the clock was set back.
    has_longer_rests: bool,
    /// URLs in the spool for which an earlier run had no room.
    set_aside: VecDeque<Block>,
    /// The wall clock.
    clock: WallClock,
    backlog: DiskBacklog,
    effects: VecDeque<Effect>,
    /// Pages whose dropped links were reported.
    drops_told: u32,
    is_over: bool,
    report: ShardReport,
    stats: Totals,
    /// Page URLs that are done, however they ended.
    over: u64,
    /// URLs that an earlier run knew, and those of them that still wait.
    known: u64,
    known_waiting: u64,
    urls_lost: u64,
    records_elsewhere: u64,
    lookup_times: Vec<Duration>,
}

/// What a shard is built from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The shard's index.
    pub index: u16,
    /// Which sites belong to it.
    pub partition: Partition,
    /// Which links are followed.
    pub scope: Scope,
    /// The crawl's randomness.
    pub rng_seed: u64,
    /// Limits.
    pub config: Arc<Config>,
    /// User-Agent of the requests.
    pub user_agent: String,
    /// When each address may be contacted again; one for all shards.
    pub ledger: Arc<Ledger>,
    /// Which operator's machines are where.
    pub operators: Arc<Operators>,
    /// What URLs are worth, in a crawl ordered by ranks; one for all shards.
    pub ranks: Arc<Ranks>,
    /// URLs that are sent once, as an earlier crawl found many links to them.
    pub replicated: Replicated,
    /// Limits on the cost of sites whose seeds have options.
    pub site_bounds: Arc<SiteBounds>,
    /// Parts of these sites with limits of their own.
    pub site_parts: Arc<PartsBySite>,
    /// How many pages may be fetched; one for all shards.
    pub budget: Arc<PageBudget>,
    /// What earlier crawls have stored; one for all shards.
    pub earlier: Arc<EarlierCrawls>,
    /// Name servers that can be queried.
    pub name_servers: usize,
    /// The crawl's number in the headers of its logs.
    pub crawl: u64,
    /// The wall clock; later changes arrive as [`Input::Clock`].
    pub clock: WallClock,
    /// When the run begins.
    pub begins: Instant,
    /// Whether this is the crawl's first run.
    pub is_new: bool,
    /// Which finished URLs are fetched again.
    pub ask_again: AskAgain,
    /// What the shard's files are at the start.
    pub files: FilesFound,
}

impl Setup {
    /// A new crawl's first shard, whose clock shows 0, with one name server and this many entries in the ledger. The
    /// other shards share its contents: they are clones of it, each with its own index.
    pub fn new(config: Arc<Config>, partition: Partition, scope: Scope, rng_seed: u64, ledger: usize) -> Setup {
        Setup {
            index: 0,
            partition,
            scope,
            rng_seed,
            budget: Arc::new(PageBudget::new(config.crawl.pages_max)),
            config,
            user_agent: "ringcrawl-lab".to_owned(),
            ledger: Arc::new(Ledger::new(ledger).keyed([rng_seed, 0])),
            operators: Arc::default(),
            ranks: Arc::default(),
            replicated: Replicated::default(),
            site_bounds: Arc::default(),
            site_parts: Arc::default(),
            earlier: Arc::default(),
            name_servers: 1,
            crawl: rng_seed,
            clock: WallClock::default(),
            begins: Instant::ZERO,
            is_new: true,
            ask_again: AskAgain::default(),
            files: FilesFound::default(),
        }
    }
}

/// What a shard's directory holds when a run begins.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FilesFound {
    /// Segments by their numbers, with their bytes.
    pub segments: BTreeMap<u32, u64>,
    /// No segment has this number or a higher one.
    pub next_segment: u32,
    /// Files of the journal, in order.
    pub journal: Vec<u32>,
}

impl Shard {
    /// A shard that first requests the logs of an earlier run.
    pub fn new(setup: Setup) -> Result<Shard, StoreError> {
        let Setup { index, partition, scope, rng_seed, config, ledger, operators, budget, files, earlier, .. } = setup;
        let originals = config.store.originals(rng_seed, earlier);
        let shards = partition.shards();
        let is_sending = shards > 1 && config.exchange.mode == ExchangeMode::Exchange;
        let recent_urls = if is_sending { config.exchange.recent_urls } else { 0 };
        let sent = SentUrls::new(recent_urls, setup.replicated);
        let segment_seed = rng_seed ^ u64::from(index) << 48;
        let settings = config.segment_settings(&setup.user_agent, segment_seed);
        let owner = Owner { crawl: setup.crawl, shard: index };
        let sync_interval = config.journal.sync_interval.0;
        let journal_bytes_max = config.journal.bytes_max / u64::from(shards.max(1));
        let replay = Replay::new(owner, shards, &files.journal, files.segments);
        let replay = replay.with_again(setup.ask_again);
        let bounds_sites = config.budget.is_set() || !setup.site_bounds.is_empty();
        // With both budgets and allowances, each gets half of the memory.
        let parts = u64::from(shards.max(1)) * if bounds_sites && config.counts_linking_sites() { 2 } else { 1 };
        let ram_bytes = config.budget.ram_bytes_max / parts;
        let allowances = LinkQuotas::new(&config, ram_bytes);
        let budgets = SiteQuotas::new(&config.budget, setup.site_bounds, rng_seed, setup.clock, ram_bytes);
        let budgets = budgets.of_parts(setup.site_parts);
        let replay = if budgets.are_set() { replay.with_costs() } else { replay };
        let replay = if allowances.are_set() { replay.with_pages() } else { replay };
        let found_links = FoundLinks::of(&allowances);
        let gathered_links = GatheredLinks::of(&config, shards);
        let counts_bytes = budgets.count_bytes();
        let told = config.store.records.metadata || config.store.records.failure;
        let vias_bytes_max =
            if told { config.frontier.ram_bytes_max / u64::from(shards.max(1)) / VIA_PARTS } else { 0 };
        // A URL that was fetched as an embed may be another page's external link.
        let lists_embeds = config.lists_external_links() && config.links.embeds != Embeds::Off;
        let follows_seen_links = gathered_links.is_some() || !config.exchange.mode.keeps_parts() || lists_embeds;
        let redirecting = (config.http.cookies == Cookies::Site).then(RecentHashes::default);
        let mut shard = Shard {
            index,
            partition: partition.clone(),
            mode: config.exchange.mode,
            scope: scope.clone(),
            clear_hosts: ClearHosts::default(),
            in_flight_max: config.fetch.in_flight_max,
            phase: Phase::Run,
            replay: Some(replay),
            settles_at: None,
            unclaimed: 0,
            contradicted: 0,
            seeds: Vec::new(),
            keys: Keys::new(rng_seed, config.visited.key_rules()),
            sites: Sites::new(),
            visited: Table::new(config.visited.urls_max.div_ceil(u64::from(shards.max(1)))),
            url_shares: SiteShares::new(URL_SHARE_PLACES, URL_TIMES_FREE),
            frontier: Frontier::new(
                frontier::Settings::new(&config, partition, index, rng_seed).knowing(operators).by(setup.clock),
                ledger,
            )
            .within(scope.clone())
            .budgeted(budgets, allowances)
            .ranked(setup.ranks),
            lookups: Lookups::new(&config, shards, setup.name_servers),
            in_flight: InFlight::default(),
            readings: Readings::default(),
            network: Network::default(),
            is_disk_full: false,
            budget,
            budget_look: None,
            allowance: Allowance::new(&config.crawl, shards),
            segments: Segments::new(settings, index, files.next_segment, originals)?,
            record_kinds: config.store.records,
            counts_bytes,
            lanes: Lanes::new(shards, &config.exchange, config.scope.url_bytes_max),
            found_links,
            follows_seen_links,
            gathered_links,
            recent_external: config.lists_external_links().then(RecentHashes::default),
            external: 0,
            reader: PageReader::new(config).within(scope).seeded(rng_seed),
            decoder: Decoder::default(),
            recent_bodies: RecentHashes::default(),
            sent,
            recent_aside: RecentHashes::default(),
            redirecting,
            long_ways: LongWays::default(),
            spool: Spool::new(SPOOL_FILE_BYTES_MAX),
            log: Log::new(owner, shards, files.journal.last().map_or(0, |last| last + 1)),
            vias: Vias::new(usize::try_from(vias_bytes_max).unwrap_or(usize::MAX)),
            commits: Commits::new(sync_interval),
            journal_bytes_max,
            reopened: None,
            has_longer_rests: false,
            set_aside: VecDeque::new(),
            clock: setup.clock,
            backlog: DiskBacklog::default(),
            effects: VecDeque::new(),
            drops_told: 0,
            is_over: false,
            report: ShardReport::default(),
            stats: Totals::default(),
            over: 0,
            known: 0,
            known_waiting: 0,
            urls_lost: 0,
            records_elsewhere: 0,
            lookup_times: Vec::new(),
        };
        shard.read_log();
        if !setup.is_new {
            shard.frontier.rest_all(setup.begins);
        }
        Ok(shard)
    }

    /// Takes in what happened.
    pub fn handle(&mut self, now: Instant, input: Input) {
        if self.is_over {
            return;
        }
        match input {
            Input::Command(Command::Enter(phase)) => self.enter(now, phase),
            Input::Command(Command::Seeds(seeds)) => {
                self.want(&seeds);
                self.seeds.extend(seeds);
                self.sow(now);
            }
            Input::Command(Command::Clear(cleared)) => self.clear(now, cleared),
            Input::Command(Command::Outage(out_of_reach)) => self.set_outage(now, out_of_reach),
            Input::Command(Command::DiskFull(is_full)) => self.is_disk_full = is_full,
            Input::Command(Command::Probe(count)) => self.probe(count),
            Input::Command(Command::ProbeNames) => self.lookups.probe(),
            Input::Clock(clock) => self.set_clock(clock),
            Input::Scope(scope) => {
                self.frontier.set_scope(scope.clone());
                self.reader.set_scope(scope.clone());
                (self.scope, self.clear_hosts) = (scope, ClearHosts::default());
            }
            Input::Received { from, bytes } => self.receive(now, from, &bytes),
            Input::Refused(message) => {
                self.report.sent -= u64::from(message::is_counted(&message.bytes));
                self.stats.exchanged_out -= message.urls;
                self.lanes.refused(now, message);
            }
            Input::Answered { lookup, answer } => self.answered(now, lookup, answer),
            Input::Told { job, words } => self.in_flight.tell(job, words),
            Input::Fetched { job, result } => self.fetched(now, job, result),
            Input::Read(page) => self.was_read(now, *page),
            Input::Trained(dictionary) => self.segments.trained(dictionary),
            Input::Disk(end) => self.disk_ended(now, end),
        }
    }

    /// The next thing to do. Call it until there is none, and again when [`Shard::next_due`] says so.
    pub fn poll(&mut self, now: Instant) -> Option<Effect> {
        if self.effects.is_empty() && !self.is_over {
            self.write(now);
        }
        if let Some(effect) = self.effects.pop_front() {
            return Some(effect);
        }
        self.settle(now);
        if self.is_over || self.replay.is_some() {
            return self.effects.pop_front();
        }
        self.frontier.review(now);
        self.note_rests(now);
        if let Some(effect) = self.next_reading(now) {
            return Some(effect);
        }
        if let Some(training) = self.segments.next_training() {
            return Some(Effect::Train(Box::new(training)));
        }
        if let Some(message) = self.next_message(now) {
            return Some(Effect::Send(message));
        }
        if self.phase == Phase::Close {
            return self.end_when_written(now);
        }
        if let Some(query) = self.next_query(now) {
            return Some(Effect::Ask(query));
        }
        if self.phase == Phase::Run
            && let Some(job) = self.frontier.late(now)
        {
            return Some(Effect::Hurry(job));
        }
        if let Some(job) = self.next_fetch(now) {
            return Some(Effect::Fetch(job));
        }
        // Hosts that were examined on the way may need blocks from the spool, a reply from another shard or a name
        // lookup, and URLs may be done.
        self.write(now);
        let effect = self.effects.pop_front().or_else(|| self.next_message(now).map(Effect::Send));
        let effect = effect.or_else(|| self.next_query(now).map(Effect::Ask));
        if effect.is_none() {
            self.frontier.begin_turn(now);
            self.count_cleared(now);
        }
        effect
    }

    /// When to call again even without an input; a time in the past means now.
    pub fn next_due(&self) -> Option<Instant> {
        if self.is_over || self.replay.is_some() {
            return self.settles_at.filter(|_| !self.is_over);
        }
        // A shard that may not fetch waits for a slot or for the disk, and both end with an input.
        let fetches = match self.budget_look {
            _ if !self.may_fetch() => None,
            Some(look) => Some(look),
            None => self.frontier.next_due(),
        };
        let lookups = self.lookups.next_due().filter(|_| self.phase < Phase::Close);
        let written = [self.segments.next_due(), self.commits.next_due()];
        let late = self.frontier.next_late().filter(|_| self.phase == Phase::Run);
        let is_reviewing = self.frontier.is_reviewing() && self.phase < Phase::Close;
        let cleared = (self.network.has_cleared() || is_reviewing).then_some(Instant::ZERO);
        [fetches, lookups, late, cleared, self.lanes.next_due()].into_iter().chain(written).flatten().min()
    }

    /// Whether messages from other shards are taken in now. Messages that the disk has no time for stay with their
    /// sender, which has a disk, too. At the end everything is taken in: the rings bound how much there is.
    pub fn accepts_messages(&self) -> bool {
        self.replay.is_none() && (self.phase == Phase::Close || !self.backlog.is_long())
    }

    /// Whether responses are taken in now: what is found in them must be written, and the disk may be behind.
    /// Responses that arrive after an abort are ignored.
    pub fn accepts_responses(&self) -> bool {
        self.is_over || self.phase >= Phase::Abort || !self.backlog.is_long()
    }

    /// Whether an earlier run is still being resumed. Until then no message may be taken in; it stays with its
    /// sender, in whose journal it is.
    pub fn is_replaying(&self) -> bool {
        self.replay.is_some()
    }

    /// What the housekeeping thread needs from the shard.
    pub fn report(&self) -> ShardReport {
        let nothing_to_do = match self.phase {
            Phase::Run => self.jobs() == 0 && self.is_drained() && self.frontier.is_idle(),
            Phase::Drain => self.jobs() == 0 && self.is_drained(),
            Phase::Abort | Phase::Close => self.is_drained(),
        };
        let quiet = nothing_to_do && self.replay.is_none() && self.effects.is_empty() && self.seeds.is_empty();
        ShardReport { quiet, ..self.report }
    }

    /// The current counters and gauges.
    pub fn stats(&mut self) -> &Totals {
        let fetches = self.fetches() as u64;
        let stats = &mut self.stats;
        stats.hosts = self.frontier.hosts();
        stats.hosts_left = self.frontier.hosts_left();
        // Held jobs are tried again, or count, when more is known about the network.
        stats.hosts_retried = u64::from(self.frontier.awaited().of(Wait::Retries)) + self.network.held() as u64;
        (stats.known_urls, stats.known_waiting, stats.over) = (self.known, self.known_waiting, self.over);
        (stats.urls_lost, stats.records_elsewhere) = (self.urls_lost, self.records_elsewhere);
        stats.reading_logs = self.replay.is_some().into();
        stats.visited = self.visited.len();
        stats.queued = self.frontier.queued();
        stats.queued_lowered = self.frontier.in_lanes();
        stats.urls_lowered = self.frontier.lowered_urls();
        stats.turns_over_allowance = self.frontier.turns_over_allowance();
        stats.budget_uncounted = self.frontier.uncounted();
        stats.in_flight = fetches;
        stats.lookups = self.lookups.in_flight() as u64;
        stats.dns_queries = self.lookups.queries();
        stats.disk_backlog_bytes = self.backlog.bytes();
        stats
    }

    /// The last failure at a host that has not recovered since, with the host's name.
    pub fn trouble(&mut self) -> Option<(&str, &Trouble)> {
        self.frontier.trouble().or_else(|| self.network.trouble())
    }

    /// Durations of the lookups that have ended since the last call.
    pub fn take_lookup_times(&mut self) -> impl Iterator<Item = Duration> {
        self.lookup_times.drain(..)
    }

    /// Page URLs that ended since the start of this run.
    pub fn over(&self) -> u64 {
        self.over
    }

    /// Hosts in memory.
    pub fn hosts_in_memory(&self) -> usize {
        self.frontier.hosts_in_memory()
    }

    /// Bytes of memory: visited set, queues, robots.txt rules.
    pub fn ram_bytes(&self) -> (u64, u64, u64) {
        let waiting = self.frontier.ram_bytes() + self.vias.ram_bytes();
        (self.visited.bytes(), waiting, self.frontier.rules_bytes())
    }

    /// The wall clock was set. The log's times are by the old clock, so those that still apply are logged again.
    fn set_clock(&mut self, clock: WallClock) {
        self.clock = clock;
        self.frontier.set_clock(clock);
        // The hours in which fetches may begin have started or ended.
        self.budget_look = None;
    }

    fn enter(&mut self, now: Instant, phase: Phase) {
        assert!(phase >= self.phase, "{phase:?} after {:?}: phases go forward only", self.phase);
        self.phase = phase;
        if phase >= Phase::Abort && self.replay.is_some() {
            // Nothing is lost: the next run resumes it.
            self.end();
            let note = format!("shard {}: stopped while it took up an earlier run, which is as it was", self.index);
            return self.effects.push_front(Effect::Note(note));
        }
        if phase > Phase::Run {
            self.lanes.hurry();
            self.undo_held(now, false);
            self.abort_lookups(now);
        }
    }

    fn receive(&mut self, now: Instant, from: u16, bytes: &[u8]) {
        match self.lanes.receive(now, from, bytes) {
            Incoming::Nothing => {}
            Incoming::Urls(batch) => self.receive_urls(now, &batch),
            Incoming::Robots(kind, bytes) => self.receive_robots(now, from, kind, &bytes),
            Incoming::SiteLinks(bytes) => self.receive_links(now, from, &bytes),
            Incoming::LinkCounts(counts) => self.receive_link_counts(now, &counts),
        }
        self.report.received += u64::from(message::is_counted(bytes));
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

    fn next_message(&mut self, now: Instant) -> Option<Outgoing> {
        let _stage = stage::enter(Stage::Exchange);
        for (to, request) in self.frontier.take_robots_requests() {
            self.lanes.say(to, MessageKind::RobotsRequest, &request.to_bytes());
        }
        while self.lanes.has_room()
            && let Some((to, answer)) = self.frontier.next_robots_answer(now)
        {
            self.lanes.say(to, MessageKind::RobotsAnswer, &answer.to_bytes());
        }
        let message = self.lanes.next_message(now, &mut self.spool)?;
        self.report.sent += u64::from(message::is_counted(&message.bytes));
        self.stats.exchanged_out += message.urls;
        Some(message)
    }

    /// Whether other shards have received everything found for them, and no block is being read back.
    fn is_drained(&self) -> bool {
        self.lanes.is_drained() && self.spool.is_quiet() && !self.frontier.has_robots_answers()
    }
}

/// The pages that link to waiting URLs may take one part in this many of the memory of those URLs, in addition to it.
const VIA_PARTS: u64 = 16;
/// A site may have at most this many times as many URLs as there is free room.
pub const URL_TIMES_FREE: u64 = 15;
/// Slots in which the URLs of sites are counted.
const URL_SHARE_PLACES: usize = 1 << 16;
/// Spool files are deleted whole, so small ones give space back sooner.
const SPOOL_FILE_BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests;
