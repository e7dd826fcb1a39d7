//! Compares each response read whole, the slow twin, with the same response read in pieces.

use super::*;
use ringcrawl_base::Rng;

const LIMITS: Limits = Limits {
    header_bytes_max: 300,
    header_count_max: 10,
    body_wire_bytes_max: 40,
    body_bytes_max: 1_000,
    decode_ratio_max: 200,
    interim_count_max: 5,
};

/// Reads `pieces`, then the close.
fn read<'a>(method: Method, pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Response, HttpError> {
    let mut reader = ResponseReader::new(method, LIMITS);
    let mut done = false;
    for piece in pieces {
        let progress = reader.feed(piece)?;
        assert!(!done || progress == Progress::Done, "done stays done");
        done = progress == Progress::Done;
        assert_eq!(reader.has_head() && !done, reader.has_head() && !matches!(reader.state, ReaderState::Done));
    }
    if !done {
        reader.end_of_stream()?;
    }
    reader.into_response().ok_or(HttpError::ClosedEarly)
}

fn get(text: &str) -> Result<Response, HttpError> {
    read(Method::Get, [text.as_bytes()])
}

fn body(text: &str) -> (String, Option<Truncated>, bool) {
    let response = get(text).expect("a readable response");
    (String::from_utf8_lossy(&response.body).into_owned(), response.truncated, response.keep_alive)
}

#[test]
fn framings() {
    let cut = Some(Truncated::Disconnect);
    assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"), ("ab".into(), None, true));
    assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc"), ("ab".into(), None, false));
    assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc"), ("abc".into(), cut, false));
    assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"), ("".into(), cut, false));
    assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), ("".into(), None, true));
    assert_eq!(body("HTTP/1.1 200 OK\r\n\r\nabc"), ("abc".into(), None, false));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(body(&format!("{chunked}2\r\nab\r\n0\r\n\r\n")), ("ab".into(), None, true));
    assert_eq!(body(&format!("{chunked}2\r\nab\r\n0\r\n\r\n\r\n")), ("ab".into(), None, false));
    assert_eq!(body(&format!("{chunked}2\r\nab\r\n0\r\n")), ("ab".into(), cut, false));
    assert_eq!(body(&format!("{chunked}2\r\nab\r\nz")), ("ab".into(), Some(Truncated::Unspecified), false));
    assert_eq!(get(&format!("{chunked}<html>")), Err(HttpError::Chunk));
    assert_eq!(body("HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n"), ("".into(), None, true));
    let head = read(Method::Head, [&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..]]).expect("fine");
    assert_eq!((head.framing, head.keep_alive, head.truncated), (Framing::None, true, None));
}

#[test]
fn refusals() {
    assert_eq!(get(""), Err(HttpError::ClosedEarly));
    assert_eq!(get("HTTP/1.1 200 OK\r\nA: b\r\n"), Err(HttpError::ClosedEarly));
    assert_eq!(get("<html>"), Err(HttpError::Version09));
    assert_eq!(get("<p"), Err(HttpError::Version09));
    assert_eq!(get("ok"), Err(HttpError::NotHttp));
    assert_eq!(get("\n\nHTTP/1.1 200 OK\r\n\r\n"), Err(HttpError::NotHttp));
    assert_eq!(get("\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), Err(HttpError::NotHttp));
    assert_eq!(get("HTTP/1.1 101 Up\r\n\r\n"), Err(HttpError::Upgrade));
    assert_eq!(get("HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\na"), Err(HttpError::ContentLength));
    assert_eq!(get("HTTP/1.1 200 OK\r\nTransfer-Encoding: wat\r\n\r\na"), Err(HttpError::TransferCoding));
    assert_eq!(get(&format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(300))), Err(HttpError::HeadTooLarge));
    assert_eq!(get(&format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(11))), Err(HttpError::HeadTooLarge));
    assert_eq!(get(&"HTTP/1.1 100 Continue\r\n\r\n".repeat(20)), Err(HttpError::HeadTooLarge));
    let after = |interim: usize| get(&("HTTP/1.1 100\r\n\r\n".repeat(interim) + "HTTP/1.1 200 OK\r\n\r\n"));
    assert_eq!(after(5).map(|response| response.status), Ok(200));
    assert_eq!(after(6), Err(HttpError::HeadTooLarge));
}

/// Server errors that browsers accept, each with the result.
#[test]
fn leniency() {
    for text in [
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nab",
        "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 \r\nContent-Length:2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nBad Name\u{1}: \u{7f}\u{e9}\r\nno colon\r\nContent-Length : 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nab",
        "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nContent-Length: 9\r\nX: y\r\n\r\n",
    ] {
        assert_eq!(body(text), ("ab".into(), None, true), "{text:?}");
    }
    let folded = get("HTTP/1.1 200 OK\r\nA: b\r\n\t c\r\nContent-Length: 0\r\n\r\n").expect("fine");
    assert_eq!(folded.headers.get("a"), Some(&b"b c"[..]));
    let trailers = get("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n").expect("fine");
    assert_eq!((trailers.headers.get("x"), trailers.headers.len()), (None, 1));
}

/// Junk before the status line is skipped within its limit, and the connection is not used again.
#[test]
fn junk_before_the_status_line() {
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
    for junk in ["\u{feff}", "x", "</p>"] {
        let read = get(&format!("{junk}{response}")).expect("fine");
        assert_eq!((&read.body[..], read.truncated, read.keep_alive), (&b"ab"[..], None, false), "{junk:?}");
        assert_eq!(read.head_bytes.len() + read.body.len() + junk.len(), read.wire_bytes as usize);
    }
    assert_eq!(get(&format!("12345{response}")), Err(HttpError::NotHttp));
    assert_eq!(get(&format!("    {response}")), Err(HttpError::NotHttp));
}

/// Cases where leniency would hand one response's bytes to another URL.
#[test]
fn strictness() {
    for lengths in ["Content-Length: 2\r\nContent-Length: 3", "Content-Length: 2, 3"] {
        assert_eq!(get(&format!("HTTP/1.1 200 OK\r\n{lengths}\r\n\r\nab")), Err(HttpError::ContentLength), "{lengths}");
    }
    // Everything in a body of unknown length belongs to it, and never to another response.
    for length in ["-2", "x", "", "2, x"] {
        let next = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let read = get(&format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nab{next}")).expect("kept");
        assert_eq!((read.has_bad_length, read.framing, read.keep_alive), (true, Framing::Close, false), "{length}");
        assert_eq!((read.body.len(), read.truncated), (2 + next.len(), None));
    }
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
    let read = get(both).expect("fine");
    assert_eq!((&read.body[..], read.framing, read.keep_alive), (&b"ab"[..], Framing::Chunked, false));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for size in ["-1", "ffffffffffffffffffff", "8000000000000000", "+2", "0x2", "2 2"] {
        assert_eq!(get(&format!("{chunked}{size}\r\nab")), Err(HttpError::Chunk), "{size}");
        let cut = body(&format!("{chunked}2\r\nab\r\n{size}\r\nab"));
        assert_eq!(cut, ("ab".into(), Some(Truncated::Unspecified), false), "{size}");
    }
}

#[test]
fn an_error_is_final() {
    let mut reader = ResponseReader::new(Method::Get, LIMITS);
    assert_eq!(reader.feed(b"SSH-2.0"), Err(HttpError::NotHttp));
    assert_eq!(reader.feed(b"HTTP/1.1 200 OK\r\n\r\n"), Err(HttpError::NotHttp));
    assert_eq!(reader.end_of_stream(), Err(HttpError::NotHttp));
    assert!(reader.started() && !reader.has_head() && reader.into_response().is_none());
}

#[test]
fn interim_responses_are_skipped() {
    let text = "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    let response = get(text).expect("fine");
    assert_eq!(response.head_bytes, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    assert_eq!((response.status, response.wire_bytes, response.headers.len()), (200, text.len() as u64, 1));
    assert!(response.keep_alive);
}

#[test]
fn bodies_stop_at_the_limit() {
    let length = Some(Truncated::Length);
    let (full, over) = ("x".repeat(40), "x".repeat(41));
    for (text, cut) in [
        (format!("HTTP/1.1 200 OK\r\n\r\n{full}"), None),
        (format!("HTTP/1.1 200 OK\r\n\r\n{over}"), length),
        (format!("HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n{full}"), None),
        (format!("HTTP/1.1 200 OK\r\nContent-Length: 41\r\n\r\n{over}"), length),
        (format!("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n{over}"), length),
        (format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n28\r\n{full}\r\n0\r\n\r\n"), None),
        (format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n29\r\n{over}\r\n0\r\n\r\n"), length),
    ] {
        let response = get(&text).expect("fine");
        assert_eq!((response.body.len(), response.truncated), (40, cut), "{text}");
        assert!(cut.is_none() || !response.keep_alive);
    }
}

#[test]
fn a_length_reserves_little() {
    let limits = Limits { body_wire_bytes_max: usize::MAX, ..LIMITS };
    let mut reader = ResponseReader::new(Method::Get, limits);
    assert_eq!(reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000000\r\n\r\na"), Ok(Progress::More));
    assert!(reader.body.capacity() <= RESERVE_BYTES_MIN);
}

#[test]
fn cutting_keeps_what_came() {
    let mut reader = ResponseReader::new(Method::Get, LIMITS);
    assert_eq!(reader.feed(b"HTTP/1.1 200 OK\r\n"), Ok(Progress::More));
    reader.cut(Truncated::Time);
    assert!(!reader.has_head());
    assert_eq!(reader.feed(b"Content-Length: 5\r\n\r\nab"), Ok(Progress::More));
    assert!(reader.has_head());
    reader.cut(Truncated::Time);
    reader.cut(Truncated::Disconnect);
    let response = reader.into_response().expect("it has a head");
    assert_eq!(
        (&response.body[..], response.truncated, response.keep_alive),
        (&b"ab"[..], Some(Truncated::Time), false)
    );

    let mut reader = ResponseReader::new(Method::Get, LIMITS);
    assert_eq!(reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Ok(Progress::Done));
    reader.cut(Truncated::Time);
    assert!(reader.into_response().is_some_and(|response| response.truncated.is_none() && response.keep_alive));
}

/// `hello` by Python's gzip, without a time.
const HELLO_GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff\xcbH\xcd\xc9\xc9\x07\0\x86\xa6\x106\x05\0\0\0";

#[test]
fn transfer_codings_are_undone() {
    let head = &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: x-gzip, chunked\r\n\r\n19\r\n"[..];
    let response = read(Method::Get, [head, HELLO_GZIP, b"\r\n0\r\n\r\n"]).expect("fine");
    assert_eq!((&response.body[..], response.truncated, response.keep_alive), (&b"hello"[..], None, true));
    let response = read(Method::Get, [head, HELLO_GZIP, b"\r\n"]).expect("fine");
    assert_eq!((&response.body[..], response.truncated), (&b"hello"[..], Some(Truncated::Disconnect)));
    // Valid chunks with invalid gzip: the connection to such a peer is not reused.
    let lie = &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"[..];
    let response = read(Method::Get, [lie]).expect("fine");
    assert_eq!((response.truncated, response.keep_alive), (Some(Truncated::Unspecified), false));
    let head = &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 2\r\n\r\n"[..];
    let response = read(Method::Get, [head, HELLO_GZIP]).expect("fine");
    assert_eq!((&response.body[..], response.framing, response.truncated), (&b"hello"[..], Framing::Close, None));
    let response = read(Method::Get, [head, b"<html>"]).expect("fine");
    assert_eq!((&response.body[..], response.truncated), (&b""[..], Some(Truncated::Unspecified)));
}

/// Heads and bodies to build responses from, valid and invalid.
const PIECES: [&[u8]; 30] = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 200\n",
    b"HTTP/1.1 100 C\r\n\r\n",
    b"HTTP/1.1 204 x\r\n",
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 100\r\n",
    b"content-length : 5\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b" folded\r\n",
    b"no colon\r\n",
    b"5\r\nhello\r\n",
    b"5;x=\"y\"\nhello\n",
    b"19\r\n",
    HELLO_GZIP,
    b"0\r\n\r\n",
    b"0\r\nT: x\r\n\r\n",
    b"hello",
    b"\0",
    b"\xff\x01",
    b": ",
    b"A: b\r\n",
    b"fffffffffffffff\r\n",
    b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

#[test]
fn splits_do_not_matter_and_nothing_panics() {
    let mut rng = Rng::new(1);
    let mut readable = 0;
    for round in 0..30_000 {
        // A valid start, most of the time: otherwise few would get past the status line.
        let mut text = if round % 8 == 0 { Vec::new() } else { PIECES[rng.index(2)].to_vec() };
        for _ in 0..rng.index(6) {
            text.extend(*rng.pick(&PIECES));
        }
        text.extend_from_slice(PIECES[4 + rng.index(3)]);
        for _ in 0..rng.index(5) {
            text.extend(*rng.pick(&PIECES[17..]));
        }
        if round % 3 == 0 && !text.is_empty() {
            for _ in 0..1 + rng.index(3) {
                let at = rng.index(text.len());
                text[at] = rng.next() as u8;
            }
        }
        let method = if round % 16 == 1 { Method::Head } else { Method::Get };
        let whole = read(method, [&text[..]]);
        if let Ok(response) = &whole {
            readable += 1;
            assert!(
                response.body.len() <= LIMITS.body_wire_bytes_max && response.headers.len() <= LIMITS.header_count_max
            );
            assert!(response.head_bytes.len() <= LIMITS.header_bytes_max && response.wire_bytes <= text.len() as u64);
            assert!(!(response.keep_alive && (response.truncated.is_some() || response.framing == Framing::Close)));
        }
        let bytes = read(method, text.chunks(1));
        assert_eq!(whole, bytes, "{}", text.escape_ascii());
        let at = rng.index(text.len() + 1);
        let (first, second) = text.split_at(at);
        assert_eq!(whole, read(method, [first, second]), "{} at {at}", text.escape_ascii());
    }
    assert!(readable > 10_000, "{readable}");
}

#[test]
fn every_truncation_is_noticed() {
    for text in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a\r\nhel\r\n2\r\nlo\r\n0\r\nT: x\r\n\r\n",
    ] {
        for end in 0..text.len() {
            match read(Method::Get, [&text[..end]]) {
                Ok(response) => {
                    assert_eq!((response.truncated, response.keep_alive), (Some(Truncated::Disconnect), false));
                    assert!(b"hello".starts_with(&response.body));
                }
                Err(error) => assert_eq!(error, HttpError::ClosedEarly),
            }
        }
        assert!(read(Method::Get, [text]).is_ok_and(|response| response.truncated.is_none() && response.keep_alive));
    }
}
