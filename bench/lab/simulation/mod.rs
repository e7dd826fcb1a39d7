//! One simulated crawl, from a seed to a report: the second event loop.
//!
//! Decides: the seed determines everything: shards, delays, ring sizes, memory bounds, latencies, and the order in
//! which simultaneous events are handled. The virtual clock jumps to the next event. Most crawls are broken off once
//! to four times, each time as [`Interruption`] says, and continue up to two days later from what their disks hold.
//! The code under test is production's: [`Shard`] with everything that it owns, [`Supervisor`], the formats, the
//! reading of responses. The simulator replaces the I/O: paths, rings, a disk queue, tasks that end.
//! Limits: a crawl that has not ended after a simulated month is stuck, which is a failure.

mod clocks;
mod events;
mod housekeeping;
mod interruption;
mod judge;
mod plan;
mod redistribution;
mod stores;

pub use judge::SimulationReport;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use super::fake_disk::FakeDisk;
use super::fake_dns::FakeNameServers;
use super::fake_outage::FakeOutages;
use super::fake_server::FakeServers;
use super::fake_web::FakeWeb;
use clocks::FakeClock;
use events::Event;
use interruption::Interruption;
use plan::Plan;
use ringcrawl_base::Rng;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::exchange::message::{Header, MessageKind};
use ringcrawl_brain::names::{DnsAnswer, Family};
use ringcrawl_brain::politeness::Ledger;
use ringcrawl_brain::shard::{Effect, Input, Phase, Shard};
use ringcrawl_brain::stats::Totals;
use ringcrawl_crawler::control::{Breaker, Orders, Supervisor};
use ringcrawl_warc::CaptureWriter;

/// A crawl to be simulated.
pub struct Simulation {
    plan: Plan,
    rng: Rng,
    now: Instant,
    servers: FakeServers,
    name_servers: FakeNameServers,
    outages: FakeOutages,
    clock: FakeClock,
    web: FakeWeb,
    disks: Vec<FakeDisk>,
    /// Bits of the logs were flipped: much may be lost, and nothing else may happen.
    is_damaged: bool,
    /// A shard has told of it.
    is_damage_told: bool,
    /// Disks of removed shards, the last one first.
    idle_disks: Vec<FakeDisk>,
    run: Run,
    /// Interruptions still to come.
    interruptions: VecDeque<Interruption>,
    /// When runs were broken off.
    broken_off: Vec<Instant>,
    /// When pages were answered with 200.
    answered: BTreeMap<String, Vec<Instant>>,
    /// How often each page was answered, or not, in a way that costs a try. Chance may fail them all.
    failed_tries: BTreeMap<String, u32>,
    complaints: Vec<String>,
    /// Of the threads that read long responses.
    writer: CaptureWriter,
    tally: Tally,
    trace: u64,
    /// A host whose fetches and lookups are printed.
    traced: Option<String>,
}

/// State of one run.
#[derive(Debug)]
struct Run {
    shards: Vec<Shard>,
    ledger: Arc<Ledger>,
    supervisor: Supervisor,
    breaker: Breaker,
    /// The orders of each shard, and those it has received.
    orders: Vec<(Orders, Orders)>,
    begun: Instant,
    /// The crawl's phase, and the phase each shard has received.
    phase: Phase,
    heard: Vec<Phase>,
    /// How each shard ended.
    ended: Vec<Option<Result<(), String>>>,
    next_look: Instant,
    /// Checks since a shard had a turn.
    looks: u32,
    /// Messages in the rings, by (to, from).
    lanes: BTreeMap<(u16, u16), VecDeque<Vec<u8>>>,
    /// Shards with new events since their last turn.
    awake: Vec<bool>,
    is_disk_busy: Vec<bool>,
    is_syncing: Vec<bool>,
    events: BinaryHeap<Reverse<(Instant, u64)>>,
    pending: BTreeMap<u64, Event>,
}

/// Counters over all runs.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    runs: u64,
    numbered: u64,
    refused: u64,
    read_beside: u64,
    trainings: u64,
    dictionaries: u64,
    robots_messages: u64,
    further: u64,
    exchanged: u64,
    forgotten: u64,
    dns_queries: u64,
    lookups_aborted: u64,
    left_behind: u64,
    redistributed: u64,
    levelled: u64,
    /// Number of adjustments of the wall clock.
    clock_steps: u64,
    /// Hosts whose pauses had to be remembered across a kill.
    rests_kept: u64,
    by_interruption: [u64; Interruption::KINDS],
    /// Outages that the breaker detected: of name servers, of sites, of the route.
    by_cause: [u64; 3],
}

impl Simulation {
    /// The crawl of `rng_seed`.
    pub fn new(rng_seed: u64) -> Simulation {
        let mut rng = Rng::new(rng_seed);
        let web = FakeWeb::new(rng_seed);
        let plan = Plan::new(&mut rng, &web, rng_seed);
        let name_servers = FakeNameServers::new(web.clone(), &mut rng);
        let interruptions = Interruption::some(&mut rng);
        let outages = FakeOutages::some(&mut rng);
        let servers = FakeServers::new(web.clone(), &plan.config, Arc::clone(&plan.operators));
        let mut disks: Vec<FakeDisk> = (0..plan.partition.shards()).map(|_| FakeDisk::default()).collect();
        let clock = FakeClock::new(rng_seed);
        let run = Run::new(&plan, Instant::ZERO, &mut disks, name_servers.len(), clock.now, interruptions.front());
        let writer = CaptureWriter::new(plan.config.store.packing()).expect("a compressor");
        Simulation {
            plan,
            rng,
            now: Instant::ZERO,
            servers,
            name_servers,
            outages,
            clock,
            web,
            disks,
            is_damaged: false,
            is_damage_told: false,
            idle_disks: Vec::new(),
            run,
            interruptions,
            broken_off: Vec::new(),
            answered: BTreeMap::new(),
            failed_tries: BTreeMap::new(),
            complaints: Vec::new(),
            writer,
            tally: Tally { runs: 1, ..Tally::default() },
            trace: 0,
            traced: None,
        }
    }

    /// Prints the fetches and lookups of a host, to find out why something went wrong.
    #[must_use]
    pub fn traced(self, host: Option<String>) -> Simulation {
        Simulation { traced: host, ..self }
    }

    /// Crawls to the end and judges.
    pub fn run(mut self) -> SimulationReport {
        self.crawl();
        self.judge()
    }

    fn crawl(&mut self) {
        self.sow();
        loop {
            if self.interruptions.front().is_some_and(|next| next.at() <= self.now) && self.interrupt() {
                continue;
            }
            self.set_clock();
            self.turn();
            self.supervise();
            if self.run.ended.iter().all(Option::is_some) {
                if self.end_run() {
                    break;
                }
                continue;
            }
            if !self.advance() {
                break;
            }
        }
    }

    /// Gives every awake shard its turn, in an order that the seed chooses. The others sleep, as their event loops
    /// do: a shard is not notified when a ring it found full has room again.
    fn turn(&mut self) {
        let shards = self.run.shards.len();
        let first = self.rng.below(shards as u64) as usize;
        for turn in 0..shards {
            let index = (first + turn) % shards;
            if self.run.ended[index].is_some() || !std::mem::take(&mut self.run.awake[index]) {
                continue;
            }
            self.run.looks = 0;
            while let Some(effect) = self.run.shards[index].poll(self.now) {
                self.carry_out(index, effect);
            }
            self.check_bounds(index);
        }
    }

    fn carry_out(&mut self, index: usize, effect: Effect) {
        match effect {
            Effect::Fetch(job) => {
                let way = millis(self.rng.below(300));
                self.later(way, Event::Arrive(index, job));
            }
            Effect::CutShort(id) => self.cut_short(index, id),
            Effect::Ask(query) => {
                self.tally.dns_queries += 1;
                let lost = self.outages.answer(self.now, query.wait);
                let (answer, took) = lost.unwrap_or_else(|| self.name_servers.answer(self.now, &query, &mut self.rng));
                // The answer to a probe is not used for fetching.
                if let (DnsAnswer::Addrs(addrs, ttl, _), false) = (&answer, query.is_probe()) {
                    let is_v4 = query.family == Family::V4;
                    // A lookup may query the other family afterwards, at the common rate.
                    let other_family = self.plan.config.dns.timeout + RATE_WAIT_MAX;
                    let until = self.now + took + (*ttl).max(ANSWER_HOLDS_MIN + other_family);
                    self.servers.note_answer(index, &query.name, is_v4, addrs.clone(), until);
                }
                self.print(&query.name, &format!("shard {index} asks {query:?}: {answer:?}"));
                self.later(took, Event::Answered(index, query.lookup, answer));
            }
            Effect::Read(reading) => {
                self.tally.read_beside += 1;
                let page = Box::new(reading.read(&mut self.writer));
                let took = millis(self.rng.below(500));
                self.later(took, Event::Read(index, page));
            }
            Effect::Train(training) => {
                self.tally.trainings += 1;
                let dictionary = training.train();
                self.tally.dictionaries += u64::from(dictionary.is_some());
                let took = millis(self.rng.below(5_000));
                self.later(took, Event::Trained(index, dictionary));
            }
            Effect::Send(message) => {
                let kind = Header::read(&message.bytes).map(|(header, _)| header.kind);
                self.tally.robots_messages +=
                    u64::from(matches!(kind, Some(MessageKind::RobotsRequest | MessageKind::RobotsAnswer)));
                let lane = self.run.lanes.entry((message.to, index as u16)).or_default();
                if lane.len() >= self.plan.lane_messages_max {
                    self.tally.refused += 1;
                    self.run.shards[index].handle(self.now, Input::Refused(message));
                    return;
                }
                lane.push_back(message.bytes);
                let look = millis(self.rng.below(300));
                self.later(look, Event::Deliver(index as u16, message.to));
            }
            Effect::Disk(op) => {
                self.disks[index].push(op);
                self.start_disk(index);
            }
            // What a kill or a power cut truncates was not promised to any caller.
            Effect::Warn(note) if note.contains("missing") || note.contains("damaged") => match self.is_damaged {
                true => self.is_damage_told = true,
                false => self.complaints.push(format!("{:?} {note}", self.now)),
            },
            Effect::Note(_) | Effect::Warn(_) => {}
            Effect::End(result) => self.run.ended[index] = Some(result),
        }
    }

    /// Advances the clock to the next event; `false` if there is none.
    fn advance(&mut self) -> bool {
        let live = |index: &usize| self.run.ended[*index].is_none();
        let dues = (0..self.run.shards.len()).filter(live).filter_map(|index| self.run.shards[index].next_due());
        let due = dues.map(|due| due.max(self.now + TICK)).min();
        let event = self.run.events.peek().map(|Reverse((at, _))| *at);
        let interruption = self.interruptions.front().map(Interruption::at).filter(|at| *at > self.now);
        let waits = due.is_some() || event.is_some() || interruption.is_some();
        let is_noticed = self.run.breaker.outage().is_some();
        let are_few = self.run.breaker.has_few_sites(self.now);
        self.outages.advance(self.now, is_noticed, are_few);
        let look = self.next_look(waits);
        let outage = self.outages.next().into_iter().chain(self.clock.next()).filter(|at| *at > self.now).min();
        let something_waits = [due, event, interruption, look].into_iter().flatten().min();
        let Some(next) = something_waits.map(|next| next.min(outage.unwrap_or(Instant::NEVER))) else {
            self.complain_of_standstill("nothing");
            return false;
        };
        if next > STUCK {
            self.complain_of_standstill("something for ever");
            return false;
        }
        self.now = self.now.max(next);
        self.outages.advance(self.now, is_noticed, are_few);
        for (index, shard) in self.run.shards.iter().enumerate() {
            self.run.awake[index] |= shard.next_due().is_some_and(|due| due <= self.now);
        }
        while self.run.events.peek().is_some_and(|Reverse((at, _))| *at <= self.now) {
            if let Some(Reverse((_, number))) = self.run.events.pop()
                && let Some(event) = self.run.pending.remove(&number)
            {
                self.happen(event);
            }
        }
        true
    }

    fn complain_of_standstill(&mut self, what_for: &str) {
        let (now, phase) = (self.now, self.run.phase);
        self.complaints.push(format!("{now:?} stuck in {phase:?}: shards wait for {what_for}"));
        for shard in &mut self.run.shards {
            let (report, due) = (shard.report(), shard.next_due());
            let stats = shard.stats();
            let (queued, fetches, lookups) = (stats.queued, stats.in_flight, stats.lookups);
            let what = format!("{report:?} {queued} queued, {fetches} fetches, {lookups} lookups, due {due:?}");
            self.complaints.push(what);
        }
    }

    /// Passes an input to a shard, unless the shard has ended.
    fn tell(&mut self, shard: usize, input: Input) {
        if self.run.ended[shard].is_none() {
            self.run.awake[shard] = true;
            self.run.shards[shard].handle(self.now, input);
        }
    }

    fn totals(&mut self) -> Totals {
        let totals: Vec<Totals> = self.run.shards.iter_mut().map(|shard| shard.stats().clone()).collect();
        Totals::sum(&totals)
    }

    fn print(&self, host: &str, line: &str) {
        if self.traced.as_ref().is_some_and(|traced| host.contains(traced.as_str())) {
            println!("{:?} {line}", self.now);
        }
    }

    fn note(&mut self, line: &str) {
        let line = format!("{:?} {line}", self.now);
        self.trace = xxhash_rust::xxh3::xxh3_64_with_seed(line.as_bytes(), self.trace);
    }

    /// Checks that a shard's memory after its turn, when it is highest, is within its bounds.
    fn check_bounds(&mut self, index: usize) {
        let (config, shards) = (&self.plan.config, self.run.shards.len() as u64);
        let shard = &mut self.run.shards[index];
        let (_, queue_bytes, rules_bytes) = shard.ram_bytes();
        let hosts = shard.hosts_in_memory() as u64;
        let stats = shard.stats();
        for (what, count, max) in [
            ("bytes of queues", queue_bytes, config.frontier.ram_bytes_max / shards + RAM_SLACK),
            ("bytes of rules", rules_bytes, config.robots.ram_bytes_max / shards + RULES_SLACK),
            ("hosts", hosts, config.frontier.hosts_max.div_ceil(shards) + HOSTS_SLACK),
            ("lookups", stats.lookups, config.dns.in_flight_max as u64),
            ("fetches", stats.in_flight, config.fetch.in_flight_max as u64),
        ] {
            if count > max {
                self.complaints.push(format!("{:?} shard {index} holds {count} {what}, {max} at most", self.now));
            }
        }
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const TICK: Duration = Duration::from_micros(1);
const STUCK: Instant = Instant::from_nanos(40 * 86_400 * 1_000_000_000);
/// How long a query may wait for `dns.rate_max`.
const RATE_WAIT_MAX: Duration = Duration::from_secs(40);
/// How long a name server's answer may be used, however short its time to live.
const ANSWER_HOLDS_MIN: Duration = Duration::from_secs(1);
/// Heads and short tails stay in memory regardless of the bound.
const RAM_SLACK: u64 = 256 << 10;
/// Rules that their first page waits for stay, too.
const RULES_SLACK: u64 = 8 << 10;
/// Hosts that are added because a robots.txt redirects to them.
const HOSTS_SLACK: u64 = 4;
