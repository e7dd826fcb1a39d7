//! Texts that every match of a pattern contains, under which its rule is indexed.
//!
//! Decides: a text that most URLs contain is useless. From a regex only mandatory literal letters count: parts
//! repeated at least once, but no branch of an alternation.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind};

/// Shorter texts appear in too many URLs.
const LITERAL_BYTES_MIN: usize = 3;
/// The beginnings of most URLs.
const COMMON: [&str; 2] = ["https://www.", "http://www."];

/// Returns `text` if it separates URLs.
pub fn useful(text: &[u8]) -> Option<&[u8]> {
    let is_common = |common: &&str| memchr::memmem::find(common.as_bytes(), text).is_some();
    (text.len() >= LITERAL_BYTES_MIN && !COMMON.iter().any(is_common)).then_some(text)
}

/// The longest useful text that every match of the regex contains.
pub fn of_regex(pattern: &str) -> Option<Vec<u8>> {
    let hir = ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern).ok()?;
    let mut longest = Vec::new();
    // Adjacent parts may form one text: "a(b)c".
    let mut now = Vec::new();
    walk(&hir, &mut now, &mut longest);
    take(&mut now, &mut longest);
    useful(&longest).map(<[u8]>::to_vec)
}

/// Adds what every match of `hir` contains to `now`, the text that ends here.
fn walk(hir: &Hir, now: &mut Vec<u8>, longest: &mut Vec<u8>) {
    match hir.kind() {
        HirKind::Literal(literal) => now.extend_from_slice(&literal.0),
        HirKind::Concat(parts) => parts.iter().for_each(|part| walk(part, now, longest)),
        HirKind::Capture(capture) => walk(&capture.sub, now, longest),
        HirKind::Repetition(repetition) if repetition.min > 0 => {
            take(now, longest);
            walk(&repetition.sub, now, longest);
            take(now, longest);
        }
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Class(_) | HirKind::Repetition(_) | HirKind::Alternation(_) => take(now, longest),
    }
}

/// A text ends.
fn take(now: &mut Vec<u8>, longest: &mut Vec<u8>) {
    if now.len() > longest.len() && useful(now).is_some() {
        std::mem::swap(now, longest);
    }
    now.clear();
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    #[test]
    fn texts_of_regexes() {
        for (pattern, text) in [
            ("/calendar/[0-9]+", Some("/calendar/")),
            ("^https?://[^/]+/forum/", Some("/forum/")),
            ("a(bc)d", Some("abcd")),
            ("(abcd)+e", Some("abcd")),
            ("(abcd)*efg", Some("efg")),
            ("(abcd)?", None),
            ("abc|def", None),
            ("(?i)forum", None),
            ("^https://www", None),
        ] {
            let found = of_regex(pattern).map(|text| String::from_utf8(text).unwrap());
            assert_eq!(found.as_deref(), text, "{pattern}");
        }
    }

    /// Whatever a random regex matches contains its text.
    #[test]
    fn whatever_matches_has_the_text() {
        let mut rng = Rng::new(3);
        let (mut checked, mut known) = (0, 0);
        for _ in 0..20_000 {
            let parts = ["abc", "[ab]", "(", ")", "*", "+", "?", "|", "^", "$", "{2}", "cab", ".", "\\b", "(?:"];
            let pattern: String = (0..1 + rng.below(7)).map(|_| *rng.pick(&parts)).collect();
            let Ok(regex) = regex::bytes::RegexBuilder::new(&pattern).unicode(false).build() else { continue };
            let Some(text) = of_regex(&pattern) else { continue };
            known += 1;
            for _ in 0..20 {
                let url: String = (0..rng.below(16)).map(|_| char::from(*rng.pick(b"abc"))).collect();
                if regex.is_match(url.as_bytes()) {
                    checked += 1;
                    assert!(memchr::memmem::find(url.as_bytes(), &text).is_some(), "{pattern} {url} {text:?}");
                }
            }
        }
        assert!(known > 1_000 && checked > 1_000, "{known} {checked}");
    }
}
