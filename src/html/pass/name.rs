//! Names of elements that have a meaning here.
//!
//! Decides: the meaning of a tag for the pass, by the bit of its name, so that no name is compared letter by letter
//! here. `image` is `img`; `svg` and `math` are one thing, as are elements whose content is read the same way.
//! Invariants: every name that may be wanted has a meaning here.

use super::super::foreign;
use super::super::tokenizer::{RawText, TagName};
use super::super::wanted::{self, NAMES};

/// Names that have a meaning here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    A,
    Area,
    Base,
    Frame,
    Iframe,
    Img,
    Input,
    Link,
    Meta,
    Source,
    Template,
    /// `svg` and `math`.
    Foreign,
    Raw(RawText),
    Other,
}

/// For each of `NAMES`.
static OF_NAMES: [Name; NAMES.len()] = of_names();

const fn of_names() -> [Name; NAMES.len()] {
    let mut names = [Name::Other; NAMES.len()];
    let mut at = 0;
    while at < NAMES.len() {
        names[at] = match NAMES[at] {
            b"a" => Name::A,
            b"area" => Name::Area,
            b"base" => Name::Base,
            b"frame" => Name::Frame,
            b"iframe" => Name::Iframe,
            // `image` is read as `img` (section 13.2.6.4.7).
            b"image" | b"img" => Name::Img,
            b"input" => Name::Input,
            b"link" => Name::Link,
            b"math" | b"svg" => Name::Foreign,
            b"meta" => Name::Meta,
            b"source" => Name::Source,
            b"template" => Name::Template,
            name => match foreign::raw_text(name) {
                Some(raw) => Name::Raw(raw),
                None => Name::Other,
            },
        };
        at += 1;
    }
    names
}

/// The bits of names whose content is not markup.
pub(super) const RAW_TEXT: u32 = {
    let (mut bits, mut at) = (0, 0);
    while at < NAMES.len() {
        if foreign::raw_text(NAMES[at]).is_some() {
            bits |= 1 << at;
        }
        at += 1;
    }
    bits
};

impl Name {
    /// Of a tag.
    #[inline(always)]
    pub fn of(tag: &TagName) -> Name {
        let bit = if tag.bit != 0 { tag.bit } else { wanted::bit(tag.name) };
        OF_NAMES.get(bit.trailing_zeros() as usize).copied().unwrap_or(Name::Other)
    }

    /// Whether any of its attributes is kept.
    #[inline(always)]
    pub fn keeps(self) -> bool {
        match self {
            Name::Raw(raw) => raw == RawText::Script,
            Name::Template | Name::Foreign | Name::Other => false,
            _ => true,
        }
    }
}
