//! How a simulated run is broken off before its end, and how the next one starts.

use std::collections::VecDeque;

use super::judge::UNWRITTEN_MAX;
use super::{Run, Simulation, millis};
use ringcrawl_base::Rng;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::shard::{Command, Input, Phase};

/// What may break off a crawl.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Interruption {
    /// The operator drains it.
    Drain(Instant),
    /// The operator drains it for a while, then aborts it.
    Abort(Instant, Instant),
    /// The process dies at once.
    Kill(Instant),
    /// The power fails.
    PowerCut(Instant),
    /// The disk of a shard is full.
    Full(Instant),
    /// It has fetched as many pages as allowed.
    PagesMax(u64),
}

impl Interruption {
    /// Number of kinds.
    pub(super) const KINDS: usize = 6;

    /// None to four, the first one soon. Many follow soon after another, so that some come while a run's remains are
    /// read.
    pub(super) fn some(rng: &mut Rng) -> VecDeque<Interruption> {
        let mut at = Instant::ZERO;
        let count = [0, 1, 1, 2, 2, 4][rng.below(6) as usize];
        let one = |_| {
            // Many of these come while everything is in flight.
            let soon = at > Instant::ZERO && rng.percent(30);
            at = at + if soon { millis(rng.below(300)) } else { millis(1 << rng.below(20)) + millis(rng.below(5_000)) };
            match rng.below(8) {
                0 => Interruption::Drain(at),
                1 => Interruption::Abort(at, at + millis(rng.below(2) * rng.below(1_000))),
                2 | 3 => Interruption::Kill(at),
                4 | 5 => Interruption::PowerCut(at),
                6 => Interruption::Full(at),
                _ => Interruption::PagesMax(1 + rng.below(200)),
            }
        };
        (0..count).map(one).collect()
    }

    /// When it comes; one that comes with a page counts as already here.
    pub(super) fn at(&self) -> Instant {
        match self {
            Interruption::Drain(at)
            | Interruption::Abort(at, _)
            | Interruption::Kill(at)
            | Interruption::PowerCut(at)
            | Interruption::Full(at) => *at,
            Interruption::PagesMax(_) => Instant::NEVER,
        }
    }

    /// The phase that the operator wants.
    pub(super) fn wanted(&self, now: Instant) -> Phase {
        match self {
            Interruption::Drain(at) if *at <= now => Phase::Drain,
            Interruption::Abort(_, at) if *at <= now => Phase::Abort,
            Interruption::Abort(at, _) if *at <= now => Phase::Drain,
            _ => Phase::Run,
        }
    }

    /// `crawl.pages_max` of the run that it ends.
    pub(super) fn pages_max(&self) -> u64 {
        if let Interruption::PagesMax(pages) = self { *pages } else { 0 }
    }

    pub(super) fn kind(&self) -> usize {
        match self {
            Interruption::Drain(_) => 0,
            Interruption::Abort(..) => 1,
            Interruption::Kill(_) => 2,
            Interruption::Full(_) => 3,
            Interruption::PagesMax(_) => 4,
            Interruption::PowerCut(_) => 5,
        }
    }
}

impl Simulation {
    /// The time of the first interruption has come; returns whether a new run has begun as a result.
    pub(super) fn interrupt(&mut self) -> bool {
        match self.interruptions.front() {
            Some(Interruption::Kill(_)) => {
                for disk in &mut self.disks {
                    disk.kill(&mut self.rng);
                }
                self.begin_again();
                true
            }
            Some(Interruption::PowerCut(_)) => {
                // Without syncs a power cut may lose everything: the operator chose that.
                let is_synced = self.plan.config.journal.sync_interval.0.is_some();
                for disk in &mut self.disks {
                    if is_synced { disk.cut_power(&mut self.rng) } else { disk.kill(&mut self.rng) }
                }
                self.begin_again();
                true
            }
            Some(Interruption::Full(_)) => {
                let shard = self.rng.below(self.disks.len() as u64) as usize;
                // All shards share the same disk, and one notices first.
                if !self.disks.iter().any(|disk| disk.is_full) {
                    self.disks[shard].is_full = true;
                }
                false
            }
            _ => false,
        }
    }

    /// All shards have ended; returns whether the crawl has ended, too.
    pub(super) fn end_run(&mut self) -> bool {
        let has_failed = self.run.ended.iter().any(|ended| matches!(ended, Some(Err(_))));
        if has_failed && !self.disks.iter().any(|disk| disk.is_full) {
            self.complaints.push(format!("{:?} {:?}", self.now, self.run.ended));
            return true;
        }
        if !has_failed {
            let ended = self.run.supervisor.ended();
            let pages = self.totals().pages;
            let pages_max = self.interruptions.front().map_or(0, Interruption::pages_max);
            if pages_max > 0 && pages > pages_max || ended == "pages_max reached" && pages != pages_max {
                self.complaints.push(format!("{pages} pages were fetched and {pages_max} were wanted"));
            }
            if let Some(disk) = self.disks.iter().position(super::FakeDisk::has_open_segment) {
                self.complaints.push(format!("shard {disk} ended well and left a segment open"));
            }
            if ended == "finished" {
                return true;
            }
        }
        self.begin_again();
        false
    }

    /// New shards start, soon or two days later, with what the disks hold.
    fn begin_again(&mut self) {
        self.broken_off.push(self.now);
        let interruption = self.interruptions.pop_front();
        if let Some(interruption) = interruption {
            self.tally.by_interruption[interruption.kind()] += 1;
        }
        // A run that ended well has recorded what its hosts asked for; a kill may lose the last second's records.
        let is_noted = matches!(interruption, Some(Interruption::Drain(_) | Interruption::PagesMax(_)));
        let is_killed = matches!(interruption, Some(Interruption::Kill(_) | Interruption::PowerCut(_)));
        let pause = if is_noted && self.rng.percent(50) {
            millis(self.rng.below(3_000))
        } else if is_killed && self.clock.begins_soon() {
            // Pauses requested before its last moments are recorded.
            self.tally.rests_kept += self.servers.forget_rests(self.now, UNWRITTEN_MAX);
            RESTART_PAUSE
        } else {
            LONG_PAUSE
        };
        let totals = self.totals();
        self.tally.exchanged += totals.exchanged_out;
        self.tally.left_behind += totals.in_flight;
        self.tally.lookups_aborted += totals.failures[ringcrawl_base::Failure::Aborted as usize];
        self.tally.forgotten += self.forgotten();
        self.tally.runs += 1;
        self.now = self.now + pause;
        self.servers.crawler_restarts();
        self.clock.postpone(pause);
        let (may_go_on, are_sites_left) = (self.rng.percent(50), self.are_sites_left());
        self.outages.postpone(pause, may_go_on, are_sites_left);
        self.disks.iter_mut().for_each(|disk| disk.is_full = false);
        // Interruptions due in the meantime come later.
        let now = self.now;
        for next in &mut self.interruptions {
            match next {
                Interruption::Drain(at)
                | Interruption::Kill(at)
                | Interruption::PowerCut(at)
                | Interruption::Full(at) => *at = (*at + pause).max(now),
                Interruption::Abort(at, then) => (*at, *then) = ((*at + pause).max(now), (*then + pause).max(now)),
                Interruption::PagesMax(_) => {}
            }
        }
        if self.rng.percent(4) {
            self.is_damaged = true;
            for _ in 0..1 + self.rng.below(8) {
                let shard = self.rng.below(self.disks.len() as u64) as usize;
                self.disks[shard].flip_bit(&mut self.rng);
            }
        }
        self.disks.iter_mut().for_each(|disk| drop(disk.begin_run()));
        self.miss_cut();
        if self.rng.percent(25) && self.plan.keeps_parts() {
            self.redistribute();
        }
        let next = self.interruptions.front();
        self.plan.partition = self.plan.partition.afresh();
        self.run = Run::new(&self.plan, self.now, &mut self.disks, self.name_servers.len(), self.clock.now, next);
        self.sow();
    }

    /// Gives the seeds to every run, as `boot` does.
    pub(super) fn sow(&mut self) {
        for url in self.web.seeds() {
            let shard = self.plan.partition.giver_of(&url);
            self.tell(usize::from(shard), Input::Command(Command::Seeds(vec![url])));
        }
    }
}

/// How soon a service manager restarts a killed crawl.
const RESTART_PAUSE: Duration = Duration::from_millis(100);
/// Longer than any delay: a restarted crawl does not know earlier delays.
const LONG_PAUSE: Duration = Duration::from_secs(2 * 86_400);
