//! One operation on the ring: it owns the memory it was given until the kernel says that it is done.
//!
//! Decides: an operation's data (buffer, address, path, descriptor) is moved into it and comes back with
//! the result. All pointers in a submission entry point into heap memory that this data owns, so moving the
//! data does not move what the kernel sees.
//! Invariants: memory handed to the kernel stays with the operation until its completion. A future that is
//! dropped early leaves its data with the driver, which keeps it until the completion; for descriptors that
//! could wait for ever (sockets, event counters) a cancel is sent along, so the completion comes soon.
//! The descriptor is part of the data: it cannot be closed, and its number reused, before that.
//! Limits: cancel works by descriptor and meets every operation on it: sockets have one user at a time.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use io_uring::{cqueue, opcode, squeue, types};
use tokio_uring::{InFlightOneshot, OneshotOutputTransform, UnsubmittedOneshot};

use super::runtime::is_running;

/// Submits `entry`, whose pointers point into what `data` owns on the heap; both come back together.
pub(super) fn submit<D: Unpin + 'static>(entry: squeue::Entry, data: D) -> Op<D> {
    Op::new(entry, data, Completion(PhantomData))
}

/// Operations that this thread has submitted so far.
pub fn operations() -> u64 {
    SUBMITTED.with(Cell::get)
}

thread_local! {
    static SUBMITTED: Cell<u64> = const { Cell::new(0) };
}

/// The same for an operation on `fd` that may wait for a peer: cancelled when its future is dropped. `data`
/// must hold `fd` open.
pub(super) fn submit_waiting<D: Unpin + 'static>(entry: squeue::Entry, fd: RawFd, data: D) -> Op<D> {
    let mut op = submit(entry, data);
    op.cancel = Some(fd);
    op
}

/// The same for an operation that takes its memory from a group of blocks: which one it took comes back. It must be seen
/// to its end.
pub(super) fn submit_picking<D: Unpin + 'static>(entry: squeue::Entry, data: D) -> Op<D, Picking<D>> {
    Op::new(entry.flags(squeue::Flags::BUFFER_SELECT), data, Picking(PhantomData))
}

/// Asks the kernel to end every operation under way on `fd`; they complete with ECANCELED. Nobody waits for
/// the answer: what was cancelled has a completion of its own. Nothing happens outside of a runtime.
pub(super) fn cancel(fd: RawFd) {
    if is_running() {
        let builder = types::CancelBuilder::fd(types::Fd(fd)).all();
        drop(submit(opcode::AsyncCancel2::new(builder).build(), ()));
    }
}

/// Ends the connection of `fd` both ways: receives under way see its end, sends and connects fail. A cancel looks at
/// every operation of the ring, of which connections that are kept have one each; this costs the same however many there
/// are. `fd` stays open until it is done. Nothing happens outside of a runtime.
pub(super) fn shut(fd: &Rc<OwnedFd>) {
    if is_running() {
        let entry = opcode::Shutdown::new(types::Fd(fd.as_raw_fd()), libc::SHUT_RDWR).build();
        drop(submit(entry, fd.clone()));
    }
}

/// Ends every operation of this thread's ring; when it returns, their completions are there to be read.
pub(super) async fn cancel_all() {
    let _ = submit(opcode::AsyncCancel2::new(types::CancelBuilder::any().all()).build(), ()).await;
}

/// Closes `fd` behind every entry that was submitted before; at once, by system call, outside of a runtime.
pub(super) fn close(fd: OwnedFd) {
    if is_running() {
        drop(submit(opcode::Close::new(types::Fd(fd.into_raw_fd())).build(), ()));
    }
}

/// An operation under way.
pub(super) struct Op<D: Unpin + 'static, T: OneshotOutputTransform<StoredData = D> = Completion<D>> {
    in_flight: InFlightOneshot<D, T>,
    /// What to cancel on when dropped before the end.
    cancel: Option<RawFd>,
}

impl<D: Unpin + 'static, T: OneshotOutputTransform<StoredData = D>> Op<D, T> {
    fn new(entry: squeue::Entry, data: D, transform: T) -> Op<D, T> {
        SUBMITTED.with(|submitted| submitted.set(submitted.get().wrapping_add(1)));
        Op { in_flight: UnsubmittedOneshot::new(data, transform, entry).submit(), cancel: None }
    }
}

impl<D: Unpin + 'static, T: OneshotOutputTransform<StoredData = D> + Unpin> Future for Op<D, T> {
    type Output = T::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.in_flight).poll(context);
        if polled.is_ready() {
            self.cancel = None;
        }
        polled
    }
}

impl<D: Unpin + 'static, T: OneshotOutputTransform<StoredData = D>> Drop for Op<D, T> {
    fn drop(&mut self) {
        // The descriptor is still open here: the field below, dropped after this, holds it.
        if let Some(fd) = self.cancel {
            cancel(fd);
        }
    }
}

/// Turns a completion's number into a result and gives the data back.
pub(super) struct Completion<D>(PhantomData<D>);

impl<D: 'static> OneshotOutputTransform for Completion<D> {
    type Output = (io::Result<u32>, D);
    type StoredData = D;

    fn transform_oneshot_output(self, data: D, entry: cqueue::Entry) -> Self::Output {
        (result_of(&entry), data)
    }
}

/// Turns a completion's number into a result with the number of the provided buffer that was taken.
pub(super) struct Picking<D>(PhantomData<D>);

impl<D: 'static> OneshotOutputTransform for Picking<D> {
    type Output = (io::Result<u32>, Option<u16>, D);
    type StoredData = D;

    fn transform_oneshot_output(self, data: D, entry: cqueue::Entry) -> Self::Output {
        (result_of(&entry), cqueue::buffer_select(entry.flags()), data)
    }
}

fn result_of(entry: &cqueue::Entry) -> io::Result<u32> {
    u32::try_from(entry.result()).map_err(|_| io::Error::from_raw_os_error(-entry.result()))
}

/// The error of an operation that a deadline ended.
pub(super) fn cancelled() -> io::Error {
    io::Error::from_raw_os_error(libc::ECANCELED)
}
