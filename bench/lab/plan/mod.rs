//! Which shard gets which site or page, by the links of an earlier crawl: what `ringcrawl-lab plan` computes.
//!
//! Decides: the two models of Cambazoglu, Turk and Aykanat, "Data-Parallel Web Crawling Models" (ISCIS 2004), and what they are
//! compared with. A vertex is a page or a site; it weighs its bytes (storage) and its pages (requests). An edge costs the bytes of
//! the URLs that its links would send from shard to shard, both ways. METIS looks for parts of equal weights with the cheapest cut; the
//! crawler's own hash is the baseline.
//!
//! | file | what it is |
//! |---|---|
//! | `edge_list` | lists of links, pages and sites, as text |
//! | `stored` | a crawl's directory, whose pages are read again |
//! | `synthetic` | the synthetic web |
//! | `builder`, `graph` | the graph of pages |
//! | `weighted` | what METIS is given: pages or sites |
//! | `partition` | METIS |
//! | `compare` | imbalance and volume, as the paper has them |
//! | `pagerank`, `files` | the order of pages; what is written |
//!
//! Invariants: the same input and seed give the same plan; nothing is changed but the files that are asked for.
//! Limits: [`PAGES_MAX`] pages; memory as [`Memory`] is told, which is asked before it is used; METIS takes 2^30 vertices and links both ways.
//! Leaves to others: arguments, the table's look, the progress bar (`cli::plan`); the hash (`route`), links of pages (`page`).

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

pub use compare::{Heaviest, Method, Row, Unit, assign, compare};
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

/// Most pages of a graph: they are counted in 32 bits, and two numbers are no page.
pub const PAGES_MAX: u64 = (1 << 32) - 2;

/// What counts as a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiteKind {
    /// A registrable domain.
    Domain,
    /// A host.
    Host,
}

/// How a graph is made of what is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GraphSettings {
    /// What a site is.
    pub key: SiteKind,
    /// Bytes that the URL of a page counts whose URL is not known.
    pub url_bytes: u64,
}

/// How far a long step is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// What is done, in words.
    pub what: &'static str,
    /// How much of it.
    pub done: u64,
    /// Of how much.
    pub total: u64,
}

/// Is told how far long steps are, a few hundred times each.
pub type Watch<'a> = &'a mut dyn FnMut(Step);
