//! A send in flight that no task waits for: the sender of a request waits for the answer.
//!
//! Decides: a short message fits into the socket's buffer. It is sent when it is submitted, and the kernel reports
//! nothing, so it costs no completion and ends no wait. If it does not fit after all, and for a long message, the
//! kernel sends all of it or fails (MSG_WAITALL). Its completion can be checked.
//! Invariants: the bytes stay until the completion, even when this is dropped, which cancels it. A short message is
//! sent whole or not at all, depending on the room in the buffer; so trying again repeats nothing.
//! Limits: one send at a time on a socket; anything else sent there must wait for it.

use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use io_uring::{opcode, types};

use super::driver::{DONE, Driver};
use super::op::Kept;
use super::runtime;
use super::slots::OpId;

/// Limit of a short message: less than the smallest send buffer of Linux (SOCK_MIN_SNDBUF, 4,608 bytes with the
/// kernel's overhead).
const SHORT_BYTES: usize = 2 << 10;

/// A send in flight.
pub struct Sending {
    driver: Rc<Driver>,
    state: SendState,
    bytes: Vec<u8>,
    fd: Rc<OwnedFd>,
}

#[derive(Clone, Copy)]
enum SendState {
    /// A short message that has been submitted.
    Silent(OpId),
    /// Waiting for room in the buffer.
    Waiting(OpId),
    /// The result, until it is taken.
    Ended(Option<i32>),
}

impl Sending {
    /// Only inside a runtime.
    pub(super) fn new(fd: &Rc<OwnedFd>, bytes: Vec<u8>) -> Sending {
        let driver = runtime::driver().expect("a send outside a runtime");
        let mut sending = Sending { driver, state: SendState::Ended(None), bytes, fd: fd.clone() };
        sending.submit(sending.bytes.len() <= SHORT_BYTES);
        sending
    }

    fn submit(&mut self, silent: bool) {
        let count = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(types::Fd(self.fd.as_raw_fd()), self.bytes.as_ptr(), count);
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        self.state = match silent {
            true => SendState::Silent(self.driver.submit_silent(entry.flags(flags | libc::MSG_DONTWAIT).build())),
            false => SendState::Waiting(self.driver.submit(entry.flags(flags).build())),
        };
    }

    /// Settles a short message: it has ended, or it becomes one that waits for room.
    fn said(&mut self, result: i32) {
        match result {
            NO_ROOM => self.submit(false),
            _ => self.state = SendState::Ended(Some(result)),
        }
    }

    /// Whether all of it has been sent by now; false when it failed.
    pub fn is_through(&mut self) -> bool {
        let polled = Pin::new(self).poll(&mut Context::from_waker(Waker::noop()));
        matches!(polled, Poll::Ready(Ok(())))
    }

    /// The bytes to be sent; a copy while it is in flight.
    pub fn into_bytes(mut self) -> Vec<u8> {
        match self.state {
            SendState::Ended(_) => std::mem::take(&mut self.bytes),
            _ => self.bytes.clone(),
        }
    }

    /// Must be called whenever the answer is polled for: resubmits a message that found no room, and returns whether
    /// the send failed. Success wakes no task.
    pub(super) fn attend(&mut self, context: &Context<'_>) -> bool {
        if let SendState::Silent(id) = self.state
            && let Poll::Ready((completion, _)) = self.driver.poll_failure(id, context)
        {
            self.said(completion.result);
        }
        if let SendState::Waiting(id) = self.state
            && let Poll::Ready((completion, _)) = self.driver.poll_failure(id, context)
        {
            self.state = SendState::Ended(Some(completion.result));
        }
        matches!(self.state, SendState::Ended(Some(result)) if result < 0)
    }
}

impl Future for Sending {
    type Output = io::Result<()>;

    /// It reports its end once, and nothing after that.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.state {
                SendState::Ended(None) => return Poll::Pending,
                SendState::Ended(Some(result)) => {
                    self.state = SendState::Ended(None);
                    return Poll::Ready(match usize::try_from(result) {
                        Ok(sent) if result == DONE || sent == self.bytes.len() => Ok(()),
                        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
                        Err(_) => Err(io::Error::from_raw_os_error(result.saturating_neg())),
                    });
                }
                SendState::Silent(id) | SendState::Waiting(id) => {
                    let Poll::Ready((completion, _)) = self.driver.poll(id, context) else { return Poll::Pending };
                    match self.state {
                        SendState::Silent(_) => self.said(completion.result),
                        _ => self.state = SendState::Ended(Some(completion.result)),
                    }
                }
            }
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if let SendState::Silent(id) | SendState::Waiting(id) = self.state {
            self.driver.cancel(id);
            self.driver.leave(id, Rc::new(Kept((std::mem::take(&mut self.bytes), self.fd.clone()))));
        }
    }
}

const NO_ROOM: i32 = -libc::EAGAIN;
