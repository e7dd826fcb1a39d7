//! Undoing a content coding: the pages, each coded as servers do it.
//!
//! Floor: the bare library into a buffer of the right size that is used again.
//! Checked before: what comes out is what went in.

#[path = "input.rs"]
mod input;

use std::io::{Read, Write};
use std::sync::OnceLock;

use divan::Bencher;
use divan::counter::BytesCount;
use ringcrawl_http::{self as http, Limits, Method, ResponseReader};

const CODINGS: [&str; 3] = ["gzip", "br", "zstd"];

/// The pages in one coding, as responses.
fn responses(coding: &str) -> &'static [http::Response] {
    static RESPONSES: OnceLock<Vec<(&str, Vec<http::Response>)>> = OnceLock::new();
    let all = RESPONSES.get_or_init(|| {
        let coded = |coding| (coding, input::pages().iter().map(|page| response(coding, &page.html)).collect());
        CODINGS.into_iter().map(coded).collect()
    });
    all.iter().find(|(name, _)| *name == coding).map(|(_, responses)| &**responses).expect("a known coding")
}

fn response(coding: &str, html: &[u8]) -> http::Response {
    let body = encode(coding, html);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut reader = ResponseReader::new(Method::Get, Limits::default());
    reader.feed(head.as_bytes()).expect("a head");
    reader.feed(&body).expect("a body");
    reader.into_response().expect("a response")
}

/// The levels that servers use for what they code anew for each request.
fn encode(coding: &str, html: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(html).expect("memory");
            encoder.finish().expect("memory")
        }
        "br" => {
            let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4_096, 5, 22);
            encoder.write_all(html).expect("memory");
            encoder.into_inner()
        }
        _ => zstd::bulk::compress(html, 3).expect("memory"),
    }
}

fn decode_plain(coding: &str, body: &[u8], out: &mut Vec<u8>) -> usize {
    out.clear();
    match coding {
        "gzip" => flate2::read::GzDecoder::new(body).read_to_end(out).expect("gzip"),
        "br" => brotli::Decompressor::new(body, 64 << 10).read_to_end(out).expect("brotli"),
        _ => zstd::stream::read::Decoder::new(body).expect("memory").read_to_end(out).expect("zstd"),
    }
}

fn main() {
    let limits = http::Limits::default();
    let mut out = Vec::new();
    for coding in CODINGS {
        for (response, page) in responses(coding).iter().zip(input::pages()) {
            let decoded = http::decode_content(&response.headers, &response.body, &limits);
            assert_eq!((decoded.coding.as_deref(), decoded.problem), (Some(coding), None));
            assert!(*decoded.bytes == *page.html, "{coding}");
            decode_plain(coding, &response.body, &mut out);
            assert!(out == page.html, "{coding}, bare");
        }
    }
    divan::main();
}

#[divan::bench(args = CODINGS, sample_size = 1)]
fn ours(bencher: Bencher, coding: &str) {
    let responses = responses(coding);
    bencher.counter(BytesCount::new(input::bytes())).bench(|| {
        let decode = |response: &http::Response| {
            http::decode_content(&response.headers, &response.body, &http::Limits::default()).bytes.len()
        };
        responses.iter().map(decode).sum::<usize>()
    });
}

#[divan::bench(args = CODINGS, sample_size = 1)]
fn floor(bencher: Bencher, coding: &str) {
    let responses = responses(coding);
    let mut out = Vec::with_capacity(4 << 20);
    bencher
        .counter(BytesCount::new(input::bytes()))
        .bench_local(|| responses.iter().map(|response| decode_plain(coding, &response.body, &mut out)).sum::<usize>());
}
