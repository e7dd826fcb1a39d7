//! The path of a job through the parts of the shard: it begins, it ends, and what its end leads to.
//!
//! Invariants: after [`Phase::Abort`] nothing that a fetch brings is taken in. A page's record is written and its
//! links are found before it is over.

use std::rc::Rc;

use super::durability::Stored;
use super::flights::{Disposition, FetchResult};
use super::input::OutOfReach;
use super::{Effect, Phase, Shard};
use crate::frontier;
use crate::hops::Hops;
use crate::job::{FetchJob, JobKind};
use crate::names::{DnsAnswer, DnsQuery};
use crate::outcome::{Fetched, Outcome};
use crate::page::PageRead;
use crate::waits::Wait;
use ringcrawl_base::Failure;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::Instant;
use ringcrawl_http as http;
use ringcrawl_warc::{HostAddresses, Note};

impl Shard {
    /// Why no fetch may start, budget aside.
    pub(super) fn held_by(&self) -> Option<Wait> {
        let is_behind = self.effects.is_disk_behind() || self.durability.is_behind();
        self.flights.held_by(self.phase, is_behind, &self.frontier)
    }

    /// The next fetch; lookups that come before it are started along the way.
    pub(super) fn next_fetch(&mut self, now: Instant) -> Option<Rc<FetchJob>> {
        if self.flights.waits(now) {
            return None;
        }
        for _ in 0..LOOKUPS_PER_FETCH {
            let is_held = self.held_by().is_some();
            if is_held || !self.flights.take_turn(now, self.clock.at(now), self.stats.bytes_wire) {
                return None;
            }
            self.flights.network.choose_probe(now, &mut self.frontier);
            let job = self.next_job(now);
            let job = self.flights.begin(now, job)?;
            if job.kind != JobKind::Resolve {
                return Some(job);
            }
            let outcome = self.flights.lookups.start(now, job.id, job.url.host(), job.both_families);
            if let Some(outcome) = outcome {
                self.looked_up(now, job.id, outcome);
            }
        }
        None
    }

    fn next_job(&mut self, now: Instant) -> Option<FetchJob> {
        let _stage = stage::enter(Stage::Frontier);
        let mut job = self.frontier.next_job(now, &mut self.durability.spool);
        if let Some(page) = job.as_mut().filter(|job| job.kind == JobKind::Page) {
            page.via = self.durability.vias.of(page.number).map(Box::from);
        }
        for settled in self.frontier.take_settled() {
            if let Err(error) = self.durability.settled(now, self.clock, &settled, &mut self.stats) {
                self.effects.fail(error);
            }
        }
        job
    }

    /// The next query to a name server.
    pub(super) fn next_query(&mut self, now: Instant) -> Option<DnsQuery> {
        if self.flights.aborts_lookups(self.phase) {
            self.abort_lookups(now);
        }
        self.flights.lookups.next_query(now)
    }

    /// Ends the lookups that wait.
    pub(super) fn abort_lookups(&mut self, now: Instant) {
        for id in self.flights.abort_lookups(self.phase) {
            self.looked_up(now, id, Outcome::Failed(Failure::Aborted));
        }
    }

    /// A name server answered, or did not.
    pub(super) fn answered(&mut self, now: Instant, lookup: u64, answer: DnsAnswer) {
        let _stage = stage::enter(Stage::Dns);
        self.stats.dns_answers += u64::from(answer.is_answer());
        let Some(outcome) = self.flights.lookups.answered(now, lookup, answer) else { return };
        if let (Outcome::Resolved { addrs, ttl, .. }, true) = (&outcome, self.durability.record_kinds.dns)
            && self.phase < Phase::Abort
        {
            let job = self.flights.job(lookup);
            let note = Note::Addresses(HostAddresses { host: job.url.host(), addrs, ttl: *ttl });
            if let Err(error) = self.durability.record(now, self.clock.at(now), &note, &mut self.stats) {
                self.effects.fail(error);
            }
        }
        self.looked_up(now, lookup, outcome);
    }

    fn looked_up(&mut self, now: Instant, id: u64, outcome: Outcome) {
        let (job, began) = self.flights.end_lookup(now, id, &outcome);
        match outcome {
            Outcome::Failed(failure) => self.judge(now, (job, began), Err(failure)),
            outcome => self.ended(now, &job, &outcome, Stored::default()),
        }
    }

    /// A fetch ended.
    pub(super) fn fetched(&mut self, now: Instant, id: u64, result: FetchResult) {
        let (job, began) = self.flights.end(id);
        let timings = result.as_ref().ok().map(|transaction| transaction.timings);
        let total = timings.map(|timings| timings.total.saturating_sub(timings.waited));
        match result {
            Err(Failure::ConnectTimeout | Failure::Aborted) => self.frontier.slots.fetch_slots.got_no_response(now, id),
            Ok(ref transaction) if transaction.crowded_out => {
                self.frontier.slots.fetch_slots.was_cut(now, id, total.unwrap_or_default())
            }
            _ => self.frontier.slots.fetch_slots.came(now, id, total.filter(|total| !total.is_zero())),
        }
        self.judge(now, (job, began), result);
    }

    /// A job ended: it counts, is undone, or is held back until more is known of the network.
    fn judge(&mut self, now: Instant, job: (Rc<FetchJob>, Instant), result: FetchResult) {
        let time = (now, self.clock);
        match self.flights.network.judge(time, self.phase, job, result, &mut self.frontier) {
            Disposition::Counts(job, result) => self.conclude(now, &job, result),
            Disposition::Undone(job, result) => self.undo(now, &job, &result),
            Disposition::Held => {}
        }
    }

    /// Counts what is cleared, as much as fits into a turn: each may be the last try of its URL, which writes a
    /// record. At the end nothing else needs the turn.
    pub(super) fn count_cleared(&mut self, now: Instant) {
        let count_max = if self.phase == Phase::Run { CLEARED_MAX } else { usize::MAX };
        for _ in 0..count_max {
            let Some((job, result)) = self.flights.network.take_cleared() else { break };
            self.conclude(now, &job, result);
        }
    }

    /// An outage begins or ends, or cuts us off from something else.
    pub(super) fn set_outage(&mut self, now: Instant, out_of_reach: OutOfReach) {
        let before = self.flights.network.set_outage(now, out_of_reach, &mut self.frontier);
        if before.is_some_and(|before| before > OutOfReach::Nothing) {
            self.tell_outage(now, None);
        }
        if before.is_some() && out_of_reach > OutOfReach::Nothing {
            self.undo_held(now, out_of_reach == OutOfReach::Names);
            self.abort_lookups(now);
        }
    }

    /// Held jobs, or only those of names, are tried again as if they had not been tried.
    pub(super) fn undo_held(&mut self, now: Instant, of_names_alone: bool) {
        while let Some((job, result)) = self.flights.network.take_held(of_names_alone) {
            self.undo(now, &job, &result);
        }
    }

    /// A job is tried again as if it had not been tried.
    fn undo(&mut self, now: Instant, job: &FetchJob, result: &FetchResult) {
        if let Err(failure) = result
            && self.flights.network.is_down()
            && *failure != Failure::Aborted
        {
            self.tell_outage(now, Some((job, *failure)));
        }
        self.conclude(now, job, Err(Failure::Aborted));
        if let Ok(transaction) = result {
            let response = &transaction.response;
            let retry_after = http::retry_after(&response.headers, transaction.started);
            self.frontier.asked_for_rest(now, job, response.status, retry_after);
            self.note_rests(now);
        }
    }

    /// Logs why fetching waits, or that it no longer waits, for readers of the logs.
    pub(super) fn tell_outage(&mut self, now: Instant, why: Option<(&FetchJob, Failure)>) {
        if let Some(note) = self.flights.network.note_outage(self.clock.seconds(now), why) {
            self.durability.note_host(now, note);
        }
    }

    /// Logs how long hosts have asked to be left alone, and how they are doing.
    pub(super) fn note_rests(&mut self, now: Instant) {
        for rest in self.frontier.take_rests() {
            self.durability.note_rest(now, self.clock, rest);
        }
    }

    /// Counts the result of a job. What arrives after [`Phase::Abort`] is left to the next run, which fetches the
    /// page again.
    fn conclude(&mut self, now: Instant, job: &FetchJob, result: FetchResult) {
        let mut is_page = false;
        // The frontier counts lookups, so lookups end in any phase.
        if self.phase < Phase::Abort || job.kind == JobKind::Resolve {
            match result {
                Ok(transaction) => {
                    let (reader, decoder) = (&mut self.flights.reader, &mut self.flights.decoder);
                    let Some(page) = reader.read_short(job, &transaction, decoder, &mut self.stats) else {
                        let site = self.intake.site_key(&job.url);
                        return self.flights.read_beside(now, job, site, transaction, &mut self.frontier);
                    };
                    let _stage = stage::enter(Stage::Other);
                    is_page = page.is_page();
                    let stored = self.durability.store(now, transaction.started, &page, &mut self.stats);
                    let fetched = page.into_fetched();
                    match stored {
                        Ok(stored) => self.is_read(now, job, fetched, stored),
                        Err(error) => self.effects.fail(error),
                    }
                }
                Err(failure) => self.ended(now, job, &Outcome::Failed(failure), Stored::default()),
            }
        }
        self.flights.settle_budget(job, is_page);
    }

    /// The next long response to read. When the crawl ends, those that still wait are left to the next run.
    pub(super) fn next_reading(&mut self, now: Instant) -> Option<Effect> {
        if self.phase > Phase::Run {
            while let Some((job, transaction)) = self.flights.readings.pop() {
                self.undo(now, &job, &Ok(transaction));
            }
        }
        // A segment that is full waits for those that have its names, and these may not go on for ever.
        if self.durability.segments.is_closing() {
            return None;
        }
        let (job, transaction) = self.flights.next_to_read()?;
        match self.durability.segments.names(transaction.started) {
            Ok(names) => {
                let site = self.intake.site_key(&job.url);
                Some(self.flights.read(now, (job, transaction), site, names))
            }
            Err(error) => {
                self.effects.fail(error);
                self.effects.pop()
            }
        }
    }

    /// A long response was read. After [`Phase::Abort`] it is dropped, as others are. If the scope was replaced in the
    /// meantime, it is read again, for the same names.
    pub(super) fn was_read(&mut self, now: Instant, mut page: PageRead) {
        if self.phase < Phase::Abort && !page.is_by_scope_of(&self.flights.reader) {
            return self.effects.push(Effect::Read(page.again(&self.flights.reader)));
        }
        let mut stored = Stored::default();
        if self.phase < Phase::Abort
            && let Some(records) = page.records.take()
        {
            let has_body = page.is_page && page.fetched.body_bytes > 0;
            let records = records.and_then(|records| {
                self.durability.store_records(now, &page.job().url, records, has_body, &mut self.stats)
            });
            match records {
                Ok(records) => stored = records,
                Err(error) => return self.effects.fail(error),
            }
        }
        self.durability.segments.end_names();
        self.flights.readings.end(now, page.job().id);
        let is_page = page.is_page && self.phase < Phase::Abort;
        self.flights.settle_budget(page.job(), is_page);
        if self.phase < Phase::Abort {
            self.stats.add(&page.stats);
            let fetched = std::mem::take(&mut page.fetched);
            self.is_read(now, page.job(), fetched, stored);
        }
    }

    /// The links of a response, and its end.
    fn is_read(&mut self, now: Instant, job: &FetchJob, fetched: Fetched, stored: Stored) {
        {
            // The links of a robots.txt are its sitemaps.
            let _stage = stage::enter(Stage::Url);
            self.frontier.begin_links(job);
            let before = self.stats.seeds_led_outside;
            let redirect = fetched.redirect.as_ref().filter(|_| job.kind == JobKind::Page);
            if redirect.is_some() {
                self.intake.note_redirect(&job.url, Hops::from_bits(job.depth));
            }
            self.found_by(now, job, &fetched.links);
            if fetched.redirect.is_none() {
                self.stats.seed_pages_led_outside += self.stats.seeds_led_outside - before;
            }
            if let Some(target) = redirect {
                self.redirected(now, job, target);
            }
            self.frontier.order.kinds.end_links();
        }
        if let Some((links, limit)) = fetched.dropped {
            self.flights.tell_drop(&job.url, links, limit, &mut self.effects);
        }
        let fetched = Fetched { payload: stored.payload(), ..fetched };
        self.ended(now, job, &Outcome::Fetched(fetched), stored);
    }

    /// A job, whose links have been found, ended with `outcome`.
    fn ended(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome, stored: Stored) {
        let _stage = stage::enter(Stage::Frontier);
        let end = self.frontier.finish(now, job, outcome);
        self.note_rests(now);
        match end {
            frontier::End::Over => {
                if let Outcome::Failed(failure) = outcome {
                    let way = (job.attempt.saturating_add(1), Some(job.depth), job.via.as_deref());
                    let (time, failure) = (self.clock.at(now), (&job.url, *failure));
                    if let Err(error) = self.durability.record_failure(now, time, failure, way, &mut self.stats) {
                        self.effects.fail(error);
                    }
                }
                self.durability.page_over(now, self.clock, job, outcome, stored, &mut self.stats);
            }
            frontier::End::Again => self.stats.retries += 1,
            frontier::End::Preparation => {}
        }
    }
}

/// Lookups started before sockets are served.
const LOOKUPS_PER_FETCH: usize = 64;
/// Failures counted in one turn: four milliseconds at worst.
const CLEARED_MAX: usize = 256;
