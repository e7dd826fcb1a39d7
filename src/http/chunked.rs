//! Decodes the chunked transfer coding (RFC 9112 section 7.1).
//!
//! Decides: sizes are strict, because they determine where the message ends: hexadecimal digits, then only
//! whitespace, an extension or the line's end. Line ends are lenient: LF alone is accepted, as in curl. Extensions
//! and trailer fields are skipped; a trailer with a NUL is refused like any field with one.
//!
//! Invariants: a state machine over bytes, so splits cannot matter; data is handed out as slices of the input, never
//! copied here; an announced size reserves nothing.
//!
//! Limits: a chunk's size is below 2^63. Framing may cost 16 bytes a chunk and twice its data, and 16 KiB beyond that
//! over the whole body: more is an attack with tiny chunks and long extensions (Go's net/http sets the same limit).
//! The caller limits the bytes of trailers.

/// The result of some input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chunk<'a> {
    /// Body bytes, never empty.
    Data(&'a [u8]),
    /// Body bytes follow, but the caller has no room left.
    Full,
    /// The input is used up.
    More,
    /// The message is complete; the rest of the input is not part of it.
    End,
}

/// The bytes are not chunked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadChunk;

/// The decoder.
#[derive(Debug)]
pub(super) struct Chunked {
    state: ChunkedState,
    /// Framing bytes beyond the allowance.
    overhead: u64,
    trailer_bytes_left: usize,
}

#[derive(Debug, Clone, Copy)]
enum ChunkedState {
    /// In the digits of a size; how many there were.
    Size {
        size: u64,
        digits: bool,
    },
    /// After them, in whitespace.
    Blank {
        size: u64,
    },
    /// After a semicolon; everything up to LF is an extension.
    Extension {
        size: u64,
    },
    /// After the CR behind a size.
    SizeCr {
        size: u64,
    },
    /// In a chunk's data.
    Data {
        left: u64,
    },
    /// After it.
    DataEnd,
    /// After it and a CR.
    DataCr,
    /// At the start of a line behind the last chunk, or after a CR there.
    TrailerStart {
        cr: bool,
    },
    /// Inside such a line.
    Trailer,
    Done,
}

/// A size that needs more than 63 bits is invalid (curl and browsers count in signed 64 bits).
const SIZE_MAX: u64 = i64::MAX as u64;
/// Framing bytes of a chunk that are always allowed.
const CHUNK_OVERHEAD_BYTES: u64 = 16;
/// Framing bytes allowed beyond that, in all.
const OVERHEAD_BYTES_MAX: u64 = 16 << 10;

impl Chunked {
    /// At the start of a body; trailers may have `trailer_bytes_max` bytes.
    pub(super) fn new(trailer_bytes_max: usize) -> Chunked {
        Chunked { state: ChunkedState::START, overhead: 0, trailer_bytes_left: trailer_bytes_max }
    }

    /// Advances `input` to the next data, and takes at most `room` bytes of it.
    pub(super) fn next<'a>(&mut self, input: &mut &'a [u8], room: usize) -> Result<Chunk<'a>, BadChunk> {
        loop {
            if let ChunkedState::Done = self.state {
                return Ok(Chunk::End);
            }
            let Some((byte, rest)) = input.split_first() else { return Ok(Chunk::More) };
            if let ChunkedState::Data { left } = self.state {
                if room == 0 {
                    return Ok(Chunk::Full);
                }
                let wanted = input.len().min(room).min(usize::try_from(left).unwrap_or(usize::MAX));
                let (data, rest) = input.split_at_checked(wanted).unwrap_or((input, &[]));
                *input = rest;
                let left = left.saturating_sub(data.len() as u64);
                self.state = if left == 0 { ChunkedState::DataEnd } else { ChunkedState::Data { left } };
                return Ok(Chunk::Data(data));
            }
            *input = rest;
            self.state = self.step(*byte)?;
        }
    }

    /// One byte of framing.
    fn step(&mut self, byte: u8) -> Result<ChunkedState, BadChunk> {
        self.overhead += 1;
        if self.overhead > OVERHEAD_BYTES_MAX {
            return Err(BadChunk);
        }
        Ok(match (self.state, byte) {
            (ChunkedState::Size { size, .. }, _) if byte.is_ascii_hexdigit() => {
                let digit = u64::from((byte as char).to_digit(16).unwrap_or(0));
                let size = size.checked_mul(16).and_then(|size| size.checked_add(digit));
                ChunkedState::Size { size: size.filter(|size| *size <= SIZE_MAX).ok_or(BadChunk)?, digits: true }
            }
            (ChunkedState::Size { size, digits: true } | ChunkedState::Blank { size }, b' ' | b'\t') => {
                ChunkedState::Blank { size }
            }
            (ChunkedState::Size { size, digits: true } | ChunkedState::Blank { size }, b';') => {
                ChunkedState::Extension { size }
            }
            (ChunkedState::Size { size, digits: true } | ChunkedState::Blank { size }, b'\r') => {
                ChunkedState::SizeCr { size }
            }
            (
                ChunkedState::Size { size, digits: true }
                | ChunkedState::Blank { size }
                | ChunkedState::SizeCr { size }
                | ChunkedState::Extension { size },
                b'\n',
            ) => self.size_read(size),
            (ChunkedState::Extension { size }, _) => ChunkedState::Extension { size },
            (ChunkedState::DataEnd, b'\r') => ChunkedState::DataCr,
            (ChunkedState::DataEnd | ChunkedState::DataCr, b'\n') => ChunkedState::START,
            (ChunkedState::TrailerStart { .. }, b'\n') => ChunkedState::Done,
            (ChunkedState::TrailerStart { .. } | ChunkedState::Trailer, _) => self.trailer_byte(byte)?,
            _ => return Err(BadChunk),
        })
    }

    fn size_read(&mut self, size: u64) -> ChunkedState {
        if size == 0 {
            // Trailers have a limit of their own.
            self.overhead = 0;
            return ChunkedState::TrailerStart { cr: false };
        }
        // Also counts the data's own line end, which is yet to come.
        self.overhead = self.overhead.saturating_sub(size.saturating_mul(2).saturating_add(CHUNK_OVERHEAD_BYTES));
        ChunkedState::Data { left: size }
    }

    fn trailer_byte(&mut self, byte: u8) -> Result<ChunkedState, BadChunk> {
        self.overhead = 0;
        self.trailer_bytes_left = self.trailer_bytes_left.checked_sub(1).ok_or(BadChunk)?;
        match (self.state, byte) {
            (_, 0) => Err(BadChunk),
            (ChunkedState::TrailerStart { cr: false }, b'\r') => Ok(ChunkedState::TrailerStart { cr: true }),
            (_, b'\n') => Ok(ChunkedState::TrailerStart { cr: false }),
            _ => Ok(ChunkedState::Trailer),
        }
    }
}

impl ChunkedState {
    const START: ChunkedState = ChunkedState::Size { size: 0, digits: false };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data, and whether the end was seen; fed in pieces of `piece` bytes.
    fn decode(text: &[u8], piece: usize) -> Result<(Vec<u8>, bool), BadChunk> {
        let mut decoder = Chunked::new(100);
        let mut data = Vec::new();
        for mut input in text.chunks(piece) {
            loop {
                match decoder.next(&mut input, usize::MAX)? {
                    Chunk::Data(bytes) => data.extend_from_slice(bytes),
                    Chunk::More => break,
                    Chunk::End => return Ok((data, true)),
                    Chunk::Full => unreachable!("there is always room"),
                }
            }
        }
        Ok((data, false))
    }

    #[test]
    fn readable_bodies() {
        for text in [
            "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
            "5\nhello\n6\n world\n0\n\n",
            "0005 \t\r\nhello\r\n6 ; a=\"b;c\"\r\n world\r\n00;x\r\nTrailer: x\r\nanother\r\n\r\n",
            "5;\r\nhello\r\n6\r\n world\r\n0\r\n\nHTTP/1.1 200",
            "B\r\nhello world\r\n0  \r\n\r\n",
        ] {
            for piece in [1, 2, 3, 1000] {
                assert_eq!(decode(text.as_bytes(), piece), Ok((b"hello world".to_vec(), true)), "{text:?}");
            }
        }
    }

    #[test]
    fn unreadable_bodies() {
        for text in [
            "\r\n",
            "z\r\n",
            " 5\r\n",
            "-5\r\n",
            "0x5\r\n",
            "5 x\r\n",
            "5\rX\n",
            "5\r\nhello6",
            "5\r\nhello\r5",
            "5\r\nhello\rX",
            "8000000000000000\r\n",
            "fffffffffffffffff\r\n",
            "0\r\na: \0\r\n\r\n",
        ] {
            for piece in [1, 1000] {
                assert_eq!(decode(text.as_bytes(), piece), Err(BadChunk), "{text:?}");
            }
        }
    }

    #[test]
    fn every_cut_is_incomplete() {
        let text = b"5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\n";
        for end in 0..text.len() {
            let (data, done) = decode(&text[..end], 1).expect("readable so far");
            assert!(!done && b"hello".starts_with(&data));
        }
    }

    #[test]
    fn framing_may_not_outweigh_data() {
        let tiny = "1\r\nx\r\n".repeat(100_000) + "0\r\n\r\n";
        assert_eq!(decode(tiny.as_bytes(), 4096).map(|(data, done)| (data.len(), done)), Ok((100_000, true)));
        let padded = format!("1;{}\r\nx\r\n", "e".repeat(100)).repeat(1_000);
        assert_eq!(decode(padded.as_bytes(), 4096), Err(BadChunk));
        let trailers = format!("0\r\n{}", "a: b\r\n".repeat(50));
        assert_eq!(decode(trailers.as_bytes(), 7), Err(BadChunk));
    }

    #[test]
    fn room_is_respected() {
        let mut decoder = Chunked::new(0);
        let mut input = &b"5\r\nhello\r\n"[..];
        assert_eq!(decoder.next(&mut input, 3), Ok(Chunk::Data(b"hel")));
        assert_eq!(decoder.next(&mut input, 0), Ok(Chunk::Full));
        assert_eq!(input, b"lo\r\n");
    }
}
