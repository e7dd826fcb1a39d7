//! Reads one log back as a stream of bytes.
//!
//! Decides: a damaged block is skipped: reading continues at the next whole one. Damaged bytes stay where they are. A
//! block that a crash cut short at the file's end is torn, and must be cut off.
//! Invariants: however the bytes are split into pieces, the same blocks come out.
//! Limits: the memory of a block and a piece.

use super::block::{BlockHead, HEAD_BYTES, PAYLOAD_BYTES_MAX, Parsed, next_start, read};

/// A log that is read back.
#[derive(Debug, Default)]
pub struct LogReader {
    /// Bytes that are read but not parsed yet.
    window: Vec<u8>,
    used: usize,
    /// Bytes of the file so far.
    read: u64,
    is_at_end: bool,
    /// Where the last whole block ends.
    whole_end: u64,
    /// The length of that block.
    block_bytes: u64,
    damaged_bytes: u64,
    /// Whether the beginning of another block follows the last whole one.
    is_torn: bool,
}

impl LogReader {
    /// Takes the next bytes of the file, none at the file's end.
    pub fn push(&mut self, bytes: &[u8]) {
        self.window.drain(..std::mem::take(&mut self.used));
        self.window.extend_from_slice(bytes);
        self.read += bytes.len() as u64;
        self.is_at_end = bytes.is_empty();
    }

    /// The next block; `None` until more bytes come, or at the end.
    pub fn next_block(&mut self) -> Option<(BlockHead, Vec<u8>)> {
        while let Some(rest) = self.window.get(self.used..).filter(|rest| !rest.is_empty()) {
            let at = self.read - rest.len() as u64;
            match read(rest) {
                Parsed::Block(head, payload, length) => {
                    self.used += length;
                    self.damaged_bytes += at - self.whole_end;
                    self.block_bytes = length as u64;
                    self.whole_end = at + self.block_bytes;
                    self.is_torn = false;
                    return Some((head, payload));
                }
                Parsed::Torn if !self.is_at_end && rest.len() < HEAD_BYTES + PAYLOAD_BYTES_MAX => return None,
                torn => {
                    // Whole blocks may follow what looks like a torn block: a damaged length looks the same.
                    self.is_torn |= at == self.whole_end && torn == Parsed::Torn;
                    self.used += next_start(rest);
                }
            }
        }
        None
    }

    /// Where in the file to read the next bytes.
    pub fn next_offset(&self) -> u64 {
        self.read
    }

    /// The payload of the last block is not valid for its kind: the block counts as damaged.
    pub fn reject(&mut self) {
        self.damaged_bytes += std::mem::take(&mut self.block_bytes);
    }

    /// Where the log continues: after the last whole block, or after damaged bytes at the file's end.
    pub fn append_at(&self) -> u64 {
        self.read - self.torn_bytes()
    }

    /// Where the last whole block ends.
    #[cfg(test)]
    pub fn whole_end(&self) -> u64 {
        self.whole_end
    }

    /// Bytes of a torn block at the file's end, which must be cut.
    pub fn torn_bytes(&self) -> u64 {
        if self.is_torn { self.read - self.whole_end } else { 0 }
    }

    /// Bytes that are neither a block nor torn.
    pub fn damaged_bytes(&self) -> u64 {
        self.damaged_bytes + if self.is_torn { 0 } else { self.read - self.whole_end }
    }
}

#[cfg(test)]
mod tests {
    use super::super::block::{LogKind, Owner, Packer};
    use super::*;

    fn block(first: u64) -> Vec<u8> {
        let owner = Owner { crawl: 1, shard: 0 };
        let head = BlockHead { kind: LogKind::Ends, owner, first, count: 1, mark: 0 };
        Packer::default().block(&head, b"some payload")
    }

    /// The numbers of the blocks in a file that is read in pieces of `piece` bytes; where it continues, torn bytes
    /// and damaged bytes.
    fn numbers(file: &[u8], piece: usize) -> (Vec<u64>, [u64; 3]) {
        let (mut reader, mut numbers) = (LogReader::default(), Vec::new());
        loop {
            let at = reader.next_offset() as usize;
            let bytes = &file[at..file.len().min(at + piece)];
            reader.push(bytes);
            numbers.extend(std::iter::from_fn(|| reader.next_block()).map(|(head, _)| head.first));
            if bytes.is_empty() {
                return (numbers, [reader.append_at(), reader.torn_bytes(), reader.damaged_bytes()]);
            }
        }
    }

    #[test]
    fn pieces_do_not_matter_and_what_is_torn_is_told() {
        let mut file = [block(1), block(2)].concat();
        let whole = file.len() as u64;
        file.extend(&block(3)[..30]);
        for piece in [1, 7, 64, 1 << 20] {
            assert_eq!(numbers(&file, piece), (vec![1, 2], [whole, 30, 0]), "pieces of {piece}");
        }
        assert_eq!(numbers(b"", 1), (vec![], [0, 0, 0]));
        assert_eq!(numbers(b"no journal", 3), (vec![], [10, 0, 10]));
        assert_eq!(numbers(b"RC", 3), (vec![], [0, 2, 0]));
    }

    /// Whichever byte changes, all blocks but its own are read.
    #[test]
    fn what_is_behind_a_damaged_block_is_read() {
        let blocks = [block(0), block(1), block(2)];
        let file = blocks.concat();
        let length = blocks[0].len();
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << (at % 8);
            let hit = (at / length) as u64;
            for piece in [5, 1 << 20] {
                let (read, [end, torn, lost]) = numbers(&damaged, piece);
                assert_eq!(read, (0..3).filter(|number| *number != hit).collect::<Vec<_>>(), "byte {at}");
                // At the end, a longer length looks as if the rest were missing.
                assert_eq!((torn + lost, end + torn), (length as u64, file.len() as u64), "byte {at}");
                assert!(hit == 2 || torn == 0, "byte {at}: nothing but the end is cut");
            }
        }
    }
}
