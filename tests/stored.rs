//! What is stored is the same page in every form: as received or decoded, in frames or members, compressed or not.
//!
//! Decides: a crawl of each form is held against the truth, payload by payload; `store verify` finds nothing; the
//! index says which payloads are coded; `store cat` prints the content, and with `--as-stored` what lies in the segment.
//! Leaves to others: what other tools make of it (`tests/tools`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::rig::harvest::{Verdict, open_files, stored};
use crate::rig::program::run;
use crate::rig::web::{self, web};
use ringcrawl_base::TempFolder;
use ringcrawl_url::Url;
use ringcrawl_warc::index::IndexEntry;
use ringcrawl_warc::read::{SegmentReader, find_segments, read_rest};
use ringcrawl_warc::verify::index_path;
use ringcrawl_web::{ModelConfig, truth};

/// One capture in an index: its line, and the bytes of its payload in the segment.
struct Stored {
    entry: IndexEntry,
    payload: Vec<u8>,
    has_coding_field: bool,
}

fn captures(dir: &str) -> Vec<Stored> {
    let mut captures = Vec::new();
    for segment in find_segments(Path::new(dir)).expect("a crawl's directory") {
        let text = std::fs::read_to_string(index_path(&segment).expect("closed")).expect("an index");
        let mut reader = SegmentReader::open(&segment).expect("a segment");
        for entry in text.lines().map(|line| IndexEntry::parse(line).expect("a line")) {
            reader.record_at(entry.offset).expect("a good frame").expect("a record");
            let has_coding_field = reader.read_http_head().expect("a head").get("Content-Encoding").is_some();
            let mut payload = Vec::new();
            assert!(read_rest(&mut reader, &mut payload, 64 << 20).expect("a payload"));
            captures.push(Stored { entry, payload, has_coding_field });
        }
    }
    captures
}

fn crawl(body: &str, format: &str, uncoded: &str) {
    let folder = TempFolder::new("stored");
    let (web, seed) = web(ModelConfig { sites: 40, pages: 400, addresses: 32, ..ModelConfig::default() });
    let more =
        format!("store.body = \"{body}\"\nstore.format = \"{format}\"\nstore.compress_uncoded = \"{uncoded}\"\n");
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, &more));
    run(&["crawl", &seed, "--dir", &dir, "-c", &config]).expect(0);
    let truth = truth::reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    Verdict::of(&stored(&dir), &truth).expect_perfect();
    assert_eq!(open_files(&dir), [""; 0]);
    run(&["store", "verify", &dir]).expect(0);

    let captures = captures(&dir);
    assert!(captures.iter().all(|it| it.entry.filename.ends_with(&format!(".{format}"))));
    assert!(
        captures.iter().all(|it| it.has_coding_field != it.entry.coding.is_empty()),
        "the index says what is coded"
    );
    let coded: Vec<&Stored> = captures.iter().filter(|it| !it.entry.coding.is_empty()).collect();
    match body {
        "as-received" => assert!(coded.len() * 4 > captures.len(), "{} of {}", coded.len(), captures.len()),
        _ => assert_eq!(coded.len(), 0),
    }
    // What was compressed takes less than its payload, and what was not a head more.
    let is_packed = |it: &&Stored| it.entry.frame_bytes < it.payload.len() as u64;
    let long: Vec<&Stored> =
        captures.iter().filter(|it| it.entry.coding.is_empty() && it.payload.len() > 4_096).collect();
    assert_eq!(long.len() > 10, body == "decoded", "this web has its long pages coded");
    assert!(long.iter().all(|it| is_packed(it) == (uncoded != "raw")));
    assert_eq!(coded.iter().filter(|it| is_packed(it)).count(), 0, "nothing is compressed twice");

    let is_page = |it: &&&Stored| it.entry.status == 200 && !it.entry.url.ends_with("/robots.txt");
    let page = coded.iter().find(is_page).or_else(|| long.iter().find(is_page)).expect("a page");
    let cat = |more: &[&str]| run(&[&["store", "cat"], more, &[&dir, &page.entry.url]].concat()).expect(0).out_bytes;
    let expected = &truth.fetched[&Url::parse(&page.entry.url).expect("a URL")];
    assert_eq!(cat(&["--as-stored"]), page.payload);
    assert_eq!(cat(&[]).len() as u64, expected.body_bytes);
    let exported = folder.at("exported");
    let to = if format == "warc.gz" { "warc.zst" } else { "warc.gz" };
    let said = run(&["store", "export", "--to", to, "--out", &exported, &dir]).expect(0).says(&["0 damaged"]);
    assert!(said.out.lines().all(|line| line.ends_with(&format!(".{to}"))), "{}", said.out);
    run(&["store", "verify", &exported]).expect(0);
    Verdict::of(&stored(&exported), &truth).expect_perfect();
    let again = self::captures(&exported);
    let facts =
        |it: &Stored| (it.entry.url.clone(), it.entry.digest.clone(), it.entry.coding.clone(), it.payload.clone());
    let sorted = |captures: &[Stored]| captures.iter().map(facts).collect::<BTreeSet<_>>();
    assert!(again.len() == captures.len() && sorted(&again) == sorted(&captures));
    // Nothing is overwritten, and a file that is missing is made.
    let lost = find_segments(Path::new(&exported)).expect("segments").pop().expect("a segment");
    let bytes = std::fs::read(&lost).expect("a file");
    std::fs::remove_file(&lost).expect("removes");
    run(&["store", "export", "--to", to, "--out", &exported, &dir]).expect(1).says(&["exists; left unchanged"]);
    assert!(std::fs::read(&lost).expect("a file") == bytes);
    assert!(cat(&["--headers"]).ends_with(&page.payload) && cat(&["--record"]).starts_with(b"WARC/1.1\r\n"));
}

#[test]
fn as_received_in_frames() {
    crawl("as-received", "warc.zst", "level");
    crawl("as-received", "warc.zst", "raw");
}

#[test]
fn as_received_in_members() {
    crawl("as-received", "warc.gz", "level");
    crawl("as-received", "warc.gz", "raw");
}

/// The shard learns from its first pages, and all segments but the first begin with what it learned.
#[test]
fn with_a_dictionary() {
    let folder = TempFolder::new("dictionary");
    let (web, seed) = web(ModelConfig { sites: 40, pages: 800, addresses: 32, ..ModelConfig::default() });
    let truth = truth::reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    let bytes = ["level", "dictionary"].map(|value| {
        let more = format!("store.body = \"decoded\"\nstore.compress_uncoded = \"{value}\"\ncrawl.shards = 1\n");
        let (dir, config) = (folder.at(value), web::config(&folder, &web, &more));
        // It is trained beside the crawl, which should not be over by then.
        run(&["crawl", &seed, "--dir", &dir, "-c", &config, "--set", "politeness.host_delay=20ms"]).expect(0);
        Verdict::of(&stored(&dir), &truth).expect_perfect();
        run(&["store", "verify", &dir]).expect(0);
        let segments = find_segments(Path::new(&dir)).expect("segments");
        let begins =
            |path: &std::path::PathBuf| std::fs::read(path).expect("a file").starts_with(&[0x5d, 0x2a, 0x4d, 0x18]);
        let has_dictionary: Vec<bool> = segments.iter().map(begins).collect();
        let expected: &[bool] = if value == "dictionary" { &[false, true] } else { &[false] };
        assert_eq!(has_dictionary, expected);
        // All captures but the first segment's need it; each is found by its place.
        for page in captures(&dir).iter().filter(|it| it.entry.status == 200).step_by(50) {
            let printed = run(&["store", "cat", "--as-stored", &dir, &page.entry.url]).expect(0).out_bytes;
            assert!(printed == page.payload, "{}", page.entry.url);
        }
        let exported = folder.at(&format!("{value}-exported"));
        run(&["store", "export", "--to", "warc.gz", "--out", &exported, &dir]).expect(0);
        Verdict::of(&stored(&exported), &truth).expect_perfect();
        captures(&dir).iter().map(|it| it.entry.frame_bytes).sum::<u64>()
    });
    let [level, dictionary] = bytes;
    assert!(dictionary * 10 < level * 9, "{dictionary} of {level}");
    let mistake = "store.format = \"warc.gz\"\nstore.compress_uncoded = \"dictionary\"\n";
    let config = web::config(&folder, &web, mistake);
    run(&["crawl", &seed, "--dir", &folder.at("none"), "-c", &config])
        .expect(2)
        .says(&["a gzip member has no dictionary"]);
}

/// Kinds of the records in a crawl's segments.
fn kinds(dir: &str) -> Vec<String> {
    let mut kinds = Vec::new();
    for segment in find_segments(Path::new(dir)).expect("segments") {
        let mut reader = SegmentReader::open(&segment).expect("a segment");
        while let Some(record) = reader.next_record().expect("a record") {
            let is_name = record.head.target_uri().starts_with("dns:");
            kinds.push(format!("{}{}", record.head.kind(), if is_name { " dns" } else { "" }));
        }
    }
    kinds.sort();
    kinds
}

#[test]
fn records_are_those_that_are_chosen() {
    let folder = TempFolder::new("kinds");
    let (web, seed) = web(ModelConfig { sites: 10, pages: 60, addresses: 8, ..ModelConfig::default() });
    for (name, chosen, expected) in [
        ("none", "", ["response", "warcinfo"].as_slice()),
        ("dns", "dns", &["resource dns", "response", "warcinfo"]),
        ("all", "dns,metadata,request", &["metadata", "request", "resource dns", "response", "warcinfo"]),
    ] {
        let more = format!("store.records = \"{chosen}\"\nstore.duplicates = \"store\"\n");
        let (dir, config) = (folder.at(name), web::config(&folder, &web, &more));
        let ended = run(&["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"]).expect(0);
        run(&["store", "verify", &dir]).expect(0);
        let mut found = kinds(&dir);
        let files = found.iter().filter(|kind| kind.starts_with("warcinfo")).count();
        assert_eq!(ended.json()["records"], found.len() - files, "{name}");
        found.dedup();
        assert_eq!(found, expected, "{name}");
    }
    let config = web::config(&folder, &web, "store.records = \"response\"\n");
    run(&["crawl", &seed, "--dir", &folder.at("mistake"), "-c", &config])
        .expect(2)
        .says(&["store.records", "is not an optional kind"]);
}

/// Each digest is checked: it holds, and does not when a byte of the payload is another.
#[test]
fn digests_of_every_algorithm() {
    let folder = TempFolder::new("digests");
    let (web, seed) = web(ModelConfig { sites: 5, pages: 30, addresses: 8, ..ModelConfig::default() });
    for (name, label) in [("sha-1", "sha1:"), ("sha-256", "sha256:"), ("xxh3-128", "xxh3-128:"), ("blake3", "blake3:")]
    {
        let more = "store.duplicates = \"store\"\nstore.compress_uncoded = \"raw\"\nstore.format = \"warc.gz\"\n";
        let more = format!("store.digest = \"{name}\"\n{more}");
        let (dir, config) = (folder.at(name), web::config(&folder, &web, &more));
        run(&["crawl", &seed, "--dir", &dir, "-c", &config]).expect(0);
        run(&["store", "verify", &dir]).expect(0);
        let captures = captures(&dir);
        assert!(captures.iter().all(|it| it.entry.digest.starts_with(label)), "{name}");
        // A plain file has no other checksum.
        let mut plain = Vec::new();
        for segment in find_segments(Path::new(&dir)).expect("segments") {
            let input = std::fs::File::open(segment).expect("a file");
            std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(input), &mut plain).expect("members");
        }
        let page = captures.iter().find(|it| it.payload.len() > 100).expect("a page");
        let at = memchr::memmem::find(&plain, &page.payload).expect("as it is");
        plain[at + 50] ^= 1;
        let file = folder.at(&format!("{name}.warc"));
        std::fs::write(&file, plain).expect("writes");
        let said = run(&["store", "verify", &file]).expect(1);
        assert!(said.out.contains("WARC-Payload-Digest does not hold"), "{}", said.out);
    }
}

#[test]
fn decoded() {
    crawl("decoded", "warc.zst", "level");
    crawl("decoded", "warc.gz", "raw");
}

/// A second crawl of the same web, against the index of the first.
#[test]
fn what_did_not_change_is_a_revisit() {
    let folder = TempFolder::new("revisits");
    let (web, seed) = web(ModelConfig { sites: 40, pages: 400, addresses: 32, ..ModelConfig::default() });
    let (first, second) = (folder.at("first"), folder.at("second"));
    let crawl = |dir: &str, more: &str| {
        let config = web::config(&folder, &web, more);
        run(&["crawl", &seed, "--dir", dir, "-c", &config, "--json", "-"]).expect(0)
    };
    crawl(&first, "");
    let against = format!("store.dedupe_against = [\"{first}\"]\n");
    let ended = crawl(&second, &against).says(&["captures of earlier crawls"]);
    run(&["store", "verify", &second]).expect(0);
    let [before, after] = [&first, &second].map(|dir| captures(dir));
    let long = |it: &&Stored| it.payload.len() >= 1_024;
    assert!(before.iter().filter(long).count() > 300 && before.len() == after.len());
    assert_eq!(after.iter().filter(long).count(), 0, "every long payload is the first crawl's");
    let revisits = after.iter().filter(|it| it.entry.is_revisit()).count();
    assert_eq!(ended.json()["revisits"], revisits);
    let bytes = |captures: &[Stored]| captures.iter().map(|it| it.entry.frame_bytes).sum::<u64>();
    // This web has many pages of less than a kilobyte, which are stored again.
    assert!(bytes(&after) * 2 <= bytes(&before), "{} of {}", bytes(&after), bytes(&before));

    // Revisits are exported as they are.
    let exported = folder.at("exported");
    run(&["store", "export", "--to", "warc.gz", "--out", &exported, &second]).expect(0);
    run(&["store", "verify", &exported]).expect(0);
    assert_eq!(self::captures(&exported).iter().filter(|it| it.entry.is_revisit()).count(), revisits);
    std::fs::remove_dir_all(&exported).expect("removes");

    // What a revisit stands for has the digest that it had.
    let listed = |dir: &str| -> BTreeMap<String, String> {
        let out = run(&["store", "ls", "--digests", dir]).expect(0).out;
        let columns = out.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        columns.map(|columns| (columns[4].to_owned(), columns[5].to_owned())).collect()
    };
    assert_eq!(listed(&second), listed(&first));

    // A page comes back from where both are, and else is told of.
    let revisit = after.iter().find(|it| it.entry.is_revisit() && !it.entry.coding.is_empty()).expect("a coded page");
    let url = revisit.entry.url.as_str();
    let original = before.iter().find(|it| it.entry.url == url).expect("it was stored");
    run(&["store", "cat", &second, url]).expect(1).says(&["its body is stored with", "which is not in"]);
    let both = folder.path().to_str().expect("UTF-8").to_owned();
    assert_eq!(run(&["store", "cat", "--as-stored", &both, url]).expect(0).out_bytes, original.payload);
    let content = run(&["store", "cat", &first, url]).expect(0).out_bytes;
    assert_eq!(run(&["store", "cat", &both, url]).expect(0).out_bytes, content);
    assert!(content != original.payload);

    // The order of files makes no difference, and neither does an index by itself.
    let index = find_segments(Path::new(&first)).expect("segments").iter().filter_map(|it| index_path(it)).next();
    let one = index.expect("an index").display().to_string();
    let third = folder.at("third");
    let ended = crawl(&third, &format!("store.dedupe_against = [\"{one}\"]\n"));
    let some = ended.json()["revisits"].as_u64().expect("a number");
    assert!(some > 0 && some < revisits as u64, "{some} of {revisits}");
    let ended = crawl(&folder.at("fourth"), "store.duplicates = \"store\"\n");
    assert_eq!(ended.json()["revisits"], 0, "it is switched off");
    let contradiction = format!("store.dedupe_against = [\"{one}\"]\nstore.duplicates = \"store\"\n");
    for (mistake, words) in [
        ("store.dedupe_against = [\"/nowhere.cdxj\"]\n", ": not found"),
        (&contradiction, "every body would be stored"),
    ] {
        let config = web::config(&folder, &web, mistake);
        let refused = run(&["crawl", &seed, "--dir", &folder.at("fifth"), "-c", &config]).expect(2);
        refused.says(&["store.dedupe_against", words]);
    }
}

/// `store ls` with an option reads by the index; without one it reads all: both list the same.
#[test]
fn captures_are_listed_by_url_host_time_status_and_type() {
    let folder = TempFolder::new("listed");
    let (web, seed) = web(ModelConfig { sites: 20, pages: 200, addresses: 32, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, ""));
    run(&["crawl", &seed, "--dir", &dir, "-c", &config]).expect(0);
    let ls = |more: &[&str]| -> BTreeSet<String> {
        let said = run(&[&["store", "ls"], more, &[&dir]].concat()).expect(0);
        said.out.lines().map(str::to_owned).collect()
    };
    let all = ls(&[]);
    let with = |is_meant: &dyn Fn(&[&str]) -> bool| -> BTreeSet<String> {
        all.iter().filter(|line| is_meant(&line.split('\t').collect::<Vec<&str>>())).cloned().collect()
    };
    let first = all.iter().find(|line| line.contains("\t200\ttext/html\t")).expect("a page");
    let url = Url::parse(first.rsplit('\t').next().expect("a URL")).expect("a URL");
    let of_host = with(&|columns| Url::parse(columns[4]).expect("a URL").host() == url.host());
    assert!(of_host.len() > 1 && of_host.len() < all.len());
    assert_eq!(ls(&["--host", url.host()]), of_host);
    let prefix = format!("http://{}", url.host());
    assert_eq!(ls(&["--prefix", &prefix]), with(&|columns| columns[4].starts_with(&prefix)));
    assert_eq!(ls(&["--status", "4xx"]), with(&|columns| columns[1].starts_with('4')));
    assert_eq!(ls(&["--type", "text/html"]), with(&|columns| columns[2] == "text/html"));
    assert_eq!(ls(&["--since", "2020", "--until", "2100-01"]), all);
    assert!(ls(&["--until", "2020"]).is_empty());
    let both = ["--host", url.host(), "--status", "200"];
    assert_eq!(ls(&both), with(&|columns| columns[1] == "200" && of_host.contains(&columns.join("\t"))));
    // Without its index a segment is read from end to end, and the list is the same.
    for segment in find_segments(Path::new(&dir)).expect("segments") {
        std::fs::remove_file(index_path(&segment).expect("closed")).expect("removes");
    }
    assert_eq!(ls(&both), with(&|columns| columns[1] == "200" && of_host.contains(&columns.join("\t"))));
    run(&["store", "ls", "--status", "teapot", &dir]).expect(2).says(&["--status", "5xx"]);
}

/// A host that does not exist, and a page that robots.txt forbids: each has a record that says why there is no response.
#[test]
fn urls_without_a_response_have_a_record() {
    let folder = TempFolder::new("failures");
    let (web, seed) = web(ModelConfig { sites: 5, pages: 40, addresses: 8, ..ModelConfig::default() });
    for (value, is_recorded) in [("failure", true), ("dns", false)] {
        let (dir, config) = (folder.at(value), web::config(&folder, &web, &format!("store.records = \"{value}\"\n")));
        let lost = "http://www.nowhere.invalid/page";
        let ended = run(&["crawl", &seed, lost, "--dir", &dir, "-c", &config, "--json", "-"]).expect(0);
        run(&["store", "verify", &dir]).expect(0);
        let summary = ended.json();
        let count = |value: &serde_json::Value| value.as_u64().expect("a number");
        let failures = summary["failures"].as_object().expect("an object").values().map(count).sum::<u64>();
        let failures = failures + count(&summary["robots_denied"]);
        let mut found = Vec::new();
        for segment in find_segments(Path::new(&dir)).expect("segments") {
            let mut reader = SegmentReader::open(&segment).expect("a segment");
            while let Some(record) = reader.next_record().expect("a record") {
                let mut block = Vec::new();
                read_rest(&mut reader, &mut block, 64 << 20).expect("a block");
                if record.head.kind() == "metadata" && block.starts_with(b"outcome: failed\r\n") {
                    found.push((record.head.target_uri().to_owned(), String::from_utf8(block).expect("UTF-8")));
                }
            }
        }
        assert_eq!(found.len() as u64, if is_recorded { failures } else { 0 }, "{found:?}");
        let of_lost = found.iter().find(|(url, _)| url == lost).map(|(_, block)| block.as_str());
        assert_eq!(of_lost.is_some(), is_recorded);
        assert!(of_lost.is_none_or(|block| block.contains("cause: dns-not-found\r\ntries: ")), "{of_lost:?}");
    }
}

/// Captures of one page at three times, in files without an index, and then with indexes beside all but one.
#[test]
fn a_capture_is_found_by_its_time() {
    let folder = TempFolder::new("at");
    let dates = ["2026-01-31T23:59:58Z", "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"];
    for (number, date) in dates.iter().enumerate() {
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{date}");
        let fields = "WARC-Target-URI: http://a.test/\r\nContent-Type: application/http; msgtype=response";
        let id = format!("<urn:uuid:00000000-0000-4000-8000-00000000000{number}>");
        let head = format!("WARC-Type: response\r\nWARC-Record-ID: {id}\r\nWARC-Date: {date}\r\n{fields}");
        let record = format!("WARC/1.1\r\n{head}\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n", http.len());
        folder.file(&format!("{number}.warc"), &record);
    }
    let cat = |at: &[&str]| run(&[&["store", "cat", &folder.at("")], at, &["http://a.test/"]].concat()).expect(0).out;
    for _ in 0..2 {
        assert_eq!(cat(&[]), dates[2], "the latest");
        let nearest = ["2025", "2026-02-14T11:59:59", "20260228120000", "2026-02-28 12:00:01", "2026-02", "2100"];
        assert_eq!(nearest.map(|at| cat(&["--at", at])), [0, 0, 1, 2, 1, 2].map(|number| dates[number]));
        for number in [0, 2] {
            let lines = run(&["store", "index", &folder.at(&format!("{number}.warc"))]).expect(0).out;
            assert!(lines.contains("http://a.test/"), "{lines}");
            folder.file(&format!("{number}.cdxj"), &lines);
        }
    }
    for mistake in ["yesterday", "2026-13", "2026-02-30"] {
        run(&["store", "cat", "--at", mistake, &folder.at(""), "http://a.test/"]).expect(2).says(&[mistake, "--at"]);
    }
}
