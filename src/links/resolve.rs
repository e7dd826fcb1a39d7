//! Attribute text to absolute URLs.
//!
//! Decides: the base is parsed once for a page; the query of a reference is encoded in the document's encoding, where
//! what the encoding lacks becomes `%26%23NNN%3B`, as browsers send it. Other parts of a URL are UTF-8 always.
//!
//! Source: WHATWG URL section 4.4 and "percent-encode after encoding"; HTML sections 2.4.2 (fallback base URL) and
//! 4.2.3 (which `base` counts).
//!
//! Invariants: a base from the page is at most `BASE_BYTES_MAX` long, so that a page of short references cannot make
//! a thousand times its size of URLs.

use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding, UTF_8};
use url::{ParseError, Position, Url};

/// Longest `<base href>` that is honoured, in bytes; servers refuse request lines of twice this.
const BASE_BYTES_MAX: usize = 4096;

/// Resolves the references of one document.
pub(super) struct Resolver<'a> {
    document: &'a Url,
    base: Option<Url>,
    /// `None` for UTF-8.
    query_encoding: Option<&'static Encoding>,
}

impl<'a> Resolver<'a> {
    /// For the document at `document`, written in `encoding`.
    pub fn new(document: &'a Url, encoding: &'static Encoding) -> Resolver<'a> {
        let output = encoding.output_encoding();
        Resolver { document, base: None, query_encoding: (output != UTF_8).then_some(output) }
    }

    /// What references are resolved against.
    pub fn base(&self) -> &Url {
        self.base.as_ref().unwrap_or(self.document)
    }

    /// Takes the first `<base href>`; unusable ones leave the document's URL in its place.
    pub fn set_base(&mut self, href: &str) {
        self.base = self
            .parse(href, self.document)
            .ok()
            .filter(|base| !matches!(base.scheme(), "data" | "javascript") && base.as_str().len() <= BASE_BYTES_MAX);
    }

    /// The absolute URL of `reference`.
    pub fn resolve(&self, reference: &str) -> Result<Url, ParseError> {
        self.parse(reference, self.base())
    }

    fn parse(&self, reference: &str, base: &Url) -> Result<Url, ParseError> {
        // Only what is not ASCII differs between encodings.
        match self.query_encoding {
            Some(encoding) if !reference.is_ascii() => {
                let encode: &dyn Fn(&str) -> Cow<'_, [u8]> = &|query| Cow::Owned(encode(encoding, query));
                Url::options().base_url(Some(base)).encoding_override(Some(encode)).parse(reference)
            }
            _ => Url::options().base_url(Some(base)).parse(reference),
        }
        .map(escape_carets)
    }
}

/// Writes `^` in a path as `%5E`: the standard's path percent-encode set has had it since 2024, the `url` crate not yet.
fn escape_carets(url: Url) -> Url {
    if url.cannot_be_a_base() || !url.path().contains('^') {
        return url;
    }
    let before = &url[..Position::BeforePath];
    let after = &url[Position::AfterPath..];
    let escaped = format!("{before}{}{after}", url.path().replace('^', "%5E"));
    Url::parse(&escaped).unwrap_or(url)
}

/// Encodes a query; `%26%23NNN%3B` for what the encoding lacks, which the URL parser leaves as it is.
fn encode(encoding: &'static Encoding, query: &str) -> Vec<u8> {
    const CHUNK_BYTES: usize = 512;
    let mut encoder = encoding.new_encoder();
    let mut bytes = Vec::with_capacity(query.len());
    let mut rest = query;
    loop {
        let mut chunk = [0; CHUNK_BYTES];
        let (result, read, written) = encoder.encode_from_utf8_without_replacement(rest, &mut chunk, true);
        bytes.extend_from_slice(chunk.get(..written).unwrap_or_default());
        rest = rest.get(read..).unwrap_or_default();
        match result {
            EncoderResult::InputEmpty => return bytes,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(lacking) => {
                bytes.extend_from_slice(format!("%26%23{}%3B", u32::from(lacking)).as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(encoding: &'static Encoding, base: Option<&str>, reference: &str) -> String {
        let document = Url::parse("http://a.test/x/y?z").unwrap();
        let mut resolver = Resolver::new(&document, encoding);
        if let Some(base) = base {
            resolver.set_base(base);
        }
        resolver.resolve(reference).map_or_else(|error| error.to_string(), String::from)
    }

    #[test]
    fn queries_in_the_documents_encoding() {
        let latin = encoding_rs::WINDOWS_1252;
        assert_eq!(resolved(latin, None, "é?é€ü#é"), "http://a.test/x/%C3%A9?%E9%80%FC#%C3%A9");
        assert_eq!(resolved(latin, None, "?aж&b"), "http://a.test/x/y?a%26%231078%3B&b");
        assert_eq!(resolved(UTF_8, None, "?é"), "http://a.test/x/y?%C3%A9");
        assert_eq!(resolved(encoding_rs::UTF_16LE, None, "?é"), "http://a.test/x/y?%C3%A9");
        assert_eq!(resolved(encoding_rs::SHIFT_JIS, None, "?ソ"), "http://a.test/x/y?%83\\");
        let long = "é".repeat(2000);
        assert_eq!(resolved(latin, None, &format!("?{long}")), format!("http://a.test/x/y?{}", "%E9".repeat(2000)));
    }

    #[test]
    fn carets() {
        assert_eq!(resolved(UTF_8, None, "^/^?^#^"), "http://a.test/x/%5E/%5E?^#^");
        assert_eq!(resolved(UTF_8, None, "mailto:^"), "mailto:^");
    }

    #[test]
    fn bases() {
        assert_eq!(resolved(UTF_8, Some("/b/"), "c"), "http://a.test/b/c");
        assert_eq!(resolved(UTF_8, Some("//["), "c"), "http://a.test/x/c");
        assert_eq!(resolved(UTF_8, Some("data:x"), "c"), "http://a.test/x/c");
        assert_eq!(resolved(UTF_8, Some(&"b".repeat(5000)), "c"), "http://a.test/x/c");
    }
}
