//! Hours of the day, as `22:00-06:00`.
//!
//! Decides: the range includes the first minute and excludes the last. Times are in UTC, which repeats and skips no
//! hour. The range crosses midnight if the last minute is earlier than the first.

use std::fmt;

use ringcrawl_base::time::{Duration, Instant, UnixTime};

/// A part of the day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hours {
    /// Minutes from midnight.
    from: u16,
    to: u16,
}

impl Hours {
    /// Reads `22:00-06:00`; `None` for "", which is the whole day.
    ///
    /// # Errors
    /// What is wrong.
    pub fn parse(text: &str) -> Result<Option<Hours>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = || "not two times of day".to_owned();
        let (from, to) = text.split_once('-').ok_or_else(wrong)?;
        let (from, to) = (minute(from).ok_or_else(wrong)?, minute(to).ok_or_else(wrong)?);
        if from == to {
            return Err("begin and end are the same; expected \"\" for the whole day".to_owned());
        }
        Ok(Some(Hours { from, to }))
    }

    /// When the hours begin next, computed at `wall`, which is `now`. The result is exact, so a call shortly before
    /// gives the same time.
    pub fn open_from(self, now: Instant, wall: UnixTime) -> Option<Instant> {
        let into_second = Duration::from_micros(wall.as_micros() % 1_000_000);
        self.closed_for(wall).map(|closed| now + closed - into_second)
    }

    /// How long it takes until they begin; `None` within them.
    pub fn closed_for(self, wall: UnixTime) -> Option<Duration> {
        const DAY: u64 = 86_400;
        let second = wall.as_micros() / 1_000_000 % DAY;
        let (from, to) = (u64::from(self.from) * 60, u64::from(self.to) * 60);
        let is_open = (second + DAY - from) % DAY < (to + DAY - from) % DAY;
        (!is_open).then(|| Duration::from_secs((from + DAY - second) % DAY))
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hours { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

/// Minutes from midnight of `06:30`; 24:00 is midnight.
fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.trim().split_once(':')?;
    let number = |text: &str, max| {
        let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|number| is_number && *number <= max)
    };
    match (number(hour, 24)?, number(minute, 59)?) {
        (24, 0) => Some(0),
        (24, _) => None,
        (hour, minute) => Some(hour * 60 + minute),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_read() {
        assert_eq!(Hours::parse(""), Ok(None));
        assert_eq!(Hours::parse("22:00-06:30"), Ok(Some(Hours { from: 1_320, to: 390 })));
        assert_eq!(Hours::parse("08:00-24:00"), Ok(Some(Hours { from: 480, to: 0 })));
        for wrong in ["22", "22:00", "22-6", "24:01-06:00", "22:60-06:00", "2:00-06:00", "22:00-22:00", "+2:00-06:00"] {
            assert!(Hours::parse(wrong).is_err(), "{wrong}");
        }
    }
}
