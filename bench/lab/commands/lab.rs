//! `ringcrawl-lab lab`: crawls a graph under every combination of partition, mode, order, K and rng seed, and
//! measures each crawl; or takes the same measures of a real crawl.
//!
//! Decides: every possible mistake is reported before anything starts, and then nothing is written. With `--out` each
//! row is in `lab.csv` as soon as its crawl ends, so Ctrl-C leaves the finished rows, and their figures are drawn.
//! Exit codes: 0 done; 1 a crawl or a disk failed, the directory is damaged, or it was stopped; 2 an operator's
//! mistake.
//! Leaves to others: crawls, measures and figures (`crate::experiment`), graphs (`crate::plan`).

mod crawls_bar;
mod set_keys;
mod table;

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use serde_json::json;

use self::crawls_bar::CrawlsBar;
use self::table::{Table, as_text};
use super::plan::{Bar, GraphArguments, tell_losses};
use crate::experiment::{
    self, CrawlError, Design, ExperimentRow, GraphWeb, Ground, ORDERS, PLANNED, Planned, Setting, Treatment,
};
use crate::plan::{self, Losses, Memory, PageGraph, PlanError};
use ringcrawl::cli::output::{self, tell};
use ringcrawl::cli::signals::{self, Hangup};
use ringcrawl::cli::{FAILED, MISTAKE};
use ringcrawl_base::grouped;
use ringcrawl_base::time::Duration;
use ringcrawl_config::{self as config, Config, PartitionBy, SeedErrors};
use ringcrawl_crawler::boot;
use ringcrawl_url::Url;
use ringcrawl_warc::read::find_segments;
use ringcrawl_web::{Model, ModelConfig};

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("web").required(true).args(["edges", "pages_count", "dir"]))]
pub struct Lab {
    #[command(flatten)]
    graph: GraphArguments,
    /// The synthetic web, with so many pages.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pages_count: Option<u64>,
    /// Sites of the synthetic web [default: a fiftieth of its pages].
    #[arg(long, value_name = "N", requires = "pages_count", value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    sites_count: Option<u32>,
    /// A crawl's directory: the measures of that crawl, and nothing is crawled.
    #[arg(long, value_name = "DIR", conflicts_with_all = CRAWLING)]
    dir: Option<PathBuf>,
    /// Partitions: site-hash, host-hash, url-hash, hierarchical, consistent, dynamic, as partition.by has them; site-gp and page-gp: by the
    /// graph's own links, as plan assigns them.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "site-hash")]
    partition: Vec<String>,
    /// Modes: exchange, firewall, cross-over, independent, as exchange.mode has them.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "exchange")]
    mode: Vec<String>,
    /// Orders in which URLs are fetched: breadth-first, depth-first, random, backlinks, backlinks-alone (no counts are exchanged), pagerank.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "breadth-first")]
    order: Vec<String>,
    /// Numbers of shards.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,4,8", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    shards: Vec<u16>,
    /// Crawl with so many rng seeds, from --rng-seed on: each draws other pages to begin with, and other latencies.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    repeat: u64,
    /// The first rng seed.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    rng_seed: u64,
    /// How many pages to begin with, drawn from all.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "10", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Vec<u64>,
    /// URLs to begin with, in place of drawn ones.
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    seeds_file: Option<PathBuf>,
    /// Simulated time between two requests to a host, and to a site.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = config::read_duration)]
    delay: Duration,
    /// Numbers of pages after which a crawl ends; 0: when it has all.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0")]
    pages_max: Vec<u64>,
    /// Replicate the N most linked URLs: each shard sends each of them once (exchange.replicated).
    #[arg(long, value_name = "N", default_value_t = 0)]
    replicate: usize,
    /// Set a key of the configuration for all crawls.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A new or empty directory for the table and the figures.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The rows as JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments that have no meaning for a finished crawl.
const CRAWLING: [&str; 12] = [
    "partition",
    "mode",
    "order",
    "shards",
    "repeat",
    "rng_seed",
    "seeds",
    "seeds_file",
    "delay",
    "pages_max",
    "replicate",
    "set",
];

/// Not supported by this command.
const VECTOR: &str = PartitionBy::Vector.as_str();

/// The longest delay allowed.
const DELAY_MAX: Duration = Duration::from_secs(86_400);

/// Exit code and reason.
struct LabFailure(u8, String);

fn mistake(why: impl std::fmt::Display) -> LabFailure {
    LabFailure(MISTAKE, why.to_string())
}

fn failed(why: impl std::fmt::Display) -> LabFailure {
    LabFailure(FAILED, why.to_string())
}

impl From<PlanError> for LabFailure {
    fn from(error: PlanError) -> LabFailure {
        match error {
            PlanError::Metis { .. } => failed(error),
            error => mistake(error),
        }
    }
}

/// Runs it.
pub fn run(arguments: &Lab) -> ExitCode {
    ExitCode::from(match make(arguments) {
        Ok(code) => code,
        Err(LabFailure(code, why)) => {
            tell!("ringcrawl-lab lab: {why}");
            code
        }
    })
}

fn make(arguments: &Lab) -> Result<u8, LabFailure> {
    let treatments = arguments.design().treatments();
    let configs = arguments.configs(&treatments)?;
    if let Some(out) = &arguments.out {
        refuse_full(out)?;
    }
    let mut bar = Bar::new(io::stderr().is_terminal());
    let web = match &arguments.dir {
        Some(dir) => measured(arguments, dir, &mut bar),
        None => arguments.read(&mut bar).map(|graph| Web::Graph(Box::new(graph))),
    };
    bar.clear();
    match web? {
        Web::Crawled(row, losses) => {
            let (told, rows) = (tell_losses(&losses), vec![*row]);
            let mut table = Table::new(arguments.out.as_deref())?;
            rows.iter().try_for_each(|row| table.add(row))?;
            table.draw(&rows)?;
            let text = if arguments.json { format!("{:#}\n", json!({ "rows": rows })) } else { as_text(&rows) };
            Ok(output::print(&text).max(told))
        }
        Web::Graph(graph) => {
            let web = GraphWeb::new(*graph);
            let seeds = arguments.seeds_of_file(&web)?;
            arguments.check_seeds(&web)?;
            crawl_all(arguments, &web, seeds.as_deref(), &treatments, &configs)
        }
    }
}

/// The web to examine.
enum Web {
    Graph(Box<PageGraph>),
    Crawled(Box<ExperimentRow>, Losses),
}

impl Lab {
    fn design(&self) -> Design {
        Design {
            partitions: once(&self.partition),
            modes: once(&self.mode),
            orders: once(&self.order),
            seeds: once(&self.seeds),
            limits: once(&self.pages_max),
            shards: once(&self.shards),
            rng_seeds: (0..self.repeat).map(|more| self.rng_seed + more).collect(),
        }
    }

    /// The configuration of each crawl; an invalid one is reported.
    fn configs(&self, treatments: &[Treatment]) -> Result<Vec<Config>, LabFailure> {
        if let Some(order) = self.order.iter().find(|order| !ORDERS.iter().any(|(name, _)| name == *order)) {
            let names: Vec<&str> = ORDERS.iter().map(|(name, _)| *name).collect();
            return Err(mistake(format!("--order: {order:?} is none; there is {}", names.join(", "))));
        }
        // Its file is for other numbers of shards than those here.
        if self.partition.iter().any(|word| word == VECTOR) {
            return Err(mistake(
                "--partition: no file of an assignment is read here; site-gp and page-gp assign the graph's own sites and pages",
            ));
        }
        let planned = PLANNED.iter().map(|(name, _)| *name);
        let partitions: Vec<&str> = PartitionBy::CHOICES.iter().map(|(word, _)| *word).chain(planned).collect();
        if let Some(word) = self.partition.iter().find(|word| !partitions.contains(&word.as_str())) {
            let partitions: Vec<&str> = partitions.into_iter().filter(|word| *word != VECTOR).collect();
            return Err(mistake(format!("--partition: {word:?} is none; there is {}", partitions.join(", "))));
        }
        if self.delay > DELAY_MAX {
            return Err(mistake("--delay: expected at most 24h, as for politeness.host_delay"));
        }
        let mut base = experiment::base(self.delay);
        for set in &self.set {
            let (key, value) =
                set.split_once('=').ok_or_else(|| mistake(format!("--set {set}: expected KEY=VALUE")))?;
            if let Some(why) = set_keys::refused(key.trim()) {
                return Err(mistake(format!("--set {set}: {why}")));
            }
            base.set(key.trim(), value.trim()).map_err(mistake)?;
        }
        let config = |treatment: &Treatment| {
            let config = treatment.config(&base).map_err(mistake)?;
            let wrong = |errors: Vec<config::ConfigError>| {
                mistake(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
            };
            config.check().map_err(wrong)?;
            Ok(config)
        };
        treatments.iter().map(config).collect()
    }

    /// The graph of a list, or of the synthetic web.
    fn read(&self, bar: &mut Bar) -> Result<PageGraph, LabFailure> {
        let mut memory = Memory::new(self.graph.ram_max);
        let watch: plan::Watch<'_> = &mut |step| bar.show(step);
        if let Some(graph) = self.graph.read(&mut memory, watch) {
            return Ok(graph?);
        }
        let pages = self.pages_count.unwrap_or_default();
        let sites = self.sites_count.unwrap_or(u32::try_from(pages / 50).unwrap_or(u32::MAX).clamp(1, 1 << 24));
        let (http_port, https_port) = (80, 443);
        let config =
            ModelConfig { rng_seed: self.rng_seed, sites, pages, http_port, https_port, ..ModelConfig::default() };
        let model = Model::new(config).map_err(mistake)?;
        Ok(plan::read_synthetic(&model, self.graph.settings(), &mut memory, watch)?)
    }

    /// There must be at least as many pages as seeds; otherwise crawls listed as different would be the same.
    fn check_seeds(&self, web: &GraphWeb) -> Result<(), LabFailure> {
        let pages = web.graph().pages() as u64;
        match self.seeds.iter().max().filter(|most| **most > pages && self.seeds.len() > 1) {
            Some(most) => Err(mistake(format!("--seeds: the graph has {pages} pages, and {most} are to be seeds"))),
            None => Ok(()),
        }
    }

    /// The pages named in the file of seeds, if there is one.
    fn seeds_of_file(&self, web: &GraphWeb) -> Result<Option<Vec<u32>>, LabFailure> {
        let Some(file) = &self.seeds_file else { return Ok(None) };
        let seeds = boot::read_seeds(&[], std::slice::from_ref(file), SeedErrors::Refuse)
            .map_err(|errors| mistake(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))?;
        let page = |url: &Url| {
            let page = web.page_of(url.as_str());
            page.ok_or_else(|| mistake(format!("{}: {url} is no page of the graph", file.display())))
        };
        seeds.seeds.iter().map(|seed| page(&seed.url)).collect::<Result<_, _>>().map(Some)
    }
}

/// Removes duplicates and keeps the order.
fn once<T: Clone + PartialEq>(list: &[T]) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in list {
        if !kept.contains(one) {
            kept.push(one.clone());
        }
    }
    kept
}

fn refuse_full(out: &Path) -> Result<(), LabFailure> {
    match fs::read_dir(out).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(mistake(format!("{}: not empty; expected a new or an empty directory", out.display()))),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(mistake(format!("{}: {error}", out.display()))),
        _ => Ok(()),
    }
}

/// The measures of the crawl in `dir`.
fn measured(arguments: &Lab, dir: &Path, bar: &mut Bar) -> Result<Web, LabFailure> {
    let none = || mistake(format!("{}: not a crawl (no crawl.json)", dir.display()));
    let manifest = boot::read_manifest(dir).map_err(mistake)?.ok_or_else(none)?;
    let config = boot::kept_config(dir).map_err(mistake)?.ok_or_else(none)?;
    let order = config.frontier.order.as_str().to_owned();
    let partition = boot::kept_partition(dir, &manifest, &config).map_err(mistake)?;
    let segments = find_segments(dir).map_err(mistake)?;
    let mut memory = Memory::new(arguments.graph.ram_max);
    let watch: plan::Watch<'_> = &mut |step| bar.show(step);
    let (graph, losses) = plan::read_known(&segments, config, arguments.graph.settings(), &mut memory, watch)?;
    let row = experiment::measure(&segments, &manifest, &partition, &order, graph)?;
    Ok(Web::Crawled(Box::new(row), losses))
}

fn crawl_all(
    arguments: &Lab,
    web: &GraphWeb,
    seeds: Option<&[u32]>,
    treatments: &[Treatment],
    configs: &[Config],
) -> Result<u8, LabFailure> {
    let signals = signals::watch(Hangup::Drains).map_err(failed)?;
    let is_stopped = || signals.interrupts.load(Ordering::Relaxed) > 0;
    let mut planned = Planned::new(web.graph(), arguments.graph.ram_max);
    planned.prepare_most_linked(arguments.replicate)?;
    for treatment in treatments.iter().take_while(|_| !is_stopped()) {
        planned.prepare(treatment)?;
    }
    let mut table = Table::new(arguments.out.as_deref())?;
    let bar = CrawlsBar::new(treatments.len());
    let mut rows: Vec<ExperimentRow> = Vec::new();
    // Grouped by rng seed and number of seeds.
    let (mut begun, mut ground): (_, Option<(Vec<u32>, Ground)>) = (None, None);
    let mut ended_by = None;
    for (treatment, config) in treatments.iter().zip(configs).take_while(|_| !is_stopped()) {
        let begins = Some((treatment.rng_seed, treatment.seeds));
        if begun != begins {
            begun = begins;
            let count = treatment.seeds.and_then(|count| count.try_into().ok()).unwrap_or(usize::MAX);
            let drawn = || experiment::draw_seeds(web.graph(), count, treatment.rng_seed);
            let seeds = seeds.map_or_else(drawn, <[u32]>::to_vec);
            let of_seeds = Ground::new(web.graph(), &seeds);
            ground = Some((seeds, of_seeds));
        }
        let Some((seeds, ground)) = &ground else { continue };
        // The actual number of seeds.
        let treatment = &Treatment { seeds: Some(seeds.len() as u64), ..treatment.clone() };
        let url = |page: &u32| Url::parse(&web.graph().url(*page)).map_err(failed);
        let urls: Vec<Url> = seeds.iter().map(url).collect::<Result<_, _>>()?;
        let (shards, rng_seed) = (treatment.shards, treatment.rng_seed);
        let (partition, ranks) = (planned.partition(treatment), planned.ranks(treatment));
        let replicated = planned.most_linked(rng_seed);
        let config = config.clone();
        let setting = Setting { web, config, shards, rng_seed, seeds: &urls, partition, ranks, replicated };
        let wanted = match treatment.limit {
            0 => ground.reachable(),
            most => most.min(ground.reachable()),
        };
        let observed = experiment::crawl(&setting, &mut |pages| {
            bar.show(treatment, pages, wanted);
            !is_stopped()
        });
        match observed {
            Ok(observed) => {
                let row = ExperimentRow::of(treatment, ground, &observed);
                table.add(&row)?;
                rows.push(row);
                bar.over();
            }
            Err(CrawlError::Stopped) => break,
            Err(error) => {
                ended_by = Some(error);
                break;
            }
        }
    }
    bar.clear();
    let graph = web.graph();
    table.draw(&rows)?;
    let text = match arguments.json {
        true => format!(
            "{:#}\n",
            json!({ "pages": graph.pages(), "sites": graph.sites(), "links": graph.links(), "rows": rows })
        ),
        false => {
            let [pages, sites, links] =
                [graph.pages(), graph.sites(), graph.links()].map(|count| grouped(count as u64));
            format!("{pages} pages, {sites} sites, {links} links\n{}", as_text(&rows))
        }
    };
    let printed = output::print(&text);
    if rows.len() < treatments.len() {
        let why = ended_by.map_or_else(|| "stopped".to_owned(), |error| error.to_string());
        return Err(failed(format!("{why}: {} of {} crawls are done", rows.len(), treatments.len())));
    }
    Ok(printed)
}
