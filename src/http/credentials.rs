//! Basic authentication (RFC 7617), and requests with secrets removed.
//!
//! Decides: user name and password are sent as UTF-8. Where a request is kept or shown, a placeholder replaces the
//! values that log in: an archive has other readers.
//! Leaves to others: which server gets which credentials (`fetch`), whether they are valid in a field (`config`).

use base64::Engine;

/// The Authorization value for a `user:password` (RFC 7617 section 2).
pub fn basic(login: &str) -> String {
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(login))
}

/// Fields whose values are secrets (RFC 9110 sections 11.6.2 and 11.7.2).
const SECRET: [&[u8]; 2] = [b"authorization", b"proxy-authorization"];
/// The placeholder for them.
const REMOVED: &[u8] = b"(removed)";

/// `request`, as made by `Request`, without its credentials.
pub fn without_credentials(request: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(request.len());
    for line in request.split_inclusive(|byte| *byte == b'\n') {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if name.len() < line.len() && SECRET.iter().any(|secret| name.eq_ignore_ascii_case(secret)) {
            kept.extend_from_slice(name);
            kept.extend_from_slice(b": ");
            kept.extend_from_slice(REMOVED);
            kept.extend_from_slice(b"\r\n");
        } else {
            kept.extend_from_slice(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::{Method, Request};
    use super::*;
    use ringcrawl_url::Url;

    #[test]
    fn the_rfc_s_examples() {
        assert_eq!(basic("Aladdin:open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(basic("test:123\u{a3}"), "Basic dGVzdDoxMjPCow==");
    }

    #[test]
    fn a_request_is_kept_without_its_secrets() {
        let url = Url::parse("https://example.test/authorization:x?Authorization:y").expect("valid");
        let (login, proxy) = (basic("user:secret"), basic("proxy:secret"));
        let extra: [(&str, &[u8]); 3] = [
            ("Authorization", login.as_bytes()),
            ("PROXY-authorization", proxy.as_bytes()),
            ("Cookie", b"authorization: z"),
        ];
        let request =
            Request { method: Method::Get, url: &url, user_agent: "bot", from: "", extra: &extra, last: false }
                .to_bytes();
        assert!(memchr::memmem::find(&request, login.as_bytes()).is_some(), "it is sent");
        let kept = without_credentials(&request);
        for secret in [&login, &proxy] {
            let encoded = secret.trim_start_matches("Basic ");
            assert_eq!(memchr::memmem::find(&kept, encoded.as_bytes()), None);
        }
        let text = String::from_utf8_lossy(&request).into_owned();
        let expected = text.replace(&login, "(removed)").replace(&proxy, "(removed)");
        assert_eq!(String::from_utf8_lossy(&kept), expected);
    }
}
