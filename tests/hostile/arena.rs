//! Where attacks take place: one server for attackers and their victim, a crawl of both, and who was asked for what.
//!
//! Decides: the server listens on every loopback address, tells hosts apart by the Host field, and is the witness: what a
//! test asserts is what it was asked, besides what the program says of itself.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::rig::names::NameServer;
use crate::rig::program::{Process, start};
use crate::rig::servers::read_request;
use ringcrawl_base::TempFolder;

/// Paths that each host was asked for, in order.
type Asked = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

pub struct Arena {
    pub port: u16,
    asked: Asked,
    folder: TempFolder,
}

/// The host that has done nothing, and how many pages it has.
pub const VICTIM: &str = "victim.test";
pub const VICTIM_PAGES: usize = 40;

impl Arena {
    /// Attackers answer as `attack` says for host, port and path: with whole responses, after which their connection is closed.
    pub fn start(name: &str, attack: impl Fn(&str, u16, &str) -> Vec<u8> + Send + Sync + 'static) -> Arena {
        Arena::serving(name, move |stream, host, port, path| {
            let _ = stream.write_all(&attack(host, port, path));
        })
    }

    /// Attackers do with a connection as `attack` does.
    pub fn serving(name: &str, attack: impl Fn(&mut TcpStream, &str, u16, &str) + Send + Sync + 'static) -> Arena {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a listener");
        let port = listener.local_addr().expect("its address").port();
        let (asked, attack) = (Asked::default(), Arc::new(attack));
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (noted, attack) = (Arc::clone(&noted), Arc::clone(&attack));
                std::thread::spawn(move || serve(stream, port, &noted, &*attack));
            }
        });
        Arena { port, asked, folder: TempFolder::new(name) }
    }

    pub fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    pub fn dir(&self) -> String {
        self.folder.at("crawl")
    }

    /// Requests of hosts whose name ends in `host`.
    pub fn requests(&self, host: &str) -> usize {
        let asked = self.asked.lock().expect("a count");
        asked.iter().filter(|(name, _)| name.ends_with(host)).map(|(_, paths)| paths.len()).sum()
    }

    /// Hosts that were asked for a page, of those whose names begin so.
    pub fn hosts(&self, start: &str) -> usize {
        let asked = self.asked.lock().expect("a count");
        let of_start = asked.iter().filter(|(name, _)| name.starts_with(start));
        of_start.filter(|(_, paths)| paths.iter().any(|path| path != "/robots.txt")).count()
    }

    /// Pages of the victim that were asked for.
    pub fn victim_pages(&self) -> usize {
        let asked = self.asked.lock().expect("a count");
        asked.get(VICTIM).map_or(0, |paths| paths.iter().filter(|path| *path != "/robots.txt").count())
    }

    /// A crawl of `hosts` and then the victim, on one shard, with names from `names` and `more` configuration.
    pub fn crawl(&self, names: &NameServer, hosts: &[&str], more: &str) -> Process {
        let text = format!(
            "version = 1\ncrawl.shards = 1\ndns.servers = [\"{}\"]\npoliteness.retries_max = 0\nrobots.retries_max = 0\n\
             {more}\n",
            names.addr
        );
        let (config, dir) = (self.folder.file("config.toml", &text), self.dir());
        let seeds: Vec<String> = hosts.iter().chain(&[VICTIM]).map(|host| self.url(host, "/")).collect();
        let mut arguments = vec!["crawl", "--dir", &dir, "-c", &config, "--json", "-"];
        arguments.extend(seeds.iter().map(String::as_str));
        start(&arguments)
    }

    /// Lets a crawl go on until the victim had all its pages, and stops it; its summary.
    pub fn stop_after_the_victim(&self, mut crawl: Process) -> Value {
        crawl.wait_until("the victim's pages", || self.victim_pages() >= VICTIM_PAGES);
        crawl.signal("TERM");
        self.end(crawl)
    }

    /// The summary of a crawl that ends by itself, in which no shard worked for a second in one piece.
    pub fn end(&self, crawl: Process) -> Value {
        let ended = crawl.end().expect(0);
        assert!(!is_held_up(&ended.err), "{}", ended.err);
        assert_eq!(self.victim_pages(), VICTIM_PAGES);
        ended.json()
    }
}

/// Without delays.
pub const AT_ONCE: &str =
    "politeness.host_delay = \"0s\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n";

fn serve(mut stream: TcpStream, port: u16, noted: &Asked, attack: &dyn Fn(&mut TcpStream, &str, u16, &str)) {
    while let Some(request) = read_request(&mut stream) {
        let path = request.split(' ').nth(1).unwrap_or_default();
        let host = request.split("\r\n").find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        noted.lock().expect("a count").entry(host.to_owned()).or_default().push(path.to_owned());
        if host != VICTIM {
            attack(&mut stream, host, port, path);
            return;
        }
        let links = match path {
            "/" => (1..VICTIM_PAGES).map(|page| format!("<a href=/{page}>")).collect(),
            _ => String::new(),
        };
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{links}",
            links.len()
        );
    }
}

/// A response of HTML that ends with the connection.
pub fn html(body: impl AsRef<[u8]>) -> Vec<u8> {
    [b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n\r\n", body.as_ref()].concat()
}

/// No robots.txt.
pub fn nothing() -> Vec<u8> {
    b"HTTP/1.1 404 None\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec()
}

/// Whether a shard worked for a second in one piece, as the program says: for half of it at least, since a busy machine's
/// shards wait for a CPU.
pub fn is_held_up(err: &str) -> bool {
    let cpu =
        |line: &str| line.split_once("at one piece of work")?.1.split_once('(')?.1.split_once(" ms")?.0.parse().ok();
    err.lines().filter_map(cpu).any(|millis: u64| millis >= 500)
}

/// A number of a summary.
#[track_caller]
pub fn number(summary: &Value, pointer: &str) -> u64 {
    summary.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// Fetches that failed.
pub fn failures(summary: &Value) -> u64 {
    summary["failures"].as_object().into_iter().flat_map(|all| all.values()).filter_map(Value::as_u64).sum()
}
