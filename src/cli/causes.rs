//! What ended without a page, by cause, and what you can do about it.
//!
//! Decides: each 4xx status is a cause of its own, all 5xx together are one, and so is each failure. Each cause comes
//! with its number of URLs and hosts, the first URL, the page that linked to it, what the cause means, and the
//! command that lists the rest. The most frequent come first. URLs that robots.txt forbids are included; URLs that
//! the scope or a budget excluded are not, as that is what the operator asked for. Everything is read from the logs,
//! so it covers the whole crawl. robots.txt files themselves are never included.
//! The largest hosts are those with the most pages. The slowest are those with the longest time from page to page,
//! whatever it was spent on (delays, retries, slow responses, a pause between two runs), among hosts with at least
//! [`SLOW_PAGES_MIN`] pages.
//! Limits: 8 bytes for each host of a cause, and one URL; [`TOLD_MAX`] causes in text.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::crawl_logs::CrawlLogs;
use super::why::meaning;
use ringcrawl_base::Failure;
use ringcrawl_base::grouped;
use ringcrawl_brain::log::{Listed, ListingStep, UrlState};
use ringcrawl_url::Url;

/// What the logs say of all causes.
#[derive(Clone, Debug, Default)]
pub(super) struct Causes {
    found: BTreeMap<Cause, CauseTally>,
    hosts: HashMap<Box<str>, Pages>,
}

/// The pages (2xx) of a host.
#[derive(Clone, Copy, Debug)]
struct Pages {
    count: u64,
    /// When the first and the last of them ended, in seconds since 1970.
    first: u64,
    last: u64,
}

impl Pages {
    fn add(&mut self, seconds: u64) {
        self.count += 1;
        (self.first, self.last) = (self.first.min(seconds), self.last.max(seconds));
    }

    /// Seconds from page to page; `None` if the host has too few pages, or less than a second passed.
    fn seconds_each(&self) -> Option<f64> {
        let each = (self.last - self.first) as f64 / self.count.saturating_sub(1).max(1) as f64;
        (self.count >= SLOW_PAGES_MIN && each >= 1.0).then_some(each)
    }
}

/// Why a URL ended without a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Cause {
    Status(u16),
    /// 5xx.
    ServerError,
    /// Index into `Failure::ALL`.
    Failure(usize),
}

#[derive(Clone, Debug, Default)]
struct CauseTally {
    urls: u64,
    /// Hashes of their names.
    hosts: HashSet<u64>,
    first: Box<str>,
    via: Option<Box<str>>,
}

/// A cause in JSON. The names are part of the command line's stable interface: add, never rename.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub(super) struct CauseLine {
    /// A status, `5xx`, or the name of a failure, as `urls --cause` takes it.
    cause: String,
    /// URLs that ended this way.
    urls: u64,
    /// Their hosts.
    hosts: u64,
    /// The first URL.
    example: Box<str>,
    /// The page that first linked to that URL.
    via: Option<Box<str>>,
    /// What it means, and what you can do.
    meaning: &'static str,
    /// The command that lists all of them.
    command: String,
}

/// The results of a crawl, by cause.
#[derive(Clone, PartialEq, Serialize, Debug, Default)]
pub(super) struct CauseLines {
    /// The causes with the most URLs come first.
    pub(super) causes: Vec<CauseLine>,
    /// The hosts with the most pages, each with its number of pages.
    pub(super) largest_hosts: Vec<(Box<str>, u64)>,
    /// The hosts with the longest time from page to page, each with that time in seconds.
    pub(super) slowest_hosts: Vec<(Box<str>, f64)>,
    /// The directory's name, as used in commands.
    #[serde(skip)]
    dir: String,
}

impl Cause {
    fn of(state: UrlState) -> Option<Cause> {
        match state {
            UrlState::Fetched(status @ 400..=499) => Some(Cause::Status(status)),
            UrlState::Fetched(500..=599) => Some(Cause::ServerError),
            UrlState::Fetched(_) | UrlState::Waiting | UrlState::SetAside => None,
            UrlState::Failed(Failure::OutOfScope | Failure::OverBudget | Failure::Blocked) => None,
            UrlState::Failed(failure) => Some(Cause::Failure(failure as usize)),
        }
    }

    fn name(self) -> String {
        match self {
            Cause::Status(status) => status.to_string(),
            Cause::ServerError => "5xx".to_owned(),
            Cause::Failure(place) => Failure::ALL.get(place).map_or("", |failure| failure.as_str()).to_owned(),
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Cause::Status(401) => "the server requires a login (http.auth)",
            Cause::Status(403) => "the server refuses this crawler, or everyone",
            Cause::Status(404) => "not found; the page that links to it is out of date",
            Cause::Status(410) => "permanently gone",
            Cause::Status(429) => "too many requests (politeness.host_delay); `crawl --retry status=429` retries it",
            Cause::Status(_) => "the server refuses the request",
            Cause::ServerError => "server errors; `crawl --retry status=5xx` retries them",
            Cause::Failure(place) => Failure::ALL.get(place).map_or("", |failure| meaning(failure.as_str())),
        }
    }
}

impl Causes {
    /// Reads the logs in `dir`.
    pub(super) fn read(dir: &Path) -> io::Result<(CauseLines, u8)> {
        let mut causes = Causes::default();
        let code = CrawlLogs::open(dir)?.without_aside().list(&mut |step| {
            if let ListingStep::Url(listed) = &step {
                causes.take(listed);
            }
            Ok(())
        })?;
        Ok((causes.lines(&dir.display().to_string()), code))
    }

    fn take(&mut self, listed: &Listed<'_>) {
        let is_page = matches!(listed.state, UrlState::Fetched(200..300)) && listed.interstitial.is_none();
        let cause = Cause::of(listed.state);
        if !is_page && cause.is_none() {
            return;
        }
        let Ok(url) = Url::from_canonical(listed.text) else { return };
        if is_page {
            let seconds = listed.seconds.unwrap_or_default();
            match self.hosts.get_mut(url.host()) {
                Some(pages) => pages.add(seconds),
                None => drop(self.hosts.insert(url.host().into(), Pages { count: 1, first: seconds, last: seconds })),
            }
        }
        let Some(cause) = cause else { return };
        let found = self.found.entry(cause).or_default();
        if found.urls == 0 {
            (found.first, found.via) = (listed.text.into(), listed.via.map(Box::from));
        }
        found.urls += 1;
        found.hosts.insert(xxh3_64(url.host().as_bytes()));
    }

    /// Sorts by number of URLs, descending; equal ones keep their order. Commands name the directory `dir`.
    fn lines(self, dir: &str) -> CauseLines {
        let mut causes: Vec<CauseLine> = self
            .found
            .into_iter()
            .map(|(cause, found)| {
                let name = cause.name();
                // The linking page is where the link can be fixed.
                let via = if matches!(cause, Cause::Status(404 | 410)) { " --via" } else { "" };
                let command = format!("ringcrawl urls {dir} --cause {name}{via}");
                let (urls, hosts) = (found.urls, found.hosts.len() as u64);
                CauseLine {
                    cause: name,
                    urls,
                    hosts,
                    example: found.first,
                    via: found.via,
                    meaning: cause.meaning(),
                    command,
                }
            })
            .collect();
        causes.sort_by_key(|line| Reverse(line.urls));
        let slow = |(host, pages): (&_, &Pages)| Some((Box::<str>::clone(host), pages.seconds_each()?));
        let mut slowest: Vec<(Box<str>, f64)> = self.hosts.iter().filter_map(slow).collect();
        slowest.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        slowest.truncate(HOSTS_TOLD);
        let mut largest: Vec<(Box<str>, u64)> =
            self.hosts.into_iter().map(|(host, pages)| (host, pages.count)).collect();
        largest.sort_unstable_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
        largest.truncate(HOSTS_TOLD);
        CauseLines { causes, largest_hosts: largest, slowest_hosts: slowest, dir: dir.to_owned() }
    }
}

impl CauseLines {
    /// For people: two lines per cause, then the largest and the slowest hosts; empty if there is no cause to show.
    pub(super) fn human(&self) -> String {
        if self.causes.is_empty() {
            return String::new();
        }
        let mut text = "\nwithout a page, of the whole crawl:\n".to_owned();
        for line in self.causes.iter().take(TOLD_MAX) {
            let CauseLine { cause, urls, hosts, example, via, meaning, command } = line;
            let via = via.as_ref().map_or(String::new(), |via| format!(", linked to by {via}"));
            let (urls, hosts) = (counted(*urls, "URL"), counted(*hosts, "host"));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {cause}: {urls} of {hosts}, such as {example}{via}: {meaning}\n    {command}");
        }
        let more = self.causes.len().saturating_sub(TOLD_MAX);
        if more > 0 {
            let _ = writeln!(
                text,
                "  and {}: ringcrawl urls {} --causes --json",
                counted(more as u64, "further cause"),
                self.dir
            );
        }
        let hosts: Vec<String> =
            self.largest_hosts.iter().map(|(host, pages)| format!("{host} ({})", counted(*pages, "page"))).collect();
        if !hosts.is_empty() {
            let _ = writeln!(text, "  largest hosts: {}\n    ringcrawl hosts {}", hosts.join(", "), self.dir);
        }
        let hosts: Vec<String> =
            self.slowest_hosts.iter().map(|(host, each)| format!("{host} ({each:.1} s a page)")).collect();
        if !hosts.is_empty() {
            let _ =
                writeln!(text, "  slowest hosts: {}\n    ringcrawl hosts {} --sort delay", hosts.join(", "), self.dir);
        }
        text
    }
}

fn counted(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Causes that the text lists.
const TOLD_MAX: usize = 24;
/// Minimum number of pages for reporting a host's speed.
const SLOW_PAGES_MIN: u64 = 5;
/// Hosts that the text lists.
const HOSTS_TOLD: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(urls: &[(&str, UrlState)]) -> CauseLines {
        let mut causes = Causes::default();
        for (text, state) in urls {
            let via = text.ends_with("/x").then_some("http://a.test/");
            let waiting = Listed::waiting(text, via, 1);
            causes.take(&Listed { state: *state, tries: 1, seconds: Some(1), ..waiting });
        }
        causes.lines("crawl")
    }

    #[test]
    fn each_cause_is_told_with_what_lists_it() {
        use UrlState::{Failed, Fetched, Waiting};
        let lines = lines(&[
            ("http://a.test/", Fetched(200)),
            ("http://a.test/2", Fetched(200)),
            ("http://b.test/2", Fetched(200)),
            ("http://a.test/x", Fetched(404)),
            ("http://a.test/y", Fetched(404)),
            ("http://b.test/z", Fetched(404)),
            ("http://c.test/1", Fetched(503)),
            ("http://c.test/2", Fetched(500)),
            ("http://d.test/", Failed(Failure::DnsNotFound)),
            ("http://a.test/w", Waiting),
            ("http://a.test/moved", Fetched(301)),
            ("http://a.test/over", Failed(Failure::OverBudget)),
        ]);
        let expected = "
without a page, of the whole crawl:
  404: 3 URLs of 2 hosts, such as http://a.test/x, linked to by http://a.test/: not found; the page that links to it is out of date
    ringcrawl urls crawl --cause 404 --via
  5xx: 2 URLs of 1 host, such as http://c.test/1: server errors; `crawl --retry status=5xx` retries them
    ringcrawl urls crawl --cause 5xx
  dns-not-found: 1 URL of 1 host, such as http://d.test/: the name does not exist, or has no address
    ringcrawl urls crawl --cause dns-not-found
  largest hosts: a.test (2 pages), b.test (1 page)
    ringcrawl hosts crawl
";
        assert_eq!(lines.human(), expected);
    }

    #[test]
    fn the_slowest_hosts_are_those_with_the_longest_time_from_page_to_page() {
        let mut causes = Causes::default();
        let mut take = |host: &str, pages: u64, each: u64| {
            for number in 0..pages {
                let (text, state) = (format!("http://{host}/{number}"), UrlState::Fetched(200));
                let seconds = Some(1_800_000_000 + number * each);
                causes.take(&Listed { state, tries: 1, seconds, ..Listed::waiting(&text, None, 1) });
            }
        };
        for (host, pages, each) in [
            ("a.test", 9, 4),
            ("b.test", 5, 60),
            ("c.test", 4, 900),
            ("d.test", 100, 0),
            ("e.test", 6, 7),
            ("f.test", 6, 1),
        ] {
            take(host, pages, each);
        }
        let slowest = causes.lines("crawl").slowest_hosts;
        assert_eq!(slowest, [("b.test".into(), 60.0), ("e.test".into(), 7.0), ("a.test".into(), 4.0)]);
    }

    #[test]
    fn statuses_are_told_apart_and_a_whole_crawl_has_nothing_to_do() {
        use UrlState::Fetched;
        let all = [401, 403, 404, 410, 418, 429, 500, 599].map(|status| ("http://a.test/x", Fetched(status)));
        let names: Vec<String> = lines(&all).causes.into_iter().map(|line| line.cause).collect();
        assert_eq!(names, ["5xx", "401", "403", "404", "410", "418", "429"]);
        let text = lines(&(400..440).map(|status| ("http://a.test/x", Fetched(status))).collect::<Vec<_>>()).human();
        assert!(text.contains("\n  and 16 further causes: ringcrawl urls crawl --causes --json\n"), "{text}");
        assert_eq!(lines(&[("http://a.test/", Fetched(200)), ("http://a.test/b", Fetched(304))]).human(), "");
    }
}
