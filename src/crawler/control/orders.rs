//! What the housekeeping thread wants from a shard, other than its phase: the state that it sets, and commands that
//! follow.
//!
//! Decides: a shard compares what is wanted now with what it saw last, so no queue is needed. Two changes between
//! looks are seen as one. Probes are counted, and two requests to query the name servers are one.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

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

/// One shard's orders, as the housekeeping thread writes them and the shard reads them.
#[derive(Debug, Default)]
pub struct OrdersCell {
    /// Incremented with each change, so that a shard reads the rest only then.
    changes: AtomicU64,
    cleared_sites: AtomicU64,
    cleared_names: AtomicU64,
    /// An [`OutOfReach`].
    out_of_reach: AtomicU8,
    is_disk_full: AtomicBool,
    job_probes: AtomicU64,
    name_probes: AtomicU64,
}

impl OrdersCell {
    /// Gives orders. Only the housekeeping thread calls this.
    pub fn give(&self, orders: &Orders) {
        let order = Ordering::Relaxed;
        self.cleared_sites.store(orders.cleared.sites.as_nanos(), order);
        self.cleared_names.store(orders.cleared.names.as_nanos(), order);
        self.out_of_reach.store(orders.out_of_reach as u8, order);
        self.is_disk_full.store(orders.is_disk_full, order);
        self.job_probes.store(orders.job_probes, order);
        self.name_probes.store(orders.name_probes, order);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// How many times orders were given.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The current orders. A change in progress is seen whole at the next change.
    pub fn get(&self) -> Orders {
        let order = Ordering::Relaxed;
        Orders {
            cleared: Cleared {
                sites: Instant::from_nanos(self.cleared_sites.load(order)),
                names: Instant::from_nanos(self.cleared_names.load(order)),
            },
            out_of_reach: OutOfReach::of(self.out_of_reach.load(order)),
            is_disk_full: self.is_disk_full.load(order),
            job_probes: self.job_probes.load(order),
            name_probes: self.name_probes.load(order),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let cell = OrdersCell::default();
        assert_eq!((cell.changes(), cell.get()), (0, before));
        cell.give(&now);
        assert_eq!((cell.changes(), cell.get()), (1, now));
    }
}
