//! The input of a partition: pages or sites, their weights, and the cost of separating them.
//!
//! Decides: a vertex has two weights, its bytes and its pages. An edge joins two vertices with a link between them.
//! It costs the bytes of the URLs of all links both ways, so the cost of the edges that a partition cuts is the
//! volume of its exchange.
//! Invariants: each edge is listed at both ends, at the same cost; no vertex is its own neighbour; neighbours are in
//! ascending order.
//! Limits: memory is requested, METIS's own included: [`LINK_BYTES`] a link, [`VERTEX_BYTES`] a vertex.

use super::{Memory, PageGraph, PlanError};

/// An undirected graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weighted {
    /// Storage and requests of each vertex.
    pub(super) weights: Vec<[u64; 2]>,
    /// The start of each vertex's edges, and the end of the last vertex's.
    pub(super) starts: Vec<usize>,
    pub(super) neighbours: Vec<u32>,
    pub(super) costs: Vec<u64>,
    /// Memory requested.
    asked: u64,
}

/// A directed graph, before both directions are merged.
struct Directed {
    starts: Vec<usize>,
    targets: Vec<u32>,
    costs: Vec<u64>,
}

impl Weighted {
    /// Pages as vertices.
    pub fn of_pages(graph: &PageGraph, memory: &mut Memory) -> Result<Weighted, PlanError> {
        let asked = ask(graph.pages(), graph.links(), memory)?;
        let costs = graph.targets.iter().map(|target| graph.url_bytes(*target)).collect();
        let directed = Directed { starts: graph.starts.clone(), targets: graph.targets.clone(), costs };
        let weights = graph.all().map(|page| graph.weights(page)).collect();
        Ok(Weighted::of(weights, &directed, asked))
    }

    /// Sites as vertices.
    pub fn of_sites(graph: &PageGraph, memory: &mut Memory) -> Result<Weighted, PlanError> {
        let sites = graph.sites();
        let asked = ask(sites, graph.links(), memory)?;
        let mut weights = vec![[0u64; 2]; sites];
        let mut pages: Vec<u32> = graph.all().collect();
        for page in graph.all() {
            let [storage, requests] = graph.weights(page);
            if let Some(sum) = weights.get_mut(graph.site_of(page) as usize) {
                *sum = [sum[0].saturating_add(storage), sum[1] + requests];
            }
        }
        pages.sort_by_key(|page| graph.site_of(*page));
        let mut directed = Directed { starts: vec![0], targets: Vec::new(), costs: Vec::new() };
        // The cost of the current site's links by target; and the targets found.
        let (mut cost_of, mut found) = (vec![0u64; sites], Vec::new());
        let mut rest = pages.as_slice();
        for site in 0..sites as u32 {
            let of_site = rest.iter().take_while(|page| graph.site_of(**page) == site).count();
            let (own, behind) = rest.split_at(of_site);
            rest = behind;
            for (target, bytes) in own
                .iter()
                .flat_map(|page| graph.targets_of(*page))
                .map(|target| (graph.site_of(*target), graph.url_bytes(*target)))
            {
                if target != site
                    && let Some(cost) = cost_of.get_mut(target as usize)
                {
                    if *cost == 0 {
                        found.push(target);
                    }
                    *cost += bytes;
                }
            }
            found.sort_unstable();
            for target in found.drain(..) {
                directed.targets.push(target);
                directed.costs.push(cost_of.get_mut(target as usize).map(std::mem::take).unwrap_or_default());
            }
            directed.starts.push(directed.targets.len());
        }
        Ok(Weighted::of(weights, &directed, asked))
    }

    fn of(weights: Vec<[u64; 2]>, out: &Directed, asked: u64) -> Weighted {
        let back = out.turned();
        let (mut starts, mut neighbours, mut costs) = (vec![0], Vec::new(), Vec::new());
        for vertex in 0..weights.len() {
            let (mut there, mut here) = (out.of(vertex).peekable(), back.of(vertex).peekable());
            // Both lists ascend: the lower neighbour comes next; equal ones are merged.
            loop {
                let next = match (there.peek(), here.peek()) {
                    (Some((one, cost)), Some((other, more))) if one == other => (*one, cost.saturating_add(*more)),
                    (Some(one), Some(other)) => *one.min(other),
                    (Some(one), None) => *one,
                    (None, Some(other)) => *other,
                    (None, None) => break,
                };
                there.next_if(|(neighbour, _)| *neighbour == next.0);
                here.next_if(|(neighbour, _)| *neighbour == next.0);
                neighbours.push(next.0);
                costs.push(next.1);
            }
            starts.push(neighbours.len());
        }
        Weighted { weights, starts, neighbours, costs, asked }
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.weights.len()
    }

    /// The sum of all vertices' weights.
    pub fn totals(&self) -> [u64; 2] {
        self.weights.iter().fold([0; 2], |sum, weight| [sum[0].saturating_add(weight[0]), sum[1] + weight[1]])
    }

    /// Gives the requested memory back.
    pub fn release(self, memory: &mut Memory) {
        memory.give_back(self.asked);
    }
}

impl Directed {
    fn of(&self, vertex: usize) -> impl Iterator<Item = (u32, u64)> {
        let range = self.starts.get(vertex).copied().unwrap_or_default()
            ..self.starts.get(vertex + 1).copied().unwrap_or_default();
        let targets = self.targets.get(range.clone()).unwrap_or_default();
        targets.iter().copied().zip(self.costs.get(range).unwrap_or_default().iter().copied())
    }

    /// The same links reversed; those of a vertex ascend, because sources are visited in order.
    fn turned(&self) -> Directed {
        let vertices = self.starts.len() - 1;
        let mut starts = vec![0usize; vertices + 1];
        for target in &self.targets {
            starts[*target as usize + 1] += 1;
        }
        for vertex in 1..starts.len() {
            starts[vertex] += starts[vertex - 1];
        }
        let (mut targets, mut costs) = (vec![0; self.targets.len()], vec![0; self.targets.len()]);
        let mut next = starts.clone();
        for source in 0..vertices {
            for (target, cost) in self.of(source) {
                let place = &mut next[target as usize];
                (targets[*place], costs[*place]) = (source as u32, cost);
                *place += 1;
            }
        }
        Directed { starts, targets, costs }
    }
}

fn ask(vertices: usize, links: usize, memory: &mut Memory) -> Result<u64, PlanError> {
    let needed = vertices as u64 * VERTEX_BYTES + links as u64 * LINK_BYTES;
    memory.take(needed, "partitioning").map(|()| needed)
}

/// Per link: 12 bytes in each direction, twice 12 when both are merged, twice 8 for METIS, and some four times that
/// for all its levels, which have half as many edges each.
const LINK_BYTES: u64 = 128;
/// The same per vertex.
const VERTEX_BYTES: u64 = 128;

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::GraphSettings;
    use crate::plan::SiteKind;
    use crate::plan::builder::Builder;
    use ringcrawl_base::Rng;
    use ringcrawl_url::Url;

    /// A graph of pages with bytes, each named by site and path, and links by index in the list.
    pub(in crate::plan) fn graph(pages: &[(&str, u64)], links: &[(u32, u32)]) -> PageGraph {
        let mut memory = Memory::new(1 << 30);
        let mut builder = Builder::new(GraphSettings { key: SiteKind::Domain, url_bytes: 50 }, &mut memory);
        for (name, bytes) in pages {
            let page = builder.page(&Url::parse(&format!("http://{name}")).expect("a URL"), None).expect("memory");
            builder.set_bytes(page, *bytes);
        }
        links.iter().for_each(|(from, to)| builder.link(*from, *to).expect("memory"));
        builder.finish().expect("a graph")
    }

    /// A random graph.
    pub(in crate::plan) fn random_graph(rng: &mut Rng, pages: usize, sites: u64, links: usize) -> PageGraph {
        let names: Vec<String> = (0..pages).map(|page| format!("s{}.test/{page}", rng.below(sites))).collect();
        let pages: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), rng.below(9_000))).collect();
        let mut end = || rng.index(pages.len()) as u32;
        let mut links: Vec<(u32, u32)> = (0..links).map(|_| (end(), end())).collect();
        links.push((0, 1));
        graph(&pages, &links)
    }

    #[test]
    fn both_ways_are_one_edge() {
        // http://a.test/1 has 15 bytes, like all of them.
        let pages = [("a.test/1", 10), ("a.test/2", 20), ("b.test/3", 5), ("c.test/4", 7)];
        let graph = graph(&pages, &[(0, 1), (1, 0), (0, 2), (1, 2), (2, 0), (3, 2)]);
        let mut memory = Memory::new(1 << 20);
        let pages = Weighted::of_pages(&graph, &mut memory).expect("memory");
        assert_eq!(pages.weights, [[10, 1], [20, 1], [5, 1], [7, 1]]);
        let expected = (&vec![0, 2, 4, 7, 8], &vec![1, 2, 0, 2, 0, 1, 3, 2], &vec![30, 30, 30, 15, 30, 15, 15, 15]);
        assert_eq!((&pages.starts, &pages.neighbours, &pages.costs), expected);
        pages.release(&mut memory);
        let sites = Weighted::of_sites(&graph, &mut memory).expect("memory");
        assert_eq!((sites.totals(), sites.vertices()), ([42, 4], 3));
        assert_eq!(sites.weights, [[30, 2], [5, 1], [7, 1]]);
        assert_eq!(
            (&sites.starts, &sites.neighbours, &sites.costs),
            (&vec![0, 1, 3, 4], &vec![1, 0, 2, 1], &vec![45, 45, 15, 15])
        );
        sites.release(&mut memory);
        assert_eq!(memory, Memory::new(1 << 20));
        let refused = Weighted::of_pages(&graph, &mut Memory::new(1_000)).expect_err("too little").to_string();
        assert!(refused.starts_with("partitioning: 1280 bytes"), "{refused}");
    }

    /// Compares with a table of pairs.
    #[test]
    fn as_a_table_of_pairs_has_it() {
        let mut rng = Rng::new(1);
        for round in 0..30 {
            let graph = random_graph(&mut rng, 2 + round * 3, 1 + round as u64, round * 9);
            for of_sites in [false, true] {
                let vertex = |page: u32| if of_sites { graph.site_of(page) } else { page };
                let mut pairs = BTreeMap::new();
                for (from, to) in graph.all().flat_map(|from| graph.targets_of(from).iter().map(move |to| (from, *to)))
                {
                    for (one, other) in [(from, to), (to, from)] {
                        if vertex(one) != vertex(other) {
                            *pairs.entry((vertex(one), vertex(other))).or_insert(0) += graph.url_bytes(to);
                        }
                    }
                }
                let memory = &mut Memory::new(1 << 30);
                let made =
                    if of_sites { Weighted::of_sites(&graph, memory) } else { Weighted::of_pages(&graph, memory) };
                let made = made.expect("memory");
                let mut found = BTreeMap::new();
                for vertex in 0..made.vertices() {
                    for at in made.starts[vertex]..made.starts[vertex + 1] {
                        assert_eq!(found.insert((vertex as u32, made.neighbours[at]), made.costs[at]), None);
                    }
                }
                assert_eq!(found, pairs);
            }
        }
    }
}
