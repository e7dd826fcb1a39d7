//! `ringcrawl inspect response`: stub.

use std::process::ExitCode;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Response {}

/// Runs it.
pub fn run(_arguments: Response) -> ExitCode {
    ExitCode::FAILURE
}
