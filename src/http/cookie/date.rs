//! The dates of cookies (RFC 6265 section 5.1.1): tokens in any order, unlike those of other fields.
//!
//! Decides: follows the section to the letter; a date before 1970 becomes the beginning of 1970, which has equally
//! passed.

use ringcrawl_base::time::UnixTime;

/// The date of Expires.
pub(super) fn cookie_date(value: &[u8]) -> Option<UnixTime> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in value.split(|byte| is_delimiter(*byte)).filter(|token| !token.is_empty()) {
        if time.is_none()
            && let Some(found) = hms(token)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some((found, _)) = number(token, 1..=2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = month_of(token)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some((found, _)) = number(token, 2..=4)
        {
            year = Some(found);
        }
    }
    let ((hour, minute, second), day, month) = (time?, day?, month?);
    let year = match year? {
        two @ 70..=99 => two + 1_900,
        two @ 0..=69 => two + 2_000,
        year => year,
    };
    if year < 1_601 || second > 59 {
        return None;
    }
    // Whether the day exists depends on the century only for leap years; those before 1970 have passed.
    match year {
        ..1_970 if (1..=31).contains(&day) && hour < 24 && minute < 60 => Some(UnixTime::from_micros(0)),
        _ => UnixTime::from_civil(year, month, day, hour, minute, second),
    }
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e)
}

/// As many digits as `lengths` allows, with no further digit behind them; and the rest.
fn number(token: &[u8], lengths: std::ops::RangeInclusive<usize>) -> Option<(u64, &[u8])> {
    let count = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = token.split_at_checked(count)?;
    let number = digits.iter().take(4).fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    lengths.contains(&count).then_some((number, rest))
}

fn hms(token: &[u8]) -> Option<(u64, u64, u64)> {
    let (hour, rest) = number(token, 1..=2)?;
    let (minute, rest) = number(rest.strip_prefix(b":")?, 1..=2)?;
    let (second, _) = number(rest.strip_prefix(b":")?, 1..=2)?;
    Some((hour, minute, second))
}

/// 1 to 12, by the first three letters.
fn month_of(token: &[u8]) -> Option<u64> {
    const MONTHS: [&[u8]; 12] =
        [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
    let start = token.get(..3)?;
    MONTHS.iter().position(|month| month.eq_ignore_ascii_case(start)).map(|index| index as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_in_any_order() {
        let expected = UnixTime::from_civil(1994, 11, 6, 8, 49, 37);
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "06-nov-1994 8:49:37",
            "08:49:37x 6th November 1994 UTC",
            "1994x Nov 8:49:37 6",
        ] {
            assert_eq!(cookie_date(text.as_bytes()), expected, "{text}");
        }
        for (text, year) in [("1 Jan 70 0:0:0", 1970), ("1 Jan 69 0:0:0", 2069), ("1 Jan 00 0:0:0", 2000)] {
            assert_eq!(cookie_date(text.as_bytes()), UnixTime::from_civil(year, 1, 1, 0, 0, 0), "{text}");
        }
        assert_eq!(cookie_date(b"1 Jan 1601 0:0:0"), Some(UnixTime::from_micros(0)));
        for wrong in [
            "",
            "tomorrow",
            "1 Jan 2026",
            "Jan 2026 0:0:0",
            "1 2026 0:0:0",
            "1 Jan 0:0:0",
            "1 Jan 1600 0:0:0",
            "0 Jan 2026 0:0:0",
            "30 Feb 2026 0:0:0",
            "32 Jan 2026 0:0:0",
            "1 Jan 2026 24:0:0",
            "1 Jan 2026 0:60:0",
            "1 Jan 2026 0:0:60",
            "1 Jan 20266 0:0:0",
            "1 Jan 2026 000:0:0",
        ] {
            assert_eq!(cookie_date(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
