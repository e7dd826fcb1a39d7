//! A stranger links to what makes a host complain, or has other hosts look for their rules there: the host's own pages are
//! fetched at their rate.
//!
//! Decides: what counts are the victim's pages, as its server was asked for them. A crawl without an attack and those with one
//! run at the same time, so that a busy machine slows them alike.

use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record, RecordType};

use super::arena::html;
use crate::rig::names::{NameServer, Reply};
use crate::rig::program::{Process, start};
use crate::rig::servers::{read_request, server_at};
use ringcrawl_base::TempFolder;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Attack {
    None,
    /// Links to one script of the victim that always answers 503.
    BrokenScript,
    /// One link to another port of the victim's host, which answers 429 and asks for a day.
    OddPort,
    /// Hosts whose robots.txt redirects to files of the victim.
    Robots,
    /// Links to pages that the victim does not have and answers with 503, under as many words.
    Words,
    /// Links to pages of the victim that take it six seconds each.
    Slow,
}

#[derive(Clone, Copy)]
struct Size {
    broken: usize,
    hosts: usize,
    shards: usize,
    begins: Duration,
    lasts: Duration,
    /// More configuration.
    more: &'static str,
}

const SMALL: Size = Size {
    broken: 40,
    hosts: 150,
    shards: 1,
    begins: Duration::from_secs(3),
    lasts: Duration::from_secs(15),
    more: "politeness.host_delay = \"100ms\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n\
           politeness.response_factor = 0\npoliteness.slow_start = 1\n",
};

/// As the attacks were found: default settings.
const LARGE: Size = Size {
    broken: 40,
    hosts: 2_000,
    shards: 1,
    begins: Duration::from_secs(10),
    lasts: Duration::from_secs(120),
    more: "",
};

const VICTIM: &str = "www.victim.test";

struct Trial {
    pages: Arc<AtomicUsize>,
    /// Requests that only the attack causes.
    attacked: Arc<AtomicUsize>,
    _names: NameServer,
    _folder: TempFolder,
    crawl: Process,
}

impl Trial {
    fn start(attack: Attack, size: Size) -> Trial {
        let (pages, attacked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let noted = Arc::clone(&attacked);
        let (odd, _) = server_at(Ipv4Addr::UNSPECIFIED.into(), move |mut stream, _| {
            while read_request(&mut stream).is_some() {
                noted.fetch_add(1, Ordering::Relaxed);
                let _ = stream.write_all(b"HTTP/1.1 429 No\r\nRetry-After: 86400\r\nContent-Length: 0\r\n\r\n");
            }
        });
        let (counted, noted) = (Arc::clone(&pages), Arc::clone(&attacked));
        let (addr, _) = server_at(Ipv4Addr::UNSPECIFIED.into(), move |mut stream, _| {
            if let Some(request) = read_request(&mut stream) {
                let field = request.lines().find_map(|line| line.strip_prefix("Host:")).unwrap_or_default().trim();
                let (host, port) = field.split_once(':').unwrap_or_default();
                let path = request.split_whitespace().nth(1).unwrap_or_default();
                match (host, path) {
                    (VICTIM, path) => of_victim(&mut stream, path, &counted, &noted),
                    ("attacker.test", "/") => drop(stream.write_all(&links(attack, size, port, odd.port()))),
                    (host, "/robots.txt") if host.starts_with('h') => drop(write!(
                        stream,
                        "HTTP/1.1 302 On\r\nLocation: http://{VICTIM}:{port}/rules/{host}\r\nContent-Length: 0\r\n\
                         Connection: close\r\n\r\n"
                    )),
                    _ => drop(stream.write_all(b"HTTP/1.1 404 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")),
                }
            }
        });
        let names = NameServer::start(move |question, message| {
            if question.query_type() == RecordType::A {
                // Each host has an address of its own.
                let name = question.name().to_string();
                let host = name.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
                let address = Ipv4Addr::from_bits(0x7f10_0000 | (host % 0xf_fff0 + 1));
                message.add_answer(Record::from_rdata(question.name().clone(), 3_600, RData::A(A(address))));
            }
            Reply::Message
        });
        let folder = TempFolder::new("complaints");
        let text = format!(
            "version = 1\ncrawl.shards = {}\ndns.servers = [\"{}\"]\nfetch.private_addresses = \"loopback-only\"\n{}",
            size.shards, names.addr, size.more
        );
        let (config, dir) = (folder.file("config.toml", &text), folder.at("crawl"));
        let url = |host: &str, path: &str| format!("http://{host}:{}{path}", addr.port());
        let (first, second) = (url(VICTIM, "/0"), url("attacker.test", "/"));
        let crawl = start(&["crawl", &first, &second, "--dir", &dir, "-c", &config]);
        Trial { pages, attacked, _names: names, _folder: folder, crawl }
    }
}

/// Each page of the victim leads to ten more, so that it has always some to be asked for.
fn of_victim(stream: &mut TcpStream, path: &str, pages: &AtomicUsize, attacked: &AtomicUsize) {
    let response = match path.trim_start_matches('/').parse::<usize>() {
        Ok(page) => {
            pages.fetch_add(1, Ordering::Relaxed);
            html((1..=10).map(|next| format!("<a href='/{}'>", page * 10 + next)).collect::<String>())
        }
        Err(_) if path.starts_with("/slow") => {
            attacked.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_secs(6));
            html(String::new())
        }
        Err(_) if path.starts_with("/broken") => {
            attacked.fetch_add(1, Ordering::Relaxed);
            b"HTTP/1.1 503 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec()
        }
        Err(_) => {
            attacked.fetch_add(usize::from(path.starts_with("/rules/")), Ordering::Relaxed);
            b"HTTP/1.1 404 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec()
        }
    };
    let _ = stream.write_all(&response);
}

/// The attacker's page.
fn links(attack: Attack, size: Size, port: &str, odd: u16) -> Vec<u8> {
    html(match attack {
        Attack::None => String::new(),
        Attack::BrokenScript => {
            (0..size.broken).map(|number| format!("<a href='http://{VICTIM}:{port}/broken?item={number}'>")).collect()
        }
        Attack::Words | Attack::Slow => {
            let word = |number: u8| [number / 26, number % 26].map(|letter| char::from(b'a' + letter)).iter().collect();
            let path = if attack == Attack::Slow { "slow" } else { "broken" };
            let url = |word: String| format!("<a href='http://{VICTIM}:{port}/{path}{word}'>");
            (0..60).map(|number| url(word(number))).collect()
        }
        Attack::OddPort => format!("<a href='http://{VICTIM}:{odd}/'>"),
        Attack::Robots => {
            (0..size.hosts).map(|host| format!("<a href='http://h{host}.h{host}.test:{port}/'>")).collect()
        }
    })
}

/// Runs the crawls beside each other. What each attack leaves of the victim's pages is at least the share beside it.
fn compare(attacks: &[(Attack, f64)], size: Size) {
    let mut trials: Vec<(Attack, f64, Trial)> = std::iter::once(&(Attack::None, 1.0))
        .chain(attacks)
        .map(|(attack, share)| (*attack, *share, Trial::start(*attack, size)))
        .collect();
    std::thread::sleep(size.begins);
    let before: Vec<usize> = trials.iter().map(|(_, _, trial)| trial.pages.load(Ordering::Relaxed)).collect();
    std::thread::sleep(size.lasts);
    let after = trials.iter().map(|(_, _, trial)| trial.pages.load(Ordering::Relaxed));
    let had: Vec<usize> = after.zip(before).map(|(after, before)| after - before).collect();
    for (_, _, trial) in &mut trials {
        trial.crawl.signal("TERM");
        trial.crawl.signal("TERM");
    }
    let alone = had[0];
    assert!(alone >= size.lasts.as_secs() as usize / 2, "{alone} without an attack");
    for ((attack, share, trial), had) in trials.into_iter().zip(&had) {
        drop(trial.crawl.end().expect(0));
        let attacked = trial.attacked.load(Ordering::Relaxed);
        println!("{attack:?}, {} shards: {had} pages of {alone}, {attacked} requests by the attack", size.shards);
        assert_eq!(attacked > 0, attack != Attack::None, "{attack:?}: the attack took place");
        assert!(*had as f64 >= alone as f64 * share, "{attack:?}: {had} pages, {alone} without it");
    }
}

const ALL: [(Attack, f64); 3] = [(Attack::BrokenScript, 0.8), (Attack::OddPort, 0.8), (Attack::Robots, 0.9)];

/// Other settings have no delay that grows with a response's time, which is what these use.
const AT_DEFAULT_SETTINGS: [(Attack, f64); 2] = [(Attack::Words, 0.8), (Attack::Slow, 0.75)];

#[test]
fn what_strangers_link_to_leaves_a_host_its_rate() {
    compare(&ALL, SMALL);
}

#[test]
fn what_strangers_link_to_leaves_a_host_its_rate_on_two_shards() {
    compare(&ALL, Size { shards: 2, ..SMALL });
}

#[test]
#[ignore = "long: five minutes, default settings"]
fn what_strangers_link_to_leaves_a_host_its_rate_at_default_settings() {
    for shards in [1, 2] {
        compare(&[&ALL[..], &AT_DEFAULT_SETTINGS].concat(), Size { shards, ..LARGE });
    }
}
