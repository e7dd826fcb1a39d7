//! A crawl that follows an assignment: planned from an earlier crawl's links, whole and in part; and files that are none.

use ringcrawl_base::TempFolder;
use ringcrawl_web::{ModelConfig, truth};

use crate::rig::harvest::{Verdict, stored};
use crate::rig::program::{run, run_lab};
use crate::rig::web::{self, web};

/// What was planned is fetched once, with fewer URLs sent than by hash; of what was not, nothing is missing, and no host is asked two
/// things at once, although several shards may ask it.
#[test]
fn a_plan_of_one_crawl_is_the_next_ones_assignment() {
    let folder = TempFolder::new("vector");
    let model = ModelConfig { sites: 60, pages: 800, addresses: 32, ..ModelConfig::default() };
    let path = folder.at("vector");
    // Each web has ports of its own, which stand in the names of pages.
    let crawl = |name: &str, vector: &str, set: &[&str]| {
        let (web, seed) = web(model.clone());
        let [http, https] = [web.http_port, web.https_port].map(|port| format!(":{port}/"));
        std::fs::write(&path, vector.replace(":HTTP/", &http).replace(":HTTPS/", &https)).expect("a file");
        let (dir, config) = (folder.at(name), web::config(&folder, &web, ""));
        let order = ["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"];
        let json = run(&[&order[..], set].concat()).expect(0).json();
        let truth = truth::reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
        let verdict = Verdict::of(&stored(&dir), &truth);
        let named = move |text: String| text.replace(&http, ":HTTP/").replace(&https, ":HTTPS/");
        (json, verdict, web.stop().watch.expect("the web is watched"), named)
    };
    let (by_hash, verdict, _, named) = crawl("hash", "", &["--shards", "2"]);
    verdict.expect_perfect();
    let sent = |json: &serde_json::Value| json["exchanged_out"].as_u64().expect("a number");
    for unit in ["site", "page"] {
        let dir = folder.at("hash");
        run_lab(&["plan", "--dir", &dir, "--vector", &path, "--shards", "2", "--by", unit]).expect(0);
        let lines = named(std::fs::read_to_string(&path).expect("a file"));
        let set = ["--set", "partition.by=vector", "--set", &format!("partition.vector={path}")];
        let (json, verdict, watch, _) = crawl(unit, &lines, &set);
        verdict.expect_perfect();
        assert_eq!((&json["shards"], watch.double_fetches, watch.host_in_flight_max), (&2.into(), 0, 1), "{unit}");
        if unit == "site" {
            assert!(sent(&json) < sent(&by_hash), "{} by plan, {} by hash", sent(&json), sent(&by_hash));
        }

        // Every third line is lost.
        let kept = lines.lines().enumerate().filter(|(at, _)| at % 3 != 2);
        let kept: String = kept.map(|(_, line)| format!("{line}\n")).collect();
        let (_, verdict, watch, _) = crawl(&format!("{unit}-part"), &kept, &set);
        assert_eq!((verdict.missing, verdict.wrong, verdict.beyond), (0, 0, 0), "{verdict:?}");
        assert!(verdict.double > 0 && verdict.double <= verdict.expected, "{unit}: {verdict:?}");
        assert_eq!((watch.host_in_flight_max, watch.before_robots), (1, 0), "{unit}");
    }
}

#[test]
fn assignments_that_do_not_fit_are_told_before_anything_starts() {
    let folder = TempFolder::new("vector-mistakes");
    let vector = folder.file("vector", "ringcrawl-vector 1 site 3\n0\ta.test\n2\tb.test\n");
    let dir = folder.at("crawl");
    let crawl = |seed: &str, more: &[&str]| {
        let by = ["--set", "partition.by=vector", "--set", &format!("partition.vector={vector}")];
        let order = ["crawl", seed, "--dir", &dir, "--set", "fetch.private_addresses=loopback-only"];
        run(&[&order[..], &by, more].concat())
    };
    let told = |more: &[&str], words: &str| {
        let ended = crawl("http://127.0.0.1:40009/", more).expect(2);
        assert!(ended.err.contains(words), "{words}: {}", ended.err);
        assert!(!std::path::Path::new(&dir).exists());
    };
    told(&["--shards", "2"], "assigns to 3 shards, and crawl.shards is 2: expected 3, or 0");
    told(&["--set", "partition.ram_bytes_max=1KiB", "--set", "partition.by=site-hash"], "go together");
    told(&["--set", "partition.vector="], "go together");
    told(&["--set", "partition.vector=/none"], "/none: No such file");
    std::fs::write(&vector, "ringcrawl-vector 1 site 3\n0\ta.test\n3\tb.test\n").expect("a file");
    told(&[], "vector:3: there is no shard 3");
    let config = folder.file("config.toml", &format!("partition.by = \"vector\"\npartition.vector = {vector:?}\n"));
    let ended = run(&["check-config", &config]).expect(2);
    assert!(ended.err.contains("vector:3: there is no shard 3"), "{}", ended.err);

    // A crawl keeps the assignment that it was begun with.
    std::fs::write(&vector, "ringcrawl-vector 1 site 3\n0\ta.test\n2\tb.test\n").expect("a file");
    run(&["check-config", &config]).expect(0);
    crawl("http://127.0.0.1:40009/", &["--set", "crawl.time_max=1s"]).expect(3);
    std::fs::write(&vector, "ringcrawl-vector 1 site 3\n0\ta.test\n1\tb.test\n").expect("a file");
    let ended = run(&["crawl", "--dir", &dir]).expect(2);
    assert!(ended.err.contains("partition.by vector site "), "{}", ended.err);
    std::fs::write(&vector, "ringcrawl-vector 1 site 2\n0\ta.test\n1\tb.test\n").expect("a file");
    let ended = run(&["crawl", "--dir", &dir]).expect(2);
    assert!(ended.err.contains("assigns to 2 shards, and crawl.shards is 3"), "{}", ended.err);
}
