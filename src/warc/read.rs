//! Reads records one after another, from our segments and from files of other writers.
//!
//! Decides: a record is its head, a block of Content-Length bytes and two CRLF. Blocks are streamed, so a record may
//! be larger than memory and span several frames. Where a frame starts with a record, the record before has ended,
//! whatever its Content-Length says. After damage, the next call continues at the next record that can be found. In a
//! plain file, that includes the block of a record that is not followed by a line end, since its Content-Length is
//! then unreliable.
//! Invariants: `next_record` returns each record's place; when `end_record` returns `Ok`, every byte of the block was
//! read and the frame's checksum compared.
//! Limits: heads of 1 MiB, HTTP heads of 1 MiB; between records at most 64 KiB of stray line ends. At most 4 GiB of
//! blocks in plain files are searched again; beyond that, records swallowed by a wrong length are lost.
//! Leaves to others: the file's coding (`source`), digests (`verify`).

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use super::fault::{ReadError, SegmentFault};
use super::folder::Folder;
use super::record_head::{HEAD_BYTES_MAX, HttpHead, RecordHead};
use super::segments::{OPEN, warc_stem};
use super::source::{Coding, FrameTraits, Source};

/// One record, its block not yet read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Offset in the file of the frame in which the record starts; in a plain file, of the record.
    pub offset: u64,
    /// Decoded bytes before the record in that frame: 0 where each record has its own frame.
    pub offset_in_frame: u64,
    /// Its head.
    pub head: RecordHead,
    /// Bytes of its block.
    pub block_bytes: u64,
}

/// How a record ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordEnd {
    /// Offset in the file behind the record's last frame; `None`: the frame continues with another record.
    pub offset: Option<u64>,
    /// What followed its block.
    pub trailer: Trailer,
    /// What the record's last frame lacks.
    pub traits: FrameTraits,
}

/// What follows a block: two CRLF by WARC 1.1 section 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trailer {
    /// Two CRLF.
    Exact,
    /// Other line ends, or more or fewer of them.
    OtherLineEnds,
    /// No line end.
    Missing,
}

/// Reads the records of a file.
pub struct SegmentReader<R> {
    source: Source<R>,
    /// The record being read, and the bytes of its block that are left.
    open: Option<(u64, u64)>,
    /// Where damage was found; the next call looks for a record behind it.
    damaged_at: Option<u64>,
    /// Where the previous record starts, if no line end follows its block.
    overrun: Option<u64>,
    /// Bytes that were read in vain, and read again.
    gone_back: u64,
    /// The error behind the previous record, which itself ended well.
    pending: Option<ReadError>,
}

impl SegmentReader<File> {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<SegmentReader<File>, ReadError> {
        SegmentReader::new(File::open(path)?)
    }
}

impl<R: Read + Seek> SegmentReader<R> {
    /// Reads from any seekable input; its first four bytes identify the coding.
    pub fn new(input: R) -> Result<SegmentReader<R>, ReadError> {
        Ok(SegmentReader {
            source: Source::open(input)?,
            open: None,
            damaged_at: None,
            overrun: None,
            gone_back: 0,
            pending: None,
        })
    }

    /// How the file is compressed.
    pub fn coding(&self) -> Coding {
        self.source.coding()
    }

    /// The next record; skips the rest of the previous one. `None`: the file ends here.
    ///
    /// After an error that is damage, the next call continues at the next good record.
    pub fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        if let Some(offset) = self.damaged_at.take() {
            self.open = None;
            if !self.source.resync(offset)? {
                return Ok(None);
            }
        } else if self.open.is_some() {
            self.end_record()?;
        }
        let result = self.pending.take().map_or_else(|| self.try_next(), Err);
        self.note_damage(result)
    }

    /// Seeks to the record at `offset`, as given by an index, and reads it.
    pub fn record_at(&mut self, offset: u64) -> Result<Option<Record>, ReadError> {
        (self.open, self.damaged_at, self.overrun, self.pending) = (None, None, None, None);
        self.source.go_to(offset)?;
        let result = self.try_next();
        self.note_damage(result)
    }

    /// Reads some of the block into `out`; 0: the block has ended, or `out` is empty.
    pub fn read_block(&mut self, out: &mut [u8]) -> Result<usize, ReadError> {
        let result = self.try_read_block(out);
        self.note_damage(result)
    }

    /// Reads the HTTP head with which the block starts: up to its empty line, at most 1 MiB, and not past the block.
    pub fn read_http_head(&mut self) -> Result<HttpHead, ReadError> {
        let result = self.try_read_http_head();
        self.note_damage(result)
    }

    /// Skips the rest of the block and the record's end; compares the frame's checksum.
    pub fn end_record(&mut self) -> Result<RecordEnd, ReadError> {
        let result = self.try_end_record();
        self.note_damage(result)
    }

    fn note_damage<T>(&mut self, result: Result<T, ReadError>) -> Result<T, ReadError> {
        if let Err(ReadError::Damaged { offset, .. }) = &result {
            // In a plain file, the search continues from the record's own start.
            let start = self.open.map(|(start, _)| start).or(self.overrun.take());
            let here = self.source.position().0;
            self.damaged_at = match start.filter(|_| self.source.coding() == Coding::Plain) {
                Some(start) if self.gone_back < BACK_BYTES_MAX => {
                    self.gone_back += here.saturating_sub(start);
                    Some(start)
                }
                Some(_) => Some(here),
                None => Some(*offset),
            };
        }
        result
    }

    fn try_next(&mut self) -> Result<Option<Record>, ReadError> {
        let mut stray = 0usize;
        loop {
            let bytes = self.source.peek()?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let line_ends = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            stray += line_ends;
            if line_ends == 0 || stray > STRAY_BYTES_MAX {
                break;
            }
            self.source.consume(line_ends);
        }
        let (offset, offset_in_frame) = self.source.position();
        let bytes = self.read_head(offset)?;
        let head = RecordHead::parse(&bytes).map_err(|fault| ReadError::Damaged { offset, fault })?;
        let block_bytes = head.block_bytes().unwrap_or(0);
        (self.open, self.overrun) = (Some((offset, block_bytes)), None);
        Ok(Some(Record { offset, offset_in_frame, head, block_bytes }))
    }

    fn read_head(&mut self, offset: u64) -> Result<Vec<u8>, ReadError> {
        let damaged = |fault| ReadError::Damaged { offset, fault };
        let mut head = Vec::new();
        loop {
            let bytes = self.source.peek()?;
            if bytes.is_empty() {
                return Err(damaged(if b"WARC/".starts_with(&head) || head.starts_with(b"WARC/") {
                    SegmentFault::Truncated
                } else {
                    SegmentFault::NoRecord
                }));
            }
            let line_bytes = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
            head.extend_from_slice(bytes.get(..line_bytes).unwrap_or_default());
            self.source.consume(line_bytes);
            let start = head.get(..5).unwrap_or(&head);
            if !b"WARC/".starts_with(start) {
                return Err(damaged(SegmentFault::NoRecord));
            }
            if head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n") {
                return Ok(head);
            }
            if head.len() > HEAD_BYTES_MAX {
                return Err(damaged(SegmentFault::HeadTooLong));
            }
        }
    }

    fn try_read_block(&mut self, out: &mut [u8]) -> Result<usize, ReadError> {
        let Some((start, left)) = self.open else { return Ok(0) };
        if left == 0 || out.is_empty() {
            return Ok(0);
        }
        let bytes = peek_block(&mut self.source, start)?;
        let count = bytes.len().min(out.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
        for (to, from) in out.iter_mut().zip(bytes.iter().take(count)) {
            *to = *from;
        }
        self.source.consume(count);
        self.open = Some((start, left - count as u64));
        Ok(count)
    }

    fn try_read_http_head(&mut self) -> Result<HttpHead, ReadError> {
        let mut head = HttpHead::default();
        loop {
            let Some((start, left)) = self.open.filter(|(_, left)| *left > 0) else { return Ok(head) };
            let bytes = peek_block(&mut self.source, start)?;
            let bytes = bytes.get(..usize::try_from(left).unwrap_or(usize::MAX)).unwrap_or(bytes);
            let line_bytes = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
            head.bytes.extend_from_slice(bytes.get(..line_bytes).unwrap_or_default());
            self.source.consume(line_bytes);
            self.open = Some((start, left - line_bytes as u64));
            let is_whole = head.bytes.ends_with(b"\n\r\n") || head.bytes.ends_with(b"\n\n");
            if is_whole || head.bytes.len() > HEAD_BYTES_MAX {
                return Ok(head);
            }
        }
    }

    fn try_end_record(&mut self) -> Result<RecordEnd, ReadError> {
        while let Some((start, left)) = self.open.filter(|(_, left)| *left > 0) {
            let available = peek_block(&mut self.source, start)?.len();
            let count = available.min(usize::try_from(left).unwrap_or(usize::MAX));
            self.source.consume(count);
            self.open = Some((start, left - count as u64));
        }
        let mut traits = self.source.frame_traits();
        let mut end = self.source.settle()?;
        let mut line_ends = 0;
        let mut is_exact = true;
        // Reading a byte past the end would enter the next frame. So this frame is ended first, and errors of the
        // next one are not attributed to this record.
        while line_ends < TRAILER.len() {
            let next = match self.source.peek() {
                Ok(bytes) => bytes.first().copied(),
                Err(error @ ReadError::Damaged { .. }) if end.is_some() => {
                    self.pending = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            };
            if !matches!(next, Some(b'\r' | b'\n')) {
                break;
            }
            is_exact &= next == TRAILER.get(line_ends).copied();
            line_ends += 1;
            self.source.consume(1);
            traits = self.source.frame_traits();
            end = self.source.settle()?;
        }
        let start = self.open.take().map(|(start, _)| start);
        self.overrun = start.filter(|_| line_ends == 0);
        let trailer = match line_ends {
            0 => Trailer::Missing,
            4 if is_exact => Trailer::Exact,
            _ => Trailer::OtherLineEnds,
        };
        Ok(RecordEnd { offset: end, trailer, traits })
    }
}

/// The next bytes of the block of the record at `start`, at least one.
fn peek_block<R: Read + Seek>(source: &mut Source<R>, start: u64) -> Result<&[u8], ReadError> {
    source.peek()?;
    let begins_frame = source.coding() != Coding::Plain && source.position().1 == 0;
    let bytes = source.peek()?;
    let fault = match bytes {
        [] => SegmentFault::Truncated,
        [b'W', b'A', b'R', b'C', b'/', b'0'..=b'9', ..] if begins_frame => SegmentFault::Overlong,
        _ => return Ok(bytes),
    };
    Err(ReadError::Damaged { offset: start, fault })
}

/// Reads the rest of the block into `out`, at most `bytes_max` bytes; `false`: the block is longer.
pub fn read_rest<R: Read + Seek>(
    reader: &mut SegmentReader<R>,
    out: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<bool, ReadError> {
    let mut piece = [0; 16 << 10];
    loop {
        let count = reader.read_block(&mut piece)?;
        if count == 0 {
            return Ok(true);
        }
        if out.len() + count > bytes_max {
            return Ok(false);
        }
        out.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
}

/// Whether a file name is that of a WARC file, open or closed.
pub fn is_segment_name(name: &str) -> bool {
    warc_stem(name.strip_suffix(OPEN).unwrap_or(name)).is_some()
}

/// All WARC files under `path`, sorted by name; `path` itself when it is a file.
pub fn find_segments(path: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    Folder::list(path).map(|folder| folder.segments)
}

const TRAILER: &[u8] = b"\r\n\r\n";
/// Bytes of stray line ends between two records.
const STRAY_BYTES_MAX: usize = 64 << 10;
/// Otherwise a file with only wrong lengths would be read as often as it has records.
const BACK_BYTES_MAX: u64 = 4 << 30;

#[cfg(test)]
mod tests;
