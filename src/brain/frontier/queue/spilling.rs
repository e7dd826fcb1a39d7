//! How the tail of a queue goes to disk.
//!
//! Decides: a tail leaves in blocks of [`BLOCK_BYTES`]: a block comes back whole, and as the head it stays in memory.
//! Limits: a tail below [`SHORT_TAIL_BYTES`] is not worth a write, and its owners keep it.

use super::host_queue::HostQueue;
use super::waiting::WaitingUrls;
use crate::spool::Spool;

/// Sends a queue's tail to disk, in pieces: a block comes back whole, and as the head it stays in memory.
pub fn spill_tail(queue: &mut HostQueue, spool: &mut Spool) {
    let tail = queue.take_tail();
    let (mut piece, mut pieces) = (WaitingUrls::default(), 0);
    for (ticket, url) in tail.iter() {
        piece.push(ticket, url);
        if piece.as_bytes().len() >= BLOCK_BYTES {
            queue.spilled(pieces, spool.write_waiting(piece.as_bytes(), piece.len() as u32));
            pieces += 1;
            piece.clear();
        }
    }
    if !piece.is_empty() {
        queue.spilled(pieces, spool.write_waiting(piece.as_bytes(), piece.len() as u32));
    }
}

/// A block of a host's queue is closed at this length.
pub const BLOCK_BYTES: usize = 32 * 1024;
/// A tail shorter than this stays in memory whatever the pressure.
pub const SHORT_TAIL_BYTES: usize = 512;
