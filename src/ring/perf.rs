//! Counts a thread's system calls, using the kernel's counters.
//!
//! Decides: a counter on the tracepoint `raw_syscalls:sys_enter`, which every system call passes. If the kernel, a
//! missing tracefs or missing rights forbid it, the result is the reason instead of a number.
//! Limits: kernel threads that work for the ring do not count as the thread's; they make no system calls.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

use super::Thread;

/// Counts the system calls of one thread from the counter's creation on.
#[derive(Debug)]
pub struct SystemCalls {
    counter: File,
}

/// Where tracefs is, newest convention first.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// `struct perf_event_attr` in its first version (PERF_ATTR_SIZE_VER0): enough for a plain counter.
#[repr(C)]
#[derive(Default)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint: u64,
}

/// PERF_TYPE_TRACEPOINT
const TRACEPOINT: u32 = 2;

impl SystemCalls {
    /// Starts counting for `thread`; the error says why counting is not possible here.
    pub fn start(thread: &Thread) -> Result<SystemCalls, String> {
        let tid = thread.tid().ok_or("the thread has not begun")?;
        let path = |folder: &&str| format!("{folder}/events/raw_syscalls/sys_enter/id");
        let id = TRACEFS.iter().find_map(|folder| std::fs::read_to_string(path(folder)).ok());
        let id = id.ok_or_else(|| format!("{} cannot be read: mount tracefs there, as root", path(&TRACEFS[0])))?;
        let config = id.trim().parse::<u64>().map_err(|error| format!("{}: {error}", path(&TRACEFS[0])))?;
        let size = size_of::<EventAttributes>() as u32;
        let attributes = EventAttributes { kind: TRACEPOINT, size, config, ..EventAttributes::default() };
        let (any_cpu, no_group, close_on_exec) = (-1, -1, 8_u64);
        // SAFETY: perf_event_open reads `size` bytes from the address given, and gives a new descriptor or -1.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, tid, any_cpu, no_group, close_on_exec)
        };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0);
        let Some(fd) = fd else {
            return Err(format!("perf_event_open: {} (kernel.perf_event_paranoid)", io::Error::last_os_error()));
        };
        // SAFETY: the descriptor was made above and nothing else owns it.
        Ok(SystemCalls { counter: unsafe { File::from_raw_fd(fd) } })
    }

    /// System calls so far.
    pub fn count(&self) -> Option<u64> {
        let mut count = [0; 8];
        (&self.counter).read_exact(&mut count).ok()?;
        Some(u64::from_ne_bytes(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where counting is forbidden, only the reason can be checked.
    #[test]
    fn counts_or_says_why_not() {
        let thread = Thread::default();
        thread.announce();
        match SystemCalls::start(&thread) {
            Ok(calls) => {
                let before = calls.count().expect("a count");
                for _ in 0..100 {
                    std::thread::yield_now();
                }
                let after = calls.count().expect("a count");
                assert!((100..110).contains(&(after - before)), "{before} {after}");
            }
            Err(why) => assert!(why.contains("tracefs") || why.contains("perf_event"), "{why}"),
        }
        assert!(SystemCalls::start(&Thread::default()).is_err());
    }
}
