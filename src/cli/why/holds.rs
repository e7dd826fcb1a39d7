//! What keeps a waiting URL, or the waiting URLs of a host, from being fetched now.
//!
//! Decides: what would end the URL without a request comes first. Then comes what went wrong, as that is the true
//! reason, then what holds the whole crawl, then what holds the host, and last its own place in the queue. 429 and
//! 503 are the host's wish to be left alone.
//! Invariants: it reports only what the directory records. Claims at a site, an address or an operator's group, a
//! retry's pause, and what a crawl has learned of traps are known to the running crawl alone.

use super::robots::Says;
use super::told::{counted, linking};
use super::{Known, WhySubject};
use crate::cli::crawl_logs::iso;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::hops::Hops;
use ringcrawl_brain::job::JobKind;
use ringcrawl_brain::log::UrlState;
use ringcrawl_brain::scope::{BlockedBy, Decider, ScopeVerdict};
use ringcrawl_brain::trouble::{Cause, Trouble};

/// A reason that holds a URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hold {
    /// A word for programs.
    pub(super) by: &'static str,
    /// Until when, in seconds since 1970, if known.
    pub(super) until: Option<u64>,
    /// In words that follow "because".
    pub(super) text: String,
}

/// What holds it, the first reason first; empty if nothing waits.
pub(super) fn holds(known: &Known) -> Vec<Hold> {
    let (facts, config) = (&known.facts, &known.config);
    let url = facts.url.filter(|url| url.state == UrlState::Waiting);
    if matches!(known.asked, WhySubject::Url(_)) && url.is_none() || facts.host.waiting == 0 {
        return Vec::new();
    }
    let now = known.now.as_micros() / 1_000_000;
    let mut holds = Vec::new();
    let mut hold = |by, until, text: String| holds.push(Hold { by, until, text });
    // For a host, only its root was judged; a list's verdict on a name or an address applies to all its URLs.
    let denied = known.denied().filter(|denied| url.is_some() || is_of_host(denied));
    if let Some(denied) = denied {
        let what = if url.is_some() { "it" } else { "them" };
        hold("scope", None, format!("the scope now excludes {what} ({}): no request is made", decider(denied)));
    }
    if let Says::Rules { allows: false, line } = &known.robots.says {
        let by = line.as_ref().map(|(number, line)| format!(", line {number}: {line}")).unwrap_or_default();
        let robots = known.robots.url.as_deref().unwrap_or("robots.txt");
        if url.is_some() {
            hold("robots", None, format!("robots.txt forbids it ({robots}{by}): it will end without a request"));
        }
    }
    // A host that got a request since then is reached at its known address.
    let may_hold =
        |outage: &&Trouble| outage.asked != JobKind::Resolve || facts.host.last_seconds <= Some(outage.seconds);
    if let Some(outage) = facts.outage.as_ref().filter(may_hold) {
        hold("outage", None, outage.of_all());
    }
    if let Some(shortage) = &known.shortage {
        hold("disk", None, format!("fetching is paused: {shortage}"));
    }
    let rests = facts.note.as_ref().is_some_and(|note| note.left(now) > 0);
    if let Some(trouble) = facts.trouble().filter(|trouble| !is_wish(trouble) || !rests) {
        let text = match known.is_running {
            true => trouble.sentence(known.asked.host(), now),
            false => trouble.sentence_at_rest(known.asked.host()),
        };
        hold("trouble", trouble.left(now).filter(|_| known.is_running).map(|left| now + left), text);
    }
    // By the current clock a cooldown would last longer than intended: the log is from the future.
    let behind = facts.latest_seconds.saturating_sub(now);
    if behind >= CLOCK_BEHIND_MIN {
        // The last record is some time old.
        let behind = span(Duration::from_secs(behind + behind / 100));
        let rest = facts.note.as_ref().filter(|note| note.until_seconds > now.saturating_add(note.lasts_seconds));
        let but = if rest.is_some() { "; its host rests no longer than intended" } else { "" };
        let text = format!("the clock is {behind} behind the crawl's last log entry: it was set back{but}");
        hold("clock", None, text);
    }
    if !known.is_running {
        hold("not-running", None, "no crawl is running in this directory".to_owned());
    }
    if config.crawl.pages_max > 0 && facts.pages >= config.crawl.pages_max {
        hold("pages-max", None, format!("the crawl has reached crawl.pages_max = {}", config.crawl.pages_max));
    }
    if let Some((hours, closed)) = config.crawl.hours.and_then(|hours| Some((hours, hours.closed_for(known.now)?))) {
        let until = now + closed.as_secs();
        hold("hours", Some(until), format!("outside crawl.hours = \"{hours}\" until {}", iso(until)));
    }
    let terms = config.politeness.host.terms_of(known.asked.host());
    if let Some((hours, closed)) = terms.hours.and_then(|hours| Some((hours, hours.closed_for(known.now)?))) {
        let until = now + closed.as_secs();
        let text =
            format!("its host may be requested only during {hours} ([[politeness.host]]), from {} on", iso(until));
        hold("host-hours", Some(until), text);
    }
    if let Says::Unreachable(status, words) = known.robots.says {
        let text = format!(
            "the last response to robots.txt was {status}{words}, which forbids everything until robots.txt is available"
        );
        hold("robots", None, text);
    }
    if let Some(until) = facts.note.as_ref().map(|note| now + note.left(now)).filter(|until| *until > now) {
        let asked = match facts.trouble().filter(|trouble| is_wish(trouble)).map(|trouble| trouble.cause) {
            Some(Cause::Status(status)) => format!("because it answered {status}"),
            _ => "as it asked (Retry-After, Crawl-delay), or because it answered 429 or 503".to_owned(),
        };
        hold("rest", Some(until), format!("its host rests until {}, {asked}", iso(until)));
    }
    if let Some(until) = facts.origin_note.as_ref().map(|note| now + note.left(now)).filter(|until| *until > now) {
        let text = format!("its port rests until {}, as it asked (Retry-After)", iso(until));
        hold("rest", Some(until), text);
    }
    if let Some(most) = facts.site.pages_before_others(config).filter(|most| facts.site.pages >= *most) {
        let text = format!(
            "its site has used its allowance of {} ({} to it; budget.site_pages_free): under crawl.pages_max, each other due host gets 16 pages for one of its hosts",
            counted(most, "page"),
            linking(facts.site.linking_sites())
        );
        hold("allowance", None, text);
    }
    if let Some(url) = url {
        let delay = delay(known);
        if Hops::from_bits(url.depth).is_deferred() {
            let why = "because the linking page advises against it (nofollow, noindex) or offers it as another format";
            let turns = "its kind gets a quarter of its turns until two of its pages prove worthwhile";
            hold("deferred", None, format!("it is deferred, {why}: {turns}"));
        }
        if url.ahead > 0 {
            let least = Duration::from_millis((delay.as_millis() as u64).saturating_mul(url.ahead));
            let text = format!(
                "{} of its host are ahead of it, {} apart: at least {}",
                counted(url.ahead, "URL"),
                span(delay),
                span(least)
            );
            hold("queue", None, text);
        }
    }
    holds
}

/// Whether it is no failure, but a request to leave the host alone for a while.
fn is_wish(trouble: &Trouble) -> bool {
    trouble.asked == JobKind::Page && matches!(trouble.cause, Cause::Status(429 | 503))
}

/// The time between two requests to the host, to the extent that the directory shows it.
pub(super) fn delay(known: &Known) -> Duration {
    let note = known.facts.note.as_ref();
    if let Some(in_force) = note.map(|note| note.health.delay).filter(|delay| !delay.is_zero() && known.is_running) {
        return in_force;
    }
    let asked = note.map_or(Duration::ZERO, |note| note.delay);
    known.config.politeness.delay_of(known.asked.host()).max(asked)
}

/// Whether a verdict is about all URLs of a host.
pub(super) fn is_of_host(verdict: &ScopeVerdict) -> bool {
    matches!(&verdict.by, Decider::Blocked(BlockedBy::Name(_) | BlockedBy::Address))
}

/// The deciding rule or list, in words.
pub(super) fn decider(verdict: &ScopeVerdict) -> String {
    match &verdict.by {
        Decider::Key(key) => (*key).to_owned(),
        Decider::Rule { line, text } => format!("scope.rules, line {line}: {text}"),
        Decider::Blocked(BlockedBy::Name(name)) => format!("scope.block: {name}"),
        Decider::Blocked(BlockedBy::Url) => "scope.block: its URL".to_owned(),
        Decider::Blocked(BlockedBy::Address) => "scope.block: its address".to_owned(),
        Decider::Nothing => "no rule".to_owned(),
    }
}

/// A time in one unit, as people say it.
fn span(duration: Duration) -> String {
    let millis = duration.as_millis() as u64;
    match millis {
        ..10_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        10_000..600_000 => format!("{} s", millis / 1_000),
        600_000..36_000_000 => format!("{} minutes", millis / 60_000),
        36_000_000..360_000_000 => format!("{} hours", millis / 3_600_000),
        _ => format!("{} days", millis / 86_400_000),
    }
}

/// Tolerance in seconds of the clock behind the logs of a running crawl: they count whole seconds, rounded up.
const CLOCK_BEHIND_MIN: u64 = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::why::findings::Findings;
    use crate::cli::why::robots::RobotsFound;
    use crate::cli::why::way::Way;
    use ringcrawl_base::time::UnixTime;
    use ringcrawl_config::Config;

    #[test]
    fn what_is_agreed_for_the_host_counts() {
        let text = "[[politeness.host]]\nmatch = \"a.test\"\ndelay = \"7s\"\nhours = \"22:00-06:00\"\n\
                    [politeness]\nhost_delay = \"2s\"\n";
        let mut config = Config::parse(text, "f").unwrap_or_else(|errors| panic!("{errors:?}"));
        let of = |config: &Config, host: &str, hour| {
            let asked = WhySubject::Host(host.into());
            let mut facts = Findings::new(asked.clone(), 7);
            facts.host.waiting = 1;
            let now = UnixTime::from_civil(2026, 11, 26, hour, 0, 0).expect("a time");
            let known = Known {
                asked,
                now,
                is_running: true,
                shortage: None,
                config: config.clone(),
                way: Way::default(),
                facts,
                scope: None,
                robots: RobotsFound::default(),
                record: None,
                redirect: None,
            };
            let holds: Vec<_> =
                holds(&known).iter().map(|hold| (hold.by, hold.until.map(|at| at % 86_400 / 3_600))).collect();
            (delay(&known).as_secs(), holds)
        };
        assert_eq!(of(&config, "a.test", 21), (7, vec![("host-hours", Some(22))]));
        assert_eq!(of(&config, "a.test", 23), (7, vec![]));
        assert_eq!(of(&config, "b.test", 21), (2, vec![]));
        config.politeness.site_delay = Duration::from_secs(3);
        assert_eq!(of(&config, "b.test", 21), (3, vec![]));
    }
}
