//! `store ls`: one line per capture.
//!
//! Decides: columns are separated by tabs. Captures are the records of type response, revisit, resource and
//! conversion, except those of hosts' addresses. Their length is that of the body, without the chunked coding
//! in which other tools store it.
//! `--records` shows all records, with the type first, the length of the payload as stored, and the offset last.
//! `--digests` adds what WARC-Payload-Digest would say of the payload as stored, in the form in which we write it;
//! for a capture that is a revisit, it adds what the record says of the payload that it stands for.
//! If a response was cut, its status is followed by how (WARC-Truncated): `200 cut-length`. Damage, and a file
//! without a record, go to stderr, and the list continues behind them. If an option of [`Filter`] or [`Wishes`]
//! selects captures and a segment has an index, only the records that the index names are read.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use super::filter::{Facts, Filter};
use super::wishes::Wishes;
use super::{column, opened_file, read_line, segments, with_path};
use crate::cli::output::tell;
use crate::cli::{DONE, FAILED};
use ringcrawl_config::DigestAlgorithm;
use ringcrawl_warc::digest::Digest;
use ringcrawl_warc::examine::{Examined, examine_payload};
use ringcrawl_warc::fault::ReadError;
use ringcrawl_warc::index::{IndexEntry, media_type};
use ringcrawl_warc::read::{Record, SegmentReader};
use ringcrawl_warc::selection::{Noindex, Selection};
use ringcrawl_warc::verify::index_path;

/// Arguments of `store ls`.
#[derive(clap::Args, Debug)]
pub struct Ls {
    /// Crawl directories or WARC files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// All records: their type, the columns of a capture, their offset.
    #[arg(long)]
    records: bool,
    /// The SHA-256 of each payload as stored, or what a revisit states, as the last column.
    #[arg(long)]
    digests: bool,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    wishes: Wishes,
}

/// A record, read to its end.
struct Listed {
    record: Record,
    examined: Examined,
    /// `sha256:BASE32`; empty: not requested.
    digest: Vec<u8>,
}

/// Runs it.
pub fn run(arguments: &Ls, out: &mut impl Write) -> io::Result<u8> {
    let mut code = DONE;
    let is_filtered = arguments.filter.is_set() || arguments.wishes.is_set();
    let selection = arguments.wishes.selection(Noindex::Include);
    for path in segments(&arguments.paths)? {
        let file = opened_file(&path).map_err(|error| with_path(&path, &error))?;
        let reader = match SegmentReader::new(file) {
            Ok(reader) => reader,
            Err(ReadError::Io(error)) => return Err(with_path(&path, &error)),
            Err(damage) => {
                tell!("{}: {damage}", path.display());
                code = FAILED;
                continue;
            }
        };
        let index = index_path(&path).filter(|index| is_filtered && !arguments.records && index.is_file());
        let is_well = match index {
            Some(index) => list_indexed(reader, &path, &index, (arguments, &selection), out)?,
            None => list_all(reader, &path, (arguments, &selection), out)?,
        };
        code = if is_well { code } else { FAILED };
    }
    Ok(code)
}

/// Lists the records that the index names; returns whether all were there.
fn list_indexed(
    mut reader: SegmentReader<File>,
    path: &Path,
    index: &Path,
    (arguments, selection): (&Ls, &Selection),
    out: &mut impl Write,
) -> io::Result<bool> {
    let mut is_well = true;
    // The index has no media type for a revisit; its record has.
    let of_revisits = arguments.filter.without_type();
    let mut lines = BufReader::new(File::open(index).map_err(|error| with_path(index, &error))?);
    loop {
        let line = read_line(&mut lines).map_err(|error| with_path(index, &error))?;
        if line.is_empty() {
            return Ok(is_well);
        }
        let line = String::from_utf8_lossy(&line);
        let Some(entry) = IndexEntry::parse(line.trim_end()) else {
            tell!("{}: not an index line: {}", index.display(), column(line.trim_end()));
            is_well = false;
            continue;
        };
        let types = [entry.mime.as_str(), entry.mime_detected.as_str()];
        let facts = Facts { url: &entry.url, timestamp: &entry.timestamp, status: entry.status, types };
        let filter = if entry.is_revisit() { &of_revisits } else { &arguments.filter };
        if !filter.takes(&facts) || selection.of_entry(&entry).is_err() {
            continue;
        }
        let record = reader.record_at(entry.offset);
        match record.and_then(|record| read(&mut reader, record, arguments)) {
            Ok(Some(listed)) if listed.record.head.target_uri() == entry.url => {
                if !entry.is_revisit() || is_meant(&listed, &arguments.filter) {
                    write_line(&listed, arguments, out)?;
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
}

/// Lists all records of a segment; returns whether none was damaged.
fn list_all(
    mut reader: SegmentReader<File>,
    path: &Path,
    (arguments, selection): (&Ls, &Selection),
    out: &mut impl Write,
) -> io::Result<bool> {
    let mut is_well = true;
    let mut has_any = path.extension().is_some_and(|suffix| suffix == "open");
    loop {
        let record = reader.next_record();
        match record.and_then(|record| read(&mut reader, record, arguments)) {
            Ok(None) => break,
            Ok(Some(listed)) => {
                has_any = true;
                let kind = listed.record.head.kind();
                let is_capture = match kind.as_str() {
                    "response" | "revisit" | "conversion" => true,
                    "resource" => !listed.record.head.target_uri().starts_with("dns:"),
                    _ => false,
                };
                let is_selected = selection.of_record(&listed.record).is_ok();
                if (arguments.records || is_capture) && is_selected && is_meant(&listed, &arguments.filter) {
                    write_line(&listed, arguments, out)?;
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
        tell!("{}: the file has no record", path.display());
    }
    Ok(is_well && has_any)
}

/// Reads the record that `reader` has just returned.
fn read(reader: &mut SegmentReader<File>, record: Option<Record>, arguments: &Ls) -> Result<Option<Listed>, ReadError> {
    let Some(record) = record else { return Ok(None) };
    let mut sum = arguments.digests.then(|| Digest::new(DigestAlgorithm::Sha256));
    let examined = examine_payload(reader, &record, false, |bytes| sum.iter_mut().for_each(|sum| sum.update(bytes)))?;
    let mut digest = Vec::new();
    if let Some(sum) = sum {
        match record.head.get("WARC-Payload-Digest") {
            // Its own payload is left out (WARC 1.1 section 6.7.2).
            Some(stated) if !arguments.records && record.head.kind() == "revisit" => digest = column(stated).into(),
            _ => sum.write_label(&mut digest),
        }
    }
    Ok(Some(Listed { record, examined, digest }))
}

fn is_meant(Listed { record, examined, .. }: &Listed, filter: &Filter) -> bool {
    if !filter.is_set() {
        return true;
    }
    let mime = type_of(record, examined);
    let found = match record.head.kind().as_str() {
        "revisit" => ringcrawl_warc::index::REVISIT,
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
    let http_type = examined.http.content_type();
    let content_type = if record.head.is_http() { http_type.as_deref() } else { record.head.get("Content-Type") };
    media_type(content_type.unwrap_or_default()).into_owned()
}

fn write_line(listed: &Listed, arguments: &Ls, out: &mut impl Write) -> io::Result<()> {
    let Listed { record, examined, digest } = listed;
    if arguments.records {
        write!(out, "{}\t", column(&record.head.kind()))?;
    }
    let status = match examined.http.status() {
        0 => "-".to_owned(),
        status => status.to_string(),
    };
    let cut = record.head.get("WARC-Truncated").map_or_else(String::new, |how| format!(" cut-{}", column(how)));
    write!(
        out,
        "{}\t{status}{cut}\t{}\t{}\t{}",
        column(record.head.get("WARC-Date").unwrap_or("-")),
        type_of(record, examined),
        if arguments.records { examined.payload_bytes } else { examined.body_bytes },
        column(record.head.target_uri()),
    )?;
    if arguments.records {
        write!(out, "\t{}", record.offset)?;
    }
    if arguments.digests {
        out.write_all(b"\t")?;
        out.write_all(digest)?;
    }
    writeln!(out)
}
