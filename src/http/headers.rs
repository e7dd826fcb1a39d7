//! Header fields.
//!
//! Decides: `httparse` reads well-formed fields; fields that it refuses go, line by line, through a lenient reader
//! that follows browsers and curl:
//!
//! | what servers send | result | source |
//! |---|---|---|
//! | LF for CRLF | a line end | RFC 9112 section 2.2 |
//! | CR inside a line | a space; in a field's name it voids the line | RFC 9112 section 2.2 |
//! | NUL | refused | RFC 9110 section 5.5 |
//! | whitespace before the first field | the line is dropped | RFC 9112 section 2.2 |
//! | space before the colon | dropped | RFC 9112 section 5.1, as proxies must |
//! | a line without colon or name | dropped, with its folds | browsers |
//! | obs-fold | joined by one space | RFC 9112 section 5.2 |
//! | other odd bytes in names and values | kept | RFC 9110 section 5.5 |
//!
//! Invariants: if `httparse` accepts, the lenient reader gives the same fields (tested); a `Headers` owns exactly its
//! names' and values' bytes, so it is no longer than the head.
//!
//! Limits: the caller's, on number and bytes of fields.

use std::borrow::Cow;

use super::HttpError;

/// Header fields in order of arrival; names compare without case.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    bytes: Vec<u8>,
    fields: Vec<Field>,
}

/// Ends within `Headers::bytes`; each field's name starts where the previous value ended.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Field {
    start: u32,
    name_end: u32,
    value_end: u32,
}

impl Headers {
    /// Reads the lines from behind the status line to the empty line.
    pub(super) fn parse(lines: &[u8], count_max: usize) -> Result<Headers, HttpError> {
        let headers = match quick_fields(lines) {
            Some(headers) => headers,
            None => lenient_fields(lines, count_max)?,
        };
        if headers.len() > count_max {
            return Err(HttpError::HeadTooLarge);
        }
        Ok(headers)
    }

    /// The fields of a head that was kept whole, its first line included, as parsed on receipt; none if they cannot
    /// be read.
    pub fn of_head(head: &[u8]) -> Headers {
        Headers::parse(split_line(head).1, usize::MAX).unwrap_or_default()
    }

    /// The first field of that name, without whitespace around it.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// All fields of that name, in order.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// All fields of that name as one list, in order ("get", Fetch section 2.2.2; RFC 9110 section 5.3).
    pub fn joined(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let mut values = self.all(name);
        let first = values.next()?;
        let Some(second) = values.next() else { return Some(first.into()) };
        let mut list = first.to_vec();
        for value in std::iter::once(second).chain(values) {
            list.extend_from_slice(b", ");
            list.extend_from_slice(value);
        }
        Some(list.into())
    }

    /// Every (name, value) as received.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + '_ {
        self.fields
            .iter()
            .map(|field| (self.span(field.start, field.name_end), self.span(field.name_end, field.value_end)))
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The members of a comma-separated list over all fields of that name, trimmed, in lower case, without
    /// parameters and empty members (RFC 9110 section 5.6.1).
    pub(super) fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Vec<u8>> + use<'a> {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|member| member.split(|byte| *byte == b';').next().unwrap_or(member))
            .map(|member| member.trim_ascii().to_ascii_lowercase())
            .filter(|member| !member.is_empty())
    }

    fn span(&self, start: u32, end: u32) -> &[u8] {
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    fn push(&mut self, name: &[u8], value: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(name);
        let name_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.fields.push(Field { start, name_end, value_end: self.bytes.len() as u32 });
    }

    /// Appends a folded line to the last field's value.
    fn fold(&mut self, more: &[u8]) {
        let Some(field) = self.fields.last_mut() else { return };
        if more.is_empty() {
            return;
        }
        if field.value_end > field.name_end {
            self.bytes.push(b' ');
        }
        self.bytes.extend_from_slice(more);
        field.value_end = self.bytes.len() as u32;
    }
}

impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|(n, v)| (n.escape_ascii().to_string(), v.escape_ascii().to_string())))
            .finish()
    }
}

/// The first line without its end, and what follows it.
pub(super) fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match memchr::memchr(b'\n', bytes) {
        Some(at) => (bytes.get(..at).unwrap_or_default(), bytes.get(at + 1..).unwrap_or_default()),
        None => (bytes, &[][..]),
    };
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

/// Fields that `httparse` can hold on the stack at a time; heads with more take the lenient path.
const QUICK_FIELDS_MAX: usize = 64;

fn quick_fields(bytes: &[u8]) -> Option<Headers> {
    let mut fields = [httparse::EMPTY_HEADER; QUICK_FIELDS_MAX];
    let Ok(httparse::Status::Complete((used, fields))) = httparse::parse_headers(bytes, &mut fields) else {
        return None;
    };
    if used != bytes.len() {
        return None;
    }
    let mut headers = Headers { bytes: Vec::with_capacity(bytes.len()), fields: Vec::with_capacity(fields.len()) };
    for field in fields {
        headers.push(field.name.as_bytes(), field.value);
    }
    Some(headers)
}

fn lenient_fields(bytes: &[u8], header_count_max: usize) -> Result<Headers, HttpError> {
    let mut headers = Headers { bytes: Vec::with_capacity(bytes.len()), fields: Vec::new() };
    // Whether a folded line continues a field that was kept.
    let mut open = false;
    let mut rest = bytes;
    while !rest.is_empty() {
        let line;
        (line, rest) = split_line(rest);
        if line.is_empty() {
            break;
        }
        if line.contains(&0) {
            return Err(HttpError::Malformed("NUL in a header field"));
        }
        if matches!(line.first(), Some(b' ' | b'\t')) {
            if open {
                headers.fold(&value_of(line));
            }
            continue;
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(at) => (line.get(..at).unwrap_or_default().trim_ascii_end(), line.get(at + 1..).unwrap_or_default()),
            None => (&[][..], line),
        };
        open = !name.is_empty() && !name.contains(&b'\r');
        if open {
            if headers.len() == header_count_max {
                return Err(HttpError::HeadTooLarge);
            }
            headers.push(name, &value_of(value));
        }
    }
    Ok(headers)
}

/// A value without whitespace around it, a CR inside it as a space.
fn value_of(bytes: &[u8]) -> Cow<'_, [u8]> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
    let start = bytes.iter().position(|byte| !blank(byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|byte| !blank(byte)).map_or(start, |at| at + 1);
    let value = bytes.get(start..end).unwrap_or_default();
    if value.contains(&b'\r') {
        value.iter().map(|byte| if *byte == b'\r' { b' ' } else { *byte }).collect::<Vec<u8>>().into()
    } else {
        value.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    fn parse(text: &str) -> Result<Headers, HttpError> {
        Headers::parse(text.as_bytes(), 100)
    }

    fn pairs(text: &str) -> Vec<(String, String)> {
        let headers = parse(text).expect("readable fields");
        let string = |bytes: &[u8]| bytes.escape_ascii().to_string();
        headers.iter().map(|(name, value)| (string(name), string(value))).collect()
    }

    #[test]
    fn odd_fields() {
        let text = " Early: x\r\nA : 1 \r\nno colon\r\n  folded away\r\n: nameless\r\nB:\r\n  two\r\n \
                    \r\n\tlines \r\nC\rD: x\r\nE: a\rb\r\nen-US F: \u{1}\u{e9}\n\n";
        let expected = [("A", "1"), ("B", "two lines"), ("E", "a b"), ("en-US F", "\\x01\\xc3\\xa9")]
            .map(|(n, v)| (n.into(), v.into()));
        assert_eq!(pairs(text), expected);
        assert!(parse("A: \0\r\n\r\n").is_err());
        assert!(parse("A\0: x\r\n\r\n").is_err());
    }

    #[test]
    fn names_compare_without_case_and_keep_their_order() {
        let headers = parse("X-a: 1\r\nb: 2\r\nx-A: 3, ,Four;q=1\r\n\r\n").expect("fine");
        assert_eq!(headers.get("X-A"), Some(&b"1"[..]));
        assert_eq!(headers.all("x-a").count(), 2);
        assert_eq!(headers.list("x-a").collect::<Vec<_>>(), [b"1".to_vec(), b"3".to_vec(), b"four".to_vec()]);
        assert_eq!((headers.get("c"), headers.len()), (None, 3));
        assert_eq!(headers.joined("x-a").as_deref(), Some(&b"1, 3, ,Four;q=1"[..]));
        assert!(matches!(headers.joined("B"), Some(Cow::Borrowed(b"2"))) && headers.joined("c").is_none());
    }

    #[test]
    fn too_many_fields() {
        for count in [63, 64, 65, 100, 101, 300] {
            let text = format!("{}\r\n", "a: b\r\n".repeat(count));
            assert_eq!(parse(&text).map(|headers| headers.len()).ok(), (count <= 100).then_some(count));
        }
    }

    /// Up to the first empty line, where the head ends.
    fn cut(text: &[u8]) -> &[u8] {
        let mut rest = text;
        while !rest.is_empty() {
            let line;
            (line, rest) = split_line(rest);
            if line.is_empty() {
                break;
            }
        }
        &text[..text.len() - rest.len()]
    }

    #[test]
    fn the_lenient_reader_agrees_with_httparse() {
        let mut rng = Rng::new(1);
        let pieces: [&[u8]; 14] = [
            b"A",
            b"b-C",
            b":",
            b": ",
            b" ",
            b"\t",
            b"x y",
            b"\xe9",
            b"\x01",
            b"\r\n",
            b"\n",
            b"\r",
            b"Len: 5\r\n",
            b"\0",
        ];
        let mut accepted = 0;
        for _ in 0..20_000 {
            let mut text = Vec::new();
            for _ in 0..rng.index(12) {
                text.extend(*rng.pick(&pieces));
            }
            text.extend_from_slice(b"\r\n\r\n");
            let fields = cut(&text);
            if let Some(quick) = quick_fields(fields) {
                accepted += 1;
                assert_eq!(lenient_fields(fields, 100).as_ref(), Ok(&quick), "{}", fields.escape_ascii());
            }
        }
        assert!(accepted > 1_000, "{accepted}");
    }
}
