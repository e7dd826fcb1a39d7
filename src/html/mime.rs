//! The Content-Type header's value, and whether a body is HTML.
//!
//! Decides: whether a body is HTML, before other checks (`document`). The header is believed when it names a type;
//! without a type the first bytes decide, by the rows of the sniffing table that yield `text/html`. A body of
//! `text/plain` that looks like HTML stays text.
//!
//! Several types separated by commas result when a server joins two headers: the last one counts.
//!
//! Source: WHATWG MIME Sniffing sections 4.4 (parsing), 7 and 7.1 (unknown type); Fetch section 2.2.2 ("extract a MIME
//! type"); RFC 9110 section 8.3.
//!
//! Limits: XHTML is read as HTML: most of what is served as XHTML was written for HTML parsers, and an XML error must
//! not cost a page's links. But a self-closing element there is empty, scripts included.

use std::fmt;

use super::tokenizer::is_space;

/// Bytes that sniffing reads (section 5.2: the resource header).
pub(super) const SNIFF_BYTES: usize = 1445;

/// Whether to look for links: the header says HTML or XHTML, or says nothing and the first bytes look like HTML.
pub fn is_html(content_type: Option<&[u8]>, body: &[u8]) -> bool {
    let essence = content_type.map(essence).unwrap_or_default();
    let is = |name: &[u8]| essence.eq_ignore_ascii_case(name);
    if is(b"text/html") || is(b"application/xhtml+xml") {
        return true;
    }
    let unknown = !names_type(essence) || is(b"unknown/unknown") || is(b"application/unknown") || is(b"*/*");
    unknown && looks_like_html(body)
}

/// Whether the header and the first bytes contradict each other: it names another type than HTML, and they are
/// HTML's; or it says HTML, and they contain a byte that occurs in no text (section 3, binary data byte). Exceptions:
/// text may look like anything; UTF-16, which starts with a byte order mark, contains zeros; XML may begin with a
/// comment, like HTML.
pub fn is_misnamed(content_type: Option<&[u8]>, body: &[u8]) -> bool {
    let essence = content_type.map(essence).unwrap_or_default();
    if !names_type(essence) || body.is_empty() {
        return false;
    }
    if !is_html(content_type, body) {
        let is_text = essence.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"text/"));
        return !is_text && !is_xml(essence) && looks_like_html(body);
    }
    let head = body.get(..BINARY_BYTES).unwrap_or(body);
    let is_utf16 = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    // Without an early exit: sixteen bytes at a time.
    let is_binary = |byte: u8| (byte <= 8) | (byte == 0x0b) | ((0x0e..=0x1f).contains(&byte) & (byte != 0x1b));
    !is_utf16 && head.iter().fold(false, |any, byte| any | is_binary(*byte))
}

/// Bytes of a body that are searched for binary data.
const BINARY_BYTES: usize = 256;

/// Media types, `type/*` or `*/*`: a list with commas.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediaRanges(Box<[Box<str>]>);

impl MediaRanges {
    /// Reads a list; white space around its elements is ignored.
    ///
    /// # Errors
    /// The first element that is no range.
    pub fn parse(text: &str) -> Result<MediaRanges, &str> {
        let ranges = text.split(',').map(str::trim);
        let read = ranges.map(|range| if is_media_range(range) { Ok(range.into()) } else { Err(range) });
        read.collect::<Result<_, _>>().map(MediaRanges)
    }

    /// Whether the header's type is in one of them. No type at all is in `*/*` alone.
    pub fn contain(&self, content_type: Option<&[u8]>) -> bool {
        let essence = named_essence(content_type);
        self.0.iter().any(|range| match range.strip_suffix('*') {
            Some("*/") => true,
            Some(start) => begins_with(essence, start),
            None => essence.eq_ignore_ascii_case(range.as_bytes()),
        })
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for MediaRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Whether the header names an image.
pub fn is_image(content_type: Option<&[u8]>) -> bool {
    begins_with(named_essence(content_type), "image/")
}

/// The header's type; empty if it names none.
fn named_essence(content_type: Option<&[u8]>) -> &[u8] {
    content_type.map(essence).filter(|essence| names_type(essence)).unwrap_or_default()
}

fn begins_with(essence: &[u8], start: &str) -> bool {
    essence.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start.as_bytes()))
}

/// Whether `range` is a media type, `type/*` or `*/*` (RFC 9110 section 12.5.1, without parameters).
pub fn is_media_range(range: &str) -> bool {
    let type_is_named = range.strip_suffix("/*").unwrap_or(range);
    range == "*/*" || names_type(range.as_bytes()) && !type_is_named.contains('*')
}

/// The `charset` of the type that counts; if it has none, that of an earlier one of the same type.
pub(super) fn charset(header: &str) -> Option<String> {
    if !has_several(header.as_bytes()) {
        return parameter(header, "charset");
    }
    let (mut essence, mut charset, mut last) = (&b""[..], None, None);
    for one in types(header.as_bytes()) {
        last = std::str::from_utf8(one).ok().and_then(|one| parameter(one, "charset"));
        let of = essence_of_one(one);
        if !of.eq_ignore_ascii_case(essence) {
            (essence, charset) = (of, last.clone());
        }
    }
    match last {
        // Not even a type: its parameters are still better than nothing.
        None if essence.is_empty() => parameter(header, "charset"),
        None => charset,
        last => last,
    }
}

/// The value of parameter `name`, the first valid one of several; quotes removed.
fn parameter(header: &str, name: &str) -> Option<String> {
    let (_, mut rest) = header.split_once(';')?;
    loop {
        rest = rest.trim_start_matches(is_http_space);
        let end = rest.find([';', '=']).unwrap_or(rest.len());
        let (found, after) = rest.split_at_checked(end)?;
        let Some(value) = after.strip_prefix('=') else {
            rest = after.strip_prefix(';')?;
            continue;
        };
        let (value, is_empty, after) = match value.strip_prefix('"') {
            Some(quoted) => {
                let (value, after) = unquote(quoted);
                (value, false, after)
            }
            None => {
                let (value, after) = value.split_at_checked(value.find(';').unwrap_or(value.len()))?;
                let value = value.trim_end_matches(is_http_space);
                (value.to_owned(), value.is_empty(), after)
            }
        };
        // Section 2: "HTTP quoted-string token code point".
        let is_valid = !is_empty && value.chars().all(|one| one == '\t' || one >= ' ' && one != '\x7f');
        if found.eq_ignore_ascii_case(name) && is_valid {
            return Some(value);
        }
        rest = after.split_once(';')?.1;
    }
}

/// "Collect an HTTP quoted string" behind its first quote; and what follows.
pub(super) fn unquote(quoted: &str) -> (String, &str) {
    let mut value = String::new();
    let mut rest = quoted.chars();
    while let Some(next) = rest.next() {
        match next {
            '"' => break,
            '\\' => value.push(rest.next().unwrap_or('\\')),
            other => value.push(other),
        }
    }
    (value, rest.as_str())
}

pub(super) fn is_http_space(one: char) -> bool {
    matches!(one, '\t' | '\n' | '\r' | ' ')
}

/// `type/subtype` of the type that counts; if none is valid, what is written instead.
pub fn essence(header: &[u8]) -> &[u8] {
    match has_several(header) {
        true => essence_of_one(types(header).last().unwrap_or(header)),
        false => essence_of_one(header),
    }
}

/// Whether there may be more types than one.
fn has_several(header: &[u8]) -> bool {
    memchr::memchr(b',', header).is_some()
}

/// The types between a header's commas, without invalid ones.
fn types(header: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    let pieces = header.split(move |byte| {
        let was_escaped = std::mem::replace(&mut is_escaped, false);
        match byte {
            b'\\' if is_quoted && !was_escaped => is_escaped = true,
            b'"' if !was_escaped => is_quoted = !is_quoted,
            b',' => return !is_quoted,
            _ => {}
        }
        false
    });
    pieces.filter(|piece| {
        let essence = essence_of_one(piece);
        names_type(essence) && essence != b"*/*"
    })
}

fn essence_of_one(piece: &[u8]) -> &[u8] {
    let end = memchr::memchr(b';', piece).unwrap_or(piece.len());
    let mut essence = piece.get(..end).unwrap_or_default();
    while let [first, inside @ ..] = essence
        && is_http_space(char::from(*first))
    {
        essence = inside;
    }
    while let [inside @ .., last] = essence
        && is_http_space(char::from(*last))
    {
        essence = inside;
    }
    essence
}

/// Section 4.6: an XML MIME type.
pub(super) fn is_xml(essence: &[u8]) -> bool {
    let is = |name: &[u8]| essence.eq_ignore_ascii_case(name);
    let start = essence.len().saturating_sub(b"+xml".len());
    is(b"text/xml")
        || is(b"application/xml")
        || essence.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(b"+xml"))
}

/// `type/subtype`, both tokens.
pub(super) fn names_type(essence: &[u8]) -> bool {
    let mut parts = essence.split(|byte| *byte == b'/');
    let mut token = || parts.next().is_some_and(|part| !part.is_empty() && part.iter().all(is_token));
    token() && token() && parts.next().is_none()
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

/// Whether the first bytes are those of HTML (section 7.1), whatever the header says.
pub fn looks_like_html(body: &[u8]) -> bool {
    let head = body.get(..SNIFF_BYTES).unwrap_or(body);
    // A byte order mark indicates text of some kind; the sniffing table would stop at "text/plain". HTML with a mark
    // and without a type is common enough to look behind it.
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let start = head.iter().position(|byte| !is_space(*byte)).unwrap_or(head.len());
    let head = head.get(start..).unwrap_or_default();
    PATTERNS.iter().any(|pattern| {
        head.split_at_checked(pattern.len()).is_some_and(|(start, rest)| {
            start.eq_ignore_ascii_case(pattern) && matches!(rest.first(), Some(b' ' | b'>'))
        })
    })
}

/// Section 7.1: what starts an HTML document, each before a tag-terminating byte.
const PATTERNS: [&[u8]; 17] = [
    b"<!DOCTYPE HTML",
    b"<HTML",
    b"<HEAD",
    b"<SCRIPT",
    b"<IFRAME",
    b"<H1",
    b"<DIV",
    b"<FONT",
    b"<TABLE",
    b"<A",
    b"<STYLE",
    b"<TITLE",
    b"<B",
    b"<BODY",
    b"<BR",
    b"<P",
    b"<!--",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_decides() {
        for header in ["text/html", "Text/HTML; charset=x", " application/xhtml+xml ;", "text/html;"] {
            assert!(is_html(Some(header.as_bytes()), b"\x89PNG"), "{header}");
        }
        for header in ["text/plain", "image/png", "application/xml", "text/htmlx"] {
            assert!(!is_html(Some(header.as_bytes()), b"<html>"), "{header}");
        }
    }

    #[test]
    fn bytes_decide_without_header() {
        for header in [None, Some(""), Some("html"), Some("*/*"), Some("unknown/unknown"), Some("a/b/c")] {
            let header = header.map(str::as_bytes);
            assert!(is_html(header, b"\n\t <!doctype html>"), "{header:?}");
            assert!(is_html(header, b"<a href=x>"));
            assert!(!is_html(header, b"<article>"));
            assert!(!is_html(header, b"<html"));
            assert!(!is_html(header, b"<?xml version='1.0'?>"));
            assert!(!is_html(header, b""));
        }
    }

    #[test]
    fn ranges() {
        for range in ["*/*", "text/*", "text/html", "application/vnd.x+json"] {
            assert!(is_media_range(range), "{range}");
        }
        for range in ["", "*", "text", "*/html", "text/", "text/html;q=1", "a/b/c", "te xt/html"] {
            assert!(!is_media_range(range), "{range}");
        }
        let html = Some(&b" Text/HTML; charset=x"[..]);
        for (content_type, ranges, expected) in [
            (html, "*/*", true),
            (None, "*/*", true),
            (html, "image/*, text/*", true),
            (html, "application/pdf,text/html", true),
            (html, "text/htm", false),
            (html, "image/*", false),
            (None, "text/*,text/html", false),
            (Some(&b"text"[..]), "text/*", false),
        ] {
            let read = MediaRanges::parse(ranges).expect(ranges);
            assert_eq!(read.contain(content_type), expected, "{ranges}");
        }
    }

    #[test]
    fn parameters() {
        for (header, value) in [
            ("text/html; charset=utf-8", Some("utf-8")),
            ("text/html;CHARSET=\"a\\\"b\"; x", Some("a\"b")),
            ("text/html; x=\"; charset=no\"; charset=yes ", Some("yes")),
            ("text/html; charset; charset=; charset=x;charset=y", Some("x")),
            ("text/html; charset=\"\"; charset=x", Some("")),
            ("text/html; charset= \"\x7f;charset=x", Some("x")),
            ("text/html; charset=\"\x7f;charset=x\";charset=y", Some("y")),
            ("text/html; charset=\x0cx", None),
            ("text/html; charset =x", None),
            ("text/html", None),
            ("text/html;", None),
            ("text/html; charset=\"open", Some("open")),
        ] {
            assert_eq!(charset(header).as_deref(), value, "{header}");
        }
    }

    /// The examples of Fetch section 2.2.2, and others.
    #[test]
    fn several_types() {
        for (header, essence_of, charset_of) in [
            ("text/plain;charset=gbk, text/html", "text/html", None),
            ("text/html;charset=gbk;a=b, text/html;x=y", "text/html", Some("gbk")),
            ("text/html;charset=gbk;a=b, text/html;x=\",text/plain", "text/html", Some("gbk")),
            ("text/html;charset=gbk, x/x, text/html;x=y", "text/html", None),
            ("text/html;charset=gbk, cannot-parse, text/html", "text/html", Some("gbk")),
            ("text/html;charset=gbk, */*, Text/html;charset=x,", "Text/html", Some("x")),
            ("html, , */*", "html, , */*", None),
            ("html;charset=gbk", "html", Some("gbk")),
            ("\x0ctext/html", "\x0ctext/html", None),
            ("", "", None),
        ] {
            assert_eq!(essence(header.as_bytes()), essence_of.as_bytes(), "{header}");
            assert_eq!(charset(header).as_deref(), charset_of, "{header}");
        }
    }

    #[test]
    fn misnamed_ones() {
        let is = |content_type: &str, body: &[u8]| is_misnamed(Some(content_type.as_bytes()), body);
        assert!(is("image/png", b"<!doctype html>") && is("text/html", b"\x89PNG\r\n\x1a\n"));
        assert!(is("application/json", b"<!-- x -->"));
        assert!(!is("image/svg+xml", b"<!-- x --><svg>") && !is("Application/XML;x", b"<title >"));
        assert!(!is("text/plain", b"<html>") && !is("text/html", b"<html>") && !is("text/html", b"\xff\xfe<\0"));
    }
}
