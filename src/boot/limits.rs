//! What the system grants the process and what it used of it.

use std::time::Duration;

/// Raises the soft limit of open files to the hard one; returns what holds now.
pub fn raise_file_limit() -> u64 {
    crate::ring::raise_file_limit()
}

/// The largest resident memory so far, in bytes (VmHWM of /proc/self/status).
pub fn rss_bytes_max() -> u64 {
    status_field("VmHWM:")
}

/// Resident memory now, in bytes (VmRSS).
pub fn rss_bytes() -> u64 {
    status_field("VmRSS:")
}

/// Lets the largest resident memory begin anew with what there is now (proc(5), clear_refs).
pub fn forget_rss_bytes_max() {
    // Without it the largest is that of the whole process: no less, so nothing is made better than it is.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// CPU time used so far by the whole process, user and system together.
pub fn cpu_time() -> Duration {
    crate::ring::cpu_time()
}

fn status_field(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let kib =
        value.and_then(|value| value.trim().strip_suffix("kB")).and_then(|value| value.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
