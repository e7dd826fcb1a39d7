//! What a shard writes down to go on after its end: the journal, its bytes, and how it is read back.
//!
//! Decides: formats and the reading of them; pure, so that the simulator writes and reads the same bytes.
//! Leaves to others: files (`disk`), what an entry means (`shard`).

pub mod block;
mod journal;
mod replay;

pub use block::{Entries, Packer};
pub use journal::Journal;
pub use replay::{Replay, ReplayStep};

/// The block that says that everything found for other shards has arrived: written when all of them have ended well.
pub fn handed_over_block() -> Vec<u8> {
    Packer::default().block(&Entries { handed_over: true, ..Entries::default() })
}
