//! `ringcrawl-lab plan`: assigns sites or pages to shards by the links of an earlier crawl or of a file.
//!
//! Decides: the table is printed unless only files are requested. Notes above it explain the numbers. Notes below it
//! name the graph partitions that are not within 5 %, and why. A terminal gets a bar for long steps; other outputs
//! get none.
//! Exit codes: 0 done; 1 METIS or a disk failed, or the directory is damaged, and the plan covers the rest; 2 an
//! operator's mistake.
//! Leaves to others: all computation (`crate::plan`).

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::plan::{
    self, AssignmentRow, EdgeFiles, GraphSettings, Losses, Memory, Method, PageGraph, PlanError, SiteKind,
    StepProgress, Unit,
};
use ringcrawl::cli::output::{self, tell};
use ringcrawl::cli::{DONE, FAILED, MISTAKE, terminal};
use ringcrawl_base::grouped;
use ringcrawl_brain::route::VectorUnit;
use ringcrawl_config as config;
use ringcrawl_crawler::boot;
use ringcrawl_warc::read::find_segments;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("graph").required(true).args(["edges", "dir"]))]
pub struct Plan {
    /// A crawl's directory: its stored pages, and the links between them.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    graph: GraphArguments,
    /// Numbers of parts to compare [default: 8,16,32,64 where no file is written].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    parts: Vec<u16>,
    /// The table as JSON.
    #[arg(long)]
    json: bool,
    /// Write an assignment to --shards, by graph partitioning.
    #[arg(long, value_name = "FILE", requires = "shards")]
    vector: Option<PathBuf>,
    /// Number of shards of the assignment.
    #[arg(long, value_name = "N", requires = "vector", value_parser = clap::value_parser!(u16).range(1..))]
    shards: Option<u16>,
    /// What is assigned.
    #[arg(long, value_name = "UNIT", value_enum, default_value = "site")]
    by: Unit,
    /// Write all pages by PageRank, the highest first.
    #[arg(long, value_name = "FILE")]
    pagerank: Option<PathBuf>,
    /// Write all pages by the number of pages that link to them, the highest first (exchange.replicated).
    #[arg(long, value_name = "FILE")]
    most_linked: Option<PathBuf>,
    /// The same seed gives the same plan.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u32,
}

/// A graph as a list of links, and how one is read.
#[derive(clap::Args, Debug)]
pub(super) struct GraphArguments {
    /// Links, `SOURCE<TAB>TARGET` a line: numbers, or URLs. This file and the next two may be packed by gzip or zstd.
    #[arg(long, value_name = "FILE")]
    pub(super) edges: Option<PathBuf>,
    /// Pages by number, `NUMBER<TAB>…<TAB>HOST<TAB>URL` a line.
    #[arg(long, value_name = "FILE", requires = "edges")]
    nodes: Option<PathBuf>,
    /// The first page's number of each site, a line each.
    #[arg(long, value_name = "FILE", requires = "edges")]
    sites: Option<PathBuf>,
    /// What a site is: a registrable domain, or a host.
    #[arg(long, value_name = "KEY", value_enum, default_value = "site")]
    key: GraphKey,
    /// Bytes that a link to a page counts whose URL is not known.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=65_535))]
    url_bytes: u64,
    /// Memory that may be used, such as 500MiB or 16GiB.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = config::read_size)]
    pub(super) ram_max: u64,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum GraphKey {
    Site,
    Host,
}

impl GraphArguments {
    /// The unit of assignment, in the crawl's terms.
    fn vector_unit(&self, unit: Unit) -> VectorUnit {
        match (unit, self.key) {
            (Unit::Page, _) => VectorUnit::Page,
            (Unit::Site, GraphKey::Site) => VectorUnit::Site,
            (Unit::Site, GraphKey::Host) => VectorUnit::Host,
        }
    }

    pub(super) fn settings(&self) -> GraphSettings {
        let key = match self.key {
            GraphKey::Site => SiteKind::Domain,
            GraphKey::Host => SiteKind::Host,
        };
        GraphSettings { key, url_bytes: self.url_bytes }
    }

    /// The graph of the list, if one is named.
    pub(super) fn read(&self, memory: &mut Memory, watch: plan::Watch<'_>) -> Option<Result<PageGraph, PlanError>> {
        let edges = self.edges.as_deref()?;
        let files = EdgeFiles { edges, nodes: self.nodes.as_deref(), sites: self.sites.as_deref() };
        Some(plan::read_edges(&files, self.settings(), memory, watch))
    }
}

impl Plan {
    /// The numbers of parts to compare.
    fn parts(&self) -> Vec<u16> {
        let has_files = self.vector.is_some() || (self.pagerank.is_some() || self.most_linked.is_some());
        let mut parts = if self.parts.is_empty() && !has_files { vec![8, 16, 32, 64] } else { self.parts.clone() };
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// Each list must have a file of its own: otherwise only the last would remain, and on standard output they would
    /// be mixed.
    fn check_files(&self) -> Result<(), PlanFailure> {
        let files = [("--vector", &self.vector), ("--pagerank", &self.pagerank), ("--most-linked", &self.most_linked)];
        let named: Vec<_> = files.iter().filter_map(|(name, file)| Some((name, file.as_deref()?))).collect();
        for (index, (name, file)) in named.iter().enumerate() {
            if let Some((other, _)) = named[..index].iter().find(|(_, other)| whole(other) == whole(file)) {
                return Err(PlanFailure(
                    MISTAKE,
                    format!("{other} and {name} are both {}: expected a file each", file.display()),
                ));
            }
        }
        Ok(())
    }
}

/// The path with links resolved.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

/// Runs it.
pub fn run(arguments: &Plan) -> ExitCode {
    let mut bar = Bar::new(io::stderr().is_terminal());
    let result = make(arguments, &mut bar);
    bar.clear();
    ExitCode::from(match result {
        Ok(Made { text, losses }) => {
            let printed = if text.is_empty() { DONE } else { output::print(&text) };
            printed.max(tell_losses(&losses))
        }
        Err(PlanFailure(code, why)) => {
            tell!("ringcrawl-lab plan: {why}");
            code
        }
    })
}

/// The output, and what is missing from it.
struct Made {
    text: String,
    losses: Losses,
}

/// Exit code and reason.
struct PlanFailure(u8, String);

impl From<PlanError> for PlanFailure {
    fn from(error: PlanError) -> PlanFailure {
        let code = if matches!(error, PlanError::Metis { .. }) { FAILED } else { MISTAKE };
        PlanFailure(code, error.to_string())
    }
}

fn make(arguments: &Plan, bar: &mut Bar) -> Result<Made, PlanFailure> {
    arguments.check_files()?;
    let mut memory = Memory::new(arguments.graph.ram_max);
    let (graph, losses) = read(arguments, &mut memory, bar)?;
    let mut text = String::new();
    let parts = arguments.parts();
    if !parts.is_empty() {
        let rows = plan::compare(&graph, &parts, arguments.seed, &mut memory, &mut |step| bar.show(step))?;
        text = if arguments.json { as_json(&graph, arguments.seed, &rows) } else { as_text(&graph, &rows) };
    }
    // You can provide more memory, but you cannot correct a disk's error.
    let unwritten = |error: PlanError| match error {
        PlanError::Memory { .. } => PlanFailure::from(error),
        error => PlanFailure(FAILED, error.to_string()),
    };
    if let (Some(path), Some(shards)) = (&arguments.vector, arguments.shards) {
        bar.show(StepProgress { what: "partitioning", done: 0, total: 1 });
        let found = plan::assign(&graph, arguments.by, shards, arguments.seed, &mut memory)?;
        plan::write_vector(path, &graph, arguments.graph.vector_unit(arguments.by), shards, &found)
            .map_err(unwritten)?;
    }
    if let Some(path) = &arguments.most_linked {
        let links = plan::links_to(&graph, &mut memory)?;
        plan::write_ranks(path, &graph, &links, &mut memory).map_err(unwritten)?;
        memory.release(links);
    }
    if let Some(path) = &arguments.pagerank {
        let ranks = plan::pagerank(&graph, &mut memory, &mut |step| bar.show(step))?;
        plan::write_ranks(path, &graph, &ranks, &mut memory).map_err(unwritten)?;
    }
    if graph.nameless() > 0 && (arguments.pagerank.is_some() || arguments.most_linked.is_some()) {
        let pages = grouped(graph.nameless() as u64);
        tell!(
            "{pages} pages have no URL and are listed by number, which no crawl takes (frontier.ranks, exchange.replicated)"
        );
    }
    Ok(Made { text, losses })
}

fn read(arguments: &Plan, memory: &mut Memory, bar: &mut Bar) -> Result<(PageGraph, Losses), PlanFailure> {
    let watch: plan::Watch<'_> = &mut |step| bar.show(step);
    if let Some(graph) = arguments.graph.read(memory, watch) {
        return Ok((graph?, Losses::default()));
    }
    let mistake = |why: &dyn std::fmt::Display| PlanFailure(MISTAKE, why.to_string());
    let dir = arguments.dir.as_deref().ok_or_else(|| mistake(&"--edges or --dir is needed"))?;
    let config = boot::kept_config(dir).map_err(|error| mistake(&error))?;
    let config = config.ok_or_else(|| mistake(&format!("{}: not a crawl (no crawl.json)", dir.display())))?;
    let segments = find_segments(dir).map_err(|error| mistake(&error))?;
    Ok(plan::read_stored(&segments, config, arguments.graph.settings(), memory, watch)?)
}

/// Reports what could not be read; returns the exit code.
pub(super) fn tell_losses(losses: &Losses) -> u8 {
    let Losses { damaged, unread, bodiless } = losses;
    for (count, what) in [
        (damaged, "damaged places in segments, and what stood there is missing from the plan (see store verify)"),
        (unread, "responses could not be read, and their links are missing"),
        (bodiless, "pages have a body that is stored in another crawl, and their links are missing"),
    ] {
        if *count > 0 {
            tell!("{} {what}", grouped(*count));
        }
    }
    if *damaged > 0 { FAILED } else { DONE }
}

/// The table for programs.
fn as_json(graph: &PageGraph, seed: u32, rows: &[AssignmentRow]) -> String {
    let counts = graph.counts();
    let value = json!({
        "pages": graph.pages(),
        "sites": graph.sites(),
        "links": graph.links(),
        "link_bytes": graph.link_bytes(),
        "self_links": counts.self_links,
        "repeated_links": counts.repeated,
        "links_outside": counts.outside,
        "pages_without_url": graph.nameless(),
        "has_page_bytes": graph.has_bytes(),
        "imbalance_max": plan::IMBALANCE_MAX,
        "seed": seed,
        "rows": rows,
    });
    format!("{value:#}\n")
}

/// The table for people.
fn as_text(graph: &PageGraph, rows: &[AssignmentRow]) -> String {
    let (counts, number) = (graph.counts(), |count: usize| grouped(count as u64));
    let mut text = format!(
        "{} pages, {} sites, {} links of {} bytes of URLs\n",
        number(graph.pages()),
        number(graph.sites()),
        number(graph.links()),
        grouped(graph.link_bytes()),
    );
    for (count, what) in [
        (counts.self_links, "links of a page to itself left out"),
        (counts.repeated, "links repeated on their page, counted once"),
        (counts.outside, "links to what is no page here left out"),
    ] {
        if count > 0 {
            let _ = writeln!(text, "{} {what}", grouped(count));
        }
    }
    if graph.nameless() > 0 {
        let _ = writeln!(text, "{} pages have no URL: a link to them counts --url-bytes", number(graph.nameless()));
    }
    if !graph.has_bytes() {
        text.push_str("no page's bytes are known: storage counts pages\n");
    }
    let all = rows.iter().map(|row| row.volume_bytes).max().unwrap_or_default();
    let wide = grouped(all).len().max(4);
    let pair = wide + 1 + wide;
    let volume = 2 * pair + 2;
    let heads = [
        String::new(),
        format!(
            "{:>5}  {:^27}  {:^27}  {:^volume$}",
            "", "imbalance of storage, %", "imbalance of requests, %", "volume, bytes"
        ),
        format!(
            "{:>5}  {:^13} {:^13}  {:^13} {:^13}  {:^pair$}  {:^pair$}",
            "", "page", "site", "page", "site", "page", "site"
        ),
    ];
    for head in heads {
        let _ = writeln!(text, "{}", head.trim_end());
    }
    let _ = write!(text, "{:>5} ", "K");
    for _ in 0..2 {
        let _ = write!(text, " {:>6} {:>6} {:>6} {:>6} ", "GP", "hash", "GP", "hash");
    }
    let _ = writeln!(text, " {:>wide$} {:>wide$}  {:>wide$} {:>wide$}", "GP", "hash", "GP", "hash");
    let mut parts: Vec<u16> = rows.iter().map(|row| row.parts).collect();
    parts.dedup();
    for parts in parts {
        let of = |unit, method| rows.iter().find(|row| (row.parts, row.unit, row.method) == (parts, unit, method));
        let cells = [
            of(Unit::Page, Method::Gp),
            of(Unit::Page, Method::Hash),
            of(Unit::Site, Method::Gp),
            of(Unit::Site, Method::Hash),
        ];
        let _ = write!(text, "{parts:>5} ");
        let measures: [fn(&AssignmentRow) -> f64; 2] = [|row| row.storage_imbalance, |row| row.request_imbalance];
        for measure in measures {
            for row in cells.iter().flatten() {
                let _ = write!(text, " {:>6.2}", 100.0 * measure(row));
            }
            text.push(' ');
        }
        for (index, row) in cells.iter().flatten().enumerate() {
            let gap = if index == 2 { "  " } else { " " };
            let _ = write!(text, "{gap}{:>wide$}", grouped(row.volume_bytes));
        }
        text.push('\n');
    }
    for row in rows.iter().filter(|row| row.method == Method::Gp && !row.is_balanced()) {
        let (parts, unit) = (row.parts, row.unit.as_str());
        let why = match &row.heaviest {
            Some(heaviest) => {
                let (name, share, even) = (&heaviest.name, 100.0 * heaviest.share, 100.0 / f64::from(parts));
                format!("{name} alone has {share:.1} %, and a part's share is {even:.1} %")
            }
            None => "METIS found nothing closer".to_owned(),
        };
        let _ = writeln!(text, "K = {parts}: {unit} GP is not within 5 %: {why}");
    }
    text
}

/// The display of long steps.
pub(super) struct Bar {
    bar: Option<ProgressBar>,
    what: &'static str,
}

impl Bar {
    pub(super) fn new(is_terminal: bool) -> Bar {
        let bar = is_terminal.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            // A template that does not parse is a bug in this file; the command continues with the plain bar.
            if let Ok(style) =
                ProgressStyle::with_template("{spinner:.cyan} {msg:16} {bar:40.cyan/black} {percent:>3} %")
            {
                bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
            }
            bar
        });
        Bar { bar, what: "" }
    }

    pub(super) fn show(&mut self, step: StepProgress) {
        let Some(bar) = &self.bar else { return };
        if self.what != step.what {
            self.what = step.what;
            bar.set_message(terminal::shown(step.what));
        }
        bar.set_length(step.total);
        bar.set_position(step.done);
        bar.tick();
    }

    /// Removes it; the result follows.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
