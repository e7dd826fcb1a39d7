//! Names of elements that are acted upon.

use super::super::foreign;
use super::super::tokenizer::RawText;

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

impl Name {
    /// Of a tag's name as written.
    #[inline(always)]
    pub fn of(name: &[u8]) -> Name {
        let is = |written: &[u8]| name.eq_ignore_ascii_case(written);
        match (name.len(), name.first().map_or(0, u8::to_ascii_lowercase)) {
            (1, b'a') => Name::A,
            (3, b'i') if is(b"img") => Name::Img,
            (4, b'l') if is(b"link") => Name::Link,
            (4, b'm') if is(b"meta") => Name::Meta,
            (6, b's') if is(b"script") => Name::Raw(RawText::Script),
            (6, b's') if is(b"source") => Name::Source,
            (3, b's') if is(b"svg") => Name::Foreign,
            (4, b'm') if is(b"math") => Name::Foreign,
            (4, b'a') if is(b"area") => Name::Area,
            (4, b'b') if is(b"base") => Name::Base,
            (5, b'f') if is(b"frame") => Name::Frame,
            (6, b'i') if is(b"iframe") => Name::Iframe,
            // `image` is read as `img` (section 13.2.6.4.7).
            (5, b'i') if is(b"image") => Name::Img,
            (8, b't') if is(b"template") => Name::Template,
            _ => foreign::raw_text(name).map_or(Name::Other, Name::Raw),
        }
    }

    /// Whether any of its attributes is kept.
    #[inline(always)]
    pub fn keeps(self) -> bool {
        !matches!(self, Name::Template | Name::Foreign | Name::Raw(_) | Name::Other)
    }
}
