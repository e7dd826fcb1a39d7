//! `ringcrawl inspect links`: stub.

use std::process::ExitCode;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Links {}

/// Runs it.
pub fn run(_arguments: Links) -> ExitCode {
    ExitCode::FAILURE
}
