//! The shard's receive buffers: a fixed number of equal blocks, lent and given back.
//!
//! Decides: blocks are made when first needed and kept; who finds none waits. So the memory for reading
//! is `count_max` × `bytes` and no more, however many peers send.
//! Invariants: a block is in the pool, with a holder, or with an operation, never in two places; the bytes
//! shown are those that the last operation wrote.
//! Limits: waiters are all woken when a block comes back; running dry is the exception.
//! Leaves to others: bytes to send are plain vectors, sized by what is said.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// A bounded pool of equal blocks. Cheap to clone; one thread's.
#[derive(Clone)]
pub struct BufferPool {
    shared: Rc<RefCell<Shared>>,
    bytes: usize,
    count_max: usize,
}

struct Shared {
    free: Vec<Box<[u8]>>,
    made: usize,
    waiting: Vec<Waker>,
}

impl BufferPool {
    /// A pool of at most `count_max` blocks (at least one) of `bytes` bytes each (at least one).
    pub fn new(count_max: usize, bytes: usize) -> BufferPool {
        let shared = Shared { free: Vec::new(), made: 0, waiting: Vec::new() };
        BufferPool { shared: Rc::new(RefCell::new(shared)), bytes: bytes.max(1), count_max: count_max.max(1) }
    }

    /// A block, as soon as there is one.
    pub async fn take(&self) -> Buffer {
        poll_fn(|context| match self.try_take() {
            Some(buffer) => Poll::Ready(buffer),
            None => {
                self.shared.borrow_mut().waiting.push(context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }

    /// A block, when there is one now.
    pub fn try_take(&self) -> Option<Buffer> {
        let mut shared = self.shared.borrow_mut();
        let block = match shared.free.pop() {
            Some(block) => block,
            None if shared.made < self.count_max => {
                shared.made += 1;
                vec![0; self.bytes].into_boxed_slice()
            }
            None => return None,
        };
        Some(Buffer { block, filled: 0, home: self.shared.clone() })
    }

    /// Blocks that are lent now: held by someone or by the kernel.
    pub fn lent(&self) -> usize {
        let shared = self.shared.borrow();
        shared.made - shared.free.len()
    }
}

/// One block, exclusively the holder's; goes back to its pool when dropped.
pub struct Buffer {
    block: Box<[u8]>,
    filled: usize,
    home: Rc<RefCell<Shared>>,
}

impl Buffer {
    /// The bytes that the last operation wrote.
    pub fn filled(&self) -> &[u8] {
        self.block.get(..self.filled).unwrap_or_default()
    }

    /// Size of the block in bytes.
    pub fn capacity(&self) -> usize {
        self.block.len()
    }

    /// Where the kernel writes: on the heap, unmoved when `self` moves.
    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.block.as_mut_ptr()
    }

    pub(super) fn set_filled(&mut self, bytes: usize) {
        self.filled = bytes.min(self.block.len());
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut shared = self.home.borrow_mut();
        let block = std::mem::take(&mut self.block);
        shared.free.push(block);
        let waiting = std::mem::take(&mut shared.waiting);
        drop(shared);
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lends_no_more_than_it_has() {
        let pool = BufferPool::new(2, 64);
        let first = pool.try_take().expect("first");
        let second = pool.try_take().expect("second");
        assert!(pool.try_take().is_none());
        assert_eq!(pool.lent(), 2);
        drop(first);
        assert_eq!(pool.lent(), 1);
        assert_eq!(pool.try_take().expect("again").filled(), b"");
        drop(second);
        assert_eq!(pool.lent(), 0);
    }

    #[test]
    fn who_waits_is_served() {
        let runtime = super::super::Runtime::new(8).expect("io_uring");
        runtime.block_on(async {
            let pool = BufferPool::new(1, 64);
            let held = pool.take().await;
            let tasks: Vec<_> = (0..10)
                .map(|_| {
                    let pool = pool.clone();
                    super::super::spawn(async move {
                        let _buffer = pool.take().await;
                        tokio::task::yield_now().await;
                    })
                })
                .collect();
            tokio::task::yield_now().await;
            drop(held);
            for task in tasks {
                task.await.expect("task");
            }
            assert_eq!(pool.lent(), 0);
        });
    }
}
