//! Lines for single hosts: `[[politeness.host]]`.
//!
//! Decides: as in block lists, a line is for a host, `www.example.org`; for a name and all below it, `.example.org`;
//! or only for those below it, `*.example.org`. Only the first line that matches a host applies. A line with no hosts
//! left is a mistake: it comes after one that matches all of its hosts, or appears twice. How: a host is looked up by
//! each name above it, so the cost does not depend on the number of lines.
//! Invariants: what is written reads back as the same lines, in their order.
//! Limits: `LINES_MAX` lines.
//! Leaves to others: what a line changes (`politeness::HostPace`).

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use toml_edit::{Item, TableLike, Value as Toml};

use super::hours::Hours;
use super::kind::{Kind, ValueFault, describe, quote, quote_all, time};
use super::nearest::nearest;
use super::text::TextForm;
use super::unit::format_duration;
use super::value::{Field, Value};
use ringcrawl_base::time::Duration;
use ringcrawl_url::is_listed_suffix;
use ringcrawl_url::names;

/// Most lines.
const LINES_MAX: usize = 100_000;
/// Most requests to one host at once.
const CONCURRENCY_MAX: u8 = 64;
/// Requests at once to one of the operator's own hosts, where its line does not set a number.
const MINE_AT_ONCE: u8 = 8;
/// Keys of a line, except `mine`.
const KEYS: [(&str, Kind); 4] = [
    ("match", Kind::Text(TextForm::Line)),
    ("delay", time("0s", "24h")),
    ("hours", Kind::Text(TextForm::Hours)),
    ("concurrency", Kind::Number(1, CONCURRENCY_MAX as i64)),
];

pub(super) const EXPECTED: &str = "tables with match and one or more of mine, delay, hours and concurrency, such as \
    { match = \"*.example.org\", delay = \"5s\" }";

/// The terms for one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostTerms {
    /// In place of `politeness.host_delay`.
    pub delay: Option<Duration>,
    /// The hours of the day in which we send requests to it; `None`: all.
    pub hours: Option<Hours>,
    /// Requests at once, 1 to 64.
    pub concurrency: u8,
    /// The operator's own: no delay except this one and those that the host asks for, and no claims on site, address
    /// or operator.
    pub is_mine: bool,
}

impl Default for HostTerms {
    fn default() -> HostTerms {
        HostTerms { delay: None, hours: None, concurrency: 1, is_mine: false }
    }
}

/// The lines, in the order of the file.
#[derive(Clone, Default)]
pub struct HostLines(Arc<Lines>);

#[derive(Default)]
struct Lines {
    lines: Vec<(Pattern, HostTerms)>,
    /// By name: the lines for it alone, for it with all below it, and for those below it; each by its number.
    by_name: HashMap<Box<str>, [Option<u32>; 3]>,
}

/// Hosts that a line is for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Pattern {
    Host(Box<str>),
    Within(Box<str>),
    Below(Box<str>),
}

impl HostLines {
    /// What is agreed for a host.
    pub fn terms_of(&self, host: &str) -> HostTerms {
        let Lines { lines, by_name } = &*self.0;
        if by_name.is_empty() {
            return HostTerms::default();
        }
        let host = names::bare(host);
        let of_name = |name: &str| {
            let [alone, within, below] = by_name.get(name).copied().unwrap_or_default();
            let others = if name.len() == host.len() { alone } else { below };
            within.into_iter().chain(others)
        };
        let first = names::above(host).flat_map(of_name).min();
        first.and_then(|number| lines.get(number as usize)).map(|(_, terms)| *terms).unwrap_or_default()
    }

    /// Whether some hosts may have several requests at once or are the operator's own.
    pub fn have_several(&self) -> bool {
        self.0.lines.iter().any(|(_, terms)| terms.concurrency > 1 || terms.is_mine)
    }

    /// The highest number of requests at once and the shortest delay that lines allow for third-party hosts; `None`:
    /// no line allows more than one, or a shorter delay than `delay`.
    pub fn laxer_than(&self, delay: Duration) -> Option<(u8, Duration)> {
        let of_others = self.0.lines.iter().filter(|(_, terms)| !terms.is_mine);
        let laxest = of_others.fold((1, delay), |(at_once, least), (_, terms)| {
            (at_once.max(terms.concurrency), least.min(terms.delay.unwrap_or(least)))
        });
        Some(laxest).filter(|laxest| *laxest != (1, delay))
    }

    /// The lines as an inline array.
    pub(super) fn format(&self) -> String {
        let lines: Vec<String> = self.0.lines.iter().map(|(pattern, terms)| format_line(pattern, terms)).collect();
        format!("[{}]", lines.join(", "))
    }
}

impl Lines {
    /// Adds a line. If another one already covers all its hosts, returns that one.
    fn add(&mut self, pattern: Pattern, terms: HostTerms) -> Result<(), Pattern> {
        if let Some((before, _)) = self.first_for_all(&pattern).and_then(|number| self.lines.get(number as usize)) {
            return Err(before.clone());
        }
        let number = self.lines.len() as u32;
        let [alone, within, below] = self.by_name.entry(pattern.name().into()).or_default();
        *match pattern {
            Pattern::Host(_) => alone,
            Pattern::Within(_) => within,
            Pattern::Below(_) => below,
        } = Some(number);
        self.lines.push((pattern, terms));
        Ok(())
    }

    /// The first line that covers all hosts of `pattern`.
    fn first_for_all(&self, pattern: &Pattern) -> Option<u32> {
        let own = pattern.name();
        let of_name = |name: &str| {
            let [alone, within, below] = self.by_name.get(name).copied().unwrap_or_default();
            let others = match pattern {
                Pattern::Host(_) if name.len() == own.len() => alone,
                Pattern::Within(_) if name.len() == own.len() => None,
                _ => below,
            };
            within.into_iter().chain(others)
        };
        names::above(own).flat_map(of_name).min()
    }
}

impl Pattern {
    /// Reads a name, with a dot or `*.` before it.
    fn read(text: &str) -> Option<Pattern> {
        let form = |name, of: fn(Box<str>) -> Pattern| names::read(name).map(|name| of(name.into()));
        match (text.strip_prefix("*."), text.strip_prefix('.')) {
            (Some(name), _) => form(name, Pattern::Below),
            (None, Some(name)) => form(name, Pattern::Within),
            (None, None) => form(text, Pattern::Host),
        }
    }

    fn name(&self) -> &str {
        let (Pattern::Host(name) | Pattern::Within(name) | Pattern::Below(name)) = self;
        name
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = match self {
            Pattern::Host(_) => "",
            Pattern::Within(_) => ".",
            Pattern::Below(_) => "*.",
        };
        write!(f, "{before}{}", self.name())
    }
}

/// The names follow from the lines.
impl PartialEq for HostLines {
    fn eq(&self, other: &HostLines) -> bool {
        self.0.lines == other.0.lines
    }
}

impl Eq for HostLines {}

impl fmt::Debug for HostLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format())
    }
}

impl Field for HostLines {
    fn from_value(value: Value) -> Option<HostLines> {
        if let Value::HostLines(lines) = value { Some(lines) } else { None }
    }

    fn to_value(&self) -> Value {
        Value::HostLines(self.clone())
    }
}

/// A table, if the item is one, and its position.
type TableAt<'a> = (Option<Range<usize>>, Option<&'a dyn TableLike>);

/// Reads the lines.
pub(super) fn read(item: &Item) -> Result<HostLines, Vec<ValueFault>> {
    let fault = |span, what: String| ValueFault { span, name: None, message: format!("{what}; expected {EXPECTED}") };
    let tables: Vec<TableAt<'_>> = match item {
        Item::ArrayOfTables(tables) => {
            tables.iter().map(|table| (table.span(), Some(table as &dyn TableLike))).collect()
        }
        Item::Value(Toml::Array(array)) => {
            let table = |table| table as &dyn TableLike;
            array.iter().map(|value| (value.span(), value.as_inline_table().map(table))).collect()
        }
        _ => return Err(vec![fault(item.span(), describe(item))]),
    };
    if tables.len() > LINES_MAX {
        return Err(vec![fault(None, format!("{} lines; expected at most {LINES_MAX}", tables.len()))]);
    }
    let (mut lines, mut faults) = (Lines::default(), Vec::new());
    for (span, table) in tables {
        let Some(table) = table else {
            faults.push(fault(span, "not a table".to_owned()));
            continue;
        };
        read_line(table, span, &mut lines, &mut faults);
    }
    if faults.is_empty() { Ok(HostLines(Arc::new(lines))) } else { Err(faults) }
}

fn read_line(table: &dyn TableLike, span: Option<Range<usize>>, lines: &mut Lines, faults: &mut Vec<ValueFault>) {
    let (mut terms, mut pattern, mut at_once) = (HostTerms::default(), None, None);
    let name = table.get("match").and_then(Item::as_str);
    let mut blame = |span: Option<Range<usize>>, message: String| {
        faults.push(ValueFault { span, name: name.map(str::to_owned), message });
    };
    for (key, item) in table.iter() {
        let at = table.get_key_value(key).and_then(|(key, _)| key.span()).or_else(|| span.clone());
        if key == "mine" {
            match item.as_bool() {
                Some(is_mine) => terms.is_mine = is_mine,
                None => blame(at, format!("mine: {}; expected true or false", describe(item))),
            }
            continue;
        }
        let Some((_, kind)) = KEYS.iter().find(|(known, _)| *known == key) else {
            let meant = MEANT.iter().find(|(_, words)| words.contains(&key)).map(|(known, _)| *known);
            let near = meant.or_else(|| nearest(key, KEYS.iter().map(|(known, _)| *known).chain(["mine"])));
            let guess = near.map(|near| format!(" (did you mean \"{near}\"?)")).unwrap_or_default();
            blame(at, format!("unknown key {}{guess}; expected match, mine, delay, hours or concurrency", quote(key)));
            continue;
        };
        match (key, kind.read(item)) {
            (_, Err(wrong)) => wrong.into_iter().for_each(|fault| {
                blame(fault.span.or_else(|| at.clone()), format!("{key}: {}", fault.message));
            }),
            ("match", Ok(Value::Text(text))) => match Pattern::read(&text) {
                Some(read) => pattern = Some((read, at)),
                None => blame(at, format!("match: {} is not a host; expected {EXPECTED_MATCH}", quote(&text))),
            },
            ("delay", Ok(Value::Time(delay))) => terms.delay = Some(delay),
            ("hours", Ok(Value::Hours(hours))) => terms.hours = hours,
            ("concurrency", Ok(Value::Number(count))) => at_once = u8::try_from(count).ok(),
            (_, Ok(_)) => blame(at, format!("{key}: another kind of value; expected {}", kind.expected())),
        }
    }
    let has_other_name = MEANT[0].1.iter().any(|word| table.get(word).is_some());
    if table.get("match").is_none() && !has_other_name {
        blame(span.clone(), format!("no match; expected {EXPECTED_MATCH}"));
    } else if table.get("match").is_some() && table.len() == 1 {
        blame(span, "only match is set; expected mine, delay, hours or concurrency as well".to_owned());
    }
    terms.concurrency = at_once.unwrap_or(if terms.is_mine { MINE_AT_ONCE } else { 1 });
    if terms.is_mine {
        terms.delay.get_or_insert(Duration::ZERO);
    }
    let Some((pattern, at)) = pattern else { return };
    let below = name.and_then(|name| name.strip_prefix("*.").or_else(|| name.strip_prefix('.')));
    if let Some(suffix) = below.filter(|suffix| terms.is_mine && is_listed_suffix(&suffix.to_ascii_lowercase())) {
        blame(at, format!("mine: hosts below the public suffix {} belong to others; expected your own", quote(suffix)));
        return;
    }
    let shown = pattern.to_string();
    if let Err(before) = lines.add(pattern, terms) {
        let what = match before.to_string() == shown {
            true => format!("{shown} is listed twice; expected each once"),
            false => format!("never used: \"{before}\" matches all of its hosts first; expected it before that line"),
        };
        faults.push(ValueFault { span: at, name: Some(shown), message: format!("match: {what}") });
    }
}

/// Names that other tables and programs use for these keys.
const MEANT: [(&str, &[&str]); 5] = [
    ("match", &["host", "hosts", "name", "domain", "pattern", "site", "url", "for"]),
    ("delay", &["host_delay", "site_delay", "crawl_delay", "wait", "interval", "pause", "rate"]),
    ("hours", &["time", "times", "schedule", "between", "crawl_hours"]),
    (
        "concurrency",
        &["connections", "parallel", "requests", "at_once", "threads", "in_flight_max", "host_concurrency"],
    ),
    ("mine", &["own", "is_mine", "trusted"]),
];

const EXPECTED_MATCH: &str =
    "match = \"www.example.org\", \".example.org\" for it and all below it, or \"*.example.org\" for those below it";

fn format_line(pattern: &Pattern, terms: &HostTerms) -> String {
    let mine = if terms.is_mine { ", mine = true" } else { "" };
    let delay = terms.delay.map(|delay| format!(", delay = {}", quote_all(&format_duration(delay))));
    let hours = terms.hours.map(|hours| format!(", hours = {}", quote_all(&hours.to_string())));
    let is_needed = terms.is_mine || delay.is_none() && hours.is_none();
    let concurrency =
        Some(terms.concurrency).filter(|count| *count > 1 || is_needed).map(|count| format!(", concurrency = {count}"));
    let [delay, hours, concurrency] = [delay, hours, concurrency].map(Option::unwrap_or_default);
    format!("{{ match = {}{mine}{delay}{hours}{concurrency} }}", quote_all(&pattern.to_string()))
}

/// A line for the example file, commented out.
pub(super) fn example() -> &'static str {
    "# [[politeness.host]]\n# match = \"*.example.org\"\n# mine = false\n# delay = \"5s\"\n# hours = \"22:00-06:00\"\n# concurrency = 1\n"
}

#[cfg(test)]
mod tests;
