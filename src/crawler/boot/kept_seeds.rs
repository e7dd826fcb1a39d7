//! `seeds`: every seed that a crawl was ever given, one per line with its options.
//!
//! Decides: from the second round on, the first line has the round of the seeds. If the file cannot be read, the
//! error names the line. The caller decides what a missing file means, as a crawl can be given its seeds again.
//! Invariants: it is written atomically (`sealed_file`).

use std::io;
use std::path::Path;

use super::dir_error::DirError;
use super::manifest::{self, Manifest};
use super::sealed_file;
use ringcrawl_brain::seed::{Seed, SeedOptions};
use ringcrawl_url::Url;

/// The seeds of all runs in `root`; none when there is no crawl.
pub fn kept_seeds(root: &Path) -> Result<Vec<Seed>, DirError> {
    match manifest::read(root)? {
        Some(manifest) => read(root, &manifest).map(|(seeds, _)| seeds.unwrap_or_default()),
        None => Ok(Vec::new()),
    }
}

/// The seeds of earlier runs, `None` when there is no file, and their round.
pub(super) fn read(root: &Path, manifest: &Manifest) -> Result<(Option<Vec<Seed>>, u32), DirError> {
    let path = root.join(SEEDS);
    let text = match sealed_file::read(&path, &manifest.crawl_id) {
        Ok(None) => return Ok((None, 1)),
        Ok(Some(Ok(text))) => text,
        Ok(Some(Err(why))) => return Err(DirError::Seeds(path, why.to_string())),
        Err(error) => return Err(DirError::Io(path, error)),
    };
    let seed = |(index, line): (usize, &str)| {
        let wrong = |why: String| DirError::Seeds(path.clone(), format!("line {}: {why}", index + 1));
        let (url, options) = line.split_once(' ').map_or((line, None), |(url, options)| (url, Some(options)));
        let url = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        let options = options.map(SeedOptions::parse).transpose().map_err(wrong)?.map(Box::new);
        Ok(Seed { url, options })
    };
    let round = text.lines().next().and_then(|line| line.strip_prefix(ROUND)?.parse().ok());
    let lines = text.lines().enumerate().skip(usize::from(round.is_some()));
    Ok((Some(lines.map(seed).collect::<Result<_, _>>()?), round.unwrap_or(1)))
}

/// Writes them into `root`.
pub(super) fn write(root: &Path, crawl_id: &str, seeds: &[Seed], round: u32) -> io::Result<()> {
    let head = if round > 1 { format!("{ROUND}{round}\n") } else { String::new() };
    let lines: String = std::iter::once(head).chain(seeds.iter().map(|seed| format!("{seed}\n"))).collect();
    sealed_file::write(root, SEEDS, crawl_id, &lines)
}

/// The file's name.
pub(super) const SEEDS: &str = "seeds";
/// The beginning of its first line from the second round on, before the number.
const ROUND: &str = "# round ";
