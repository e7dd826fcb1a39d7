//! `ringcrawl demo`: runs a complete crawl on this machine and checks the result.
//!
//! Decides: threads of this process serve a synthetic web on loopback. The same code as in any other crawl crawls it
//! over real sockets, DNS and TLS. The result is compared with the truth, which is computed from the web's definition
//! without a request. Its hosts are crawled as the operator's own (`mine` in `politeness.host`), which they are. Exit
//! code 0 when everything reachable was stored once with the right bytes' status, else 1.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::crawl::{self, Ended};
use super::output::{self, tell};
use super::{DONE, FAILED};
use ringcrawl_brain::seed::Seed;
use ringcrawl_config::{Config, ConfigError};
use ringcrawl_crawler::boot::Order;
use ringcrawl_files::private;
use ringcrawl_warc::index::IndexEntry;
use ringcrawl_warc::read::find_segments;
use ringcrawl_warc::verify::index_path;
use ringcrawl_web::{ModelConfig, Server, ServerConfig, truth};

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Demo {
    /// Pages of the synthetic web.
    #[arg(long, default_value_t = 100_000)]
    pages: u64,
    /// Sites of the synthetic web.
    #[arg(long, default_value_t = 2_000)]
    sites: u32,
    /// Number of shards.
    #[arg(long, default_value_t = 2)]
    shards: u32,
    /// Where the crawl is kept; a new directory for temporary files when not given.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Seed of the synthetic web.
    #[arg(long, default_value_t = 1)]
    rng_seed: u64,
}

/// Runs it.
pub fn run(arguments: Demo) -> ExitCode {
    match demo(&arguments) {
        Ok(code) => code,
        Err(error) => {
            tell!("ringcrawl: {error}");
            ExitCode::FAILURE
        }
    }
}

fn demo(arguments: &Demo) -> Result<ExitCode, String> {
    let model = ModelConfig {
        rng_seed: arguments.rng_seed,
        sites: arguments.sites,
        pages: arguments.pages,
        addresses: 64,
        http_port: 0,
        https_port: 0,
        ..ModelConfig::default()
    };
    let watched = ServerConfig { watch: true, ..ServerConfig::default() };
    let web = Server::start(model, watched).map_err(|error| format!("the synthetic web did not start: {error}"))?;
    tell!(
        "Serving a synthetic web of {} pages on {} sites on loopback: http on port {}, https on {}, names from {}.",
        arguments.pages,
        arguments.sites,
        web.http_port,
        web.https_port,
        web.dns
    );
    let base = std::env::temp_dir().join(format!("ringcrawl-demo-{}", std::process::id()));
    let dir = arguments.dir.clone().unwrap_or_else(|| base.clone());
    let ca_file = base.with_extension("ca.pem");
    // Other users write to this folder as well: an existing file may be theirs.
    private::open(private::options().create_new(true), &ca_file)
        .and_then(|mut file| file.write_all(web.ca_pem.as_bytes()))
        .map_err(|error| format!("{}: {error}", ca_file.display()))?;
    let config = config(arguments.shards, &web.dns.to_string(), &ca_file).map_err(|error| error.to_string())?;
    let seeds = web.model().seeds(1);
    let order = Order {
        config,
        seeds: seeds.iter().cloned().map(Seed::from).collect(),
        dir: dir.clone(),
        new: true,
        ask_again: Default::default(),
        round: None,
        handed_on: Default::default(),
    };
    let ended = crawl::drive(order, false).map_err(|error| error.to_string());
    let _ = std::fs::remove_file(&ca_file);
    let Ended { summary, failure } = ended?;
    output::text(&summary.human());
    if let Some(failure) = failure {
        return Err(failure);
    }
    tell!("\nComputing the expected result from the web's definition, without a request ...");
    let truth = truth::reachable(web.model(), &seeds).map_err(|error| error.to_string())?;
    let stored = stored(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let report = web.stop();
    let check = Check::new(&truth, &stored);
    output::text(&check.text());
    let watch = report.watch.unwrap_or_default();
    tell!(
        "  the servers saw     {} requests, {} of them for a page a second time, {} that robots.txt forbids,\n\
         \x20                     {} before robots.txt, {} for addresses that only a wrong parser finds;\n\
         \x20                     never more than {} at once for one host",
        report.requests,
        watch.double_fetches,
        report.denied,
        watch.before_robots,
        report.traps,
        watch.host_in_flight_max
    );
    let good = check.is_right()
        && watch.double_fetches + watch.before_robots + report.denied + report.traps == 0
        && summary.ended == "finished";
    if summary.ended != "finished" {
        tell!("The crawl was {}: missing URLs were not reached.", summary.ended);
    }
    let told = seeds.first().map_or(DONE, |seed| output::print(&next_steps(&dir, seed.as_str())));
    Ok(ExitCode::from(if good { told } else { FAILED }))
}

fn config(shards: u32, dns: &str, ca_file: &Path) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    config.crawl.shards = shards;
    config.set("politeness.host", "[{ match = '.test', mine = true }]")?;
    config.set("dns.servers", dns)?;
    config.tls.ca_files = vec![ca_file.to_owned()];
    Ok(config)
}

/// Every stored URL except robots.txt, with its status and how often it was stored.
fn stored(dir: &Path) -> std::io::Result<BTreeMap<String, (u16, u64)>> {
    let mut stored = BTreeMap::new();
    for segment in find_segments(dir)? {
        let Some(index) = index_path(&segment) else { continue };
        let index = std::fs::read_to_string(index)?;
        for entry in index.lines().filter_map(IndexEntry::parse).filter(|entry| !entry.url.ends_with("/robots.txt")) {
            let (status, count) = stored.entry(entry.url).or_insert((entry.status, 0));
            *status = entry.status;
            *count += 1;
        }
    }
    Ok(stored)
}

/// Compares what was stored with the truth.
struct Check {
    expected: u64,
    found: u64,
    double: u64,
    wrong_status: u64,
    beyond: u64,
    examples: Vec<String>,
}

impl Check {
    fn new(truth: &truth::Truth, stored: &BTreeMap<String, (u16, u64)>) -> Check {
        let mut check = Check { expected: 0, found: 0, double: 0, wrong_status: 0, beyond: 0, examples: Vec::new() };
        for (url, expected) in truth.fetched.iter().chain(&truth.missing) {
            check.expected += 1;
            match stored.get(url.as_str()) {
                Some((status, count)) => {
                    check.found += 1;
                    check.double += count - 1;
                    check.wrong_status += u64::from(*status != expected.status);
                }
                None if check.examples.len() < 5 => check.examples.push(format!("missing: {}", url.as_str())),
                None => {}
            }
        }
        let known: std::collections::BTreeSet<&str> =
            truth.fetched.keys().chain(truth.missing.keys()).map(ringcrawl_url::Url::as_str).collect();
        for url in stored.keys().filter(|url| !known.contains(url.as_str())) {
            check.beyond += 1;
            if check.examples.len() < 10 {
                check.examples.push(format!("not in the truth: {url}"));
            }
        }
        check
    }

    fn is_right(&self) -> bool {
        self.found == self.expected && self.double + self.wrong_status + self.beyond == 0
    }

    /// Coverage I/U and overlap (N−I)/I as Cho and Garcia-Molina define them (Parallel Crawlers, section 4).
    fn text(&self) -> String {
        let coverage = 100.0 * self.found as f64 / self.expected.max(1) as f64;
        let overlap = self.double as f64 / self.found.max(1) as f64;
        let mut text = format!(
            "\n  coverage            {coverage:.3} %  {} of {} URLs that can be reached\n  \
             overlap             {overlap:.3}  {} stored twice\n  \
             beyond the truth    {}\n  wrong status        {}\n",
            self.found, self.expected, self.double, self.beyond, self.wrong_status
        );
        for example in &self.examples {
            text.push_str(&format!("    {example}\n"));
        }
        text
    }
}

fn next_steps(dir: &Path, seed: &str) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "ringcrawl".to_owned());
    let dir = dir.display();
    format!(
        "\nLook at the result:\n  \
         {program} store ls {dir} | head           # what was fetched\n  \
         {program} store cat {dir} {seed}   # one page\n  \
         {program} store verify {dir}              # every frame, digest and index line\n  \
         zstd -dc {dir}/shard-00/segments/*.warc.zst | less   # plain WARC 1.1\n\
         Crawl something of your own (set agent.name, agent.url and agent.email first):\n  \
         {program} check-config --example > my.toml\n  \
         {program} crawl -c my.toml --dir my-crawl https://example.org/\n\
         When done: rm -r {dir}\n"
    )
}
