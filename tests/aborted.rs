//! Fetches that are aborted at every stage, by the ten thousand: each gives back its socket, its memory and its ring
//! operations.
//!
//! Decides: servers that stop at one stage each (a full backlog, a torn handshake, no byte, half a head, half a body,
//! half a chunk, a drip), plain and over TLS, and fetches with deadlines of milliseconds that meet them there; every
//! eighth fetch is dropped instead, at any moment. What is left is counted from outside: descriptors in /proc, the
//! ring's own list of what it waits for, resident memory.
//! Invariants: alone in its process, since it counts what the process has.
//! Limits: that all is given back within a second is printed; a machine under load may need more and not fail.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ringcrawl_base::Rng;
use ringcrawl_base::time::Instant;
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_brain::job::FetchJob;
use ringcrawl_config::{Certificates, Config, PrivateAddresses};
use ringcrawl_crawler::fetch::Hands;
use ringcrawl_ring::{self as ring, Runtime};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::rig::certificates::self_signed;
use crate::rig::hands::{self, ALONE, LOOPBACK};

/// Fetches under way at once.
const WORKERS: usize = 256;
/// How often all must be given back on the way.
const ROUNDS: u64 = 5;
/// Resident memory may differ by this between the first round and the last: what allocators keep, not what leaks.
const RSS_SLACK_BYTES: u64 = 24 << 20;
/// How long a slow machine may take to give everything back.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where a server stops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stop {
    Connect,
    Handshake,
    FirstByte,
    Head,
    Body,
    Chunk,
    Drip,
    /// It does not: the connection is kept, and the next fetch over it may be the one that is aborted.
    Nowhere,
}

impl Stop {
    const ALL: [Stop; 8] = [
        Stop::Connect,
        Stop::Handshake,
        Stop::FirstByte,
        Stop::Head,
        Stop::Body,
        Stop::Chunk,
        Stop::Drip,
        Stop::Nowhere,
    ];

    /// What is said before the silence.
    fn words(self) -> &'static [u8] {
        match self {
            Stop::Connect | Stop::Handshake | Stop::FirstByte => b"",
            Stop::Head => b"HTTP/1.1 200 OK\r\nContent-Type: text/ht",
            Stop::Body => b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhalf of it",
            Stop::Chunk => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nall of i\r\nff\r\nhalf",
            Stop::Drip => b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
            Stop::Nowhere => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole",
        }
    }

    /// How a fetch ends that meets its deadline there.
    fn is_end(self, end: &str) -> bool {
        let deadline = format!("{:?}", Failure::Deadline);
        match self {
            Stop::Connect | Stop::Handshake | Stop::FirstByte | Stop::Head => end == deadline,
            Stop::Body | Stop::Chunk | Stop::Drip => end == format!("{:?}", Some(Truncated::Time)),
            Stop::Nowhere => end == "None",
        }
    }
}

/// Serves all stops on a thread of its own; (stop, TLS, address) of each.
fn serve() -> Vec<(Stop, bool, SocketAddr)> {
    let config = self_signed("a.test", false);
    let (ready, started) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        runtime.block_on(async {
            let mut places = Vec::new();
            let (mut held, mut full) = (Vec::new(), Vec::new());
            for stop in Stop::ALL {
                for tls in [false, true] {
                    if (stop == Stop::Connect && tls) || (stop == Stop::Handshake && !tls) {
                        continue;
                    }
                    let socket = TcpSocket::new_v4().expect("socket");
                    socket.bind(SocketAddr::new(LOOPBACK, 0)).expect("bind");
                    let listener = socket.listen(if stop == Stop::Connect { 1 } else { 1_024 }).expect("listen");
                    let addr = listener.local_addr().expect("address");
                    places.push((stop, tls, addr));
                    if stop == Stop::Connect {
                        // A queue that is full: further connection requests are dropped.
                        for _ in 0..2 {
                            held.push(TcpStream::connect(addr).await.expect("room for two"));
                        }
                        full.push(listener);
                    } else {
                        drop(tokio::spawn(accept(listener, stop, tls.then(|| config.clone()))));
                    }
                }
            }
            ready.send(places).expect("the test");
            std::future::pending::<()>().await;
            drop((held, full));
        });
    });
    started.recv().expect("the servers")
}

async fn accept(listener: TcpListener, stop: Stop, tls: Option<Arc<rustls::ServerConfig>>) {
    let mut random = Rng::new(1);
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, random) = (tls.clone(), random.next());
        drop(tokio::spawn(async move {
            match tls {
                Some(config) if stop == Stop::Handshake => torn_handshake(stream, &config, random).await,
                Some(config) => {
                    if let Ok(stream) = TlsAcceptor::from(config).accept(stream).await {
                        talk(stream, stop).await;
                    }
                }
                None => talk(stream, stop).await,
            }
        }));
    }
}

/// Answers a ClientHello with a part of what belongs there.
async fn torn_handshake(mut stream: TcpStream, config: &Arc<rustls::ServerConfig>, random: u64) {
    let mut connection = rustls::ServerConnection::new(config.clone()).expect("server");
    let mut buffer = [0; 4_096];
    while !connection.wants_write() {
        match stream.read(&mut buffer).await {
            Ok(length @ 1..) => drop(connection.read_tls(&mut &buffer[..length])),
            _ => return,
        }
        if connection.process_new_packets().is_err() {
            return;
        }
    }
    let mut flight = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut flight).expect("a vector");
    }
    flight.truncate(random as usize % flight.len());
    if stream.write_all(&flight).await.is_ok() {
        while matches!(stream.read(&mut buffer).await, Ok(1..)) {}
    }
}

async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin, stop: Stop) {
    let mut buffer = [0; 4_096];
    loop {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            match stream.read(&mut buffer).await {
                Ok(length @ 1..) => request.extend_from_slice(&buffer[..length]),
                _ => return,
            }
        }
        if stream.write_all(stop.words()).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        if stop == Stop::Drip {
            while stream.write_all(b"d").await.is_ok() && stream.flush().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            return;
        }
    }
}

fn job(number: u64, (_, tls, addr): (Stop, bool, SocketAddr), deadline: Instant) -> FetchJob {
    let scheme = if tls { "https" } else { "http" };
    FetchJob { id: number, deadline, ..hands::job(&format!("{scheme}://h{}.a.test:{}/", number % 5, addr.port())) }
}

/// What the process holds: descriptors, operations that its ring waits for, resident bytes.
fn held() -> (usize, usize, u64) {
    let mut operations = 0;
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("fds").filter_map(Result::ok).map(|entry| {
        if std::fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().contains("io_uring")) {
            let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", entry.file_name().to_string_lossy()));
            operations += info.unwrap_or_default().lines().filter(|line| line.trim_start().starts_with("op=")).count();
        }
    });
    let descriptors = descriptors.count();
    let statm = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: u64 = statm.split(' ').nth(1).and_then(|field| field.parse().ok()).expect("resident pages");
    (descriptors, operations, pages * 4_096)
}

/// How many fetches ended how, by where their server stops and whether over TLS.
type Ends = RefCell<BTreeMap<(Stop, bool, String), u64>>;

fn abort(count: u64) {
    let _alone = ALONE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let places = Rc::new(serve());
    let mut config = Config::default();
    config.fetch.in_flight_max = WORKERS;
    config.fetch.idle_connections_max = 32;
    config.fetch.idle_timeout = Duration::from_millis(300);
    config.fetch.private_addresses = PrivateAddresses::Loopback;
    config.tls.certificates = Certificates::Record;
    config.dns.servers = vec![SocketAddr::new(LOOPBACK, 9)];
    let runtime = Runtime::new(256).expect("io_uring");
    runtime.block_on(async {
        let hands = Rc::new(Hands::new(&config, "testcrawl/1.0".to_owned()).expect("hands"));
        tokio::time::sleep(Duration::from_millis(100)).await;
        let before = held();
        let ends: Rc<Ends> = Rc::default();
        let mut early = None;
        let part = count / ROUNDS;
        for done in (0..ROUNDS).map(|round| round * part) {
            let workers: Vec<_> = (0..WORKERS as u64)
                .map(|worker| {
                    let (hands, places, ends) = (hands.clone(), places.clone(), ends.clone());
                    ring::spawn(async move {
                        for number in (done..done + part).skip(worker as usize).step_by(WORKERS) {
                            one(&hands, &places, number, &ends).await;
                        }
                    })
                })
                .collect();
            // Does one see what is under way? Until they are all done.
            let is_seen = || {
                let now = held();
                now.0 > before.0 && now.1 > before.1
            };
            let mut seen = is_seen();
            while !seen && !workers.iter().all(|worker| worker.is_finished()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
                seen = is_seen();
            }
            assert!(seen, "nothing is seen of what is under way; {before:?} before");
            for worker in workers {
                worker.await.expect("a worker");
            }
            let start = ring::now();
            loop {
                let now = held();
                let all = hands.open_connections() == 0 && hands.buffers_lent() == 0 && hands.deadlines().live() == 0;
                if all && now.0 <= before.0 && now.1 <= before.1 {
                    break;
                }
                assert!(
                    ring::now().since(start) < PATIENCE,
                    "{} connections, {} blocks, {} deadlines; descriptors, operations, bytes: {now:?}, {before:?} before",
                    hands.open_connections(),
                    hands.buffers_lent(),
                    hands.deadlines().live(),
                );
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let now = held();
            println!("{} fetches: all given back after {:?}; {now:?}", done + part, ring::now().since(start));
            let early = *early.get_or_insert(now.2);
            assert!(now.2 <= early + RSS_SLACK_BYTES, "{early} bytes after the first round, {} now", now.2);
        }
        let ends = ends.borrow();
        for (stop, tls, _) in places.iter() {
            let met: u64 = ends.iter().filter(|((at, by, end), _)| at == stop && by == tls && stop.is_end(end)).map(|(_, n)| n).sum();
            assert!(met > count / 1_000, "{stop:?}, TLS {tls}: {met} fetches were aborted there: {ends:?}");
        }
        assert!(hands.counters().reuses.get() > count / 1_000, "{:?}", hands.counters());
    });
}

/// One fetch, with a deadline of milliseconds, or dropped after as many.
async fn one(hands: &Rc<Hands>, places: &[(Stop, bool, SocketAddr)], number: u64, ends: &Ends) {
    let mut random = Rng::new(number);
    let place = *random.pick(places);
    // Half of them end before a handshake can, half of them mostly behind it.
    let longest = *random.pick(&[60_000, 600_000]);
    let patience = Duration::from_micros(random.below(longest));
    let is_dropped = number.is_multiple_of(8);
    let deadline = ring::now() + if is_dropped { PATIENCE } else { patience };
    let (own, job) = (hands.clone(), job(number, place, deadline));
    let task = ring::spawn(async move { own.exchange(&job).await.map(|exchange| exchange.response.truncated) });
    if is_dropped {
        tokio::time::sleep(patience).await;
        task.abort();
    }
    let end = match task.await {
        Ok(Ok(truncated)) => format!("{truncated:?}"),
        Ok(Err(failure)) => format!("{failure:?}"),
        Err(error) if error.is_cancelled() => "dropped".to_owned(),
        Err(error) => panic!("{error}"),
    };
    *ends.borrow_mut().entry((place.0, place.1, end)).or_default() += 1;
}

#[test]
fn aborted_fetches_leave_nothing() {
    abort(10_000);
}

#[test]
#[ignore = "long: a hundred thousand fetches"]
fn a_hundred_thousand_aborted_fetches_leave_nothing() {
    abort(100_000);
}
