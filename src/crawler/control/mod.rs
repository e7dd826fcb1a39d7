//! What the housekeeping thread and the shards share: counters, phases, wake-ups. It holds no shard's state.
//!
//! A shard publishes counters and reads the phase and its orders. The housekeeping thread reads the counters and sets
//! the others, as [`Supervisor`], [`Breaker`] and [`DiskFloor`] decide.
//! Invariants: only a shard writes its [`ShardHandle`], except `has_messages` and its orders. Only the housekeeping
//! thread gives orders and moves the phase, and only forward.
//! Leaves to others: what is shown (`cli`), what a shard does in a phase (`shard`).

mod balance_watch;
mod breaker;
mod census;
mod disk_floor;
mod heart_watch;
mod memory_watch;
mod network_evidence;
mod orders;
mod outage;
mod sites;
mod supervisor;
mod versioned;

pub use balance_watch::BalanceWatch;
pub use breaker::{Breaker, BreakerDecision, NetworkView, ProbeKind};
pub use census::Census;
pub use disk_floor::DiskFloor;
pub use heart_watch::{Beat, HeartWatch};
pub use memory_watch::MemoryWatch;
pub use network_evidence::NetworkEvidence;
pub use orders::Orders;
pub use outage::{Cause, Outage};
pub use supervisor::{Observation, Supervisor, TIME_MAX_REACHED};
pub use versioned::Versioned;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ringcrawl_brain::exchange::MailFlag;
use ringcrawl_brain::latency::Latencies;
use ringcrawl_brain::scope::Scope;
use ringcrawl_brain::shard::{Phase, ShardReport};
use ringcrawl_brain::stats::{ShardStats, Totals};
use ringcrawl_brain::trouble::Trouble;
use ringcrawl_ring::{Heart, Thread, Waker};

/// The side of one shard that other threads see.
#[derive(Debug)]
pub struct ShardHandle {
    /// Counters for the operator.
    pub stats: ShardStats,
    /// How long the parts of fetches took.
    pub latencies: Latencies,
    /// The shard's thread.
    pub thread: Thread,
    /// The thread that reads its long responses.
    pub reading: Thread,
    /// Its heart, which the shard's thread takes over.
    pub heart: &'static Heart,
    /// Wakes the shard.
    pub waker: Waker,
    /// Messages put into rings, before they are put there.
    pub sent: AtomicU64,
    /// Messages taken out of rings, after they were processed.
    pub received: AtomicU64,
    /// Whether the shard has nothing to do until an input arrives.
    pub quiet: AtomicBool,
    /// What it has seen of the network.
    pub sightings: NetworkEvidence,
    /// Its orders.
    pub orders: Versioned<Orders>,
    /// The version of the scope that it uses.
    pub scope_heard: AtomicU64,
    /// Whether its thread has ended, or is ending: it fetches nothing any more.
    pub has_ended: AtomicBool,
    /// Raised by a thread that put something into one of the shard's rings, so that the shard need not look at all of
    /// them.
    pub has_messages: MailFlag,
    trouble: Mutex<Option<(Box<str>, Trouble)>>,
}

/// A crawl as the housekeeping thread sees it.
#[derive(Debug)]
pub struct Control {
    shards: Vec<Arc<ShardHandle>>,
    phase: AtomicU8,
    /// The first failure. Written at most once per crawl, never on a page's path.
    failure: Mutex<Option<String>>,
    failed: AtomicBool,
    /// Notes for the operator, and whether each is a warning.
    notes: Mutex<Vec<(String, bool)>>,
    /// The scope, if it was changed since the beginning.
    scope: Versioned<Scope>,
}

impl ShardHandle {
    /// Its threads: its own, and the one that reads long responses.
    pub fn threads(&self) -> [&Thread; 2] {
        [&self.thread, &self.reading]
    }

    /// The last failure at one of its hosts, with the host's name. If a reader holds the lock now, this does not
    /// wait: it is published at another time.
    pub fn tell_trouble(&self, trouble: Option<(&str, &Trouble)>) {
        let Ok(mut told) = self.trouble.try_lock() else { return };
        let known = told.as_ref().map(|(host, trouble)| (&**host, trouble));
        if known != trouble {
            *told = trouble.map(|(host, trouble)| (host.into(), trouble.clone()));
        }
    }
}

impl Control {
    /// A crawl of `shards` shards in `Phase::Run`.
    pub fn new(shards: u16) -> std::io::Result<Control> {
        let handle = || {
            Ok(Arc::new(ShardHandle {
                stats: ShardStats::default(),
                latencies: Latencies::default(),
                thread: Thread::default(),
                reading: Thread::default(),
                heart: Heart::new(),
                waker: Waker::new()?,
                sent: AtomicU64::new(0),
                received: AtomicU64::new(0),
                quiet: AtomicBool::new(false),
                sightings: NetworkEvidence::default(),
                orders: Versioned::default(),
                scope_heard: AtomicU64::new(0),
                has_ended: AtomicBool::new(false),
                has_messages: MailFlag::default(),
                trouble: Mutex::default(),
            }))
        };
        Ok(Control {
            shards: (0..shards).map(|_| handle()).collect::<std::io::Result<_>>()?,
            phase: AtomicU8::new(Phase::Run as u8),
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
            notes: Mutex::new(Vec::new()),
            scope: Versioned::default(),
        })
    }

    /// The scope that should be in effect.
    pub fn scope(&self) -> &Versioned<Scope> {
        &self.scope
    }

    /// Every shard's handle, by its index.
    pub fn shards(&self) -> &[Arc<ShardHandle>] {
        &self.shards
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        Phase::from_number(self.phase.load(Ordering::Acquire))
    }

    /// The reports of all shards.
    pub fn reports(&self) -> Vec<ShardReport> {
        let report = |handle: &Arc<ShardHandle>| ShardReport {
            quiet: handle.quiet.load(Ordering::Acquire),
            sent: handle.sent.load(Ordering::Acquire),
            received: handle.received.load(Ordering::Acquire),
        };
        self.shards.iter().map(report).collect()
    }

    /// Moves on to `phase`, never back, and wakes all shards.
    pub fn advance(&self, phase: Phase) {
        if self.phase.fetch_max(phase as u8, Ordering::AcqRel) < phase as u8 {
            self.shards.iter().for_each(|handle| handle.waker.wake());
        }
    }

    /// Gives `shard` orders, and wakes it.
    pub fn order(&self, shard: usize, orders: &Orders) {
        if let Some(handle) = self.shards.get(shard) {
            handle.orders.give(*orders);
            handle.waker.wake();
        }
    }

    /// Reports a failure that ends the crawl; the first report counts.
    pub fn fail(&self, what: String) {
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(what);
        }
        self.failed.store(true, Ordering::Release);
    }

    /// The failure, if there was one.
    pub fn failure(&self) -> Option<String> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        self.failure.lock().ok().and_then(|failure| failure.clone())
    }

    /// Adds a note for the operator.
    pub fn note(&self, note: String) {
        self.push(note, false);
    }

    /// Adds what the operator must know or act on, or the answer to a signal: a quiet crawl shows it, too.
    pub fn warn(&self, note: String) {
        self.push(note, true);
    }

    fn push(&self, note: String, is_warning: bool) {
        if let Ok(mut notes) = self.notes.lock() {
            notes.push((note, is_warning));
        }
    }

    /// Notes since the last call; of a quiet crawl only warnings.
    pub fn take_notes(&self, is_quiet: bool) -> Vec<String> {
        let notes = self.notes.lock().map(|mut notes| std::mem::take(&mut *notes)).unwrap_or_default();
        notes.into_iter().filter(|(_, is_warning)| *is_warning || !is_quiet).map(|(note, _)| note).collect()
    }

    /// The last failure at a host that has not recovered since, with its name.
    pub fn trouble(&self) -> Option<(Box<str>, Trouble)> {
        let of_shard = |handle: &Arc<ShardHandle>| handle.trouble.lock().ok()?.clone();
        self.shards.iter().filter_map(of_shard).max_by_key(|(_, trouble)| trouble.seconds)
    }

    /// Counters, shard by shard.
    pub fn totals(&self) -> Vec<Totals> {
        self.shards.iter().map(|handle| handle.stats.totals()).collect()
    }
}
