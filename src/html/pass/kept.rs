//! Attributes of a tag that are kept: the first of each name, as places in the page.
//!
//! Decides: short names are compared by length and then as a number. A duplicate is dropped (WHATWG HTML section
//! 13.2.5.33). The pass decides whether an element needs what is kept.

use super::super::tokenizer::Span;

/// Attributes that are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Href,
    XlinkHref,
    Src,
    Srcset,
    Rel,
    Content,
    HttpEquiv,
    Name,
    Type,
    Charset,
    As,
    DataSrc,
    DataSrcset,
    ImageSrcset,
    /// None of them.
    None,
}

/// The place of the first value of each kept attribute of one tag.
#[derive(Clone, Copy, Default)]
pub(super) struct Kept {
    slots: [Span; 14],
}

impl Kept {
    #[inline(always)]
    pub fn get(&self, slot: Slot) -> Option<Span> {
        self.slots.get(slot as usize).copied().filter(|span| span.start > 0)
    }

    #[inline(always)]
    pub fn keep(&mut self, name: &[u8], span: Span) {
        let Some(slot) = Slot::of(name) else { return };
        if let Some(kept) = self.slots.get_mut(slot as usize)
            && kept.start == 0
        {
            *kept = span;
        }
    }
}

impl Slot {
    /// Only `href` and `rel`.
    #[inline(always)]
    pub fn of_link(name: &[u8]) -> Option<Slot> {
        match name.len() {
            4 if word(name) == HREF => Some(Slot::Href),
            3 if word(name) == REL => Some(Slot::Rel),
            _ => None,
        }
    }

    /// The slot for an attribute's name, if it is kept.
    #[inline(always)]
    pub fn of(name: &[u8]) -> Option<Slot> {
        let is = |written: &[u8]| name.eq_ignore_ascii_case(written);
        match name.len() {
            4 if word(name) == HREF => Some(Slot::Href),
            4 if word(name) == NAME => Some(Slot::Name),
            4 if word(name) == TYPE => Some(Slot::Type),
            3 if word(name) == SRC => Some(Slot::Src),
            3 if word(name) == REL => Some(Slot::Rel),
            2 if is(b"as") => Some(Slot::As),
            8 if is(b"data-src") => Some(Slot::DataSrc),
            11 if is(b"data-srcset") => Some(Slot::DataSrcset),
            11 if is(b"imagesrcset") => Some(Slot::ImageSrcset),
            6 if is(b"srcset") => Some(Slot::Srcset),
            7 if is(b"content") => Some(Slot::Content),
            7 if is(b"charset") => Some(Slot::Charset),
            10 if is(b"http-equiv") => Some(Slot::HttpEquiv),
            10 if is(b"xlink:href") => Some(Slot::XlinkHref),
            _ => None,
        }
    }
}

/// A name of three or four bytes, in lower case.
#[inline(always)]
fn word(name: &[u8]) -> u32 {
    match *name {
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]) | 0x2020_2020,
        [a, b, c] => u32::from_le_bytes([a, b, c, 0]) | 0x20_2020,
        _ => 0,
    }
}

const HREF: u32 = u32::from_le_bytes(*b"href");
const NAME: u32 = u32::from_le_bytes(*b"name");
const TYPE: u32 = u32::from_le_bytes(*b"type");
const SRC: u32 = u32::from_le_bytes(*b"src\0");
const REL: u32 = u32::from_le_bytes(*b"rel\0");
