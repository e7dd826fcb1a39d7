//! What the links of one page are resolved against: its own URL, or what its `<base href>` makes of it.
//!
//! Decides: the base is parsed once per page at most, since a page has a hundred links. It may be of any scheme: a page
//! may say `<base href="about:blank">`, and then its relative links lead nowhere.
//!
//! Limits: as `Url`; an `href` makes a base of at most `BASE_BYTES_MAX`, or a page of short references could create a
//! thousand times its own size in URLs.
//! Leaves to others: finding the first `<base>` and the page's encoding (`html`).

use std::sync::OnceLock;

use encoding_rs::{Encoding, UTF_8};

use super::plain::{self, Ground};
use super::{Absolute, Url, UrlError, idna_bytes};

/// Longest base URL that an `href` may set, in bytes: half of the request line that RFC 9112 section 3 recommends
/// every server to accept.
const BASE_BYTES_MAX: usize = 4096;

/// What the host of an `href` may cost ([`idna_bytes`]): half a millisecond; DNS names have 253 bytes.
const BASE_IDNA_BYTES_MAX: usize = 16 << 10;

/// A page's base URL, parsed.
#[derive(Clone, Debug)]
pub struct Base {
    /// For plain references, where the base is http or https.
    ground: Option<Ground>,
    /// For all others, which many pages do not have: parsed when one comes.
    url: OnceLock<Option<Absolute>>,
}

/// What is known of the host of a resolved URL, without examining it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Its scheme, host and port are the base's.
    SameHost,
    /// They may be any, including the base's.
    AnyHost,
}

impl Base {
    /// The page's own URL: the fallback base URL of HTML, section 2.4.3.
    pub fn new(page: &Url) -> Base {
        Base { ground: Some(Ground::new(page.clone())), url: OnceLock::new() }
    }

    /// As `new`, for a page of any scheme.
    pub fn of_document(document: Absolute) -> Base {
        let ground = document.clone().try_into().ok().map(Ground::new);
        Base { ground, url: OnceLock::from(Some(document)) }
    }

    /// The base after the page's first `<base href>`, `self` being the page's own (HTML, section 4.2.3, "set the
    /// frozen base URL"): an `href` that is not a URL, is a `data:` or `javascript:` URL, or is too long changes
    /// nothing.
    pub fn with_href(&self, href: &str) -> Base {
        self.with_href_encoded(href, UTF_8)
    }

    /// As `with_href`, in a page of another encoding than UTF-8.
    pub fn with_href_encoded(&self, href: &str, encoding: &'static Encoding) -> Base {
        if href.len() > BASE_BYTES_MAX || idna_bytes(href) > BASE_IDNA_BYTES_MAX {
            return self.clone();
        }
        match Absolute::resolve(self.as_absolute(), href, encoding) {
            Ok(url) if is_honoured(&url) => Base::of_document(url),
            _ => self.clone(),
        }
    }

    /// The base, with its fragment, if any.
    pub fn as_absolute(&self) -> Option<&Absolute> {
        let parse = || self.ground.as_ref().and_then(|ground| Absolute::parse(ground.url().as_str()).ok());
        self.url.get_or_init(parse).as_ref()
    }

    /// Resolves one reference, found in a page of `encoding`, to a crawlable URL.
    pub fn resolve(&self, reference: &str, encoding: &'static Encoding) -> Result<Url, UrlError> {
        let mut url = Url::unwritten(self.ground.as_ref().map_or(0, Ground::text_bytes) + reference.len());
        self.resolve_into(reference, encoding, &mut url)?;
        Ok(url)
    }

    /// As `resolve`, into a URL whose memory is reused. On an error it is unchanged.
    #[inline]
    pub fn resolve_into(&self, reference: &str, encoding: &'static Encoding, url: &mut Url) -> Result<Reach, UrlError> {
        let plain = match &self.ground {
            Some(ground) => ground.resolve(reference, encoding, url),
            None => plain::resolve_alone(reference, encoding, url).map(Ok),
        };
        if let Some(resolved) = plain {
            return resolved;
        }
        *url = self.resolve_by_parser(reference, encoding)?;
        Ok(Reach::AnyHost)
    }

    /// Whether `reference` is resolved without the parser.
    #[cfg(test)]
    pub(super) fn is_plain(&self, reference: &str, encoding: &'static Encoding) -> bool {
        let Some(ground) = &self.ground else { return false };
        ground.resolve(reference, encoding, &mut Url::unwritten(0)).is_some()
    }

    /// The result of `resolve` for any reference, using only the parser: its slow twin.
    pub fn resolve_by_parser(&self, reference: &str, encoding: &'static Encoding) -> Result<Url, UrlError> {
        self.resolve_any(reference, encoding)?.try_into()
    }

    /// As `resolve`, to a URL of any scheme, with fragment and credentials.
    pub fn resolve_any(&self, reference: &str, encoding: &'static Encoding) -> Result<Absolute, UrlError> {
        Absolute::resolve(self.as_absolute(), reference, encoding)
    }
}

impl PartialEq for Base {
    fn eq(&self, other: &Base) -> bool {
        self.as_absolute() == other.as_absolute()
    }
}

impl Eq for Base {}

fn is_honoured(base: &Absolute) -> bool {
    !matches!(base.scheme(), "data" | "javascript") && base.text_bytes() <= BASE_BYTES_MAX
}

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
    fn long_bases() {
        let href = "b".repeat(BASE_BYTES_MAX - "http://example.com//".len());
        let base = page().with_href(&format!("/{href}/"));
        assert_eq!(base.resolve("x", UTF_8).unwrap().as_str(), format!("http://example.com/{href}/x"));
        assert_eq!(page().with_href(&format!("/{href}b/")), page());
    }

    #[test]
    fn queries_in_legacy_encodings() {
        for (label, reference, expected) in [
            ("windows-1252", "ü?ü#ü", "http://example.com/dir/%C3%BC?%FC"),
            ("windows-1252", "?ツ&#12484;", "http://example.com/dir/page?%26%2312484%3B&"),
            ("shift_jis", "?ツ", "http://example.com/dir/page?%83c"),
            ("gbk", "?中文", "http://example.com/dir/page?%D6%D0%CE%C4"),
            ("utf-16le", "?ü", "http://example.com/dir/page?%C3%BC"),
            ("shift_jis", "?ソ", "http://example.com/dir/page?%83\\"),
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
