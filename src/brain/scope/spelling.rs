//! One spelling of paths and queries that can be written in several ways.
//!
//! Decides: `%XX` of a printable character that separates parts of neither path nor query is that character; every
//! other escape has upper-case digits; in a query `%2F` is a slash. A path and its `%70ath` are one resource (RFC
//! 3986 section 6.2.2). The author of a link chooses the spelling, so what is blocked or denied must not depend on
//! it. The same spellings are equal as in robots.txt (`robots::pattern`), where a `*` must also be distinguished from
//! the wildcard.
//! Invariants: pure, linear; a text without `%`, as in nearly all URLs, is left unchanged.

use std::borrow::Cow;

/// A URL, or its path and query, in this spelling.
pub fn plain(text: &str) -> Cow<'_, str> {
    match memchr::memchr(b'%', text.as_bytes()) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(respelled(text, false)),
    }
}

/// A user's pattern for a path, or for a query, in this spelling. Characters outside printable ASCII are
/// percent-encoded in URLs.
pub fn of_pattern(text: &str, is_query: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' => encoded.push(char::from(byte)),
            _ => push_escape(byte, &mut encoded),
        }
    }
    respelled(&encoded, is_query)
}

fn respelled(text: &str, mut is_query: bool) -> String {
    let mut spelled = String::with_capacity(text.len());
    for (index, piece) in text.split('%').enumerate() {
        let mut rest = piece;
        if index > 0 {
            match piece.split_at_checked(2).and_then(|(digits, behind)| Some((escaped(digits)?, behind))) {
                Some((byte, behind)) => {
                    rest = behind;
                    if is_equal_to_its_escape(byte) || byte == b'/' && is_query {
                        spelled.push(char::from(byte));
                    } else {
                        push_escape(byte, &mut spelled);
                    }
                }
                // It stands for itself, as servers treat it.
                None => spelled.push('%'),
            }
        }
        spelled.push_str(rest);
        is_query |= rest.contains('?');
    }
    spelled
}

/// The byte of an escape's two digits.
fn escaped(digits: &str) -> Option<u8> {
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    are_digits.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

fn is_equal_to_its_escape(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b'&' | b'=' | b'+' | b';' | b'%')
}

fn push_escape(byte: u8, text: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |four: u8| HEX.get(usize::from(four)).map_or('0', |digit| char::from(*digit));
    text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_robots::Rules;

    #[test]
    fn spellings() {
        for (text, expected) in [
            ("https://a.test/private", "https://a.test/private"),
            ("https://a.test/%70rivate", "https://a.test/private"),
            ("/%7Euser/%7euser/~user", "/~user/~user/~user"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/a%2fb%3F%23?c=%2fd%26%3D%2B", "/a%2Fb%3F%23?c=/d%26%3D%2B"),
            ("/%28%2A%7c%5C", "/(*|\\"),
            ("/%2570%25", "/%2570%25"),
            ("/100%/%zz%+5%7", "/100%/%zz%+5%7"),
            ("%", "%"),
        ] {
            assert_eq!(plain(text), expected, "{text}");
            assert_eq!(plain(&plain(text)), expected, "{text}");
        }
        assert_eq!(of_pattern("/straße \"x\"%41", false), "/stra%C3%9Fe%20\"x\"A");
        assert_eq!((of_pattern("a%2Fb", true), of_pattern("a%2Fb", false)), ("a/b".to_owned(), "a%2Fb".to_owned()));
    }

    /// Two paths are equal here if they are equal in robots.txt.
    #[test]
    fn what_is_equal_is_equal_in_robots_txt() {
        let spellings: Vec<String> = (0..=u8::MAX)
            .flat_map(|byte| [format!("%{byte:02x}"), format!("%{byte:02X}")])
            // As in a parsed URL; the dollar at the end of a rule is an anchor.
            .chain("!'(),-.0A_a~:@[]/&=+;|".chars().map(String::from))
            .collect();
        for head in ["/x", "/x?y"] {
            for rule in &spellings {
                let rule = format!("{head}{rule}");
                let rules = Rules::parse(format!("User-agent: *\nDisallow: {rule}$\n").as_bytes(), "a", 1 << 10);
                for path in &spellings {
                    let path = format!("{head}{path}");
                    assert_eq!(plain(&rule) == plain(&path), !rules.allows(&path), "{rule} {path}");
                }
            }
        }
    }
}
