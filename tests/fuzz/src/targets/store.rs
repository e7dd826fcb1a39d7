//! The store: files of anybody, and records of our own.

use std::io::{Cursor, Write};
use std::net::{IpAddr, Ipv4Addr};

use ringcrawl_base::time::UnixTime;
use ringcrawl_http::{Limits, Method, ResponseReader};
use ringcrawl_url::Url;
use ringcrawl_warc::head::Undone;
use ringcrawl_warc::index::{Index, IndexEntry};
use ringcrawl_warc::read::SegmentReader;
use ringcrawl_warc::recover::recover;
use ringcrawl_warc::verify::{VerifyReport, read_index, verify};
use ringcrawl_warc::{Capture, Packing, SegmentWriter, Settings, write_field};

use super::steered;

const NAME: &str = "a.warc.zst";

/// Reading any file ends; what recovery keeps is whole, and stays so; a capture comes back byte for byte.
pub fn warc(data: &[u8]) {
    let (steer, text) = steered(data);
    let file = match steer % 4 {
        0 => text.to_vec(),
        1 => compressed(text),
        // A record a frame, as ours are.
        2 => text.split_inclusive(|byte| *byte == 0xff).flat_map(compressed).collect(),
        _ => {
            let mut out = Vec::new();
            let mut encoder = flate2::write::GzEncoder::new(&mut out, flate2::Compression::fast());
            encoder.write_all(text).and_then(|()| encoder.finish().map(drop)).expect("a vector");
            out
        }
    };
    let mut report = VerifyReport::default();
    verify(Cursor::new(&file), None, NAME, &mut report).expect("a cursor has no errors");
    assert!(report.problem_count as usize <= 2 * file.len() + 2 * text.len() + 8, "{} problems", report.problem_count);
    assert!(report.records as usize <= text.len());
    let first = recover(Cursor::new(&file), NAME).expect("a cursor has no errors");
    assert!(first.valid_bytes as usize <= file.len());
    let second = recover(Cursor::new(&file[..first.valid_bytes as usize]), NAME).expect("a cursor has no errors");
    assert_eq!((second.valid_bytes, second.records, &second.index), (first.valid_bytes, first.records, &first.index));
    if steer & 0x80 != 0 {
        round_trip(text);
    }
}

fn compressed(text: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(text, 1).expect("a vector")
}

fn round_trip(data: &[u8]) {
    let (head, body) = data.split_at(data.len() / 2);
    let url = Url::parse("http://example.com/").expect("a URL");
    let settings = Settings {
        packing: Packing { zstd_level: 1, is_raw: data.len().is_multiple_of(3), ..Packing::default() },
        segment_bytes_max: 1 << 20,
        segment_age_max: None,
        user_agent: "testcrawl/1.0".to_owned(),
        configured: Vec::new(),
        operator: String::new(),
        rng_seed: 1,
    };
    let mut writer = SegmentWriter::new(settings).expect("a compressor");
    writer.begin(NAME, UnixTime::from_micros(1_700_000_000_000_000)).expect("a segment");
    let text = String::from_utf8_lossy(head);
    let head = [&b"HTTP/1.1 200 OK\r\n"[..], head, b"\r\n\r\n"].concat();
    // As the hands do it: only a head that could be read is stored.
    let mut http = ResponseReader::new(Method::Head, Limits::default());
    let Some(response) = http.feed(&head).ok().and_then(|_| http.into_response()) else { return };
    let coding = response.headers.get("content-encoding").map(String::from_utf8_lossy).unwrap_or_default();
    let mime = response.headers.joined("content-type").unwrap_or_default();
    let mime = String::from_utf8_lossy(&mime);
    let mut metadata = Vec::new();
    write_field(&mut metadata, "via", text.as_bytes());
    let capture = Capture {
        url: &url,
        time: UnixTime::from_micros(1_700_000_000_000_000),
        ip: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        request: text.as_bytes(),
        head_bytes: &response.head_bytes,
        body,
        undone: Undone { transfer: data.len().is_multiple_of(2), content: false },
        is_coded: data.len().is_multiple_of(5),
        truncated: None,
        metadata: &metadata,
        status: response.status,
        mime: &mime,
        content_encoding: &coding,
        identified_type: None,
        robots: Default::default(),
        preferences: Default::default(),
        charset: None,
        redirect: None,
        tls: None,
    };
    writer.append(&capture).expect("appended");
    let file = writer.take_pending(Vec::new()).bytes;
    let index = writer.finish();
    let mut report = VerifyReport::default();
    let entries = read_index(&index[..], &mut report).expect("no errors of reading");
    verify(Cursor::new(&file), Some(entries), NAME, &mut report).expect("no errors of reading");
    // An empty request has no record.
    let records = 3 + u64::from(!text.is_empty());
    assert_eq!((report.problem_count, report.records, report.index_lines), (0, records, Some(1)), "{report:?}");
    let mut reader = SegmentReader::new(Cursor::new(&file)).expect("a segment");
    while let Some(record) = reader.next_record().expect("whole") {
        if record.head.kind() == "response" {
            reader.read_http_head().expect("a head");
            let mut stored = vec![0; record.block_bytes as usize];
            let mut filled = 0;
            while let count @ 1.. = reader.read_block(&mut stored[filled..]).expect("whole") {
                filled += count;
            }
            assert_eq!(&stored[..filled], body);
        }
    }
    let recovered = recover(Cursor::new(&file), NAME).expect("no errors of reading");
    assert_eq!((recovered.valid_bytes as usize, recovered.records, recovered.damaged), (file.len(), records, 0));
    assert_eq!(recovered.index, index);
}

pub fn warc_seeds() -> Vec<Vec<u8>> {
    let record =
        b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n\
        WARC-Target-URI: http://example.com/\r\nContent-Type: application/http; msgtype=response\r\n\
        WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\nContent-Length: 38\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    let mut seeds: Vec<Vec<u8>> = (0..4).map(|steer| [&[steer][..], record, &[0xff], record].concat()).collect();
    seeds.push([&[0][..], &compressed(record), &compressed(record)].concat());
    seeds.push(
        [&[0x81][..], b"Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"].concat(),
    );
    seeds
}

/// A line that can be read is written and read the same; an index is sorted, whatever is added.
pub fn cdxj(data: &[u8]) {
    let mut report = VerifyReport::default();
    let lines = data.split(|byte| *byte == b'\n').count() as u64;
    let entries = read_index(data, &mut report).expect("no errors of reading");
    assert!(entries.len() as u64 <= lines && report.problem_count <= 2 * lines);
    let mut index = Index::default();
    let url = Url::parse("http://example.com/").expect("a URL");
    let mut count = 0;
    for line in data.split(|byte| *byte == b'\n') {
        let Some(entry) = std::str::from_utf8(line).ok().and_then(IndexEntry::parse) else { continue };
        let mut one = Index::default();
        one.add(&url, &entry);
        let written = one.sorted();
        let text = std::str::from_utf8(&written).expect("text").strip_suffix('\n').expect("a line");
        assert!(!text.contains('\n'));
        let again = IndexEntry::parse(text).expect("our own line");
        assert_eq!(again, entry);
        index.add(&url, &entry);
        count += 1;
    }
    let sorted = index.sorted();
    let lines: Vec<&[u8]> = sorted.split_inclusive(|byte| *byte == b'\n').collect();
    assert!(lines.is_sorted() && lines.len() == count);
}

pub fn cdxj_seeds() -> Vec<Vec<u8>> {
    [
        &br#"com,example)/ 20240101000000 {"url": "http://example.com/", "mime": "text/html", "status": "200", "digest": "sha1:A", "length": "12", "offset": "34", "filename": "a.warc.zst"}"#[..],
        br#"a b {"url":"","offset":0,"length":18446744073709551615,"filename":"\u0000\n","status":"-"}
c d {}
"#,
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}
