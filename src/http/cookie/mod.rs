//! Cookies as a client keeps them (RFC 6265).
//!
//! Decides: one Set-Cookie field is read by section 5.2, which accepts nearly anything, and becomes a cookie or
//! nothing by section 5.3: no cookie for another host, for a public suffix, or for https from a page without it (as
//! in browsers, RFC 6265bis section 5.7). Section 5.4 determines which cookies a request carries. HttpOnly means
//! nothing to a client without scripts.
//! Invariants: a cookie is sent to no host outside the site that set it; name and value contain no control character,
//! so none ends a line.
//! Limits: name, value, path and domain together have at most the caller's number of bytes; a longer cookie is
//! ignored.
//! Leaves to others: how many are kept (`jar`), what time it is (the caller).

mod date;
mod jar;

pub use jar::{CookieLimits, Jar};

use date::cookie_date;
use ringcrawl_base::time::UnixTime;
use ringcrawl_url::{Scheme, Url, is_public_suffix, site_of};

/// One cookie.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Cookie {
    name: Box<[u8]>,
    value: Box<[u8]>,
    /// Lower case, without a leading dot.
    domain: Box<str>,
    /// Sent only to that host, not to those below it.
    host_only: bool,
    path: Box<[u8]>,
    secure: bool,
    /// `NEVER` for a cookie that lasts as long as the jar.
    expires: UnixTime,
}

/// Later than any date of a cookie.
const NEVER: UnixTime = UnixTime::from_micros(u64::MAX);

impl Cookie {
    /// The cookie that `field`, the value of a Set-Cookie of a response from `url`, sets at `now`.
    fn parse(field: &[u8], url: &Url, now: UnixTime, bytes_max: usize) -> Option<Cookie> {
        if field.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
            return None;
        }
        let mut parts = field.split(|byte| *byte == b';');
        let (name, value) = cut(parts.next()?)?;
        if name.is_empty() {
            return None;
        }
        let host = url.host();
        let mut cookie = Cookie {
            name: name.into(),
            value: value.into(),
            domain: host.into(),
            host_only: true,
            path: default_path(url).into(),
            secure: false,
            expires: NEVER,
        };
        let (mut max_age, mut expires) = (None, None);
        for part in parts {
            let (name, value) = cut(part).unwrap_or((part.trim_ascii(), b""));
            match name.to_ascii_lowercase().as_slice() {
                b"expires" => expires = cookie_date(value).or(expires),
                b"max-age" => max_age = seconds(value).or(max_age),
                b"domain" if !value.is_empty() => {
                    let domain = value.strip_prefix(b".").unwrap_or(value).to_ascii_lowercase();
                    cookie.domain = String::from_utf8(domain).ok()?.into();
                    cookie.host_only = false;
                }
                b"path" if value.starts_with(b"/") => cookie.path = value.into(),
                b"path" => cookie.path = default_path(url).into(),
                b"secure" => cookie.secure = true,
                _ => {}
            }
        }
        if let Some(lifetime) = max_age {
            let ends = now.as_micros().saturating_add(lifetime.saturating_mul(1_000_000));
            cookie.expires = UnixTime::from_micros(if lifetime == 0 { 0 } else { ends });
        } else if let Some(date) = expires {
            cookie.expires = date;
        }
        // A public suffix or an address can only be the host itself.
        if cookie.domain.as_ref() == host && (is_public_suffix(host) || is_address(host)) {
            cookie.host_only = true;
        }
        let is_ours = cookie.host_only || !is_public_suffix(&cookie.domain) && domain_matches(host, &cookie.domain);
        let is_safe = !cookie.secure || url.scheme() == Scheme::Https;
        (is_ours && is_safe && cookie.bytes() <= bytes_max).then_some(cookie)
    }

    /// Whether a request for `url` carries it at `now` (section 5.4).
    fn applies(&self, url: &Url, now: UnixTime) -> bool {
        let host = url.host();
        let to_host = if self.host_only { self.domain.as_ref() == host } else { domain_matches(host, &self.domain) };
        to_host
            && self.expires > now
            && (!self.secure || url.scheme() == Scheme::Https)
            && path_matches(path_of(url), &self.path)
    }

    /// Whether `other` replaces it (section 5.3, step 11).
    fn is_same(&self, other: &Cookie) -> bool {
        self.name == other.name && self.domain == other.domain && self.path == other.path
    }

    fn bytes(&self) -> usize {
        self.name.len() + self.value.len() + self.domain.len() + self.path.len()
    }
}

/// Around the first `=`, without whitespace.
fn cut(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, value) = part.split_at_checked(memchr::memchr(b'=', part)?)?;
    Some((name.trim_ascii(), value.get(1..).unwrap_or_default().trim_ascii()))
}

/// Max-Age (section 5.2.2): 0 for a time that has passed.
fn seconds(value: &[u8]) -> Option<u64> {
    let (is_past, digits) = match value.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, value),
    };
    if !digits.iter().all(u8::is_ascii_digit) || digits.is_empty() && !is_past {
        return None;
    }
    let number = digits.iter().fold(0_u64, |n, digit| n.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(if is_past { 0 } else { number })
}

fn path_of(url: &Url) -> &[u8] {
    let target = url.path_and_query().as_bytes();
    target.split(|byte| *byte == b'?').next().unwrap_or(target)
}

/// The path without what follows its last slash (section 5.1.4).
fn default_path(url: &Url) -> &[u8] {
    let path = path_of(url);
    match memchr::memrchr(b'/', path) {
        None | Some(0) => b"/",
        Some(last) => path.get(..last).unwrap_or(b"/"),
    }
}

/// Section 5.1.4.
fn path_matches(path: &[u8], cookie_path: &[u8]) -> bool {
    path.strip_prefix(cookie_path)
        .is_some_and(|rest| rest.is_empty() || cookie_path.ends_with(b"/") || rest.starts_with(b"/"))
}

/// Section 5.1.3; both are canonical.
fn domain_matches(host: &str, domain: &str) -> bool {
    host == domain
        || !is_address(host) && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.') && !domain.is_empty())
}

fn is_address(host: &str) -> bool {
    // A URL's host whose last label is a number is an IPv4 address (WHATWG URL, "ends in a number").
    host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok()
}

/// The site whose drawer holds the cookies of `url`.
fn drawer(url: &Url) -> &str {
    site_of(url.host())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixTime = UnixTime::from_micros(1_795_250_432_000_000);

    fn url(text: &str) -> Url {
        Url::parse(text).expect(text)
    }

    fn set(field: &str, from: &str) -> Option<Cookie> {
        Cookie::parse(field.as_bytes(), &url(from), NOW, 4_096)
    }

    #[test]
    fn names_and_values() {
        for (field, expected) in [
            ("a=b", Some(("a", "b"))),
            (" a = b ; Path=/", Some(("a", "b"))),
            ("a=", Some(("a", ""))),
            ("a=b=c", Some(("a", "b=c"))),
            ("a=\"b c\"; x", Some(("a", "\"b c\""))),
            ("a", None),
            ("=b", None),
            ("", None),
            (";a=b", None),
            ("a=b\u{1}", None),
            ("a=b\r\nX: y", None),
        ] {
            let cookie = set(field, "http://a.test/");
            let got = cookie.as_ref().map(|cookie| (&*cookie.name, &*cookie.value));
            assert_eq!(got, expected.map(|(name, value)| (name.as_bytes(), value.as_bytes())), "{field:?}");
        }
        assert!(Cookie::parse(b"a=b", &url("http://a.test/"), NOW, 9).is_some());
        assert!(Cookie::parse(b"a=bb", &url("http://a.test/"), NOW, 9).is_none());
    }

    /// RFC 6265 section 5.3, steps 5 and 6, and sections 5.1.3 and 5.4.
    #[test]
    fn domains() {
        let sent = |field: &str, from: &str, to: &str| set(field, from).map(|cookie| cookie.applies(&url(to), NOW));
        for (field, from, to, expected) in [
            ("a=b", "http://www.site.test/", "http://www.site.test/", Some(true)),
            ("a=b", "http://www.site.test/", "http://site.test/", Some(false)),
            ("a=b", "http://www.site.test/", "http://x.www.site.test/", Some(false)),
            ("a=b; Domain=site.test", "http://www.site.test/", "http://x.site.test/", Some(true)),
            ("a=b; domain=.SITE.test", "http://www.site.test/", "http://site.test/", Some(true)),
            ("a=b; Domain=site.test", "http://www.site.test/", "http://xsite.test/", Some(false)),
            ("a=b; Domain=", "http://www.site.test/", "http://site.test/", Some(false)),
            // Not its own, not above it, a public suffix, addresses.
            ("a=b; Domain=other.test", "http://www.site.test/", "http://other.test/", None),
            ("a=b; Domain=x.www.site.test", "http://www.site.test/", "http://x.www.site.test/", None),
            ("a=b; Domain=test", "http://www.site.test/", "http://x.test/", None),
            ("a=b; Domain=co.uk", "http://www.site.co.uk/", "http://x.co.uk/", None),
            ("a=b; Domain=github.io", "http://user.github.io/", "http://x.github.io/", None),
            ("a=b; Domain=github.io", "http://github.io/", "http://github.io/", Some(true)),
            ("a=b; Domain=github.io", "http://github.io/", "http://x.github.io/", Some(false)),
            ("a=b; Domain=0.0.1", "http://127.0.0.1/", "http://10.0.0.1/", None),
            ("a=b; Domain=127.0.0.1", "http://127.0.0.1/", "http://127.0.0.1/", Some(true)),
            ("a=b; Domain=localhost", "http://localhost/", "http://localhost/", Some(true)),
            ("a=b; Domain=\u{e9}.test", "http://a.test/", "http://a.test/", None),
        ] {
            assert_eq!(sent(field, from, to), expected, "{field} from {from} to {to}");
        }
    }

    #[test]
    fn paths() {
        let from = "http://a.test/dir/page?x=/y/z";
        for (field, to, expected) in [
            ("a=b", "http://a.test/dir", true),
            ("a=b", "http://a.test/dir/other", true),
            ("a=b", "http://a.test/directory", false),
            ("a=b", "http://a.test/", false),
            ("a=b; Path=/", "http://a.test/", true),
            ("a=b; Path=dir/page", "http://a.test/dir?x", true),
            ("a=b; Path=", "http://a.test/other", false),
            ("a=b; Path=/dir/; ", "http://a.test/dir", false),
            ("a=b; Path=/dir/", "http://a.test/dir/?q", true),
            ("a=b; Path=/other; Path=/dir", "http://a.test/dir/x", true),
        ] {
            let cookie = set(field, from).expect(field);
            assert_eq!(cookie.applies(&url(to), NOW), expected, "{field} to {to}");
        }
        assert_eq!(*set("a=b", "http://a.test/page").expect("a cookie").path, *b"/");
    }

    #[test]
    fn secure_cookies_stay_on_https() {
        assert_eq!(set("a=b; Secure", "http://a.test/"), None);
        let cookie = set("a=b; secure; HttpOnly", "https://a.test/").expect("a cookie");
        assert!(cookie.applies(&url("https://a.test/"), NOW) && !cookie.applies(&url("http://a.test/"), NOW));
        assert!(set("a=b", "https://a.test/").expect("a cookie").applies(&url("http://a.test/"), NOW));
    }

    #[test]
    fn lifetimes() {
        let seconds = |count: u64| UnixTime::from_micros(NOW.as_micros() + count * 1_000_000);
        for (field, expected) in [
            ("a=b", NEVER),
            ("a=b; Max-Age=10", seconds(10)),
            ("a=b; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", seconds(10)),
            ("a=b; Max-Age=0", UnixTime::from_micros(0)),
            ("a=b; Max-Age=-99", UnixTime::from_micros(0)),
            ("a=b; Max-Age=99999999999999999999999", NEVER),
            ("a=b; Max-Age=1x; max-age=+1", NEVER),
            ("a=b; Expires=Sun, 22-Nov-26 12:00:00 GMT", UnixTime::from_micros(1_795_348_800_000_000)),
            ("a=b; Expires=soon", NEVER),
        ] {
            assert_eq!(set(field, "http://a.test/").expect(field).expires, expected, "{field}");
        }
        let cookie = set("a=b; Max-Age=10", "http://a.test/").expect("a cookie");
        assert!(
            cookie.applies(&url("http://a.test/"), seconds(9)) && !cookie.applies(&url("http://a.test/"), seconds(10))
        );
    }
}
