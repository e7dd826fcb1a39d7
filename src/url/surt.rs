//! The SURT key of a URL: how CDXJ indexes order and look up captures (`com,example)/path?query`).
//!
//! Decides: byte for byte the default output of the Python package `surt` 0.3.1 for the URL, because pywb and similar
//! tools compute it to look up a page; a nicer key would never be found. So scheme, `www.` and `www7.`, letter case,
//! session ids, order of parameters, a trailing slash and repeated percent-coding are all dropped: a key is a coarse
//! name, and two URLs may share one.
//!
//! Invariants: ASCII; linear in the URL's length, except for sorting the parameters and for hostile session ids.
//! Leaves to others: lines and files of the index (`warc`).

use std::borrow::Cow;

use super::{Scheme, Url};

/// The key of `url`.
pub fn surt(url: &Url) -> String {
    let mut key = Vec::with_capacity(url.as_str().len());
    write_surt(url, &mut key);
    // `escape` left only ASCII.
    String::from_utf8(key).unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned())
}

/// Adds the key of `url` to `key`.
pub fn write_surt(url: &Url, key: &mut Vec<u8>) {
    let (path, query) = match url.path_and_query().split_once('?') {
        Some((path, query)) => (path, query),
        None => (url.path_and_query(), ""),
    };
    let host = host_key(url.host());
    if host.is_empty() {
        key.extend_from_slice(if url.scheme() == Scheme::Https { b"https:" } else { b"http:" });
    } else {
        for (index, label) in host.rsplit('.').enumerate() {
            if index > 0 {
                key.push(b',');
            }
            key.extend_from_slice(label.as_bytes());
        }
        if url.port() != url.scheme().default_port() {
            key.extend_from_slice(format!(":{}", url.port()).as_bytes());
        }
        key.push(b')');
    }
    match plain_path(path) {
        Some(plain) => key.extend(plain.bytes().map(|byte| byte.to_ascii_lowercase())),
        None => key.extend_from_slice(&path_key(path)),
    }
    if let Some(query) = query_key(query) {
        key.push(b'?');
        key.extend_from_slice(&query);
    }
}

/// Without brackets, empty labels at the ends, and a leading `www.` with or without digits.
fn host_key(host: &str) -> Cow<'_, str> {
    fn bare(host: &str) -> &str {
        let host = host.trim_matches('.');
        let bare = host.strip_prefix("www").map(|rest| rest.trim_start_matches(|char: char| char.is_ascii_digit()));
        bare.and_then(|rest| rest.strip_prefix('.')).unwrap_or(host)
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.contains("..") {
        true => bare(&host.replace("..", ".")).to_owned().into(),
        false => bare(host).into(),
    }
}

/// The output of `path_key` except for letter case, if that only removes the trailing slash.
fn plain_path(path: &str) -> Option<&str> {
    let is_odd = |byte: u8| !byte.is_ascii_graphic() || matches!(byte, b'%' | b'#' | b'(');
    let mut before = 0;
    for byte in path.bytes() {
        if is_odd(byte) || before == b'/' && matches!(byte, b'/' | b'.') {
            return None;
        }
        before = byte;
    }
    path.strip_prefix('/').map(|rest| if rest.is_empty() { path } else { path.strip_suffix('/').unwrap_or(path) })
}

fn path_key(path: &str) -> Vec<u8> {
    let unescaped = unescape(path.as_bytes());
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in unescaped.split(|byte| *byte == b'/').skip(1) {
        match part {
            b"." => {}
            // At the root the package keeps `..`, and a further one removes it again.
            b".." if kept.pop().is_none() => kept.push(part),
            b".." => {}
            _ => kept.push(part),
        }
    }
    let mut path = Vec::with_capacity(unescaped.len());
    path.push(b'/');
    if let Some((last, folders)) = kept.split_last() {
        for folder in folders.iter().filter(|folder| !folder.is_empty()) {
            path.extend_from_slice(folder);
            path.push(b'/');
        }
        path.extend_from_slice(last);
    }
    let mut path = escape(&path);
    path.make_ascii_lowercase();
    strip_path_session(&mut path, end_of_nested_session);
    strip_path_session(&mut path, end_of_session);
    if path.len() > 1 && path.ends_with(b"/") {
        path.pop();
    }
    path
}

/// `None` if nothing is left of it.
fn query_key(query: &str) -> Option<Vec<u8>> {
    let mut query = escape(&unescape(query.as_bytes()));
    if query.is_empty() {
        return None;
    }
    // The package searches for session ids ignoring case, one kind after the other, before it lowers the case.
    if query.len() >= QUERY_SESSION_BYTES_MIN {
        for (name, values) in QUERY_SESSIONS {
            strip_query_session(&mut query, name, values);
        }
    }
    strip_cold_fusion_session(&mut query);
    query.make_ascii_lowercase();
    let mut parameters: Vec<(&[u8], Option<&[u8]>)> = query
        .split(|byte| *byte == b'&')
        .map(|parameter| match memchr::memchr(b'=', parameter) {
            Some(at) => (parameter.get(..at).unwrap_or_default(), parameter.get(at + 1..)),
            None => (parameter, None),
        })
        .collect();
    parameters.sort_unstable();
    let mut sorted = Vec::with_capacity(query.len());
    for (index, (name, value)) in parameters.into_iter().enumerate() {
        if index > 0 {
            sorted.push(b'&');
        }
        sorted.extend_from_slice(name);
        if let Some(value) = value {
            sorted.push(b'=');
            sorted.extend_from_slice(value);
        }
    }
    (!sorted.is_empty()).then_some(sorted)
}

/// Decodes `%XX` until none is left. Decoding in one pass over a stack gives the same text as pass after pass,
/// and a long `%2525252525…` cannot make it quadratic.
fn unescape(escaped: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(escaped.len());
    for byte in escaped {
        bytes.push(*byte);
        while let Some((rest, &[b'%', high, low])) = bytes.split_last_chunk::<3>() {
            let (Some(high), Some(low)) = (hex_digit(high), hex_digit(low)) else { break };
            let decoded = high << 4 | low;
            bytes.truncate(rest.len());
            bytes.push(decoded);
        }
    }
    bytes
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// Percent-encodes everything except ASCII graphics, and `#` and `%`.
fn escape(bytes: &[u8]) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut escaped = Vec::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_graphic() && !matches!(byte, b'#' | b'%') {
            escaped.push(*byte);
        } else {
            escaped.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
    escaped
}

/// Removes the last `(…)/` of an ASP.NET session from `/…(…)/…​.aspx…`; `session_end` returns its end.
fn strip_path_session(path: &mut Vec<u8>, session_end: fn(&[u8]) -> Option<usize>) {
    const PAGE: &[u8] = b".aspx";
    let Some(last_page) = memchr::memmem::rfind(path, PAGE) else { return };
    let found = memchr::memmem::rfind_iter(path, b"/(").find_map(|slash| {
        let start = slash + 1;
        let end = start + session_end(path.get(start..)?)?;
        // At least one character must follow, then `.aspx`, without a question mark before it.
        let rest = path.get(end..).filter(|_| end < last_page)?;
        let page = 1 + memchr::memmem::find(rest.get(1..)?, PAGE)?;
        memchr::memchr(b'?', rest.get(..page)?).is_none().then_some(start..end)
    });
    if let Some(session) = found {
        path.drain(session);
    }
}

/// `(a(24 letters)b(24 letters)…)/`
fn end_of_nested_session(text: &[u8]) -> Option<usize> {
    let mut rest = text.strip_prefix(b"(")?;
    loop {
        let (kind, after) = rest.split_first()?;
        if !kind.is_ascii_lowercase() {
            return None;
        }
        rest = after.get(end_of_id(after)?..)?;
        if let Some(after) = rest.strip_prefix(b")/") {
            return Some(text.len() - after.len());
        }
    }
}

/// `(24 letters)/`
fn end_of_session(text: &[u8]) -> Option<usize> {
    let end = end_of_id(text)?;
    (text.get(end) == Some(&b'/')).then_some(end + 1)
}

/// `(24 letters or digits)`
fn end_of_id(text: &[u8]) -> Option<usize> {
    let id = text.strip_prefix(b"(")?.get(..25)?.strip_suffix(b")")?;
    id.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()).then_some(26)
}

/// The form of a session id: what comes after its name.
#[derive(Clone, Copy)]
enum SessionValue {
    /// `=` and 32 letters or digits.
    Hex32,
    /// 8 letters, `=`, 24 letters.
    Asp,
}

const QUERY_SESSIONS: [(&[u8], SessionValue); 4] = [
    (b"jsessionid", SessionValue::Hex32),
    (b"phpsessid", SessionValue::Hex32),
    (b"sid", SessionValue::Hex32),
    (b"aspsessionid", SessionValue::Asp),
];

/// The shortest name and its value.
const QUERY_SESSION_BYTES_MIN: usize = 3 + 33;

impl SessionValue {
    /// The length of the value that `text` starts with, when a parameter ends there.
    fn length(self, text: &[u8]) -> Option<usize> {
        let all = |range: std::ops::Range<usize>, belongs: fn(&u8) -> bool| {
            text.get(range).is_some_and(|bytes| bytes.iter().all(belongs))
        };
        let length = match self {
            SessionValue::Hex32 if text.starts_with(b"=") && all(1..33, u8::is_ascii_alphanumeric) => 33,
            SessionValue::Asp
                if all(0..8, u8::is_ascii_alphabetic)
                    && text.get(8) == Some(&b'=')
                    && all(9..33, u8::is_ascii_alphabetic) =>
            {
                33
            }
            _ => return None,
        };
        matches!(text.get(length), None | Some(b'&')).then_some(length)
    }
}

/// Removes the last `name…` that a session's value follows, and the `&` after it.
fn strip_query_session(query: &mut Vec<u8>, name: &[u8], value: SessionValue) {
    let found = (0..query.len()).rev().find_map(|start| {
        let text = query.get(start..)?;
        let (head, rest) = text.split_at_checked(name.len())?;
        let end = start + name.len() + value.length(rest).filter(|_| head.eq_ignore_ascii_case(name))?;
        Some(start..end)
    });
    if let Some(session) = found {
        drain_parameter(query, session);
    }
}

/// Removes the last `cfid=…&cftoken=…`.
fn strip_cold_fusion_session(query: &mut Vec<u8>) {
    const ID: &[u8] = b"cfid=";
    const TOKEN: &[u8] = b"cftoken=";
    let begins = |text: &[u8], name: &[u8]| {
        text.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name)) && text.len() > name.len()
    };
    let mut end = query.len();
    let mut next_end = None;
    let mut next_is_token = false;
    let mut found = None;
    for parameter in query.rsplit(|byte| *byte == b'&') {
        let start = end - parameter.len();
        if let Some(session_end) = next_end.filter(|_| next_is_token) {
            let id = (0..parameter.len()).rev().find(|at| begins(parameter.get(*at..).unwrap_or_default(), ID));
            if let Some(at) = id {
                found = Some(start + at..session_end);
                break;
            }
        }
        next_is_token = begins(parameter, TOKEN);
        next_end = Some(end);
        end = start.saturating_sub(1);
    }
    if let Some(session) = found {
        drain_parameter(query, session);
    }
}

fn drain_parameter(query: &mut Vec<u8>, parameter: std::ops::Range<usize>) {
    let end = if query.get(parameter.end) == Some(&b'&') { parameter.end + 1 } else { parameter.end };
    query.drain(parameter.start..end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    fn key(url: &str) -> String {
        surt(&Url::parse(url).unwrap())
    }

    /// Expected keys: the package's own answers.
    #[test]
    fn as_the_python_package() {
        for (url, expected) in [
            ("http://example.com/", "com,example)/"),
            ("https://WWW.Example.com/Path/?B=2&a=1", "com,example)/path?a=1&b=2"),
            ("http://www7.example.com:8080/", "com,example:8080)/"),
            ("https://example.com:443/a/", "com,example)/a"),
            ("http://wwwx.example.com/?", "com,example,wwwx)/"),
            ("http://192.0.2.10/x", "10,2,0,192)/x"),
            ("http://[::1]:8080/a//b/../C?x=1&a", "::1:8080)/a/c?a&x=1"),
            ("http://example.com/%252e%252e/%252e%252e/a%2525252520b", "com,example)/a%20b"),
            ("http://example.com/a%3Fb%23c?d%26e", "com,example)/a?b%23c?d&e"),
            ("http://example.com/?b=&a&b=1&a=2", "com,example)/?a&a=2&b=&b=1"),
            ("http://example.com/?x=1&sid=0123456789abcdef0123456789abcdef&y=2", "com,example)/?x=1&y=2"),
            ("http://example.com/?PHPSESSID=0123456789ABCDEF0123456789abcdef", "com,example)/"),
            ("http://example.com/?a=1&cfid=7&cftoken=8&b=2", "com,example)/?a=1&b=2"),
            (
                "http://example.com/(a(4hqa0555fwsecu455xqckv45)S(4hqa0555fwsecu455xqckv45))/x.aspx",
                "com,example)/x.aspx",
            ),
            ("http://example.com/d/(4hqa0555fwsecu455xqckv45)/x.aspx?q", "com,example)/d/x.aspx?q"),
            ("http://a..example.com./", "com,example,a)/"),
            ("http://./", "http:/"),
            ("http://example.com/ツ", "com,example)/%e3%83%84"),
        ] {
            assert_eq!(key(url), expected, "{url}");
        }
    }

    /// One pass over a stack gives the same as pass after pass.
    #[test]
    fn unescape_against_its_slow_twin() {
        fn slow(bytes: &[u8]) -> Vec<u8> {
            let mut once = Vec::new();
            let mut rest = bytes;
            while let Some((first, after)) = rest.split_first() {
                match (first, after) {
                    (b'%', [high, low, tail @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                        once.push(hex_digit(*high).unwrap() << 4 | hex_digit(*low).unwrap());
                        rest = tail;
                    }
                    _ => {
                        once.push(*first);
                        rest = after;
                    }
                }
            }
            if once == bytes { once } else { slow(&once) }
        }
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            let text: Vec<u8> = (0..24).map(|_| *rng.pick(b"%%%2345fFa")).collect();
            assert_eq!(unescape(&text), slow(&text), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn plain_paths_against_their_slow_twin() {
        let (mut rng, mut plain) = (Rng::new(2), 0);
        for _ in 0..20_000 {
            let path: String =
                (0..rng.below(8)).map(|_| *rng.pick(&['/', '/', '.', 'a', 'B', '%', '(', '#', '-'])).collect();
            let path = format!("/{path}");
            if let Some(found) = plain_path(&path) {
                plain += 1;
                assert_eq!(found.to_ascii_lowercase().into_bytes(), path_key(&path), "{path}");
            }
        }
        assert!(plain > 2_000, "{plain}");
    }

    #[test]
    fn hostile_lengths_end() {
        for unit in ["%25", "/(", "cfid=&", "cfid=", "sid=", "&", "/..", "/(aaaaaaaaaaaaaaaaaaaaaaaa)/"] {
            let url = format!("http://a/?{}", unit.repeat(65_000 / unit.len()));
            assert!(key(&url).starts_with("a)/"));
            assert!(key(&url.replacen('?', ".aspx", 1)).starts_with("a)/"));
        }
    }
}
