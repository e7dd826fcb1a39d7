//! Segments on several disks: a crawl over two folders, stopped, gone on with, on another number of shards, and read.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ringcrawl_warc::read::find_segments;
use ringcrawl_warc::verify::index_path;
use ringcrawl_web::ModelConfig;
use ringcrawl_web::truth::reachable;

use crate::rig::harvest::{Verdict, open_files, stored};
use crate::rig::program::{run, start};
use crate::rig::web::{self, web};
use ringcrawl_base::TempFolder;

/// Where the segments of a shard lie.
fn lies(folder: &TempFolder, shard: u16) -> PathBuf {
    Path::new(&folder.at(&format!("crawl/shard-{shard:02}/segments"))).canonicalize().expect("a folder")
}

/// Bytes on the disk beyond the ends of all segments.
fn reserved(dir: &str) -> u64 {
    let beyond = |path: PathBuf| {
        let found = std::fs::metadata(path).expect("a segment");
        (found.blocks() * 512).saturating_sub(found.len().next_multiple_of(1 << 16))
    };
    find_segments(Path::new(dir)).expect("a crawl").into_iter().map(beyond).sum()
}

#[test]
fn a_crawl_over_two_folders() {
    let folder = TempFolder::new("disks");
    let (web, seed) = web(ModelConfig { sites: 20, pages: 600, ..ModelConfig::default() });
    let [a, b] = ["a", "b"].map(|name| folder.at(name));
    [&a, &b].iter().for_each(|disk| std::fs::create_dir(disk).expect("a folder"));
    let more = format!(
        "crawl.shards = 2\nstore.dirs = [{a:?}, {b:?}]\nstore.segment_bytes_max = \"1MiB\"\n\
                        store.preallocate = \"8MiB\""
    );
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, &more));
    // Killed, so that each shard has a segment that is open.
    let mut first = start(&["crawl", &seed, "--dir", &dir, "-c", &config]);
    let has_segment = |shard| find_segments(&lies(&folder, shard)).is_ok_and(|segments| !segments.is_empty());
    first.wait_until("pages", || web.report().requests > 300 && has_segment(0) && has_segment(1));
    first.signal("KILL");
    first.end().expect(128 + 9);
    for (shard, disk) in [(0, &a), (1, &b)] {
        let lies = lies(&folder, shard);
        assert!(lies.starts_with(disk) && lies.ends_with(format!("shard-{shard:02}")), "{lies:?}");
        assert!(!find_segments(&lies).expect("a folder").is_empty());
        for made in [lies.as_path(), lies.parent().expect("a folder")] {
            assert_eq!(std::fs::metadata(made).expect("a folder").permissions().mode() & 0o027, 0, "{made:?}");
        }
    }
    run(&["store", "ls", &dir]).expect(0);
    println!("{} bytes are reserved: none where the file system cannot", reserved(&dir));

    // A disk that is not mounted, whether the list names it or not.
    let (unmounted, without) = (folder.at("unmounted"), format!("store.dirs={a}"));
    std::fs::rename(&b, &unmounted).expect("a name");
    let before = folder.content("crawl");
    run(&["crawl", "--dir", &dir]).expect(2).says(&["store.dirs", &b, "mount its disk"]);
    let link = folder.at("crawl/shard-01/segments");
    run(&["crawl", "--dir", &dir, "--set", &without]).expect(2).says(&[&link, &b, "mount that disk"]);
    for command in ["ls", "verify"] {
        run(&["store", command, &dir]).expect(2).says(&[&link, "a disk is missing"]);
    }
    assert!(folder.content("crawl") == before, "the crawl was touched");
    std::fs::rename(&unmounted, &b).expect("a name");

    // It goes on where it was, whatever the list says by now; a new shard goes by the list.
    let resumed = run(&["crawl", "--dir", &dir, "--set", &without, "--shards", "3", "--pages-max", "100"]).expect(0);
    resumed.says(&["store.dirs: 1 of 3 shards continue where their segments are"]);
    assert!(lies(&folder, 1).starts_with(&b) && lies(&folder, 2).starts_with(&a));
    // Fewer shards: those that are no more keep what they have.
    run(&["crawl", "--dir", &dir, "--shards", "1", "--pages-max", "100000"]).expect(0);
    assert_eq!((open_files(&dir), reserved(&dir)), (Vec::new(), 0));
    let truth = reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    Verdict::of(&stored(&dir), &truth).expect_whole();

    // Every reader finds them, by the link and as they lie.
    for path in [&dir, &a, &b] {
        run(&["store", "verify", path]).expect(0);
    }
    let segment = find_segments(&lies(&folder, 1)).expect("a folder").remove(0);
    let index = std::fs::read_to_string(index_path(&segment).expect("a closed segment")).expect("an index");
    assert_eq!(run(&["store", "index", segment.to_str().expect("UTF-8")]).expect(0).out, index);
    let page = index.lines().find(|line| line.contains("\"status\":\"200\"") && !line.contains("robots.txt"));
    let (_, rest) = page.and_then(|line| line.split_once("\"url\":\"")).expect("a page");
    let url = rest.split('"').next().expect("its end");
    let payload = run(&["store", "cat", &dir, url]).expect(0).out_bytes;
    assert!(!payload.is_empty() && run(&["store", "cat", &b, url]).expect(0).out_bytes == payload, "{url}");
    let ls = |path: &str| run(&["store", "ls", path]).expect(0).out;
    let export = folder.at("export");
    run(&["store", "export", "--to", "warc.gz", "--out", &export, &dir]).expect(0);
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(ls(&export)), sorted(ls(&dir)));
    assert_eq!(sorted(ls(&a) + &ls(&b)), sorted(ls(&dir)));
}

#[test]
fn a_copy_of_a_crawl_links_and_all_does_not_write_to_its_segments_at_the_same_time() {
    let folder = TempFolder::new("disks-copied");
    let (web, seed) = web(ModelConfig { endless: true, ..ModelConfig::default() });
    std::fs::create_dir(folder.at("disk")).expect("a folder");
    let more = format!("crawl.shards = 1\nstore.dirs = [{:?}]", folder.at("disk"));
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, &more));
    let mut first = start(&["crawl", &seed, "--dir", &dir, "-c", &config]);
    first.wait_until("the first page", || web.report().requests > 2);
    let copied = std::process::Command::new("cp").args(["-r", &dir, &folder.at("copy")]).status();
    assert!(copied.expect("cp").success());
    let lies = lies(&folder, 0).parent().expect("a folder").display().to_string();
    run(&["crawl", "--dir", &folder.at("copy")]).expect(2).says(&[&lies, "is in use by another ringcrawl"]);
    first.signal("INT");
    first.end().expect(0);
    run(&["store", "verify", &dir]).expect(0);
}
