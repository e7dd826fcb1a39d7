//! Gaps between requests to one host, site, address or operator, as the server measures them.
//!
//! Decides: a gap lasts from the end of a response to the arrival of the next request; there is none while a response
//! is in progress. The shortest gap shows whether a delay was kept. The usual gap, together with the response times,
//! shows how much of the remaining time was used.
//! Limits: [`KEYS_MAX`] keys; others are not tracked, and the report says so.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// All keys of one kind.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    keys: HashMap<u64, Gap>,
    idle_min: Option<Duration>,
    in_flight_max: u32,
    is_full: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    arrival: Option<Instant>,
    end: Option<Instant>,
    in_flight: u32,
    gaps: u32,
    idle: Duration,
    busy: Duration,
}

/// Observations of one kind of key.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct GapReport {
    /// Keys seen.
    pub keys: u64,
    /// Maximum number of concurrent requests to one of them.
    pub in_flight_max: u32,
    /// The shortest gap, in milliseconds; 0 if two requests were in flight at once.
    pub idle_ms_min: Option<f64>,
    /// Mean gap of each key with [`GAPS_MIN`] gaps or more, in milliseconds: the median over these keys.
    pub idle_ms_median: Option<f64>,
    /// The same at the 90th percentile.
    pub idle_ms_90: Option<f64>,
    /// Mean response time in milliseconds.
    pub response_ms_mean: Option<f64>,
    /// Whether there were more keys than can be tracked.
    pub is_full: bool,
}

impl Gaps {
    /// A request arrives.
    pub fn arrive(&mut self, key: u64, now: Instant) {
        if self.keys.len() >= KEYS_MAX && !self.keys.contains_key(&key) {
            self.is_full = true;
            return;
        }
        let gap = self.keys.entry(key).or_default();
        let idle = match gap.end {
            _ if gap.in_flight > 0 => Some(Duration::ZERO),
            end => end.map(|end| now.saturating_duration_since(end)),
        };
        if let Some(idle) = idle {
            self.idle_min = Some(self.idle_min.map_or(idle, |least| least.min(idle)));
            gap.gaps += 1;
            gap.idle += idle;
        }
        gap.in_flight += 1;
        gap.arrival = Some(now);
        self.in_flight_max = self.in_flight_max.max(gap.in_flight);
    }

    /// A response ends.
    pub fn finish(&mut self, key: u64, now: Instant) {
        if let Some(gap) = self.keys.get_mut(&key) {
            gap.in_flight = gap.in_flight.saturating_sub(1);
            gap.end = Some(now);
            gap.busy += gap.arrival.map_or(Duration::ZERO, |arrival| now.saturating_duration_since(arrival));
        }
    }

    /// The observations so far.
    pub fn report(&self) -> GapReport {
        let often: Vec<&Gap> = self.keys.values().filter(|gap| gap.gaps >= GAPS_MIN).collect();
        let mut idle: Vec<Duration> = often.iter().map(|gap| gap.idle / gap.gaps).collect();
        idle.sort_unstable();
        let at = |percent: usize| idle.get(idle.len() * percent / 100).copied().map(milliseconds);
        let responses: u32 = often.iter().map(|gap| gap.gaps).sum();
        let busy: Duration = often.iter().map(|gap| gap.busy).sum();
        GapReport {
            keys: self.keys.len() as u64,
            in_flight_max: self.in_flight_max,
            idle_ms_min: self.idle_min.map(milliseconds),
            idle_ms_median: at(50),
            idle_ms_90: at(90),
            response_ms_mean: busy.checked_div(responses).map(milliseconds),
            is_full: self.is_full,
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Maximum number of keys of one kind.
const KEYS_MAX: usize = 1_000_000;
/// Minimum number of gaps for a key's mean.
const GAPS_MIN: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_measured_from_the_end() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut gaps = Gaps::default();
        for turn in 0..11 {
            gaps.arrive(1, at(turn * 100));
            gaps.finish(1, at(turn * 100 + 40));
        }
        gaps.arrive(2, at(5));
        let report = gaps.report();
        assert_eq!((report.keys, report.in_flight_max, report.idle_ms_min), (2, 1, Some(60.0)));
        assert_eq!(
            (report.idle_ms_median, report.idle_ms_90, report.response_ms_mean),
            (Some(60.0), Some(60.0), Some(44.0))
        );
        gaps.arrive(2, at(6));
        assert_eq!((gaps.report().in_flight_max, gaps.report().idle_ms_min), (2, Some(0.0)));
    }
}
