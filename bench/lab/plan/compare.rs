//! Compares assignments: the table of the paper.
//!
//! Decides: a row for each number of parts K, unit (page, site) and method (graph partition, hash). The imbalance of
//! storage and of requests is that of the heaviest part, (max − avg) / avg. The volume is the bytes of the URLs of
//! the links that lead from part to part. The hash is the one by which the crawler routes URLs.
//! If no partition can be within 5 %, because one vertex is heavier than a part, that vertex is named: a site is not
//! divided.

use serde::Serialize;

use super::partition::{imbalance, partition};
use super::weighted::Weighted;
use super::{IMBALANCE_MAX, Memory, PageGraph, PlanError, StepProgress, Watch};
use ringcrawl_brain::route::shard_of_key;

/// What is assigned as a whole.
#[derive(Serialize, clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Each page.
    Page,
    /// All pages of a site.
    Site,
}

impl Unit {
    /// `page` or `site`.
    pub fn as_str(self) -> &'static str {
        match self {
            Unit::Page => "page",
            Unit::Site => "site",
        }
    }
}

/// The method of assignment.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// By graph partitioning.
    Gp,
    /// By the hash of its name.
    Hash,
}

/// The results of an assignment.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct AssignmentRow {
    /// K.
    pub parts: u16,
    /// The unit of assignment.
    pub unit: Unit,
    /// The method of assignment.
    pub method: Method,
    /// (max − avg) / avg of the parts' bytes; of their pages if no page's bytes are known.
    pub storage_imbalance: f64,
    /// The same for their pages.
    pub request_imbalance: f64,
    /// Bytes of the URLs of links that lead to another part.
    pub volume_bytes: u64,
    /// For a graph partition that cannot be within 5 %: the heaviest vertex, which alone exceeds the limit of a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heaviest: Option<Heaviest>,
}

/// The heaviest vertex.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Heaviest {
    /// URL or site.
    pub name: String,
    /// Its share of all bytes, or of all pages, whichever is greater.
    pub share: f64,
}

impl AssignmentRow {
    /// Whether both imbalances are within the tolerance that METIS gets.
    pub fn is_balanced(&self) -> bool {
        self.storage_imbalance.max(self.request_imbalance) <= IMBALANCE_MAX
    }
}

/// The rows for all of `parts`.
pub fn compare(
    graph: &PageGraph,
    parts: &[u16],
    seed: u32,
    memory: &mut Memory,
    watch: Watch<'_>,
) -> Result<Vec<AssignmentRow>, PlanError> {
    let (mut rows, total) = (Vec::new(), 2 * parts.len() as u64);
    for unit in [Unit::Page, Unit::Site] {
        let weighted = weighted(graph, unit, memory)?;
        for count in parts.iter().copied() {
            watch(StepProgress { what: "partitioning", done: rows.len() as u64 / 2, total });
            let found = partition(&weighted, count, seed)?;
            rows.push(row(graph, &weighted, unit, Method::Gp, count, &found));
            rows.push(row(graph, &weighted, unit, Method::Hash, count, &hashed(graph, unit, count)));
        }
        weighted.release(memory);
    }
    rows.sort_by_key(|row| parts.iter().position(|count| *count == row.parts));
    Ok(rows)
}

/// Assigns each page or site to a part by graph partitioning.
pub fn assign(
    graph: &PageGraph,
    unit: Unit,
    parts: u16,
    seed: u32,
    memory: &mut Memory,
) -> Result<Vec<u16>, PlanError> {
    let weighted = weighted(graph, unit, memory)?;
    let found = partition(&weighted, parts, seed);
    weighted.release(memory);
    found
}

fn weighted(graph: &PageGraph, unit: Unit, memory: &mut Memory) -> Result<Weighted, PlanError> {
    match unit {
        Unit::Page => Weighted::of_pages(graph, memory),
        Unit::Site => Weighted::of_sites(graph, memory),
    }
}

/// Assigns each page or site to a part by its hash.
fn hashed(graph: &PageGraph, unit: Unit, parts: u16) -> Vec<u16> {
    match unit {
        Unit::Page => graph.all().map(|page| shard_of_key(graph.url(page).as_bytes(), parts)).collect(),
        Unit::Site => {
            (0..graph.sites() as u32).map(|site| shard_of_key(graph.site_host(site).as_bytes(), parts)).collect()
        }
    }
}

fn row(graph: &PageGraph, weighted: &Weighted, unit: Unit, method: Method, parts: u16, found: &[u16]) -> AssignmentRow {
    let of =
        |which: usize| imbalance(found.iter().copied().zip(weighted.weights.iter().map(|weight| weight[which])), parts);
    let mut row = AssignmentRow {
        parts,
        unit,
        method,
        storage_imbalance: of(0),
        request_imbalance: of(1),
        volume_bytes: volume(graph, unit, found),
        heaviest: None,
    };
    if method == Method::Gp && !row.is_balanced() {
        let share_max = (1.0 + IMBALANCE_MAX) / f64::from(parts);
        row.heaviest = heaviest(graph, weighted, unit).filter(|heaviest| heaviest.share > share_max);
    }
    row
}

/// Bytes of the URLs of links between parts.
fn volume(graph: &PageGraph, unit: Unit, found: &[u16]) -> u64 {
    let part = |page: u32| {
        let vertex = match unit {
            Unit::Page => page,
            Unit::Site => graph.site_of(page),
        };
        found.get(vertex as usize)
    };
    let of = |from: u32| graph.targets_of(from).iter().filter(move |to| part(**to) != part(from));
    graph.all().flat_map(of).map(|to| graph.url_bytes(*to)).sum()
}

fn heaviest(graph: &PageGraph, weighted: &Weighted, unit: Unit) -> Option<Heaviest> {
    let totals = weighted.totals();
    let share = |weight: &[u64; 2]| {
        let of = |which: usize| weight[which] as f64 / totals[which].max(1) as f64;
        of(0).max(of(1))
    };
    let (vertex, share) =
        weighted.weights.iter().map(share).enumerate().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let name = match unit {
        Unit::Page => graph.name(vertex as u32),
        Unit::Site => graph.site_name(vertex as u32),
    };
    Some(Heaviest { name: name.to_owned(), share })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::weighted::tests::{graph, random_graph};
    use ringcrawl_base::Rng;
    use ringcrawl_brain::route::Partition;
    use ringcrawl_url::Url;

    #[test]
    fn a_hand_made_web() {
        // Two sites that link to themselves, and once to each other; http://a.test/1 has 15 bytes.
        let pages = [("a.test/1", 400), ("a.test/2", 100), ("b.test/3", 100), ("b.test/4", 400)];
        let graph = graph(&pages, &[(0, 1), (1, 0), (2, 3), (3, 2), (0, 2)]);
        let rows = compare(&graph, &[2, 1], 1, &mut Memory::new(1 << 20), &mut |_| ()).expect("a plan");
        let order: Vec<_> = rows.iter().map(|row| (row.parts, row.unit, row.method)).collect();
        let of = |parts| {
            [(Unit::Page, Method::Gp), (Unit::Page, Method::Hash), (Unit::Site, Method::Gp), (Unit::Site, Method::Hash)]
                .map(|(unit, method)| (parts, unit, method))
        };
        assert_eq!(order, [of(2), of(1)].concat());
        let by_page = &rows[0];
        assert_eq!((by_page.volume_bytes, by_page.storage_imbalance, by_page.request_imbalance), (15, 0.0, 0.0));
        let by_site = &rows[2];
        assert_eq!((by_site.volume_bytes, by_site.is_balanced(), &by_site.heaviest), (15, true, &None));
        assert!(rows[4..].iter().all(|row| row.volume_bytes == 0 && row.is_balanced()));
        // By hand: the shard of each URL, and the links that lead to another shard.
        let shard = |page: u32| shard_of_key(graph.name(page).as_bytes(), 2);
        let crossing = [(0, 1), (1, 0), (2, 3), (3, 2), (0, 2)].iter().filter(|(from, to)| shard(*from) != shard(*to));
        assert_eq!(rows[1].volume_bytes, 15 * crossing.count() as u64);
    }

    #[test]
    fn hashes_are_those_of_the_crawler() {
        let graph = random_graph(&mut Rng::new(4), 300, 60, 400);
        let partition = Partition::by_site(16);
        let by_site = hashed(&graph, Unit::Site, 16);
        for page in graph.all() {
            let url = Url::parse(graph.name(page)).expect("a URL");
            assert_eq!(by_site[graph.site_of(page) as usize], partition.shard_of(&url));
        }
    }

    #[test]
    fn a_site_larger_than_a_part_is_told() {
        let names: Vec<String> =
            (0..40).map(|page| format!("{}.test/{page}", if page < 30 { 0 } else { page })).collect();
        let pages: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 10)).collect();
        let graph = graph(&pages, &[(0, 31), (32, 33)]);
        let rows = compare(&graph, &[4], 1, &mut Memory::new(1 << 20), &mut |_| ()).expect("a plan");
        assert!(rows[0].is_balanced() && rows[0].heaviest.is_none());
        assert_eq!(rows[2].heaviest, Some(Heaviest { name: "0.test".to_owned(), share: 0.75 }));
        assert_eq!((rows[2].storage_imbalance, rows[2].request_imbalance), (2.0, 2.0));
    }
}
