//! What a shard wants done: the closed list of what comes out of the brain.
//!
//! Invariants: each is carried out once; those on files in the order in which they come, so that what is queued first is
//! on its way to the disk first: a page's record before the journal's word that the page is over, a spool block before
//! its reading.

use std::rc::Rc;

use crate::exchange::Outgoing;
use crate::names::DnsQuery;
use crate::outcome::FetchJob;
use crate::spool::SpoolOp;
use crate::store::SegmentOp;

/// Something to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Fetch; ends as [`super::Input::Fetched`].
    Fetch(Rc<FetchJob>),
    /// Ask a name server; ends as [`super::Input::Answered`].
    Ask(DnsQuery),
    /// Put a message into a ring; comes back as [`super::Input::Refused`] when that has no room.
    Send(Outgoing),
    /// Do something with files; ends as [`super::Input::Disk`].
    Disk(DiskOp),
    /// Tell the operator.
    Note(String),
    /// The shard has ended: what it has is written, or the disk failed as is said.
    End(Result<Ending, String>),
}

/// How a shard ended that has written what it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Other shards have accepted everything that was found for them.
    HandedOver,
    /// Some of it they have not: it is sent again by the next run.
    Unsent,
}

/// An operation on the shard's files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiskOp {
    /// The open segment.
    Segment(SegmentOp),
    /// The spool.
    Spool(SpoolOp),
    /// Write to the journal, whose whole blocks end at `position`.
    Append {
        /// Where.
        position: u64,
        /// Whole blocks.
        bytes: Vec<u8>,
    },
    /// Read the journal from `position` on: some bytes, none behind its end.
    ReadLog {
        /// Where.
        position: u64,
    },
    /// Cut the journal to this length: what is behind is torn.
    CutLog {
        /// Bytes that stay.
        bytes: u64,
    },
}

impl DiskOp {
    /// Bytes that are to be written.
    pub fn bytes(&self) -> u64 {
        match self {
            DiskOp::Segment(SegmentOp::Write { bytes, .. } | SegmentOp::Close { index: bytes })
            | DiskOp::Append { bytes, .. }
            | DiskOp::Spool(SpoolOp::Write { bytes, .. }) => bytes.len() as u64,
            DiskOp::Segment(SegmentOp::Begin(_))
            | DiskOp::Spool(_)
            | DiskOp::ReadLog { .. }
            | DiskOp::CutLog { .. } => 0,
        }
    }
}
