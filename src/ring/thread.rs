//! A thread as seen by others: its number, and the CPU time it has used.
//!
//! Decides: CPU clocks of other threads and processes are read by the clock numbers that the kernel assigns them
//! (include/linux/posix-timers.h), to the nanosecond and without a descriptor.
//! Limits: a thread that has ended no longer has a clock; its number may be reused.

use std::sync::atomic::{AtomicI32, Ordering};

use ringcrawl_base::time::Duration;

/// A thread that announces its number.
#[derive(Debug, Default)]
pub struct Thread {
    /// Its number for the kernel; 0 until announced.
    tid: AtomicI32,
}

impl Thread {
    /// Announces the calling thread.
    pub fn announce(&self) {
        // SAFETY: gettid takes nothing and cannot fail.
        self.tid.store(unsafe { libc::gettid() }, Ordering::Release);
    }

    /// Lowers the calling thread's share of a CPU: a quarter when competing with one other thread.
    pub fn lower_priority() {
        // SAFETY: setpriority and gettid take only numbers. If the kernel refuses, the thread keeps its priority.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, libc::gettid().unsigned_abs(), NICE) };
    }

    /// Its number for the kernel; `None` until announced.
    pub fn tid(&self) -> Option<i32> {
        Some(self.tid.load(Ordering::Acquire)).filter(|tid| *tid > 0)
    }

    /// CPU time that it has used, user and system together; `None` until announced, and after its end.
    pub fn cpu_time(&self) -> Option<Duration> {
        clock_time(self.clock()?)
    }

    /// Its CPU clock (CPUCLOCK_SCHED, CPUCLOCK_PERTHREAD_MASK).
    pub(super) fn clock(&self) -> Option<libc::clockid_t> {
        Some((!self.tid()? << 3) | 6)
    }
}

/// CPU time that all threads of process `pid` have used; `None` when there is no such process.
pub fn process_cpu_time(pid: u32) -> Option<Duration> {
    clock_time((!i32::try_from(pid).ok()? << 3) | 2)
}

/// Weighs 335 against 1,024 (kernel/sched/core.c, sched_prio_to_weight).
const NICE: i32 = 5;

/// The reading of a clock; `None` if there is no such clock.
pub(super) fn clock_time(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes one timespec to the address given, which is valid for that.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    (result == 0).then(|| Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_known_from_outside_until_it_ends() {
        let thread = Thread::default();
        assert_eq!((thread.tid(), thread.cpu_time()), (None, None));
        std::thread::scope(|scope| {
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                let ended = ended;
                thread.announce();
                let mut sum = 0_u64;
                while thread.cpu_time().expect("its own clock") < Duration::from_millis(5) {
                    sum = sum.wrapping_mul(31).wrapping_add(1);
                }
                let _ = ended.recv();
                sum
            });
            while thread.cpu_time().is_none_or(|time| time < Duration::from_millis(5)) {
                std::thread::yield_now();
            }
            assert!(process_cpu_time(std::process::id()).expect("our own clock") >= Duration::from_millis(5));
            drop(end);
            worker.join().expect("a thread");
        });
        // The kernel takes a moment to reap a joined thread.
        for _ in 0..1_000 {
            if thread.cpu_time().is_none() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("a thread that ended still has a clock");
    }
}
