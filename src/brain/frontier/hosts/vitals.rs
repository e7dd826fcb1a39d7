//! The counters of one host that show how it does.
//!
//! Decides: when another effective delay or the response times are worth a note.
//! Invariants: no decision about requests depends on it.

use crate::trouble::Trouble;
use ringcrawl_base::time::{Duration, Instant};

/// The counters of a host.
#[derive(Debug, Default)]
pub struct Vitals {
    /// The problem with its name.
    name: Option<Box<Trouble>>,
    /// The log of an earlier run records a problem.
    pub has_old_trouble: bool,
    responses: u32,
    /// Their total time.
    took_millis: u32,
    /// The effective delay as last noted; 0: as configured.
    noted_millis: u32,
    /// When another delay was noted.
    noted: Instant,
    /// The longest Crawl-delay as last noted.
    pub noted_crawl_delay: Duration,
}

impl Vitals {
    /// The problem with its name.
    pub fn name_trouble(&self) -> Option<&Trouble> {
        self.name.as_deref()
    }

    /// The problem with its name, to be noted or ended.
    pub fn name_trouble_mut(&mut self) -> &mut Option<Box<Trouble>> {
        &mut self.name
    }

    /// How long responses took on average, for a note of the effective `delay`. Of a host that was never asked only
    /// that much is known which may be on its way.
    pub fn noted(&mut self, delay: Duration) -> (Duration, Duration) {
        let (responses, took) = (u64::from(self.responses), u64::from(self.took_millis));
        let mean = took.checked_div(responses).unwrap_or_default().max(u64::from(responses > 0));
        let delay = if responses > 0 { delay } else { Duration::ZERO };
        self.noted_millis = millis(delay);
        (delay, Duration::from_millis(mean))
    }

    /// A response took this long; returns whether it is time to report that.
    pub fn took(&mut self, took: Duration) -> bool {
        if self.took_millis > u32::MAX / 2 {
            (self.responses, self.took_millis) = (self.responses / 2, self.took_millis / 2);
        }
        self.responses += 1;
        self.took_millis = self.took_millis.saturating_add(millis(took).min(TOOK_MILLIS_MAX));
        self.responses >= 4 && self.responses.is_power_of_two() && self.responses.trailing_zeros().is_multiple_of(2)
    }

    /// Whether it is time to note another effective delay; response times of servers vary.
    pub fn notes_delay(&mut self, now: Instant, delay: Duration, usual: Duration) -> bool {
        let may_note = self.noted == Instant::ZERO || now >= self.noted + DELAY_NOTES_EVERY;
        let is_news = may_note && self.has_other_delay(delay, usual);
        if is_news {
            self.noted = now;
        }
        is_news
    }

    /// Whether the effective delay is twice or half the noted one, and differs by at least a second: response times
    /// of a busy machine vary. `usual` is the configured delay.
    fn has_other_delay(&self, delay: Duration, usual: Duration) -> bool {
        let now = millis(delay);
        let noted = if self.noted_millis > 0 { self.noted_millis } else { millis(usual) };
        let (least, most) = (now.min(noted), now.max(noted));
        most - least > least.max(NOTED_MILLIS_MIN)
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

/// Upper bound on one response's share of the mean.
const TOOK_MILLIS_MAX: u32 = 600_000;
/// A delay that differs by less is not noted.
const NOTED_MILLIS_MIN: u32 = 1_000;
const DELAY_NOTES_EVERY: Duration = Duration::from_secs(60);
