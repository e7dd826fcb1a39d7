//! One shard's runtime: tasks, and a ring for their kernel operations.
//!
//! Decides: tokio-uring runs the tasks, with tokio's timers and, for the resolver, its sockets. Operations go to a
//! ring of our own (`driver` says why), which a task drives (`reactor`). When the reactor fails, the root future (the
//! one that the runtime itself runs) panics: nothing else would end.
//! Invariants: a runtime is used only by the thread that made it (it is not `Send`); the completion queue has room for
//! four times the operations that fetches can have in flight.
//! Limits: Linux 5.19. If the kernel refuses io_uring, the error names the setting to change.
//! Leaves to others: pinning the thread (`boot`).

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::mem::ManuallyDrop;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use io_uring::opcode;

use super::driver::Driver;
use super::heart;
use super::op;
use super::reactor::{self, Root};
use super::restrictions::{self, Made};
use super::task::caught;

/// Why there is no ring.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The kernel or a filter forbids it.
    #[error(
        "the kernel refuses io_uring ({0}): set sysctl kernel.io_uring_disabled=0, and allow io_uring_setup, \
         io_uring_enter and io_uring_register where a seccomp filter (a container's) forbids them; Linux 5.19 or later, \
         built with io_uring, is needed"
    )]
    Refused(io::Error),
    /// The kernel does not know the flags that came with 5.19.
    #[error("this kernel's io_uring is too old ({0}): Linux 5.19 or later is needed")]
    TooOld(io::Error),
    /// The ring may not lock enough memory.
    #[error(
        "no memory for io_uring ({0}): raise the limit on locked memory, RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK=), \
         which the rings of all shards share, or lower crawl.shards or fetch.in_flight_max"
    )]
    NoMemory(io::Error),
    /// Descriptors ran out, or something unforeseen.
    #[error("no io_uring: {0}")]
    Other(io::Error),
}

/// One shard's runtime. Made, used and dropped by one thread.
pub struct Runtime {
    inner: ManuallyDrop<tokio_uring::Runtime>,
    shared: Rc<RuntimeContext>,
    is_pumped: Cell<bool>,
    is_restricted: bool,
}

/// What tasks can reach of their runtime.
pub(super) struct RuntimeContext {
    driver: Rc<Driver>,
    root: RefCell<Option<Arc<Root>>>,
    /// Why the reactor has stopped, which only a bug can cause.
    failed: Cell<Option<String>>,
    /// The first panic of a task.
    panicked: RefCell<Option<String>>,
}

impl RuntimeContext {
    /// The root that wakes the same as `waker`.
    fn root(&self, waker: &Waker) -> Arc<Root> {
        let mut root = self.root.borrow_mut();
        match &*root {
            Some(root) if root.wakes(waker) => root.clone(),
            _ => root.insert(Root::new(waker)).clone(),
        }
    }

    fn is_root_due(&self) -> bool {
        self.root.borrow().as_ref().is_some_and(|root| root.is_due())
    }

    fn wake_root(&self) {
        let root = self.root.borrow().clone();
        root.map(Waker::from).iter().for_each(Waker::wake_by_ref);
    }

    /// Records that a task panicked; the first message is kept.
    pub(super) fn task_panicked(&self, text: String) {
        self.panicked.borrow_mut().get_or_insert(text);
        self.wake_root();
    }

    pub(super) fn panicked(&self) -> Option<String> {
        self.panicked.borrow().clone()
    }
}

impl Runtime {
    /// A runtime for about `fetches_max` fetches at once.
    pub fn new(fetches_max: usize) -> Result<Runtime, RingError> {
        let completions = u32::try_from(fetches_max).unwrap_or(u32::MAX).clamp(256, 4_096).next_power_of_two() * 4;
        Runtime::over(Driver::new(completions).map_err(explain)?)
    }

    pub(super) fn over(driver: Driver) -> Result<Runtime, RingError> {
        super::now();
        // Its own ring is not used.
        let Made { ring: inner, is_restricted } = restrictions::make_runtime().map_err(explain)?;
        let is_restricted = is_restricted && driver.is_restricted();
        let shared = RuntimeContext {
            driver: Rc::new(driver),
            root: RefCell::default(),
            failed: Cell::default(),
            panicked: RefCell::default(),
        };
        Ok(Runtime {
            inner: ManuallyDrop::new(inner),
            shared: Rc::new(shared),
            is_pumped: Cell::new(false),
            is_restricted,
        })
    }

    /// Whether its rings allow only their own operations.
    pub fn is_restricted(&self) -> bool {
        self.is_restricted
    }

    /// Runs `future` to its end; tasks spawned by it are suspended afterwards, and end when the runtime is dropped.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        struct Running;
        impl Drop for Running {
            fn drop(&mut self) {
                RUNNING.with(|running| running.take());
            }
        }
        RUNNING.with(|running| running.replace(Some(self.shared.clone())));
        let _running = Running;
        let shared = &self.shared;
        let mut future = pin!(future);
        self.inner.block_on(async {
            if !self.is_pumped.replace(true) {
                tokio_uring::spawn(pumped(shared.clone()));
            }
            // Nothing wakes it for its first turn.
            let mut is_first = true;
            poll_fn(|context| {
                if let Some(why) = shared.failed.take() {
                    panic!("the ring has stopped: {why}");
                }
                let root = shared.root(context.waker());
                if std::mem::take(&mut is_first) {
                    root.is_asked_for();
                }
                root.begin();
                let _working = heart::begin();
                future.as_mut().poll(&mut Context::from_waker(&Waker::from(root)))
            })
            .await
        })
    }
}

impl Drop for Runtime {
    /// Ends operations in flight and lets tasks clean up; then drops the tasks, and after them the ring.
    fn drop(&mut self) {
        // Nothing can be run inside another runtime or while the thread unwinds; the process then ends with its error.
        if !is_running() && !std::thread::panicking() {
            self.block_on(async {
                // Tasks woken by an end may start one more operation, such as closing a file.
                for _ in 0..3 {
                    self.shared.driver.cancel_all();
                    turn().await;
                }
            });
        }
        // SAFETY: taken once, here; nothing uses it afterwards.
        drop(unsafe { ManuallyDrop::take(&mut self.inner) });
        self.shared.driver.close();
    }
}

/// The reactor; whatever ends it, the root is notified.
async fn pumped(shared: Rc<RuntimeContext>) {
    let mut reactor = pin!(reactor::run(shared.driver.clone(), || shared.is_root_due()));
    let why = poll_fn(|context| match caught(|| reactor.as_mut().poll(context)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(Err(error))) => Poll::Ready(format!("io_uring_enter(2): {error}")),
        Err(panic) => Poll::Ready(panic.to_string()),
    })
    .await;
    shared.failed.set(Some(why));
    shared.wake_root();
}

/// Lets all other tasks have a turn, and the kernel too: entries reach it when the runtime has nothing left to do, so
/// a task that merely yields again and again would hold them back. Only inside `Runtime::block_on`.
pub async fn turn() {
    let _ = op::submit(opcode::Nop::new().build(), ()).await;
}

/// Whether this thread is inside `block_on`, so that operations can be submitted. Objects dropped with the runtime
/// are dropped outside it; the driver itself cancels what is left.
pub(super) fn is_running() -> bool {
    RUNNING.with_borrow(Option::is_some)
}

/// The runtime that is running on this thread.
pub(super) fn current() -> Option<Rc<RuntimeContext>> {
    RUNNING.with_borrow(Clone::clone)
}

/// Its ring.
pub(super) fn driver() -> Option<Rc<Driver>> {
    RUNNING.with_borrow(|running| running.as_ref().map(|shared| shared.driver.clone()))
}

thread_local! {
    static RUNNING: RefCell<Option<Rc<RuntimeContext>>> = const { RefCell::new(None) };
}

fn explain(error: io::Error) -> RingError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOSYS | libc::EACCES) => RingError::Refused(error),
        Some(libc::EINVAL) => RingError::TooOld(error),
        Some(libc::ENOMEM) => RingError::NoMemory(error),
        _ => RingError::Other(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::task::spawn;
    use super::*;

    #[test]
    fn runs_twice_and_nests_tasks() {
        let runtime = Runtime::new(16).expect("io_uring");
        assert!(!is_running());
        let sum = runtime.block_on(async {
            assert!(is_running());
            let one = spawn(async { 1 });
            one.await.expect("task") + 1
        });
        assert_eq!(sum + runtime.block_on(async { 1 }), 3);
        assert!(!is_running());
    }

    /// Operations make progress while other tasks are busy all the time.
    #[test]
    fn operations_get_on_while_tasks_are_busy() {
        Runtime::new(16).expect("io_uring").block_on(async {
            for way in 0..2 {
                let other = spawn(async {
                    op::submit(opcode::Nop::new().build(), ()).await.0.expect("a no-op");
                    op::submit(opcode::Nop::new().build(), ()).await.0.expect("a no-op");
                });
                let mut turns = 0;
                while !other.is_finished() {
                    if way == 0 {
                        turn().await
                    } else {
                        tokio::task::yield_now().await
                    }
                    turns += 1;
                    assert!(turns < 1_000, "way {way}");
                }
                other.await.expect("task");
            }
        });
    }

    /// After a pause longer than the reactor waits in the ring, it is still woken by the kernel, by another thread
    /// and by a timer.
    #[test]
    fn a_shard_that_sleeps_is_woken() {
        for (single_issuer, defer) in [(true, true), (true, false), (false, false)] {
            let waker = super::super::Waker::new().expect("eventfd");
            let listener = super::super::WakeListener::new(&waker);
            let driver = Driver::with(1_024, single_issuer, defer).expect("io_uring");
            Runtime::over(driver).expect("a runtime").block_on(async {
                for _ in 0..3 {
                    let other = waker.clone();
                    let thread = std::thread::spawn(move || {
                        std::thread::sleep(std::time::Duration::from_millis(60));
                        other.wake();
                    });
                    listener.wait().await.expect("a wake-up");
                    thread.join().expect("a thread");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    turn().await;
                }
            });
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        let text = explain(io::Error::from_raw_os_error(libc::EPERM)).to_string();
        assert!(text.contains("io_uring_disabled"), "{text}");
        let text = explain(io::Error::from_raw_os_error(libc::EINVAL)).to_string();
        assert!(text.contains("5.19"), "{text}");
        let text = explain(io::Error::from_raw_os_error(libc::ENOSYS)).to_string();
        assert!(text.contains("seccomp") && text.contains("5.19"), "{text}");
        let text = explain(io::Error::from_raw_os_error(libc::ENOMEM)).to_string();
        assert!(text.contains("RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK=)"), "{text}");
    }
}
