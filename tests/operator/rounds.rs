//! Crawls in rounds: which pages each round fetches, by the web's own answers, also where one is killed.

use std::collections::{BTreeSet, HashSet};

use ringcrawl_base::TempFolder;
use ringcrawl_html::{Kinds, scan_raw};
use ringcrawl_url::{Absolute, Url};
use ringcrawl_web::truth::reachable;
use ringcrawl_web::{Model, ModelConfig};

use crate::rig::harvest::stored;
use crate::rig::program::{run, start};
use crate::rig::web::{self, web};

/// What a crawl of the sites of `seeds` fetches, and which links leave them.
fn round(model: &Model, denied: &BTreeSet<Url>, seeds: &BTreeSet<Url>) -> (BTreeSet<String>, BTreeSet<Url>) {
    let sites: HashSet<&str> = seeds.iter().map(Url::site).collect();
    let (mut fetched, mut external, mut queue) = (BTreeSet::new(), BTreeSet::new(), Vec::from_iter(seeds.clone()));
    while let Some(url) = queue.pop() {
        if denied.contains(&url) || !fetched.insert(url.to_string()) {
            continue;
        }
        let mut body = Vec::new();
        let answer = model.answer_url(&url, &mut body);
        let mut targets = Vec::from_iter(answer.location.and_then(|location| url.join(&location).ok()));
        if answer.status == 200 && answer.content_type.starts_with("text/html") {
            let document = Absolute::parse(url.as_str()).expect("a URL");
            scan_raw(&body, Some(answer.content_type), &document, &Kinds::DEFAULT, &mut |raw| {
                targets.extend(raw.url.ok().and_then(|link| Url::parse(&link.to_string()).ok()));
            });
        }
        for target in targets {
            if sites.contains(target.site()) {
                queue.push(target);
            } else {
                external.insert(target);
            }
        }
    }
    (fetched, external)
}

fn urls(dir: &str) -> BTreeSet<String> {
    stored(dir).into_keys().collect()
}

fn listed(dir: &str, round: u32) -> BTreeSet<Url> {
    let text = std::fs::read_to_string(format!("{dir}/external-links-{round}")).expect("a list");
    text.lines().filter(|line| !line.starts_with('#')).map(|line| Url::parse(line).expect("a URL")).collect()
}

#[test]
fn each_round_is_one_site_further() {
    let folder = TempFolder::new("rounds");
    let (web, seed) = web(ModelConfig { sites: 60, pages: 240, addresses: 32, ..ModelConfig::default() });
    let model = web.model();
    let denied = reachable(model, &model.seeds(1)).expect("the web has an end").denied;
    let mut seeds: BTreeSet<Url> = model.seeds(1).into_iter().collect();
    let mut expected = Vec::new();
    for _ in 0..3 {
        let (fetched, mut external) = round(model, &denied, &seeds);
        external.retain(|url| !seeds.contains(url));
        seeds.extend(external.iter().cloned());
        expected.push((fetched, external));
    }
    let sizes: Vec<usize> = expected.iter().map(|(fetched, _)| fetched.len()).collect();
    println!("{sizes:?} URLs after each round");
    assert!(sizes.is_sorted_by(|one, other| one < other), "{sizes:?}");

    // By hand: what left one crawl is where the next one begins.
    let config = web::config(&folder, &web, "scope.follow = \"seed-sites\"\ncrawl.shards = 2");
    let by_hand = folder.at("by-hand");
    let listing = ["crawl", "--dir", &by_hand, "-c", &config, "--set", "links.external=list"];
    run(&[&listing[..], &[&seed]].concat()).expect(0).says(&["links left the scope"]);
    assert_eq!((urls(&by_hand), listed(&by_hand, 1)), expected[0]);
    let next = format!("{by_hand}/external-links-1");
    run(&[&listing[..], &["--seeds", &next]].concat()).expect(0);
    assert_eq!((urls(&by_hand), listed(&by_hand, 1)), expected[1]);

    // In one go, which is killed in its second round, and goes on with another number of shards.
    let dir = folder.at("crawl");
    let slow = ["--set", "politeness.host_delay=20ms"];
    let all = ["crawl", "--dir", &dir, "-c", &config, "--rounds", "3", "--json", "-"];
    let mut crawl = start(&[&all[..], &slow, &[&seed]].concat());
    let seeds_file = folder.at("crawl/seeds");
    crawl.wait_until("the second round", || {
        std::fs::read_to_string(&seeds_file).is_ok_and(|text| text.starts_with("# round 2"))
    });
    crawl.signal("KILL");
    crawl.end().expect(128 + 9);
    let ended = run(&[&all[..], &["--shards", "3"]].concat()).expect(0).says(&["round 3 of 3 begins with"]);
    assert_eq!(ended.json()["ended"], "finished");
    assert_eq!(urls(&dir), expected[2].0);
    assert_eq!((listed(&dir, 1), listed(&dir, 2), listed(&dir, 3)), {
        let [one, two, three] = [0, 1, 2].map(|round: usize| expected[round].1.clone());
        (one, two, three)
    });
    run(&["store", "verify", &dir]).expect(0);
    let waiting = run(&["urls", &dir, "--state", "waiting"]).expect(0).out;
    assert_eq!(waiting, "", "links that left the scope are no URLs of the crawl");

    // All rounds count for pages_max together.
    let few = folder.at("few");
    let first = expected[0].0.len();
    let max = (first + 20).to_string();
    let json =
        run(&["crawl", "--dir", &few, "-c", &config, "--rounds", "9", "--pages-max", &max, "--json", "-", &seed])
            .expect(0)
            .json();
    assert_eq!((json["ended"].as_str(), json["pages"].as_u64()), (Some("pages_max reached"), Some(first as u64 + 20)));
    run(&["crawl", "--dir", &folder.at("all"), "--rounds", "2", &seed])
        .expect(2)
        .says(&["crawl.rounds", "no link would leave the first round"]);
}
