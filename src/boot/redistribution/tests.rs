//! A redistribution that is broken off anywhere.

use std::collections::BTreeMap;

use super::*;
use crate::boot::manifest::FORMAT;
use crate::lab::{Rng, TempFolder};
use crate::log::{Log, Owner};

fn manifest(shards: u16) -> Manifest {
    Manifest {
        format: FORMAT,
        created_by: "ringcrawl test".to_owned(),
        created: "2026-11-21T00:00:00Z".to_owned(),
        crawl_id: "0123456789abcdef".to_owned(),
        rng_seed: 7,
        shards,
        partition: "site-hash".to_owned(),
        exchange_mode: "exchange".to_owned(),
        agent_name: "bot".to_owned(),
        segments_from: Vec::new(),
    }
}

/// A crawl of three shards with some URLs each, the last of which has a segment.
fn begin(root: &Path) {
    fs::create_dir_all(root).unwrap();
    manifest::write(root, &manifest(3)).unwrap();
    for shard in 0..3 {
        let dir = shard_dir(root, shard);
        make_shard(&dir).unwrap();
        let mut log = Log::new(Owner { crawl: manifest(3).crawl_number(), shard }, 3, 0);
        for number in 0..10 {
            log.accept(0, &format!("http://site{number}.of{shard}.test/"));
        }
        let append = log.take_append(true).unwrap();
        fs::write(dir.join("urls"), append.bytes).unwrap();
        fs::write(dir.join("journal/0"), "").unwrap();
    }
    fs::write(root.join("shard-02/segments/rc-1-02-00000.warc.zst"), "a record").unwrap();
    fs::write(root.join("shard-02/segments/rc-1-02-00000.cdxj"), "").unwrap();
}

/// Every file below a folder with its bytes.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn urls(root: &Path, shards: u16) -> Vec<String> {
    let read = |shard| fs::read(shard_dir(root, shard).join("urls")).unwrap();
    let texts = |bytes: Vec<u8>| -> Vec<String> {
        let entries = log::read_urls(&bytes);
        entries.flat_map(|entries| entries.accepted.iter().map(|(_, url)| url.to_owned()).collect::<Vec<_>>()).collect()
    };
    let mut urls: Vec<String> = (0..shards).map(read).flat_map(texts).collect();
    urls.sort();
    urls
}

#[test]
fn shards_that_are_no_more_keep_their_segments_alone() {
    let folder = TempFolder::new("redistribution");
    let root = folder.path().join("crawl");
    begin(&root);
    let before = urls(&root, 3);
    let notes = run(&root, &manifest(3), &mut manifest(1)).unwrap();
    assert_eq!(notes, ["30 URLs of 3 shards redistributed to 1"]);
    assert_eq!(urls(&root, 1), before);
    let names: Vec<String> = files(&root).into_keys().collect();
    let segment = ["shard-02/segments/rc-1-02-00000.cdxj", "shard-02/segments/rc-1-02-00000.warc.zst"];
    assert_eq!(names, [&["crawl.json", "shard-00/ends", "shard-00/urls"][..], &segment].concat());
    assert!(!root.join("shard-01").exists(), "nothing was in it");
    let held = manifest::read(&root).unwrap().unwrap();
    assert_eq!(held, Manifest { segments_from: vec![0], ..manifest(1) });
    // A shard that comes again has its segments, whose numbers it must not use again.
    run(&root, &manifest(1), &mut manifest(4)).unwrap();
    assert_eq!(urls(&root, 4), before);
    make_shard(&shard_dir(&root, 2)).unwrap();
    assert_eq!(disk::find_files(&shard_dir(&root, 2)).unwrap().0.next_segment, 1);
}

/// A copy that was made while the new logs were put into their places, and lacks some of them.
#[test]
fn half_a_copy_is_refused() {
    for missing in ["redistribution/crawl.json", "redistribution/shard-01/ends"] {
        let folder = TempFolder::new("half-copied");
        let root = folder.path().join("crawl");
        begin(&root);
        write(&root, &manifest(3), &mut manifest(2)).unwrap();
        fs::remove_file(root.join(missing)).unwrap();
        let before = files(&root);
        let why = finish_move(&root).unwrap_err().to_string();
        let (dir, name) = missing.split_once('/').unwrap();
        let expected = format!("{} lacks {name}: the crawl was copied in part", root.join(dir).display());
        assert!(why.starts_with(&expected), "{why}");
        assert_eq!(files(&root), before);
    }
}

/// Before the new logs hold nothing has changed, and from then on they do, wherever the process ends.
#[test]
fn broken_off_anywhere() {
    let folder = TempFolder::new("broken-off");
    let whole = folder.path().join("whole");
    begin(&whole);
    run(&whole, &manifest(3), &mut manifest(2)).unwrap();
    for seed in 0..50 {
        let mut rng = Rng::new(seed);
        let root = folder.path().join(format!("{seed}"));
        begin(&root);
        let before = files(&root);
        // Cut off while the new logs are written.
        fs::create_dir_all(root.join(OPEN).join("shard-01")).unwrap();
        fs::write(root.join(OPEN).join("shard-01/urls"), "half").unwrap();
        finish_move(&root).unwrap();
        assert_eq!(files(&root), before);
        write(&root, &manifest(3), &mut manifest(2)).unwrap();
        assert!(is_unsettled(&root));
        // Cut off while they are put into their places: each step may be done or not, up to some step.
        let steps: [(&str, &str); 9] = [
            ("shard-00/journal", ""),
            ("shard-01/journal", ""),
            ("shard-02/journal", ""),
            ("redistribution/shard-00/urls", "shard-00/urls"),
            ("redistribution/shard-00/ends", "shard-00/ends"),
            ("redistribution/shard-01/ends", "shard-01/ends"),
            ("redistribution/shard-01/urls", "shard-01/urls"),
            ("shard-02/urls", ""),
            ("redistribution/crawl.json", "crawl.json"),
        ];
        let done = rng.below(10) as usize;
        for (from, to) in &steps[..done] {
            match *to {
                "" => remove(&root.join(from)).unwrap(),
                to => fs::rename(root.join(from), root.join(to)).unwrap(),
            }
        }
        finish_move(&root).unwrap();
        assert_eq!(files(&root), files(&whole), "SEED={seed}");
        assert!(!is_unsettled(&root));
        finish_move(&root).unwrap();
        assert_eq!(files(&root), files(&whole));
    }
}

/// What could not be read stays beside the new logs.
#[test]
fn damaged_logs_are_kept() {
    let folder = TempFolder::new("damaged");
    let root = folder.path().join("crawl");
    begin(&root);
    let path = root.join("shard-01/urls");
    let mut bytes = fs::read(&path).unwrap();
    bytes[60] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let notes = run(&root, &manifest(3), &mut manifest(2)).unwrap();
    for word in
        ["20 URLs of 3 shards", "shard-01/urls is kept as urls.damaged", "shard 1: ", "bytes of urls are damaged"]
    {
        assert!(notes.iter().any(|note| note.contains(word)), "{word}: {notes:?}");
    }
    assert_eq!(fs::read(root.join("shard-01/urls.damaged")).unwrap(), bytes);
}
