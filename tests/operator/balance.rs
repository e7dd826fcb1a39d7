//! Sites that move between shards while a crawl goes on: nothing is lost or fetched twice, manners are kept, and they stay moved.

use ringcrawl_base::TempFolder;
use ringcrawl_web::{ModelConfig, truth};

use crate::rig::harvest::{Verdict, stored};
use crate::rig::program::run;
use crate::rig::web::{self, web};

/// One point of each shard on the circle: one of them has most sites.
const SKEWED: &str = "partition.by = \"consistent\"\npartition.replicas = 1\npartition.balance = \"sites\"\n\
                      partition.balance_above = 120\npartition.balance_urls_min = 20\npartition.balance_interval = \"1s\"\n\
                      politeness.slow_start = 1\npoliteness.response_factor = 0";

#[test]
fn sites_move_from_the_most_loaded_shard() {
    let folder = TempFolder::new("balance");
    let (web, seed) = web(ModelConfig { sites: 40, pages: 2_400, addresses: 32, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, SKEWED));
    let set = ["--shards", "4", "--set", "politeness.host_delay=60ms", "--json", "-"];
    let ended = run(&[&["crawl", &seed, "--dir", &dir, "-c", &config][..], &set].concat()).expect(0);
    let moves = ended.err.lines().filter(|line| line.contains(" waiting URLs move; ")).count();
    assert!(moves > 0, "{}", ended.err);
    let json = ended.json();
    assert_eq!((&json["ended"], &json["shards"]), (&"finished".into(), &4.into()));

    let truth = truth::reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    Verdict::of(&stored(&dir), &truth).expect_perfect();
    let pages = truth.fetched.values().filter(|expected| expected.status == 200).count();
    assert_eq!(json["pages"], pages, "of all runs together");
    run(&["store", "verify", &dir]).expect(0);

    // They are where they were moved to, and all is over.
    let moved = std::fs::read_to_string(folder.at("crawl/moved-sites")).expect("a list");
    assert!(moved.lines().next().is_some_and(|line| line.contains('\t')), "{moved}");
    let again = run(&["crawl", "--dir", &dir, "--json", "-"]).expect(0).json();
    assert_eq!(again["pages"], 0, "{again:#}");
    let watch = web.stop().watch.expect("the web is watched");
    assert_eq!((watch.double_fetches, watch.before_robots, watch.host_in_flight_max), (0, 0, 1), "{watch:#?}");
    assert!(watch.host_gap_ms_min.is_some_and(|gap| gap >= 60.0), "{watch:#?}");

    // Without the list nobody knows who has what.
    std::fs::remove_file(folder.at("crawl/moved-sites")).expect("removed");
    let ended = run(&["crawl", "--dir", &dir]).expect(2);
    assert!(ended.err.contains("moved-sites: it is missing; restore the file"), "{}", ended.err);
}

#[test]
fn where_sites_cannot_move_that_is_told() {
    let folder = TempFolder::new("balance-mistakes");
    for (line, words) in [
        ("partition.by = \"url-hash\"", "balance needs a partition that gives each site one shard"),
        ("partition.by = \"dynamic\"", "balance needs a partition that gives each site one shard"),
        ("exchange.mode = \"independent\"", "balance needs a partition that gives each site one shard"),
        ("partition.balance_above = 100", "from 105 to"),
    ] {
        let config = folder.file("config.toml", &format!("partition.balance = \"sites\"\n{line}\n"));
        let ended = run(&["check-config", &config]).expect(2);
        assert!(ended.err.contains(words), "{line}: {}", ended.err);
    }
}
