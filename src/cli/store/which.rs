//! Chooses among several captures of a page.
//!
//! Decides: it takes the latest; or the one nearest to a time, the earlier of two at the same distance (RFC 7089
//! section 4.5.3 leaves that choice to the archive); or the payload of an exact time. A partial time, such as
//! 2026-11, is a span: a capture within it has distance zero from it.
//! Limits: times are those of an index, to the second. A capture without a time is farther than any other.

use ringcrawl_base::time::UnixTime;

/// The choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which<'a> {
    /// The latest capture.
    Latest,
    /// The one nearest to a time.
    Nearest(Span),
    /// One of this time, of 14 digits, that is not a revisit.
    Payload(&'a str),
}

/// A moment, or all moments of a year, a month, a day, an hour or a minute. In seconds since 1970, both ends
/// included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    first: u64,
    last: u64,
}

impl Which<'_> {
    /// Whether a capture of this time is a candidate.
    pub fn takes(self, timestamp: &str, is_revisit: bool) -> bool {
        match self {
            Which::Latest | Which::Nearest(_) => true,
            Which::Payload(time) => timestamp == time && !is_revisit,
        }
    }

    /// Whether to prefer a capture of the time `found` to one of the time `before`, which was found before it.
    pub fn prefers(self, found: &str, before: &str) -> bool {
        match self {
            Which::Latest | Which::Payload(_) => found >= before,
            Which::Nearest(span) => (span.distance(found), found) <= (span.distance(before), before),
        }
    }
}

impl Span {
    /// From 4 to 14 digits; `None`: no such time.
    pub fn of(digits: &str) -> Option<Span> {
        let with = |rest: &str| UnixTime::from_digits(&format!("{digits}{rest}")).map(seconds);
        let after = digits.len().checked_sub("yyyy".len())?;
        let first = with("0101000000".get(after..)?)?;
        // Tries the last days of months, from the longest to the shortest.
        let ends = ["1231235959", "1230235959", "1229235959", "1228235959"];
        let last = ends.iter().find_map(|end| with(end.get(after..)?))?;
        Some(Span { first, last })
    }

    /// Seconds from a time of 14 digits to the nearest moment of the span.
    fn distance(self, timestamp: &str) -> u64 {
        let Some(time) = UnixTime::from_digits(timestamp).map(seconds) else { return u64::MAX };
        self.first.saturating_sub(time).max(time.saturating_sub(self.last))
    }
}

fn seconds(time: UnixTime) -> u64 {
    time.as_micros() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time chosen from `times`, in whichever order they are found.
    fn chosen<'a>(which: Which<'_>, times: &[&'a str]) -> Option<&'a str> {
        let choose = |times: &mut dyn Iterator<Item = &'a str>| {
            times.fold(None, |best, time| match best {
                Some(best) if !which.prefers(time, best) => Some(best),
                _ => Some(time),
            })
        };
        let there = choose(&mut times.iter().copied());
        assert_eq!(there, choose(&mut times.iter().copied().rev()));
        there
    }

    #[test]
    fn the_nearest_capture_and_of_two_as_near_the_earlier() {
        let times = ["20260131235958", "20260228000000", "20260301000000", "20280229120000", "later"];
        for (at, nearest) in [
            ("20260131235958", 0),
            ("20260214115959", 0),
            ("20260214120000", 1),
            ("20260228120000", 1),
            ("20260228120001", 2),
            ("2026", 0),
            ("202602", 1),
            ("20260228", 1),
            ("2026030100", 2),
            ("202604", 2),
            ("202802", 3),
            ("1970", 0),
            ("9999", 3),
        ] {
            let span = Span::of(at).expect("a time");
            assert_eq!(chosen(Which::Nearest(span), &times), Some(times[nearest]), "{at}");
        }
        // A span extends to its last second, in leap years, too.
        let last = |digits: &str| Span::of(digits).map(|span| UnixTime::from_micros(span.last * 1_000_000).to_digits());
        for (digits, end) in [
            ("2026", "20261231235959"),
            ("202602", "20260228235959"),
            ("202802", "20280229235959"),
            ("202604", "20260430235959"),
            ("202612", "20261231235959"),
            ("2026022807", "20260228075959"),
            ("20260228070809", "20260228070809"),
        ] {
            assert_eq!(last(digits).as_deref(), Some(end));
        }
        assert!(["", "202613", "20260230", "1969", "2026022824"].iter().all(|digits| Span::of(digits).is_none()));
    }

    #[test]
    fn the_latest_and_the_payload_of_a_time() {
        assert_eq!(
            chosen(Which::Latest, &["20260101000000", "20270101000000", "20250101000000"]),
            Some("20270101000000")
        );
        let payload = Which::Payload("20260101000000");
        assert!(payload.takes("20260101000000", false) && !payload.takes("20260101000000", true));
        assert!(!payload.takes("20260101000001", false) && Which::Latest.takes("20260101000001", true));
    }
}
