//! The hands: one fetch from `FetchJob` to response, on the shard's own runtime.
//!
//! Decides: which timeouts apply when, which connection is used, what a broken connection means. Each job is one
//! short async function; what waits between jobs belongs to the frontier.
//! Why so: everything that may wait stands in one place and under one deadline, so no fetch can hang.
//!
//! Invariants: `exchange` ends two ticks of the shard's timer after its deadline, or 0.3 s after it where it waits
//! for memory. Memory for receiving is bounded by the pool of blocks, connections by `fetch.in_flight_max` (the
//! caller's promise) and `fetch.idle_connections_max`. Except for the proxy's address, it connects to no address that
//! `fetch.private_addresses` forbids. On a page's path it takes only the two locks of rustls, for tickets and for
//! chains; each is one per shard and never contended.
//! Limits: HTTP/1.1 GET.
//! Leaves to others: decoding, scanning and storing the response, and making its `Outcome` (the caller); politeness
//! and retries (the frontier); how long addresses are used (the frontier, by their TTL).

mod address;
mod answer;
mod body_memory;
mod connection;
mod cut_short;
mod dial;
mod dns;
mod exchange;
mod own_addresses;
mod pace;
mod pool;
mod proxy;
mod socks;
mod source;
mod tls;

pub use body_memory::{BodyHold, BodyMemory};

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use ringcrawl_base::Failure;
use ringcrawl_brain::identity::Signer;
use ringcrawl_brain::job::FetchJob;
use ringcrawl_brain::names::{DnsAnswer, DnsQuery};
use ringcrawl_brain::politeness::Ledger;
use ringcrawl_brain::transaction::Transaction;
use ringcrawl_brain::trouble::DETAIL_CHARS_MAX;
use ringcrawl_config::{self as config, BadPorts, Config, Cookies, PrivateAddresses, SentFrom, StoredBody};
use ringcrawl_http as http;
use ringcrawl_ring::{BufferPool, Deadlines};

pub use address::allowed;
pub use dial::FURTHER_MAX;
pub use dns::{Resolver, no_name_server};
pub use own_addresses::OwnAddresses;
pub use tls::TlsClient;

/// One receive block: two TLS records at their largest (RFC 8446 section 5.1), most pages in a few reads.
const BLOCK_BYTES: usize = 32 * 1024;

/// As many as are filled between two looks of a busy shard; if more peers send at one time, they take turns.
const BLOCKS_MAX: usize = 256;

/// What one shard fetches with. Created on the shard's thread, used inside its runtime.
pub struct Hands {
    fetch: config::Fetch,
    limits: http::Limits,
    robots_limits: http::Limits,
    agent_ua: String,
    from: String,
    /// Signs requests, if there is a key.
    signer: Option<RefCell<Signer>>,
    /// The values of Authorization, by origin.
    logins: BTreeMap<String, String>,
    /// Cookies, if enabled.
    jar: Option<RefCell<http::Jar>>,
    sources: source::Sources,
    proxy: Option<proxy::Proxy>,
    bad_ports: BadPorts,
    tls: tls::TlsClient,
    name_servers: dns::NameServers,
    pool: pool::Pool,
    buffers: BufferPool,
    bodies: BodyMemory,
    deadlines: Deadlines,
    /// The media types that page requests accept.
    accept: String,
    /// The content codings that requests accept.
    codings: &'static str,
    cut_short: cut_short::CutShortJobs,
    own_addresses: own_addresses::OwnAddressesSeen,
    further_claims: dial::FurtherClaims,
    /// Details of failures that have not been taken, by job.
    words: RefCell<HashMap<u64, Box<str>>>,
    /// The operator's own hosts.
    lines: config::HostLines,
    counters: Rc<Counters>,
}

/// Counters of the hands; they belong to one thread, and the shard reads them when it reports.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections made.
    pub connects: Cell<u64>,
    /// Those of them to a further address, in parallel with the first or after it.
    pub further_connects: Cell<u64>,
    /// TLS handshakes completed.
    pub handshakes: Cell<u64>,
    /// Those of them that resumed an earlier session.
    pub resumed: Cell<u64>,
    /// Those of them that did not, with a chain of certificates that was remembered as verified.
    pub chains_recognized: Cell<u64>,
    /// Requests sent over a connection that had been kept.
    pub reuses: Cell<u64>,
    /// Kept connections that turned out to be closed and were replaced.
    pub stale_reuses: Cell<u64>,
    /// Bytes received, without TLS.
    pub received_bytes: Cell<u64>,
}

/// Why there are no hands: the configuration asks for something unavailable.
#[derive(Debug, thiserror::Error)]
pub enum HandsError {
    /// `tls.ca_files`
    #[error("tls.ca_files: {path}: {why}", path = .0.display(), why = .1)]
    CaFile(PathBuf, String),
    /// rustls does not accept the configuration.
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
    /// The kernel does not register memory for receiving, or this thread has no ring.
    #[error("receive blocks: {0}")]
    Blocks(std::io::Error),
}

/// Tries what the configuration names and the hands require: the files of `tls.ca_files`, the addresses of
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
            limits: fetch.limits(),
            robots_limits: fetch.limits_of_robots(&config.robots),
            agent_ua,
            from: match config.agent.from {
                SentFrom::On => config.agent.email.clone(),
                SentFrom::Off => String::new(),
            },
            signer: Signer::new(&config.identity).map(RefCell::new),
            logins: config
                .http
                .auth
                .iter()
                .map(|(origin, login)| (origin.clone(), http::basic(login.reveal())))
                .collect(),
            jar: (config.http.cookies == Cookies::Site)
                .then(|| RefCell::new(http::Jar::new(config.http.cookie_limits()))),
            sources: source::Sources::new(&fetch)?,
            proxy: proxy::Proxy::new(config)?,
            bad_ports: config.scope.bad_ports,
            tls: tls::TlsClient::new(&config.tls)?,
            name_servers: dns::NameServers::new(&config.dns)?,
            pool,
            buffers,
            deadlines: Deadlines::new(),
            accept: config.http.accept.clone(),
            codings: match config.store.body {
                // Archives are replayed by tools that do not support zstd (RFC 8878) as a content coding.
                StoredBody::AsReceived => "br, gzip",
                StoredBody::Decoded => "zstd, br, gzip",
            },
            cut_short: cut_short::CutShortJobs::default(),
            own_addresses: own_addresses::OwnAddressesSeen::default(),
            further_claims: dial::FurtherClaims::new(Arc::new(Ledger::new(1)), config.politeness.ip_delay),
            bodies: BodyMemory::new(u64::MAX),
            words: RefCell::default(),
            lines: config.politeness.host.clone(),
            counters: Rc::default(),
            fetch,
        })
    }

    /// The same hands, which take claims on addresses in `ledger`, shared with other shards; without this they share
    /// nothing.
    pub fn sharing(self, ledger: Arc<Ledger>) -> Hands {
        Hands { further_claims: self.further_claims.at(ledger), ..self }
    }

    /// The same hands; the unprocessed bodies of these hold at most `bytes_max` bytes, beyond what each fetch may
    /// hold. Without this only single bodies have a limit.
    pub fn holding(self, bytes_max: u64) -> Hands {
        Hands { bodies: BodyMemory::new(bytes_max), ..self }
    }

    /// The same hands, which remember at most `bytes_max` bytes of signatures; without this, as many as all shards
    /// together.
    pub fn holding_signatures(self, bytes_max: u64) -> Hands {
        if let Some(signer) = &self.signer {
            signer.borrow_mut().hold(bytes_max);
        }
        self
    }

    /// The same hands, which know this machine's addresses; without this they know none.
    pub fn knowing(self, own: Arc<OwnAddresses>) -> Hands {
        Hands { own_addresses: own_addresses::OwnAddressesSeen::new(own), ..self }
    }

    /// Whether `addr` may be connected to under `policy`.
    fn may_connect(&self, addr: IpAddr, policy: PrivateAddresses) -> bool {
        allowed(addr, policy) && !(policy == PrivateAddresses::Deny && self.own_addresses.contains(addr))
    }

    /// The number of name servers that may be queried.
    pub fn name_servers(&self) -> usize {
        self.name_servers.len()
    }

    /// Sends one query to one name server.
    pub async fn ask(&self, query: &DnsQuery) -> DnsAnswer {
        let (answer, words) = self.name_servers.ask(query).await;
        if let Some(words) = words.filter(|_| !query.is_probe()) {
            self.say(query.lookup, &words);
        }
        answer
    }

    /// Details of how the job, or the last query of the lookup, has failed.
    pub fn take_words(&self, job: u64) -> Option<Box<str>> {
        self.words.borrow_mut().remove(&job)
    }

    fn say(&self, job: u64, words: &str) {
        // A server chooses some of the text: the algorithm of its certificate, kilobytes long.
        let words: String = words.chars().take(DETAIL_CHARS_MAX).collect();
        self.words.borrow_mut().insert(job, words.into());
    }

    /// Fetches the job's URL from the job's address, by the job's deadline. Do not drop it before its end: let the
    /// deadline end it.
    pub async fn exchange(self: &Rc<Self>, job: &FetchJob) -> Result<Transaction, Failure> {
        self.exchange_within(job, &self.hold(job)).await
    }

    /// The same, with a hold on the memory of the response: the caller keeps it until the response is processed.
    pub async fn exchange_within(self: &Rc<Self>, job: &FetchJob, hold: &BodyHold) -> Result<Transaction, Failure> {
        let result = exchange::run(self, job, hold).await;
        if result.is_ok() {
            self.words.borrow_mut().remove(&job.id);
        } else {
            // Its end may be held back for long.
            hold.settle(0);
        }
        result
    }

    /// Ends the exchange of `job` as if its deadline had passed, if it waits for its response.
    pub fn cut_short(&self, job: u64) {
        self.cut_short.cut_short(job, &self.deadlines);
    }

    /// Ends all exchanges in flight, whatever their deadlines: they are no longer needed.
    pub fn abandon(&self) {
        self.deadlines.end_all();
    }

    /// A hold on the memory of a body, for the exchange of `job`.
    pub fn hold(&self, job: &FetchJob) -> BodyHold {
        self.bodies.hold(job.is_of_slow_site)
    }

    /// For work that holds no body.
    pub fn hold_nothing(&self) -> BodyHold {
        self.bodies.hold(false)
    }

    /// The counters since the start.
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
