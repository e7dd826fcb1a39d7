//! How much bandwidth, and which hours of the day, a crawl may use.
//!
//! Decides: no fetch begins outside of `crawl.hours`; fetches in flight finish. The bytes of responses are spread
//! over the time that they would take at `crawl.bandwidth_max`. No fetch begins before that time has passed, less
//! [`AHEAD`]. So the mean stays within the bound, though a single response comes as fast as its server sends.
//! Invariants: pure.
//! Limits: each shard has an equal share of the bandwidth. Bytes of messages count; those of TLS, TCP and name
//! servers do not.

use ringcrawl_base::time::{Duration, Instant, UnixTime};
use ringcrawl_config::{self as config, Hours};

/// The limits of one shard.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    /// Zero: no limit.
    bytes_per_second: u64,
    hours: Option<Hours>,
    /// When the bandwidth for the bytes received so far is used up.
    taken_until: Instant,
    /// Bytes received at the last look.
    bytes: u64,
}

impl Allowance {
    /// The share of one of `shards` shards.
    pub fn new(crawl: &config::Crawl, shards: u16) -> Allowance {
        let share = crawl.bandwidth_max.div_ceil(u64::from(shards.max(1)));
        Allowance { bytes_per_second: share, hours: crawl.hours, taken_until: Instant::ZERO, bytes: 0 }
    }

    /// When a fetch may begin, if not now; `bytes` is the total received until now.
    pub fn wait(&mut self, now: Instant, wall: UnixTime, bytes: u64) -> Option<Instant> {
        let opens = self.hours.and_then(|hours| hours.closed_for(wall)).map(|closed| now + closed);
        if self.bytes_per_second > 0 {
            let came = bytes.saturating_sub(self.bytes);
            let micros = u128::from(came) * 1_000_000 / u128::from(self.bytes_per_second);
            let takes = Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX).min(DAY_MICROS));
            self.taken_until = self.taken_until.max(now) + takes;
        }
        self.bytes = bytes;
        let free = Some(self.taken_until - AHEAD).filter(|free| *free > now);
        opens.max(free)
    }
}

/// Received bytes may take this much of the time to come.
const AHEAD: Duration = Duration::from_millis(100);
/// A single look spreads bytes over a day at most.
const DAY_MICROS: u64 = 86_400_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_config::Config;

    fn allowance(change: impl FnOnce(&mut config::Crawl)) -> Allowance {
        let mut config = Config::default();
        change(&mut config.crawl);
        Allowance::new(&config.crawl, 2)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn the_mean_keeps_to_the_bound() {
        let mut allowance = allowance(|crawl| crawl.bandwidth_max = 200_000);
        let (mut now, mut bytes) = (at(0), 0);
        for _ in 0..1_000 {
            if let Some(free) = allowance.wait(now, UnixTime::default(), bytes) {
                now = free;
            }
            bytes += 30_000;
        }
        let seconds = now.since(at(0)).as_secs_f64();
        assert!((299.0..=300.0).contains(&seconds), "{bytes} bytes in {seconds} s at 100,000 a second");
        assert_eq!(self::allowance(|_| ()).wait(at(5), UnixTime::default(), u64::MAX), None, "no bound");
    }

    #[test]
    fn nothing_begins_outside_of_the_hours() {
        let mut allowance = allowance(|crawl| crawl.hours = Hours::parse("22:00-06:30").expect("hours"));
        let mut wait = |hour: u64, minute| {
            let wall = UnixTime::from_civil(2026, 11, 26, hour, minute, 0).expect("a time");
            allowance.wait(at(1_000), wall, 0).map(|until| until.since(at(1_000)).as_secs() / 60)
        };
        assert_eq!([wait(22, 0), wait(23, 59), wait(0, 0), wait(6, 29)], [None; 4]);
        assert_eq!([wait(6, 30), wait(12, 0), wait(21, 59)], [Some(15 * 60 + 30), Some(600), Some(1)]);
    }
}
