//! The decoded bytes of a segment, with the place in the file where each comes from.
//!
//! Decides: reads plain files, gzip members and zstd frames (with a dictionary frame in front too, raw or
//! compressed: IIPC "Zstandard Compression for WARC Files" 1.0, section "Dictionary frame format"); steps over
//! other skippable frames. After damage it finds the next place where a record starts: by the block headers of the
//! broken frame if they still lead to a frame, else by its magic number.
//! Why by block headers first: the body of a page may itself hold a zstd frame with a WARC record in it.
//!
//! Invariants: what `peek` shows comes from one frame; a frame's checksum was compared once `settle` says so.
//! Limits: windows to 128 MiB, dictionaries to 8 MiB (the text asks for 8 MiB each), 256 KiB of buffers.
//! Leaves to others: what the bytes mean (`read`).

use std::io::{self, Read, Seek, SeekFrom};

use flate2::{Decompress, FlushDecompress, Status};
use zstd::zstd_safe::{self, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

/// How a file is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// Not at all.
    Plain,
    /// gzip members (WARC 1.1 annex D).
    Gzip,
    /// zstd frames.
    Zstd,
}

/// What is wrong with a file at some place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// The file starts like nothing we read.
    #[error("not a WARC file")]
    UnknownFormat,
    /// Neither a frame nor a member starts where one should.
    #[error("no frame starts here")]
    NoFrame,
    /// zstd's own name for what is wrong.
    #[error("zstd frame: {0}")]
    Zstd(&'static str),
    /// A gzip member is broken.
    #[error("gzip member: {0}")]
    Gzip(String),
    /// The dictionary is none, or too large.
    #[error("unusable dictionary frame")]
    Dictionary,
    /// The file ends inside a frame or record.
    #[error("truncated: the file ends inside a record")]
    Truncated,
    /// Something else than `WARC/` where a record should start.
    #[error("no record starts here")]
    NoRecord,
    /// A record's head is longer than 1 MiB.
    #[error("record head is too long")]
    HeadTooLong,
    /// A record's head is not lines of `name: value`.
    #[error("record head is malformed")]
    HeadMalformed,
}

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file could be read and is damaged; reading can go on at the next record.
    #[error("offset {offset}: {fault}")]
    Damaged {
        /// Where the damaged frame (or record, in a plain file) starts, in bytes.
        offset: u64,
        /// What is wrong.
        fault: Fault,
    },
}

/// Departures from IIPC's zstd text that lose nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameTraits {
    /// Frame_Content_Size is missing.
    pub without_size: bool,
    /// Content_Checksum is missing: damage may go unseen.
    pub without_checksum: bool,
}

/// The bytes of one file.
pub struct Source<R> {
    input: R,
    coding: Coding,
    raw: Box<[u8]>,
    raw_pos: usize,
    raw_len: usize,
    /// Offset in the file of `raw[0]`.
    raw_offset: u64,
    out: Vec<u8>,
    out_pos: usize,
    frame: Frame,
    zstd: DCtx<'static>,
    gzip: Decompress,
}

/// Where decoding stands.
#[derive(Clone, Copy, Default)]
struct Frame {
    start: u64,
    end: u64,
    is_open: bool,
    /// Decoded bytes of the frame before those in `out`.
    decoded_before: u64,
    traits: FrameTraits,
}

impl<R: Read + Seek> Source<R> {
    /// Looks at the first bytes to see the coding; loads a dictionary.
    pub fn open(mut input: R) -> Result<Source<R>, ReadError> {
        input.seek(SeekFrom::Start(0))?;
        let mut zstd = DCtx::try_create().ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        zstd.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(|code| damaged_zstd(0, code))?;
        let mut source = Source {
            input,
            coding: Coding::Plain,
            raw: vec![0; BUFFER_BYTES].into_boxed_slice(),
            raw_pos: 0,
            raw_len: 0,
            raw_offset: 0,
            out: Vec::with_capacity(BUFFER_BYTES),
            out_pos: 0,
            frame: Frame::default(),
            zstd,
            gzip: Decompress::new_gzip(GZIP_WINDOW_BITS),
        };
        source.want(MAGIC_BYTES)?;
        source.coding = match source.raw_rest() {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Coding::Zstd,
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Coding::Zstd,
            [0x1f, 0x8b, ..] => Coding::Gzip,
            [b'W', b'A', b'R', b'C', ..] | [] => Coding::Plain,
            _ => return Err(source.damaged(0, Fault::UnknownFormat)),
        };
        if source.coding == Coding::Zstd && source.raw_rest().starts_with(&DICTIONARY_MAGIC) {
            source.load_dictionary()?;
        }
        Ok(source)
    }

    /// How the file is compressed.
    pub fn coding(&self) -> Coding {
        self.coding
    }

    /// Decoded bytes, at least one unless the file is at its end.
    pub fn peek(&mut self) -> Result<&[u8], ReadError> {
        while self.out_pos >= self.out.len() && self.step()? {}
        Ok(self.out.get(self.out_pos..).unwrap_or_default())
    }

    /// Steps over `count` of the bytes that `peek` showed.
    pub fn consume(&mut self, count: usize) {
        self.out_pos = self.out.len().min(self.out_pos + count);
    }

    /// Where the next byte comes from: its frame's offset in the file, and decoded bytes of the frame before it. Of
    /// a plain file its own offset, and 0.
    pub fn position(&self) -> (u64, u64) {
        match self.coding {
            Coding::Plain => (self.frame.start + self.out_pos as u64, 0),
            _ => (self.frame.start, self.frame.decoded_before + self.out_pos as u64),
        }
    }

    /// When all bytes so far were consumed, finishes the frame they came from, its checksum included. Gives the
    /// offset of the frame's end; `None`: the frame goes on.
    pub fn settle(&mut self) -> Result<Option<u64>, ReadError> {
        if self.coding == Coding::Plain {
            return Ok(Some(self.position().0));
        }
        while self.out_pos >= self.out.len() && self.frame.is_open && self.step()? {}
        Ok((self.out_pos >= self.out.len() && !self.frame.is_open).then_some(self.frame.end))
    }

    /// What the current frame lacks.
    pub fn frame_traits(&self) -> FrameTraits {
        self.frame.traits
    }

    /// After damage at `offset`: goes to the next place behind it where a record starts. `false`: there is none.
    pub fn resync(&mut self, offset: u64) -> io::Result<bool> {
        let mut after = offset;
        loop {
            let candidate = match self.coding {
                Coding::Plain => self.scan(after + 1, b"\nWARC/")?.map(|at| at + 1),
                Coding::Gzip => self.scan(after + 1, &[0x1f, 0x8b, 0x08])?,
                Coding::Zstd => match self.end_by_blocks(after)? {
                    Some(end) => Some(end),
                    None => self.scan(after + 1, &FRAME_MAGIC)?,
                },
            };
            let Some(candidate) = candidate else { return Ok(false) };
            self.go_to(candidate)?;
            match self.starts_record() {
                Ok(true) => return Ok(true),
                Ok(false) | Err(ReadError::Damaged { .. }) => {}
                Err(ReadError::Io(error)) => return Err(error),
            }
            // Frames without content, dictionaries and the like were stepped over: go on from where decoding is.
            after = candidate.max(if self.coding == Coding::Plain { candidate } else { self.frame.start });
        }
    }

    fn starts_record(&mut self) -> Result<bool, ReadError> {
        // A first decoded piece shorter than five bytes is no record of any writer known.
        let start = self.peek()?.starts_with(b"WARC/");
        Ok(start)
    }

    /// Goes on decoding at `offset` of the file, where a frame (or record) has to start.
    pub fn go_to(&mut self, offset: u64) -> io::Result<()> {
        self.input.seek(SeekFrom::Start(offset))?;
        self.raw_offset = offset;
        (self.raw_pos, self.raw_len, self.out_pos) = (0, 0, 0);
        self.out.clear();
        self.frame = Frame { start: offset, end: offset, ..Frame::default() };
        Ok(())
    }

    /// Decodes a piece; `false`: the file is at its end, between frames.
    fn step(&mut self) -> Result<bool, ReadError> {
        self.frame.decoded_before += self.out.len() as u64;
        self.out.clear();
        self.out_pos = 0;
        match self.coding {
            Coding::Plain => {
                self.frame.start = self.raw_offset + self.raw_pos as u64;
                if self.want(1)? == 0 {
                    return Ok(false);
                }
                self.out.extend_from_slice(self.raw.get(self.raw_pos..self.raw_len).unwrap_or_default());
                self.raw_pos = self.raw_len;
                Ok(true)
            }
            Coding::Gzip => self.step_gzip(),
            Coding::Zstd => self.step_zstd(),
        }
    }

    fn step_gzip(&mut self) -> Result<bool, ReadError> {
        let start = self.raw_offset + self.raw_pos as u64;
        if self.want(1)? == 0 {
            return if self.frame.is_open { Err(self.damaged(self.frame.start, Fault::Truncated)) } else { Ok(false) };
        }
        if !self.frame.is_open {
            self.want(MAGIC_BYTES)?;
            self.frame = Frame { start, is_open: true, ..Frame::default() };
            if !self.raw_rest().starts_with(&[0x1f, 0x8b]) {
                return Err(self.damaged(start, Fault::NoFrame));
            }
            self.gzip = Decompress::new_gzip(GZIP_WINDOW_BITS);
        }
        let before = self.gzip.total_in();
        let input = self.raw.get(self.raw_pos..self.raw_len).unwrap_or_default();
        let status = self.gzip.decompress_vec(input, &mut self.out, FlushDecompress::None);
        let read = (self.gzip.total_in() - before) as usize;
        self.raw_pos += read;
        match status {
            Ok(Status::StreamEnd) => self.close_frame(),
            Ok(_) if read == 0 && self.out.is_empty() => {
                return Err(self.damaged(self.frame.start, Fault::Gzip("no progress".to_owned())));
            }
            Ok(_) => {}
            Err(error) => return Err(self.damaged(self.frame.start, Fault::Gzip(error.to_string()))),
        }
        Ok(true)
    }

    fn step_zstd(&mut self) -> Result<bool, ReadError> {
        let start = self.raw_offset + self.raw_pos as u64;
        let available = self.want(if self.frame.is_open { 1 } else { FRAME_HEAD_BYTES_MAX })?;
        if !self.frame.is_open {
            if available == 0 {
                return Ok(false);
            }
            self.frame = Frame { start, end: start, ..Frame::default() };
            match *self.raw_rest() {
                [0x28, 0xb5, 0x2f, 0xfd, descriptor, ..] => {
                    // RFC 8878 section 3.1.1.1.1: size flag in the two high bits, single segment, checksum flag.
                    let without_size = descriptor & 0xe0 == 0;
                    self.frame.traits = FrameTraits { without_size, without_checksum: descriptor & 4 == 0 };
                    self.frame.is_open = true;
                    self.zstd.reset(ResetDirective::SessionOnly).map_err(|code| damaged_zstd(start, code))?;
                }
                [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, ..] => {
                    let end = start + 8 + u64::from(u32::from_le_bytes([a, b, c, d]));
                    if end > self.file_bytes()? {
                        return Err(self.damaged(start, Fault::Truncated));
                    }
                    self.go_to(end)?;
                    return Ok(true);
                }
                [0x28, ref rest @ ..] if rest.len() < 4 => return Err(self.damaged(start, Fault::Truncated)),
                _ => return Err(self.damaged(start, Fault::NoFrame)),
            }
        }
        if available == 0 {
            return Err(self.damaged(self.frame.start, Fault::Truncated));
        }
        let mut input = InBuffer::around(self.raw.get(self.raw_pos..self.raw_len).unwrap_or_default());
        let mut output = OutBuffer::around(&mut self.out);
        let result = self.zstd.decompress_stream(&mut output, &mut input);
        self.raw_pos += input.pos();
        match result {
            Ok(0) => self.close_frame(),
            Ok(_) => {}
            Err(code) => return Err(damaged_zstd(self.frame.start, code)),
        }
        Ok(true)
    }

    fn close_frame(&mut self) {
        self.frame.is_open = false;
        self.frame.end = self.raw_offset + self.raw_pos as u64;
    }

    /// The dictionary frame in front; the file stands behind it afterwards.
    fn load_dictionary(&mut self) -> Result<(), ReadError> {
        self.want(8)?;
        let &[_, _, _, _, a, b, c, d, ..] = self.raw_rest() else { return Err(self.damaged(0, Fault::Truncated)) };
        let bytes = u64::from(u32::from_le_bytes([a, b, c, d]));
        if bytes > DICTIONARY_BYTES_MAX {
            return Err(self.damaged(0, Fault::Dictionary));
        }
        self.go_to(8)?;
        let mut dictionary = Vec::new();
        (&mut self.input).take(bytes).read_to_end(&mut dictionary)?;
        if (dictionary.len() as u64) < bytes {
            return Err(self.damaged(0, Fault::Truncated));
        }
        if dictionary.starts_with(&FRAME_MAGIC) {
            let mut plain = Vec::new();
            zstd::stream::read::Decoder::with_buffer(dictionary.as_slice())
                .and_then(|decoder| decoder.single_frame().take(DICTIONARY_BYTES_MAX + 1).read_to_end(&mut plain))
                .map_err(|_| self.damaged(0, Fault::Dictionary))?;
            dictionary = plain;
        }
        if dictionary.len() as u64 > DICTIONARY_BYTES_MAX || !dictionary.starts_with(&[0x37, 0xa4, 0x30, 0xec]) {
            return Err(self.damaged(0, Fault::Dictionary));
        }
        self.zstd.load_dictionary(&dictionary).map_err(|_| self.damaged(0, Fault::Dictionary))?;
        self.go_to(8 + bytes)?;
        Ok(())
    }

    /// The end of the zstd frame at `offset` as its block headers tell it (RFC 8878 section 3.1.1.2), when the file
    /// ends or another frame starts there.
    fn end_by_blocks(&mut self, offset: u64) -> io::Result<Option<u64>> {
        let file_bytes = self.file_bytes()?;
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
        if at >= file_bytes {
            return Ok((at == file_bytes).then_some(at));
        }
        let next = self.read_at::<4>(at)?;
        Ok(matches!(next, Some(FRAME_MAGIC | [0x50..=0x5f, 0x2a, 0x4d, 0x18])).then_some(at))
    }

    fn read_at<const N: usize>(&mut self, offset: u64) -> io::Result<Option<[u8; N]>> {
        self.input.seek(SeekFrom::Start(offset))?;
        let mut bytes = [0; N];
        match self.input.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Offset of the first `needle` at or behind `from`.
    fn scan(&mut self, from: u64, needle: &[u8]) -> io::Result<Option<u64>> {
        self.go_to(from)?;
        let finder = memchr::memmem::Finder::new(needle);
        loop {
            let available = self.want(BUFFER_BYTES)?;
            if let Some(found) = finder.find(self.raw_rest()) {
                return Ok(Some(self.raw_offset + (self.raw_pos + found) as u64));
            }
            if available < BUFFER_BYTES {
                return Ok(None);
            }
            // A needle may lie across two pieces.
            self.raw_pos = self.raw_len - (needle.len() - 1);
        }
    }

    fn file_bytes(&mut self) -> io::Result<u64> {
        let here = self.raw_offset + self.raw_len as u64;
        let end = self.input.seek(SeekFrom::End(0))?;
        self.input.seek(SeekFrom::Start(here))?;
        Ok(end)
    }

    /// Makes `raw_rest` at least `count` bytes long if the file has them; gives its length.
    fn want(&mut self, count: usize) -> io::Result<usize> {
        if self.raw_len - self.raw_pos < count && self.raw_pos > 0 {
            self.raw.copy_within(self.raw_pos..self.raw_len, 0);
            self.raw_offset += self.raw_pos as u64;
            self.raw_len -= self.raw_pos;
            self.raw_pos = 0;
        }
        while self.raw_len - self.raw_pos < count {
            let space = self.raw.get_mut(self.raw_len..).unwrap_or_default();
            match self.input.read(space) {
                Ok(0) => break,
                Ok(read) => self.raw_len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.raw_len - self.raw_pos)
    }

    fn raw_rest(&self) -> &[u8] {
        self.raw.get(self.raw_pos..self.raw_len).unwrap_or_default()
    }

    fn damaged(&self, offset: u64, fault: Fault) -> ReadError {
        ReadError::Damaged { offset, fault }
    }
}

fn damaged_zstd(offset: u64, code: zstd_safe::ErrorCode) -> ReadError {
    ReadError::Damaged { offset, fault: Fault::Zstd(zstd_safe::get_error_name(code)) }
}

const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const DICTIONARY_MAGIC: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];
const MAGIC_BYTES: usize = 4;
/// Magic number and the longest frame header (RFC 8878 section 3.1.1.1), in bytes.
const FRAME_HEAD_BYTES_MAX: usize = 18;
/// Bytes of each of the two buffers: one zstd block (RFC 8878 section 3.1.1.2.4).
const BUFFER_BYTES: usize = 128 << 10;
/// log2 of the largest window taken, in bytes.
const WINDOW_LOG_MAX: u32 = 27;
const DICTIONARY_BYTES_MAX: u64 = 8 << 20;
const GZIP_WINDOW_BITS: u8 = 15;
