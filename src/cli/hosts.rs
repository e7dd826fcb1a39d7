//! `ringcrawl hosts`: the hosts that a crawl knows, with the results of their URLs.
//!
//! Decides: columns are separated by tabs: pages (2xx), waiting, errors (no response, or a status of 400 and more),
//! denied by robots.txt, duplicates (pages whose body was stored lately), delay in seconds, until when the host is
//! left alone (`-`: not any more), host, status of its last response, mean time of a response in seconds, and the
//! last failure there, unless the host has recovered since. The hosts with the highest values come first; equal ones
//! are in the order of their names. The delay is the one in force when it was last recorded, which is longer for a
//! slow or complaining host. If none was recorded, it is that of the last run's settings or the host's Crawl-delay,
//! whichever is longer. A terminal gets the names of the columns first. `--json` prints the same by names, one object
//! a line, with null for `-`.
//! Limits: one entry per host in memory, some 200 bytes.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use super::crawl_logs::{self, CrawlLogs};
use super::output::{Stdout, tell};
use super::urls::StateKind;
use ringcrawl_base::Failure;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::log::{HostNote, Listed, ListingStep, UrlState};
use ringcrawl_brain::trouble::{HostHealth, Trouble};
use ringcrawl_config::Politeness;
use ringcrawl_crawler::boot;
use ringcrawl_ring as ring;
use ringcrawl_url::Url;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Hosts {
    /// The crawl's directory; a crawl may be running in it.
    dir: PathBuf,
    /// Sort by this column, highest first; `host` sorts by name.
    #[arg(long, value_enum, default_value_t = Sort::Pages)]
    sort: Sort,
    /// JSON, an object a line.
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    /// Responses with 2xx.
    Pages,
    /// URLs still to be fetched.
    Waiting,
    /// URLs without a response, or with a status of 400 and more.
    Errors,
    /// Pages whose body was stored lately.
    Duplicates,
    /// Time between two requests.
    Delay,
    /// Mean time of a response.
    Slow,
    /// Name.
    Host,
}

/// What is known about a host.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Host {
    pages: u64,
    waiting: u64,
    errors: u64,
    denied: u64,
    duplicates: u64,
    delay: Duration,
    until_seconds: u64,
    /// Status and time of its last response.
    last: Option<(u64, u16)>,
    response: Duration,
    trouble: Option<Trouble>,
}

impl Host {
    fn note(&mut self, note: HostNote, now_seconds: u64) {
        let HostNote { delay: asked, health: HostHealth { delay, response, .. }, .. } = note;
        self.delay = if delay.is_zero() { asked } else { delay };
        self.until_seconds = now_seconds + note.left(now_seconds);
        if !response.is_zero() {
            self.response = response;
        }
        self.trouble = note.health.latest().cloned();
    }

    fn count(&mut self, listed: &Listed<'_>) {
        self.duplicates += u64::from(listed.is_duplicate);
        if let (UrlState::Fetched(status), Some(seconds)) = (listed.state, listed.seconds) {
            self.last = self.last.max(Some((seconds, status)));
        }
        match (StateKind::of(listed.state), listed.state) {
            (StateKind::Waiting, _) => self.waiting += 1,
            (StateKind::Denied, _) => self.denied += 1,
            (StateKind::Fetched, UrlState::Fetched(200..=299)) => self.pages += 1,
            (StateKind::Fetched, UrlState::Fetched(..400)) => {}
            // These were never requested.
            (_, UrlState::Failed(Failure::OverBudget | Failure::Blocked | Failure::OutOfScope)) => {}
            _ => self.errors += 1,
        }
    }

    fn key(&self, sort: Sort) -> u64 {
        match sort {
            Sort::Pages => self.pages,
            Sort::Waiting => self.waiting,
            Sort::Errors => self.errors,
            Sort::Duplicates => self.duplicates,
            Sort::Delay => self.delay.as_millis() as u64,
            Sort::Slow => self.response.as_millis() as u64,
            Sort::Host => 0,
        }
    }
}

/// A line of the list.
#[derive(Serialize)]
struct Line<'a> {
    pages: u64,
    waiting: u64,
    errors: u64,
    denied: u64,
    duplicates: u64,
    delay_ms: u64,
    left_alone_until: Option<String>,
    host: &'a str,
    last_status: Option<u16>,
    response_ms: Option<u64>,
    trouble: Option<String>,
}

impl Line<'_> {
    fn of<'a>(name: &'a str, host: &Host, (now_seconds, is_running): (u64, bool)) -> Line<'a> {
        let Host { pages, waiting, errors, denied, duplicates, delay, until_seconds, last, response, .. } = *host;
        let trouble = host.trouble.as_ref().map(|trouble| match is_running {
            true => trouble.sentence(name, now_seconds),
            false => trouble.sentence_at_rest(name),
        });
        let left_alone_until = (until_seconds > now_seconds).then(|| crawl_logs::iso(until_seconds));
        let delay_ms = delay.as_millis() as u64;
        let last_status = last.map(|(_, status)| status);
        let response_ms = (!response.is_zero()).then_some(response.as_millis() as u64);
        let host = name;
        Line {
            pages,
            waiting,
            errors,
            denied,
            duplicates,
            delay_ms,
            left_alone_until,
            host,
            last_status,
            response_ms,
            trouble,
        }
    }

    fn columns(&self) -> String {
        let counts =
            [self.pages, self.waiting, self.errors, self.denied, self.duplicates].map(|count| count.to_string());
        let until = self.left_alone_until.as_deref().unwrap_or("-");
        let seconds = |millis: u64| format!("{}.{:03}", millis / 1_000, millis % 1_000);
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let status = or_none(self.last_status.map(|status| status.to_string()));
        let (response, trouble) = (or_none(self.response_ms.map(seconds)), or_none(self.trouble.clone()));
        let (counts, delay) = (counts.join("\t"), seconds(self.delay_ms));
        format!("{counts}\t{delay}\t{until}\t{}\t{status}\t{response}\t{trouble}", self.host)
    }
}

/// The names of the columns.
const HEADER: &str =
    "pages\twaiting\terrors\tdenied\tduplicates\tdelay\trests until\thost\tlast status\tresponse\ttrouble";

/// Runs it.
pub fn run(arguments: &Hosts) -> ExitCode {
    let mut out = Stdout::new();
    let result = list(arguments, &mut out);
    crawl_logs::end("hosts", out, result)
}

fn list(arguments: &Hosts, out: &mut impl Write) -> io::Result<u8> {
    let logs = CrawlLogs::open(&arguments.dir)?;
    let politeness = politeness(&arguments.dir);
    let mut hosts: HashMap<Box<str>, Host> = HashMap::new();
    let now_seconds = ring::unix_now().as_micros() / 1_000_000;
    let code = logs.list(&mut |step| {
        match step {
            // The crawl's own note.
            ListingStep::Host(note) if note.host.is_empty() => {}
            ListingStep::Host(note) if note.origin().is_some() => {}
            ListingStep::Host(note) => hosts.entry(note.host.clone()).or_default().note(note, now_seconds),
            ListingStep::Link(_) => {}
            ListingStep::Url(listed) => {
                let Ok(url) = Url::from_canonical(listed.text) else { return Ok(()) };
                match hosts.get_mut(url.host()) {
                    Some(host) => host.count(&listed),
                    None => hosts.entry(url.host().into()).or_default().count(&listed),
                }
            }
        }
        Ok(())
    })?;
    for (name, host) in &mut hosts {
        let own = politeness.as_ref().map(|politeness| politeness.delay_of(name));
        host.delay = host.delay.max(own.unwrap_or_default());
    }
    if !arguments.json && io::stdout().is_terminal() {
        writeln!(out, "{HEADER}")?;
    }
    for (name, host) in sorted(&hosts, arguments.sort) {
        let line = Line::of(name, host, (now_seconds, logs.is_running()));
        let text = if arguments.json { serde_json::to_string(&line)? } else { line.columns() };
        writeln!(out, "{text}")?;
    }
    Ok(code)
}

/// The delays of hosts that do not ask for one.
fn politeness(dir: &std::path::Path) -> Option<Politeness> {
    match boot::kept_config(dir) {
        Ok(config) => config.map(|config| config.politeness),
        Err(error) => {
            tell!("{error}");
            tell!("only the delays that hosts ask for are shown");
            None
        }
    }
}

fn sorted(hosts: &HashMap<Box<str>, Host>, sort: Sort) -> Vec<(&str, &Host)> {
    let mut sorted: Vec<(&str, &Host)> = hosts.iter().map(|(name, host)| (&**name, host)).collect();
    sorted.sort_unstable_by_key(|(name, host)| (Reverse(host.key(sort)), *name));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Failure;
    use ringcrawl_brain::job::JobKind;
    use ringcrawl_brain::trouble::Cause;
    use ringcrawl_url::Scheme;

    fn host(states: &[UrlState]) -> Host {
        let mut host = Host::default();
        for state in states {
            let is_duplicate = *state == UrlState::Fetched(206);
            host.count(&Listed {
                text: "http://a.test/",
                via: None,
                depth: 0,
                state: *state,
                tries: 1,
                is_duplicate,
                interstitial: None,
                cut: None,
                seconds: None,
                detail: "",
            });
        }
        host
    }

    #[test]
    fn each_url_is_counted_where_it_belongs() {
        use UrlState::{Failed, Fetched, SetAside, Waiting};
        let all = [Fetched(200), Fetched(206), Fetched(301), Fetched(404), Fetched(503), Waiting, SetAside];
        let host = host(
            &[&all[..], &[Failed(Failure::HostDead), Failed(Failure::Reset), Failed(Failure::RobotsDenied)]].concat(),
        );
        let expected = Host { pages: 2, waiting: 2, errors: 4, denied: 1, duplicates: 1, ..Host::default() };
        assert_eq!(host, expected);
        let host = Host { delay: Duration::from_millis(1_050), until_seconds: 1_800_000_000, ..host };
        let line = |seconds| Line::of("a.test", &host, (seconds, true));
        let (until, after) = (line(1_799_999_999), line(1_800_000_000));
        assert_eq!(until.columns(), "2\t2\t4\t1\t1\t1.050\t2027-01-15T08:00:00Z\ta.test\t-\t-\t-");
        assert_eq!(after.columns(), "2\t2\t4\t1\t1\t1.050\t-\ta.test\t-\t-\t-");
        assert_eq!(HEADER.split('\t').count(), after.columns().split('\t').count());
        let json = serde_json::to_string(&after).expect("JSON");
        assert!(json.contains(r#""delay_ms":1050,"left_alone_until":null,"host":"a.test""#), "{json}");
    }

    #[test]
    fn how_a_host_does_is_told_as_it_was_noted_last() {
        let trouble = Trouble {
            asked: JobKind::Robots,
            origin: Some((Scheme::Http, 80)),
            cause: Cause::Failure(Failure::ConnectRefused),
            detail: "".into(),
            tries: 1,
            tries_max: 5,
            seconds: 1_000,
            again: Some(600),
        };
        let (delay, response) = (Duration::from_secs(4), Duration::from_millis(1_987));
        let note = |delay, response, troubles: &[Trouble]| HostNote {
            host: "a.test".into(),
            delay: Duration::from_secs(1),
            until_seconds: 0,
            lasts_seconds: 0,
            health: HostHealth { delay, response, troubles: troubles.to_vec() },
        };
        let mut host = host(&[]);
        host.note(note(delay, response, std::slice::from_ref(&trouble)), 1_000);
        host.last = Some((5, 503));
        let columns = |host: &Host, is_running| Line::of("a.test", host, (1_010, is_running)).columns();
        let start = "0\t0\t0\t0\t0\t4.000\t-\ta.test\t503\t1.987\ta.test: robots.txt: connection refused, ";
        assert_eq!(columns(&host, true), format!("{start}try 2 of 5 in 9 min"));
        assert_eq!(columns(&host, false), format!("{start}after 1 of 5 tries"));
        // Its pace is no longer known, and nothing is wrong.
        host.note(note(Duration::ZERO, Duration::ZERO, &[]), 1_000);
        assert_eq!(columns(&host, true), "0\t0\t0\t0\t0\t1.000\t-\ta.test\t503\t1.987\t-");
        assert_eq!(host.key(Sort::Slow), 1_987);
    }

    #[test]
    fn the_most_come_first() {
        use UrlState::{Fetched, Waiting};
        let hosts = HashMap::from([
            ("c.test".into(), host(&[Fetched(200), Fetched(200)])),
            ("a.test".into(), host(&[Fetched(200), Waiting, Fetched(404)])),
            ("b.test".into(), host(&[Fetched(200), Fetched(404), Fetched(404)])),
        ]);
        let order = |sort| sorted(&hosts, sort).into_iter().map(|(name, _)| &name[..1]).collect::<String>();
        assert_eq!([Sort::Pages, Sort::Waiting, Sort::Errors, Sort::Host].map(order), ["cab", "abc", "bac", "abc"]);
        assert_eq!([Sort::Duplicates, Sort::Delay].map(order), ["abc", "abc"]);
    }
}
