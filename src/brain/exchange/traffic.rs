//! What passes between a shard and its lanes: batches for the journal, messages for the rings, what came in them.
//!
//! Leaves to others: the form of a message ([`super::message`]).

use std::rc::Rc;

use super::message::MessageKind;
use ringcrawl_url::UrlBatch;

/// A batch of URLs for another shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// The shard.
    pub to: u16,
    /// Its number in the lane.
    pub number: u64,
    /// The URLs.
    pub urls: Rc<UrlBatch>,
}

/// A message for another shard's ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// The shard.
    pub to: u16,
    /// Header and content.
    pub bytes: Vec<u8>,
    /// URLs in it.
    pub urls: u64,
    /// Whether to wake the shard for it, because it cannot wait until the shard looks by itself.
    pub wake: bool,
}

/// The content of a message from another shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incoming {
    /// Only acknowledgements or pieces, which the lanes handle.
    Nothing,
    /// URLs of this shard.
    Urls(UrlBatch),
    /// A question about a robots.txt, or an answer; the frontier parses it.
    Robots(MessageKind, Vec<u8>),
    /// Links between sites, as bytes.
    SiteLinks(Vec<u8>),
    /// URLs of this shard, with the number of pages that link to each in place of the depth.
    LinkCounts(UrlBatch),
}
