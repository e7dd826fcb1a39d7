//! What a shard tells the breaker (`control::Breaker`) about the network.

use std::net::IpAddr;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use ringcrawl_base::time::Instant;
use ringcrawl_url::{AddressClass, address_class, owner_of};

/// How a request ended, as evidence of whether the network works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SiteEnd {
    /// The witness.
    pub witness: Witness,
    /// When the request began.
    pub began: Instant,
    /// How it ended.
    pub reply: SiteReply,
}

/// A witness of whether the network works: everything that one party can create cheaply is one witness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Witness {
    /// A hash of the domain by the ICANN section of the Public Suffix List ([`owner_of`]): names below a private
    /// suffix are free.
    pub owner: u64,
    /// A hash of the address block, an IPv4 /24 or an IPv6 /48, of a global address; 0: unknown, or not global.
    pub block: u64,
}

impl Witness {
    /// The witness of a request to a host at an address.
    pub fn new(rng_seed: u64, host: &str, address: Option<IpAddr>) -> Witness {
        let is_global = |address: &IpAddr| address_class(*address) == AddressClass::Global;
        let block = address.filter(is_global).map_or(0, |address| match address {
            IpAddr::V4(v4) => xxh3_64_with_seed(&v4.octets()[..3], rng_seed),
            IpAddr::V6(v6) => xxh3_64_with_seed(&v6.octets()[..6], rng_seed),
        });
        Witness { owner: xxh3_64_with_seed(owner_of(host).as_bytes(), rng_seed), block }
    }

    /// Whether the two share an owner or an address block.
    pub fn is_one_with(self, other: Witness) -> bool {
        self.owner == other.owner || self.block != 0 && self.block == other.block
    }
}

/// Whether a site answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiteReply {
    /// It did, whatever the response.
    Answered,
    /// It did not, but its host had answered the last time, in this run or an earlier one.
    FellSilent,
    /// It did not, and its host is not known to have answered the last time.
    Silent,
}

/// What a shard counts about the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkReport {
    /// Answers of name servers that give an address, or say that there is none.
    pub dns_heard: u64,
    /// Queries of lookups that ended in silence, SERVFAIL or REFUSED. Those of probes are not counted.
    pub dns_failed: u64,
    /// SERVFAIL, REFUSED and the like.
    pub dns_errors: u64,
    /// Requests for which the proxy could not be reached.
    pub proxy_unreachable: u64,
    /// When the oldest held failure ended; `NEVER` if none is held.
    pub held_since: Instant,
    /// The same for names that no server answered.
    pub names_held_since: Instant,
    /// Whether a host has work, now or later.
    pub has_work: bool,
}
