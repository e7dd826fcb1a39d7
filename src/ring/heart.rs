//! Whether a shard's thread makes progress, as seen by other threads.
//!
//! Decides: a piece of work is one turn of a task or of the root future. The runtime counts its beginning and its
//! end, so the count is odd during a piece of work.
//! Invariants: only the thread that took a heart beats it.
//! Limits: work of the kernel and the runtime between two pieces is not covered; a heart lives as long as the
//! process, in a dozen bytes.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use ringcrawl_base::stage::{self, Stage};

/// A thread's heart. Another thread creates it, and the thread that took it ([`Heart::take`]) beats it.
#[derive(Debug)]
pub struct Heart {
    beats: AtomicU64,
    stage: AtomicU8,
}

/// A piece of work in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Its number, which identifies the piece.
    pub number: u64,
    /// What the thread is doing now.
    pub stage: Stage,
}

impl Heart {
    /// A heart that no thread has taken. A thread's stage may be shown after the crawl has ended, so this is never
    /// freed.
    pub fn new() -> &'static Heart {
        Box::leak(Box::new(Heart { beats: AtomicU64::new(0), stage: AtomicU8::new(Stage::Ring as u8) }))
    }

    /// Assigns it to the calling thread: its runtime beats it, and it shows the thread's stage.
    pub fn take(&'static self) {
        HEART.set(Some(self));
        stage::show(&self.stage);
    }

    /// The current piece of work, if the thread has any.
    pub fn piece(&self) -> Option<Piece> {
        let number = self.beats.load(Ordering::Acquire);
        let stage = *Stage::ALL.get(usize::from(self.stage.load(Ordering::Relaxed)))?;
        (number % 2 == 1).then_some(Piece { number, stage })
    }
}

/// Begins a piece of work; it ends when the guard is dropped.
#[inline]
pub(super) fn begin() -> Working {
    step();
    Working
}

pub(super) struct Working;

impl Drop for Working {
    #[inline]
    fn drop(&mut self) {
        step();
    }
}

#[inline]
fn step() {
    if let Some(heart) = HEART.get() {
        // No other thread writes it.
        heart.beats.store(heart.beats.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

thread_local! {
    static HEART: Cell<Option<&'static Heart>> = const { Cell::new(None) };
}

#[cfg(test)]
mod tests {
    use super::super::{Runtime, spawn, turn};
    use super::*;

    #[test]
    fn each_piece_of_work_has_a_number() {
        let work = || {
            let heart = Heart::new();
            heart.take();
            assert_eq!(heart.piece(), None);
            Runtime::new(8).expect("io_uring").block_on(async {
                let first = heart.piece().expect("a piece");
                assert_eq!(first.stage, Stage::Ring);
                {
                    let _scan = stage::enter(Stage::Scan);
                    assert_eq!(
                        heart.piece(),
                        Some(Piece { stage: Stage::Scan, ..first }),
                        "the same, at another stage"
                    );
                }
                let task = spawn(async { heart.piece().map(|piece| piece.number) }).await.expect("a task");
                assert!(task > Some(first.number), "a task's turn is a piece of its own");
                turn().await;
                assert!(heart.piece().map(|piece| piece.number) > task);
            });
            assert_eq!(heart.piece(), None, "nothing is left to do");
        };
        std::thread::spawn(work).join().expect("a thread");
    }
}
