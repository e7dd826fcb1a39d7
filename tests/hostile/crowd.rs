//! A crowd of hosts, honest ones and attackers of every kind, and who was asked for what.
//!
//! Decides: each host has a loopback address of its own, so that what holds between them is what the crawl decides. One
//! thread serves all, with a task for each connection, as the CPU that it uses is taken from the crawl that is measured.
//! Honest pages can be computed, so that what was stored is held against them. The crowd is the witness of who had turns.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record, RecordType};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio_rustls::TlsAcceptor;

use super::attackers::{Answer, Attackers, Ports};
use crate::rig::names::{NameServer, Reply};

/// The honest hosts: how many, and pages of each.
#[derive(Clone, Copy)]
pub struct Honest {
    pub hosts: usize,
    pub pages: usize,
}

/// What was asked for so far.
#[derive(Clone, Default)]
pub struct Witness {
    /// How often each honest page was asked for, host by host.
    pub asked: Vec<u32>,
    /// Honest pages that were asked for.
    pub had: usize,
    /// When each honest host was asked for the last of its pages.
    pub ends: Vec<Duration>,
    /// Requests of attackers, by kind.
    pub attacks: BTreeMap<String, u64>,
    /// Answers of attackers that are under way.
    pub under_way: usize,
    first: Option<Instant>,
    left: Vec<usize>,
}

pub struct Crowd {
    pub port: u16,
    pub names: NameServer,
    witness: Arc<Mutex<Witness>>,
    /// A port where nobody accepts connections, and those that fill its queue.
    _silent: std::net::TcpListener,
    _unheard: Vec<TcpStream>,
}

/// What the one thread serves from.
struct Host {
    honest: Honest,
    attackers: Attackers,
    witness: Arc<Mutex<Witness>>,
}

impl Honest {
    pub fn name(host: usize) -> String {
        format!("www.h{host}.test")
    }

    /// What a page says: the first has links to all others, and each has words of its own.
    pub fn page(self, host: usize, page: usize) -> Vec<u8> {
        let links: String = match page {
            0 => (1..self.pages).map(|page| format!("<a href=/{page}>")).collect(),
            _ => "word ".repeat(400 * (1 + page % 10)),
        };
        format!("<p>{page} of {host}</p>{links}").into_bytes()
    }

    pub fn all(self) -> usize {
        self.hosts * self.pages
    }
}

impl Crowd {
    /// Serves `honest` hosts and any attackers until the test program ends.
    pub fn start(honest: Honest) -> Crowd {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (plain, secure, silent) = {
            let _inside = runtime.enter();
            (listener(4_096), listener(4_096), listener(1).into_std().expect("a listener"))
        };
        let port = |listener: &TcpListener| listener.local_addr().expect("its address").port();
        let silent_addr: SocketAddr = (Ipv4Addr::LOCALHOST, silent.local_addr().expect("its address").port()).into();
        let closed = (0..4).map(|_| {
            let listener = std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a listener");
            listener.local_addr().expect("its address").port()
        });
        let ports = Ports {
            plain: port(&plain),
            secure: port(&secure),
            odd: closed.chain([silent_addr.port()]).collect(),
            honest_hosts: honest.hosts,
        };
        let connect = |_| TcpStream::connect_timeout(&silent_addr, Duration::from_millis(100)).ok();
        let unheard = (0..4).filter_map(connect).collect();
        let witness = Arc::new(Mutex::new(Witness {
            asked: vec![0; honest.all()],
            ends: vec![Duration::ZERO; honest.hosts],
            left: vec![honest.pages; honest.hosts],
            ..Witness::default()
        }));
        let plain_port = ports.plain;
        // Takes seconds, so it is done before anything can be asked for.
        let host = Arc::new(Host { honest, attackers: Attackers::new(ports), witness: Arc::clone(&witness) });
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::spawn(serve_secure(secure, Arc::clone(&host)));
                loop {
                    let Ok((stream, _)) = plain.accept().await else { continue };
                    tokio::spawn(serve(stream, Arc::clone(&host)));
                }
            })
        });
        Crowd { port: plain_port, names: names(honest.hosts), witness, _silent: silent, _unheard: unheard }
    }

    pub fn had(&self) -> usize {
        self.witness.lock().expect("a witness").had
    }

    pub fn witness(&self) -> Witness {
        self.witness.lock().expect("a witness").clone()
    }
}

impl Witness {
    /// Honest pages a second, from the first to the last.
    pub fn rate(&self) -> f64 {
        let last = self.ends.iter().max().copied().unwrap_or_default();
        self.had as f64 / last.as_secs_f64().max(0.001)
    }

    /// How the honest hosts fared, and who was beside them.
    pub fn words(&self, honest: Honest) -> String {
        let mut ends = self.ends.clone();
        ends.sort_unstable();
        let [first, half, most, last] = [0, 50, 99, 100].map(|part| ends[(honest.hosts - 1) * part / 100]);
        let again = self.asked.iter().map(|count| u64::from(*count)).sum::<u64>() - self.had as u64;
        format!(
            "{} honest pages, {:.0} a second, {again} asked for again; hosts were done after {first:.1?}, half {half:.1?}, \
             99 % {most:.1?}, all {last:.1?}; {} answers of attackers under way, {:?}",
            self.had,
            self.rate(),
            self.under_way,
            self.attacks
        )
    }

    fn note_honest(&mut self, honest: Honest, host: usize, page: usize) {
        let first = *self.first.get_or_insert_with(Instant::now);
        let Some(count) = self.asked.get_mut(host * honest.pages + page) else { return };
        *count += 1;
        if *count == 1 {
            self.had += 1;
            self.left[host] -= 1;
            self.ends[host] = first.elapsed();
        }
    }
}

fn listener(backlog: u32) -> TcpListener {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((Ipv4Addr::UNSPECIFIED, 0).into()).expect("a port");
    socket.listen(backlog).expect("a listener")
}

/// Where hosts are: honest ones and most of the others at an address of their own.
fn names(honest_hosts: usize) -> NameServer {
    NameServer::start(move |question, message| {
        let name = question.name().to_string();
        let mut labels = name.trim_end_matches('.').rsplit('.').skip(1);
        let (site, is_below) = (labels.next().unwrap_or_default(), labels.next().is_some());
        let (kind, number) = Attackers::kind(site);
        let address = match kind {
            "mute" if is_below => return Reply::Silence,
            "h" => honest_address(number),
            "steal" if is_below => honest_address(number % honest_hosts.max(1)),
            _ => Ipv4Addr::from(0x7f40_0000 | (xxhash_rust::xxh3::xxh3_64(name.as_bytes()) as u32 & 0x3f_ffff)),
        };
        if question.query_type() == RecordType::A {
            message.add_answer(Record::from_rdata(question.name().clone(), 3_600, RData::A(A(address))));
        }
        Reply::Message
    })
}

fn honest_address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, (host / 250) as u8, (host % 250) as u8 + 1)
}

/// Shows chains of certificates that nobody believes.
async fn serve_secure(listener: TcpListener, host: Arc<Host>) {
    for config in host.attackers.chains().iter().cycle() {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (acceptor, host) = (TlsAcceptor::from(Arc::clone(config)), Arc::clone(&host));
        tokio::spawn(async move {
            host.witness.lock().expect("a witness").note_attack("handshake");
            let _ = acceptor.accept(stream).await;
        });
    }
}

impl Witness {
    fn note_attack(&mut self, kind: &str) {
        match self.attacks.get_mut(kind) {
            Some(count) => *count += 1,
            None => _ = self.attacks.insert(kind.to_owned(), 1),
        }
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, crowd: Arc<Host>) -> Option<()> {
    let (mut head, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        head.clear();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut piece).await.ok()? {
                0 => return None,
                count => head.extend_from_slice(&piece[..count]),
            }
        }
        let request = String::from_utf8_lossy(&head);
        let path = request.split(' ').nth(1)?;
        let name = request.split("\r\n").find_map(|line| line.strip_prefix("Host: "))?;
        let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
        let site = name.trim_end_matches(".test").rsplit('.').next().unwrap_or_default();
        let (kind, number) = Attackers::kind(site);
        if kind != "h" {
            crowd.witness.lock().expect("a witness").note_attack(kind);
            let _under_way = UnderWay::begin(&crowd.witness);
            attack(&mut stream, crowd.attackers.answer(kind, number, name, path)).await?;
            return None;
        }
        let (honest, page) = (crowd.honest, path.get(1..).and_then(|page| page.parse().ok()));
        let (fields, body) = match page {
            _ if path == "/robots.txt" => ("200 OK", b"User-agent: *\nDisallow: /private".to_vec()),
            _ if path == "/" => ("200 OK\r\nContent-Type: text/html", honest.page(number, 0)),
            Some(page @ 1..) if page < honest.pages => ("200 OK\r\nContent-Type: text/html", honest.page(number, page)),
            _ => ("404 Not Found", Vec::new()),
        };
        if path != "/robots.txt" && number < honest.hosts {
            crowd.witness.lock().expect("a witness").note_honest(honest, number, page.unwrap_or(0));
        }
        let head = format!("HTTP/1.1 {fields}\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), &body].concat()).await.ok()?;
    }
}

/// `None` when the peer has gone.
async fn attack(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), answer: Answer) -> Option<()> {
    let Answer { start, piece, pause } = answer;
    stream.write_all(&start).await.ok()?;
    let Some(pause) = pause else {
        stream.shutdown().await.ok()?;
        return Some(());
    };
    let mut more = [0; 64];
    // The peer says nothing more, and so what comes is its end.
    while tokio::time::timeout(pause, stream.read(&mut more)).await.is_err() {
        stream.write_all(piece).await.ok()?;
    }
    None
}

/// An answer of an attacker, counted while it is under way.
struct UnderWay<'a>(&'a Mutex<Witness>);

impl<'a> UnderWay<'a> {
    fn begin(witness: &'a Mutex<Witness>) -> UnderWay<'a> {
        witness.lock().expect("a witness").under_way += 1;
        UnderWay(witness)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Ok(mut witness) = self.0.lock() {
            witness.under_way -= 1;
        }
    }
}
