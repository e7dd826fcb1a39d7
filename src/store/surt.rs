//! The key of a URL in an index: its SURT ("sort-friendly URI reordering transform").
//!
//! Decides: the same key as the Python package `surt` makes by default, since pywb and OpenWayback look captures
//! up by it: host labels reversed, `www.` dropped, everything lower-case, path and query unescaped and escaped
//! once, query arguments sorted, well-known session identifiers dropped.
//! Invariants: keys are ASCII without spaces, so an index line splits at its first space.
//! Limits: one way; two URLs may share a key, the index line tells the URL itself.

use crate::url::{Scheme, Url};

/// `com,example)/path?query` for `https://www.example.com/path?query`.
pub fn surt_key(url: &Url) -> String {
    let mut key = String::with_capacity(url.as_str().len() + 8);
    let host = without_www(url.host());
    for (index, label) in host.trim_matches('.').rsplit('.').enumerate() {
        if index > 0 {
            key.push(',');
        }
        key.push_str(label);
    }
    let default_port = if url.scheme() == Scheme::Https { 443 } else { 80 };
    if url.port() != default_port {
        key.push(':');
        key.push_str(&url.port().to_string());
    }
    key.push(')');

    let (path, query) = match url.path_and_query().split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (url.path_and_query(), None),
    };
    let path = without_path_session(&escape_once(&normal_path(&unescape_repeatedly(path)))).to_ascii_lowercase();
    key.push_str(if path.len() > 1 { path.strip_suffix('/').unwrap_or(&path) } else { &path });

    if let Some(query) = query {
        let query = without_query_session(escape_once(&unescape_repeatedly(query))).to_ascii_lowercase();
        let mut arguments = query.split('&').collect::<Vec<&str>>();
        // By name, then value; an argument without "=" comes before one with it.
        arguments.sort_by_key(|argument| match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (*argument, None),
        });
        if !query.is_empty() {
            key.push('?');
            key.push_str(&arguments.join("&"));
        }
    }
    key
}

fn without_www(host: &str) -> &str {
    host.strip_prefix("www")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        .and_then(|rest| rest.strip_prefix('.'))
        .unwrap_or(host)
}

fn unescape_repeatedly(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    // Each round shortens the text by two bytes for every escape undone, so this ends.
    while let Some(shorter) = unescape(&bytes) {
        bytes = shorter;
    }
    bytes
}

/// `None` when nothing is escaped.
fn unescape(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let value = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        out.push(value.unwrap_or(*first));
        rest = if value.is_some() { rest.get(3..).unwrap_or_default() } else { after };
    }
    (out.len() < bytes.len()).then_some(out)
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn escape_once(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        if matches!(byte, 0x21..=0x7e) && !matches!(byte, b'#' | b'%') {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Dot segments that unescaping brought up, and empty ones, resolved.
fn normal_path(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/').skip(1) {
        match part {
            b"." => {}
            b".." if !kept.is_empty() => {
                kept.pop();
            }
            part => kept.push(part),
        }
    }
    let mut out = vec![b'/'];
    if let Some((last, parts)) = kept.split_last() {
        for part in parts.iter().filter(|part| !part.is_empty()) {
            out.extend_from_slice(part);
            out.push(b'/');
        }
        out.extend_from_slice(last);
    }
    out
}

/// Drops `(S(24 letters))/` and `(24 letters)/` of ASP.NET from a path that leads to an .aspx page.
fn without_path_session(path: &str) -> String {
    let lower = path.to_ascii_lowercase();
    let Some(page) = lower.find(".aspx") else { return path.to_owned() };
    let mut out = String::with_capacity(path.len());
    let mut at = 0;
    for part in path.split_inclusive('/') {
        let session =
            at < page && part.strip_prefix('(').and_then(|part| part.strip_suffix(")/")).is_some_and(is_session);
        if !session {
            out.push_str(part);
        }
        at += part.len();
    }
    out
}

fn is_session(inner: &str) -> bool {
    let is_token = |text: &str| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_token(inner)
        || inner.split_inclusive(')').all(|group| {
            let mut chars = group.chars();
            chars.next().is_some_and(|letter| letter.is_ascii_alphabetic())
                && chars.as_str().strip_prefix('(').and_then(|text| text.strip_suffix(')')).is_some_and(is_token)
        })
}

/// Drops the last of each well-known session argument, if its value has the well-known length.
fn without_query_session(mut query: String) -> String {
    for (name, tail_letters, value_len) in
        [("jsessionid=", 0, 32), ("phpsessid=", 0, 32), ("sid=", 0, 32), ("aspsessionid", 8, 24)]
    {
        let lower = query.to_ascii_lowercase();
        // From the right, as a greedy match finds it.
        let found = lower.rmatch_indices(name).find_map(|(at, name)| {
            let mut value = lower.get(at + name.len()..)?;
            if tail_letters > 0 {
                let (letters, rest) = value.split_at_checked(tail_letters)?;
                value = rest.strip_prefix('=').filter(|_| letters.bytes().all(|b| b.is_ascii_alphabetic()))?;
            }
            let (token, rest) = value.split_at_checked(value_len)?;
            let fits = token
                .bytes()
                .all(|b| if tail_letters > 0 { b.is_ascii_alphabetic() } else { b.is_ascii_alphanumeric() });
            (fits && (rest.is_empty() || rest.starts_with('&'))).then_some((at, lower.len() - rest.len()))
        });
        if let Some((from, to)) = found {
            cut(&mut query, from, to);
        }
    }
    let lower = query.to_ascii_lowercase();
    let found = lower.rmatch_indices("cfid=").find_map(|(at, _)| {
        let (id, rest) = lower.get(at + 5..)?.split_once('&')?;
        let token = rest.strip_prefix("cftoken=")?;
        let token_len = token.find('&').unwrap_or(token.len());
        (!id.is_empty() && token_len > 0).then_some((at, lower.len() - token.len() + token_len))
    });
    if let Some((from, to)) = found {
        cut(&mut query, from, to);
    }
    query
}

/// Takes `from..to` and one `&` after it out of `query`.
fn cut(query: &mut String, from: usize, to: usize) {
    let after = query.get(to..).unwrap_or_default();
    let after = after.strip_prefix('&').unwrap_or(after).to_owned();
    query.truncate(from);
    query.push_str(&after);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_as_the_surt_package_makes_them() {
        for (url, key) in [
            ("http://www.archive.org/", "org,archive)/"),
            ("https://www12.Example.com:8443/A/b/?Z=1&a=2", "com,example:8443)/a/b?a=2&z=1"),
            ("http://archive.org/goo/?", "org,archive)/goo"),
            ("http://archive.org/goo/?a&a=&a=1", "org,archive)/goo?a&a=&a=1"),
            ("http://10.1.2.3/x", "3,2,1,10)/x"),
            ("http://example.com/a%2520b%2F..%2Fc//d", "com,example)/c/d"),
            ("http://example.com/%E4%23?%C3%A4", "com,example)/%e4%23?%c3%a4"),
            ("http://a.example/(S(4hqa0555fwsecu455xqckv45))/mileg.aspx", "example,a)/mileg.aspx"),
            ("http://a.example/(4hqa0555fwsecu455xqckv45)/mileg.aspx?a=b", "example,a)/mileg.aspx?a=b"),
            ("http://a.example/?x=y&JSESSIONID=0123456789abcdef0123456789ABCDEF&z=1", "example,a)/?x=y&z=1"),
            ("http://a.example/?ASPSESSIONIDABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX", "example,a)/"),
            ("http://a.example/?CFID=1&CFTOKEN=2&x=y", "example,a)/?x=y"),
        ] {
            assert_eq!(surt_key(&Url::parse(url).expect("a URL")), key, "{url}");
        }
    }
}
