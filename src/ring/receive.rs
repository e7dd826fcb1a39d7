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

use io_uring::{opcode, types};

use super::{Buffer, BufferPool, op, runtime};

/// What a receive holds until its completion.
type Held = (BufferPool, Rc<OwnedFd>);

/// A receive under way. Dropped before its end, it ends its connection, and is seen to its end all the same: the kernel
/// may have taken a block already, and only the completion says which.
pub struct Receive {
    op: Option<op::Op<Held, op::Picking<Held>>>,
    fd: Rc<OwnedFd>,
}

impl Receive {
    pub(super) fn new(fd: &Rc<OwnedFd>, pool: &BufferPool) -> Receive {
        let target = types::Fd(fd.as_raw_fd());
        let entry = opcode::Recv::new(target, std::ptr::null_mut(), pool.block_bytes()).buf_group(pool.group());
        Receive { op: Some(op::submit_picking(entry.build(), (pool.clone(), fd.clone()))), fd: fd.clone() }
    }

    /// Whether nothing has come yet, and no end. Of a connection that is kept: whether it may be used for another
    /// request, as bytes that nobody asked for would be taken for the next answer.
    pub fn is_waiting(&mut self) -> bool {
        let Some(op) = &mut self.op else { return false };
        match Pin::new(op).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => true,
            Poll::Ready((_, number, (pool, _))) => {
                self.op = None;
                drop(number.and_then(|number| pool.picked(number, 0)));
                false
            }
        }
    }
}

impl Future for Receive {
    type Output = (io::Result<u32>, Option<Buffer>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(op) = &mut self.op else { return Poll::Pending };
        let Poll::Ready((result, number, (pool, _))) = Pin::new(op).poll(context) else { return Poll::Pending };
        self.op = None;
        let filled = result.as_ref().map_or(0, |bytes| *bytes as usize);
        Poll::Ready((result, number.and_then(|number| pool.picked(number, filled))))
    }
}

impl Drop for Receive {
    fn drop(&mut self) {
        if let Some(op) = self.op.take()
            && runtime::is_running()
        {
            op::shut(&self.fd);
            runtime::spawn(async move {
                let (_, number, (pool, _)) = op.await;
                drop(number.and_then(|number| pool.picked(number, 0)));
            });
        }
    }
}
