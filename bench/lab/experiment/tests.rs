//! Tests of experiments: by the example of the paper, and on small random webs.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::xxh3_64;

use super::*;
use crate::plan::{EdgeFiles, GraphSettings, Memory, PageGraph, SiteKind, read_edges};
use ringcrawl_base::time::Duration;
use ringcrawl_base::{Rng, TempFolder};
use ringcrawl_brain::route::Partition;
use ringcrawl_url::Url;

/// A graph of links of URLs.
fn graph(links: &[(String, String)]) -> PageGraph {
    let folder = TempFolder::new("experiments");
    let text: String = links.iter().map(|(from, to)| format!("{from}\t{to}\n")).collect();
    let edges = std::path::PathBuf::from(folder.file("links", &text));
    let files = EdgeFiles { edges: &edges, nodes: None, sites: None };
    let settings = GraphSettings { key: SiteKind::Domain, url_bytes: 50 };
    read_edges(&files, settings, &mut Memory::new(1 << 24), &mut |_| ()).expect("a graph")
}

/// A random web of `sites` sites with two hosts each.
fn random_web(rng_seed: u64, sites: u64, pages: u64, links: u64) -> GraphWeb {
    let mut rng = Rng::new(rng_seed);
    let mut url = |site: u64| format!("http://h{}.s{site}.test/p?a=1&b={}", rng.below(2), rng.below(pages / sites));
    let mut draw = Rng::new(rng_seed ^ 1);
    let links: Vec<(String, String)> = (0..links)
        .map(|_| {
            let site = draw.below(sites);
            let other = if draw.percent(70) { site } else { draw.below(sites) };
            (url(site), url(other))
        })
        .collect();
    GraphWeb::new(graph(&links))
}

fn treatment(partition: &str, mode: &str, shards: u16, rng_seed: u64) -> Treatment {
    let [partition, mode, order] = [partition, mode, "breadth-first"].map(str::to_owned);
    Treatment { partition, mode, order, seeds: None, limit: 0, shards, rng_seed }
}

fn run(web: &GraphWeb, treatment: &Treatment, seeds: &[u32], pages_max: u64) -> (ExperimentRow, Observed) {
    run_slowly(web, treatment, seeds, pages_max, Duration::from_millis(100))
}

fn run_slowly(
    web: &GraphWeb,
    treatment: &Treatment,
    seeds: &[u32],
    pages_max: u64,
    delay: Duration,
) -> (ExperimentRow, Observed) {
    let mut config = treatment.config(&base(delay)).expect("a configuration");
    config.crawl.pages_max = pages_max;
    let urls: Vec<Url> = seeds.iter().map(|page| Url::parse(&web.graph().url(*page)).expect("a URL")).collect();
    let (shards, rng_seed) = (treatment.shards, treatment.rng_seed);
    let (partition, ranks, replicated) = Default::default();
    let setting = Setting { web, config, shards, rng_seed, seeds: &urls, partition, ranks, replicated };
    let mut looks = 0;
    let mut has_time = |_| {
        looks += 1;
        looks < 2_000
    };
    let observed = crawl(&setting, &mut has_time).expect("it ends");
    (ExperimentRow::of(treatment, &Ground::new(web.graph(), seeds), &observed), observed)
}

/// The longest delay possible, shared by two hosts: a robots.txt would expire before a page has its turn, and be
/// fetched again.
#[test]
fn a_day_between_requests_is_no_reason_to_fetch_nothing_but_rules() {
    let web = random_web(3, 2, 20, 60);
    let all: Vec<u32> = web.graph().all().collect();
    let slow = run_slowly(&web, &treatment("site-hash", "exchange", 2, 3), &all, 0, Duration::from_secs(86_400)).0;
    assert_eq!((slow.pages, slow.coverage), (all.len() as u64, 1.0));
    assert!(slow.seconds > 10.0 * 86_400.0);
}

/// Shards that want the same hosts share their turns.
#[test]
fn no_shard_is_first_at_every_host() {
    let web = random_web(9, 40, 2_000, 6_000);
    let all: Vec<u32> = web.graph().all().collect();
    for (partition, mode) in [("url-hash", "exchange"), ("site-hash", "independent")] {
        let row = run(&web, &treatment(partition, mode, 4, 9), &all, all.len() as u64 / 4).0;
        assert!(row.balance_pages < 1.35, "{partition} {mode}: {}", row.balance_pages);
    }
}

/// Figure 2 of "Parallel Crawlers", as `tests/operator/modes.rs` crawls it over real sockets.
#[test]
fn the_example_of_the_paper() {
    let partition = Partition::by_site(2);
    let host = |shard| (0..).map(|number| format!("s{number}.test")).find(|name| partition.home_of(name) == shard);
    let hosts = [host(0).expect("a name"), host(1).expect("a name")];
    let url = |page: &str| format!("http://{}/{page}", hosts[usize::from("fghi".contains(page))]);
    let links = ["ab", "ac", "cg", "de", "fg", "fi", "gh", "hd"].map(|link| (url(&link[..1]), url(&link[1..])));
    let web = GraphWeb::new(graph(&links));
    let seeds = ["a", "f"].map(|page| web.page_of(&url(page)).expect("a page"));
    for (mode, pages, distinct, sent, crossing) in
        [("firewall", 7, 7, 0, 2), ("exchange", 9, 9, 2, 2), ("cross-over", 13, 9, 0, 4), ("independent", 13, 9, 0, 4)]
    {
        let (row, _) = run(&web, &treatment("site-hash", mode, 2, 1), &seeds, 0);
        let found = (row.pages, row.distinct, row.reachable, row.urls_sent, row.links_crossing);
        assert_eq!(found, (pages, distinct, 9, Some(sent), crossing), "{mode}");
    }
}

/// What each mode must achieve on any web, and each partition: computed from the graph alone.
#[test]
fn modes_and_partitions_keep_their_promises() {
    let web = random_web(7, 30, 600, 2_000);
    let graph = web.graph();
    let seeds = draw_seeds(graph, 12, 3);
    assert_eq!((seeds.len(), seeds.is_sorted()), (12, true));
    let reachable = Ground::new(graph, &seeds).reachable();
    for partition in ["site-hash", "host-hash", "url-hash", "hierarchical", "consistent"] {
        for mode in ["exchange", "firewall", "cross-over", "independent"] {
            let treatment = treatment(partition, mode, 3, 3);
            let (row, observed) = run(&web, &treatment, &seeds, 0);
            assert_eq!(row.reachable, reachable);
            let config = treatment.config(&base(Duration::ZERO)).expect("a configuration");
            let owner = Partition::new(&config.partition, 3);
            let owner_of = |page: u32| owner.shard_of(&Url::parse(&graph.url(page)).expect("a URL"));
            let crossing: usize = observed
                .fetches
                .iter()
                .map(|fetch| graph.targets_of(fetch.page).iter().filter(|to| owner_of(**to) != fetch.shard).count())
                .sum();
            assert_eq!(row.links_crossing, crossing as u64, "{partition} {mode}");
            let is_own = observed.fetches.iter().all(|fetch| owner_of(fetch.page) == fetch.shard);
            match mode {
                "exchange" => {
                    assert!(row.pages == reachable && row.distinct == reachable && is_own, "{partition}: {row:?}");
                    assert!(row.urls_sent <= Some(row.links_crossing), "{partition}: {row:?}");
                    assert_eq!(row.good[9], reachable);
                }
                "firewall" => {
                    assert!(row.pages == row.distinct && row.distinct <= reachable && is_own, "{partition}: {row:?}");
                    assert_eq!((row.urls_sent, row.bytes_sent), (Some(0), Some(0)));
                }
                _ => {
                    assert!(row.distinct == reachable && row.pages >= reachable, "{partition} {mode}: {row:?}");
                    assert_eq!(row.urls_sent, Some(0));
                    // All hosts end in .test, so that one shard has them.
                    assert_eq!(row.pages == reachable, partition == "hierarchical", "{partition} {mode}: {row:?}");
                }
            }
        }
    }
}

#[test]
fn a_seed_gives_one_row_and_another_one_another() {
    let web = random_web(8, 20, 400, 1_500);
    let row = |rng_seed| {
        let seeds = draw_seeds(web.graph(), 3, rng_seed);
        run(&web, &treatment("url-hash", "exchange", 4, rng_seed), &seeds, 0).0
    };
    let (one, again, other) = (row(1), row(1), row(2));
    assert_eq!((&one, one.line()), (&again, again.line()));
    assert_ne!(one.line(), other.line());
    assert_eq!(one.line().split(',').count(), ExperimentRow::columns().split(',').count());
}

/// A host gets no request before its delay allows it, whichever shards send it; a limit of pages is exact.
#[test]
fn time_and_limits_are_those_of_the_crawler() {
    let web = random_web(9, 1, 100, 600);
    let seeds = draw_seeds(web.graph(), 2, 1);
    let (row, observed) = run(&web, &treatment("url-hash", "exchange", 3, 1), &seeds, 0);
    // One site, a request each 100 ms, robots.txt included; each host answers after its own time.
    assert!(row.seconds >= 0.1 * (row.pages - 1) as f64 && row.seconds_90 < row.seconds, "{row:?}");
    let mut begun: Vec<Duration> = observed
        .fetches
        .iter()
        .map(|fetch| {
            let url = Url::parse(&web.graph().url(fetch.page)).expect("a URL");
            fetch.at - GraphWeb::latency(url.host(), 1)
        })
        .collect();
    begun.sort_unstable();
    assert!(begun.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_millis(100)), "{begun:?}");
    let (limited, observed) = run(&web, &treatment("site-hash", "exchange", 2, 1), &seeds, 25);
    assert_eq!((limited.pages, limited.reachable), (25, row.reachable));
    // Its quality, recomputed.
    let graph = web.graph();
    let mut reached: BTreeSet<u32> = seeds.iter().copied().collect();
    while let Some(more) = reached.iter().flat_map(|page| graph.targets_of(*page)).find(|page| !reached.contains(page))
    {
        reached.insert(*more);
    }
    let links_to = |page: u32| reached.iter().filter(|from| graph.targets_of(**from).contains(&page)).count();
    let mut best: Vec<u32> = reached.iter().copied().collect();
    best.sort_by_cached_key(|page| (std::cmp::Reverse(links_to(*page)), xxh3_64(&page.to_le_bytes())));
    assert_eq!(best.len() as u64, limited.reachable);
    let good = SHARES.map(|share| {
        let count = (best.len() * share as usize).div_ceil(100);
        let first: Vec<u32> = observed.fetches.iter().take(count).map(|fetch| fetch.page).collect();
        first.into_iter().filter(|page| best[..count].contains(page)).count() as u64
    });
    assert_eq!((limited.good, good[9]), (good, 25));
}

#[test]
fn quality_is_counted_as_the_paper_has_it() {
    // Backlinks: d 3, c 2, b 1, a 0.
    let url = |page: char| format!("http://s.test/{page}");
    let links: Vec<(String, String)> = ["ab", "ac", "ad", "bc", "bd", "cd"]
        .iter()
        .map(|link| (url(link.as_bytes()[0].into()), url(link.as_bytes()[1].into())))
        .collect();
    let graph = graph(&links);
    let web = GraphWeb::new(graph);
    let page = |name| web.page_of(&url(name)).expect("a page");
    let ground = Ground::new(web.graph(), &[page('a')]);
    let fetch = |(name, seconds): (char, u64)| Fetch {
        page: page(name),
        shard: 0,
        at: Duration::from_secs(seconds),
        bytes: 10,
    };
    let fetches: Vec<Fetch> = [('a', 1), ('d', 2), ('d', 3), ('b', 4)].map(fetch).to_vec();
    let observed = Observed { fetches, links_crossing: 3, urls_sent: 2, bytes_sent: 40 };
    let row = ExperimentRow::of(&treatment("site-hash", "independent", 2, 5), &ground, &observed);
    assert_eq!((row.pages, row.distinct, row.reachable, row.overlap, row.coverage), (4, 3, 4, 1.0 / 3.0, 0.75));
    // P of 1, 2, 3 and 4 pages: d; d, c; d, c, b; all. A: a; a, d; a, d, d; a, d, d, b.
    assert_eq!(row.good, [0, 0, 1, 1, 1, 1, 1, 3, 3, 3]);
    assert_eq!((row.pages_max, row.balance_pages, row.bytes_max, row.balance_bytes), (4, 2.0, 40, 2.0));
    assert_eq!((row.seconds, row.seconds_90, row.urls_sent_per_page), (4.0, 4.0, Some(0.5)));
}
