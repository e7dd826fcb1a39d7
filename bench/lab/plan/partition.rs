//! Partitions a graph with METIS.
//!
//! Decides: K parts that balance storage and requests within 5 %, with the cheapest cut, by multilevel K-way
//! partitioning for several constraints (Karypis and Kumar 1998). If that misses the 5 %, other seeds and recursive
//! bisection are tried, and the best result is taken: the one that misses by the fewest tenths of a part, and among
//! equal ones the cheapest.
//! A vertex heavier than a part is weighted as one part, so that the others are balanced around it.
//! With few vertices per part only bisection is used, two parts at a time: METIS complains on standard output about
//! parts without a vertex. With as many parts as vertices, each vertex is a part.
//! Why scaled: METIS counts in 32 bits. Weights and costs with larger sums are divided; a cost is at least 1.
//! Invariants: the same graph and seed give the same parts. Only one partition runs at a time, as METIS keeps its
//! random numbers and signal handlers in the process.
//! Limits: 2^30 vertices and edges, each counted from both ends.

use std::sync::Mutex;

use metis::option::Seed;

use super::PlanError;
use super::weighted::Weighted;

/// How far the largest part may exceed the average.
pub const IMBALANCE_MAX: f64 = 0.05;

/// The part of each vertex.
pub(super) fn partition(graph: &Weighted, parts: u16, seed: u32) -> Result<Vec<u16>, PlanError> {
    let vertices = graph.vertices();
    if parts <= 1 || vertices <= usize::from(parts) {
        return Ok((0..vertices).map(|vertex| if parts <= 1 { 0 } else { vertex as u16 }).collect());
    }
    let _turn = METIS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let failed = |why: String| PlanError::Metis { vertices, parts, why };
    let weights = capped(&graph.weights, parts);
    let input = Input::of(graph, &weights).ok_or_else(|| failed(format!("more than {ITEMS_MAX} vertices or edges")))?;
    let has_many = vertices >= KWAY_VERTICES_MIN * usize::from(parts);
    let mut best: Option<(u64, u64, Vec<u16>)> = None;
    for (method, more) in TRIES.into_iter().filter(|(method, _)| has_many || *method == Method::Bisection) {
        let seed = seed.wrapping_add(more);
        let found = match method {
            Method::KWay => input.k_way(parts, seed),
            Method::Bisection => input.bisect(parts, seed),
        };
        let found = found.map_err(|error| failed(error.to_string()))?;
        let (tenths, cut) = ((10.0 * excess(&weights, &found, parts)).ceil() as u64, cut(graph, &found));
        if best.as_ref().is_none_or(|(least, cheapest, _)| (tenths, cut) < (*least, *cheapest)) {
            best = Some((tenths, cut, found));
        }
        if tenths == 0 {
            break;
        }
    }
    Ok(best.map(|(.., parts)| parts).unwrap_or_default())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    KWay,
    Bisection,
}

/// Attempts until a result is balanced: method, and what is added to the seed.
const TRIES: [(Method, u32); 6] = [
    (Method::KWay, 0),
    (Method::KWay, 1),
    (Method::Bisection, 0),
    (Method::KWay, 2),
    (Method::KWay, 3),
    (Method::Bisection, 1),
];

/// Weights capped at a part's share; vertices heavier than that get parts of their own.
fn capped(weights: &[[u64; 2]], parts: u16) -> Vec<[u64; 2]> {
    let caps = [0, 1].map(|which| {
        let mut falling: Vec<u64> = weights.iter().map(|weight| weight[which]).collect();
        falling.sort_unstable_by_key(|weight| std::cmp::Reverse(*weight));
        let (mut rest, mut parts) = (falling.iter().map(|weight| u128::from(*weight)).sum::<u128>(), u128::from(parts));
        for weight in falling.into_iter().map(u128::from) {
            if weight * parts <= rest || parts <= 1 {
                break;
            }
            (rest, parts) = (rest - weight, parts - 1);
        }
        u64::try_from(rest.div_ceil(parts)).unwrap_or(u64::MAX).max(1)
    });
    weights.iter().map(|weight| [weight[0].min(caps[0]), weight[1].min(caps[1])]).collect()
}

/// The excess of the largest part's weight over the average, as a share of the average.
pub(super) fn imbalance(weights: impl Iterator<Item = (u16, u64)>, parts: u16) -> f64 {
    let mut sums = vec![0u64; usize::from(parts.max(1))];
    for (part, weight) in weights {
        if let Some(sum) = sums.get_mut(usize::from(part)) {
            *sum = sum.saturating_add(weight);
        }
    }
    let average = sums.iter().map(|sum| *sum as f64).sum::<f64>() / sums.len() as f64;
    let most = sums.iter().copied().max().unwrap_or_default() as f64;
    if average > 0.0 { (most - average) / average } else { 0.0 }
}

/// How far the worse of both weights exceeds the allowed imbalance.
fn excess(weights: &[[u64; 2]], found: &[u16], parts: u16) -> f64 {
    let of = |which: usize| imbalance(found.iter().copied().zip(weights.iter().map(|weight| weight[which])), parts);
    (of(0).max(of(1)) - IMBALANCE_MAX).max(0.0)
}

/// The cost of the edges between different parts.
fn cut(graph: &Weighted, found: &[u16]) -> u64 {
    let edges = |vertex: usize| graph.starts[vertex]..graph.starts[vertex + 1];
    let is_cut = |vertex: usize, edge: &usize| found[vertex] != found[graph.neighbours[*edge] as usize];
    let of = |vertex: usize| {
        edges(vertex).filter(move |edge| is_cut(vertex, edge)).map(|edge| graph.costs[edge]).sum::<u64>()
    };
    // Each edge is counted from both ends.
    (0..graph.vertices()).map(of).sum::<u64>() / 2
}

/// A graph, or a part of one, in METIS's format.
#[derive(Default)]
struct Input {
    constraints: usize,
    starts: Vec<i32>,
    neighbours: Vec<i32>,
    costs: Vec<i32>,
    weights: Vec<i32>,
}

type PartitionResult<T> = Result<T, Box<dyn std::error::Error>>;

impl Input {
    fn of(graph: &Weighted, weights: &[[u64; 2]]) -> Option<Input> {
        if graph.neighbours.len().max(graph.vertices()) > ITEMS_MAX {
            return None;
        }
        let number = |number: u64| i32::try_from(number).ok();
        let totals = [0, 1].map(|which| weights.iter().map(|weight| u128::from(weight[which])).sum::<u128>());
        // Storage equal to requests, or none, is no constraint of its own.
        let has_storage = totals[0] > 0 && weights.iter().any(|weight| weight[0] != weight[1]);
        let which: &[usize] = if has_storage { &[0, 1] } else { &[1] };
        let divisor = |total: u128| u64::try_from(total.div_ceil(SUM_MAX)).unwrap_or(u64::MAX).max(1);
        let divisors = totals.map(divisor);
        let of_costs = divisor(graph.costs.iter().map(|cost| u128::from(*cost)).sum::<u128>());
        let weight = |weight: &[u64; 2], which: usize| number(weight[which] / divisors[which]);
        Some(Input {
            constraints: which.len(),
            starts: graph.starts.iter().map(|start| number(*start as u64)).collect::<Option<_>>()?,
            neighbours: graph.neighbours.iter().map(|vertex| number(u64::from(*vertex))).collect::<Option<_>>()?,
            costs: graph.costs.iter().map(|cost| number((cost / of_costs).max(1))).collect::<Option<_>>()?,
            weights: weights
                .iter()
                .flat_map(|weights| which.iter().map(|which| weight(weights, *which)))
                .collect::<Option<_>>()?,
        })
    }

    fn vertices(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    fn graph<'a>(&'a self, parts: u16, seed: u32, tolerances: &'a [f32; 2]) -> PartitionResult<metis::Graph<'a>> {
        let constraints = i32::try_from(self.constraints)?;
        Ok(metis::Graph::new(constraints, i32::from(parts), &self.starts, &self.neighbours)?
            .set_vwgt(&self.weights)
            .set_adjwgt(&self.costs)
            .set_ubvec(tolerances.get(..self.constraints).unwrap_or(tolerances))
            .set_option(Seed((seed & SEED_MAX) as i32)))
    }

    fn k_way(&self, parts: u16, seed: u32) -> PartitionResult<Vec<u16>> {
        let mut found = vec![0; self.vertices()];
        self.graph(parts, seed, &[TOLERANCE; 2])?.part_kway(&mut found)?;
        // METIS returns no other parts.
        Ok(found.into_iter().map(|part| u16::try_from(part).unwrap_or_default().min(parts - 1)).collect())
    }

    /// Halves the vertices, and the halves, until each is a part.
    fn bisect(&self, parts: u16, seed: u32) -> PartitionResult<Vec<u16>> {
        let mut found = vec![0; self.vertices()];
        let all: Vec<i32> = (0..i32::try_from(self.vertices())?).collect();
        let mut places = vec![NOWHERE; self.vertices()];
        let tolerance = TOLERANCE.powf(1.0 / f32::from(parts).log2().ceil().max(1.0));
        // Vertices, and the parts they are for: the first one, and their number.
        let mut left = vec![(all, 0u16, parts)];
        while let Some((vertices, first, count)) = left.pop() {
            if count == 1 || vertices.len() <= usize::from(count) {
                for (vertex, part) in vertices.iter().zip(0..) {
                    found[*vertex as usize] = first + if count == 1 { 0 } else { part };
                }
                continue;
            }
            let (input, lower) = (self.part(&vertices, &mut places), count / 2);
            let share = f32::from(lower) / f32::from(count);
            let targets = [share, share, 1.0 - share, 1.0 - share];
            // As many targets per side as constraints.
            let targets = if input.constraints == 2 { &targets[..] } else { &targets[1..3] };
            let mut sides = vec![0; vertices.len()];
            input.graph(2, seed, &[tolerance; 2])?.set_tpwgts(targets).part_recursive(&mut sides)?;
            let side = |wanted: i32| {
                let on_it = vertices.iter().zip(&sides).filter(move |(_, side)| **side == wanted);
                on_it.map(|(vertex, _)| *vertex).collect::<Vec<i32>>()
            };
            left.push((side(0), first, lower));
            left.push((side(1), first + lower, count - lower));
        }
        Ok(found)
    }

    /// The graph of these vertices; `places` has room for all, and is left as it was.
    fn part(&self, vertices: &[i32], places: &mut [i32]) -> Input {
        for (vertex, place) in vertices.iter().zip(0..) {
            places[*vertex as usize] = place;
        }
        let mut part = Input { constraints: self.constraints, starts: vec![0], ..Input::default() };
        for vertex in vertices.iter().map(|vertex| *vertex as usize) {
            for edge in self.starts[vertex] as usize..self.starts[vertex + 1] as usize {
                let place = places[self.neighbours[edge] as usize];
                if place != NOWHERE {
                    part.neighbours.push(place);
                    part.costs.push(self.costs[edge]);
                }
            }
            // No longer than the list of all vertices.
            part.starts.push(part.neighbours.len() as i32);
            part.weights.extend_from_slice(&self.weights[vertex * self.constraints..(vertex + 1) * self.constraints]);
        }
        vertices.iter().for_each(|vertex| places[*vertex as usize] = NOWHERE);
        part
    }
}

/// Serializes calls to METIS.
static METIS: Mutex<()> = Mutex::new(());
/// How far METIS may make a part exceed the average: a little less than allowed, as weights are scaled.
const TOLERANCE: f32 = 1.049;
/// Maximum sum of weights or costs.
const SUM_MAX: u128 = (1 << 30) - 1;
const SEED_MAX: u32 = i32::MAX as u32;
const ITEMS_MAX: usize = 1 << 30;
/// With this many vertices per part METIS never produced an empty part, in 6,000 graphs with weights of all sizes.
const KWAY_VERTICES_MIN: usize = 16;
/// A vertex that is not in the part.
const NOWHERE: i32 = -1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Memory;
    use crate::plan::weighted::tests::{graph, random_graph};
    use ringcrawl_base::Rng;

    fn pages_of(graph: &crate::plan::PageGraph) -> Weighted {
        Weighted::of_pages(graph, &mut Memory::new(1 << 30)).expect("memory")
    }

    /// Two clusters of 40 pages, with alternating numbers, joined by a single link.
    #[test]
    fn two_clusters_are_parted_at_their_bridge() {
        let names: Vec<String> = (0..80).map(|page| format!("a.test/{page:02}")).collect();
        let pages: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1_000)).collect();
        let mut rng = Rng::new(1);
        let mut links = vec![(0, 1)];
        for page in 0..80u32 {
            links.extend((0..8).map(|_| (page, (2 * rng.below(40)) as u32 + page % 2)));
        }
        let weighted = pages_of(&graph(&pages, &links));
        let found = partition(&weighted, 2, 7).expect("METIS");
        assert!((0..80).all(|page| (found[page] == found[0]) == (page % 2 == 0)), "{found:?}");
        assert_eq!(
            (cut(&weighted, &found), excess(&weighted.weights, &found, 2)),
            ("http://a.test/01".len() as u64, 0.0)
        );
    }

    #[test]
    fn parts_are_balanced_by_both_weights_and_the_same_each_time() {
        let weighted = pages_of(&random_graph(&mut Rng::new(2), 3_000, 40, 9_000));
        for parts in [2, 5, 16] {
            let found = partition(&weighted, parts, 3).expect("METIS");
            assert_eq!((found.len(), excess(&weighted.weights, &found, parts)), (3_000, 0.0));
            assert_eq!(partition(&weighted, parts, 3).expect("METIS"), found);
            let count = |part: u16| found.iter().filter(|of| **of == part).count();
            assert!((0..parts).all(|part| count(part) > 0) && found.iter().all(|part| *part < parts));
        }
    }

    /// Sums far beyond 32 bits.
    #[test]
    fn heavy_pages_are_scaled() {
        let names: Vec<String> = (0..400).map(|page| format!("a.test/{page:03}/{}", "x".repeat(60_000))).collect();
        let pages: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1 << 40)).collect();
        let links: Vec<(u32, u32)> =
            (0..400).flat_map(|page| (1..100).map(move |by| (page, (page + by) % 400))).collect();
        let weighted = pages_of(&graph(&pages, &links));
        assert!(weighted.costs.iter().sum::<u64>() > 1 << 31);
        let found = partition(&weighted, 4, 0).expect("METIS");
        assert_eq!(excess(&weighted.weights, &found, 4), 0.0);
    }

    /// METIS must not get input that it cannot handle, nor end the process.
    #[test]
    fn small_graphs_and_many_parts() {
        let mut rng = Rng::new(3);
        for round in 0..300 {
            let (pages, links) = (2 + rng.index(30), rng.index(40));
            let weighted = pages_of(&random_graph(&mut rng, pages, 5, links));
            for parts in [1, 2, 3, 7, 19, 64] {
                let found = partition(&weighted, parts, round).expect("METIS");
                assert!(found.len() == pages && found.iter().all(|part| *part < parts), "{found:?}");
            }
        }
    }

    #[test]
    fn what_is_heavier_than_a_part_counts_as_one() {
        let of = |weights: &[u64], parts| {
            let weights: Vec<[u64; 2]> = weights.iter().map(|weight| [*weight, 1]).collect();
            capped(&weights, parts).iter().map(|weight| weight[0]).collect::<Vec<u64>>()
        };
        // One of 90 is a part, so three are left for 10 + 5 + 5 + 4; then 10 is more than a third of them.
        assert_eq!(of(&[5, 90, 10, 5, 4], 4), [5, 7, 7, 5, 4]);
        assert_eq!(of(&[3, 3, 3, 3], 2), [3; 4]);
        assert_eq!((of(&[0, 9], 2), of(&[u64::MAX; 3], 2), of(&[7], 3)), (vec![0, 1], vec![u64::MAX; 3], vec![1]));
        // The others are balanced around it.
        let name = |page: u32| format!("{}.test/{page}", if page < 300 { 0 } else { page });
        let names: Vec<String> = (0..500).map(name).collect();
        let pages: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1_000)).collect();
        let links: Vec<(u32, u32)> = (0..499).map(|page| (page, page + 1)).collect();
        let sites = Weighted::of_sites(&graph(&pages, &links), &mut Memory::new(1 << 30)).expect("memory");
        let found = partition(&sites, 4, 1).expect("METIS");
        let count = |part: u16| found.iter().filter(|of| **of == part).count();
        assert!((0..4).all(|part| part == found[0] || (60..=71).contains(&count(part))), "{found:?}");
    }

    #[test]
    fn imbalances() {
        let of = |weights: &[(u16, u64)], parts| imbalance(weights.iter().copied(), parts);
        assert_eq!(of(&[(0, 3), (1, 1)], 2), 0.5);
        assert_eq!(of(&[(0, 2), (1, 1), (1, 1)], 2), 0.0);
        assert_eq!(of(&[(0, 2), (1, 2)], 4), 1.0);
        assert_eq!((of(&[], 4), of(&[(0, 0)], 0)), (0.0, 0.0));
    }
}
