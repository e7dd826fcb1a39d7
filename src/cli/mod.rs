//! The command line: one file per subcommand.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "ringcrawl", version, about, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {}

/// Runs the command line; the exit code is 0 for success, 1 for failure, 2 for an operator's mistake.
pub fn main() -> ExitCode {
    match Arguments::parse().command {}
}
