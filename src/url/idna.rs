//! The cost of reading a reference's host if it is an internationalized name.
//!
//! Decides: a host outside ASCII, with an escape or with `xn--` is mapped, normalized and coded (UTS #46), which
//! takes a microsecond and some 30 ns a byte; a label of 900 letters takes time quadratic in its length, 700 µs. So
//! the work is counted in bytes, and a long label counts for more than its length.
//! Invariants: at least the parser's work; 0 for a reference without such a host, unless line breaks hide it.

/// The bytes that the host of `reference` counts for: 0 if it is plain or missing.
#[inline]
pub fn idna_bytes(reference: &str) -> usize {
    let text = reference.as_bytes();
    // Most references are a path, or begin with a plain host.
    let is_plain = match text {
        [b'/', second, ..] => !is_slash(second) && !is_break(second),
        [b'h', b't', b't', b'p', b':', b'/', b'/', rest @ ..]
        | [b'h', b't', b't', b'p', b's', b':', b'/', b'/', rest @ ..] => begins_plain(rest),
        _ => false,
    };
    if is_plain { 0 } else { host(text).map_or(0, host_bytes) }
}

/// Whether `text` begins with a host that consists only of letters, digits and the like.
fn begins_plain(text: &[u8]) -> bool {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'.' | b':'))
        .unwrap_or(text.len());
    end > 0 && matches!(text.get(end), None | Some(b'/' | b'?' | b'#'))
}

/// The part of a reference that contains its host; `None` for most, which are relative.
fn host(text: &[u8]) -> Option<&[u8]> {
    let text = text.get(text.iter().position(|byte| *byte > b' ')?..)?;
    let start = text.get(..SCHEME_BYTES_MAX).unwrap_or(text);
    let behind_scheme = match start {
        [first, second, ..] if is_slash(first) && (is_slash(second) || is_break(second)) => text,
        [b'/' | b'\\' | b'?' | b'#', ..] => return None,
        _ if start.iter().any(is_break) => return Some(text),
        _ => text.get(start.iter().position(|byte| *byte == b':')? + 1..)?,
    };
    let slashes = behind_scheme.iter().take_while(|byte| is_slash(byte)).count();
    let rest = behind_scheme.get(slashes..)?;
    let end = rest.iter().position(|byte| is_slash(byte) || matches!(byte, b'?' | b'#'));
    let host = rest.get(..end.unwrap_or(rest.len()))?;
    // The parser removes line breaks anywhere: the host may continue behind them.
    if host.iter().any(is_break) { Some(text) } else { Some(host) }
}

fn is_slash(byte: &u8) -> bool {
    matches!(byte, b'/' | b'\\')
}

fn host_bytes(host: &[u8]) -> usize {
    let has = |is: fn(&u8) -> bool| host.iter().any(is);
    let has_ace = || host.windows(4).any(|four| four.eq_ignore_ascii_case(b"xn--"));
    let is_coded = has(|byte| matches!(byte, b'%' | 0x80..)) || has(|byte| *byte == b'-') && has_ace();
    if !is_coded {
        return 0;
    }
    let labels = host.split(|byte| *byte == b'.').map(|label| label.len().saturating_mul(label.len()) / SQUARE_BYTES);
    HOST_BYTES + host.len() + labels.sum::<usize>()
}

fn is_break(byte: &u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r')
}

/// Of `https:`, and some more.
const SCHEME_BYTES_MAX: usize = 8;
/// What each such host counts for on top of its bytes.
const HOST_BYTES: usize = 16;
/// A label of this many bytes counts twice.
const SQUARE_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_count() {
        for (reference, expected) in [
            ("x", 0),
            ("/ü/%C3", 0),
            ("?ü", 0),
            ("ü:x", 0),
            ("http://a.test/ü%20xn--", 0),
            ("//a.test/ü", 0),
            ("http://ü.test/x", 16 + 7),
            (" HTTP:\\\\ü.test?ü", 16 + 7),
            ("//%C3%BC", 16 + 6),
            ("https:/ü", 16 + 2),
            ("ht\ntp://ü", 16 + 10),
            ("http://XN--a", 16 + 5),
            ("http://a--b", 0),
            ("/\t/ü", 16 + 5),
        ] {
            assert_eq!(idna_bytes(reference), expected, "{reference:?}");
        }
        assert_eq!(idna_bytes(&format!("//{}.é", "é".repeat(256))), 16 + 512 + 3 + 4 * 256);
    }

    /// No URL host that had to be coded counts for nothing.
    #[test]
    fn no_host_escapes() {
        const PARTS: [&str; 16] = [
            "http:", "https:", "/", "\\", "//", "ü", "a.test", "\t", " ", "\n", "%C3%BC", "xn--tda", "@", ":8", "?",
            "ftp:",
        ];
        let mut rng = ringcrawl_base::Rng::new(1);
        let base = url::Url::parse("http://base.test/d/p").expect("a URL");
        let mut coded = 0;
        for _ in 0..50_000 {
            let reference: String = (0..rng.below(6)).map(|_| *rng.pick(&PARTS)).collect();
            let Ok(url) = base.join(&reference) else { continue };
            if matches!(url.scheme(), "http" | "https" | "ftp")
                && url.host_str().is_some_and(|host| host.contains("xn--"))
            {
                assert!(idna_bytes(&reference) > 0, "{reference:?} is {url}");
                coded += 1;
            }
        }
        assert!(coded > 1_000, "{coded}");
    }
}
