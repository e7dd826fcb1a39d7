//! Reading a journal back after the end of a run, as a stream of bytes.
//!
//! Decides: three passes: for what is over, then for what was accepted (what is not over waits again), then for what
//! was set aside or not handed over: it must not take the room of what was accepted. A block that is damaged is skipped:
//! reading goes on at the next that is whole. Damaged bytes stay where they are; a block at the end that a crash cut short is
//! torn, and is to be cut off.
//! Invariants: each pass sees the same blocks in the same order.
//! Limits: eight bytes of memory for each URL that is over, and one block, while the journal is read.
//! Leaves to others: what is done with an entry (`shard`), reading and cutting the file (`disk`).

use std::collections::HashSet;

use super::block::{Entries, is_torn, next_start};

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
    over: HashSet<u64>,
    /// What was found for other shards before this is in their journals.
    handed_over_until: u64,
    /// There is something for the third pass.
    has_more: bool,
    /// Where the last whole block ends, what is damaged before it, and how long the file is.
    whole_end: u64,
    damaged_bytes: u64,
    file_bytes: u64,
    /// What is behind the last whole block is the beginning of another one.
    is_torn: bool,
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
        self.window.extend_from_slice(bytes);
        self.read += bytes.len() as u64;
        let is_at_end = bytes.is_empty();
        let mut used = 0;
        while let Some(rest) = self.window.get(used..).filter(|rest| !rest.is_empty()) {
            if let Some((entries, length)) = Entries::from_block(rest) {
                let begins = self.start + used as u64;
                used += length;
                self.block(entries, begins, begins + length as u64, each);
            } else if is_torn(rest) && !is_at_end {
                break;
            } else {
                // Behind what looks like a torn block there may be whole ones: a damaged length looks the same.
                self.is_torn |= self.start + used as u64 == self.whole_end && is_torn(rest);
                used += next_start(rest);
            }
        }
        self.window.drain(..used.min(self.window.len()));
        self.start += used as u64;
        if is_at_end {
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

    /// Where the journal goes on: behind the last whole block, or behind what is damaged at the file's end.
    pub fn end(&self) -> u64 {
        self.file_bytes - self.torn_bytes()
    }

    /// Bytes of a torn block at the file's end, to be cut.
    pub fn torn_bytes(&self) -> u64 {
        if self.is_torn { self.file_bytes - self.whole_end } else { 0 }
    }

    /// Bytes that are no block and are not torn.
    pub fn damaged_bytes(&self) -> u64 {
        self.damaged_bytes
    }

    /// URLs that are over.
    pub fn over(&self) -> u64 {
        self.over.len() as u64
    }

    fn block(&mut self, entries: Entries, begins: u64, end: u64, each: &mut dyn FnMut(ReplayStep, &HashSet<u64>)) {
        match self.pass {
            Pass::Over => {
                self.has_more |= !entries.aside.is_empty() || !entries.outgoing.is_empty();
                self.over.extend(entries.over);
                self.damaged_bytes += begins - self.whole_end;
                self.whole_end = end;
                self.is_torn = false;
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
        if self.pass == Pass::Over {
            self.file_bytes = self.read;
            if !self.is_torn {
                self.damaged_bytes += self.file_bytes - self.whole_end;
            }
        }
        self.pass = match self.pass {
            Pass::Over if self.whole_end == 0 => Pass::Done,
            Pass::Over => Pass::Accepted,
            Pass::Accepted if self.has_more => Pass::Rest,
            _ => Pass::Done,
        };
        (self.start, self.read) = (0, 0);
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

    /// What a journal says, read in pieces of so many bytes: the accepted URLs, and which of the rest is sent again; where
    /// it goes on, what is torn and what is damaged.
    fn replayed(file: &[u8], piece: usize) -> (Vec<String>, Vec<bool>, [u64; 3]) {
        let (mut replay, mut accepted, mut resent) = (Replay::default(), Vec::new(), Vec::new());
        for _ in 0..10_000 {
            if replay.is_done() {
                return (accepted, resent, [replay.end(), replay.torn_bytes(), replay.damaged_bytes()]);
            }
            let at = replay.next_offset() as usize;
            let bytes = &file[at..file.len().min(at + piece)];
            replay.read(bytes, &mut |step, over| match step {
                ReplayStep::Accepted(entries) => {
                    assert!(over.len() <= 1);
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
            let expected = (accepted.clone(), vec![false, true], [whole, 40, 0]);
            assert_eq!(replayed(&file, piece), expected, "pieces of {piece}");
        }
        assert_eq!(replayed(&[], 1), (vec![], vec![], [0, 0, 0]));
        assert_eq!(replayed(b"no journal", 3), (vec![], vec![], [10, 0, 10]));
        assert_eq!(replayed(b"RC", 3), (vec![], vec![], [0, 2, 0]));
    }

    /// Whatever byte of a journal is not what was written, all blocks but its own are read.
    #[test]
    fn what_is_behind_a_damaged_block_is_read() {
        let blocks: Vec<Vec<u8>> = (0..3)
            .map(|number| block(|entries| assert!(entries.accepted.push(0, &format!("http://a.test/{number}")))))
            .collect();
        let file = blocks.concat();
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << (at % 8);
            let ends = [blocks[0].len(), blocks[0].len() + blocks[1].len(), file.len()];
            let hit = ends.iter().position(|end| at < *end).unwrap_or_default();
            for piece in [5, 1 << 20] {
                let (accepted, _, [end, torn, lost]) = replayed(&damaged, piece);
                let expected = (0..3).filter(|number| *number != hit).map(|number| format!("http://a.test/{number}"));
                assert_eq!(accepted, expected.collect::<Vec<_>>(), "byte {at}");
                // At the end, a longer length looks as if the rest were missing.
                assert_eq!((torn + lost, end + torn), (blocks[hit].len() as u64, file.len() as u64), "byte {at}");
                assert!(hit == 2 || torn == 0, "byte {at}: nothing but the end is cut");
            }
        }
    }
}
