//! `ringcrawl check-config`: checks a configuration and prints what it amounts to.
//!
//! Decides: exit code 2 means an operator's mistake, so that a service manager that checks before starting can
//! distinguish it from a crash. As at the start of a crawl, the command checks that this machine has the memory the
//! crawl needs, and reads certificates, addresses and the files of the scope. Errors go to stderr, one line each;
//! requested output goes to stdout.
//! Leaves to others: everything about configurations (`config`).

use std::path::PathBuf;
use std::process::ExitCode;

use super::MISTAKE;
use super::output::{self, tell};
use ringcrawl_config::{Config, ConfigError};
use ringcrawl_crawler::boot;
use ringcrawl_crawler::fetch;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct CheckConfig {
    /// The file to check.
    #[arg(required_unless_present = "example")]
    file: Option<PathBuf>,
    /// Override one key for this check; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print the effective configuration: every key, defaults included, without the text of any secret.
    #[arg(long)]
    print: bool,
    /// Print the annotated example: every key at its default, with its reason and range.
    #[arg(long, conflicts_with_all = ["file", "print", "set"])]
    example: bool,
}

/// Runs it.
pub fn run(arguments: CheckConfig) -> ExitCode {
    let Some(file) = &arguments.file else {
        return print(&Config::annotated());
    };
    let loaded = load(file, &arguments.set);
    if let Ok(config) = &loaded {
        match boot::check_memory(config)
            .and_then(|()| fetch::check(config).map_err(|error| error.to_string()))
            .and_then(|()| boot::ScopeFiles::read(config).map_err(|errors| errors.join("\n")))
        {
            Ok(files) => files.notes.iter().chain(&boot::notes(config)).for_each(|note| tell!("{note}")),
            Err(error) => {
                tell!("{error}");
                return ExitCode::from(MISTAKE);
            }
        }
    }
    match loaded {
        // "ok" as a comment: the output is itself a valid configuration.
        Ok(config) if arguments.print => print(&format!("# ok\n{}", config.to_toml())),
        Ok(_) => print("ok\n"),
        Err(errors) => {
            for error in errors {
                tell!("{error}");
            }
            ExitCode::from(MISTAKE)
        }
    }
}

/// The file's configuration with the overrides applied; all errors of both.
fn load(file: &PathBuf, overrides: &[String]) -> Result<Config, Vec<ConfigError>> {
    let loaded = Config::load(file);
    let (mut config, mut errors) = match loaded {
        Ok(config) => (config, Vec::new()),
        Err(errors) => (Config::default(), errors),
    };
    let faults_in_file = !errors.is_empty();
    errors.extend(overrides.iter().filter_map(|pair| set(&mut config, pair).err()));
    if !faults_in_file && let Err(clashes) = config.check() {
        errors.extend(clashes);
    }
    if errors.is_empty() { Ok(config) } else { Err(errors) }
}

/// Applies one `--set`: `KEY=VALUE`.
pub(super) fn set(config: &mut Config, pair: &str) -> Result<(), ConfigError> {
    let is_of_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_');
    match pair.split_once('=') {
        Some((key, value)) => config.set(key.trim(), value.trim()).map_err(|error| one_by_one(error, key, value)),
        // Only the key is shown: the rest may be a secret.
        None => Err(ConfigError {
            file: "--set".to_owned(),
            line: 0,
            column: 0,
            key: if pair.bytes().all(is_of_key) { pair.to_owned() } else { String::new() },
            message: "no \"=\"; expected table.key=value".to_owned(),
        }),
    }
}

/// Explains what to do when a value continues with further keys. No value is shown: it may be a secret.
fn one_by_one(error: ConfigError, key: &str, value: &str) -> ConfigError {
    let key_of = |pair: &str| {
        let key = pair.split_once('=')?.0.trim();
        let is_key =
            key.contains('.') && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'));
        is_key.then(|| key.to_owned())
    };
    let further: Vec<String> = value.split(',').skip(1).filter_map(key_of).collect();
    if further.is_empty() {
        return error;
    }
    let options: Vec<String> = std::iter::once(key.trim())
        .chain(further.iter().map(String::as_str))
        .map(|key| format!("--set {key}=…"))
        .collect();
    let message = format!("set several keys one by one: {}", options.join(" "));
    ConfigError { message, ..error }
}

fn print(text: &str) -> ExitCode {
    ExitCode::from(output::print(text))
}
