//! Names with fixed addresses.
//!
//! Decides: a name may be written as in URLs or in other letters, and appears only once. All mistakes in a name are
//! reported.
//! Limits: `HOSTS_MAX` names with `LIST_MAX` addresses each.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;

use toml_edit::{Item, Value as Toml};

use super::kind::{LIST_MAX, ValueFault, describe, list, quote, quote_all};

/// Most fixed names; a larger zone belongs in a name server.
const HOSTS_MAX: usize = 100_000;

/// What would be right, after "expected".
pub(super) fn expected() -> String {
    format!("names with an address or a list of at most {LIST_MAX}, such as \"www.example.test\" = \"127.0.0.1\"")
}

/// Reads a table of names.
pub(super) fn read(item: &Item) -> Result<BTreeMap<String, Vec<IpAddr>>, Vec<ValueFault>> {
    let Some(table) = item.as_table_like() else { return Err(whole(&describe(item))) };
    if table.len() > HOSTS_MAX {
        return Err(whole(&format!("{} names", table.len())));
    }
    let mut hosts = BTreeMap::new();
    let mut faults = Vec::new();
    for (name, item) in table.iter() {
        let span = item.span().or_else(|| table.get_key_value(name).and_then(|(key, _)| key.span()));
        let mut wrong = |span: Option<Range<usize>>, what: String| {
            faults.push(ValueFault { span, name: Some(name.to_owned()), message: sentence(&what) });
        };
        let Some(host) = read_host(name) else {
            wrong(span, "not a host name".to_owned());
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
                Some((text, Err(_))) => wrong(element.span(), format!("{} is not an IP address", quote(text))),
                None => wrong(element.span(), describe(&Item::Value(element.clone()))),
            }
        }
        if hosts.insert(host, addresses).is_some() {
            wrong(span, "the same name is listed in another spelling".to_owned());
        }
    }
    if faults.is_empty() { Ok(hosts) } else { Err(faults) }
}

/// Addresses of one fixed name: one alone, or a list.
pub(super) fn format_addresses(addresses: &[IpAddr]) -> String {
    match addresses {
        [address] => quote_all(&address.to_string()),
        _ => list(addresses.iter().map(IpAddr::to_string)),
    }
}

/// A name as URLs have it: lower case, no dot at the end, labels of 1 to 63 bytes, 253 in all (RFC 1035 section
/// 2.3.4). In addition to letters, digits and `-`, it may contain `_`, because such names exist on the web.
fn read_host(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    (name.len() <= 253 && name.split('.').all(label)).then_some(name)
}

fn whole(what: &str) -> Vec<ValueFault> {
    vec![ValueFault { span: None, name: None, message: sentence(what) }]
}

fn sentence(what: &str) -> String {
    format!("{what}; expected {}", expected())
}
