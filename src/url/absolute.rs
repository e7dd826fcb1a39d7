//! URLs of any scheme, with fragment and credentials: the standard's "URL parser" (WHATWG URL, section 4.4).
//!
//! Decides: the `url` crate parses; this file adds what version 2.5.8 lacks of the current standard:
//!
//! - a query in the page's encoding, the rest in UTF-8 ("query state"): a server of 1998 that never heard of UTF-8
//!   gets the bytes that it put into its own links;
//! - `///host` against a base is `//host` ("special authority ignore slashes state");
//! - `^` in a path is escaped (section 1.3, "path percent-encode set");
//! - a domain of ASCII is taken as it is, in lower case, whether its `xn--` labels are Punycode or not (section 3.3,
//!   "domain to ASCII"). The crate refuses such a name, so it gets another one of the same length, the mask, and the
//!   name is restored when the URL is written.
//!
//! Invariants: masked and true name have the same length, so all offsets are valid for both.
//! Limits: 1 MiB a reference. The crate's other deviations concern `file:` and opaque paths.

use std::borrow::Cow;
use std::fmt;

use encoding_rs::{EncoderResult, Encoding, UTF_8};
use url::{ParseError, Position};

use super::{REFERENCE_BYTES_MAX, UrlError};

/// A URL of any scheme.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Absolute {
    /// With the mask in its host, if there is one.
    pub(super) url: url::Url,
    /// Stands for `xn--`.
    mask: Option<&'static str>,
}

impl Absolute {
    /// Parses a URL that is relative to nothing.
    pub fn parse(text: &str) -> Result<Absolute, UrlError> {
        Absolute::resolve(None, text, UTF_8)
    }

    /// Resolves a reference that was found in a page of `encoding`.
    pub fn resolve(
        base: Option<&Absolute>,
        reference: &str,
        encoding: &'static Encoding,
    ) -> Result<Absolute, UrlError> {
        if reference.len() > REFERENCE_BYTES_MAX {
            return Err(UrlError::TooLong);
        }
        let base_url = base.map(|base| &base.url);
        let reference = match base_url {
            Some(base) if is_special(base.scheme()) => without_extra_slashes(reference),
            _ => Cow::Borrowed(reference),
        };
        let (mut url, mask) = match parse_encoded(base_url, &reference, encoding) {
            Ok(url) => {
                let masked = base.filter(|base| base.mask.is_some() && base.url.host_str() == url.host_str());
                (url, masked.and_then(|base| base.mask))
            }
            Err(ParseError::IdnaError) => {
                let (masked, mask) = mask_host(&reference).ok_or(UrlError::Invalid(ParseError::IdnaError))?;
                (parse_encoded(base_url, &masked, encoding).map_err(UrlError::Invalid)?, Some(mask))
            }
            Err(error) => return Err(UrlError::Invalid(error)),
        };
        if !url.cannot_be_a_base() && memchr::memchr(b'^', url.path().as_bytes()).is_some() {
            let path = url.path().replace('^', "%5E");
            url.set_path(&path);
        }
        Ok(Absolute { url, mask })
    }

    /// The scheme, in lower case, without the colon.
    pub fn scheme(&self) -> &str {
        self.url.scheme()
    }

    /// Length of the whole URL, in bytes.
    pub fn text_bytes(&self) -> usize {
        self.url.as_str().len()
    }

    /// The whole URL.
    pub fn into_text(self) -> String {
        if self.mask.is_some() { self.to_string() } else { self.url.into() }
    }
}

impl fmt::Display for Absolute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(mask) = self.mask else { return f.write_str(self.url.as_str()) };
        f.write_str(&self.url[..Position::BeforeHost])?;
        f.write_str(&self.url[Position::BeforeHost..Position::AfterHost].replace(mask, ACE_PREFIX))?;
        f.write_str(&self.url[Position::AfterHost..])
    }
}

/// Of an internationalized label (RFC 5890 section 2.3.2.1).
const ACE_PREFIX: &str = "xn--";

/// At least one of these does not occur in the name; each leaves a label's kind unchanged: not a number, not
/// Punycode.
const MASKS: [&str; 4] = ["xq--", "xj--", "xk--", "xz--"];

/// Special schemes whose hosts follow the common rules: not `file`.
fn is_special(scheme: &str) -> bool {
    ["http", "https", "ws", "wss", "ftp"].iter().any(|special| scheme.eq_ignore_ascii_case(special))
}

/// The reference with every `xn--` of its host masked, if it has such a host and that is ASCII.
fn mask_host(reference: &str) -> Option<(String, &'static str)> {
    let reference = reference.trim_start_matches(|char| char <= ' ').replace(['\t', '\n', '\r'], "");
    let behind_scheme = match reference.split_once(':') {
        Some((scheme, rest)) if is_special(scheme) => rest,
        _ => &reference,
    };
    let authority = behind_scheme.trim_start_matches(['/', '\\']);
    let end = authority.find(['/', '\\', '?', '#']).unwrap_or(authority.len());
    let host_start = authority.get(..end)?.rfind('@').map_or(0, |at| at + 1);
    let host = authority.get(host_start..end)?;
    if !host.is_ascii() || host.contains('%') {
        return None;
    }
    let host_lower = host.to_ascii_lowercase();
    let mask = MASKS.into_iter().find(|mask| !host_lower.contains(mask))?;
    let before = reference.get(..reference.len() - authority.len() + host_start)?;
    Some((format!("{before}{}{}", host_lower.replace(ACE_PREFIX, mask), authority.get(end..)?), mask))
}

/// `///host` is `//host`; the crate would find an empty host in it.
fn without_extra_slashes(reference: &str) -> Cow<'_, str> {
    let mut slashes = 0;
    let rest = reference.trim_start_matches(|char| char <= ' ').trim_start_matches(|char| {
        slashes += u32::from(matches!(char, '/' | '\\'));
        matches!(char, '/' | '\\' | '\t' | '\n' | '\r')
    });
    if slashes > 2 { Cow::Owned(format!("//{rest}")) } else { Cow::Borrowed(reference) }
}

fn parse_encoded(
    base: Option<&url::Url>,
    reference: &str,
    encoding: &'static Encoding,
) -> Result<url::Url, ParseError> {
    let options = url::Url::options().base_url(base);
    // UTF-16 and "replacement" are never written: WHATWG Encoding, section 4.3, "get an output encoding".
    let encoding = encoding.output_encoding();
    // A reference of ASCII has the same bytes in every encoding except ISO-2022-JP, where ESC, SO and SI must be
    // absent.
    if encoding == UTF_8 || (reference.is_ascii() && encoding != encoding_rs::ISO_2022_JP) {
        return options.parse(reference);
    }
    // The crate would encode each part between two line breaks separately, each time from the initial state.
    let whole = reference.replace(['\t', '\n', '\r'], "");
    let encode: &dyn Fn(&str) -> Cow<'_, [u8]> = &|query| Cow::Owned(encode_query(query, encoding));
    options.encoding_override(Some(encode)).parse(&whole)
}

/// The query in `encoding`; characters that the encoding lacks become percent-encoded numeric character references
/// (WHATWG URL, section 1.3, "percent-encode after encoding").
fn encode_query(query: &str, encoding: &'static Encoding) -> Vec<u8> {
    let mut encoder = encoding.new_encoder();
    let mut bytes = Vec::with_capacity(query.len());
    let mut rest = query;
    loop {
        bytes.reserve(rest.len().saturating_mul(2).saturating_add(ROOM_BYTES_MIN));
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        rest = rest.get(read..).unwrap_or_default();
        match result {
            EncoderResult::InputEmpty => return bytes,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(char) => {
                bytes.extend_from_slice(format!("%26%23{}%3B", u32::from(char)).as_bytes());
            }
        }
    }
}

/// Room for one character and the escape sequences around it, so that every iteration makes progress.
const ROOM_BYTES_MIN: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn href(base: &str, reference: &str) -> Option<String> {
        let base = Absolute::parse(base).unwrap();
        Absolute::resolve(Some(&base), reference, UTF_8).ok().map(Absolute::into_text)
    }

    #[test]
    fn names_that_are_no_punycode() {
        for (base, reference, expected) in [
            ("http://a.test/", "http://XN--a.xn--zca:81/X", Some("http://xn--a.xn--zca:81/X")),
            ("http://a.test/", "//u@xn--pokxncvks/xn--a?XN--#xn--", Some("http://u@xn--pokxncvks/xn--a?XN--#xn--")),
            ("http://xn--a.test/d/e", "../f", Some("http://xn--a.test/f")),
            ("http://xn--a.test/", "https:///b.test/xn--a", Some("https://b.test/xn--a")),
            ("http://a.test/", "http://xn--a|/", None),
            ("http://a.test/", "http://xn--a.xq--.XJ--.xk--.xz--/", None), // more than there are masks
            ("http://a.test/", "http://xn--a.xq--b/", Some("http://xn--a.xq--b/")),
            ("http://a.test/", "foo://xn--a/", Some("foo://xn--a/")),
        ] {
            assert_eq!(href(base, reference).as_deref(), expected, "{reference}");
        }
        let url = super::super::Url::parse("http://u@www.xn--a.test:8080/x#f").unwrap();
        assert_eq!((url.as_str(), url.host(), url.port()), ("http://www.xn--a.test:8080/x", "www.xn--a.test", 8080));
        assert_eq!(url.join("y").unwrap().as_str(), "http://www.xn--a.test:8080/y");
    }

    #[test]
    fn circumflex() {
        assert_eq!(href("http://a.test/", "b^c%5e?d^e").unwrap(), "http://a.test/b%5Ec%5e?d^e");
        assert_eq!(href("http://a.test/", "mailto:a^b").unwrap(), "mailto:a^b");
    }

    #[test]
    fn slashes_before_a_host() {
        for (reference, expected) in [
            ("///b.test/x", Some("http://b.test/x")),
            (" /\t/\n\\\\//b.test//x", Some("http://b.test//x")),
            ("//b.test", Some("http://b.test/")),
            ("/b.test", Some("http://example.com/b.test")),
            ("///", None),
            ("x///y", Some("http://example.com/dir/x///y")),
        ] {
            assert_eq!(href("http://example.com/dir/page", reference).as_deref(), expected, "{reference:?}");
        }
    }
}
