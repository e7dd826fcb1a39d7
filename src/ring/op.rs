//! One operation on the ring: it owns the memory it was given until the kernel reports completion.
//!
//! Decides: an operation's data (buffer, address, path, descriptor) is moved into it and comes back with the result.
//! All pointers in a submission entry point into heap memory owned by this data, so moving the data does not move what
//! the kernel sees.
//! Invariants: memory handed to the kernel stays with the operation until its completion. A future dropped early leaves
//! its data with the driver, which keeps it until the completion; descriptors that could wait forever (sockets, event
//! counters) are cancelled as well, so that the completion comes soon. The descriptor is part of the data, so it cannot
//! be closed and its number reused before that.
//! Limits: `cancel` works by descriptor and affects every operation on it: a socket has one user at a time.

use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use io_uring::{opcode, squeue, types};

use super::driver::Driver;
use super::runtime::{self, is_running};
use super::slots::{Completion, Leftover, OpId};

/// Submits `entry`, whose pointers point into heap memory owned by `data`; the result comes back together with `data`.
/// Only inside a runtime.
pub(super) fn submit<D: Unpin + 'static>(entry: squeue::Entry, data: D) -> Op<D> {
    let driver = runtime::driver().expect("an operation outside a runtime");
    Op { id: driver.submit(entry), driver, data: Some(data), is_cancelled: false }
}

/// Operations submitted so far by this thread's runtime.
pub fn operations() -> u64 {
    runtime::driver().map_or(0, |driver| driver.submitted())
}

/// The same for an operation that may wait for a peer: cancelled when its future is dropped.
pub(super) fn submit_waiting<D: Unpin + 'static>(entry: squeue::Entry, data: D) -> Op<D> {
    let mut op = submit(entry, data);
    op.is_cancelled = true;
    op
}

/// Asks the kernel to end every operation in flight on `fd`; they complete with ECANCELED. The result of the cancel
/// itself is ignored: each cancelled operation has its own completion. Does nothing outside a runtime.
pub(super) fn cancel(fd: RawFd) {
    if is_running() {
        let builder = types::CancelBuilder::fd(types::Fd(fd)).all();
        drop(submit(opcode::AsyncCancel2::new(builder).build(), ()));
    }
}

/// Shuts the connection of `fd` down both ways: pending receives see its end, sends and connects fail. A cancel would
/// search every operation of the ring, one for each idle connection; this costs the same however many there are. `fd`
/// stays open until it is done. Does nothing outside a runtime.
pub(super) fn shut(fd: &Rc<OwnedFd>) {
    if is_running() {
        let entry = opcode::Shutdown::new(types::Fd(fd.as_raw_fd()), libc::SHUT_RDWR).build();
        drop(submit(entry, fd.clone()));
    }
}

/// Closes `fd` after every entry submitted before; outside a runtime at once, by system call.
pub(super) fn close(fd: OwnedFd) {
    if is_running() {
        drop(submit(opcode::Close::new(types::Fd(fd.into_raw_fd())).build(), ()));
    }
}

/// An operation in flight, with one completion.
pub(super) struct Op<D: Unpin + 'static> {
    driver: Rc<Driver>,
    id: OpId,
    /// `None` after it has ended.
    data: Option<D>,
    /// Whether it is cancelled when this is dropped before the end.
    is_cancelled: bool,
}

impl<D: Unpin + 'static> Future for Op<D> {
    type Output = (io::Result<u32>, D);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready((completion, _)) = self.driver.poll(self.id, context) else { return Poll::Pending };
        match self.data.take() {
            Some(data) => Poll::Ready((completion.to_result(), data)),
            None => Poll::Pending,
        }
    }
}

impl<D: Unpin + 'static> Drop for Op<D> {
    fn drop(&mut self) {
        if let Some(data) = self.data.take() {
            if self.is_cancelled {
                self.driver.cancel(self.id);
            }
            self.driver.leave(self.id, Rc::new(Kept(data)));
        }
    }
}

/// Data still held by an abandoned operation.
pub(super) struct Kept<D>(pub(super) D);

impl<D> Leftover for Kept<D> {}

impl Completion {
    /// The number, or the error it stands for.
    pub(super) fn to_result(self) -> io::Result<u32> {
        u32::try_from(self.result).map_err(|_| io::Error::from_raw_os_error(self.result.saturating_neg()))
    }
}

/// The error of an operation ended by a deadline.
pub(super) fn cancelled() -> io::Error {
    io::Error::from_raw_os_error(libc::ECANCELED)
}
