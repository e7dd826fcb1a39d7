//! What the crawls of an experiment know in advance, as if an earlier crawl had seen the whole graph: assignments by
//! METIS, PageRank, and the most linked URLs.
//!
//! Decides: an assignment of sites assigns all their pages, so that a graph whose sites are runs of numbers needs no
//! names for them. Each assignment is computed once per number of shards, and before the first crawl: METIS or memory
//! may fail, and crawls take hours.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{PAGERANK, Treatment};
use crate::plan::{self, Memory, PageGraph, PlanError, Unit};
use ringcrawl_brain::exchange::Replicated;
use ringcrawl_brain::frontier::Ranks;
use ringcrawl_brain::route::{Partition, VectorBuilder, VectorUnit};
use ringcrawl_url::fingerprint;

/// Advance knowledge of a graph.
#[derive(Debug)]
pub struct Planned<'a> {
    graph: &'a PageGraph,
    memory: Memory,
    partitions: BTreeMap<PlanKey, Partition>,
    pagerank: Option<Vec<f64>>,
    most_linked: Vec<u32>,
}

impl Planned<'_> {
    /// Nothing computed yet; it may use `bytes_max` bytes.
    pub fn new(graph: &PageGraph, bytes_max: u64) -> Planned<'_> {
        let (partitions, pagerank, most_linked) = Default::default();
        Planned { graph, memory: Memory::new(bytes_max), partitions, pagerank, most_linked }
    }

    /// Computes what a crawl needs.
    ///
    /// # Errors
    /// There is not enough memory, or METIS fails.
    pub fn prepare(&mut self, treatment: &Treatment) -> Result<(), PlanError> {
        if let Some((key, unit)) = key_of(treatment)
            && !self.partitions.contains_key(&key)
        {
            let shards = treatment.shards;
            let partition = if shards == 1 { Partition::by_site(1) } else { self.assign(unit, shards)? };
            self.partitions.insert(key, partition);
        }
        if treatment.order == PAGERANK && self.pagerank.is_none() {
            self.pagerank = Some(plan::pagerank(self.graph, &mut self.memory, &mut |_| {})?);
        }
        Ok(())
    }

    /// Finds the `count` pages with the most links from others; the first of equal ones.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn prepare_most_linked(&mut self, count: usize) -> Result<(), PlanError> {
        if count > 0 {
            let links = plan::links_to(self.graph, &mut self.memory)?;
            let mut pages: Vec<(u32, f64)> = self.memory.list(links.len() as u64, "ranks")?;
            pages.extend(self.graph.all().zip(links.iter().copied()));
            pages.sort_unstable_by(|(one, links), (other, more)| more.total_cmp(links).then(one.cmp(other)));
            self.most_linked = pages.iter().take(count).map(|(page, _)| *page).collect();
            self.memory.release(pages);
            self.memory.release(links);
        }
        Ok(())
    }

    /// The partition of a treatment, if it depends on the graph.
    pub fn partition(&self, treatment: &Treatment) -> Option<Partition> {
        self.partitions.get(&key_of(treatment)?.0).cloned()
    }

    fn assign(&mut self, unit: Unit, shards: u16) -> Result<Partition, PlanError> {
        let found = plan::assign(self.graph, unit, shards, 1, &mut self.memory)?;
        let mut builder = VectorBuilder::new(VectorUnit::Page, shards, u64::MAX);
        for page in self.graph.all() {
            let vertex = if unit == Unit::Site { self.graph.site_of(page) } else { page };
            let shard = found.get(vertex as usize).copied().unwrap_or_default();
            // A URL of two pages belongs to the first one.
            let _ = builder.add(shard, &self.graph.url(page));
        }
        Ok(Partition::of_vector(builder.build()))
    }

    /// The graph's PageRank, if a treatment uses it.
    pub fn ranks(&self, treatment: &Treatment) -> Arc<Ranks> {
        if treatment.order != PAGERANK {
            return Arc::default();
        }
        let ranks = self.graph.all().zip(self.pagerank.iter().flatten().copied());
        let keyed = ranks.map(|(page, rank)| (fingerprint(treatment.rng_seed, &self.graph.url(page)), rank));
        Arc::new(Ranks::new(keyed.collect()))
    }

    /// The most linked pages.
    pub fn most_linked(&self, rng_seed: u64) -> Replicated {
        let pages = self.most_linked.iter();
        Replicated::new(pages.map(|page| fingerprint(rng_seed, &self.graph.url(*page))).collect())
    }
}

/// Whether sites are divided, and into how many parts.
type PlanKey = (bool, u16);

fn key_of(treatment: &Treatment) -> Option<(PlanKey, Unit)> {
    treatment.planned().map(|unit| ((unit == Unit::Site, treatment.shards), unit))
}
