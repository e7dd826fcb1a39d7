//! One pass over a record: what it is, how long its payload is, whether its digests match.
//!
//! Decides: the payload of a record with an HTTP head is what follows the head; of any other record, its block (WARC
//! 1.1 section 3.2). A payload digest is accepted for the payload as stored and also for the payload without its
//! chunked coding, since writers do both (RFC 2616's "entity-body", which WARC 1.1 names, is the latter). The digests
//! of revisits and of segmented records are about bytes elsewhere and are not compared.
//! Limits: constant memory, except for the heads.
//! Leaves to others: what to do about a wrong digest (`verify`).

use std::io::{Read, Seek};

use super::digest::ClaimedDigest;
use super::fault::ReadError;
use super::read::{Record, RecordEnd, SegmentReader};
use super::record_head::HttpHead;

/// What one pass over a record found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Examined {
    /// Its HTTP head; empty when it has none.
    pub http: HttpHead,
    /// The same without the chunked coding, if it is chunked.
    pub payload_bytes: u64,
    /// Whether WARC-Block-Digest matches; `None`: absent, or of an unsupported algorithm.
    pub body_bytes: u64,
    /// Whether WARC-Payload-Digest matches; `None` as above, or it is about other bytes.
    pub block_digest_holds: Option<bool>,
    /// Whether WARC-Payload-Digest holds; `None` as above, or it speaks of other bytes.
    pub payload_digest_holds: Option<bool>,
    /// How the record ended.
    pub end: RecordEnd,
}

/// The next record and its kind, without its digests; `None`: the file ends here.
pub fn next_examined<R: Read + Seek>(reader: &mut SegmentReader<R>) -> Result<Option<(Record, Examined)>, ReadError> {
    let Some(record) = reader.next_record()? else { return Ok(None) };
    let examined = examine(reader, &record, false)?;
    Ok(Some((record, examined)))
}

/// Reads the rest of `record`, which `reader` has just returned. Without `digests`, nothing is hashed.
pub fn examine<R: Read + Seek>(
    reader: &mut SegmentReader<R>,
    record: &Record,
    digests: bool,
) -> Result<Examined, ReadError> {
    examine_payload(reader, record, digests, |_| {})
}

/// The same, and passes on the payload as stored.
pub fn examine_payload<R: Read + Seek>(
    reader: &mut SegmentReader<R>,
    record: &Record,
    digests: bool,
    mut take: impl FnMut(&[u8]),
) -> Result<Examined, ReadError> {
    let claim = |name| record.head.get(name).filter(|_| digests).and_then(ClaimedDigest::parse);
    let is_elsewhere = record.head.kind() == "revisit" || record.head.get("WARC-Segment-Number").is_some();
    let mut block = claim("WARC-Block-Digest");
    let mut payload = claim("WARC-Payload-Digest").filter(|_| !is_elsewhere);

    let http = if record.head.is_http() { reader.read_http_head()? } else { HttpHead::default() };
    if let Some(block) = &mut block {
        block.update(&http.bytes);
    }
    let is_chunked = says_chunked(&http);
    let mut unchunked = if is_chunked && payload.is_some() { claim("WARC-Payload-Digest") } else { None };
    let mut chunks = Chunks::default();

    let (mut payload_bytes, mut body_bytes) = (0, 0);
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
        if is_chunked {
            chunks.undo(bytes, |data| {
                body_bytes += data.len() as u64;
                unchunked.iter_mut().for_each(|claim| claim.update(data));
            });
        }
    }
    let end = reader.end_record()?;
    let is_unchunked_right = chunks.is_whole() && unchunked.is_some_and(ClaimedDigest::holds);
    Ok(Examined {
        http,
        payload_bytes,
        body_bytes: if is_chunked && chunks.are_there() { body_bytes } else { payload_bytes },
        block_digest_holds: block.map(ClaimedDigest::holds),
        payload_digest_holds: payload.map(|claim| claim.holds() || is_unchunked_right),
        end,
    })
}

/// Whether the chunked coding is the last one that Transfer-Encoding names (RFC 9112 section 6.1).
fn says_chunked(http: &HttpHead) -> bool {
    let codings = http.get("Transfer-Encoding").unwrap_or_default();
    codings.rsplit(',').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("chunked"))
}

/// `payload` without the chunked coding, if `http` names it and it is present: some writers keep the field but store
/// the decoded content.
pub fn unchunked(http: &HttpHead, payload: &[u8]) -> Option<Vec<u8>> {
    if !says_chunked(http) {
        return None;
    }
    let (mut chunks, mut body) = (Chunks::default(), Vec::new());
    chunks.undo(payload, |data| body.extend_from_slice(data));
    chunks.are_there().then_some(body)
}

/// A decoder of the chunked coding (RFC 9112 section 7.1). It skips extensions and trailer fields, and accepts lines
/// that end without CR; any other deviation means that the text is not chunked.
#[derive(Default)]
struct Chunks {
    state: ChunkState,
    /// Bytes left of the chunk; while its size line is read, the size so far.
    left: u64,
    /// Whether a chunk has ended.
    has_any: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ChunkState {
    #[default]
    Begin,
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
                (state @ (ChunkState::Begin | ChunkState::Size), byte) => match char::from(*byte).to_digit(16) {
                    Some(digit) if self.left >> 60 == 0 => {
                        self.left = self.left << 4 | u64::from(digit);
                        ChunkState::Size
                    }
                    None if state == ChunkState::Size && b";\r \t".contains(byte) => ChunkState::Extension,
                    _ => ChunkState::Broken,
                },
                (ChunkState::DataEnd, b'\n') => {
                    self.has_any = true;
                    ChunkState::Begin
                }
                (ChunkState::DataEnd, b'\r') => ChunkState::DataEnd,
                (ChunkState::DataEnd, _) => ChunkState::Broken,
                (state, _) => state,
            };
        }
    }

    fn is_whole(&self) -> bool {
        self.state == ChunkState::Trailer
    }

    /// Whether the input is in this coding: complete, or up to a point after the first chunk, as in a truncated
    /// response.
    fn are_there(&self) -> bool {
        self.is_whole() || self.has_any && self.state != ChunkState::Broken
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
            assert!(!chunks.is_whole() && !chunks.are_there());
        }
    }

    /// A body that is no longer chunked, or never was, loses no byte, however it begins.
    #[test]
    fn a_body_is_unchunked_where_it_is_chunked() {
        let head = |value: &str| HttpHead {
            bytes: format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {value}\r\n\r\n").into_bytes(),
        };
        for (value, payload, expected) in [
            ("chunked", &b"3\r\nabc\r\n0\r\n\r\n"[..], Some(&b"abc"[..])),
            ("gzip , Chunked", b"3 ;a=\"b\"\nabc\n2\r\nde\r\n0\r\nX: y\r\n\r\n", Some(b"abcde")),
            ("chunked", b"0\r\n\r\n", Some(b"")),
            // Cut in its second chunk, and before the end of its first.
            ("chunked", b"3\r\nabc\r\nff\r\nde", Some(b"abcde")),
            ("chunked", b"ff\r\nabc", None),
            ("chunked", b"<html>\n<p>", None),
            ("chunked", b"\n\n", None),
            ("chunked", b"dad and mum\r\nabc\r\n", None),
            ("chunked", b"3\r\nabcd\r\n0\r\n\r\n", None),
            ("chunked", b"", None),
            ("identity", b"3\r\nabc\r\n0\r\n\r\n", None),
            ("chunked, gzip", b"3\r\nabc\r\n0\r\n\r\n", None),
        ] {
            assert_eq!(unchunked(&head(value), payload).as_deref(), expected, "{value} {}", payload.escape_ascii());
        }
        assert_eq!(unchunked(&HttpHead::default(), b"0\r\n\r\n"), None);
    }
}
