//! `store ls`: one line a capture.
//!
//! Decides: columns are separated by tabs; captures are the records of type response, revisit, resource and
//! conversion; `--records` shows all, with the type first and the offset last. Damage, and a file without a record,
//! go to stderr, and the list goes on behind them.

use std::io::{self, Write};
use std::path::PathBuf;

use super::{column, segments, with_path};
use crate::cli::output::tell;
use crate::cli::{DONE, FAILED};
use crate::store::examine::examine;
use crate::store::fault::ReadError;
use crate::store::index::media_type;
use crate::store::read::SegmentReader;

/// Arguments of `store ls`.
#[derive(clap::Args, Debug)]
pub struct Ls {
    /// Crawl directories or WARC files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// All records: their type, the columns of a capture, their offset.
    #[arg(long)]
    records: bool,
}

/// Runs it.
pub fn run(arguments: &Ls, out: &mut impl Write) -> io::Result<u8> {
    let mut code = DONE;
    for path in segments(&arguments.paths)? {
        let mut reader = match SegmentReader::open(&path) {
            Ok(reader) => reader,
            Err(ReadError::Io(error)) => return Err(with_path(&path, &error)),
            Err(damage) => {
                tell!("{}: {damage}", path.display());
                code = FAILED;
                continue;
            }
        };
        let mut has_any = path.extension().is_some_and(|suffix| suffix == "open");
        loop {
            let result = reader.next_record().and_then(|record| match record {
                None => Ok(None),
                Some(record) => examine(&mut reader, &record, false).map(|examined| Some((record, examined))),
            });
            let (record, examined) = match result {
                Ok(None) => break,
                Ok(Some(found)) => found,
                Err(ReadError::Io(error)) => return Err(with_path(&path, &error)),
                Err(damage) => {
                    tell!("{}: {damage}", path.display());
                    (code, has_any) = (FAILED, true);
                    continue;
                }
            };
            has_any = true;
            let kind = record.head.kind();
            if !arguments.records && !matches!(kind.as_str(), "response" | "revisit" | "resource" | "conversion") {
                continue;
            }
            if arguments.records {
                write!(out, "{}\t", column(&kind))?;
            }
            let status = match examined.http.status() {
                0 => "-".to_owned(),
                status => status.to_string(),
            };
            let http_type = examined.http.get("Content-Type");
            let content_type =
                if record.head.is_http() { http_type.as_deref() } else { record.head.get("Content-Type") };
            write!(
                out,
                "{}\t{status}\t{}\t{}\t{}",
                column(record.head.get("WARC-Date").unwrap_or("-")),
                media_type(content_type.unwrap_or_default()),
                examined.payload_bytes,
                column(record.head.target_uri()),
            )?;
            if arguments.records {
                write!(out, "\t{}", record.offset)?;
            }
            writeln!(out)?;
        }
        if !has_any {
            tell!("{}: the file holds no record", path.display());
            code = FAILED;
        }
    }
    Ok(code)
}
