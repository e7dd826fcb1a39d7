//! Finds the next tag that may be wanted, without walking from tag to tag.
//!
//! Decides: the letters behind a `<` that may begin something wanted are matched block after block, as fast as a
//! single byte. Only then are the bytes before it examined, backwards, to prove that the `<` is not part of another
//! tag.
//!
//! Why this is enough: everything starts in the data state, at `from`, and nothing that begins between `from` and the
//! `<` is wanted: so those bytes are text, tags, and markup that is not a tag and ends at the next `>`. Such a tag
//! ends at the first `>` outside a quoted value, and a quoted value begins at a quote behind `=`, with or without
//! spaces between. So if the last `<` or `>` is a `>`, and it is outside such values, everything behind it is text,
//! and the `<` begins something. It is outside if neither the last `"` nor the last `'` before it is behind `=`: a
//! value's own quotes would be the last. If one of them is (`title="a > b`), the result is uncertain, and the
//! tokenizer walks there from tag to tag.
//!
//! Invariants: never a false certainty. In both directions together, a byte is read a few times: backwards no further
//! than `from`, and the next search begins at the `<` or behind it.

use super::super::block::{BLOCK, Kernel, WINDOW};
use super::super::wanted::Wanted;
use super::is_space;

/// A search from a position.
#[derive(Clone, Copy)]
pub(super) struct TagSearch<'b, K> {
    pub kernel: K,
    pub bytes: &'b [u8],
    /// A position in the data state.
    pub from: usize,
}

/// A `<` that may begin something wanted.
pub(super) struct TagCandidate {
    pub at: usize,
    /// What it may begin: bits of names.
    pub names: u32,
    /// Whether there may be a `'` before it.
    behind_single: bool,
}

/// The block that ends at a place.
struct Back<B> {
    block: B,
    /// Which of its bytes to examine: those not before `from`.
    asked: u64,
    /// Where it begins: below zero, wrapped, if the page does not have a whole block.
    start: usize,
}

/// How far ahead a block is prefetched: the processor's own prefetching stays within the current memory page.
const AHEAD: usize = 4096;

impl<K: Kernel> TagSearch<'_, K> {
    /// The first `<` at or behind `from` that may begin something wanted.
    #[inline(always)]
    pub fn find(self, wanted: &Wanted) -> Option<TagCandidate> {
        let (kernel, letters) = (self.kernel, wanted.letters());
        // Values in single quotes are rare, and so is the need to go back for a `'`; a `"` is mostly near.
        let mut singles = kernel.equal(kernel.load(&[0; BLOCK]), b'\'');
        let mut rest = self.bytes.get(self.from..)?;
        while let Some(window) = rest.first_chunk::<WINDOW>() {
            kernel.expect(rest, AHEAD);
            singles = kernel.either(singles, kernel.equal(kernel.load(block_of(window, 0)), b'\''));
            let begins = kernel.begins(window, letters);
            if kernel.any(begins) {
                let mut left = kernel.bits(begins);
                while left != 0 {
                    let place = left.trailing_zeros() as usize % BLOCK;
                    let names = wanted.names([window[place + 1], window[place + 2], window[place + 3]]);
                    if names != 0 {
                        let at = self.bytes.len() - rest.len() + place;
                        return Some(TagCandidate { at, names, behind_single: kernel.any(singles) });
                    }
                    left &= left - 1;
                }
            }
            rest = rest.get(BLOCK..)?;
        }
        let place = find_in_tail(rest, wanted)?;
        let names = names_at(rest, place, wanted);
        Some(TagCandidate { at: self.bytes.len() - rest.len() + place, names, behind_single: true })
    }

    /// Whether what `find` found is in the data state; true only if certain.
    #[inline(always)]
    pub fn is_data(self, found: &TagCandidate) -> bool {
        let mut end = found.at;
        let mut in_text = true;
        // Whether the last quote of each kind has not been found yet.
        let (mut double, mut single) = (true, found.behind_single);
        while end > self.from {
            let back = self.before(end);
            end = if back.asked == !0 { back.start } else { self.from };
            let mut asked = back.asked;
            if in_text {
                let opens = self.kernel.places(back.block, b'<') & asked;
                let closes = self.kernel.places(back.block, b'>') & asked;
                if opens > closes {
                    return false;
                }
                if closes == 0 {
                    continue;
                }
                in_text = false;
                asked &= !(!0 << highest(closes));
            }
            if double {
                let quotes = self.kernel.places(back.block, b'"') & asked;
                if quotes != 0 && self.is_behind_equals(back.start.wrapping_add(highest(quotes))) {
                    return false;
                }
                double = quotes == 0;
            }
            if single {
                let quotes = self.kernel.places(back.block, b'\'') & asked;
                if quotes != 0 && self.is_behind_equals(back.start.wrapping_add(highest(quotes))) {
                    return false;
                }
                single = quotes == 0;
            }
            if !double && !single {
                return true;
            }
        }
        true
    }

    /// Whether the byte at `at` is behind `=`, perhaps with spaces between.
    #[inline(always)]
    fn is_behind_equals(self, mut at: usize) -> bool {
        while at > self.from {
            at -= 1;
            match self.bytes.get(at) {
                Some(b'=') => return true,
                Some(byte) if is_space(*byte) => {}
                _ => return false,
            }
        }
        false
    }

    /// The block that ends at `end`, which is behind `from`.
    #[inline(always)]
    fn before(self, end: usize) -> Back<K::Block> {
        let start = end.wrapping_sub(BLOCK);
        let block = match self.bytes.get(start..).and_then(<[u8]>::first_chunk) {
            Some(block) => self.kernel.load(block),
            None => self.kernel.load(&first_block(self.bytes, end)),
        };
        let length = end - self.from;
        let asked = if length < BLOCK { !(!0 >> length) } else { !0 };
        Back { block, asked, start }
    }
}

/// Where something wanted may begin in the rest of a page, which is shorter than a window.
#[cold]
#[inline(never)]
fn find_in_tail(rest: &[u8], wanted: &Wanted) -> Option<usize> {
    (0..rest.len()).find(|place| names_at(rest, *place, wanted) != 0)
}

/// Bits of the names that may begin at a place.
fn names_at(rest: &[u8], place: usize, wanted: &Wanted) -> u32 {
    match *rest.get(place..).unwrap_or_default() {
        [b'<', first, second, third, ..] => wanted.names([first, second, third]),
        [b'<', first, second] => wanted.names([first, second, 0]),
        _ => 0,
    }
}

/// The first `<` at or behind `at` that is followed by `/` or by `other`. Two blocks at once, because it is mostly
/// far away.
#[inline(always)]
pub(super) fn find_end<K: Kernel>(kernel: K, bytes: &[u8], at: usize, other: u8) -> Option<usize> {
    let mut rest = bytes.get(at..)?;
    while let Some(double) = rest.first_chunk::<{ BLOCK + WINDOW }>() {
        kernel.expect(rest, AHEAD);
        kernel.expect(rest, AHEAD + BLOCK);
        let one = ends(kernel, double.first_chunk().unwrap_or(&[0; WINDOW]), other);
        let two = ends(kernel, double.last_chunk().unwrap_or(&[0; WINDOW]), other);
        if kernel.any(kernel.either(one, two)) {
            let one = kernel.bits(one);
            let (begin, ends) = if one != 0 { (0, one) } else { (BLOCK, kernel.bits(two)) };
            return Some(bytes.len() - rest.len() + begin + ends.trailing_zeros() as usize);
        }
        rest = rest.get(2 * BLOCK..)?;
    }
    find_end_in_tail(rest, other).map(|place| bytes.len() - rest.len() + place)
}

/// Marks each `<` of the window's block that is followed by such a byte.
#[inline(always)]
fn ends<K: Kernel>(kernel: K, window: &[u8; WINDOW], other: u8) -> K::Marks {
    let (opens, behind) = (kernel.load(block_of(window, 0)), kernel.load(block_of(window, 1)));
    let behind = kernel.either(kernel.equal(behind, b'/'), kernel.equal(behind, other));
    kernel.both(kernel.equal(opens, b'<'), behind)
}

/// The same in the rest of the page, byte by byte.
#[cold]
#[inline(never)]
fn find_end_in_tail(rest: &[u8], other: u8) -> Option<usize> {
    rest.windows(2).position(|two| matches!(*two, [b'<', behind] if behind == b'/' || behind == other))
}

/// The page's first bytes up to `end`, less than a block, preceded by zeros.
#[cold]
#[inline(never)]
fn first_block(bytes: &[u8], end: usize) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let first = bytes.get(..end).unwrap_or_default();
    block.iter_mut().rev().zip(first.iter().rev()).for_each(|(to, from)| *to = *from);
    block
}

/// The block at `place` of a window, 4 at most.
#[inline(always)]
pub(super) fn block_of(window: &[u8; WINDOW], place: usize) -> &[u8; BLOCK] {
    window.get(place..).and_then(<[u8]>::first_chunk).unwrap_or(&[0; BLOCK])
}

/// The position of the highest bit; there is one.
#[inline(always)]
fn highest(bits: u64) -> usize {
    (BLOCK - 1).wrapping_sub(bits.leading_zeros() as usize)
}
