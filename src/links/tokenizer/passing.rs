//! Where a tag ends whose attributes nobody asked for, told from the quotes of a block at once.
//!
//! Decides: tags are mostly written in one way: each value stands in `"`, directly behind the `=` that follows its name.
//! Then what is inside of values is found by a subtraction, and the tag ends at the first `>` outside. Where it is not
//! so the tag is odd, and the tokenizer reads its attributes one by one.
//!
//! What is odd: a `'` outside of values; an `=` without a name before or a `"` behind it; a `"` without `=`; a value that
//! ends with `=`; an `=` in the tag's name.
//!
//! Invariant: a tag that is not odd ends to the standard too where it ends here.

use super::super::block::Kernel;

/// What a block hands to the next one, inside of one tag.
#[derive(Clone, Copy)]
pub(super) struct Passing {
    /// Where in the block the tag's name goes on, if it does.
    name_start: u64,
    /// One inside of a value.
    in_value: u64,
    /// One behind `=`.
    after_equals: u64,
    /// One behind the `=` of an attribute.
    after_attribute_equals: u64,
    /// One behind what no name ends with.
    after_gap: u64,
}

/// What a block says of the tag.
pub(super) enum Passed {
    /// It ends at the lowest of these.
    End(u64),
    /// It goes on in the next block.
    On,
    /// It has to be read.
    Odd,
}

impl Passing {
    /// In a block that begins with the tag's `<`.
    #[inline(always)]
    pub fn new() -> Passing {
        // The `/` of `</` is taken for a letter.
        Passing { name_start: 2, in_value: 0, after_equals: 0, after_attribute_equals: 0, after_gap: 0 }
    }

    /// Goes over a block, in which these are the `>`.
    #[inline(always)]
    pub fn over<K: Kernel>(&mut self, kernel: K, block: K::Block, closes: u64) -> Passed {
        let quotes = kernel.places(block, b'"');
        let singles = kernel.places(block, b'\'');
        // Without a quote it ends at the first `>`, whatever else is there.
        if closes != 0 && self.in_value == 0 && (quotes | singles) & below_lowest(closes) == 0 {
            return Passed::End(closes);
        }
        let equals = kernel.places(block, b'=');
        let opening = quotes & (equals << 1 | self.after_equals);
        let closing = quotes & !opening;
        // Subtracting bit by bit is going from quote to quote, and the borrow says whether this is inside of a value:
        // ones are from the opening quote to before the closing one.
        let (values, first_under) = closing.overflowing_sub(opening);
        let (values, second_under) = values.overflowing_sub(self.in_value);
        let end = closes & !values;
        let outside = !values;
        let attribute_equals = equals & outside;
        let name_ends = kernel.name_ends(block);
        let gaps = name_ends & outside | closing;
        // Adding the name's start to the bits of all that is in names clears the name.
        let in_names = !name_ends | self.name_start;
        let (sum, in_name) = in_names.overflowing_add(self.name_start);
        let odd = closing & values
            | opening & outside
            | (attribute_equals << 1 | self.after_attribute_equals) & !quotes
            | (gaps << 1 | self.after_gap | in_names & !sum) & attribute_equals
            | singles & outside;
        if odd & below_lowest(end) != 0 {
            return Passed::Odd;
        }
        if end != 0 {
            return Passed::End(end);
        }
        *self = Passing {
            name_start: u64::from(in_name),
            in_value: u64::from(first_under | second_under),
            after_equals: equals >> 63,
            after_attribute_equals: attribute_equals >> 63,
            after_gap: gaps >> 63,
        };
        Passed::On
    }
}

/// The bits below the lowest one; all where there is none.
#[inline(always)]
pub(super) fn below_lowest(bits: u64) -> u64 {
    bits.wrapping_sub(1) & !bits
}
