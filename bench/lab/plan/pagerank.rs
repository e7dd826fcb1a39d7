//! PageRank of pages: the order of their importance.
//!
//! Decides: the random surfer of Brin and Page (1998). With probability 0.85 the surfer follows one of a page's
//! links, and otherwise jumps to any page; from a page without links the surfer also jumps to any page. The power
//! method starts from equal ranks and runs until a round changes less than 1e-9 in all, or for 200 rounds (0.85^200
//! is 8e-15).
//! Invariants: ranks sum to 1, and none is 0; pure.

use super::{Memory, PageGraph, PlanError, StepProgress, Watch};

/// The number of pages that link to each page: whole numbers.
pub fn links_to(graph: &PageGraph, memory: &mut Memory) -> Result<Vec<f64>, PlanError> {
    let mut links = memory.filled(graph.pages(), 0.0, "ranks")?;
    for page in graph.all() {
        for target in graph.targets_of(page) {
            if let Some(links) = links.get_mut(*target as usize) {
                *links += 1.0;
            }
        }
    }
    Ok(links)
}

/// The rank of each page.
pub fn pagerank(graph: &PageGraph, memory: &mut Memory, watch: Watch<'_>) -> Result<Vec<f64>, PlanError> {
    let pages = graph.pages();
    let mut ranks = memory.filled(pages, 1.0 / pages as f64, "ranks")?;
    let mut next = memory.filled(pages, 0.0f64, "ranks")?;
    for done in 0..ROUNDS_MAX {
        watch(StepProgress { what: "ranking", done, total: ROUNDS_MAX });
        next.fill(0.0);
        let mut dangling = 0.0;
        for (page, rank) in graph.all().zip(&ranks) {
            let targets = graph.targets_of(page);
            if targets.is_empty() {
                dangling += rank;
            }
            let share = rank / targets.len() as f64;
            for target in targets {
                if let Some(sum) = next.get_mut(*target as usize) {
                    *sum += share;
                }
            }
        }
        let of_any = (1.0 - DAMPING + DAMPING * dangling) / pages as f64;
        let mut change = 0.0;
        for (rank, sum) in ranks.iter_mut().zip(&next) {
            let new = of_any + DAMPING * sum;
            change += (new - *rank).abs();
            *rank = new;
        }
        if change < CHANGE_MAX {
            break;
        }
    }
    memory.release(next);
    Ok(ranks)
}

const DAMPING: f64 = 0.85;
const CHANGE_MAX: f64 = 1e-9;
const ROUNDS_MAX: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::weighted::tests::{graph, random_graph};
    use ringcrawl_base::Rng;

    fn ranks(graph: &PageGraph) -> Vec<f64> {
        pagerank(graph, &mut Memory::new(1 << 20), &mut |_| ()).expect("memory")
    }

    /// The same by the full matrix of the surfer's steps.
    fn slow_ranks(graph: &PageGraph) -> Vec<f64> {
        let pages = graph.pages();
        let step = |from: u32, to: u32| {
            let targets = graph.targets_of(from);
            let followed = match targets.len() {
                0 => 1.0 / pages as f64,
                links => f64::from(u8::from(targets.contains(&to))) / links as f64,
            };
            0.15 / pages as f64 + 0.85 * followed
        };
        let mut ranks = vec![1.0 / pages as f64; pages];
        for _ in 0..300 {
            let of = |to| graph.all().map(|from| ranks[from as usize] * step(from, to)).sum();
            ranks = graph.all().map(of).collect();
        }
        ranks
    }

    #[test]
    fn by_hand() {
        // Two pages that link to each other are equal; a page without links gives to all pages.
        assert_eq!(ranks(&graph(&[("a.test/1", 1), ("a.test/2", 1)], &[(0, 1), (1, 0)])), [0.5, 0.5]);
        // r1 = (0.15 + 0.85 r2) / 2, r1 + r2 = 1: r1 = 1 / 2.85.
        let found = ranks(&graph(&[("a.test/1", 1), ("a.test/2", 1)], &[(0, 1)]));
        assert!((found[0] - 1.0 / 2.85).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn as_the_slow_twin() {
        let mut rng = Rng::new(5);
        for _ in 0..20 {
            let (pages, links) = (2 + rng.index(40), rng.index(120));
            let graph = random_graph(&mut rng, pages, 4, links);
            let (fast, slow) = (ranks(&graph), slow_ranks(&graph));
            assert!(fast.iter().zip(&slow).all(|(fast, slow)| (fast - slow).abs() < 1e-8), "{fast:?} {slow:?}");
            assert!((fast.iter().sum::<f64>() - 1.0).abs() < 1e-9 && fast.iter().all(|rank| *rank > 0.0));
        }
    }
}
