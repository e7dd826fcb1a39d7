//! Storing pages: response, request and metadata records, each a frame or member, with digests and index lines.
//!
//! Floor: what cannot be left out, of the same bytes: SHA-256 of the body and of the two blocks, and for each of the three
//! records a copy with its checksum (XXH64, or CRC-32 in members), or where it is compressed, that at the same level.
//! Bodies are those of servers: in gzip, stored as they came; or in no coding, compressed or raw.
//! Checked before: each segment is read back and verified, its digests too, with three records a page; and the floor writes
//! nine tenths of the bytes at least.

#[path = "input.rs"]
mod input;

use std::io::Cursor;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;

use aws_lc_rs::digest;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use ringcrawl_base::time::UnixTime;
use ringcrawl_config::SegmentFormat;
use ringcrawl_warc::verify::{self, VerifyReport};
use ringcrawl_warc::{Capture, Packing, SegmentWriter, Settings, head::Undone};
use zstd::zstd_safe::{CCtx, CParameter};

/// The default of `store.zstd_level` and `store.gzip_level`.
const LEVEL: i32 = 1;
const REQUEST: &[u8] =
    b"GET / HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: bench/1.0 (+http://example.com/)\r\n\r\n";
const METADATA: &[u8] = b"hopsFromSeed: 3\r\nfetchTimeMs: 211\r\noutlinks: 164\r\n";
/// Records of up to so many bytes are not compressed.
const SHORT_BYTES_MAX: usize = 2_048;

/// What is stored how.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Way {
    format: SegmentFormat,
    is_coded: bool,
    is_raw: bool,
}

impl Way {
    const ALL: [Way; 5] = [CODED, UNCODED, RAW, CODED_GZ, UNCODED_GZ];

    fn bodies(self) -> &'static [Vec<u8>] {
        static BODIES: OnceLock<[Vec<Vec<u8>>; 2]> = OnceLock::new();
        let bodies = BODIES.get_or_init(|| {
            let html = input::pages().iter().map(|page| page.html.clone()).collect();
            [html, input::pages().iter().map(|page| gzip(&page.html)).collect()]
        });
        &bodies[usize::from(self.is_coded)]
    }

    fn bytes(self) -> usize {
        self.bodies().iter().map(Vec::len).sum()
    }

    fn writer(self) -> SegmentWriter {
        let Way { format, is_raw, .. } = self;
        let packing = Packing { format, is_raw, zstd_level: LEVEL, gzip_level: LEVEL, ..Packing::default() };
        let settings = Settings { packing, segment_bytes_max: u64::MAX, rng_seed: 1, ..Settings::default() };
        SegmentWriter::new(settings).expect("memory")
    }

    fn head(self) -> &'static [u8] {
        match self.is_coded {
            true => b"HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\n\r\n",
            false => b"HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/html; charset=utf-8\r\n\r\n",
        }
    }

    /// A segment of all pages.
    fn fill(self, writer: &mut SegmentWriter, spare: Vec<u8>) -> Vec<u8> {
        let time = UnixTime::from_micros(1_795_250_432_000_000);
        writer.begin("bench", time).expect("memory");
        for (page, body) in input::pages().iter().zip(self.bodies()) {
            let capture = Capture {
                url: &page.url,
                time,
                ip: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
                request: REQUEST,
                head_bytes: self.head(),
                body,
                undone: Undone::default(),
                is_coded: self.is_coded,
                truncated: None,
                metadata: METADATA,
                status: 200,
                mime: input::CONTENT_TYPE,
                content_encoding: if self.is_coded { "gzip" } else { "" },
                identified_type: Some("text/html"),
                robots: Default::default(),
                preferences: Default::default(),
                charset: Some("UTF-8"),
                redirect: None,
                tls: None,
            };
            writer.append(&capture).expect("an open segment");
        }
        let pending = writer.take_pending(spare);
        black_box(writer.finish());
        pending.bytes
    }

    /// What cannot be left out, into `out`.
    fn floor(self, packer: &mut Packer, out: &mut Vec<u8>) {
        let blocks = [REQUEST, METADATA];
        for body in self.bodies() {
            black_box(digest::digest(&digest::SHA256, body));
            packer.pack(self, &[&[b'h'; WARC_HEAD_BYTES], self.head(), body], self.is_coded, out);
            for block in blocks {
                black_box(digest::digest(&digest::SHA256, block));
                packer.pack(self, &[&[b'h'; WARC_HEAD_BYTES], block], false, out);
            }
        }
    }
}

const CODED: Way = Way { format: SegmentFormat::WarcZst, is_coded: true, is_raw: false };
const UNCODED: Way = Way { is_coded: false, ..CODED };
const RAW: Way = Way { is_raw: true, ..UNCODED };
const CODED_GZ: Way = Way { format: SegmentFormat::WarcGz, ..CODED };
const UNCODED_GZ: Way = Way { is_coded: false, ..CODED_GZ };

/// Bytes of a record's WARC head: some 400 of the three that are written.
const WARC_HEAD_BYTES: usize = 400;

/// The bare libraries.
struct Packer {
    zstd: CCtx<'static>,
    gzip: libdeflater::Compressor,
    joined: Vec<u8>,
}

impl Packer {
    fn new() -> Packer {
        let mut zstd = CCtx::create();
        for parameter in [CParameter::CompressionLevel(LEVEL), CParameter::ChecksumFlag(true)] {
            zstd.set_parameter(parameter).expect("a known parameter");
        }
        let gzip = libdeflater::Compressor::new(libdeflater::CompressionLvl::new(LEVEL).expect("a level"));
        Packer { zstd, gzip, joined: Vec::new() }
    }

    fn pack(&mut self, way: Way, parts: &[&[u8]], is_coded: bool, out: &mut Vec<u8>) {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        if is_coded || way.is_raw || total <= SHORT_BYTES_MAX {
            let mut xxh = xxhash_rust::xxh64::Xxh64::new(0);
            let mut crc = libdeflater::Crc::new();
            for part in parts {
                match way.format {
                    SegmentFormat::WarcZst => xxh.update(part),
                    SegmentFormat::WarcGz => crc.update(part),
                }
                out.extend_from_slice(part);
            }
            black_box((xxh.digest(), crc.sum()));
            return;
        }
        self.joined.clear();
        parts.iter().for_each(|part| self.joined.extend_from_slice(part));
        let filled = out.len();
        match way.format {
            SegmentFormat::WarcZst => {
                out.reserve(zstd::zstd_safe::compress_bound(total));
                let mut rest = zstd::zstd_safe::OutBuffer::around_pos(out, filled);
                let mut input = zstd::zstd_safe::InBuffer::around(&self.joined);
                self.zstd.set_pledged_src_size(Some(total as u64)).expect("a new frame");
                let end = zstd::zstd_safe::zstd_sys::ZSTD_EndDirective::ZSTD_e_end;
                assert_eq!(self.zstd.compress_stream2(&mut rest, &mut input, end), Ok(0), "there is room");
            }
            SegmentFormat::WarcGz => {
                out.resize(filled + self.gzip.gzip_compress_bound(total), 0);
                let bytes = self.gzip.gzip_compress(&self.joined, &mut out[filled..]).expect("room");
                out.truncate(filled + bytes);
            }
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = libdeflater::Compressor::new(libdeflater::CompressionLvl::new(6).expect("a level"));
    let mut out = vec![0; gzip.gzip_compress_bound(bytes.len())];
    let length = gzip.gzip_compress(bytes, &mut out).expect("room");
    out.truncate(length);
    out
}

fn main() {
    let pages = input::pages().len() as u64;
    for way in Way::ALL {
        let mut report = VerifyReport::default();
        let segment = way.fill(&mut way.writer(), Vec::new());
        let mut floor = Vec::new();
        way.floor(&mut Packer::new(), &mut floor);
        let (ours, least) = (segment.len(), floor.len());
        assert!(least * 10 >= ours * 9 && least <= ours, "the floor has {least} bytes, the segment {ours}");
        verify::verify(Cursor::new(segment), None, "bench", &mut report).expect("memory");
        assert_eq!((report.records, report.problem_count), (1 + 3 * pages, 0), "{:?}", report.problems);
        assert!(report.digests >= 3 * pages, "{} digests", report.digests);
    }
    divan::main();
}

macro_rules! ways {
    ($($name:ident = $way:expr;)*) => {$(
        mod $name {
            use super::*;

            #[divan::bench(sample_size = 1)]
            fn ours(bencher: Bencher) {
                let (mut writer, mut spare) = ($way.writer(), Vec::new());
                bencher.counter(BytesCount::new($way.bytes())).bench_local(|| {
                    spare = $way.fill(&mut writer, std::mem::take(&mut spare));
                    spare.clear();
                });
            }

            #[divan::bench(sample_size = 1)]
            fn floor(bencher: Bencher) {
                let (mut packer, mut out) = (Packer::new(), Vec::new());
                bencher.counter(BytesCount::new($way.bytes())).bench_local(|| {
                    out.clear();
                    $way.floor(&mut packer, &mut out);
                    black_box(out.len())
                });
            }
        }
    )*};
}

ways! {
    coded = CODED;
    uncoded = UNCODED;
    raw = RAW;
    coded_gz = CODED_GZ;
    uncoded_gz = UNCODED_GZ;
}
