//! A group of blocks as the kernel sees it: entries in memory that both sides read (io_uring_register_buf_ring(3)).
//!
//! Decides: a block is given to the kernel by writing its entry and moving the tail. That takes neither an operation
//! nor a completion, which would cost a third of sending a request and receiving 16 KiB.
//! Invariants: the entries stay in place until the kernel has unregistered them; a block is put once until the kernel
//! has taken it, and there are at least as many entries as blocks, so none is overwritten.
//! Limits: 32,768 entries.
//! Leaves to others: the blocks' memory, and keeping it in place while the kernel may take it (`buffer`).

use std::alloc::{self, Layout};
use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

use super::driver::Driver;

/// Most entries that the kernel accepts.
pub(super) const ENTRIES_MAX: u16 = 1 << 15;

/// Alignment of the entries: a page, the largest that Linux uses on any machine.
const PAGE_BYTES: usize = 64 << 10;

/// Offset of the tail in the first entry, in bytes: after address, length and number (`struct io_uring_buf`).
const TAIL_OFFSET: usize = 14;

/// A registered group. Unregistered when dropped.
pub(super) struct Group {
    entries: NonNull<BufRingEntry>,
    layout: Layout,
    mask: u16,
    tail: Cell<u16>,
    number: u16,
    ring: Weak<Driver>,
}

impl Group {
    /// Registers group `number` with `ring`, with room for `count` blocks (1 to `ENTRIES_MAX`).
    pub(super) fn new(ring: &Rc<Driver>, number: u16, count: u16) -> io::Result<Group> {
        let count = count.clamp(1, ENTRIES_MAX).next_power_of_two();
        let bytes = usize::from(count) * size_of::<BufRingEntry>();
        let layout = Layout::from_size_align(bytes, PAGE_BYTES).map_err(io::Error::other)?;
        // SAFETY: the size is not zero.
        let memory = NonNull::new(unsafe { alloc::alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
        let group = Group {
            entries: memory.cast(),
            layout,
            mask: count - 1,
            tail: Cell::new(0),
            number,
            ring: Rc::downgrade(ring),
        };
        let registration = Registration {
            address: memory.as_ptr().expose_provenance() as u64,
            count: u32::from(count),
            number,
            ..Registration::default()
        };
        register(ring, REGISTER_PBUF_RING, &registration)?;
        Ok(group)
    }

    /// The number by which a receive names the group.
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    /// Whether receives on this thread's `ring` can take from it.
    pub(super) fn is_of(&self, ring: &Rc<Driver>) -> bool {
        std::ptr::eq(self.ring.as_ptr(), Rc::as_ptr(ring))
    }

    /// Lets the kernel have `block` under its number. The caller keeps it where it is, untouched, until a completion
    /// names it or the ring is gone.
    pub(super) fn put(&self, block: &mut [u8], number: u16) {
        let tail = self.tail.get();
        // SAFETY: the entry is within the allocation, as the mask is one less than the number of entries; the kernel
        // does not read entries behind the tail. Only the three fields are written: the first entry's fourth is the
        // tail.
        let entry = unsafe { &mut *self.entries.as_ptr().add(usize::from(tail & self.mask)) };
        entry.set_addr(block.as_mut_ptr().expose_provenance() as u64);
        entry.set_len(u32::try_from(block.len()).unwrap_or(u32::MAX));
        entry.set_bid(number);
        let tail = tail.wrapping_add(1);
        self.tail.set(tail);
        // SAFETY: within the first entry, aligned to two bytes, and changed only by atomic operations. The kernel
        // reads it before it reads an entry (io_ring_buffer_select), so it sees what was written above.
        unsafe { AtomicU16::from_ptr(self.entries.as_ptr().byte_add(TAIL_OFFSET).cast()) }
            .store(tail, Ordering::Release);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A closed ring has unregistered it. The kernel pins the pages itself for as long as it needs them.
        if let Some(ring) = self.ring.upgrade() {
            let registration = Registration { number: self.number, ..Registration::default() };
            let _ = register(&ring, UNREGISTER_PBUF_RING, &registration);
        }
        // SAFETY: allocated by `new` with this layout, and freed once.
        unsafe { alloc::dealloc(self.entries.as_ptr().cast(), self.layout) };
    }
}

/// `struct io_uring_buf_reg`.
#[repr(C)]
#[derive(Default)]
struct Registration {
    address: u64,
    count: u32,
    number: u16,
    flags: u16,
    reserved: [u64; 3],
}

// include/uapi/linux/io_uring.h
const REGISTER_PBUF_RING: libc::c_uint = 22;
const UNREGISTER_PBUF_RING: libc::c_uint = 23;

fn register(ring: &Driver, what: libc::c_uint, registration: &Registration) -> io::Result<()> {
    // SAFETY: the kernel reads one registration, which lives across the call; the caller keeps what it names.
    let result = unsafe {
        libc::syscall(libc::SYS_io_uring_register, ring.fd(), what, &raw const *registration, 1 as libc::c_uint)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
