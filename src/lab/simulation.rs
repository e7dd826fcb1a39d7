//! One simulated crawl, from a seed to a report.
//!
//! Decides: everything by the seed: shards, delays, ring sizes, memory bounds, latencies, and in which order
//! things that happen at one instant are seen. The virtual clock jumps to the next event. Half of the crawls are
//! stopped midway, some drained and some killed, and go on two days later from their journals.
//! Limits: a crawl that is not over after a simulated month is stuck, which is a failure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::Rng;
use super::fake_server::FakeServers;
use super::fake_web::FakeWeb;
use crate::config::{Config, PartitionKey};
use crate::frontier::Ledger;
use crate::outcome::{Failure, FetchJob, JobKind, Outcome};
use crate::route::Partition;
use crate::shard::{Scope, Shard, journal};
use crate::spool::{Block, ReadFor, SpoolOp};
use crate::time::{Duration, Instant};
use crate::url::{Url, UrlBatch};

/// A crawl to be simulated.
#[derive(Debug)]
pub struct Simulation {
    rng: Rng,
    now: Instant,
    shards: Vec<Shard>,
    servers: FakeServers,
    web: FakeWeb,
    events: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    pending: BTreeMap<usize, Event>,
    numbered: u64,
    /// Batches on their way, by (from, to).
    lanes: BTreeMap<(u16, u16), VecDeque<Vec<u8>>>,
    lane_batches_max: usize,
    /// Shards that something happened to since their last turn.
    awake: Vec<bool>,
    in_flight: Vec<usize>,
    in_flight_max: usize,
    disks: Vec<BTreeMap<(u32, u32), Vec<u8>>>,
    ram_bytes_max: u64,
    /// Hosts forgotten before the restart.
    forgotten_before: u64,
    outside: u64,
    journals: Vec<Vec<u8>>,
    /// When the crawl is drained, if it is.
    stop_at: Option<Instant>,
    /// When it is killed, if it is.
    kill_at: Option<Instant>,
    /// Of each shard's journal, how long it was before its last block, and when that block was written.
    last_blocks: Vec<(usize, Instant)>,
    /// When pages were fetched before the crawl was killed.
    fetched_at: HashMap<String, Instant>,
    /// When it was killed.
    killed: Option<Instant>,
    make: Make,
    /// URLs that were over before the restart, by shard.
    over_before: Vec<u64>,
    exchanged_before: u64,
    trace: u64,
    spilled: u64,
    refused: u64,
}

/// What all shards are made of.
#[derive(Debug)]
struct Make {
    config: Config,
    partition: Partition,
    scope: Scope,
    rng_seed: u64,
}

impl Make {
    fn shards(&self) -> Vec<Shard> {
        let ledger = Arc::new(Ledger::new(1 << 12));
        let shard = |index| {
            let (scope, ledger) = (self.scope.clone(), Arc::clone(&ledger));
            Shard::new(index, self.partition, scope, self.rng_seed, &self.config, ledger)
        };
        (0..self.partition.shards).map(shard).collect()
    }
}

/// How a simulated crawl ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Everything that must not be: empty for a good crawl.
    pub complaints: Vec<String>,
    /// Pages fetched with 200, distinct.
    pub pages: usize,
    /// Shards.
    pub shards: usize,
    /// A hash over every job and its end, in order.
    pub trace: u64,
    /// Virtual time.
    pub took: Duration,
    /// Blocks that went to disk.
    pub spilled: u64,
    /// Batches that a full ring refused.
    pub refused: u64,
    /// URLs exchanged.
    pub exchanged: u64,
    /// URLs that a full visited set had no room for; what is behind them is not asked for.
    pub aside: u64,
    /// Hosts forgotten.
    pub forgotten: u64,
    /// Blocks of URLs that came back to hosts that were not in memory.
    pub outside: u64,
    /// Whether the crawl was stopped and resumed.
    pub resumed: bool,
    /// Whether it was killed: what no journal had yet was done again.
    pub killed: bool,
    /// Pages fetched twice, because the first time was in no journal when the crawl was killed.
    pub twice: usize,
}

#[derive(Debug)]
enum Event {
    Arrive(usize, FetchJob),
    Finish(usize, FetchJob),
    SpoolRead(usize, Block, ReadFor),
    Deliver(u16, u16),
}

impl Simulation {
    /// The crawl of `rng_seed`.
    pub fn new(rng_seed: u64) -> Simulation {
        let mut rng = Rng::new(rng_seed);
        let mut web = FakeWeb::new(rng_seed);
        let mut config = Config::default();
        config.politeness.host_delay = millis(pick(&mut rng, &[0, 50, 1_000]));
        config.politeness.ip_delay = millis(pick(&mut rng, &[0, 20, 200]));
        config.politeness.crawl_delay_max = Duration::from_secs(60);
        config.politeness.retries_max = 4;
        config.politeness.retry_delay = millis(pick(&mut rng, &[100, 10_000]));
        config.politeness.host_failures_max = 40;
        config.politeness.retry_after_max = Duration::from_secs(86_400);
        config.robots.retries_max = 4;
        config.robots.retry_delay = Duration::from_secs(60);
        config.robots.ttl = Duration::from_secs(pick(&mut rng, &[30, 86_400]));
        config.robots.redirects_max = 5;
        config.robots.body_bytes_max = 512 << 10;
        config.fetch.deadline = Duration::from_secs(60);
        config.scope.depth_max = u16::MAX;
        config.scope.url_bytes_max = 2_048;
        config.exchange.ring_bytes = 1 << 20;
        config.exchange.batch_urls_max = 1 + rng.below(10) as usize;
        config.exchange.batch_age_max = millis(1 + rng.below(200));
        config.exchange.waiting_bytes_max = pick(&mut rng, &[0, 1_000, 1 << 20]) as usize;
        config.visited.urls_max = if rng.percent(10) { 1 + rng.below(400) } else { 1 << 20 };
        config.frontier.ram_bytes_max = pick(&mut rng, &[0, 4_000, 1 << 30]);
        config.frontier.host_head_urls = 1 + rng.below(8) as usize;
        // Bounds so small that hosts are forgotten, wait outside, and lose their rules.
        config.frontier.hosts_max = pick(&mut rng, &[1, 4, 16, 1 << 20]);
        config.robots.ram_bytes_max = pick(&mut rng, &[0, 1_500, 1 << 30]);
        config.dns.in_flight_max = 1 + rng.below(4) as usize;
        config.agent.name = "simulated".to_owned();
        config.partition.key = if rng.percent(80) { PartitionKey::Site } else { PartitionKey::Host };
        // With hosts of a site in different shards, a robots.txt on another host is out of reach.
        web.moved_robots = config.partition.key == PartitionKey::Site;
        let partition = Partition { key: config.partition.key, shards: 1 + rng.below(8) as u16 };
        let scope = Scope::new(&config.scope, &web.seeds());
        let make = Make { config, partition, scope, rng_seed };
        let (config, shards) = (&make.config, make.shards());
        let stop_at = rng.percent(50).then(|| Instant::ZERO + millis(rng.below(600_000)));
        // A third of all crawls are killed, many of them while everything is under way.
        let kill_at = rng.percent(33).then(|| Instant::ZERO + millis(1 << rng.below(20)) + millis(rng.below(5_000)));
        Simulation {
            servers: FakeServers::new(web.clone(), config.politeness.host_delay, config.politeness.ip_delay),
            web,
            now: Instant::ZERO,
            events: BinaryHeap::new(),
            pending: BTreeMap::new(),
            numbered: 0,
            lanes: BTreeMap::new(),
            lane_batches_max: 1 + rng.below(4) as usize,
            awake: vec![true; shards.len()],
            in_flight: vec![0; shards.len()],
            in_flight_max: 1 + rng.below(50) as usize,
            disks: vec![BTreeMap::new(); shards.len()],
            ram_bytes_max: config.frontier.ram_bytes_max,
            forgotten_before: 0,
            outside: 0,
            journals: vec![Vec::new(); shards.len()],
            stop_at: stop_at.filter(|_| kill_at.is_none()),
            kill_at,
            last_blocks: vec![(0, Instant::ZERO); shards.len()],
            fetched_at: HashMap::new(),
            killed: None,
            over_before: vec![0; shards.len()],
            exchanged_before: 0,
            shards,
            make,
            rng,
            trace: 0,
            spilled: 0,
            refused: 0,
        }
    }

    /// Crawls to the end and judges.
    pub fn run(mut self) -> Report {
        self.sow();
        let mut complaints = Vec::new();
        loop {
            if self.kill_at.is_some_and(|at| at <= self.now) {
                self.kill();
            }
            self.drive();
            let under_way = !self.lanes.values().all(VecDeque::is_empty);
            if self.shards.iter().all(Shard::is_idle) && !under_way {
                break;
            }
            if self.is_draining() && !under_way && self.shards.iter().all(|it| it.in_flight() == 0 && it.is_drained()) {
                self.restart();
                continue;
            }
            let dues = self.shards.iter().enumerate();
            // A shard with all its places taken does nothing until one of them is free.
            let due = dues
                .filter_map(|(index, shard)| shard.next_due().filter(|_| self.in_flight[index] < self.in_flight_max));
            let tick = if self.is_draining() { DRAINING_TICK } else { TICK };
            let due = due.map(|at| at.max(self.now + tick)).min();
            let event = self.events.peek().map(|Reverse((at, _, _))| *at);
            let Some(next) = [due, event].into_iter().flatten().min() else {
                complaints.push(format!("{:?} stuck: shards wait for nothing", self.now));
                break;
            };
            if next > STUCK {
                complaints.push(format!("{:?} stuck: {} URLs queued", self.now, self.queued()));
                break;
            }
            self.now = self.now.max(next);
            for (index, shard) in self.shards.iter().enumerate() {
                self.awake[index] |= shard.next_due().is_some_and(|due| due <= self.now);
            }
            while self.events.peek().is_some_and(|Reverse((at, _, _))| *at <= self.now) {
                if let Some(Reverse((_, _, number))) = self.events.pop()
                    && let Some(event) = self.pending.remove(&number)
                {
                    self.happen(event);
                }
            }
        }
        self.judge(complaints)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(shard, job) => {
                self.servers.arrive(self.now, &job);
                let service = millis(self.rng.below(400));
                self.later(service, Event::Finish(shard, job));
            }
            Event::Finish(shard, job) => {
                self.awake[shard] = true;
                let outcome = self.servers.answer(self.now, &job);
                self.note(shard, &job, &outcome);
                self.in_flight[shard] -= usize::from(job.kind != JobKind::Resolve);
                self.shards[shard].finish(self.now, &job, &outcome);
            }
            Event::SpoolRead(shard, block, purpose) => {
                self.awake[shard] = true;
                let bytes = self.disks[shard].remove(&(block.file, block.offset)).unwrap_or_default();
                assert!(self.shards[shard].spool_read(self.now, block, purpose, bytes), "a block was damaged");
            }
            Event::Deliver(from, to) => {
                self.awake[usize::from(to)] = true;
                let bytes = self.lanes.get_mut(&(from, to)).and_then(VecDeque::pop_front);
                let batch = bytes.and_then(UrlBatch::from_bytes).unwrap_or_default();
                self.shards[usize::from(to)].receive(self.now, &batch);
            }
        }
    }

    /// Gives every shard that is awake its turn, in an order that the seed chooses. The others sleep, as their
    /// loops do: nobody tells a shard that a ring it found full has room again.
    fn drive(&mut self) {
        let first = self.rng.below(self.shards.len() as u64) as usize;
        for turn in 0..self.shards.len() {
            let index = (first + turn) % self.shards.len();
            if !std::mem::take(&mut self.awake[index]) {
                continue;
            }
            while self.in_flight[index] < self.in_flight_max
                && self.stop_at.is_none_or(|at| self.now < at)
                && let Some(job) = self.shards[index].next_job(self.now)
            {
                self.in_flight[index] += usize::from(job.kind != JobKind::Resolve);
                let way = millis(self.rng.below(300));
                self.later(way, Event::Arrive(index, job));
            }
            let mut sent = Vec::new();
            let (lanes, lane_batches_max, refused) = (&mut self.lanes, self.lane_batches_max, &mut self.refused);
            self.shards[index].flush_exchange(self.now, &mut |to, batch| {
                let lane = lanes.entry((index as u16, to)).or_default();
                let room = lane.len() < lane_batches_max;
                *refused += u64::from(!room);
                if room {
                    lane.push_back(batch.as_bytes().to_vec());
                    sent.push(to);
                }
                room
            });
            for to in sent {
                let way = millis(self.rng.below(1_000));
                self.later(way, Event::Deliver(index as u16, to));
            }
            while let Some(op) = self.shards[index].next_spool_op() {
                match op {
                    SpoolOp::Write { block, bytes } => {
                        self.spilled += 1;
                        self.disks[index].insert((block.file, block.offset), bytes);
                    }
                    SpoolOp::Read { block, purpose } => {
                        self.outside += u64::from(purpose == ReadFor::Outside);
                        let seek = millis(self.rng.below(20));
                        self.later(seek, Event::SpoolRead(index, block, purpose));
                    }
                    SpoolOp::Delete { file } => {
                        let left = self.disks[index].keys().filter(|(in_file, _)| *in_file == file).count();
                        assert_eq!(left, 0, "a spool file was deleted with blocks in it");
                    }
                }
            }
            while let Some(block) = self.shards[index].journal_block(self.now, false) {
                self.last_blocks[index] = (self.journals[index].len(), self.now);
                self.journals[index].extend(block);
            }
        }
    }

    /// Seeds are given to every run, as `boot` does it.
    fn sow(&mut self) {
        for url in self.web.seeds() {
            let first = self.rng.below(self.shards.len() as u64) as usize;
            self.shards[first].found(self.now, &url, 0);
        }
    }

    fn is_draining(&self) -> bool {
        self.stop_at.is_some_and(|at| at <= self.now)
    }

    /// The process dies at once: jobs, batches, spools and what is in no journal yet are gone. A block that was
    /// written within the last second may have been on its way to the file: gone, or torn.
    fn kill(&mut self) {
        self.killed = self.kill_at.take();
        self.events.clear();
        self.pending.clear();
        self.lanes.clear();
        self.in_flight.fill(0);
        for (journal, (before, at)) in self.journals.iter_mut().zip(&self.last_blocks) {
            if self.now.since(*at) < ON_ITS_WAY_MAX && self.rng.percent(50) {
                let torn = self.rng.below((journal.len() - before) as u64 + 1) as usize;
                journal.truncate(before + torn);
                let whole = journal::blocks(journal).last().map_or(0, |(_, end)| end);
                journal.truncate(whole);
            }
        }
        self.begin_again();
        self.sow();
    }

    /// All shards end, and others begin from their journals.
    fn restart(&mut self) {
        assert!(self.events.is_empty() && self.in_flight.iter().all(|count| *count == 0), "something is under way");
        self.stop_at = None;
        for (shard, journal) in self.shards.iter_mut().zip(&mut self.journals) {
            while let Some(block) = shard.journal_block(self.now, true) {
                journal.extend(block);
            }
        }
        self.begin_again();
    }

    /// New shards begin from the journals, as `drive::recover` does it.
    fn begin_again(&mut self) {
        self.exchanged_before = self.shards.iter().map(|shard| shard.counts().exchanged_out).sum();
        self.forgotten_before = self.forgotten();
        self.now = self.now + RESTART_PAUSE;
        self.servers.crawler_restarts();
        self.disks.iter_mut().for_each(BTreeMap::clear);
        self.awake.fill(true);
        self.shards = self.make.shards();
        for (index, (shard, journal)) in self.shards.iter_mut().zip(&self.journals).enumerate() {
            let blocks = || journal::blocks(journal).map(|(entries, _)| entries);
            let over: HashSet<u64> = blocks().flat_map(|entries| entries.over).collect();
            self.over_before[index] = over.len() as u64;
            for (depth, text) in blocks().flat_map(|entries| owned(&entries.accepted)) {
                let Ok(url) = Url::from_canonical(&text) else { continue };
                let is_over = over.contains(&shard.fingerprint(&url));
                shard.remember(self.now, &url, depth, is_over);
            }
            for entries in blocks() {
                shard.reconsider(self.now, &entries, true);
            }
        }
    }

    fn judge(mut self, mut complaints: Vec<String>) -> Report {
        let expected = self.web.reachable();
        complaints.append(&mut self.servers.complaints);
        let aside: u64 = self.shards.iter().map(|shard| shard.counts().aside).sum();
        for url in expected.iter().filter(|url| aside == 0 && !self.servers.pages.contains_key(*url)) {
            complaints.push(format!("{url} was never fetched"));
        }
        let mut twice = 0;
        for (url, times) in &self.servers.pages {
            let dies = Url::parse(url).is_ok_and(|url| self.web.dies(url.host()));
            // What a kill may make a crawl do again: only what ended in its last moments, and only once.
            let forgotten =
                self.killed.zip(self.fetched_at.get(url)).is_some_and(|(killed, at)| killed <= *at + FORGOTTEN_MAX);
            twice += usize::from(*times > 1);
            if *times > 1 + u64::from(forgotten) || !expected.contains(url) && !dies {
                complaints.push(format!("{url} was fetched {times} times, expected: {}", expected.contains(url)));
            }
        }
        let out: u64 = self.shards.iter().map(|shard| shard.counts().exchanged_out).sum();
        let received: u64 = self.shards.iter().map(|shard| shard.counts().exchanged_in).sum();
        if out != received {
            complaints.push(format!("{out} URLs were sent and {received} received"));
        }
        for (index, shard) in self.shards.iter().enumerate() {
            let over = shard.counts().over + self.over_before[index];
            let (queued, visited) = (shard.queued(), shard.visited());
            if queued != 0 || over != visited {
                complaints.push(format!("shard {index} ended with {queued} queued, {over} over of {visited} accepted"));
            }
        }
        if !complaints.is_empty() {
            let failures = self.shards.iter().flat_map(|shard| Failure::ALL.iter().zip(shard.counts().failures));
            let failures = failures.filter(|(_, count)| *count > 0);
            complaints.push(format!("URLs that failed: {:?}", failures.collect::<Vec<_>>()));
        }
        Report {
            forgotten: self.forgotten(),
            outside: self.outside,
            complaints,
            pages: self.servers.pages.len(),
            shards: self.shards.len(),
            trace: self.trace,
            took: self.now.since(Instant::ZERO),
            spilled: self.spilled,
            refused: self.refused,
            exchanged: out + self.exchanged_before,
            aside,
            resumed: self.over_before.iter().any(|over| *over > 0),
            killed: self.killed.is_some(),
            twice,
        }
    }

    fn later(&mut self, wait: Duration, event: Event) {
        self.numbered += 1;
        self.pending.insert(self.numbered as usize, event);
        self.events.push(Reverse((self.now + wait, self.numbered, self.numbered as usize)));
    }

    fn note(&mut self, shard: usize, job: &FetchJob, outcome: &Outcome) {
        let line = format!("{:?} {shard} {job:?} {outcome:?}", self.now);
        self.trace = xxhash_rust::xxh3::xxh3_64_with_seed(line.as_bytes(), self.trace);
        if self.kill_at.is_some() && job.kind == JobKind::Page {
            self.fetched_at.insert(job.url.as_str().to_owned(), self.now);
        }
        let (config, shard) = (&self.make.config, &self.shards[shard]);
        let (_, queue_bytes, rules_bytes) = shard.ram_bytes();
        let shards = self.shards.len() as u64;
        debug_assert!(self.ram_bytes_max >= 1 << 30 || queue_bytes < self.ram_bytes_max + RAM_SLACK);
        debug_assert!(rules_bytes <= config.robots.ram_bytes_max + RULES_SLACK, "{rules_bytes} bytes of rules");
        let hosts_max = config.frontier.hosts_max.div_ceil(shards) + HOSTS_SLACK;
        debug_assert!(shard.hosts_in_memory() as u64 <= hosts_max, "{} hosts", shard.hosts_in_memory());
        debug_assert!(shard.resolving() <= config.dns.in_flight_max, "{} names", shard.resolving());
    }

    /// Hosts forgotten since the start or restart, and before.
    fn forgotten(&self) -> u64 {
        let forgotten = self.shards.iter().map(|shard| shard.hosts() - shard.hosts_in_memory() as u64);
        forgotten.sum::<u64>() + self.forgotten_before
    }

    fn queued(&self) -> u64 {
        self.shards.iter().map(Shard::queued).sum()
    }
}

fn owned(batch: &UrlBatch) -> Vec<(u16, String)> {
    batch.iter().map(|(depth, text)| (depth, text.to_owned())).collect()
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn pick(rng: &mut Rng, choices: &[u64]) -> u64 {
    choices[rng.below(choices.len() as u64) as usize]
}

/// From a block's end to its place in the file.
const ON_ITS_WAY_MAX: Duration = Duration::from_secs(1);
/// The age of an open block, the way of a block to its file, and the turns between.
const FORGOTTEN_MAX: Duration = Duration::from_secs(3);
const TICK: Duration = Duration::from_micros(1);
/// A shard that drains has URLs to fetch and does not: its loop looks no more often than this.
const DRAINING_TICK: Duration = Duration::from_millis(1);
/// Longer than any delay, which a crawl that begins anew does not know of.
const RESTART_PAUSE: Duration = Duration::from_secs(2 * 86_400);
const STUCK: Instant = Instant::from_nanos(30 * 86_400 * 1_000_000_000);
/// Heads and short tails stay in memory whatever the bound.
const RAM_SLACK: u64 = 256 << 10;
/// Rules that their first page waits for stay, too.
const RULES_SLACK: u64 = 8 << 10;
/// Hosts that are met because a robots.txt redirects to them.
const HOSTS_SLACK: u64 = 4;
