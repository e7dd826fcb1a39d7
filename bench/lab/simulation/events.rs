//! The events of a simulated crawl: responses, messages, and completed disk operations.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::rc::Rc;

use super::super::fake_http::transaction;
use super::super::fake_web::FakeWeb;
use super::{Simulation, millis};
use ringcrawl_base::Failure;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::job::{FetchJob, JobKind};
use ringcrawl_brain::names::DnsAnswer;
use ringcrawl_brain::outcome::Outcome;
use ringcrawl_brain::page::PageRead;
use ringcrawl_brain::politeness::FurtherClaim;
use ringcrawl_brain::shard::{DiskEnd, Input};
use ringcrawl_warc::Dictionary;
use xxhash_rust::xxh3::xxh3_64;

/// A future event.
#[derive(Debug)]
pub(super) enum Event {
    /// A request reaches its server.
    Arrive(usize, Rc<FetchJob>),
    /// Its response is back, with the address that sent it.
    Fetched(usize, Rc<FetchJob>, Option<IpAddr>),
    /// A request failed, or its response was lost.
    Failed(usize, Rc<FetchJob>, Failure),
    /// A long response was read.
    Read(usize, Box<PageRead>),
    Trained(usize, Option<Dictionary>),
    /// A name server's answer is back.
    Answered(usize, u64, DnsAnswer),
    /// A shard checks its phase and its orders.
    Look(usize),
    /// The receiver checks the ring.
    Deliver(u16, u16),
    /// The disk of a shard completes an operation.
    Disk(usize),
    /// A segment of a shard is synced and closed.
    Closed(usize),
    /// A sync of a shard has ended, unless a segment is still being closed.
    Synced(usize),
}

impl Simulation {
    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(shard, job) => {
                if let Some((failure, wait)) = self.outages.failure(self.now, false, &mut self.rng) {
                    return self.later(wait, Event::Failed(shard, job, failure));
                }
                let addr = self.dial(&job);
                if addr.is_some() {
                    self.servers.arrive(shard, self.now, &FetchJob { addr, ..(*job).clone() });
                }
                let service = millis(self.rng.below(400));
                self.later(service, Event::Fetched(shard, job, addr));
            }
            Event::Fetched(shard, job, addr) => {
                if let Some((failure, wait)) = self.outages.failure(self.now, true, &mut self.rng) {
                    if addr.is_some() {
                        self.servers.lose(self.now, &FetchJob { addr, ..(*job).clone() });
                    }
                    self.give_back(&job, addr);
                    return self.later(wait, Event::Failed(shard, job, failure));
                }
                let result = match addr {
                    None => Err(Failure::ConnectTimeout),
                    Some(_) => match self.servers.answer(self.now, &FetchJob { addr, ..(*job).clone() }) {
                        Outcome::Fetched(fetched) => {
                            if job.kind == JobKind::Page && fetched.status == 200 {
                                self.answered.entry(job.url.as_str().to_owned()).or_default().push(self.now);
                            }
                            let limits = self.plan.config.fetch.limits();
                            Ok(Box::new(transaction(self.now, &self.web, &job, &fetched, limits)))
                        }
                        Outcome::Failed(failure) => Err(failure),
                        outcome => panic!("a server answered {outcome:?}"),
                    },
                };
                self.give_back(&job, addr);
                let end = result.as_ref().map(|transaction| transaction.response.status);
                let what = format!("{:?} {} at {addr:?}, try {}: {end:?}", job.kind, job.url, job.attempt);
                self.print(job.url.host(), &format!("shard {shard}: {what}"));
                let costs_a_try = end.is_err() || end.is_ok_and(|status| status == 429 || status >= 500);
                if job.kind == JobKind::Page && costs_a_try {
                    *self.failed_tries.entry(job.url.as_str().to_owned()).or_default() += 1;
                }
                let body = result.as_ref().map(|transaction| xxh3_64(&transaction.response.body));
                self.note(&format!("{shard} {job:?} {end:?} {body:?}"));
                self.tell(shard, Input::Fetched { job: job.id, result });
            }
            Event::Failed(shard, job, failure) => {
                self.note(&format!("{shard} {job:?} {failure:?}"));
                self.tell(shard, Input::Fetched { job: job.id, result: Err(failure) });
            }
            Event::Read(shard, page) => {
                self.note(&format!("{shard} {} was read", page.job().id));
                self.tell(shard, Input::Read(page));
            }
            Event::Trained(shard, dictionary) => self.tell(shard, Input::Trained(dictionary)),
            Event::Answered(shard, lookup, answer) => {
                self.note(&format!("{shard} {lookup} {answer:?}"));
                self.tell(shard, Input::Answered { lookup, answer });
            }
            Event::Look(shard) => self.look(shard),
            Event::Deliver(from, to) => {
                let receiver = usize::from(to);
                if !self.run.shards[receiver].accepts_messages() {
                    self.later(BUSY_PAUSE, Event::Deliver(from, to));
                    return;
                }
                // It may have been taken in already, together with the order to close.
                let Some(mut lane) = self.run.lanes.remove(&(to, from)) else { return };
                let bytes = lane.pop_front();
                if !lane.is_empty() {
                    self.run.lanes.insert((to, from), lane);
                }
                if let Some(bytes) = bytes {
                    self.tell(receiver, Input::Received { from, bytes });
                }
            }
            Event::Disk(shard) => {
                self.run.is_disk_busy[shard] = false;
                let closing = self.disks[shard].closing();
                let end = self.disks[shard].work();
                if self.disks[shard].closing() > closing {
                    let syncs = millis(self.rng.below(1_000));
                    self.later(syncs, Event::Closed(shard));
                }
                if self.disks[shard].is_syncing() && !std::mem::replace(&mut self.run.is_syncing[shard], true) {
                    let syncs = millis(self.rng.below(300));
                    self.later(syncs, Event::Synced(shard));
                }
                self.disk_ended(shard, end);
            }
            Event::Synced(shard) => match self.disks[shard].can_finish_sync() {
                true => {
                    self.run.is_syncing[shard] = false;
                    let end = self.disks[shard].finish_sync();
                    self.disk_ended(shard, end);
                }
                false => self.later(BUSY_PAUSE, Event::Synced(shard)),
            },
            Event::Closed(shard) => {
                let end = self.disks[shard].finish_closing(&mut self.rng);
                self.disk_ended(shard, end);
            }
        }
    }

    pub(super) fn disk_ended(&mut self, shard: usize, end: Option<DiskEnd>) {
        let has_failed = matches!(end, Some(DiskEnd::Failed(_)));
        if let Some(end) = end {
            self.tell(shard, Input::Disk(end));
        }
        if !has_failed {
            self.start_disk(shard);
        }
    }

    /// The address that responds: that of the job, or as in `fetch::dial`, another one whose claim is free.
    pub(super) fn dial(&mut self, job: &FetchJob) -> Option<IpAddr> {
        let first = job.addr?;
        if !FakeWeb::is_dead(first) {
            return Some(first);
        }
        let mut others = job.others.iter().copied().filter(|addr| !FakeWeb::is_dead(*addr));
        let is_free = |claim: FurtherClaim| claim.take(&self.run.ledger, self.now);
        let further = others.find(|addr| self.further_claim(first, *addr, job).is_none_or(is_free));
        self.tally.further += u64::from(further.is_some());
        further
    }

    /// Gives back the claim at a further address.
    pub(super) fn give_back(&mut self, job: &FetchJob, addr: Option<IpAddr>) {
        if let (Some(first), Some(addr)) = (job.addr, addr)
            && let Some(claim) = self.further_claim(first, addr, job)
        {
            claim.release(&self.run.ledger, self.now);
        }
    }

    fn further_claim(&self, first: IpAddr, addr: IpAddr, job: &FetchJob) -> Option<FurtherClaim> {
        FurtherClaim::new(first, addr, job.deadline, self.plan.config.politeness.ip_delay)
    }

    /// A fetch must end if its request has arrived.
    pub(super) fn cut_short(&mut self, shard: usize, id: u64) {
        let is_of = |event: &Event| matches!(event, Event::Fetched(of, job, _) if *of == shard && job.id == id);
        let number = self.run.pending.iter().find(|(_, event)| is_of(event)).map(|(number, _)| *number);
        if let Some(Event::Fetched(_, job, addr)) = number.and_then(|number| self.run.pending.remove(&number)) {
            if addr.is_some() {
                self.servers.lose(self.now, &FetchJob { addr, ..(*job).clone() });
            }
            self.give_back(&job, addr);
            let failure = if self.rng.percent(50) { Failure::Hurried } else { Failure::Deadline };
            self.later(Duration::ZERO, Event::Failed(shard, job, failure));
        }
    }

    pub(super) fn later(&mut self, wait: Duration, event: Event) {
        self.tally.numbered += 1;
        self.run.pending.insert(self.tally.numbered, event);
        self.run.events.push(Reverse((self.now + wait, self.tally.numbered)));
    }

    pub(super) fn start_disk(&mut self, shard: usize) {
        if !self.run.is_disk_busy[shard] && self.disks[shard].has_work() {
            self.run.is_disk_busy[shard] = true;
            let took = Duration::from_micros(self.rng.below(20_000));
            self.later(took, Event::Disk(shard));
        }
    }
}

/// How long a message waits before the next check when its receiver's disk is behind.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
