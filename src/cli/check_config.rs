//! `ringcrawl check-config`: stub.

use std::process::ExitCode;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct CheckConfig {}

/// Runs it.
pub fn run(_arguments: CheckConfig) -> ExitCode {
    ExitCode::FAILURE
}
