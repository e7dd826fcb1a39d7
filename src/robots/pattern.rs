//! The patterns of Allow and Disallow lines, and the form in which paths are compared with them.
//!
//! Decides: paths and patterns are normalized to one form (RFC 9309 section 2.2.2), then compared byte by byte:
//!
//! - `%XX` of an unreserved character is that character; every other escape is written with upper-case digits;
//! - characters that no URL contains raw (controls, space, `"<>\^{|}` and the grave accent, all beyond ASCII) are
//!   escaped;
//! - reserved characters that never divide a path or query (`!$'(),:@[]` and a literal `*`) are equal to their
//!   escapes, as in the RFC's figures 4 and 6; `/ ? # & = + ;` and `%` itself are not, but a slash in a query is
//!   equal to `%2F` again (figure 4);
//! - a literal `*` becomes the byte 1, so that `*` in a pattern is always the wildcard.
//!
//! Wildcards are matched leftmost, without backtracking: since `*` is the only wildcard, any match implies a leftmost
//! match, so a pattern costs one pass over the path however many stars it has.
//!
//! Invariants: a byte 1 in normalized text is a literal star; the original spelling makes no difference.

use std::borrow::Cow;

use memchr::memmem;

use ringcrawl_base::fuel::{Fuel, SEARCH_COST};

/// A `*` that is not a wildcard. Controls are always escaped, so the byte is free.
const LITERAL_STAR: u8 = 1;

/// A pattern in the form that `matches` reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pattern {
    pub text: Vec<u8>,
    /// Ended with `$`, which is not in `text`.
    pub anchored: bool,
    /// Has a `?`: the rest is in a query, and `text` is folded as `fold_query` does.
    pub has_query: bool,
}

impl Pattern {
    /// Reads the value of an Allow or Disallow line; `None` when it can match no path.
    pub fn new(value: &[u8]) -> Option<Pattern> {
        if !value.starts_with(b"/") && !value.starts_with(b"*") {
            return None;
        }
        let (value, anchored) = match value.strip_suffix(b"$") {
            Some(value) => (value, true),
            None => (value, false),
        };
        let mut text = Vec::with_capacity(value.len());
        write_normalized(value, Side::Pattern, &mut text);
        let has_query = text.contains(&b'?');
        if let Cow::Owned(folded) = fold_query(&text) {
            text = folded;
        }
        Some(Pattern { text, anchored, has_query })
    }

    /// Octets, which determine the most specific match (RFC 9309 section 2.2.2); wildcard and `$` count one each.
    pub fn weight(&self) -> usize {
        self.text.len() + usize::from(self.anchored)
    }
}

/// A path (with its query) in the compared form.
pub(super) fn normalize(path: &[u8]) -> Cow<'_, [u8]> {
    if path.iter().all(|byte| is_plain(*byte)) {
        return Cow::Borrowed(path);
    }
    let mut text = Vec::with_capacity(path.len() + 16);
    write_normalized(path, Side::Path, &mut text);
    Cow::Owned(text)
}

/// The same with `%2F` behind the first `?` as a slash.
pub(super) fn fold_query(path: &[u8]) -> Cow<'_, [u8]> {
    const SLASH: &[u8] = b"%2F";
    let Some(query) = memchr::memchr(b'?', path) else { return Cow::Borrowed(path) };
    let Some((head, mut rest)) = path.split_at_checked(query) else { return Cow::Borrowed(path) };
    if memmem::find(rest, SLASH).is_none() {
        return Cow::Borrowed(path);
    }
    let mut folded = head.to_vec();
    while let Some((before, after)) = memmem::find(rest, SLASH).and_then(|at| rest.split_at_checked(at)) {
        folded.extend_from_slice(before);
        folded.push(b'/');
        rest = after.get(SLASH.len()..).unwrap_or_default();
    }
    folded.extend_from_slice(rest);
    Cow::Owned(folded)
}

/// Whether the path begins with the pattern; also `false` if there is not enough `work` left to find out.
pub(super) fn matches(pattern: &[u8], anchored: bool, path: &[u8], fuel: &mut Fuel) -> bool {
    let Some(star) = memchr::memchr(b'*', pattern) else {
        return if anchored { path == pattern } else { path.starts_with(pattern) };
    };
    let Some((head, stars)) = pattern.split_at_checked(star) else { return false };
    let Some(mut rest) = path.strip_prefix(head) else { return false };
    // `stars` begins with a star, so the first part is empty.
    let mut parts = stars.split(|byte| *byte == b'*').peekable();
    while let Some(part) = parts.next() {
        if anchored && parts.peek().is_none() {
            return rest.ends_with(part);
        }
        if part.is_empty() {
            continue;
        }
        let found = memmem::find(rest, part);
        let after = found.map(|at| at + part.len());
        if !fuel.spend(SEARCH_COST + after.unwrap_or(rest.len()) as u64) {
            return false;
        }
        let Some(behind) = after.and_then(|after| rest.get(after..)) else { return false };
        rest = behind;
    }
    true
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Path,
    Pattern,
}

fn write_normalized(source: &[u8], side: Side, text: &mut Vec<u8>) {
    let mut rest = source;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let Some((&[high, low], behind)) = after.split_first_chunk::<2>() else {
                text.push(byte);
                continue;
            };
            let (Some(high), Some(low)) = (hex_digit(high), hex_digit(low)) else {
                text.push(byte);
                continue;
            };
            rest = behind;
            match high << 4 | low {
                b'*' => text.push(LITERAL_STAR),
                decoded if is_equal_to_its_escape(decoded) => text.push(decoded),
                decoded => push_escape(decoded, text),
            }
        } else if byte == b'*' && side == Side::Path {
            text.push(LITERAL_STAR);
        } else if is_never_raw(byte) || (byte >= 0x80 && side == Side::Pattern) {
            push_escape(byte, text);
        } else {
            // A path's byte beyond ASCII stays raw: the pattern's are escaped, so it equals none.
            text.push(byte);
        }
    }
}

/// Neither changed by normalizing nor part of an escape that is.
fn is_plain(byte: u8) -> bool {
    !matches!(byte, b'%' | b'*') && !is_never_raw(byte)
}

fn is_never_raw(byte: u8) -> bool {
    byte <= b' ' || matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x7F)
}

fn is_equal_to_its_escape(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'.' | b'_' | b'~') // unreserved, RFC 3986 section 2.3
        || matches!(byte, b'!' | b'$' | b'\'' | b'(' | b')' | b',' | b':' | b'@' | b'[' | b']')
}

fn push_escape(byte: u8, text: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    text.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    fn matches(pattern: &[u8], anchored: bool, path: &[u8]) -> bool {
        super::matches(pattern, anchored, path, &mut Fuel::new(u64::MAX))
    }

    fn is_match(value: &str, path: &str) -> bool {
        let path = normalize(path.as_bytes());
        Pattern::new(value.as_bytes()).is_some_and(|pattern| {
            let path = if pattern.has_query { fold_query(&path) } else { Cow::Borrowed(path.as_ref()) };
            matches(&pattern.text, pattern.anchored, &path)
        })
    }

    #[test]
    fn what_matches() {
        for (value, path, expected) in [
            ("/", "/", true),
            ("/a", "/A", false),
            ("/a$", "/a", true),
            ("/a$", "/ab", false),
            ("/$a", "/$ab", true),
            ("/a*$", "/abc", true),
            ("/*.php$", "/x.php.php", true),
            ("/*.php$", "/x.php?", false),
            ("/a*b*c", "/a--b--b--c", true),
            ("/a*bb$", "/ab", false),
            ("/ab*b$", "/ab", false),
            ("*", "", true),
            ("**/x", "/y/x", true),
            ("x", "/x", false),
            ("", "/x", false),
            ("/%62%61%7A", "/baz", true),
            ("/baz", "/%62%61%7a", true),
            ("/ツ", "/%E3%83%84", true),
            ("/%e3%83%84", "/%E3%83%84", true),
            ("/file-%2A.html", "/file-*.html", true),
            ("/file-%2A.html", "/file-%2a.html", true),
            ("/file-%2A.html", "/file-b.html", false),
            ("/foo-%24", "/foo-$x", true),
            ("/foo-$x", "/foo-%24x", true),
            ("/foo-%24", "/foo-", false),
            ("/a%2Fb", "/a/b", false),
            ("/a%2fb", "/a%2Fb", true),
            ("/a?u=https://foo.bar", "/a?u=https%3A%2F%2Ffoo.bar", true),
            ("/a?u=https%3a%2f%2ffoo.bar", "/a?u=https://foo.bar", true),
            ("/*u=%2Fx", "/a?u=%2Fx", true),
            ("/a?b%26c", "/a?b&c", false),
            ("/a b", "/a%20b", true),
            ("/{x}", "/%7Bx%7D", true),
            ("/100%", "/100%", true),
            ("/%zz", "/%zz", true),
            ("/%$", "/%25", false),
            ("/f[a]", "/f%5Ba%5D", true),
            ("/\u{1}", "/*", false),
        ] {
            assert_eq!(is_match(value, path), expected, "{value} {path}");
        }
    }

    /// The set of all positions that a pattern can have reached: Google's method, and obviously correct.
    fn matches_slowly(pattern: &[u8], anchored: bool, path: &[u8]) -> bool {
        let mut reached = vec![0];
        for byte in pattern {
            reached = match byte {
                b'*' => (reached.first().copied().unwrap_or(usize::MAX)..=path.len()).collect(),
                _ => reached.into_iter().filter(|at| path.get(*at) == Some(byte)).map(|at| at + 1).collect(),
            };
        }
        if anchored { reached.contains(&path.len()) } else { !reached.is_empty() }
    }

    #[test]
    fn against_the_slow_twin() {
        let mut rng = Rng::new(1);
        let mut matched = 0;
        for _ in 0..200_000 {
            let pattern: Vec<u8> = (0..rng.below(9)).map(|_| *rng.pick(b"**aab/")).collect();
            let path: Vec<u8> = (0..rng.below(12)).map(|_| *rng.pick(b"aab/")).collect();
            let anchored = rng.percent(50);
            let expected = matches_slowly(&pattern, anchored, &path);
            assert_eq!(matches(&pattern, anchored, &path), expected, "{pattern:?} {anchored} {path:?}");
            matched += usize::from(expected);
        }
        assert!((20_000..180_000).contains(&matched), "{matched}");
    }

    /// Escaping a character that equals its escape changes nothing, on either side.
    #[test]
    fn spellings_do_not_show() {
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            let (mut raw, mut escaped) = (vec![b'/'], vec![b'/']);
            for _ in 0..10 {
                let byte = *rng.pick(b"aZ9-_~$,:@!'()[]");
                raw.push(byte);
                match rng.below(3) {
                    0 => escaped.extend(format!("%{byte:02x}").bytes()),
                    1 => escaped.extend(format!("%{byte:02X}").bytes()),
                    _ => escaped.push(byte),
                }
            }
            assert_eq!(normalize(&raw), normalize(&escaped), "{}", escaped.escape_ascii());
            raw.push(b'x'); // a dollar at the end would be an anchor
            escaped.push(b'x');
            assert_eq!(Pattern::new(&raw), Pattern::new(&escaped), "{}", escaped.escape_ascii());
        }
    }

    #[test]
    fn many_stars_are_not_exponential() {
        let pattern = [b"/".as_slice(), b"*a".repeat(8_000).as_slice(), b"b"].concat();
        assert!(!matches(&pattern, false, &[b"/".as_slice(), &b"a".repeat(60_000)].concat()));
    }
}
