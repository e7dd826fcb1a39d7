//! Bytes to tags: the parts of the HTML tokenizer that decide where a tag starts and ends, and what its attributes
//! are.
//!
//! Decides: no tree and no tokens for text. The page is read in blocks of 64 bytes (`block`). Tags with unwanted
//! names (`Wanted`) are skipped without examining each, if it is certain where they end (`look`); the others are
//! read, in blocks that begin at the current position.
//!
//! A tag cut off by the end of the file, without `>`, is dropped, as in the standard: so a tag counts only once
//! `Tokenizer::attributes` has reached its end.
//!
//! Source: WHATWG HTML section 13.2.5; comments name states as it does. Works for every encoding whose ASCII bytes
//! stand for ASCII (all except UTF-16 and ISO-2022-JP, which are transcoded first).
//!
//! Invariants: the position only grows, and every search starts at the position and moves it to what it found or to
//! the end of the file, so time is linear in bytes whatever the input; nothing is allocated.
//! Leaves to others: which elements hold raw text (`pass` decides, by namespace), attribute values (`value`).

mod attributes;
mod quoted;
mod raw;
mod skim;
mod tag_search;

pub(super) use attributes::Span;
pub(super) use quoted::Quoted;
pub(super) use skim::Unless;
use tag_search::TagSearch;

use super::block::{BLOCK, Kernel, plain_text};
use super::value::Value;
use super::wanted::{self, Wanted};

/// The tokenizer of one document.
#[derive(Clone, Copy)]
pub(super) struct Tokenizer<'a, K> {
    bytes: &'a [u8],
    at: usize,
    /// Up to here every tag is read: from the position on, it is not certain where one ends.
    doubt_end: usize,
    kernel: K,
}

/// A start or end tag whose attributes have not been read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct TagName<'a> {
    /// As written, or in lower case: compare without case.
    pub name: &'a [u8],
    /// Whether it is an end tag.
    pub end: bool,
    /// The bit of its name, if already known.
    pub bit: u32,
}

/// Where a search stops.
#[derive(Clone, Copy)]
enum Stop {
    At(u8),
    Either(u8, u8),
    NameEnd,
    AttributeNameEnd,
    UnquotedValueEnd,
}

/// How the content of an element is read (section 13.2.5.2 to 13.2.5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RawText {
    /// RCDATA and RAWTEXT: up to the element's own end tag.
    Plain,
    /// Script data, with its escaped and double escaped states.
    Script,
    /// Up to the end of the file.
    Plaintext,
}

impl<'a, K: Kernel> Tokenizer<'a, K> {
    /// Starts at `at`, in the data state.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], at: usize, kernel: K) -> Self {
        Tokenizer { bytes, at, doubt_end: at, kernel }
    }

    /// The position: where the next tokenizer may continue.
    #[inline(always)]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Moves to the next wanted tag and behind its name; `attributes` must be called before the next `tag`. `foreign`
    /// says whether the current node is an SVG or MathML element: only there is `<![CDATA[` a section.
    #[inline(always)]
    pub fn tag(&mut self, wanted: &Wanted, foreign: bool) -> Option<TagName<'a>> {
        loop {
            if wanted.is_every() || self.at < self.doubt_end {
                self.skip_to(Stop::At(b'<'))?;
                // Tag open state.
                let letters = self.letters(1);
                let end = letters[0] == b'/';
                let initial = if end { letters[1] } else { letters[0] };
                if !initial.is_ascii_alphabetic() {
                    self.skip_no_tag(letters[0], foreign);
                } else if wanted.is_every() || wanted.names(letters) != 0 {
                    return Some(self.tag_name(end));
                } else {
                    self.tag_name(end);
                    self.attributes(|_, _| {})?;
                }
                continue;
            }
            let look = TagSearch { kernel: self.kernel, bytes: self.bytes, from: self.at };
            let found = look.find(wanted)?;
            if !look.is_data(&found) {
                self.doubt_end = found.at + 1;
                continue;
            }
            self.at = found.at;
            if found.names & wanted::A != 0 {
                self.at += 2;
                return Some(TagName { name: b"a", end: false, bit: wanted::A });
            }
            if found.names & wanted::MARKUP != 0 {
                self.skip_no_tag(b'!', foreign);
                continue;
            }
            let behind = self.bytes.get(found.at + 1..).unwrap_or_default();
            let Some(name) = wanted::name(found.names, behind) else { return Some(self.tag_name(false)) };
            self.at += 1 + name.len();
            return Some(TagName { name, end: false, bit: found.names });
        }
    }

    /// All bytes.
    #[inline(always)]
    pub fn page(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes of a value.
    #[inline(always)]
    pub fn bytes(&self, span: Span) -> &'a [u8] {
        self.bytes.get(span.start..span.end).unwrap_or_default()
    }

    /// A value, not yet decoded.
    #[inline(always)]
    pub fn value(&self, span: Span) -> Value<'a> {
        match plain_text(self.kernel, self.bytes, span.start, span.end) {
            Some(text) => Value::Plain(text),
            None => Value::Raw(self.bytes(span)),
        }
    }

    #[inline(always)]
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Three bytes from an offset on; zeros behind the end.
    #[inline(always)]
    fn letters(&self, offset: usize) -> [u8; 3] {
        [0, 1, 2].map(|place| self.bytes.get(self.at + offset + place).copied().unwrap_or_default())
    }

    #[inline(always)]
    fn whole_block(&self, at: usize) -> Option<&'a [u8; BLOCK]> {
        self.bytes.get(at..)?.first_chunk()
    }

    /// The rest at `at`, less than a block, padded with zeros.
    #[cold]
    #[inline(never)]
    fn last_block(&self, at: usize) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let rest = self.bytes.get(at..).unwrap_or_default();
        block.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        block
    }

    #[inline(always)]
    fn block(&self, at: usize) -> K::Block {
        match self.whole_block(at) {
            Some(bytes) => self.kernel.load(bytes),
            None => self.kernel.load(&self.last_block(at)),
        }
    }

    /// Moves to the first stop, or to the end.
    #[inline(always)]
    fn skip_to(&mut self, stop: Stop) -> Option<()> {
        let kernel = self.kernel;
        while self.at < self.bytes.len() {
            let block = self.block(self.at);
            // No closures: they would not be compiled for the kernel.
            let found = match stop {
                Stop::At(byte) => kernel.places(block, byte),
                Stop::Either(one, other) => kernel.places(block, one) | kernel.places(block, other),
                Stop::NameEnd => kernel.name_ends(block),
                Stop::UnquotedValueEnd => kernel.name_ends(block) & !kernel.places(block, b'/'),
                Stop::AttributeNameEnd => kernel.name_ends(block) | kernel.places(block, b'='),
            };
            if found != 0 {
                self.at += found.trailing_zeros() as usize;
                if self.at < self.bytes.len() {
                    return Some(());
                }
                break;
            }
            self.at += BLOCK;
        }
        self.at = self.bytes.len();
        None
    }

    /// Moves behind the next `>` that is at least `skip` bytes away, or to the end.
    #[inline(always)]
    fn skip_past_gt(&mut self, skip: usize) {
        self.at = (self.at + skip).min(self.bytes.len());
        if self.skip_to(Stop::At(b'>')).is_some() {
            self.at += 1;
        }
    }

    #[inline(always)]
    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.iter().position(|byte| !is_space(*byte)).unwrap_or(rest.len());
    }

    /// Tag name state: up to space, `/` or `>`.
    #[inline(always)]
    fn tag_name(&mut self, end: bool) -> TagName<'a> {
        self.at += 1 + usize::from(end);
        let start = self.at;
        // Without an end, this is the end of the file.
        let _ = self.skip_to(Stop::NameEnd);
        TagName { name: self.bytes.get(start..self.at).unwrap_or_default(), end, bit: 0 }
    }
}

/// Whether a tag's or an attribute's name ends before `byte`.
pub(super) fn ends_name(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'/' | b'>')
}

/// ASCII whitespace (WHATWG Infra): including CR, since the standard makes it LF before tokenizing.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}
