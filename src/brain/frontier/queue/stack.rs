//! Waiting URLs, the newest first, in one allocation.
//!
//! Decides: entries lie newest first, behind a gap into which the next ones go, so that the newest is read without a
//! search and everything older is one piece.
//! Invariants: the bytes from `at` on are whole entries, `len` of them.
//! Limits: memory that the newest entries leave is kept for the next, up to three quarters of the total.

use super::waiting::{Ticket, WaitingUrls, entry_head, first_entry};

/// The URLs.
#[derive(Debug, Default)]
pub struct Stack {
    bytes: Vec<u8>,
    at: usize,
    len: usize,
}

impl Stack {
    /// Adds a URL before all others; a URL of 0 or more than 65,535 bytes is ignored.
    pub fn push(&mut self, ticket: Ticket, url: &str) {
        let Some(head) = entry_head(ticket, url) else { return };
        let needed = WaitingUrls::entry_bytes(url);
        if self.at < needed {
            self.make_gap(needed.max(self.bytes_left()).max(GAP_BYTES_MIN));
        }
        let start = self.at - needed;
        if let Some((to_head, to_url)) =
            self.bytes.get_mut(start..self.at).and_then(|place| place.split_at_mut_checked(head.len()))
        {
            to_head.copy_from_slice(&head);
            to_url.copy_from_slice(url.as_bytes());
            (self.at, self.len) = (start, self.len + 1);
        }
    }

    /// Takes the newest URL.
    pub fn pop(&mut self) -> Option<(Ticket, String)> {
        let (ticket, url) = first_entry(self.bytes.get(self.at..)?)?;
        let found = (ticket, url.to_owned());
        self.at += WaitingUrls::entry_bytes(url);
        self.len -= 1;
        if self.len == 0 {
            *self = Stack::default();
        } else if self.at >= TAKEN_BYTES_MAX && self.at > self.bytes.len() / 4 * 3 {
            self.make_gap(0);
        }
        Some(found)
    }

    /// Adds URLs behind all others, the newest of them first.
    pub fn add_older(&mut self, batch: &WaitingUrls) {
        self.bytes.extend_from_slice(batch.as_bytes());
        self.len += batch.len();
    }

    /// Takes all but the newest URLs, in the same order.
    pub fn take_older(&mut self) -> WaitingUrls {
        let Some((ticket, url)) = self.pop() else { return WaitingUrls::default() };
        let rest = self.bytes.split_off(self.at);
        *self = Stack::default();
        self.push(ticket, &url);
        WaitingUrls::from_bytes(rest).unwrap_or_default()
    }

    /// URLs.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the URLs.
    pub fn bytes_left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Memory held, used or not.
    pub fn ram_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Moves the URLs behind a gap of this length.
    fn make_gap(&mut self, gap: usize) {
        let mut bytes = Vec::with_capacity(gap + self.bytes_left());
        bytes.resize(gap, 0);
        bytes.extend_from_slice(self.bytes.get(self.at..).unwrap_or_default());
        (self.bytes, self.at) = (bytes, gap);
    }
}

/// Room for one or two URLs: most hosts have no more.
const GAP_BYTES_MIN: usize = 128;
/// A gap below this is not worth a copy of the rest.
const TAKEN_BYTES_MAX: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    #[test]
    fn agrees_with_a_vector() {
        let (mut rng, mut stack, mut twin) = (Rng::new(3), Stack::default(), Vec::new());
        for number in 0..50_000_u64 {
            let grows = number / 5_000 % 2 == 0;
            match rng.below(100) {
                0 => {
                    let older = stack.take_older();
                    assert_eq!((older.len(), stack.len()), (twin.len().saturating_sub(1), twin.len().min(1)));
                    stack.add_older(&older);
                }
                kind if (kind < 40) != grows => {
                    let entry = (Ticket { number, depth: 3, is_strangers: false }, format!("http://h.test/{number}"));
                    stack.push(entry.0, &entry.1);
                    twin.push(entry);
                }
                _ => assert_eq!(stack.pop(), twin.pop()),
            }
            assert_eq!(stack.len(), twin.len());
            assert!(stack.ram_bytes() <= 5 * stack.bytes_left() + 2 * TAKEN_BYTES_MAX, "{stack:?}");
        }
        stack.push(Ticket::default(), "");
        assert_eq!(stack.len(), twin.len());
    }
}
