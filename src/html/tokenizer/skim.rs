//! Skips the rest of a tag without examining each attribute.
//!
//! Decides: most attributes are not needed: classes behind a link, everything in a script's tag, most of a `<meta>`.
//! The end of such a tag is the first `>`, unless that is in a quoted value, and wanted attributes are detected by
//! their letters. A caller that gets no answer must read the attributes one by one.
//!
//! Why this is enough: a quoted value begins at a quote behind `=`, with or without spaces between, and contains no
//! other quote of its kind. So if there is no `'` before the first `>`, and the last `"` is not behind `=` or space,
//! the `>` is outside such values; and no other `>` is part of a tag.
//!
//! Source: WHATWG HTML sections 13.2.5.32 to 13.2.5.40.
//! Invariants: never a wrong answer; each byte is read once.
//! Limits: bytes in the page's last window are not skimmed.

use super::super::block::{BLOCK, Kernel, WINDOW};
use super::tag_search::block_of;
use super::{Tokenizer, is_space};

/// What must not occur in a tag that is skimmed.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Unless {
    /// Nothing matters.
    Never,
    /// Three letters in either case, even inside a word. Given in lower case.
    Word([u8; 3]),
    /// The same for four words.
    Any([[u8; 3]; 4]),
    /// A `=` without a `"` right behind it: without one, every value is quoted, and `/>` is what it looks like.
    Unquoted,
}

impl<K: Kernel> Tokenizer<'_, K> {
    /// Moves behind the tag, from its name or from behind an attribute. Returns whether it ends in `/>`: then it
    /// closes itself, unless the `/` belongs to an unquoted value (`Unless::Unquoted` rules that out). Returns
    /// `None`, and stays, if the end cannot be determined quickly, or if a wanted attribute may be there.
    #[inline(always)]
    pub fn skim(&mut self, unless: Unless) -> Option<bool> {
        let kernel = self.kernel;
        if self.bytes.get(self.at) == Some(&b'>') {
            self.at += 1;
            return Some(false);
        }
        // The bytes before the last `"`.
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
