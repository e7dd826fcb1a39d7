//! What strangers do to a crawl: every kind of attack that has a test of its own here, as answers of one crowd of hosts.
//!
//! Decides: an attacker's host is `KINDn.test` or a name below it, so that each is a site of its own. Its first page links to
//! more of the same, so that none runs out. What can be made beforehand is: an attack costs its server next to nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringcrawl_brain::sample::{dear_responses, dear_robots};
use rustls::ServerConfig;

use super::arena::{html, nothing};
use super::{bombs, handshakes, injection, links};

/// Kinds, and how many hosts of each beside a hundred honest ones.
const KINDS: [(&str, usize); 18] = [
    // A byte a second.
    ("drip", 60),
    // Eight megabytes but for the last bytes, as slow as may be.
    ("hold", 30),
    // A head of 60 KB, and a body of half a megabyte without end.
    ("head", 20),
    // Nothing at all.
    ("still", 10),
    ("bomb", 20),
    ("dear", 10),
    // 10,000 links behind a long base.
    ("base", 10),
    // The same, behind a robots.txt whose rules are dear to match.
    ("robots", 5),
    // A robots.txt of nothing but rules.
    ("rules", 5),
    // Redirects over sites that never come back.
    ("ring", 10),
    // Names without end, each at an address of its own.
    ("wild", 3),
    // Names without end, at the address of an honest host.
    ("steal", 5),
    // Names that no name server tells of.
    ("mute", 2),
    // Links to ports of honest hosts that refuse or do not answer.
    ("ports", 5),
    // Links to thousands of sites that refuse connections.
    ("gone", 2),
    ("chain", 2),
    ("inject", 3),
    // Something else at each request.
    ("change", 10),
];

/// What attackers link to.
pub struct Ports {
    pub plain: u16,
    pub secure: u16,
    /// Ports at all addresses: some refuse connections, the last one says nothing.
    pub odd: Vec<u16>,
    pub honest_hosts: usize,
}

/// Bytes that are sent at once, and with a pause those that are sent from then on.
pub struct Answer {
    pub start: Arc<[u8]>,
    pub piece: &'static [u8],
    pub pause: Option<Duration>,
}

pub struct Attackers {
    ports: Ports,
    bombs: Vec<Arc<[u8]>>,
    dear: Vec<Arc<[u8]>>,
    /// A page of links that a long base makes longer, and two of robots.txt.
    long_base: Arc<[u8]>,
    dear_patterns: Arc<[u8]>,
    many_rules: Arc<[u8]>,
    held_body: Arc<[u8]>,
    held_head: Arc<[u8]>,
    chains: Vec<Arc<ServerConfig>>,
    /// Requests of those whose answers change.
    turn: AtomicUsize,
}

impl Attackers {
    pub fn new(ports: Ports) -> Attackers {
        let mut bombs: Vec<Arc<[u8]>> =
            bombs::bombs(64 << 20).iter().map(|(coding, body)| bombs::coded(coding, body).into()).collect();
        let once = zstd::bulk::compress(&vec![0; 64 << 20], 1).expect("memory");
        bombs.push(bombs::coded("zstd, zstd", &zstd::bulk::compress(&once, 1).expect("memory")).into());
        let decoys: Vec<_> = (0..9).map(|_| handshakes::decoy(&rcgen::PKCS_ECDSA_P521_SHA512)).collect();
        let fields: String = (0..200).map(|number| format!("X-{number}: {}\r\n", "y".repeat(280))).collect();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n");
        let body = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", 8 << 20);
        let coded = |(fields, body): links::Answer| {
            [format!("HTTP/1.1 200 OK\r\n{fields}Connection: close\r\n\r\n").as_bytes(), &body].concat()
        };
        let base = links::gzip("Content-Type: text/html\r\nContent-Encoding: gzip\r\n", &links::page("0", 10_000).1);
        Attackers {
            bombs,
            dear: dear_responses(1 << 20, 16 << 20).into_iter().map(|(_, bytes)| bytes.into()).collect(),
            long_base: coded(base).into(),
            dear_patterns: coded(links::dear_robots()).into(),
            many_rules: dear_robots().into(),
            held_body: [body.as_bytes(), &vec![b'x'; (8 << 20) - (64 << 10)]].concat().into(),
            held_head: [head.as_bytes(), &vec![b'x'; 512 << 10]].concat().into(),
            chains: (0..16).map(|number| handshakes::chain(&decoys, number)).collect(),
            turn: AtomicUsize::new(0),
            ports,
        }
    }

    /// The kind of a site's label, and its number.
    pub fn kind(site: &str) -> (&str, usize) {
        let kind = site.trim_end_matches(|sign: char| sign.is_ascii_digit());
        (kind, site[kind.len()..].parse().unwrap_or(0))
    }

    /// Hosts beside so many honest ones, of every kind, or of those that RINGCRAWL_SOAK names.
    pub fn hosts(honest: usize) -> Vec<String> {
        let wanted = std::env::var("RINGCRAWL_SOAK").ok();
        let is_wanted = |kind: &str| wanted.as_ref().is_none_or(|list| list.split(',').any(|one| one == kind));
        let kinds = KINDS.iter().filter(|(kind, _)| is_wanted(kind));
        kinds
            .flat_map(|(kind, each)| (0..each * honest / 100).map(move |number| format!("{kind}{number}.test")))
            .collect()
    }

    /// Servers whose certificates lead to each other and to no root.
    pub fn chains(&self) -> &[Arc<ServerConfig>] {
        &self.chains
    }

    /// What `host`, the `number`th of its kind, says when it is asked for `path`.
    pub fn answer(&self, kind: &str, number: usize, host: &str, path: &str) -> Answer {
        let port = self.ports.plain;
        let page: usize = path.get(1..).and_then(|page| page.parse().ok()).unwrap_or(0);
        let below = host.split('.').next().and_then(|name| name.strip_prefix('n')?.parse::<usize>().ok());
        let one_of = |answers: &[Arc<[u8]>]| ready(&answers[(number + page) % answers.len()]);
        match (kind, path) {
            ("robots", "/robots.txt") => ready(&self.dear_patterns),
            ("rules", "/robots.txt") => ready(&self.many_rules),
            (_, "/robots.txt") => whole(nothing()),
            ("wild" | "steal" | "mute", "/") => {
                // The first names many, and each of these some more.
                let names = below.map_or(0..2_000, |name| name * 20..name * 20 + 20);
                whole(html(links(names.map(|name| format!("http://n{name}.{kind}{number}.test:{port}/")))))
            }
            ("ports", "/") => {
                let hosts = (0..10).map(|host| (number * 10 + host) % self.ports.honest_hosts.max(1));
                let odd = |host| self.ports.odd.iter().map(move |odd| format!("http://www.h{host}.test:{odd}/"));
                whole(html(links(hosts.flat_map(odd).flat_map(|url| (0..20).map(move |page| format!("{url}{page}"))))))
            }
            ("gone", _) => {
                let (refused, first) = (self.ports.odd[0], (number * 10 + page) * 5_000);
                let sites = (first..first + 5_000).map(|site| format!("http://www.nowhere{site}.test:{refused}/"));
                whole(html(links(sites.chain((1..10).map(|page| format!("/{page}"))))))
            }
            ("chain", "/") => {
                let secure = self.ports.secure;
                whole(html(links((0..5_000).map(|name| format!("https://n{name}.chain{number}.test:{secure}/")))))
            }
            ("ring", "/") => whole(html(links((0..1_000).map(|start| format!("/{start}-"))))),
            ("ring", path) => {
                let next = format!("http://ring{}.test:{port}{path}x", number + 1);
                whole(format!("HTTP/1.1 302 On\r\nLocation: {next}\r\nContent-Length: 0\r\n\r\n"))
            }
            ("inject", path) => whole(injection::answer(path)),
            (_, "/") => whole(html(links((1..1_000).map(|page| format!("/{page}"))))),
            ("drip", _) => slow(html("<p>").into(), b"x", 1_000),
            ("hold", _) => slow(Arc::clone(&self.held_body), &[b'x'; 700], 1_000),
            ("head", _) => slow(Arc::clone(&self.held_head), &[b'x'; 700], 1_000),
            ("still", _) => slow(Arc::new([]), b"", 1_000),
            ("bomb", _) => one_of(&self.bombs),
            ("dear", _) => one_of(&self.dear),
            ("base" | "robots" | "rules", _) => ready(&self.long_base),
            ("change", _) => self.changing(page, path),
            _ => whole(html("")),
        }
    }

    fn changing(&self, page: usize, path: &str) -> Answer {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        match turn % 8 {
            0 => whole(html(links((0..100).map(|link| format!("/{}", page * 100 + turn + link))))),
            1 => whole("HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"),
            2 => whole(format!("HTTP/1.1 302 On\r\nLocation: {path}?{turn}\r\nContent-Length: 0\r\n\r\n")),
            3 => whole("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
            4 => whole("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
            5 => whole("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            6 => whole(""),
            _ => slow(html("<p>").into(), b"x", 100),
        }
    }
}

fn links(targets: impl Iterator<Item = String>) -> String {
    targets.map(|target| format!("<a href='{target}'>")).collect()
}

fn whole(bytes: impl AsRef<[u8]>) -> Answer {
    Answer { start: bytes.as_ref().into(), piece: b"", pause: None }
}

/// What was made beforehand.
fn ready(bytes: &Arc<[u8]>) -> Answer {
    Answer { start: Arc::clone(bytes), piece: b"", pause: None }
}

fn slow(start: Arc<[u8]>, piece: &'static [u8], millis: u64) -> Answer {
    Answer { start, piece, pause: Some(Duration::from_millis(millis)) }
}
