//! The shard's receive blocks: a bounded number of equal size, lent to the kernel and to readers of the received
//! data.
//!
//! Decides: blocks are given to the kernel as a group (`group`). A pending receive holds no memory: the kernel takes
//! a block when it has data for it. So memory depends on what arrives at one time, not on the number of open
//! connections, and few blocks are reused again and again, which keeps them in the caches. There are as many blocks
//! as were ever needed at once. When the kernel finds none (ENOBUFS), their number doubles, up to `count_max`; beyond
//! that, a receive waits for a block, and each returned block lets one of them try again. How many blocks the kernel
//! holds is an estimate, so now and then some waiters are allowed to try as well.
//!
//! Invariants: a block is with the kernel or with one holder; the bytes shown are those that the last operation wrote;
//! a block outlives every receive that may take it, since each holds the pool. A group number is used once per thread,
//! so the blocks of a dropped pool are never mistaken for another's.
//! Limits: 32,768 blocks; a pool belongs to the runtime in which it was made; a wake-up lost because its task has ended
//! delays the others by `RETRY` at most.
//! Leaves to others: bytes to send are plain vectors of the size of the message.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};

use super::group::{ENTRIES_MAX, Group};
use super::{now, runtime, sleep_until, task};
use ringcrawl_base::time::Duration;

/// Number of blocks that a pool starts with.
const COUNT_MIN: usize = 4;

/// A bounded pool of blocks of equal size. Cheap to clone; belongs to one thread.
#[derive(Clone)]
pub struct BufferPool {
    shared: Rc<PoolInner>,
}

struct PoolInner {
    group: Group,
    block_bytes: u32,
    count_max: usize,
    /// By number; `None`: lent to a holder.
    blocks: RefCell<Vec<Option<Box<[u8]>>>>,
    lent: Cell<usize>,
    /// Blocks given to the kernel and not known to be taken: it may have used some without having reported it yet.
    spare: Cell<usize>,
    /// Longest waiting first.
    waiting: RefCell<VecDeque<Waker>>,
    /// Whether `watch` is running.
    watched: Cell<bool>,
    when_dry: RefCell<Option<Box<dyn Fn()>>>,
}

impl BufferPool {
    /// A pool of at most `count_max` blocks (1 to 32,768) of `bytes` bytes each (at least one). Inside the runtime
    /// only; an error when the kernel has no memory to register them.
    pub fn new(count_max: usize, bytes: usize) -> io::Result<BufferPool> {
        let ring = runtime::driver().ok_or_else(|| io::Error::other("no ring on this thread"))?;
        let number = NEXT_GROUP.with(|next| next.replace(next.get().wrapping_add(1)));
        let count_max = u16::try_from(count_max).unwrap_or(u16::MAX).clamp(1, ENTRIES_MAX);
        let pool = BufferPool {
            shared: Rc::new(PoolInner {
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

    /// Blocks currently held.
    pub fn lent(&self) -> usize {
        self.shared.lent.get()
    }

    /// Blocks in existence, held or not.
    pub fn made(&self) -> usize {
        self.shared.blocks.borrow().len()
    }

    #[cfg(test)]
    pub(super) fn holders(&self) -> usize {
        Rc::strong_count(&self.shared)
    }

    /// The most that one receive can bring, in bytes.
    pub(super) fn block_bytes(&self) -> u32 {
        self.shared.block_bytes
    }

    /// The group that a receive names; the receive holds it until its completion.
    pub(super) fn group(&self) -> u16 {
        // Another ring would find no blocks, and its receives would wait forever.
        debug_assert!(
            runtime::driver().is_none_or(|ring| self.shared.group.is_of(&ring)),
            "the pool is another ring's"
        );
        self.shared.group.number()
    }

    /// Sets the callback for a shortage of blocks: it gives back unneeded blocks, and runs repeatedly while any
    /// receive waits.
    pub fn when_dry(&self, give_back: impl Fn() + 'static) {
        self.shared.when_dry.replace(Some(Box::new(give_back)));
    }

    /// Called when the kernel found no block: makes more, or waits until another try may succeed.
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

    /// The block that the kernel took, with its first `filled` bytes; `None` for an invalid number.
    pub(super) fn picked(&self, number: u16, filled: usize) -> Option<Buffer> {
        let block = self.shared.blocks.borrow_mut().get_mut(usize::from(number))?.take()?;
        self.shared.lent.set(self.shared.lent.get() + 1);
        self.shared.take_spare();
        Some(Buffer { filled: filled.min(block.len()), block, number, home: self.shared.clone() })
    }

    /// Doubles the number of blocks, within the limit.
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

impl PoolInner {
    /// The kernel has one block more: wakes the longest waiter, if there is one.
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

/// While any receive waits: asks for blocks back, and lets some waiters try.
async fn watch(shared: Weak<PoolInner>) {
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

/// How often waiters are checked.
const RETRY: Duration = Duration::from_millis(5);
/// How many of them may then try, although no block is known to be back.
const RETRY_COUNT: usize = 16;

/// One block, owned exclusively by its holder; returned when dropped.
pub struct Buffer {
    block: Box<[u8]>,
    filled: usize,
    number: u16,
    home: Rc<PoolInner>,
}

impl Buffer {
    /// The bytes received.
    pub fn filled(&self) -> &[u8] {
        self.block.get(..self.filled).unwrap_or_default()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut block = std::mem::take(&mut self.block);
        // From here on its heap memory stays untouched until the kernel reports that it has filled it.
        self.home.group.put(&mut block, self.number);
        if let Some(place) = self.home.blocks.borrow_mut().get_mut(usize::from(self.number)) {
            *place = Some(block);
        }
        self.home.lent.set(self.home.lent.get() - 1);
        self.home.one_more();
    }
}

/// Largest block: more than a socket's receive buffer holds is useless.
const BLOCK_BYTES_MAX: u32 = 1 << 30;

thread_local! {
    static NEXT_GROUP: Cell<u16> = const { Cell::new(0) };
}

#[cfg(test)]
mod tests;
