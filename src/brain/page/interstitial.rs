//! Interstitials: responses in place of a page that say that this crawler is not let in. Records, lists and JSON call
//! them `wall`.
//!
//! Decides: 402 asks for payment (RFC 9110 section 15.5.3). A challenge asks the client to prove that it is a
//! person's browser. It is recognized by the headers that its vendor sets, or by words that its script cannot do
//! without. For a 2xx with only a vendor's headers the body is checked as well, because a page that merely mentions
//! one is a page.
//! Why: an interstitial must not be taken for the page, and a crawler that meets one must slow down at all machines
//! of the operator.
//! Limits: the first [`LOOKED_AT_BYTES`] of a body. One not described here is treated as a page, or as an error like
//! others.
//! Leaves to others: what is done about it (`politeness`, `frontier`).

use memchr::memmem;

use crate::outcome::Interstitial;
use ringcrawl_http::Headers;

/// Whether a response of `status` with the content `body` is an interstitial.
pub fn find(status: u16, headers: &Headers, body: &[u8]) -> Option<Interstitial> {
    match status {
        402 => Some(Interstitial::Payment),
        200..=299 | 400..=599 => is_challenge(status, headers, body).then_some(Interstitial::Challenge),
        _ => None,
    }
}

fn is_challenge(status: u16, headers: &Headers, body: &[u8]) -> bool {
    let body = body.get(..LOOKED_AT_BYTES).unwrap_or(body);
    if status == 200 {
        let mut vendors = headers.iter().filter_map(|(name, value)| words_behind(name, value));
        return vendors.any(|words| has_any(body, words));
    }
    headers.iter().any(|(name, value)| is_mark(status, name, value))
        || matches!(status, 202 | 403 | 405 | 429 | 503) && (has_any(body, &WORDS) || has_orchestrate(body))
}

/// The words in the body of a 200 with this header, if it is a challenge.
fn words_behind(name: &[u8], value: &[u8]) -> Option<&'static [&'static str]> {
    if name.eq_ignore_ascii_case(b"x-iinfo") {
        return Some(&["_Incapsula_Resource"]);
    }
    let is_cookie = name.eq_ignore_ascii_case(b"set-cookie");
    (is_cookie && memmem::find(value, b"anubis-").is_some()).then_some(&["anubis_challenge"])
}

/// Whether this header is set by a bot blocker, on the response that blocks.
fn is_mark(status: u16, name: &[u8], value: &[u8]) -> bool {
    let is = |one: &str| name.eq_ignore_ascii_case(one.as_bytes());
    let says = |words: &[&str]| words.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
    match name.len() {
        12 if is("cf-mitigated") => says(&["challenge"]),
        10 if is("sg-captcha") => says(&["challenge"]),
        17 if is("x-amzn-waf-action") => says(&["challenge", "captcha"]),
        18 if is("x-vercel-mitigated") => says(&["challenge", "deny"]),
        14 if is("x-sucuri-block") => true,
        10 if is("x-datadome") => status == 403 || status == 429,
        10 if is("x-kpsdk-ct") => status == 429,
        6 if is("server") => status == 403 && says(&["ddos-guard"]),
        _ => false,
    }
}

fn has_any(body: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| memmem::find(body, word.as_bytes()).is_some())
}

/// Whether there is the script of a Cloudflare challenge: `/cdn-cgi/challenge-platform/h/b/orchestrate/…`. The same
/// folder holds the script of its detections (`scripts/jsd/main.js`), which it puts into ordinary pages and an
/// origin's own errors.
fn has_orchestrate(body: &[u8]) -> bool {
    memmem::find_iter(body, PLATFORM).any(|at| {
        let behind = body.get(at + PLATFORM.len()..).unwrap_or_default();
        let near = behind.get(..ORCHESTRATE_BYTES).unwrap_or(behind);
        memmem::find(near, b"orchestrate/").is_some()
    })
}

const PLATFORM: &[u8] = b"/cdn-cgi/challenge-platform/";
/// `h/`, a letter or two, `/`, and the word.
const ORCHESTRATE_BYTES: usize = 24;

/// Words that challenge scripts cannot do without.
const WORDS: [&str; 8] = [
    "_cf_chl_opt",
    "_Incapsula_Resource",
    "captcha-delivery.com",
    "px-captcha",
    "window.gokuProps",
    "anubis_challenge",
    "/.well-known/sgcaptcha/",
    "ddos-guard.net/check",
];
/// Bytes of a body that are checked.
const LOOKED_AT_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &str) -> Headers {
        Headers::of_head(format!("HTTP/1.1 200 OK\r\n{lines}").as_bytes())
    }

    #[test]
    fn interstitials_are_known_by_their_marks() {
        for (status, lines, body, expected) in [
            (402, "Crawler-Price: USD 0.01\r\n", "", Some(Interstitial::Payment)),
            (403, "CF-Mitigated: challenge\r\n", "", Some(Interstitial::Challenge)),
            (429, "X-Vercel-Mitigated: challenge\r\n", "", Some(Interstitial::Challenge)),
            (202, "x-amzn-waf-action: challenge\r\n", "", Some(Interstitial::Challenge)),
            (202, "SG-Captcha: challenge\r\n", "", Some(Interstitial::Challenge)),
            (403, "X-DataDome: protected\r\n", "", Some(Interstitial::Challenge)),
            (
                503,
                "",
                "<title>Just a moment...</title><script src=/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1>",
                Some(Interstitial::Challenge),
            ),
            (403, "", "<script>window._cf_chl_opt={cvId:'3'}</script>", Some(Interstitial::Challenge)),
            (200, "X-Iinfo: 1-2\r\n", "<iframe src='/_Incapsula_Resource?x=1'>", Some(Interstitial::Challenge)),
            (
                200,
                "Set-Cookie: techaro.lol-anubis-cookie-verification=1\r\n",
                "<script id=anubis_challenge>",
                Some(Interstitial::Challenge),
            ),
            // Cloudflare's detections, in an origin's own error.
            (
                503,
                "Server: cloudflare\r\nRetry-After: 1\r\n",
                "<script src=/cdn-cgi/challenge-platform/scripts/jsd/main.js></script> orchestrate/",
                None,
            ),
            (403, "", "a.src='/cdn-cgi/challenge-platform/h/g/scripts/jsd/1/main.js';window.__CF$cv$params={}", None),
            (202, "", "/cdn-cgi/challenge-platform/", None),
            // A page that mentions them, a page behind one, and an error of its own.
            (
                200,
                "Server: cloudflare\r\n",
                "<p>/cdn-cgi/challenge-platform/ and _Incapsula_Resource, anubis_challenge",
                None,
            ),
            (200, "X-DataDome: protected\r\nX-Iinfo: 1-2\r\n", "<h1>News</h1>", None),
            (404, "", "/cdn-cgi/challenge-platform/", None),
            (403, "Server: nginx\r\ncf-mitigated: no\r\n", "Forbidden", None),
            (301, "CF-Mitigated: challenge\r\n", "", None),
        ] {
            assert_eq!(find(status, &headers(lines), body.as_bytes()), expected, "{status} {lines}");
        }
    }
}
