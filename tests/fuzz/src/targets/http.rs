//! HTTP: heads, the chunked coding against a slow twin, whole responses in pieces.

use ringcrawl_base::Rng;
use ringcrawl_base::Truncated;
use ringcrawl_http::{Framing, HttpError, Limits, Method, Progress, Response, ResponseReader, decode_content};
use ringcrawl_warc::head::{Undone, write_stored_head};

use super::steered;

const LIMITS: Limits = Limits {
    header_bytes_max: 4_096,
    header_count_max: 32,
    interim_count_max: 4,
    body_wire_bytes_max: 16 << 10,
    body_bytes_max: 64 << 10,
    decode_ratio_max: 200,
};

/// Feeds `pieces`, and then the end of the stream or a cut.
fn read<'a>(method: Method, pieces: impl Iterator<Item = &'a [u8]>, cut: bool) -> Result<Option<Response>, HttpError> {
    let mut reader = ResponseReader::new(method, LIMITS);
    for piece in pieces {
        // What is done takes more, and notes it; an error stays.
        reader.feed(piece)?;
    }
    if cut {
        reader.cut(Truncated::Time);
    } else {
        reader.end_of_stream()?;
    }
    Ok(reader.into_response())
}

/// A head is read the same when it comes alone, obeys its limits, and is still a head when it is stored.
pub fn head(data: &[u8]) {
    let mut reader = ResponseReader::new(Method::Head, LIMITS);
    let progress = reader.feed(data);
    assert_eq!(reader.started(), !data.is_empty());
    match progress {
        Err(error) => {
            assert_eq!(reader.feed(b"HTTP/1.1 200 OK\r\n\r\n"), Err(error), "an error is final");
            assert!(!reader.has_head() && reader.into_response().is_none());
        }
        Ok(Progress::More) => {
            assert!(!reader.has_head());
            // What has not yet been told from a status line is judged by what there is of it.
            let ended = reader.end_of_stream().expect_err("no head");
            assert!(matches!(ended, HttpError::ClosedEarly | HttpError::NotHttp | HttpError::Version09), "{ended:?}");
        }
        Ok(Progress::Done) => {
            let response = reader.into_response().expect("a head");
            assert!((200..=999).contains(&response.status) && response.minor_version <= 9);
            assert_eq!((response.framing, response.body.len()), (Framing::None, 0));
            assert!(
                response.head_bytes.len() <= LIMITS.header_bytes_max
                    && response.headers.len() <= LIMITS.header_count_max
            );
            assert!(
                response.head_bytes.len() as u64 <= response.wire_bytes && response.wire_bytes <= data.len() as u64
            );
            assert!(data.windows(response.head_bytes.len()).any(|part| part == response.head_bytes));
            let alone =
                read(Method::Head, std::iter::once(&response.head_bytes[..]), false).expect("again").expect("a head");
            assert_eq!(
                (&alone.headers, alone.status, &alone.reason),
                (&response.headers, response.status, &response.reason)
            );
            let mut stored = Vec::new();
            write_stored_head(&mut stored, &response.head_bytes, 5, Undone { transfer: true, content: true });
            // Lines that were no fields may be some, under names that nobody asks for.
            let limits = Limits { header_bytes_max: 1 << 20, header_count_max: 1 << 16, ..LIMITS };
            let mut reader = ResponseReader::new(Method::Head, limits);
            assert_eq!(reader.feed(&stored), Ok(Progress::Done), "{:?}", String::from_utf8_lossy(&stored));
            let again = reader.into_response().expect("a head");
            assert_eq!((again.status, again.headers.get("content-length")), (response.status, Some(&b"5"[..])));
            assert_eq!(again.head_bytes, stored, "a stored head has one end");
        }
    }
}

pub fn head_seeds() -> Vec<Vec<u8>> {
    [
        &b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 12\r\n\r\n"[..],
        b"\r\nHTTP/1.0 404\nServer: x\n folded\n\tagain\n\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nA:b\r\n\r\n",
        b"HTTP/2.0 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nConnection: close, te\r\n\r\n",
        b"HTTP/0.9 200  OK  \r\nSet-Cookie: a=b; path=/\r\nSet-Cookie: c=d\r\nBad Name : v\r\n: v\r\nno colon\r\n\r\n",
        b"HTTP/1.1 301 \x80\xff\r\nLocation: http://example.com/\xc3\xa9\r\nContent-Length: 5, 5\r\n\r\n",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

/// What a chunked body is, said slowly (RFC 9112 section 7.1): (data, how it ended).
fn slowly(mut text: &[u8]) -> (Vec<u8>, End) {
    let mut data = Vec::new();
    loop {
        let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
            return (data, if is_size_line_so_far(text) { End::Short } else { End::Broken });
        };
        let line = &text[..end];
        let Some(size) = size_of_line(line) else { return (data, End::Broken) };
        text = &text[end + 1..];
        if size == 0 {
            break;
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if text.len() < size {
            data.extend_from_slice(text);
            return (data, End::Short);
        }
        data.extend_from_slice(&text[..size]);
        text = &text[size..];
        match text {
            [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => text = rest,
            [] | [b'\r'] => return (data, End::Short),
            _ => return (data, End::Broken),
        }
    }
    // Trailer lines, to the empty one.
    loop {
        let line_end = text.iter().position(|byte| *byte == b'\n');
        let line = &text[..line_end.unwrap_or(text.len())];
        if line.contains(&0) {
            return (data, End::Broken);
        }
        let Some(end) = line_end else { return (data, End::Short) };
        text = &text[end + 1..];
        if line.is_empty() || line == b"\r" {
            return (data, End::Whole(text.len()));
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    /// With as many bytes behind it.
    Whole(usize),
    Short,
    Broken,
}

fn size_of_line(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let rest = &line[digits..];
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let is_end = matches!(&rest[blanks..], [] | [b'\r'] | [b';', ..]);
    let text = std::str::from_utf8(&line[..digits]).ok()?.trim_start_matches('0');
    let size = if text.is_empty() { 0 } else { u64::from_str_radix(text, 16).ok()? };
    (digits > 0 && is_end && size <= i64::MAX as u64).then_some(size)
}

/// Whether a line without its end may still become one.
fn is_size_line_so_far(line: &[u8]) -> bool {
    line.is_empty() || size_of_line(line).is_some()
}

/// The reader and the twin agree; framing of our own making comes back.
pub fn chunked(data: &[u8]) {
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (steer, text) = steered(data);
    // Beyond these the reader has limits that the twin has not.
    if text.len() > 4_000 {
        return;
    }
    let result = read(Method::Get, [HEAD, text].into_iter(), false);
    let (twin, end) = slowly(text);
    match result {
        Err(HttpError::Chunk) => assert_eq!((end, twin.len()), (End::Broken, 0)),
        Err(error) => panic!("{error}"),
        Ok(response) => {
            let response = response.expect("a head");
            assert_eq!(response.body, twin);
            let (truncated, keep_alive) = match end {
                End::Whole(after) => (None, after == 0),
                End::Short => (Some(Truncated::Disconnect), false),
                End::Broken => (Some(Truncated::Unspecified), false),
            };
            assert_eq!(response.truncated, truncated);
            // The stream has ended here, so nothing is kept; whether it would have been is asked without that.
            let mut reader = ResponseReader::new(Method::Get, LIMITS);
            let fed = reader.feed(HEAD).and_then(|_| reader.feed(text));
            let kept = fed == Ok(Progress::Done) && reader.into_response().is_some_and(|response| response.keep_alive);
            assert_eq!(kept, keep_alive);
        }
    }
    // From what is in the data, so that an input repeats itself.
    let mut random = Rng::new(u64::from(steer));
    let mut coded = HEAD.to_vec();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(1 + random.index(rest.len()));
        let extension = *random.pick(&["", " ", ";a=b", "\t;x"]);
        let line_end = *random.pick(&["\r\n", "\n"]);
        coded.extend_from_slice(format!("{:0>1$x}{extension}{line_end}", piece.len(), random.index(6)).as_bytes());
        coded.extend_from_slice(piece);
        coded.extend_from_slice(line_end.as_bytes());
        rest = after;
    }
    coded.extend_from_slice([&b"0\r\n\r\n"[..], b"00;x\nA: b\n\n"][usize::from(steer & 1)]);
    let mut reader = ResponseReader::new(Method::Get, LIMITS);
    assert_eq!(reader.feed(&coded), Ok(Progress::Done));
    let response = reader.into_response().expect("whole");
    assert_eq!((&response.body[..], response.truncated, response.keep_alive), (text, None, true));
}

pub fn chunked_seeds() -> Vec<Vec<u8>> {
    [
        &b"x5\r\nhello\r\n0\r\n\r\n"[..],
        b"x5;name=value\nhello\n1 \t\r\nx\r\n000\nTrailer: yes\r\n\nbehind",
        b"xffffffffffffffff\r\n",
        b"x7fffffffffffffff\r\nabc",
        b"x-1\r\n",
        b"x0x10\r\n",
        b"x3\r\nabcX",
        b"x3\r\nabc\r\n0\r\nA: \0\r\n\r\n",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

/// A response in pieces is the response at once; what is kept of it has its bounds, decoded too.
pub fn response(data: &[u8]) {
    let (steer, text) = steered(data);
    let method = if steer & 1 == 0 { Method::Get } else { Method::Head };
    let cut = steer & 2 != 0;
    let whole = read(method, std::iter::once(text), cut);
    assert_eq!(whole, read(method, text.chunks(1), cut), "byte by byte");
    let (mut random, mut rest, mut pieces) = (Rng::new(u64::from(steer)), text, Vec::new());
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(random.index(rest.len() + 1));
        pieces.push(piece);
        rest = after;
    }
    assert_eq!(whole, read(method, pieces.into_iter(), cut), "in pieces of random length");
    let Ok(Some(response)) = whole else { return };
    assert!(response.body.len() <= LIMITS.body_wire_bytes_max && response.wire_bytes <= text.len() as u64);
    assert!(response.head_bytes.len() <= LIMITS.header_bytes_max && response.headers.len() <= LIMITS.header_count_max);
    assert!(!(response.keep_alive && response.truncated.is_some()), "what is cut is not kept");
    assert!(response.framing != Framing::None || response.body.is_empty());
    let decoded = decode_content(&response.headers, &response.body, &LIMITS);
    assert!(decoded.bytes.len() <= LIMITS.body_bytes_max);
    assert!(decoded.coding.is_some() || response.body.starts_with(&decoded.bytes));
}

pub fn response_seeds() -> Vec<Vec<u8>> {
    [
        &b"\0HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[..],
        b"\0HTTP/1.1 200 OK\r\nContent-Length: 50\r\nConnection: keep-alive\r\n\r\nhello",
        b"\x02HTTP/1.0 200 OK\r\n\r\nuntil the close",
        b"\0HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\nmore",
        b"\x01HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",
        b"\0HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\nx",
        b"\0HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
        b"\0HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\n\x1f\x8b\x08\r\n0\r\n\r\n",
        b"\0HTTP/1.1 200 OK\r\nContent-Encoding: deflate, br\r\nContent-Length: 3\r\n\r\n\x0b\x01\x80",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}
