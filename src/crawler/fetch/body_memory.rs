//! Memory of bodies that have not been processed, with one limit for all of a shard.
//!
//! Decides: each fetch holds [`BODY_BYTES_FREE`] without asking, so small pages never wait. A fetch asks for more
//! before it reads more: where there is no room it stops reading, and the peer's window fills up. Waiting fetches get
//! room in the order of asking, in three queues. Those that ask for more than [`SMALL_BYTES`] get three quarters of
//! all memory, so that a page of usual size does not wait for them. Fetches from sites that are known to be slow get
//! half of all memory together.
//! If no fetch in a queue has been given memory for [`PATIENCE`], not counting what was cut, the fetches that hold
//! the most, those of slow sites first, are cut until the first in the queue has room, an eighth of all memory at
//! most. Movement alone is not enough, as a stranger can close one of a hundred fetches now and then. So where the
//! first of the small ones has waited that long, small fetches that have held memory for [`SLOW_AFTER`] are cut. A
//! fetch that holds much and
//! sends little makes the others wait no longer than that, once, and its site counts as slow from then on. The slow
//! sites' queue cuts only its own fetches. A response that has arrived whole keeps its memory until the brain is done
//! with it, and is not cut any more.
//! Invariants: held memory is within the limit, except for transfer codings that decoded to more than was asked for.
//! What is held comes back when the hold is dropped.
//! Limits: one shard's, on its thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};

use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::memory_budget::BODY_BYTES_FREE;
use ringcrawl_ring as ring;

/// The limit, and how much each fetch holds.
#[derive(Clone)]
pub struct BodyMemory {
    shared: Rc<SharedAccount>,
}

struct SharedAccount {
    account: RefCell<Account>,
    /// Whether [`watch`] is running.
    is_watched: Cell<bool>,
}

struct Account {
    bytes: u64,
    held: Vec<Holding>,
    free: Vec<usize>,
    /// Of fetches that ask for little, for much, and of slow sites.
    queues: [WaitQueue; 3],
    /// What fetches from slow sites hold.
    slow_bytes: u64,
    /// Memory that came back because of a cut and that no fetch has got yet.
    cut_bytes: u64,
}

/// A queue of waiting fetches.
struct WaitQueue {
    /// The limit on all held memory below which a fetch of this queue gets more.
    bytes_max: u64,
    /// The fetches, how much more they need, and since when; longest waiting first.
    waiting: VecDeque<(usize, u64, Instant)>,
    /// Whether a fetch got room, or gave some back, since the last look.
    has_moved: bool,
}

/// What one fetch holds.
#[derive(Default)]
struct Holding {
    bytes: u64,
    /// Since when it holds any.
    since: Instant,
    /// Its site is slow.
    is_slow: bool,
    state: BodyState,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum BodyState {
    #[default]
    Receiving,
    /// It must end here.
    Cut,
    /// The response is whole.
    Done,
}

/// A fetch's memory; comes back when dropped.
pub struct BodyHold {
    shared: Rc<SharedAccount>,
    is_slow: bool,
    /// Its slot in the account, once it has one.
    place: Cell<Option<usize>>,
}

impl BodyMemory {
    /// Has room for `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> BodyMemory {
        let queue = |bytes_max| WaitQueue { bytes_max, waiting: VecDeque::new(), has_moved: false };
        let queues = [queue(bytes_max), queue(bytes_max - bytes_max / 4), queue(bytes_max - bytes_max / 4)];
        let account = Account { bytes: 0, held: Vec::new(), free: Vec::new(), queues, slow_bytes: 0, cut_bytes: 0 };
        BodyMemory { shared: Rc::new(SharedAccount { account: RefCell::new(account), is_watched: Cell::new(false) }) }
    }

    /// A fetch's hold, empty at first; `is_slow` if its site is slow.
    pub fn hold(&self, is_slow: bool) -> BodyHold {
        BodyHold { shared: Rc::clone(&self.shared), is_slow, place: Cell::new(None) }
    }

    /// Bytes held now, without the free part.
    pub fn bytes(&self) -> u64 {
        self.shared.account.borrow().bytes
    }
}

impl BodyHold {
    /// Holds `bytes` from now on, including what it held before, if there is room and no fetch waits for it.
    pub(super) fn has(&self, bytes: usize) -> bool {
        let wanted = (bytes as u64).saturating_sub(BODY_BYTES_FREE);
        if wanted == 0 {
            return true;
        }
        let place = self.place();
        let mut account = self.shared.account.borrow_mut();
        let more = wanted.saturating_sub(account.held[place].bytes);
        let queue = self.queue_of(wanted);
        let has_room = more == 0 || account.queues[queue].waiting.is_empty() && account.missing(queue, more) == 0;
        let has = has_room && account.held[place].state != BodyState::Cut;
        if has {
            account.add(place, more);
            account.cut_bytes = account.cut_bytes.saturating_sub(more);
        }
        has
    }

    /// Holds `bytes` from now on, including what it held before; waits for room. Returns `false` if the fetch must be
    /// cut, or `is_over` while it waits. Only inside the runtime.
    pub(super) async fn grow(&self, bytes: usize, is_over: impl Fn() -> bool) -> bool {
        let wanted = (bytes as u64).saturating_sub(BODY_BYTES_FREE);
        if wanted == 0 {
            return true;
        }
        let place = self.place();
        let queue = self.queue_of(wanted);
        let mut waits = false;
        poll_fn(|context| {
            let mut account = self.shared.account.borrow_mut();
            if account.held[place].state == BodyState::Cut || waits && is_over() {
                account.forget_waiting(queue, place);
                account.wake_next();
                return Poll::Ready(false);
            }
            let more = wanted.saturating_sub(account.held[place].bytes);
            if wanted > account.bytes_max(queue) {
                // It never had room.
                return Poll::Ready(false);
            }
            let is_next = account.queues[queue].waiting.front().is_none_or(|(first, ..)| *first == place);
            if more == 0 || is_next && account.missing(queue, more) == 0 {
                account.add(place, more);
                let is_of_cut = waits && account.cut_bytes >= more;
                account.cut_bytes = account.cut_bytes.saturating_sub(more);
                account.queues[queue].has_moved |= !is_of_cut;
                account.forget_waiting(queue, place);
                account.wake_next();
                return Poll::Ready(true);
            }
            if !std::mem::replace(&mut waits, true) {
                account.queues[queue].waiting.push_back((place, more, ring::now()));
            }
            account.held[place].waker = Some(context.waker().clone());
            drop(account);
            self.shared.watch();
            Poll::Pending
        })
        .await
    }

    /// The result of `work`, or `None` if the fetch is cut before that.
    pub(super) async fn unless_cut<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Some(place) = self.place.get() {
                let mut account = self.shared.account.borrow_mut();
                let held = &mut account.held[place];
                if held.state == BodyState::Cut {
                    return Poll::Ready(None);
                }
                if !held.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                    held.waker = Some(context.waker().clone());
                }
            }
            work.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Holds nothing any more, for now.
    pub(super) fn give_back(&self) {
        if let Some(place) = self.place.get() {
            let mut account = self.shared.account.borrow_mut();
            let bytes = account.held[place].bytes;
            account.give_back(place, bytes);
        }
    }

    /// The response is complete and holds `bytes`: it is not cut any more.
    pub(super) fn settle(&self, bytes: usize) {
        let bytes = (bytes as u64).saturating_sub(BODY_BYTES_FREE);
        if bytes == 0 && self.place.get().is_none() {
            return;
        }
        let place = self.place();
        let mut account = self.shared.account.borrow_mut();
        let before = account.held[place].bytes;
        account.held[place].waker = None;
        if bytes > before {
            account.add(place, bytes - before);
        } else {
            // This must happen while the state still shows whether it was cut.
            account.give_back(place, before - bytes);
        }
        account.held[place].state = BodyState::Done;
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.place.get().is_none()
    }

    fn queue_of(&self, wanted: u64) -> usize {
        match (self.is_slow, wanted <= SMALL_BYTES) {
            (true, _) => SLOW,
            (false, true) => SMALL,
            (false, false) => LARGE,
        }
    }

    fn place(&self) -> usize {
        if let Some(place) = self.place.get() {
            return place;
        }
        let mut account = self.shared.account.borrow_mut();
        let place = account.free.pop().unwrap_or_else(|| {
            account.held.push(Holding::default());
            account.held.len() - 1
        });
        account.held[place].is_slow = self.is_slow;
        self.place.set(Some(place));
        place
    }
}

impl Drop for BodyHold {
    fn drop(&mut self) {
        let Some(place) = self.place.get() else { return };
        let mut account = self.shared.account.borrow_mut();
        let bytes = account.held[place].bytes;
        (0..account.queues.len()).for_each(|queue| account.forget_waiting(queue, place));
        account.give_back(place, bytes);
        account.held[place] = Holding::default();
        account.free.push(place);
        account.wake_next();
    }
}

impl Account {
    fn add(&mut self, place: usize, bytes: u64) {
        let held = &mut self.held[place];
        if held.bytes == 0 {
            held.since = ring::now();
        }
        held.bytes += bytes;
        self.bytes += bytes;
        self.slow_bytes += if held.is_slow { bytes } else { 0 };
    }

    /// The most that a fetch of a queue may ask for.
    fn bytes_max(&self, queue: usize) -> u64 {
        let bytes_max = self.queues[queue].bytes_max;
        if queue == SLOW { bytes_max.min(self.queues[0].bytes_max / 2) } else { bytes_max }
    }

    /// How much others must release before a fetch of a queue can have `more`.
    fn missing(&self, queue: usize, more: u64) -> u64 {
        let missing = (self.bytes + more).saturating_sub(self.queues[queue].bytes_max);
        let of_slow = if queue == SLOW { (self.slow_bytes + more).saturating_sub(self.bytes_max(SLOW)) } else { 0 };
        missing.max(of_slow)
    }

    fn give_back(&mut self, place: usize, bytes: u64) {
        self.held[place].bytes -= bytes;
        self.bytes -= bytes;
        self.slow_bytes -= if self.held[place].is_slow { bytes } else { 0 };
        if bytes == 0 {
            return;
        }
        if self.held[place].state == BodyState::Cut {
            self.cut_bytes += bytes;
        } else {
            for queue in 0..self.queues.len() {
                let first = self.queues[queue].waiting.front().map(|(_, more, _)| *more);
                self.queues[queue].has_moved |= first.is_none_or(|more| self.missing(queue, more) == 0);
            }
        }
        self.wake_next();
    }

    fn forget_waiting(&mut self, queue: usize, place: usize) {
        self.queues[queue].waiting.retain(|(waits, ..)| *waits != place);
    }

    fn wake_next(&mut self) {
        for queue in &self.queues {
            if let Some((place, ..)) = queue.waiting.front() {
                self.held[*place].waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    /// No fetch of a queue got room for a while, or its first did not: cuts fetches until there is room for some.
    fn cut_where_nothing_moves(&mut self, now: Instant) {
        for queue in 0..self.queues.len() {
            let WaitQueue { waiting, has_moved, .. } = &mut self.queues[queue];
            let has_moved = std::mem::take(has_moved);
            let Some((_, first, since)) = waiting.front().copied() else { continue };
            if has_moved && (queue != SMALL || now.since(since) < PATIENCE) {
                continue;
            }
            let several =
                waiting.iter().map(|(_, more, _)| more).sum::<u64>().min(self.queues[0].bytes_max / CUT_PARTS);
            self.cut_bytes = 0;
            let is_of_queue = |held: &Holding| queue != SLOW || held.is_slow;
            // Cut memory comes back, and so does that of whole responses: if that takes long, it is not the peers'
            // fault.
            let back = self.held.iter().filter(|held| held.state != BodyState::Receiving && is_of_queue(held));
            let mut missing = self.missing(queue, first.max(several)).saturating_sub(back.map(|held| held.bytes).sum());
            while missing > 0 {
                let may_end = |held: &Holding| {
                    let is_slow = held.is_slow || now.since(held.since) >= SLOW_AFTER;
                    let is_in_the_way = !has_moved || is_slow && held.bytes <= SMALL_BYTES;
                    held.state == BodyState::Receiving && held.bytes > 0 && is_in_the_way && is_of_queue(held)
                };
                let ending = self.held.iter_mut().filter(|held| may_end(held));
                let Some(largest) = ending.max_by_key(|held| (held.is_slow, held.bytes)) else { break };
                largest.state = BodyState::Cut;
                missing = missing.saturating_sub(largest.bytes);
                largest.waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    fn is_anybody_waiting(&self) -> bool {
        self.queues.iter().any(|queue| !queue.waiting.is_empty())
    }

    /// Fetches that wait may have to end.
    fn wake_all(&mut self) {
        for (place, ..) in self.queues.iter().flat_map(|queue| &queue.waiting) {
            self.held[*place].waker.take().into_iter().for_each(Waker::wake);
        }
    }
}

impl SharedAccount {
    fn watch(self: &Rc<Self>) {
        if !self.is_watched.replace(true) {
            self.account.borrow_mut().queues.iter_mut().for_each(|queue| queue.has_moved = true);
            ring::spawn(watch(Rc::downgrade(self)));
        }
    }
}

/// While a fetch waits: cuts where nothing moves.
async fn watch(shared: Weak<SharedAccount>) {
    loop {
        ring::sleep_until(ring::now() + PATIENCE).await;
        let Some(shared) = shared.upgrade() else { return };
        let mut account = shared.account.borrow_mut();
        if !account.is_anybody_waiting() {
            shared.is_watched.set(false);
            return;
        }
        account.cut_where_nothing_moves(ring::now());
        account.wake_all();
    }
}

/// How long all may wait before one is cut.
const PATIENCE: Duration = Duration::from_millis(250);
/// A fetch that has held memory for this long counts as slow.
const SLOW_AFTER: Duration = Duration::from_secs(2);
/// The queues: small ones, large ones, and fetches from slow sites.
const SMALL: usize = 0;
const LARGE: usize = 1;
const SLOW: usize = 2;
/// At most this part of all memory is cut at once, if the first needs no more.
const CUT_PARTS: u64 = 8;
/// Fetches that ask for more go to the second queue: long pages as they arrive, and handshakes of more than 12 KiB.
const SMALL_BYTES: u64 = 128 << 10;

#[cfg(test)]
mod tests;
