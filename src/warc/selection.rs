//! Selects captures that may be shown or passed on, by what their pages say of themselves.
//!
//! Decides: pages that say noindex, or whose `unavailable_after` has passed, are omitted, included, or the only ones
//! taken. Pages with an unwanted use can be omitted, too. What a page says is recorded in its record and its index
//! line when it is stored, so its content need not be read again. Records of other writers lack this information;
//! they are taken.
//! Invariants: pure; a page without recorded directives is taken, except by `only`.
//! Limits: what a site says after its pages were fetched is not known here.

use super::index::IndexEntry;
use super::read::Record;
use super::recover::{preferences_of, robots_of};
use ringcrawl_base::preferences::{Preferences, Use};
use ringcrawl_base::time::UnixTime;
use ringcrawl_html::Directives;
use ringcrawl_url::Url;

/// How pages that say noindex are treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noindex {
    /// They are omitted.
    Omit,
    /// They are taken like others.
    Include,
    /// Only they are taken.
    Only,
}

/// Selected URLs: those that match both, if both are given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UrlChoice {
    /// The prefix of the URLs.
    pub prefix: Option<String>,
    /// They are of this host or of names below it.
    pub host: Option<String>,
}

impl UrlChoice {
    /// Whether `url`, as recorded, is selected.
    pub fn takes(&self, url: &str) -> bool {
        self.prefix.as_ref().is_none_or(|prefix| url.starts_with(prefix))
            && self.host.as_ref().is_none_or(|host| Url::parse(url).is_ok_and(|url| is_below(url.host(), host)))
    }

    /// Whether a record of `target` is selected: a record of a host's addresses belongs to the host.
    pub fn takes_record(&self, target: &str) -> bool {
        let Some(name) = target.strip_prefix("dns:") else { return target.is_empty() || self.takes(target) };
        let of_prefix = self.prefix.as_deref().map(Url::parse);
        of_prefix.is_none_or(|url| url.is_ok_and(|url| url.host() == name))
            && self.host.as_ref().is_none_or(|host| is_below(name, host))
    }
}

fn is_below(name: &str, host: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == host || name.strip_suffix(host).is_some_and(|below| below.ends_with('.'))
}

/// What is required of captures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    /// How pages that say noindex are treated.
    pub noindex: Noindex,
    /// Uses that must not be unwanted.
    pub respect: Vec<Use>,
    /// The current time, for `unavailable_after`.
    pub now: UnixTime,
}

/// Why a capture is omitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeftOut {
    /// It says noindex, or does not.
    Noindex,
    /// A use is unwanted.
    Use,
}

impl Selection {
    /// Whether the capture that a record holds is taken.
    pub fn of_record(&self, record: &Record) -> Result<(), LeftOut> {
        self.of(&robots_of(record), preferences_of(record))
    }

    /// Whether the capture that an index names is taken.
    pub fn of_entry(&self, entry: &IndexEntry) -> Result<(), LeftOut> {
        let robots = Directives {
            noindex: entry.robotflags.contains('I'),
            unavailable_after: UnixTime::from_digits(&entry.unavailable_after),
            ..Directives::default()
        };
        self.of(&robots, Preferences::of_label(&entry.usage))
    }

    fn of(&self, robots: &Directives, preferences: Preferences) -> Result<(), LeftOut> {
        let is_taken = match self.noindex {
            Noindex::Include => true,
            Noindex::Omit => !robots.is_noindex(self.now),
            Noindex::Only => robots.is_noindex(self.now),
        };
        if !is_taken {
            return Err(LeftOut::Noindex);
        }
        let is_wanted = !self.respect.iter().any(|one| preferences.denies(*one));
        if is_wanted { Ok(()) } else { Err(LeftOut::Use) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_the_addresses_of_their_hosts() {
        let choice = |prefix: &str, host: &str| {
            let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            UrlChoice { prefix: given(prefix), host: given(host) }
        };
        let all = [
            "http://a.test/x",
            "http://a.test/y",
            "https://w.a.test/x",
            "http://ba.test/",
            "dns:a.test",
            "dns:w.a.test",
            "",
        ];
        for (choice, expected) in [
            (choice("", ""), [true; 7]),
            (choice("", "a.test"), [true, true, true, false, true, true, true]),
            (choice("http://a.test/x", ""), [true, false, false, false, true, false, true]),
            (choice("http", "w.a.test"), [false, false, true, false, false, false, true]),
        ] {
            assert_eq!(all.map(|target| choice.takes_record(target)), expected, "{choice:?}");
        }
    }

    #[test]
    fn what_is_taken() {
        let (before, date, after) = ("20300101000000", "20300625150000", "20310101000000");
        let entry = |robotflags: &str, usage: &str| IndexEntry {
            robotflags: robotflags.to_owned(),
            usage: usage.to_owned(),
            unavailable_after: if robotflags.is_empty() { date.to_owned() } else { String::new() },
            ..IndexEntry::default()
        };
        let of = |noindex, respect: &[Use], now: &str| Selection {
            noindex,
            respect: respect.to_vec(),
            now: UnixTime::from_digits(now).expect("a time"),
        };
        use Noindex::{Include, Omit, Only};
        for (selection, robotflags, usage, expected) in [
            (of(Omit, &[], before), "AF", "", Ok(())),
            (of(Omit, &[], before), "AI", "", Err(LeftOut::Noindex)),
            (of(Omit, &[], before), "", "", Ok(())),
            (of(Omit, &[], after), "", "", Err(LeftOut::Noindex)),
            (of(Include, &[], after), "", "train-ai=n", Ok(())),
            (of(Only, &[], after), "", "", Ok(())),
            (of(Only, &[], before), "F", "", Err(LeftOut::Noindex)),
            (of(Omit, &[Use::TrainAi], before), "F", "search=n, train-ai=n", Err(LeftOut::Use)),
            (of(Omit, &[Use::TrainAi, Use::Search], before), "F", "search=y, train-ai=y", Ok(())),
            (of(Omit, &[Use::TrainAi], before), "F", "", Ok(())),
        ] {
            assert_eq!(selection.of_entry(&entry(robotflags, usage)), expected, "{selection:?} {robotflags} {usage}");
        }
    }
}
