//! The tokenizer's slow twin: the same states one byte after the other, as they were before there were blocks.

use memchr::{memchr, memchr2};

use super::super::tokenizer::{RawText, TagName, ends_name as ends_tag_name, is_space};

/// The tokenizer of one document.
pub(super) struct Tokenizer<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Tokenizer<'a> {
    /// Starts at the first byte, in the data state.
    pub fn new(bytes: &'a [u8]) -> Tokenizer<'a> {
        Tokenizer { bytes, at: 0 }
    }

    /// Moves to the next tag and behind its name; `attributes` must be called before the next `tag`. `foreign` says
    /// whether the current node is an SVG or MathML element: only there is `<![CDATA[` a section.
    pub fn tag(&mut self, foreign: bool) -> Option<TagName<'a>> {
        loop {
            self.skip_to(|bytes| memchr(b'<', bytes))?;
            // Tag open state.
            let rest = self.rest();
            match rest.get(1)? {
                b'!' => self.markup_declaration(foreign),
                b'/' => match rest.get(2)? {
                    letter if letter.is_ascii_alphabetic() => {
                        self.at += 2;
                        return Some(TagName { name: self.tag_name(), end: true, bit: 0 });
                    }
                    // `</>` is nothing, `</ x>` a bogus comment: both end at the next `>`.
                    _ => self.skip_past_gt(2),
                },
                b'?' => self.skip_past_gt(1),
                letter if letter.is_ascii_alphabetic() => {
                    self.at += 1;
                    return Some(TagName { name: self.tag_name(), end: false, bit: 0 });
                }
                _ => self.at += 1,
            }
        }
    }

    /// Reads the attributes of the tag that `tag` returned, in order, duplicates included: the first one counts. A
    /// name and a raw value; without `=` the value is empty. Returns whether the tag closes itself (`/>`), or `None`
    /// when the file ends inside the tag, which makes it no tag at all.
    pub fn attributes(&mut self, mut each: impl FnMut(&'a [u8], &'a [u8])) -> Option<bool> {
        loop {
            // Before attribute name state.
            self.skip_space();
            match *self.rest().first()? {
                b'>' => {
                    self.at += 1;
                    return Some(false);
                }
                // Self-closing start tag state.
                b'/' => {
                    self.at += 1;
                    if *self.rest().first()? == b'>' {
                        self.at += 1;
                        return Some(true);
                    }
                }
                _ => {
                    let (name, value) = self.attribute()?;
                    each(name, value);
                }
            }
        }
    }

    /// Skips the content of the raw text element `name` whose start tag was just read; its end tag is the next.
    pub fn skip_raw_text(&mut self, name: &[u8], kind: RawText) {
        match kind {
            RawText::Plaintext => self.at = self.bytes.len(),
            RawText::Plain => self.skip_plain(name),
            RawText::Script => self.skip_script(name),
        }
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Moves to what `find` finds in the rest, or to the end.
    fn skip_to(&mut self, find: impl FnOnce(&[u8]) -> Option<usize>) -> Option<()> {
        let found = find(self.rest());
        self.at = found.map_or(self.bytes.len(), |offset| self.at + offset);
        found.map(|_| ())
    }

    /// Moves behind the next `>` that is at least `skip` bytes away, or to the end.
    fn skip_past_gt(&mut self, skip: usize) {
        self.at = (self.at + skip).min(self.bytes.len());
        if self.skip_to(|bytes| memchr(b'>', bytes)).is_some() {
            self.at += 1;
        }
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.iter().position(|byte| !is_space(*byte)).unwrap_or(rest.len());
    }

    /// Tag name state: up to space, `/` or `>`.
    fn tag_name(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let length = rest.iter().position(|byte| ends_tag_name(*byte)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Attribute name state to after attribute value state; `None` at the end of the file.
    fn attribute(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let rest = self.rest();
        // A name may start with `=`.
        let more = rest.iter().skip(1).position(|byte| ends_tag_name(*byte) || *byte == b'=');
        let length = 1 + more?;
        let name = rest.get(..length)?;
        self.at += length;
        // After attribute name state.
        self.skip_space();
        if *self.rest().first()? != b'=' {
            return Some((name, b""));
        }
        self.at += 1;
        // Before attribute value state.
        self.skip_space();
        let value = match *self.rest().first()? {
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                let rest = self.rest();
                self.skip_to(|bytes| memchr(quote, bytes))?;
                let value = rest.get(..rest.len() - self.rest().len())?;
                self.at += 1;
                value
            }
            _ => {
                // Unquoted: up to space or `>`, which may be here already.
                let rest = self.rest();
                let length = rest.iter().position(|byte| is_space(*byte) || *byte == b'>')?;
                self.at += length;
                rest.get(..length)?
            }
        };
        Some((name, value))
    }

    /// At `<!`: a comment, a document type or anything else. All but comments and CDATA sections end at the next `>`,
    /// a document type's quoted identifiers too.
    fn markup_declaration(&mut self, foreign: bool) {
        let rest = self.rest();
        if rest.starts_with(b"<!--") {
            self.comment();
        } else if foreign && rest.starts_with(b"<![CDATA[") {
            self.cdata_section();
        } else {
            self.skip_past_gt(2);
        }
    }

    /// Here, behind the `<!--`: `-->` and `--!>` end a comment; and so do `>` and `->` at its very start.
    fn comment(&mut self) {
        const OPEN: usize = 4;
        let start = self.at;
        self.at += OPEN;
        while self.skip_to(|bytes| memchr(b'>', bytes)).is_some() {
            let inside = self.bytes.get(start + OPEN..self.at).unwrap_or_default();
            self.at += 1;
            if matches!(inside, b"" | b"-") || inside.ends_with(b"--") || inside.ends_with(b"--!") {
                return;
            }
        }
    }

    /// CDATA section state: up to `]]>`.
    fn cdata_section(&mut self) {
        const OPEN: usize = 9;
        let start = self.at + OPEN;
        self.at = start;
        while self.skip_to(|bytes| memchr(b'>', bytes)).is_some() {
            let inside = self.bytes.get(start..self.at).unwrap_or_default();
            self.at += 1;
            if inside.ends_with(b"]]") {
                return;
            }
        }
    }

    /// RCDATA and RAWTEXT states.
    fn skip_plain(&mut self, name: &[u8]) {
        while self.skip_to(|bytes| memchr(b'<', bytes)).is_some() {
            if is_tag(self.rest(), b"</", name) {
                return;
            }
            self.at += 1;
        }
    }

    /// Script data states. `<!--` escapes, `-->` ends that; inside, `<script` escapes a second time, and then
    /// `</script` goes back by one level instead of ending the element.
    fn skip_script(&mut self, name: &[u8]) {
        const NAME: &[u8] = b"script";
        let mut escape = Escape::No;
        // Behind the `<!` of the escape: its own dashes may be those of `-->`.
        let mut escape_start = self.at;
        loop {
            let found = match escape {
                Escape::No => self.skip_to(|bytes| memchr(b'<', bytes)),
                _ => self.skip_to(|bytes| memchr2(b'<', b'>', bytes)),
            };
            if found.is_none() {
                return;
            }
            let rest = self.rest();
            let opening = rest.first() == Some(&b'<');
            match escape {
                Escape::No if is_tag(rest, b"</", name) => return,
                Escape::No if rest.starts_with(b"<!--") => {
                    escape = Escape::Once;
                    escape_start = self.at + 2;
                    self.at += 3;
                }
                Escape::No => {}
                _ if !opening => {
                    if self.bytes.get(escape_start..self.at).unwrap_or_default().ends_with(b"--") {
                        escape = Escape::No;
                    }
                }
                Escape::Once if is_tag(rest, b"</", name) => return,
                Escape::Once if is_tag(rest, b"<", NAME) => escape = Escape::Twice,
                Escape::Twice if is_tag(rest, b"</", NAME) => escape = Escape::Once,
                Escape::Once | Escape::Twice => {}
            }
            self.at += 1;
        }
    }
}

/// Script data states (sections 13.2.5.4, 13.2.5.20, 13.2.5.27).
#[derive(Clone, Copy)]
enum Escape {
    No,
    Once,
    Twice,
}

/// Whether `bytes` start with `open`, `name` without case, and a byte that ends a tag name.
fn is_tag(bytes: &[u8], open: &[u8], name: &[u8]) -> bool {
    let Some(bytes) = bytes.strip_prefix(open) else { return false };
    let Some((start, rest)) = bytes.split_at_checked(name.len()) else { return false };
    start.eq_ignore_ascii_case(name) && rest.first().is_some_and(|byte| ends_tag_name(*byte))
}
