//! How a simulated crawl ends before its end, and begins again from its journals.
//!
//! Decides: drained, all is written and nothing is under way; killed, jobs, batches, spools and what no journal has yet
//! are gone, and the last block of a journal may be torn.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::{Event, Simulation};
use crate::ledger::Ledger;
use crate::shard::journal;
use crate::time::Duration;
use crate::url::{Url, UrlBatch};

impl Simulation {
    /// The process dies at once: jobs, batches, spools and what is in no journal yet are gone. A block that was
    /// written within the last second may have been on its way to the file: gone, or torn.
    pub(super) fn kill(&mut self) {
        self.killed = self.kill_at.take();
        self.events.clear();
        self.pending.clear();
        self.lanes.clear();
        self.in_flight.fill(0);
        for (journal, (before, at)) in self.journals.iter_mut().zip(&self.last_blocks) {
            if self.now.since(*at) < ON_ITS_WAY_MAX && self.rng.percent(50) {
                let torn = self.rng.below((journal.len() - before) as u64 + 1) as usize;
                journal.truncate(before + torn);
                let whole = journal::blocks(journal).last().map_or(0, |(_, end)| end);
                journal.truncate(whole);
            }
        }
        self.begin_again();
        self.sow();
    }

    /// All shards end, and others begin from their journals.
    pub(super) fn restart(&mut self) {
        // Questions about robots.txt have no ends that are waited for; a new run asks again.
        self.pending.retain(|_, event| !matches!(event, Event::RobotsRequest(..) | Event::RobotsAnswer(..)));
        assert!(self.pending.is_empty() && self.in_flight.iter().all(|count| *count == 0), "something is under way");
        self.events.clear();
        self.stop_at = None;
        for (shard, journal) in self.shards.iter_mut().zip(&mut self.journals) {
            while let Some(block) = shard.journal_block(self.now, true) {
                journal.extend(block);
            }
        }
        self.begin_again();
    }

    /// New shards begin from the journals, as `drive::recover` does it.
    fn begin_again(&mut self) {
        self.exchanged_before = self.shards.iter().map(|shard| shard.counts().exchanged_out).sum();
        self.forgotten_before = self.forgotten();
        self.now = self.now + RESTART_PAUSE;
        self.servers.crawler_restarts();
        self.disks.iter_mut().for_each(BTreeMap::clear);
        self.awake.fill(true);
        self.ledger = Arc::new(Ledger::new(1 << 12));
        self.shards = self.make.shards(&self.ledger);
        for (index, (shard, journal)) in self.shards.iter_mut().zip(&self.journals).enumerate() {
            let blocks = || journal::blocks(journal).map(|(entries, _)| entries);
            let over: HashSet<u64> = blocks().flat_map(|entries| entries.over).collect();
            self.over_before[index] = over.len() as u64;
            for (depth, text) in blocks().flat_map(|entries| owned(&entries.accepted)) {
                let Ok(url) = Url::from_canonical(&text) else { continue };
                let is_over = over.contains(&shard.fingerprint(&url));
                shard.remember(self.now, &url, depth, is_over);
            }
            for entries in blocks() {
                shard.reconsider(self.now, &entries, true);
            }
        }
    }
}

fn owned(batch: &UrlBatch) -> Vec<(u16, String)> {
    batch.iter().map(|(depth, text)| (depth, text.to_owned())).collect()
}

/// From a block's end to its place in the file.
const ON_ITS_WAY_MAX: Duration = Duration::from_secs(1);
/// Longer than any delay, which a crawl that begins anew does not know of.
const RESTART_PAUSE: Duration = Duration::from_secs(2 * 86_400);
