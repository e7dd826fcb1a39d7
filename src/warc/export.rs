//! A WARC file rewritten in another container.
//!
//! Decides: every record becomes a frame or member of its own. Its fields and block are unchanged, except for the
//! file name in a warcinfo record (WARC 1.1 section 5.14). Short records, payloads in a content coding, and records
//! of more than [`JOINED_BYTES_MAX`] bytes are not compressed. A damaged record is omitted and counted; export
//! continues with the next good one. Pages excluded by their own directives ([`super::selection`]) are omitted with
//! all records that belong to them, and counted.
//! Invariants: the output consists of whole records only, and its index lists every capture.
//! Limits: memory for the longest record that is compressed.
//! Leaves to others: files and their names (`cli`).

use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::StoreError;
use super::capture::SHORT_BYTES_MAX;
use super::container::{Container, Packing, RawRecord};
use super::fault::ReadError;
use super::index::{Index, coding_label};
use super::read::{Record, SegmentReader};
use super::record::write_foreign_field;
use super::record_head::HttpHead;
use super::recover::entry_at;
use super::selection::{Selection, UrlChoice};

/// What was written from a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exported {
    /// Records.
    pub records: u64,
    /// Those among them that describe files, and no URL.
    pub about_files: u64,
    /// Damaged places in the file.
    pub damaged: u64,
    /// Captures omitted because of noindex, or because of an unwanted use.
    pub left_out: [u64; 2],
    /// Revisits that were written although the captures they refer to were omitted.
    pub orphans: u64,
    /// The lines of the index, sorted.
    pub index: Vec<u8>,
}

impl Exported {
    /// Adds the counts of another file, which has its own index.
    pub fn add(&mut self, other: &Exported) {
        self.records += other.records;
        self.about_files += other.about_files;
        self.damaged += other.damaged;
        self.orphans += other.orphans;
        self.left_out.iter_mut().zip(other.left_out).for_each(|(all, more)| *all += more);
    }
}

/// Why an export ended.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Compressing failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes the records of `input` that `taken` selects to `output`, a file that will be called `filename`.
pub fn export<R: Read + Seek, W: Write + Seek + Truncate>(
    input: R,
    output: &mut W,
    (filename, packing): (&str, Packing),
    taken: &mut Taken,
) -> Result<Exported, ExportError> {
    let mut exported = Exported::default();
    let mut reader = match SegmentReader::new(input) {
        Ok(reader) => reader,
        Err(ReadError::Io(error)) => return Err(error.into()),
        Err(ReadError::Damaged { .. }) => return Ok(Exported { damaged: 1, ..exported }),
    };
    let mut copy = Copy { container: Container::new(packing)?, packing, filename, offset: 0, index: Index::default() };
    loop {
        match reader.next_record() {
            Ok(None) => break,
            Ok(Some(record)) if !taken.takes(&record, &mut exported) => {}
            Ok(Some(record)) => match copy.record(&mut reader, &record, output) {
                Ok(()) => {
                    exported.records += 1;
                    exported.about_files += u64::from(record.head.kind().as_str() == "warcinfo");
                }
                Err(RecordError::Export(error)) => return Err(error),
                Err(RecordError::Damage) => {
                    exported.damaged += 1;
                    output.truncate(copy.offset)?;
                    output.seek(SeekFrom::Start(copy.offset))?;
                }
            },
            Err(ReadError::Io(error)) => return Err(error.into()),
            Err(ReadError::Damaged { .. }) => exported.damaged += 1,
        }
    }
    exported.index = copy.index.sorted();
    Ok(exported)
}

/// The selection for all files of an export.
///
/// An omitted capture also omits its request and metadata records: ours follow their response and name it.
#[derive(Debug)]
pub struct Taken {
    selection: Selection,
    urls: UrlChoice,
    /// The response that was omitted last.
    left_out: String,
    /// URL and time, hashed, of possible revisit targets.
    targets: HashSet<u64>,
}

impl Taken {
    /// What `selection` selects.
    pub fn new(selection: Selection) -> Taken {
        Taken { selection, urls: UrlChoice::default(), left_out: String::new(), targets: HashSet::new() }
    }

    /// Only these URLs.
    pub fn of_urls(self, urls: UrlChoice) -> Taken {
        Taken { urls, ..self }
    }

    fn takes(&mut self, record: &Record, exported: &mut Exported) -> bool {
        let field = |name| record.head.get(name).unwrap_or_default();
        let target = |url: &str, date: &str| xxhash_rust::xxh3::xxh3_64(format!("{url} {date}").as_bytes());
        if !self.urls.takes_record(record.head.target_uri()) {
            self.leave_out(record, target(record.head.target_uri(), field("WARC-Date")));
            return false;
        }
        match record.head.kind().as_str() {
            kind @ ("response" | "revisit") => match self.selection.of_record(record) {
                Ok(()) => {
                    let original = (field("WARC-Refers-To-Target-URI"), field("WARC-Refers-To-Date"));
                    let is_orphan = kind == "revisit" && self.targets.contains(&target(original.0, original.1));
                    exported.orphans += u64::from(is_orphan);
                    true
                }
                Err(why) => {
                    exported.left_out[why as usize] += 1;
                    self.leave_out(record, target(record.head.target_uri(), field("WARC-Date")));
                    false
                }
            },
            _ => self.left_out.is_empty() || field("WARC-Concurrent-To") != self.left_out,
        }
    }

    fn leave_out(&mut self, record: &Record, target: u64) {
        if matches!(record.head.kind().as_str(), "response" | "revisit") {
            record.head.id().clone_into(&mut self.left_out);
            if self.targets.len() < TARGETS_MAX {
                self.targets.insert(target);
            }
        }
    }
}

/// Omitted captures that are remembered for revisits. Beyond this some are forgotten; only a reported number depends
/// on them.
const TARGETS_MAX: usize = 4_000_000;

/// Something that can be truncated.
pub trait Truncate {
    /// Truncates to `bytes` bytes.
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;
}

impl Truncate for std::fs::File {
    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }
}

struct Copy<'a> {
    container: Container,
    packing: Packing,
    filename: &'a str,
    /// Where the next record begins.
    offset: u64,
    index: Index,
}

enum RecordError {
    Export(ExportError),
    /// The record cannot be read to its end.
    Damage,
}

impl<E: Into<ExportError>> From<E> for RecordError {
    fn from(error: E) -> RecordError {
        RecordError::Export(error.into())
    }
}

fn of_reading(error: ReadError) -> RecordError {
    match error {
        ReadError::Io(error) => RecordError::Export(error.into()),
        ReadError::Damaged { .. } => RecordError::Damage,
    }
}

impl Copy<'_> {
    fn record<R: Read + Seek>(
        &mut self,
        reader: &mut SegmentReader<R>,
        record: &Record,
        output: &mut impl Write,
    ) -> Result<(), RecordError> {
        let head = self.head(record);
        let http = match record.head.is_http() {
            true => reader.read_http_head().map_err(of_reading)?,
            false => HttpHead::default(),
        };
        let said = http.get("Content-Encoding").unwrap_or_default();
        let coding = coding_label(&said);
        let block_bytes = usize::try_from(record.block_bytes).map_err(|_| RecordError::Damage)?;
        let total = head.len() + block_bytes + END.len();
        let pays = coding.is_empty() && (SHORT_BYTES_MAX + 1..=JOINED_BYTES_MAX).contains(&total);
        let mut out = Vec::new();
        let frame_bytes = if pays {
            let mut block = http.bytes.clone();
            self.pieces(reader, |piece| {
                block.extend_from_slice(piece);
                Ok(())
            })?;
            self.container.put(&[&head, &block, END], true, &mut out)?
        } else {
            let mut raw = RawRecord::begin(self.packing.format, total, &mut out);
            raw.push(&head, &mut out);
            raw.push(&http.bytes, &mut out);
            let mut written = 0;
            self.pieces(reader, |piece| {
                raw.push(piece, &mut out);
                if out.len() >= WRITE_BYTES {
                    written += out.len() as u64;
                    output.write_all(&out)?;
                    out.clear();
                }
                Ok(())
            })?;
            raw.push(END, &mut out);
            raw.end(&mut out);
            written + out.len() as u64
        };
        // Its checksum, if there is one, was compared.
        reader.end_record().map_err(of_reading)?;
        output.write_all(&out)?;
        if let Some((url, entry)) = entry_at(record, &http, (self.offset, frame_bytes), self.filename) {
            self.index.add(&url, &entry);
        }
        self.offset += frame_bytes;
        Ok(())
    }

    /// The rest of the block.
    fn pieces<R: Read + Seek>(
        &self,
        reader: &mut SegmentReader<R>,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), RecordError> {
        let mut piece = [0; 64 << 10];
        loop {
            let count = reader.read_block(&mut piece).map_err(of_reading)?;
            if count == 0 {
                return Ok(());
            }
            take(piece.get(..count).unwrap_or_default())?;
        }
    }

    fn head(&self, record: &Record) -> Vec<u8> {
        let mut head = format!("{}\r\n", record.head.version()).into_bytes();
        for (name, value) in record.head.fields() {
            let value = if name.eq_ignore_ascii_case("WARC-Filename") { self.filename } else { value };
            write_foreign_field(&mut head, name.as_bytes(), value.as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// What ends a record.
const END: &[u8] = b"\r\n\r\n";
/// Longer records are written piece by piece.
const JOINED_BYTES_MAX: usize = 64 << 20;
const WRITE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::index::IndexEntry;
    use super::super::sample::capture;
    use super::super::selection::Noindex;
    use super::super::{Capture, SegmentWriter, Settings};
    use super::*;
    use ringcrawl_base::preferences::{Preferences, Use};
    use ringcrawl_base::time::UnixTime;
    use ringcrawl_html::Directives;
    use ringcrawl_url::Url;

    impl Truncate for Cursor<Vec<u8>> {
        fn truncate(&mut self, bytes: u64) -> io::Result<()> {
            self.get_mut().truncate(bytes as usize);
            Ok(())
        }
    }

    /// Pages that say noindex, and pages whose use is unwanted, are omitted with their requests and metadata.
    #[test]
    fn what_is_left_out() {
        let settings = Settings { segment_bytes_max: 1 << 30, ..Settings::default() };
        let mut writer = SegmentWriter::new(settings).expect("a writer");
        writer.begin("own", UnixTime::from_micros(0)).expect("begins");
        let pages = [
            ("plain", "", ""),
            ("hidden", "noindex", ""),
            ("closed", "nofollow, noarchive", "train-ai=n"),
            ("over", "unavailable_after: 2001-01-01", ""),
            ("later", "unavailable_after: 2300-01-01", "train-ai=y"),
        ];
        for (name, said, uses) in pages {
            let url = Url::parse(&format!("http://a.test/{name}")).expect("a URL");
            let mut robots = Directives::default();
            robots.hear(said);
            let preferences = Preferences::of_label(uses);
            let metadata = b"fetchTimeMs: 1\r\n";
            let request = b"GET / HTTP/1.1\r\n\r\n";
            let page = Capture { robots, preferences, metadata, request, ..capture(&url, b"body") };
            writer.append(&page).expect("appends");
        }
        let bytes = writer.take_pending(Vec::new()).bytes;
        let exported = |noindex, respect: &[Use]| {
            let now = UnixTime::from_civil(2026, 11, 21, 0, 0, 0).expect("a date");
            let mut taken = Taken::new(Selection { noindex, respect: respect.to_vec(), now });
            let mut output = Cursor::new(Vec::new());
            let packing = Packing::default();
            let exported = export(Cursor::new(&bytes), &mut output, ("out", packing), &mut taken).expect("memory");
            let index = String::from_utf8(exported.index).expect("UTF-8");
            let urls: Vec<String> = index.lines().map(|line| IndexEntry::parse(line).expect("a line").url).collect();
            // A warcinfo record, and three of each page; the written index describes the written file.
            assert_eq!((exported.records, exported.damaged), (1 + 3 * urls.len() as u64, 0));
            let again = super::super::recover::recover(Cursor::new(output.into_inner()), "out").expect("memory");
            assert_eq!((again.records, String::from_utf8(again.index).expect("UTF-8")), (exported.records, index));
            let names: Vec<&str> = urls.iter().filter_map(|url| url.strip_prefix("http://a.test/")).collect();
            (names.join(" "), exported.left_out)
        };
        assert_eq!(exported(Noindex::Omit, &[]), ("closed later plain".to_owned(), [2, 0]));
        assert_eq!(exported(Noindex::Include, &[]), ("closed hidden later over plain".to_owned(), [0, 0]));
        assert_eq!(exported(Noindex::Only, &[]), ("hidden over".to_owned(), [3, 0]));
        assert_eq!(exported(Noindex::Omit, &[Use::TrainAi]), ("later plain".to_owned(), [2, 1]));
        assert_eq!(exported(Noindex::Include, &[Use::Search]).1, [0, 0]);
    }
}
