//! What a run came to, from two readings: one object for programs.
//!
//! Decides: everything is of the window between the readings, but for what says otherwise. Pages a second of a core are
//! given as wall time only when the cores were busy with them (`verdict`); pages of a CPU second always. Names are
//! stable and carry their units; what cannot be said is null.
//! Invariants: nothing is measured here.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::checks::Check;
use super::layout::Layout;
use super::reading::Reading;
use super::verdict::{Bottleneck, Load};
use super::workload::Plan;
use crate::latency::Look;
use crate::outcome::Failure;
use crate::ring::{Sampled, Sampler};
use crate::stage::Stage;

/// A run that was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What was run.
    pub plan: Plan,
    /// On which CPUs.
    pub layout: Layout,
    /// How it ended.
    pub ended: &'static str,
    /// At the end of the warm-up, and at the end.
    pub readings: [Reading; 2],
    /// How long the warm-up was.
    pub warm_up: Duration,
    /// Gauges that were looked at in between.
    pub gauges: Gauges,
    /// Delays between two requests to a host and to an address.
    pub delays: [Duration; 2],
    /// Resident memory before the crawl, at the end, and at its most, in bytes.
    pub rss_bytes: [u64; 3],
    /// What the server saw, of the whole run.
    pub web: Option<Value>,
}

/// Means over the looks of a window.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Gauges {
    /// Fetches under way.
    pub in_flight: f64,
    /// Of those, how many may be.
    pub in_flight_share: f64,
    /// Share of looks at which the disk held fetches back.
    pub disk_behind: f64,
}

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
}

impl Measured {
    /// The numbers, with the checks that `plan` calls for.
    pub fn figures(&self, machine: Machine) -> Figures {
        let [early, late] = &self.readings;
        let counted = late.totals.since(&early.totals);
        let seconds = late.at.duration_since(early.at).as_secs_f64();
        let pages = counted.pages as f64;
        let spent = |now: Duration, then: Duration| now.saturating_sub(then).as_secs_f64();
        let shards = spent(late.shards.all, early.shards.all);
        let load = self.load(seconds, shards);
        let bottleneck = load.bottleneck();
        let cores = self.layout.shards.len() as f64;
        let (user, system) =
            (spent(late.shards.user, early.shards.user), spent(late.shards.system, early.shards.system));
        // The sum is exact, the parts are ticks: they say how it is divided.
        let part = |part: f64| ratio(shards * part * 1e6, pages * (user + system));
        let web = spent(late.web, early.web);
        let megabytes = |bytes: u64| ratio(bytes as f64 / 1e6, seconds).unwrap_or(0.0);
        let seen = Seen {
            body_bytes_mean: ratio(counted.bytes_decoded as f64, pages),
            links_mean: ratio(counted.links as f64, pages),
            coded_share: ratio(counted.coded as f64, pages),
            decoded_by_wire: ratio(counted.bytes_decoded as f64, counted.bytes_wire as f64),
            decoded_by_stored: ratio(counted.bytes_decoded as f64, counted.bytes_stored as f64),
            responses_per_connection: ratio(counted.responses as f64, counted.connections as f64),
            responses_per_handshake: ratio(counted.responses as f64, counted.handshakes as f64),
            resumed_share: ratio(counted.resumed as f64, counted.handshakes as f64),
        };
        let system_calls = late.system_calls.clone().and_then(|late| Ok(late - early.system_calls.clone()?));
        // What robots.txt forbids is no failure; the counters have it.
        let failures = counted.failures_by_name().filter(|(failure, _)| *failure != Failure::RobotsDenied);
        let [rss_bytes_before, rss_bytes, rss_bytes_max] = self.rss_bytes;
        let mut figures = Figures {
            format: 1,
            version: env!("CARGO_PKG_VERSION"),
            setting: self.setting(),
            machine,
            ended: self.ended,
            warm_up_seconds: self.warm_up.as_secs_f64(),
            seconds,
            pages: counted.pages,
            pages_per_second: ratio(pages, seconds).unwrap_or(0.0),
            pages_per_second_per_core: ratio(pages, seconds * cores).filter(|_| bottleneck == Bottleneck::Shards),
            bottleneck: bottleneck.as_str(),
            bottleneck_means: bottleneck.explain(),
            ceiling_per_second: self.ceiling(late.totals.hosts),
            pages_per_cpu_second: ratio(pages, shards),
            cpu_micros_per_page: CpuPerPage { all: ratio(shards * 1e6, pages), user: part(user), system: part(system) },
            cpu_seconds: CpuSeconds {
                shards,
                crawler_besides: (spent(late.process, early.process) - shards).max(0.0),
                web,
            },
            busy: Busy { shards: load.shards_busy, shards_waiting: load.shards_waiting, web: load.web_busy },
            megabytes_per_second: Megabytes {
                wire: megabytes(counted.bytes_wire),
                decoded: megabytes(counted.bytes_decoded),
                stored: megabytes(counted.bytes_stored),
            },
            stages: stages(&early.sampled, &late.sampled, shards, pages),
            latency_micros: latencies(&early.latencies, &late.latencies),
            memory: Memory {
                rss_bytes_before,
                rss_bytes,
                rss_bytes_max,
                connections_open: counted.connections_open,
                rss_bytes_per_connection: ratio(
                    rss_bytes.saturating_sub(rss_bytes_before) as f64,
                    counted.connections_open as f64,
                ),
            },
            system_calls_per_page: system_calls.as_ref().ok().and_then(|calls| ratio(*calls as f64, pages)),
            system_calls_missing: system_calls.err(),
            ring_operations_per_page: ratio(counted.ring_operations as f64, pages),
            in_flight_mean: self.gauges.in_flight,
            seen,
            checks: Vec::new(),
            counters: counted.named().collect(),
            failures: failures.map(|(failure, count)| (failure.as_str(), count)).collect(),
            web: self.web.clone(),
        };
        figures.checks = super::checks::of(&self.plan, &figures);
        figures
    }

    fn load(&self, seconds: f64, shards: f64) -> Load {
        let [early, late] = &self.readings;
        let spent = |now: Duration, then: Duration| now.saturating_sub(then).as_secs_f64();
        let cores = seconds * self.layout.shards.len() as f64;
        let waiting = spent(late.waiting, early.waiting);
        Load {
            shards_busy: ratio(shards, cores).unwrap_or(0.0),
            shards_waiting: ratio(waiting, cores).unwrap_or(0.0),
            web_busy: ratio(spent(late.web, early.web), seconds * self.layout.web.len() as f64).unwrap_or(0.0),
            disk_behind: self.gauges.disk_behind,
            in_flight: self.gauges.in_flight_share,
            queued: late.totals.queued,
            polite: self.plan.polite,
        }
    }

    fn ceiling(&self, hosts: u64) -> Option<f64> {
        let [host_delay, ip_delay] = self.delays;
        let by_hosts = ratio(hosts as f64, host_delay.as_secs_f64());
        let by_addresses = ratio(f64::from(self.plan.model.addresses), ip_delay.as_secs_f64());
        [by_hosts, by_addresses].into_iter().flatten().reduce(f64::min)
    }

    fn setting(&self) -> Setting {
        let (plan, layout) = (&self.plan, &self.layout);
        Setting {
            workload: plan.workload.as_str(),
            shards: layout.count,
            cpus: layout.shards.clone(),
            web_cpus: layout.web.clone(),
            cpus_shared: layout.is_shared(),
            sites: plan.model.sites,
            addresses: plan.model.addresses,
            politeness: plan.polite,
            host_delay_ms: u64::try_from(self.delays[0].as_millis()).unwrap_or(u64::MAX),
            requests_per_connection: plan.requests_per_connection,
            resumption: plan.resumption,
            sampler: self.readings.iter().all(|reading| !reading.sampled.is_empty()),
        }
    }
}

fn stages(early: &[Sampled], late: &[Sampled], thread_cpu: f64, pages: f64) -> Option<Stages> {
    let mut by_stage = BTreeMap::new();
    let (mut sum, mut looks) = (0.0, 0);
    for stage in Stage::ALL {
        let (mut all, mut kernel) = (0.0, 0.0);
        for (late, early) in late.iter().zip(early) {
            let of = |part: &[Duration]| part.get(*stage as usize).copied().unwrap_or_default();
            let spent = |late: &[Duration], early: &[Duration]| of(late).saturating_sub(of(early)).as_secs_f64();
            let in_kernel = spent(&late.kernel, &early.kernel);
            kernel += in_kernel;
            all += in_kernel + spent(&late.user, &early.user);
        }
        sum += all;
        by_stage.insert(stage.as_str(), (all, kernel));
    }
    for (late, early) in late.iter().zip(early) {
        looks += late.signals - early.signals;
    }
    let by_stage = by_stage.into_iter().map(|(name, (all, kernel))| {
        let kernel_share = ratio(kernel, all).filter(|_| Sampler::KNOWS_KERNEL);
        let cpu =
            StageCpu { micros_per_page: ratio(all * 1e6, pages), share: ratio(all, sum).unwrap_or(0.0), kernel_share };
        (name, cpu)
    });
    let by_stage = by_stage.collect();
    (!late.is_empty()).then(|| Stages { sum_of_thread_cpu: ratio(sum, thread_cpu).unwrap_or(0.0), looks, by_stage })
}

fn latencies(
    early: &[(&'static str, Look)],
    late: &[(&'static str, Look)],
) -> BTreeMap<&'static str, Option<Percentiles>> {
    let between = late.iter().zip(early).map(|((name, late), (_, early))| {
        let percentiles = late.since(early).histogram().map(|histogram| Percentiles {
            count: histogram.len(),
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            p99_9: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        });
        (*name, percentiles)
    });
    between.collect()
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

/// `part` by `whole`; `None` when that says nothing.
pub(super) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole).filter(|ratio| ratio.is_finite())
}
