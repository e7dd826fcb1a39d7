//! Every limit of the crawler, with unit, default and range.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::time::Duration;

/// The whole configuration: one TOML file, one table per part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Who crawls.
    pub agent: Agent,
    /// Which CPUs, how much in all.
    pub crawl: Crawl,
    /// What may be followed.
    pub scope: Scope,
    /// How sites are given to shards.
    pub partition: Partition,
    /// Delays and retries.
    pub politeness: Politeness,
    /// robots.txt.
    pub robots: Robots,
    /// Name resolution.
    pub dns: Dns,
    /// One fetch.
    pub fetch: Fetch,
    /// Certificates.
    pub tls: Tls,
    /// Link extraction.
    pub links: Links,
    /// URLs between shards.
    pub exchange: Exchange,
    /// URLs seen.
    pub visited: Visited,
    /// URLs waiting.
    pub frontier: Frontier,
    /// Segments.
    pub store: Store,
}

/// `[agent]`: who crawls; all of name, url and email are needed to leave loopback.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agent {
    /// Product token in User-Agent and robots.txt: letters, `_` and `-` (RFC 9309 section 2.2.1).
    pub name: String,
    /// A page that says what the crawl is for.
    pub url: String,
    /// Where site owners write to.
    pub email: String,
}

/// `[crawl]`: machine and budget.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crawl {
    /// CPUs of the shards, such as `"1-7,9"`; empty: all CPUs given to the process.
    pub cpus: String,
    /// Number of shards; 0: one per CPU.
    pub shards: u32,
    /// Seed of every random choice; 0: drawn at the start of a new crawl and kept in its directory.
    pub rng_seed: u64,
    /// Stop after this many stored pages; 0: no limit.
    pub pages_max: u64,
    /// Stop after this time; zero: no limit.
    pub time_max: Duration,
}

/// `[scope]`: which links are followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// Everything, the seeds' sites, or the seeds' hosts.
    pub follow: Follow,
    /// Links followed from a seed at most.
    pub depth_max: u16,
    /// Longest URL followed, in bytes.
    pub url_bytes_max: usize,
}

/// `scope.follow`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// Every link.
    #[default]
    All,
    /// Links to sites of the seeds.
    SeedSites,
    /// Links to hosts of the seeds.
    SeedHosts,
}

/// `[partition]`: how sites are given to shards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partition {
    /// What stays together.
    pub key: PartitionKey,
}

/// `partition.key`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartitionKey {
    /// The registrable domain.
    #[default]
    Site,
    /// The host name.
    Host,
}

/// `[politeness]`: delays and retries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Politeness {
    /// From the end of one request to a host to the start of the next. Default 1 s.
    pub host_delay: Duration,
    /// The same for an IP address, across hosts and shards. Default 100 ms.
    pub ip_delay: Duration,
    /// Crawl-delay of robots.txt is obeyed up to this. Default 60 s.
    pub crawl_delay_max: Duration,
    /// Tries of one URL after the first, for transient failures. Default 4.
    pub retries_max: u8,
    /// Wait before the first retry; doubles each time. Default 10 s.
    pub retry_delay: Duration,
    /// Failures in a row after which a host's queue is given up. Default 20.
    pub host_failures_max: u32,
    /// Retry-After is obeyed up to this. Default 24 h.
    pub retry_after_max: Duration,
}

/// `[robots]`: robots.txt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Robots {
    /// Bytes that are parsed; the rest is ignored (RFC 9309 section 2.5 asks for ≥ 500 KiB). Default 512 KiB.
    pub body_bytes_max: usize,
    /// How long rules are used. Default 24 h.
    pub ttl: Duration,
    /// How long "unreachable" holds before it is asked again. Default 10 m.
    pub retry_delay: Duration,
    /// Tries before an unreachable robots.txt's queue is given up. Default 4.
    pub retries_max: u8,
    /// Redirects followed (RFC 9309 section 2.3.1.2). Default 5.
    pub redirects_max: u8,
}

/// `[dns]`: name resolution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dns {
    /// Recursive servers; empty: those of /etc/resolv.conf. "127.0.0.1" or "127.0.0.1:5353".
    pub servers: Vec<SocketAddr>,
    /// Names answered without asking: `"www.example.test" = "127.0.0.1"` or a list.
    pub hosts: BTreeMap<String, Vec<IpAddr>>,
    /// One query, all retries included. Default 5 s.
    pub timeout: Duration,
    /// Queries under way per shard. Default 256.
    pub in_flight_max: usize,
    /// Answers are used at least this long. Default 60 s.
    pub ttl_min: Duration,
    /// Answers are used at most this long. Default 24 h.
    pub ttl_max: Duration,
}

/// `[fetch]`: limits on one exchange.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fetch {
    /// Default 10 s.
    pub connect_timeout: Duration,
    /// Default 10 s.
    pub tls_timeout: Duration,
    /// From the last request byte to the first response byte. Default 20 s.
    pub first_byte_timeout: Duration,
    /// The whole exchange from connect to the last body byte. Default 60 s.
    pub deadline: Duration,
    /// Status line and fields together. Default 64 KiB.
    pub header_bytes_max: usize,
    /// Default 256.
    pub header_count_max: usize,
    /// Body before content decoding; the rest is cut and marked. Default 8 MiB.
    pub body_wire_bytes_max: usize,
    /// Body after content decoding; the rest is cut and marked. Default 16 MiB.
    pub body_bytes_max: usize,
    /// Fetches under way per shard. Default 1024.
    pub in_flight_max: usize,
    /// Idle keep-alive connections per shard. Default 1024.
    pub idle_connections_max: usize,
    /// An idle connection is closed after this. Default 15 s.
    pub idle_timeout: Duration,
    /// Whether private, link-local, loopback and other special addresses may be fetched. Default deny.
    pub private_addresses: PrivateAddresses,
}

/// `fetch.private_addresses`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrivateAddresses {
    /// Only globally reachable addresses.
    #[default]
    Deny,
    /// Loopback besides, and nothing else that is special.
    Loopback,
    /// Every address.
    Allow,
}

/// `[tls]`: certificates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tls {
    /// What a certificate error means.
    pub certificates: Certificates,
    /// PEM files with more roots.
    pub ca_files: Vec<PathBuf>,
}

/// `tls.certificates`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Certificates {
    /// The fetch fails.
    #[default]
    Verify,
    /// The fetch goes on and the error is stored in the page's metadata record.
    Record,
}

/// `[links]`: link extraction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    /// Links taken from one page; more are counted and dropped. Default 10,000.
    pub page_links_max: usize,
}

/// `[exchange]`: URLs between shards.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exchange {
    /// Size of the ring from one shard to another. Default 1 MiB.
    pub ring_bytes: usize,
    /// A batch is sent when it holds this many URLs. Default 512.
    pub batch_urls_max: usize,
    /// A batch is sent when its oldest URL is this old. Default 100 ms.
    pub batch_age_max: Duration,
    /// Batches waiting for a full ring are held in memory up to this per shard, then on disk. Default 16 MiB.
    pub waiting_bytes_max: usize,
}

/// `[visited]`: URLs seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Visited {
    /// URLs remembered in all shards together; further ones are set aside on disk. Default 100 M.
    pub urls_max: u64,
}

/// `[frontier]`: URLs waiting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frontier {
    /// Bytes of queued URLs held in memory, all shards together; the rest is on disk. Default 1 GiB.
    pub ram_bytes_max: u64,
    /// URLs of one host that stay in memory when its queue spills. Default 64.
    pub host_head_urls: usize,
}

/// `[store]`: segments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Store {
    /// A segment is closed when it is this long. Default 1 GiB.
    pub segment_bytes_max: u64,
    /// zstd level of the records, -7 to 19. Default 1.
    pub zstd_level: i32,
}
