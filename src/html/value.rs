//! Attribute values: raw bytes in the document's encoding to text.
//!
//! Decides: decode the bytes, then expand character references: `&`, `#`, `;`, digits and letters are ASCII in every
//! encoding used here. A value of plain ASCII without `&`, NUL and CR, which is nearly every value, is borrowed;
//! others go through two buffers that are kept from value to value.
//!
//! In an attribute, a named reference without its semicolon counts only if no letter, digit or `=` follows. Names
//! consist of letters and digits, so the rule becomes: take the longest run of letters and digits behind `&`; it
//! counts if it is a name followed by `;`, or one of the old names not followed by `=`. There are no prefixes, unlike
//! in text.
//!
//! Source: WHATWG HTML sections 13.2.3.5 (CR), 13.2.5.36 to 38 (NUL), 13.2.5.72 to 80 (references).
//!
//! Invariants: output is at most three times the input and some bytes; time is linear.

use encoding_rs::Encoding;

use super::entities::{self, NAME_BYTES_MAX};

/// A value before it is decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value<'a> {
    /// ASCII that stands for itself.
    Plain(&'a str),
    /// Bytes in the document's encoding, perhaps with references.
    Raw(&'a [u8]),
}

/// Decodes attribute values of one document.
pub(super) struct Decoder {
    encoding: &'static Encoding,
    decoded: String,
    expanded: String,
}

impl Decoder {
    /// For a document in `encoding`.
    pub fn new(encoding: &'static Encoding) -> Decoder {
        Decoder { encoding, decoded: String::new(), expanded: String::new() }
    }

    /// The text of a value.
    #[inline]
    pub fn text<'a>(&'a mut self, value: Value<'a>) -> &'a str {
        match value {
            Value::Plain(text) => text,
            Value::Raw(raw) => self.decoded(raw),
        }
    }

    fn decoded<'a>(&'a mut self, raw: &'a [u8]) -> &'a str {
        let decoded = match std::str::from_utf8(raw) {
            Ok(text) if self.encoding == encoding_rs::UTF_8 || text.is_ascii() => text,
            _ => {
                decode(self.encoding, raw, &mut self.decoded);
                &self.decoded
            }
        };
        let Some(first) = find_special(decoded) else { return decoded };
        self.expanded.clear();
        expand(decoded, first, &mut self.expanded);
        &self.expanded
    }
}

fn decode(encoding: &'static Encoding, raw: &[u8], to: &mut String) {
    to.clear();
    let mut decoder = encoding.new_decoder_without_bom_handling();
    // The bound fits one allocation; if it overflowed, the value could not be in memory either.
    to.reserve(decoder.max_utf8_buffer_length(raw.len() + BEHIND.len()).unwrap_or(raw.len()));
    let _ = decoder.decode_to_string(raw, to, false);
    // A value is not the end of its page: a character that begins in it and is cut off ends before the byte behind
    // it.
    let _ = decoder.decode_to_string(BEHIND, to, true);
    // The byte itself: it is another one only in encodings that are not ASCII-compatible at all.
    to.pop();
}

/// The byte behind a value, or one that decodes the same way: it is never the second half of a character.
const BEHIND: &[u8] = b">";

/// Position of the first byte that may not stand for itself.
fn find_special(text: &str) -> Option<usize> {
    memchr::memchr3(b'&', b'\r', 0, text.as_bytes())
}

/// Expands character references, normalizes line ends and replaces NUL; `first` is the position of the first of them.
fn expand(mut text: &str, first: usize, to: &mut String) {
    let mut found = Some(first);
    while let Some((before, at)) = found.and_then(|found| text.split_at_checked(found)) {
        to.push_str(before);
        let mut rest = at.chars();
        match rest.next() {
            Some('&') => {
                text = reference(rest.as_str(), to);
            }
            Some('\r') => {
                to.push('\n');
                text = rest.as_str();
                text = text.strip_prefix('\n').unwrap_or(text);
            }
            _ => {
                to.push(char::REPLACEMENT_CHARACTER);
                text = rest.as_str();
            }
        }
        found = find_special(text);
    }
    to.push_str(text);
}

/// Takes the text behind `&`, writes the referenced characters, or `&`, and returns the text behind it.
fn reference<'a>(text: &'a str, to: &mut String) -> &'a str {
    // By far the most common reference.
    if let Some(rest) = text.strip_prefix("amp;") {
        to.push('&');
        return rest;
    }
    let expanded = match text.strip_prefix('#') {
        Some(number) => numeric(number, to),
        None => named(text, to),
    };
    expanded.unwrap_or_else(|| {
        to.push('&');
        text
    })
}

fn named<'a>(text: &'a str, to: &mut String) -> Option<&'a str> {
    let run = text.bytes().take(NAME_BYTES_MAX + 1).take_while(u8::is_ascii_alphanumeric).count();
    let (name, rest) = text.split_at_checked(run).filter(|(name, _)| !name.is_empty())?;
    if rest.starts_with('=') {
        // As in `?a=1&b=2`, where `&` mostly stands for itself.
        return None;
    }
    let named = entities::named(name.as_bytes())?;
    let rest = match rest.strip_prefix(';') {
        Some(rest) => rest,
        None if named.bare => rest,
        None => return None,
    };
    to.push(named.first);
    to.extend(named.second);
    Some(rest)
}

fn numeric<'a>(text: &'a str, to: &mut String) -> Option<&'a str> {
    let (radix, digits) = match text.strip_prefix(['x', 'X']) {
        Some(digits) => (16, digits),
        None => (10, text),
    };
    let mut code = 0_u32;
    let mut rest = digits;
    while let Some(digit) = rest.chars().next().and_then(|first| first.to_digit(radix)) {
        code = code.saturating_mul(radix).saturating_add(digit);
        rest = rest.get(1..)?;
    }
    if rest.len() == digits.len() {
        return None;
    }
    to.push(numbered(code));
    Some(rest.strip_prefix(';').unwrap_or(rest))
}

/// Numeric character reference end state: NUL, surrogates and out-of-range values become U+FFFD, C1 controls become
/// the characters of windows-1252 in their place.
fn numbered(code: u32) -> char {
    let remapped = code.checked_sub(0x80).and_then(|at| WINDOWS_1252.get(usize::try_from(at).ok()?));
    match remapped {
        Some(replacement) => *replacement,
        None => char::from_u32(code).filter(|one| *one != '\0').unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

/// 0x80 to 0x9F; those without a replacement stay.
const WINDOWS_1252: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2c6}', '\u{2030}',
    '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}', '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}',
    '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}',
    '\u{17e}', '\u{178}',
];

#[cfg(test)]
mod tests {
    use super::*;

    fn utf8(raw: &[u8]) -> String {
        Decoder::new(encoding_rs::UTF_8).text(Value::Raw(raw)).to_owned()
    }

    #[test]
    fn references() {
        for (raw, text) in [
            ("a&amp;b", "a&b"),
            ("a&ampb", "a&ampb"),
            ("a&amp=b", "a&amp=b"),
            ("a&amp", "a&"),
            ("?a=1&copy=2&reg", "?a=1&copy=2®"),
            ("&notit; &notin; &not;", "&notit; ∉ ¬"),
            ("&nvlt;&nosuch;&;&", "<\u{20d2}&nosuch;&;&"),
            ("&#65;&#x41&#X41;B&#;&#x;&#xg", "AAAB&#;&#x;&#xg"),
            ("&#0;&#xD800;&#x110000;&#99999999999999999999;", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("&#128;&#x81;&#x9f;&#xa0;", "€\u{81}Ÿ\u{a0}"),
            (
                "&CounterClockwiseContourIntegral;&CounterClockwiseContourIntegralx;",
                "∳&CounterClockwiseContourIntegralx;",
            ),
            ("a\r\nb\rc\0d", "a\nb\nc\u{fffd}d"),
            ("&ampé &é", "&é &é"),
        ] {
            assert_eq!(utf8(raw.as_bytes()), text, "{raw}");
        }
    }

    #[test]
    fn encodings() {
        assert_eq!(utf8(b"a\xffb&lt;"), "a\u{fffd}b<");
        assert_eq!(Decoder::new(encoding_rs::WINDOWS_1252).text(Value::Raw(b"\x80\xe9&amp;")), "€é&");
        assert_eq!(Decoder::new(encoding_rs::WINDOWS_1252).text(Value::Raw("é".as_bytes())), "Ã©");
        assert_eq!(Decoder::new(encoding_rs::SHIFT_JIS).text(Value::Raw(b"\x83\x5c&lt;")), "ソ<");
        let gb18030 = |raw: &'static [u8]| Decoder::new(encoding_rs::GB18030).text(Value::Raw(raw)).to_owned();
        assert_eq!(gb18030(b"\x81\x30\x81\x30"), "\u{80}");
        assert_eq!(gb18030(b"\x81\x31"), "\u{fffd}1", "what is cut off before the quote");
        assert_eq!(gb18030(b"a\x81"), "a\u{fffd}");
        assert_eq!(utf8(b"a\xe2\x82"), "a\u{fffd}");
        for cut in
            [encoding_rs::BIG5, encoding_rs::EUC_JP, encoding_rs::EUC_KR, encoding_rs::GBK, encoding_rs::SHIFT_JIS]
        {
            assert_eq!(Decoder::new(cut).text(Value::Raw(b"a\x8e")), "a\u{fffd}", "{}", cut.name());
        }
    }
}
