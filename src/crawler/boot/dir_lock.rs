//! The lock that keeps other processes out of a directory.
//!
//! Decides: `flock` on the file [`LOCK`], which the kernel releases with the process. A lock held for a moment, by who
//! only looks, is waited for.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::dir_error::DirError;
use ringcrawl_files::{plain, private};

/// The lock of a directory: no other process works there for as long as one of these lives.
#[derive(Clone, Debug)]
pub struct DirLock {
    _file: Arc<File>,
}

impl DirLock {
    /// Locks a directory.
    pub(super) fn of(dir: &Path) -> Result<DirLock, DirError> {
        let io = |error| DirError::Io(dir.to_owned(), error);
        let lock = private::open(private::options().create(true).truncate(false), &dir.join(LOCK)).map_err(io)?;
        // Commands that list a crawl's URLs hold the lock for a moment, to see whether a process works here.
        let mut held = lock.try_lock();
        for _ in 0..LOCK_TRIES {
            if !matches!(held, Err(TryLockError::WouldBlock)) {
                break;
            }
            std::thread::sleep(LOCK_PAUSE);
            held = lock.try_lock();
        }
        match held {
            Ok(()) => Ok(DirLock { _file: Arc::new(lock) }),
            Err(TryLockError::WouldBlock) => Err(DirError::Locked(dir.to_owned())),
            Err(TryLockError::Error(error)) => Err(io(error)),
        }
    }
}

/// Whether a process works in `root` now.
pub fn is_held(root: &Path) -> io::Result<bool> {
    match plain::open(&root.join(LOCK)) {
        // A shared lock, so that others may look at the same time; released at once.
        Ok(lock) => match lock.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The file that is locked.
pub(super) const LOCK: &str = "lock";
/// How many times, and at what interval, a held lock is tried again.
const LOCK_TRIES: u32 = 20;
pub(super) const LOCK_PAUSE: Duration = Duration::from_millis(10);
