//! Codings made by the encoders of the same libraries, then truncated, damaged, stacked and inflated.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::super::head::Head;
use super::*;
use ringcrawl_base::Rng;

fn headers(coding: &str) -> Headers {
    let text = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n\r\n");
    Head::parse(text.as_bytes(), 10).expect("readable").headers
}

fn decode<'a>(coding: &str, body: &'a [u8]) -> Decoded<'a> {
    decode_content(&headers(coding), body, &limits(BYTES_MAX))
}

const BYTES_MAX: usize = 1 << 20;

fn limits(body_bytes_max: usize) -> Limits {
    Limits { body_bytes_max, ..Limits::default() }
}

/// Text that compresses, but not to nothing: longer than two pieces.
fn text() -> Vec<u8> {
    let mut rng = Rng::new(1);
    (0..6_000).flat_map(|_| format!("{} ", rng.below(1_000)).into_bytes()).collect()
}

fn encode(coding: &str, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let written = match coding {
        "gzip" => GzEncoder::new(&mut out, Compression::best()).write_all(content),
        "deflate" => ZlibEncoder::new(&mut out, Compression::best()).write_all(content),
        "bare" => DeflateEncoder::new(&mut out, Compression::best()).write_all(content),
        "br" => ::brotli::CompressorWriter::new(&mut out, 4096, 9, 22).write_all(content),
        // In two blocks, so that a cut has something before it.
        _ => ::zstd::stream::Encoder::new(&mut out, 3).and_then(|mut encoder| {
            let (first, second) = content.split_at(content.len() / 2);
            encoder.write_all(first)?;
            encoder.flush()?;
            encoder.write_all(second)?;
            encoder.finish().map(drop)
        }),
    };
    written.expect("a Vec takes everything");
    out
}

const ALL: [(&str, &str); 5] =
    [("gzip", "gzip"), ("deflate", "deflate"), ("bare", "deflate"), ("br", "br"), ("zstd", "zstd")];

#[test]
fn each_coding_comes_back() {
    let text = text();
    for (made, named) in ALL {
        for content in [&text[..], b"x", b""] {
            let body = encode(made, content);
            let decoded = decode(named, &body);
            assert_eq!((&decoded.bytes[..], decoded.problem, decoded.truncated), (content, None, None), "{made}");
            assert_eq!(decoded.coding.as_deref(), Some(named));
        }
    }
    let body = encode("gzip", b"x");
    assert_eq!(decode("X-GZip", &body).coding.as_deref(), Some("gzip"));
}

#[test]
fn several_codings_are_undone_last_to_first() {
    let body = encode("gzip", &encode("br", &encode("deflate", b"hello")));
    let decoded = decode("deflate, identity,, br\r\nContent-Encoding: gzip", &body);
    assert_eq!((&decoded.bytes[..], decoded.coding.as_deref()), (&b"hello"[..], Some("deflate, br, gzip")));
    let nothing = encode("gzip", b"");
    assert_eq!((decode("br, gzip", &nothing).bytes.len(), decode("br, gzip", &nothing).truncated), (0, None));
    assert_eq!(decode("gzip,gzip,gzip,gzip", &body).problem, Some(CodingProblem::TooMany));
}

#[test]
fn a_body_that_is_labelled_once_more_is_undone_once() {
    let page = b"<!doctype html><p>hello ".repeat(40);
    for (named, made, removed) in [
        ("gzip, gzip", &["gzip"][..], "gzip"),
        ("gzip\r\nContent-Encoding: x-gzip", &["gzip"], "gzip"),
        ("zstd, gzip", &["gzip"], "gzip"),
        ("gzip, zstd", &["gzip"], "gzip"),
        ("br, br", &["br"], "br"),
        ("gzip, gzip, gzip", &["gzip"], "gzip"),
        ("gzip, gzip, gzip", &["gzip", "gzip"], "gzip, gzip"),
    ] {
        let body = made.iter().fold(page.clone(), |body, coding| encode(coding, &body));
        let decoded = decode(named, &body);
        assert_eq!(decoded.problem, Some(CodingProblem::Mislabelled), "{named}");
        assert_eq!(
            (&decoded.bytes[..], decoded.coding.as_deref(), decoded.truncated),
            (&page[..], Some(removed), None)
        );
    }
    // In none of them: as received.
    let decoded = decode("gzip, gzip", &page);
    assert_eq!((&decoded.bytes[..], decoded.coding, decoded.problem), (&page[..], None, Some(CodingProblem::Corrupt)));
}

#[test]
fn what_is_not_coded_stays() {
    for (coding, problem) in [
        ("", None),
        ("identity", None),
        ("none", None),
        ("gzip", Some(CodingProblem::Corrupt)),
        ("deflate", Some(CodingProblem::Corrupt)),
        ("zstd", Some(CodingProblem::Corrupt)),
        ("utf-8", Some(CodingProblem::Unknown)),
        ("compress", Some(CodingProblem::Unknown)),
        ("gzip, aes128gcm", Some(CodingProblem::Unknown)),
    ] {
        let decoded = decode(coding, b"<!DOCTYPE html><p>hello");
        assert_eq!((&decoded.bytes[..], decoded.problem), (&b"<!DOCTYPE html><p>hello"[..], problem), "{coding}");
        assert_eq!((decoded.coding, decoded.truncated), (None, None));
        let decoded = decode(coding, b"");
        assert_eq!((decoded.bytes.len(), decoded.problem, decoded.truncated), (0, None, None), "{coding}");
    }
    let plain = decode_content(&Headers::default(), b"hello", &limits(2));
    assert_eq!((&plain.bytes[..], plain.truncated), (&b"he"[..], Some(Truncated::Length)));
}

#[test]
fn gzip_members_and_what_follows_them() {
    let one = encode("gzip", b"hello ");
    let two = encode("gzip", b"world");
    for stray in [&b""[..], b"\0\0\0\0", b"<!-- stray -->", b"\x1f", b"\x1f\x8b"] {
        let body = [&one[..], &two, stray].concat();
        let decoded = decode("gzip", &body);
        assert_eq!((&decoded.bytes[..], decoded.problem, decoded.truncated), (&b"hello world"[..], None, None));
    }
    // A missing checksum is accepted; a wrong one is not.
    let decoded = decode("gzip", &one[..one.len() - 3]);
    assert_eq!((&decoded.bytes[..], decoded.truncated), (&b"hello "[..], None));
    let mut wrong = one.clone();
    let at = wrong.len() - 8;
    wrong[at] ^= 1;
    let decoded = decode("gzip", &wrong);
    assert_eq!((&decoded.bytes[..], decoded.truncated), (&b"hello "[..], Some(Truncated::Unspecified)));
    // Name, comment, extra field and header check.
    let mut full = vec![0x1f, 0x8b, 8, 4 | 8 | 16 | 2, 0, 0, 0, 0, 0, 3, 2, 0, b'a', b'b', b'n', 0, b'c', 0, 1, 2];
    full.extend_from_slice(&one[10..]);
    assert_eq!(&decode("gzip", &full).bytes[..], b"hello ");
    for end in 3..20 {
        let decoded = decode("gzip", &full[..end]);
        assert_eq!((decoded.bytes.len(), decoded.truncated), (0, Some(Truncated::Unspecified)), "{end}");
    }
    let empties = encode("gzip", b"").repeat(10_001);
    assert!(decode("gzip", &empties).bytes.len() <= empties.len());
}

#[test]
fn zstd_frames_and_what_follows_them() {
    let skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc";
    let body = [&encode("zstd", b"hello "), &skippable[..], &encode("zstd", b"world"), b"stray"].concat();
    let decoded = decode("zstd", &body);
    assert_eq!((&decoded.bytes[..], decoded.problem, decoded.truncated), (&b"hello world"[..], None, None));
    // A window of 16 MiB is more than HTTP allows.
    let wide = b"\x28\xb5\x2f\xfd\x00\x70\x01\x00\x00";
    assert_eq!(decode("zstd", wide).problem, Some(CodingProblem::Corrupt));
    let allowed = b"\x28\xb5\x2f\xfd\x00\x68\x01\x00\x00";
    assert_eq!((decode("zstd", allowed).problem, decode("zstd", allowed).bytes.len()), (None, 0));
}

#[test]
fn brotli_large_windows_are_refused() {
    // The large-window extension starts with 0x11 and the window's size.
    assert_eq!(decode("br", &[0x11, 0x1e, 0x03]).problem, Some(CodingProblem::Corrupt));
}

#[test]
fn bombs_stop_at_the_limit() {
    let zeros = vec![0; 50 << 20];
    for (made, named) in ALL {
        let body = encode(made, &zeros);
        let decoded = decode(named, &body);
        assert_eq!((decoded.bytes.len(), decoded.truncated), (BYTES_MAX, Some(Truncated::Length)), "{made}");
        assert_eq!((decoded.problem, decoded.coding.as_deref()), (Some(CodingProblem::TooLarge), Some(named)));
        let Cow::Owned(bytes) = decoded.bytes else { panic!("decoded bytes are new ones") };
        assert!(bytes.capacity() <= BYTES_MAX);
        // Exactly the limit is allowed.
        let exact = encode(made, &zeros[..BYTES_MAX]);
        assert_eq!(decode(named, &exact).truncated, None, "{made}");
    }
    let nested = encode("gzip", &encode("gzip", &zeros));
    assert_eq!(decode("gzip, gzip", &nested).truncated, Some(Truncated::Length));
}

/// Beyond the exempt bytes, a bomb ends by its ratio; content that merely compresses well does not.
#[test]
fn bombs_end_by_their_ratio_before_the_limit() {
    let limits = Limits { body_bytes_max: 64 << 20, decode_ratio_max: 200, ..Limits::default() };
    let zeros = vec![0; 8 << 20];
    for (made, named) in ALL {
        let body = encode(made, &zeros);
        let allowed = (body.len() * 200).max(RATIO_FREE_BYTES);
        assert!(allowed < zeros.len() / 4, "{made} makes {} bytes of it", body.len());
        let decoded = decode_content(&headers(named), &body, &limits);
        assert_eq!((decoded.bytes.len(), decoded.truncated), (allowed, Some(Truncated::Length)), "{made}");
        assert_eq!((decoded.problem, decoded.coding.as_deref()), (Some(CodingProblem::OverRatio), Some(named)));
        // The same ratio, but short.
        let short = encode(made, &zeros[..RATIO_FREE_BYTES]);
        assert!(short.len() * 200 < RATIO_FREE_BYTES);
        let decoded = decode_content(&headers(named), &short, &limits);
        assert_eq!((decoded.bytes.len(), decoded.truncated), (RATIO_FREE_BYTES, None), "{made}");
    }
    // Stacked codings share one ratio: that of the bytes on the wire.
    let nested = encode("gzip", &encode("gzip", &zeros));
    let decoded = decode_content(&headers("gzip, gzip"), &nested, &limits);
    assert_eq!((decoded.bytes.len(), decoded.problem), (RATIO_FREE_BYTES, Some(CodingProblem::OverRatio)));
    let long: Vec<u8> = (0..400_000_u32).flat_map(|number| (number / 8).to_le_bytes()).collect();
    for (made, named) in ALL {
        let decoded = decode_content(&headers(named), &encode(made, &long), &limits).truncated;
        assert_eq!(decoded, None, "{made}");
    }
}

#[test]
fn every_truncation_keeps_a_prefix() {
    let text = &text()[..2_000];
    for (made, named) in ALL {
        let body = encode(made, text);
        let mut longest = 0;
        for end in 1..body.len() {
            let decoded = decode(named, &body[..end]);
            if decoded.coding.is_some() {
                assert!(text.starts_with(&decoded.bytes), "{made} {end}");
                assert!(decoded.truncated.is_some() || decoded.bytes.len() == text.len(), "{made} {end}");
                longest = longest.max(decoded.bytes.len());
            }
        }
        assert!(longest > 0, "{made}");
    }
}

#[test]
fn damage_never_panics_nor_exceeds_the_limit() {
    let mut rng = Rng::new(1);
    let text = &text()[..3_000];
    for (made, named) in ALL {
        let sound = encode(made, text);
        for _ in 0..1_000 {
            let mut body = sound.clone();
            for _ in 0..1 + rng.index(4) {
                let at = rng.index(body.len());
                body[at] = rng.next() as u8;
            }
            body.truncate(1 + rng.index(body.len()));
            let bytes_max = rng.index(4_000);
            let decoded = decode_content(&headers(named), &body, &limits(bytes_max));
            match decoded.coding {
                Some(_) => assert!(decoded.bytes.len() <= bytes_max),
                None => assert_eq!(&decoded.bytes[..], &body[..]),
            }
        }
    }
}

/// A claimed length is believed only where that is harmless.
#[test]
fn what_codings_claim() {
    let (text, claimed) = (text(), |coding: &str, body: &[u8]| claimed_bytes(&headers(coding), body));
    let [gzip, br] = ["gzip", "br"].map(|coding| encode(coding, &text));
    let zstd = ::zstd::bulk::compress(&text, 1).expect("content");
    let whole = text.len() as u64;
    assert_eq!([claimed("gzip", &gzip), claimed("x-gzip", &gzip), claimed("zstd", &zstd)], [whole; 3]);
    assert_eq!([claimed("br", &br), claimed("gzip, br", &br), claimed("none", &gzip), claimed("gzip", &zstd)], [0; 4]);
    assert_eq!(
        ["", "x", "\u{1f}"].map(|body| claimed("gzip", body.as_bytes()) + claimed("zstd", body.as_bytes())),
        [0; 3]
    );
}
