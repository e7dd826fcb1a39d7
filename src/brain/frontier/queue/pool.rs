//! Waiting URLs that are drawn at random.
//!
//! Decides: there are two parts, new URLs and URLs that came back from disk; the pool's owner tells which is which.
//! In each part every URL is equally likely to be drawn. The generator is the pool's own, so a crawl with the same
//! seed and the same answers draws the same URLs.
//! Invariants: `starts` are the starts of the remaining entries, those of the part that came back first.
//! Limits: eight bytes per entry in addition to the entry.

use super::waiting::{Ticket, WaitingUrls};

/// The URLs.
#[derive(Debug)]
pub struct RandomPool {
    batch: WaitingUrls,
    starts: Vec<usize>,
    taken_bytes: usize,
    /// The state of the generator.
    state: u64,
}

impl RandomPool {
    /// An empty pool, which draws by this seed.
    pub fn new(seed: u64) -> RandomPool {
        RandomPool { batch: WaitingUrls::default(), starts: Vec::new(), taken_bytes: 0, state: seed }
    }

    /// Adds a URL.
    pub fn push(&mut self, ticket: Ticket, url: &str) {
        if self.taken_bytes >= TAKEN_BYTES_MAX && self.taken_bytes >= self.batch.as_bytes().len() / 2 {
            self.forget_taken();
        }
        let (start, before) = (self.batch.as_bytes().len(), self.batch.len());
        self.batch.push(ticket, url);
        if self.batch.len() > before {
            self.starts.push(start);
        }
    }

    /// Draws one of the new URLs, all but the first `back`.
    pub fn pop_new(&mut self, back: usize) -> Option<(Ticket, String)> {
        let drawn = back + self.below(self.starts.len().checked_sub(back).filter(|new| *new > 0)?);
        self.take(drawn)
    }

    /// Draws one of the first `back` URLs, which then are one fewer.
    pub fn pop_back(&mut self, back: usize) -> Option<(Ticket, String)> {
        let last = back.min(self.starts.len()).checked_sub(1)?;
        let drawn = self.below(last + 1);
        self.starts.swap(drawn, last);
        self.take(last)
    }

    fn take(&mut self, place: usize) -> Option<(Ticket, String)> {
        let start = self.starts.swap_remove(place);
        let (ticket, url) = self.batch.entry_at(start)?;
        let found = (ticket, url.to_owned());
        self.taken_bytes += WaitingUrls::entry_bytes(url);
        if self.starts.is_empty() {
            *self = RandomPool::new(self.state);
        }
        Some(found)
    }

    /// Adds URLs to the part that came back, which has `back` URLs; returns how many it has now.
    pub fn add_back(&mut self, back: usize, batch: &WaitingUrls) -> usize {
        let before = self.starts.len();
        batch.iter().for_each(|(ticket, url)| self.push(ticket, url));
        let more = self.starts.len() - before;
        (0..more).for_each(|place| self.starts.swap(back.min(before) + place, before + place));
        back + more
    }

    /// Takes all URLs but the first `stay`, in random order.
    pub fn take_others(&mut self, stay: usize) -> WaitingUrls {
        let mut others = WaitingUrls::default();
        while let Some((ticket, url)) = self.pop_new(stay) {
            others.push(ticket, &url);
        }
        self.forget_taken();
        others
    }

    /// A random number in `0..end`; 0 when `end` is 0. The generator is SplitMix64 (Steele, Lea, Flood 2014).
    pub fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * end as u128) >> 64) as usize
    }

    /// URLs.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Bytes of the URLs.
    pub fn bytes_left(&self) -> usize {
        self.batch.as_bytes().len() - self.taken_bytes
    }

    /// Memory held, used or not.
    pub fn ram_bytes(&self) -> usize {
        self.batch.ram_bytes() + self.starts.capacity() * size_of::<usize>()
    }

    /// Frees the memory of taken entries.
    fn forget_taken(&mut self) {
        let mut left = RandomPool::new(self.state);
        for (ticket, url) in self.starts.iter().filter_map(|start| self.batch.entry_at(*start)) {
            left.push(ticket, url);
        }
        *self = left;
    }
}

/// Bytes of taken entries above which copying the others pays.
const TAKEN_BYTES_MAX: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use ringcrawl_base::Rng;

    fn pushed(pool: &mut RandomPool, number: u64) {
        pool.push(Ticket { number, depth: 3, is_strangers: false }, &format!("http://h.test/{number}"));
    }

    #[test]
    fn agrees_with_a_set() {
        let (mut rng, mut pool, mut twin) = (Rng::new(3), RandomPool::new(5), BTreeSet::new());
        for number in 0..50_000_u64 {
            let grows = number / 5_000 % 2 == 0;
            match rng.below(100) {
                0 => {
                    let stay = rng.index(twin.len() + 1);
                    let others = pool.take_others(stay);
                    assert_eq!((others.len(), pool.len()), (twin.len() - stay, stay));
                    assert_eq!(pool.add_back(stay, &others), twin.len());
                }
                kind if (kind < 40) != grows => {
                    pushed(&mut pool, number);
                    twin.insert(number);
                }
                _ => {
                    let back = rng.index(twin.len() + 1);
                    let drawn = if rng.percent(50) { pool.pop_new(back) } else { pool.pop_back(back) };
                    let drawn = drawn.or_else(|| pool.pop_new(0));
                    assert_eq!(drawn.is_some(), !twin.is_empty());
                    assert!(drawn.is_none_or(|(ticket, url)| {
                        url == format!("http://h.test/{}", ticket.number) && twin.remove(&ticket.number)
                    }));
                }
            }
            assert_eq!(pool.len(), twin.len());
            assert!(pool.ram_bytes() <= 4 * pool.bytes_left() + 6 * TAKEN_BYTES_MAX, "{}", pool.ram_bytes());
        }
    }

    /// Of ten URLs each comes first about equally often: chi-squared with nine degrees of freedom, 99.9 %.
    #[test]
    fn every_url_is_as_likely_as_any_other() {
        for spills in [false, true] {
            let mut firsts = [0_u32; 10];
            for seed in 0..10_000 {
                let mut pool = RandomPool::new(Rng::new(seed).next());
                (0..10).for_each(|number| pushed(&mut pool, number));
                // One of the remaining URLs, or one of those that came back in front of another.
                let drawn = if spills {
                    let others = pool.take_others(0);
                    pushed(&mut pool, 99);
                    let back = pool.add_back(0, &others);
                    pool.pop_back(back)
                } else {
                    pool.pop_new(0)
                };
                if let Some(first) = drawn.and_then(|(ticket, _)| firsts.get_mut(ticket.number as usize)) {
                    *first += 1;
                }
            }
            let chi: f64 = firsts.iter().map(|count| (f64::from(*count) - 1_000.0).powi(2) / 1_000.0).sum();
            assert!(chi < 27.88, "{firsts:?}: {chi}");
        }
    }
}
