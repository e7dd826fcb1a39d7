//! One pass over a page: which tags hold links or say something of the page, and their raw attribute values.
//!
//! Decides: tags are looked at by name first, so the attributes of most are skipped unread; of the others only some
//! attributes are kept, the first of each name. `<a>`, most of all that is wanted, has a way of its own. Elements are collected, not given out one by one: the first `<base>`
//! counts for the links before it, and stands behind some of them at most. So the first batch ends with it. Only where
//! a batch is full before, the caller must look for a base further on.
//!
//! Invariants: linear time; a batch has at most `ELEMENTS_MAX` elements.

use super::block::{self, Kernel, Task};
use super::foreign::{self, Clues, Foreign, Space};
use super::kinds::{Kind, Kinds};
use super::tokenizer::{RawText, Span, TagName, Tokenizer};
use super::value::Value;
use super::wanted::{self, Wanted};

/// An element that says something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Element<'a> {
    pub says: Says,
    /// `href`, `src` or `content`.
    pub value: Option<Value<'a>>,
    /// `rel` or `srcset`.
    pub second: Option<Value<'a>>,
}

/// What an element says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Says {
    /// A link of a kind that has a `rel`, if `value` is there.
    Link(Kind),
    /// A resource, if `value` is there, and others in `second`.
    Source(Kind),
    /// The first `<base>` with a link.
    Base,
    /// A `<link>`, if both are there.
    Related,
    /// `<meta http-equiv=refresh>`.
    Refresh,
    /// `<meta name=robots>`.
    Robots,
}

/// Elements in one batch: a hundred kilobytes of them. Of a page with more, which is rare, the rest is read twice until a
/// base is found.
const ELEMENTS_MAX: usize = 2_000;

/// Names that are wanted whatever the kinds: they change how bytes are read, or what the page's links mean.
const ALWAYS: u32 = wanted::bits(&[b"base", b"math", b"meta", b"svg", b"template"]) | wanted::bits(foreign::RAW_TEXT);

/// A page on the way: where the pass is, and what must be remembered from tag to tag.
#[derive(Clone)]
pub(super) struct Pass<'a> {
    bytes: &'a [u8],
    at: usize,
    wanted: Wanted,
    kinds: KindBits,
    foreign: Foreign,
    templates_open: usize,
    base_seen: bool,
}

/// Kinds that decide what is kept.
#[derive(Clone, Copy)]
struct KindBits {
    area: bool,
    a: bool,
    svg_a: bool,
    frame: bool,
    iframe: bool,
    img: bool,
    srcset: bool,
    link: bool,
    refresh: bool,
}

impl<'a> Pass<'a> {
    /// Begins at the start of `bytes`, for links of these kinds.
    pub fn new(bytes: &'a [u8], kinds: &Kinds) -> Pass<'a> {
        let bits = KindBits {
            area: kinds.has(Kind::Area),
            a: kinds.has(Kind::A),
            svg_a: kinds.has(Kind::SvgA),
            frame: kinds.has(Kind::Frame),
            iframe: kinds.has(Kind::Iframe),
            img: kinds.has(Kind::Img),
            srcset: kinds.has(Kind::Srcset),
            link: kinds.has(Kind::Link) || kinds.has(Kind::Canonical),
            refresh: kinds.has(Kind::Refresh),
        };
        let of = |wanted, names: u32| if wanted { names } else { 0 };
        let wanted = ALWAYS
            | of(bits.a, wanted::A)
            | of(bits.area, const { wanted::bits(&[b"area"]) })
            | of(bits.frame, const { wanted::bits(&[b"frame"]) })
            | of(bits.img || bits.srcset, const { wanted::bits(&[b"image", b"img"]) })
            | of(bits.link, const { wanted::bits(&[b"link"]) })
            | of(bits.srcset, const { wanted::bits(&[b"source"]) });
        let wanted = Wanted::new(wanted);
        Pass { bytes, at: 0, wanted, kinds: bits, foreign: Foreign::default(), templates_open: 0, base_seen: false }
    }

    /// Appends elements to `batch`, up to the first base or until it is full. Returns whether there may be more.
    pub fn read(&mut self, batch: &mut Vec<Element<'a>>) -> bool {
        block::with_best(Batch { pass: self, elements: batch })
    }

    /// The value of the first base from here on.
    pub fn base_href(mut self) -> Option<Value<'a>> {
        let mut batch = Vec::new();
        loop {
            batch.clear();
            let more = self.read(&mut batch);
            if let Some(Element { says: Says::Base, value, .. }) = batch.last() {
                return *value;
            }
            if !more {
                return None;
            }
        }
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
        let Batch { pass, elements } = self;
        let mut tokenizer = Tokenizer::new(pass.bytes, pass.at, kernel);
        while elements.len() < ELEMENTS_MAX {
            let Some(is_base) = pass.tag(&mut tokenizer, elements) else { return false };
            if is_base {
                break;
            }
        }
        pass.at = tokenizer.at();
        true
    }
}

/// Names that are acted upon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
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
    #[inline(always)]
    fn of(name: &[u8]) -> Name {
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
}

impl<'a> Pass<'a> {
    /// Reads the next wanted tag, and appends what it says, if anything. Returns whether that is the base.
    #[inline(always)]
    fn tag<K: Kernel>(&mut self, tokenizer: &mut Tokenizer<'a, K>, elements: &mut Vec<Element<'a>>) -> Option<bool> {
        let every = self.wanted.is_every();
        let tag = tokenizer.tag(&self.wanted, every && self.foreign.is_current())?;
        if !every && tag.name.len() == 1 {
            self.a(tokenizer, elements)?;
            return Some(false);
        }
        let name = Name::of(tag.name);
        let element = if every || name == Name::Foreign {
            self.tag_in_foreign(tokenizer, tag, name)?
        } else {
            let mut kept = Kept::default();
            let keeps = !matches!(name, Name::Raw(_) | Name::Other);
            tokenizer.attributes(|name, span| {
                if keeps {
                    kept.keep(name, span);
                }
            })?;
            self.html(tokenizer, tag, name, &kept)
        };
        let Some(element) = element else { return Some(false) };
        elements.push(element);
        Some(element.says == Says::Base)
    }

    /// An `<a>` where nothing foreign and no template is open: there alone a name of one letter is wanted.
    #[inline(always)]
    fn a<K: Kernel>(&self, tokenizer: &mut Tokenizer<'a, K>, elements: &mut Vec<Element<'a>>) -> Option<()> {
        let (mut href, mut rel) = (Span::default(), Span::default());
        tokenizer.attributes(|name, span| match name.len() {
            4 if href.start == 0 && word(name) == HREF => href = span,
            3 if rel.start == 0 && word(name) == REL => rel = span,
            _ => {}
        })?;
        if href.start > 0 {
            let value = Some(tokenizer.value(href));
            let second = if rel.start > 0 { Some(tokenizer.value(rel)) } else { None };
            elements.push(Element { says: Says::Link(Kind::A), value, second });
        }
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
    ) -> Option<Element<'a>> {
        match name {
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

    /// A tag where something foreign or a template is open, or will be.
    #[inline(always)]
    fn tag_in_foreign<K: Kernel>(
        &mut self,
        tokenizer: &mut Tokenizer<'a, K>,
        tag: TagName<'a>,
        name: Name,
    ) -> Option<Option<Element<'a>>> {
        let (mut kept, mut clues, mut encoding_seen) = (Kept::default(), Clues::default(), false);
        let bytes = tokenizer.page();
        // Most of what is foreign is neither: paths and shapes.
        let (keeps, hears) = (name != Name::Other, Clues::matter(tag.name));
        clues.self_closing = tokenizer.attributes(|name, span| {
            if keeps {
                kept.keep(name, span);
            }
            if hears {
                clues.hear(name, bytes.get(span.start..span.end).unwrap_or_default(), &mut encoding_seen);
            }
        })?;
        if tag.end {
            self.end(tag.name);
            return Some(None);
        }
        let space = if self.foreign.is_empty() && name != Name::Foreign {
            Space::Html
        } else {
            self.foreign.start(tag.name, clues)
        };
        let element = match space {
            Space::Html => self.html(tokenizer, tag, name, &kept),
            Space::Svg if self.kinds.svg_a && name == Name::A => {
                let href = kept.get(Slot::Href).or(kept.get(Slot::XlinkHref));
                element(tokenizer, Says::Link(Kind::SvgA), href, kept.get(Slot::Rel))
            }
            Space::Svg | Space::MathMl => None,
        };
        self.wanted.set_every(!self.foreign.is_empty() || self.templates_open > 0);
        Some(element)
    }

    /// What an HTML element says.
    #[inline(always)]
    fn element<K: Kernel>(&mut self, tokenizer: &Tokenizer<'a, K>, name: Name, kept: &Kept) -> Option<Element<'a>> {
        let kinds = self.kinds;
        let in_template = self.templates_open > 0;
        let is =
            |slot, text: &[u8]| kept.get(slot).is_some_and(|span| tokenizer.bytes(span).eq_ignore_ascii_case(text));
        let (says, value, second) = match name {
            Name::A if kinds.a => (Says::Link(Kind::A), Slot::Href, Some(Slot::Rel)),
            Name::Area if kinds.area => (Says::Link(Kind::Area), Slot::Href, Some(Slot::Rel)),
            Name::Base if !in_template && !self.base_seen => (Says::Base, Slot::Href, None),
            Name::Frame if kinds.frame => (Says::Source(Kind::Frame), Slot::Src, None),
            Name::Iframe if kinds.iframe => (Says::Source(Kind::Iframe), Slot::Src, None),
            Name::Img => (Says::Source(Kind::Img), Slot::Src, Some(Slot::Srcset)),
            Name::Source => (Says::Source(Kind::Img), Slot::None, Some(Slot::Srcset)),
            Name::Link if kinds.link => (Says::Related, Slot::Href, Some(Slot::Rel)),
            Name::Meta if in_template => return None,
            Name::Meta if kinds.refresh && is(Slot::HttpEquiv, b"refresh") => (Says::Refresh, Slot::Content, None),
            Name::Meta if is(Slot::Name, b"robots") => (Says::Robots, Slot::Content, None),
            _ => return None,
        };
        let (value, second) = (kept.get(value), second.and_then(|second| kept.get(second)));
        self.base_seen |= says == Says::Base && value.is_some();
        element(tokenizer, says, value, second)
    }

    #[inline(never)]
    fn end(&mut self, name: &[u8]) {
        if !self.foreign.is_empty() {
            self.foreign.end(name);
        }
        if self.templates_open > 0 && name.eq_ignore_ascii_case(b"template") {
            self.templates_open -= 1;
        }
        self.wanted.set_every(!self.foreign.is_empty() || self.templates_open > 0);
    }
}

/// An element with its values as they are to be decoded, if it says enough.
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
        Says::Related => value.is_some() && second.is_some(),
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
    /// None of them.
    None,
}

/// Where the first value of each kept attribute of one tag stands.
#[derive(Clone, Copy, Default)]
struct Kept {
    slots: [Span; 8],
}

impl Kept {
    #[inline(always)]
    fn get(&self, slot: Slot) -> Option<Span> {
        self.slots.get(slot as usize).copied().filter(|span| span.start > 0)
    }

    #[inline(always)]
    fn keep(&mut self, name: &[u8], span: Span) {
        let Some(slot) = Slot::of(name) else { return };
        if let Some(kept) = self.slots.get_mut(slot as usize)
            && kept.start == 0
        {
            *kept = span;
        }
    }
}

impl Slot {
    #[inline(always)]
    fn of(name: &[u8]) -> Option<Slot> {
        let is = |written: &[u8]| name.eq_ignore_ascii_case(written);
        match name.len() {
            4 if word(name) == HREF => Some(Slot::Href),
            4 if word(name) == NAME => Some(Slot::Name),
            3 if word(name) == SRC => Some(Slot::Src),
            3 if word(name) == REL => Some(Slot::Rel),
            6 if is(b"srcset") => Some(Slot::Srcset),
            7 if is(b"content") => Some(Slot::Content),
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
const SRC: u32 = u32::from_le_bytes(*b"src\0");
const REL: u32 = u32::from_le_bytes(*b"rel\0");
