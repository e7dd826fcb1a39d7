//! Where to look closer: the tags that may be wanted, told for block after block without going from tag to tag.
//!
//! Decides: a tag whose attributes nobody asked for ends at the first `>` behind its `<`, unless a value that stands in
//! quotes is open there. Such a value began at a quote behind `=`, with or without spaces between, and no such quote
//! came since. So `>` is doubtful only where the last `"`, or the last `'`, before it stands behind `=`. A `<` is
//! doubtful that comes before the `>` of the tag before it. Both are told for all tags of a block by a few subtractions,
//! with no branch for any of them. Marked are the tags that may be wanted, by their letters (`Wanted`), and those that
//! something doubtful belongs to: these are few, and the tokenizer reads them.
//!
//! Invariants: marks come in order, at `<` alone. Whoever reads every marked tag that begins at or behind his position,
//! and goes on behind it, passes over no tag in the data state that is wanted, from whatever place of the page in data
//! state the look began: what was before that place, or inside of what he read, can only add marks, since what makes
//! `<` or `>` doubtful lies between the tag's own `<` and that place. Every block is looked at once at most.

use super::super::block::{BLOCK, Kernel};
use super::super::wanted::{LETTERS, Wanted};

/// Marks that were set and not taken yet, and how far the page was looked at.
pub(super) struct Marks {
    places: [usize; PLACES],
    taken: usize,
    set: usize,
    /// Behind the last block looked at.
    looked: usize,
    carried: Carried,
}

/// What a block hands to the next one; each but the last a bit, for its first byte.
#[derive(Clone, Copy, Default)]
struct Carried {
    in_tag: u64,
    in_double: u64,
    in_single: u64,
    behind_equals: u64,
    /// Where the last `<` is.
    open: usize,
}

/// A power of two.
const PLACES: usize = 256;
/// Marks that one block may set: two for each byte, where there is something doubtful.
const BLOCK_MARKS: usize = 2 * BLOCK;
/// Blocks looked at in one go: more would be lost where the page goes on behind them.
const BLOCKS: usize = 16;
/// How far ahead a block is asked for: the processor itself asks for no page of memory but the one that is read.
const AHEAD: usize = 4096;
/// A block, and the letters of a `<` that is its last byte.
const WINDOW: usize = BLOCK + 3;

impl Marks {
    /// Begins at `at`, in the data state.
    #[inline(always)]
    pub fn new(at: usize) -> Marks {
        Marks { places: [0; PLACES], taken: 0, set: 0, looked: at, carried: Carried::default() }
    }

    /// The next mark that is not before `at`, a place in the data state.
    #[inline(always)]
    pub fn next<K: Kernel>(&mut self, kernel: K, bytes: &[u8], at: usize, wanted: &Wanted) -> Option<usize> {
        loop {
            while self.taken < self.set {
                let place = self.places[self.taken % PLACES];
                self.taken += 1;
                if place >= at {
                    return Some(place);
                }
            }
            if self.looked < at {
                (self.looked, self.carried) = (at, Carried::default());
            }
            if self.looked >= bytes.len() {
                return None;
            }
            self.look(kernel, bytes, wanted);
        }
    }

    /// Sets the marks of the next blocks; all that were set are taken.
    #[inline(always)]
    fn look<K: Kernel>(&mut self, kernel: K, bytes: &[u8], wanted: &Wanted) {
        // Not in place, where every block would have to write what the next one reads.
        let (mut looked, mut carried) = (self.looked, self.carried);
        (self.taken, self.set) = (0, 0);
        for _ in 0..BLOCKS {
            let rest = bytes.get(looked..).unwrap_or_default();
            let last;
            let window: &[u8; WINDOW] = match rest.first_chunk() {
                Some(window) => window,
                None => {
                    last = last_window(rest);
                    &last
                }
            };
            kernel.expect(rest, AHEAD);
            let (opens, doubtful) = carried.look_at(kernel, window);
            let mut names = 0;
            if doubtful == 0 {
                // No closures: these would not be compiled for the kernel.
                let (first, second, third) = (at_place(window, 1), at_place(window, 2), at_place(window, 3));
                let begins = [kernel.load(first), kernel.load(second), kernel.load(third)];
                let mut left = opens & kernel.in_groups(begins, &LETTERS);
                while left != 0 {
                    names |= self.mark(looked, window, left.trailing_zeros() as usize, wanted);
                    left &= left - 1;
                }
                if opens != 0 {
                    carried.open = looked + opens.ilog2() as usize;
                }
            } else {
                carried.open = self.mark_doubtful(looked, window, (opens, doubtful, carried.open), wanted);
            }
            looked += BLOCK;
            // Behind such a tag there may be no markup.
            let ends = Wanted::may_hold_raw_text(names);
            if ends || self.set > PLACES - BLOCK_MARKS || looked >= bytes.len() {
                break;
            }
        }
        (self.looked, self.carried) = (looked, carried);
    }

    /// Marks a block with something doubtful in it, and the tags that this belongs to; `open` is where the last `<` before
    /// the block is. Returns where it is behind it.
    #[cold]
    #[inline(never)]
    fn mark_doubtful(
        &mut self,
        looked: usize,
        window: &[u8; WINDOW],
        (opens, doubtful, mut open): (u64, u64, usize),
        wanted: &Wanted,
    ) -> usize {
        let mut left = opens | doubtful;
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            if doubtful >> place & 1 != 0 {
                self.push(open, true);
            }
            if opens >> place & 1 != 0 {
                self.mark(looked, window, place, wanted);
                open = looked + place;
            }
            left &= left - 1;
        }
        open
    }

    /// Marks the `<` at `place` if its tag may be wanted. Returns the names that it may have.
    #[inline(always)]
    fn mark(&mut self, looked: usize, window: &[u8; WINDOW], place: usize, wanted: &Wanted) -> u32 {
        let place = place % BLOCK;
        let names = wanted.names([window[place + 1], window[place + 2], window[place + 3]]);
        self.push(looked + place, names != 0);
        names
    }

    /// No branch for each tag: the place is written, whether it counts or not.
    #[inline(always)]
    fn push(&mut self, place: usize, counts: bool) {
        self.places[self.set % PLACES] = place;
        self.set += usize::from(counts);
    }
}

impl Carried {
    /// Where a block has `<`, and where something doubtful: `<`, or `>`.
    #[inline(always)]
    fn look_at<K: Kernel>(&mut self, kernel: K, window: &[u8; WINDOW]) -> (u64, u64) {
        let block = kernel.load(at_place(window, 0));
        let opens = kernel.places(block, b'<');
        let closes = kernel.places(block, b'>');
        let equals = kernel.places(block, b'=');
        let spaces = kernel.name_ends(block);

        // Adding to the spaces behind `=` is going to what is behind them. That `/` and `>` are among them adds doubt
        // at most.
        let behind_equals = equals << 1 | self.behind_equals;
        let (sum, spaces_go_on) = spaces.overflowing_add(behind_equals & spaces);
        let may_open_value = behind_equals | sum & !spaces;
        self.behind_equals = equals >> (BLOCK - 1) | u64::from(spaces_go_on);

        let doubles = kernel.places(block, b'"');
        let in_doubles = between(doubles & may_open_value, doubles & !may_open_value, &mut self.in_double);
        let singles = kernel.places(block, b'\'');
        let in_singles = between(singles & may_open_value, singles & !may_open_value, &mut self.in_single);
        let was_in_tag = self.in_tag;
        let in_tags = between(opens, closes, &mut self.in_tag);

        let ends = closes & !in_tags;
        let nested = opens & ((in_tags & !closes | opens) << 1 | was_in_tag);
        (opens, nested | ends & (in_doubles | in_singles))
    }
}

/// What lies behind the last of `opening` and not behind a `closing` since. `is_in` is one where the first byte does, and
/// is told of what follows the block. Where `opening` or `closing` stands the bits are: of an `opening`, any; of a
/// `closing`, none if it closes something.
///
/// Subtracting is going from bit to bit: a borrow runs from each `opening` to the next `closing`. One without a
/// `closing` of its own only takes away its own bit.
#[inline(always)]
fn between(opening: u64, closing: u64, is_in: &mut u64) -> u64 {
    let bits = u128::from(closing).wrapping_sub(u128::from(opening)).wrapping_sub(u128::from(*is_in));
    *is_in = (bits >> u64::BITS) as u64 & 1;
    bits as u64
}

/// The block at `place` of a window, 3 at most.
#[inline(always)]
fn at_place(window: &[u8; WINDOW], place: usize) -> &[u8; BLOCK] {
    window.get(place..).and_then(<[u8]>::first_chunk).unwrap_or(&[0; BLOCK])
}

/// What is left of the page, less than a window, and zeros.
#[cold]
#[inline(never)]
fn last_window(rest: &[u8]) -> [u8; WINDOW] {
    let mut window = [0; WINDOW];
    window.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    window
}
