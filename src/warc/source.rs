//! The decoded bytes of a segment, each with its place in the file.
//!
//! Decides: reads plain files, gzip members and zstd frames (also with a leading dictionary frame, raw or compressed:
//! IIPC "Zstandard Compression for WARC Files" 1.0, section "Dictionary frame format"); skips other skippable frames.
//! After damage, `resync` finds the next place where a record starts.
//!
//! Invariants: what `peek` shows comes from one frame; once `settle` says so, a frame's checksum was compared.
//! Limits: windows to 128 MiB, dictionaries to 8 MiB (the text asks for 8 MiB each), 256 KiB of buffers.
//! Leaves to others: what the bytes mean (`read`).

mod resync;

use std::io::{self, Read, Seek, SeekFrom};

use super::fault::{ReadError, SegmentFault};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::zstd_safe::{self, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

/// How a file is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// Uncompressed.
    Plain,
    /// gzip members (WARC 1.1 annex D).
    Gzip,
    /// zstd frames.
    Zstd,
}

/// Harmless departures from IIPC's zstd text.
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
    /// Not a `Vec`, whose spare room the gzip decoder would clear before each piece.
    out: Box<[u8]>,
    out_pos: usize,
    out_len: usize,
    frame: Frame,
    zstd: DCtx<'static>,
    gzip: Decompress,
}

/// The state of decoding.
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
    /// Detects the coding from the first bytes; loads a dictionary.
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
            out: vec![0; BUFFER_BYTES].into_boxed_slice(),
            out_pos: 0,
            out_len: 0,
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
            _ => return Err(source.damaged(0, SegmentFault::UnknownFormat)),
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
        while self.out_pos >= self.out_len && self.step()? {}
        Ok(self.out.get(self.out_pos..self.out_len).unwrap_or_default())
    }

    /// Skips `count` of the bytes that `peek` showed.
    pub fn consume(&mut self, count: usize) {
        self.out_pos = self.out_len.min(self.out_pos + count);
    }

    /// Where the next byte comes from: its frame's offset in the file, and decoded bytes of the frame before it. In a
    /// plain file, its own offset and 0.
    pub fn position(&self) -> (u64, u64) {
        match self.coding {
            Coding::Plain => (self.frame.start + self.out_pos as u64, 0),
            _ => (self.frame.start, self.frame.decoded_before + self.out_pos as u64),
        }
    }

    /// When all bytes so far were consumed, finishes the frame they came from, its checksum included. Returns the
    /// offset of the frame's end; `None`: the frame continues.
    pub fn settle(&mut self) -> Result<Option<u64>, ReadError> {
        if self.coding == Coding::Plain {
            return Ok(Some(self.position().0));
        }
        while self.out_pos >= self.out_len && self.frame.is_open && self.step()? {}
        Ok((self.out_pos >= self.out_len && !self.frame.is_open).then_some(self.frame.end))
    }

    /// What the current frame lacks.
    pub fn frame_traits(&self) -> FrameTraits {
        self.frame.traits
    }

    /// Continues decoding at `offset` of the file, where a frame (or record) must start.
    pub fn go_to(&mut self, offset: u64) -> io::Result<()> {
        self.input.seek(SeekFrom::Start(offset))?;
        (self.raw_offset, self.raw_pos, self.raw_len) = (offset, 0, 0);
        self.begin_at(offset);
        Ok(())
    }

    /// The same, without reading buffered bytes again: a million places may be tried, or frames skipped, a few bytes
    /// apart.
    fn go_near(&mut self, offset: u64) -> io::Result<()> {
        if !self.is_in_buffer(offset) {
            return self.go_to(offset);
        }
        self.raw_pos = (offset - self.raw_offset) as usize;
        self.begin_at(offset);
        Ok(())
    }

    /// Whether the byte at `offset` of the file is in the buffer, or comes next.
    fn is_in_buffer(&self, offset: u64) -> bool {
        (self.raw_offset..=self.raw_offset + self.raw_len as u64).contains(&offset)
    }

    /// Resets decoding; the input continues at `offset`.
    fn begin_at(&mut self, offset: u64) {
        (self.out_pos, self.out_len) = (0, 0);
        self.frame = Frame { start: offset, end: offset, ..Frame::default() };
    }

    /// Decodes a piece; `false`: the file ends, between frames.
    fn step(&mut self) -> Result<bool, ReadError> {
        self.frame.decoded_before += self.out_len as u64;
        (self.out_pos, self.out_len) = (0, 0);
        match self.coding {
            Coding::Plain => {
                self.frame.start = self.raw_offset + self.raw_pos as u64;
                if self.want(1)? == 0 {
                    return Ok(false);
                }
                // Both buffers have one size.
                let piece = self.raw.get(self.raw_pos..self.raw_len).unwrap_or_default();
                if let Some(to) = self.out.get_mut(..piece.len()) {
                    to.copy_from_slice(piece);
                }
                (self.out_len, self.raw_pos) = (piece.len(), self.raw_len);
                Ok(true)
            }
            Coding::Gzip => self.step_gzip(),
            Coding::Zstd => self.step_zstd(),
        }
    }

    fn step_gzip(&mut self) -> Result<bool, ReadError> {
        let start = self.raw_offset + self.raw_pos as u64;
        if self.want(1)? == 0 {
            return if self.frame.is_open {
                Err(self.damaged(self.frame.start, SegmentFault::Truncated))
            } else {
                Ok(false)
            };
        }
        if !self.frame.is_open {
            self.want(MAGIC_BYTES)?;
            self.frame = Frame { start, is_open: true, ..Frame::default() };
            if !self.raw_rest().starts_with(&[0x1f, 0x8b]) {
                return Err(self.damaged(start, SegmentFault::NoFrame));
            }
            self.gzip = Decompress::new_gzip(GZIP_WINDOW_BITS);
        }
        let before = (self.gzip.total_in(), self.gzip.total_out());
        let input = self.raw.get(self.raw_pos..self.raw_len).unwrap_or_default();
        let status = self.gzip.decompress(input, &mut self.out, FlushDecompress::None);
        let read = (self.gzip.total_in() - before.0) as usize;
        self.out_len = (self.gzip.total_out() - before.1) as usize;
        self.raw_pos += read;
        match status {
            Ok(Status::StreamEnd) => self.close_frame(),
            Ok(_) if read == 0 && self.out_len == 0 => {
                return Err(self.damaged(self.frame.start, SegmentFault::Gzip("no progress".to_owned())));
            }
            Ok(_) => {}
            Err(error) => return Err(self.damaged(self.frame.start, SegmentFault::Gzip(error.to_string()))),
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
                    if !self.is_in_buffer(end) && end > self.file_bytes()? {
                        return Err(self.damaged(start, SegmentFault::Truncated));
                    }
                    self.go_near(end)?;
                    return Ok(true);
                }
                [0x28, ref rest @ ..] if rest.len() < 4 => return Err(self.damaged(start, SegmentFault::Truncated)),
                _ => return Err(self.damaged(start, SegmentFault::NoFrame)),
            }
        }
        if available == 0 {
            return Err(self.damaged(self.frame.start, SegmentFault::Truncated));
        }
        let mut input = InBuffer::around(self.raw.get(self.raw_pos..self.raw_len).unwrap_or_default());
        let mut output = OutBuffer::around(&mut *self.out);
        let result = self.zstd.decompress_stream(&mut output, &mut input);
        self.out_len = output.pos();
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

    /// Reads the leading dictionary frame; afterwards the file is positioned behind it.
    fn load_dictionary(&mut self) -> Result<(), ReadError> {
        self.want(8)?;
        let &[_, _, _, _, a, b, c, d, ..] = self.raw_rest() else {
            return Err(self.damaged(0, SegmentFault::Truncated));
        };
        let bytes = u64::from(u32::from_le_bytes([a, b, c, d]));
        if bytes > DICTIONARY_BYTES_MAX {
            return Err(self.damaged(0, SegmentFault::Dictionary));
        }
        self.go_to(8)?;
        let mut dictionary = Vec::new();
        (&mut self.input).take(bytes).read_to_end(&mut dictionary)?;
        if (dictionary.len() as u64) < bytes {
            return Err(self.damaged(0, SegmentFault::Truncated));
        }
        if dictionary.starts_with(&FRAME_MAGIC) {
            let mut plain = Vec::new();
            zstd::stream::read::Decoder::with_buffer(dictionary.as_slice())
                .and_then(|decoder| decoder.single_frame().take(DICTIONARY_BYTES_MAX + 1).read_to_end(&mut plain))
                .map_err(|_| self.damaged(0, SegmentFault::Dictionary))?;
            dictionary = plain;
        }
        if dictionary.len() as u64 > DICTIONARY_BYTES_MAX || !dictionary.starts_with(&[0x37, 0xa4, 0x30, 0xec]) {
            return Err(self.damaged(0, SegmentFault::Dictionary));
        }
        self.zstd.load_dictionary(&dictionary).map_err(|_| self.damaged(0, SegmentFault::Dictionary))?;
        self.go_to(8 + bytes)?;
        Ok(())
    }

    fn file_bytes(&mut self) -> io::Result<u64> {
        let here = self.raw_offset + self.raw_len as u64;
        let end = self.input.seek(SeekFrom::End(0))?;
        self.input.seek(SeekFrom::Start(here))?;
        Ok(end)
    }

    /// Makes `raw_rest` at least `count` bytes long if the file has them; returns its length.
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

    fn damaged(&self, offset: u64, fault: SegmentFault) -> ReadError {
        ReadError::Damaged { offset, fault }
    }
}

fn damaged_zstd(offset: u64, code: zstd_safe::ErrorCode) -> ReadError {
    ReadError::Damaged { offset, fault: SegmentFault::Zstd(zstd_safe::get_error_name(code)) }
}

const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const DICTIONARY_MAGIC: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];
const MAGIC_BYTES: usize = 4;
/// Magic number and the longest frame header (RFC 8878 section 3.1.1.1), in bytes.
const FRAME_HEAD_BYTES_MAX: usize = 18;
/// Bytes of each of the two buffers: one zstd block (RFC 8878 section 3.1.1.2.4).
const BUFFER_BYTES: usize = 128 << 10;
/// log2 of the largest window accepted, in bytes.
const WINDOW_LOG_MAX: u32 = 27;
const DICTIONARY_BYTES_MAX: u64 = 8 << 20;
const GZIP_WINDOW_BITS: u8 = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;
    use std::io::Cursor;

    fn frame(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        super::super::frame::FrameWriter::new(1).and_then(|mut w| w.compress(&[bytes], &mut out)).expect("a frame");
        out
    }

    fn skippable(kind: u8, bytes: &[u8]) -> Vec<u8> {
        [&[kind, 0x2a, 0x4d, 0x18][..], &(bytes.len() as u32).to_le_bytes(), bytes].concat()
    }

    /// Every piece with the offset of the frame that it comes from.
    fn pieces(file: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, ReadError> {
        let mut source = Source::open(Cursor::new(file))?;
        let mut pieces = Vec::new();
        loop {
            let bytes = source.peek()?.to_vec();
            if bytes.is_empty() {
                return Ok(pieces);
            }
            pieces.push((source.position().0, bytes.clone()));
            source.consume(bytes.len());
        }
    }

    #[test]
    fn frames_extensions_and_empty_frames() {
        let (a, b) = (frame(b"WARC/1.1 a"), frame(b"b"));
        let file = [&a[..], &skippable(0x50, b"extension"), &frame(b""), &b].concat();
        let second = (file.len() - b.len()) as u64;
        assert_eq!(pieces(&file).expect("reads"), [(0, b"WARC/1.1 a".to_vec()), (second, b"b".to_vec())]);
        for end in 1..file.len() {
            // A file cut between frames is valid; cut anywhere else it is not.
            let between = [a.len(), a.len() + 17, file.len() - b.len()].contains(&end);
            assert_eq!(pieces(&file[..end]).is_ok(), between, "cut at {end}");
        }
    }

    #[test]
    fn dictionaries_raw_and_compressed() {
        let words = (0..4000u32).map(|i| format!("WARC/1.1\r\nWARC-Type: {}\r\n", i % 97)).collect::<Vec<String>>();
        let dictionary = zstd::dict::from_samples(&words, 4096).expect("trains");
        let text = b"WARC/1.1\r\nWARC-Type: 5\r\n".repeat(3);
        let frame_with = zstd::bulk::Compressor::with_dictionary(3, &dictionary)
            .and_then(|mut compressor| compressor.compress(&text))
            .expect("compresses");
        let coded = frame(&dictionary);
        for inner in [&dictionary, &coded] {
            let file = [&skippable(0x5d, inner)[..], &frame_with, &frame_with].concat();
            let all = pieces(&file).expect("reads");
            assert_eq!(all.iter().map(|(_, bytes)| bytes.len()).sum::<usize>(), text.len() * 2);
            assert_eq!(all.first().map(|(offset, _)| *offset), Some(8 + inner.len() as u64));
        }
        for bad in [&b""[..], b"none", &coded[..coded.len() - 1], &frame(b"none")] {
            let file = [&skippable(0x5d, bad)[..], &frame_with].concat();
            assert!(matches!(pieces(&file), Err(ReadError::Damaged { offset: 0, fault: SegmentFault::Dictionary })));
        }
        let file = skippable(0x5d, &dictionary);
        assert!(matches!(pieces(&file[..100]), Err(ReadError::Damaged { fault: SegmentFault::Truncated, .. })));
    }

    #[test]
    fn a_frame_within_a_damaged_frame_is_not_taken_for_one_of_the_file() {
        let inner = frame(b"WARC/1.1 within");
        // Random bytes around it keep zstd from compressing them, so the inner frame appears unchanged in the file.
        let noise = Rng::new(1).bytes(8192);
        let outer = frame(&[b"WARC/1.1 ", &noise[..4096], &inner, &noise[4096..]].concat());
        assert!(memchr::memmem::find(&outer, &inner).is_some());
        let mut file = [&outer[..], &frame(b"WARC/1.1 next")].concat();
        file[outer.len() - 1] ^= 1;
        let mut source = Source::open(Cursor::new(&file)).expect("opens");
        while let Ok(bytes) = source.peek() {
            let count = bytes.len();
            source.consume(count);
        }
        assert!(source.resync(0).expect("memory"));
        assert_eq!(source.peek().expect("reads"), b"WARC/1.1 next");
        assert_eq!(source.position(), (outer.len() as u64, 0));
    }
}
