//! What a restart costs: a brain alone takes up the logs of URLS URLs (default 10,000,000), of which OVER per cent (default 60) are
//! over, on one host a hundred URLs.
//!
//! The first process accepts them, as links come in, and writes the logs; the second reads them back, in the same pieces as
//! the disk does. Printed: bytes of the logs a URL, seconds, and the peak memory of both. The logs and the spool are files, so
//! that memory is what the brain holds.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process;
use std::sync::Arc;

use ringcrawl_base::time::{Instant, WallClock};
use ringcrawl_base::{Rng, TempFolder};
use ringcrawl_brain::budget::PageBudget;
use ringcrawl_brain::frontier::Ledger;
use ringcrawl_brain::log::{Append, End, EndKind, Log, LogFile, Owner, RecordPlace, Replayed};
use ringcrawl_brain::route::Partition;
use ringcrawl_brain::scope::Scope;
use ringcrawl_brain::shard::{Command, DiskEnd, DiskOp, Effect, FilesFound, Input, Setup, Shard};
use ringcrawl_brain::spool::SpoolOp;
use ringcrawl_config::Config;
use ringcrawl_url::Url;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let in_test = !std::env::args().any(|argument| argument == "--bench");
    let urls = number("URLS").unwrap_or(if in_test { 20_000 } else { 10_000_000 });
    let over = urls * number("OVER").unwrap_or(60) / 100;
    if let (Ok(step), Ok(folder)) = (std::env::var("STEP"), std::env::var("FOLDER")) {
        return if step == "run" { first_run(&folder, urls, over) } else { restart(&folder, urls) };
    }
    let folder = TempFolder::new("restart");
    let program = std::env::current_exe().expect("a path");
    for step in ["run", "restart"] {
        let mut command = process::Command::new(&program);
        command.args(std::env::args_os().skip(1)).env("STEP", step).env("FOLDER", folder.path());
        assert!(command.status().expect("a process").success());
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Accepts the URLs and writes that the first of them are over.
fn first_run(folder: &str, urls: u64, over: u64) {
    let mut rig = Rig::new(folder);
    rig.run();
    for first in (0..urls).step_by(1_000) {
        let seeds = (first..urls.min(first + 1_000)).map(|number| {
            // Of a link's usual length.
            let (host, page) = (number / 100, number % 100);
            Url::parse(&format!(
                "https://www.host-{host}.test/news/{}/some-article-{page}.html",
                number * 7_919 % 2_027
            ))
        });
        rig.shard.handle(rig.now, Input::Command(Command::Seeds(seeds.map(|url| url.expect("a URL")).collect())));
        rig.now = rig.now + std::time::Duration::from_millis(20);
        rig.write();
    }
    rig.now = rig.now + std::time::Duration::from_secs(10);
    rig.write();
    let memory = memory("VmHWM") >> 20;
    let mut log = Log::new(OWNER, 1, 0);
    log.take_up(&Replayed { next_url: urls, ..Replayed::default() });
    let mut bytes = 0;
    let (mut rng, mut offset) = (Rng::new(1), 0);
    for number in 0..over {
        // The hosts take turns, and pages differ in length.
        let url = number * 7_919 % over.max(1) / 64 * 64 + rng.below(64);
        offset = if number % 40_000 == 0 { 0 } else { offset + 2_000 + rng.below(8_000) };
        let place = Some(RecordPlace { shard: 0, segment: (number / 40_000) as u32, offset });
        log.end(End {
            url,
            kind: EndKind::Fetched(200),
            tries: 1,
            is_duplicate: false,
            is_challenge: false,
            seconds: number / 1_000,
            place,
            bytes: 0,
            cut: None,
        });
        // As the shard does it, once a second.
        if number % 1_000 == 0 || number + 1 == over {
            log.freeze_ends();
            while let Some(append) = log.take_ends() {
                bytes += append.bytes.len() as u64;
                rig.append(append);
            }
        }
    }
    let of_urls = std::fs::metadata(rig.path(LogFile::Urls)).map_or(0, |file| file.len());
    println!("{urls} URLs: {:.1} bytes each in the URL log", of_urls as f64 / urls as f64);
    println!("{over} ends: {:.1} bytes each in the log of ends", bytes as f64 / over.max(1) as f64);
    println!("the run: {memory} MiB at most");
}

fn restart(folder: &str, urls: u64) {
    let begun = std::time::Instant::now();
    let mut rig = Rig::new(folder);
    rig.run();
    assert!(!rig.shard.is_replaying());
    assert_eq!(rig.shard.stats().visited, urls);
    println!("the restart: {:.1} s, {} MiB at most", begun.elapsed().as_secs_f64(), memory("VmHWM") >> 20);
}

/// A shard whose files are in a folder, and no network.
struct Rig {
    shard: Shard,
    folder: String,
    files: HashMap<LogFile, File>,
    spool: HashMap<u32, File>,
    now: Instant,
}

impl Rig {
    fn new(folder: &str) -> Rig {
        let mut config = Config::default();
        config.agent.name = "bench".to_owned();
        // Every URL has room, also the last site's.
        config.visited.urls_max = 1_000_000_000;
        // No URL is asked for.
        config.fetch.in_flight_max = 1;
        let shard = Shard::new(Setup {
            site_bounds: Arc::default(),
            site_parts: Arc::default(),
            is_new: false,
            index: 0,
            partition: Partition::by_site(1),
            scope: Scope::new(&config.scope, []),
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
            crawl: OWNER.crawl,
            clock: WallClock::default(),
            begins: Instant::ZERO,
            ask_again: Default::default(),
            files: FilesFound::default(),
        });
        let shard = shard.expect("a shard");
        Rig { shard, folder: folder.to_owned(), files: HashMap::new(), spool: HashMap::new(), now: Instant::ZERO }
    }

    /// Carries out what there is to do until the logs are read.
    fn run(&mut self) {
        while self.shard.is_replaying() {
            self.write();
        }
    }

    fn write(&mut self) {
        while let Some(effect) = self.shard.poll(self.now) {
            match effect {
                Effect::Disk(op) => {
                    let end = self.disk(op);
                    self.shard.handle(self.now, Input::Disk(end));
                }
                Effect::Fetch(_) | Effect::Ask(_) => {}
                Effect::Note(note) | Effect::Warn(note) => println!("{note}"),
                effect => panic!("{effect:?}"),
            }
        }
    }

    fn disk(&mut self, op: DiskOp) -> DiskEnd {
        let bytes = op.bytes();
        match op {
            DiskOp::ReadLog { file, position } => return DiskEnd::LogRead { bytes: self.read(file, position) },
            DiskOp::Append(append) => self.append(append),
            DiskOp::Sync { .. } => return DiskEnd::Synced,
            DiskOp::Spool(SpoolOp::Write { block, bytes }) => {
                let path = format!("{}/spool-{}", self.folder, block.file);
                let file = self.spool.entry(block.file).or_insert_with(|| File::create(path).expect("a file"));
                file.write_all_at(&bytes, block.offset.into()).expect("room");
            }
            op => panic!("{op:?}"),
        }
        DiskEnd::Done { spare: None, bytes }
    }

    fn path(&self, file: LogFile) -> String {
        format!("{}/{}", self.folder, file.to_string().replace('/', "-"))
    }

    fn append(&mut self, append: Append) {
        let path = self.path(append.file);
        let file = self.files.entry(append.file).or_insert_with(|| File::create(path).expect("a file"));
        file.write_all_at(&append.bytes, append.position).expect("room");
    }

    fn read(&self, file: LogFile, position: u64) -> Vec<u8> {
        let Ok(file) = File::open(self.path(file)) else { return Vec::new() };
        let mut bytes = vec![0; PIECE_BYTES];
        let read = file.read_at(&mut bytes, position).expect("readable");
        bytes.truncate(read);
        bytes
    }
}

/// Bytes, by a line of /proc/self/status.
fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let kib = status.lines().find_map(|text| text.strip_prefix(line)?.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.expect("a number of KiB") * 1024
}

const OWNER: Owner = Owner { crawl: 1, shard: 0 };
/// As the disk reads logs.
const PIECE_BYTES: usize = 1 << 20;
