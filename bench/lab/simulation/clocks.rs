//! The wall clock of a simulated machine, which is adjusted while the crawl runs.
//!
//! Decides: in every second crawl the clock is adjusted a few times, by up to three hours, forwards or backwards, as
//! by a time server that was out of reach when the machine started. Every shard sees it at its next turn. Earlier
//! requests of hosts must remain in force, also after a kill soon afterwards.
//! Limits: the clock is not adjusted between runs. If it was wrong throughout a run, the log has wrong times, and no
//! check can detect that.

use std::collections::VecDeque;

use super::{Simulation, millis};
use ringcrawl_base::Rng;
use ringcrawl_base::time::{Duration, Instant, UnixTime, WallClock};
use ringcrawl_brain::shard::Input;

/// The clock, and its coming adjustments.
#[derive(Debug)]
pub(super) struct FakeClock {
    pub(super) now: WallClock,
    /// When it is adjusted, and what it then shows at [`Instant::ZERO`].
    steps: VecDeque<(Instant, WallClock)>,
    /// A generator of its own: all other draws of a seed stay as they are.
    rng: Rng,
}

impl FakeClock {
    pub(super) fn new(rng_seed: u64) -> FakeClock {
        let mut rng = Rng::new(rng_seed ^ CLOCKS);
        let (mut at, mut micros) = (Instant::ZERO, EPOCH_MICROS);
        let clock = |micros| WallClock::reading(Instant::ZERO, UnixTime::from_micros(micros));
        let count = rng.below(2) * (1 + rng.below(4));
        let one = |_| {
            at = at + millis(1 << rng.below(20)) + millis(rng.below(5_000));
            let seconds = 1 + rng.below(10_800);
            micros = if rng.percent(60) { micros + seconds * 1_000_000 } else { micros - seconds * 1_000_000 };
            (at, clock(micros))
        };
        let steps = (0..count).map(one).collect();
        FakeClock { now: clock(EPOCH_MICROS), steps, rng }
    }

    /// The time of the next adjustment.
    pub(super) fn next(&self) -> Option<Instant> {
        self.steps.front().map(|(at, _)| *at)
    }

    /// Postpones adjustments while no run is on.
    pub(super) fn postpone(&mut self, pause: Duration) {
        self.steps.iter_mut().for_each(|(at, _)| *at = *at + pause);
    }

    /// Whether the next run begins soon after a kill.
    pub(super) fn begins_soon(&mut self) -> bool {
        self.rng.percent(50)
    }
}

impl Simulation {
    /// Adjusts the clock if an adjustment is due.
    pub(super) fn set_clock(&mut self) {
        while let Some((_, clock)) = self.clock.steps.front().copied().filter(|(at, _)| *at <= self.now) {
            self.clock.steps.pop_front();
            self.clock.now = clock;
            self.tally.clock_steps += 1;
            for shard in 0..self.run.shards.len() {
                self.tell(shard, Input::Clock(clock));
            }
        }
    }
}

/// Some day in 2027.
const EPOCH_MICROS: u64 = 1_800_000_000_000_000;
/// Separates the generator from others.
const CLOCKS: u64 = 0x636c_6f63;
