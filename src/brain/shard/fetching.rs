//! Jobs: fetches and lookups in flight, and what happens when they end.
//!
//! Decides: when a fetch may start. That is while the crawl runs, a slot is free (`fetch.in_flight_max`), the page
//! budget is not used up (`crawl.pages_max`), hour and bandwidth allow it ([`super::allowance`]), the disk keeps up
//! and has room, and the network works ([`super::network`]). The hands get a request that is ready to be sent.
//! Invariants: a job ends once. An end for a job that is not in flight is a bug of ours.

use std::rc::Rc;

use super::input::OutOfReach;
use super::{Effect, Phase, Shard};
use crate::frontier::{self, Rest, Settled};
use crate::hops::Hops;
use crate::job::{FetchJob, JobKind};
use crate::log::{End, EndKind, HostNote, RecordPlace};
use crate::names::{DnsAnswer, DnsQuery};
use crate::outcome::{Fetched, Outcome, Wall};
use crate::page::{Page, PageRead};
use crate::transaction::Transaction;
use crate::waits::{Wait, Waits};
use ringcrawl_base::Failure;
use ringcrawl_base::IntMap;
use ringcrawl_base::grouped;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::{Duration, Instant, UnixTime};
use ringcrawl_url::Url;
use ringcrawl_warc::{self as warc, HostAddresses, Note, Placed};

/// Jobs in flight by number, with the instant at which they began.
#[derive(Debug, Default)]
pub struct InFlight {
    jobs: IntMap<(Rc<FetchJob>, Instant)>,
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    fn begin(&mut self, now: Instant, job: FetchJob) -> Rc<FetchJob> {
        let job = Rc::new(job);
        let before = self.jobs.insert(job.id, (Rc::clone(&job), now));
        assert!(before.is_none(), "job {} began twice", job.id);
        job
    }

    fn job(&self, id: u64) -> Rc<FetchJob> {
        let Some((job, _)) = self.jobs.get(&id) else { panic!("job {id} was answered and is not in flight") };
        Rc::clone(job)
    }

    /// Details of how a job fails; the latest ones count.
    pub(super) fn tell(&mut self, id: u64, words: Box<str>) {
        if let Some((job, _)) = self.jobs.get_mut(&id) {
            Rc::make_mut(job).told = Some(words);
        }
    }

    fn end(&mut self, id: u64) -> (Rc<FetchJob>, Instant) {
        let Some(job) = self.jobs.remove(&id) else { panic!("job {id} ended and was not in flight") };
        job
    }
}

impl Shard {
    /// Jobs that have not ended, or whose end is held back or being read.
    pub(super) fn jobs(&self) -> usize {
        self.in_flight.len() + self.network.held() + self.readings.len()
    }

    /// Those of them that have a fetch slot.
    pub(super) fn fetches(&self) -> usize {
        self.jobs() - self.network.held_free() - self.frontier.resolving()
    }

    /// Whether another fetch may start, budget aside.
    pub(super) fn may_fetch(&self) -> bool {
        self.is_held_by().is_none()
    }

    /// Whether an outage cuts us off from everything.
    fn is_all_down(&self) -> bool {
        self.network.out_of_reach == OutOfReach::All
    }

    /// Why no fetch may start, budget aside.
    fn is_held_by(&self) -> Option<Wait> {
        let is_behind = self.backlog.is_long() || self.log.journal_bytes() > self.journal_bytes_max;
        match () {
            () if self.phase != Phase::Run => Some(Wait::Ending),
            () if self.fetches() >= self.in_flight_max => Some(Wait::InFlight),
            () if is_behind || self.is_disk_full || self.reopened.is_some() => Some(Wait::Disk),
            () if self.is_all_down() && !self.network.probes.are_wanted() => Some(Wait::Outage),
            () => None,
        }
    }

    /// What the shard waits for when there is nothing to do now: how many hosts for what.
    pub fn awaited(&self) -> Waits {
        let held = match self.budget_look {
            _ if self.replay.is_some() => Some(Wait::Disk),
            Some(_) => self.is_held_by().or(Some(Wait::Allowance)),
            None => self.is_held_by(),
        };
        held.map_or_else(|| self.frontier.awaited().or_work(), Waits::all_for)
    }

    /// The next fetch; lookups that come before it are started along the way.
    pub(super) fn next_fetch(&mut self, now: Instant) -> Option<Rc<FetchJob>> {
        if self.budget_look.is_some_and(|look| look > now) {
            return None;
        }
        for _ in 0..LOOKUPS_PER_FETCH {
            if !self.may_fetch() {
                return None;
            }
            self.budget_look = self.allowance.wait(now, self.clock.at(now), self.stats.bytes_wire);
            if self.budget_look.is_some() {
                return None;
            }
            if !self.budget.take() {
                self.budget_look = Some(now + BUDGET_PAUSE);
                return None;
            }
            if self.is_all_down() {
                self.choose_probe(now);
            }
            let job = self.next_job(now);
            if !job.as_ref().is_some_and(|job| job.kind == JobKind::Page) {
                self.budget.give_back();
            }
            let job = self.in_flight.begin(now, job?);
            let is_lookup = job.kind == JobKind::Resolve;
            if self.is_all_down() || is_lookup && self.network.out_of_reach == OutOfReach::Names {
                self.network.probes.begin(job.id);
            }
            if !is_lookup {
                return Some(job);
            }
            if let Some(outcome) = self.lookups.start(now, job.id, job.url.host(), job.both_families) {
                self.looked_up(now, job.id, outcome);
            }
        }
        None
    }

    /// The next query to a name server.
    pub(super) fn next_query(&mut self, now: Instant) -> Option<DnsQuery> {
        if self.phase > Phase::Run || self.network.out_of_reach > OutOfReach::Nothing {
            self.abort_lookups(now);
        }
        self.lookups.next_query(now)
    }

    /// Lookups that wait for a claim to send their query would delay the end of the crawl, or go on during an outage.
    /// Their hosts look up again in the next run, or after the outage. An outage's own probes may still query.
    pub(super) fn abort_lookups(&mut self, now: Instant) {
        let probes = self.network.probes.are_in_flight();
        let spared = if self.phase == Phase::Run { probes } else { &[] };
        for id in self.lookups.abort_waiting(spared) {
            self.looked_up(now, id, Outcome::Failed(Failure::Aborted));
        }
    }

    /// A name server answered, or did not.
    pub(super) fn answered(&mut self, now: Instant, lookup: u64, answer: DnsAnswer) {
        let _stage = stage::enter(Stage::Dns);
        self.stats.dns_answers += u64::from(answer.is_answer());
        if let Some(outcome) = self.lookups.answered(now, lookup, answer) {
            if let (Outcome::Resolved { addrs, ttl, .. }, true) = (&outcome, self.record_kinds.dns) {
                let job = self.in_flight.job(lookup);
                self.record(now, &Note::Addresses(HostAddresses { host: job.url.host(), addrs, ttl: *ttl }));
            }
            self.looked_up(now, lookup, outcome);
        }
    }

    /// A fetch ended.
    pub(super) fn fetched(&mut self, now: Instant, id: u64, result: Result<Box<Transaction>, Failure>) {
        let (job, began) = self.in_flight.end(id);
        let timings = result.as_ref().ok().map(|transaction| transaction.timings);
        let total = timings.map(|timings| timings.total.saturating_sub(timings.waited));
        match result {
            Err(Failure::ConnectTimeout | Failure::Aborted) => self.frontier.came_to_nobody(now, id),
            Ok(ref transaction) if transaction.crowded_out => self.frontier.was_cut(now, id, total.unwrap_or_default()),
            _ => self.frontier.came(now, id, total.filter(|total| !total.is_zero())),
        }
        self.probed(&job, None);
        self.judge(now, job, began, result);
    }

    /// Counts the result of a job. What arrives after [`Phase::Abort`] is left to the next run, which fetches the
    /// page again.
    pub(super) fn conclude(&mut self, now: Instant, job: &FetchJob, result: Result<Box<Transaction>, Failure>) {
        let mut is_page = false;
        // The frontier counts lookups, so lookups end in any phase.
        if self.phase < Phase::Abort || job.kind == JobKind::Resolve {
            match result {
                Ok(transaction) => {
                    let mut decoder = std::mem::take(&mut self.decoder);
                    let page = self.reader.read_short(job, &transaction, &mut decoder, &mut self.stats);
                    let is_short = page.is_some();
                    if let Some(page) = page {
                        is_page = page.is_page();
                        self.took(now, job, transaction.started, page);
                    }
                    self.decoder = decoder;
                    if !is_short {
                        return self.read_beside(now, job, transaction);
                    }
                }
                Err(failure) => self.ended(now, job, &Outcome::Failed(failure), Stored::default()),
            }
        }
        self.settle_budget(job, is_page);
    }

    /// A slot that was taken for a page is released if no page came.
    fn settle_budget(&mut self, job: &FetchJob, is_page: bool) {
        if job.kind == JobKind::Page && !is_page {
            self.budget.give_back();
        }
    }

    /// A long response: reading it would delay all others. Its job keeps its slot.
    fn read_beside(&mut self, now: Instant, job: &FetchJob, transaction: Box<Transaction>) {
        if self.readings.is_long() {
            self.frontier.waits_long(job.id);
        }
        self.frontier.request_ended(now, job);
        let site = self.site_key(&job.url);
        // How long it waits for us says nothing about its host.
        let job = FetchJob { ended: Some(job.ended(now)), ..job.clone() };
        self.readings.push(now, job, site, transaction);
    }

    /// The next long response to read. When the crawl ends, those that still wait are left to the next run.
    pub(super) fn next_reading(&mut self, now: Instant) -> Option<Effect> {
        if self.phase > Phase::Run {
            while let Some((job, _)) = self.readings.pop() {
                self.conclude(now, &job, Err(Failure::Aborted));
            }
        }
        // A segment that is full waits for those that have its names, and these may not go on for ever.
        if !self.readings.may_begin() || self.segments.is_closing() {
            return None;
        }
        let (job, transaction) = self.readings.pop()?;
        match self.segments.names(transaction.started) {
            Ok(names) => {
                let site = self.site_key(&job.url);
                self.readings.begin(now, job.id, site);
                Some(Effect::Read(self.reader.reading(job, transaction, names)))
            }
            Err(error) => {
                self.fail(error.to_string());
                self.effects.pop_front()
            }
        }
    }

    /// A long response was read. After [`Phase::Abort`] it is dropped, as others are.
    pub(super) fn was_read(&mut self, now: Instant, mut page: PageRead) {
        let mut record = Stored::default();
        match page.records.take().filter(|_| self.phase < Phase::Abort) {
            None => {}
            Some(Err(error)) => return self.fail(error.to_string()),
            Some(Ok(records)) => match self.segments.append_records(now, &page.job().url, records) {
                Err(error) => return self.fail(error.to_string()),
                Ok(placed) => record = self.stored(now, placed, page.is_page && page.fetched.body_bytes > 0),
            },
        }
        self.segments.end_names();
        self.readings.end(now, page.job().id);
        let is_page = page.is_page && self.phase < Phase::Abort;
        self.settle_budget(page.job(), is_page);
        if self.phase < Phase::Abort {
            self.stats.add(&page.stats);
            let fetched = std::mem::take(&mut page.fetched);
            self.is_read(now, page.job(), fetched, record);
        }
    }

    fn next_job(&mut self, now: Instant) -> Option<FetchJob> {
        let _stage = stage::enter(Stage::Frontier);
        let mut job = self.frontier.next_job(now, &mut self.spool);
        if let Some(page) = job.as_mut().filter(|job| job.kind == JobKind::Page) {
            page.via = self.vias.of(page.number).map(Box::from);
        }
        for Settled { url, number, tries, failure } in self.frontier.take_settled() {
            // A site without end has millions of these, and nothing is wrong with them.
            if failure != Failure::OverBudget {
                let via: Option<Box<str>> = self.vias.of(number).map(Box::from);
                self.record_failure(now, &url, failure, (tries, None, via.as_deref()));
            }
            let (kind, seconds) = (EndKind::Failed(failure), self.clock.seconds(now));
            self.note_over(
                now,
                End {
                    url: number,
                    kind,
                    tries,
                    is_duplicate: false,
                    is_challenge: false,
                    cut: None,
                    seconds,
                    place: None,
                    bytes: 0,
                },
            );
        }
        job
    }

    fn looked_up(&mut self, now: Instant, id: u64, outcome: Outcome) {
        let (job, began) = self.in_flight.end(id);
        self.lookup_times.push(now.since(began));
        self.probed(&job, Some(&outcome));
        let Outcome::Failed(failure) = outcome else {
            return self.ended(now, &job, &outcome, Stored::default());
        };
        self.judge(now, job, began, Err(failure));
    }

    /// A response: its record, then its links and end.
    fn took(&mut self, now: Instant, job: &FetchJob, started: UnixTime, page: Page<'_>) {
        let _stage = stage::enter(Stage::Other);
        let placed = {
            let _stage = stage::enter(Stage::Store);
            page.store(|capture| self.segments.append(now, started, capture))
        };
        let record = match placed {
            None => Stored::default(),
            Some(Ok(placed)) => self.stored(now, placed, page.is_page() && page.body_bytes() > 0),
            Some(Err(error)) => return self.fail(error.to_string()),
        };
        self.is_read(now, job, page.into_fetched(), record);
    }

    /// A capture has its position in the open segment; only the body of a page can be a duplicate.
    fn stored(&mut self, now: Instant, placed: Placed, has_body: bool) -> Stored {
        self.commits.note(now);
        self.stats.bytes_stored += placed.capture_bytes;
        self.stats.records += u64::from(placed.records);
        self.stats.revisits += u64::from(placed.is_revisit);
        let is_duplicate = has_body && (self.recent_bodies.is_again(placed.payload) || placed.is_revisit);
        self.stats.duplicates += u64::from(is_duplicate);
        let segment = self.segments.number();
        Stored {
            place: Some(RecordPlace { shard: self.index, segment, offset: placed.offset }),
            is_duplicate,
            payload: has_body.then_some(placed.payload),
        }
    }

    /// A URL has no response in the end, after this many tries, at this distance from a seed, found by this page.
    fn record_failure(
        &mut self,
        now: Instant,
        url: &Url,
        failure: Failure,
        (tries, depth, via): (u8, Option<u16>, Option<&str>),
    ) {
        if !self.record_kinds.failure {
            return;
        }
        let hops = depth.map(|bits| Hops::from_bits(bits).links());
        self.record(now, &Note::Failure(warc::Failure { url, cause: failure.as_str(), tries, via, hops }));
    }

    fn record(&mut self, now: Instant, note: &Note<'_>) {
        if self.phase >= Phase::Abort {
            return;
        }
        let _stage = stage::enter(Stage::Store);
        let time = self.clock.at(now);
        match self.segments.append_note(now, time, note) {
            Ok(bytes) => {
                self.commits.note(now);
                self.stats.bytes_stored += bytes;
                self.stats.records += 1;
            }
            Err(error) => self.fail(error.to_string()),
        }
    }

    /// The links of a response, and its end.
    fn is_read(&mut self, now: Instant, job: &FetchJob, fetched: Fetched, record: Stored) {
        {
            // The links of a robots.txt are its sitemaps.
            let _stage = stage::enter(Stage::Url);
            self.frontier.begin_links(job);
            let before = self.stats.seeds_led_outside;
            if let (JobKind::Page, Some(_), Some(recent)) = (job.kind, &fetched.redirect, &mut self.redirecting) {
                recent.note(self.keys.key(&job.url));
            }
            if let (JobKind::Page, Some(_)) = (job.kind, &fetched.redirect) {
                self.note_redirects(&job.url, Hops::from_bits(job.depth));
            }
            self.found_by(now, job, &fetched.links);
            if fetched.redirect.is_none() {
                self.stats.seed_pages_led_outside += self.stats.seeds_led_outside - before;
            }
            if let (JobKind::Page, Some(target)) = (job.kind, &fetched.redirect) {
                self.redirected(now, job, target);
            }
            self.frontier.end_links();
        }
        if let Some((links, limit)) = fetched.dropped {
            self.tell_drop(&job.url, links, limit);
        }
        let fetched = Fetched { payload: record.payload, ..fetched };
        self.ended(now, job, &Outcome::Fetched(fetched), record);
    }

    /// Reports which links of a page were dropped: pages that only they link to will be missing.
    fn tell_drop(&mut self, page: &Url, links: u64, limit: &str) {
        self.drops_told = self.drops_told.saturating_add(1);
        let more = match self.drops_told {
            ..DROPS_TOLD_MAX => "",
            DROPS_TOLD_MAX => {
                "; further such pages are only counted, and their metadata records say so (outlinksDropped)"
            }
            _ => return,
        };
        let count = grouped(links);
        self.effects.push_back(Effect::Note(format!("{page}: {count} links were dropped, beyond {limit}{more}")));
    }

    /// Logs how long hosts have asked to be left alone, which a restart must not forget, and how they are doing.
    pub(super) fn note_rests(&mut self, now: Instant) {
        let seconds = self.clock.seconds(now);
        for Rest { host, crawl_delay, until, health } in self.frontier.take_rests() {
            let left = until.since(now);
            let lasts_seconds = if until == Instant::ZERO { 0 } else { left.as_millis().div_ceil(1_000) as u64 + 1 };
            let until_seconds = if lasts_seconds > 0 { seconds + lasts_seconds } else { 0 };
            self.log.note_host(HostNote { host, delay: crawl_delay, until_seconds, lasts_seconds, health });
            if left >= LONG_REST { self.commits.hurry(now) } else { self.commits.note(now) }
        }
    }

    /// A job, whose links have been found, ended with `outcome`.
    fn ended(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome, stored: Stored) {
        let _stage = stage::enter(Stage::Frontier);
        let end = self.frontier.finish(now, job, outcome);
        self.note_rests(now);
        match end {
            frontier::End::Over => {
                let kind = match outcome {
                    Outcome::Failed(failure) => {
                        let tries = job.attempt.saturating_add(1);
                        self.record_failure(now, &job.url, *failure, (tries, Some(job.depth), job.via.as_deref()));
                        if let Some(told) = &job.told {
                            self.log.note_detail(job.number, told.clone());
                        }
                        EndKind::Failed(*failure)
                    }
                    Outcome::Fetched(fetched) => EndKind::Fetched(fetched.status),
                    outcome => panic!("a page ended as {outcome:?}"),
                };
                let Stored { place, is_duplicate, .. } = stored;
                let (tries, seconds) = (job.attempt.saturating_add(1), self.clock.seconds(now));
                let cut = if let Outcome::Fetched(fetched) = outcome { fetched.truncated } else { None };
                let bytes = match outcome {
                    Outcome::Fetched(fetched) if self.counts_bytes => fetched.wire_bytes,
                    _ => 0,
                };
                let is_challenge =
                    matches!(outcome, Outcome::Fetched(fetched) if fetched.wall == Some(Wall::Challenge));
                let url = job.number;
                self.note_over(now, End { url, kind, tries, is_duplicate, is_challenge, cut, seconds, place, bytes });
            }
            frontier::End::Again => self.stats.retries += 1,
            frontier::End::Preparation => {}
        }
    }
}

/// What the record of a response contains.
#[derive(Default)]
struct Stored {
    place: Option<RecordPlace>,
    is_duplicate: bool,
    /// A hash of the page's payload.
    payload: Option<u64>,
}

/// Pages of a shard whose dropped links are reported one by one.
const DROPS_TOLD_MAX: u32 = 16;
/// A cooldown at least this long is logged at once.
const LONG_REST: Duration = Duration::from_secs(60);
/// Lookups started before sockets are served.
const LOOKUPS_PER_FETCH: usize = 64;
/// How long a shard without any page left in the budget waits before it looks again.
const BUDGET_PAUSE: Duration = Duration::from_millis(100);
