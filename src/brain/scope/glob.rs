//! Patterns in which `*` stands for any bytes, including none, and everything else for itself.
//!
//! Decides: there is no other wildcard, as in robots.txt, so only a star needs to be escaped: `%2A`.
//! Invariants: time linear in the text for each piece between stars.

use memchr::memmem;

use super::spelling;

/// A pattern for a whole text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Glob {
    /// The pieces between the stars: at least one; the first and the last are anchored at the text's ends.
    pieces: Box<[Box<[u8]>]>,
}

impl Glob {
    /// Parses a pattern of paths, or of queries.
    pub fn new(pattern: &str, is_query: bool) -> Glob {
        let piece = |piece| spelling::of_pattern(piece, is_query).into_bytes().into();
        Glob { pieces: pattern.split('*').map(piece).collect() }
    }

    /// Whether the pattern matches the whole of `text`, in one spelling (`spelling`).
    pub fn matches(&self, text: &[u8]) -> bool {
        let Some((first, rest)) = self.pieces.split_first() else { return false };
        let Some((last, between)) = rest.split_last() else { return text == &**first };
        let Some(mut text) = text.strip_prefix(&**first).and_then(|text| text.strip_suffix(&**last)) else {
            return false;
        };
        between.iter().all(|piece| {
            let behind = memmem::find(text, piece).and_then(|at| text.get(at + piece.len()..));
            text = behind.unwrap_or(text);
            behind.is_some()
        })
    }

    /// How many pieces need a search; the others have a fixed position.
    pub fn searches(&self) -> usize {
        self.pieces.len().saturating_sub(2)
    }

    /// The longest text that every match contains.
    pub fn literal(&self) -> &[u8] {
        self.pieces.iter().max_by_key(|piece| piece.len()).map_or(b"", |piece| piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    /// A slow twin: one star after the other, by trying all lengths.
    fn twin(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|at| twin(rest, &text[at..])),
            Some((byte, rest)) => text.first() == Some(byte) && twin(rest, &text[1..]),
        }
    }

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("/forum/*", "/forum/", true),
            ("/forum/*", "/forum/a/b", true),
            ("/forum/*", "/forum", false),
            ("/a", "/a", true),
            ("/a", "/a/", false),
            ("*.php", "/x/index.php", true),
            ("*/calendar/*", "/x/calendar/2026", true),
            ("a*a", "a", false),
            ("/straße/*", "/stra%C3%9Fe/1", true),
            ("*", "", true),
            ("/a%2A*", "/a*b", true),
            ("/a%2A*", "/ab", false),
        ] {
            assert_eq!(Glob::new(pattern, false).matches(text.as_bytes()), expected, "{pattern} {text}");
        }
        assert_eq!(Glob::new("/a/*/longest/*", false).literal(), b"/longest/");
    }

    #[test]
    fn patterns_are_those_of_the_twin() {
        let mut rng = Rng::new(1);
        let mut matched = 0;
        for _ in 0..20_000 {
            let mut word = |letters: &[u8], len: u64| -> String {
                (0..rng.below(len)).map(|_| char::from(*rng.pick(letters))).collect()
            };
            let (pattern, text) = (word(b"ab**", 7), word(b"ab", 9));
            let expected = twin(pattern.as_bytes(), text.as_bytes());
            matched += u32::from(expected);
            assert_eq!(Glob::new(&pattern, false).matches(text.as_bytes()), expected, "{pattern} {text}");
        }
        assert!(matched > 1_000, "{matched}");
    }
}
