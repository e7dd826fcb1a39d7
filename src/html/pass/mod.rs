//! One pass over a page: finds tags with links or statements about the page, and their raw attribute values.
//!
//! Decides: tags are checked by name first, so the attributes of most are skipped unread; of the others only some
//! attributes are kept (`kept`), the first of each name, and a tag is left as soon as nothing more can matter
//! (`attributes`). Elements are collected, not passed on one by one: the first `<base>` also applies to the links
//! before it, and so does the first `<meta>` that names an encoding, if the encoding is not certain. Both are mostly
//! in the first batch. Only if that is full before, the caller must look for them further on ([`Pass::ahead`]).
//!
//! Invariants: linear time; a batch has at most `ELEMENTS_MAX` elements.

mod around;
mod attributes;
mod kept;
mod name;
mod scope;

use super::block::{self, Kernel, Task};
use super::charset;
use super::foreign::{Clues, Foreign, Space};
use super::kinds::{Kind, Kinds};
use super::listed;
use super::scan::Format;
use super::tokenizer::{RawText, Span, TagName, Tokenizer, Unless};
use super::value::{Decoder, Value};
use super::wanted::{self, Wanted};
use around::Around;
use encoding_rs::Encoding;
use kept::{Kept, Slot};
use name::Name;

/// An element that contains information.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Element<'a> {
    pub says: Says,
    /// `href`, `src` or `content`.
    pub value: Option<Value<'a>>,
    /// `rel` or `srcset`.
    pub second: Option<Value<'a>>,
}

/// The information in an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Says {
    /// A link of a kind that has a `rel`, if `value` is there.
    Link(Kind),
    /// A resource, if `value` is there, and others in `second`.
    Source(Kind),
    /// The first `<base>` with a link.
    Base,
    /// A `<link>`, if both are present, and the format of its `type`.
    Related(Format),
    /// `<meta http-equiv=refresh>`.
    Refresh,
    /// `<meta name=robots>`, or the name of our agent.
    Robots,
    /// `<meta name=tdm-reservation>`.
    TdmReservation,
    /// `<meta name=tdm-policy>`.
    TdmPolicy,
}

/// Elements in one batch: a hundred kilobytes of them. If a page has more, which is rare, the rest is read twice
/// until a base is found.
const ELEMENTS_MAX: usize = 2_000;

/// Names that are wanted for all kinds: they change how bytes are read, or what the page's links mean.
const ALWAYS: u32 = wanted::bits(&[b"base", b"math", b"meta", b"svg", b"template"]) | name::RAW_TEXT;

/// A page in progress: the position of the pass, and its state from tag to tag.
#[derive(Clone)]
pub(super) struct Pass<'a> {
    bytes: &'a [u8],
    at: usize,
    wanted: Wanted,
    kinds: &'a Kinds,
    /// A `<meta>` of this name counts like one for robots.
    agent: &'a str,
    foreign: Foreign,
    around: Around,
    templates_open: usize,
    /// The value of the first base.
    base: Option<Value<'a>>,
    /// A `<meta>` may still name another encoding.
    is_tentative: bool,
    /// Self-closing elements are empty (XML section 3.1).
    is_xml: bool,
    /// The encoding that the first such `<meta>` named.
    declared: Option<&'static Encoding>,
}

impl<'a> Pass<'a> {
    /// Begins at the start of `bytes`, for links of these kinds and directives to this agent; `is_tentative`: a
    /// `<meta>` may name another encoding.
    pub fn new(bytes: &'a [u8], kinds: &'a Kinds, agent: &'a str, is_tentative: bool) -> Pass<'a> {
        let of = |kind, names: u32| if kinds.has(kind) { names } else { 0 };
        let wanted = ALWAYS
            | of(Kind::A, wanted::A)
            | of(Kind::Area, const { wanted::bits(&[b"area"]) })
            | of(Kind::Frame, const { wanted::bits(&[b"frame"]) })
            | of(Kind::Img, const { wanted::bits(&[b"image", b"img", b"input", b"link"]) })
            | of(Kind::Srcset, const { wanted::bits(&[b"image", b"img", b"link", b"source"]) })
            | of(Kind::Link, const { wanted::bits(&[b"link"]) })
            | of(Kind::Canonical, const { wanted::bits(&[b"link"]) });
        let wanted = Wanted::new(wanted);
        Pass {
            bytes,
            at: 0,
            wanted,
            kinds,
            agent,
            foreign: Foreign::default(),
            around: Around::default(),
            templates_open: 0,
            base: None,
            is_tentative,
            is_xml: false,
            declared: None,
        }
    }

    /// Appends elements to `batch` until it is full. Returns whether there may be more.
    pub fn read(&mut self, batch: &mut Vec<Element<'a>>) -> bool {
        block::with_best(Batch { pass: self, elements: batch })
    }

    /// The value of the page's first base, and the encoding that a `<meta>` named; `more` says whether part of the
    /// page is unread.
    pub fn ahead(&self, mut more: bool) -> (Option<Value<'a>>, Option<&'static Encoding>) {
        if !more || self.knows_all() {
            return (self.base, self.declared);
        }
        let (mut ahead, mut batch) = (self.clone(), Vec::new());
        while more && !ahead.knows_all() {
            batch.clear();
            more = ahead.read(&mut batch);
        }
        (ahead.base, ahead.declared)
    }

    fn knows_all(&self) -> bool {
        self.base.is_some() && !self.is_tentative
    }
}

struct Batch<'p, 'a> {
    pass: &'p mut Pass<'a>,
    elements: &'p mut Vec<Element<'a>>,
}

impl Task for Batch<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> bool {
        self.pass.read_under(kernel, self.elements)
    }
}

impl<'a> Pass<'a> {
    /// Notes that the page is declared as XHTML.
    pub fn is_of_xml(&mut self) {
        self.is_xml = true;
    }

    /// As `read`, under this kernel.
    #[inline(always)]
    pub fn read_under<K: Kernel>(&mut self, kernel: K, batch: &mut Vec<Element<'a>>) -> bool {
        let mut tokenizer = Tokenizer::new(self.bytes, self.at, kernel);
        while batch.len() < ELEMENTS_MAX {
            if self.tag(&mut tokenizer, batch).is_none() {
                return false;
            }
        }
        self.at = tokenizer.at();
        true
    }

    /// Reads the next wanted tag, and appends its information, if any.
    #[inline(always)]
    fn tag<K: Kernel>(&mut self, tokenizer: &mut Tokenizer<'a, K>, elements: &mut Vec<Element<'a>>) -> Option<()> {
        let every = self.wanted.is_every();
        let tag = tokenizer.tag(&self.wanted, every && self.foreign.is_current())?;
        if !every && tag.name.len() == 1 {
            return self.a(tokenizer, elements);
        }
        let name = Name::of(&tag);
        let element = if every || name == Name::Foreign {
            self.tag_in_foreign(tokenizer, tag, name, elements)?
        } else {
            let kept = self.attributes(tokenizer, name)?;
            self.html(tokenizer, tag, name, &kept, elements)
        };
        elements.extend(element);
        Some(())
    }

    /// An HTML element.
    #[inline(always)]
    fn html<K: Kernel>(
        &mut self,
        tokenizer: &mut Tokenizer<'a, K>,
        tag: TagName<'a>,
        name: Name,
        kept: &Kept,
        elements: &mut Vec<Element<'a>>,
    ) -> Option<Element<'a>> {
        if self.has_images() {
            self.other_images(tokenizer, name, kept, elements);
        }
        match name {
            Name::Raw(_) | Name::Iframe if self.is_xml && closes_itself(tokenizer) => {}
            Name::Raw(raw) => tokenizer.skip_raw_text(tag.name, raw),
            Name::Iframe => tokenizer.skip_raw_text(tag.name, RawText::Plain),
            Name::Template => {
                self.templates_open += 1;
                self.wanted.set_every(true);
            }
            _ => {}
        }
        self.element(tokenizer, name, kept)
    }

    /// A tag where a foreign element or a template is open or will be.
    #[inline(always)]
    fn tag_in_foreign<K: Kernel>(
        &mut self,
        tokenizer: &mut Tokenizer<'a, K>,
        tag: TagName<'a>,
        name: Name,
        elements: &mut Vec<Element<'a>>,
    ) -> Option<Option<Element<'a>>> {
        let (mut kept, mut clues, mut encoding_seen) = (Kept::default(), Clues::default(), false);
        let bytes = tokenizer.page();
        // Most foreign tags need neither: paths and shapes.
        let (keeps, hears) = (name.keeps(), Clues::matter(tag.name));
        let skimmed = if keeps || hears { None } else { tokenizer.skim(Unless::Unquoted) };
        if let Some(closes_itself) = skimmed {
            clues.self_closing = closes_itself;
        } else {
            clues.self_closing = tokenizer.attributes(|name, span| {
                if keeps {
                    kept.keep(name, span);
                }
                if hears {
                    clues.hear(name, bytes.get(span.start..span.end).unwrap_or_default(), &mut encoding_seen);
                }
            })?;
        }
        if tag.end {
            self.end(tag.name);
            return Some(None);
        }
        let space = if self.foreign.is_empty() && name != Name::Foreign {
            Space::Html
        } else {
            if self.foreign.is_empty() {
                self.around.begin(tokenizer.at());
            }
            self.foreign.start(tag.name, clues)
        };
        let element = match space {
            Space::Html => self.html(tokenizer, tag, name, &kept, elements),
            Space::Svg if self.kinds.has(Kind::SvgA) && name == Name::A => {
                let href = kept.get(Slot::Href).or(kept.get(Slot::XlinkHref));
                element(tokenizer, Says::Link(Kind::SvgA), href, kept.get(Slot::Rel))
            }
            Space::Svg | Space::MathMl => None,
        };
        self.wanted.set_every(!self.foreign.is_empty() || self.templates_open > 0);
        Some(element)
    }

    /// The information in an HTML element.
    #[inline(always)]
    fn element<K: Kernel>(&mut self, tokenizer: &Tokenizer<'a, K>, name: Name, kept: &Kept) -> Option<Element<'a>> {
        if name == Name::Meta && self.is_tentative {
            self.hear_encoding(tokenizer, kept);
        }
        let kinds = self.kinds;
        let in_template = self.templates_open > 0;
        let is =
            |slot, text: &[u8]| kept.get(slot).is_some_and(|span| tokenizer.bytes(span).eq_ignore_ascii_case(text));
        let (says, value, second) = match name {
            Name::A if kinds.has(Kind::A) => (Says::Link(Kind::A), Slot::Href, Some(Slot::Rel)),
            Name::Area if kinds.has(Kind::Area) => (Says::Link(Kind::Area), Slot::Href, Some(Slot::Rel)),
            Name::Base if !in_template && self.base.is_none() => (Says::Base, Slot::Href, None),
            Name::Frame if kinds.has(Kind::Frame) => (Says::Source(Kind::Frame), Slot::Src, None),
            Name::Iframe if kinds.has(Kind::Iframe) => (Says::Source(Kind::Iframe), Slot::Src, None),
            Name::Img => (Says::Source(Kind::Img), Slot::Src, Some(Slot::Srcset)),
            Name::Source => (Says::Source(Kind::Img), Slot::None, Some(Slot::Srcset)),
            Name::Raw(RawText::Script) if kinds.has(Kind::Script) => (Says::Source(Kind::Script), Slot::Src, None),
            Name::Link if kinds.has(Kind::Link) || kinds.has(Kind::Canonical) => {
                let format = match kept.get(Slot::Type) {
                    Some(span) => Format::of(tokenizer.bytes(span)),
                    None => Format::Page,
                };
                (Says::Related(format), Slot::Href, Some(Slot::Rel))
            }
            Name::Meta if in_template => return None,
            Name::Meta if kinds.has(Kind::Refresh) && is(Slot::HttpEquiv, b"refresh") => {
                (Says::Refresh, Slot::Content, None)
            }
            Name::Meta
                if is(Slot::Name, b"robots") || !self.agent.is_empty() && is(Slot::Name, self.agent.as_bytes()) =>
            {
                (Says::Robots, Slot::Content, None)
            }
            Name::Meta if is(Slot::Name, b"tdm-reservation") => (Says::TdmReservation, Slot::Content, None),
            Name::Meta if is(Slot::Name, b"tdm-policy") => (Says::TdmPolicy, Slot::Content, None),
            _ => return None,
        };
        let (value, second) = (kept.get(value), second.and_then(|second| kept.get(second)));
        let element = element(tokenizer, says, value, second)?;
        if says == Says::Base {
            self.base = element.value;
        }
        Some(element)
    }

    /// Records the encoding that a `<meta>` names, also in a template (section 13.2.6.4.22).
    #[inline(never)]
    fn hear_encoding<K: Kernel>(&mut self, tokenizer: &Tokenizer<'a, K>, kept: &Kept) {
        let value = |slot| kept.get(slot).map(|span| Value::Raw(tokenizer.bytes(span)));
        self.declared = charset::declared(value(Slot::Charset), value(Slot::HttpEquiv), value(Slot::Content));
        self.is_tentative = self.declared.is_none();
    }

    /// Whether images are wanted.
    #[inline(always)]
    fn has_images(&self) -> bool {
        self.kinds.has(Kind::Img) || self.kinds.has(Kind::Srcset)
    }

    /// Images outside the usual attributes: those that scripts load on scrolling, all from `data-src` and
    /// `data-srcset`; preloaded ones (section 4.6.7.20, "preload"); and buttons (section 4.10.5.1.19).
    #[inline(never)]
    fn other_images<K: Kernel>(
        &self,
        tokenizer: &Tokenizer<'a, K>,
        name: Name,
        kept: &Kept,
        elements: &mut Vec<Element<'a>>,
    ) {
        let text = |slot| kept.get(slot).map_or(&b""[..], |span| tokenizer.bytes(span));
        let is_preload = || {
            let mut decoder = Decoder::new(encoding_rs::UTF_8);
            listed::any_token(decoder.text(Value::Raw(text(Slot::Rel))), |token| token.eq_ignore_ascii_case(PRELOAD))
        };
        let (src, srcset) = match name {
            Name::Img => (Slot::DataSrc, Slot::DataSrcset),
            Name::Source => (Slot::None, Slot::DataSrcset),
            Name::Link if text(Slot::As).eq_ignore_ascii_case(b"image") && is_preload() => {
                (Slot::Href, Slot::ImageSrcset)
            }
            Name::Input if text(Slot::Type).eq_ignore_ascii_case(b"image") => (Slot::Src, Slot::None),
            _ => return,
        };
        elements.extend(element(tokenizer, Says::Source(Kind::Img), kept.get(src), kept.get(srcset)));
    }

    #[inline(never)]
    fn end(&mut self, name: &[u8]) {
        if !self.foreign.is_empty() && !self.foreign.end(name) && self.around.is_open(self.bytes, name) {
            self.foreign.clear();
        }
        if self.templates_open > 0 && name.eq_ignore_ascii_case(b"template") {
            self.templates_open -= 1;
        }
        self.wanted.set_every(!self.foreign.is_empty() || self.templates_open > 0);
    }
}

/// The token of `rel` for what a page preloads.
const PRELOAD: &str = "preload";

/// An element with its values to be decoded, if it has enough information.
#[inline(always)]
#[allow(clippy::manual_map, reason = "a closure would not be compiled for the kernel")]
fn element<'a, K: Kernel>(
    tokenizer: &Tokenizer<'a, K>,
    says: Says,
    value: Option<Span>,
    second: Option<Span>,
) -> Option<Element<'a>> {
    let enough = match says {
        Says::Source(_) => value.is_some() || second.is_some(),
        Says::Related(_) => value.is_some() && second.is_some(),
        _ => value.is_some(),
    };
    if !enough {
        return None;
    }
    let value = match value {
        Some(span) => Some(tokenizer.value(span)),
        None => None,
    };
    let second = match second {
        Some(span) => Some(tokenizer.value(span)),
        None => None,
    };
    Some(Element { says, value, second })
}

/// Whether the start tag just read ends in `/>`.
fn closes_itself<K: Kernel>(tokenizer: &Tokenizer<'_, K>) -> bool {
    let slash = tokenizer.at().checked_sub(2);
    slash.and_then(|at| tokenizer.page().get(at)) == Some(&b'/')
}
