//! Reads block lists line by line, with no more of a file in memory than a line.
//!
//! Decides: a small packed file may unpack to any length, so a file is never held as a whole. A line that is too long
//! counts as unreadable, and is reported as such. A lack of room for entries is not a mistake of a line: users who
//! skip mistakes do not want half a list, so reading ends there.
//! Limits: lines of [`LINE_BYTES_MAX`]; the caller bounds the memory of all entries.

use std::io::{self, BufRead};

use super::line::{self, Entry};
use super::ranges::{Cidr, Ranges};
use super::texts::{self, Collected};
use super::{BELOW, BlockList, SOME_URLS, THIS, URL};
use crate::scope::rules::LineError;
use crate::scope::spelling;
use ringcrawl_url::names;

/// Mistakes in lists.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mistakes {
    /// The first mistakes.
    pub told: Vec<LineError>,
    /// The number of mistakes.
    pub count: usize,
}

/// Makes one list of many files.
#[derive(Debug)]
pub struct BlockListReader {
    list: BlockList,
    texts: Collected,
    cidrs: Vec<Cidr>,
    mistakes: Mistakes,
    /// The memory that entries take while they are collected, and its limit.
    bytes: usize,
    bytes_max: usize,
}

impl BlockListReader {
    /// A reader of lists whose entries take no more than `bytes_max` bytes of memory.
    pub fn new(bytes_max: usize) -> BlockListReader {
        let (list, texts, mistakes) = (BlockList::default(), Collected::default(), Mistakes::default());
        BlockListReader { list, texts, cidrs: Vec::new(), mistakes, bytes: 0, bytes_max }
    }

    /// Reads the lines of `source`; mistakes name it as `file`.
    ///
    /// # Errors
    /// Reading failed, or the entries do not fit.
    pub fn read(&mut self, file: &str, mut source: impl BufRead) -> io::Result<()> {
        // The beginning of a line whose end has not come yet; bytes beyond the longest line are skipped.
        let (mut begun, mut number) = (Vec::new(), 1);
        loop {
            let piece = source.fill_buf()?;
            let piece_bytes = piece.len();
            if piece_bytes == 0 {
                return if begun.is_empty() { Ok(()) } else { self.line(file, number, &begun) };
            }
            let mut rest = piece;
            while let Some((line, behind)) = memchr::memchr(b'\n', rest).and_then(|end| rest.split_at_checked(end)) {
                match begun.is_empty() {
                    true => self.line(file, number, line)?,
                    false => {
                        append(&mut begun, line);
                        self.line(file, number, &begun)?;
                        begun.clear();
                    }
                }
                rest = behind.get(1..).unwrap_or_default();
                number += 1;
            }
            append(&mut begun, rest);
            source.consume(piece_bytes);
        }
    }

    /// The number of entries so far, repeated ones included.
    pub fn entries(&self) -> usize {
        self.list.entries + self.cidrs.len()
    }

    /// The list of everything read, and the mistakes.
    pub fn list(self) -> (BlockList, Mistakes) {
        let BlockListReader { mut list, texts, cidrs, mistakes, .. } = self;
        list.entries += cidrs.len();
        list.ranges = Ranges::new(&cidrs);
        list.prefixes.sort_unstable();
        list.prefixes.dedup_by(|prefix, before| prefix.starts_with(&**before));
        list.prefixes.shrink_to_fit();
        list.texts = texts.table();
        (list, mistakes)
    }

    fn line(&mut self, file: &str, number: usize, line: &[u8]) -> io::Result<()> {
        // An editor may have added a byte order mark.
        let line = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        let mut has_room = true;
        let read = match line.len() <= LINE_BYTES_MAX {
            true => line::read(line, |entry| has_room &= self.take(entry)),
            false => Err(format!("longer than {LINE_BYTES_MAX} bytes; expected {}", line::EXPECTED)),
        };
        if !has_room || self.bytes > self.bytes_max {
            let mebibytes = self.bytes_max >> 20;
            return Err(io::Error::other(format!("line {number}: no room for more entries in {mebibytes} MiB")));
        }
        if let Err(what) = read {
            self.mistakes.count += 1;
            if self.mistakes.told.len() < TOLD_MAX {
                self.mistakes.told.push(LineError { file: file.to_owned(), line: number, what });
            }
        }
        Ok(())
    }

    /// Adds an entry; returns whether there was room.
    fn take(&mut self, entry: Entry<'_>) -> bool {
        self.list.entries += 1;
        match entry {
            Entry::Host(name) => self.text(&name, THIS),
            Entry::Suffix(name) => self.text(&name, THIS | BELOW),
            Entry::Below(name) => self.text(&name, BELOW),
            Entry::Url(url) => {
                let text = spelling::plain(url.as_str());
                self.text(names::bare(url.host()), SOME_URLS) && self.text(&text, URL)
            }
            Entry::Prefix(url) => {
                let text: Box<str> = spelling::plain(url.as_str()).into();
                self.bytes += text.len() + size_of::<Box<str>>();
                self.list.prefixes.push(text);
                self.text(names::bare(url.host()), SOME_URLS)
            }
            Entry::Cidr(cidr) => {
                self.bytes += 2 * size_of::<Cidr>();
                self.cidrs.push(cidr);
                self.list.entries -= 1;
                true
            }
        }
    }

    fn text(&mut self, text: &str, flags: texts::Flags) -> bool {
        self.bytes += text.len() + texts::COLLECTED_BYTES;
        self.texts.push(text.as_bytes(), flags)
    }
}

/// Adds bytes to a line, until it is too long.
fn append(line: &mut Vec<u8>, bytes: &[u8]) {
    let room = (LINE_BYTES_MAX + 1).saturating_sub(line.len());
    line.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
}

/// The longest line: lists in the form of hosts files have many names on one.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Mistakes that are reported in full.
pub const TOLD_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn mistakes_are_told_and_counted_and_the_rest_is_read() {
        let text = format!("\u{feff}a.test\n{}b.test", "no entry\n".repeat(30));
        let (list, mistakes) = BlockList::parse("list", text.as_bytes());
        assert_eq!((list.len(), mistakes.count, mistakes.told.len()), (2, 30, TOLD_MAX));
        assert!(mistakes.told[0].to_string().starts_with("list:2: several words; expected a host"));
        assert!(list.blocks_host("a.test") && list.blocks_host("b.test"));
    }

    /// The lines are the same whether a file comes in pieces or at once.
    #[test]
    fn pieces_make_no_difference() {
        let longest = format!("0.0.0.0 {}", "a.test ".repeat(LINE_BYTES_MAX / 7 - 2));
        let text = format!("a.test\r\n\n{longest}\n#{}\n.b.test\n192.0.2.0/24\nc.test", "#".repeat(LINE_BYTES_MAX));
        assert!(longest.len() <= LINE_BYTES_MAX);
        for bytes in [1, 2, 7, 4_096, 1 << 20] {
            let mut reader = BlockListReader::new(1 << 20);
            reader.read("list", BufReader::with_capacity(bytes, text.as_bytes())).expect("memory");
            let (list, mistakes) = reader.list();
            assert!(["a.test", "x.b.test", "c.test", "192.0.2.1"].iter().all(|host| list.blocks_host(host)), "{bytes}");
            assert_eq!((list.len(), mistakes.count), (4 + LINE_BYTES_MAX / 7 - 2, 1));
            assert!(mistakes.told[0].to_string().starts_with("list:4: longer than 65536 bytes; expected a host"));
        }
    }

    #[test]
    fn a_line_without_end_is_not_held() {
        let endless = std::io::Read::take(std::io::repeat(b'#'), 256 << 20);
        let mut reader = BlockListReader::new(1 << 20);
        let mut begun = Vec::new();
        reader.read("list", BufReader::with_capacity(1 << 18, endless)).expect("memory");
        (0..10).for_each(|_| append(&mut begun, &[b'#'; LINE_BYTES_MAX]));
        assert_eq!((reader.mistakes.count, begun.len()), (1, LINE_BYTES_MAX + 1));
    }

    #[test]
    fn entries_have_a_bound() {
        let mut reader = BlockListReader::new(1 << 20);
        let hosts = "same.test\n".repeat(1 << 16);
        let error = reader.read("list", hosts.as_bytes()).expect_err("no room").to_string();
        assert!(error.starts_with("line ") && error.ends_with(": no room for more entries in 1 MiB"), "{error}");
        assert!(reader.bytes < (1 << 20) + 100);
    }
}
