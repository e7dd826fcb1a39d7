//! Time as the brain sees it: a number passed in by the hands.
//!
//! Decides: instants are our own `u64` nanoseconds since the crawl process started, because the standard
//! library's cannot be built from a number, and a simulator must build them. There is no `now()` here:
//! only `ring` (the real clock) and `lab` (the virtual one) make instants.
//!
//! Invariants: an `Instant` never goes backwards within one run; additions saturate.
//! Limits: 584 years.

use std::fmt;
use std::ops::{Add, Sub};

pub use std::time::Duration;

/// A point on the crawl's own clock, which is never set, in nanoseconds since the process started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The start of the clock.
    pub const ZERO: Instant = Instant(0);
    /// Later than anything that happens: "not scheduled".
    pub const NEVER: Instant = Instant(u64::MAX);

    /// The instant `nanos` nanoseconds after the clock's start.
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    /// Nanoseconds since the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, duration: Duration) -> Instant {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, duration: Duration) -> Instant {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_sub(nanos))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// Wall-clock time in microseconds since 1970-01-01T00:00:00Z, for use in records.
///
/// Never used to order or to wait: the wall clock may jump. Calendar times use [`WallClock`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct UnixTime(u64);

/// The offset between the wall clock and the clock of instants. It changes when the machine's clock is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WallClock {
    /// The wall clock's time at [`Instant::ZERO`], in microseconds since 1970; negative if the clock was set to 1970
    /// since.
    zero_micros: i64,
}

impl WallClock {
    /// The clock that reads `wall` at `now`.
    pub fn reading(now: Instant, wall: UnixTime) -> WallClock {
        WallClock { zero_micros: micros(wall.0).saturating_sub(micros(now.0 / 1_000)) }
    }

    /// Its reading at `now`.
    pub fn at(self, now: Instant) -> UnixTime {
        UnixTime(self.zero_micros.saturating_add(micros(now.0 / 1_000)).max(0).unsigned_abs())
    }

    /// The same in whole seconds.
    pub fn seconds(self, now: Instant) -> u64 {
        self.at(now).0 / 1_000_000
    }

    /// The difference between the two.
    pub fn distance(self, other: WallClock) -> Duration {
        Duration::from_micros(self.zero_micros.abs_diff(other.zero_micros))
    }
}

fn micros(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

impl UnixTime {
    /// The time `micros` microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> UnixTime {
        UnixTime(micros)
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Year, month, day, hour, minute, second and microsecond in UTC (proleptic Gregorian calendar).
    pub fn civil(self) -> (u64, u8, u8, u8, u8, u8, u32) {
        let seconds = self.0 / 1_000_000;
        let days = seconds / 86_400;
        let in_day = seconds % 86_400;
        // Days to civil date after Howard Hinnant's algorithm, with eras of 400 years from 0000-03-01.
        let z = days + 719_468;
        let era = z / 146_097;
        let day_of_era = z % 146_097;
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        (
            year,
            month as u8,
            day as u8,
            (in_day / 3_600) as u8,
            (in_day / 60 % 60) as u8,
            (in_day % 60) as u8,
            (self.0 % 1_000_000) as u32,
        )
    }

    /// The time of a date in UTC (proleptic Gregorian calendar); a 60th second is the start of the next minute.
    /// `None`: there is no such date, or it lies before 1970 or after 9999.
    pub fn from_civil(year: u64, month: u64, day: u64, hour: u64, minute: u64, second: u64) -> Option<UnixTime> {
        let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && day > 0;
        if !is_date || day > days_in(month, year) || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let before = year - 1;
        let leap_days = before / 4 - before / 100 + before / 400;
        let to_month: u64 = (1..month).map(|month| days_in(month, year)).sum();
        // 719,162 days from 0001-01-01 to 1970-01-01.
        let days = before * 365 + leap_days + to_month + day - 1 - 719_162;
        Some(UnixTime((days * 86_400 + hour * 3_600 + minute * 60 + second) * 1_000_000))
    }

    /// `2026-11-21T08:40:32.123456Z`: the form of WARC-Date (WARC 1.1 section 5.4, W3C-DTF).
    pub fn to_iso(self) -> String {
        let (year, month, day, hour, minute, second, micros) = self.civil();
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let parts = [month, day, hour, minute, second].map(u64::from);
        let parts = [year, parts[0], parts[1], parts[2], parts[3], parts[4], micros.into()];
        for ((from, to), value) in
            [(0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19), (20, 26)].into_iter().zip(parts)
        {
            let mut rest = value;
            for digit in text[from..to].iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The time that [`UnixTime::to_digits`] writes; `None`: there is no such date.
    pub fn from_digits(digits: &str) -> Option<UnixTime> {
        if digits.len() != 14 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let part = |range: std::ops::Range<usize>| digits.get(range)?.parse::<u64>().ok();
        UnixTime::from_civil(part(0..4)?, part(4..6)?, part(6..8)?, part(8..10)?, part(10..12)?, part(12..14)?)
    }

    /// `20261121084032`: the 14 digits of a CDXJ line.
    pub fn to_digits(self) -> String {
        self.to_iso().chars().filter(char::is_ascii_digit).take(14).collect()
    }
}

/// Days of a month, 1 to 12.
fn days_in(month: u64, year: u64) -> u64 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates() {
        assert_eq!(UnixTime::from_micros(0).to_iso(), "1970-01-01T00:00:00.000000Z");
        assert_eq!(UnixTime::from_micros(951_782_400_000_000).to_digits(), "20000229000000");
        assert_eq!(UnixTime::from_micros(1_795_250_432_000_001).to_iso(), "2026-11-21T08:40:32.000001Z");
    }

    #[test]
    fn a_wall_clock_goes_on_from_what_it_said() {
        let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        let wall = |seconds: u64| UnixTime::from_micros(seconds * 1_000_000);
        let clock = WallClock::reading(at(50), wall(1_000));
        assert_eq!((clock.at(at(0)), clock.at(at(60)), clock.seconds(at(60))), (wall(950), wall(1_010), 1_010));
        // Set to 1970 after an hour.
        let back = WallClock::reading(at(3_600), wall(0));
        assert_eq!((back.at(at(10)), back.at(at(3_601))), (wall(0), wall(1)));
        assert_eq!(
            (clock.distance(back), back.distance(clock)),
            (Duration::from_secs(4_550), Duration::from_secs(4_550))
        );
        assert_eq!(WallClock::reading(Instant::NEVER, wall(0)).at(Instant::NEVER), wall(0));
    }

    #[test]
    fn instants_saturate() {
        assert_eq!(Instant::NEVER + Duration::from_secs(1), Instant::NEVER);
        assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Instant::from_nanos(5).since(Instant::from_nanos(9)), Duration::ZERO);
    }
}
