//! URLs between shards: batches in lock-free byte rings, and on disk what the rings cannot take.
//!
//! A link whose site belongs to another shard goes into that shard's lane ([`Lanes`]). It crosses the single-producer
//! single-consumer ring between the two ([`spsc`]) as a numbered message ([`message`]), and is received there like a
//! link of its own. If the ring is full it waits: in memory up to a bound, then in the shard's spool
//! ([`crate::spool`]). Nothing is dropped.

mod lane;
pub mod lanes;
mod mail;
pub mod message;
pub mod numbering;
mod sent;
pub mod spsc;
mod sync;

pub use lanes::Lanes;
pub use mail::MailFlag;
pub use message::{Batch, Incoming, Outgoing};
pub use sent::{Replicated, SentUrls};
