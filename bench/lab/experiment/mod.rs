//! Experiments with parallel crawlers: production's shards crawl the web of a graph under every combination of
//! partition, mode, order and number of shards, measured as in the papers. What `ringcrawl-lab lab` computes.
//!
//! | file | what it is |
//! |---|---|
//! | `design` | which crawls there are, and their configuration |
//! | `graph_web`, `forgetful_disk` | the web of a graph; a disk that keeps nothing |
//! | `planned` | what its crawls know of the graph in advance |
//! | `crawl` | one crawl, on a virtual clock |
//! | `measures` | its results: a row of the table |
//! | `figures`, `drawing`, `axis` | the content of its figures; how they look; the ticks of an axis |
//! | `stored` | the same measures of a real crawl, from its directory |
//!
//! Invariants: the same graph, configuration and seed give the same row.
//! Limits: a crawl holds what its shards hold, and 32 bytes a page fetched.
//! Leaves to others: graphs (`plan`), arguments, files and the bar (`commands::lab`).

mod axis;
mod crawl;
mod design;
mod drawing;
mod figures;
mod forgetful_disk;
mod graph_web;
mod measures;
mod planned;
mod stored;
#[cfg(test)]
mod tests;

pub use crawl::{CrawlError, Fetch, Observed, Proceed, Setting, crawl};
pub use design::{Design, ORDERS, PAGERANK, PLANNED, Treatment, base, draw_seeds};
pub use drawing::draw;
pub use figures::{Figure, Series, figures};
pub use graph_web::GraphWeb;
pub use measures::{ExperimentRow, Ground, SHARES};
pub use planned::Planned;
pub use stored::measure;
