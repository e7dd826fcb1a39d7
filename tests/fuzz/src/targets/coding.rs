//! Content codings: any bytes, and what the encoders make.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use ringcrawl_http::{CodingProblem, Decoded, Headers, Limits, Method, ResponseReader, decode_content};

use super::steered;

const BYTES_MAX: usize = 256 << 10;

/// Content of so many bytes at most. All of it is less than what no ratio forbids.
fn within(bytes_max: usize) -> Limits {
    Limits { body_bytes_max: bytes_max, ..Limits::default() }
}

fn headers(coding: &str) -> Headers {
    let mut reader = ResponseReader::new(Method::Head, Limits::default());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n\r\n");
    reader.feed(head.as_bytes()).expect("a head");
    reader.into_response().expect("a head").headers
}

fn encode(coding: &str, steer: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let level = Compression::new(u32::from(steer % 10));
    let half = content.len() / 2;
    let written = match coding {
        // Two members are one content.
        "gzip" => [&content[..half], &content[half..]]
            .into_iter()
            .try_for_each(|part| GzEncoder::new(&mut out, level).write_all(part)),
        "deflate" if steer & 16 == 0 => ZlibEncoder::new(&mut out, level).write_all(content),
        "deflate" => DeflateEncoder::new(&mut out, level).write_all(content),
        "br" => brotli::CompressorWriter::new(&mut out, 4096, u32::from(steer % 6), 18).write_all(content),
        _ => [&content[..half], &content[half..]].into_iter().try_for_each(|part| {
            let mut encoder = zstd::Encoder::new(&mut out, i32::from(steer % 4))?;
            encoder.include_checksum(steer & 16 != 0)?;
            encoder.write_all(part)?;
            encoder.finish().map(drop)
        }),
    };
    written.expect("a vector takes everything");
    out
}

/// What another decoder of the same coding makes of the whole input; `None`: an error.
fn reference(coding: &str, input: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let limit = BYTES_MAX as u64 + 1;
    let read = match coding {
        "gzip" => flate2::read::GzDecoder::new(input).take(limit).read_to_end(&mut out),
        "deflate" => flate2::read::ZlibDecoder::new(input).take(limit).read_to_end(&mut out),
        "br" => brotli::Decompressor::new(input, 4096).take(limit).read_to_end(&mut out),
        _ => zstd::Decoder::new(input).and_then(|mut decoder| {
            decoder.window_log_max(23)?;
            decoder.take(limit).read_to_end(&mut out)
        }),
    };
    read.ok().map(|_| out)
}

/// Bounds for any bytes; the limit only cuts; a reference decoder's content is ours; what was coded comes back, and of
/// what is cut, the beginning.
pub fn decode(coding: &str, data: &[u8]) {
    let headers = headers(coding);
    let (steer, input) = steered(data);
    let decoded = decode_content(&headers, input, &within(BYTES_MAX));
    check(&decoded, input, BYTES_MAX);
    let smaller_max = usize::from(steer) * 8;
    let smaller = decode_content(&headers, input, &within(smaller_max));
    check(&smaller, input, smaller_max);
    if decoded.coding.is_some() && smaller.coding.is_some() {
        assert!(decoded.bytes.starts_with(&smaller.bytes));
        if decoded.bytes.len() <= smaller_max {
            assert_eq!((&smaller.bytes, smaller.truncated), (&decoded.bytes, decoded.truncated));
        } else {
            assert_eq!(smaller.bytes.len(), smaller_max);
        }
    }
    if let Some(content) = reference(coding, input)
        && !input.is_empty()
    {
        // One member of several, where the reference reads but one.
        let known = content.get(..BYTES_MAX).unwrap_or(&content);
        // The reference for zstd lets a frame pass that has less content than it states; `zstd -d` does not.
        let is_refused = coding == "zstd"
            && (decoded.problem == Some(CodingProblem::Corrupt)
                || decoded.truncated.is_some() && content.starts_with(&decoded.bytes));
        // The reference stopped at its limit and has not seen what is corrupt behind it; how much of what stands before
        // that is given out depends on the sizes of buffers.
        let is_torn = content.len() > BYTES_MAX && decoded.truncated.is_some() && known.starts_with(&decoded.bytes);
        assert!(
            is_refused || is_torn || decoded.bytes.starts_with(known),
            "{} bytes, the reference has {}",
            decoded.bytes.len(),
            content.len()
        );
    }
    if coding == "gzip"
        && !input.is_empty()
        && !input[1..].windows(3).any(|part| part == b"\x1f\x8b\x08")
        && let Some(content) = reference(coding, input).filter(|content| content.len() <= BYTES_MAX)
    {
        // Where one whole member is undone by a way of its own, the start of another behind it makes it go the other.
        let other = [input, &b"\x1f\x8b\x08"[..]].concat();
        let other = decode_content(&headers, &other, &within(BYTES_MAX));
        assert_eq!((&other.bytes, other.truncated), (&decoded.bytes, decoded.truncated), "{}", content.len());
    }
    twice(coding, input);
    let coded = encode(coding, steer, input);
    twice(coding, &coded);
    let back = decode_content(&headers, &coded, &within(input.len().max(1)));
    assert_eq!((&back.bytes[..], back.problem, back.truncated), (input, None, None));
    let cut = &coded[..coded.len() * usize::from(steer) / 256];
    let part = decode_content(&headers, cut, &within(input.len().max(1)));
    assert!(part.coding.is_none() || input.starts_with(&part.bytes));
    assert!(
        part.coding.is_none()
            || part.bytes.len() == input.len()
            || part.truncated.is_some()
            || cut.is_empty()
            || coding == "gzip"
            || coding == "zstd"
    );
}

fn check(decoded: &Decoded<'_>, input: &[u8], bytes_max: usize) {
    match decoded.coding {
        Some(_) => assert!(decoded.bytes.len() <= bytes_max),
        None => assert_eq!(&decoded.bytes[..], input, "what was not undone stays"),
    }
    match decoded.problem {
        Some(CodingProblem::TooLarge) => assert_eq!(decoded.bytes.len(), bytes_max),
        Some(CodingProblem::Corrupt) => assert!(decoded.coding.is_none()),
        Some(problem) => panic!("{problem}: the coding is known"),
        None => {}
    }
}

/// A body that is coded once and labelled twice is what it is when it is labelled once.
fn twice(coding: &str, data: &[u8]) {
    let limits = within(BYTES_MAX);
    let (once, twice) = (headers(coding), headers(&format!("{coding}, {coding}")));
    let (once, twice) = (decode_content(&once, data, &limits), decode_content(&twice, data, &limits));
    if twice.problem == Some(CodingProblem::Mislabelled) {
        assert_eq!((&once.bytes, &once.coding, once.truncated), (&twice.bytes, &twice.coding, twice.truncated));
    }
    assert!(twice.problem != Some(CodingProblem::Corrupt) || &twice.bytes[..] == data && twice.coding.is_none());
}

pub fn seeds(coding: &str) -> Vec<Vec<u8>> {
    let text = b"<!doctype html><p>hello hello hello hello, and now for something else entirely".repeat(4);
    let mut seeds = vec![b"xplain".to_vec()];
    for steer in [0, 1, 9, 16, 255] {
        for content in [&text[..], b"a", b""] {
            seeds.push([&[steer][..], &encode(coding, steer, content)].concat());
        }
    }
    if coding == "gzip" {
        // Name, comment, extra field and header check.
        seeds.push(b"x\x1f\x8b\x08\x1e\0\0\0\0\0\x03\x02\0abn\0c\0\x01\x02\x03\0\0\0\0\0\0\0\0\0".to_vec());
    }
    if coding == "zstd" {
        // A frame to be skipped, and one with a window that is too large.
        seeds.push(b"x\x50\x2a\x4d\x18\x02\0\0\0ab\x28\xb5\x2f\xfd\0\x90\x01\0\0".to_vec());
    }
    seeds
}
