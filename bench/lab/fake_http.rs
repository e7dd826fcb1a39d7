//! Responses of the fake servers as bytes on a wire, so that the simulated shard reads them as a real one does.
//!
//! Decides: head and body express what a [`Fetched`] says: links as HTML, rules as text, a redirect as Location, one
//! body for everything missing. Depending on the URL, the body comes with its length, in chunks, or until the
//! connection closes.

use super::fake_web::FakeWeb;
use ringcrawl_base::Rng;
use ringcrawl_base::time::{Duration, Instant, UnixTime};
use ringcrawl_brain::job::{FetchJob, JobKind};
use ringcrawl_brain::outcome::Fetched;
use ringcrawl_brain::sample::plain_transaction;
use ringcrawl_brain::transaction::{Timings, Transaction};
use ringcrawl_http::Limits;

/// The transaction that fetches `fetched`, seen at `now`.
pub fn transaction(now: Instant, web: &FakeWeb, job: &FetchJob, fetched: &Fetched, limits: Limits) -> Transaction {
    Transaction {
        request_bytes: format!("GET {} HTTP/1.1\r\n\r\n", job.url.path_and_query()).into_bytes(),
        ip: fetched.addr,
        started: UnixTime::from_micros(now.as_nanos() / 1_000),
        timings: Timings { total: Duration::from_millis(1), ..Timings::default() },
        ..plain_transaction(&response(web, job, fetched), limits)
    }
}

fn response(web: &FakeWeb, job: &FetchJob, fetched: &Fetched) -> Vec<u8> {
    let is_page = job.kind == JobKind::Page;
    let mut body = Vec::new();
    if fetched.rules.is_some() {
        body.extend_from_slice(web.robots(&job.url).text().as_bytes());
    } else if is_page && fetched.status == 200 {
        body.extend_from_slice(format!("<!doctype html><title>{}</title>", job.url.as_str()).as_bytes());
        for (_, link) in fetched.links.iter() {
            // Some links carry `rel=nofollow`, always the same ones.
            let rel = if xxhash_rust::xxh3::xxh3_64(link.as_bytes()).is_multiple_of(8) { " rel=nofollow" } else { "" };
            body.extend_from_slice(format!("<p><a href=\"{link}\"{rel}>there</a>").as_bytes());
        }
    } else if is_page && fetched.status == 404 {
        // The same everywhere, and long enough to become a revisit when it comes again.
        body.extend_from_slice(&b"Not here. ".repeat(120));
    }
    let mut bytes = format!("HTTP/1.1 {} As it is\r\n", fetched.status).into_bytes();
    let mut field = |name: &str, value: &str| bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    field("Content-Type", if is_page { "text/html; charset=utf-8" } else { "text/plain" });
    if let Some(target) = &fetched.redirect {
        field("Location", target.as_str());
    }
    if let Some(wait) = fetched.retry_after {
        field("Retry-After", &wait.as_secs().to_string());
    }
    match xxhash_rust::xxh3::xxh3_64(job.url.as_str().as_bytes()) % 3 {
        0 => {
            field("Content-Length", &body.len().to_string());
            bytes.extend_from_slice(b"\r\n");
            bytes.extend_from_slice(&body);
        }
        1 => {
            field("Transfer-Encoding", "chunked");
            bytes.extend_from_slice(b"\r\n");
            let mut rng = Rng::new(body.len() as u64);
            let mut rest = body.as_slice();
            while !rest.is_empty() {
                let (chunk, behind) = rest.split_at((1 + rng.below(100) as usize).min(rest.len()));
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
                rest = behind;
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        }
        _ => {
            field("Connection", "close");
            bytes.extend_from_slice(b"\r\n");
            bytes.extend_from_slice(&body);
        }
    }
    bytes
}
