//! What a shard wants done, in order: operations of the disk, words for the operator, the end.
//!
//! Decides: a shard that cannot continue drops what it still wanted and ends; after its end nothing is done.
//! Invariants: effects leave in the order in which they came, so that what is written first is queued first.
//! Limits: the disk may be [`BACKLOG_BYTES_MAX`] behind before the shard takes in nothing more.

use std::collections::VecDeque;

use super::{DiskOp, Effect};

/// Effects that wait to be carried out, and what the disk has received and not completed.
#[derive(Debug, Default)]
pub(super) struct EffectQueue {
    effects: VecDeque<Effect>,
    is_over: bool,
    ops: u64,
    bytes: u64,
}

impl EffectQueue {
    /// Queues an operation for the disk.
    pub(super) fn disk(&mut self, op: DiskOp) {
        self.ops += 1;
        self.bytes += op.bytes();
        self.push(Effect::Disk(op));
    }

    /// Queues something else. Nothing comes after the end.
    pub(super) fn push(&mut self, effect: Effect) {
        if !self.is_over {
            self.effects.push_back(effect);
        }
    }

    /// Queues words for the operator.
    pub(super) fn note(&mut self, words: String) {
        self.push(Effect::Note(words));
    }

    /// The same for a warning.
    pub(super) fn warn(&mut self, words: String) {
        self.push(Effect::Warn(words));
    }

    /// The next one.
    pub(super) fn pop(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// An operation of the disk ended that wrote this many bytes.
    pub(super) fn disk_ended(&mut self, bytes: u64) {
        assert!(self.ops > 0 && self.bytes >= bytes, "the disk ended an operation that was not requested");
        self.ops -= 1;
        self.bytes -= bytes;
    }

    /// Whether the disk has nothing to do.
    pub(super) fn is_disk_idle(&self) -> bool {
        self.ops == 0
    }

    /// Whether fetching waits for the disk.
    pub(super) fn is_disk_behind(&self) -> bool {
        self.bytes > BACKLOG_BYTES_MAX
    }

    /// Bytes that the disk has not written yet.
    pub(super) fn backlog_bytes(&self) -> u64 {
        self.bytes
    }

    /// The shard ends with what is on disk by now, after these words.
    pub(super) fn end(&mut self, words: Option<String>) {
        self.is_over = true;
        self.effects.clear();
        self.effects.extend(words.map(Effect::Note));
        self.effects.push_back(Effect::End(Ok(())));
    }

    /// The shard cannot continue: what is on disk is all there will be.
    pub(super) fn fail(&mut self, why: impl std::fmt::Display) {
        self.end_for(format!("the store stopped: {why}"));
    }

    /// The crawl ends for this reason.
    pub(super) fn end_for(&mut self, why: String) {
        self.is_over = true;
        self.effects.clear();
        self.effects.push_back(Effect::End(Err(why)));
    }

    /// Whether the end was queued.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }
}

/// The disk may be this far behind before fetching waits for it.
pub const BACKLOG_BYTES_MAX: u64 = 16 << 20;
