//! When a shard's thread enters the kernel.
//!
//! Decides: one task, the pump, that gives way until no other task has anything to do, and then submits all that they
//! gathered and waits for completions, in one system call; so a busy shard makes one for many operations. While others
//! are busy for long it enters all the same, without waiting. It waits in the ring `WAIT` at most and then where the
//! runtime waits, in its epoll: then the ring says by an event counter that it has news. An idle shard sleeps there, a
//! busy one does not pay for it.
//! Why so: sockets of others (the resolver's) and timers are the runtime's, which sees to them when it has a turn of its
//! own: the pump gives it one every `TURN`. While somebody says that he depends on it (`Outside`) the pump waits no longer
//! than that in the ring, and then in the runtime, where such a socket wakes it: turns by the clock would cost an idle
//! shard, whose name server is silent, a thousand wake-ups a second.
//! A timer is told to the pump (`expect`), so that it does not wait beyond it.
//!
//! Invariants: before the pump waits every task that was ready has run; how often tasks were polled tells. While nothing
//! happens nobody has a turn, whatever is waited for.
//! Limits: what reaches the runtime from elsewhere without the ring, and its timers of which nobody told, may be seen
//! `WAIT` later.

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
use crate::time::{Duration, Instant};

/// How long the pump waits in the ring before it goes to sleep in the runtime.
const WAIT: Duration = Duration::from_millis(10);
/// How often the runtime has a turn at least.
const TURN: Duration = Duration::from_millis(1);
/// After how many polls of tasks the kernel is entered though they are not through.
const POLLS_MAX: u64 = 64;

thread_local! {
    /// How often tasks of this thread were polled.
    static POLLS: Cell<u64> = const { Cell::new(0) };
    /// Those that depend on the runtime's own sockets.
    static OUTSIDE: Cell<usize> = const { Cell::new(0) };
    static EXPECTED: RefCell<BinaryHeap<Reverse<Instant>>> = const { RefCell::new(BinaryHeap::new()) };
}

/// Says, as long as it lives, that something on this thread waits for more than the ring: for a socket of the runtime.
#[derive(Debug)]
pub struct Outside(());

impl Outside {
    /// From now on.
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

/// Says that a timer of the runtime goes off at `at`.
pub(super) fn expect(at: Instant) {
    EXPECTED.with_borrow_mut(|expected| {
        // What is beyond the pump's own patience needs no entry; it is seen when the runtime sleeps.
        if expected.len() < EXPECTED_MAX {
            expected.push(Reverse(at));
        }
    });
}

/// More timers than that are only seen to every `WAIT`.
const EXPECTED_MAX: usize = 4_096;

/// The runtime's timers go off so much late at most.
const TIMER_TICK: Duration = Duration::from_millis(1);

/// How long the pump may wait for the next timer.
fn patience(now: Instant) -> Duration {
    EXPECTED.with_borrow_mut(|expected| {
        while expected.peek().is_some_and(|Reverse(at)| *at + TIMER_TICK <= now) {
            expected.pop();
        }
        expected.peek().map_or(WAIT, |Reverse(at)| WAIT.min((*at + TIMER_TICK).since(now)))
    })
}

/// A task of this thread is polled.
pub(super) fn count_poll() {
    POLLS.set(POLLS.get().wrapping_add(1));
}

/// Whether the future that the runtime itself runs has something to do: it has its turn when the runtime has.
pub(super) struct Root {
    due: AtomicBool,
    waker: Waker,
}

impl Root {
    pub(super) fn new(waker: &Waker) -> Arc<Root> {
        Arc::new(Root { due: AtomicBool::new(true), waker: waker.clone() })
    }

    /// Whether it wakes what `waker` wakes. The runtime hands out wakers of one reference-counted value, which this one
    /// keeps alive, so the data tells; `Waker::will_wake` compares the functions too, of which a program may have several
    /// copies, and is never true then. A root that is taken for another each time is due each time.
    pub(super) fn wakes(&self, waker: &Waker) -> bool {
        self.waker.data() == waker.data()
    }

    /// Its turn has come: a poll that counts if it was asked for, as the runtime polls it at each turn.
    pub(super) fn begin(&self) {
        if self.due.swap(false, Ordering::Relaxed) {
            count_poll();
        }
    }

    /// It is to have a turn that counts, though nobody wakes it.
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

/// Moves operations to the kernel and completions to tasks, for as long as the runtime runs; ends by an error alone.
/// `is_root_due`: whether the runtime's own future was woken.
pub(super) async fn run(driver: Rc<Driver>, is_root_due: impl Fn() -> bool) -> io::Result<Infallible> {
    // SAFETY: a file of its own, which nobody closes as long as this lives.
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
            // A timer's time.
            turned = Instant::ZERO;
            continue;
        }
        // Nothing for a while: the runtime may sleep, until the ring or anything else has news.
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

/// A file that the kernel makes readable.
fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: eventfd takes two integers and gives a new descriptor or -1; nothing else owns it yet.
    unsafe {
        let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Lets those go first that are ready.
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

    /// Waits until `at`; how many turns the runtime had meanwhile: its own future is polled at each.
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

    /// A waker of the runtime comes with one or another copy of its functions: the root is the same.
    #[test]
    fn a_root_is_known_by_what_it_wakes() {
        const NOTHING: fn(*const ()) = |_| {};
        static ONE: RawWakerVTable = RawWakerVTable::new(|data| RawWaker::new(data, &ONE), NOTHING, NOTHING, |_| {});
        static OTHER: RawWakerVTable =
            RawWakerVTable::new(|data| RawWaker::new(data, &OTHER), |_| {}, NOTHING, NOTHING);
        let data = [0u8; 2];
        let waker = |place: &u8, functions| {
            // SAFETY: the functions do nothing with the data.
            unsafe { Waker::from_raw(RawWaker::new(std::ptr::from_ref(place).cast(), functions)) }
        };
        let [first, second] = &data;
        let root = Root::new(&waker(first, &ONE));
        assert!(!waker(first, &ONE).will_wake(&waker(first, &OTHER)), "two copies");
        assert!(root.wakes(&waker(first, &ONE)) && root.wakes(&waker(first, &OTHER)));
        assert!(!root.wakes(&waker(second, &ONE)));
    }

    /// A name server that is silent costs nothing while it is waited for, and what comes in the end is seen.
    #[test]
    fn nobody_has_a_turn_while_a_socket_of_others_waits() {
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

    /// The same with nothing to wait for but a timer; and a future that is run after another begins with a turn.
    #[test]
    fn an_idle_runtime_has_no_turns() {
        let runtime = Runtime::new(8).expect("io_uring");
        for _ in 0..2 {
            let turns = runtime.block_on(async { turns_until(now() + Duration::from_millis(300)).await });
            assert!(turns < 60, "{turns} turns in 300 ms");
        }
    }
}
