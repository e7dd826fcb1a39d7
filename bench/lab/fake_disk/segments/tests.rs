//! Crash images of a folder of segments, recovered here and by `disk::find_files` on real files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::*;
use ringcrawl_base::TempFolder;
use ringcrawl_base::time::{Instant, UnixTime};
use ringcrawl_config::{Config, SegmentFormat};
use ringcrawl_crawler::disk::find_files;
use ringcrawl_url::Url;
use ringcrawl_warc::folder::Folder;
use ringcrawl_warc::head::Undone;
use ringcrawl_warc::verify::verify_file;
use ringcrawl_warc::{Capture, Failure, Note, Packing, SegmentOp, Segments, Settings};

/// A shard that stores records, and its disk.
struct Storing {
    writer: Segments,
    disk: FakeSegments,
    rng: Rng,
    /// Records given to the disk, and those of them that the last sync covered: segment and offset by URL, and
    /// failures.
    given: BTreeMap<String, Option<(u32, u64)>>,
    acknowledged: BTreeMap<String, Option<(u32, u64)>>,
    revisits: u64,
}

impl Storing {
    fn new(seed: u64) -> Storing {
        let format = if seed.is_multiple_of(2) { SegmentFormat::WarcZst } else { SegmentFormat::WarcGz };
        let packing = Packing { format, ..Packing::default() };
        let settings = Settings { packing, rng_seed: seed, segment_bytes_max: 4_000, ..Settings::default() };
        let originals = Config::default().store.originals(seed, Default::default());
        Storing {
            writer: Segments::new(settings, 0, 0, originals).expect("a compressor"),
            disk: FakeSegments::default(),
            rng: Rng::new(seed),
            given: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            revisits: 0,
        }
    }

    /// Stores a page, a page whose body was stored before, or a failure.
    fn store(&mut self, number: u64) {
        let (url, time) =
            (Url::parse(&format!("http://a.test/{number}")).expect("a URL"), UnixTime::from_micros(number));
        let place = if self.rng.percent(25) {
            let note = Note::Failure(Failure { url: &url, cause: "test", tries: 1, via: None, hops: None });
            self.writer.append_note(Instant::ZERO, time, &note).expect("memory");
            None
        } else {
            let body = Rng::new(self.rng.below(4)).bytes(1_100);
            let capture = Capture {
                url: &url,
                time,
                ip: None,
                request: b"GET / HTTP/1.1\r\n\r\n",
                head_bytes: b"HTTP/1.1 200 OK\r\n\r\n",
                body: &body,
                undone: Undone::default(),
                is_coded: false,
                truncated: None,
                metadata: b"via: http://a.test/\r\n",
                status: 200,
                mime: "text/html",
                content_encoding: "",
                identified_type: None,
                robots: Default::default(),
                preferences: Default::default(),
                charset: None,
                redirect: None,
                tls: None,
            };
            let placed = self.writer.append(Instant::ZERO, time, &capture).expect("memory");
            self.revisits += u64::from(placed.is_revisit);
            Some((self.writer.number(), placed.offset))
        };
        self.given.insert(url.as_str().to_owned(), place);
    }

    /// The disk executes its operations, until a kill in the middle; `true` if that came.
    fn work(&mut self, may_die: bool) -> bool {
        while let Some(op) = self.writer.next_op() {
            let dies = may_die && self.rng.percent(10);
            match op {
                SegmentOp::Begin(name) => self.disk.begin(name),
                SegmentOp::Write { mut bytes, offset } => {
                    if dies {
                        bytes.truncate(self.rng.below(bytes.len() as u64) as usize);
                    }
                    self.disk.open_file().expect("a segment is open").write(offset, &bytes);
                }
                SegmentOp::Close { index } => self.disk.close(index),
            }
            if dies {
                return true;
            }
        }
        false
    }

    /// Makes everything given out so far durable, as after a commit's first step.
    fn sync(&mut self) {
        self.writer.flush();
        self.work(false);
        while self.disk.finish_closing(&mut self.rng).is_some() {}
        if let Some((name, bytes)) = self.disk.open() {
            self.disk.sync_until(&name, bytes);
        }
        self.acknowledged = self.given.clone();
    }

    /// Works up to some moment between two steps, and crashes there.
    fn crash(&mut self) {
        for number in 0..1 + self.rng.below(20) {
            self.store(number);
            match self.rng.below(4) {
                0 => self.writer.flush(),
                1 => self.sync(),
                2 => drop(self.disk.finish_closing(&mut self.rng)),
                _ => {}
            }
            if self.work(true) {
                break;
            }
        }
        self.disk.kill(&mut self.rng);
        if self.rng.percent(75) {
            self.disk.cut_power(&mut self.rng);
        }
    }
}

/// Every file of a folder.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| (entry.file_name().into_string().expect("text"), fs::read(entry.path()).expect("a file")))
        .collect()
}

/// After any crash, every synced record is there, each segment verifies, and its index lists exactly its records. The
/// simulator's disk gives the same result as the real one.
#[test]
fn crash_images_recover_to_what_was_acknowledged() {
    let (mut revisits, mut acknowledged, mut kinds) = (0, 0, BTreeSet::new());
    let temp = TempFolder::new("crash-images");
    for seed in 0..400 {
        let mut storing = Storing::new(seed);
        storing.crash();
        let root = temp.path().join(seed.to_string());
        let (shard, segments) = (root.join("shard-00"), root.join("shard-00/segments"));
        fs::create_dir_all(&segments).expect("a folder");
        fs::create_dir(shard.join("journal")).expect("a folder");
        fs::write(root.join("crawl.json"), "{}").expect("a file");
        storing.disk.write_to(&segments).expect("files");
        kinds.extend(content(&segments).into_keys().map(|name| name.split_once('.').expect("a suffix").1.to_owned()));

        let (found, _) = find_files(&shard).expect("readable");
        assert_eq!(found, storing.disk.recover(), "seed {seed}");
        let mut expected = BTreeMap::new();
        for (name, bytes, index) in storing.disk.closed() {
            let stem = name.split_once('.').expect("a suffix").0;
            expected.extend([(name.to_owned(), bytes.to_vec()), (format!("{stem}.cdxj"), index.to_vec())]);
        }
        assert!(content(&segments) == expected, "seed {seed}: {:?}", content(&segments).keys());

        let listed = Folder::list(&root).expect("readable");
        assert_eq!(listed.oddities, [], "seed {seed}");
        let (mut places, mut failed) = (BTreeMap::new(), BTreeSet::new());
        for path in &listed.segments {
            let report = verify_file(path).expect("readable");
            assert_eq!(report.problems, [], "seed {seed}");
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            let number = segment_number(name).expect("a number");
            let mut reader = ringcrawl_warc::read::SegmentReader::open(path).expect("a segment");
            while let Some(record) = reader.next_record().expect("whole") {
                let url = record.head.target_uri().to_owned();
                match record.head.kind().as_str() {
                    "response" | "revisit" => drop(places.insert(url, (number, record.offset))),
                    "metadata" => drop(failed.insert(url)),
                    _ => {}
                }
            }
        }
        for (url, place) in &storing.acknowledged {
            match place {
                Some(place) => assert_eq!(places.get(url), Some(place), "seed {seed}: {url}"),
                None => assert!(failed.contains(url), "seed {seed}: {url}"),
            }
        }
        acknowledged += storing.acknowledged.len();
        revisits += storing.revisits;
        // Recovered segments stay as they are; one without a record is removed.
        let (again, left) = find_files(&shard).expect("readable");
        let kept = |found: &FilesFound| found.segments.iter().filter(|(_, bytes)| **bytes > 0).count();
        assert_eq!((kept(&again), again.segments.len(), left), (kept(&found), kept(&found), Vec::new()), "seed {seed}");
    }
    assert!(acknowledged > 500 && revisits > 500, "{acknowledged} acknowledged, {revisits} revisits");
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let all = ["cdxj", "cdxj.open", "warc.gz", "warc.gz.open", "warc.zst", "warc.zst.open"];
    assert_eq!(kinds, all);
}
