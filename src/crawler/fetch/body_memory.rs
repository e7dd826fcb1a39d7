//! Memory of bodies that have not been worked off, one bound for all of a shard.
//!
//! Decides: each fetch holds [`BODY_BYTES_FREE`] without asking, so small pages never wait for anyone. What is beyond that is
//! asked for before it is read: where there is no room the fetch stops reading, and the peer's window fills up. Those that
//! wait get room in the order of asking, in three rows: those that ask for more than [`SMALL_BYTES`] get three quarters of all, so
//! that a page of usual size does not wait for them; fetches of sites that are known to be slow get half of all together.
//! When no one in a row has been given memory for [`PATIENCE`], not counting what was cut, the fetches that hold the most are
//! cut, until its first have room, an eighth of all at most. Movement alone helps nobody, as a stranger can close one of a
//! hundred now and then: where the first of the small ones has waited so long, such small ones are cut as have held memory for
//! [`SLOW_AFTER`]. Whoever holds much and sends little makes the others wait no longer than that, once, and is of a slow site
//! from then on. A slow site's row cuts none but its own. A response that has come whole keeps its memory until the brain is done with it,
//! and is not cut any more.
//! Invariants: what is held is within the bound, but for transfer codings that were undone to more than was asked for; what is
//! held comes back when the hold is dropped.
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

/// The bound, and who holds how much.
#[derive(Clone)]
pub struct BodyMemory {
    shared: Rc<Shared>,
}

struct Shared {
    account: RefCell<Account>,
    /// Whether [`watch`] is running.
    is_watched: Cell<bool>,
}

struct Account {
    bytes: u64,
    held: Vec<Held>,
    free: Vec<usize>,
    /// Of those that ask for little, and for much.
    rows: [Row; 3],
    /// What those of slow sites hold.
    slow_bytes: u64,
    /// What came back because it was cut, and nobody got yet.
    cut_bytes: u64,
}

/// Who waits.
struct Row {
    /// The most that all may hold for one of this row to get more.
    bytes_max: u64,
    /// For how much more, and since when; longest waiting first.
    waiting: VecDeque<(usize, u64, Instant)>,
    /// Whether anybody got room, or gave some back, since the last look.
    has_moved: bool,
}

/// What one fetch holds.
#[derive(Default)]
struct Held {
    bytes: u64,
    /// Since when it holds any.
    since: Instant,
    /// Its site is slow.
    is_slow: bool,
    state: State,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Receiving,
    /// It is to end here.
    Cut,
    /// The response is whole.
    Done,
}

/// A fetch's memory; comes back when dropped.
pub struct BodyHold {
    shared: Rc<Shared>,
    is_slow: bool,
    /// Its place in the account, once it has one.
    place: Cell<Option<usize>>,
}

impl BodyMemory {
    /// Room for `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> BodyMemory {
        let row = |bytes_max| Row { bytes_max, waiting: VecDeque::new(), has_moved: false };
        let rows = [row(bytes_max), row(bytes_max - bytes_max / 4), row(bytes_max - bytes_max / 4)];
        let account = Account { bytes: 0, held: Vec::new(), free: Vec::new(), rows, slow_bytes: 0, cut_bytes: 0 };
        BodyMemory { shared: Rc::new(Shared { account: RefCell::new(account), is_watched: Cell::new(false) }) }
    }

    /// A fetch's hold, of nothing yet; `is_slow`: its site is.
    pub fn hold(&self, is_slow: bool) -> BodyHold {
        BodyHold { shared: Rc::clone(&self.shared), is_slow, place: Cell::new(None) }
    }

    /// Bytes held now, without what is free.
    pub fn bytes(&self) -> u64 {
        self.shared.account.borrow().bytes
    }
}

impl BodyHold {
    /// Holds `bytes` from now on, what it held before included, if there is room and nobody waits for it.
    pub(super) fn has(&self, bytes: usize) -> bool {
        let wanted = (bytes as u64).saturating_sub(BODY_BYTES_FREE);
        if wanted == 0 {
            return true;
        }
        let place = self.place();
        let mut account = self.shared.account.borrow_mut();
        let more = wanted.saturating_sub(account.held[place].bytes);
        let row = self.row_of(wanted);
        let has_room = more == 0 || account.rows[row].waiting.is_empty() && account.missing(row, more) == 0;
        let has = has_room && account.held[place].state != State::Cut;
        if has {
            account.add(place, more);
            account.cut_bytes = account.cut_bytes.saturating_sub(more);
        }
        has
    }

    /// Holds `bytes` from now on, what it held before included; waits for room. `false` when it is to be cut, or `is_over`
    /// while it waits. Inside the runtime only.
    pub(super) async fn grow(&self, bytes: usize, is_over: impl Fn() -> bool) -> bool {
        let wanted = (bytes as u64).saturating_sub(BODY_BYTES_FREE);
        if wanted == 0 {
            return true;
        }
        let place = self.place();
        let row = self.row_of(wanted);
        let mut waits = false;
        poll_fn(|context| {
            let mut account = self.shared.account.borrow_mut();
            if account.held[place].state == State::Cut || waits && is_over() {
                account.forget_waiting(row, place);
                account.wake_next();
                return Poll::Ready(false);
            }
            let more = wanted.saturating_sub(account.held[place].bytes);
            if wanted > account.bytes_max(row) {
                // It never had room.
                return Poll::Ready(false);
            }
            let is_next = account.rows[row].waiting.front().is_none_or(|(first, ..)| *first == place);
            if more == 0 || is_next && account.missing(row, more) == 0 {
                account.add(place, more);
                let is_of_cut = waits && account.cut_bytes >= more;
                account.cut_bytes = account.cut_bytes.saturating_sub(more);
                account.rows[row].has_moved |= !is_of_cut;
                account.forget_waiting(row, place);
                account.wake_next();
                return Poll::Ready(true);
            }
            if !std::mem::replace(&mut waits, true) {
                account.rows[row].waiting.push_back((place, more, ring::now()));
            }
            account.held[place].waker = Some(context.waker().clone());
            drop(account);
            self.shared.watch();
            Poll::Pending
        })
        .await
    }

    /// What `work` gives, or `None` when the fetch is to be cut meanwhile.
    pub(super) async fn unless_cut<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Some(place) = self.place.get() {
                let mut account = self.shared.account.borrow_mut();
                let held = &mut account.held[place];
                if held.state == State::Cut {
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

    /// The response is over and holds `bytes`: it is not cut any more.
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
            // While it is still known whether it was cut.
            account.give_back(place, before - bytes);
        }
        account.held[place].state = State::Done;
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.place.get().is_none()
    }

    fn row_of(&self, wanted: u64) -> usize {
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
            account.held.push(Held::default());
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
        (0..account.rows.len()).for_each(|row| account.forget_waiting(row, place));
        account.give_back(place, bytes);
        account.held[place] = Held::default();
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

    /// The most that one of a row may ask for.
    fn bytes_max(&self, row: usize) -> u64 {
        let bytes_max = self.rows[row].bytes_max;
        if row == SLOW { bytes_max.min(self.rows[0].bytes_max / 2) } else { bytes_max }
    }

    /// How much others hold too much for one of a row to have `more`.
    fn missing(&self, row: usize, more: u64) -> u64 {
        let missing = (self.bytes + more).saturating_sub(self.rows[row].bytes_max);
        let of_slow = if row == SLOW { (self.slow_bytes + more).saturating_sub(self.bytes_max(SLOW)) } else { 0 };
        missing.max(of_slow)
    }

    fn give_back(&mut self, place: usize, bytes: u64) {
        self.held[place].bytes -= bytes;
        self.bytes -= bytes;
        self.slow_bytes -= if self.held[place].is_slow { bytes } else { 0 };
        if bytes == 0 {
            return;
        }
        if self.held[place].state == State::Cut {
            self.cut_bytes += bytes;
        } else {
            for row in 0..self.rows.len() {
                let first = self.rows[row].waiting.front().map(|(_, more, _)| *more);
                self.rows[row].has_moved |= first.is_none_or(|more| self.missing(row, more) == 0);
            }
        }
        self.wake_next();
    }

    fn forget_waiting(&mut self, row: usize, place: usize) {
        self.rows[row].waiting.retain(|(waits, ..)| *waits != place);
    }

    fn wake_next(&mut self) {
        for row in &self.rows {
            if let Some((place, ..)) = row.waiting.front() {
                self.held[*place].waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    /// Nobody of a row got room for a while, or its first did not: fetches end here, until there is room for some.
    fn cut_where_nothing_moves(&mut self, now: Instant) {
        for row in 0..self.rows.len() {
            let Row { waiting, has_moved, .. } = &mut self.rows[row];
            let has_moved = std::mem::take(has_moved);
            let Some((_, first, since)) = waiting.front().copied() else { continue };
            if has_moved && (row != SMALL || now.since(since) < PATIENCE) {
                continue;
            }
            let several = waiting.iter().map(|(_, more, _)| more).sum::<u64>().min(self.rows[0].bytes_max / CUT_PARTS);
            self.cut_bytes = 0;
            let is_of_row = |held: &Held| row != SLOW || held.is_slow;
            // What is cut comes back, and so does what is whole: that it takes long is not the peers' fault.
            let back = self.held.iter().filter(|held| held.state != State::Receiving && is_of_row(held));
            let mut missing = self.missing(row, first.max(several)).saturating_sub(back.map(|held| held.bytes).sum());
            while missing > 0 {
                let may_end = |held: &Held| {
                    let is_slow = held.is_slow || now.since(held.since) >= SLOW_AFTER;
                    let is_in_the_way = !has_moved || is_slow && held.bytes <= SMALL_BYTES;
                    held.state == State::Receiving && held.bytes > 0 && is_in_the_way && is_of_row(held)
                };
                let ending = self.held.iter_mut().filter(|held| may_end(held));
                let Some(largest) = ending.max_by_key(|held| (held.is_slow, held.bytes)) else { break };
                largest.state = State::Cut;
                missing = missing.saturating_sub(largest.bytes);
                largest.waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    fn is_anybody_waiting(&self) -> bool {
        self.rows.iter().any(|row| !row.waiting.is_empty())
    }

    /// Those who wait may be over.
    fn wake_all(&mut self) {
        for (place, ..) in self.rows.iter().flat_map(|row| &row.waiting) {
            self.held[*place].waker.take().into_iter().for_each(Waker::wake);
        }
    }
}

impl Shared {
    fn watch(self: &Rc<Self>) {
        if !self.is_watched.replace(true) {
            self.account.borrow_mut().rows.iter_mut().for_each(|row| row.has_moved = true);
            ring::spawn(watch(Rc::downgrade(self)));
        }
    }
}

/// While someone waits: cuts where nothing moves.
async fn watch(shared: Weak<Shared>) {
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
/// Who has held memory for so long holds it for long.
const SLOW_AFTER: Duration = Duration::from_secs(2);
/// The rows: of small ones, large ones, and fetches of slow sites.
const SMALL: usize = 0;
const LARGE: usize = 1;
const SLOW: usize = 2;
/// Of what all may hold, so much is cut at once at most, if the first needs no more.
const CUT_PARTS: u64 = 8;
/// Who asks for more stands in the second row: pages that are long as they come, and handshakes of more than 12 KiB.
const SMALL_BYTES: u64 = 128 << 10;

#[cfg(test)]
mod tests;
