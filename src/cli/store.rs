//! `ringcrawl store`: stub.

use std::process::ExitCode;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Store {}

/// Runs it.
pub fn run(_arguments: Store) -> ExitCode {
    ExitCode::FAILURE
}
