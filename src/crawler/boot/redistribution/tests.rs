//! A redistribution that is interrupted at any point.

use std::collections::BTreeMap;

use super::*;
use crate::boot::kept_config;
use crate::boot::manifest::FORMAT;
use ringcrawl_base::{Rng, TempFolder};
use ringcrawl_brain::log::{Log, Owner};
use ringcrawl_config::Config;
use ringcrawl_url::FoundUrl;

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
        moved_sites: 0,
        agent_name: "bot".to_owned(),
        segments_from: Vec::new(),
    }
}

/// A crawl of three shards with some URLs each; the last shard has a segment.
fn begin(root: &Path) {
    fs::create_dir_all(root).unwrap();
    manifest::write(root, &manifest(3)).unwrap();
    kept_config::write(root, &manifest(3).crawl_id, &Config::default()).unwrap();
    for shard in 0..3 {
        let dir = shard_dir(root, shard);
        make_shard(&dir).unwrap();
        let mut log = Log::new(Owner { crawl: manifest(3).crawl_number(), shard }, 3, 0);
        for number in 0..10 {
            log.accept(FoundUrl::unlinked(0, &format!("http://site{number}.of{shard}.test/")));
        }
        let append = log.take_append(true).unwrap();
        fs::write(dir.join("urls"), append.bytes).unwrap();
        fs::write(dir.join("journal/0"), "").unwrap();
    }
    fs::write(root.join("shard-02/segments/rc-1-02-00000.warc.zst"), "a record").unwrap();
    fs::write(root.join("shard-02/segments/rc-1-02-00000.cdxj"), "").unwrap();
}

/// A redistribution between these numbers of shards.
fn spread(root: &Path, from: u16, to: u16) -> Changed {
    let change = Change { partition: &Partition::by_site(to), levels: None };
    run(root, &manifest(from), &mut manifest(to), &change).unwrap()
}

/// The same, without putting it into place.
fn write_only(root: &Path, from: u16, to: u16) {
    let change = Change { partition: &Partition::by_site(to), levels: None };
    write(root, &manifest(from), &mut manifest(to), &change).unwrap();
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
    let Changed { notes, warnings, .. } = spread(&root, 3, 1);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(notes, ["30 URLs of 3 shards redistributed to 1"]);
    assert_eq!(urls(&root, 1), before);
    let names: Vec<String> = files(&root).into_keys().collect();
    let segment = ["shard-02/segments/rc-1-02-00000.cdxj", "shard-02/segments/rc-1-02-00000.warc.zst"];
    assert_eq!(names, [&["config.toml", "crawl.json", "shard-00/ends", "shard-00/urls"][..], &segment].concat());
    assert!(!root.join("shard-01").exists(), "nothing was in it");
    let held = manifest::read(&root).unwrap().unwrap();
    assert_eq!(held, Manifest { segments_from: vec![0], ..manifest(1) });
    // A shard that returns has its segments, and must not reuse their numbers.
    spread(&root, 1, 4);
    assert_eq!(urls(&root, 4), before);
    make_shard(&shard_dir(&root, 2)).unwrap();
    assert_eq!(disk::find_files(&shard_dir(&root, 2)).unwrap().0.next_segment, 1);
}

/// A copy that was made while the new logs were put into place, and lacks some of them.
#[test]
fn half_a_copy_is_refused() {
    for missing in ["redistribution/crawl.json", "redistribution/shard-01/ends"] {
        let folder = TempFolder::new("half-copied");
        let root = folder.path().join("crawl");
        begin(&root);
        write_only(&root, 3, 2);
        fs::remove_file(root.join(missing)).unwrap();
        let before = files(&root);
        let why = finish_move(&root).unwrap_err().to_string();
        let (dir, name) = missing.split_once('/').unwrap();
        let expected = format!("{} lacks {name}: the copy of this crawl is incomplete", root.join(dir).display());
        assert!(why.starts_with(&expected), "{why}");
        assert_eq!(files(&root), before);
    }
}

/// Before the new logs take effect nothing has changed, and from then on they apply, wherever the process ends: also for
/// a run that continues with the kept settings.
#[test]
fn broken_off_anywhere() {
    let kept_shards = |root: &Path| kept_config::kept_config(root).unwrap().expect("a crawl").crawl.shards;
    let folder = TempFolder::new("broken-off");
    let whole = folder.path().join("whole");
    begin(&whole);
    spread(&whole, 3, 2);
    for seed in 0..50 {
        let mut rng = Rng::new(seed);
        let root = folder.path().join(format!("{seed}"));
        begin(&root);
        let before = files(&root);
        // Interrupted while the new logs are written.
        fs::create_dir_all(root.join(OPEN).join("shard-01")).unwrap();
        fs::write(root.join(OPEN).join("shard-01/urls"), "half").unwrap();
        assert_eq!(kept_shards(&root), 3);
        finish_move(&root).unwrap();
        assert_eq!(files(&root), before);
        write_only(&root, 3, 2);
        assert!(is_unsettled(&root));
        // Interrupted while they are put into place: each step may be done or not, up to some step.
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
        assert_eq!(kept_shards(&root), 2, "SEED={seed}");
        finish_move(&root).unwrap();
        assert_eq!(files(&root), files(&whole), "SEED={seed}");
        assert!(!is_unsettled(&root));
        finish_move(&root).unwrap();
        assert_eq!(files(&root), files(&whole));
    }
}

/// Files that could not be read stay next to the new logs.
#[test]
fn damaged_logs_are_kept() {
    let folder = TempFolder::new("damaged");
    let root = folder.path().join("crawl");
    begin(&root);
    let path = root.join("shard-01/urls");
    let mut bytes = fs::read(&path).unwrap();
    bytes[60] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let Changed { notes, warnings, .. } = spread(&root, 3, 2);
    assert!(notes.iter().any(|note| note.contains("20 URLs of 3 shards")), "{notes:?}");
    // A quiet crawl tells them, too.
    for word in ["shard-01/urls is kept as urls.damaged", "shard 1: ", "bytes of urls are damaged"] {
        assert!(warnings.iter().any(|warning| warning.contains(word)), "{word}: {warnings:?}");
    }
    assert_eq!(fs::read(root.join("shard-01/urls.damaged")).unwrap(), bytes);
}

/// A crawl of two shards; the second has nothing. It is balanced twice. Wherever the process ends in between, the
/// crawl is in the state before or after.
#[test]
fn sites_move_with_their_urls_and_stay_moved() {
    let folder = TempFolder::new("levelled");
    let by_site = Partition::by_site(2);
    let on_first = |number: &u32| by_site.home_of(&format!("s{number}.test")) == 0;
    let sites: Vec<String> = (0..).filter(on_first).take(40).map(|number| format!("s{number}.test")).collect();
    let begin = |root: &Path| {
        fs::create_dir_all(root).unwrap();
        manifest::write(root, &manifest(2)).unwrap();
        for shard in 0..2 {
            let dir = shard_dir(root, shard);
            make_shard(&dir).unwrap();
            let mut log = Log::new(Owner { crawl: manifest(2).crawl_number(), shard }, 2, 0);
            let urls = sites
                .iter()
                .filter(|_| shard == 0)
                .flat_map(|site| [format!("http://{site}/"), format!("http://www.{site}/x")]);
            urls.for_each(|url| assert!(log.accept(FoundUrl::unlinked(0, &url)) < 80));
            let bytes = log.take_append(true).map_or(Vec::new(), |append| append.bytes);
            fs::write(dir.join("urls"), bytes).unwrap();
        }
    };
    let change =
        Change { partition: &by_site, levels: Some(LevelLimits { bytes_max: 1 << 20, shard_urls_max: 1 << 20 }) };
    let root = folder.path().join("crawl");
    begin(&root);
    let before = urls(&root, 2);
    let changed = run(&root, &manifest(2), &mut manifest(2), &change).unwrap();
    let moves = "balance: 20 sites with 40 of 80 waiting URLs move; the most loaded shard has 50 % of them, had 100 %";
    assert_eq!(
        (changed.notes, changed.is_fruitless),
        (vec![moves.to_owned(), "rewrote 80 URLs of 2 shards".to_owned()], false)
    );
    assert_eq!((urls(&root, 2), urls(&root, 1).len()), (before, 40));
    let held = manifest::read(&root).unwrap().unwrap();
    assert_eq!(held.moved_sites, 20);
    let moved = moved_sites::read(&root, &held).unwrap();
    for site in &sites {
        let home = changed.partition.home_of(site);
        assert_eq!((home == 1, moved.get(&**site)), (moved.contains_key(&**site), (home == 1).then_some(&1)), "{site}");
    }
    // Balanced shards stay as they are, and nothing is written.
    let files_then = files(&root);
    let again = run(&root, &held, &mut held.clone(), &change).unwrap();
    assert!(again.is_fruitless && again.notes[0].starts_with("balance: no site moves"), "{:?}", again.notes);
    assert_eq!((again.partition, files(&root)), (changed.partition, files_then.clone()));

    for done in 0..=3 {
        let cut = folder.path().join(format!("cut-{done}"));
        begin(&cut);
        write(&cut, &manifest(2), &mut manifest(2), &change).unwrap();
        for (from, to) in [
            ("redistribution/shard-00/urls", "shard-00/urls"),
            ("redistribution/shard-01/ends", "shard-01/ends"),
            ("redistribution/moved-sites", "moved-sites"),
        ]
        .into_iter()
        .take(done)
        {
            fs::rename(cut.join(from), cut.join(to)).unwrap();
        }
        finish_move(&cut).unwrap();
        assert_eq!(files(&cut), files_then, "{done} files were in their places");
    }
    // With another number of shards no site is moved, and the list is removed.
    let mut three = Manifest { shards: 3, moved_sites: 0, ..held.clone() };
    let change = Change { partition: &Partition::by_site(3), levels: None };
    run(&root, &held, &mut three, &change).unwrap();
    assert!(!root.join(MOVED_SITES).exists() && manifest::read(&root).unwrap().unwrap().moved_sites == 0);
    assert_eq!(urls(&root, 3).len(), 80);
}
