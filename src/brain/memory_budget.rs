//! What a shard may hold in memory, divided among all that grows: `crawl.ram_bytes_max`.
//!
//! Decides: each limit of the configuration has a worst-case price in bytes. The fixed needs of a shard come first,
//! then a reserve for the allocator. The rest is shared by weight among what grows with the crawl, and nothing gets
//! more than its own key asks for. So a key is an upper limit, and the budget may lower it: [`MemoryBudget::limit`].
//! Everything that outsiders can enlarge has its price here, so the sum always holds.
//! Invariants: the parts together never exceed a shard's bytes; a larger budget lowers no limit.
//! Limits: prices were measured or bounded elsewhere, and are named below; a part that costs more breaks the promise,
//! so attacks are run against it (`tests/hostile/`).

use std::fmt;

use crate::{exchange, names, page};
use ringcrawl_base::grouped;
use ringcrawl_config::{CompressUncoded, Config, Cookies, RepeatedBodies, UrlOrder};
use ringcrawl_warc::{self as warc, Training};

/// The division of one shard's memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryBudget {
    shards: u64,
    /// Bytes of a shard.
    shard_bytes: u64,
    limits: Limits,
}

/// What one shard may hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Limits {
    fetches: u64,
    idle_connections: u64,
    body_wire_bytes: u64,
    body_bytes: u64,
    bodies_bytes: u64,
    urls: u64,
    fingerprint_bits: u32,
    hosts: u64,
    waiting_bytes: u64,
    rules_bytes: u64,
    traps_bytes: u64,
    budgets_bytes: u64,
    order_bytes: u64,
    signatures_bytes: u64,
    sessions: u64,
    chains: u64,
    cookie_bytes: u64,
    originals_bytes: u64,
}

/// A budget too small for any crawl, in words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a shard needs {} of memory and has {}, as {} are for {shards}: raise crawl.ram_bytes_max, or lower crawl.shards, \
     exchange.waiting_bytes_max or exchange.rings_bytes_max",
    // Rounded up; otherwise it might equal what there is already.
    mebibytes((.needed / .shards).next_multiple_of(1 << 20)),
    mebibytes(.bytes / .shards),
    mebibytes(*.bytes)
)]
pub struct TooSmall {
    shards: u64,
    needed: u64,
    bytes: u64,
}

/// Something that grows with the crawl.
struct Part {
    /// Bytes that its key allows.
    wanted: u64,
    weight: u64,
    bytes: u64,
}

impl MemoryBudget {
    /// Divides `bytes`, the memory of a crawl of `config` on `shards` shards; `bounds_sites` says whether options of
    /// seeds bound the cost of sites.
    pub fn new(config: &Config, shards: u16, bytes: u64, bounds_sites: bool) -> Result<MemoryBudget, TooSmall> {
        let shards = u64::from(shards.max(1));
        let shard_bytes = bytes / shards;
        let (fetch, tls) = (&config.fetch, &config.tls);
        // A body is a small part of the budget, so that one cannot take all.
        let part = |bytes: usize| (bytes as u64).min(shard_bytes / BODY_PARTS);
        let [body_wire_bytes, body_bytes] = [fetch.body_wire_bytes_max, fetch.body_bytes_max].map(part);
        let fetches_min = FETCHES_MIN.min(fetch.in_flight_max as u64);
        let least = least_bytes(config, shards, shard_bytes);
        if shard_bytes < needed_bytes(least) {
            // A larger shard has larger bodies, and needs more for them.
            let mut needed = needed_bytes(least);
            while needed < needed_bytes(least_bytes(config, shards, needed)) {
                needed = needed_bytes(least_bytes(config, shards, needed));
            }
            return Err(TooSmall { shards, needed: needed * shards, bytes });
        }
        let elastic = shard_bytes - shard_bytes / RESERVE_PARTS - least;
        let each = |total: u64, price: u64| total.div_ceil(shards).saturating_mul(price);
        let (in_flight, idle) = (fetch.in_flight_max as u64, fetch.idle_connections_max as u64);
        let connections = (in_flight - fetches_min) * FETCH_BYTES + idle * CONNECTION_BYTES;
        let bodies_least = bodies_least(config, body_wire_bytes);
        let bodies = (in_flight * body_wire_bytes).saturating_sub(bodies_least);
        let tls_bytes = tls.sessions_max as u64 * SESSION_BYTES + tls.chains_max as u64 * CHAIN_BYTES;
        let cookies = if config.http.cookies == Cookies::Site { config.http.cookie_ram_bytes_max as u64 } else { 0 };
        let originals = match config.store.duplicates {
            RepeatedBodies::Revisit => config.store.duplicates_bytes_max as u64,
            RepeatedBodies::Store => 0,
        };
        let identity = &config.identity;
        let signatures = if identity.signing_key.is_given() { each(identity.ram_bytes_max, 1) } else { 0 };
        let counts_sites = config.budget.is_set() || config.counts_linking_sites();
        let budgets = if counts_sites { each(config.budget.ram_bytes_max, 1) } else { 0 };
        let host_bytes = if config.goes_by_importance() { HOST_BYTES + LEVELS_BYTES } else { HOST_BYTES };
        let order = if config.goes_by_importance() { each(config.frontier.order_ram_bytes_max, 1) } else { 0 };
        let url_bytes = if config.budget.is_set() || bounds_sites { URL_BYTES + COST_BYTES } else { URL_BYTES };
        let mut parts = [
            (connections, 4),
            (bodies, 3),
            (each(config.visited.urls_max, url_bytes), 2),
            (each(config.frontier.hosts_max, host_bytes), 3),
            (each(config.frontier.ram_bytes_max, 1) / WAITING_PART * WAITING_WHOLE, 2),
            (each(config.robots.ram_bytes_max, 1), 1),
            (each(config.traps.ram_bytes_max, 1), 1),
            (budgets, 1),
            (order, 1),
            (tls_bytes, 1),
            (cookies, 1),
            (originals, 1),
            (signatures, 1),
        ]
        .map(|(wanted, weight)| Part { wanted, weight, bytes: 0 });
        share(elastic, &mut parts);
        let [
            connections,
            bodies,
            urls,
            hosts,
            waiting,
            rules,
            traps,
            budgets,
            order,
            tls_part,
            cookies,
            originals,
            signatures,
        ] = &parts;
        Ok(MemoryBudget {
            shards,
            shard_bytes,
            limits: Limits {
                fetches: fetches_min + connections.of(in_flight - fetches_min),
                idle_connections: connections.of(idle),
                body_wire_bytes,
                body_bytes,
                bodies_bytes: bodies_least + bodies.bytes,
                urls: urls.of(config.visited.urls_max.div_ceil(shards)),
                fingerprint_bits: config.visited.fingerprint_bits,
                hosts: hosts.of(config.frontier.hosts_max.div_ceil(shards)),
                waiting_bytes: waiting.of(config.frontier.ram_bytes_max / shards),
                rules_bytes: rules.of(config.robots.ram_bytes_max / shards),
                traps_bytes: traps.of(config.traps.ram_bytes_max / shards),
                budgets_bytes: budgets.of(config.budget.ram_bytes_max / shards),
                order_bytes: order.of(config.frontier.order_ram_bytes_max / shards),
                signatures_bytes: signatures.of(identity.ram_bytes_max / shards),
                sessions: tls_part.of(tls.sessions_max as u64),
                chains: tls_part.of(tls.chains_max as u64),
                cookie_bytes: cookies.of(config.http.cookie_ram_bytes_max as u64),
                originals_bytes: originals.of(config.store.duplicates_bytes_max as u64),
            },
        })
    }

    /// Lowers the limits of `config` to what the memory holds. Returns those that were lowered, as keys with their
    /// new values.
    pub fn limit(&self, config: &mut Config) -> Vec<String> {
        let Limits { fetches, idle_connections, body_wire_bytes, body_bytes, urls, hosts, .. } = self.limits;
        let Limits {
            waiting_bytes,
            rules_bytes,
            traps_bytes,
            budgets_bytes,
            order_bytes,
            sessions,
            chains,
            cookie_bytes,
            originals_bytes,
            signatures_bytes,
            ..
        } = self.limits;
        let mut lowered = Vec::new();
        let mut lower = |key: &str, limit: &mut usize, to: u64| {
            let to = usize::try_from(to).unwrap_or(usize::MAX);
            if *limit > to {
                *limit = to;
                lowered.push(setting(key, to as u64));
            }
        };
        let Config { fetch, tls, http, store, .. } = config;
        lower("fetch.in_flight_max", &mut fetch.in_flight_max, fetches);
        lower("fetch.idle_connections_max", &mut fetch.idle_connections_max, idle_connections);
        lower("fetch.body_wire_bytes_max", &mut fetch.body_wire_bytes_max, body_wire_bytes);
        lower("fetch.body_bytes_max", &mut fetch.body_bytes_max, body_bytes);
        lower("tls.sessions_max", &mut tls.sessions_max, sessions);
        lower("tls.chains_max", &mut tls.chains_max, chains);
        if http.cookies == Cookies::Site {
            lower("http.cookie_ram_bytes_max", &mut http.cookie_ram_bytes_max, cookie_bytes.max(1));
        }
        if store.duplicates == RepeatedBodies::Revisit {
            lower("store.duplicates_bytes_max", &mut store.duplicates_bytes_max, originals_bytes);
        }
        let mut lower = |key: &str, limit: &mut u64, a_shard: u64| {
            let to = a_shard.saturating_mul(self.shards);
            if *limit > to {
                *limit = to;
                lowered.push(setting(key, to));
            }
        };
        lower("visited.urls_max", &mut config.visited.urls_max, urls);
        lower("frontier.hosts_max", &mut config.frontier.hosts_max, hosts);
        lower("frontier.ram_bytes_max", &mut config.frontier.ram_bytes_max, waiting_bytes);
        lower("robots.ram_bytes_max", &mut config.robots.ram_bytes_max, rules_bytes);
        lower("traps.ram_bytes_max", &mut config.traps.ram_bytes_max, traps_bytes);
        if config.budget.is_set() || config.counts_linking_sites() {
            lower("budget.ram_bytes_max", &mut config.budget.ram_bytes_max, budgets_bytes);
        }
        if config.goes_by_importance() {
            lower("frontier.order_ram_bytes_max", &mut config.frontier.order_ram_bytes_max, order_bytes);
        }
        if config.identity.signing_key.is_given() {
            lower("identity.ram_bytes_max", &mut config.identity.ram_bytes_max, signatures_bytes);
        }
        lowered
    }

    /// What unprocessed bodies of a shard may hold, beyond [`BODY_BYTES_FREE`] for each fetch.
    pub fn bodies_bytes(&self) -> u64 {
        self.limits.bodies_bytes
    }

    /// The memory of all shards, in bytes.
    pub fn bytes(&self) -> u64 {
        self.shard_bytes * self.shards
    }
}

/// The line that is printed at the start.
impl fmt::Display for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shards, limits) = (self.shards, &self.limits);
        let counts = [limits.urls, limits.hosts, limits.fetches].map(|count| grouped(count * shards));
        let [urls, hosts, fetches] = counts;
        let (bytes, of_each) = (mebibytes(self.bytes()), mebibytes(self.shard_bytes));
        let bodies = mebibytes(limits.bodies_bytes * shards);
        // As the text of `visited.fingerprint_bits` has it.
        let lost = shards as f64 * (limits.urls as f64).powi(2) / 2_f64.powi(limits.fingerprint_bits as i32 + 1);
        let lost = if lost < 10.0 { format!("{lost:.2}") } else { grouped(lost as u64) };
        write!(
            f,
            "memory: at most {bytes} ({shards} × {of_each}) for {urls} URLs (expected loss to equal fingerprints: {lost}), \
             {hosts} hosts, {fetches} fetches and {bodies} of bodies in flight"
        )
    }
}

impl Part {
    /// What its bytes hold, if the key's bytes hold `whole`.
    fn of(&self, whole: u64) -> u64 {
        match self.wanted {
            0 => whole,
            wanted => (u128::from(whole) * u128::from(self.bytes.min(wanted)) / u128::from(wanted)) as u64,
        }
    }
}

/// Shares `bytes` by weight; what a part does not want goes to the others.
fn share(bytes: u64, parts: &mut [Part]) {
    loop {
        let left = bytes - parts.iter().map(|part| part.bytes).sum::<u64>();
        let weights: u64 = parts.iter().filter(|part| part.bytes < part.wanted).map(|part| part.weight).sum();
        let Some(a_weight) = left.checked_div(weights).filter(|bytes| *bytes > 0) else { return };
        for part in parts.iter_mut() {
            part.bytes += (part.wanted - part.bytes).min(a_weight.saturating_mul(part.weight));
        }
    }
}

/// What a shard of `shard_bytes` needs for a crawl of a few pages.
fn least_bytes(config: &Config, shards: u64, shard_bytes: u64) -> u64 {
    let part = |bytes: usize| (bytes as u64).min(shard_bytes / BODY_PARTS);
    let fetches = FETCHES_MIN.min(config.fetch.in_flight_max as u64) * FETCH_BYTES;
    let bodies = bodies_least(config, part(config.fetch.body_wire_bytes_max));
    fixed_bytes(config, shards, part(config.fetch.body_bytes_max)) + fetches + bodies
}

/// The same with the allocator's reserve, and a little to grow.
fn needed_bytes(least: u64) -> u64 {
    least + least / RESERVE_PARTS + ELASTIC_BYTES_MIN
}

/// The minimum for bodies. A request for more than the total would wait forever. Slow sites get half of it, so half
/// must hold the longest handshake, or the longest head with a body.
fn bodies_least(config: &Config, body_wire_bytes: u64) -> u64 {
    let one = HANDSHAKE_BYTES.max(3 * config.fetch.header_bytes_max as u64 + body_wire_bytes);
    (BODIES_MIN * body_wire_bytes).max(one * 2)
}

/// What a shard needs whatever it crawls.
fn fixed_bytes(config: &Config, shards: u64, body_bytes: u64) -> u64 {
    let gathered = if config.frontier.order == UrlOrder::Backlinks { GATHERED_LINKS_BYTES } else { 0 };
    let blocks = (config.fetch.in_flight_max as u64).min(BLOCKS_MAX) * BLOCK_BYTES;
    // A response is read while another one, already read, waits to be taken: the content of two codings for one, the
    // records and the links for both. The bytes on the wire count as bodies in flight.
    let page = 4 * body_bytes;
    let compressors = COMPRESSORS * warc::frame::compressor_bytes(config.store.zstd_level);
    let store = &config.store;
    let dictionary = if store.compress_uncoded == CompressUncoded::Dictionary { Training::MEMORY_BYTES } else { 0 };
    let earlier = if store.dedupe_against.is_empty() { 0 } else { store.dedupe_bytes_max / shards };
    BASE_BYTES
        + LEDGER_BYTES / shards
        + exchange::memory_bytes(config, shards)
        + gathered
        + blocks
        + page
        + page::links_bytes(&config.links)
        + compressors
        + dictionary
        + names::memory_bytes(&config.dns)
        + earlier
        + DISK_BYTES
        + HELD_BYTES
}

/// A key with its value; bytes as MiB if that is not zero.
fn setting(key: &str, value: u64) -> String {
    match value >> 20 {
        mebibytes @ 1.. if key.contains("bytes") => format!("{key} = {} MiB", grouped(mebibytes)),
        _ => format!("{key} = {}", grouped(value)),
    }
}

fn mebibytes(bytes: u64) -> String {
    match bytes >> 20 {
        mebibytes @ 0..10_240 => format!("{} MiB", grouped(mebibytes)),
        mebibytes => format!("{} GiB", grouped(mebibytes >> 10)),
    }
}

/// Bytes of a body that a fetch may hold without asking: most pages never ask, nor do handshakes of 2 KiB
/// (`fetch::tls::link`).
pub const BODY_BYTES_FREE: u64 = 64 << 10;
/// A kept connection with TLS: rustls's state and the receive in flight (measured: 20 to 40 KiB).
const CONNECTION_BYTES: u64 = 40 << 10;
/// A fetch: its connection, the free part of its body (used by the handshake before that), its task and head.
const FETCH_BYTES: u64 = CONNECTION_BYTES + BODY_BYTES_FREE + (8 << 10);
/// The price of the longest handshake (`fetch::tls::link`).
const HANDSHAKE_BYTES: u64 = 16 * (24 << 10);
/// A visited URL in the set (4.4 to 6.5 bytes), in the counts of its site, and while an earlier run is read back.
const URL_BYTES: u64 = 8;
/// The cost of a URL, while an earlier run is read back.
const COST_BYTES: u64 = 16;
/// A host with its queue's frame, addresses, origins and failures: 1.1 to 1.5 KiB, more with many origins.
const HOST_BYTES: u64 = 2 << 10;
/// Its queues by level, if URLs have levels.
const LEVELS_BYTES: u64 = 1 << 10;
/// Waiting URLs are counted without the slack of the vectors that hold them: four fifths are counted. The pages that
/// link to them have another sixteenth of what is counted.
const WAITING_PART: u64 = 16;
const WAITING_WHOLE: u64 = 21;
/// Two tickets of a host, of two connections, each with its certificates: all of them 16 KiB at most.
const SESSION_BYTES: u64 = 64 << 10;
const CHAIN_BYTES: u64 = 200;
/// Code, threads, tables of fixed size: hosts that answered, shares of sites, bodies seen lately.
const BASE_BYTES: u64 = 32 << 20;
/// The address ledger of all shards.
const LEDGER_BYTES: u64 = 8 << 20;
/// Data that waits for the disk, and the index of the open segment.
const DISK_BYTES: u64 = 32 << 20;
/// Failures that are held back without a fetch slot.
const HELD_BYTES: u64 = crate::shard::HELD_FREE_BYTES_MAX as u64;
/// For the open segment, and for responses read in parallel to the shard.
const COMPRESSORS: u64 = 2;
/// Links to other shards' URLs, until they are sent, as in `shard::outbox`.
const GATHERED_LINKS_BYTES: u64 = 1 << 20;
/// As in `fetch`.
const BLOCKS_MAX: u64 = 256;
const BLOCK_BYTES: u64 = 32 << 10;
/// A body has at most this part of a shard's memory.
const BODY_PARTS: u64 = 32;
/// This many bodies of full length always fit in memory.
const BODIES_MIN: u64 = 2;
const FETCHES_MIN: u64 = 16;
/// One part of this many is left to the allocator.
const RESERVE_PARTS: u64 = 8;
/// What a crawl of a few sites needs.
const ELASTIC_BYTES_MIN: u64 = 8 << 20;

#[cfg(test)]
mod tests;
