//! Ctrl-C once, twice, and a kill that asks nobody; then the same command again.
//!
//! Decides: a drained crawl and one stopped at once end with every segment closed, and go on as if nothing had been:
//! every page once. After a kill pages may be stored twice, because the journal's last second is lost; how many is
//! printed. None may be missing.

use std::net::Ipv4Addr;
use std::time::Duration;

use ringcrawl::web::truth::{Expected, Truth, reachable};
use ringcrawl::web::{ModelConfig, Running};

use crate::rig::harvest::{Verdict, expect_own_ids, open_files, stored};
use crate::rig::peer::{NameServer, SlowServer};
use crate::rig::program::{Place, run, start, web};

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
    let place = Place::new("drain");
    let (web, seed) = web(model());
    let (dir, config) = (place.at("crawl"), place.config(&web, "crawl.shards = 2"));
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"];
    let truth = truth(&web);
    let mut stored_before = 0;
    // Three runs, stopped at different places, by both signals.
    for (signal, requests) in [("INT", 300), ("TERM", 1_500)] {
        let mut crawl = start(&arguments);
        crawl.wait_until("some pages", || web.report().requests >= requests);
        crawl.signal(signal);
        let ended = crawl.end().expect(0).says(&["draining", "once more stops at once"]);
        assert!(ended.took < Duration::from_secs(5), "{:?}", ended.took);
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
    let place = Place::new("endless");
    let (web, seed) = web(ModelConfig { endless: true, ..ModelConfig::default() });
    let (dir, config) = (place.at("crawl"), place.config(&web, "crawl.shards = 2"));
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
    let place = Place::new("abort");
    let ((web, seed), slow) = (web(model()), SlowServer::start());
    let (dir, config, slow_url) = (place.at("crawl"), place.config(&web, "crawl.shards = 2"), slow.url());
    let arguments = ["crawl", &seed, &slow_url, "--dir", &dir, "-c", &config, "--json", "-"];
    let mut crawl = start(&arguments);
    crawl.wait_until("the slow page and others are under way", || slow.asked() > 0 && web.report().requests >= 300);
    crawl.signal("INT");
    crawl.wait_for("draining");
    crawl.signal("INT");
    let ended = crawl.end().expect(0);
    assert!(ended.took < Duration::from_secs(2), "{:?} after the second signal", ended.took);
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
    let place = Place::new("too-late");
    let (names, server) = (NameServer::start(Ipv4Addr::LOCALHOST), SlowServer::start());
    let lines = "politeness.host_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\ncrawl.shards = 2\n";
    let config = place.file("config.toml", &format!("dns.servers = [\"{}\"]\n{lines}", names.addr));
    let urls: Vec<String> = (0..300).map(|number| format!("http://h{number}.test:{}/slow", server.port)).collect();
    let (dir, seeds) = (place.at("crawl"), place.file("seeds.txt", &urls.join("\n")));
    let arguments = ["crawl", "--seeds", &seeds, "--dir", &dir, "-c", &config, "--json", "-"];
    let mut crawl = start(&arguments);
    crawl.wait_until("all pages are under way", || server.asked() == urls.len() as u64);
    crawl.signal("INT");
    crawl.wait_for("draining");
    crawl.signal("INT");
    server.let_go_each(Duration::from_millis(1));
    let ended = crawl.end().expect(0);
    assert!(ended.took < Duration::from_secs(2), "{:?} after the second signal", ended.took);
    is_closed(&dir);
    let early = stored(&dir).len();
    server.let_go();
    run(&arguments).expect(0);
    is_closed(&dir);
    let harvest = stored(&dir);
    println!("{early} pages came in time, {} came again", harvest.len() - early);
    let twice: Vec<&String> = harvest.iter().filter(|(_, it)| it.len() > 1).map(|(url, _)| url).collect();
    assert!(twice.is_empty(), "{} of {} are stored twice: {twice:#?}", twice.len(), urls.len());
    assert_eq!(harvest.len(), urls.len());
}

/// Kills the crawl at several places, goes on, and says what that cost.
fn killed(name: &str, shards: &str) -> Verdict {
    let place = Place::new(name);
    let (web, seed) = web(model());
    let (dir, config) = (place.at("crawl"), place.config(&web, ""));
    let slow = "politeness.host_delay=10ms";
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-", "--shards", shards, "--set", slow];
    let journals = || {
        let shards = 0..shards.parse().expect("a number");
        let length = |shard: u16| std::fs::metadata(place.at(&format!("crawl/shard-{shard:02}/journal")));
        shards.map(|shard| length(shard).map_or(0, |journal| journal.len())).collect::<Vec<u64>>()
    };
    // First before anything was noted, then each time that every shard has noted something more.
    for (round, beyond) in [(0, 200), (1, 0), (2, 100), (3, 20)] {
        let (before, mut since) = (journals(), None);
        let mut crawl = start(&arguments);
        crawl.wait_until("some pages", || {
            let has_grown = round == 0 || journals().iter().zip(&before).all(|(now, before)| now > before);
            let requests = web.report().requests;
            has_grown && requests >= *since.get_or_insert(requests) + beyond
        });
        crawl.signal("KILL");
        crawl.end().expect(128 + 9);
    }
    assert_eq!(run(&arguments).expect(0).json()["ended"], "finished");
    is_closed(&dir);
    let verdict = Verdict::of(&stored(&dir), &truth(&web));
    println!(
        "{shards} shards, killed four times: of {} pages {} are missing, {} captures are a second one",
        verdict.expected, verdict.missing, verdict.double
    );
    assert_eq!((verdict.wrong, verdict.beyond), (0, 0), "{verdict:#?}");
    verdict
}

#[test]
fn killed_it_goes_on_where_the_journal_ends() {
    killed("kill-1", "1").expect_whole();
}

#[test]
fn killed_with_two_shards_it_goes_on_too() {
    killed("kill-2", "2").expect_whole();
}
