//! A disk for experiments: it reports every write as done, and keeps only what the shard reads again.
//!
//! Decides: every operation completes at once. Segments and logs are dropped, blocks of the spool are kept until they
//! are read.
//! Invariants: a block is read once.

use std::collections::HashMap;

use ringcrawl_brain::shard::{DiskEnd, DiskOp};
use ringcrawl_brain::spool::SpoolOp;
use ringcrawl_warc::SegmentOp;

/// One shard's disk.
#[derive(Debug, Default)]
pub(super) struct ForgetfulDisk {
    spool: HashMap<(u32, u32), Vec<u8>>,
}

impl ForgetfulDisk {
    /// Does `op`.
    pub(super) fn carry_out(&mut self, op: DiskOp) -> DiskEnd {
        let bytes = op.bytes();
        match op {
            DiskOp::Segment(SegmentOp::Write { bytes: spare, .. }) => DiskEnd::Done { spare: Some(spare), bytes },
            DiskOp::ReadLog { .. } => DiskEnd::LogRead { bytes: Vec::new() },
            DiskOp::Sync { .. } => DiskEnd::Synced,
            DiskOp::Spool(SpoolOp::Write { block, bytes: content }) => {
                self.spool.insert((block.file, block.offset), content);
                DiskEnd::Done { spare: None, bytes }
            }
            DiskOp::Spool(SpoolOp::Read { block }) => {
                let bytes = self.spool.remove(&(block.file, block.offset)).unwrap_or_default();
                DiskEnd::BlockRead { block, bytes }
            }
            _ => DiskEnd::Done { spare: None, bytes },
        }
    }
}
