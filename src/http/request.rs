//! A request as bytes.
//!
//! Decides: which fields a crawler sends, and in which order; that `deflate` is understood but not offered, because
//! servers disagree whether it means zlib (RFC 9110 section 8.4.1.2) or bare deflate, and every server with deflate
//! also has gzip.
//!
//! Invariants: exactly one request line and one empty line, whatever the caller passes: a byte that could end a line
//! early (CR, LF, NUL, any other control) is removed from values and percent-encoded in the target, and a field whose
//! name is not a token (RFC 9110 section 5.6.2) is omitted. No body, so no framing field; a caller cannot add one.
//!
//! Limits: GET and HEAD with origin-form or absolute-form targets, CONNECT (RFC 9112 section 3.2).

use ringcrawl_url::Url;

/// The request method.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Method {
    /// The representation.
    Get,
    /// Only its head; the response has no body whatever its fields say.
    Head,
    /// A tunnel to it through a proxy; a 2xx response has no body whatever its fields say (RFC 9110 section 9.3.6).
    Connect,
}

impl Method {
    /// The token on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Connect => "CONNECT",
        }
    }
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// GET or HEAD.
    pub method: Method,
    /// Determines request target and Host.
    pub url: &'a Url,
    /// User-Agent (RFC 9110 section 10.1.5).
    pub user_agent: &'a str,
    /// From, the operator's mail address (RFC 9110 section 10.1.2); empty: not sent.
    pub from: &'a str,
    /// More fields, such as those of `Validators`. `Accept` and `Accept-Encoding` replace the default; Host,
    /// User-Agent, From, Connection and body framing fields are reserved and are dropped.
    pub extra: &'a [(&'a str, &'a [u8])],
    /// The last request on this connection (RFC 9112 section 9.6): the server need not wait for another.
    pub last: bool,
}

impl Request<'_> {
    /// The request, ready to send to the server itself.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.with_target(self.url.path_and_query())
    }

    /// The request, ready to send to a proxy: with the whole URL (RFC 9112 section 3.2.2).
    pub fn to_proxy_bytes(&self) -> Vec<u8> {
        self.with_target(self.url.as_str())
    }

    fn with_target(&self, target: &str) -> Vec<u8> {
        let extra: usize = self.extra.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        let mut bytes = Vec::with_capacity(512 + extra);
        bytes.extend_from_slice(self.method.as_str().as_bytes());
        bytes.push(b' ');
        push_target(&mut bytes, target);
        bytes.extend_from_slice(b" HTTP/1.1\r\n");
        push_field(&mut bytes, "Host", self.url.authority().as_bytes());
        push_field(&mut bytes, "User-Agent", self.user_agent.as_bytes());
        if !self.from.is_empty() {
            push_field(&mut bytes, "From", self.from.as_bytes());
        }
        for (name, value) in DEFAULTS {
            if !self.extra.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                push_field(&mut bytes, name, value.as_bytes());
            }
        }
        for (name, value) in self.extra {
            if is_token(name) && !RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
                push_field(&mut bytes, name, value);
            }
        }
        // The default of HTTP/1.1, sent explicitly for servers that answer 1.0 (RFC 9112 section 9.3).
        push_field(&mut bytes, "Connection", if self.last { b"close" } else { b"keep-alive" });
        bytes.extend_from_slice(b"\r\n");
        bytes
    }
}

/// Asks a proxy for a tunnel to `authority`, which is a host and a port (RFC 9110 section 9.3.6).
pub fn connect_request(authority: &str, user_agent: &str, authorization: Option<&str>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(b"CONNECT ");
    push_target(&mut bytes, authority);
    bytes.extend_from_slice(b" HTTP/1.1\r\n");
    push_field(&mut bytes, "Host", authority.as_bytes());
    push_field(&mut bytes, "User-Agent", user_agent.as_bytes());
    if let Some(authorization) = authorization {
        push_field(&mut bytes, "Proxy-Authorization", authorization.as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// Sent unless the caller sets its own. Pages come first; anything is accepted. The codings by preference.
const DEFAULTS: [(&str, &str); 2] =
    [("Accept", "text/html,application/xhtml+xml,*/*;q=0.8"), ("Accept-Encoding", "zstd, br, gzip")];

/// Only set here.
const RESERVED: [&str; 11] = [
    "Host",
    "User-Agent",
    "From",
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "Content-Length",
    "Transfer-Encoding",
    "TE",
    "Upgrade",
    "Expect",
];

/// A canonical URL contains only visible ASCII here; any other byte is encoded, not trusted.
fn push_target(bytes: &mut Vec<u8>, target: &str) {
    for byte in target.bytes() {
        if byte.is_ascii_graphic() {
            bytes.push(byte);
        } else {
            bytes.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
}

fn push_field(bytes: &mut Vec<u8>, name: &str, value: &[u8]) {
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(b": ");
    let value = value.trim_ascii();
    let is_stray = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    // Checks many bytes at a time; there is nearly always none.
    if value.iter().fold(false, |any, byte| any | is_stray(byte)) {
        bytes.extend(value.iter().filter(|byte| !is_stray(byte)));
    } else {
        bytes.extend_from_slice(value);
    }
    bytes.extend_from_slice(b"\r\n");
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(request: &Request<'_>) -> String {
        String::from_utf8(request.to_bytes()).expect("requests made of text are text")
    }

    #[test]
    fn a_plain_request() {
        let url = Url::parse("http://www.example.test:8080/a b?c=d#e").expect("valid");
        let request =
            Request { method: Method::Get, url: &url, user_agent: "bot/1", from: "a@b.test", extra: &[], last: false };
        assert_eq!(
            text(&request),
            "GET /a%20b?c=d HTTP/1.1\r\nHost: www.example.test:8080\r\nUser-Agent: bot/1\r\nFrom: a@b.test\r\n\
             Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Encoding: zstd, br, gzip\r\n\
             Connection: keep-alive\r\n\r\n"
        );
    }

    #[test]
    fn requests_to_a_proxy() {
        let url = Url::parse("http://www.example.test:8080/a b?c=d#e").expect("valid");
        let request = Request { method: Method::Get, url: &url, user_agent: "bot", from: "", extra: &[], last: false };
        let (direct, proxied) = (request.to_bytes(), request.to_proxy_bytes());
        let proxied = String::from_utf8(proxied).expect("text");
        assert!(
            proxied
                .starts_with("GET http://www.example.test:8080/a%20b?c=d HTTP/1.1\r\nHost: www.example.test:8080\r\n")
        );
        assert_eq!(proxied.replacen("http://www.example.test:8080", "", 1).as_bytes(), direct);
        assert_eq!(
            String::from_utf8(connect_request("[::1]:443\r\nX", "bot\r\n", Some("Basic x\n"))).expect("text"),
            "CONNECT [::1]:443%0D%0AX HTTP/1.1\r\nHost: [::1]:443X\r\nUser-Agent: bot\r\nProxy-Authorization: Basic x\r\n\r\n"
        );
    }

    #[test]
    fn nothing_can_be_injected() {
        let url = Url::parse("https://example.test/?q=\u{e9}\r\nX: y").expect("valid");
        let extra: [(&str, &[u8]); 9] = [
            ("Expect", b"100-continue"),
            ("upgrade", b"h2c"),
            ("If-None-Match", b"\"a\"\r\nEvil: 1"),
            ("Bad Name", b"x"),
            ("Bad\r\nName", b"x"),
            ("", b"x"),
            ("content-length", b"5"),
            ("Transfer-Encoding", b"chunked"),
            ("accept", b"text/plain"),
        ];
        let user_agent = "bot\r\n\r\nGET /evil HTTP/1.1\0";
        let request = Request { method: Method::Head, url: &url, user_agent, from: "", extra: &extra, last: false };
        let text = text(&request);
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(
            lines,
            [
                "HEAD /?q=%C3%A9X:%20y HTTP/1.1",
                "Host: example.test",
                "User-Agent: botGET /evil HTTP/1.1",
                "Accept-Encoding: zstd, br, gzip",
                "If-None-Match: \"a\"Evil: 1",
                "accept: text/plain",
                "Connection: keep-alive",
                "",
                ""
            ]
        );
        assert!(!text.replace("\r\n", "").contains(['\r', '\n', '\0']));
    }
}
