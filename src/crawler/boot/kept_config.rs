//! `config.toml`: the configuration of a crawl's last run, without the texts of secrets.
//!
//! Decides: a run without a configuration of its own continues with this one. Changes from it are reported, one line
//! per key. If another version wrote it and this one cannot read it, the error says so.
//! Invariants: it is written atomically (`sealed_file`).

use std::io;
use std::path::Path;

use super::dir_error::DirError;
use super::manifest::Manifest;
use super::{redistribution, sealed_file};
use ringcrawl_config::{Change, Config, Crawl};

/// The configuration of the last run in `root`; `None` when there is no crawl.
pub fn kept_config(root: &Path) -> Result<Option<Config>, DirError> {
    if root.exists() && !root.is_dir() {
        return Err(DirError::NoDirectory(root.to_owned()));
    }
    match redistribution::manifest(root)? {
        // A run that was killed between the two has written its logs for other shards, but not this file. They must
        // not be moved back.
        Some(manifest) => read(root, &manifest)
            .map(|config| Some(Config { crawl: Crawl { shards: manifest.shards.into(), ..config.crawl }, ..config })),
        None => Ok(None),
    }
}

/// The configuration of the last run.
pub(super) fn read(root: &Path, manifest: &Manifest) -> Result<Config, DirError> {
    let path = root.join(CONFIG);
    let text = match sealed_file::read(&path, &manifest.crawl_id) {
        Ok(None) => return Err(DirError::Config(path, "it is missing".to_owned())),
        Ok(Some(Ok(text))) => text,
        Ok(Some(Err(why))) => return Err(DirError::Config(path, why.to_string())),
        Err(error) => return Err(DirError::Io(path, error)),
    };
    Config::parse(&text, "").map_err(|errors| {
        let by = text.lines().find_map(|line| line.strip_prefix(WRITTEN_BY)).unwrap_or("another version");
        let first = errors.first().map(|error| format!("line {}: {error}", error.line));
        let more = if errors.len() > 1 { format!(" (and {} more)", errors.len() - 1) } else { String::new() };
        let why = format!("{by} wrote it, and this version rejects it: {}{more}", first.unwrap_or_default());
        DirError::Config(path, why)
    })
}

/// Writes it.
pub(super) fn write(root: &Path, crawl_id: &str, config: &Config) -> io::Result<()> {
    let text = format!("{CONFIG_HEAD}{}\n{}", written_by(), config.to_toml());
    sealed_file::write(root, CONFIG, crawl_id, &text)
}

/// Changes since the last run, one line per key.
pub(super) fn changes(root: &Path, config: &Config, before: &Config) -> Vec<String> {
    let (path, changes) = (root.join(CONFIG), config.changes_since(before));
    let shown = |value: &str| {
        let short: String = value.chars().take(VALUE_CHARS_MAX).collect();
        if short.len() < value.len() { format!("{short}…") } else { short }
    };
    let line = |change: &Change| {
        let (now, before) = (shown(&change.now), shown(&change.before));
        format!("{}: {} = {now} from now on, was {before}", path.display(), change.key)
    };
    let mut lines: Vec<String> = changes.iter().take(CHANGES_MAX).map(line).collect();
    if changes.len() > CHANGES_MAX {
        lines.push(format!("{}: {} other settings changed", path.display(), changes.len() - CHANGES_MAX));
    }
    lines
}

fn written_by() -> String {
    format!("{WRITTEN_BY}ringcrawl {}", env!("CARGO_PKG_VERSION"))
}

/// The file's name.
pub(super) const CONFIG: &str = "config.toml";
/// The head of the configuration file.
const CONFIG_HEAD: &str = "\
# The settings of this crawl's last run: without -c, the next one goes on with them. They are changed by -c FILE or
# --set KEY=VALUE, not in this file. Texts of secrets are left out.
";
const WRITTEN_BY: &str = "# Written by ";
/// Changed settings that are reported one by one.
const CHANGES_MAX: usize = 20;
/// Longer values are shortened in reports.
const VALUE_CHARS_MAX: usize = 80;
