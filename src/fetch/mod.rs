//! The hands: one fetch from `FetchJob` to response, on the shard's own runtime.
//!
//! Decides: which timeouts apply when, which connection is used, what a broken connection means. One short
//! async function per job; what waits between jobs is the frontier's.
//! Why so: everything that may wait stands in one place and under one deadline, so no fetch can hang.
//!
//! Invariants: `exchange` ends by its deadline plus two ticks of the shard's timer; memory for receiving is
//! bounded by the pool of blocks, connections by `fetch.in_flight_max` (the caller's promise) and
//! `fetch.idle_connections_max`; no address is connected to that `fetch.private_addresses` forbids;
//! nothing here takes a lock on a page's path but rustls, whose ticket cache has one per shard, never contended.
//! Limits: HTTP/1.1 GET; no proxy; one address a job.
//! Leaves to others: decoding, scanning and storing the response, and making its `Outcome` (the caller);
//! politeness and retries (the frontier); how long addresses are used (the frontier, by their TTL).

mod address;
mod connection;
mod dns;
mod dns_tasks;
mod exchange;
mod pool;
mod tls;

use std::cell::Cell;
use std::net::IpAddr;
use std::path::PathBuf;
use std::rc::Rc;

use crate::config::{self, Config};
use crate::http;
use crate::outcome::{Failure, FetchJob, Outcome};
use crate::ring::{BufferPool, Deadlines};
use crate::time::{Duration, UnixTime};

pub use address::allowed;
pub use tls::TlsInfo;

/// One receive block: two TLS records at their largest (RFC 8446 section 5.1), most pages in a few reads.
const BLOCK_BYTES: usize = 32 * 1024;

/// What one shard fetches with. Made on the shard's thread, used inside its runtime.
pub struct Hands {
    fetch: config::Fetch,
    limits: http::Limits,
    agent_ua: String,
    from: String,
    tls: tls::TlsClient,
    resolver: dns::Resolver,
    pool: pool::Pool,
    buffers: BufferPool,
    deadlines: Deadlines,
    counters: Rc<Counters>,
}

/// What the hands count; one thread's, read by the shard when it reports.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections made.
    pub connects: Cell<u64>,
    /// TLS handshakes completed.
    pub handshakes: Cell<u64>,
    /// Those of them that took up an earlier session.
    pub resumed: Cell<u64>,
    /// Requests sent over a connection that had been kept.
    pub reuses: Cell<u64>,
    /// Kept connections that turned out to be closed, so that a new one was made.
    pub stale_reuses: Cell<u64>,
    /// Bytes received, TLS taken off.
    pub received_bytes: Cell<u64>,
    /// Names asked for.
    pub queries: Cell<u64>,
}

/// One request and its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// What came; `truncated` says when not all.
    pub response: http::Response,
    /// The request as it was sent.
    pub request_bytes: Vec<u8>,
    /// The peer's address.
    pub ip: IpAddr,
    /// When the exchange began, by the wall clock.
    pub started: UnixTime,
    /// How long its parts took.
    pub timings: Timings,
    /// The connection had been used before.
    pub reused: bool,
    /// The TLS in use; `None` over plain HTTP.
    pub tls: Option<TlsInfo>,
    /// Over TLS.
    pub secure: bool,
    /// The connection was reset or broke in TLS before the body's end.
    pub reset: bool,
    /// More came than the response, of which nobody knows what it is.
    pub excess: bool,
}

/// How long the parts of an exchange took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// TCP connect; zero when reused.
    pub connect: Duration,
    /// TLS handshake; zero when reused or plain.
    pub tls: Duration,
    /// From the last request byte to the first response byte.
    pub first_byte: Duration,
    /// From the beginning to the last byte.
    pub total: Duration,
}

/// Why there are no hands: the configuration asks for what is not there.
#[derive(Debug, thiserror::Error)]
pub enum HandsError {
    /// `tls.ca_files`
    #[error("tls.ca_files: {path}: {why}", path = .0.display(), why = .1)]
    CaFile(PathBuf, String),
    /// rustls will not have the configuration.
    #[error("TLS: {0}")]
    Tls(String),
    /// `dns.servers`
    #[error("dns.servers: {0}")]
    Dns(String),
}

/// Reads what the configuration names and hands cannot do without: the files of `tls.ca_files`.
pub fn check(config: &Config) -> Result<(), HandsError> {
    tls::TlsClient::new(&config.tls, config.fetch.idle_connections_max).map(|_| ())
}

impl Hands {
    /// One shard's hands; `agent_ua` is the User-Agent that requests carry.
    pub fn new(config: &Config, agent_ua: String) -> Result<Hands, HandsError> {
        let fetch = config.fetch.clone();
        Ok(Hands {
            limits: http::Limits {
                header_bytes_max: fetch.header_bytes_max,
                header_count_max: fetch.header_count_max,
                body_wire_bytes_max: fetch.body_wire_bytes_max,
                body_bytes_max: fetch.body_bytes_max,
            },
            agent_ua,
            from: config.agent.email.clone(),
            tls: tls::TlsClient::new(&config.tls, fetch.idle_connections_max)?,
            resolver: dns::Resolver::new(&config.dns)?,
            pool: pool::Pool::new(fetch.idle_connections_max, fetch.idle_timeout),
            buffers: BufferPool::new(fetch.in_flight_max, BLOCK_BYTES),
            deadlines: Deadlines::new(),
            counters: Rc::default(),
            fetch,
        })
    }

    /// The addresses of `host`: `Outcome::Resolved`, or `Outcome::Failed` with one of the DNS failures.
    pub async fn resolve(&self, host: &str) -> Outcome {
        add(&self.counters.queries, 1);
        match self.resolver.resolve(host).await {
            Ok((addrs, ttl)) => Outcome::Resolved { addrs, ttl },
            Err(failure) => Outcome::Failed(failure),
        }
    }

    /// Fetches the job's URL from the job's address, by the job's deadline. Not to be dropped before its
    /// end: let the deadline do that.
    pub async fn exchange(self: &Rc<Self>, job: &FetchJob) -> Result<Exchange, Failure> {
        exchange::run(self, job).await
    }

    /// What has been counted since the start.
    pub fn counters(&self) -> &Rc<Counters> {
        &self.counters
    }

    /// Connections kept for another request now.
    pub fn idle_connections(&self) -> usize {
        self.pool.len()
    }

    /// Connections that are open now, in use or kept.
    pub fn open_connections(&self) -> usize {
        self.deadlines.live() + self.pool.len()
    }

    /// Receive blocks in use now, by fetches or the kernel.
    pub fn buffers_lent(&self) -> usize {
        self.buffers.lent()
    }

    /// The shard's deadlines, for others on this thread.
    pub fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }
}

fn add(counter: &Cell<u64>, more: u64) {
    counter.set(counter.get().wrapping_add(more));
}
