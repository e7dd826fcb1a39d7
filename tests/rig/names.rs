//! A name server of a test's own.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record, RecordType};

/// A name server on loopback, by UDP and TCP; runs as long as the test program.
pub struct NameServer {
    /// Where it listens.
    pub addr: SocketAddr,
    asked: Arc<AtomicU64>,
}

/// What comes for a question.
pub enum Reply {
    /// The message.
    Message,
    /// These bytes.
    Bytes(&'static [u8]),
    /// Nothing.
    Silence,
    /// The message, so long afterwards; by UDP alone.
    Late(Duration),
}

/// Bytes of an answer that UDP carries; a longer one is asked for again by TCP.
const DATAGRAM_BYTES_MAX: usize = 1_232;

impl NameServer {
    /// Answers each question as `answer` makes of the message that holds it.
    pub fn start(answer: impl Fn(&Query, &mut Message) -> Reply + Send + 'static) -> NameServer {
        let (listener, socket) = sockets();
        let addr = socket.local_addr().expect("its address");
        let asked = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked);
        let answer = Mutex::new(answer);
        let reply = Arc::new(move |request: &[u8], bytes_max: usize| {
            count.fetch_add(1, Ordering::SeqCst);
            let request = Message::from_vec(request).ok()?;
            let question = request.queries.first().cloned()?;
            let mut message = request.into_response();
            message.metadata.recursion_available = true;
            let reply = answer.lock().expect("an answer")(&question, &mut message);
            match reply {
                Reply::Message => {
                    let bytes = message.to_vec().expect("a reply");
                    let is_whole = bytes.len() <= bytes_max;
                    let bytes = if is_whole { bytes } else { message.truncate().to_vec().expect("a reply") };
                    Some((bytes, Duration::ZERO))
                }
                Reply::Bytes(bytes) => Some((bytes.to_vec(), Duration::ZERO)),
                Reply::Silence => None,
                Reply::Late(after) => Some((message.to_vec().expect("a reply"), after)),
            }
        });
        let (late, to_send) = std::sync::mpsc::channel::<(Instant, Vec<u8>, SocketAddr)>();
        let sender = socket.try_clone().expect("a socket");
        // They are late by the same time, so the first comes first.
        std::thread::spawn(move || {
            for (at, bytes, peer) in to_send {
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
                let _ = sender.send_to(&bytes, peer);
            }
        });
        let by_datagram = Arc::clone(&reply);
        std::thread::spawn(move || {
            let mut buffer = [0; 4_096];
            while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
                match by_datagram(&buffer[..length], DATAGRAM_BYTES_MAX) {
                    Some((bytes, Duration::ZERO)) => drop(socket.send_to(&bytes, peer)),
                    Some((bytes, after)) => drop(late.send((Instant::now() + after, bytes, peer))),
                    None => {}
                }
            }
        });
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let reply = Arc::clone(&reply);
                std::thread::spawn(move || while serve(&mut stream, &*reply).is_some() {});
            }
        });
        NameServer { addr, asked }
    }

    /// Answers every question for an A record with `address`.
    pub fn pointing_to(address: Ipv4Addr) -> NameServer {
        NameServer::start(move |question, message| {
            if question.query_type() == RecordType::A {
                message.add_answer(Record::from_rdata(question.name().clone(), 60, RData::A(A(address))));
            }
            Reply::Message
        })
    }

    /// Questions that came.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Sockets of both kinds on one port.
fn sockets() -> (TcpListener, UdpSocket) {
    let pair = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        let socket = UdpSocket::bind(listener.local_addr().ok()?).ok()?;
        Some((listener, socket))
    };
    (0..100).find_map(|_| pair()).expect("a port")
}

/// One question by TCP; `None` when there is none any more.
fn serve(stream: &mut TcpStream, reply: impl Fn(&[u8], usize) -> Option<(Vec<u8>, Duration)>) -> Option<()> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut request = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut request).ok()?;
    let (bytes, _) = reply(&request, usize::from(u16::MAX))?;
    let length = u16::try_from(bytes.len()).ok()?;
    stream.write_all(&[&length.to_be_bytes()[..], &bytes].concat()).ok()
}
