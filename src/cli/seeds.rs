//! `ringcrawl seeds`: the seeds of a crawl, with the results of the URLs reached from each.
//!
//! Decides: columns are separated by tabs: pages (2xx), waiting, errors (no response, or a status of 400 and more),
//! denied by robots.txt, sites, seed. Everything reached from a seed is its party (`parties`), on its own site and on
//! others. A page counts for one seed, that of the page that first linked to it. Seeds with the most pages come
//! first, equal ones in the order of the logs. A line with `-` counts URLs that came from no known seed. `--json`
//! prints the same by names, one object a line, with null for `-`.
//! Limits: those of `parties`, and 8 bytes for each site of a seed.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::crawl_logs::{self, CrawlLogs};
use super::output::Stdout;
use super::parties::Parties;
use super::urls::StateKind;
use ringcrawl_base::Failure;
use ringcrawl_brain::log::{Listed, ListingStep, UrlState};
use ringcrawl_url::Url;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Seeds {
    /// The crawl's directory; a crawl may be running in it.
    dir: PathBuf,
    /// JSON, an object a line.
    #[arg(long)]
    json: bool,
}

/// The results of a party.
#[derive(Clone, Default, Debug)]
struct Party {
    pages: u64,
    waiting: u64,
    errors: u64,
    denied: u64,
    /// Hashes of their names.
    sites: HashSet<u64>,
}

/// A line of the list.
#[derive(Serialize)]
struct Line<'a> {
    pages: u64,
    waiting: u64,
    errors: u64,
    denied: u64,
    sites: u64,
    seed: Option<&'a str>,
}

impl Party {
    /// Counts as `hosts` does.
    fn count(&mut self, listed: &Listed<'_>) {
        match (StateKind::of(listed.state), listed.state) {
            (StateKind::Waiting, _) => self.waiting += 1,
            (StateKind::Denied, _) => self.denied += 1,
            (StateKind::Fetched, UrlState::Fetched(200..=299)) => self.pages += 1,
            (StateKind::Fetched, UrlState::Fetched(..400)) => {}
            (_, UrlState::Failed(Failure::OverBudget | Failure::Blocked | Failure::OutOfScope)) => {}
            _ => self.errors += 1,
        }
        if let Ok(url) = Url::from_canonical(listed.text) {
            self.sites.insert(xxh3_64(url.site().as_bytes()));
        }
    }

    fn line<'a>(&self, seed: Option<&'a str>) -> Line<'a> {
        let Party { pages, waiting, errors, denied, sites } = self;
        let [pages, waiting, errors, denied] = [pages, waiting, errors, denied].map(|count| *count);
        Line { pages, waiting, errors, denied, sites: sites.len() as u64, seed }
    }
}

impl Line<'_> {
    fn columns(&self) -> String {
        let counts = [self.pages, self.waiting, self.errors, self.denied, self.sites].map(|count| count.to_string());
        format!("{}\t{}", counts.join("\t"), self.seed.unwrap_or("-"))
    }
}

/// Runs it.
pub fn run(arguments: &Seeds) -> ExitCode {
    let mut out = Stdout::new();
    let result = list(arguments, &mut out);
    crawl_logs::end("seeds", out, result)
}

fn list(arguments: &Seeds, out: &mut impl Write) -> io::Result<u8> {
    let logs = CrawlLogs::open(&arguments.dir)?;
    let parties = Parties::read(&logs)?;
    let mut of_seeds = vec![Party::default(); parties.seeds.len()];
    let mut of_none = Party::default();
    let code = logs.list(&mut |step| {
        let ListingStep::Url(listed) = step else { return Ok(()) };
        let party = parties.of(&listed).and_then(|place| of_seeds.get_mut(place as usize));
        party.unwrap_or(&mut of_none).count(&listed);
        Ok(())
    })?;
    let mut lines: Vec<Line<'_>> =
        of_seeds.iter().zip(&parties.seeds).map(|(party, seed)| party.line(Some(seed))).collect();
    lines.sort_by_key(|line| Reverse(line.pages));
    lines.extend((!of_none.sites.is_empty()).then(|| of_none.line(None)));
    for line in lines {
        let text = if arguments.json { serde_json::to_string(&line)? } else { line.columns() };
        writeln!(out, "{text}")?;
    }
    Ok(code)
}
