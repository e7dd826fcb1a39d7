//! Where a thread's CPU time goes: its stage, sampled every millisecond of CPU time.
//!
//! Decides: a POSIX timer on the thread's CPU clock sends a signal to that thread, whose handler adds the time passed
//! to the counter of the thread's current stage. CPU time and not wall time: a thread that sleeps or has no CPU is
//! not sampled, and the counts add up to what the thread used. The kernel checks such timers at its own tick (4 ms at
//! CONFIG_HZ=250), so a sample covers several milliseconds; the overrun count says how many. Kernel or user: a tick
//! during a system call is delivered when the call returns, and then the previous instruction is `syscall`.
//! Invariants: the handler runs on the sampled thread, makes no system call and touches nothing but atomics, the
//! thread's own stage and the two bytes of code before the interrupted instruction; errno is left alone. The only waits
//! that the signal could interrupt are the runtime's own, which take EINTR as a spurious wake-up; and a waiting thread
//! uses no CPU time, so its timer does not expire.
//! Limits: no finer than the kernel's tick: short runs give few samples. Kernel and user time are distinguished only
//! on x86-64; page faults and interrupts in user code count as user.

use std::io;
use std::mem;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Thread;
use ringcrawl_base::stage::{self, STAGES};
use ringcrawl_base::time::Duration;

/// CPU time between two samples. A finer interval is useless: the kernel's tick decides.
const INTERVAL: Duration = Duration::from_millis(1);

/// Samples a thread for as long as it lives.
#[derive(Debug)]
pub struct Sampler {
    timer: libc::timer_t,
    samples: &'static Samples,
}

// SAFETY: a timer's identifier is a number of the process, and its calls may come from any thread.
unsafe impl Send for Sampler {}

/// What the handler writes.
#[derive(Debug, Default)]
struct Samples {
    user: [AtomicU64; STAGES],
    kernel: [AtomicU64; STAGES],
    signals: AtomicU64,
}

/// CPU time by stage, in the order of [`ringcrawl_base::stage::Stage::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sampled {
    /// In user code; both together where kernel and user are not distinguished.
    pub user: [Duration; STAGES],
    /// In system calls.
    pub kernel: [Duration; STAGES],
    /// How often the thread was sampled.
    pub signals: u64,
}

impl Sampler {
    /// Whether kernel and user time are distinguished here.
    pub const KNOWS_KERNEL: bool = cfg!(target_arch = "x86_64");

    /// Starts sampling `thread`, which must have announced itself and be alive.
    pub fn start(thread: &Thread) -> io::Result<Sampler> {
        let (Some(tid), Some(clock)) = (thread.tid(), thread.clock()) else {
            return Err(io::Error::other("the thread has not begun"));
        };
        install()?;
        // Never freed: a signal may be on its way to the thread when the timer is deleted.
        let samples: &'static Samples = Box::leak(Box::default());
        // SAFETY: sigevent is plain numbers and a pointer, for which all zeros is a value.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGPROF;
        event.sigev_notify_thread_id = tid;
        event.sigev_value.sival_ptr = ptr::from_ref(samples).cast_mut().cast();
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: timer_create reads the event and writes the identifier, both valid across the call.
        if unsafe { libc::timer_create(clock, &mut event, &mut timer) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let sampler = Sampler { timer, samples };
        let interval = libc::timespec { tv_sec: 0, tv_nsec: i64::from(INTERVAL.subsec_nanos()) };
        let times = libc::itimerspec { it_interval: interval, it_value: interval };
        // SAFETY: the timer was made above; timer_settime reads one itimerspec from the address given.
        if unsafe { libc::timer_settime(timer, 0, &times, ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(sampler)
    }

    /// What was sampled so far.
    pub fn sampled(&self) -> Sampled {
        let times = |counts: &[AtomicU64; STAGES]| {
            let time = |count: &AtomicU64| Duration::from_nanos(count.load(Ordering::Relaxed) * INTERVAL_NANOS);
            std::array::from_fn(|stage| counts.get(stage).map_or(Duration::ZERO, time))
        };
        Sampled {
            user: times(&self.samples.user),
            kernel: times(&self.samples.kernel),
            signals: self.samples.signals.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // SAFETY: the timer was made by `start` and is deleted once.
        unsafe { libc::timer_delete(self.timer) };
    }
}

const INTERVAL_NANOS: u64 = INTERVAL.as_nanos() as u64;

/// Installs the handler, once per process. SIGPROF is for profilers, and nothing else here uses it.
fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Option<i32>> = OnceLock::new();
    let error = INSTALLED.get_or_init(|| {
        // SAFETY: sigaction is plain numbers and pointers, for which all zeros is a value.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_tick;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: the handler does nothing that a signal handler must not: see there.
        let result = unsafe { libc::sigaction(libc::SIGPROF, &action, ptr::null_mut()) };
        (result != 0).then(|| io::Error::last_os_error().raw_os_error().unwrap_or(0))
    });
    error.map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code)))
}

/// `siginfo_t` of a timer's signal (include/uapi/asm-generic/siginfo.h).
#[repr(C)]
struct TimerInfo {
    signal: libc::c_int,
    error: libc::c_int,
    code: libc::c_int,
    /// The union that follows holds pointers.
    _aligned: [usize; 0],
    timer: libc::c_int,
    overrun: libc::c_int,
    value: *const Samples,
}

const _: () = assert!(size_of::<TimerInfo>() <= size_of::<libc::siginfo_t>());

/// `si_code` of a timer's signal.
const SI_TIMER: libc::c_int = -2;

extern "C" fn on_tick(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel gives a siginfo_t; its first numbers lie as in TimerInfo for every signal.
    let info = unsafe { &*info.cast::<TimerInfo>() };
    if info.code != SI_TIMER || info.value.is_null() {
        return;
    }
    // SAFETY: every timer with this signal is made by `Sampler::start`, whose Samples are never freed.
    let samples = unsafe { &*info.value };
    let counts = if was_in_system_call(context) { &samples.kernel } else { &samples.user };
    if let Some(count) = counts.get(usize::from(stage::now())) {
        let passed = 1 + u64::from(info.overrun.unsigned_abs());
        count.store(count.load(Ordering::Relaxed) + passed, Ordering::Relaxed);
    }
    samples.signals.store(samples.signals.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Whether the thread was on its way back from a system call.
#[cfg(target_arch = "x86_64")]
fn was_in_system_call(context: *mut libc::c_void) -> bool {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    // SAFETY: with SA_SIGINFO the third argument is the interrupted thread's ucontext_t.
    let next = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] } as usize;
    // At the start of a page the bytes before it may not be mapped.
    if next & 0xfff < SYSCALL.len() {
        return false;
    }
    let before = ptr::with_exposed_provenance::<[u8; 2]>(next - SYSCALL.len());
    // SAFETY: in the page of the instruction that runs next, which is mapped and, on x86-64, readable.
    unsafe { before.read() == SYSCALL }
}

#[cfg(not(target_arch = "x86_64"))]
fn was_in_system_call(_: *mut libc::c_void) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Runtime, spawn, turn};
    use ringcrawl_base::stage::Stage;

    fn burn(thread: &Thread, time: Duration) {
        let until = thread.cpu_time().expect("a clock") + time;
        while thread.cpu_time().expect("a clock") < until {
            std::hint::black_box((0..1_000).sum::<u64>());
        }
    }

    /// A thread sleeps in its runtime, works in stages and makes system calls; the samples equal what it used, and
    /// the runtime is not disturbed.
    #[test]
    fn stages_add_up_to_the_threads_cpu_time() {
        let thread = Thread::default();
        let (sampled, used) = std::thread::scope(|scope| {
            let (ready, is_ready) = std::sync::mpsc::channel();
            let (begin, begun) = std::sync::mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                let (begun, ready, thread) = (begun, ready, &thread);
                thread.announce();
                let _ = ready.send(());
                let _ = begun.recv();
                let before = thread.cpu_time().expect("a clock");
                Runtime::new(8).expect("io_uring").block_on(async {
                    let other = spawn(async {
                        for _ in 0..50 {
                            tokio::time::sleep(Duration::from_millis(2)).await;
                        }
                        7
                    });
                    for _ in 0..20 {
                        {
                            let _scan = stage::enter(Stage::Scan);
                            burn(thread, Duration::from_micros(9_700));
                            let _store = stage::enter(Stage::Store);
                            burn(thread, Duration::from_micros(1_300));
                        }
                        turn().await;
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    assert_eq!(other.await.expect("a task"), 7);
                });
                let used = thread.cpu_time().expect("a clock") - before;
                let _ = ready.send(());
                let _ = begun.recv();
                used
            });
            is_ready.recv().expect("a thread");
            let sampler = Sampler::start(&thread).expect("a sampler");
            begin.send(()).expect("a thread");
            is_ready.recv().expect("a thread");
            let sampled = sampler.sampled();
            drop(sampler);
            drop(begin);
            (sampled, worker.join().expect("a thread"))
        });
        let of = |stage: Stage| sampled.user[stage as usize] + sampled.kernel[stage as usize];
        let sum: Duration = Stage::ALL.iter().map(|stage| of(*stage)).sum();
        let near = |one: Duration, other: Duration| one.abs_diff(other) <= Duration::from_millis(12).max(other / 10);
        assert!(near(sum, used), "{sum:?} of {used:?}: {sampled:?}");
        // Seven to one, and not a multiple of the kernel's tick, so that few samples are enough.
        assert!(of(Stage::Scan) > of(Stage::Store), "{sampled:?}");
        assert!(sampled.signals > 5, "{sampled:?}");
    }

    #[test]
    fn a_thread_that_has_not_begun_or_has_ended_is_refused() {
        let thread = Thread::default();
        assert!(Sampler::start(&thread).is_err());
    }
}
