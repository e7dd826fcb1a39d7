//! Millions of short texts, each with flags, in little memory: exact.
//!
//! Decides: the texts lie one behind the other in one piece of memory, and a table of 8-byte slots leads to them by their hash:
//! 20 bits of the hash, where the text begins, and its flags. A slot whose bits agree is believed only after the text was
//! compared, so no text is ever taken for another. Most that is asked for is not there, and a filter (Bloom, CACM 13(7), 1970,
//! with all bits of a text in one word) says so without a look at the table, which is too large for a CPU's caches.
//! Invariants: at most three of four slots are taken; a text stands there once, with the flags of all times it was put in.
//! Limits: [`TEXT_BYTES_MAX`] bytes of texts.

use xxhash_rust::xxh3::xxh3_64;

/// Texts with flags.
#[derive(Debug, Default)]
pub struct Texts {
    /// Each text, with a line end behind it.
    texts: Vec<u8>,
    /// Linear probing; 0 is an empty slot.
    slots: Vec<u64>,
    filter: Vec<u64>,
    len: usize,
}

/// Flags of a text: so many bits, of which one is set.
pub type Flags = u8;

const FLAG_BITS: u32 = 4;
const PLACE_BITS: u32 = 40;
/// Bits of the filter a text: one in fifty that is not there passes it.
const FILTER_BITS: usize = 12;
const TAG_BITS: u32 = u64::BITS - PLACE_BITS - FLAG_BITS;
/// Most bytes that a place can tell.
pub const TEXT_BYTES_MAX: usize = 1 << PLACE_BITS;

impl Texts {
    /// Room for so many texts.
    pub fn with_room(texts: usize) -> Texts {
        Texts {
            texts: Vec::new(),
            slots: vec![0; texts + texts / 3 + 2],
            filter: vec![0; texts * FILTER_BITS / u64::BITS as usize + 1],
            len: 0,
        }
    }

    /// Puts in a text, or adds flags to it; whether there was room. It holds no line end.
    pub fn insert(&mut self, text: &[u8], flags: Flags) -> bool {
        let hash = xxh3_64(text);
        let at = match self.look(hash, text) {
            Ok(at) => {
                self.slots.get_mut(at).into_iter().for_each(|slot| *slot |= u64::from(flags));
                return true;
            }
            Err(at) => at,
        };
        let place = self.texts.len();
        // A look for what is not there ends at a free slot.
        if self.len >= self.slots.len() * 3 / 4 || place + text.len() >= TEXT_BYTES_MAX {
            return false;
        }
        self.texts.extend_from_slice(text);
        self.texts.push(b'\n');
        self.len += 1;
        let slot = tag(hash) << (PLACE_BITS + FLAG_BITS) | (place as u64) << FLAG_BITS | u64::from(flags);
        self.slots.get_mut(at).into_iter().for_each(|free| *free = slot);
        let (word, bits) = self.filter_bits(hash);
        self.filter.get_mut(word).into_iter().for_each(|word| *word |= bits);
        true
    }

    /// The flags of a text; 0 where it is not there.
    pub fn flags(&self, text: &[u8]) -> Flags {
        let hash = xxh3_64(text);
        let (word, bits) = self.filter_bits(hash);
        if self.filter.get(word).is_none_or(|word| word & bits != bits) {
            return 0;
        }
        match self.look(hash, text) {
            Ok(at) => (self.slots.get(at).copied().unwrap_or_default() & ((1 << FLAG_BITS) - 1)) as Flags,
            Err(_) => 0,
        }
    }

    /// The word of the filter for a hash, and the bits that are set in it.
    fn filter_bits(&self, hash: u64) -> (usize, u64) {
        let word = ((u128::from(hash) * self.filter.len() as u128) >> 64) as usize;
        (word, 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63) | 1 << (hash >> 18 & 63))
    }

    /// The slot of a text, or the one where it belongs.
    fn look(&self, hash: u64, text: &[u8]) -> Result<usize, usize> {
        let slots = self.slots.len();
        let mut at = ((u128::from(hash) * slots as u128) >> 64) as usize;
        loop {
            let slot = self.slots.get(at).copied().unwrap_or_default();
            if slot == 0 {
                return Err(at);
            }
            if slot >> (PLACE_BITS + FLAG_BITS) == tag(hash) {
                let place = (slot >> FLAG_BITS) as usize & (TEXT_BYTES_MAX - 1);
                let behind = self.texts.get(place..).unwrap_or_default();
                if behind.strip_prefix(text).is_some_and(|rest| rest.first() == Some(&b'\n')) {
                    return Ok(at);
                }
            }
            at = if at + 1 < slots { at + 1 } else { 0 };
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Gives back memory that is not needed.
    pub fn shrink(&mut self) {
        self.texts.shrink_to_fit();
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.texts.capacity() + (self.slots.capacity() + self.filter.capacity()) * size_of::<u64>()
    }
}

/// The low bits: the high ones say which slot.
fn tag(hash: u64) -> u64 {
    hash & ((1 << TAG_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::lab::Rng;

    #[test]
    fn texts_are_those_of_a_map() {
        let mut rng = Rng::new(1);
        for room in [0, 1, 2, 3, 10, 1_000] {
            let (mut texts, mut twin) = (Texts::with_room(room), HashMap::<String, Flags>::new());
            for _ in 0..4 * room + 10 {
                let text = rng.below(2 * room as u64 + 2).to_string();
                let flags = 1 << rng.below(3);
                if twin.contains_key(&text) || twin.len() < room {
                    assert!(texts.insert(text.as_bytes(), flags), "{room} {}", twin.len());
                    *twin.entry(text).or_default() |= flags;
                }
            }
            for number in 0..3 * room + 10 {
                let text = number.to_string();
                assert_eq!(texts.flags(text.as_bytes()), twin.get(&text).copied().unwrap_or_default(), "{room} {text}");
            }
            assert_eq!((texts.len(), texts.flags(b""), texts.flags(b"1\n2")), (twin.len(), 0, 0));
        }
        // Beyond its room it refuses, and ends.
        let mut full = Texts::with_room(2);
        assert_eq!((0..9).filter(|number: &u8| full.insert(&[*number], 1)).count(), 3);
        assert_eq!(full.flags(&[8]), 0);
    }
}
