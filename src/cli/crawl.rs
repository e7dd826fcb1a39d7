//! `ringcrawl crawl`: stub.

use std::process::ExitCode;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Crawl {}

/// Runs it.
pub fn run(_arguments: Crawl) -> ExitCode {
    ExitCode::FAILURE
}
