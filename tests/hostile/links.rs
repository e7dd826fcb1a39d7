//! A site that makes much of little: verdicts that are dear, links that are long, a robots.txt without end.
//!
//! Decides: the attacker and honest sites stand on one address, without delays; what the honest ones are asked for, the
//! processor time, the memory and the directory tell what held. Times are printed, and nothing fails by them.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::rig::names::NameServer;
use crate::rig::program::{Process, start};
use crate::rig::servers::{read_request, server};
use ringcrawl_base::TempFolder;
use ringcrawl_lab::slowness;

const HONEST_SITES: usize = 10;
const HONEST_PAGES: usize = 100;

/// What a server answers: fields of the head besides the length, and the body.
pub(super) type Answer = (&'static str, Vec<u8>);

const HTML: &str = "Content-Type: text/html\r\n";

/// The honest sites, whose pages each link to the next, and a site whose answers are the test's.
struct Sites {
    port: u16,
    /// Requests by host.
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Sites {
    fn start(attack: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Sites {
        let asked = Arc::new(Mutex::new(BTreeMap::new()));
        let noted = Arc::clone(&asked);
        let (addr, _) = server(move |mut stream, _| {
            while let Some(request) = read_request(&mut stream) {
                let path = request.split(' ').nth(1).unwrap_or_default();
                let host = request.split("\r\n").find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
                let host = host.split(':').next().unwrap_or_default();
                *noted.lock().expect("a count").entry(host.to_owned()).or_default() += 1;
                let answer = if host.starts_with(ATTACKER) { attack(path) } else { honest(path) };
                respond(&mut stream, &answer);
            }
        });
        Sites { port: addr.port(), asked }
    }

    /// Requests that hosts got, those of the attacker or the others.
    fn requests(&self, of_attackers: bool) -> usize {
        let asked = self.asked.lock().expect("a count");
        asked.iter().filter(|(host, _)| host.starts_with(ATTACKER) == of_attackers).map(|(_, count)| count).sum()
    }

    /// Requests that the attacker's hosts got.
    fn attacker(&self) -> usize {
        self.requests(true)
    }

    /// Requests that honest sites got: a robots.txt and their pages each, when there is nothing left.
    fn honest(&self) -> usize {
        self.requests(false)
    }

    fn seeds(&self, attackers: usize) -> Vec<String> {
        let hosts = (0..HONEST_SITES).map(|site| format!("honest-{site}.test"));
        let attackers = (0..attackers).map(|host| format!("{ATTACKER}-{host}.test"));
        hosts.chain(attackers).map(|host| format!("http://{host}:{}/0", self.port)).collect()
    }
}

/// What the names of the attacker's hosts begin with.
const ATTACKER: &str = "attacker";
const HONEST_REQUESTS: usize = HONEST_SITES * (HONEST_PAGES + 1);

fn honest(path: &str) -> Answer {
    std::thread::sleep(Duration::from_millis(10));
    let next = path.trim_start_matches('/').parse::<usize>().map_or(0, |number| number + 1);
    match path {
        "/robots.txt" => ("", b"User-agent: *\nDisallow: /private".to_vec()),
        _ if next < HONEST_PAGES => (HTML, format!("<a href=/{next}>next</a>").into_bytes()),
        _ => (HTML, b"the last".to_vec()),
    }
}

fn respond(stream: &mut TcpStream, (fields, body): &Answer) {
    let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

/// Links to `/1` and so on.
fn index(pages: usize) -> Answer {
    (HTML, (1..=pages).map(|page| format!("<a href=/{page}>")).collect::<String>().into_bytes())
}

/// A page of `links` short references behind a base of 2,000 bytes.
pub(super) fn page(name: &str, links: usize) -> Answer {
    let mut page = format!("<base href='/x/{name}/{}/'>", "ab".repeat(990));
    (0..links).for_each(|link| page.push_str(&format!("<a href={link:x}>")));
    (HTML, page.into_bytes())
}

/// `body` in gzip.
pub(super) fn gzip(fields: &'static str, body: &[u8]) -> Answer {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(body).expect("memory");
    (fields, encoder.finish().expect("memory"))
}

/// A robots.txt of half a megabyte, all of whose rules must be searched for in a path of many `ab`.
pub(super) fn dear_robots() -> Answer {
    let mut text = "User-agent: *\n".to_owned();
    for number in 0..20_000 {
        text.push_str(&format!("Disallow:*abab{number:x}\n"));
    }
    text.push_str("Disallow: /x\n");
    assert!(text.len() < 512 << 10);
    gzip("Content-Encoding: gzip\r\n", text.as_bytes())
}

/// A crawl of all sites on one shard.
struct Crawl {
    process: Process,
    begun: Instant,
}

impl Crawl {
    fn start(sites: &Sites, attackers: usize, folder: &TempFolder, more: &str) -> Crawl {
        let names = NameServer::pointing_to(Ipv4Addr::LOCALHOST);
        let text = format!(
            "version = 1\ncrawl.shards = 1\ndns.servers = [\"{}\"]\npoliteness.host_delay = \"0s\"\n\
             politeness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n{more}\n",
            names.addr
        );
        let (config, dir) = (folder.file("config.toml", &text), folder.at("crawl"));
        let seeds = sites.seeds(attackers);
        let mut arguments = vec!["crawl", "--dir", &dir, "-c", &config, "--json", "-"];
        arguments.extend(seeds.iter().map(String::as_str));
        Crawl { process: start(&arguments), begun: Instant::now() }
    }

    /// Lets the honest sites be crawled, then stops the crawl; its summary.
    fn stop_after_the_honest(mut self, what: &str, sites: &Sites) -> Value {
        self.process.wait_until("every honest page", || sites.honest() >= HONEST_REQUESTS);
        let crawled = self.begun.elapsed();
        self.process.signal("TERM");
        let summary = self.process.end().expect(0).json();
        println!(
            "{what}: {HONEST_REQUESTS} honest requests in {crawled:.2?}, the end {:.2?} later, {:.1} s of CPU, {} MB, {} forbidden",
            self.begun.elapsed() - crawled,
            cpu(&summary),
            number(&summary["rss_bytes_max"]) / 1_000_000,
            summary["robots_denied"],
        );
        summary
    }
}

fn cpu(summary: &Value) -> f64 {
    summary["cpu_seconds"].as_f64().expect("seconds")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

/// Bytes of all files of a folder.
pub(super) fn folder_bytes(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => folder_bytes(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Two responses stopped a shard for a minute: 10,000 links, each of which took 7 ms of 20,000 rules.
#[test]
fn dear_verdicts_hold_up_nobody() {
    let folder = TempFolder::new("dear-verdicts");
    let sites = Sites::start(|_| unreachable!("nobody asks it"));
    let calm = Crawl::start(&sites, 0, &folder, "").stop_after_the_honest("without dear verdicts", &sites);
    let folder = TempFolder::new("dear-verdicts");
    let sites = Sites::start(|path| match path {
        "/robots.txt" => dear_robots(),
        "/0" => index(20),
        path => page(path.trim_start_matches('/'), 10_000),
    });
    let summary = Crawl::start(&sites, 1, &folder, "").stop_after_the_honest("with dear verdicts", &sites);
    // What is left is a minute of work, were it done at once.
    assert!(number(&summary["robots_denied"]) > 0 && number(&summary["queued"]) > 5_000, "{summary:#}");
    assert!(
        cpu(&summary) < 2.0 * cpu(&calm) + 5.0 * slowness(),
        "{} s of CPU, {} s without",
        cpu(&summary),
        cpu(&calm)
    );
}

/// 24 KB on the wire made 20 MB of URLs; a hundred such pages 3.66 GiB of memory.
#[test]
fn long_bases_make_no_more_than_a_multiple_of_the_page() {
    const HOSTS: usize = 100;
    let folder = TempFolder::new("long-bases");
    let sites = Sites::start(|path| match path {
        "/robots.txt" => ("", Vec::new()),
        "/0" => gzip("Content-Type: text/html\r\nContent-Encoding: gzip\r\n", &page("0", 10_000).1),
        _ => ("", Vec::new()),
    });
    let mut crawl = Crawl::start(&sites, HOSTS, &folder, "frontier.ram_bytes_max = \"16MiB\"");
    crawl.process.wait_until("what the long pages link to", || sites.attacker() > 3 * HOSTS);
    let summary = crawl.stop_after_the_honest("with long bases", &sites);
    let (wire, kept) = (number(&summary["bytes_wire"]), folder_bytes(&folder.path().join("crawl")));
    let cut = number(&summary["links_over_bytes"]) + number(&summary["links_dropped"]);
    println!("{wire} bytes received, {kept} bytes kept, {cut} links cut");
    assert!(cut > 900_000, "{summary:#}");
    assert!(number(&summary["rss_bytes_max"]) < 192 << 20, "{summary:#}");
    // Beyond what each page of theirs may come to.
    assert!(kept <= 20 * wire + (sites.attacker() as u64) * (64 << 10), "{kept} bytes of {wire}");
}

/// Of a robots.txt no more is read than counts.
#[test]
fn an_endless_robots_file_is_read_to_its_limit() {
    const LIMIT: u64 = 512 << 10;
    let folder = TempFolder::new("long-robots");
    let sites = Sites::start(|path| match path {
        "/robots.txt" => ("", "Disallow: /x\n".repeat(2 << 20).into()),
        _ => (HTML, Vec::new()),
    });
    let summary = Crawl::start(&sites, 1, &folder, "").process.end().expect(0).json();
    assert_eq!((sites.honest(), sites.attacker()), (HONEST_REQUESTS, 2), "{summary:#}");
    let wire = number(&summary["bytes_wire"]);
    println!("{wire} bytes received");
    // An eighth more is for codings, 200 bytes for a response of the others.
    assert!((LIMIT..LIMIT + LIMIT / 8 + 200 * HONEST_REQUESTS as u64).contains(&wire), "{wire}");
    let blemishes = ["robots-over-limit", "length-over-limit"].map(|name| number(&summary["blemishes"][name]));
    assert_eq!(blemishes, [1, 0], "{summary:#}");
}

/// A megabyte of a log holds two hundred megabytes of such URLs: they are read as the spool takes them.
#[test]
fn long_urls_are_taken_up_within_bounds() {
    let folder = TempFolder::new("long-urls");
    let sites = Sites::start(|path| match path {
        "/robots.txt" => ("", Vec::new()),
        "/0" => index(10),
        path if path.len() < 9 => page(&path[1..], 10_000),
        _ => ("", b"a page".to_vec()),
    });
    let much = "links.page_link_bytes_max = \"1GiB\"\nlinks.page_link_ratio_max = 1000000\nfrontier.ram_bytes_max = \"16MiB\"\n";
    let mut crawl = Crawl::start(&sites, 1, &folder, much);
    crawl.process.wait_until("every long page", || sites.attacker() > 12);
    let before = crawl.stop_after_the_honest("the first run", &sites);
    assert!(number(&before["queued"]) > 80_000, "{before:#}");
    let mut crawl = Crawl::start(&sites, 1, &folder, much);
    let asked = sites.attacker();
    crawl.process.wait_until("more pages", || sites.attacker() > asked + 100);
    let after = crawl.stop_after_the_honest("the second run", &sites);
    assert!(number(&after["known_waiting"]) > 80_000, "{after:#}");
    assert!(number(&after["rss_bytes_max"]) < 192 << 20, "{after:#}");
}
