//! What a thread of the crawler is doing now, in one byte.
//!
//! Decides: the stages are a closed list. A mark is two plain stores to a byte of the thread's own, so it is always
//! on: measuring does not change the code. A profiler reads the byte from a signal handler on the same thread
//! (`ring::Sampler`). A thread may also show its stage in an external byte ([`show`]), for observers on other threads
//! (`ring::Heart`). No decision depends on either.
//! Invariants: a mark ends where it began, so a stage that calls another is current again afterwards; no mark lives
//! across an `.await`, or the next task would run under it: [`during`] marks a future poll by poll.
//! Limits: unmarked work is `Ring`: the runtime, the kernel and anything between two marks.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};

macro_rules! stages {
    ($($(#[doc = $doc:literal])+ $stage:ident = $name:literal,)+) => {
        /// A part of the work on a page.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Stage { $($(#[doc = $doc])+ $stage,)+ }

        impl Stage {
            /// Every stage, by its number.
            pub const ALL: &[Stage] = &[$(Stage::$stage,)+];

            /// Its name in tables and JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Stage::$stage => $name,)+ }
            }
        }
    };
}

stages! {
    /// The kernel, io_uring, the runtime, and a fetch's own steps between the stages below.
    Ring = "ring",
    /// DNS queries and their answers.
    Dns = "dns",
    /// Handshakes, encryption and decryption.
    Tls = "tls",
    /// Writing requests; reading heads, framing and chunks.
    Http = "http",
    /// Content decoding.
    Decode = "decode",
    /// Searching pages for links, including charset and entities.
    Scan = "scan",
    /// Resolving and canonicalizing links, and reading them back.
    Url = "url",
    /// Comparing fingerprints with the set of those seen.
    Visited = "visited",
    /// Hosts, queues, delays, and robots.txt rules.
    Frontier = "frontier",
    /// Assigning URLs to shards; batches to and from other shards.
    Exchange = "exchange",
    /// Records: heads, digests, compression, index; handing segments to the disk.
    Store = "store",
    /// The logs' entries and blocks.
    Journal = "journal",
    /// The shard's loop, and the path of a page between the stages.
    Other = "other",
}

/// Number of stages.
pub const STAGES: usize = Stage::ALL.len();

thread_local! {
    static NOW: AtomicU8 = const { AtomicU8::new(Stage::Ring as u8) };
    static SHOWN: Cell<Option<&'static AtomicU8>> = const { Cell::new(None) };
}

/// Shows the calling thread's stage, by its number, in `place` from now on.
pub fn show(place: &'static AtomicU8) {
    SHOWN.set(Some(place));
    set(now());
}

#[inline]
fn set(stage: u8) {
    NOW.with(|now| now.store(stage, Ordering::Relaxed));
    if let Some(place) = SHOWN.get() {
        place.store(stage, Ordering::Relaxed);
    }
}

/// Marks the following work as `stage`, until the mark is dropped. Must not be held across an `.await`.
#[inline]
#[must_use = "the stage ends when the mark is dropped"]
pub fn enter(stage: Stage) -> Mark {
    let before = now();
    set(stage as u8);
    Mark { before, _of_this_thread: PhantomData }
}

/// Marks every step of `future` as `stage`.
pub async fn during<F: Future>(stage: Stage, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _stage = enter(stage);
        future.as_mut().poll(context)
    })
    .await
}

/// A stage in progress; the previous one returns when it is dropped.
#[derive(Debug)]
pub struct Mark {
    before: u8,
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for Mark {
    #[inline]
    fn drop(&mut self) {
        set(self.before);
    }
}

/// The number of the stage that the calling thread is in. Safe in signal handlers: the byte is created with its
/// thread, so reading it allocates and registers nothing.
pub fn now() -> u8 {
    NOW.with(|now| now.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> &'static str {
        Stage::ALL[usize::from(super::now())].as_str()
    }

    #[test]
    fn stages_nest_and_come_back() {
        assert_eq!(now(), "ring");
        {
            let _scan = enter(Stage::Scan);
            for _ in 0..3 {
                let _url = enter(Stage::Url);
                assert_eq!(now(), "url");
            }
            assert_eq!(now(), "scan");
            let early = || -> Option<()> {
                let _store = enter(Stage::Store);
                assert_eq!(now(), "store");
                None
            };
            assert_eq!(early(), None);
            assert_eq!(now(), "scan");
        }
        assert_eq!(now(), "ring");
        std::thread::spawn(|| {
            let _journal = enter(Stage::Journal);
            assert_eq!(now(), "journal");
        })
        .join()
        .expect("a thread");
        assert_eq!(now(), "ring");
    }

    #[test]
    fn a_stage_can_be_shown_to_others() {
        static PLACE: AtomicU8 = AtomicU8::new(u8::MAX);
        let shown = || PLACE.load(Ordering::Relaxed);
        std::thread::spawn(move || {
            show(&PLACE);
            {
                let _scan = enter(Stage::Scan);
                let others = std::thread::spawn(move || {
                    let _tls = enter(Stage::Tls);
                    shown()
                });
                assert_eq!(others.join().expect("a thread"), Stage::Scan as u8, "a thread shows its own");
            }
            assert_eq!(shown(), Stage::Ring as u8);
        })
        .join()
        .expect("a thread");
    }

    #[test]
    fn a_panic_leaves_no_stage_behind() {
        let caught = std::panic::catch_unwind(|| {
            let _tls = enter(Stage::Tls);
            panic!("on purpose");
        });
        assert!(caught.is_err());
        assert_eq!(now(), "ring");
    }

    #[test]
    fn futures_are_marked_poll_by_poll() {
        let mut polls = 0;
        let future = during(
            Stage::Dns,
            poll_fn(|_| {
                assert_eq!(now(), "dns");
                polls += 1;
                if polls < 3 { std::task::Poll::Pending } else { std::task::Poll::Ready(7) }
            }),
        );
        let mut future = pin!(future);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        for _ in 0..2 {
            assert!(future.as_mut().poll(&mut context).is_pending());
            assert_eq!(now(), "ring");
        }
        assert_eq!(future.as_mut().poll(&mut context), std::task::Poll::Ready(7));
        assert_eq!(now(), "ring");
    }

    #[test]
    fn names_differ_and_numbers_are_places() {
        let names: std::collections::BTreeSet<_> = Stage::ALL.iter().map(|stage| stage.as_str()).collect();
        assert_eq!(names.len(), STAGES);
        assert!(Stage::ALL.iter().enumerate().all(|(place, stage)| place == *stage as usize));
    }
}
