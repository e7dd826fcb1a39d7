//! Where a proxy is, from one line of the configuration.
//!
//! Decides: `http://` and `socks5://` with host and port, and credentials before the host, percent-encoded as in any
//! URL. TLS to the proxy itself is refused, not ignored. No error quotes the text: it may contain a password. The URL
//! may be stored elsewhere (`secret`).
//! Limits: credentials of 255 bytes each (RFC 1929 section 2).
//! Leaves to others: the messages to the proxy (`fetch`).

use toml_edit::{Item, Value as Toml};

use super::login;
use super::secret::Secret;

pub(super) const EXPECTED: &str = "an address such as \"http://127.0.0.1:3128\" or \"socks5://user:password@host:1080\", \
    { file = \"/path\" }, { credential = \"name\" } or \"\"";

/// A proxy's protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProxyScheme {
    /// HTTP/1.1 (RFC 9110 section 3.7).
    Http,
    /// SOCKS version 5 (RFC 1928).
    Socks5,
}

/// A proxy, as the configuration names it.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAddress {
    /// Its protocol.
    pub scheme: ProxyScheme,
    /// A name or an IP address, the latter without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// User name and password.
    pub login: Option<(String, String)>,
}

/// Reads a proxy's URL; `None` for the empty text.
pub(super) fn read(text: &str) -> Result<Option<ProxyAddress>, &'static str> {
    if text.is_empty() {
        return Ok(None);
    }
    let url = ::url::Url::parse(text).map_err(|_| "not a URL")?;
    let scheme = match url.scheme() {
        "http" => ProxyScheme::Http,
        "socks5" | "socks5h" => ProxyScheme::Socks5,
        "https" => return Err("TLS to a proxy is not supported"),
        _ => return Err("unsupported scheme"),
    };
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or("no host")?;
    let default_port = if scheme == ProxyScheme::Http { None } else { Some(1_080) };
    // A URL loses the scheme's default port. Port 80 is unusual for a proxy, but may be meant.
    let port = url.port().or(default_port).or(url.port_or_known_default()).filter(|port| *port != 0);
    let port = port.ok_or("no port")?;
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err("it has more than scheme, credentials, host and port");
    }
    let login = match (url.username(), url.password()) {
        ("", None) => None,
        (user, password) => {
            let part =
                |text: &str| unescape(text).filter(|text| text.len() <= 255).ok_or("the credentials are not text");
            let (user, password) = (part(user)?, part(password.unwrap_or_default())?);
            login::check(&format!("{user}:{password}"))?;
            if scheme == ProxyScheme::Http && user.contains(':') {
                return Err("the user name has a colon");
            }
            Some((user, password))
        }
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(Some(ProxyAddress { scheme, host, port, login }))
}

/// Whether the URL carries credentials: without them a proxy's address is no secret.
pub(super) fn has_login(url: &Secret) -> bool {
    matches!(read(url.reveal()), Ok(Some(ProxyAddress { login: Some(_), .. })))
}

/// Reads the key's value: a proxy's URL, or a reference to it.
pub(super) fn read_item(item: &Item) -> Result<Secret, &'static str> {
    match (item, item.as_table_like()) {
        (Item::Value(Toml::String(text)), _) => read(text.value()).map(|_| Secret::from_text(text.value())),
        (_, Some(table)) => Secret::from_table(table),
        _ => Err("this is no text"),
    }
}

/// Undoes percent-encoding; `None` when that gives no UTF-8.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn proxies() {
        let of = |text: &str| {
            let proxy = read(text).expect(text).expect("one");
            (proxy.scheme, proxy.host, proxy.port, proxy.login)
        };
        let login = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(of("http://127.0.0.1:3128"), (ProxyScheme::Http, "127.0.0.1".into(), 3_128, None));
        assert_eq!(of("http://proxy.test:80/"), (ProxyScheme::Http, "proxy.test".into(), 80, None));
        assert_eq!(of("socks5://[::1]"), (ProxyScheme::Socks5, "::1".into(), 1_080, None));
        assert_eq!(
            of("socks5://a%3A:b%40%25x@p.test:9"),
            (ProxyScheme::Socks5, "p.test".into(), 9, login("a:", "b@%x"))
        );
        assert_eq!(of("http://me:@p.test:9").3, login("me", ""));
        assert!(matches!(read(""), Ok(None)));
    }

    #[test]
    fn mistakes_are_told_without_the_password() {
        for wrong in [
            "p.test:3128",
            "https://u:hunter2@p.test:1",
            "ftp://u:hunter2@p.test:1",
            "socks5://:hunter2@p.test:1",
            "http://u%3a:hunter2@p.test:1",
            "http://u:hunter2%00@p.test:1",
            "http://u:hunter2%ff@p.test:1",
            "http://u:hunter2@p.test:1/path",
            "http://u:hunter2@p.test:0",
            "http://u:hunter2@p.test:99999",
            "http://u:hunter2@",
        ] {
            let error = Config::default().set("proxy.url", wrong).expect_err(wrong).to_string();
            assert!(error.contains("proxy.url") && error.contains("expected") && !error.contains("hunter2"), "{error}");
            let text = format!("[proxy]\nurl = [\"{wrong}\"]\n");
            let error = format!("{:?}", Config::parse(&text, "test").expect_err(wrong));
            assert!(!error.contains("hunter2"), "{error}");
        }
        let mut config = Config::default();
        config.set("proxy.url", "http://p.test:1").expect("right");
        assert_eq!(Config::parse(&config.to_toml(), "again"), Ok(config));
        let config = Config::parse("proxy.url = \"http://u:hunter2@p.test:1\"", "test").expect("right");
        assert!(!format!("{config:?}{}", config.to_toml()).contains("hunter2"));
        assert_eq!(Config::parse(&config.to_toml(), "again"), Ok(config.masked()));
        // Where a table is expected, and as a key.
        for text in ["proxy = \"http://u:hunter2@p.test:1\"", "http = \"u:hunter2\"", "proxy.url = \"u:hunter2"] {
            let error = format!("{:?}", Config::parse(text, "test").expect_err(text));
            assert!(error.contains("expected") && !error.contains("hunter2"), "{error}");
        }
    }
}
