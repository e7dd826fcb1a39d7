//! Hundreds of hosts that send much, or little that becomes much, and never come to an end: `crawl.ram_bytes_max` holds.
//!
//! Decides: attackers and honest sites stand on one address, without delays. What held is told by what the honest ones were
//! asked for and by the process's largest resident memory.

use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::rig::names::NameServer;
use crate::rig::program::start;
use crate::rig::servers::{read_request, server};
use ringcrawl_base::TempFolder;

const HONEST_SITES: usize = 20;
const HONEST_PAGES: usize = 50;
const HONEST_REQUESTS: usize = HONEST_SITES * (HONEST_PAGES + 1);
const ATTACKERS: usize = 150;
const MIB: usize = 1 << 20;

/// Eight megabytes but for the last bytes, which come one by one.
fn hold_much(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 8 * MIB).as_bytes())?;
    for _ in 0..79 {
        stream.write_all(&vec![b'x'; MIB / 10])?;
    }
    loop {
        stream.write_all(&[b'x'; 700])?;
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// A head of 60 KB, and a body of half a megabyte that has no end.
fn hold_a_head(stream: &mut TcpStream) -> std::io::Result<()> {
    let fields: String = (0..200).map(|number| format!("X-{number}: {}\r\n", "y".repeat(280))).collect();
    stream.write_all(format!("HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n").as_bytes())?;
    for _ in 0..8 {
        stream.write_all(&[b"10000\r\n", &vec![b'x'; 1 << 16][..], b"\r\n"].concat())?;
    }
    loop {
        stream.write_all(&[b"2bc\r\n", &[b'x'; 700][..], b"\r\n"].concat())?;
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// A bomb as a coding of the transfer or of the content, which is undone at once or with the page.
fn bomb(stream: &mut TcpStream, is_transfer: bool, gzip: &[u8]) -> std::io::Result<()> {
    let head = match is_transfer {
        true => format!("Transfer-Encoding: gzip, chunked\r\n\r\n{:x}\r\n", gzip.len()),
        false => format!("Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", gzip.len()),
    };
    let end: &[u8] = if is_transfer { b"\r\n0\r\n\r\n" } else { b"" };
    stream.write_all(&[b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", head.as_bytes(), gzip, end].concat())
}

fn honest(stream: &mut TcpStream, path: &str) -> std::io::Result<()> {
    std::thread::sleep(Duration::from_millis(10));
    let next = path.trim_start_matches('/').parse::<usize>().map_or(0, |number| number + 1);
    let body = match path {
        "/robots.txt" => String::new(),
        // As long as what a fetch may hold without asking, and more.
        _ if next < HONEST_PAGES => format!("<a href=/{next}>next</a>{}", "word ".repeat(2_000 * (1 + next % 10))),
        _ => "the last".to_owned(),
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())
}

/// Crawls the honest sites beside `attackers` within `ram`; the summary, and how long the honest ones took.
fn crawl(attackers: usize, ram: &str) -> (Value, Duration) {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![b' '; 8 * MIB]).expect("memory");
    let gzip = encoder.finish().expect("memory");
    let asked = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&asked);
    let (addr, _) = server(move |mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let host = request.split("\r\n").find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
            let attacker =
                host.strip_prefix("attacker-").and_then(|host| host.split('.').next()?.parse::<usize>().ok());
            let done = match attacker {
                Some(_) if path == "/robots.txt" => stream.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"),
                Some(number) => match number % 4 {
                    0 => hold_much(&mut stream),
                    1 => hold_a_head(&mut stream),
                    kind => bomb(&mut stream, kind == 2, &gzip),
                },
                None => {
                    noted.fetch_add(1, Ordering::SeqCst);
                    honest(&mut stream, path)
                }
            };
            if done.is_err() {
                return;
            }
        }
    });
    let folder = TempFolder::new("memory");
    let names = NameServer::pointing_to(Ipv4Addr::LOCALHOST);
    let text = format!(
        "version = 1\ncrawl.shards = 1\ncrawl.ram_bytes_max = \"{ram}\"\ndns.servers = [\"{}\"]\npoliteness.host_delay = \"0s\"\n\
         politeness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\nfetch.deadline = \"20s\"\n",
        names.addr
    );
    let (config, dir) = (folder.file("config.toml", &text), folder.at("crawl"));
    let seeds: Vec<_> = (0..attackers)
        .map(|number| format!("http://attacker-{number}.evil-{number}.test:{}/", addr.port()))
        .chain((0..HONEST_SITES).map(|site| format!("http://www.honest-{site}.test:{}/0", addr.port())))
        .collect();
    let list = folder.file("seeds.txt", &seeds.join("\n"));
    let begun = Instant::now();
    let mut process = start(&["crawl", "--dir", &dir, "-c", &config, "--json", "-", "--seeds", &list]);
    process.wait_until("every honest page", || asked.load(Ordering::SeqCst) >= HONEST_REQUESTS);
    let took = begun.elapsed();
    process.signal("TERM");
    let ended = process.end().expect(0).says(&["memory: at most "]);
    (ended.json(), took)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

fn told(what: &str, summary: &Value, took: Duration) -> u64 {
    let bytes = number(&summary["rss_bytes_max"]);
    let crowded_out = &summary["blemishes"]["body-crowded-out"];
    println!("{what}: the honest pages in {took:.2?}, {} MiB, {crowded_out} bodies crowded out", bytes >> 20);
    bytes
}

/// 1,024 fetches of 8 MiB were 8.27 GiB in one shard.
#[test]
fn bodies_in_flight_keep_within_the_memory_of_the_crawl() {
    let (calm, took) = crawl(0, "256MiB");
    told("without attackers, 256 MiB", &calm, took);
    let (summary, took) = crawl(ATTACKERS, "256MiB");
    let bytes = told("beside attackers, 256 MiB", &summary, took);
    assert!(bytes < 256 << 20, "{summary:#}");
    assert!(number(&summary["blemishes"]["body-crowded-out"]) > 0, "{summary:#}");
    assert!(number(&summary["pages"]) >= (HONEST_SITES * HONEST_PAGES) as u64, "{summary:#}");
    let failures = summary["failures"].as_object().expect("an object");
    assert_eq!(failures.values().map(number).sum::<u64>(), 0, "{summary:#}");
}

/// At larger sizes, by hand: more attackers than CI has time for.
#[test]
#[ignore = "takes some gigabytes of memory"]
fn bodies_in_flight_keep_within_larger_memories() {
    for (ram, attackers, bytes_max) in [("2GiB", 900, 2 << 30), ("8GiB", 900, 8_u64 << 30)] {
        let (summary, took) = crawl(attackers, ram);
        let bytes = told(&format!("beside {attackers} attackers, {ram}"), &summary, took);
        assert!(bytes < bytes_max, "{summary:#}");
    }
}
