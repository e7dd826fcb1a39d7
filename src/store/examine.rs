//! One pass over a record: what it is, how long its payload is, whether its digests hold.
//!
//! Decides: the payload of a record with an HTTP head is what follows the head; of any other record, its block
//! (WARC 1.1 section 3.2). A payload digest is taken as right for the payload as stored and also for the payload
//! with its chunked coding undone, since writers do both (RFC 2616's "entity-body", which WARC 1.1 names, is the
//! latter). The digests of revisits and of segmented records speak of bytes elsewhere and are not compared.
//! Limits: constant memory, but for the heads.
//! Leaves to others: what to do about a wrong digest (`verify`).

use std::io::{Read, Seek};

use super::digest::Claim;
use super::fault::ReadError;
use super::read::{Record, RecordEnd, SegmentReader};
use super::warc::HttpHead;

/// What one pass over a record found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Examined {
    /// Its HTTP head; empty when it has none.
    pub http: HttpHead,
    /// Bytes of its payload as stored.
    pub payload_bytes: u64,
    /// Whether WARC-Block-Digest holds; `None`: absent, or of an algorithm we do not have.
    pub block_digest_holds: Option<bool>,
    /// Whether WARC-Payload-Digest holds; `None` as above, or it speaks of other bytes.
    pub payload_digest_holds: Option<bool>,
    /// How the record ended.
    pub end: RecordEnd,
}

/// The next record and what it is, without its digests; `None`: the file ends here.
pub fn next_examined<R: Read + Seek>(reader: &mut SegmentReader<R>) -> Result<Option<(Record, Examined)>, ReadError> {
    let Some(record) = reader.next_record()? else { return Ok(None) };
    let examined = examine(reader, &record, false)?;
    Ok(Some((record, examined)))
}

/// Reads the rest of `record`, which `reader` has just given. Without `digests` nothing is hashed.
pub fn examine<R: Read + Seek>(
    reader: &mut SegmentReader<R>,
    record: &Record,
    digests: bool,
) -> Result<Examined, ReadError> {
    examine_payload(reader, record, digests, |_| {})
}

/// The same, and hands out the payload as stored.
pub fn examine_payload<R: Read + Seek>(
    reader: &mut SegmentReader<R>,
    record: &Record,
    digests: bool,
    mut take: impl FnMut(&[u8]),
) -> Result<Examined, ReadError> {
    let claim = |name| record.head.get(name).filter(|_| digests).and_then(Claim::parse);
    let is_elsewhere = record.head.kind() == "revisit" || record.head.get("WARC-Segment-Number").is_some();
    let mut block = claim("WARC-Block-Digest");
    let mut payload = claim("WARC-Payload-Digest").filter(|_| !is_elsewhere);

    let http = if record.head.is_http() { reader.read_http_head()? } else { HttpHead::default() };
    if let Some(block) = &mut block {
        block.update(&http.bytes);
    }
    let is_chunked = http.get("Transfer-Encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    let mut unchunked = if is_chunked && payload.is_some() { claim("WARC-Payload-Digest") } else { None };
    let mut chunks = Chunks::default();

    let mut payload_bytes = 0;
    let mut piece = [0; 16 << 10];
    loop {
        let count = reader.read_block(&mut piece)?;
        let bytes = piece.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        payload_bytes += count as u64;
        take(bytes);
        for claim in [&mut block, &mut payload].into_iter().flatten() {
            claim.update(bytes);
        }
        if let Some(unchunked) = &mut unchunked {
            chunks.undo(bytes, |data| unchunked.update(data));
        }
    }
    let end = reader.end_record()?;
    let is_unchunked_right = chunks.is_whole() && unchunked.is_some_and(Claim::holds);
    Ok(Examined {
        http,
        payload_bytes,
        block_digest_holds: block.map(Claim::holds),
        payload_digest_holds: payload.map(|claim| claim.holds() || is_unchunked_right),
        end,
    })
}

/// The chunked coding being undone (RFC 9112 section 7.1), leniently: this only helps to compare a digest.
#[derive(Default)]
struct Chunks {
    state: ChunkState,
    /// Bytes left of the chunk; while its size line is read, the size so far.
    left: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ChunkState {
    #[default]
    Size,
    Extension,
    Data,
    DataEnd,
    Trailer,
    Broken,
}

impl Chunks {
    fn undo(&mut self, mut bytes: &[u8], mut data: impl FnMut(&[u8])) {
        while let Some((first, rest)) = bytes.split_first() {
            if self.state == ChunkState::Data {
                let count = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                let (chunk, rest) = bytes.split_at(count);
                data(chunk);
                self.left -= count as u64;
                if self.left == 0 {
                    self.state = ChunkState::DataEnd;
                }
                bytes = rest;
                continue;
            }
            bytes = rest;
            self.state = match (self.state, first) {
                (ChunkState::Size, b'\n') | (ChunkState::Extension, b'\n') => {
                    if self.left == 0 {
                        ChunkState::Trailer
                    } else {
                        ChunkState::Data
                    }
                }
                (ChunkState::Size, byte) => match char::from(*byte).to_digit(16) {
                    Some(digit) if self.left >> 60 == 0 => {
                        self.left = self.left << 4 | u64::from(digit);
                        ChunkState::Size
                    }
                    Some(_) => ChunkState::Broken,
                    None => ChunkState::Extension,
                },
                (ChunkState::DataEnd, b'\n') => ChunkState::Size,
                (ChunkState::DataEnd, b'\r') => ChunkState::DataEnd,
                (ChunkState::DataEnd, _) => ChunkState::Broken,
                (state, _) => state,
            };
        }
    }

    fn is_whole(&self) -> bool {
        self.state == ChunkState::Trailer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_in_any_pieces() {
        let coded = b"5\r\nhello\r\n1;x=y\r\n \r\n00A\r\n0123456789\r\n0\r\nA: b\r\n\r\n";
        for piece in 1..coded.len() {
            let mut chunks = Chunks::default();
            let mut plain = Vec::new();
            for bytes in coded.chunks(piece) {
                chunks.undo(bytes, |data| plain.extend_from_slice(data));
            }
            assert_eq!(plain, b"hello 0123456789");
            assert!(chunks.is_whole());
        }
        for broken in [&b"5\r\nhelloX\r\n0\r\n"[..], b"fffffffffffffffff\r\n", b"5\r\nhel", b""] {
            let mut chunks = Chunks::default();
            chunks.undo(broken, |_| {});
            assert!(!chunks.is_whole());
        }
    }
}
