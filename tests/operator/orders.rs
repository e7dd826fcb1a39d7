//! Orders of the frontier, as operators choose them: `frontier.order`, and ranks from an earlier crawl.

use std::collections::BTreeSet;

use ringcrawl_base::TempFolder;
use ringcrawl_web::ModelConfig;

use crate::rig::program::{run, run_lab};
use crate::rig::web::{self, web};

fn stored(dir: &str) -> BTreeSet<String> {
    let listed = run(&["urls", dir, "--json"]).expect(0);
    let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    let urls: Vec<String> =
        listed.out.lines().map(|text| line(text)["url"].as_str().expect("a URL").to_owned()).collect();
    let stored: BTreeSet<String> = urls.iter().cloned().collect();
    assert_eq!(stored.len(), urls.len(), "none is stored twice");
    stored
}

/// A crawl, its ranks, and crawls by these and by every other order: all of the same pages. The order may change when one goes on.
#[test]
fn every_order_crawls_the_same_pages() {
    let folder = TempFolder::new("orders");
    let (web, seed) = web(ModelConfig { sites: 20, pages: 300, addresses: 8, ..ModelConfig::default() });
    let config = web::config(&folder, &web, "crawl.shards = 2\nfrontier.backlinks_exchange_pages = 5");
    let (first, ranks) = (folder.at("breadth-first"), folder.at("ranks"));
    run(&["crawl", &seed, "--dir", &first, "-c", &config]).expect(0);
    run_lab(&["plan", "--dir", &first, "--pagerank", &ranks]).expect(0);
    let expected = stored(&first);
    assert!(expected.len() > 300);
    for order in ["depth-first", "random", "backlinks", "rank"] {
        let dir = folder.at(order);
        let order = format!("frontier.order={order}");
        let crawl = ["crawl", &seed, "--dir", &dir, "-c", &config, "--set", &format!("frontier.ranks={ranks}")];
        run(&[&crawl[..], &["--set", &order, "--set", "crawl.pages_max=100"]].concat()).expect(0);
        assert!(stored(&dir).len() > 100, "{order}: the others are known, and wait");
        // What waits goes on by another order, and then by its own.
        let go_on = ["crawl", "--dir", &dir, "--set"];
        run(&[&go_on[..], &["frontier.order=random", "--set", "crawl.pages_max=100"]].concat()).expect(0);
        run(&[&go_on[..], &[&order, "--set", "crawl.pages_max=0"]].concat()).expect(0);
        assert_eq!(stored(&dir), expected, "{order}");
    }
}

#[test]
fn ranks_that_are_none_stop_a_crawl_before_it_begins() {
    let folder = TempFolder::new("bad-orders");
    let (dir, bad) = (folder.at("crawl"), folder.file("bad", "0.5\thttp://a.test/\n\nbest\thttp://b.test/\n"));
    let named = ["agent.name=a", "agent.url=https://a.example/", "agent.email=a@a.example", "frontier.order=rank"];
    let named = [&named[..], &["frontier.order_ram_bytes_max=1MiB"]].concat();
    let named: Vec<&str> = named.iter().flat_map(|set| ["--set", *set]).collect();
    let long = folder.file("long", &"1\thttp://a.test/\n".repeat(43_691));
    let crawl = [&["crawl", "http://s.test/", "--dir", &dir][..], &named[..]].concat();
    for (ranks, words) in [
        (bad.as_str(), &["frontier.ranks: ", "bad:3: \"best\" is not a number"][..]),
        (
            &long,
            &[
                "frontier.ranks: ",
                "long:43691: more than 43690 URLs: each takes 24 bytes of frontier.order_ram_bytes_max; raise",
            ],
        ),
        (&folder.at("none"), &["frontier.ranks: ", "none: No such file"]),
        ("", &["no URL has a rank: expected frontier.ranks as well"]),
    ] {
        run(&[&crawl[..], &["--set", &format!("frontier.ranks={ranks}")]].concat()).expect(2).says(words);
    }
    run(&["crawl", "http://s.test/", "--dir", &dir, "--set", "frontier.order=best"]).expect(2).says(&["backlinks"]);
    for (key, words) in [("exchange.replicated", "bad:3"), ("store.dedupe_against", "store.dedupe_against")] {
        let set = if key.starts_with("store") { format!("{key}=[{bad:?}]") } else { format!("{key}={bad}") };
        run(&[&crawl[..10], &["--set", &set]].concat()).expect(2).says(&[words]);
    }
    assert!(!std::path::Path::new(&dir).exists(), "whoever is refused finds nothing made");
}
