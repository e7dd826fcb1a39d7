//! The command line: one file per subcommand.
//!
//! Exit codes: 0 success, 1 failure, 2 an operator's mistake (arguments, configuration, seeds, directory), 3 a crawl
//! has ended and none of its seeds gave a page.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "they panic where nothing can be written: see output")]

mod bench;
mod causes;
mod check_config;
mod crawl;
mod crawl_logs;
mod demo;
mod hosts;
mod identity;
mod inspect;
mod json;
mod linkers;
pub mod output;
mod parties;
mod progress;
mod rounds;
mod scope;
mod seed_ends;
mod seeds;
pub mod signals;
mod store;
mod summary;
pub mod terminal;
mod urls;
mod web;
mod why;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "ringcrawl", version, about, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Crawl the synthetic web on loopback and check the result against the computed truth.
    Demo(demo::Demo),
    /// Crawl in the foreground; resumes what the directory holds.
    Crawl(crawl::CrawlArguments),
    /// Check a configuration file; every error with line and key.
    CheckConfig(check_config::CheckConfig),
    /// List the URLs that a crawl knows, one a line: state, cause, tries, time, URL.
    Urls(urls::Urls),
    /// List the hosts that a crawl knows, one a line, with what came of their URLs.
    Hosts(hosts::Hosts),
    /// List the seeds of a crawl, one a line, with what came of all that was reached from each.
    Seeds(seeds::Seeds),
    /// Explain why a URL or a host is not fetched, and show what is known about it.
    Why(why::Why),
    /// Ask what the scope's rules say of URLs.
    #[command(subcommand)]
    Scope(scope::ScopeCommand),
    /// Read what was crawled.
    Store(store::Store),
    /// Show what the crawler makes of one file.
    #[command(subcommand)]
    Inspect(inspect::Inspect),
    /// Write what is published about the crawler: bot page, bot.json, key directory; or a new key.
    Identity(identity::IdentityArguments),
    /// Measure pages a second and the CPU time of a page on this machine.
    Bench(bench::BenchArguments),
    /// Serve the synthetic web alone, or compute its truth.
    Web(web::Web),
}

/// An argument that is on or off.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Switch {
    On,
    Off,
}

impl Switch {
    fn is_on(self) -> bool {
        self == Switch::On
    }
}

/// Runs the command line.
pub fn main() -> ExitCode {
    output::watch_panics();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(message) => return ExitCode::from(explain(&message)),
    };
    match arguments.command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Crawl(arguments) => crawl::run(arguments),
        Command::CheckConfig(arguments) => check_config::run(arguments),
        Command::Urls(arguments) => urls::run(&arguments),
        Command::Hosts(arguments) => hosts::run(&arguments),
        Command::Seeds(arguments) => seeds::run(&arguments),
        Command::Why(arguments) => why::run(&arguments),
        Command::Scope(command) => scope::run(command),
        Command::Store(arguments) => store::run(arguments),
        Command::Inspect(inspect) => inspect::run(inspect),
        Command::Identity(arguments) => identity::run(&arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Web(arguments) => web::run(arguments),
    }
}

/// Prints clap's message, a mistake or the requested help; returns the exit code.
pub fn explain(message: &clap::Error) -> u8 {
    if message.use_stderr() {
        // Without clap's colours: the message shows arguments, which may be text from others.
        output::text(&message.render().to_string());
        return MISTAKE;
    }
    match message.print() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            output::tell!("ringcrawl: cannot write to standard output: {error}");
            FAILED
        }
        _ => DONE,
    }
}

/// Exit code of success.
pub const DONE: u8 = 0;
/// Exit code when the system or the disk failed, or a check found something.
pub const FAILED: u8 = 1;
/// Exit code of an operator's mistake.
pub const MISTAKE: u8 = 2;
/// Exit code of a crawl that has ended without a page from any seed.
const NO_PAGE: u8 = 3;
