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
//!
//! The page that links to a URL is recorded where that matters: an entry with [`VIA`] in place of the depth has the
//! page's URL, and applies to all entries behind it up to the next such one; [`NO_VIA`] in place of the page means
//! that none is known. So a page is named once for all its links, and a batch without pages is no longer than before.
//! Invariants: a batch holds whole entries only; bytes from outside are checked once, when they enter.
//! Limits: one URL is at most 65,535 bytes; `push` refuses longer ones. A page whose URL is longer than
//! [`VIA_BYTES_MAX`] is not recorded.

use super::{Url, canonical};

/// URLs with their depth, in order of insertion.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UrlBatch {
    bytes: Vec<u8>,
    /// URLs, without the pages that link to them.
    len: usize,
    /// Start of the last entry that names a page.
    via_at: Option<usize>,
}

/// A URL, and how it was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundUrl<'a> {
    /// The page that links to it, if one is known.
    pub via: Option<&'a str>,
    /// The way from a seed, as the bits of `Hops`.
    pub depth: u16,
    /// The URL.
    pub url: &'a str,
}

impl<'a> FoundUrl<'a> {
    /// A URL without a known linking page.
    pub const fn unlinked(depth: u16, url: &'a str) -> FoundUrl<'a> {
        FoundUrl { via: None, depth, url }
    }
}

/// Replaces a depth if the text is the page that links to the entries behind it. As `Hops` it is a path with more
/// redirects than are ever followed, so it is never the path to a crawled URL.
pub const VIA: u16 = u16::MAX >> 1;
/// Longest URL of a recorded page, in bytes: the default of `scope.url_bytes_max`.
pub const VIA_BYTES_MAX: usize = 2_048;
/// In place of such a page: none is known.
const NO_VIA: &str = "-";
const ENTRY_HEAD_BYTES: usize = 4;

impl UrlBatch {
    /// An empty batch.
    pub fn new() -> UrlBatch {
        UrlBatch::default()
    }

    /// Adds one URL; `false` (and nothing added) when it is empty or longer than 65,535 bytes.
    pub fn push(&mut self, depth: u16, url: &str) -> bool {
        let is_pushed = self.push_entry(depth, url);
        self.len += usize::from(is_pushed);
        is_pushed
    }

    /// Adds one URL, and records the page that links to it unless the previous URL has the same page.
    pub fn push_found(&mut self, found: FoundUrl<'_>) -> bool {
        let FoundUrl { via, depth, url } = found;
        let via = via.filter(|via| !via.is_empty() && via.len() <= VIA_BYTES_MAX);
        if via != self.last_via() {
            let at = self.bytes.len();
            self.push_entry(VIA, via.unwrap_or(NO_VIA));
            self.via_at = Some(at);
        }
        self.push(depth, url)
    }

    fn push_entry(&mut self, depth: u16, url: &str) -> bool {
        let Ok(length) = u16::try_from(url.len()) else { return false };
        if length == 0 {
            return false;
        }
        self.bytes.extend_from_slice(&depth.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(url.as_bytes());
        true
    }

    /// The page of the next URL, unless another one is recorded.
    fn last_via(&self) -> Option<&str> {
        let (_, bytes) = RawEntries { rest: self.bytes.get(self.via_at?..)? }.next()?;
        UrlBatch::via_of(bytes)
    }

    /// The page that an entry with [`VIA`] names.
    pub fn via_of(bytes: &[u8]) -> Option<&str> {
        str::from_utf8(bytes).ok().filter(|via| *via != NO_VIA)
    }

    /// Appends all of `other`; neither batch may record pages.
    pub fn extend(&mut self, other: &UrlBatch) {
        self.bytes.extend_from_slice(&other.bytes);
        self.len += other.len;
    }

    /// Changes the depth of every entry.
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

    /// The URLs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &str)> {
        self.found().map(|found| (found.depth, found.url))
    }

    /// The URLs, in order, with the pages that link to them.
    pub fn found(&self) -> impl Iterator<Item = FoundUrl<'_>> {
        let mut via = None;
        Entries { rest: &self.bytes }.filter_map(move |(depth, url)| {
            if depth == VIA {
                via = Some(url).filter(|via| *via != NO_VIA);
                return None;
            }
            Some(FoundUrl { via, depth, url })
        })
    }

    /// The entries as bytes, in order, including those that name pages.
    pub fn raw(&self) -> impl Iterator<Item = (u16, &[u8])> {
        RawEntries { rest: &self.bytes }
    }

    /// Reserves `bytes` more bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Passes every entry to `each`, as a URL that is valid during the call; invalid entries are skipped.
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

    /// The byte form, for reuse.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Forgets the URLs, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.len, self.via_at) = (0, None);
    }

    /// Takes the byte form back; `None` when `bytes` are not whole entries of UTF-8 text.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<UrlBatch> {
        let mut entries = Entries { rest: &bytes };
        let (mut len, mut via_at, mut at) = (0, None, 0);
        while let Some((depth, _)) = entries.next() {
            match depth {
                VIA => via_at = Some(at),
                _ => len += 1,
            }
            at = bytes.len() - entries.rest.len();
        }
        entries.rest.is_empty().then_some(())?;
        Some(UrlBatch { bytes, len, via_at })
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
    fn a_page_is_told_once_for_all_its_links_in_a_row() {
        let found = |via: Option<&'static str>, url| FoundUrl { via, depth: 1, url };
        let (page, long) = (Some("http://a.test/page"), "x".repeat(VIA_BYTES_MAX + 1));
        let all = [
            found(None, "http://seed.test/"),
            found(page, "http://a.test/1"),
            found(page, "http://a.test/2"),
            found(Some("http://b.test/"), "http://a.test/3"),
            found(page, "http://a.test/4"),
            found(None, "http://seed.test/2"),
            found(None, "http://seed.test/3"),
        ];
        let mut batch = UrlBatch::new();
        assert!(all.into_iter().all(|found| batch.push_found(found)));
        let again = UrlBatch::from_bytes(batch.as_bytes().to_vec()).expect("whole entries");
        assert_eq!((&again, again.len(), batch.len()), (&batch, all.len(), all.len()));
        assert_eq!(again.found().collect::<Vec<_>>(), all);
        assert_eq!(again.iter().map(|(_, url)| url).collect::<Vec<_>>(), all.map(|found| found.url));
        let told = again.raw().filter(|(depth, _)| *depth == VIA).map(|(_, bytes)| UrlBatch::via_of(bytes));
        assert_eq!(told.collect::<Vec<_>>(), [page, Some("http://b.test/"), page, None]);
        // A received batch continues where it ends.
        let mut on = again;
        on.push_found(found(None, "http://seed.test/4"));
        assert_eq!(on.as_bytes().len(), batch.as_bytes().len() + UrlBatch::entry_bytes("http://seed.test/4"));
        // A page with too long a URL is treated as missing, and without recorded pages a missing one costs nothing.
        let (mut none, mut plain) = (UrlBatch::new(), UrlBatch::new());
        none.push_found(FoundUrl { via: Some(&long), depth: 3, url: "http://a.test/" });
        plain.push(3, "http://a.test/");
        assert_eq!(none, plain);
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
