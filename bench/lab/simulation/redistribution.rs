//! Between two simulated runs the operator changes the number of shards, or sites move to balance them.

use std::collections::BTreeMap;

use super::Simulation;
use crate::fake_disk::FakeDisk;
use ringcrawl_brain::log::{Append, EarlierShard, LogFile, RedistributedFiles, redistribute, waiting_sites};
use ringcrawl_brain::route::{LevelLimits, Levelled};
use ringcrawl_config::ExchangeMode;

impl Simulation {
    /// The crawl continues with another number of shards, or with its sites elsewhere.
    pub(super) fn redistribute(&mut self) {
        let config = &self.plan.config;
        let may_level = config.keeps_sites()
            && self.plan.partition.owners().is_none()
            && config.exchange.mode == ExchangeMode::Exchange;
        let levels = self.plan.rng_seed.is_multiple_of(2) && may_level;
        let shards = if levels { self.disks.len() as u16 } else { 1 + self.rng.below(8) as u16 };
        let earlier = |disk: &mut FakeDisk| {
            let found = disk.begin_run();
            EarlierShard { journal: found.journal, segments: found.segments }
        };
        let earlier: Vec<EarlierShard> = self.disks.iter_mut().map(earlier).collect();
        let mut files = Files { earlier: &self.disks, new: vec![BTreeMap::new(); usize::from(shards)] };
        let rng_seed = self.plan.rng_seed;
        self.plan.partition = self.plan.partition.with_shards(shards);
        if levels {
            // Also when it is too little for all.
            let bytes_max = 1 << (9 + self.rng.below(12));
            let moves = waiting_sites(rng_seed, &earlier, &mut files, bytes_max).and_then(|waiting| {
                let before = std::mem::take(&mut self.plan.moved_sites);
                let shard_urls_max = config.visited.urls_max.div_ceil(u64::from(shards));
                let limits = LevelLimits { bytes_max, shard_urls_max };
                // Also when it helps little: whatever moves, nothing is lost.
                self.plan.moved_sites = Levelled::new(&waiting, before, limits).moved_sites(&self.plan.partition);
                self.plan.partition.with_moved(&self.plan.moved_sites, 1 << 20)
            });
            match moves {
                Ok(partition) => self.plan.partition = partition,
                Err(why) => self.complaints.push(why),
            }
            self.tally.levelled += 1;
        } else {
            self.plan.moved_sites.clear();
        }
        let redistributed = redistribute((rng_seed, rng_seed), &earlier, self.plan.partition.clone(), &mut files);
        let new = files.new;
        if let Err(why) = redistributed {
            self.complaints.push(why);
        }
        self.tally.redistributed += 1;
        self.disks.iter_mut().for_each(|disk| disk.replace_logs(BTreeMap::new()));
        while self.disks.len() > new.len() {
            self.idle_disks.extend(self.disks.pop());
        }
        self.disks.resize_with(new.len(), || self.idle_disks.pop().unwrap_or_default());
        self.disks.iter_mut().zip(new).for_each(|(disk, logs)| disk.replace_logs(logs));
    }
}

struct Files<'a> {
    earlier: &'a [FakeDisk],
    new: Vec<BTreeMap<LogFile, Vec<u8>>>,
}

impl RedistributedFiles for Files<'_> {
    fn read(&mut self, shard: u16, file: LogFile, position: u64) -> Result<Vec<u8>, String> {
        Ok(self.earlier[usize::from(shard)].log_piece(file, position))
    }

    fn append(&mut self, shard: u16, append: Append) -> Result<(), String> {
        let log = self.new[usize::from(shard)].entry(append.file).or_default();
        assert_eq!(append.position, log.len() as u64, "a log is written from end to end");
        log.extend(append.bytes);
        Ok(())
    }
}
