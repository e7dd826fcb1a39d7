//! A send under way that nobody waits for: who asks waits for the answer.
//!
//! Decides: the kernel sends all of it or fails (MSG_WAITALL), so there is nothing to do at its completion: it wakes no
//! task. Whether it is through can be looked at.
//! Invariants: the bytes stay until the completion, also when this is dropped, which cancels it.
//! Limits: one at a time on a socket; what else is sent there must wait for it.

use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use io_uring::{opcode, types};

use super::op;

/// A send under way.
pub struct Sending {
    op: Option<op::Op<(Vec<u8>, Rc<OwnedFd>)>>,
    length: usize,
}

impl Sending {
    pub(super) fn new(fd: &Rc<OwnedFd>, bytes: Vec<u8>) -> Sending {
        let length = bytes.len();
        let count = u32::try_from(length).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(types::Fd(fd.as_raw_fd()), bytes.as_ptr(), count)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build();
        Sending { op: Some(op::submit_waiting(entry, fd.as_raw_fd(), (bytes, fd.clone()))), length }
    }

    /// Whether all of it was sent, by now; not when it failed.
    pub fn is_through(&mut self) -> bool {
        let polled = Pin::new(self).poll(&mut Context::from_waker(Waker::noop()));
        matches!(polled, Poll::Ready(Ok(())))
    }
}

impl Future for Sending {
    type Output = io::Result<()>;

    /// Once it has ended it says so once, and nothing after that.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(op) = &mut self.op else { return Poll::Pending };
        let Poll::Ready((result, _)) = Pin::new(op).poll(context) else { return Poll::Pending };
        self.op = None;
        Poll::Ready(match result {
            Ok(sent) if sent as usize == self.length => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) => Err(error),
        })
    }
}
