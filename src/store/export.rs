//! A WARC file written anew, in another container.
//!
//! Decides: every record becomes a frame or member of its own, its fields and block as they are, but for the name of the file
//! that a warcinfo record tells (WARC 1.1 section 5.14). Short records, payloads in a content coding, and records of more
//! than [`JOINED_BYTES_MAX`] bytes are not compressed. A damaged record is omitted and counted; the next good one follows.
//! Invariants: what is written holds whole records alone, and its index tells of each capture.
//! Limits: memory for the longest record that is compressed.
//! Leaves to others: files and their names (`cli`).

use std::io::{self, Read, Seek, SeekFrom, Write};

use super::StoreError;
use super::capture::SHORT_BYTES_MAX;
use super::container::{Container, Packing, RawRecord};
use super::fault::ReadError;
use super::index::{Index, coding_label};
use super::read::{Record, SegmentReader};
use super::record::write_field;
use super::recover::entry_at;
use super::warc::HttpHead;

/// What was written of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exported {
    /// Records.
    pub records: u64,
    /// Places where the file is damaged.
    pub damaged: u64,
    /// The lines of the index, sorted.
    pub index: Vec<u8>,
}

/// Why an export ended.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Compressing did.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes the records of `input` to `output`, a file that will be called `filename`.
pub fn export<R: Read + Seek, W: Write + Seek + Truncate>(
    input: R,
    output: &mut W,
    filename: &str,
    packing: Packing,
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
            Ok(Some(record)) => match copy.record(&mut reader, &record, output) {
                Ok(()) => exported.records += 1,
                Err(Failed::Export(error)) => return Err(error),
                Err(Failed::Damage) => {
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

/// Something that can be cut.
pub trait Truncate {
    /// Leaves `bytes` bytes.
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

enum Failed {
    Export(ExportError),
    /// The record cannot be read to its end.
    Damage,
}

impl<E: Into<ExportError>> From<E> for Failed {
    fn from(error: E) -> Failed {
        Failed::Export(error.into())
    }
}

fn of_reading(error: ReadError) -> Failed {
    match error {
        ReadError::Io(error) => Failed::Export(error.into()),
        ReadError::Damaged { .. } => Failed::Damage,
    }
}

impl Copy<'_> {
    fn record<R: Read + Seek>(
        &mut self,
        reader: &mut SegmentReader<R>,
        record: &Record,
        output: &mut impl Write,
    ) -> Result<(), Failed> {
        let head = self.head(record);
        let http = match record.head.is_http() {
            true => reader.read_http_head().map_err(of_reading)?,
            false => HttpHead::default(),
        };
        let coding = coding_label(&http.get("Content-Encoding").unwrap_or_default());
        let block_bytes = usize::try_from(record.block_bytes).map_err(|_| Failed::Damage)?;
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
        // Its checksum, where there is one, was compared.
        reader.end_record().map_err(of_reading)?;
        output.write_all(&out)?;
        if let Some((url, entry)) = entry_at(record, &http, (self.offset, frame_bytes), self.filename) {
            self.index.add(&url, &entry);
        }
        self.offset += frame_bytes;
        Ok(())
    }

    /// What is left of the block.
    fn pieces<R: Read + Seek>(
        &self,
        reader: &mut SegmentReader<R>,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), Failed> {
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
            match name.eq_ignore_ascii_case("WARC-Filename") {
                true => write_field(&mut head, name, self.filename.as_bytes()),
                false => write_field(&mut head, name, value.as_bytes()),
            }
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
