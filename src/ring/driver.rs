//! The shard's ring, and the operations in flight on it.
//!
//! Decides: DEFER_TASKRUN: the kernel finishes an operation when this thread enters it to wait, several at a time, so
//! received bytes are still in the caches when they are read. SINGLE_ISSUER: one thread submits, so the kernel needs
//! one lock less. SUBMIT_ALL: one bad entry must not hold back those behind it. Entries are gathered and reach the
//! kernel when the tasks have nothing left to do (`reactor`), or when there are `ENTRIES` of them.
//! Why so: tokio-uring submits without asking for completions, and a ring that defers them then never shows them.
//! Here it only runs the tasks, and its own ring is idle.
//!
//! Invariants: an operation has a slot from its submission to its last completion, even if its future is gone;
//! whatever it needs stays there. Slots are reused under a new generation, so a late completion is never taken for
//! another operation's. Wakers and leftovers run while nothing here is borrowed.
//! Limits: 2^32 operations at a time; COOP_TASKRUN where the kernel does not know DEFER_TASKRUN (before 6.1).

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::restrictions::{self, Made};
use super::slots::{Completion, Leftover, OpId, Slots};
use ringcrawl_base::time::Duration;

/// Maximum number of entries submitted together: with 4,096, an exchange over 4,096 connections took 15 % more CPU
/// time; with 16, one over 512 took 5 % more.
const ENTRIES: u32 = 256;

/// How long to wait at the end for operations in flight, each time, and how many times.
const END_WAIT: Duration = Duration::from_millis(100);
const END_WAITS: usize = 50;

/// One thread's ring, shared only by that thread's operations.
pub(super) struct Driver {
    uring: RefCell<IoUring>,
    fd: RawFd,
    slots: RefCell<Slots>,
    /// Operations that complete on submission; the kernel reports only their failures.
    silent: RefCell<Vec<OpId>>,
    /// Wakers to call once completions have been read; the vector is reused.
    woken: RefCell<Vec<Waker>>,
    /// The reactor's waker while it sleeps where it would not notice a submission.
    sleeper: RefCell<Option<Waker>>,
    submitted: Cell<u64>,
    single_issuer: bool,
    is_restricted: bool,
}

impl Driver {
    /// A ring for about `operations` at once, with the flags that this kernel knows.
    pub(super) fn new(operations: u32) -> io::Result<Driver> {
        // DEFER_TASKRUN came with 6.1, SINGLE_ISSUER with 6.0.
        let mut made = Driver::with(operations, true, true);
        for single_issuer in [true, false] {
            if made.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL)) {
                made = Driver::with(operations, single_issuer, false);
            }
        }
        made
    }

    /// The same with the given flags.
    pub(super) fn with(operations: u32, single_issuer: bool, defer: bool) -> io::Result<Driver> {
        let mut builder = IoUring::builder();
        builder.setup_clamp().setup_cqsize(operations).setup_submit_all();
        if single_issuer {
            builder.setup_single_issuer();
        }
        if defer {
            builder.setup_defer_taskrun()
        } else {
            builder.setup_coop_taskrun()
        };
        let Made { ring: uring, is_restricted } = restrictions::make(&mut builder, ENTRIES)?;
        Ok(Driver {
            fd: uring.as_raw_fd(),
            uring: RefCell::new(uring),
            slots: RefCell::default(),
            silent: RefCell::default(),
            woken: RefCell::default(),
            sleeper: RefCell::default(),
            submitted: Cell::new(0),
            single_issuer,
            is_restricted,
        })
    }

    /// The ring's descriptor, open for as long as this value lives.
    pub(super) fn fd(&self) -> RawFd {
        self.fd
    }

    /// Whether the ring only allows what this folder submits.
    pub(super) fn is_restricted(&self) -> bool {
        self.is_restricted
    }

    /// Whether this kernel has multishot receives: they came with 6.0, like SINGLE_ISSUER.
    pub(super) fn receives_go_on(&self) -> bool {
        self.single_issuer
    }

    /// Operations submitted so far.
    pub(super) fn submitted(&self) -> u64 {
        self.submitted.get()
    }

    /// Submits `entry`. What its pointers point to must stay until the last completion.
    pub(super) fn submit(&self, entry: squeue::Entry) -> OpId {
        let id = self.slots.borrow_mut().take();
        self.push(entry.user_data(id.user_data()));
        id
    }

    /// Submits `entry`, which fails instead of waiting: it has ended once the kernel has taken it, so success needs
    /// no completion of its own. Its result is then `DONE`.
    pub(super) fn submit_silent(&self, entry: squeue::Entry) -> OpId {
        let id = self.submit(entry.flags(squeue::Flags::SKIP_SUCCESS));
        self.silent.borrow_mut().push(id);
        id
    }

    fn push(&self, entry: squeue::Entry) {
        self.submitted.set(self.submitted.get().wrapping_add(1));
        // SAFETY: operations own what their entries point to, and leave it here when they end early (`leave`).
        while unsafe { self.uring.borrow_mut().submission().push(&entry) }.is_err() {
            let submitted = self.uring.borrow().submit();
            match submitted {
                Ok(_) => {}
                // It takes no entries now: completions must be read first, or memory is short.
                Err(error) if is_passing(&error) => drop(self.enter(None)),
                Err(error) => panic!("io_uring_enter(2): {error}"),
            }
        }
        let sleeper = self.sleeper.borrow_mut().take();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// The next completion of the operation `id`, and whether it was the last: its slot is then free.
    pub(super) fn poll(&self, id: OpId, context: &Context<'_>) -> Poll<(Completion, bool)> {
        self.slots.borrow_mut().poll(id, context)
    }

    /// The same for a caller that does not need a wake-up on success.
    pub(super) fn poll_failure(&self, id: OpId, context: &Context<'_>) -> Poll<(Completion, bool)> {
        self.slots.borrow_mut().poll_failure(id, context)
    }

    /// Whether the kernel will still report on the operation `id`.
    pub(super) fn is_in_flight(&self, id: OpId) -> bool {
        self.slots.borrow().is_in_flight(id)
    }

    /// Whether the operation `id` is in flight and has no completion ready.
    pub(super) fn is_waiting(&self, id: OpId) -> bool {
        self.slots.borrow().is_waiting(id)
    }

    /// The one completion of the operation `id` that has not been taken, if it is the last.
    pub(super) fn last(&self, id: OpId) -> Option<Completion> {
        self.slots.borrow().last(id)
    }

    /// Abandons the operation `id`, which has not ended: `leftover` is kept until it has.
    pub(super) fn leave(&self, id: OpId, leftover: Rc<dyn Leftover>) {
        let unasked = self.slots.borrow_mut().leave(id, &leftover);
        for completion in unasked {
            leftover.completed(completion);
        }
    }

    /// Whether entries are waiting to be submitted.
    pub(super) fn has_entries(&self) -> bool {
        !self.uring.borrow_mut().submission().is_empty()
    }

    /// Wakes `waker` at the next submission.
    pub(super) fn on_submission(&self, waker: &Waker) {
        *self.sleeper.borrow_mut() = Some(waker.clone());
    }

    /// Has the kernel signal the event counter `news` when there is work to finish or a completion to read; `None`
    /// stops that. Polling the ring itself does not work: a ring that defers its work wakes no poller.
    pub(super) fn tell(&self, news: Option<RawFd>) -> io::Result<()> {
        let uring = self.uring.borrow();
        match news {
            Some(news) => uring.submitter().register_eventfd(news),
            None => uring.submitter().unregister_eventfd(),
        }
    }

    /// Submits the gathered entries and lets the kernel finish what it can. With `wait`, waits up to that long for
    /// one completion. Wakes the tasks that completions belong to, and returns the number of completions.
    pub(super) fn enter(&self, wait: Option<Duration>) -> io::Result<usize> {
        let mut uring = self.uring.borrow_mut();
        let entered = match wait {
            Some(wait) => {
                let time = types::Timespec::new().sec(wait.as_secs()).nsec(wait.subsec_nanos());
                uring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&time))
            }
            None => {
                let entries = u32::try_from(uring.submission().len()).unwrap_or(ENTRIES);
                // SAFETY: all arguments are numbers.
                unsafe { uring.submitter().enter::<libc::sigset_t>(entries, 0, ENTER_GETEVENTS, None) }
            }
        };
        if let Err(error) = entered
            && !is_passing(&error)
        {
            return Err(error);
        }
        let mut woken = self.woken.take();
        let (mut left, mut full) = (Vec::new(), Vec::new());
        let mut count = 0;
        {
            let mut slots = self.slots.borrow_mut();
            for entry in uring.completion() {
                count += 1;
                let more = cqueue::more(entry.flags());
                let completion = Completion { result: entry.result(), block: cqueue::buffer_select(entry.flags()) };
                let id = OpId::from(entry.user_data());
                if slots.complete(id, completion, more, &mut woken, &mut left) {
                    full.push(id);
                }
            }
            let taken = {
                let queue = uring.submission();
                queue.is_empty() && !queue.cq_overflow()
            };
            if taken {
                for id in self.silent.borrow_mut().drain(..) {
                    slots.assume(id, Completion { result: DONE, block: None }, &mut woken);
                }
            }
        }
        drop(uring);
        for (leftover, completion) in left {
            leftover.completed(completion);
        }
        full.into_iter().for_each(|id| self.cancel(id));
        woken.drain(..).for_each(Waker::wake);
        self.woken.replace(woken);
        Ok(count)
    }

    /// Asks the kernel to end the operation `id`, which then completes with ECANCELED. By its number: any other
    /// kind of cancel searches everything in flight.
    pub(super) fn cancel(&self, id: OpId) {
        if self.is_in_flight(id) {
            let cancel = self.submit(opcode::AsyncCancel::new(id.user_data()).build());
            self.leave(cancel, Rc::new(()));
        }
    }

    /// The same for everything in flight.
    pub(super) fn cancel_all(&self) {
        let ids = self.slots.borrow().in_flight();
        ids.into_iter().for_each(|id| self.cancel(id));
    }

    /// Ends the operations in flight and waits for them, a few seconds at most. Memory that the kernel may still
    /// write to after that is leaked.
    pub(super) fn close(&self) {
        self.cancel_all();
        let mut waits = 0;
        while !self.slots.borrow().is_idle() && waits < END_WAITS {
            match self.enter(Some(END_WAIT)) {
                Ok(0) => {
                    waits += 1;
                    self.cancel_all();
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if !self.slots.borrow().is_idle() {
            Box::leak(Box::new(self.slots.take()));
        }
    }
}

/// The result of a silent operation that succeeded.
pub(super) const DONE: i32 = i32::MAX;

/// Transient errors of io_uring_enter(2): a signal, a timeout, completions to be read first, no memory for now.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN))
}

/// include/uapi/linux/io_uring.h: IORING_ENTER_GETEVENTS.
const ENTER_GETEVENTS: u32 = 1;
