//! What the crawls of an experiment know beforehand, as if an earlier crawl had seen the whole graph: assignments by METIS, PageRank, and
//! the most linked URLs.
//!
//! Decides: an assignment of sites is one of all their pages, so that a graph whose sites are runs of numbers needs no names for them.
//! Each is computed when it is first needed, and once for each number of shards.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Treatment;
use crate::exchange::Replicated;
use crate::frontier::Ranks;
use crate::plan::{self, Memory, PageGraph, PlanError, Unit};
use crate::route::{Partition, VectorBuilder, VectorUnit};
use crate::url::fingerprint;

/// What is known of a graph.
#[derive(Debug)]
pub struct Planned<'a> {
    graph: &'a PageGraph,
    memory: Memory,
    partitions: BTreeMap<(bool, u16), Partition>,
    pagerank: Option<Vec<f64>>,
}

impl Planned<'_> {
    /// Nothing yet; it may take so many bytes.
    pub fn new(graph: &PageGraph, bytes_max: u64) -> Planned<'_> {
        Planned { graph, memory: Memory::new(bytes_max), partitions: BTreeMap::new(), pagerank: None }
    }

    /// The partition of a treatment, if it is by the graph.
    pub fn partition(&mut self, treatment: &Treatment) -> Result<Option<Partition>, PlanError> {
        let Some(unit) = treatment.planned() else { return Ok(None) };
        let (key, shards) = ((unit == Unit::Site, treatment.shards), treatment.shards);
        if let Some(partition) = self.partitions.get(&key) {
            return Ok(Some(partition.clone()));
        }
        let partition = if shards == 1 { Partition::by_site(1) } else { self.assign(unit, shards)? };
        self.partitions.insert(key, partition.clone());
        Ok(Some(partition))
    }

    fn assign(&mut self, unit: Unit, shards: u16) -> Result<Partition, PlanError> {
        let found = plan::assign(self.graph, unit, shards, 1, &mut self.memory)?;
        let mut builder = VectorBuilder::new(VectorUnit::Page, shards, u64::MAX);
        for page in self.graph.all() {
            let vertex = if unit == Unit::Site { self.graph.site_of(page) } else { page };
            let shard = found.get(vertex as usize).copied().unwrap_or_default();
            // A URL that two pages have is the first one's.
            let _ = builder.add(shard, &self.graph.url(page));
        }
        Ok(Partition::of_vector(builder.build()))
    }

    /// The graph's PageRank.
    pub fn ranks(&mut self, rng_seed: u64) -> Result<Arc<Ranks>, PlanError> {
        if self.pagerank.is_none() {
            self.pagerank = Some(plan::pagerank(self.graph, &mut self.memory, &mut |_| {})?);
        }
        let ranks = self.graph.all().zip(self.pagerank.iter().flatten().copied());
        let keyed = ranks.map(|(page, rank)| (fingerprint(rng_seed, &self.graph.url(page)), rank));
        Ok(Arc::new(Ranks::new(keyed.collect())))
    }

    /// The `count` pages with most links from others; of equal ones the first.
    pub fn most_linked(&self, count: usize, rng_seed: u64) -> Replicated {
        if count == 0 {
            return Replicated::default();
        }
        let links = plan::links_to(self.graph);
        let mut pages: Vec<u32> = self.graph.all().collect();
        pages.sort_by_key(|page| std::cmp::Reverse(links.get(*page as usize).copied()));
        pages.truncate(count);
        Replicated::new(pages.into_iter().map(|page| fingerprint(rng_seed, &self.graph.url(page))).collect())
    }
}
