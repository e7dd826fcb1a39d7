//! `ringcrawl crawl`: a crawl in the foreground.
//!
//! Decides: what the arguments mean, in which order settings win, and what an interrupt does. The base is the file,
//! or without one the settings that the directory kept from the last run. `--set` overrides it, and the named options
//! override both. The first interrupt drains (fetches in flight end, everything is written). The second abandons the
//! fetches in flight. The third ends the process by the system's default action.
//! The rounds of a crawl in rounds (`rounds`) run one after another, and an interrupt applies to the whole crawl.
//! A hangup drains and never does more, since shell and kernel may each send one when a connection is lost; under
//! `nohup` it does nothing. SIGUSR1 rereads the files of the scope. SIGHUP does the same if it cannot come from a
//! lost terminal, because the process has none, as under systemd, and if there are such files.
//! Exit codes: 0 the crawl ended or was drained; 1 the system or the disk failed; 2 an operator's mistake; 3 the
//! crawl ended and no seed gave a page (`seed_ends`).

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ringcrawl_brain::log::AskAgain;
use ringcrawl_brain::shard::Phase;
use ringcrawl_brain::stats::Totals;
use ringcrawl_config::{Config, ConfigError};
use ringcrawl_crawler::boot::{self, BootError, Crawl, DirError, Order, RoundEnd, ScopeFiles, SeedError, SeedsRead};
use ringcrawl_crawler::control::Control;
use ringcrawl_ring as ring;

use super::causes::{CauseLines, Causes};
use super::check_config;
use super::output::{self, tell};
use super::progress::Progress;
use super::rounds::{self, RoundBefore};
use super::signals::{self, Hangup, Signals};
use super::summary::Summary;
use super::{DONE, FAILED, MISTAKE, json, seed_ends};

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct CrawlArguments {
    /// Where to begin; none are needed to resume.
    #[arg(value_name = "SEED")]
    pub seeds: Vec<String>,
    /// The crawl's directory: a new one, or one to be resumed.
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Configuration file (TOML); without it a crawl is resumed with the settings of its last run.
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A file of seeds, one a line; `#` begins a comment at the start of a line or behind a space; `-` is standard input.
    /// May be given several times.
    #[arg(long = "seeds", value_name = "FILE")]
    pub seed_files: Vec<PathBuf>,
    /// Override one key of the configuration; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// CPUs of the shards, such as 1-7 (crawl.cpus).
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub cpus: Option<String>,
    /// Number of shards (crawl.shards); one per CPU when not given.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub shards: Option<String>,
    /// Number of rounds: links that leave one are seeds of the next (crawl.rounds).
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub rounds: Option<String>,
    /// End after this many pages (crawl.pages_max).
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub pages_max: Option<String>,
    /// End after this time, such as 10m (crawl.time_max).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub time_max: Option<String>,
    /// Refuse to resume: the directory must hold no crawl.
    #[arg(long)]
    pub new: bool,
    /// Retry URLs that failed in earlier runs, except those that robots.txt forbids. A response is not a failure,
    /// whatever its status.
    #[arg(long, conflicts_with = "new")]
    pub retry_failed: bool,
    /// Fetch finished URLs again: status=401,5xx, cause=NAME (as `urls` shows it) or prefix=URL, each also a list with
    /// commas. May be given several times, for URLs of any of them.
    #[arg(long, value_name = "CHOICE", conflicts_with = "new")]
    pub retry: Vec<String>,
    /// Print only errors, warnings and answers to signals: no progress, notes or summary.
    #[arg(long, short)]
    pub quiet: bool,
    /// Write the summary as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Runs it.
pub fn run(arguments: CrawlArguments) -> ExitCode {
    let refuse = |error: BootError| {
        error.to_string().lines().for_each(|line| tell!("ringcrawl: {line}"));
        ExitCode::from(if error.is_order() { MISTAKE } else { FAILED })
    };
    let kept = match kept_config(&arguments) {
        Ok(kept) => kept,
        Err(error) => return refuse(error.into()),
    };
    let has_kept = kept.is_some();
    match order(&arguments, kept) {
        Ok(order) => {
            if has_kept && !arguments.quiet {
                tell!("continuing with the settings in {}", arguments.dir.join("config.toml").display());
            }
            match drive(order, arguments.quiet) {
                Ok(outcome) => outcome.report(&arguments),
                Err(error) => refuse(error),
            }
        }
        Err(complaints) => {
            complaints.iter().for_each(|complaint| tell!("ringcrawl: {complaint}"));
            ExitCode::from(MISTAKE)
        }
    }
}

/// The settings of the last run, if they apply to this one.
fn kept_config(arguments: &CrawlArguments) -> Result<Option<Config>, DirError> {
    if arguments.config.is_some() || arguments.new {
        return Ok(None);
    }
    boot::kept_config(&arguments.dir)
}

fn order(arguments: &CrawlArguments, kept: Option<Config>) -> Result<Order, Vec<String>> {
    let texts = |errors: Vec<ringcrawl_config::ConfigError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut config = match &arguments.config {
        Some(file) => Config::load(file).map_err(texts)?,
        None => kept.unwrap_or_default(),
    };
    let set_pair = |pair: &String| check_config::set(&mut config, pair).err().map(|error| error.to_string());
    let mut complaints: Vec<String> = arguments.set.iter().filter_map(set_pair).collect();
    for (option, key, value) in [
        ("--cpus", "crawl.cpus", &arguments.cpus),
        ("--shards", "crawl.shards", &arguments.shards),
        ("--rounds", "crawl.rounds", &arguments.rounds),
        ("--pages-max", "crawl.pages_max", &arguments.pages_max),
        ("--time-max", "crawl.time_max", &arguments.time_max),
    ] {
        if let Some(Err(error)) = value.as_deref().map(|value| config.set(key, value)) {
            complaints.push(ConfigError { file: option.to_owned(), ..error }.to_string());
        }
    }
    let mut ask_again = AskAgain::failed(arguments.retry_failed);
    for choice in &arguments.retry {
        match AskAgain::parse(choice) {
            Ok(chosen) => ask_again = ask_again.and(chosen),
            Err(why) => complaints.push(format!("--retry: {why}")),
        }
    }
    if let Some(Err(wrong)) = arguments.json.as_deref().map(|path| json::check(path, Some(&arguments.dir))) {
        complaints.push(wrong);
    }
    let SeedsRead { seeds, skipped } = boot::read_seeds(&arguments.seeds, &arguments.seed_files, config.seeds.errors)
        .map_err(|errors| complaints.extend(errors.iter().map(complaint)))
        .unwrap_or_default();
    if !complaints.is_empty() {
        return Err(complaints);
    }
    skipped.iter().for_each(|told| tell!("skipped: {told}"));
    let (dir, new) = (arguments.dir.clone(), arguments.new);
    Ok(Order { config, seeds, dir, new, ask_again, round: None, handed_on: Default::default() })
}

/// What is wrong with seeds. An error in a seed file names the option: the operator of a service, who named no file on
/// the command line, would otherwise not know which file is meant.
fn complaint(error: &SeedError) -> String {
    if error.is_of_file() { format!("--seeds: {error}") } else { error.to_string() }
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
    fn report(mut self, arguments: &CrawlArguments) -> ExitCode {
        let (json, dir) = (arguments.json.as_deref(), &*arguments.dir);
        match self.summary.totals.known().urls {
            _ if arguments.quiet && json.is_none() => {}
            ..=CAUSES_URLS_MAX => match Causes::read(dir) {
                Ok((causes, _)) => self.summary.causes = causes,
                // Nothing was started, or it cannot be read: the crawl has already reported why.
                Err(_) if self.failure.is_some() => {}
                Err(error) => tell!("ringcrawl: {error}"),
            },
            _ => tell!("what ended without a page: ringcrawl urls {} --causes", dir.display()),
        }
        if !arguments.quiet {
            output::text(&self.summary.human());
        }
        let written = json.map_or(DONE, |path| json::write(path, &self.summary.json(), Some(dir)));
        let Some(failure) = self.failure else {
            let code = seed_ends::exit_code(dir, &self.summary);
            return ExitCode::from(if written == DONE { code } else { written });
        };
        tell!("ringcrawl: {failure}");
        tell!(
            "ringcrawl: the crawl stopped. Everything on disk is kept; the same command continues.\nringcrawl: pages in the summary that are not on disk yet will be fetched again"
        );
        ExitCode::from(FAILED)
    }
}

/// Runs a crawl to its end, with progress and notes on standard error; if it is quiet, only with warnings.
pub fn drive(order: Order, is_quiet: bool) -> Result<Ended, BootError> {
    let hangup = match ScopeFiles::are_named(&order.config) && !boot::has_terminal() {
        true => Hangup::Reloads,
        false => Hangup::Drains,
    };
    let signals = signals::watch(hangup).map_err(BootError::System)?;
    let next = |before: RoundBefore| match wanted(&signals.interrupts) {
        Phase::Run => rounds::next(before),
        _ => None,
    };
    rounds::drive(order, next, |order| drive_round(order, &signals, is_quiet))
}

/// Runs one round of it.
fn drive_round(
    order: Order,
    Signals { interrupts, reloads }: &Signals,
    is_quiet: bool,
) -> Result<(Ended, Option<RoundEnd>), BootError> {
    let before = order.round.unwrap_or_default().pages;
    let pages_max = order.config.crawl.pages_max.saturating_sub(before);
    let (begun, is_first) = (Instant::now(), order.round.is_none());
    let mut crawl = begin(order, interrupts)?;
    // A later round's startup counts towards the crawl's time; the startup of the crawl itself does not.
    let begun = if is_first { Instant::now() } else { begun };
    let shards = crawl.control().shards().len();
    let is_terminal = std::io::stderr().is_terminal() && !is_quiet;
    let mut progress = Progress::new(shards, (pages_max > 0).then_some(pages_max), is_terminal);
    let mut next_tick = begun;
    let mut phase = Phase::Run;
    while !crawl.poll(begun.elapsed(), wanted(interrupts)) {
        crawl.control().take_notes(is_quiet).iter().for_each(|note| progress.println(note));
        if crawl.control().phase() > phase {
            phase = crawl.control().phase();
            if phase == Phase::Drain && !is_quiet {
                progress.println(match crawl.is_to_level() {
                    true => "balance: finishing fetches in flight, then moving sites between shards",
                    false if interrupts.load(Ordering::Relaxed) > 0 => {
                        "draining: finishing fetches in flight and writing everything; repeat to stop at once"
                    }
                    false => {
                        "draining: finishing fetches in flight and writing everything; two signals stop it at once"
                    }
                });
            }
        }
        if Instant::now() >= next_tick && !is_quiet {
            let totals = crawl.control().totals();
            let told = [crawl.waits_for(), trouble(crawl.control())];
            progress.tick(&Totals::sum(&totals), &totals, begun.elapsed(), told);
            next_tick = Instant::now() + TICK;
        }
        std::thread::sleep(POLL);
        // Right before the poll that may object: a signal sent before the operator could read that is no confirmation.
        if reloads.swap(0, Ordering::Relaxed) > 0 {
            crawl.reload_scope();
        }
    }
    let ended = crawl.ended();
    let elapsed = begun.elapsed();
    progress.finish();
    crawl.control().take_notes(is_quiet).iter().for_each(|note| tell!("{note}"));
    let by_shard = crawl.control().totals();
    let totals = Totals::sum(&by_shard);
    let (outages, last_trouble) = (crawl.outages(), trouble(crawl.control()));
    let (round, failure) = match crawl.finish_round() {
        Ok(round) => (Some(round), None),
        Err(failure) => (None, Some(failure)),
    };
    if let Some(note) = round.as_ref().and_then(|round| round.note.as_deref()) {
        tell!("ringcrawl: {note}");
    }
    let summary = Summary {
        ended: if failure.is_some() { "failed".to_owned() } else { ended.to_owned() },
        totals,
        shards,
        pages_by_shard: by_shard.iter().map(|shard| shard.pages).collect(),
        elapsed,
        outages,
        last_trouble,
        rss_bytes_max: Some(boot::rss_bytes_max()),
        cpu_time: Some(boot::cpu_time()),
        causes: CauseLines::default(),
    };
    Ok((Ended { summary, failure }, round))
}

/// The last failure at a host that has not recovered since.
fn trouble(control: &Control) -> Option<String> {
    let seconds = ring::unix_now().as_micros() / 1_000_000;
    control.trouble().map(|(host, trouble)| trouble.sentence(&host, seconds))
}

/// Starts a round. A file that must be reread for it may be in the middle of an edit: that is reported, and the round
/// waits.
fn begin(order: Order, interrupts: &AtomicUsize) -> Result<Crawl, BootError> {
    if order.round.is_none() {
        return boot::start(order);
    }
    let (mut told, mut failed) = (String::new(), None);
    loop {
        match boot::start(order.clone()) {
            Err(BootError::Order(_)) if wanted(interrupts) != Phase::Run => return Err(BootError::Stopped),
            // A try may take seconds, so tries are not counted.
            Err(BootError::Order(why)) if failed.get_or_insert_with(Instant::now).elapsed() < MENDING => {
                if why != told {
                    why.lines().for_each(|line| tell!("ringcrawl: {line}"));
                    tell!("ringcrawl: the crawl waits at most {} minutes for this to recover", MENDING.as_secs() / 60);
                    told = why;
                }
                std::thread::sleep(RETRY);
            }
            ended => return ended,
        }
    }
}

/// The phase that this many interrupts ask for.
pub(super) fn wanted(interrupts: &AtomicUsize) -> Phase {
    match interrupts.load(Ordering::Relaxed) {
        0 => Phase::Run,
        1 => Phase::Drain,
        _ => Phase::Abort,
    }
}

/// Above this number of URLs the logs are not read at the end of a crawl: that would take more than some seconds.
const CAUSES_URLS_MAX: u64 = 3_000_000;
const POLL: Duration = Duration::from_millis(25);
/// How long a later round waits for its files after the first failed try.
const MENDING: Duration = Duration::from_secs(600);
const RETRY: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);
