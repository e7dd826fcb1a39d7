//! Which page linked to a URL first: in lists, in answers, in records; over shards, runs and another number of shards.

use std::collections::BTreeMap;
use std::path::Path;

use ringcrawl_base::TempFolder;
use ringcrawl_warc::read::{SegmentReader, find_segments, read_rest};

use super::seeds::{config, names_server, page};
use crate::rig::program::run;

/// Sites that link to each other in a row, so that every second link crosses over to another shard.
const SITES: usize = 12;

/// Each site's front links to the next one's; the last one's to what is not there, to a redirect, and to the first.
fn answer(place: &str, port: u16) -> (String, String) {
    let (host, path) = place.split_once('/').expect("a host and a path");
    let number: usize = host.trim_start_matches("s").trim_end_matches(".test").parse().expect("a number");
    match path {
        "" if number + 1 == SITES => page(&format!(
            "<a href=/missing>1</a><a href=/old>2</a><a href=/gone>3</a><a href='http://s0.test:{port}/'>4</a>"
        )),
        "" => page(&format!("<a href='http://s{}.test:{port}/'>next</a><a href='/about'>about</a>", number + 1)),
        "old" => (format!("301 Moved\r\nLocation: http://s0.test:{port}/new"), String::new()),
        "missing" => ("404 Not Found".to_owned(), String::new()),
        "gone" => ("410 Gone".to_owned(), String::new()),
        _ => page("no links"),
    }
}

/// What metadata records say: by URL, its `via` and `hopsFromSeed`.
fn metadata(dir: &str) -> BTreeMap<String, (Option<String>, String)> {
    let mut found = BTreeMap::new();
    for segment in find_segments(Path::new(dir)).expect("a crawl's directory") {
        let mut reader = SegmentReader::open(&segment).expect("a segment");
        while let Some(record) = reader.next_record().expect("whole records") {
            let mut block = Vec::new();
            assert!(read_rest(&mut reader, &mut block, 1 << 20).expect("a block"));
            let url = record.head.target_uri().to_owned();
            if record.head.kind().as_str() == "metadata" && !url.ends_with("/robots.txt") {
                let block = String::from_utf8(block).expect("UTF-8");
                let field = |name: &str| {
                    block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
                };
                let before = found.insert(url, (field("via"), field("hopsFromSeed").expect("hops")));
                assert_eq!(before, None);
            }
        }
    }
    found
}

#[test]
fn the_page_that_linked_first_is_in_lists_answers_and_records() {
    let folder = TempFolder::new("referrer");
    let (addr, _) = names_server(answer);
    let (port, dir) = (addr.port(), folder.at("crawl"));
    let config = config(&folder, "politeness.retries_max = 0");
    let front = |site: usize| format!("http://s{site}.test:{port}/");
    let last = front(SITES - 1);
    // In two runs: what waits in between is not to be forgotten.
    let crawl =
        |more: &[&str]| run(&[&["crawl", "--dir", &dir, "-c", &config, "--json", "-"], more].concat()).expect(0);
    let first = crawl(&[&front(0), "--pages-max", "5"]).json();
    let second = crawl(&[]).json();
    let crossed = |json: &serde_json::Value| json["exchanged_out"].as_u64().expect("a number");
    assert!(crossed(&first) + crossed(&second) > 0, "no link crossed over");

    // Each URL, and the page that linked to it.
    let mut expected: BTreeMap<String, Option<String>> = BTreeMap::from([(front(0), None)]);
    for site in 1..SITES {
        expected.insert(front(site), Some(front(site - 1)));
        expected.insert(format!("{}about", front(site - 1)), Some(front(site - 1)));
    }
    for path in ["missing", "old", "gone"] {
        expected.insert(format!("{last}{path}"), Some(last.clone()));
    }
    let (old, new) = (format!("{last}old"), format!("{}new", front(0)));
    expected.insert(new.clone(), Some(old.clone()));
    let listed = |more: &[&str]| -> BTreeMap<String, Option<String>> {
        let out = run(&[&["urls", &dir, "--json"], more].concat()).expect(0).out;
        let lines = out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        lines
            .map(|line| (line["url"].as_str().expect("a URL").to_owned(), line["via"].as_str().map(str::to_owned)))
            .collect()
    };
    assert_eq!(listed(&[]), expected);
    // Which page links to the 404s, in one command; and what a page has led to.
    assert_eq!(listed(&["--cause", "404"]), BTreeMap::from([(format!("{last}missing"), Some(last.clone()))]));
    let missing = run(&["urls", &dir, "--cause", "404", "--via"]).expect(0).out;
    assert_eq!(missing.lines().filter_map(|line| line.split_once(".test:")?.1.split_once('/')).count(), 1);
    assert!(missing.ends_with(&format!("\t{last}missing\t{last}\n")), "{missing}");
    assert!(run(&["urls", &dir, "--via"]).expect(0).out.contains(&format!("\t{}\t-\n", front(0))));
    let of_last = run(&["urls", &dir, "--linked-from", &last]).expect(0).out;
    let mut of_last: Vec<&str> = of_last.lines().filter_map(|line| line.split('\t').nth(4)).collect();
    of_last.sort_unstable();
    assert_eq!(of_last, ["gone", "missing", "old"].map(|path| format!("{last}{path}")));
    assert_eq!(listed(&["--linked-from", &last.to_uppercase().replace("HTTP", "http")]).len(), 3, "as it is written");
    assert_eq!(run(&["urls", &dir, "--linked-from", &new]).expect(0).out, "");
    run(&["urls", &dir, "--linked-from", "about"]).expect(2).says(&["expected the URL of a page"]);

    // The way back to the seed, whatever the number of shards.
    let mut way: Vec<String> = (0..SITES).rev().map(front).collect();
    let chain = |way: &[String]| -> String {
        let lines = way.iter().enumerate().map(|(place, page)| {
            let seed = if place + 1 == way.len() { " (a seed)" } else { "" };
            format!("  via:       {page}{seed}\n")
        });
        lines.collect()
    };
    let answer = |what: &str| run(&["why", what, "--dir", &dir]).expect(0).out;
    let missing = format!("  found:     {SITES} links from a seed, off-site by 3\n{}", chain(&way));
    let missing_url = format!("{last}missing");
    assert!(answer(&missing_url).contains(&missing), "{}\n{missing}", answer(&missing_url));
    way.insert(0, old);
    let moved = format!("  found:     {SITES} links from a seed, 1 redirect\n{}", chain(&way));
    assert!(answer(&new).contains(&moved), "{}\n{moved}", answer(&new));
    let json = run(&["why", &new, "--dir", &dir, "--json"]).expect(0).json();
    assert_eq!(json["url"]["via"], serde_json::json!(way));
    let seed = answer(&front(0));
    assert!(seed.contains("  found:     a seed\n") && !seed.contains("via:"), "{seed}");

    // Records say the same.
    let records = metadata(&dir);
    let vias: BTreeMap<String, Option<String>> =
        records.iter().map(|(url, (via, _))| (url.clone(), via.clone())).collect();
    assert_eq!(vias, expected);
    assert_eq!((&*records[&last].1, &*records[&missing_url].1), ("11", "12"));

    crawl(&["--shards", "3"]);
    assert_eq!(listed(&[]), expected);
    assert!(answer(&new).contains(&moved), "{}", answer(&new));
}

#[test]
fn what_came_of_each_seed_is_listed() {
    let folder = TempFolder::new("parties");
    let (addr, _) = names_server(|place, port| match place {
        "a.test/" => page(&format!(
            "<a href=/1>1</a><a href=/2>2</a><a href=/missing>3</a><a href='http://c.test:{port}/'>4</a>"
        )),
        "b.test/" => page("<a href=/1>1</a>"),
        "c.test/" => page("<a href=/deep>1</a>"),
        "a.test/missing" => ("404 Not Found".to_owned(), String::new()),
        _ => page("no links"),
    });
    let (port, dir) = (addr.port(), folder.at("crawl"));
    let config = config(&folder, "");
    let seeds = ["a", "b"].map(|name| format!("http://{name}.test:{port}/"));
    run(&["crawl", "--dir", &dir, "-c", &config, &seeds[1], &seeds[0]]).expect(0);
    let table = run(&["seeds", &dir]).expect(0).out;
    assert_eq!(table, format!("5\t0\t1\t0\t2\t{}\n2\t0\t0\t0\t1\t{}\n", seeds[0], seeds[1]));
    let json = run(&["seeds", &dir, "--json"]).expect(0).out;
    assert!(
        json.starts_with(&format!(
            r#"{{"pages":5,"waiting":0,"errors":1,"denied":0,"sites":2,"seed":"{}"}}"#,
            seeds[0]
        )),
        "{json}"
    );
    let party = run(&["urls", &dir, "--seed", &seeds[1]]).expect(0).out;
    let party: std::collections::BTreeSet<&str> = party.lines().filter_map(|line| line.split('\t').nth(4)).collect();
    assert_eq!(party, [seeds[1].clone(), format!("{}1", seeds[1])].iter().map(String::as_str).collect());
    let deep = run(&[
        "urls",
        &dir,
        "--seed",
        &seeds[0],
        "--host",
        "c.test",
        "--prefix",
        &format!("http://c.test:{port}/deep"),
    ]);
    assert_eq!(deep.expect(0).out.lines().count(), 1);
    let no_seed = format!("{}1", seeds[0]);
    run(&["urls", &dir, "--seed", &no_seed]).expect(2).says(&[&format!("{no_seed} is not a seed of this crawl")]);
}

#[test]
fn the_summary_ends_in_what_may_be_done() {
    let folder = TempFolder::new("causes");
    let (addr, _) = names_server(|place, port| {
        let (host, path) = place.split_once('/').expect("a path");
        match (host, path) {
            ("a.test", "") => page(&format!(
                "<a href=/401>1</a><a href=/403>2</a><a href=/404>3</a><a href=/410>4</a><a href=/500>5</a><a href=/503>6</a>\
                 <a href='http://b.test:{port}/404'>7</a><a href='http://nowhere.none:{port}/'>8</a>"
            )),
            (_, "") => page("no links"),
            (_, status) => (format!("{status} So"), String::new()),
        }
    });
    let (port, dir) = (addr.port(), folder.at("crawl"));
    let config = config(&folder, "politeness.retries_max = 0");
    let seed = format!("http://a.test:{port}/");
    let ended = run(&["crawl", "--dir", &dir, "-c", &config, "--json", "-", &seed]).expect(0);
    let json = ended.json();
    let of = |cause: &str| {
        let all = json["causes"].as_array().expect("causes");
        let line = all.iter().find(|line| line["cause"] == cause).unwrap_or_else(|| panic!("{cause}: {json}"));
        (line["urls"].as_u64(), line["hosts"].as_u64(), line["via"].as_str() == Some(&*seed))
    };
    assert_eq!(of("404"), (Some(2), Some(2), true));
    assert_eq!(of("5xx"), (Some(2), Some(1), true));
    assert_eq!(["401", "403", "410", "dns-not-found"].map(of), [(Some(1), Some(1), true); 4]);
    assert_eq!(json["causes"].as_array().map(Vec::len), Some(6));
    assert_eq!(json["largest_hosts"], serde_json::json!([["a.test", 1]]));
    // Of each host that was asked, and no page among them.
    assert_eq!((json["robots_4xx"].as_u64(), json["statuses"]["4xx"].as_u64()), (Some(2), Some(7)));
    assert!(ended.err.contains("    of robots.txt "), "{}", ended.err);
    for line in [
        format!(
            "  401: 1 URL of 1 host, such as {seed}401, linked to by {seed}: the server requires a login (http.auth)\n    ringcrawl urls {dir} --cause 401\n"
        ),
        format!(
            "  410: 1 URL of 1 host, such as {seed}410, linked to by {seed}: permanently gone\n    ringcrawl urls {dir} --cause 410 --via\n"
        ),
        format!("    ringcrawl urls {dir} --cause 5xx\n"),
        format!(
            "  dns-not-found: 1 URL of 1 host, such as http://nowhere.none:{port}/, linked to by {seed}: the name does not exist, or has no address\n"
        ),
        format!("  largest hosts: a.test (1 page)\n    ringcrawl hosts {dir}\n"),
    ] {
        assert!(ended.err.contains(&line), "{line}\n{}", ended.err);
    }
    // The commands that it names do what they say, and the same is to be had later.
    assert_eq!(run(&["urls", &dir, "--cause", "5xx"]).expect(0).out.lines().count(), 2);
    let later = run(&["urls", &dir, "--causes"]).expect(0).out;
    assert!(later.starts_with("without a page, of the whole crawl:\n") && ended.err.contains(&later), "{later}");
    let lines = run(&["urls", &dir, "--causes", "--json"]).expect(0).out;
    assert_eq!(lines.lines().count(), 6);
}

/// A sitemap of robots.txt has that file as its page, which is no URL of the crawl: the way ends there.
#[test]
fn a_sitemap_was_found_by_its_robots_txt() {
    let folder = TempFolder::new("referrer-sitemap");
    let (addr, _) = crate::rig::servers::server(|mut stream, _| {
        use std::io::Write as _;
        while let Some(request) = crate::rig::servers::read_request(&mut stream) {
            let host = request.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default().to_owned();
            let (kind, body) = match request.split(' ').nth(1) {
                Some("/robots.txt") => ("text/plain", format!("Sitemap: http://{host}/map.xml\n")),
                Some("/map.xml") => {
                    ("text/xml", format!("<urlset><url><loc>http://{host}/mapped</loc></url></urlset>"))
                }
                _ => ("text/html", "no links".to_owned()),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    let (dir, site) = (folder.at("crawl"), format!("http://{addr}"));
    let seed = format!("{site}/");
    let settings = ["politeness.host_delay=0s", "links.sitemaps=robots", "crawl.shards=1"];
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    run(&["crawl", &seed, "--dir", &dir].into_iter().chain(settings).collect::<Vec<_>>()).expect(0);
    let out = run(&["why", &format!("{site}/mapped"), "--dir", &dir]).expect(0).out;
    let expected = format!("  via:       {site}/map.xml\n  via:       {site}/robots.txt\n");
    assert!(out.contains(&expected), "{out}");
    let list = run(&["urls", &dir, "--json", "--linked-from", &format!("{site}/robots.txt")]).expect(0).out;
    assert!(list.contains("/map.xml\"") && list.lines().count() == 1, "{list}");
}
