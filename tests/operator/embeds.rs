//! What pages embed: which of it a crawl asks for, by the server's log, also where it was killed in between.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;

use ringcrawl_base::TempFolder;
use ringcrawl_brain::log::read_urls;

use crate::rig::program::{run, start};
use crate::rig::servers::{Asked, read_request, server};

/// A site, what its two pages embed of it and of two others, one of them behind a redirect to a third, and a link that leaves it.
fn answer(host: &str, path: &str) -> (&'static str, &'static str) {
    match (host, path) {
        ("third.test", "/robots.txt") => ("200 OK", "User-agent: *\nDisallow: /private\n"),
        (_, "/robots.txt") => ("404 Not Found", ""),
        ("home.test", "/") => (
            "200 OK\r\nContent-Type: text/html",
            "<link rel=stylesheet href=//cdn.test:PORT/s.css><link rel=icon href=/icon.ico>\
             <img src=own.png srcset='//cdn.test:PORT/1x.png, own.png 2x'><img src=//moved.test:PORT/m>\
             <script src=//cdn.test:PORT/j.js></script><img src=//third.test:PORT/private.png><a href=/page>1</a>\
             <a href=//cdn.test:PORT/linked.png><img src=//cdn.test:PORT/linked.png></a><a href=//away.test:PORT/>2</a>",
        ),
        ("home.test", "/page") => (
            "200 OK\r\nContent-Type: text/html",
            "<img src=//cdn.test:PORT/deep.png><img src=//moved.test:PORT/m><a href=/too-deep>1</a>",
        ),
        ("moved.test", "/m") => ("302 Found\r\nLocation: //third.test:PORT/landed", ""),
        // No image, but a page, of another site: what it embeds is two hops away.
        ("third.test", "/landed") => (
            "200 OK\r\nContent-Type: text/html",
            "<a href=/link>1</a><img src=/further.png><a href=//home.test:PORT/back>2</a>",
        ),
        _ => ("200 OK\r\nContent-Type: application/octet-stream", "x"),
    }
}

/// Serves all hosts at one port, and notes what it is asked for.
fn web() -> (u16, Asked) {
    let asked: Asked = Arc::default();
    let noted = Arc::clone(&asked);
    let serve = move |mut stream: TcpStream, _| {
        while let Some(request) = read_request(&mut stream) {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let authority = request.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
            let (host, port) = authority.split_once(':').unwrap_or_default();
            noted.lock().expect("a log").push(format!("{host}{path}"));
            let (head, body) = answer(host, path);
            let (head, body) = (head.replace("PORT", port), body.replace("PORT", port));
            let response = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    };
    (server(serve).0.port(), asked)
}

/// A configuration whose crawls stay on the seed's site, one link deep, and wait for no host but by `more`.
fn config(folder: &TempFolder, more: &str) -> String {
    let mut text = String::from(
        "scope.follow = \"seed-sites\"\nscope.depth_max = 1\nlinks.external = \"list\"\njournal.sync_interval = \"50ms\"\n\
         politeness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\nfetch.private_addresses = \"loopback-only\"\n",
    );
    text += more;
    text += "\n[dns.hosts]\n";
    for host in ["home", "cdn", "moved", "third", "away"] {
        text += &format!("\"{host}.test\" = [\"127.0.0.1\"]\n");
    }
    folder.file("config.toml", &text)
}

/// What was asked for, but for robots.txt, sorted.
fn pages(asked: &Asked) -> Vec<String> {
    let mut pages = asked.lock().expect("a log").clone();
    pages.retain(|page| !page.ends_with("/robots.txt"));
    pages.sort();
    pages
}

fn sorted(parts: &[&[&str]]) -> Vec<String> {
    let mut all: Vec<String> = parts.concat().into_iter().map(str::to_owned).collect();
    all.sort();
    all
}

const PAGES: &[&str] = &["home.test/", "home.test/page"];
const AT_HOME: &[&str] = &["home.test/icon.ico", "home.test/own.png"];
/// With a page at home that only the landing page links to.
const OFF_SITE: &[&str] = &[
    "cdn.test/s.css",
    "cdn.test/1x.png",
    "cdn.test/j.js",
    "cdn.test/linked.png",
    "cdn.test/deep.png",
    "moved.test/m",
    "third.test/landed",
    "home.test/back",
];

#[test]
fn what_is_embedded_is_fetched_as_configured() {
    let rules = "allow site=home.test\nallow embed offsite<=1 extension=css,js\ndeny\n";
    for (embeds, rules, expected, external) in [
        ("off", "", sorted(&[PAGES]), &["away.test/", "cdn.test/linked.png"][..]),
        ("in-scope", "", sorted(&[PAGES, AT_HOME]), &["away.test/", "cdn.test/linked.png"]),
        ("in-scope", rules, sorted(&[PAGES, AT_HOME, &["cdn.test/s.css", "cdn.test/j.js"]]), &[]),
        ("off-site", "", sorted(&[PAGES, AT_HOME, OFF_SITE]), &["away.test/", "cdn.test/linked.png"]),
        ("off-site", "deny embed offsite>0\n", sorted(&[PAGES, AT_HOME]), &["away.test/", "cdn.test/linked.png"]),
        (
            "off-site",
            "deny follow embed\n",
            sorted(&[PAGES, AT_HOME, &OFF_SITE[..7]]),
            &["away.test/", "cdn.test/linked.png"],
        ),
    ] {
        for shards in ["1", "3"] {
            let folder = TempFolder::new("embeds");
            let (port, asked) = web();
            let rules_file = folder.file("scope.rules", rules);
            let mut more = format!("politeness.host_delay = \"0s\"\nlinks.embeds = {embeds:?}\n");
            if !rules.is_empty() {
                more += &format!("scope.rules = {rules_file:?}\n");
            }
            let (dir, config) = (folder.at("crawl"), config(&folder, &more));
            let seed = format!("http://home.test:{port}/");
            run(&["crawl", &seed, "--dir", &dir, "-c", &config, "--shards", shards]).expect(0);
            assert_eq!(pages(&asked), expected, "{embeds} {rules:?}, {shards} shards");
            let listed = std::fs::read_to_string(format!("{dir}/external-links-1")).unwrap_or_default();
            let mut listed: Vec<String> = listed
                .lines()
                .filter(|line| !line.starts_with('#'))
                .map(|line| line.replace(&format!(":{port}"), "").replace("http://", ""))
                .collect();
            listed.sort();
            assert_eq!(listed, external, "{embeds} {rules:?}, {shards} shards");
        }
    }
}

/// A queue with embeds outlives a kill: what it was found as is in the log.
#[test]
fn an_embed_is_one_after_a_kill() {
    let folder = TempFolder::new("embeds-kill");
    let (port, asked) = web();
    // After its robots.txt each host is left alone until after the kill.
    let more = "politeness.host_delay = \"10s\"\npoliteness.slow_start = 1\nlinks.embeds = \"off-site\"";
    let (dir, config) = (folder.at("crawl"), config(&folder, more));
    let seed = format!("http://home.test:{port}/");
    let (embed, link) = (format!("http://moved.test:{port}/m"), format!("http://home.test:{port}/page"));
    let all = ["crawl", &seed, "--dir", &dir, "-c", &config, "--shards", "1"];
    let mut crawl = start(&all);
    let has = |wanted: &str| {
        let log = std::fs::read(format!("{dir}/shard-00/urls")).unwrap_or_default();
        read_urls(&log).any(|entries| entries.accepted.iter().any(|(_, url)| url == wanted))
    };
    crawl.wait_until("the links of the first page", || has(&embed) && has(&link));
    crawl.signal("KILL");
    crawl.end().expect(128 + 9);
    let why = |url: &str| run(&["why", url, "--dir", &dir, "--json"]).expect(0).json()["url"].clone();
    let told =
        [why(&embed), why(&link)].map(|url| (url["embed"].clone(), url["links"].clone(), url["offsite"].clone()));
    assert_eq!(told, [(true.into(), 0.into(), 1.into()), (false.into(), 1.into(), 0.into())]);
    assert!(run(&["why", &embed, "--dir", &dir]).expect(0).out.contains("embedded by a page"));
    assert!(!pages(&asked).contains(&"moved.test/m".to_owned()), "{:?}", pages(&asked));
    run(&[&all[..], &["--set", "politeness.host_delay=0s"]].concat()).expect(0);
    let mut pages = pages(&asked);
    pages.dedup();
    assert_eq!(pages, sorted(&[PAGES, AT_HOME, OFF_SITE]));
    let record = run(&["store", "cat", &dir, &embed.replace("moved.test", "third.test").replace("/m", "/landed")]);
    assert!(record.expect(0).out.contains("further.png"));
}
