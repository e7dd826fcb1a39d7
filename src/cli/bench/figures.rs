//! The figures of a run: one object for programs.
//!
//! Decides: everything is of the window between two readings, but for what says otherwise. Pages a second of a core are
//! given as wall time only when the cores were busy with them (`verdict`); pages of a CPU second always. Names are
//! stable and carry their units; what cannot be said is null.
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
    /// Of the program.
    pub version: &'static str,
    /// What was asked for.
    pub setting: Setting,
    /// Where it ran.
    pub machine: Machine,
    /// "time is over", or why earlier.
    pub ended: &'static str,
    /// Length of the warm-up.
    pub warm_up_seconds: f64,
    /// Length of the window.
    pub seconds: f64,
    /// Stored pages in the window.
    pub pages: u64,
    /// The same a second.
    pub pages_per_second: f64,
    /// The same a second and shard CPU; null unless the shards were the bottleneck.
    pub pages_per_second_per_core: Option<f64>,
    /// What was the limit.
    pub bottleneck: &'static str,
    /// The same for people.
    pub bottleneck_means: &'static str,
    /// Requests a second that the delays allow, for the hosts known and the addresses; null: no delays.
    pub ceiling_per_second: Option<f64>,
    /// Pages by CPU seconds of the shards' threads.
    pub pages_per_cpu_second: Option<f64>,
    /// CPU time of a page, of the shards' threads.
    pub cpu_micros_per_page: CpuPerPage,
    /// CPU time by who used it.
    pub cpu_seconds: CpuSeconds,
    /// Shares of the CPUs that each had.
    pub busy: Busy,
    /// A second.
    pub megabytes_per_second: Megabytes,
    /// CPU time of TLS, ciphers included, by handshakes; null: none, or not sampled.
    pub tls_micros_per_handshake: Option<f64>,
    /// CPU time by stage; null: not sampled.
    pub stages: Option<Stages>,
    /// Percentiles of the parts of fetches; null: none in the window.
    pub latency_micros: BTreeMap<&'static str, Option<Percentiles>>,
    /// Of the crawler's process.
    pub memory: Memory,
    /// Of the shards' threads; null: not counted.
    pub system_calls_per_page: Option<f64>,
    /// Why they are not counted.
    pub system_calls_missing: Option<String>,
    /// Operations given to the kernel by the ring.
    pub ring_operations_per_page: Option<f64>,
    /// Fetches under way, in the mean.
    pub in_flight_mean: f64,
    /// What the pages were like.
    pub seen: Seen,
    /// Whether that is the workload that was asked for.
    pub checks: Vec<Check>,
    /// Every counter of the shards (`stats::Totals`).
    pub counters: BTreeMap<&'static str, u64>,
    /// Failures that happened, by name; what robots.txt forbids is none.
    pub failures: BTreeMap<&'static str, u64>,
    /// What the server saw, of the whole run.
    pub web: Option<Value>,
}

/// What was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    /// Its name.
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
    /// Whether delays are kept.
    pub politeness: bool,
    /// Between two requests to a host.
    pub host_delay_ms: u64,
    /// Responses after which the server closes a connection; 0: never.
    pub requests_per_connection: u32,
    /// Whether TLS sessions may be resumed.
    pub resumption: bool,
    /// Whether stages are sampled.
    pub sampler: bool,
}

/// Where it ran.
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

/// CPU time of a page.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CpuPerPage {
    /// All of it.
    pub all: Option<f64>,
    /// In user code.
    pub user: Option<f64>,
    /// In the kernel.
    pub system: Option<f64>,
}

/// CPU time by who used it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CpuSeconds {
    /// The shards' threads.
    pub shards: f64,
    /// All else in the crawler's process: housekeeping, and the kernel's threads for the ring's files.
    pub crawler_besides: f64,
    /// The web's process.
    pub web: f64,
}

/// Shares of the CPUs that each had, from 0 to 1.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Busy {
    /// The shards' threads.
    pub shards: f64,
    /// The shards' threads, ready and without a CPU.
    pub shards_waiting: f64,
    /// The web.
    pub web: f64,
}

/// Decimal megabytes a second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Megabytes {
    /// As it came.
    pub wire: f64,
    /// After decoding.
    pub decoded: f64,
    /// In segments.
    pub stored: f64,
}

/// CPU time by stage.
#[derive(Clone, Debug, Serialize)]
pub struct Stages {
    /// All stages, of the CPU time that the shards' threads used: 1 when every moment was seen.
    pub sum_of_thread_cpu: f64,
    /// How often threads were looked at.
    pub looks: u64,
    /// By name.
    pub by_stage: BTreeMap<&'static str, StageCpu>,
}

/// CPU time of one stage.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct StageCpu {
    /// Of a page.
    pub micros_per_page: Option<f64>,
    /// Of all stages, from 0 to 1.
    pub share: f64,
    /// Of it in the kernel, from 0 to 1; null: not known on this machine.
    pub kernel_share: Option<f64>,
}

/// Of an HDR histogram, in microseconds.
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
    /// Most, from the crawl's beginning.
    pub rss_bytes_max: u64,
    /// Connections open at the end of the window, in use or kept.
    pub connections_open: u64,
    /// What the crawl added, by open connections: queues and the set of URLs seen are in it, too.
    pub rss_bytes_per_connection: Option<f64>,
}

/// What the pages were like.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Seen {
    /// Bytes of a page's body, decoded.
    pub body_bytes_mean: Option<f64>,
    /// Links of a page.
    pub links_mean: Option<f64>,
    /// Pages that came compressed.
    pub coded_share: Option<f64>,
    /// Decoded bytes by bytes on the wire.
    pub decoded_by_wire: Option<f64>,
    /// Decoded bytes by stored ones.
    pub decoded_by_stored: Option<f64>,
    /// Responses of a connection.
    pub responses_per_connection: Option<f64>,
    /// Responses of a TLS handshake.
    pub responses_per_handshake: Option<f64>,
    /// Handshakes that resumed a session.
    pub resumed_share: Option<f64>,
    /// Handshakes that did not, with a chain of certificates that was remembered as verified.
    pub chains_recognized_share: Option<f64>,
}

impl Machine {
    /// This one.
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
