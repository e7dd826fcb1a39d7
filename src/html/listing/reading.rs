//! The open elements of a sitemap or a feed, and the address that one of them holds.
//!
//! Decides: an address counts by its element: `loc` in `url` or `sitemap`, `link` in `channel` or `item`, `guid`
//! there if it is an address, and `link` with `href` everywhere. In `url`, `loc` of `image` and `thumbnail_loc` of
//! `video` are images, and `lastmod`, or `publication_date` of `news`, gives the date of the entry. `xml:base`
//! applies inside its element. Feeds contain unescaped HTML: an end tag ends all open elements up to its own, and an
//! end tag without one is ignored. An address ends at the next tag of any kind.
//!
//! Source: the standards that `listing` names; XML Base.
//! Limits: elements deeper than `DEPTH_MAX` are ignored; inside more than `BASES_MAX` elements with bases, there are
//! no addresses; an address of `ADDRESS_BYTES_MAX`.

use std::borrow::Cow;

use quick_xml::events::BytesStart;
use xxhash_rust::xxh3::xxh3_64;

use super::super::Kind;
use super::super::budget::IDNA_BYTES_MAX;
use super::entries::Listed;
use super::has_scheme;
use ringcrawl_url::{Base, Url, idna_bytes};

/// Maximum depth of elements that are remembered.
const DEPTH_MAX: usize = 256;
/// Longest address: a longer one is not a URL here.
const ADDRESS_BYTES_MAX: usize = 65_535;
/// Maximum number of elements with a base of their own; each is derived from the one before it.
const BASES_MAX: usize = 10_000;

/// The role of elements that contain others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// `url` or `sitemap`: its `loc` counts, as this kind.
    Located(Kind),
    /// `image`, `video` or `news` in `url`.
    Extension,
    /// `channel`, `item`: its `link` counts, and its `guid` if that is a link.
    Linked,
    Other,
}

struct Open {
    /// Its name, hashed.
    name: u64,
    role: Role,
    /// From `xml:base`, which also applies inside; none where there were too many.
    base: Option<Option<Base>>,
}

/// The position in a document's elements.
pub(super) struct Reading {
    first_base: Base,
    open: Vec<Open>,
    /// Bases so far.
    bases: usize,
    /// What the hosts of further bases may cost.
    idna_bytes: usize,
    /// The text of an element that is wanted, so far.
    held: Option<(TextRole, String)>,
}

/// The role of an element's text.
#[derive(Clone, Copy)]
enum TextRole {
    Address(Kind),
    /// An address if it has a scheme.
    Guid,
    Date,
}

impl Reading {
    /// At the start of the document at `url`.
    pub fn new(url: &Url) -> Reading {
        Reading { first_base: Base::new(url), open: Vec::new(), bases: 0, idna_bytes: IDNA_BYTES_MAX, held: None }
    }

    /// Takes a start tag. Returns whether the caller must report its end tag: false for an element that is too deep.
    pub fn open(&mut self, start: &BytesStart, listed: &mut Listed) -> bool {
        self.finish(listed);
        if self.open.len() >= DEPTH_MAX {
            return false;
        }
        let name = start.local_name();
        let (name, inside) = (name.as_ref(), self.open.last().map(|open| open.role));
        let is_permanent =
            || attribute(start, "isPermaLink").is_none_or(|value| value.trim().eq_ignore_ascii_case("true"));
        let held = match (inside, name) {
            (Some(Role::Located(kind)), "loc") => Some(TextRole::Address(kind)),
            (Some(Role::Located(_)), "lastmod") | (Some(Role::Extension), "publication_date") => Some(TextRole::Date),
            (Some(Role::Extension), "loc" | "thumbnail_loc") => Some(TextRole::Address(Kind::Img)),
            (Some(Role::Linked), "link") if attribute(start, "href").is_none() => Some(TextRole::Address(Kind::Item)),
            (Some(Role::Linked), "guid") if is_permanent() => Some(TextRole::Guid),
            _ => None,
        };
        self.held = held.map(|held| (held, String::new()));
        let role = match (inside, name) {
            (_, "url") => Role::Located(Kind::Loc),
            (_, "sitemap") => Role::Located(Kind::Sitemap),
            (Some(Role::Located(_)), "image" | "video" | "news") => Role::Extension,
            (_, "channel" | "item") => Role::Linked,
            _ => Role::Other,
        };
        if matches!(role, Role::Located(_)) {
            listed.begin_entry();
        }
        let base = attribute(start, "xml:base").filter(|href| !href.trim().is_empty()).map(|href| {
            self.bases += 1;
            let costs = idna_bytes(href.trim());
            let has_room = self.bases <= BASES_MAX && costs <= self.idna_bytes;
            self.idna_bytes -= if has_room { costs } else { 0 };
            self.base().filter(|_| has_room).map(|base| base.with_href(href.trim()))
        });
        self.open.push(Open { name: xxh3_64(start.name().as_ref().as_bytes()), role, base });
        true
    }

    /// `link` with `href`: Atom's, and the sitemaps' for a page in other languages.
    pub fn attributes(&self, start: &BytesStart, listed: &mut Listed) {
        if start.local_name().as_ref() != "link" {
            return;
        }
        let Some(href) = attribute(start, "href") else { return };
        let rel = attribute(start, "rel").unwrap_or(Cow::Borrowed("alternate"));
        const FOLLOWED: [&str; 6] = ["alternate", "next", "prev", "previous", "next-archive", "prev-archive"];
        // A name is short for an address (RFC 4287 section 4.2.7.2).
        let rel = rel.trim();
        let rel = rel.strip_prefix("http://www.iana.org/assignments/relation/").unwrap_or(rel);
        if FOLLOWED.iter().any(|followed| rel.eq_ignore_ascii_case(followed)) {
            let kind = if listed.summary.sitemap.is_some() { Kind::Loc } else { Kind::Item };
            listed.take(self.base(), kind, &href);
        }
    }

    /// Takes text.
    pub fn text(&mut self, text: &str) {
        if let Some((_, held)) = &mut self.held
            && held.len() <= ADDRESS_BYTES_MAX
        {
            held.push_str(text);
        }
    }

    /// Takes an end tag: closes the innermost element of that name, and everything open inside; nothing if there is
    /// none.
    pub fn close(&mut self, name: &str, listed: &mut Listed) {
        self.finish(listed);
        let name = xxh3_64(name.as_bytes());
        if let Some(at) = self.open.iter().rposition(|open| open.name == name) {
            self.open.truncate(at);
        }
    }

    /// Passes on the text, if one is held: it ends at any tag.
    fn finish(&mut self, listed: &mut Listed) {
        match self.held.take() {
            Some((TextRole::Address(kind), address)) => listed.take(self.base(), kind, &address),
            Some((TextRole::Guid, address)) if has_scheme(&address) => listed.take(self.base(), Kind::Item, &address),
            Some((TextRole::Date, date)) => listed.dated(&date),
            _ => {}
        }
    }

    fn base(&self) -> Option<&Base> {
        let own = self.open.iter().rev().find_map(|open| open.base.as_ref());
        own.map_or(Some(&self.first_base), Option::as_ref)
    }
}

/// The value of the first attribute `name`.
fn attribute<'a>(start: &'a BytesStart, name: &str) -> Option<Cow<'a, str>> {
    let mut attributes = start.attributes();
    let found = attributes.with_checks(false).flatten().find(|attribute| attribute.key.as_ref() == name)?;
    let mut rest: &str = &found.value;
    if !rest.contains('&') {
        return Some(found.value);
    }
    let mut value = String::with_capacity(rest.len());
    while let Some((before, at)) = rest.find('&').and_then(|at| rest.split_at_checked(at)) {
        value.push_str(before);
        let letters = at.bytes().skip(1).take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'#').count();
        let (written, behind) = at.split_at_checked((letters + 2).min(at.len())).unwrap_or((at, ""));
        match referred(written) {
            Some(text) => {
                value.push_str(&text);
                rest = behind;
            }
            // Not a reference, but its second half may begin one.
            None => {
                value.push('&');
                rest = at.get(1..)?;
            }
        }
    }
    value.push_str(rest);
    Some(Cow::Owned(value))
}

/// The characters for `&NAME;` or `&#NUMBER;`: a number without a character yields U+FFFD, as in HTML.
pub(super) fn referred(written: &str) -> Option<Cow<'_, str>> {
    let inside = written.strip_prefix('&')?.strip_suffix(';')?;
    if let Ok(text) = quick_xml::escape::unescape(written) {
        return Some(text);
    }
    let number = inside.strip_prefix('#')?;
    let is_number = match number.strip_prefix('x') {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()),
    };
    is_number.then_some(Cow::Borrowed("\u{fffd}"))
}
