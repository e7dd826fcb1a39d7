//! What the disk receives, its results, and how the run ends.
//!
//! Invariants: nothing is written after the first failure; a run that ends well has everything on the device.

use super::{DiskEnd, DiskOp, Effect, Phase, Shard};
use crate::frontier::WaitingUrls;
use crate::spool::{Block, ReadFor};
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::Instant;
use ringcrawl_url::UrlBatch;

/// Operations that the disk has received and not completed.
#[derive(Debug, Default)]
pub struct DiskBacklog {
    ops: u64,
    bytes: u64,
}

impl DiskBacklog {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether fetching waits for the disk.
    pub(super) fn is_long(&self) -> bool {
        self.bytes > BACKLOG_BYTES_MAX
    }

    fn ended(&mut self, bytes: u64) {
        assert!(self.ops > 0 && self.bytes >= bytes, "the disk did what nobody asked for");
        self.ops -= 1;
        self.bytes -= bytes;
    }
}

impl Shard {
    /// Queues an operation for the disk.
    pub(super) fn disk(&mut self, op: DiskOp) {
        self.backlog.ops += 1;
        self.backlog.bytes += op.bytes();
        self.effects.push_back(Effect::Disk(op));
    }

    /// Issues the writes that are due.
    pub(super) fn write(&mut self, now: Instant) {
        // Blocks of waiting URLs go to the spool while an earlier run is resumed, not afterwards.
        self.write_spool();
        if self.replay.is_some() {
            return;
        }
        let _stage = stage::enter(Stage::Store);
        self.segments.flush_old(now);
        self.write_segments();
        self.commit(now, self.phase == Phase::Close);
    }

    pub(super) fn write_spool(&mut self) {
        while let Some(op) = self.spool.next_op() {
            self.disk(DiskOp::Spool(op));
        }
    }

    /// The end, once everything is written and on the device. Messages that arrive from other shards until then are,
    /// too.
    pub(super) fn end_when_written(&mut self, now: Instant) -> Option<Effect> {
        self.segments.close();
        self.write(now);
        if let Some(effect) = self.effects.pop_front() {
            return Some(effect);
        }
        if self.backlog.ops > 0 || !self.commits.is_done() || self.reopened.is_some() {
            return None;
        }
        self.end();
        self.effects.pop_front()
    }

    /// The end, with what is on disk by now.
    pub(super) fn end(&mut self) {
        self.is_over = true;
        self.effects.clear();
        self.effects.push_back(Effect::End(Ok(())));
    }

    /// The shard cannot continue: what is on disk is all there will be.
    pub(super) fn fail(&mut self, why: String) {
        self.end_for(format!("the store stopped: {why}"));
    }

    /// The crawl ends for this reason.
    pub(super) fn end_for(&mut self, why: String) {
        self.is_over = true;
        self.effects.clear();
        self.effects.push_back(Effect::End(Err(why)));
    }

    /// An operation on files ended.
    pub(super) fn disk_ended(&mut self, now: Instant, end: DiskEnd) {
        match end {
            DiskEnd::Done { spare, bytes } => {
                self.backlog.ended(bytes);
                if let Some(spare) = spare {
                    self.segments.reuse(spare);
                }
                self.replay_on(now);
            }
            DiskEnd::BlockRead { block, bytes } => {
                self.backlog.ended(0);
                self.block_read(now, block, bytes);
            }
            DiskEnd::LogRead { bytes } => {
                self.backlog.ended(0);
                self.log_read(now, &bytes);
            }
            DiskEnd::Synced => {
                self.backlog.ended(0);
                self.synced(now);
            }
            DiskEnd::Failed(why) => self.fail(why),
        }
    }

    pub(super) fn write_segments(&mut self) {
        while let Some(op) = self.segments.next_op() {
            self.disk(DiskOp::Segment(op));
        }
    }

    /// A block of the spool was read back. A block that differs from what was written ends the run: its URLs are lost
    /// to the run, and those for other shards are counted and would be waited for. They are in the logs.
    fn block_read(&mut self, now: Instant, block: Block, bytes: Vec<u8>) {
        let Some(purpose) = self.spool.finished_read(block) else {
            panic!("{block:?} came back and was not asked for")
        };
        let is_whole = block.is_whole(&bytes);
        let taken = match purpose {
            _ if !is_whole => None,
            ReadFor::Host(host) => WaitingUrls::from_bytes(bytes).map(|urls| self.frontier.returned(now, host, urls)),
            ReadFor::Outside(lane) => {
                WaitingUrls::from_bytes(bytes).map(|urls| self.frontier.returned_outside(lane, urls))
            }
            ReadFor::Lane(to) => UrlBatch::from_bytes(bytes).map(|batch| self.lanes.returned(to, batch)),
            ReadFor::SetAside => UrlBatch::from_bytes(bytes).map(|batch| self.reconsider(now, &batch)),
        };
        if taken.is_none() {
            self.fail(format!("spool/{}: a block is not what was written", block.file));
        }
    }
}

/// The disk may be this far behind before fetching waits for it.
pub const BACKLOG_BYTES_MAX: u64 = 16 << 20;
