//! What a simulated crawl came to, and whether that is as it must be.
//!
//! Decides: every page that can be reached was fetched, once; what was sent was received; every URL that was accepted
//! is over. A kill may make a crawl fetch again what ended in its last moments, and nothing else.

use super::Simulation;
use crate::outcome::Failure;
use crate::time::{Duration, Instant};
use crate::url::Url;

/// How a simulated crawl ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Everything that must not be: empty for a good crawl.
    pub complaints: Vec<String>,
    /// Pages fetched with 200, distinct.
    pub pages: usize,
    /// Shards.
    pub shards: usize,
    /// A hash over every job and its end, in order.
    pub trace: u64,
    /// Virtual time.
    pub took: Duration,
    /// Blocks that went to disk.
    pub spilled: u64,
    /// Batches that a full ring refused.
    pub refused: u64,
    /// Requests at a further address because the first was dead.
    pub further: u64,
    /// What shards asked and told each other about robots.txt.
    pub robots_messages: u64,
    /// URLs exchanged.
    pub exchanged: u64,
    /// URLs that a full visited set had no room for; what is behind them is not asked for.
    pub aside: u64,
    /// Hosts forgotten.
    pub forgotten: u64,
    /// Blocks of URLs that came back to hosts that were not in memory.
    pub outside: u64,
    /// Whether the crawl was stopped and resumed.
    pub resumed: bool,
    /// Whether it was killed: what no journal had yet was done again.
    pub killed: bool,
    /// Pages fetched twice, because the first time was in no journal when the crawl was killed.
    pub twice: usize,
}

impl Simulation {
    pub(super) fn judge(mut self, mut complaints: Vec<String>) -> Report {
        let expected = self.web.reachable();
        complaints.append(&mut self.servers.complaints);
        let aside: u64 = self.shards.iter().map(|shard| shard.counts().aside).sum();
        for url in expected.iter().filter(|url| aside == 0 && !self.servers.pages.contains_key(*url)) {
            complaints.push(format!("{url} was never fetched"));
        }
        let mut twice = 0;
        for (url, times) in &self.servers.pages {
            let dies = Url::parse(url).is_ok_and(|url| self.web.dies(url.host()));
            // What a kill may make a crawl do again: only what ended in its last moments, and only once.
            let forgotten =
                self.killed.zip(self.fetched_at.get(url)).is_some_and(|(killed, at)| killed <= *at + FORGOTTEN_MAX);
            twice += usize::from(*times > 1);
            if *times > 1 + u64::from(forgotten) || !expected.contains(url) && !dies {
                complaints.push(format!("{url} was fetched {times} times, expected: {}", expected.contains(url)));
            }
        }
        let out: u64 = self.shards.iter().map(|shard| shard.counts().exchanged_out).sum();
        let received: u64 = self.shards.iter().map(|shard| shard.counts().exchanged_in).sum();
        if out != received {
            complaints.push(format!("{out} URLs were sent and {received} received"));
        }
        for (index, shard) in self.shards.iter().enumerate() {
            let over = shard.counts().over + self.over_before[index];
            let (queued, visited) = (shard.queued(), shard.visited());
            if queued != 0 || over != visited {
                complaints.push(format!("shard {index} ended with {queued} queued, {over} over of {visited} accepted"));
            }
        }
        if !complaints.is_empty() {
            let failures = self.shards.iter().flat_map(|shard| Failure::ALL.iter().zip(shard.counts().failures));
            let failures = failures.filter(|(_, count)| *count > 0);
            complaints.push(format!("URLs that failed: {:?}", failures.collect::<Vec<_>>()));
        }
        Report {
            forgotten: self.forgotten(),
            outside: self.outside,
            complaints,
            pages: self.servers.pages.len(),
            shards: self.shards.len(),
            trace: self.trace,
            took: self.now.since(Instant::ZERO),
            spilled: self.spilled,
            refused: self.refused,
            further: self.further,
            robots_messages: self.robots_messages,
            exchanged: out + self.exchanged_before,
            aside,
            resumed: self.over_before.iter().any(|over| *over > 0),
            killed: self.killed.is_some(),
            twice,
        }
    }

    /// Hosts forgotten since the start or restart, and before.
    pub(super) fn forgotten(&self) -> u64 {
        let forgotten = self.shards.iter().map(|shard| shard.hosts() - shard.hosts_in_memory() as u64);
        forgotten.sum::<u64>() + self.forgotten_before
    }
}

/// The age of an open block, the way of a block to its file, and the turns between.
const FORGOTTEN_MAX: Duration = Duration::from_secs(3);
