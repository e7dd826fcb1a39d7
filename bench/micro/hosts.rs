//! What a host costs in memory: a brain alone meets HOSTS hosts (default 300,000), one page each.
//!
//! Two figures: with a robots.txt of five rules each (`rules`), and with none (`none`). Resident memory is looked at
//! before, when all wait in the queue, and after all pages were fetched and every host is idle. With BOUND set it is
//! the value of `frontier.hosts_max`, and RULES_BYTES that of `robots.ram_bytes_max`.
//! Limits: the visited set is in it, 10 to 15 bytes a URL; the spool is thrown away unread until it is asked for.

use std::collections::HashMap;
use std::net::IpAddr;
use std::process;
use std::sync::Arc;

use ringcrawl_base::time::{Duration, Instant, WallClock};
use ringcrawl_brain::budget::PageBudget;
use ringcrawl_brain::frontier::Ledger;
use ringcrawl_brain::job::{FetchJob, JobKind};
use ringcrawl_brain::names::DnsAnswer;
use ringcrawl_brain::route::Partition;
use ringcrawl_brain::sample::plain_transaction;
use ringcrawl_brain::scope::Scope;
use ringcrawl_brain::shard::{Command, DiskEnd, DiskOp, Effect, FilesFound, Input, Setup, Shard};
use ringcrawl_brain::spool::SpoolOp;
use ringcrawl_brain::transaction::Transaction;
use ringcrawl_config::Config;
use ringcrawl_url::Url;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let in_test = !std::env::args().any(|argument| argument == "--bench");
    let hosts = number("HOSTS").unwrap_or(if in_test { 2_000 } else { 300_000 });
    // Each in a process of its own: what one leaves in the allocator is not the other's.
    if let Ok(which) = std::env::var("ROBOTS") {
        return measure(&which, hosts);
    }
    println!("{:<8} {:>10} {:>16} {:>16} {:>12}", "robots", "hosts", "B/host queued", "B/host idle", "peak MiB");
    for which in ["none", "rules"] {
        let program = std::env::current_exe().expect("a path");
        let ended = process::Command::new(program).args(std::env::args_os().skip(1)).env("ROBOTS", which).status();
        assert!(ended.expect("a process").success());
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn measure(which: &str, hosts: u64) {
    let mut config = Config::default();
    config.agent.name = "bench".to_owned();
    config.politeness.host_delay = Duration::ZERO;
    (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
    if let Some(bound) = number("BOUND") {
        config.frontier.hosts_max = bound;
    }
    if let Some(bytes) = number("RULES_BYTES") {
        config.robots.ram_bytes_max = bytes;
    }
    let before = memory("VmRSS");
    let scope = Scope::new(&config.scope, []);
    let shard = Shard::new(Setup {
        site_bounds: std::sync::Arc::default(),
        site_parts: std::sync::Arc::default(),
        is_new: false,
        index: 0,
        partition: Partition::by_site(1),
        scope,
        rng_seed: 1,
        budget: Arc::new(PageBudget::new(0)),
        config: Arc::new(config),
        user_agent: "bench/1".to_owned(),
        earlier: std::sync::Arc::default(),
        ledger: Arc::new(Ledger::new(16)),
        operators: Arc::default(),
        ranks: Arc::default(),
        replicated: Default::default(),
        name_servers: 1,
        crawl: 1,
        clock: WallClock::default(),
        begins: Instant::ZERO,
        ask_again: Default::default(),
        files: FilesFound::default(),
    });
    let mut rig = Rig { shard: shard.expect("a shard"), disk: HashMap::new(), pages: 0, which: which.to_owned() };
    let mut now = Instant::ZERO;
    rig.run(now);
    for host in 0..hosts {
        let url = Url::parse(&format!("http://www.host-number-{host}.test/index.html")).expect("a URL");
        rig.shard.handle(now, Input::Command(Command::Seeds(vec![url])));
    }
    let queued = memory("VmRSS").saturating_sub(before + rig.on_disk());
    while !rig.shard.report().quiet {
        rig.run(now);
        if let Some(due) = rig.shard.next_due() {
            now = due.max(now + Duration::from_micros(1));
        }
    }
    assert_eq!((rig.pages, rig.shard.stats().hosts), (hosts, hosts));
    let idle = memory("VmRSS").saturating_sub(before + rig.on_disk());
    println!("{which:<8} {hosts:>10} {:>16} {:>16} {:>12}", queued / hosts, idle / hosts, memory("VmHWM") >> 20);
}

/// A shard, a web that answers at once, and a disk that keeps blocks of the spool and nothing else.
struct Rig {
    shard: Shard,
    disk: HashMap<(u32, u32), Vec<u8>>,
    pages: u64,
    which: String,
}

impl Rig {
    /// Carries out what is to be done now.
    fn run(&mut self, now: Instant) {
        while let Some(effect) = self.shard.poll(now) {
            let input = match effect {
                Effect::Fetch(job) => self.fetch(&job),
                Effect::Ask(query) => {
                    let addrs = vec![IpAddr::from([192, 0, 2, 1])];
                    Input::Answered {
                        lookup: query.lookup,
                        answer: DnsAnswer::Addrs(addrs, Duration::from_secs(300), None),
                    }
                }
                Effect::Disk(op) => Input::Disk(self.disk(op)),
                effect => panic!("{effect:?}"),
            };
            self.shard.handle(now, input);
        }
    }

    fn disk(&mut self, op: DiskOp) -> DiskEnd {
        let bytes = op.bytes();
        match op {
            DiskOp::ReadLog { .. } => return DiskEnd::LogRead { bytes: Vec::new() },
            DiskOp::Sync { .. } => return DiskEnd::Synced,
            DiskOp::Spool(SpoolOp::Write { block, bytes }) => drop(self.disk.insert((block.file, block.offset), bytes)),
            DiskOp::Spool(SpoolOp::Read { block }) => {
                let bytes = self.disk.remove(&(block.file, block.offset)).expect("a block");
                return DiskEnd::BlockRead { block, bytes };
            }
            _ => {}
        }
        DiskEnd::Done { spare: None, bytes }
    }

    fn on_disk(&self) -> u64 {
        self.disk.values().map(|bytes| bytes.capacity() as u64).sum()
    }

    fn fetch(&mut self, job: &FetchJob) -> Input {
        let bytes: &[u8] = match job.kind {
            JobKind::Robots if self.which == "rules" => ROBOTS,
            JobKind::Robots => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        };
        self.pages += u64::from(job.kind == JobKind::Page);
        let limits = Config::default().fetch.limits();
        let transaction = Transaction { ip: job.addr, ..plain_transaction(bytes, limits) };
        Input::Fetched { job: job.id, result: Ok(Box::new(transaction)) }
    }
}

/// Bytes, by a line of /proc/self/status.
fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let kib = status.lines().find_map(|text| text.strip_prefix(line)?.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.expect("a number of KiB") * 1024
}

const ROBOTS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\nDisallow: /search\n\
    Disallow: /*?sort=\nDisallow: /cart/\nSitemap: https://www.example.com/sitemap_index.xml\n";
