//! What a page tells robots about itself, in `<meta name=robots>` and in `X-Robots-Tag`.
//!
//! Decides: both use one language, which search engines document: case-insensitive words, separated by commas, or, as
//! many sites write, by spaces, semicolons or any other character that is not part of a word; `none` is `noindex,
//! nofollow`. Directives to all agents and to ours both count: the stricter one wins, so `index`, `follow` and `all`
//! revoke nothing. In a header field, a name before a colon addresses the rest of the field to that agent, `*` to
//! all. A directive with a value is not a name: this covers documented ones (`max-snippet: 5`) and unknown future
//! ones, if they are named alike (`max-…`) or have a number as value. Otherwise what follows such a name would be
//! lost to all agents. `unavailable_after` is a date, from which the page counts as noindex. Source: Google's "Robots
//! meta tag, data-nosnippet, and X-Robots-Tag specifications"; `noai` and `noimageai` are DeviantArt's.
//! Invariants: pure, linear, no byte can cause a panic.
//! Limits: of several dates the earliest counts; directives about excerpts mean nothing to a crawler and are ignored.

use std::fmt::Write as _;

use super::expiry::expiry;
use super::mime::is_http_space;
use ringcrawl_base::time::UnixTime;

/// The directives that mean something to a crawler or an archive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Directives {
    /// The page must not be found by search: `noindex` or `none`.
    pub noindex: bool,
    /// Its links must not be followed: `nofollow` or `none`.
    pub nofollow: bool,
    /// No copy of it may be shown.
    pub noarchive: bool,
    /// It must not be used to train models.
    pub noai: bool,
    /// Its images must not be used to train models.
    pub noimageai: bool,
    /// From this time on it counts as noindex.
    pub unavailable_after: Option<UnixTime>,
}

impl Directives {
    /// Applies the `content` of a `<meta>`.
    pub fn hear(&mut self, content: &str) {
        let mut parts = content.split(SEPARATORS);
        while let Some(part) = parts.next() {
            self.hear_part(part, &mut parts);
        }
    }

    /// Applies the value of an `X-Robots-Tag` field, for the agent with this product token.
    pub fn hear_field(&mut self, value: &str, agent: &str) {
        let mut is_for_us = true;
        let mut others = Directives::default();
        let mut parts = value.split(SEPARATORS);
        while let Some(mut part) = parts.next() {
            if let Some((name, after)) = part.split_once(':')
                && is_product(name.trim())
                && !is_valued(name.trim(), after.trim())
            {
                // A name applies to all that follows.
                is_for_us = matches!(name.trim(), name if name == "*" || name.eq_ignore_ascii_case(agent));
                part = after;
            }
            if is_for_us { &mut *self } else { &mut others }.hear_part(part, &mut parts);
        }
    }

    /// One part between commas. A date that contains a comma also takes the next part.
    fn hear_part(&mut self, part: &str, parts: &mut std::str::Split<'_, [char; 2]>) {
        let Some((name, value)) = part.split_once(':') else {
            part.split(is_between_words).for_each(|word| self.hear_word(word));
            return;
        };
        // Words may precede it without a comma.
        let mut words = name.trim().rsplit(is_http_space);
        let name = words.next().unwrap_or_default();
        words.for_each(|word| self.hear_word(word));
        if !name.eq_ignore_ascii_case("unavailable_after") {
            return;
        }
        let value = value.trim();
        let date = if is_day_name(value) { expiry(parts.next().unwrap_or_default()) } else { expiry(value) };
        self.unavailable_after = [self.unavailable_after, date].into_iter().flatten().min();
    }

    fn hear_word(&mut self, word: &str) {
        let is = |directive: &str| word.eq_ignore_ascii_case(directive);
        let none = is("none");
        self.noindex |= none || is("noindex");
        self.nofollow |= none || is("nofollow");
        self.noarchive |= is("noarchive") || is("nocache");
        self.noai |= is("noai");
        self.noimageai |= is("noimageai");
    }

    /// Whether it counts as noindex at this time.
    pub fn is_noindex(&self, now: UnixTime) -> bool {
        self.noindex || self.unavailable_after.is_some_and(|date| date <= now)
    }

    /// Whether no directive is set.
    pub fn is_empty(&self) -> bool {
        *self == Directives::default()
    }

    /// In the form of an `X-Robots-Tag` field; empty if no directive is set.
    pub fn to_label(&self) -> String {
        let mut label = String::new();
        let words = [
            ("noindex", self.noindex),
            ("nofollow", self.nofollow),
            ("noarchive", self.noarchive),
            ("noai", self.noai),
            ("noimageai", self.noimageai),
        ];
        let said = words.into_iter().filter(|(_, is_said)| *is_said).map(|(word, _)| word);
        for word in said {
            let _ = write!(label, "{}{word}", if label.is_empty() { "" } else { ", " });
        }
        if let Some(date) = self.unavailable_after {
            let comma = if label.is_empty() { "" } else { ", " };
            let _ = write!(label, "{comma}unavailable_after: {}", date.to_iso());
        }
        label
    }

    /// Their letters in the robot flags column of a CDX: A, F and I; empty if none is set.
    pub fn flags(&self) -> &'static str {
        match (self.noarchive, self.nofollow, self.noindex) {
            (false, false, false) => "",
            (true, false, false) => "A",
            (false, true, false) => "F",
            (false, false, true) => "I",
            (true, true, false) => "AF",
            (true, false, true) => "AI",
            (false, true, true) => "FI",
            (true, true, true) => "AFI",
        }
    }
}

/// Separators of directives; one directive may contain spaces.
const SEPARATORS: [char; 2] = [',', ';'];

/// Characters that occur in no directive. `noindex=false` is an unknown directive.
fn is_between_words(one: char) -> bool {
    !one.is_ascii_alphanumeric() && !matches!(one, '-' | '_' | '=')
}

/// Directives whose value follows a colon, while the name of an agent precedes one.
const VALUED: [&str; 4] = ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];

/// Prefix of directives with a value, known or future.
const VALUED_BEGINNING: &str = "max-";

/// Directives without a value: a word with a colon before one is the name of an agent.
const PLAIN: [&str; 14] = [
    "all",
    "index",
    "follow",
    "none",
    "noindex",
    "nofollow",
    "noarchive",
    "nocache",
    "nosnippet",
    "notranslate",
    "noimageindex",
    "indexifembedded",
    "noai",
    "noimageai",
];

/// Whether this is a directive with its value, as opposed to an agent with its directives.
fn is_valued(name: &str, value: &str) -> bool {
    let first = value.split(is_http_space).next().unwrap_or_default();
    let is_said_to_agent = || PLAIN.iter().any(|plain| first.eq_ignore_ascii_case(plain));
    let begins = |beginning: &str| name.get(..beginning.len()).is_some_and(|head| head.eq_ignore_ascii_case(beginning));
    VALUED.iter().any(|known| name.eq_ignore_ascii_case(known))
        || begins(VALUED_BEGINNING) && !is_said_to_agent()
        || value.trim_start_matches(['-', '+']).starts_with(|first: char| first.is_ascii_digit())
}

/// Whether this may be an agent's product token. A date, which also has commas and colons, contains spaces.
fn is_product(name: &str) -> bool {
    !name.is_empty() && !name.contains(is_http_space)
}

/// Whether a date continues after the comma.
fn is_day_name(word: &str) -> bool {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let head = word.get(..3).unwrap_or_default();
    word.bytes().all(|byte| byte.is_ascii_alphabetic()) && DAYS.iter().any(|day| day.eq_ignore_ascii_case(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(content: &str) -> String {
        let mut heard = Directives::default();
        heard.hear(content);
        heard.to_label()
    }

    fn field(value: &str) -> String {
        let mut heard = Directives::default();
        heard.hear_field(value, "ringcrawl");
        heard.to_label()
    }

    /// Every form for which the documentation has an example, in pages and in fields alike.
    #[test]
    fn words_and_lists() {
        for (said, heard) in [
            ("all", ""),
            ("index, follow", ""),
            ("noindex", "noindex"),
            ("NOINDEX", "noindex"),
            ("nofollow", "nofollow"),
            ("none", "noindex, nofollow"),
            ("noindex, nofollow", "noindex, nofollow"),
            ("noindex,nofollow,all", "noindex, nofollow"),
            ("nofollow noindex", "noindex, nofollow"),
            ("noarchive", "noarchive"),
            ("nocache", "noarchive"),
            ("noarchive, nosnippet", "noarchive"),
            ("max-snippet:20", ""),
            ("max-snippet: -1, max-image-preview:large, max-video-preview: 0, noindex", "noindex"),
            ("nosnippet, notranslate, noimageindex, indexifembedded", ""),
            ("noai, noimageai", "noai, noimageai"),
            ("noindexed, no index, no-follow", ""),
            ("", ""),
            (" , ,\tnoindex\t,", "noindex"),
            ("noindex;nofollow", "noindex, nofollow"),
            ("noindex; nofollow;", "noindex, nofollow"),
            ("noindex|noarchive", "noindex, noarchive"),
            ("noindex/nofollow", "noindex, nofollow"),
            ("\"noindex\"", "noindex"),
            ("noindex\u{a0}nofollow", "noindex, nofollow"),
            ("max-snippet:20;noindex", "noindex"),
        ] {
            assert_eq!((meta(said).as_str(), field(said).as_str()), (heard, heard), "{said}");
        }
    }

    #[test]
    fn dates_end_a_page() {
        for (said, heard) in [
            ("unavailable_after: 2030-06-25", "unavailable_after: 2030-06-25T00:00:00.000000Z"),
            ("unavailable_after: 25 Jun 2030 15:00:00 PST", "unavailable_after: 2030-06-25T23:00:00.000000Z"),
            ("unavailable_after: 25-Aug-2007 15:00:00 EST", "unavailable_after: 2007-08-25T20:00:00.000000Z"),
            (
                "unavailable_after: Saturday, 25-Jun-30 15:00:00 PST, none",
                "noindex, nofollow, unavailable_after: 2030-06-25T23:00:00.000000Z",
            ),
            (
                "noarchive, Unavailable_After:Sat, 25 Jun 2030 15:00:00 GMT",
                "noarchive, unavailable_after: 2030-06-25T15:00:00.000000Z",
            ),
            (
                "unavailable_after: 2031-01-01, unavailable_after: 2030-01-01",
                "unavailable_after: 2030-01-01T00:00:00.000000Z",
            ),
            ("unavailable_after: soon, noindex", "noindex"),
            (
                "noindex;unavailable_after: Saturday, 25-Jun-30 15:00:00 PST;nofollow",
                "noindex, nofollow, unavailable_after: 2030-06-25T23:00:00.000000Z",
            ),
            ("unavailable_after:", ""),
        ] {
            assert_eq!((meta(said).as_str(), field(said).as_str()), (heard, heard), "{said}");
        }
        let mut heard = Directives::default();
        heard.hear("unavailable_after: 2030-06-25T15:00:00Z");
        let date = UnixTime::from_civil(2030, 6, 25, 15, 0, 0).expect("a date");
        assert!(heard.is_noindex(date) && !heard.is_noindex(UnixTime::from_micros(date.as_micros() - 1)));
    }

    /// Addressees: fields with a name before them, and a name among others that a proxy joined into one field.
    #[test]
    fn names_in_fields() {
        for (said, heard) in [
            ("otherbot: none", ""),
            ("ringcrawl: nofollow", "nofollow"),
            ("RingCrawl:none", "noindex, nofollow"),
            ("otherbot: noindex, nofollow, ringcrawl: nofollow", "nofollow"),
            ("noarchive, otherbot: noindex", "noarchive"),
            (
                "ringcrawl: unavailable_after: Sat, 25 Jun 2030 15:00:00 GMT, nofollow",
                "nofollow, unavailable_after: 2030-06-25T15:00:00.000000Z",
            ),
            ("otherbot: unavailable_after: Sat, 25 Jun 2030 15:00:00 GMT, nofollow", ""),
            ("otherbot: max-snippet: 5, noindex", ""),
            ("*: noindex", "noindex"),
            // Unknown directives hide nothing, and revoke nothing from another agent.
            ("max-foo: 3, noindex", "noindex"),
            ("max-foo:large, noindex", "noindex"),
            ("Max-Audio-Preview: none-at-all, max-bar:-1, none", "noindex, nofollow"),
            ("foo-limit: 3, noindex", "noindex"),
            ("foo_until: 2030-06-25, noindex", "noindex"),
            ("max-bot: noindex", ""),
            ("max-bot: NoFollow, noindex", ""),
            ("otherbot: max-foo: 3, noindex", ""),
            ("otherbot: noarchive, max-foo: 3, noindex", ""),
            ("ringcrawl: max-foo: 3, noindex, otherbot: nofollow", "noindex"),
            (": noindex", ""),
        ] {
            assert_eq!(field(said), heard, "{said}");
        }
        // Several fields add up.
        let mut heard = Directives::default();
        for value in ["noarchive", "googlebot: noindex", "ringcrawl: nofollow", "unavailable_after: 2030-06-25"] {
            heard.hear_field(value, "ringcrawl");
        }
        assert_eq!(heard.to_label(), "nofollow, noarchive, unavailable_after: 2030-06-25T00:00:00.000000Z");
        assert_eq!(heard.flags(), "AF");
    }
}
