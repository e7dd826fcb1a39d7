//! Names to addresses, on the shard's own thread.
//!
//! Decides: literal addresses and the names in `dns.hosts` are answered without asking; all else is asked for as a
//! complete name (no search list), in the first family of `dns.families`, and in the second where the first has no
//! address or the job wants both: half the queries, and IPv4 is what nearly every host has.
//! A question has [`TRIES`] tries, each of which waits twice as long as the one before; an error is no try: then another
//! server is asked at once, each once ([`servers`]). Queries go at the pace of `dns.rate_max` ([`pace`]).
//! Nothing is kept here: the frontier keeps answers by their TTL, negative ones by that of their SOA record (RFC 2308
//! section 5).
//! Invariants: at most `in_flight_max` names are asked for at once, the others wait their turn; servers are waited for
//! no longer than `dns.timeout` a name, the wait for the pace not counted; a TTL lies within `ttl_min` and `ttl_max`,
//! or `negative_ttl_min` and `negative_ttl_max`.
//! Limits: /etc/hosts is not read: what the crawl does must stand in its configuration; no DNSSEC. An alias whose end
//! the server does not give is followed by hickory, a few steps, and a long answer is fetched over TCP: neither counts
//! as a query of its own.

mod pace;
mod servers;
#[cfg(test)]
mod tests;
mod wire;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::{DnsError, NetError, NoRecords};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::system_conf;

use super::HandsError;
use crate::config::{Dns, Families};
use crate::outcome::{Failure, Outcome};
use crate::ring;
use crate::time::Duration;
use pace::Pace;
use servers::Servers;
use wire::Wire;

type Client = hickory_resolver::Resolver<Wire>;

/// One shard's resolver.
pub(super) struct Resolver {
    hosts: HashMap<String, Vec<IpAddr>>,
    /// One for each server; none when neither the configuration nor the system names one.
    clients: Vec<Client>,
    servers: RefCell<Servers>,
    pace: RefCell<Pace>,
    turns: tokio::sync::Semaphore,
    rules: Dns,
    queries: Cell<u64>,
}

/// What was learned of a name in one family.
enum Found {
    Addrs(Vec<IpAddr>, Duration),
    /// The name has none in this family, and for so long.
    None(Option<Duration>),
    /// There is no such name, and for so long.
    NoName(Option<Duration>),
}

/// What came of asking one server.
enum Trouble {
    /// The server says that it cannot know, or what it says makes no sense.
    Error,
    /// The server will not answer this or anything.
    Refused,
    Silent,
}

impl Resolver {
    pub(super) fn new(dns: &Dns) -> Result<Resolver, HandsError> {
        let hosts = dns.hosts.iter().map(|(name, addrs)| (canonical(name), addrs.clone())).collect();
        let clients = clients(dns)?;
        Ok(Resolver {
            hosts,
            servers: RefCell::new(Servers::new(clients.len())),
            clients,
            pace: RefCell::new(Pace::new(dns.rate_max, 1)),
            turns: tokio::sync::Semaphore::new(dns.in_flight_max.clamp(1, 65_536)),
            rules: dns.clone(),
            queries: Cell::new(0),
        })
    }

    /// The same resolver, one of `shards` that share `dns.rate_max`.
    pub(super) fn one_of(self, shards: u16) -> Resolver {
        Resolver { pace: RefCell::new(Pace::new(self.rules.rate_max, shards)), ..self }
    }

    /// Queries sent.
    pub(super) fn queries(&self) -> u64 {
        self.queries.get()
    }

    /// `Outcome::Resolved`, `Outcome::NoAddress` or one of the DNS failures; of both families, or of the first that
    /// has an address.
    pub(super) async fn resolve(&self, host: &str, both_families: bool) -> Outcome {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(addr) = bare.parse::<IpAddr>() {
            return self.resolved(vec![addr], Duration::MAX);
        }
        let host = canonical(host);
        if let Some(addrs) = self.hosts.get(&host) {
            return self.resolved(addrs.iter().copied().filter(|addr| self.is_wanted(*addr)).collect(), Duration::MAX);
        }
        let name = if is_name(&host) { Name::from_ascii(&host).ok() } else { None };
        let Some(mut name) = name else { return self.resolved(Vec::new(), Duration::MAX) };
        name.set_fqdn(true);
        let Ok(_turn) = self.turns.acquire().await else { return Outcome::Failed(Failure::DnsFailed) };
        match self.ask(&name, both_families).await {
            Ok((addrs, ttl)) => self.resolved(addrs, ttl),
            Err(failure) => Outcome::Failed(failure),
        }
    }

    /// The outcome for `addrs`, which hold for `ttl`, as does that there is none.
    fn resolved(&self, addrs: Vec<IpAddr>, ttl: Duration) -> Outcome {
        let Dns { ttl_min, ttl_max, negative_ttl_min, negative_ttl_max, .. } = self.rules;
        if addrs.is_empty() {
            return Outcome::NoAddress { ttl: ttl.min(negative_ttl_max).max(negative_ttl_min) };
        }
        Outcome::Resolved { addrs, ttl: ttl.min(ttl_max).max(ttl_min) }
    }

    fn is_wanted(&self, addr: IpAddr) -> bool {
        match self.rules.families {
            Families::Ipv4First | Families::Ipv6First => true,
            Families::Ipv4Only => addr.is_ipv4(),
            Families::Ipv6Only => addr.is_ipv6(),
        }
    }

    /// All addresses, perhaps none, and how long that holds.
    async fn ask(&self, name: &Name, both_families: bool) -> Result<(Vec<IpAddr>, Duration), Failure> {
        let types: &[RecordType] = match self.rules.families {
            Families::Ipv4First => &[RecordType::A, RecordType::AAAA],
            Families::Ipv6First => &[RecordType::AAAA, RecordType::A],
            Families::Ipv4Only => &[RecordType::A],
            Families::Ipv6Only => &[RecordType::AAAA],
        };
        let (mut addrs, mut ttl, mut negative_ttl) = (Vec::new(), Duration::MAX, Duration::MAX);
        let mut patience = self.rules.timeout;
        for record_type in types {
            match self.ask_for(name, *record_type, &mut patience).await {
                Ok(Found::Addrs(more, more_ttl)) => {
                    addrs.extend(more);
                    ttl = ttl.min(more_ttl);
                    if !both_families {
                        break;
                    }
                }
                Ok(Found::None(none_ttl)) => negative_ttl = negative_ttl.min(none_ttl.unwrap_or_default()),
                // Of no family (RFC 2308 section 2.1).
                Ok(Found::NoName(none_ttl)) => {
                    negative_ttl = negative_ttl.min(none_ttl.unwrap_or_default());
                    break;
                }
                // What is known of the other family is enough to go on.
                Err(_) if !addrs.is_empty() => break,
                Err(failure) => return Err(failure),
            }
        }
        Ok(if addrs.is_empty() { (addrs, negative_ttl) } else { (addrs, ttl) })
    }

    /// Asks one server after the other for one type; what they were waited for is taken off `patience`.
    async fn ask_for(&self, name: &Name, record_type: RecordType, patience: &mut Duration) -> Result<Found, Failure> {
        let mut erred = vec![false; self.clients.len()];
        let mut asked = erred.clone();
        let mut failure = if self.clients.is_empty() { Failure::DnsFailed } else { Failure::DnsTimeout };
        let mut tries = 0;
        while tries < TRIES && !patience.is_zero() {
            let picked = {
                let (now, mut servers) = (ring::now(), self.servers.borrow_mut());
                // A silent one again only when all others were asked.
                servers.pick(now, |place| asked[place]).or_else(|| servers.pick(now, |place| erred[place]))
            };
            let Some(place) = picked else { break };
            asked[place] = true;
            let wait = (self.rules.timeout / (1 << (TRIES - tries))).min(*patience);
            let (answer, took) = self.ask_server(place, name, record_type, wait).await;
            *patience = patience.saturating_sub(took);
            let mut servers = self.servers.borrow_mut();
            match answer {
                Ok(found) => {
                    servers.answered(place);
                    return Ok(found);
                }
                Err(Trouble::Silent) => {
                    servers.failed(place, ring::now());
                    failure = Failure::DnsTimeout;
                    tries += 1;
                }
                Err(trouble) => {
                    if matches!(trouble, Trouble::Refused) {
                        servers.failed(place, ring::now());
                    }
                    erred[place] = true;
                    failure = Failure::DnsFailed;
                }
            }
        }
        Err(failure)
    }

    /// Asks one server once, at its turn: what it says, and how long that took.
    async fn ask_server(
        &self,
        place: usize,
        name: &Name,
        record_type: RecordType,
        wait: Duration,
    ) -> (Result<Found, Trouble>, Duration) {
        let now = ring::now();
        let turn = self.pace.borrow_mut().turn(now);
        ring::sleep_until(turn).await;
        self.queries.set(self.queries.get().wrapping_add(1));
        let begun = ring::now();
        // The resolver's sockets are the runtime's, not the ring's.
        let _outside = ring::Outside::new();
        let answer = match self.clients.get(place) {
            Some(client) => tokio::time::timeout(wait, client.lookup(name.clone(), record_type)).await,
            None => return (Err(Trouble::Error), Duration::ZERO),
        };
        let found = match answer {
            Ok(Ok(lookup)) => Ok(addrs_of(lookup.answers())),
            Ok(Err(error)) => meaning(&error),
            Err(_) => Err(Trouble::Silent),
        };
        (found, ring::now().since(begun))
    }
}

/// Addresses of an answer, and how long they hold.
fn addrs_of(records: &[hickory_resolver::proto::rr::Record]) -> Found {
    let mut addrs = Vec::new();
    let mut ttl_seconds = u32::MAX;
    for record in records {
        match &record.data {
            RData::A(a) => addrs.push(IpAddr::V4(a.0)),
            RData::AAAA(aaaa) => addrs.push(IpAddr::V6(aaaa.0)),
            _ => {}
        }
        // An alias on the way may expire before the address at its end.
        ttl_seconds = ttl_seconds.min(record.ttl);
    }
    addrs.truncate(ADDRS_MAX);
    if addrs.is_empty() { Found::None(None) } else { Found::Addrs(addrs, seconds(ttl_seconds)) }
}

fn meaning(error: &NetError) -> Result<Found, Trouble> {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(NoRecords { response_code, negative_ttl, .. })) => match response_code {
            ResponseCode::NoError => Ok(Found::None(negative_ttl.map(seconds))),
            ResponseCode::NXDomain => Ok(Found::NoName(negative_ttl.map(seconds))),
            _ => Err(Trouble::Error),
        },
        NetError::Dns(DnsError::ResponseCode(ResponseCode::Refused)) => Err(Trouble::Refused),
        NetError::Timeout => Err(Trouble::Silent),
        // No socket, no way to it, or it closed the connection.
        NetError::Io(_) | NetError::NoConnections | NetError::Busy => Err(Trouble::Refused),
        _ => Err(Trouble::Error),
    }
}

/// A time to live; one with the highest bit set is none (RFC 2181 section 8).
fn seconds(ttl: u32) -> Duration {
    Duration::from_secs(if ttl > i32::MAX as u32 { 0 } else { u64::from(ttl) })
}

/// How often a question is asked of servers that are silent: they are waited for an eighth, a quarter and a half of
/// `dns.timeout`.
const TRIES: u32 = 3;
/// Addresses taken of one answer; more serve nobody.
const ADDRS_MAX: usize = 16;

/// Lower case, without the dot at the end.
fn canonical(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Whether `host` may be asked for: labels of 1 to 63 bytes, 253 in all (RFC 1035 section 2.3.4). What a URL
/// takes for a host need not be one.
fn is_name(host: &str) -> bool {
    (1..=253).contains(&host.len()) && host.split('.').all(|label| (1..=63).contains(&label.len()))
}

/// A client for each server: which of them is asked is decided here.
fn clients(dns: &Dns) -> Result<Vec<Client>, HandsError> {
    let servers: Vec<NameServerConfig> = if dns.servers.is_empty() {
        match system_conf::read_system_conf() {
            Ok((config, _)) => config.name_servers().to_vec(),
            // A crawl of literal addresses and `dns.hosts` alone needs no server.
            Err(_) => Vec::new(),
        }
    } else {
        dns.servers.iter().map(|server| name_server(*server)).collect()
    };
    let client = |server| {
        let config = ResolverConfig::from_name_servers(vec![server]);
        let mut builder = Client::builder_with_config(config, Wire::default());
        options(builder.options_mut(), dns);
        builder.build().map_err(|error| HandsError::Dns(error.to_string()))
    };
    servers.into_iter().map(client).collect()
}

fn name_server(server: std::net::SocketAddr) -> NameServerConfig {
    let on_port = |mut connection: ConnectionConfig| {
        connection.port = server.port();
        connection
    };
    // Another transport for answers that do not fit (RFC 7766); the port is the same.
    NameServerConfig::new(server.ip(), true, vec![on_port(ConnectionConfig::udp()), on_port(ConnectionConfig::tcp())])
}

fn options(options: &mut ResolverOpts, dns: &Dns) {
    options.ndots = 0;
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    // Who is asked again, and when, is decided here.
    options.attempts = 0;
    options.num_concurrent_reqs = 1;
    options.timeout = dns.timeout;
    // The bound is ours; hickory's own must not be met first.
    options.max_active_requests = dns.in_flight_max.saturating_mul(4).max(256);
}
