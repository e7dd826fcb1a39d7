//! A zstd frame that holds its bytes uncompressed.
//!
//! Decides: already compressed content, and records too short to gain, are copied into blocks of type Raw (RFC 8878
//! section 3.1.1.2.2). Such a frame is a frame like any other, with content size and checksum as `frame` writes them,
//! and costs a copy and a checksum.
//! Invariants: `write_raw_frame` adds one whole frame; its window is at most 8 MiB (IIPC "Zstandard Compression for
//! WARC Files" 1.0, section "Window and dictionary limits").
//! Limits: three bytes for each 128 KiB, and at most 18 a frame.

use xxhash_rust::xxh64::Xxh64;

/// A frame being written.
pub struct RawFrame {
    checksum: Xxh64,
    /// Bytes still to come, of the frame and of the block.
    left: usize,
    left_in_block: usize,
}

impl RawFrame {
    /// Begins a frame of `total` bytes in `out`.
    pub fn begin(total: usize, out: &mut Vec<u8>) -> RawFrame {
        write_frame_head(total as u64, out);
        if total == 0 {
            write_block_head(0, true, out);
        }
        RawFrame { checksum: Xxh64::new(0), left: total, left_in_block: 0 }
    }

    /// Adds bytes; any beyond `total` are dropped.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes.get(..self.left).unwrap_or(bytes);
        self.checksum.update(rest);
        while !rest.is_empty() {
            if self.left_in_block == 0 {
                self.left_in_block = self.left.min(BLOCK_BYTES_MAX);
                write_block_head(self.left_in_block, self.left_in_block == self.left, out);
            }
            let (now, later) = rest.split_at(rest.len().min(self.left_in_block));
            out.extend_from_slice(now);
            self.left -= now.len();
            self.left_in_block -= now.len();
            rest = later;
        }
    }

    /// Ends the frame, after all of its bytes were pushed.
    pub fn end(self, out: &mut Vec<u8>) {
        // The low four bytes (RFC 8878 section 3.1.1).
        out.extend_from_slice(&(self.checksum.digest() as u32).to_le_bytes());
    }
}

/// Adds one frame with the concatenation of `parts` to `out`; returns its length in bytes.
pub fn write_raw_frame(parts: &[&[u8]], out: &mut Vec<u8>) -> u64 {
    let start = out.len();
    let total: usize = parts.iter().map(|part| part.len()).sum();
    out.reserve(total + (total / BLOCK_BYTES_MAX + 1) * BLOCK_HEAD_BYTES + FRAME_BYTES_MAX);
    let mut frame = RawFrame::begin(total, out);
    parts.iter().for_each(|part| frame.push(part, out));
    frame.end(out);
    (out.len() - start) as u64
}

/// RFC 8878 section 3.1.1.1.
fn write_frame_head(total: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd]);
    if total > WINDOW_BYTES_MAX {
        out.extend_from_slice(&[SIZE_OF_8_BYTES | HAS_CHECKSUM, WINDOW_DESCRIPTOR]);
        out.extend_from_slice(&total.to_le_bytes());
    } else if total >= 65_536 + 256 {
        out.push(SIZE_OF_4_BYTES | SINGLE_SEGMENT | HAS_CHECKSUM);
        out.extend_from_slice(&(total as u32).to_le_bytes());
    } else if total >= 256 {
        out.push(SIZE_OF_2_BYTES | SINGLE_SEGMENT | HAS_CHECKSUM);
        out.extend_from_slice(&((total - 256) as u16).to_le_bytes());
    } else {
        out.extend_from_slice(&[SINGLE_SEGMENT | HAS_CHECKSUM, total as u8]);
    }
}

/// RFC 8878 section 3.1.1.2; type 0 is Raw_Block.
fn write_block_head(bytes: usize, is_last: bool, out: &mut Vec<u8>) {
    let head = (bytes as u32) << 3 | u32::from(is_last);
    out.extend(head.to_le_bytes().iter().take(BLOCK_HEAD_BYTES));
}

const BLOCK_HEAD_BYTES: usize = 3;
/// Block_Maximum_Size (RFC 8878 section 3.1.1.2.4).
const BLOCK_BYTES_MAX: usize = 128 << 10;
/// Magic number, longest head and checksum.
const FRAME_BYTES_MAX: usize = 18;
/// Longer content needs a window of its own, or a decoder may refuse it.
const WINDOW_BYTES_MAX: u64 = 8 << 20;
/// Exponent 13 and mantissa 0: 8 MiB (RFC 8878 section 3.1.1.1.2).
const WINDOW_DESCRIPTOR: u8 = 13 << 3;
const HAS_CHECKSUM: u8 = 1 << 2;
const SINGLE_SEGMENT: u8 = 1 << 5;
const SIZE_OF_2_BYTES: u8 = 1 << 6;
const SIZE_OF_4_BYTES: u8 = 2 << 6;
const SIZE_OF_8_BYTES: u8 = 3 << 6;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    /// Lengths around every limit; zstd itself reads them, and detects damage in them.
    #[test]
    fn zstd_reads_what_is_written() {
        let block = BLOCK_BYTES_MAX;
        let window = WINDOW_BYTES_MAX as usize;
        let limits = [0, 1, 255, 256, 257, 65_791, 65_792, block, 2 * block, window];
        let lengths = limits.iter().flat_map(|length| [length.saturating_sub(1), *length, length + 1]);
        for length in lengths {
            let bytes = Rng::new(length as u64).bytes(length);
            let (head, rest) = bytes.split_at(length / 3);
            let mut out = b"before".to_vec();
            let written = write_raw_frame(&[head, b"", rest], &mut out);
            let frame = &mut out[6..];
            assert_eq!(frame.len() as u64, written);
            assert!(frame.len() <= length + (length / block + 1) * 3 + FRAME_BYTES_MAX);
            let size = zstd::zstd_safe::get_frame_content_size(frame).expect("a frame");
            assert_eq!((size, frame[4] & 4), (Some(length as u64), 4), "{length}");
            assert!(zstd::decode_all(&*frame).expect("decodes") == bytes, "{length}");
            let damaged = frame.len() - 5 - length / 2;
            frame[damaged] ^= 1;
            assert!(zstd::decode_all(&*frame).is_err(), "{length}");
        }
    }
}
