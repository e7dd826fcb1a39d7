//! Tracks whether the scanner is in HTML or in SVG or MathML: the only part of the tree that changes what a byte
//! means.
//!
//! Decides: a small stack of the open foreign elements, which is empty on most pages and in most of a page. It is
//! needed because inside SVG and MathML `<![CDATA[` is a real section, `<script>`, `<style>` and `<title>` hold
//! markup instead of raw text, and `<a>` is another element; and because HTML resumes inside `foreignObject` and
//! similar elements, and whenever one of some forty HTML start tags "breaks out".
//!
//! Source: WHATWG HTML sections 13.2.6 (the dispatcher, integration points) and 13.2.6.5 (foreign content).
//!
//! Invariants: at most `DEPTH_MAX` elements, so an end tag costs constant time.
//! Limits: HTML elements are tracked only inside an integration point, by start and end tag, with the implied ends of
//! paragraphs and links; other repairs of the tree builder are not done there. `pass` finds out when needed whether
//! an element is open around all this. Elements deeper than `DEPTH_MAX` are taken for their ancestor.

use super::tokenizer::RawText;

/// The open elements from the outermost SVG or MathML element on.
#[derive(Clone, Default)]
pub(super) struct Foreign {
    open: Vec<Open>,
}

#[derive(Clone)]
struct Open {
    /// Of the lower-case name.
    name_hash: u64,
    space: Space,
    point: Point,
    /// Whether it is a block of HTML: a link that ends around it does not end it.
    is_block: bool,
}

/// The namespace of a new element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Space {
    /// HTML.
    Html,
    /// SVG.
    Svg,
    /// MathML.
    MathMl,
}

/// How HTML may resume inside a foreign element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Point {
    None,
    /// HTML integration point.
    Html,
    /// MathML text integration point.
    Text,
    /// `annotation-xml` without an HTML encoding: `<svg>` alone is read as in HTML.
    Annotation,
}

/// Open elements that are tracked; real pages stay below a few dozen, pages of unclosed `<path>` do not.
const DEPTH_MAX: usize = 128;

/// The facts about a start tag's attributes that the rules need.
#[derive(Clone, Copy, Default)]
pub(super) struct Clues {
    /// `/>` at its end.
    pub self_closing: bool,
    /// `encoding` is `text/html` or `application/xhtml+xml` (for `annotation-xml`).
    pub html_encoding: bool,
    /// It has `color`, `face` or `size` (for `font`).
    pub font_style: bool,
}

impl Clues {
    /// Whether they matter for an element of this name.
    pub fn matter(name: &[u8]) -> bool {
        is_any(name, &[b"font", b"annotation-xml"])
    }

    /// Takes an attribute; `encoding_seen` records whether there was an `encoding` before.
    pub fn hear(&mut self, name: &[u8], value: &[u8], encoding_seen: &mut bool) {
        self.font_style |= is_any(name, &[b"color", b"face", b"size"]);
        if name.eq_ignore_ascii_case(b"encoding") && !std::mem::replace(encoding_seen, true) {
            self.html_encoding = is_any(value, &[b"text/html", b"application/xhtml+xml"]);
        }
    }
}

impl Foreign {
    /// Whether the adjusted current node is a foreign element, where a CDATA section is one.
    pub fn is_current(&self) -> bool {
        self.open.last().is_some_and(|top| top.space != Space::Html)
    }

    /// Whether no foreign element is open: then most tags need no call.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes a start tag; returns the namespace of the element that it makes.
    pub fn start(&mut self, name: &[u8], clues: Clues) -> Space {
        let space = self.space_of(name, clues);
        let is_block = space == Space::Html && !self.open.is_empty() && closes_p(name);
        let childless = match space {
            Space::Html => {
                if is_block {
                    self.close_html(b"p");
                }
                if name.eq_ignore_ascii_case(b"a") {
                    self.end_link();
                }
                // The outermost element on the stack is a foreign one.
                self.open.is_empty() || is_any(name, VOID)
            }
            Space::Svg | Space::MathMl => clues.self_closing,
        };
        if !childless && self.open.len() < DEPTH_MAX {
            self.open.push(Open { name_hash: hash(name), space, point: point_of(name, space, clues), is_block });
        }
        space
    }

    /// Takes an end tag. Returns true if it was for one of these elements or can be for no other. Otherwise it is for
    /// an HTML element around them, if there is one, and ends them all with it.
    pub fn end(&mut self, name: &[u8]) -> bool {
        if self.is_current() && is_any(name, &[b"p", b"br"]) {
            // The two end tags that break out of foreign content.
            self.break_out();
            return true;
        }
        // From a foreign current node up: the foreign elements, then, as in HTML, those up to the integration point.
        let name_hash = hash(name);
        let mut in_html = false;
        for (depth, element) in self.open.iter().enumerate().rev() {
            let foreign = element.space != Space::Html;
            if in_html && foreign {
                return true;
            }
            in_html = !foreign;
            if element.name_hash == name_hash {
                self.open.truncate(depth);
                return true;
            }
        }
        // An end tag does not look past an integration point, except for parts of a table (section 13.2.4.2, scopes).
        self.open.iter().any(|element| element.point != Point::None) && !is_any(name, OF_TABLES)
    }

    /// Ends all.
    pub fn clear(&mut self) {
        self.open.clear();
    }

    fn space_of(&mut self, name: &[u8], clues: Clues) -> Space {
        let Some(top) = self.open.last() else { return root_space(name) };
        let html_rules = match top.point {
            Point::Html => true,
            Point::Text => !is_any(name, &[b"mglyph", b"malignmark"]),
            Point::Annotation => name.eq_ignore_ascii_case(b"svg"),
            Point::None => top.space == Space::Html,
        };
        if html_rules {
            return root_space(name);
        }
        if breaks_out(name) || (name.eq_ignore_ascii_case(b"font") && clues.font_style) {
            self.break_out();
            return root_space(name);
        }
        top.space
    }

    /// Pops up to the next integration point or HTML element.
    fn break_out(&mut self) {
        let stays = |top: &Open| top.space == Space::Html || matches!(top.point, Point::Html | Point::Text);
        while self.open.last().is_some_and(|top| !stays(top)) {
            self.open.pop();
        }
    }

    /// Closes an HTML element, if one is open inside the integration point.
    fn close_html(&mut self, name: &[u8]) {
        if let Some(depth) = self.depth_of_html(name) {
            self.open.truncate(depth);
        }
    }

    /// A link ends where the next one begins, with everything inside it up to a block.
    fn end_link(&mut self) {
        let Some(depth) = self.depth_of_html(b"a") else { return };
        let mut in_block = false;
        let mut at = 0;
        self.open.retain(|element| {
            at += 1;
            in_block |= element.is_block && at > depth;
            at <= depth || in_block
        });
    }

    fn depth_of_html(&self, name: &[u8]) -> Option<usize> {
        let name_hash = hash(name);
        let mut inside = self.open.iter().enumerate().rev().take_while(|(_, element)| element.space == Space::Html);
        inside.find(|(_, element)| element.name_hash == name_hash).map(|(depth, _)| depth)
    }
}

/// How the content of an HTML element is read, if it is not markup (scripting is off: `noscript` is markup); by its
/// name in lower case.
pub(super) const fn raw_text(name: &[u8]) -> Option<RawText> {
    match name {
        b"script" => Some(RawText::Script),
        b"plaintext" => Some(RawText::Plaintext),
        b"style" | b"title" | b"textarea" | b"iframe" | b"noembed" | b"noframes" | b"xmp" => Some(RawText::Plain),
        _ => None,
    }
}

/// Whether an element of this name, in lower case, has no content and no end tag.
pub(super) fn is_void(name: &[u8]) -> bool {
    VOID.contains(&name)
}

fn root_space(name: &[u8]) -> Space {
    if name.eq_ignore_ascii_case(b"svg") {
        Space::Svg
    } else if name.eq_ignore_ascii_case(b"math") {
        Space::MathMl
    } else {
        Space::Html
    }
}

fn point_of(name: &[u8], space: Space, clues: Clues) -> Point {
    match space {
        Space::Svg if is_any(name, &[b"foreignobject", b"desc", b"title"]) => Point::Html,
        Space::MathMl if is_any(name, &[b"mi", b"mo", b"mn", b"ms", b"mtext"]) => Point::Text,
        Space::MathMl if name.eq_ignore_ascii_case(b"annotation-xml") => {
            if clues.html_encoding {
                Point::Html
            } else {
                Point::Annotation
            }
        }
        _ => Point::None,
    }
}

fn is_any(name: &[u8], names: &[&[u8]]) -> bool {
    names.iter().any(|one| name.eq_ignore_ascii_case(one))
}

/// Whether a start tag is HTML wherever it occurs, whatever its attributes.
pub(super) fn breaks_out(name: &[u8]) -> bool {
    BREAK_OUT_LENGTHS.may_have(name) && is_any(name, BREAK_OUT)
}

/// Whether a start tag also ends an open paragraph.
pub(super) fn closes_p(name: &[u8]) -> bool {
    CLOSES_P_LENGTHS.may_have(name) && is_any(name, CLOSES_P)
}

/// For some names: for the lower half of each first letter, a bit for each length. This rules out most names.
struct Lengths([u16; 32]);

static BREAK_OUT_LENGTHS: Lengths = Lengths::of(BREAK_OUT);
static CLOSES_P_LENGTHS: Lengths = Lengths::of(CLOSES_P);

impl Lengths {
    const fn of(names: &[&[u8]]) -> Lengths {
        let (mut lengths, mut at) = ([0; 32], 0);
        while at < names.len() {
            lengths[(names[at][0] & 31) as usize] |= 1 << names[at].len();
            at += 1;
        }
        Lengths(lengths)
    }

    fn may_have(&self, name: &[u8]) -> bool {
        let lengths = name.first().and_then(|first| self.0.get(usize::from(first & 31)));
        lengths.is_some_and(|lengths| lengths >> name.len().min(15) & 1 != 0)
    }
}

/// FNV-1a of the lower-case name. Names that collide close each other: harmless, and no better for an attacker than
/// writing the right name.
fn hash(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Start tags that are HTML wherever they occur (section 13.2.6.5); `font` only with some attributes.
#[rustfmt::skip]
const BREAK_OUT: &[&[u8]] = &[
    b"b", b"big", b"blockquote", b"body", b"br", b"center", b"code", b"dd", b"div", b"dl", b"dt", b"em", b"embed",
    b"h1", b"h2", b"h3", b"h4", b"h5", b"h6", b"head", b"hr", b"i", b"img", b"li", b"listing", b"menu", b"meta",
    b"nobr", b"ol", b"p", b"pre", b"ruby", b"s", b"small", b"span", b"strong", b"strike", b"sub", b"sup", b"table",
    b"tt", b"u", b"ul", b"var",
];

/// Start tags that close an open paragraph (section 13.2.6.4.7).
#[rustfmt::skip]
const CLOSES_P: &[&[u8]] = &[
    b"address", b"article", b"aside", b"blockquote", b"center", b"details", b"dialog", b"dir", b"div", b"dl",
    b"fieldset", b"figcaption", b"figure", b"footer", b"form", b"h1", b"h2", b"h3", b"h4", b"h5", b"h6", b"header",
    b"hgroup", b"hr", b"li", b"listing", b"main", b"menu", b"nav", b"ol", b"p", b"plaintext", b"pre", b"search",
    b"section", b"summary", b"table", b"ul", b"xmp", b"dd", b"dt",
];

/// End tags that look past everything except tables (section 13.2.4.2, "table scope").
const OF_TABLES: &[&[u8]] = &[b"caption", b"table", b"tbody", b"td", b"tfoot", b"th", b"thead", b"tr"];

/// HTML elements without content.
#[rustfmt::skip]
const VOID: &[&[u8]] = &[
    b"area", b"base", b"basefont", b"bgsound", b"br", b"col", b"embed", b"frame", b"hr", b"image", b"img", b"input",
    b"keygen", b"link", b"meta", b"param", b"source", b"track", b"wbr",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn spaces(tags: &str) -> Vec<Space> {
        let mut foreign = Foreign::default();
        let mut spaces = Vec::new();
        for tag in tags.split(' ') {
            if let Some(name) = tag.strip_prefix('/') {
                foreign.end(name.as_bytes());
                continue;
            }
            let name = tag.trim_end_matches('/');
            let clues = Clues { self_closing: name.len() < tag.len(), ..Clues::default() };
            spaces.push(foreign.start(name.as_bytes(), clues));
        }
        spaces
    }

    #[test]
    fn in_and_out() {
        use Space::{Html, MathMl, Svg};
        assert_eq!(spaces("a svg a /a /svg a"), [Html, Svg, Svg, Html]);
        assert_eq!(spaces("svg/ a"), [Svg, Html]);
        assert_eq!(spaces("SVG path path /svg a"), [Svg, Svg, Svg, Html]);
        assert_eq!(spaces("svg g div a"), [Svg, Svg, Html, Html], "breaks out");
        assert_eq!(spaces("svg foreignObject div a svg a"), [Svg, Svg, Html, Html, Svg, Svg]);
        assert_eq!(spaces("svg desc a /a /desc a"), [Svg, Svg, Html, Svg]);
        assert_eq!(spaces("math a mi mglyph a"), [MathMl, MathMl, MathMl, MathMl, MathMl]);
        assert_eq!(spaces("math mi a /a /mi a"), [MathMl, MathMl, Html, MathMl]);
        assert_eq!(spaces("math annotation-xml svg a"), [MathMl, MathMl, Svg, Svg]);
        assert_eq!(spaces("svg font a"), [Svg, Svg, Svg]);
        assert_eq!(spaces("svg a desc p a /a p br /p /desc a"), [Svg, Svg, Svg, Html, Html, Html, Html, Svg]);
        assert_eq!(spaces("svg desc div /desc a /div /desc a"), [Svg, Svg, Html, Html, Svg], "ignored in a div");
        assert_eq!(spaces("svg desc div svg g /div a"), [Svg, Svg, Html, Svg, Svg, Html]);
    }

    #[test]
    fn depth_is_bounded() {
        let mut foreign = Foreign::default();
        foreign.start(b"svg", Clues::default());
        for _ in 0..10_000 {
            foreign.start(b"g", Clues::default());
        }
        assert_eq!(foreign.open.len(), DEPTH_MAX);
        foreign.end(b"svg");
        assert!(foreign.is_empty());
    }
}
