//! What is open around the outermost SVG or MathML element.
//!
//! Decides: an end tag of an HTML element ends what is foreign inside of it, too: so does the `</div>` of a page that
//! forgets its `</svg>` (WHATWG HTML section 13.2.6.5, "any other end tag"). There is no tree that could tell whether such
//! an element is open. So, when one has to know, the tags of that name are counted in all that stands before.
//!
//! Limits: tags are taken as they look, in comments and scripts too; only the first `COUNTS_MAX` questions of a page are
//! answered, which keeps time linear.

use super::super::tokenizer::ends_name;

/// Answers for one page: what a page needs that forgets its `</svg>` now and then.
const COUNTS_MAX: usize = 8;
/// Longest name that is counted.
const NAME_BYTES_MAX: usize = 64;

/// Where what is foreign begins, and how often it was asked what is around it.
#[derive(Clone, Default)]
pub(super) struct Around {
    foreign_at: usize,
    counts: usize,
}

impl Around {
    /// The outermost foreign element begins before `at`.
    pub fn begin(&mut self, at: usize) {
        self.foreign_at = at;
    }

    /// Whether an HTML element of that name is open around it, as far as its tags tell.
    pub fn is_open(&mut self, page: &[u8], name: &[u8]) -> bool {
        if self.counts == COUNTS_MAX || name.len() > NAME_BYTES_MAX {
            return false;
        }
        self.counts += 1;
        let before = page.get(..self.foreign_at).unwrap_or_default();
        let mut open = 0_usize;
        for at in memchr::memchr_iter(b'<', before) {
            let tag = before.get(at + 1..).unwrap_or_default();
            let (own, behind) = tag.strip_prefix(b"/").unwrap_or(tag).split_at_checked(name.len()).unwrap_or_default();
            if !own.eq_ignore_ascii_case(name) || !behind.first().is_some_and(|byte| ends_name(*byte)) {
                continue;
            }
            if tag.starts_with(b"/") {
                open = open.saturating_sub(1);
            } else if !behind.split(|byte| *byte == b'>').next().is_some_and(|inside| inside.ends_with(b"/")) {
                // Not `<path/>`, of another foreign element.
                open += 1;
            }
        }
        open > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_open(before: &str, name: &str) -> bool {
        let mut around = Around::default();
        around.begin(before.len());
        around.is_open(format!("{before}<div>").as_bytes(), name.as_bytes())
    }

    #[test]
    fn tags_are_counted() {
        for open in
            ["<div>", "<DIV class=x>", "</div><div>", "<div><div></div>", "<div/x>", "<div ", "<div><divx></divx>"]
        {
            assert!(is_open(open, "div") && is_open(open, "Div"), "{open}");
        }
        for closed in
            ["", "<div", "<div></div>", "<div></DIV >", "<div/>", "<div x/>", "< div>", "<divs>", "div>", "</div>"]
        {
            assert!(!is_open(closed, "div"), "{closed}");
        }
        assert!(is_open(&format!("<{}>", "x".repeat(64)), &"x".repeat(64)));
        assert!(!is_open(&format!("<{}>", "x".repeat(65)), &"x".repeat(65)));
    }
}
