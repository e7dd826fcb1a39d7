//! What is skipped as a whole: comments and similar markup, and the content of elements that hold no markup.

use super::super::block::Kernel;
use super::tag_search;
use super::{RawText, Stop, Tokenizer, ends_name};

impl<K: Kernel> Tokenizer<'_, K> {
    /// Skips the content of the raw text element `name` whose start tag was just read; its end tag is the next.
    #[inline(always)]
    pub fn skip_raw_text(&mut self, name: &[u8], kind: RawText) {
        match kind {
            RawText::Plaintext => self.at = self.bytes.len(),
            RawText::Plain => self.skip_plain(name),
            RawText::Script => self.skip_script(name),
        }
    }

    /// At a `<` that begins neither a start nor an end tag; `first` is the byte behind it.
    #[inline(always)]
    pub(super) fn skip_no_tag(&mut self, first: u8, foreign: bool) {
        match first {
            b'!' => self.skip_declaration(foreign),
            // `</>` is nothing, `</ x>` a bogus comment: both end at the next `>`.
            b'/' => self.skip_past_gt(2),
            b'?' => self.skip_past_gt(1),
            _ => self.at += 1,
        }
    }

    /// At `<!`: a comment, a document type or anything else. All but comments and CDATA sections end at the next `>`,
    /// a document type's quoted identifiers too.
    #[inline(always)]
    fn skip_declaration(&mut self, foreign: bool) {
        let rest = self.rest();
        if rest.starts_with(b"<!--") {
            self.skip_comment();
        } else if foreign && rest.starts_with(b"<![CDATA[") {
            self.skip_cdata_section();
        } else {
            self.skip_past_gt(2);
        }
    }

    /// Here, behind the `<!--`: `-->` and `--!>` end a comment; and so do `>` and `->` at its very start.
    #[inline(always)]
    fn skip_comment(&mut self) {
        const OPEN: usize = 4;
        let start = self.at + OPEN;
        self.at = start;
        while self.skip_to(Stop::At(b'>')).is_some() {
            let inside = self.bytes.get(start..self.at).unwrap_or_default();
            self.at += 1;
            if matches!(inside, b"" | b"-") || inside.ends_with(b"--") || inside.ends_with(b"--!") {
                return;
            }
        }
    }

    /// CDATA section state: up to `]]>`.
    #[inline(always)]
    fn skip_cdata_section(&mut self) {
        const OPEN: usize = 9;
        let start = self.at + OPEN;
        self.at = start;
        while self.skip_to(Stop::At(b'>')).is_some() {
            let inside = self.bytes.get(start..self.at).unwrap_or_default();
            self.at += 1;
            if inside.ends_with(b"]]") {
                return;
            }
        }
    }

    /// Moves to the first `</`, or to the first `<` followed by `other`, or to the end.
    #[inline(always)]
    fn skip_to_end_tag(&mut self, other: u8) -> Option<()> {
        let found = tag_search::find_end(self.kernel, self.bytes, self.at, other);
        self.at = found.unwrap_or(self.bytes.len());
        found.map(|_| ())
    }

    /// RCDATA and RAWTEXT states.
    #[inline(always)]
    fn skip_plain(&mut self, name: &[u8]) {
        while self.skip_to_end_tag(b'/').is_some() {
            if is_tag(self.rest(), b"</", name) {
                return;
            }
            self.at += 1;
        }
    }

    /// Script data states. `<!--` escapes, `-->` ends that; inside, `<script` escapes a second time, and then
    /// `</script` goes back by one level instead of ending the element.
    #[inline(always)]
    fn skip_script(&mut self, name: &[u8]) {
        const NAME: &[u8] = b"script";
        let is_end = |rest: &[u8]| if name == NAME { is_script_end(rest) } else { is_tag(rest, b"</", name) };
        let mut escape = Escape::No;
        // Behind the `<!` of the escape: its own dashes may be those of `-->`.
        let mut escape_start = self.at;
        loop {
            let found = match escape {
                Escape::No => self.skip_to_end_tag(b'!'),
                _ => self.skip_to(Stop::Either(b'<', b'>')),
            };
            if found.is_none() {
                return;
            }
            let rest = self.rest();
            let opening = rest.first() == Some(&b'<');
            match escape {
                Escape::No if is_end(rest) => return,
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
                Escape::Once if is_end(rest) => return,
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
    start.eq_ignore_ascii_case(name) && rest.first().is_some_and(|byte| ends_name(*byte))
}

/// The same for `</script`, in one comparison.
#[inline(always)]
fn is_script_end(bytes: &[u8]) -> bool {
    const END: u64 = u64::from_le_bytes(*b"</script");
    /// The bits that distinguish lower-case letters.
    const SMALL: u64 = u64::from_le_bytes([0, 0, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20]);
    let Some((head, rest)) = bytes.split_first_chunk() else { return false };
    u64::from_le_bytes(*head) | SMALL == END && rest.first().is_some_and(|byte| ends_name(*byte))
}
