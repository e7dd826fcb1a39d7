//! What decides on a URL, in words: for users who ask "why?".
//!
//! Invariants: the verdict is that of the crawl; only the explanation is computed here.

use super::rule::{Action, Stage};
use super::{BlockedBy, Outside, Scope, Subject};
use ringcrawl_config::Follow;

/// The verdict on a URL at a stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScopeVerdict {
    /// Whether it goes on.
    pub is_allowed: bool,
    /// What decided.
    pub by: Decider,
    /// Earlier rules, which do not match.
    pub passed: Vec<Passed>,
    /// What `scope.follow` compares with, if it decides against the URL; otherwise empty.
    pub why: String,
}

/// What decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decider {
    /// A limit or list, by its key.
    Key(&'static str),
    /// A rule.
    Rule {
        /// Its line.
        line: usize,
        /// Its text.
        text: String,
    },
    /// A block list.
    Blocked(BlockedBy),
    /// No rule is about it.
    Nothing,
}

/// A rule that does not match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Its line.
    pub line: usize,
    /// Its text.
    pub text: String,
    /// The condition that does not hold, and the actual value.
    pub why: String,
}

impl Scope {
    /// The verdict on `subject` at `stage`, and why.
    pub fn explain(&self, stage: Stage, subject: &Subject<'_>) -> ScopeVerdict {
        let decided = self.rules.decide(stage, subject);
        let admitted = match stage {
            Stage::Schedule => self.admits(subject.url, subject.site, subject.hops),
            _ => Ok(()),
        };
        if let Some(by) = self.blocks.why(subject.url) {
            return ScopeVerdict {
                is_allowed: false,
                by: Decider::Blocked(by),
                passed: Vec::new(),
                why: String::new(),
            };
        }
        let key = |key: &'static str| ScopeVerdict {
            is_allowed: false,
            by: Decider::Key(key),
            passed: Vec::new(),
            why: String::new(),
        };
        match admitted {
            Err(Outside::Length) => return key("scope.url_bytes_max"),
            Err(Outside::Port) => return key("scope.bad_ports"),
            Err(Outside::Depth) => return key("scope.depth_max"),
            Err(Outside::Redirects) => return key("scope.redirects_max"),
            Err(Outside::Elsewhere | Outside::Blocked | Outside::Rule(_) | Outside::Dear) | Ok(()) => {}
        }
        let Ok(rule) = decided else {
            return ScopeVerdict { why: TOO_DEAR.to_owned(), ..key("scope.rules") };
        };
        let end = rule.map_or(usize::MAX, |rule| rule.line);
        let passed = self.rules.of(stage).take_while(|rule| rule.line < end).map(|rule| Passed {
            line: rule.line,
            text: rule.text.to_string(),
            why: rule
                .conditions()
                .iter()
                .find(|condition| !condition.holds(subject))
                .map(|condition| format!("{}: {}", condition.as_str(), condition.found(subject)))
                .unwrap_or_default(),
        });
        let passed = passed.collect();
        match rule {
            Some(rule) => {
                let by = Decider::Rule { line: rule.line, text: rule.text.to_string() };
                ScopeVerdict { is_allowed: rule.action == Action::Allow, by, passed, why: String::new() }
            }
            None if stage == Stage::Schedule => {
                let why = if admitted.is_ok() { String::new() } else { self.not_followed(subject) };
                let is_followed = self.is_followed(subject.url, subject.site);
                let key = if admitted.is_ok() && !is_followed { "links.embeds" } else { "scope.follow" };
                ScopeVerdict { is_allowed: admitted.is_ok(), by: Decider::Key(key), passed, why }
            }
            None => ScopeVerdict { is_allowed: true, by: Decider::Nothing, passed, why: String::new() },
        }
    }

    /// The sites or hosts of the seeds, none of which is the URL's.
    fn not_followed(&self, subject: &Subject<'_>) -> String {
        let (own, of_seeds, kind) = match self.limits.follow {
            Follow::SeedHosts => (subject.host(), &self.limits.hosts, "host"),
            Follow::All | Follow::SeedSites => (subject.site, &self.limits.sites, "site"),
        };
        let mut names: Vec<&str> = of_seeds.iter().map(|name| &**name).collect();
        names.sort_unstable();
        let more = names.len().saturating_sub(NAMES_MAX);
        names.truncate(NAMES_MAX);
        match (names.as_slice(), more) {
            ([], _) => format!("no seed is given, so {kind} {own} is no seed's"),
            (names, 0) => format!("its {kind} is {own}; the seeds' are {}", names.join(", ")),
            (names, more) => format!("its {kind} is {own}; the seeds' are {} and {more} more", names.join(", ")),
        }
    }
}

/// Why a URL is denied for which the search for a rule took too long.
const TOO_DEAR: &str = "it takes more than 4 ms to compare it with the rules, so it is denied";
/// Names of seeds' sites or hosts that are listed.
const NAMES_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{BlockList, Rules};
    use super::*;
    use crate::hops::Hops;
    use ringcrawl_config as config;
    use ringcrawl_url::Url;

    #[test]
    fn what_decides_is_told_with_what_was_passed() {
        let rules = "deny host=forum.example.org\n# PDFs\nallow extension=pdf offsite<=1\ndeny store type=image/*\n";
        let rules = Rules::parse("rules", rules.as_bytes()).unwrap();
        let (blocks, _) = BlockList::parse("", b".blocked.test");
        let seed = Url::parse("http://example.org/").unwrap();
        let mut config = config::Config::default();
        (config.scope.follow, config.links.embeds) = (config::Follow::SeedSites, config::Embeds::OffSite);
        let scope = Scope::of_seeds(&config, &[seed.into()]).with(Arc::new(rules), Arc::new(blocks));
        let explain = |text: &str, stage, offsite, links| {
            let url = Url::parse(text).unwrap();
            let hops = Hops::from_bits(links).with_offsite(offsite);
            scope.explain(stage, &Subject::new(&url, hops).with_type(Some(b"image/png")))
        };
        let rule = |line, text: &str| Decider::Rule { line, text: text.to_owned() };
        let verdict = explain("http://a.test/x.pdf", Stage::Schedule, 1, 1);
        assert_eq!((verdict.is_allowed, verdict.by), (true, rule(3, "allow extension=pdf offsite<=1")));
        let why = "host=forum.example.org: its host is a.test".to_owned();
        assert_eq!(verdict.passed, [Passed { line: 1, text: "deny host=forum.example.org".to_owned(), why }]);
        let verdict = explain("http://a.test/x.pdf", Stage::Schedule, 2, 1);
        assert_eq!((verdict.is_allowed, verdict.by), (false, Decider::Key("scope.follow")));
        assert_eq!(verdict.passed[1].why, "offsite<=1: it is 2 hops off-site");
        assert_eq!(verdict.why, "its site is a.test; the seeds' are example.org");
        let verdict = explain("http://example.org/", Stage::Schedule, 0, 101);
        assert_eq!((verdict.is_allowed, verdict.by), (false, Decider::Key("scope.depth_max")));
        let verdict = explain("http://a.test/x.png", Stage::Schedule, 1, Hops::default().embed().bits());
        assert_eq!((verdict.is_allowed, verdict.by, verdict.why), (true, Decider::Key("links.embeds"), String::new()));
        let verdict = explain("http://a.test/x.png", Stage::Schedule, 2, Hops::default().embed().bits());
        assert_eq!((verdict.is_allowed, verdict.by), (false, Decider::Key("scope.follow")));
        let blocked = explain("http://x.blocked.test/", Stage::Fetch, 0, 0);
        assert_eq!(blocked.by, Decider::Blocked(BlockedBy::Name("blocked.test".to_owned())));
        assert_eq!(explain("http://a.test/", Stage::Follow, 0, 0).by, Decider::Nothing);
        assert_eq!(explain("http://a.test/", Stage::Store, 0, 0).by, rule(4, "deny store type=image/*"));
    }
}
