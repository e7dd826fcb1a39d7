//! `ringcrawl hosts`: the hosts that a crawl knows, and what came of their URLs.
//!
//! Decides: columns are separated by tabs: pages (2xx), waiting, errors (no response, or a status of 400 and more), denied by
//! robots.txt, duplicates (pages whose body was stored lately), delay in seconds, until when the host is left alone (`-`: not any
//! more), host. The most come first, names in their order. The delay is that of the last run's settings or the host's
//! Crawl-delay, whichever is longer. `--json` has the same by names, a line each, and null for `-`.
//! Limits: one entry a host in memory, some 150 bytes.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use super::crawl_logs::{self, CrawlLogs};
use super::output::{Stdout, tell};
use super::urls::State;
use crate::boot;
use crate::config::Politeness;
use crate::log::{Listed, ListingStep, UrlState};
use crate::outcome::Failure;
use crate::ring;
use crate::time::Duration;
use crate::url::Url;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Hosts {
    /// The crawl's directory; a crawl may be running in it.
    dir: PathBuf,
    /// What has the most comes first; with `host`, in the order of names.
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
    /// Name.
    Host,
}

/// What is known of a host.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Host {
    pages: u64,
    waiting: u64,
    errors: u64,
    denied: u64,
    duplicates: u64,
    delay: Duration,
    until_seconds: u64,
}

impl Host {
    fn count(&mut self, listed: &Listed<'_>) {
        self.duplicates += u64::from(listed.is_duplicate);
        match (State::of(listed.state), listed.state) {
            (State::Waiting, _) => self.waiting += 1,
            (State::Denied, _) => self.denied += 1,
            (State::Fetched, UrlState::Fetched(200..=299)) => self.pages += 1,
            (State::Fetched, UrlState::Fetched(..400)) => {}
            // Nobody asked for them.
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
}

impl Line<'_> {
    fn of<'a>(name: &'a str, host: &Host, now_seconds: u64) -> Line<'a> {
        let Host { pages, waiting, errors, denied, duplicates, delay, until_seconds } = *host;
        let left_alone_until = (until_seconds > now_seconds).then(|| crawl_logs::iso(until_seconds));
        let delay_ms = delay.as_millis() as u64;
        Line { pages, waiting, errors, denied, duplicates, delay_ms, left_alone_until, host: name }
    }

    fn columns(&self) -> String {
        let counts =
            [self.pages, self.waiting, self.errors, self.denied, self.duplicates].map(|count| count.to_string());
        let until = self.left_alone_until.as_deref().unwrap_or("-");
        let delay = format!("{}.{:03}", self.delay_ms / 1_000, self.delay_ms % 1_000);
        format!("{}\t{delay}\t{until}\t{}", counts.join("\t"), self.host)
    }
}

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
    let code = logs.read(&mut |step| {
        match step {
            ListingStep::Host(note) => {
                let host = hosts.entry(note.host).or_default();
                (host.delay, host.until_seconds) = (note.delay, note.until_seconds);
            }
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
    let now_seconds = ring::unix_now().as_micros() / 1_000_000;
    for (name, host) in sorted(&hosts, arguments.sort) {
        let line = Line::of(name, host, now_seconds);
        let text = if arguments.json { serde_json::to_string(&line)? } else { line.columns() };
        writeln!(out, "{text}")?;
    }
    Ok(code)
}

/// The delays of hosts that ask for none.
fn politeness(dir: &std::path::Path) -> Option<Politeness> {
    match boot::kept_config(dir) {
        Ok(config) => config.map(|config| config.politeness),
        Err(error) => {
            tell!("{error}");
            tell!("the delays are those that hosts ask for themselves");
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
    use crate::outcome::Failure;

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
                wall: None,
                seconds: None,
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
        let (until, after) = (Line::of("a.test", &host, 1_799_999_999), Line::of("a.test", &host, 1_800_000_000));
        assert_eq!(until.columns(), "2\t2\t4\t1\t1\t1.050\t2027-01-15T08:00:00Z\ta.test");
        assert_eq!(after.columns(), "2\t2\t4\t1\t1\t1.050\t-\ta.test");
        let json = serde_json::to_string(&after).expect("JSON");
        assert!(json.contains(r#""delay_ms":1050,"left_alone_until":null,"host":"a.test""#), "{json}");
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
