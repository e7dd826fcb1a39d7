//! Elements that are open around the outermost SVG or MathML element.
//!
//! Decides: an end tag of an HTML element also ends the foreign elements inside it: for example the `</li>` of a page
//! that forgets its `</svg>` (WHATWG HTML section 13.2.6.5, "any other end tag"). There is no tree to tell whether
//! such an element is open. So when this matters, everything before it is read again, for its tags only.
//!
//! Source: WHATWG HTML sections 13.2.4.2 (the stack of open elements, what is special, what is in scope), 13.2.6.4.7
//! (tags in body), 13.2.6.4.9 to 13.2.6.4.15 (tables) and 13.2.6.5 (foreign content).
//! Invariants: nothing is read here twice, so time is linear, whatever is asked.
//! Limits: formatting elements are reopened at once, and not before the next content; content moved before a table is
//! treated as inside it; list items and headings that end because of others, scripts in scripts, framesets and
//! selects are not handled. At most about `DEPTH_MAX` elements. On random pages of such mistakes, one in some tens of
//! thousands is read differently than by a tree builder (`tests/tree.rs`).

use super::super::foreign::{breaks_out, closes_p};
use super::super::tokenizer::{ends_name, is_space};
use super::scope::{Class, NAME_BYTES_MAX, Named, hash};

/// Open elements that are remembered.
const DEPTH_MAX: usize = 256;

/// The elements open before the foreign ones.
#[derive(Clone, Default)]
pub(super) struct Around {
    foreign_at: usize,
    /// The open elements are known up to this position.
    at: usize,
    open: Vec<Named>,
    /// The element whose text is being skipped, if that is not markup.
    raw: Option<u64>,
}

impl Around {
    /// The outermost foreign element begins before `at`.
    pub fn begin(&mut self, at: usize) {
        self.foreign_at = at;
    }

    /// Whether an HTML element of that name, which its end tag would find, is open around it.
    pub fn is_open(&mut self, page: &[u8], name: &[u8]) -> bool {
        self.read(page.get(..self.foreign_at).unwrap_or_default());
        // A foreign element is not around itself.
        Named::of(name).is_some_and(|name| name.class != Class::Foreign && self.find(name).is_some())
    }

    /// Continues to the end of `before`.
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
            let text = name.get(..name_bytes).unwrap_or_default();
            let Some(name) = Named::of(text) else {
                if self.raw.is_none() && matches!(name.first(), Some(b'!' | b'?' | b'0'..=b'9')) {
                    // It ends like a bogus comment (section 13.2.5.41).
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
                self.end(name);
            } else if !tag.ends_with(b"/") || !self.is_foreign(name) {
                self.start(name, text);
            }
        }
        self.at = before.len();
    }

    /// Whether an element that begins now is foreign, as far as is known: then `/>` ends it.
    fn is_foreign(&self, name: Named) -> bool {
        name.class == Class::Foreign || self.innermost_foreign().is_some()
    }

    /// The depth of the current foreign element, unless HTML has resumed inside it.
    fn innermost_foreign(&self) -> Option<usize> {
        let depth = self.open.iter().rposition(|open| matches!(open.class, Class::Foreign | Class::Point))?;
        self.is(depth, Class::Foreign).then_some(depth)
    }

    /// `text` is the name as written.
    fn start(&mut self, name: Named, text: &[u8]) {
        if let Some(depth) = self.innermost_foreign() {
            if !breaks_out(text) {
                // Not HTML: it has only a name.
                let class = match name.class {
                    Class::Foreign | Class::Point => name.class,
                    _ if name.hash == hash(b"title") => Class::Point,
                    _ => Class::Ordinary,
                };
                self.push(Named { class, ..name });
                return;
            }
            self.open.truncate(depth);
        }
        if name.ends_before_its_like {
            self.end(name);
        }
        let paragraph = self.open.iter().rfind(|open| open.class == Class::Paragraph).copied();
        if let Some(paragraph) = paragraph.filter(|_| closes_p(text)) {
            self.end(paragraph);
        }
        match name.class {
            Class::Never => {}
            Class::Raw => self.raw = Some(name.hash),
            Class::Table => {
                let around = self.open.iter().rposition(|open| open.clears_formatting() || open.class == Class::Table);
                if let Some(depth) = around.filter(|depth| self.is(*depth, Class::Table)) {
                    self.end_at(depth);
                }
                self.push(name);
            }
            Class::Rows | Class::Row | Class::Cell => self.start_in_table(name),
            Class::Point => self.push(Named { class: Class::Ordinary, ..name }),
            _ => self.push(name),
        }
    }

    /// A part of a table: ends what is open in the table, up to the part's parent, which exists even without a tag.
    /// Ignored outside a table.
    fn start_in_table(&mut self, name: Named) {
        let Some(table) = self.open.iter().rposition(|open| open.class == Class::Table) else { return };
        let within: &[&[u8]] = match name.class {
            Class::Row => &[b"tbody"],
            Class::Cell if name.hash != hash(b"caption") => &[b"tbody", b"tr"],
            _ => &[],
        };
        let mut inside = self.open.split_off(table + 1).into_iter().peekable();
        for outer in within.iter().filter_map(|name| Named::of(name)) {
            self.push(inside.next_if(|open| open.class == outer.class).unwrap_or(outer));
        }
        self.push(name);
        if name.class != Class::Cell {
            let opens_again = inside.take_while(|open| !open.clears_formatting());
            self.open.extend(opens_again.filter(|open| open.class == Class::Formatting));
        }
    }

    fn is(&self, depth: usize, class: Class) -> bool {
        self.open.get(depth).is_some_and(|open| open.class == class)
    }

    fn push(&mut self, name: Named) {
        if self.open.len() < DEPTH_MAX {
            self.open.push(name);
        }
    }

    /// Ends the element that an end tag of that name ends, if one is open.
    fn end(&mut self, name: Named) {
        if let Some(depth) = self.find(name) {
            self.end_at(depth);
        }
    }

    /// Ends the element at `depth`. Some elements inside stay open.
    fn end_at(&mut self, depth: usize) {
        let inside = self.open.split_off(depth);
        let Some((ends, inside)) = inside.split_first() else { return };
        if ends.class == Class::Formatting {
            // Blocks stay open, and formatting elements are reopened (section 13.2.6.4.7, "adoption agency").
            self.open.extend(inside.iter().filter(|open| !open.is_plain()));
        } else {
            // Formatting elements are reopened before the next content, except those of a cell or an object.
            let opens_again = inside.iter().take_while(|_| !ends.clears_formatting());
            let opens_again = opens_again.take_while(|open| !open.clears_formatting());
            self.open.extend(opens_again.filter(|open| open.class == Class::Formatting));
        }
    }

    /// The position of the element that an end tag of that name ends.
    fn find(&self, name: Named) -> Option<usize> {
        let is_in_the_way = |open: &Named| match name.class {
            Class::Ordinary | Class::Blunt | Class::Foreign | Class::Point => {
                !open.is_plain() && open.class != Class::Formatting
            }
            Class::Rows | Class::Row | Class::Cell | Class::Table => open.class == Class::Table,
            Class::Item => open.is_border() || open.class == Class::List,
            Class::Paragraph => open.is_border() || open.class == Class::Button,
            _ => open.is_border(),
        };
        let nearest = self.open.iter().rposition(|open| open.hash == name.hash || is_in_the_way(open))?;
        self.open.get(nearest).is_some_and(|open| open.hash == name.hash).then_some(nearest)
    }
}

/// Position of the `>` of a comment, or the end: its opening dashes may also be the closing ones.
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

/// Position of a tag's `>`, or the end: behind quoted values.
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
        // In steps the result is the same.
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
