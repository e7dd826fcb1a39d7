//! What a key takes: its shape, its range, and the sentence that says so.
//!
//! Decides: every refusal says what came and what would be right, from the same `Kind` that does the refusing,
//! so the two cannot differ. A list tells all its wrong elements, not the first.
//! Invariants: what `format` writes, `read` reads back as the same value.
//! Limits: lists of `LIST_MAX` elements, `HOSTS_MAX` fixed names with `LIST_MAX` addresses each.
//! Leaves to others: where in the file the value stands (`parse`), which key has which kind (`keys`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;

use toml_edit::{Item, Value as Toml};

use super::nearest::nearest;
use super::text::TextForm;
use super::unit::{self, Unreadable};
use super::value::Value;
use crate::time::Duration;

/// Most elements of a list.
const LIST_MAX: usize = 64;
/// Most fixed names; a larger zone belongs into a name server.
const HOSTS_MAX: usize = 100_000;
/// Port of a name server that names none (RFC 1035 section 4.2).
const DNS_PORT: u16 = 53;

/// The shape and range of one key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A duration between two, in milliseconds.
    Time(u64, u64),
    /// A size between two, in bytes.
    Size(u64, u64),
    /// A whole number between two.
    Number(i64, i64),
    /// Text of a form.
    Text(TextForm),
    /// One of these words; each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    /// Socket addresses of name servers.
    Servers,
    /// Names and their addresses.
    Hosts,
    /// Paths.
    Files,
}

/// A duration from `min` to `max`; a mistake in either stops the compiler.
pub(super) const fn time(min: &str, max: &str) -> Kind {
    match (unit::read_millis(min), unit::read_millis(max)) {
        (Ok(min), Ok(max)) => Kind::Time(min, max),
        _ => panic!("a range in the key list is no duration"),
    }
}

/// A size from `min` to `max`; a mistake in either stops the compiler.
pub(super) const fn size(min: &str, max: &str) -> Kind {
    match (unit::read_bytes(min), unit::read_bytes(max)) {
        (Ok(min), Ok(max)) => Kind::Size(min, max),
        _ => panic!("a range in the key list is no size"),
    }
}

/// Something wrong in a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    /// Where in the text, when it is a part of the value.
    pub(super) span: Option<Range<usize>>,
    /// The name below the key, for fixed names alone.
    pub(super) name: Option<String>,
    /// What is wrong, and what would be right.
    pub(super) message: String,
}

impl Kind {
    /// What would be right, after "expected".
    pub(super) fn expected(self) -> String {
        match self {
            Kind::Time(..) => format!("{}, such as \"250ms\", \"10s\", \"5m\" or \"24h\"", self.takes()),
            Kind::Size(..) => format!("{}, such as \"64KiB\", \"1MiB\" or \"1GiB\"", self.takes()),
            Kind::Number(min, max) => {
                format!("a whole number from {} to {}", format_number(min.into()), format_number(max.into()))
            }
            Kind::Text(form) => form.expected().to_owned(),
            Kind::Choice(choices) => {
                let mut text = String::new();
                for (index, (word, _)) in choices.iter().enumerate() {
                    let joint = match index {
                        0 => "",
                        _ if index + 1 == choices.len() => " or ",
                        _ => ", ",
                    };
                    let _ = write!(text, "{joint}\"{word}\"");
                }
                text
            }
            Kind::Servers => {
                format!("a list of at most {LIST_MAX} addresses such as [\"127.0.0.1\", \"[::1]:5353\"]")
            }
            Kind::Hosts => format!(
                "names with an address or a list of at most {LIST_MAX}, such as \"www.example.test\" = \"127.0.0.1\""
            ),
            Kind::Files => format!("a list of at most {LIST_MAX} paths such as [\"/etc/ssl/own-ca.pem\"]"),
        }
    }

    /// The range alone, for the example file, whose head explains units.
    pub(super) fn takes(self) -> String {
        match self {
            Kind::Time(min, max) => format!(
                "a duration from {} to {}",
                unit::format_duration(Duration::from_millis(min)),
                unit::format_duration(Duration::from_millis(max)),
            ),
            Kind::Size(min, max) => format!("a size from {} to {}", unit::format_bytes(min), unit::format_bytes(max)),
            _ => self.expected(),
        }
    }

    /// Reads a value of the file.
    pub(super) fn read(self, item: &Item) -> Result<Value, Vec<Fault>> {
        match (self, item) {
            (Kind::Hosts, _) => self.read_hosts(item),
            (Kind::Servers | Kind::Files, Item::Value(Toml::Array(array))) => self.read_list(array),
            (Kind::Number(..), Item::Value(Toml::Integer(number))) => self.read_number((*number.value()).into()),
            (Kind::Number(..) | Kind::Servers | Kind::Files, _) => Err(self.fault(&describe(item))),
            (Kind::Time(..) | Kind::Size(..), Item::Value(Toml::Integer(_))) => {
                Err(self.fault(&format!("{} without a unit", describe(item))))
            }
            (_, Item::Value(Toml::String(text))) => self.read_text(text.value()),
            _ => Err(self.fault(&describe(item))),
        }
    }

    /// Reads a value of the command line: as in the file, where the quotes of text may be left out and a list
    /// may be written with commas alone.
    pub(super) fn read_word(self, word: &str) -> Result<Value, Vec<Fault>> {
        let toml = || word.parse::<Toml>().map(Item::Value).map_err(|_| self.fault(&quote(word)));
        match self {
            Kind::Number(..) | Kind::Hosts => self.read(&toml()?),
            Kind::Servers | Kind::Files if word.trim_start().starts_with('[') => self.read(&toml()?),
            Kind::Servers | Kind::Files => {
                let words = word.split(',').map(str::trim).filter(|part| !part.is_empty());
                self.read_list(&words.collect::<toml_edit::Array>())
            }
            _ => match word.parse::<Toml>() {
                Ok(value @ Toml::String(_)) => self.read(&Item::Value(value)),
                _ => self.read_text(word),
            },
        }
    }

    /// The value as TOML; fixed names as an inline table.
    pub(super) fn format(self, value: &Value) -> String {
        match value {
            Value::Time(duration) => quote_all(&unit::format_duration(*duration)),
            Value::Number(bytes) if matches!(self, Kind::Size(..)) => {
                quote_all(&unit::format_bytes(u64::try_from(*bytes).unwrap_or(u64::MAX)))
            }
            Value::Number(number) => format_number(*number),
            Value::Text(text) => quote_all(text),
            Value::Servers(servers) => list(servers.iter().map(|server| match server.port() {
                DNS_PORT => server.ip().to_string(),
                _ => server.to_string(),
            })),
            Value::Files(files) => list(files.iter().map(|file| file.to_string_lossy().into_owned())),
            Value::Hosts(hosts) => {
                let mut text = String::from("{");
                for (index, (name, addresses)) in hosts.iter().enumerate() {
                    let joint = if index == 0 { " " } else { ", " };
                    let _ = write!(text, "{joint}{} = {}", quote_all(name), format_addresses(addresses));
                }
                text.push_str(if hosts.is_empty() { "}" } else { " }" });
                text
            }
        }
    }

    fn read_number(self, number: i128) -> Result<Value, Vec<Fault>> {
        match self {
            Kind::Number(min, max) if number >= min.into() && number <= max.into() => Ok(Value::Number(number)),
            _ => Err(self.fault(&format!("{} is out of range", format_number(number)))),
        }
    }

    fn read_text(self, text: &str) -> Result<Value, Vec<Fault>> {
        let shown = quote(text);
        match self {
            Kind::Time(min, max) => match unit::read_millis(text) {
                Ok(millis) if (min..=max).contains(&millis) => Ok(Value::Time(Duration::from_millis(millis))),
                Ok(_) => Err(self.fault(&format!("{shown} is out of range"))),
                Err(why) => Err(self.fault(&explain(why, &shown, "ms, s, m, h or d"))),
            },
            Kind::Size(min, max) => match unit::read_bytes(text) {
                Ok(bytes) if (min..=max).contains(&bytes) => Ok(Value::Number(bytes.into())),
                Ok(_) => Err(self.fault(&format!("{shown} is out of range"))),
                Err(why) => Err(self.fault(&explain(why, &shown, "B, KiB, MiB, GiB or TiB"))),
            },
            Kind::Text(form) => match form.check(text) {
                Ok(()) => Ok(Value::Text(text.to_owned())),
                Err(why) => Err(self.fault(&why)),
            },
            Kind::Choice(choices) => match choices.iter().find(|(word, _)| *word == text) {
                Some((word, _)) => Ok(Value::Text((*word).to_owned())),
                None => match nearest(text, choices.iter().map(|(word, _)| *word)) {
                    Some(word) => Err(self.fault(&format!("{shown} is no choice (did you mean \"{word}\"?)"))),
                    None => Err(self.fault(&format!("{shown} is no choice"))),
                },
            },
            _ => Err(self.fault(&format!("the text {shown}"))),
        }
    }

    fn read_list(self, array: &toml_edit::Array) -> Result<Value, Vec<Fault>> {
        let mut faults = Vec::new();
        if array.len() > LIST_MAX {
            return Err(self.fault(&format!("{} elements", array.len())));
        }
        let (mut servers, mut files) = (Vec::new(), Vec::new());
        for element in array {
            let wrong = |what: String| Fault { span: element.span(), name: None, message: self.sentence(&what) };
            match (self, element.as_str()) {
                (Kind::Servers, Some(text)) => match read_server(text) {
                    Some(server) if servers.contains(&server) => {
                        faults.push(wrong(format!("{} stands there twice", quote(text))));
                    }
                    Some(server) => servers.push(server),
                    None => faults.push(wrong(format!("{} is no address of a server", quote(text)))),
                },
                (_, Some(text)) if text.is_empty() || text.contains('\0') => {
                    faults.push(wrong(format!("{} is no path", quote(text))));
                }
                (_, Some(text)) => files.push(PathBuf::from(text)),
                (_, None) => faults.push(wrong(describe(&Item::Value(element.clone())))),
            }
        }
        match self {
            _ if !faults.is_empty() => Err(faults),
            Kind::Servers => Ok(Value::Servers(servers)),
            _ => Ok(Value::Files(files)),
        }
    }

    fn read_hosts(self, item: &Item) -> Result<Value, Vec<Fault>> {
        let Some(table) = item.as_table_like() else { return Err(self.fault(&describe(item))) };
        if table.len() > HOSTS_MAX {
            return Err(self.fault(&format!("{} names", table.len())));
        }
        let mut hosts = BTreeMap::new();
        let mut faults = Vec::new();
        for (name, item) in table.iter() {
            let span = item.span().or_else(|| table.get_key_value(name).and_then(|(key, _)| key.span()));
            let mut wrong = |span: Option<Range<usize>>, what: String| {
                faults.push(Fault { span, name: Some(name.to_owned()), message: self.sentence(&what) });
            };
            let Some(host) = read_host(name) else {
                wrong(span, "this is no host name".to_owned());
                continue;
            };
            let elements: Vec<&Toml> = match item {
                Item::Value(Toml::Array(array)) => array.iter().collect(),
                Item::Value(value @ Toml::String(_)) => vec![value],
                Item::Value(Toml::InlineTable(_)) | Item::Table(_) => {
                    wrong(span, "a table (a name with dots needs quotes)".to_owned());
                    continue;
                }
                _ => {
                    wrong(span, describe(item));
                    continue;
                }
            };
            if elements.is_empty() || elements.len() > LIST_MAX {
                wrong(span.clone(), format!("{} addresses", elements.len()));
            }
            let mut addresses: Vec<IpAddr> = Vec::new();
            for element in elements.into_iter().take(LIST_MAX) {
                match element.as_str().map(|text| (text, text.parse())) {
                    Some((_, Ok(address))) => addresses.push(address),
                    Some((text, Err(_))) => wrong(element.span(), format!("{} is no IP address", quote(text))),
                    None => wrong(element.span(), describe(&Item::Value(element.clone()))),
                }
            }
            if hosts.insert(host, addresses).is_some() {
                wrong(span, "the same name stands there in other letters".to_owned());
            }
        }
        if faults.is_empty() { Ok(Value::Hosts(hosts)) } else { Err(faults) }
    }

    fn fault(self, what: &str) -> Vec<Fault> {
        vec![Fault { span: None, name: None, message: self.sentence(what) }]
    }

    fn sentence(self, what: &str) -> String {
        format!("{what}; expected {}", self.expected())
    }
}

/// Addresses of one fixed name: one alone, or a list.
fn format_addresses(addresses: &[IpAddr]) -> String {
    match addresses {
        [address] => quote_all(&address.to_string()),
        _ => list(addresses.iter().map(IpAddr::to_string)),
    }
}

/// Text as a TOML string, whole.
fn quote_all(text: &str) -> String {
    Toml::from(text).to_string()
}

/// `65_536`: TOML allows the underscores, so the number may be copied.
fn format_number(number: i128) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

fn list(elements: impl Iterator<Item = String>) -> String {
    format!("[{}]", elements.map(|element| quote_all(&element)).collect::<Vec<_>>().join(", "))
}

/// A server with or without port; nothing that no server can have.
fn read_server(text: &str) -> Option<SocketAddr> {
    let server = text.parse::<SocketAddr>().ok().or_else(|| Some(SocketAddr::new(text.parse().ok()?, DNS_PORT)))?;
    (server.port() != 0 && !server.ip().is_unspecified() && !server.ip().is_multicast()).then_some(server)
}

/// A name as URLs have it: lower case, no dot at the end, labels of 1 to 63 bytes, 253 in all (RFC 1035
/// section 2.3.4); `_` besides letters, digits and `-`, as the web has such names.
fn read_host(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    (name.len() <= 253 && name.split('.').all(label)).then_some(name)
}

fn explain(why: Unreadable, shown: &str, units: &str) -> String {
    match why {
        Unreadable::NotANumber => format!("{shown} is not one whole number with a unit"),
        Unreadable::NoUnit => format!("{shown} has no unit (one of {units})"),
        Unreadable::UnknownUnit => format!("{shown} has an unknown unit (not one of {units})"),
        Unreadable::TooLarge => format!("{shown} is out of range"),
    }
}

/// What came, when it is of the wrong type.
pub(super) fn describe(item: &Item) -> String {
    match item {
        Item::None => "nothing".to_owned(),
        Item::Table(_) | Item::Value(Toml::InlineTable(_)) => "a table".to_owned(),
        Item::ArrayOfTables(_) => "an array of tables".to_owned(),
        Item::Value(Toml::Array(_)) => "an array".to_owned(),
        Item::Value(Toml::String(text)) => format!("the text {}", quote(text.value())),
        Item::Value(Toml::Integer(number)) => format!("the number {}", number.value()),
        Item::Value(Toml::Float(number)) => format!("the fraction {}", number.value()),
        Item::Value(Toml::Boolean(truth)) => truth.value().to_string(),
        Item::Value(Toml::Datetime(date)) => format!("the date {}", date.value()),
    }
}

/// A piece of the file for a message: cut after 60 characters, control characters escaped.
fn quote(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}
