//! A configuration as text: the annotated example, and the effective one.
//!
//! Decides: the example holds every key at its default, live and not commented out, so that you can change it in
//! place and see at a glance what runs. Range and default stand in a comment next to it, so that they are still known
//! after the value is changed. Host lines, which have no default entries, are commented out. The text is that of
//! `tuning/ringcrawl.toml`; a test holds them equal.
//! Invariants: what is written here reads back as the same configuration.
//! Leaves to others: the words about each key (`keys`).

use std::fmt::Write as _;

use super::host_lines;
use super::keys::{Config, ConfigKey, TABLES};
use super::kind::Kind;
use super::parse::VERSION;

/// The header of the example.
const HEAD: &str = "\
# ringcrawl's configuration: every key, at its default. Keys that you omit keep their defaults.
#
# Durations are a whole number and ms, s, m, h or d: \"250ms\", \"10s\", \"5m\", \"24h\".
# Sizes are a whole number and B, KiB, MiB, GiB or TiB, powers of 1024: \"64KiB\", \"1GiB\".
# Plain numbers are counts; underscores may separate the digits.
#
# Check a changed copy with `ringcrawl check-config FILE`. Override one value for one run with
# `--set table.key=value`. Print this file with `ringcrawl check-config --example`.

# The version of this file's format, so that a later ringcrawl can tell what it was written for.
";

/// The example file.
pub(super) fn annotated() -> String {
    let mut text = format!("{HEAD}version = {VERSION}\n");
    let config = Config::default();
    for table in TABLES {
        text.push('\n');
        comment(&mut text, table.docs);
        let _ = writeln!(text, "[{}]", table.name);
        for key in table.keys {
            text.push('\n');
            comment(&mut text, key.docs);
            // Its lines are tables of their own, so they come after all other keys of the table.
            if matches!(key.kind, Kind::HostLines) {
                text.push_str(host_lines::example());
                continue;
            }
            takes(&mut text, key, &config);
            line(&mut text, key, &config);
        }
    }
    text
}

/// Every key with its value, without comments.
pub(super) fn plain(config: &Config) -> String {
    let mut text = format!("version = {VERSION}\n");
    for table in TABLES {
        let _ = writeln!(text, "\n[{}]", table.name);
        for key in table.keys {
            line(&mut text, key, config);
        }
    }
    text
}

fn line(text: &mut String, key: &ConfigKey, config: &Config) {
    let _ = writeln!(text, "{} = {}", key.name, key.kind.format(&(key.get)(config)));
}

fn comment(text: &mut String, docs: &[&str]) {
    for doc in docs {
        let _ = writeln!(text, "# {}", doc.trim());
    }
}

/// What the key takes, each choice with its meaning, and the default.
fn takes(text: &mut String, key: &ConfigKey, config: &Config) {
    let default = key.kind.format(&(key.get)(config));
    match key.kind {
        Kind::Choice(choices) => {
            for (word, meaning) in choices {
                let _ = writeln!(text, "#   \"{word}\": {}", meaning.trim());
            }
            let _ = writeln!(text, "# Default {default}.");
        }
        kind => {
            let takes = kind.takes();
            let joint = if takes.len() + default.len() < LINE_BYTES_MAX { " " } else { "\n# " };
            let _ = writeln!(text, "# Takes {takes}.{joint}Default {default}.");
        }
    }
}

/// A longer comment puts the default on a line of its own.
const LINE_BYTES_MAX: usize = 100;
