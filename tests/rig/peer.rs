//! Peers that the synthetic web does not have: a name server that gives every name one address, and a web server
//! that answers when it is told to.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use hickory_proto::op::{Message, Metadata};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record, RecordType};

/// A name server on loopback.
pub struct NameServer {
    /// Where it listens.
    pub addr: SocketAddr,
    asked: Arc<AtomicU64>,
}

impl NameServer {
    /// Answers every question for an A record with `address`; runs as long as the test program.
    pub fn start(address: Ipv4Addr) -> NameServer {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let addr = socket.local_addr().expect("its address");
        let asked = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut buffer = [0; 1_500];
            while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
                let Ok(request) = Message::from_vec(&buffer[..length]) else { continue };
                let mut reply = Message::response(request.metadata.id, request.metadata.op_code);
                reply.metadata = Metadata::response_from_request(&request.metadata);
                reply.metadata.recursion_available = true;
                for query in request.queries {
                    count.fetch_add(1, Ordering::SeqCst);
                    if query.query_type() == RecordType::A {
                        let record = Record::from_rdata(query.name().clone(), 60, RData::A(A(address)));
                        reply.answers.push(record);
                    }
                    reply.queries.push(query);
                }
                let _ = socket.send_to(&reply.to_vec().expect("a reply"), peer);
            }
        });
        NameServer { addr, asked }
    }

    /// Questions that came.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// An address of this machine that is not loopback, if it has one. Nothing is sent to find it.
pub fn outward_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).ok()?;
    match socket.local_addr().ok()? {
        SocketAddr::V4(addr) if !addr.ip().is_loopback() => Some(*addr.ip()),
        _ => None,
    }
}

/// A web server on 127.0.0.1 that allows everything by robots.txt and keeps every page back until it is let go.
pub struct SlowServer {
    /// Its port.
    pub port: u16,
    gate: Arc<Gate>,
    waiting: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
}

impl SlowServer {
    /// Starts it; pages are kept back.
    pub fn start() -> SlowServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let port = listener.local_addr().expect("its address").port();
        let server = SlowServer { port, gate: Arc::default(), waiting: Arc::default(), stopped: Arc::default() };
        let (gate, waiting, stopped) =
            (Arc::clone(&server.gate), Arc::clone(&server.waiting), Arc::clone(&server.stopped));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (gate, waiting) = (Arc::clone(&gate), Arc::clone(&waiting));
                std::thread::spawn(move || serve(stream, &gate, &waiting));
            }
        });
        server
    }

    /// The page.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/slow", self.port)
    }

    /// Requests for the page that came so far.
    pub fn asked(&self) -> u64 {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Answers, now and from now on.
    pub fn let_go(&self) {
        self.let_go_each(Duration::ZERO);
    }

    /// Answers what waits one after the other, `pause` apart.
    pub fn let_go_each(&self, pause: Duration) {
        *self.gate.pause.lock().expect("a gate") = Some(pause);
        self.gate.opened.notify_all();
    }
}

impl Drop for SlowServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.let_go();
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// Closed as long as there is no pause.
#[derive(Default)]
struct Gate {
    pause: Mutex<Option<Duration>>,
    opened: Condvar,
}

fn serve(mut stream: TcpStream, gate: &Gate, waiting: &AtomicU64) {
    let mut head = Vec::new();
    let mut byte = [0];
    loop {
        head.clear();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                _ => return,
            }
        }
        let body = if head.starts_with(b"GET /robots.txt ") {
            ""
        } else {
            let number = waiting.fetch_add(1, Ordering::SeqCst);
            let pause = gate.pause.lock().expect("a gate");
            let pause = *gate.opened.wait_while(pause, |pause| pause.is_none()).expect("a gate");
            std::thread::sleep(pause.unwrap_or_default() * u32::try_from(number).expect("few requests"));
            "slow"
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.len());
        if stream.write_all((head + body).as_bytes()).is_err() {
            return;
        }
    }
}
