//! The descriptor of a thread's ring, which tokio-uring keeps to itself and without which nothing can be registered.
//!
//! Decides: it is the ring among the process's open files that was not there before the runtime was made.
//! Invariants: rings of runtimes come and go one at a time in this process (a lock), so a number that was taken before
//! and is taken after is the same ring's.
//! Limits: needs /proc; rings that others make or close at the same instant are not told apart.

use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A ring that lives: who holds this weakly knows whether it still does.
#[derive(Debug)]
pub(super) struct Ring {
    fd: RawFd,
}

impl Ring {
    /// Its descriptor, open as long as the runtime is there.
    pub(super) fn fd(&self) -> RawFd {
        self.fd
    }
}

/// What `make` makes, and the ring that came with it.
pub(super) fn made<T>(make: impl FnOnce() -> io::Result<T>) -> io::Result<(T, Rc<Ring>)> {
    let _turn = turn();
    let before = rings()?;
    let runtime = make()?;
    let fd = rings()?.into_iter().find(|fd| !before.contains(fd));
    let fd = fd.ok_or_else(|| io::Error::other("the new ring is not among the open files in /proc/self/fd"))?;
    Ok((runtime, Rc::new(Ring { fd })))
}

/// Closes a ring, by dropping what holds it.
pub(super) fn closed<T>(runtime: T) {
    let _turn = turn();
    drop(runtime);
}

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All rings that are open in this process.
fn rings() -> io::Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for file in std::fs::read_dir("/proc/self/fd")? {
        let path = file?.path();
        // Other threads close files meanwhile.
        if std::fs::read_link(&path).is_ok_and(|target| target == Path::new("anon_inode:[io_uring]")) {
            found.extend(path.file_name().and_then(|name| name.to_str()?.parse::<RawFd>().ok()));
        }
    }
    Ok(found)
}
