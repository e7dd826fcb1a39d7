//! Tasks of a shard, and what becomes of one that panics.
//!
//! Decides: a panic ends its task, never in silence. Its message, with the place in the source, is kept for the runtime
//! (`panicked`), and the root future is woken, so that a shard's loop that sleeps can end the crawl at once: whoever waits
//! for what the task would have done would wait for ever. Whoever awaits the task's handle gets the error as before.
//! Why so: a caught panic is a message alone. Where it happened only the panic hook is told, so one hook for the process
//! keeps that for its thread, and then does what the hook before it did.
//!
//! Invariants: what a task holds is dropped when it panics, before anybody is told, and while nothing unwinds: a second
//! panic there is caught too. Of several panics of a runtime the first is kept.
//! Limits: tasks that others spawn on the runtime (the resolver's) are not watched.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context, Poll};

use super::{pump, runtime};

/// Starts a task on the shard's runtime. Only inside `Runtime::block_on`. Should it panic, `panicked` says so, and who
/// awaits the handle gets an error.
pub fn spawn<F: Future + 'static>(future: F) -> tokio::task::JoinHandle<F::Output> {
    tokio_uring::spawn(Task(Some(future)))
}

/// The first panic of a task of this thread's runtime, if there was one: message and place. The root future has a turn
/// after it, and should ask whenever it has one. Inside `Runtime::block_on`; `None` outside of it.
pub fn panicked() -> Option<String> {
    runtime::current().and_then(|shared| shared.panicked())
}

/// Runs `work` and catches its panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    watch();
    LAST.take();
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        // Where the hook is another's by now, the message is all there is.
        let text = LAST.take().unwrap_or_else(|| message(payload.as_ref()).to_owned());
        Panic { text, payload }
    })
}

/// A panic that was caught; shown as its message and its place.
pub struct Panic {
    text: String,
    payload: Box<dyn Any + Send>,
}

impl Panic {
    /// Goes on with it; no hook hears of it again.
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

/// A task whose polls count and whose panic is told; `None` once it has panicked.
struct Task<F>(Option<F>);

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        pump::count_poll();
        // SAFETY: the field is never moved out of, and nothing else gives a way to it.
        let mut future = unsafe { self.map_unchecked_mut(|task| &mut task.0) };
        let polled = caught(|| match future.as_mut().as_pin_mut() {
            Some(future) => future.poll(context),
            None => Poll::Pending,
        });
        polled.unwrap_or_else(|panic| {
            drop(caught(|| future.set(None)));
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

/// From the first call on, panics of this process are remembered by their thread.
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
    // Without a place to put it, a thread that is about to end keeps nothing.
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
    use crate::ring::now;
    use crate::time::Duration;

    const SHORT: Duration = Duration::from_millis(20);

    /// The text and the place of a panic, as `panicked` shows them.
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
            // The root waits for nothing: it has a turn because of the panic, or none for long.
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
            // The first one stays, and tasks go on.
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
        /// Panics when polled, and holds what panics when it goes.
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

    /// Another runtime begins without the panics of the one before; nobody is told of tasks that are dropped.
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
        let panic = caught(|| Option::<u8>::None.expect("a value")).expect_err("a panic");
        assert_eq!(panic.to_string(), shown("a value", line!() - 1));
        // A panic that was caught long ago is not taken for this one.
        let resumed = caught(|| panic::resume_unwind(Box::new("no hook heard of it"))).expect_err("a panic");
        assert_eq!(resumed.to_string(), "no hook heard of it");
    }
}
