//! Long responses, which are read in parallel with the shard: which one is next.
//!
//! Decides: the response whose site has had the least reading time lately, including the time that this response is
//! likely to take, by the bytes that it has and claims. So sites whose few bytes expand into many wait for each
//! other, and pages of other sites pass them. A response that has waited [`WAIT_PARTS`] times as long as it is behind
//! goes first in any case.
//! Invariants: a response stays waiting or begun until it is taken out, once.
//! Limits: [`READINGS_MAX`] begin at once, so that no more results are produced than are taken in. The reading time
//! of [`SITES_MAX`] sites is known. The training of a dictionary counts for the reading that it delays.

use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_base::{IntMap, IntSet};
use ringcrawl_http as http;
use ringcrawl_url::SiteKey;

use crate::job::FetchJob;
use crate::transaction::Transaction;

/// Long responses of a shard.
#[derive(Debug)]
pub(in crate::shard) struct Readings {
    /// In order of arrival.
    waiting: Vec<Waiting>,
    waiting_jobs: IntSet,
    begun: Vec<Begun>,
    /// When the last one ended: they are read one after another.
    last_ended: Instant,
    /// Reading time of sites, and of all; halved when these have had [`LATELY`].
    had: IntMap<Duration, SiteKey>,
    had_by_all: Duration,
}

#[derive(Debug)]
struct Waiting {
    job: FetchJob,
    transaction: Box<Transaction>,
    since: Instant,
    site: SiteKey,
    estimate: Duration,
}

#[derive(Debug)]
struct Begun {
    job: u64,
    since: Instant,
    site: SiteKey,
}

impl Default for Readings {
    fn default() -> Readings {
        Readings {
            waiting: Vec::new(),
            waiting_jobs: IntSet::default(),
            begun: Vec::new(),
            last_ended: Instant::ZERO,
            had: IntMap::default(),
            had_by_all: Duration::ZERO,
        }
    }
}

impl Readings {
    /// The number of waiting and begun responses.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.begun.len()
    }

    /// Whether the queue is so long that the waiting sites must share what slow sites share.
    pub fn is_long(&self) -> bool {
        self.waiting.len() >= READINGS_LONG
    }

    /// Whether the response of job `id` waits to be read.
    pub fn has_waiting(&self, id: u64) -> bool {
        self.waiting_jobs.contains(&id)
    }

    /// Whether another one may begin.
    pub fn may_begin(&self) -> bool {
        self.begun.len() < READINGS_MAX
    }

    /// The response to `job`, whose request has just ended, must be read. Of what it claims to have, no more than
    /// `bytes_max` will be read, so a lie does not make it wait behind all others.
    pub fn push(&mut self, now: Instant, job: FetchJob, site: SiteKey, transaction: Box<Transaction>, bytes_max: u64) {
        let response = &transaction.response;
        let claimed = http::claimed_bytes(&response.headers, &response.body).min(bytes_max);
        let bytes = claimed.max(response.body.len() as u64);
        let estimate = Duration::from_micros(bytes / BYTES_PER_MICROSECOND);
        self.waiting_jobs.insert(job.id);
        self.waiting.push(Waiting { job, transaction, since: now, site, estimate });
    }

    /// The next waiting response.
    pub fn pop(&mut self) -> Option<(FetchJob, Box<Transaction>)> {
        // All keep waiting, so their order changes only by the time that their sites have had.
        let behind = |waiting: &Waiting| {
            let had = self.had.get(&waiting.site).copied().unwrap_or_default();
            (had + waiting.estimate) * WAIT_PARTS + waiting.since.since(Instant::ZERO)
        };
        let (next, _) = self.waiting.iter().enumerate().min_by_key(|(_, waiting)| behind(waiting))?;
        let Waiting { job, transaction, .. } = self.waiting.remove(next);
        self.waiting_jobs.remove(&job.id);
        Some((job, transaction))
    }

    /// The response of job `id` of `site` was handed out.
    pub fn begin(&mut self, now: Instant, job: u64, site: SiteKey) {
        self.begun.push(Begun { job, since: now, site });
    }

    /// It was read.
    pub fn end(&mut self, now: Instant, job: u64) {
        let Some(begun) = self.begun.iter().position(|begun| begun.job == job) else {
            panic!("a response was read that was not given out")
        };
        let Begun { since, site, .. } = self.begun.remove(begun);
        let took = now.since(since.max(self.last_ended));
        self.last_ended = now;
        self.had_by_all += took;
        *self.had.entry(site).or_default() += took;
        if self.had_by_all >= LATELY || self.had.len() > SITES_MAX {
            self.had_by_all /= 2;
            self.had.values_mut().for_each(|had| *had /= 2);
            self.had.retain(|_, had| *had >= LITTLE);
            if self.had.len() > SITES_MAX / 2 {
                self.had.clear();
            }
        }
    }
}

/// A queue of this length is long: some seconds at worst.
const READINGS_LONG: usize = 16;
/// Readings begun at once: one is being read, and the next is ready.
const READINGS_MAX: usize = 2;
/// Sites whose reading time is known: more than send long responses at one time, 64 KiB a shard.
const SITES_MAX: usize = 1 << 12;
/// Total reading time after which all reading times are halved.
const LATELY: Duration = Duration::from_secs(32);
/// When less than this is left, it is forgotten.
const LITTLE: Duration = Duration::from_millis(1);
/// A second of reading is worth four minutes of waiting.
const WAIT_PARTS: u32 = 256;
/// Speed of decoding and searching for links.
const BYTES_PER_MICROSECOND: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobKind;
    use crate::sample::plain_transaction;
    use ringcrawl_url::Url;

    /// A frame of zstd may claim any length, here 2^60 bytes.
    #[test]
    fn a_lie_about_its_length_does_not_park_a_response() {
        let limits = ringcrawl_config::Config::default().fetch.limits();
        let mut readings = Readings::default();
        let mut push = |at: u64, id: u64, head: &str, body: &[u8]| {
            let url = Url::parse(&format!("http://s{id}.test/")).expect("a URL");
            let site = SiteKey::new(0, url.host());
            let bytes = [format!("HTTP/1.1 200 OK\r\n{head}\r\n").as_bytes(), body].concat();
            let transaction = Box::new(plain_transaction(&bytes, limits));
            let response = &transaction.response;
            let claimed = http::claimed_bytes(&response.headers, &response.body);
            let job = FetchJob { id, ..FetchJob::new(JobKind::Page, url) };
            let now = Instant::ZERO + Duration::from_secs(at);
            readings.push(now, job, site, transaction, limits.body_bytes_max as u64);
            claimed
        };
        let frame = b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x10rest";
        assert_eq!(push(0, 1, "Content-Encoding: zstd\r\n", frame), 1 << 60);
        for second in [0, 60, 120] {
            push(second, 2 + second, "", b"short");
        }
        let order: Vec<u64> = std::iter::from_fn(|| readings.pop()).map(|(job, _)| job.id).collect();
        assert_eq!(order, [2, 1, 62, 122], "it has waited for what may be read of it");
    }
}
