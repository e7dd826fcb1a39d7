//! `store ls`: one line a capture.
//!
//! Decides: columns are separated by tabs; captures are the records of type response, revisit, resource and
//! conversion, but not where hosts were; `--records` shows all, with the type first and the offset last. Damage, and a file without a record,
//! go to stderr, and the list goes on behind them. Where captures are asked for by an option of [`Filter`] and a segment has
//! an index, only the records that the index names are read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::filter::{Facts, Filter};
use super::{column, segments, with_path};
use crate::cli::output::tell;
use crate::cli::{DONE, FAILED};
use crate::store::examine::{Examined, examine, next_examined};
use crate::store::fault::ReadError;
use crate::store::index::{IndexEntry, media_type};
use crate::store::read::{Record, SegmentReader};
use crate::store::verify::index_path;

/// Arguments of `store ls`.
#[derive(clap::Args, Debug)]
pub struct Ls {
    /// Crawl directories or WARC files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// All records: their type, the columns of a capture, their offset.
    #[arg(long)]
    records: bool,
    #[command(flatten)]
    filter: Filter,
}

/// Runs it.
pub fn run(arguments: &Ls, out: &mut impl Write) -> io::Result<u8> {
    let mut code = DONE;
    for path in segments(&arguments.paths)? {
        let reader = match SegmentReader::open(&path) {
            Ok(reader) => reader,
            Err(ReadError::Io(error)) => return Err(with_path(&path, &error)),
            Err(damage) => {
                tell!("{}: {damage}", path.display());
                code = FAILED;
                continue;
            }
        };
        let index =
            index_path(&path).filter(|index| arguments.filter.is_set() && !arguments.records && index.is_file());
        let is_well = match index {
            Some(index) => list_indexed(reader, &path, &index, arguments, out)?,
            None => list_all(reader, &path, arguments, out)?,
        };
        code = if is_well { code } else { FAILED };
    }
    Ok(code)
}

/// Lists what the index names; whether all of it was there.
fn list_indexed(
    mut reader: SegmentReader<File>,
    path: &Path,
    index: &Path,
    arguments: &Ls,
    out: &mut impl Write,
) -> io::Result<bool> {
    let mut is_well = true;
    // The index has no media type of a revisit; its record has.
    let of_revisits = arguments.filter.without_type();
    let lines = BufReader::new(File::open(index).map_err(|error| with_path(index, &error))?);
    for line in lines.lines() {
        let line = line.map_err(|error| with_path(index, &error))?;
        let Some(entry) = IndexEntry::parse(&line) else {
            tell!("{}: no line of an index: {}", index.display(), column(&line));
            is_well = false;
            continue;
        };
        let types = [entry.mime.as_str(), entry.mime_detected.as_str()];
        let facts = Facts { url: &entry.url, timestamp: &entry.timestamp, status: entry.status, types };
        let filter = if entry.is_revisit() { &of_revisits } else { &arguments.filter };
        if !filter.takes(&facts) {
            continue;
        }
        let result = reader.record_at(entry.offset).and_then(|record| match record {
            None => Ok(None),
            Some(record) => examine(&mut reader, &record, false).map(|examined| Some((record, examined))),
        });
        match result {
            Ok(Some((record, examined))) if record.head.target_uri() == entry.url => {
                if !entry.is_revisit() || is_meant(&record, &examined, &arguments.filter) {
                    write_line(&record, &examined, arguments, out)?;
                }
            }
            Ok(_) => {
                let (path, offset) = (path.display(), entry.offset);
                tell!("{path}: offset {offset}: the index has {} here; see store verify", column(&entry.url));
                is_well = false;
            }
            Err(ReadError::Io(error)) => return Err(with_path(path, &error)),
            Err(damage) => {
                tell!("{}: {damage}", path.display());
                is_well = false;
            }
        }
    }
    Ok(is_well)
}

/// Lists what a segment holds; whether nothing was damaged.
fn list_all(mut reader: SegmentReader<File>, path: &Path, arguments: &Ls, out: &mut impl Write) -> io::Result<bool> {
    let mut is_well = true;
    let mut has_any = path.extension().is_some_and(|suffix| suffix == "open");
    loop {
        match next_examined(&mut reader) {
            Ok(None) => break,
            Ok(Some((record, examined))) => {
                has_any = true;
                let kind = record.head.kind();
                let is_capture = match kind.as_str() {
                    "response" | "revisit" | "conversion" => true,
                    "resource" => !record.head.target_uri().starts_with("dns:"),
                    _ => false,
                };
                if (arguments.records || is_capture) && is_meant(&record, &examined, &arguments.filter) {
                    write_line(&record, &examined, arguments, out)?;
                }
            }
            Err(ReadError::Io(error)) => return Err(with_path(path, &error)),
            Err(damage) => {
                tell!("{}: {damage}", path.display());
                (is_well, has_any) = (false, true);
            }
        }
    }
    if !has_any {
        tell!("{}: the file holds no record", path.display());
    }
    Ok(is_well && has_any)
}

fn is_meant(record: &Record, examined: &Examined, filter: &Filter) -> bool {
    if !filter.is_set() {
        return true;
    }
    let mime = type_of(record, examined);
    let found = match record.head.kind().as_str() {
        "revisit" => crate::store::index::REVISIT,
        _ => record.head.get("WARC-Identified-Payload-Type").unwrap_or_default(),
    };
    filter.takes(&Facts {
        url: record.head.target_uri(),
        timestamp: &record.head.timestamp(),
        status: examined.http.status(),
        types: [&mime, found],
    })
}

fn type_of(record: &Record, examined: &Examined) -> String {
    let http_type = examined.http.get("Content-Type");
    let content_type = if record.head.is_http() { http_type.as_deref() } else { record.head.get("Content-Type") };
    media_type(content_type.unwrap_or_default())
}

fn write_line(record: &Record, examined: &Examined, arguments: &Ls, out: &mut impl Write) -> io::Result<()> {
    if arguments.records {
        write!(out, "{}\t", column(&record.head.kind()))?;
    }
    let status = match examined.http.status() {
        0 => "-".to_owned(),
        status => status.to_string(),
    };
    write!(
        out,
        "{}\t{status}\t{}\t{}\t{}",
        column(record.head.get("WARC-Date").unwrap_or("-")),
        type_of(record, examined),
        examined.payload_bytes,
        column(record.head.target_uri()),
    )?;
    if arguments.records {
        write!(out, "\t{}", record.offset)?;
    }
    writeln!(out)
}
