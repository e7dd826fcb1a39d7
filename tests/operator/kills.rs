//! Killed again and again: nothing is missing, nothing that was over is fetched again, and the logs grow with what happens and
//! not with restarts.
//!
//! `RINGCRAWL_KILLS=300` kills that often; 20 times otherwise. What a run had noted is read from its logs after the kill, so that
//! no bound depends on how busy the machine is.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use ringcrawl_base::time::UnixTime;
use ringcrawl_base::{Rng, TempFolder};
use ringcrawl_brain::log::{EndKind, read_ends, read_urls};
use ringcrawl_web::ModelConfig;
use ringcrawl_web::truth::reachable;

use crate::rig::harvest::{Verdict, open_files, stored, times};
use crate::rig::program::{run, start};
use crate::rig::web::{self, web};

const SHARDS: usize = 4;

fn shards(dir: &str) -> impl Iterator<Item = std::path::PathBuf> {
    let dir = Path::new(dir).to_owned();
    (0..SHARDS).map(move |shard| dir.join(format!("shard-{shard:02}")))
}

/// What the logs say is over.
fn over(dir: &str) -> HashSet<String> {
    let mut all = HashSet::new();
    for shard in shards(dir) {
        let read = |name: &str| std::fs::read(shard.join(name)).unwrap_or_default();
        let urls: Vec<String> = read_urls(&read("urls"))
            .flat_map(|entries| entries.accepted.iter().map(|(_, url)| url.to_owned()).collect::<Vec<_>>())
            .collect();
        for end in read_ends(&read("ends")) {
            let url = urls.get(end.url as usize).unwrap_or_else(|| panic!("URL {} ended and is in no log", end.url));
            if end.kind == EndKind::Reopened {
                all.remove(url)
            } else {
                all.insert(url.clone())
            };
        }
    }
    all
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

fn ends_bytes(dir: &str) -> u64 {
    shards(dir).map(|shard| length(&shard.join("ends"))).sum()
}

fn log_bytes(dir: &str) -> u64 {
    let journal = |shard: &Path| -> u64 {
        let files = std::fs::read_dir(shard.join("journal")).into_iter().flatten().flatten();
        files.map(|file| length(&file.path())).sum()
    };
    shards(dir).map(|shard| length(&shard.join("urls")) + length(&shard.join("ends")) + journal(&shard)).sum()
}

fn now() -> UnixTime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock that is right");
    UnixTime::from_micros(since.as_micros() as u64)
}

#[test]
fn killed_again_and_again_a_crawl_loses_nothing_and_its_logs_do_not_grow() {
    let kills = std::env::var("RINGCRAWL_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let pages = 200 * kills;
    let folder = TempFolder::new("kills");
    let (web, seed) = web(ModelConfig { sites: 60, pages: pages as u64, addresses: 32, ..ModelConfig::default() });
    let config = web::config(&folder, &web, "crawl.shards = 4\njournal.sync_interval = \"50ms\"");
    let crawl = |dir: &str| ["crawl", &seed, "--dir", dir, "-c", &config, "--json", "-"].map(str::to_owned);
    let whole = folder.at("whole");
    assert_eq!(run(&crawl(&whole).each_ref().map(String::as_str)).expect(0).json()["ended"], "finished");

    let dir = folder.at("crawl");
    let arguments = crawl(&dir);
    let mut rng = Rng::new(1);
    // When each URL was first known to be over after a kill.
    let mut known: HashMap<String, UnixTime> = HashMap::new();
    for _ in 0..kills {
        let mut crawl =
            start(&[&arguments.each_ref().map(String::as_str)[..], &["--set", "politeness.host_delay=10ms"]].concat());
        // By what it has noted, so that every run brings the crawl on, on any machine; half of all, so that the last has something
        // to do. An end takes some five bytes, and what is noted of hosts after each kill some more.
        let until = ends_bytes(&dir) + 1 + rng.below(8 * pages as u64 / kills as u64);
        crawl.wait_until("some ends", || ends_bytes(&dir) >= until);
        crawl.signal("KILL");
        crawl.end().expect(128 + 9);
        let killed = now();
        for url in over(&dir) {
            known.entry(url).or_insert(killed);
        }
    }
    assert_eq!(run(&arguments.each_ref().map(String::as_str)).expect(0).json()["ended"], "finished");
    assert_eq!(open_files(&dir), [""; 0]);
    run(&["store", "verify", &dir]).expect(0);
    let mut again = 0;
    for (url, times) in times(&dir) {
        again += times.len() - 1;
        if let Some(killed) = known.get(&url) {
            let later: Vec<_> = times.iter().filter(|time| *time > killed).collect();
            assert!(later.is_empty(), "{url} was over at {killed:?} and was fetched at {later:?}");
        }
    }
    let truth = reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    let verdict = Verdict::of(&stored(&dir), &truth);
    let growth = log_bytes(&dir) as f64 / log_bytes(&whole) as f64;
    println!(
        "{SHARDS} shards, killed {kills} times: of {} pages {again} were fetched again, {} were known to \
         be over after a kill; the logs have {growth:.3} times the bytes of a crawl that was left alone",
        verdict.expected,
        known.len()
    );
    assert!(known.len() > 10 * kills, "only {} of {} were over after a kill", known.len(), verdict.expected);
    // Alone 1.14 to 1.18; each commit is a block of its own, and a busy machine makes more of them (1.47 beside three builds). Logs that
    // are never written anew have some ten times as much.
    assert!(growth <= 2.0, "{growth}");
    verdict.expect_whole();
}

/// Each run is told another number of shards and is killed, some while they write the logs anew.
#[test]
fn redistributed_and_killed_a_crawl_loses_nothing() {
    let kills = std::env::var("RINGCRAWL_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(16);
    let pages = 300 * kills;
    let folder = TempFolder::new("redistributed");
    let (web, seed) = web(ModelConfig { sites: 60, pages: pages as u64, addresses: 32, ..ModelConfig::default() });
    let config = web::config(&folder, &web, "journal.sync_interval = \"50ms\"");
    let dir = folder.at("crawl");
    let mut rng = Rng::new(1);
    let mut known: HashMap<String, UnixTime> = HashMap::new();
    let is_open = |dir: &str| Path::new(dir).join("redistribution.open").exists();
    let is_whole = |dir: &str| Path::new(dir).join("redistribution").exists();
    let (mut broken_off, mut redistributions) = (0, 0);
    let mut before = String::new();
    for round in 0..kills {
        let shards = (1 + rng.below(SHARDS as u64)).to_string();
        let is_same = std::mem::replace(&mut before, shards.clone()) == shards;
        let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--shards", &shards];
        let mut crawl = start(&[&arguments[..], &["--set", "politeness.host_delay=10ms"]].concat());
        let until = ends_bytes(&dir) + 1 + rng.below(5 * pages as u64 / kills as u64);
        if round % 2 == 0 {
            crawl.wait_until("some ends", || ends_bytes(&dir) >= until);
        } else {
            // Some hundred files are synced between the first name and the last: enough to be hit, now before and now after the
            // new logs hold. Nothing happens where the number is the same, and a fast machine would be done meanwhile.
            let began = std::time::Instant::now();
            while !is_same && !is_open(&dir) && began.elapsed() < std::time::Duration::from_millis(1_000) {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_micros(rng.below(4_000)));
        }
        crawl.signal("KILL");
        redistributions += usize::from(crawl.end().expect(128 + 9).err.contains("redistributed to"));
        let killed = now();
        // What is half in its place is read by the next run, not here.
        broken_off += usize::from(is_open(&dir) || is_whole(&dir));
        if is_whole(&dir) {
            run(&["urls", &dir]).expect(2).says(&["being redistributed", "ringcrawl crawl"]);
        } else {
            for url in over(&dir) {
                known.entry(url).or_insert(killed);
            }
        }
    }
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--shards", "3", "--json", "-"];
    assert_eq!(run(&arguments).expect(0).json()["ended"], "finished");
    assert_eq!(open_files(&dir), [""; 0]);
    run(&["store", "verify", &dir]).expect(0);
    for (url, times) in times(&dir) {
        if let Some(killed) = known.get(&url) {
            let later: Vec<_> = times.iter().filter(|time| *time > killed).collect();
            assert!(later.is_empty(), "{url} was over at {killed:?} and was fetched at {later:?}");
        }
    }
    let truth = reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    println!("killed {kills} times, {redistributions} times after and {broken_off} times in a redistribution");
    assert!(redistributions + broken_off > 2);
    Verdict::of(&stored(&dir), &truth).expect_whole();
}
