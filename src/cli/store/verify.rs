//! `store verify`: problems on stdout, one a line; a summary on stderr.
//!
//! Decides: a line is `FILE: offset N: RECORD-ID: what`; for an index, `line N`.

use std::io::{self, Write};
use std::path::PathBuf;

use super::{printable, segments, with_path};
use crate::cli::output::tell;
use crate::cli::{DONE, FAILED};
use crate::store::verify::verify_file;

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
    for path in segments(&arguments.paths)? {
        let report = verify_file(&path).map_err(|error| with_path(&path, &error))?;
        files += 1;
        records += report.records;
        digests += report.digests;
        index_lines += report.index_lines.unwrap_or(0);
        problems += report.problem_count;
        for problem in &report.problems {
            let place = if problem.what.starts_with("index: line") || problem.what.starts_with("index: two") {
                "line"
            } else {
                "offset"
            };
            let id = if problem.record_id.is_empty() { "-" } else { &problem.record_id };
            writeln!(
                out,
                "{}: {place} {}: {}: {}",
                path.display(),
                problem.at,
                printable(id),
                printable(&problem.what)
            )?;
        }
        for note in &report.notes {
            tell!("{}: note: {note}", path.display());
        }
    }
    tell!(
        "{files} files, {records} records, {digests} digests, {index_lines} index lines checked: {problems} problems"
    );
    Ok(if problems == 0 && files > 0 { DONE } else { FAILED })
}
