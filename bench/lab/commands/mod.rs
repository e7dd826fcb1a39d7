//! The command line of `ringcrawl-lab`: one file per subcommand.
//!
//! Exit codes: 0 success, 1 failure, 2 an operator's mistake.

mod lab;
mod plan;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ringcrawl::cli::{explain, output};

#[derive(Parser)]
#[command(
    name = "ringcrawl-lab",
    version,
    about = "Experiments with partitions and modes, and assignments by links",
    propagate_version = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare assignments of sites and pages to shards by their links, as an earlier crawl or a file has them.
    Plan(Box<plan::Plan>),
    /// Crawl the graph of a web in every combination of partition, mode, order, seeds and number of shards, and measure it as the papers do.
    Lab(Box<lab::Lab>),
}

/// Runs the command line.
pub fn main() -> ExitCode {
    output::watch_panics();
    match Arguments::try_parse() {
        Ok(Arguments { command: Command::Plan(arguments) }) => plan::run(&arguments),
        Ok(Arguments { command: Command::Lab(arguments) }) => lab::run(&arguments),
        Err(message) => ExitCode::from(explain(&message)),
    }
}
