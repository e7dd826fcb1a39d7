//! The latest troubles: the true reason why URLs of a host wait, or have ended.
//!
//! Decides: one sentence for it, the same in progress, summary, `why`, `urls` and `hosts`: which host, what was
//! requested, what came instead, and when the next try is. If a key of the configuration decides, the sentence names
//! it.
//! Invariants: times are those of the wall clock, each with its intended duration: a clock that was set since does
//! not prolong it.
//! Limits: at most [`DETAIL_CHARS_MAX`] characters of a detail are shown.
//! Leaves to others: when something is tried again (`frontier`), where this is kept (`log`), where it is shown
//! (`cli`).

use std::fmt::Write as _;

use crate::job::JobKind;
use ringcrawl_base::Failure;
use ringcrawl_base::time::Duration;
use ringcrawl_url::{Scheme, Url};

/// What is known about the health of a host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostHealth {
    /// The delay in force; zero if unknown.
    pub delay: Duration,
    /// The mean time of a response; zero if unknown.
    pub response: Duration,
    /// The latest troubles with its name and its origins, unless they have worked since.
    pub troubles: Vec<Trouble>,
}

impl HostHealth {
    /// The latest trouble.
    pub fn latest(&self) -> Option<&Trouble> {
        self.troubles.iter().max_by_key(|trouble| trouble.seconds)
    }

    /// What keeps URLs of an origin from being fetched: a trouble of its own, or with the host's name.
    pub fn of(&self, scheme: Scheme, port: u16) -> Option<&Trouble> {
        let of_it = |trouble: &&Trouble| trouble.origin.is_none_or(|origin| origin == (scheme, port));
        self.troubles.iter().filter(of_it).max_by_key(|trouble| trouble.seconds)
    }
}

/// A trouble.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// What was requested.
    pub asked: JobKind,
    /// The origin, with its port; `None` for a name.
    pub origin: Option<(Scheme, u16)>,
    /// What came instead.
    pub cause: Cause,
    /// Details, if any.
    pub detail: Box<str>,
    /// Tries used, out of `tries_max`; 0: it is not the host's fault, and is not counted.
    pub tries: u8,
    /// The number of tries available.
    pub tries_max: u8,
    /// When, in seconds since 1970.
    pub seconds: u64,
    /// The next try is this many seconds later; `None` if there is none.
    pub again: Option<u64>,
}

/// What came instead of the requested item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Nothing.
    Failure(Failure),
    /// A response of this status.
    Status(u16),
}

impl Trouble {
    /// The failure of a page that is final.
    pub fn of_page(url: &Url, failure: Failure, detail: &str, tries: u8) -> Trouble {
        let (origin, cause) = (Some((url.scheme(), url.port())), Cause::Failure(failure));
        let (asked, detail, seconds, again) = (JobKind::Page, detail.into(), 0, None);
        Trouble { asked, origin, cause, detail, tries, tries_max: tries, seconds, again }
    }

    /// The sentence, without a full stop, at `seconds` since 1970.
    pub fn sentence(&self, host: &str, seconds: u64) -> String {
        let mut text = self.what(host);
        let next = self.tries.saturating_add(1);
        // Writing to a string cannot fail.
        let _ = match self.left(seconds) {
            Some(0) => write!(text, ", try {next} of {} is due", self.tries_max),
            Some(left) => write!(text, ", try {next} of {} in {}", self.tries_max, span(left)),
            None if self.tries > 1 => write!(text, ", given up after {} tries", self.tries),
            None => Ok(()),
        };
        text
    }

    /// The same while no crawl runs: nothing is tried until one does.
    pub fn sentence_at_rest(&self, host: &str) -> String {
        match self.again {
            Some(_) => format!("{}, after {} of {} tries", self.what(host), self.tries, self.tries_max),
            None => self.sentence(host, self.seconds),
        }
    }

    /// The trouble without a host to blame, for what all hosts have in common.
    pub fn words(&self) -> String {
        let words = match self.cause {
            Cause::Status(status) => format!("status {status}"),
            Cause::Failure(failure) => words(failure).to_owned(),
        };
        if self.detail.is_empty() { words } else { format!("{words} ({})", shown(&self.detail)) }
    }

    /// The same for our own network, or for the names of all hosts.
    pub fn of_all(&self) -> String {
        let names = if self.asked == JobKind::Resolve { "names: " } else { "" };
        format!("fetching is paused because our own network does not work: {names}{}", self.words())
    }

    /// The seconds until the next try; `None` if there is none.
    pub fn left(&self, seconds: u64) -> Option<u64> {
        self.again.map(|again| self.seconds.saturating_add(again).saturating_sub(seconds).min(again))
    }

    fn what(&self, host: &str) -> String {
        let odd_port = self.origin.filter(|(scheme, port)| *port != scheme.default_port());
        let port = odd_port.map_or_else(String::new, |(_, port)| format!(":{port}"));
        let asked = match self.asked {
            JobKind::Resolve => "name: ",
            JobKind::Robots => "robots.txt: ",
            JobKind::Page => "",
        };
        format!("{host}{port}: {asked}{}", self.words())
    }
}

/// A detail without characters that a terminal would interpret.
fn shown(detail: &str) -> String {
    detail.chars().take(DETAIL_CHARS_MAX).map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

/// A duration in words, in one unit.
fn span(seconds: u64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A failure in a few words.
pub fn words(failure: Failure) -> &'static str {
    match failure {
        Failure::DnsNotFound => "the name does not exist, or has no address",
        Failure::DnsFailed => "the name servers answer with an error",
        Failure::DnsTimeout => "no name server answers",
        Failure::AddressForbidden => "its address is forbidden by fetch.private_addresses",
        Failure::ConnectRefused => "connection refused",
        Failure::ConnectTimeout => "no connection in time (fetch.connect_timeout)",
        Failure::ConnectFailed => "the network is unreachable",
        Failure::ProxyFailed => "the proxy (proxy.url) does not answer like a proxy",
        Failure::ProxyRefused => {
            "the proxy (proxy.url) refuses: it wants other credentials, or its rules forbid the host"
        }
        Failure::ProxyUnreachable => "the proxy (proxy.url) cannot be reached",
        Failure::TlsCertificate => "its certificate is not acceptable; tls.certificates = \"record\" takes any",
        Failure::TlsExpired => "its certificate has expired; tls.certificates = \"record\" takes it",
        Failure::TlsName => "its certificate is for another name; tls.certificates = \"record\" takes it",
        Failure::TlsIssuer => {
            "its certificate is self-signed or its issuer is not trusted; tls.ca_files adds issuers, \
             tls.certificates = \"record\" takes any"
        }
        Failure::TlsVersion => "it speaks neither TLS 1.2 nor 1.3",
        Failure::TlsNoHttp1 => "it does not support HTTP/1.1 over TLS",
        Failure::TlsNothingCommon => "it has no cipher suite, group or signature in common with us",
        Failure::TlsFailed => "the TLS handshake broke",
        Failure::TlsTimeout => "no TLS handshake in time (fetch.tls_timeout)",
        Failure::TlsChainTooLong => "it sends too many certificates",
        Failure::FirstByteTimeout => "no response in time (fetch.first_byte_timeout)",
        Failure::Deadline => "no response in time (fetch.deadline)",
        Failure::Hurried => "no response within the shortened time, because others waited",
        Failure::Reset => "connection reset",
        Failure::ClosedEarly => "connection closed before the response",
        Failure::Http09 => "a document without status line and fields (HTTP/0.9)",
        Failure::Malformed => "not an HTTP/1.x response",
        Failure::HeadTooLarge => "the head is too large (fetch.header_bytes_max, fetch.header_count_max)",
        Failure::RobotsDenied => "robots.txt forbids it",
        Failure::CrawlDelayTooLong => "its Crawl-delay exceeds the limit",
        Failure::RobotsUnreachable => "it is unavailable",
        Failure::RobotsServerError => "answered with an error",
        Failure::HostDead => "it failed too often in a row (politeness.host_failures_max)",
        Failure::Aborted => "aborted by ringcrawl",
        Failure::PortForbidden => "the port belongs to another protocol (scope.bad_ports)",
        Failure::OutOfScope => "the scope excludes it",
        Failure::Blocked => "scope.block lists it",
        Failure::OverBudget => "over its budget",
        Failure::TooManyPorts => "too many ports of this host are linked",
    }
}

/// The rest of a detail is cut.
pub const DETAIL_CHARS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(asked: JobKind, origin: Option<(Scheme, u16)>, cause: Cause) -> Trouble {
        let (tries, tries_max, seconds, again) = (1, 5, 1_000, Some(600));
        Trouble { asked, origin, cause, detail: "".into(), tries, tries_max, seconds, again }
    }

    #[test]
    fn the_sentence_says_what_failed_and_when_it_is_tried_again() {
        let refused = Cause::Failure(Failure::ConnectRefused);
        let robots = trouble(JobKind::Robots, Some((Scheme::Http, 80)), refused);
        let said = |seconds| robots.sentence("dead.test", seconds);
        assert_eq!(said(1_001), "dead.test: robots.txt: connection refused, try 2 of 5 in 9 min");
        assert_eq!(said(1_590), "dead.test: robots.txt: connection refused, try 2 of 5 in 10 s");
        assert_eq!(said(1_600), "dead.test: robots.txt: connection refused, try 2 of 5 is due");
        assert_eq!(
            robots.sentence_at_rest("dead.test"),
            "dead.test: robots.txt: connection refused, after 1 of 5 tries"
        );
        // A clock that was set back by 30 days does not prolong it.
        assert_eq!(said(0), "dead.test: robots.txt: connection refused, try 2 of 5 in 10 min");
        let over = Trouble { tries: 5, again: None, ..robots.clone() };
        assert_eq!(
            over.sentence("dead.test", 9_999),
            "dead.test: robots.txt: connection refused, given up after 5 tries"
        );
        assert_eq!(over.sentence_at_rest("dead.test"), over.sentence("dead.test", 0));
    }

    #[test]
    fn odd_ports_names_and_details_are_told() {
        let page = Trouble {
            detail: "unknown HTTP version\u{1b}[2J".into(),
            again: None,
            tries_max: 1,
            ..trouble(JobKind::Page, Some((Scheme::Https, 8_443)), Cause::Failure(Failure::Malformed))
        };
        assert_eq!(page.sentence("[::1]", 0), "[::1]:8443: not an HTTP/1.x response (unknown HTTP version\u{fffd}[2J)");
        let name = Trouble {
            detail: "SERVFAIL of 10.0.0.1:53".into(),
            ..trouble(JobKind::Resolve, None, Cause::Failure(Failure::DnsFailed))
        };
        assert_eq!(
            name.sentence("a.test", 1_580),
            "a.test: name: the name servers answer with an error (SERVFAIL of 10.0.0.1:53), try 2 of 5 in 20 s"
        );
        let busy = trouble(JobKind::Robots, Some((Scheme::Http, 8_080)), Cause::Status(503));
        assert_eq!(busy.sentence("a.test", 1_000), "a.test:8080: robots.txt: status 503, try 2 of 5 in 10 min");
    }

    #[test]
    fn an_origin_has_its_own_trouble_and_that_of_the_name() {
        let cause = Cause::Status(503);
        let https = trouble(JobKind::Robots, Some((Scheme::Https, 443)), cause);
        let http = Trouble { seconds: 2_000, ..trouble(JobKind::Page, Some((Scheme::Http, 80)), cause) };
        let name = Trouble { seconds: 1_500, ..trouble(JobKind::Resolve, None, cause) };
        let health = HostHealth { troubles: vec![https.clone(), http.clone()], ..HostHealth::default() };
        assert_eq!((health.of(Scheme::Https, 443), health.latest()), (Some(&https), Some(&http)));
        assert_eq!(health.of(Scheme::Http, 8_080), None);
        let health = HostHealth { troubles: vec![https, http, name.clone()], ..HostHealth::default() };
        assert_eq!((health.of(Scheme::Https, 443), health.of(Scheme::Http, 8_080)), (Some(&name), Some(&name)));
    }

    #[test]
    fn spans_are_said_in_one_unit() {
        let said = [0, 119, 120, 599, 7_199, 7_200, 172_799, 172_800].map(span);
        assert_eq!(said, ["0 s", "119 s", "2 min", "9 min", "119 min", "2 h", "47 h", "2 days"]);
    }
}
