//! One pass over a page: which tags hold links, and what else they say.
//!
//! Decides: tags are looked at by name first, so the attributes of most are skipped unread; of the others only a dozen
//! attributes are kept, the first of each name. References go to the caller in document order, unresolved until asked.
//!
//! Source: WHATWG HTML, the elements' own sections; links are those of section 4.6 (`a`, `area`, `link`), and `src`.
//!
//! Where this is not the tree that a browser builds, on purpose: tags that a tree builder drops (`<frame>` outside
//! `<frameset>`, everything behind `</frameset>`) are links here, because a page that says them means them.
//! `<template>` content counts; a `base` or `meta` inside it does not. What stands in `<select>` counts, as in the
//! standard since 2025; older parsers drop it.
//!
//! Invariants: linear time; memory is that of the longest decoded value.

use encoding_rs::Encoding;

use super::charset;
use super::foreign::{self, Clues, Foreign, Space};
use super::kinds::{Kind, Kinds};
use super::listed::{self, is_space_char};
use super::tokenizer::{TagName, Tokenizer, may_have_base};
use super::value::Decoder;
use crate::url::{Absolute, Base};

/// A reference as the page has it.
pub(super) struct Reference<'a> {
    pub kind: Kind,
    /// The lower-case token of `rel` for `Kind::Link`, else empty.
    pub rel: &'a str,
    /// The URL's text, decoded.
    pub text: &'a str,
    /// `rel` has `nofollow`.
    pub nofollow: bool,
    /// What `text` is resolved against, and the encoding that its query is sent in.
    pub base: &'a Base,
    pub encoding: &'static Encoding,
}

/// What a page says of itself.
pub(super) struct Said {
    pub encoding: &'static Encoding,
    pub base: Option<Absolute>,
    pub noindex: bool,
    pub nofollow: bool,
}

/// Gives each reference of a wanted kind to `out`; `base` is the document's own URL.
pub(super) fn references(
    body: &[u8],
    content_type: Option<&str>,
    mut base: Base,
    kinds: &Kinds,
    out: &mut dyn FnMut(Reference),
) -> Said {
    let (encoding, mark_bytes) = charset::detect(body, content_type);
    let body = body.get(mark_bytes..).unwrap_or_default();
    let mut said = Said { encoding, base: None, noindex: false, nofollow: false };
    if encoding == encoding_rs::REPLACEMENT {
        return said;
    }
    let transcoded;
    let (bytes, byte_encoding) = if is_transcoded(encoding) {
        transcoded = encoding.decode_without_bom_handling(body).0;
        (transcoded.as_bytes(), encoding_rs::UTF_8)
    } else {
        (body, encoding)
    };
    // The base counts for links before it too, so it is looked for first, in the pages that seem to have one.
    let mut has_base = false;
    if may_have_base(bytes) {
        let mut pass = Pass::new(bytes, byte_encoding);
        while let Some(element) = pass.element() {
            if let (Element::Base, Some(href)) = (element, pass.kept.get(Slot::Href)) {
                base = base.with_href_encoded(pass.decoder.text(href), encoding);
                said.base = base.as_absolute().cloned();
                has_base = true;
                break;
            }
        }
    }
    let mut pass = Pass::new(bytes, byte_encoding);
    let mut rels = String::new();
    while let Some(element) = pass.element() {
        let mut report = |decoder: &mut Decoder, kind, raw: Option<&[u8]>, nofollow| {
            let Some(raw) = raw.filter(|_| kinds.has(kind)) else { return };
            out(Reference { kind, rel: "", text: decoder.text(raw), nofollow, base: &base, encoding });
        };
        let Pass { kept, decoder, .. } = &mut pass;
        match element {
            Element::A | Element::Area | Element::SvgA => {
                let href = kept.get(Slot::Href).or(kept.get(Slot::XlinkHref).filter(|_| element == Element::SvgA));
                let nofollow = kept.get(Slot::Rel).is_some_and(|rel| has_token(decoder.text(rel), "nofollow"));
                let kind = match element {
                    Element::A => Kind::A,
                    Element::Area => Kind::Area,
                    _ => Kind::SvgA,
                };
                report(decoder, kind, href, nofollow);
            }
            Element::Frame => report(decoder, Kind::Frame, kept.get(Slot::Src), false),
            Element::Iframe => report(decoder, Kind::Iframe, kept.get(Slot::Src), false),
            Element::Base if has_base => {
                if let Some(href) = kept.get(Slot::Href) {
                    has_base = false;
                    report(decoder, Kind::Base, Some(href), false);
                }
            }
            Element::Base => {}
            Element::Img | Element::Source => {
                if element == Element::Img {
                    report(decoder, Kind::Img, kept.get(Slot::Src), false);
                }
                if let Some(srcset) = kept.get(Slot::Srcset).filter(|_| kinds.has(Kind::Srcset)) {
                    for text in listed::srcset_urls(decoder.text(srcset)) {
                        out(Reference { kind: Kind::Srcset, rel: "", text, nofollow: false, base: &base, encoding });
                    }
                }
            }
            Element::Link => {
                let (Some(rel), Some(href)) = (kept.get(Slot::Rel), kept.get(Slot::Href)) else { continue };
                if !kinds.has(Kind::Link) && !kinds.has(Kind::Canonical) {
                    continue;
                }
                rels.clear();
                push_tokens(decoder.text(rel), &mut rels);
                let nofollow = has_token(&rels, "nofollow");
                for (kind, rel) in rels.split_ascii_whitespace().filter_map(|rel| Some((kinds.link(rel)?, rel))) {
                    let rel = if kind == Kind::Link { rel } else { "" };
                    out(Reference { kind, rel, text: decoder.text(href), nofollow, base: &base, encoding });
                }
            }
            Element::Meta => {
                let Some(content) = kept.get(Slot::Content) else { continue };
                let pragma = kept.get(Slot::HttpEquiv).unwrap_or_default();
                let name = kept.get(Slot::Name).unwrap_or_default();
                if pragma.eq_ignore_ascii_case(b"refresh") && kinds.has(Kind::Refresh) {
                    if let Some(text) = listed::refresh_url(decoder.text(content)) {
                        out(Reference { kind: Kind::Refresh, rel: "", text, nofollow: false, base: &base, encoding });
                    }
                } else if name.eq_ignore_ascii_case(b"robots") {
                    said.hear_robots(decoder.text(content));
                }
            }
        }
    }
    said
}

impl Said {
    /// `<meta name=robots>`: the de facto standard's tokens, separated by commas.
    fn hear_robots(&mut self, content: &str) {
        for token in content.split([',', ' ', '\t', '\n']) {
            let token = token.trim();
            let none = token.eq_ignore_ascii_case("none");
            self.noindex |= none || token.eq_ignore_ascii_case("noindex");
            self.nofollow |= none || token.eq_ignore_ascii_case("nofollow");
        }
    }
}

/// Encodings whose ASCII bytes may be something else.
fn is_transcoded(encoding: &'static Encoding) -> bool {
    !encoding.is_ascii_compatible()
}

/// Elements that say something, outside templates where that makes a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Element {
    A,
    Area,
    SvgA,
    Base,
    Frame,
    Iframe,
    Img,
    Link,
    Meta,
    Source,
}

/// Attributes that are kept.
#[derive(Clone, Copy)]
enum Slot {
    Href,
    XlinkHref,
    Src,
    Srcset,
    Rel,
    Content,
    HttpEquiv,
    Name,
}

/// The first value of each kept attribute of one tag.
#[derive(Clone, Copy, Default)]
struct Kept<'a> {
    slots: [Option<&'a [u8]>; 8],
}

impl<'a> Kept<'a> {
    fn get(&self, slot: Slot) -> Option<&'a [u8]> {
        self.slots.get(slot as usize).copied().flatten()
    }

    fn keep(&mut self, name: &[u8], value: &'a [u8]) {
        // The length rules out most names.
        let (slot, written): (Slot, &[u8]) = match (name.len(), name.first()) {
            (4, Some(b'h' | b'H')) => (Slot::Href, b"href"),
            (4, Some(b'n' | b'N')) => (Slot::Name, b"name"),
            (3, Some(b's' | b'S')) => (Slot::Src, b"src"),
            (3, Some(b'r' | b'R')) => (Slot::Rel, b"rel"),
            (6, Some(b's' | b'S')) => (Slot::Srcset, b"srcset"),
            (7, Some(b'c' | b'C')) => (Slot::Content, b"content"),
            (10, Some(b'h' | b'H')) => (Slot::HttpEquiv, b"http-equiv"),
            (10, Some(b'x' | b'X')) => (Slot::XlinkHref, b"xlink:href"),
            _ => return,
        };
        if name.eq_ignore_ascii_case(written)
            && let Some(kept) = self.slots.get_mut(slot as usize)
        {
            kept.get_or_insert(value);
        }
    }
}

/// The tokenizer with what it must be told: namespaces, raw text, templates.
struct Pass<'a> {
    tokenizer: Tokenizer<'a>,
    foreign: Foreign,
    decoder: Decoder,
    kept: Kept<'a>,
    templates_open: usize,
}

impl<'a> Pass<'a> {
    fn new(bytes: &'a [u8], encoding: &'static Encoding) -> Pass<'a> {
        Pass {
            tokenizer: Tokenizer::new(bytes),
            foreign: Foreign::default(),
            decoder: Decoder::new(encoding),
            kept: Kept::default(),
            templates_open: 0,
        }
    }

    /// The next element that says something; its attributes are in `kept`.
    fn element(&mut self) -> Option<Element> {
        loop {
            let TagName { name, end } = self.tokenizer.tag(self.foreign.is_current())?;
            if end {
                self.tokenizer.attributes(|_, _| {})?;
                self.end(name);
                continue;
            }
            let element = html_element(name);
            let space = if self.foreign.is_empty() && !starts_foreign(name) {
                match element {
                    Some(_) => self.keep_attributes()?,
                    None => self.tokenizer.attributes(|_, _| {})?,
                };
                Space::Html
            } else {
                self.foreign_start(name)?
            };
            match space {
                Space::Html => {
                    if let Some(raw) = foreign::raw_text(name) {
                        self.tokenizer.skip_raw_text(name, raw);
                    } else if name.eq_ignore_ascii_case(b"template") {
                        self.templates_open += 1;
                    }
                    match element {
                        Some(Element::Base | Element::Meta) if self.templates_open > 0 => {}
                        Some(element) => return Some(element),
                        None => {}
                    }
                }
                Space::Svg if name.eq_ignore_ascii_case(b"a") => return Some(Element::SvgA),
                Space::Svg | Space::MathMl => {}
            }
        }
    }

    fn keep_attributes(&mut self) -> Option<bool> {
        let kept = &mut self.kept;
        *kept = Kept::default();
        self.tokenizer.attributes(|name, value| kept.keep(name, value))
    }

    fn foreign_start(&mut self, name: &[u8]) -> Option<Space> {
        let mut clues = Clues::default();
        let kept = &mut self.kept;
        *kept = Kept::default();
        let mut encoding_seen = false;
        clues.self_closing = self.tokenizer.attributes(|name, value| {
            kept.keep(name, value);
            let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
            clues.font_style |= is(b"color") || is(b"face") || is(b"size");
            if is(b"encoding") && !std::mem::replace(&mut encoding_seen, true) {
                let is = |other: &[u8]| value.eq_ignore_ascii_case(other);
                clues.html_encoding = is(b"text/html") || is(b"application/xhtml+xml");
            }
        })?;
        Some(self.foreign.start(name, clues))
    }

    fn end(&mut self, name: &[u8]) {
        if !self.foreign.is_empty() {
            self.foreign.end(name);
        }
        if self.templates_open > 0 && name.eq_ignore_ascii_case(b"template") {
            self.templates_open -= 1;
        }
    }
}

fn html_element(name: &[u8]) -> Option<Element> {
    let is = |written: &[u8]| name.eq_ignore_ascii_case(written);
    match (name.len(), name.first()?.to_ascii_lowercase()) {
        (1, b'a') => Some(Element::A),
        (4, b'a') if is(b"area") => Some(Element::Area),
        (4, b'b') if is(b"base") => Some(Element::Base),
        (5, b'f') if is(b"frame") => Some(Element::Frame),
        (6, b'i') if is(b"iframe") => Some(Element::Iframe),
        // `image` is read as `img` (section 13.2.6.4.7).
        (3, b'i') if is(b"img") => Some(Element::Img),
        (5, b'i') if is(b"image") => Some(Element::Img),
        (4, b'l') if is(b"link") => Some(Element::Link),
        (4, b'm') if is(b"meta") => Some(Element::Meta),
        (6, b's') if is(b"source") => Some(Element::Source),
        _ => None,
    }
}

fn starts_foreign(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"svg") || name.eq_ignore_ascii_case(b"math")
}

fn has_token(tokens: &str, wanted: &str) -> bool {
    tokens.split(is_space_char).any(|token| token.eq_ignore_ascii_case(wanted))
}

/// Tokens of one `rel` that count; what is more is dropped.
const REL_TOKENS_MAX: usize = 16;

/// Appends the distinct tokens in lower case, separated by spaces.
fn push_tokens(rel: &str, to: &mut String) {
    for token in rel.split(is_space_char).filter(|token| !token.is_empty()).take(REL_TOKENS_MAX) {
        if !has_token(to, token) {
            to.extend(token.chars().map(|one| one.to_ascii_lowercase()));
            to.push(' ');
        }
    }
}
