//! Ctrl-C once, twice, and a kill that asks nobody; then the same command again.
//!
//! Decides: a drained crawl and one stopped at once end with every segment closed, and go on as if nothing had been:
//! every page once. After a kill pages may be stored twice, because the logs' last second or two are lost: those that
//! were fetched just before it, and no others. None may be missing.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ringcrawl_base::time::UnixTime;
use ringcrawl_web::truth::{Expected, Truth, reachable};
use ringcrawl_web::{ModelConfig, Running};

use crate::rig::harvest::{Verdict, expect_own_ids, open_files, stored, times};
use crate::rig::names::NameServer;
use crate::rig::program::{run, start};
use crate::rig::slow_server::SlowServer;
use crate::rig::web::{self, web};
use ringcrawl_base::TempFolder;

fn model() -> ModelConfig {
    ModelConfig { sites: 60, pages: 4_000, addresses: 32, ..ModelConfig::default() }
}

fn truth(web: &Running) -> Truth {
    reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end")
}

/// What holds after every orderly end.
#[track_caller]
fn is_closed(dir: &str) {
    assert_eq!(open_files(dir), [""; 0]);
    run(&["store", "verify", dir]).expect(0);
    expect_own_ids(dir);
}

#[test]
fn interrupted_once_it_drains_and_goes_on() {
    let folder = TempFolder::new("drain");
    let (web, seed) = web(model());
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 2"));
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"];
    let truth = truth(&web);
    let mut stored_before = 0;
    // Three runs, stopped at different places, by both signals.
    for (signal, requests) in [("INT", 300), ("TERM", 1_500)] {
        let mut crawl = start(&arguments);
        crawl.wait_until("some pages", || web.report().requests >= requests);
        crawl.signal(signal);
        let ended = crawl.end().expect(0).says(&["draining", "repeat to stop at once"]);
        let json = ended.json();
        assert_eq!((json["ended"].as_str(), &json["in_flight"]), (Some("stopped by signal"), &0.into()), "{json:#}");
        assert!(json["queued"].as_u64().is_some_and(|queued| queued > 0), "{json:#}");
        is_closed(&dir);
        let harvest = stored(&dir);
        assert!(harvest.len() > stored_before && harvest.values().all(|captures| captures.len() == 1));
        stored_before = harvest.len();
    }
    assert_eq!(run(&arguments).expect(0).json()["ended"], "finished");
    is_closed(&dir);
    Verdict::of(&stored(&dir), &truth).expect_perfect();
    let watch = web.stop().watch.expect("the web is watched");
    assert_eq!((watch.double_fetches, watch.double_examples), (0, Vec::new()), "nothing was even asked for twice");
    // Once more: there is nothing to do, and nothing is done.
    let json = run(&arguments).expect(0).json();
    assert_eq!((&json["ended"], &json["responses"]), (&"finished".into(), &0.into()));
}

#[test]
fn interrupted_an_endless_web_drains_too() {
    let folder = TempFolder::new("endless");
    let (web, seed) = web(ModelConfig { endless: true, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 2"));
    let mut crawl = start(&["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"]);
    crawl.wait_until("some pages", || web.report().requests >= 1_000);
    crawl.signal("INT");
    let json = crawl.end().expect(0).json();
    assert_eq!(json["ended"], "stopped by signal");
    is_closed(&dir);
    let captures: usize = stored(&dir).values().map(Vec::len).sum();
    let watch = web.stop().watch.expect("the web is watched");
    assert_eq!((captures as u64, watch.double_fetches), (watch.urls, 0), "what was answered was stored");
}

/// The page that is under way is left and comes with the next run; everything else is there once.
#[test]
fn interrupted_twice_it_ends_at_once_and_goes_on() {
    let folder = TempFolder::new("abort");
    let ((web, seed), slow) = (web(model()), SlowServer::start());
    let (dir, config, slow_url) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 2"), slow.url());
    let arguments = ["crawl", &seed, &slow_url, "--dir", &dir, "-c", &config, "--json", "-"];
    let mut crawl = start(&arguments);
    crawl.wait_until("the slow page and others are under way", || slow.asked() > 0 && web.report().requests >= 300);
    crawl.signal("INT");
    crawl.wait_for("draining");
    crawl.signal("INT");
    let ended = crawl.end().expect(0);
    assert_eq!(ended.json()["ended"], "stopped at once by signal");
    is_closed(&dir);
    assert!(!stored(&dir).contains_key(&slow_url));
    slow.let_go();
    assert_eq!(run(&arguments).expect(0).json()["ended"], "finished");
    is_closed(&dir);
    let mut harvest = stored(&dir);
    let digest = xxhash_rust::xxh3::xxh3_64(b"slow");
    let expected = Expected { status: 200, body_bytes: 4, body_digest: digest };
    assert_eq!(harvest.remove(&slow_url), Some(vec![expected]));
    Verdict::of(&harvest, &truth(&web)).expect_perfect();
}

/// Answers keep coming in while the shards write their last: each page is either stored and over, or neither.
#[test]
fn what_comes_in_too_late_is_not_stored_twice() {
    // The slower the answers, the later the last of them: on a busy machine the first paces may all be in time.
    let has_raced =
        [1, 4, 16, 64].into_iter().any(|pause_ms| stopped_while_answers_come(Duration::from_millis(pause_ms)));
    assert!(has_raced, "no answer came while a crawl was stopping");
}

/// Stops a crawl at once while answers come, `pause` apart, and goes on; whether some came in time and others after.
fn stopped_while_answers_come(pause: Duration) -> bool {
    let folder = TempFolder::new("too-late");
    let (names, server) = (NameServer::pointing_to(Ipv4Addr::LOCALHOST), SlowServer::start());
    let lines = "politeness.host_delay = \"0s\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\ncrawl.shards = 2\n";
    let config = folder.file("config.toml", &format!("dns.servers = [\"{}\"]\n{lines}", names.addr));
    let urls: Vec<String> = (0..300).map(|number| format!("http://h{number}.test:{}/slow", server.port)).collect();
    let (dir, seeds) = (folder.at("crawl"), folder.file("seeds.txt", &urls.join("\n")));
    let arguments = ["crawl", "--seeds", &seeds, "--dir", &dir, "-c", &config, "--json", "-"];
    let mut crawl = start(&arguments);
    crawl.wait_until("all pages are under way", || server.asked() == urls.len() as u64);
    crawl.signal("INT");
    crawl.wait_for("draining");
    server.let_go_each(pause);
    crawl.wait_until("answers come", || server.answered() >= 20);
    crawl.signal("INT");
    let answered_before = server.answered();
    crawl.end().expect(0);
    let answered = server.answered();
    is_closed(&dir);
    let early = stored(&dir).len();
    server.let_go();
    run(&arguments).expect(0);
    is_closed(&dir);
    let harvest = stored(&dir);
    println!("{answered_before} answers before the end, {answered} with it; {early} of {} pages stored", urls.len());
    let twice: Vec<&String> = harvest.iter().filter(|(_, it)| it.len() > 1).map(|(url, _)| url).collect();
    assert!(twice.is_empty(), "{} of {} are stored twice: {twice:#?}", twice.len(), urls.len());
    assert_eq!(harvest.len(), urls.len());
    answered_before < answered && (1..urls.len()).contains(&early)
}

/// When the logs of ends of a crawl's shards were seen to grow.
struct Growth {
    shards: Vec<(PathBuf, u64, Vec<UnixTime>)>,
    begun: UnixTime,
}

impl Growth {
    fn watch(dir: &str, shards: usize) -> Growth {
        let logs = (0..shards).map(|shard| Path::new(dir).join(format!("shard-{shard:02}/ends")));
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |log| log.len());
        let shards = logs.map(|path| (length(&path), path)).map(|(length, path)| (path, length, Vec::new()));
        Growth { shards: shards.collect(), begun: now() }
    }

    /// Looks; how often the log has grown that grew the least.
    fn look(&mut self) -> usize {
        for (path, length, times) in &mut self.shards {
            let found = std::fs::metadata(path).map_or(0, |log| log.len());
            if found > *length {
                *length = found;
                times.push(now());
            }
        }
        self.shards.iter().map(|(_, _, times)| times.len()).min().unwrap_or_default()
    }

    /// All that was over before this is in the logs: they have grown twice more since then.
    fn noted(&self) -> UnixTime {
        let third_last = |times: &Vec<UnixTime>| times.iter().rev().nth(2).copied();
        self.shards.iter().map(|(_, _, times)| third_last(times).unwrap_or(self.begun)).min().unwrap_or(self.begun)
    }
}

fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock that is right");
    UnixTime::from_micros(since.as_micros() as u64)
}

/// Kills the crawl at several places, and goes on: nothing is missing, and only what was fetched shortly before a
/// kill was fetched again.
fn killed(name: &str, shards: usize) {
    let folder = TempFolder::new(name);
    let (web, seed) = web(model());
    let (dir, config, count) = (folder.at("crawl"), web::config(&folder, &web, ""), shards.to_string());
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-", "--shards", &count];
    let mut lost = Vec::new();
    // First before anything was noted; then when every shard has noted something more; at last in the middle of a
    // long run, of which most must be known afterwards.
    for (growths, beyond, delay) in [(0, 200, "10ms"), (1, 0, "10ms"), (1, 100, "10ms"), (5, 20, "200ms")] {
        let (mut growth, mut since) = (Growth::watch(&dir, shards), None);
        let delay = format!("politeness.host_delay={delay}");
        let mut crawl = start(&[&arguments[..], &["--set", &delay]].concat());
        crawl.wait_until("some pages", || {
            let requests = web.report().requests;
            growth.look() >= growths && requests >= *since.get_or_insert(requests) + beyond
        });
        crawl.signal("KILL");
        crawl.end().expect(128 + 9);
        lost.push((growth.noted(), now()));
    }
    assert_eq!(run(&arguments).expect(0).json()["ended"], "finished");
    is_closed(&dir);
    // A page that was fetched again had been asked for after what was noted, or so shortly before that its answer
    // came after.
    const ANSWER_MAX_MICROS: u64 = 1_000_000;
    let mut doubles = 0;
    for (url, times) in times(&dir) {
        for first in times.iter().rev().skip(1) {
            doubles += 1;
            let is_excused = lost
                .iter()
                .any(|(noted, killed)| first <= killed && first.as_micros() + ANSWER_MAX_MICROS >= noted.as_micros());
            assert!(is_excused, "{url} of {first:?} was known to be over, and was fetched again: {times:?}, {lost:?}");
        }
    }
    let verdict = Verdict::of(&stored(&dir), &truth(&web));
    println!("{shards} shards, killed four times: {doubles} of {} pages were fetched again", verdict.expected);
    assert_eq!(verdict.double, doubles);
    verdict.expect_whole();
}

#[test]
fn killed_it_goes_on_where_its_logs_end() {
    killed("kill-1", 1);
}

#[test]
fn killed_with_two_shards_it_goes_on_too() {
    killed("kill-2", 2);
}
