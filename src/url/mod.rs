//! URLs: bytes → canonical URL; its host and site; the fingerprint by which it is remembered.

mod batch;

pub use batch::UrlBatch;

/// A crawlable (http or https) URL in WHATWG canonical form, without fragment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Url {
    text: Box<str>,
    /// Offset of the host's first byte; the host's end; the start of path and query.
    host_start: u16,
    host_end: u16,
    path_start: u16,
    port: u16,
}

/// http or https.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scheme {
    /// Plain.
    Http,
    /// Over TLS.
    Https,
}

/// Why a text is no crawlable URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UrlError {
    /// Not a URL after the WHATWG standard.
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
        let parsed = url::Url::parse(text).map_err(UrlError::Invalid)?;
        Url::from_parsed(parsed)
    }

    /// Resolves `reference` against `self` (WHATWG URL, section 4.4), then as `parse`.
    pub fn join(&self, reference: &str) -> Result<Url, UrlError> {
        let base = url::Url::parse(&self.text).map_err(UrlError::Invalid)?;
        Url::from_parsed(base.join(reference).map_err(UrlError::Invalid)?)
    }

    fn from_parsed(mut parsed: url::Url) -> Result<Url, UrlError> {
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(UrlError::Scheme);
        }
        parsed.set_fragment(None);
        let _ = parsed.set_username("");
        let _ = parsed.set_password(None);
        let port = parsed.port_or_known_default().ok_or(UrlError::Scheme)?;
        let host_start = parsed.scheme().len() + 3;
        let host_end = host_start + parsed.host_str().map_or(0, str::len);
        let path_start = parsed[..url::Position::BeforePath].len();
        if parsed.as_str().len() > usize::from(u16::MAX) {
            return Err(UrlError::TooLong);
        }
        Ok(Url {
            text: String::from(parsed).into_boxed_str(),
            host_start: host_start as u16,
            host_end: host_end as u16,
            path_start: path_start as u16,
            port,
        })
    }

    /// The whole URL.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// http or https.
    pub fn scheme(&self) -> Scheme {
        if self.host_start == 8 { Scheme::Https } else { Scheme::Http }
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

/// The registrable domain of `host` by the Public Suffix List, or `host` itself when it has none
/// (an IP address, a bare public suffix, a single label).
pub fn site_of(host: &str) -> &str {
    if host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok() {
        return host;
    }
    psl::domain_str(host).unwrap_or(host)
}

/// The 64-bit fingerprint of a canonical URL under the crawl's own seed.
pub fn fingerprint(rng_seed: u64, url: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(url.as_bytes(), rng_seed)
}
