//! Resources that the system grants this process, and those it has used.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Raises the soft limit of open files to the hard limit; returns the limit now in effect.
pub fn raise_file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes one rlimit to the address given, which is valid for that.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return 0;
    }
    let before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: setrlimit reads one rlimit from the address given.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
        return before;
    }
    limit.rlim_cur
}

/// CPU time used so far by the whole process, user and system together.
pub fn cpu_time() -> Duration {
    // SAFETY: rusage is plain numbers, for which all zeros is a value; getrusage writes one to the address given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let time =
        |time: libc::timeval| Duration::new(time.tv_sec.unsigned_abs(), time.tv_usec.unsigned_abs() as u32 * 1_000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Bytes that this user may still write to the file system of `path`; `None` if unknown.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: statvfs is plain numbers, for which all zeros is a value; statvfs(3) reads a zero-terminated text and
    // writes one such value to the address given.
    let (failed, stat) = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut stat), stat)
    };
    (failed == 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_is_read() {
        assert!(free_bytes(Path::new("/")).is_some_and(|bytes| bytes % 512 == 0));
        assert_eq!((free_bytes(Path::new("/no/such/folder")), free_bytes(Path::new("/\0"))), (None, None));
    }

    #[test]
    fn limits_and_time_are_read() {
        assert!(raise_file_limit() >= 256);
        let before = cpu_time();
        let mut sum = 0_u64;
        while cpu_time() < before + Duration::from_millis(5) {
            sum = sum.wrapping_mul(31).wrapping_add(1);
        }
        assert!(cpu_time() > before, "{sum}");
    }
}
