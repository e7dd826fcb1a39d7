//! The client side of SOCKS5, without a socket (RFC 1928, RFC 1929).
//!
//! Decides: credentials are offered only if there are any, along with "none", so the proxy chooses. A refusal becomes
//! the failure that a direct connection would have had, where the RFC has a code for it.
//! Invariants: the result does not depend on how the bytes are split; no byte can cause a panic; what the proxy may
//! send is bounded. Nothing may follow the last reply: a web server does not speak first.
//! Limits: only CONNECT; names of 255 bytes.

use std::net::{IpAddr, SocketAddr};

use ringcrawl_base::Failure;

/// Where the proxy should connect to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destination<'a> {
    Address(SocketAddr),
    Name(&'a str, u16),
}

/// What to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum SocksAction {
    /// Receive more.
    Listen,
    /// Send this.
    Say(Vec<u8>),
    /// Nothing: the connection is one to the destination.
    Open,
}

/// One conversation.
pub(super) struct Socks {
    state: SocksState,
    heard: Vec<u8>,
    /// RFC 1929's request.
    login: Option<Vec<u8>>,
    /// RFC 1928's request.
    request: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SocksState {
    Method,
    Login,
    Reply,
}

const VERSION: u8 = 5;
/// The longest reply: four bytes, a name of 255 with its length, a port.
const HEARD_BYTES_MAX: usize = 262;

impl Socks {
    /// A conversation, and its first bytes.
    pub(super) fn new(login: Option<&(String, String)>, destination: Destination<'_>) -> (Socks, Vec<u8>) {
        let hello = if login.is_some() { vec![VERSION, 2, 0, 2] } else { vec![VERSION, 1, 0] };
        let login = login.map(|(user, password)| {
            let mut bytes = vec![1];
            push_text(&mut bytes, user);
            push_text(&mut bytes, password);
            bytes
        });
        let mut request = vec![VERSION, 1, 0];
        let port = match destination {
            Destination::Address(addr) => {
                match addr.ip() {
                    IpAddr::V4(ip) => {
                        request.push(1);
                        request.extend_from_slice(&ip.octets());
                    }
                    IpAddr::V6(ip) => {
                        request.push(4);
                        request.extend_from_slice(&ip.octets());
                    }
                }
                addr.port()
            }
            Destination::Name(name, port) => {
                request.push(3);
                push_text(&mut request, name);
                port
            }
        };
        request.extend_from_slice(&port.to_be_bytes());
        (Socks { state: SocksState::Method, heard: Vec::new(), login, request }, hello)
    }

    /// Takes what the proxy sent.
    pub(super) fn hear(&mut self, bytes: &[u8]) -> Result<SocksAction, Failure> {
        self.heard.extend_from_slice(bytes.get(..=HEARD_BYTES_MAX).unwrap_or(bytes));
        if self.heard.len() > HEARD_BYTES_MAX {
            return Err(Failure::ProxyFailed);
        }
        match (self.state, self.heard.as_slice()) {
            (_, [] | [_]) => Ok(SocksAction::Listen),
            (SocksState::Method, [VERSION, 0]) => self.say(SocksState::Reply, Some(self.request.clone())),
            (SocksState::Method, [VERSION, 2]) => self.say(SocksState::Login, self.login.clone()),
            (SocksState::Method, [VERSION, 0xff]) => Err(Failure::ProxyRefused),
            (SocksState::Login, [_, 0]) => self.say(SocksState::Reply, Some(self.request.clone())),
            (SocksState::Login, [_, _]) => Err(Failure::ProxyRefused),
            (SocksState::Reply, [VERSION, 0]) => Ok(SocksAction::Listen),
            (SocksState::Reply, [VERSION, 0, _]) => Ok(SocksAction::Listen),
            (SocksState::Reply, [VERSION, 0, _, kind, rest @ ..]) => {
                let address_bytes = match (kind, rest.first()) {
                    (1, _) => 4,
                    (4, _) => 16,
                    (3, Some(length)) => 1 + usize::from(*length),
                    (3, None) => return Ok(SocksAction::Listen),
                    _ => return Err(Failure::ProxyFailed),
                };
                match rest.len().cmp(&(address_bytes + 2)) {
                    std::cmp::Ordering::Less => Ok(SocksAction::Listen),
                    std::cmp::Ordering::Equal => Ok(SocksAction::Open),
                    std::cmp::Ordering::Greater => Err(Failure::ProxyFailed),
                }
            }
            (SocksState::Reply, [VERSION, code, ..]) => Err(failure_of(*code)),
            _ => Err(Failure::ProxyFailed),
        }
    }

    fn say(&mut self, state: SocksState, bytes: Option<Vec<u8>>) -> Result<SocksAction, Failure> {
        self.heard.clear();
        self.state = state;
        bytes.map(SocksAction::Say).ok_or(Failure::ProxyFailed)
    }
}

/// A length and that many bytes; longer text is cut, and the proxy will not recognize it.
fn push_text(bytes: &mut Vec<u8>, text: &str) {
    let text = text.as_bytes().get(..255).unwrap_or(text.as_bytes());
    bytes.push(text.len() as u8);
    bytes.extend_from_slice(text);
}

/// RFC 1928 section 6.
fn failure_of(code: u8) -> Failure {
    match code {
        2 | 7 | 8 => Failure::ProxyRefused,
        3 | 4 => Failure::ConnectFailed,
        5 => Failure::ConnectRefused,
        6 => Failure::ConnectTimeout,
        _ => Failure::ProxyFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    fn addr(text: &str) -> Destination<'static> {
        Destination::Address(text.parse().expect("address"))
    }

    /// All output when the proxy sends `heard`, in pieces of `piece` bytes.
    fn talk(
        login: Option<(&str, &str)>,
        to: Destination<'_>,
        heard: &[&[u8]],
        piece: usize,
    ) -> (Vec<Vec<u8>>, Result<SocksAction, Failure>) {
        let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
        let (mut socks, hello) = Socks::new(login.as_ref(), to);
        let mut said = vec![hello];
        for reply in heard {
            for bytes in reply.chunks(piece) {
                match socks.hear(bytes) {
                    Ok(SocksAction::Listen) => {}
                    Ok(SocksAction::Say(more)) => said.push(more),
                    end => return (said, end),
                }
            }
        }
        (said, Ok(SocksAction::Listen))
    }

    #[test]
    fn conversations() {
        let open = b"\x05\0\0\x01\0\0\0\0\0\0";
        for piece in [1, 2, 100] {
            let (said, end) = talk(None, addr("1.2.3.4:443"), &[b"\x05\0", open], piece);
            assert_eq!(said, [&b"\x05\x01\0"[..], b"\x05\x01\0\x01\x01\x02\x03\x04\x01\xbb"]);
            assert_eq!(end, Ok(SocksAction::Open));
            let login = Some(("me", "pass"));
            let reply = b"\x05\0\0\x03\x02ab\0\x50";
            let (said, end) = talk(login, Destination::Name("a.test", 80), &[b"\x05\x02", b"\x01\0", reply], piece);
            assert_eq!(said, [&b"\x05\x02\0\x02"[..], b"\x01\x02me\x04pass", b"\x05\x01\0\x03\x06a.test\0\x50"]);
            assert_eq!(end, Ok(SocksAction::Open));
            let reply = [&b"\x05\0\0\x04"[..], &[0; 18]].concat();
            let (said, end) = talk(login, addr("[::1]:80"), &[b"\x05\0", &reply], piece);
            assert_eq!((said.len(), said[1].len(), end), (2, 22, Ok(SocksAction::Open)));
        }
    }

    #[test]
    fn refusals() {
        let to = addr("1.2.3.4:443");
        for (heard, expected) in [
            (&[&b"\x05\xff"[..]][..], Failure::ProxyRefused),
            (&[b"\x05\x02"], Failure::ProxyFailed),
            (&[b"\x05\x01"], Failure::ProxyFailed),
            (&[b"HTTP/1.1 400 Bad Request\r\n"], Failure::ProxyFailed),
            (&[b"\x04\0"], Failure::ProxyFailed),
            (&[b"\x05\0", b"\x05\x01"], Failure::ProxyFailed),
            (&[b"\x05\0", b"\x05\x02\0\x01\0\0\0\0\0\0"], Failure::ProxyRefused),
            (&[b"\x05\0", b"\x05\x03"], Failure::ConnectFailed),
            (&[b"\x05\0", b"\x05\x04"], Failure::ConnectFailed),
            (&[b"\x05\0", b"\x05\x05"], Failure::ConnectRefused),
            (&[b"\x05\0", b"\x05\x06"], Failure::ConnectTimeout),
            (&[b"\x05\0", b"\x05\x63"], Failure::ProxyFailed),
            (&[b"\x05\0", b"\x05\0\0\x09\0\0\0\0"], Failure::ProxyFailed),
            (&[b"\x05\0", b"\x05\0\0\x01\0\0\0\0\0\0HTTP/1.1"], Failure::ProxyFailed),
        ] {
            assert_eq!(talk(None, to, heard, 100).1, Err(expected), "{heard:?}");
        }
        let login = Some(("me", "pass"));
        assert_eq!(talk(login, to, &[b"\x05\x02", b"\x01\x01"], 1).1, Err(Failure::ProxyRefused));
    }

    #[test]
    fn whatever_it_says_it_is_bounded() {
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            let (mut socks, _) = Socks::new(Some(&("a".to_owned(), "b".to_owned())), addr("1.2.3.4:5"));
            for _ in 0..200 {
                let bytes = [[5, 0, 1, 2, 3, 4, rng.next() as u8, 255][rng.index(8)]; 300];
                if !matches!(socks.hear(&bytes[..rng.index(3)]), Ok(SocksAction::Listen | SocksAction::Say(_))) {
                    break;
                }
                assert!(socks.heard.len() <= HEARD_BYTES_MAX);
            }
        }
        let (mut socks, _) = Socks::new(None, addr("1.2.3.4:5"));
        assert_eq!(socks.hear(&[5; 100_000]), Err(Failure::ProxyFailed));
    }
}
