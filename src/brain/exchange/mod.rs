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
mod traffic;

pub use lanes::Lanes;
pub use mail::MailFlag;
pub use sent::{Replicated, SentUrls};
pub use traffic::{Batch, Incoming, Outgoing};

use ringcrawl_config::Config;

/// Memory of one of `shards` shards: its rings, what waits for them, and the URLs that it knows as sent.
pub fn memory_bytes(config: &Config, shards: u64) -> u64 {
    let rings = config.ring_bytes(shards as u16) as u64 * (shards - 1);
    let exchange = &config.exchange;
    let sent = match exchange.recent_urls {
        // The URLs in each open batch, in sets that double.
        0 => (shards - 1) * 4 * (exchange.batch_urls_max * size_of::<u64>()) as u64,
        recent => (recent * size_of::<u64>()) as u64,
    };
    let replicated = if exchange.replicated.is_empty() { 0 } else { exchange.replicated_max as u64 };
    // One list for all shards, and for each shard what it has sent.
    let replicated = replicated * size_of::<u64>() as u64 / shards + replicated / 8;
    rings + exchange.waiting_bytes_max as u64 + sent + replicated
}
