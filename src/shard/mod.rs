//! One shard's brain: a plain value that owns its part of the web.
//!
//! Time comes in as an argument, work goes out as values: [`Shard::next_job`] says what to fetch,
//! [`Shard::finish`] takes back how it ended with the links found, [`Shard::receive`] takes URLs that another
//! shard sent. The same value is driven by the ring (real sockets) and by the simulator (virtual clock).
//!
//! A link's way: scope → owner (`route`) → another shard's batch (`exchange`), or: seen before? (`visited`) →
//! journal → queue of its host (`frontier`).
//!
//! Invariants: a URL is accepted at most once; what is accepted is in the journal before it is fetched; a URL is
//! over exactly once.

pub mod journal;
mod scope;

pub use journal::{Entries, Journal, Packer};
pub use scope::{Outside, Scope};

use std::sync::Arc;

use crate::config::Config;
use crate::exchange::Outbox;
use crate::frontier::{End, Frontier, Ledger, Settings};
use crate::hops::Hops;
use crate::outcome::{Failure, FetchJob, JobKind, Outcome};
use crate::robots::{RobotsAnswer, RobotsRequest};
use crate::route::Partition;
use crate::spool::{Block, ReadFor, Spool, SpoolOp};
use crate::stage::{self, Stage};
use crate::time::Instant;
use crate::url::{KeyRules, Sites, Url, UrlBatch, fingerprint};
use crate::visited::{Seen, Table};

/// The brain of one shard.
#[derive(Debug)]
pub struct Shard {
    index: u16,
    partition: Partition,
    scope: Scope,
    rng_seed: u64,
    sites: Sites,
    key_rules: KeyRules,
    /// Memory for a key.
    key_text: String,
    visited: Table,
    frontier: Frontier,
    outbox: Outbox,
    spool: Spool,
    journal: Journal,
    in_flight: usize,
    counts: Counts,
}

/// What a brain has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// URLs handed over to other shards.
    pub exchanged_out: u64,
    /// URLs received from other shards.
    pub exchanged_in: u64,
    /// Links that scope or length ruled out.
    pub out_of_scope: u64,
    /// Links that depth ruled out.
    pub too_deep: u64,
    /// Redirects that were not followed because too many came before.
    pub redirects_too_many: u64,
    /// URLs set aside because the visited set is full.
    pub aside: u64,
    /// Page URLs that are over, however they ended.
    pub over: u64,
    /// Page requests that will be made again.
    pub retries: u64,
    /// URLs that ended without a request or whose last try failed, by [`Failure`].
    pub failures: [u64; Failure::ALL.len()],
}

impl Shard {
    /// An empty brain for shard `index` of `partition.shards`.
    pub fn new(
        index: u16,
        partition: Partition,
        scope: Scope,
        rng_seed: u64,
        config: &Config,
        ledger: Arc<Ledger>,
    ) -> Shard {
        Shard {
            index,
            partition,
            scope,
            rng_seed,
            sites: Sites::new(),
            key_rules: config.visited.key_rules(),
            key_text: String::new(),
            visited: Table::new(config.visited.urls_max.div_ceil(u64::from(partition.shards.max(1)))),
            frontier: Frontier::new(Settings::new(config, partition, index), ledger),
            outbox: Outbox::new(partition.shards, &config.exchange, config.scope.url_bytes_max),
            spool: Spool::new(SPOOL_FILE_BYTES_MAX),
            journal: Journal::default(),
            in_flight: 0,
            counts: Counts::default(),
        }
    }

    /// A link or seed was found; `depth` are the bits of its `Hops`.
    pub fn found(&mut self, now: Instant, url: &Url, depth: u16) {
        let _stage = stage::enter(Stage::Exchange);
        let site = self.sites.of(url.host());
        if let Err(outside) = self.scope.admits(url, site.name, Hops::from_bits(depth)) {
            *match outside {
                Outside::Elsewhere => &mut self.counts.out_of_scope,
                Outside::Depth => &mut self.counts.too_deep,
                Outside::Redirects => &mut self.counts.redirects_too_many,
            } += 1;
            return;
        }
        let owner = self.partition.shard_of_known(url, site);
        if owner == self.index {
            self.accept(now, url, depth);
        } else {
            self.journal.entries(now).outgoing.push(depth, url.as_str());
            self.outbox.push(now, owner, depth, url.as_str(), &mut self.spool);
        }
    }

    /// Another shard sent URLs.
    pub fn receive(&mut self, now: Instant, batch: &UrlBatch) {
        let _stage = stage::enter(Stage::Url);
        self.counts.exchanged_in += batch.len() as u64;
        batch.for_each_url(|depth, url| {
            debug_assert_eq!(self.partition.shard_of(url), self.index, "{url} was sent to the wrong shard");
            self.accept(now, url, depth);
        });
    }

    /// A journal's URL is known again after a restart; `over` says whether it needs no fetch any more. Room is no
    /// question here: what was accepted stays accepted, also when `visited.urls_max` is less than it was.
    pub fn remember(&mut self, now: Instant, url: &Url, depth: u16, over: bool) {
        let key = self.key(url);
        let is_new = self.visited.insert_anyway(key)
            // The page of its key led here, or it would not have been accepted.
            || (!self.key_rules.is_empty() && self.visited.insert_anyway(self.lone_key(url)));
        if is_new && !over {
            self.frontier.offer(now, url, depth, &mut self.spool);
        }
    }

    /// What a journal's block says was set aside gets another chance, and with `resend` what was found for other shards
    /// is sent again. After all that was accepted is known again: it must not take their room.
    pub fn reconsider(&mut self, now: Instant, entries: &Entries, resend: bool) {
        for (depth, text) in entries.aside.iter() {
            let Ok(url) = Url::from_canonical(text) else { continue };
            if self.scope.admits(&url, url.site(), Hops::from_bits(depth)).is_err() {
                continue;
            }
            let key = self.key(&url);
            match self.visited.insert(key) {
                Seen::New => {
                    self.journal.entries(now).accepted.push(depth, url.as_str());
                    self.frontier.offer(now, &url, depth, &mut self.spool);
                }
                Seen::Before => {}
                // It stands in the journal already; each restart would double the list.
                Seen::Full => self.counts.aside += 1,
            }
        }
        for (depth, text) in entries.outgoing.iter().filter(|_| resend) {
            if let Ok(url) = Url::from_canonical(text) {
                self.found(now, &url, depth);
            }
        }
    }

    /// The fingerprint under which this crawl knows `url` as one that it fetches.
    pub fn fingerprint(&self, url: &Url) -> u64 {
        fingerprint(self.rng_seed, url.as_str())
    }

    /// The fingerprint of the key of `url`: that of all URLs that lead to its page.
    fn key(&mut self, url: &Url) -> u64 {
        if self.key_rules.is_empty() {
            return self.fingerprint(url);
        }
        self.key_rules.write(url, &mut self.key_text);
        fingerprint(self.rng_seed, &self.key_text)
    }

    /// The fingerprint of a URL that was accepted although its key was known.
    fn lone_key(&self, url: &Url) -> u64 {
        fingerprint(!self.rng_seed, url.as_str())
    }

    /// What to fetch now.
    pub fn next_job(&mut self, now: Instant) -> Option<FetchJob> {
        let _stage = stage::enter(Stage::Frontier);
        let job = self.frontier.next_job(now, &mut self.spool);
        for settled in self.frontier.take_settled() {
            self.over(now, &settled.url, Some(settled.failure));
        }
        self.in_flight += usize::from(job.is_some());
        job
    }

    /// A job ended.
    pub fn finish(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome) {
        self.in_flight -= 1;
        // Those of robots.txt are its sitemaps.
        if let Outcome::Fetched(fetched) = outcome {
            let _stage = stage::enter(Stage::Url);
            fetched.links.for_each_url(|depth, url| self.found(now, url, depth));
            if let (JobKind::Page, Some(target)) = (job.kind, &fetched.redirect) {
                self.redirected(now, job, target);
            }
        }
        let _stage = stage::enter(Stage::Frontier);
        match self.frontier.finish(now, job, outcome) {
            End::Over => {
                let failure = if let Outcome::Failed(failure) = outcome { Some(*failure) } else { None };
                self.over(now, &job.url, failure);
            }
            End::Again => self.counts.retries += 1,
            End::Preparation => {}
        }
    }

    /// Hands batches over: `send` puts one into the ring to a shard and says whether there was room.
    pub fn flush_exchange(&mut self, now: Instant, send: &mut dyn FnMut(u16, &UrlBatch) -> bool) {
        self.counts.exchanged_out += self.outbox.flush(now, &mut self.spool, send);
    }

    /// What other shards are to be asked about robots.txt on their hosts, with the shard that each is for.
    pub fn take_robots_requests(&mut self) -> Vec<(u16, RobotsRequest)> {
        self.frontier.take_robots_requests()
    }

    /// Another shard asks about a robots.txt on a host of ours.
    pub fn robots_requested(&mut self, now: Instant, from: u16, request: &RobotsRequest) {
        self.frontier.robots_requested(now, from, request);
    }

    /// What other shards are to be told about robots.txt on our hosts, with the shard that each is for.
    pub fn take_robots_answers(&mut self) -> Vec<(u16, RobotsAnswer)> {
        self.frontier.take_robots_answers()
    }

    /// Another shard tells about a robots.txt on a host of its own.
    pub fn robots_answered(&mut self, now: Instant, answer: RobotsAnswer) {
        self.frontier.robots_answered(now, answer);
    }

    /// What to do on disk next, in this order.
    pub fn next_spool_op(&mut self) -> Option<SpoolOp> {
        self.spool.next_op()
    }

    /// A block that was read is back; `false` when it is not what was written. Its URLs are lost to this run, which
    /// cannot end well any more: URLs for other shards are counted and would be waited for.
    #[must_use]
    pub fn spool_read(&mut self, now: Instant, block: Block, purpose: ReadFor, bytes: Vec<u8>) -> bool {
        self.spool.finished_read(block);
        let batch = UrlBatch::from_bytes(bytes).filter(|batch| batch.len() == block.urls as usize);
        let is_whole = batch.is_some();
        let batch = batch.unwrap_or_default();
        match purpose {
            ReadFor::Host(host) => self.frontier.returned(now, host, batch),
            ReadFor::Lane(to) => self.outbox.returned(to, batch),
            ReadFor::Outside => self.frontier.returned_outside(batch),
        }
        is_whole
    }

    /// The next block of the journal, when one is due; with `force` whatever there is. To be asked until there is none.
    pub fn journal_block(&mut self, now: Instant, force: bool) -> Option<Vec<u8>> {
        let _stage = stage::enter(Stage::Journal);
        self.journal.take_block(now, force)
    }

    /// When to ask again although nothing came in; `Instant::ZERO` for now.
    pub fn next_due(&self) -> Option<Instant> {
        let waits = [self.frontier.next_due(), self.outbox.next_due(), self.journal.next_due()];
        waits.into_iter().flatten().min()
    }

    /// Jobs under way.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Requests under way: jobs but for names, which have their own bound.
    pub fn fetching(&self) -> usize {
        self.in_flight - self.frontier.resolving()
    }

    /// Names that are asked for now.
    pub fn resolving(&self) -> usize {
        self.frontier.resolving()
    }

    /// Whether nothing is left: no URL waits, no job is under way, nothing is to be handed over.
    pub fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.is_drained() && self.frontier.is_idle()
    }

    /// Whether everything found was handed over.
    pub fn is_drained(&self) -> bool {
        self.outbox.urls() == 0 && self.spool.is_quiet()
    }

    /// What was counted.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// URLs that wait or are under way.
    pub fn queued(&self) -> u64 {
        self.frontier.queued()
    }

    /// Hosts met; one that was forgotten meanwhile counts each time.
    pub fn hosts(&self) -> u64 {
        self.frontier.hosts()
    }

    /// Hosts in memory.
    pub fn hosts_in_memory(&self) -> usize {
        self.frontier.hosts_in_memory()
    }

    /// URLs seen.
    pub fn visited(&self) -> u64 {
        self.visited.len()
    }

    /// Bytes of memory: visited set, queues, rules of robots.txt.
    pub fn ram_bytes(&self) -> (u64, u64, u64) {
        (self.visited.bytes(), self.frontier.ram_bytes(), self.frontier.rules_bytes())
    }

    /// A page that redirects to an address with its own key is had nowhere but there: `/d/index.html` sends to `/d/`, or a
    /// server gives out a session. Such a target has been taken for the page that sent there, and gets a place of its own.
    fn redirected(&mut self, now: Instant, job: &FetchJob, target: &Url) {
        let depth = Hops::from_bits(job.depth).redirect();
        if self.key_rules.is_empty()
            || *target == job.url
            || self.key(target) != self.key(&job.url)
            || self.scope.admits(target, target.site(), depth).is_err()
        {
            return;
        }
        let lone_key = self.lone_key(target);
        self.accept_as(now, lone_key, target, depth.bits());
    }

    fn accept(&mut self, now: Instant, url: &Url, depth: u16) {
        let key = self.key(url);
        self.accept_as(now, key, url, depth);
    }

    fn accept_as(&mut self, now: Instant, key: u64, url: &Url, depth: u16) {
        let seen = {
            let _stage = stage::enter(Stage::Visited);
            self.visited.insert(key)
        };
        match seen {
            Seen::New => {
                {
                    let _stage = stage::enter(Stage::Journal);
                    self.journal.entries(now).accepted.push(depth, url.as_str());
                }
                let _stage = stage::enter(Stage::Frontier);
                self.frontier.offer(now, url, depth, &mut self.spool);
            }
            Seen::Before => {}
            Seen::Full => {
                let _stage = stage::enter(Stage::Journal);
                self.journal.entries(now).aside.push(depth, url.as_str());
                self.counts.aside += 1;
            }
        }
    }

    fn over(&mut self, now: Instant, url: &Url, failure: Option<Failure>) {
        let _stage = stage::enter(Stage::Journal);
        let fingerprint = self.fingerprint(url);
        self.journal.entries(now).over.push(fingerprint);
        self.counts.over += 1;
        if let Some(failure) = failure {
            self.counts.failures[failure as usize] += 1;
        }
    }
}

/// Spool files are deleted whole, so small ones give space back sooner.
const SPOOL_FILE_BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests;
