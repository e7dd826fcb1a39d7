//! Writes the rows of an experiment: `lab.csv`, the figures, and a table for people.
//!
//! Decides: a row is in the file as soon as its crawl has ended.
//! Leaves to others: columns and figures (`crate::experiment`).

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{LabFailure, failed, mistake};
use crate::experiment::{self, ExperimentRow};
use ringcrawl_base::grouped;

/// `lab.csv` and the figures.
pub struct Table {
    out: Option<(PathBuf, File)>,
}

impl Table {
    /// In `out`, a new or empty directory; without `out` no file is written.
    ///
    /// # Errors
    /// The directory cannot be made (a mistake), or the file cannot be written.
    pub fn new(out: Option<&Path>) -> Result<Table, LabFailure> {
        let Some(out) = out else { return Ok(Table { out: None }) };
        fs::create_dir_all(out).map_err(|error| mistake(format!("{}: {error}", out.display())))?;
        let path = out.join("lab.csv");
        let named = |error: io::Error| failed(format!("{}: {error}", path.display()));
        let mut file = File::options().write(true).create_new(true).open(&path).map_err(named)?;
        file.write_all(ExperimentRow::columns().as_bytes()).map_err(named)?;
        Ok(Table { out: Some((out.to_owned(), file)) })
    }

    /// Writes a complete row at once.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, row: &ExperimentRow) -> Result<(), LabFailure> {
        let Some((out, file)) = &mut self.out else { return Ok(()) };
        let written = file.write_all(row.line().as_bytes());
        written.map_err(|error| failed(format!("{}: {error}", out.join("lab.csv").display())))
    }

    /// Draws all figures that these rows have points for.
    ///
    /// # Errors
    /// One of them cannot be written.
    pub fn draw(&self, rows: &[ExperimentRow]) -> Result<(), LabFailure> {
        let Some((out, _)) = &self.out else { return Ok(()) };
        experiment::figures(rows).iter().try_for_each(|figure| experiment::draw(figure, out)).map_err(failed)
    }
}

/// The columns that most people look at. The rest is in the table and in `--json`.
pub fn as_text(rows: &[ExperimentRow]) -> String {
    let wide = |of: fn(&ExperimentRow) -> &str, head: &str| {
        rows.iter().map(|row| of(row).len()).chain([head.len()]).max().unwrap_or_default()
    };
    let (partition, mode, order) =
        (wide(|row| &row.partition, "partition"), wide(|row| &row.mode, "mode"), wide(|row| &row.order, "order"));
    let heads = format!(
        "{:<partition$}  {:<mode$}  {:<order$} {:>8} {:>4} {:>4} {:>11} {:>8} {:>8} {:>10} {:>11} {:>9} {:>8} {:>12}\n",
        "partition",
        "mode",
        "order",
        "seeds",
        "K",
        "rng",
        "pages",
        "overlap",
        "coverage",
        "quality_50",
        "crossing",
        "sent/page",
        "balance",
        "seconds"
    );
    let mut text = heads;
    for row in rows {
        let sent = row.urls_sent_per_page.map_or("-".to_owned(), |sent| format!("{sent:.4}"));
        let seeds = row.seeds.map_or("-".to_owned(), grouped);
        let _ = writeln!(
            text,
            "{:<partition$}  {:<mode$}  {:<order$} {seeds:>8} {:>4} {:>4} {:>11} {:>8.4} {:>8.4} {:>10.4} {:>11} {sent:>9} {:>8.3} {:>12.1}",
            row.partition,
            row.mode,
            row.order,
            row.shards,
            row.rng_seed,
            grouped(row.pages),
            row.overlap,
            row.coverage,
            row.quality[4],
            grouped(row.links_crossing),
            row.balance_pages,
            row.seconds
        );
    }
    text
}
