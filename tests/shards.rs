//! However many shards share the work, the crawl stores the same: what the truth says, each URL once.
//!
//! Decides: every run is held against the truth (URL, status, length and digest of the payload), which was computed
//! without a crawler; runs that equal it equal each other. Manners are judged by the servers' own watch.
//! Leaves to others: what happens when a run is broken off (`operator`).

use crate::rig::harvest::{Verdict, open_files, stored};
use crate::rig::program::run;
use crate::rig::web::{self, web};
use ringcrawl_base::TempFolder;
use ringcrawl_web::truth::Truth;
use ringcrawl_web::{Model, ModelConfig, truth};

/// Crawls about 3,000 pages with `shards` shards and compares everything; `reach` takes from the truth what such a
/// crawl is known not to reach.
fn crawl(name: &str, shards: &str, more: &str, reach: impl FnOnce(&mut Truth, &Model)) {
    let folder = TempFolder::new(name);
    let (web, seed) = web(ModelConfig { sites: 120, pages: 3_000, addresses: 32, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, more));
    let ended = run(&["crawl", &seed, "--dir", &dir, "-c", &config, "--shards", shards, "--json", "-"]).expect(0);
    let json = ended.json();
    assert_eq!(json["ended"], "finished", "{json:#}");
    assert_eq!(json["shards"].to_string(), shards);
    assert_eq!((&json["queued"], &json["in_flight"]), (&0.into(), &0.into()));

    let mut truth = truth::reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    reach(&mut truth, web.model());
    let verdict = Verdict::of(&stored(&dir), &truth);
    assert!(verdict.expected > 3_000, "{verdict:?}");
    verdict.expect_perfect();
    let pages = truth.fetched.values().filter(|expected| expected.status == 200).count();
    assert_eq!(json["pages"], pages, "the summary counts what was stored");
    assert_eq!(open_files(&dir), [""; 0]);
    run(&["store", "verify", &dir]).expect(0);

    let report = web.stop();
    let watch = report.watch.expect("the web is watched");
    assert_eq!((watch.double_fetches, watch.double_examples), (0, Vec::new()));
    assert_eq!((report.denied, report.traps, watch.before_robots), (0, 0, 0));
    assert_eq!((watch.host_in_flight_max, watch.watch_full), (1, false));
    assert_eq!(watch.urls, verdict.expected as u64, "it asked for what it stored and for nothing else");
}

#[test]
fn one_shard() {
    crawl("shards-1", "1", "", |_, _| {});
}

#[test]
fn two_shards() {
    crawl("shards-2", "2", "", |_, _| {});
}

#[test]
fn four_shards() {
    crawl("shards-4", "4", "", |_, _| {});
}

/// Hosts of a site in several shards: a robots.txt that redirects to another shard's host is fetched there.
#[test]
fn three_shards_by_host() {
    crawl("shards-3", "3", "partition.by = \"host-hash\"\n", |_, _| {});
}

/// Sites that are given to shards as they are seen.
#[test]
fn three_shards_as_sites_are_seen() {
    crawl("shards-dynamic", "3", "partition.by = \"dynamic\"\n", |_, _| {});
}

/// URLs of a host in several shards: one robots.txt serves all, and one request at a time is made.
#[test]
fn three_shards_by_url() {
    crawl("shards-url", "3", "partition.by = \"url-hash\"\n", |_, _| {});
}

/// The least distance of two requests as the server sees it is never below what was set: 200 ms.
#[test]
fn delays_are_kept_by_the_servers_clock() {
    let model = ModelConfig { sites: 8, pages: 40, addresses: 4, ..ModelConfig::default() };
    let delay = |name, by, host_delay, ip_delay| {
        let folder = TempFolder::new(name);
        let (web, seed) = web(model.clone());
        let config = web::config(&folder, &web, "crawl.shards = 2");
        let by = format!("partition.by={by}");
        let host_delay = format!("politeness.host_delay={host_delay}");
        let ip_delay = format!("politeness.ip_delay={ip_delay}");
        let (dir, set) = (folder.at("crawl"), ["--set", &host_delay, "--set", &ip_delay, "--set", &by]);
        run(&[&["crawl", &seed, "--dir", &dir, "-c", &config][..], &set].concat()).expect(0);
        let truth = truth::reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
        Verdict::of(&stored(&dir), &truth).expect_perfect();
        web.stop().watch.expect("the web is watched")
    };
    for by in ["site-hash", "url-hash"] {
        let watch = delay("host-delay", by, "200ms", "0s");
        assert!(watch.host_gap_ms_min.is_some_and(|gap| gap >= 200.0), "{by}: {watch:#?}");
        assert_eq!(watch.host_in_flight_max, 1, "{by}");
        // Without a delay for hosts, hosts on one address would follow each other at once.
        assert!(watch.address_gap_ms_min.is_some_and(|gap| gap < 200.0), "{by}: {watch:#?}");
    }
    let watch = delay("ip-delay", "site-hash", "0s", "200ms");
    assert!(watch.address_gap_ms_min.is_some_and(|gap| gap >= 200.0), "{watch:#?}");
}
