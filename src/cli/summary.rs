//! The results of a run: a table for people, one JSON object for programs.
//!
//! Decides: fetch counters cover this run. URL totals cover the whole crawl, which may have had earlier runs. URLs
//! that robots.txt forbids have a line of their own: they are no failure. Rates are over the whole run, start and end
//! included, because bills and plans are based on that. "per core" divides by the number of shards, one pinned thread
//! each. JSON names are stable, carry their units, and are always present, zero or null when there is no value. A
//! missing name never means zero.
//!
//! Invariants: this module reads neither clock nor counter: the numbers are passed in.
//! Limits: numbers are shown in full up to `u64`; ratios are null when the divisor is zero.
//! The summary ends with what you can do: what ended without a page, by cause, and the commands that list it
//! (`causes`).
//! Leaves to others: measuring (`stats`, `boot`), printing (`cli::crawl`, `cli::demo`).

use std::fmt::Write as _;

use serde::Serialize;

use super::causes::CauseLines;
use ringcrawl_base::grouped;
use ringcrawl_base::time::Duration;
use ringcrawl_base::{Blemish, Failure};
use ringcrawl_brain::stats::{Known, Totals};

/// The numbers of a finished run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Why it ended, in a few words: "finished", "pages_max reached", "stopped by signal".
    pub ended: String,
    /// Counters of all shards together.
    pub totals: Totals,
    /// Shards, one thread and core each.
    pub shards: usize,
    /// Pages of each shard, in order; empty: not known.
    pub pages_by_shard: Vec<u64>,
    /// From the first seed to the last page.
    pub elapsed: Duration,
    /// Outages of our own network, and their total duration.
    pub outages: (u64, Duration),
    /// The last failure at a host that has not recovered since, in a sentence.
    pub last_trouble: Option<String>,
    /// Peak memory (resident set) in bytes; `None`: not measured.
    pub rss_bytes_max: Option<u64>,
    /// CPU time of all threads, in user and kernel mode; `None`: not measured.
    pub cpu_time: Option<Duration>,
    /// What ended without a page; empty: nothing, or the logs were not read.
    pub(super) causes: CauseLines,
}

/// The summary in JSON. The names are part of the command line's stable interface: add, never rename.
#[derive(Debug, Serialize)]
pub struct SummaryJson {
    /// Why it ended.
    pub ended: String,
    /// Length of the run in seconds.
    pub elapsed_seconds: f64,
    /// Number of shards.
    pub shards: usize,
    /// Pages per second.
    pub pages_per_second: Option<f64>,
    /// Pages per second and shard.
    pub pages_per_second_per_core: Option<f64>,
    /// Every counter under its own name (`stats::Totals`).
    #[serde(flatten)]
    pub counters: serde_json::Map<String, serde_json::Value>,
    /// Responses by status class, `1xx` to `5xx` and `other`.
    pub statuses: serde_json::Map<String, serde_json::Value>,
    /// URLs of the whole crawl, at the end of this run.
    pub crawl: Known,
    /// URLs of the whole crawl, at the beginning of this run.
    pub crawl_before: Known,
    /// Fetches that ended in a failure, each kind by name. URLs that robots.txt forbids (`robots_denied`) and URLs
    /// over a budget (`urls_over_budget`) are not failures.
    pub failures: serde_json::Map<String, serde_json::Value>,
    /// Responses that were kept despite a defect, each kind by name; one response may have several.
    pub blemishes: serde_json::Map<String, serde_json::Value>,
    /// Outages of our own network.
    pub outages: u64,
    /// Their total duration in seconds.
    pub outage_seconds: f64,
    /// The last failure at a host that has not recovered since.
    pub last_trouble: Option<String>,
    /// The share of the shards' time in which they were idle.
    pub idle_share: Option<f64>,
    /// What they waited for in that time, by name, as shares of their time (`waits::Wait`).
    pub waited: serde_json::Map<String, serde_json::Value>,
    /// Decoded bytes per stored byte.
    pub stored_ratio: Option<f64>,
    /// CPU time in seconds.
    pub cpu_seconds: Option<f64>,
    /// CPU time per page, in microseconds.
    pub cpu_micros_per_page: Option<f64>,
    /// Peak resident set in bytes.
    pub rss_bytes_max: Option<u64>,
    /// URLs sent to other shards, per page.
    pub exchanged_per_page: Option<f64>,
    /// Pages of the busiest shard, divided by those of the average shard.
    pub balance: Option<f64>,
    /// What ended without a page in the whole crawl, by cause; hosts with the most pages. Empty if the crawl has more
    /// URLs than are read at its end (`urls --causes` reads them).
    #[serde(flatten)]
    pub(super) causes: CauseLines,
}

impl Summary {
    /// Pages per second; `None` if the run took no time.
    pub fn pages_per_second(&self) -> Option<f64> {
        ratio(self.totals.pages as f64, self.elapsed.as_secs_f64())
    }

    /// For programs.
    pub fn json(&self) -> SummaryJson {
        let totals = &self.totals;
        SummaryJson {
            ended: self.ended.clone(),
            elapsed_seconds: self.elapsed.as_secs_f64(),
            shards: self.shards,
            pages_per_second: self.pages_per_second(),
            pages_per_second_per_core: self.per_core(),
            counters: totals.named().map(|(name, value)| (name.to_owned(), value.into())).collect(),
            statuses: status_classes(totals).map(|(name, count)| (name.to_owned(), count.into())).collect(),
            crawl: totals.known(),
            crawl_before: totals.known_before(),
            failures: Failure::ALL
                .iter()
                .zip(&totals.failures)
                .filter(|(failure, _)| !matches!(failure, Failure::RobotsDenied | Failure::OverBudget))
                .map(|(failure, count)| (failure.as_str().to_owned(), (*count).into()))
                .collect(),
            blemishes: Blemish::ALL
                .iter()
                .zip(&totals.blemishes)
                .map(|(blemish, count)| (blemish.as_str().to_owned(), (*count).into()))
                .collect(),
            outages: self.outages.0,
            outage_seconds: self.outages.1.as_secs_f64(),
            last_trouble: self.last_trouble.clone(),
            idle_share: totals.idle_share(),
            waited: totals.waited().map(|(wait, share)| (wait.as_str().to_owned(), share.into())).collect(),
            stored_ratio: ratio(totals.bytes_decoded as f64, totals.bytes_stored as f64),
            cpu_seconds: self.cpu_time.map(|time| time.as_secs_f64()),
            cpu_micros_per_page: self.cpu_per_page().map(|seconds| seconds * 1e6),
            rss_bytes_max: self.rss_bytes_max,
            exchanged_per_page: self.exchanged_per_page(),
            balance: self.balance(),
            causes: self.causes.clone(),
        }
    }

    /// For people: an aligned table that ends in a line break.
    pub fn human(&self) -> String {
        let totals = &self.totals;
        let share =
            |part: u64, whole: u64| ratio(part as f64 * 100.0, whole as f64).map(|share| format!("{share:.1} %"));
        let mut rows = Rows::default();
        let rate = self.pages_per_second().zip(self.per_core());
        let cores = if self.shards == 1 { "core" } else { "cores" };
        rows.count(
            "pages",
            totals.pages,
            rate.map(|(all, one)| format!("{}/s, {}/s per core ({} {cores})", rounded(all), rounded(one), self.shards)),
        );
        rows.some("  duplicates", totals.duplicates, share(totals.duplicates, totals.pages));
        let each = ratio(totals.pages as f64, totals.hosts as f64).map(|each| format!("{} pages each", rounded(each)));
        let left = (totals.hosts_left > 0).then(|| format!("{} left", grouped(totals.hosts_left)));
        let notes: Vec<String> = each.into_iter().chain(left).collect();
        rows.count("hosts", totals.hosts, (!notes.is_empty()).then(|| notes.join(", ")));
        let (crawl, before) = (totals.known(), totals.known_before());
        let earlier = |count: u64| (before.urls > 0).then(|| format!("{} before this run", grouped(count)));
        rows.count("URLs of the crawl", crawl.urls, earlier(before.urls));
        rows.count("  over", crawl.over, earlier(before.over));
        rows.count("  waiting", crawl.waiting, earlier(before.waiting));
        rows.some("  lost", totals.urls_lost, Some("lost in damaged logs, unless found again".to_owned()));
        let elsewhere = "pages in missing segments; they are not fetched again".to_owned();
        rows.some("  records elsewhere", totals.records_elsewhere, Some(elsewhere));
        rows.count("responses", totals.responses, None);
        for (name, count) in status_classes(totals).filter(|(_, count)| *count > 0) {
            rows.count(&format!("  {name}"), count, share(count, totals.responses));
            if name == "4xx" {
                let remark = "responses to robots.txt requests: none exists, or not for us".to_owned();
                rows.some("    of robots.txt", totals.robots_4xx, Some(remark));
            }
        }
        let failed = totals.failed();
        rows.count(
            "failures",
            failed,
            share(failed, failed.saturating_add(totals.responses)).map(|share| format!("{share} of outcomes")),
        );
        for (failure, count) in totals.failures_by_name() {
            rows.count(&format!("  {}", failure.as_str()), count, share(count, failed));
        }
        if let Some(trouble) = &self.last_trouble {
            rows.text("last problem", String::new(), Some(trouble.clone()));
        }
        rows.some("denied by robots.txt", totals.robots_denied, None);
        let blemishes: u64 = totals.blemishes.iter().sum();
        rows.some("blemishes", blemishes, Some("of responses that were kept".to_owned()));
        for (blemish, count) in totals.blemishes_by_name() {
            rows.count(&format!("  {}", blemish.as_str()), count, share(count, blemishes));
        }
        for (name, count, keys) in [
            ("links dropped", totals.links_dropped, "links.page_links_max or sitemap_links_max"),
            (
                "links over bytes",
                totals.links_over_bytes,
                "links.page_link_bytes_max, page_link_ratio_max or sitemap_link_bytes_max",
            ),
        ] {
            rows.some(name, count, Some(format!("beyond {keys}; the pages are listed above")));
        }
        for (name, count, key) in [
            ("links too deep", totals.links_too_deep, "scope.depth_max or links.sitemap_nesting_max"),
            ("links too long", totals.links_too_long, "scope.url_bytes_max"),
            ("redirects too many", totals.redirects_too_many, "scope.redirects_max"),
        ] {
            rows.some(name, count, Some(format!("beyond {key}")));
        }
        for (name, count) in [
            ("links across shards", totals.links_crossing),
            ("  dropped", totals.links_crossing_dropped),
            ("  sent before", totals.links_sent_before),
            ("links blocked", totals.links_blocked),
            ("links deferred", totals.links_deferred),
            ("URLs of lowered kinds", totals.urls_lowered),
            ("turns over allowance", totals.turns_over_allowance),
            ("links advised against", totals.links_advised_against),
            ("links to other formats", totals.links_other_formats),
            ("links not listed", totals.external_unlisted),
            ("seeds redirected out of scope", totals.seeds_led_outside),
            ("over their site's share", totals.over_share),
            ("over budget", totals.urls_over_budget),
            ("without a budget", totals.budget_uncounted),
            ("sitemaps, feeds, lists", totals.listings),
            ("XML sitemaps", totals.sitemaps),
            ("PDFs not searched for links", totals.pdfs),
            ("not stored by type", totals.not_stored),
        ] {
            rows.some(name, count, None);
        }
        rows.some("retries", totals.retries, None);
        let (outages, outage_time) = self.outages;
        rows.some("outages", outages, Some(format!("{} without the network", clock(outage_time))));
        rows.some(
            "connections",
            totals.connections,
            ratio(totals.responses as f64, totals.connections as f64).map(|each| format!("{each:.1} responses each")),
        );
        rows.some("  at another address", totals.connections_further, None);
        rows.some(
            "TLS handshakes",
            totals.handshakes,
            share(totals.resumed, totals.handshakes).map(|share| format!("{share} resumed")),
        );
        let full = totals.handshakes.saturating_sub(totals.resumed);
        rows.some(
            "  chains known",
            totals.chains_recognized,
            share(totals.chains_recognized, full).map(|share| format!("{share} of those not resumed")),
        );
        rows.some("DNS queries", totals.dns_queries, None);
        let each = self.exchanged_per_page().map(|each| format!("{each:.3} a page"));
        rows.some("URLs exchanged", totals.exchanged_out, each);
        if let Some(balance) = self.balance().filter(|_| self.pages_by_shard.len() > 1) {
            let remark = Some("pages of the busiest shard, over the average".to_owned());
            rows.text("balance", format!("{balance:.2}"), remark);
        }
        rows.text(
            "on the wire",
            bytes(totals.bytes_wire),
            ratio(totals.bytes_wire as f64, self.elapsed.as_secs_f64()).map(|rate| format!("{}/s", bytes(rate as u64))),
        );
        rows.text("decoded", bytes(totals.bytes_decoded), None);
        rows.text(
            "stored",
            bytes(totals.bytes_stored),
            ratio(totals.bytes_decoded as f64, totals.bytes_stored as f64)
                .map(|ratio| format!("{ratio:.1} : 1, {} records", grouped(totals.records))),
        );
        if let Some(time) = self.cpu_time {
            let busy = ratio(time.as_secs_f64() * 100.0, self.elapsed.as_secs_f64() * self.shards as f64);
            let page = self.cpu_per_page().map(|seconds| format!("{:.0} µs a page", seconds * 1e6));
            let notes: Vec<String> =
                page.into_iter().chain(busy.map(|busy| format!("{busy:.0} % of {} {cores}", self.shards))).collect();
            rows.text(
                "CPU time",
                format!("{:.1} s", time.as_secs_f64()),
                (!notes.is_empty()).then(|| notes.join(", ")),
            );
        }
        if let Some(idle) = totals.idle_share() {
            let percent = |share: f64| format!("{:.1} %", share * 100.0);
            rows.text("waited", percent(idle), Some("of the shards' time, for:".to_owned()));
            for (wait, share) in totals.waited().filter(|(_, share)| *share >= WAITED_MIN) {
                rows.text(&format!("  {}", wait.as_str()), percent(share), None);
            }
        }
        if let Some(rss) = self.rss_bytes_max {
            rows.text("peak memory", bytes(rss), None);
        }
        let ended = if self.ended.is_empty() { "ended" } else { &self.ended };
        let run = if before.urls > 0 { "; this run resumed a crawl" } else { "" };
        format!("{ended} after {}{run}\n\n{}{}", clock(self.elapsed), rows.align(), self.causes.human())
    }

    fn exchanged_per_page(&self) -> Option<f64> {
        ratio(self.totals.exchanged_out as f64, self.totals.pages as f64)
    }

    fn balance(&self) -> Option<f64> {
        let most = self.pages_by_shard.iter().max()?;
        let all: u64 = self.pages_by_shard.iter().sum();
        ratio(*most as f64 * self.pages_by_shard.len() as f64, all as f64)
    }

    fn per_core(&self) -> Option<f64> {
        ratio(self.pages_per_second()?, self.shards as f64)
    }

    /// CPU seconds per page.
    fn cpu_per_page(&self) -> Option<f64> {
        ratio(self.cpu_time?.as_secs_f64(), self.totals.pages as f64)
    }
}

/// Rows of name, number and remark.
#[derive(Default)]
pub(super) struct Rows(Vec<(String, String, String)>);

impl Rows {
    fn count(&mut self, name: &str, count: u64, remark: Option<String>) {
        self.text(name, grouped(count), remark);
    }

    /// Adds a row only if the count is not zero.
    fn some(&mut self, name: &str, count: u64, remark: Option<String>) {
        if count > 0 {
            self.count(name, count, remark);
        }
    }

    pub(super) fn text(&mut self, name: &str, value: String, remark: Option<String>) {
        self.0.push((name.to_owned(), value, remark.unwrap_or_default()));
    }

    /// Aligns names to the left and numbers to the right.
    pub(super) fn align(&self) -> String {
        let width = |part: fn(&(String, String, String)) -> &str| {
            self.0.iter().map(|row| part(row).chars().count()).max().unwrap_or(0)
        };
        let (names, values) = (width(|row| &row.0), width(|row| &row.1));
        let mut text = String::new();
        for (name, value, remark) in &self.0 {
            let line = format!("  {name:<names$}  {value:>values$}  {remark}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

/// Shares of the time below this are not printed.
const WAITED_MIN: f64 = 0.001;

/// Formats a rate: grouped from 100 on, with one decimal digit below.
pub(crate) fn rounded(number: f64) -> String {
    if number >= 99.95 { grouped(number.round() as u64) } else { format!("{number:.1}") }
}

/// `12.3 MB`: decimal, as networks and disks are sold.
pub(crate) fn bytes(number: u64) -> String {
    let mut amount = number as f64;
    for unit in ["B", "kB", "MB", "GB", "TB"] {
        if amount < 999.95 {
            return if unit == "B" { format!("{number} B") } else { format!("{amount:.1} {unit}") };
        }
        amount /= 1_000.0;
    }
    format!("{amount:.1} PB")
}

/// `1:02:03`, and `02:03` below an hour.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes:02}:{seconds:02}") }
}

/// `part` divided by `whole`; `None` when the ratio is meaningless.
pub(crate) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole).filter(|ratio| ratio.is_finite())
}

fn status_classes(totals: &Totals) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    // The array has "no class" in front; people look for it last.
    let counts = totals.statuses.iter().skip(1).chain(totals.statuses.first());
    ["1xx", "2xx", "3xx", "4xx", "5xx", "other"].into_iter().zip(counts.copied())
}

#[cfg(test)]
mod tests;
