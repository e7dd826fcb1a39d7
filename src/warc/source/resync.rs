//! Finding the next record behind damage.
//!
//! Decides: behind a broken zstd frame, first the place where its block headers say that it ends is tried, if a frame
//! starts there; otherwise, and in other files, the next magic number of a frame, a member or a record. A place
//! counts if the data decoded from it starts with `WARC/`. Why block headers first: the body of a page may itself
//! hold a zstd frame with a WARC record in it.
//! Invariants: each place tried is behind the previous one, so the search ends.
//! Limits: in gzip members and plain files, a record within a damaged record's body is taken for one of the file.

use std::io::{self, Read, Seek, SeekFrom};

use super::super::fault::ReadError;
use super::{Coding, FRAME_MAGIC, Source};

impl<R: Read + Seek> Source<R> {
    /// After damage at `offset`: moves to the next place behind it where a record starts. `false`: there is none.
    pub fn resync(&mut self, offset: u64) -> io::Result<bool> {
        let mut after = offset;
        // Whether the frame boundary is known to be the file's own. A frame found by its magic number may be planted
        // in a body, and a million of them would each make us walk through the rest.
        let mut is_frame = true;
        loop {
            let end = match self.coding {
                Coding::Zstd if is_frame => self.end_by_blocks(after)?,
                _ => None,
            };
            is_frame = end.is_some();
            let candidate = match self.coding {
                _ if is_frame => end,
                Coding::Plain => self.scan(after + 1, b"\nWARC/")?.map(|at| at + 1),
                Coding::Gzip => self.scan(after + 1, &[0x1f, 0x8b, 0x08])?,
                Coding::Zstd => self.scan(after + 1, &FRAME_MAGIC)?,
            };
            let Some(candidate) = candidate else { return Ok(false) };
            self.go_near(candidate)?;
            match self.starts_record() {
                Ok(true) => return Ok(true),
                Ok(false) | Err(ReadError::Damaged { .. }) => {}
                Err(ReadError::Io(error)) => return Err(error),
            }
            // Frames without content, dictionaries and the like were skipped: continue from the decoding position.
            after = candidate.max(if self.coding == Coding::Plain { candidate } else { self.frame.start });
        }
    }

    fn starts_record(&mut self) -> Result<bool, ReadError> {
        // A first decoded piece shorter than five bytes is no record of any known writer.
        let start = self.peek()?.starts_with(b"WARC/");
        Ok(start)
    }

    /// The end of the zstd frame at `offset` by its block headers (RFC 8878 section 3.1.1.2), if the file ends or
    /// another frame starts there.
    fn end_by_blocks(&mut self, offset: u64) -> io::Result<Option<u64>> {
        let Some([0x28, 0xb5, 0x2f, 0xfd, descriptor]) = self.read_at::<5>(offset)? else { return Ok(None) };
        let is_single = descriptor & 0x20 != 0;
        let size_bytes = match descriptor >> 6 {
            0 => u64::from(is_single),
            flag => 1 << flag,
        };
        let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let mut at = offset + 5 + u64::from(!is_single) + dictionary_bytes + size_bytes;
        loop {
            let Some([a, b, c]) = self.read_at::<3>(at)? else { return Ok(None) };
            let header = u32::from_le_bytes([a, b, c, 0]);
            at += 3;
            at += match header >> 1 & 3 {
                0 | 2 => u64::from(header >> 3),
                1 => 1,
                _ => return Ok(None),
            };
            if header & 1 != 0 {
                break;
            }
        }
        at += if descriptor & 4 != 0 { 4 } else { 0 };
        match self.read_at::<4>(at)? {
            Some(FRAME_MAGIC | [0x50..=0x5f, 0x2a, 0x4d, 0x18]) => Ok(Some(at)),
            Some(_) => Ok(None),
            None => Ok((at == self.file_bytes()?).then_some(at)),
        }
    }

    fn read_at<const N: usize>(&mut self, offset: u64) -> io::Result<Option<[u8; N]>> {
        let in_buffer = offset.checked_sub(self.raw_offset).and_then(|at| usize::try_from(at).ok());
        if let Some(bytes) = in_buffer.and_then(|at| self.raw.get(at..self.raw_len)?.first_chunk()) {
            return Ok(Some(*bytes));
        }
        self.input.seek(SeekFrom::Start(offset))?;
        let mut bytes = [0; N];
        let read = self.input.read_exact(&mut bytes);
        // The next read continues after the buffered bytes.
        self.input.seek(SeekFrom::Start(self.raw_offset + self.raw_len as u64))?;
        match read {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Offset of the first `needle` at or behind `from`.
    fn scan(&mut self, from: u64, needle: &[u8]) -> io::Result<Option<u64>> {
        self.go_near(from)?;
        let finder = memchr::memmem::Finder::new(needle);
        loop {
            // The buffered bytes are searched before more is read.
            if let Some(found) = finder.find(self.raw_rest()) {
                return Ok(Some(self.raw_offset + (self.raw_pos + found) as u64));
            }
            // A needle may span two pieces.
            self.raw_pos = self.raw_pos.max(self.raw_len.saturating_sub(needle.len() - 1));
            if self.want(needle.len())? < needle.len() {
                return Ok(None);
            }
        }
    }
}
