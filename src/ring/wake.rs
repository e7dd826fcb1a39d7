//! Waking a shard from another thread: an event counter with a read pending on the shard's ring.
//!
//! Decides: writing eight bytes to an eventfd wakes the shard's ring; a flag saves the system call while a wake-up is
//! already in flight.
//! Invariants: after `wake` returns, a pending or later `wait` returns; none is lost: the flag is lowered before
//! `wait` returns, and so before the shard reads what was posted.
//! Limits: several wakes may count as one; a spurious wake-up may happen.

use std::cell::RefCell;
use std::future::Future;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::ready;

use io_uring::{opcode, types};

use super::op;

/// The other threads' side; made before the shard's thread starts.
#[derive(Clone, Debug)]
pub struct Waker {
    shared: Arc<WakeCell>,
}

/// The shard's side: one per waker, on the shard's own thread.
pub struct WakeListener {
    shared: Arc<WakeCell>,
    /// The read in flight. It outlives a dropped `wait`: two reads would steal from each other.
    read: RefCell<Option<op::Op<Read>>>,
}

type Read = (Box<[u8; 8]>, Arc<WakeCell>);

#[derive(Debug)]
struct WakeCell {
    fd: OwnedFd,
    pending: AtomicBool,
}

impl Waker {
    /// A new event counter at zero.
    pub fn new() -> io::Result<Waker> {
        // SAFETY: eventfd takes two integers and gives a new descriptor or -1; nothing else owns it yet.
        let fd = unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Waker { shared: Arc::new(WakeCell { fd, pending: AtomicBool::new(false) }) })
    }

    /// Wakes the shard, from any thread and without blocking. The shard then sees what was posted before.
    pub fn wake(&self) {
        if self.shared.pending.swap(true, Ordering::SeqCst) {
            return;
        }
        let one = 1u64.to_ne_bytes();
        // SAFETY: `one` is eight readable bytes that live across the call; the descriptor is open while
        // `shared` lives. The counter is read back at every wake, so it cannot fill up and block.
        let written = unsafe { libc::write(self.shared.fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        if written < 0 {
            self.shared.pending.store(false, Ordering::SeqCst);
        }
    }
}

impl WakeListener {
    /// The listener of `waker`. A second one would steal wake-ups from the first.
    pub fn new(waker: &Waker) -> WakeListener {
        WakeListener { shared: waker.shared.clone(), read: RefCell::new(None) }
    }

    /// Returns after the next `wake`, or at once when one came since the last call. May be dropped and
    /// called again; one caller at a time.
    pub async fn wait(&self) -> io::Result<()> {
        poll_fn(|context| {
            let mut read = self.read.borrow_mut();
            let op = read.get_or_insert_with(|| self.submit_read());
            let (result, _) = ready!(Pin::new(op).poll(context));
            *read = None;
            self.shared.pending.store(false, Ordering::SeqCst);
            std::task::Poll::Ready(result.map(drop))
        })
        .await
    }

    fn submit_read(&self) -> op::Op<Read> {
        let mut count = Box::new([0u8; 8]);
        let fd = self.shared.fd.as_raw_fd();
        let entry = opcode::Read::new(types::Fd(fd), count.as_mut_ptr(), 8).build();
        op::submit_waiting(entry, (count, self.shared.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn no_wake_is_lost() {
        let runtime = super::super::Runtime::new(8).expect("io_uring");
        let posted = Arc::new(AtomicU64::new(0));
        let waker = Waker::new().expect("eventfd");
        let listener = WakeListener::new(&waker);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (waker, posted) = (waker.clone(), posted.clone());
                std::thread::spawn(move || {
                    for _ in 0..2_000 {
                        posted.fetch_add(1, Ordering::SeqCst);
                        waker.wake();
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            // Hangs, and so fails, when the last wake is lost.
            while posted.load(Ordering::SeqCst) < 6_000 {
                listener.wait().await.expect("wait");
            }
        });
        for thread in threads {
            thread.join().expect("thread");
        }
    }

    #[test]
    fn a_dropped_wait_takes_no_wake_with_it_for_long() {
        let runtime = super::super::Runtime::new(8).expect("io_uring");
        runtime.block_on(async {
            let waker = Waker::new().expect("eventfd");
            let listener = WakeListener::new(&waker);
            for _ in 0..100 {
                let _ = tokio::time::timeout(std::time::Duration::from_micros(100), listener.wait()).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            waker.wake();
            let woken = tokio::time::timeout(std::time::Duration::from_secs(5), listener.wait()).await;
            woken.expect("in time").expect("wait");
        });
    }
}
