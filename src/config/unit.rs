//! Durations and sizes as people write them: `250ms`, `64KiB`.
//!
//! Decides: a quantity is one whole number and one unit, nothing else. A bare `10` is refused because a reader cannot
//! know whether it means seconds or milliseconds, and `64KB` because half of the world reads 64,000. The readers are
//! `const`, so the compiler checks the ranges in the key list.
//!
//! Invariants: what `format_*` writes, `read_*` reads back as the same value (durations to the millisecond).
//! Limits: 2^63 − 1 milliseconds or bytes.
//! Leaves to others: which range a key allows (`keys`).

use ringcrawl_base::time::Duration;

/// Why a text is not a quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unreadable {
    /// It does not start with a digit, or holds `.`, `_`, a sign or a space.
    NotANumber,
    /// A number alone.
    NoUnit,
    /// A number and something that is not a unit of this kind.
    UnknownUnit,
    /// More than 2^63 − 1 of the smallest unit.
    TooLarge,
}

/// Units of time, in milliseconds.
const TIME_UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
/// Units of size, in bytes: IEC 80000-13 binary prefixes.
const SIZE_UNITS: &[(&str, u64)] = &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// Reads a duration, in milliseconds.
pub(super) const fn read_millis(text: &str) -> Result<u64, Unreadable> {
    read(text, TIME_UNITS)
}

/// Reads a size, in bytes.
pub(super) const fn read_bytes(text: &str) -> Result<u64, Unreadable> {
    read(text, SIZE_UNITS)
}

/// Writes a duration in the largest unit up to hours that is exact; fractions of a millisecond are dropped.
pub(super) fn format_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    // Hours, not days: operators compare "24h" with "36h" at a glance.
    if millis == 0 { "0s".to_owned() } else { format(millis, TIME_UNITS.split_last().map_or(&[], |(_, rest)| rest)) }
}

/// Writes a size in the largest unit that is exact.
pub(super) fn format_bytes(bytes: u64) -> String {
    format(bytes, SIZE_UNITS)
}

fn format(amount: u64, units: &[(&str, u64)]) -> String {
    let fits = |(_, factor): &&(&str, u64)| amount.is_multiple_of(*factor) && (amount > 0 || *factor == 1);
    match units.iter().rev().find(fits) {
        Some((name, factor)) => format!("{}{name}", amount / factor),
        None => amount.to_string(),
    }
}

/// Slice patterns and `while`, because iterators are not `const`.
const fn read(text: &str, mut units: &[(&str, u64)]) -> Result<u64, Unreadable> {
    let mut rest = text.as_bytes();
    let mut amount: u64 = 0;
    while let [digit @ b'0'..=b'9', tail @ ..] = rest {
        let Some(tens) = amount.checked_mul(10) else { return Err(Unreadable::TooLarge) };
        let Some(sum) = tens.checked_add((*digit - b'0') as u64) else { return Err(Unreadable::TooLarge) };
        amount = sum;
        rest = tail;
    }
    if rest.len() == text.len() {
        return Err(Unreadable::NotANumber);
    }
    match rest {
        [] => return Err(Unreadable::NoUnit),
        [b'.' | b'_' | b',' | b' ' | b'+' | b'-', ..] => return Err(Unreadable::NotANumber),
        _ => {}
    }
    while let [(name, factor), others @ ..] = units {
        if equal(rest, name.as_bytes()) {
            return match amount.checked_mul(*factor) {
                Some(product) if product <= i64::MAX as u64 => Ok(product),
                _ => Err(Unreadable::TooLarge),
            };
        }
        units = others;
    }
    Err(Unreadable::UnknownUnit)
}

/// `==`, which is not `const` for slices.
const fn equal(mut left: &[u8], mut right: &[u8]) -> bool {
    while let ([l, left_tail @ ..], [r, right_tail @ ..]) = (left, right) {
        if *l != *r {
            return false;
        }
        (left, right) = (left_tail, right_tail);
    }
    left.is_empty() && right.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whole_numbers_with_a_unit() {
        assert_eq!(read_millis("250ms"), Ok(250));
        assert_eq!(read_millis("10s"), Ok(10_000));
        assert_eq!(read_millis("5m"), Ok(300_000));
        assert_eq!(read_millis("24h"), read_millis("1d"));
        assert_eq!(read_bytes("64KiB"), Ok(65_536));
        assert_eq!(read_bytes("1GiB"), Ok(1 << 30));
        assert_eq!(read_bytes("0B"), Ok(0));
    }

    #[test]
    fn says_why_not() {
        for (text, why) in [
            ("", Unreadable::NotANumber),
            ("s", Unreadable::NotANumber),
            ("-1s", Unreadable::NotANumber),
            ("1.5s", Unreadable::NotANumber),
            ("1 s", Unreadable::NotANumber),
            (" 1s", Unreadable::NotANumber),
            ("10", Unreadable::NoUnit),
            ("10sec", Unreadable::UnknownUnit),
            ("10S", Unreadable::UnknownUnit),
            ("10KiB", Unreadable::UnknownUnit),
            ("10ſ", Unreadable::UnknownUnit),
            ("99999999999999999999s", Unreadable::TooLarge),
            ("9223372036854775807s", Unreadable::TooLarge),
        ] {
            assert_eq!(read_millis(text), Err(why), "{text:?}");
        }
        assert_eq!(read_bytes("64KB"), Err(Unreadable::UnknownUnit));
        assert_eq!(read_bytes("64k"), Err(Unreadable::UnknownUnit));
    }

    #[test]
    fn what_is_written_reads_back() {
        for amount in (0..64).map(|shift| (1_u64 << shift) - 1).chain([60_000, 90_000, 86_400_000, 1536, 3 << 30]) {
            assert_eq!(read_millis(&format_duration(Duration::from_millis(amount))), Ok(amount));
            assert_eq!(read_bytes(&format_bytes(amount)), Ok(amount));
        }
        assert_eq!(format_duration(Duration::from_secs(90)), "90s");
        assert_eq!(format_duration(Duration::from_secs(172_800)), "48h");
        assert_eq!(format_bytes(1 << 20), "1MiB");
        assert_eq!(format_bytes(0), "0B");
    }
}
