//! A job, carried out: fetch, decode, find links, store, and say how it ended.
//!
//! Decides: what is kept of a response and which of its links go on. The record is queued for the segment before
//! the outcome reaches the brain, so the journal never says "over" of a page whose record is not on its way.
//! Leaves to others: sockets (`fetch`), parsing (`http`, `links`), what to do about the outcome (`shard`).

use std::cell::RefCell;
use std::rc::Rc;

use super::gather;
use super::recent::Recent;
use super::segments::Segments;
use crate::config::Config;
use crate::control::Post;
use crate::fetch::{Exchange, Hands};
use crate::hops::Hops;
use crate::http::{self, CodingProblem, Decoded, Framing};
use crate::links;
use crate::outcome::{Blemish, FetchJob, Fetched, JobKind, Outcome, Truncated};
use crate::ring;
use crate::stage::{self, Stage};
use crate::store::Capture;
use crate::url::{Repeats, Url, UrlBatch};

/// What the jobs of a shard share.
pub struct Bench {
    /// Sockets, TLS, DNS.
    pub hands: Rc<Hands>,
    /// Where records go.
    pub segments: RefCell<Segments>,
    /// Counters.
    pub post: std::sync::Arc<Post>,
    /// Limits.
    pub config: std::sync::Arc<Config>,
    /// The first store error; the shard stops.
    pub store_failure: RefCell<Option<String>>,
    /// Bodies stored lately.
    pub recent: RefCell<Recent>,
}

impl Bench {
    /// Carries out one job.
    pub async fn perform(&self, job: &FetchJob) -> Outcome {
        if job.kind == JobKind::Resolve {
            let begun = ring::now();
            let outcome = stage::during(Stage::Dns, self.hands.resolve(job.url.host(), job.both_families)).await;
            self.post.latencies.dns.record(ring::now().since(begun));
            return outcome;
        }
        let result = self.hands.exchange(job).await;
        if self.segments.borrow().is_stopped() {
            // The shard has written its last: this job never ends, and the next run asks for its page again.
            return std::future::pending().await;
        }
        match result {
            Ok(exchange) => Outcome::Fetched(self.take(job, &exchange)),
            Err(failure) => Outcome::Failed(failure),
        }
    }

    /// Decodes, scans, stores.
    fn take(&self, job: &FetchJob, exchange: &Exchange) -> Fetched {
        let _stage = stage::enter(Stage::Other);
        let response = &exchange.response;
        let decoded = {
            let _stage = stage::enter(Stage::Decode);
            http::decode_content(&response.headers, &response.body, &http::Limits::from(&self.config.fetch))
        };
        let body: &[u8] = &decoded.bytes;
        let mut fetched = Fetched {
            status: response.status,
            addr: exchange.ip,
            truncated: response.truncated.or(decoded.truncated),
            redirect: redirect(job, response),
            retry_after: http::retry_after(&response.headers, exchange.started),
            wire_bytes: response.wire_bytes,
            body_bytes: body.len() as u64,
            ..Fetched::default()
        };
        let (hops, ok) = (Hops::from_bits(job.depth), (200..300).contains(&response.status));
        if let (JobKind::Page, Some(target)) = (job.kind, &fetched.redirect) {
            self.keep(&mut fetched.links, hops.redirect(), target.as_str());
        }
        let mut found = None;
        if ok {
            let _stage = stage::enter(Stage::Scan);
            let (config, links) = (&self.config, &mut fetched.links);
            // Menus and headings name the same pages again: each goes on once.
            let mut repeats = Repeats::new();
            let mut keep = |url: &str| {
                if repeats.is_new(url) {
                    self.keep(links, hops.link(), url);
                }
            };
            if job.kind == JobKind::Page {
                found = gather::page(job, &response.headers, body, config, &self.post.stats, &mut keep);
            } else {
                gather::robots(job, body, config, &mut keep);
            }
        }
        self.store(job, exchange, &decoded, &fetched, found);
        if job.kind == JobKind::Robots {
            fetched.robots_body = Some(body[..body.len().min(self.config.robots.body_bytes_max)].to_vec());
        }
        self.count(job, exchange, decoded.coding.is_some(), &fetched);
        self.blemishes(job, exchange, &decoded, &fetched);
        fetched
    }

    /// Adds a link, but none that is too long to be followed: a long base and ten thousand short references would
    /// make a page into hundreds of megabytes.
    fn keep(&self, batch: &mut UrlBatch, hops: Hops, url: &str) {
        if url.len() <= self.config.scope.url_bytes_max {
            batch.push(hops.bits(), url);
        } else {
            self.post.stats.links_too_long.add(1);
        }
    }

    fn store(
        &self,
        job: &FetchJob,
        exchange: &Exchange,
        decoded: &Decoded<'_>,
        fetched: &Fetched,
        found: Option<links::Summary>,
    ) {
        let _stage = stage::enter(Stage::Store);
        let response = &exchange.response;
        let content_type = response.headers.get("content-type");
        if job.kind == JobKind::Page && !links::is_in_ranges(content_type, &self.config.store.types) {
            self.post.stats.not_stored.add(1);
            return;
        }
        // Names as Heritrix writes them where it has them, so that tools know them.
        let mut fields: Vec<(&str, String)> = vec![
            ("hopsFromSeed", Hops::from_bits(job.depth).links().to_string()),
            ("fetchTimeMs", exchange.timings.total.as_millis().to_string()),
            ("firstByteMs", exchange.timings.first_byte.as_millis().to_string()),
        ];
        if job.attempt > 0 {
            fields.push(("attempt", job.attempt.to_string()));
        }
        if let Some(found) = found {
            fields.push(("charsetForLinkExtraction", found.encoding.name().to_owned()));
            fields.push(("outlinks", found.links.to_string()));
            if found.dropped > 0 {
                fields.push(("outlinksDropped", found.dropped.to_string()));
            }
        }
        if let Some(problem) = &decoded.problem {
            fields.push(("contentCodingProblem", format!("{problem:?}")));
        }
        if let Some(tls) = &exchange.tls {
            fields.push(("tlsVersion", tls.version.to_string()));
            fields.push(("tlsCipher", tls.cipher.to_string()));
            if let Some(error) = &tls.certificate_error {
                fields.push(("certificateError", error.clone()));
            }
        }
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mime = content_type.map(String::from_utf8_lossy).unwrap_or_default();
        let capture = Capture {
            url: &job.url,
            time: exchange.started,
            ip: exchange.ip,
            request: &exchange.request_bytes,
            head_bytes: &response.head_bytes,
            // Also uncoded content has its limit, and what is stored is what the links were looked for in.
            body: if decoded.coding.is_some() { &response.body } else { &decoded.bytes },
            decoded: decoded.coding.is_some().then_some(&*decoded.bytes),
            chunked: response.framing == http::Framing::Chunked,
            truncated: fetched.truncated,
            metadata: &fields,
            status: response.status,
            mime: &mime,
        };
        match self.segments.borrow_mut().append(ring::now(), exchange.started, &capture) {
            Ok(None) => {}
            Ok(Some(placed)) => {
                self.post.stats.bytes_stored.add(placed.capture_bytes);
                self.post.stats.records.add(3);
                let is_page = job.kind == JobKind::Page && (200..300).contains(&fetched.status);
                if is_page && fetched.body_bytes > 0 && self.recent.borrow_mut().is_again(placed.payload) {
                    self.post.stats.duplicates.add(1);
                }
            }
            Err(error) => {
                self.store_failure.borrow_mut().get_or_insert_with(|| error.to_string());
            }
        }
    }

    /// Counts what is wrong with a response that is kept.
    fn blemishes(&self, job: &FetchJob, exchange: &Exchange, decoded: &Decoded<'_>, fetched: &Fetched) {
        let stats = &self.post.stats;
        let response = &exchange.response;
        let cut = match response.truncated {
            None => None,
            Some(Truncated::Time) if exchange.slow => Some(Blemish::BodySlow),
            Some(Truncated::Time) => Some(Blemish::BodyTimeout),
            Some(Truncated::Disconnect) if exchange.reset => Some(Blemish::BodyReset),
            Some(Truncated::Disconnect) => Some(Blemish::BodyShort),
            Some(Truncated::Length) if response.framing == Framing::Length => Some(Blemish::LengthOverLimit),
            Some(Truncated::Length) => Some(Blemish::BodyOverLimit),
            Some(Truncated::Unspecified) => Some(Blemish::ChunkBroken),
        };
        let coding = match (&decoded.problem, decoded.truncated) {
            (Some(CodingProblem::OverRatio), _) => Some(Blemish::DecodedOverRatio),
            (Some(CodingProblem::TooLarge), _) if decoded.coding.is_some() => Some(Blemish::DecodedOverLimit),
            // Uncoded content has two limits; it is cut at the lower one, and counted once.
            (Some(CodingProblem::TooLarge), _) => cut.is_none().then_some(Blemish::BodyOverLimit),
            (Some(_), _) => Some(Blemish::CodingBroken),
            // What was cut on the wire ends early in its coding, too.
            (None, Some(_)) if cut.is_none() => Some(Blemish::CodingBroken),
            (None, _) => None,
        };
        let is_page = job.kind == JobKind::Page;
        let ok = (200..300).contains(&fetched.status);
        let others = [
            (exchange.excess, Blemish::BodyExcess),
            (
                is_page && ok && links::is_misnamed(response.headers.get("content-type"), &decoded.bytes),
                Blemish::TypeMismatch,
            ),
            (is_page && fetched.redirect.as_ref() == Some(&job.url), Blemish::RedirectToItself),
            (matches!(fetched.status, 429 | 503), Blemish::Overloaded),
            (exchange.tls.as_ref().is_some_and(|tls| tls.certificate_error.is_some()), Blemish::Certificate),
            (!is_page && ok && fetched.body_bytes > self.config.robots.body_bytes_max as u64, Blemish::RobotsOverLimit),
        ];
        for blemish in cut.into_iter().chain(coding).chain(others.into_iter().filter(|it| it.0).map(|it| it.1)) {
            stats.blemish(blemish);
        }
    }

    fn count(&self, job: &FetchJob, exchange: &Exchange, coded: bool, fetched: &Fetched) {
        let stats = &self.post.stats;
        stats.coded.add(u64::from(coded));
        stats.status(fetched.status);
        stats.bytes_wire.add(fetched.wire_bytes);
        stats.bytes_decoded.add(fetched.body_bytes);
        if job.kind == JobKind::Page && (200..300).contains(&fetched.status) {
            stats.pages.add(1);
        }
        let (latencies, timings) = (&self.post.latencies, &exchange.timings);
        if !exchange.reused {
            latencies.connect.record(timings.connect);
            if exchange.secure {
                latencies.tls.record(timings.tls);
            }
        }
        latencies.first_byte.record(timings.first_byte);
        latencies.exchange.record(timings.total);
    }
}

/// Where a 3xx points to (RFC 9110 section 10.2.2). Bytes beyond ASCII are taken as UTF-8, as browsers do.
fn redirect(job: &FetchJob, response: &http::Response) -> Option<Url> {
    if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers.get("location")?;
    job.url.join(String::from_utf8_lossy(location).trim()).ok()
}
