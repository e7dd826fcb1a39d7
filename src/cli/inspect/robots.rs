//! `ringcrawl inspect robots`: whether a robots.txt lets an agent fetch a URL.
//!
//! Decides: the URL is compared as given, as in Google's own tool; the crawler compares the form that `inspect url`
//! prints. A path alone is enough. TOKEN is the product token, not the whole User-Agent field.
//!
//! Exit codes: 0 an answer, 1 the file cannot be read, 2 a malformed line or argument.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use base64::Engine;
use serde::{Deserialize, Serialize};

use super::url::jsonl;
use crate::cli::output::{self, tell};
use ringcrawl_robots::{Rules, path_of};

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Robots {
    /// The product token of the agent, such as ExampleBot.
    #[arg(long, value_name = "TOKEN", required_unless_present = "jsonl")]
    agent: Option<String>,
    /// The robots.txt; - for standard input.
    #[arg(value_name = "FILE", required_unless_present = "jsonl")]
    file: Option<PathBuf>,
    /// The URL, or its path.
    #[arg(value_name = "URL", required_unless_present = "jsonl")]
    url: Option<String>,
    /// Read {"robots":…,"agent":…,"url":…} lines, print {"allowed":true|false} for each.
    #[arg(long, conflicts_with_all = ["agent", "file", "url"])]
    jsonl: bool,
}

/// The robots.txt as text, or its bytes as base64 if they are not text.
#[derive(Deserialize)]
struct Question {
    #[serde(alias = "robots_txt")]
    robots: Option<String>,
    robots_base64: Option<String>,
    #[serde(alias = "user_agent")]
    agent: String,
    url: String,
}

#[derive(Serialize)]
struct Answer {
    allowed: bool,
}

/// Runs it.
pub fn run(arguments: Robots) -> ExitCode {
    if arguments.jsonl {
        return jsonl::answer_lines(|question: Question| {
            let body = match (question.robots, question.robots_base64) {
                (Some(text), _) => text.into_bytes(),
                (None, Some(base64)) => base64::engine::general_purpose::STANDARD
                    .decode(base64)
                    .map_err(|error| format!("robots_base64: {error}"))?,
                (None, None) => return Err("missing field `robots`".to_owned()),
            };
            Ok(Answer { allowed: allows(&body, &question.agent, &question.url) })
        });
    }
    let file = arguments.file.unwrap_or_default();
    let body = match read(&file) {
        Ok(body) => body,
        Err(error) => {
            tell!("{}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    };
    let allowed = allows(&body, &arguments.agent.unwrap_or_default(), &arguments.url.unwrap_or_default());
    ExitCode::from(output::print(if allowed { "allow\n" } else { "disallow\n" }))
}

/// The default of `robots.body_bytes_max`.
const BODY_BYTES_MAX: usize = 512 * 1024;

fn allows(body: &[u8], agent: &str, url: &str) -> bool {
    Rules::parse(body, agent, BODY_BYTES_MAX).allows(&path_of(url))
}

fn read(file: &PathBuf) -> io::Result<Vec<u8>> {
    // Reading one byte more than is parsed shows that the rest was cut off.
    let limit = BODY_BYTES_MAX as u64 + 1;
    let mut body = Vec::new();
    if file.as_os_str() == "-" {
        io::stdin().lock().take(limit).read_to_end(&mut body)?;
    } else {
        std::fs::File::open(file)?.take(limit).read_to_end(&mut body)?;
    }
    Ok(body)
}
