//! The part of a URL that rules are compared with, for texts that are not canonical.
//!
//! Decides: as Google's `GetPathParamsQuery`: from the first `/`, `?` or `;` behind the authority to the fragment,
//! with a slash before it if there is none. The crawler itself uses `Url::path_and_query`; this is for people and
//! test suites that query a path, or a URL from a log.
//!
//! Invariants: the result begins with `/`.

use std::borrow::Cow;

/// Path and query of a URL or a path.
pub fn path_of(url: &str) -> Cow<'_, str> {
    let start = if url.starts_with("//") { 2 } else { 0 };
    let text = url.get(start..).unwrap_or_default();
    let text = match text.split_once("://") {
        // If a path begins before `://`, that is in its query.
        Some((scheme, rest)) if !scheme.contains(DELIMITERS) => rest,
        _ => text,
    };
    let text = text.split('#').next().unwrap_or_default();
    match text.find(DELIMITERS).and_then(|at| text.get(at..)) {
        Some(path) if path.starts_with('/') => Cow::Borrowed(path),
        Some(path) => Cow::Owned(format!("/{path}")),
        None => Cow::Borrowed("/"),
    }
}

const DELIMITERS: [char; 3] = ['/', '?', ';'];

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of Google's `TestGetPathParamsQuery`.
    #[test]
    fn paths() {
        for (url, expected) in [
            ("", "/"),
            ("http://www.example.com", "/"),
            ("http://www.example.com/", "/"),
            ("http://www.example.com/a", "/a"),
            ("http://www.example.com/a/b?c=http://d.e/", "/a/b?c=http://d.e/"),
            ("http://www.example.com/a/b?c=d&e=f#fragment", "/a/b?c=d&e=f"),
            ("example.com", "/"),
            ("example.com/a/b;c;d?e", "/a/b;c;d?e"),
            ("//a/b/c", "/b/c"),
            ("http://example.com?a", "/?a"),
            ("http://example.com#a/b", "/"),
            ("/a?u=http://b", "/a?u=http://b"),
        ] {
            assert_eq!(path_of(url), expected, "{url}");
        }
    }
}
