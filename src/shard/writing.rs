//! What goes to disk, in which order; how an earlier run is taken up and this one ends.
//!
//! Invariants: before a block of the journal goes out, all records that were made before it have gone out; nothing is
//! written after the first failure.

use super::{DiskEnd, DiskOp, Effect, Ending, Shard};
use crate::spool::{Block, ReadFor};
use crate::stage::{self, Stage};
use crate::time::Instant;
use crate::url::UrlBatch;

/// What the disk has been given and has not done.
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
    /// Gives the disk something to do.
    pub(super) fn disk(&mut self, op: DiskOp) {
        self.backlog.ops += 1;
        self.backlog.bytes += op.bytes();
        self.effects.push_back(Effect::Disk(op));
    }

    /// Hands out what is to be written by now.
    pub(super) fn write(&mut self, now: Instant) {
        // Blocks of waiting URLs go to the spool while an earlier run is taken up, not after it.
        while let Some(op) = self.spool.next_op() {
            self.disk(DiskOp::Spool(op));
        }
        if self.replay.is_some() {
            return;
        }
        let _stage = stage::enter(Stage::Store);
        self.segments.flush_old(now);
        self.write_segments();
        self.write_journal(now, false);
    }

    /// Writes what waits to be written, and lets the shard end when that is done.
    pub(super) fn begin_closing(&mut self, now: Instant) {
        self.segments.close();
        self.write_segments();
        self.write_journal(now, true);
    }

    /// The end, when everything is written. What other shards sent meanwhile is written, too.
    pub(super) fn end_when_written(&mut self) -> Option<Effect> {
        let until = Instant::NEVER;
        self.write_journal(until, true);
        if let Some(effect) = self.effects.pop_front() {
            return Some(effect);
        }
        if self.backlog.ops > 0 {
            return None;
        }
        self.end(if self.is_drained() { Ending::HandedOver } else { Ending::Unsent });
        self.effects.pop_front()
    }

    /// The end, with what is on disk by now.
    pub(super) fn end(&mut self, ending: Ending) {
        self.is_over = true;
        self.effects.clear();
        self.effects.push_back(Effect::End(Ok(ending)));
    }

    /// The shard cannot go on: what is on disk is all there will be.
    pub(super) fn fail(&mut self, why: String) {
        self.is_over = true;
        self.effects.clear();
        self.effects.push_back(Effect::End(Err(format!("the store stopped: {why}"))));
    }

    /// An operation on files ended.
    pub(super) fn disk_ended(&mut self, now: Instant, end: DiskEnd) {
        match end {
            DiskEnd::Done { spare, bytes } => {
                self.backlog.ended(bytes);
                if let Some(spare) = spare {
                    self.segments.reuse(spare);
                }
            }
            DiskEnd::BlockRead { block, bytes } => {
                self.backlog.ended(0);
                self.block_read(now, block, bytes);
            }
            DiskEnd::LogRead { bytes } => {
                self.backlog.ended(0);
                self.log_read(now, &bytes);
            }
            DiskEnd::Failed(why) => self.fail(why),
        }
    }

    fn write_segments(&mut self) {
        while let Some(op) = self.segments.next_op() {
            self.disk(DiskOp::Segment(op));
        }
    }

    fn write_journal(&mut self, now: Instant, all: bool) {
        loop {
            let block = {
                let _stage = stage::enter(Stage::Journal);
                self.journal.take_block(now, all)
            };
            let Some(bytes) = block else { break };
            // The records of pages that the block calls over go first.
            self.segments.flush();
            self.write_segments();
            let position = self.journal_bytes;
            self.journal_bytes += bytes.len() as u64;
            self.disk(DiskOp::Append { position, bytes });
        }
    }

    /// A block of the spool is back. One that is not what was written ends the run: its URLs are lost to it, and those
    /// for other shards are counted and would be waited for. They are in the journal.
    fn block_read(&mut self, now: Instant, block: Block, bytes: Vec<u8>) {
        let Some(purpose) = self.spool.finished_read(block) else {
            panic!("{block:?} came back and was not asked for")
        };
        let batch = block.is_whole(&bytes).then(|| UrlBatch::from_bytes(bytes)).flatten();
        let Some(batch) = batch else {
            return self.fail(format!("spool/{}: a block is not what was written", block.file));
        };
        match purpose {
            ReadFor::Host(host) => self.frontier.returned(now, host, batch),
            ReadFor::Lane(to) => self.lanes.returned(to, batch),
            ReadFor::Outside => self.frontier.returned_outside(batch),
        }
    }

    /// A piece of an earlier run's journal.
    fn log_read(&mut self, now: Instant, bytes: &[u8]) {
        let Some(mut replay) = self.replay.take() else { panic!("a journal came that nobody asked for") };
        replay.read(bytes, &mut |step, over| self.replayed(now, step, |fingerprint| over.contains(&fingerprint)));
        if !replay.is_done() {
            self.disk(DiskOp::ReadLog { position: replay.next_offset() });
            self.replay = Some(replay);
            return;
        }
        self.journal_bytes = replay.end();
        let index = self.index;
        if self.known > 0 {
            let (known, waiting) = (self.known, self.known_waiting);
            self.effects.push_back(Effect::Note(format!("shard {index}: {known} URLs known, {waiting} wait")));
        }
        if replay.torn_bytes() > 0 {
            let torn = replay.torn_bytes();
            self.effects.push_back(Effect::Note(format!("shard {index}: {torn} bytes of a torn journal cut")));
            self.disk(DiskOp::CutLog { bytes: replay.end() });
        }
        if replay.damaged_bytes() > 0 {
            let damaged = replay.damaged_bytes();
            self.effects.push_back(Effect::Note(format!(
                "shard {index}: {damaged} bytes of its journal are damaged and left as they are: URLs that stand there \
                 alone are lost to this crawl"
            )));
        }
        self.sow(now);
    }
}

/// The disk may be this far behind before fetching waits for it.
pub const BACKLOG_BYTES_MAX: u64 = 16 << 20;
