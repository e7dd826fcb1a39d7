//! Formats what is known, as text for people and as JSON for programs.
//!
//! Decides: the first line is the answer. Each other line is a name followed by what is known under it, each fact
//! once.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::findings::UrlFacts;
use super::holds::{decider, delay, holds, is_of_host};
use super::robots::Says;
use super::{Known, WhySubject};
use crate::cli::crawl_logs::iso;
use ringcrawl_base::grouped;
use ringcrawl_base::time::UnixTime;
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_brain::hops::Hops;
use ringcrawl_brain::job::JobKind;
use ringcrawl_brain::log::UrlState;
use ringcrawl_brain::outcome::Interstitial;
use ringcrawl_brain::trouble::{Cause, Trouble, words};
use ringcrawl_url::Url;

/// The answer, and its evidence.
pub(super) fn as_text(known: &Known) -> String {
    let mut text = format!("{}\n", answer(known));
    let mut line = |name: &str, what: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<10} {what}", format!("{name}:"));
    };
    for hold in holds(known).iter().skip(1) {
        line("and", &hold.text);
    }
    if let Some(url) = &known.facts.url {
        line("found", &way(url, !known.way.pages.is_empty()));
        for (place, page) in known.way.pages.iter().enumerate() {
            let is_seed = known.way.is_whole && place + 1 == known.way.pages.len();
            line("via", &format!("{page}{}", if is_seed { " (a seed)" } else { "" }));
        }
        if let Some(seconds) = url.seconds {
            let again = if url.is_duplicate { ", with a body that is already stored" } else { "" };
            line("ended", &format!("{} after {}{again}", iso(seconds), counted(url.tries.into(), "request")));
        }
        match &known.record {
            Some(record) => line("record", record),
            None if matches!(url.state, UrlState::Fetched(_)) => line("record", "none (store.types, scope.rules)"),
            None => {}
        }
    }
    for other in &known.facts.known_others {
        line("other form known", other);
    }
    if let Some(verdicts) = &known.scope {
        let what = match (&known.asked, known.denied()) {
            (WhySubject::Url(_), _) => "it",
            (WhySubject::Host(_), Some(denied)) if is_of_host(denied) => "all of it",
            (WhySubject::Host(_), _) => "its root",
        };
        // A list of addresses applies when a host's addresses are known, and this command looks up none.
        let blocked = known.facts.url.is_some_and(|url| url.state == UrlState::Failed(Failure::Blocked));
        let unknown = if blocked { "; this command does not look up addresses" } else { "" };
        match known.denied() {
            Some(denied) => line("scope", &format!("excludes {what} now ({})", decider(denied))),
            None => line("scope", &format!("now allows {what} ({}){unknown}", decider(&verdicts[0]))),
        }
    }
    line("robots", &robots(known));
    host_lines(known, &mut line);
    if known.is_waiting() {
        line("not shown", UNKNOWN);
    }
    text
}

fn host_lines(known: &Known, line: &mut dyn FnMut(&str, &str)) {
    let (host, facts) = (&known.facts.host, &known.facts);
    if host.urls == 0 {
        return;
    }
    let counts = [
        (host.fetched, "fetched"),
        (host.waiting, "waiting"),
        (host.set_aside, "set aside"),
        (host.failed, "failed"),
        (host.denied, "forbidden by robots.txt"),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    line("host", &format!("{}: {}, {}", known.asked.host(), counted(host.urls, "URL"), counts.join(", ")));
    if known.config.counts_linking_sites() {
        let (site, pages) = (&facts.site, counted(facts.site.pages, "page"));
        let allowed = match site.pages_before_others(&known.config) {
            Some(most) => format!("{pages} of its allowance of {most}"),
            None => format!("{pages}; a seed's site has no allowance"),
        };
        line("site", &format!("{}: {} to it, {allowed}", site.name, linking(site.linking_sites())));
    }
    let statuses: Vec<String> = host.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
    if !statuses.is_empty() {
        line("statuses", &statuses.join(", "));
    }
    for (failure, (count, latest)) in &host.failures {
        line("failure", &format!("{failure}: {count}, the last {}", iso(*latest)));
    }
    if let Some(first) = &host.first {
        line("next", &format!("{first} is next"));
    }
    let asked = facts.note.as_ref().filter(|note| !note.delay.is_zero()).map_or("", |_| ", including Crawl-delay");
    line("delay", &format!("at least {:.3} s between requests{asked}", delay(known).as_secs_f64()));
}

/// The answering sentence.
fn answer(known: &Known) -> String {
    match &known.asked {
        WhySubject::Url(_) => match &known.facts.url {
            Some(url) => answer_known(known, url),
            None => answer_unknown(known),
        },
        WhySubject::Host(host) => {
            let facts = &known.facts.host;
            let first = holds(known).into_iter().next();
            match (facts.urls, first, facts.given_up()) {
                (0, _, _) => match known.denied().filter(|denied| is_of_host(denied)) {
                    Some(denied) => {
                        format!(
                            "Unknown; a link to it would not be queued: the scope excludes it ({}).",
                            decider(denied)
                        )
                    }
                    None => "Unknown: no URL of this host was found, or none is in scope.".to_owned(),
                },
                (_, Some(hold), _) => format!("{} of {host} waiting: {}.", counted(facts.waiting, "URL"), hold.text),
                (_, None, Some((failure, at))) => {
                    format!("Given up ({failure}) since {}: {}.", iso(at), cause(known, failure))
                }
                (_, None, None) if facts.waiting > 0 => {
                    let waiting = counted(facts.waiting, "URL");
                    format!("{waiting} of {host} waiting for a turn; nothing on disk holds them back.")
                }
                (urls, None, None) => {
                    format!(
                        "Nothing waits: {host} has {} known, and all have ended{}.",
                        counted(urls, "URL"),
                        most_failed(known)
                    )
                }
            }
        }
    }
}

/// The most frequent failure among a host's URLs, if there is any.
fn most_failed(known: &Known) -> String {
    let most = known.facts.host.failures.iter().max_by_key(|(_, (count, _))| *count);
    most.map_or(String::new(), |(failure, (count, _))| {
        format!(", {} without a response ({failure}): {}", grouped(*count), cause(known, failure))
    })
}

/// Why URLs ended this way: the host's last trouble if it explains the failure, or else the meaning of such a
/// failure.
fn cause(known: &Known, failure: &str) -> String {
    if let (WhySubject::Url(url), false, Some(facts)) = (&known.asked, known.facts.detail.is_empty(), &known.facts.url)
        && let UrlState::Failed(failure) = facts.state
    {
        return Trouble::of_page(url, failure, &known.facts.detail, facts.tries).sentence(url.host(), 0);
    }
    let trouble = known.facts.trouble().filter(|trouble| explains(trouble, failure));
    trouble.map_or_else(|| meaning(failure).to_owned(), |trouble| trouble.sentence_at_rest(known.asked.host()))
}

/// Whether `trouble` makes URLs end in this failure.
pub(in crate::cli) fn explains(trouble: &Trouble, failure: &str) -> bool {
    match failure {
        "robots-unreachable" | "robots-server-error" => trouble.asked == JobKind::Robots,
        "host-dead" => true,
        failure => matches!(trouble.cause, Cause::Failure(cause) if cause.as_str() == failure),
    }
}

/// Explains a status that came without a page.
fn hint(status: u16) -> &'static str {
    match status {
        401 => ": it requires a login (http.auth)",
        403 => ": it refuses this crawler",
        407 => ": the proxy requires a login",
        429 => ": too many requests",
        503 => ": it is overloaded or down for maintenance",
        500..=599 => ": its server failed",
        _ => "",
    }
}

/// How a body was cut, in words.
fn cut(url: &UrlFacts) -> &'static str {
    match url.cut {
        None => "",
        Some(Truncated::Length) => {
            ", cut at a limit of length (fetch.body_bytes_max, fetch.body_wire_bytes_max or fetch.decode_ratio_max)"
        }
        Some(Truncated::Time) => {
            ", cut because it took too long (fetch.deadline, fetch.rate_min, or five seconds while others wait)"
        }
        Some(Truncated::Disconnect) => ", cut off: the connection ended before the page did",
        Some(Truncated::Unspecified) => ", cut off where its framing or content coding broke",
    }
}

/// What came in place of a page, if it was no page.
fn interstitial(url: &UrlFacts) -> &'static str {
    match url.interstitial {
        Some(Interstitial::Challenge) => ", a challenge in place of a page",
        Some(Interstitial::Payment) => ", a request for payment",
        None => "",
    }
}

fn answer_known(known: &Known, url: &UrlFacts) -> String {
    let at = url.seconds.map(iso).unwrap_or_default();
    match url.state {
        UrlState::Fetched(status @ 200..=299) => {
            format!("It was fetched at {at}, with status {status}{}{}.", interstitial(url), cut(url))
        }
        UrlState::Fetched(status) => {
            let target = known.redirect.as_ref().map(|target| format!(", a redirect to {target}")).unwrap_or_default();
            let (interstitial, cut) = (interstitial(url), cut(url));
            format!(
                "It was requested, and returned status {status}{interstitial}{target} at {at}{cut}{}.",
                hint(status)
            )
        }
        UrlState::SetAside => {
            "It waits for the next run: there was no room for it (visited.urls_max, or its site's share), or seeds still \
             waited when the run ended."
                .to_owned()
        }
        UrlState::Failed(Failure::RobotsDenied) => match &known.robots.says {
            Says::Rules { allows: false, line: Some((number, line)) } => {
                format!("It ended at {at}: robots.txt forbids it, line {number}: {line}")
            }
            _ => format!("It ended at {at}: robots.txt forbade it."),
        },
        UrlState::Failed(failure) => {
            let name = failure.as_str();
            let once = match failure {
                Failure::OverBudget => ", once the budget has been raised",
                Failure::Blocked | Failure::OutOfScope => ", once it is back in scope",
                _ => "",
            };
            let cause = cause(known, name);
            format!("It ended at {at} ({name}): {cause}. `crawl --retry-failed` retries it{once}.")
        }
        UrlState::Waiting => match holds(known).first() {
            Some(hold) => format!("It waits: {}.", hold.text),
            None => "It waits for its turn or its next try. It is next of its host, and nothing on disk holds it back."
                .to_owned(),
        },
    }
}

fn answer_unknown(known: &Known) -> String {
    let scope = known.scope.as_ref().and_then(|verdicts| verdicts.first());
    match scope.filter(|verdict| !verdict.is_allowed) {
        Some(denied) => {
            format!("Unknown; a link to it would not be queued: the scope excludes it ({}).", decider(denied))
        }
        None if known.facts.known_others.is_empty() => {
            "Unknown: no page read so far links to it, or the link was dropped (see the crawl's summary).".to_owned()
        }
        None => "Unknown in this form; another form is known.".to_owned(),
    }
}

/// Formats a count with its noun.
pub(super) fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Formats how many sites link.
pub(super) fn linking(sites: u64) -> String {
    match sites {
        0 => "no other site links".to_owned(),
        1 => "1 other site links".to_owned(),
        sites => format!("about {sites} other sites link"),
    }
}

/// How the URL was found; its linking pages follow, if they are known.
fn way(url: &UrlFacts, are_told: bool) -> String {
    let hops = Hops::from_bits(url.depth);
    if hops == Hops::default() {
        return "a seed".to_owned();
    }
    let mut way = format!("{} from a seed", counted(hops.links().into(), "link"));
    if hops.redirects() > 0 {
        let _ = write!(way, ", {}", counted(hops.redirects().into(), "redirect"));
    }
    if hops.is_embed() {
        way.push_str(", embedded by a page");
    }
    if hops.offsite() > 0 {
        let _ = write!(way, ", off-site by {}", hops.offsite());
    }
    if hops.is_deferred() {
        way.push_str(", deferred");
    }
    if are_told { way } else { format!("{way} (the linking page was not recorded)") }
}

fn robots(known: &Known) -> String {
    let time = UnixTime::from_digits(&known.robots.timestamp)
        .map_or_else(String::new, |time| iso(time.as_micros() / 1_000_000));
    let url = known.robots.url.as_deref().unwrap_or_default();
    match &known.robots.says {
        Says::Nothing => "none stored".to_owned(),
        Says::Missing(status) => format!("{url} of {time}: status {status}, which forbids nothing"),
        Says::Unreachable(status, words) => {
            format!("{url} of {time}: status {status}{words}, which forbids everything")
        }
        Says::Rules { .. } if matches!(known.asked, WhySubject::Host(_)) => format!("{url} of {time} was read"),
        Says::Rules { allows, line } => {
            let word = if *allows { "allows" } else { "forbids" };
            let by =
                line.as_ref().map_or("no rule matches it".to_owned(), |(line, text)| format!("line {line}: {text}"));
            format!("{url} of {time} {word} it ({by})")
        }
    }
}

/// What a failure means for you as the operator.
pub(in crate::cli) fn meaning(failure: &str) -> &'static str {
    match failure {
        "robots-denied" => "robots.txt forbids its URLs",
        "robots-unreachable" => "robots.txt was unavailable, which forbids everything",
        "robots-server-error" => "robots.txt returned an error, which forbids everything",
        "crawl-delay-too-long" => "the Crawl-delay in robots.txt exceeds the limit (politeness.crawl_delay_above)",
        "host-dead" => {
            "its host failed too often in a row (politeness.host_failures_max), or answered 429 or 503 for six hours to everything or to similar URLs"
        }
        "dns-not-found" => "the name does not exist, or has no address",
        "dns-failed" | "dns-timeout" => "no name server knew its address",
        "address-forbidden" => {
            "fetch.private_addresses forbids its address (\"loopback\" allows this machine's, \"allow\" all, mine = true in [[politeness.host]] your own hosts)"
        }
        "port-forbidden" => "the port belongs to another protocol (scope.bad_ports)",
        "out-of-scope" => "the scope excluded it when its turn came",
        "over-budget" => "its host or site has used up its budget ([budget], or its seed's options)",
        "blocked" => "scope.block lists it, its host or its address",
        name => Failure::ALL
            .iter()
            .find(|failure| failure.as_str() == name)
            .map_or("no usable response arrived", |failure| words(*failure)),
    }
}

/// What the directory does not record.
const UNKNOWN: &str = "turns at its site, address and operator, pauses between tries, rests of kinds of URLs, what is left of \
                       [budget], what was learned of traps: only the running crawl knows them";

/// The same for programs.
pub(super) fn as_json(known: &Known) -> Value {
    let facts = &known.facts;
    let (kind, what) = match &known.asked {
        WhySubject::Url(url) => ("url", url.as_str()),
        WhySubject::Host(host) => ("host", &**host),
    };
    let holds: Vec<Value> = holds(known)
        .iter()
        .map(|hold| json!({ "by": hold.by, "until": hold.until.map(iso), "text": hold.text }))
        .collect();
    let url = facts.url.map(|url| {
        let hops = Hops::from_bits(url.depth);
        let (state, cause) = match url.state {
            UrlState::Waiting => ("waiting", None),
            UrlState::SetAside => ("waiting", Some("set-aside".to_owned())),
            UrlState::Fetched(status) => ("fetched", Some(status.to_string())),
            UrlState::Failed(Failure::RobotsDenied) => ("denied", Some("robots-denied".to_owned())),
            UrlState::Failed(failure) => ("failed", Some(failure.as_str().to_owned())),
        };
        json!({
            "state": state, "cause": cause, "tries": url.tries, "time": url.seconds.map(iso), "links": hops.links(),
            "redirects": hops.redirects(), "offsite": hops.offsite(), "deferred": hops.is_deferred(),
            "embed": hops.is_embed(), "duplicate": url.is_duplicate, "wall": url.interstitial.map(Interstitial::as_str),
            "cut": url.cut.map(Truncated::as_str), "ahead": url.ahead, "record": known.record, "via": known.way.pages,
            "redirect": known.redirect.as_ref().map(Url::as_str),
        })
    });
    let scope = known.scope.as_ref().map(|verdicts| {
        let denied = known.denied();
        json!({ "allowed": denied.is_none(), "by": decider(denied.unwrap_or(&verdicts[0])) })
    });
    let (allowed, line) = match &known.robots.says {
        Says::Nothing => (None, None),
        Says::Missing(_) => (Some(true), None),
        Says::Unreachable(..) => (Some(false), None),
        Says::Rules { allows, line } => (Some(*allows), line.as_ref()),
    };
    let of_url = matches!(known.asked, WhySubject::Url(_));
    let robots = json!({
        "url": known.robots.url, "timestamp": known.robots.timestamp, "allowed": allowed.filter(|_| of_url),
        "line": line.filter(|_| of_url).map(|(line, _)| line), "rule": line.filter(|_| of_url).map(|(_, text)| text),
    });
    let host = &facts.host;
    let failures: serde_json::Map<String, Value> =
        host.failures.iter().map(|(name, (count, _))| ((*name).to_owned(), json!(count))).collect();
    let statuses: serde_json::Map<String, Value> =
        host.statuses.iter().map(|(status, count)| (status.to_string(), json!(count))).collect();
    json!({
        "kind": kind, "what": what, "known": facts.is_known(), "answer": answer(known), "running": known.is_running,
        "holds": holds, "url": url, "other_forms": facts.known_others, "scope": scope, "robots": robots,
        "site": {
            "name": facts.site.name, "pages": facts.site.pages, "linking_sites": facts.site.linking_sites(),
            "pages_before_others": facts.site.pages_before_others(&known.config),
        },
        "host": {
            "name": known.asked.host(), "urls": host.urls, "waiting": host.waiting, "deferred": host.deferred,
            "set_aside": host.set_aside, "fetched": host.fetched, "failed": host.failed, "denied": host.denied,
            "statuses": statuses, "failures": failures, "first_waiting": host.first,
            "delay_ms": delay(known).as_millis() as u64,
            "left_alone_until": facts.note.as_ref().map(|note| iso(note.until_seconds)),
            "trouble": facts.trouble().map(|trouble| trouble.sentence_at_rest(known.asked.host())),
        },
    })
}
