//! Whether a shard's thread gets on, as others see it.
//!
//! Decides: a piece of work is one turn of a task or of the root future. The runtime counts its beginning and its end, so
//! the count is odd while one lasts.
//! Invariants: the thread that took a heart is the only one that beats it.
//! Limits: what the kernel and the runtime do between two pieces is none; a heart lives as long as the process, in a dozen
//! bytes.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use ringcrawl_base::stage::{self, Stage};

/// A thread's heart. It is made by others, and beaten by the thread that took it ([`Heart::take`]).
#[derive(Debug)]
pub struct Heart {
    beats: AtomicU64,
    stage: AtomicU8,
}

/// A piece of work that lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Its number: another one is another piece.
    pub number: u64,
    /// What the thread is doing now.
    pub stage: Stage,
}

impl Heart {
    /// One that nobody has taken. A thread's stage may be shown after the crawl has ended, so this is never freed.
    pub fn new() -> &'static Heart {
        Box::leak(Box::new(Heart { beats: AtomicU64::new(0), stage: AtomicU8::new(Stage::Ring as u8) }))
    }

    /// The calling thread's from now on: its runtime beats it, and it shows the thread's stage.
    pub fn take(&'static self) {
        HEART.set(Some(self));
        stage::show(&self.stage);
    }

    /// The piece of work that lasts now, if the thread has any.
    pub fn piece(&self) -> Option<Piece> {
        let number = self.beats.load(Ordering::Acquire);
        let stage = *Stage::ALL.get(usize::from(self.stage.load(Ordering::Relaxed)))?;
        (number % 2 == 1).then_some(Piece { number, stage })
    }
}

/// A piece of work begins; it ends when the guard is dropped.
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
        // Nobody else writes it.
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
