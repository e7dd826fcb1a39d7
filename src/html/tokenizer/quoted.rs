//! Attributes in the usual notation: a space, a name, `="`, a value, `"`.
//!
//! Decides: for such attributes, the link and the `rel` of an `<a>` are found by the positions of quotes, equals
//! signs and bytes that end a name: three queries for a block, and a few operations for each attribute. A caller that
//! gets no answer reads the attributes one by one.
//!
//! Why this is enough: between two values there are one byte that ends a name, a name without such bytes, and one `=`
//! before the quote. So that is the name of an attribute, and the quote begins its value, which the next quote ends.
//!
//! Source: WHATWG HTML sections 13.2.5.32 to 13.2.5.40.
//! Invariants: never a wrong answer; each byte is read at most twice.
//! Limits: attributes in the first block behind the name, or behind the link; a value may be longer.

use super::super::block::{self, Kernel};
use super::super::value::Value;
use super::{Span, Stop, Tokenizer};

/// What is known of the attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Quoted<T> {
    /// It is there.
    Found(T),
    /// The tag has ended without it.
    Nowhere,
    /// Unknown.
    Unknown,
}

const HREF: u32 = u32::from_le_bytes(*b"href");
/// This includes the byte behind the name.
const REL: u32 = u32::from_le_bytes(*b"rel=");
/// The bit that distinguishes lower-case letters; `=` has it.
const SMALL: u32 = u32::from_le_bytes([0x20; 4]);

impl<'a, K: Kernel> Tokenizer<'a, K> {
    /// The link of an `<a>`, if no `rel` precedes it. Moves from the name to behind the link, or behind the tag, or
    /// stays.
    #[inline(always)]
    pub fn link(&mut self) -> Quoted<Value<'a>> {
        const HEAD: u64 = u64::from_le_bytes(*b"a href=\"");
        const SMALL: u64 = u64::from_le_bytes([0x20, 0, 0x20, 0x20, 0x20, 0x20, 0, 0]);
        let head = self.bytes.get(self.at - 1..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if u64::from_le_bytes(head) | SMALL == HEAD {
            self.value_from(self.at + size_of_val(&HEAD) - 1)
        } else {
            self.named(HREF)
        }
    }

    /// The first `rel`. Moves from behind another attribute to behind the `rel`, or behind the tag, or stays.
    #[inline(always)]
    pub fn rel(&mut self) -> Quoted<Value<'a>> {
        self.named(REL)
    }

    /// The first attribute of this name.
    #[inline(always)]
    fn named(&mut self, wanted: u32) -> Quoted<Value<'a>> {
        let Some(bytes) = self.whole_block(self.at) else { return Quoted::Unknown };
        let block = self.kernel.load(bytes);
        let (ends, equals) = (self.kernel.name_ends(block), self.kernel.places(block, b'='));
        let mut quotes = self.kernel.places(block, b'"');
        // The end of the previous name or value.
        let mut start = 1_u64;
        loop {
            let start_at = start.trailing_zeros() as usize;
            let Some([before, name @ ..]) = bytes.get(start_at..) else { return Quoted::Unknown };
            if *before == b'>' {
                self.at += start_at + 1;
                return Quoted::Nowhere;
            }
            let open = quotes & quotes.wrapping_neg();
            let between = open.wrapping_sub(start);
            if open == 0 || ends & between != start || equals & between != open >> 1 {
                return Quoted::Unknown;
            }
            let value_at = open.trailing_zeros() as usize + 1;
            let word = u32::from_le_bytes(name.first_chunk().copied().unwrap_or_default()) | SMALL;
            // The lengths of ` href="`, ` rel="` and ` ="`, whose `=` would begin a name.
            let found = match value_at - start_at {
                7 if word == HREF => HREF,
                6 if word == REL => REL,
                3 => return Quoted::Unknown,
                _ => 0,
            };
            if found == wanted {
                return self.value_from(self.at + value_at);
            }
            if found == REL {
                return Quoted::Unknown;
            }
            quotes &= quotes - 1;
            start = (quotes & quotes.wrapping_neg()) << 1;
            if start == 0 {
                return Quoted::Unknown;
            }
            quotes &= quotes - 1;
        }
    }

    /// The value that begins at `start`, if it ends.
    #[inline(always)]
    fn value_from(&mut self, start: usize) -> Quoted<Value<'a>> {
        let rest = self.bytes.get(start..).unwrap_or_default();
        if let Some((value, bytes)) = block::before(self.kernel, rest, b'"') {
            self.at = start + bytes + 1;
            return Quoted::Found(match value {
                Ok(text) => Value::Plain(text),
                Err(raw) => Value::Raw(raw),
            });
        }
        let mut behind = *self;
        behind.at = start;
        if behind.skip_to(Stop::At(b'"')).is_none() {
            return Quoted::Unknown;
        }
        let span = Span { start, end: behind.at };
        self.at = span.end + 1;
        Quoted::Found(self.value(span))
    }
}
