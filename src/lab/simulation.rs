//! One simulated crawl, from a seed to a report.
//!
//! Decides: everything by the seed: shards, delays, ring sizes, memory bounds, latencies, and in which order
//! things that happen at one instant are seen. The virtual clock jumps to the next event. Half of the crawls are
//! stopped midway, some drained and some killed, and go on two days later from their journals.
//! Limits: a crawl that is not over after a simulated month is stuck, which is a failure.

mod again;
mod judge;

pub use judge::Report;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use super::Rng;
use super::fake_server::FakeServers;
use super::fake_web::FakeWeb;
use crate::config::{Config, PartitionKey};
use crate::ledger::{HOLD_SLACK, Ledger};
use crate::outcome::{Failure, FetchJob, JobKind, Outcome};
use crate::robots::{RobotsAnswer, RobotsRequest};
use crate::route::Partition;
use crate::shard::{Scope, Shard};
use crate::spool::{Block, ReadFor, SpoolOp};
use crate::time::{Duration, Instant};
use crate::url::UrlBatch;

/// A crawl to be simulated.
#[derive(Debug)]
pub struct Simulation {
    rng: Rng,
    now: Instant,
    shards: Vec<Shard>,
    ledger: Arc<Ledger>,
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
    /// Requests at a further address because the first was dead.
    further: u64,
    /// What shards asked and told each other about robots.txt.
    robots_messages: u64,
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
    fn shards(&self, ledger: &Arc<Ledger>) -> Vec<Shard> {
        let shard = |index| {
            let (scope, ledger) = (self.scope.clone(), Arc::clone(ledger));
            Shard::new(index, self.partition, scope, self.rng_seed, &self.config, ledger)
        };
        (0..self.partition.shards).map(shard).collect()
    }
}

#[derive(Debug)]
enum Event {
    Arrive(usize, FetchJob),
    /// With the address that answered.
    Finish(usize, FetchJob, Option<IpAddr>),
    SpoolRead(usize, Block, ReadFor),
    Deliver(u16, u16),
    /// What one shard asks or tells another about a robots.txt.
    RobotsRequest(u16, u16, Vec<u8>),
    RobotsAnswer(u16, Vec<u8>),
}

impl Simulation {
    /// The crawl of `rng_seed`.
    pub fn new(rng_seed: u64) -> Simulation {
        let mut rng = Rng::new(rng_seed);
        let web = FakeWeb::new(rng_seed);
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
        config.dns.stale_max = Duration::from_secs(pick(&mut rng, &[0, 10, 3_600]));
        config.dns.timeout = millis(pick(&mut rng, &[10, 5_000]));
        config.dns.in_flight_max = 1 + rng.below(4) as usize;
        config.agent.name = "simulated".to_owned();
        config.partition.key = if rng.percent(80) { PartitionKey::Site } else { PartitionKey::Host };
        let partition = Partition { key: config.partition.key, shards: 1 + rng.below(8) as u16 };
        let scope = Scope::new(&config.scope, &web.seeds());
        let make = Make { config, partition, scope, rng_seed };
        let ledger = Arc::new(Ledger::new(1 << 12));
        let (config, shards) = (&make.config, make.shards(&ledger));
        let stop_at = rng.percent(50).then(|| Instant::ZERO + millis(rng.below(600_000)));
        // A third of all crawls are killed, many of them while everything is under way.
        let kill_at = rng.percent(33).then(|| Instant::ZERO + millis(1 << rng.below(20)) + millis(rng.below(5_000)));
        Simulation {
            servers: FakeServers::new(
                web.clone(),
                config.politeness.host_delay,
                config.politeness.ip_delay,
                config.dns.stale_max,
            ),
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
            ledger,
            make,
            rng,
            trace: 0,
            spilled: 0,
            refused: 0,
            further: 0,
            robots_messages: 0,
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
                let addr = self.dial(&job);
                if job.addr.is_none() || addr.is_some() {
                    self.servers.arrive(self.now, &FetchJob { addr, ..job.clone() });
                }
                let service = millis(self.rng.below(400));
                self.later(service, Event::Finish(shard, job, addr));
            }
            Event::Finish(shard, job, addr) => {
                self.awake[shard] = true;
                let outcome = match (job.addr, addr) {
                    (Some(_), None) => Outcome::Failed(Failure::ConnectTimeout),
                    _ => self.servers.answer(self.now, &FetchJob { addr, ..job.clone() }),
                };
                if let Some(further) = addr.filter(|_| addr != job.addr) {
                    let free_from = self.now + self.make.config.politeness.ip_delay;
                    self.ledger.release(further, job.deadline + HOLD_SLACK, free_from);
                }
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
            Event::RobotsRequest(from, to, bytes) => {
                self.awake[usize::from(to)] = true;
                let request = RobotsRequest::from_bytes(&bytes).expect("a request");
                self.shards[usize::from(to)].robots_requested(self.now, from, &request);
            }
            Event::RobotsAnswer(to, bytes) => {
                self.awake[usize::from(to)] = true;
                let answer = RobotsAnswer::from_bytes(&bytes).expect("an answer");
                self.shards[usize::from(to)].robots_answered(self.now, answer);
            }
        }
    }

    /// The address that answers: that of the job, or as `fetch::dial` has it, another one whose turn is free.
    fn dial(&mut self, job: &FetchJob) -> Option<IpAddr> {
        let first = job.addr?;
        if !FakeWeb::is_dead(first) {
            return Some(first);
        }
        let (now, hold_until) = (self.now, job.deadline + HOLD_SLACK);
        let keeps_turns = self.make.config.politeness.ip_delay > Duration::ZERO;
        let mut others = job.others.iter().copied().filter(|addr| !FakeWeb::is_dead(*addr));
        let further = others.find(|addr| !keeps_turns || self.ledger.claim(*addr, now, hold_until).is_ok());
        self.further += u64::from(further.is_some());
        further
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
            self.carry_robots(index);
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

    /// Carries what shard `index` asks and tells others about robots.txt. One message in twenty is lost.
    fn carry_robots(&mut self, index: usize) {
        let from = index as u16;
        let requests = self.shards[index].take_robots_requests().into_iter();
        let requests = requests.map(|(to, request)| Event::RobotsRequest(from, to, request.to_bytes()));
        let mut messages: Vec<Event> = requests.collect();
        let answers = self.shards[index].take_robots_answers().into_iter();
        messages.extend(answers.map(|(to, answer)| Event::RobotsAnswer(to, answer.to_bytes())));
        for message in messages {
            self.robots_messages += 1;
            if !self.rng.percent(5) {
                let way = millis(self.rng.below(1_000));
                self.later(way, message);
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

    fn queued(&self) -> u64 {
        self.shards.iter().map(Shard::queued).sum()
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn pick(rng: &mut Rng, choices: &[u64]) -> u64 {
    choices[rng.below(choices.len() as u64) as usize]
}

const TICK: Duration = Duration::from_micros(1);
/// A shard that drains has URLs to fetch and does not: its loop looks no more often than this.
const DRAINING_TICK: Duration = Duration::from_millis(1);
const STUCK: Instant = Instant::from_nanos(30 * 86_400 * 1_000_000_000);
/// Heads and short tails stay in memory whatever the bound.
const RAM_SLACK: u64 = 256 << 10;
/// Rules that their first page waits for stay, too.
const RULES_SLACK: u64 = 8 << 10;
/// Hosts that are met because a robots.txt redirects to them.
const HOSTS_SLACK: u64 = 4;
