//! Responses that are read in parallel to their shard.

use super::*;
use ringcrawl_warc::{CaptureWriter, Packing, Placed, SegmentWriter, Settings, StoreError};

/// What the shard reads itself is bounded in bytes as they came, in content bytes, and in codings.
#[test]
fn long_responses_are_not_read_at_once() {
    let page = job(JobKind::Page, "http://a.test/");
    let is_short = |fields: &str, body: &[u8]| {
        let mut config = Config::default();
        config.fetch.short_bytes_max = 1_000;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n");
        let transaction = transaction(&[head.as_bytes(), body].concat());
        let mut stats = Totals::default();
        let mut decoder = Decoder::default();
        let is_short =
            PageReader::new(Arc::new(config)).read_short(&page, &transaction, &mut decoder, &mut stats).is_some();
        assert_eq!(stats.pages, u64::from(is_short), "what is read elsewhere is counted there");
        is_short
    };
    assert!(is_short("", &[b'x'; 1_000]) && !is_short("", &[b'x'; 1_001]));
    let (coded, content) = ("Content-Encoding: zstd\r\n", |bytes| zstd::bulk::compress(&vec![b'x'; bytes], 1).unwrap());
    assert!(is_short(coded, &content(3_999)) && !is_short(coded, &content(4_000)));
    assert!(!is_short("Content-Encoding: zstd, gzip\r\n", b"x"));
    assert!(!is_short("", b"\x1f\x8b\x08") && !is_short(coded, &zstd::bulk::compress(b"\x1f\x8b\x08", 1).unwrap()));
}

/// A response read in parallel to its shard yields the same result as in the shard.
#[test]
fn who_reads_a_response_makes_no_difference() {
    let body = "<a href=/a>1</a><a href=//b.test/>2</a>".repeat(50);
    for (kind, path, fields) in [
        (JobKind::Page, "/", "200 OK\r\nContent-Type: text/html"),
        (JobKind::Page, "/", "200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip"),
        (JobKind::Page, "/", "301 There\r\nLocation: /there"),
        (JobKind::Page, "/", "404 None"),
        (JobKind::Robots, "/robots.txt", "200 OK"),
    ] {
        let job = job(kind, &format!("http://a.test{path}"));
        let transaction = transaction(format!("HTTP/1.1 {fields}\r\n\r\n{body}").as_bytes());
        let (mut segment, mut writer) = (segment(), CaptureWriter::new(Packing::default()).expect("a writer"));
        let reader = PageReader::new(Arc::default());
        let mut stats = Totals::default();
        let mut decoder = Decoder::default();
        let page = reader.read_short(&job, &transaction, &mut decoder, &mut stats).expect("short");
        let append_here = |segment: &mut SegmentWriter| {
            page.store(|capture| segment.append(capture)).expect("stored").expect("appended")
        };
        let here = append_here(&mut segment);
        let mut append_there = |segment: &mut SegmentWriter| {
            let names = segment.names().expect("open");
            let mut read = reader.reading(job.clone(), Box::new(transaction.clone()), names).read(&mut writer);
            let records = read.records.take().expect("stored").expect("written");
            (segment.append_records(&job.url, records).expect("of this segment"), read)
        };
        let (there, read) = append_there(&mut segment);
        let sizes = |placed: Placed, like: Placed| {
            (placed.payload, placed.is_revisit, placed.frame_bytes.abs_diff(like.frame_bytes) < 20)
        };
        assert_eq!(sizes(there, here), sizes(here, here), "{fields}");
        assert_eq!(there.offset, here.offset + here.capture_bytes);
        // Also where a body is not stored again.
        let originals = Config::default().store.originals(1, Arc::default());
        let mut segment = segment.knowing(originals);
        assert_eq!(
            [append_here(&mut segment), append_here(&mut segment)].map(|placed| placed.is_revisit),
            [false, true]
        );
        let (revisit_there, _) = append_there(&mut segment);
        let revisit_here = append_here(&mut segment);
        assert_eq!(sizes(revisit_there, revisit_here), sizes(revisit_here, revisit_here), "{fields}");
        assert_eq!(revisit_here.offset, revisit_there.offset + revisit_there.capture_bytes);
        assert_eq!((read.is_page, &read.stats), (page.is_page(), &stats));
        assert_eq!(read.fetched, page.into_fetched());
    }
}

/// Records name their segment: they do not fit into the next one.
#[test]
fn records_of_a_closed_segment_have_no_place_in_the_next() {
    let job = job(JobKind::Page, "http://a.test/");
    let transaction = Box::new(transaction(b"HTTP/1.1 200 OK\r\n\r\nbody"));
    let (mut segment, mut writer) = (segment(), CaptureWriter::new(Packing::default()).expect("a writer"));
    let reader = PageReader::new(Arc::default());
    let names = segment.names().expect("open");
    let mut read = reader.reading(job.clone(), transaction, names).read(&mut writer);
    segment.finish();
    assert!(segment.names().is_err());
    segment.begin("next.warc.zst", UnixTime::from_micros(1)).expect("begins");
    let records = read.records.take().expect("stored").expect("written");
    assert_eq!(segment.append_records(&job.url, records), Err(StoreError::NotOpen), "of another segment");
}

fn segment() -> SegmentWriter {
    let settings = Settings { packing: Packing::default(), segment_bytes_max: 1 << 30, ..Settings::default() };
    let mut segment = SegmentWriter::new(settings).expect("a writer");
    segment.begin("a.warc.zst", UnixTime::from_micros(0)).expect("begins");
    segment
}
