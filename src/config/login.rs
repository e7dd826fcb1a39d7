//! Credentials by origin.
//!
//! Decides: credentials belong to an origin, scheme and port included, so that credentials meant for https are never
//! sent in clear. An error does not quote the text it is about: more people read a log than the file.
//! Limits: `LOGINS_MAX` origins, credentials of `LOGIN_BYTES_MAX` bytes.
//! Leaves to others: references to credentials (`secret`), when they are sent (`fetch`).

use std::collections::BTreeMap;

use toml_edit::{Item, Value as Toml};

use super::kind::ValueFault;
use super::secret::Secret;

/// Most origins with credentials.
const LOGINS_MAX: usize = 1_000;
/// Longest `user:password`.
const LOGIN_BYTES_MAX: usize = 1_024;

pub(super) const EXPECTED: &str = "origins with \"user:password\", { file = \"/path\" } or { credential = \"name\" }, \
    such as \"https://a.example\" = \"user:password\"";

/// Reads a table of credentials.
pub(super) fn read(item: &Item) -> Result<BTreeMap<String, Secret>, Vec<ValueFault>> {
    let fault = |span, name: Option<&str>, what: &str| ValueFault {
        span,
        name: name.map(str::to_owned),
        message: format!("{what}; expected {EXPECTED}"),
    };
    let Some(table) = item.as_table_like() else { return Err(vec![fault(item.span(), None, "not a table")]) };
    if table.len() > LOGINS_MAX {
        return Err(vec![fault(item.span(), None, &format!("{} origins", table.len()))]);
    }
    let mut logins = BTreeMap::new();
    let mut faults = Vec::new();
    for (name, item) in table.iter() {
        let span = item.span().or_else(|| table.get_key_value(name).and_then(|(key, _)| key.span()));
        let origin = match origin(name) {
            Ok(origin) => origin,
            // It is not shown: if the two sides are mixed up, this is a password.
            Err(what) => {
                faults.push(fault(span, None, what));
                continue;
            }
        };
        let read = match (item, item.as_table_like()) {
            (Item::Value(Toml::String(text)), _) => check(text.value()).map(|()| Secret::from_text(text.value())),
            (_, Some(table)) => Secret::from_table(table),
            _ => Err("not a text"),
        };
        match read {
            Ok(login) => {
                if logins.insert(origin, login).is_some() {
                    faults.push(fault(span, Some(name), "the same origin is listed twice"));
                }
            }
            Err(what) => faults.push(fault(span, Some(name), what)),
        }
    }
    if faults.is_empty() { Ok(logins) } else { Err(faults) }
}

/// `scheme://host[:port]` as URLs have it, without the scheme's default port.
fn origin(text: &str) -> Result<String, &'static str> {
    let url = ::url::Url::parse(text).map_err(|_| "the name is not an origin")?;
    let is_bare = matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    match url.scheme() {
        "http" | "https" if is_bare => Ok(url.origin().ascii_serialization()),
        "http" | "https" => Err("the name is more than an origin"),
        _ => Err("the name is not an origin of http or https"),
    }
}

/// RFC 7617 section 2: no colon in the user name, no control characters.
pub(super) fn check(login: &str) -> Result<(), &'static str> {
    match login.split_once(':') {
        _ if login.len() > LOGIN_BYTES_MAX => Err("credentials of more than 1024 bytes"),
        _ if login.chars().any(char::is_control) => Err("credentials with control characters"),
        None => Err("credentials without a colon"),
        Some(("", _)) => Err("credentials without a user name"),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn parsed(text: &str) -> Result<Config, String> {
        Config::parse(&format!("[http]\nauth = {text}\n"), "test").map_err(|errors| format!("{errors:?}"))
    }

    #[test]
    fn origins_and_their_credentials() {
        let config = parsed(
            "{ \"https://EXAMPLE.org:443/\" = \"user:pass:word\", \"http://[::1]:8080\" = \"u:\", \"https://b\u{fc}cher.example\" = \"\u{fc}:x\" }",
        )
        .expect("right");
        let logins: Vec<_> = config.http.auth.iter().map(|(origin, login)| (origin.as_str(), login.reveal())).collect();
        assert_eq!(
            logins,
            [
                ("http://[::1]:8080", "u:"),
                ("https://example.org", "user:pass:word"),
                ("https://xn--bcher-kva.example", "\u{fc}:x"),
            ]
        );
        assert_eq!(Config::parse(&config.to_toml(), "again"), Ok(config.masked()));
        assert!(!format!("{config:?}{}", config.to_toml()).contains("pass:word"));
    }

    #[test]
    fn no_error_shows_a_secret() {
        for wrong in [
            "\"user:hunter2\"",
            "[\"user:hunter2\"]",
            "{ \"https://a.test\" = \"hunter2\" }",
            "{ \"https://a.test\" = \":hunter2\" }",
            "{ \"https://a.test\" = \"user:hunter2\\u0001\" }",
            "{ \"https://a.test\" = [\"user:hunter2\"] }",
            "{ \"https://a.test/path\" = \"user:hunter2\" }",
            "{ \"ftp://a.test\" = \"user:hunter2\" }",
            "{ \"a.test\" = \"user:hunter2\" }",
            "{ \"user:hunter2\" = \"https://a.test\" }",
            "{ \"https://user:hunter2@a.test\" = \"user:hunter2\" }",
            "{ \"https://a.test\" = \"user:hunter2\", \"https://A.test/\" = \"user:hunter2\" }",
        ] {
            let error = parsed(wrong).expect_err(wrong);
            assert!(error.contains("http.auth") && !error.contains("hunter2"), "{error}");
            let error = Config::default().set("http.auth", wrong).expect_err(wrong);
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
