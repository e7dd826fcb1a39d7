//! Servers for the hands, and what they were asked.
//!
//! Decides: plain threads of the standard library, so that nothing of the crawler's own is on both sides.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpSocket;

use super::certificates;
use super::hands::LOOPBACK;

/// A server that gives each connection, with its number, to a thread that runs `serve`.
pub fn server(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    server_at(LOOPBACK, serve)
}

/// The same at another address, or at all of them.
pub fn server_at(
    ip: IpAddr,
    serve: impl Fn(TcpStream, usize) + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((ip, 0)).expect("bind");
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

/// A port that refuses connections, and that no other test can take while the value lives: bound, but nobody listens.
pub struct ClosedPort(TcpSocket);

impl ClosedPort {
    pub fn new() -> ClosedPort {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((LOOPBACK, 0).into()).expect("a port");
        ClosedPort(socket)
    }

    pub fn addr(&self) -> SocketAddr {
        self.0.local_addr().expect("its address")
    }
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
    secure_server_of(certificates::self_signed("localhost", false))
}

/// The same with another certificate.
pub fn secure_server_of(config: Arc<rustls::ServerConfig>) -> (SocketAddr, Asked) {
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
