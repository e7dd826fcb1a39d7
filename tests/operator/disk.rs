//! A disk that is full: the crawl stops and says where and why, what it stored is good, and with room it goes on. Before
//! that, below a floor of free space, it waits for room.
//!
//! Decides: the disk is a small file system in memory, mounted where no other process sees it (`unshare --mount`),
//! so the test needs root; without it, it says that it is skipped. All steps run in one script, because the mount
//! goes with the last process in its namespace; what was stored is copied out at the end.

use std::process::Command;

use ringcrawl_web::ModelConfig;
use ringcrawl_web::truth::reachable;

use crate::rig::harvest::{Verdict, open_files, stored};
use crate::rig::program::{Process, RINGCRAWL, is_root, run};
use crate::rig::skip;
use crate::rig::web::{self, web};
use ringcrawl_base::TempFolder;

/// Crawls into a disk of 2 MiB, verifies, tries again, makes room, goes on. `$0` is the program, `$1` the disk.
const SCRIPT: &str = r#"
disk=$1; out=$2; shift 2
mount -t tmpfs -o size=2m tmpfs "$disk" || { echo cannot mount >&2; exit 77; }
"$0" crawl "$@" --dir "$disk/crawl" --json "$out/first.json" 2> "$out/first.err"; echo "first $?"
"$0" store verify "$disk/crawl" > "$out/verify.out" 2> "$out/verify.err"; echo "verify $?"
"$0" crawl "$@" --dir "$disk/crawl" 2> "$out/again.err"; echo "again $?"
mount -o remount,size=64m "$disk"
"$0" crawl "$@" --dir "$disk/crawl" --json "$out/last.json" 2> "$out/last.err"; echo "last $?"
cp -r "$disk/crawl" "$out/crawl"
"#;

fn fill(name: &str, shards: &str) -> Option<Verdict> {
    if !is_root() {
        skip("only root can mount a small disk");
        return None;
    }
    let folder = TempFolder::new(name);
    let (web, seed) = web(ModelConfig { sites: 40, pages: 1_500, addresses: 16, ..ModelConfig::default() });
    let config = web::config(&folder, &web, "store.segment_bytes_max = \"1MiB\"\nstore.free_bytes_min = \"0B\"\n");
    std::fs::create_dir(folder.at("disk")).expect("a folder");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", SCRIPT, RINGCRAWL, &folder.at("disk"), &folder.at("")]);
    command.args([&seed, "-c", &config, "--shards", shards]);
    let ended = Process::start(&mut command).end();
    if ended.code == 77 || ended.err.starts_with("unshare: ") {
        skip(&format!("this root may not mount: {}", ended.err));
        return None;
    }
    let said = |name: &str| std::fs::read_to_string(folder.at(name)).unwrap_or_default();
    let codes: Vec<&str> = ended.out.lines().collect();
    assert_eq!(
        codes,
        ["first 1", "verify 0", "again 1", "last 0"],
        "{ended:#?}\n{}{}",
        said("verify.out"),
        said("verify.err")
    );
    for name in ["first.err", "again.err"] {
        let text = said(name);
        // The file that could not be written, in full, and the system's word for why.
        let line = text.lines().find(|line| line.contains("No space left")).unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(line.contains(&folder.at("disk/crawl/")), "{line}");
    }
    for line in
        ["Everything on disk is kept; the same command continues", "pages in the summary that are not on disk yet"]
    {
        assert!(said("first.err").contains(line), "{}", said("first.err"));
    }
    let json = |name: &str| serde_json::from_str::<serde_json::Value>(&said(name)).expect("JSON");
    assert_eq!((&json("first.json")["ended"], &json("last.json")["ended"]), (&"failed".into(), &"finished".into()));
    let dir = folder.at("crawl");
    assert_eq!(open_files(&dir), [""; 0]);
    run(&["store", "verify", &dir]).expect(0);
    let truth = reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    let verdict = Verdict::of(&stored(&dir), &truth);
    println!(
        "{shards} shards, disk full twice: of {} pages {} are missing, {} captures are a second one",
        verdict.expected, verdict.missing, verdict.double
    );
    assert_eq!((verdict.wrong, verdict.beyond), (0, 0), "{verdict:#?}");
    Some(verdict)
}

#[test]
fn a_full_disk_stops_one_shard_and_room_lets_it_go_on() {
    if let Some(verdict) = fill("full-1", "1") {
        verdict.expect_whole();
    }
}

#[test]
fn a_full_disk_stops_two_shards_and_room_lets_them_go_on() {
    if let Some(verdict) = fill("full-2", "2") {
        verdict.expect_whole();
    }
}

/// Crawls into `$3`, with a disk of which so much is taken that less than the floor is left, and gives that back.
const WAITS: &str = r#"
disk=$1; out=$2; dir=$3; shift 3
mount -t tmpfs -o size=48m tmpfs "$disk" || { echo cannot mount >&2; exit 77; }
head -c 24m /dev/zero > "$disk/ballast"
"$0" crawl "$@" --quiet --dir "$dir" --json "$out/waits.json" 2> "$out/waits.err" &
until grep -q "fetching is paused" "$out/waits.err"; do sleep 0.1; kill -0 $! || exit 1; done
sleep 2
"$0" why --dir "$dir" "$SEED" > "$out/why"
ls "$dir"/shard-00/segments > "$out/segments"
rm "$disk/ballast"
wait $!; echo "waits $?"
cp -rL "$dir" "$out/copy"
"#;

#[test]
fn a_disk_with_too_little_room_is_waited_for() {
    waits("floor", "disk/crawl", "");
}

/// The disk of the segments alone.
#[test]
fn so_is_one_that_store_dirs_names() {
    waits("floor-of-segments", "crawl", "disk");
}

/// A crawl in `dir` of the folder with segments in `store`, one of which is "disk".
fn waits(name: &str, dir: &str, store: &str) {
    if !is_root() {
        skip("only root can mount a small disk");
        return;
    }
    let folder = TempFolder::new(name);
    let (web, seed) = web(ModelConfig { sites: 10, pages: 200, ..ModelConfig::default() });
    let config = web::config(&folder, &web, "crawl.shards = 1\nstore.free_bytes_min = \"32MiB\"\n");
    std::fs::create_dir(folder.at("disk")).expect("a folder");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", WAITS, RINGCRAWL, &folder.at("disk"), &folder.at(""), &folder.at(dir)]);
    command.args([&seed, "-c", &config]).env("SEED", &seed);
    let (store_dirs, mut disk) = (format!("store.dirs={}", folder.at(store)), "the disk".to_owned());
    if !store.is_empty() {
        command.args(["--set", &store_dirs]);
        disk = format!("the disk of {}", folder.at("crawl/shard-00/segments"));
    }
    let ended = Process::start(&mut command).end();
    if ended.code == 77 || ended.err.starts_with("unshare: ") {
        skip(&format!("this root may not mount: {}", ended.err));
        return;
    }
    let said = std::fs::read_to_string(folder.at("waits.err")).unwrap_or_default();
    assert_eq!(ended.out, "waits 0\n", "{ended:#?}\n{said}");
    let waits = format!("MiB are free on {disk}, less than store.free_bytes_min = 32 MiB: fetching is paused");
    for line in [&*waits, "the disk has room again"] {
        assert!(said.contains(line), "{said}");
    }
    let why = std::fs::read_to_string(folder.at("why")).expect("an answer");
    assert!(
        why.starts_with("It waits: fetching is paused: only ")
            && why.contains(&*waits.replace(": fetching is paused", ".")),
        "{why}"
    );
    assert_eq!(std::fs::read_to_string(folder.at("segments")).expect("a list"), "", "nothing was fetched meanwhile");
    let truth = reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    Verdict::of(&stored(&folder.at("copy")), &truth).expect_perfect();
}
