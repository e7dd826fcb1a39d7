//! A crawl's directory that was damaged, cut, mixed up or copied in part between two runs: each damage is harmless or told.
//!
//! `RINGCRAWL_DAMAGES=1000` damages so many copies; 30 otherwise. Each is of a crawl that was killed in the middle, and goes on to
//! its end beside a web that answers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ringcrawl_base::{Rng, TempFolder};
use ringcrawl_web::ModelConfig;
use ringcrawl_web::truth::reachable;

use crate::rig::program::{Ended, run, start};
use crate::rig::web::{self, web};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let copied = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            fs::copy(&path, &copied).expect("a file");
        }
    }
}

/// All files below `root`, in order.
fn files(root: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// Damages a copy of the crawl; what was done.
fn damage(root: &Path, rng: &mut Rng) -> String {
    // Closed segments are what `store verify` is for, but for one that is gone.
    let is_closed =
        |path: &Path| path.to_string_lossy().ends_with(".warc.zst") || path.to_string_lossy().ends_with(".cdxj");
    let all = files(root);
    let state: Vec<&PathBuf> = all.iter().filter(|path| !is_closed(path) && !path.ends_with("lock")).collect();
    let file = state[rng.below(state.len() as u64) as usize];
    let named = |what: &str| format!("{what} {}", file.strip_prefix(root).expect("below it").display());
    let bytes = fs::read(file).expect("a file");
    let length = bytes.len() as u64;
    match rng.below(10) {
        0..4 if length > 0 => {
            let mut bytes = bytes;
            for _ in 0..1 + rng.below(3) {
                bytes[rng.below(length) as usize] ^= 1 << rng.below(8);
            }
            fs::write(file, bytes).expect("a file");
            named("flipped bits of")
        }
        4 | 5 => {
            fs::write(file, &bytes[..rng.below(length + 1) as usize]).expect("a file");
            named("cut")
        }
        6 => {
            let other = state[rng.below(state.len() as u64) as usize];
            let others = fs::read(other).expect("a file");
            fs::write(other, bytes).expect("a file");
            fs::write(file, others).expect("a file");
            format!("{} with {}", named("swapped"), other.strip_prefix(root).expect("below it").display())
        }
        7 => {
            fs::copy(file, file.with_file_name(format!("{}", 90 + rng.below(10)))).expect("a file");
            named("copied beside itself")
        }
        8 => {
            let shard = root.join(format!("shard-0{}", rng.below(2)));
            fs::remove_dir_all(&shard).expect("a folder");
            if rng.percent(50) {
                fs::create_dir(&shard).expect("a folder");
                return "emptied a shard".to_owned();
            }
            "removed a shard".to_owned()
        }
        _ => {
            let gone = &all[rng.below(all.len() as u64) as usize];
            fs::remove_file(gone).expect("a file");
            format!("removed {}", gone.strip_prefix(root).expect("below it").display())
        }
    }
}

/// URLs that ended with a response.
fn fetched(dir: &str) -> BTreeSet<String> {
    let listed = run(&["urls", dir, "--state", "fetched"]);
    listed.out.lines().filter_map(|line| line.split('\t').next_back().map(str::to_owned)).collect()
}

#[test]
fn whatever_is_damaged_is_told_and_nothing_panics() {
    let damages = std::env::var("RINGCRAWL_DAMAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let folder = TempFolder::new("damage");
    let (web, seed) = web(ModelConfig { sites: 12, pages: 400, addresses: 8, ..ModelConfig::default() });
    let more = "crawl.shards = 2\njournal.sync_interval = \"20ms\"\nstore.segment_bytes_max = \"1MiB\"";
    let config = web::config(&folder, &web, more);
    let whole = folder.at("whole");
    let mut first = start(&["crawl", &seed, "--dir", &whole, "-c", &config, "--set", "politeness.host_delay=10ms"]);
    let ends = |shard: &str| fs::metadata(format!("{whole}/{shard}/ends")).map_or(0, |file| file.len());
    first.wait_until("some ends", || ends("shard-00").min(ends("shard-01")) > 300);
    first.signal("KILL");
    first.end().expect(128 + 9);
    let truth = reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    let wanted: Vec<&str> = truth.fetched.iter().chain(&truth.missing).map(|(url, _)| url.as_str()).collect();
    let (mut by_code, mut lossy) = ([0; 3], 0);
    for number in 0..damages {
        let mut rng = Rng::new(number);
        let dir = folder.at(&format!("{number}"));
        copy(Path::new(&whole), Path::new(&dir));
        let what = format!("damage {number}: {}", damage(Path::new(&dir), &mut rng));
        let Ended { code, out, err, .. } = run(&["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"]);
        assert!(!err.contains("panicked") && !err.contains("a bug of"), "{what}: {err}");
        let Some(count) = by_code.get_mut(code as usize) else { panic!("{what}: exit code {code}: {err}") };
        *count += 1;
        if code == 0 {
            let fetched = fetched(&dir);
            let missing = wanted.iter().filter(|url| !fetched.contains(**url)).count();
            let is_told = ["lost to this crawl", "is empty", "is missing"].iter().any(|word| err.contains(word));
            assert!(missing == 0 || is_told, "{what}: {missing} pages are missing: {err}\n{out}");
            lossy += u64::from(missing > 0);
        } else {
            assert!(err.contains(&dir) || err.contains("shard-0"), "{what}: exit code {code} and no path: {err}");
        }
        fs::remove_dir_all(&dir).expect("a folder");
    }
    println!("{damages} damaged directories: exit codes 0, 1, 2: {by_code:?}; {lossy} of them lost URLs and said so");
    assert!(by_code[0] > damages / 3 && by_code[2] > 0);
}
