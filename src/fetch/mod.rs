//! The hands: one fetch from `FetchJob` to response, on the shard's own runtime.
//!
//! Decides: which timeouts apply when, which connection is used, what a broken connection means. One short
//! async function per job; what waits between jobs is the frontier's.
//! Why so: everything that may wait stands in one place and under one deadline, so no fetch can hang.
//!
//! Invariants: `exchange` ends by its deadline plus two ticks of the shard's timer; memory for receiving is
//! bounded by the pool of blocks, connections by `fetch.in_flight_max` (the caller's promise) and
//! `fetch.idle_connections_max`; no address but the proxy's is connected to that `fetch.private_addresses` forbids;
//! nothing here takes a lock on a page's path but rustls's two, of tickets and of chains, one each per shard and never contended.
//! Limits: HTTP/1.1 GET.
//! Leaves to others: decoding, scanning and storing the response, and making its `Outcome` (the caller);
//! politeness and retries (the frontier); how long addresses are used (the frontier, by their TTL).

mod address;
mod answer;
mod connection;
mod dial;
mod dns;
mod exchange;
mod pace;
mod pool;
mod proxy;
mod socks;
mod source;
mod tls;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use crate::config::{self, Config, Cookies};
use crate::http;
use crate::ledger::Ledger;
use crate::outcome::{Failure, FetchJob, Outcome};
use crate::ring::{BufferPool, Deadlines};
use crate::time::{Duration, UnixTime};

pub use address::allowed;
pub use dial::FURTHER_MAX;
pub use tls::{TlsClient, TlsInfo};

/// One receive block: two TLS records at their largest (RFC 8446 section 5.1), most pages in a few reads.
const BLOCK_BYTES: usize = 32 * 1024;

/// As many as are filled between two looks of a busy shard; more peers than that who send at one time take turns.
const BLOCKS_MAX: usize = 256;

/// What one shard fetches with. Made on the shard's thread, used inside its runtime.
pub struct Hands {
    fetch: config::Fetch,
    limits: http::Limits,
    agent_ua: String,
    from: String,
    /// What Authorization says, by origin.
    logins: BTreeMap<String, String>,
    /// Cookies, where they are wanted.
    jar: Option<RefCell<http::Jar>>,
    sources: source::Sources,
    proxy: Option<proxy::Proxy>,
    /// How long a stand-in for an address may be used.
    ttl_max: Duration,
    tls: tls::TlsClient,
    resolver: dns::Resolver,
    pool: pool::Pool,
    buffers: BufferPool,
    deadlines: Deadlines,
    turns: dial::Turns,
    counters: Rc<Counters>,
}

/// What the hands count; one thread's, read by the shard when it reports.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections made.
    pub connects: Cell<u64>,
    /// Those of them to a further address, beside or after the first.
    pub further_connects: Cell<u64>,
    /// TLS handshakes completed.
    pub handshakes: Cell<u64>,
    /// Those of them that took up an earlier session.
    pub resumed: Cell<u64>,
    /// Those of them that did not, with a chain of certificates that was remembered as verified.
    pub chains_recognized: Cell<u64>,
    /// Requests sent over a connection that had been kept.
    pub reuses: Cell<u64>,
    /// Kept connections that turned out to be closed, so that a new one was made.
    pub stale_reuses: Cell<u64>,
    /// Bytes received, TLS taken off.
    pub received_bytes: Cell<u64>,
}

/// One request and its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// What came; `truncated` says when not all.
    pub response: http::Response,
    /// The request as it was sent, but for credentials, in whose place stands a word.
    pub request_bytes: Vec<u8>,
    /// The peer's address; `None` where a proxy looked it up.
    pub ip: Option<IpAddr>,
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
    /// The body was cut because it came more slowly than `fetch.rate_min`.
    pub slow: bool,
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
    /// From the request to the first byte of the response.
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
    /// `proxy.url`
    #[error("proxy.url: {0}")]
    Proxy(String),
    /// `fetch.source_addresses`, `fetch.source_ports`
    #[error("fetch.{0}")]
    Source(String),
    /// The kernel does not register memory for what is received, or this thread has no ring.
    #[error("blocks to receive into: {0}")]
    Blocks(std::io::Error),
}

/// Tries what the configuration names and hands cannot do without: the files of `tls.ca_files`, the addresses of
/// `fetch.source_addresses`, the proxy's name.
pub fn check(config: &Config) -> Result<(), HandsError> {
    source::Sources::new(&config.fetch)?;
    proxy::Proxy::new(config)?;
    tls::TlsClient::new(&config.tls).map(|_| ())
}

impl Hands {
    /// One shard's hands, inside of its runtime; `agent_ua` is the User-Agent that requests carry.
    pub fn new(config: &Config, agent_ua: String) -> Result<Hands, HandsError> {
        let fetch = config.fetch.clone();
        let pool = pool::Pool::new(fetch.idle_connections_max, fetch.idle_timeout);
        let blocks_max = fetch.in_flight_max.min(BLOCKS_MAX);
        let buffers = BufferPool::new(blocks_max, BLOCK_BYTES).map_err(HandsError::Blocks)?;
        buffers.when_dry(pool.closing_noisy());
        Ok(Hands {
            limits: http::Limits::from(&fetch),
            agent_ua,
            from: config.agent.email.clone(),
            logins: config
                .http
                .auth
                .iter()
                .map(|(origin, login)| (origin.clone(), http::basic(login.reveal())))
                .collect(),
            jar: (config.http.cookies == Cookies::Site).then(|| RefCell::new(http::Jar::new((&config.http).into()))),
            sources: source::Sources::new(&fetch)?,
            proxy: proxy::Proxy::new(config)?,
            ttl_max: config.dns.ttl_max,
            tls: tls::TlsClient::new(&config.tls)?,
            resolver: dns::Resolver::new(&config.dns)?,
            pool,
            buffers,
            deadlines: Deadlines::new(),
            turns: dial::Turns::new(Arc::new(Ledger::new(1)), config.politeness.ip_delay),
            counters: Rc::default(),
            fetch,
        })
    }

    /// The same hands as those of one of `shards`, which take turns at addresses by `ledger` and share
    /// `dns.rate_max`; without this they share nothing with anybody.
    pub fn sharing(self, ledger: Arc<Ledger>, shards: u16) -> Hands {
        Hands { turns: self.turns.at(ledger), resolver: self.resolver.one_of(shards), ..self }
    }

    /// The addresses of `host`, of both families or of the first that has any: `Outcome::Resolved`,
    /// `Outcome::NoAddress`, or `Outcome::Failed` with one of the DNS failures.
    pub async fn resolve(&self, host: &str, both_families: bool) -> Outcome {
        if let Some(addr) = self.proxy.as_ref().and_then(|proxy| proxy.stand_in(host)) {
            return Outcome::Resolved { addrs: vec![addr], ttl: self.ttl_max };
        }
        self.resolver.resolve(host, both_families).await
    }

    /// Queries sent to name servers.
    pub fn queries(&self) -> u64 {
        self.resolver.queries()
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
