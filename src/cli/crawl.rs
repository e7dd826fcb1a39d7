//! `ringcrawl crawl`: a crawl in the foreground.
//!
//! Decides: what the arguments mean, in which order settings win (file, then `--set`, then the named options), and
//! what an interrupt does: the first drains (fetches under way end, everything is written), the second leaves the
//! fetches under way, a third ends the process as the system does it.
//! Exit codes: 0 the crawl ended or was drained; 1 the system or the disk failed; 2 an operator's mistake.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::boot::{self, BootError, Crawl, Order};
use crate::config::Config;
use crate::shard::Phase;
use crate::stats::Totals;

use super::check_config;
use super::progress::Progress;
use super::summary::Summary;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct CrawlArguments {
    /// Where to begin; none are needed to resume.
    #[arg(value_name = "SEED")]
    pub seeds: Vec<String>,
    /// The crawl's directory: a new one, or one to be resumed.
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Configuration file (TOML).
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A file of seeds, one a line, `#` begins a comment; `-` is standard input. May be given several times.
    #[arg(long = "seeds", value_name = "FILE")]
    pub seed_files: Vec<PathBuf>,
    /// Override one key of the configuration; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// CPUs of the shards, such as 1-7 (crawl.cpus).
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Number of shards (crawl.shards); one per CPU when not given.
    #[arg(long, value_name = "N")]
    pub shards: Option<u32>,
    /// End after this many pages (crawl.pages_max).
    #[arg(long, value_name = "N")]
    pub pages_max: Option<u64>,
    /// End after this time, such as 10m (crawl.time_max).
    #[arg(long, value_name = "TIME")]
    pub time_max: Option<String>,
    /// Refuse to resume: the directory must hold no crawl.
    #[arg(long)]
    pub new: bool,
    /// Write the summary as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Runs it.
pub fn run(arguments: CrawlArguments) -> ExitCode {
    match order(&arguments) {
        Ok(order) => match drive(order) {
            Ok(outcome) => outcome.report(arguments.json.as_deref()),
            Err(error) => {
                eprintln!("ringcrawl: {error}");
                ExitCode::from(if error.is_order() { 2 } else { 1 })
            }
        },
        Err(complaints) => {
            complaints.iter().for_each(|complaint| eprintln!("ringcrawl: {complaint}"));
            ExitCode::from(2)
        }
    }
}

fn order(arguments: &CrawlArguments) -> Result<Order, Vec<String>> {
    let texts = |errors: Vec<crate::config::ConfigError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut config = match &arguments.config {
        Some(file) => Config::load(file).map_err(texts)?,
        None => Config::default(),
    };
    let set_pair = |pair: &String| check_config::set(&mut config, pair).err().map(|error| error.to_string());
    let mut complaints: Vec<String> = arguments.set.iter().filter_map(set_pair).collect();
    let mut set = |key: &str, value: &str| {
        if let Err(error) = config.set(key, value) {
            complaints.push(error.to_string());
        }
    };
    if let Some(cpus) = &arguments.cpus {
        set("crawl.cpus", cpus);
    }
    if let Some(shards) = arguments.shards {
        set("crawl.shards", &shards.to_string());
    }
    if let Some(pages_max) = arguments.pages_max {
        set("crawl.pages_max", &pages_max.to_string());
    }
    if let Some(time_max) = &arguments.time_max {
        set("crawl.time_max", time_max);
    }
    let seeds = boot::read_seeds(&arguments.seeds, &arguments.seed_files)
        .map_err(|errors| complaints.extend(errors.iter().map(ToString::to_string)))
        .unwrap_or_default();
    if !complaints.is_empty() {
        return Err(complaints);
    }
    Ok(Order { config, seeds, dir: arguments.dir.clone(), new: arguments.new })
}

/// How a crawl in the foreground ended.
#[derive(Debug)]
pub struct Ended {
    /// The numbers.
    pub summary: Summary,
    /// What broke, if anything did.
    pub failure: Option<String>,
}

impl Ended {
    fn report(self, json: Option<&std::path::Path>) -> ExitCode {
        eprint!("{}", self.summary.human());
        let mut code = ExitCode::SUCCESS;
        if let Some(path) = json {
            let text = serde_json::to_string_pretty(&self.summary.json()).unwrap_or_default();
            let written = if path == std::path::Path::new("-") {
                println!("{text}");
                Ok(())
            } else {
                std::fs::write(path, text + "\n")
            };
            if let Err(error) = written {
                eprintln!("ringcrawl: {}: {error}", path.display());
                code = ExitCode::FAILURE;
            }
        }
        if let Some(failure) = self.failure {
            eprintln!("ringcrawl: {failure}");
            eprintln!("ringcrawl: the crawl stopped; what was fetched is kept, and the same command goes on with it");
            code = ExitCode::FAILURE;
        }
        code
    }
}

/// Runs a crawl to its end, with progress on standard error.
pub fn drive(order: Order) -> Result<Ended, BootError> {
    let pages_max = order.config.crawl.pages_max;
    let interrupts = interrupts().map_err(|error| BootError::System(error.to_string()))?;
    let mut crawl = Crawl::start(order)?;
    let shards = crawl.control().shards().len();
    let mut progress = Progress::new(shards, (pages_max > 0).then_some(pages_max), std::io::stderr().is_terminal());
    let begun = Instant::now();
    let mut next_tick = begun;
    let mut phase = Phase::Run;
    while !crawl.poll(begun.elapsed(), wanted(&interrupts)) {
        for note in crawl.control().take_notes() {
            progress.println(&note);
        }
        if crawl.control().phase() > phase {
            phase = crawl.control().phase();
            if phase == Phase::Drain {
                progress.println("draining: fetches in flight end and everything is written; once more stops at once");
            }
        }
        if Instant::now() >= next_tick {
            let totals = crawl.control().totals();
            progress.tick(&Totals::sum(&totals), &totals, begun.elapsed());
            next_tick = Instant::now() + TICK;
        }
        std::thread::sleep(POLL);
    }
    let ended = crawl.ended();
    let elapsed = begun.elapsed();
    progress.finish();
    for note in crawl.control().take_notes() {
        eprintln!("{note}");
    }
    let totals = Totals::sum(&crawl.control().totals());
    let failure = crawl.finish().err();
    let summary = Summary {
        ended: if failure.is_some() { "failed".to_owned() } else { ended.to_owned() },
        totals,
        shards,
        elapsed,
        rss_bytes_max: Some(boot::rss_bytes_max()),
        cpu_time: Some(boot::cpu_time()),
    };
    Ok(Ended { summary, failure })
}

/// What the operator wants, by so many interrupts.
pub(super) fn wanted(interrupts: &AtomicUsize) -> Phase {
    match interrupts.load(Ordering::Relaxed) {
        0 => Phase::Run,
        1 => Phase::Drain,
        _ => Phase::Abort,
    }
}

/// Counts SIGINT and SIGTERM; the third is left to the system's own action.
pub(super) fn interrupts() -> std::io::Result<Arc<AtomicUsize>> {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    let mut signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if seen.fetch_add(1, Ordering::Relaxed) >= 2 {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    })?;
    Ok(count)
}

const POLL: Duration = Duration::from_millis(25);
const TICK: Duration = Duration::from_millis(100);
