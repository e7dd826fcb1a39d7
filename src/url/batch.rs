//! A list of URLs in one allocation: what a page links to, what shards send each other, what spills to disk.
//!
//! Decides: one byte format for all three, so that a batch crosses a ring or a file without being rebuilt:
//!
//! | bytes | meaning |
//! |---|---|
//! | 2, little endian | depth: links followed from a seed |
//! | 2, little endian | length `n` of the text, 1–65,535 |
//! | n | the canonical URL, ASCII |
//!
//! Invariants: a batch holds whole entries only; bytes from outside are checked once, on the way in.
//! Limits: one URL is at most 65,535 bytes; longer ones are refused by `push`.

use super::{Url, canonical};

/// URLs with their depth, in order of insertion.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UrlBatch {
    bytes: Vec<u8>,
    len: usize,
}

const ENTRY_HEAD_BYTES: usize = 4;

impl UrlBatch {
    /// An empty batch.
    pub fn new() -> UrlBatch {
        UrlBatch::default()
    }

    /// Adds one URL; `false` (and nothing added) when it is empty or longer than 65,535 bytes.
    pub fn push(&mut self, depth: u16, url: &str) -> bool {
        let Ok(length) = u16::try_from(url.len()) else { return false };
        if length == 0 {
            return false;
        }
        self.bytes.extend_from_slice(&depth.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(url.as_bytes());
        self.len += 1;
        true
    }

    /// Appends all of `other`.
    pub fn extend(&mut self, other: &UrlBatch) {
        self.bytes.extend_from_slice(&other.bytes);
        self.len += other.len;
    }

    /// Gives every entry another depth.
    pub fn change_depths(&mut self, mut change: impl FnMut(u16, &str) -> u16) {
        let mut at = 0;
        while let Some((depth, url)) = self.entry_at(at) {
            let (next, depth) = (at + UrlBatch::entry_bytes(url), change(depth, url));
            if let Some(place) = self.bytes.get_mut(at..at + 2) {
                place.copy_from_slice(&depth.to_le_bytes());
            }
            at = next;
        }
    }

    /// The entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &str)> {
        Entries { rest: &self.bytes }
    }

    /// The entries as bytes, in order.
    pub fn raw(&self) -> impl Iterator<Item = (u16, &[u8])> {
        RawEntries { rest: &self.bytes }
    }

    /// Makes room for so many bytes more.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Gives every entry to `each`, as a URL that is gone when `each` is done; entries that are none are passed over.
    pub fn for_each_url(&self, mut each: impl FnMut(u16, &Url)) {
        let mut url = Url::unwritten(0);
        for (depth, text) in self.iter() {
            if canonical::read_into(text, &mut url).is_ok() {
                each(depth, &url);
            }
        }
    }

    /// The entry that starts at byte `offset`, which must be the start of one.
    pub fn entry_at(&self, offset: usize) -> Option<(u16, &str)> {
        Entries { rest: self.bytes.get(offset..)? }.next()
    }

    /// Bytes that `url` takes in a batch.
    pub const fn entry_bytes(url: &str) -> usize {
        ENTRY_HEAD_BYTES + url.len()
    }

    /// Number of URLs.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no URL.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory that the batch holds, used or not.
    pub fn ram_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The byte form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The byte form, to be used again.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Forgets the URLs, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }

    /// Takes the byte form back; `None` when `bytes` are not whole entries of UTF-8 text.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<UrlBatch> {
        let mut entries = Entries { rest: &bytes };
        let len = entries.by_ref().count();
        entries.rest.is_empty().then_some(())?;
        Some(UrlBatch { bytes, len })
    }
}

struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = (u16, &'a str);

    fn next(&mut self) -> Option<(u16, &'a str)> {
        let mut raw = RawEntries { rest: self.rest };
        let (depth, bytes) = raw.next()?;
        let text = std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty())?;
        self.rest = raw.rest;
        Some((depth, text))
    }
}

struct RawEntries<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for RawEntries<'a> {
    type Item = (u16, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let ([depth, depth_high, length, length_high], rest) = self.rest.split_first_chunk::<ENTRY_HEAD_BYTES>()?;
        let (bytes, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([*length, *length_high])))?;
        self.rest = rest;
        Some((u16::from_le_bytes([*depth, *depth_high]), bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_there_and_back() {
        let mut batch = UrlBatch::new();
        assert!(batch.push(0, "http://a.test/"));
        assert!(batch.push(65_535, "https://b.test/x?y"));
        assert!(!batch.push(1, ""));
        assert!(!batch.push(1, &"x".repeat(65_536)));
        let again = UrlBatch::from_bytes(batch.as_bytes().to_vec()).unwrap();
        assert_eq!(again, batch);
        assert_eq!(again.iter().collect::<Vec<_>>(), [(0, "http://a.test/"), (65_535, "https://b.test/x?y")]);
    }

    #[test]
    fn broken_bytes_are_refused_at_every_cut() {
        let mut batch = UrlBatch::new();
        batch.push(3, "http://a.test/page");
        let bytes = batch.as_bytes();
        for cut in 1..bytes.len() {
            assert_eq!(UrlBatch::from_bytes(bytes[..cut].to_vec()), None, "cut at {cut}");
        }
        assert_eq!(UrlBatch::from_bytes(vec![0, 0, 1, 0, 0xff]), None);
    }
}
