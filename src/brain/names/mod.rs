//! Host names to addresses: which name server is asked for what, when, and what the answers come to.
//!
//! Decides: literal addresses, the names in `dns.hosts` and, under `proxy.names = "proxy"`, every name are answered
//! without a query. Everything else is looked up as a complete name (no search list), in the first family of
//! `dns.families`, and in the second where the first has no address, no server can tell of it, or the job wants both: half the
//! queries, and IPv4 is what nearly every host has. A question has [`TRIES`] tries, each of which waits twice as long as the one before; an
//! error is no try: then another server is asked at once, each once ([`Servers`]). Queries keep to `dns.rate_max`
//! ([`QueryRate`]).
//! Why here: failover and rests are decisions, so the simulator must see them. The hands send one query to one server.
//! Nothing is cached: the frontier keeps answers by their TTL, negative ones by that of their SOA record (RFC 2308
//! section 5).
//! A probe asks every server for the root, whose name every resolver should know, and for a name that was answered before,
//! as some resolvers refuse the root. SERVFAIL and REFUSED are what a resolver says that has nobody to ask: a server is
//! heard when it says where a name is, or that it is nowhere.
//!
//! Invariants: every lookup that was started ends exactly once; servers are waited for no longer than `dns.timeout` a
//! name, the wait for the rate not counted; a TTL lies within `ttl_min` and `ttl_max`, or `negative_ttl_min` and
//! `negative_ttl_max`.
//! Limits: the caller bounds the lookups in flight (`dns.in_flight_max`). /etc/hosts is not read: what the crawl does must
//! stand in its configuration. No DNSSEC.

mod lookup;
mod rate;
mod servers;

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

pub use lookup::{ADDRS_MAX, DnsAnswer, DnsQuery, Family};
pub use servers::Servers;

use crate::outcome::Outcome;
use lookup::{Addresses, Lookup, NextStep};
use rate::QueryRate;
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_config::{Config, Dns, Families, ProxyNames};

/// The lookups of one shard.
#[derive(Debug)]
pub struct Lookups {
    settings: Dns,
    /// Names of `dns.hosts`, canonical.
    fixed: HashMap<String, Vec<IpAddr>>,
    names_at_proxy: bool,
    servers: Servers,
    rate: QueryRate,
    lookups: HashMap<u64, Lookup>,
    /// Lookups that may send their next query from that instant on, in this order.
    turns: VecDeque<(Instant, u64)>,
    queries: u64,
    /// Answers that tell of a name, and queries of lookups that none came to.
    heard: u64,
    failed: u64,
    /// Answers that tell of none.
    errors: u64,
    /// Queries that a probe has still to send.
    to_probe: VecDeque<DnsQuery>,
    /// The last name that addresses were found of.
    found: Option<String>,
}

impl Lookups {
    /// No lookups yet; one of `shards` that share `dns.rate_max`, with so many name servers.
    pub fn new(config: &Config, shards: u16, servers: usize) -> Lookups {
        let dns = &config.dns;
        Lookups {
            fixed: dns.hosts.iter().map(|(name, addrs)| (canonical(name), addrs.clone())).collect(),
            names_at_proxy: config.proxy.address().is_some() && config.proxy.names == ProxyNames::Proxy,
            servers: Servers::new(servers),
            rate: QueryRate::new(dns.rate_max, shards),
            lookups: HashMap::new(),
            turns: VecDeque::new(),
            queries: 0,
            heard: 0,
            failed: 0,
            errors: 0,
            to_probe: VecDeque::new(),
            found: None,
            settings: dns.clone(),
        }
    }

    /// Starts the lookup `id` of `host`, of both families or of the first that has an address. The outcome when it is
    /// known at once, else it comes with an answer: [`Outcome::Resolved`], [`Outcome::NoAddress`] or a DNS failure.
    pub fn start(&mut self, now: Instant, id: u64, host: &str, both_families: bool) -> Option<Outcome> {
        if let Some(addr) = literal(host) {
            return Some(self.known(vec![addr]));
        }
        if self.names_at_proxy {
            return Some(Outcome::Resolved {
                addrs: vec![stand_in(host)],
                ttl: self.settings.ttl_max,
                is_half: false,
                alias: None,
            });
        }
        let name = canonical(host);
        if let Some(addrs) = self.fixed.get(&name) {
            let wanted = |addr: &IpAddr| match self.settings.families {
                Families::Ipv4First | Families::Ipv6First => true,
                Families::Ipv4Only => addr.is_ipv4(),
                Families::Ipv6Only => addr.is_ipv6(),
            };
            return Some(self.known(addrs.iter().copied().filter(wanted).collect()));
        }
        if !is_name(&name) {
            return Some(self.known(Vec::new()));
        }
        if self.servers.is_empty() {
            self.failed += 1;
            return Some(Outcome::Failed(Failure::DnsFailed));
        }
        let lookup = Lookup::new(name, both_families, &self.settings, self.servers.len());
        assert!(self.lookups.insert(id, lookup).is_none(), "lookup {id} was started twice");
        self.turns.push_back((self.rate.turn(now), id));
        None
    }

    /// The next query that may be sent at `now`.
    pub fn next_query(&mut self, now: Instant) -> Option<DnsQuery> {
        if let Some(query) = self.to_probe.pop_front() {
            self.queries += 1;
            return Some(query);
        }
        let (_, id) = self.turns.front().copied().filter(|(at, _)| *at <= now)?;
        self.turns.pop_front();
        // One that has nobody to ask is over.
        let query = self.lookups.get_mut(&id).and_then(|lookup| lookup.query(now, id, &mut self.servers));
        assert!(query.is_some(), "lookup {id} has its turn and asks nobody");
        self.queries += 1;
        query
    }

    /// A query came back. The outcome when the lookup is over.
    pub fn answered(&mut self, now: Instant, id: u64, answer: DnsAnswer) -> Option<Outcome> {
        let is_heard = answer.tells_of_name();
        self.heard += u64::from(is_heard);
        let is_error = matches!(answer, DnsAnswer::Error | DnsAnswer::NotUnderstood | DnsAnswer::Refused);
        self.errors += u64::from(is_error);
        if id == PROBE {
            return None;
        }
        self.failed += u64::from(!is_heard);
        let Some(lookup) = self.lookups.get_mut(&id) else {
            panic!("an answer to lookup {id}, which is not in flight")
        };
        if let DnsAnswer::Addrs(..) = answer {
            self.found.get_or_insert_default().clone_from(lookup.name());
        }
        match lookup.answered(now, answer, &mut self.servers) {
            NextStep::Query => {
                self.turns.push_back((self.rate.turn(now), id));
                None
            }
            NextStep::Over(result) => {
                self.lookups.remove(&id);
                Some(match result {
                    Ok(found) => self.resolved(found),
                    Err(failure) => Outcome::Failed(failure),
                })
            }
        }
    }

    /// Asks every server, ahead of all lookups, whether it answers.
    pub fn probe(&mut self) {
        let family = match self.settings.families {
            Families::Ipv4First | Families::Ipv4Only => Family::V4,
            Families::Ipv6First | Families::Ipv6Only => Family::V6,
        };
        let names: Vec<String> = std::iter::once(String::new()).chain(self.found.clone()).collect();
        let wait = self.settings.timeout / 2;
        // Without EDNS, which some servers drop.
        let query = |name: &String, server| {
            let name = name.clone();
            DnsQuery { lookup: PROBE, server, name, family, with_edns: false, wait }
        };
        let servers = 0..self.servers.len();
        self.to_probe = names.iter().flat_map(|name| servers.clone().map(move |server| query(name, server))).collect();
    }

    /// Ends the lookups but `spared` that wait for their turn to ask, as [`Failure::Aborted`]; those with a query in
    /// flight go on.
    pub fn abort_waiting(&mut self, spared: &[u64]) -> Vec<u64> {
        let (kept, waiting): (VecDeque<_>, VecDeque<_>) = self.turns.drain(..).partition(|(_, id)| spared.contains(id));
        self.turns = kept;
        let waiting: Vec<u64> = waiting.into_iter().map(|(_, id)| id).collect();
        waiting.iter().for_each(|id| drop(self.lookups.remove(id)));
        waiting
    }

    /// When the next query may be sent.
    pub fn next_due(&self) -> Option<Instant> {
        if !self.to_probe.is_empty() {
            return Some(Instant::ZERO);
        }
        self.turns.front().map(|(at, _)| *at)
    }

    /// Answers so far that tell of a name.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    /// Queries of lookups, so far, that no such answer came to, and lookups that had nobody to ask.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Answers so far that are errors.
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// Lookups in flight, those included that wait for their turn to ask.
    pub fn in_flight(&self) -> usize {
        self.lookups.len()
    }

    /// Queries sent.
    pub fn queries(&self) -> u64 {
        self.queries
    }

    /// The outcome for addresses that nobody was asked for.
    fn known(&self, addrs: Vec<IpAddr>) -> Outcome {
        self.resolved(Addresses { addrs, ttl: Duration::MAX, is_half: false, alias: None })
    }

    /// The outcome for addresses, perhaps none.
    fn resolved(&self, Addresses { addrs, ttl, is_half, alias }: Addresses) -> Outcome {
        let Dns { ttl_min, ttl_max, negative_ttl_min, negative_ttl_max, .. } = self.settings;
        if addrs.is_empty() {
            return Outcome::NoAddress { ttl: ttl.min(negative_ttl_max).max(negative_ttl_min) };
        }
        Outcome::Resolved { addrs, ttl: ttl.min(ttl_max).max(ttl_min), is_half, alias }
    }
}

/// What stands for the address of a host that the proxy looks up: one of its own, of the range that nobody has (RFC
/// 6666), so that hosts do not share an address and wait for each other.
pub fn stand_in(host: &str) -> IpAddr {
    let hash = xxhash_rust::xxh3::xxh3_64(host.as_bytes());
    IpAddr::V6(Ipv6Addr::from_bits(0x0100 << 112 | u128::from(hash)))
}

/// The address that a URL's host is, when it is one.
pub fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

/// Lower case, without the dot at the end.
fn canonical(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Whether `host` can be looked up: labels of 1 to 63 bytes, 253 in all (RFC 1035 section 2.3.4). What a URL takes for a
/// host need not be one.
fn is_name(host: &str) -> bool {
    host.is_ascii() && (1..=253).contains(&host.len()) && host.split('.').all(|label| (1..=63).contains(&label.len()))
}

/// The lookup of a probe's queries, which is none: the jobs of a shard are numbered from 1.
const PROBE: u64 = 0;
/// How often a question is asked of servers that are silent: they are waited for an eighth, a quarter and a half of
/// `dns.timeout`.
const TRIES: u32 = 3;
