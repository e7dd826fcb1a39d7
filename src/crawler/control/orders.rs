//! What the housekeeping thread wants from a shard, other than its phase: the state that it sets, and commands that
//! follow.
//!
//! Decides: a shard compares what is wanted now with what it saw last, so no queue is needed. Two changes between
//! looks are seen as one. Probes are counted, and two requests to query the name servers are one.

use super::breaker::{BreakerDecision, ProbeKind};
use ringcrawl_base::time::Instant;
use ringcrawl_brain::shard::{Cleared, Command, NetworkReport, OutOfReach};

/// The orders for one shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Orders {
    /// Until when the network is known to have worked.
    pub cleared: Cleared,
    /// What an outage cuts it off from.
    pub out_of_reach: OutOfReach,
    /// The disk has too little space.
    pub is_disk_full: bool,
    /// Probes of waiting jobs so far.
    pub job_probes: u64,
    /// Probes of name servers, so far.
    pub name_probes: u64,
}

impl Orders {
    /// Takes in the breaker's ruling, and whether the disk is full; returns whether that is news for `shard`. Cleared
    /// failures are no news for a shard that holds none.
    pub fn rule(&mut self, shard: usize, ruling: &BreakerDecision, is_disk_full: bool, report: &NetworkReport) -> bool {
        let before = *self;
        if report.held_since < Instant::NEVER {
            self.cleared = ruling.cleared;
        }
        (self.out_of_reach, self.is_disk_full) = (ruling.out_of_reach, is_disk_full);
        for (_, kind) in ruling.probes.iter().flatten().filter(|(to, _)| *to == shard) {
            match kind {
                ProbeKind::Job => self.job_probes += 1,
                ProbeKind::Names => self.name_probes += 1,
            }
        }
        *self != before
    }

    /// The commands for a shard that has seen `before`.
    pub fn since(&self, before: &Orders) -> impl Iterator<Item = Command> {
        let job_probes = self.job_probes.saturating_sub(before.job_probes);
        [
            // First what counts, then what does not.
            (self.cleared != before.cleared).then_some(Command::Clear(self.cleared)),
            (self.out_of_reach != before.out_of_reach).then_some(Command::Outage(self.out_of_reach)),
            (self.is_disk_full != before.is_disk_full).then_some(Command::DiskFull(self.is_disk_full)),
            (self.job_probes != before.job_probes).then_some(Command::Probe(job_probes as usize)),
            (self.name_probes != before.name_probes).then_some(Command::ProbeNames),
        ]
        .into_iter()
        .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Versioned;

    #[test]
    fn what_changed_is_heard_in_order() {
        let before = Orders::default();
        assert_eq!(before.since(&before).count(), 0);
        let cleared = Cleared { sites: Instant::from_nanos(1), names: Instant::from_nanos(2) };
        let now = Orders { cleared, out_of_reach: OutOfReach::All, is_disk_full: true, job_probes: 2, name_probes: 1 };
        let commands: Vec<Command> = now.since(&before).collect();
        let expected = [
            Command::Clear(cleared),
            Command::Outage(OutOfReach::All),
            Command::DiskFull(true),
            Command::Probe(2),
            Command::ProbeNames,
        ];
        assert_eq!(commands, expected);
        assert_eq!(before.since(&now).nth(1), Some(Command::Outage(OutOfReach::Nothing)));
    }

    /// A shard that looks while orders are given acts on the former or on the latter, never on a mixture.
    #[test]
    fn orders_are_read_whole() {
        let of = |count: u64| {
            let at = Instant::from_nanos(count);
            let cleared = Cleared { sites: at, names: at };
            Orders { cleared, job_probes: count, name_probes: count, ..Orders::default() }
        };
        let cell = Versioned::<Orders>::default();
        assert_eq!((cell.version(), cell.get()), (0, Orders::default()));
        std::thread::scope(|threads| {
            threads.spawn(|| (1..=GIVEN).for_each(|count| assert_eq!(cell.give(of(count)), count)));
            while cell.version() < GIVEN {
                let (version, orders) = (cell.version(), cell.get());
                assert_eq!(orders, of(orders.name_probes));
                assert!(orders.name_probes >= version, "{orders:?} of version {version}");
            }
        });
        assert_eq!((cell.version(), cell.get()), (GIVEN, of(GIVEN)));
    }

    const GIVEN: u64 = 20_000;
}
