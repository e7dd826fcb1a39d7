//! `ringcrawl inspect robots`: stub.

use std::process::ExitCode;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Robots {}

/// Runs it.
pub fn run(_arguments: Robots) -> ExitCode {
    ExitCode::FAILURE
}
