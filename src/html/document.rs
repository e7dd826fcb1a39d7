//! The type of a body, and so the way to look for links in it.
//!
//! Decides: the Content-Type header is believed when it names a type, except for common misuses: a PDF or an image as
//! `text/html` (by the signatures of section 6), a feed as `text/html` (section 7.3), binary data as `text/plain`
//! (section 7.2). Without a type, the bytes decide (section 7.1). For XML, the root element decides.
//!
//! Source: WHATWG MIME Sniffing, with two deviations. The standard keeps `text/html` with a PDF's signature as HTML,
//! as browsers do, which show it to a person; scanned as HTML, a PDF yields false links. And a sitemap is recognized
//! by its root element as a feed is, and both also as `text/plain` and without a type.
//! Invariants: reads only the first 1,445 bytes (section 5.2).
//! Limits: PDFs are not searched for links; they are recognized and counted.

use super::mime::{self, SNIFF_BYTES};
use super::tokenizer::is_space;

/// The ways to look for links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Document {
    /// HTML, or XHTML, which is read as HTML.
    Html,
    /// Perhaps a sitemap or a feed.
    Xml,
    /// Perhaps a list of URLs.
    Text,
    /// gzip, which may contain a sitemap.
    Gzip,
    /// Not searched.
    Pdf,
    /// Not searched.
    Other,
}

impl Document {
    /// The document type of a response with this Content-Type and this decoded body.
    pub fn of(content_type: Option<&[u8]>, body: &[u8]) -> Document {
        let head = body.get(..SNIFF_BYTES).unwrap_or(body);
        if mime::is_html(content_type, body) {
            return match signature(head) {
                // Text may begin with the letters of a signature, but not with `%PDF-` or `%!PS-Adobe-`.
                Some(binary) if head.starts_with(b"%") || is_binary(head) => binary,
                _ if is_listing(head) => Document::Xml,
                _ => Document::Html,
            };
        }
        let essence = content_type.map(mime::essence).unwrap_or_default().to_ascii_lowercase();
        match essence.as_slice() {
            b"application/pdf" | b"application/x-pdf" => Document::Pdf,
            b"application/gzip" | b"application/x-gzip" => Document::Gzip,
            xml if mime::is_xml(xml) => Document::Xml,
            b"text/plain" | b"application/octet-stream" | b"binary/octet-stream" if is_listing(head) => Document::Xml,
            b"text/plain" if is_binary(head) => signature(head).unwrap_or(Document::Other),
            b"text/plain" => Document::Text,
            b"application/octet-stream" | b"binary/octet-stream" => signature(head).unwrap_or(Document::Other),
            other
                if mime::names_type(other)
                    && !matches!(other, b"unknown/unknown" | b"application/unknown" | b"*/*") =>
            {
                Document::Other
            }
            _ => match signature(head) {
                Some(binary) => binary,
                // A list of URLs never begins with this, and many sitemaps have no declaration.
                None if skip_mark(head).trim_ascii_start().starts_with(b"<") || begins_utf16_tag(head) => Document::Xml,
                None if is_binary(head) || head.is_empty() => Document::Other,
                None => Document::Text,
            },
        }
    }
}

/// The type given by first bytes with which no text begins (sections 6 and 7.1).
fn signature(head: &[u8]) -> Option<Document> {
    if head.starts_with(b"%PDF-") {
        return Some(Document::Pdf);
    }
    if head.starts_with(b"\x1f\x8b\x08") {
        return Some(Document::Gzip);
    }
    const OTHERS: [&[u8]; 11] = [
        b"\x89PNG\r\n\x1a\n",
        b"GIF87a",
        b"GIF89a",
        b"\xff\xd8\xff",
        b"%!PS-Adobe-",
        b"PK\x03\x04",
        b"Rar!\x1a\x07",
        b"OggS\0",
        b"ID3",
        b"\x1a\x45\xdf\xa3",
        b"\0\0\x01\0",
    ];
    let riff = head.strip_prefix(b"RIFF").and_then(|rest| rest.get(4..8));
    let is_riff = matches!(riff, Some(b"WEBP" | b"WAVE" | b"AVI "));
    (is_riff || OTHERS.iter().any(|start| head.starts_with(start))).then_some(Document::Other)
}

/// "Rules for distinguishing if a resource is text or binary" (section 7.2).
fn is_binary(head: &[u8]) -> bool {
    let is_marked = [&b"\xfe\xff"[..], b"\xff\xfe", b"\xef\xbb\xbf"].iter().any(|mark| head.starts_with(mark));
    !is_marked && head.iter().any(|byte| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f))
}

/// Whether the root element is that of a feed ("sniffing a mislabeled feed", section 7.3) or of a sitemap.
fn is_listing(head: &[u8]) -> bool {
    let mut rest = skip_mark(head);
    loop {
        let start = rest.iter().position(|byte| !is_space(*byte)).unwrap_or(rest.len());
        let Some(tag) = rest.get(start..).and_then(|rest| rest.strip_prefix(b"<")) else { return false };
        let end: &[u8] = if let Some(comment) = tag.strip_prefix(b"!--") {
            rest = comment;
            b"-->"
        } else if tag.starts_with(b"!") {
            rest = tag;
            b">"
        } else if tag.starts_with(b"?") {
            rest = tag;
            b"?>"
        } else {
            let is_name_end = |byte: &u8| is_space(*byte) || matches!(byte, b'/' | b'>');
            let name = tag.split(is_name_end).next().unwrap_or_default();
            // The prefix is up to the document.
            return match name.rsplit(|byte| *byte == b':').next().unwrap_or_default() {
                b"rss" | b"feed" | b"urlset" | b"sitemapindex" => true,
                // For RSS 1.0, RDF, the standard also requires both of its namespaces.
                b"RDF" => [&b"http://purl.org/rss/1.0/"[..], b"http://www.w3.org/1999/02/22-rdf-syntax-ns#"]
                    .iter()
                    .all(|name| memchr::memmem::find(tag, name).is_some()),
                _ => false,
            };
        };
        let Some(at) = memchr::memmem::find(rest, end) else { return false };
        rest = rest.get(at + end.len()..).unwrap_or_default();
    }
}

/// Whether UTF-16 with a byte order mark begins with `<`.
fn begins_utf16_tag(head: &[u8]) -> bool {
    let (mark, text) = head.as_chunks::<2>().0.split_first().unwrap_or((&[0; 2], &[]));
    let unit: fn([u8; 2]) -> u16 = match mark {
        b"\xff\xfe" => u16::from_le_bytes,
        b"\xfe\xff" => u16::from_be_bytes,
        _ => return false,
    };
    let mut units = text.iter().map(|bytes| unit(*bytes));
    units.find(|unit| !u8::try_from(*unit).is_ok_and(is_space)) == Some(u16::from(b'<'))
}

fn skip_mark(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_lies() {
        let of = |content_type: &str, body: &[u8]| Document::of(Some(content_type.as_bytes()), body);
        for (content_type, body, expected) in [
            ("text/html", &b"<p>"[..], Document::Html),
            ("text/html", b"%PDF-1.7\n<a href=/no>", Document::Pdf),
            ("text/html; charset=utf-8", b"\x89PNG\r\n\x1a\n<a href=/no>", Document::Other),
            ("text/html", b"RIFF\x01\x02\x03\x04WEBPVP8", Document::Other),
            ("text/html", b"RIFF raff", Document::Html),
            ("text/html", b"\x1f\x8b\x08\0", Document::Gzip),
            (
                "text/html",
                b"\xef\xbb\xbf <?xml version='1.0'?><!-- <html> --><!DOCTYPE rss>\n<rss version='2.0'>",
                Document::Xml,
            ),
            ("text/html", b"<?xml version='1.0'?><html>", Document::Html),
            ("text/html", b"<rdf:RDF xmlns='http://purl.org/rss/1.0/'>", Document::Html),
            (
                "text/html",
                b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>",
                Document::Xml,
            ),
            ("text/html", b"<!-- never closed", Document::Html),
            ("text/html", b"<?xml version='1.0'?><!-- x --><urlset\nxmlns='x'>", Document::Xml),
            ("text/html", b"<s:urlset xmlns:s='x'>", Document::Xml),
            ("text/html", b"%!PS-Adobe-3.0", Document::Other),
            ("text/html", b"<feedback><a href=/yes>", Document::Html),
            ("text/html", b"ID3 tags <a href=/yes>", Document::Html),
            ("text/html, text/html; charset=utf-8", b"<article>", Document::Html),
            ("text/plain", b"<sitemapindex>", Document::Xml),
            ("text/plain", b"<a>", Document::Text),
            ("application/octet-stream", b"\xef\xbb\xbf\n<rss version='2.0'>", Document::Xml),
            ("application/xhtml+xml", b"<html>", Document::Html),
            ("Application/RSS+XML; charset=x", b"<rss>", Document::Xml),
            ("image/svg+xml", b"<svg>", Document::Xml),
            ("text/xml", b"", Document::Xml),
            ("text/plain", b"http://a.test/", Document::Text),
            ("text/plain", b"\xff\xfeh\0", Document::Text),
            ("text/plain", b"\0\x01", Document::Other),
            ("text/plain", b"\x1f\x8b\x08\0\0", Document::Gzip),
            ("application/octet-stream", b"\x1f\x8b\x08\0", Document::Gzip),
            ("application/octet-stream", b"<html>", Document::Other),
            ("application/x-gzip", b"", Document::Gzip),
            ("application/pdf", b"", Document::Pdf),
            ("image/png", b"<html>", Document::Other),
            ("text/css", b"http://a.test/", Document::Other),
        ] {
            assert_eq!(of(content_type, body), expected, "{content_type} {}", body.escape_ascii());
        }
    }

    #[test]
    fn without_a_type() {
        for (body, expected) in [
            (&b" <!doctype html>"[..], Document::Html),
            (b"\n<?xml version='1.0'?><urlset>", Document::Xml),
            (b"<urlset>", Document::Xml),
            (b"<!-- x --><urlset>", Document::Xml),
            (b"<!-- x --><html>", Document::Html),
            (b"\xff\xfe<\0u\0", Document::Xml),
            (b"\xfe\xff\0\n\0<\0u", Document::Xml),
            (b"\xff\xfeh\0<\0", Document::Text),
            (b"\xff\xfe", Document::Text),
            (b"http://a.test/\n", Document::Text),
            (b"%PDF-1.4", Document::Pdf),
            (b"GIF89a", Document::Other),
            (b"\x07", Document::Other),
            (b"", Document::Other),
        ] {
            assert_eq!(Document::of(None, body), expected, "{}", body.escape_ascii());
            assert_eq!(Document::of(Some(b"nonsense"), body), expected, "{}", body.escape_ascii());
        }
    }
}
