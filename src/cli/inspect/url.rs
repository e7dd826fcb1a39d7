//! `ringcrawl inspect url`: stub.

use std::process::ExitCode;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Url {}

/// Runs it.
pub fn run(_arguments: Url) -> ExitCode {
    ExitCode::FAILURE
}
