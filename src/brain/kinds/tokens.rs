//! The tokens of a URL: what it has in common with others of its kind.
//!
//! Decides: a path is its segments; a query is the set of its names and then the values, by name. So `?a=1&b=2` and
//! `?b=3&a=4` are one kind. What counts is the form of a segment or value: numbers are all the same, and so are
//! digests and other long tokens of letters and digits. A word before a colon is a token of its own, as it names a
//! kind in many systems (`Special:`, `user:`).
//! Invariants: pure; linear in the URL's length.
//! Limits: [`TOKENS_MAX`] tokens, [`PARAMETERS_MAX`] parameters; the rest is ignored. Tokens have 32 bits and may
//! collide.

use std::cmp::Reverse;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The tokens of a path and query, at most [`TOKENS_MAX`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokens {
    list: [u32; TOKENS_MAX],
    len: usize,
    has_query: bool,
    is_again: bool,
}

impl Tokens {
    /// The tokens of a canonical path with its query (`Url::path_and_query`).
    pub fn of(path_and_query: &str) -> Tokens {
        let mut tokens = Tokens::default();
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        for segment in path.split('/').filter(|segment| !segment.is_empty()) {
            tokens.push_form(SEGMENT, segment);
        }
        if query.is_empty() {
            return tokens;
        }
        tokens.has_query = true;
        // A deep path must leave room to say that there is a query, and which.
        tokens.len = tokens.len.min(TOKENS_MAX - 2);
        tokens.push(Tokens::QUERY);
        let mut parameters = [("", ""); PARAMETERS_MAX];
        let mut count = 0;
        let all = query.split(['&', ';']).filter(|parameter| !parameter.is_empty());
        for (place, parameter) in parameters.iter_mut().zip(all) {
            *place = parameter.split_once('=').unwrap_or((parameter, ""));
            count += 1;
        }
        let parameters = parameters.get_mut(..count).unwrap_or_default();
        parameters.sort_unstable();
        let names = parameters.iter().fold(0, |hash, (name, _)| xxh3_64_with_seed(name.as_bytes(), hash));
        tokens.push(kind_token(names as u32));
        for (_, value) in parameters.iter() {
            tokens.push_form(VALUE, value);
        }
        tokens
    }

    /// Stands between a path and what its query says.
    pub const QUERY: u32 = u32::MAX - 2;

    /// The same tokens, for a URL about an item with an earlier page.
    pub fn again(self, is_again: bool) -> Tokens {
        Tokens { is_again, ..self }
    }

    /// All tokens in order: first whether the URL's item is new, last an end mark. A URL that ends at a node is of
    /// another kind than those below it.
    pub fn kind(&self) -> impl Iterator<Item = u32> {
        [if self.is_again { AGAIN } else { FRESH }]
            .into_iter()
            .chain(self.list.iter().copied().take(self.len))
            .chain([END])
    }

    /// Whether there is a query.
    pub fn has_query(&self) -> bool {
        self.has_query
    }

    /// Roughly what the URLs of a list have in common: the number of segments, the first of several, and the names of
    /// their parameters.
    pub fn family(&self) -> u32 {
        let path = self.list.iter().take(self.len).take_while(|token| **token != Tokens::QUERY);
        let names = self.list.iter().take(self.len).skip_while(|token| **token != Tokens::QUERY).nth(1);
        let segments = path.clone().count() as u64;
        let first = path.take(usize::from(segments > 1)).fold(0, |_, token| u64::from(*token));
        xxh3_64_with_seed(&(first << 32 | u64::from(names.copied().unwrap_or_default())).to_le_bytes(), segments) as u32
    }

    /// Whether a token names a kind of page: the names of a query's parameters together, or a word before a colon.
    pub fn is_kind(token: u32) -> bool {
        token & KIND_BIT != 0
    }

    /// Whether a token marks an end or a beginning, and is not part of a URL.
    pub fn is_mark(token: u32) -> bool {
        (AGAIN..=END).contains(&token)
    }

    fn push(&mut self, token: u32) {
        if let Some(place) = self.list.get_mut(self.len) {
            *place = token;
            self.len += 1;
        }
    }

    fn push_form(&mut self, kind: u64, text: &str) {
        let colon = (1..=WORD_BYTES_MAX.min(text.len())).find_map(|at| match text.as_bytes().get(at..)? {
            [b':', ..] => Some((at, at + 1)),
            [b'%', b'3', b'A', ..] => Some((at, at + 3)),
            _ => None,
        });
        let mut rest = text;
        if let Some((at, behind)) = colon {
            let (word, after) = (text.get(..at).unwrap_or_default(), text.get(behind..).unwrap_or_default());
            self.push(kind_token(form(kind ^ COLON, word)));
            rest = after;
        }
        self.push(form(kind, rest));
    }
}

/// What a URL is about, as a hash: its longest segment or value that is not a plain word, such as a title, a number
/// or a digest. The pages about one thing (its history, a difference, the page for printing) mostly have that in
/// common.
pub fn item(path_and_query: &str) -> u64 {
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    let values = query.split(['&', ';']).map(|parameter| parameter.split_once('=').map_or("", |(_, value)| value));
    let is_name = |part: &&str| part.bytes().any(|byte| !byte.is_ascii_lowercase() && byte != b'.');
    // The first of the longest ones.
    let longest = path.split('/').chain(values).filter(is_name).min_by_key(|part| Reverse(part.len()));
    xxh3_64(longest.unwrap_or(path_and_query).as_bytes())
}

/// A token that names a kind of page, distinct from the reserved ones.
fn kind_token(hash: u32) -> u32 {
    hash & !(KIND_BIT | 8) | KIND_BIT
}

/// The form of a segment or value, as a token.
fn form(kind: u64, text: &str) -> u32 {
    let bytes = text.as_bytes();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let is_hex = bytes.iter().all(u8::is_ascii_hexdigit);
    let hash = if digits == 0 {
        xxh3_64_with_seed(bytes, kind)
    } else if letters == 0 && digits == bytes.len() {
        xxh3_64_with_seed(b"number", kind ^ COLON)
    } else if is_hex && bytes.len() >= DIGEST_BYTES_MIN
        || letters + digits == bytes.len() && bytes.len() >= TOKEN_BYTES_MIN
    {
        xxh3_64_with_seed(b"digest", kind ^ COLON)
    } else {
        // All numbers in it count as equal.
        let (mut collapsed, mut len, mut before) = ([0u8; FORM_BYTES_MAX], 0, false);
        for byte in bytes {
            let is_digit = byte.is_ascii_digit();
            if is_digit && before {
                continue;
            }
            before = is_digit;
            let Some(place) = collapsed.get_mut(len) else { break };
            *place = if is_digit { b'#' } else { *byte };
            len += 1;
        }
        xxh3_64_with_seed(collapsed.get(..len).unwrap_or_default(), kind)
    };
    // 0 stands for any token.
    (hash as u32 & !KIND_BIT).max(1)
}

/// Tokens of a URL.
const TOKENS_MAX: usize = 13;
/// Parameters of a query that are considered.
const PARAMETERS_MAX: usize = 8;
/// Kinds of tokens: what stands in a path is not a value.
const SEGMENT: u64 = 1;
const VALUE: u64 = 2;
const COLON: u64 = 1 << 32;
/// Distinguishes tokens that name a kind from others.
const KIND_BIT: u32 = 1 << 31;
/// The longest word before a colon.
const WORD_BYTES_MAX: usize = 24;
/// From this many hexadecimal digits on it is a digest.
const DIGEST_BYTES_MIN: usize = 7;
/// From this many letters and digits on it is an opaque token.
const TOKEN_BYTES_MIN: usize = 20;
const FORM_BYTES_MAX: usize = 64;
/// The first token of a kind: whether its item is new or was met before.
const FRESH: u32 = u32::MAX - 3;
const AGAIN: u32 = u32::MAX - 4;
/// The last one.
pub const END: u32 = u32::MAX - 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<u32> {
        let tokens = Tokens::of(text);
        tokens.list.into_iter().take(tokens.len).collect()
    }

    #[test]
    fn urls_of_a_kind_have_one_pattern() {
        for (one, other) in [
            ("/calendar/2026/11/", "/calendar/1999/2/"),
            ("/?p=a.git;a=blob;h=0123abc", "/?a=blob;p=a.git;h=ffe09812"),
            ("/list?sid=0123456789abcdef", "/list?sid=fedcba9876543210"),
            ("/page12.html", "/page3.html"),
            ("/x?id=5", "/x?id=77"),
            ("/a/", "/a"),
            ("/s/AbCdEfGhIjKlMnOpQr12", "/s/1234567890abcdefghijZ"),
        ] {
            assert_eq!(tokens(one), tokens(other), "{one} {other}");
        }
        for (one, other) in [
            ("/calendar/2026/11/", "/articles/2026/11/"),
            ("/?a=blob&h=0123abc", "/?a=tree&h=0123abc"),
            ("/x?id=5", "/x?id=5&page=2"),
            ("/x?id=5", "/x"),
            ("/index.php?title=A&action=history", "/index.php?title=A&action=edit"),
            ("/a/b", "/b/a"),
            ("/a?b=c", "/a/b?c"),
        ] {
            assert_ne!(tokens(one), tokens(other), "{one} {other}");
        }
        // The part before a colon comes first.
        let [special, talk] = ["/wiki/Special:What", "/wiki/Talk:What"].map(tokens);
        assert_eq!((special.len(), special[0], special[2]), (3, talk[0], talk[2]));
        assert_ne!(special[1], talk[1]);
        assert_eq!([0, 1, 2].map(|at| Tokens::is_kind(special[at])), [false, true, false]);
        let is_kind = tokens("/x?id=5").into_iter().map(Tokens::is_kind);
        assert_eq!(is_kind.collect::<Vec<_>>(), [false, true, true, false]);
        assert_eq!(tokens("/wiki/Special%3AWhat"), special);
        assert_eq!(tokens(&"/x".repeat(100)).len(), TOKENS_MAX);
        assert!(tokens("/").is_empty() && tokens("").is_empty());
    }
}
