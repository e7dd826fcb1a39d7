//! Segments of random captures, and what was put into them.

use std::net::IpAddr;

use ringcrawl_base::Rng;
use ringcrawl_base::Truncated;
use ringcrawl_base::preferences::{Preferences, Use};
use ringcrawl_base::time::UnixTime;
use ringcrawl_html::Directives;
use ringcrawl_url::Url;
use ringcrawl_warc::head::{Undone, write_stored_head};
use ringcrawl_warc::record_head::HttpHead;
use ringcrawl_warc::{Capture, Packing, SegmentWriter, Settings, write_field};

/// The name of every segment made here.
pub const NAME: &str = "sample-00-000001.warc.zst";

/// A capture that owns its bytes.
pub struct Sample {
    pub url: Url,
    pub time: UnixTime,
    pub ip: IpAddr,
    pub request: Vec<u8>,
    head: Vec<u8>,
    body: Vec<u8>,
    decoded: Option<Vec<u8>>,
    chunked: bool,
    is_coded: bool,
    pub truncated: Option<Truncated>,
    pub metadata: Vec<(&'static str, String)>,
}

impl Sample {
    fn random(random: &mut Rng, number: usize) -> Sample {
        let scheme = random.pick(&["http", "https"]);
        let path = random.pick(&["", "a/b?c=d&a", "%E4%20x", "\"'<>", "päge?q=ü#f", "?", "x.warc.zst"]);
        let url = Url::parse(&format!("{scheme}://www.example{}.test:{}/{path}", number % 50, 80 + number % 3))
            .expect("a URL");
        let body_bytes = match number % 10 {
            0 => 0,
            1 => 1,
            2 => 1 + random.index(300_000),
            _ => random.index(9_000),
        };
        let body = match random.index(4) {
            0 => random.bytes(body_bytes),
            1 => b"WARC/1.1\r\n\r\n\x28\xb5\x2f\xfd\r\nWARC/1.0\r\n"
                .repeat(body_bytes / 30 + usize::from(body_bytes > 0)),
            _ => b"<p>The quick brown fox.</p>\r\n".repeat(body_bytes / 29 + usize::from(body_bytes > 0)),
        };
        let mut head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n".to_vec();
        let ends: &[&[u8]] = &[b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r\r\n"];
        for _ in 0..random.index(6) {
            let field = random.pick::<&[u8]>(&[
                b"Content-Encoding: gzip",
                b"Transfer-Encoding: chunked",
                b"Content-Length: 17",
                b"X-Binary: \x80\xff\x01",
                b"X-Folded: a\r\n\tb",
                b"X-Cr: a\rb\0",
                b"no colon here",
                b": no name",
                b"Set-Cookie: a=b; c",
                b"WARC-Type: request",
            ]);
            head.extend_from_slice(field);
            head.extend_from_slice(random.pick::<&[u8]>(ends));
        }
        head.extend_from_slice(b"\r\n");
        let has_decoded = random.index(3) == 0;
        Sample {
            url,
            time: UnixTime::from_micros(1_795_250_432_000_000 + number as u64 * 1_234_567),
            ip: if number.is_multiple_of(2) {
                IpAddr::from([192, 0, 2, 1])
            } else {
                "2001:db8::1".parse().expect("an address")
            },
            request: format!("GET /{number} HTTP/1.1\r\nHost: example.test\r\n\r\n").into_bytes(),
            head,
            decoded: has_decoded.then(|| body.repeat(2)),
            body,
            chunked: random.index(3) == 0,
            is_coded: random.index(3) == 0,
            truncated: (random.index(9) == 0).then_some(Truncated::Length),
            metadata: vec![("via", "https://seed.test/\r\nWARC-Type: x".to_owned()), ("depth", number.to_string())],
        }
    }

    fn append(&self, writer: &mut SegmentWriter) -> u64 {
        let mut metadata = Vec::new();
        self.metadata.iter().for_each(|(name, value)| write_field(&mut metadata, name, value.as_bytes()));
        let content_encoding = HttpHead { bytes: self.head.clone() }.get("Content-Encoding").unwrap_or_default();
        let capture = Capture {
            url: &self.url,
            time: self.time,
            ip: Some(self.ip),
            request: &self.request,
            head_bytes: &self.head,
            body: self.stored_body(),
            undone: self.undone(),
            is_coded: self.is_coded,
            truncated: self.truncated,
            metadata: &metadata,
            status: 200,
            mime: "text/html; charset=utf-8",
            content_encoding: &content_encoding,
            identified_type: None,
            robots: self.robots(),
            preferences: Preferences::of(Use::TrainAi, self.chunked),
            charset: None,
            redirect: None,
            tls: None,
        };
        let placed = writer.append(&capture).expect("appends");
        assert!(placed.frame_bytes < placed.capture_bytes);
        placed.offset
    }

    pub fn stored_body(&self) -> &[u8] {
        self.decoded.as_deref().unwrap_or(&self.body)
    }

    pub fn stored_head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        write_stored_head(&mut head, &self.head, self.stored_body().len(), self.undone());
        head
    }

    /// What some of the pages say of themselves.
    fn robots(&self) -> Directives {
        let mut said = Directives::default();
        let said_by = self.body.first().map_or("", |first| match first % 4 {
            0 => "noindex, noarchive",
            1 => "nofollow, unavailable_after: 2030-06-25T15:00:00Z",
            _ => "",
        });
        said.hear(said_by);
        said
    }

    fn undone(&self) -> Undone {
        Undone { transfer: self.chunked, content: self.decoded.is_some() }
    }
}

/// A segment with its index, its samples and their offsets.
pub struct Segment {
    pub bytes: Vec<u8>,
    pub index: Vec<u8>,
    pub samples: Vec<Sample>,
    pub offsets: Vec<u64>,
}

/// A segment of `count` samples.
pub fn segment(rng_seed: u64, count: usize) -> Segment {
    let settings = Settings {
        packing: Packing { zstd_level: 1, ..Packing::default() },
        segment_bytes_max: u64::MAX,
        segment_age_max: None,
        user_agent: "ringcrawl-test".to_owned(),
        configured: vec!["store.digest = \"sha-1\"".to_owned()],
        operator: "ops@example.test".to_owned(),
        rng_seed,
    };
    let mut writer = SegmentWriter::new(settings).expect("a writer");
    let mut random = Rng::new(rng_seed);
    let (mut bytes, mut samples, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
    let mut spare = Vec::new();
    writer.begin(NAME, UnixTime::from_micros(1_795_250_432_000_000)).expect("begins");
    for number in 0..count {
        let sample = Sample::random(&mut random, number);
        offsets.push(sample.append(&mut writer));
        samples.push(sample);
        if writer.pending_bytes() > 100_000 || number + 1 == count {
            let pending = writer.take_pending(std::mem::take(&mut spare));
            assert_eq!(pending.offset, bytes.len() as u64);
            bytes.extend_from_slice(&pending.bytes);
            spare = pending.bytes;
        }
    }
    let index = writer.finish();
    assert_eq!(writer.take_pending(Vec::new()).bytes, b"");
    Segment { bytes, index, samples, offsets }
}
