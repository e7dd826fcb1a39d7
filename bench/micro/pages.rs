//! The pure parts of a page's path, for a fixed number of fixed pages: what `bench/ceilings` counts the instructions of.
//!
//!     pages small|web|docs|dear WARM_UP COUNTED
//!
//! Decides: a brain alone crawls a web that answers at once, by the doors that the pump uses: `Shard::handle`,
//! `Shard::poll` and `LongResponse::read`. After WARM_UP pages these calls go through functions named `counted_…`, for
//! COUNTED pages more. Everything else, such as making pages and reading HTTP, stays outside of them.
//! `small` and `web` are the workloads of `ringcrawl bench`. `docs` is a page of the SQLite documentation, which is in the
//! public domain: each of its pages has some words and an eighth of the links of its own. `dear` is each response that is made to
//! cost much, as long as a shard reads one in its own turn, and counts receiving it too: what holds up all other hosts.
//! Invariants: no clock, no randomness: each run executes the same instructions.

use std::collections::VecDeque;
use std::hint::black_box;
use std::io::Write;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use ringcrawl_base::time::{Duration, Instant, UnixTime};
use ringcrawl_brain::job::{FetchJob, JobKind};
use ringcrawl_brain::names::DnsAnswer;
use ringcrawl_brain::page::{LongResponse, PageRead};
use ringcrawl_brain::route::Partition;
use ringcrawl_brain::sample::{dear_responses, dear_robots, plain_transaction};
use ringcrawl_brain::scope::Scope;
use ringcrawl_brain::shard::{Command, DiskEnd, DiskOp, Effect, Input, Setup, Shard};
use ringcrawl_brain::transaction::{Timings, Transaction};
use ringcrawl_config::Config;
use ringcrawl_http::{Limits, Method, Response, ResponseReader};
use ringcrawl_url::Url;
use ringcrawl_warc::CaptureWriter;
use ringcrawl_web::{Model, ModelConfig, Profile};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [web, ..] if web == "dear" => dear(),
        [web, warm_up, counted] => crawl(web, warm_up.parse().expect("a number"), counted.parse().expect("a number")),
        _ => {
            ["small", "web", "docs"].into_iter().for_each(|web| crawl(web, 20, 20));
            dear();
        }
    }
}

fn crawl(web: &str, warm_up: u64, counted: u64) {
    let mut crawl = Crawl::new(Web::new(web));
    crawl.run_until(warm_up);
    crawl.is_counted = true;
    let before = crawl.shard.stats().clone();
    crawl.run_until(warm_up + counted);
    let since = crawl.shard.stats().since(&before);
    assert!(since.pages >= counted && since.failed() == 0, "{since:?}");
    println!("{} pages, {} links", since.pages, since.links);
}

/// Each dear response, of a host and a shard of its own.
fn dear() {
    let short = Config::default().fetch.short_bytes_max;
    let pages = dear_responses(short, 4 * short - 1_000).into_iter().map(|(_, bytes)| (JobKind::Page, bytes));
    let all: Vec<(JobKind, Vec<u8>)> = pages.chain([(JobKind::Robots, dear_robots())]).collect();
    println!("{} responses", all.len());
    for (kind, bytes) in all {
        let mut crawl = Crawl::new(Web::Dear(kind, bytes));
        crawl.run_to(kind);
    }
}

/// A shard, a web, and a disk that forgets.
struct Crawl {
    shard: Shard,
    web: Web,
    writer: CaptureWriter,
    limits: Limits,
    now: Instant,
    in_flight: VecDeque<Rc<FetchJob>>,
    is_counted: bool,
}

impl Crawl {
    fn new(web: Web) -> Crawl {
        let mut config = Config::default();
        config.agent.name = "bench".to_owned();
        let politeness = &mut config.politeness;
        (politeness.host_delay, politeness.site_delay, politeness.ip_delay) = Default::default();
        (politeness.group_delay, politeness.response_factor) = (Duration::ZERO, 0);
        config.scope.depth_max = 255;
        // All first pages of a host are looked at, as under any budget: what that costs is counted, too.
        config.crawl.pages_max = u64::MAX;
        let (limits, packing) = (config.fetch.limits(), config.store.packing());
        let scope = Scope::new(&config.scope, []);
        let seeds = web.seeds();
        let shard = Shard::new(Setup::new(Arc::new(config), Partition::by_site(1), scope, 1, 64)).expect("a shard");
        let writer = CaptureWriter::new(packing).expect("a writer");
        let (now, in_flight) = (Instant::ZERO, VecDeque::new());
        let mut crawl = Crawl { shard, web, writer, limits, now, in_flight, is_counted: false };
        crawl.carry_out();
        crawl.handle(Input::Command(Command::Seeds(seeds)));
        crawl
    }

    fn run_until(&mut self, pages: u64) {
        while self.shard.stats().pages < pages {
            self.carry_out();
            match self.in_flight.pop_front() {
                Some(job) => {
                    self.now = self.now + RESPONSE_EVERY;
                    let result = Ok(Box::new(self.fetch(&job)));
                    self.handle(Input::Fetched { job: job.id, result });
                }
                None => self.now = self.shard.next_due().expect("something to do").max(self.now + RESPONSE_EVERY),
            }
        }
    }

    /// Until the first job of this kind has ended, which is counted.
    fn run_to(&mut self, kind: JobKind) {
        while !self.is_counted {
            self.carry_out();
            let Some(job) = self.in_flight.pop_front() else {
                self.now = self.shard.next_due().expect("something to do").max(self.now + RESPONSE_EVERY);
                continue;
            };
            self.is_counted = job.kind == kind;
            let result = Ok(Box::new(self.fetch(&job)));
            self.handle(Input::Fetched { job: job.id, result });
        }
        self.carry_out();
    }

    fn carry_out(&mut self) {
        while self.in_flight.len() < IN_FLIGHT
            && let Some(effect) = self.poll()
        {
            let input = match effect {
                Effect::Fetch(job) => {
                    self.in_flight.push_back(job);
                    continue;
                }
                Effect::Ask(query) => {
                    let address = IpAddr::from([192, 0, 2, 1]);
                    let answer = DnsAnswer::Addrs(vec![address], Duration::from_secs(3_600), None);
                    Input::Answered { lookup: query.lookup, answer }
                }
                Effect::Read(reading) => Input::Read(Box::new(self.read(reading))),
                Effect::Disk(op) => Input::Disk(disk(op)),
                // Dropped links of a dear page cause a note.
                Effect::CutShort(_) | Effect::Note(_) | Effect::Warn(_) => continue,
                effect => panic!("{effect:?}"),
            };
            self.handle(input);
        }
    }

    fn fetch(&self, job: &FetchJob) -> Transaction {
        let mut bytes = Vec::new();
        if let Web::Dear(kind, dear) = &self.web
            && *kind == job.kind
        {
            let config = Config::default();
            let limits = match kind {
                JobKind::Robots => config.fetch.limits_of_robots(&config.robots),
                _ => self.limits,
            };
            let head = plain_transaction(b"HTTP/1.1 200 OK\r\n\r\n", limits);
            return Transaction { response: counted_receive(dear, limits), ip: job.addr, ..head };
        }
        match job.kind {
            JobKind::Page => self.web.answer(&job.url, &mut bytes),
            _ => bytes.extend_from_slice(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        }
        Transaction {
            request_bytes: format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", job.url.path_and_query(), job.url.host())
                .into_bytes(),
            ip: job.addr,
            started: UnixTime::from_micros(1_700_000_000_000_000 + self.now.as_nanos() / 1_000),
            timings: Timings { total: Duration::from_millis(1), ..Timings::default() },
            ..plain_transaction(&bytes, self.limits)
        }
    }

    fn handle(&mut self, input: Input) {
        match self.is_counted {
            true => counted_handle(&mut self.shard, self.now, input),
            false => self.shard.handle(self.now, input),
        }
    }

    fn poll(&mut self) -> Option<Effect> {
        if self.is_counted { counted_poll(&mut self.shard, self.now) } else { self.shard.poll(self.now) }
    }

    fn read(&mut self, reading: Box<LongResponse>) -> PageRead {
        if self.is_counted { counted_read(reading, &mut self.writer) } else { reading.read(&mut self.writer) }
    }
}

// What is counted. Each does something after its call, so that none is merged with what it calls.

#[inline(never)]
fn counted_handle(shard: &mut Shard, now: Instant, input: Input) {
    shard.handle(now, input);
    black_box(shard);
}

#[inline(never)]
fn counted_poll(shard: &mut Shard, now: Instant) -> Option<Effect> {
    black_box(shard.poll(now))
}

#[inline(never)]
fn counted_receive(bytes: &[u8], limits: Limits) -> Response {
    let mut reader = ResponseReader::new(Method::Get, limits);
    // Some of them are broken: what came before counts.
    let _ = bytes.chunks(32 << 10).try_for_each(|piece| reader.feed(piece).map(|_| ()));
    let _ = reader.end_of_stream();
    black_box(reader.into_response().expect("a head"))
}

#[inline(never)]
fn counted_read(reading: Box<LongResponse>, writer: &mut CaptureWriter) -> PageRead {
    black_box(reading.read(writer))
}

fn disk(op: DiskOp) -> DiskEnd {
    match op {
        DiskOp::ReadLog { .. } => DiskEnd::LogRead { bytes: Vec::new() },
        DiskOp::Sync { .. } => DiskEnd::Synced,
        op => DiskEnd::Done { spare: None, bytes: op.bytes() },
    }
}

/// The pages.
enum Web {
    Synthetic(Box<Model>),
    Docs,
    /// One response to jobs of this kind.
    Dear(JobKind, Vec<u8>),
}

impl Web {
    fn new(name: &str) -> Web {
        let (profile, gzip) = match name {
            "small" => (Profile::Small, false),
            "web" => (Profile::Web, true),
            "docs" => return Web::Docs,
            name => panic!("{name}: expected small, web or docs"),
        };
        let config =
            ModelConfig { sites: SITES, https_share: 0.0, endless: true, profile, gzip, ..ModelConfig::default() };
        Web::Synthetic(Box::new(Model::new(config).expect("a web")))
    }

    fn seeds(&self) -> Vec<Url> {
        match self {
            Web::Synthetic(model) => model.seeds(SITES),
            Web::Docs => (0..SITES)
                .map(|site| Url::parse(&format!("http://docs-{site}.test/part-0.html")).expect("a URL"))
                .collect(),
            Web::Dear(..) => vec![Url::parse("http://dear.test/").expect("a URL")],
        }
    }

    fn answer(&self, url: &Url, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        let (status, coding, location) = match self {
            Web::Synthetic(model) => {
                let place = model.locate_url(url);
                let answer = model.answer(place.as_ref(), url.path_and_query(), true, &mut body);
                (answer.status, answer.gzip, answer.location)
            }
            Web::Docs => {
                body = gzip(&docs(url));
                (200, true, None)
            }
            Web::Dear(..) => (404, false, None),
        };
        let coding = if coding { "Content-Encoding: gzip\r\n" } else { "" };
        let location = location.map(|location| format!("Location: {location}\r\n")).unwrap_or_default();
        write!(out, "HTTP/1.1 {status} Bench\r\nServer: bench\r\nContent-Type: text/html; charset=utf-8\r\n")
            .expect("memory");
        write!(out, "Content-Length: {}\r\n{coding}{location}\r\n", body.len()).expect("memory");
        out.extend_from_slice(&body);
    }
}

/// A page of documentation: each fourth long word is changed by the URL, and links lead to eight pages of its own.
fn docs(url: &Url) -> Vec<u8> {
    let number = url
        .path_and_query()
        .bytes()
        .filter(u8::is_ascii_digit)
        .fold(0u64, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
    let (mut page, mut is_text) = (Vec::with_capacity(DOCS.len() + 1_024), true);
    let mut word = 0;
    for (index, byte) in DOCS.bytes().enumerate() {
        is_text = (is_text || byte == b'>') && byte != b'<';
        page.push(byte);
        word = if byte.is_ascii_lowercase() { word + 1 } else { 0 };
        let draw = (number << 20 | index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if is_text && word == 6 && draw.is_multiple_of(4) {
            page.push(b'a' + (draw >> 8) as u8 % 26);
        }
    }
    for child in 1..=8 {
        let child = (number * 8 + child) % 1_000_000_007;
        write!(page, "<p><a href=\"part-{child}.html\">Part {child}</a>").expect("memory");
    }
    page
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    coder.write_all(bytes).expect("memory");
    coder.finish().expect("memory")
}

const DOCS: &str = include_str!("docs.html");
const SITES: u32 = 50;
const IN_FLIGHT: usize = 32;
/// By the crawl's clock: the logs commit once a second.
const RESPONSE_EVERY: Duration = Duration::from_millis(4);
