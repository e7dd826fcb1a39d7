//! `ringcrawl web`: serves the synthetic web, computes its truth, shows one of its pages.
//!
//! Decides: when ready, it prints one JSON line on stdout with ports and files; at the end it prints another with the
//! report, so that scripts need no parser for prose. The truth takes the same arguments as the server: ports are part
//! of URLs.
//! Exit codes: 0 stopped by a signal, 1 it could not be served, 2 the arguments make no web.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use super::Switch;
use super::output::{Stdout, tell};
use ringcrawl_config::Config;
use ringcrawl_config::Operators;
use ringcrawl_url::Url;
use ringcrawl_web::faults::ending::Ending;
use ringcrawl_web::{Faults, Model, ModelConfig, Profile, Server, ServerConfig, truth};

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Web {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    model: ModelArguments,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Print `STATUS<TAB>URL`, sorted by URL, for everything that a correct crawl fetches.
    Truth(Truth),
    /// Print the body that the web has at a URL.
    Page(Page),
}

#[derive(clap::Args, Debug)]
struct ModelArguments {
    /// Number of sites (registrable domains).
    #[arg(long, default_value_t = 20)]
    sites: u32,
    /// Number of pages in all.
    #[arg(long, default_value_t = 1_000)]
    pages: u64,
    /// Seed of everything that looks random.
    #[arg(long, default_value_t = 1)]
    rng_seed: u64,
    /// Size of pages: about 4 KiB and 12 links, or like the web's 172 KB and 164 links.
    #[arg(long, value_enum, default_value_t = ProfileName::Small)]
    profile: ProfileName,
    /// Every page has children for ever; --pages is without meaning.
    #[arg(long)]
    endless: bool,
    /// Number of loopback addresses (127.1.0.1 and up) of the hosts.
    #[arg(long, default_value_t = 16)]
    addresses: u32,
    /// Share of sites that are https.
    #[arg(long, default_value_t = 0.5)]
    https_share: f64,
    /// Port of all http origins; 0 picks a free one when serving.
    #[arg(long, default_value_t = 8080)]
    http_port: u16,
    /// Port of all https origins; 0 picks a free one when serving.
    #[arg(long, default_value_t = 8443)]
    https_port: u16,
    /// Whether bodies are compressed for clients that accept gzip.
    #[arg(long, value_enum, default_value_t = Switch::On)]
    gzip: Switch,
    /// What goes wrong: `all`, or NAME=SHARE,… with the share of sites that have a host with that fault (docs/WEB.md).
    #[arg(long, value_name = "SPEC", default_value = "", hide_default_value = true)]
    faults: Faults,
}

#[derive(clap::Args, Debug)]
struct ServerArguments {
    /// UDP port of the name server on 127.0.0.1; 0 picks a free one.
    #[arg(long, default_value_t = 0)]
    dns_port: u16,
    /// Time to live of the name server's answers, in seconds.
    #[arg(long, default_value_t = 300)]
    dns_ttl_seconds: u32,
    /// Write the root certificate to this file, in PEM.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Threads that serve.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// CPUs to pin the threads to, such as 1-3,5; default: not pinned.
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    cpus: String,
    /// Close a connection after this many responses; 0: never.
    #[arg(long, value_name = "N", default_value_t = 0)]
    requests_per_connection: u32,
    /// Whether TLS sessions may be resumed, by tickets.
    #[arg(long, value_enum, default_value_t = Switch::On)]
    tls_tickets: Switch,
    /// Stop at the end of standard input too: who started the server is gone then.
    #[arg(long)]
    until_eof: bool,
    /// Watch every request: double fetches, robots.txt, gaps between requests to a host.
    #[arg(long)]
    watch: bool,
    /// A file of operators and address ranges, as politeness.operators takes it: their gaps are watched, too.
    #[arg(long, value_name = "FILE")]
    operators: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct Truth {
    #[command(flatten)]
    model: ModelArguments,
    /// Where a crawl starts; default: the root of site 0, from which everything is reachable.
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// File with more seeds, one a line; `-` is stdin.
    #[arg(long, value_name = "FILE")]
    seeds: Option<PathBuf>,
    /// The crawl's configuration: its limits say how faulty pages end. Default: the built-in one.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Also print `denied<TAB>URL` for URLs that robots.txt forbids.
    #[arg(long)]
    denied: bool,
}

#[derive(clap::Args, Debug)]
struct Page {
    #[command(flatten)]
    model: ModelArguments,
    /// The page's URL.
    url: String,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum ProfileName {
    Small,
    Web,
}

/// Runs it.
pub fn run(arguments: Web) -> ExitCode {
    let result = match arguments.command {
        None => serve(&arguments.model, &arguments.server),
        Some(Command::Truth(truth)) => print_truth(&truth),
        Some(Command::Page(page)) => print_page(&page),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe early, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            tell!("ringcrawl web: {error}");
            ExitCode::from(if error.kind() == io::ErrorKind::InvalidInput { 2 } else { 1 })
        }
    }
}

impl ModelArguments {
    fn config(&self) -> ModelConfig {
        ModelConfig {
            rng_seed: self.rng_seed,
            sites: self.sites,
            pages: self.pages,
            addresses: self.addresses,
            https_share: self.https_share,
            http_port: self.http_port,
            https_port: self.https_port,
            endless: self.endless,
            profile: match self.profile {
                ProfileName::Small => Profile::Small,
                ProfileName::Web => Profile::Web,
            },
            gzip: self.gzip.is_on(),
            faults: self.faults,
        }
    }

    fn model(&self) -> io::Result<Model> {
        if self.http_port == 0 || self.https_port == 0 {
            return Err(invalid("--http-port and --https-port cannot be 0 here, because ports are part of URLs"));
        }
        Model::new(self.config()).map_err(invalid)
    }
}

fn serve(model: &ModelArguments, arguments: &ServerArguments) -> io::Result<()> {
    let mut operators = Operators::default();
    if let Some(path) = &arguments.operators {
        operators.read_file(path).map_err(|wrong| invalid(wrong.join("\n")))?;
    }
    let config = ServerConfig {
        threads: arguments.threads,
        cpus: parse_cpus(&arguments.cpus)?,
        watch: arguments.watch,
        operators,
        dns_port: arguments.dns_port,
        dns_ttl: Duration::from_secs(u64::from(arguments.dns_ttl_seconds)),
        requests_per_connection: arguments.requests_per_connection,
        tls_tickets: arguments.tls_tickets.is_on(),
    };
    // Registered before the ready line: a signal sent right after that line must find its handler.
    let mut signals = signal_hook::iterator::Signals::new(signal_hook::consts::TERM_SIGNALS)?;
    let running = Server::start(model.config(), config)?;
    if let Some(path) = &arguments.ca_file {
        std::fs::write(path, &running.ca_pem)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    }
    let ready = serde_json::json!({
        "http_port": running.http_port,
        "https_port": running.https_port,
        "dns": running.dns.to_string(),
        "ca_file": arguments.ca_file,
        "seed": running.model().seeds(1).first().map(Url::as_str),
    });
    print_line(&ready.to_string())?;
    if arguments.until_eof {
        let signals = signals.handle();
        std::thread::spawn(move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            signals.close();
        });
    }
    let _ = signals.forever().next();
    print_line(&serde_json::to_string(&running.stop())?)
}

fn print_truth(arguments: &Truth) -> io::Result<()> {
    let model = arguments.model.model()?;
    let mut texts = arguments.urls.clone();
    if let Some(path) = &arguments.seeds {
        let mut text = String::new();
        if path.as_os_str() == "-" {
            io::stdin().lock().read_to_string(&mut text)?;
        } else {
            text = std::fs::read_to_string(path).map_err(|error| invalid(format!("{}: {error}", path.display())))?;
        }
        texts.extend(
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(String::from),
        );
    }
    let mut seeds = Vec::new();
    for text in &texts {
        seeds.push(Url::parse(text).map_err(|error| invalid(format!("{text}: {error}")))?);
    }
    if seeds.is_empty() {
        seeds = model.seeds(1);
    }
    let config = match &arguments.config {
        None => Config::default(),
        Some(file) => Config::load(file)
            .map_err(|errors| invalid(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))?,
    };
    let truth = truth::reachable_by(&model, &seeds, &config).map_err(invalid)?;
    let mut lines: Vec<(&str, String)> = truth
        .fetched
        .iter()
        .chain(&truth.missing)
        .map(|(url, expected)| (url.as_str(), expected.status.to_string()))
        .collect();
    lines.extend(truth.faulty.iter().map(|(url, ending)| (url.as_str(), ending_text(ending))));
    lines.extend(truth.mazes.iter().map(|url| (url.as_str(), "maze".to_owned())));
    if arguments.denied {
        lines.extend(truth.denied.iter().map(|url| (url.as_str(), "denied".to_owned())));
    }
    lines.sort();
    let mut out = Stdout::new();
    for (url, status) in lines {
        writeln!(out, "{status}\t{url}")?;
    }
    out.flush()
}

/// `200-length`: what is kept and why not all; `503,200`: the statuses in turn; or the failure's name.
fn ending_text(ending: &Ending) -> String {
    match ending {
        Ending::Cut { why, kept, .. } => format!("{}-{}", kept.status, why.as_str()),
        Ending::Again { statuses, .. } => statuses.iter().map(u16::to_string).collect::<Vec<_>>().join(","),
        Ending::Failed { failure, .. } => failure.as_str().to_owned(),
    }
}

fn print_page(arguments: &Page) -> io::Result<()> {
    let model = arguments.model.model()?;
    let url = Url::parse(&arguments.url).map_err(|error| invalid(format!("{}: {error}", arguments.url)))?;
    let mut body = Vec::new();
    let answer = model.answer_url(&url, &mut body);
    if answer.status != 200 {
        let location = answer.location.map(|location| format!(" to {location}")).unwrap_or_default();
        return Err(io::Error::other(format!("{}: status {}{location}", url.as_str(), answer.status)));
    }
    let mut out = Stdout::new();
    out.write_all(&body)?;
    out.flush()
}

fn print_line(line: &str) -> io::Result<()> {
    let mut out = Stdout::new();
    writeln!(out, "{line}")?;
    out.flush()
}

/// CPU numbers of a list such as `1-3,5`.
fn parse_cpus(list: &str) -> io::Result<Vec<usize>> {
    let wrong = || invalid(format!("--cpus: expected numbers and ranges below {CPU_END}, such as 1-3,5, got {list:?}"));
    let mut cpus = Vec::new();
    for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.parse().map_err(|_| wrong())?;
        let last: usize = last.parse().map_err(|_| wrong())?;
        if first > last || last >= CPU_END {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

/// Linux knows no higher CPU number (CONFIG_NR_CPUS).
const CPU_END: usize = 8_192;

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_cpus("").unwrap(), [0usize; 0]);
        assert_eq!(parse_cpus("1-3, 5").unwrap(), [1, 2, 3, 5]);
        for bad in ["x", "3-1", "1-", "-1", "9999999999", "0-9999"] {
            assert!(parse_cpus(bad).is_err(), "{bad}");
        }
    }
}
