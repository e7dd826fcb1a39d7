//! Dates in header fields, and when to retry.
//!
//! Decides: the three forms of RFC 9110 section 5.6.7 are read, ignoring case and the weekday; `UTC` and a missing
//! zone are treated as GMT, any other zone is refused. A two-digit year that would be more than 50 years ahead is a
//! past one (same section).
//!
//! Limits: years 1970 to 9999; a Retry-After of more seconds than fit `u64` is the largest `u64`.
//!
//! Leaves to others: how long a wait is honoured (`politeness`).

use super::Headers;
use ringcrawl_base::time::{Duration, UnixTime};

/// Retry-After as time from now on (RFC 9110 section 10.2.3): seconds, or a date; zero if that has passed. A date is
/// compared with the response's own Date, so that a wrong or jumping clock on either side does not change the wait;
/// without one, with `now`. `None` if there is none that can be read.
pub fn retry_after(headers: &Headers, now: UnixTime) -> Option<Duration> {
    headers.all("retry-after").find_map(|value| {
        let value = value.trim_ascii();
        if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
            let seconds =
                value.iter().fold(0_u64, |n, digit| n.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
            return Some(Duration::from_secs(seconds));
        }
        let said_at = headers.get("date").and_then(|date| http_date(date, now)).unwrap_or(now);
        let date = http_date(value, now)?;
        Some(Duration::from_micros(date.as_micros().saturating_sub(said_at.as_micros())))
    })
}

/// An HTTP date; `now` decides the century of two-digit years.
///
/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`.
pub fn http_date(value: &[u8], now: UnixTime) -> Option<UnixTime> {
    if value.len() > DATE_BYTES_MAX {
        return None;
    }
    let mut words = value.split(|byte| matches!(byte, b' ' | b',' | b'-' | b'\t')).filter(|word| !word.is_empty());
    let day_name = words.next()?;
    if !day_name.iter().all(u8::is_ascii_alphabetic) || day_name.len() < 3 {
        return None;
    }
    let first = words.next()?;
    let (day, month, year, clock);
    if let Some(found) = month_of(first) {
        // asctime: the year comes last, and there is no zone.
        month = found;
        day = number(words.next()?, 1..=2)?;
        clock = words.next()?;
        year = number(words.next()?, 4..=4)?;
    } else {
        day = number(first, 1..=2)?;
        month = month_of(words.next()?)?;
        let digits = words.next()?;
        year = match digits.len() {
            2 => century(number(digits, 2..=2)?, now),
            _ => number(digits, 4..=4)?,
        };
        clock = words.next()?;
        let zone = words.next().unwrap_or(b"GMT");
        if !zone.eq_ignore_ascii_case(b"GMT") && !zone.eq_ignore_ascii_case(b"UTC") {
            return None;
        }
    }
    let mut clock = clock.split(|byte| *byte == b':');
    let (hour, minute, second) =
        (number(clock.next()?, 1..=2)?, number(clock.next()?, 2..=2)?, number(clock.next()?, 2..=2)?);
    if words.next().is_some() || clock.next().is_some() {
        return None;
    }
    // A leap second is the start of the next (RFC 9110 section 5.6.7 allows 60).
    UnixTime::from_civil(year, month, day, hour, minute, second)
}

/// No date is longer: `Wednesday, 06-Nov-94 08:49:37 GMT` has 33, the rest is whitespace.
const DATE_BYTES_MAX: usize = 64;

const MONTHS: [&[u8]; 12] =
    [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];

/// 1 to 12.
fn month_of(word: &[u8]) -> Option<u64> {
    MONTHS.iter().position(|month| month.eq_ignore_ascii_case(word)).map(|index| index as u64 + 1)
}

fn number(digits: &[u8], lengths: std::ops::RangeInclusive<usize>) -> Option<u64> {
    if !lengths.contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

fn century(year: u64, now: UnixTime) -> u64 {
    let (this_year, ..) = now.civil();
    let year = this_year - this_year % 100 + year;
    // For 94 in 2026, both 1994 and 2094 are possible; 2094 is more than 50 years away. In 2090, 03 is 2103.
    if year > this_year + 50 {
        year - 100
    } else if year + 50 <= this_year {
        year + 100
    } else {
        year
    }
}

#[cfg(test)]
mod tests {
    use super::super::head::Head;
    use super::*;

    /// 2026-11-21T08:40:32Z
    const NOW: UnixTime = UnixTime::from_micros(1_795_250_432_000_000);

    #[test]
    fn three_forms() {
        let expected = Some(UnixTime::from_micros(784_111_777_000_000));
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "sun, 6 nov 1994 08:49:37 utc",
            "Sun, 06-Nov-1994 08:49:37",
        ] {
            assert_eq!(http_date(text.as_bytes(), NOW), expected, "{text}");
        }
    }

    #[test]
    fn no_dates() {
        for text in [
            "",
            "Sun",
            "0",
            "06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 29 Feb 1900 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37:00 GMT",
            "Sun, 06 Nov 199400 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT x",
            "Sun, 06 Nov 1969 08:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(http_date(text.as_bytes(), NOW), None, "{text}");
        }
    }

    #[test]
    fn every_day_comes_back() {
        for day in (0..2_932_896).step_by(97) {
            let time = UnixTime::from_micros(day * 86_400_000_000 + 3_723_000_000);
            let (year, month, day, hour, minute, second, _) = time.civil();
            let name = String::from_utf8_lossy(MONTHS[usize::from(month) - 1]);
            let text = format!("Xxx, {day:02} {name} {year:04} {hour:02}:{minute:02}:{second:02} GMT");
            assert_eq!(http_date(text.as_bytes(), NOW), Some(time), "{text}");
        }
    }

    #[test]
    fn centuries() {
        let year =
            |text: &str| http_date(format!("Sunday, 06-Nov-{text} 08:49:37 GMT").as_bytes(), NOW).map(|t| t.civil().0);
        assert_eq!(["27", "76", "77", "99", "00"].map(year), [2027, 2076, 1977, 1999, 2000].map(Some));
    }

    #[test]
    fn retry() {
        let of = |value: &str| {
            let text = format!("HTTP/1.1 503 x\r\nRetry-After: {value}\r\n\r\n");
            retry_after(&Head::parse(text.as_bytes(), 9).expect("readable").headers, NOW)
        };
        assert_eq!(of("120"), Some(Duration::from_secs(120)));
        assert_eq!(of("99999999999999999999999"), Some(Duration::from_secs(u64::MAX)));
        assert_eq!(of("Sat, 21 Nov 2026 08:41:32 GMT"), Some(Duration::from_secs(60)));
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        for bad in ["", "-1", "1.5", "soon", "1 2"] {
            assert_eq!(of(bad), None, "{bad}");
        }
        // By the server's own clock, however wrong, or by ours.
        let date = "Sat, 21 Nov 2026 08:41:32 GMT\r\nDate: Sat, 21 Nov 2026 08:41:";
        assert_eq!(of(&format!("{date}02 GMT")), Some(Duration::from_secs(30)));
        assert_eq!(
            of("Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 08:48:37 GMT"),
            Some(Duration::from_secs(60))
        );
        assert_eq!(of(&format!("{date}no date")), Some(Duration::from_secs(60)));
    }
}
