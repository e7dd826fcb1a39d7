//! A shard's thread: the loop that ties its brain to its hands.
//!
//! One turn of the loop: take in what other shards sent and what the hands finished, start what the brain wants,
//! hand over what was found, queue what goes to disk, publish counters; then sleep until something happens. Fetches
//! run as tasks of the same thread and bring their outcome back through a cell. No lock is taken on a page's path:
//! what crosses threads are the rings, the address ledger and single-writer counters.
//!
//! Invariants: the brain is touched by the loop alone; `quiet` and the counts of sent and received URLs move in the
//! order that [`crate::control::Census`] relies on; a shard ends only in `Phase::Close`, after everything is written.
//! Limits: new fetches, and what other shards sent, wait while the disk is more than [`BACKLOG_BYTES_MAX`] behind.

mod disk;
mod gather;
mod page;
mod recent;
pub mod recover;
mod segments;
mod signal;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::Config;
use crate::control::{Control, Phase, Post};
use crate::exchange::spsc::{Consumer, Producer};
use crate::fetch::Hands;
use crate::frontier::Ledger;
use crate::outcome::{FetchJob, Outcome};
use crate::ring::{self, Alarm, WakeListener};
use crate::route::Partition;
use crate::shard::{Scope, Shard};
use crate::stage::{self, Stage};
use crate::store;
use crate::time::Instant;
use crate::url::{Url, UrlBatch};
use disk::{Disk, DiskOp};
use page::Bench;
use recent::Recent;
use segments::Segments;
use signal::Signal;

/// What a shard's thread is given.
pub struct Task {
    /// Which shard.
    pub index: u16,
    /// Which sites are its own.
    pub partition: Partition,
    /// Which links are followed.
    pub scope: Scope,
    /// When each address may be asked again.
    pub ledger: Arc<Ledger>,
    /// Its directory.
    pub dir: PathBuf,
    /// Rings to the other shards, by their index; its own is `None`.
    pub to: Vec<Option<Producer>>,
    /// Rings from the other shards.
    pub from: Vec<Consumer>,
    /// Seeds; those of other shards are sent there.
    pub seeds: Vec<Url>,
    /// The crawl.
    pub control: Arc<Control>,
    /// Limits.
    pub config: Arc<Config>,
    /// User-Agent of the requests.
    pub user_agent: String,
    /// The crawl's seed.
    pub rng_seed: u64,
}

/// Runs a shard on the calling thread until the crawl is closed. Errors are also told to [`Control::fail`].
pub fn run(task: Task) -> Result<(), String> {
    let control = Arc::clone(&task.control);
    let index = task.index;
    control.posts()[usize::from(index)].thread.announce();
    let result = ring::Runtime::new(task.config.fetch.in_flight_max)
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(Loop::start(task)));
    result.map_err(|error| {
        let error = format!("shard {index}: {error}");
        control.fail(error.clone());
        error
    })
}

struct Loop {
    brain: Shard,
    to: Vec<Option<Producer>>,
    from: Vec<Consumer>,
    control: Arc<Control>,
    post: Arc<Post>,
    config: Arc<Config>,
    bench: Rc<Bench>,
    disk: Rc<Disk>,
    signal: Rc<Signal>,
    alarm: Rc<Alarm>,
    finished: Rc<RefCell<VecDeque<(FetchJob, Outcome)>>>,
    message: Vec<u8>,
}

impl Loop {
    async fn start(task: Task) -> Result<(), String> {
        let ReadBack { brain, journal_bytes, next_segment } = read_back(&task)?;
        let post = Arc::clone(&task.control.posts()[usize::from(task.index)]);
        let hands = Hands::new(&task.config, task.user_agent.clone()).map_err(|error| error.to_string())?;
        let hands = hands.sharing(Arc::clone(&task.ledger), task.partition.shards);
        let (disk, signal, alarm) = (Rc::new(Disk::default()), Rc::new(Signal::default()), Rc::new(Alarm::default()));
        let settings = store::Settings::new(
            &task.config.store,
            &task.config.agent,
            &task.user_agent,
            task.rng_seed ^ u64::from(task.index) << 48,
        );
        let segments =
            Segments::new(settings, task.index, next_segment, Rc::clone(&disk)).map_err(|error| error.to_string())?;
        let bench = Rc::new(Bench {
            hands: Rc::new(hands),
            segments: RefCell::new(segments),
            post: Arc::clone(&post),
            config: Arc::clone(&task.config),
            store_failure: RefCell::new(None),
            recent: RefCell::new(Recent::new()),
        });
        let work = Rc::clone(&disk).work(task.dir, journal_bytes, Rc::clone(&signal));
        let _disk = ring::spawn(stage::during(Stage::Store, work));
        let _alarm = ring::spawn(ring_at(Rc::clone(&alarm), Rc::clone(&signal)));
        let _wake = ring::spawn(listen(WakeListener::new(&post.waker), Rc::clone(&signal)));
        let mut shard = Loop {
            brain,
            to: task.to,
            from: task.from,
            control: task.control,
            post,
            config: task.config,
            bench,
            disk,
            signal,
            alarm,
            finished: Rc::default(),
            message: Vec::new(),
        };
        for seed in &task.seeds {
            shard.brain.found(ring::now(), seed, 0);
        }
        shard.run().await
    }

    async fn run(&mut self) -> Result<(), String> {
        loop {
            let phase = self.control.phase();
            let more = self.turn(phase)?;
            if phase == Phase::Close {
                return self.close().await;
            }
            if more {
                // By way of the ring: what the jobs want of the kernel must go there now.
                ring::turn().await;
            } else {
                let now = ring::now();
                let dues = [self.brain.next_due(), self.bench.segments.borrow().next_due(), self.next_look(now)];
                // A brain that is ready now waits for a free place or for the disk; their end wakes the loop.
                if let Some(at) = dues.into_iter().flatten().min() {
                    self.alarm.set(at.max(now + PAUSE_MIN));
                }
                self.signal.wait().await;
            }
        }
    }

    /// Everything that can be done now; whether there may be more at once.
    fn turn(&mut self, phase: Phase) -> Result<bool, String> {
        let _stage = stage::enter(Stage::Other);
        self.check_disk()?;
        self.take_in();
        self.take_finished();
        let more = phase == Phase::Run && self.start_jobs();
        self.hand_over();
        self.queue_writes(false);
        self.publish(phase);
        Ok(more)
    }

    fn check_disk(&self) -> Result<(), String> {
        let failure = self.disk.failure().or_else(|| self.bench.store_failure.borrow().clone());
        failure.map_or(Ok(()), |failure| Err(format!("the store stopped: {failure}")))
    }

    /// Works off what other shards sent. What the disk has no time for stays with its sender, who has a disk, too.
    fn take_in(&mut self) {
        if self.is_disk_behind() {
            return;
        }
        // With many shards most rings are empty: one flag instead of a look at each.
        if !self.post.mail.swap(false, Ordering::AcqRel) {
            return;
        }
        let _stage = stage::enter(Stage::Exchange);
        let mut more = false;
        for ring in &mut self.from {
            for _ in 0..BATCHES_PER_TURN {
                if !ring.has_message() {
                    break;
                }
                self.post.quiet.store(false, Ordering::Release);
                if ring.pop(&mut self.message)
                    && let Some(batch) = UrlBatch::from_bytes(std::mem::take(&mut self.message))
                {
                    self.brain.receive(ring::now(), &batch);
                    add(&self.post.received, batch.len() as u64);
                    self.message = batch.into_bytes();
                }
            }
            more |= ring.has_message();
        }
        if more {
            self.post.mail.store(true, Ordering::Release);
            self.signal.notify();
        }
    }

    fn is_disk_behind(&self) -> bool {
        self.disk.backlog_bytes() > BACKLOG_BYTES_MAX
    }

    fn take_finished(&mut self) {
        for (block, purpose, bytes) in self.disk.take_returned() {
            if !self.brain.spool_read(ring::now(), block, purpose, bytes) {
                let what = format!("spool/{}: a block is not what was written", block.file);
                self.bench.store_failure.borrow_mut().get_or_insert(what);
            }
        }
        loop {
            let finished = self.finished.borrow_mut().pop_front();
            let Some((job, outcome)) = finished else { break };
            self.brain.finish(ring::now(), &job, &outcome);
        }
    }

    /// Starts what may be started; whether there may be more at once.
    fn start_jobs(&mut self) -> bool {
        let pages_max = self.config.crawl.pages_max;
        for _ in 0..JOBS_PER_TURN {
            let stored = self.post.stats.pages.get() + self.brain.fetching() as u64;
            if self.brain.fetching() >= self.config.fetch.in_flight_max
                || self.is_disk_behind()
                || (pages_max > 0 && stored >= pages_max)
            {
                return false;
            }
            let Some(job) = self.brain.next_job(ring::now()) else {
                return self.brain.next_due().is_some_and(|due| due <= ring::now());
            };
            self.post.quiet.store(false, Ordering::Release);
            let (bench, finished, signal) =
                (Rc::clone(&self.bench), Rc::clone(&self.finished), Rc::clone(&self.signal));
            ring::spawn(async move {
                let outcome = bench.perform(&job).await;
                finished.borrow_mut().push_back((job, outcome));
                signal.notify();
            });
        }
        true
    }

    /// When to look for what other shards sent although nobody woke this one: between the ticks at which all shards
    /// send, so that what they sent is taken in together.
    fn next_look(&self, now: Instant) -> Option<Instant> {
        let every = self.config.exchange.batch_age_max.min(LOOK_MAX).as_nanos() as u64;
        let looks = now.as_nanos().saturating_add(every / 2).checked_div(every)?;
        (!self.from.is_empty()).then(|| Instant::from_nanos(looks * every + every / 2))
    }

    /// Puts batches into the rings, and wakes those for whom they cannot wait: a full batch, a full ring, a crawl that
    /// is about to end. The others look by themselves (`next_look`): a wake-up costs more than a batch of some URLs.
    fn hand_over(&mut self) {
        let _stage = stage::enter(Stage::Exchange);
        let (to, post, control) = (&mut self.to, &self.post, &self.control);
        let exchange = &self.config.exchange;
        let hurry = exchange.batch_age_max.is_zero() || control.phase() > Phase::Run;
        let mut woken: Vec<u16> = Vec::new();
        self.brain.flush_exchange(ring::now(), &mut |shard, batch| {
            let Some(ring) = to.get_mut(usize::from(shard)).and_then(Option::as_mut) else { return false };
            // Counted before it can be received, so that a look from outside never sees less sent than received.
            add(&post.sent, batch.len() as u64);
            let room = ring.push(batch.as_bytes());
            if hurry || !room || batch.len() >= exchange.batch_urls_max {
                woken.push(shard);
            }
            if room {
                control.posts()[usize::from(shard)].mail.store(true, Ordering::Release);
            } else {
                add(&post.sent, (batch.len() as u64).wrapping_neg());
            }
            room
        });
        woken.dedup();
        for shard in woken {
            control.posts()[usize::from(shard)].waker.wake();
        }
    }

    /// Queues what goes to disk; with `all` also what could wait.
    fn queue_writes(&mut self, all: bool) {
        while let Some(op) = self.brain.next_spool_op() {
            self.disk.push(DiskOp::Spool(op));
        }
        let now = ring::now();
        let mut segments = self.bench.segments.borrow_mut();
        let _stage = stage::enter(Stage::Store);
        segments.flush_old(now);
        while let Some(block) = self.brain.journal_block(now, all) {
            // The records of pages that the block calls over go first.
            segments.flush();
            self.disk.push(DiskOp::Journal(block));
        }
    }

    fn publish(&mut self, phase: Phase) {
        let (stats, counts) = (&self.post.stats, self.brain.counts());
        stats.hosts.set(self.brain.hosts());
        stats.visited.set(self.brain.visited());
        stats.exchanged_out.set(counts.exchanged_out);
        stats.exchanged_in.set(counts.exchanged_in);
        stats.retries.set(counts.retries);
        stats.links_too_deep.set(counts.too_deep);
        stats.redirects_too_many.set(counts.redirects_too_many);
        stats.robots_denied.set(counts.failures[crate::outcome::Failure::RobotsDenied as usize]);
        for (counter, count) in stats.failures.iter().zip(counts.failures) {
            counter.set(count);
        }
        stats.queued.set(self.brain.queued());
        stats.in_flight.set(self.brain.fetching() as u64);
        let hands = self.bench.hands.counters();
        stats.connections.set(hands.connects.get());
        stats.connections_further.set(hands.further_connects.get());
        stats.dns_queries.set(self.bench.hands.queries());
        stats.handshakes.set(hands.handshakes.get());
        stats.resumed.set(hands.resumed.get());
        stats.chains_recognized.set(hands.chains_recognized.get());
        stats.connections_open.set(self.bench.hands.open_connections() as u64);
        stats.disk_backlog_bytes.set(self.disk.backlog_bytes());
        stats.ring_operations.set(ring::operations());
        let nothing_to_do = match phase {
            Phase::Run => self.brain.is_idle(),
            Phase::Drain => self.brain.in_flight() == 0 && self.brain.is_drained(),
            Phase::Abort | Phase::Close => self.brain.is_drained(),
        };
        // The rings last: a busy shard need not look at them.
        let quiet =
            nothing_to_do && self.finished.borrow().is_empty() && self.from.iter_mut().all(|ring| !ring.has_message());
        stats.idle.set(u64::from(quiet));
        self.post.quiet.store(quiet, Ordering::Release);
    }

    /// Everything is handed over: what is left in memory goes to disk.
    async fn close(&mut self) -> Result<(), String> {
        while self.from.iter_mut().any(Consumer::has_message) {
            self.post.mail.store(true, Ordering::Release);
            self.take_in();
            if self.is_disk_behind() {
                self.signal.wait().await;
            }
        }
        self.take_finished();
        self.queue_writes(true);
        self.bench.segments.borrow_mut().stop();
        while !self.disk.is_done() {
            self.signal.wait().await;
        }
        self.publish(Phase::Close);
        self.check_disk()
    }
}

/// A shard as an earlier run left it.
struct ReadBack {
    brain: Shard,
    journal_bytes: u64,
    next_segment: u32,
}

fn read_back(task: &Task) -> Result<ReadBack, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", task.dir.display());
    let index = task.index;
    let left = recover::segments(&task.dir).map_err(failed)?;
    for (name, cut_bytes) in &left.closed {
        task.control.note(format!("shard {index}: closed {name}, which a run left open ({cut_bytes} bytes cut)"));
    }
    let (partition, ledger) = (task.partition, Arc::clone(&task.ledger));
    let mut brain = Shard::new(index, partition, task.scope.clone(), task.rng_seed, &task.config, ledger);
    let found = recover::journal(&task.dir, ring::now(), &mut brain).map_err(failed)?;
    if found.known > 0 {
        task.control.note(format!("shard {index}: {} URLs known, {} wait", found.known, found.waiting));
    }
    if found.cut_bytes > 0 {
        task.control.note(format!("shard {index}: {} bytes of a torn journal cut", found.cut_bytes));
    }
    Ok(ReadBack { brain, journal_bytes: found.journal_bytes, next_segment: left.next_number })
}

/// Turns alarms into the loop's signal.
async fn ring_at(alarm: Rc<Alarm>, signal: Rc<Signal>) {
    loop {
        alarm.wait().await;
        signal.notify();
    }
}

/// Turns wake-ups of other threads into the loop's signal.
async fn listen(listener: WakeListener, signal: Rc<Signal>) {
    loop {
        // A read that failed (interrupted, say) must not leave the shard deaf: it looks, and listens again.
        if listener.wait().await.is_err() {
            ring::sleep_until(ring::now() + DEAF_PAUSE).await;
        }
        signal.notify();
    }
}

/// For the owning thread alone.
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Release);
}

const BATCHES_PER_TURN: usize = 16;
const JOBS_PER_TURN: usize = 64;
/// The disk may be this far behind before fetching waits for it.
pub const BACKLOG_BYTES_MAX: u64 = 16 << 20;
/// A shard looks at its rings at least this often.
const LOOK_MAX: crate::time::Duration = crate::time::Duration::from_millis(100);
/// How long after a failed wait for wake-ups the next one begins.
const DEAF_PAUSE: crate::time::Duration = crate::time::Duration::from_millis(100);
/// The loop's clock is not finer than this.
const PAUSE_MIN: crate::time::Duration = crate::time::Duration::from_millis(1);
