//! The brain of one shard of two, with a disk and rings that fail.

mod accepted;
mod clocks;
mod faults;
mod found;
mod keys;
mod long_ways;
mod network;
mod orders;
mod readings;
mod segments;
mod spills;
mod turns;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::exchange::message::Header;
use crate::job::{FetchJob, JobKind};
use crate::log::{Append, AskAgain, LogFile, read_ends, read_urls};
use crate::names::DnsAnswer;
use crate::route::Partition;
use crate::sample::plain_transaction;
use crate::scope::Scope;
use crate::spool::SpoolOp;
use crate::transaction::Transaction;
use ringcrawl_config::{Config, Difference, ExchangeMode, PartitionBy};
use ringcrawl_url::{SiteKey, Url};
use ringcrawl_warc::{CaptureWriter, Packing, SegmentOp};

/// A shard with what its disk holds.
struct Rig {
    shard: Shard,
    partition: Partition,
    logs: Logs,
    blocks: Vec<(crate::spool::Block, Vec<u8>)>,
    /// Blocks come back with a flipped bit.
    damages_blocks: bool,
    /// The ring to the other shard accepts messages.
    has_room: bool,
    sent: Vec<Vec<u8>>,
    fetches: Vec<FetchJob>,
    /// Long responses that were read.
    readings: usize,
    /// Notes for the operator.
    notes: Vec<String>,
    /// Segments that were closed.
    closed: usize,
    end: Option<Result<(), String>>,
}

/// Logs by their names.
type Logs = BTreeMap<LogFile, Vec<u8>>;

fn config(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    config.agent.name = "shard".to_owned();
    config.politeness.slow_start = 1;
    config.dns.hosts.insert("s.test".to_owned(), vec!["192.0.2.1".parse().expect("an address")]);
    change(&mut config);
    config
}

impl Rig {
    fn new(config: Config, logs: Logs) -> Rig {
        let mut rig = Rig::reading(config, logs);
        rig.run(Instant::ZERO);
        rig
    }

    /// A shard that has not read its logs yet.
    fn reading(config: Config, logs: Logs) -> Rig {
        Rig::starting(config, logs, false)
    }

    fn starting(config: Config, logs: Logs, retry_failed: bool) -> Rig {
        let (scope, partition) = (Scope::new(&config.scope, []), Partition::new(&config.partition, 2));
        let setup = Setup {
            is_new: logs.is_empty(),
            ask_again: AskAgain::failed(retry_failed),
            files: FilesFound {
                journal: logs.keys().filter_map(|file| file.journal()).collect(),
                ..FilesFound::default()
            },
            ..Setup::new(Arc::new(config), partition.clone(), scope, 1, 16)
        };
        let shard = Shard::new(setup).expect("a shard");
        Rig {
            shard,
            partition,
            logs,
            blocks: Vec::new(),
            damages_blocks: false,
            has_room: true,
            sent: Vec::new(),
            fetches: Vec::new(),
            readings: 0,
            notes: Vec::new(),
            closed: 0,
            end: None,
        }
    }

    /// Carries out everything until nothing is left; lookups are never answered.
    fn run(&mut self, now: Instant) {
        while let Some(effect) = self.shard.poll(now) {
            match effect {
                Effect::Fetch(job) => self.fetches.push((*job).clone()),
                Effect::CutShort(_) | Effect::Ask(_) => {}
                Effect::Note(note) | Effect::Warn(note) => self.notes.push(note),
                Effect::Read(reading) => {
                    self.readings += 1;
                    let page = reading.read(&mut CaptureWriter::new(Packing::default()).expect("a writer"));
                    self.shard.handle(now, Input::Read(Box::new(page)));
                }
                Effect::Train(training) => self.shard.handle(now, Input::Trained(training.train())),
                Effect::Send(message) if self.has_room => self.sent.push(message.bytes),
                Effect::Send(message) => self.shard.handle(now, Input::Refused(message)),
                Effect::Disk(op) => {
                    let end = self.disk(op);
                    self.shard.handle(now, Input::Disk(end));
                }
                Effect::End(result) => self.end = Some(result),
            }
        }
    }

    fn log(&self, file: LogFile) -> &[u8] {
        self.logs.get(&file).map_or(&[], Vec::as_slice)
    }

    /// URLs in the journal.
    fn journaled(&self) -> usize {
        let files = self.logs.iter().filter(|(file, _)| file.journal().is_some());
        files.flat_map(|(_, bytes)| crate::log::read_journal(bytes, 2)).map(|(_, _, urls)| urls.len()).sum()
    }

    fn disk(&mut self, op: DiskOp) -> DiskEnd {
        let bytes = op.bytes();
        match op {
            DiskOp::Append(Append { file, position, bytes }) => {
                let log = self.logs.entry(file).or_default();
                assert_eq!(position, log.len() as u64);
                log.extend(bytes);
            }
            DiskOp::ReadLog { file, position } => {
                return DiskEnd::LogRead {
                    bytes: self.log(file).get(position as usize..).unwrap_or_default().to_vec(),
                };
            }
            DiskOp::CutLog { file, bytes } => self.logs.entry(file).or_default().truncate(bytes as usize),
            DiskOp::DeleteLog(file) | DiskOp::PutLogAside(file) => assert!(self.logs.remove(&file).is_some()),
            DiskOp::Sync { .. } => return DiskEnd::Synced,
            DiskOp::Spool(SpoolOp::Write { block, bytes }) => self.blocks.push((block, bytes)),
            DiskOp::Spool(SpoolOp::Read { block }) => {
                let at = self.blocks.iter().position(|(at, _)| *at == block).expect("written before");
                let mut bytes = self.blocks.remove(at).1;
                bytes[2] ^= u8::from(self.damages_blocks);
                return DiskEnd::BlockRead { block, bytes };
            }
            DiskOp::Segment(SegmentOp::Close { .. }) => self.closed += 1,
            DiskOp::Spool(SpoolOp::Delete { .. }) | DiskOp::Segment(_) => {}
        }
        DiskEnd::Done { spare: None, bytes }
    }

    /// URLs from the other shard, in the form in which it sends them.
    fn receive(&mut self, number: u64, urls: &[&str]) {
        let mut batch = UrlBatch::new();
        urls.iter().for_each(|url| assert!(batch.push(0, url)));
        let header = Header { kind: MessageKind::Urls, number, acknowledged: 0, batch: number, durable: 0 };
        self.shard.handle(Instant::ZERO, Input::Received { from: 1, bytes: header.with(batch.as_bytes()) });
    }

    fn seed(&mut self, url: &Url) {
        self.shard.handle(Instant::ZERO, Input::Command(Command::Seeds(vec![url.clone()])));
    }

    fn enter(&mut self, phase: Phase) {
        self.shard.handle(Instant::ZERO, Input::Command(Command::Enter(phase)));
        self.run(Instant::ZERO);
    }

    fn counts(&mut self) -> (u64, u64) {
        let stats = self.shard.stats();
        (stats.queued, stats.visited)
    }
}

/// Names of hosts of a shard.
fn names(shard: u16) -> impl Iterator<Item = String> {
    let partition = Partition::by_site(2);
    (0..).map(|site| format!("s{site}.test")).filter(move |name| partition.home_of(name) == shard)
}

/// URLs of the other shard, about a kilobyte each.
fn foreign(number: usize) -> Url {
    let name = names(1).next().unwrap_or_default();
    Url::parse(&format!("http://{name}/{number}/{}", "x".repeat(1_000))).expect("a URL")
}

/// The end of `job` with this response.
fn response(job: &FetchJob, status: u16, head: &str, body: &str) -> Input {
    let bytes = format!("HTTP/1.1 {status} X\r\nContent-Type: text/html\r\n{head}\r\n{body}");
    let limits = Config::default().fetch.limits();
    let transaction = Transaction { ip: job.addr, ..plain_transaction(bytes.as_bytes(), limits) };
    Input::Fetched { job: job.id, result: Ok(Box::new(transaction)) }
}

#[test]
fn what_was_not_handed_over_is_read_back_however_much_it_is() {
    let mut rig = Rig::new(config(|config| config.exchange.waiting_bytes_max = 1 << 30), Logs::new());
    rig.has_room = false;
    let urls = 70_000;
    for number in 0..urls {
        rig.seed(&foreign(number));
    }
    rig.run(Instant::ZERO);
    rig.enter(Phase::Close);
    assert_eq!((rig.end.as_ref(), rig.journaled()), (Some(&Ok(())), urls));
    // The next runs send them again, but do not log them again.
    let mut next = Rig::new(config(|_| {}), rig.logs);
    for _ in 0..2 {
        next.enter(Phase::Close);
        assert_eq!(next.journaled(), urls, "the journal grows with what happens, not with restarts");
        next = Rig::new(config(|_| {}), next.logs);
    }
    let headers = next.sent.iter().filter_map(|bytes| Header::read(bytes));
    let sent: Vec<(u64, usize)> = headers
        .map(|(header, content)| (header.batch, UrlBatch::from_bytes(content.to_vec()).unwrap().len()))
        .collect();
    assert!(sent.is_sorted() && sent.iter().map(|(_, urls)| urls).sum::<usize>() == urls);
    // When the other shard has them on its disk, they are forgotten.
    let (last, _) = sent.last().expect("a batch");
    let durable = Header { kind: MessageKind::Acknowledgement, number: 0, acknowledged: 0, batch: 0, durable: *last };
    next.shard.handle(Instant::ZERO, Input::Received { from: 1, bytes: durable.with(&[]) });
    next.enter(Phase::Close);
    assert_eq!(Rig::new(config(|_| {}), next.logs).sent.len(), 0);
}

#[test]
fn a_block_that_is_not_what_was_written_ends_the_run() {
    for damaged in [true, false] {
        let small = |config: &mut Config| {
            config.exchange.batch_urls_max = 1;
            config.exchange.waiting_bytes_max = 0;
        };
        let mut rig = Rig::new(config(small), Logs::new());
        rig.damages_blocks = damaged;
        for number in 0..3 {
            rig.seed(&foreign(number));
        }
        rig.run(Instant::ZERO);
        let why = "the store stopped: spool/0: a block is not what was written";
        assert_eq!(rig.end, damaged.then(|| Err(why.to_owned())));
        assert_eq!(rig.sent.len(), if damaged { 1 } else { 3 });
    }
}

/// The spending of an earlier run is counted again from its logs.
#[test]
fn budgets_hold_over_restarts() {
    let name = names(0).next().unwrap_or_default();
    let addr = "192.0.2.1".parse().expect("an address");
    let budget = |config: &mut Config| {
        config.dns.hosts.insert(name.clone(), vec![addr]);
        (config.budget.site_bytes_max, config.budget.host_pages_max) = (1 << 30, 3);
        (config.politeness.host_delay, config.politeness.site_delay) = (Duration::ZERO, Duration::ZERO);
        (config.politeness.ip_delay, config.politeness.response_factor) = (Duration::ZERO, 0);
    };
    let (mut logs, mut pages, mut bytes) = (Logs::new(), 0, Vec::new());
    for run in 0..4 {
        let mut rig = Rig::new(config(budget), logs);
        (0..4).for_each(|page| rig.seed(&Url::parse(&format!("http://{name}/{run}/{page}")).expect("a URL")));
        let mut now = Instant::ZERO;
        // A page and its robots.txt in each of the first runs; then everything that waits.
        let fetches = if run < 2 { 2 } else { 100 };
        for _ in 0..fetches {
            now = now + Duration::from_secs(60);
            rig.run(now);
            let Some(job) = rig.fetches.pop() else { continue };
            let is_page = job.kind == JobKind::Page;
            pages += u32::from(is_page);
            let status = if is_page { 200 } else { 404 };
            rig.shard.handle(now, response(&job, status, "", "no links"));
            rig.run(now);
        }
        let left = rig.shard.stats().urls_over_budget;
        rig.enter(Phase::Close);
        bytes = read_ends(rig.log(LogFile::Ends)).map(|end| end.bytes).filter(|bytes| *bytes > 0).collect();
        assert_eq!((run, pages, left), (run, [1, 2, 3, 3][run], [0, 0, 9, 4][run]));
        logs = rig.logs;
    }
    assert!(bytes.len() == 3 && bytes.iter().all(|bytes| *bytes > 20), "{bytes:?}");
}

/// A fetch that ends after the abort: its links would go into a batch that is never sent, and its page would be done.
#[test]
fn what_a_fetch_brings_after_the_abort_is_left_to_the_next_run() {
    let name = names(0).next().unwrap_or_default();
    let addr = "192.0.2.1".parse().expect("an address");
    let mut rig = Rig::new(config(|config| drop(config.dns.hosts.insert(name.clone(), vec![addr]))), Logs::new());
    rig.seed(&Url::parse(&format!("http://{name}/")).expect("a URL"));
    rig.run(Instant::ZERO);
    let robots = rig.fetches.pop().expect("a fetch of robots.txt");
    rig.shard.handle(Instant::ZERO, response(&robots, 404, "", ""));
    let later = Instant::ZERO + Duration::from_secs(60);
    rig.run(later);
    let job = rig.fetches.pop().expect("a fetch of the page");
    assert_eq!(job.kind, JobKind::Page);
    rig.enter(Phase::Abort);
    let link = foreign(0);
    rig.shard.handle(later, response(&job, 200, "", &format!("<a href='{link}'>there</a>")));
    rig.run(later);
    assert!(rig.shard.report().quiet && rig.sent.is_empty());
    rig.enter(Phase::Close);
    assert_eq!(rig.end, Some(Ok(())));
    assert_eq!((read_ends(rig.log(LogFile::Ends)).count(), rig.journaled()), (0, 0));
    assert_eq!(Rig::new(config(|_| {}), rig.logs).counts(), (1, 1), "the next run fetches it again");
}

/// While the disk is busy with the end of a run, a lookup that wants another query is ignored.
#[test]
fn a_lookup_in_flight_at_the_end_makes_no_shard_busy() {
    let mut rig = Rig::new(config(|_| {}), Logs::new());
    let name = names(0).next().unwrap_or_default();
    rig.seed(&Url::parse(&format!("http://{name}/")).expect("a URL"));
    let asked = std::iter::from_fn(|| rig.shard.poll(Instant::ZERO)).find_map(|effect| match effect {
        Effect::Ask(query) => Some(query.lookup),
        _ => None,
    });
    let lookup = asked.expect("a query");
    rig.shard.handle(Instant::ZERO, Input::Command(Command::Enter(Phase::Close)));
    rig.shard.handle(Instant::ZERO, Input::Answered { lookup, answer: DnsAnswer::Silent });
    while rig.shard.poll(Instant::ZERO).is_some() {}
    assert_eq!(rig.end, None, "the disk has not answered");
    assert_eq!(rig.shard.next_due(), None);
}

/// Logs may take a while to read. An abort does not wait for that, and the next run has all of it.
#[test]
fn an_abort_does_not_wait_for_an_earlier_run_to_be_read() {
    let mut first = Rig::new(config(|_| {}), Logs::new());
    first.seed(&foreign(0));
    first.enter(Phase::Close);
    let mut logs = first.logs;
    logs.entry(LogFile::Urls).or_default().extend(b"RCL1");
    for (phase, is_over) in [(Phase::Drain, false), (Phase::Abort, true), (Phase::Close, true)] {
        let mut rig = Rig::reading(config(|_| {}), logs.clone());
        let Some(Effect::Disk(op @ DiskOp::ReadLog { file: LogFile::Ends, position: 0 })) =
            rig.shard.poll(Instant::ZERO)
        else {
            panic!("a shard that does not begin with its logs")
        };
        rig.enter(phase);
        assert_eq!(rig.end, is_over.then_some(Ok(())), "{phase:?}");
        // What comes after its end is ignored.
        let end = rig.disk(op);
        rig.shard.handle(Instant::ZERO, Input::Disk(end));
        rig.run(Instant::ZERO);
        assert_eq!((rig.logs == logs, rig.sent.len()), (is_over, usize::from(!is_over)), "{phase:?}");
    }
}

#[test]
fn a_challenge_is_noted_with_the_end() {
    for (head, is_challenge) in [("CF-Mitigated: challenge\r\n", true), ("", false)] {
        let name = names(0).next().unwrap_or_default();
        let addr = "192.0.2.1".parse().expect("an address");
        let reachable = config(|config| drop(config.dns.hosts.insert(name.clone(), vec![addr])));
        let mut rig = Rig::new(reachable, Logs::new());
        rig.seed(&Url::parse(&format!("http://{name}/")).expect("a URL"));
        rig.run(Instant::ZERO);
        let robots = rig.fetches.pop().expect("a fetch of robots.txt");
        rig.shard.handle(Instant::ZERO, response(&robots, 404, "", ""));
        let later = Instant::ZERO + Duration::from_secs(60);
        rig.run(later);
        let page = rig.fetches.pop().expect("a fetch of the page");
        rig.shard.handle(later, response(&page, 403, head, ""));
        rig.run(later);
        rig.enter(Phase::Close);
        let ends = read_ends(rig.log(LogFile::Ends));
        assert_eq!(
            ends.last().map(|end| (end.kind, end.is_challenge)),
            Some((crate::log::EndKind::Fetched(403), is_challenge))
        );
    }
}

/// A host without an address fails. When it is fetched again it waits, also in the runs after that, until its end is
/// logged.
#[test]
fn what_failed_is_asked_for_again_when_that_is_wanted() {
    let name = names(0).next().unwrap_or_default();
    let reachable = || {
        let addr = "192.0.2.1".parse().expect("an address");
        config(|config| drop(config.dns.hosts.insert(name.clone(), vec![addr])))
    };
    let mut first = Rig::new(reachable(), Logs::new());
    first.seed(&Url::parse(&format!("http://{name}/")).expect("a URL"));
    first.run(Instant::ZERO);
    let robots = first.fetches.pop().expect("a fetch of robots.txt");
    first.shard.handle(Instant::ZERO, response(&robots, 404, "", ""));
    let later = Instant::ZERO + Duration::from_secs(60);
    first.run(later);
    let page = first.fetches.pop().expect("a fetch of the page");
    first.shard.handle(later, Input::Fetched { job: page.id, result: Err(ringcrawl_base::Failure::TlsIssuer) });
    first.run(later);
    first.enter(Phase::Close);
    assert_eq!(Rig::new(reachable(), first.logs.clone()).counts(), (0, 1), "it is over");
    let mut again = Rig::starting(reachable(), first.logs.clone(), true);
    again.run(Instant::ZERO);
    assert_eq!((again.counts(), again.fetches.len()), ((1, 1), 0), "not before its delay");
    // A run that is killed before a commit leaves everything as it was; after a commit, its URL waits.
    assert_eq!(again.logs, first.logs);
    again.run(later);
    assert_eq!(again.fetches.len(), 1, "robots.txt first");
    assert_eq!(read_ends(again.log(LogFile::Ends)).last().map(|end| end.kind), Some(crate::log::EndKind::Reopened));
    assert_eq!(Rig::new(reachable(), again.logs).counts(), (1, 1));
}

#[test]
fn what_came_with_the_word_to_close_is_written() {
    let mut rig = Rig::new(config(|_| {}), Logs::new());
    let name = names(0).next().unwrap_or_default();
    rig.receive(1, &[&format!("http://{name}/one")]);
    rig.enter(Phase::Drain);
    rig.receive(2, &[&format!("http://{name}/two")]);
    rig.enter(Phase::Close);
    assert_eq!(rig.end, Some(Ok(())));
    assert_eq!(read_urls(rig.log(LogFile::Urls)).map(|entries| entries.accepted.len()).sum::<usize>(), 2);
    assert_eq!(rig.shard.report(), ShardReport { quiet: true, sent: 0, received: 2 });
}

/// A delay that a host asked for outlives the run, and the usual delay is kept between the last request of one run
/// and the first of the next.
#[test]
fn delays_outlive_a_run() {
    let names: Vec<String> = names(0).take(3).collect();
    let addr: std::net::IpAddr = "192.0.2.1".parse().expect("an address");
    let polite = || {
        config(|config| {
            names.iter().for_each(|name| drop(config.dns.hosts.insert(name.clone(), vec![addr])));
            config.politeness.host_delay = Duration::from_secs(1);
            (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        })
    };
    let mut first = Rig::new(polite(), Logs::new());
    for name in &names {
        first.seed(&Url::parse(&format!("http://{name}/")).expect("a URL"));
    }
    first.run(Instant::ZERO);
    // The robots.txt of each is fetched at once: the first asks to be left alone, the second asks for a delay, the
    // third for nothing.
    for job in std::mem::take(&mut first.fetches) {
        let end = match names.iter().position(|name| name == job.url.host()) {
            Some(0) => response(&job, 503, "Retry-After: 60\r\n", ""),
            Some(1) => response(&job, 200, "", "User-agent: *\nCrawl-delay: 20\n"),
            _ => response(&job, 404, "", ""),
        };
        first.shard.handle(Instant::ZERO, end);
    }
    first.enter(Phase::Close);
    assert_eq!(first.end, Some(Ok(())));
    let mut next = Rig::new(polite(), first.logs);
    let mut asked = std::collections::BTreeMap::new();
    for millis in (0..100_000).step_by(100) {
        next.run(Instant::ZERO + Duration::from_millis(millis));
        for job in next.fetches.drain(..) {
            asked.entry(job.url.host().to_owned()).or_insert(millis / 1_000);
        }
    }
    let at = |name: &String| asked.get(name).copied();
    assert_eq!([at(&names[1]), at(&names[2])], [Some(20), Some(1)]);
    // The log has whole seconds, so a second or two later.
    assert!(at(&names[0]).is_some_and(|seconds| (60..=62).contains(&seconds)), "{asked:?}");
}
