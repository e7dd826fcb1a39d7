//! `ringcrawl-lab lab`: what it simulates is what the crawler does over real sockets; what it writes; and what it refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::rig::program::{run, run_lab, start_lab};
use crate::rig::servers::{read_request, respond, server};
use ringcrawl_base::{Rng, TempFolder};

/// A random web of six sites with two hosts each, 17 pages a host.
struct Web {
    addr: SocketAddr,
    links: Arc<BTreeMap<String, BTreeSet<String>>>,
    /// How often each page was asked for.
    asked: Arc<Mutex<BTreeMap<String, u64>>>,
}

fn hosts() -> Vec<String> {
    (0..12).map(|host| format!("h{}.s{}.test", host % 2, host / 2)).collect()
}

impl Web {
    /// By host and path, as no port is known yet.
    fn links() -> BTreeMap<String, BTreeSet<String>> {
        let (mut rng, hosts) = (Rng::new(5), hosts());
        let mut links: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (host, page) in (0..12).flat_map(|host| (0..17).map(move |page| (host, page))) {
            let from = format!("{}/{page}", hosts[host]);
            let own = links.entry(from.clone()).or_default();
            for _ in 0..rng.below(5) {
                let to = if rng.percent(75) { host } else { rng.index(12) };
                let to = format!("{}/{}", hosts[to], rng.below(17));
                if to != from {
                    own.insert(to);
                }
            }
        }
        links
    }

    fn new() -> Web {
        let links = Arc::new(Web::links());
        let asked: Arc<Mutex<BTreeMap<String, u64>>> = Arc::default();
        let (served, noted) = (Arc::clone(&links), Arc::clone(&asked));
        let (addr, _) = server(move |mut stream, _| {
            let port = stream.local_addr().map_or(0, |addr| addr.port());
            while let Some(request) = read_request(&mut stream) {
                let path = request.split_whitespace().nth(1).unwrap_or_default();
                let host = request.lines().find_map(|line| line.split_once(": ").filter(|(name, _)| *name == "Host"));
                let host = host.map_or("", |(_, host)| host.split(':').next().unwrap_or_default());
                let page = format!("{host}{path}");
                let own = served.get(&page);
                if own.is_some() {
                    *noted.lock().expect("counts").entry(page).or_insert(0) += 1;
                }
                let link = |to: &String| {
                    let (host, path) = to.split_once('/').unwrap_or_default();
                    format!("<a href='http://{host}:{port}/{path}'>there</a>")
                };
                respond(&mut stream, &own.into_iter().flatten().map(link).collect::<String>());
            }
        });
        Web { addr, links, asked }
    }

    fn url(&self, page: &str) -> String {
        let (host, path) = page.split_once('/').expect("a host and a path");
        format!("http://{host}:{}/{path}", self.addr.port())
    }

    /// The list of links, and four pages to begin with.
    fn files(&self, folder: &TempFolder) -> (String, String) {
        let line = |from: &String, to: &String| format!("{}\t{}\n", self.url(from), self.url(to));
        let lines: String =
            self.links.iter().flat_map(|(from, own)| own.iter().map(move |to| line(from, to))).collect();
        let most = self.links.iter().filter(|(_, own)| own.len() >= 4);
        let seeds: String = most.step_by(7).take(4).map(|(page, _)| self.url(page) + "\n").collect();
        assert_eq!(seeds.lines().count(), 4);
        (folder.file("links.tsv", &lines), folder.file("seeds.txt", &seeds))
    }

    fn config(&self, folder: &TempFolder) -> String {
        let names: String = hosts().iter().map(|host| format!("\"{host}\" = [\"127.0.0.1\"]\n")).collect();
        let text = "politeness.host_delay = \"0s\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n\
            fetch.private_addresses = \"loopback-only\"\n[dns.hosts]\n";
        folder.file("config.toml", &format!("{text}{names}"))
    }
}

/// The real crawler and the simulated one fetch the same pages the same number of times, find the same links and send the same number of
/// URLs, in every mode.
#[test]
fn the_simulated_crawl_is_the_real_one() {
    for (partition, shards) in
        ["site-hash 2", "host-hash 3", "url-hash 4"].map(|it| it.split_once(' ').expect("two words"))
    {
        let (folder, web) = (TempFolder::new(&format!("lab-{partition}")), Web::new());
        let ((edges, seeds), config) = (web.files(&folder), web.config(&folder));
        let modes = ["exchange", "firewall", "cross-over", "independent"];
        // With room that two URLs hardly share: which of them takes it from the other would be a matter of time, and so would
        // the number of URLs sent (the port is another one each time, and with it every fingerprint).
        let room = ["--set", "exchange.recent_urls=4_194_304"];
        let lab = ["lab", "--edges", &edges, "--seeds-file", &seeds, "--partition", partition, "--shards", shards];
        let json = run_lab(&[&lab[..], &room, &["--mode", &modes.join(","), "--json"]].concat()).expect(0).json();
        for (index, mode) in modes.iter().enumerate() {
            let row = &json["rows"][index];
            assert_eq!(row["mode"], **mode);
            let dir = folder.at(mode);
            let order = ["crawl", "--seeds", &seeds, "--dir", &dir, "-c", &config, "--shards", shards, "--json", "-"];
            let (by, of) = (format!("partition.by={partition}"), format!("exchange.mode={mode}"));
            let real = run(&[&order[..], &room, &["--set", &by, "--set", &of]].concat()).expect(0).json();
            let asked = std::mem::take(&mut *web.asked.lock().expect("counts"));
            let (pages, distinct) = (asked.values().sum::<u64>(), asked.len() as u64);
            let what = format!("{partition} {mode}: {row} {real}");
            assert_eq!((&row["pages"], &row["distinct"]), (&pages.into(), &distinct.into()), "{what}");
            assert_eq!((&real["pages"], &real["links_crossing"]), (&row["pages"], &row["links_crossing"]), "{what}");
            assert_eq!(real["exchanged_out"], row["urls_sent"], "{what}");
            let is_same = |one: &Value, other: f64| one.as_f64().is_some_and(|one| (one - other).abs() < 1e-9);
            assert!(is_same(&real["balance"], row["balance_pages"].as_f64().expect("a number")), "{what}");
            let reachable = row["reachable"].as_u64().expect("a number");
            assert!(is_same(&row["coverage"], distinct as f64 / reachable as f64), "{what}");
            match *mode {
                "firewall" => assert_eq!(real["links_crossing_dropped"], row["links_crossing"], "{what}"),
                _ => assert_eq!(distinct, reachable, "{what}"),
            }
            // From the directory alone.
            let stored = &run_lab(&["lab", "--dir", &dir, "--json"]).expect(0).json()["rows"][0];
            for name in ["partition", "mode", "shards", "pages", "distinct", "links_crossing", "pages_max"] {
                assert_eq!(stored[name], row[name], "{name}: {stored} {what}");
            }
            assert!(
                stored["urls_sent"].is_null()
                    && is_same(&stored["overlap"], row["overlap"].as_f64().expect("a number"))
            );
            if *mode != "firewall" {
                assert_eq!(stored["coverage"], 1.0, "{stored}");
            }
        }
    }
}

#[test]
fn a_table_and_figures_that_are_the_same_each_time() {
    let folder = TempFolder::new("lab-out");
    let order = [
        "lab",
        "--pages-count",
        "240",
        "--sites-count",
        "20",
        "--partition",
        "site-hash,url-hash",
        "--mode",
        "exchange,independent",
        "--shards",
        "1,3",
        "--repeat",
        "2",
        "--delay",
        "100ms",
    ];
    let csv = ["one", "two"].map(|name| {
        let out = folder.at(name);
        let text = run_lab(&[&order[..], &["--out", &out]].concat()).expect(0).out;
        assert!(text.starts_with("240 pages, 20 sites, ") && text.lines().count() == 2 + 16, "{text}");
        std::fs::read_to_string(format!("{out}/lab.csv")).expect("a table")
    });
    assert_eq!(csv[0], csv[1]);
    assert!(
        csv[0].starts_with("partition,mode,order,seeds,limit,shards,rng_seed,pages,") && csv[0].lines().count() == 17
    );
    for name in
        ["coverage-site-hash", "overlap-url-hash", "exchange", "quality-url-hash-independent", "balance-exchange"]
    {
        for ending in ["svg", "png"] {
            let file = folder.at(&format!("one/{name}.{ending}"));
            assert!(std::fs::metadata(&file).is_ok_and(|file| file.len() > 1_000), "{file}");
        }
    }
    let again = run_lab(&[&order[..], &["--out", &folder.at("one")]].concat()).expect(2);
    assert!(again.err.contains("one: not empty"), "{}", again.err);
}

#[test]
fn what_is_finished_stays_after_an_interrupt() {
    let folder = TempFolder::new("lab-stopped");
    let out = folder.at("out");
    let csv = format!("{out}/lab.csv");
    let lines = || std::fs::read_to_string(&csv).unwrap_or_default().lines().count();
    let order = ["lab", "--pages-count", "3000", "--shards", "2", "--repeat", "5000", "--out", &out];
    let mut lab = start_lab(&order);
    lab.wait_until("two rows", || lines() > 2);
    lab.signal("INT");
    let ended = lab.end().expect(1);
    assert!(ended.err.contains("stopped: ") && ended.err.contains(" of 5000 crawls are done"), "{}", ended.err);
    let text = std::fs::read_to_string(&csv).expect("a table");
    let columns = text.lines().next().expect("a head").split(',').count();
    assert!(text.ends_with('\n') && text.lines().all(|line| line.split(',').count() == columns), "{text}");
    assert!(std::fs::exists(format!("{out}/coverage.svg")).expect("a folder"));
}

/// An experiment takes hours: what its last crawl needs is computed before the first one.
#[test]
fn what_cannot_be_computed_is_told_before_the_first_crawl() {
    let folder = TempFolder::new("lab-tight");
    let pairs = (0..60).flat_map(|from| (0..60).filter(move |to| *to != from).map(move |to| (from, to)));
    let links: String = pairs.map(|(from, to)| format!("{from}\t{to}\n")).collect();
    let (edges, out) = (folder.file("edges", &links), folder.at("out"));
    // Enough for the graph, and not for METIS.
    let lab = ["lab", "--edges", &edges, "--shards", "2", "--out", &out, "--ram-max", "100KiB"];
    let words = ["partitioning: ", "bytes of memory are needed", "--ram-max"];
    let ended = run_lab(&[&lab[..], &["--partition", "site-hash,site-gp"]].concat()).expect(2).says(&words);
    assert!(ended.out.is_empty() && !std::fs::exists(&out).expect("a folder"), "{ended:#?}");
    run_lab(&lab).expect(0);
}

#[test]
fn mistakes_are_told_before_anything_starts() {
    let folder = TempFolder::new("lab-mistakes");
    let (edges, bad) = (folder.file("good", "0\t1\n1\t2\n"), folder.file("bad", "0\t1\nx\n"));
    let seeds = folder.file("seeds", "http://nowhere.test/\n");
    let out = folder.at("out");
    let graph = ["--edges", edges.as_str()];
    for (arguments, words) in [
        (vec![], &["--edges", "--pages-count", "--dir"][..]),
        (vec!["--edges", &bad], &["bad:2: expected SOURCE and TARGET"]),
        (vec!["--dir", &folder.at("")], &["not a crawl (no crawl.json)"]),
        (vec!["--dir", &folder.at(""), "--mode", "exchange"], &["--mode"]),
        ([&graph[..], &["--partition", "site-hash,none"]].concat(), &["none", "host-hash", "consistent"]),
        (
            [&graph[..], &["--partition", "dynamic", "--mode", "exchange,independent"]].concat(),
            &["partition.by", "their logs do not say which shard owns a site", "\"firewall\""],
        ),
        ([&graph[..], &["--seeds", "2,9"]].concat(), &["the graph has 3 pages, and 9 are to be seeds"]),
        ([&graph[..], &["--set", "partition.balance=sites"]].concat(), &["sites do not move here"]),
        (
            [&graph[..], &["--set", "scope.rules=rules.txt"]].concat(),
            &["scope.rules=rules.txt: no such file is read here"],
        ),
        ([&graph[..], &["--set", "scope.block=[]"]].concat(), &["no such file is read here"]),
        ([&graph[..], &["--set", "politeness.operators=[]"]].concat(), &["no such file is read here"]),
        ([&graph[..], &["--set", "crawl.time_max=1h"]].concat(), &["--pages-max"]),
        ([&graph[..], &["--set", "crawl.ram_bytes_max=1GiB"]].concat(), &["there is no machine here"]),
        ([&graph[..], &["--set", "fetch.rate_min=1KiB"]].concat(), &["there is no machine here"]),
        ([&graph[..], &["--set", "http.cookies=on"]].concat(), &["there is no network here"]),
        ([&graph[..], &["--set", "crawl.rng_seed=7"]].concat(), &["--rng-seed says that here"]),
        ([&graph[..], &["--mode", "none"]].concat(), &["none", "cross-over", "independent"]),
        ([&graph[..], &["--order", "none"]].concat(), &["none", "breadth-first"]),
        ([&graph[..], &["--shards", "0"]].concat(), &["--shards"]),
        ([&graph[..], &["--set", "exchange.mod=firewall"]].concat(), &["did you mean exchange.mode"]),
        ([&graph[..], &["--set", "exchange.mode"]].concat(), &["KEY=VALUE"]),
        ([&graph[..], &["--seeds-file", &seeds]].concat(), &["http://nowhere.test/ is no page of the graph"]),
    ] {
        let ended = run_lab(&[&["lab"], &arguments[..], &["--out", &out]].concat()).expect(2).says(words);
        assert!(ended.out.is_empty() && !std::fs::exists(&out).expect("a folder"), "{ended:#?}");
    }
}
