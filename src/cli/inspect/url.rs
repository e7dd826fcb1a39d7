//! `ringcrawl inspect url`: a reference as the WHATWG standard resolves and writes it.
//!
//! Decides: any scheme, with fragment and credentials. The answer is the standard's, so that it can be compared with
//! a browser's and with the standard's own vectors. The crawler's further rules (http and https alone, no fragment,
//! no credentials) are in `url`.
//!
//! Exit codes: 0 a URL, 1 no URL (the reason on standard error), 2 a malformed line or argument.

pub(super) mod jsonl;

use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use crate::cli::output::{self, tell};
use ringcrawl_url::Absolute;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Url {
    /// The URL, absolute or relative to the base.
    #[arg(value_name = "REF", required_unless_present = "jsonl")]
    reference: Option<String>,
    /// What REF is relative to.
    #[arg(long, value_name = "URL")]
    base: Option<String>,
    /// Read {"input":…,"base":…|null} lines, print {"href":…} or {"failure":true} for each.
    #[arg(long, conflicts_with_all = ["reference", "base"])]
    jsonl: bool,
}

#[derive(Deserialize)]
struct Question {
    input: String,
    #[serde(default)]
    base: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Href(String),
    Failure(bool),
}

/// Runs it.
pub fn run(arguments: Url) -> ExitCode {
    if arguments.jsonl {
        return jsonl::answer_lines(|question: Question| {
            Ok(resolve(question.base.as_deref(), &question.input).map_or(Answer::Failure(true), Answer::Href))
        });
    }
    match resolve(arguments.base.as_deref(), &arguments.reference.unwrap_or_default()) {
        Ok(url) => ExitCode::from(output::print(&format!("{url}\n"))),
        Err(reason) => {
            tell!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn resolve(base: Option<&str>, reference: &str) -> Result<String, String> {
    let base = base.map(Absolute::parse).transpose().map_err(|error| format!("base is {error}"))?;
    let url = Absolute::resolve(base.as_ref(), reference, encoding_rs::UTF_8).map_err(|error| error.to_string())?;
    Ok(url.into_text())
}
