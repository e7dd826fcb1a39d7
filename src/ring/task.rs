//! Tasks of a shard, and what happens when one panics.
//!
//! Decides: a panic ends its task, and never silently. The runtime keeps its message, with the place in the source
//! (`panicked`), and wakes the root future, so that even a sleeping shard loop can end the crawl at once: tasks that
//! depend on the panicked one would otherwise wait forever. Awaiting the task's handle gives an error as before.
//! Why so: a caught panic carries only a message. Only the panic hook gets its place, so one hook per process
//! remembers it for its thread and then calls the previous hook.
//!
//! Invariants: whatever a panicked task holds is dropped before its panic is reported, and while nothing unwinds, so a
//! second panic there is caught as well. Of several panics in a runtime the first is kept.
//! Limits: tasks spawned on the runtime by others (the resolver) are not watched.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context, Poll};

use super::{heart, reactor, runtime};

/// Starts a task on the shard's runtime. Only inside `Runtime::block_on`. If it panics, `panicked` says so, and
/// awaiting the handle gives an error.
pub fn spawn<F: Future + 'static>(future: F) -> tokio::task::JoinHandle<F::Output> {
    tokio_uring::spawn(Task(Some(Box::pin(future))))
}

/// The first panic of a task of this thread's runtime, if any: message and place. It wakes the root future, which
/// should check this whenever it is polled. `None` outside `Runtime::block_on`.
pub fn panicked() -> Option<String> {
    runtime::current().and_then(|shared| shared.panicked())
}

/// Runs `work` and catches its panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    watch();
    LAST.take();
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        // If the hook has been replaced since, there is only the message.
        let text = LAST.take().unwrap_or_else(|| message(payload.as_ref()).to_owned());
        Panic { text, payload }
    })
}

/// A caught panic; displayed as its message and place.
pub struct Panic {
    text: String,
    payload: Box<dyn Any + Send>,
}

impl Panic {
    /// Resumes it without calling the hook again.
    fn resume(self) -> ! {
        panic::resume_unwind(self.payload)
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Panic").field(&self.text).finish()
    }
}

/// A task whose polls are counted and whose panic is reported; `None` once it has panicked. It is boxed, because the
/// runtime moves spawned tasks several times, at the start and at the end: a fetch's task has kilobytes.
struct Task<F>(Option<Pin<Box<F>>>);

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        reactor::count_poll();
        let _working = heart::begin();
        let future = &mut self.0;
        let polled = caught(|| match future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Pending,
        });
        polled.unwrap_or_else(|panic| {
            drop(caught(|| *future = None));
            if let Some(shared) = runtime::current() {
                shared.task_panicked(panic.text.clone());
            }
            panic.resume()
        })
    }
}

thread_local! {
    /// The last panic of this thread.
    static LAST: Cell<Option<String>> = const { Cell::new(None) };
}

/// From the first call on, each thread of the process remembers its last panic.
fn watch() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            remember(info);
            before(info);
        }));
    });
}

fn remember(info: &PanicHookInfo<'_>) {
    let message = message(info.payload());
    let text = match info.location() {
        Some(place) => format!("{message} ({}:{})", place.file(), place.line()),
        None => message.to_owned(),
    };
    // A thread that is about to end no longer stores it.
    let _ = LAST.try_with(|last| last.set(Some(text)));
}

fn message(payload: &(dyn Any + Send)) -> &str {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "a panic without a message",
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};
    use std::pin::pin;
    use std::rc::Rc;

    use super::super::{Runtime, sleep_until};
    use super::*;
    use crate::now;
    use ringcrawl_base::time::Duration;

    const SHORT: Duration = Duration::from_millis(20);

    /// A panic's message and place, as `panicked` shows them.
    fn shown(text: &str, line: u32) -> String {
        format!("{text} ({}:{line})", file!())
    }

    #[test]
    fn a_panic_wakes_the_root_and_says_where() {
        Runtime::new(8).expect("io_uring").block_on(async {
            assert_eq!(panicked(), None);
            let held = Rc::new(());
            let kept = Rc::downgrade(&held);
            let task = spawn(async move {
                let _held = held;
                sleep_until(now() + SHORT).await;
                panic!("a task's {}", "mistake");
            });
            let line = line!() - 2;
            // For a long time, only the panic gives the root a turn.
            let mut turns = 0;
            let mut late = pin!(sleep_until(now() + Duration::from_secs(20)));
            let told = poll_fn(|context| {
                turns += 1;
                if late.as_mut().poll(context).is_ready() {
                    return Poll::Ready(None);
                }
                panicked().map_or(Poll::Pending, |text| Poll::Ready(Some(text)))
            });
            assert_eq!(told.await, Some(shown("a task's mistake", line)));
            assert!(turns > 1 && kept.upgrade().is_none(), "{turns}");
            assert!(task.await.expect_err("it panicked").is_panic());
            // The first panic is kept, and other tasks go on.
            assert!(spawn(async { panic!("another") }).await.is_err());
            assert_eq!(spawn(async { 5 }).await.expect("task"), 5);
            assert_eq!(panicked(), Some(shown("a task's mistake", line)));
        });
        assert_eq!(panicked(), None);
    }

    #[test]
    fn a_panic_while_dropping_is_no_abort() {
        struct Bad;
        impl Drop for Bad {
            fn drop(&mut self) {
                panic!("while dropping");
            }
        }
        /// Panics when polled, and again when dropped.
        struct Worse(Bad);
        impl Future for Worse {
            type Output = ();
            fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
                let Worse(Bad) = *self;
                panic!("first")
            }
        }
        Runtime::new(8).expect("io_uring").block_on(async {
            let task = spawn(Worse(Bad));
            assert!(task.await.expect_err("it panicked").is_panic());
            assert!(panicked().is_some_and(|text| text.starts_with("first (")), "{:?}", panicked());
        });
    }

    /// A new runtime starts without the panics of the previous one; a dropped handle is not a panic.
    #[test]
    fn a_runtime_knows_its_own_panics() {
        let first = Runtime::new(8).expect("io_uring");
        first.block_on(async { assert!(spawn(async { panic!("here") }).await.is_err()) });
        assert!(first.block_on(async { panicked() }).is_some());
        drop(first);
        let second = Runtime::new(8).expect("io_uring");
        second.block_on(async {
            drop(spawn(pending::<()>()));
            assert_eq!(panicked(), None);
        });
    }

    #[test]
    fn caught_work_gives_its_result_or_says_where_it_ended() {
        assert_eq!(caught(|| 3).expect("no panic"), 3);
        let panic = caught(|| panic!("a value")).expect_err("a panic");
        assert_eq!(panic.to_string(), shown("a value", line!() - 1));
        // An earlier panic is not mistaken for this one.
        let resumed = caught(|| panic::resume_unwind(Box::new("no hook heard of it"))).expect_err("a panic");
        assert_eq!(resumed.to_string(), "no hook heard of it");
    }
}
