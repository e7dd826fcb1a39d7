//! What a crawl's directory knows: `urls` and `hosts`, held against the truth; and what failed, asked for again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ringcrawl_base::TempFolder;
use ringcrawl_web::ModelConfig;
use ringcrawl_web::truth::{Truth, reachable};

use crate::rig::program::{RINGCRAWL, run, start};
use crate::rig::servers::{read_request, server};
use crate::rig::web::{self, web};

/// State, cause, tries and time by URL.
type List = BTreeMap<String, [String; 4]>;

/// The list of a crawl that is whole.
#[track_caller]
fn urls(dir: &str, more: &[&str]) -> List {
    let ended = run(&[&["urls", dir], more].concat()).expect(0);
    assert_eq!(ended.err, "");
    read(&ended.out)
}

#[track_caller]
fn read(text: &str) -> List {
    let mut list = List::new();
    for line in text.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        // Behind the URL stands what went wrong, where something did.
        let ([state, cause, tries, time, url] | [state, cause, tries, time, url, _]) = columns[..] else {
            panic!("{line:?}")
        };
        let before = list.insert(url.to_owned(), [state, cause, tries, time].map(str::to_owned));
        assert_eq!(before, None, "{url} is listed twice");
    }
    list
}

/// The URLs in a state.
fn of(list: &List, state: &str) -> BTreeSet<String> {
    list.iter().filter(|(_, columns)| columns[0] == state).map(|(url, _)| url.clone()).collect()
}

/// What a list is when the crawl is over.
#[track_caller]
fn agrees(list: &List, truth: &Truth) {
    let texts = |urls: Vec<&ringcrawl_url::Url>| urls.into_iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    assert_eq!(of(list, "fetched"), texts(truth.fetched.keys().chain(truth.missing.keys()).collect()));
    assert_eq!(of(list, "denied"), texts(truth.denied.iter().collect()));
    assert_eq!((of(list, "failed").len(), of(list, "waiting").len()), (0, 0));
    for (url, expected) in &truth.fetched {
        let [_, cause, tries, time] = &list[url.as_str()];
        assert_eq!((cause, tries.as_str(), time.len()), (&expected.status.to_string(), "1", 20), "{url}");
    }
}

#[test]
fn every_url_is_listed_as_the_truth_has_it() {
    let folder = TempFolder::new("queries");
    let (web, seed) = web(ModelConfig { sites: 20, pages: 600, addresses: 8, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 2"));
    let truth = reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    assert!(!truth.denied.is_empty() && !truth.missing.is_empty());
    run(&["crawl", &seed, "--dir", &dir, "-c", &config]).expect(0);
    let before = folder.content("crawl");
    let list = urls(&dir, &[]);
    agrees(&list, &truth);
    // The same in parts, and as JSON.
    assert_eq!(urls(&dir, &["--state", "denied"]).into_keys().collect::<BTreeSet<_>>(), of(&list, "denied"));
    let host = truth.fetched.keys().next().expect("a page").host();
    let expected = list.keys().filter(|url| url.contains(&format!("//{host}:"))).cloned().collect::<BTreeSet<_>>();
    assert_eq!(urls(&dir, &["--host", host]).into_keys().collect::<BTreeSet<_>>(), expected);
    let json = run(&["urls", &dir, "--json"]).expect(0).out;
    let lines: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), list.len());
    for line in &lines {
        let [state, cause, tries, time] = &list[line["url"].as_str().expect("a URL")];
        let text = |name: &str| line[name].as_str().expect("text").to_owned();
        assert_eq!([&text("state"), &text("cause"), &text("time")], [state, cause, time]);
        assert_eq!(line["tries"].to_string(), *tries);
    }
    // By host, the same numbers.
    let hosts = run(&["hosts", &dir, "--sort", "errors"]).expect(0).out;
    let hosts: Vec<Vec<&str>> = hosts.lines().map(|line| line.split('\t').collect()).collect();
    let column = |at: usize| hosts.iter().map(|host| host[at].parse::<usize>().expect("a number")).collect::<Vec<_>>();
    let count = |state: &str, causes: char| {
        list.values().filter(|columns| columns[0] == state && columns[1].starts_with(causes)).count()
    };
    let sums = [0, 1, 2, 3].map(|at| column(at).iter().sum::<usize>());
    let errors = count("fetched", '4') + count("fetched", '5');
    assert_eq!(sums, [count("fetched", '2'), 0, errors, of(&list, "denied").len()]);
    assert!(column(2).is_sorted_by(|one, next| one >= next) && errors > 0);
    assert!(hosts.iter().all(|host| host.len() == 11 && host[10] == "-"));
    // A reader that has seen enough is no error, and nobody's directory is changed.
    let head =
        Command::new("sh").args(["-c", &format!("{RINGCRAWL} urls {dir} | head -n 1")]).output().expect("a shell");
    assert!(head.stderr.is_empty() && head.stdout.ends_with(b"\n"), "{head:?}");
    assert_eq!(folder.content("crawl"), before);
}

#[test]
fn beside_a_running_crawl_and_after_a_kill_the_rest_is_waiting() {
    let folder = TempFolder::new("queries-kill");
    let (web, seed) = web(ModelConfig { sites: 20, pages: 1_000, addresses: 8, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 2"));
    let truth = reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config];
    let mut crawl = start(&[&arguments[..], &["--set", "politeness.host_delay=100ms"]].concat());
    let fetched = || run(&["urls", &dir, "--state", "fetched"]);
    crawl.wait_until("pages that are over", || {
        folder.path().join("crawl/crawl.json").exists() && {
            let ended = fetched();
            let is_begun = !ended.err.contains("is missing");
            assert!(!is_begun || (ended.code, &*ended.err) == (0, ""), "{ended:?}");
            ended.out.lines().count() > 40
        }
    });
    crawl.signal("KILL");
    crawl.end().expect(128 + 9);
    let ended = run(&["urls", &dir]).expect(0);
    let list = read(&ended.out);
    let waiting = of(&list, "waiting");
    for (url, [state, cause, tries, time]) in &list {
        let is_known = truth.fetched.keys().chain(truth.missing.keys()).any(|known| known.as_str() == url);
        assert!(is_known || truth.denied.iter().any(|known| known.as_str() == url), "{url}");
        assert!(state != "waiting" || [&**cause, &**tries, &**time] == ["-", "0", "-"], "{url}");
    }
    assert!(!waiting.is_empty() && of(&list, "fetched").len() > 40);
    let hosts = run(&["hosts", &dir, "--sort", "waiting", "--json"]).expect(0).out;
    let counts = hosts.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let counts: Vec<u64> = counts.map(|line| line["waiting"].as_u64().expect("a number")).collect();
    assert_eq!(counts.iter().sum::<u64>(), waiting.len() as u64);
    assert!(counts.is_sorted_by(|one, next| one >= next));
    // What it said of pages that are over stays so, and the rest comes.
    run(&arguments).expect(0);
    let whole = urls(&dir, &[]);
    agrees(&whole, &truth);
    assert!(of(&list, "fetched").iter().all(|url| whole[url] == list[url]));
}

#[test]
fn damage_and_other_directories_are_told() {
    let folder = TempFolder::new("queries-damage");
    let (web, seed) = web(ModelConfig { sites: 5, pages: 100, addresses: 4, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 1"));
    // In two runs, so that there are two blocks at least.
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config];
    run(&[&arguments[..], &["--pages-max", "5"]].concat()).expect(0);
    run(&arguments).expect(0);
    let whole = urls(&dir, &[]);
    let path = folder.path().join("crawl/shard-00/urls");
    let right = std::fs::read(&path).expect("a log");
    let mut wrong = right.clone();
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    std::fs::write(&path, &wrong).expect("a log");
    let ended = run(&["urls", &dir]).expect(1).says(&["shard-00/urls", "damaged", "URLs are missing from the list"]);
    let list = read(&ended.out);
    assert!(!list.is_empty() && list.len() < whole.len() && list.iter().all(|(url, line)| whole[url] == *line));
    run(&["hosts", &dir]).expect(1).says(&["URLs are missing from the list"]);
    std::fs::remove_dir_all(folder.path().join("crawl/shard-00")).expect("a shard");
    run(&["urls", &dir]).expect(1).says(&["shard-00", "the directory is missing"]);
    for command in ["urls", "hosts"] {
        run(&[command, &folder.at("")]).expect(2).says(&["not a crawl (no crawl.json)"]);
    }
    run(&["urls", &dir, "--host", "a/b"]).expect(2).says(&["expected a name or an address"]);
}

/// A host that is dead in the first run lives in the second.
#[test]
fn what_failed_is_asked_for_again_once() {
    let (is_alive, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let (alive, noted) = (Arc::clone(&is_alive), Arc::clone(&asked));
    let (addr, _) = server(move |mut stream, _| {
        while alive.load(Ordering::SeqCst)
            && let Some(request) = read_request(&mut stream)
        {
            let path = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
            let body = match path.as_str() {
                "/robots.txt" => "User-agent: *\nDisallow: /no\n",
                "/" => "<a href=/next>next</a><a href=/no>no</a>",
                _ => "a page",
            };
            noted.lock().expect("a log").push(path);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
            if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
                return;
            }
        }
    });
    let take = || std::mem::take(&mut *asked.lock().expect("a log"));
    let folder = TempFolder::new("retry");
    let (dir, seed) = (folder.at("crawl"), |path: &str| format!("http://127.0.0.1:{}{path}", addr.port()));
    let keys = "politeness.host_delay = \"0s\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\npoliteness.host_failures_max = 1\n";
    let config = folder.file("config.toml", &format!("version = 1\n{keys}"));
    run(&["crawl", &seed("/"), &seed("/other"), "--dir", &dir, "-c", &config, "--shards", "1"]).expect(3);
    assert_eq!(of(&urls(&dir, &[]), "failed"), BTreeSet::from([seed("/"), seed("/other")]));
    is_alive.store(true, Ordering::SeqCst);
    // Nobody has asked for it.
    run(&["crawl", "--dir", &dir]).expect(3);
    assert_eq!(take(), [""; 0]);
    run(&["crawl", "--dir", &dir, "--retry-failed"]).expect(0).says(&["2 failed URLs are asked for again"]);
    let mut paths = take();
    paths.sort();
    assert_eq!(paths, ["/", "/next", "/other", "/robots.txt"]);
    let list = urls(&dir, &[]);
    assert_eq!(of(&list, "fetched"), ["/", "/next", "/other"].map(seed).into());
    assert_eq!(of(&list, "denied"), BTreeSet::from([seed("/no")]));
    // There is nothing left that failed, whether it is asked for or not.
    for more in [&[][..], &["--retry-failed"]] {
        run(&[&["crawl", "--dir", &dir], more].concat()).expect(0);
        assert_eq!(take(), [""; 0]);
    }
    run(&["crawl", "--dir", &dir, "--retry-failed", "--new"]).expect(2).says(&["--new"]);
}
