//! What a shard wants done: the closed list of what comes out of the brain.
//!
//! Invariants: each is carried out once; those on files in the order in which they come, so that what is queued first is
//! on its way to the disk first: a page's record before the word that the page is over, a spool block before its reading.
//! Closing a segment and syncing go on beside the others.

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
    Hurry(u64),
    /// Ask a name server; ends as [`super::Input::Answered`].
    Ask(DnsQuery),
    /// Read a long response beside the shard; ends as [`super::Input::Read`].
    Read(Box<LongResponse>),
    /// Train a dictionary beside the shard; ends as [`super::Input::Trained`].
    Train(Box<Training>),
    /// Put a message into a ring; comes back as [`super::Input::Refused`] when that has no room.
    Send(Outgoing),
    /// Do something with files; ends as [`super::Input::Disk`].
    Disk(DiskOp),
    /// Tell the operator.
    Note(String),
    /// The shard has ended: what it has is written, or the disk failed as is said.
    End(Result<(), String>),
}

/// An operation on the shard's files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiskOp {
    /// The open segment.
    Segment(SegmentOp),
    /// The spool.
    Spool(SpoolOp),
    /// Write to a log, which is made when it is not there.
    Append(Append),
    /// Read a log from `position` on: some bytes, none behind its end, or when there is no such log.
    ReadLog {
        /// Which.
        file: LogFile,
        /// Where.
        position: u64,
    },
    /// Cut a log to this length: what is behind is torn.
    CutLog {
        /// Which.
        file: LogFile,
        /// Bytes that stay.
        bytes: u64,
    },
    /// Delete a log.
    DeleteLog(LogFile),
    /// Keep a log under another name, `.damaged` behind its own.
    PutLogAside(LogFile),
    /// Ends when everything that was given out before is carried out, the closing of segments included, and with
    /// `to_device` when segments and logs are on the device, with their names. What comes after need not wait for it.
    Sync {
        /// Whether the device is waited for.
        to_device: bool,
    },
}

impl DiskOp {
    /// Bytes that are to be written.
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
