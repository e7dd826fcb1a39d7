//! What a host costs in memory: a brain alone meets HOSTS hosts (default 300,000), one page each.
//!
//! Two figures: with a robots.txt of five rules each (`rules`), and with none (`none`). Resident memory is looked at
//! before, when all wait in the queue, and after all pages were fetched and every host is idle. With BOUND set it is
//! the value of `frontier.hosts_max`, and RULES_BYTES that of `robots.ram_bytes_max`.
//! Limits: the visited set is in it, 10 to 15 bytes a URL; the spool is thrown away unread until it is asked for.

use std::collections::HashMap;
use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;

use ringcrawl::config::{Config, PartitionKey};
use ringcrawl::frontier::Ledger;
use ringcrawl::outcome::{FetchJob, Fetched, JobKind, Outcome};
use ringcrawl::route::Partition;
use ringcrawl::shard::{Scope, Shard};
use ringcrawl::spool::SpoolOp;
use ringcrawl::time::{Duration, Instant};
use ringcrawl::url::Url;

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
        let ended = Command::new(program).args(std::env::args_os().skip(1)).env("ROBOTS", which).status();
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
    config.politeness.ip_delay = Duration::ZERO;
    if let Some(bound) = number("BOUND") {
        config.frontier.hosts_max = bound;
    }
    if let Some(bytes) = number("RULES_BYTES") {
        config.robots.ram_bytes_max = bytes;
    }
    let partition = Partition { key: PartitionKey::Site, shards: 1 };
    let scope = Scope::new(&config.scope, []);
    let before = memory("VmRSS");
    let mut shard = Shard::new(0, partition, scope, 1, &config, Arc::new(Ledger::new(16)));
    let mut now = Instant::ZERO;
    let mut disk = HashMap::new();
    for host in 0..hosts {
        let url = Url::parse(&format!("http://www.host-number-{host}.test/index.html")).expect("a URL");
        shard.found(now, &url, 0);
        settle(&mut shard, now, &mut disk);
    }
    let on_disk = |disk: &HashMap<_, Vec<u8>>| disk.values().map(|bytes| bytes.capacity() as u64).sum::<u64>();
    let queued = memory("VmRSS").saturating_sub(before + on_disk(&disk));
    let mut pages = 0;
    while !shard.is_idle() {
        while let Some(job) = shard.next_job(now) {
            pages += u64::from(job.kind == JobKind::Page);
            let outcome = answer(which, &job);
            shard.finish(now, &job, &outcome);
        }
        settle(&mut shard, now, &mut disk);
        if let Some(due) = shard.next_due() {
            now = due.max(now + Duration::from_micros(1));
        }
    }
    assert_eq!((pages, shard.hosts()), (hosts, hosts as _));
    let idle = memory("VmRSS").saturating_sub(before + on_disk(&disk));
    println!("{which:<8} {hosts:>10} {:>16} {:>16} {:>12}", queued / hosts, idle / hosts, memory("VmHWM") >> 20);
}

/// What goes to disk goes to a map, and comes back from it; the journal goes nowhere.
fn settle(shard: &mut Shard, now: Instant, disk: &mut HashMap<(u32, u32), Vec<u8>>) {
    while let Some(op) = shard.next_spool_op() {
        match op {
            SpoolOp::Write { block, bytes } => {
                disk.insert((block.file, block.offset), bytes);
            }
            SpoolOp::Read { block, purpose } => {
                let bytes = disk.remove(&(block.file, block.offset)).expect("a block");
                assert!(shard.spool_read(now, block, purpose, bytes));
            }
            SpoolOp::Delete { .. } => {}
        }
    }
    while shard.journal_block(now, true).is_some() {}
}

fn answer(which: &str, job: &FetchJob) -> Outcome {
    match job.kind {
        JobKind::Resolve => {
            Outcome::Resolved { addrs: vec![IpAddr::from([192, 0, 2, 1])], ttl: Duration::from_secs(300) }
        }
        JobKind::Robots if which == "rules" => {
            Outcome::Fetched(Fetched { status: 200, robots_body: Some(ROBOTS.to_vec()), ..Fetched::default() })
        }
        JobKind::Robots => Outcome::Fetched(Fetched { status: 404, ..Fetched::default() }),
        JobKind::Page => Outcome::Fetched(Fetched { status: 200, ..Fetched::default() }),
    }
}

/// Bytes, by a line of /proc/self/status.
fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let kib = status.lines().find_map(|text| text.strip_prefix(line)?.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.expect("a number of KiB") * 1024
}

const ROBOTS: &[u8] = b"User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\nDisallow: /search\n\
    Disallow: /*?sort=\nDisallow: /cart/\nSitemap: https://www.example.com/sitemap_index.xml\n";
