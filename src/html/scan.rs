//! A page's references, and what it says of itself.
//!
//! Decides: elements come in batches from `pass`; base and encoding are known before the first. References are passed
//! to the caller in document order, and resolved only on request.
//!
//! Source: WHATWG HTML, the elements' own sections; links are those of section 4.6 (`a`, `area`, `link`), and `src`.
//!
//! Deliberate differences from the tree that a browser builds: tags that a tree builder drops (`<frame>` outside
//! `<frameset>`, everything behind `</frameset>`) are links here, because the page means them as links. `<template>`
//! content counts; a `base` or `meta` inside it does not. The content of `<select>` counts, as in the standard since
//! 2025; older parsers drop it.
//!
//! Invariants: linear time; memory for the longest decoded value and one batch.

use encoding_rs::Encoding;

use super::charset::{self, Detected};
use super::directives::Directives;
use super::kinds::{Kind, Kinds};
use super::listed::{self, is_space_char};
use super::mime;
use super::pass::{Element, Pass, Says};
use super::value::{Decoder, Value};
use ringcrawl_base::preferences::Preferences;
use ringcrawl_url::{Absolute, Base};

/// A reference as written in the page.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    /// Where in the page.
    pub kind: Kind,
    /// The lower-case token of `rel` for `Kind::Link`, else empty.
    pub rel: &'a str,
    /// The URL's text, decoded.
    pub text: &'a str,
    /// What `rel` says against following it.
    pub advice: Advice,
    /// What `text` is resolved against.
    pub base: &'a Base,
    /// The encoding that its query is sent in.
    pub encoding: &'static Encoding,
}

/// What a link's own `rel` says against following it (HTML section 4.6.7, and search engines' documentation).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Advice {
    /// It has `nofollow`.
    pub nofollow: bool,
    /// It has `ugc` or `sponsored`: users wrote it, or it was paid for.
    pub not_ours: bool,
    /// The format in which a link with `rel=alternate` offers the page itself.
    pub format: Format,
}

/// A format of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// A page, or unspecified.
    #[default]
    Page,
    /// A feed's.
    Feed,
    /// How others may embed the page (oEmbed section 4, "Discovery"): an item, and not a list of items.
    Oembed,
    /// Any other one.
    Other,
}

impl Format {
    /// The format of this `type`. Feeds are XML, or JSON Feed (section "Discovery" of its version 1.1).
    pub(super) fn of(media_type: &[u8]) -> Format {
        match mime::essence(media_type).to_ascii_lowercase().as_slice() {
            b"" | b"text/html" | b"application/xhtml+xml" => Format::Page,
            essence if essence.ends_with(b"+oembed") => Format::Oembed,
            b"application/feed+json" => Format::Feed,
            essence if mime::is_xml(essence) => Format::Feed,
            _ => Format::Other,
        }
    }
}

impl Advice {
    const NONE: Advice = Advice { nofollow: false, not_ours: false, format: Format::Page };

    fn of(rel: &str) -> Advice {
        let mut advice = Advice::NONE;
        // The result does not matter here: all tokens are visited.
        listed::any_token(rel, |token| {
            advice.nofollow |= token.eq_ignore_ascii_case("nofollow");
            advice.not_ours |= token.eq_ignore_ascii_case("ugc") || token.eq_ignore_ascii_case("sponsored");
            false
        });
        advice
    }

    /// Whether anything speaks against following it.
    pub fn is_given(self) -> bool {
        self.nofollow || self.not_ours
    }
}

/// What a page says of itself.
pub(super) struct Said {
    pub encoding: &'static Encoding,
    pub base: Option<Absolute>,
    pub robots: Directives,
    pub tdm: Preferences,
    pub tdm_policy: Option<Box<str>>,
}

/// Passes each reference of a wanted kind to `out`; `base` is the document's own URL, and `agent` the reader.
pub(super) fn references(
    body: &[u8],
    content_type: Option<&str>,
    base: Base,
    (kinds, agent): (&Kinds, &str),
    out: &mut impl FnMut(Reference),
) -> Said {
    let Detected { encoding, mark_bytes, is_tentative } = charset::detect(body, content_type);
    let body = body.get(mark_bytes..).unwrap_or_default();
    let is_xml = content_type.is_some_and(|value| mime::is_xml(mime::essence(value.as_bytes())));
    references_in(encoding, is_tentative, body, base, (kinds, agent, is_xml), out)
}

/// The same for a document that begins in `encoding`. A `<meta>` may name another one ("change the encoding", section
/// 13.2.3.4), while nothing has been passed on yet. Tags are in the same places in nearly all encodings; otherwise
/// everything is read again.
fn references_in(
    mut encoding: &'static Encoding,
    is_tentative: bool,
    body: &[u8],
    mut base: Base,
    (kinds, agent, is_xml): (&Kinds, &str, bool),
    out: &mut impl FnMut(Reference),
) -> Said {
    let mut said =
        Said { encoding, base: None, robots: Directives::default(), tdm: Preferences::default(), tdm_policy: None };
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
    let mut pass = Pass::new(bytes, kinds, agent, is_tentative);
    if is_xml {
        pass.is_of_xml();
    }
    let mut decoder = Decoder::new(byte_encoding);
    let mut elements = Vec::with_capacity(ELEMENTS_MOSTLY);
    let mut more = pass.read(&mut elements);
    // Both also apply to links before them.
    let (href, declared) = pass.ahead(more);
    if let Some(declared) = declared.filter(|declared| *declared != encoding) {
        if is_transcoded(encoding) || is_transcoded(declared) {
            return references_in(declared, false, body, base, (kinds, agent, is_xml), out);
        }
        (encoding, said.encoding, decoder) = (declared, declared, Decoder::new(declared));
    }
    let mut document = None;
    if let Some(href) = href {
        let by_href = base.with_href_encoded(decoder.text(href), encoding);
        document = Some(std::mem::replace(&mut base, by_href));
        said.base = base.as_absolute().cloned();
    }
    let document = document.as_ref().unwrap_or(&base);
    let mut page = Page { said, base: &base, document, kinds, decoder, rels: String::new() };
    loop {
        elements.iter().for_each(|element| page.report(element, out));
        elements.clear();
        if !more {
            return page.said;
        }
        more = pass.read(&mut elements);
    }
}

/// What the references of a page have in common.
struct Page<'a> {
    said: Said,
    base: &'a Base,
    /// What the base itself is resolved against (section 4.2.3).
    document: &'a Base,
    kinds: &'a Kinds,
    decoder: Decoder,
    rels: String,
}

impl Page<'_> {
    /// Passes the references of one element to `out`, or records what it says.
    #[inline]
    fn report(&mut self, element: &Element, out: &mut impl FnMut(Reference)) {
        let Page { said, base, document, kinds, decoder, rels } = self;
        let encoding = said.encoding;
        let mut give = |kind, text: &str, rel: &str, advice| {
            let base = if kind == Kind::Base { *document } else { *base };
            out(Reference { kind, rel, text, advice, base, encoding });
        };
        let Element { says, value, second } = *element;
        match (says, value, second) {
            (Says::Link(kind), Some(href), rel) => {
                let advice = rel.map_or(Advice::NONE, |rel| Advice::of(decoder.text(rel)));
                give(kind, decoder.text(href), "", advice);
            }
            (Says::Source(kind), src, srcset) => {
                if let Some(src) = src.filter(|_| kinds.has(kind)) {
                    give(kind, decoder.text(src), "", Advice::NONE);
                }
                if let Some(srcset) = srcset.filter(|_| kinds.has(Kind::Srcset)) {
                    listed::srcset_urls(decoder.text(srcset))
                        .for_each(|text| give(Kind::Srcset, text, "", Advice::NONE));
                }
            }
            (Says::Base, Some(href), _) if kinds.has(Kind::Base) => {
                give(Kind::Base, decoder.text(href), "", Advice::NONE);
            }
            (Says::Related(format), Some(href), Some(rel)) => {
                let tokens = match rel {
                    Value::Plain(rel) if is_token(rel) => rel,
                    _ => {
                        rels.clear();
                        push_tokens(decoder.text(rel), rels);
                        rels
                    }
                };
                let mut advice = Advice::of(tokens);
                if format != Format::Page && has_token(tokens, ALTERNATE) {
                    advice.format = format;
                }
                for (kind, rel) in tokens.split_ascii_whitespace().filter_map(|rel| Some((kinds.link(rel)?, rel))) {
                    let rel = if kind == Kind::Link { rel } else { "" };
                    give(kind, decoder.text(href), rel, advice);
                }
            }
            (Says::Refresh, Some(content), _) => {
                if let Some(text) = listed::refresh_url(decoder.text(content)) {
                    give(Kind::Refresh, text, "", Advice::NONE);
                }
            }
            (Says::Robots, Some(content), _) => said.robots.hear(decoder.text(content)),
            (Says::TdmReservation, Some(content), _) => {
                said.tdm.add(Preferences::of_tdm_reservation(decoder.text(content).as_bytes()));
            }
            (Says::TdmPolicy, Some(content), _) => {
                let text = decoder.text(content);
                if text.len() <= ADDRESS_BYTES_MAX {
                    said.tdm_policy.get_or_insert_with(|| text.into());
                }
            }
            _ => {}
        }
    }
}

/// The token of `rel` that marks a link to the same page.
pub(super) const ALTERNATE: &str = "alternate";

/// Elements with room reserved from the start.
const ELEMENTS_MOSTLY: usize = 256;

/// Longer addresses of conditions are dropped.
pub(super) const ADDRESS_BYTES_MAX: usize = 512;

/// Encodings whose ASCII bytes may be something else.
fn is_transcoded(encoding: &'static Encoding) -> bool {
    !encoding.is_ascii_compatible()
}

/// Whether this is one token in lower case, as most are.
fn is_token(rel: &str) -> bool {
    rel.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

pub(super) fn has_token(tokens: &str, wanted: &str) -> bool {
    listed::any_token(tokens, |token| token.eq_ignore_ascii_case(wanted))
}

/// Tokens of one `rel` that count; more are dropped.
const REL_TOKENS_MAX: usize = 16;

/// Appends the distinct tokens in lower case, separated by spaces.
pub(super) fn push_tokens(rel: &str, to: &mut String) {
    for token in rel.split(is_space_char).filter(|token| !token.is_empty()).take(REL_TOKENS_MAX) {
        if !has_token(to, token) {
            to.extend(token.chars().map(|one| one.to_ascii_lowercase()));
            to.push(' ');
        }
    }
}
