//! Prefixes of SURTs: hosts written with their last label first, so that a prefix names a part of the web.
//!
//! Decides: the form is that of Heritrix's scope files, `http://(org,example,www,)/path`, where scheme and bracket
//! may be left out. `org,example,` is the host and all below it, `org,example,www)` this host alone,
//! `org,example,www)/a` every URL on it with that prefix, and `org,exam` every host with that prefix. Unlike in keys
//! of CDXJ, `www` and the case of paths count, as they are parts of the requested URL.
//! Leaves to others: ports, which have a condition of their own.

use std::net::Ipv4Addr;

use super::spelling;
use super::subject::Subject;
use ringcrawl_url::Scheme;
use ringcrawl_url::names;

/// Such a prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SurtPrefix {
    scheme: Option<Scheme>,
    hosts: Hosts,
    /// The prefix of path and query, in one spelling.
    path: Box<str>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Hosts {
    /// This one.
    One(Box<str>),
    /// This one and those below it.
    From(Box<str>),
    /// Those below the first whose next label begins with the second.
    Begun(Box<str>, Box<str>),
}

/// The expected format.
pub const EXPECTED: &str = "a SURT prefix such as org,example, or org,example,www)/path";

impl SurtPrefix {
    /// Parses a prefix; an error describes the mistake.
    pub fn parse(text: &str) -> Result<SurtPrefix, String> {
        let (scheme, rest) = match text.split_once("://(") {
            Some(("http", rest)) => (Some(Scheme::Http), rest),
            Some(("https", rest)) => (Some(Scheme::Https), rest),
            Some((scheme, _)) => return Err(format!("{scheme:?} is not http or https; expected {EXPECTED}")),
            None => (None, text.strip_prefix('(').unwrap_or(text)),
        };
        let wrong = |why: &str| Err(format!("{why}; expected {EXPECTED}"));
        let (host, path) = match rest.split_once(')') {
            Some((host, path)) if path.is_empty() || path.starts_with('/') => (host, Some(path)),
            Some(_) => return wrong("after ')' comes the path, which begins with '/'"),
            None => (rest, None),
        };
        let host = host.to_ascii_lowercase();
        let spelled = spelling::of_pattern(path.unwrap_or_default(), false).into_boxed_str();
        if host.parse::<Ipv4Addr>().is_ok() || host.starts_with('[') {
            return Ok(SurtPrefix { scheme, hosts: Hosts::One(host.into()), path: spelled });
        }
        if host.contains(':') {
            return wrong("a port has a condition of its own, port=");
        }
        if host.contains('.') {
            return wrong("the host's labels stand in reverse, with commas between them");
        }
        let is_whole = host.ends_with(',');
        let labels: Vec<&str> = host.strip_suffix(',').unwrap_or(&host).split(',').collect();
        let is_of_labels = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if labels.iter().any(|label| label.is_empty() || !label.bytes().all(is_of_labels)) {
            return wrong("this is no host in reverse");
        }
        let name = |labels: &[&str]| labels.iter().rev().copied().collect::<Vec<_>>().join(".").into_boxed_str();
        let hosts = match (path, is_whole, labels.split_last()) {
            (Some(_), ..) => Hosts::One(name(&labels)),
            (None, false, Some((begun, before))) => Hosts::Begun(name(before), (*begun).into()),
            (None, ..) => Hosts::From(name(&labels)),
        };
        Ok(SurtPrefix { scheme, hosts, path: spelled })
    }

    /// Whether the SURT of the URL has this prefix.
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        let host = subject.host();
        let is_host = match &self.hosts {
            Hosts::One(name) => host == &**name,
            Hosts::From(name) => names::is_within(host, name),
            Hosts::Begun(parent, begun) => {
                let before = if parent.is_empty() { Some(host) } else { names::below(host, parent) };
                before.is_some_and(|before| before.rsplit('.').next().is_some_and(|label| label.starts_with(&**begun)))
            }
        };
        is_host
            && self.scheme.is_none_or(|scheme| scheme == subject.url.scheme())
            && subject.target().starts_with(&*self.path)
    }

    /// The common parent name of all matches, if there is one.
    pub fn name(&self) -> Option<&str> {
        match &self.hosts {
            Hosts::One(name) | Hosts::From(name) => Some(name),
            Hosts::Begun(parent, _) => Some(&**parent).filter(|parent| !parent.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hops::Hops;
    use ringcrawl_url::Url;

    #[test]
    fn prefixes() {
        for (prefix, matching, others) in [
            (
                "org,example,",
                "http://example.org/ https://www.example.org/x http://a.b.example.org/",
                "http://example2.org/",
            ),
            ("org,example", "http://example.org/ http://example2.org/ http://a.example-x.org/", "http://examp.org/"),
            ("org", "http://example.org/ http://a.organic/", "http://example.com/"),
            (
                "http://(org,example,www,)/A",
                "http://www.example.org/A?b http://www.example.org/Ab",
                "http://www.example.org/a https://www.example.org/A http://example.org/A",
            ),
            ("org,example)/x?y", "http://example.org/x?yz", "http://www.example.org/x?y http://example.org/x"),
            ("(192.0.2.1)/", "http://192.0.2.1/a", "http://192.0.2.11/"),
        ] {
            let prefix = SurtPrefix::parse(prefix).unwrap();
            let is = |text: &str| {
                let url = Url::parse(text).unwrap();
                prefix.matches(&Subject::new(&url, Hops::default()))
            };
            matching.split(' ').for_each(|url| assert!(is(url), "{prefix:?} {url}"));
            others.split(' ').for_each(|url| assert!(!is(url), "{prefix:?} {url}"));
        }
    }

    #[test]
    fn what_is_no_prefix_is_said() {
        for (prefix, why) in [
            ("example.org", "stand in reverse"),
            ("ftp://(org,example)", "not http or https"),
            ("org,example)x", "begins with '/'"),
            ("org,example:8080)/", "port="),
            ("org,,example", "no host in reverse"),
            ("", "no host in reverse"),
        ] {
            let error = SurtPrefix::parse(prefix).unwrap_err();
            assert!(error.contains(why) && error.ends_with(EXPECTED), "{prefix}: {error}");
        }
    }
}
