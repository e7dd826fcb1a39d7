//! What the system grants the process and what the process has used.

use std::io;
use std::thread::{self, JoinHandle};

/// Raises the soft limit of open files to the hard one; returns the new limit.
pub fn raise_file_limit() -> u64 {
    ringcrawl_ring::raise_file_limit()
}

/// The largest resident memory so far, in bytes (VmHWM of /proc/self/status).
pub fn rss_bytes_max() -> u64 {
    status_bytes("VmHWM:")
}

/// Resident memory now, in bytes (VmRSS).
pub fn rss_bytes() -> u64 {
    status_bytes("VmRSS:")
}

/// Resets the peak resident memory to the current value (proc(5), clear_refs).
pub fn forget_rss_bytes_max() {
    // If it fails, the peak is that of the whole process: that is no lower, so nothing looks better than it is.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Whether the process was started with `signal` ignored, as `nohup` does with SIGHUP.
pub fn is_ignored(signal: i32) -> bool {
    let mask = status_text("SigIgn:").and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or(0);
    // The lowest bit is signal 1.
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or(0) & 1 == 1)
}

/// Whether the process has a terminal that it loses when the connection to it ends (tty(4)).
pub fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Starts a thread; the error names it and the limits that may have been reached.
pub fn spawn<T: Send + 'static>(
    name: String,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, String> {
    let thread = thread::Builder::new().name(name.clone()).spawn(work);
    thread.map_err(|error| {
        let advice = match error.kind() {
            // pthread_create(3) returns EAGAIN for a limit on threads.
            io::ErrorKind::WouldBlock => "; raise the limit on processes and threads (ulimit -u, TasksMax=)",
            _ => "",
        };
        format!("the thread \"{name}\" cannot be started: {error}{advice}")
    })
}

fn status_bytes(name: &str) -> u64 {
    let kib = status_text(name).and_then(|value| value.strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn status_text(name: &str) -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}
