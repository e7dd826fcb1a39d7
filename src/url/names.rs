//! Host names as written in rules and block lists.
//!
//! Decides: names are compared as in URLs, in lower case and in ASCII (RFC 5891), without a trailing dot, which does
//! not change the host.

use crate::Url;

/// The host of a URL in the compared form: without a trailing dot.
pub fn bare(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// Whether `host` is `name`, or below it.
pub fn is_within(host: &str, name: &str) -> bool {
    host == name || below(host, name).is_some()
}

/// The labels of `host` before `name`, if it is below it.
pub fn below<'a>(host: &'a str, name: &str) -> Option<&'a str> {
    host.strip_suffix(name)?.strip_suffix('.')
}

/// `host` and every name above it, the longest first.
pub fn above(host: &str) -> impl Iterator<Item = &str> {
    let starts = memchr::memchr_iter(b'.', host.as_bytes()).map(|dot| dot + 1);
    std::iter::once(0).chain(starts).filter_map(|start| host.get(start..)).filter(|name| !name.is_empty())
}

/// A host written by a person, in the form of URLs; `None` when it is invalid.
pub fn read(text: &str) -> Option<String> {
    let text = bare(text);
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
    // Most names in lists are already in that form; one that ends in a digit may be an address.
    let ends_in_letter = text.bytes().next_back().is_some_and(|byte| byte.is_ascii_lowercase());
    if ends_in_letter && text.len() <= HOST_BYTES_MAX && text.bytes().all(is_plain) && !text.contains("xn--") {
        let is_name = !text.starts_with('.') && !text.contains("..");
        return is_name.then(|| text.to_owned());
    }
    if text.is_empty() || text.contains(['/', '?', '#', '@', '\\', '*', '%']) || text.contains(char::is_whitespace) {
        return None;
    }
    let url = Url::parse(&format!("http://{text}/")).ok().filter(|url| url.authority() == url.host())?;
    // Parsing drops a port that is the scheme's own.
    let has_port = text.rsplit_once(':').is_some_and(|(before, _)| !before.is_empty()) && !text.starts_with('[');
    let is_name = !has_port && !url.host().starts_with('.') && !url.host().contains("..");
    is_name.then(|| bare(url.host()).to_owned()).filter(|host| host.len() <= HOST_BYTES_MAX)
}

/// RFC 1035 section 2.3.4.
const HOST_BYTES_MAX: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_urls_have_them() {
        for (text, name) in [
            ("example.org", Some("example.org")),
            ("WWW.Example.org.", Some("www.example.org")),
            ("münchen.de", Some("xn--mnchen-3ya.de")),
            ("xn--mnchen-3ya.de", Some("xn--mnchen-3ya.de")),
            ("192.0.2.1", Some("192.0.2.1")),
            ("[2001:DB8::1]", Some("[2001:db8::1]")),
            ("org", Some("org")),
            ("a_b.org", Some("a_b.org")),
            ("", None),
            (".org", None),
            ("a..org", None),
            ("example.org/x", None),
            ("example.org:80", None),
            ("example.org:8080", None),
            ("me@example.org", None),
            ("a b.org", None),
            ("*.example.org", None),
        ] {
            assert_eq!(read(text).as_deref(), name, "{text}");
        }
        assert!(is_within("a.example.org", "example.org") && is_within("example.org", "example.org"));
        assert!(!is_within("badexample.org", "example.org") && !is_within("org", "example.org"));
        assert_eq!(above("a.b.org").collect::<Vec<_>>(), ["a.b.org", "b.org", "org"]);
    }
}
