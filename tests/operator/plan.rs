//! `ringcrawl-lab plan`: from a list of links, and from a crawl's directory, held against what is read there by other means.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ringcrawl_base::TempFolder;
use ringcrawl_html::{self as html, Budget, Kinds, Page};
use ringcrawl_url::Url;
use ringcrawl_warc::content::content;
use ringcrawl_warc::read::{SegmentReader, find_segments, read_rest};
use ringcrawl_web::ModelConfig;

use crate::rig::program::{run, run_lab};
use crate::rig::web::{self, web};

/// Two clusters of six sites with five pages each, and one link between them.
fn clusters() -> String {
    let url = |cluster: u32, site: u32, page: u32| format!("http://s{site}.c{cluster}.test/{page}");
    let mut text = String::new();
    let mut link = |from: String, to: String| text.push_str(&format!("{from}\t{to}\n"));
    for cluster in 0..2 {
        for (site, page) in (0..6).flat_map(|site| (0..5).map(move |page| (site, page))) {
            link(url(cluster, site, page), url(cluster, (site + 1) % 6, page));
            link(url(cluster, site, page), url(cluster, (site + 2) % 6, (page + 1) % 5));
            link(url(cluster, site, page), url(cluster, site, 0));
        }
    }
    link(url(0, 0, 0), url(1, 0, 0));
    text
}

#[test]
fn two_clusters_from_a_list_of_links() {
    let folder = TempFolder::new("plan-edges");
    let edges = folder.file("links", &clusters());
    let graph = ["plan", "--edges", &edges, "--key", "host"];
    let plan = |more: &[&str]| run_lab(&[&graph[..], more].concat());
    let json = plan(&["--parts", "2,3", "--json"]).expect(0).json();
    let numbers = ["pages", "sites", "links", "self_links", "repeated_links", "pages_without_url"];
    // Of three links a page, each of the 12 pages 0 has one to itself.
    assert_eq!(numbers.map(|name| json[name].as_u64().expect("a number")), [60, 12, 60 * 3 - 12 + 1, 12, 0, 0]);
    let rows = json["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 8);
    // Both graph partitions cut the bridge alone; http://s0.c1.test/0 has 19 bytes.
    for row in [&rows[0], &rows[2]] {
        assert_eq!(
            (&row["method"], &row["volume_bytes"], &row["request_imbalance"]),
            (&"gp".into(), &19.into(), &0.0.into())
        );
        assert!(row.get("heaviest").is_none());
    }
    let text = plan(&["--parts", "2"]).expect(0).out;
    assert!(
        text.starts_with("60 pages, 12 sites, 169 links of 3,211 bytes of URLs\n12 links of a page to itself"),
        "{text}"
    );
    assert!(text.contains("no page's bytes are known") && text.contains("\n    2 "), "{text}");
    assert_eq!(plan(&["--parts", "2"]).expect(0).out, text, "the same each time");
    // Twelve sites do not fill eight parts evenly; METIS, which prints what it thinks of that, is not asked for so much.
    let text = plan(&["--parts", "8"]).expect(0).out;
    assert!(text.ends_with("K = 8: site GP is not within 5 %: METIS found nothing closer\n"), "{text}");
    // One site of 30 pages of 35.
    let lines = (0..30).map(|page| format!("http://big.test/{page}\thttp://s{}.test/\n", page % 5)).collect::<String>();
    let big = run_lab(&["plan", "--edges", &folder.file("big", &lines), "--parts", "4"]).expect(0).out;
    assert!(
        big.contains("K = 4: site GP is not within 5 %: big.test alone has 85.7 %, and a part's share is 25.0 %"),
        "{big}"
    );
    // Files, and nothing else.
    let (vector, ranks) = (folder.at("vector"), folder.at("ranks"));
    let files = ["--vector", &vector, "--shards", "2", "--pagerank", &ranks];
    assert_eq!(plan(&files).expect(0).out, "");
    let lines = std::fs::read_to_string(&vector).expect("a file");
    let (head, lines) = lines.split_once('\n').expect("lines");
    assert_eq!(head, "ringcrawl-vector 1 host 2");
    let parts: Vec<(&str, &str)> = lines.lines().map(|line| line.split_once('\t').expect("a tab")).collect();
    assert!(parts.is_sorted_by_key(|(_, site)| *site) && parts.len() == 12);
    let shards = [".c0.", ".c1."].map(|cluster| {
        let of_cluster = parts.iter().filter(|(_, site)| site.contains(cluster));
        of_cluster.map(|(shard, _)| *shard).collect::<BTreeSet<_>>()
    });
    assert!(shards.iter().all(|shards| shards.len() == 1) && shards[0] != shards[1], "{parts:?}");
    let linked = folder.at("linked");
    let listed = plan(&["--most-linked", &linked]).expect(0);
    assert!(listed.err.is_empty() && std::fs::read_to_string(&linked).is_ok_and(|text| text.lines().count() == 60));
    let by_number = ["plan", "--edges", &folder.file("numbers", "0\t1\n1\t2\n"), "--most-linked", &linked];
    run_lab(&by_number).expect(0).says(&["3 pages have no URL", "no crawl takes", "frontier.ranks"]);
    let ranked = std::fs::read_to_string(&ranks).expect("a file");
    let first = ranked.lines().next().expect("a line");
    assert!(ranked.lines().count() == 60 && first.ends_with("/0"), "{first}");
}

#[test]
fn mistakes_change_nothing() {
    let folder = TempFolder::new("plan-mistakes");
    let (good, bad) = (folder.file("good", "0\t1\n"), folder.file("bad", "0\t1\nx\n"));
    let vector = folder.file("vector", "before");
    // Another name of the same file.
    let there = format!("{}/../{}/./vector", folder.at(""), folder.path().file_name().expect("a name").display());
    let before = folder.content("");
    let write = ["--vector", &vector, "--shards", "2"];
    for (arguments, code, words) in [
        (vec!["--edges", &bad], 2, &["bad:2: expected SOURCE and TARGET"][..]),
        (vec!["--edges", &good, "--ram-max", "100B"], 2, &["bytes of memory are needed", "--ram-max"]),
        (vec!["--edges", &good, "--ram-max", "100"], 2, &["expected a whole number and a unit"]),
        (vec!["--edges", &good, "--parts", "0"], 2, &["--parts"]),
        (vec!["--edges", &folder.at("none")], 2, &["none: No such file"]),
        (vec!["--dir", &folder.at("")], 2, &["not a crawl (no crawl.json)"]),
        (vec!["--edges", &good, "--most-linked", &there], 2, &["--vector and --most-linked are both "]),
        (
            vec!["--edges", &good, "--pagerank", "-", "--most-linked", "-"],
            2,
            &["--pagerank and --most-linked are both -"],
        ),
        (vec![], 2, &["--edges", "--dir"]),
    ] {
        let arguments: Vec<&str> = arguments.into_iter().map(|argument| argument as &str).collect();
        let ended = run_lab(&[&["plan"], &arguments[..], &write].concat()).expect(code).says(words);
        assert!(ended.out.is_empty() && folder.content("") == before, "{ended:#?}");
    }
    run_lab(&["plan", "--edges", &good, "--vector", &vector]).expect(2).says(&["--shards"]);
    let nowhere = folder.at("none/vector");
    run_lab(&["plan", "--edges", &good, "--vector", &nowhere, "--shards", "2"])
        .expect(1)
        .says(&["none/vector: No such file"]);
    assert!(folder.content("") == before);
}

/// Every page that is stored, with its links, by the scanner alone.
fn links_of(dir: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut pages = BTreeMap::new();
    for segment in find_segments(Path::new(dir)).expect("a crawl's directory") {
        let mut reader = SegmentReader::open(&segment).expect("a segment");
        while let Some(record) = reader.next_record().expect("a record") {
            let url = Url::parse(record.head.target_uri());
            let (true, Ok(url)) = (record.head.kind() == "response", url) else { continue };
            if url.path_and_query() == "/robots.txt" {
                continue;
            }
            let (head, mut body) = (reader.read_http_head().expect("a head"), Vec::new());
            read_rest(&mut reader, &mut body, 1 << 30).expect("a body");
            let mut found = BTreeSet::new();
            if let Some(target) = head.get("Location") {
                found.insert(url.join(&target).expect("a URL").to_string());
            }
            if head.status() == 200 {
                let (body, content_type) = (content(&head, &body, 1 << 30).bytes, head.get("Content-Type"));
                let page = Page { body: &body, content_type: content_type.as_deref(), url: &url, agent: "" };
                let budget = &mut Budget::of_links(usize::MAX);
                html::scan(&page, &Kinds::FOLLOW, budget, &mut |link| found.insert(link.url.to_string()));
            }
            pages.insert(url.to_string(), found);
        }
    }
    pages
}

#[test]
fn a_crawl_is_read_again() {
    let folder = TempFolder::new("plan-crawl");
    let (web, seed) = web(ModelConfig { sites: 30, pages: 600, addresses: 8, ..ModelConfig::default() });
    let more = "crawl.shards = 2\nstore.duplicates = \"store\"";
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, more));
    run(&["crawl", &seed, "--dir", &dir, "-c", &config]).expect(0);
    let before = folder.content("crawl");
    let pages = links_of(&dir);
    let json = run_lab(&["plan", "--dir", &dir, "--json"]).expect(0).json();
    let number = |name: &str| json[name].as_u64().expect("a number") as usize;
    assert_eq!(number("pages"), pages.len());
    let is_link = |from: &str, to: &str| from != to && pages.contains_key(to);
    let links: Vec<&str> = pages
        .iter()
        .flat_map(|(from, found)| found.iter().map(String::as_str).filter(move |to| is_link(from, to)))
        .collect();
    assert_eq!((number("links"), number("link_bytes")), (links.len(), links.iter().map(|to| to.len()).sum()));
    let outside: usize = pages.values().flatten().filter(|to| !pages.contains_key(*to)).count();
    assert_eq!((number("links_outside"), json["has_page_bytes"].as_bool()), (outside, Some(true)));
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(16));
    // The vector has each site that was stored once.
    let vector = folder.at("vector");
    run_lab(&["plan", "--dir", &dir, "--vector", &vector, "--shards", "4"]).expect(0);
    let text = std::fs::read_to_string(&vector).expect("a file");
    let sites: BTreeSet<String> = pages.keys().map(|url| Url::parse(url).expect("a URL").site().to_owned()).collect();
    let listed: Vec<&str> =
        text.lines().skip(1).filter_map(|line| line.split_once('\t')).map(|(_, site)| site).collect();
    assert_eq!(listed, sites.iter().map(String::as_str).collect::<Vec<_>>());
    // Pages, each once.
    run_lab(&["plan", "--dir", &dir, "--vector", &vector, "--shards", "4", "--by", "page"]).expect(0);
    assert_eq!(std::fs::read_to_string(&vector).expect("a file").lines().count(), 1 + pages.len());
    assert!(folder.content("crawl") == before);
}
