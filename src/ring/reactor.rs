//! When a shard's thread enters the kernel.
//!
//! Decides: one task, the reactor, yields until no other task has anything to do, then submits everything they
//! gathered and waits for completions, in one system call; so a busy shard makes one call for many operations. While
//! tasks stay busy for long, it enters anyway, without waiting. It waits in the ring for up to `WAIT`, and then where
//! the runtime waits, in its epoll: there an event counter signals news from the ring. An idle shard sleeps there; a
//! busy one does not pay for it.
//! Why so: other sockets (the resolver's) and timers belong to the runtime, which handles them when it has a turn:
//! the reactor gives it one every `TURN`. While a task depends on such a socket (`Outside`), the reactor waits no
//! longer than that in the ring, and then in the runtime, where the socket wakes it. Turns by the clock would cost a
//! shard that waits for a silent name server a thousand wake-ups a second. Timers are announced to the reactor
//! (`expect`), so that it does not wait past them.
//!
//! Invariants: before the reactor waits, every task that was ready has run; the count of polls shows this. While
//! nothing happens, nothing runs, whatever is being waited for.
//! Limits: what reaches the runtime other than through the ring, and timers that were not announced, may be noticed
//! `WAIT` late.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake, Waker};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::driver::Driver;
use super::now;
use ringcrawl_base::time::{Duration, Instant};

/// How long the reactor waits in the ring before it goes to sleep in the runtime.
const WAIT: Duration = Duration::from_millis(10);
/// Longest time between two turns of the runtime while the shard is busy.
const TURN: Duration = Duration::from_millis(1);
/// After this many polls of tasks the reactor enters the kernel even if they are not done.
const POLLS_MAX: u64 = 64;

thread_local! {
    /// How often tasks of this thread were polled.
    static POLLS: Cell<u64> = const { Cell::new(0) };
    /// How many tasks depend on the runtime's own sockets.
    static OUTSIDE: Cell<usize> = const { Cell::new(0) };
    static EXPECTED: RefCell<BinaryHeap<Reverse<Instant>>> = const { RefCell::new(BinaryHeap::new()) };
}

/// While it lives, a task on this thread waits for something outside the ring: a socket of the runtime.
#[derive(Debug)]
pub struct Outside(());

impl Outside {
    /// Starts now.
    pub fn new() -> Outside {
        OUTSIDE.set(OUTSIDE.get() + 1);
        Outside(())
    }
}

impl Default for Outside {
    fn default() -> Outside {
        Outside::new()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        OUTSIDE.set(OUTSIDE.get() - 1);
    }
}

/// Announces that a timer of the runtime goes off at `at`.
pub(super) fn expect(at: Instant) {
    EXPECTED.with_borrow_mut(|expected| {
        // A timer beyond the reactor's own waiting time needs no entry; the sleeping runtime sees it.
        if expected.len() < EXPECTED_MAX {
            expected.push(Reverse(at));
        }
    });
}

/// Further timers are handled only every `WAIT`.
const EXPECTED_MAX: usize = 4_096;

/// The runtime's timers go off this late at most.
const TIMER_TICK: Duration = Duration::from_millis(1);

/// How long the reactor may wait for the next timer.
fn patience(now: Instant) -> Duration {
    EXPECTED.with_borrow_mut(|expected| {
        while expected.peek().is_some_and(|Reverse(at)| *at + TIMER_TICK <= now) {
            expected.pop();
        }
        expected.peek().map_or(WAIT, |Reverse(at)| WAIT.min((*at + TIMER_TICK).since(now)))
    })
}

/// Counts a poll of a task of this thread.
pub(super) fn count_poll() {
    POLLS.set(POLLS.get().wrapping_add(1));
}

/// The future that the runtime itself runs, and whether it has work: its turn comes with the runtime's.
pub(super) struct Root {
    due: AtomicBool,
    waker: Waker,
}

impl Root {
    pub(super) fn new(waker: &Waker) -> Arc<Root> {
        Arc::new(Root { due: AtomicBool::new(true), waker: waker.clone() })
    }

    /// Whether it wakes the same as `waker`. The runtime's wakers share one reference-counted value, which this one
    /// keeps alive, so comparing the data is enough. `Waker::will_wake` also compares the vtables; a program may
    /// contain several copies of them, and then it is never true. A root replaced at each turn would be due at each
    /// turn.
    pub(super) fn wakes(&self, waker: &Waker) -> bool {
        self.waker.data() == waker.data()
    }

    /// Begins its turn. The poll counts if it was asked for; the runtime polls it at each turn anyway.
    pub(super) fn begin(&self) {
        if self.due.swap(false, Ordering::Relaxed) {
            count_poll();
        }
    }

    /// Makes its next turn count although nothing woke it.
    pub(super) fn is_asked_for(&self) {
        self.due.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_due(&self) -> bool {
        self.due.load(Ordering::Relaxed)
    }
}

impl Wake for Root {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.due.store(true, Ordering::Relaxed);
        self.waker.wake_by_ref();
    }
}

/// Moves operations to the kernel and completions to tasks for as long as the runtime runs; ends only with an error.
/// `is_root_due` says whether the runtime's own future was woken.
pub(super) async fn run(driver: Rc<Driver>, is_root_due: impl Fn() -> bool) -> io::Result<Infallible> {
    // SAFETY: the descriptor is owned here and stays open as long as this lives.
    let news = unsafe { AsyncFd::register_with_interest(eventfd()?, Interest::READABLE) }?;
    let (mut seen, mut entered) = (POLLS.get(), POLLS.get());
    let mut turned = now();
    loop {
        pass().await;
        let polls = POLLS.get();
        let quiet = std::mem::replace(&mut seen, polls) == polls;
        if !quiet {
            if polls.wrapping_sub(entered) >= POLLS_MAX {
                entered = polls;
                driver.enter(None)?;
            }
            continue;
        }
        let moment = now();
        if is_root_due() || OUTSIDE.get() > 0 || moment.since(turned) >= TURN {
            turned = moment;
            tokio::task::yield_now().await;
            if POLLS.get() != polls {
                continue;
            }
        }
        entered = polls;
        let patience = patience(moment);
        let wait = if OUTSIDE.get() > 0 { TURN.min(patience) } else { patience };
        if driver.enter(Some(wait))? > 0 {
            continue;
        }
        if wait == patience && wait < WAIT {
            // A timer is due.
            turned = Instant::ZERO;
            continue;
        }
        // Quiet for a while: the runtime may sleep until the ring or anything else has news.
        driver.tell(Some(news.as_raw_fd()))?;
        while driver.enter(None)? == 0 {
            poll_fn(|context| {
                if driver.has_entries() {
                    return Poll::Ready(Ok(()));
                }
                driver.on_submission(context.waker());
                news.poll_read_ready(context).map_ok(|mut ready| ready.clear_ready())
            })
            .await?;
        }
        driver.tell(None)?;
        turned = now();
    }
}

/// An event counter that the kernel makes readable.
fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: eventfd takes two integers and gives a new descriptor or -1; nothing else owns it yet.
    unsafe {
        let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Lets ready tasks run first.
async fn pass() {
    let mut passed = false;
    poll_fn(|context| {
        if std::mem::replace(&mut passed, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{RawWaker, RawWakerVTable};

    use super::super::{Runtime, sleep_until, spawn};
    use super::*;

    /// Waits until `at`; returns how many turns the runtime had in the meantime, as its own future is polled at each.
    async fn turns_until(at: Instant) -> u32 {
        let mut turns = 0;
        let mut sleep = pin!(sleep_until(at));
        poll_fn(|context| {
            turns += 1;
            sleep.as_mut().poll(context)
        })
        .await;
        turns
    }

    /// Wakers of one runtime may have different copies of its vtable; the root is the same.
    #[test]
    fn a_root_is_known_by_what_it_wakes() {
        const NOTHING: fn(*const ()) = |_| {};
        static ONE: RawWakerVTable = RawWakerVTable::new(|data| RawWaker::new(data, &ONE), NOTHING, NOTHING, |_| {});
        static OTHER: RawWakerVTable =
            RawWakerVTable::new(|data| RawWaker::new(data, &OTHER), |_| {}, NOTHING, NOTHING);
        let data = [0u8; 2];
        let waker = |place: &u8, functions| {
            // SAFETY: these vtables do nothing with the data.
            unsafe { Waker::from_raw(RawWaker::new(std::ptr::from_ref(place).cast(), functions)) }
        };
        let [first, second] = &data;
        let root = Root::new(&waker(first, &ONE));
        assert!(!waker(first, &ONE).will_wake(&waker(first, &OTHER)), "two copies");
        assert!(root.wakes(&waker(first, &ONE)) && root.wakes(&waker(first, &OTHER)));
        assert!(!root.wakes(&waker(second, &ONE)));
    }

    /// Waiting for a silent name server costs nothing, and a late answer is still seen.
    #[test]
    fn no_task_has_a_turn_while_a_socket_of_others_waits() {
        for (single_issuer, defer) in [(true, true), (true, false), (false, false)] {
            let driver = Driver::with(1_024, single_issuer, defer).expect("io_uring");
            Runtime::over(driver).expect("a runtime").block_on(async {
                let socket = tokio::net::UdpSocket::bind(("127.0.0.1", 0)).await.expect("a socket");
                let to = socket.local_addr().expect("its address");
                let waiting = spawn(async move {
                    let _outside = Outside::new();
                    socket.recv(&mut [0; 8]).await.expect("a datagram")
                });
                let turns = turns_until(now() + Duration::from_millis(500)).await;
                assert!(turns < 100, "{turns} turns in half a second");
                assert!(!waiting.is_finished());
                std::net::UdpSocket::bind(("127.0.0.1", 0)).expect("a socket").send_to(b"abc", to).expect("sent");
                let length = tokio::time::timeout(std::time::Duration::from_secs(20), waiting).await;
                assert_eq!(length.expect("it was seen").expect("task"), 3);
            });
        }
    }

    /// The same with only a timer to wait for; and a second future on the same runtime starts at once.
    #[test]
    fn an_idle_runtime_has_no_turns() {
        let runtime = Runtime::new(8).expect("io_uring");
        for _ in 0..2 {
            let turns = runtime.block_on(async { turns_until(now() + Duration::from_millis(300)).await });
            assert!(turns < 60, "{turns} turns in 300 ms");
        }
    }
}
