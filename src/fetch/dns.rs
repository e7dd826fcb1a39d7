//! Names to addresses, on the shard's own thread.
//!
//! Decides: literal addresses and the names in `dns.hosts` are answered without asking; all else is asked
//! for as a complete name (no search list), A first and AAAA only where there is no A: half the queries,
//! and IPv4 is what nearly every host has. Nothing is kept here: the frontier keeps answers by their TTL.
//! Invariants: at most `in_flight_max` names are asked for at once, the others wait their turn; a name
//! whose turn has come is answered within `dns.timeout`; a TTL lies within `ttl_min` and `ttl_max`.
//! Limits: /etc/hosts is not read: what the crawl does must stand in its configuration; no DNSSEC.

use std::collections::HashMap;
use std::net::IpAddr;

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::system_conf;

use super::HandsError;
use super::dns_tasks::MarkedTokio;
use crate::config::Dns;
use crate::outcome::Failure;
use crate::time::Duration;

type Client = hickory_resolver::Resolver<MarkedTokio>;

/// One shard's resolver.
pub(super) struct Resolver {
    hosts: HashMap<String, Vec<IpAddr>>,
    /// `None` when neither the configuration nor the system names a server.
    client: Option<Client>,
    turns: tokio::sync::Semaphore,
    timeout: Duration,
    ttl_min: Duration,
    ttl_max: Duration,
}

impl Resolver {
    pub(super) fn new(dns: &Dns) -> Result<Resolver, HandsError> {
        let hosts = dns.hosts.iter().map(|(name, addrs)| (canonical(name), addrs.clone())).collect();
        Ok(Resolver {
            hosts,
            client: client(dns)?,
            turns: tokio::sync::Semaphore::new(dns.in_flight_max.clamp(1, 65_536)),
            timeout: dns.timeout,
            ttl_min: dns.ttl_min,
            ttl_max: dns.ttl_max.max(dns.ttl_min),
        })
    }

    /// Addresses of `host`, at least one, and how long they may be used.
    pub(super) async fn resolve(&self, host: &str) -> Result<(Vec<IpAddr>, Duration), Failure> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(addr) = bare.parse::<IpAddr>() {
            return Ok((vec![addr], self.ttl_max));
        }
        let host = canonical(host);
        if let Some(addrs) = self.hosts.get(&host) {
            let known = (addrs.clone(), self.ttl_max);
            return if addrs.is_empty() { Err(Failure::DnsNotFound) } else { Ok(known) };
        }
        let client = self.client.as_ref().ok_or(Failure::DnsFailed)?;
        let mut name = if is_name(&host) { Name::from_ascii(&host).ok() } else { None }.ok_or(Failure::DnsNotFound)?;
        name.set_fqdn(true);
        let _turn = self.turns.acquire().await.map_err(|_| Failure::DnsFailed)?;
        let asked = tokio::time::timeout(self.timeout, ask(client, name)).await;
        let (addrs, ttl) = asked.map_err(|_| Failure::DnsTimeout)??;
        Ok((addrs, ttl.clamp(self.ttl_min, self.ttl_max)))
    }
}

/// A, then AAAA where the name has none.
async fn ask(client: &Client, name: Name) -> Result<(Vec<IpAddr>, Duration), Failure> {
    match ask_for(client, name.clone(), RecordType::A).await {
        Ok(None) => ask_for(client, name, RecordType::AAAA).await?.ok_or(Failure::DnsNotFound),
        Ok(Some(answer)) => Ok(answer),
        Err(failure) => Err(failure),
    }
}

/// `None` when the name has no record of this type.
async fn ask_for(
    client: &Client,
    name: Name,
    record_type: RecordType,
) -> Result<Option<(Vec<IpAddr>, Duration)>, Failure> {
    let lookup = match client.lookup(name, record_type).await {
        Ok(lookup) => lookup,
        Err(NetError::Dns(DnsError::NoRecordsFound(none))) if none.response_code == ResponseCode::NoError => {
            return Ok(None);
        }
        Err(error) => return Err(failure_of(&error)),
    };
    let mut addrs = Vec::new();
    let mut ttl_seconds = u32::MAX;
    for record in lookup.answers() {
        match &record.data {
            RData::A(a) => addrs.push(IpAddr::V4(a.0)),
            RData::AAAA(aaaa) => addrs.push(IpAddr::V6(aaaa.0)),
            _ => {}
        }
        // An alias on the way may expire before the address at its end.
        ttl_seconds = ttl_seconds.min(record.ttl);
    }
    addrs.truncate(ADDRS_MAX);
    Ok(if addrs.is_empty() { None } else { Some((addrs, Duration::from_secs(u64::from(ttl_seconds)))) })
}

/// Addresses taken of one answer; more serve nobody.
const ADDRS_MAX: usize = 16;

fn failure_of(error: &NetError) -> Failure {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => failure_of_code(none.response_code),
        NetError::Dns(DnsError::ResponseCode(code)) => failure_of_code(*code),
        NetError::Timeout => Failure::DnsTimeout,
        _ => Failure::DnsFailed,
    }
}

fn failure_of_code(code: ResponseCode) -> Failure {
    match code {
        ResponseCode::NXDomain | ResponseCode::NoError => Failure::DnsNotFound,
        _ => Failure::DnsFailed,
    }
}

/// Lower case, without the dot at the end.
fn canonical(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Whether `host` may be asked for: labels of 1 to 63 bytes, 253 in all (RFC 1035 section 2.3.4). What a URL
/// takes for a host need not be one.
fn is_name(host: &str) -> bool {
    (1..=253).contains(&host.len()) && host.split('.').all(|label| (1..=63).contains(&label.len()))
}

fn client(dns: &Dns) -> Result<Option<Client>, HandsError> {
    let servers: Vec<NameServerConfig> = if dns.servers.is_empty() {
        match system_conf::read_system_conf() {
            Ok((config, _)) => config.name_servers().to_vec(),
            // A crawl of literal addresses and `dns.hosts` alone needs no server.
            Err(_) => Vec::new(),
        }
    } else {
        dns.servers.iter().map(|server| name_server(*server)).collect()
    };
    if servers.is_empty() {
        return Ok(None);
    }
    let config = ResolverConfig::from_name_servers(servers);
    let mut builder = Client::builder_with_config(config, MarkedTokio::default());
    options(builder.options_mut(), dns);
    builder.build().map(Some).map_err(|error| HandsError::Dns(error.to_string()))
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
    // Two tries and a little room within the whole timeout.
    options.attempts = 1;
    options.timeout = (dns.timeout * 2 / 5).max(Duration::from_millis(50));
    // The bound is ours; hickory's own must not be met first.
    options.max_active_requests = dns.in_flight_max.saturating_mul(4).max(256);
}
