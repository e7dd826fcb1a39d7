//! What a run came to: a table for people, one JSON object for programs.
//!
//! Decides: rates are over the whole run, start and end included, because that is what a bill or a plan is made
//! from; "per core" divides by the number of shards, one pinned thread each. JSON names are stable, carry their
//! units, and are all there in every run, zero or null when there is nothing to say, so that nobody has to guess
//! whether a missing name means zero.
//!
//! Invariants: nothing is read here, neither clock nor counter: the numbers are handed in.
//! Limits: numbers are shown in full up to `u64`; ratios are null when there is nothing to divide by.
//! Leaves to others: measuring (`stats`, `boot`), printing (`cli::crawl`, `cli::demo`).

use std::fmt::Write as _;

use serde::Serialize;

use crate::outcome::{Blemish, Failure};
use crate::stats::Totals;
use crate::time::Duration;

/// The numbers of a finished run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Why it ended, in a word or a few: "finished", "pages_max reached", "stopped by signal".
    pub ended: String,
    /// Counters of all shards together.
    pub totals: Totals,
    /// Shards, one thread and core each.
    pub shards: usize,
    /// From the first seed to the last page.
    pub elapsed: Duration,
    /// Outages of our own network, and how long they lasted together.
    pub outages: (u64, Duration),
    /// Most memory held at once (resident set), in bytes; `None`: not measured.
    pub rss_bytes_max: Option<u64>,
    /// CPU time of all threads, in user and kernel mode; `None`: not measured.
    pub cpu_time: Option<Duration>,
}

/// The summary as a program reads it. Names are part of the command line's promise: add, never rename.
#[derive(Debug, Serialize)]
pub struct SummaryJson {
    /// Why it ended.
    pub ended: String,
    /// Length of the run in seconds.
    pub elapsed_seconds: f64,
    /// Number of shards.
    pub shards: usize,
    /// Pages a second.
    pub pages_per_second: Option<f64>,
    /// Pages a second and shard.
    pub pages_per_second_per_core: Option<f64>,
    /// Every counter under its own name (`stats::Totals`).
    #[serde(flatten)]
    pub counters: serde_json::Map<String, serde_json::Value>,
    /// Responses by status class, `1xx` to `5xx` and `other`.
    pub statuses: serde_json::Map<String, serde_json::Value>,
    /// Fetches that ended in a failure, each kind by name.
    pub failures: serde_json::Map<String, serde_json::Value>,
    /// Responses that were kept with something wrong, each kind by name; one response may have several.
    pub blemishes: serde_json::Map<String, serde_json::Value>,
    /// Outages of our own network.
    pub outages: u64,
    /// How long they lasted together, in seconds.
    pub outage_seconds: f64,
    /// Decoded bytes a stored byte.
    pub stored_ratio: Option<f64>,
    /// CPU time in seconds.
    pub cpu_seconds: Option<f64>,
    /// CPU time of a page, in microseconds.
    pub cpu_micros_per_page: Option<f64>,
    /// Peak resident set in bytes.
    pub rss_bytes_max: Option<u64>,
}

impl Summary {
    /// Pages a second; `None` for a run of no time.
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
            failures: Failure::ALL
                .iter()
                .zip(&totals.failures)
                .map(|(failure, count)| (failure.as_str().to_owned(), (*count).into()))
                .collect(),
            blemishes: Blemish::ALL
                .iter()
                .zip(&totals.blemishes)
                .map(|(blemish, count)| (blemish.as_str().to_owned(), (*count).into()))
                .collect(),
            outages: self.outages.0,
            outage_seconds: self.outages.1.as_secs_f64(),
            stored_ratio: ratio(totals.bytes_decoded as f64, totals.bytes_stored as f64),
            cpu_seconds: self.cpu_time.map(|time| time.as_secs_f64()),
            cpu_micros_per_page: self.cpu_per_page().map(|seconds| seconds * 1e6),
            rss_bytes_max: self.rss_bytes_max,
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
        rows.count(
            "hosts",
            totals.hosts,
            ratio(totals.pages as f64, totals.hosts as f64).map(|each| format!("{} pages each", rounded(each))),
        );
        rows.count("URLs seen", totals.visited, None);
        rows.count("URLs left", totals.queued, None);
        rows.count("responses", totals.responses, None);
        for (name, count) in status_classes(totals).filter(|(_, count)| *count > 0) {
            rows.count(&format!("  {name}"), count, share(count, totals.responses));
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
        let blemishes: u64 = totals.blemishes.iter().sum();
        rows.some("blemishes", blemishes, Some("of responses that were kept".to_owned()));
        for (blemish, count) in totals.blemishes_by_name() {
            rows.count(&format!("  {}", blemish.as_str()), count, share(count, blemishes));
        }
        for (name, count) in [
            ("links too deep", totals.links_too_deep),
            ("links too long", totals.links_too_long),
            ("links dropped", totals.links_dropped),
            ("redirects too many", totals.redirects_too_many),
            ("sitemaps, feeds, lists", totals.listings),
            ("PDFs not looked into", totals.pdfs),
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
        rows.some("URLs exchanged", totals.exchanged_out, None);
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
        if let Some(rss) = self.rss_bytes_max {
            rows.text("peak memory", bytes(rss), None);
        }
        let ended = if self.ended.is_empty() { "ended" } else { &self.ended };
        format!("{ended} after {}\n\n{}", clock(self.elapsed), rows.align())
    }

    fn per_core(&self) -> Option<f64> {
        ratio(self.pages_per_second()?, self.shards as f64)
    }

    /// CPU seconds of a page.
    fn cpu_per_page(&self) -> Option<f64> {
        ratio(self.cpu_time?.as_secs_f64(), self.totals.pages as f64)
    }
}

/// Name, number and remark, one row each.
#[derive(Default)]
pub(super) struct Rows(Vec<(String, String, String)>);

impl Rows {
    fn count(&mut self, name: &str, count: u64, remark: Option<String>) {
        self.text(name, grouped(count), remark);
    }

    /// A row only when there is something to count.
    fn some(&mut self, name: &str, count: u64, remark: Option<String>) {
        if count > 0 {
            self.count(name, count, remark);
        }
    }

    pub(super) fn text(&mut self, name: &str, value: String, remark: Option<String>) {
        self.0.push((name.to_owned(), value, remark.unwrap_or_default()));
    }

    /// Names to the left, numbers to the right.
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

/// `12,345,678`
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate: grouped from 100 on, with one digit below.
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

/// `part` by `whole`; `None` when that says nothing.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole).filter(|ratio| ratio.is_finite())
}

fn status_classes(totals: &Totals) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    // The array has "no class" in front; people look for it last.
    let counts = totals.statuses.iter().skip(1).chain(totals.statuses.first());
    ["1xx", "2xx", "3xx", "4xx", "5xx", "other"].into_iter().zip(counts.copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        let mut totals = Totals {
            pages: 12_345,
            responses: 13_000,
            bytes_wire: 310_000_000,
            bytes_decoded: 1_234_567_890,
            bytes_stored: 98_765_432,
            records: 37_035,
            hosts: 321,
            visited: 45_678,
            queued: 1_000_000,
            exchanged_out: 20_000,
            exchanged_in: 20_000,
            connections: 1_300,
            handshakes: 800,
            resumed: 600,
            chains_recognized: 50,
            retries: 7,
            statuses: [1, 0, 12_345, 300, 350, 4],
            ..Totals::default()
        };
        for (failure, count) in [(Failure::DnsNotFound, 30), (Failure::RobotsDenied, 70)] {
            if let Some(slot) = totals.failures.get_mut(failure as usize) {
                *slot = count;
            }
        }
        Summary {
            ended: "finished".into(),
            totals,
            shards: 2,
            elapsed: Duration::from_millis(10_000),
            outages: (2, Duration::from_millis(4_500)),
            rss_bytes_max: Some(123_456_789),
            cpu_time: Some(Duration::from_millis(15_000)),
        }
    }

    #[test]
    fn people_read_a_table() {
        let expected = "\
finished after 00:10

  pages               12,345  1,235/s, 617/s per core (2 cores)
  hosts                  321  38.5 pages each
  URLs seen           45,678
  URLs left        1,000,000
  responses           13,000
    2xx               12,345  95.0 %
    3xx                  300  2.3 %
    4xx                  350  2.7 %
    5xx                    4  0.0 %
    other                  1  0.0 %
  failures               100  0.8 % of outcomes
    dns-not-found         30  30.0 %
    robots-denied         70  70.0 %
  retries                  7
  outages                  2  00:04 without the network
  connections          1,300  10.0 responses each
  TLS handshakes         800  75.0 % resumed
    chains known          50  25.0 % of those not resumed
  URLs exchanged      20,000
  on the wire       310.0 MB  31.0 MB/s
  decoded             1.2 GB
  stored             98.8 MB  12.5 : 1, 37,035 records
  CPU time            15.0 s  1215 µs a page, 75 % of 2 cores
  peak memory       123.5 MB
";
        assert_eq!(summary().human(), expected);
    }

    #[test]
    fn an_empty_run_divides_by_nothing() {
        let empty = Summary::default();
        let expected = "\
ended after 00:00

  pages          0
  hosts          0
  URLs seen      0
  URLs left      0
  responses      0
  failures       0
  on the wire  0 B
  decoded      0 B
  stored       0 B
";
        assert_eq!(empty.human(), expected);
        let json = serde_json::to_value(empty.json()).expect("plain numbers");
        assert_eq!(json.get("pages_per_second"), Some(&serde_json::Value::Null));
        assert_eq!(json.pointer("/failures/dns-timeout"), Some(&0.into()));
    }

    #[test]
    fn programs_read_stable_names() {
        let json = serde_json::to_value(summary().json()).expect("plain numbers");
        let names: Vec<&String> = json.as_object().expect("an object").keys().collect();
        let expected = "ended elapsed_seconds shards pages_per_second pages_per_second_per_core pages duplicates responses \
            bytes_wire bytes_decoded bytes_stored records coded links listings pdfs not_stored hosts visited exchanged_out exchanged_in robots_denied \
            dns_queries connections connections_further handshakes resumed chains_recognized retries ring_operations links_too_deep links_too_long \
            redirects_too_many links_dropped links_out_of_scope set_aside dns_answers queued in_flight hosts_active lookups connections_open disk_backlog_bytes idle statuses failures blemishes \
            outages outage_seconds stored_ratio cpu_seconds cpu_micros_per_page rss_bytes_max";
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(names, expected);
        for (pointer, value) in [
            ("/pages", 12_345.0),
            ("/pages_per_second", 1_234.5),
            ("/pages_per_second_per_core", 617.25),
            ("/statuses/2xx", 12_345.0),
            ("/statuses/other", 1.0),
            ("/failures/robots-denied", 70.0),
            ("/outages", 2.0),
            ("/outage_seconds", 4.5),
            ("/cpu_seconds", 15.0),
        ] {
            assert_eq!(json.pointer(pointer).and_then(serde_json::Value::as_f64), Some(value), "{pointer}");
        }
    }

    #[test]
    fn numbers_as_people_write_them() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.0, 99.94, 99.96, 1234.5].map(rounded), ["0.0", "99.9", "100", "1,235"]);
        assert_eq!(
            [0, 999, 1_000, 999_949, 999_950, u64::MAX].map(bytes),
            ["0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "18446.7 PB"]
        );
        assert_eq!(
            [0, 59, 60, 3_599, 3_600, 360_000].map(|s| clock(Duration::from_secs(s))),
            ["00:00", "00:59", "01:00", "59:59", "1:00:00", "100:00:00"]
        );
    }
}
