//! What is left of a tag, passed without a look at each attribute.
//!
//! Decides: most of what stands in tags is asked for by nobody: classes behind a link, all that a script's tag says, most
//! of a `<meta>`. The end of such a tag is the first `>`, unless that stands in a quoted value, and what is asked for is seen
//! by its letters. Whoever is told nothing has to read the attributes one by one.
//!
//! Why this is enough: a quoted value begins at a quote behind `=`, with or without spaces between, and has no other quote
//! of its kind in it. So if there is no `'` before the first `>`, and the last `"` is not behind `=` nor space, the `>`
//! stands in no such value; and no other `>` is part of a tag.
//!
//! Source: WHATWG HTML sections 13.2.5.32 to 13.2.5.40.
//! Invariants: never wrongly told; each byte is looked at once.
//! Limits: what stands in the page's last window is not skimmed.

use super::super::block::{BLOCK, Kernel, WINDOW};
use super::look::block_of;
use super::{Tokenizer, is_space};

/// What must not stand in a tag that is skimmed.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Unless {
    /// Nothing matters.
    Never,
    /// Three letters, small or not, whatever they are part of. Small ones here.
    Word([u8; 3]),
    /// The same of four words.
    Any([[u8; 3]; 4]),
    /// A `=` without a `"` right behind it: where there is none, no value is without quotes, and `/>` is what it looks like.
    Unquoted,
}

impl<K: Kernel> Tokenizer<'_, K> {
    /// Goes behind the tag from its name on, or from behind an attribute. Returns whether its end is `/>`: then it closes
    /// itself, unless the `/` is that of a value without quotes (`Unless::Unquoted` rules that out). `None`, and stays, if the end cannot be told at a glance, or
    /// if what is asked for may be there.
    #[inline(always)]
    pub fn skim(&mut self, unless: Unless) -> Option<bool> {
        let kernel = self.kernel;
        if self.bytes.get(self.at) == Some(&b'>') {
            self.at += 1;
            return Some(false);
        }
        // What stands before the last `"`.
        let mut before_quote = None;
        let mut at = self.at;
        loop {
            let window: &[u8; WINDOW] = self.bytes.get(at..)?.first_chunk()?;
            let block = kernel.load(block_of(window, 0));
            let close = kernel.places(block, b'>');
            let before_close = close.wrapping_sub(1) & !close;
            let asked = match unless {
                Unless::Never => 0,
                Unless::Unquoted => kernel.places(block, b'=') & !kernel.places(kernel.load(block_of(window, 1)), b'"'),
                Unless::Word(word) => kernel.bits(begins(kernel, window, word)),
                Unless::Any([one, two, three, four]) => {
                    let either = kernel.either(begins(kernel, window, one), begins(kernel, window, two));
                    let other = kernel.either(begins(kernel, window, three), begins(kernel, window, four));
                    kernel.bits(kernel.either(either, other))
                }
            };
            if (asked | kernel.places(block, b'\'')) & before_close != 0 {
                return None;
            }
            let quotes = kernel.places(block, b'"') & before_close;
            if quotes != 0 {
                let quote = at + (BLOCK - 1) - quotes.leading_zeros() as usize;
                before_quote = self.bytes.get(quote - 1);
            }
            if close != 0 {
                if before_quote.is_some_and(|byte| *byte == b'=' || is_space(*byte)) {
                    return None;
                }
                let close = at + close.trailing_zeros() as usize;
                self.at = close + 1;
                return Some(self.bytes.get(close - 1) == Some(&b'/'));
            }
            at += BLOCK;
        }
    }
}

/// Marks where a word begins.
#[inline(always)]
fn begins<K: Kernel>(kernel: K, window: &[u8; WINDOW], [one, two, three]: [u8; 3]) -> K::Marks {
    let first = kernel.load(block_of(window, 0));
    let second = kernel.load(block_of(window, 1));
    let third = kernel.load(block_of(window, 2));
    kernel.both(kernel.both(kernel.letter(first, one), kernel.letter(second, two)), kernel.letter(third, three))
}
