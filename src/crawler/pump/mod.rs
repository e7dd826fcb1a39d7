//! The pump: carries a shard's effects to the hands, and their ends back.
//!
//! It decides nothing: events go into [`Shard::handle`], and the output of [`Shard::poll`] goes to the task, ring or
//! queue that it is for. One turn: look at the wall clock; receive what the disk and the fetches finished, the phase
//! and the messages of other shards; carry out effects; publish counters; then sleep until something happens. Fetches
//! and queries run as tasks of the same thread and leave their ends in a cell. No lock is taken on a page's path:
//! only the rings, the address ledger and single-writer counters cross threads.
//!
//! Invariants: only the pump touches the brain. The order of [`crate::control::Census`] is kept: a message is counted
//! as sent before it enters a ring; a shard stops being quiet before it handles a message, which is counted as
//! received afterwards. A task that panics ends the crawl with its message.
//! Limits: effects, messages and the time for responses are limited per turn, so that sockets get their share.
//! Responses that the brain does not take in yet wait where they are.

mod duty;
mod reading;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use crate::control::{Control, DiskFloor, Orders, ShardHandle};
use crate::disk::{self, Disk, SegmentWays};
use crate::fault_injection;
use crate::fetch::{BodyHold, Hands, OwnAddresses};
use duty::Duty;
use reading::ReadingThread;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::{Duration, Instant, WallClock};
use ringcrawl_brain::exchange::Outgoing;
use ringcrawl_brain::exchange::spsc::{Consumer, Producer};
use ringcrawl_brain::page::LongResponse;
use ringcrawl_brain::shard::{Command, Effect, Input, Phase, Setup, Shard};
use ringcrawl_config::{Config, PageCache};
use ringcrawl_ring::{self as ring, Alarm, Signal, WakeListener};
use ringcrawl_url::Url;

/// What a shard's thread receives.
pub struct Task {
    /// What its brain is built from; the number of name servers and the files are filled in here.
    pub setup: Setup,
    /// Its directory.
    pub dir: PathBuf,
    /// Rings to the other shards, by their index; its own is `None`.
    pub to: Vec<Option<Producer>>,
    /// Rings from the other shards, the same way.
    pub from: Vec<Option<Consumer>>,
    /// Seeds; those of other shards are sent there.
    pub seeds: Vec<Url>,
    /// The crawl.
    pub control: Arc<Control>,
    /// The limit on bodies that are not processed ([`fetch::BodyMemory`](crate::fetch::BodyMemory)).
    pub bodies_bytes_max: u64,
    /// The machine's addresses, if they must not be fetched from.
    pub own_addresses: Arc<OwnAddresses>,
}

/// Runs a shard on the calling thread until the crawl is closed. Errors are also reported to [`Control::fail`].
pub fn run(task: Task) -> Result<(), String> {
    let (control, index) = (Arc::clone(&task.control), task.setup.index);
    let handle = &control.shards()[usize::from(index)];
    handle.thread.announce();
    handle.heart.take();
    let run = || {
        let runtime = ring::Runtime::new(task.setup.config.fetch.in_flight_max).map_err(|error| error.to_string())?;
        // This is the same for all shards.
        if index == 0 && !runtime.is_restricted() {
            control.note(
                "io_uring cannot be restricted to the operations in use; the crawl continues without this".to_owned(),
            );
        }
        runtime.block_on(Pump::start(task))
    };
    // A panic in the shard's own turn is reported like that of a task.
    let result = ring::caught(run).unwrap_or_else(|panic| Err(bug(&panic)));
    handle.has_ended.store(true, Ordering::Release);
    result.map_err(|error| {
        let error = format!("shard {index}: {error}");
        control.fail(error.clone());
        error
    })
}

struct Pump {
    brain: Shard,
    phase: Phase,
    /// The orders that the brain has received, and their version.
    orders: Orders,
    orders_heard: u64,
    /// The version of the scope that the brain has received.
    scope_heard: u64,
    /// The wall clock, as the brain knows it.
    clock: WallClock,
    to: Vec<Option<Producer>>,
    from: Vec<Option<Consumer>>,
    control: Arc<Control>,
    handle: Arc<ShardHandle>,
    config: Arc<Config>,
    hands: Rc<Hands>,
    disk: Rc<Disk>,
    signal: Rc<Signal>,
    alarm: Rc<Alarm>,
    reading: ReadingThread,
    /// The memory that responses hold which the brain took in this turn or holds back, by job: a response that is
    /// read in parallel with the shard holds it until then.
    taken_in: Vec<(u64, BodyHold)>,
    /// Ends of fetches and readings, and of queries.
    fetched: Ends<(Input, BodyHold)>,
    answered: Ends<Input>,
    duty: Duty,
}

impl Pump {
    async fn start(task: Task) -> Result<(), String> {
        let Task { mut setup, dir, to, from, seeds, control, bodies_bytes_max, own_addresses } = task;
        let index = setup.index;
        let (mut files, left_open) = disk::find_files(&dir).map_err(|error| error.to_string())?;
        for segment in &left_open {
            control.warn(format!("shard {index}: {segment}"));
        }
        let (config, clock) = (Arc::clone(&setup.config), setup.clock);
        let handle = Arc::clone(&control.shards()[usize::from(index)]);
        let hands = Hands::new(&config, setup.user_agent.clone()).map_err(|error| error.to_string())?;
        let hands = hands.sharing(Arc::clone(&setup.ledger)).holding(bodies_bytes_max).knowing(own_addresses);
        let signatures = config.identity.ram_bytes_max / u64::from(setup.partition.shards());
        let hands = Rc::new(hands.holding_signatures(signatures));
        files.next_segment = files.next_segment.max(setup.files.next_segment);
        (setup.name_servers, setup.files) = (hands.name_servers(), files);
        let brain = Shard::new(setup).map_err(|error| error.to_string())?;
        let (disk, signal, alarm) = (Rc::new(Disk::default()), Rc::new(Signal::default()), Rc::new(Alarm::default()));
        let ways = SegmentWays {
            reserve_bytes: config.store.preallocate.min(config.store.segment_bytes_max),
            leave_bytes: DiskFloor::resumes_at(config.store.free_bytes_min),
            is_uncached: config.store.page_cache == PageCache::Drop,
        };
        ring::spawn(stage::during(Stage::Store, Rc::clone(&disk).work(dir, ways, Rc::clone(&signal))));
        ring::spawn(ring_at(Rc::clone(&alarm), Rc::clone(&signal)));
        ring::spawn(listen(WakeListener::new(&handle.waker), Rc::clone(&signal)));
        let reading = ReadingThread::start(index, Arc::clone(&handle), config.store.packing())?;
        let (fetched, answered) = Default::default();
        let (phase, orders) = (Phase::Run, Orders::default());
        let mut pump = Pump {
            brain,
            phase,
            orders,
            orders_heard: 0,
            scope_heard: 0,
            clock,
            to,
            from,
            control,
            handle,
            config,
            hands,
            disk,
            signal,
            alarm,
            reading,
            taken_in: Vec::new(),
            fetched,
            answered,
            duty: Duty::new(),
        };
        pump.brain.handle(ring::now(), Input::Command(Command::Seeds(seeds)));
        pump.run().await
    }

    async fn run(&mut self) -> Result<(), String> {
        loop {
            let stage = stage::enter(Stage::Other);
            fault_injection::at("turn");
            self.receive_inputs();
            let carried = self.carry_out();
            self.let_memory_go();
            self.publish(carried.end.is_some());
            drop(stage);
            if let Some(panic) = ring::panicked().or_else(|| self.reading.failure()) {
                return Err(bug(&panic));
            }
            if let Some(result) = carried.end {
                return result;
            }
            let due = self.brain.next_due().into_iter().chain(self.next_look()).min();
            if carried.more || self.has_inputs() || due.is_some_and(|due| due <= ring::now()) {
                // Goes through the ring: the kernel operations of the jobs must be submitted now.
                ring::turn().await;
                continue;
            }
            if let Some(due) = due {
                self.alarm.set(due.clamp(ring::now() + PAUSE_MIN, ring::now() + CLOCK_LOOK));
            }
            let (from, waits) = (ring::now(), self.brain.awaited());
            self.wait().await;
            self.duty.slept(from, waits);
        }
    }

    /// Sleeps until something happens, including a task's panic.
    async fn wait(&self) {
        let mut signal = pin!(self.signal.wait());
        poll_fn(|context| if ring::panicked().is_some() { Poll::Ready(()) } else { signal.as_mut().poll(context) })
            .await;
    }

    /// Takes in all events.
    fn receive_inputs(&mut self) {
        // First, as the results of the rest use it.
        let clock = ring::wall_clock();
        if clock.distance(self.clock) >= CLOCK_SLACK {
            self.brain.handle(ring::now(), Input::Clock(clock));
            self.clock = clock;
        }
        while let Some(end) = self.disk.next_end() {
            self.brain.handle(ring::now(), Input::Disk(end));
        }
        self.disk.take_notes().into_iter().for_each(|note| self.control.warn(note));
        loop {
            let end = self.answered.borrow_mut().pop_front();
            let Some(end) = end else { break };
            self.tell(&end);
            self.brain.handle(ring::now(), end);
        }
        let mut now = ring::now();
        let until = now + RESPONSES_TIME;
        while now < until && self.has_inputs() {
            let end = self.reading.next_end().or_else(|| self.fetched.borrow_mut().pop_front());
            let Some((end, hold)) = end else { break };
            let job = match &end {
                Input::Fetched { job, .. } => Some(*job),
                Input::Read(page) => Some(page.job().id),
                _ => None,
            };
            if let Input::Fetched { result: Ok(transaction), .. } = &end {
                self.handle.latencies.record(transaction);
            }
            self.tell(&end);
            self.brain.handle(now, end);
            // The memory comes back when the brain is done with it.
            self.taken_in.extend(job.filter(|_| !hold.is_empty()).map(|job| (job, hold)));
            now = ring::now();
        }
        let version = self.handle.orders.version();
        if version != self.orders_heard {
            let orders = self.handle.orders.get();
            for command in orders.since(&self.orders) {
                self.brain.handle(ring::now(), Input::Command(command));
            }
            (self.orders, self.orders_heard) = (orders, version);
        }
        let scope_version = self.control.scope().version();
        if scope_version != self.scope_heard {
            self.brain.handle(ring::now(), Input::Scope(self.control.scope().get()));
            self.scope_heard = scope_version;
            self.handle.scope_heard.store(scope_version, Ordering::Release);
        }
        let phase = self.control.phase();
        let closes = phase > self.phase && phase == Phase::Close;
        if phase > self.phase {
            if phase >= Phase::Abort && self.phase < Phase::Abort {
                // A peer that sends without end would use up the time that the end needs.
                self.hands.abandon();
            }
            self.phase = phase;
            if closes && !self.brain.is_replaying() {
                // Messages sent before the phase changed are taken in before the change.
                self.receive(usize::MAX);
            }
            self.brain.handle(ring::now(), Input::Command(Command::Enter(phase)));
        }
        // With many shards most rings are empty: one flag replaces a look at each.
        if !closes && self.brain.accepts_messages() && self.handle.has_messages.lower() {
            self.receive(MESSAGES_PER_TURN);
        }
    }

    /// Passes the details of a failure to the brain first.
    fn tell(&mut self, end: &Input) {
        let job = match end {
            Input::Fetched { job, result: Err(_) } => *job,
            Input::Answered { lookup, answer } if !answer.tells_of_name() => *lookup,
            _ => return,
        };
        if let Some(words) = self.hands.take_words(job) {
            self.brain.handle(ring::now(), Input::Told { job, words });
        }
    }

    /// Whether there are responses that the brain takes in now.
    fn has_inputs(&mut self) -> bool {
        self.brain.accepts_responses() && (self.reading.has_end() || !self.fetched.borrow().is_empty())
    }

    /// Takes messages out of the rings, at most this many of each.
    fn receive(&mut self, messages_max: usize) {
        let _stage = stage::enter(Stage::Exchange);
        let mut more = false;
        for (from, ring) in self.from.iter_mut().enumerate() {
            let Some(ring) = ring else { continue };
            for _ in 0..messages_max {
                let mut bytes = Vec::new();
                if !ring.has_message() {
                    break;
                }
                self.handle.quiet.store(false, Ordering::Release);
                if ring.pop(&mut bytes) {
                    self.brain.handle(ring::now(), Input::Received { from: from as u16, bytes });
                    self.handle.received.store(self.brain.report().received, Ordering::Release);
                }
            }
            more |= ring.has_message();
        }
        if more {
            self.handle.has_messages.raise();
            self.signal.notify();
        }
    }

    /// Carries out the brain's current effects.
    fn carry_out(&mut self) -> Carried {
        let mut fetches = 0;
        while let Some(effect) = self.brain.poll(ring::now()) {
            match effect {
                Effect::Fetch(job) => {
                    self.handle.quiet.store(false, Ordering::Release);
                    let hands = Rc::clone(&self.hands);
                    self.task(&self.fetched, async move {
                        fault_injection::at("fetch");
                        let hold = hands.hold(&job);
                        let result = hands.exchange_within(&job, &hold).await.map(Box::new);
                        (Input::Fetched { job: job.id, result }, hold)
                    });
                    fetches += 1;
                    if fetches == FETCHES_PER_TURN {
                        return Carried { more: true, end: None };
                    }
                }
                Effect::CutShort(job) => self.hands.cut_short(job),
                Effect::Ask(query) => {
                    let hands = Rc::clone(&self.hands);
                    self.task(
                        &self.answered,
                        stage::during(Stage::Dns, async move {
                            let answer = hands.ask(&query).await;
                            Input::Answered { lookup: query.lookup, answer }
                        }),
                    );
                }
                Effect::Read(reading) => self.read_beside(reading),
                Effect::Train(training) => self.reading.train(training, self.hands.hold_nothing()),
                Effect::Send(message) => self.send(message),
                Effect::Disk(op) => self.disk.push(op),
                Effect::Note(note) => self.control.note(note),
                Effect::Warn(note) => self.control.warn(note),
                Effect::End(result) => return Carried { more: false, end: Some(result) },
            }
        }
        Carried { more: false, end: None }
    }

    /// Releases the memory of what the brain has finished, except for what it holds back.
    fn let_memory_go(&mut self) {
        let brain = &self.brain;
        self.taken_in.retain(|(job, hold)| !hold.is_empty() && brain.holds_back(*job));
    }

    /// Passes a long response to the reading thread, with its hold on memory.
    fn read_beside(&mut self, reading: Box<LongResponse>) {
        let at = self.taken_in.iter().position(|(job, _)| *job == reading.job().id);
        let hold = at.map_or_else(|| self.hands.hold(reading.job()), |at| self.taken_in.swap_remove(at).1);
        self.reading.begin(reading, hold);
    }

    fn task<T: 'static>(&self, ends: &Ends<T>, work: impl Future<Output = T> + 'static) {
        let (ends, signal) = (Rc::clone(ends), Rc::clone(&self.signal));
        ring::spawn(async move {
            let end = work.await;
            ends.borrow_mut().push_back(end);
            signal.notify();
        });
    }

    /// Puts a message into its ring and wakes the receiver if the message cannot wait. Other receivers look by
    /// themselves ([`Pump::next_look`]): a wake-up costs more than a batch of some URLs.
    fn send(&mut self, message: Outgoing) {
        let _stage = stage::enter(Stage::Exchange);
        // Counted before it can be received, so that an outside look never sees less sent than received.
        self.handle.sent.store(self.brain.report().sent, Ordering::Release);
        let (to, wake) = (usize::from(message.to), message.wake);
        let ring = self.to.get_mut(to).and_then(Option::as_mut);
        let room = match ring {
            Some(ring) => ring.push(&message.bytes),
            None => panic!("a message for shard {to}, which has no ring"),
        };
        let other = &self.control.shards()[to];
        if room {
            other.has_messages.raise();
        } else {
            self.brain.handle(ring::now(), Input::Refused(message));
            self.handle.sent.store(self.brain.report().sent, Ordering::Release);
        }
        if wake || !room {
            other.waker.wake();
        }
    }

    /// When to look for messages of other shards although none woke this shard: between the ticks at which all shards
    /// send, so that what they sent is taken in together.
    fn next_look(&self) -> Option<Instant> {
        let every = self.config.exchange.batch_age_max.min(LOOK_MAX).as_nanos() as u64;
        let looks = ring::now().as_nanos().saturating_add(every / 2).checked_div(every)?;
        (self.from.len() > 1).then(|| Instant::from_nanos(looks * every + every / 2))
    }

    fn publish(&mut self, is_last: bool) {
        let report = self.brain.report();
        // A busy shard need not look at the rings.
        let waits = report.quiet
            && (!self.fetched.borrow().is_empty()
                || !self.answered.borrow().is_empty()
                || self.from.iter_mut().flatten().any(Consumer::has_message));
        let quiet = report.with_waiting(waits).quiet;
        for time in self.brain.take_lookup_times() {
            self.handle.latencies.dns.record(time);
        }
        let network = self.brain.network_report();
        self.handle.sightings.publish(network, self.brain.take_site_ends());
        let mut stats = self.brain.stats().clone();
        let counters = self.hands.counters();
        stats.connections = counters.connects.get();
        stats.connections_further = counters.further_connects.get();
        stats.handshakes = counters.handshakes.get();
        stats.resumed = counters.resumed.get();
        stats.chains_recognized = counters.chains_recognized.get();
        stats.connections_open = self.hands.open_connections() as u64;
        stats.ring_operations = ring::operations();
        stats.idle = u64::from(quiet);
        if stats.hosts_retried > 0 || is_last {
            self.handle.tell_trouble(self.brain.trouble());
        }
        self.duty.publish(&self.handle, is_last, &mut stats);
        self.handle.stats.publish(&stats);
        self.handle.quiet.store(quiet, Ordering::Release);
    }
}

/// Ends of tasks that the brain has not received yet.
type Ends<T> = Rc<RefCell<VecDeque<T>>>;

/// The report of a panic, which names its location.
fn bug(panic: &impl std::fmt::Display) -> String {
    format!("a bug in ringcrawl, please report it: {panic}")
}

/// The result of carrying out effects.
struct Carried {
    /// There may be more at once.
    more: bool,
    /// The shard has ended.
    end: Option<Result<(), String>>,
}

/// Turns alarms into the pump's signal.
async fn ring_at(alarm: Rc<Alarm>, signal: Rc<Signal>) {
    loop {
        alarm.wait().await;
        signal.notify();
    }
}

/// Turns wake-ups of other threads into the pump's signal.
async fn listen(listener: WakeListener, signal: Rc<Signal>) {
    loop {
        // A failed read (an interrupted one, say) must not leave the shard deaf: it looks, and listens again.
        if listener.wait().await.is_err() {
            ring::sleep_until(ring::now() + DEAF_PAUSE).await;
        }
        signal.notify();
    }
}

const MESSAGES_PER_TURN: usize = 16;
const FETCHES_PER_TURN: usize = 64;
/// Responses are taken in for this long in a turn; the last one begins within it.
const RESPONSES_TIME: Duration = Duration::from_millis(5);
/// A shard looks at its rings at least this often.
const LOOK_MAX: Duration = Duration::from_millis(100);
/// How long after a failed wait for wake-ups the next one begins.
const DEAF_PAUSE: Duration = Duration::from_millis(100);
/// If the wall clock differs by less, it was not set; notes are to the second.
const CLOCK_SLACK: Duration = Duration::from_millis(500);
/// While a job waits for its time, the wall clock is checked this often: the hours of a crawl may begin by it.
const CLOCK_LOOK: Duration = Duration::from_secs(30);
/// The pump's clock is not finer than this.
const PAUSE_MIN: Duration = Duration::from_millis(1);
