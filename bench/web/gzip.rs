//! Bodies as they are sent: plain, or a gzip member assembled from pieces that were compressed in advance.
//!
//! Decides: a page is mostly pieces of a fixed pool, so each piece is deflated once and its bytes are copied. Fresh
//! bytes go in between as stored blocks (RFC 1951 section 3.2.4). Compressing a 180 KB page each time costs half a
//! millisecond, this some microseconds, and clients cannot see the difference.
//! Invariants: the plain and the gzip form of the same calls decode to the same bytes.
//! Limits: 4 GiB a body (the ISIZE field of RFC 1952 is taken modulo 2^32).

use flate2::{Compress, Compression, FlushCompress, Status};

use super::crc;

/// A part of many pages, in both forms.
#[derive(Debug)]
pub(super) struct Piece {
    /// Plain bytes.
    pub plain: Vec<u8>,
    /// The same as complete deflate blocks that end on a byte boundary and refer to nothing before them.
    pub deflated: Vec<u8>,
    /// CRC-32 of the plain bytes.
    crc: u32,
    /// Combines it with the sum of the preceding bytes.
    crc_factor: u32,
}

impl Piece {
    /// Compresses `plain`.
    pub fn new(plain: Vec<u8>) -> Piece {
        let mut compress = Compress::new(Compression::best(), false);
        let mut deflated = Vec::with_capacity(plain.len() + 64);
        loop {
            let done = usize::try_from(compress.total_in()).unwrap_or(usize::MAX);
            let rest = plain.get(done..).unwrap_or_default();
            let status = compress.compress_vec(rest, &mut deflated, FlushCompress::Full);
            // A flush is complete when it leaves room in the output (zlib manual, deflate).
            if rest.is_empty() || matches!(status, Ok(Status::BufError) | Err(_)) {
                break;
            }
            if deflated.len() < deflated.capacity() && compress.total_in() as usize == plain.len() {
                break;
            }
            deflated.reserve(4_096);
        }
        let crc_factor = crc::factor(u32::try_from(plain.len()).unwrap_or(u32::MAX));
        Piece { crc: crc::extended(0, &plain), crc_factor, plain, deflated }
    }
}

/// The output of a page.
#[derive(Debug)]
pub(super) struct Sink<'a> {
    out: &'a mut Vec<u8>,
    gzip: bool,
    /// Start of the fresh bytes in `out` that are not yet accounted for.
    fresh_start: Option<usize>,
    plain_bytes: u64,
    crc: u32,
}

impl<'a> Sink<'a> {
    /// Appends to `out`, as a gzip member if `gzip`.
    pub fn new(out: &'a mut Vec<u8>, gzip: bool) -> Sink<'a> {
        if gzip {
            // RFC 1952 section 2.3: magic, deflate, no flags, no time, fastest, unknown system.
            out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]);
        }
        Sink { out, gzip, fresh_start: None, plain_bytes: 0, crc: 0 }
    }

    /// The buffer for fresh bytes; only append to it.
    pub fn fresh(&mut self) -> &mut Vec<u8> {
        if self.fresh_start.is_none() {
            if self.gzip {
                self.out.extend_from_slice(&[0; STORED_HEADER_BYTES]);
            }
            self.fresh_start = Some(self.out.len());
        }
        self.out
    }

    /// Appends a piece.
    pub fn piece(&mut self, piece: &Piece) {
        self.close_fresh();
        self.plain_bytes += piece.plain.len() as u64;
        if self.gzip {
            self.crc = crc::joined(self.crc, piece.crc, piece.crc_factor);
            self.out.extend_from_slice(&piece.deflated);
        } else {
            self.out.extend_from_slice(&piece.plain);
        }
    }

    /// Plain bytes so far, the same in both forms.
    pub fn plain_bytes(&self) -> u64 {
        self.plain_bytes + self.fresh_start.map_or(0, |start| (self.out.len() - start) as u64)
    }

    /// Writes the rest.
    pub fn finish(mut self) {
        self.close_fresh();
        if self.gzip {
            // An empty last stored block, then CRC32 and ISIZE (RFC 1952 section 2.3.1).
            self.out.extend_from_slice(&[1, 0, 0, 0xff, 0xff]);
            self.out.extend_from_slice(&self.crc.to_le_bytes());
            self.out.extend_from_slice(&(self.plain_bytes as u32).to_le_bytes());
        }
    }

    fn close_fresh(&mut self) {
        let Some(start) = self.fresh_start.take() else { return };
        let fresh = self.out.get(start..).unwrap_or_default();
        self.plain_bytes += fresh.len() as u64;
        if !self.gzip {
            return;
        }
        self.crc = crc::extended(self.crc, fresh);
        let header_start = start - STORED_HEADER_BYTES;
        if let Ok(length) = u16::try_from(fresh.len()) {
            if let Some(header) = self.out.get_mut(header_start..start) {
                header.copy_from_slice(&stored_header(length));
            }
            return;
        }
        let long = self.out.split_off(start);
        self.out.truncate(header_start);
        for block in long.chunks(usize::from(u16::MAX)) {
            self.out.extend_from_slice(&stored_header(block.len() as u16));
            self.out.extend_from_slice(block);
        }
    }
}

/// Block bits and padding, LEN, NLEN.
const STORED_HEADER_BYTES: usize = 5;

fn stored_header(length: u16) -> [u8; STORED_HEADER_BYTES] {
    let [low, high] = length.to_le_bytes();
    [0, low, high, !low, !high]
}

#[cfg(test)]
mod tests {
    use super::super::draw::{Draw, Purpose};
    use super::*;
    use std::io::Read;

    #[test]
    fn both_forms_decode_to_the_same() {
        let mut draw = Draw::new(5, Purpose::Pool, 0, 0);
        for round in 0..60 {
            let pieces: Vec<Piece> = (0..5)
                .map(|_| Piece::new((0..draw.below(9_000)).map(|i| b"abcab<x>"[(i * i % 8) as usize]).collect()))
                .collect();
            let (mut plain, mut gzip) = (Vec::new(), Vec::new());
            let start = draw.clone();
            for (out, coded) in [(&mut plain, false), (&mut gzip, true)] {
                let mut draw = start.clone();
                let mut sink = Sink::new(out, coded);
                let mut expected = 0;
                for _ in 0..draw.below(9) {
                    if draw.one_in(2) {
                        let piece = &pieces[draw.below(5) as usize];
                        expected += piece.plain.len() as u64;
                        sink.piece(piece);
                    } else {
                        let length = if round == 7 { 150_000 } else { draw.below(300) };
                        expected += length;
                        let fresh = sink.fresh();
                        (0..length).for_each(|i| fresh.push((i % 251) as u8));
                    }
                    assert_eq!(sink.plain_bytes(), expected);
                }
                sink.finish();
            }
            let mut decoded = Vec::new();
            flate2::read::GzDecoder::new(gzip.as_slice()).read_to_end(&mut decoded).unwrap();
            assert!(decoded == plain, "round {round}");
            draw.bits();
        }
    }
}
