//! The figures of a run: one object for programs.
//!
//! Decides: every figure covers the window between two readings unless it says otherwise. Pages per second and core
//! are given in wall time only when the cores were busy with them (`verdict`); pages per CPU second are always given.
//! Names are stable and carry their units. A value that cannot be computed is null.
//! Leaves to others: the arithmetic (`measured`), showing them (`table`).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::checks::Check;

/// For programs. Add, never rename.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Version of this object.
    pub format: u32,
    /// Version of the program.
    pub version: &'static str,
    /// The settings of the run.
    pub setting: Setting,
    /// The machine.
    pub machine: Machine,
    /// "time is over", or why earlier.
    pub ended: &'static str,
    /// Length of the warm-up.
    pub warm_up_seconds: f64,
    /// Length of the window.
    pub seconds: f64,
    /// Stored pages in the window.
    pub pages: u64,
    /// Stored pages per second.
    pub pages_per_second: f64,
    /// Stored pages per second and shard CPU; null unless the shards were the bottleneck.
    pub pages_per_second_per_core: Option<f64>,
    /// The limiting factor.
    pub bottleneck: &'static str,
    /// `bottleneck` explained for people.
    pub bottleneck_means: &'static str,
    /// Requests per second that the delays allow, for the hosts known and the addresses; null: no delays.
    pub ceiling_per_second: Option<f64>,
    /// Pages per CPU second of the shards' threads.
    pub pages_per_cpu_second: Option<f64>,
    /// CPU time per page, of the shards' threads.
    pub cpu_micros_per_page: CpuPerPage,
    /// CPU time by user of it.
    pub cpu_seconds: CpuSeconds,
    /// Shares of CPU time used.
    pub busy: Busy,
    /// Throughput per second.
    pub megabytes_per_second: Megabytes,
    /// CPU time of TLS, ciphers included, per handshake; null: none, or not sampled.
    pub tls_micros_per_handshake: Option<f64>,
    /// CPU time by stage; null: not sampled.
    pub stages: Option<Stages>,
    /// Percentiles of the phases of fetches; null: none in the window.
    pub latency_micros: BTreeMap<&'static str, Option<Percentiles>>,
    /// Memory of the crawler's process.
    pub memory: Memory,
    /// System calls of the shards' threads, per page; null: not counted.
    pub system_calls_per_page: Option<f64>,
    /// Why they are not counted.
    pub system_calls_missing: Option<String>,
    /// Operations passed to the kernel through the ring, per page.
    pub ring_operations_per_page: Option<f64>,
    /// Mean number of fetches in flight.
    pub in_flight_mean: f64,
    /// Properties of the pages.
    pub seen: Seen,
    /// Whether the run was the workload asked for.
    pub checks: Vec<Check>,
    /// Every counter of the shards (`stats::Totals`).
    pub counters: BTreeMap<&'static str, u64>,
    /// Failures that happened, by name; URLs that robots.txt forbids are not failures.
    pub failures: BTreeMap<&'static str, u64>,
    /// What the server saw over the whole run.
    pub web: Option<Value>,
}

/// The settings of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    /// Name of the workload.
    pub workload: &'static str,
    /// Number of shards.
    pub shards: u32,
    /// Their CPUs.
    pub cpus: Vec<usize>,
    /// CPUs of the web.
    pub web_cpus: Vec<usize>,
    /// Whether some CPU serves both.
    pub cpus_shared: bool,
    /// Sites of the web.
    pub sites: u32,
    /// Addresses of the web.
    pub addresses: u32,
    /// Whether delays are enforced.
    pub politeness: bool,
    /// Delay between two requests to a host.
    pub host_delay_ms: u64,
    /// Responses after which the server closes a connection; 0: never.
    pub requests_per_connection: u32,
    /// Whether TLS sessions may be resumed.
    pub resumption: bool,
    /// Whether stages are sampled.
    pub sampler: bool,
}

/// The machine of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Model of the CPU.
    pub cpu: String,
    /// CPUs that the process may use.
    pub cpus: usize,
    /// Version of the kernel.
    pub kernel: String,
    /// Memory.
    pub memory_bytes: u64,
}

/// CPU time per page.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CpuPerPage {
    /// Total.
    pub all: Option<f64>,
    /// In user code.
    pub user: Option<f64>,
    /// In the kernel.
    pub system: Option<f64>,
}

/// CPU time by user of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CpuSeconds {
    /// The shards' threads.
    pub shards: f64,
    /// The rest of the crawler's process: housekeeping, and the kernel's threads for the ring's files.
    pub crawler_besides: f64,
    /// The web's process.
    pub web: f64,
}

/// Shares of CPU time used, from 0 to 1.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Busy {
    /// The shards' threads.
    pub shards: f64,
    /// The shards' threads, runnable but without a CPU.
    pub shards_waiting: f64,
    /// The web.
    pub web: f64,
}

/// Decimal megabytes per second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Megabytes {
    /// As received.
    pub wire: f64,
    /// After decoding.
    pub decoded: f64,
    /// Written to segments.
    pub stored: f64,
}

/// CPU time by stage.
#[derive(Clone, Debug, Serialize)]
pub struct Stages {
    /// The stages' sum, as a share of the CPU time that the shards' threads used: 1 when no moment was missed.
    pub sum_of_thread_cpu: f64,
    /// Number of samples taken.
    pub looks: u64,
    /// By name.
    pub by_stage: BTreeMap<&'static str, StageCpu>,
}

/// CPU time of one stage.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct StageCpu {
    /// Per page.
    pub micros_per_page: Option<f64>,
    /// Share of all stages, from 0 to 1.
    pub share: f64,
    /// Share of this stage spent in the kernel, from 0 to 1; null: not known on this machine.
    pub kernel_share: Option<f64>,
}

/// Percentiles of an HDR histogram, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Percentiles {
    pub count: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub max: u64,
}

/// Resident memory of the crawler's process.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Memory {
    /// Before the crawl.
    pub rss_bytes_before: u64,
    /// At the end of the window.
    pub rss_bytes: u64,
    /// Maximum since the start of the crawl.
    pub rss_bytes_max: u64,
    /// Connections open at the end of the window, in use or idle.
    pub connections_open: u64,
    /// What the crawl added, per open connection; this includes queues and the set of URLs seen.
    pub rss_bytes_per_connection: Option<f64>,
}

/// Properties of the pages.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Seen {
    /// Decoded bytes per page body.
    pub body_bytes_mean: Option<f64>,
    /// Links per page.
    pub links_mean: Option<f64>,
    /// Share of pages that came compressed.
    pub coded_share: Option<f64>,
    /// Decoded bytes per byte on the wire.
    pub decoded_by_wire: Option<f64>,
    /// Decoded bytes per stored byte.
    pub decoded_by_stored: Option<f64>,
    /// Responses per connection.
    pub responses_per_connection: Option<f64>,
    /// Responses per TLS handshake.
    pub responses_per_handshake: Option<f64>,
    /// Share of handshakes that resumed a session.
    pub resumed_share: Option<f64>,
    /// Share of full handshakes whose certificate chain was remembered as verified.
    pub chains_recognized_share: Option<f64>,
}

impl Machine {
    /// This machine.
    pub fn this() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim_start_matches([' ', '\t', ':']).trim().to_owned()
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let memory_kib: u64 = memory.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        Machine {
            cpu: field(&read("/proc/cpuinfo"), "model name"),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_bytes: memory_kib * 1024,
        }
    }
}
