//! Restricts a ring to the operations in use.
//!
//! Decides: a ring is made disabled, restricted, and then enabled (io_uring_register(2),
//! IORING_REGISTER_RESTRICTIONS). From then on, everything not on the list fails with EACCES, and nothing lifts that.
//! tokio-uring's ring, which is not used, allows nothing at all. It does not expose its descriptor, so we search the
//! process's descriptors: rings are made one at a time, and it is the one that is disabled.
//! Why so: operations on a ring bypass the filters that judge system calls.
//! Invariants: the list contains what this folder submits, which a test reads from its sources.
//! Limits: paths, addresses and arguments are not checked. A thread that may call io_uring_setup(2) can make another
//! ring. If the kernel refuses restrictions, or /proc is not available, a ring is left as it is, and
//! [`Made::is_restricted`] says so.

use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::{Mutex, PoisonError};

use io_uring::register::Restriction;
use io_uring::{Builder, IoUring, opcode, squeue};

macro_rules! operations {
    ($($name:ident)*) => {
        /// The operations that this folder submits, by name and code.
        const OPERATIONS: &[(&str, u8)] = &[$((stringify!($name), opcode::$name::CODE),)*];
    };
}

operations! {
    AsyncCancel AsyncCancel2 Close Connect Fallocate Fsync Nop OpenAt Read Recv RecvMulti RenameAt Send Shutdown UnlinkAt Write
}

/// Flags that their entries may have.
const FLAGS: squeue::Flags = squeue::Flags::BUFFER_SELECT.union(squeue::Flags::SKIP_SUCCESS);

// include/uapi/linux/io_uring.h, enum io_uring_register_op
const REGISTER_EVENTFD: u8 = 4;
const UNREGISTER_EVENTFD: u8 = 5;
const REGISTER_RESTRICTIONS: libc::c_uint = 11;
const REGISTER_ENABLE_RINGS: libc::c_uint = 12;
const REGISTER_PBUF_RING: u8 = 22;
const UNREGISTER_PBUF_RING: u8 = 23;

/// Objects that may be registered: the event counter, and groups of blocks.
const REGISTRATIONS: [u8; 4] = [REGISTER_EVENTFD, UNREGISTER_EVENTFD, REGISTER_PBUF_RING, UNREGISTER_PBUF_RING];

/// A ring, or what has one.
pub(super) struct Made<T> {
    pub(super) ring: T,
    /// Whether the restrictions are in effect.
    pub(super) is_restricted: bool,
}

/// Only one ring at a time is disabled.
static MAKING: Mutex<()> = Mutex::new(());

/// A ring of `entries` for what this folder submits.
pub(super) fn make(builder: &mut Builder, entries: u32) -> io::Result<Made<IoUring>> {
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let ring = builder.setup_r_disabled().build(entries)?;
    let operations = OPERATIONS.iter().map(|(_, code)| Restriction::sqe_op(*code));
    let registrations = REGISTRATIONS.iter().map(|code| Restriction::register_op(*code));
    let flags = std::iter::once(Restriction::sqe_flags_allowed(FLAGS.bits()));
    let is_restricted = restrict(ring.as_raw_fd(), &operations.chain(registrations).chain(flags).collect::<Vec<_>>());
    enable(ring.as_raw_fd())?;
    Ok(Made { ring, is_restricted: is_restricted.is_ok() })
}

/// tokio-uring's runtime, whose ring does nothing.
pub(super) fn make_runtime() -> io::Result<Made<tokio_uring::Runtime>> {
    make_runtime_among(rings)
}

/// The same, with `rings` returning the descriptors of the process's rings.
fn make_runtime_among(rings: impl FnOnce() -> Vec<RawFd>) -> io::Result<Made<tokio_uring::Runtime>> {
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut builder = tokio_uring::uring_builder();
    builder.setup_r_disabled();
    let ring = tokio_uring::Runtime::new(tokio_uring::builder().entries(1).uring_builder(&builder))?;
    // One registration is named, because an empty list counts as no list.
    let list = [Restriction::sqe_flags_allowed(0), Restriction::register_op(UNREGISTER_EVENTFD)];
    for fd in rings() {
        // The others refuse, as they are enabled.
        let is_restricted = restrict(fd, &list).is_ok();
        if enable(fd).is_ok() {
            return Ok(Made { ring, is_restricted });
        }
    }
    drop(ring);
    let ring = tokio_uring::Runtime::new(tokio_uring::builder().entries(1))?;
    Ok(Made { ring, is_restricted: false })
}

/// Descriptors of the process's rings.
fn rings() -> Vec<RawFd> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let is_ring = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == "anon_inode:[io_uring]")
    };
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.flatten().filter(is_ring).filter_map(number).collect()
}

fn restrict(ring: RawFd, list: &[Restriction]) -> io::Result<()> {
    // SAFETY: the kernel reads `list.len()` restrictions, which live across the call.
    unsafe { register(ring, REGISTER_RESTRICTIONS, list.as_ptr().cast(), list.len()) }
}

fn enable(ring: RawFd) -> io::Result<()> {
    // SAFETY: it takes no argument.
    unsafe { register(ring, REGISTER_ENABLE_RINGS, std::ptr::null(), 0) }
}

/// # Safety
/// `list` holds `count` values of what `what` takes.
unsafe fn register(ring: RawFd, what: libc::c_uint, list: *const libc::c_void, count: usize) -> io::Result<()> {
    let count = libc::c_uint::try_from(count).map_err(io::Error::other)?;
    // SAFETY: as the caller promises; a descriptor that is not a ring is refused.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_register, ring, what, list, count) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::fd::AsRawFd as _;
    use std::path::Path;

    use io_uring::{register::Probe, types};

    use super::super::{Runtime, op};
    use super::*;

    /// Names of the operations in the sources of a folder.
    fn used_in(folder: &Path, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("the folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                used_in(&path, names);
            } else if !path.ends_with("restrictions.rs") {
                let text = std::fs::read_to_string(path).expect("a source");
                let found = text.split("opcode::").skip(1).filter_map(|rest| rest.split_once("::new"));
                names.extend(found.map(|(name, _)| name.to_owned()));
            }
        }
    }

    #[test]
    fn the_list_is_what_is_submitted() {
        let mut used = BTreeSet::new();
        used_in(Path::new(env!("CARGO_MANIFEST_DIR")), &mut used);
        let listed: BTreeSet<String> = OPERATIONS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(listed, used);
    }

    fn refused<T: std::fmt::Debug>(result: io::Result<T>) {
        assert_eq!(result.expect_err("it is not on the list").raw_os_error(), Some(libc::EACCES));
    }

    #[test]
    fn a_ring_does_no_more_than_it_should() {
        let runtime = Runtime::new(16).expect("io_uring");
        assert!(runtime.is_restricted());
        runtime.block_on(async {
            let file = std::fs::File::open("/dev/null").expect("a file");
            let target = types::Fd(file.as_raw_fd());
            op::submit(opcode::Nop::new().build(), ()).await.0.expect("on the list");
            refused(op::submit(opcode::Fadvise::new(target, 1, 0).build(), ()).await.0);
            refused(op::submit(opcode::Socket::new(libc::AF_INET, libc::SOCK_RAW, 0).build(), ()).await.0);
            refused(op::submit(opcode::Nop::new().build().flags(squeue::Flags::IO_DRAIN), ()).await.0);
            // The runtime's own ring does not even allow that.
            refused(tokio_uring::no_op().await);
        });
    }

    #[test]
    fn nothing_else_is_registered_with_it() {
        let made = make(&mut IoUring::builder(), 8).expect("io_uring");
        assert!(made.is_restricted);
        let submitter = made.ring.submitter();
        refused(submitter.register_probe(&mut Probe::new()));
        refused(submitter.register_files(&[0]));
        refused(restrict(made.ring.as_raw_fd(), &[]));
        let counter = std::fs::File::open("/dev/null").expect("a file");
        // A listed registration gets past the restrictions: it fails only because this is not an event counter.
        assert_eq!(
            submitter.register_eventfd(counter.as_raw_fd()).expect_err("none").raw_os_error(),
            Some(libc::EINVAL)
        );
    }

    #[test]
    fn a_ring_that_is_not_found_is_left_as_it_is() {
        let made = make_runtime_among(Vec::new).expect("io_uring");
        assert!(!made.is_restricted);
        made.ring.block_on(async { tokio_uring::no_op().await.expect("it can do everything") });
    }

    #[test]
    fn rings_are_made_by_many_threads_at_once() {
        let threads: Vec<_> =
            (0..8).map(|_| std::thread::spawn(|| Runtime::new(16).expect("io_uring").is_restricted())).collect();
        assert!(threads.into_iter().all(|thread| thread.join().expect("a thread")));
    }
}
