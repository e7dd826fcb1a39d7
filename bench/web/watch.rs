//! The watch: records the politeness of a crawl, by the server's own clock.
//!
//! Decides: the server judges, not the crawler. It counts URLs requested twice, trap addresses, addresses that
//! robots.txt forbids, pages requested before the origin's robots.txt, gaps between requests to a host and to an
//! address, and concurrent requests to a host. Without `--watch` only the totals are counted.
//! Invariants: memory is bounded; when a table is full no new entry is added and `watch_full` is set.
//! Limits: `URLS_MAX` URLs by 64-bit fingerprint: two among 16 million collide once in 100,000 runs.
//! Leaves to others: which gap is polite.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::faults::Fault;
use super::gaps::{GapReport, Gaps};
use super::model::Model;
use super::place::{Item, Place};
use ringcrawl_config::Operators;
use ringcrawl_url::{Scheme, fingerprint, site_of};

/// The server's observations.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct ServerReport {
    /// Requests answered.
    pub requests: u64,
    /// By HTTP status.
    pub statuses: BTreeMap<u16, u64>,
    /// Bytes of all responses, without TLS.
    pub response_bytes: u64,
    /// Requests for trap addresses, which no page links to.
    pub traps: u64,
    /// Requests for URLs that robots.txt forbids.
    pub denied: u64,
    /// Requests to faulty hosts, by fault.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub faults: BTreeMap<&'static str, u64>,
    /// Additional values with `--watch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<WatchReport>,
}

/// Observations that only a watching server makes.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct WatchReport {
    /// Different URLs requested with GET, without robots.txt.
    pub urls: u64,
    /// GET requests for a URL that had been requested before, without robots.txt.
    pub double_fetches: u64,
    /// Examples of these URLs.
    pub double_examples: Vec<String>,
    /// Requests for anything but robots.txt at an origin whose robots.txt had not been requested yet.
    pub before_robots: u64,
    /// Hosts seen.
    pub hosts: u64,
    /// Maximum number of requests in flight to one host.
    pub host_in_flight_max: u32,
    /// Shortest time between the arrivals of two requests to one host, in milliseconds.
    pub host_gap_ms_min: Option<f64>,
    /// Shortest time from the end of one response to the next request to the host, in milliseconds; 0 if they overlap.
    pub host_idle_ms_min: Option<f64>,
    /// Like `host_gap_ms_min`, between two requests that are not for robots.txt.
    pub host_page_gap_ms_min: Option<f64>,
    /// The host with the shortest time between arrivals.
    pub host_gap_min_at: Option<String>,
    /// Shortest time between the arrivals of two requests to one address, in milliseconds.
    pub address_gap_ms_min: Option<f64>,
    /// Requests to a host during a pause that it had asked for (Retry-After).
    pub before_retry_after: u64,
    /// Gaps between requests to a host.
    pub hosts_gaps: GapReport,
    /// The same for a site.
    pub sites_gaps: GapReport,
    /// The same for an address.
    pub addresses_gaps: GapReport,
    /// The same for an operator, if operators were named.
    pub operators_gaps: GapReport,
    /// Whether a table was full, so that the numbers above are too small.
    pub watch_full: bool,
}

/// Counters of all threads, and the watch if there is one.
#[derive(Debug)]
pub(super) struct Observer {
    model: Arc<Model>,
    requests: AtomicU64,
    response_bytes: AtomicU64,
    traps: AtomicU64,
    denied: AtomicU64,
    statuses: [AtomicU64; STATUSES.len()],
    faults: [AtomicU64; Fault::ALL.len()],
    /// Number of requests by fingerprint, for responses that depend on it.
    asked: Mutex<HashMap<u64, u64>>,
    watch: Option<Mutex<Watch>>,
    operators: Operators,
}

/// The subjects of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    host: u64,
    site: u64,
    address: u64,
    operator: Option<u64>,
}

impl Keys {
    fn all(self) -> [Option<u64>; 4] {
        [Some(self.host), Some(self.site), Some(self.address), self.operator]
    }
}

/// One request as it arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    pub place: Option<&'a Place>,
    pub scheme: Scheme,
    pub host: &'a str,
    pub path_and_query: &'a str,
    pub is_get: bool,
    /// The address of the connection.
    pub address: Ipv4Addr,
}

impl Observer {
    /// Counts requests; with `watch` also watches them, by these operators.
    pub fn new(model: Arc<Model>, watch: bool, operators: Operators) -> Observer {
        Observer {
            model,
            requests: AtomicU64::new(0),
            response_bytes: AtomicU64::new(0),
            traps: AtomicU64::new(0),
            denied: AtomicU64::new(0),
            statuses: Default::default(),
            faults: std::array::from_fn(|_| AtomicU64::new(0)),
            asked: Mutex::default(),
            watch: watch.then(Mutex::default),
            operators,
        }
    }

    /// A request arrived; the keys are for `finish`.
    pub fn arrive(&self, arrival: &Arrival) -> Option<Keys> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let place = arrival.place?;
        if place.item.is_trap() {
            self.traps.fetch_add(1, Ordering::Relaxed);
        }
        let site = self.model.site(place.site);
        // The client need not know rules beyond the minimum that must be read of a robots.txt.
        if site.is_some_and(|site| !self.model.allows(&site, place.item, arrival.path_and_query, ROBOTS_BYTES_MIN)) {
            self.denied.fetch_add(1, Ordering::Relaxed);
        }
        if let Item::Fault(fault, _) = place.item
            && let Some(count) = self.faults.get(fault as usize)
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let watch = self.watch.as_ref()?;
        let keys = Keys {
            host: fingerprint(0, arrival.host),
            site: fingerprint(0, site_of(arrival.host)),
            address: u64::from(arrival.address.to_bits()),
            operator: self.operators.of_address(arrival.address.into()).map(u64::from),
        };
        lock(watch).arrive(arrival, keys, place.item.is_robots(), Instant::now());
        Some(keys)
    }

    /// How often a URL was requested before this time, for responses that depend on it.
    pub fn asked_before(&self, host: &str, path_and_query: &str) -> u64 {
        let key = fingerprint(fingerprint(0, host), path_and_query);
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= HOSTS_MAX && !asked.contains_key(&key) {
            return 0;
        }
        let count = asked.entry(key).or_insert(0);
        *count += 1;
        *count - 1
    }

    /// The host of `keys` asked to be left alone until `until`.
    pub fn rest(&self, keys: Option<Keys>, until: Instant) {
        if let (Some(keys), Some(watch)) = (keys, &self.watch)
            && let Some(seen) = lock(watch).hosts.get_mut(&keys.host)
        {
            seen.rest_until = Some(until);
        }
    }

    /// The response to the request of `keys` is written; `ended` is when writing began. That counts as its end: the
    /// moment after writing may be later than the client's next step if this thread had to wait for its CPU.
    pub fn finish(&self, keys: Option<Keys>, status: u16, bytes: u64, ended: Instant) {
        self.response_bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some((_, count)) = STATUSES.iter().zip(&self.statuses).find(|(known, _)| **known == status) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if let (Some(keys), Some(watch)) = (keys, &self.watch) {
            lock(watch).finish(keys, ended);
        }
    }

    /// All observations so far.
    pub fn report(&self) -> ServerReport {
        let counts =
            STATUSES.iter().zip(&self.statuses).map(|(status, count)| (*status, count.load(Ordering::Relaxed)));
        ServerReport {
            requests: self.requests.load(Ordering::Relaxed),
            statuses: counts.filter(|(_, count)| *count > 0).collect(),
            response_bytes: self.response_bytes.load(Ordering::Relaxed),
            traps: self.traps.load(Ordering::Relaxed),
            denied: self.denied.load(Ordering::Relaxed),
            faults: Fault::ALL
                .iter()
                .zip(&self.faults)
                .map(|(fault, count)| (fault.as_str(), count.load(Ordering::Relaxed)))
                .filter(|(_, count)| *count > 0)
                .collect(),
            watch: self.watch.as_ref().map(|watch| lock(watch).report()),
        }
    }
}

/// Every status that the server sends.
const STATUSES: [u16; 15] = [200, 301, 302, 304, 307, 400, 404, 405, 413, 421, 429, 431, 500, 503, 505];
/// The minimum that must be read of a robots.txt (RFC 9309 section 2.5).
const ROBOTS_BYTES_MIN: usize = 500 << 10;
/// Maximum number of URLs remembered: 12 bytes each and the table's slack, some 300 MB.
const URLS_MAX: usize = 16_000_000;
/// Maximum number of hosts and origins remembered.
const HOSTS_MAX: usize = 1_000_000;
/// Maximum number of double fetches shown.
const EXAMPLES_MAX: usize = 20;

fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    // After a panic elsewhere the counters are still valid.
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Default)]
struct Watch {
    urls: HashMap<u64, u32>,
    /// Origins whose robots.txt was requested.
    origins: HashMap<u64, ()>,
    hosts: HashMap<u64, HostSeen>,
    addresses: HashMap<Ipv4Addr, Instant>,
    /// Gaps of hosts, sites, addresses and operators.
    gaps: [Gaps; 4],
    report: WatchReport,
}

#[derive(Clone, Copy, Debug)]
struct HostSeen {
    arrival: Instant,
    arrival_was_robots: bool,
    end: Option<Instant>,
    rest_until: Option<Instant>,
    in_flight: u32,
}

impl Watch {
    fn arrive(&mut self, arrival: &Arrival, keys: Keys, is_robots: bool, now: Instant) {
        let host = keys.host;
        self.gaps.iter_mut().zip(keys.all()).for_each(|(gaps, key)| {
            key.into_iter().for_each(|key| gaps.arrive(key, now));
        });
        let origin = fingerprint(1 + arrival.scheme as u64, arrival.host);
        if is_robots {
            self.report.watch_full |= !insert_bounded(&mut self.origins, origin, (), HOSTS_MAX);
        } else {
            if !self.origins.contains_key(&origin) {
                self.report.before_robots += 1;
            }
            if arrival.is_get {
                self.count_url(arrival, origin);
            }
        }
        if let Some(before) = self.addresses.insert(arrival.address, now) {
            keep_min(&mut self.report.address_gap_ms_min, milliseconds(before, now));
        }
        let Some(seen) = self.hosts.get_mut(&host) else {
            let seen =
                HostSeen { arrival: now, arrival_was_robots: is_robots, end: None, rest_until: None, in_flight: 1 };
            self.report.watch_full |= !insert_bounded(&mut self.hosts, host, seen, HOSTS_MAX);
            self.report.host_in_flight_max = self.report.host_in_flight_max.max(1);
            return;
        };
        self.report.before_retry_after += u64::from(seen.rest_until.is_some_and(|until| now < until));
        let gap = milliseconds(seen.arrival, now);
        if self.report.host_gap_ms_min.is_none_or(|least| gap < least) {
            self.report.host_gap_ms_min = Some(gap);
            self.report.host_gap_min_at = Some(arrival.host.to_owned());
        }
        if !is_robots && !seen.arrival_was_robots {
            keep_min(&mut self.report.host_page_gap_ms_min, gap);
        }
        let idle = if seen.in_flight > 0 { Some(0.0) } else { seen.end.map(|end| milliseconds(end, now)) };
        if let Some(idle) = idle {
            keep_min(&mut self.report.host_idle_ms_min, idle);
        }
        seen.arrival = now;
        seen.arrival_was_robots = is_robots;
        seen.in_flight += 1;
        self.report.host_in_flight_max = self.report.host_in_flight_max.max(seen.in_flight);
    }

    fn count_url(&mut self, arrival: &Arrival, origin: u64) {
        let url = fingerprint(origin, arrival.path_and_query);
        if let Some(count) = self.urls.get_mut(&url) {
            *count = count.saturating_add(1);
            self.report.double_fetches += 1;
            if self.report.double_examples.len() < EXAMPLES_MAX {
                let scheme = if arrival.scheme == Scheme::Https { "https" } else { "http" };
                self.report.double_examples.push(format!("{scheme}://{}{}", arrival.host, arrival.path_and_query));
            }
        } else {
            self.report.watch_full |= !insert_bounded(&mut self.urls, url, 1, URLS_MAX);
        }
    }

    fn finish(&mut self, keys: Keys, now: Instant) {
        self.gaps.iter_mut().zip(keys.all()).for_each(|(gaps, key)| {
            key.into_iter().for_each(|key| gaps.finish(key, now));
        });
        if let Some(seen) = self.hosts.get_mut(&keys.host) {
            seen.in_flight = seen.in_flight.saturating_sub(1);
            seen.end = Some(now);
        }
    }

    fn report(&self) -> WatchReport {
        let [hosts_gaps, sites_gaps, addresses_gaps, operators_gaps] = self.gaps.each_ref().map(Gaps::report);
        WatchReport {
            urls: self.urls.len() as u64,
            hosts: self.hosts.len() as u64,
            hosts_gaps,
            sites_gaps,
            addresses_gaps,
            operators_gaps,
            ..self.report.clone()
        }
    }
}

fn insert_bounded<V>(table: &mut HashMap<u64, V>, key: u64, value: V, max: usize) -> bool {
    let fits = table.len() < max || table.contains_key(&key);
    if fits {
        table.insert(key, value);
    }
    fits
}

fn keep_min(least: &mut Option<f64>, value: f64) {
    *least = Some(least.map_or(value, |least| least.min(value)));
}

fn milliseconds(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn manners_are_seen() {
        let mut watch = Watch::default();
        let start = Instant::now();
        let mut ask = |path, host, at_ms, took_ms: Option<u64>| {
            let arrival = Arrival {
                place: None,
                scheme: Scheme::Http,
                host,
                path_and_query: path,
                is_get: true,
                address: Ipv4Addr::LOCALHOST,
            };
            let keys = Keys { host: fingerprint(0, host), site: 0, address: 0, operator: None };
            watch.arrive(&arrival, keys, path == "/robots.txt", start + Duration::from_millis(at_ms));
            if let Some(took) = took_ms {
                watch.finish(keys, start + Duration::from_millis(at_ms + took));
            }
            watch.report()
        };
        assert_eq!(ask("/", "a", 0, Some(5)).before_robots, 1);
        ask("/robots.txt", "a", 100, Some(5));
        ask("/x", "a", 130, Some(5));
        let report = ask("/x", "a", 190, None);
        assert_eq!((report.before_robots, report.double_fetches, report.urls), (1, 1, 2));
        assert_eq!(report.double_examples, ["http://a/x"]);
        assert_eq!(report.host_gap_ms_min, Some(30.0));
        assert_eq!(report.host_idle_ms_min, Some(25.0));
        assert_eq!(report.host_page_gap_ms_min, Some(60.0));
        let report = ask("/z", "b", 191, Some(1));
        assert_eq!(report.address_gap_ms_min, Some(1.0));
        assert_eq!((report.hosts, report.host_in_flight_max), (2, 1));
        let report = ask("/y", "a", 500, None);
        assert_eq!((report.host_idle_ms_min, report.host_in_flight_max), (Some(0.0), 2));
    }
}
