//! A receive under way, which may last as long as its connection.
//!
//! Decides: it holds no memory until something has come, then a block of the pool. Whether something has come can be
//! looked at without waiting, so a kept connection is known to be quiet without a system call.
//! Invariants: the block that the kernel took is not lost, also when the receive is dropped before its completion.
//! Limits: one receive at a time on a socket.

use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use io_uring::{opcode, squeue, types};

use super::driver::Driver;
use super::slots::{Completion, Leftover, Place};
use super::{Buffer, BufferPool, op, runtime};

/// What a receive holds until its completion.
#[derive(Clone)]
struct Held {
    pool: BufferPool,
    fd: Rc<OwnedFd>,
}

impl Held {
    fn block(&self, completion: Completion) -> Option<Buffer> {
        self.pool.picked(completion.block?, usize::try_from(completion.result).unwrap_or(0))
    }
}

impl Leftover for Held {
    fn completed(&self, completion: Completion) {
        drop(self.block(completion));
    }
}

/// A receive under way. Dropped before its end, it ends its connection, and is seen to its end all the same: the kernel
/// may have taken a block already, and only the completion says which.
pub struct Receive {
    driver: Rc<Driver>,
    /// `None` once it has ended.
    place: Option<Place>,
    held: Held,
}

impl Receive {
    /// Inside of a runtime alone.
    pub(super) fn new(fd: &Rc<OwnedFd>, pool: &BufferPool) -> Receive {
        let target = types::Fd(fd.as_raw_fd());
        let entry = opcode::Recv::new(target, std::ptr::null_mut(), pool.block_bytes()).buf_group(pool.group());
        let driver = runtime::current().expect("a receive outside of a runtime");
        let place = driver.submit(entry.build().flags(squeue::Flags::BUFFER_SELECT));
        Receive { driver, place: Some(place), held: Held { pool: pool.clone(), fd: fd.clone() } }
    }

    /// Whether nothing has come yet, and no end. Of a connection that is kept: whether it may be used for another
    /// request, as bytes that nobody asked for would be taken for the next answer.
    pub fn is_waiting(&mut self) -> bool {
        self.place.is_some() && Pin::new(self).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }
}

impl Future for Receive {
    type Output = (io::Result<u32>, Option<Buffer>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(place) = self.place else { return Poll::Pending };
        let Poll::Ready((completion, _)) = self.driver.poll(place, context) else { return Poll::Pending };
        self.place = None;
        Poll::Ready((completion.to_result(), self.held.block(completion)))
    }
}

impl Drop for Receive {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            op::shut(&self.held.fd);
            self.driver.leave(place, Rc::new(self.held.clone()));
        }
    }
}
