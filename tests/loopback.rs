//! The hands against real sockets on loopback: what servers do, good and bad, and how the exchange ends.
//!
//! Decides: servers are plain threads of the standard library, so that nothing of the crawler's own is on
//! both sides. Each test has its own server; the one that counts descriptors runs alone.

use std::future::Future;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use ringcrawl::config::{Certificates, Config, PrivateAddresses};
use ringcrawl::fetch::{Exchange, Hands};
use ringcrawl::outcome::{Failure, FetchJob, JobKind, Outcome, Truncated};
use ringcrawl::ring::{self, Runtime};
use ringcrawl::time::Instant;
use ringcrawl::url::Url;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Held for reading by each test, for writing by the one that counts the process's descriptors.
static ALONE: RwLock<()> = RwLock::new(());

fn config() -> Config {
    let mut config = Config::default();
    config.fetch.connect_timeout = Duration::from_secs(2);
    config.fetch.tls_timeout = Duration::from_secs(2);
    config.fetch.first_byte_timeout = Duration::from_secs(2);
    config.fetch.deadline = Duration::from_secs(5);
    config.fetch.header_bytes_max = 64 << 10;
    config.fetch.header_count_max = 256;
    config.fetch.body_wire_bytes_max = 8 << 20;
    config.fetch.body_bytes_max = 16 << 20;
    config.fetch.in_flight_max = 256;
    config.fetch.idle_connections_max = 16;
    config.fetch.idle_timeout = Duration::from_secs(5);
    config.fetch.private_addresses = PrivateAddresses::Loopback;
    config.dns.timeout = Duration::from_secs(1);
    config.dns.in_flight_max = 8;
    config.dns.ttl_min = Duration::from_secs(60);
    config.dns.ttl_max = Duration::from_secs(86_400);
    config.dns.servers = vec![SocketAddr::new(LOOPBACK, 9)];
    config
}

fn with_hands<F: Future<Output = ()>>(config: &Config, test: impl FnOnce(Rc<Hands>) -> F) {
    let _shared = ALONE.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    let runtime = Runtime::new(256).expect("io_uring");
    runtime.block_on(async {
        let hands = Rc::new(Hands::new(config, "testcrawl/1.0".to_owned()).expect("hands"));
        test(hands.clone()).await;
        assert_eq!(hands.buffers_lent(), 0, "blocks are still lent");
        assert_eq!(hands.deadlines().live(), 0, "deadlines are still set");
    });
}

fn job(url: &str) -> FetchJob {
    FetchJob {
        id: 1,
        host: 0,
        kind: JobKind::Page,
        url: Url::parse(url).expect("url"),
        addr: Some(LOOPBACK),
        both_families: false,
        others: Vec::new(),
        depth: 0,
        attempt: 0,
        deadline: Instant::NEVER,
    }
}

async fn get(hands: &Rc<Hands>, url: &str) -> Result<Exchange, Failure> {
    hands.exchange(&job(url)).await
}

/// A server that gives each connection, with its number, to a thread that runs `serve`.
fn server(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("bind");
    let addr = listener.local_addr().expect("address");
    let count = Arc::new(AtomicUsize::new(0));
    let (counter, serve) = (count.clone(), Arc::new(serve));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (serve, number) = (serve.clone(), counter.fetch_add(1, Ordering::SeqCst));
            let Ok(stream) = stream else { return };
            std::thread::spawn(move || serve(stream, number));
        }
    });
    (addr, count)
}

/// Reads one request's head; `None` when the peer closed.
fn read_request(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

fn respond(stream: &mut impl Write, body: &str) {
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
}

/// Closes with a request unread, which makes the kernel reset the connection.
fn reset_after(mut stream: TcpStream, answer: &[u8]) {
    let _ = stream.read(&mut [0]);
    let _ = stream.write_all(answer);
    std::thread::sleep(Duration::from_millis(30));
}

fn url(addr: SocketAddr, path: &str) -> String {
    format!("http://www.example.test:{}{path}", addr.port())
}

#[test]
fn a_connection_is_used_again() {
    let (addr, connections) = server(|mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            respond(&mut stream, &format!("you asked for {path}"));
        }
    });
    with_hands(&config(), |hands| async move {
        for number in 0..5 {
            let exchange = get(&hands, &url(addr, &format!("/{number}"))).await.expect("exchange");
            assert_eq!(exchange.response.status, 200);
            assert_eq!(exchange.response.body, format!("you asked for /{number}").as_bytes());
            assert_eq!(exchange.response.truncated, None);
            assert_eq!(exchange.reused, number > 0);
            assert_eq!((exchange.ip, exchange.secure, exchange.tls), (Some(LOOPBACK), false, None));
            let request = String::from_utf8(exchange.request_bytes).expect("text");
            assert!(request.starts_with(&format!("GET /{number} HTTP/1.1\r\n")), "{request}");
            assert!(request.contains("testcrawl/1.0"));
            assert!(exchange.timings.total >= exchange.timings.first_byte);
        }
        // Another name on the same address gets a connection of its own.
        let other = format!("http://other.example.test:{}/", addr.port());
        assert!(!get(&hands, &other).await.expect("exchange").reused);
        assert_eq!(connections.load(Ordering::SeqCst), 2);
        assert_eq!(hands.idle_connections(), 2);
        assert_eq!(hands.counters().reuses.get(), 4);
    });
}

#[test]
fn idle_connections_are_bounded_and_end() {
    let (addr, _) = server(|mut stream, _| {
        while read_request(&mut stream).is_some() {
            respond(&mut stream, "x");
        }
    });
    let mut config = config();
    config.fetch.idle_connections_max = 3;
    config.fetch.idle_timeout = Duration::from_millis(200);
    with_hands(&config, |hands| async move {
        for number in 0..10 {
            let url = format!("http://h{number}.example.test:{}/", addr.port());
            get(&hands, &url).await.expect("exchange");
            assert!(hands.idle_connections() <= 3);
        }
        assert_eq!(hands.idle_connections(), 3);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(hands.idle_connections(), 0);
    });
}

#[test]
fn a_stale_connection_is_no_failure() {
    // Each connection answers once and closes when the next request comes, having said keep-alive.
    let (addr, connections) = server(|mut stream, _| {
        read_request(&mut stream);
        respond(&mut stream, "once");
        let _ = read_request(&mut stream);
    });
    // As before, but closing at once: seen before the request is sent.
    let (closing, _) = server(|mut stream, _| {
        read_request(&mut stream);
        respond(&mut stream, "once");
    });
    // And with a reset.
    let (resetting, _) = server(|mut stream, _| {
        read_request(&mut stream);
        respond(&mut stream, "once");
        reset_after(stream, b"");
    });
    // And with bytes that nobody asked for.
    let (talking, _) = server(|mut stream, _| {
        read_request(&mut stream);
        respond(&mut stream, "once");
        std::thread::sleep(Duration::from_millis(5));
        respond(&mut stream, "poison");
        read_request(&mut stream);
    });
    with_hands(&config(), |hands| async move {
        for round in 0..4 {
            for addr in [addr, closing, resetting, talking] {
                let exchange = get(&hands, &url(addr, "/")).await.expect("exchange");
                assert_eq!(exchange.response.body, b"once");
                assert!(!exchange.reused, "round {round}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(hands.counters().stale_reuses.get() >= 6, "{:?}", hands.counters());
        assert_eq!(connections.load(Ordering::SeqCst), 4);
    });
}

#[test]
fn silence_ends_in_time() {
    let (silent, _) = server(|mut stream, _| {
        read_request(&mut stream);
        std::thread::sleep(Duration::from_secs(10));
    });
    let (half_head, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
        std::thread::sleep(Duration::from_secs(10));
    });
    let (dripping, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        while stream.write_all(b"drip").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mut config = config();
    config.fetch.first_byte_timeout = Duration::from_millis(200);
    config.fetch.deadline = Duration::from_millis(600);
    config.fetch.rate_min = 0;
    with_hands(&config, |hands| async move {
        let timed = async |url: String| {
            let start = ring::now();
            let result = get(&hands, &url).await;
            (result, ring::now().since(start).as_millis())
        };
        let (result, took) = timed(url(silent, "/")).await;
        assert_eq!(result.err(), Some(Failure::FirstByteTimeout));
        assert!((200..500).contains(&took), "{took} ms");
        let (result, took) = timed(url(half_head, "/")).await;
        assert_eq!(result.err(), Some(Failure::Deadline));
        assert!((600..900).contains(&took), "{took} ms");
        let (result, took) = timed(url(dripping, "/")).await;
        let exchange = result.expect("what came is kept");
        assert_eq!(exchange.response.truncated, Some(Truncated::Time));
        assert!(exchange.response.body.len() > 40, "{}", exchange.response.body.len());
        assert!((600..900).contains(&took), "{took} ms");
        // The job's own deadline counts too.
        let mut early = job(&url(silent, "/"));
        early.deadline = ring::now() + Duration::from_millis(50);
        assert_eq!(hands.exchange(&early).await.err(), Some(Failure::Deadline));
        early.deadline = Instant::ZERO;
        assert_eq!(hands.exchange(&early).await.err(), Some(Failure::Deadline));
        assert_eq!(hands.idle_connections(), 0);
    });
}

#[test]
fn a_body_that_comes_too_slowly_is_cut_and_kept() {
    // 100 bytes every 50 ms, and then no more of them.
    let (dripping, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        while stream.write_all(&[b'x'; 100]).is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    // A head that takes longer than any grace, and a body that comes at once.
    let (slow_head, _) = server(|mut stream, _| {
        read_request(&mut stream);
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n".chunks(2) {
            let _ = stream.write_all(byte);
            std::thread::sleep(Duration::from_millis(40));
        }
        let _ = stream.write_all(b"ab");
    });
    let mut config = config();
    config.fetch.rate_grace = Duration::from_millis(300);
    config.fetch.rate_min = 100_000;
    with_hands(&config, |hands| async move {
        let start = ring::now();
        let exchange = get(&hands, &url(dripping, "/")).await.expect("what came is kept");
        let took = ring::now().since(start).as_millis();
        assert_eq!((exchange.response.truncated, exchange.slow), (Some(Truncated::Time), true));
        assert!((300..4_000).contains(&took), "{took} ms, and the deadline is 5 s");
        assert!(exchange.response.body.len() >= 100, "{}", exchange.response.body.len());
        let exchange = get(&hands, &url(slow_head, "/")).await.expect("heads may take their time");
        assert_eq!((exchange.response.truncated, exchange.slow), (None, false));
        assert_eq!(exchange.response.body, b"ab");
    });
    config.fetch.rate_min = 100;
    config.fetch.deadline = Duration::from_millis(900);
    config.fetch.first_byte_timeout = Duration::from_millis(900);
    with_hands(&config, |hands| async move {
        // Fast enough: only the deadline ends it.
        let exchange = get(&hands, &url(dripping, "/")).await.expect("what came is kept");
        assert_eq!((exchange.response.truncated, exchange.slow), (Some(Truncated::Time), false));
        assert!(exchange.response.body.len() >= 400, "{}", exchange.response.body.len());
    });
}

#[test]
fn broken_connections() {
    let (reset_before, _) = server(|stream, _| reset_after(stream, b""));
    let (reset_in_head, _) = server(|stream, _| reset_after(stream, b"HTTP/1.1 200 OK\r\n"));
    let (reset_in_body, _) =
        server(|stream, _| reset_after(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome"));
    let (closed_at_once, _) = server(|mut stream, _| {
        read_request(&mut stream);
    });
    let (closed_in_head, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200");
    });
    let (closed_in_body, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
    });
    let (until_close, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nall of it");
    });
    let (junk, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"220 smtp.example.test ready\r\n\r\n");
    });
    let (ancient, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"<html>what a page was in 1991</html>");
    });
    let (endless_head, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"X-Header: again and again and again\r\n").is_ok() {}
    });
    with_hands(&config(), |hands| async move {
        let failure = async |addr| get(&hands, &url(addr, "/")).await.err();
        assert_eq!(failure(reset_before).await, Some(Failure::Reset));
        assert_eq!(failure(reset_in_head).await, Some(Failure::Reset));
        assert_eq!(failure(closed_at_once).await, Some(Failure::ClosedEarly));
        assert_eq!(failure(closed_in_head).await, Some(Failure::ClosedEarly));
        assert_eq!(failure(junk).await, Some(Failure::Malformed));
        assert_eq!(failure(ancient).await, Some(Failure::Http09));
        assert_eq!(failure(endless_head).await, Some(Failure::HeadTooLarge));
        for addr in [reset_in_body, closed_in_body] {
            let response = get(&hands, &url(addr, "/")).await.expect("head came").response;
            assert_eq!((response.truncated, response.body.as_slice()), (Some(Truncated::Disconnect), &b"some"[..]));
        }
        let response = get(&hands, &url(until_close, "/")).await.expect("whole").response;
        assert_eq!((response.truncated, response.body.as_slice()), (None, &b"all of it"[..]));
        assert_eq!(hands.idle_connections(), 0);
    });
}

#[test]
fn connections_that_do_not_come_about() {
    let free = TcpListener::bind((LOOPBACK, 0)).expect("bind").local_addr().expect("address");
    let mut config = config();
    config.fetch.connect_timeout = Duration::from_millis(300);
    with_hands(&config, |hands| async move {
        assert_eq!(get(&hands, &url(free, "/")).await.err(), Some(Failure::ConnectRefused));
        let mut forbidden = job("http://www.example.test/");
        forbidden.addr = Some(IpAddr::from([10, 0, 0, 1]));
        assert_eq!(hands.exchange(&forbidden).await.err(), Some(Failure::AddressForbidden));
        assert_eq!(hands.counters().connects.get(), 1);

        // A listener whose queue is full drops further connection requests.
        let full = tokio::net::TcpSocket::new_v4().expect("socket");
        full.bind(SocketAddr::new(LOOPBACK, 0)).expect("bind");
        let full = full.listen(1).expect("listen");
        let addr = full.local_addr().expect("address");
        let fill: Vec<_> = (0..2).map(|_| TcpStream::connect_timeout(&addr, Duration::from_millis(200))).collect();
        let start = ring::now();
        assert_eq!(get(&hands, &url(addr, "/")).await.err(), Some(Failure::ConnectTimeout));
        let took = ring::now().since(start).as_millis();
        assert!((300..600).contains(&took), "{took} ms");
        drop(fill);
    });
}

#[test]
fn a_large_body_comes_whole() {
    let body: Vec<u8> = (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let sent = body.clone();
    let (addr, _) = server(move |mut stream, _| {
        while read_request(&mut stream).is_some() {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", sent.len());
            let _ = stream.write_all(&sent);
        }
    });
    with_hands(&config(), |hands| async move {
        for reused in [false, true] {
            let exchange = get(&hands, &url(addr, "/")).await.expect("exchange");
            assert!(exchange.response.body == body);
            assert_eq!(exchange.reused, reused);
        }
    });
}

/// A certificate authority of the test's own, and servers that show its certificates.
struct Authority {
    issuer: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
    file: PathBuf,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("params");
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().expect("key");
        let issuer = rcgen::CertifiedIssuer::self_signed(params, key).expect("authority");
        let file = std::env::temp_dir().join(format!("ringcrawl-{name}-{}.pem", std::process::id()));
        std::fs::write(&file, issuer.pem()).expect("write");
        Authority { issuer, file }
    }

    /// A TLS server for `name`, whose certificate is valid until the start of `until_year`.
    fn server(
        &self,
        name: &str,
        until_year: i32,
        serve: impl Fn(&mut rustls::StreamOwned<rustls::ServerConnection, TcpStream>) + Send + Sync + 'static,
    ) -> SocketAddr {
        let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("params");
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(until_year, 1, 1);
        let key = rcgen::KeyPair::generate().expect("key");
        let certificate = params.signed_by(&key, &self.issuer).expect("sign");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("certificate");
        let config = Arc::new(config);
        let (addr, _) = server(move |stream, _| {
            let connection = rustls::ServerConnection::new(config.clone()).expect("server");
            serve(&mut rustls::StreamOwned::new(connection, stream));
        });
        addr
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

fn secure(addr: SocketAddr) -> String {
    format!("https://www.example.test:{}/", addr.port())
}

fn respond_often(stream: &mut rustls::StreamOwned<rustls::ServerConnection, TcpStream>) {
    while read_request(stream).is_some() {
        respond(stream, "secret");
    }
}

#[test]
fn tls_verified() {
    let (authority, stranger) = (Authority::new("verify"), Authority::new("verify-stranger"));
    let good = authority.server("www.example.test", 2099, respond_often);
    let expired = authority.server("www.example.test", 2021, respond_often);
    let wrong_name = authority.server("other.example.test", 2099, respond_often);
    let by_address = authority.server("127.0.0.1", 2099, respond_often);
    let unknown = stranger.server("www.example.test", 2099, respond_often);
    let (plain, _) = server(|mut stream, _| {
        let _ = stream.read(&mut [0; 4_096]);
        respond(&mut stream, "no TLS here");
    });
    let (mute, _) = server(|_stream, _| std::thread::sleep(Duration::from_secs(10)));
    let (closing, _) = server(|mut stream, _| drop(stream.read(&mut [0; 4_096])));
    let mut config = config();
    config.tls.ca_files = vec![authority.file.clone()];
    config.fetch.tls_timeout = Duration::from_millis(300);
    with_hands(&config, |hands| async move {
        for reused in [false, true] {
            let exchange = get(&hands, &secure(good)).await.expect("good");
            assert_eq!(exchange.response.body, b"secret");
            assert_eq!((exchange.secure, exchange.reused), (true, reused));
            let tls = exchange.tls.expect("tls");
            assert_eq!((tls.version, tls.certificate_error), ("TLSv1_3", None));
            assert!(tls.cipher.starts_with("TLS_"), "{}", tls.cipher);
        }
        let bare = format!("https://127.0.0.1:{}/", by_address.port());
        assert_eq!(get(&hands, &bare).await.expect("by address").response.body, b"secret");
        for (bad, why) in
            [(expired, Failure::TlsExpired), (wrong_name, Failure::TlsName), (unknown, Failure::TlsIssuer)]
        {
            assert_eq!(get(&hands, &secure(bad)).await.err(), Some(why));
        }
        assert_eq!(get(&hands, &secure(plain)).await.err(), Some(Failure::TlsFailed));
        assert_eq!(get(&hands, &secure(closing)).await.err(), Some(Failure::TlsFailed));
        assert_eq!(get(&hands, &secure(mute)).await.err(), Some(Failure::TlsTimeout));
        assert_eq!(hands.counters().handshakes.get(), 2);
    });
}

#[test]
fn tls_recorded() {
    let (authority, stranger) = (Authority::new("record"), Authority::new("record-stranger"));
    let close_each = |stream: &mut rustls::StreamOwned<rustls::ServerConnection, TcpStream>| {
        read_request(stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret");
        stream.conn.send_close_notify();
        let _ = stream.flush();
    };
    let good = authority.server("www.example.test", 2099, close_each);
    let expired = authority.server("www.example.test", 2021, close_each);
    let wrong_name = authority.server("other.example.test", 2099, close_each);
    let unknown = stranger.server("www.example.test", 2099, close_each);
    let mut config = config();
    config.tls.ca_files = vec![authority.file.clone()];
    config.tls.certificates = Certificates::Record;
    with_hands(&config, |hands| async move {
        // The second time the session is resumed: what is wrong is still wrong.
        for _ in 0..3 {
            for (addr, wrong) in [
                (good, None),
                (expired, Some("Expired")),
                (wrong_name, Some("NotValidForName")),
                (unknown, Some("Unknown")),
            ] {
                let exchange = get(&hands, &secure(addr)).await.expect("exchange");
                assert_eq!(exchange.response.body, b"secret");
                let error = exchange.tls.expect("tls").certificate_error;
                match (wrong, &error) {
                    (None, None) => {}
                    (Some("Expired"), Some(text)) => assert!(text.contains("expired"), "{text}"),
                    (Some("NotValidForName"), Some(text)) => assert!(text.contains("not valid for name"), "{text}"),
                    (Some(_), Some(text)) => assert!(text.contains("UnknownIssuer"), "{text}"),
                    _ => panic!("{wrong:?}, but {error:?}"),
                }
            }
        }
        assert_eq!(hands.counters().handshakes.get(), 12);
    });
}

#[test]
fn tls_ends() {
    let authority = Authority::new("ends");
    let head = b"HTTP/1.1 200 OK\r\n\r\nall of it";
    let announced = authority.server("www.example.test", 2099, move |stream| {
        read_request(stream);
        let _ = stream.write_all(head);
        stream.conn.send_close_notify();
        let _ = stream.flush();
    });
    let torn = authority.server("www.example.test", 2099, move |stream| {
        read_request(stream);
        let _ = stream.write_all(head);
        let _ = stream.flush();
    });
    let garbled = authority.server("www.example.test", 2099, move |stream| {
        read_request(stream);
        let _ = stream.write_all(head);
        let _ = stream.flush();
        let _ = stream.sock.write_all(&[23, 3, 3, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        std::thread::sleep(Duration::from_millis(200));
    });
    let whole_but_torn = authority.server("www.example.test", 2099, |stream| {
        read_request(stream);
        respond(stream, "all of it");
        let _ = stream.flush();
    });
    let large = authority.server("www.example.test", 2099, |stream| {
        while read_request(stream).is_some() {
            respond(stream, &"0123456789".repeat(100_000));
        }
    });
    let mut config = config();
    config.tls.ca_files = vec![authority.file.clone()];
    with_hands(&config, |hands| async move {
        for (addr, truncated) in [
            (announced, None),
            (torn, Some(Truncated::Disconnect)),
            (garbled, Some(Truncated::Disconnect)),
            (whole_but_torn, None),
        ] {
            let response = get(&hands, &secure(addr)).await.expect("head came").response;
            assert_eq!((response.body.as_slice(), response.truncated), (&b"all of it"[..], truncated));
        }
        for reused in [false, true] {
            let exchange = get(&hands, &secure(large)).await.expect("large");
            assert_eq!(exchange.response.body.len(), 1_000_000);
            assert_eq!(exchange.reused, reused);
        }
    });
}

#[test]
fn hostile_bytes_end_every_exchange() {
    // Answers with bits turned over, cut anywhere, in pieces; over plain HTTP and where TLS is expected.
    let (addr, _) = server(|mut stream, number| {
        let mut state = 0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1);
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % below.max(1)
        };
        let mut bytes = match random(3) {
            0 => b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789".to_vec(),
            1 => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n0\r\n\r\n".to_vec(),
            _ => b"\x16\x03\x03\x00\x40\x02\x00\x00\x3c\x03\x03HTTP/1.1 200 OK\r\n\r\n0123456789".to_vec(),
        };
        for _ in 0..random(6) {
            let place = random(bytes.len());
            bytes[place] ^= 1 << random(8);
        }
        bytes.truncate(random(bytes.len() + 20));
        let _ = stream.read(&mut [0; 2_048]);
        for piece in bytes.chunks(1 + random(20)) {
            let _ = stream.write_all(piece);
        }
        if random(20) == 0 {
            std::thread::sleep(Duration::from_millis(400));
        }
    });
    let mut config = config();
    config.fetch.tls_timeout = Duration::from_millis(200);
    config.fetch.first_byte_timeout = Duration::from_millis(200);
    config.fetch.deadline = Duration::from_millis(300);
    with_hands(&config, |hands| async move {
        let mut answered = 0;
        for round in 0..600 {
            let url = if round % 3 == 0 { secure(addr) } else { url(addr, "/") };
            let start = ring::now();
            answered += usize::from(get(&hands, &url).await.is_ok());
            assert!(ring::now().since(start) < Duration::from_millis(700));
        }
        assert!((20..500).contains(&answered), "{answered}");
    });
}

#[test]
fn many_at_once() {
    let (addr, _) = server(|mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            respond(&mut stream, request.split(' ').nth(1).unwrap_or_default());
        }
    });
    with_hands(&config(), |hands| async move {
        let tasks: Vec<_> = (0..1_000)
            .map(|number| {
                let hands = hands.clone();
                ring::spawn(async move {
                    let exchange = get(&hands, &url(addr, &format!("/{number}"))).await.expect("exchange");
                    assert_eq!(exchange.response.body, format!("/{number}").as_bytes());
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("task");
        }
    });
}

#[test]
fn aborted_fetches_leave_nothing_behind() {
    const FETCHES: usize = 20_000;
    const AT_ONCE: usize = 200;
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("bind");
    let addr = listener.local_addr().expect("address");
    for _ in 0..2 {
        let listener = listener.try_clone().expect("clone");
        std::thread::spawn(move || {
            let mut held = std::collections::VecDeque::new();
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(mut stream) = stream else { continue };
                match number % 4 {
                    // Reset, by closing with the request unread.
                    0 => drop(stream.read(&mut [0])),
                    1 => drop(stream.write_all(b"HTTP/1.1 200")),
                    2 => drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome")),
                    // Never an answer: the deadline ends it.
                    _ => {
                        held.push_back(stream);
                        if held.len() > AT_ONCE {
                            held.pop_front();
                        }
                    }
                }
            }
        });
    }
    let _alone = ALONE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut config = config();
    config.fetch.first_byte_timeout = Duration::from_millis(100);
    config.fetch.in_flight_max = AT_ONCE;
    let runtime = Runtime::new(256).expect("io_uring");
    runtime.block_on(async {
        let hands = Rc::new(Hands::new(&config, "testcrawl/1.0".to_owned()).expect("hands"));
        let next = Rc::new(std::cell::Cell::new(0));
        let mut before = None;
        for target in [FETCHES / 10, FETCHES] {
            let workers: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    let (hands, next) = (hands.clone(), next.clone());
                    ring::spawn(async move {
                        while next.get() < target {
                            next.set(next.get() + 1);
                            match get(&hands, &url(addr, "/")).await {
                                Ok(exchange) => assert!(exchange.response.truncated.is_some()),
                                Err(failure) => assert!(
                                    matches!(
                                        failure,
                                        Failure::Reset | Failure::ClosedEarly | Failure::FirstByteTimeout
                                    ),
                                    "{failure:?}"
                                ),
                            }
                        }
                    })
                })
                .collect();
            for worker in workers {
                worker.await.expect("worker");
            }
            // Closes are on their way; the server holds some of its own.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let open = std::fs::read_dir("/proc/self/fd").expect("fds").count();
            assert_eq!((hands.buffers_lent(), hands.deadlines().live(), hands.idle_connections()), (0, 0, 0));
            if let Some(before) = before {
                // The server's threads hold up to twice AT_ONCE, less at the first look perhaps.
                assert!(open <= before + 8, "{before} descriptors after a tenth, {open} after all");
            }
            before = Some(open);
        }
        assert_eq!(hands.counters().connects.get(), FETCHES as u64);
    });
}

#[test]
fn dropped_fetches_leave_nothing_behind() {
    let (addr, _) = server(|mut stream, _| {
        read_request(&mut stream);
        std::thread::sleep(Duration::from_millis(2));
        respond(&mut stream, &"some ".repeat(10_000));
    });
    let _alone = ALONE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut config = config();
    config.fetch.idle_connections_max = 0;
    let runtime = Runtime::new(256).expect("io_uring");
    runtime.block_on(async {
        let hands = Rc::new(Hands::new(&config, "testcrawl/1.0".to_owned()).expect("hands"));
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut first = None;
        for _round in 0..20 {
            let tasks: Vec<_> = (0..100)
                .map(|_| {
                    let hands = hands.clone();
                    ring::spawn(
                        async move { get(&hands, &url(addr, "/")).await.map(|exchange| exchange.response.status) },
                    )
                })
                .collect();
            for task in tasks {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                if state.is_multiple_of(5) {
                    tokio::time::sleep(Duration::from_micros(state >> 10 & 0x7ff)).await;
                }
                task.abort();
                // Either it was done before, and well, or it was dropped.
                assert!(matches!(task.await, Ok(Ok(200)) | Err(_)));
            }
            // The completions of what was cancelled are on their way, and so is the server's end.
            tokio::time::sleep(Duration::from_millis(60)).await;
            let count = || std::fs::read_dir("/proc/self/fd").expect("fds").count();
            let first = *first.get_or_insert_with(count);
            for _ in 0..1_000 {
                if count() <= first + 8 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            assert_eq!((hands.buffers_lent(), hands.deadlines().live()), (0, 0));
            let open = count();
            assert!(open <= first + 8, "{first} descriptors at first, {open} now");
        }
    });
}

/// A name server of the test's own.
fn name_server() -> (SocketAddr, Arc<AtomicUsize>) {
    use hickory_proto::op::{Message, ResponseCode};
    use hickory_proto::rr::{Name, RData, Record, RecordType, rdata};
    let socket = UdpSocket::bind((LOOPBACK, 0)).expect("bind");
    let addr = socket.local_addr().expect("address");
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    std::thread::spawn(move || {
        let mut packet = [0; 4_096];
        while let Ok((length, peer)) = socket.recv_from(&mut packet) {
            counter.fetch_add(1, Ordering::SeqCst);
            let Ok(query) = Message::from_vec(&packet[..length]) else { continue };
            let Some(question) = query.queries.first().cloned() else { continue };
            let name = question.name().clone();
            let mut answer = query.into_response();
            let four = |ttl, last| Record::from_rdata(name.clone(), ttl, RData::A(rdata::A::new(127, 0, 0, last)));
            match (name.to_ascii().as_str(), question.query_type()) {
                ("short.test.", RecordType::A) => drop(answer.add_answer(four(5, 2)).add_answer(four(7, 3))),
                ("long.test.", RecordType::A) => drop(answer.add_answer(four(9_999_999, 2))),
                ("an_hour.test.", RecordType::A) => drop(answer.add_answer(four(3_600, 2))),
                ("alias.test.", RecordType::A) => {
                    let target = Name::from_ascii("target.test.").expect("name");
                    let alias = Record::from_rdata(name.clone(), 300, RData::CNAME(rdata::CNAME(target.clone())));
                    answer.add_answer(alias);
                    answer.add_answer(Record::from_rdata(target, 600, RData::A(rdata::A::new(127, 0, 0, 9))));
                }
                ("six.test.", RecordType::AAAA) => {
                    let six = RData::AAAA(rdata::AAAA::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
                    answer.add_answer(Record::from_rdata(name.clone(), 900, six));
                }
                ("six.test." | "empty.test.", _) => {}
                ("servfail.test.", _) => answer.metadata.response_code = ResponseCode::ServFail,
                ("refused.test.", _) => answer.metadata.response_code = ResponseCode::Refused,
                ("silent.test.", _) => continue,
                ("junk.test.", _) => {
                    let _ = socket.send_to(b"junk", peer);
                    continue;
                }
                _ => answer.metadata.response_code = ResponseCode::NXDomain,
            }
            let _ = socket.send_to(&answer.to_vec().expect("encode"), peer);
        }
    });
    (addr, count)
}

#[test]
fn names_resolve() {
    let (addr, queries) = name_server();
    let mut config = config();
    config.dns.servers = vec![addr];
    config.dns.hosts.insert("Table.Test".to_owned(), vec!["127.0.0.7".parse().expect("address")]);
    with_hands(&config, |hands| async move {
        let resolved = |addrs: &[&str], seconds| Outcome::Resolved {
            addrs: addrs.iter().map(|addr| addr.parse().expect("address")).collect(),
            ttl: Duration::from_secs(seconds),
        };
        // Without asking.
        assert_eq!(hands.resolve("table.test", false).await, resolved(&["127.0.0.7"], 86_400));
        assert_eq!(hands.resolve("192.0.2.1", false).await, resolved(&["192.0.2.1"], 86_400));
        assert_eq!(hands.resolve("[2001:db8::5]", false).await, resolved(&["2001:db8::5"], 86_400));
        let no_address = |seconds| Outcome::NoAddress { ttl: Duration::from_secs(seconds) };
        for no_name in ["", ".", "a..b", &"x".repeat(64), &"abc.".repeat(80)] {
            assert_eq!(hands.resolve(no_name, false).await, no_address(3 * 3_600), "{no_name}");
        }
        assert_eq!(queries.load(Ordering::SeqCst), 0);

        assert_eq!(hands.resolve("short.test", false).await, resolved(&["127.0.0.2", "127.0.0.3"], 60));
        assert_eq!(queries.load(Ordering::SeqCst), 1, "one query, no search list, no AAAA");
        assert_eq!(hands.resolve("short.test.", false).await, resolved(&["127.0.0.2", "127.0.0.3"], 60));
        assert_eq!(queries.load(Ordering::SeqCst), 2, "nothing is kept here");
        assert_eq!(hands.resolve("long.test", false).await, resolved(&["127.0.0.2"], 86_400));
        assert_eq!(hands.resolve("an_hour.test", false).await, resolved(&["127.0.0.2"], 3_600));
        assert_eq!(hands.resolve("alias.test", false).await, resolved(&["127.0.0.9"], 300));
        assert_eq!(hands.resolve("six.test", false).await, resolved(&["2001:db8::1"], 900));
        for name in ["nx.test", "empty.test"] {
            assert_eq!(hands.resolve(name, false).await, no_address(60), "{name}");
        }
        for name in ["servfail.test", "refused.test"] {
            assert_eq!(hands.resolve(name, false).await, Outcome::Failed(Failure::DnsFailed), "{name}");
        }
        for name in ["silent.test", "junk.test"] {
            let start = ring::now();
            assert_eq!(hands.resolve(name, false).await, Outcome::Failed(Failure::DnsTimeout), "{name}");
            assert!(ring::now().since(start) < Duration::from_millis(1_300));
        }
        // More than may be asked for at once: all are answered all the same.
        let tasks: Vec<_> = (0..100)
            .map(|_| {
                let hands = hands.clone();
                ring::spawn(async move { hands.resolve("an_hour.test", false).await })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.expect("task"), resolved(&["127.0.0.2"], 3_600));
        }
    });
}
