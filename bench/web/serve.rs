//! One thread of the server: its runtime, its listeners, its connections.
//!
//! Decides: a current-thread runtime with all tasks local, so that no request shares or locks anything. One task
//! accepts per listener; a connection is a task; a failed handshake or a broken connection is the client's problem.
//! Invariants: every listener is open before the thread reports that it is ready; at the stop all tasks are dropped.
//! Limits: `connections_max` connections at once, a handshake within `HANDSHAKE_MAX`.

use std::cell::RefCell;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;

use super::connection::{self, ConnectionContext};
use super::model::Model;
use super::names;
use super::server::{bind, ipv4};
use super::watch::Observer;
use ringcrawl_url::Scheme;

/// The parameters of one thread.
pub(super) struct ThreadJob {
    pub model: Arc<Model>,
    pub observer: Arc<Observer>,
    pub tls: Arc<rustls::ServerConfig>,
    pub addresses: Vec<Ipv4Addr>,
    pub cpu: Option<usize>,
    /// Socket and TTL of the name server, for the thread that runs it.
    pub dns: Option<(std::net::UdpSocket, Duration)>,
    pub connections_max: usize,
    pub requests_per_connection: u32,
}

/// Serves until stopped; reports once over `ready` whether it could start.
pub(super) fn run(job: ThreadJob, ready: &mpsc::Sender<io::Result<()>>, mut stopped: watch::Receiver<bool>) {
    if let Some(id) = job.cpu
        && !core_affinity::set_for_current(core_affinity::CoreId { id })
    {
        let _ = ready.send(Err(io::Error::other(format!("CPU {id} cannot be used"))));
        return;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let begun = begin(job);
        let failed = begun.is_err();
        let _ = ready.send(begun);
        if !failed {
            // An error means that the server is gone, which is the same as a stop.
            let _ = stopped.wait_for(|stop| *stop).await;
        }
    });
}

fn begin(job: ThreadJob) -> io::Result<()> {
    let ports = [(Scheme::Http, job.model.config().http_port), (Scheme::Https, job.model.config().https_port)];
    let mut listeners = Vec::new();
    for address in &job.addresses {
        for (scheme, port) in ports {
            listeners.push((scheme, bind(*address, port)?.listen(BACKLOG)?));
        }
    }
    if let Some((socket, ttl)) = job.dns {
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        tokio::task::spawn_local(names::serve(socket, Arc::clone(&job.model), ttl));
    }
    let shared = Rc::new(ConnectionContext {
        model: job.model,
        observer: job.observer,
        buffers: RefCell::default(),
        requests_per_connection: job.requests_per_connection,
    });
    let slots = Arc::new(Semaphore::new(job.connections_max));
    let tls = TlsAcceptor::from(job.tls);
    for (scheme, listener) in listeners {
        let tls = (scheme == Scheme::Https).then(|| tls.clone());
        tokio::task::spawn_local(accept(listener, tls, Rc::clone(&shared), Arc::clone(&slots)));
    }
    Ok(())
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Rc<ConnectionContext>, slots: Arc<Semaphore>) {
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                // No descriptor is left, or the client is gone already; both may last for a while.
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (tls, shared) = (tls.clone(), Rc::clone(&shared));
        tokio::task::spawn_local(async move {
            let _slot = slot;
            // How a connection ends is the client's problem: the counters have what was answered.
            let _ = serve(stream, tls, &shared).await;
        });
    }
}

async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, shared: &ConnectionContext) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let address = ipv4(stream.local_addr()?);
    match tls {
        None => connection::serve(stream, Scheme::Http, address, shared).await,
        Some(tls) => {
            let handshake = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream));
            let stream = handshake.await.map_err(|_| io::ErrorKind::TimedOut)??;
            connection::serve(stream, Scheme::Https, address, shared).await
        }
    }
}

/// Connections waiting to be accepted, per listener; the kernel caps it at net.core.somaxconn.
const BACKLOG: u32 = 4_096;
/// A handshake that takes longer is given up.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
