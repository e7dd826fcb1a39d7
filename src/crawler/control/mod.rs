//! What the housekeeping thread and the shards share: counters, phases, wake-ups. No shard's state.
//!
//! A shard publishes counters and asks for the phase and its orders; the housekeeping thread reads the one and sets the
//! other, as [`Supervisor`], [`Breaker`] and [`DiskFloor`] decide.
//! Invariants: only a shard writes its [`ShardHandle`], but for `has_messages` and its orders; only the housekeeping
//! thread gives these and moves the phase, and only forward.
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
mod scope_cell;
mod sites;
mod supervisor;

pub use balance_watch::BalanceWatch;
pub use breaker::{Breaker, BreakerDecision, NetworkView, ProbeKind};
pub use census::Census;
pub use disk_floor::DiskFloor;
pub use heart_watch::{Beat, HeartWatch};
pub use memory_watch::MemoryWatch;
pub use network_evidence::NetworkEvidence;
pub use orders::{Orders, OrdersCell};
pub use outage::{Cause, Outage};
pub use scope_cell::ScopeCell;
pub use supervisor::{Observation, Supervisor};

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ringcrawl_brain::exchange::MailFlag;
use ringcrawl_brain::latency::Latencies;
use ringcrawl_brain::shard::{Phase, ShardReport};
use ringcrawl_brain::stats::{ShardStats, Totals};
use ringcrawl_brain::trouble::Trouble;
use ringcrawl_ring::{Heart, Thread, Waker};

/// One shard's side that others see.
#[derive(Debug)]
pub struct ShardHandle {
    /// Counters for people.
    pub stats: ShardStats,
    /// How long the parts of fetches took.
    pub latencies: Latencies,
    /// The shard's thread.
    pub thread: Thread,
    /// The thread that reads its long responses.
    pub reading: Thread,
    /// Its heart, which the thread takes.
    pub heart: &'static Heart,
    /// Wakes the shard.
    pub waker: Waker,
    /// Messages put into rings, before they are put there.
    pub sent: AtomicU64,
    /// Messages taken out of rings, after they were worked off.
    pub received: AtomicU64,
    /// Whether the shard has nothing to do until something comes in.
    pub quiet: AtomicBool,
    /// What it has seen of the network.
    pub sightings: NetworkEvidence,
    /// What is wanted of it.
    pub orders: OrdersCell,
    /// The version of the scope that it has.
    pub scope_heard: AtomicU64,
    /// Whether its thread has ended, or ends: it asks for nothing any more.
    pub has_ended: AtomicBool,
    /// Raised by whoever put something into one of the shard's rings, so that it need not look at all of them.
    pub has_messages: MailFlag,
    trouble: Mutex<Option<(Box<str>, Trouble)>>,
}

/// A crawl as the housekeeping thread sees it.
#[derive(Debug)]
pub struct Control {
    shards: Vec<Arc<ShardHandle>>,
    phase: AtomicU8,
    /// The first thing that broke. Written at most once a crawl, never on a page's path.
    failure: Mutex<Option<String>>,
    failed: AtomicBool,
    /// What people should know, said before the first page or after the last.
    notes: Mutex<Vec<String>>,
    /// The scope, where it was changed since the beginning.
    scope: ScopeCell,
}

impl ShardHandle {
    /// Its threads: its own, and the one that reads long responses.
    pub fn threads(&self) -> [&Thread; 2] {
        [&self.thread, &self.reading]
    }

    /// What went wrong last at one of its hosts, with the host's name. Who looks at it now is not waited for: then it
    /// is another time.
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
                orders: OrdersCell::default(),
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
            scope: ScopeCell::default(),
        })
    }

    /// The scope that is to be in force.
    pub fn scope(&self) -> &ScopeCell {
        &self.scope
    }

    /// Every shard's handle, by its index.
    pub fn shards(&self) -> &[Arc<ShardHandle>] {
        &self.shards
    }

    /// What to do now.
    pub fn phase(&self) -> Phase {
        Phase::from_number(self.phase.load(Ordering::Acquire))
    }

    /// What every shard says of itself.
    pub fn reports(&self) -> Vec<ShardReport> {
        let report = |handle: &Arc<ShardHandle>| ShardReport {
            quiet: handle.quiet.load(Ordering::Acquire),
            sent: handle.sent.load(Ordering::Acquire),
            received: handle.received.load(Ordering::Acquire),
        };
        self.shards.iter().map(report).collect()
    }

    /// Moves on to `phase`, never back, and wakes everybody.
    pub fn advance(&self, phase: Phase) {
        if self.phase.fetch_max(phase as u8, Ordering::AcqRel) < phase as u8 {
            self.shards.iter().for_each(|handle| handle.waker.wake());
        }
    }

    /// Gives `shard` orders, and wakes it.
    pub fn order(&self, shard: usize, orders: &Orders) {
        if let Some(handle) = self.shards.get(shard) {
            handle.orders.give(orders);
            handle.waker.wake();
        }
    }

    /// Something broke that the crawl cannot go on without; the first report counts.
    pub fn fail(&self, what: String) {
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(what);
        }
        self.failed.store(true, Ordering::Release);
    }

    /// What broke, if anything did.
    pub fn failure(&self) -> Option<String> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        self.failure.lock().ok().and_then(|failure| failure.clone())
    }

    /// Says something for people.
    pub fn note(&self, note: String) {
        if let Ok(mut notes) = self.notes.lock() {
            notes.push(note);
        }
    }

    /// What was said since the last call.
    pub fn take_notes(&self) -> Vec<String> {
        self.notes.lock().map(|mut notes| std::mem::take(&mut *notes)).unwrap_or_default()
    }

    /// What went wrong last at a host that has not done well since, with its name.
    pub fn trouble(&self) -> Option<(Box<str>, Trouble)> {
        let of_shard = |handle: &Arc<ShardHandle>| handle.trouble.lock().ok()?.clone();
        self.shards.iter().filter_map(of_shard).max_by_key(|(_, trouble)| trouble.seconds)
    }

    /// Counters, shard by shard.
    pub fn totals(&self) -> Vec<Totals> {
        self.shards.iter().map(|handle| handle.stats.totals()).collect()
    }
}
