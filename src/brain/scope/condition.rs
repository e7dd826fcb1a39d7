//! One condition of a rule: `host=forum.example.org`, `offsite<=1`, `!extension=zip`.
//!
//! Decides: which conditions there are, what each compares, and the message for an invalid one. A comma-separated
//! list stands for any of its elements, except for patterns, where a comma may stand for itself. Numbers are compared
//! with `=`, `<`, `<=`, `>` and `>=`, all else with `=`, except for `embed`, which stands alone; `!` before a
//! condition negates it.
//! Limits: a regex is compiled to [`REGEX_BYTES_MAX`] at most, and takes time linear in a URL's length (crate
//! `regex`).
//! Leaves to others: which rules are tried (`index`).

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use regex::bytes::{Regex, RegexBuilder};

use super::glob::Glob;
use super::literal;
use super::subject::{EXTENSION_BYTES_MAX, Subject};
use super::surt::SurtPrefix;
use crate::hops::{LINKS_MAX, OFFSITE_MAX};
use ringcrawl_base::fuel::{RULE_COST, SEARCH_COST};
use ringcrawl_config::nearest;
use ringcrawl_html::MediaRanges;
use ringcrawl_url::names;
use ringcrawl_url::{Scheme, site_of};

/// A condition.
#[derive(Clone, Debug)]
pub struct Condition {
    /// As it was written.
    text: Box<str>,
    is_negated: bool,
    test: Test,
}

/// The comparison. In the order of cost.
#[derive(Clone, Debug)]
enum Test {
    Depth(Comparison, u16),
    Offsite(Comparison, u16),
    /// A page embeds it.
    Embed,
    Scheme(Scheme),
    Ports(Vec<RangeInclusive<u16>>),
    Sites(Vec<Box<str>>),
    Hosts(Vec<Box<str>>),
    /// Names; the host is one of them or is below one.
    Suffixes(Vec<Box<str>>),
    Surt(SurtPrefix),
    Extensions(Vec<Box<str>>),
    Types(MediaRanges),
    Path(Glob),
    Query(Glob),
    /// With a text that every match contains.
    Regex(Box<Regex>, Option<Box<[u8]>>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    Is,
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// The keys under which a rule with such a condition is indexed: it matches nothing that has none of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handle<'a> {
    /// Names that the host is, or is below.
    Names(&'a [Box<str>]),
    /// One such name.
    Name(&'a str),
    /// Extensions in lower case.
    Extensions(&'a [Box<str>]),
    /// A text in the URL.
    Literal(&'a [u8]),
}

/// All conditions, as listed when an unknown one appears.
const KEYS: [&str; 15] = [
    "host",
    "site",
    "suffix",
    "tld",
    "surt",
    "path",
    "query",
    "regex",
    "scheme",
    "port",
    "extension",
    "depth",
    "offsite",
    "embed",
    "type",
];
/// The condition without a comparison.
pub const EMBED: &str = "embed";
/// The longest compiled regex, and the most that its cache takes.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// The measured cost of a byte that a regex passes over.
const REGEX_BYTE_WORK: u64 = 4;

impl Condition {
    /// Parses a condition; an error says what is wrong, and what was expected.
    pub fn parse(text: &str) -> Result<Condition, String> {
        let (is_negated, positive) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let key_end = positive.find(|character: char| !character.is_ascii_lowercase()).unwrap_or(positive.len());
        let (key, rest) = positive.split_at_checked(key_end).unwrap_or((positive, ""));
        if !KEYS.contains(&key) {
            let word = positive.split(['=', '<', '>', '!']).next().unwrap_or_default();
            let guess = nearest(&word.to_ascii_lowercase(), KEYS.into_iter());
            let guess = guess.map(|key| format!(" (did you mean {key}?)")).unwrap_or_default();
            return Err(format!("there is no condition {word:?}{guess}; expected one of {}", KEYS.join(", ")));
        }
        if key == EMBED {
            return match rest {
                "" => Ok(Condition { text: text.into(), is_negated, test: Test::Embed }),
                _ => Err(format!("{positive:?} compares embed with something: expected embed or !embed")),
            };
        }
        let Some((comparison, value)) = Comparison::read(rest) else {
            let why = if rest.starts_with("!=") { format!("write !{key}=…") } else { format!("expected {key}=…") };
            return Err(format!("{positive:?} does not say what {key} is compared with: {why}"));
        };
        if comparison != Comparison::Is && !matches!(key, "depth" | "offsite") {
            return Err(format!("{key} is no number: expected {key}={value}"));
        }
        if value.is_empty() {
            return Err(format!("nothing stands behind {key}: expected {key}={}", example(key)));
        }
        let test = read_test(key, comparison, value)?;
        Ok(Condition { text: text.into(), is_negated, test })
    }

    /// Whether it holds.
    pub fn holds(&self, subject: &Subject<'_>) -> bool {
        self.test.holds(subject) != self.is_negated
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What the subject has instead of the required value, in words.
    pub fn found(&self, subject: &Subject<'_>) -> String {
        match &self.test {
            Test::Depth(..) => format!("its depth is {}", subject.hops.links()),
            Test::Offsite(..) => format!("it is {} hops off-site", subject.hops.offsite()),
            Test::Embed if subject.hops.is_embed() => "a page embeds it".to_owned(),
            Test::Embed => "it was found as a link".to_owned(),
            Test::Scheme(_) => format!("its scheme is {}", scheme_name(subject.url.scheme())),
            Test::Ports(_) => format!("its port is {}", subject.url.port()),
            Test::Sites(_) => format!("its site is {}", subject.site),
            Test::Hosts(_) | Test::Suffixes(_) => format!("its host is {}", subject.host()),
            Test::Surt(_) => "its SURT does not begin so".to_owned(),
            Test::Extensions(_) => match subject.extension() {
                Some(extension) => format!("its extension is {extension}"),
                None => "it has no extension".to_owned(),
            },
            Test::Types(_) => match subject.content_type {
                Some(value) => format!("its type is {}", String::from_utf8_lossy(value)),
                None => "its response names no type".to_owned(),
            },
            Test::Path(_) => format!("its path is {}", subject.path()),
            Test::Query(_) if subject.query().is_empty() => "it has no query".to_owned(),
            Test::Query(_) => format!("its query is {}", subject.query()),
            Test::Regex(..) => "the regex finds nothing in it".to_owned(),
        }
    }

    /// Whether it needs something that only a response has.
    pub fn is_of_response(&self) -> bool {
        matches!(self.test, Test::Types(_))
    }

    /// The cost of comparing it with `subject`, in units of [`ringcrawl_base::fuel::Fuel`].
    pub fn fuel(&self, subject: &Subject<'_>) -> u64 {
        let bytes = || subject.url.as_str().len() as u64;
        match &self.test {
            Test::Sites(names) | Test::Hosts(names) | Test::Suffixes(names) | Test::Extensions(names) => {
                RULE_COST * names.len() as u64
            }
            Test::Types(ranges) => RULE_COST * ranges.count() as u64,
            Test::Path(glob) | Test::Query(glob) => match glob.searches() as u64 {
                0 => RULE_COST,
                searches => SEARCH_COST * searches + bytes(),
            },
            Test::Regex(..) => SEARCH_COST + REGEX_BYTE_WORK * bytes(),
            _ => RULE_COST,
        }
    }

    /// The cost as a rank.
    pub fn cost(&self) -> u8 {
        match self.test {
            Test::Depth(..) | Test::Offsite(..) | Test::Embed | Test::Scheme(_) | Test::Ports(_) => 0,
            Test::Sites(_) | Test::Hosts(_) | Test::Suffixes(_) => 1,
            Test::Surt(_) | Test::Extensions(_) => 2,
            Test::Types(_) | Test::Path(_) | Test::Query(_) => 3,
            Test::Regex(..) => 4,
        }
    }

    /// The handle under which its rule can be indexed, and a rank for how many other URLs it may find.
    pub fn handle(&self) -> Option<(u8, Handle<'_>)> {
        if self.is_negated {
            return None;
        }
        match &self.test {
            Test::Hosts(names) => Some((0, Handle::Names(names))),
            Test::Sites(names) => Some((1, Handle::Names(names))),
            Test::Suffixes(names) if names.iter().all(|name| name.contains('.')) => Some((2, Handle::Names(names))),
            Test::Suffixes(names) => Some((5, Handle::Names(names))),
            Test::Surt(prefix) => {
                prefix.name().map(|name| (if name.contains('.') { 2 } else { 5 }, Handle::Name(name)))
            }
            Test::Path(glob) | Test::Query(glob) => {
                literal::useful(glob.literal()).map(|text| (3, Handle::Literal(text)))
            }
            Test::Regex(_, text) => text.as_deref().map(|text| (3, Handle::Literal(text))),
            Test::Extensions(extensions) => Some((4, Handle::Extensions(extensions))),
            _ => None,
        }
    }
}

impl Test {
    fn holds(&self, subject: &Subject<'_>) -> bool {
        let is_any = |names: &[Box<str>], own: &str| names.iter().any(|name| **name == *own);
        match self {
            Test::Depth(comparison, number) => comparison.holds(subject.hops.links(), *number),
            Test::Offsite(comparison, number) => comparison.holds(subject.hops.offsite(), *number),
            Test::Embed => subject.hops.is_embed(),
            Test::Scheme(scheme) => subject.url.scheme() == *scheme,
            Test::Ports(ports) => ports.iter().any(|range| range.contains(&subject.url.port())),
            Test::Sites(names) => is_any(names, subject.site),
            Test::Hosts(names) => is_any(names, subject.host()),
            Test::Suffixes(suffixes) => suffixes.iter().any(|suffix| names::is_within(subject.host(), suffix)),
            Test::Surt(prefix) => prefix.matches(subject),
            Test::Extensions(extensions) => subject
                .extension()
                .is_some_and(|own| extensions.iter().any(|extension| extension.eq_ignore_ascii_case(own))),
            Test::Types(ranges) => subject.content_type.is_some() && ranges.contain(subject.content_type),
            Test::Path(glob) => glob.matches(subject.path().as_bytes()),
            Test::Query(glob) => glob.matches(subject.query().as_bytes()),
            Test::Regex(regex, _) => regex.is_match(subject.url.as_str().as_bytes()),
        }
    }
}

impl Comparison {
    /// The comparison at the beginning of `text`, and the rest.
    fn read(text: &str) -> Option<(Comparison, &str)> {
        [
            ("<=", Comparison::AtMost),
            (">=", Comparison::AtLeast),
            ("<", Comparison::Below),
            (">", Comparison::Above),
            ("=", Comparison::Is),
        ]
        .into_iter()
        .find_map(|(sign, comparison)| text.strip_prefix(sign).map(|rest| (comparison, rest)))
    }

    fn holds(self, own: u16, number: u16) -> bool {
        match own.cmp(&number) {
            Ordering::Less => matches!(self, Comparison::Below | Comparison::AtMost),
            Ordering::Equal => matches!(self, Comparison::Is | Comparison::AtMost | Comparison::AtLeast),
            Ordering::Greater => matches!(self, Comparison::Above | Comparison::AtLeast),
        }
    }
}

fn read_test(key: &str, comparison: Comparison, value: &str) -> Result<Test, String> {
    let each = |read: &dyn Fn(&str) -> Result<String, String>| -> Result<Vec<Box<str>>, String> {
        value.split(',').map(|one| read(one).map(String::into_boxed_str)).collect()
    };
    match key {
        "host" => each(&|one| read_name(key, one)).map(Test::Hosts),
        "suffix" => each(&|one| read_name(key, one.strip_prefix('.').unwrap_or(one))).map(Test::Suffixes),
        "tld" => each(&|one| {
            let name = read_name(key, one.strip_prefix('.').unwrap_or(one))?;
            if name.contains('.') {
                Err(format!("{name} is no top-level domain: expected suffix={name}"))
            } else {
                Ok(name)
            }
        })
        .map(Test::Suffixes),
        "site" => each(&read_site).map(Test::Sites),
        "surt" => SurtPrefix::parse(value).map(Test::Surt),
        "path" if value.contains(['?', '#']) => {
            Err("a path ends before '?': expected path=… and query=…, or regex=…".to_owned())
        }
        "path" if !value.starts_with(['/', '*']) => {
            Err(format!("a path begins with '/': expected path=/{value} or path=*{value}"))
        }
        "path" => Ok(Test::Path(Glob::new(value, false))),
        "query" => Ok(Test::Query(Glob::new(value.strip_prefix('?').unwrap_or(value), true))),
        "regex" => read_regex(value),
        "scheme" => match value {
            "http" => Ok(Test::Scheme(Scheme::Http)),
            "https" => Ok(Test::Scheme(Scheme::Https)),
            _ => Err(format!("{value:?} is not http or https; expected scheme=https or scheme=http")),
        },
        "port" => value.split(',').map(read_ports).collect::<Result<_, _>>().map(Test::Ports),
        "extension" => each(&read_extension).map(Test::Extensions),
        "type" => MediaRanges::parse(value)
            .map(Test::Types)
            .map_err(|range| format!("{range:?} is no media type: expected type=application/pdf or type=image/*")),
        // Only a count that has not saturated can be compared.
        "offsite" => read_number(key, value, OFFSITE_MAX - 1).map(|number| Test::Offsite(comparison, number)),
        _ => read_number(key, value, LINKS_MAX - 1).map(|number| Test::Depth(comparison, number)),
    }
}

fn read_name(key: &str, text: &str) -> Result<String, String> {
    names::read(text).ok_or_else(|| format!("{text:?} is no name of a host; expected {key}={}", example(key)))
}

fn read_site(text: &str) -> Result<String, String> {
    let name = read_name("site", text)?;
    match site_of(&name) {
        site if site == name => Ok(name),
        site => Err(format!("{name} is a host of the site {site}: expected site={site} or host={name}")),
    }
}

fn read_extension(text: &str) -> Result<String, String> {
    let bare = text.strip_prefix('.').unwrap_or(text);
    if bare.is_empty() || bare.len() > EXTENSION_BYTES_MAX || bare.contains(['.', '/', '*', '?']) {
        return Err(format!(
            "{text:?} is no extension: expected what stands behind the last dot, {EXTENSION_BYTES_MAX} bytes at most, such as \
             extension=pdf,docx"
        ));
    }
    Ok(bare.to_ascii_lowercase())
}

fn read_ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err(format!("{text:?} is no port: expected port=8080 or port=8000-8999")),
    }
}

fn read_number(key: &str, text: &str, max: u16) -> Result<u16, String> {
    text.parse()
        .ok()
        .filter(|number| *number <= max)
        .ok_or_else(|| format!("{text:?} is no number from 0 to {max}: expected {key}<={}", example(key)))
}

fn read_regex(text: &str) -> Result<Test, String> {
    // URLs are ASCII.
    let built =
        RegexBuilder::new(text).unicode(false).size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX).build();
    match built {
        Ok(regex) => Ok(Test::Regex(Box::new(regex), literal::of_regex(text).map(Vec::into_boxed_slice))),
        Err(regex::Error::CompiledTooBig(_)) => Err(format!(
            "the regex {text:?} is longer than {REGEX_BYTES_MAX} bytes when compiled; expected a shorter one"
        )),
        Err(error) => {
            // The message has several lines; the last gives the reason.
            let told = error.to_string();
            let why = told.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Err(format!(
                "the regex {text:?} cannot be read: {why}; expected one of the crate regex, without look-around"
            ))
        }
    }
}

/// An example value for a key.
fn example(key: &str) -> &'static str {
    match key {
        "host" => "www.example.org",
        "site" | "suffix" => "example.org",
        "tld" => "org",
        "surt" => "org,example,",
        "path" => "/forum/*",
        "query" => "*print=1*",
        "regex" => "/20[0-9]{2}/",
        "scheme" => "https",
        "port" => "8080",
        "extension" => "pdf",
        "type" => "text/html",
        "offsite" => "1",
        _ => "3",
    }
}

fn scheme_name(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Http => "http",
        Scheme::Https => "https",
    }
}

#[cfg(test)]
mod tests;
