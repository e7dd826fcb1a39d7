//! `store verify`: problems on stdout, one a line; a summary on stderr.
//!
//! Decides: a line is `FILE: offset N: RECORD-ID: what`; in an index, `line N`. An unknown value is `-`.

use std::io::{self, Write};
use std::path::PathBuf;

use super::{column, folder, opened, with_path};
use crate::cli::output::tell;
use crate::cli::{DONE, FAILED};
use ringcrawl_warc::verify::{Location, index_path, verify_file};

/// Arguments of `store verify`.
#[derive(clap::Args, Debug)]
pub struct Verify {
    /// Crawl directories or WARC files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

/// Runs it.
pub fn run(arguments: &Verify, out: &mut impl Write) -> io::Result<u8> {
    let (mut files, mut records, mut digests, mut index_lines, mut problems) = (0u64, 0u64, 0u64, 0u64, 0u64);
    let folder = folder(&arguments.paths)?;
    for oddity in &folder.oddities {
        problems += 1;
        writeln!(out, "{}: -: -: {}", oddity.path.display(), oddity.what)?;
    }
    for path in folder.segments {
        let report = opened(&path, verify_file).map_err(|error| with_path(&path, &error))?;
        files += 1;
        records += report.records;
        digests += report.digests;
        index_lines += report.index_lines.unwrap_or(0);
        problems += report.problem_count;
        for problem in &report.problems {
            let index = || index_path(&path).unwrap_or_else(|| path.clone());
            let (file, location) = match problem.location {
                Location::Offset(offset) => (path.clone(), format!("offset {offset}")),
                Location::IndexLine(line) => (index(), format!("line {line}")),
                Location::Index => (index(), "-".to_owned()),
            };
            let id = if problem.record_id.is_empty() { "-" } else { &problem.record_id };
            writeln!(out, "{}: {location}: {}: {}", file.display(), column(id), column(&problem.what))?;
        }
        for note in &report.notes {
            tell!("{}: note: {note}", path.display());
        }
    }
    tell!(
        "{}, {}, {}, {} checked: {}",
        counted(files, "file"),
        counted(records, "record"),
        counted(digests, "digest"),
        counted(index_lines, "index line"),
        counted(problems, "problem")
    );
    Ok(if problems == 0 && files > 0 { DONE } else { FAILED })
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
