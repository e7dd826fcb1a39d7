//! Host names to addresses: which name server gets which query, when, and how the answers combine.
//!
//! Decides: literal addresses, the names in `dns.hosts` and, under `proxy.names = "proxy"`, every name are answered
//! without a query. Everything else is looked up as a complete name (no search list), in the first family of
//! `dns.families`. The second family follows if the first has no address, no server answers for it, or the job wants
//! both: this halves the queries, and nearly every host has IPv4. A question has [`TRIES`] tries, each of which waits
//! twice as long as the one before. An error does not count as a try: another server is queried at once, each once
//! ([`Servers`]). Queries keep to `dns.rate_max` ([`QueryRate`]).
//! Why here: failover and rests are decisions, so the simulator must see them. The hands send one query to one
//! server.
//! Nothing is cached: the frontier keeps answers by their TTL, negative ones by that of their SOA record (RFC 2308
//! section 5).
//! A probe queries every server for the root, whose name every resolver should know, and for a name that was answered
//! before, as some resolvers refuse the root. A resolver without upstream servers answers SERVFAIL or REFUSED, so a
//! server counts as heard only if it says where a name is, or that it does not exist.
//!
//! Invariants: every lookup that was started ends exactly once; the wait for servers is at most `dns.timeout` a name,
//! not counting the wait for the rate; a TTL lies within `ttl_min` and `ttl_max`, or `negative_ttl_min` and
//! `negative_ttl_max`.
//! Limits: the caller bounds the lookups in flight (`dns.in_flight_max`). /etc/hosts is not read: the configuration
//! must determine what the crawl does. No DNSSEC.

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
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_config::{Config, Dns, Families, ProxyNames};

/// Memory of the lookups in flight.
pub fn memory_bytes(config: &Dns) -> u64 {
    config.in_flight_max as u64 * QUERY_BYTES
}

/// A lookup in flight, with an answer.
const QUERY_BYTES: u64 = 8 << 10;

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
    /// Answers about a name, and queries of lookups that got none.
    heard: u64,
    failed: u64,
    /// Answers that say nothing about a name.
    errors: u64,
    /// Queries that a probe still has to send.
    to_probe: VecDeque<DnsQuery>,
    /// The last name that had addresses.
    found: Option<String>,
}

impl Lookups {
    /// No lookups yet; one of `shards` that share `dns.rate_max`, with `servers` name servers, at least one.
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

    /// Starts the lookup `id` of `host`, of both families or of the first that has an address. Returns the outcome if
    /// it is known at once. Otherwise it comes with an answer: [`Outcome::Resolved`], [`Outcome::NoAddress`] or a DNS
    /// failure.
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
        let lookup = Lookup::new(name, both_families, &self.settings, self.servers.count());
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
        // A lookup without a server to query is done.
        let query = self.lookups.get_mut(&id).and_then(|lookup| lookup.query(now, id, &mut self.servers));
        assert!(query.is_some(), "lookup {id} has its turn and asks no server");
        self.queries += 1;
        query
    }

    /// A query came back. Returns the outcome if the lookup is done.
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

    /// Checks whether every server answers, ahead of all lookups.
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
        let servers = 0..self.servers.count();
        self.to_probe = names.iter().flat_map(|name| servers.clone().map(move |server| query(name, server))).collect();
    }

    /// Ends the lookups that wait for their turn, except `spared`, as [`Failure::Aborted`]; those with a query in
    /// flight continue.
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

    /// Answers about a name so far.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    /// Queries of lookups without such an answer so far, and lookups without a server to query.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Answers so far that are errors.
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// Lookups in flight, including those that wait for their turn.
    pub fn in_flight(&self) -> usize {
        self.lookups.len()
    }

    /// Queries sent.
    pub fn queries(&self) -> u64 {
        self.queries
    }

    /// The outcome for addresses that needed no query.
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

/// A stand-in for the address of a host that the proxy looks up: unique, from the discard-only range (RFC 6666), so
/// that hosts do not share an address and wait for each other.
pub fn stand_in(host: &str) -> IpAddr {
    let hash = xxhash_rust::xxh3::xxh3_64(host.as_bytes());
    IpAddr::V6(Ipv6Addr::from_bits(0x0100 << 112 | u128::from(hash)))
}

/// The address in a URL's host, if it is one.
pub fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

/// Lower case, without the dot at the end.
fn canonical(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Whether `host` can be looked up: labels of 1 to 63 bytes, 253 in all (RFC 1035 section 2.3.4). A URL's host need
/// not be such a name.
fn is_name(host: &str) -> bool {
    host.is_ascii() && (1..=253).contains(&host.len()) && host.split('.').all(|label| (1..=63).contains(&label.len()))
}

/// The lookup number of a probe's queries, which no lookup has: the jobs of a shard are numbered from 1.
const PROBE: u64 = 0;
/// How often a question is sent to silent servers: the waits are an eighth, a quarter and a half of `dns.timeout`.
const TRIES: u32 = 3;
