//! One record, one gzip member.
//!
//! Decides: a member (RFC 1952) without name and time, compressed by libdeflate, or, where that would gain nothing,
//! in blocks of type Stored (RFC 1951 section 3.2.4). WARC 1.1 annex D asks for one member per record; every tool
//! reads that.
//! Invariants: each function adds one whole member; its checksum is of all bytes.
//! Limits: compressing first joins the parts in a buffer that is kept. Stored data costs five bytes for each 64 KiB,
//! and 18 bytes a member, whose length field is that of the content modulo 4 GiB.

use libdeflater::{CompressionLvl, Compressor, Crc};

use super::StoreError;

/// A compressor that is made once and used for every record of a shard.
pub struct MemberWriter {
    compressor: Compressor,
    joined: Vec<u8>,
}

impl MemberWriter {
    /// A compressor at `level`, clamped to 1 … 12.
    pub fn new(level: i32) -> MemberWriter {
        let level = CompressionLvl::new(level.clamp(1, 12)).unwrap_or_default();
        MemberWriter { compressor: Compressor::new(level), joined: Vec::new() }
    }

    /// Adds one member with the concatenation of `parts` to `out`; returns its length in bytes.
    pub fn compress(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) -> Result<u64, StoreError> {
        self.joined.clear();
        parts.iter().for_each(|part| self.joined.extend_from_slice(part));
        let start = out.len();
        out.resize(start + self.compressor.gzip_compress_bound(self.joined.len()), 0);
        let room = out.get_mut(start..).unwrap_or_default();
        let written = self.compressor.gzip_compress(&self.joined, room).map_err(|_| StoreError::Gzip)?;
        out.truncate(start + written);
        if self.joined.capacity() > KEPT_BYTES_MAX {
            self.joined = Vec::new();
        }
        Ok(written as u64)
    }
}

/// A member being written, of uncompressed bytes.
pub struct StoredMember {
    checksum: Crc,
    total: usize,
    /// Bytes still to come, of the member and of the block.
    left: usize,
    left_in_block: usize,
}

impl StoredMember {
    /// Begins a member of `total` bytes in `out`.
    pub fn begin(total: usize, out: &mut Vec<u8>) -> StoredMember {
        out.extend_from_slice(&HEAD);
        if total == 0 {
            write_block_head(0, true, out);
        }
        StoredMember { checksum: Crc::new(), total, left: total, left_in_block: 0 }
    }

    /// Adds bytes; any beyond `total` are dropped.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes.get(..self.left).unwrap_or(bytes);
        self.checksum.update(rest);
        while !rest.is_empty() {
            if self.left_in_block == 0 {
                self.left_in_block = self.left.min(BLOCK_BYTES_MAX);
                write_block_head(self.left_in_block as u16, self.left_in_block == self.left, out);
            }
            let (now, later) = rest.split_at(rest.len().min(self.left_in_block));
            out.extend_from_slice(now);
            self.left -= now.len();
            self.left_in_block -= now.len();
            rest = later;
        }
    }

    /// Ends the member, after all of its bytes were pushed.
    pub fn end(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.checksum.sum().to_le_bytes());
        out.extend_from_slice(&(self.total as u32).to_le_bytes());
    }
}

/// Adds one member with the uncompressed concatenation of `parts` to `out`; returns its length in bytes.
pub fn write_stored_member(parts: &[&[u8]], out: &mut Vec<u8>) -> u64 {
    let start = out.len();
    let total: usize = parts.iter().map(|part| part.len()).sum();
    out.reserve(total + (total / BLOCK_BYTES_MAX + 1) * BLOCK_HEAD_BYTES + HEAD.len() + TRAILER_BYTES);
    let mut member = StoredMember::begin(total, out);
    parts.iter().for_each(|part| member.push(part, out));
    member.end(out);
    (out.len() - start) as u64
}

/// BFINAL, BTYPE 00 and the bits up to the next byte; LEN and its complement.
fn write_block_head(bytes: u16, is_last: bool, out: &mut Vec<u8>) {
    out.push(u8::from(is_last));
    out.extend_from_slice(&bytes.to_le_bytes());
    out.extend_from_slice(&(!bytes).to_le_bytes());
}

/// RFC 1952 section 2.3: deflate, no fields, no time, and an unknown operating system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
const TRAILER_BYTES: usize = 8;
const BLOCK_HEAD_BYTES: usize = 5;
const BLOCK_BYTES_MAX: usize = 65_535;
/// A larger buffer held one huge record; it is freed.
const KEPT_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use ringcrawl_base::Rng;

    fn unpacked(member: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        flate2::bufread::GzDecoder::new(member).read_to_end(&mut bytes).map(|_| bytes)
    }

    /// Lengths around every limit; another library reads them, and detects damage in them.
    #[test]
    fn others_read_what_is_written() {
        let mut writer = MemberWriter::new(1);
        for length in [0, 1, 2, 65_534, 65_535, 65_536, 131_070, 131_071, 300_000] {
            let bytes = Rng::new(length as u64).bytes(length);
            let (head, rest) = bytes.split_at(length / 3);
            for is_stored in [true, false] {
                let mut out = b"before".to_vec();
                let parts = [head, b"", rest];
                let written = match is_stored {
                    true => write_stored_member(&parts, &mut out),
                    false => writer.compress(&parts, &mut out).expect("room"),
                };
                let member = &mut out[6..];
                assert_eq!(member.len() as u64, written);
                assert!(unpacked(member).expect("decodes") == bytes, "{length} {is_stored}");
                let damaged = member.len() - 5 - length / 2;
                member[damaged] ^= 1;
                assert!(unpacked(member).is_err(), "{length} {is_stored}");
            }
        }
    }
}
