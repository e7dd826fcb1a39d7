//! How long a shard's thread works in one piece, whatever a peer sends.

use super::*;
use crate::sample::{dear_responses, dear_robots};
use ringcrawl_http::{Method, ResponseReader};
use ringcrawl_ring::Thread;

/// CPU time of the longest piece of each kind.
#[derive(Default)]
struct Longest {
    thread: Thread,
    feed: Duration,
    whole: Duration,
    turn: Duration,
    /// In parallel with the shard's thread.
    beside: Duration,
    readings: usize,
}

impl Longest {
    fn timed<T>(thread: &Thread, longest: &mut Duration, work: impl FnOnce() -> T) -> T {
        let before = thread.cpu_time().expect("announced");
        let done = work();
        let took = thread.cpu_time().expect("announced").saturating_sub(before);
        *longest = (*longest).max(took);
        done
    }
}

fn rig_with(host: &str) -> Rig {
    let addr = "192.0.2.1".parse().expect("an address");
    let config = config(|config| {
        config.dns.hosts.insert(host.to_owned(), vec![addr]);
        config.politeness.host_delay = Duration::ZERO;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
    });
    Rig::new(config, Logs::new())
}

/// The longest pieces of work in which a shard takes in `bytes` as a page, or as a robots.txt.
fn longest(bytes: &[u8], kind: JobKind) -> Longest {
    let host = names(0).next().unwrap_or_default();
    let mut rig = rig_with(&host);
    rig.seed(&Url::parse(&format!("http://{host}/")).expect("a URL"));
    rig.run(Instant::ZERO);
    let mut job = rig.fetches.pop().expect("a fetch of robots.txt");
    if kind == JobKind::Page {
        rig.shard.handle(Instant::ZERO, response(&job, 404, "", ""));
        rig.run(Instant::ZERO + Duration::from_secs(1));
        job = rig.fetches.pop().expect("a fetch of the page");
    }
    let now = Instant::ZERO + Duration::from_secs(2);
    let mut longest = Longest::default();
    longest.thread.announce();
    let mut writer = CaptureWriter::new(Packing::default()).expect("a writer");
    let limits = match kind {
        JobKind::Robots => Config::default().fetch.limits_of_robots(&Config::default().robots),
        _ => Config::default().fetch.limits(),
    };
    let mut reader = ResponseReader::new(Method::Get, limits);
    for piece in bytes.chunks(32 << 10) {
        let fed = Longest::timed(&longest.thread, &mut longest.feed, || reader.feed(piece));
        if !matches!(fed, Ok(ringcrawl_http::Progress::More)) {
            break;
        }
    }
    let _ = reader.end_of_stream();
    let whole = Longest::timed(&longest.thread, &mut longest.whole, || reader.into_response()).expect("a head");
    let plain = plain_transaction(b"HTTP/1.1 200 OK\r\n\r\n", limits);
    let transaction = Box::new(Transaction { ip: job.addr, response: whole, ..plain });
    let end = Input::Fetched { job: job.id, result: Ok(transaction) };
    Longest::timed(&longest.thread, &mut longest.turn, || rig.shard.handle(now, end));
    while let Some(effect) = Longest::timed(&longest.thread, &mut longest.turn, || rig.shard.poll(now)) {
        let input = match effect {
            Effect::Disk(op) => Input::Disk(rig.disk(op)),
            Effect::Read(reading) => {
                longest.readings += 1;
                let read = Longest::timed(&longest.thread, &mut longest.beside, || reading.read(&mut writer));
                Input::Read(Box::new(read))
            }
            _ => continue,
        };
        Longest::timed(&longest.thread, &mut longest.turn, || rig.shard.handle(now, input));
    }
    longest
}

/// Each of the worst responses, as long as allowed and as long as a shard reads it itself.
fn all() -> Vec<(String, Vec<u8>, JobKind)> {
    let short = Config::default().fetch.short_bytes_max;
    let named = |(name, bytes): (&str, Vec<u8>), size| (format!("{name}{size}"), bytes, JobKind::Page);
    let long = dear_responses(8 << 20, 16 << 20).into_iter().map(|response| named(response, ""));
    let short = dear_responses(short, 4 * short - 1_000).into_iter().map(|response| named(response, ", short"));
    let robots = ("robots.txt".to_owned(), dear_robots(), JobKind::Robots);
    long.chain(short).chain([robots]).collect()
}

/// `bench/ceilings dear` measures what the others cost a shard.
#[test]
fn long_responses_are_read_beside_their_shards() {
    let some = all().into_iter().step_by(8);
    let beside: usize = some.map(|(_, bytes, kind)| longest(&bytes, kind).readings).sum();
    assert!(beside >= 3, "{beside} were read beside their shards");
}

#[test]
#[ignore = "prints a table, for the release profile"]
fn the_longest_pieces_of_the_worst_responses() {
    println!("{:40} {:>9} {:>9} {:>9} {:>9}  ms of CPU time", "response", "receive", "whole", "turn", "beside");
    for (name, bytes, kind) in all() {
        let pieces = longest(&bytes, kind);
        let millis = |time: Duration| time.as_nanos() as f64 / 1e6;
        let [feed, whole, turn, beside] = [pieces.feed, pieces.whole, pieces.turn, pieces.beside].map(millis);
        println!("{name:40} {feed:9.1} {whole:9.1} {turn:9.1} {beside:9.1}");
    }
}
