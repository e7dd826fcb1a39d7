//! Frames or members: the layout of a segment's records in its file.
//!
//! Decides: each record becomes one zstd frame (`frame`, `raw_frame`) or one gzip member (`gzip_member`), compressed
//! where that pays. Nothing else of a segment depends on `store.format` except its name.
//! Invariants: `put` adds one whole frame or member, or leaves `out` as it was.

use super::StoreError;
use super::dictionary::Dictionary;
use super::digest::DigestAlgorithm;
use super::frame::FrameWriter;
use super::gzip_member::{MemberWriter, StoredMember, write_stored_member};
use super::raw_frame::{RawFrame, write_raw_frame};
use ringcrawl_base::choices;

choices! {
    /// How the records of a segment lie in its file.
    SegmentFormat {
        /// a zstd frame a record
        WarcZst = "warc.zst",
        /// a gzip member a record
        WarcGz = "warc.gz",
    }
}

/// How records are packed and which digests they carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packing {
    /// Frames or members.
    pub format: SegmentFormat,
    /// zstd level, −7 to 19.
    pub zstd_level: i32,
    /// gzip level, 1 to 12.
    pub gzip_level: i32,
    /// Nothing is compressed.
    pub is_raw: bool,
    /// Records share a dictionary.
    pub has_dictionary: bool,
    /// Digests of payloads and blocks.
    pub digest: DigestAlgorithm,
}

/// Writes the records of one shard.
pub enum Container {
    /// zstd frames, with a compressor unless nothing is compressed.
    Zstd(Option<FrameWriter>),
    /// gzip members.
    Gzip(Option<MemberWriter>),
}

impl Container {
    /// Creates it with its compressor.
    pub fn new(packing: Packing) -> Result<Container, StoreError> {
        Ok(match (packing.format, packing.is_raw) {
            (SegmentFormat::WarcZst, true) => Container::Zstd(None),
            (SegmentFormat::WarcZst, false) => Container::Zstd(Some(FrameWriter::new(packing.zstd_level)?)),
            (SegmentFormat::WarcGz, true) => Container::Gzip(None),
            (SegmentFormat::WarcGz, false) => Container::Gzip(Some(MemberWriter::new(packing.gzip_level))),
        })
    }

    /// Later records share `dictionary`, or none; members have none.
    pub fn use_dictionary(&mut self, dictionary: Option<&Dictionary>) -> Result<(), StoreError> {
        match self {
            Container::Zstd(Some(frames)) => frames.use_dictionary(dictionary),
            _ => Ok(()),
        }
    }

    /// Adds one record, the concatenation of `parts`, to `out`, compressed if that `pays`; returns its length there
    /// in bytes.
    pub fn put(&mut self, parts: &[&[u8]], pays: bool, out: &mut Vec<u8>) -> Result<u64, StoreError> {
        match self {
            Container::Zstd(Some(frames)) if pays => frames.compress(parts, out),
            Container::Gzip(Some(members)) if pays => members.compress(parts, out),
            Container::Zstd(_) => Ok(write_raw_frame(parts, out)),
            Container::Gzip(_) => Ok(write_stored_member(parts, out)),
        }
    }
}

/// A record that is written uncompressed, piece by piece.
pub enum RawRecord {
    /// In a zstd frame.
    Frame(RawFrame),
    /// In a gzip member.
    Member(StoredMember),
}

impl RawRecord {
    /// Begins a record of `total` bytes in `out`.
    pub fn begin(format: SegmentFormat, total: usize, out: &mut Vec<u8>) -> RawRecord {
        match format {
            SegmentFormat::WarcZst => RawRecord::Frame(RawFrame::begin(total, out)),
            SegmentFormat::WarcGz => RawRecord::Member(StoredMember::begin(total, out)),
        }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            RawRecord::Frame(frame) => frame.push(bytes, out),
            RawRecord::Member(member) => member.push(bytes, out),
        }
    }

    /// Ends the record, after all of its bytes were pushed.
    pub fn end(self, out: &mut Vec<u8>) {
        match self {
            RawRecord::Frame(frame) => frame.end(out),
            RawRecord::Member(member) => member.end(out),
        }
    }
}

/// The suffix of a segment name.
pub fn suffix(format: SegmentFormat) -> &'static str {
    match format {
        SegmentFormat::WarcZst => ".warc.zst",
        SegmentFormat::WarcGz => ".warc.gz",
    }
}
