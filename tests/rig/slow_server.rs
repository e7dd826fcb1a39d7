//! A web server that answers when it is told to.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::servers::read_request;

/// A web server on 127.0.0.1 that allows everything by robots.txt and keeps every page back until it is let go.
pub struct SlowServer {
    /// Its port.
    pub port: u16,
    gate: Arc<Gate>,
    counts: Arc<Counts>,
    stopped: Arc<AtomicBool>,
}

/// Requests for the page, and answers to them.
#[derive(Default)]
struct Counts {
    asked: AtomicU64,
    answered: AtomicU64,
}

impl SlowServer {
    /// Starts it; pages are kept back.
    pub fn start() -> SlowServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let port = listener.local_addr().expect("its address").port();
        let server = SlowServer { port, gate: Arc::default(), counts: Arc::default(), stopped: Arc::default() };
        let (gate, counts, stopped) =
            (Arc::clone(&server.gate), Arc::clone(&server.counts), Arc::clone(&server.stopped));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (gate, counts) = (Arc::clone(&gate), Arc::clone(&counts));
                std::thread::spawn(move || serve(stream, &gate, &counts));
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
        self.counts.asked.load(Ordering::SeqCst)
    }

    /// Answers that went out so far.
    pub fn answered(&self) -> u64 {
        self.counts.answered.load(Ordering::SeqCst)
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

fn serve(mut stream: TcpStream, gate: &Gate, counts: &Counts) {
    while let Some(request) = read_request(&mut stream) {
        let is_page = !request.starts_with("GET /robots.txt ");
        if is_page {
            let number = counts.asked.fetch_add(1, Ordering::SeqCst);
            let pause = gate.pause.lock().expect("a gate");
            let pause = *gate.opened.wait_while(pause, |pause| pause.is_none()).expect("a gate");
            std::thread::sleep(pause.unwrap_or_default() * u32::try_from(number).expect("few requests"));
        }
        let body = if is_page { "slow" } else { "" };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.len());
        if stream.write_all((head + body).as_bytes()).is_err() {
            return;
        }
        counts.answered.fetch_add(u64::from(is_page), Ordering::SeqCst);
    }
}
