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
use super::{now, runtime, sleep_until};
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
        let ring = runtime::current().ok_or_else(|| io::Error::other("no ring on this thread"))?;
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
            runtime::current().is_none_or(|ring| self.shared.group.is_of(&ring)),
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
                runtime::spawn(watch(Rc::downgrade(&self.shared)));
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
mod tests {
    use super::super::{Deadlines, Receive, Runtime, Socket, now, spawn, turn};
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    /// Sockets of ours and, of each, the other end.
    async fn connected(count: usize) -> (Vec<Socket>, Vec<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let addr = listener.local_addr().expect("address");
        let deadlines = Deadlines::new();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let socket = Socket::new(addr.ip()).expect("socket");
            let guard = deadlines.guard(&socket, now() + Duration::from_secs(10));
            socket.connect(addr, &guard).await.expect("connect");
            ours.push(socket);
            theirs.push(listener.accept().expect("accept").0);
        }
        (ours, theirs)
    }

    #[test]
    fn who_waits_holds_no_memory_and_what_comes_at_once_sets_the_number_of_blocks() {
        Runtime::new(64).expect("io_uring").block_on(async {
            let (sockets, mut peers) = connected(40).await;
            let (pool, deadlines) = (BufferPool::new(64, 100).expect("a pool"), Deadlines::new());
            let came = Rc::new(Cell::new(0));
            let tasks: Vec<_> = sockets
                .into_iter()
                .map(|socket| {
                    let (pool, deadlines, came) = (pool.clone(), deadlines.clone(), came.clone());
                    spawn(async move {
                        let guard = deadlines.guard(&socket, now() + Duration::from_secs(20));
                        let (mut bytes, mut begun) = (Vec::new(), None);
                        while let Some(buffer) = socket.recv(&mut begun, None, &pool, &guard).await.expect("a receive")
                        {
                            bytes.extend_from_slice(buffer.filled());
                            came.set(came.get() + buffer.filled().len());
                        }
                        bytes
                    })
                })
                .collect();
            turn().await;
            for (at, peer) in peers.iter_mut().enumerate() {
                peer.write_all(&[at as u8; 10]).expect("write");
                while came.get() < 10 * (at + 1) {
                    turn().await;
                }
            }
            assert_eq!(pool.made(), COUNT_MIN);
            for (at, peer) in peers.iter_mut().enumerate() {
                peer.write_all(&[at as u8; 1_000]).expect("write");
            }
            drop(peers);
            for (at, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await.expect("a task"), [at as u8; 1_010]);
            }
            assert!((COUNT_MIN..=64).contains(&pool.made()), "{}", pool.made());
            assert_eq!(pool.lent(), 0);
        });
    }

    #[test]
    fn no_more_blocks_than_there_may_be_and_who_finds_none_waits() {
        Runtime::new(64).expect("io_uring").block_on(async {
            let (sockets, mut peers) = connected(30).await;
            let (pool, deadlines) = (BufferPool::new(2, 100).expect("a pool"), Deadlines::new());
            peers.iter_mut().for_each(|peer| peer.write_all(b"something").expect("write"));
            let held = Rc::new(Cell::new(0));
            let tasks: Vec<_> = sockets
                .into_iter()
                .map(|socket| {
                    let (pool, deadlines, held) = (pool.clone(), deadlines.clone(), held.clone());
                    spawn(async move {
                        let guard = deadlines.guard(&socket, now() + Duration::from_secs(20));
                        let buffer =
                            socket.recv(&mut None, None, &pool, &guard).await.expect("a receive").expect("bytes");
                        held.set(held.get() + 1);
                        assert!(held.get() <= 2);
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        held.set(held.get() - 1);
                        assert_eq!(buffer.filled(), b"something");
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("a task");
            }
            assert_eq!((pool.made(), pool.lent()), (2, 0));
        });
    }

    /// Of many who wait for a block some give up, just before it or just when it is theirs: the others get theirs.
    #[test]
    fn who_gives_up_waiting_holds_nobody_up() {
        Runtime::new(64).expect("io_uring").block_on(async {
            let (sockets, mut peers) = connected(40).await;
            let (pool, deadlines) = (BufferPool::new(1, 100).expect("a pool"), Deadlines::new());
            let came = Rc::new(Cell::new(0));
            let tasks: Vec<_> = sockets
                .into_iter()
                .map(|socket| {
                    let (pool, deadlines, came) = (pool.clone(), deadlines.clone(), came.clone());
                    spawn(async move {
                        let guard = deadlines.guard(&socket, now() + Duration::from_secs(20));
                        let (mut bytes, mut begun) = (0, None);
                        while let Some(buffer) = socket.recv(&mut begun, None, &pool, &guard).await.expect("a receive")
                        {
                            bytes += buffer.filled().len();
                            turn().await;
                        }
                        came.set(came.get() + 1);
                        bytes
                    })
                })
                .collect();
            peers.iter_mut().for_each(|peer| peer.write_all(&[1; 1_000]).expect("write"));
            drop(peers);
            let mut gave_up = 0;
            for task in tasks.iter().rev().step_by(3) {
                let before = came.get();
                while came.get() == before && !task.is_finished() {
                    turn().await;
                }
                gave_up += usize::from(!task.is_finished());
                task.abort();
            }
            for task in tasks {
                assert!(task.await.map_or(true, |bytes| bytes == 1_000));
            }
            assert!((1..=14).contains(&gave_up) && came.get() + gave_up == 40, "{gave_up} and {}", came.get());
            tokio::time::sleep(RETRY * 3).await;
            assert_eq!((pool.made(), pool.lent()), (1, 0));
        });
    }

    #[test]
    fn blocks_that_serve_nobody_are_asked_back() {
        Runtime::new(64).expect("io_uring").block_on(async {
            let (sockets, mut peers) = connected(3).await;
            let (pool, deadlines) = (BufferPool::new(2, 100).expect("a pool"), Deadlines::new());
            let idle = Rc::new(RefCell::new(vec![sockets[0].receive(&pool), sockets[1].receive(&pool)]));
            turn().await;
            peers.iter_mut().for_each(|peer| peer.write_all(b"something").expect("write"));
            tokio::time::sleep(Duration::from_millis(20)).await;
            let asked = Rc::new(Cell::new(0));
            pool.when_dry({
                let (idle, asked) = (idle.clone(), asked.clone());
                move || {
                    asked.set(asked.get() + 1);
                    idle.borrow_mut().retain(Receive::is_waiting);
                }
            });
            let guard = deadlines.guard(&sockets[2], now() + Duration::from_secs(20));
            let buffer = sockets[2].recv(&mut None, None, &pool, &guard).await.expect("a receive").expect("bytes");
            assert_eq!(buffer.filled(), b"something");
            assert!(asked.get() >= 1 && idle.borrow().is_empty());
            drop(buffer);
            assert_eq!((pool.made(), pool.lent()), (2, 0));
        });
    }

    /// A receive goes on, but not for ever where nobody asks: and nothing that came is lost.
    #[test]
    fn what_is_not_asked_for_takes_few_blocks() {
        Runtime::new(64).expect("io_uring").block_on(async {
            let (sockets, mut peers) = connected(1).await;
            let (pool, deadlines) = (BufferPool::new(2_000, 100).expect("a pool"), Deadlines::new());
            let sent: Vec<u8> = (0..150_000).map(|at| (at % 251) as u8).collect();
            let mut begun = Some(sockets[0].receive(&pool));
            let (mut came, guard) = (Vec::new(), deadlines.guard(&sockets[0], now() + Duration::from_secs(20)));
            for part in sent.chunks(50_000) {
                peers[0].write_all(part).expect("write");
                tokio::time::sleep(Duration::from_millis(30)).await;
                let wanted = came.len() + part.len();
                while came.len() < wanted {
                    let buffer =
                        sockets[0].recv(&mut begun, None, &pool, &guard).await.expect("a receive").expect("bytes");
                    came.extend_from_slice(buffer.filled());
                }
            }
            assert_eq!(came, sent);
            assert!(pool.made() <= 128, "{}", pool.made());
            assert_eq!(pool.lent(), 0);
        });
    }

    /// Tasks are dropped at every moment of a receive: what the kernel took comes back.
    #[test]
    fn dropped_receives_lose_no_block() {
        Runtime::new(64).expect("io_uring").block_on(async {
            let (pool, deadlines) = (BufferPool::new(8, 100).expect("a pool"), Deadlines::new());
            for round in 0..60 {
                let (sockets, mut peers) = connected(8).await;
                let tasks: Vec<_> = sockets
                    .into_iter()
                    .map(|socket| {
                        let (pool, deadlines) = (pool.clone(), deadlines.clone());
                        spawn(async move {
                            let guard = deadlines.guard(&socket, now() + Duration::from_secs(20));
                            let mut begun = None;
                            while let Ok(Some(_)) = socket.recv(&mut begun, None, &pool, &guard).await {}
                        })
                    })
                    .collect();
                for (at, (task, peer)) in tasks.iter().zip(&mut peers).enumerate() {
                    if (at + round) % 3 > 0 {
                        peer.write_all(b"something").expect("write");
                    }
                    if (at + round) % 4 > 1 {
                        turn().await;
                    }
                    task.abort();
                }
                for task in tasks {
                    let _ = task.await;
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(pool.lent(), 0);
            // All of them are there still: as many receives at once find one each.
            let made = pool.made();
            let (sockets, mut peers) = connected(made).await;
            peers.iter_mut().for_each(|peer| peer.write_all(b"something").expect("write"));
            let mut buffers = Vec::new();
            for socket in &sockets {
                let guard = deadlines.guard(socket, now() + Duration::from_secs(20));
                buffers.push(socket.recv(&mut None, None, &pool, &guard).await.expect("a receive").expect("bytes"));
            }
            assert_eq!((pool.made(), pool.lent()), (made, made));
        });
    }

    #[test]
    fn a_pool_may_outlive_its_runtime_and_has_no_other() {
        assert!(BufferPool::new(1, 100).is_err(), "no runtime");
        let (pool, buffer) = Runtime::new(8).expect("io_uring").block_on(async {
            let pool = BufferPool::new(1, 100).expect("a pool");
            let (sockets, mut peers) = connected(1).await;
            peers[0].write_all(b"something").expect("write");
            let deadlines = Deadlines::new();
            let guard = deadlines.guard(&sockets[0], now() + Duration::from_secs(20));
            let buffer = sockets[0].recv(&mut None, None, &pool, &guard).await.expect("a receive").expect("bytes");
            (pool, buffer)
        });
        assert_eq!((buffer.filled(), pool.lent(), pool.made()), (&b"something"[..], 1, 1));
        drop(buffer);
        assert_eq!(pool.lent(), 0);
    }

    /// The entries that the kernel reads are used again and again, and more blocks than a group can have are not made.
    #[test]
    fn entries_go_round() {
        Runtime::new(64).expect("io_uring").block_on(async {
            let (sockets, mut peers) = connected(1).await;
            let (pool, deadlines) = (BufferPool::new(3, 8).expect("a pool"), Deadlines::new());
            let guard = deadlines.guard(&sockets[0], now() + Duration::from_secs(20));
            let mut begun = None;
            for round in 0..70_u8 {
                peers[0].write_all(&[round; 20]).expect("write");
                let mut came = Vec::new();
                while came.len() < 20 {
                    let buffer =
                        sockets[0].recv(&mut begun, None, &pool, &guard).await.expect("a receive").expect("bytes");
                    came.extend_from_slice(buffer.filled());
                }
                assert_eq!(came, [round; 20]);
            }
            assert_eq!((pool.made(), pool.lent()), (3, 0));
            let largest = BufferPool::new(usize::MAX, 1).expect("a pool");
            (0..16).for_each(|_| largest.grow());
            assert_eq!(largest.made(), usize::from(ENTRIES_MAX));
        });
    }
}
