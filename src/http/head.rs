//! The head of a response: where it ends, its status line, its fields.
//!
//! Decides: `httparse` reads the fields of heads as they should be; what it refuses goes, line by line,
//! through a lenient reader that follows browsers and curl:
//!
//! | what servers send | what becomes of it | after |
//! |---|---|---|
//! | one CRLF before the status line | dropped | RFC 9112 section 2.2, granted to servers; late CRLFs on reused connections |
//! | anything else before it | refused at its first byte | HTTP/0.9 has no head to tell us anything |
//! | LF for CRLF | a line end | RFC 9112 section 2.2 |
//! | tabs, several spaces in the status line | separators | RFC 9112 section 4 |
//! | no reason | an empty one | RFC 9112 section 4 |
//! | CR inside a line | a space; in a field's name it voids the line | RFC 9112 section 2.2 |
//! | NUL | refused | RFC 9110 section 5.5 |
//! | whitespace before the first field | the line is dropped | RFC 9112 section 2.2 |
//! | space before the colon | dropped | RFC 9112 section 5.1, as proxies must |
//! | a line without colon or name | dropped | browsers |
//! | obs-fold | joined by one space | RFC 9112 section 5.2 |
//! | other odd bytes in names and values | kept | RFC 9110 section 5.5 |
//!
//! Invariants: the end is searched once over every byte, whatever the splits; where `httparse` accepts,
//! the lenient reader gives the same fields (tested); a `Headers` owns exactly its names' and values' bytes.
//!
//! Limits: bytes and number of fields come from `Limits`. Versions 1.0 to 1.9 (RFC 9110 section 2.5).

use super::HttpError;

/// Header fields in the order they came; names compare without case.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    bytes: Vec<u8>,
    fields: Vec<Field>,
}

/// Ends within `Headers::bytes`; each field's name starts where the last one's value ended.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Field {
    start: u32,
    name_end: u32,
    value_end: u32,
}

impl Headers {
    /// The first field of that name, without whitespace around it.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// All fields of that name, in order.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// Every (name, value) as it came.
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

/// What a head says.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) minor_version: u8,
    pub(super) status: u16,
    pub(super) reason: Vec<u8>,
    pub(super) headers: Headers,
}

impl Head {
    /// Reads a whole head, from its status line to its empty line.
    pub(super) fn parse(bytes: &[u8], header_count_max: usize) -> Result<Head, HttpError> {
        let (line, fields) = split_line(bytes);
        let (minor_version, status, reason) = status_line(line)?;
        let headers = match quick_fields(fields) {
            Some(headers) => headers,
            None => lenient_fields(fields, header_count_max)?,
        };
        if headers.len() > header_count_max {
            return Err(HttpError::HeadTooLarge);
        }
        Ok(Head { minor_version, status, reason, headers })
    }
}

/// Gathers a head's bytes until its empty line.
#[derive(Default)]
pub(super) struct HeadBuffer {
    bytes: Vec<u8>,
    line_start: usize,
    blank: Blank,
}

/// The one empty line that may precede a head.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Blank {
    #[default]
    None,
    Cr,
    Line,
}

/// What every response starts with (RFC 9112 section 2.3).
const MAGIC: &[u8] = b"HTTP/";

impl HeadBuffer {
    /// Takes bytes from `input`, at most to the head's end; whether that was reached.
    pub(super) fn take(&mut self, input: &mut &[u8], bytes_max: usize) -> Result<bool, HttpError> {
        while let Some(expected) = MAGIC.get(self.bytes.len()) {
            let Some((byte, rest)) = input.split_first() else { return Ok(false) };
            *input = rest;
            match (self.blank, byte) {
                (Blank::None, b'\r') if self.bytes.is_empty() => self.blank = Blank::Cr,
                (Blank::Cr, b'\n') => self.blank = Blank::Line,
                (Blank::Cr, _) => return Err(HttpError::NotHttp),
                _ if byte == expected => self.bytes.push(*byte),
                _ => return Err(HttpError::NotHttp),
            }
        }
        while !input.is_empty() {
            let line_end = memchr::memchr(b'\n', input);
            let (taken, rest) =
                input.split_at_checked(line_end.map_or(input.len(), |at| at + 1)).unwrap_or((input, &[]));
            if self.bytes.len() + taken.len() > bytes_max {
                return Err(HttpError::HeadTooLarge);
            }
            self.bytes.extend_from_slice(taken);
            *input = rest;
            if line_end.is_some() {
                if matches!(self.bytes.get(self.line_start..), Some(b"\n" | b"\r\n")) {
                    return Ok(true);
                }
                self.line_start = self.bytes.len();
            }
        }
        Ok(false)
    }

    /// The bytes gathered; the buffer is ready for the next head.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(self).bytes
    }
}

/// The first line without its end, and what follows it.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match memchr::memchr(b'\n', bytes) {
        Some(at) => (bytes.get(..at).unwrap_or_default(), bytes.get(at + 1..).unwrap_or_default()),
        None => (bytes, &bytes[bytes.len()..]),
    };
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

/// Minor version, status and reason. `HTTP/1.x` and three digits are not negotiable.
fn status_line(line: &[u8]) -> Result<(u8, u16, Vec<u8>), HttpError> {
    const BAD_VERSION: HttpError = HttpError::Malformed("version is not HTTP/1.x");
    const BAD_STATUS: HttpError = HttpError::Malformed("status is not three digits from 100 to 999");
    let rest = line.strip_prefix(MAGIC).ok_or(HttpError::NotHttp)?.strip_prefix(b"1.").ok_or(BAD_VERSION)?;
    let (minor, rest) = rest.split_first().ok_or(BAD_VERSION)?;
    if !minor.is_ascii_digit() || !rest.first().is_some_and(is_blank) {
        return Err(BAD_VERSION);
    }
    let rest = trim_blank(rest);
    let (digits, reason) = rest.split_at_checked(3).ok_or(BAD_STATUS)?;
    if !digits.iter().all(u8::is_ascii_digit) || !reason.first().is_none_or(is_blank) {
        return Err(BAD_STATUS);
    }
    let status = digits.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
    if status < 100 {
        return Err(BAD_STATUS);
    }
    if line.contains(&0) {
        return Err(HttpError::Malformed("NUL in the status line"));
    }
    Ok((
        minor - b'0',
        status,
        trim_blank(reason).iter().map(|byte| if *byte == b'\r' { b' ' } else { *byte }).collect(),
    ))
}

/// Whitespace between the words of a status line (RFC 9112 section 4).
fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | b'\r')
}

fn trim_blank(mut bytes: &[u8]) -> &[u8] {
    while let Some((first, rest)) = bytes.split_first()
        && is_blank(first)
    {
        bytes = rest;
    }
    while let Some((last, rest)) = bytes.split_last()
        && is_blank(last)
    {
        bytes = rest;
    }
    bytes
}

/// Fields that `httparse` can hold on the stack at a time; heads with more take the lenient way.
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
            None => (&line[..0], line),
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
fn value_of(bytes: &[u8]) -> std::borrow::Cow<'_, [u8]> {
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

    fn parse(text: &str) -> Result<Head, HttpError> {
        Head::parse(text.as_bytes(), 100)
    }

    fn pairs(text: &str) -> Vec<(String, String)> {
        let head = parse(text).expect("a readable head");
        let string = |bytes: &[u8]| bytes.escape_ascii().to_string();
        head.headers.iter().map(|(name, value)| (string(name), string(value))).collect()
    }

    #[test]
    fn status_lines() {
        let of = |line: &str| parse(&format!("{line}\r\n\r\n")).map(|head| (head.status, head.reason));
        assert_eq!(of("HTTP/1.1 200 OK"), Ok((200, b"OK".to_vec())));
        assert_eq!(of("HTTP/1.0 404"), Ok((404, Vec::new())));
        assert_eq!(of("HTTP/1.1\t 200 \t Very  good\u{e9} "), Ok((200, "Very  good\u{e9}".into())));
        assert_eq!(of("HTTP/1.1 200\rOK"), Ok((200, b"OK".to_vec())));
        for bad in [
            "HTTP/1.1",
            "HTTP/1.1 ",
            "HTTP/1.1 20",
            "HTTP/1.1 2000",
            "HTTP/1.1 200X",
            "HTTP/1.1 099 x",
            "HTTP/1.1 -12 x",
            "HTTP/1. 200",
            "HTTP/1.01 200",
            "HTTP/01.1 200",
            "HTTP/2.0 200",
            "HTTP/1.1200 OK",
            "HTTP/1.1 200 O\0",
        ] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn odd_fields() {
        let text = "HTTP/1.1 200 OK\r\n Early: x\r\nA : 1 \r\nno colon\r\n  folded away\r\n: nameless\r\nB:\r\n  two\r\n \
                    \r\n\tlines \r\nC\rD: x\r\nE: a\rb\r\nen-US F: \u{1}\u{e9}\n\n";
        let expected = [("A", "1"), ("B", "two lines"), ("E", "a b"), ("en-US F", "\\x01\\xc3\\xa9")]
            .map(|(n, v)| (n.into(), v.into()));
        assert_eq!(pairs(text), expected);
        assert!(parse("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n").is_err());
        assert!(parse("HTTP/1.1 200 OK\r\nA\0: x\r\n\r\n").is_err());
    }

    #[test]
    fn names_compare_without_case_and_keep_their_order() {
        let head = parse("HTTP/1.1 200 OK\r\nX-a: 1\r\nb: 2\r\nx-A: 3, ,Four;q=1\r\n\r\n").expect("fine");
        assert_eq!(head.headers.get("X-A"), Some(&b"1"[..]));
        assert_eq!(head.headers.all("x-a").count(), 2);
        assert_eq!(head.headers.list("x-a").collect::<Vec<_>>(), [b"1".to_vec(), b"3".to_vec(), b"four".to_vec()]);
        assert_eq!((head.headers.get("c"), head.headers.len()), (None, 3));
    }

    #[test]
    fn too_many_fields() {
        for count in [63, 64, 65, 100, 101, 300] {
            let text = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(count));
            assert_eq!(parse(&text).map(|head| head.headers.len()).ok(), (count <= 100).then_some(count));
        }
    }

    #[test]
    fn the_lenient_reader_agrees_with_httparse() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |bound: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % bound as u64) as usize
        };
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
            for _ in 0..next(12) {
                text.extend_from_slice(pieces[next(pieces.len())]);
            }
            // A head as the buffer would cut it.
            let mut buffer = HeadBuffer::default();
            let whole = [b"HTTP/1.1 200\r\n", &text[..], b"\r\n\r\n"].concat();
            assert_eq!(buffer.take(&mut &whole[..], 1 << 20), Ok(true));
            let head = buffer.finish();
            let (_, fields) = split_line(&head);
            if let Some(quick) = quick_fields(fields) {
                accepted += 1;
                assert_eq!(lenient_fields(fields, 100).as_ref(), Ok(&quick), "{}", fields.escape_ascii());
            }
        }
        assert!(accepted > 1_000, "{accepted}");
    }
}
