//! A running crawl, as the thread that started it sees it.
//!
//! Decides: several times a second it looks at outages, memory, shards that hang, the scope's files and the balance of
//! shards, and tells the shards in which phase the crawl is.
//! Invariants: every thread is joined before `finish` returns.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::crawl_dir::CrawlDir;
use super::order::{HandedOn, RoundEnd};
use super::outage_watch::OutageWatch;
use super::scope_reload::ScopeReload;
use crate::control::{BalanceWatch, Beat, Control, HeartWatch, MemoryWatch, Observation, Supervisor};
use ringcrawl_base::time::Duration;
use ringcrawl_brain::route::Partition;
use ringcrawl_brain::shard::Phase;
use ringcrawl_brain::stats::Totals;
use ringcrawl_config::Hours;
use ringcrawl_ring as ring;

/// A running crawl.
#[derive(Debug)]
pub struct Crawl {
    pub(super) control: Arc<Control>,
    pub(super) supervisor: Supervisor,
    pub(super) watch: OutageWatch,
    pub(super) hearts: HeartWatch,
    pub(super) memory: MemoryWatch,
    pub(super) threads: Vec<JoinHandle<Result<(), String>>>,
    pub(super) scope: ScopeReload,
    pub(super) dir: CrawlDir,
    pub(super) hours: Option<Hours>,
    pub(super) lists_external: bool,
    pub(super) balance: BalanceWatch,
    pub(super) fruitless: u32,
    pub(super) partition: Partition,
}

impl Crawl {
    /// What the shards publish.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The crawl's directory and the settings fixed at its beginning.
    pub fn dir(&self) -> &CrawlDir {
        &self.dir
    }

    /// Advances the crawl, which has run for `elapsed` and which the operator wants in phase `wanted`; returns
    /// whether it has ended. Call it several times a second.
    pub fn poll(&mut self, elapsed: Duration, wanted: Phase) -> bool {
        let mut wanted = wanted;
        let is_running = self.control.phase() == Phase::Run;
        if let Some(why) = is_running.then(|| self.watch.look(ring::now(), &self.control)).flatten() {
            self.control.fail(why);
            wanted = Phase::Abort;
        }
        self.watch_hearts();
        self.scope.look(&self.control);
        if let Some(note) = self.memory.look(ring::now(), super::rss_bytes, || self.scope.lists_bytes()) {
            self.control.warn(note);
        }
        if let Some(owners) = self.partition.owners() {
            let totals = self.control.totals();
            totals.iter().enumerate().for_each(|(shard, totals)| owners.note_waiting(shard, totals.queued));
        }
        let waiting = || {
            let of = |totals: &Totals| (totals.reading_logs == 0).then_some(totals.queued);
            self.control.totals().iter().map(of).collect()
        };
        let is_uneven = is_running && !self.watch.is_waiting() && self.balance.look(elapsed, waiting);
        let phase = self.supervisor.look(Observation {
            is_uneven,
            elapsed,
            reports: &self.control.reports(),
            pages: Totals::sum(&self.control.totals()).pages,
            wanted,
            has_ended: self.threads.iter().any(JoinHandle::is_finished),
        });
        self.control.advance(phase);
        self.threads.iter().all(JoinHandle::is_finished)
    }

    fn watch_hearts(&mut self) {
        for (shard, handle) in self.control.shards().iter().enumerate() {
            let beat = Beat { piece: handle.heart.piece(), cpu: handle.thread.cpu_time().unwrap_or_default() };
            if let Some(note) = self.hearts.look(ring::now(), shard, beat) {
                self.control.warn(note);
            }
        }
    }

    /// Requests that the files of the scope be read again.
    pub fn reload_scope(&mut self) {
        self.scope.ask();
    }

    /// What makes fetching wait now, in words: an outage, or a full disk.
    pub fn waits_for(&self) -> Option<String> {
        let hours = self.hours.and_then(|hours| hours.closed_for(ring::unix_now()));
        match hours {
            Some(closed) => Some(format!("crawl.hours begin in {} min", closed.as_secs().div_ceil(60))),
            None => self.watch.waits_for(ring::now()),
        }
    }

    /// Outages so far, and how long they have lasted together.
    pub fn outages(&self) -> (u64, Duration) {
        self.watch.outages(ring::now())
    }

    /// Whether it drains in order to continue at once with sites moved.
    pub fn is_to_level(&self) -> bool {
        self.supervisor.is_to_level()
    }

    /// Why the crawl ends or has ended, in words.
    pub fn ended(&self) -> &'static str {
        self.supervisor.ended()
    }

    /// Joins the threads; returns the error, if any.
    pub fn finish(self) -> Result<(), String> {
        self.finish_round().map(drop)
    }

    /// The same, and what the round leaves for the next. A crawl that is stopped by a signal does not wait for a list
    /// of links.
    pub fn finish_round(self) -> Result<RoundEnd, String> {
        let mut failure = None;
        for thread in self.threads {
            let ended =
                thread.join().unwrap_or_else(|_| Err("a shard's thread panicked: a bug in ringcrawl".to_owned()));
            if let Err(error) = ended {
                failure.get_or_insert(error);
            }
        }
        match self.control.failure().or(failure) {
            Some(failure) => Err(failure),
            None => {
                let fruitless = self.supervisor.is_to_level().then_some(self.fruitless);
                let is_listed = self.lists_external && !self.supervisor.is_stopped() && fruitless.is_none();
                let (links, note) = match is_listed.then(|| self.dir.list_external_links()).transpose() {
                    Ok(links) => (links, None),
                    Err(error) => (None, Some(format!("links that left the scope are not listed: {error}"))),
                };
                let handed_on =
                    HandedOn { lock: Some(self.dir.lock()), files: self.scope.files, held: self.scope.held };
                Ok(RoundEnd { fruitless, number: self.dir.round(), links, note, handed_on })
            }
        }
    }
}
