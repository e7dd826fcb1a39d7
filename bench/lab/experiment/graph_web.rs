//! A web that is a graph: each page answers with HTML whose links are those of the graph.
//!
//! Decides: a page without a URL has a made-up one ([`PageGraph::url`]). No site has a robots.txt (404). A host
//! always answers after the same time, which the seed draws, so that all crawls of an experiment see the same timing.
//! Nothing fails.
//! Invariants: the same graph, seed and URL give the same bytes and times.
//! Limits: URLs are identified by 64 bits of their hash; two with the same hash would be one page.

use std::net::{IpAddr, Ipv4Addr};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::plan::PageGraph;
use ringcrawl_base::IntMap;
use ringcrawl_base::time::{Duration, UnixTime};
use ringcrawl_brain::job::{FetchJob, JobKind};
use ringcrawl_brain::sample::plain_transaction;
use ringcrawl_brain::transaction::{Timings, Transaction};
use ringcrawl_http::Limits;

/// The web of a graph.
#[derive(Debug)]
pub struct GraphWeb {
    graph: PageGraph,
    by_url: IntMap<u32>,
}

impl GraphWeb {
    /// The pages of `graph`.
    pub fn new(graph: PageGraph) -> GraphWeb {
        let by_url = graph.all().map(|page| (xxh3_64(graph.url(page).as_bytes()), page)).collect();
        GraphWeb { graph, by_url }
    }

    /// The graph.
    pub fn graph(&self) -> &PageGraph {
        &self.graph
    }

    /// The page of a URL in the crawler's own form.
    pub fn page_of(&self, url: &str) -> Option<u32> {
        self.by_url.get(&xxh3_64(url.as_bytes())).copied()
    }

    /// How long a host takes to answer with the seed `rng_seed`.
    pub(super) fn latency(host: &str, rng_seed: u64) -> Duration {
        LATENCY_MIN + Duration::from_micros(xxh3_64_with_seed(host.as_bytes(), rng_seed) % LATENCY_MICROS)
    }

    /// The address of a host: each has its own, except by chance.
    pub(super) fn address(host: &str) -> IpAddr {
        let [_, one, two, three, ..] = xxh3_64(host.as_bytes()).to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(10, one, two, three))
    }

    /// The response to a job, and its page.
    pub(super) fn answer(
        &self,
        job: &FetchJob,
        started: UnixTime,
        took: Duration,
        limits: Limits,
    ) -> (Option<u32>, Transaction) {
        let page = match job.kind {
            JobKind::Page => self.page_of(job.url.as_str()),
            _ => None,
        };
        let bytes = page.map_or_else(|| NOT_FOUND.to_vec(), |page| self.response(page));
        let transaction = Transaction {
            ip: job.addr,
            started,
            timings: Timings { first_byte: took, total: took, ..Timings::default() },
            ..plain_transaction(&bytes, limits)
        };
        (page, transaction)
    }

    fn response(&self, page: u32) -> Vec<u8> {
        let mut body = Vec::with_capacity(64 * (1 + self.graph.targets_of(page).len()));
        body.extend_from_slice(b"<!doctype html>\n");
        for target in self.graph.targets_of(page) {
            body.extend_from_slice(b"<a href=\"");
            // No URL in the crawler's own form contains a quotation mark.
            for byte in self.graph.url(*target).bytes() {
                match byte {
                    b'&' => body.extend_from_slice(b"&amp;"),
                    byte => body.push(byte),
                }
            }
            body.extend_from_slice(b"\">x</a>\n");
        }
        let mut bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len())
            .into_bytes();
        bytes.append(&mut body);
        bytes
    }

    /// The size of a page: its bytes in the graph, or those of its generated HTML.
    pub(super) fn bytes_of(&self, page: u32, response: &Transaction) -> u64 {
        match self.graph.has_bytes() {
            true => self.graph.weights(page)[0],
            false => response.response.body.len() as u64,
        }
    }
}

const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nnone\n";
const LATENCY_MIN: Duration = Duration::from_millis(20);
/// Maximum random addition.
const LATENCY_MICROS: u64 = 200_000;
