//! When a crawl enters its next phase. Pure: the housekeeping thread and the simulator use the same value.
//!
//! Decides: a crawl drains when it is told to, has reached its goal (`crawl.pages_max`, `crawl.time_max`) or should
//! move sites. It aborts when it is told to. It closes when every shard is quiet and every message that was sent was
//! received, or when a shard has ended early: the others must then write what they hold.
//! Invariants: phases only go forward; the reason for an end is that of the last phase.

use super::Census;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::shard::{Phase, ShardReport};

/// The supervisor of phases.
#[derive(Debug)]
pub struct Supervisor {
    pages_max: u64,
    time_max: Duration,
    phase: Phase,
    ended: &'static str,
    census: Census,
}

/// What is visible at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// Time since the crawl's start.
    pub elapsed: Duration,
    /// The reports of the shards.
    pub reports: &'a [ShardReport],
    /// Pages stored in this run.
    pub pages: u64,
    /// The phase that the operator wants; [`Phase::Run`] when nothing is wanted.
    pub wanted: Phase,
    /// A shard has ended.
    pub has_ended: bool,
    /// Sites should move between shards, for which all of them drain.
    pub is_uneven: bool,
}

impl Supervisor {
    /// For a crawl with these limits; 0: none.
    pub fn new(pages_max: u64, time_max: Duration) -> Supervisor {
        Supervisor { pages_max, time_max, phase: Phase::Run, ended: "finished", census: Census::default() }
    }

    /// The phase from now on.
    pub fn look(&mut self, look: Observation<'_>) -> Phase {
        let (phase, why) = match look.wanted {
            Phase::Run if self.pages_max > 0 && look.pages >= self.pages_max => (Phase::Drain, "pages_max reached"),
            Phase::Run if !self.time_max.is_zero() && look.elapsed >= self.time_max => (Phase::Drain, TIME_MAX_REACHED),
            Phase::Run if look.is_uneven => (Phase::Drain, LEVELLED),
            Phase::Run => (Phase::Run, self.ended),
            Phase::Drain => (Phase::Drain, STOPPED),
            Phase::Abort | Phase::Close => (Phase::Abort, STOPPED_AT_ONCE),
        };
        // A stop or a limit in the meantime replaces moving sites as the reason.
        let ends_meanwhile = self.is_to_level() && phase > Phase::Run && why != LEVELLED;
        if phase > self.phase || ends_meanwhile {
            (self.phase, self.ended) = (phase.max(self.phase), why);
        }
        if look.has_ended || self.census.is_over(look.reports) {
            self.phase = Phase::Close;
        }
        self.phase
    }

    /// Why the crawl ends, in words.
    pub fn ended(&self) -> &'static str {
        self.ended
    }

    /// Whether it ends to continue at once with sites moved. A stop in the meantime takes precedence.
    pub fn is_to_level(&self) -> bool {
        self.ended == LEVELLED
    }

    /// Whether the operator has stopped it.
    pub fn is_stopped(&self) -> bool {
        [STOPPED, STOPPED_AT_ONCE].contains(&self.ended)
    }
}

/// How a crawl ended that had all its time.
pub const TIME_MAX_REACHED: &str = "time_max reached";
const LEVELLED: &str = "moving sites";
const STOPPED: &str = "stopped by signal";
const STOPPED_AT_ONCE: &str = "stopped at once by signal";

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: [ShardReport; 1] = [ShardReport { quiet: false, sent: 0, received: 0 }];
    const QUIET: [ShardReport; 1] = [ShardReport { quiet: true, sent: 0, received: 0 }];

    fn look(reports: &[ShardReport], pages: u64, wanted: Phase) -> Observation<'_> {
        Observation { elapsed: Duration::from_secs(pages), reports, pages, wanted, has_ended: false, is_uneven: false }
    }

    #[test]
    fn limits_and_wishes_lead_forward_and_the_first_reason_stays() {
        let mut supervisor = Supervisor::new(10, Duration::from_secs(20));
        assert_eq!(supervisor.look(look(&BUSY, 9, Phase::Run)), Phase::Run);
        assert_eq!(supervisor.look(look(&BUSY, 10, Phase::Run)), Phase::Drain);
        assert_eq!(
            (supervisor.look(look(&BUSY, 30, Phase::Drain)), supervisor.ended()),
            (Phase::Drain, "pages_max reached")
        );
        assert!(!supervisor.is_stopped());
        assert_eq!(supervisor.look(look(&BUSY, 30, Phase::Abort)), Phase::Abort);
        assert_eq!(supervisor.ended(), "stopped at once by signal");
        assert!(supervisor.is_stopped());
        assert_eq!(supervisor.look(look(&QUIET, 30, Phase::Run)), Phase::Abort, "one look is not enough");
        assert_eq!(supervisor.look(look(&QUIET, 30, Phase::Run)), Phase::Close);
        let mut timed = Supervisor::new(0, Duration::from_secs(20));
        assert_eq!(timed.look(look(&BUSY, 19, Phase::Run)), Phase::Run);
        assert_eq!((timed.look(look(&BUSY, 20, Phase::Run)), timed.ended()), (Phase::Drain, TIME_MAX_REACHED));
    }

    #[test]
    fn a_crawl_drains_for_sites_to_move() {
        let mut supervisor = Supervisor::new(10, Duration::ZERO);
        let uneven = |pages| Observation { is_uneven: true, ..look(&BUSY, pages, Phase::Run) };
        assert_eq!((supervisor.look(uneven(1)), supervisor.is_to_level()), (Phase::Drain, true));
        assert_eq!((supervisor.look(look(&BUSY, 1, Phase::Run)), supervisor.is_to_level()), (Phase::Drain, true));
        assert_eq!(
            (supervisor.look(look(&BUSY, 10, Phase::Run)), supervisor.ended()),
            (Phase::Drain, "pages_max reached")
        );
        let mut supervisor = Supervisor::new(10, Duration::ZERO);
        assert_eq!((supervisor.look(uneven(1)), supervisor.is_to_level()), (Phase::Drain, true));
        supervisor.look(look(&BUSY, 1, Phase::Drain));
        assert_eq!((supervisor.is_to_level(), supervisor.ended()), (false, "stopped by signal"));
        let mut supervisor = Supervisor::new(10, Duration::ZERO);
        assert_eq!((supervisor.look(uneven(10)), supervisor.is_to_level()), (Phase::Drain, false));
    }

    #[test]
    fn a_shard_that_ended_closes_the_crawl() {
        let mut supervisor = Supervisor::new(0, Duration::ZERO);
        assert_eq!(supervisor.look(Observation { has_ended: true, ..look(&BUSY, 1, Phase::Run) }), Phase::Close);
        assert_eq!(supervisor.ended(), "finished");
    }
}
