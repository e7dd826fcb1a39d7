//! The date of `unavailable_after`.
//!
//! Decides: the forms that search engines' documentation allows, "RFC 822, RFC 850 and ISO 8601", as sites write them:
//!
//! | form | example |
//! |---|---|
//! | RFC 822 | `Sat, 25 Jun 2030 15:00:00 PST`, `25 Jun 30 15:00 +0200` |
//! | RFC 850 | `Saturday, 25-Jun-30 15:00:00 GMT`, `25-Jun-2030 15:00:00 EST` |
//! | ISO 8601 | `2030-06-25`, `2030-06-25T15:00:00+02:00`, `2030-06-25 15:00`, `20300625T150000Z` |
//!
//! The weekday is not compared. A date alone means the beginning of that day. A missing or unknown zone is UTC: at
//! worst half a day wrong, while the alternative would be no date at all. Years with two digits are those from 1970
//! to 2069.
//! Invariants: pure; no byte can cause a panic.
//! Limits: 64 bytes; years 1970 to 9999. A time that its zone moves out of these years is not a date.

use ringcrawl_base::time::UnixTime;

/// Reads a date; `None` when it is not one.
pub fn expiry(text: &str) -> Option<UnixTime> {
    let text = text.trim();
    if text.len() > DATE_BYTES_MAX {
        return None;
    }
    iso(text).or_else(|| by_words(text))
}

/// No date is longer: `Wednesday, 25 Jun 2030 15:00:00 +0000` has 37.
const DATE_BYTES_MAX: usize = 64;

fn iso(text: &str) -> Option<UnixTime> {
    let end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let (date, behind) = text.split_at_checked(end)?;
    let (year, month, day) = match date.len() {
        10 if date.get(4..5)? == "-" && date.get(7..8)? == "-" => (date.get(..4)?, date.get(5..7)?, date.get(8..)?),
        8 => (date.get(..4)?, date.get(4..6)?, date.get(6..)?),
        _ => return None,
    };
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    let (clock, zone) = split_zone(behind.get(1..).unwrap_or_default());
    let clock = if clock.is_empty() { (0, 0, 0) } else { clock_of(clock)? };
    at(year, month, day, clock, zone)
}

fn by_words(text: &str) -> Option<UnixTime> {
    let mut words = text.split([' ', ',', '\t']).filter(|word| !word.is_empty()).peekable();
    // The weekday is a word of its own, if present.
    words.next_if(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let first = words.next()?;
    let (day, month, year) = match first.split_once('-') {
        Some((day, rest)) => {
            let (month, year) = rest.split_once('-')?;
            (day, month, year)
        }
        None => (first, words.next()?, words.next()?),
    };
    let month = MONTHS.iter().position(|name| month.get(..3).is_some_and(|head| head.eq_ignore_ascii_case(name)))? + 1;
    let year = match (year.len(), number(year)?) {
        (2, short @ 70..) => 1_900 + short,
        (2, short) => 2_000 + short,
        (_, year) => year,
    };
    let clock = words.next().map_or(Some((0, 0, 0)), clock_of)?;
    at(year, month as u64, number(day)?, clock, words.next().unwrap_or_default())
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// `15:00:00`, `15:00`, `150000`, with or without a fraction of a second, which is dropped.
fn clock_of(text: &str) -> Option<(u64, u64, u64)> {
    let whole = text.split('.').next()?;
    let mut parts = whole.split(':');
    let (hour, minute, second) = match (parts.next()?, parts.next(), parts.next(), parts.next()) {
        (hour, Some(minute), second, None) => (hour, minute, second.unwrap_or("0")),
        (digits, None, None, None) => (digits.get(..2)?, digits.get(2..4)?, digits.get(4..).unwrap_or("0")),
        _ => return None,
    };
    Some((number(hour)?, number(minute)?, if second.is_empty() { 0 } else { number(second)? }))
}

/// Splits an ISO 8601 time from the zone behind it.
fn split_zone(text: &str) -> (&str, &str) {
    let end = text.find(|one: char| !one.is_ascii_digit() && one != ':' && one != '.').unwrap_or(text.len());
    let (clock, zone) = text.split_at_checked(end).unwrap_or((text, ""));
    (clock, zone.trim())
}

fn at(year: u64, month: u64, day: u64, (hour, minute, second): (u64, u64, u64), zone: &str) -> Option<UnixTime> {
    const MICROS_OF_MINUTE: i64 = 60_000_000;
    let local = UnixTime::from_civil(year, month, day, hour, minute, second)?;
    let micros = i64::try_from(local.as_micros()).ok()? - i64::from(minutes_east(zone)) * MICROS_OF_MINUTE;
    u64::try_from(micros).ok().map(UnixTime::from_micros)
}

/// How far a zone's clocks are ahead of UTC (RFC 822 section 5.1).
fn minutes_east(zone: &str) -> i32 {
    const NAMED: [(&str, i32); 12] = [
        ("EST", -5),
        ("EDT", -4),
        ("CST", -6),
        ("CDT", -5),
        ("MST", -7),
        ("MDT", -6),
        ("PST", -8),
        ("PDT", -7),
        ("CET", 1),
        ("CEST", 2),
        ("BST", 1),
        ("JST", 9),
    ];
    let sign = match zone.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return NAMED.iter().find(|(name, _)| zone.eq_ignore_ascii_case(name)).map_or(0, |(_, hours)| hours * 60),
    };
    let digits: String = zone.chars().filter(char::is_ascii_digit).take(4).collect();
    let part = |range| digits.get(range).and_then(number).unwrap_or(0) as i32;
    sign * (part(0..2) * 60 + part(2..4))
}

fn number(digits: &str) -> Option<u64> {
    let is_number = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.bytes().fold(0, |sum, byte| sum * 10 + u64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let noon = |text: &str| expiry(text).map(UnixTime::to_iso).unwrap_or_default();
        for (text, expected) in [
            // RFC 822 and its successors.
            ("25 Jun 2030 15:00:00 PST", "2030-06-25T23:00:00"),
            ("Tue, 25 Jun 2030 15:00:00 GMT", "2030-06-25T15:00:00"),
            ("Tue, 25 Jun 30 15:00 EST", "2030-06-25T20:00:00"),
            ("25 June 2030 15:00:00 +0200", "2030-06-25T13:00:00"),
            ("5 jun 2030 15:00:00 -0330", "2030-06-05T18:30:00"),
            ("25 Jun 2030", "2030-06-25T00:00:00"),
            // RFC 850, with two digits and with four.
            ("Tuesday, 25-Jun-30 15:00:00 UTC", "2030-06-25T15:00:00"),
            ("23-Jul-2007 18:00:00 EST", "2007-07-23T23:00:00"),
            ("25-Aug-99 15:00:00 PDT", "1999-08-25T22:00:00"),
            // ISO 8601, in both its forms.
            ("2030-06-25", "2030-06-25T00:00:00"),
            ("2030-06-25T15:00:00Z", "2030-06-25T15:00:00"),
            ("2030-06-25t15:00:00.5+02:00", "2030-06-25T13:00:00"),
            ("2030-06-25 15:00", "2030-06-25T15:00:00"),
            ("2030-06-25T15:00:00-0500", "2030-06-25T20:00:00"),
            ("20300625T150000Z", "2030-06-25T15:00:00"),
            ("20300625", "2030-06-25T00:00:00"),
            // An unknown zone.
            ("25 Jun 2030 15:00:00 XYZ", "2030-06-25T15:00:00"),
        ] {
            assert!(noon(text).starts_with(expected), "{text}: {}", noon(text));
        }
    }

    #[test]
    fn no_dates() {
        for text in [
            "",
            "never",
            "25",
            "25 Jun",
            "31 Feb 2030",
            "25 Jux 2030",
            "2030-13-01",
            "2030-06-31",
            "2030-06-25T24:30",
            "2030-06-25T1",
            "25 Jun 2030 noon",
            "1 Jan 1970 00:00:00 +0100",
            "25-Jun",
            "99999-01-01",
            "\u{660}\u{661} Jun 2030",
            &"25 Jun 2030 ".repeat(9),
        ] {
            assert_eq!(expiry(text), None, "{text}");
        }
    }
}
