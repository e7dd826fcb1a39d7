//! Segments: WARC 1.1 records, each its own zstd frame, with a CDXJ index next to each file.
//!
//! Decides: what of a page is kept, in which record and in which bytes; how a segment is read, checked and repaired.
//! A segment is `DIR/shard-NN/segments/NAME.warc.zst` with `NAME.cdxj`; while either is being written, its name ends
//! in `.open`.
//!
//! | part of a file | bytes |
//! |---|---|
//! | frame 0 | `warcinfo` record |
//! | per capture, one frame each | `response` or `revisit`, `request` if it was kept, `metadata` if there is any |
//! | per failure | `metadata` |
//! | per answer of a name server | `resource` |
//!
//! Why frames: a reader can start at any indexed offset, and a torn tail costs only the last record. Any tool that
//! supports zstd and WARC reads the files (IIPC "Zstandard Compression for WARC Files" 1.0).
//!
//! Bodies are stored as received or without their content coding (`store.body`); already compressed data is not
//! compressed again.
//!
//! Invariants: one frame holds exactly one record; every frame states its content size and carries a checksum; the
//! writing half opens no file: it fills a `Vec<u8>` that the hands write at the offset given with it.
//! Leaves to others: writing, syncing and renaming files (`disk`), when to store what (`shard`).
//!
//! ```
//! use ringcrawl_warc::DigestAlgorithm;
//! use ringcrawl_warc::digest::write_label_of;
//!
//! let mut label = Vec::new();
//! write_label_of(DigestAlgorithm::Sha1, b"", &mut label);
//! assert_eq!(label, b"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
//! ```

pub mod content;
pub mod digest;
pub mod earlier_crawls;
pub mod examine;
pub mod export;
pub mod fault;
pub mod folder;
pub mod frame;
pub mod head;
pub mod index;
pub mod read;
pub mod record_head;
pub mod recover;
pub mod segments;
pub mod selection;
pub mod source;
pub mod verify;

mod capture;
mod container;
mod dictionary;
mod gzip_member;
mod notes;
mod originals;
mod raw_frame;
mod record;
#[cfg(test)]
mod sample;
mod segment;

pub use capture::{Capture, CaptureIds, CaptureWriter, Records};
pub use container::{Packing, SegmentFormat};
pub use dictionary::{Dictionary, Training};
pub use digest::DigestAlgorithm;
pub use notes::{Failure, HostAddresses, Note};
pub use originals::Originals;
pub use record::{RecordIds, write_field, write_number};
pub use segment::{Pending, Placed, SegmentWriter, Settings};
pub use segments::{SegmentOp, Segments};

/// Why a record could not be added to a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// zstd failed, with its own name for the reason (in practice: out of memory).
    #[error("zstd: {0}")]
    Zstd(&'static str),
    /// libdeflate had less room than it asked for.
    #[error("gzip: no room")]
    Gzip,
    /// A capture was appended before `begin` or after `finish`.
    #[error("no segment is open")]
    NotOpen,
}
