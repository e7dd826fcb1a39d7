//! How long an HTML element is open, by its name: what ends it, and what an end tag looks past.
//!
//! Source: WHATWG HTML sections 13.2.4.2 (special elements and scopes), 13.2.4.3 (formatting elements) and 13.2.6.4
//! (start tags that end others).
//! Limits: names of more than `NAME_BYTES_MAX` are ignored.

use xxhash_rust::xxh3::xxh3_64;

use super::super::foreign::{is_void, raw_text};

/// Longest name that is recognized.
pub(super) const NAME_BYTES_MAX: usize = 64;

/// What matters of a name.
#[derive(Clone, Copy)]
pub(super) struct Named {
    /// Of the name in lower case; all headings share one, as each ends the other.
    pub hash: u64,
    pub class: Class,
    /// Whether the next element of this kind also ends it.
    pub ends_before_its_like: bool,
}

/// What an end tag looks past, and what blocks it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Looks past nothing special.
    Ordinary,
    /// `svg` and `math`: as `Ordinary`.
    Foreign,
    /// May contain HTML where it is foreign, and is a border there; as `Ordinary` elsewhere.
    Point,
    /// As `Ordinary`, but blocks others.
    Blunt,
    /// As `Special`, but blocks no end tag.
    Formatting,
    /// Looks past everything except borders.
    Special,
    /// As `Special`, but not past a button.
    Paragraph,
    Button,
    /// As `Special`, and blocks items.
    List,
    /// As `Special`, except for lists.
    Item,
    /// Of a table: looks past everything except a table. `Cell` and `Table` are borders, too.
    Rows,
    Row,
    Cell,
    Table,
    Border,
    /// Its content is not markup.
    Raw,
    /// Its end tag ends nothing that is open inside it, or it is never open.
    Never,
}

impl Named {
    /// A name, if a tag can have it; `None` if it is too long.
    pub fn of(name: &[u8]) -> Option<Named> {
        if name.len() > NAME_BYTES_MAX || !name.first()?.is_ascii_alphabetic() {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        let class = match lower.as_slice() {
            // These two switch modes; the others are moved elsewhere, or end before a foreign element begins.
            b"body" | b"html" | b"head" | b"form" | b"frameset" | b"col" | b"colgroup" => Class::Never,
            name if is_void(name) => Class::Never,
            name if raw_text(name).is_some() => Class::Raw,
            b"applet" | b"marquee" | b"object" | b"template" => Class::Border,
            b"caption" | b"td" | b"th" => Class::Cell,
            b"tbody" | b"tfoot" | b"thead" => Class::Rows,
            b"tr" => Class::Row,
            b"table" => Class::Table,
            b"svg" | b"math" => Class::Foreign,
            b"annotation-xml" | b"desc" | b"foreignobject" | b"mi" | b"mn" | b"mo" | b"ms" | b"mtext" => Class::Point,
            b"noscript" => Class::Blunt,
            b"p" => Class::Paragraph,
            b"button" => Class::Button,
            b"li" => Class::Item,
            b"ol" | b"ul" => Class::List,
            b"a" | b"b" | b"big" | b"code" | b"em" | b"font" | b"i" | b"nobr" | b"s" | b"small" | b"strike"
            | b"strong" | b"tt" | b"u" => Class::Formatting,
            b"address" | b"article" | b"aside" | b"blockquote" | b"center" | b"dd" | b"details" | b"dialog"
            | b"dir" | b"div" | b"dl" | b"dt" | b"fieldset" | b"figcaption" | b"figure" | b"footer" | b"h1" | b"h2"
            | b"h3" | b"h4" | b"h5" | b"h6" | b"header" | b"hgroup" | b"listing" | b"main" | b"menu" | b"nav"
            | b"pre" | b"search" | b"section" | b"select" | b"summary" => Class::Special,
            _ => Class::Ordinary,
        };
        let hash = match lower.as_slice() {
            [b'h', b'1'..=b'6'] => hash(b"h1"),
            name => hash(name),
        };
        let ends_before_its_like = matches!(class, Class::Item | Class::Button)
            || [&b"a"[..], b"dd", b"dt", b"nobr", b"option"].contains(&lower.as_slice());
        Some(Named { hash, class, ends_before_its_like })
    }

    /// Whether only the end tags of table parts look past it.
    pub fn is_border(&self) -> bool {
        matches!(self.class, Class::Border | Class::Cell | Class::Table | Class::Point)
    }

    /// Whether it blocks no end tag and is not reopened.
    pub fn is_plain(&self) -> bool {
        matches!(self.class, Class::Ordinary | Class::Foreign)
    }

    /// Whether its end also ends all formatting inside.
    pub fn clears_formatting(&self) -> bool {
        matches!(self.class, Class::Border | Class::Cell)
    }
}

/// Of a name in lower case.
pub(super) fn hash(name: &[u8]) -> u64 {
    xxh3_64(name)
}
