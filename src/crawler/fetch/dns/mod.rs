//! Queries to name servers, on the shard's own thread: one question to one server, by hickory-resolver.
//!
//! Decides: only how a query is sent: one UDP packet, and TCP for an answer that does not fit (RFC 7766). Which
//! server is queried, when, and what an answer means for a name is decided in [`ringcrawl_brain::names`]. If
//! `dns.servers` names none, they are those of /etc/resolv.conf. That file is read again while it names no server or
//! one does not answer: a machine gets its servers only when its network is up, and others where it is moved to.
//! Invariants: a query ends within its `wait`.
//! Limits: if the server does not give the end of an alias, hickory follows it a few steps, and it fetches a long
//! answer over TCP. Neither counts as a query of its own. The number of servers is that of the start, at least one: of
//! a longer list the first ones are queried, of a shorter one some twice.

mod resolver;
#[cfg(test)]
mod tests;
mod wire;

pub use resolver::Resolver;

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::{DnsError, NetError, NoRecords};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::system_conf;

use super::HandsError;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::names::{ADDRS_MAX, DnsAnswer, DnsQuery, Family};
use ringcrawl_config::Dns;
use ringcrawl_ring as ring;
use wire::Wire;

type Client = hickory_resolver::Resolver<Wire>;

/// The name servers of one shard.
pub(super) struct NameServers {
    dns: Dns,
    known: RefCell<Rc<Known>>,
    /// Their number at the start, at least one: the brain's places.
    places: usize,
    /// The file that names them, if the configuration does not.
    file: Option<PathBuf>,
    /// When that may be read again.
    next_look: Cell<Instant>,
}

/// The servers that are known now.
#[derive(Default)]
struct Known {
    /// Two clients for each, without EDNS and with it.
    clients: Vec<[Client; 2]>,
    /// Their addresses, in words.
    names: Vec<String>,
    /// Why there are none, if so.
    why_none: String,
}

impl NameServers {
    pub(super) fn new(dns: &Dns) -> Result<NameServers, HandsError> {
        NameServers::of(dns, Path::new(RESOLV_CONF))
    }

    /// Those of `dns`, or those that `file` names.
    fn of(dns: &Dns, file: &Path) -> Result<NameServers, HandsError> {
        let file = dns.servers.is_empty().then(|| file.to_owned());
        let servers = match &file {
            None => Ok(dns.servers.iter().map(|server| name_server(*server)).collect()),
            Some(file) => servers_of(file),
        };
        let known = match servers {
            Ok(servers) => Known::new(dns, &servers)?,
            // A crawl of only literal addresses and `dns.hosts` needs no server.
            Err(why_none) => Known { why_none, ..Known::default() },
        };
        Ok(NameServers {
            dns: dns.clone(),
            places: known.clients.len().max(1),
            known: RefCell::new(Rc::new(known)),
            file,
            next_look: Cell::new(Instant::ZERO),
        })
    }

    /// The number of servers that may be queried.
    pub(super) fn len(&self) -> usize {
        self.places
    }

    /// Reads the servers again if they come from a file, at most once every [`LOOK_EVERY`]. Known ones stay while it
    /// names none: it may be half written.
    fn look_again(&self, now: Instant) {
        let Some(file) = self.file.as_ref().filter(|_| self.next_look.get() <= now) else { return };
        self.next_look.set(now + LOOK_EVERY);
        let known = Rc::clone(&self.known.borrow());
        let found = match servers_of(file) {
            Ok(servers) if servers.iter().map(name_of).ne(known.names.iter().cloned()) => {
                Known::new(&self.dns, &servers).ok()
            }
            Err(why_none) if known.names.is_empty() => Some(Known { why_none, ..Known::default() }),
            _ => None,
        };
        if let Some(found) = found {
            self.known.replace(Rc::new(found));
        }
    }

    /// Queries the server that `query` names. The text says what arrived instead of an answer, and from where.
    pub(super) async fn ask(&self, query: &DnsQuery) -> (DnsAnswer, Option<String>) {
        if self.known.borrow().clients.is_empty() {
            self.look_again(ring::now());
        }
        let known = Rc::clone(&self.known.borrow());
        let (answer, words) = known.ask(query).await;
        if !answer.is_answer() {
            // The next query goes to the servers that the file names by now.
            self.look_again(ring::now());
        }
        (answer, words)
    }
}

impl Known {
    fn new(dns: &Dns, servers: &[NameServerConfig]) -> Result<Known, HandsError> {
        let names = servers.iter().map(name_of).collect();
        Ok(Known { clients: clients(dns, servers)?, names, why_none: String::new() })
    }

    async fn ask(&self, query: &DnsQuery) -> (DnsAnswer, Option<String>) {
        let record_type = match query.family {
            Family::V4 => RecordType::A,
            Family::V6 => RecordType::AAAA,
        };
        let Some(place) = query.server.checked_rem(self.clients.len()) else {
            return (DnsAnswer::Unreachable, Some(self.why_none.clone()));
        };
        let (Some([plain, edns]), Ok(mut name)) = (self.clients.get(place), Name::from_ascii(&query.name)) else {
            return (DnsAnswer::None(None), None);
        };
        let client = if query.with_edns { edns } else { plain };
        name.set_fqdn(true);
        // The resolver's sockets belong to the runtime, not to the ring.
        let _outside = ring::Outside::new();
        match tokio::time::timeout(query.wait, client.lookup(name, record_type)).await {
            Ok(Ok(lookup)) => (addrs_of(lookup.answers()), None),
            Ok(Err(error)) => {
                let answer = meaning(&error);
                let words = (!answer.tells_of_name()).then(|| self.words(place, &error));
                (answer, words)
            }
            Err(_) => (DnsAnswer::Silent, Some(self.words(place, &NetError::Timeout))),
        }
    }

    fn words(&self, server: usize, error: &NetError) -> String {
        let server = self.names.get(server).map(String::as_str).unwrap_or_default();
        match error {
            NetError::Dns(DnsError::ResponseCode(code)) => format!("{} of {server}", mnemonic(*code)),
            NetError::Dns(DnsError::NoRecordsFound(none)) if none.response_code == ResponseCode::NoError => {
                format!("a referral of {server}")
            }
            NetError::Dns(DnsError::NoRecordsFound(none)) => format!("{} of {server}", mnemonic(none.response_code)),
            NetError::Timeout => format!("{server} does not answer"),
            NetError::Io(_) | NetError::NoConnections | NetError::Busy => {
                format!("{server} is unreachable")
            }
            _ => format!("{server} returned an unreadable answer"),
        }
    }
}

/// The name of a code in RFC 1035 section 4.1.1 and its successors, in the usual form: SERVFAIL.
fn mnemonic(code: ResponseCode) -> String {
    format!("{code:?}").to_uppercase()
}

/// The address of a server.
fn name_of(server: &NameServerConfig) -> String {
    let port = server.connections.first().map_or(53, |connection| connection.port);
    std::net::SocketAddr::new(server.ip, port).to_string()
}

/// Addresses of an answer, and how long they are valid.
fn addrs_of(records: &[hickory_resolver::proto::rr::Record]) -> DnsAnswer {
    let mut addrs = Vec::new();
    let (mut ttl_seconds, mut aliases) = (u32::MAX, String::new());
    for record in records {
        match &record.data {
            RData::A(a) => addrs.push(IpAddr::V4(a.0)),
            RData::AAAA(aaaa) => addrs.push(IpAddr::V6(aaaa.0)),
            RData::CNAME(target) if aliases.len() < ALIASES_BYTES_MAX => {
                aliases.push_str(if aliases.is_empty() { "" } else { " " });
                aliases.push_str(&target.0.to_ascii().to_ascii_lowercase());
            }
            _ => {}
        }
        // An alias along the way may expire before the address at its end.
        ttl_seconds = ttl_seconds.min(record.ttl);
    }
    addrs.truncate(ADDRS_MAX);
    let aliases = (!aliases.is_empty()).then(|| aliases.into_boxed_str());
    if addrs.is_empty() { DnsAnswer::None(None) } else { DnsAnswer::Addrs(addrs, seconds(ttl_seconds), aliases) }
}

/// Limit on the aliases of a name that are reported, in bytes.
const ALIASES_BYTES_MAX: usize = 1_024;

fn meaning(error: &NetError) -> DnsAnswer {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(NoRecords { response_code, negative_ttl, soa, ns, .. })) => {
            match response_code {
                // It names other servers, as a server that does not know the name does (RFC 2308 section 2.2,
                // "referral"; RFC 4074 section 4.5).
                ResponseCode::NoError if ns.is_some() && soa.is_none() => DnsAnswer::Error,
                ResponseCode::NoError => DnsAnswer::None(negative_ttl.map(seconds)),
                ResponseCode::NXDomain => DnsAnswer::NoName(negative_ttl.map(seconds)),
                _ => DnsAnswer::Error,
            }
        }
        NetError::Dns(DnsError::ResponseCode(code)) => match code {
            ResponseCode::Refused => DnsAnswer::Refused,
            ResponseCode::FormErr | ResponseCode::NotImp | ResponseCode::BADVERS => DnsAnswer::NotUnderstood,
            _ => DnsAnswer::Error,
        },
        NetError::Timeout => DnsAnswer::Silent,
        // No socket, no route to it, or it closed the connection.
        NetError::Io(_) | NetError::NoConnections | NetError::Busy => DnsAnswer::Unreachable,
        _ => DnsAnswer::Error,
    }
}

/// A time to live; one with the highest bit set counts as zero (RFC 2181 section 8).
fn seconds(ttl: u32) -> Duration {
    Duration::from_secs(if ttl > i32::MAX as u32 { 0 } else { u64::from(ttl) })
}

/// Why there is no name server to query, if neither `dns` nor the system names one now.
pub fn no_name_server(dns: &Dns) -> Option<String> {
    if dns.servers.is_empty() { servers_of(Path::new(RESOLV_CONF)).err() } else { None }
}

/// The servers that a file like resolv.conf(5) names, or why there are none.
fn servers_of(file: &Path) -> Result<Vec<NameServerConfig>, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let servers = system_conf::parse_resolv_conf(bytes).map(|(config, _)| config.name_servers().to_vec());
    servers.ok().filter(|servers| !servers.is_empty()).ok_or_else(|| format!("{} names no server", file.display()))
}

/// Names the system's servers.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// How often that is read at most, after the start.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Clients for each server: which of them is queried, and how, is decided in [`ringcrawl_brain::names`].
fn clients(dns: &Dns, servers: &[NameServerConfig]) -> Result<Vec<[Client; 2]>, HandsError> {
    let client = |server: &NameServerConfig, with_edns| {
        let config = ResolverConfig::from_name_servers(vec![server.clone()]);
        let mut builder = Client::builder_with_config(config, Wire::default());
        options(builder.options_mut(), dns);
        builder.options_mut().edns0 = with_edns;
        builder.build().map_err(|error| HandsError::Dns(error.to_string()))
    };
    servers.iter().map(|server| Ok([client(server, false)?, client(server, true)?])).collect()
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
    // Which server is queried again, and when, is decided in ringcrawl.
    options.attempts = 0;
    options.num_concurrent_reqs = 1;
    options.timeout = dns.timeout;
    // The limit is ours; hickory's own must not apply first.
    options.max_active_requests = dns.in_flight_max.saturating_mul(4).max(256);
}
