//! The proxy between the crawler and the web, where there is one.
//!
//! Decides: an HTTP proxy gets requests for http pages whole, with the absolute URL, as RFC 9112 section 3.2.2
//! requires. A tunnel would be cleaner, but most proxies allow CONNECT only to port 443. For https, and with SOCKS5
//! for everything, a tunnel is opened first. It leads to the address that was looked up and checked here, or to the
//! name under `proxy.names = "proxy"`. In that case a host has a placeholder for its address, from the discard range
//! (RFC 6666), so that hosts do not share an address and wait for each other.
//! Invariants: what the proxy sends before the tunnel is open is bounded, and no part of it enters a response.
//! Credentials for the proxy go only to the proxy.
//! Limits: one proxy; no TLS to it; its name is looked up once. When a proxy answers a whole request in its own name
//! (502, 504), this cannot be told from the page's answer, except for 407.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use super::connection::{Connection, Received};
use super::socks::{Destination, Socks, SocksAction};
use super::{Hands, HandsError};
use ringcrawl_base::Failure;
use ringcrawl_brain::names;
use ringcrawl_config::{Config, ProxyNames, ProxyScheme};
use ringcrawl_http::{self as http, Limits, Method, Progress, ResponseReader};
use ringcrawl_ring::Guard;
use ringcrawl_url::{Scheme, Url};

/// One proxy, looked up.
pub(super) struct Proxy {
    pub(super) addr: SocketAddr,
    speaks: Speaks,
    names: ProxyNames,
}

enum Speaks {
    /// With the value of Proxy-Authorization.
    Http(Option<String>),
    Socks(Option<(String, String)>),
}

impl Proxy {
    /// The configured proxy. May wait for the system's resolver: call it only at the start.
    pub(super) fn new(config: &Config) -> Result<Option<Proxy>, HandsError> {
        let Some(found) = config.proxy.address() else { return Ok(None) };
        let fixed = config.dns.hosts.get(&found.host).and_then(|addrs| addrs.first());
        let addr = match fixed {
            Some(ip) => Some(SocketAddr::new(*ip, found.port)),
            None => (found.host.as_str(), found.port).to_socket_addrs().ok().and_then(|mut addrs| addrs.next()),
        };
        let addr = addr.ok_or_else(|| HandsError::Proxy(format!("{} has no address", found.host)))?;
        let speaks = match (found.scheme, found.login) {
            (ProxyScheme::Http, login) => {
                Speaks::Http(login.map(|(user, password)| http::basic(&format!("{user}:{password}"))))
            }
            (ProxyScheme::Socks5, login) => Speaks::Socks(login),
        };
        Ok(Some(Proxy { addr, speaks, names: config.proxy.names }))
    }

    /// Whether a request for `url` goes to the proxy whole, without a tunnel.
    pub(super) fn takes_whole(&self, url: &Url) -> bool {
        matches!(self.speaks, Speaks::Http(_)) && url.scheme() == Scheme::Http
    }

    /// The value of Proxy-Authorization for such a request.
    pub(super) fn authorization(&self) -> Option<&str> {
        match &self.speaks {
            Speaks::Http(authorization) => authorization.as_deref(),
            Speaks::Socks(_) => None,
        }
    }

    /// The placeholder for the address of a host that the proxy looks up.
    pub(super) fn stand_in(&self, host: &str) -> Option<IpAddr> {
        if self.names == ProxyNames::Here || names::literal(host).is_some() {
            return None;
        }
        Some(names::stand_in(host))
    }

    /// Whether the address from which `url` is fetched is unknown here.
    pub(super) fn hides_address(&self, url: &Url) -> bool {
        self.takes_whole(url) || self.stand_in(url.host()).is_some()
    }

    /// Turns `connection`, which leads to the proxy, into one to `url`'s host.
    pub(super) async fn tunnel(
        &self,
        connection: &mut Connection,
        (url, ip): (&Url, IpAddr),
        hands: &Hands,
        guard: &Guard,
    ) -> Result<(), Failure> {
        let destination = match self.stand_in(url.host()) {
            Some(_) => Destination::Name(url.host(), url.port()),
            None => Destination::Address(SocketAddr::new(ip, url.port())),
        };
        let (mut dialogue, mut words) = match &self.speaks {
            Speaks::Http(authorization) => {
                let authority = match destination {
                    Destination::Address(addr) => addr.to_string(),
                    Destination::Name(name, port) => format!("{name}:{port}"),
                };
                let words = http::connect_request(&authority, &hands.agent_ua, authorization.as_deref());
                (Dialogue::Connect(Connect::new(hands.limits)), words)
            }
            Speaks::Socks(login) => {
                let (socks, hello) = Socks::new(login.as_ref(), destination);
                (Dialogue::Socks(socks), hello)
            }
        };
        loop {
            connection.ask(words).map_err(|_| Failure::ProxyFailed)?;
            loop {
                let mut next = Ok(SocksAction::Listen);
                let received =
                    connection.receive(&hands.buffers, guard, &mut |bytes| next = dialogue.hear(bytes)).await;
                match (next?, received) {
                    (SocksAction::Open, Ok(Received::Some)) if connection.asked().1 => return Ok(()),
                    (SocksAction::Say(more), Ok(Received::Some)) if connection.asked().1 => {
                        words = more;
                        break;
                    }
                    (SocksAction::Listen, Ok(Received::Some)) => {}
                    _ => return Err(Failure::ProxyFailed),
                }
            }
        }
    }
}

enum Dialogue {
    Connect(Connect),
    Socks(Socks),
}

impl Dialogue {
    fn hear(&mut self, bytes: &[u8]) -> Result<SocksAction, Failure> {
        match self {
            Dialogue::Connect(connect) => connect.hear(bytes),
            Dialogue::Socks(socks) => socks.hear(bytes),
        }
    }
}

/// A CONNECT (RFC 9110 section 9.3.6).
struct Connect {
    reader: Box<ResponseReader>,
}

impl Connect {
    fn new(limits: Limits) -> Connect {
        Connect { reader: Box::new(ResponseReader::new(Method::Connect, limits)) }
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<SocksAction, Failure> {
        let progress = self.reader.feed(bytes).map_err(|_| Failure::ProxyFailed)?;
        match (self.reader.status(), progress) {
            (None, _) => Ok(SocksAction::Listen),
            // A web server does not speak first: what follows the head is not from it.
            (Some(200..=299), Progress::Done) if self.reader.is_clean() => Ok(SocksAction::Open),
            (Some(502 | 503), _) => Err(Failure::ConnectFailed),
            (Some(504), _) => Err(Failure::ConnectTimeout),
            (Some(300..=499), _) => Err(Failure::ProxyRefused),
            _ => Err(Failure::ProxyFailed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_connect() {
        for (answer, expected) in [
            ("HTTP/1.1 200 Connection established\r\n\r\n", Ok(SocksAction::Open)),
            // RFC 9110 section 9.3.6: both fields are ignored.
            ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", Ok(SocksAction::Open)),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Ok(SocksAction::Open)),
            ("HTTP/1.1 200 OK\r\n", Ok(SocksAction::Listen)),
            ("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\npoison", Err(Failure::ProxyFailed)),
            ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", Err(Failure::ProxyRefused)),
            ("HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\n", Err(Failure::ProxyRefused)),
            ("HTTP/1.1 302 Found\r\nLocation: http://portal.test/\r\n\r\n", Err(Failure::ProxyRefused)),
            ("HTTP/1.1 502 Bad Gateway\r\n\r\n", Err(Failure::ConnectFailed)),
            ("HTTP/1.1 504 Gateway Timeout\r\n\r\n", Err(Failure::ConnectTimeout)),
            ("HTTP/1.1 500 Oops\r\n\r\n", Err(Failure::ProxyFailed)),
            ("SSH-2.0-OpenSSH\r\n", Err(Failure::ProxyFailed)),
        ] {
            assert_eq!(Connect::new(Limits::default()).hear(answer.as_bytes()), expected, "{answer:?}");
            let mut bytewise = Connect::new(Limits::default());
            let mut ends = answer.as_bytes().chunks(1).map(|byte| bytewise.hear(byte));
            let first_end = ends.find(|end| *end != Ok(SocksAction::Listen)).unwrap_or(Ok(SocksAction::Listen));
            // Bytes after the end are noticed if they arrive in one piece; in many pieces they are not there yet.
            assert!(
                first_end == expected || answer.ends_with("poison") && first_end == Ok(SocksAction::Open),
                "{answer:?}"
            );
        }
    }

    #[test]
    fn stand_ins() {
        let mut config = Config::default();
        config.set("proxy.url", "socks5://127.0.0.1:1080").expect("right");
        let proxy = |config: &Config| Proxy::new(config).ok().flatten().expect("one");
        assert_eq!(proxy(&config).stand_in("a.test"), None);
        config.set("proxy.names", "proxy").expect("right");
        let proxy = proxy(&config);
        let (one, two) = (proxy.stand_in("a.test").expect("one"), proxy.stand_in("b.test").expect("one"));
        assert!(one != two && one.to_string().starts_with("100::"), "{one} {two}");
        assert_eq!((proxy.stand_in("192.0.2.1"), proxy.stand_in("[::1]")), (None, None));
    }

    #[test]
    fn a_proxy_s_name_may_be_fixed_and_must_be_known() {
        let mut config = Config::default();
        config.set("proxy.url", "http://proxy.invalid:3128").expect("right");
        let error = Proxy::new(&config).err().expect("no host has that name").to_string();
        assert!(error.contains("proxy.url") && error.contains("proxy.invalid"), "{error}");
        config.set("dns.hosts.proxy.invalid", "192.0.2.7").expect("right");
        assert_eq!(Proxy::new(&config).ok().flatten().expect("one").addr, "192.0.2.7:3128".parse().expect("address"));
    }
}
