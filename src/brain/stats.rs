//! What a shard counts while it works, and how others read it.
//!
//! Decides: each counter has one writer, its shard's thread, so `add` is a plain load and store (on x86-64 two moves)
//! and never a locked instruction; a page costs some dozens of them. Readers see each counter as it was a moment ago
//! and may see two counters of different moments: good enough for display, never used for decisions.
//!
//! Invariants: only the owning shard's thread calls `add`, `sub`, `set` on its `ShardStats`; with two writers counts
//! would be lost, though nothing else would break. A shard's counters share no cache line with another's: 128 bytes,
//! because x86-64 fetches lines in pairs.
//! Limits: 64 bits; the largest, bytes on the wire at 100 Gbit/s, lasts for 46 years.
//! Leaves to others: showing them (`cli::progress`, `cli::summary`, `control`).

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::waits::{WAITS, Wait};
use ringcrawl_base::{Blemish, Failure};

/// Ways to fail; the length of `failures`.
pub const FAILURES: usize = Failure::ALL.len();
/// Kinds of blemishes; the length of `blemishes`.
const BLEMISHES: usize = Blemish::ALL.len();
/// Status classes 1xx to 5xx, preceded by all other statuses; the length of `statuses`.
const STATUS_CLASSES: usize = 6;

/// One number, written by one thread and read by all.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount`. For the owning thread alone.
    pub fn add(&self, amount: u64) {
        self.0.store(self.get().wrapping_add(amount), Ordering::Relaxed);
    }

    /// Sets a gauge. For the owning thread alone.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value a moment ago.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    (counters { $($(#[$doc:meta])+ $counter:ident,)+ } gauges { $($(#[$gauge_doc:meta])+ $gauge:ident,)+ }) => {
        /// The counters of one shard.
        #[derive(Debug)]
        #[repr(align(128))]
        pub struct ShardStats {
            $($(#[$doc])+ pub $counter: Counter,)+
            $($(#[$gauge_doc])+ pub $gauge: Counter,)+
            /// Fetches that ended in each `Failure`, by its number.
            pub failures: [Counter; FAILURES],
            /// Responses kept despite a defect, by the number of the `Blemish`.
            pub blemishes: [Counter; BLEMISHES],
            /// Responses by the first digit of their status, 1 to 5; at 0 all others.
            pub statuses: [Counter; STATUS_CLASSES],
            /// Nanoseconds in which the shard had nothing that it might do, by the number of the `Wait`.
            pub waited: [Counter; WAITS],
        }

        /// Counters as numbers: of one shard, of all, or for the time between two snapshots.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])+ pub $counter: u64,)+
            $($(#[$gauge_doc])+ pub $gauge: u64,)+
            /// Fetches that ended in each `Failure`, by its number.
            pub failures: [u64; FAILURES],
            /// Responses kept despite a defect, by the number of the `Blemish`.
            pub blemishes: [u64; BLEMISHES],
            /// Responses by the first digit of their status, 1 to 5; at 0 all others.
            pub statuses: [u64; STATUS_CLASSES],
            /// Nanoseconds in which the shard had nothing that it might do, by the number of the `Wait`.
            pub waited: [u64; WAITS],
        }

        // Written out: arrays have a default up to 32 elements.
        impl Default for ShardStats {
            fn default() -> ShardStats {
                ShardStats {
                    $($counter: Counter::default(),)+
                    $($gauge: Counter::default(),)+
                    failures: [const { Counter(AtomicU64::new(0)) }; FAILURES],
                    blemishes: [const { Counter(AtomicU64::new(0)) }; BLEMISHES],
                    statuses: [const { Counter(AtomicU64::new(0)) }; STATUS_CLASSES],
                    waited: [const { Counter(AtomicU64::new(0)) }; WAITS],
                }
            }
        }

        impl Default for Totals {
            fn default() -> Totals {
                Totals {
                    $($counter: 0,)+
                    $($gauge: 0,)+
                    failures: [0; FAILURES],
                    blemishes: [0; BLEMISHES],
                    statuses: [0; STATUS_CLASSES],
                    waited: [0; WAITS],
                }
            }
        }

        impl ShardStats {
            /// Sets all of them. For the owning thread alone.
            pub fn publish(&self, totals: &Totals) {
                $(self.$counter.set(totals.$counter);)+
                $(self.$gauge.set(totals.$gauge);)+
                for (counter, value) in self.failures.iter().zip(&totals.failures) {
                    counter.set(*value);
                }
                for (counter, value) in self.blemishes.iter().zip(&totals.blemishes) {
                    counter.set(*value);
                }
                for (counter, value) in self.statuses.iter().zip(&totals.statuses) {
                    counter.set(*value);
                }
                for (counter, value) in self.waited.iter().zip(&totals.waited) {
                    counter.set(*value);
                }
            }

            /// The counters now.
            pub fn totals(&self) -> Totals {
                Totals {
                    $($counter: self.$counter.get(),)+
                    $($gauge: self.$gauge.get(),)+
                    failures: std::array::from_fn(|index| self.failures.get(index).map_or(0, Counter::get)),
                    blemishes: std::array::from_fn(|index| self.blemishes.get(index).map_or(0, Counter::get)),
                    statuses: std::array::from_fn(|index| self.statuses.get(index).map_or(0, Counter::get)),
                    waited: std::array::from_fn(|index| self.waited.get(index).map_or(0, Counter::get)),
                }
            }
        }

        impl Totals {
            /// Adds another shard's counters. Gauges add up, too: `idle` becomes the number of idle shards.
            pub fn add(&mut self, other: &Totals) {
                $(self.$counter = self.$counter.saturating_add(other.$counter);)+
                $(self.$gauge = self.$gauge.saturating_add(other.$gauge);)+
                for (sum, value) in self.failures.iter_mut().zip(&other.failures) {
                    *sum = sum.saturating_add(*value);
                }
                for (sum, value) in self.blemishes.iter_mut().zip(&other.blemishes) {
                    *sum = sum.saturating_add(*value);
                }
                for (sum, value) in self.statuses.iter_mut().zip(&other.statuses) {
                    *sum = sum.saturating_add(*value);
                }
                for (sum, value) in self.waited.iter_mut().zip(&other.waited) {
                    *sum = sum.saturating_add(*value);
                }
            }

            /// What happened since `earlier`: counters as differences, gauges as they are now.
            pub fn since(&self, earlier: &Totals) -> Totals {
                let minus = |now: &[u64], then: &[u64], index: usize| {
                    let at = |values: &[u64]| values.get(index).copied().unwrap_or(0);
                    at(now).saturating_sub(at(then))
                };
                Totals {
                    $($counter: self.$counter.saturating_sub(earlier.$counter),)+
                    $($gauge: self.$gauge,)+
                    failures: std::array::from_fn(|index| minus(&self.failures, &earlier.failures, index)),
                    blemishes: std::array::from_fn(|index| minus(&self.blemishes, &earlier.blemishes, index)),
                    statuses: std::array::from_fn(|index| minus(&self.statuses, &earlier.statuses, index)),
                    waited: std::array::from_fn(|index| minus(&self.waited, &earlier.waited, index)),
                }
            }

            /// This run and `later`, which continued the same crawl: counters add up, gauges are those of `later`.
            pub fn followed_by(&self, later: &Totals) -> Totals {
                let mut both = self.clone();
                both.add(later);
                $(both.$gauge = later.$gauge;)+
                // These belong to the crawl, not to a run.
                both.visited = later.visited;
                (both.known_urls, both.known_waiting) = (self.known_urls, self.known_waiting);
                both
            }

            /// Every counter and gauge with its name, in order; failures and status classes are not among them.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($counter), self.$counter),)+ $((stringify!($gauge), self.$gauge),)+].into_iter()
            }
        }
    };
}

counters! {
    counters {
        /// Pages: bodies of 2xx responses in the store.
        pages,
        /// Pages among them whose body equals that of a recently stored page.
        duplicates,
        /// HTTP responses whose head was complete, of pages and of robots.txt.
        responses,
        /// Bytes of HTTP messages as they came, before decoding.
        bytes_wire,
        /// Bytes of bodies after all decoding.
        bytes_decoded,
        /// Bytes written to segments, after compression.
        bytes_stored,
        /// Records written to segments.
        records,
        /// Bodies among them that were stored before, so that a revisit record refers to them.
        revisits,
        /// Responses whose content coding was undone.
        coded,
        /// Links found in pages, whether they are followed or not.
        links,
        /// Sitemaps, feeds and lists that were scanned for links.
        listings,
        /// XML sitemaps among them, and indexes of such.
        sitemaps,
        /// PDF documents, which are not scanned for links.
        pdfs,
        /// Responses that were not stored because of their type (`store.types`).
        not_stored,
        /// Hosts ever seen.
        hosts,
        /// URLs ever seen, each once.
        visited,
        /// URLs sent to other shards.
        exchanged_out,
        /// URLs received from other shards.
        exchanged_in,
        /// URLs not fetched because robots.txt forbids them.
        robots_denied,
        /// Responses of status 4xx to requests for a robots.txt: there is none, so nothing is forbidden, or (429)
        /// everything is for a while.
        robots_4xx,
        /// URLs not fetched because their host or site has used up its budget (`budget`, options of seeds).
        urls_over_budget,
        /// Queries sent to name servers.
        dns_queries,
        /// TCP connections tried, those to further addresses included.
        connections,
        /// Those of them to a further address of a host, because the first did not answer at once (RFC 8305).
        connections_further,
        /// TLS handshakes completed, resumed ones included.
        handshakes,
        /// TLS handshakes that resumed a session.
        resumed,
        /// TLS handshakes that did not, whose chain of certificates was remembered as verified.
        chains_recognized,
        /// Tries of a URL after its first.
        retries,
        /// Operations given to the kernel by the ring.
        ring_operations,
        /// Links not followed because they are too far from a seed (`scope.depth_max`), or sitemaps in too many
        /// indexes (`links.sitemap_nesting_max`). A link to a URL that was accepted before counts neither here nor
        /// among those that are out of scope or blocked.
        links_too_deep,
        /// Links not followed because they are too long (`scope.url_bytes_max`).
        links_too_long,
        /// Redirects not followed because too many came before (`scope.redirects_max`).
        redirects_too_many,
        /// Seeds that redirect out of scope, or whose page does so with a refresh.
        seeds_led_outside,
        /// Those of them that did so with a page.
        seed_pages_led_outside,
        /// Links beyond `links.page_links_max` of a page, or `links.sitemap_links_max` of a sitemap, each URL once,
        /// and those not resolved because too many bytes of links came before them.
        links_dropped,
        /// Links whose weight begins lower because their page advises against them (`links.nofollow`,
        /// `links.from_noindex`).
        links_deferred,
        /// Links not followed for the same reason.
        links_advised_against,
        /// Links not followed because they lead to other formats of their page (`links.alternates`).
        links_other_formats,
        /// Links not followed because the page's links are too long together (`links.page_link_bytes_max`,
        /// `links.page_link_ratio_max`, `links.sitemap_link_bytes_max`).
        links_over_bytes,
        /// Links not followed because they are out of scope (`scope.follow`, `scope.rules`, `scope.url_bytes_max`).
        links_out_of_scope,
        /// Links that lead to another shard's URLs, each once a page, however they are handled (`exchange.mode`).
        links_crossing,
        /// Links to URLs of other shards that were dropped (`exchange.mode = "firewall"`).
        links_crossing_dropped,
        /// Links to other shards' URLs that were not sent because they had been sent before.
        links_sent_before,
        /// Links that left the scope and are missing from the list of them, because a shard found too many
        /// (`links.external`).
        external_unlisted,
        /// Links not followed because they, or their hosts, are on a list (`scope.block`).
        links_blocked,
        /// URLs set aside because the visited set is full (`visited.urls_max`), their site has used up its share of
        /// it, or their host has URLs on disk and memory for the places of blocks is short (`frontier.ram_bytes_max`).
        set_aside,
        /// Those of them whose site has used up its share.
        over_share,
        /// Answers of name servers, including errors other than REFUSED.
        dns_answers,
        /// URLs that are final, however they ended.
        over,
        /// The shards' total time in milliseconds.
        shard_millis,
        /// The part of it in which the shard's thread used its CPU.
        shard_busy_millis,
    }
    gauges {
        /// Shards that read the logs of earlier runs.
        reading_logs,
        /// URLs that the crawl knew when this run began.
        known_urls,
        /// Those of them that were waiting.
        known_waiting,
        /// URLs that are missing from the crawl's logs, as known when this run began.
        urls_lost,
        /// Pages whose records are in missing segments.
        records_elsewhere,
        /// Hosts that have URLs waiting or wait for their delay; those beyond `frontier.hosts_max` are not counted.
        hosts_left,
        /// Those of them that wait for a retry.
        hosts_retried,
        /// URLs waiting in the frontier, in memory and on disk.
        queued,
        /// Those of them that wait in the lanes of kinds with a lowered weight.
        queued_lowered,
        /// URLs that went to such a lane because similar pages were not worth their fetch, or were advised against.
        urls_lowered,
        /// Turns of hosts whose sites had as many pages as their linking sites allow (`budget.site_pages_free`).
        turns_over_allowance,
        /// Requests of hosts and sites without a budget because there was no room (`budget.ram_bytes_max`).
        budget_uncounted,
        /// Fetches in flight.
        in_flight,
        /// Lookups of names in flight.
        lookups,
        /// Connections that are open, in use or kept.
        connections_open,
        /// Bytes that wait to be written to disk.
        disk_backlog_bytes,
        /// 1 if the shard has nothing to do and nothing to wait for, else 0; summed over shards: how many are idle.
        idle,
    }
}

/// URLs of a crawl, and their states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Known {
    /// URLs that were accepted, each once.
    pub urls: u64,
    /// Those of them that wait or are being fetched.
    pub waiting: u64,
    /// Those of them that are final, however they ended.
    pub over: u64,
}

impl Totals {
    /// What the crawl knew when this run began.
    pub fn known_before(&self) -> Known {
        let over = self.known_urls.saturating_sub(self.known_waiting);
        Known { urls: self.known_urls, waiting: self.known_waiting, over }
    }

    /// What the whole crawl knows now.
    pub fn known(&self) -> Known {
        let over = self.known_before().over.saturating_add(self.over);
        Known { urls: self.visited, waiting: self.visited.saturating_sub(over), over }
    }

    /// Counts a URL that ended in `failure`. What robots.txt forbids, or is over a budget, is counted as such, and
    /// not as a failure.
    pub fn fail(&mut self, failure: Failure) {
        if failure == Failure::RobotsDenied {
            self.robots_denied += 1;
        } else if failure == Failure::OverBudget {
            self.urls_over_budget += 1;
        } else if let Some(count) = self.failures.get_mut(failure as usize) {
            *count += 1;
        }
    }

    /// Counts a defect of a response that is kept.
    pub fn blemish(&mut self, blemish: Blemish) {
        if let Some(count) = self.blemishes.get_mut(blemish as usize) {
            *count += 1;
        }
    }

    /// Counts a response by its status, in `statuses` and `responses`.
    pub fn status(&mut self, status: u16) {
        let class = usize::from(status / 100);
        let class = if class < STATUS_CLASSES { class } else { 0 };
        if let Some(count) = self.statuses.get_mut(class) {
            *count += 1;
        }
        self.responses += 1;
    }

    /// The share of the shards' time in which they did nothing; `None` if there was no time.
    pub fn idle_share(&self) -> Option<f64> {
        let time = (self.shard_millis > 0).then_some(self.shard_millis as f64)?;
        // While its loop sleeps its fetches may work, and other threads may have its CPU.
        let pauses = self.waited.iter().sum::<u64>() as f64 / 1e6;
        Some((1.0 - self.shard_busy_millis as f64 / time).clamp(0.0, 1.0).min(pauses / time))
    }

    /// What they waited for during it, as shares of all their time.
    pub fn waited(&self) -> impl Iterator<Item = (Wait, f64)> + '_ {
        let each = self.idle_share().unwrap_or_default() / self.waited.iter().sum::<u64>().max(1) as f64;
        Wait::ALL.iter().zip(&self.waited).map(move |(wait, nanos)| (*wait, *nanos as f64 * each))
    }

    /// The sum over shards.
    pub fn sum<'a>(shards: impl IntoIterator<Item = &'a Totals>) -> Totals {
        let mut sum = Totals::default();
        shards.into_iter().for_each(|shard| sum.add(shard));
        sum
    }

    /// Failures worth investigating: all but those that we caused by stopping.
    pub fn errors(&self) -> u64 {
        self.failed().saturating_sub(self.failures.get(Failure::Aborted as usize).copied().unwrap_or(0))
    }

    /// All failures.
    pub fn failed(&self) -> u64 {
        self.failures.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The count of each blemish that occurred, in the order of `Blemish::ALL`.
    pub fn blemishes_by_name(&self) -> impl Iterator<Item = (Blemish, u64)> + '_ {
        Blemish::ALL.iter().copied().zip(self.blemishes.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// The count of each failure that occurred, in the order of `Failure::ALL`.
    pub fn failures_by_name(&self) -> impl Iterator<Item = (Failure, u64)> + '_ {
        Failure::ALL.iter().copied().zip(self.failures.iter().copied()).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests;
