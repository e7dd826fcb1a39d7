//! The housekeeping thread of a simulated crawl: it checks the shards, and sends them phases and outages.

use std::collections::BTreeSet;

use super::events::Event;
use super::{Simulation, TICK, millis};
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::shard::{Command, Input, NetworkReport, Phase, Shard, ShardReport};
use ringcrawl_crawler::control::{Cause, NetworkView, Observation};
use ringcrawl_url::Url;

impl Simulation {
    /// The housekeeping thread checks the shards.
    pub(super) fn supervise(&mut self) {
        if self.now < self.run.next_look {
            return;
        }
        self.run.next_look = self.now + LOOK;
        self.run.looks += 1;
        if self.run.phase == Phase::Run {
            self.guard();
        }
        if let Some(owners) = self.plan.partition.owners() {
            let queued = self.run.shards.iter_mut().map(|shard| shard.stats().queued);
            queued.enumerate().for_each(|(shard, urls)| owners.note_waiting(shard, urls));
        }
        let reports: Vec<ShardReport> = (0..self.run.shards.len()).map(|index| self.report(index)).collect();
        let wanted = self.interruptions.front().map_or(Phase::Run, |next| next.wanted(self.now));
        let pages = self.run.shards.iter_mut().map(|shard| shard.stats().pages).sum();
        let phase = self.run.supervisor.look(Observation {
            is_uneven: false,
            elapsed: self.now.since(self.run.begun),
            reports: &reports,
            pages,
            wanted,
            has_ended: self.run.ended.iter().any(Option::is_some),
        });
        if phase > self.run.phase {
            self.run.phase = phase;
            for shard in 0..self.run.shards.len() {
                let hears = millis(self.rng.below(150));
                self.later(hears, Event::Look(shard));
            }
        }
    }

    /// When the next check may change something; `waits`: another event happens soon. The real thread checks all the
    /// time: a check later than its would simulate a crawl that cannot occur.
    pub(super) fn next_look(&self, waits: bool) -> Option<Instant> {
        // All have just become quiet, a shard has ended, or an order is pending.
        let is_watched = (self.run.looks < LOOKS || !waits)
            && (0..self.run.shards.len()).all(|index| self.run.ended[index].is_some() || self.report(index).quiet)
            || self.run.ended.iter().any(Option::is_some)
            || self.interruptions.front().is_some_and(|next| next.at() <= self.now);
        let is_guarded = self.run.phase == Phase::Run;
        let breaker = is_guarded.then(|| self.run.breaker.next_due(self.now, &self.network_reports())).flatten();
        let at = [breaker, is_watched.then_some(self.now)].into_iter().flatten().min()?;
        Some(at.max(self.run.next_look).max(self.now + TICK))
    }

    /// The housekeeping thread's handling of outages.
    pub(super) fn guard(&mut self) {
        let reports = self.network_reports();
        let ends: Vec<_> = self.run.shards.iter_mut().flat_map(Shard::take_site_ends).collect();
        let before = self.run.breaker.outage();
        let view = NetworkView { reports: &reports, ends: &ends, has_route: self.outages.has_route(self.now) };
        let ruling = self.run.breaker.look(self.now, view);
        if let (None, Some(outage)) = (before, self.run.breaker.outage()) {
            let cause = match outage.cause {
                Cause::NameServers { .. } => 0,
                Cause::Sites { .. } => 1,
                Cause::Route | Cause::Proxy => 2,
            };
            self.tally.by_cause[cause] += 1;
        }
        for (shard, report) in reports.iter().enumerate() {
            if self.run.orders[shard].0.rule(shard, &ruling, false, report) {
                let hears = millis(self.rng.below(150));
                self.later(hears, Event::Look(shard));
            }
        }
    }

    /// Whether enough sites have URLs left and have answered, by their logs, for an outage of the web to be detected
    /// through them.
    pub(super) fn are_sites_left(&self) -> bool {
        let config = &self.plan.config;
        // With room for only a few hosts, the first of them may be given up before others get a request.
        if config.frontier.hosts_max < 1 << 20 || !self.plan.follows_all() {
            return false;
        }
        let site = |url: &str| Url::parse(url).map(|url| self.web.first_host(url.host())).ok();
        let noted = |(url, times): (&String, &Vec<Instant>)| {
            times.iter().any(|at| *at + NOTED_AFTER <= self.now).then(|| site(url)).flatten()
        };
        let answered: BTreeSet<String> = self.answered.iter().filter_map(noted).collect();
        let left = self.web.reachable().into_iter().filter(|url| !self.servers.pages.contains_key(url));
        let left: BTreeSet<String> = left.filter_map(|url| site(&url)).collect();
        left.intersection(&answered).count() >= 2 * config.outage.sites
    }

    pub(super) fn network_reports(&self) -> Vec<NetworkReport> {
        self.run.shards.iter().map(Shard::network_report).collect()
    }

    /// A shard receives the phase; others may have received it before or not yet.
    pub(super) fn look(&mut self, shard: usize) {
        let (wanted, heard) = self.run.orders[shard];
        self.run.orders[shard].1 = wanted;
        for command in wanted.since(&heard) {
            self.tell(shard, Input::Command(command));
        }
        let phase = self.run.phase;
        if phase > self.run.heard[shard] && self.run.ended[shard].is_none() {
            self.run.heard[shard] = phase;
            if phase == Phase::Close && !self.run.shards[shard].is_replaying() {
                self.empty_rings_to(shard);
            }
            self.tell(shard, Input::Command(Command::Enter(phase)));
        }
    }

    /// Messages in the rings are taken in before the order to close.
    pub(super) fn empty_rings_to(&mut self, shard: usize) {
        for from in 0..self.run.shards.len() as u16 {
            let messages = self.run.lanes.remove(&(shard as u16, from)).unwrap_or_default();
            for bytes in messages {
                self.tell(shard, Input::Received { from, bytes });
            }
        }
    }

    pub(super) fn report(&self, index: usize) -> ShardReport {
        let report = self.run.shards[index].report();
        let to = index as u16;
        let has_message = self.run.lanes.range((to, 0)..=(to, u16::MAX)).next().is_some();
        report.with_waiting(has_message)
    }
}

/// Interval between checks of the housekeeping thread.
const LOOK: Duration = Duration::from_millis(25);
/// This many checks of idle shards show everything there is to see.
const LOOKS: u32 = 8;
/// Answers older than this are in the log.
const NOTED_AFTER: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::super::interruption::Interruption;
    use super::*;

    /// A simulated crawl in an outage, in which shards have been quiet for long.
    fn in_an_outage() -> Simulation {
        let mut simulation = Simulation::new(0);
        simulation.interruptions.clear();
        simulation.run.looks = LOOKS;
        let reports = [NetworkReport { held_since: simulation.now, ..simulation.run.shards[0].network_report() }];
        for has_route in [true, false] {
            simulation.now = simulation.now + Duration::from_secs(1);
            simulation.run.breaker.look(simulation.now, NetworkView { reports: &reports, ends: &[], has_route });
        }
        simulation
    }

    #[test]
    fn an_outage_hides_no_end_of_a_shard() {
        let mut simulation = in_an_outage();
        let at_once = simulation.now + TICK;
        let probe = simulation.run.breaker.next_due(simulation.now, &[]);
        assert!(probe > Some(at_once) && simulation.next_look(true) == probe);
        simulation.run.ended[0] = Some(Err("its disk is full".to_owned()));
        assert_eq!(simulation.next_look(true), Some(at_once));
        let mut simulation = in_an_outage();
        simulation.interruptions.push_back(Interruption::Drain(simulation.now));
        assert_eq!(simulation.next_look(true), Some(at_once), "nor what the operator wants");
    }
}
