//! The server: ports, threads, certificates and name server of a synthetic web, from start to stop.
//!
//! Decides: every thread has a runtime of its own and its own listeners on all addresses (SO_REUSEPORT), so threads
//! share only the model, counters and certificates. All addresses share one port per scheme; port 0 picks one that is
//! free on all of them.
//! Invariants: no address outside 127.0.0.0/8 is ever bound; `start` returns when everything listens; `stop` returns
//! when every thread has ended.
//! Limits: two descriptors per thread and address, one per connection; `CONNECTIONS_MAX` connections a thread.
//! Leaves to others: signals and printing (`cli`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpSocket;
use tokio::sync::watch;

use super::authority::Authority;
use super::model::{Model, ModelConfig};
use super::serve::{self, ThreadJob};
use super::watch::{Observer, ServerReport};
use ringcrawl_config::Operators;

/// How a web is served.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Threads that serve, 1 to 256.
    pub threads: usize,
    /// CPUs that the threads are pinned to, in turn; empty: not pinned.
    pub cpus: Vec<usize>,
    /// Whether requests are watched one by one.
    pub watch: bool,
    /// The operators of the addresses, for the watch.
    pub operators: Operators,
    /// UDP port of the name server; 0: any free one.
    pub dns_port: u16,
    /// Time to live of the name server's answers.
    pub dns_ttl: Duration,
    /// Responses after which the server closes a connection; 0: no limit.
    pub requests_per_connection: u32,
    /// Whether TLS sessions may be resumed, by tickets.
    pub tls_tickets: bool,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            threads: 1,
            cpus: Vec::new(),
            watch: false,
            operators: Operators::default(),
            dns_port: 0,
            dns_ttl: Duration::from_secs(300),
            requests_per_connection: 0,
            tls_tickets: true,
        }
    }
}

/// Starts synthetic webs.
#[derive(Clone, Copy, Debug)]
pub struct Server;

/// A synthetic web that is being served; dropping it stops it.
#[derive(Debug)]
pub struct Running {
    /// Port of every http origin.
    pub http_port: u16,
    /// Port of every https origin.
    pub https_port: u16,
    /// The name server.
    pub dns: SocketAddr,
    /// The certificate authority's root.
    pub ca_pem: String,
    model: Arc<Model>,
    observer: Arc<Observer>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Serves the web of `model_config`; ports of 0 are replaced.
    pub fn start(mut model_config: ModelConfig, config: ServerConfig) -> io::Result<Running> {
        if !(1..=THREADS_MAX).contains(&config.threads) {
            return Err(invalid("threads must be 1 to 256"));
        }
        let addresses: Vec<Ipv4Addr> = Model::new(model_config.clone()).map_err(invalid)?.addresses().collect();
        // Held until the threads listen, so that no other process takes the ports.
        let (http_port, _http_held) = reserve(&addresses, model_config.http_port)?;
        let (https_port, _https_held) = reserve(&addresses, model_config.https_port)?;
        model_config.http_port = http_port;
        model_config.https_port = https_port;
        let model = Arc::new(Model::new(model_config).map_err(invalid)?);
        let observer = Arc::new(Observer::new(Arc::clone(&model), config.watch, config.operators));
        let authority = Arc::new(Authority::new(Arc::clone(&model))?);
        let ca_pem = authority.root_pem().to_owned();
        let tls = Arc::new(authority.server_config(config.tls_tickets)?);
        let dns_socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, config.dns_port))?;
        dns_socket.set_nonblocking(true)?;
        let dns = dns_socket.local_addr()?;

        let (stop, stopped) = watch::channel(false);
        let mut dns_socket = Some(dns_socket);
        let mut running = Running { http_port, https_port, dns, ca_pem, model, observer, stop, threads: Vec::new() };
        for number in 0..config.threads {
            let job = ThreadJob {
                model: Arc::clone(&running.model),
                observer: Arc::clone(&running.observer),
                tls: Arc::clone(&tls),
                addresses: addresses.clone(),
                cpu: config.cpus.get(number % config.cpus.len().max(1)).copied(),
                dns: dns_socket.take().map(|socket| (socket, config.dns_ttl)),
                connections_max: CONNECTIONS_MAX,
                requests_per_connection: config.requests_per_connection,
            };
            let (ready, is_ready) = mpsc::channel();
            let stopped = stopped.clone();
            let thread = std::thread::Builder::new()
                .name(format!("web-{number}"))
                .spawn(move || serve::run(job, &ready, stopped))?;
            running.threads.push(thread);
            is_ready.recv().map_err(io::Error::other)??;
        }
        Ok(running)
    }
}

impl Running {
    /// The web being served, with its actual ports.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The observations so far.
    pub fn report(&self) -> ServerReport {
        self.observer.report()
    }

    /// Stops serving and returns the observations.
    pub fn stop(mut self) -> ServerReport {
        self.halt();
        self.observer.report()
    }

    fn halt(&mut self) {
        let _ = self.stop.send(true);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.halt();
    }
}

/// A socket bound to an address and port that the threads share. Refuses any address but loopback.
pub(super) fn bind(address: Ipv4Addr, port: u16) -> io::Result<TcpSocket> {
    if !address.is_loopback() {
        return Err(invalid(format!("{address} is not a loopback address")));
    }
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    let address = SocketAddr::V4(SocketAddrV4::new(address, port));
    socket.bind(address).map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))?;
    Ok(socket)
}

/// A port that is free on all addresses, and sockets that hold it.
fn reserve(addresses: &[Ipv4Addr], port: u16) -> io::Result<(u16, Vec<TcpSocket>)> {
    let mut tries_left = if port == 0 { PORT_TRIES_MAX } else { 1 };
    loop {
        tries_left -= 1;
        match reserve_once(addresses, port) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries_left > 0 => continue,
            result => return result,
        }
    }
}

fn reserve_once(addresses: &[Ipv4Addr], port: u16) -> io::Result<(u16, Vec<TcpSocket>)> {
    let mut port = port;
    let mut held = Vec::with_capacity(addresses.len());
    for address in addresses {
        let socket = bind(*address, port)?;
        port = socket.local_addr()?.port();
        held.push(socket);
    }
    Ok((port, held))
}

/// How many ports are tried that prove taken on some address.
const PORT_TRIES_MAX: u32 = 16;
/// Maximum number of threads.
const THREADS_MAX: usize = 256;
/// Maximum number of connections per thread; further ones wait in the backlog.
const CONNECTIONS_MAX: usize = 32_768;

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// The IPv4 address of `address`, which is one: only IPv4 addresses are bound.
pub(super) fn ipv4(address: SocketAddr) -> Ipv4Addr {
    match address.ip() {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}
