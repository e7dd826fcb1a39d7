//! `store cat`: the payload of a page.
//!
//! Decides: the latest capture of exactly that URL, or with `--at` the nearest to a time. It is found by binary
//! search in the indexes, and by reading the segments without an index. The payload of a revisit is that of the
//! capture it refers to, which must be under the same path. Without an index, a damaged record counts only if no
//! intact one exists. The payload is printed without its content coding, and without the chunked coding that other
//! tools store. With `--as-stored` it is printed as it is in the segment, with `--headers` after the HTTP head, with
//! `--record` within the whole WARC record. An index entry that leads to anything but that page is reported, and
//! nothing is printed: you would take another page's bytes for this page's.
//! Limits: an index line of at most 256 KiB; [`CONTENT_BYTES_MAX`] bytes of a coded payload, both coded and decoded.

use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::filter::digits;
use super::which::{Span, Which};
use super::{LINE_BYTES_MAX, column, opened_file, read_line, segments, with_path};
use crate::cli::output::tell;
use crate::cli::{DONE, FAILED, MISTAKE};
use ringcrawl_url::{Url, surt};
use ringcrawl_warc::content::content;
use ringcrawl_warc::fault::ReadError;
use ringcrawl_warc::index::{IndexEntry, coding_label};
use ringcrawl_warc::read::{Record, SegmentReader, read_rest};
use ringcrawl_warc::record_head::HttpHead;
use ringcrawl_warc::source::Coding;
use ringcrawl_warc::verify::index_path;

/// Arguments of `store cat`.
#[derive(clap::Args, Debug)]
pub struct Cat {
    /// A crawl directory or a WARC file.
    path: PathBuf,
    /// The page.
    url: String,
    /// The capture that is nearest to this time, such as 2026, 2026-11-21 or 20261121084032 (UTC), not the latest.
    #[arg(long, value_name = "TIME", value_parser = span)]
    at: Option<Span>,
    /// The payload as stored, in the content coding that its HTTP head names.
    #[arg(long)]
    as_stored: bool,
    /// The HTTP head and the payload as stored.
    #[arg(long)]
    headers: bool,
    /// The whole record as stored.
    #[arg(long, conflicts_with = "headers")]
    record: bool,
}

/// The location of a capture.
struct Capture {
    timestamp: String,
    segment: PathBuf,
    offset: u64,
    /// Records before it in the same frame.
    skip: u64,
    /// Whether no damage is known.
    is_whole: bool,
}

/// Runs it.
pub fn run(arguments: &Cat, out: &mut impl Write) -> io::Result<u8> {
    let url = match Url::parse(&arguments.url) {
        Ok(url) => url,
        Err(error) => {
            tell!("{}: {error}", arguments.url);
            return Ok(MISTAKE);
        }
    };
    let which = arguments.at.map_or(Which::Latest, Which::Nearest);
    let Some(found) = search(&arguments.path, &url, which)? else {
        tell!("{url}: not stored", url = url.as_str());
        return Ok(FAILED);
    };
    match print(&found, &url, arguments, out) {
        Ok(Printed::Whole) => Ok(DONE),
        Ok(Printed::Nothing(instead)) => {
            let (segment, offset, url) = (found.segment.display(), found.offset, url.as_str());
            tell!("{segment}: offset {offset}: the index has {url} here, and {instead}; see store verify");
            Ok(FAILED)
        }
        Ok(Printed::NoOriginal(original, time)) => {
            let path = arguments.path.display();
            tell!("{}: its body is stored with {original} at {time}, which is not in {path}", url.as_str());
            Ok(FAILED)
        }
        Err(ReadError::Io(error)) => Err(error),
        Err(damage) => {
            tell!("{}: {damage}", found.segment.display());
            Ok(FAILED)
        }
    }
}

/// The latest capture of a page, for other commands.
pub(in crate::cli) struct Latest {
    /// Its time, as 14 digits.
    pub timestamp: String,
    /// The segment, and the byte offset in it.
    pub place: String,
    pub head: HttpHead,
    /// The value of WARC-Truncated, or what its coding shows; empty: nothing is missing.
    pub truncated: String,
    /// Without its content codings.
    pub content: Vec<u8>,
}

/// The latest capture of `url` under `path`, with at most `bytes_max` bytes of its payload and of its content; `None`
/// if there is none that can be read.
pub(in crate::cli) fn latest(path: &Path, url: &Url, bytes_max: usize) -> io::Result<Option<Latest>> {
    if segments(&[path.to_owned()]).is_ok_and(|segments| segments.is_empty()) {
        return Ok(None);
    }
    let Some(found) = search(path, url, Which::Latest)? else { return Ok(None) };
    match read(&found, url, path, bytes_max) {
        Ok(latest) => Ok(latest),
        Err(ReadError::Io(error)) => Err(with_path(&found.segment, &error)),
        Err(damage) => {
            tell!("{}: {damage}", found.segment.display());
            Ok(None)
        }
    }
}

fn read(found: &Capture, url: &Url, path: &Path, bytes_max: usize) -> Result<Option<Latest>, ReadError> {
    let (mut reader, record) = open(found)?;
    let Some(record) = record.filter(|record| is_of(record, url) && record.head.is_http()) else { return Ok(None) };
    let truncated = record.head.get("WARC-Truncated").map(str::to_owned);
    let head = reader.read_http_head()?;
    if record.head.kind() == "revisit" {
        let Some((_, its_reader)) = original_of(&record, path)? else { return Ok(None) };
        reader = its_reader;
        reader.read_http_head()?;
    }
    let mut payload = Vec::new();
    read_rest(&mut reader, &mut payload, bytes_max)?;
    let decoded = content(&head, &payload, bytes_max);
    let truncated = truncated.or(decoded.truncated.map(|why| why.as_str().to_owned())).unwrap_or_default();
    let content = decoded.bytes.into_owned();
    let place = format!("{}, byte {}", found.segment.display(), found.offset);
    Ok(Some(Latest { timestamp: found.timestamp.clone(), place, head, truncated, content }))
}

/// The result of printing a capture.
enum Printed {
    /// It was printed.
    Whole,
    /// Nothing was printed: at the index's location there is this instead.
    Nothing(String),
    /// It has no body of its own, and the capture it refers to is missing: that one's URL and time.
    NoOriginal(String, String),
}

fn span(text: &str) -> Result<Span, String> {
    Span::of(&digits(text)?).ok_or_else(|| "no such time".to_owned())
}

/// The capture of `url` that `which` selects in the segments under `path`.
fn search(path: &Path, url: &Url, which: Which<'_>) -> io::Result<Option<Capture>> {
    let mut best = None;
    for segment in segments(&[path.to_owned()])? {
        let found = match index_path(&segment).filter(|index| index.is_file()).map(File::open) {
            Some(Ok(index)) => search_index(index, &segment, url, which),
            _ => search_segment(&segment, url, which),
        };
        if let Some(found) = found.map_err(|error| with_path(&segment, &error))? {
            consider(&mut best, found, which);
        }
    }
    Ok(best)
}

/// Replaces `best` by `found` if `found` is the better match.
fn consider(best: &mut Option<Capture>, found: Capture, which: Which<'_>) {
    let is_better = |best: &Capture| match (found.is_whole, best.is_whole) {
        (true, false) => true,
        (false, true) => false,
        _ => which.prefers(&found.timestamp, &best.timestamp),
    };
    if best.as_ref().is_none_or(is_better) {
        *best = Some(found);
    }
}

/// Opens the record of a capture; returns it with its reader.
fn open(found: &Capture) -> Result<(SegmentReader<File>, Option<Record>), ReadError> {
    let mut reader = SegmentReader::new(opened_file(&found.segment)?)?;
    let mut record = reader.record_at(found.offset)?;
    for _ in 0..found.skip {
        record = reader.next_record()?;
    }
    Ok((reader, record))
}

/// Prints the record.
fn print(found: &Capture, url: &Url, arguments: &Cat, out: &mut impl Write) -> Result<Printed, ReadError> {
    let (mut reader, record) = open(found)?;
    let Some(mut record) = record else { return Ok(Printed::Nothing("the segment ends before that".to_owned())) };
    let is_revisit = record.head.kind() == "revisit";
    if !(is_capture_of(&record, url) || is_revisit && is_of(&record, url)) {
        let (kind, target) = (record.head.kind(), record.head.target_uri());
        return Ok(Printed::Nothing(format!("there is a {} of {}", column(&kind), column(target))));
    }
    if arguments.record {
        write!(out, "{}\r\n", record.head.version())?;
        for (name, value) in record.head.fields() {
            write!(out, "{name}: {value}\r\n")?;
        }
        write!(out, "\r\n")?;
    }
    if record.head.is_http() {
        let http = reader.read_http_head()?;
        if is_revisit && !arguments.record {
            let Some((original, its_reader)) = original_of(&record, &arguments.path)? else {
                let field = |name| column(record.head.get(name).unwrap_or("-"));
                return Ok(Printed::NoOriginal(field("WARC-Refers-To-Target-URI"), field("WARC-Refers-To-Date")));
            };
            (record, reader) = (original, its_reader);
            reader.read_http_head()?;
        }
        if arguments.headers || arguments.record {
            out.write_all(&http.bytes)?;
        } else if !arguments.as_stored && is_coded(&http) {
            if record.block_bytes <= CONTENT_BYTES_MAX as u64 {
                print_content(&mut reader, &http, url, out)?;
                return Ok(Printed::Whole);
            }
            tell!("{}: too long to decode; printed as stored", url.as_str());
        }
    }
    let mut piece = [0; 16 << 10];
    loop {
        let count = reader.read_block(&mut piece)?;
        if count == 0 {
            break;
        }
        out.write_all(piece.get(..count).unwrap_or_default())?;
    }
    if arguments.record {
        out.write_all(b"\r\n\r\n")?;
    }
    reader.end_record()?;
    Ok(Printed::Whole)
}

/// Whether its head names a coding.
fn is_coded(http: &HttpHead) -> bool {
    let names = |field| http.get(field).unwrap_or_default();
    !coding_label(&names("Content-Encoding")).is_empty() || !names("Transfer-Encoding").is_empty()
}

/// The record whose payload is that of `revisit`.
fn original_of(revisit: &Record, path: &Path) -> Result<Option<(Record, SegmentReader<File>)>, ReadError> {
    let target = revisit.head.get("WARC-Refers-To-Target-URI").unwrap_or_default();
    let (Ok(url), Some(date)) = (Url::parse(target), revisit.head.get("WARC-Refers-To-Date")) else { return Ok(None) };
    let at: String = date.chars().filter(char::is_ascii_digit).take(14).collect();
    let Some(found) = search(path, &url, Which::Payload(&at))? else { return Ok(None) };
    let (reader, record) = open(&found)?;
    let digest = |record: &Record| record.head.get("WARC-Payload-Digest").map(str::to_owned);
    Ok(record.filter(|original| digest(original) == digest(revisit)).map(|original| (original, reader)))
}

/// Prints the rest of the block, a payload that came with `http`, without its content codings.
fn print_content(
    reader: &mut SegmentReader<File>,
    http: &HttpHead,
    url: &Url,
    out: &mut impl Write,
) -> Result<(), ReadError> {
    let mut payload = Vec::new();
    read_rest(reader, &mut payload, CONTENT_BYTES_MAX)?;
    reader.end_record()?;
    let content = content(http, &payload, CONTENT_BYTES_MAX);
    out.write_all(&content.bytes)?;
    match content.problem {
        Some(problem) => tell!("{}: {problem}", url.as_str()),
        None if content.truncated.is_some() => tell!("{}: the content ends early", url.as_str()),
        None => {}
    }
    Ok(())
}

/// The line for `url` in a sorted index that `which` selects.
fn search_index(index: File, segment: &Path, url: &Url, which: Which<'_>) -> io::Result<Option<Capture>> {
    let start = format!("{} ", surt(url));
    let mut low = 0;
    let mut high = index.metadata()?.len();
    let mut lines = BufReader::new(index);
    // The first line not before `start` begins in low..=high; the search stops when the range is as short as a line
    // may be.
    while high - low > LINE_BYTES_MAX {
        let middle = low + (high - low) / 2;
        lines.seek(SeekFrom::Start(middle))?;
        let skipped = read_line(&mut lines)?.len() as u64;
        let line = read_line(&mut lines)?;
        if !line.is_empty() && line.as_slice() < start.as_bytes() {
            low = middle + skipped;
        } else {
            high = middle;
        }
    }
    lines.seek(SeekFrom::Start(low))?;
    let mut found = None;
    loop {
        let line = read_line(&mut lines)?;
        let text = String::from_utf8_lossy(&line);
        let is_past = text.as_bytes() > start.as_bytes() && !text.starts_with(&start);
        if line.is_empty() || (is_past && text.split(' ').next() > start.split(' ').next()) {
            return Ok(found);
        }
        let is_wanted =
            |entry: &IndexEntry| entry.url == url.as_str() && which.takes(&entry.timestamp, entry.is_revisit());
        if let Some(IndexEntry { timestamp, offset, .. }) = IndexEntry::parse(text.trim_end()).filter(is_wanted) {
            let capture = Capture { timestamp, segment: segment.to_owned(), offset, skip: 0, is_whole: true };
            consider(&mut found, capture, which);
        }
    }
}

/// The capture of `url` that `which` selects in a segment without an index; reports how much of the segment is
/// damaged.
fn search_segment(path: &Path, url: &Url, which: Which<'_>) -> io::Result<Option<Capture>> {
    let mut reader = match opened_file(path).map_err(ReadError::Io).and_then(SegmentReader::new) {
        Ok(reader) => reader,
        Err(ReadError::Io(error)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let mut found = None;
    let (mut frame, mut skip, mut damaged) = (u64::MAX, 0, 0u64);
    loop {
        match reader.next_record() {
            Ok(None) => break,
            Ok(Some(record)) => {
                skip = if record.offset == frame && reader.coding() != Coding::Plain { skip + 1 } else { 0 };
                frame = record.offset;
                let timestamp = record.head.timestamp();
                let is_revisit = record.head.kind() == "revisit" && is_of(&record, url);
                if !(is_revisit || is_capture_of(&record, url)) || !which.takes(&timestamp, is_revisit) {
                    continue;
                }
                let is_whole = match reader.end_record() {
                    Ok(_) => true,
                    Err(ReadError::Io(error)) => return Err(error),
                    Err(_) => false,
                };
                damaged += u64::from(!is_whole);
                let (segment, offset) = (path.to_owned(), record.offset);
                consider(&mut found, Capture { timestamp, segment, offset, skip, is_whole }, which);
            }
            Err(ReadError::Io(error)) => return Err(error),
            Err(_) => damaged += 1,
        }
    }
    if damaged > 0 {
        tell!("{}: skipped {damaged} damaged places", path.display());
    }
    Ok(found)
}

fn is_capture_of(record: &Record, url: &Url) -> bool {
    matches!(record.head.kind().as_str(), "response" | "resource" | "conversion") && is_of(record, url)
}

fn is_of(record: &Record, url: &Url) -> bool {
    Url::parse(record.head.target_uri()).is_ok_and(|target| target == *url)
}

/// Maximum number of bytes of a coded payload, and of its content.
const CONTENT_BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::TempFolder;

    fn record(second: u32, body: &str) -> String {
        let (head, uri) =
            (format!("WARC/1.0\r\nWARC-Type: resource\r\nWARC-Date: 2026-01-01T00:00:0{second}Z"), "http://a.test/");
        format!("{head}\r\nWARC-Target-URI: {uri}\r\nContent-Length: {}\r\n\r\n{body}\r\n\r\n", body.len())
    }

    #[test]
    fn the_latest_whole_capture_is_printed_and_a_cut_one_if_there_is_no_other() {
        let folder = TempFolder::new("cat");
        let printed = |text: &str| {
            let path = PathBuf::from(folder.file("a.warc", text));
            let url = "http://a.test/".to_owned();
            let arguments = Cat { path, url, at: None, as_stored: false, headers: false, record: false };
            let mut out = Vec::new();
            let code = run(&arguments, &mut out).expect("readable");
            (code, String::from_utf8(out).expect("text"))
        };
        let (first, second) = (record(1, "first"), record(2, "second"));
        assert_eq!(printed(&format!("{first}{second}")), (DONE, "second".to_owned()));
        let cut = &second[..second.len() - 7];
        assert_eq!(printed(&format!("{first}{cut}")), (DONE, "first".to_owned()));
        assert_eq!(printed(&format!("{first}no record\r\n{second}")), (DONE, "second".to_owned()));
        assert_eq!(printed(cut), (FAILED, "sec".to_owned()));
    }
}
