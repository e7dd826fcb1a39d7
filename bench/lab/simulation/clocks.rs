//! The wall clock of a simulated machine, which is set while the crawl runs.
//!
//! Decides: in every second crawl, some times, by up to three hours, forwards or backwards, as by a time server that was out of reach
//! when the machine started. Every shard sees it at its next turn. What hosts have asked for before must hold all the same, also
//! after a kill soon afterwards.
//! Limits: it is not set while no run is on. A clock that was wrong all through a run says wrong things in the log, and nobody
//! can know.

use std::collections::VecDeque;

use super::{Simulation, millis};
use ringcrawl_base::Rng;
use ringcrawl_base::time::{Duration, Instant, UnixTime, WallClock};
use ringcrawl_brain::shard::Input;

/// The clock, and how it will be set.
#[derive(Debug)]
pub(super) struct FakeClock {
    pub(super) now: WallClock,
    /// To what it says at [`Instant::ZERO`] by then.
    steps: VecDeque<(Instant, WallClock)>,
    /// Of its own: all other draws of a seed stay as they are.
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

    /// When it is set next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.steps.front().map(|(at, _)| *at)
    }

    /// No run is on for so long.
    pub(super) fn postpone(&mut self, pause: Duration) {
        self.steps.iter_mut().for_each(|(at, _)| *at = *at + pause);
    }

    /// Whether the next run begins soon after a kill.
    pub(super) fn begins_soon(&mut self) -> bool {
        self.rng.percent(50)
    }
}

impl Simulation {
    /// The clock is set, if it is to be by now.
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
/// Sets the generator apart.
const CLOCKS: u64 = 0x636c_6f63;
