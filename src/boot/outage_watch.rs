//! What makes fetching wait for a while: our own network, and space on the disk.
//!
//! Decides: what the [`Breaker`] and the [`DiskFloor`] say goes to the shards as their [`Orders`], where it changes
//! something for them; the start and end of each pause are reported.
//! Leaves to others: when that is (`control`), what a shard does then (`shard`).

use super::surroundings::Surroundings;
use crate::config::Config;
use crate::control::{Breaker, Control, DiskFloor, NetworkView, Orders};
use crate::shard::{NetworkReport, OutOfReach};
use crate::time::{Duration, Instant};

/// The watch of one run.
#[derive(Debug)]
pub struct OutageWatch {
    breaker: Breaker,
    floor: DiskFloor,
    free_bytes_min: u64,
    surroundings: Surroundings,
    is_disk_full: bool,
    /// It was said that the present outage is one of names alone.
    is_told_of_names: bool,
    /// By shard: its orders, and how many of its ends were read.
    orders: Vec<(Orders, u64)>,
}

impl OutageWatch {
    /// The watch of a crawl of `shards` shards in `surroundings`.
    pub fn new(config: &Config, shards: u16, surroundings: Surroundings) -> OutageWatch {
        OutageWatch {
            breaker: Breaker::new(config),
            floor: DiskFloor::new(config.store.free_bytes_min),
            free_bytes_min: config.store.free_bytes_min,
            surroundings,
            is_disk_full: false,
            is_told_of_names: false,
            orders: vec![(Orders::default(), 0); usize::from(shards)],
        }
    }

    /// Looks around and gives orders. Why the crawl cannot go on, when an outage has lasted too long.
    pub fn look(&mut self, now: Instant, control: &Control) -> Option<String> {
        self.surroundings.look(now);
        let handles = control.shards();
        let reports: Vec<NetworkReport> = handles.iter().map(|handle| handle.sightings.report()).collect();
        let mut ends = Vec::new();
        for (handle, (_, read)) in handles.iter().zip(&mut self.orders) {
            *read = handle.sightings.read(*read, &mut ends);
        }
        let before = self.breaker.outage();
        let view = NetworkView { reports: &reports, ends: &ends, has_route: self.surroundings.has_route };
        let ruling = self.breaker.look(now, view);
        match (before, self.breaker.outage()) {
            (None, Some(outage)) if !outage.is_again => {
                self.is_told_of_names = outage.out_of_reach == OutOfReach::Names;
                let waits = if self.is_told_of_names { "" } else { ": fetching waits" };
                control.note(format!("{}{waits}", outage.describe(now)));
            }
            // It may be so again and again.
            (Some(_), Some(outage)) if outage.out_of_reach == OutOfReach::Names && !self.is_told_of_names => {
                self.is_told_of_names = true;
                control.note(outage.describe(now));
            }
            // Of one that had seemed to be over that was said.
            (Some(outage), None) if !outage.is_again => {
                let seconds = now.since(outage.since).as_secs();
                control.note(format!(
                    "the outage of {seconds} s is over: fetching goes on, and what it broke off is tried again"
                ));
            }
            _ => {}
        }
        let was_full = std::mem::replace(&mut self.is_disk_full, self.floor.look(self.surroundings.free_bytes));
        match (was_full, self.is_disk_full) {
            (false, true) => control.note(format!("{}: fetching waits", self.disk())),
            (true, false) => control.note("there is room on the disk again: fetching goes on".to_owned()),
            _ => {}
        }
        for (shard, ((orders, _), report)) in self.orders.iter_mut().zip(&reports).enumerate() {
            if orders.rule(shard, &ruling, self.is_disk_full, report) {
                control.order(shard, orders);
            }
        }
        let outage = self.breaker.outage().filter(|_| ruling.gives_up)?;
        Some(format!("{}, and outage.wait_max is over", outage.describe(now)))
    }

    /// What makes fetching wait now.
    pub fn waits_for(&self, now: Instant) -> Option<String> {
        match self.breaker.outage() {
            Some(outage) => Some(outage.describe(now)),
            None => self.is_disk_full.then(|| self.disk()),
        }
    }

    /// Outages so far, and their time.
    pub fn outages(&self, now: Instant) -> (u64, Duration) {
        self.breaker.outages(now)
    }

    fn disk(&self) -> String {
        let mib = |bytes: u64| bytes >> 20;
        let (free, min) = (mib(self.surroundings.free_bytes.unwrap_or(0)), mib(self.free_bytes_min));
        let disk = self.surroundings.disk();
        format!("only {free} MiB are free on {disk}, less than store.free_bytes_min = {min} MiB")
    }
}
