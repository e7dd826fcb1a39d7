//! Millions of short texts, each with flags, in little memory: exact.
//!
//! Decides: the texts are stored one after the other in one allocation. A table of 8-byte slots leads to them by
//! their hash: 20 bits of the hash, where the text begins, and its flags. A slot with matching bits is trusted only
//! after the text was compared, so no text is ever mistaken for another. Most lookups find nothing. A filter (Bloom,
//! CACM 13(7), 1970, with all bits of a text in one word) answers these without touching the table, which is too
//! large for a CPU's caches.
//! Why texts are collected first: inserted one by one, each waits for memory, for its slot and for its word of the
//! filter. So they are divided by their hash, and those of one part of the table, which fits in a cache, are inserted
//! together.
//! Invariants: at most three of four slots are taken; a text has one slot, with the flags of all times it was
//! collected.
//! Limits: [`TEXTS_MAX`] texts, [`TEXT_BYTES_MAX`] bytes of them; 16 bytes more for each while they are collected.

use xxhash_rust::xxh3::xxh3_64;

/// Texts with flags.
#[derive(Debug, Default)]
pub struct Texts {
    /// Each text, followed by a line end.
    texts: Vec<u8>,
    /// Linear probing; 0 is an empty slot.
    slots: Vec<u64>,
    filter: Vec<u64>,
}

/// Texts that are not in a table yet.
#[derive(Debug)]
pub struct Collected {
    texts: Vec<u8>,
    /// By the high bits of the hash.
    parts: [Vec<Pending>; PARTS],
    len: usize,
}

/// A collected text.
#[derive(Clone, Copy, Debug)]
struct Pending {
    hash: u64,
    /// The place and flags, as in a slot.
    place_and_flags: u64,
}

/// Flags of a text: `FLAG_BITS` bits, at least one of them set.
pub type Flags = u8;

const FLAG_BITS: u32 = 4;
const PLACE_BITS: u32 = 40;
/// Bits of the filter for each text: one absent text in fifty passes it.
const FILTER_BITS: usize = 12;
const TAG_BITS: u32 = u64::BITS - PLACE_BITS - FLAG_BITS;
/// The most bytes that a place can address.
pub const TEXT_BYTES_MAX: usize = 1 << PLACE_BITS;
/// What a text takes in addition to its own bytes while a table is built: its line end, its pending entry, its slot
/// and its share of the filter.
pub const COLLECTED_BYTES: usize = 1 + size_of::<Pending>() + size_of::<u64>() * 4 / 3 + FILTER_BITS.div_ceil(8);
/// This is a gigabyte and a half of slots.
const TEXTS_MAX: usize = 1 << 27;
/// With five million texts, one part of the slots has 208 KB.
const PARTS: usize = 256;

impl Default for Collected {
    fn default() -> Collected {
        Collected { texts: Vec::new(), parts: [const { Vec::new() }; PARTS], len: 0 }
    }
}

impl Collected {
    /// Adds a text; returns whether there was room. It must not contain a line end.
    pub fn push(&mut self, text: &[u8], flags: Flags) -> bool {
        let (hash, place) = (xxh3_64(text), self.texts.len());
        if self.len == TEXTS_MAX || place + text.len() >= TEXT_BYTES_MAX {
            return false;
        }
        self.texts.extend_from_slice(text);
        self.texts.push(b'\n');
        self.len += 1;
        let pending = Pending { hash, place_and_flags: (place as u64) << FLAG_BITS | u64::from(flags) };
        let part = (hash >> (u64::BITS - PARTS.ilog2())) as usize;
        self.parts.get_mut(part).into_iter().for_each(|part| part.push(pending));
        true
    }

    /// Builds the table.
    pub fn table(mut self) -> Texts {
        self.texts.shrink_to_fit();
        let mut texts = Texts {
            texts: self.texts,
            slots: vec![0; self.len + self.len / 3 + 2],
            filter: vec![0; self.len * FILTER_BITS / u64::BITS as usize + 1],
        };
        for part in self.parts {
            part.into_iter().for_each(|pending| texts.insert(pending));
        }
        texts
    }
}

impl Texts {
    /// Inserts a text that is in memory, or adds flags to it.
    fn insert(&mut self, Pending { hash, place_and_flags }: Pending) {
        let place = (place_and_flags >> FLAG_BITS) as usize;
        let (at, slot) = match self.look(hash, |there| self.text_at(there) == self.text_at(place)) {
            Ok(at) => (at, place_and_flags & ((1 << FLAG_BITS) - 1)),
            Err(at) => (at, tag(hash) << (PLACE_BITS + FLAG_BITS) | place_and_flags),
        };
        self.slots.get_mut(at).into_iter().for_each(|there| *there |= slot);
        let (word, bits) = self.filter_bits(hash);
        self.filter.get_mut(word).into_iter().for_each(|word| *word |= bits);
    }

    /// The flags of a text; 0 if it is absent.
    pub fn flags(&self, text: &[u8]) -> Flags {
        let hash = xxh3_64(text);
        let (word, bits) = self.filter_bits(hash);
        if self.filter.get(word).is_none_or(|word| word & bits != bits) {
            return 0;
        }
        let is_text = |place| {
            let behind = self.texts.get(place..).unwrap_or_default();
            behind.strip_prefix(text).is_some_and(|rest| rest.first() == Some(&b'\n'))
        };
        match self.look(hash, is_text) {
            Ok(at) => (self.slots.get(at).copied().unwrap_or_default() & ((1 << FLAG_BITS) - 1)) as Flags,
            Err(_) => 0,
        }
    }

    /// The word of the filter for a hash, and the bits set in it.
    fn filter_bits(&self, hash: u64) -> (usize, u64) {
        let word = ((u128::from(hash) * self.filter.len() as u128) >> 64) as usize;
        (word, 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63) | 1 << (hash >> 18 & 63))
    }

    /// The slot of a text, or the free one for it; `is_text` says whether the text begins at a place.
    fn look(&self, hash: u64, is_text: impl Fn(usize) -> bool) -> Result<usize, usize> {
        let slots = self.slots.len();
        let mut at = ((u128::from(hash) * slots as u128) >> 64) as usize;
        loop {
            let slot = self.slots.get(at).copied().unwrap_or_default();
            if slot == 0 {
                return Err(at);
            }
            let place = (slot >> FLAG_BITS) as usize & (TEXT_BYTES_MAX - 1);
            if slot >> (PLACE_BITS + FLAG_BITS) == tag(hash) && is_text(place) {
                return Ok(at);
            }
            at = if at + 1 < slots { at + 1 } else { 0 };
        }
    }

    /// The text that begins there.
    fn text_at(&self, place: usize) -> &[u8] {
        let behind = self.texts.get(place..).unwrap_or_default();
        memchr::memchr(b'\n', behind).and_then(|end| behind.get(..end)).unwrap_or_default()
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.slots.iter().filter(|slot| **slot != 0).count()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.texts.capacity() + (self.slots.capacity() + self.filter.capacity()) * size_of::<u64>()
    }
}

/// The low bits: the high ones select the slot.
fn tag(hash: u64) -> u64 {
    hash & ((1 << TAG_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use ringcrawl_base::Rng;

    #[test]
    fn texts_are_those_of_a_map() {
        let mut rng = Rng::new(1);
        for many in [0, 1, 2, 3, 10, 1_000, 20_000] {
            let (mut collected, mut twin) = (Collected::default(), HashMap::<String, Flags>::new());
            for _ in 0..many {
                let (text, flags) = (rng.below(many).to_string(), 1 << rng.below(4));
                assert!(collected.push(text.as_bytes(), flags));
                *twin.entry(text).or_default() |= flags;
            }
            let texts = collected.table();
            for number in 0..2 * many {
                let text = number.to_string();
                assert_eq!(texts.flags(text.as_bytes()), twin.get(&text).copied().unwrap_or_default(), "{many} {text}");
            }
            assert_eq!((texts.len(), texts.flags(b""), texts.flags(b"1\n2")), (twin.len(), 0, 0));
        }
    }

    /// Two texts with indistinguishable slots: only their bytes differ.
    #[test]
    fn texts_of_one_hash_are_two() {
        let mut texts = Collected { texts: b"a\nab\n".to_vec(), ..Collected::default() };
        texts.len = 2;
        for place in [0, 2] {
            texts.parts[7].push(Pending { hash: 7 << 56, place_and_flags: (place << FLAG_BITS) | (1 + place / 2) });
        }
        let texts = texts.table();
        let look = |text: &[u8]| texts.look(7 << 56, |place| texts.text_at(place) == text);
        assert_eq!(texts.len(), 2);
        assert_eq!(look(b"ab").map(|at| texts.slots[at] & 15), Ok(2));
        assert_eq!(look(b"a").map(|at| texts.slots[at] & 15), Ok(1));
        assert!(look(b"b").is_err());
    }
}
