//! The shard's deadlines: one timer for all fetches, which ends operations instead of forgetting them.
//!
//! Decides: a fetch holds one guard and moves it from stage to stage. One alarm at the earliest entry looks for expired
//! guards, raises their flag and ends the connection of their descriptor, so that the pending operation completes and
//! its memory comes back. Each guard has one timer entry, corrected when it falls due (a deadline nearly always moves
//! later), so moving a deadline costs nothing.
//! Invariants: nothing expires early except by [`Deadlines::pass`] and [`Deadlines::end_all`], and everything within
//! two ticks of 16 ms after its time; while a guard stays expired, operations in flight are cancelled repeatedly, in
//! case one slipped by; the heap holds at most about two entries per guard. The alarm goes off at most once per tick,
//! and only when an entry falls due.
//! Limits: 16 ms; a fetch's deadlines are seconds.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::{Rc, Weak};

use super::{Alarm, Socket, now, op, task};
use ringcrawl_base::time::{Duration, Instant};

/// Shortest time between two checks for expired guards.
const TICK: Duration = Duration::from_millis(16);
/// Time between two cancels of the same operation.
const AGAIN: Duration = Duration::from_millis(100);

/// All deadlines of a shard. Cheap to clone.
#[derive(Clone)]
pub struct Deadlines {
    shared: Rc<DeadlinesInner>,
}

#[derive(Default)]
struct DeadlinesInner {
    due: RefCell<Due>,
    /// By slot.
    targets: RefCell<Vec<Target>>,
    alarm: Rc<Alarm>,
    ticking: Cell<bool>,
}

struct Target {
    /// The descriptor to cancel on; `None` without a guard.
    fd: Option<Rc<OwnedFd>>,
    expired: bool,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        Deadlines::new()
    }
}

impl Deadlines {
    /// No deadlines yet.
    pub fn new() -> Deadlines {
        Deadlines { shared: Rc::default() }
    }

    /// A deadline at `at` over everything done on `socket`. Inside the runtime only.
    pub fn guard(&self, socket: &Socket, at: Instant) -> Guard {
        let slot = self.shared.due.borrow_mut().add(at);
        let mut targets = self.shared.targets.borrow_mut();
        if targets.len() <= slot {
            targets.resize_with(slot + 1, || Target { fd: None, expired: false });
        }
        if let Some(place) = targets.get_mut(slot) {
            *place = Target { fd: Some(socket.descriptor().clone()), expired: false };
        }
        drop(targets);
        self.shared.alarm.set(at);
        if !self.shared.ticking.replace(true) {
            task::spawn(tick(Rc::downgrade(&self.shared), Rc::clone(&self.shared.alarm)));
        }
        Guard { shared: self.shared.clone(), slot }
    }

    /// Makes the deadline of a living guard pass now; `slot` is [`Guard::slot`].
    pub fn pass(&self, slot: usize) {
        if let Some(Target { fd: Some(fd), expired }) = self.shared.targets.borrow_mut().get_mut(slot)
            && !std::mem::replace(expired, true)
        {
            op::shut(fd);
            let again = now() + AGAIN;
            self.shared.due.borrow_mut().set(slot, again);
            self.shared.alarm.set(again);
        }
    }

    /// Ends the operations under all current guards, as if their time had come.
    pub fn end_all(&self) {
        let (mut due, again) = (self.shared.due.borrow_mut(), now() + AGAIN);
        for (slot, target) in self.shared.targets.borrow_mut().iter_mut().enumerate() {
            let Some(fd) = &target.fd else { continue };
            if !std::mem::replace(&mut target.expired, true) {
                op::shut(fd);
                due.set(slot, again);
            }
        }
        self.shared.alarm.set(again);
    }

    /// Guards currently alive.
    pub fn live(&self) -> usize {
        self.shared.due.borrow().live
    }
}

/// One deadline; gone when dropped.
pub struct Guard {
    shared: Rc<DeadlinesInner>,
    slot: usize,
}

impl Guard {
    /// The slot by which [`Deadlines::pass`] identifies it while it lives.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Moves the deadline, unless it has passed.
    pub fn set(&self, at: Instant) {
        if !self.is_expired() {
            self.shared.due.borrow_mut().set(self.slot, at);
            self.shared.alarm.set(at);
        }
    }

    /// Whether the deadline has passed: operations end with ECANCELED, and none may begin.
    pub fn is_expired(&self) -> bool {
        self.shared.targets.borrow().get(self.slot).is_some_and(|target| target.expired)
    }

    /// An error when expired. Called before each operation, since a cancel only affects those in flight.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.is_expired() { Err(op::cancelled()) } else { Ok(()) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.due.borrow_mut().remove(self.slot);
        let fd = self.shared.targets.borrow_mut().get_mut(self.slot).and_then(|target| target.fd.take());
        drop(fd);
    }
}

async fn tick(shared: Weak<DeadlinesInner>, alarm: Rc<Alarm>) {
    loop {
        alarm.wait().await;
        let Some(shared) = shared.upgrade() else { return };
        let mut expired = Vec::new();
        let live = {
            let mut due = shared.due.borrow_mut();
            due.expire(now(), &mut expired);
            if let Some(next) = due.earliest() {
                alarm.set(next.max(now() + TICK));
            }
            due.live
        };
        let mut targets = shared.targets.borrow_mut();
        for slot in expired {
            if let Some(Target { fd: Some(fd), expired }) = targets.get_mut(slot) {
                match std::mem::replace(expired, true) {
                    false => op::shut(fd),
                    true => op::cancel(fd.as_raw_fd()),
                }
            }
        }
        drop(targets);
        if live == 0 {
            shared.ticking.set(false);
            return;
        }
    }
}

/// Which entry falls due when: plain data, without a clock.
#[derive(Default)]
struct Due {
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Earliest first; an entry counts when its slot's `queued` says the same time.
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
    live: usize,
}

struct Slot {
    at: Instant,
    /// The time of this slot's entry in the heap; `NEVER` when it has none.
    queued: Instant,
}

impl Due {
    fn add(&mut self, at: Instant) -> usize {
        self.live += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { at: Instant::NEVER, queued: Instant::NEVER });
            self.slots.len() - 1
        });
        self.set(slot, at);
        slot
    }

    fn set(&mut self, slot: usize, at: Instant) {
        let Some(place) = self.slots.get_mut(slot) else { return };
        place.at = at;
        if at < place.queued {
            place.queued = at;
            self.heap.push(Reverse((at, slot)));
            self.tidy();
        }
    }

    fn remove(&mut self, slot: usize) {
        let Some(place) = self.slots.get_mut(slot) else { return };
        // Its entry stays for the slot's next user.
        place.at = Instant::NEVER;
        self.free.push(slot);
        self.live -= 1;
    }

    /// When to check next; nothing falls due before that.
    fn earliest(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Appends the slots that are due at `now`; they fall due again after `AGAIN`.
    fn expire(&mut self, now: Instant, expired: &mut Vec<usize>) {
        while let Some(&Reverse((queued, slot))) = self.heap.peek() {
            if queued > now {
                break;
            }
            self.heap.pop();
            let Some(place) = self.slots.get_mut(slot) else { continue };
            if place.queued != queued {
                continue;
            }
            place.queued = Instant::NEVER;
            if place.at <= now {
                expired.push(slot);
                place.at = now + AGAIN;
            }
            let at = place.at;
            self.set(slot, at);
        }
    }

    /// Entries that no longer count are dropped before they outnumber those that do.
    fn tidy(&mut self) {
        if self.heap.len() <= 2 * self.slots.len() + 64 {
            return;
        }
        self.heap.clear();
        for (slot, place) in self.slots.iter_mut().enumerate() {
            place.queued = place.at;
            if place.at != Instant::NEVER {
                self.heap.push(Reverse((place.at, slot)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BufferPool, Runtime};
    use super::*;
    use ringcrawl_base::Rng;
    use std::collections::BTreeMap;
    use std::io::Write;

    #[test]
    fn agrees_with_a_slow_twin() {
        let mut rng = Rng::new(1);
        for _ in 0..50 {
            let (mut due, mut twin) = (Due::default(), BTreeMap::<usize, Instant>::new());
            let mut time = Instant::ZERO;
            for _ in 0..2_000 {
                let at = time + Duration::from_millis(rng.below(1 << 10));
                let some = twin.keys().nth(rng.index(twin.len())).copied();
                match (rng.below(5), some) {
                    (0 | 1, _) if twin.len() < 200 => {
                        let slot = due.add(at);
                        assert!(twin.insert(slot, at).is_none(), "slot {slot} given twice");
                    }
                    (2, Some(slot)) => {
                        due.set(slot, at);
                        twin.insert(slot, at);
                    }
                    (3, Some(slot)) => {
                        due.remove(slot);
                        twin.remove(&slot);
                    }
                    _ => {
                        time = time + Duration::from_millis(rng.below(1 << 6));
                        let mut expired = Vec::new();
                        due.expire(time, &mut expired);
                        expired.sort_unstable();
                        let wanted: Vec<usize> =
                            twin.iter().filter(|(_, at)| **at <= time).map(|(slot, _)| *slot).collect();
                        assert_eq!(expired, wanted);
                        for slot in wanted {
                            twin.insert(slot, time + AGAIN);
                        }
                    }
                }
                assert_eq!(due.live, twin.len());
                assert!(due.heap.len() <= 2 * due.slots.len() + 65);
            }
        }
    }

    /// A peer that keeps sending, and one that is silent; a deadline that is moved afterwards stays expired.
    #[test]
    fn all_end_at_once_when_none_is_wanted() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
        let addr = listener.local_addr().expect("address");
        Runtime::new(8).expect("io_uring").block_on(async {
            let (deadlines, pool) = (Deadlines::new(), BufferPool::new(4, 100).expect("a pool"));
            let mut peers = Vec::new();
            let mut ends = Vec::new();
            for sends in [true, false] {
                let socket = Socket::new(addr.ip()).expect("socket");
                let guard = deadlines.guard(&socket, now() + Duration::from_secs(3_600));
                socket.connect(addr, &guard).await.expect("a connection");
                let (mut peer, _) = listener.accept().expect("accept");
                match sends {
                    true => drop(std::thread::spawn(move || while peer.write_all(&[0; 1_000]).is_ok() {})),
                    false => peers.push(peer),
                }
                let pool = pool.clone();
                ends.push(task::spawn(async move {
                    let mut begun = None;
                    while let Ok(Some(_)) = socket.recv(&mut begun, None, &pool, &guard).await {
                        guard.set(now() + Duration::from_secs(7_200));
                    }
                    guard.is_expired()
                }));
            }
            crate::sleep_until(now() + Duration::from_millis(20)).await;
            assert!(ends.iter().all(|end| !end.is_finished()));
            deadlines.end_all();
            for end in ends {
                assert!(end.await.expect("a task"));
            }
            assert_eq!(deadlines.live(), 0);
        });
    }

    #[test]
    fn a_slot_used_again_and_again_leaves_no_entries() {
        let mut due = Due::default();
        for second in 0..100_000u64 {
            let slot = due.add(Instant::from_nanos(second * 1_000) + Duration::from_secs(10));
            due.set(slot, Instant::from_nanos(second * 1_000) + Duration::from_secs(60));
            due.remove(slot);
        }
        assert!(due.heap.len() <= 2, "{}", due.heap.len());
    }
}
