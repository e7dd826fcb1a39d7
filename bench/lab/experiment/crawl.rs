//! One crawl of an experiment: production's shards over the web of a graph, on a virtual clock. The third event loop.
//!
//! Decides: events at one instant are handled in the order in which they were caused, so that a seed gives one crawl.
//! A message takes [`MESSAGE_TIME`], a name server [`NAME_TIME`], a host as long as the seed says; disks take no time
//! and keep nothing.
//! Unlike the simulator of the tests, which searches for forbidden behaviour, it is built for speed, and nothing
//! fails in it.
//! Leaves to others: what is measured (`measures`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;

use super::forgetful_disk::ForgetfulDisk;
use super::graph_web::GraphWeb;
use ringcrawl_base::Rng;
use ringcrawl_base::time::{Duration, Instant, UnixTime, WallClock};
use ringcrawl_brain::exchange::Replicated;
use ringcrawl_brain::exchange::message::{Header, MessageKind};
use ringcrawl_brain::frontier::Ranks;
use ringcrawl_brain::job::FetchJob;
use ringcrawl_brain::names::{DnsAnswer, Family};
use ringcrawl_brain::route::Partition;
use ringcrawl_brain::scope::Scope;
use ringcrawl_brain::shard::{Command, Effect, Input, Phase, Setup, Shard, ShardReport};
use ringcrawl_config::Config;
use ringcrawl_crawler::control::{Observation, Supervisor};
use ringcrawl_http::Limits;
use ringcrawl_url::Url;
use ringcrawl_warc::CaptureWriter;

/// What is crawled, and how.
#[derive(Debug)]
pub struct Setting<'a> {
    /// The web.
    pub web: &'a GraphWeb,
    /// Its configuration, including partition and mode.
    pub config: Config,
    /// Number of shards.
    pub shards: u16,
    /// Draws hosts' latencies, and is the crawl's secret.
    pub rng_seed: u64,
    /// The seed URLs.
    pub seeds: &'a [Url],
    /// The assignment of URLs to shards, if the configuration alone does not determine it.
    pub partition: Option<Partition>,
    /// The ranks of URLs, if the order depends on them.
    pub ranks: Arc<Ranks>,
    /// URLs that are sent only once.
    pub replicated: Replicated,
}

/// A fetched page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fetch {
    /// Its number.
    pub page: u32,
    /// The shard that fetched it.
    pub shard: u16,
    /// When its last byte came, since the start of the crawl.
    pub at: Duration,
    /// Bytes of its body.
    pub bytes: u64,
}

/// Observations of a crawl.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// Pages in the order of their arrival.
    pub fetches: Vec<Fetch>,
    /// Links found to pages of other shards.
    pub links_crossing: u64,
    /// URLs sent to other shards.
    pub urls_sent: u64,
    /// Bytes of the messages that carried them.
    pub bytes_sent: u64,
}

/// Receives the number of pages fetched; returns `false` to stop.
pub type Proceed<'a> = &'a mut dyn FnMut(u64) -> bool;

/// Why a crawl did not finish.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CrawlError {
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
    /// A shard failed, or waits for an event that never comes: a bug in ringcrawl.
    #[error("a crawl failed: {0}")]
    Failed(String),
}

/// Crawls to the end.
pub fn crawl(setting: &Setting<'_>, proceed: Proceed<'_>) -> Result<Observed, CrawlError> {
    let mut crawl = Crawl::new(setting)?;
    let mut rounds = 0u64;
    loop {
        crawl.turn()?;
        if crawl.ended.iter().all(|ended| *ended) {
            break;
        }
        rounds += 1;
        if rounds.is_multiple_of(ROUNDS_UNTOLD) && !proceed(crawl.observed.fetches.len() as u64) {
            return Err(CrawlError::Stopped);
        }
        crawl.supervise();
        crawl.advance()?;
    }
    for shard in &mut crawl.shards {
        crawl.observed.links_crossing += shard.stats().links_crossing;
    }
    Ok(crawl.observed)
}

struct Crawl<'a> {
    web: &'a GraphWeb,
    rng_seed: u64,
    limits: Limits,
    shards: Vec<Shard>,
    disks: Vec<ForgetfulDisk>,
    writer: CaptureWriter,
    supervisor: Supervisor,
    partition: Partition,
    /// When it next learns how much waits in each shard.
    next_note: Instant,
    pages_max: u64,
    phase: Phase,
    clock: WallClock,
    now: Instant,
    /// Future events, the next one on top.
    events: BinaryHeap<Reverse<Due>>,
    numbered: u64,
    /// Shards with new events since their last turn.
    awake: Vec<bool>,
    /// The order of their turns.
    turns: Vec<usize>,
    rng: Rng,
    ended: Vec<bool>,
    observed: Observed,
}

/// A future event.
enum Event {
    /// A response has come.
    Fetched(usize, Rc<FetchJob>),
    /// A name server returns the address of a host with this name.
    Answered(usize, u64, DnsAnswer),
    /// A message of one shard reaches another.
    Delivered { from: u16, to: u16, bytes: Vec<u8> },
}

/// When an event is due, and its sequence number.
struct Due {
    at: Instant,
    number: u64,
    event: Event,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.number == other.number
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<'a> Crawl<'a> {
    fn new(setting: &Setting<'a>) -> Result<Crawl<'a>, CrawlError> {
        let failed = |error: ringcrawl_warc::StoreError| CrawlError::Failed(error.to_string());
        let count = setting.shards.max(1);
        let mut config = setting.config.clone();
        config.exchange.ring_bytes = config.ring_bytes(count);
        let config = Arc::new(config);
        let partition = setting.partition.clone().unwrap_or_else(|| Partition::new(&config.partition, count));
        let scope = Scope::new(&config.scope, setting.seeds);
        let clock = WallClock::reading(Instant::ZERO, BEGUN);
        let setup = Setup {
            clock,
            ranks: Arc::clone(&setting.ranks),
            replicated: setting.replicated.clone(),
            ..Setup::new(Arc::clone(&config), partition.clone(), scope, setting.rng_seed, LEDGER_ENTRIES)
        };
        let mut shards = Vec::new();
        for index in 0..count {
            let mut shard = Shard::new(Setup { index, ..setup.clone() }).map_err(failed)?;
            let own = setting.seeds.iter().filter(|url| partition.giver_of(url) == index).cloned().collect();
            shard.handle(Instant::ZERO, Input::Command(Command::Seeds(own)));
            shards.push(shard);
        }
        let count = shards.len();
        Ok(Crawl {
            web: setting.web,
            rng_seed: setting.rng_seed,
            limits: config.fetch.limits(),
            shards,
            disks: std::iter::repeat_with(ForgetfulDisk::default).take(count).collect(),
            writer: CaptureWriter::new(config.store.packing()).map_err(failed)?,
            supervisor: Supervisor::new(config.crawl.pages_max, Duration::ZERO),
            partition,
            next_note: Instant::ZERO,
            pages_max: config.crawl.pages_max,
            phase: Phase::Run,
            clock,
            now: Instant::ZERO,
            events: BinaryHeap::new(),
            numbered: 0,
            awake: vec![true; count],
            turns: Vec::new(),
            rng: Rng::new(setting.rng_seed),
            ended: vec![false; count],
            observed: Observed::default(),
        })
    }

    /// Gives every awake shard its turn, in a random order: of several shards that want the same host at one instant,
    /// the first gets it.
    fn turn(&mut self) -> Result<(), CrawlError> {
        let mut turns = std::mem::take(&mut self.turns);
        turns.clear();
        turns.extend(
            (0..self.shards.len()).filter(|index| std::mem::take(&mut self.awake[*index]) && !self.ended[*index]),
        );
        for last in (1..turns.len()).rev() {
            turns.swap(last, self.rng.index(last + 1));
        }
        for index in turns.iter().copied() {
            while let Some(effect) = self.shards[index].poll(self.now) {
                self.carry_out(index, effect)?;
            }
        }
        self.turns = turns;
        Ok(())
    }

    fn carry_out(&mut self, index: usize, effect: Effect) -> Result<(), CrawlError> {
        match effect {
            Effect::Fetch(job) => {
                let took = GraphWeb::latency(job.url.host(), self.rng_seed);
                self.later(took, Event::Fetched(index, job));
            }
            Effect::Ask(query) => {
                let answer = match query.family {
                    Family::V4 => DnsAnswer::Addrs(vec![GraphWeb::address(&query.name)], NAME_HOLDS, None),
                    Family::V6 => DnsAnswer::None(Some(NAME_HOLDS)),
                };
                self.later(NAME_TIME, Event::Answered(index, query.lookup, answer));
            }
            Effect::Send(message) => {
                if let Some((Header { kind: MessageKind::Urls, .. }, _)) = Header::read(&message.bytes) {
                    self.observed.urls_sent += message.urls;
                    self.observed.bytes_sent += message.bytes.len() as u64;
                }
                let event = Event::Delivered { from: index as u16, to: message.to, bytes: message.bytes };
                self.later(MESSAGE_TIME, event);
            }
            Effect::Disk(op) => {
                let end = self.disks[index].carry_out(op);
                self.shards[index].handle(self.now, Input::Disk(end));
            }
            Effect::Read(reading) => {
                let page = Box::new(reading.read(&mut self.writer));
                self.shards[index].handle(self.now, Input::Read(page));
            }
            // A dictionary is useless when nothing is kept.
            Effect::Train(_) => self.shards[index].handle(self.now, Input::Trained(None)),
            // No fetch takes that long.
            Effect::CutShort(_) | Effect::Note(_) | Effect::Warn(_) => {}
            Effect::End(Ok(())) => self.ended[index] = true,
            Effect::End(Err(why)) => return Err(CrawlError::Failed(why)),
        }
        Ok(())
    }

    /// The housekeeping thread looks when there may be something to see: when nothing is in flight, or enough was
    /// fetched.
    fn supervise(&mut self) {
        if let Some(owners) = self.partition.owners().filter(|_| self.now >= self.next_note) {
            let queued = self.shards.iter_mut().map(|shard| shard.stats().queued);
            queued.enumerate().for_each(|(shard, urls)| owners.note_waiting(shard, urls));
            self.next_note = self.now + LOOK;
        }
        let pages = self.observed.fetches.len() as u64;
        let has_enough = self.pages_max > 0 && pages >= self.pages_max && self.phase == Phase::Run;
        if !self.events.is_empty() && !has_enough {
            return;
        }
        let reports: Vec<ShardReport> = self.shards.iter().map(Shard::report).collect();
        // A quiet crawl ends when it is seen quiet twice.
        for _ in 0..2 {
            let phase = self.supervisor.look(Observation {
                is_uneven: false,
                elapsed: self.now.since(Instant::ZERO),
                reports: &reports,
                pages,
                wanted: Phase::Run,
                has_ended: false,
            });
            if phase > self.phase {
                self.phase = phase;
                for (shard, awake) in self.shards.iter_mut().zip(&mut self.awake) {
                    shard.handle(self.now, Input::Command(Command::Enter(phase)));
                    *awake = true;
                }
            }
        }
    }

    /// Advances the clock to the next event.
    fn advance(&mut self) -> Result<(), CrawlError> {
        if self.awake.contains(&true) {
            return Ok(());
        }
        let live = self.shards.iter().zip(&self.ended).filter(|(_, ended)| !**ended);
        let due = live.filter_map(|(shard, _)| shard.next_due()).min().map(|due| due.max(self.now + TICK));
        let event = self.events.peek().map(|Reverse(due)| due.at);
        let Some(next) = due.into_iter().chain(event).min() else {
            return Err(CrawlError::Failed(format!("its shards wait for nothing at {:?}", self.now)));
        };
        self.now = self.now.max(next);
        for (shard, awake) in self.shards.iter().zip(&mut self.awake) {
            *awake |= shard.next_due().is_some_and(|due| due <= self.now);
        }
        while self.events.peek().is_some_and(|Reverse(due)| due.at <= self.now)
            && let Some(Reverse(due)) = self.events.pop()
        {
            self.happen(due.event);
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Fetched(shard, job) => {
                let took = self.now.since(job.began);
                let (page, transaction) = self.web.answer(&job, self.clock.at(job.began), took, self.limits);
                if let Some(page) = page {
                    let (at, bytes) = (self.now.since(Instant::ZERO), self.web.bytes_of(page, &transaction));
                    self.observed.fetches.push(Fetch { page, shard: shard as u16, at, bytes });
                }
                self.tell(shard, Input::Fetched { job: job.id, result: Ok(Box::new(transaction)) });
            }
            Event::Answered(shard, lookup, answer) => self.tell(shard, Input::Answered { lookup, answer }),
            Event::Delivered { from, to, bytes } => self.tell(usize::from(to), Input::Received { from, bytes }),
        }
    }

    fn tell(&mut self, shard: usize, input: Input) {
        self.awake[shard] = true;
        self.shards[shard].handle(self.now, input);
    }

    fn later(&mut self, wait: Duration, event: Event) {
        self.numbered += 1;
        self.events.push(Reverse(Due { at: self.now + wait, number: self.numbered, event }));
    }
}

/// Interval of the housekeeping thread.
const LOOK: Duration = Duration::from_millis(25);
/// Transit time of a message.
const MESSAGE_TIME: Duration = Duration::from_millis(1);
/// Response time of a name server, and the time to live of its answers.
const NAME_TIME: Duration = Duration::from_millis(20);
const NAME_HOLDS: Duration = Duration::from_secs(7 * 86_400);
const TICK: Duration = Duration::from_micros(1);
/// The wall clock's time at the beginning: 2026-01-01.
const BEGUN: UnixTime = UnixTime::from_micros(1_767_225_600_000_000);
const ROUNDS_UNTOLD: u64 = 1_024;
/// As in production.
const LEDGER_ENTRIES: usize = 1 << 19;
