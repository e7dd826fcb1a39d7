//! What makes fetching wait for a while: our own network, and space on the disk.
//!
//! Decides: the verdicts of the [`Breaker`] and the [`DiskFloor`] go to the shards as their [`Orders`], where they
//! change something for them. The start and end of each pause are reported.
//! Leaves to others: when that is (`control`), what a shard does then (`shard`).

use super::surroundings::Surroundings;
use crate::control::{Breaker, Cause, Control, DiskFloor, NetworkView, Orders, Outage};
use crate::fetch;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::shard::{NetworkReport, OutOfReach};
use ringcrawl_config::{Config, Dns};

/// The watch of one run.
#[derive(Debug)]
pub struct OutageWatch {
    breaker: Breaker,
    floor: DiskFloor,
    free_bytes_min: u64,
    dns: Dns,
    surroundings: Surroundings,
    is_disk_full: bool,
    /// What was reported as out of reach in the present outage: it may change repeatedly.
    told: Vec<OutOfReach>,
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
            dns: config.dns.clone(),
            surroundings,
            is_disk_full: false,
            told: Vec::new(),
            orders: vec![(Orders::default(), 0); usize::from(shards)],
        }
    }

    /// Looks around and gives orders. Returns why the crawl cannot continue, if an outage has lasted too long.
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
            (before, Some(outage)) if !(before.is_none() && outage.is_again) => {
                if before.is_none() {
                    self.told.clear();
                }
                if !self.told.contains(&outage.out_of_reach) {
                    self.told.push(outage.out_of_reach);
                    let waits = if outage.out_of_reach == OutOfReach::All { ": fetching is paused" } else { "" };
                    control.warn(format!("{}{waits}", self.describe(&outage, now)));
                }
            }
            // If the outage had seemed to end, its end was already reported.
            (Some(outage), None) if !outage.is_again => {
                let seconds = now.since(outage.since).as_secs();
                control.warn(format!(
                    "the outage of {seconds} s has ended: fetching continues, and interrupted requests are retried"
                ));
            }
            _ => {}
        }
        let was_full = std::mem::replace(&mut self.is_disk_full, self.floor.look(self.surroundings.free_bytes));
        match (was_full, self.is_disk_full) {
            (false, true) => control.warn(format!("{}: fetching is paused", self.disk())),
            (true, false) => control.warn("the disk has room again: fetching continues".to_owned()),
            _ => {}
        }
        for (shard, ((orders, _), report)) in self.orders.iter_mut().zip(&reports).enumerate() {
            if orders.rule(shard, &ruling, self.is_disk_full, report) {
                control.order(shard, orders);
            }
        }
        let outage = self.breaker.outage().filter(|_| ruling.gives_up)?;
        Some(format!("{}, and outage.wait_max has passed", self.describe(&outage, now)))
    }

    /// Whether anything makes fetching wait now.
    pub fn is_waiting(&self) -> bool {
        self.is_disk_full || self.breaker.outage().is_some()
    }

    /// What makes fetching wait now, in words. May read a file: not for every turn.
    pub fn waits_for(&self, now: Instant) -> Option<String> {
        match self.breaker.outage() {
            Some(outage) => Some(self.describe(&outage, now)),
            None => self.is_disk_full.then(|| self.disk()),
        }
    }

    /// Outages so far, and their time.
    pub fn outages(&self, now: Instant) -> (u64, Duration) {
        self.breaker.outages(now)
    }

    /// The outage in words, with its reason if this machine knows no name server.
    fn describe(&self, outage: &Outage, now: Instant) -> String {
        let are_silent = matches!(outage.cause, Cause::NameServers { have_errors: false });
        let why = if are_silent { fetch::no_name_server(&self.dns) } else { None };
        outage.describe(now) + &why.map(|why| format!(" (at present, {why})")).unwrap_or_default()
    }

    fn disk(&self) -> String {
        self.surroundings.shortage(self.free_bytes_min)
    }
}
