//! What a shard wants done: the closed list of the brain's outputs.
//!
//! Invariants: each is carried out once. File operations are carried out in order, so that what is queued first is on
//! its way to the disk first: a page's record before the entry that ends the page, a spool block before it is read.
//! Closing a segment and syncing run alongside the others.

use std::rc::Rc;

use crate::exchange::Outgoing;
use crate::job::FetchJob;
use crate::log::{Append, LogFile};
use crate::names::DnsQuery;
use crate::page::LongResponse;
use crate::spool::SpoolOp;
use ringcrawl_warc::{SegmentOp, Training};

/// Something to do.
#[derive(Debug)]
pub enum Effect {
    /// Fetch; ends as [`super::Input::Fetched`].
    Fetch(Rc<FetchJob>),
    /// End the fetch of this job, if it still waits for its response, as one whose deadline has passed.
    CutShort(u64),
    /// Query a name server; ends as [`super::Input::Answered`].
    Ask(DnsQuery),
    /// Read a long response in parallel with the shard; ends as [`super::Input::Read`].
    Read(Box<LongResponse>),
    /// Train a dictionary in parallel with the shard; ends as [`super::Input::Trained`].
    Train(Box<Training>),
    /// Put a message into a ring; comes back as [`super::Input::Refused`] when the ring has no room.
    Send(Outgoing),
    /// Do something with files; ends as [`super::Input::Disk`].
    Disk(DiskOp),
    /// Tell the operator.
    Note(String),
    /// Tell what the operator must know or act on.
    Warn(String),
    /// The shard has ended: its data is written, or the disk failed with this error.
    End(Result<(), String>),
}

/// An operation on the shard's files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiskOp {
    /// The open segment.
    Segment(SegmentOp),
    /// The spool.
    Spool(SpoolOp),
    /// Write to a log, which is created if it does not exist.
    Append(Append),
    /// Read a log from `position` on. Returns some bytes; none past its end, or if there is no such log.
    ReadLog {
        /// The log.
        file: LogFile,
        /// The offset.
        position: u64,
    },
    /// Cut a log to this length: the rest is torn.
    CutLog {
        /// The log.
        file: LogFile,
        /// Bytes to keep.
        bytes: u64,
    },
    /// Delete a log.
    DeleteLog(LogFile),
    /// Keep a log under another name, with `.damaged` appended.
    PutLogAside(LogFile),
    /// Ends when every operation issued before is done, including the closing of segments, and with `to_device` when
    /// segments and logs are on the device, with their names. Later operations need not wait for it.
    Sync {
        /// Whether to wait for the device.
        to_device: bool,
    },
}

impl DiskOp {
    /// Bytes to write.
    pub fn bytes(&self) -> u64 {
        match self {
            DiskOp::Segment(SegmentOp::Write { bytes, .. } | SegmentOp::Close { index: bytes })
            | DiskOp::Append(Append { bytes, .. })
            | DiskOp::Spool(SpoolOp::Write { bytes, .. }) => bytes.len() as u64,
            DiskOp::Segment(SegmentOp::Begin(_))
            | DiskOp::Spool(_)
            | DiskOp::ReadLog { .. }
            | DiskOp::CutLog { .. }
            | DiskOp::DeleteLog(_)
            | DiskOp::PutLogAside(_)
            | DiskOp::Sync { .. } => 0,
        }
    }
}
