//! `ringcrawl demo`: stub.

use std::process::ExitCode;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Demo {}

/// Runs it.
pub fn run(_arguments: Demo) -> ExitCode {
    ExitCode::FAILURE
}
