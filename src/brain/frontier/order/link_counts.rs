//! The number of links to each waiting URL, in fixed memory.
//!
//! Decides: an open-addressing table with linear probing, created at the beginning. An entry has the URL's
//! fingerprint, its ticket, the number of links found to it, in how many queues it is, and whether it was taken from
//! one. When a URL was taken and is in no queue any more, its entry is removed, so the table holds the waiting URLs,
//! not every URL ever found.
//! Invariants: an entry belongs to one ticket as long as it exists. Of the copies with that ticket only the first is
//! taken. A ticket without an entry is in exactly one queue, once, and gets its turn.
//! Limits: [`ENTRY_BYTES`] an entry, seven eighths of them used. URLs that arrive when it is full are not counted,
//! nor is a second ticket of a URL that has an entry (`visited.*` rules give two). 255 links count as any number. An
//! entry whose URL was lost with a block stays. A URL is mistaken for another one with probability n / 2⁶⁴ among n:
//! it still gets its turn.

use crate::frontier::queue::Ticket;

/// The table.
#[derive(Debug)]
pub struct LinkCounts {
    keys: Box<[u64]>,
    /// 48 bits of a number above 16 bits of a depth.
    tickets: Box<[u64]>,
    links: Box<[u8]>,
    /// The number of queues that hold it; the top bit: it was taken.
    states: Box<[u8]>,
    len: usize,
}

impl LinkCounts {
    /// An empty table of this many bytes.
    pub fn new(bytes: u64) -> LinkCounts {
        let slots = usize::try_from(bytes / ENTRY_BYTES).unwrap_or(usize::MAX);
        LinkCounts {
            keys: vec![0; slots].into(),
            tickets: vec![0; slots].into(),
            links: vec![0; slots].into(),
            states: vec![0; slots].into(),
            len: 0,
        }
    }

    /// A URL is queued under a ticket that was not queued before.
    pub fn came(&mut self, key: u64, ticket: Ticket) {
        if let Err(Some(slot)) = self.find(key)
            && (self.len + 1) * 8 <= self.keys.len() * 7
        {
            self.keys[slot] = key.max(1);
            self.tickets[slot] = packed(ticket);
            (self.links[slot], self.states[slot]) = (0, 1);
            self.len += 1;
        }
    }

    /// A ticket that was taken goes back into a queue.
    pub fn is_back(&mut self, key: u64, ticket: Ticket) {
        if let Some(slot) = self.find_ticket(key, ticket) {
            self.states[slot] = queued_once_more(self.states[slot] & !TAKEN);
        }
    }

    /// A URL is queued a further time.
    pub fn is_queued_again(&mut self, key: u64) {
        if let Ok(slot) = self.find(key) {
            self.states[slot] = queued_once_more(self.states[slot]);
        }
    }

    /// A URL comes out of a queue; returns whether that is the first time with this ticket.
    pub fn takes(&mut self, key: u64, ticket: Ticket) -> bool {
        let Some(slot) = self.find_ticket(key, ticket) else { return true };
        let is_first = self.states[slot] & TAKEN == 0;
        self.states[slot] |= TAKEN;
        if (1..QUEUED).contains(&(self.states[slot] & QUEUED)) {
            self.states[slot] -= 1;
        }
        if self.states[slot] == TAKEN {
            self.remove(slot);
        }
        is_first
    }

    /// This many more links lead to a URL. Returns the counts before and now, and its ticket, if it waits.
    pub fn add(&mut self, key: u64, links: u16) -> Option<(u8, u8, Ticket)> {
        let slot = self.find(key).ok().filter(|slot| self.states[*slot] & TAKEN == 0)?;
        let before = self.links[slot];
        self.links[slot] = before.saturating_add(u8::try_from(links).unwrap_or(u8::MAX));
        Some((before, self.links[slot], unpacked(self.tickets[slot])))
    }

    /// The number of links to a URL, as far as known.
    pub fn links(&self, key: u64) -> u8 {
        self.find(key).map_or(0, |slot| self.links[slot])
    }

    /// `Ok(slot)` if it is there; `Err(slot)` where it would go, `None` if there is no slot at all.
    fn find(&self, key: u64) -> Result<usize, Option<usize>> {
        let key = key.max(1);
        if self.keys.is_empty() {
            return Err(None);
        }
        let mut slot = self.home(key);
        loop {
            match self.keys[slot] {
                0 => return Err(Some(slot)),
                found if found == key => return Ok(slot),
                _ => slot = self.after(slot),
            }
        }
    }

    /// The slot of this ticket's entry.
    fn find_ticket(&self, key: u64, ticket: Ticket) -> Option<usize> {
        self.find(key).ok().filter(|slot| self.tickets[*slot] == packed(ticket))
    }

    /// Empties a slot, and moves up the entries behind it that were displaced past it.
    fn remove(&mut self, mut hole: usize) {
        let mut slot = self.after(hole);
        while self.keys[slot] != 0 {
            // Its probe sequence crosses the hole.
            let way = |from: usize| (slot + self.keys.len() - from) % self.keys.len();
            if way(self.home(self.keys[slot])) >= way(hole) {
                self.keys[hole] = self.keys[slot];
                self.tickets[hole] = self.tickets[slot];
                self.links[hole] = self.links[slot];
                self.states[hole] = self.states[slot];
                hole = slot;
            }
            slot = self.after(slot);
        }
        self.keys[hole] = 0;
        self.len -= 1;
    }

    fn home(&self, key: u64) -> usize {
        ((u128::from(key) * self.keys.len() as u128) >> 64) as usize
    }

    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.keys.len() { 0 } else { slot + 1 }
    }
}

fn packed(ticket: Ticket) -> u64 {
    u64::from(ticket.is_strangers) << 63 | ticket.number << 16 | u64::from(ticket.depth)
}

fn unpacked(ticket: u64) -> Ticket {
    Ticket { number: ticket >> 16 & !(1 << 47), depth: ticket as u16, is_strangers: ticket >> 63 == 1 }
}

/// A URL in more queues than can be counted stays forever.
fn queued_once_more(state: u8) -> u8 {
    if state & QUEUED < QUEUED { state + 1 } else { state }
}

/// Bytes of an entry.
pub const ENTRY_BYTES: u64 = 18;
const TAKEN: u8 = 0x80;
const QUEUED: u8 = 0x7f;

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use ringcrawl_base::Rng;

    fn ticket(number: u64) -> Ticket {
        Ticket { number, depth: (number % 100) as u16, is_strangers: false }
    }

    /// Compared with a map, with keys that crowd each other and URLs that have several tickets: the table is as full
    /// as it can be.
    #[test]
    fn agrees_with_a_map() {
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let mut counts = LinkCounts::new(ENTRY_BYTES * (1 + rng.below(40)));
            // Links, the ticket, its copies in queues, and whether one was taken.
            let mut twin: BTreeMap<u64, (u8, u64, usize, bool)> = BTreeMap::new();
            let (mut queues, mut had_turn, mut came) = (Vec::new(), BTreeSet::new(), 0);
            let room = counts.keys.len() * 7 / 8;
            for number in 1..6_000_u64 {
                let key = rng.below(50) << 58 | 1;
                match rng.below(4) {
                    0 if number < 4_000 => {
                        counts.came(key, ticket(number));
                        queues.push((key, number));
                        came += 1;
                        if !twin.contains_key(&key) && twin.len() < room {
                            twin.insert(key, (0, number, 1, false));
                        }
                    }
                    1 => {
                        let links = rng.below(5) as u16;
                        let waiting = twin.get_mut(&key).filter(|(.., is_taken)| !is_taken);
                        let expected = waiting.map(|(sum, number, copies, _)| {
                            let before = *sum;
                            *sum = before.saturating_add(links as u8);
                            *copies += 1;
                            queues.push((key, *number));
                            (before, *sum, ticket(*number))
                        });
                        assert_eq!(counts.add(key, links), expected);
                        if expected.is_some() {
                            counts.is_queued_again(key);
                        }
                    }
                    _ if queues.is_empty() => {}
                    _ => {
                        let (key, number) = queues.swap_remove(rng.index(queues.len()));
                        let is_first = had_turn.insert(number);
                        assert_eq!(counts.takes(key, ticket(number)), is_first, "seed {seed} number {number}");
                        if let Some((.., copies, is_taken)) = twin.get_mut(&key).filter(|(_, of, ..)| *of == number) {
                            (*copies, *is_taken) = (*copies - 1, true);
                        }
                        twin.retain(|_, (.., copies, _)| *copies > 0);
                        if is_first && rng.percent(20) {
                            counts.is_back(key, ticket(number));
                            had_turn.remove(&number);
                            queues.push((key, number));
                            if let Some((.., copies, is_taken)) = twin.get_mut(&key).filter(|(_, of, ..)| *of == number)
                            {
                                (*copies, *is_taken) = (*copies + 1, false);
                            }
                        }
                    }
                }
                assert_eq!(counts.len, twin.len());
                let keys: BTreeSet<u64> = counts.keys.iter().copied().filter(|key| *key > 0).collect();
                assert!(keys.iter().eq(twin.keys()));
                assert!(twin.iter().all(|(key, (links, ..))| counts.links(*key) == *links));
            }
            queues.into_iter().for_each(|(key, number)| {
                assert_eq!(counts.takes(key, ticket(number)), had_turn.insert(number), "seed {seed} number {number}");
            });
            assert_eq!((had_turn.len(), counts.len), (came, 0), "seed {seed}");
        }
    }
}
