//! How reading a WARC file fails.
//!
//! Decides: damage is distinguished from an unreadable file, since reading continues after damage. Damage is a closed
//! list and includes its place; no byte of a file leads anywhere else.
//! Leaves to others: finding damage (`source`, `read`), what to do about it (`verify`, `recover`).

use std::io;

/// What is wrong at some place in a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SegmentFault {
    /// The file starts like no format we read.
    #[error("not a WARC file")]
    UnknownFormat,
    /// Neither a frame nor a member starts where one should.
    #[error("no frame starts here")]
    NoFrame,
    /// zstd's own name for the error.
    #[error("zstd frame: {0}")]
    Zstd(&'static str),
    /// A gzip member is broken.
    #[error("gzip member: {0}")]
    Gzip(String),
    /// The dictionary is invalid or too large.
    #[error("unusable dictionary frame")]
    Dictionary,
    /// The file ends inside a frame or record.
    #[error("truncated: the file ends inside a record")]
    Truncated,
    /// Something other than `WARC/` where a record should start.
    #[error("no record starts here")]
    NoRecord,
    /// A record's head is longer than 1 MiB.
    #[error("record head is too long")]
    HeadTooLong,
    /// The next record starts, in a frame of its own, before this one's Content-Length is reached.
    #[error("its frames end before its Content-Length")]
    Overlong,
}

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file could be read and is damaged; reading can continue at the next record.
    #[error("offset {offset}: {fault}")]
    Damaged {
        /// Where the damaged frame (or record, in a plain file) starts, in bytes.
        offset: u64,
        /// What is wrong.
        fault: SegmentFault,
    },
}
