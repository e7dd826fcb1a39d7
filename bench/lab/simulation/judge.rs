//! Judges the result of a simulated crawl.
//!
//! Decides: every reachable page was fetched once, and stored as it was served. Every message sent was received.
//! Every accepted URL is done. A run that was broken off may make the next one repeat only the fetches that ended in
//! its last moments. URLs set aside by a full visited set need not be fetched, nor URLs reachable only through them;
//! and nothing is set aside while there is room.

use std::collections::{BTreeSet, HashSet};

use super::Simulation;
use crate::fake_disk::FakeDisk;
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::log::{self, EndKind, LogFile};
use ringcrawl_brain::shard::URL_TIMES_FREE;
use ringcrawl_brain::stats::Known;
use ringcrawl_url::Url;

/// How a simulated crawl ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SimulationReport {
    /// Violations: empty for a good crawl.
    pub complaints: Vec<String>,
    /// Pages fetched with 200, distinct.
    pub pages: usize,
    /// Shards.
    pub shards: usize,
    /// A hash of every job and its end, in order.
    pub trace: u64,
    /// Virtual time.
    pub took: Duration,
    /// Blocks written to disk.
    pub spilled: u64,
    /// Messages that a full ring refused.
    pub refused: u64,
    /// Responses read outside their shards' threads.
    pub read_beside: u64,
    /// Dictionary trainings.
    pub trainings: u64,
    /// Trainings that gave a useful dictionary.
    pub dictionaries: u64,
    /// Requests at a further address because the first was dead.
    pub further: u64,
    /// Messages about robots.txt between shards.
    pub robots_messages: u64,
    /// URLs exchanged.
    pub exchanged: u64,
    /// Queries to name servers.
    pub dns_queries: u64,
    /// URLs for which a full visited set had no room.
    pub aside: u64,
    /// Hosts forgotten.
    pub forgotten: u64,
    /// Number of runs.
    pub runs: u64,
    /// Runs that were drained, aborted, killed, ended by a full disk, by `pages_max` and by a power cut.
    pub interrupted: [u64; 6],
    /// Runs that continued with another number of shards, or had the order to.
    pub redistributed: u64,
    /// Those of them that moved sites to balance shards.
    pub levelled: u64,
    /// Whether bits of its logs were flipped: it may have lost data, but must have ended.
    pub is_damaged: bool,
    /// A shard told of that.
    pub is_damage_told: bool,
    /// Number of adjustments of the wall clock.
    pub clock_steps: u64,
    /// Hosts whose pauses had to be remembered across a kill.
    pub rests_kept: u64,
    /// Fetches in flight when a run was broken off.
    pub left_behind: u64,
    /// Pages fetched more than once, because no log held the first fetch when a run was broken off.
    pub twice: usize,
    /// Records of pages in segments.
    pub stored: usize,
    /// URLs that are done according to the logs and have their records.
    pub acknowledged: u64,
    /// Index lines compared with their records.
    pub index_lines: u64,
    /// Records that refer to a body.
    pub revisits: u64,
    /// URLs with a record of their failure.
    pub failures_stored: u64,
    /// Number of outages.
    pub outages: u64,
    /// Outages that were in progress when a run began.
    pub outages_gone_on: u64,
    /// Outages detected: of name servers, of sites, of the default route.
    pub outages_seen: [u64; 3],
}

impl Simulation {
    pub(super) fn judge(mut self) -> SimulationReport {
        let mut complaints = std::mem::take(&mut self.complaints);
        // Complaints that count whatever the disk does, such as a run that ends in an error.
        let of_runs = complaints.len();
        let expected = self.web.reachable();
        complaints.append(&mut self.servers.complaints);
        let totals = self.totals();
        let aside = self.aside(&mut complaints);
        // Where links within a part lead depends on the shards of sites, and these change with the number of shards.
        let is_whole = self.plan.follows_all();
        let without = &aside | &self.out_of_tries();
        for url in self.web.reachable_without(&without).into_iter().filter(|_| is_whole) {
            if !self.servers.pages.contains_key(&url) {
                complaints.push(format!("{url} was never fetched; by the logs: {}", self.ends_of(&url).join(", ")));
            }
        }
        let stored = self.stored(&mut complaints);
        let acknowledged = self.miss_acknowledged(&stored, &mut complaints);
        let mut twice = 0;
        for (url, times) in &self.servers.pages {
            let dies = Url::parse(url).is_ok_and(|url| self.web.dies(url.host()));
            let answers = self.answered.get(url).map(Vec::as_slice).unwrap_or_default();
            // A run that was broken off may make a crawl repeat only what ended in its last moments.
            let pardoned = answers.iter().filter(|at| self.is_pardoned(**at)).count() as u64;
            twice += usize::from(*times > 1);
            // In modes without exchange, each shard may fetch a page.
            let shards = if self.plan.keeps_parts() { 1 } else { self.disks.len() as u64 };
            if *times > shards + pardoned || !expected.contains(url) && !dies {
                complaints.push(format!("{url} was fetched {times} times, expected: {}", expected.contains(url)));
            }
            // A page that such a run has lost is not fetched a second time if its host has died since, or if the
            // visited set was full when the page was found again.
            let is_lost = (dies || aside.contains(url)) && pardoned >= *times;
            match stored.pages.get(url).copied().unwrap_or_default() {
                0 if is_lost => {}
                0 => complaints.push(format!("{url} was fetched and is not stored")),
                records if records > *times => complaints.push(format!("{url} was stored {records} times")),
                _ => {}
            }
        }
        if totals.exchanged_out != totals.exchanged_in {
            complaints.push(format!("{} URLs were sent and {} received", totals.exchanged_out, totals.exchanged_in));
        }
        for (index, disk) in self.disks.iter().enumerate() {
            let mut over = HashSet::new();
            for end in log::read_ends(disk.log(LogFile::Ends)) {
                let is_over = end.kind != EndKind::Reopened;
                if is_over {
                    over.insert(end.url)
                } else {
                    over.remove(&end.url)
                };
            }
            let stats = self.run.shards[index].stats();
            let (over, queued, visited) = (over.len() as u64, stats.queued, stats.visited);
            if queued != 0 || over != visited {
                complaints.push(format!("shard {index} ended with {queued} queued, {over} over of {visited} accepted"));
            }
            let (told, known) = (stats.known(), Known { urls: visited, waiting: 0, over });
            if told != known {
                complaints.push(format!("shard {index} says {told:?} of {known:?}"));
            }
        }
        if self.is_damaged {
            complaints.truncate(of_runs);
        }
        if !complaints.is_empty() {
            let failures = Failure::ALL.iter().zip(totals.failures).filter(|(_, count)| *count > 0);
            complaints.push(format!("URLs that failed: {:?}", failures.collect::<Vec<_>>()));
        }
        SimulationReport {
            complaints,
            pages: self.servers.pages.len(),
            shards: self.run.shards.len(),
            trace: self.trace,
            took: self.now.since(Instant::ZERO),
            spilled: self.disks.iter().map(|disk| disk.spilled).sum(),
            refused: self.tally.refused,
            read_beside: self.tally.read_beside,
            trainings: self.tally.trainings,
            dictionaries: self.tally.dictionaries,
            further: self.tally.further,
            robots_messages: self.tally.robots_messages,
            exchanged: totals.exchanged_out + self.tally.exchanged,
            dns_queries: self.tally.dns_queries,
            aside: aside.len() as u64,
            forgotten: self.forgotten() + self.tally.forgotten,
            runs: self.tally.runs,
            interrupted: self.tally.by_interruption,
            redistributed: self.tally.redistributed,
            levelled: self.tally.levelled,
            is_damaged: self.is_damaged,
            is_damage_told: self.is_damage_told,
            clock_steps: self.tally.clock_steps,
            rests_kept: self.tally.rests_kept,
            left_behind: self.tally.left_behind,
            twice,
            stored: stored.pages.values().sum::<u64>() as usize,
            acknowledged,
            index_lines: stored.index_lines,
            revisits: stored.revisits,
            failures_stored: stored.failures(),
            outages: self.outages.begun,
            outages_gone_on: self.outages.gone_on,
            outages_seen: self.tally.by_cause,
        }
    }

    /// The URLs that no shard accepted because its visited set is full, or nearly full and their site has its share.
    /// This checks that it really is.
    fn aside(&mut self, complaints: &mut Vec<String>) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let room = self.plan.config.visited.urls_max.div_ceil(self.disks.len() as u64);
        for (index, disk) in self.disks.iter().enumerate() {
            let (mut accepted, mut aside) = (HashSet::new(), BTreeSet::new());
            for entries in log::read_urls(disk.log(LogFile::Urls)) {
                accepted.extend(entries.accepted.iter().map(|(_, url)| url.to_owned()));
                aside.extend(entries.aside.iter().map(|(_, url)| url.to_owned()));
            }
            // Seeds are not recorded: they are given to every run.
            let seeds =
                self.web.seeds().into_iter().filter(|seed| usize::from(self.plan.partition.shard_of(seed)) == index);
            let visited = self.run.shards[index].stats().visited;
            let may_refuse = visited >= URL_TIMES_FREE * room.saturating_sub(visited);
            if may_refuse {
                aside.extend(seeds.map(|seed| seed.as_str().to_owned()));
            }
            aside.retain(|url| !accepted.contains(url));
            if !may_refuse && !aside.is_empty() {
                let count = aside.len();
                complaints.push(format!("shard {index} set {count} URLs aside with {visited} of {room} accepted"));
            }
            all.append(&mut aside);
        }
        all
    }

    /// Pages that chance failed in all their tries, by the servers' count and not by the crawler's.
    fn out_of_tries(&self) -> BTreeSet<String> {
        let tries = 1 + u32::from(self.plan.config.politeness.retries_max);
        let is_out = |url: &String, failed: u32| failed >= tries && !self.servers.pages.contains_key(url);
        self.failed_tries.iter().filter(|(url, failed)| is_out(url, **failed)).map(|(url, _)| url.clone()).collect()
    }

    /// The ends of a URL, as they are in the logs of its shards.
    fn ends_of(&self, url: &str) -> Vec<String> {
        let of_disk = |disk: &FakeDisk| {
            let accepted = log::read_urls(disk.log(LogFile::Urls))
                .flat_map(|entries| entries.accepted.iter().map(|(_, url)| url.to_owned()).collect::<Vec<_>>());
            let places: Vec<u64> =
                (0..).zip(accepted).filter(|(_, text)| text == url).map(|(place, _)| place).collect();
            let ends = log::read_ends(disk.log(LogFile::Ends)).filter(|end| places.contains(&end.url));
            ends.map(|end| format!("{:?} after {} tries", end.kind, end.tries)).collect::<Vec<_>>()
        };
        self.disks.iter().flat_map(of_disk).collect()
    }

    /// Hosts forgotten since the start of this run.
    pub(super) fn forgotten(&mut self) -> u64 {
        let forgotten =
            |shard: &mut ringcrawl_brain::shard::Shard| shard.stats().hosts - shard.hosts_in_memory() as u64;
        self.run.shards.iter_mut().map(forgotten).sum()
    }

    /// Whether the log may lack what ended at `at`.
    fn is_pardoned(&self, at: Instant) -> bool {
        self.broken_off.iter().any(|broken| at <= *broken && *broken <= at + UNWRITTEN_MAX)
    }
}

/// The time until a commit begins, plus that of the commit before it and its own, in which a segment may be closed
/// twice. For a run that is aborted or whose disk is full, also the time until its last shard has ended.
pub(super) const UNWRITTEN_MAX: Duration = Duration::from_secs(7);

#[cfg(test)]
mod tests {
    use super::*;

    /// Also in a crawl that set others aside.
    #[test]
    fn a_lost_page_is_missed() {
        let is_small = |seed: &u64| {
            let plan = Simulation::new(*seed).plan;
            plan.config.visited.urls_max < 1 << 20 && plan.follows_all()
        };
        let mut with_aside = 0;
        for seed in (0..).filter(is_small).take(5).chain([0]) {
            let mut simulation = Simulation::new(seed);
            simulation.crawl();
            if simulation.is_damaged {
                continue;
            }
            let aside = simulation.aside(&mut Vec::new());
            let mut wanted = simulation.web.reachable_without(&(&aside | &simulation.out_of_tries()));
            with_aside += u32::from(!aside.is_empty() && wanted.len() > 1);
            let Some(lost) = wanted.pop_last() else { continue };
            simulation.servers.pages.remove(&lost);
            let complaints = simulation.judge().complaints;
            let missed = format!("{lost} was never fetched; ");
            assert!(
                complaints.first().is_some_and(|first| first.starts_with(&missed)),
                "SIM_SEED={seed}: {complaints:?}"
            );
        }
        assert!(with_aside > 1, "{with_aside} crawls set URLs aside");
    }
}
