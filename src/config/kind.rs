//! What a key accepts: its shape, its range, and the sentence that describes them.
//!
//! Decides: every refusal states what was given and what would be right, from the same `Kind` that refuses it, so the
//! two cannot differ. All wrong elements of a list are reported, not only the first.
//! Invariants: what `format` writes, `read` reads back as the same value.
//! Limits: lists of `LIST_MAX` elements.
//! Leaves to others: fixed names, lines for hosts, credentials, proxies and keys (`hosts`, `host_lines`, `login`,
//! `proxy`, `signing_key`), the value's position in the file (`parse`), which key has which kind (`keys`).

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;

use toml_edit::{Item, Value as Toml};

use super::nearest::nearest;
use super::text::TextForm;
use super::unit::{self, Unreadable};
use super::value::Value;
use super::{host_lines, hosts, login, network, proxy, retry_rule, signing_key};
use ringcrawl_base::time::Duration;

/// Most elements of a list.
pub(super) const LIST_MAX: usize = 64;
/// Port of a name server that names none (RFC 1035 section 4.2).
const DNS_PORT: u16 = 53;

/// The shape and range of one key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A duration between two, in milliseconds.
    Time(u64, u64),
    /// The same, or "never".
    TimeOrNever(u64, u64),
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
    /// Names of a URL's parameters, or beginnings of names.
    Names,
    /// Origins and their credentials.
    Logins,
    /// A proxy's URL.
    Proxy,
    /// IP addresses.
    Addresses,
    /// Ranges of IP addresses.
    Networks,
    /// A private key's place.
    SigningKey,
    /// Lines for single hosts.
    HostLines,
    /// How one class of failures is retried.
    Retry,
}

/// A duration from `min` to `max`; a mistake in either is a compile error.
pub(super) const fn time(min: &str, max: &str) -> Kind {
    match (unit::read_millis(min), unit::read_millis(max)) {
        (Ok(min), Ok(max)) => Kind::Time(min, max),
        _ => panic!("a range in the key list is not a duration"),
    }
}

/// A size from `min` to `max`; a mistake in either is a compile error.
pub(super) const fn size(min: &str, max: &str) -> Kind {
    match (unit::read_bytes(min), unit::read_bytes(max)) {
        (Ok(min), Ok(max)) => Kind::Size(min, max),
        _ => panic!("a range in the key list is not a size"),
    }
}

/// Something wrong in a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ValueFault {
    /// Its position in the text, if only a part of the value is wrong.
    pub(super) span: Option<Range<usize>>,
    /// The name below the key; for fixed names only.
    pub(super) name: Option<String>,
    /// What is wrong, and what would be right.
    pub(super) message: String,
}

/// The word that means no duration.
const NEVER: &str = "never";

impl Kind {
    /// What would be right, after "expected".
    pub(super) fn expected(self) -> String {
        match self {
            Kind::TimeOrNever(..) => format!("{} such as \"1s\"", self.takes()),
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
            Kind::Hosts => hosts::expected(),
            Kind::Logins => login::EXPECTED.to_owned(),
            Kind::Proxy => proxy::EXPECTED.to_owned(),
            Kind::SigningKey => signing_key::EXPECTED.to_owned(),
            Kind::HostLines => host_lines::EXPECTED.to_owned(),
            Kind::Retry => retry_rule::EXPECTED.to_owned(),
            Kind::Networks => {
                format!(
                    "a list of at most {LIST_MAX} addresses or ranges of them such as [\"192.0.2.0/24\", \"2001:db8::/32\"]"
                )
            }
            Kind::Addresses => {
                format!("a list of at most {LIST_MAX} IP addresses such as [\"192.0.2.1\", \"2001:db8::1\"]")
            }
            Kind::Names => {
                format!("a list of at most {LIST_MAX} names of parameters such as [\"gclid\", \"utm_*\"]")
            }
            Kind::Files => format!("a list of at most {LIST_MAX} paths such as [\"/etc/ssl/own-ca.pem\"]"),
        }
    }

    /// The range alone, for the example file, whose header explains units.
    pub(super) fn takes(self) -> String {
        match self {
            Kind::Time(min, max) => format!(
                "a duration from {} to {}",
                unit::format_duration(Duration::from_millis(min)),
                unit::format_duration(Duration::from_millis(max)),
            ),
            Kind::TimeOrNever(min, max) => format!("{}, or \"{NEVER}\"", Kind::Time(min, max).takes()),
            Kind::Size(min, max) => format!("a size from {} to {}", unit::format_bytes(min), unit::format_bytes(max)),
            _ => self.expected(),
        }
    }

    /// Reads a value of the file.
    pub(super) fn read(self, item: &Item) -> Result<Value, Vec<ValueFault>> {
        match (self, item) {
            (Kind::Hosts, _) => hosts::read(item).map(Value::Hosts),
            (Kind::HostLines, _) => host_lines::read(item).map(Value::HostLines),
            (Kind::Retry, _) => retry_rule::read(item).map(Value::Retry),
            (Kind::Logins, _) => login::read(item).map(Value::Logins),
            (Kind::Proxy, _) => proxy::read_item(item).map(Value::Secret).map_err(|what| self.fault(what)),
            (Kind::SigningKey, _) => signing_key::read_item(item).map(Value::Secret).map_err(|what| self.fault(what)),
            (_, Item::Value(Toml::Array(array))) if self.is_list() => self.read_list(array),
            (Kind::Number(..), Item::Value(Toml::Integer(number))) => self.read_number((*number.value()).into()),
            (Kind::Number(..), _) => Err(self.fault(&describe(item))),
            _ if self.is_list() => Err(self.fault(&describe(item))),
            (Kind::Time(..) | Kind::TimeOrNever(..) | Kind::Size(..), Item::Value(Toml::Integer(_))) => {
                Err(self.fault(&format!("{} without a unit", describe(item))))
            }
            (_, Item::Value(Toml::String(text))) => self.read_text(text.value()),
            _ => Err(self.fault(&describe(item))),
        }
    }

    /// Reads a value from the command line: as in the file, except that text may be unquoted and a list may be
    /// separated by commas only.
    pub(super) fn read_word(self, word: &str) -> Result<Value, Vec<ValueFault>> {
        let toml = || word.parse::<Toml>().map(Item::Value).map_err(|_| self.fault(&quote(word)));
        match self {
            // None of the input is shown: it may be a password.
            Kind::Logins => match word.parse::<Toml>() {
                Ok(value) => self.read(&Item::Value(value)),
                Err(_) => Err(self.fault("this is not TOML")),
            },
            Kind::Proxy | Kind::SigningKey => match word.parse::<Toml>() {
                Ok(value @ (Toml::String(_) | Toml::InlineTable(_))) => self.read(&Item::Value(value)),
                _ => self.read(&Item::Value(Toml::from(word))),
            },
            Kind::Number(..) | Kind::Hosts | Kind::HostLines | Kind::Retry => self.read(&toml()?),
            _ if self.is_list() && word.trim_start().starts_with('[') => self.read(&toml()?),
            _ if self.is_list() => {
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
            Value::Never => quote_all(NEVER),
            Value::Time(duration) => quote_all(&unit::format_duration(*duration)),
            Value::Number(bytes) if matches!(self, Kind::Size(..)) => {
                quote_all(&unit::format_bytes(u64::try_from(*bytes).unwrap_or(u64::MAX)))
            }
            Value::Number(number) => format_number(*number),
            Value::Text(text) => quote_all(text),
            Value::Hours(hours) => quote_all(&hours.map_or_else(String::new, |hours| hours.to_string())),
            Value::Domains(domains) => quote_all(domains.text()),
            Value::MediaTypes(ranges) => quote_all(&ranges.to_string()),
            Value::RecordKinds(kinds) => quote_all(&kinds.to_string()),
            Value::Servers(servers) => list(servers.iter().map(|server| match server.port() {
                DNS_PORT => server.ip().to_string(),
                _ => server.to_string(),
            })),
            Value::Addresses(addresses) => list(addresses.iter().map(IpAddr::to_string)),
            Value::Files(files) => list(files.iter().map(|file| file.to_string_lossy().into_owned())),
            Value::Names(names) => list(names.iter().cloned()),
            Value::Hosts(hosts) => {
                table(hosts.iter().map(|(name, addresses)| (name.as_str(), hosts::format_addresses(addresses))))
            }
            Value::Logins(logins) => table(logins.iter().map(|(origin, login)| (origin.as_str(), login.format()))),
            Value::HostLines(lines) => lines.format(),
            Value::Retry(rule) => rule.format(),
            Value::Secret(secret) => secret.format(),
        }
    }

    fn read_number(self, number: i128) -> Result<Value, Vec<ValueFault>> {
        match self {
            Kind::Number(min, max) if number >= min.into() && number <= max.into() => Ok(Value::Number(number)),
            _ => Err(self.fault(&format!("{} is out of range", format_number(number)))),
        }
    }

    fn read_text(self, text: &str) -> Result<Value, Vec<ValueFault>> {
        let shown = quote(text);
        match self {
            Kind::TimeOrNever(..) if text == NEVER => Ok(Value::Never),
            Kind::Time(min, max) | Kind::TimeOrNever(min, max) => match unit::read_millis(text) {
                Ok(millis) if (min..=max).contains(&millis) => Ok(Value::Time(Duration::from_millis(millis))),
                Ok(_) => Err(self.fault(&format!("{shown} is out of range"))),
                Err(why) => Err(self.fault(&explain(why, &shown, "ms, s, m, h or d"))),
            },
            Kind::Size(min, max) => match unit::read_bytes(text) {
                Ok(bytes) if (min..=max).contains(&bytes) => Ok(Value::Number(bytes.into())),
                Ok(_) => Err(self.fault(&format!("{shown} is out of range"))),
                Err(why) => Err(self.fault(&explain(why, &shown, "B, KiB, MiB, GiB or TiB"))),
            },
            Kind::Text(form) => form.read(text).map_err(|why| self.fault(&why)),
            Kind::Choice(choices) => match choices.iter().find(|(word, _)| *word == text) {
                Some((word, _)) => Ok(Value::Text((*word).to_owned())),
                None => match nearest(text, choices.iter().map(|(word, _)| *word)) {
                    Some(word) => {
                        Err(self.fault(&format!("{shown} is not one of the choices (did you mean \"{word}\"?)")))
                    }
                    None => Err(self.fault(&format!("{shown} is not one of the choices"))),
                },
            },
            _ => Err(self.fault(&format!("the text {shown}"))),
        }
    }

    fn read_list(self, array: &toml_edit::Array) -> Result<Value, Vec<ValueFault>> {
        let mut faults = Vec::new();
        if array.len() > LIST_MAX {
            return Err(self.fault(&format!("{} elements", array.len())));
        }
        let (mut servers, mut files, mut addresses, mut names) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for element in array {
            let wrong = |what: String| ValueFault { span: element.span(), name: None, message: self.sentence(&what) };
            match (self, element.as_str()) {
                (Kind::Servers, Some(text)) => match read_server(text) {
                    Some(server) if servers.contains(&server) => {
                        faults.push(wrong(format!("{} is listed twice", quote(text))));
                    }
                    Some(server) => servers.push(server),
                    None => faults.push(wrong(format!("{} is not the address of a server", quote(text)))),
                },
                (Kind::Addresses, Some(text)) => match text.parse::<IpAddr>() {
                    Ok(address) if addresses.contains(&address) => {
                        faults.push(wrong(format!("{} is listed twice", quote(text))));
                    }
                    Ok(address) if !address.is_unspecified() && !address.is_multicast() => addresses.push(address),
                    _ => faults.push(wrong(format!("{} is not the address of a machine", quote(text)))),
                },
                (Kind::Names, Some(text)) if !is_parameter_name(text) => {
                    faults.push(wrong(format!("{} is not the name of a parameter", quote(text))));
                }
                (Kind::Networks, Some(text)) if names.iter().any(|known| known == text) => {
                    faults.push(wrong(format!("{} is listed twice", quote(text))));
                }
                (Kind::Networks, Some(text)) if network::read(text).is_none() => {
                    let what = match text.split('/').next().and_then(|first| first.parse::<IpAddr>().ok()) {
                        Some(_) => "a range must start at its first address",
                        None => "neither an address nor a range (host names are not looked up)",
                    };
                    faults.push(wrong(format!("{} is {what}", quote(text))));
                }
                (Kind::Names | Kind::Networks, Some(text)) => names.push(text.to_owned()),
                (_, Some(text)) if text.is_empty() || text.contains('\0') => {
                    faults.push(wrong(format!("{} is not a path", quote(text))));
                }
                (_, Some(text)) => files.push(PathBuf::from(text)),
                (_, None) => faults.push(wrong(describe(&Item::Value(element.clone())))),
            }
        }
        match self {
            _ if !faults.is_empty() => Err(faults),
            Kind::Servers => Ok(Value::Servers(servers)),
            Kind::Addresses => Ok(Value::Addresses(addresses)),
            Kind::Names | Kind::Networks => Ok(Value::Names(names)),
            _ => Ok(Value::Files(files)),
        }
    }

    /// Whether its values are lists.
    fn is_list(self) -> bool {
        matches!(self, Kind::Servers | Kind::Files | Kind::Names | Kind::Addresses | Kind::Networks)
    }

    fn fault(self, what: &str) -> Vec<ValueFault> {
        vec![ValueFault { span: None, name: None, message: self.sentence(what) }]
    }

    fn sentence(self, what: &str) -> String {
        format!("{what}; expected {}", self.expected())
    }
}

/// An inline table of values that are TOML already.
fn table<'a>(entries: impl Iterator<Item = (&'a str, String)>) -> String {
    let entries: Vec<String> = entries.map(|(name, value)| format!("{} = {value}", quote_all(name))).collect();
    if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
}

/// Text as a TOML string, whole.
pub(super) fn quote_all(text: &str) -> String {
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

pub(super) fn list(elements: impl Iterator<Item = String>) -> String {
    format!("[{}]", elements.map(|element| quote_all(&element)).collect::<Vec<_>>().join(", "))
}

/// ASCII as in URLs, nothing that ends a name, and a star only at the end, after at least one character.
fn is_parameter_name(text: &str) -> bool {
    let name = text.strip_suffix('*').unwrap_or(text);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"&=#*,\"<>".contains(&byte))
}

/// A server with or without a port; an address that no server can have is refused.
fn read_server(text: &str) -> Option<SocketAddr> {
    let server = text.parse::<SocketAddr>().ok().or_else(|| Some(SocketAddr::new(text.parse().ok()?, DNS_PORT)))?;
    (server.port() != 0 && !server.ip().is_unspecified() && !server.ip().is_multicast()).then_some(server)
}

fn explain(why: Unreadable, shown: &str, units: &str) -> String {
    match why {
        Unreadable::NotANumber => format!("{shown} is not a whole number with a unit"),
        Unreadable::NoUnit => format!("{shown} has no unit (one of {units})"),
        Unreadable::UnknownUnit => format!("{shown} has an unknown unit (not one of {units})"),
        Unreadable::TooLarge => format!("{shown} is out of range"),
    }
}

/// What was given, when it is of the wrong type.
pub(super) fn describe(item: &Item) -> String {
    match item {
        Item::None => "nothing".to_owned(),
        Item::Table(_) | Item::Value(Toml::InlineTable(_)) => "a table".to_owned(),
        Item::ArrayOfTables(_) => "an array of tables".to_owned(),
        Item::Value(Toml::Array(_)) => "an array".to_owned(),
        Item::Value(Toml::String(text)) => format!("the text {}", quote(text.value())),
        Item::Value(Toml::Integer(number)) => format!("the number {}", number.value()),
        Item::Value(Toml::Float(number)) => format!("the float {}", number.display_repr()),
        Item::Value(Toml::Boolean(truth)) => truth.value().to_string(),
        Item::Value(Toml::Datetime(date)) => format!("the date {}", date.value()),
    }
}

/// A piece of the file for a message: cut after 60 characters, control characters escaped.
pub(super) fn quote(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}
