//! Raw replies that other clients' test suites hold, and what those clients make of them.
//!
//! Golden replies: three of four clients (curl, node, CPython, h11) agree, so do we. All replies, agreed on
//! or not: whole, byte by byte and split anywhere, the result is the same; mutated, nothing panics.

use base64::Engine;
use ringcrawl_base::Rng;
use ringcrawl_http::{HttpError, Limits, Method, Progress, Response, ResponseReader};
use serde_json::Value;

use crate::rig::conformance;

/// The cases of one file.
fn cases(name: &str) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(conformance(&format!("http/{name}"))?).expect("conformance data");
    Some(serde_json::from_str(&text).expect("conformance files are JSON"))
}

fn base64_of(value: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap_or_default()).expect("base64")
}

/// Reads `pieces`, then the close.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Response, HttpError> {
    let mut reader = ResponseReader::new(Method::Get, Limits::default());
    let mut done = false;
    for piece in pieces {
        done = reader.feed(piece)? == Progress::Done;
    }
    if !done {
        reader.end_of_stream()?;
    }
    reader.into_response().ok_or(HttpError::ClosedEarly)
}

/// What differs from the expectation.
fn difference(raw: &[u8], expect: &Value) -> Option<String> {
    let got = read([raw]);
    if expect["outcome"] == "error" {
        // The clients count a body cut short as an error, too.
        return got.ok().filter(|response| response.truncated.is_none()).map(|_| "read without complaint".into());
    }
    let response = match got {
        Ok(response) => response,
        Err(error) => return Some(error.to_string()),
    };
    if let Some(truncated) = response.truncated {
        return Some(format!("truncated: {}", truncated.as_str()));
    }
    if expect["status"] != response.status {
        return Some(format!("status {}", response.status));
    }
    if base64_of(&expect["body_b64"]) != response.body {
        return Some(format!("body {}", response.body.escape_ascii()));
    }
    for (name, values) in expect["headers"].as_object().into_iter().flatten() {
        // Whitespace around a value is no part of it (RFC 9112 section 5); one expectation keeps some,
        // left over from an obs-fold.
        let expected: Vec<&str> =
            values.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::trim).collect();
        let got: Vec<String> = response.headers.all(name).map(|v| v.iter().map(|b| char::from(*b)).collect()).collect();
        if expected != got {
            return Some(format!("{name}: {got:?} instead of {expected:?}"));
        }
    }
    None
}

#[test]
fn golden() {
    let Some(cases) = cases("response_golden.json") else { return };
    let mut wrong = 0;
    for case in &cases {
        if let Some(difference) = difference(&base64_of(&case["raw_b64"]), &case["expect"]) {
            wrong += 1;
            eprintln!("{} {}: {difference}", case["id"], case["name"]);
        }
    }
    eprintln!("golden: {} of {} as three of four clients", cases.len() - wrong, cases.len());
    assert_eq!(wrong, 0);
}

/// How often we and each client agree on success and body length. They disagree themselves; but what we once did as
/// a client does is not to be lost unseen. Four replies with a Content-Length that is no number are read as browsers and http.client
/// read them.
#[test]
fn agreement() {
    let Some(cases) = cases("response_cases.json") else { return };
    for (client, least) in [("curl", 274), ("node", 188), ("http.client", 248), ("h11", 273)] {
        let (mut same, mut all) = (0, 0);
        for case in cases.iter().filter(|case| case["dup_of"].is_null()) {
            let peer = &case["peers"][client];
            let got = read([&base64_of(&case["raw_b64"])[..]]).ok().filter(|response| response.truncated.is_none());
            all += 1;
            same += usize::from(match got {
                Some(response) => peer["result"] == "ok" && peer["body_len"] == response.body.len(),
                None => peer["result"] != "ok",
            });
        }
        eprintln!("{client}: {same} of {all} alike");
        assert!(same >= least, "{client}: {same}, and {least} once");
    }
}

#[test]
fn splits_do_not_matter() {
    let Some(cases) = cases("response_cases.json") else { return };
    let mut random = Rng::new(1);
    for case in &cases {
        let raw = base64_of(&case["raw_b64"]);
        let whole = read([&raw[..]]);
        assert_eq!(whole, read(raw.chunks(1)), "{} byte by byte", case["id"]);
        for _ in 0..8 {
            let mut pieces = Vec::new();
            let mut rest = &raw[..];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(1 + random.index(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            assert_eq!(whole, read(pieces), "{} split", case["id"]);
        }
    }
}

#[test]
fn mutations_do_not_panic() {
    let Some(cases) = cases("response_cases.json") else { return };
    let mut random = Rng::new(2);
    for case in &cases {
        let raw = base64_of(&case["raw_b64"]);
        if raw.is_empty() || raw.len() > 4_096 {
            continue;
        }
        for _ in 0..60 {
            let mut text = raw.clone();
            for _ in 0..1 + random.index(4) {
                let at = random.index(text.len());
                match random.index(3) {
                    0 => text[at] = random.index(256) as u8,
                    1 => text.insert(at, b"\r\n :;,0f\0\xff"[random.index(10)]),
                    _ => drop(text.remove(at)),
                }
                if text.is_empty() {
                    text.push(b'H');
                }
            }
            text.truncate(1 + random.index(text.len() * 2));
            let whole = read([&text[..]]);
            assert_eq!(whole, read(text.chunks(3)), "{}", text.escape_ascii());
            if let Ok(response) = whole {
                let limits = Limits { body_bytes_max: 100_000, ..Limits::default() };
                let decoded = ringcrawl_http::decode_content(&response.headers, &response.body, &limits);
                assert!(decoded.bytes.len() <= 100_000);
            }
        }
    }
}
