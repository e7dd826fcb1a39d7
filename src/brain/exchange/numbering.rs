//! The numbers of one lane: of messages and of batches, in both directions, and how far each side has acknowledged
//! them.
//!
//! Decides: messages are numbered as they are sent and acknowledged cumulatively, with the next message or by one of
//! its own. Batches of URLs are numbered as they close, and acknowledged when they are on the receiver's disk.
//! Invariants: message numbers have no gap, and neither side acknowledges what was not sent: a violation is our own
//! bug and asserts.
//! Leaves to others: when an acknowledgement may not wait any longer (`lanes`).

use super::message::{Header, MessageKind};

/// The state of a lane. Each number is that of the last one.
#[derive(Debug, Default)]
pub struct Numbering {
    /// Messages to the peer: sent, and acknowledged by it.
    sent: u64,
    acknowledged: u64,
    /// Messages of the peer: accepted, and acknowledged to it.
    accepted: u64,
    accepted_told: u64,
    /// Batches to the peer: closed, and on its disk.
    closed: u64,
    durable_there: u64,
    /// Batches of the peer: received, on our disk, and acknowledged to it as on disk.
    received: u64,
    durable: u64,
    durable_told: u64,
}

/// The acknowledgements in a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledged {
    /// The number of messages since the last time.
    pub messages: u64,
    /// The last batch that is on the peer's disk, if it changed.
    pub durable: Option<u64>,
}

impl Numbering {
    /// The number of the batch that now closes.
    pub fn close_batch(&mut self) -> u64 {
        self.closed += 1;
        self.closed
    }

    /// The number that the open batch will have.
    pub fn open_batch(&self) -> u64 {
        self.closed + 1
    }

    /// An earlier run has closed batches up to `number`: no new batch may get such a number, or it would be mistaken
    /// for one of those.
    pub fn closed_before(&mut self, number: u64) {
        self.closed = self.closed.max(number);
    }

    /// The header of the next message, with all acknowledgements; `batch` is 0 if it is not a batch.
    pub fn next_header(&mut self, kind: MessageKind, batch: u64) -> Header {
        self.sent += 1;
        self.header(kind, self.sent, batch)
    }

    /// The header of a message that only acknowledges.
    pub fn acknowledgement(&mut self) -> Header {
        self.header(MessageKind::Acknowledgement, 0, 0)
    }

    fn header(&mut self, kind: MessageKind, number: u64, batch: u64) -> Header {
        (self.accepted_told, self.durable_told) = (self.accepted, self.durable);
        Header { kind, number, acknowledged: self.accepted, batch, durable: self.durable }
    }

    /// Checks a message of shard `from`. One that is not the next was never sent.
    pub fn receive(&mut self, from: u16, header: &Header) -> Acknowledged {
        let Header { kind, number, acknowledged, batch, durable } = *header;
        assert!(
            (self.acknowledged..=self.sent).contains(&acknowledged),
            "shard {from} acknowledged message {acknowledged}; {} were sent, {} acknowledged",
            self.sent,
            self.acknowledged
        );
        let messages = acknowledged - std::mem::replace(&mut self.acknowledged, acknowledged);
        let is_new = durable > self.durable_there;
        if is_new {
            assert!(durable <= self.closed, "shard {from} has batch {durable}; {} were closed", self.closed);
            self.durable_there = durable;
        }
        if kind != MessageKind::Acknowledgement {
            assert_eq!(number, self.accepted + 1, "shard {from} sent message {number} after {}", self.accepted);
            self.accepted = number;
        }
        // A part of a batch whose end is yet to come has no number.
        if kind == MessageKind::Urls && batch > 0 {
            assert!(batch > self.received, "shard {from} sent batch {batch} after {}", self.received);
            self.received = batch;
        }
        Acknowledged { messages, durable: is_new.then_some(durable) }
    }

    /// Accepted messages that are not acknowledged to the peer yet.
    pub fn owed(&self) -> u64 {
        self.accepted - self.accepted_told
    }

    /// Whether there is anything to acknowledge.
    pub fn owes(&self) -> bool {
        self.owed() > 0 || self.durable > self.durable_told
    }

    /// The last batch that came.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// All batches up to `number` are on our disk. Returns whether that is new.
    pub fn note_durable(&mut self, number: u64) -> bool {
        let is_new = number > self.durable;
        self.durable = self.durable.max(number);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_what_is_on_the_disk_is_acknowledged_once() {
        let (mut here, mut there) = (Numbering::default(), Numbering::default());
        here.closed_before(6);
        for batch in [here.close_batch(), here.close_batch()] {
            there.receive(0, &here.next_header(MessageKind::Urls, batch));
        }
        assert_eq!((there.received(), there.owed(), there.owes()), (8, 2, true));
        assert_eq!(here.receive(1, &there.acknowledgement()), Acknowledged { messages: 2, durable: None });
        assert!(!there.owes() && there.note_durable(8) && !there.note_durable(7) && there.owes());
        assert_eq!(here.receive(1, &there.acknowledgement()), Acknowledged { messages: 0, durable: Some(8) });
        assert_eq!(here.receive(1, &there.acknowledgement()), Acknowledged { messages: 0, durable: None });
        assert!(!there.owes());
    }
}
