//! One run: starts the web, crawls it, stops it, and reads the counters twice.
//!
//! Decides: the crawl is the same as that of `crawl`, from boot to the last byte in a segment. Its counters are read
//! after the warm-up and again after the measured time; what happens before and after is not counted. Closed segments
//! are deleted, so that a long run needs no more disk than a short one.
//! Invariants: when `run` returns, however it does, everything it started is stopped and everything it wrote is
//! removed.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Instant;

use super::figures::{Figures, Machine};
use super::layout::Layout;
use super::measured::{Gauges, Measured};
use super::reading::{Probes, Reading};
use super::served::Served;
use super::workload::Setup;
use crate::cli::progress::Progress;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::shard::{BACKLOG_BYTES_MAX, Phase};
use ringcrawl_brain::stats::Totals;
use ringcrawl_config::Config;
use ringcrawl_crawler::boot::{self, Crawl, Order};

/// Why there are no figures.
#[derive(Debug)]
pub enum BenchError {
    /// The arguments ask for something impossible.
    Order(String),
    /// Another failure.
    Run(String),
}

/// A run to be made.
pub struct Run<'a> {
    /// The workload, and how it is crawled.
    pub setup: Setup,
    /// Its CPUs.
    pub layout: Layout,
    /// Where temporary files go.
    pub dir: &'a Path,
    /// Changes to the workload's configuration, `KEY=VALUE`.
    pub set: &'a [String],
    /// Whether stages are sampled.
    pub sampled: bool,
    /// Counts requests to end early.
    pub interrupts: Arc<AtomicUsize>,
}

impl Run<'_> {
    /// Runs it.
    pub fn run(self) -> Result<Figures, BenchError> {
        let folder = RunFolder::new(self.dir).map_err(BenchError::Order)?;
        let ca_file = folder.0.join("ca.pem");
        let served = Served::start(&self.setup, &self.layout.web, &ca_file).map_err(BenchError::Run)?;
        let config = self.config(&served, &ca_file).map_err(BenchError::Order)?;
        let seeds = self.setup.seeds(served.ready.http_port, served.ready.https_port).map_err(BenchError::Order)?;
        let order = Order {
            config: config.clone(),
            seeds: seeds.into_iter().map(Into::into).collect(),
            dir: folder.0.join("crawl"),
            new: true,
            ask_again: Default::default(),
            round: None,
            handed_on: Default::default(),
        };
        boot::forget_rss_bytes_max();
        let rss_bytes_before = boot::rss_bytes();
        let started = boot::start(order);
        let mut crawl = started.map_err(|error| {
            if error.is_order() { BenchError::Order(error.to_string()) } else { BenchError::Run(error.to_string()) }
        })?;
        let watched = self.watch(&mut crawl, &served, &config, &folder);
        // In either case, end the crawl before its files are removed.
        let rss_bytes = [rss_bytes_before, boot::rss_bytes(), boot::rss_bytes_max()];
        while !crawl.poll(Duration::ZERO, Phase::Abort) {
            std::thread::sleep(POLL);
        }
        crawl.finish().map_err(BenchError::Run)?;
        let (readings, warm_up, gauges, ended) = watched.map_err(BenchError::Run)?;
        let measured = Measured {
            setup: self.setup,
            layout: self.layout,
            ended,
            readings,
            warm_up,
            gauges,
            delays: [config.politeness.host_delay, config.politeness.ip_delay],
            rss_bytes,
            web: served.stop(),
        };
        Ok(measured.figures(Machine::this()))
    }

    fn config(&self, served: &Served, ca_file: &Path) -> Result<Config, String> {
        let made = self.setup.config(&self.layout, &served.ready.dns, ca_file);
        let mut config = made.map_err(|error| error.to_string())?;
        for pair in self.set {
            crate::cli::check_config::set(&mut config, pair).map_err(|error| error.to_string())?;
        }
        Ok(config)
    }

    /// Returns the two readings, the length of the warm-up, the gauges sampled in between, and why the run ended.
    fn watch(
        &self,
        crawl: &mut Crawl,
        served: &Served,
        config: &Config,
        folder: &RunFolder,
    ) -> Result<([Reading; 2], Duration, Gauges, &'static str), String> {
        let begun = Instant::now();
        while crawl.control().shards().iter().any(|handle| handle.threads().iter().any(|thread| thread.tid().is_none()))
        {
            if crawl.poll(begun.elapsed(), Phase::Run) || begun.elapsed() > BEGIN_MAX {
                return Err("the shards did not start".to_owned());
            }
            std::thread::sleep(POLL);
        }
        let probes = Probes::attach(crawl.control(), self.sampled)?;
        let shards = crawl.control().shards().len();
        let mut progress = Progress::new(shards, None, std::io::stderr().is_terminal());
        let mut first: Option<Reading> = None;
        let mut looks = Looks::default();
        let mut next_tick = begun;
        let ended = loop {
            if crawl.poll(begun.elapsed(), Phase::Run) {
                break Err("the crawl ended by itself".to_owned());
            }
            let totals = crawl.control().totals();
            let sum = Totals::sum(&totals);
            match &first {
                None if begun.elapsed() >= self.setup.warm_up => first = Some(probes.read(crawl.control(), served)),
                Some(first) if first.at.elapsed() >= self.setup.time => break Ok("time is up"),
                Some(_) => looks.look(&sum, config, shards),
                None => {}
            }
            if self.interrupts.load(Ordering::Relaxed) > 0 {
                break Ok("stopped by signal");
            }
            if Instant::now() >= next_tick {
                progress.tick(&sum, &totals, begun.elapsed(), [crawl.waits_for(), None]);
                folder.drop_closed_segments();
                next_tick = Instant::now() + TICK;
            }
            std::thread::sleep(POLL);
        };
        progress.finish();
        let last = probes.read(crawl.control(), served);
        let first = first.ok_or_else(|| "stopped during the warm-up: nothing was measured".to_owned());
        let (ended, first) = (ended?, first?);
        let warm_up = first.at.duration_since(begun);
        Ok(([first, last], warm_up, looks.gauges(), ended))
    }
}

/// Sums of gauges.
#[derive(Default)]
struct Looks {
    count: f64,
    sums: Gauges,
}

impl Looks {
    fn look(&mut self, sum: &Totals, config: &Config, shards: usize) {
        self.count += 1.0;
        self.sums.in_flight += sum.in_flight as f64;
        self.sums.in_flight_share += sum.in_flight as f64 / (config.fetch.in_flight_max * shards).max(1) as f64;
        self.sums.disk_behind += f64::from(u8::from(sum.disk_backlog_bytes > BACKLOG_BYTES_MAX * shards as u64));
    }

    fn gauges(&self) -> Gauges {
        let mean = |sum: f64| if self.count > 0.0 { sum / self.count } else { 0.0 };
        Gauges {
            in_flight: mean(self.sums.in_flight),
            in_flight_share: mean(self.sums.in_flight_share),
            disk_behind: mean(self.sums.disk_behind),
        }
    }
}

/// A folder of this run, removed on drop.
struct RunFolder(PathBuf);

impl RunFolder {
    fn new(dir: &Path) -> Result<RunFolder, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("ringcrawl-bench-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("--dir: {}: {error}", path.display()))?;
        Ok(RunFolder(path))
    }

    /// What cannot be deleted now is deleted next time, or with the folder.
    fn drop_closed_segments(&self) {
        let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        for shard in entries(&self.0.join("crawl")) {
            for file in entries(&shard.join("segments")) {
                let closed = file.extension().is_some_and(|extension| extension == "zst" || extension == "cdxj");
                if closed {
                    let _ = std::fs::remove_file(file);
                }
            }
        }
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const POLL: Duration = Duration::from_millis(25);
const TICK: Duration = Duration::from_millis(250);
/// Reading back an empty directory takes no longer than this.
const BEGIN_MAX: Duration = Duration::from_secs(30);
