//! What the links of one page are resolved against: its own URL, or what its `<base href>` makes of it.
//!
//! Decides: the base is parsed once per page, since a page has a hundred links. It may be of any scheme: a page
//! may say `<base href="about:blank">`, and then its relative links lead nowhere.
//! A query is sent in the page's encoding and everything else of a URL in UTF-8 (WHATWG URL, section 4.4,
//! "query state"): a server of 1998 that never heard of UTF-8 gets the bytes it put into its own links.
//!
//! Limits: as `Url`.
//! Leaves to others: finding the first `<base>` and the page's encoding (`links`).

use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding, UTF_8};

use super::{Url, UrlError, check_length};

/// A page's base URL, parsed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Base {
    url: Option<url::Url>,
}

impl Base {
    /// The page's own URL: the fallback base URL of HTML, section 2.4.3.
    pub fn new(page: &Url) -> Base {
        Base { url: url::Url::parse(page.as_str()).ok() }
    }

    /// The base after the page's first `<base href>`, `self` being the page's own (HTML, section 4.2.3, "set the
    /// frozen base URL"): an `href` that is no URL, or is a `data:` or `javascript:` URL, changes nothing.
    pub fn with_href(&self, href: &str) -> Base {
        self.with_href_encoded(href, UTF_8)
    }

    /// As `with_href`, in a page of another encoding than UTF-8.
    pub fn with_href_encoded(&self, href: &str, encoding: &'static Encoding) -> Base {
        match self.join(href, encoding) {
            Ok(url) if !matches!(url.scheme(), "data" | "javascript") => Base { url: Some(url) },
            _ => self.clone(),
        }
    }

    /// The base as text, with the fragment that it may have.
    pub fn as_str(&self) -> &str {
        self.url.as_ref().map_or("", url::Url::as_str)
    }

    /// Resolves one reference, found in a page of `encoding`, to a crawlable URL.
    pub fn resolve(&self, reference: &str, encoding: &'static Encoding) -> Result<Url, UrlError> {
        Url::from_parsed(self.join(reference, encoding)?)
    }

    fn join(&self, reference: &str, encoding: &'static Encoding) -> Result<url::Url, UrlError> {
        check_length(reference)?;
        resolve_any_scheme(self.url.as_ref(), reference, encoding).map_err(UrlError::Invalid)
    }
}

/// Resolves a reference to a URL of any scheme, with fragment and credentials: the standard's "URL parser"
/// (WHATWG URL, section 4.4).
pub fn resolve_any_scheme(
    base: Option<&url::Url>,
    reference: &str,
    encoding: &'static Encoding,
) -> Result<url::Url, url::ParseError> {
    let options = url::Url::options().base_url(base);
    let mut reference = Cow::Borrowed(reference);
    if base.is_some_and(|base| matches!(base.scheme(), "http" | "https" | "ws" | "wss" | "ftp")) {
        reference = without_extra_slashes(reference);
    }
    // UTF-16 and "replacement" are never written: WHATWG Encoding, section 4.3, "get an output encoding".
    let encoding = encoding.output_encoding();
    // A reference of ASCII has the same bytes in every encoding but ISO-2022-JP, which has no ESC, SO and SI.
    if encoding == UTF_8 || (reference.is_ascii() && encoding != encoding_rs::ISO_2022_JP) {
        return options.parse(&reference);
    }
    // The crate would encode what lies between two line breaks by itself, each time from the first state.
    if memchr::memchr3(b'\t', b'\n', b'\r', reference.as_bytes()).is_some() {
        reference = reference.replace(['\t', '\n', '\r'], "").into();
    }
    let encode: &dyn Fn(&str) -> Cow<'_, [u8]> = &|query| Cow::Owned(encode_query(query, encoding));
    options.encoding_override(Some(encode)).parse(&reference)
}

/// `///host` is `//host` against a base of these schemes ("special authority ignore slashes state"); the `url`
/// crate 2.5.8 forgets that for references, and finds an empty host.
fn without_extra_slashes(reference: Cow<'_, str>) -> Cow<'_, str> {
    let mut slashes = 0;
    let rest = reference.trim_start_matches(|char| char <= ' ').trim_start_matches(|char| {
        slashes += u32::from(matches!(char, '/' | '\\'));
        matches!(char, '/' | '\\' | '\t' | '\n' | '\r')
    });
    if slashes > 2 { Cow::Owned(format!("//{rest}")) } else { reference }
}

/// The query in `encoding`; what the encoding lacks as a percent-encoded numeric character reference
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

/// Room for one character and the escape sequences around it, so that every turn of the loop gets on.
const ROOM_BYTES_MIN: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Base {
        Base::new(&Url::parse("http://example.com/dir/page?q").unwrap())
    }

    #[test]
    fn base_href() {
        for (href, reference, expected) in [
            ("/other/", "x", Some("http://example.com/other/x")),
            ("//b.test", "x", Some("http://b.test/x")),
            ("", "x", Some("http://example.com/dir/x")),
            ("http://[", "x", Some("http://example.com/dir/x")),
            ("data:text/html,x", "x", Some("http://example.com/dir/x")),
            ("JavaScript:void(0)", "x", Some("http://example.com/dir/x")),
            ("about:blank", "x", None),
            ("about:blank", "http://b.test/", Some("http://b.test/")),
            ("mailto:a@b.test", "#top", None),
            ("ftp://b.test/d/", "x", None),
            ("ftp://b.test/d/", "https:x", Some("https://x/")),
        ] {
            let resolved = page().with_href(href).resolve(reference, UTF_8);
            assert_eq!(resolved.as_ref().ok().map(Url::as_str), expected, "{href} {reference}");
        }
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
            assert_eq!(page().resolve(reference, UTF_8).ok().as_ref().map(Url::as_str), expected, "{reference:?}");
        }
    }

    #[test]
    fn queries_in_legacy_encodings() {
        for (label, reference, expected) in [
            ("windows-1252", "ü?ü#ü", "http://example.com/dir/%C3%BC?%FC"),
            ("windows-1252", "?ツ&#12484;", "http://example.com/dir/page?%26%2312484%3B&"),
            ("shift_jis", "?ツ", "http://example.com/dir/page?%83c"),
            ("gbk", "?中文", "http://example.com/dir/page?%D6%D0%CE%C4"),
            ("utf-16le", "?ü", "http://example.com/dir/page?%C3%BC"),
            ("iso-2022-jp", "?\u{e}A", "http://example.com/dir/page?%26%2365533%3BA"),
            ("iso-2022-jp", "?中\n文", "http://example.com/dir/page?%1B$BCfJ8%1B(B"),
        ] {
            let encoding = Encoding::for_label(label.as_bytes()).unwrap();
            assert_eq!(page().resolve(reference, encoding).unwrap().as_str(), expected, "{label} {reference:?}");
        }
    }

    #[test]
    fn every_encoding_ends_on_every_text() {
        let text: String = (1..0x3000).step_by(7).filter_map(char::from_u32).filter(|char| *char != '#').collect();
        for label in ["big5", "euc-kr", "euc-jp", "gb18030", "iso-2022-jp", "koi8-r", "x-user-defined", "replacement"] {
            let encoding = Encoding::for_label(label.as_bytes()).unwrap_or(encoding_rs::REPLACEMENT);
            let url = page().resolve(&format!("?{text}"), encoding).unwrap();
            assert!(url.as_str().is_ascii(), "{label}");
        }
    }
}
