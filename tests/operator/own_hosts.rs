//! Hosts of one's own (`mine = true`) next to hosts of others at the same address: the first are asked for many pages at once,
//! the others as politely as ever. Judged by the server: how many requests of which host are there at once, and the gaps.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::rig::program::run;
use crate::rig::servers::{read_request, server};
use ringcrawl_base::TempFolder;
use serde_json::Value;

#[derive(Clone, Debug)]
struct Seen {
    host: String,
    path: String,
    from: Instant,
    to: Instant,
    /// Requests of this host that were there at once, when it came.
    of_host: usize,
    /// The same of all hosts of one's own.
    of_mine: usize,
}

const PAGES: usize = 80;
const OF_OTHERS: usize = 4;

fn is_mine(host: &str) -> bool {
    host.ends_with("mine.test")
}

/// What the server saw of a crawl with this line, and its summary.
fn crawl(line: &str) -> (Vec<Seen>, Value) {
    let (seen, there) = (Arc::new(Mutex::new(Vec::new())), Mutex::new(HashMap::<String, usize>::new()));
    let log = Arc::clone(&seen);
    let (addr, _) = server(move |mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            let from = Instant::now();
            let authority = request.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
            let host = authority.split(':').next().unwrap_or_default().to_owned();
            let path = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
            let (of_host, of_mine) = {
                let mut there = there.lock().expect("a count");
                *there.entry(host.clone()).or_default() += 1;
                (there[&host], there.iter().filter(|(host, _)| is_mine(host)).map(|(_, count)| *count).sum::<usize>())
            };
            std::thread::sleep(Duration::from_millis(30));
            let body = match path.as_str() {
                "/robots.txt" => "User-agent: *\nDisallow: /no\n".to_owned(),
                "/" => {
                    let pages = if is_mine(&host) { PAGES } else { OF_OTHERS };
                    (0..pages).map(|page| format!("<a href=/{page}>page</a>")).collect::<String>()
                        + "<a href=/no>no</a>"
                }
                path => format!("<p>This is {path} of {host}."),
            };
            *there.lock().expect("a count").get_mut(&host).expect("counted") -= 1;
            let to = Instant::now();
            log.lock().expect("a log").push(Seen { host, path, from, to, of_host, of_mine });
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
            if stream.write_all((head + &body).as_bytes()).is_err() {
                return;
            }
        }
    });
    let folder = TempFolder::new("own-hosts");
    let hosts = ["www.mine.test", "docs.mine.test", "one.test", "two.test"];
    let mut text = format!(
        "fetch.private_addresses = \"loopback-only\"\npoliteness.host_delay = \"300ms\"\npoliteness.site_delay = \"200ms\"\n\
         politeness.ip_delay = \"100ms\"\npoliteness.host = [{line}]\n[dns.hosts]\n"
    );
    hosts.iter().for_each(|host| text += &format!("\"{host}\" = [\"127.0.0.1\"]\n"));
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", &text));
    let seeds = hosts.map(|host| format!("http://{host}:{}/", addr.port()));
    let mut arguments = vec!["crawl", "--dir", &dir, "-c", &config, "--shards", "2", "--json", "-"];
    arguments.extend(seeds.iter().map(String::as_str));
    let summary = run(&arguments).expect(0).json();
    let mut seen = seen.lock().expect("a log").clone();
    seen.sort_by_key(|seen| seen.from);
    (seen, summary)
}

#[test]
fn own_hosts_are_asked_at_once_and_others_as_ever() {
    let (seen, summary) = crawl("{ match = '.mine.test', mine = true }");
    assert!(seen.iter().all(|seen| seen.path != "/no"), "robots.txt holds for one's own hosts, too");
    for (host, pages) in
        [("www.mine.test", PAGES), ("docs.mine.test", PAGES), ("one.test", OF_OTHERS), ("two.test", OF_OTHERS)]
    {
        assert_eq!(seen.iter().filter(|seen| seen.host == host).count(), pages + 2, "{host}");
    }
    let (mine, others): (Vec<Seen>, Vec<Seen>) = seen.into_iter().partition(|seen| is_mine(&seen.host));
    for host in ["www.mine.test", "docs.mine.test"] {
        let most = mine.iter().filter(|seen| seen.host == host).map(|seen| seen.of_host).max();
        assert_eq!(most, Some(8), "{host}");
    }
    let most = mine.iter().map(|seen| seen.of_mine).max();
    assert!(most > Some(8), "they are of one site, and neither waits for the other: {most:?}");
    let time = mine.last().expect("pages").to - mine[0].from;
    println!("{} requests to own hosts in {time:?}, at most {most:?} at once", mine.len());

    // Of others there is one at a time, at the address, too, whatever one's own hosts are asked meanwhile.
    for pair in others.windows(2) {
        let gap = pair[1].from.saturating_duration_since(pair[0].to);
        let least = if pair[0].host == pair[1].host { 300 } else { 100 };
        assert!(pair[1].of_host == 1 && gap >= Duration::from_millis(least), "{gap:?}: {pair:#?}");
    }
    for host in ["one.test", "two.test"] {
        let of_host: Vec<&Seen> = others.iter().filter(|seen| seen.host == host).collect();
        for pair in of_host.windows(2) {
            assert!(pair[1].from - pair[0].to >= Duration::from_millis(300), "{pair:#?}");
        }
    }

    // The summary tells what the shards waited for: in the end for the delay of the others.
    let waited = summary["waited"].as_object().expect("waits");
    let share = |name: &str| waited[name].as_f64().expect("a share");
    let (all, idle) =
        (waited.values().filter_map(Value::as_f64).sum::<f64>(), summary["idle_share"].as_f64().expect("a share"));
    assert!((all - idle).abs() < 1e-6 && idle > 0.0 && idle < 1.0, "{waited:?} {idle}");
    assert!(share("host_delay") > share("crawl_delay") && share("responses") > 0.0, "{waited:?}");
    let millis = |name: &str| summary[name].as_u64().expect("milliseconds");
    assert!(millis("shard_busy_millis") < millis("shard_millis"), "{summary}");
}
