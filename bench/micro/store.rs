//! Storing pages: response, request and metadata records, each its own zstd frame, with digests and index lines.
//!
//! Floor: zstd alone at the same level over the bodies, a frame each, with content size and checksum.
//! Checked before: the segment is read back and verified, its digests too, with three records a page.

#[path = "input.rs"]
mod input;

use std::io::Cursor;
use std::net::{IpAddr, Ipv4Addr};

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use ringcrawl::store::verify::{self, VerifyReport};
use ringcrawl::store::{Capture, Packing, SegmentWriter, Settings, head::Undone};
use ringcrawl::time::UnixTime;
use zstd::zstd_safe::{CCtx, CParameter};

/// The default of `store.zstd_level`.
const LEVEL: i32 = 1;

fn writer() -> SegmentWriter {
    let packing = Packing { zstd_level: LEVEL, ..Packing::default() };
    let settings = Settings { packing, segment_bytes_max: u64::MAX, rng_seed: 1, ..Settings::default() };
    SegmentWriter::new(settings).expect("memory")
}

/// A segment of all pages.
fn fill(writer: &mut SegmentWriter, spare: Vec<u8>) -> Vec<u8> {
    let time = UnixTime::from_micros(1_795_250_432_000_000);
    writer.begin("bench.warc.zst", time).expect("memory");
    for page in input::pages() {
        let capture = Capture {
            url: &page.url,
            time,
            ip: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
            request: b"GET / HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: bench/1.0 (+http://example.com/)\r\n\r\n",
            head_bytes: b"HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/html; charset=utf-8\r\n\r\n",
            body: &page.html,
            undone: Undone::default(),
            is_coded: false,
            truncated: None,
            metadata: &[("hopsFromSeed", "3"), ("fetchTimeMs", "211"), ("outlinks", "164")],
            status: 200,
            mime: input::CONTENT_TYPE,
            content_encoding: "",
            identified_type: None,
            tls: None,
        };
        writer.append(&capture).expect("an open segment");
    }
    let pending = writer.take_pending(spare);
    black_box(writer.finish());
    pending.bytes
}

fn main() {
    let mut report = VerifyReport::default();
    let segment = fill(&mut writer(), Vec::new());
    verify::verify(Cursor::new(segment), None, "bench.warc.zst", &mut report).expect("memory");
    let pages = input::pages().len() as u64;
    assert_eq!((report.records, report.problem_count), (1 + 3 * pages, 0), "{:?}", report.problems);
    assert!(report.digests >= 2 * pages, "{} digests", report.digests);
    divan::main();
}

#[divan::bench(sample_size = 1)]
fn ours(bencher: Bencher) {
    let mut writer = writer();
    let mut spare = Vec::new();
    bencher.counter(BytesCount::new(input::bytes())).bench_local(|| {
        spare = fill(&mut writer, std::mem::take(&mut spare));
        spare.clear();
    });
}

#[divan::bench(sample_size = 1)]
fn floor(bencher: Bencher) {
    let mut context = CCtx::create();
    for parameter in [CParameter::CompressionLevel(LEVEL), CParameter::ChecksumFlag(true)] {
        context.set_parameter(parameter).expect("a known parameter");
    }
    let mut out = Vec::with_capacity(4 << 20);
    bencher.counter(BytesCount::new(input::bytes())).bench_local(|| {
        let mut bytes = 0;
        for page in input::pages() {
            out.clear();
            out.reserve(zstd::zstd_safe::compress_bound(page.html.len()));
            bytes += context.compress2(&mut out, &page.html).expect("room");
        }
        bytes
    });
}
