//! What a crawl's logs record of one URL or host.
//!
//! Limits: only counts and three URLs are kept, so a crawl of any size fits.

use std::collections::BTreeMap;

use super::WhySubject;
use crate::cli::urls::StateKind;
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_brain::backlinks::LinkingSites;
use ringcrawl_brain::frontier::allowance;
use ringcrawl_brain::hops::Hops;
use ringcrawl_brain::log::{HostNote, Listed, ListingStep, UrlState};
use ringcrawl_brain::outcome::Interstitial;
use ringcrawl_brain::trouble::Trouble;
use ringcrawl_config::Config;
use ringcrawl_url::{SiteKey, Url, site_of};

/// What was read.
#[derive(Debug)]
pub(super) struct Findings {
    asked: WhySubject,
    /// Other spellings of the same page's URL: the only ones looked for.
    others: Vec<String>,
    /// The URL, if it is known.
    pub(super) url: Option<UrlFacts>,
    /// Details of its failure; empty: none known.
    pub(super) detail: Box<str>,
    /// Its other spellings that are known.
    pub(super) known_others: Vec<String>,
    /// Facts about the URL's host, or the host.
    pub(super) host: HostFacts,
    /// Facts about the host's site.
    pub(super) site: SiteFacts,
    /// What the host asked for, and its state.
    pub(super) note: Option<HostNote>,
    /// The last note about the URL's port alone.
    pub(super) origin_note: Option<HostNote>,
    /// What holds up the whole crawl, or did when it ended: our own network.
    pub(super) outage: Option<Trouble>,
    /// The latest time in the logs, in seconds since 1970.
    pub(super) latest_seconds: u64,
    /// A URL of the host.
    pub(super) origin: Option<Url>,
    /// Responses with 2xx in the whole crawl.
    pub(super) pages: u64,
}

/// The state of a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct UrlFacts {
    pub(super) state: UrlState,
    pub(super) tries: u8,
    pub(super) seconds: Option<u64>,
    /// The bits of its [`Hops`].
    pub(super) depth: u16,
    pub(super) is_duplicate: bool,
    pub(super) interstitial: Option<Interstitial>,
    pub(super) cut: Option<Truncated>,
    /// Queued URLs of its host that were found before it.
    pub(super) ahead: u64,
}

/// What is known of a site.
#[derive(Clone, Debug)]
pub(super) struct SiteFacts {
    pub(super) name: Box<str>,
    number: u64,
    linking: LinkingSites,
    /// Responses with 2xx.
    pub(super) pages: u64,
    /// Whether one of its URLs is a seed.
    is_wanted: bool,
}

/// The state of a host's URLs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct HostFacts {
    pub(super) urls: u64,
    pub(super) waiting: u64,
    /// How many of them are deferred, because their page advised against them.
    pub(super) deferred: u64,
    pub(super) set_aside: u64,
    pub(super) fetched: u64,
    pub(super) failed: u64,
    pub(super) denied: u64,
    /// Statuses, with counts.
    pub(super) statuses: BTreeMap<u16, u64>,
    /// By name of the failure: count and latest time.
    pub(super) failures: BTreeMap<&'static str, (u64, u64)>,
    /// The waiting URL whose turn comes first.
    pub(super) first: Option<String>,
    /// When the latest of them ended, in seconds since 1970.
    pub(super) last_seconds: Option<u64>,
}

impl Findings {
    /// No findings yet; `rng_seed` is the crawl's.
    pub(super) fn new(asked: WhySubject, rng_seed: u64) -> Findings {
        let site = site_of(asked.host());
        let site = SiteFacts {
            name: site.into(),
            number: SiteKey::new(rng_seed, site).number(),
            linking: LinkingSites::default(),
            pages: 0,
            is_wanted: false,
        };
        let others = match &asked {
            WhySubject::Url(url) => others(url),
            WhySubject::Host(_) => Vec::new(),
        };
        Findings {
            asked,
            others,
            url: None,
            detail: "".into(),
            known_others: Vec::new(),
            host: HostFacts::default(),
            site,
            note: None,
            origin_note: None,
            outage: None,
            latest_seconds: 0,
            origin: None,
            pages: 0,
        }
    }

    /// Whether the crawl knows the URL or host.
    pub(super) fn is_known(&self) -> bool {
        match self.asked {
            WhySubject::Url(_) => self.url.is_some(),
            WhySubject::Host(_) => self.host.urls > 0,
        }
    }

    /// Takes one step of the logs.
    pub(super) fn take(&mut self, step: &ListingStep<'_>) {
        match step {
            ListingStep::Host(note) => self.take_note(note),
            ListingStep::Link(link) if link.to == self.site.number => {
                self.site.linking.add(link.mark);
            }
            ListingStep::Link(_) => {}
            ListingStep::Url(listed) => self.take_url(listed),
        }
    }

    fn take_note(&mut self, note: &HostNote) {
        let rest_began = note.until_seconds.saturating_sub(note.lasts_seconds);
        let latest = note.health.latest().map_or(0, |trouble| trouble.seconds).max(rest_began);
        self.latest_seconds = self.latest_seconds.max(latest);
        if note.host.is_empty() {
            self.outage = note.health.latest().cloned();
        } else if *note.host == *self.asked.host() {
            self.note = Some(note.clone());
        } else if let (Some(origin), WhySubject::Url(url)) = (note.origin(), &self.asked)
            && (origin.scheme(), origin.host(), origin.port()) == (url.scheme(), url.host(), url.port())
        {
            self.origin_note = Some(note.clone());
        }
    }

    /// What keeps the URL, or those of the host, from being fetched: the last failure, unless the host has recovered
    /// since.
    pub(super) fn trouble(&self) -> Option<&Trouble> {
        let health = &self.note.as_ref()?.health;
        match &self.asked {
            WhySubject::Url(url) => health.of(url.scheme(), url.port()),
            WhySubject::Host(_) => health.latest(),
        }
    }

    fn take_url(&mut self, listed: &Listed<'_>) {
        self.latest_seconds = self.latest_seconds.max(listed.seconds.unwrap_or_default());
        self.pages += u64::from(matches!(listed.state, UrlState::Fetched(200..=299)));
        if self.others.iter().any(|other| other == listed.text) {
            self.known_others.push(listed.text.to_owned());
        }
        // Most URLs are of other sites; this is visible without parsing them.
        if !listed.text.contains(&*self.site.name) {
            return;
        }
        let Ok(url) = Url::from_canonical(listed.text) else { return };
        if *url.site() == *self.site.name {
            self.site.count(listed);
        }
        if url.host() != self.asked.host() {
            return;
        }
        if let WhySubject::Url(asked) = &self.asked
            && *asked == url
        {
            let Listed { state, tries, seconds, depth, is_duplicate, interstitial, cut, .. } = *listed;
            let ahead = self.host.waiting;
            self.detail = listed.detail.into();
            self.url = Some(UrlFacts { state, tries, seconds, depth, is_duplicate, interstitial, cut, ahead });
        }
        self.host.count(listed);
        if self.origin.is_none() || listed.state == UrlState::Waiting && self.host.waiting == 1 {
            self.origin = Some(url);
        }
    }
}

impl SiteFacts {
    fn count(&mut self, listed: &Listed<'_>) {
        self.pages += u64::from(matches!(listed.state, UrlState::Fetched(200..=299)));
        self.is_wanted |= Hops::from_bits(listed.depth).is_seed();
    }

    /// About how many other sites link to it.
    pub(super) fn linking_sites(&self) -> u64 {
        self.linking.count()
    }

    /// How many pages it may fetch before other sites take precedence; `None`: all of them.
    pub(super) fn pages_before_others(&self, config: &Config) -> Option<u64> {
        let budget = &config.budget;
        let (free, each) = (budget.site_pages_free.into(), budget.site_pages_per_linking_site.into());
        let has_bound = config.counts_linking_sites() && !self.is_wanted;
        has_bound.then(|| allowance(free, each, self.linking_sites()))
    }
}

impl HostFacts {
    fn count(&mut self, listed: &Listed<'_>) {
        self.urls += 1;
        self.last_seconds = self.last_seconds.max(listed.seconds);
        match StateKind::of(listed.state) {
            StateKind::Waiting => {}
            StateKind::Fetched => self.fetched += 1,
            StateKind::Failed => self.failed += 1,
            StateKind::Denied => self.denied += 1,
        }
        match listed.state {
            UrlState::Waiting => {
                self.waiting += 1;
                let is_deferred = Hops::from_bits(listed.depth).is_deferred();
                self.deferred += u64::from(is_deferred);
                if self.waiting == 1 {
                    self.first = Some(listed.text.to_owned());
                }
            }
            UrlState::SetAside => self.set_aside += 1,
            UrlState::Fetched(status) => *self.statuses.entry(status).or_default() += 1,
            UrlState::Failed(failure) => {
                let (count, latest) = self.failures.entry(failure.as_str()).or_default();
                (*count, *latest) = (*count + 1, (*latest).max(listed.seconds.unwrap_or_default()));
            }
        }
    }

    /// The failure for which the whole host was given up, and when, if that was its last result.
    pub(super) fn given_up(&self) -> Option<(&'static str, u64)> {
        const OF_HOST: [Failure; 5] = [
            Failure::HostDead,
            Failure::DnsNotFound,
            Failure::RobotsUnreachable,
            Failure::RobotsServerError,
            Failure::CrawlDelayTooLong,
        ];
        let of = |failure: &Failure| self.failures.get_key_value(failure.as_str()).map(|(name, (_, at))| (*name, *at));
        OF_HOST.iter().filter_map(of).max_by_key(|(_, at)| *at).filter(|(_, at)| Some(*at) >= self.last_seconds)
    }
}

/// Other spellings of a page's URL that people mix up: scheme, `www.`, the slash at the end.
fn others(url: &Url) -> Vec<String> {
    let text = url.as_str();
    let other_scheme = match text.strip_prefix("https://") {
        Some(rest) => format!("http://{rest}"),
        None => text.replacen("http://", "https://", 1),
    };
    let other_slash = match text.strip_suffix('/') {
        Some(without) => without.to_owned(),
        None => format!("{text}/"),
    };
    let other_host = match text.split_once("://www.") {
        Some((scheme, rest)) => format!("{scheme}://{rest}"),
        None => text.replacen("://", "://www.", 1),
    };
    let canonical = |other: String| Url::parse(&other).ok().map(|other| other.as_str().to_owned());
    let others = [other_scheme, other_slash, other_host].into_iter().filter_map(canonical);
    others.filter(|other| other != text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(asked: &str, urls: &[(&str, UrlState, u16)]) -> Findings {
        let mut facts = Findings::new(WhySubject::read(asked).expect("a URL or a host"), 7);
        for (index, (text, state, depth)) in urls.iter().enumerate() {
            let seconds = (*state != UrlState::Waiting).then_some(index as u64);
            let listed = Listed { state: *state, tries: 1, seconds, ..Listed::waiting(text, None, *depth) };
            facts.take(&ListingStep::Url(listed));
        }
        facts
    }

    #[test]
    fn who_is_ahead_goes_by_the_order_of_the_log() {
        use UrlState::{Fetched, Waiting};
        let last = Hops::default().link().deferred().bits();
        let urls = [
            ("http://a.test/over", Fetched(200), 0),
            ("http://a.test/last", Waiting, last),
            ("http://a.test/1", Waiting, 1),
            ("http://other.test/?a.test", Waiting, 1),
            ("http://a.test/2", Waiting, 1),
            ("http://a.test/3", Waiting, 1),
        ];
        let ahead = |asked: &str| facts(asked, &urls).url.map(|url| url.ahead);
        assert_eq!(
            ["http://a.test/1", "http://a.test/3", "http://a.test/last"].map(ahead),
            [Some(1), Some(3), Some(0)]
        );
        assert_eq!(ahead("http://a.test/4"), None);
        let host = facts("a.test", &urls).host;
        assert_eq!((host.urls, host.waiting, host.deferred, host.fetched), (5, 4, 1, 1));
        assert_eq!(host.first.as_deref(), Some("http://a.test/last"));
    }

    #[test]
    fn a_site_is_counted_with_all_its_hosts_and_those_that_link() {
        use UrlState::{Fetched, Waiting};
        let urls = [
            ("http://a.site.test/", Fetched(200), 1),
            ("http://b.site.test/1", Fetched(200), 1),
            ("http://site.test/2", Fetched(404), 1),
            ("http://a.site.test/3", Waiting, 1),
            ("http://other.test/?site.test", Fetched(200), 0),
        ];
        let mut config = Config::default();
        (config.budget.site_pages_free, config.budget.site_pages_per_linking_site) = (1, 10);
        let mut facts = facts("a.site.test", &urls);
        assert_eq!((facts.site.pages, facts.site.pages_before_others(&config)), (2, Some(1)));
        let site = |name| SiteKey::new(7, name);
        for (from, to) in [("x.test", "site.test"), ("y.test", "other.test"), ("x.test", "site.test")] {
            let link = ringcrawl_brain::backlinks::SiteLink::new(site(from), site(to)).expect("two sites");
            facts.take(&ListingStep::Link(link));
        }
        assert_eq!((facts.site.linking_sites(), facts.site.pages_before_others(&config)), (1, Some(11)));
        config.budget.site_pages_per_linking_site = 0;
        assert_eq!(facts.site.pages_before_others(&config), None);
        let seeds = self::facts("a.site.test", &[("http://b.site.test/", Waiting, 0)]);
        assert_eq!(seeds.site.pages_before_others(&Config::default()), None);
    }

    #[test]
    fn a_host_is_given_up_if_that_was_the_last_of_it() {
        let dead = ("http://a.test/1", UrlState::Failed(Failure::HostDead), 0);
        let given_up = |urls: &[_]| facts("a.test", urls).host.given_up();
        assert_eq!(given_up(&[("http://a.test/", UrlState::Fetched(200), 0), dead]), Some(("host-dead", 1)));
        assert_eq!(given_up(&[dead, ("http://a.test/2", UrlState::Fetched(200), 0)]), None);
        assert_eq!(given_up(&[("http://a.test/", UrlState::Failed(Failure::Reset), 0)]), None);
    }

    #[test]
    fn other_forms_of_a_url_are_looked_for() {
        let url = Url::parse("https://www.a.test/x").expect("a URL");
        assert_eq!(others(&url), ["http://www.a.test/x", "https://www.a.test/x/", "https://a.test/x"]);
        let facts = facts("http://a.test/x/", &[("http://a.test/x", UrlState::Waiting, 0)]);
        assert_eq!((facts.is_known(), facts.known_others), (false, vec!["http://a.test/x".to_owned()]));
    }
}
