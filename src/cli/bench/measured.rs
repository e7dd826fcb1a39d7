//! Computes a run's figures from two readings.
//!
//! Invariants: this module measures nothing; a figure is the difference of two readings, or a gauge read in between.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::figures::{
    Busy, CpuPerPage, CpuSeconds, Figures, Machine, Megabytes, Memory, Percentiles, Seen, Setting, StageCpu, Stages,
};
use super::layout::Layout;
use super::reading::Reading;
use super::verdict::{Bottleneck, Load};
use super::workload::Setup;
use crate::cli::summary::ratio;
use ringcrawl_base::stage::Stage;
use ringcrawl_brain::latency::LatencySnapshot;
use ringcrawl_ring::{Sampled, Sampler};

/// A measured run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Its setup.
    pub setup: Setup,
    /// Its CPUs.
    pub layout: Layout,
    /// How it ended.
    pub ended: &'static str,
    /// Readings at the end of the warm-up and at the end of the run.
    pub readings: [Reading; 2],
    /// Length of the warm-up.
    pub warm_up: Duration,
    /// Gauges sampled in between.
    pub gauges: Gauges,
    /// Delays between two requests to a host and to an address.
    pub delays: [Duration; 2],
    /// Resident memory in bytes before the crawl, at the end, and at its peak.
    pub rss_bytes: [u64; 3],
    /// What the server saw over the whole run.
    pub web: Option<Value>,
}

/// Means over the samples of a window.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Gauges {
    /// Fetches in flight.
    pub in_flight: f64,
    /// The same as a share of the limit.
    pub in_flight_share: f64,
    /// Share of samples at which the disk held fetches back.
    pub disk_behind: f64,
}

impl Measured {
    /// The figures, with the checks that `setup` requires.
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
        // The sum is exact. The parts are counted in ticks and only give its proportions.
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
            chains_recognized_share: ratio(
                counted.chains_recognized as f64,
                counted.handshakes.saturating_sub(counted.resumed) as f64,
            ),
        };
        let system_calls = late.system_calls.clone().and_then(|late| Ok(late - early.system_calls.clone()?));
        let failures = counted.failures_by_name();
        let [rss_bytes_before, rss_bytes, rss_bytes_max] = self.rss_bytes;
        let stages = stages(&early.sampled, &late.sampled, shards, pages);
        let tls = stages.as_ref().and_then(|stages| stages.by_stage.get(Stage::Tls.as_str())?.micros_per_page);
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
            tls_micros_per_handshake: tls.and_then(|micros| ratio(micros * pages, counted.handshakes as f64)),
            stages,
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
        figures.checks = super::checks::of(&self.setup, &figures);
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
            polite: self.setup.polite,
        }
    }

    fn ceiling(&self, hosts: u64) -> Option<f64> {
        let [host_delay, ip_delay] = self.delays;
        let by_hosts = ratio(hosts as f64, host_delay.as_secs_f64());
        let by_addresses = ratio(f64::from(self.setup.model.addresses), ip_delay.as_secs_f64());
        [by_hosts, by_addresses].into_iter().flatten().reduce(f64::min)
    }

    fn setting(&self) -> Setting {
        let (setup, layout) = (&self.setup, &self.layout);
        Setting {
            workload: setup.workload.as_str(),
            shards: layout.count,
            cpus: layout.shards.clone(),
            web_cpus: layout.web.clone(),
            cpus_shared: layout.is_shared(),
            sites: setup.model.sites,
            addresses: setup.model.addresses,
            politeness: setup.polite,
            host_delay_ms: u64::try_from(self.delays[0].as_millis()).unwrap_or(u64::MAX),
            requests_per_connection: setup.requests_per_connection,
            resumption: setup.resumption,
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
    early: &[(&'static str, LatencySnapshot)],
    late: &[(&'static str, LatencySnapshot)],
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
