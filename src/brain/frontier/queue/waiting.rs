//! URLs that wait, in one allocation: with their numbers, in memory and in blocks of the spool alike.
//!
//! | bytes | meaning |
//! |---|---|
//! | 6, little endian | the URL's number in its shard's URL log; the highest bit: strangers alone have linked to it |
//! | 2, little endian | the bits of its `Hops` |
//! | 2, little endian | length `n` of the text, 1–65,535 |
//! | n | the canonical URL, ASCII |
//!
//! Invariants: whole entries only; bytes from disk are checked once, on the way in.
//! Limits: numbers below 2^47.

use crate::hops::Hops;

/// The data attached to a waiting URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ticket {
    /// Its number in the URL log.
    pub number: u64,
    /// The path from a seed, as the bits of `Hops`.
    pub depth: u16,
    /// No page of its own site was known to link to it.
    pub is_strangers: bool,
}

impl Ticket {
    /// The path from a seed.
    pub fn hops(&self) -> Hops {
        Hops::from_bits(self.depth)
    }
}

/// Waiting URLs with their tickets, in order of insertion.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WaitingUrls {
    bytes: Vec<u8>,
    len: usize,
}

const ENTRY_HEAD_BYTES: usize = 10;
const STRANGERS_BIT: u32 = 47;

impl WaitingUrls {
    /// Adds a URL of 1 to 65,535 bytes; others are ignored.
    pub fn push(&mut self, ticket: Ticket, url: &str) {
        let Some(head) = entry_head(ticket, url) else { return };
        self.bytes.extend_from_slice(&head);
        self.bytes.extend_from_slice(url.as_bytes());
        self.len += 1;
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: &WaitingUrls) {
        self.bytes.extend_from_slice(&other.bytes);
        self.len += other.len;
    }

    /// The entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Ticket, &str)> {
        Entries { rest: &self.bytes }
    }

    /// The entry that starts at byte `offset`, which must be the start of one.
    pub fn entry_at(&self, offset: usize) -> Option<(Ticket, &str)> {
        Entries { rest: self.bytes.get(offset..)? }.next()
    }

    /// Bytes that `url` takes.
    pub const fn entry_bytes(url: &str) -> usize {
        ENTRY_HEAD_BYTES + url.len()
    }

    /// Number of URLs.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no URL waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory held, used or not.
    pub fn ram_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The byte form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets the URLs, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }

    /// Parses the byte form; `None` if `bytes` are not whole entries of UTF-8 text.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<WaitingUrls> {
        let mut entries = Entries { rest: &bytes };
        let len = entries.by_ref().count();
        entries.rest.is_empty().then_some(())?;
        Some(WaitingUrls { bytes, len })
    }
}

/// The header before the text of an entry; `None` if it is invalid.
pub fn entry_head(ticket: Ticket, url: &str) -> Option<[u8; ENTRY_HEAD_BYTES]> {
    let length = u16::try_from(url.len()).ok().filter(|length| *length > 0)?;
    let [a, b, c, d, e, f, _, _] = (ticket.number | u64::from(ticket.is_strangers) << STRANGERS_BIT).to_le_bytes();
    let ([g, h], [i, j]) = (ticket.depth.to_le_bytes(), length.to_le_bytes());
    Some([a, b, c, d, e, f, g, h, i, j])
}

/// The first entry of `bytes`.
pub fn first_entry(bytes: &[u8]) -> Option<(Ticket, &str)> {
    Entries { rest: bytes }.next()
}

struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = (Ticket, &'a str);

    fn next(&mut self) -> Option<(Ticket, &'a str)> {
        let (&[a, b, c, d, e, f, g, h, i, j], rest) = self.rest.split_first_chunk::<ENTRY_HEAD_BYTES>()?;
        let number = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        let length = usize::from(u16::from_le_bytes([i, j]));
        let text = std::str::from_utf8(rest.get(..length)?).ok().filter(|text| !text.is_empty())?;
        self.rest = &rest[length..];
        let (number, is_strangers) = (number & !(1 << STRANGERS_BIT), number >> STRANGERS_BIT == 1);
        Some((Ticket { number, depth: u16::from_le_bytes([g, h]), is_strangers }, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let mut urls = WaitingUrls::default();
        let entries = [(0, 0, "http://a.test/"), ((1 << 47) - 1, u16::MAX, "x"), (1 << 32, 7, "http://b.test/")];
        for (number, depth, url) in entries {
            urls.push(Ticket { number, depth, is_strangers: depth == 7 }, url);
        }
        urls.push(Ticket::default(), "");
        let read = WaitingUrls::from_bytes(urls.as_bytes().to_vec()).expect("our own");
        assert_eq!((&read, read.len()), (&urls, 3));
        let read: Vec<_> = read
            .iter()
            .inspect(|(ticket, _)| assert_eq!(ticket.is_strangers, ticket.depth == 7))
            .map(|(ticket, url)| (ticket.number, ticket.depth, url))
            .collect();
        assert_eq!(read, entries);
        for cut in 1..WaitingUrls::entry_bytes("http://a.test/") {
            assert_eq!(WaitingUrls::from_bytes(urls.as_bytes()[..cut].to_vec()), None);
        }
    }
}
