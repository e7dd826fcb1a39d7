//! Hands, jobs and servers.
//!
//! Decides: servers are plain threads of the standard library, so that nothing of the crawler's own is on both sides.

use std::future::Future;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use ringcrawl::config::{Config, PrivateAddresses};
use ringcrawl::fetch::{Exchange, Hands};
use ringcrawl::outcome::{Failure, FetchJob, JobKind};
use ringcrawl::ring::Runtime;
use ringcrawl::time::Instant;
use ringcrawl::url::Url;

pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Held for reading by each test, for writing by the one that counts the process's descriptors.
pub static ALONE: RwLock<()> = RwLock::new(());

/// Short times.
pub fn config() -> Config {
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

/// The defaults, fit for loopback, and `more`.
pub fn config_with(more: &str) -> Config {
    let mut config = Config::parse(more, "test").unwrap_or_else(|errors| panic!("{errors:?}"));
    config.fetch.private_addresses = PrivateAddresses::LoopbackOnly;
    config.fetch.in_flight_max = 16;
    config
}

/// Runs a test that is not the one which counts descriptors.
pub fn with_hands<F: Future<Output = ()>>(config: &Config, test: impl FnOnce(Rc<Hands>) -> F) {
    let _shared = ALONE.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    let runtime = Runtime::new(256).expect("io_uring");
    runtime.block_on(async {
        let hands = Rc::new(Hands::new(config, "testcrawl/1.0".to_owned()).expect("hands"));
        test(hands.clone()).await;
        assert_eq!(hands.buffers_lent(), 0, "blocks are still lent");
        assert_eq!(hands.deadlines().live(), 0, "deadlines are still set");
    });
}

pub fn job(url: &str) -> FetchJob {
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
        rest: Duration::ZERO,
    }
}

pub async fn get(hands: &Rc<Hands>, url: &str) -> Result<Exchange, Failure> {
    hands.exchange(&job(url)).await
}

/// A server that gives each connection, with its number, to a thread that runs `serve`.
pub fn server(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
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
pub fn read_request(stream: &mut impl Read) -> Option<String> {
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

pub fn respond(stream: &mut impl Write, body: &str) {
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
}

/// Closes with a request unread, which makes the kernel reset the connection.
pub fn reset_after(mut stream: TcpStream, answer: &[u8]) {
    let _ = stream.read(&mut [0]);
    let _ = stream.write_all(answer);
    std::thread::sleep(Duration::from_millis(30));
}

pub fn url(addr: SocketAddr, path: &str) -> String {
    format!("http://www.example.test:{}{path}", addr.port())
}

/// What a server was asked, in order.
pub type Asked = Arc<Mutex<Vec<String>>>;

/// A server that answers each request, after noting it, with the fields that `fields` gives for its path.
pub fn noting_server(fields: impl Fn(&str) -> String + Send + Sync + 'static) -> (SocketAddr, Asked) {
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("bind");
    let addr = listener.local_addr().expect("address");
    let asked: Asked = Arc::default();
    let (noted, fields) = (asked.clone(), Arc::new(fields));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (noted, fields) = (noted.clone(), fields.clone());
            std::thread::spawn(move || {
                let peer = stream.peer_addr().expect("peer");
                answer(&mut stream, peer, &noted, &*fields);
            });
        }
    });
    (addr, asked)
}

/// Notes each request, with the peer's address as a field of ours, and answers it.
fn answer(stream: &mut (impl Read + Write), peer: SocketAddr, noted: &Asked, fields: &dyn Fn(&str) -> String) {
    while let Some(request) = read_request(stream) {
        let request = request.replacen("\r\n", &format!("\r\nX-Peer: {peer}\r\n"), 1);
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        noted.lock().expect("noted").push(request);
        let _ = write!(stream, "HTTP/1.1 200 OK\r\n{}Content-Length: 2\r\n\r\nok", fields(&path));
    }
}

/// The same over TLS, with a certificate that nobody signed.
pub fn secure_server() -> (SocketAddr, Asked) {
    let key = rcgen::KeyPair::generate().expect("key");
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("params");
    let certificate = params.self_signed(&key).expect("certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("certificate and key");
    let config = Arc::new(config);
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("bind");
    let addr = listener.local_addr().expect("address");
    let asked: Asked = Arc::default();
    let noted = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let (noted, config) = (noted.clone(), config.clone());
            std::thread::spawn(move || {
                let peer = stream.peer_addr().expect("peer");
                let connection = rustls::ServerConnection::new(config).expect("server");
                answer(&mut rustls::StreamOwned::new(connection, stream), peer, &noted, &|_| String::new());
            });
        }
    });
    (addr, asked)
}

/// The value of a field of the last request.
pub fn last(asked: &Asked, name: &str) -> Option<String> {
    let asked = asked.lock().expect("asked");
    let lines = asked.last().expect("a request").split("\r\n");
    lines.filter_map(|line| line.split_once(": ")).find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}
