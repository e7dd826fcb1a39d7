//! `ringcrawl urls`: the URLs that a crawl knows, with the state of each.
//!
//! Decides: columns are separated by tabs: state, cause (status, name of the failure, `set-aside`, or `-`), tries,
//! time, URL. If a URL waits or failed because something went wrong with its host, a further column describes that.
//! If a response was a wall and no page, the kind of wall follows the status: `403 challenge`, `402 payment`. If a
//! response was cut, the kind of cut follows: `200 cut-length`, `cut-time`, `cut-disconnect`, `cut-unspecified`.
//! `fetched` means that a response came, whatever its status; `denied` that robots.txt forbids the URL; `failed` that
//! it ended in any other way.
//! With `--via` a last column is the page that linked to the URL first, or `-`.
//! `--json` prints the same by names, one object a line, with null for `-`. `wall`, `cut` and `trouble` appear only
//! if there was one. `via` is the page that linked to the URL first: null for a seed, and if the page is not known.
//! Limits: failures at hosts are in memory, some 200 bytes for each host in trouble.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use super::causes::Causes;
use super::crawl_logs::{self, CrawlLogs};
use super::output::{Stdout, tell};
use super::parties::Parties;
use super::why::explains;
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_brain::log::{self, HostNote, Listed, ListingStep, UrlState};
use ringcrawl_brain::outcome::Interstitial;
use ringcrawl_brain::trouble::{HostHealth, Trouble};
use ringcrawl_ring as ring;
use ringcrawl_url::Url;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Urls {
    /// The crawl's directory; a crawl may be running in it.
    dir: PathBuf,
    /// Only URLs of this state.
    #[arg(long, value_enum)]
    state: Option<StateKind>,
    /// Only URLs of this host.
    #[arg(long)]
    host: Option<String>,
    /// Only URLs with one of these causes: names, statuses such as 404, classes such as 5xx, `cut` pages; a list with commas.
    #[arg(long, value_name = "CAUSES", value_delimiter = ',', value_parser = wanted_cause)]
    cause: Vec<WantedCause>,
    /// Only URLs that begin with this.
    #[arg(long, value_name = "URL", value_parser = log::prefix)]
    prefix: Option<Box<str>>,
    /// Only URLs that this page linked to first, or redirected to.
    #[arg(long, value_name = "URL", value_parser = page)]
    linked_from: Option<Url>,
    /// Only URLs that were reached from this seed.
    #[arg(long, value_name = "URL", value_parser = page)]
    seed: Option<Url>,
    /// Add a column: the page that first linked to each URL.
    #[arg(long)]
    via: bool,
    /// Instead: what ended without a page, by cause, with an example and the command that lists the rest.
    #[arg(long, conflicts_with_all = ["state", "host", "cause", "prefix", "linked_from", "seed", "via"])]
    causes: bool,
    /// JSON, an object a line.
    #[arg(long)]
    json: bool,
}

/// Parses a page's URL in any spelling.
fn page(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| format!("{error}; expected the URL of a page, such as https://example.org/list"))
}

/// A cause to filter by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WantedCause {
    /// An inclusive range of statuses.
    Statuses(u16, u16),
    Failure(Failure),
    SetAside,
    /// Cut, for any reason.
    Cut,
}

impl WantedCause {
    fn is_of(self, state: UrlState, is_cut: bool) -> bool {
        match (self, state) {
            (WantedCause::Cut, UrlState::Fetched(_)) => is_cut,
            (WantedCause::Statuses(first, last), UrlState::Fetched(status)) => (first..=last).contains(&status),
            (WantedCause::Failure(wanted), UrlState::Failed(failure)) => wanted == failure,
            (WantedCause::SetAside, UrlState::SetAside) => true,
            _ => false,
        }
    }
}

fn wanted_cause(text: &str) -> Result<WantedCause, String> {
    match text.trim() {
        SET_ASIDE => Ok(WantedCause::SetAside),
        log::CUT => Ok(WantedCause::Cut),
        text if text.starts_with(|first: char| first.is_ascii_digit()) => {
            log::statuses(text).map(|(first, last)| WantedCause::Statuses(first, last))
        }
        text => log::cause(text).map(WantedCause::Failure),
    }
}

/// The cause of a URL that had no room in the visited set.
const SET_ASIDE: &str = "set-aside";

/// How a URL stands.
#[derive(clap::ValueEnum, Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum StateKind {
    /// It is still to be fetched.
    Waiting,
    /// A response came, of whatever status.
    Fetched,
    /// No response came.
    Failed,
    /// robots.txt forbids it.
    Denied,
}

impl StateKind {
    pub(super) fn of(state: UrlState) -> StateKind {
        match state {
            UrlState::Waiting | UrlState::SetAside => StateKind::Waiting,
            UrlState::Fetched(_) => StateKind::Fetched,
            UrlState::Failed(Failure::RobotsDenied) => StateKind::Denied,
            UrlState::Failed(_) => StateKind::Failed,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            StateKind::Waiting => "waiting",
            StateKind::Fetched => "fetched",
            StateKind::Failed => "failed",
            StateKind::Denied => "denied",
        }
    }
}

/// A line of the list.
#[derive(Serialize, PartialEq, Eq, Debug)]
struct Line<'a> {
    state: StateKind,
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<&'static str>,
    tries: u8,
    time: Option<String>,
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
    via: Option<&'a str>,
}

impl Line<'_> {
    fn of<'a>(listed: &Listed<'a>, trouble: Option<String>) -> Line<'a> {
        let cause = match listed.state {
            UrlState::Waiting => None,
            UrlState::SetAside => Some(SET_ASIDE.to_owned()),
            UrlState::Fetched(status) => Some(status.to_string()),
            UrlState::Failed(failure) => Some(failure.as_str().to_owned()),
        };
        let (time, wall) = (listed.seconds.map(crawl_logs::iso), listed.interstitial.map(Interstitial::as_str));
        let (cut, state) = (listed.cut.map(Truncated::as_str), StateKind::of(listed.state));
        let Listed { text: url, via, tries, .. } = *listed;
        Line { state, cause, wall, cut, tries, time, url, trouble, via }
    }

    fn columns(&self) -> String {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let (cause, time) = (or_none(&self.cause), or_none(&self.time));
        let wall = self.wall.map_or(String::new(), |wall| format!(" {wall}"));
        let cut = self.cut.map_or(String::new(), |cut| format!(" cut-{cut}"));
        let trouble = self.trouble.as_ref().map_or(String::new(), |trouble| format!("\t{trouble}"));
        format!("{}\t{cause}{wall}{cut}\t{}\t{time}\t{}{trouble}", self.state.as_str(), self.tries, self.url)
    }
}

/// The last failure at each host that has not recovered since.
#[derive(Default)]
pub(super) struct Troubles {
    hosts: HashMap<Box<str>, HostHealth>,
    is_running: bool,
}

impl Troubles {
    /// Lists the URLs of `logs`, each with what is known at that point of hosts in trouble. Returns as
    /// [`CrawlLogs::read`] does.
    pub(super) fn list(
        logs: &CrawlLogs,
        take: &mut dyn FnMut(&Listed<'_>, &Troubles) -> io::Result<()>,
    ) -> io::Result<u8> {
        let mut troubles = Troubles { is_running: logs.is_running(), ..Troubles::default() };
        logs.list(&mut |step| {
            match step {
                ListingStep::Url(listed) => take(&listed, &troubles)?,
                ListingStep::Host(note) => troubles.note(note),
                ListingStep::Link(_) => {}
            }
            Ok(())
        })
    }

    fn note(&mut self, note: HostNote) {
        if note.health.troubles.is_empty() {
            self.hosts.remove(&note.host);
        } else {
            self.hosts.insert(note.host, note.health);
        }
    }

    /// What keeps a URL from being fetched, or did: in a sentence.
    pub(super) fn of(&self, listed: &Listed<'_>) -> Option<String> {
        let failure = match listed.state {
            UrlState::Waiting => None,
            UrlState::Failed(failure) => Some(failure),
            UrlState::Fetched(_) | UrlState::SetAside => return None,
        };
        if self.hosts.is_empty() && listed.detail.is_empty() {
            return None;
        }
        let url = Url::from_canonical(listed.text).ok()?;
        if let Some(failure) = failure.filter(|_| !listed.detail.is_empty()) {
            return Some(Trouble::of_page(&url, failure, listed.detail, listed.tries).sentence(url.host(), 0));
        }
        let trouble = self.hosts.get(url.host())?.of(url.scheme(), url.port())?;
        let is_it = failure.is_none_or(|failure| explains(trouble, failure.as_str()));
        is_it.then(|| match self.is_running {
            true => trouble.sentence(url.host(), ring::unix_now().as_micros() / 1_000_000),
            false => trouble.sentence_at_rest(url.host()),
        })
    }
}

/// Runs it.
pub fn run(arguments: &Urls) -> ExitCode {
    let mut out = Stdout::new();
    let result = list(arguments, &mut out);
    crawl_logs::end("urls", out, result)
}

fn list(arguments: &Urls, out: &mut impl Write) -> io::Result<u8> {
    if arguments.causes {
        let (lines, code) = Causes::read(&arguments.dir)?;
        match arguments.json {
            true => lines.causes.iter().try_for_each(|line| writeln!(out, "{}", serde_json::to_string(line)?))?,
            false => out.write_all(lines.human().trim_start().as_bytes())?,
        }
        return Ok(code);
    }
    let host = arguments.host.as_deref().map(host_name).transpose()?;
    let logs = CrawlLogs::open(&arguments.dir)?;
    let parties = arguments.seed.as_ref().map(|seed| party(&logs, seed)).transpose()?;
    let (mut knows_host, mut knows_page) = (host.is_none(), arguments.linked_from.is_none());
    let code = Troubles::list(&logs, &mut |listed, troubles| {
        // Most URLs are of other hosts, and parsing a URL is expensive.
        let has_host = |host: &str| Url::from_canonical(listed.text).is_ok_and(|url| url.host() == host);
        let is_of_host = host.as_deref().is_none_or(|host| listed.text.contains(host) && has_host(host));
        knows_host |= is_of_host;
        knows_page |= arguments.linked_from.as_ref().is_some_and(|page| listed.text == page.as_str());
        let is_wanted = arguments.state.is_none_or(|state| state == StateKind::of(listed.state))
            && (arguments.cause.is_empty()
                || arguments.cause.iter().any(|cause| cause.is_of(listed.state, listed.cut.is_some())))
            && arguments.linked_from.as_ref().is_none_or(|page| listed.via == Some(page.as_str()))
            && parties.as_ref().is_none_or(|(parties, seed)| parties.of(listed) == Some(*seed))
            && arguments.prefix.as_ref().is_none_or(|prefix| listed.text.starts_with(&**prefix))
            && is_of_host;
        if !is_wanted {
            return Ok(());
        }
        let line = Line::of(listed, troubles.of(listed));
        let text = match (arguments.json, arguments.via) {
            (true, _) => serde_json::to_string(&line)?,
            (false, true) => format!("{}\t{}", line.columns(), line.via.unwrap_or("-")),
            (false, false) => line.columns(),
        };
        writeln!(out, "{text}")
    })?;
    if !knows_host {
        tell!("the crawl knows no URL of {}", host.unwrap_or_default());
    }
    if let Some(page) = arguments.linked_from.as_ref().filter(|_| !knows_page) {
        tell!("the crawl does not know {page}");
    }
    Ok(code)
}

/// The parties of a crawl, and the index of `seed` among them.
fn party(logs: &CrawlLogs, seed: &Url) -> io::Result<(Parties, u32)> {
    let parties = Parties::read(logs)?;
    let place = parties.place(seed).ok_or_else(|| {
        io::Error::other(format!("{seed} is not a seed of this crawl; `ringcrawl seeds DIR` lists the seeds"))
    })?;
    Ok((parties, place))
}

/// A host as it appears in URLs: in lower case, and in ASCII. A port is ignored, as messages name one.
pub(super) fn host_name(text: &str) -> io::Result<String> {
    let url = Url::parse(&format!("http://{text}/")).ok().filter(|url| url.path_and_query() == "/");
    let wrong = || io::Error::other(format!("{text:?} is not a host; expected a name or an address"));
    url.map(|url| url.host().to_owned()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_brain::job::JobKind;
    use ringcrawl_brain::trouble::Cause;
    use ringcrawl_url::Scheme;

    #[test]
    fn a_line_a_url() {
        let line = |state, seconds: Option<u64>| {
            let interstitial = (state == UrlState::Fetched(403)).then_some(Interstitial::Challenge);
            let cut = (state == UrlState::Fetched(200)).then_some(Truncated::Length);
            let via = Some("http://b.test/").filter(|_| seconds.is_some());
            let waiting = Listed::waiting("http://a.test/", via, 0);
            let listed = Listed { state, tries: 2, interstitial, cut, seconds, ..waiting };
            let line = Line::of(&listed, None);
            (line.columns(), serde_json::to_string(&line).expect("JSON"))
        };
        let at = Some(1_800_000_000);
        let (text, json) = line(UrlState::Fetched(404), at);
        assert_eq!(text, "fetched\t404\t2\t2027-01-15T08:00:00Z\thttp://a.test/");
        let expected = [
            r#"{"state":"fetched","cause":"404","tries":2,"time":"2027-01-15T08:00:00Z","#,
            r#""url":"http://a.test/","via":"http://b.test/"}"#,
        ];
        assert_eq!(json, expected.concat());
        let (text, json) = line(UrlState::Fetched(403), at);
        assert!(text.starts_with("fetched\t403 challenge\t2\t"), "{text}");
        assert!(json.contains(r#""cause":"403","wall":"challenge","#), "{json}");
        let (text, json) = line(UrlState::Fetched(200), at);
        assert!(text.starts_with("fetched\t200 cut-length\t2\t"), "{text}");
        assert!(json.contains(r#""cause":"200","cut":"length","#), "{json}");
        assert!(line(UrlState::Waiting, None).0.starts_with("waiting\t-\t2\t-\t"));
        assert!(line(UrlState::Waiting, None).1.contains(r#""cause":null"#));
        assert!(line(UrlState::Waiting, None).1.ends_with(r#""via":null}"#));
        assert!(line(UrlState::SetAside, None).0.starts_with("waiting\tset-aside\t"));
        assert!(line(UrlState::Failed(Failure::HostDead), at).0.starts_with("failed\thost-dead\t"));
        assert!(line(UrlState::Failed(Failure::RobotsDenied), at).0.starts_with("denied\trobots-denied\t"));
    }

    #[test]
    fn who_waits_or_failed_has_the_trouble_of_its_origin() {
        let trouble = |origin, cause| Trouble {
            asked: JobKind::Robots,
            origin: Some(origin),
            cause: Cause::Failure(cause),
            detail: "".into(),
            tries: 3,
            tries_max: 3,
            seconds: 0,
            again: None,
        };
        let troubles =
            vec![trouble((Scheme::Http, 80), Failure::ConnectRefused), trouble((Scheme::Https, 443), Failure::TlsName)];
        let health = HostHealth { troubles, ..HostHealth::default() };
        let mut known = Troubles::default();
        known.note(HostNote { host: "a.test".into(), health, ..HostNote::default() });
        let of = |known: &Troubles, text, state| known.of(&Listed { state, ..Listed::waiting(text, None, 0) });
        let refused = Some("a.test: robots.txt: connection refused, given up after 3 tries".to_owned());
        assert_eq!(of(&known, "http://a.test/", UrlState::Waiting), refused);
        assert_eq!(of(&known, "http://a.test/", UrlState::Failed(Failure::RobotsUnreachable)), refused);
        assert_eq!(of(&known, "http://a.test/", UrlState::Failed(Failure::Reset)), None, "that was another thing");
        assert_eq!(of(&known, "http://a.test/", UrlState::Fetched(200)), None);
        assert_eq!(of(&known, "http://b.test/", UrlState::Waiting), None);
        assert_eq!(of(&known, "http://a.test:8080/", UrlState::Waiting), None);
        let https = of(&known, "https://a.test/", UrlState::Failed(Failure::TlsName)).expect("a reason");
        assert!(https.contains("its certificate is for another name"), "{https}");
        known.note(HostNote { host: "a.test".into(), ..HostNote::default() });
        assert_eq!(of(&known, "http://a.test/", UrlState::Waiting), None, "it goes well again");
    }

    #[test]
    fn causes_are_named_as_they_are_listed() {
        let takes = |text: &str, state| wanted_cause(text).expect(text).is_of(state, false);
        assert!(takes("404", UrlState::Fetched(404)) && takes("4XX", UrlState::Fetched(404)));
        assert!(!takes("403", UrlState::Fetched(404)) && !takes("4xx", UrlState::Failed(Failure::Reset)));
        assert!(
            takes("reset", UrlState::Failed(Failure::Reset)) && !takes("deadline", UrlState::Failed(Failure::Reset))
        );
        let cut = wanted_cause("cut").expect("a cause");
        assert!(cut.is_of(UrlState::Fetched(200), true) && !cut.is_of(UrlState::Fetched(200), false));
        assert!(takes("set-aside", UrlState::SetAside) && !takes("set-aside", UrlState::Waiting));
        assert!(wanted_cause("conect-refused").is_err_and(|why| why.contains("(did you mean connect-refused?)")));
    }

    #[test]
    fn hosts_are_found_as_people_write_them() {
        for (text, host) in [
            ("A.test", "a.test"),
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
            ("[::1]", "[::1]"),
            ("a.test:8080", "a.test"),
        ] {
            assert_eq!(host_name(text).expect("a host"), host);
        }
        for wrong in ["", "a.test/b", "http://a.test"] {
            assert!(
                host_name(wrong).is_err_and(|error| error.to_string().contains("expected a name or an address")),
                "{wrong}"
            );
        }
    }
}
