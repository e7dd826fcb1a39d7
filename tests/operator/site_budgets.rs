//! SiteQuotas of sites, over kills and another number of shards.

use std::collections::{BTreeMap, BTreeSet};

use ringcrawl_base::TempFolder;
use ringcrawl_url::Url;
use ringcrawl_web::ModelConfig;

use super::seeds::{config, names_server, page};
use crate::rig::harvest::{Harvest, stored};
use crate::rig::program::{run, start};
use crate::rig::web::{self, web};

/// Pages of each site, and how often one was stored again.
fn pages(harvest: &Harvest) -> (BTreeMap<String, usize>, usize) {
    let (mut sites, mut again) = (BTreeMap::new(), 0);
    for (url, captures) in harvest {
        let pages = captures.iter().filter(|capture| (200..300).contains(&capture.status)).count();
        let url = Url::parse(url).expect("a URL");
        *sites.entry(url.site().to_owned()).or_default() += pages.min(1);
        again += pages.saturating_sub(1);
    }
    (sites, again)
}

fn segments_bytes(dir: &str) -> u64 {
    let segments = ringcrawl_warc::read::find_segments(dir.as_ref()).unwrap_or_default();
    segments.iter().filter_map(|path| std::fs::metadata(path).ok()).map(|file| file.len()).sum()
}

/// Pages of a site that two kills may leave unsaid, each.
const UNSAID_MAX: usize = 8;

#[test]
fn budgets_hold_over_kills_and_another_number_of_shards() {
    let folder = TempFolder::new("site-budgets");
    let (web, seed) = web(ModelConfig { sites: 30, pages: 3_000, addresses: 32, ..ModelConfig::default() });
    let more = "budget.site_pages_max = 20\njournal.sync_interval = \"50ms\"";
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, more));
    let seed = format!("{seed} pages=35");
    for (run, shards) in ["4", "2"].into_iter().enumerate() {
        let delay = ["--set", "politeness.host_delay=10ms"];
        let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--shards", shards];
        let mut crawl = start(&[&arguments[..], &delay].concat());
        let until = segments_bytes(&dir) + 100_000;
        crawl.wait_until(&format!("pages of run {run}"), || segments_bytes(&dir) >= until);
        crawl.signal("KILL");
        crawl.end().expect(128 + 9);
    }
    let arguments = ["crawl", "--dir", &dir, "-c", &config, "--shards", "3", "--json", "-"];
    let json = run(&arguments).expect(0).json();
    assert_eq!(json["ended"], "finished");
    let (sites, again) = pages(&stored(&dir));
    let seeds_site = Url::parse(seed.split(' ').next().unwrap_or_default()).expect("a URL").site().to_owned();
    println!("{sites:?}, {again} pages again");
    // What a kill left unsaid may have been fetched, and is not asked for again.
    for (site, pages) in &sites {
        let budget = if *site == seeds_site { 35 } else { 20 };
        assert!(*pages <= budget + UNSAID_MAX, "{site}: {pages} of {budget}");
    }
    assert!(sites.len() > 20 && sites.values().filter(|pages| **pages >= 20).count() > 10, "{sites:?}");
    let of_seed = |sites: &BTreeMap<String, usize>| sites.get(&seeds_site).copied().unwrap_or_default();
    assert!((35..=35 + UNSAID_MAX).contains(&of_seed(&sites)), "{sites:?}");
    // All else has its word, and none is lost.
    let listed = run(&["urls", &dir]).expect(0).out;
    let causes: BTreeSet<&str> = listed.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    assert!(causes.contains("over-budget") && !listed.contains("waiting\t"), "{causes:?}");
    assert!(json["urls_over_budget"].as_u64() > Some(100), "{json:#}");
    // Under a larger one they are asked for.
    let raised = ["--set", "budget.site_pages_max=0", "--retry-failed"];
    let json = run(&[&arguments[..], &raised].concat()).expect(0).json();
    assert_eq!((json["ended"].as_str(), json["urls_over_budget"].as_u64() > Some(0)), (Some("finished"), true));
    let (sites, _) = pages(&stored(&dir));
    assert!(sites.values().any(|pages| *pages > 60) && of_seed(&sites) <= 35 + UNSAID_MAX, "{sites:?}");
}

/// Two hosts of a site, two directories of a host, and what is in neither: each seed has its own pages, also over a restart.
#[test]
fn two_seeds_of_a_site_keep_their_own_options() {
    let folder = TempFolder::new("site-parts");
    let (addr, _) = names_server(|place, port| {
        let mut links: String = (0..12).map(|number| format!("<a href=p{number}>x</a>")).collect();
        if place == "a.s.test/" {
            links.push_str(&format!("<a href='http://c.s.test:{port}/'>a host without a seed</a>"));
        }
        page(&links)
    });
    let (port, dir) = (addr.port(), folder.at("crawl"));
    let config = config(&folder, "");
    let seeds = [("a.s.test", "", 3), ("b.s.test", "", 5), ("s.test", "x/", 2), ("s.test", "y/", 4)];
    let lines: Vec<String> =
        seeds.iter().map(|(host, path, pages)| format!("http://{host}:{port}/{path} pages={pages}")).collect();
    let arguments: Vec<&str> =
        ["crawl", "--dir", &dir, "-c", &config].into_iter().chain(lines.iter().map(String::as_str)).collect();
    run(&[&*arguments, &["--pages-max", "7"]].concat()).expect(0);
    run(&arguments).expect(0);
    let pages = |prefix: &str| {
        run(&["urls", &dir, "--cause", "200", "--prefix", &format!("http://{prefix}")]).expect(0).out.lines().count()
    };
    for (host, path, expected) in seeds {
        assert_eq!(pages(&format!("{host}:{port}/{path}")), expected, "{host}/{path}");
    }
    assert_eq!(pages(&format!("c.s.test:{port}/")), 4, "the last line holds for the rest");
    let over = run(&["urls", &dir, "--cause", "over-budget"]).expect(0).out;
    assert_eq!(over.lines().count(), 5 * 13 - (3 + 5 + 2 + 4 + 4));
}
