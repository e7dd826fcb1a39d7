//! One lane of those to and from other shards ([`super::Lanes`], which alone knows what follows for the others).

use std::collections::VecDeque;
use std::rc::Rc;

use super::message::MessageKind;
use super::numbering::Numbering;
use super::traffic::Outgoing;
use crate::spool::Block;
use ringcrawl_url::UrlBatch;

/// A lane to and from another shard.
#[derive(Debug, Default)]
pub struct Lane {
    pub(super) open: UrlBatch,
    /// Links between sites that wait for a tick.
    pub(super) links: Vec<u8>,
    /// Contents of messages that may be sent.
    pub(super) waiting: VecDeque<(MessageKind, Content)>,
    /// Batches in the spool, by their numbers; one of them may be in flight back.
    pub(super) spooled: VecDeque<(u64, Block)>,
    pub(super) reading: Option<u64>,
    /// A message that found the ring full, with its number.
    pub(super) refused: Option<Outgoing>,
    pub(super) is_ready: bool,
    pub(super) numbers: Numbering,
    /// Pieces received so far of a message that was split.
    pub(super) pieces: Vec<u8>,
    /// The acknowledgement may not wait for another message any longer.
    pub(super) must_tell: bool,
}

/// What a message that waits says.
#[derive(Debug)]
pub enum Content {
    /// A batch and its number.
    Urls(u64, Rc<UrlBatch>),
    Bytes(Vec<u8>),
}

impl Content {
    /// As bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Content::Urls(_, batch) => batch.as_bytes(),
            Content::Bytes(bytes) => bytes,
        }
    }

    /// The number of URLs in it.
    pub fn urls(&self) -> u64 {
        match self {
            Content::Urls(_, batch) => batch.len() as u64,
            Content::Bytes(_) => 0,
        }
    }

    /// The number of its batch; 0: it is none.
    pub fn batch(&self) -> u64 {
        if let Content::Urls(number, _) = self { *number } else { 0 }
    }
}
