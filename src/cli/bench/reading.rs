//! A run's counters at one moment.
//!
//! Decides: everything is read from outside, from counters that the shards and the kernel keep anyway, so a reading
//! does not disturb the run. A figure is the difference of two readings.
//! Limits: the counters of a reading are some microseconds apart; user and system time are resolved to 10 ms.

use std::time::Instant;

use super::served::Served;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::latency::LatencySnapshot;
use ringcrawl_brain::stats::Totals;
use ringcrawl_crawler::boot;
use ringcrawl_crawler::control::Control;
use ringcrawl_ring::{Sampled, Sampler, SystemCalls, Thread};

/// Probes attached to the shards' threads for the duration of a run.
pub struct Probes {
    samplers: Vec<Sampler>,
    /// The counters, or why they are missing.
    system_calls: Result<Vec<SystemCalls>, String>,
}

/// All counters.
#[derive(Clone, Debug)]
pub struct Reading {
    /// When.
    pub at: Instant,
    /// Counters of all shards.
    pub totals: Totals,
    /// CPU time of the shards' threads, including those that read long responses.
    pub shards: Cpu,
    /// Time in which they were runnable but had no CPU.
    pub waiting: Duration,
    /// CPU time of the crawler's process, including the kernel's helpers.
    pub process: Duration,
    /// CPU time of the web.
    pub web: Duration,
    /// CPU time by stage, shard by shard; empty: not sampled.
    pub sampled: Vec<Sampled>,
    /// Times of the phases of fetches, all shards together.
    pub latencies: Vec<(&'static str, LatencySnapshot)>,
    /// System calls of the shards' threads, or why they are not known.
    pub system_calls: Result<u64, String>,
}

/// CPU time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cpu {
    /// Total.
    pub all: Duration,
    /// In user code, by the kernel's ticks.
    pub user: Duration,
    /// In the kernel, by its ticks.
    pub system: Duration,
}

impl Probes {
    /// Attaches to every shard's thread; all threads must have registered.
    pub fn attach(control: &Control, sampled: bool) -> Result<Probes, String> {
        let mut samplers = Vec::new();
        if sampled {
            for thread in control.shards().iter().flat_map(|handle| handle.threads()) {
                let sampler = Sampler::start(thread).map_err(|error| format!("--sampler on: {error}"))?;
                samplers.push(sampler);
            }
        }
        let system_calls =
            control.shards().iter().flat_map(|handle| handle.threads()).map(SystemCalls::start).collect();
        Ok(Probes { samplers, system_calls })
    }

    /// Reads all counters now.
    pub fn read(&self, control: &Control, served: &Served) -> Reading {
        let mut shards = Cpu::default();
        let mut waiting = Duration::ZERO;
        let mut latencies: Vec<(&'static str, LatencySnapshot)> = Vec::new();
        for handle in control.shards() {
            for thread in handle.threads() {
                let cpu = cpu_of(thread);
                shards.all += cpu.all;
                shards.user += cpu.user;
                shards.system += cpu.system;
                waiting += waiting_of(thread);
            }
            for (name, snapshot) in handle.latencies.snapshots() {
                match latencies.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, sum)) => sum.add(&snapshot),
                    None => latencies.push((name, snapshot)),
                }
            }
        }
        let system_calls = self.system_calls.as_ref().map_err(String::clone).and_then(|counters| {
            let counts: Option<Vec<u64>> = counters.iter().map(SystemCalls::count).collect();
            counts.map(|counts| counts.iter().sum()).ok_or_else(|| "the kernel's counters cannot be read".to_owned())
        });
        Reading {
            at: Instant::now(),
            totals: Totals::sum(&control.totals()),
            shards,
            waiting,
            process: boot::cpu_time(),
            web: served.cpu_time(),
            sampled: self.samplers.iter().map(Sampler::sampled).collect(),
            latencies,
            system_calls,
        }
    }
}

fn cpu_of(thread: &Thread) -> Cpu {
    let all = thread.cpu_time().unwrap_or_default();
    let stat = task_file(thread, "stat");
    // The name stands in brackets and may hold anything. Behind it, state is the first field and utime the twelfth.
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    let mut ticks = fields.split_ascii_whitespace().skip(11).map(|field| field.parse::<u64>().unwrap_or(0));
    let mut time = || Duration::from_millis(ticks.next().unwrap_or(0) * MILLIS_PER_TICK);
    let (user, system) = (time(), time());
    Cpu { all, user, system }
}

/// From `schedstat`: time on a CPU, time runnable without one, number of turns.
fn waiting_of(thread: &Thread) -> Duration {
    let text = task_file(thread, "schedstat");
    Duration::from_nanos(text.split_ascii_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0))
}

fn task_file(thread: &Thread, name: &str) -> String {
    let Some(tid) = thread.tid() else { return String::new() };
    std::fs::read_to_string(format!("/proc/self/task/{tid}/{name}")).unwrap_or_default()
}

/// USER_HZ is 100 on every Linux platform that ringcrawl supports.
const MILLIS_PER_TICK: u64 = 10;
