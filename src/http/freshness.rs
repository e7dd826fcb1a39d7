//! How long a response may be used without revalidation.
//!
//! Decides: RFC 9111 section 4.2, as a private cache: `max-age`, or else Expires minus Date, each minus Age;
//! `no-cache` and `no-store` mean no time at all, and so does an Expires that is not a date (section 5.3). If a
//! directive occurs twice, the shorter one counts (section 4.2.1). A lifetime that the response does not state is not
//! guessed.
//! Invariants: pure; no byte can cause a panic.
//! Leaves to others: the bounds within which it is believed (`frontier`).

use super::Headers;
use super::date::http_date;
use ringcrawl_base::time::{Duration, UnixTime};

/// The time from now on, if the response states one; `now` is when it came.
pub fn fresh_for(headers: &Headers, now: UnixTime) -> Option<Duration> {
    let age = headers.get("age").and_then(seconds).unwrap_or_default();
    lifetime(headers, now).map(|lifetime| lifetime.saturating_sub(age))
}

fn lifetime(headers: &Headers, now: UnixTime) -> Option<Duration> {
    let mut max_age: Option<Duration> = None;
    for directive in headers.all("cache-control").flat_map(|value| value.split(|byte| *byte == b',')) {
        let mut parts = directive.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        if name.eq_ignore_ascii_case(b"no-cache") || name.eq_ignore_ascii_case(b"no-store") {
            return Some(Duration::ZERO);
        }
        if name.eq_ignore_ascii_case(b"max-age") {
            // A value that is not a number is stale (section 4.2.1).
            let stated = parts.next().and_then(seconds).unwrap_or_default();
            max_age = Some(max_age.map_or(stated, |other| other.min(stated)));
        }
    }
    max_age.or_else(|| {
        let expires = headers.get("expires")?;
        let said_at = headers.get("date").and_then(|date| http_date(date, now)).unwrap_or(now);
        let until = http_date(expires, now).map_or(0, UnixTime::as_micros);
        Some(Duration::from_micros(until.saturating_sub(said_at.as_micros())))
    })
}

/// Whole seconds, with or without quotes; too long a value is clamped to the maximum.
fn seconds(value: &[u8]) -> Option<Duration> {
    let value = value.trim_ascii();
    let digits = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let number = digits.iter().fold(0_u64, |n, digit| n.saturating_mul(10).saturating_add(u64::from(digit & 15)));
    is_number.then(|| Duration::from_secs(number))
}

#[cfg(test)]
mod tests {
    use super::super::head::Head;
    use super::*;

    #[test]
    fn lifetimes() {
        // 2026-11-21T08:40:32Z
        let now = UnixTime::from_micros(1_795_250_432_000_000);
        for (fields, expected) in [
            ("", None),
            ("Cache-Control: max-age=3600", Some(3_600)),
            ("Cache-Control: public, MAX-AGE = \"60\"", Some(60)),
            ("Cache-Control: max-age=600\r\nCache-Control: max-age=60", Some(60)),
            ("Cache-Control: max-age=600\r\nAge: 100", Some(500)),
            ("Cache-Control: max-age=600\r\nAge: 1000", Some(0)),
            ("Cache-Control: max-age=600\r\nExpires: 0", Some(600)),
            ("Cache-Control: max-age=99999999999999999999999", Some(u64::MAX)),
            ("Cache-Control: max-age=-1", Some(0)),
            ("Cache-Control: max-age", Some(0)),
            ("Cache-Control: no-cache, max-age=600", Some(0)),
            ("Cache-Control: private, no-store", Some(0)),
            ("Cache-Control: s-maxage=600", None),
            ("Expires: Sat, 21 Nov 2026 09:40:32 GMT", Some(3_600)),
            ("Expires: Sat, 21 Nov 2026 09:40:32 GMT\r\nDate: Sat, 21 Nov 2026 09:40:02 GMT", Some(30)),
            ("Expires: Sat, 21 Nov 2026 07:40:32 GMT", Some(0)),
            ("Expires: -1", Some(0)),
        ] {
            let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").replace("\r\n\r\n\r\n", "\r\n\r\n");
            let headers = Head::parse(text.as_bytes(), 9).expect("readable").headers;
            assert_eq!(fresh_for(&headers, now), expected.map(Duration::from_secs), "{fields}");
        }
    }
}
