//! Reading a journal back after the end of a run, as a stream of bytes.
//!
//! Decides: three passes: for what is over, then for what was accepted (what is not over waits again), then for what
//! was set aside or not handed over: it must not take the room of what was accepted. Reading ends at the first block that
//! is not whole; the rest is to be cut.
//! Invariants: each pass sees the same blocks in the same order.
//! Limits: eight bytes of memory for each URL that is over, and one block, while the journal is read.
//! Leaves to others: what is done with an entry (`shard`), reading and cutting the file (`disk`).

use std::collections::HashSet;

use super::block::{Entries, HEAD_BYTES, PAYLOAD_BYTES_MAX};

/// A journal on its way back.
#[derive(Debug, Default)]
pub struct Replay {
    pass: Pass,
    /// Bytes read and not yet understood.
    window: Vec<u8>,
    /// Where the window begins in the file.
    start: u64,
    /// Bytes of the file that this pass was given.
    read: u64,
    /// Reading of this pass has met its end or what is not whole.
    is_ended: bool,
    over: HashSet<u64>,
    /// What was found for other shards before this is in their journals.
    handed_over_until: u64,
    /// There is something for the third pass.
    has_more: bool,
    /// Bytes of whole blocks, and of the file.
    whole_bytes: u64,
    file_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Pass {
    #[default]
    Over,
    Accepted,
    Rest,
    Done,
}

/// What a piece of a journal says.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplayStep {
    /// These URLs were accepted.
    Accepted(Entries),
    /// Of these, what was set aside is looked at again; with `resend`, what was found for other shards is sent again.
    Rest {
        /// The block's content.
        entries: Entries,
        /// Whether that was not handed over.
        resend: bool,
    },
}

impl Replay {
    /// Takes the bytes of the file that follow those before, none at the file's end; gives what they say to `each`.
    /// To be called until [`Replay::is_done`].
    pub fn read(&mut self, bytes: &[u8], each: &mut dyn FnMut(ReplayStep, &HashSet<u64>)) {
        if !self.is_ended {
            self.window.extend_from_slice(bytes);
            let mut used = 0;
            while let Some((entries, length)) = Entries::from_block(self.window.get(used..).unwrap_or_default()) {
                used += length;
                self.block(entries, self.start + used as u64, each);
            }
            self.window.drain(..used);
            self.start += used as u64;
            // No block is longer: this one is damaged.
            self.is_ended = self.window.len() > HEAD_BYTES + PAYLOAD_BYTES_MAX;
        }
        self.read += bytes.len() as u64;
        if self.pass == Pass::Over {
            self.file_bytes = self.read;
        }
        if bytes.is_empty() {
            self.next_pass();
        }
    }

    /// Whether everything is read.
    pub fn is_done(&self) -> bool {
        self.pass == Pass::Done
    }

    /// Where in the file the next bytes are to be read.
    pub fn next_offset(&self) -> u64 {
        self.read
    }

    /// Bytes of whole blocks: where the journal goes on.
    pub fn whole_bytes(&self) -> u64 {
        self.whole_bytes
    }

    /// Bytes behind them, to be cut.
    pub fn torn_bytes(&self) -> u64 {
        self.file_bytes - self.whole_bytes
    }

    /// URLs that are over.
    pub fn over(&self) -> u64 {
        self.over.len() as u64
    }

    fn block(&mut self, entries: Entries, end: u64, each: &mut dyn FnMut(ReplayStep, &HashSet<u64>)) {
        match self.pass {
            Pass::Over => {
                self.has_more |= !entries.aside.is_empty() || !entries.outgoing.is_empty();
                self.over.extend(entries.over);
                self.whole_bytes = end;
                if entries.handed_over {
                    self.handed_over_until = end;
                }
            }
            Pass::Accepted => each(ReplayStep::Accepted(entries), &self.over),
            Pass::Rest => each(ReplayStep::Rest { resend: end > self.handed_over_until, entries }, &self.over),
            Pass::Done => {}
        }
    }

    fn next_pass(&mut self) {
        self.pass = match self.pass {
            Pass::Over if self.whole_bytes == 0 => Pass::Done,
            Pass::Over => Pass::Accepted,
            Pass::Accepted if self.has_more => Pass::Rest,
            _ => Pass::Done,
        };
        (self.start, self.read, self.is_ended) = (0, 0, false);
        self.window = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Packer, handed_over_block};

    fn block(change: impl FnOnce(&mut Entries)) -> Vec<u8> {
        let mut entries = Entries::default();
        change(&mut entries);
        Packer::default().block(&entries)
    }

    /// What a journal says, read in pieces of so many bytes: the accepted URLs, and which of the rest is sent again.
    fn replayed(file: &[u8], piece: usize) -> (Vec<String>, Vec<bool>, u64, u64) {
        let (mut replay, mut accepted, mut resent) = (Replay::default(), Vec::new(), Vec::new());
        for _ in 0..10_000 {
            if replay.is_done() {
                return (accepted, resent, replay.whole_bytes(), replay.torn_bytes());
            }
            let at = replay.next_offset() as usize;
            let bytes = &file[at..file.len().min(at + piece)];
            replay.read(bytes, &mut |step, over| match step {
                ReplayStep::Accepted(entries) => {
                    assert_eq!(over.len(), 1);
                    accepted.extend(entries.accepted.iter().map(|(_, text)| text.to_owned()));
                }
                ReplayStep::Rest { entries, resend } => resent.extend(entries.outgoing.iter().map(|_| resend)),
            });
        }
        panic!("a replay without end");
    }

    #[test]
    fn pieces_do_not_matter_and_what_is_torn_is_told() {
        let mut file = block(|entries| {
            entries.accepted.push(0, "http://a.test/");
            entries.outgoing.push(0, "http://b.test/");
        });
        file.extend(handed_over_block());
        file.extend(block(|entries| {
            entries.over.push(7);
            entries.accepted.push(0, "http://a.test/x");
            entries.outgoing.push(0, "http://b.test/x");
        }));
        let accepted = vec!["http://a.test/".to_owned(), "http://a.test/x".to_owned()];
        let whole = file.len() as u64;
        let torn = &file[..40].to_vec();
        file.extend(torn);
        for piece in [1, 7, 64, 1 << 20] {
            assert_eq!(replayed(&file, piece), (accepted.clone(), vec![false, true], whole, 40), "pieces of {piece}");
        }
        assert_eq!(replayed(&[], 1), (vec![], vec![], 0, 0));
        assert_eq!(replayed(b"no journal", 3), (vec![], vec![], 0, 10));
    }
}
