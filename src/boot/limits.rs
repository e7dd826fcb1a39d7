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
