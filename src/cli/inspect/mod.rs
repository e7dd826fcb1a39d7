//! `ringcrawl inspect`: how the crawler reads one file, for people who ask "why?" and for conformance tests.

mod links;
mod response;
mod robots;
mod url;

use std::process::ExitCode;

use clap::Subcommand;

/// What to inspect.
#[derive(Subcommand, Debug)]
pub enum Inspect {
    /// The links of an HTML page, one a line, in document order.
    Links(links::Links),
    /// A URL reference as the crawler resolves and writes it.
    Url(url::Url),
    /// Whether a robots.txt lets an agent fetch a URL.
    Robots(robots::Robots),
    /// An HTTP/1.x response as it came over a connection that then closed, as JSON.
    Response(response::InspectResponse),
}

/// Runs it.
pub fn run(inspect: Inspect) -> ExitCode {
    match inspect {
        Inspect::Links(arguments) => links::run(arguments),
        Inspect::Url(arguments) => url::run(arguments),
        Inspect::Robots(arguments) => robots::run(arguments),
        Inspect::Response(arguments) => response::run(arguments),
    }
}
