//! Names of elements that are acted upon.

use super::super::tokenizer::{RawText, TagName};
use super::super::wanted::{self, NAMES};

/// Names that are acted upon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    A,
    Area,
    Base,
    Frame,
    Iframe,
    Img,
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
            b"link" => Name::Link,
            b"math" | b"svg" => Name::Foreign,
            b"meta" => Name::Meta,
            b"source" => Name::Source,
            b"template" => Name::Template,
            b"script" => Name::Raw(RawText::Script),
            b"plaintext" => Name::Raw(RawText::Plaintext),
            // The others of `foreign::RAW_TEXT`.
            _ => Name::Raw(RawText::Plain),
        };
        at += 1;
    }
    names
}

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
        !matches!(self, Name::Template | Name::Foreign | Name::Raw(_) | Name::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::foreign;

    #[test]
    fn raw_text_has_names() {
        for name in NAMES {
            let tag = TagName { name, end: false, bit: 0 };
            let raw = match Name::of(&tag) {
                Name::Raw(raw) => Some(raw),
                // Reads its attributes first.
                Name::Iframe => Some(RawText::Plain),
                _ => None,
            };
            assert_eq!(raw, foreign::raw_text(name), "{}", String::from_utf8_lossy(name));
        }
    }
}
