//! Jobs: fetches and lookups in flight, and what is known of the network that they need.
//!
//! Decides: when a fetch may start. That is while the crawl runs, a slot is free (`fetch.in_flight_max`), the page
//! budget is not used up (`crawl.pages_max`), hour and bandwidth allow it ([`allowance`]), the disk keeps up and has
//! room, and the network works ([`network`]); and which long response is read next ([`readings`]).
//! Invariants: a job ends once. An end for a job that is not in flight is a bug of ours.
//! Leaves to others: which URL is next (`frontier`), what a response leads to (`Shard`).

mod allowance;
mod answered_hosts;
mod evidence;
mod network;
mod readings;

pub use evidence::{NetworkReport, SiteEnd, SiteReply, Witness};
pub(crate) use network::HELD_FREE_BYTES_MAX;

use std::rc::Rc;
use std::sync::Arc;

use crate::budget::PageBudget;
use crate::frontier::Frontier;
use crate::job::{FetchJob, JobKind};
use crate::names::Lookups;
use crate::outcome::Outcome;
use crate::page::PageReader;
use crate::stats::Totals;
use crate::transaction::Transaction;
use crate::waits::{Wait, Waits};
use allowance::Allowance;
pub(super) use network::{Disposition, FetchResult, Network};
use readings::Readings;
use ringcrawl_base::IntMap;
use ringcrawl_base::grouped;
use ringcrawl_base::time::{Duration, Instant, UnixTime};
use ringcrawl_http::Decoder;
use ringcrawl_url::{SiteKey, Url};
use ringcrawl_warc::CaptureIds;

use super::effect_queue::EffectQueue;
use super::{Effect, Phase, Setup};

/// What is in flight, and what may start.
#[derive(Debug)]
pub(super) struct Flights {
    /// Jobs by number, with the instant at which they began.
    jobs: IntMap<(Rc<FetchJob>, Instant)>,
    jobs_max: usize,
    /// The lookups, for what name servers answer.
    pub(super) lookups: Lookups,
    /// Durations of lookups.
    pub(super) lookup_times: Vec<Duration>,
    /// The network as the shard knows it.
    pub(super) network: Network,
    /// No fetch starts because the disk is out of space.
    is_disk_full: bool,
    budget: Arc<PageBudget>,
    /// When to look again, if no page may be fetched because no slot is left.
    budget_look: Option<Instant>,
    /// The bandwidth and the hours that may be used.
    allowance: Allowance,
    /// Reads responses by the scope in force.
    pub(super) reader: PageReader,
    /// Decodes short responses.
    pub(super) decoder: Decoder,
    /// Long responses.
    pub(super) readings: Readings,
    /// Pages whose dropped links were reported.
    drops_told: u32,
}

impl Flights {
    /// Nothing is in flight.
    pub(super) fn new(setup: &Setup) -> Flights {
        let Setup { ref config, rng_seed, .. } = *setup;
        let shards = setup.partition.shards();
        Flights {
            jobs: IntMap::default(),
            jobs_max: config.fetch.in_flight_max,
            lookups: Lookups::new(config, shards, setup.name_servers),
            lookup_times: Vec::new(),
            network: Network::new(rng_seed),
            is_disk_full: false,
            budget: setup.budget.clone(),
            budget_look: None,
            allowance: Allowance::new(&config.crawl, shards),
            reader: PageReader::new(config.clone()).within(setup.scope.clone()).seeded(rng_seed),
            decoder: Decoder::default(),
            readings: Readings::default(),
            drops_told: 0,
        }
    }

    /// There is less space on the disk than fetching needs, or enough again.
    pub(super) fn set_disk_full(&mut self, is_full: bool) {
        self.is_disk_full = is_full;
    }

    /// The wall clock was set: the hours in which fetches may begin have started or ended.
    pub(super) fn look_again(&mut self) {
        self.budget_look = None;
    }

    /// Whether the result of job `id` is held back or waits to be read, with its response if there is one.
    pub(super) fn holds_back(&self, id: u64) -> bool {
        self.network.holds_back(id) || self.readings.has_waiting(id)
    }

    /// Jobs that have not ended, or whose end is held back or being read.
    pub(super) fn len(&self) -> usize {
        self.jobs.len() + self.network.held() + self.readings.len()
    }

    /// Those of them that have a fetch slot.
    fn fetches(&self, frontier: &Frontier) -> usize {
        self.len() - self.network.held_free() - frontier.slots.lookups.in_flight()
    }

    /// Why no fetch may start, budget aside; `is_behind`: the disk is.
    pub(super) fn held_by(&self, phase: Phase, is_behind: bool, frontier: &Frontier) -> Option<Wait> {
        match () {
            () if phase != Phase::Run => Some(Wait::Ending),
            () if self.fetches(frontier) >= self.jobs_max => Some(Wait::InFlight),
            () if is_behind || self.is_disk_full => Some(Wait::Disk),
            () if self.network.holds_all() => Some(Wait::Outage),
            () => None,
        }
    }

    /// What the shard waits for when there is nothing to do now: how many hosts for what. `held` is why no fetch may
    /// start.
    pub(super) fn awaited(&self, held: Option<Wait>, frontier: &Frontier) -> Waits {
        let held = held.or(self.budget_look.map(|_| Wait::Allowance));
        held.map_or_else(|| frontier.awaited().or_work(), Waits::all_for)
    }

    /// When the next fetch may start, if it may.
    pub(super) fn next_due(&self, frontier: &Frontier) -> Option<Instant> {
        self.budget_look.or_else(|| frontier.next_due())
    }

    /// Whether no fetch may start before a later look.
    pub(super) fn waits(&self, now: Instant) -> bool {
        self.budget_look.is_some_and(|look| look > now)
    }

    /// Whether a fetch may start by hour, bandwidth and budget, after this many `bytes` in all. It then has a slot of
    /// the budget.
    pub(super) fn take_turn(&mut self, now: Instant, wall: UnixTime, bytes: u64) -> bool {
        self.budget_look = self.allowance.wait(now, wall, bytes);
        if self.budget_look.is_none() && !self.budget.take() {
            self.budget_look = Some(now + BUDGET_PAUSE);
        }
        self.budget_look.is_none()
    }

    /// The job that has this turn begins; if there is none, or it is no page, its slot of the budget is released.
    pub(super) fn begin(&mut self, now: Instant, job: Option<FetchJob>) -> Option<Rc<FetchJob>> {
        if !job.as_ref().is_some_and(|job| job.kind == JobKind::Page) {
            self.budget.give_back();
        }
        let job = Rc::new(job?);
        let before = self.jobs.insert(job.id, (Rc::clone(&job), now));
        assert!(before.is_none(), "job {} began twice", job.id);
        self.network.began(&job);
        Some(job)
    }

    /// A job in flight.
    pub(super) fn job(&self, id: u64) -> Rc<FetchJob> {
        let Some((job, _)) = self.jobs.get(&id) else { panic!("job {id} was answered and is not in flight") };
        Rc::clone(job)
    }

    /// Details of how a job fails; the latest ones count.
    pub(super) fn tell(&mut self, id: u64, words: Box<str>) {
        if let Some((job, _)) = self.jobs.get_mut(&id) {
            Rc::make_mut(job).told = Some(words);
        }
    }

    /// A fetch ended.
    pub(super) fn end(&mut self, id: u64) -> (Rc<FetchJob>, Instant) {
        let (job, began) = self.take(id);
        self.network.probed(&job, None);
        (job, began)
    }

    /// A lookup ended.
    pub(super) fn end_lookup(&mut self, now: Instant, id: u64, outcome: &Outcome) -> (Rc<FetchJob>, Instant) {
        let (job, began) = self.take(id);
        self.lookup_times.push(now.since(began));
        self.network.probed(&job, Some(outcome));
        (job, began)
    }

    fn take(&mut self, id: u64) -> (Rc<FetchJob>, Instant) {
        let Some(job) = self.jobs.remove(&id) else { panic!("job {id} ended and was not in flight") };
        job
    }

    /// A slot that was taken for a page is released if no page came.
    pub(super) fn settle_budget(&self, job: &FetchJob, is_page: bool) {
        if job.kind == JobKind::Page && !is_page {
            self.budget.give_back();
        }
    }

    /// Whether lookups that wait are to be aborted: they would delay the end of the crawl, or go on during an outage.
    pub(super) fn aborts_lookups(&self, phase: Phase) -> bool {
        phase > Phase::Run || self.network.is_down()
    }

    /// The lookups that wait for a claim to send their query. Their hosts look up again in the next run, or after the
    /// outage. An outage's own probes may still query.
    pub(super) fn abort_lookups(&mut self, phase: Phase) -> Vec<u64> {
        self.lookups.abort_waiting(if phase == Phase::Run { self.network.probes() } else { &[] })
    }

    /// A long response: reading it would delay all others. Its job keeps its slot.
    pub(super) fn read_beside(
        &mut self,
        now: Instant,
        job: &FetchJob,
        site: SiteKey,
        transaction: Box<Transaction>,
        frontier: &mut Frontier,
    ) {
        if self.readings.is_long() {
            frontier.slots.fetch_slots.waits_long(job.id);
        }
        frontier.request_ended(now, job);
        // How long it waits for us says nothing about its host.
        let job = FetchJob { ended: Some(job.ended(now)), ..job.clone() };
        let bytes_max = self.reader.limits(job.kind).body_bytes_max as u64;
        self.readings.push(now, job, site, transaction, bytes_max);
    }

    /// The next long response to read, if another may begin now.
    pub(super) fn next_to_read(&mut self) -> Option<(FetchJob, Box<Transaction>)> {
        if self.readings.may_begin() { self.readings.pop() } else { None }
    }

    /// It is read, into records of these names.
    pub(super) fn read(
        &mut self,
        now: Instant,
        (job, transaction): (FetchJob, Box<Transaction>),
        site: SiteKey,
        names: CaptureIds,
    ) -> Effect {
        self.readings.begin(now, job.id, site);
        Effect::Read(self.reader.reading(job, transaction, names))
    }

    /// Reports which links of a page were dropped: pages that only they link to will be missing.
    pub(super) fn tell_drop(&mut self, page: &Url, links: u64, limit: &str, effects: &mut EffectQueue) {
        self.drops_told = self.drops_told.saturating_add(1);
        let more = match self.drops_told {
            ..DROPS_TOLD_MAX => "",
            DROPS_TOLD_MAX => {
                "; further such pages are only counted, and their metadata records say so (outlinksDropped)"
            }
            _ => return,
        };
        // Strangers choose the URL.
        let (page, count) = (page.as_str(), grouped(links));
        effects.note(format!("{page:.NOTE_URL_BYTES_MAX$}: {count} links were dropped, beyond {limit}{more}"));
    }

    /// Sets the gauges.
    pub(super) fn count(&self, frontier: &Frontier, stats: &mut Totals) {
        // Held jobs are tried again, or count, when more is known about the network.
        stats.hosts_retried = u64::from(frontier.awaited().of(Wait::Retries)) + self.network.held() as u64;
        stats.in_flight = self.fetches(frontier) as u64;
        stats.lookups = self.lookups.in_flight() as u64;
        stats.dns_queries = self.lookups.queries();
    }
}

/// Pages of a shard whose dropped links are reported one by one.
const DROPS_TOLD_MAX: u32 = 16;
/// The rest of a URL is left out there.
const NOTE_URL_BYTES_MAX: usize = 500;
/// How long a shard without any page left in the budget waits before it looks again.
const BUDGET_PAUSE: Duration = Duration::from_millis(100);
