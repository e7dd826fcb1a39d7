//! `ringcrawl bench`: pages per second, and where the CPU time of a page goes, on this machine.
//!
//! Decides: an operator uses it to prove a machine before touching the network, and a developer to prove a change. A
//! separate process on its own CPUs serves the synthetic web, which is crawled like any other web. `docs/BENCH.md`
//! explains what each figure means and how it can mislead.
//! Steps of a run: `layout` chooses CPUs, `workload` says what is crawled, `served` starts the web, `rig` the crawl.
//! `reading` takes the counters twice, `measured` makes `figures` of the difference, with `verdict` and `checks`.
//! `table` shows them, `repeat` repeats the run.
//! Exit codes: 0 measured, 1 something failed or the run was not what its workload says, 2 an operator's mistake.

mod checks;
mod figures;
mod floors;
mod layout;
mod measured;
mod reading;
mod repeat;
mod rig;
mod served;
mod table;
mod verdict;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use serde_json::Value;

use self::layout::Layout;
use self::rig::{BenchError, Run};
use self::workload::{Setup, Workload};
use super::output::{self, tell};
use super::{DONE, FAILED, MISTAKE, Switch, json};
use ringcrawl_base::time::Duration;
use ringcrawl_config::read_duration;

/// Arguments of the subcommand.
#[derive(clap::Args, Clone, Debug)]
pub struct BenchArguments {
    /// What is crawled.
    #[arg(long, value_enum, default_value_t = Workload::Web)]
    workload: Workload,
    /// Number of shards; one for each of their CPUs when not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    shards: Option<u32>,
    /// CPUs of the shards, such as 0-2; all but the web's when not given.
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    cpus: String,
    /// CPUs of the web; the last one when not given.
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    web_cpus: String,
    /// Time before anything is counted; 5s, polite: 30s.
    #[arg(long, value_name = "TIME", value_parser = read_duration)]
    warm_up: Option<Duration>,
    /// Time that is measured.
    #[arg(long, value_name = "TIME", value_parser = read_duration, default_value = "20s")]
    time: Duration,
    /// Whether delays are kept; off, polite: on.
    #[arg(long, value_enum)]
    politeness: Option<Switch>,
    /// Sites of the web; 500, tls: 300, polite: 100000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    sites: Option<u32>,
    /// Responses after which the server closes a connection, 0: never; tls: 10, new: 1.
    #[arg(long, value_name = "K")]
    requests_per_connection: Option<u32>,
    /// Whether TLS sessions may be resumed.
    #[arg(long, value_enum, default_value_t = Switch::On)]
    resumption: Switch,
    /// Whether CPU time is sampled by stage.
    #[arg(long, value_enum, default_value_t = Switch::On)]
    sampler: Switch,
    /// Override one key of the crawl's configuration; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Run so often, and show the medians.
    #[arg(long, value_name = "N", default_value_t = 1, overrides_with = "repeat",
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeat: u32,
    /// Write the figures as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE", overrides_with = "json")]
    json: Option<PathBuf>,
    /// Where files lie meanwhile; the folder for temporary files when not given.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs it.
pub fn run(arguments: BenchArguments) -> ExitCode {
    if let Some(Err(wrong)) = arguments.json.as_deref().map(|path| json::check(path, None)) {
        return complain(&wrong, MISTAKE);
    }
    let interrupts = match super::signals::watch(super::signals::Hangup::Drains).map(|signals| signals.interrupts) {
        Ok(interrupts) => interrupts,
        Err(error) => return complain(&error, FAILED),
    };
    let measured = if arguments.repeat > 1 { repeated(&arguments, &interrupts) } else { once(&arguments, interrupts) };
    let (figures, good) = match measured {
        Ok(measured) => measured,
        Err(BenchError::Order(what)) => return complain(&what, MISTAKE),
        Err(BenchError::Run(what)) => return complain(&what, FAILED),
    };
    let written = arguments.json.as_deref().map_or(DONE, |path| json::write(path, &figures, None));
    if good {
        ExitCode::from(written)
    } else {
        complain("the run does not match its workload: see NOT SO above", FAILED)
    }
}

/// The figures of one run, and whether every check holds.
fn once(arguments: &BenchArguments, interrupts: Arc<AtomicUsize>) -> Result<(Value, bool), BenchError> {
    let layout = Layout::new(arguments.shards, &arguments.cpus, &arguments.web_cpus).map_err(BenchError::Order)?;
    if layout.is_shared() {
        tell!("The web and the shards share a CPU: wall times cover both; CPU times are separate.");
    }
    let run = Run {
        setup: Setup::new(arguments),
        layout,
        dir: &dir(arguments),
        set: &arguments.set,
        sampled: arguments.sampler.is_on(),
        interrupts,
    };
    let figures = run.run()?;
    output::text(&table::of(&figures));
    let good = figures.checks.iter().all(|check| check.holds);
    let figures = serde_json::to_value(&figures).map_err(|error| BenchError::Run(error.to_string()))?;
    Ok((figures, good))
}

/// The medians of several runs, with the runs themselves.
fn repeated(arguments: &BenchArguments, interrupts: &AtomicUsize) -> Result<(Value, bool), BenchError> {
    let runs = repeat::run(arguments.repeat, &dir(arguments), interrupts).map_err(BenchError::Run)?;
    output::text(&repeat::table(&runs));
    let holds = |run: &Value| {
        let checks = run.get("checks").and_then(Value::as_array);
        checks.is_some_and(|checks| checks.iter().all(|check| check.get("holds") == Some(&Value::Bool(true))))
    };
    let good = runs.iter().all(holds);
    Ok((serde_json::json!({ "median": repeat::median(&runs), "runs": runs }), good))
}

fn dir(arguments: &BenchArguments) -> PathBuf {
    arguments.dir.clone().unwrap_or_else(std::env::temp_dir)
}

fn complain(what: &str, code: u8) -> ExitCode {
    tell!("ringcrawl: {what}");
    ExitCode::from(code)
}
