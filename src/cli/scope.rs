//! `ringcrawl scope`: shows the effect of a configuration's rules and lists.
//!
//! Decides: `scope test` says what decides on each URL at each stage, as the crawl would. A URL that cannot be read
//! is reported, and the others are tested. Exit codes: 0 all were tested, 2 an operator's mistake.
//! Leaves to others: the verdicts (`scope`), the files (`boot`).

use std::fmt::Write as _;
use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::output::{Stdout, tell};
use super::{DONE, FAILED, MISTAKE};
use ringcrawl_brain::hops::Hops;
use ringcrawl_brain::scope::{BlockedBy, Decider, Scope, ScopeVerdict, Stage, Subject};
use ringcrawl_config::{Config, SeedErrors};
use ringcrawl_crawler::boot::{self, ScopeFiles};
use ringcrawl_url::Url;

/// What to do with a scope.
#[derive(Subcommand, Debug)]
pub enum ScopeCommand {
    /// Which rule, list or limit decides on URLs, at each stage.
    Test(Test),
}

/// Arguments of `scope test`.
#[derive(clap::Args, Debug)]
pub struct Test {
    /// The URLs; without any they are read from standard input, one a line.
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Configuration file (TOML).
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Rules, instead of those of scope.rules.
    #[arg(long, value_name = "FILE")]
    rules: Option<String>,
    /// A block list, instead of those of scope.block; may be given several times.
    #[arg(long, value_name = "FILE")]
    block: Vec<PathBuf>,
    /// The crawl's seeds, for scope.follow; may be given several times.
    #[arg(long = "seed", value_name = "URL")]
    seeds: Vec<String>,
    /// Links from a seed to the URLs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    depth: u16,
    /// Hops off-site to the URLs.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offsite: u16,
    /// Pages embed the URLs, such as images; --depth and --offsite are then those of an embed, which is as deep as its page.
    #[arg(long)]
    embed: bool,
    /// Content-Type of the responses, for the stages follow and store.
    #[arg(long = "type", value_name = "TYPE")]
    content_type: Option<String>,
    /// One stage alone: schedule, fetch, follow or store.
    #[arg(long, value_name = "STAGE", value_parser = read_stage)]
    stage: Option<Stage>,
    /// Explain why each rule before the deciding one does not match, and what scope.follow goes by.
    #[arg(long)]
    explain: bool,
    /// A JSON object for each URL, one a line.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(command: ScopeCommand) -> ExitCode {
    let ScopeCommand::Test(test) = command;
    let scope = match scope(&test) {
        Ok(scope) => scope,
        Err(mistakes) => {
            mistakes.iter().for_each(|mistake| tell!("ringcrawl: {mistake}"));
            return ExitCode::from(MISTAKE);
        }
    };
    let mut stdout = Stdout::new();
    let tested = if test.urls.is_empty() {
        let lines = io::stdin().lock().lines();
        lines.map(|line| line.and_then(|line| test_url(&test, &scope, line.trim(), &mut stdout))).try_fold(true, both)
    } else {
        test.urls.iter().map(|url| test_url(&test, &scope, url, &mut stdout)).try_fold(true, both)
    };
    ExitCode::from(match tested.and_then(|all| stdout.flush().map(|()| all)) {
        Ok(true) => DONE,
        Ok(false) => MISTAKE,
        Err(error) => stdout.code_of(&error).unwrap_or_else(|| {
            tell!("ringcrawl: standard input: {error}");
            FAILED
        }),
    })
}

fn both(before: bool, is_tested: io::Result<bool>) -> io::Result<bool> {
    is_tested.map(|is_tested| before && is_tested)
}

fn read_stage(name: &str) -> Result<Stage, String> {
    Stage::named(name).ok_or_else(|| format!("expected {}", Stage::ALL.map(Stage::as_str).join(", ")))
}

/// The scope of a crawl with these arguments; or every mistake.
fn scope(test: &Test) -> Result<Scope, Vec<String>> {
    let mut config = match &test.config {
        Some(file) => {
            Config::load(file).map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?
        }
        None => Config::default(),
    };
    if let Some(rules) = &test.rules {
        config.scope.rules.clone_from(rules);
    }
    if !test.block.is_empty() {
        config.scope.block.clone_from(&test.block);
    }
    let seeds = boot::read_seeds(&test.seeds, &[] as &[PathBuf], SeedErrors::Refuse)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let files = ScopeFiles::read(&config)?;
    files.notes.iter().for_each(|note| tell!("ringcrawl: {note}"));
    Ok(files.of(&Scope::of_seeds(&config, &seeds.seeds)))
}

/// Tests one URL; returns whether it is one.
fn test_url(test: &Test, scope: &Scope, text: &str, out: &mut Stdout) -> io::Result<bool> {
    if text.is_empty() {
        return Ok(true);
    }
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => {
            tell!("ringcrawl: {text:?}: {error}; expected a URL such as https://example.org/");
            return Ok(false);
        }
    };
    let hops = (0..test.depth).take(usize::from(u8::MAX)).fold(Hops::default(), |hops, _| hops.link());
    let hops = if test.embed { hops.embed() } else { hops };
    let content_type = test.content_type.as_deref().map(str::as_bytes);
    let subject = Subject::new(&url, hops.with_offsite(test.offsite)).with_type(content_type);
    let stages = Stage::ALL.into_iter().filter(|stage| test.stage.is_none_or(|only| only == *stage));
    let verdicts: Vec<(Stage, ScopeVerdict)> = stages.map(|stage| (stage, scope.explain(stage, &subject))).collect();
    let shown = if test.json { as_json(test, &url, &verdicts) } else { as_text(test, &url, &verdicts) };
    out.write_all(shown.as_bytes())?;
    Ok(true)
}

fn as_text(test: &Test, url: &Url, verdicts: &[(Stage, ScopeVerdict)]) -> String {
    let mut text = format!("{url}\n");
    for (stage, verdict) in verdicts {
        let word = if verdict.is_allowed { "allow" } else { "deny" };
        let by = match &verdict.by {
            Decider::Key(key) => (*key).to_owned(),
            Decider::Rule { line, text } => format!("line {line}: {text}"),
            Decider::Blocked(by) => format!("scope.block: {}", blocked_by(by)),
            Decider::Nothing => "no rule".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {stage:<8} {word:<5} {by}");
        if test.explain && !verdict.why.is_empty() {
            let _ = writeln!(text, "    {}", verdict.why);
        }
        for passed in verdict.passed.iter().filter(|_| test.explain) {
            let _ = writeln!(text, "    not line {}: {} ({})", passed.line, passed.text, passed.why);
        }
        // A URL that is not queued never reaches the other stages.
        if !verdict.is_allowed && *stage == Stage::Schedule {
            break;
        }
    }
    text
}

fn blocked_by(by: &BlockedBy) -> String {
    match by {
        BlockedBy::Name(name) => name.clone(),
        BlockedBy::Url => "its URL".to_owned(),
        BlockedBy::Address => "its address".to_owned(),
    }
}

fn as_json(test: &Test, url: &Url, verdicts: &[(Stage, ScopeVerdict)]) -> String {
    let mut stages = serde_json::Map::new();
    for (stage, verdict) in verdicts {
        let mut told = json!({ "allowed": verdict.is_allowed });
        match &verdict.by {
            Decider::Key(key) => told["by"] = json!(key),
            Decider::Rule { line, text } => told["by"] = json!({ "line": line, "rule": text }),
            Decider::Blocked(by) => told["by"] = json!({ "block": blocked_by(by) }),
            Decider::Nothing => told["by"] = json!(null),
        }
        if test.explain {
            let passed = verdict.passed.iter();
            told["passed"] =
                passed.map(|passed| json!({ "line": passed.line, "rule": passed.text, "why": passed.why })).collect();
            if !verdict.why.is_empty() {
                told["why"] = json!(verdict.why);
            }
        }
        stages.insert(stage.as_str().to_owned(), told);
    }
    let told = json!({ "url": url.as_str(), "depth": test.depth, "offsite": test.offsite, "embed": test.embed, "stages": stages });
    format!("{told}\n")
}
