//! The attributes of a tag: names, and the places of their values.
//!
//! Decides: a tag is read in blocks that begin at an attribute, and within a block from attribute to attribute by the
//! bits of bytes that end a name, of equals signs and of quotes. An attribute that does not fit in a block is read
//! again from its beginning, one step after the other. A caller that has seen enough stops there, and reads on or
//! skims (`skim`).
//!
//! Source: WHATWG HTML sections 13.2.5.32 to 13.2.5.40.
//! Invariants: every attribute in order, including duplicates; an attribute is read at most twice.

use std::ops::ControlFlow;

use super::super::block::{BLOCK, Kernel};
use super::{Stop, Tokenizer};

/// The place of a value in the page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in super::super) struct Span {
    /// Its first byte; never the page's first byte, which at the earliest begins the tag.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
}

impl<'a, K: Kernel> Tokenizer<'a, K> {
    /// Reads the attributes of the tag that `tag` returned, in order, duplicates included: the first one counts. A
    /// name and a raw value; without `=` the value is empty. Returns whether the tag closes itself (`/>`), or `None`
    /// when the file ends inside the tag, which makes it no tag at all.
    #[inline(always)]
    pub fn attributes(&mut self, mut each: impl FnMut(&'a [u8], Span)) -> Option<bool> {
        let read = self.attributes_until(|name, span| {
            each(name, span);
            false
        });
        match read? {
            ControlFlow::Continue(closes_itself) => Some(closes_itself),
            ControlFlow::Break(()) => None,
        }
    }

    /// The same, but only up to the first attribute that `is_last`, if there is one; the rest may be read as a tag of
    /// its own.
    #[inline(always)]
    pub fn attributes_until(
        &mut self,
        mut is_last: impl FnMut(&'a [u8], Span) -> bool,
    ) -> Option<ControlFlow<(), bool>> {
        let kernel = self.kernel;
        let mut from = self.at;
        loop {
            let block = self.block(self.at);
            let (ends, closes) = (kernel.name_ends(block), kernel.places(block, b'>'));
            let equals = kernel.places(block, b'=');
            let doubles = kernel.places(block, b'"');
            let mut left = !0_u64;
            // From attribute to attribute, while they are within the block.
            loop {
                // Before attribute name state.
                let start = lowest((!ends | closes) & left);
                let start_at = self.at + start.trailing_zeros() as usize;
                if start & closes != 0 {
                    self.at = start_at + 1;
                    // Self-closing start tag state: a `/` that is part of no attribute, and `>`.
                    let closes_itself = start_at > from && self.bytes.get(start_at - 1) == Some(&b'/');
                    return Some(ControlFlow::Continue(closes_itself));
                }
                // Attribute name state; a name may start with `=`.
                let stop = lowest((ends | equals) & above(start));
                let stop_at = self.at + stop.trailing_zeros() as usize;
                let value = stop << 1;
                if value == 0 && start != 1 {
                    // Its end, or the first byte of its value, is in the next block.
                    self.at = start_at;
                    break;
                }
                let has_value = stop & equals != 0;
                let quotes = if value & doubles != 0 { doubles } else { kernel.places(block, b'\'') };
                let (name, span);
                if has_value && value & quotes != 0 {
                    // Attribute value states, in quotes, the usual case.
                    let end = lowest(quotes & above(value));
                    let end_at = if end == 0 {
                        let quote = if value & doubles != 0 { b'"' } else { b'\'' };
                        self.at = self.bytes.len().min(self.at + BLOCK);
                        self.skip_to(Stop::At(quote))?;
                        self.at
                    } else {
                        self.at + end.trailing_zeros() as usize
                    };
                    name = self.bytes.get(start_at..stop_at)?;
                    span = Span { start: stop_at + 2, end: end_at };
                    from = end_at + 1;
                    left = above(end);
                } else {
                    // Attribute value state, without quotes; or after attribute name state, if no `=` follows.
                    let spaces = ends & !(closes | kernel.places(block, b'/'));
                    let end = if value == 0 {
                        0
                    } else if !has_value {
                        lowest(!spaces & (stop | above(stop))) & !equals
                    } else if value & (spaces | closes) == 0 {
                        lowest((spaces | closes) & above(value))
                    } else {
                        0
                    };
                    if end == 0 {
                        self.at = start_at.min(self.bytes.len());
                        if start != 1 {
                            break;
                        }
                        (name, span) = self.unusual_attribute()?;
                        from = self.at;
                        left = 0;
                    } else {
                        from = self.at + end.trailing_zeros() as usize;
                        name = self.bytes.get(start_at..stop_at)?;
                        span = Span { start: if has_value { stop_at + 1 } else { from }, end: from };
                        left = end | above(end);
                    }
                }
                if is_last(name, span) {
                    self.at = from;
                    return Some(ControlFlow::Break(()));
                }
                if left == 0 {
                    self.at = from;
                    break;
                }
            }
        }
    }

    /// Attribute name state to after attribute value state, starting at the name, in all cases; `None` at the end of
    /// the file.
    #[inline(always)]
    fn unusual_attribute(&mut self) -> Option<(&'a [u8], Span)> {
        let start = self.at;
        self.at = self.bytes.len().min(start + 1);
        self.skip_to(Stop::AttributeNameEnd)?;
        let name = self.bytes.get(start..self.at)?;
        // After attribute name state.
        self.skip_space();
        if *self.rest().first()? != b'=' {
            return Some((name, Span { start: self.at, end: self.at }));
        }
        self.at += 1;
        // Before attribute value state.
        self.skip_space();
        let quote = *self.rest().first()?;
        if !matches!(quote, b'"' | b'\'') {
            // Unquoted: up to space or `>`, which may be here already.
            let start = self.at;
            self.skip_to(Stop::UnquotedValueEnd)?;
            return Some((name, Span { start, end: self.at }));
        }
        self.at += 1;
        let start = self.at;
        self.skip_to(Stop::At(quote))?;
        let end = self.at;
        self.at += 1;
        Some((name, Span { start, end }))
    }
}

/// The lowest bit alone.
#[inline(always)]
fn lowest(bits: u64) -> u64 {
    bits & bits.wrapping_neg()
}

/// The bits above one; none above none.
#[inline(always)]
fn above(bit: u64) -> u64 {
    !(bit | bit.wrapping_sub(1))
}
