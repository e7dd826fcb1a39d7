//! One shard's runtime: tokio-uring with the flags that suit one pinned thread.
//!
//! Decides: COOP_TASKRUN (completions are finished when the thread enters the kernel anyway, no interrupt
//! between processors) and SINGLE_ISSUER (one thread submits; the kernel drops a lock). DEFER_TASKRUN would
//! be better still, but tokio-uring 0.5 submits without asking for events, so deferred completions would
//! never be run. SUBMIT_ALL: one bad entry must not hold back those behind it.
//! Invariants: a runtime is used by the thread that made it (it is not `Send`); the completion queue has
//! room for four times the operations that fetches can have under way.
//! Limits: Linux 5.19. Where the kernel refuses io_uring, the error says which switch to turn.
//! Leaves to others: pinning the thread (`boot`).

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use io_uring::opcode;

use super::descriptor::{self, Ring};
use super::op;

/// Operations that reach the kernel together at most: with 4,096, an exchange over 4,096 connections took 15 % more CPU
/// time; with 16, one over 512 took 5 % more.
const ENTRIES: u32 = 256;

/// Why there is no ring.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The kernel or a filter forbids it.
    #[error(
        "the kernel refuses io_uring ({0}): set sysctl kernel.io_uring_disabled=0, and allow io_uring_setup, \
         io_uring_enter and io_uring_register where a seccomp filter (a container's) forbids them"
    )]
    Refused(io::Error),
    /// The kernel does not know the flags that came with 5.19.
    #[error("this kernel's io_uring is too old ({0}): Linux 5.19 or later is needed")]
    TooOld(io::Error),
    /// Memory or descriptors ran out, or something unforeseen.
    #[error("no io_uring: {0}")]
    Other(io::Error),
}

/// One shard's runtime. Made, used and dropped by one thread.
pub struct Runtime {
    inner: ManuallyDrop<tokio_uring::Runtime>,
    ring: Rc<Ring>,
    single_issuer: bool,
}

impl Runtime {
    /// A runtime for about `fetches_max` fetches at once.
    pub fn new(fetches_max: usize) -> Result<Runtime, RingError> {
        super::process_start();
        let completions = u32::try_from(fetches_max).unwrap_or(u32::MAX).clamp(256, 4_096).next_power_of_two() * 4;
        let build = |single_issuer: bool| {
            let mut ring = tokio_uring::uring_builder();
            ring.setup_clamp().setup_cqsize(completions).setup_coop_taskrun().setup_submit_all();
            if single_issuer {
                ring.setup_single_issuer();
            }
            tokio_uring::Runtime::new(tokio_uring::builder().entries(ENTRIES).uring_builder(&ring))
        };
        let made = descriptor::made(|| match build(true) {
            Ok(inner) => Ok((inner, true)),
            // SINGLE_ISSUER came one version after the rest (6.0).
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok((build(false)?, false)),
            Err(error) => Err(error),
        });
        let ((inner, single_issuer), ring) = made.map_err(explain)?;
        Ok(Runtime { inner: ManuallyDrop::new(inner), ring, single_issuer })
    }

    /// Runs `future` to its end; tasks spawned by it rest afterwards, and end when the runtime is dropped.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        struct Running;
        impl Drop for Running {
            fn drop(&mut self) {
                RUNNING.with(|running| running.take());
            }
        }
        RUNNING.with(|running| running.replace(Some(self.ring.clone())));
        let _running = Running;
        self.inner.block_on(future)
    }

    /// Whether the kernel took SINGLE_ISSUER.
    pub fn is_single_issuer(&self) -> bool {
        self.single_issuer
    }
}

impl Drop for Runtime {
    /// Ends what is under way while its memory is still there: the driver, when it is dropped, lets go of the memory of
    /// operations first and asks the kernel to end them then.
    fn drop(&mut self) {
        // Inside of another runtime, or while the thread unwinds, none can be run; the process ends with its fault.
        if !is_running() && !std::thread::panicking() {
            self.block_on(async {
                // Tasks that an end wakes may begin one thing more, such as to close a file.
                for _ in 0..3 {
                    op::cancel_all().await;
                    turn().await;
                }
            });
        }
        // SAFETY: taken once, here; nothing uses it afterwards.
        descriptor::closed(unsafe { ManuallyDrop::take(&mut self.inner) });
    }
}

/// Starts a task on the shard's runtime. Only inside `Runtime::block_on`.
pub fn spawn<F: Future + 'static>(future: F) -> tokio::task::JoinHandle<F::Output> {
    tokio_uring::spawn(future)
}

/// Lets all other tasks have a turn, and the kernel too: entries that were submitted reach it when the runtime has
/// nothing left to do, so a task that merely yields, again and again, would hold them back. Only inside
/// `Runtime::block_on`.
pub async fn turn() {
    let _ = op::submit(opcode::Nop::new().build(), ()).await;
}

/// Whether this thread is inside `block_on`, so that operations can be submitted. What is dropped with the
/// runtime is dropped outside of it; the driver cancels what is left by itself.
pub(super) fn is_running() -> bool {
    RUNNING.with_borrow(Option::is_some)
}

/// The ring of the runtime that this thread is inside of.
pub(super) fn current() -> Option<Rc<Ring>> {
    RUNNING.with_borrow(Clone::clone)
}

thread_local! {
    static RUNNING: RefCell<Option<Rc<Ring>>> = const { RefCell::new(None) };
}

fn explain(error: io::Error) -> RingError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOSYS | libc::EACCES) => RingError::Refused(error),
        Some(libc::EINVAL) => RingError::TooOld(error),
        _ => RingError::Other(error),
    }
}

#[cfg(test)]
mod tests {
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

    /// A task that is busy all the time: operations of others get on, as they would not with `yield_now`.
    #[test]
    fn operations_get_on_while_a_task_takes_turns() {
        Runtime::new(16).expect("io_uring").block_on(async {
            for (turns, done) in [(true, true), (false, false)] {
                let other = spawn(async {
                    op::submit(opcode::Nop::new().build(), ()).await.0.expect("a no-op");
                    op::submit(opcode::Nop::new().build(), ()).await.0.expect("a no-op");
                });
                for _ in 0..20 {
                    if turns { turn().await } else { tokio::task::yield_now().await }
                }
                assert_eq!(other.is_finished(), done);
                other.await.expect("task");
            }
        });
    }

    #[test]
    fn refusals_say_what_to_do() {
        let text = explain(io::Error::from_raw_os_error(libc::EPERM)).to_string();
        assert!(text.contains("io_uring_disabled"), "{text}");
        let text = explain(io::Error::from_raw_os_error(libc::EINVAL)).to_string();
        assert!(text.contains("5.19"), "{text}");
    }
}
