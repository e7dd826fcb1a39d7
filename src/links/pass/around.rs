//! What is open around the outermost SVG or MathML element.
//!
//! Decides: an end tag of an HTML element ends what is foreign inside of it, too: so does the `</li>` of a page that
//! forgets its `</svg>` (WHATWG HTML section 13.2.6.5, "any other end tag"). There is no tree that could tell whether such
//! an element is open. So, when one has to know, all that stands before is read once more, for its tags alone.
//!
//! Source: WHATWG HTML sections 13.2.4.2 (the stack of open elements, what is special, what is in scope) and 13.2.6.4.7
//! (end tags in body).
//! Invariants: what was read is not read again, so time is linear, whatever is asked.
//! Limits: elements end by their end tags, and some before the next of their kind; other implied ends, formatting elements
//! that are opened again, and scripts in scripts are left out. No more than `DEPTH_MAX` elements, and none with a name of
//! more than `NAME_BYTES_MAX`.

use xxhash_rust::xxh3::xxh3_64;

use super::super::foreign::{is_void, raw_text};
use super::super::tokenizer::{ends_name, is_space};

/// Open elements that are remembered.
const DEPTH_MAX: usize = 256;
/// Longest name that is told.
const NAME_BYTES_MAX: usize = 64;

/// The elements open before what is foreign.
#[derive(Clone, Default)]
pub(super) struct Around {
    foreign_at: usize,
    /// Up to here it is known what is open.
    at: usize,
    open: Vec<Named>,
    /// The element whose text is being passed, if that is no markup.
    raw: Option<u64>,
}

/// What matters of a name.
#[derive(Clone, Copy)]
struct Named {
    /// Of the name in lower case; of headings all the same, as each ends the other.
    hash: u64,
    class: Class,
    /// Whether the next one is its end, too.
    ends_before_its_like: bool,
}

/// What an end tag looks past, and what is in its way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Looks past nothing that is special.
    Ordinary,
    /// `svg` and `math`: as `Ordinary`.
    Foreign,
    /// As `Ordinary`, but in the way of others.
    Blunt,
    /// As `Special`, but in nobody's way.
    Formatting,
    /// Looks past all that is no border.
    Special,
    /// As `Special`, and in the way of items.
    List,
    /// As `Special`, but for lists.
    Item,
    /// Of a table: looks past all but a table. `Cell` and `Table` are borders, too.
    Row,
    Cell,
    Table,
    Border,
    /// Its content is no markup.
    Raw,
    /// Its end tag ends nothing that is open inside of it, or it is never open.
    Never,
}

impl Around {
    /// The outermost foreign element begins before `at`.
    pub fn begin(&mut self, at: usize) {
        self.foreign_at = at;
    }

    /// Whether an HTML element of that name is open around it, which its end tag would find.
    pub fn is_open(&mut self, page: &[u8], name: &[u8]) -> bool {
        self.read(page.get(..self.foreign_at).unwrap_or_default());
        // What is foreign is not around itself.
        Named::of(name).is_some_and(|name| name.class != Class::Foreign && self.find(name).is_some())
    }

    /// Goes on to the end of `before`.
    fn read(&mut self, before: &[u8]) {
        while let Some(found) = memchr::memchr(b'<', before.get(self.at..).unwrap_or_default()) {
            self.at += found + 1;
            let tag = before.get(self.at..).unwrap_or_default();
            if self.raw.is_none() && tag.starts_with(b"!--") {
                self.at += end_of_comment(tag);
                continue;
            }
            let is_end = tag.starts_with(b"/");
            let name = tag.get(usize::from(is_end)..).unwrap_or_default();
            let name_bytes = name.iter().take(NAME_BYTES_MAX + 1).take_while(|byte| !ends_name(**byte)).count();
            let Some(name) = name.get(..name_bytes).and_then(Named::of) else {
                if self.raw.is_none() && matches!(name.first(), Some(b'!' | b'?' | b'0'..=b'9')) {
                    // It ends as a comment does that is none (section 13.2.5.41).
                    self.at += memchr::memchr(b'>', tag).unwrap_or(tag.len());
                }
                continue;
            };
            if self.raw.is_some_and(|raw| !is_end || raw != name.hash) {
                continue;
            }
            self.raw = None;
            let tag = tag.get(..end_of_tag(tag)).unwrap_or_default();
            self.at += tag.len();
            if is_end {
                let ended = self.find(name).unwrap_or(self.open.len());
                self.open.truncate(ended);
            } else if !tag.ends_with(b"/") || !self.is_foreign(name) {
                self.start(name);
            }
        }
        self.at = before.len();
    }

    /// Whether an element that begins now is foreign, as far as one can tell: then `/>` ends it.
    fn is_foreign(&self, name: Named) -> bool {
        name.class == Class::Foreign || self.open.iter().any(|open| open.class == Class::Foreign)
    }

    fn start(&mut self, name: Named) {
        if name.ends_before_its_like
            && let Some(depth) = self.find(name)
        {
            self.open.truncate(depth);
        }
        match name.class {
            Class::Never => {}
            Class::Raw => self.raw = Some(name.hash),
            // Ignored outside of a table.
            Class::Row | Class::Cell if !self.open.iter().any(|open| open.class == Class::Table) => {}
            _ if self.open.len() < DEPTH_MAX => self.open.push(name),
            _ => {}
        }
    }

    /// Where the element stands that an end tag of that name ends.
    fn find(&self, name: Named) -> Option<usize> {
        let is_in_the_way = |open: &Named| match name.class {
            Class::Ordinary | Class::Blunt | Class::Foreign => {
                !matches!(open.class, Class::Ordinary | Class::Foreign | Class::Formatting)
            }
            Class::Row | Class::Cell | Class::Table => open.class == Class::Table,
            Class::Item => matches!(open.class, Class::Border | Class::Cell | Class::Table | Class::List),
            _ => matches!(open.class, Class::Border | Class::Cell | Class::Table),
        };
        let nearest = self.open.iter().rposition(|open| open.hash == name.hash || is_in_the_way(open))?;
        self.open.get(nearest).is_some_and(|open| open.hash == name.hash).then_some(nearest)
    }
}

impl Named {
    /// A name, if it is one that tags have; none that is too long.
    fn of(name: &[u8]) -> Option<Named> {
        if name.len() > NAME_BYTES_MAX || !name.first()?.is_ascii_alphabetic() {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        let class = match lower.as_slice() {
            // These two switch modes; the others are put elsewhere, or end before what is foreign begins.
            b"body" | b"html" | b"head" | b"form" | b"frameset" | b"col" | b"colgroup" => Class::Never,
            name if is_void(name) => Class::Never,
            name if raw_text(name).is_some() => Class::Raw,
            b"applet" | b"marquee" | b"object" | b"template" => Class::Border,
            b"caption" | b"td" | b"th" => Class::Cell,
            b"tbody" | b"tfoot" | b"thead" | b"tr" => Class::Row,
            b"table" => Class::Table,
            b"svg" | b"math" => Class::Foreign,
            b"noscript" => Class::Blunt,
            b"li" => Class::Item,
            b"ol" | b"ul" => Class::List,
            b"a" | b"b" | b"big" | b"code" | b"em" | b"font" | b"i" | b"nobr" | b"s" | b"small" | b"strike"
            | b"strong" | b"tt" | b"u" => Class::Formatting,
            b"address" | b"article" | b"aside" | b"blockquote" | b"button" | b"center" | b"dd" | b"details"
            | b"dialog" | b"dir" | b"div" | b"dl" | b"dt" | b"fieldset" | b"figcaption" | b"figure" | b"footer"
            | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"header" | b"hgroup" | b"listing" | b"main"
            | b"menu" | b"nav" | b"p" | b"pre" | b"search" | b"section" | b"select" | b"summary" => Class::Special,
            _ => Class::Ordinary,
        };
        let hash = match lower.as_slice() {
            [b'h', b'1'..=b'6'] => xxh3_64(b"h1"),
            name => xxh3_64(name),
        };
        let ends_before_its_like = matches!(class, Class::Item | Class::Row | Class::Cell)
            || [&b"p"[..], b"dd", b"dt", b"option"].contains(&lower.as_slice());
        Some(Named { hash, class, ends_before_its_like })
    }
}

/// Where the `>` of a comment is, or the end: its own dashes may be the last ones.
fn end_of_comment(comment: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = memchr::memmem::find(comment.get(at..).unwrap_or_default(), b"--") {
        at += found;
        let behind = comment.get(at + 2..).unwrap_or_default();
        if behind.starts_with(b">") || behind.starts_with(b"!>") {
            return at + 2;
        }
        at += 1;
    }
    comment.len()
}

/// Where a tag's `>` is, or the end: behind quoted values.
fn end_of_tag(tag: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr3(b'>', b'"', b'\'', tag.get(at..).unwrap_or_default()) {
        at += found;
        let (before, rest) = tag.split_at_checked(at).unwrap_or_default();
        let Some((quote @ (b'"' | b'\''), value)) = rest.split_first() else { return at };
        at += 1;
        if before.iter().rev().find(|byte| !is_space(**byte)) == Some(&b'=') {
            let Some(length) = memchr::memchr(*quote, value) else { return tag.len() };
            at += length + 1;
        }
    }
    tag.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_open(before: &str, name: &str) -> bool {
        let mut around = Around::default();
        around.begin(before.len());
        let page = format!("{before}<svg><{name}></{name}>");
        let is = around.is_open(page.as_bytes(), name.as_bytes());
        // In steps it is the same.
        let mut around = Around::default();
        for at in before.match_indices("<svg>").map(|(at, svg)| at + svg.len()).chain([before.len()]) {
            around.begin(at);
            around.is_open(page.as_bytes(), b"x");
        }
        assert_eq!(around.is_open(page.as_bytes(), name.as_bytes()), is, "{before} in steps");
        is
    }

    #[test]
    fn elements_are_open_until_they_end() {
        for (before, name) in [
            ("<div>", "div"),
            ("<DIV class=x>", "Div"),
            ("</div><div>", "div"),
            ("<div><div></div>", "div"),
            ("<div/><p></p>", "div"),
            ("<a href=/x/>", "a"),
            ("<div title='</div>'><b =\"></div>\">", "div"),
            ("<div><!--</div>--><script></div>'</script ></script><textarea></div></textarea>", "div"),
            ("<my-icon><svg><path></svg>", "my-icon"),
            ("<li><svg><path/></li><li><svg><title></title><script/>", "li"),
            ("<h2><b>", "h3"),
            ("<b><div>", "b"),
            ("<span><b>", "span"),
            ("<table><tr><td>", "tr"),
            ("<table><tr><td><div>", "table"),
            ("<ul><li>a<li>b", "ul"),
            ("<div><td><x-y>", "div"),
            ("<li><svg/><a href=x/>", "a"),
            ("<!--x--!><b>", "b"),
            ("<!--><b><!---><!-- -></b>--->", "b"),
            ("<? </b> ><b><!x>", "b"),
        ] {
            assert!(is_open(before, name), "{name} in {before}");
        }
    }

    #[test]
    fn others_are_not() {
        for (before, name) in [
            ("", "div"),
            ("<div></div>", "div"),
            ("<div></DIV\n>", "div"),
            ("<divs>< div>div>", "div"),
            ("<!--<div>--><style><div></style><script>'<div>'</script>", "div"),
            ("<!--<div>", "div"),
            ("<b title='><div>", "div"),
            ("<p title=\"<div>\">", "div"),
            ("<div><ul><li></div>", "li"),
            ("<img><br>", "img"),
            ("<body><form><head>", "body"),
            ("<body><form><head>", "form"),
            ("<script>document.write('<script>')</script>", "script"),
            ("<math><img>", "math"),
            ("<svg><path/></svg>", "path"),
            ("<svg><path></svg>", "path"),
            ("<span><div>", "span"),
            ("<li><ul>", "li"),
            ("<div><table><tr><td>", "div"),
            ("<div><template>", "div"),
            ("<table><tr><td><table>", "tr"),
            ("<h1></h2>", "h1"),
            ("<ul><li>a<li>b</li>", "li"),
            ("<td>", "td"),
            ("<table></table><tr>", "tr"),
            ("<noscript><div>", "noscript"),
            ("<?php <b> ?><!x <b>></3 <b>", "b"),
            ("<b><!--x--!></b>-->", "b"),
        ] {
            assert!(!is_open(before, name), "{name} in {before}");
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        assert!(is_open(&format!("<{}>", &long[1..]), &long[1..]) && !is_open(&format!("<{long}>"), &long));
    }

    #[test]
    fn depth_has_a_bound() {
        assert!(is_open(&format!("{}<div>", "<b>".repeat(DEPTH_MAX - 1)), "div"));
        assert!(!is_open(&format!("{}<div>", "<b>".repeat(DEPTH_MAX)), "div"));
        assert!(is_open(&format!("{}<div>", "<p>x".repeat(1_000)), "div"));
    }
}
