//! The character encoding of an HTML document.
//!
//! Decides, in this order: byte order mark, `charset` of the Content-Type header, `<meta>` in the first 1,024 bytes,
//! an XML declaration, else windows-1252. The last three are tentative: the first `<meta>` that the tokenizer finds,
//! at any offset, overrides them (`declared`). We never guess from the text: two crawls of the same bytes must agree.
//!
//! Source: WHATWG HTML section 13.2.3.2 (sniffing), 13.2.3.3 (prescan, "get an attribute", XML encoding), 13.2.3.4
//! ("change the encoding") and 13.2.6.4.4 (a start tag "meta"); labels from the WHATWG Encoding standard. The prescan
//! reads bytes in its own simpler way, not through the tokenizer.
//!
//! Invariants: `detect` reads the first 1,024 bytes only, each at most a constant number of times.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252, X_USER_DEFINED};

use super::mime;
use super::tokenizer::is_space;
use super::value::{Decoder, Value};

/// Bytes that the prescan reads (the standard's number).
pub(super) const PRESCAN_BYTES: usize = 1024;

/// How a document is decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Detected {
    pub encoding: &'static Encoding,
    /// Length of the byte order mark.
    pub mark_bytes: usize,
    /// Whether a `<meta>` may still name another one ("tentative").
    pub is_tentative: bool,
}

/// The initial encoding of `body`.
pub(super) fn detect(body: &[u8], content_type: Option<&str>) -> Detected {
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(body) {
        return Detected { encoding, mark_bytes, is_tentative: false };
    }
    if let Some(encoding) = named(content_type) {
        return Detected { encoding, mark_bytes: 0, is_tentative: false };
    }
    let head = body.get(..PRESCAN_BYTES).unwrap_or(body);
    let encoding = prescan(head).or_else(|| xml_declaration(head)).unwrap_or(WINDOWS_1252);
    // A `<meta>` that was read as UTF-16 cannot change the encoding.
    Detected { encoding, mark_bytes: 0, is_tentative: !is_utf16(encoding) }
}

/// The encoding that a `<meta>` with these attributes names: by its `charset`, otherwise by `http-equiv` and
/// `content`.
pub(super) fn declared(
    charset: Option<Value>,
    http_equiv: Option<Value>,
    content: Option<Value>,
) -> Option<&'static Encoding> {
    // Labels are ASCII.
    let mut decoder = Decoder::new(UTF_8);
    let mut by_charset = || Encoding::for_label(decoder.text(charset?).as_bytes());
    let named = by_charset().or_else(|| {
        let is_pragma = decoder.text(http_equiv?).eq_ignore_ascii_case("content-type");
        if is_pragma { content_encoding(decoder.text(content?).as_bytes()) } else { None }
    })?;
    Some(honoured(named))
}

/// The value that most servers send.
const USUAL: &str = "text/html; charset=utf-8";

/// The encoding that the Content-Type header names.
pub(super) fn named(content_type: Option<&str>) -> Option<&'static Encoding> {
    let content_type = content_type?;
    if content_type.eq_ignore_ascii_case(USUAL) {
        return Some(UTF_8);
    }
    let label = mime::charset(content_type)?;
    Encoding::for_label(label.as_bytes())
}

/// "Prescan a byte stream to determine its encoding."
fn prescan(head: &[u8]) -> Option<&'static Encoding> {
    if head.starts_with(b"<\0?\0x\0") {
        return Some(encoding_rs::UTF_16LE);
    }
    if head.starts_with(b"\0<\0?\0x") {
        return Some(encoding_rs::UTF_16BE);
    }
    let mut rest = head;
    while let Some(found) = memchr::memchr(b'<', rest) {
        rest = rest.get(found..)?;
        if let Some(inside) = rest.strip_prefix(b"<!--") {
            // The dashes may be those of `<!--` itself.
            let end = memchr::memmem::find(rest.get(2..)?, b"-->")?;
            rest = inside.get(end..)?;
        } else if let Some(attributes) = meta(rest) {
            rest = attributes;
            let found = meta_encoding(&mut rest);
            if found.is_some() {
                return found;
            }
        } else if tag_letter(rest) {
            let end = rest.iter().position(|byte| is_space(*byte) || *byte == b'>')?;
            rest = rest.get(end..)?;
            while let NextAttribute::Attribute { .. } = next_attribute(&mut rest) {}
        } else if matches!(rest.get(1)?, b'!' | b'/' | b'?') {
            rest = rest.get(memchr::memchr(b'>', rest)?..)?;
        }
        rest = rest.get(1..)?;
    }
    None
}

/// What follows `<meta` and one space or slash.
fn meta(tag: &[u8]) -> Option<&[u8]> {
    const OPEN: usize = b"<meta".len();
    let (name, rest) = tag.split_at_checked(OPEN)?;
    let (first, rest) = rest.split_first()?;
    (name.eq_ignore_ascii_case(b"<meta") && (is_space(*first) || *first == b'/')).then_some(rest)
}

fn tag_letter(tag: &[u8]) -> bool {
    let name = tag.get(1..).unwrap_or_default();
    name.strip_prefix(b"/").unwrap_or(name).first().is_some_and(u8::is_ascii_alphabetic)
}

/// Steps 2 to 13 for a `<meta`; moves behind the attributes.
fn meta_encoding(rest: &mut &[u8]) -> Option<&'static Encoding> {
    let (mut pragma, mut need_pragma, mut charset) = (None, None, None);
    let mut content_seen = false;
    while let NextAttribute::Attribute { name, value } = next_attribute(rest) {
        if name.eq_ignore_ascii_case(b"http-equiv") {
            pragma = pragma.or(Some(value.eq_ignore_ascii_case(b"content-type")));
        } else if name.eq_ignore_ascii_case(b"content") && !content_seen {
            content_seen = true;
            if charset.is_none()
                && let Some(encoding) = content_encoding(value)
            {
                charset = Some(Some(encoding));
                need_pragma = Some(true);
            }
        } else if name.eq_ignore_ascii_case(b"charset") && need_pragma != Some(false) {
            charset = Some(Encoding::for_label(value));
            need_pragma = Some(false);
        }
    }
    // If the bytes end inside a tag, nothing found so far counts.
    if rest.is_empty() {
        return None;
    }
    if need_pragma? && pragma != Some(true) {
        return None;
    }
    Some(honoured(charset??))
}

/// The encoding actually used when a `<meta>` names this one.
fn honoured(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == X_USER_DEFINED { WINDOWS_1252 } else { readable(encoding) }
}

/// An encoding named inside the document cannot be one in which the document could not have been read so far.
fn readable(encoding: &'static Encoding) -> &'static Encoding {
    if is_utf16(encoding) { UTF_8 } else { encoding }
}

fn is_utf16(encoding: &'static Encoding) -> bool {
    encoding == encoding_rs::UTF_16BE || encoding == encoding_rs::UTF_16LE
}

/// "Extracting a character encoding from a meta element" (HTML section 2.3.11).
fn content_encoding(content: &[u8]) -> Option<&'static Encoding> {
    const NAME: &[u8] = b"charset";
    let mut rest = content;
    loop {
        let at = rest.windows(NAME.len()).position(|window| window.eq_ignore_ascii_case(NAME))?;
        rest = trim_start(rest.get(at + NAME.len()..)?);
        let Some(value) = rest.strip_prefix(b"=") else { continue };
        let value = trim_start(value);
        let (first, inside) = value.split_first()?;
        let label = match first {
            b'"' | b'\'' => inside.get(..memchr::memchr(*first, inside)?)?,
            _ => value.split(|byte| is_space(*byte) || *byte == b';').next()?,
        };
        return Encoding::for_label(label);
    }
}

enum NextAttribute<'a> {
    Attribute { name: &'a [u8], value: &'a [u8] },
    None,
}

/// "Get an attribute": at `>` or the end there is none, and the position stays there.
fn next_attribute<'a>(rest: &mut &'a [u8]) -> NextAttribute<'a> {
    let start = rest.iter().position(|byte| !is_space(*byte) && *byte != b'/').unwrap_or(rest.len());
    *rest = rest.get(start..).unwrap_or_default();
    if matches!(rest.first(), None | Some(b'>')) {
        return NextAttribute::None;
    }
    let more = rest.iter().skip(1).position(|byte| is_space(*byte) || matches!(byte, b'/' | b'>' | b'='));
    // A name that runs to the end of the 1,024 bytes is no attribute.
    let Some((name, after)) = more.and_then(|more| rest.split_at_checked(more + 1)) else {
        *rest = &[];
        return NextAttribute::None;
    };
    *rest = after;
    let after = trim_start(after);
    let Some(value) = after.strip_prefix(b"=") else {
        return NextAttribute::Attribute { name, value: b"" };
    };
    let value = trim_start(value);
    let split = match value.split_first() {
        Some((quote @ (b'"' | b'\''), inside)) => {
            memchr::memchr(*quote, inside).and_then(|end| Some((inside.get(..end)?, inside.get(end + 1..)?)))
        }
        _ => value.iter().position(|byte| is_space(*byte) || *byte == b'>').and_then(|end| value.split_at_checked(end)),
    };
    let (value, behind) = split.unwrap_or_default();
    *rest = behind;
    if split.is_some() { NextAttribute::Attribute { name, value } } else { NextAttribute::None }
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !is_space(*byte)).unwrap_or(bytes.len());
    bytes.get(start..).unwrap_or_default()
}

/// "Get an XML encoding": `<?xml … encoding="…"` at the very start.
pub(super) fn xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    const NAME: &[u8] = b"encoding";
    let declaration = head.strip_prefix(b"<?xml")?;
    let declaration = declaration.get(..memchr::memchr(b'>', declaration)?)?;
    let at = memchr::memmem::find(declaration, NAME)?;
    let rest = trim_control(declaration.get(at + NAME.len()..)?);
    let rest = trim_control(rest.strip_prefix(b"=")?);
    let (quote, inside) = rest.split_first().filter(|(first, _)| matches!(first, b'"' | b'\''))?;
    let label = inside.get(..memchr::memchr(*quote, inside)?)?;
    if label.iter().any(|byte| *byte <= 0x20) {
        return None;
    }
    Encoding::for_label(label).map(readable)
}

fn trim_control(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| *byte > 0x20).unwrap_or(bytes.len());
    bytes.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(body: &str, content_type: Option<&str>) -> &'static str {
        detect(body.as_bytes(), content_type).encoding.name()
    }

    #[test]
    fn order() {
        let meta = "<meta charset=koi8-r>";
        assert_eq!(name(meta, None), "KOI8-R");
        assert_eq!(name(meta, Some("text/html; charset=\"utf-8\"")), "UTF-8");
        assert_eq!(name(meta, Some("text/html; charset=nosuch")), "KOI8-R");
        let certain = |encoding, mark_bytes| Detected { encoding, mark_bytes, is_tentative: false };
        assert_eq!(detect(b"\xef\xbb\xbf<meta charset=koi8-r>", Some("text/html;charset=big5")), certain(UTF_8, 3));
        assert_eq!(detect(b"\xff\xfea\0", None), certain(encoding_rs::UTF_16LE, 2));
        assert_eq!(detect(b"<\0?\0x\0", None), certain(encoding_rs::UTF_16LE, 0));
        assert_eq!(detect(b"", Some("a/b;charset=utf-8")), certain(UTF_8, 0));
        assert!(detect(meta.as_bytes(), None).is_tentative && detect(b"", Some("a/b;charset=x")).is_tentative);
        assert_eq!(name("é", None), "windows-1252");
        assert_eq!(name("<?xml version='1.0' encoding='iso-8859-2'?>", None), "ISO-8859-2");
    }

    #[test]
    fn prescan_oddities() {
        assert_eq!(name("<meta charset=utf-16>", None), "UTF-8");
        assert_eq!(name("<meta charset=x-user-defined>", None), "windows-1252");
        assert_eq!(name("<!--><meta charset=big5>-->", None), "Big5");
        assert_eq!(name("<!-- <meta charset=big5> --><meta charset=koi8-r>", None), "KOI8-R");
        assert_eq!(name("<p title='<meta charset=big5>'><meta charset=koi8-r>", None), "KOI8-R");
        assert_eq!(name("<meta content='text/html; charset=big5'>", None), "windows-1252", "no pragma");
        assert_eq!(name("<meta http-equiv=Content-Type content='x charset charset = \"big5\"'>", None), "Big5");
        assert_eq!(name("<meta charset=nosuch><meta charset=big5>", None), "Big5");
        assert_eq!(name(&format!("{:1$}<meta charset=big5>", "", 1020), None), "windows-1252", "too late");
        assert_eq!(name(&format!("{:1$}<meta charset=big5  >", "", 1004), None), "windows-1252", "cut in its tag");
        for open in ["<meta charset=big5 x", "<meta charset=big5 ", "<meta charset=big5 x ", "<meta charset=big5 x=y"] {
            assert_eq!(name(open, None), "windows-1252", "{open}");
            assert_eq!(name(&format!("{open} >"), None), "Big5", "{open}");
        }
        assert_eq!(name("<?xml version='1.0' encoding='utf-16'?>", None), "UTF-8");
        assert_eq!(name("<?xml version='1.0' encoding='x-user-defined'?>", None), "x-user-defined");
    }

    #[test]
    fn cut_at_every_byte() {
        let page = b"<?xml encoding='big5'?><!-- x --><p a='b' c>< /><meta http-equiv=content-type content='a;charset=\"big5\"'>";
        for cut in 0..page.len() {
            detect(&page[..cut], None);
        }
        assert_eq!(detect(&page[23..], None).encoding.name(), "Big5");
    }
}
