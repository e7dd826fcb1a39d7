//! The shard's receive blocks: a bounded number of equal ones, lent to the kernel and to who reads what came.
//!
//! Decides: blocks are given to the kernel as a group (`group`). A receive that waits holds no memory: the kernel takes a
//! block when there is something to put into it. So memory follows what arrives at one time, not how many connections are
//! open, and few blocks are in use again and again, which keeps them in the caches.
//! There are as many blocks as were ever needed at once: where the kernel finds none (ENOBUFS), their number doubles up
//! to `count_max`; beyond it, who finds none waits, and each block that comes back lets one of them try again. Only
//! guesses say how many blocks the kernel has: so some who wait are let try now and then as well.
//!
//! Invariants: a block is with the kernel or with one holder; the bytes shown are those that the last operation wrote;
//! a block outlives every receive that may take it, since each holds the pool. The number of a group is used once by a
//! thread, so the blocks of a pool that is gone are never taken for another's.
//! Limits: 32,768 blocks; a pool is of the runtime in which it was made; a wake-up that is lost, as its task has ended,
//! costs the others `RETRY` at most.
//! Leaves to others: bytes to send are plain vectors, sized by what is said.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};

use super::group::{ENTRIES_MAX, Group};
use super::{now, runtime, sleep_until, task};
use crate::time::Duration;

/// Blocks that a pool begins with.
const COUNT_MIN: usize = 4;

/// A bounded pool of equal blocks. Cheap to clone; one thread's.
#[derive(Clone)]
pub struct BufferPool {
    shared: Rc<Shared>,
}

struct Shared {
    group: Group,
    block_bytes: u32,
    count_max: usize,
    /// By number; `None`: with a holder.
    blocks: RefCell<Vec<Option<Box<[u8]>>>>,
    lent: Cell<usize>,
    /// Blocks that came to the kernel and nobody is known to have taken: it may have used some, and not said so yet.
    spare: Cell<usize>,
    /// The longest waiting first.
    waiting: RefCell<VecDeque<Waker>>,
    /// Whether `watch` runs.
    watched: Cell<bool>,
    when_dry: RefCell<Option<Box<dyn Fn()>>>,
}

impl BufferPool {
    /// A pool of at most `count_max` blocks (1 to 32,768) of `bytes` bytes each (at least one). Inside the runtime only;
    /// an error when the kernel has no memory to know them by.
    pub fn new(count_max: usize, bytes: usize) -> io::Result<BufferPool> {
        let ring = runtime::driver().ok_or_else(|| io::Error::other("no ring on this thread"))?;
        let number = NEXT_GROUP.with(|next| next.replace(next.get().wrapping_add(1)));
        let count_max = u16::try_from(count_max).unwrap_or(u16::MAX).clamp(1, ENTRIES_MAX);
        let pool = BufferPool {
            shared: Rc::new(Shared {
                group: Group::new(&ring, number, count_max)?,
                block_bytes: u32::try_from(bytes).unwrap_or(u32::MAX).clamp(1, BLOCK_BYTES_MAX),
                count_max: usize::from(count_max),
                blocks: RefCell::default(),
                lent: Cell::new(0),
                spare: Cell::new(0),
                waiting: RefCell::default(),
                watched: Cell::new(false),
                when_dry: RefCell::default(),
            }),
        };
        pool.grow();
        Ok(pool)
    }

    /// Blocks that are held by someone now.
    pub fn lent(&self) -> usize {
        self.shared.lent.get()
    }

    /// Blocks that there are, held or not.
    pub fn made(&self) -> usize {
        self.shared.blocks.borrow().len()
    }

    #[cfg(test)]
    pub(super) fn holders(&self) -> usize {
        Rc::strong_count(&self.shared)
    }

    /// The most that one receive brings, in bytes.
    pub(super) fn block_bytes(&self) -> u32 {
        self.shared.block_bytes
    }

    /// What a receive names as its group; it holds the pool until its completion.
    pub(super) fn group(&self) -> u16 {
        // Another ring would find no blocks, and its receives wait for ever.
        debug_assert!(
            runtime::driver().is_none_or(|ring| self.shared.group.is_of(&ring)),
            "the pool is another ring's"
        );
        self.shared.group.number()
    }

    /// What to do when someone waits for a block, and again while it lasts: give back those that serve nobody.
    pub fn when_dry(&self, give_back: impl Fn() + 'static) {
        self.shared.when_dry.replace(Some(Box::new(give_back)));
    }

    /// After the kernel found no block: makes more, or waits until another try may find one.
    pub(super) async fn replenish(&self) {
        self.grow();
        let mut asked = false;
        poll_fn(|context| {
            if std::mem::replace(&mut asked, true) || self.shared.take_spare() {
                return Poll::Ready(());
            }
            self.shared.waiting.borrow_mut().push_back(context.waker().clone());
            if !self.shared.watched.replace(true) {
                task::spawn(watch(Rc::downgrade(&self.shared)));
            }
            Poll::Pending
        })
        .await;
    }

    /// The block that the kernel took, with its first `filled` bytes; `None` for a number that is none.
    pub(super) fn picked(&self, number: u16, filled: usize) -> Option<Buffer> {
        let block = self.shared.blocks.borrow_mut().get_mut(usize::from(number))?.take()?;
        self.shared.lent.set(self.shared.lent.get() + 1);
        self.shared.take_spare();
        Some(Buffer { filled: filled.min(block.len()), block, number, home: self.shared.clone() })
    }

    /// Twice as many blocks, if there may be more.
    fn grow(&self) {
        let mut blocks = self.shared.blocks.borrow_mut();
        let more = blocks.len().max(COUNT_MIN).min(self.shared.count_max - blocks.len());
        for _ in 0..more {
            let Ok(number) = u16::try_from(blocks.len()) else { return };
            let mut block = vec![0; self.shared.block_bytes as usize].into_boxed_slice();
            self.shared.group.put(&mut block, number);
            blocks.push(Some(block));
            self.shared.one_more();
        }
    }
}

impl Shared {
    /// The kernel has a block more: for who waits longest, if anyone does.
    fn one_more(&self) {
        let next = self.waiting.borrow_mut().pop_front();
        match next {
            Some(waker) => waker.wake(),
            None => self.spare.set(self.spare.get() + 1),
        }
    }

    fn take_spare(&self) -> bool {
        let spare = self.spare.get();
        self.spare.set(spare.saturating_sub(1));
        spare > 0
    }
}

/// While someone waits: asks for blocks back, and lets some try.
async fn watch(shared: Weak<Shared>) {
    loop {
        sleep_until(now() + RETRY).await;
        let Some(shared) = shared.upgrade() else { return };
        if shared.waiting.borrow().is_empty() {
            shared.watched.set(false);
            return;
        }
        if let Some(give_back) = &*shared.when_dry.borrow() {
            give_back();
        }
        let some: Vec<Waker> = {
            let mut waiting = shared.waiting.borrow_mut();
            let count = waiting.len().min(RETRY_COUNT);
            waiting.drain(..count).collect()
        };
        some.into_iter().for_each(Waker::wake);
    }
}

/// How often those who wait are looked after.
const RETRY: Duration = Duration::from_millis(5);
/// How many of them may try then, though no block is known to have come back.
const RETRY_COUNT: usize = 16;

/// One block, exclusively the holder's; goes back when dropped.
pub struct Buffer {
    block: Box<[u8]>,
    filled: usize,
    number: u16,
    home: Rc<Shared>,
}

impl Buffer {
    /// The bytes that came.
    pub fn filled(&self) -> &[u8] {
        self.block.get(..self.filled).unwrap_or_default()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut block = std::mem::take(&mut self.block);
        // On the heap it stays untouched from here, until the kernel says that it has filled it.
        self.home.group.put(&mut block, self.number);
        if let Some(place) = self.home.blocks.borrow_mut().get_mut(usize::from(self.number)) {
            *place = Some(block);
        }
        self.home.lent.set(self.home.lent.get() - 1);
        self.home.one_more();
    }
}

/// The most that a block may hold: more than a socket's receive buffer brings at once serves nobody.
const BLOCK_BYTES_MAX: u32 = 1 << 30;

thread_local! {
    static NEXT_GROUP: Cell<u16> = const { Cell::new(0) };
}

#[cfg(test)]
mod tests;
