//! Assigns sites or pages to shards by the links of an earlier crawl: what `ringcrawl-lab plan` computes.
//!
//! Decides: the two models of Cambazoglu, Turk and Aykanat, "Data-Parallel Web Crawling Models" (ISCIS 2004), and
//! their baseline. A vertex is a page or a site; its weights are its bytes (storage) and its pages (requests). The
//! cost of an edge is the bytes of the URLs that its links would send from shard to shard, both ways. METIS looks for
//! parts of equal weights with the cheapest cut; the baseline is the crawler's own hash.
//!
//! | file | what it is |
//! |---|---|
//! | `edge_list` | lists of links, pages and sites, as text |
//! | `stored` | the stored pages of a crawl's directory |
//! | `synthetic` | the synthetic web |
//! | `builder`, `graph` | the graph of pages |
//! | `weighted` | the input of METIS: pages or sites |
//! | `partition` | METIS |
//! | `compare` | imbalance and volume, as in the paper |
//! | `pagerank`, `files` | the order of pages; output files |
//!
//! Invariants: the same input and seed give the same plan; only the requested files are changed.
//! Limits: [`PAGES_MAX`] pages; the bytes allowed by [`Memory`], which is asked before memory is used; METIS takes
//! 2^30 vertices and links both ways.
//! Leaves to others: arguments, the table's layout, the progress bar (`commands::plan`); the hash (`route`), links of
//! pages (`page`).

mod builder;
mod compare;
mod edge_list;
mod error;
mod files;
mod graph;
mod memory;
mod pagerank;
mod partition;
mod stored;
mod synthetic;
mod weighted;

pub use compare::{AssignmentRow, Heaviest, Method, Unit, assign, compare};
pub use edge_list::{EdgeFiles, read as read_edges};
pub use error::PlanError;
pub use files::{write_ranks, write_vector};
pub use graph::{Counts, PageGraph};
pub use memory::Memory;
pub use pagerank::{links_to, pagerank};
pub use partition::IMBALANCE_MAX;
pub use stored::{Losses, read as read_stored, read_known};
pub(crate) use stored::{opened, url_of};
pub use synthetic::read as read_synthetic;

/// Maximum number of pages of a graph: they are counted in 32 bits, and two numbers are reserved.
pub const PAGES_MAX: u64 = (1 << 32) - 2;

/// What counts as a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiteKind {
    /// A registrable domain.
    Domain,
    /// A host.
    Host,
}

/// How the input becomes a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GraphSettings {
    /// What a site is.
    pub key: SiteKind,
    /// Assumed URL length in bytes of a page whose URL is not known.
    pub url_bytes: u64,
}

/// Progress of a long step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepProgress {
    /// A description of the step.
    pub what: &'static str,
    /// Amount done.
    pub done: u64,
    /// Total amount.
    pub total: u64,
}

/// Receives the progress of long steps, a few hundred times each.
pub type Watch<'a> = &'a mut dyn FnMut(StepProgress);
