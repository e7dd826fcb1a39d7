//! `ringcrawl web`: stub.

use std::process::ExitCode;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Web {}

/// Runs it.
pub fn run(_arguments: Web) -> ExitCode {
    ExitCode::FAILURE
}
