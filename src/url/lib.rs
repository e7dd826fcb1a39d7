//! URLs: bytes → canonical URL; its host and site; its fingerprint.
//!
//! Decides: one form for every URL in the crawler. It is the WHATWG serialization (URL standard, section 4.5) of an
//! http or https URL, without fragment (never sent), user name and password (never sent either: a link must not make
//! the crawler log in). Two texts that mean the same request are then the same bytes, and the visited set, the
//! frontier and the store can compare bytes. Why the `url` crate does the parsing: browsers' test vectors are run
//! against it; our own code only reads what it wrote.
//!
//! Invariants: a `Url` is ASCII; its path starts with `/`; its offsets are ascending and within the text.
//! Limits: 65,535 bytes a URL, 1 MiB a reference.
//! Leaves to others: which URLs are wanted (`config::Scope`), which shard they belong to (`route`).
//!
//! ```
//! use ringcrawl_url::Url;
//!
//! let url = Url::parse("HTTP://Example.org:80/a/../b#c").expect("a URL");
//! assert_eq!(url.as_str(), "http://example.org/b");
//! ```

mod absolute;
mod address;
mod bad_ports;
mod base;
mod batch;
mod block;
mod bytes;
mod canonical;
mod hashed;
mod idna;
mod key;
pub mod names;
mod plain;
mod repeats;
mod site;
mod surt;
#[cfg(test)]
mod twin;

use std::fmt;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

pub use absolute::Absolute;
pub use address::{AddressClass, address_class, carried_v4};
pub use bad_ports::is_bad_port;
pub use base::{Base, Reach};
pub use batch::{FoundUrl, UrlBatch, VIA, VIA_BYTES_MAX};
pub use bytes::text_of_bytes;
pub use hashed::HashedUrls;
pub use idna::idna_bytes;
pub use key::KeyRules;
pub use repeats::Repeats;
pub use site::{Site, SiteKey, Sites, is_listed_suffix, is_public_suffix, owner_of, site_of};
pub use surt::{surt, write_surt};

/// A crawlable (http or https) URL in WHATWG canonical form, without fragment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Url {
    text: String,
    /// Offset of the host's first byte; the host's end; the start of path and query.
    host_start: u16,
    host_end: u16,
    path_start: u16,
    port: u16,
}

/// http or https.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scheme {
    /// Unencrypted.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The port that a URL of this scheme need not name (RFC 9110 sections 4.2.1 and 4.2.2).
    pub const fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// Why a text is not a crawlable URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UrlError {
    /// Not a URL by the WHATWG standard.
    #[error("not a URL: {0}")]
    Invalid(url::ParseError),
    /// A URL of a scheme that is not crawled.
    #[error("scheme is not http or https")]
    Scheme,
    /// Longer than 65,535 bytes.
    #[error("URL is longer than 65535 bytes")]
    TooLong,
}

impl Url {
    /// Parses, canonicalizes, drops the fragment and any user name and password.
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        Absolute::parse(text)?.try_into()
    }

    /// Reads back a text that `as_str` gave, without parsing it again in full.
    ///
    /// Any other text is either refused or read as a URL whose parts are valid but perhaps not canonical.
    pub fn from_canonical(text: &str) -> Result<Url, UrlError> {
        canonical::read(text)
    }

    /// The same, overwriting this URL and reusing its memory. On an error it is unchanged.
    pub fn read_canonical(&mut self, bytes: &[u8]) -> Result<(), UrlError> {
        let text = std::str::from_utf8(bytes).map_err(|_| UrlError::Invalid(url::ParseError::IdnaError))?;
        canonical::read_into(text, self)
    }

    /// Resolves `reference` against `self` (WHATWG URL, section 4.4), then as `parse`.
    pub fn join(&self, reference: &str) -> Result<Url, UrlError> {
        self.join_encoded(reference, encoding_rs::UTF_8)
    }

    /// As `join`, for a reference in a page of a legacy encoding: its query is sent in that encoding (WHATWG URL,
    /// section 4.4, "query state"). For many references of one page, `Base` is cheaper.
    pub fn join_encoded(&self, reference: &str, encoding: &'static encoding_rs::Encoding) -> Result<Url, UrlError> {
        Base::new(self).resolve(reference, encoding)
    }

    /// Memory for a URL that is about to be written.
    pub fn unwritten(room: usize) -> Url {
        Url { text: String::with_capacity(room), host_start: 0, host_end: 0, path_start: 0, port: 0 }
    }

    /// The whole URL.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// http or https.
    pub fn scheme(&self) -> Scheme {
        if usize::from(self.host_start) == HTTPS_PREFIX.len() { Scheme::Https } else { Scheme::Http }
    }

    /// Lower-case domain or IP address; an IPv6 address with its brackets.
    pub fn host(&self) -> &str {
        &self.text[usize::from(self.host_start)..usize::from(self.host_end)]
    }

    /// The port, the scheme's default when the URL names none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host, and port when it is not the scheme's default: the Host header's value (RFC 9110 section 7.2).
    pub fn authority(&self) -> &str {
        &self.text[usize::from(self.host_start)..usize::from(self.path_start)]
    }

    /// `scheme://authority`, without a slash at the end.
    pub fn origin(&self) -> &str {
        &self.text[..usize::from(self.path_start)]
    }

    /// Path and query: the request target (RFC 9112 section 3.2.1). Never empty.
    pub fn path_and_query(&self) -> &str {
        &self.text[usize::from(self.path_start)..]
    }

    /// The site: the host's registrable domain.
    pub fn site(&self) -> &str {
        site_of(self.host())
    }
}

impl TryFrom<Absolute> for Url {
    type Error = UrlError;

    /// Drops fragment, user name and password.
    fn try_from(mut absolute: Absolute) -> Result<Url, UrlError> {
        let parsed = &mut absolute.url;
        let host_start: u16 = match parsed.scheme() {
            "http" => HTTP_PREFIX.len() as u16,
            "https" => HTTPS_PREFIX.len() as u16,
            _ => return Err(UrlError::Scheme),
        };
        parsed.set_fragment(None);
        // These two only fail for URLs without a host, and http URLs have one.
        let _ = parsed.set_username("");
        let _ = parsed.set_password(None);
        let port = parsed.port_or_known_default().ok_or(UrlError::Scheme)?;
        // All offsets are within the text, so none overflows if its length fits.
        u16::try_from(parsed.as_str().len()).map_err(|_| UrlError::TooLong)?;
        let host_bytes = parsed.host_str().map_or(0, str::len) as u16;
        let path_start = parsed[..url::Position::BeforePath].len() as u16;
        Ok(Url { text: absolute.into_text(), host_start, host_end: host_start + host_bytes, path_start, port })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The 64-bit fingerprint of a canonical URL under the crawl's own seed.
pub fn fingerprint(rng_seed: u64, url: &str) -> u64 {
    fingerprint_of_bytes(rng_seed, url.as_bytes())
}

/// The same for the URL's bytes. Strangers choose URLs and do not know the seed: one that collides with another's page
/// would hide it. XXH3 mixes each 16 bytes of a text of up to 240 with the seed in a product of its own; no collision is
/// known there that holds for all seeds. Longer texts are added to its sums as they are: these get SipHash-1-3.
pub fn fingerprint_of_bytes(rng_seed: u64, url: &[u8]) -> u64 {
    if url.len() <= XXH3_BYTES_MAX {
        return xxhash_rust::xxh3::xxh3_64_with_seed(url, rng_seed);
    }
    let mut hasher = SipHasher13::new_with_keys(rng_seed, rng_seed.rotate_left(32));
    hasher.write(url);
    hasher.finish()
}

/// Longer URLs are rare.
const XXH3_BYTES_MAX: usize = 240;

const HTTP_PREFIX: &str = "http://";
const HTTPS_PREFIX: &str = "https://";

/// A reference may shrink in parsing (tabs, dot segments), but one that is sixteen times too long is not worth it.
const REFERENCE_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    /// Both functions: texts that differ in one byte anywhere, or in the seed, have nothing in common.
    #[test]
    fn fingerprints_follow_from_every_byte_and_the_seed() {
        for length in [1, 16, 17, 128, 240, 241, 1_024, 65_535] {
            let text = vec![b'a'; length];
            let all = (0..length).step_by(length.div_ceil(100)).map(|at| {
                let mut other = text.clone();
                other[at] = b'b';
                fingerprint_of_bytes(7, &other)
            });
            let mut all: Vec<u64> = all.chain([7, 8, !7].map(|seed| fingerprint_of_bytes(seed, &text))).collect();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count, "{length}");
        }
        let of = |length: usize| fingerprint_of_bytes(7, &vec![b'a'; length]);
        assert_eq!([of(240), of(241)], [18_244_178_915_774_065_854, 17_134_215_406_822_495_450]);
    }

    #[test]
    fn parts() {
        let url = Url::parse("HTTPS://user:pw@EXAMPLE.com:8443/a/../b c?q=ü#frag").unwrap();
        assert_eq!(url.as_str(), "https://example.com:8443/b%20c?q=%C3%BC");
        assert_eq!((url.scheme(), url.host(), url.port()), (Scheme::Https, "example.com", 8443));
        assert_eq!(url.authority(), "example.com:8443");
        assert_eq!(url.origin(), "https://example.com:8443");
        assert_eq!(url.path_and_query(), "/b%20c?q=%C3%BC");
        let v6 = Url::parse("http://[::1]:80/").unwrap();
        assert_eq!((v6.host(), v6.port(), v6.authority(), v6.site()), ("[::1]", 80, "[::1]", "[::1]"));
        assert_eq!(Url::parse("http://@/"), Err(UrlError::Invalid(url::ParseError::EmptyHost)));
        assert_eq!(Url::parse("ftp://example.com/"), Err(UrlError::Scheme));
    }

    #[test]
    fn references() {
        let page = Url::parse("http://example.com/dir/page?q#x").unwrap();
        for (reference, expected) in [
            ("", "http://example.com/dir/page?q"),
            ("#top", "http://example.com/dir/page?q"),
            ("?r", "http://example.com/dir/page?r"),
            ("other", "http://example.com/dir/other"),
            ("../../up", "http://example.com/up"),
            ("//user@b.test:80/x", "http://b.test/x"),
            ("\\\\b.test\\x", "http://b.test/x"),
            (" http:sub ", "http://example.com/dir/sub"),
        ] {
            assert_eq!(page.join(reference).unwrap().as_str(), expected, "{reference:?}");
        }
        assert_eq!(page.join("mailto:a@b.test"), Err(UrlError::Scheme));
    }

    #[test]
    fn lengths_at_the_border_of_the_offsets() {
        let prefix = "http://example.com:8080/";
        let fits = format!("{prefix}{}", "a".repeat(65_535 - prefix.len()));
        let url = Url::parse(&fits).unwrap();
        assert_eq!((url.as_str().len(), url.port(), url.host()), (65_535, 8080, "example.com"));
        assert_eq!(Url::parse(&format!("{fits}a")), Err(UrlError::TooLong));
        assert_eq!(Url::parse(&format!("{fits}#fragment")).unwrap(), url);
        // A host beyond the offsets, and credentials that are dropped before the length is checked.
        let label = "a.".repeat(40_000);
        assert_eq!(Url::parse(&format!("http://{label}a/")), Err(UrlError::TooLong));
        let credentials = "u".repeat(70_000);
        assert_eq!(Url::parse(&format!("http://{credentials}@b.test/x")).unwrap().as_str(), "http://b.test/x");
        assert_eq!(Url::parse(&format!("{prefix}{}", "\t".repeat(1 << 20))), Err(UrlError::TooLong));
    }

    /// Whatever a page writes into a link, the result is valid, canonical, and read back unchanged.
    #[test]
    fn hostile_references() {
        let samples = [
            "https://user:pw@sub.example.co.uk:8443/a/b/../c;d?e=f&g#h",
            "//[2001:db8::1]:80/%7Efoo/%2e%2E/?\u{fc}=\u{4e2d}",
            "http://xn--bcher-kva.example/\\..\\x",
            "\t\\\\192.0x2.1/\u{1f600}",
        ];
        let page = Base::new(&Url::parse("http://www.example.com/dir/page?q").unwrap());
        let encodings =
            [encoding_rs::UTF_8, encoding_rs::SHIFT_JIS, encoding_rs::ISO_2022_JP, encoding_rs::WINDOWS_1252];
        let mut rng = Rng::new(1);
        let mut resolved = 0;
        for round in 0..40_000 {
            let mut chars: Vec<char> = samples[round % samples.len()].chars().collect();
            for _ in 0..1 + round % 4 {
                let at = rng.index(chars.len());
                match rng.below(3) {
                    0 => chars[at] = char::from_u32(rng.below(0x300) as u32).unwrap_or('x'),
                    1 => chars.truncate(at.max(1)),
                    _ => chars.insert(at, (*rng.pick(b"/\\:@?#%.[] x-")).into()),
                }
            }
            let reference: String = chars.into_iter().collect();
            let Ok(url) = page.resolve(&reference, encodings[round % encodings.len()]) else { continue };
            resolved += 1;
            assert!(url.as_str().bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'), "{reference:?}: {url}");
            assert_eq!(Url::parse(url.as_str()).as_ref(), Ok(&url), "{reference:?}");
            assert_eq!(Url::from_canonical(url.as_str()).as_ref(), Ok(&url), "{reference:?}");
            assert!(url.path_and_query().starts_with('/') && !url.host().is_empty());
            assert!(url.host().contains(url.site()) && surt(&url).is_ascii());
        }
        assert!(resolved > 20_000, "{resolved}");
    }
}
